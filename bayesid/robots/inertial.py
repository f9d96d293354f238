"""Inertial parameters of one body in plain NumPy, for reading and writing robot files without JAX."""

from __future__ import annotations

import numpy as np


def tensor(six) -> np.ndarray:
    """(3, 3) symmetric tensor of xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float)


def standard_from_com(mass: float, com, inertia_com, rotation=None, offset=None) -> np.ndarray:
    """Standard parameters (10,) about a frame's origin of a body given by mass, centre of mass and inertia about it.

    `com` (3,) and `inertia_com` (3, 3) are written in a frame that sits at (`rotation`, `offset`) in the wanted one.
    """
    com, inertia_com = np.asarray(com, dtype=float), np.asarray(inertia_com, dtype=float)
    if rotation is not None:
        com, inertia_com = rotation @ com, rotation @ inertia_com @ np.transpose(rotation)
    if offset is not None:
        com = com + offset
    inertia = inertia_com + mass * (com @ com * np.eye(3) - np.outer(com, com))
    return np.array([mass, *(mass * com), *inertia[np.triu_indices(3)]])


def moved(standard, rotation, offset) -> np.ndarray:
    """Standard parameters (10,) of the same body about a frame in which its own frame sits at (`rotation`, `offset`).

    Also right for a body without mass, whose centre of mass does not exist.
    """
    standard = np.asarray(standard, dtype=float)
    J = pseudo_inertia(standard)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation, offset
    J = T @ J @ T.T
    inertia = np.trace(J[:3, :3]) * np.eye(3) - J[:3, :3]
    return np.array([standard[0], *J[:3, 3], *inertia[np.triu_indices(3)]])


def pseudo_inertia(standard) -> np.ndarray:
    """(4, 4) pseudo-inertia [[tr(I)/2 1 - I, mc], [mc^T, m]] (Wensing, Kim, Slotine 2017)."""
    inertia = tensor(standard[4:])
    J = np.empty((4, 4))
    J[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    J[:3, 3] = J[3, :3] = standard[1:4]
    J[3, 3] = standard[0]
    return J


def central(standard) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass (3,) and inertia (3, 3) about it of a body with mass."""
    mass = float(standard[0])
    com = np.asarray(standard[1:4], dtype=float) / mass
    return mass, com, tensor(standard[4:]) - mass * (com @ com * np.eye(3) - np.outer(com, com))


def smallest_eigenvalue(standard) -> float:
    """Smallest eigenvalue of the pseudo-inertia: negative where no distribution of mass has these parameters."""
    return float(np.linalg.eigvalsh(pseudo_inertia(standard))[0])


def defect(standard, tolerance: float = 1e-9) -> str | None:
    """What makes standard parameters (10,) impossible for a rigid body, in words; None for a possible one.

    A body may be degenerate (a point, a rod, no mass at all): violations up to `tolerance` times the largest principal
    moment pass, since files write numbers with few digits.
    """
    standard = np.asarray(standard, dtype=float)
    mass = standard[0]
    if mass < 0:
        return f"its mass {mass:.6g} kg is negative"
    if mass == 0:
        return None if not standard.any() else "it has no mass but a first moment or an inertia"
    _, _, inertia = central(standard)
    moments = np.linalg.eigvalsh(inertia)
    scale = tolerance * np.abs(moments).max() + 1e-15 * mass
    if moments[0] < -scale:
        return f"the inertia about its centre of mass has the negative principal moment {moments[0]:.4g} kg m^2"
    if moments[2] - moments[0] - moments[1] > scale:
        return (
            f"its principal moments {moments[0]:.4g}, {moments[1]:.4g}, {moments[2]:.4g} kg m^2 break the triangle"
            f" inequality (the largest exceeds the sum of the others by {moments[2] - moments[0] - moments[1]:.2g})"
        )
    return None
