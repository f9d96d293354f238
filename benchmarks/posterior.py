"""Effective draws per second: compressed likelihood beside a plain numpyro model that touches every sample.

    python benchmarks/posterior.py [--samples 4000] [--times 10]

Simulated UR10e log, 84 parameters, white noise: both sample the same posterior over standard parameters. The plain model is
what one writes first: log-Cholesky coordinates of each link, torques of all samples from the regressor. Then the compressed
one again on `--times` as many samples. Compilation is timed apart.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import bayesid  # noqa: F401
from bayesid.models import Model
from bayesid.posterior import NUTS, Target, Wishart, white
from bayesid.posterior.diagnostics import ess
from bayesid.regression import Observations
from bayesid.robots import load_robot
from bayesid.signals import Samples


def simulate(model, samples, seed=0):
    rng = np.random.default_rng(seed)
    time_ = np.arange(samples) / 100.0
    q, qd, qdd = np.zeros((3, samples, model.robot.dof))
    for _ in range(5):
        w = 2 * np.pi * rng.uniform(0.1, 0.6, model.robot.dof)
        a, phase = rng.uniform(0.2, 0.6, model.robot.dof), rng.uniform(0, 2 * np.pi, model.robot.dof)
        q += a * np.sin(w * time_[:, None] + phase)
        qd += a * w * np.cos(w * time_[:, None] + phase)
        qdd -= a * w**2 * np.sin(w * time_[:, None] + phase)
    truth = Wishart(40.0).of(model).sample(1, 1)[0]
    return Samples(time_, q, qd, qdd, model.torque(truth, q, qd, qdd) + rng.normal(size=q.shape), "torque")


def compressed(model, run, draws):
    clock = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        likelihood = white(Observations(model, (run,)))
    compress = time.perf_counter() - clock
    target = Target(Wishart().of(model), likelihood)
    method = NUTS(chains=4, warmup=200, draws=draws)
    first = method.run(target)
    clock, cpu = time.perf_counter(), time.process_time()
    again = method.run(target)
    seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
    return target, again, {"compress": compress, "cold": first.timing_s["sample"], "warm": seconds, "warm_cpu": cpu}


def gradient_seconds(target, rounds=300):
    """Seconds of one gradient of the compressed posterior, the fastest of many."""
    import jax
    import jax.numpy as jnp

    problem = target.problem()
    slope = jax.jit(jax.value_and_grad(problem.layout.potential(problem.arrays)))
    z = jnp.zeros(problem.size)
    best = np.inf
    for _ in range(rounds):
        clock = time.perf_counter()
        jax.block_until_ready(slope(z))
        best = min(best, time.perf_counter() - clock)
    return best


def plain(model, run, draws, warmup=100):
    """Log-Cholesky normal coordinates, every sample in every gradient."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC
    from numpyro.infer import NUTS as Kernel

    from bayesid.inertia import from_log_cholesky, log_cholesky

    n = model.robot.dof
    rows = jnp.asarray(model.regressor(run.q, run.qd, run.qdd))
    center = log_cholesky(jnp.asarray(model.robot.inertials))

    def density():
        links = from_log_cholesky(center + 0.3 * numpyro.sample("links", dist.Normal().expand((n, 10)).to_event(2)))
        positive = numpyro.sample("positive", dist.Gamma(3.0, 3.0).expand((3, n)).to_event(2)) * 5.0
        offset = numpyro.sample("offset", dist.Normal(0.0, 5.0).expand((n,)).to_event(1))
        noise = numpyro.sample("noise", dist.HalfNormal(5.0).expand((n,)).to_event(1))
        friction = jnp.stack([positive[1], positive[2], offset], axis=1)
        parameters = jnp.concatenate([links.ravel(), positive[0], friction.ravel()])
        numpyro.deterministic("parameters", parameters)
        numpyro.sample("torque", dist.Normal(rows @ parameters, noise).to_event(2), obs=jnp.asarray(run.effort))

    sampler = MCMC(Kernel(density, max_tree_depth=7), num_warmup=warmup, num_samples=draws, progress_bar=False)
    clock = time.perf_counter()
    sampler.run(jax.random.PRNGKey(0))
    values = np.asarray(sampler.get_samples(group_by_chain=True)["parameters"])
    return values, time.perf_counter() - clock


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--plain-draws", type=int, default=100, help="0: leave the plain model out")
    args = parser.parse_args()
    model = Model(load_robot("ur10e"))
    run = simulate(model, args.samples)
    target, small, t = compressed(model, run, args.draws)
    d = small.diagnostics
    print(
        f"compressed, {args.samples} samples: {d.divergences} divergences, R-hat {d.max_rhat:.3f}, min ESS "
        f"{d.min_ess_bulk:.0f}; compress {t['compress']:.2f} s, cold {t['cold']:.1f} s, again {t['warm']:.1f} s "
        f"({t['warm_cpu']:.1f} s of processor): {d.min_ess_bulk / t['warm']:.1f} effective draws per second"
    )
    if args.times > 1:
        more, _, u = compressed(model, simulate(model, args.samples * args.times), args.draws)
        one, many = gradient_seconds(target), gradient_seconds(more)
        print(
            f"compressed, {args.samples * args.times} samples: compress {u['compress']:.2f} s, again {u['warm']:.1f} s "
            f"({u['warm_cpu']:.1f} s of processor); a gradient takes {1e3 * many:.3f} ms, {1e3 * one:.3f} ms with "
            f"{args.samples} samples: {100 * (many / one - 1):+.1f} %"
        )
    if args.plain_draws:
        values, seconds = plain(model, run, args.plain_draws)
        least = float(ess(values[:, : values.shape[1]]).min())
        print(
            f"plain numpyro, {args.samples} samples, one chain of {args.plain_draws} draws: {seconds:.1f} s with compilation, "
            f"min ESS {least:.0f}: {least / seconds:.3f} effective draws per second"
        )


if __name__ == "__main__":
    main()
