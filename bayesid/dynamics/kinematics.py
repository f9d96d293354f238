"""Where the links are and how they move. World axes; spatial quantities are taken at the world's origin.

Every function takes one state (n,) or, with trailing batch axes, (n, *batch). Lengths in m, angles in rad.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics.spatial import column, cross, motion_cross, over_tree, rotate, stage


class Pose(NamedTuple):
    """Pose of all links and motion subspace of all joints.

    transform (n, 3, 4, *batch): origin, then the three axes of each link frame in the world; angular and linear
    (n, 3, *batch): spatial joint axes at the world's origin.
    """

    transform: jax.Array
    angular: jax.Array
    linear: jax.Array

    @property
    def origin(self):
        """Origins of the link frames (n, 3, *batch) [m]."""
        return self.transform[:, :, 0]

    @property
    def rotation(self):
        """Rotations of the link frames (n, 3, 3, *batch)."""
        return self.transform[:, :, 1:]


class Motion(NamedTuple):
    """Spatial velocity (w, v) and acceleration (wd, vd, gravity removed) of all links at the world's origin.

    All (n, 3, *batch).
    """

    w: jax.Array
    v: jax.Array
    wd: jax.Array
    vd: jax.Array


def pose(robot, q) -> Pose:
    """Pose of every link at q (n, *batch)."""
    rank = q.ndim - 1
    fixed, sine, cosine, slide = (column(part, rank) for part in _joint_transforms(robot))
    local = _local_transforms(fixed, sine, cosine, slide, q, *_sine_and_cosine(q))
    carried = []
    for i, parent in enumerate(robot.parents):
        carried.append(local[i] if parent < 0 else _compose(carried[parent], local[i]))
    transform = _stack(*carried)
    angular, linear = _joint_axes(transform, column(robot.axes, rank), column(robot.revolute[:, None], rank))
    return Pose(transform, angular, linear)


def motion(robot, at: Pose, qd, qdd, gravity=None) -> Motion:
    """Velocities and accelerations of every link; `gravity` (3,) [m/s^2] defaults to the robot's own."""
    w_joint, v_joint = _joint_velocities(at.angular, at.linear, qd)
    w, v = over_tree(robot.ancestors, w_joint), over_tree(robot.ancestors, v_joint)
    wd_joint, vd_joint = _joint_accelerations(at.angular, at.linear, w, v, w_joint, v_joint, qdd)
    field = jnp.asarray(robot.gravity if gravity is None else gravity)
    wd, vd = over_tree(robot.ancestors, wd_joint), over_tree(robot.ancestors, vd_joint)
    return Motion(w, v, wd, vd - field.reshape(1, 3, *(1,) * (qd.ndim - 1)))


def _joint_transforms(robot):
    """Constant, sine, cosine and linear parts (n, 3, 4) of every link's pose in its parent, by Rodrigues' formula."""
    turning = robot.rotations @ (np.array([_hat(axis) for axis in robot.axes]) * robot.revolute[:, None, None])
    twice = turning @ np.array([_hat(axis) for axis in robot.axes])
    along = np.einsum("nij,nj->ni", robot.rotations, robot.axes) * ~robot.revolute[:, None]
    parts = np.zeros((4, robot.dof, 3, 4))
    parts[0, :, :, 0], parts[0, :, :, 1:] = robot.translations, robot.rotations + twice
    parts[1, :, :, 1:], parts[2, :, :, 1:] = turning, -twice
    parts[3, :, :, 0] = along
    return parts


@stage
def _sine_and_cosine(q):
    return jnp.sin(q), jnp.cos(q)


@stage
def _local_transforms(fixed, sine, cosine, slide, q, sin, cos):
    return fixed + sine * sin[:, None, None] + cosine * cos[:, None, None] + slide * q[:, None, None]


@stage
def _compose(parent, local):
    at_origin = column(np.array([[1.0, 0.0, 0.0, 0.0]]), local.ndim - 2)
    turned = parent[:, 1, None] * local[0] + parent[:, 2, None] * local[1] + parent[:, 3, None] * local[2]
    return turned + at_origin * parent[:, :1]


@stage
def _stack(*transforms):
    return jnp.stack(transforms)


@stage
def _joint_axes(transform, axes, revolute):
    axis = rotate(transform[:, :, 1:], axes)
    return revolute * axis, revolute * cross(transform[:, :, 0], axis) + (1.0 - revolute) * axis


@stage
def _joint_velocities(angular, linear, qd):
    return angular * qd[:, None], linear * qd[:, None]


@stage
def _joint_accelerations(angular, linear, w, v, w_joint, v_joint, qdd):
    wd, vd = motion_cross(w, v, w_joint, v_joint)
    return wd + angular * qdd[:, None], vd + linear * qdd[:, None]


def link_poses(robot, q):
    """Rotations (n, 3, 3, *batch) and origins (n, 3, *batch) [m] of all link frames in the base."""
    at = pose(robot, q)
    return at.rotation, at.origin


def frame_pose(robot, q, frame: str):
    """Rotation (3, 3, *batch) and origin (3, *batch) [m] of a named frame in the base.

    Raises RobotError for an unknown name.
    """
    fixed = robot.frame(frame)
    rank = q.ndim - 1
    local = column(np.reshape(fixed.rotation, (3, 3)), rank)
    shift = column(np.array(fixed.xyz), rank)
    if fixed.parent < 0:
        batch = q.shape[1:]
        return jnp.broadcast_to(local, (3, 3, *batch)), jnp.broadcast_to(shift, (3, *batch))
    carrier = pose(robot, q).transform[fixed.parent]
    placed = _compose(carrier, jnp.concatenate([shift[:, None], local], axis=1) + jnp.zeros(q.shape[1:]))
    return placed[:, 1:], placed[:, 0]


def frame_jacobian(robot, q, frame: str):
    """Geometric Jacobian (6, n, *batch) of a named frame: linear rows first, world axes, at the frame's origin."""
    fixed = robot.frame(frame)
    at = pose(robot, q)
    if fixed.parent < 0:
        return jnp.zeros((6, *q.shape))
    _, point = frame_pose(robot, q, frame)
    moves = robot.ancestors[fixed.parent].reshape(-1, *(1,) * q.ndim)
    angular = jnp.where(moves, at.angular, 0.0)
    linear = jnp.where(moves, at.linear + cross(at.angular, jnp.broadcast_to(point, at.linear.shape)), 0.0)
    return jnp.swapaxes(jnp.concatenate([linear, angular], axis=1), 0, 1)


def _hat(v):
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
