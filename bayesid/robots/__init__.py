"""Robots: immutable kinematic trees, read from URDF or TOML, built in by name."""

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

__all__ = ["GRAVITY", "INERTIAL_NAMES", "INERTIAL_UNITS", "Capsule", "Frame", "Joint", "Link", "Robot"]
