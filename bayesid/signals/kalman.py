"""A smoother with its own uncertainty: white jerk drives the motion, position and velocity are measured with noise."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from bayesid.errors import SignalError
from bayesid.signals.derivatives import Motion
from bayesid.signals.filtering import Grid

# Rows used to choose the noise levels: the likelihood is sharp long before, and its search costs the most.
LIKELIHOOD_ROWS = 800
# Steps of the search at most: motion without noise has no most likely level, any small one serves.
SEARCHES = 20


@dataclass(frozen=True)
class Noise:
    """Per joint (n,): density of the white jerk [(rad/s^3)^2 s], standard deviations of position and velocity."""

    jerk: np.ndarray
    position: np.ndarray
    velocity: np.ndarray | None


@dataclass(frozen=True)
class KalmanSmoother:
    """Rauch-Tung-Striebel smoother of each joint alone: state (q, qd, qdd), constant acceleration but for white jerk.

    Transition and process noise after Bar-Shalom, Li, Kirubarajan, "Estimation with Applications to Tracking and
    Navigation" (2001), section 6.2.3; smoother after Rauch, Tung, Striebel, AIAA Journal 3 (1965) 1445. It works on the
    recorded stamps, so that irregular sampling needs no interpolation. Noise levels that are not given (None; else one
    number for all joints) are found by maximum likelihood of the innovations over the middle 800 rows. Its standard
    deviations hold as far as measurement noise is white: quantised or prefiltered channels are more certain than real.
    """

    jerk: float | None = None
    position_noise: float | None = None
    velocity_noise: float | None = None

    def derive(self, grid: Grid, position, velocity, cutoff: float) -> Motion:
        given = (self.jerk, self.position_noise, self.velocity_noise if velocity is not None else self.jerk)
        if any(value is None for value in given):
            if any(value is not None for value in given):
                raise SignalError("the smoother's noise levels must be given all (jerk, position, velocity) or none")
            noise = most_likely_noise(grid.time, position, velocity)
        else:
            if not all(value > 0 for value in given):
                raise SignalError("the smoother's noise levels must be above zero")
            ones = np.ones(position.shape[1])
            noise = Noise(
                self.jerk * ones,
                self.position_noise * ones,
                None if velocity is None else self.velocity_noise * ones,
            )
        mean, covariance = smooth(grid.time, position, velocity, noise)
        std = np.sqrt(np.maximum(np.diagonal(covariance, axis1=2, axis2=3), 0.0))
        record = {
            "name": "smooth",
            "of": "position" if velocity is None else "position and velocity",
            "by": "Rauch-Tung-Striebel, white jerk",
            "jerk_density": noise.jerk.tolist(),
            "position_noise": noise.position.tolist(),
            "velocity_noise": None if velocity is None else noise.velocity.tolist(),
        }
        return Motion(mean[..., 0], mean[..., 1], mean[..., 2], np.moveaxis(std, 2, 0), record)


def smooth(time, position, velocity, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """Smoothed means (N, n, 3) and covariances (N, n, 3, 3) of (q, qd, qdd)."""
    count, n = position.shape
    means, covariances = np.empty((count, n, 3)), np.empty((count, n, 3, 3))
    ahead_m, ahead_p = np.empty((count, n, 3)), np.empty((count, n, 3, 3))
    steps = np.diff(time)
    for k, x, p, xp, pp, _ in _filter(time, position, velocity, noise):
        means[k], covariances[k], ahead_m[k], ahead_p[k] = x, p, xp, pp
    for k in range(count - 2, -1, -1):
        f = _transition(steps[k])
        # Gain P F^T Pp^-1, by a solve with the symmetric Pp.
        gain = np.swapaxes(np.linalg.solve(ahead_p[k + 1], f @ covariances[k]), 1, 2)
        means[k] += np.einsum("nij,nj->ni", gain, means[k + 1] - ahead_m[k + 1])
        covariances[k] += gain @ (covariances[k + 1] - ahead_p[k + 1]) @ np.swapaxes(gain, 1, 2)
    return means, covariances


def most_likely_noise(time, position, velocity) -> Noise:
    """Noise levels (per joint) that make the innovations of the middle rows most likely.

    The likelihood is profiled over a common scale of all variances, which leaves the ratio of jerk density to
    position variance and, with velocity, of velocity to position variance: searched on a grid of powers of ten, then
    by a pattern search that halves its stride around the best point down to a twelfth of a decade.
    """
    count, n = position.shape
    first = max((count - LIKELIHOOD_ROWS) // 2, 0)
    middle = slice(first, first + LIKELIHOOD_ROWS)
    t, q, qd = time[middle], position[middle], None if velocity is None else velocity[middle]
    rate = 1 / np.median(np.diff(t))
    # Both ratios are taken in units of the sampling step, to be free of it.
    unit = np.array([rate**5, rate])
    joints = np.arange(n)
    centre = np.tile([-4.0, -1.0], (n, 1))
    stride = np.full(n, 2.0)
    points = np.linspace(-2, 2, 5)
    for _ in range(SEARCHES):
        moves = np.array(list(itertools.product(points, points if qd is not None else [0.0])))
        tried = centre[:, None, :] + stride[:, None, None] * moves[None]
        jerk = unit[0] * 10 ** tried[..., 0].ravel()
        speed = None if qd is None else unit[1] * 10 ** tried[..., 1].ravel()
        many = len(moves)
        noise = Noise(jerk, np.ones_like(jerk), speed)
        score, scale = _likelihood(t, np.repeat(q, many, 1), None if qd is None else np.repeat(qd, many, 1), noise)
        best = score.reshape(n, many).argmax(1)
        moved = np.abs(tried[joints, best] - centre).max(1) > 0
        centre = tried[joints, best]
        stride = np.where(moved & (stride < 2.0), stride, stride / 2)
        if np.all(stride < 1 / 12):
            break
        points = np.array([-1.0, 0.0, 1.0])
    pick = joints * many + best
    sigma = np.sqrt(scale[pick])
    return Noise(jerk[pick] * scale[pick], sigma, None if qd is None else speed[pick] * sigma)


def _likelihood(time, position, velocity, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """Profile log-likelihood and the scale of all variances that attains it, per column."""
    squares = logs = 0.0
    used = 0
    for k, *_, innovations in _filter(time, position, velocity, noise):
        if k < 10:
            continue
        for residual, variance in innovations:
            squares = squares + residual**2 / variance
            logs = logs + np.log(variance)
            used += 1
    # A noise-free signal has no scale of its own: keep its variance above rounding.
    scale = np.maximum(squares / used, 1e-24)
    return -0.5 * (used * np.log(scale) + logs + squares / scale), scale


def _filter(time, position, velocity, noise: Noise):
    """Kalman filter: yields row, filtered mean and covariance, predicted ones, [(innovation, its variance), ...]."""
    n = position.shape[1]
    x = np.zeros((n, 3))
    x[:, 0] = position[0]
    x[:, 1] = (position[1] - position[0]) / (time[1] - time[0]) if velocity is None else velocity[0]
    p = np.zeros((n, 3, 3))
    # Vague, but in proportion to the noise, so that the profile likelihood stays free of its scale.
    spread = 1e8 * noise.position**2
    rate = 1 / np.median(np.diff(time))
    p[:, 0, 0], p[:, 1, 1], p[:, 2, 2] = spread, spread * rate**2, spread * rate**4
    rq = noise.position**2
    rv = None if velocity is None else noise.velocity**2
    steps = np.diff(time, prepend=time[0])
    unit: dict[float, tuple] = {}
    for k in range(len(time)):
        if k:
            dt = steps[k]
            if dt not in unit:
                unit[dt] = (_transition(dt), _jerk_covariance(dt))
            f, q = unit[dt]
            x = x @ f.T
            p = f @ p @ f.T + noise.jerk[:, None, None] * q
        ahead = x, p
        innovations = []
        for i, value, r in ((0, position, rq), (1, velocity, rv)):
            if value is None:
                continue
            variance = p[:, i, i] + r
            residual = value[k] - x[:, i]
            gain = p[:, :, i] / variance[:, None]
            x = x + gain * residual[:, None]
            p = p - gain[:, :, None] * p[:, i, None, :]
            innovations.append((residual, variance))
        yield k, x, p, *ahead, innovations


def _transition(dt: float) -> np.ndarray:
    return np.array([[1.0, dt, dt**2 / 2], [0.0, 1.0, dt], [0.0, 0.0, 1.0]])


def _jerk_covariance(dt: float) -> np.ndarray:
    return np.array([[dt**5 / 20, dt**4 / 8, dt**3 / 6], [dt**4 / 8, dt**3 / 3, dt**2 / 2], [dt**3 / 6, dt**2 / 2, dt]])
