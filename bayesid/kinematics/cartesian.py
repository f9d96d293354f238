"""Motions in Cartesian space, and the joint motions that perform them.

A path is a frozen object with `duration` [s] and `pose(t) -> (rotation (3, 3), position (3,))`, written in JAX and
twice differentiable in t; any object with these two will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.errors import DesignError
from bayesid.kinematics.chain import chain_bias, chain_jacobian
from bayesid.kinematics.motion import JointMotion
from bayesid.kinematics.numeric import damped_least_squares, rotation_vector
from bayesid.kinematics.ur import BRANCHES, SINGULARITIES, nearest_turn, require_reachable, ur_inverse_kinematics
from bayesid.robots import Robot

TOOL_DOWN = ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0))
"""Tool axis pointing down, x ahead."""


class Path(Protocol):
    """What a Cartesian path offers; times in s, lengths in m."""

    duration: float

    def pose(self, t): ...


@dataclass(frozen=True)
class CircleWithCosine:
    """A circle in x, y with a cosine in z, at constant orientation.

    x = cx + r cos(2 pi t / T), y = cy + r sin(2 pi t / T), z = cz + h cos(2 pi k t / T): `centre` (3,), `radius` r,
    `height` h [m], `waves` k per turn, `period` T and `duration` [s].
    """

    centre: tuple[float, float, float]
    radius: float
    height: float
    period: float
    duration: float
    waves: int = 1
    rotation: tuple[tuple[float, float, float], ...] = TOOL_DOWN

    def __post_init__(self):
        _finite("CircleWithCosine", self.centre, self.radius, self.height, self.period, self.duration, self.rotation)
        if self.period <= 0 or self.duration <= 0:
            raise DesignError("a circle needs a positive period and duration")

    def pose(self, t):
        phase = 2 * np.pi / self.period * t
        offset = jnp.stack(
            [self.radius * jnp.cos(phase), self.radius * jnp.sin(phase), self.height * jnp.cos(self.waves * phase)]
        )
        return jnp.asarray(self.rotation), jnp.asarray(self.centre) + offset


@dataclass(frozen=True)
class StraightSegments:
    """Straight segments through waypoints, each from rest to rest with the quintic 10 s^3 - 15 s^4 + 6 s^5.

    Among all rest-to-rest timings that quintic has the least integral of squared jerk (Flash, Hogan 1985). `waypoints`
    (K, 3) [m] are passed at `times` (K,) [s], the first at 0; `rotations` (K, 3, 3), constant by default, are joined by
    turns about a fixed axis in step with the quintic.
    """

    waypoints: tuple[tuple[float, float, float], ...]
    times: tuple[float, ...]
    rotations: tuple[tuple[tuple[float, float, float], ...], ...] = (TOOL_DOWN,)

    def __post_init__(self):
        _finite("StraightSegments", self.waypoints, self.times, self.rotations)
        if len(self.waypoints) != len(self.times) or len(self.times) < 2:
            raise DesignError(
                f"straight segments need one time per waypoint and at least two, got {len(self.waypoints)} "
                f"waypoints and {len(self.times)} times"
            )
        if self.times[0] != 0 or (np.diff(self.times) <= 0).any():
            raise DesignError("the times of the waypoints must start at 0 and increase")
        if len(self.rotations) not in (1, len(self.times)):
            raise DesignError("give one rotation, or one per waypoint")

    @property
    def duration(self) -> float:
        return float(self.times[-1])

    def pose(self, t):
        times, points = jnp.asarray(self.times), jnp.asarray(self.waypoints)
        k = jnp.clip(jnp.searchsorted(times, jax.lax.stop_gradient(t), side="right") - 1, 0, len(self.times) - 2)
        s = minimum_jerk((t - times[k]) / (times[k + 1] - times[k]))
        position = points[k] + s * (points[k + 1] - points[k])
        rotations = jnp.asarray(self.rotations)
        if len(self.rotations) == 1:
            return rotations[0], position
        turn = rotation_vector(rotations[k + 1] @ rotations[k].T)
        return _turn(s * turn) @ rotations[k], position


def minimum_jerk(s):
    """The quintic from 0 to 1 with zero first and second derivatives at both ends, held outside [0, 1]."""
    s = jnp.clip(s, 0.0, 1.0)
    return s**3 * (10.0 + s * (-15.0 + 6.0 * s))


def follow(
    robot: Robot, path: Path, start, rate: float = 1000.0, frame: str | None = None, min_margin: float = 1e-4
) -> JointMotion:
    """The joint motion of a UR-like arm along a Cartesian path, on the branch nearest to `start` (n,), exact to q''.

    The path is sampled at `rate` [Hz], both ends included. Velocity and acceleration solve J qd = v and
    J qdd = a - Jdot qd with the path's exact derivatives. Positions are unwrapped: no jumps of a full turn.
    Raises DesignError when a pose is out of reach, or when the branch comes closer to a singularity than `min_margin`
    (square of the vanishing sine, see UrSolutions).
    """
    start = _start(robot, start)
    time = _times(path, rate)
    rotation, position, twist, rate_ = _sampled(path, time)
    first = ur_inverse_kinematics(robot, rotation[:1], position[:1], frame)
    require_reachable(robot, first)
    branch = int(np.nanargmin(np.linalg.norm(np.asarray(nearest_turn(first.q[0], start)) - start, axis=1)))
    solutions = ur_inverse_kinematics(robot, rotation, position, frame)
    q, margins = np.asarray(solutions.q[:, branch]), np.asarray(solutions.margins[:, branch])
    _refuse_singular(robot, time, q, margins, min_margin, branch)
    q = np.unwrap(q, axis=0)
    q = q + 2 * np.pi * np.round((start - q[0]) / (2 * np.pi))
    qd, qdd, _ = _rates(robot, robot.frame(frame or robot.link_names[-1]), q, twist, rate_)
    return JointMotion(time, q, qd, qdd)


def follow_numerically(
    robot: Robot, path: Path, start, rate: float = 1000.0, frame: str | None = None, min_singular_value: float = 1e-3
) -> JointMotion:
    """As `follow`, for any robot: each sample is solved from the one before, starting near `start`.

    Raises DesignError with the time of the first pose that it cannot reach, as is the rule for fewer than six joints.
    Velocities and accelerations are those of the least-norm solution.
    """
    frame = frame or robot.link_names[-1]
    start = _start(robot, start)
    time = _times(path, rate)
    rotation, position, twist, rate_ = _sampled(path, time)

    def body(q, target):
        solution = damped_least_squares(robot, *target, q, frame)
        return solution.q, (solution.q, solution.converged, jnp.linalg.norm(solution.error))

    _, solved = jax.lax.scan(body, jnp.asarray(start), (jnp.asarray(rotation), jnp.asarray(position)))
    q, converged, error = (np.asarray(x) for x in solved)
    if not converged.all():
        k = int(np.argmin(converged))
        raise DesignError(
            f"robot '{robot.name}' cannot follow the path at t = {time[k]:.4g} s: the nearest pose found misses it "
            f"by {error[k]:.3g} (m, rad); move the path into the workspace"
        )
    qd, qdd, smallest = _rates(robot, robot.frame(frame), q, twist, rate_)
    if smallest.min() < min_singular_value:
        k = int(np.argmin(smallest))
        raise DesignError(
            f"the path leads robot '{robot.name}' through a singularity near t = {time[k]:.4g} s (smallest singular "
            f"value {smallest[k]:.3g}); move the path"
        )
    return JointMotion(time, q, qd, qdd)


def _sampled(path, time):
    """Rotations, positions, twists and their rates (N, 6) along a path."""

    def twist(t):
        (rotation, _), (rotation_rate, velocity) = jax.jvp(path.pose, (t,), (1.0,))
        spin = rotation_rate @ rotation.T
        return jnp.concatenate([velocity, jnp.stack([spin[2, 1], spin[0, 2], spin[1, 0]])])

    @jax.jit
    @jax.vmap
    def sample(t):
        return (*path.pose(t), *jax.jvp(twist, (t,), (1.0,)))

    return (np.asarray(x) for x in sample(jnp.asarray(time)))


def _rates(robot, frame, q, twist, twist_rate):
    """Joint velocities, accelerations (N, n) and the smallest singular value (N,) of the Jacobian along a motion."""
    jacobian = chain_jacobian(robot, q, frame)
    inverse = np.linalg.pinv(jacobian)
    qd = np.einsum("tja,ta->tj", inverse, twist)
    qdd = np.einsum("tja,ta->tj", inverse, twist_rate - chain_bias(robot, q, qd, frame))
    return qd, qdd, np.linalg.svd(jacobian, compute_uv=False)[:, -1]


def _refuse_singular(robot, time, q, margins, least, branch):
    lost = ~np.isfinite(q).all(1)
    close = lost | (margins < least).any(1)
    if not close.any():
        return
    k = int(np.argmax(close))
    if lost[k]:
        text = "leaves the workspace"
    else:
        worst = int(np.argmin(margins[k]))
        text = f"comes too close to the {SINGULARITIES[worst]} singularity (margin {margins[k, worst]:.2g}, {least:.2g} wanted)"
    raise DesignError(
        f"the path {text} near t = {time[k]:.4g} s on branch {BRANCHES[branch]} of robot '{robot.name}': "
        "move the path, or start on another branch"
    )


def _times(path, rate):
    if not (np.isfinite(rate) and rate > 0):
        raise DesignError(f"the sampling rate must be a positive number of Hz, got {rate}")
    return np.arange(round(path.duration * rate) + 1) / rate


def _start(robot, start):
    start = np.asarray(start, dtype=float)
    if start.shape != (robot.dof,) or not np.isfinite(start).all():
        raise DesignError(f"the start must be {robot.dof} finite joint positions, got {start}")
    return start


def _finite(what, *values):
    for value in values:
        if not np.isfinite(np.asarray(value, dtype=float)).all():
            raise DesignError(f"{what}: a number is not finite")


def _turn(vector):
    """Rotation matrix of a rotation vector, smooth at zero."""
    square = vector @ vector
    small = square < 1e-16
    angle = jnp.sqrt(jnp.where(small, 1.0, square))
    a = jnp.where(small, 1.0 - square / 6.0, jnp.sin(angle) / angle)
    b = jnp.where(small, 0.5 - square / 24.0, (1.0 - jnp.cos(angle)) / angle**2)
    x, y, z = vector
    zero = jnp.zeros_like(x)
    hat = jnp.stack([jnp.stack([zero, -z, y]), jnp.stack([z, zero, -x]), jnp.stack([-y, x, zero])])
    return jnp.eye(3) + a * hat + b * hat @ hat
