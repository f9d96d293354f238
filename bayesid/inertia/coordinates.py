"""Coordinates of the inertial parameters of rigid bodies: standard, pseudo-inertia, central, log-Cholesky.

Standard parameters are (..., 10): m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz about a frame's origin, along its axes
[kg, kg m, kg m^2]. Leading axes are batches. All maps are exact and smooth; every one has its inverse here.
"""

from __future__ import annotations

import jax.numpy as jnp


def inertia_tensor(pi):
    """(..., 3, 3) rotational inertia about the frame's origin of standard parameters (..., 10) [kg m^2]."""
    xx, xy, xz, yy, yz, zz = (pi[..., k] for k in range(4, 10))
    return _matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def pseudo_inertia(pi):
    """Pseudo-inertia (..., 4, 4) of standard parameters (..., 10): [[tr(I)/2 1 - I, mc], [mc^T, m]].

    Its upper left block is the second moment of the mass distribution; a body exists if and only if it is positive
    semidefinite. Wensing, Kim, Slotine 2017, "Linear matrix inequalities for physically consistent inertial parameter
    identification".
    """
    m, hx, hy, hz, xx, xy, xz, yy, yz, zz = (pi[..., k] for k in range(10))
    return _matrix(
        [
            [0.5 * (yy + zz - xx), -xy, -xz, hx],
            [-xy, 0.5 * (xx + zz - yy), -yz, hy],
            [-xz, -yz, 0.5 * (xx + yy - zz), hz],
            [hx, hy, hz, m],
        ]
    )


def from_pseudo_inertia(J):
    """Standard parameters (..., 10) of a symmetric pseudo-inertia (..., 4, 4)."""
    xx, yy, zz = J[..., 0, 0], J[..., 1, 1], J[..., 2, 2]
    parts = [J[..., 3, 3], J[..., 0, 3], J[..., 1, 3], J[..., 2, 3]]
    parts += [yy + zz, -J[..., 0, 1], -J[..., 0, 2], xx + zz, -J[..., 1, 2], xx + yy]
    return jnp.stack(parts, axis=-1)


def from_com(m, com, I_com):
    """Standard parameters (..., 10) of a mass (...,) with centre (..., 3) and inertia about that centre (..., 3, 3).

    Parallel axis theorem: I = I_com + m (c.c 1 - c c^T).
    """
    m, com, I_com = jnp.asarray(m, float), jnp.asarray(com, float), jnp.asarray(I_com, float)
    x, y, z = (com[..., k] for k in range(3))
    moments = [
        I_com[..., 0, 0] + m * (y * y + z * z),
        I_com[..., 0, 1] - m * x * y,
        I_com[..., 0, 2] - m * x * z,
        I_com[..., 1, 1] + m * (x * x + z * z),
        I_com[..., 1, 2] - m * y * z,
        I_com[..., 2, 2] + m * (x * x + y * y),
    ]
    return jnp.stack(jnp.broadcast_arrays(m, m * x, m * y, m * z, *moments), axis=-1)


def to_com(pi):
    """Mass (...,), centre of mass (..., 3) and inertia about it (..., 3, 3) of standard parameters, mass not zero."""
    m = pi[..., 0]
    com = pi[..., 1:4] / m[..., None]
    square = jnp.sum(com * com, axis=-1)[..., None, None] * jnp.eye(3)
    return m, com, inertia_tensor(pi) - m[..., None, None] * (square - com[..., :, None] * com[..., None, :])


def transform(pi, R, p):
    """Standard parameters (..., 10) of the same bodies about another frame, in which their own sits at (R, p).

    R (..., 3, 3) is the orientation and p (..., 3) the origin of the frame that `pi` is written in, both seen from the
    new frame [m]. Right for bodies without mass, too.
    """
    R, p = jnp.asarray(R, float), jnp.asarray(p, float)
    m, h = pi[..., 0], pi[..., 1:4]
    second = R @ pseudo_inertia(pi)[..., :3, :3] @ jnp.swapaxes(R, -1, -2)
    turned = jnp.einsum("...ij,...j->...i", R, h)
    cross = turned[..., :, None] * p[..., None, :]
    second = second + cross + jnp.swapaxes(cross, -1, -2) + m[..., None, None] * p[..., :, None] * p[..., None, :]
    moved = turned + m[..., None] * p
    xx, yy, zz = second[..., 0, 0], second[..., 1, 1], second[..., 2, 2]
    parts = [m, moved[..., 0], moved[..., 1], moved[..., 2]]
    parts += [yy + zz, -second[..., 0, 1], -second[..., 0, 2], xx + zz, -second[..., 1, 2], xx + yy]
    return jnp.stack(jnp.broadcast_arrays(*parts), axis=-1)


def log_cholesky(pi):
    """Log-Cholesky coordinates (..., 10) of standard parameters (..., 10) of physically consistent bodies.

    The coordinates alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 make the pseudo-inertia U U^T with U = e^alpha [[e^d1,
    s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]] (Rucker, Wensing 2022, "Smooth parameterization
    of rigid-body inertia"). They are unconstrained: alpha is half the logarithm of the mass, t the centre
    of mass. NaN where a body is not positive definite.
    """
    m = pi[..., 0]
    t = pi[..., 1:4] / m[..., None]
    J = pseudo_inertia(pi)[..., :3, :3] / m[..., None, None] - t[..., :, None] * t[..., None, :]
    u33 = jnp.sqrt(J[..., 2, 2])
    s23, s13 = J[..., 1, 2] / u33, J[..., 0, 2] / u33
    u22 = jnp.sqrt(J[..., 1, 1] - s23**2)
    s12 = (J[..., 0, 1] - s13 * s23) / u22
    u11 = jnp.sqrt(J[..., 0, 0] - s12**2 - s13**2)
    parts = [0.5 * jnp.log(m), jnp.log(u11), jnp.log(u22), jnp.log(u33), s12, s23, s13]
    return jnp.stack([*parts, t[..., 0], t[..., 1], t[..., 2]], axis=-1)


def from_log_cholesky(theta):
    """Standard parameters (..., 10) of log-Cholesky coordinates (..., 10); the inverse of `log_cholesky`."""
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = (theta[..., k] for k in range(10))
    m = jnp.exp(2.0 * alpha)
    e1, e2, e3 = jnp.exp(d1), jnp.exp(d2), jnp.exp(d3)
    xx = e1 * e1 + s12 * s12 + s13 * s13 + t1 * t1
    yy = e2 * e2 + s23 * s23 + t2 * t2
    zz = e3 * e3 + t3 * t3
    xy = s12 * e2 + s13 * s23 + t1 * t2
    xz = s13 * e3 + t1 * t3
    yz = s23 * e3 + t2 * t3
    shape = [jnp.ones_like(m), t1, t2, t3, yy + zz, -xy, -xz, xx + zz, -yz, xx + yy]
    return m[..., None] * jnp.stack(shape, axis=-1)


def _matrix(rows):
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
