"""Equations of motion of a kinematic tree: rigid bodies and rotor inertias. Friction is a term of its own (`friction`).

tau = M(q) qdd + C(q, qd) qd + g(q), with the rotor inertias on the diagonal of M and nowhere else. Each function takes
one state (n,) or trailing batch axes (n, *batch); `inertials` (n, 10) and `rotor_inertias` (n,) default to the robot's
nominal values. Newton-Euler and composite-body sums: Featherstone, Rigid Body Dynamics Algorithms (2008), ch. 5-6,
written at the world's origin so that sums over the tree are products with the constant ancestor matrix.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from bayesid.dynamics.kinematics import Motion, Pose, motion, pose
from bayesid.dynamics.spatial import cross, dot, over_tree, rotate, stage


class _Inertia(NamedTuple):
    """Inertia at the world's origin: mass (n, *batch), first moment (n, 3, *batch), moment (n, 3, 3, *batch)."""

    mass: jax.Array
    first: jax.Array
    moment: jax.Array

    def times(self, w, v):
        """Spatial momentum (angular, linear) of a motion (w, v)."""
        return rotate(self.moment, w) + cross(self.first, v), self.mass[:, None] * v + cross(w, self.first)


def inverse_dynamics(robot, q, qd, qdd, inertials=None, rotor_inertias=None, gravity=None):
    """Joint torques (n, *batch) [N m; N for prismatic joints] that produce qdd, friction excluded."""
    at = pose(robot, q)
    body = _world_inertia(robot, at, inertials)
    moving = motion(robot, at, qd, qdd, gravity)
    return _joint_forces(robot, at, body, moving) + _rotor(robot, rotor_inertias, q) * qdd


def mass_and_bias(robot, q, qd, inertials=None, rotor_inertias=None, gravity=None):
    """Mass matrix (n, n, *batch) and C qd + g (n, *batch) at half the cost of asking for each: what simulations need."""
    at = pose(robot, q)
    body = _world_inertia(robot, at, inertials)
    moving = motion(robot, at, qd, jnp.zeros_like(qd), gravity)
    return _joint_inertia(robot, at, body, rotor_inertias, q), _joint_forces(robot, at, body, moving)


def mass_matrix(robot, q, inertials=None, rotor_inertias=None):
    """Joint-space mass matrix (n, n, *batch), rotor inertias included."""
    at = pose(robot, q)
    return _joint_inertia(robot, at, _world_inertia(robot, at, inertials), rotor_inertias, q)


def _joint_inertia(robot, at: Pose, body: _Inertia, rotor_inertias, q):
    composite = _composite(robot, body)
    angular, linear = composite.times(at.angular, at.linear)
    towards_base = jnp.sum(at.angular[:, None] * angular[None] + at.linear[:, None] * linear[None], axis=2)
    rotor = jnp.broadcast_to(_rotor(robot, rotor_inertias, q), q.shape)
    eye = jnp.eye(robot.dof).reshape(robot.dof, robot.dof, *(1,) * (q.ndim - 1))
    return _mirror(robot, towards_base, towards_base) + eye * rotor[None]


def coriolis_matrix(robot, q, qd, inertials=None):
    """Coriolis matrix (n, n) of one state, consistent with the Christoffel symbols: Mdot = C + C^T.

    Body-level factorisation B = ((V x*) I - I (V x) + (I V) xbar*) / 2 of Echeandia, Wensing 2021 (Numerical methods to
    compute the Coriolis matrix and Christoffel symbols for rigid-body systems).
    """
    at = pose(robot, q)
    body = _world_inertia(robot, at, inertials)
    still = motion(robot, at, qd, jnp.zeros_like(qd))
    inertia = _six(body)
    velocity = jnp.concatenate([still.w, still.v], axis=1)
    crm = _motion_matrix(velocity)
    crf = -jnp.swapaxes(crm, 1, 2)
    factor = 0.5 * (crf @ inertia - inertia @ crm + _force_bar(jnp.einsum("nij,nj->ni", inertia, velocity)))
    composite_factor = over_tree(robot.ancestors.T, factor)
    composite_inertia = over_tree(robot.ancestors.T, inertia)
    axis = jnp.concatenate([at.angular, at.linear], axis=1)
    axis_rate = jnp.einsum("nij,nj->ni", crm, axis)
    at_column = jnp.einsum("jab,jb->ja", composite_factor, axis)
    at_column = at_column + jnp.einsum("jab,jb->ja", composite_inertia, axis_rate)
    above = axis @ at_column.T
    below = jnp.einsum("ia,iab,jb->ij", axis, composite_factor, axis) + jnp.einsum(
        "ia,iab,jb->ij", axis, composite_inertia, axis_rate
    )
    return _mirror(robot, above, below.T)


def gravity_torque(robot, q, inertials=None, gravity=None):
    """Joint torques (n, *batch) that hold the robot still at q."""
    zero = jnp.zeros_like(q)
    return inverse_dynamics(robot, q, zero, zero, inertials, None, gravity)


def forward_dynamics(robot, q, qd, tau, inertials=None, rotor_inertias=None, gravity=None):
    """Joint accelerations (n,) of one state under joint torques tau (friction, if any, already subtracted)."""
    bias = inverse_dynamics(robot, q, qd, jnp.zeros_like(qd), inertials, rotor_inertias, gravity)
    factor = jax.scipy.linalg.cho_factor(mass_matrix(robot, q, inertials, rotor_inertias), lower=True)
    return jax.scipy.linalg.cho_solve(factor, tau - bias)


def momentum(robot, q, qd, inertials=None, rotor_inertias=None):
    """Generalised momentum M(q) qd (n, *batch)."""
    zero = jnp.zeros_like(qd)
    return inverse_dynamics(robot, q, zero, qd, inertials, rotor_inertias, (0.0, 0.0, 0.0))


def kinetic_energy(robot, q, qd, inertials=None, rotor_inertias=None):
    """Kinetic energy (*batch) [J], rotors included."""
    return 0.5 * jnp.sum(qd * momentum(robot, q, qd, inertials, rotor_inertias), axis=0)


def potential_energy(robot, q, inertials=None, gravity=None):
    """Potential energy (*batch) [J], zero where all mass sits at the base's origin."""
    body = _world_inertia(robot, pose(robot, q), inertials)
    field = jnp.asarray(robot.gravity if gravity is None else gravity)
    return -jnp.tensordot(field, jnp.sum(body.first, axis=0), axes=1)


def _world_inertia(robot, at: Pose, inertials) -> _Inertia:
    values = jnp.asarray(robot.inertials if inertials is None else inertials)
    return _at_origin(at.transform, values.reshape(*values.shape, *(1,) * (at.origin.ndim - values.ndim)))


@stage
def _at_origin(transform, inertials) -> _Inertia:
    """Inertia of every link at the world's origin from its standard parameters (n, 10, *batch or ones)."""
    p, r = transform[:, :, 0], transform[:, :, 1:]
    eye = jnp.eye(3).reshape(1, 3, 3, *(1,) * (p.ndim - 2))
    mass = jnp.broadcast_to(inertials[:, 0], p[:, 0].shape)
    c = rotate(r, inertials[:, 1:4])
    xx, xy, xz, yy, yz, zz = (inertials[:, k] for k in range(4, 10))
    local = jnp.stack([jnp.stack([xx, xy, xz], 1), jnp.stack([xy, yy, yz], 1), jnp.stack([xz, yz, zz], 1)], 1)
    moment = jnp.sum(jnp.sum(r[:, :, :, None] * local[:, None], axis=2)[:, :, None] * r[:, None], axis=3)
    outer = p[:, :, None] * (c + 0.5 * mass[:, None] * p)[:, None]
    moment = moment + eye * (mass * dot(p, p) + 2.0 * dot(p, c))[:, None, None] - outer - jnp.swapaxes(outer, 1, 2)
    return _Inertia(mass, c + mass[:, None] * p, moment)


def _composite(robot, body: _Inertia) -> _Inertia:
    return _Inertia(*(over_tree(robot.ancestors.T, part) for part in body))


def _joint_forces(robot, at: Pose, body: _Inertia, moving: Motion):
    angular, linear = (over_tree(robot.ancestors.T, part) for part in _body_wrenches(body, moving))
    return dot(at.angular, angular) + dot(at.linear, linear)


@stage
def _body_wrenches(body: _Inertia, moving: Motion):
    """Moment and force (n, 3, *batch) at the world's origin that each link needs: I A + V x* I V."""
    angular, linear = body.times(moving.wd, moving.vd)
    h_angular, h_linear = body.times(moving.w, moving.v)
    angular = angular + cross(moving.w, h_angular) + cross(moving.v, h_linear)
    return angular, linear + cross(moving.w, h_linear)


def _rotor(robot, rotor_inertias, q):
    values = jnp.asarray(robot.rotor_inertias if rotor_inertias is None else rotor_inertias)
    return values.reshape(-1, *(1,) * (q.ndim - 1)) if values.ndim == 1 else values


def _mirror(robot, above, below):
    """Joint-space matrix from entries [i, j] with i above j (`above`) and, transposed, below it (`below`)."""
    rank = above.ndim - 2
    mask = robot.ancestors.T.reshape(robot.dof, robot.dof, *(1,) * rank)
    strict = (robot.ancestors & ~robot.ancestors.T).T.reshape(mask.shape)
    return jnp.where(mask, above, 0.0) + jnp.swapaxes(jnp.where(strict, below, 0.0), 0, 1)


def _six(body: _Inertia):
    skew = _hats(body.first)
    mass = body.mass[:, None, None] * jnp.eye(3)
    top = jnp.concatenate([body.moment, skew], axis=2)
    return jnp.concatenate([top, jnp.concatenate([-skew, mass], axis=2)], axis=1)


def _hats(v):
    zero = jnp.zeros_like(v[:, 0])
    x, y, z = v[:, 0], v[:, 1], v[:, 2]
    rows = [jnp.stack(row, 1) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))]
    return jnp.stack(rows, 1)


def _motion_matrix(velocity):
    w, v = _hats(velocity[:, :3]), _hats(velocity[:, 3:])
    zero = jnp.zeros_like(w)
    return jnp.concatenate([jnp.concatenate([w, zero], 2), jnp.concatenate([v, w], 2)], 1)


def _force_bar(momentum_):
    n, f = _hats(momentum_[:, :3]), _hats(momentum_[:, 3:])
    zero = jnp.zeros_like(n)
    return jnp.concatenate([jnp.concatenate([-n, -f], 2), jnp.concatenate([-f, zero], 2)], 1)
