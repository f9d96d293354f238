"""The unknowns of a robot: link inertials, rotor inertias, friction; their order, names, units and torque columns."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import FrictionLaw, friction_law, inverse_dynamics, joint_regressor, stribeck_law, stribeck_law_about
from bayesid.errors import ModelError
from bayesid.models.base import BaseParameters, base_parameters
from bayesid.robots import INERTIAL_NAMES, INERTIAL_UNITS, Capsule, Frame, Joint, Link, Robot
from bayesid.signals import Samples

CHUNK = 1024


@dataclass(frozen=True)
class Model:
    """A robot with a friction law and, unless `rotor` is False, rotor inertias.

    Parameter order (P in all): link inertials link by link, rotor inertias joint by joint, friction joint by joint.

    Friction that grows with the load on the gear takes the load from `reference`, the link and rotor parameters of an
    earlier fit: the size of the torque without friction, which keeps the model linear. None stands for the robot's own
    values, until `identify` or the posterior puts those of a fit in their place.
    """

    robot: Robot
    friction: str | FrictionLaw = "coulomb-offset"
    rotor: bool = True
    reference: tuple[float, ...] | None = None

    def __post_init__(self):
        if isinstance(self.friction, str):
            object.__setattr__(self, "friction", friction_law(self.friction))
        if self.reference is not None:
            if "load" not in self.friction.needs:
                raise ModelError(f"friction law '{self.friction.name}' does not depend on load: it takes no reference")
            object.__setattr__(self, "reference", tuple(float(value) for value in self.reference))
            if len(self.reference) != self.rigid or not np.isfinite(self.reference).all():
                raise ModelError(
                    f"the reference of load friction needs the {self.rigid} finite link and rotor parameters of robot "
                    f"'{self.robot.name}', got {len(self.reference)}"
                )

    @property
    def rigid(self) -> int:
        """Number of link and rotor parameters; friction follows them."""
        return (10 + self.rotor) * self.robot.dof

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
            units += [unit if turns else _linear(unit) for unit in self.friction.units]
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

    def stated(self, names) -> np.ndarray:
        """(k,) the robot description's own values of these standard or base parameters, NaN where it does not state them.

        A rotor inertia or friction parameter of 0 and a link without mass count as not stated, as does each combination with
        one of them.
        """
        known = self.nominal != 0
        known[: 10 * self.robot.dof] = np.repeat(self.robot.inertials[:, 0] > 0, 10)
        values = dict(zip(self.names, np.where(known, self.nominal, np.nan)))
        if set(names) <= set(values):
            return np.array([values[name] for name in names])
        base = self.base
        missing = (base.matrix[:, ~known] != 0).any(axis=1)
        projected = np.where(missing, np.nan, base.project(self.nominal))
        for name, kind, value in zip(base.names, base.kinds, projected):
            values[f"base.{name}" if kind == "base" else name] = value
        return np.array([values.get(name, np.nan) for name in names])

    @cached_property
    def origin(self) -> np.ndarray:
        """(P,) what is taken off parameters before columns multiply them: zero unless friction is linearised."""
        out = np.zeros(self.size)
        if self.friction.origin is not None:
            out[self.rigid :] = np.ravel(self.friction.origin)
        return out

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

    def chunks_of(self, samples: Samples, *, filtered: bool = True, columns=None):
        """`chunks` over samples, for their filtered effort or the unfiltered one."""
        friction = None
        if self.friction.sharp and samples.fine is not None:
            friction = samples.fine.columns(self.friction.columns, samples.time, filtered)
        direction = samples.direction if filtered else samples.direction_measured
        return self.chunks(samples.q, samples.qd, samples.qdd, direction, columns, samples.temperature, friction)

    def regressor_chunk(self, q, qd, qdd, direction=None, temperature=None):
        """Joint torque columns (n, P, S) at states (n, S), sample axis last; traceable by JAX."""
        return _columns(*self._form, q, qd, qdd, direction, temperature)

    @cached_property
    def _form(self):
        reference = None
        if "load" in self.friction.needs:
            reference = self.nominal[: self.rigid] if self.reference is None else np.array(self.reference)
        return self.robot, self.friction, self.rotor, reference

    def load(self, q, qd, qdd):
        """(n, S) size of the torque that gears transmit at states (n, S), None unless friction depends on it; traceable."""
        reference = self._form[-1]
        if reference is None:
            return None
        links, rotors = reference[: 10 * self.robot.dof].reshape(-1, 10), reference[10 * self.robot.dof :]
        torque = inverse_dynamics(self.robot, q, qd, qdd, links, rotors if self.rotor else np.zeros(self.robot.dof))
        return jnp.abs(torque)

    def regressor(self, q, qd, qdd, direction=None, temperature=None) -> np.ndarray:
        """Joint torque columns (N, n, P) at states (N, n); all in memory, see `chunks` for long logs."""
        q, qd, qdd = self._check(q, qd, qdd)
        out = np.empty((len(q), self.robot.dof, self.size))
        for rows, block in self.chunks(q, qd, qdd, direction, temperature=temperature):
            out[rows] = np.moveaxis(block, 2, 0)
        return out

    def chunks(self, q, qd, qdd, direction=None, columns=None, temperature=None, friction=None):
        """Yield (slice, (n, P, S) columns) over states (N, n) in pieces of at most CHUNK samples; `columns` selects some.

        `temperature` (N, n) [deg C] of the motors is looked at only by a law that depends on it. `friction` (k, N, n) are the
        columns of the law where they are known already.
        """
        states = self._check(q, qd, qdd, np.sign(qd) if direction is None else direction)
        if "temperature" in self.friction.needs and temperature is not None:
            states = self._check(*states, temperature)
        # One chunk size and all columns: one compilation serves every use of a model.
        for start in range(0, len(states[0]), CHUNK):
            stop = min(start + CHUNK, len(states[0]))
            block = np.asarray(_regressor(*self._form, *[_padded(x[start:stop], CHUNK) for x in states]))
            kept = block[:, :, : stop - start]
            if friction is not None:
                kept = kept.copy()
                for j in range(self.robot.dof):
                    first = self.rigid + j * len(friction)
                    kept[j, first : first + len(friction)] = friction[:, start:stop, j]
            yield slice(start, stop), kept if columns is None else kept[:, columns]

    def torque(self, parameters, q, qd, qdd, direction=None, temperature=None) -> np.ndarray:
        """Joint torques (N, n) at states (N, n) for parameters (P,)."""
        q, qd, qdd = self._check(q, qd, qdd)
        out, parameters = np.empty(q.shape), np.asarray(parameters) - self.origin
        for rows, block in self.chunks(q, qd, qdd, direction, temperature=temperature):
            out[rows] = np.tensordot(parameters, block, axes=(0, 1)).T
        return out

    def dry_friction(self, values: dict[str, float], q, qd, qdd) -> np.ndarray:
        """(N, n) size of the friction that may hold a joint at rest at states (N, n), of parameters by name: the larger of its
        Coulomb torques and, where the law has it, the part that grows with load."""
        q, qd, qdd = self._check(q, qd, qdd)
        joints = self.robot.joint_names
        coulomb = [[abs(v) for name, v in values.items() if name.startswith(f"{joint}.coulomb")] for joint in joints]
        out = np.tile([max(sizes, default=0.0) for sizes in coulomb], (len(q), 1))
        if "load" in self.friction.needs:
            names = [f"{joint}.load_friction" for joint in joints]
            share = np.array([abs(values.get(name, 0.0)) for name in names])
            columns = [self.names.index(name) for name in names]
            for rows, block in self.chunks(q, qd, qdd, np.ones_like(qd), columns):
                out[rows] += share * np.einsum("jjs->sj", block)
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
        if self.friction.name == "stribeck":
            law |= dataclasses.asdict(self.friction.basis)
        if self.reference is not None:
            law["reference"] = list(self.reference)
        return {"robot": dataclasses.asdict(self.robot), "friction": law, "rotor": self.rotor}

    @classmethod
    def from_dict(cls, data: dict) -> Model:
        """Inverse of `to_dict`."""
        law = data["friction"]
        if law["name"] == "stribeck":
            values = {name: law[name] for name in ("breakaway_speed", "coulomb", "excess") if name in law}
            friction = (stribeck_law_about if len(values) == 3 else stribeck_law)(**values)
        else:
            friction = friction_law(law["name"])
        return cls(_robot_from_dict(data["robot"]), friction, data["rotor"], law.get("reference"))

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
        return hash((self.robot, self.friction, self.rotor, self.reference))


def _columns(robot, friction, rotor, reference, q, qd, qdd, direction, temperature=None):
    rigid = joint_regressor(robot, q, qd, qdd)
    n, samples = robot.dof, q.shape[1]
    eye = jnp.eye(n)[:, :, None]
    if rotor:
        rigid = jnp.concatenate([rigid, eye * qdd[None]], axis=1)
    load = None if reference is None else jnp.abs(jnp.einsum("jps,p->js", rigid, reference))
    columns = friction.columns(qd, direction, load=load, temperature=temperature)
    if not len(columns):
        return rigid
    spread = eye[:, :, None] * jnp.swapaxes(columns, 0, 1)[None]
    return jnp.concatenate([rigid, spread.reshape(n, -1, samples)], axis=1)


# The reference of load friction is traced: a better one compiles nothing anew.
_regressor = partial(jax.jit, static_argnums=(0, 1, 2))(_columns)


def _linear(unit):
    """The unit at a prismatic joint of what has `unit` at a revolute one."""
    for turning, sliding in (("N m s/rad", "N s/m"), ("N m s/(rad K)", "N s/(m K)"), ("N m", "N"), ("rad", "m")):
        unit = unit.replace(turning, sliding)
    return unit


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
