"""Control laws: functions of the measured state and the reference, as objects that JAX can trace.

A law is called with q, qd (n, *batch) as measured and the reference's q, qd, qdd, and returns joint torques [N m].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from bayesid.dynamics import gravity_torque
from bayesid.errors import DesignError
from bayesid.simulation.actuators import over_batch
from bayesid.simulation.plant import Friction, Plant, plant_torque


@partial(jax.tree_util.register_dataclass, data_fields=("kp", "kv", "model", "compensation"), meta_fields=())
@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """tau = M (qdd_d + Kv (qd_d - qd) + Kp (q_d - q)) + C qd + g [+ friction at the reference speed]."""

    kp: np.ndarray
    kv: np.ndarray
    model: Plant
    compensation: Friction | None

    def __call__(self, q, qd, reference_q, reference_qd, reference_qdd):
        kp, kv = over_batch(self.kp, q), over_batch(self.kv, q)
        demand = reference_qdd + kv * (reference_qd - qd) + kp * (reference_q - q)
        torque = plant_torque(self.model, q, qd, demand)
        return torque if self.compensation is None else torque + self.compensation.friction_torque(reference_qd)


@partial(jax.tree_util.register_dataclass, data_fields=("kp", "kv", "model"), meta_fields=())
@dataclass(frozen=True, eq=False)
class GravityPD:
    """tau = Kp (q_d - q) + Kv (qd_d - qd) + g(q)."""

    kp: np.ndarray
    kv: np.ndarray
    model: Plant

    def __call__(self, q, qd, reference_q, reference_qd, reference_qdd):
        kp, kv = over_batch(self.kp, q), over_batch(self.kv, q)
        hold = gravity_torque(self.model.robot, q, self.model.inertials)
        return kp * (reference_q - q) + kv * (reference_qd - qd) + hold


@partial(jax.tree_util.register_dataclass, data_fields=("kp", "kv"), meta_fields=())
@dataclass(frozen=True, eq=False)
class JointPD:
    """tau = Kp (q_d - q) + Kv (qd_d - qd)."""

    kp: np.ndarray
    kv: np.ndarray

    def __call__(self, q, qd, reference_q, reference_qd, reference_qdd):
        return over_batch(self.kp, q) * (reference_q - q) + over_batch(self.kv, q) * (reference_qd - qd)


def computed_torque(model: Plant, kp, kv, compensation: Friction | None = None) -> ComputedTorque:
    """PD computed torque on a model, gains (n,) in 1/s^2 and 1/s.

    `compensation` adds that friction at the reference's speed, which does not chatter.
    """
    return ComputedTorque(*_gains(model.robot.dof, kp, kv), model, compensation)


def gravity_pd(model: Plant, kp, kv) -> GravityPD:
    """PD with gravity compensation (Takegaki, Arimoto 1981), gains (n,) in N m/rad and N m s/rad."""
    return GravityPD(*_gains(model.robot.dof, kp, kv), model)


def joint_pd(dof: int, kp, kv) -> JointPD:
    """PD alone, gains (n,) in N m/rad and N m s/rad."""
    return JointPD(*_gains(dof, kp, kv))


def _gains(dof, *gains):
    checked = []
    for name, gain in zip(("kp", "kv"), gains, strict=True):
        gain = np.asarray(gain, dtype=float)
        gain = np.full(dof, gain) if gain.ndim == 0 else gain
        if gain.shape != (dof,) or not np.isfinite(gain).all() or (gain < 0).any():
            raise DesignError(f"control gain {name} must be {dof} finite numbers, not negative; got {gain}")
        checked.append(gain)
    return checked
