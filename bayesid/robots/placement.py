"""Rotations and offsets as robot files write them: angles that were rounded are taken as those they stand for."""

from __future__ import annotations

import numpy as np

ANGLE_TOLERANCE = 1e-5
LENGTH_TOLERANCE = 1e-9


def cos_sin(angle: float, tolerance: float = ANGLE_TOLERANCE) -> tuple[float, float]:
    """Cosine and sine of an angle [rad], exact where it lies within `tolerance` of a multiple of pi/2.

    A joint axis tilted by the rounding of 1.5708 makes parameters look identifiable that are not: base parameters are a
    question of rank, so files that round pi/2 are read as if they did not.
    """
    quarter = round(angle / (np.pi / 2))
    if abs(angle - quarter * np.pi / 2) <= tolerance:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarter % 4]
    return float(np.cos(angle)), float(np.sin(angle))


def rotation_about(axis: str, angle: float, tolerance: float = ANGLE_TOLERANCE) -> np.ndarray:
    """(3, 3) rotation by `angle` [rad] about the axis "x", "y" or "z"."""
    c, s = cos_sin(angle, tolerance)
    if axis == "x":
        return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    if axis == "y":
        return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rotation_from_rpy(rpy, tolerance: float = ANGLE_TOLERANCE) -> np.ndarray:
    """(3, 3) rotation of URDF's roll, pitch, yaw [rad] about fixed axes: Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = rpy
    product = rotation_about("z", yaw, tolerance) @ rotation_about("y", pitch, tolerance)
    return product @ rotation_about("x", roll, tolerance) + 0.0


def rpy_from_rotation(rotation) -> tuple[float, float, float]:
    """Roll, pitch, yaw [rad] of a rotation (3, 3); the inverse of `rotation_from_rpy`, yaw 0 where pitch is +-pi/2."""
    R = np.asarray(rotation, dtype=float).reshape(3, 3)
    cos_pitch = np.hypot(R[0, 0], R[1, 0])
    pitch = np.arctan2(-R[2, 0], cos_pitch)
    if cos_pitch > 1e-9:
        roll, yaw = np.arctan2(R[2, 1], R[2, 2]), np.arctan2(R[1, 0], R[0, 0])
    else:
        roll, yaw = np.arctan2(-R[1, 2], R[1, 1]), 0.0
    return float(roll), float(pitch), float(yaw)


def clean_offset(xyz, tolerance: float = LENGTH_TOLERANCE) -> np.ndarray:
    """(3,) offset [m] without the nanometres that exporters leave behind."""
    xyz = np.array(xyz, dtype=float)
    xyz[np.abs(xyz) <= tolerance] = 0.0
    return xyz + 0.0


def compose(first, second):
    """Pose (R, p) of `second` seen through `first`; both are (rotation (3, 3), offset (3,))."""
    R, p = first
    S, r = second
    return R @ S, R @ r + p


def vector(values) -> tuple[float, float, float]:
    """Three plain floats, as the frozen dataclasses of the tree hold them."""
    return tuple(float(x) for x in np.asarray(values, dtype=float).reshape(-1))
