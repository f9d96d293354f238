"""MJCF read: the engine's own kinematics and inertia are the oracle, also for odd joints and bodies."""

import mujoco
import numpy as np
import pytest

from bayesid.errors import RobotError
from bayesid.robots import load_robot, mjcf_text, read_mjcf

ODD = """
<mujoco model="odd">
  <compiler angle="degree" eulerseq="xyz"/>
  <option gravity="1 2 -9"/>
  <worldbody>
    <body name="stand" pos="0 0 0.5" euler="0 0 90">
      <geom type="box" size="0.1 0.1 0.1"/>
      <site name="eye" pos="0.1 0 0"/>
      <body name="arm" pos="0.1 0.2 0.3" euler="10 20 30">
        <joint name="swing" axis="1 2 3" pos="0.05 -0.02 0.1" ref="30" armature="0.3" damping="2" range="-90 100"/>
        <geom type="capsule" size="0.05 0.2" pos="0.1 0 0.2" euler="40 0 0"/>
        <body name="clamp" pos="0.2 0 0" euler="0 90 0">
          <geom type="sphere" size="0.07"/>
          <body name="slider" pos="0 0.1 0">
            <joint name="slide" type="slide" axis="0 1 1" ref="0.1" frictionloss="3" actuatorfrcrange="-20 20"/>
            <inertial pos="0.1 0.2 0.3" mass="2" fullinertia="0.3 0.4 0.5 0.01 0.02 0.03"/>
            <site name="tip" pos="0 0 0.3" euler="0 0 45"/>
          </body>
        </body>
        <body name="wrist" pos="-0.2 0 0">
          <joint name="roll" axis="1 0 0" pos="0 0.1 0"/>
          <joint name="pitch" axis="0 1 0" pos="0.1 0 0" ref="-20"/>
          <joint name="yaw" axis="0 0 1" type="slide"/>
          <geom type="ellipsoid" size="0.05 0.06 0.08" pos="0.1 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="swing" gear="50" ctrlrange="-2 2"/>
    <position joint="roll" kp="10" forcerange="-7 7"/>
  </actuator>
</mujoco>
"""


def test_an_odd_model_has_the_engines_frames_and_mass_matrix(tmp_path, kinematics):
    path = tmp_path / "odd.xml"
    path.write_text(ODD)
    robot = load_robot(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    assert robot.joint_names == ("swing", "slide", "roll", "pitch", "yaw")
    assert robot.gravity == (1.0, 2.0, -9.0)
    assert {frame.name: frame.parent for frame in robot.frames} == {"stand": -1, "clamp": 0, "eye": -1, "tip": 1}
    rng = np.random.default_rng(0)
    for q in rng.uniform(-1, 1, (5, robot.dof)):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        M = np.zeros((5, 5))
        mujoco.mj_fullM(model, data, M)
        np.testing.assert_allclose(kinematics.mass_matrix(robot, q), M, atol=1e-13)
        for name in ("eye", "tip"):
            T = kinematics.frame_pose(robot, q, name)
            np.testing.assert_allclose(T[:3, 3], data.site(name).xpos, atol=1e-14)
            np.testing.assert_allclose(T[:3, :3], data.site(name).xmat.reshape(3, 3), atol=1e-14)
        for name in ("stand", "clamp"):
            np.testing.assert_allclose(kinematics.frame_pose(robot, q, name)[:3, 3], data.body(name).xpos, atol=1e-14)
        slope = [
            (kinematics.potential(robot, q + 1e-6 * e) - kinematics.potential(robot, q - 1e-6 * e)) / 2e-6 for e in np.eye(5)
        ]
        np.testing.assert_allclose(slope, data.qfrc_bias, atol=1e-7)


def test_limits_friction_and_rotor_inertias_are_read(tmp_path):
    path = tmp_path / "odd.mjcf"
    path.write_text(ODD)
    robot = load_robot(path)
    np.testing.assert_array_equal(robot.rotor_inertias, [0.3, 0, 0, 0, 0])
    np.testing.assert_array_equal(robot.limit("torque"), [100.0, 20.0, 7.0, np.inf, np.inf])
    assert (robot.joints[0].lower, robot.joints[0].upper) == pytest.approx((-np.pi / 2, np.radians(100)))
    assert [joint.kind for joint in robot.joints] == ["revolute", "prismatic", "continuous", "continuous", "prismatic"]
    assert robot.joints[0].friction == (("viscous", 2.0),)
    assert robot.joints[1].friction == (("coulomb", 3.0),)


@pytest.mark.parametrize("name", ["ur10e", "two_link", "6rp", "ur16e_extended"])
def test_what_is_written_is_read_back(name, tmp_path):
    robot = load_robot(name)
    path = tmp_path / "robot.xml"
    path.write_text(mjcf_text(robot))
    back = read_mjcf(path)
    assert back.joint_names == robot.joint_names
    assert back.gravity == robot.gravity
    np.testing.assert_array_equal(back.rotations, robot.rotations)
    np.testing.assert_allclose(back.translations, robot.translations, atol=1e-15)
    np.testing.assert_allclose(back.inertials, robot.inertials, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(back.rotor_inertias, robot.rotor_inertias)
    np.testing.assert_array_equal(back.limit("torque"), robot.limit("torque"))
    np.testing.assert_array_equal(back.limit("upper"), robot.limit("upper"))


@pytest.mark.parametrize("seed", range(10))
def test_random_trees_are_read_back(seed, random_robot, tmp_path, kinematics):
    robot = random_robot(seed)
    path = tmp_path / "tree.xml"
    path.write_text(mjcf_text(robot), encoding="utf-8")
    back = read_mjcf(path)
    order = [back.joint_names.index(name) for name in robot.joint_names]
    q = np.random.default_rng(seed).uniform(-1, 1, robot.dof)
    turned = np.empty(robot.dof)
    turned[order] = q
    M = kinematics.mass_matrix(robot, q)
    theirs = kinematics.mass_matrix(back, turned)[np.ix_(order, order)]
    np.testing.assert_allclose(theirs, M, rtol=0, atol=1e-12 * np.abs(M).max())


BALL = '<mujoco><worldbody><body><freejoint name="f"/><geom size="1"/></body></worldbody></mujoco>'
COUPLED = """<mujoco><worldbody><body name="a"><joint name="j"/><geom size="1"/></body></worldbody>
<equality><joint name="half" joint1="j"/></equality></mujoco>"""
REFUSED = (
    (BALL, "joint 'f' of body 'body1': free and ball joints are not supported"),
    (COUPLED, "equality constraint 'half'"),
    ("<mujoco><worldbody/></mujoco>", "has no moving joint"),
    ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "MuJoCo refuses it: "),
    ("<mujoco><worldbody>", "MuJoCo refuses it: "),
    ("<worldbody", "not well-formed XML"),
    ("<sdf/>", "the root element is <sdf>"),
)


def test_what_is_no_tree_of_hinges_and_slides_is_refused_in_one_line(tmp_path):
    path = tmp_path / "bad.xml"
    for text, message in REFUSED:
        path.write_text(text)
        with pytest.raises(RobotError) as caught:
            load_robot(path)
        assert message in str(caught.value)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
    with pytest.raises(RobotError, match=r"no\.mjcf: cannot be read: No such file"):
        read_mjcf(tmp_path / "no.mjcf")
