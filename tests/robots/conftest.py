"""Kinematics and mass matrix of a tree by plain matrix products, for the tests of what robot files are read into."""

from types import SimpleNamespace

import numpy as np
import pytest

from bayesid.robots import Frame, Joint, Link, Robot


@pytest.fixture(scope="session")
def kinematics():
    """The functions of this file."""
    return SimpleNamespace(link_poses=link_poses, frame_pose=frame_pose, mass_matrix=mass_matrix, potential=potential)


@pytest.fixture(scope="session")
def random_robot():
    """Function of a seed that grows a random tree."""
    return grow


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


def potential(robot, q):
    """Potential energy [J] of the links."""
    poses = link_poses(robot, q)
    heights = [row[0] * T[:3, 3] + T[:3, :3] @ row[1:4] for row, T in zip(robot.inertials, poses)]
    return -float(np.sum(heights, axis=0) @ robot.gravity)


def random_rotation(rng):
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.linalg.det(Q)


def random_inertial(rng, scale=1.0):
    """Standard parameters of a random cloud of point masses, as a tuple."""
    masses, places = scale * rng.uniform(0.1, 1.0, 6), rng.normal(size=(6, 3)) * 0.3 + rng.normal(size=3) * 0.2
    tensor = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, places))
    return tuple(float(x) for x in (masses.sum(), *(masses @ places), *tensor[np.triu_indices(3)]))


def grow(seed):
    """A random branching tree of 1 to 9 moving joints with odd names, axes, frames and sizes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    size = 10.0 ** rng.uniform(-2, 2)
    joints, links, frames = [], [], []
    for i in range(n):
        axis = rng.normal(size=3)
        lower, upper = sorted(rng.uniform(-3, 3, 2))
        kind = str(rng.choice(["revolute", "continuous", "prismatic"], p=[0.6, 0.15, 0.25]))
        joints.append(
            Joint(
                name=f"gelénk {i}<&>",
                kind=kind,
                parent=int(rng.integers(-1, i)) if rng.random() < 0.4 else i - 1,
                xyz=tuple(map(float, rng.normal(size=3) * 0.5)),
                rotation=tuple(map(float, random_rotation(rng).ravel())),
                axis=tuple(map(float, axis / np.linalg.norm(axis))),
                lower=-np.inf if kind == "continuous" else float(lower),
                upper=np.inf if kind == "continuous" else float(upper),
                velocity=float(rng.uniform(1, 5)),
                torque=float(rng.uniform(10, 100)),
                acceleration=float(rng.uniform(1, 50)) if rng.random() < 0.5 else np.inf,
                rotor_inertia=float(rng.uniform(0, 1)) * size if rng.random() < 0.5 else 0.0,
                drive_gain=float(rng.uniform(5, 15)) if rng.random() < 0.5 else float("nan"),
                friction=(("viscous", float(rng.uniform(1, 2))), ("coulomb", float(rng.uniform(1, 2)))),
            )
        )
        links.append(Link(f'部品 {i} "ß"', random_inertial(rng, size)))
        if rng.random() < 0.3:
            R = random_rotation(rng)
            frames.append(Frame(f"frame {i}", int(rng.integers(-1, i + 1)), (0.1, 0.2, 0.3), tuple(map(float, R.ravel()))))
    return Robot(f"tree {seed}", tuple(joints), tuple(links), tuple(frames))
