"""Poses and Jacobians along whole motions, in NumPy: one pass over many samples, nothing to compile."""

import numpy as np

from bayesid.robots import Frame, Robot


def zero_poses(robot: Robot):
    """Rotations (n, 3, 3) and origins (n, 3) [m] of the joint frames in the base at q = 0."""
    rotations, positions, _ = chain_poses(robot, np.zeros((1, robot.dof)))
    return rotations[0], positions[0]


def chain_poses(robot: Robot, q):
    """Rotations (N, n, 3, 3), origins (N, n, 3) [m] and joint axes (N, n, 3) of all links in the base at q (N, n)."""
    q = np.asarray(q, dtype=float)
    rotations, origins = np.empty((*q.shape, 3, 3)), np.empty((*q.shape, 3))
    eye = np.eye(3)
    for i, parent in enumerate(robot.parents):
        before = rotations[:, parent] if parent >= 0 else np.broadcast_to(eye, (len(q), 3, 3))
        origins[:, i] = before @ robot.translations[i] + (origins[:, parent] if parent >= 0 else 0.0)
        placed = before @ robot.rotations[i]
        axis = robot.axes[i]
        if robot.revolute[i]:
            hat = np.cross(axis, -eye)
            s, c = np.sin(q[:, i])[:, None, None], np.cos(q[:, i])[:, None, None]
            rotations[:, i] = placed @ (eye + s * hat + (1.0 - c) * (hat @ hat))
        else:
            rotations[:, i] = placed
            origins[:, i] += q[:, i, None] * (placed @ axis)
    return rotations, origins, np.einsum("tiab,ib->tia", rotations, robot.axes)


def chain_jacobian(robot: Robot, q, frame: Frame):
    """Geometric Jacobian (N, 6, n) of a frame at q (N, n), linear rows first, world axes, at the frame's origin."""
    rotations, origins, axes = chain_poses(robot, q)
    moves = robot.ancestors[frame.parent][:, None]
    point = origins[:, frame.parent] + rotations[:, frame.parent] @ np.asarray(frame.xyz)
    turning = np.where(robot.revolute[:, None] & moves, axes, 0.0)
    linear = np.where(robot.revolute[:, None], np.cross(axes, point[:, None] - origins), axes)
    return np.swapaxes(np.concatenate([np.where(moves, linear, 0.0), turning], axis=2), 1, 2)


def chain_bias(robot: Robot, q, qd, frame: Frame):
    """Acceleration (N, 6) of a frame [linear, angular] that velocities qd (N, n) cause alone: Jdot qd."""
    rotations, origins, axes = chain_poses(robot, q)
    zero = np.zeros((len(axes), 3))
    w, wd, v, a = ([None] * robot.dof for _ in range(4))
    for i, parent in enumerate(robot.parents):
        w0, wd0, v0, a0, o0 = (w[parent], wd[parent], v[parent], a[parent], origins[:, parent]) if parent >= 0 else (zero,) * 5
        arm, rate = origins[:, i] - o0, axes[:, i] * qd[:, i, None]
        v[i] = v0 + np.cross(w0, arm)
        a[i] = a0 + np.cross(wd0, arm) + np.cross(w0, np.cross(w0, arm))
        if robot.revolute[i]:
            w[i], wd[i] = w0 + rate, wd0 + np.cross(w0, rate)
        else:
            w[i], wd[i] = w0, wd0
            v[i], a[i] = v[i] + rate, a[i] + 2.0 * np.cross(w0, rate)
    k = frame.parent
    arm = rotations[:, k] @ np.asarray(frame.xyz)
    return np.concatenate([a[k] + np.cross(wd[k], arm) + np.cross(w[k], np.cross(w[k], arm)), wd[k]], axis=1)
