"""Numerical inverse kinematics of any robot: Levenberg-Marquardt on the pose error, differentiable at its solution."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import frame_jacobian, frame_pose
from bayesid.errors import DesignError
from bayesid.robots import Robot


class IkSolution(NamedTuple):
    """`q` (n,), the pose error (6,) [m; rad] that is left, its norm, and whether it fell below the tolerance."""

    q: jax.Array
    error: jax.Array
    converged: jax.Array
    iterations: jax.Array


def damped_least_squares(
    robot: Robot,
    rotation,
    position,
    start,
    frame: str | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 100,
) -> IkSolution:
    """A configuration near `start` (n,) that puts `frame` (default: the last link) at a pose; batch with `jax.vmap`.

    Damping follows Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method" (IEEE T-RO
    2011): proportional to the squared error, so that it vanishes at a solution and stays positive where there is none.
    For an unreachable pose `converged` is False and `error` says by how much the best configuration found misses it.
    Where the Jacobian has full rank, the solution is differentiable with respect to the pose in forward and reverse
    mode (implicit function theorem, as one Newton step of zero length).
    """
    frame = frame or robot.link_names[-1]
    robot.frame(frame)
    start = jnp.asarray(start, float)
    if start.shape != (robot.dof,):
        raise DesignError(f"the start of an inverse kinematics of '{robot.name}' needs {robot.dof} numbers, got {start.shape}")
    return _solve(robot, frame, max_iterations, jnp.asarray(rotation, float), jnp.asarray(position, float), start, tolerance)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _solve(robot, frame, max_iterations, rotation, position, start, tolerance):
    fixed_rotation, fixed_position = jax.lax.stop_gradient((rotation, position))

    def evaluate(q):
        reached_rotation, reached_position = frame_pose(robot, q, frame)
        error = pose_error(reached_rotation, reached_position, fixed_rotation, fixed_position)
        return _Point(q, reached_rotation, reached_position, frame_jacobian(robot, q, frame), error)

    def unfinished(state):
        _, cost, _, k = state
        return (k <= max_iterations) & (cost > tolerance**2)

    def step(state):
        point, cost, bias, k = state
        normal = point.jacobian.T @ point.jacobian + (0.5 * cost + bias) * jnp.eye(robot.dof)
        trial = evaluate(point.q + jnp.linalg.solve(normal, point.jacobian.T @ point.error))
        trial_cost = trial.error @ trial.error
        better = trial_cost < cost
        point = jax.tree.map(lambda new, old: jnp.where(better, new, old), trial, point)
        bias = jnp.where(better, jnp.maximum(bias * 0.1, 1e-12), bias * 10.0)
        return point, jnp.where(better, trial_cost, cost), bias, k + 1

    # The first pass through the loop evaluates the start: without a Jacobian, its step is zero.
    blank = _Point(jax.lax.stop_gradient(start), jnp.eye(3), jnp.zeros(3), jnp.zeros((6, robot.dof)), jnp.zeros(6))
    point, cost, _, iterations = jax.lax.while_loop(unfinished, step, (blank, jnp.asarray(1e100), jnp.asarray(1e-4), 0))
    moved = pose_error(point.rotation, point.position, rotation, position) - point.error
    q = point.q + jnp.linalg.pinv(point.jacobian) @ moved
    return IkSolution(q, point.error, cost <= tolerance**2, iterations - 1)


class _Point(NamedTuple):
    q: jax.Array
    rotation: jax.Array
    position: jax.Array
    jacobian: jax.Array
    error: jax.Array


def pose_error(rotation, position, target_rotation, target_position):
    """Error (6,) of a pose: target minus actual position [m], then the rotation vector [rad] from actual to target."""
    return jnp.concatenate([target_position - position, rotation_vector(target_rotation @ rotation.T)])


def rotation_vector(rotation):
    """Rotation vector (3,) of a rotation matrix, angle below pi; smooth at the identity."""
    axis = 0.5 * jnp.stack([rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]])
    sine2 = axis @ axis
    cosine = 0.5 * (jnp.trace(rotation) - 1.0)
    small = sine2 < 1e-12
    sine = jnp.sqrt(jnp.where(small, 1.0, sine2))
    regular = jnp.where(small, 1.0 + sine2 / 6.0, jnp.arctan2(sine, cosine) / sine)
    # Half a turn: the antisymmetric part vanishes, the axis is the longest column of R + 1.
    columns = rotation + jnp.eye(3)
    longest = columns[:, jnp.argmax(jnp.diag(columns))]
    half_turn = np.pi * longest / jnp.sqrt(jnp.where(small & (cosine < 0), longest @ longest, 1.0))
    return jnp.where(small & (cosine < 0), half_turn, regular * axis)
