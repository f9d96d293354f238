"""Information: all that least squares needs of the samples, in one triangular factor per joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import DataError


@dataclass(frozen=True, eq=False)
class Information:
    """Per-joint factors of [X | tau]: `factors` (n, b + 1, b + 1) upper triangular, `counts` (n,) rows that they hold.

    For every joint j and every beta, ||X_j beta - tau_j||^2 = ||R_j [beta, -1]||^2, so that the cost of all that follows
    does not depend on the number of samples.
    """

    factors: np.ndarray
    counts: np.ndarray

    @property
    def size(self) -> int:
        """Number of base parameters b."""
        return self.factors.shape[1] - 1

    def squared_residuals(self, beta) -> np.ndarray:
        """(n,) sum of squared residuals per joint."""
        return np.sum((self.factors @ np.append(beta, -1.0)) ** 2, axis=1)

    def stacked(self, weights) -> tuple[np.ndarray, np.ndarray]:
        """R (b, b) and r (b,) with sum_j weights_j ||X_j beta - tau_j||^2 = ||R beta - r||^2 + constant."""
        rows = (np.sqrt(np.asarray(weights))[:, None, None] * self.factors).reshape(-1, self.size + 1)
        factor = np.linalg.qr(rows, mode="r")
        return factor[: self.size, : self.size], factor[: self.size, self.size]

    def gram(self, joint: int) -> np.ndarray:
        """(b, b) X_j^T X_j."""
        factor = self.factors[joint][:, : self.size]
        return factor.T @ factor

    def moment(self, joint: int) -> np.ndarray:
        """(b,) X_j^T tau_j."""
        factor = self.factors[joint]
        return factor[:, : self.size].T @ factor[:, self.size]

    def __add__(self, other: Information) -> Information:
        """The information of both: as if all their samples had been compressed together."""
        if other.factors.shape != self.factors.shape:
            raise DataError("information of different models cannot be added")
        pairs = zip(self.factors, other.factors)
        factors = np.array([np.linalg.qr(np.vstack(pair), mode="r") for pair in pairs])
        return Information(factors, self.counts + other.counts)


def compress(observations, sample_weights=None) -> Information:
    """Information of all rows of `observations`, in one pass over chunks.

    `sample_weights`, if given, is an iterator of further weights (n, S) beside the chunks (robust fits use it).
    """
    factors, counts = None, 0.0
    active = None
    for chunk in observations.chunks():
        weight = chunk.weight if sample_weights is None else chunk.weight * next(sample_weights)
        if factors is None:
            n, b, _ = chunk.columns.shape
            factors, active = np.zeros((n, b + 1, b + 1)), np.zeros((n, b + 1), dtype=bool)
        counts = counts + np.sum(chunk.weight > 0, axis=1)
        root = np.sqrt(weight)[:, None]
        rows = np.concatenate([chunk.columns * root, (chunk.effort * root[:, 0])[:, None]], axis=1)
        active |= np.any(rows != 0, axis=2)
        for j in range(len(factors)):
            at = np.flatnonzero(active[j])
            if len(at):
                stack = np.vstack([factors[j][np.ix_(range(len(at)), at)], rows[j, at].T])
                fresh = np.linalg.qr(stack, mode="r")
                factors[j] = 0.0
                factors[j][np.ix_(range(len(fresh)), at)] = fresh
    if not np.any(counts):
        raise DataError(
            "no sample of any joint moves beyond its noise: the robot stands still, the log is too slow for its motion, or "
            "the cutoff too low"
        )
    return Information(factors, np.asarray(counts, dtype=float))
