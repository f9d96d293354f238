"""Synthetic logs: what the sensors do to the truth, checked against closed forms and Pinocchio."""

import numpy as np
import pytest

from bayesid.errors import DesignError, ModelError
from bayesid.kinematics import random_motion
from bayesid.models import Model
from bayesid.robots import load_robot, urdf_text
from bayesid.simulation import Sensors, sense, synthetic_log
from bayesid.simulation.synthetic import autocorrelated


@pytest.fixture(scope="module")
def model():
    return Model(load_robot("ur10e"), friction="coulomb-offset")


@pytest.fixture(scope="module")
def motion(model):
    return random_motion(model.robot, duration=5.0, rate=100.0, seed=4)


def test_an_ideal_current_log_holds_rigid_body_torque_plus_friction_over_the_drive_gain(model, motion):
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(0)
    friction = rng.uniform(0.5, 2.0, (6, 3))
    rotor = rng.uniform(0.1, 1.0, 6)
    gains = rng.uniform(8.0, 12.0, 6)
    parameters = np.concatenate([model.robot.inertials.ravel(), rotor, friction.ravel()])
    log = synthetic_log(model, motion, parameters, drive_gains=gains)
    reference = pin.buildModelFromXML(urdf_text(model.robot))
    data = reference.createData()
    rigid = np.array([pin.rnea(reference, data, *row) for row in zip(motion.q, motion.qd, motion.qdd, strict=True)])
    torque = rigid + rotor * motion.qdd + friction[:, 0] * motion.qd + friction[:, 1] * np.sign(motion.qd) + friction[:, 2]
    np.testing.assert_allclose(log.current * gains, torque, atol=1e-9)
    np.testing.assert_array_equal(log.position, motion.q)
    assert log.effort_kind == "current"
    assert log.torque is None
    assert log.joint_names == model.robot.joint_names


def test_the_seed_alone_decides_the_noise(model, motion):
    sensors = Sensors(position_noise=1e-4, effort_noise=0.5, effort_correlation=0.95)
    first, same, other = (synthetic_log(model, motion, sensors=sensors, seed=s) for s in (1, 1, 2))
    assert first.sha256 == same.sha256 != other.sha256
    np.testing.assert_array_equal(first.torque, same.torque)
    assert np.abs(first.torque - other.torque).max() > 0.1


def test_effort_noise_is_stationary_with_the_stated_spread_and_correlation():
    std, coefficient = np.array([0.5, 2.0, 1.0]), np.array([0.95, 0.5, 0.0])
    noise = autocorrelated(np.random.default_rng(0), (400_000, 3), std, coefficient)
    np.testing.assert_allclose(noise.std(0), std, rtol=0.03)
    lag = np.mean(noise[1:] * noise[:-1], axis=0) / noise.var(0)
    np.testing.assert_allclose(lag, coefficient, atol=0.01)
    starts = np.array([autocorrelated(np.random.default_rng(k), (2, 3), std, coefficient)[0] for k in range(4000)])
    np.testing.assert_allclose(starts.std(0), std, rtol=0.05)


def test_quantised_channels_hold_multiples_of_their_step(model, motion):
    sensors = Sensors(position_step=1e-3, velocity_noise=0.01, velocity_step=0.02, effort_step=0.25)
    log = synthetic_log(model, motion, sensors=sensors, seed=0)
    for channel, step in ((log.position, 1e-3), (log.velocity, 0.02), (log.torque, 0.25)):
        np.testing.assert_allclose(channel / step, np.round(channel / step), atol=1e-8)
    assert np.abs(log.position - motion.q).max() <= 0.5e-3 + 1e-12
    assert "position_step" in log.notes[0]


@pytest.mark.parametrize(
    "bad",
    [
        {"effort_noise": -1.0},
        {"position_step": np.nan},
        {"effort_correlation": 1.0},
        {"velocity_noise": np.ones((2, 2))},
    ],
)
def test_impossible_sensors_are_refused(bad):
    with pytest.raises(DesignError, match=next(iter(bad))):
        Sensors(**bad)


def test_impossible_gains_and_torques_are_refused(model, motion):
    with pytest.raises(ModelError, match="drive gains"):
        synthetic_log(model, motion, drive_gains=[10.0, 0.0, 10.0, 10.0, 10.0, 10.0])
    with pytest.raises(ModelError, match="not finite"):
        synthetic_log(model, motion, np.full(model.size, np.nan))
    with pytest.raises(DesignError, match="3 entries"):
        sense(motion.time, motion.q, motion.qd, motion.q, sensors=Sensors(effort_noise=np.ones(3)))


def test_random_motions_stay_inside_the_limits_and_agree_with_their_derivatives():
    robot = load_robot("panda")
    motion = random_motion(robot, duration=6.0, rate=200.0, seed=2)
    assert (motion.q > robot.limit("lower")).all()
    assert (motion.q < robot.limit("upper")).all()
    assert (np.abs(motion.qd) < robot.limit("velocity")).all()
    for value, derivative in ((motion.q, motion.qd), (motion.qd, motion.qdd)):
        central = (value[2:] - value[:-2]) * 100.0
        np.testing.assert_allclose(central, derivative[1:-1], atol=3e-3 * np.abs(derivative).max())
