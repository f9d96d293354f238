"""How well an estimate predicts runs: RMS, relative error, R2 and coverage of its band, joint by joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.results import Estimate, Prediction
from bayesid.signals import Samples


@dataclass(frozen=True, eq=False)
class Validation:
    """Agreement of predicted and unfiltered measured torque, each (n,).

    `rms` [N m]; `nrmse` rms over the standard deviation of the measured torque; `r2`; `coverage95` share of samples inside
    the 95 % band, `coverage95_moving` and `coverage95_still` the same while the joint moves and stands still (NaN where it
    never does). `time` (N,) [s], `measured` (N, n) and `prediction` are what was compared.
    """

    rms: np.ndarray
    nrmse: np.ndarray
    r2: np.ndarray
    coverage95: np.ndarray
    coverage95_moving: np.ndarray
    coverage95_still: np.ndarray
    time: np.ndarray
    prediction: Prediction
    measured: np.ndarray
    source: dict

    def to_dict(self) -> dict:
        """The part of a result document that describes this run."""
        names = ("rms", "nrmse", "r2", "coverage95", "coverage95_moving", "coverage95_still")
        return {**{key: self.source[key] for key in ("path", "sha256", "rows") if key in self.source}} | {
            name: getattr(self, name).tolist() for name in names
        }


def validate(estimate: Estimate, samples: Samples) -> Validation:
    """Compare an estimate's predictions with a run. Raises DataError when joints or gains do not fit."""
    measured = estimate.predictor.measured(samples)
    prediction = estimate.predict(samples, 0.95)
    residual = measured - prediction.mean
    rms = np.sqrt(np.mean(residual**2, axis=0))
    spread = measured.std(axis=0)
    spread = np.where(spread > 0, spread, np.nan)
    inside = (measured >= prediction.lower) & (measured <= prediction.upper)
    return Validation(
        rms=rms,
        nrmse=rms / spread,
        r2=1.0 - np.mean(residual**2, axis=0) / spread**2,
        coverage95=inside.mean(axis=0),
        coverage95_moving=_share(inside, samples.moving),
        coverage95_still=_share(inside, ~samples.moving),
        time=samples.time,
        prediction=prediction,
        measured=measured,
        source=dict(samples.source),
    )


def _share(inside, where):
    count = where.sum(axis=0)
    return np.where(count > 0, (inside & where).sum(axis=0) / np.maximum(count, 1), np.nan)
