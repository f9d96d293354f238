"""Closed loops against MuJoCo, closed forms and their own limits."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from bayesid.dynamics import friction_law
from bayesid.errors import DesignError, ModelError, SolverError
from bayesid.kinematics import JointMotion
from bayesid.robots import load_robot, urdf_text
from bayesid.simulation import (
    Sensors,
    SmoothFriction,
    actuators_of,
    computed_torque,
    friction_held_over_a_step,
    gravity_pd,
    joint_pd,
    plant_of,
    simulate,
    simulate_mujoco,
    stack_plants,
)
from bayesid.simulation.plant import plant_torque

# Gains of the UR16e extended model and its reference motion, eq. 30: q_i = a_i (1 - cos 2 pi t).
KP, KV = np.array([800.0, 400, 1000, 1500, 300, 300]), np.array([100.0, 60, 40, 100, 20, 20])
AMPLITUDE = np.array([0.15, 0.2, 0.3, 0.25, 0.1, 0.5])


def eq30(duration, rate=1000.0):
    time = np.arange(round(duration * rate) + 1) / rate
    w = 2 * np.pi
    phase = w * time[:, None]
    return JointMotion(time, AMPLITUDE * (1 - np.cos(phase)), AMPLITUDE * w * np.sin(phase), AMPLITUDE * w**2 * np.cos(phase))


def still(time, q):
    q = np.tile(q, (len(time), 1))
    return JointMotion(time, q, 0 * q, 0 * q)


@pytest.fixture(scope="module")
def robot():
    return load_robot("ur16e_extended")


@pytest.fixture(scope="module")
def plant(robot):
    return plant_of(robot)


@pytest.fixture(scope="module")
def loop(plant):
    return simulate(plant, computed_torque(plant, KP, KV), eq30(0.3))


@pytest.fixture(scope="module")
def two_link():
    return plant_of(load_robot("two_link"))


def test_torques_along_the_reference_motion_agree_with_mujoco_and_pinocchio(robot, plant):
    mujoco = pytest.importorskip("mujoco")
    pin = pytest.importorskip("pinocchio")
    from bayesid.robots import mjcf_text

    motion = eq30(3.0, 100.0)
    torque = np.asarray(jax.jit(plant_torque)(plant, motion.q.T, motion.qd.T, motion.qdd.T)).T
    model = mujoco.MjModel.from_xml_string(mjcf_text(robot))
    data = mujoco.MjData(model)
    reference = pin.buildModelFromXML(urdf_text(robot).replace('type="continuous"', 'type="revolute"'))
    other = reference.createData()
    scale = np.abs(torque).max()
    for k in range(len(motion)):
        data.qpos[:], data.qvel[:], data.qacc[:] = motion.q[k], motion.qd[k], motion.qdd[k]
        mujoco.mj_inverse(model, data)
        rnea = pin.rnea(reference, other, motion.q[k], motion.qd[k], motion.qdd[k]) + robot.rotor_inertias * motion.qdd[k]
        assert np.abs(data.qfrc_inverse - torque[k]).max() < 1e-12 * scale
        assert np.abs(rnea - torque[k]).max() < 1e-12 * scale


def test_the_closed_loop_agrees_with_mujoco_to_rounding(plant, loop):
    pytest.importorskip("mujoco")
    other = simulate_mujoco(plant, computed_torque(plant, KP, KV), loop.reference, steps=loop.steps)
    np.testing.assert_allclose(other.q, loop.q, atol=1e-13)
    np.testing.assert_allclose(other.torque, loop.torque, atol=1e-9)
    np.testing.assert_allclose(other.qdd, loop.qdd, atol=1e-8)


def test_friction_held_over_a_step_explains_the_difference_between_engines(plant, loop):
    pytest.importorskip("mujoco")
    short = JointMotion(*(getattr(loop.reference, name)[:101] for name in ("time", "q", "qd", "qdd")))

    def apart(steps):
        other = simulate_mujoco(plant, computed_torque(plant, KP, KV), short, steps=steps, coupling=friction_held_over_a_step)
        return np.abs(other.q - loop.q[:101]).max()

    coarse, fine = apart(4), apart(8)
    assert 1e-8 < fine < 0.7 * coarse


def test_computed_torque_makes_the_error_a_linear_second_order_system(two_link):
    kp, kv = 100.0, 20.0
    time = np.arange(5001) / 10_000.0
    start = np.array([0.3, -0.2])
    run = simulate(two_link, computed_torque(two_link, kp, kv), still(time, np.zeros(2)), initial=(start, np.zeros(2)))
    expected = -start * ((1 + 10 * time) * np.exp(-10 * time))[:, None]
    np.testing.assert_allclose(run.error, expected, atol=3e-4)


def test_the_loop_agrees_with_an_adaptive_stiff_solver(two_link):
    """PD with gravity compensation and Coulomb friction, in continuous time by scipy's Radau."""
    friction = SmoothFriction(friction_law("coulomb"), np.array([[2.0, 1.0], [0.2, 0.1]]), 0.05)
    plant = plant_of(two_link.robot, friction=friction)
    controller = gravity_pd(two_link, [60.0, 30.0], [20.0, 4.0])
    target = np.array([0.4, 0.6])
    time = np.arange(2001) / 10_000.0
    law = jax.jit(controller)

    def rate(_, y):
        torque = np.asarray(law(y[:2], y[2:], target, np.zeros(2), np.zeros(2)))
        s = np.sin(y[1])
        c = np.cos(y[1])
        mass = np.array([[2.351571982 + 0.167616 * c, 0.10193952 + 0.083808 * c], [0.10193952 + 0.083808 * c, 0.10193952]])
        bias = np.array([-0.083808 * s * y[3] * (2 * y[2] + y[3]), 0.083808 * s * y[2] ** 2])
        gravity = np.array([38.46581442 * np.sin(y[0]) + 1.8270144 * np.sin(y[0] + y[1]), 1.8270144 * np.sin(y[0] + y[1])])
        rubbing = np.array([2.0, 0.2]) * y[2:] + np.array([1.0, 0.1]) * np.tanh(y[2:] / 0.05)
        return np.concatenate([y[2:], np.linalg.solve(mass, torque - bias - gravity - rubbing)])

    start = np.concatenate([target, np.zeros(2)]) + [0.2, -0.1, 0.0, 0.0]
    run = simulate(plant, controller, still(time, target), initial=(start[:2], start[2:]))
    reference = solve_ivp(rate, (0, time[-1]), start, method="Radau", t_eval=time[::500], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(run.q[::500], reference.y[:2].T, atol=2e-4)


def test_many_robots_at_once_move_as_each_alone(two_link):
    robot = two_link.robot
    plants = [plant_of(robot, inertials=robot.inertials * scale) for scale in (0.8, 1.0, 1.3)]
    controller = gravity_pd(two_link, [60.0, 30.0], [20.0, 4.0])
    motion = still(np.arange(301) / 1000.0, np.array([0.4, 0.6]))
    start = np.array([0.1, 0.0]), np.zeros(2)
    together = simulate(stack_plants(plants), controller, motion, initial=start)
    for k, plant in enumerate(plants):
        alone = simulate(plant, controller, motion, initial=start)
        np.testing.assert_allclose(together.member(k).q, alone.q, atol=1e-13)
        np.testing.assert_allclose(together.member(k).torque, alone.torque, atol=1e-10)
    with pytest.raises(DesignError, match="member"):
        together.log()
    with pytest.raises(ModelError, match="share one robot"):
        stack_plants([two_link, plant_of(load_robot("6rp"))])


def test_a_delayed_command_takes_effect_that_many_samples_later(two_link):
    controller = gravity_pd(two_link, [60.0, 30.0], [20.0, 4.0])
    motion = still(np.arange(301) / 1000.0, np.array([0.4, 0.6]))
    run = simulate(two_link, controller, motion, delay=3)
    np.testing.assert_array_equal(run.torque[:3], 0.0)
    law = jax.jit(controller)
    for k in (3, 10, 200):
        asked = law(run.q[k - 3], run.qd[k - 3], motion.q[k - 3], motion.qd[k - 3], motion.qdd[k - 3])
        np.testing.assert_allclose(run.torque[k], asked, atol=1e-10)
    with pytest.raises(SolverError, match="unstable at t"):
        simulate(two_link, gravity_pd(two_link, [6e5, 3e5], [2e3, 4e2]), motion, delay=50)


def test_commands_beyond_the_limits_are_clipped_and_marked(two_link):
    plant = dataclasses.replace(two_link, torque_limit=np.array([5.0, 1.0]))
    motion = still(np.arange(301) / 1000.0, np.array([1.5, 0.2]))
    run = simulate(plant, joint_pd(2, [100.0, 30.0], [20.0, 4.0]), motion, initial=(np.zeros(2), np.zeros(2)))
    assert (np.abs(run.torque) <= [5.0, 1.0]).all()
    assert run.saturated[0].all()
    assert not run.saturated.all()


def test_a_disturbance_that_carries_the_arm_keeps_it_still(two_link):
    target = np.array([0.7, 0.3])
    motion = still(np.arange(301) / 1000.0, target)
    hold = np.array([38.46581442 * np.sin(0.7) + 1.8270144 * np.sin(1.0), 1.8270144 * np.sin(1.0)])
    run = simulate(two_link, joint_pd(2, 0.0, 0.0), motion, disturbance=np.tile(hold, (301, 1)))
    assert np.abs(run.q - target).max() < 1e-9


def test_the_log_holds_what_the_sensors_saw(two_link):
    sensors = Sensors(position_noise=1e-4, position_step=1e-3, velocity_noise=1e-2, effort_noise=0.1, effort_correlation=0.9)
    controller = gravity_pd(two_link, [60.0, 30.0], [20.0, 4.0])
    motion = still(np.arange(301) / 1000.0, np.array([0.4, 0.6]))
    run = simulate(two_link, controller, motion, sensors=sensors, seed=3)
    log = run.log(drive_gains=np.array([10.0, 5.0]))
    np.testing.assert_allclose(log.position / 1e-3, np.round(log.position / 1e-3), atol=1e-8)
    seen = jax.jit(controller)(log.position[5], log.velocity[5], motion.q[5], motion.qd[5], motion.qdd[5])
    np.testing.assert_allclose(run.torque[5], seen, atol=1e-10)
    noise = log.current - run.torque / [10.0, 5.0]
    assert 0.03 < noise.std() < 0.3
    again = simulate(two_link, controller, motion, sensors=sensors, seed=3)
    assert again.log().sha256 == run.log().sha256
    assert again.digest() == run.digest() != simulate(two_link, controller, motion, sensors=sensors, seed=4).digest()


def test_a_step_that_cannot_follow_the_friction_law_is_refused(plant, robot):
    motion = eq30(0.3)
    slow = JointMotion(*(getattr(motion, name)[::20] for name in ("time", "q", "qd", "qdd")))
    with pytest.raises(SolverError, match=r"take at least \d+ steps"):
        simulate(plant, computed_torque(plant, KP, KV), slow, steps=1)
    rate = plant.stiffness(motion.q[:5].T)
    mass_bound = np.max(np.asarray(actuators_of(robot).steepest_friction())) / 0.05
    assert 100.0 < rate < mass_bound


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda p, m: computed_torque(p, [np.nan, 1.0], [1.0, 1.0]), DesignError, "gain kp"),
        (lambda p, m: gravity_pd(p, [1.0, 1.0], [1.0, -1.0]), DesignError, "gain kv"),
        (lambda p, m: joint_pd(2, [1.0], 1.0), DesignError, "2 finite"),
        (lambda p, m: simulate(p, joint_pd(2, 1, 1), m, steps=0), DesignError, "positive whole number"),
        (lambda p, m: simulate(p, joint_pd(2, 1, 1), m, delay=-1), DesignError, "delay"),
        (lambda p, m: simulate(p, joint_pd(2, 1, 1), m, disturbance=np.zeros((2, 2))), DesignError, "disturbance"),
        (lambda p, m: simulate(p, joint_pd(2, 1, 1), m, initial=(np.full(2, np.inf), np.zeros(2))), DesignError, "initial"),
        (lambda p, m: simulate(p, joint_pd(2, 1, 1), eq30(0.1)), DesignError, "6 joints"),
        (lambda p, m: simulate_mujoco(p, joint_pd(2, 1, 1), m, integrator="rk45"), DesignError, "unknown MuJoCo"),
    ],
)
def test_bad_requests_are_refused_with_a_reason(two_link, call, error, match):
    motion = still(np.arange(11) / 1000.0, np.zeros(2))
    with pytest.raises(error, match=match):
        call(two_link, motion)


def test_a_motion_sampled_unevenly_is_refused(two_link):
    time = np.array([0.0, 0.001, 0.003])
    with pytest.raises(DesignError, match="constant rate"):
        simulate(two_link, joint_pd(2, 1, 1), still(time, np.zeros(2)))
