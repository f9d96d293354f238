"""What makes a motion informative: costs of the information matrix, lower is better.

M (p, p) is the sum over samples and joints of w^T w / std^2, w a row of the observation matrix, plus information collected
before. Costs are logarithmic and per parameter where that makes them of order one. Criteria: Atkinson, Donev, Tobias 2007
(Optimum Experimental Designs, ch. 10); condition number: Gautier, Khalil 1992. Each is a frozen dataclass with `name`,
`cost(M, sharpness)` traceable by JAX, and `value(M)`, the plain number to report. `sharpness` p replaces largest and smallest
eigenvalues by p-norms, so that they can be differentiated where they cross; the exact value is the limit of large p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.errors import DesignError


class Objective(Protocol):
    """One criterion."""

    name: ClassVar[str]

    def cost(self, information, sharpness): ...

    def value(self, information) -> float: ...

    def settings(self) -> dict: ...


@dataclass(frozen=True)
class DOptimal:
    """-log det M per parameter: the volume of the joint confidence region."""

    name: ClassVar[str] = "d-optimal"

    def cost(self, information, sharpness):
        return -jnp.mean(jnp.log(_eigenvalues(information)))

    def value(self, information):
        """log det M."""
        return float(np.linalg.slogdet(information)[1])

    def settings(self):
        return {"name": self.name}


@dataclass(frozen=True, eq=False)
class AOptimal:
    """log of the sum of scale_i^2-weighted variances (M^-1)_ii; `scale` (p,) are typical sizes of the parameters, or 1."""

    scale: np.ndarray | float = 1.0
    name: ClassVar[str] = "a-optimal"

    def cost(self, information, sharpness):
        root = _inverse_root(information)
        return jnp.log(jnp.sum((root / jnp.asarray(self.scale)) ** 2))

    def value(self, information):
        """Root of the weighted sum of variances."""
        return float(np.sqrt(np.sum(np.diag(np.linalg.inv(information)) / np.asarray(self.scale) ** 2)))

    def settings(self):
        return {"name": self.name, "scale": np.asarray(self.scale).tolist()}


@dataclass(frozen=True)
class EOptimal:
    """-log of the smallest eigenvalue of M: the worst-determined direction."""

    name: ClassVar[str] = "e-optimal"

    def cost(self, information, sharpness):
        return _largest(-jnp.log(_eigenvalues(information)), sharpness)

    def value(self, information):
        """Smallest eigenvalue."""
        return float(np.linalg.eigvalsh(information)[0])

    def settings(self):
        return {"name": self.name}


@dataclass(frozen=True)
class ConditionNumber:
    """log of the condition number of the observation matrix, the root of that of M (Gautier, Khalil 1992)."""

    name: ClassVar[str] = "condition"

    def cost(self, information, sharpness):
        values = jnp.log(_eigenvalues(information))
        return 0.5 * (_largest(values, sharpness) + _largest(-values, sharpness))

    def value(self, information):
        """Condition number of the observation matrix."""
        values = np.linalg.eigvalsh(information)
        return float(np.sqrt(values[-1] / values[0])) if values[0] > 0 else float("inf")

    def settings(self):
        return {"name": self.name}


@dataclass(frozen=True, eq=False)
class ExpectedInformation:
    """Expected gain of information [nats] from a normal prior with `covariance` (p, p) to the posterior (Lindley 1956).

    1/2 log det(I + L^T M L), covariance = L L^T: finite even where the data alone determine nothing.
    """

    covariance: np.ndarray
    name: ClassVar[str] = "expected-information"

    def __post_init__(self):
        try:
            object.__setattr__(self, "_root", np.linalg.cholesky(np.asarray(self.covariance, dtype=float)))
        except np.linalg.LinAlgError:
            raise DesignError("the prior covariance of the expected-information objective is not positive definite") from None

    def cost(self, information, sharpness):
        return -jnp.mean(jnp.log1p(jnp.maximum(_eigenvalues(self._root.T @ information @ self._root), 0.0)))

    def value(self, information):
        """Expected information gain [nats]."""
        gain = np.eye(len(information)) + self._root.T @ information @ self._root
        return float(0.5 * np.linalg.slogdet(gain)[1])

    def settings(self):
        return {"name": self.name, "covariance": np.asarray(self.covariance).tolist()}


@dataclass(frozen=True)
class Subset:
    """Ds-optimal: -log det per parameter of the information on some parameters, all others unknown too.

    Schur complement M_ss - M_sr M_rr^-1 M_rs, whose log det is log det M - log det M_rr (Atkinson et al. 2007, eq. 10.10).
    """

    indices: tuple[int, ...]
    name: ClassVar[str] = "ds-optimal"

    def __post_init__(self):
        if not self.indices:
            raise DesignError("the ds-optimal objective was given no parameter of interest")

    def cost(self, information, sharpness):
        rest = self._rest(len(information))
        nuisance = jnp.sum(jnp.log(_eigenvalues(information[np.ix_(rest, rest)]))) if len(rest) else 0.0
        return (nuisance - jnp.sum(jnp.log(_eigenvalues(information)))) / len(self.indices)

    def value(self, information):
        """log det of the information on the subset."""
        rest = self._rest(len(information))
        return float(np.linalg.slogdet(information)[1] - np.linalg.slogdet(information[np.ix_(rest, rest)])[1])

    def _rest(self, size):
        return np.setdiff1d(np.arange(size), self.indices)

    def settings(self):
        return {"name": self.name, "indices": list(self.indices)}


OBJECTIVES = {c.name: c for c in (ConditionNumber, DOptimal, AOptimal, EOptimal, ExpectedInformation, Subset)}


def objective_from_settings(settings: dict) -> Objective:
    """The objective that `settings()` described."""
    values = dict(settings)
    name = values.pop("name", None)
    if name not in OBJECTIVES:
        raise DesignError(f"unknown objective {name!r}: choose one of {', '.join(OBJECTIVES)}")
    for key in ("scale", "covariance"):
        if key in values:
            values[key] = np.asarray(values[key], dtype=float)
    if "indices" in values:
        values["indices"] = tuple(int(i) for i in values["indices"])
    return OBJECTIVES[name](**values)


def _eigenvalues(matrix):
    """Eigenvalues with the exact gradient of symmetric functions of them, coinciding ones included.

    The eigenvectors are held fixed: d lambda_i = v_i^T dM v_i, and only the sum over a group of equal ones matters.
    """
    values, vectors = jnp.linalg.eigh(jax.lax.stop_gradient(matrix))
    floor = 1e-14 * values[-1] + 1e-300
    exact = jnp.einsum("ij,ik,kj->j", vectors, matrix, vectors)
    return jnp.maximum(exact, floor)


def _inverse_root(matrix):
    """A square root R with R R^T = M^-1, differentiable."""
    factor = jnp.linalg.cholesky(matrix)
    return jax.scipy.linalg.solve_triangular(factor, jnp.eye(len(matrix)), lower=True).T


def _largest(values, sharpness):
    """p-norm approximation of the largest entry, from above: max <= result <= max + log(count) / p."""
    return jax.scipy.special.logsumexp(sharpness * values) / sharpness
