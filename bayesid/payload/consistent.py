"""Payload estimates of bodies that can exist: nearest by a linear matrix inequality, or the posterior on the consistent set."""

from __future__ import annotations

import dataclasses

import numpy as np

from bayesid.errors import SolverError
from bayesid.payload.parameters import NAMES, consistency
from bayesid.results import Estimate

# Smallest eigenvalue of the pseudo-inertia, as a part of the mass [m^2]: a tenth of a millimetre of thickness.
_MARGIN = 1e-8


def consistent_estimate(estimate: Estimate) -> Estimate:
    """The consistent payload nearest to an estimate in the metric of its own covariance; unchanged where consistent already.

    Minimises (pi - mean)^T covariance^-1 (pi - mean) subject to a positive definite pseudo-inertia (Wensing, Kim, Slotine
    2017), which for a Gaussian likelihood is the constrained maximum. The covariance stays that of the unconstrained
    estimate, hence on the safe side. Raises SolverError when the program is not solved.
    """
    mine = estimate.select(NAMES)
    if consistency(mine.mean) > _MARGIN * max(mine.mean[0], 0.0):
        return dataclasses.replace(estimate, meta={**estimate.meta, "consistent": "already"})
    import cvxpy as cp

    scale = mine.std
    factor = np.linalg.cholesky(np.linalg.inv(mine.covariance / np.outer(scale, scale)))
    x = cp.Variable(len(NAMES))
    first, i = x[1:4], x[4:]
    half = 0.5 * (i[0] + i[3] + i[5])
    second = cp.bmat([[half - i[0], -i[1], -i[2]], [-i[1], half - i[3], -i[4]], [-i[2], -i[4], half - i[5]]])
    pseudo = cp.bmat(
        [
            [second, cp.reshape(first, (3, 1), order="C")],
            [cp.reshape(first, (1, 3), order="C"), cp.reshape(x[0], (1, 1), order="C")],
        ]
    )
    margin = 2.0 * _MARGIN * max(abs(float(mine.mean[0])), 1e-3)
    problem = cp.Problem(
        cp.Minimize(cp.norm(factor.T @ cp.multiply(1.0 / scale, x - mine.mean))), [pseudo >> margin * np.eye(4)]
    )
    problem.solve(solver=cp.CLARABEL)
    if problem.status not in ("optimal", "optimal_inaccurate") or x.value is None:
        raise SolverError(
            f"the nearest consistent payload was not found ({problem.status}): the estimate may be far from any body"
        )
    mean = np.array(estimate.mean)
    mean[[estimate.index(name) for name in NAMES]] = x.value
    distance = float(problem.value)
    return dataclasses.replace(
        estimate,
        mean=mean,
        method=f"{estimate.method}, lmi",
        meta={**estimate.meta, "consistent": "projected", "moved_std": distance},
    )


def payload_posterior(estimate: Estimate, draws: int = 2000, warmup: int = 1000, chains: int = 50, seed: int = 0) -> Estimate:
    """The posterior of the standard parameters: the estimate's likelihood, flat on consistent bodies, zero elsewhere.

    The likelihood is Gaussian, or Student's t where the estimate has finite degrees of freedom: then a mixture of Gaussians
    whose common precision is drawn, too.

    Gibbs sampling along random directions ("hit-and-run", Belisle, Romeijn, Smith 1993): on a line through a consistent body
    the consistent stretch follows from the eigenvalues of its pseudo-inertia, and the Gaussian on it is drawn exactly. All
    `chains` run at once; `draws` in all are kept, with R-hat and effective sample size in `meta`.
    """
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
    from scipy.special import ndtr, ndtri

    from bayesid.inertia import pseudo_inertia

    mine = estimate.select(NAMES)
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky(mine.covariance)
    basis = np.asarray(pseudo_inertia(np.ascontiguousarray(factor.T)))
    offset = np.asarray(pseudo_inertia(np.array(mine.mean)))
    z = np.tile(np.linalg.solve(factor, _inside(consistent_estimate(mine)) - mine.mean), (chains, 1))
    kept, size = [], np.ones(chains)
    thin = 6 * len(NAMES)
    for step in range(warmup + thin * -(-draws // chains)):
        direction = rng.standard_normal(z.shape)
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        lower = np.linalg.cholesky(offset + np.tensordot(z, basis, axes=(1, 0)))
        move = np.linalg.solve(lower, np.tensordot(direction, basis, axes=(1, 0)))
        values = np.linalg.eigvalsh(np.linalg.solve(lower, np.swapaxes(move, 1, 2)))
        with np.errstate(divide="ignore"):
            low = np.where(values[:, -1] > 0, -1.0 / values[:, -1], -np.inf)
            high = np.where(values[:, 0] < 0, -1.0 / values[:, 0], np.inf)
        if np.isfinite(mine.dof):
            shape = 0.5 * (mine.dof + len(NAMES))
            size = np.sqrt(rng.gamma(shape, size=len(z)) / (0.5 * (mine.dof + np.sum(z**2, axis=1))))
        along, low, high = size * np.sum(z * direction, axis=1), size * low, size * high
        # The upper tail is drawn from its mirror image: the distribution function has no digits left there.
        flip = np.where(low + along > 0, -1.0, 1.0)
        ends = np.sort(np.stack([flip * (low + along), flip * (high + along)]), axis=0)
        below, above = ndtr(ends)
        drawn = ndtri(below + (above - below) * rng.uniform(1e-9, 1 - 1e-9, len(z)))
        move_by = np.clip(flip * drawn - along, 0.999999 * low, 0.999999 * high)
        z = z + (np.where(np.isfinite(move_by), move_by, 0.0) / size)[:, None] * direction
        if step >= warmup and (step - warmup) % thin == thin - 1:
            kept.append(mine.mean + z @ factor.T)
    values = np.stack(kept, axis=1)
    flat = values.reshape(-1, len(NAMES))
    return dataclasses.replace(
        mine,
        mean=flat.mean(0),
        covariance=np.cov(flat.T),
        dof=np.inf,
        draws=flat,
        method=f"{estimate.method}, posterior",
        covariance_method={**estimate.covariance_method, "through": "Gibbs sampling"},
        meta={
            **estimate.meta,
            "max_rhat": float(np.max(split_gelman_rubin(values))),
            "min_ess": float(np.min(effective_sample_size(values))),
        },
    )


def _inside(estimate: Estimate) -> np.ndarray:
    """A consistent point near an estimate, well inside: log-Cholesky coordinates of the boundary are infinite."""
    from bayesid.inertia import nearest_consistent

    standard = np.array(estimate.mean)
    margin = max(0.1 * float(np.sqrt(np.mean(np.diag(estimate.covariance)[4:]))), 1e-6)
    return np.asarray(nearest_consistent(standard, margin))
