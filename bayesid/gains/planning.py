"""Before the robot runs: is the load heavy and offset enough for each joint? Expected interval widths from an unloaded run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import DataError
from bayesid.gains.runs import GainRuns, Load
from bayesid.gains.solving import linearised, not_determined
from bayesid.models import Model
from bayesid.regression.information import compress
from bayesid.regression.least_squares import HIGHEST_CONDITION, residual_moments, scaled_condition, wls
from bayesid.regression.observations import Observations
from bayesid.signals import Samples

# Seconds over which residuals of rigid-body fits stay correlated.
_CORRELATED = 3.0
# Part of a current's spread that nominal torques must explain before a gain is read from them.
_FOLLOWS = 0.3


@dataclass(frozen=True, eq=False)
class Plan:
    """Gains (n,) [N m/A] assumed, their expected standard deviations (n,), and the RMS torque (n,) [N m] that the load adds."""

    gains: np.ndarray
    std: np.ndarray
    added_torque: np.ndarray

    @property
    def half_width(self) -> np.ndarray:
        """(n,) half width of the expected 95 % interval as a share of the gain."""
        return 1.96 * self.std / self.gains


def nominal_gains(model: Model, run: Samples) -> np.ndarray:
    """(n,) rough gains [N m/A]: currents of a run against the torques of the robot's nominal inertial parameters.

    Only as good as those parameters: for planning, never for estimates. A joint whose current does not follow gets the
    median of the others. Raises DataError when none follows.
    """
    rigid = np.where(np.array(model.kinds) == "friction", 0.0, model.nominal)
    torque = model.torque(rigid, run.q, run.qd, run.qdd, run.direction)
    out = np.full(run.dof, np.nan)
    for j in range(run.dof):
        own = np.asarray(model.friction.columns(run.qd[:, j], run.direction[:, j])).T
        columns = np.column_stack([torque[:, j], own])
        scale = np.linalg.norm(columns, axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        slope = (np.linalg.lstsq(columns / scale, run.effort[:, j], rcond=None)[0] / scale)[0]
        if slope > 0 and slope * torque[:, j].std() > _FOLLOWS * run.effort[:, j].std():
            out[j] = 1.0 / slope
    if not np.isfinite(out).any():
        raise DataError("no joint's current follows the nominal torques: give gains to assume with --assume K1,K2,...")
    return np.where(np.isfinite(out), out, np.nanmedian(out))


def plan_gains(model: Model, run: Samples, load: Load, gains=None) -> Plan:
    """Expected uncertainty of drive gains if `run`, recorded without a load, is repeated with `load`.

    The load needs a mass; its centre is taken at the last link's origin and its inertia as small where they are not given
    (both stay unknowns of the planned fit). Noise and its autocorrelation come from the residuals of the run. `gains` (n,)
    are assumed, by default `nominal_gains`.
    """
    if load.mass is None:
        raise DataError("a plan needs the mass of the load")
    gains = nominal_gains(model, run) if gains is None else np.asarray(gains, dtype=float)
    if gains.shape != (run.dof,):
        raise DataError(f"{gains.size} gains assumed for {run.dof} joints: give one per joint")
    unloaded = wls(Observations(model, (run,), gains))
    sigma = unloaded.noise / gains
    lags = max(1, min(round(_CORRELATED / run.step), len(run) // 4))
    moments, _ = residual_moments(unloaded.observations, unloaded.beta, lags)
    correlation = moments / moments[:, :1]
    inflation = np.maximum(1.0 + 2.0 * correlation[:, 1:] @ (1.0 - np.arange(1, lags + 1) / (lags + 1)), 1.0)
    runs = GainRuns(model, (run, run.replace(source={})), (None, 0), (Load(load.mass),))
    coefficients = np.zeros(runs.size)
    coefficients[: model.base.dimension] = unloaded.beta
    further = slice(model.base.dimension, runs.load_columns(0).start)
    coefficients[further] = unloaded.beta[runs.friction]
    carried = Load(load.mass, load.com or (0.0, 0.0, 0.0), load.inertia or (1e-3, 0.0, 0.0, 1e-3, 0.0, 1e-3)).known
    coefficients[runs.load_columns(0)] = carried
    free = np.concatenate([np.ones(run.dof, bool), ~np.isfinite(runs.known)])
    fit = linearised(runs, compress(runs), gains, coefficients, free, np.zeros((0, run.dof)), sigma, "plan")
    condition, weakest, norms = scaled_condition(fit.factor)
    if not condition < HIGHEST_CONDITION:
        raise DataError(not_determined(runs, free, weakest, norms))
    inverse = np.linalg.inv(fit.factor)
    bread = inverse @ inverse.T
    middle = sum(i * w * fit.information.gram(j) for j, (w, i) in enumerate(zip(fit.weights, inflation, strict=True)))
    covariance = bread @ middle @ bread
    alone = np.zeros(runs.size)
    alone[runs.load_columns(0)] = carried
    squares = sum(np.sum(np.einsum("nps,p->ns", chunk.columns, alone) ** 2, axis=1) for chunk in runs.chunks())
    return Plan(gains, np.sqrt(np.diag(covariance)[: run.dof]), np.sqrt(squares / len(run)))
