"""Three-vector and matrix algebra on arrays with trailing batch axes: vectors (..., 3, *batch) addressed by a leading axis."""

import jax.numpy as jnp


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


def matmul(a, b):
    """Product of (3, 3, *batch) arrays."""
    return a[:, 0, None] * b[None, 0] + a[:, 1, None] * b[None, 1] + a[:, 2, None] * b[None, 2]


def over_tree(mask, x):
    """Sum of x (n, ..., *batch) over the rows that the constant mask (m, n) selects."""
    return jnp.tensordot(jnp.asarray(mask, dtype=x.dtype), x, axes=1)


def motion_cross(w, v, w2, v2):
    """Spatial motion cross product (Featherstone 2008, eq. 2.31): (w, v) x (w2, v2), angular part first."""
    return cross(w, w2), cross(w, v2) + cross(v, w2)
