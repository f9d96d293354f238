"""Robots from TOML: one [[joint]] per moving joint with its link, placed by xyz and rpy or by a Denavit-Hartenberg row.

    name = "crane"
    source = "where the figures come from"
    gravity = [0.0, 0.0, -9.81]          # optional, this is the default
    dh = "standard"                      # optional: d, a, alpha, theta instead of xyz, rpy ("modified": Craig's)

    [[joint]]
    name = "slew"
    link = "column"                      # the link that it moves
    parent = "base"                      # optional: a link above in the file; default the previous one
    kind = "revolute"                    # default; or "continuous", "prismatic"
    xyz = [0.0, 0.0, 0.4]                # joint frame in the parent link's frame at q = 0 [m]
    rpy = [0.0, "pi/2", 0.0]             # [rad], numbers or multiples of pi
    axis = [0.0, 0.0, 1.0]               # default
    position = [-3.0, 3.0]               # limits: position, velocity, acceleration, jerk, torque; all optional
    torque = 100.0
    mass = 12.0                          # of the link, with com [m] and inertia [kg m^2] about the centre of mass
    com = [0.0, 0.0, 0.2]
    inertia = [0.1, 0.0, 0.0, 0.1, 0.0, 0.05]   # xx xy xz yy yz zz, along axes turned by inertia_rpy (default none)
    rotor_inertia = 0.3                  # joint side [kg m^2]
    drive_gain = 10.0                    # joint side [N m/A]
    friction = { viscous = 20.0, coulomb = 12.0 }
    capsules = [{ start = [0.0, 0.0, 0.0], end = [0.0, 0.0, 0.4], radius = 0.1 }]

    [[frame]]                            # optional: fixed frames
    name = "tool0"
    link = "column"
    xyz = [0.0, 0.0, 0.4]
    rpy = [0.0, 0.0, 0.0]

    [[base_capsule]]                     # optional: capsules fixed to the base
    start = [0.0, 0.0, 0.0]
    end = [0.0, 0.0, 0.3]
    radius = 0.12

With `dh`, theta is the angle added to a revolute joint's q and d the length added to a prismatic joint's q.
Standard (distal): T = Rz(theta) Tz(d) Tx(a) Rx(alpha); com, inertia, capsules and frames are written in the DH frame at
the far end, which is kept as the frame "<link>_dh", while bayesid's own link frame is that of Rz(theta) Tz(d), on the
joint's axis. Modified (proximal, Craig): T = Rx(alpha) Tx(a) Rz(theta) Tz(d), alpha and a being those before the joint;
the link frame is the DH frame.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np

from bayesid.errors import RobotError
from bayesid.robots.inertial import moved, standard_from_com, tensor
from bayesid.robots.placement import clean_offset, compose, rotation_about, rotation_from_rpy, vector
from bayesid.robots.tree import GRAVITY, Capsule, Frame, Joint, Link, Robot

_PLACED = {"xyz", "rpy"}
_DH = {"d", "a", "alpha", "theta"}
_JOINT = {
    *("name", "link", "parent", "kind", "axis", "position", "velocity", "acceleration", "jerk", "torque"),
    *("mass", "com", "inertia", "inertia_rpy", "rotor_inertia", "drive_gain", "friction", "capsules"),
}
_ROBOT = {"name", "source", "notes", "base", "gravity", "dh", "joint", "frame", "base_capsule"}
_CAPSULE = {"start", "end", "radius"}
_MULTIPLE_OF_PI = re.compile(r"([+-]?)\s*(\d+(?:\.\d*)?)?\s*\*?\s*pi\s*(?:/\s*(\d+(?:\.\d*)?))?")


def read_robot_toml(path) -> Robot:
    """The robot described by a TOML file in the format at the head of this module.

    Raises RobotError, one line naming the file and the entry, for anything that cannot be read.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RobotError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise RobotError(f"{path}: not a text file in UTF-8") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RobotError(f"{path}: not valid TOML: {error}") from None
    return robot_from_table(table, str(path))


def robot_from_table(table: dict, where: str) -> Robot:
    """The robot described by parsed TOML; `where` names the file in errors."""
    _check_keys(table, _ROBOT, where)
    rows = table.get("joint", [])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise RobotError(f"{where}: no [[joint]] entry: a robot needs at least one")
    convention = table.get("dh")
    if convention not in (None, "standard", "modified"):
        raise RobotError(f'{where}: dh = {convention!r}: write "standard" or "modified", or leave it out')
    base = _text(table, "base", where, "base")
    joints, links, frames, capsules = [], [], [], []
    index = {base: -1}
    ends = {}
    for row in rows:
        number = len(joints) + 1
        at = f"{where}: joint {number}"
        name = _text(row, "name", at)
        at = f"{where}: joint '{name}'"
        _check_keys(row, _JOINT | (_DH if convention else _PLACED), at)
        link = _text(row, "link", at)
        if link in index:
            raise RobotError(f"{at}: the link '{link}' is there twice: each joint moves a link of its own")
        parent = _text(row, "parent", at, links[-1].name if links else base)
        if parent not in index:
            raise RobotError(f"{at}: its parent '{parent}' is not a link above it in the file")
        if convention:
            placed, tail = _dh_placement(row, convention, at)
            rotation, offset = compose(ends.get(index[parent], (np.eye(3), np.zeros(3))), placed)
            placed = (rotation + 0.0, clean_offset(offset))
        else:
            rotation = rotation_from_rpy(_vector(row, "rpy", at, 3, (0.0,) * 3))
            placed = (rotation, clean_offset(_vector(row, "xyz", at, 3, (0.0,) * 3)))
            tail = (np.eye(3), np.zeros(3))
        index[link] = len(joints)
        ends[index[link]] = tail
        joints.append(_joint(row, name, index[parent], placed, at))
        links.append(Link(link, vector(moved(_inertial(row, at), *tail))))
        if convention == "standard":
            frames.append(Frame(f"{link}_dh", index[link], vector(tail[1]), vector(tail[0])))
        capsules += [_capsule(item, index[link], tail, at) for item in _tables(row, "capsules", at)]
    for item in _tables(table, "frame", where):
        name = _text(item, "name", f"{where}: a [[frame]]")
        at = f"{where}: frame '{name}'"
        _check_keys(item, {"name", "link", "xyz", "rpy"}, at)
        link = _text(item, "link", at)
        if link not in index:
            raise RobotError(f"{at}: there is no link '{link}'")
        pose = (rotation_from_rpy(_vector(item, "rpy", at, 3, (0.0,) * 3)), _vector(item, "xyz", at, 3, (0.0,) * 3))
        rotation, offset = compose(ends.get(index[link], (np.eye(3), np.zeros(3))), pose)
        frames.append(Frame(name, index[link], vector(clean_offset(offset)), vector(rotation)))
    rest = (np.eye(3), np.zeros(3))
    capsules += [_capsule(item, -1, rest, where) for item in _tables(table, "base_capsule", where)]
    notes = table.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise RobotError(f"{where}: notes must be a list of texts")
    source = [f"source: {table['source']}"] if "source" in table else []
    try:
        return Robot(
            name=_text(table, "name", where),
            joints=tuple(joints),
            links=tuple(links),
            frames=tuple(frames),
            capsules=tuple(capsules),
            gravity=vector(_vector(table, "gravity", where, 3, GRAVITY)),
            base=base,
            notes=(*source, *notes),
        )
    except RobotError as error:
        raise RobotError(f"{where}: {error}") from None


def _joint(row, name, parent, placed, at) -> Joint:
    rotation, offset = placed
    axis = np.array(_vector(row, "axis", at, 3, (0.0, 0.0, 1.0)))
    norm = np.linalg.norm(axis)
    if abs(norm - 1.0) > 1e-3:
        raise RobotError(f"{at}: its axis has length {norm:.4g}, not 1")
    lower, upper = _vector(row, "position", at, 2, (-np.inf, np.inf), infinite=True)
    friction = row.get("friction", {})
    if not isinstance(friction, dict):
        raise RobotError(f"{at}: friction must be a table such as {{ viscous = 1.0 }}")
    limits = {key: _number(row, key, at, np.inf, infinite=True) for key in ("velocity", "acceleration", "jerk", "torque")}
    for key, value in limits.items():
        if value < 0:
            raise RobotError(f"{at}: its {key} limit {value:g} is negative")
    return Joint(
        name=name,
        kind=_text(row, "kind", at, "revolute"),
        parent=parent,
        xyz=vector(offset),
        rotation=vector(rotation),
        axis=vector(axis / norm),
        lower=float(lower),
        upper=float(upper),
        rotor_inertia=_number(row, "rotor_inertia", at, 0.0),
        drive_gain=_number(row, "drive_gain", at, float("nan")),
        friction=tuple((key, _number(friction, key, f"{at}: friction", 0.0)) for key in friction),
        **limits,
    )


def _dh_placement(row, convention, at):
    """Joint frame in the parent's (far) frame, and the far frame in the link frame."""
    values = {key: _angle(row.get(key, 0.0), f"{at}: {key}") for key in _DH}
    along_z = (rotation_about("z", values["theta"]), np.array([0.0, 0.0, values["d"]]))
    along_x = (rotation_about("x", values["alpha"]), np.array([values["a"], 0.0, 0.0]))
    still = (np.eye(3), np.zeros(3))
    if convention == "modified":
        return compose(along_x, along_z), still
    return along_z, along_x


def _inertial(row, at) -> np.ndarray:
    present = [key for key in ("mass", "com", "inertia") if key in row]
    if not present:
        return np.zeros(10)
    if "mass" not in row:
        raise RobotError(f"{at}: it has {' and '.join(present)} but no mass")
    inertia = tensor(_vector(row, "inertia", at, 6, (0.0,) * 6))
    turn = rotation_from_rpy(_vector(row, "inertia_rpy", at, 3, (0.0,) * 3))
    return standard_from_com(_number(row, "mass", at, 0.0), _vector(row, "com", at, 3, (0.0,) * 3), turn @ inertia @ turn.T)


def _capsule(item, parent, tail, at) -> Capsule:
    _check_keys(item, _CAPSULE, f"{at}: a capsule")
    rotation, offset = tail
    start, end = (rotation @ np.array(_vector(item, key, at, 3)) + offset for key in ("start", "end"))
    radius = _number(item, "radius", at)
    if radius <= 0:
        raise RobotError(f"{at}: a capsule has the radius {radius:g}, not a positive one")
    return Capsule(parent, vector(start), vector(end), radius)


def _tables(table, key, at) -> list[dict]:
    items = table.get(key, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise RobotError(f"{at}: {key} must be a list of tables")
    return items


def _check_keys(table, known, at):
    unknown = sorted(set(table) - known)
    if unknown:
        raise RobotError(f"{at}: unknown entry '{unknown[0]}': known are {', '.join(sorted(known))}")


def _text(table, key, at, default=None) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or not value:
        raise RobotError(f"{at}: {key} is missing" if value is None else f"{at}: {key} = {value!r} is not a name")
    return value


def _angle(value, at, infinite=False) -> float:
    """A number, or a multiple of pi such as "pi", "-pi/2", "2pi/3"."""
    if isinstance(value, str):
        match = _MULTIPLE_OF_PI.fullmatch(value.strip())
        if match:
            sign, factor, divisor = match.groups()
            return (-1.0 if sign == "-" else 1.0) * float(factor or 1.0) * np.pi / float(divisor or 1.0)
        try:
            value = float(value)
        except ValueError:
            raise RobotError(f"{at}: {value!r} is neither a number nor a multiple of pi") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or np.isnan(value):
        raise RobotError(f"{at}: {value!r} is not a number")
    if np.isinf(value) and not infinite:
        raise RobotError(f"{at}: {value!r} is not finite")
    return float(value)


def _number(table, key, at, default=None, infinite=False) -> float:
    if key not in table:
        if default is None:
            raise RobotError(f"{at}: {key} is missing")
        return float(default)
    return _angle(table[key], f"{at}: {key}", infinite)


def _vector(table, key, at, size, default=None, infinite=False) -> tuple[float, ...]:
    if key not in table:
        if default is None:
            raise RobotError(f"{at}: {key} is missing")
        return tuple(default)
    values = table[key]
    if not isinstance(values, list) or len(values) != size:
        raise RobotError(f"{at}: {key} must be a list of {size} numbers")
    return tuple(_angle(value, f"{at}: {key}", infinite) for value in values)
