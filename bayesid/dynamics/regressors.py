"""Regressors: joint torques, momenta and body wrenches as linear functions of the standard inertial parameters.

Column order: link-major, m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz about each link frame's origin
(Atkeson, An, Hollerbach 1986). Rotor inertia and friction have columns of their own, see `bayesid.models`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics.kinematics import motion, pose
from bayesid.dynamics.spatial import cross, dot, rotate_back


def joint_regressor(robot, q, qd, qdd, gravity=None):
    """Regressor (n, 10 n, *batch) of inverse dynamics, for one state (n,) or trailing batch axes (n, *batch)."""
    return _assemble(robot, _pairs(robot, q, qd, qdd, gravity))


def momentum_regressor(robot, q, qd):
    """Regressor (n, 10 n, *batch) of the generalised momentum M qd, rotors excluded."""
    return joint_regressor(robot, q, jnp.zeros_like(qd), qd, (0.0, 0.0, 0.0))


def momentum_drift_regressor(robot, q, qd, gravity=None):
    """Regressor (n, 10 n, *batch) of C^T qd - g, so that d/dt (M qd) = tau + C^T qd - g (De Luca et al. 2006, eq. 6)."""

    def energy(position):
        return 0.5 * jnp.sum(qd[:, None] * momentum_regressor(robot, position, qd), axis=0)

    rank = q.ndim - 1
    directions = jnp.broadcast_to(jnp.eye(robot.dof).reshape(robot.dof, robot.dof, *(1,) * rank), (robot.dof, *q.shape))
    slope = jax.vmap(lambda tangent: jax.jvp(energy, (q,), (tangent,))[1])(directions)
    zero = jnp.zeros_like(q)
    return slope - joint_regressor(robot, q, zero, zero, gravity)


def body_regressor(velocity, acceleration):
    """Regressor (6, 10) of one body's wrench [force; moment] at its frame's origin, in its own axes.

    velocity (6,) is [linear, angular] and acceleration (6,) [linear classical acceleration of the origin minus gravity,
    angular], both in the body's axes (Atkeson, An, Hollerbach 1986, eq. 9).
    """
    w, a, wd = velocity[3:], acceleration[:3], acceleration[3:]
    zero3, zero6 = jnp.zeros((3, 1)), jnp.zeros((3, 6))
    spin = _skew(wd) + _skew(w) @ _skew(w)
    force = jnp.concatenate([a[:, None], spin, zero6], axis=1)
    moment = jnp.concatenate([zero3, -_skew(a), _inertia_columns(wd) + _skew(w) @ _inertia_columns(w)], axis=1)
    return jnp.concatenate([force, moment])


def _pairs(robot, q, qd, qdd, gravity):
    """Blocks (pairs, 10, *batch) of all (joint above or at link, link) pairs, joint-major."""
    joint, link = _pair_index(robot)
    at = pose(robot, q)
    moving = motion(robot, at, qd, qdd, gravity)
    a = moving.vd + cross(moving.wd, at.origin) + cross(moving.w, moving.v + cross(moving.w, at.origin))
    w, wd, a = (rotate_back(at.rotation, x)[link] for x in (moving.w, moving.wd, a))
    arm = at.linear[joint] + cross(at.angular[joint], at.origin[link])
    z = rotate_back(at.rotation[link], at.angular[joint])
    c = rotate_back(at.rotation[link], arm)
    first = cross(a, z) + cross(c, wd) + dot(c, w)[:, None] * w - dot(w, w)[:, None] * c
    u = cross(z, w)
    second = [z[:, i] * wd[:, i] + u[:, i] * w[:, i] for i in range(3)]
    mixed = {
        (i, k): z[:, i] * wd[:, k] + z[:, k] * wd[:, i] + u[:, i] * w[:, k] + u[:, k] * w[:, i]
        for i, k in ((0, 1), (0, 2), (1, 2))
    }
    moment = jnp.stack([second[0], mixed[0, 1], mixed[0, 2], second[1], mixed[1, 2], second[2]], axis=1)
    return jnp.concatenate([dot(c, a)[:, None], first, moment], axis=1)


def _pair_index(robot):
    joint, link = np.nonzero(robot.ancestors.T)
    return joint, link


def _assemble(robot, blocks):
    n = robot.dof
    joint, link = _pair_index(robot)
    place = np.full((n, n), len(joint))
    place[joint, link] = np.arange(len(joint))
    padded = jnp.concatenate([blocks, jnp.zeros_like(blocks[:1])])
    return padded[place].reshape(n, 10 * n, *blocks.shape[2:])


def _skew(v):
    x, y, z = v
    zero = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([zero, -z, y]), jnp.stack([z, zero, -x]), jnp.stack([-y, x, zero])])


def _inertia_columns(w):
    x, y, z = w
    o = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([x, y, z, o, o, o]), jnp.stack([o, x, o, y, z, o]), jnp.stack([o, o, x, o, y, z])])
