"""How precise a motion will be, before it is made, and the smallest motion that is precise enough."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from bayesid.errors import DesignError
from bayesid.payload.integral import SIZE, IntegralEquations
from bayesid.payload.joint import TARED, SensorPrior, Whitening, nuisance_rows, require_determined
from bayesid.payload.motion import EstimationMotion
from bayesid.payload.parameters import about_com, payload_estimate
from bayesid.payload.record import SensorMotion, SensorNoise
from bayesid.payload.streaming import StopRule
from bayesid.results import Estimate


@dataclass(frozen=True, eq=False)
class Plan:
    """A motion with what to expect of it: `expected` holds mass, centre of mass and inertia about it, with deviations."""

    motion: EstimationMotion
    expected: Estimate
    met: bool


def expected_precision(motion: SensorMotion, payload, noise: SensorNoise, prior: SensorPrior = TARED) -> Estimate:
    """Standard parameters `payload` (10,) with the covariance that `joint_estimate` will have along `motion`."""
    payload = np.asarray(payload, dtype=float)
    equations = IntegralEquations(motion)
    rows = equations.rows(motion.angular_velocity)
    std = prior.std
    if (std > 0).any():
        rows = np.concatenate([rows, nuisance_rows(equations, payload)[:, std > 0]], axis=1)
    whitening = Whitening.of(noise, motion.step, payload)
    channels = whitening.apply(rows)
    information = np.sum(whitening.solve(channels) @ np.swapaxes(channels, 1, 2), axis=0)
    information += np.diag(np.concatenate([np.zeros(SIZE), 1.0 / std[std > 0] ** 2]))
    require_determined(information)
    return payload_estimate(
        payload,
        np.linalg.inv(information)[:SIZE, :SIZE],
        method="expected of the joint momentum integral",
        covariance_method={"method": "sensor noise model"},
    )


def smallest_motion(
    motion: EstimationMotion,
    payload,
    noise: SensorNoise,
    goal: StopRule,
    prior: SensorPrior = TARED,
    rate: float = 500.0,
    smallest: float = 0.02,
    largest: float = 1.5,
) -> Plan:
    """The estimation motion with the smallest distance and angle that meets `goal`, both scaled by one factor.

    `motion` gives the pattern and the largest reach considered (times `largest`). When even that does not meet the goal, the
    plan is the largest motion with `met` False.
    """
    if motion.distance <= 0 or motion.angle <= 0:
        raise DesignError("planning needs a motion with positive distance and angle to scale")

    def at(factor):
        scaled = dataclasses.replace(motion, distance=motion.distance * factor, angle=motion.angle * factor)
        expected = about_com(expected_precision(scaled.sensor_motion(rate), payload, _at_rate(noise, rate), prior))
        return Plan(scaled, expected, bool(goal.met(expected.mean[0], expected.std[0], expected.std[1:4])))

    low, high = smallest, largest
    best = at(high)
    if not best.met:
        return best
    first = at(low)
    if first.met:
        return first
    for _ in range(12):
        middle = float(np.sqrt(low * high))
        plan = at(middle)
        low, high, best = (low, middle, plan) if plan.met else (middle, high, best)
    return best


def _at_rate(noise: SensorNoise, rate: float) -> SensorNoise:
    """Noise per sample at 1 kHz, as carried by fewer samples per second with the same density."""
    factor = np.sqrt(rate / 1000.0)
    return SensorNoise(noise.angular_velocity * factor, noise.force * factor, noise.moment * factor)
