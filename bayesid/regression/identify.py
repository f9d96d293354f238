"""The main job: runs in, base and physically consistent standard parameters with intervals out, judged on other runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.regression.checks import check_held_out, check_runs, provenance
from bayesid.regression.covariance import HAC, Covariance, CovarianceResult
from bayesid.regression.damping import viscous_and_coulomb
from bayesid.regression.least_squares import METHODS, Fit, wls
from bayesid.regression.load import load_response, settle_load
from bayesid.regression.observations import Observations
from bayesid.regression.physical import Constraints, min_eigenvalues, physical
from bayesid.regression.predict import base_names, torque_predictor
from bayesid.regression.validation import Validation, validate
from bayesid.results import Estimate
from bayesid.robots import Robot
from bayesid.signals import Samples


@dataclass(frozen=True, eq=False)
class Identification:
    """What `identify` found.

    `estimate` is what to use: standard parameters for method lmi, base parameters else. `base` is the estimate of base
    parameters in either case; `unconstrained` the least-squares estimate before physical consistency was asked for.
    `active` lists the constraints that hold with equality, `min_eigenvalue` (n,) is per link (None without lmi); `pull` is
    the weight of the nominal inertials.
    """

    model: Model
    estimate: Estimate
    base: Estimate
    unconstrained: Estimate
    fit: Fit
    training: tuple[Validation, ...]
    validation: tuple[Validation, ...]
    active: tuple[str, ...]
    min_eigenvalue: np.ndarray | None
    condition_number: float
    pull: float = 0.0

    @property
    def runs(self) -> tuple[Samples, ...]:
        """The runs fitted."""
        return _source(self.fit).runs

    def robot(self) -> Robot:
        """The robot that method lmi found; of its friction, what robot descriptions know (`viscous_and_coulomb`)."""
        inertials, rotors, _ = self.model.split(self.estimate.mean)
        robot = self.model.robot.with_inertials(inertials, rotors)
        friction = viscous_and_coulomb(self.model, self.estimate.mean, self.runs)
        joints = tuple(
            dataclasses.replace(joint, friction=(("viscous", float(viscous)), ("coulomb", float(coulomb))))
            for joint, (viscous, coulomb) in zip(robot.joints, friction)
        )
        return dataclasses.replace(robot, joints=joints)


def identify(
    model: Model,
    runs,
    *,
    gains=None,
    gain_covariance=None,
    method: str = "lmi",
    covariance: Covariance | None = None,
    constraints: Constraints | None = None,
    validation=(),
    draws: int = 200,
    seed: int = 0,
) -> Identification:
    """Identify a robot from one or several runs (`Samples`).

    `method`: ols, wls, robust, gls, or lmi (physically consistent on top of wls). `gains` (n,) [N m/A] are needed when the
    effort is a current; `gain_covariance` (n, n) widens the result by their uncertainty. `validation` holds further runs
    to judge the result on. A model whose friction grows with load, if it has no reference yet, gets that of a weighted fit
    (see `settle_load`), of which the covariance takes account; the result's model has it. Raises DataError when the data do
    not determine the parameters or do not fit the model, when a run is given twice, and when an effort never changes.
    """
    if method not in (*METHODS, "lmi"):
        raise DataError(f"unknown method '{method}': choose one of {', '.join((*METHODS, 'lmi'))}")
    runs = (runs,) if isinstance(runs, Samples) else tuple(runs)
    validation = (validation,) if isinstance(validation, Samples) else tuple(validation)
    check_runs(model, runs)
    if validation:
        check_held_out(model, validation, gains)
    model, settled = settle_load(model, lambda model: wls(Observations(model, runs, gains)))
    observations = Observations(model, runs, gains)
    fit = METHODS["wls" if method == "lmi" else method](observations)
    found = (covariance or HAC()).of(fit)
    response = load_response(fit) if settled else np.eye(len(fit.beta))
    if settled:
        found = found._replace(covariance=response @ found.covariance @ response.T)
    if gain_covariance is not None:
        slope = response @ gain_sensitivity(fit)
        spread = slope @ np.asarray(gain_covariance) @ slope.T
        description = {**found.description, "drive_gains": "propagated"}
        found = CovarianceResult(found.covariance + spread, found.dof, description)
    predictor = torque_predictor(observations, fit.beta)
    unconstrained = Estimate(
        names=base_names(model),
        units=model.base.units,
        kinds=model.base.kinds,
        mean=fit.beta,
        covariance=found.covariance,
        method=fit.method,
        covariance_method=found.description,
        dof=found.dof,
        predictor=predictor,
        meta={"expressions": dict(zip(base_names(model), model.base.expressions)), "trained_on": provenance(runs)}
        | ({"load_reference": settled} if settled else {}),
    )
    estimate, base, active, smallest = unconstrained, unconstrained, (), None
    if method == "lmi":
        consistent = physical(fit, found.covariance, found.dof, constraints=constraints, draws=draws, seed=seed)
        predictor = torque_predictor(observations, model.base.project(consistent.parameters))
        estimate = _from_draws(unconstrained, consistent.parameters, consistent.draws, model, predictor)
        base = _base_of(estimate, unconstrained, model, predictor)
        active, smallest = consistent.active, min_eigenvalues(model, consistent.parameters)
    return Identification(
        model=model,
        estimate=estimate,
        base=base,
        unconstrained=unconstrained,
        fit=fit,
        training=tuple(validate(base, run) for run in runs),
        validation=tuple(validate(base, run) for run in validation),
        active=active,
        min_eigenvalue=smallest,
        pull=constraints.pull if constraints else 0.0,
        condition_number=float(np.linalg.cond(fit.information.stacked(np.ones(model.robot.dof))[0])),
    )


def gain_sensitivity(fit: Fit) -> np.ndarray:
    """(b, n) derivative of base parameters with respect to the drive gains, all runs' efforts being currents.

    beta = H^-1 sum_j w_j X_j^T K_j i_j, hence column j is H^-1 w_j X_j^T tau_j / K_j.
    """
    source = _source(fit)
    gains = source.gains
    torques = [run.effort_kind == "torque" for run in source.runs]
    if gains is None or all(torques):
        raise DataError("the runs hold torques, so the result does not depend on drive gains")
    if any(torques):
        raise DataError("some runs hold torques, others currents: the gains' uncertainty cannot be told apart; fit one kind")
    normal = fit.factor.T @ fit.factor
    moments = [
        weight * fit.information.moment(j) / gain for j, (weight, gain) in enumerate(zip(fit.weights, gains, strict=True))
    ]
    return np.linalg.solve(normal, np.array(moments).T)


def _source(fit) -> Observations:
    """The observations of a fit before whitening or clipping."""
    return fit.observations.source if fit.method in ("gls", "robust") else fit.observations


def _from_draws(unconstrained, parameters, draws, model, predictor):
    return dataclasses.replace(
        unconstrained,
        names=model.names,
        units=model.units,
        kinds=model.kinds,
        mean=parameters,
        covariance=np.cov(draws.T),
        method="lmi",
        covariance_method={**unconstrained.covariance_method, "through": "parametric bootstrap", "draws": len(draws)},
        dof=np.inf,
        draws=draws,
        predictor=predictor,
        meta={"trained_on": unconstrained.meta["trained_on"]},
    )


def _base_of(estimate, unconstrained, model, predictor):
    draws = model.base.project(estimate.draws)
    return dataclasses.replace(
        unconstrained,
        mean=model.base.project(estimate.mean),
        covariance=np.cov(draws.T),
        method="lmi",
        covariance_method=estimate.covariance_method,
        dof=np.inf,
        draws=draws,
        predictor=predictor,
    )
