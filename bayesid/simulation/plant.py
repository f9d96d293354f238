"""The robot that is simulated: rigid bodies, rotors, friction and torque limits, as one differentiable object."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import inverse_dynamics, mass_and_bias, mass_matrix
from bayesid.errors import ModelError
from bayesid.robots import Robot
from bayesid.simulation.actuators import actuators_of, over_batch
from bayesid.simulation.simplified import SIMPLIFIED_WARNING, simplified_inverse_dynamics, simplified_mass_and_bias

Coriolis = Literal["exact", "symmetric"]


class Friction(Protocol):
    """What a simulation asks of friction: the torque at joint speeds (n, *batch) and its slope at standstill."""

    def friction_torque(self, qd): ...

    def steepest_friction(self): ...


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("inertials", "rotor_inertias", "friction", "torque_limit"),
    meta_fields=("robot", "coriolis"),
)
@dataclass(frozen=True, eq=False)
class Plant:
    """A robot to simulate; make one with `plant_of`, many at once with `stack_plants`.

    inertials (n, 10), rotor_inertias (n,), friction (any object of the Friction protocol), torque_limit (n,) [N m]; all
    with one trailing axis more when many robots are simulated at once.
    """

    robot: Robot
    inertials: np.ndarray
    rotor_inertias: np.ndarray
    friction: Friction
    torque_limit: np.ndarray
    coriolis: Coriolis = "exact"

    def acceleration(self, q, qd, torque):
        """Joint accelerations (n, *batch) under motor torques (n, *batch); friction is subtracted here."""
        matrix, bias = _MASS_AND_BIAS[self.coriolis](self.robot, q, qd, self.inertials, self.rotor_inertias)
        return solve_positive(matrix, torque - self.friction.friction_torque(qd) - bias)

    def stiffness(self, q) -> float:
        """Fastest decay rate [1/s] that friction causes at positions (n, samples): the largest eigenvalue of D M^-1.

        D is the friction law's slope at standstill, where it is steepest; an explicit step must resolve this rate.
        """
        slope = np.asarray(self.friction.steepest_friction(), dtype=float)
        slope = slope.reshape(len(slope), -1)
        inertials = np.asarray(self.inertials).reshape(len(slope), 10, -1)
        rotors = np.asarray(self.rotor_inertias).reshape(len(slope), -1)
        worst = 0.0
        for k in range(inertials.shape[-1]):
            matrices = np.moveaxis(np.asarray(_masses(self.robot, q, inertials[..., k], rotors[:, k])), -1, 0)
            root = np.sqrt(np.maximum(slope[:, min(k, slope.shape[1] - 1)], 0.0))
            least = np.linalg.eigvalsh(matrices)[:, 0].min()
            if not least > 0:
                raise ModelError(
                    f"robot '{self.robot.name}': the mass matrix is not positive definite (smallest eigenvalue "
                    f"{least:.3g}): its inertial parameters belong to no physical body"
                )
            scaled = root[:, None] * np.linalg.inv(matrices) * root
            worst = max(worst, float(np.linalg.eigvalsh(scaled)[:, -1].max()))
        return worst


_MASS_AND_BIAS = {"exact": mass_and_bias, "symmetric": simplified_mass_and_bias}
_INVERSE = {"exact": inverse_dynamics, "symmetric": simplified_inverse_dynamics}
_masses = jax.jit(mass_matrix, static_argnums=0)


def plant_of(
    robot: Robot, *, friction: Friction | None = None, inertials=None, rotor_inertias=None, coriolis: Coriolis = "exact"
) -> Plant:
    """A robot's plant from its description, its parts replaced by what is given.

    `coriolis="symmetric"` simulates the simplified model C = Mdot / 2. It is no approximation of the equations of
    motion (see `bayesid.simulation.simplified`), and a warning says so.
    """
    if coriolis not in _INVERSE:
        raise ModelError(f"unknown Coriolis form '{coriolis}': choose exact or symmetric")
    if coriolis == "symmetric":
        warnings.warn(SIMPLIFIED_WARNING, stacklevel=2)
    return Plant(
        robot,
        np.asarray(robot.inertials if inertials is None else inertials, dtype=float),
        np.asarray(robot.rotor_inertias if rotor_inertias is None else rotor_inertias, dtype=float),
        actuators_of(robot) if friction is None else friction,
        robot.limit("torque"),
        coriolis,
    )


def stack_plants(plants) -> Plant:
    """Many plants of one robot as one, their parameters stacked along a trailing axis."""
    plants = list(plants)
    if not plants or len({(plant.robot, plant.coriolis) for plant in plants}) != 1:
        raise ModelError("plants to stack must share one robot: give differing parameters as inertials and rotor_inertias")
    return jax.tree.map(lambda *parts: np.stack(parts, axis=-1), *plants)


def plant_torque(plant: Plant, q, qd, qdd):
    """Torques (n, *batch) of the rigid bodies and rotors of a plant, in its own Coriolis form; friction excluded."""
    return _INVERSE[plant.coriolis](plant.robot, q, qd, qdd, plant.inertials, plant.rotor_inertias)


def solve_positive(matrix, right):
    """Solution (n, *batch) of symmetric positive definite systems (n, n, *batch), the batch in the trailing axes."""
    n = matrix.shape[0]
    columns = []
    for j in range(n):
        column = matrix[j:, j]
        for k in range(j):
            column = column - columns[k][j - k :] * columns[k][j - k]
        columns.append(column / jnp.sqrt(column[0]))
    forward = []
    for j in range(n):
        value = right[j]
        for k in range(j):
            value = value - columns[k][j - k] * forward[k]
        forward.append(value / columns[j][0])
    solution = [None] * n
    for j in reversed(range(n)):
        value = forward[j]
        for k in range(j + 1, n):
            value = value - columns[j][k - j] * solution[k]
        solution[j] = value / columns[j][0]
    return jnp.stack(solution)


def limited(torque, limit):
    """Torques (n, *batch) clipped to the joints' limits."""
    limit = over_batch(limit, torque)
    return jnp.clip(torque, -limit, limit)
