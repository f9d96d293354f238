"""The stepwise momentum estimator: mass at rest, centre of mass from straight motion, inertia column by column from turns.

Source: "A Method of Estimating an Object's Parameters Based on Simplification with Momentum for a Manipulator", Applied
Sciences 15 (2025) 3989. Each step is least squares on integrals over one motion:

    m from |f| = m g at rest;  integral n = r x integral f  in straight motion;  integral (n - r x f) = I w  about the centre of
    mass, one turn per column of I; what stands twice in the tensor is averaged.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.errors import DataError
from bayesid.payload.checks import check_record
from bayesid.payload.joint import noise_of
from bayesid.payload.parameters import from_com, payload_estimate
from bayesid.payload.record import SensorMotion, SensorNoise, WrenchRecord
from bayesid.results import Estimate


class _Steps(NamedTuple):
    """Constants of a motion: rows of each part, gravity's direction in sensor axes, rotations, gravity, step."""

    rest: jax.Array
    linear: jax.Array
    turns: jax.Array
    up: jax.Array
    rotation: jax.Array
    gravity: jax.Array
    step: jax.Array


def momentum_estimate(record: WrenchRecord, noise: SensorNoise | None = None) -> Estimate:
    """Standard parameters (m, c, I about the sensor frame) of a record with the parts `rest`, `linear ...` and `turn 1..3`.

    The covariance carries the white noise of every sample through all steps to first order, so that the random walk of the
    integrals and the errors that mass and centre of mass pass on are in it. `noise` None: estimated from the record.
    Raises DataError when a part is missing.
    """
    check_record(record)
    noise = noise_of(record) if noise is None else noise
    mean, covariance = momentum_batch(
        record.motion, record.force[None], record.moment[None], record.angular_velocity[None], noise
    )
    return payload_estimate(
        np.asarray(from_com(mean[0])),
        _standard_covariance(mean[0], covariance[0]),
        method="stepwise momentum",
        covariance_method={"method": "sensor noise model, first order"},
        meta={"samples": len(record)},
    )


def momentum_batch(motion: SensorMotion, force, moment, angular_velocity, noise: SensorNoise):
    """Means (D, 10) as mass, centre of mass and inertia about it, and covariances (D, 10, 10), of D records (D, N, 3) along one
    motion."""
    densities = jnp.array([noise.force, noise.moment, noise.angular_velocity])
    mean, covariance = _with_covariance(
        _steps(motion), jnp.asarray(force), jnp.asarray(moment), jnp.asarray(angular_velocity), densities
    )
    return np.asarray(mean), np.asarray(covariance)


def momentum_batch_white(motion: SensorMotion, force, moment, angular_velocity):
    """Means (D, 10) and standard deviations (D, 10) as textbook least squares gives them, residuals of the integrals taken for
    white noise and each step's input for exact. For comparison only: its intervals are far too short."""
    mean, std = _all_white(_steps(motion), *(jnp.asarray(x) for x in (force, moment, angular_velocity)))
    return np.asarray(mean), np.asarray(std)


def _steps(motion: SensorMotion) -> _Steps:
    linear, turns = motion.names("linear"), motion.names("turn")
    if "rest" not in motion.names("rest") or not linear or len(turns) != 3:
        raise DataError(
            "the stepwise momentum estimator needs a rest, at least one straight motion and three turns about x, y and z; this "
            f"motion has {', '.join(name for name, _, _ in motion.parts) or 'no named parts'}: use the joint estimator"
        )
    rows = [motion.rows("rest"), np.array([motion.rows(n) for n in linear]), np.array([motion.rows(n) for n in turns])]
    gravity = np.asarray(motion.gravity, dtype=float)
    up = -motion.rotation[rows[0][0]].T @ gravity / np.linalg.norm(gravity)
    return _Steps(*map(jnp.asarray, rows), *map(jnp.asarray, (up, motion.rotation, np.linalg.norm(gravity), motion.step)))


def _stepwise(steps: _Steps, force, moment, w):
    """(10,) mass, centre of mass, inertia about it, of one record (N, 3) each."""
    return _fit(steps, force, moment, w)[0]


def _fit(steps, force, moment, w):
    mass = jnp.mean(force[steps.rest] @ steps.up) / steps.gravity
    impulse, twist = (_integral(x[steps.linear], steps.step) for x in (force, moment))
    lever = -_skew(impulse)
    gram = jnp.einsum("pkia,pkib->ab", lever, lever)
    com = jnp.linalg.solve(gram, jnp.einsum("pkia,pki->a", lever, twist))
    central = moment - jnp.cross(com, force)
    turning = steps.rotation[steps.turns]
    spun = _integral(jnp.einsum("pkij,pkj->pki", turning, central[steps.turns]), steps.step)
    spun = jnp.einsum("pkji,pkj->pki", turning, spun)
    rate = jnp.stack([w[steps.turns[i], i] for i in range(3)])
    power = jnp.sum(rate**2, axis=1)
    columns = jnp.einsum("pk,pkj->jp", rate, spun) / power
    tensor = 0.5 * (columns + columns.T)
    upper = jnp.stack([tensor[i, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))])
    mean = jnp.concatenate([mass[None], com, upper])
    return mean, (lever, twist, gram, spun, rate, power, columns)


@jax.jit
def _all_white(steps, force, moment, w):
    return jax.lax.map(lambda record: _stepwise_white(steps, *record), (force, moment, w))


def _stepwise_white(steps, force, moment, w):
    mean, (lever, twist, gram, spun, rate, power, columns) = _fit(steps, force, moment, w)
    upwards = force[steps.rest] @ steps.up
    mass = jnp.std(upwards, ddof=1) / jnp.sqrt(upwards.size) / steps.gravity
    residual = twist - lever @ mean[1:4]
    com = jnp.sqrt(jnp.sum(residual**2) / (residual.size - 3) * jnp.diag(jnp.linalg.inv(gram)))
    rest = spun - rate[:, :, None] * columns.T[:, None]
    single = (jnp.sum(rest**2, axis=1) / (rate.shape[1] - 1) / power[:, None]).T
    both = 0.25 * (single + single.T) + jnp.diag(0.5 * jnp.diag(single))
    inertia = jnp.sqrt(jnp.stack([both[i, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]))
    return mean, jnp.concatenate([mass[None], com, inertia])


@jax.jit
def _with_covariance(steps, force, moment, w, densities):
    def one(record):
        mean, back = jax.vjp(partial(_stepwise, steps), *record)
        slopes = jax.vmap(back)(jnp.eye(10))
        parts = [density**2 * jnp.einsum("aki,bki->ab", x, x) for density, x in zip(densities, slopes)]
        return mean, sum(parts)

    return jax.lax.map(one, (force, moment, w))


def _standard_covariance(about, covariance):
    slope = np.asarray(jax.jacfwd(from_com)(jnp.asarray(about)))
    return slope @ covariance @ slope.T


def _integral(values, step):
    """Trapezoidal integral along the second axis, zero at its start."""
    means = 0.5 * step * (values[:, 1:] + values[:, :-1])
    return jnp.concatenate([jnp.zeros_like(values[:, :1]), jnp.cumsum(means, axis=1)], axis=1)


def _skew(v):
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    o = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([o, -z, y], -1), jnp.stack([z, o, -x], -1), jnp.stack([-y, x, o], -1)], -2)
