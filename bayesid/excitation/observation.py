"""What one sample of a motion tells: rows of the observation matrix, linear (or linearised) in the unknown parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import joint_regressor
from bayesid.errors import DesignError
from bayesid.models import Model

STANDSTILL = 0.02


class Observation(Protocol):
    """Rows of the observation matrix, one set per sample."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def row_joints(self) -> np.ndarray:
        """(r,) the joint whose effort each row predicts."""

    def columns(self, q, qd, qdd):
        """(r, p, S) rows at states (n, S), traceable by JAX."""


def direction(qd):
    """Smooth stand-in for sign(qd): friction's direction is not defined within about STANDSTILL [rad/s] of rest."""
    return jnp.tanh(qd / STANDSTILL)


@dataclass(frozen=True)
class TorqueObservation:
    """Measured joint torques of a model: its base parameters."""

    model: Model

    @property
    def names(self):
        return self.model.base.names

    @property
    def row_joints(self):
        return np.arange(self.model.robot.dof)

    def columns(self, q, qd, qdd):
        return self.model.regressor_chunk(q, qd, qdd, direction(qd))[:, self.model.base.independent]


@dataclass(frozen=True, eq=False)
class GainObservation:
    """Measured currents of the motion run twice, without and with a load of known mass on the last link: gains too.

    i = tau / K, tau = Y beta (+ Y_load theta with the load). Rows are linearised at the nominal parameters: di/dbeta = Y /
    K, di/dK_j = -tau_j / K_j^2 (Gautier, Briot 2014, for the two runs; noise is on the current). Parameters: base
    parameters, gains [N m/A], first moments and inertias of the load.
    """

    model: Model
    gains: tuple[float, ...]
    load_mass: float

    def __post_init__(self):
        n = self.model.robot.dof
        if len(self.gains) != n or not all(np.isfinite(k) and k > 0 for k in self.gains):
            raise DesignError(f"drive gains must be {n} positive numbers of N m/A, got {list(self.gains)}")
        if not (np.isfinite(self.load_mass) and self.load_mass > 0):
            raise DesignError(f"the planned load's mass must be positive, got {self.load_mass} kg")

    @cached_property
    def names(self):
        gains = [f"{joint}.drive_gain" for joint in self.model.robot.joint_names]
        load = [f"load.{name}" for name in ("mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")]
        return (*self.model.base.names, *gains, *load)

    @property
    def row_joints(self):
        return np.tile(np.arange(self.model.robot.dof), 2)

    def columns(self, q, qd, qdd):
        n = self.model.robot.dof
        gains = np.asarray(self.gains)[:, None, None]
        full = self.model.regressor_chunk(q, qd, qdd, direction(qd))
        base = full[:, self.model.base.independent] / gains
        load = full[:, 10 * (n - 1) : 10 * n]
        unloaded = jnp.einsum("jps,p->js", full, self.model.nominal)
        loaded = unloaded + self.load_mass * load[:, 0]
        eye = np.eye(n)[:, :, None]

        def rows(torque, extra):
            return jnp.concatenate([base, -eye * torque[:, None] / gains**2, extra], axis=1)

        return jnp.concatenate([rows(unloaded, jnp.zeros_like(load[:, 1:])), rows(loaded, load[:, 1:] / gains)])


@dataclass(frozen=True)
class PayloadObservation:
    """Joint torques of a robot whose own parameters are known: only the load on the last link is not."""

    model: Model

    @property
    def names(self):
        return tuple(f"load.{name}" for name in ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"))

    @property
    def row_joints(self):
        return np.arange(self.model.robot.dof)

    def columns(self, q, qd, qdd):
        return joint_regressor(self.model.robot, q, qd, qdd)[:, -10:]
