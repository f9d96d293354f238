"""Constraints on the state at each instant, beyond the linear joint limits: torque, contact with itself, walls, the floor,
a tool box.

Each is a frozen dataclass with `margins(robot, q, qd, qdd)`, (k, S) for states (n, S), positive where satisfied and
traceable by JAX; `measured(...)`, the same in NumPy for the certificate; `labels(robot)` (k,) in words; `settings()`;
`orders` is 1 when only q matters, 3 when qd and qdd do too. Margins are in the constraint's unit, torques relative to their
limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import frame_pose, inverse_dynamics, link_poses
from bayesid.errors import DesignError
from bayesid.excitation.capsules import (
    collision_pairs,
    place,
    random_poses,
    segment_distance,
    segment_distance_by_cases,
)
from bayesid.models import Model
from bayesid.robots import Capsule


class Constraint(Protocol):
    name: ClassVar[str]
    orders: ClassVar[int]

    def labels(self, robot) -> tuple[str, ...]: ...

    def margins(self, robot, q, qd, qdd): ...

    def measured(self, robot, q, qd, qdd) -> np.ndarray: ...

    def settings(self) -> dict: ...


@dataclass(frozen=True, eq=False)
class TorqueLimit:
    """Joint torque within its limit (n,), friction acting in either direction; relative to the limit.

    The torque is that of `parameters` (P,) of the model. With a `covariance` (P, P) the limit is kept `sigmas` standard
    deviations away: limit - |tau| - sigmas * std(tau).
    """

    model: Model
    limit: np.ndarray
    parameters: np.ndarray
    covariance: np.ndarray | None = None
    sigmas: float = 2.0
    name: ClassVar[str] = "torque"
    orders: ClassVar[int] = 3

    @classmethod
    def nominal(cls, model: Model, limit):
        return cls(model, np.asarray(limit, dtype=float), model.nominal)

    @cached_property
    def _limited(self):
        return np.flatnonzero(np.isfinite(self.limit))

    def labels(self, robot):
        names = [robot.joint_names[j] for j in self._limited]
        return tuple(f"torque of {name}, {sign}" for sign in ("moving forward", "moving backward") for name in names)

    def margins(self, robot, q, qd, qdd):
        link, rotor, friction = self.model.split(self.parameters)
        rigid, load = inverse_dynamics(self.model.robot, q, qd, qdd, link, rotor), self.model.load(q, qd, qdd)
        out = []
        for way in (1.0, -1.0):
            tau = rigid
            columns = self.model.friction.columns(qd, jnp.full_like(qd, way), load=load)
            if len(columns):
                tau = tau + jnp.einsum("kjs,jk->js", columns, friction)
            out.append(tau[self._limited])
        limit = self.limit[self._limited, None]
        spread = 0.0
        if self.covariance is not None:
            rows = self.model.regressor_chunk(q, qd, qdd, jnp.ones_like(qd))[self._limited]
            variance = jnp.einsum("jps,pr,jrs->js", rows, self.covariance, rows)
            spread = self.sigmas * jnp.sqrt(jnp.maximum(variance, 1e-18))
        return jnp.concatenate([(limit - spread - _absolute(tau)) / limit for tau in out])

    def measured(self, robot, q, qd, qdd):
        limit = self.limit[self._limited]
        spread = 0.0
        if self.covariance is not None:
            spread = np.empty(q.T.shape)
            for rows, block in self.model.chunks(q.T, qd.T, qdd.T, np.ones(q.T.shape)):
                variance = np.einsum("jps,pr,jrs->sj", block, self.covariance, block, optimize=True)
                spread[rows] = self.sigmas * np.sqrt(np.maximum(variance, 0.0))
            spread = spread[:, self._limited]
        out = []
        for way in (1.0, -1.0):
            tau = self.model.torque(self.parameters, q.T, qd.T, qdd.T, np.full(q.T.shape, way))[:, self._limited]
            out.append(((limit - spread - np.abs(tau)) / limit).T)
        return np.concatenate(out)

    def settings(self):
        uncertain = self.covariance is not None
        return {
            "name": self.name,
            "limit": [float(x) if np.isfinite(x) else None for x in self.limit],
            "friction": self.model.friction.name,
            "load_reference": self.model.reference,
            "rotor": self.model.rotor,
            "parameters": np.asarray(self.parameters).tolist(),
            "covariance": np.asarray(self.covariance).tolist() if uncertain else None,
            "sigmas": self.sigmas,
        }


@dataclass(frozen=True)
class SelfCollision:
    """Capsules of the robot at least `clearance` [m] apart."""

    clearance: float = 0.01
    name: ClassVar[str] = "self-collision"
    orders: ClassVar[int] = 1

    def labels(self, robot):
        capsules = robot.capsules
        return tuple(f"distance of {_link(robot, capsules[i])} and {_link(robot, capsules[j])}" for i, j in _pairs(robot))

    def margins(self, robot, q, qd, qdd):
        start, end = place(robot.capsules, *link_poses(robot, q))
        first, second = (np.array(x) for x in zip(*_pairs(robot)))
        distance = jax.vmap(segment_distance)(start[first], end[first], start[second], end[second])
        reach = np.array([robot.capsules[i].radius + robot.capsules[j].radius for i, j in _pairs(robot)])
        return distance - (reach + self.clearance)[:, None]

    def measured(self, robot, q, qd, qdd):
        start, end = _placed(robot, robot.capsules, q)
        out = []
        for i, j in _pairs(robot):
            gap = segment_distance_by_cases(start[i], end[i], start[j], end[j])
            out.append(gap - robot.capsules[i].radius - robot.capsules[j].radius - self.clearance)
        return np.array(out)

    def settings(self):
        return {"name": self.name, "clearance": self.clearance}


@dataclass(frozen=True)
class Wall:
    """All moving capsules on the side of a plane where normal . x >= offset + clearance [m]; a floor is a wall facing up.

    A robot without capsules is taken as its link and frame origins.
    """

    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    offset: float = 0.0
    clearance: float = 0.0
    name: ClassVar[str] = "wall"
    orders: ClassVar[int] = 1

    def __post_init__(self):
        size = float(np.linalg.norm(self.normal))
        if not (np.isfinite(size) and size > 0):
            raise DesignError(f"a wall's normal must be a vector of three numbers that is not zero, got {self.normal}")
        object.__setattr__(self, "normal", tuple(float(x) / size for x in self.normal))
        object.__setattr__(self, "offset", float(self.offset) / size)

    def labels(self, robot):
        what = f"distance to the plane {', '.join(f'{x:g}' for x in self.normal)} at {self.offset:g} m"
        return tuple(f"{what} of {_link(robot, c)}" for c in self._bodies(robot))

    def margins(self, robot, q, qd, qdd):
        start, end = place(self._bodies(robot), *link_poses(robot, q))
        normal = np.array(self.normal)
        height = jnp.minimum(jnp.einsum("i,cis->cs", normal, start), jnp.einsum("i,cis->cs", normal, end))
        return height - self._needed(robot)[:, None]

    def measured(self, robot, q, qd, qdd):
        ends = np.stack(_placed(robot, self._bodies(robot), q))
        return np.einsum("i,ecis->ecs", self.normal, ends).min(axis=0) - self._needed(robot)[:, None]

    def _needed(self, robot):
        return np.array([c.radius for c in self._bodies(robot)]) + self.offset + self.clearance

    def _bodies(self, robot):
        return _moving(robot, self.normal)

    def settings(self):
        return {"name": self.name, "normal": list(self.normal), "offset": self.offset, "clearance": self.clearance}


@dataclass(frozen=True)
class ToolBox:
    """The origin of a frame inside a box of the base frame, corners `lower` and `upper` [m]; infinite sides are open."""

    lower: tuple[float, float, float]
    upper: tuple[float, float, float]
    frame: str = "tool0"
    name: ClassVar[str] = "tool-box"
    orders: ClassVar[int] = 1

    def __post_init__(self):
        if not np.all(np.array(self.lower) < np.array(self.upper)):
            raise DesignError(f"the tool box is empty: lower corner {self.lower}, upper corner {self.upper}")

    @property
    def _sides(self):
        return [(axis, sign) for sign in (1, -1) for axis in range(3) if np.isfinite((self.lower, self.upper)[sign < 0][axis])]

    def labels(self, robot):
        return tuple(
            f"{self.frame} {'above the lower' if s > 0 else 'below the upper'} {'xyz'[a]} side" for a, s in self._sides
        )

    def margins(self, robot, q, qd, qdd):
        _, point = frame_pose(robot, q, self.frame)
        return jnp.stack([point[a] - self.lower[a] if s > 0 else self.upper[a] - point[a] for a, s in self._sides])

    def measured(self, robot, q, qd, qdd):
        frame = robot.frame(self.frame)
        body = Capsule(frame.parent, frame.xyz, frame.xyz, 0.0)
        point = _placed(robot, (body,), q)[0][0]
        return np.stack([point[a] - self.lower[a] if s > 0 else self.upper[a] - point[a] for a, s in self._sides])

    def settings(self):
        return {
            "name": self.name,
            "lower": [x if np.isfinite(x) else None for x in self.lower],
            "upper": [x if np.isfinite(x) else None for x in self.upper],
            "frame": self.frame,
        }


def constraint_from_settings(settings: dict, robot) -> Constraint:
    """The constraint that `settings()` described."""
    values = dict(settings)
    name = values.pop("name", None)
    if name == "torque":
        model = Model(robot, values["friction"], values["rotor"], values.get("load_reference"))
        limit = np.array([np.inf if x is None else x for x in values["limit"]])
        covariance = None if values["covariance"] is None else np.array(values["covariance"])
        return TorqueLimit(model, limit, np.array(values["parameters"]), covariance, values["sigmas"])
    if name == "tool-box":
        lower = tuple(-np.inf if x is None else x for x in values["lower"])
        upper = tuple(np.inf if x is None else x for x in values["upper"])
        return ToolBox(lower, upper, values["frame"])
    if name == "wall":
        return Wall(tuple(values["normal"]), values["offset"], values["clearance"])
    if name == "self-collision":
        return SelfCollision(values["clearance"])
    raise DesignError(f"unknown constraint {name!r}: known are torque, self-collision, wall, tool-box")


def usable(constraint: Constraint, robot) -> bool:
    """Whether the constraint binds anything on this robot: it has limits, pairs or bodies to keep apart."""
    return len(constraint.labels(robot)) > 0


@lru_cache(maxsize=32)
def _pairs(robot):
    return collision_pairs(robot)


@lru_cache(maxsize=32)
def _moving(robot, normal):
    """Capsules whose height along `normal` the joints change by more than 10 mm."""
    bodies = robot.capsules
    if not bodies:
        origin = (0.0, 0.0, 0.0)
        bodies = tuple(Capsule(i, origin, origin, 0.0) for i in range(robot.dof))
        bodies += tuple(Capsule(f.parent, f.xyz, f.xyz, 0.0) for f in robot.frames)
    start, end = _placed(robot, bodies, random_poses(robot))
    height = np.minimum(np.einsum("i,cis->cs", normal, start), np.einsum("i,cis->cs", normal, end))
    return tuple(body for body, moves in zip(bodies, np.ptp(height, axis=1) > 0.01) if moves)


def _placed(robot, bodies, q):
    """Ends (bodies, 3, S) by plain NumPy matrix products along the tree, independent of `bayesid.dynamics`."""
    samples = q.shape[1]
    rotation = np.empty((robot.dof, samples, 3, 3))
    origin = np.empty((robot.dof, samples, 3))
    for i, joint in enumerate(robot.joints):
        axis = np.array(joint.axis)
        hat = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
        turn = np.tile(np.eye(3), (samples, 1, 1))
        slide = np.zeros((samples, 3))
        if robot.revolute[i]:
            turn += np.sin(q[i])[:, None, None] * hat + (1 - np.cos(q[i]))[:, None, None] * (hat @ hat)
        else:
            slide = q[i][:, None] * axis
        base_rotation, base_origin = np.eye(3), np.zeros(3)
        if joint.parent >= 0:
            base_rotation, base_origin = rotation[joint.parent], origin[joint.parent]
        fixed = robot.rotations[i]
        rotation[i] = base_rotation @ fixed @ turn
        shift = np.array(joint.xyz) + slide @ fixed.T
        origin[i] = base_origin + np.einsum("...ij,sj->si" if joint.parent < 0 else "sij,sj->si", base_rotation, shift)
    starts, ends = [], []
    for body in bodies:
        for point, out in ((body.start, starts), (body.end, ends)):
            if body.parent < 0:
                out.append(np.tile(np.reshape(point, (3, 1)), (1, samples)))
            else:
                out.append((origin[body.parent] + rotation[body.parent] @ np.array(point)).T)
    return np.stack(starts), np.stack(ends)


def _absolute(x):
    """|x| with the slope 0 at 0."""
    return jnp.sqrt(x * x + 1e-12)


def _link(robot, capsule):
    return robot.base if capsule.parent < 0 else robot.link_names[capsule.parent]
