"""Kinematics and mass matrix of a tree by plain matrix products, for the tests of what robot files are read into."""

from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture(scope="session")
def kinematics():
    """The functions of this file."""
    return SimpleNamespace(link_poses=link_poses, frame_pose=frame_pose, mass_matrix=mass_matrix)


def turn(axis, angle):
    """(3, 3) rotation by `angle` about the unit vector `axis` (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def homogeneous(rotation, offset):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(rotation, (3, 3)), offset
    return T


def link_poses(robot, q):
    """(n, 4, 4) pose of each link in the base."""
    poses = []
    for i, joint in enumerate(robot.joints):
        T = homogeneous(joint.rotation, joint.xyz)
        axis = np.array(joint.axis)
        moves = joint.kind == "prismatic"
        T = T @ (homogeneous(np.eye(3), axis * q[i]) if moves else homogeneous(turn(axis, q[i]), np.zeros(3)))
        poses.append(T if joint.parent < 0 else poses[joint.parent] @ T)
    return np.array(poses)


def frame_pose(robot, q, name):
    """(4, 4) pose of a frame in the base."""
    frame = robot.frame(name)
    T = homogeneous(frame.rotation, frame.xyz)
    return T if frame.parent < 0 else link_poses(robot, q)[frame.parent] @ T


def mass_matrix(robot, q):
    """(n, n) mass matrix by summing each link's kinetic energy about its own origin, rotor inertias included."""
    poses = link_poses(robot, q)
    M = np.diag(robot.rotor_inertias.copy())
    for i in range(robot.dof):
        R, p = poses[i][:3, :3], poses[i][:3, 3]
        linear, angular = np.zeros((3, robot.dof)), np.zeros((3, robot.dof))
        for j in np.flatnonzero(robot.ancestors[i]):
            axis = poses[j][:3, :3] @ robot.axes[j]
            if robot.revolute[j]:
                linear[:, j], angular[:, j] = np.cross(axis, p - poses[j][:3, 3]), axis
            else:
                linear[:, j] = axis
        m, x, y, z, xx, xy, xz, yy, yz, zz = robot.inertials[i]
        inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        first = R @ np.array([x, y, z])
        skew = np.array([[0.0, -first[2], first[1]], [first[2], 0.0, -first[0]], [-first[1], first[0], 0.0]])
        coupling = linear.T @ skew @ angular
        M += m * linear.T @ linear + angular.T @ inertia @ angular - coupling - coupling.T
    return M
