"""The kinematic tree of a robot: moving joints, the links they carry, fixed frames. SI units, radians."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from bayesid.errors import RobotError

JointKind = Literal["revolute", "continuous", "prismatic"]
Vector3 = tuple[float, float, float]
Matrix3 = tuple[float, float, float, float, float, float, float, float, float]

IDENTITY: Matrix3 = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
GRAVITY: Vector3 = (0.0, 0.0, -9.81)
UNKNOWN = float("nan")
INERTIAL_NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
INERTIAL_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)


@dataclass(frozen=True)
class Joint:
    """One moving joint.

    `xyz` and `rotation` (3x3, row-major) place the joint frame in the frame of its parent link at q = 0; `axis` is a
    unit vector in the joint frame; `parent` is the index of the parent link, -1 for the base. Limits are infinite where
    unknown. `drive_gain` is N m per A on the joint side (N per A for a prismatic joint), NaN where unknown; `friction`
    holds nominal joint-side friction parameters as (name, value) pairs.
    """

    name: str
    kind: JointKind
    parent: int
    xyz: Vector3 = (0.0, 0.0, 0.0)
    rotation: Matrix3 = IDENTITY
    axis: Vector3 = (0.0, 0.0, 1.0)
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    acceleration: float = np.inf
    jerk: float = np.inf
    torque: float = np.inf
    rotor_inertia: float = 0.0
    drive_gain: float = UNKNOWN
    friction: tuple[tuple[str, float], ...] = ()

    def __post_init__(self):
        # NaN equals and hashes as itself only by identity: all joints share one, so that equal robots compare equal.
        if np.isnan(self.drive_gain):
            object.__setattr__(self, "drive_gain", UNKNOWN)

    def _values(self):
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def __eq__(self, other):
        # Tuples compare by identity first; from Python 3.13 on, data classes do not.
        return self._values() == other._values() if isinstance(other, Joint) else NotImplemented

    def __reduce__(self):
        return Joint, self._values()


@dataclass(frozen=True)
class Link:
    """The body a joint moves: standard inertial parameters (10,) about the origin of the link frame, along its axes.

    Order: m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz [kg, kg m, kg m^2].
    """

    name: str
    inertial: tuple[float, ...] = (0.0,) * 10


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a moving link (`parent` its index, -1 for the base)."""

    name: str
    parent: int
    xyz: Vector3 = (0.0, 0.0, 0.0)
    rotation: Matrix3 = IDENTITY


@dataclass(frozen=True)
class Capsule:
    """A segment from `start` to `end` with a radius, in the frame of link `parent` (-1: the base) [m]."""

    parent: int
    start: Vector3
    end: Vector3
    radius: float


@dataclass(frozen=True)
class Robot:
    """An immutable kinematic tree. Joint i moves link i; parents come before children.

    Hashable and comparable by content, so that it can be a static argument of `jax.jit`.
    """

    name: str
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    frames: tuple[Frame, ...] = ()
    capsules: tuple[Capsule, ...] = ()
    gravity: Vector3 = GRAVITY
    base: str = "base"
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self):
        if not self.joints:
            raise RobotError(f"robot '{self.name}' has no moving joint")
        if len(self.joints) != len(self.links):
            raise RobotError(f"robot '{self.name}' has {len(self.joints)} joints but {len(self.links)} moving links")
        for i, joint in enumerate(self.joints):
            if not -1 <= joint.parent < i:
                raise RobotError(f"robot '{self.name}': the parent of joint '{joint.name}' must come before it")
            if joint.kind not in ("revolute", "continuous", "prismatic"):
                raise RobotError(f"robot '{self.name}': joint '{joint.name}' has the unsupported kind '{joint.kind}'")
            numbers = np.array([*joint.xyz, *joint.rotation, *joint.axis, joint.rotor_inertia, *self.links[i].inertial])
            if not np.isfinite(numbers).all():
                raise RobotError(f"robot '{self.name}': joint '{joint.name}' or its link holds a number not finite")
            R = np.reshape(joint.rotation, (3, 3))
            if np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0:
                raise RobotError(f"robot '{self.name}': the rotation of joint '{joint.name}' is no rotation matrix")
            if abs(np.linalg.norm(joint.axis) - 1.0) > 1e-6:
                raise RobotError(f"robot '{self.name}': the axis of joint '{joint.name}' is no unit vector")
            if joint.lower > joint.upper:
                raise RobotError(f"robot '{self.name}': joint '{joint.name}' has its lower limit above its upper one")
        for part in (*self.frames, *self.capsules):
            if not -1 <= part.parent < self.dof:
                raise RobotError(f"robot '{self.name}': a frame or capsule hangs on link {part.parent}, which is not there")
        bodies = (self.base, *self.link_names, *(frame.name for frame in self.frames))
        for what, names in (("joint", self.joint_names), ("link or frame", bodies)):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise RobotError(f"robot '{self.name}': the {what} name '{twice[0]}' is used twice")

    def __hash__(self):
        return self._hash

    def __reduce__(self):
        # Copies are built anew: a cached hash would be wrong in another process.
        return Robot, tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    @cached_property
    def _hash(self):
        return hash((self.name, self.joints, self.links, self.frames, self.capsules, self.gravity))

    @property
    def dof(self) -> int:
        """Number of moving joints, which is the number of moving links."""
        return len(self.joints)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        return tuple(link.name for link in self.links)

    @cached_property
    def parents(self) -> np.ndarray:
        """(n,) index of each link's parent, -1 for the base."""
        return _frozen([joint.parent for joint in self.joints], int)

    @cached_property
    def revolute(self) -> np.ndarray:
        """(n,) True for revolute and continuous joints, False for prismatic ones."""
        return _frozen([joint.kind != "prismatic" for joint in self.joints], bool)

    @cached_property
    def ancestors(self) -> np.ndarray:
        """(n, n) True where joint j moves link i: entry [i, j]."""
        reach = np.eye(self.dof, dtype=bool)
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                reach[i] |= reach[parent]
        return _frozen(reach, bool)

    @cached_property
    def rotations(self) -> np.ndarray:
        """(n, 3, 3) rotation of each joint frame in its parent link frame at q = 0."""
        return _frozen([joint.rotation for joint in self.joints]).reshape(-1, 3, 3)

    @cached_property
    def translations(self) -> np.ndarray:
        """(n, 3) origin of each joint frame in its parent link frame at q = 0 [m]."""
        return _frozen([joint.xyz for joint in self.joints])

    @cached_property
    def axes(self) -> np.ndarray:
        """(n, 3) unit joint axes in the joint frames."""
        return _frozen([joint.axis for joint in self.joints])

    @cached_property
    def inertials(self) -> np.ndarray:
        """(n, 10) nominal standard inertial parameters."""
        return _frozen([link.inertial for link in self.links])

    @cached_property
    def rotor_inertias(self) -> np.ndarray:
        """(n,) nominal rotor inertias, joint side [kg m^2, kg for a prismatic joint]."""
        return _frozen([joint.rotor_inertia for joint in self.joints])

    @cached_property
    def drive_gains(self) -> np.ndarray:
        """(n,) nominal drive gains [N m/A], NaN where unknown."""
        return _frozen([joint.drive_gain for joint in self.joints])

    def limit(self, name: Literal["lower", "upper", "velocity", "acceleration", "jerk", "torque"]) -> np.ndarray:
        """(n,) one kind of joint limit, infinite where there is none."""
        return np.array([getattr(joint, name) for joint in self.joints], dtype=float)

    def friction(self, name: str, default: float = 0.0) -> np.ndarray:
        """(n,) one nominal friction parameter by name, `default` where a joint has none."""
        return np.array([dict(joint.friction).get(name, default) for joint in self.joints], dtype=float)

    def frame(self, name: str) -> Frame:
        """The frame of that name; a moving link's own frame counts. Raises RobotError when there is none."""
        for frame in self.frames:
            if frame.name == name:
                return frame
        if name in self.link_names:
            return Frame(name, self.link_names.index(name))
        known = ", ".join([*self.link_names, *(frame.name for frame in self.frames)])
        raise RobotError(f"robot '{self.name}' has no frame '{name}': it has {known}")

    def with_inertials(self, inertials, rotor_inertias=None) -> Robot:
        """The same tree with other standard inertial parameters (n, 10) and, if given, rotor inertias (n,)."""
        links = tuple(
            dataclasses.replace(link, inertial=tuple(float(x) for x in row))
            for link, row in zip(self.links, inertials, strict=True)
        )
        joints = self.joints
        if rotor_inertias is not None:
            joints = tuple(
                dataclasses.replace(joint, rotor_inertia=float(value))
                for joint, value in zip(self.joints, rotor_inertias, strict=True)
            )
        return dataclasses.replace(self, links=links, joints=joints)

    def __repr__(self):
        return f"Robot({self.name!r}, {self.dof} joints: {', '.join(self.joint_names)})"


def _frozen(values, dtype=float):
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array
