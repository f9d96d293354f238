"""Where the links are and how they move. World axes; spatial quantities are taken at the world's origin.

Every function takes one state (n,) or, with trailing batch axes, (n, *batch). Lengths in m, angles in rad.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics.spatial import cross, matmul, motion_cross, over_tree, rotate


class Pose(NamedTuple):
    """Pose of all links and motion subspace of all joints.

    rotation (n, 3, 3, *batch), origin (n, 3, *batch), angular and linear (n, 3, *batch): spatial joint axes at the
    world's origin.
    """

    rotation: jax.Array
    origin: jax.Array
    angular: jax.Array
    linear: jax.Array


class Motion(NamedTuple):
    """Spatial velocity (w, v) and acceleration (wd, vd, gravity removed) of all links at the world's origin, (n, 3, *batch)."""

    w: jax.Array
    v: jax.Array
    wd: jax.Array
    vd: jax.Array


def _column(values, batch_rank):
    """A constant array with as many trailing axes of length one as the batch has."""
    values = np.asarray(values)
    return jnp.asarray(values.reshape(values.shape + (1,) * batch_rank))


def pose(robot, q) -> Pose:
    """Pose of every link at q (n, *batch)."""
    rank = q.ndim - 1
    axes, rotations = robot.axes, robot.rotations
    turning = np.array([_hat(axis) for axis in axes]) * robot.revolute[:, None, None]
    sin, cos = jnp.sin(q)[:, None, None], jnp.cos(q)[:, None, None]
    local = (
        _column(rotations, rank)
        + sin * _column(rotations @ turning, rank)
        + (1.0 - cos) * _column(rotations @ turning @ turning, rank)
    )
    slide = np.einsum("nij,nj->ni", rotations, axes) * ~robot.revolute[:, None]
    shift = _column(robot.translations, rank) + _column(slide, rank) * q[:, None]
    rotation, origin = [], []
    for i, parent in enumerate(robot.parents):
        if parent < 0:
            rotation.append(local[i])
            origin.append(shift[i])
        else:
            rotation.append(matmul(rotation[parent], local[i]))
            origin.append(origin[parent] + rotate(rotation[parent][None], shift[i][None])[0])
    rotation, origin = jnp.stack(rotation), jnp.stack(origin)
    axis = rotate(rotation, jnp.broadcast_to(_column(axes, rank), origin.shape))
    revolute = _column(robot.revolute[:, None], rank)
    angular = jnp.where(revolute, axis, 0.0)
    linear = jnp.where(revolute, cross(origin, axis), axis)
    return Pose(rotation, origin, angular, linear)


def motion(robot, at: Pose, qd, qdd, gravity=None) -> Motion:
    """Velocities and accelerations of every link; `gravity` (3,) [m/s^2] defaults to the robot's own."""
    w_joint, v_joint = at.angular * qd[:, None], at.linear * qd[:, None]
    w, v = over_tree(robot.ancestors, w_joint), over_tree(robot.ancestors, v_joint)
    dw, dv = motion_cross(w, v, w_joint, v_joint)
    wd = over_tree(robot.ancestors, dw + at.angular * qdd[:, None])
    vd = over_tree(robot.ancestors, dv + at.linear * qdd[:, None])
    field = jnp.asarray(robot.gravity if gravity is None else gravity)
    return Motion(w, v, wd, vd - field.reshape(1, 3, *(1,) * (qd.ndim - 1)))


def link_poses(robot, q):
    """Rotations (n, 3, 3, *batch) and origins (n, 3, *batch) [m] of all link frames in the base."""
    at = pose(robot, q)
    return at.rotation, at.origin


def frame_pose(robot, q, frame: str):
    """Rotation (3, 3, *batch) and origin (3, *batch) [m] of a named frame in the base. Raises RobotError for an unknown name."""
    fixed = robot.frame(frame)
    rank = q.ndim - 1
    local = _column(np.reshape(fixed.rotation, (3, 3)), rank)
    shift = _column(np.array(fixed.xyz), rank)
    if fixed.parent < 0:
        batch = q.shape[1:]
        return jnp.broadcast_to(local, (3, 3, *batch)), jnp.broadcast_to(shift, (3, *batch))
    at = pose(robot, q)
    rotation, origin = at.rotation[fixed.parent], at.origin[fixed.parent]
    return matmul(rotation, local), origin + rotate(rotation[None], shift[None])[0]


def frame_jacobian(robot, q, frame: str):
    """Geometric Jacobian (6, n, *batch) of a named frame: linear rows first, along world axes, at the frame's origin."""
    fixed = robot.frame(frame)
    at = pose(robot, q)
    if fixed.parent < 0:
        return jnp.zeros((6, *q.shape))
    _, point = frame_pose(robot, q, frame)
    moves = _column(robot.ancestors[fixed.parent][:, None], q.ndim - 1)
    angular = jnp.where(moves, at.angular, 0.0)
    linear = jnp.where(moves, at.linear + cross(at.angular, jnp.broadcast_to(point, at.linear.shape)), 0.0)
    return jnp.swapaxes(jnp.concatenate([linear, angular], axis=1), 0, 1)


def _hat(v):
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
