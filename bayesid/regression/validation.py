"""How well an estimate predicts runs: RMS, relative error, R2 and coverage of its band, joint by joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.results import Estimate, Prediction
from bayesid.results.estimate import t_quantile
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


def validate(estimate: Estimate, samples: Samples, gain_std=None) -> Validation:
    """Compare an estimate's predictions with a run. Raises DataError when joints or gains do not fit.

    `gain_std` (n,) is the standard deviation, as part of the gain, of drive gains that the estimate does not come from: what is
    measured is then uncertain too, and the bands are widened by that.
    """
    measured = estimate.predictor.measured(samples)
    prediction = estimate.predict(samples, 0.95)
    if gain_std is not None:
        prediction = _widened(prediction, np.abs(measured) * gain_std)
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


def _widened(prediction, std):
    """The prediction with normal noise of `std` (N, n) added: each side grows as independent errors add up."""
    reach = t_quantile((1 + prediction.level) / 2, np.inf) * std
    lower, upper = (np.hypot(prediction.mean - edge, reach) for edge in (prediction.lower, prediction.upper))
    mean = prediction.mean
    return Prediction(mean, np.hypot(prediction.std, std), mean - lower, mean + upper, prediction.level)


def _share(inside, where):
    count = where.sum(axis=0)
    return np.where(count > 0, (inside & where).sum(axis=0) / np.maximum(count, 1), np.nan)
