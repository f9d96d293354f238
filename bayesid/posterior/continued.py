"""A posterior in linear parameters, written for samplers: whitened, and continued beyond the edge of what exists.

A barrier log x of the prior is continued below a small x by its tangent. The tangent lies above the logarithm, so draws from
the continued density become draws from the posterior itself when each is kept with the probability exp(log p - log p
continued): one inside, zero where no body exists. The sampler then meets no wall, and the answer stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from bayesid.posterior.likelihood import Likelihood, Squares
from bayesid.posterior.prior import BASIS, LinearPrior, pseudo

# Relative to the posterior's centre: below this part of it, barriers go on as straight lines.
TANGENT = 0.05


@dataclass(frozen=True)
class LinearLayout:
    """How many links, positive and free parameters and bounding ellipsoids there are beside the squares of the data."""

    squares: Squares
    links: int
    positive: int
    free: int
    rooms: int

    def potential(self, arrays):
        """One matrix product and elementwise functions of its result."""
        import jax.numpy as jnp

        log_determinant = _log_determinant()
        ends = np.cumsum([self.squares.size, 10 * self.links, self.positive, self.free, self.rooms])

        def potential(z):
            values = arrays["matrix"] @ z + arrays["offset"]
            out = self.squares.potential(values[: ends[0]], arrays)
            bodies = values[ends[0] : ends[1]].reshape(self.links, 10)
            out -= jnp.sum(0.5 * (arrays["dof"] - 5.0) * log_determinant(bodies[:, _SYMMETRIC]))
            out -= jnp.sum((arrays["shape"] - 1.0) * _continued_log(values[ends[1] : ends[2]], jnp))
            out += 0.5 * jnp.sum(values[ends[2] : ends[3]] ** 2)
            return out - jnp.sum(arrays["edge"] * _continued_log(values[ends[3] : ends[4]], jnp)) + values[-1]

        return potential


class LinearProblem:
    """Posterior of linear parameters x = center + root z; of those in `prior.logs`, x is the logarithm."""

    def __init__(self, prior: LinearPrior, likelihood: Likelihood, center, root):
        self.prior, self.center, self.root = prior, center, root
        self.names = prior.model.names
        self.size = len(center)
        self.layout, self.arrays = _compiled_form(prior, likelihood, center, root)

    def parameters(self, whitened) -> np.ndarray:
        out = self.center + whitened @ self.root.T
        out[..., self.prior.logs] = np.exp(out[..., self.prior.logs])
        return out

    def accept(self, whitened, rng) -> np.ndarray:
        exact, continued = self._barriers(whitened)
        return np.log(rng.random(exact.shape)) < exact - continued

    def exists(self, whitened) -> np.ndarray:
        return np.isfinite(self._barriers(whitened)[0])

    def _barriers(self, whitened):
        """Sum of the prior's barriers at (..., P), exact (-inf outside) and continued, up to the same constant."""
        prior, center, parameters = self.prior, self.center, self.parameters(whitened)
        n = len(prior.dof)
        links = parameters[..., : 10 * n].reshape(*parameters.shape[:-1], n, 10)
        white = np.einsum("nijk,...nk->...nij", _bodies_about(center, n), links)
        parts = [
            (0.5 * (prior.dof - 5.0)[:, None] * np.ones(4), np.linalg.eigvalsh(white)),
            (prior.shape - 1.0, parameters[..., prior.positive] / center[prior.positive]),
        ]
        if len(prior.on):
            room = np.einsum("eij,...eji->...e", prior.ellipsoids, pseudo(links[..., prior.on, :]))
            parts.append((prior.edge, room / _rooms_at(prior, center)))
        exact, continued = 0.0, 0.0
        for weight, values in parts:
            axes = tuple(range(-np.ndim(weight), 0))
            inside = np.all(values > 0, axis=axes)
            logarithm = np.sum(weight * np.log(np.where(values > 0, values, 1.0)), axis=axes)
            exact = exact + np.where(inside, logarithm, -np.inf)
            continued = continued + np.sum(weight * _continued_log(values, np), axis=axes)
        return exact, continued


def _bodies_about(center, n):
    """(n, 4, 4, 10) map from standard parameters to pseudo-inertias in which those at `center` are identities.

    Barriers are continued in these: a posterior close to the edge of what exists keeps clear of the continuation.
    """
    roots = np.linalg.inv(np.linalg.cholesky(pseudo(center[: 10 * n].reshape(n, 10))))
    return np.einsum("nab,bck,ndc->nadk", roots, BASIS, roots)


def _rooms_at(prior, center):
    n = len(prior.dof)
    return np.einsum("eij,eji->e", prior.ellipsoids, pseudo(center[: 10 * n].reshape(n, 10)[prior.on]))


def _continued_log(x, numpy):
    line = np.log(TANGENT) + x / TANGENT - 1.0
    return numpy.where(x > TANGENT, numpy.log(numpy.maximum(x, TANGENT)), line)


def _compiled_form(prior, likelihood, center, root):
    """Layout and arrays of the continued density."""
    n, size = len(prior.dof), len(center)
    rows = (likelihood.rows @ prior.model.base.matrix).reshape(-1, size)
    bodies = _bodies_about(center, n)
    links = np.zeros((n, 4, 4, size))
    for i in range(n):
        links[i, :, :, 10 * i : 10 * i + 10] = bodies[i]
    links = links[:, _UPPER[0], _UPPER[1]].reshape(-1, size)
    rooms = np.zeros((len(prior.on), size))
    for e, (shape, i, room) in enumerate(zip(prior.ellipsoids, prior.on, _rooms_at(prior, center))):
        rooms[e, 10 * i : 10 * i + 10] = np.einsum("ab,bak->k", shape, BASIS) / room
    # Traces of links and means of positive parameters are linear: one row for all of them.
    linear = np.zeros((1, size))
    for i in range(n):
        inverse = np.linalg.inv(prior.centers[i])
        linear[0, 10 * i : 10 * i + 10] = 0.5 * prior.dof[i] * np.einsum("ab,bak->k", inverse, BASIS)
    linear[0, prior.positive] = prior.shape / prior.scale
    select = np.eye(size)
    free = select[prior.free] / prior.spread[:, None]
    positive = select[prior.positive] / center[prior.positive, None]
    matrix = np.concatenate([rows, links, positive, free, rooms, linear])
    offset = matrix @ center
    offset[: len(rows)] -= likelihood.target.ravel()
    at = len(rows) + len(links) + len(prior.positive)
    offset[at : at + len(free)] -= prior.middle / prior.spread
    arrays = {
        "matrix": matrix @ root,
        "offset": offset,
        **likelihood.arrays,
        "dof": prior.dof,
        "shape": prior.shape,
        "edge": prior.edge,
    }
    return LinearLayout(likelihood.form, n, len(prior.positive), len(free), len(rooms)), arrays


_UPPER = np.triu_indices(4)
_SYMMETRIC = np.zeros((4, 4), dtype=int)
_SYMMETRIC[_UPPER] = np.arange(10)
_SYMMETRIC = np.maximum(_SYMMETRIC, _SYMMETRIC.T)


@cache
def _log_determinant():
    """Sum of continued logarithms of the eigenvalues of symmetric matrices (..., 4, 4), differentiable once everywhere."""
    import jax
    import jax.numpy as jnp

    @jax.custom_jvp
    def log_determinant(matrices):
        return jnp.sum(_continued_log(jnp.linalg.eigvalsh(matrices), jnp), axis=-1)

    @log_determinant.defjvp
    def derivative(primals, tangents):
        values, vectors = jnp.linalg.eigh(primals[0])
        slope = jnp.where(values > TANGENT, 1.0 / jnp.maximum(values, TANGENT), 1.0 / TANGENT)
        inverse = (vectors * slope[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)
        return jnp.sum(_continued_log(values, jnp), axis=-1), jnp.sum(inverse * tangents[0], axis=(-2, -1))

    return log_determinant
