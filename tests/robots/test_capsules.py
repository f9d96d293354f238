"""The collision capsules let pass what the real robot did, and catch what it could not do."""

import numpy as np
import pytest

from bayesid.robots import builtin_names, load_robot


def gap(a, b):
    """Distance between two segments ((3,), (3,)), by sampling one and projecting on the other."""
    points = a[0] + np.linspace(0, 1, 25)[:, None] * (a[1] - a[0])
    along = b[1] - b[0]
    t = np.clip((points - b[0]) @ along / max(along @ along, 1e-12), 0, 1)
    return np.linalg.norm(points - b[0] - t[:, None] * along, axis=1).min()


def clearance(robot, q, kinematics):
    """Least distance between the surfaces of links that are not neighbours [m]."""
    poses = kinematics.link_poses(robot, q)
    above = lambda link: -2 if link < 0 else robot.parents[link]  # noqa: E731
    placed = []
    for capsule in robot.capsules:
        T = poses[capsule.parent] if capsule.parent >= 0 else np.eye(4)
        placed.append(np.array([capsule.start, capsule.end]) @ T[:3, :3].T + T[:3, 3])
    return min(
        gap(placed[i], placed[j]) - a.radius - b.radius
        for i, a in enumerate(robot.capsules)
        for j, b in enumerate(robot.capsules[:i])
        if a.parent != b.parent and above(a.parent) != b.parent and above(b.parent) != a.parent
    )


@pytest.mark.parametrize("run", ["identification_data/ur-20_02_10-30sec_12harm", "validation_data/ur-20_01_17-ptp_10_points"])
def test_no_pose_that_the_ur10e_took_counts_as_a_collision(run, ur10e_data, kinematics):
    rows = np.genfromtxt(ur10e_data / "dataset_ur10e" / f"{run}.csv", delimiter=",", usecols=range(1, 7))
    robot = load_robot("ur10e")
    assert min(clearance(robot, q, kinematics) for q in rows[::60]) > 0.01


@pytest.mark.parametrize("name", [name for name in builtin_names() if name not in ("two_link", "panda", "6rp")])
def test_a_folded_forearm_hits_the_shoulder_and_an_upright_arm_hits_nothing(name, kinematics):
    robot = load_robot(name)
    up, bent, folded = ([0, -np.pi / 2, elbow, -np.pi / 2, 0, 0] for elbow in (0.0, np.pi / 2, np.pi))
    assert clearance(robot, up, kinematics) > 0.01
    assert clearance(robot, bent, kinematics) > 0.01
    assert clearance(robot, folded, kinematics) < 0.0


def test_the_panda_is_free_where_it_is_usually_parked(kinematics):
    assert clearance(load_robot("panda"), [0, -0.785, 0, -2.356, 0, 1.571, 0.785], kinematics) > 0.01
