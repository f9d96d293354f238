"""Simulation-based calibration: are posteriors right on average over the prior, under AR(1) noise of coefficient 0.95?

Parameters are drawn from the prior, a log is simulated with them, and the rank of the true value among posterior draws is
recorded (Talts et al. 2018). Right posteriors give uniform ranks, and 90 % intervals that hold the truth in 90 %.

    python experiments/posterior_sbc/run.py [--replicates 200] [--large 24]
"""

import argparse
import datetime
import json
import sys
import warnings
from pathlib import Path

import numpy as np

from bayesid.models import Model
from bayesid.posterior import NUTS, Target, Wishart, autoregressive, calibrated, white
from bayesid.regression import Observations, wls
from bayesid.robots import load_robot
from bayesid.signals import Samples

RATE, CORRELATION, BINS = 50.0, 0.95, 10
KINDS = ("autoregressive", "calibrated", "white")


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


def coloured(rng, shape):
    """Stationary AR(1) noise of unit variance (N, n)."""
    from scipy.signal import lfilter

    white_noise = rng.normal(size=shape)
    white_noise[1:] *= np.sqrt(1 - CORRELATION**2)
    return lfilter([1.0], [1.0, -CORRELATION], white_noise, axis=0)


def study(robot, replicates, samples, noise, kinds=KINDS, dof=12.0, draws=300, chains=1, seed=0, done=print):
    """Ranks (kind, replicates, P) in 0..draws and coverage of 90 % intervals, standard and base parameters."""
    model = Model(load_robot(robot))
    prior = Wishart(dof).of(model)
    truths = prior.sample(seed, replicates)
    time, q, qd, qdd = motion(model.robot.dof, samples, seed)
    rng = np.random.default_rng([seed, 2])
    targets = {kind: [] for kind in kinds}
    for truth in truths:
        torque = model.torque(truth, q, qd, qdd) + noise * coloured(rng, q.shape)
        observations = Observations(model, (Samples(time, q, qd, qdd, torque, "torque"),))
        for kind in kinds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                likelihood = {
                    "autoregressive": lambda o=observations: autoregressive(o, 1),
                    "calibrated": lambda o=observations: calibrated(wls(o)),
                    "white": lambda o=observations: white(o),
                }[kind]()
            targets[kind].append(Target(prior, likelihood))
    out = {}
    for kind in kinds:
        found = NUTS(chains=chains, warmup=120, draws=draws, max_tree_depth=6, seed=seed).run_many(targets[kind])
        ranks, inside, base_inside, divergences = [], [], [], 0
        for truth, draw in zip(truths, found):
            flat = draw.parameters.reshape(-1, model.size)
            thinned = flat[:: max(1, len(flat) // 99)][:99]
            ranks.append((thinned < truth).sum(axis=0))
            for values, true, into in (
                (flat, truth, inside),
                (model.base.project(flat), model.base.project(truth), base_inside),
            ):
                low, high = np.quantile(values, [0.05, 0.95], axis=0)
                into.append((low <= true) & (true <= high))
            divergences += draw.diagnostics.divergences
        ranks = np.array(ranks)
        counts = np.array([np.histogram(r, bins=BINS, range=(0, 100))[0] for r in ranks.T])
        from scipy.stats import chi2

        statistic = ((counts - replicates / BINS) ** 2 / (replicates / BINS)).sum(axis=1)
        p_values = chi2.sf(statistic, BINS - 1)
        friction = np.array([k == "friction" for k in model.kinds])
        out[kind] = {
            "replicates": replicates,
            "coverage90": float(np.mean(inside)),
            "coverage90_base": float(np.mean(base_inside)),
            "coverage90_friction": float(np.mean(np.array(inside)[:, friction])),
            "coverage90_per_parameter": [float(np.mean(inside, axis=0).min()), float(np.mean(inside, axis=0).max())],
            "smallest_p_of_uniform_ranks": float(p_values.min()),
            "bonferroni_limit": 0.05 / model.size,
            "ranks_uniform": bool(p_values.min() > 0.05 / model.size),
            "divergences": divergences,
        }
        done(out)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--large", type=int, default=24, help="replicates of the UR16e model (0: none)")
    args = parser.parse_args()
    results = {}

    def keep(robot):
        return lambda part: write({**results, robot: part})

    results["two_link"] = study("two_link", args.replicates, 1500, 1.0, done=keep("two_link"))
    if args.large:
        results["ur16e_extended"] = study("ur16e_extended", args.large, 1000, 1.0, kinds=KINDS[:2], done=keep("ur16e_extended"))


def write(results):
    folder = Path(__file__).parent
    command = "python experiments/posterior_sbc/run.py " + " ".join(sys.argv[1:])
    date = datetime.date.today().isoformat()
    (folder / "results.json").write_text(json.dumps({"command": command, "date": date, **results}, indent=1) + "\n")
    lines = ["# Simulation-based calibration under AR(1) 0.95 noise", "", f"`{command.strip()}`, {date}", ""]
    lines += ["| model | likelihood | replicates | 90 % intervals hold | base | friction | ranks uniform (smallest p, limit) |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for robot, kinds in results.items():
        for kind, r in kinds.items():
            p = f"{'yes' if r['ranks_uniform'] else 'no'} ({r['smallest_p_of_uniform_ranks']:.2g}, {r['bonferroni_limit']:.2g})"
            shares = " | ".join(f"{100 * r[k]:.1f} %" for k in ("coverage90", "coverage90_base", "coverage90_friction"))
            lines.append(f"| {robot} | {kind} | {r['replicates']} | {shares} | {p} |")
    text = "\n".join(lines) + "\n"
    (folder / "results.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
