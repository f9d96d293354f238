"""A short log with hardly any motion: what does the prior save?

Simulated UR16e: six seconds of slow sines of small amplitude, AR(1) 0.95 noise of 1 N m. The truth is drawn from the prior
about a nominal that both know. Held-out error is that of the noise-free torque on a vivid motion.

    python experiments/posterior_poor_excitation/run.py [--repeats 10]
"""

import argparse
import datetime
import json
import sys
from pathlib import Path

import numpy as np

from bayesid.errors import DataError, SolverError
from bayesid.models import Model
from bayesid.posterior import Target, Wishart, autoregressive
from bayesid.regression import Observations, ols, wls
from bayesid.robots import load_robot
from bayesid.signals import Samples

RATE, CORRELATION = 50.0, 0.95


def motion(dof, samples, rng, amplitude, fastest):
    time = np.arange(samples) / RATE
    q, qd, qdd = np.zeros((3, samples, dof))
    for _ in range(3):
        w = 2 * np.pi * rng.uniform(0.3 * fastest, fastest, dof)
        a, phase = amplitude * rng.uniform(0.5, 1.0, dof), rng.uniform(0, 2 * np.pi, dof)
        q += a * np.sin(w * time[:, None] + phase)
        qd += a * w * np.cos(w * time[:, None] + phase)
        qdd -= a * w**2 * np.sin(w * time[:, None] + phase)
    return time, q, qd, qdd


def one(model, seed):
    from scipy.signal import lfilter

    rng = np.random.default_rng(seed)
    prior = Wishart(12.0).of(model)
    truth = prior.sample(rng, 1)[0]
    time, q, qd, qdd = motion(model.robot.dof, 300, rng, 0.15, 0.4)
    noise = lfilter([1.0], [1.0, -CORRELATION], np.sqrt(1 - CORRELATION**2) * rng.normal(size=q.shape), axis=0)
    observations = Observations(model, (Samples(time, q, qd, qdd, model.torque(truth, q, qd, qdd) + noise, "torque"),))
    _, q, qd, qdd = motion(model.robot.dof, 1000, rng, 0.5, 0.6)
    columns = model.regressor(q, qd, qdd)[:, :, model.base.independent]
    true = model.base.project(truth)
    rms = lambda beta: float(np.sqrt(np.mean((columns @ (beta - true)) ** 2)))  # noqa: E731
    center = model.base.project(Target(prior, autoregressive(observations, 1)).center())
    return {"ols": rms(ols(observations).beta), "wls": weighted(observations, rms), "posterior": rms(center)}


def weighted(observations, rms):
    """NaN where the weights of the joints do not settle."""
    try:
        return rms(wls(observations).beta)
    except SolverError:
        return float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args()
    model = Model(load_robot("ur16e_extended"))
    results, refused = [], 0
    for seed in range(args.repeats):
        try:
            results.append(one(model, seed))
        except DataError:
            refused += 1
    median = {name: float(np.nanmedian([r[name] for r in results])) for name in results[0]}
    factor = float(np.median([r["ols"] / r["posterior"] for r in results]))
    least = float(min(r["ols"] / r["posterior"] for r in results))
    unsettled = sum(np.isnan(r["wls"]) for r in results)
    date = datetime.date.today().isoformat()
    command = "python experiments/posterior_poor_excitation/run.py " + " ".join(sys.argv[1:])
    content = {"command": command, "date": date, "median_rms": median, "factor": factor, "smallest_factor": least}
    out = Path(__file__).parent
    text = json.dumps({**content, "refused_by_ols": refused, "logs": results}, indent=1).replace("NaN", "null")
    (out / "results.json").write_text(text + "\n")
    text = (
        f"# Poor excitation\n\n`{command.strip()}`, {date}\n\nHeld-out torque error, median of {len(results)} simulated UR16e "
        f"logs of six seconds: ordinary least squares {median['ols']:.1f} N m, weighted {median['wls']:.1f} N m, posterior "
        f"{median['posterior']:.2f} N m: lower by a factor of {factor:.0f} (at least {least:.1f}). Least squares refused "
        f"{refused} of {args.repeats} logs; the weights of weighted least squares did not settle in {unsettled}.\n"
    )
    (out / "results.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
