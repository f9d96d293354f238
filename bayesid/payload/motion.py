"""Small estimation motions of the tool: minimum-jerk, out and back, first straight, then about one axis at a time.

A motion is a path in the sense of `bayesid.kinematics` (`duration`, `pose(t)`), so that a UR arm follows it through
closed-form inverse kinematics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from bayesid.errors import DesignError
from bayesid.kinematics import JointMotion, follow, minimum_jerk
from bayesid.payload.record import SensorMotion, rotations
from bayesid.robots import Robot

DIAGONAL = ((3**-0.5, 3**-0.5, 3**-0.5),)
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ELBOW_UP = (0.0, -np.pi / 2, np.pi / 2, -np.pi / 2, -np.pi / 2, 0.0)
"""A UR arm with joints 2 to 4 at right angles, elbow up, tool down [rad]."""


class ToolSamples(NamedTuple):
    """A sampled tool motion: `time` (N,), `rotation` (N, 3, 3), `position`, `velocity`, `acceleration` (N, 3) along the base's
    axes, `angular_velocity` and `angular_acceleration` (N, 3) along the tool's."""

    time: np.ndarray
    rotation: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    angular_velocity: np.ndarray
    angular_acceleration: np.ndarray


@dataclass(frozen=True)
class EstimationMotion:
    """Rest, then one minimum-jerk out-and-back motion after another, `period` seconds each.

    `directions` are unit vectors of straight motions, in the base's axes, `distance` [m] long; `axes` unit vectors of turns by
    `angle` [rad] about the tool's own axes through its origin. The motion starts at `rotation` (3x3) and `position` (3,) [m].
    Peak speed is 3.75 distance/period, peak acceleration 23.1 distance/period^2 (quintic of Flash, Hogan 1985).
    """

    distance: float = 0.1
    angle: float = 0.1
    period: float = 2.0
    rest: float = 2.0
    directions: tuple[tuple[float, float, float], ...] = DIAGONAL
    axes: tuple[tuple[float, float, float], ...] = AXES
    rotation: tuple[tuple[float, float, float], ...] = ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0))
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self):
        numbers = np.array([self.distance, self.angle, self.period, self.rest])
        if not np.isfinite(numbers).all() or (numbers < 0).any() or self.period == 0:
            raise DesignError(
                "an estimation motion needs a positive period and no negative distance, angle or rest, got "
                f"distance {self.distance}, angle {self.angle}, period {self.period}, rest {self.rest}"
            )
        for vector in (*self.directions, *self.axes):
            if abs(np.linalg.norm(vector) - 1.0) > 1e-9:
                raise DesignError(f"directions and axes must be unit vectors, got {vector}")

    @property
    def parts(self) -> tuple[tuple[str, float, float], ...]:
        """(name, start, end) [s] of the rest and of each motion: `rest`, `linear 1`, ..., `turn 1`, ..."""
        names = [f"linear {i + 1}" for i in range(len(self.directions))] + [f"turn {i + 1}" for i in range(len(self.axes))]
        spans = [("rest", 0.0, self.rest)]
        for name in names:
            spans.append((name, spans[-1][2], spans[-1][2] + self.period))
        return tuple(spans)

    @property
    def duration(self) -> float:
        """Seconds in all."""
        return self.parts[-1][2]

    def pose(self, t):
        """Rotation (3, 3) and position (3,) [m] of the tool at time t [s]; twice differentiable in t."""
        position, rotation = jnp.asarray(self.position), jnp.asarray(self.rotation)
        starts = [start for name, start, _ in self.parts if name != "rest"]
        for direction, start in zip(self.directions, starts, strict=False):
            position = position + self.distance * self._out_and_back(t - start) * jnp.asarray(direction)
        for axis, start in zip(self.axes, starts[len(self.directions) :], strict=True):
            rotation = rotation @ _about(axis, self.angle * self._out_and_back(t - start))
        return rotation, position

    def sensor_motion(self, rate: float = 1000.0) -> SensorMotion:
        """The motion of a wrench sensor in the tool frame, sampled at `rate` [Hz], both ends included."""
        sampled = self.sampled(rate)
        return SensorMotion(sampled.time, sampled.rotation, sampled.velocity, parts=self.parts, position=sampled.position)

    def accelerations(self, rate: float = 1000.0) -> tuple[float, float, float, float]:
        """Peak linear speed [m/s] and acceleration [m/s^2], peak angular speed [rad/s] and acceleration [rad/s^2]."""
        sampled = self.sampled(rate)
        rates = (sampled.velocity, sampled.acceleration, sampled.angular_velocity, sampled.angular_acceleration)
        v, a, w, wd = (float(np.linalg.norm(x, axis=1).max()) for x in rates)
        return v, a, w, wd

    def sampled(self, rate: float = 1000.0) -> ToolSamples:
        """Pose and its derivatives at `rate` [Hz], from the quintic itself."""
        if not (np.isfinite(rate) and rate > 0):
            raise DesignError(f"the sampling rate must be a positive number of Hz, got {rate}")
        time = np.arange(round(self.duration * rate) + 1) / rate
        position = np.tile(np.asarray(self.position, dtype=float), (len(time), 1))
        velocity, acceleration, w, wd = (np.zeros((len(time), 3)) for _ in range(4))
        rotation = np.tile(np.asarray(self.rotation, dtype=float), (len(time), 1, 1))
        starts = [start for name, start, _ in self.parts if name != "rest"]
        for direction, start in zip(self.directions, starts, strict=False):
            for out, value in zip((position, velocity, acceleration), _bump(time - start, self.period)):
                out += self.distance * value[:, None] * np.asarray(direction)
        for axis, start in zip(self.axes, starts[len(self.directions) :], strict=True):
            angle, speed, change = (self.angle * value[:, None] for value in _bump(time - start, self.period))
            rotation = rotation @ rotations(angle * np.asarray(axis))
            w += speed * np.asarray(axis)
            wd += change * np.asarray(axis)
        return ToolSamples(time, rotation, position, velocity, acceleration, w, wd)

    def _out_and_back(self, t):
        half = 0.5 * self.period
        return minimum_jerk(t / half) - minimum_jerk(t / half - 1.0)


def tool_motion(robot: Robot, distance: float, angle: float, start=ELBOW_UP, frame: str | None = None, **options):
    """An EstimationMotion that starts where joint positions `start` (n,) put `frame` (default: the last link's)."""
    from bayesid.dynamics import frame_pose

    rotation, position = frame_pose(robot, jnp.asarray(start, dtype=float), frame or robot.link_names[-1])
    return EstimationMotion(
        distance,
        angle,
        rotation=tuple(map(tuple, np.asarray(rotation).tolist())),
        position=tuple(np.asarray(position).tolist()),
        **options,
    )


def joint_motion(robot: Robot, motion: EstimationMotion, start=ELBOW_UP, rate: float = 1000.0, frame=None) -> JointMotion:
    """The joint motion that performs it, on the branch nearest to `start` and inside the robot's joint limits.

    Raises DesignError where the motion is out of reach, close to a singularity or beyond a position or velocity limit.
    """
    joints = follow(robot, motion, start, rate, frame)
    for what, values, low, high in (
        ("position", joints.q, robot.limit("lower"), robot.limit("upper")),
        ("velocity", joints.qd, -robot.limit("velocity"), robot.limit("velocity")),
    ):
        outside = (values < low) | (values > high)
        if outside.any():
            row, joint = (int(k) for k in np.argwhere(outside)[0])
            raise DesignError(
                f"the motion exceeds the {what} limit of joint '{robot.joint_names[joint]}' at t = {joints.time[row]:.4g} s: "
                "choose a smaller range or another start"
            )
    return joints


def _bump(t, period):
    """The quintic out and back, its first and second derivative in time, zero outside [0, period]."""
    s = np.clip(t / (0.5 * period), 0.0, 2.0)
    back = s > 1.0
    u = np.where(back, 2.0 - s, s)
    scale = 2.0 / period
    return (
        u**3 * (10.0 + u * (-15.0 + 6.0 * u)),
        np.where(back, -1.0, 1.0) * 30.0 * (u * (1.0 - u)) ** 2 * scale,
        60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) * scale**2,
    )


def _about(axis, angle):
    x, y, z = axis
    hat = jnp.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return jnp.eye(3) + jnp.sin(angle) * hat + (1.0 - jnp.cos(angle)) * hat @ hat
