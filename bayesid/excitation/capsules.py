"""Distances between capsules: segments with a radius. Ericson, Real-Time Collision Detection (2005), sec. 5.1.9."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import link_poses
from bayesid.dynamics.spatial import rotate

_TINY = 1e-12
_POSES = 400
_MOVES = 0.01


def segment_distance(a0, a1, b0, b1):
    """Distance (*batch) between segments a0-a1 and b0-b1, points (3, *batch), in JAX.

    The gradient is the exact one wherever the closest points are unique: they are held fixed along the segments, since the
    distance is stationary in them.
    """
    s, t = jax.lax.stop_gradient(_closest(a0, a1, b0, b1))
    gap = a0 + s * (a1 - a0) - b0 - t * (b1 - b0)
    return jnp.sqrt(jnp.sum(gap**2, axis=0) + _TINY)


def _closest(a0, a1, b0, b1):
    d1, d2, r = a1 - a0, b1 - b0, a0 - b0
    a, e, b = jnp.sum(d1 * d1, 0) + _TINY, jnp.sum(d2 * d2, 0) + _TINY, jnp.sum(d1 * d2, 0)
    c, f = jnp.sum(d1 * r, 0), jnp.sum(d2 * r, 0)
    denominator = a * e - b * b
    s = jnp.where(denominator > _TINY * a * e, jnp.clip((b * f - c * e) / jnp.maximum(denominator, _TINY**2), 0, 1), 0.0)
    t = jnp.clip((b * s + f) / e, 0.0, 1.0)
    return jnp.stack([jnp.clip((b * t - c) / a, 0.0, 1.0), t])


def segment_distance_by_cases(a0, a1, b0, b1):
    """The same distance in NumPy by another road, for certificates: the least of the four end-to-segment distances and of
    the distance between the lines where their feet lie inside both segments."""
    best = np.minimum.reduce(
        [_to_segment(a0, b0, b1), _to_segment(a1, b0, b1), _to_segment(b0, a0, a1), _to_segment(b1, a0, a1)]
    )
    d1, d2 = a1 - a0, b1 - b0
    normal = np.cross(d1, d2, axis=0)
    size = np.sum(normal**2, axis=0)
    skew = size > 1e-18
    safe = np.where(skew, size, 1.0)
    r = b0 - a0
    s = np.sum(np.cross(r, d2, axis=0) * normal, axis=0) / safe
    t = np.sum(np.cross(r, d1, axis=0) * normal, axis=0) / safe
    inside = skew & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    between = np.abs(np.sum(r * normal, axis=0)) / np.sqrt(safe)
    return np.where(inside, np.minimum(best, between), best)


def _to_segment(point, start, end):
    along = end - start
    length = np.sum(along**2, axis=0)
    where = np.clip(np.sum((point - start) * along, axis=0) / np.where(length > 0, length, 1.0), 0.0, 1.0)
    return np.linalg.norm(point - start - where * along, axis=0)


def place(capsules, rotation, origin):
    """Ends (capsules, 3, *batch) of all capsules at link poses (n, 3, 3, *batch) and (n, 3, *batch)."""
    batch = origin.shape[2:]
    starts, ends = [], []
    for capsule in capsules:
        pair = []
        for point in (capsule.start, capsule.end):
            fixed = np.reshape(point, (3, *(1,) * len(batch)))
            if capsule.parent < 0:
                pair.append(jnp.broadcast_to(fixed, (3, *batch)))
            else:
                turned = rotate(rotation[capsule.parent][None], jnp.broadcast_to(fixed, (1, 3, *batch)))[0]
                pair.append(origin[capsule.parent] + turned)
        starts.append(pair[0])
        ends.append(pair[1])
    return jnp.stack(starts), jnp.stack(ends)


def random_poses(robot):
    """(n, S) seeded random joint positions inside the limits."""
    lower, upper = np.maximum(robot.limit("lower"), -np.pi), np.minimum(robot.limit("upper"), np.pi)
    return np.random.default_rng(7).uniform(lower, upper, (_POSES, robot.dof)).T


def collision_pairs(robot) -> tuple[tuple[int, int], ...]:
    """Pairs of capsules that a motion can bring into contact.

    Left out: pairs on one link or on neighbouring links, which touch by construction, and pairs whose distance no joint
    changes by more than 10 mm.
    """
    parents = dict(enumerate(robot.parents.tolist()))
    candidates = []
    for i, first in enumerate(robot.capsules):
        for j, second in enumerate(robot.capsules[:i]):
            a, b = first.parent, second.parent
            if a == b or parents.get(a) == b or parents.get(b) == a:
                continue
            candidates.append((j, i))
    if not candidates:
        return ()
    start, end = (np.asarray(x) for x in place(robot.capsules, *link_poses(robot, jnp.asarray(random_poses(robot)))))
    kept = []
    for i, j in candidates:
        distance = segment_distance_by_cases(start[i], end[i], start[j], end[j])
        if np.ptp(distance) > _MOVES:
            kept.append((i, j))
    return tuple(kept)
