"""Predicted torques with a band, from an estimate of base or standard parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.regression.least_squares import residual_moments
from bayesid.regression.observations import Observations
from bayesid.regression.stuck import (
    UNSEEN,
    StuckFriction,
    known_direction,
    normal_nodes,
    stuck_friction,
    without_dry_friction,
)
from bayesid.results import Estimate, Prediction
from bayesid.signals import Samples


@dataclass(frozen=True, eq=False)
class TorquePredictor:
    """Predicts the unfiltered joint torque.

    `noise` (n,) is the standard deviation of unfiltered residuals of moving joints [N m]. `gains` (n,) [N m/A] turn measured
    currents into torques. Dry friction keeps the direction of the last slip; where a joint does not slide, the band is that of
    `stuck` instead.
    """

    model: Model
    noise: np.ndarray
    gains: np.ndarray | None = None
    stuck: StuckFriction = UNSEEN

    def predict(self, estimate: Estimate, samples: Samples, level: float) -> Prediction:
        """Torque (N, n) [N m] with a band that holds one new measurement at `level`."""
        from bayesid.results.estimate import t_quantile

        model = self.model
        if estimate.names not in (model.names, base_names(model)):
            raise DataError(f"the estimate's parameters are not those of its model of robot '{model.robot.name}'")
        if samples.dof != model.robot.dof:
            raise DataError(f"the log has {samples.dof} joints, the model '{model.robot.name}' has {model.robot.dof}")
        mean, free, variance = np.empty((3, *samples.q.shape))
        rest = without_dry_friction(estimate.names, estimate.mean)
        columns = model.base.independent if estimate.names == base_names(model) else None
        values, vectors = np.linalg.eigh(estimate.covariance)
        root = vectors * np.sqrt(np.clip(values, 0.0, None))
        for rows, block in model.chunks_of(known_direction(samples), filtered=False, columns=columns):
            mean[rows] = np.tensordot(estimate.mean, block, axes=(0, 1)).T
            free[rows] = np.tensordot(rest, block, axes=(0, 1)).T
            variance[rows] = np.sum(np.tensordot(root, block, axes=(0, 1)) ** 2, axis=0).T
        std = np.sqrt(variance + self.noise**2)
        half = t_quantile((1 + level) / 2, estimate.dof) * std
        prediction = Prediction(mean, std, mean - half, mean + half, level)
        size = model.dry_friction(dict(zip(estimate.names, estimate.mean)), samples.q, samples.qd, samples.qdd)
        noise = self.noise[:, None] * normal_nodes()
        return self.stuck.replace(prediction, samples, free, size, noise, np.sqrt(variance), model.friction.sharp)

    def measured(self, samples: Samples) -> np.ndarray:
        """(N, n) the unfiltered measured torque that a prediction is compared with [N m]."""
        return Observations(self.model, (samples,), self.gains).scale(samples) * samples.effort_measured

    def to_dict(self) -> dict:
        return {
            "model": self.model.to_dict(),
            "noise": self.noise.tolist(),
            "gains": None if self.gains is None else np.asarray(self.gains).tolist(),
            "stuck": self.stuck.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict) -> TorquePredictor:
        gains = None if data["gains"] is None else np.array(data["gains"], dtype=float)
        model, noise = Model.from_dict(data["model"]), np.array(data["noise"], dtype=float)
        if noise.shape != (model.robot.dof,) or not (noise >= 0).all():
            raise DataError(f"the noise of a predictor needs {model.robot.dof} numbers from 0 on")
        return cls(model, noise, gains, StuckFriction.from_dict(data["stuck"]))


def base_names(model: Model) -> tuple[str, ...]:
    """(b,) names of base parameters in an estimate: `base.<leading parameter>` for combinations of several."""
    base = model.base
    return tuple(f"base.{name}" if kind == "base" else name for name, kind in zip(base.names, base.kinds))


def torque_predictor(observations: Observations, beta) -> TorquePredictor:
    """The predictor of a fit, its noise taken from the unfiltered residuals of the runs that it was fitted to."""
    raw = Observations(observations.model, observations.runs, observations.gains, filtered=False)
    squares, count = residual_moments(raw, beta, 0)
    noise = np.sqrt(squares[:, 0] / np.maximum(count, 1.0))
    stuck = stuck_friction(raw.model, [(run, beta) for run in raw.runs], raw.gains, noise)
    return TorquePredictor(raw.model, noise, raw.gains, stuck)
