"""Three-vector algebra on arrays with trailing batch axes, and the stages of a batched computation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata


def stage(function, static_argnums=()):
    """Compile `function` as a unit whose results are stored, not recomputed by each of their readers.

    XLA's CPU compiler fuses cheap producers into every consumer, across `jax.lax.optimization_barrier`, and so
    evaluates the sines of a chain of links dozens of times; a call that it may not inline ends that. Values and
    derivatives are those of `function`, and equal shapes share one compilation.
    """
    compiled = jax.jit(function, static_argnums=static_argnums)

    @functools.wraps(function)
    def call(*arguments):
        with set_xla_metadata(inlineable="false"):
            return compiled(*arguments)

    return call


def cross(a, b):
    """Cross product of (n, 3, *batch) arrays."""
    ax, ay, az = a[:, 0], a[:, 1], a[:, 2]
    bx, by, bz = b[:, 0], b[:, 1], b[:, 2]
    return jnp.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=1)


def dot(a, b):
    """Inner product of (n, 3, *batch) arrays: (n, *batch)."""
    return a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]


def rotate(rotation, v):
    """R v for rotation (n, 3, 3, *batch) and v (n, 3, *batch)."""
    return rotation[:, :, 0] * v[:, 0:1] + rotation[:, :, 1] * v[:, 1:2] + rotation[:, :, 2] * v[:, 2:3]


def rotate_back(rotation, v):
    """R^T v for rotation (n, 3, 3, *batch) and v (n, 3, *batch)."""
    return rotation[:, 0] * v[:, 0:1] + rotation[:, 1] * v[:, 1:2] + rotation[:, 2] * v[:, 2:3]


def column(values, batch_rank):
    """A constant array with as many trailing axes of length one as the batch has."""
    values = np.asarray(values, dtype=float)
    return jnp.asarray(values.reshape(values.shape + (1,) * batch_rank))


def over_tree(mask, x):
    """Sum of x (n, ..., *batch) over the rows that the constant mask (m, n) selects."""
    return jnp.tensordot(jnp.asarray(mask, dtype=x.dtype), x, axes=1)


def motion_cross(w, v, w2, v2):
    """Spatial motion cross product (Featherstone 2008, ch. 2): (w, v) x (w2, v2), angular part first."""
    return cross(w, w2), cross(w, v2) + cross(v, w2)
