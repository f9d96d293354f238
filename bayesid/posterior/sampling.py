"""Inference: NUTS in whitened coordinates, and the fast approximations. What is sampled is a `Problem`, of whatever kind."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from bayesid.errors import DataError
from bayesid.posterior.diagnostics import Diagnostics, diagnose
from bayesid.posterior.problem import Density, Problem


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

    Coordinates are whitened, so that the metric is the identity from the start and the warm-up has only the step size to
    find: that of the mean acceptance `target_accept`, None for what suits the density.
    """

    chains: int = 4
    warmup: int = 200
    draws: int = 1000
    target_accept: float | None = None
    max_tree_depth: int = 8
    seed: int = 0

    def __post_init__(self):
        if self.chains < 1 or self.draws < 8 or self.warmup < 1:
            raise DataError("the sampler needs at least one chain, one warm-up step and eight draws")
        if self.target_accept is not None and not 0 < self.target_accept < 1:
            raise DataError(f"the target acceptance is a probability between 0 and 1, got {self.target_accept}")

    def run(self, target: Density) -> Draws:
        """Draws from `target`. Raises SolverError when its mode cannot be found."""
        return self.run_many([target])[0]

    def run_many(self, targets) -> list[Draws]:
        """Draws from each of several targets of the same model, all chains of all targets side by side in one program."""
        clock = time.perf_counter()
        problems = [target.problem() for target in targets]
        timing = {"mode": (time.perf_counter() - clock) / len(problems)}
        clock = time.perf_counter()
        rng = np.random.default_rng(self.seed)
        start = 0.5 * rng.normal(size=(len(problems), self.chains, problems[0].size))
        accept = self.target_accept or max(target.target_accept for target in targets)
        whitened, stats = _sample(self, problems, start, accept)
        timing["sample"] = (time.perf_counter() - clock) / len(problems)
        return [
            _draws(problem, whitened[k], {name: values[k] for name, values in stats.items()}, rng, timing)
            for k, problem in enumerate(problems)
        ]


@dataclass(frozen=True)
class Laplace:
    """The standard normal distribution of whitened coordinates, restricted to bodies that exist: draws outside are drawn
    again. Exact for Gaussian directions, close for those that only the prior determines."""

    draws: int = 4000
    seed: int = 0

    def run(self, target: Density) -> Draws:
        clock = time.perf_counter()
        problem = target.problem()
        rng = np.random.default_rng(self.seed)
        draws = _existing(problem, lambda: rng.normal(size=(self.draws, problem.size)), self.draws, "normal")
        return Draws(draws, None, {}, {"sample": time.perf_counter() - clock})


@dataclass(frozen=True)
class SVI:
    """Stochastic variational inference: a normal distribution with a low-rank-plus-diagonal covariance in whitened
    coordinates, fitted by Adam (optax) to the continued density, then restricted to it as NUTS' draws are."""

    steps: int = 1500
    rate: float = 0.01
    draws: int = 4000
    seed: int = 0

    def run(self, target: Density) -> Draws:
        clock = time.perf_counter()
        problem = target.problem()
        import jax
        import jax.numpy as jnp
        import optax

        potential = problem.layout.potential(problem.arrays)
        size = problem.size
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
        mean, std = np.asarray(guide["mean"]), np.exp(np.asarray(guide["log_std"]))
        draws = _existing(problem, lambda: mean + std * rng.normal(size=(self.draws, size)), self.draws, "variational")
        return Draws(draws, None, {"loss": np.asarray(losses)}, {"sample": time.perf_counter() - clock})


def _existing(problem, draw, count, name):
    """(1, count, P) parameters of whitened draws, those without a body drawn again."""
    found = np.zeros((0, problem.size))
    for _ in range(200):
        fresh = draw()
        found = np.concatenate([found, fresh[problem.exists(fresh)]])
        if len(found) >= count:
            return problem.parameters(found[None, :count])
    raise DataError(f"the {name} approximation leaves physical consistency too often: use NUTS")


def _sample(settings, problems: list[Problem], start, accept):
    """Whitened draws (K, chains, S, D) and statistics (K, chains, S) of K problems of one layout."""
    import jax

    layout = problems[0].layout
    if any(problem.layout != layout for problem in problems):
        raise DataError("posteriors that are sampled together must have the same model and kind of likelihood")
    stacked = {name: np.stack([problem.arrays[name] for problem in problems]) for name in problems[0].arrays}
    keys = jax.vmap(lambda key: jax.random.split(key, settings.chains))(
        np.stack([np.asarray(jax.random.PRNGKey(seed)) for seed in range(settings.seed, settings.seed + len(problems))])
    )
    run = _compiled(layout, settings.warmup, settings.draws, accept, settings.max_tree_depth)
    whitened, stats = run(stacked, keys, start)
    return np.asarray(whitened), {name: np.asarray(values) for name, values in stats.items()}


@cache
def _compiled(layout, warmup, draws, target_accept, depth):
    """Program for all chains of all problems of one layout, compiled once per shape."""
    import jax
    from numpyro.infer.hmc import hmc

    init, step = hmc(potential_fn_gen=layout.potential, algo="NUTS")

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


def _draws(problem, whitened, stats, rng, timing):
    keep, parameters = problem.accept(whitened, rng), problem.parameters(whitened)
    divergences = int(stats["diverging"].sum())
    if not keep.all():
        least = int(keep.sum(axis=1).min())
        if least < 8:
            raise DataError("almost no draw is physically consistent: raise the prior's degrees of freedom")
        rows = [np.flatnonzero(k)[:least] for k in keep]
        parameters = np.stack([values[r] for values, r in zip(parameters, rows)])
        stats = {name: np.stack([v[r] for v, r in zip(values, rows)]) for name, values in stats.items()}
    steps, rejected = float(stats["num_steps"].mean()), float(1.0 - keep.mean())
    diagnostics = diagnose(parameters, problem.names, divergences, stats["energy"], steps, rejected)
    return Draws(parameters, diagnostics, stats, timing)
