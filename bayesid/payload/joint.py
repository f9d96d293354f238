"""All ten parameters at once from the momentum integral equations, for any motion, with sensor bias and gravity's direction.

The equations are those of `bayesid.payload.integral`. Their noise has two parts: white noise of force and moment, and the
difference of the white noise of two samples of angular velocity, that is an MA(1) process whose covariance is tridiagonal;
generalised least squares with its exact Cholesky factor whitens it. Since a noisy angular velocity also stands in the
regressor, where plain least squares would be pulled towards zero, the estimating equations use the angular velocity of
forward kinematics as instrument (instrumental variables: Janot, Vandanjon, Gautier 2014).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from bayesid.errors import DataError
from bayesid.payload.checks import check_record
from bayesid.payload.integral import SIZE, IntegralEquations
from bayesid.payload.parameters import NAMES, inertia_matrix, payload_estimate
from bayesid.payload.record import SensorMotion, SensorNoise, WrenchRecord, rotations, skew
from bayesid.results import Estimate

NUISANCE = (
    *(f"sensor.force_bias_{a}" for a in "xyz"),
    *(f"sensor.moment_bias_{a}" for a in "xyz"),
    "gravity.tilt_x",
    "gravity.tilt_y",
)
NUISANCE_UNITS = (*("N",) * 3, *("N m",) * 3, "rad", "rad")


@dataclass(frozen=True)
class SensorPrior:
    """What is known of the sensor before the motion: standard deviations about zero of its force bias [N], moment bias [N m]
    and of the tilt [rad] of gravity about the base's x and y. Zero: exactly known (a sensor tared without the payload).
    """

    force_bias: float = 0.0
    moment_bias: float = 0.0
    tilt: float = 0.0

    def __post_init__(self):
        values = np.array([self.force_bias, self.moment_bias, self.tilt], dtype=float)
        if not np.isfinite(values).all() or (values < 0).any():
            raise DataError(f"a sensor prior holds finite standard deviations that are not negative, got {values}")

    @property
    def std(self) -> np.ndarray:
        """(8,) standard deviations of the nuisance parameters."""
        return np.array([*(self.force_bias,) * 3, *(self.moment_bias,) * 3, self.tilt, self.tilt], dtype=float)


# A parameter known no better than so many kg, 0.1 kg m or 0.01 kg m^2 counts as not known at all.
_LARGEST_STD = 10.0
# Residuals larger than so many times the noise model are model error (or a wrong noise), not chance.
_EXCESS = 1.2
# Length of the blocks in which residuals are compared with the noise model [samples].
_BLOCK = 50

TARED = SensorPrior()
UNTARED = SensorPrior(5.0, 0.5, 0.01)


@dataclass(frozen=True, eq=False)
class Whitening:
    """Six channels in which the noise of the equations is independent: MA(1) each, unit white part.

    `mix` (6, 6) maps rows [force; moment] to channels; the noise covariance of a channel has 1 + 2 ratio on its diagonal and
    -ratio beside it. From noise densities and an assumed payload (first moment and inertia about the sensor frame).
    """

    mix: np.ndarray
    ratio: np.ndarray

    @classmethod
    def of(cls, noise: SensorNoise, step: float, payload=None) -> Whitening:
        """`payload` (10,): standard parameters that scale the noise of angular velocity; None: as if they were zero."""
        white = np.array([1.0 / (noise.force * step)] * 3 + [1.0 / (noise.moment * step)] * 3)
        if payload is None:
            return cls(np.diag(white), np.zeros(6))
        effect = np.concatenate([-skew(payload[1:4]), np.asarray(inertia_matrix(payload[4:10]))]) * noise.angular_velocity
        values, vectors = np.linalg.eigh(white[:, None] * (effect @ effect.T) * white)
        # A quarter stands for the trapezoidal rule, which averages the white noise of neighbouring samples.
        return cls(vectors.T * white, np.maximum(values - 0.25, 0.0))

    def apply(self, rows) -> np.ndarray:
        """Channel rows of equation rows (6, ..., N)."""
        return (self.mix @ rows.reshape(6, -1)).reshape(rows.shape)

    def solve(self, rows) -> np.ndarray:
        """Covariance inverse times channel rows (6, p, N)."""
        from scipy.linalg.lapack import dptsv

        out = np.empty_like(rows)
        n = rows.shape[-1]
        for i, ratio in enumerate(self.ratio):
            if ratio == 0.0:
                out[i] = rows[i]
            else:
                out[i] = dptsv(np.full(n, 1.0 + 2.0 * ratio), np.full(n - 1, -ratio), rows[i].T)[2].T
        return out

    def residual_scale(self, residual) -> float:
        """Size of channel residuals (6, N) summed over blocks of 50 steps, 1 when the noise model holds at that time scale."""
        n = residual.shape[-1]
        size = min(_BLOCK, n)
        blocks = residual[:, : n // size * size].reshape(6, -1, size).sum(axis=2)
        expected = size - 0.5 + 2.0 * self.ratio + 0.5 * (self.ratio > 0)
        return float(np.sqrt(np.mean(blocks**2 / expected[:, None])))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Regressor, instrument (6, p, N) and integrals (6, N) with nuisance columns for the prior's nonzero entries."""

    regressor: np.ndarray
    instrument: np.ndarray
    integrals: np.ndarray
    precision: np.ndarray


def joint_estimate(
    record: WrenchRecord, noise: SensorNoise | None = None, prior: SensorPrior = TARED, assumed=None
) -> Estimate:
    """Standard parameters (m, c, I about the sensor frame) and, as far as `prior` leaves them open, bias and tilt.

    Whitening depends on the payload itself, through the noise of angular velocity: weights come from a first pass, or from
    the payload (10,) that is `assumed`. `noise` None: estimated from the record (`noise_of`). Raises DataError when
    the motion leaves parameters undetermined, naming them.
    """
    check_record(record)
    noise = noise_of(record) if noise is None else noise
    motion, tilt, payload = record.motion, np.zeros(2), assumed
    problem = _problem(record, motion, prior, static_fit(record))
    # The first pass finds the weights; with a tilt, two more settle its product with the payload.
    for turn in range(3 if prior.tilt > 0 else 2 if assumed is None else 1):
        if prior.tilt > 0 and turn > 0:
            # The tilt multiplies mass and first moment: turn gravity by what is known of it and solve for the rest.
            motion = dataclasses.replace(record.motion, gravity=tilted(record.motion.gravity, tilt))
            problem = _problem(record, motion, prior, payload)
        centre = np.concatenate([np.zeros(6), -tilt])[prior.std > 0]
        solution = _solve(problem, Whitening.of(noise, motion.step, payload), centre)
        payload = solution[0][:SIZE]
        if prior.tilt > 0:
            tilt = tilt + solution[0][-2:]
    if prior.tilt > 0:
        solution[0][-2:] = tilt
    mean, covariance, scale = solution
    # Residuals that the sensor's noise cannot explain widen the intervals by their size.
    covariance = covariance * max(scale, 1.0) ** 2 if scale > _EXCESS else covariance
    active = np.flatnonzero(prior.std > 0)
    return payload_estimate(
        mean,
        covariance,
        method="joint momentum integral",
        covariance_method={"method": "sensor noise model", "residual_scale": scale},
        extra=[(NUISANCE[i], NUISANCE_UNITS[i]) for i in active],
        meta={
            "noise": {"angular_velocity": noise.angular_velocity, "force": noise.force, "moment": noise.moment},
            "samples": len(record),
            "residual_scale": scale,
        },
    )


def joint_batch(motion: SensorMotion, force, moment, angular_velocity, noise: SensorNoise):
    """Means (D, 10) and covariances (D, 10, 10) of D records (D, N, 3) along one motion, sensor tared.

    As `joint_estimate`, with one weighting for all: that of the mean of a first pass. What depends on the data alone are
    products with the weighted instrument, so that D records cost little more than one.
    """
    equations = IntegralEquations(motion)
    instrument = equations.rows(motion.angular_velocity)
    ahead, behind, _ = equations.halves
    payload = None
    for _ in range(2):
        whitening = Whitening.of(noise, motion.step, payload)
        channels = whitening.apply(instrument)
        weighted = whitening.solve(channels)
        information = _gram(weighted, channels)
        require_determined(information)
        back = np.moveaxis((whitening.mix.T @ weighted.reshape(6, -1)).reshape(weighted.shape), -1, 0)
        forces, moments = back[:, :3], back[:, 3:]
        left = np.zeros((len(force), SIZE, SIZE))
        left[:, :, 0] = np.einsum("kip,ki->p", forces, equations.push)
        left[:, :, 1:4] = np.einsum("kip,kiq->pq", moments, skew(-equations.push))
        spun, turned = (_at_samples(x, ahead, behind) for x in (forces, moments))
        rate = np.moveaxis(np.asarray(angular_velocity), 1, 0).reshape(len(motion), -1)
        v, u = ((x.reshape(len(motion), -1).T @ rate).reshape(3, SIZE, -1, 3) for x in (spun, turned))
        v, u = np.moveaxis(v, (0, 1, 2, 3), (2, 1, 0, 3)), np.moveaxis(u, (0, 1, 2, 3), (2, 1, 0, 3))
        left[:, :, 1:4] += np.stack(
            [v[:, :, 1, 2] - v[:, :, 2, 1], v[:, :, 2, 0] - v[:, :, 0, 2], v[:, :, 0, 1] - v[:, :, 1, 0]], -1
        )
        for column, (a, b) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)), start=4):
            left[:, :, column] = u[:, :, a, a] if a == b else u[:, :, a, b] + u[:, :, b, a]
        right = np.zeros((len(force), SIZE))
        for values, weights in ((force, forces), (moment, moments)):
            sums = _at_samples(0.5 * equations.step[:, None, None] * weights, ahead, -behind)
            right += np.asarray(values).reshape(len(force), -1) @ sums.reshape(-1, SIZE)
        mean = np.linalg.solve(left, right[:, :, None])[:, :, 0]
        payload = mean.mean(axis=0)
    inverse = np.linalg.inv(left)
    return mean, inverse @ information @ np.swapaxes(inverse, 1, 2)


def _at_samples(weights, ahead, behind):
    """(N, 3, p) products of step weights (N-1, 3, p) with `ahead` at each step's end, less `behind` at its start."""
    out = np.zeros((len(weights) + 1, *weights.shape[1:]))
    out[1:] += np.swapaxes(ahead, 1, 2) @ weights
    out[:-1] -= np.swapaxes(behind, 1, 2) @ weights
    return out


def noise_of(record: WrenchRecord) -> SensorNoise:
    """Noise densities of a record from its third differences, which a smooth motion hardly enters.

    A sensor whose readings are filtered or quantised has less noise in neighbouring samples than its densities: give them
    by hand then. Raises DataError when a channel shows no noise at all.
    """
    stds = []
    for value in (record.angular_velocity, record.force, record.moment):
        differences = np.diff(value, n=3, axis=0)
        if len(differences) < 20:
            raise DataError(f"{record.name}: {len(record)} samples are too few to tell the noise: give it")
        stds.append(float(np.sqrt(np.mean(differences**2) / 20.0)))
    if stds[1] < 1e-9 or stds[2] < 1e-9:
        raise DataError(f"{record.name}: force or moment carries no noise that could be measured: give the sensor's noise")
    return SensorNoise(stds[0], stds[1], stds[2])


def tilted(gravity, tilt) -> tuple[float, float, float]:
    """Gravity (3,) turned by small angles `tilt` (2,) [rad] about the base's x and y."""
    turned = rotations(np.array([tilt[0], tilt[1], 0.0])) @ np.asarray(gravity, dtype=float)
    return tuple(turned.tolist())


def nuisance_rows(equations: IntegralEquations, payload) -> np.ndarray:
    """(6, 8, N-1) columns of force bias, moment bias and gravity's tilt; the tilt's belong to a payload (10,)."""
    out = np.zeros((6, 8, len(equations.step)))
    out[np.arange(6), np.arange(6)] = equations.step
    field = np.asarray(equations.motion.gravity, dtype=float)
    middle = equations.halves[2]
    for column, axis in ((6, (1.0, 0.0, 0.0)), (7, (0.0, 1.0, 0.0))):
        change = middle @ np.cross(axis, field) * equations.step[:, None]
        out[:3, column] = -payload[0] * change.T
        out[3:, column] = -np.cross(payload[1:4], change).T
    return out


def _problem(record, motion, prior, payload) -> _Problem:
    equations = IntegralEquations(motion)
    regressor = equations.rows(record.angular_velocity)
    exact = np.array_equal(record.angular_velocity, motion.angular_velocity)
    instrument = regressor if exact else equations.rows(motion.angular_velocity)
    integrals = equations.integrals(record.force, record.moment)
    std = prior.std
    active = std > 0
    if active.any():
        extra = nuisance_rows(equations, payload)[:, active]
        regressor, instrument = (np.concatenate([x, extra], axis=1) for x in (regressor, instrument))
    return _Problem(regressor, instrument, integrals, np.concatenate([np.zeros(SIZE), 1.0 / std[active] ** 2]))


def static_fit(record):
    """Mass and first moment (10,) as if every sample were at rest."""
    field = np.swapaxes(record.motion.rotation, 1, 2) @ np.asarray(record.motion.gravity)
    mass = -np.sum(record.force * field) / np.sum(field * field)
    lever = -skew(-field)
    gram, right = np.einsum("kia,kib->ab", lever, lever), np.einsum("kia,ki->a", lever, record.moment)
    return np.concatenate([[mass], np.linalg.lstsq(gram, right, rcond=1e-4)[0], np.zeros(6)])


def _solve(problem: _Problem, whitening: Whitening, centre):
    instrument = whitening.apply(problem.instrument)
    weighted = whitening.solve(instrument)
    regressor = instrument if problem.regressor is problem.instrument else whitening.apply(problem.regressor)
    measured = whitening.apply(problem.integrals)
    prior = np.diag(problem.precision)
    information = _gram(weighted, instrument) + prior
    require_determined(information)
    right = np.einsum("ipk,ik->p", weighted, measured)
    right[SIZE:] += problem.precision[SIZE:] * centre
    inverse = np.linalg.inv(_gram(weighted, regressor) + prior)
    mean, covariance = inverse @ right, inverse @ information @ inverse.T
    residual = measured - np.einsum("ipk,p->ik", regressor, mean)
    return mean, 0.5 * (covariance + covariance.T), whitening.residual_scale(residual)


def _gram(left, right):
    return np.sum(left @ np.swapaxes(right, 1, 2), axis=0)


def require_determined(information) -> None:
    """Raise DataError naming what an information matrix (p, p) of payload parameters leaves undetermined."""
    p = len(information)
    scale = np.concatenate([[1.0], np.full(3, 0.1), np.full(6, 0.01), np.ones(p - SIZE)])
    normalised = information * np.outer(scale, scale)
    values, vectors = np.linalg.eigh(normalised)
    lost = values < 1.0 / _LARGEST_STD**2
    if not lost.any():
        return
    share = np.sum(vectors[:, lost] ** 2, axis=1)
    names = [*NAMES, *NUISANCE[: p - SIZE]]
    poor = ", ".join(names[i] for i in range(min(p, SIZE)) if share[i] > 0.05)
    raise DataError(
        f"this motion does not determine {poor}: turn the tool about each of its axes (inertia, centre of mass along gravity); "
        "`bayesid payload --plan` tells which motion suffices"
    )
