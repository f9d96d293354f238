"""Covariances of a least-squares fit, interchangeable: what they assume of the residuals is all that differs.

Residuals of a good fit on a real robot are model error and autocorrelated over tens of samples; `HAC` is the default.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from bayesid.errors import DataError
from bayesid.regression.least_squares import Fit, autoregression

_BLOCK_SECONDS = 0.25
_MOST_BLOCKS = 2048
_LEVERAGE_CEILING = 0.98
_LONGEST_MEMORY_SECONDS = 1.0
# The response of an autoregressive filter after a run is followed in pieces of so many samples, at most so many of them.
_TAIL, _LONGEST_TAIL = 256, 200


class CovarianceResult(NamedTuple):
    """Covariance (b, b) of beta, degrees of freedom for Student's t, and a JSON-able description."""

    covariance: np.ndarray
    dof: float
    description: dict


class Covariance(Protocol):
    """A way to find the covariance of a fit."""

    def of(self, fit: Fit) -> CovarianceResult: ...


@dataclass(frozen=True)
class White:
    """Independent residuals with one variance per joint. Too small by a factor of four to six on real robots."""

    def of(self, fit: Fit) -> CovarianceResult:
        warnings.warn(
            "the white-noise covariance ignores the autocorrelation of the residuals: intervals will be too narrow",
            stacklevel=2,
        )
        bread = _bread(fit)
        middle = sum(
            weight**2 * noise**2 * fit.information.gram(j)
            for j, (weight, noise) in enumerate(zip(fit.weights, fit.noise, strict=True))
        )
        return CovarianceResult(bread @ middle @ bread, math.inf, {"method": "white"})


@dataclass(frozen=True)
class HAC:
    """Newey-West (1987) covariance of the scores with a flat-top kernel, corrected for leverage.

    With Bartlett's kernel of `lags` S(lags), whose bias is of first order in 1 / lags, the flat-top kernel of Politis and
    Romano (1995) is 2 S(lags) - S(lags / 2): the bias cancels. Only the positive part of the difference is added to
    S(lags), so that the result is positive and no combination of parameters gets less than Bartlett's kernel gives it.

    `lags` None: the automatic bandwidth of Andrews (1991, eq. 6.4, AR(1) plug-in, all scores with equal weight). The
    kernel's windows are treated as the clusters of Bell and McCaffrey (2002): the sum of scores in a window is multiplied by
    (1 - Q)^(-1/2), Q the window's part of the normal matrix, because residuals of a fit are smaller than the errors where
    few data determine many parameters. Intervals use Student's t with 3 N / (4 lags) degrees of freedom: half the
    kernel's equivalent ones, which brings its 95 % quantile to that of Kiefer and Vogelsang (2005) at N / lags = 30. N counts
    the samples in motion of the joint that moves most: rows at standstill tell nothing.
    """

    lags: int | None = None

    def __post_init__(self):
        if self.lags is not None and self.lags < 1:
            raise DataError(f"a HAC covariance needs at least one lag, got {self.lags}")

    def of(self, fit: Fit) -> CovarianceResult:
        scores = score_blocks(fit, None if self.lags is None else max(1, self.lags // 6))
        lags = scores.bandwidth(_memory(fit)) if self.lags is None else self.lags
        width = max(1, round(lags / scores.length))
        if width * 4 > len(scores.sums):
            raise DataError(
                f"the residuals stay correlated over {width * scores.length} of {fit.observations.count} samples: too few "
                "independent data for an uncertainty; use a longer log"
            )
        middle = flat_top(scores, width)
        used = width * scores.length
        description = {"method": "hac", "lags": int(used), "automatic": self.lags is None}
        return CovarianceResult(scores.sandwich(middle), 0.75 * float(fit.information.counts.max()) / used, description)


@dataclass(frozen=True)
class AR:
    """Residuals of each joint follow an autoregressive model of `order`, independent between joints."""

    order: int = 8

    def of(self, fit: Fit) -> CovarianceResult:
        from scipy.signal import lfilter

        coefficients, innovation = autoregression(fit.observations, fit.beta, self.order)
        n, b = len(fit.weights), fit.observations.size
        middle, state = np.zeros((b, b)), np.zeros((n, b, self.order))

        def add(weighted):
            for j in range(n):
                taps = np.append(1.0, -coefficients[j])
                coloured, state[j] = lfilter([1.0], taps, weighted[j], axis=1, zi=state[j])
                middle[:] += (fit.weights[j] * innovation[j]) ** 2 * coloured @ coloured.T

        def ring_out():
            # X^T Omega X needs the whole response of the filter, also what comes after a run's last row.
            end = 1e-7 * np.abs(state).max()
            for _ in range(_LONGEST_TAIL):
                if np.abs(state).max() <= end:
                    break
                add(np.zeros((n, b, _TAIL)))
            state[:] = 0.0

        for chunk in fit.observations.chunks():
            if chunk.starts_run:
                ring_out()
            add(chunk.columns * chunk.weight[:, None])
        ring_out()
        bread = _bread(fit)
        return CovarianceResult(bread @ middle @ bread, math.inf, {"method": "ar", "order": self.order})


@dataclass(frozen=True)
class Bootstrap:
    """Moving-block bootstrap (Kuensch 1989) of the scores, `draws` times.

    Blocks are twice as long as the HAC bandwidth: drawing blocks amounts to Bartlett's kernel, without the correction.
    """

    draws: int = 1000
    seed: int = 0

    def of(self, fit: Fit) -> CovarianceResult:
        scores = score_blocks(fit, None)
        width = max(1, round(2.0 * scores.bandwidth(_memory(fit)) / scores.length))
        sums = scores.window_sums(width)
        if len(sums) < 4 * width:
            raise DataError("too few independent data for a block bootstrap; use a longer log")
        sums = sums - sums.mean(axis=0)
        rng = np.random.default_rng(self.seed)
        count = max(1, round(len(scores.sums) / width))
        drawn = np.array([sums[rng.integers(len(sums), size=count)].sum(axis=0) for _ in range(self.draws)])
        middle = drawn.T @ drawn / self.draws
        used = width * scores.length
        description = {"method": "bootstrap", "block": int(used), "draws": self.draws}
        return CovarianceResult(scores.sandwich(middle), float(count), description)


COVARIANCES = {"hac": HAC, "ar": AR, "bootstrap": Bootstrap, "white": White}


@dataclass(frozen=True, eq=False)
class ScoreBlocks:
    """Scores X^T W e summed over blocks of `length` samples, in the coordinates where the normal matrix is the identity.

    `sums` (G, b), `normals` (G, b, b) each block's part of the normal matrix, `starts_run` (G,), `lag_one` (2, b) sums of
    squares and of products one sample apart, `inverse` (b, b) the map back to beta, `count` the samples in motion of the joint
    that moves most.
    """

    length: int
    sums: np.ndarray
    normals: np.ndarray
    starts_run: np.ndarray
    lag_one: np.ndarray
    inverse: np.ndarray
    count: float

    def bandwidth(self, memory: float) -> float:
        """Automatic bandwidth in samples (Andrews 1991, eq. 6.2 and 6.4: Bartlett kernel, AR(1) plug-in).

        `memory` is the longest time constant of a score that is believed, in samples: near a unit root the plug-in explodes.
        """
        highest = np.exp(-1.0 / memory)
        rho = np.clip(self.lag_one[1] / np.maximum(self.lag_one[0], 1e-300), -highest, highest)
        alpha = np.mean(4.0 * rho**2 / ((1.0 - rho) ** 2 * (1.0 + rho) ** 2))
        return float(max(1.0, 1.1447 * (alpha * self.count) ** (1.0 / 3.0)))

    def moving_windows(self, width: int) -> np.ndarray:
        """(b, b) Bartlett-weighted sum of score autocovariances up to `width` blocks, windows corrected for leverage."""
        out = np.zeros_like(self.inverse)
        for run in self._runs():
            for first in range(run.start - width + 1, run.stop):
                part = slice(max(first, run.start), min(first + width, run.stop))
                adjusted = _unleveraged(self.normals[part].sum(axis=0), self.sums[part].sum(axis=0))
                out += np.outer(adjusted, adjusted)
        return out / width

    def window_sums(self, width: int) -> np.ndarray:
        """(windows, b) leverage-corrected sums of scores over all full windows of `width` blocks within runs."""
        return np.array(
            [
                _unleveraged(self.normals[first : first + width].sum(axis=0), self.sums[first : first + width].sum(axis=0))
                for run in self._runs()
                for first in range(run.start, run.stop - width + 1)
            ]
        ).reshape(-1, self.sums.shape[1])

    def sandwich(self, middle) -> np.ndarray:
        """Covariance (b, b) of beta from the covariance of the sum of scores."""
        return self.inverse @ middle @ self.inverse.T

    def _runs(self):
        starts = [*np.flatnonzero(self.starts_run), len(self.sums)]
        return [slice(first, last) for first, last in itertools.pairwise(starts)]


def score_blocks(fit: Fit, length: int | None) -> ScoreBlocks:
    """Scores of a fit in blocks of `length` samples (None: 0.25 s), one pass; blocks are merged when they become many."""
    length = max(1, round(_BLOCK_SECONDS / _step(fit))) if length is None else length
    inverse = _inverse_factor(fit)
    sums, normals, starts = [], [], []
    squares, products = np.zeros((2, len(fit.beta)))
    held = None
    for chunk in fit.observations.chunks():
        root = np.sqrt(fit.weights[:, None] * chunk.weight)[:, None]
        columns = np.einsum("nbs,bc->ncs", chunk.columns * root, inverse, optimize=True)
        residual = (chunk.effort - np.einsum("nbs,b->ns", chunk.columns, fit.beta)) * root[:, 0]
        score = np.einsum("ncs,ns->sc", columns, residual)
        squares += np.sum(score**2, axis=0)
        products += np.sum(score[1:] * score[:-1], axis=0)
        if chunk.starts_run or held is None:
            _close(held, sums, normals, starts)
            held = (np.zeros((len(fit.weights), len(fit.beta), 0)), np.zeros((0, len(fit.beta))), True)
        columns = np.concatenate([held[0], columns], axis=2)
        score = np.concatenate([held[1], score])
        first = held[2]
        whole = (len(score) // length) * length
        if whole:
            folded = columns[:, :, :whole].reshape(len(columns), columns.shape[1], -1, length)
            flat = np.moveaxis(folded, 2, 0).swapaxes(1, 2).reshape(whole // length, columns.shape[1], -1)
            normals.extend(flat @ flat.swapaxes(1, 2))
            sums.extend(score[:whole].reshape(-1, length, score.shape[1]).sum(axis=1))
            starts.extend([first] + [False] * (whole // length - 1))
            first = False
        held = (columns[:, :, whole:], score[whole:], first)
        if len(sums) > _MOST_BLOCKS:
            length *= 2
            sums, normals, starts = _merged(sums, normals, starts)
    _close(held, sums, normals, starts)
    return ScoreBlocks(
        length,
        np.array(sums),
        np.array(normals),
        np.array(starts, dtype=bool),
        np.array([squares, products]),
        inverse,
        float(fit.information.counts.max()),
    )


def flat_top(scores: ScoreBlocks, width: int):
    """Bartlett's kernel of `width` blocks plus the positive part of what cancels its first-order bias.

    The positive part is taken in the coordinates of the scores, where the normal matrix is the identity: it does not depend
    on how the parameters are scaled or combined.
    """
    whole, half = scores.moving_windows(width), width // 2
    if half == 0:
        return whole
    values, vectors = np.linalg.eigh(whole - scores.moving_windows(half))
    return whole + half / (width - half) * (vectors * np.clip(values, 0.0, None)) @ vectors.T


def _close(held, sums, normals, starts):
    """Add what a run has left after its last whole block to that block, or as a short block of its own."""
    if held is None or len(held[1]) == 0:
        return
    columns, score, first = held
    flat = np.moveaxis(columns, 1, 0).reshape(columns.shape[1], -1)
    if first:
        normals.append(flat @ flat.T)
        sums.append(score.sum(axis=0))
        starts.append(True)
    else:
        normals[-1] = normals[-1] + flat @ flat.T
        sums[-1] = sums[-1] + score.sum(axis=0)


def _merged(sums, normals, starts):
    new_sums, new_normals, new_starts = [], [], []
    index = 0
    while index < len(sums):
        pair = index + 1 < len(sums) and not starts[index + 1]
        new_sums.append(sums[index] + sums[index + 1] if pair else sums[index])
        new_normals.append(normals[index] + normals[index + 1] if pair else normals[index])
        new_starts.append(starts[index])
        index += 2 if pair else 1
    return new_sums, new_normals, new_starts


def _unleveraged(normal, score):
    values, vectors = np.linalg.eigh(normal)
    root = np.sqrt(1.0 - np.clip(values, 0.0, _LEVERAGE_CEILING))
    return vectors @ ((vectors.T @ score) / root)


def _inverse_factor(fit: Fit):
    from scipy.linalg import solve_triangular

    return solve_triangular(fit.factor, np.eye(len(fit.beta)))


def _bread(fit: Fit):
    inverse = _inverse_factor(fit)
    return inverse @ inverse.T


def _step(fit: Fit) -> float:
    return min(run.step for run in _runs_of(fit.observations))


def _memory(fit: Fit) -> float:
    return _LONGEST_MEMORY_SECONDS / _step(fit)


def _runs_of(observations):
    while not hasattr(observations, "runs"):
        observations = observations.source
    return observations.runs
