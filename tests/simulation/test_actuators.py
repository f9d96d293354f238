"""Actuators: conversions checked by power, the friction law by its published properties."""

import dataclasses

import numpy as np
import pytest

from bayesid.dynamics import friction_law, stribeck_law
from bayesid.errors import ModelError
from bayesid.robots import load_robot
from bayesid.simulation import MotorSide, SmoothFriction, actuators_of
from bayesid.simulation.actuators import Actuators


@pytest.fixture(scope="module")
def actuators():
    return actuators_of(load_robot("ur16e_extended"))


def test_motor_and_joint_side_dissipate_and_store_the_same_power(actuators):
    ratio = np.array([101.0, 101.0, 101.0, 80.0, 50.0, -50.0])
    motor = actuators.motor_side(ratio, transconductance=0.8)
    speed = np.random.default_rng(0).uniform(-2, 2, 6)
    as_joint = Actuators(
        *(getattr(motor, f.name) if hasattr(motor, f.name) else motor.torque_constant for f in dataclasses.fields(Actuators))
    )
    motor_power = as_joint.friction_torque(np.abs(ratio) * speed) * np.abs(ratio) * speed
    np.testing.assert_allclose(motor_power[:5], (actuators.friction_torque(speed) * speed)[:5], rtol=1e-12)
    np.testing.assert_allclose(motor.rotor_inertia * (ratio * speed) ** 2, actuators.rotor_inertia * speed**2, rtol=1e-12)
    current = 3.0
    np.testing.assert_allclose(motor.torque_constant * current * ratio * speed, actuators.drive_gain * current * speed)
    np.testing.assert_allclose(motor.voltage_gain(), 0.8 * actuators.drive_gain, rtol=1e-12)
    back = motor.joint_side()
    for field in dataclasses.fields(Actuators):
        if ratio.min() > 0 or field.name in ("drive_gain", "rotor_inertia", "viscous"):
            np.testing.assert_allclose(getattr(back, field.name), getattr(actuators, field.name), rtol=1e-12)


def test_friction_peaks_at_the_breakaway_torque_at_the_breakaway_speed(actuators):
    speed = actuators.breakaway_speed
    dry = np.asarray(actuators.friction_torque(speed)) - actuators.viscous * speed
    np.testing.assert_allclose(dry, actuators.breakaway, rtol=1e-8)
    fast = np.full(6, 3.0)
    np.testing.assert_allclose(actuators.friction_torque(fast), actuators.coulomb + actuators.viscous * fast, rtol=1e-12)
    np.testing.assert_allclose(actuators.friction_torque(-speed), -np.asarray(actuators.friction_torque(speed)))


def test_friction_agrees_with_the_linear_law_used_for_identification(actuators):
    qd = np.random.default_rng(1).uniform(-0.5, 0.5, (6, 50))
    columns = np.asarray(stribeck_law(0.1).columns(qd))
    parameters = np.stack([actuators.viscous, actuators.coulomb, actuators.breakaway - actuators.coulomb])
    np.testing.assert_allclose(actuators.friction_torque(qd), np.einsum("kn,kns->ns", parameters, columns), atol=1e-12)


@pytest.mark.parametrize("kind", ["actuators", "smooth"])
def test_the_steepest_slope_is_the_one_at_standstill(actuators, kind):
    if kind == "actuators":
        friction = actuators
    else:
        friction = SmoothFriction(friction_law("coulomb-offset"), np.tile([2.0, 3.0, 0.5], (6, 1)), 0.02)
    step = 1e-7
    zero = np.zeros(6)
    slope = (np.asarray(friction.friction_torque(zero + step)) - np.asarray(friction.friction_torque(zero - step))) / (2 * step)
    np.testing.assert_allclose(friction.steepest_friction(), slope, rtol=1e-6)


def test_impossible_actuators_are_refused():
    robot = load_robot("ur16e_extended")
    joint = dataclasses.replace(robot.joints[0], friction=(("coulomb", 5.0), ("breakaway", 3.0)))
    with pytest.raises(ModelError, match=r"breakaway torque 3\.0 below"):
        actuators_of(dataclasses.replace(robot, joints=(joint, *robot.joints[1:])))
    with pytest.raises(ModelError, match="gear ratio of zero"):
        MotorSide(*[np.zeros(2)] * 9)
