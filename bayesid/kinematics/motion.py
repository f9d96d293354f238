"""Joint motion sampled in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import DesignError
from bayesid.robots import Robot


@dataclass(frozen=True, eq=False)
class JointMotion:
    """A sampled motion: `time` (N,) [s], `q`, `qd`, `qdd` (N, n) [rad, rad/s, rad/s^2; m for prismatic joints]."""

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    def __post_init__(self):
        for name in ("time", "q", "qd", "qdd"):
            value = np.array(getattr(self, name), dtype=np.float64)
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        shape = self.q.shape
        if (
            self.time.ndim != 1
            or len(shape) != 2
            or shape[0] != self.time.size
            or not (self.qd.shape == self.qdd.shape == shape)
        ):
            raise DesignError(
                f"a joint motion needs time (N,) and q, qd, qdd (N, n), got {self.time.shape}, {shape}, "
                f"{self.qd.shape} and {self.qdd.shape}"
            )
        for name in ("time", "q", "qd", "qdd"):
            value = getattr(self, name)
            if not np.isfinite(value).all():
                row = int(np.argwhere(~np.isfinite(value))[0][0])
                raise DesignError(f"joint motion: {name} is not finite at sample {row}")

    def __len__(self) -> int:
        return self.time.size

    @property
    def dof(self) -> int:
        return self.q.shape[1]


def random_motion(
    robot: Robot, duration: float = 10.0, rate: float = 100.0, harmonics: int = 5, usage: float = 0.6, seed=0
) -> JointMotion:
    """A random periodic motion (one period of a Fourier series) that stays inside the robot's limits.

    Each joint swings about the middle of its range with `harmonics` multiples of 1/duration [Hz], scaled so that it
    uses at most the share `usage` of its position, velocity and acceleration limits. Where the robot declares none, 3
    rad (0.3 m), 2 rad/s (0.2 m/s) and 6 rad/s^2 (0.6 m/s^2) are assumed. `seed` is an int or a numpy Generator. An
    excitation designed for information is `bayesid.excitation`'s job; this is for demonstrations and tests.
    """
    if not (duration > 0 and rate > 0 and harmonics >= 1 and 0 < usage <= 1):
        raise DesignError("random_motion needs positive duration and rate, at least one harmonic and usage in (0, 1]")
    rng = np.random.default_rng(seed)
    scale = np.where(robot.revolute, 1.0, 0.1)
    lower, upper = robot.limit("lower"), robot.limit("upper")
    bounded = np.isfinite(lower) & np.isfinite(upper)
    centre = np.where(bounded, 0.5 * (np.where(bounded, lower, 0.0) + np.where(bounded, upper, 0.0)), 0.0)
    half = np.minimum(
        np.where(bounded, 0.5 * (np.where(bounded, upper, 1.0) - np.where(bounded, lower, 0.0)), np.inf), 3.0 * scale
    )
    speed = np.minimum(robot.limit("velocity"), np.where(np.isfinite(robot.limit("velocity")), np.inf, 2.0 * scale))
    hard = robot.limit("acceleration")
    hard = np.where(np.isfinite(hard), hard, 6.0 * scale)
    time = np.arange(round(duration * rate)) / rate
    omega = 2 * np.pi / duration * np.arange(1, harmonics + 1)
    sine, cosine = rng.standard_normal((2, harmonics, robot.dof)) / np.sqrt(np.arange(1, harmonics + 1))[:, None]
    s, c = np.sin(np.outer(time, omega)), np.cos(np.outer(time, omega))
    q = s @ sine + c @ cosine
    qd = c @ (omega[:, None] * sine) - s @ (omega[:, None] * cosine)
    qdd = -s @ (omega[:, None] ** 2 * sine) - c @ (omega[:, None] ** 2 * cosine)
    factor = usage * np.min([half / np.abs(q).max(0), speed / np.abs(qd).max(0), hard / np.abs(qdd).max(0)], axis=0)
    return JointMotion(time, centre + factor * q, factor * qd, factor * qdd)
