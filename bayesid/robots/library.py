"""Robots by name or by file."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import cache
from importlib.resources import files
from pathlib import Path

from bayesid.errors import RobotError
from bayesid.robots.mjcf import read_mjcf
from bayesid.robots.robot_file import read_robot_toml
from bayesid.robots.tree import Robot
from bayesid.robots.urdf import read_urdf

_ORDER = ("ur3", "ur3e", "ur5", "ur5e", "ur10", "ur10e", "ur16e", "ur20", "ur30", "panda", "two_link", "6rp")


def builtin_names() -> tuple[str, ...]:
    """Names of the built-in robots."""
    names = {item.name.removesuffix(".toml") for item in _folder().iterdir() if item.name.endswith(".toml")}
    return (*(name for name in _ORDER if name in names), *sorted(names - set(_ORDER)))


def load_robot(name_or_path) -> Robot:
    """A built-in robot by name, or the robot in a URDF, MJCF or TOML file (.urdf, .mjcf, .xml, .toml).

    A built-in name wins over a file of the same name; write ./name for the file. Raises RobotError.
    """
    text = str(name_or_path)
    if not text.strip():
        raise RobotError(f"the robot's name is empty: name a robot file, or one of {', '.join(builtin_names())}")
    if text in builtin_names():
        return _builtin(text)
    path = Path(name_or_path)
    suffix = path.suffix.lower()
    if not path.exists():
        if suffix in _READERS:
            raise RobotError(f"{path}: there is no such file")
        raise RobotError(f"'{text}' is neither a built-in robot nor a file: built in are {', '.join(builtin_names())}")
    if suffix not in _READERS:
        raise RobotError(f"{path}: cannot tell what it is: name a robot file .urdf, .mjcf, .xml or .toml")
    return _READERS[suffix](path)


def _read_xml(path) -> Robot:
    """URDF or MJCF, told apart by the root element; what is neither is left to the URDF reader to refuse."""
    try:
        root = next(ET.iterparse(path, events=("start",)))[1].tag
    except (ET.ParseError, OSError):
        return read_urdf(path)
    return read_mjcf(path) if root == "mujoco" else read_urdf(path)


_READERS = {".toml": read_robot_toml, ".urdf": read_urdf, ".mjcf": read_mjcf, ".xml": _read_xml}


@cache
def _builtin(name: str) -> Robot:
    return read_robot_toml(_folder() / f"{name}.toml")


def _folder():
    return files("bayesid.robots") / "builtin"
