"""Dry friction of joints that do not slide: what stands of fitted runs tell of it, and what is assumed otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from bayesid.errors import DataError
from bayesid.regression.observations import Observations
from bayesid.results import Prediction
from bayesid.signals import Samples, SlipState, slip_states

# Torque at which a joint breaks away over its Coulomb torque: the largest ratio of the UR16e reference (table 6).
BREAKAWAY = 1.15
# The prior weighs as much as so many stands.
_PRIOR_STANDS = 10.0
# A stand is one draw of friction, however long: so many quantiles of its samples stand for it.
_PER_STAND = 5
_NODES = 100
_STATES = (SlipState.HELD, SlipState.TURNING, SlipState.LEFT, SlipState.UNKNOWN)
_REMEMBERED = (SlipState.HELD, SlipState.LEFT)
# A joint tells nothing of shares when its dry friction is below so many standard deviations of the noise.
_CLEAR = 2.0
_WIDTHS = 17
_DRAWS = 8192


@dataclass(frozen=True, eq=False)
class StuckFriction:
    """Distribution of the share of its dry friction that a joint holds, for the states HELD, TURNING, LEFT and UNKNOWN.

    It mixes a prior, which counts as ten stands, with the stands of the fitted runs: `stands` (4,) how many, of all joints
    together, and `shares` (4, K) their distribution, quantiles at (k + 1/2) / K of measured friction over that of a sliding
    joint. A share counts along the direction of the last slip; where that is unknown, shares are taken with both signs. The
    prior's density is uniform between plus and minus the breakaway torque for TURNING and UNKNOWN; for HELD and LEFT it falls
    linearly from what the motion left to zero at the other end.
    """

    stands: np.ndarray
    shares: np.ndarray

    def __post_init__(self):
        if np.shape(self.stands) != (len(_STATES),) or np.ndim(self.shares) != 2 or len(self.shares) != len(_STATES):
            raise DataError("friction of joints that stick needs four numbers of stands and four rows of shares")

    def draws(self, state: SlipState, friction: float, noise, count: int) -> np.ndarray:
        """`count` evenly spread values of friction plus noise [N m], along the last slip, in random order.

        `friction` is that of the sliding joint [N m], `noise` (K,) quantiles of the noise; shares that were measured hold their
        own.
        """
        rng = np.random.default_rng(7)
        k = _STATES.index(state)
        learned = round(count * self.stands[k] / (self.stands[k] + _PRIOR_STANDS)) if friction > 0 else 0
        at = (rng.permutation(count - learned) + 0.5) / (count - learned)
        prior = BREAKAWAY * (2.0 * (np.sqrt(at) if state in _REMEMBERED else at) - 1.0)
        out = [friction * prior + _spread(noise, count - learned), friction * _spread(self.shares[k], learned)]
        return rng.permutation(np.concatenate(out))

    def replace(self, prediction: Prediction, samples, free, size, noise, spread, forgetful: bool = False) -> Prediction:
        """`prediction` with the band of this friction where joints of `samples` do not slide.

        A `forgetful` law is a function of velocity, zero at standstill: the mean is then that of the last slip, too, as far as
        it is known. `free` (N, n) is the torque without dry friction, `size` (N, n) that of sliding joints [N m], of which each
        joint's mean is taken; `noise` (n, K) quantiles of the noise of one measurement; `spread` (N, n) standard deviation of
        the torque as far as parameters go.
        """
        states = slip_states(samples)
        signs = slip_signs(samples, states)
        std, lower, upper = (values.copy() for values in (prediction.std, prediction.lower, prediction.upper))
        mean = prediction.mean
        if forgetful:
            last = free + size * known_direction(samples).direction_measured
            mean = np.where(states == SlipState.SLIDING, mean, last)
        for j in range(samples.dof):
            for state in _STATES:
                rows = np.flatnonzero(states[:, j] == state)
                if not len(rows):
                    continue
                draws = self.draws(state, size[rows, j].mean(), noise[j], _DRAWS)
                low, high, std[rows, j] = band(draws, spread[rows, j], prediction.level)
                forward = signs[rows, j] > 0
                lower[rows, j] = free[rows, j] + np.where(forward, low, -high)
                upper[rows, j] = free[rows, j] + np.where(forward, high, -low)
        return Prediction(mean, std, lower, upper, prediction.level)

    def to_dict(self) -> dict:
        return {"stands": np.asarray(self.stands).tolist(), "shares": np.asarray(self.shares).tolist()}

    @classmethod
    def from_dict(cls, data: dict) -> StuckFriction:
        return cls(np.array(data["stands"], dtype=float), np.array(data["shares"], dtype=float))


# No stand was seen: the prior alone.
UNSEEN = StuckFriction(np.zeros(len(_STATES)), np.zeros((len(_STATES), 1)))


def stuck_friction(model, parts, gains, noise) -> StuckFriction:
    """What `parts`, pairs of a run and base parameters (b,) to explain it with, tell; `noise` (n,) of efforts [N m]."""
    at = (np.arange(_PER_STAND) + 0.5) / _PER_STAND
    found: list[list[np.ndarray]] = [[] for _ in _STATES]
    for run, beta in parts:
        size = model.dry_friction(dict(zip(model.base.names, beta)), run.q, run.qd, run.qdd)
        rest = without_dry_friction(model.base.names, beta)
        states = slip_states(run)
        signs = slip_signs(run, states)
        held = Observations(model, (run,), gains).scale(run) * run.effort_measured
        for rows, columns in model.chunks_of(run, filtered=False, columns=model.base.independent):
            held[rows] -= np.tensordot(rest, columns, axes=(0, 1)).T
        for j in np.flatnonzero(size.mean(axis=0) > _CLEAR * np.asarray(noise)):
            for first, last in _stretches(states[:, j]):
                state = states[first, j]
                if state != SlipState.SLIDING:
                    share = held[first:last, j] / size[first:last, j] * signs[first:last, j]
                    found[_STATES.index(state)].append(np.quantile(share, at))
    stands = np.array([len(quantiles) for quantiles in found], dtype=float)
    nodes = (np.arange(_NODES) + 0.5) / _NODES
    shares = np.zeros((len(_STATES), _NODES))
    for k, quantiles in enumerate(found):
        if quantiles:
            values = np.concatenate(quantiles)
            both = np.concatenate([values, -values]) if _STATES[k] == SlipState.UNKNOWN else values
            shares[k] = np.quantile(both, nodes)
    return StuckFriction(stands, shares)


def band(draws, spread, level: float):
    """Lower and upper quantile at `level` and standard deviation of draws + normal(spread), for each `spread` (N,)."""
    draws = np.asarray(draws, dtype=float)
    normal = np.random.default_rng(5).permutation(normal_nodes(len(draws)))
    grid = np.linspace(0.0, max(float(np.max(spread)), 1e-12), _WIDTHS)
    low, high = np.quantile(draws + grid[:, None] * normal, [(1 - level) / 2, (1 + level) / 2], axis=1)
    std = np.sqrt(draws.var() + np.square(spread))
    return np.interp(spread, grid, low), np.interp(spread, grid, high), std


def normal_nodes(count: int = 256) -> np.ndarray:
    """(count,) quantiles of the standard normal distribution at (k + 1/2) / count."""
    return ndtri((np.arange(count) + 0.5) / count)


def slip_signs(run, states) -> np.ndarray:
    """(N, n) direction of the last slip, 1 or -1; 1 where it is unknown."""
    return np.where((states == SlipState.UNKNOWN) | (run.direction_measured >= 0), 1.0, -1.0)


def known_direction(samples: Samples) -> Samples:
    """The samples with a direction of dry friction as far as it is known: 0 before a joint's first motion."""
    unknown = slip_states(samples) == SlipState.UNKNOWN
    return samples.replace(direction_measured=np.where(unknown, 0.0, samples.direction_measured))


def without_dry_friction(names, values) -> np.ndarray:
    """(p,) named parameters with those of dry friction zero."""
    dry = [name.rpartition(".")[2].startswith(("coulomb", "stribeck", "breakaway", "load")) for name in names]
    return np.where(dry, 0.0, values)


def _stretches(states):
    edges = np.flatnonzero(np.diff(states)) + 1
    return zip(np.append(0, edges), np.append(edges, len(states)))


def _spread(values, size):
    """`size` of the values, each as often as the others, in random order."""
    values = np.asarray(values, dtype=float)
    at = ((np.arange(size) + 0.5) * len(values) / max(size, 1)).astype(int)
    return np.random.default_rng(11).permutation(values[at])
