"""Closed-form inverse kinematics of arms built like Universal Robots': every solution, batched, differentiable.

The structure is read from the joint axes, not from a table: axis 2 crosses axis 1 at a right angle, axes 2, 3 and 4 are
parallel, axis 5 crosses 4 and axis 6 crosses 5, both at right angles. Every UR model, in any frame convention, has it.
The angles follow Hawkins, "Analytic inverse kinematics for the Universal Robots UR-5/UR-10 arms" (Georgia Tech, 2013),
rewritten with atan2 throughout so that no digits are lost near the singularities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.errors import DesignError, RobotError
from bayesid.kinematics.chain import zero_poses
from bayesid.robots import Robot

BRANCHES = tuple((shoulder, wrist, elbow) for shoulder in (1, -1) for wrist in (1, -1) for elbow in (1, -1))
"""(8, 3) signs of each solution: shoulder (which side of axis 1), wrist (sign of sin theta5), elbow (sign of sin
theta3).
"""

SINGULARITIES = ("shoulder", "elbow", "wrist")
_ROUNDING = 1e-12


@dataclass(frozen=True)
class UrArm:
    """An arm of the UR structure in Denavit-Hartenberg form, `q = sign (theta - offset)`.

    `base` (4x4) places the crossing of axes 1 and 2, `tool` (4x4) the target frame behind axis 6; lengths in m.
    """

    name: str
    a2: float
    a3: float
    d4: float
    d5: float
    signs: tuple[float, ...]
    offsets: tuple[float, ...]
    base: tuple[tuple[float, ...], ...]
    tool: tuple[tuple[float, ...], ...]


class UrSolutions(NamedTuple):
    """All configurations that reach a pose: `q` (..., 8, 6) in (-pi, pi], NaN where there is none.

    `valid` (..., 8) marks the solutions that exist. `margins` (..., 8, 3) are the signed squares of the sines that
    vanish at the shoulder, elbow and wrist singularities; a negative one says by which of them the pose is out of
    reach. Solution k is branch BRANCHES[k]; a branch stays continuous along a path that keeps its margins away from
    zero.
    """

    q: jax.Array
    valid: jax.Array
    margins: jax.Array


@lru_cache(maxsize=64)
def ur_arm(robot: Robot, frame: str | None = None) -> UrArm:
    """The UR form of a robot for a target frame (default: the last link's). Raises RobotError for any other
    structure.
    """
    if robot.dof != 6 or not robot.revolute.all() or list(robot.parents) != [-1, 0, 1, 2, 3, 4]:
        raise RobotError(
            f"robot '{robot.name}' has no closed-form inverse kinematics: it is not a chain of 6 revolute "
            "joints; use damped_least_squares"
        )
    rotations, positions = zero_poses(robot)
    w = np.einsum("iab,ib->ia", rotations, robot.axes)
    signs = np.ones(6)
    for i in (2, 3):
        signs[i] = np.sign(w[i] @ w[1]) or 1.0
        w[i] *= signs[i]
    right_angles = [abs(w[0] @ w[1]), abs(w[3] @ w[4]), abs(w[4] @ w[5])]
    if max(*right_angles, *np.linalg.norm(w[2:4] - w[1], axis=1)) > 1e-9:
        raise RobotError(
            f"robot '{robot.name}' has no closed-form inverse kinematics: its joint axes are not those of a "
            "UR arm (2, 3, 4 parallel, 1-2, 4-5 and 5-6 at right angles); use damped_least_squares"
        )
    o1 = _crossing(robot, 0, positions, w)
    o4 = _crossing(robot, 3, positions, w)
    o5 = _crossing(robot, 4, positions, w)
    z = w[1]
    x1 = np.cross(w[0], z)
    upper = _across(positions[2] - positions[1], z)
    fore = _across(positions[3] - positions[2], z)
    a2, a3 = np.linalg.norm(upper), np.linalg.norm(fore)
    if min(a2, a3) < 1e-9:
        raise RobotError(f"robot '{robot.name}' has no closed-form inverse kinematics: two of its parallel axes coincide")
    x2, x3 = upper / a2, fore / a3
    x4, x5 = np.cross(z, w[4]), np.cross(w[5], w[4])
    offsets = (0.0, _angle(x1, x2, z), _angle(x2, x3, z), _angle(x3, x4, z), _angle(x4, x5, w[4]), 0.0)
    target = robot.frame(frame or robot.link_names[-1])
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.reshape(target.rotation, (3, 3)), target.xyz
    if target.parent >= 0:
        pose = _matrix(rotations[target.parent], positions[target.parent]) @ pose
    if target.parent != 5:
        raise RobotError(
            f"robot '{robot.name}': frame '{target.name}' does not move with the last joint, so that its pose "
            "does not determine the joint angles"
        )
    wrist = _matrix(np.column_stack([x5, np.cross(w[5], x5), w[5]]), o5)
    base = _matrix(np.column_stack([x1, np.cross(w[0], x1), w[0]]), o1)
    return UrArm(
        robot.name,
        float(a2),
        float(a3),
        float((o4 - o1) @ z),
        float((o5 - o4) @ w[4]),
        tuple(signs.tolist()),
        tuple(float(x) for x in offsets),
        _tuples(base),
        _tuples(np.linalg.inv(wrist) @ pose),
    )


def ur_inverse_kinematics(robot: Robot, rotation, position, frame: str | None = None) -> UrSolutions:
    """All up to eight configurations that put a frame at a pose.

    Parameters: `rotation` (..., 3, 3) and `position` (..., 3) [m] of `frame` (default: the last link's) in the base;
    any batch shape. Differentiable by JAX wherever a solution is isolated, that is away from the singularities. At a
    wrist singularity theta6 is free: the solution returned is one of a continuum, and its margin is zero.
    """
    return _solve(ur_arm(robot, frame), jnp.asarray(rotation, float), jnp.asarray(position, float))


@jax.jit(static_argnums=0)
def _solve(arm: UrArm, rotation, position) -> UrSolutions:
    base, tool = np.array(arm.base), np.array(arm.tool)
    batch = rotation.shape[:-2]
    R = jnp.moveaxis(rotation.reshape(-1, 3, 3), 0, -1)
    p = jnp.moveaxis(position.reshape(-1, 3), 0, -1)
    # Pose of the wrist frame (crossing of axes 5 and 6) seen from the crossing of axes 1 and 2.
    p = p - jnp.einsum("abs,b->as", R, tool[:3, :3].T @ tool[:3, 3])
    p = jnp.einsum("ba,bs->as", base[:3, :3], p - base[:3, 3][:, None])
    R = jnp.einsum("ba,bcs,dc->ads", base[:3, :3], R, tool[:3, :3])
    a2, a3, d4, d5 = arm.a2, arm.a3, arm.d4, arm.d5

    # Axes of the arrays below: shoulder, wrist, elbow, pose.
    shoulder, wrist, elbow = (np.array([1.0, -1.0]).reshape(shape) for shape in ((2, 1, 1, 1), (2, 1, 1), (2, 1)))
    r2 = p[0] ** 2 + p[1] ** 2
    shoulder_margin = 1.0 - d4**2 / r2
    q1 = jnp.arctan2(p[1], p[0]) + jnp.arctan2(d4, shoulder * jnp.sqrt(_clip(r2 - d4**2, r2)))
    # Barriers keep XLA from recomputing a stage for each branch of the next.
    q1, c1, s1 = jax.lax.optimization_barrier((q1, jnp.cos(q1), jnp.sin(q1)))
    # z1, the common direction of axes 2, 3 and 4, is (s1, -c1, 0); here in the wrist frame.
    zx, zy, zz = (s1 * R[0, k] - c1 * R[1, k] for k in range(3))
    wrist_margin = zx**2 + zy**2
    s5 = jnp.sqrt(wrist_margin)
    # Axis 5 is perpendicular to both z1 and z6; at the wrist singularity any direction perpendicular to z6 will do.
    safe = jnp.where(s5 > 0, s5, 1.0)
    c6, s6 = jnp.where(s5 > 0, zx / safe, 1.0), jnp.where(s5 > 0, -zy / safe, 0.0)
    axis5 = [-s6 * R[k, 0] - c6 * R[k, 1] for k in range(3)]
    along, up = c1 * axis5[0] + s1 * axis5[1], axis5[2]
    angle5, angle6 = jnp.arctan2(s5, zz), jnp.arctan2(-zy, zx)
    angle234 = jnp.arctan2(along, -up)
    ahead = c1 * p[0] + s1 * p[1]
    angle5, angle6, angle234, along, up = jax.lax.optimization_barrier((angle5, angle6, angle234, along, up))
    half_turn = np.where(wrist > 0, 0.0, np.pi)
    q5, q6, q234 = wrist * angle5, angle6 + half_turn, angle234 + half_turn
    px, py = ahead - wrist * d5 * along, p[2] - wrist * d5 * up
    reach2 = px**2 + py**2
    elbow_margin = ((a2 + a3) ** 2 - reach2) * (reach2 - (a2 - a3) ** 2) / (2 * a2 * a3) ** 2
    sine3, cosine3 = jnp.sqrt(_clip(elbow_margin, 1.0)), (reach2 - a2**2 - a3**2) / (2 * a2 * a3)
    angle3, inner, outer = jax.lax.optimization_barrier(
        (jnp.arctan2(sine3, cosine3), jnp.arctan2(a3 * sine3, a2 + a3 * cosine3), jnp.arctan2(py, px))
    )
    q3, q2 = elbow * angle3, outer - elbow * inner
    shape = (2, 2, 2, p.shape[-1])
    theta = [jnp.broadcast_to(x, shape).reshape(8, -1) for x in (q1, q2, q3, q234 - q2 - q3, q5, q6)]
    q = (jnp.stack(theta, 1) - np.array(arm.offsets)[:, None]) * np.array(arm.signs)[:, None]
    q = q - 2 * np.pi * jnp.ceil((q - np.pi) / (2 * np.pi))
    margins = jnp.stack([jnp.broadcast_to(x, shape).reshape(8, -1) for x in (shoulder_margin, elbow_margin, wrist_margin)], 1)
    valid = (margins[:, :2] >= -_ROUNDING).all(1)
    q = jnp.where(valid[:, None], q, jnp.nan)
    return UrSolutions(
        jnp.moveaxis(q, -1, 0).reshape(*batch, 8, 6),
        valid.T.reshape(*batch, 8),
        jnp.moveaxis(margins, -1, 0).reshape(*batch, 8, 3),
    )


def explain_reach(solutions: UrSolutions, tolerance: float = 1e-8) -> list[str]:
    """One word or phrase per pose of a batch: "regular", "singular: wrist, elbow", or "unreachable: ..."."""
    valid = np.asarray(solutions.valid).reshape(-1, 8)
    margins = np.asarray(solutions.margins).reshape(-1, 8, 3)
    words = []
    for ok, margin in zip(valid, margins, strict=True):
        if np.isnan(margin[:, 0]).any() or np.isinf(margin[:, 0]).any():
            words.append("unreachable: the pose holds a number that is not finite, or lies on axis 1")
        elif not ok.any():
            if (margin[:, 0] < -_ROUNDING).all():
                words.append("unreachable: the wrist is too close to axis 1 (inside the shoulder offset)")
            else:
                words.append("unreachable: the wrist is too far from, or too close to, the shoulder for the arm's length")
        else:
            near = [name for name, m in zip(SINGULARITIES, margin[ok].T, strict=True) if (m < tolerance).any()]
            words.append("singular: " + ", ".join(near) if near else "regular")
    return words


def require_reachable(robot: Robot, solutions: UrSolutions) -> None:
    """Raise DesignError naming the first pose without any solution, and why."""
    missing = np.flatnonzero(~np.asarray(solutions.valid).reshape(-1, 8).any(1))
    if missing.size:
        flat = UrSolutions(
            *(np.asarray(part).reshape(-1, *part.shape[-k:])[missing[:1]] for part, k in zip(solutions, (2, 1, 2), strict=True))
        )
        raise DesignError(f"robot '{robot.name}', pose {missing[0]}: {explain_reach(flat)[0]}; move it into the workspace")


def nearest_turn(q, reference):
    """`q` moved by full turns to lie within half a turn of `reference`, joint by joint [rad]."""
    return q + 2 * np.pi * jnp.round((reference - q) / (2 * np.pi))


def _clip(value, scale):
    return jnp.where(value > 0, value, jnp.where(value >= -_ROUNDING * scale, 0.0, jnp.nan))


def _crossing(robot, i, positions, w):
    """The point where axes i and i + 1 cross."""
    normal = np.cross(w[i], w[i + 1])
    between = positions[i + 1] - positions[i]
    if abs(between @ normal) > 1e-9:
        raise RobotError(
            f"robot '{robot.name}' has no closed-form inverse kinematics: the axes of joints "
            f"'{robot.joint_names[i]}' and '{robot.joint_names[i + 1]}' miss each other by "
            f"{abs(between @ normal):.3g} m; use damped_least_squares"
        )
    along = np.cross(between, w[i + 1]) @ normal / (normal @ normal)
    return positions[i] + along * w[i]


def _across(vector, axis):
    return vector - (vector @ axis) * axis


def _angle(x, y, about):
    return float(np.arctan2(np.cross(x, y) @ about, x @ y))


def _matrix(rotation, position):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix


def _tuples(matrix):
    return tuple(tuple(float(x) for x in row) for row in matrix)
