"""A drive gain from the motor current against a joint torque sensor, and what friction between the two does to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesid.errors import DataError

_LAGS_SECONDS = 0.25


class SensorGain(NamedTuple):
    """Gain [N m/A] and its standard deviation with friction between motor and sensor taken into account, the gain without,
    and the friction: viscous [N m s/rad], Coulomb and offset [N m], on the sensor's side."""

    gain: float
    std: float
    without_friction: float
    friction: np.ndarray


def sensor_gain(torque, current, velocity, step: float, direction=None) -> SensorGain:
    """Gain of one joint from sensor torque (N,) [N m], motor current (N,) [A] and velocity (N,) [rad/s], samples `step` s
    apart.

    Sensor and current are both measured, the sensor with far less noise: i = (tau + viscous qd + Coulomb sign(qd) + offset)
    / K + noise. The current also drives the friction between motor and sensor, so that tau against i alone attributes
    friction to the gain. Standard deviations are Newey-West's over 0.25 s. Raises DataError for a dead or constant channel.
    """
    torque, current, velocity = (np.asarray(x, dtype=float) for x in (torque, current, velocity))
    if not (np.isfinite(torque).all() and np.isfinite(current).all() and np.isfinite(velocity).all()):
        raise DataError("a sensor gain needs finite torque, current and velocity: leave out rows that are not numbers")
    if np.ptp(torque) == 0 or np.ptp(current) == 0:
        raise DataError("the torque sensor or the current is constant: there is nothing to compare")
    direction = np.sign(velocity) if direction is None else np.asarray(direction, dtype=float)
    columns = np.column_stack([torque, velocity, direction, np.ones_like(torque)])
    norms = np.linalg.norm(columns, axis=0)
    if np.any(norms == 0):
        raise DataError("the joint stands still: friction between motor and sensor cannot be told from the gain")
    inverse = np.linalg.pinv(columns / norms)
    solution = inverse @ current
    residual = current - columns / norms @ solution
    score = columns / norms * residual[:, None]
    lags = min(max(1, round(_LAGS_SECONDS / step)), len(torque) // 4)
    middle = score.T @ score
    for k in range(1, lags + 1):
        lagged = score[k:].T @ score[:-k]
        middle += (1.0 - k / (lags + 1)) * (lagged + lagged.T)
    bread = inverse @ inverse.T
    slopes, slope_std = solution / norms, np.sqrt(np.diag(bread @ middle @ bread)) / norms
    if slopes[0] <= 0:
        raise DataError("the current does not grow with the sensor's torque: one of the two has the wrong sign")
    gain = 1.0 / slopes[0]
    centred = torque - torque.mean()
    without = 1.0 / (centred @ (current - current.mean()) / (centred @ centred))
    return SensorGain(gain, gain**2 * slope_std[0], without, slopes[1:] * gain)
