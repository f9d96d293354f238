"""Robots in TOML: Denavit-Hartenberg rows mean what the literature means by them, and mistakes are named."""

import numpy as np
import pytest

from bayesid.errors import RobotError
from bayesid.robots import load_robot, read_robot_toml
from bayesid.robots.robot_file import robot_from_table


def rz(t):
    return np.array([[np.cos(t), -np.sin(t), 0, 0], [np.sin(t), np.cos(t), 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def rx(t):
    return np.array([[1.0, 0, 0, 0], [0, np.cos(t), -np.sin(t), 0], [0, np.sin(t), np.cos(t), 0], [0, 0, 0, 1]])


def move(x, y, z):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def dh_robot(convention, seed, joints=5):
    """A random DH table with revolute and prismatic joints, and the same as arrays."""
    rng = np.random.default_rng(seed)
    rows, table = [], rng.uniform(-1, 1, (joints, 4))
    prismatic = rng.random(joints) < 0.3
    for i, (d, a, alpha, theta) in enumerate(table):
        row = {"name": f"j{i}", "link": f"l{i}", "d": d, "a": a, "alpha": alpha, "theta": theta}
        row |= {"mass": 1.0 + i, "com": [0.1, 0.2, 0.3 * i], "inertia": [0.3, 0.01, 0.02, 0.4, 0.03, 0.5]}
        rows.append(row | ({"kind": "prismatic"} if prismatic[i] else {}))
    frame = {"name": "tip", "link": f"l{joints - 1}", "xyz": [0.1, 0.2, 0.3]}
    robot = robot_from_table({"name": "dh", "dh": convention, "joint": rows, "frame": [frame]}, "table")
    return robot, table, prismatic


@pytest.mark.parametrize("seed", range(5))
def test_standard_dh_is_rz_tz_tx_rx(seed, kinematics):
    robot, table, prismatic = dh_robot("standard", seed)
    q = np.random.default_rng(seed).uniform(-1, 1, len(table))
    T = np.eye(4)
    for i, (d, a, alpha, theta) in enumerate(table):
        turn, slide = (0.0, q[i]) if prismatic[i] else (q[i], 0.0)
        T = T @ rz(theta + turn) @ move(0, 0, d + slide) @ move(a, 0, 0) @ rx(alpha)
        np.testing.assert_allclose(kinematics.frame_pose(robot, q, f"l{i}_dh"), T, atol=1e-14)
        # the centre of mass is written in the far frame
        pose = kinematics.link_poses(robot, q)[i]
        com = pose[:3, 3] + pose[:3, :3] @ robot.inertials[i, 1:4] / robot.inertials[i, 0]
        np.testing.assert_allclose(com, (T @ [0.1, 0.2, 0.3 * i, 1.0])[:3], atol=1e-14)
    np.testing.assert_allclose(kinematics.frame_pose(robot, q, "tip"), T @ move(0.1, 0.2, 0.3), atol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_modified_dh_is_rx_tx_rz_tz(seed, kinematics):
    robot, table, prismatic = dh_robot("modified", seed)
    q = np.random.default_rng(seed).uniform(-1, 1, len(table))
    T = np.eye(4)
    for i, (d, a, alpha, theta) in enumerate(table):
        turn, slide = (0.0, q[i]) if prismatic[i] else (q[i], 0.0)
        T = T @ rx(alpha) @ move(a, 0, 0) @ rz(theta + turn) @ move(0, 0, d + slide)
        np.testing.assert_allclose(kinematics.frame_pose(robot, q, f"l{i}"), T, atol=1e-14)
    np.testing.assert_allclose(kinematics.frame_pose(robot, q, "tip"), T @ move(0.1, 0.2, 0.3), atol=1e-14)


def test_inertia_may_be_written_along_turned_axes():
    row = {"name": "j", "link": "l", "mass": 2.0, "com": [0.0, 0.0, 0.5], "inertia": [1.0, 0.0, 0.0, 2.0, 0.0, 2.5]}
    straight, turned = (
        robot_from_table({"name": "r", "joint": [row | more]}, "table").inertials[0]
        for more in ({}, {"inertia_rpy": [0.0, 0.0, "pi/2"]})
    )
    np.testing.assert_array_equal(straight, [2.0, 0.0, 0.0, 1.0, 1.5, 0.0, 0.0, 2.5, 0.0, 2.5])
    np.testing.assert_allclose(turned, [2.0, 0.0, 0.0, 1.0, 2.5, 0.0, 0.0, 1.5, 0.0, 2.5])


def test_branches_limits_and_capsules_are_read(tmp_path):
    path = tmp_path / "twin.toml"
    path.write_text(
        """
name = "twin"
base = "post"
gravity = [0.0, 0.0, -1.62]
[[joint]]
name = "left"
link = "left_arm"
position = ["-pi/2", "2*pi/3"]
velocity = "pi"
friction = { viscous = 2.0 }
capsules = [{ start = [0, 0, 0], end = [0, 0, 1], radius = 0.1 }]
[[joint]]
name = "right"
link = "right_arm"
parent = "post"
kind = "prismatic"
axis = [0.0, 0.6, 0.8]
rotor_inertia = 0.5
drive_gain = 7
[[joint]]
name = "wrist"
link = "hand"
parent = "left_arm"
kind = "continuous"
[[base_capsule]]
start = [0, 0, 0]
end = [0, 0, 0.2]
radius = 0.3
"""
    )
    robot = load_robot(path)
    assert list(robot.parents) == [-1, -1, 0]
    assert robot.base == "post"
    assert robot.gravity == (0.0, 0.0, -1.62)
    assert (robot.joints[0].lower, robot.joints[0].upper) == pytest.approx((-np.pi / 2, 2 * np.pi / 3))
    assert robot.joints[0].friction == (("viscous", 2.0),)
    assert robot.joints[1].axis == (0.0, 0.6, 0.8)
    assert robot.drive_gains[1] == 7.0
    assert [(c.parent, c.radius) for c in robot.capsules] == [(0, 0.1), (-1, 0.3)]
    assert not robot.inertials.any()


REFUSED = {
    "empty": ("", "no [[joint]] entry"),
    "not toml": ("name = ", "not valid TOML"),
    "unknown entry": ('colour = "red"\n', "unknown entry 'colour': known are"),
    "unknown joint entry": ('[[joint]]\nname = "a"\nlink = "b"\nmas = 1.0', "joint 'a': unknown entry 'mas'"),
    "dh without dh": ('[[joint]]\nname = "a"\nlink = "b"\nd = 1.0', "joint 'a': unknown entry 'd'"),
    "unknown convention": ('dh = "denavit"\n[[joint]]\nname = "a"\nlink = "b"', "dh = 'denavit': write \"standard\""),
    "no name": ('[[joint]]\nlink = "b"', "joint 1: name is missing"),
    "no link": ('[[joint]]\nname = "a"', "joint 'a': link is missing"),
    "parent below": (
        '[[joint]]\nname = "a"\nlink = "b"\nparent = "c"',
        "joint 'a': its parent 'c' is not a link above it",
    ),
    "link twice": ('[[joint]]\nname = "a"\nlink = "base"', "joint 'a': the link 'base' is there twice"),
    "short vector": ('[[joint]]\nname = "a"\nlink = "b"\nxyz = [1, 2]', "joint 'a': xyz must be a list of 3 numbers"),
    "words": (
        '[[joint]]\nname = "a"\nlink = "b"\nrpy = ["pie", 0, 0]',
        "rpy: 'pie' is neither a number nor a multiple",
    ),
    "nan": ('[[joint]]\nname = "a"\nlink = "b"\nmass = nan', "joint 'a': mass: nan is not a number"),
    "true": ('[[joint]]\nname = "a"\nlink = "b"\nmass = true', "joint 'a': mass: True is not a number"),
    "infinite mass": (
        '[[joint]]\nname = "a"\nlink = "b"\nmass = inf\ncom = [1, 1, 1]',
        "joint 'a': mass: inf is not finite",
    ),
    "no mass": ('[[joint]]\nname = "a"\nlink = "b"\ncom = [1, 1, 1]', "joint 'a': it has com but no mass"),
    "long axis": ('[[joint]]\nname = "a"\nlink = "b"\naxis = [1, 1, 0]', "joint 'a': its axis has length 1.414, not 1"),
    "kind": ('[[joint]]\nname = "a"\nlink = "b"\nkind = "ball"', "joint 'a' has the unsupported kind 'ball'"),
    "crossed": ('[[joint]]\nname = "a"\nlink = "b"\nposition = [1, -1]', "has its lower limit above its upper one"),
    "negative": ('[[joint]]\nname = "a"\nlink = "b"\ntorque = -1', "joint 'a': its torque limit -1 is negative"),
    "friction": ('[[joint]]\nname = "a"\nlink = "b"\nfriction = 3', "joint 'a': friction must be a table"),
    "capsule": (
        '[[joint]]\nname = "a"\nlink = "b"\ncapsules = [{ start = [0, 0, 0], end = [0, 0, 1], radius = 0 }]',
        "joint 'a': a capsule has the radius 0, not a positive one",
    ),
    "notes": ('notes = 3\n[[joint]]\nname = "a"\nlink = "b"', "notes must be a list of texts"),
    "frame": (
        '[[joint]]\nname = "a"\nlink = "b"\n[[frame]]\nname = "f"\nlink = "x"',
        "frame 'f': there is no link 'x'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_named_in_one_line_with_file_and_entry(case, tmp_path):
    text, message = REFUSED[case]
    path = tmp_path / "bad.toml"
    path.write_text(text if case == "not toml" else f'name = "bad"\n{text}')
    with pytest.raises(RobotError) as caught:
        read_robot_toml(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(RobotError, match=r"no\.toml: cannot be read: No such file"):
        read_robot_toml(tmp_path / "no.toml")
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(RobotError, match="not a text file in UTF-8"):
        read_robot_toml(path)
