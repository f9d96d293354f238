"""Likelihoods of base parameters, each in compressed form: its cost does not depend on the number of samples.

`calibrated` is for real robots, whose residuals are model error that no autoregression describes: the curvature of the
likelihood is adjusted to the HAC covariance. `autoregressive` is for residuals that an autoregressive model whitens. `white`
takes residuals as independent, and is right for simulated white noise only.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace

import numpy as np

from bayesid.errors import DataError, SolverError
from bayesid.posterior.lagged import Lags, compress_lags, potential
from bayesid.regression import HAC, Fit, Information, Observations, compress, gain_sensitivity
from bayesid.regression.least_squares import autoregression, ols, residual_moments, wls

HIGHEST_ORDER = 12
_ROUNDS = 100


@dataclass(frozen=True)
class Squares:
    """Sizes of a likelihood as samplers compile it: `groups` of `height` residuals, their scale `marginal` or known, and of
    autoregressive ones the `order` and the heights r_g of their `Lags`."""

    groups: int
    height: int
    marginal: bool
    order: int = 0
    heights: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of residuals."""
        return self.groups * self.height

    def potential(self, residuals, arrays):
        """Negative logarithm of the likelihood, in JAX, of residuals rows @ beta - target (size,) and the `arrays`."""
        import jax.numpy as jnp

        residuals = residuals.reshape(self.groups, self.height)
        if self.order:
            products = [arrays[f"products_{g}"] for g in range(self.groups)]
            return potential(self.order, self.heights, residuals, products, arrays["counts"])
        squares = jnp.sum(residuals**2, axis=1)
        return 0.5 * jnp.sum(arrays["counts"] * jnp.log(squares) if self.marginal else squares)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """log p(data | beta) as a sum over groups of rows ||F_g beta - y_g||^2.

    `rows` (G, r, b) and `target` (G, r). `counts` None: the rows are whitened and log p = -1/2 sum of squares. `counts`
    (G,): the scale of each group is unknown and marginalised under p(sigma) ~ 1/sigma, log p = -sum_g counts_g/2 log S_g
    (Box, Tiao 1973, section 2.7). With `lags`, so are the coefficients of their autoregression. `effective` (n,) is the
    effective number of independent samples per joint, `noise` (n,) the residual standard deviation per joint [N m], `beta`
    (b,) the estimate about which the data speak, `description` JSON-able.
    """

    rows: np.ndarray
    target: np.ndarray
    counts: np.ndarray | None
    beta: np.ndarray
    noise: np.ndarray
    effective: np.ndarray
    samples: int
    description: dict = field(default_factory=dict)
    lags: Lags | None = None

    @property
    def size(self) -> int:
        """Number of base parameters b."""
        return self.rows.shape[2]

    @property
    def form(self) -> Squares:
        order, heights = (self.lags.order, self.lags.heights) if self.lags else (0, ())
        return Squares(*self.rows.shape[:2], self.counts is not None, order, heights)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What the potential of `form` reads."""
        counts = np.ones(len(self.rows)) if self.counts is None else self.counts
        products = self.lags.products if self.lags else ()
        return {"counts": counts, **{f"products_{g}": forms for g, forms in enumerate(products)}}

    def residuals(self, beta) -> np.ndarray:
        """(G, r) compressed residuals at beta (b,)."""
        return self.rows @ beta - self.target

    def log_density(self, beta) -> float:
        """Logarithm of the likelihood at beta (b,), up to a constant."""
        residuals = self.residuals(beta)
        if self.lags:
            return self.lags.log_density(residuals, self.counts)
        squares = np.sum(residuals**2, axis=1)
        return float(-0.5 * np.sum(squares if self.counts is None else self.counts * np.log(squares)))

    def quadratic(self, beta) -> tuple[np.ndarray, np.ndarray]:
        """R (k, b) and r (k,) of the quadratic -1/2 ||R beta - r||^2 that touches the likelihood at beta from below, up to a
        constant: to maximise it again and again is to maximise the likelihood."""
        if self.lags:
            roots = self.lags.majorant(self.residuals(beta), self.counts)
            pairs = [(root @ f[: len(root)], root @ y[: len(root)]) for root, f, y in zip(roots, self.rows, self.target)]
            return np.concatenate([rows for rows, _ in pairs]), np.concatenate([right for _, right in pairs])
        weights = np.ones(len(self.rows)) if self.counts is None else self.counts / np.sum(self.residuals(beta) ** 2, axis=1)
        root = np.sqrt(weights)[:, None]
        return (root[..., None] * self.rows).reshape(-1, self.size), (root * self.target).ravel()

    def __add__(self, other: Likelihood) -> Likelihood:
        """The likelihood of both data, independent of each other, both calibrated."""
        if self.counts is not None or other.counts is not None or self.size != other.size:
            raise DataError("only calibrated likelihoods of the same model can be added; compress the logs together instead")
        rows = np.concatenate([self.rows.reshape(-1, self.size), other.rows.reshape(-1, self.size)])
        factor = np.linalg.qr(np.column_stack([rows, np.concatenate([self.target.ravel(), other.target.ravel()])]), "r")
        rows, target = factor[: self.size, : self.size], factor[: self.size, -1]
        total = self.samples + other.samples
        return Likelihood(
            rows[None],
            target[None],
            None,
            np.linalg.solve(rows, target),
            np.sqrt((self.samples * self.noise**2 + other.samples * other.noise**2) / total),
            self.effective + other.effective,
            total,
            {"method": "calibrated", "parts": [self.description, other.description]},
        )


def calibrated(fit: Fit, covariance=None, gains_covariance=None, response=None) -> Likelihood:
    """Curvature-adjusted likelihood: normal about the fit's beta with the covariance that its residuals really give.

    The "open-faced" adjustment of Ribatet, Cooley, Davison 2012 and Shaby 2014 for a quadratic log-likelihood: the
    curvature is replaced by the inverse sandwich covariance (default HAC). A HAC covariance from few independent stretches
    of data is too noisy to invert, so its correlations are shrunk, in the coordinates where the normal matrix is the
    identity, towards those of the normal matrix, by the weight (b + 1) / (dof + b + 1) [Ledoit, Wolf 2004 for a target
    proportional to the identity]; standard deviations stay the HAC ones, widened by dof / (dof - 2) in variance.

    `gains_covariance` (n, n) [(N m/A)^2] is the covariance of the drive gains that turned currents into torques: beta is
    linear in them, and their error is added. `response` (b, b) multiplies all errors (see `bayesid.regression.load_response`).
    Heavy tails: pass the fit by `robust`.
    """
    result = (covariance or HAC()).of(fit)
    raw, dof = np.asarray(result.covariance), float(result.dof)
    b = len(fit.beta)
    if dof <= 4:
        raise DataError(f"the residuals leave {dof:.1f} degrees of freedom for an uncertainty: use a longer log")
    factor = fit.factor
    middle = factor @ raw @ factor.T
    share = (b + 1) / (dof + b + 1) if np.isfinite(dof) else 0.0
    middle = (1.0 - share) * middle + share * np.trace(middle) / b * np.eye(b)
    inverse = np.linalg.inv(factor)
    adjusted = inverse @ middle @ inverse.T
    scale = np.sqrt(np.diag(raw) / np.diag(adjusted)) * (np.sqrt(dof / (dof - 2.0)) if np.isfinite(dof) else 1.0)
    adjusted = adjusted * np.outer(scale, scale)
    if gains_covariance is not None:
        adjusted = adjusted + _gain_error(fit, np.asarray(gains_covariance, dtype=float))
    if response is not None:
        adjusted = response @ adjusted @ response.T
    rows = np.linalg.cholesky(np.linalg.inv(adjusted)).T
    white = np.diag(inverse @ inverse.T)
    ratio = float(np.median(np.diag(adjusted) / white))
    description = {"method": "calibrated", "covariance": result.description, "dof": dof, "shrinkage": share}
    if gains_covariance is not None:
        description["drive_gains"] = "propagated"
    return Likelihood(
        rows[None],
        (rows @ fit.beta)[None],
        None,
        fit.beta,
        fit.noise,
        fit.information.counts / max(ratio, 1e-12),
        fit.observations.count,
        description,
    )


def autoregressive(observations: Observations, order: int | None = None) -> Likelihood:
    """Residuals of each joint follow an autoregressive model, order by Schwarz's criterion unless given.

    Coefficients and innovation variances are marginalised (see `lagged`). Effective samples per joint, as for a mean: N
    times the residual variance over the long-run one, which is the innovation variance over (1 - sum a)^2.
    """
    start = _start(observations)
    if order is None:
        order = likelihood_order(observations, start)
    if order == 0:
        return _white(observations, {"method": "autoregressive", "order": 0})
    rows, target, counts, lags = compress_lags(observations, order)
    found = Likelihood(rows, target, counts, start, counts, counts, observations.count, {}, lags)
    beta = _maximized(found)
    noise = _noise_of(observations, beta)
    residuals = found.residuals(beta)
    coefficients, squares = lags.least_squares(residuals)
    ratio = noise * (1.0 - coefficients.sum(axis=1)) / np.sqrt(squares / (counts - order))
    description = {
        "method": "autoregressive",
        "order": order,
        "coefficients": coefficients.round(6).tolist(),
        "stationary": lags.stationary(residuals, counts).tolist(),
    }
    return replace(found, beta=beta, noise=noise, effective=np.minimum(counts * ratio**2, counts), description=description)


def white(observations: Observations) -> Likelihood:
    """Independent residuals, one unknown variance per joint. Intervals are too narrow by a factor of four to six on real
    robots: a warning says so."""
    warnings.warn(
        "the white-noise likelihood ignores the autocorrelation of the residuals: intervals will be too narrow",
        stacklevel=2,
    )
    return _white(observations, {"method": "white"})


def likelihood_order(observations: Observations, beta) -> int:
    """Order in 0..12 with the least Schwarz criterion (Schwarz 1978), summed over joints, of the residuals at beta; samples at
    standstill do not count."""
    count = residual_moments(observations, beta, 0)[1]
    moving = count > 0
    best, chosen = np.inf, 0
    for order in range(HIGHEST_ORDER + 1):
        if order == 0:
            innovation = _noise_of(observations, beta)
        else:
            _, innovation = autoregression(observations, beta, order)
        score = np.sum(count[moving] * np.log(innovation[moving] ** 2) + order * np.log(count[moving]))
        if score < best:
            best, chosen = score, order
    return chosen


def _start(observations):
    """(b,) least squares, weighted where the weights settle: in a poor log a joint may be fitted without any residual, which
    only a prior keeps it from."""
    try:
        return wls(observations).beta
    except SolverError:
        return ols(observations).beta


def _maximized(likelihood):
    """(b,) maximum of the likelihood near its `beta`, or what so many rounds towards it lead to: data that determine it poorly
    need a prior, and the posterior's mode is sought from here."""
    beta = likelihood.beta
    for _ in range(_ROUNDS):
        rows, right = likelihood.quadratic(beta)
        norms = np.linalg.norm(rows, axis=0)
        last, beta = beta, np.linalg.lstsq(rows / norms, right, rcond=None)[0] / norms
        if np.max(np.abs(beta - last) / (np.abs(last) + 1e-3 * np.abs(last).max())) < 1e-9:
            break
    return beta


def _white(observations, description):
    information = compress(observations)
    fit = wls(observations)
    rows, target = _split(information)
    return Likelihood(
        rows, target, information.counts, fit.beta, fit.noise, information.counts, observations.count, description
    )


def _split(information: Information):
    return information.factors[:, :, :-1].copy(), information.factors[:, :, -1].copy()


def _noise_of(observations, beta):
    squares, count = residual_moments(observations, beta, 0)
    return np.sqrt(squares[:, 0] / np.maximum(count, 1.0))


def _gain_error(fit, covariance):
    n = len(fit.weights)
    if covariance.shape != (n, n) or np.linalg.eigvalsh(covariance)[0] < -1e-12:
        raise DataError(f"the covariance of {n} drive gains must be a positive semidefinite ({n}, {n}) matrix")
    slopes = gain_sensitivity(fit)
    return slopes @ covariance @ slopes.T
