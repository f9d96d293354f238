"""Physical consistency: is there a body with these inertial parameters, and which one is nearest?"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from bayesid.inertia.coordinates import from_pseudo_inertia, pseudo_inertia


def min_eigenvalue(pi):
    """(...,) smallest eigenvalue of the pseudo-inertia of standard parameters (..., 10), in SI units.

    Positive for a body with mass spread in all directions, zero for a point, a rod or a plate, negative where no body
    exists.
    """
    return jnp.linalg.eigvalsh(pseudo_inertia(pi))[..., 0]


def is_consistent(pi, margin: float = 0.0):
    """(...,) True where the pseudo-inertia of standard parameters (..., 10) has all eigenvalues above `margin`."""
    return min_eigenvalue(pi) > margin


def nearest_consistent(pi, margin: float = 1e-8):
    """The standard parameters (..., 10) nearest to `pi` whose pseudo-inertia has no eigenvalue below `margin`.

    Nearest in the Frobenius norm of the 4x4 pseudo-inertia about the frame's origin, in SI units: its eigenvalues
    below `margin` are raised to it (Higham 1988). The set is convex, so the projection is unique, and parameters in it
    come back unchanged: choose `margin` [kg, kg m^2] below the smallest moment of the smallest link. The mass comes
    out at least `margin`. Differentiable also where eigenvalues coincide.
    """
    J = pseudo_inertia(pi)
    return jnp.where(is_consistent(pi, margin)[..., None], pi, from_pseudo_inertia(_raised(J, margin)))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _raised(J, margin):
    values, vectors = jnp.linalg.eigh(J)
    return (vectors * jnp.maximum(values, margin)[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)


@_raised.defjvp
def _raised_jvp(margin, primals, tangents):
    # Daleckii-Krein: eigh's own derivative divides by differences of eigenvalues, which vanish for symmetric bodies.
    values, vectors = jnp.linalg.eigh(primals[0])
    raised = jnp.maximum(values, margin)
    transposed = jnp.swapaxes(vectors, -1, -2)
    gap = values[..., :, None] - values[..., None, :]
    same = jnp.abs(gap) < 1e-12 * (1.0 + jnp.abs(values).max(axis=-1))[..., None, None]
    slope = jnp.broadcast_to((values > margin).astype(values.dtype)[..., None, :], gap.shape)
    ratio = (raised[..., :, None] - raised[..., None, :]) / jnp.where(same, 1.0, gap)
    inner = jnp.where(same, slope, ratio) * (transposed @ tangents[0] @ vectors)
    return (vectors * raised[..., None, :]) @ transposed, vectors @ inner @ transposed
