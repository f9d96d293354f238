"""Simulation-based calibration: are posteriors right on average over the prior, under AR(1) noise?

Ranks: parameters are drawn from the prior, and each joint's noise from rho ~ U(0.5, 0.98), log sigma ~ U(log 0.5, log 2), flat
as the likelihood takes them; a log is simulated, and the rank of the true value among 99 nearly independent posterior draws is
recorded (Talts et al. 2018). Right posteriors give uniform ranks (chi-squared, Bonferroni's limit over standard and base
parameters). Coverage: the same with rho = 0.95 and sigma = 1 in every log, where 90 % intervals should hold the truth in 90 %.
`known noise` has the true rho and sigma, and is the control of all but the likelihoods; `calibrated` and `white` are no models
of this noise, their ranks are for information. In short logs the autoregressive likelihood stands beside one with its
coefficients fixed at their estimate.

    python experiments/posterior_sbc/run.py [--replicates 400] [--large 24]
    python experiments/posterior_sbc/run.py --replicates 0 --large 0 --short 200 --out results_short
"""

import argparse
import datetime
import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from bayesid.models import Model
from bayesid.posterior import NUTS, Likelihood, Target, Wishart, autoregressive, calibrated, white
from bayesid.regression import Observations, Whitened, compress, gls, wls
from bayesid.robots import load_robot
from bayesid.signals import Samples

RATE, RANKED = 50.0, 99
# Chains of so many logs side by side wait for the longest trajectory among them.
TOGETHER = 8
NOISES = ("ranks", "coverage")
SHORT_KINDS = ("known noise", "autoregressive", "fixed coefficients")
KINDS = ("known noise", "autoregressive", "calibrated", "white")


def motion(dof, samples, seed):
    """Sums of five sines per joint, up to 0.8 Hz."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples) / RATE
    q, qd, qdd = np.zeros((3, samples, dof))
    for _ in range(5):
        w = 2 * np.pi * rng.uniform(0.1, 0.8, dof)
        a, phase = rng.uniform(0.2, 0.6, dof) / w**0.5, rng.uniform(0, 2 * np.pi, dof)
        q += a * np.sin(w * time[:, None] + phase)
        qd += a * w * np.cos(w * time[:, None] + phase)
        qdd -= a * w**2 * np.sin(w * time[:, None] + phase)
    return time, q, qd, qdd


def noise_law(noise, dof, rng):
    """Coefficient and standard deviation [N m] of each joint's AR(1) noise."""
    if noise == "coverage":
        return np.full(dof, 0.95), np.ones(dof)
    return rng.uniform(0.5, 0.98, dof), np.exp(rng.uniform(np.log(0.5), np.log(2.0), dof))


def coloured(rng, samples, rho, sigma):
    """Stationary AR(1) noise (N, n)."""
    from scipy.signal import lfilter

    noise = rng.normal(size=(samples, len(rho)))
    noise[1:] *= np.sqrt(1 - rho**2)
    return sigma * np.stack([lfilter([1.0], [1.0, -r], column) for r, column in zip(rho, noise.T, strict=True)], axis=1)


def known(observations, rho, sigma):
    """The likelihood of the true noise."""
    information = compress(Whitened(observations, rho[:, None]))
    factors = information.factors / (sigma * np.sqrt(1 - rho**2))[:, None, None]
    beta = np.linalg.lstsq(factors[..., :-1].reshape(-1, observations.size), factors[..., -1].ravel(), rcond=None)[0]
    return Likelihood(
        factors[..., :-1],
        factors[..., -1],
        None,
        beta,
        sigma,
        information.counts,
        observations.count,
        {"method": "known noise"},
    )


def fixed(observations):
    """The likelihood of autoregressive noise with coefficients as estimated."""
    fit = gls(observations, 1)
    factors, counts = fit.information.factors, fit.information.counts
    description = {"method": "fixed coefficients"}
    return Likelihood(factors[..., :-1], factors[..., -1], counts, fit.beta, fit.noise, counts, observations.count, description)


def likelihood_of(kind, observations, rho, sigma):
    if kind == "known noise":
        return known(observations, rho, sigma)
    if kind == "autoregressive":
        return autoregressive(observations, 1)
    if kind == "fixed coefficients":
        return fixed(observations)
    if kind == "calibrated":
        return calibrated(wls(observations))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return white(observations)


def study(robot, replicates, samples, noise, kinds=KINDS, method=None, seed=0, done=print):
    """What each kind of likelihood gives: coverage of 90 % intervals, and how uniform ranks are."""
    method = method or NUTS(chains=4, warmup=150, draws=250, max_tree_depth=6, seed=seed)
    model = Model(load_robot(robot))
    prior = Wishart().of(model)
    truths = prior.sample(seed, replicates)
    time, q, qd, qdd = motion(model.robot.dof, samples, seed)
    rng = np.random.default_rng([seed, 2, NOISES.index(noise)])
    laws, logs = [], []
    for truth in truths:
        laws.append(noise_law(noise, model.robot.dof, rng))
        torque = model.torque(truth, q, qd, qdd) + coloured(rng, samples, *laws[-1])
        logs.append(Observations(model, (Samples(time, q, qd, qdd, torque, "torque"),)))
    out = {}
    for kind in kinds:
        targets = [Target(prior, likelihood_of(kind, log, *law)) for log, law in zip(logs, laws, strict=True)]
        found = [
            draws
            for at in range(0, replicates, TOGETHER)
            for draws in replace(method, seed=seed + at).run_many(targets[at : at + TOGETHER])
        ]
        out[kind] = summary(model, truths, found)
        done(out)
    return out


def summary(model, truths, found):
    from scipy.stats import chi2

    replicates, quantities = len(truths), model.size + model.base.dimension
    ranks, inside = np.empty((2, replicates, quantities))
    for k, (truth, draws) in enumerate(zip(truths, found, strict=True)):
        flat = draws.parameters.reshape(-1, model.size)
        values, true = (np.concatenate([x, model.base.project(x)], axis=-1) for x in (flat, truth))
        ranks[k] = (values[np.linspace(0, len(values) - 1, RANKED).astype(int)] < true).sum(axis=0)
        low, high = np.quantile(values, [0.05, 0.95], axis=0)
        inside[k] = (low <= true) & (true <= high)
    bins = min(10, replicates // 5)
    counts = np.array([np.histogram(r, bins=bins, range=(0, RANKED + 1))[0] for r in ranks.T])
    p_values = chi2.sf(((counts - replicates / bins) ** 2 / (replicates / bins)).sum(axis=1), bins - 1)
    limit = 0.05 / quantities
    worst = int(np.argmin(p_values))
    share = inside.mean(axis=0)
    friction = np.flatnonzero(np.array(model.kinds) == "friction")
    diagnostics = [draws.diagnostics for draws in found]
    return {
        "replicates": replicates,
        "coverage90": float(share[: model.size].mean()),
        "coverage90_base": float(share[model.size :].mean()),
        "coverage90_friction": float(share[friction].mean()),
        "coverage90_per_quantity": [float(share.min()), float(share.max())],
        "smallest_p_of_uniform_ranks": float(p_values[worst]),
        "worst": (*model.names, *(f"base {name}" for name in model.base.names))[worst],
        "bonferroni_limit": limit,
        "ranks_uniform": bool(p_values[worst] > limit),
        "share_of_p_below_5_percent": float(np.mean(p_values < 0.05)),
        "divergences": sum(d.divergences for d in diagnostics),
        "least_effective_draws": float(min(min(d.min_ess_bulk, d.min_ess_tail) for d in diagnostics)),
        "largest_rhat": float(max(d.max_rhat for d in diagnostics)),
        "rejected": float(np.mean([d.rejected for d in diagnostics])),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--large", type=int, default=24, help="replicates of the UR16e model (0: none)")
    parser.add_argument("--short", type=int, default=0, help="replicates of logs of 300 samples")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="results", help="name of the files written")
    args = parser.parse_args()
    results = {}
    studies = [("two_link", noise, args.replicates, 1500, KINDS) for noise in NOISES]
    studies += [("ur16e_extended", noise, args.large, 1000, ("autoregressive", "calibrated")) for noise in NOISES]
    studies += [("two_link", "ranks", args.short, 300, SHORT_KINDS)]
    for robot, noise, replicates, samples, kinds in studies:
        if not replicates:
            continue

        def keep(part, key=f"{robot}, {noise}"):
            write(args.out, {**results, key: part})

        results[f"{robot}, {noise}"] = study(robot, replicates, samples, noise, kinds, seed=args.seed, done=keep)


def write(name, results):
    folder = Path(__file__).parent
    command = "python experiments/posterior_sbc/run.py " + " ".join(sys.argv[1:])
    date = datetime.date.today().isoformat()
    (folder / f"{name}.json").write_text(json.dumps({"command": command, "date": date, **results}, indent=1) + "\n")
    lines = ["# Simulation-based calibration under AR(1) noise", "", f"`{command.strip()}`, {date}", ""]
    lines += ["| study | likelihood | replicates | 90 % intervals hold | base | friction | ranks uniform (smallest p, limit) |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for title, kinds in results.items():
        for kind, r in kinds.items():
            p = f"{'yes' if r['ranks_uniform'] else 'no'} ({r['smallest_p_of_uniform_ranks']:.2g}, {r['bonferroni_limit']:.2g})"
            shares = " | ".join(f"{100 * r[k]:.1f} %" for k in ("coverage90", "coverage90_base", "coverage90_friction"))
            lines.append(f"| {title} | {kind} | {r['replicates']} | {shares} | {p} |")
    text = "\n".join(lines) + "\n"
    (folder / f"{name}.md").write_text(text)
    print(text, flush=True)


if __name__ == "__main__":
    main()
