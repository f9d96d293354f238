"""The built-in robots are the published ones."""

import numpy as np
import pytest

from bayesid.errors import RobotError
from bayesid.robots import builtin_names, load_robot

NAMES = ("ur3", "ur3e", "ur5", "ur5e", "ur10", "ur10e", "ur16e", "ur20", "ur30", "panda", "two_link", "6rp")
NAMES += ("ur16e_extended",)

# Universal Robots, "DH parameters for calculations of kinematics and dynamics": d1, a2, a3, d4, d5, d6 [m].
UR_DH = {
    "ur3": (0.1519, -0.24365, -0.21325, 0.11235, 0.08535, 0.0819),
    "ur3e": (0.15185, -0.24355, -0.2132, 0.13105, 0.08535, 0.0921),
    "ur5": (0.089159, -0.425, -0.39225, 0.10915, 0.09465, 0.0823),
    "ur5e": (0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996),
    "ur10": (0.1273, -0.612, -0.5723, 0.163941, 0.1157, 0.0922),
    "ur10e": (0.1807, -0.6127, -0.57155, 0.17415, 0.11985, 0.11655),
    "ur16e": (0.1807, -0.4784, -0.36, 0.17415, 0.11985, 0.11655),
    "ur16e_extended": (0.1807, -0.4784, -0.36, 0.17415, 0.11985, 0.11655),
    "ur20": (0.2363, -0.8620, -0.7287, 0.2010, 0.1593, 0.1543),
    "ur30": (0.2363, -0.6370, -0.5037, 0.2010, 0.1593, 0.1543),
}


def standard_dh(theta, d, a, alpha):
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array([[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0, sa, ca, d], [0, 0, 0, 1]])


def test_every_promised_robot_is_built_in():
    assert builtin_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_builtin_robots_have_a_flange_a_tool_a_source_and_exact_right_angles(name):
    robot = load_robot(name)
    assert robot.name == name
    assert robot.frame("flange").parent >= 0
    assert robot.frame("tool0").parent == robot.dof - 1
    assert any(note.startswith("source: ") for note in robot.notes)
    assert set(np.abs(robot.rotations).ravel()) <= {0.0, 1.0}
    assert set(np.abs(robot.axes).ravel()) <= {0.0, 1.0}
    assert np.abs(robot.translations[robot.translations != 0]).min(initial=1.0) > 1e-6
    assert hash(robot) == hash(load_robot(name))


@pytest.mark.parametrize("name", UR_DH)
def test_tool_of_each_ur_is_where_its_published_dh_table_puts_it(name, kinematics):
    d1, a2, a3, d4, d5, d6 = UR_DH[name]
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, 6)
    rows = zip(q, (d1, 0, 0, d4, d5, d6), (0, a2, a3, 0, 0, 0), np.array((1, 0, 0, 1, -1, 0)) * np.pi / 2)
    expected = np.linalg.multi_dot([standard_dh(*row) for row in rows])
    np.testing.assert_allclose(kinematics.frame_pose(load_robot(name), q, "tool0"), expected, atol=1e-14)


def test_panda_flange_is_where_its_published_dh_table_puts_it(kinematics):
    # Franka Control Interface documentation, modified (Craig) DH: a, d, alpha per joint; flange d = 0.107 m.
    a = (0, 0, 0, 0.0825, -0.0825, 0, 0.088)
    d = (0.333, 0, 0.316, 0, 0.384, 0, 0)
    alpha = np.array((0, -1, 1, 1, -1, 1, 1)) * np.pi / 2
    q = np.random.default_rng(2).uniform(-2, 2, 7)
    T = np.eye(4)
    for theta, ai, di, al in zip(q, a, d, alpha):
        ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(al), np.sin(al)
        T = T @ np.array([[ct, -st, 0, ai], [st * ca, ct * ca, -sa, -di * sa], [st * sa, ct * sa, ca, di * ca], [0, 0, 0, 1]])
    T[:3, 3] += 0.107 * T[:3, 2]
    np.testing.assert_allclose(kinematics.frame_pose(load_robot("panda"), q, "flange"), T, atol=1e-14)


def test_two_link_arm_is_the_published_one(kinematics):
    robot = load_robot("two_link")
    rng = np.random.default_rng(3)
    for q in rng.uniform(-np.pi, np.pi, (5, 2)):
        tip = kinematics.frame_pose(robot, q, "tool0")[:3, 3]
        expected = [0.45 * np.sin(q[0]) + 0.45 * np.sin(q.sum()), -0.45 * np.cos(q[0]) - 0.45 * np.cos(q.sum()), 0.0]
        np.testing.assert_allclose(tip, expected, atol=1e-14)
        # table 2 of the source: H11 = 2.3515719820 + 0.167616 cos q2, H12 = 0.1019395200 + 0.083808 cos q2, H22
        c = np.cos(q[1])
        H = [[2.3515719820 + 0.167616 * c, 0.1019395200 + 0.083808 * c], [0.1019395200 + 0.083808 * c, 0.1019395200]]
        np.testing.assert_allclose(kinematics.mass_matrix(robot, q), H, rtol=1e-9)
    assert robot.gravity == (0.0, -9.81, 0.0)


def test_extended_ur16e_is_the_vendors_to_the_digits_printed():
    extended, vendor = load_robot("ur16e_extended"), load_robot("ur16e")
    np.testing.assert_array_equal(extended.rotations, vendor.rotations)
    np.testing.assert_array_equal(extended.translations, vendor.translations)
    np.testing.assert_allclose(extended.inertials, vendor.inertials, atol=6e-5)
    np.testing.assert_array_equal(extended.rotor_inertias, [0.00, 3.74, 0.00, 0.07, 0.23, 0.44])
    np.testing.assert_array_equal(extended.drive_gains, [10.00, 10.70, 8.46, 9.0, 9.48, 10.12])
    np.testing.assert_array_equal(extended.friction("breakaway"), [12.80, 13.5, 5.3, 2.3, 2.85, 2.45])
    assert np.isnan(vendor.drive_gains).all()


def test_6rp_carries_its_stage_across_the_flange(kinematics):
    robot, ur5 = load_robot("6rp"), load_robot("ur5")
    q = np.random.default_rng(4).uniform(-2, 2, 6)
    wrist = kinematics.frame_pose(ur5, q, "tool0")
    for stage in (0.0, 0.05):
        T = kinematics.frame_pose(robot, [*q, stage], "tool0")
        np.testing.assert_allclose(T[:3, 3], wrist[:3, 3] + wrist[:3, :3] @ [stage, 0.0, 0.06], atol=1e-14)
    assert (robot.joints[6].lower, robot.joints[6].upper) == (0.0, 0.05)


def test_limits_are_the_published_ones():
    panda = load_robot("panda")
    np.testing.assert_array_equal(panda.limit("acceleration"), [15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
    np.testing.assert_array_equal(panda.limit("lower"), [-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973])
    ur10e = load_robot("ur10e")
    np.testing.assert_allclose(ur10e.limit("velocity"), np.pi * np.array([2 / 3, 2 / 3, 1, 1, 1, 1]))
    np.testing.assert_array_equal(ur10e.limit("torque"), [330, 330, 150, 54, 54, 54])
    assert np.isinf(ur10e.limit("acceleration")).all()
    assert load_robot("ur3e").joints[5].kind == "continuous"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "two_link"])
def test_capsules_follow_the_arm_and_reach_the_flange(name, kinematics):
    robot = load_robot(name)
    assert {capsule.parent for capsule in robot.capsules} == set(range(-1, robot.dof))
    q = np.random.default_rng(5).uniform(-2, 2, robot.dof)
    flange = kinematics.frame_pose(robot, q, "flange")[:3, 3]
    poses = kinematics.link_poses(robot, q)
    gaps = []
    for capsule in robot.capsules:
        T = poses[capsule.parent] if capsule.parent >= 0 else np.eye(4)
        assert 0.0 < capsule.radius < 0.2
        ends = np.array([capsule.start, capsule.end]) @ T[:3, :3].T + T[:3, 3]
        gaps += [*(np.linalg.norm(ends - flange, axis=1) - capsule.radius)]
    assert min(gaps) < 0.01


def test_unknown_robot_is_refused_with_the_names_that_exist():
    with pytest.raises(RobotError, match=r"'ur11' is neither a built-in robot nor a file: built in are ur3, ur3e"):
        load_robot("ur11")
    with pytest.raises(RobotError, match=r"nowhere/robot\.urdf: there is no such file"):
        load_robot("nowhere/robot.urdf")
    with pytest.raises(RobotError, match="cannot tell what it is"):
        load_robot(__file__)
