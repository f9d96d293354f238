"""Least squares on base parameters: ordinary, weighted by joint, robust, and with autoregressive whitening."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import DataError, SolverError
from bayesid.regression.information import Information, compress
from bayesid.regression.observations import Observations, Whitened

# Condition number of the column-scaled observation matrix from which parameters count as undetermined by the data.
HIGHEST_CONDITION = 1e8
_WLS_ROUNDS = 20
_IRLS_ROUNDS = 15
_HUBER = 1.345


@dataclass(frozen=True, eq=False)
class Fit:
    """A least-squares fit: `beta` (b,), `noise` (n,) residual standard deviation per joint [N m], `weights` (n,) given to
    the joints, `information`, and the `observations` (whitened or clipped as the method has it) that it fits.

    Of a robust fit, `information` counts the residuals that are not clipped, which makes `factor` the derivative of the
    estimating equations, and `noise` is that of Huber's sandwich: squared clipped residuals over those not clipped.
    """

    method: str
    beta: np.ndarray
    noise: np.ndarray
    weights: np.ndarray
    information: Information
    observations: Observations | Whitened | Clipped

    @property
    def factor(self) -> np.ndarray:
        """(b, b) triangular R with R^T R the weighted normal matrix."""
        return self.information.stacked(self.weights)[0]

    @property
    def condition_number(self) -> float:
        """2-norm condition number of the weighted observation matrix, columns scaled to unit length."""
        return scaled_condition(self.factor)[0]


@dataclass(frozen=True, eq=False)
class Reweighted:
    """Observations whose rows carry Huber weights at a fixed beta and scale."""

    source: Observations
    beta: np.ndarray
    noise: np.ndarray

    @property
    def model(self):
        return self.source.model

    @property
    def size(self) -> int:
        return self.source.size

    @property
    def count(self) -> int:
        return self.source.count

    def chunks(self):
        for chunk in self.source.chunks():
            residual = chunk.effort - np.einsum("nbs,b->ns", chunk.columns, self.beta)
            size = np.abs(residual) / self.noise[:, None]
            yield chunk._replace(weight=chunk.weight * np.minimum(1.0, _HUBER / np.maximum(size, 1e-300)))


@dataclass(frozen=True, eq=False)
class Clipped:
    """Observations whose residuals at a fixed beta are clipped at Huber's constant times the scale of their joint."""

    source: Observations
    beta: np.ndarray
    scale: np.ndarray

    @property
    def model(self):
        return self.source.model

    @property
    def size(self) -> int:
        return self.source.size

    @property
    def count(self) -> int:
        return self.source.count

    def chunks(self):
        limit = _HUBER * self.scale[:, None]
        for chunk in self.source.chunks():
            fitted = np.einsum("nbs,b->ns", chunk.columns, self.beta)
            yield chunk._replace(effort=fitted + np.clip(chunk.effort - fitted, -limit, limit))

    def unclipped(self):
        """Yield (n, S) per chunk: 1 where the residual is within the limits, 0 where it was clipped."""
        limit = _HUBER * self.scale[:, None]
        for chunk in self.source.chunks():
            yield (np.abs(chunk.effort - np.einsum("nbs,b->ns", chunk.columns, self.beta)) <= limit).astype(float)


def ols(observations: Observations) -> Fit:
    """Ordinary least squares: all joints weigh the same."""
    information = compress(observations)
    weights = np.ones(len(information.counts))
    beta = _solve(observations, information, weights)
    return Fit("ols", beta, _noise(information, beta), weights, information, observations)


def wls(observations: Observations) -> Fit:
    """Weighted least squares: joints weigh by the inverse of their residual variance, iterated to a fixed point."""
    information = compress(observations)
    beta, noise = _weighted(observations, information)
    return Fit("wls", beta, noise, 1.0 / noise**2, information, observations)


def robust(observations: Observations) -> Fit:
    """Iteratively reweighted least squares with Huber's weights (Huber 1964, constant 1.345), scale by joint.

    The weights depend on the residuals: the estimating equations' derivative is the normal matrix of the residuals that are
    not clipped, not that of the weights (Huber 1981, section 7.6). It is what the fit hands to covariances.
    """
    beta = wls(observations).beta
    for _ in range(_IRLS_ROUNDS):
        scale = _robust_scale(observations, beta)
        reweighted = Reweighted(observations, beta, scale)
        last = beta
        beta = _solve(observations, compress(reweighted), 1.0 / scale**2)
        if np.max(np.abs(beta - last) / (np.abs(last) + 1e-6 * np.abs(last).max())) < 1e-4:
            break
    clipped = Clipped(observations, beta, scale)
    information = compress(observations, clipped.unclipped())
    squares, kept = _clipped_squares(clipped)
    noise = np.maximum(np.sqrt(squares / np.maximum(kept, 1.0)), 1e-9 * scale)
    return Fit("robust", beta, noise, 1.0 / scale**2, information, clipped)


def gls(observations: Observations, order: int = 8) -> Fit:
    """Generalised least squares: residuals whitened by one autoregressive filter of `order` per joint, two rounds."""
    if order < 1:
        raise DataError(f"the whitening filter needs an order of at least 1, got {order}")
    beta = wls(observations).beta
    for _ in range(2):
        coefficients, _ = autoregression(observations, beta, order)
        whitened = Whitened(observations, coefficients)
        information = compress(whitened)
        beta, noise = _weighted(observations, information)
    return Fit("gls", beta, noise, 1.0 / noise**2, information, whitened)


METHODS = {"ols": ols, "wls": wls, "robust": robust, "gls": gls}


def residual_moments(observations, beta, lags: int):
    """(n, lags + 1) sums of products of residuals `lag` samples apart, and (n,) how many residuals they came from."""
    total, count, tail = 0.0, 0.0, None
    for chunk in observations.chunks():
        residual = chunk.effort - np.einsum("nbs,b->ns", chunk.columns, beta)
        residual = np.where(chunk.weight > 0, residual, 0.0)
        if chunk.starts_run or tail is None:
            tail = np.zeros((len(residual), lags))
        padded = np.concatenate([tail, residual], axis=1)
        size = residual.shape[1]
        total = total + np.stack([np.sum(residual * padded[:, lags - k : lags - k + size], 1) for k in range(lags + 1)], 1)
        count = count + np.sum(chunk.weight > 0, axis=1)
        tail = padded[:, size:]
    return total, count


def autoregression(observations, beta, order: int):
    """Yule-Walker coefficients (n, order) and innovation standard deviations (n,) of the residuals, per joint."""
    from scipy.linalg import solve_toeplitz

    moments, count = residual_moments(observations, beta, order)
    coefficients, innovation = np.zeros((len(moments), order)), np.ones(len(moments))
    for j, row in enumerate(moments):
        if row[0] > 0:
            coefficients[j] = solve_toeplitz(row[:order], row[1:])
            innovation[j] = np.sqrt(max(row[0] - coefficients[j] @ row[1:], 0.0) / count[j])
    return coefficients, innovation


def scaled_condition(factor) -> tuple[float, np.ndarray, np.ndarray]:
    """Condition number of a triangular factor with unit columns, its weakest right singular vector, its column norms."""
    norms = np.linalg.norm(factor, axis=0)
    scaled = factor / np.where(norms > 0, norms, 1.0)
    _, values, vectors = np.linalg.svd(scaled)
    smallest = values[-1]
    return float(values[0] / smallest) if smallest > 0 else float("inf"), vectors[-1], norms


def _solve(observations, information, weights):
    factor, right = information.stacked(weights)
    condition, weakest, norms = scaled_condition(factor)
    if not condition < HIGHEST_CONDITION:
        raise DataError(_undetermined(observations.model, information, weakest, norms))
    from scipy.linalg import solve_triangular

    return solve_triangular(factor / norms, right) / norms


def _weighted(observations, information):
    weights = np.ones(len(information.counts))
    noise = None
    for _ in range(_WLS_ROUNDS):
        beta = _solve(observations, information, weights)
        last, noise = noise, _noise(information, beta)
        weights = 1.0 / noise**2
        if last is not None and np.max(np.abs(noise / last - 1.0)) < 1e-10:
            return beta, noise
    if np.max(np.abs(noise / last - 1.0)) < 1e-3:
        return beta, noise
    raise SolverError(
        "the weights of the joints do not settle: a joint is fitted without any residual; use a longer "
        "log, or --method ols for data without noise"
    )


def _noise(information, beta):
    share = information.size / len(information.counts)
    spare = np.maximum(information.counts - share, 1.0)
    noise = np.sqrt(information.squared_residuals(beta) / spare)
    floor = 1e-9 * max(float(noise.max()), 1e-12)
    return np.maximum(noise, floor)


def _robust_scale(observations, beta):
    parts = [
        np.where(chunk.weight > 0, np.abs(chunk.effort - np.einsum("nbs,b->ns", chunk.columns, beta)), np.nan)
        for chunk in observations.chunks()
    ]
    scale = 1.4826 * np.nanmedian(np.concatenate(parts, axis=1), axis=1)
    return np.maximum(scale, 1e-9 * max(float(np.nanmax(scale)), 1e-12))


def _clipped_squares(clipped):
    """(n,) weighted sums of squared clipped residuals and of the weights of those not clipped."""
    squares, kept = 0.0, 0.0
    for chunk, inside in zip(clipped.chunks(), clipped.unclipped(), strict=True):
        residual = chunk.effort - np.einsum("nbs,b->ns", chunk.columns, clipped.beta)
        squares = squares + np.sum(chunk.weight * residual**2, axis=1)
        kept = kept + np.sum((chunk.weight > 0) * inside, axis=1)
    return squares, kept


def _undetermined(model, information, weakest, norms):
    still = [model.robot.joint_names[j] for j in np.flatnonzero(information.counts == 0)]
    if still:
        return (
            f"joint {', '.join(still)} does not move in this log (or not above its noise), so its friction, rotor and link "
            "parameters cannot be identified: use a log in which every joint moves, or a robot file in which it is fixed"
        )
    missing = [model.base.names[i] for i in np.flatnonzero(norms == 0)]
    if not missing:
        strongest = np.argsort(-np.abs(weakest))
        missing = [model.base.names[i] for i in strongest if abs(weakest[i]) > 0.3] or [model.base.names[strongest[0]]]
    return (
        f"the data do not determine {', '.join(missing[:6])}{' and more' if len(missing) > 6 else ''}: "
        "add a log with richer motion (bayesid excite designs one)"
    )
