"""Autoregressive residuals of unknown coefficients and scale, both integrated out, from compressed lags.

Residuals e of one joint follow e_t = sum_k a_k e_(t-k) + sigma w_t, w white and normal, conditional on the first p of each
run. With E (p + 1, p + 1) the inner products of the residuals at lags p, ..., 1, 0, E_11 its block of lags p, ..., 1, and
S = det E / det E_11 the least sum of squares over a, a flat prior of a and p(sigma) ~ 1/sigma give

    log p(y | beta) = -(N - p)/2 log S - 1/2 log det E_11

(Zellner 1971, section 4.1 for p = 1; Box, Tiao 1973, section 2.7 for p = 0, where E_11 is empty). The integral over a of
exp(-(S + (a - a^)^T E_11 (a - a^)) / (2 sigma^2)) gives sigma^p det E_11^(-1/2), that over sigma^(p - N - 1) the rest.

The prior of a is flat beyond the stationary region too. To restrict it would multiply the density by the share of stationary
coefficients given beta (`Lags.stationary`): nothing changes where that is one. Nor would it help where it is not: a root at
one takes a constant of any size for noise, log p falls along it by -1/2 log det E_11 alone, and with a handful of effective
samples what is known of an offset is its prior, with tails that chains explore slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from bayesid.errors import DataError, SolverError
from bayesid.regression import Lagged, Observations, compress

# Directions of a joint's columns and effort, of unit norm, below this part of the strongest are rounding errors.
_SMALLEST = 1e-12
_ROOT_DRAWS = 400


@dataclass(frozen=True, eq=False)
class Lags:
    """Inner products of lagged residuals as quadratic forms of compressed ones.

    `products[g]` (L (L + 1)/2, r_g, r_g), L = order + 1: E_kl = u^T products[g][kl] u for the first r_g compressed residuals
    u of group g and the pairs k <= l of `np.triu_indices(L)`, oldest lag first. The forms sum to u^T u over k = l: they are in
    the coordinates of an orthogonal decomposition, where products lose no digits.
    """

    products: tuple[np.ndarray, ...]

    @property
    def order(self) -> int:
        """p, from L (L + 1)/2 pairs."""
        return (int(np.sqrt(8 * len(self.products[0]) + 1)) - 1) // 2 - 1

    @property
    def heights(self) -> tuple[int, ...]:
        """r_g of each group."""
        return tuple(forms.shape[1] for forms in self.products)

    def moments(self, residuals) -> np.ndarray:
        """(G, L, L) E at compressed residuals (G, r)."""
        at = _symmetric(self.order + 1)
        return np.array([np.einsum("r,krs,s->k", u[: k.shape[1]], k, u[: k.shape[1]])[at] for u, k in self._pairs(residuals)])

    def log_density(self, residuals, counts) -> float:
        """log p(y | beta) up to a constant, at compressed residuals (G, r) of counts (G,) rows."""
        factor = self._factor(residuals)
        diagonal = np.log(np.diagonal(factor, axis1=1, axis2=2))
        return float(-np.sum((counts - self.order - 1.0) * diagonal[:, -1] + diagonal.sum(axis=1)))

    def least_squares(self, residuals) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (G, p) of lags 1, ..., p with the least sum of squares, and those sums S (G,)."""
        factor = self._factor(residuals)
        taps = np.linalg.inv(factor)[:, -1]
        return -taps[:, -2::-1] / taps[:, -1:], factor[:, -1, -1] ** 2

    def majorant(self, residuals, counts) -> list[np.ndarray]:
        """Roots (r_g, r_g) of quadratics |root u|^2 / 2 that lie, up to constants, above -log p(y | u) and touch it here.

        Both logarithms are concave in E: log S is below S of the coefficients here, log det E_11 below tr(E_11^-1 E_11).
        """
        slopes = _slopes(np.linalg.inv(self._factor(residuals)), counts, self.order, np)
        rows, columns = np.triu_indices(self.order + 1)
        weights = 2.0 * slopes[:, rows, columns] * np.where(rows == columns, 1.0, 2.0)
        roots = []
        for weight, forms in zip(weights, self.products, strict=True):
            values, vectors = np.linalg.eigh(np.einsum("k,krs->rs", weight, forms))
            roots.append(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
        return roots

    def stationary(self, residuals, counts, seed: int = 0) -> np.ndarray:
        """(G,) share of the coefficients' posterior, Student's t given beta, with all roots inside the unit circle."""
        p, rng = self.order, np.random.default_rng(seed)
        coefficients, squares = self.least_squares(residuals)
        moments = self.moments(residuals)[:, :p, :p]
        shares = []
        for a, s, e, count in zip(coefficients, squares, moments, counts, strict=True):
            root = np.linalg.inv(np.linalg.cholesky(e))[:, ::-1]
            scale = np.sqrt(s / rng.chisquare(count - p, size=(_ROOT_DRAWS, 1)))
            companion = np.tile(np.eye(p, k=-1), (_ROOT_DRAWS, 1, 1))
            companion[:, 0] = a + scale * (rng.normal(size=(_ROOT_DRAWS, p)) @ root)
            shares.append(np.mean(np.abs(np.linalg.eigvals(companion)).max(axis=1) < 1.0))
        return np.array(shares)

    def _pairs(self, residuals):
        return zip(residuals, self.products, strict=True)

    def _factor(self, residuals):
        try:
            return np.linalg.cholesky(self.moments(residuals))
        except np.linalg.LinAlgError:
            raise SolverError("a joint is fitted without any residual: its noise cannot be told from the data") from None


def compress_lags(observations: Observations, order: int):
    """Rows (G, r, b) and target (G, r) of compressed residuals, counts (G,) of rows that they hold, and their `Lags`."""
    information = compress(Lagged(observations, order))
    n, b = len(information.counts), observations.size
    short = np.flatnonzero(information.counts <= order + 1)
    if len(short):
        name = observations.model.robot.joint_names[short[0]]
        raise DataError(f"joint {name} moves too briefly for an autoregression of order {order}: use a longer log")
    blocks = information.factors.reshape(n, -1, order + 1, b + 1)
    rows, target = np.zeros((n, b + 1, b)), np.zeros((n, b + 1))
    first, second = np.triu_indices(order + 1)
    products = []
    for j, factor in enumerate(blocks):
        at = np.union1d(np.flatnonzero(factor.any(axis=(0, 1))), [b])
        factor = factor[..., at]
        norms = np.linalg.norm(factor, axis=(0, 1))
        norms[norms == 0.0] = 1.0
        _, values, vectors = np.linalg.svd(np.linalg.qr((factor / norms).reshape(-1, len(at)), "r"))
        kept = values > _SMALLEST * values[0]
        inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
        onto = np.einsum("hks,rs->khr", factor / norms, inverse[:, None] * vectors)
        forms = np.einsum("khr,khs->krs", onto[first], onto[second], optimize=True)
        products.append(0.5 * (forms + np.swapaxes(forms, 1, 2)))
        coordinates = np.where(kept, values, 0.0)[:, None] * vectors * norms
        rows[j][: len(at), at[:-1]], target[j, : len(at)] = coordinates[:, :-1], coordinates[:, -1]
    height = max(map(len, (forms[0] for forms in products)))
    return rows[:, :height], target[:, :height], information.counts, Lags(tuple(products))


def potential(order, heights, residuals, products, counts):
    """Negative logarithm of the density as JAX function of compressed residuals (G, r)."""
    return _potential(order, heights)(residuals, products, counts)


@cache
def _potential(order, heights):
    import jax
    import jax.numpy as jnp
    from jax.scipy.linalg import solve_triangular

    at = _symmetric(order + 1)
    rows, columns = np.triu_indices(order + 1)
    twice = np.where(rows == columns, 1.0, 2.0)

    def parts(residuals, products):
        parts = [residuals[g, :height] for g, height in enumerate(heights)]
        moved = [forms @ u for forms, u in zip(products, parts)]
        moments = jnp.stack([m @ u for m, u in zip(moved, parts)])[:, at]
        return moved, jnp.linalg.cholesky(moments)

    def value_of(factor, counts):
        diagonal = jnp.log(jnp.diagonal(factor, axis1=1, axis2=2))
        return jnp.sum((counts - order - 1.0) * diagonal[:, -1]) + jnp.sum(diagonal)

    @jax.custom_jvp
    def value(residuals, products, counts):
        return value_of(parts(residuals, products)[1], counts)

    @value.defjvp
    def derivative(primals, tangents):
        residuals, products, counts = primals
        moved, factor = parts(residuals, products)
        inverse = solve_triangular(factor, jnp.broadcast_to(jnp.eye(order + 1), factor.shape), lower=True)
        weights = 2.0 * twice * _slopes(inverse, counts, order, jnp)[:, rows, columns]
        slope = [weight @ m for weight, m in zip(weights, moved)]
        change = sum(jnp.sum(s * tangents[0][g, : len(s)]) for g, s in enumerate(slope))
        return value_of(factor, counts), change

    return value


def _slopes(inverse, counts, order, numpy):
    """(G, L, L) derivative of -log p by E, from inverse Cholesky factors of E."""
    last = inverse[:, -1]
    share = (counts - order - 1.0)[:, None, None] * last[:, :, None] * last[:, None, :]
    return 0.5 * (share + numpy.swapaxes(inverse, 1, 2) @ inverse)


def _symmetric(size):
    """(L, L) where each entry of a symmetric matrix is among its pairs k <= l."""
    at = np.zeros((size, size), dtype=int)
    at[np.triu_indices(size)] = np.arange(size * (size + 1) // 2)
    return np.maximum(at, at.T)
