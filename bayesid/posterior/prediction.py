"""Predicted torque with a band that holds one new unfiltered measurement, moving or at standstill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import ResultError
from bayesid.models import Model
from bayesid.posterior.folds import held_out_fits
from bayesid.posterior.prior import ParameterPrior
from bayesid.regression import Observations
from bayesid.regression.stuck import (
    StuckFriction,
    band,
    known_direction,
    normal_nodes,
    stuck_friction,
    without_dry_friction,
)
from bayesid.results import Estimate, Prediction
from bayesid.signals import SlipState, slip_states

_PROBABILITIES = 201
_DRAWS = 8192
_LEAST_SAMPLES = 20


@dataclass(frozen=True, eq=False)
class TorquePredictor:
    """Band = parameters' uncertainty + noise of one measurement, per joint.

    `quantiles` (n, K), at evenly spaced probabilities, are the noise of a sliding joint: unfiltered residuals of fitted runs
    under fits that left their part of the data out, since those of the fit itself are too small for another motion. Sessions
    differ in noise, so it is scaled by a log-normal factor, `session` (n,) the standard deviation of its logarithm. Dry
    friction keeps the direction of the last slip; where a joint does not slide, the band is that of `stuck` instead. `gains`
    (n,) [N m/A] turn measured currents into torques.
    """

    model: Model
    quantiles: np.ndarray
    session: np.ndarray
    stuck: StuckFriction
    gains: np.ndarray | None = None

    def predict(self, estimate: Estimate, samples, level: float) -> Prediction:
        """Torque (N, n) [N m] with a band that holds one new measurement at `level`."""
        model, n = self.model, self.model.robot.dof
        if samples.dof != n:
            raise ResultError(f"samples of {samples.dof} joints, the estimate's robot '{model.robot.name}' has {n}")
        if estimate.names != model.names:
            raise ResultError("a torque needs all parameters of the model: this estimate holds only some of them")
        root = _root(estimate)
        mean, free, spread = np.empty((3, *samples.q.shape))
        values = estimate.mean - model.origin
        rest = without_dry_friction(estimate.names, values)
        for rows, block in model.chunks_of(known_direction(samples), filtered=False):
            mean[rows] = np.tensordot(values, block, axes=(0, 1)).T
            free[rows] = np.tensordot(rest, block, axes=(0, 1)).T
            spread[rows] = np.sqrt(np.sum(np.einsum("kp,nps->kns", root, block) ** 2, axis=0)).T
        lower, upper, std = np.empty((3, *mean.shape))
        noise = self._noise()
        for j in range(n):
            low, high, std[:, j] = band(noise[j], spread[:, j], level)
            lower[:, j], upper[:, j] = mean[:, j] + low, mean[:, j] + high
        size = model.dry_friction(dict(zip(estimate.names, estimate.mean)), samples.q, samples.qd, samples.qdd)
        prediction = Prediction(mean, std, lower, upper, level)
        return self.stuck.replace(prediction, samples, free, size, noise, spread, model.friction.sharp)

    def _noise(self):
        """(n, draws) noise of another session, evenly spread, in random order."""
        rng = np.random.default_rng(3)
        values = np.array([rng.permutation(np.resize(row, _DRAWS)) for row in self.quantiles])
        return values * np.exp(self.session[:, None] * rng.permutation(normal_nodes(_DRAWS)))

    def measured(self, samples) -> np.ndarray:
        """(N, n) the unfiltered measured torque that a prediction is compared with [N m]."""
        return Observations(self.model, (samples,), self.gains).scale(samples) * samples.effort_measured

    def to_dict(self) -> dict:
        return {
            "model": self.model.to_dict(),
            "quantiles": self.quantiles.tolist(),
            "session": self.session.tolist(),
            "stuck": self.stuck.to_dict(),
            "gains": None if self.gains is None else np.asarray(self.gains).tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict) -> TorquePredictor:
        gains = None if data["gains"] is None else np.array(data["gains"], dtype=float)
        quantiles, session = np.array(data["quantiles"], dtype=float), np.array(data["session"], dtype=float)
        return cls(Model.from_dict(data["model"]), quantiles, session, StuckFriction.from_dict(data["stuck"]), gains)


def torque_predictor(prior: ParameterPrior, runs, gains) -> TorquePredictor:
    """The predictor of a posterior that was fitted to `runs` under `prior`."""
    model = prior.model
    fits = held_out_fits(prior, runs, gains)
    residuals = [_sliding_residuals(model, part, beta, gains) for part, beta in fits]
    together = np.concatenate(residuals)
    at = (np.arange(_PROBABILITIES) + 0.5) / _PROBABILITIES
    # A joint that never slides has no such noise, and none is needed: it is stuck throughout.
    idle = np.isnan(together).all(axis=0)
    quantiles = np.nanquantile(np.where(idle, 0.0, together), at, axis=0).T
    stuck = stuck_friction(model, fits, gains, quantiles.std(axis=1))
    return TorquePredictor(model, quantiles, session_spread(residuals, len(runs)), stuck, gains)


def session_spread(residuals, sessions: int) -> np.ndarray:
    """(n,) standard deviation of the logarithm of the noise of another session, over that of the pooled residuals.

    `residuals` are those of parts of R runs, NaN where unknown. Parts stand for sessions: the noise of a fifth of a UR10e log
    differs from the next one's as that of logs does. With sigma that of log noise between parts, a new session is sigma
    sqrt(1 + 1/R) from the mean of the fitted ones, of which the pool of their residuals already holds sigma sqrt(1 - 1/R).
    Joints share sigma, for few parts tell it; noise is the 90 % quantile of absolute residuals, which a single jolt does not
    move.
    """
    n = residuals[0].shape[1]
    squares, freedom = 0.0, 0
    for j in range(n):
        own = [np.abs(part[:, j]) for part in residuals if np.isfinite(part[:, j]).sum() >= _LEAST_SAMPLES]
        scale = np.array([np.nanquantile(values, 0.9) for values in own])
        if len(own) > 1 and np.all(scale > 0):
            squares, freedom = squares + np.sum((np.log(scale) - np.log(scale).mean()) ** 2), freedom + len(own) - 1
    sigma = np.sqrt(squares / freedom) if freedom else 0.0
    return np.full(n, sigma * np.sqrt(2.0 / sessions))


def _sliding_residuals(model, run, beta, gains):
    """(N, n) unfiltered residuals of a run under base parameters [N m], NaN while a joint does not slide."""
    raw = Observations(model, (run,), gains, filtered=False)
    residual = [chunk.effort - np.einsum("nbs,b->ns", chunk.columns, beta) for chunk in raw.chunks()]
    return np.where(slip_states(run) == SlipState.SLIDING, np.concatenate(residual, axis=1).T, np.nan)


def coverage(estimate: Estimate, samples, level: float = 0.9) -> dict:
    """Share of measured efforts inside the band, per joint: `moving` (n,), `standstill` (n,), NaN where there are none.

    Friction hardly changes while a joint stands, so that a stand is one trial however long: `by_stand` (n,) is the mean over
    `stands` (n,) stretches at standstill of the share inside.
    """
    band = estimate.predict(samples, level)
    measured = estimate.predictor.measured(samples)
    inside = (measured >= band.lower) & (measured <= band.upper)
    out = {}
    for name, rows in (("moving", samples.moving), ("standstill", ~samples.moving)):
        counts = rows.sum(axis=0)
        hits = (inside & rows).sum(axis=0)
        out[name] = np.where(counts > 0, hits / np.maximum(counts, 1), np.nan)
        out[f"{name}_samples"] = counts
    shares = [_by_stretch(~samples.moving[:, j], inside[:, j]) for j in range(samples.dof)]
    out["by_stand"] = np.array([np.mean(share) if len(share) else np.nan for share in shares])
    out["stands"] = np.array([len(share) for share in shares])
    return out


def _by_stretch(rows, inside):
    """Share inside of each stretch of consecutive rows."""
    first = rows & ~np.append(False, rows[:-1])
    label = np.cumsum(first)[rows] - 1
    return np.bincount(label, inside[rows]) / np.bincount(label) if len(label) else np.zeros(0)


def _root(estimate):
    values, vectors = np.linalg.eigh(estimate.covariance)
    kept = values > 1e-14 * values[-1]
    return (vectors[:, kept] * np.sqrt(values[kept])).T
