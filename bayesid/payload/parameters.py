"""Payload parameters as Estimates: standard ones (linear in the wrench), and mass, centre of mass, inertia about it."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import bayesid.inertia as inertia_room
from bayesid.errors import ResultError
from bayesid.results import Estimate
from bayesid.robots import INERTIAL_NAMES, INERTIAL_UNITS

NAMES = tuple(f"payload.{name}" for name in INERTIAL_NAMES)
COM_NAMES = (
    "payload.mass",
    *(f"payload.com_{a}" for a in "xyz"),
    *(f"payload.com_{name}" for name in ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")),
)
COM_UNITS = ("kg", *("m",) * 3, *("kg m^2",) * 6)


def payload_estimate(mean, covariance, *, method, covariance_method, extra=(), meta=None, dof=float("inf"), draws=None):
    """An Estimate of the ten standard parameters and further named ones (name, unit), in that order."""
    names = NAMES + tuple(name for name, _ in extra)
    return Estimate(
        names=names,
        units=INERTIAL_UNITS + tuple(unit for _, unit in extra),
        kinds=("payload",) * len(NAMES) + ("sensor",) * len(extra),
        mean=mean,
        covariance=covariance,
        method=method,
        covariance_method=covariance_method,
        meta=meta or {},
        dof=dof,
        draws=draws,
    )


def about_com(estimate: Estimate) -> Estimate:
    """Mass [kg], centre of mass [m] and inertia about it [kg m^2], along the sensor frame's axes, of a payload Estimate.

    The covariance is carried over to first order; draws, where there are any, are mapped one by one.
    Raises ResultError when the estimated mass is not positive: there is no centre of mass then.
    """
    mine = estimate.select(NAMES)
    if mine.mean[0] <= 0:
        raise ResultError(
            f"the estimated mass is {mine.mean[0]:.4g} kg: no payload has that; check the sign and frame of the wrench"
        )
    mean, slope = np.asarray(to_com(mine.mean)), np.asarray(com_jacobian(mine.mean))
    return dataclasses.replace(
        mine,
        names=COM_NAMES,
        units=COM_UNITS,
        mean=mean,
        covariance=slope @ mine.covariance @ slope.T,
        draws=None if mine.draws is None else np.asarray(to_com(mine.draws)),
    )


@jax.jit
def to_com(standard):
    """(..., 10) mass, centre of mass, inertia about it, of standard parameters (..., 10)."""
    mass, com, inertia = inertia_room.to_com(jnp.asarray(standard))
    return jnp.concatenate([mass[..., None], com, _upper(inertia)], axis=-1)


@jax.jit
def from_com(about):
    """(..., 10) standard parameters: the inverse of `to_com`."""
    about = jnp.asarray(about)
    return inertia_room.from_com(about[..., 0], about[..., 1:4], inertia_matrix(about[..., 4:]))


com_jacobian = jax.jit(jax.jacfwd(to_com))
"""(10, 10) derivative of `to_com` at standard parameters (10,)."""


def consistency(standard) -> float:
    """Smallest eigenvalue of the pseudo-inertia of standard parameters (10,): positive for a body that can exist."""
    return float(inertia_room.min_eigenvalue(jnp.asarray(standard)))


@jax.jit
def inertia_matrix(vector):
    """(..., 3, 3) of Ixx, Ixy, Ixz, Iyy, Iyz, Izz (..., 6)."""
    vector = jnp.asarray(vector)
    xx, xy, xz, yy, yz, zz = (vector[..., k] for k in range(6))
    return jnp.stack([jnp.stack(row, -1) for row in ([xx, xy, xz], [xy, yy, yz], [xz, yz, zz])], -2)


def _upper(matrix):
    return jnp.stack([matrix[..., i, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))], axis=-1)
