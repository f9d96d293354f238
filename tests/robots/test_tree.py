"""A robot is a value: equal and hashable by content, complete in itself, refused when its parts do not fit."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesid.errors import RobotError
from bayesid.robots import Frame, Joint, Link, Robot, builtin_names, load_robot, read_robot_toml, urdf_text
from bayesid.robots.describe import robot_report
from bayesid.robots.placement import cos_sin, rotation_from_rpy, rpy_from_rotation
from bayesid.robots.urdf import robot_from_urdf

LINK = Link("l", (1.0, 0, 0, 0, 1.0, 0, 0, 1.0, 0, 1.0))


@pytest.mark.parametrize("name", builtin_names())
def test_two_readings_of_a_robot_are_equal_and_hash_alike(name, tmp_path):
    robot = load_robot(name)
    assert pickle.loads(pickle.dumps(robot)) == copy.deepcopy(robot) == robot
    assert len({pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot), robot}) == 1
    if name != "panda":
        text = urdf_text(robot)
        assert robot_from_urdf(text) == robot_from_urdf(text)
        assert hash(robot_from_urdf(text)) == hash(robot_from_urdf(text))
    path = tmp_path / "bare.toml"
    path.write_text('name = "bare"\n[[joint]]\nname = "j"\nlink = "l"\n')
    assert read_robot_toml(path) == read_robot_toml(path)
    assert hash(read_robot_toml(path)) == hash(read_robot_toml(path))


def test_changing_a_parameter_makes_another_robot():
    robot = load_robot("ur5e")
    other = robot.with_inertials(robot.inertials * 1.0001)
    assert other != robot
    assert robot.with_inertials(robot.inertials) == robot
    np.testing.assert_array_equal(other.rotor_inertias, robot.rotor_inertias)
    with pytest.raises(ValueError, match="read-only"):
        robot.inertials[0, 0] = 3.0


def test_ancestors_are_the_joints_on_the_way_to_the_base():
    joints = tuple(Joint(f"j{i}", "revolute", parent) for i, parent in enumerate((-1, 0, 0, 2, -1)))
    robot = Robot("fork", joints, tuple(dataclasses.replace(LINK, name=f"l{i}") for i in range(5)))
    expected = np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 1]], bool)
    np.testing.assert_array_equal(robot.ancestors, expected)


def test_frames_are_found_by_name_and_links_count_as_frames():
    robot = load_robot("ur5e")
    assert robot.frame("forearm_link").parent == 2
    with pytest.raises(RobotError, match="robot 'ur5e' has no frame 'hand': it has shoulder_link"):
        robot.frame("hand")


@pytest.mark.parametrize(
    ("joints", "links", "message"),
    [
        ((), (), "has no moving joint"),
        ((Joint("j", "revolute", -1),), (), "has 1 joints but 0 moving links"),
        ((Joint("j", "revolute", 0),), (LINK,), "the parent of joint 'j' must come before it"),
        ((Joint("j", "ball", -1),), (LINK,), "joint 'j' has the unsupported kind 'ball'"),
        ((Joint("j", "revolute", -1, xyz=(np.nan, 0, 0)),), (LINK,), "joint 'j' or its link holds a number not finite"),
        (
            (Joint("j", "revolute", -1, lower=1.0, upper=0.0),),
            (LINK,),
            "joint 'j' has its lower limit above its upper one",
        ),
        ((Joint("j", "revolute", -1, axis=(0, 0, 2)),), (LINK,), "the axis of joint 'j' is no unit vector"),
        ((Joint("j", "revolute", -1, rotation=(1, 0, 0, 0, 1, 0, 0, 0, -1)),), (LINK,), "'j' is no rotation matrix"),
        (
            (Joint("j", "revolute", -1), Joint("j", "revolute", 0)),
            (LINK, Link("k")),
            "the joint name 'j' is used twice",
        ),
        ((Joint("j", "revolute", -1), Joint("k", "revolute", 0)), (LINK, LINK), "the link or frame name 'l' is used twice"),
    ],
)
def test_parts_that_do_not_fit_are_refused(joints, links, message):
    with pytest.raises(RobotError, match=message):
        Robot("r", joints, links)


def test_frames_hang_on_links_that_exist_under_names_of_their_own():
    joint = Joint("j", "revolute", -1)
    with pytest.raises(RobotError, match="a frame or capsule hangs on link 1, which is not there"):
        Robot("r", (joint,), (LINK,), (Frame("f", 1),))
    with pytest.raises(RobotError, match="the link or frame name 'l' is used twice"):
        Robot("r", (joint,), (LINK,), (Frame("l", 0),))


def test_a_chain_of_a_thousand_fixed_links_is_folded():
    parts = ['<link name="l0"/>']
    for i in range(1, 1001):
        kind = "revolute" if i == 1 else "fixed"
        parts.append(
            f'<link name="l{i}"><inertial><mass value="1"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
            f'</inertial></link><joint name="j{i}" type="{kind}"><parent link="l{i - 1}"/><child link="l{i}"/>'
            '<origin xyz="0.001 0 0"/><axis xyz="0 0 1"/></joint>'
        )
    robot = robot_from_urdf(f'<robot name="chain">{"".join(parts)}</robot>')
    k = np.arange(1000) * 1e-3
    expected = [1000.0, k.sum(), 0, 0, 0, 0, 0, (k**2).sum(), 0, (k**2).sum()]
    np.testing.assert_allclose(robot.inertials[0], expected, rtol=1e-10, atol=1e-9)
    assert (robot.dof, len(robot.frames)) == (1, 999)


angles = st.floats(-10.0, 10.0)
names = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn", "Zl", "Zp")), min_size=1, max_size=8)
tiny_to_huge = st.floats(-9.0, 9.0).map(lambda power: 10.0**power)


@given(roll=angles, pitch=angles, yaw=angles)
@settings(max_examples=200, deadline=None)
def test_roll_pitch_yaw_goes_there_and_back(roll, pitch, yaw):
    R = rotation_from_rpy((roll, pitch, yaw), 0.0)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(rotation_from_rpy(rpy_from_rotation(R), 0.0), R, atol=3e-9)


@given(quarter=st.integers(-8, 8), error=st.floats(-9e-6, 9e-6))
@settings(max_examples=100, deadline=None)
def test_angles_near_a_right_angle_are_right_angles(quarter, error):
    c, s = cos_sin(quarter * np.pi / 2 + error)
    assert {abs(c), abs(s)} == {0.0, 1.0}
    np.testing.assert_allclose((c, s), (np.cos(quarter * np.pi / 2), np.sin(quarter * np.pi / 2)), atol=1e-12)


@given(name=names, joint=names, link=names, mass=tiny_to_huge, size=tiny_to_huge, reach=tiny_to_huge, rotor=tiny_to_huge)
@settings(max_examples=100, deadline=None)
def test_any_name_and_any_size_survive_being_written_and_read(name, joint, link, mass, size, reach, rotor):
    moment = mass * size**2
    standard = (mass, mass * size, 0.0, 0.0, moment, 0.0, 0.0, 3.0 * moment, 0.0, 3.0 * moment)
    only = Joint(joint, "continuous", -1, xyz=(reach, 0.0, -reach), rotor_inertia=rotor)
    robot = Robot(name, (only,), (Link(link, standard),), base=link + "_base")
    back = robot_from_urdf(urdf_text(robot), length_tolerance=0.0)
    assert (back.name, back.joint_names, back.link_names, back.base) == (name, (joint,), (link,), link + "_base")
    np.testing.assert_allclose(back.inertials, robot.inertials, rtol=1e-12, atol=1e-12 * moment)
    assert (back.joints[0].xyz, back.joints[0].rotor_inertia) == (only.xyz, rotor)
    assert joint in robot_report(robot)
