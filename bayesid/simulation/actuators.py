"""Joint actuators: motor-side and joint-side parameters, drive gains, torque limits, friction.

Friction follows the extended model of the UR16e (eqs. 22-23 there), with w the joint speed:
tau_F = sqrt(2 e) (tau_brk - tau_c) exp(-(w/w_st)^2) (w/w_st) + tau_c tanh(w/w_coul) + f_v w,
w_st = sqrt(2) w_brk, w_coul = w_brk / 10.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import FrictionLaw
from bayesid.errors import ModelError
from bayesid.robots import Robot

_ARRAYS = ("drive_gain", "rotor_inertia", "viscous", "coulomb", "breakaway", "breakaway_speed", "torque_limit")


@partial(jax.tree_util.register_dataclass, data_fields=_ARRAYS, meta_fields=())
@dataclass(frozen=True, eq=False)
class Actuators:
    """Actuators of n joints as the joints feel them, each field (n,) or, for many robots at once, (n, *batch).

    drive_gain [N m/A], rotor_inertia [kg m^2], viscous [N m s/rad], coulomb and breakaway [N m], breakaway_speed
    [rad/s], torque_limit [N m].
    """

    drive_gain: np.ndarray
    rotor_inertia: np.ndarray
    viscous: np.ndarray
    coulomb: np.ndarray
    breakaway: np.ndarray
    breakaway_speed: np.ndarray
    torque_limit: np.ndarray

    def friction_torque(self, qd):
        """Friction torque (n, *batch) [N m] at joint speeds (n, *batch); it opposes the motion when subtracted."""
        viscous, coulomb, breakaway, speed = (
            over_batch(x, qd) for x in (self.viscous, self.coulomb, self.breakaway, self.breakaway_speed)
        )
        stribeck = qd / (np.sqrt(2.0) * speed)
        bump = np.sqrt(2.0 * np.e) * (breakaway - coulomb) * jnp.exp(-(stribeck**2)) * stribeck
        return bump + coulomb * jnp.tanh(10.0 * qd / speed) + viscous * qd

    def steepest_friction(self):
        """Slope (n, *batch) [N m s/rad] of the friction law at standstill, where it is steepest."""
        bump = np.sqrt(np.e) * (self.breakaway - self.coulomb) / self.breakaway_speed
        return bump + 10.0 * self.coulomb / self.breakaway_speed + self.viscous

    def motor_side(self, gear_ratio, transconductance=1.0) -> MotorSide:
        """The same actuators as their motors feel them; see MotorSide.joint_side."""
        r = np.asarray(gear_ratio, dtype=float)
        return MotorSide(
            gear_ratio=r,
            torque_constant=self.drive_gain / r,
            transconductance=np.broadcast_to(transconductance, np.shape(r)),
            rotor_inertia=self.rotor_inertia / r**2,
            viscous=self.viscous / r**2,
            coulomb=self.coulomb / r,
            breakaway=self.breakaway / r,
            breakaway_speed=self.breakaway_speed * r,
            torque_limit=self.torque_limit / r,
        )


@dataclass(frozen=True, eq=False)
class MotorSide:
    """Actuators as their motors feel them, each field (n,).

    gear_ratio (motor turns per joint turn), torque_constant [N m/A], transconductance of the amplifier [A/V], and, on
    the motor's shaft, rotor_inertia [kg m^2], viscous [N m s/rad], coulomb, breakaway [N m], breakaway_speed [rad/s],
    torque_limit [N m].
    """

    gear_ratio: np.ndarray
    torque_constant: np.ndarray
    transconductance: np.ndarray
    rotor_inertia: np.ndarray
    viscous: np.ndarray
    coulomb: np.ndarray
    breakaway: np.ndarray
    breakaway_speed: np.ndarray
    torque_limit: np.ndarray

    def __post_init__(self):
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, np.asarray(getattr(self, field.name), dtype=float))
        if (self.gear_ratio == 0).any():
            raise ModelError("a gear ratio of zero turns nothing: give motor turns per joint turn")

    def joint_side(self) -> Actuators:
        """What the joints feel: inertia and viscous friction grow by the squared gear ratio, torques by the ratio
        itself.
        """
        r = self.gear_ratio
        return Actuators(
            drive_gain=self.torque_constant * r,
            rotor_inertia=self.rotor_inertia * r**2,
            viscous=self.viscous * r**2,
            coulomb=self.coulomb * np.abs(r),
            breakaway=self.breakaway * np.abs(r),
            breakaway_speed=self.breakaway_speed / np.abs(r),
            torque_limit=self.torque_limit * np.abs(r),
        )

    def voltage_gain(self) -> np.ndarray:
        """Joint torque per volt at the amplifier's input (n,) [N m/V]."""
        return self.torque_constant * self.gear_ratio * self.transconductance


def actuators_of(robot: Robot) -> Actuators:
    """The actuators that a robot's description states; friction that it does not state is zero.

    Raises ModelError when a joint's breakaway torque lies below its Coulomb torque, or a Coulomb torque has no speed
    scale.
    """
    coulomb = robot.friction("coulomb")
    excess = robot.friction("stribeck", np.nan)
    stated = robot.friction("breakaway", np.nan)
    breakaway = np.where(np.isfinite(stated), stated, coulomb + np.where(np.isfinite(excess), excess, 0.0))
    speed = robot.friction("breakaway_speed", 0.1)
    for i, name in enumerate(robot.joint_names):
        if breakaway[i] < coulomb[i]:
            raise ModelError(
                f"robot '{robot.name}', joint '{name}': breakaway torque {breakaway[i]} below the Coulomb torque {coulomb[i]}"
            )
        if not speed[i] > 0:
            raise ModelError(f"robot '{robot.name}', joint '{name}': the breakaway speed must be positive, got {speed[i]}")
    return Actuators(
        drive_gain=robot.drive_gains,
        rotor_inertia=robot.rotor_inertias,
        viscous=robot.friction("viscous"),
        coulomb=coulomb,
        breakaway=breakaway,
        breakaway_speed=speed,
        torque_limit=robot.limit("torque"),
    )


@partial(jax.tree_util.register_dataclass, data_fields=("parameters", "smoothing"), meta_fields=("law",))
@dataclass(frozen=True, eq=False)
class SmoothFriction:
    """A linear friction law in a simulation: sign(qd) becomes tanh(qd / smoothing), which a fixed step can follow.

    `parameters` (n, k) belong to the law's parameters in order, `smoothing` is a speed [rad/s].
    """

    law: FrictionLaw
    parameters: np.ndarray
    smoothing: float = 0.01

    def friction_torque(self, qd):
        """Friction torque (n, *batch) [N m] at joint speeds (n, *batch)."""
        columns = self.law.columns(qd, jnp.tanh(qd / self.smoothing))
        parameters = jnp.moveaxis(jnp.asarray(self.parameters), 1, 0)
        return jnp.sum(columns * over_batch(parameters, columns), axis=0)

    def steepest_friction(self):
        """Slope (n,) [N m s/rad] of the friction law at standstill, where it is steepest."""
        parameters = np.asarray(self.parameters)
        zero = jnp.zeros((len(parameters), *parameters.shape[2:]))
        return np.asarray(jax.jvp(self.friction_torque, (zero,), (jnp.ones_like(zero),))[1])


def over_batch(values, like):
    """Values with as many trailing axes of length one as it takes to broadcast against `like`."""
    values = jnp.asarray(values)
    return values.reshape(values.shape + (1,) * (like.ndim - values.ndim))
