"""Fits that leave a part of the runs out, from the compressed information of the parts: no part is read twice."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from bayesid.posterior.prior import ParameterPrior
from bayesid.regression import Observations, compress
from bayesid.signals import Samples

LEAST_FOLDS = 5
_PRIOR_DRAWS = 2000
_ROUNDS = 5


def held_out_fits(prior: ParameterPrior, runs, gains) -> list[tuple[Samples, np.ndarray]]:
    """Each part of the runs with the base parameters (b,) of a fit to all others. Parts are whole runs when there are five or
    more, else each run is cut so that there are."""
    pieces = math.ceil(LEAST_FOLDS / len(runs))
    parts = []
    for run in runs:
        edges = np.linspace(0, len(run), pieces + 1).astype(int)
        parts += [run.select(slice(first, last)) for first, last in pairwise(edges) if run.moving[first:last].any()]
    folds = [compress(Observations(prior.model, (part,), gains)) for part in parts]
    held = normal_prior(prior)
    return [(part, ridge(total(folds[:k] + folds[k + 1 :] or folds), *held)[0]) for k, part in enumerate(parts)]


def total(parts):
    """The information of all parts together, of whatever kind."""
    out = parts[0]
    for part in parts[1:]:
        out = out + part
    return out


def normal_prior(prior: ParameterPrior) -> tuple[np.ndarray, np.ndarray]:
    """Mean (b,) and root (b, b) of the precision of base parameters, less their origin, under the prior, as if normal."""
    draws = prior.model.base.project(prior.sample(0, _PRIOR_DRAWS) - prior.model.origin)
    values, vectors = np.linalg.eigh(np.cov(draws.T))
    return draws.mean(axis=0), (vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))).T


def ridge(information, center, root):
    """Posterior mean (b,) under a normal prior and the noise (n,) per joint, iterated together."""
    noise = np.ones(len(information.counts))
    beta = center
    for _ in range(_ROUNDS):
        factor, right = information.stacked(np.where(information.counts > 0, noise**-2.0, 0.0))
        rows, target = np.vstack([factor, root]), np.append(right, root @ center)
        beta = np.linalg.lstsq(rows, target, rcond=None)[0]
        noise = np.sqrt(information.squared_residuals(beta) / np.maximum(information.counts, 1.0))
        noise = np.where(information.counts > 0, np.maximum(noise, 1e-9), 1.0)
    return beta, noise
