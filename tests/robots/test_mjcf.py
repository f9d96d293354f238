"""The MuJoCo model of a robot is the robot: same inertia, same forces, same frames, by an engine of its own."""

import jax
import mujoco
import numpy as np
import pytest

from bayesid import dynamics
from bayesid.errors import RobotError
from bayesid.robots import Joint, Link, Robot, builtin_names, load_robot, mjcf_text

inverse_dynamics = jax.jit(dynamics.inverse_dynamics, static_argnums=0)


class Engine:
    """MuJoCo's own numbers for a robot, in the robot's order of joints."""

    def __init__(self, text, names):
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        self.order = np.array([self.model.joint(name).dofadr[0] for name in names])

    def set(self, q, qd):
        self.data.qpos[self.order], self.data.qvel[self.order] = q, qd
        mujoco.mj_forward(self.model, self.data)

    def mass_matrix(self):
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M[np.ix_(self.order, self.order)]

    def bias(self):
        return self.data.qfrc_bias[self.order].copy()


def agree(robot, kinematics, seed):
    engine = Engine(mjcf_text(robot), robot.joint_names)
    assert engine.model.nv == engine.model.nu == robot.dof
    rng = np.random.default_rng(seed)
    for q, qd in rng.uniform(-2, 2, (3, 2, robot.dof)):
        engine.set(q, qd)
        M = engine.mass_matrix()
        np.testing.assert_allclose(kinematics.mass_matrix(robot, q), M, rtol=0, atol=1e-12 * np.abs(M).max())
        for frame in robot.frames:
            T = kinematics.frame_pose(robot, q, frame.name)
            site = engine.data.site(frame.name)
            np.testing.assert_allclose(site.xpos, T[:3, 3], atol=1e-12)
            np.testing.assert_allclose(site.xmat.reshape(3, 3), T[:3, :3], atol=1e-12)
    return engine, q, qd


@pytest.mark.parametrize("name", ["ur10e", "two_link", "6rp", "ur16e_extended", "panda"])
def test_builtin_robots_have_the_inertia_and_the_bias_forces_of_their_mujoco_models(name, kinematics):
    robot = load_robot(name)
    if name == "panda":
        robot = robot.with_inertials(np.delete(robot.inertials, 3, 0)[[0, 1, 2, 2, 3, 4, 5]])
    engine, q, qd = agree(robot, kinematics, 1)
    bias = engine.bias()
    ours = inverse_dynamics(robot, q, qd, np.zeros(robot.dof))
    np.testing.assert_allclose(ours, bias, rtol=0, atol=1e-11 * np.abs(bias).max())
    limits = robot.limit("torque")
    given = engine.model.actuator_ctrllimited.astype(bool)
    np.testing.assert_array_equal(given, np.isfinite(limits))
    np.testing.assert_array_equal(engine.model.actuator_ctrlrange[given, 1], limits[given])


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_have_the_inertia_and_the_frames_of_their_mujoco_models(seed, random_robot, kinematics):
    agree(random_robot(seed), kinematics, seed)


def test_every_builtin_robot_but_the_impossible_one_is_written():
    for name in builtin_names():
        if name == "panda":
            with pytest.raises(RobotError, match=r"'panda', link 'link4': .* not written as MJCF"):
                mjcf_text(load_robot(name))
        else:
            model = mujoco.MjModel.from_xml_string(mjcf_text(load_robot(name)))
            assert model.ngeom == 0
            np.testing.assert_array_equal(model.dof_armature, load_robot(name).rotor_inertias)


def test_joint_ranges_time_step_and_other_parameters_are_kept():
    robot = load_robot("6rp")
    model = mujoco.MjModel.from_xml_string(mjcf_text(robot, 2.0 * robot.inertials, np.arange(7.0), timestep=0.001))
    assert model.opt.timestep == 0.001
    assert tuple(model.joint("stage_joint").range) == (0.0, 0.05)
    np.testing.assert_allclose(model.body_mass[1:], 2.0 * robot.inertials[:, 0])
    np.testing.assert_array_equal(model.dof_armature, np.arange(7.0))


def test_what_mujoco_cannot_hold_is_refused():
    def single(link, inertial=(0.0,) * 10):
        return Robot("odd", (Joint("j", "revolute", -1),), (Link(link, inertial),))

    with pytest.raises(RobotError, match="link 'a': it has no mass, and MuJoCo needs one"):
        mjcf_text(single("a"))
    with pytest.raises(RobotError, match="link 'a': it has no extent"):
        mjcf_text(single("a", (2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 2.0)))
    with pytest.raises(RobotError, match="MuJoCo keeps the name 'world' for itself"):
        mjcf_text(single("world", (1.0, 0, 0, 0, 1.0, 0, 0, 1.0, 0, 1.0)))
