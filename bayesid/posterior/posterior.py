"""The main job of this room: runs in, a posterior out, with its diagnostics and everything that is read off it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bayesid.errors import DataError, ResultError
from bayesid.models import Model
from bayesid.posterior.breakaway import BreakawayPrior, SpeedLikelihood, SpeedTarget
from bayesid.posterior.conflict import Conflict, soften
from bayesid.posterior.diagnostics import Diagnostics
from bayesid.posterior.likelihood import Likelihood, autoregressive, calibrated, white
from bayesid.posterior.prediction import TorquePredictor, torque_predictor
from bayesid.posterior.prior import LinearPrior, Prior, Wishart, pseudo
from bayesid.posterior.sampling import NUTS, Draws
from bayesid.posterior.target import Target
from bayesid.regression import Observations, load_response, robust, settle_load, wls
from bayesid.regression.checks import check_runs, provenance
from bayesid.results import Estimate
from bayesid.signals import Samples

LIKELIHOODS = ("calibrated", "robust", "autoregressive", "white")
_LOG_LIKELIHOOD_DRAWS = 500
_MOST_INSTANTS = 2000


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws of standard parameters with the target that they come from.

    `draws` (chains, S, P); `observations` are the runs fitted (None when only information was given).
    """

    target: Target
    result: Draws
    predictor: TorquePredictor | None = None
    conflicts: tuple[Conflict, ...] = ()
    observations: Observations | None = None
    meta: dict = field(default_factory=dict)

    @property
    def model(self) -> Model:
        return self.target.model

    @property
    def draws(self) -> np.ndarray:
        return self.result.parameters

    @property
    def flat(self) -> np.ndarray:
        """(draws, P) of all chains."""
        return self.draws.reshape(-1, self.model.size)

    @property
    def diagnostics(self) -> Diagnostics | None:
        return self.result.diagnostics

    def estimate(self) -> Estimate:
        """Standard parameters as an Estimate with these draws."""
        model, flat = self.model, self.flat
        return Estimate(
            names=model.names,
            units=model.units,
            kinds=model.kinds,
            mean=flat.mean(axis=0),
            covariance=np.cov(flat.T),
            method="posterior",
            covariance_method=self.target.likelihood.description,
            draws=flat,
            predictor=self.predictor,
            meta=self.meta,
        )

    def base_estimate(self) -> Estimate:
        """Base parameters as an Estimate with the projected draws."""
        base = self.model.base
        flat = base.project(self.flat)
        return Estimate(
            names=base.names,
            units=base.units,
            kinds=base.kinds,
            mean=flat.mean(axis=0),
            covariance=np.cov(flat.T),
            method="posterior",
            covariance_method=self.target.likelihood.description,
            draws=flat,
        )

    def min_eigenvalues(self) -> np.ndarray:
        """(draws, n) smallest eigenvalue of each link's pseudo-inertia, with NumPy alone."""
        n = self.model.robot.dof
        return np.linalg.eigvalsh(pseudo(self.flat[:, : 10 * n].reshape(-1, n, 10)))[..., 0]

    def contraction(self, key=0, draws: int = 4000) -> np.ndarray:
        """(P,) 1 - var(posterior) / var(prior): 1 where the data tell all, 0 where they tell nothing."""
        prior = self.target.prior.sample(key, draws)
        return 1.0 - self.flat.var(axis=0) / prior.var(axis=0)

    def correlated_groups(self, threshold: float = 0.8) -> list[tuple[str, ...]]:
        """Groups of parameters that are known together only: connected by posterior correlations above `threshold`."""
        from scipy.sparse.csgraph import connected_components

        linked = np.abs(np.corrcoef(self.flat.T)) > threshold
        count, label = connected_components(linked, directed=False)
        groups = [tuple(self.model.names[i] for i in np.flatnonzero(label == k)) for k in range(count)]
        return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)

    def to_arviz(self, seed: int = 0):
        """ArviZ object: posterior, prior, posterior predictive, log likelihood, sample stats, observed data.

        `inertial` (link, inertial), one variable per friction parameter and `rotor_inertia` (joint), and `parameters`
        (parameter), units as attributes. `torque` (instant, joint) of the fitted runs is thinned to at most 2000 instants at
        which all joints move; where there are none, all instants stand in and there is no log likelihood.
        """
        import arviz as az

        from bayesid.robots import INERTIAL_NAMES

        model, robot = self.model, self.model.robot
        rng = np.random.default_rng(seed)
        groups = {"posterior": _variables(model, self.draws)}
        groups["prior"] = _variables(model, self.target.prior.sample(rng, 1000)[None])
        if self.result.stats:
            names = {"diverging": "diverging", "num_steps": "n_steps", "accept_prob": "acceptance_rate", "energy": "energy"}
            groups["sample_stats"] = {new: self.result.stats[old] for old, new in names.items() if old in self.result.stats}
        coords = {
            "parameter": list(model.names),
            "link": list(robot.link_names),
            "inertial": list(INERTIAL_NAMES),
            "joint": list(robot.joint_names),
        }
        dims = {"parameters": ["parameter"], "inertials": ["link", "inertial"]}
        if model.rotor:
            dims["rotor_inertia"] = ["joint"]
        dims.update({name: ["joint"] for name in model.friction.parameters})
        if self.observations is not None and self.predictor is not None:
            torque, predicted, density = self._data_groups(rng)
            coords["instant"] = np.arange(len(torque))
            dims["torque"] = ["instant", "joint"]
            groups["observed_data"] = {"torque": torque}
            groups["posterior_predictive"] = {"torque": predicted}
            if density is not None:
                groups["log_likelihood"] = {"torque": density}
        if int(az.__version__.split(".")[0]) >= 1:
            data = az.from_dict(groups, coords=coords, dims=dims)
        else:
            data = az.from_dict(**groups, coords=coords, dims=dims)
        units = _units(model)
        for group in ("posterior", "prior"):
            for name in data[group].data_vars:
                if name in units:
                    data[group][name].attrs["units"] = units[name]
            data[group]["parameter"].attrs["units"] = list(model.units)
        return data

    def save_netcdf(self, path) -> None:
        """Write the ArviZ object as NetCDF."""
        self.to_arviz().to_netcdf(str(path))

    def sample_robots(self, count: int, seed: int = 0):
        """Yield `count` robots drawn from the posterior: inertials, rotor inertias and friction of one draw each."""
        import dataclasses

        rng = np.random.default_rng(seed)
        replace = count > len(self.flat)
        for k in rng.choice(len(self.flat), size=count, replace=replace):
            inertials, rotors, friction = self.model.split(self.flat[k])
            robot = self.model.robot.with_inertials(inertials, rotors)
            names = self.model.friction.parameters
            joints = tuple(
                dataclasses.replace(joint, friction=tuple(zip(names, map(float, row))))
                for joint, row in zip(robot.joints, friction)
            )
            yield dataclasses.replace(robot, joints=joints)

    def export_samples(self, folder, count: int, kind: str = "urdf", seed: int = 0) -> list[Path]:
        """Write `count` robot descriptions for domain randomisation: `<robot>_000.urdf`, ... (or MJCF as `.xml`)."""
        from bayesid.robots import mjcf_text, urdf_text

        writers = {"urdf": (urdf_text, "urdf"), "mjcf": (mjcf_text, "xml")}
        if kind not in writers:
            raise ResultError(f"robot descriptions are written as urdf or mjcf, not '{kind}'")
        write, suffix = writers[kind]
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for k, robot in enumerate(self.sample_robots(count, seed)):
            path = folder / f"{robot.name.replace('/', '_')}_{k:03d}.{suffix}"
            path.write_text(write(robot), encoding="utf-8")
            paths.append(path)
        return paths

    def _data_groups(self, rng):
        runs = self.observations.runs
        used = [np.flatnonzero(run.moving.all(axis=1)) for run in runs]
        moving = sum(map(len, used)) > 0
        if not moving:
            used = [np.arange(len(run)) for run in runs]
        every = math.ceil(sum(map(len, used)) / _MOST_INSTANTS)
        parts = [run.select(rows[::every]) for run, rows in zip(runs, used) if len(rows)]
        blocks = [(self.predictor.measured(part), part) for part in parts]
        torque = np.concatenate([measured for measured, _ in blocks])
        chains = len(self.draws)
        per_chain = min(self.draws.shape[1], max(1, _LOG_LIKELIHOOD_DRAWS // (4 * chains)))
        rows = np.linspace(0, self.draws.shape[1] - 1, per_chain).astype(int)
        picked = self.draws[:, rows].reshape(-1, self.model.size) - self.model.origin
        mean = np.empty((len(picked), *torque.shape))
        start = 0
        for _, part in blocks:
            for at, block in self.model.chunks_of(part, filtered=False):
                mean[:, start + at.start : start + at.stop] = np.einsum("dp,nps->dsn", picked, block, optimize=True)
            start += len(part)
        noise = self.predictor.quantiles
        std = noise.std(axis=1)
        density = -0.5 * ((torque - mean) / std) ** 2 - np.log(std * np.sqrt(2.0 * np.pi))
        drawn = np.stack([rng.choice(row, size=mean.shape[:2]) for row in noise], axis=-1)
        shape = (chains, per_chain, *torque.shape)
        return torque, (mean + drawn).reshape(shape), density.reshape(shape) if moving else None


def infer(
    model: Model,
    runs,
    *,
    gains=None,
    gain_covariance=None,
    prior: Prior | None = None,
    likelihood: str | Likelihood = "calibrated",
    method=None,
    softened: bool = True,
    breakaway: BreakawayPrior | None = None,
) -> Posterior:
    """Posterior of a model's standard parameters given one or several runs (`Samples`).

    `prior` defaults to `Wishart()` about the robot's own values. `likelihood`: "calibrated" (default; real robots), "robust"
    (the same about Huber's fit, for heavy tails), "autoregressive", "white", or a Likelihood. `method` runs the inference
    (default NUTS()). `gains` (n,) [N m/A] are needed for currents, `gain_covariance` (n, n) adds their uncertainty.
    With `softened`, links at odds with their nominal get a softer prior and are named in `conflicts`. A model whose friction
    grows with load and that has no reference gets it from a fit (see `bayesid.regression.settle_load`). With `breakaway`, the
    breakaway speeds of Stribeck friction are inferred too, each `<joint>.breakaway_speed`; the model's own are not looked at.
    """
    runs = (runs,) if isinstance(runs, Samples) else tuple(runs)
    _check_finite(runs)
    check_runs(model, runs)
    prior, settled = prior or Wishart(), {}
    if breakaway is not None:
        _check_breakaway(model, likelihood)
        likelihood = SpeedLikelihood.of(Observations(model, runs, gains), gain_covariance)
        model = likelihood.model
        known = prior.of(model)
        if not isinstance(known, LinearPrior):
            raise DataError(
                f"breakaway speeds are inferred with a Wishart prior, not a {known.description['name']} one: use it, or hold "
                "them (--breakaway-speed)"
            )
        target = SpeedTarget(breakaway.of(known), likelihood)
    else:
        if not isinstance(likelihood, Likelihood):
            model, settled = settle_load(model, lambda model: wls(Observations(model, runs, gains)))
            likelihood = likelihood_of(Observations(model, runs, gains), likelihood, gain_covariance, bool(settled))
        target = prior.of(model).target(likelihood)
    observations = Observations(model, runs, gains)
    conflicts: tuple[Conflict, ...] = ()
    if softened:
        target, conflicts = soften(target)
    result = (method or NUTS()).run(target)
    predictor = torque_predictor(target.prior, runs, observations.gains)
    meta = {"conflicts": [str(c) for c in conflicts], "effective_samples": likelihood.effective.round(1).tolist()}
    meta["trained_on"] = provenance(runs)
    if settled:
        meta["load_reference"] = settled
    return Posterior(target, result, predictor, conflicts, observations, meta)


def likelihood_of(observations: Observations, name: str, gain_covariance=None, own_load: bool = False) -> Likelihood:
    """The likelihood of that name for these observations. `own_load`: the load of friction was taken from a fit to them, which
    widens calibrated ones and is taken as known by the others."""
    if name not in LIKELIHOODS:
        raise DataError(f"unknown likelihood '{name}': choose one of {', '.join(LIKELIHOODS)}")
    if name in ("calibrated", "robust"):
        fit = (wls if name == "calibrated" else robust)(observations)
        return calibrated(fit, gains_covariance=gain_covariance, response=load_response(fit) if own_load else None)
    if gain_covariance is not None:
        raise DataError(f"the likelihood '{name}' takes drive gains as exact: use the calibrated one")
    return autoregressive(observations) if name == "autoregressive" else white(observations)


def _check_breakaway(model, likelihood):
    if model.friction.name != "stribeck":
        raise DataError(f"friction law '{model.friction.name}' has no breakaway speed to infer: use stribeck")
    if likelihood != "calibrated":
        raise DataError(
            "breakaway speeds are inferred with the calibrated likelihood: use it, or hold them (--breakaway-speed)"
        )


def _check_finite(runs):
    for run in runs:
        for name in ("q", "qd", "qdd", "effort"):
            bad = ~np.isfinite(getattr(run, name))
            if bad.any():
                row, joint = np.argwhere(bad)[0]
                raise DataError(
                    f"sample {row + 1}, joint {joint + 1}: {name} is not a number: drop such rows before (--drop-bad-rows)"
                )


def _variables(model, draws):
    n = model.robot.dof
    out = {"parameters": draws, "inertials": draws[..., : 10 * n].reshape(*draws.shape[:-1], n, 10)}
    if model.rotor:
        out["rotor_inertia"] = draws[..., 10 * n : 11 * n]
    count = len(model.friction.parameters)
    friction = draws[..., model.size - n * count :].reshape(*draws.shape[:-1], n, count)
    return out | {name: friction[..., k] for k, name in enumerate(model.friction.parameters)}


def _units(model):
    units = dict(zip(model.friction.parameters, model.friction.units))
    return units | {"rotor_inertia": "kg m^2", "inertials": "kg, kg m, kg m^2"}
