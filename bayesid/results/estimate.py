"""A point estimate with its uncertainty, whatever estimator it came from."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bayesid.errors import BayesidError, ResultError


@dataclass(frozen=True)
class Prediction:
    """Predicted effort (N, n) with a band: `lower` and `upper` at `level`, `std` of one new measurement [N m or A]."""

    mean: np.ndarray
    std: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float


class Predictor(Protocol):
    """What an estimate needs in order to predict; stored with it."""

    def predict(self, estimate: Estimate, samples: Any, level: float) -> Prediction: ...

    def to_dict(self) -> dict: ...

    @classmethod
    def from_dict(cls, data: dict) -> Predictor: ...


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters with joint uncertainty.

    `names`, `units`, `kinds` (p,), `mean` (p,), `covariance` (p, p). Intervals come from `draws` (S, p) where there are any
    (bootstrap, posterior), else from Student's t with `dof` degrees of freedom (infinite: normal). `method` names the
    estimator and `covariance_method` how the covariance was found; `meta` holds JSON-able facts about the fit.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    kinds: tuple[str, ...]
    mean: np.ndarray
    covariance: np.ndarray
    method: str
    covariance_method: dict = field(default_factory=dict)
    dof: float = math.inf
    draws: np.ndarray | None = None
    predictor: Predictor | None = None
    meta: dict = field(default_factory=dict)

    def __post_init__(self):
        p = len(self.names)
        object.__setattr__(self, "mean", _frozen(self.mean))
        object.__setattr__(self, "covariance", _frozen(self.covariance))
        if self.draws is not None:
            object.__setattr__(self, "draws", _frozen(self.draws))
        if self.mean.shape != (p,) or self.covariance.shape != (p, p) or len(self.units) != p or len(self.kinds) != p:
            raise ResultError(
                f"an estimate of {p} names needs a mean ({p},) and a covariance ({p}, {p}), "
                f"got {self.mean.shape} and {self.covariance.shape}"
            )
        if len(set(self.names)) < p:
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ResultError(f"an estimate names '{twice}' twice")
        variances = np.diag(self.covariance)
        wrong = ~np.isfinite(self.mean) | ~np.isfinite(self.covariance).all(axis=1)
        wrong |= variances < -1e-9 * np.max(np.abs(variances), initial=0.0)
        if wrong.any():
            name = self.names[int(np.flatnonzero(wrong)[0])]
            raise ResultError(f"the estimate of '{name}' is not finite, or its variance is negative")
        if not self.dof > 0:
            raise ResultError(f"degrees of freedom must be above zero, got {self.dof}")
        if self.draws is not None and (self.draws.ndim != 2 or self.draws.shape[1] != p or not len(self.draws)):
            raise ResultError(f"draws must be (draws, {p}), got {self.draws.shape}")
        if self.draws is not None and not np.isfinite(self.draws).all():
            raise ResultError("the draws of an estimate hold a number not finite")

    def __len__(self):
        return len(self.names)

    @property
    def std(self) -> np.ndarray:
        """(p,) standard deviations."""
        return np.sqrt(np.clip(np.diag(self.covariance), 0.0, None))

    def interval(self, level: float = 0.95) -> np.ndarray:
        """(p, 2) central intervals at `level`, a probability strictly between 0 and 1."""
        if not 0.0 < level < 1.0:
            raise ResultError(f"an interval's level is a probability between 0 and 1, got {level}")
        if self.draws is not None:
            return np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2], axis=0).T
        half = t_quantile((1 + level) / 2, self.dof) * self.std
        return np.column_stack([self.mean - half, self.mean + half])

    def sample(self, key, n: int) -> np.ndarray:
        """(n, p) draws: resampled from `draws`, else from the (t or normal) distribution. `key` is a seed or a Generator."""
        rng = np.random.default_rng(key)
        if self.draws is not None:
            return self.draws[rng.integers(len(self.draws), size=n)]
        values, vectors = np.linalg.eigh(self.covariance)
        normal = rng.normal(size=(n, len(self))) * np.sqrt(np.clip(values, 0.0, None)) @ vectors.T
        if math.isfinite(self.dof):
            normal *= np.sqrt(self.dof / rng.chisquare(self.dof, size=(n, 1)))
        return self.mean + normal

    def predict(self, samples, level: float = 0.95) -> Prediction:
        """Predicted effort for `Samples` with a band that holds one new measurement at `level`."""
        if self.predictor is None:
            raise ResultError(f"an estimate by '{self.method}' of {', '.join(self.names[:3])}, ... predicts no effort")
        return self.predictor.predict(self, samples, level)

    def index(self, name: str) -> int:
        """Position of a parameter by name. Raises ResultError for an unknown one."""
        try:
            return self.names.index(name)
        except ValueError:
            raise ResultError(f"no parameter '{name}' in this estimate: it has {', '.join(self.names)}") from None

    def __getitem__(self, name: str) -> tuple[float, float]:
        """(mean, std) of one parameter."""
        i = self.index(name)
        return float(self.mean[i]), float(self.std[i])

    def select(self, names) -> Estimate:
        """The marginal estimate of some parameters, in the order given."""
        at = [self.index(name) for name in names]
        return dataclasses.replace(
            self,
            names=tuple(names),
            units=tuple(self.units[i] for i in at),
            kinds=tuple(self.kinds[i] for i in at),
            mean=self.mean[at],
            covariance=self.covariance[np.ix_(at, at)],
            draws=None if self.draws is None else self.draws[:, at],
            predictor=None,
        )

    def summary(self, level: float = 0.95):
        """A pandas DataFrame: estimate, standard deviation, interval and unit per parameter."""
        import pandas as pd

        interval = self.interval(level)
        percent = f"{100 * level:g}%"
        return pd.DataFrame(
            {
                "estimate": self.mean,
                "std": self.std,
                f"lower {percent}": interval[:, 0],
                f"upper {percent}": interval[:, 1],
                "unit": self.units,
                "kind": self.kinds,
            },
            index=pd.Index(self.names, name="parameter"),
        )

    def to_arviz(self, n: int = 2000, seed: int = 0):
        """ArviZ posterior of `n` draws as one chain, variable `parameters` with the dimension `parameter`."""
        import arviz as az

        posterior = {"posterior": {"parameters": self.sample(seed, n)[None]}}
        labels = {"coords": {"parameter": list(self.names)}, "dims": {"parameters": ["parameter"]}}
        if int(az.__version__.split(".")[0]) >= 1:
            return az.from_dict(posterior, **labels)
        return az.from_dict(**posterior, **labels)

    def to_dict(self) -> dict:
        """JSON-able content; `from_dict` is its inverse."""
        predictor = None
        if self.predictor is not None:
            kind = type(self.predictor)
            predictor = {"class": f"{kind.__module__}:{kind.__qualname__}", "data": self.predictor.to_dict()}
        return {
            "names": list(self.names),
            "units": list(self.units),
            "kinds": list(self.kinds),
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
            "method": self.method,
            "covariance_method": self.covariance_method,
            "dof": None if math.isinf(self.dof) else self.dof,
            "draws": None if self.draws is None else self.draws.tolist(),
            "predictor": predictor,
            "meta": self.meta,
        }

    @classmethod
    def from_dict(cls, data: dict) -> Estimate:
        """Inverse of `to_dict`. Raises ResultError for content that is not an estimate's."""
        try:
            predictor = data["predictor"]
            if predictor is not None:
                module, _, name = predictor["class"].partition(":")
                if not module.startswith("bayesid."):
                    raise ResultError(f"the estimate names a predictor outside bayesid: {predictor['class']}")
                predictor = getattr(importlib.import_module(module), name).from_dict(predictor["data"])
            return cls(
                names=tuple(data["names"]),
                units=tuple(data["units"]),
                kinds=tuple(data["kinds"]),
                mean=np.array(data["mean"], dtype=float),
                covariance=np.array(data["covariance"], dtype=float).reshape(len(data["names"]), -1),
                method=data["method"],
                covariance_method=data["covariance_method"],
                dof=math.inf if data["dof"] is None else float(data["dof"]),
                draws=None if data["draws"] is None else np.array(data["draws"], dtype=float),
                predictor=predictor,
                meta=data["meta"],
            )
        except (KeyError, TypeError, ValueError, AttributeError, ImportError) as error:
            raise ResultError(f"not an estimate written by bayesid: {_reason(error)}") from error

    def save(self, path) -> None:
        """Write one JSON file."""
        Path(path).write_text(json.dumps(self.to_dict()), encoding="utf-8")

    @classmethod
    def load(cls, path) -> Estimate:
        """Read what `save` wrote, from its file or the result folder that holds it as estimate.json. Raises ResultError naming
        the file."""
        if Path(path).is_dir():
            path = Path(path) / "estimate.json"
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ResultError(f"{path}: cannot be read: {error.strerror}; name a result folder or its estimate.json") from error
        except ValueError as error:
            raise ResultError(f"{path}: not a JSON file: {error}") from error
        if not isinstance(data, dict):
            raise ResultError(f"{path}: not an estimate written by bayesid: it holds no JSON object")
        try:
            return cls.from_dict(data)
        except BayesidError as error:
            raise ResultError(f"{path}: {error}") from error

    def _repr_html_(self):
        return f"<p>{self!r}</p>{self.summary().to_html()}"

    def __repr__(self):
        covariance = self.covariance_method.get("method", "given")
        return f"Estimate({len(self)} parameters by {self.method}, covariance {covariance})"


def join_estimates(first: Estimate, second: Estimate) -> Estimate:
    """Two independent estimates side by side: block-diagonal covariance, no draws, the smaller dof."""
    p, s = len(first), len(second)
    covariance = np.zeros((p + s, p + s))
    covariance[:p, :p], covariance[p:, p:] = first.covariance, second.covariance
    return Estimate(
        names=first.names + second.names,
        units=first.units + second.units,
        kinds=first.kinds + second.kinds,
        mean=np.concatenate([first.mean, second.mean]),
        covariance=covariance,
        method=f"{first.method} and {second.method}",
        covariance_method={"method": "block diagonal"},
        dof=min(first.dof, second.dof),
    )


def t_quantile(probability: float, dof: float) -> float:
    """Quantile of Student's t, of the normal distribution for infinite `dof`."""
    from scipy.special import ndtri, stdtrit

    return float(ndtri(probability) if math.isinf(dof) else stdtrit(dof, probability))


def _reason(error) -> str:
    if isinstance(error, KeyError):
        return f"it has no entry {error}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _frozen(values):
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array
