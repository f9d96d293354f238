"""The unknowns of a robot: link inertials, rotor inertias, friction; their order, names, units and torque columns."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import FrictionLaw, friction_law, joint_regressor, stribeck_law
from bayesid.errors import ModelError
from bayesid.models.base import BaseParameters, base_parameters
from bayesid.robots import INERTIAL_NAMES, INERTIAL_UNITS, Capsule, Frame, Joint, Link, Robot

CHUNK = 1024


@dataclass(frozen=True)
class Model:
    """A robot with a friction law and, unless `rotor` is False, rotor inertias.

    Parameter order (P in all): link inertials link by link, rotor inertias joint by joint, friction joint by joint.
    """

    robot: Robot
    friction: str | FrictionLaw = "coulomb-offset"
    rotor: bool = True

    def __post_init__(self):
        if isinstance(self.friction, str):
            object.__setattr__(self, "friction", friction_law(self.friction))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """(P,) parameter names: `<link>.m`, ..., `<joint>.rotor_inertia`, `<joint>.viscous`, ..."""
        robot = self.robot
        names = [f"{link}.{name}" for link in robot.link_names for name in INERTIAL_NAMES]
        if self.rotor:
            names += [f"{joint}.rotor_inertia" for joint in robot.joint_names]
        names += [f"{joint}.{name}" for joint in robot.joint_names for name in self.friction.parameters]
        return tuple(names)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """(P,) units; those of a prismatic joint's rotor and friction are linear ones."""
        robot = self.robot
        units = list(INERTIAL_UNITS) * robot.dof
        if self.rotor:
            units += ["kg m^2" if turns else "kg" for turns in robot.revolute]
        for turns in robot.revolute:
            units += [unit if turns else unit.replace("N m s/rad", "N s/m").replace("N m", "N") for unit in self.friction.units]
        return tuple(units)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """(P,) link, rotor or friction."""
        n = self.robot.dof
        return (
            *("link",) * 10 * n,
            *("rotor",) * (n * self.rotor),
            *("friction",) * (n * len(self.friction.parameters)),
        )

    @property
    def size(self) -> int:
        """Number of parameters P."""
        return len(self.names)

    @cached_property
    def nonnegative(self) -> np.ndarray:
        """(P,) True for parameters that physics keeps from being negative (rotor inertia, viscous and Coulomb friction)."""
        n = self.robot.dof
        return np.array([False] * 10 * n + [True] * (n * self.rotor) + list(self.friction.nonnegative) * n)

    @cached_property
    def nominal(self) -> np.ndarray:
        """(P,) the robot description's own values, 0 for friction parameters that it does not state."""
        robot = self.robot
        parts = [robot.inertials.ravel()]
        if self.rotor:
            parts.append(robot.rotor_inertias)
        friction = [_nominal_friction(robot, name) for name in self.friction.parameters]
        parts.append(np.stack(friction, axis=1).ravel() if friction else np.zeros(0))
        return np.concatenate(parts)

    @cached_property
    def joints(self) -> tuple[int, ...]:
        """(P,) index of the joint or link that each parameter belongs to."""
        n, k = self.robot.dof, len(self.friction.parameters)
        rotor = tuple(range(n)) if self.rotor else ()
        return (*(i for i in range(n) for _ in range(10)), *rotor, *(i for i in range(n) for _ in range(k)))

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters of this model: what exciting data can determine (Gautier 1991)."""
        return base_parameters(self)

    def regressor_chunk(self, q, qd, qdd, direction=None):
        """Joint torque columns (n, P, S) at states (n, S), sample axis last; traceable by JAX."""
        rigid = joint_regressor(self.robot, q, qd, qdd)
        n, samples = self.robot.dof, q.shape[1]
        eye = jnp.eye(n)[:, :, None]
        parts = [rigid]
        if self.rotor:
            parts.append(eye * qdd[None])
        columns = self.friction.columns(qd, direction)
        if len(columns):
            spread = eye[:, :, None] * jnp.swapaxes(columns, 0, 1)[None]
            parts.append(spread.reshape(n, -1, samples))
        return jnp.concatenate(parts, axis=1)

    def regressor(self, q, qd, qdd, direction=None) -> np.ndarray:
        """Joint torque columns (N, n, P) at states (N, n); all in memory, see `chunks` for long logs."""
        q, qd, qdd = self._check(q, qd, qdd)
        out = np.empty((len(q), self.robot.dof, self.size))
        for rows, block in self.chunks(q, qd, qdd, direction):
            out[rows] = np.moveaxis(block, 2, 0)
        return out

    def chunks(self, q, qd, qdd, direction=None, columns=None):
        """Yield (slice, (n, P, S) columns) over states (N, n) in pieces of at most CHUNK samples; `columns` selects some."""
        q, qd, qdd = self._check(q, qd, qdd)
        if direction is None:
            direction = np.sign(qd)
        # One chunk size and all columns: one compilation serves every use of a model.
        for start in range(0, len(q), CHUNK):
            stop = min(start + CHUNK, len(q))
            block = np.asarray(_regressor(self, *[_padded(x[start:stop], CHUNK) for x in (q, qd, qdd, direction)]))
            kept = block[:, :, : stop - start]
            yield slice(start, stop), kept if columns is None else kept[:, columns]

    def torque(self, parameters, q, qd, qdd, direction=None) -> np.ndarray:
        """Joint torques (N, n) at states (N, n) for parameters (P,)."""
        q, qd, qdd = self._check(q, qd, qdd)
        out = np.empty(q.shape)
        for rows, block in self.chunks(q, qd, qdd, direction):
            out[rows] = np.tensordot(np.asarray(parameters), block, axes=(0, 1)).T
        return out

    def split(self, parameters):
        """Link inertials (n, 10), rotor inertias (n,) and friction (n, k) from parameters (P,)."""
        n, k = self.robot.dof, len(self.friction.parameters)
        parameters = np.asarray(parameters)
        rotor = parameters[10 * n : 11 * n] if self.rotor else np.zeros(n)
        return parameters[: 10 * n].reshape(n, 10), rotor, parameters[self.size - n * k :].reshape(n, k)

    def to_dict(self) -> dict:
        """JSON-able content; `from_dict` is its inverse."""
        law = {"name": self.friction.name}
        speed = getattr(self.friction.basis, "breakaway_speed", None)
        if speed is not None:
            law["breakaway_speed"] = speed
        return {"robot": dataclasses.asdict(self.robot), "friction": law, "rotor": self.rotor}

    @classmethod
    def from_dict(cls, data: dict) -> Model:
        """Inverse of `to_dict`."""
        law = data["friction"]
        friction = stribeck_law(law["breakaway_speed"]) if "breakaway_speed" in law else friction_law(law["name"])
        return cls(_robot_from_dict(data["robot"]), friction, data["rotor"])

    def _check(self, *arrays):
        arrays = [np.asarray(x, dtype=float) for x in arrays]
        for x in arrays:
            if x.ndim != 2 or x.shape[1] != self.robot.dof or x.shape != arrays[0].shape:
                raise ModelError(
                    f"states must be (samples, {self.robot.dof}) for robot '{self.robot.name}', got {x.shape}: "
                    "one column per moving joint"
                )
        return arrays

    def __hash__(self):
        return hash((self.robot, self.friction, self.rotor))


@partial(jax.jit, static_argnums=0)
def _regressor(model, q, qd, qdd, direction):
    return model.regressor_chunk(q, qd, qdd, direction)


def _nominal_friction(robot, name):
    """A friction parameter as the robot states it; the Stribeck excess may be stated as the breakaway torque."""
    if name == "stribeck":
        stated = robot.friction("breakaway", np.nan) - robot.friction("coulomb")
        return robot.friction(name) if np.isnan(stated).all() else np.nan_to_num(stated)
    return robot.friction(name)


def _robot_from_dict(data):
    parts = {"joints": Joint, "links": Link, "frames": Frame, "capsules": Capsule}
    content = {
        key: tuple(parts[key](**_tuples(item)) for item in value) if key in parts else _tuples({key: value})[key]
        for key, value in data.items()
    }
    return Robot(**content)


def _tuples(data):
    return {key: tuple(map(_tupled, value)) if isinstance(value, list | tuple) else value for key, value in data.items()}


def _tupled(value):
    return tuple(value) if isinstance(value, list) else value


def _padded(x, size):
    out = np.zeros((x.shape[1], size))
    out[:, : len(x)] = x.T
    return out
