"""The joint estimator sample by sample: current payload, its precision, when to stop, and whether the load changed.

The estimate is that of `joint_estimate` with the weights of an assumed payload, updated instead of solved: the whitening filter
runs forwards, and products of whitened rows add up. A change of load shows in the whitened prediction errors: cumulative
sums of both signs (Page 1954) in all six channels, after which the estimate starts afresh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.errors import DataError
from bayesid.payload.integral import SIZE
from bayesid.payload.joint import Whitening
from bayesid.payload.parameters import payload_estimate
from bayesid.payload.record import SensorNoise, WrenchRecord
from bayesid.results import Estimate

# What is known before the first sample: nothing within 1000 kg, 100 kg m, 10 kg m^2.
_BEFORE = np.array([1e3] + [1e2] * 3 + [1e1] * 6) ** -2.0
_DRIFT = 0.5


class Sample(NamedTuple):
    """One instant: time [s], rotation (3, 3) to the base, velocity (3,) of the origin in the base [m/s], angular velocity (3,)
    from forward kinematics and as measured, force (3,) [N] and moment (3,) [N m], the last four along the sensor's axes."""

    time: jax.Array
    rotation: jax.Array
    velocity: jax.Array
    kinematic_rate: jax.Array
    measured_rate: jax.Array
    force: jax.Array
    moment: jax.Array


class StreamState(NamedTuple):
    """Everything the stream remembers; made by `PayloadStream.start`."""

    last: Sample
    variance: jax.Array
    regressor: jax.Array
    instrument: jax.Array
    measured: jax.Array
    left: jax.Array
    right: jax.Array
    information: jax.Array
    mean: jax.Array
    covariance: jax.Array
    sums: jax.Array
    count: jax.Array


class Reading(NamedTuple):
    """After one sample: standard parameters `mean` (10,) and `covariance` (10, 10), mass [kg] and centre of mass (3,) [m] with
    standard deviations, samples since the last change, and whether a change was noticed at this sample."""

    mean: jax.Array
    covariance: jax.Array
    mass: jax.Array
    mass_std: jax.Array
    com: jax.Array
    com_std: jax.Array
    count: jax.Array
    changed: jax.Array


@dataclass(frozen=True)
class StopRule:
    """Precise enough: mass within a fraction and centre of mass within metres, at `level`, every axis."""

    mass: float = 0.01
    com: float = 0.002
    level: float = 0.95

    def met(self, mass, mass_std, com_std):
        """True where half widths of the intervals are within the goal; arrays (...,), (...,), (..., 3)."""
        from bayesid.results.estimate import t_quantile

        z = t_quantile((1 + self.level) / 2, math.inf)
        mass, mass_std, com_std = (np.asarray(x) for x in (mass, mass_std, com_std))
        return (z * mass_std <= self.mass * np.abs(mass)) & (z * com_std <= self.com).all(-1)


@dataclass(frozen=True, eq=False)
class PayloadStream:
    """Streaming estimation for a sensor with known `noise`, sampled every `step` seconds.

    `assumed` (10,): standard parameters that set the weights, not the estimate (default: as if angular velocity were exact).
    `false_alarms`: expected changes noticed per sample when there is none.
    """

    noise: SensorNoise
    step: float
    assumed: tuple[float, ...] | None = None
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    false_alarms: float = 1e-7

    def __post_init__(self):
        if not (math.isfinite(self.step) and self.step > 0):
            raise DataError(f"the sampling step must be a positive number of seconds, got {self.step}")
        if not 0 < self.false_alarms < 0.1:
            raise DataError(f"the rate of false alarms must lie between 0 and 0.1 per sample, got {self.false_alarms}")
        payload = None if self.assumed is None else np.asarray(self.assumed)
        whitening = Whitening.of(self.noise, self.step, payload)
        # Wald's bound for a one-sided sum with drift one half; twelve sums run side by side.
        threshold = math.log(12.0 / self.false_alarms) / (2.0 * _DRIFT)
        constants = (whitening.mix, whitening.ratio, np.asarray(self.gravity, dtype=float), threshold)
        object.__setattr__(self, "_constants", tuple(map(jnp.asarray, constants)))

    def start(self, sample: Sample) -> StreamState:
        """The state after the first sample."""
        return _start(jax.tree.map(lambda x: jnp.asarray(x, dtype=float), sample), self._constants)

    def update(self, state: StreamState, sample: Sample) -> tuple[StreamState, Reading]:
        """One sample more. Compiled on first use."""
        return _update(state, sample, self._constants)

    def run(self, record: WrenchRecord) -> tuple[StreamState, Reading]:
        """All samples of a record in one compiled scan: the last state, and readings (axis 0: time) from the second on."""
        samples = samples_of(record)
        state = self.start(jax.tree.map(lambda x: x[0], samples))
        return _scan(state, jax.tree.map(lambda x: x[1:], samples), self._constants)

    def estimate(self, state: StreamState) -> Estimate:
        """The current standard parameters as an Estimate."""
        return payload_estimate(
            np.asarray(state.mean),
            np.asarray(state.covariance),
            method="joint momentum integral, streaming",
            covariance_method={"method": "sensor noise model"},
            meta={"samples": int(state.count)},
        )


def samples_of(record: WrenchRecord) -> Sample:
    """A record as stacked samples, axis 0 over time."""
    motion = record.motion
    parts = (motion.time, motion.rotation, motion.velocity, motion.angular_velocity)
    return Sample(*map(jnp.asarray, (*parts, record.angular_velocity, record.force, record.moment)))


def _start(sample, constants):
    _, ratio, _, _ = constants
    before = jnp.diag(jnp.asarray(_BEFORE))
    return StreamState(
        last=sample,
        variance=1.0 + 2.0 * ratio,
        regressor=jnp.zeros((6, SIZE)),
        instrument=jnp.zeros((6, SIZE)),
        measured=jnp.zeros(6),
        left=before,
        right=jnp.zeros(SIZE),
        information=before,
        mean=jnp.zeros(SIZE),
        covariance=jnp.diag(1.0 / jnp.asarray(_BEFORE)),
        sums=jnp.zeros((2, 6)),
        count=jnp.zeros((), dtype=int),
    )


@jax.jit
def _update(state: StreamState, sample: Sample, constants):
    mix, ratio, gravity, threshold = constants
    regressor, instrument, measured = (mix @ x for x in _equations(state.last, sample, gravity))
    first = state.count == 0
    gain = jnp.where(first, 0.0, ratio / state.variance)
    variance = jnp.where(first, 1.0 + 2.0 * ratio, 1.0 + 2.0 * ratio - ratio**2 / state.variance)
    regressor = regressor + gain[:, None] * state.regressor
    instrument = instrument + gain[:, None] * state.instrument
    measured = measured + gain * state.measured
    expected = variance + jnp.einsum("ip,pq,iq->i", regressor, state.covariance, regressor)
    error = (measured - regressor @ state.mean) / jnp.sqrt(expected)
    sums = jnp.maximum(state.sums + jnp.stack([error, -error]) - _DRIFT, 0.0)
    changed = jnp.max(sums) > threshold
    before = jnp.diag(jnp.asarray(_BEFORE))
    weighted = instrument / variance[:, None]
    # After a change the whitening filter starts again as well: it remembers the old load.
    left = jnp.where(changed, before, state.left + weighted.T @ regressor)
    information = jnp.where(changed, before, state.information + weighted.T @ instrument)
    right = jnp.where(changed, 0.0, state.right + weighted.T @ measured)
    inverse = jnp.linalg.inv(left)
    mean, covariance = inverse @ right, inverse @ information @ inverse.T
    count = jnp.where(changed, 0, state.count + 1)
    sums = jnp.where(changed, 0.0, sums)
    new = StreamState(
        sample, variance, regressor, instrument, measured, left, right, information, mean, covariance, sums, count
    )
    mass = mean[0]
    com = mean[1:4] / mass
    slope = jnp.concatenate([-com[:, None], jnp.eye(3)], axis=1) / mass
    com_std = jnp.sqrt(jnp.einsum("ai,ij,aj->a", slope, covariance[:4, :4], slope))
    return new, Reading(mean, covariance, mass, jnp.sqrt(covariance[0, 0]), com, com_std, count, changed)


@jax.jit
def _scan(state, samples, constants):
    return jax.lax.scan(lambda carry, sample: _update(carry, sample, constants), state, samples)


def _equations(last: Sample, sample: Sample, gravity):
    """Rows (6, 10) of regressor and instrument and integrals (6,) over one step; see `bayesid.payload.integral`."""
    step = sample.time - last.time
    ahead = _half_turn(last.rotation.T @ sample.rotation)
    middle = last.rotation @ ahead
    push = middle.T @ (sample.velocity - last.velocity - gravity * step)

    def rows(before, after):
        spin = ahead @ _skew(after) - ahead.T @ _skew(before)
        turning = ahead @ _inertia_columns(after) - ahead.T @ _inertia_columns(before)
        force = jnp.concatenate([push[:, None], spin, jnp.zeros((3, 6))], axis=1)
        return jnp.concatenate([force, jnp.concatenate([jnp.zeros((3, 1)), -_skew(push), turning], axis=1)])

    integrals = [0.5 * step * (ahead @ b + ahead.T @ a) for a, b in ((last.force, sample.force), (last.moment, sample.moment))]
    regressor = rows(last.measured_rate, sample.measured_rate)
    return regressor, rows(last.kinematic_rate, sample.kinematic_rate), jnp.concatenate(integrals)


def _half_turn(rotation):
    """Rotation by half the angle of a small rotation (3, 3)."""
    axis = 0.5 * jnp.stack([rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]])
    sine = jnp.linalg.norm(axis)
    tiny = sine < 1e-8
    angle = jnp.arctan2(sine, 0.5 * (jnp.trace(rotation) - 1.0))
    half = 0.5 * axis * jnp.where(tiny, 1.0, angle / jnp.where(tiny, 1.0, sine))
    square = half @ half
    size = jnp.sqrt(square)
    small = size < 1e-4
    safe = jnp.where(small, 1.0, size)
    a = jnp.where(small, 1.0 - square / 6.0, jnp.sin(safe) / safe)
    b = jnp.where(small, 0.5 - square / 24.0, (1.0 - jnp.cos(safe)) / safe**2)
    hat = _skew(half)
    return jnp.eye(3) + a * hat + b * hat @ hat


def _skew(v):
    x, y, z = v
    o = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([o, -z, y]), jnp.stack([z, o, -x]), jnp.stack([-y, x, o])])


def _inertia_columns(w):
    x, y, z = w
    o = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([x, y, z, o, o, o]), jnp.stack([o, x, o, y, z, o]), jnp.stack([o, o, x, o, y, z])])
