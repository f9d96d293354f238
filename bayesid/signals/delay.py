"""The time by which the recorded effort lags behind the recorded motion, found to a fraction of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import SignalError
from bayesid.signals.filtering import spline
from bayesid.signals.samples import Samples


@dataclass(frozen=True)
class Delay:
    """`seconds`: effort stamped t belongs to the motion at t - seconds; `std` its standard deviation [s]."""

    seconds: float
    std: float


def estimate_delay(samples: Samples, regressor: np.ndarray, *, longest: float | None = None) -> Delay:
    """The delay that explains the effort best, by maximum likelihood with one noise level a joint.

    `regressor` (N, n, P) is the model's at the samples, for example `model.regressor(samples.q, samples.qd,
    samples.qdd)`. Each joint's filtered effort, read at t + delay, is fitted on that joint's own rows of the
    regressor, so no parameter is shared and none needs to be known; the sum of N log RSS over the joints is least at
    the delay. Searched up to `longest` [s] either way (default: half a period of the cutoff, else ten samples). The
    standard deviation is that of the curvature there, widened for the first-order autocorrelation of the residuals.
    """
    if regressor.ndim != 3 or regressor.shape[:2] != samples.q.shape:
        raise SignalError(f"the regressor has the shape {regressor.shape}, samples need {samples.q.shape} and parameters")
    if longest is None:
        longest = 0.5 / samples.cutoff if samples.cutoff else 10 * samples.step
    inside = (samples.time - longest >= samples.time[0]) & (samples.time + longest <= samples.time[-1])
    count, parameters = int(inside.sum()), regressor.shape[2]
    if count < 2 * parameters + 10:
        raise SignalError(f"{count} samples are too few to estimate a delay with {parameters} parameters")
    time = samples.time[inside]
    bases = [_range(regressor[inside, j]) for j in range(samples.dof)]

    def residuals(delay: float) -> np.ndarray:
        effort = spline(samples.time, samples.effort, time + delay)
        return np.column_stack([effort[:, j] - b @ (b.T @ effort[:, j]) for j, b in enumerate(bases)])

    def cost(delay: float) -> float:
        squares = (residuals(delay) ** 2).sum(0)
        return float(count * np.log(np.maximum(squares, 1e-300)).sum() / 2)

    from scipy.optimize import minimize_scalar

    grid = np.linspace(-longest, longest, 21)
    best = int(np.argmin([cost(d) for d in grid]))
    if best in (0, len(grid) - 1):
        raise SignalError(
            f"no delay within {longest:.4g} s either way explains the effort best: search further (or nothing moves)"
        )
    found = minimize_scalar(cost, bounds=(grid[best - 1], grid[best + 1]), method="bounded", options={"xatol": 1e-7})
    r = residuals(found.x)
    h = longest / 50
    slope = (residuals(found.x + h) - residuals(found.x - h)) / (2 * h)
    rho = np.clip((r[1:] * r[:-1]).sum(0) / np.maximum((r**2).sum(0), 1e-300), 0.0, 0.999)
    information = (slope**2).sum(0) / np.maximum((r**2).sum(0) / count, 1e-300) * (1 - rho) / (1 + rho)
    return Delay(float(found.x), float(1 / np.sqrt(information.sum())))


def _range(matrix: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the columns' span; columns that are zero or repeat others add nothing."""
    u, s, _ = np.linalg.svd(matrix / np.maximum(np.linalg.norm(matrix, axis=0), 1e-300), full_matrices=False)
    return u[:, s > 1e-9 * s[0]] if s.size and s[0] > 0 else u[:, :0]
