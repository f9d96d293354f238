"""Robots: immutable kinematic trees, read from URDF, MJCF or TOML, built in by name."""

from bayesid.robots.library import builtin_names, load_robot
from bayesid.robots.mjcf import mjcf_text, read_mjcf
from bayesid.robots.robot_file import read_robot_toml
from bayesid.robots.tree import (
    GRAVITY,
    INERTIAL_NAMES,
    INERTIAL_UNITS,
    Capsule,
    Frame,
    Joint,
    Link,
    Robot,
)
from bayesid.robots.urdf import read_urdf, update_urdf, urdf_text

__all__ = [
    "GRAVITY",
    "INERTIAL_NAMES",
    "INERTIAL_UNITS",
    "Capsule",
    "Frame",
    "Joint",
    "Link",
    "Robot",
    "builtin_names",
    "load_robot",
    "mjcf_text",
    "read_mjcf",
    "read_robot_toml",
    "read_urdf",
    "update_urdf",
    "urdf_text",
]
