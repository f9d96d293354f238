"""The posterior density of standard parameters, its mode, and the coordinates in which it is nearly round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import DataError, SolverError
from bayesid.posterior.continued import LinearProblem
from bayesid.posterior.likelihood import Likelihood
from bayesid.posterior.prior import BASIS, LinearPrior, pseudo

_NEWTON_STEPS = 100
_SCALE_ROUNDS = 30
_TOO_NARROW = (
    "the posterior is too narrow in some direction, against others, for a computer's numbers: check the unit and size of the "
    "effort, and how exact the prior and the drive gains are"
)


@dataclass(frozen=True, eq=False)
class Target:
    """Posterior of P standard parameters: a compressed likelihood times a linear prior."""

    prior: LinearPrior
    likelihood: Likelihood
    target_accept = 0.75

    def __post_init__(self):
        check_match(self.prior.model, self.likelihood)

    @property
    def model(self):
        return self.prior.model

    def log_density(self, parameters) -> float:
        """Logarithm of the posterior density at (P,), up to a constant; -inf where no body exists."""
        value = self.likelihood.log_density(self.model.base.project(parameters))
        barrier, rest = self._prior_terms(parameters, 5.0, 1.0)
        return value + barrier + rest

    def mode(self) -> np.ndarray:
        """(P,) the posterior mode: Newton's method on a convex program (the entropic one of Lee, Wensing, Park 2020)."""
        return self._minimize(5.0, 1.0)

    def center(self) -> np.ndarray:
        """(P,) the mode with respect to the invariant volume of positive definite matrices: nearly the posterior mean."""
        return self._minimize(0.0, 0.0)

    def precision(self, parameters, lost: float = 0.0, lost_scalar: float = 0.0) -> np.ndarray:
        """(P, P) negative second derivative of the log posterior at (P,), with exponents (dof - lost)/2 of the links.

        With nothing lost and at `center`, its inverse is the exact covariance of a Wishart or gamma distribution: the second
        derivative at the mode is not, their barriers being skew.
        """
        _, hessian = self._slopes(np.asarray(parameters, dtype=float), lost, lost_scalar)
        rows, _ = self.likelihood.quadratic(self.model.base.project(parameters))
        rows = rows @ self.model.base.matrix
        return hessian + rows.T @ rows

    def problem(self) -> LinearProblem:
        """The density for samplers, whitened by the curvature at `center`."""
        center = self.center()
        return LinearProblem(self.prior, self.likelihood, center, inverse_root(self.precision(center)))

    def _minimize(self, lost, lost_scalar):
        prior = self.prior
        x = prior.start.copy()
        matrix = self.model.base.matrix
        beta = self.likelihood.beta
        for _ in range(_SCALE_ROUNDS):
            rows, right = self.likelihood.quadratic(beta)
            x = self._newton(x, rows @ matrix, right, lost, lost_scalar)
            last, beta = beta, matrix @ x
            change = np.max(np.abs(beta - last) / (np.abs(last) + 1e-3 * np.abs(last).max()))
            if self.likelihood.counts is None or change < 1e-9:
                return x
        if change < 1e-4:
            return x
        raise SolverError("the posterior's mode does not settle: the noise of a joint is not determined by the data")

    def _newton(self, x, rows, right, lost, lost_scalar):
        def value(x):
            residual = rows @ x - right
            barrier, rest = self._prior_terms(x, lost, lost_scalar)
            return 0.5 * residual @ residual - barrier - rest

        current = value(x)
        normal = rows.T @ rows
        for _ in range(_NEWTON_STEPS):
            slope, hessian = self._slopes(x, lost, lost_scalar)
            slope = slope + rows.T @ (rows @ x - right)
            scale = 1.0 / np.sqrt(np.diag(hessian + normal))
            try:
                step = -scale * np.linalg.solve((hessian + normal) * np.outer(scale, scale), scale * slope)
            except np.linalg.LinAlgError:
                raise SolverError(_TOO_NARROW) from None
            decrease = -slope @ step
            length, fresh = 1.0, np.inf
            while length > 1e-10:
                fresh = value(x + length * step)
                if fresh <= current - 1e-4 * length * decrease + 1e-12 * abs(current):
                    break
                length *= 0.5
            x, current = x + length * step, fresh
            if decrease < 1e-16 * max(1.0, abs(current)) or length <= 1e-10:
                return x
        raise SolverError("the posterior's mode was not found: the prior and the data contradict each other strongly")

    def _prior_terms(self, x, lost, lost_scalar):
        prior, n = self.prior, len(self.prior.dof)
        links = pseudo(x[: 10 * n].reshape(n, 10))
        smallest = np.linalg.eigvalsh(links)[:, 0]
        positive = x[prior.positive]
        room = np.einsum("eij,eji->e", prior.ellipsoids, links[prior.on]) if len(prior.on) else np.ones(0)
        if np.any(smallest <= 0) or np.any(positive <= 0) or np.any(room <= 0):
            return -np.inf, 0.0
        relative = np.linalg.solve(prior.centers, links)
        barrier = np.sum(0.5 * (prior.dof - lost) * np.linalg.slogdet(relative)[1])
        barrier += np.sum((prior.shape - lost_scalar) * np.log(positive / prior.scale)) + np.sum(prior.edge * np.log(room))
        rest = -0.5 * np.sum(prior.dof * np.trace(relative, axis1=1, axis2=2))
        rest -= np.sum(prior.shape * positive / prior.scale)
        rest -= 0.5 * np.sum(((x[prior.free] - prior.middle) / prior.spread) ** 2)
        return barrier, rest

    def _slopes(self, x, lost, lost_scalar):
        prior, n = self.prior, len(self.prior.dof)
        slope, hessian = np.zeros(self.model.size), np.zeros((self.model.size, self.model.size))
        links = pseudo(x[: 10 * n].reshape(n, 10))
        inverse = np.linalg.inv(links)
        centers = np.linalg.inv(prior.centers)
        exponent = 0.5 * (prior.dof - lost)
        for i in range(n):
            at = slice(10 * i, 10 * i + 10)
            moved = np.einsum("ab,bck->ack", inverse[i], BASIS)
            slope[at] = -exponent[i] * np.einsum("aak->k", moved)
            slope[at] += 0.5 * prior.dof[i] * np.einsum("ab,bak->k", centers[i], BASIS)
            hessian[at, at] = exponent[i] * np.einsum("abk,bal->kl", moved, moved)
        for shape, i, edge in zip(prior.ellipsoids, prior.on, prior.edge):
            at = slice(10 * i, 10 * i + 10)
            gradient = np.einsum("ab,bak->k", shape, BASIS)
            room = np.einsum("ij,ji->", shape, links[i])
            slope[at] -= edge * gradient / room
            hessian[at, at] += edge * np.outer(gradient, gradient) / room**2
        positive = x[prior.positive]
        slope[prior.positive] = -(prior.shape - lost_scalar) / positive + prior.shape / prior.scale
        hessian[prior.positive, prior.positive] = (prior.shape - lost_scalar) / positive**2
        slope[prior.free] = (x[prior.free] - prior.middle) / prior.spread**2
        hessian[prior.free, prior.free] = prior.spread**-2.0
        return slope, hessian


def check_match(model, likelihood) -> None:
    """Refuse a likelihood of another model, and one that holds no numbers."""
    base = model.base.dimension
    if likelihood.size != base:
        raise DataError(
            f"the likelihood has {likelihood.size} base parameters, the prior's model '{model.robot.name}' has {base}: both "
            "must come from the same model"
        )
    for array in (likelihood.rows, likelihood.target):
        if not np.isfinite(array).all():
            raise DataError("the data hold NaN or infinite values: clean the log (bayesid names the rows when it reads it)")


def inverse_root(precision):
    """(P, P) root with root root^T the inverse of a precision matrix, scaled first: its entries span many decades."""
    from scipy.linalg import solve_triangular

    scale = 1.0 / np.sqrt(np.diag(precision))
    try:
        factor = np.linalg.cholesky(precision * np.outer(scale, scale))
    except np.linalg.LinAlgError:
        raise SolverError(_TOO_NARROW) from None
    return scale[:, None] * solve_triangular(factor, np.eye(len(scale)), lower=True).T
