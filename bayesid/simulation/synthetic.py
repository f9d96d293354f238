"""Synthetic logs: a known model moved along a known motion, seen through imperfect sensors. No control loop."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from bayesid.errors import DesignError, ModelError
from bayesid.logs import Log


@dataclass(frozen=True, eq=False)
class Sensors:
    """What stands between a robot and its log. Each entry is one number or one per joint; 0 switches it off.

    `*_noise` are standard deviations and `*_step` quantisation steps, in the channel's unit (rad, rad/s, and N m or A
    for the effort). `effort_correlation` is the coefficient of the AR(1) process that the effort noise follows from
    one sample to the next; its stationary standard deviation is `effort_noise`. Residuals of good fits on real robots
    are autocorrelated over tens of samples: 0.95 at 100 Hz is a realistic choice.
    """

    position_noise: float | np.ndarray = 0.0
    position_step: float | np.ndarray = 0.0
    velocity_noise: float | np.ndarray = 0.0
    velocity_step: float | np.ndarray = 0.0
    effort_noise: float | np.ndarray = 0.0
    effort_step: float | np.ndarray = 0.0
    effort_correlation: float | np.ndarray = 0.0

    def __post_init__(self):
        for name in self.__dataclass_fields__:
            value = np.asarray(getattr(self, name), dtype=float)
            if value.ndim > 1 or not np.isfinite(value).all() or (value < 0).any():
                raise DesignError(f"Sensors.{name} must be one finite number, not negative, or one per joint; got {value}")
        if (np.asarray(self.effort_correlation) >= 1).any():
            raise DesignError("Sensors.effort_correlation must lie below 1: a random walk has no stationary spread")


IDEAL = Sensors()
_FIELDS = tuple(Sensors.__dataclass_fields__)


def synthetic_log(model, motion, parameters=None, *, drive_gains=None, sensors: Sensors = IDEAL, seed=0) -> Log:
    """The log of a model's torques (or motor currents) along a motion.

    `model` is a `bayesid.models.Model` and `parameters` (P,) its parameter vector (default: the nominal one).
    `motion` has `time` (N,), `q`, `qd`, `qdd` (N, n): a JointMotion or Samples. With `drive_gains` (n,) [N m/A] the
    log holds currents torque / gain, and the effort noise is in A. `seed` is an int or a numpy Generator: the same
    seed, the same log.
    """
    parameters = np.asarray(model.nominal if parameters is None else parameters, dtype=float)
    torque = np.asarray(model.torque(parameters, motion.q, motion.qd, motion.qdd))
    return sense(
        motion.time,
        motion.q,
        motion.qd,
        torque,
        drive_gains=drive_gains,
        sensors=sensors,
        seed=seed,
        joint_names=model.robot.joint_names,
    )


def sense(time, q, qd, torque, *, drive_gains=None, sensors: Sensors = IDEAL, seed=0, joint_names=None) -> Log:
    """A Log of true positions, velocities and joint torques (N, n) seen through `sensors`; see `synthetic_log`."""
    rng = np.random.default_rng(seed)
    q, qd = np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
    _check_sizes(sensors, q.shape[1])
    position = _quantise(q + sensors.position_noise * rng.standard_normal(q.shape), sensors.position_step)
    velocity = _quantise(qd + sensors.velocity_noise * rng.standard_normal(q.shape), sensors.velocity_step)
    return assemble_log(
        time, position, velocity, torque, drive_gains=drive_gains, sensors=sensors, rng=rng, joint_names=joint_names
    )


def assemble_log(time, position, velocity, torque, *, drive_gains, sensors, rng, joint_names) -> Log:
    """A Log of positions and velocities (N, n) as measured, and of true torques seen through the effort sensors."""
    time, position, velocity, effort = (np.asarray(x, dtype=float) for x in (time, position, velocity, torque))
    n = position.shape[1]
    _check_sizes(sensors, n)
    if not np.isfinite(effort).all():
        raise ModelError("the torques to log hold a number that is not finite: check the parameters and the motion")
    kind = "torque"
    if drive_gains is not None:
        gains = np.asarray(drive_gains, dtype=float)
        if gains.shape != (n,) or not np.isfinite(gains).all() or (gains == 0).any():
            raise ModelError(f"drive gains must be {n} finite numbers of N m/A other than zero, got {drive_gains}")
        effort, kind = effort / gains, "current"
    noise = autocorrelated(rng, effort.shape, sensors.effort_noise, sensors.effort_correlation)
    effort = _quantise(effort + noise, sensors.effort_step)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in (time, position, velocity, effort)))
    told = [f"{name} {_short(getattr(sensors, name))}" for name in _FIELDS if np.any(getattr(sensors, name))]
    return Log(
        time,
        position,
        velocity,
        **{kind: effort},
        effort_kind=kind,
        joint_names=joint_names,
        path="synthetic",
        sha256=digest.hexdigest(),
        notes=("synthetic log; sensors: " + (", ".join(told) or "ideal"),),
    )


def autocorrelated(rng: np.random.Generator, shape, std, coefficient) -> np.ndarray:
    """Stationary AR(1) noise (N, n): e_k = c e_(k-1) + sqrt(1 - c^2) std w_k, e_0 from its stationary law."""
    from scipy.signal import lfilter

    std, coefficient = (np.broadcast_to(np.asarray(x, dtype=float), shape[1:]) for x in (std, coefficient))
    white = rng.standard_normal(shape)
    if not coefficient.any():
        return std * white
    white[1:] *= np.sqrt(1.0 - coefficient**2)
    columns = [lfilter([1.0], [1.0, -c], w) for c, w in zip(coefficient, white.T, strict=True)]
    return std * np.stack(columns, axis=1)


def _quantise(value, step):
    step = np.asarray(step, dtype=float)
    return np.where(step > 0, np.round(value / np.where(step > 0, step, 1.0)) * step, value)


def _check_sizes(sensors, n):
    for name in _FIELDS:
        if np.size(getattr(sensors, name)) not in (1, n):
            raise DesignError(f"Sensors.{name} has {np.size(getattr(sensors, name))} entries, the robot {n} joints")


def _short(value):
    return np.array2string(np.asarray(value), precision=4, separator=" ")
