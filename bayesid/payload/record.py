"""What a wrench sensor and the arm's kinematics recorded while a payload moved, checked before anything is estimated."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesid.errors import DataError

GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class SensorNoise:
    """Standard deviations per sample of white sensor noise: angular velocity [rad/s], force [N], moment [N m]."""

    angular_velocity: float
    force: float
    moment: float

    def __post_init__(self):
        values = np.array([self.angular_velocity, self.force, self.moment], dtype=float)
        if not np.isfinite(values).all() or (values < 0).any() or self.force == 0 or self.moment == 0:
            raise DataError(
                f"sensor noise needs a positive force and moment and no negative angular velocity, got {self.force} N, "
                f"{self.moment} N m, {self.angular_velocity} rad/s"
            )


@dataclass(frozen=True, eq=False)
class SensorMotion:
    """How the sensor frame moved: `time` (N,) [s], `rotation` (N, 3, 3) to the base's axes, `velocity` (N, 3) of its origin
    in the base's axes [m/s], as forward kinematics give them. `parts` names spans of time [s]; `gravity` (3,) [m/s^2].
    """

    time: np.ndarray
    rotation: np.ndarray
    velocity: np.ndarray
    parts: tuple[tuple[str, float, float], ...] = ()
    position: np.ndarray | None = None
    gravity: tuple[float, float, float] = GRAVITY

    def __post_init__(self):
        for name in ("time", "rotation", "velocity"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))
        n = self.time.size
        if self.time.shape != (n,) or self.rotation.shape != (n, 3, 3) or self.velocity.shape != (n, 3):
            raise DataError(
                f"a sensor motion needs time (N,), rotation (N, 3, 3) and velocity (N, 3), got {self.time.shape}, "
                f"{self.rotation.shape} and {self.velocity.shape}"
            )
        if n < 3:
            raise DataError(f"{n} samples are too few for a payload: at least 3 are needed")
        for name in ("time", "rotation", "velocity"):
            finite = np.isfinite(getattr(self, name)).reshape(n, -1).all(1)
            if not finite.all():
                raise DataError(f"{name} is not finite at sample {int(np.argmin(finite)) + 1}: repair or cut the record there")
        step = np.diff(self.time)
        if (step <= 0).any():
            k = int(np.argmax(step <= 0))
            raise DataError(
                f"time does not increase from sample {k + 1} to {k + 2} ({self.time[k]:.6g} s, {self.time[k + 1]:.6g} s)"
            )
        off = np.abs(np.swapaxes(self.rotation, 1, 2) @ self.rotation - np.eye(3)).max(axis=(1, 2))
        if off.max() > 1e-6:
            raise DataError(f"the rotation at sample {int(np.argmax(off)) + 1} is not orthonormal (off by {off.max():.2g})")

    def __len__(self):
        return self.time.size

    @property
    def step(self) -> float:
        """Median time between samples [s]."""
        return float(np.median(np.diff(self.time)))

    @cached_property
    def turn(self) -> np.ndarray:
        """(N-1, 3) rotation vector from each sample to the next, in the sensor's axes [rad]."""
        return rotation_vectors(np.swapaxes(self.rotation[:-1], 1, 2) @ self.rotation[1:])

    @cached_property
    def angular_velocity(self) -> np.ndarray:
        """(N, 3) angular velocity in the sensor's axes from the rotations themselves (central differences) [rad/s]."""
        rate = self.turn / np.diff(self.time)[:, None]
        return np.concatenate([rate[:1], 0.5 * (rate[:-1] + rate[1:]), rate[-1:]])

    def rows(self, name: str) -> np.ndarray:
        """Indices of the samples in the part of that name, both ends included."""
        for part, start, end in self.parts:
            if part == name:
                eps = 1e-9 + 1e-6 * self.step
                return np.flatnonzero((self.time >= start - eps) & (self.time <= end + eps))
        raise DataError(f"the motion has no part '{name}': it has {', '.join(p[0] for p in self.parts) or 'none'}")

    def names(self, prefix: str) -> list[str]:
        """Names of the parts that start with `prefix`."""
        return [name for name, _, _ in self.parts if name.startswith(prefix)]


@dataclass(frozen=True, eq=False)
class WrenchRecord:
    """Measured wrench of the robot on the payload, at the sensor frame's origin and along its axes, with the motion.

    `force` (N, 3) [N], `moment` (N, 3) [N m]; `angular_velocity` (N, 3) [rad/s] as measured, along the sensor's axes
    (None: taken from the rotations, without noise). A sensor that reports the wrench of the payload on the robot must be
    negated first. `name` says where the record comes from.
    """

    motion: SensorMotion
    force: np.ndarray
    moment: np.ndarray
    angular_velocity: np.ndarray | None = None
    name: str = "record"

    def __post_init__(self):
        if self.angular_velocity is None:
            object.__setattr__(self, "angular_velocity", self.motion.angular_velocity)
        for name in ("force", "moment", "angular_velocity"):
            value = np.asarray(getattr(self, name), dtype=float)
            object.__setattr__(self, name, value)
            if value.shape != (len(self.motion), 3):
                raise DataError(f"{self.name}: {name} must be ({len(self.motion)}, 3), got {value.shape}")
            finite = np.isfinite(value).all(1)
            if not finite.all():
                raise DataError(
                    f"{self.name}: {name} is not finite at sample {int(np.argmin(finite)) + 1}: repair or cut it there"
                )

    def __len__(self):
        return len(self.motion)

    def select(self, rows) -> WrenchRecord:
        """The record at `rows` (a slice or indices of successive samples)."""
        motion = dataclasses.replace(
            self.motion,
            time=self.motion.time[rows],
            rotation=self.motion.rotation[rows],
            velocity=self.motion.velocity[rows],
            position=None if self.motion.position is None else self.motion.position[rows],
        )
        return WrenchRecord(motion, self.force[rows], self.moment[rows], self.angular_velocity[rows], self.name)


def rotation_vectors(rotation) -> np.ndarray:
    """Rotation vectors (..., 3) [rad] of rotations (..., 3, 3) by less than half a turn."""
    skew = 0.5 * (rotation - np.swapaxes(rotation, -1, -2))
    axis = np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1)
    sine = np.linalg.norm(axis, axis=-1)
    angle = np.arctan2(sine, 0.5 * (np.trace(rotation, axis1=-2, axis2=-1) - 1.0))
    return axis * np.where(sine < 1e-8, 1.0, angle / np.where(sine < 1e-8, 1.0, sine))[..., None]


def skew(v) -> np.ndarray:
    """Cross-product matrices (..., 3, 3) of vectors (..., 3)."""
    x, y, z = np.moveaxis(np.asarray(v), -1, 0)
    o = np.zeros_like(x)
    return np.stack([np.stack([o, -z, y], -1), np.stack([z, o, -x], -1), np.stack([-y, x, o], -1)], -2)


def rotations(vector) -> np.ndarray:
    """Rotations (..., 3, 3) of rotation vectors (..., 3), exact to rounding for small ones too."""
    square = np.sum(vector**2, axis=-1)[..., None, None]
    angle = np.sqrt(square)
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    a = np.where(small, 1.0 - square / 6.0, np.sin(safe) / safe)
    b = np.where(small, 0.5 - square / 24.0, (1.0 - np.cos(safe)) / safe**2)
    hat = skew(vector)
    return np.eye(3) + a * hat + b * hat @ hat
