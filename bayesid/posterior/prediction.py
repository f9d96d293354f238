"""Predicted torque with a band that holds one new unfiltered measurement, moving or at standstill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import ResultError
from bayesid.models import Model
from bayesid.regression import Observations
from bayesid.results import Estimate, Prediction

_NODES = 257
# Torque at which a joint breaks away over its Coulomb torque: the largest ratio of the UR16e reference (table 6).
_BREAKAWAY = 1.15


@dataclass(frozen=True, eq=False)
class TorquePredictor:
    """Band = parameters' uncertainty + noise of one measurement, per joint.

    The noise's distribution is that of the unfiltered residuals of the fitted logs: `quantiles` (n, K) at evenly spaced
    probabilities, for the joint moving. At standstill the motor holds any torque between plus and minus the breakaway
    friction, so a uniform variable of that width (of its mean, where it grows with load) takes the place of the friction
    term. `gains` (n,) [N m/A] turn measured
    currents into torques.
    """

    model: Model
    quantiles: np.ndarray
    gains: np.ndarray | None = None

    def predict(self, estimate: Estimate, samples, level: float) -> Prediction:
        """Torque (N, n) [N m] with a band that holds one new measurement at `level`."""
        model, n = self.model, self.model.robot.dof
        if samples.dof != n:
            raise ResultError(f"samples of {samples.dof} joints, the estimate's robot '{model.robot.name}' has {n}")
        if estimate.names != model.names:
            raise ResultError("a torque needs all parameters of the model: this estimate holds only some of them")
        root = _root(estimate)
        states = (samples.q, samples.qd, samples.qdd)
        dry = _BREAKAWAY * model.dry_friction(dict(zip(estimate.names, estimate.mean)), *states)
        mean, spread = np.empty(samples.q.shape), np.empty(samples.q.shape)
        direction = np.where(samples.moving, samples.direction_measured, 0.0)
        for rows, block in model.chunks(*states, direction, temperature=samples.temperature):
            mean[rows] = np.tensordot(estimate.mean, block, axes=(0, 1)).T
            spread[rows] = np.sqrt(np.sum(np.einsum("kp,nps->kns", root, block) ** 2, axis=0)).T
        lower, upper = np.empty(mean.shape), np.empty(mean.shape)
        std = np.empty(mean.shape)
        for j in range(n):
            for state in (True, False):
                rows = samples.moving[:, j] == state
                if not rows.any():
                    continue
                width = 0.0 if state else dry[rows, j].mean()
                low, high, deviation = self._band(j, spread[rows, j], width, level)
                lower[rows, j], upper[rows, j], std[rows, j] = mean[rows, j] + low, mean[rows, j] + high, deviation
        return Prediction(mean, std, lower, upper, level)

    def _band(self, j, spread, width, level):
        """Quantiles of noise + normal(spread) + uniform(-width, width) for each of `spread`, by interpolation over it."""
        noise = self.quantiles[j]
        grid = np.linspace(0.0, max(float(spread.max()), 1e-12), 17)
        normal = _normal_nodes(_NODES)
        low, high, deviation = np.empty(17), np.empty(17), np.empty(17)
        rng = np.random.default_rng(7)
        mixed = rng.permutation(np.resize(noise, 4 * _NODES * 8))
        size = len(mixed)
        uniform = width * rng.permutation(np.linspace(-1.0, 1.0, size))
        gauss = rng.permutation(np.resize(normal, size))
        for k, value in enumerate(grid):
            total = mixed + uniform + value * gauss
            low[k], high[k] = np.quantile(total, [(1 - level) / 2, (1 + level) / 2])
            deviation[k] = total.std()
        return np.interp(spread, grid, low), np.interp(spread, grid, high), np.interp(spread, grid, deviation)

    def measured(self, samples) -> np.ndarray:
        """(N, n) the unfiltered measured torque that a prediction is compared with [N m]."""
        return Observations(self.model, (samples,), self.gains).scale(samples) * samples.effort_measured

    def to_dict(self) -> dict:
        gains = None if self.gains is None else np.asarray(self.gains).tolist()
        return {"model": self.model.to_dict(), "quantiles": self.quantiles.tolist(), "gains": gains}

    @classmethod
    def from_dict(cls, data: dict) -> TorquePredictor:
        gains = None if data["gains"] is None else np.array(data["gains"], dtype=float)
        return cls(Model.from_dict(data["model"]), np.array(data["quantiles"], dtype=float), gains)


def residual_quantiles(observations, beta, probabilities: int = 201) -> np.ndarray:
    """(n, K) quantiles of the unfiltered residuals of moving joints [N m], at (k + 1/2) / K; observations with
    `filtered=False`."""
    parts = []
    for chunk in observations.chunks():
        residual = chunk.effort - np.einsum("nbs,b->ns", chunk.columns, beta)
        parts.append(np.where(chunk.weight > 0, residual, np.nan))
    at = (np.arange(probabilities) + 0.5) / probabilities
    return np.nanquantile(np.concatenate(parts, axis=1), at, axis=1).T


def coverage(estimate: Estimate, samples, level: float = 0.9) -> dict:
    """Share of measured efforts inside the band, per joint: `moving` (n,), `standstill` (n,), NaN where there are none."""
    band = estimate.predict(samples, level)
    measured = estimate.predictor.measured(samples)
    inside = (measured >= band.lower) & (measured <= band.upper)
    out = {}
    for name, rows in (("moving", samples.moving), ("standstill", ~samples.moving)):
        counts = rows.sum(axis=0)
        hits = (inside & rows).sum(axis=0)
        out[name] = np.where(counts > 0, hits / np.maximum(counts, 1), np.nan)
        out[f"{name}_samples"] = counts
    return out


def _root(estimate):
    values, vectors = np.linalg.eigh(estimate.covariance)
    kept = values > 1e-14 * values[-1]
    return (vectors[:, kept] * np.sqrt(values[kept])).T


def _normal_nodes(count):
    from scipy.special import ndtri

    return ndtri((np.arange(count) + 0.5) / count)
