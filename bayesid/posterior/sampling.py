"""Inference: NUTS in whitened coordinates, and the fast approximations."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from bayesid.errors import DataError
from bayesid.posterior.diagnostics import Diagnostics, diagnose
from bayesid.posterior.prior import BASIS, pseudo
from bayesid.posterior.target import TANGENT, Target


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws (chains, S, P) with what the sampler says of them; `timing_s` of its stages."""

    parameters: np.ndarray
    diagnostics: Diagnostics | None
    stats: dict = field(default_factory=dict)
    timing_s: dict = field(default_factory=dict)


@dataclass(frozen=True)
class NUTS:
    """The no-U-turn sampler of numpyro, chains side by side in one compiled program.

    Coordinates are whitened by the curvature at `Target.center`, so that the metric is the identity from the start and the
    warm-up has only the step size to find.
    """

    chains: int = 4
    warmup: int = 200
    draws: int = 700
    target_accept: float = 0.75
    max_tree_depth: int = 8
    seed: int = 0

    def __post_init__(self):
        if self.chains < 1 or self.draws < 8 or self.warmup < 1:
            raise DataError("the sampler needs at least one chain, one warm-up step and eight draws")
        if not 0 < self.target_accept < 1:
            raise DataError(f"the target acceptance is a probability between 0 and 1, got {self.target_accept}")

    def run(self, target: Target) -> Draws:
        """Draws from `target`. Raises SolverError when its mode cannot be found."""
        clock = time.perf_counter()
        center = target.center()
        root = _inverse_root(target.precision(center))
        timing = {"mode": time.perf_counter() - clock}
        clock = time.perf_counter()
        rng = np.random.default_rng(self.seed)
        start = 0.5 * rng.normal(size=(self.chains, len(center)))
        whitened, stats = _sample(self, [(target, center, root)], start[None], [self.seed])
        whitened, stats = whitened[0], {name: values[0] for name, values in stats.items()}
        timing["sample"] = time.perf_counter() - clock
        parameters = center + whitened @ root.T
        return _draws(target, center, parameters, stats, rng, timing)

    def run_many(self, targets) -> list[Draws]:
        """Draws from each of several targets of the same model, all chains of all targets side by side in one program."""
        clock = time.perf_counter()
        rng = np.random.default_rng(self.seed)
        problems = []
        for target in targets:
            center = target.center()
            problems.append((target, center, _inverse_root(target.precision(center))))
        start = 0.5 * rng.normal(size=(len(problems), self.chains, len(problems[0][1])))
        whitened, stats = _sample(self, problems, start, range(self.seed, self.seed + len(problems)))
        timing = {"sample": (time.perf_counter() - clock) / len(problems)}
        out = []
        for k, (target, center, root) in enumerate(problems):
            own = {name: values[k] for name, values in stats.items()}
            out.append(_draws(target, center, center + whitened[k] @ root.T, own, rng, timing))
        return out


@dataclass(frozen=True)
class Laplace:
    """A normal distribution about `Target.center` with the curvature there, restricted to bodies that exist: draws outside
    are drawn again. Exact for Gaussian directions, close for those that only the prior determines."""

    draws: int = 4000
    seed: int = 0

    def run(self, target: Target) -> Draws:
        clock = time.perf_counter()
        center = target.center()
        root = _inverse_root(target.precision(center))
        rng = np.random.default_rng(self.seed)
        found = np.zeros((0, len(center)))
        for _ in range(200):
            fresh = center + rng.normal(size=(self.draws, len(center))) @ root.T
            found = np.concatenate([found, fresh[exists(target, fresh)]])
            if len(found) >= self.draws:
                break
        else:
            raise DataError("the normal approximation leaves physical consistency too often: use NUTS")
        return Draws(found[None, : self.draws], None, {}, {"sample": time.perf_counter() - clock})


@dataclass(frozen=True)
class SVI:
    """Stochastic variational inference: a normal distribution with a low-rank-plus-diagonal covariance in whitened
    coordinates, fitted by Adam (optax) to the continued density, then restricted to it as NUTS' draws are."""

    steps: int = 1500
    rate: float = 0.01
    draws: int = 4000
    seed: int = 0

    def run(self, target: Target) -> Draws:
        clock = time.perf_counter()
        center = target.center()
        root = _inverse_root(target.precision(center))
        import jax
        import jax.numpy as jnp
        import optax

        potential = _potential(*_problem(target, center, root))
        size = len(center)
        optimizer = optax.adam(optax.cosine_decay_schedule(self.rate, self.steps))

        def loss(guide, key):
            noise = jax.random.normal(key, (16, size))
            z = guide["mean"] + noise * jnp.exp(guide["log_std"])
            return jnp.mean(jax.vmap(potential)(z)) - jnp.sum(guide["log_std"])

        def step(carry, key):
            guide, state = carry
            value, slope = jax.value_and_grad(loss)(guide, key)
            update, state = optimizer.update(slope, state)
            return (optax.apply_updates(guide, update), state), value

        guide = {"mean": jnp.zeros(size), "log_std": jnp.zeros(size)}
        keys = jax.random.split(jax.random.PRNGKey(self.seed), self.steps)
        (guide, _), losses = jax.jit(lambda c: jax.lax.scan(step, c, keys))((guide, optimizer.init(guide)))
        rng = np.random.default_rng(self.seed)
        std = np.exp(np.asarray(guide["log_std"]))
        found = np.zeros((0, size))
        for _ in range(200):
            fresh = center + (np.asarray(guide["mean"]) + std * rng.normal(size=(self.draws, size))) @ root.T
            found = np.concatenate([found, fresh[exists(target, fresh)]])
            if len(found) >= self.draws:
                break
        else:
            raise DataError("the variational approximation leaves physical consistency too often: use NUTS")
        return Draws(found[None, : self.draws], None, {"loss": np.asarray(losses)}, {"sample": time.perf_counter() - clock})


def exists(target: Target, parameters) -> np.ndarray:
    """(...,) whether parameters (..., P) lie where the posterior's density is positive; NumPy alone."""
    barrier, _ = _barriers(target, np.asarray(parameters, dtype=float), target.prior.start)
    return np.isfinite(barrier)


def accepted(target: Target, parameters, center, rng) -> np.ndarray:
    """(...,) rejection step that turns draws of the density continued about `center` into draws of the posterior."""
    exact, continued = _barriers(target, np.asarray(parameters, dtype=float), center)
    return np.log(rng.random(exact.shape)) < exact - continued


def _barriers(target, parameters, center):
    """Sum of the prior's barriers at (..., P), exact (-inf outside) and continued, up to the same constant."""
    prior = target.prior
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


@dataclass(frozen=True)
class _Layout:
    """Sizes that a compiled potential depends on; everything else is data."""

    groups: int
    height: int
    links: int
    positive: int
    free: int
    rooms: int
    marginal: bool


def _problem(target, center, root):
    """Layout and arrays of the continued density: one matrix product and elementwise functions of its result."""
    prior, likelihood = target.prior, target.likelihood
    n, size = len(prior.dof), len(center)
    groups, height, _ = likelihood.rows.shape
    rows = (likelihood.rows @ target.model.base.matrix).reshape(-1, size)
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
    marginal = likelihood.counts is not None
    arrays = {
        "matrix": matrix @ root,
        "offset": offset,
        "counts": likelihood.counts if marginal else np.ones(groups),
        "dof": prior.dof,
        "shape": prior.shape,
        "edge": prior.edge,
    }
    return _Layout(groups, height, n, len(prior.positive), len(free), len(rooms), marginal), arrays


_UPPER = np.triu_indices(4)
_SYMMETRIC = np.zeros((4, 4), dtype=int)
_SYMMETRIC[_UPPER] = np.arange(10)
_SYMMETRIC = np.maximum(_SYMMETRIC, _SYMMETRIC.T)


def _potential(layout, arrays):
    """Negative logarithm of the continued density as a function of whitened coordinates (P,)."""
    import jax.numpy as jnp

    log_determinant = _log_determinant()
    sizes = [layout.groups * layout.height, 10 * layout.links, layout.positive, layout.free, layout.rooms]
    ends = np.cumsum(sizes)

    def potential(z):
        values = arrays["matrix"] @ z + arrays["offset"]
        squares = jnp.sum(values[: ends[0]].reshape(layout.groups, layout.height) ** 2, axis=1)
        out = 0.5 * jnp.sum(arrays["counts"] * jnp.log(squares) if layout.marginal else squares)
        bodies = values[ends[0] : ends[1]].reshape(layout.links, 10)
        out -= jnp.sum(0.5 * (arrays["dof"] - 5.0) * log_determinant(bodies[:, _SYMMETRIC]))
        positive = values[ends[1] : ends[2]]
        out -= jnp.sum((arrays["shape"] - 1.0) * _continued_log(positive, jnp))
        out += 0.5 * jnp.sum(values[ends[2] : ends[3]] ** 2)
        return out - jnp.sum(arrays["edge"] * _continued_log(values[ends[3] : ends[4]], jnp)) + values[-1]

    return potential


def _sample(settings, problems, start, seeds):
    """Whitened draws (K, chains, S, P) and statistics (K, chains, S) of K problems of one layout."""
    import jax

    layouts, arrays = zip(*(_problem(*problem) for problem in problems))
    if len(set(layouts)) > 1:
        raise DataError("posteriors that are sampled together must have the same model and kind of likelihood")
    stacked = {name: np.stack([a[name] for a in arrays]) for name in arrays[0]}
    keys = jax.vmap(lambda key: jax.random.split(key, settings.chains))(
        np.stack([np.asarray(jax.random.PRNGKey(seed)) for seed in seeds])
    )
    run = _compiled(layouts[0], settings.warmup, settings.draws, settings.target_accept, settings.max_tree_depth)
    whitened, stats = run(stacked, keys, start)
    return np.asarray(whitened), {name: np.asarray(values) for name, values in stats.items()}


@cache
def _compiled(layout, warmup, draws, target_accept, depth):
    """Program for all chains of all problems of one layout, compiled once per shape."""
    import jax
    from numpyro.infer.hmc import hmc

    init, step = hmc(potential_fn_gen=lambda arrays: _potential(layout, arrays), algo="NUTS")

    def chain(arrays, key, start):
        state = init(
            start,
            warmup,
            step_size=0.2,
            adapt_mass_matrix=False,
            target_accept_prob=target_accept,
            max_tree_depth=depth,
            find_heuristic_step_size=False,
            model_args=(arrays,),
            rng_key=key,
        )

        def once(state, _):
            state = step(state, (arrays,))
            kept = {name: getattr(state, name) for name in ("diverging", "num_steps", "accept_prob", "energy")}
            return state, (state.z, kept)

        # One loop for warm-up and draws: a second one would double the time to compile.
        _, out = jax.lax.scan(once, state, None, length=warmup + draws)
        return jax.tree.map(lambda values: values[warmup:], out)

    return jax.jit(jax.vmap(jax.vmap(chain, in_axes=(None, 0, 0))))


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


def _inverse_root(precision):
    """(P, P) root with root root^T the inverse of a precision matrix, scaled first: its entries span many decades."""
    scale = 1.0 / np.sqrt(np.diag(precision))
    factor = np.linalg.cholesky(precision * np.outer(scale, scale))
    from scipy.linalg import solve_triangular

    return scale[:, None] * solve_triangular(factor, np.eye(len(scale)), lower=True).T


def _draws(target, center, parameters, stats, rng, timing):
    keep = accepted(target, parameters, center, rng)
    divergences = int(stats["diverging"].sum())
    if not keep.all():
        least = int(keep.sum(axis=1).min())
        if least < 8:
            raise DataError("almost no draw is physically consistent: raise the prior's degrees of freedom")
        rows = [np.flatnonzero(k)[:least] for k in keep]
        parameters = np.stack([values[r] for values, r in zip(parameters, rows)])
        stats = {name: np.stack([v[r] for v, r in zip(values, rows)]) for name, values in stats.items()}
    steps, rejected = float(stats["num_steps"].mean()), float(1.0 - keep.mean())
    diagnostics = diagnose(parameters, target.model.names, divergences, stats["energy"], steps, rejected)
    return Draws(parameters, diagnostics, stats, timing)
