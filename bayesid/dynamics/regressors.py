"""Regressors: joint torques, momenta and body wrenches as linear functions of the standard inertial parameters.

Column order: link-major, m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz about each link frame's origin
(Atkeson, An, Hollerbach 1986). Rotor inertia and friction have columns of their own, see `bayesid.models`.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics.kinematics import motion, pose
from bayesid.dynamics.spatial import column, cross, stage

# Entry of the 4x4 matrix [[mass, first moments], [first moments, second moments]] that each standard parameter moves.
_ROW = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 3])
_COLUMN = np.array([0, 1, 2, 3, 1, 2, 3, 2, 3, 3])


def joint_regressor(robot, q, qd, qdd, gravity=None):
    """Regressor (n, 10 n, *batch) of inverse dynamics, for one state (n,) or trailing batch axes (n, *batch).

    Fastest on 250 to 1000 samples at a time, whose intermediate arrays stay in the cache.
    """
    n = robot.dof
    moved = column(robot.ancestors.T[:, :, None], q.ndim - 1)
    angular, linear, force, moment = _wrenches(robot, q, qd, qdd, gravity)
    power = _angular_power(angular[:, None], moment[None], moved)
    return _add_linear_power(power, linear[:, None], force[None], moved).reshape(n, 10 * n, *q.shape[1:])


def joint_regressor_blocks(robot, q, qd, qdd, gravity=None):
    """The blocks of `joint_regressor` that are not zero, (pairs, 10, *batch), in the order of `regressor_pairs`."""
    joint, link = (tuple(index.tolist()) for index in regressor_pairs(robot))
    angular, linear, force, moment = _wrenches(robot, q, qd, qdd, gravity)
    power = _angular_power_of_pairs(joint, link, angular, moment)
    return _add_linear_power_of_pairs(joint, link, power, linear, force)


def regressor_pairs(robot):
    """Joint and link index of each block of `joint_regressor_blocks`: the joint moves the link; joint-major."""
    return np.nonzero(robot.ancestors.T)


def momentum_regressor(robot, q, qd):
    """Regressor (n, 10 n, *batch) of the generalised momentum M qd, rotors excluded."""
    return joint_regressor(robot, q, jnp.zeros_like(qd), qd, (0.0, 0.0, 0.0))


def momentum_drift_regressor(robot, q, qd, gravity=None):
    """Regressor (n, 10 n, *batch) of C^T qd - g, so that d/dt (M qd) = tau + C^T qd - g (De Luca et al. 2006).

    With Mdot = C + C^T it is the regressor of Mdot qd less that of C qd + g.
    """
    _, rate = jax.jvp(lambda position: momentum_regressor(robot, position, qd), (q,), (qd,))
    return rate - joint_regressor(robot, q, qd, jnp.zeros_like(qd), gravity)


def body_regressor(velocity, acceleration):
    """Regressor (6, 10) of one body's wrench [force; moment] at its frame's origin, in its own axes.

    velocity (6,) is [linear, angular] and acceleration (6,) [linear classical acceleration of the origin minus gravity,
    angular], both in the body's axes (Atkeson, An, Hollerbach 1986).
    """
    w, a, wd = velocity[3:], acceleration[:3], acceleration[3:]
    zero3, zero6 = jnp.zeros((3, 1)), jnp.zeros((3, 6))
    spin = _skew(wd) + _skew(w) @ _skew(w)
    force = jnp.concatenate([a[:, None], spin, zero6], axis=1)
    moment = jnp.concatenate([zero3, -_skew(a), _inertia_columns(wd) + _skew(w) @ _inertia_columns(w)], axis=1)
    return jnp.concatenate([force, moment])


def _wrenches(robot, q, qd, qdd, gravity):
    """Joint axes and, at the world's origin, what each link's parameters contribute to its wrench.

    angular and linear (n, 3, *batch); force (n, 3, 4, *batch) by mass and first moments, which alone need force;
    moment (n, 3, 10, *batch).
    """
    at = pose(robot, q)
    moving = motion(robot, at, qd, qdd, gravity)
    rate, shift = _transform_rate(*moving)
    force = _second_derivative(rate, shift, at.transform)
    return at.angular, at.linear, force, _moments(at.transform, force, moving.wd)


@stage
def _transform_rate(w, v, wd, vd):
    """Rate (n, 3, 3, *batch) and shift (n, 3, *batch): a point x accelerates, less gravity, by rate x + shift."""
    (x, y, z), (ax, ay, az) = (jnp.moveaxis(part, 1, 0) for part in (w, wd))
    xx, yy, zz = x * x, y * y, z * z
    entries = [-yy - zz, x * y - az, x * z + ay, x * y + az, -xx - zz, y * z - ax, x * z - ay, y * z + ax, -xx - yy]
    return jnp.stack(entries, axis=1).reshape(-1, 3, 3, *w.shape[2:]), vd + cross(w, v)


@stage
def _second_derivative(rate, shift, transform):
    """Acceleration of each link's origin less gravity, then second derivatives of its axes: (n, 3, 4, *batch)."""
    at_origin = column(np.array([1.0, 0.0, 0.0, 0.0]), shift.ndim - 2)
    turned = sum(rate[:, :, k, None] * transform[:, None, k] for k in range(3))
    return turned + at_origin * shift[:, :, None]


@stage
def _moments(transform, acceleration, wd):
    """Moment (n, 3, 10, *batch) about the world's origin by each standard parameter.

    A mass element at X p, p = (1, body coordinates), gives X p x X'' p, so that the entry (c, d) of the sum of m p p^T
    has the column X_c x X''_d + X_d x X''_c (half of it for c = d). Second moments are tr(I) / 2 - I, and the columns
    of their diagonal sum to 2 wd.
    """
    rank = wd.ndim - 2
    diagonal, second = _ROW == _COLUMN, _ROW > 0
    sign = np.where(second, -1.0, 1.0) * np.where(diagonal, 0.5, 1.0)
    pairs = cross(transform[:, :, _ROW], acceleration[:, :, _COLUMN])
    pairs = pairs + cross(transform[:, :, _COLUMN], acceleration[:, :, _ROW])
    return column(sign, rank) * pairs + column(diagonal & second, rank) * wd[:, :, None]


@stage
def _angular_power(angular, moment, moved):
    """Power (joints, links, 10, *batch) of the links' moments along joint axes, zero where `moved` is.

    angular (joints, 1, 3, *batch), moment (1, links, 3, 10, *batch), moved (joints, links, 1, *batch).
    """
    return moved * sum(angular[:, :, r, None] * moment[:, :, r] for r in range(3))


@stage
def _add_linear_power(power, linear, force, moved):
    added = moved * sum(linear[:, :, r, None] * force[:, :, r] for r in range(3))
    return jax.lax.dynamic_update_slice(power, power[:, :, :4] + added, (0,) * power.ndim)


@partial(stage, static_argnums=(0, 1))
def _angular_power_of_pairs(joint, link, angular, moment):
    angular, moment = angular[np.array(joint)], moment[np.array(link)]
    return sum(angular[:, r, None] * moment[:, r] for r in range(3))


@partial(stage, static_argnums=(0, 1))
def _add_linear_power_of_pairs(joint, link, power, linear, force):
    linear, force = linear[np.array(joint)], force[np.array(link)]
    added = sum(linear[:, r, None] * force[:, r] for r in range(3))
    return jax.lax.dynamic_update_slice(power, power[:, :4] + added, (0,) * power.ndim)


def _skew(v):
    x, y, z = v
    zero = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([zero, -z, y]), jnp.stack([z, zero, -x]), jnp.stack([-y, x, zero])])


def _inertia_columns(w):
    x, y, z = w
    o = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([x, y, z, o, o, o]), jnp.stack([o, x, o, y, z, o]), jnp.stack([o, o, x, o, y, z])])
