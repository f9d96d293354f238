"""Payload estimators of the literature behind the same interface, `(record, noise) -> Estimate`, for comparison.

Those that need acceleration get it by differentiating low-passed velocity; force and moment go through the same zero-phase
filter. Rows are divided by the sensor's noise. What filtering leaves of white noise is correlated over about 1/cutoff:
the covariances of Newey, West (1987) count it where the method does not bring its own.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import body_regressor
from bayesid.payload.integral import SIZE, IntegralEquations
from bayesid.payload.joint import noise_of, require_determined, static_fit
from bayesid.payload.parameters import inertia_matrix, payload_estimate
from bayesid.payload.record import SensorNoise, WrenchRecord
from bayesid.results import Estimate

CUTOFF = 10.0


def least_squares(record: WrenchRecord, noise: SensorNoise | None = None, cutoff: float = CUTOFF) -> Estimate:
    """Least squares with differentiated velocity (Atkeson, An, Hollerbach 1986, eq. 9), filtered at `cutoff` [Hz]."""
    rows, measured = _filtered_rows(record, noise or noise_of(record), cutoff)
    gram = np.einsum("kip,kiq->pq", rows, rows)
    require_determined(gram)
    mean = np.linalg.solve(gram, np.einsum("kip,ki->p", rows, measured))
    scores = np.einsum("kip,ki->kp", rows, measured - rows @ mean)
    lags = int(np.ceil(2.0 / (cutoff * record.motion.step)))
    inverse = np.linalg.inv(gram)
    return payload_estimate(
        mean,
        inverse @ _newey_west(scores, lags) @ inverse,
        method="least squares, differentiated velocity",
        covariance_method={"method": "hac", "lags": lags},
    )


def recursive_least_squares(
    record: WrenchRecord, noise: SensorNoise | None = None, cutoff: float = CUTOFF, forgetting: float = 1.0
) -> Estimate:
    """Recursive least squares on the rows of `least_squares`, sample by sample, with exponential forgetting.

    Its covariance is the recursion's own: filtered noise counted as white, as is customary.
    """
    rows, measured = _filtered_rows(record, noise or noise_of(record), cutoff)
    mean, covariance = _recursion(jnp.asarray(rows), jnp.asarray(measured), forgetting)
    return payload_estimate(
        np.asarray(mean),
        np.asarray(covariance),
        method="recursive least squares",
        covariance_method={"method": "recursion", "forgetting": forgetting},
    )


def total_least_squares(record: WrenchRecord, noise: SensorNoise | None = None, cutoff: float = CUTOFF) -> Estimate:
    """Total least squares: the columns of first moment and inertia are as noisy as the wrench, that of mass is exact.

    Mixed LS-TLS of Van Huffel, Vandewalle 1991 (The total least squares problem, alg. 3.2): the exact column is eliminated by
    QR, the others are scaled to the noise that the angular acceleration brings into them. Covariance to first order
    (ibid., ch. 8).
    """
    noise = noise or noise_of(record)
    rows, measured = _filtered_rows(record, noise, cutoff)
    # Noise of a low-passed derivative of white noise, against that of the low-passed wrench (both per unit wrench noise).
    derivative = 2 * np.pi * cutoff / np.sqrt(3.0) * max(noise.angular_velocity, 1e-12)
    scale = np.concatenate([np.full(3, derivative / noise.force), np.full(6, derivative / noise.moment)])
    flat = np.column_stack([rows.reshape(-1, SIZE), measured.reshape(-1)])
    triangle = np.linalg.qr(flat, mode="r")
    lower = triangle[1:, 1:] / np.append(scale, 1.0)
    require_determined(flat[:, :SIZE].T @ flat[:, :SIZE])
    direction = np.linalg.svd(lower)[2][-1]
    noisy = -direction[:-1] / direction[-1] / scale
    mass = (triangle[0, -1] - triangle[0, 1:-1] @ noisy) / triangle[0, 0]
    mean = np.concatenate([[mass], noisy])
    scores = np.einsum("kip,ki->kp", rows, measured - rows @ mean)
    inverse = np.linalg.inv(np.einsum("kip,kiq->pq", rows, rows))
    lags = int(np.ceil(2.0 / (cutoff * record.motion.step)))
    return payload_estimate(
        mean,
        inverse @ _newey_west(scores, lags) @ inverse,
        method="total least squares",
        covariance_method={"method": "hac", "lags": lags},
    )


def extended_kalman_filter(record: WrenchRecord, noise: SensorNoise | None = None) -> Estimate:
    """Extended Kalman filter with the state (angular velocity, ten parameters).

    The measured moment drives Euler's equation, whose angular velocity and force are compared with the measured ones; the
    acceleration of the origin comes from the velocity of forward kinematics. It starts from a static fit of the first 0.2 s
    and the inertia of a body of 0.1 m radius. The covariance is the filter's own, to first order in every step.
    """
    noise = noise or noise_of(record)
    motion = record.motion
    step = np.diff(motion.time, prepend=motion.time[0])
    push = np.gradient(motion.velocity, motion.time, axis=0) - np.asarray(motion.gravity)
    push = np.einsum("kji,kj->ki", motion.rotation, push)
    start = static_fit(record.select(slice(0, max(3, int(0.2 / motion.step)))))
    arm = start[1:4] / max(start[0], 1e-6)
    guess = start[0] * ((arm @ arm + 0.1**2) * np.eye(3) - np.outer(arm, arm))
    start[4:] = guess[np.triu_indices(3)]
    spread = np.concatenate([[0.1 * start[0]] * 4, np.full(6, 0.2 * np.trace(guess))]) + 1e-3
    std = np.array([max(noise.angular_velocity, 1e-6), noise.force, noise.moment])
    measured = np.concatenate([record.angular_velocity, record.force, record.moment], axis=1)
    state, covariance = _filter(*map(jnp.asarray, (measured, push, step, std, start, spread)))
    return payload_estimate(
        np.asarray(state[3:]),
        np.asarray(covariance[3:, 3:]),
        method="extended Kalman filter",
        covariance_method={"method": "filter"},
    )


def integrated_least_squares(record: WrenchRecord, noise: SensorNoise | None = None) -> Estimate:
    """Least squares on the integrated equations with their noise taken for white. For comparison only: integrated white noise
    is a random walk, and the intervals come out far too short."""
    noise = noise or noise_of(record)
    equations = IntegralEquations(record.motion)
    weight = 1.0 / np.array([noise.force] * 3 + [noise.moment] * 3)
    rows = np.cumsum(equations.rows(record.angular_velocity), axis=2) * weight[:, None, None]
    measured = np.cumsum(equations.integrals(record.force, record.moment), axis=1) * weight[:, None]
    flat, right = np.moveaxis(rows, 1, 2).reshape(-1, SIZE), measured.reshape(-1)
    gram = flat.T @ flat
    mean = np.linalg.solve(gram, flat.T @ right)
    variance = np.sum((right - flat @ mean) ** 2) / (right.size - SIZE)
    return payload_estimate(
        mean, variance * np.linalg.inv(gram), method="integrated least squares", covariance_method={"method": "white"}
    )


def _filtered_rows(record, noise, cutoff):
    from bayesid.signals.filtering import low_pass

    motion = record.motion
    rate = 1.0 / motion.step
    signals = np.concatenate([record.angular_velocity, motion.velocity, record.force, record.moment], axis=1)
    w, v, force, moment = np.split(low_pass(signals, rate, cutoff), 4, axis=1)
    spin = np.gradient(w, motion.time, axis=0)
    acceleration = np.gradient(v, motion.time, axis=0) - np.asarray(motion.gravity)
    rows = np.asarray(wrench_rows(*map(jnp.asarray, (motion.rotation, w, acceleration, spin))))
    weight = 1.0 / np.array([noise.force] * 3 + [noise.moment] * 3)
    return rows * weight[:, None], np.concatenate([force, moment], axis=1) * weight


@jax.jit
def wrench_rows(rotation, w, acceleration, spin):
    """(N, 6, 10) body regressors; acceleration (N, 3) less gravity along the base's axes, w and spin along the body's."""

    def one(rotation, w, acceleration, spin):
        return body_regressor(jnp.concatenate([jnp.zeros(3), w]), jnp.concatenate([rotation.T @ acceleration, spin]))

    return jax.vmap(one)(rotation, w, acceleration, spin)


def _newey_west(scores, lags):
    out = scores.T @ scores
    for lag in range(1, min(lags, len(scores) - 1) + 1):
        gamma = scores[lag:].T @ scores[:-lag]
        out += (1.0 - lag / (lags + 1.0)) * (gamma + gamma.T)
    return out


@jax.jit
def _recursion(rows, measured, forgetting):
    def update(carry, sample):
        mean, covariance = carry
        row, value = sample
        cross = covariance @ row.T
        gain = jnp.linalg.solve(forgetting * jnp.eye(6) + row @ cross, cross.T).T
        mean = mean + gain @ (value - row @ mean)
        covariance = (covariance - gain @ cross.T) / forgetting
        return (mean, 0.5 * (covariance + covariance.T)), None

    start = (jnp.zeros(SIZE), 1e4 * jnp.eye(SIZE))
    return jax.lax.scan(update, start, (rows, measured))[0]


@jax.jit
def _filter(measured, push, step, std, payload, spread):
    def spin(state, moment, push):
        w, first, tensor = state[:3], state[4:7], inertia_matrix(state[7:])
        return jnp.linalg.solve(tensor, moment - jnp.cross(first, push) - jnp.cross(w, tensor @ w))

    def moved(state, moment, push, dt):
        return state.at[:3].add(dt * spin(state, moment, push))

    def sensed(state, moment, push):
        w, mass, first = state[:3], state[3], state[4:7]
        force = mass * push + jnp.cross(spin(state, moment, push), first) + jnp.cross(w, jnp.cross(w, first))
        return jnp.concatenate([w, force])

    def update(carry, sample):
        state, covariance = carry
        value, push, dt = sample
        w, force, moment = value[:3], value[3:6], value[6:]
        move = jax.jacfwd(moved)(state, moment, push, dt)
        drive = dt * std[2] * jnp.linalg.inv(inertia_matrix(state[7:]))
        state, covariance = moved(state, moment, push, dt), move @ covariance @ move.T
        covariance = covariance.at[:3, :3].add(drive @ drive.T)
        slope = jax.jacfwd(sensed)(state, moment, push)
        through = jax.jacfwd(sensed, argnums=1)(state, moment, push) * std[2]
        scatter = jnp.diag(jnp.repeat(std[:2] ** 2, 3)) + through @ through.T
        cross = covariance @ slope.T
        gain = jnp.linalg.solve(slope @ cross + scatter, cross.T).T
        state = state + gain @ (jnp.concatenate([w, force]) - sensed(state, moment, push))
        covariance = covariance - gain @ cross.T
        return (state, 0.5 * (covariance + covariance.T)), None

    spread = jnp.concatenate([jnp.full(3, 1e-2), spread])
    start = (jnp.concatenate([jnp.zeros(3), payload]), jnp.diag(spread**2))
    return jax.lax.scan(update, start, (measured, push, step))[0]
