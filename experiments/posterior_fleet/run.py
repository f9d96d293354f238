"""Eight robots of one type: is each one known better when all are estimated together?

Simulated two-link arms whose friction and inertials differ by 8 % about a common truth; every robot leaves one short log with
AR(1) 0.95 noise. Judged on a long motion without noise, against each robot's own true torque.

    python experiments/posterior_fleet/run.py [--robots 8] [--repeats 10]
"""

import argparse
import datetime
import json
import sys
from pathlib import Path

import numpy as np

from bayesid.models import Model
from bayesid.posterior import Fleet, Wishart, autoregressive
from bayesid.regression import Observations
from bayesid.robots import load_robot
from bayesid.signals import Samples

RATE, CORRELATION, NOISE, SPREAD = 50.0, 0.95, 2.0, 0.08


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
    from scipy.signal import lfilter

    noise = rng.normal(size=shape)
    noise[1:] *= np.sqrt(1 - CORRELATION**2)
    return lfilter([1.0], [1.0, -CORRELATION], noise, axis=0)


def one(model, robots, seed, samples=1000):
    """Errors (own, pooled, unpooled posterior) and coverage of 90 % intervals for one fleet."""
    rng = np.random.default_rng([seed, 9])
    common = Wishart(30.0).of(model).sample(rng, 1)[0]
    fleet = common * (1.0 + SPREAD * rng.normal(size=(robots, model.size)))
    likelihoods, separate = [], []
    for r, truth in enumerate(fleet):
        time, q, qd, qdd = motion(model.robot.dof, samples, [seed, r])
        torque = model.torque(truth, q, qd, qdd) + NOISE * coloured(rng, q.shape)
        observations = Observations(model, (Samples(time, q, qd, qdd, torque, "torque"),))
        likelihoods.append(autoregressive(observations, 1))
        separate.append(likelihoods[-1].beta)
    found = Fleet(chains=2, warmup=200, draws=500, seed=seed).run(model, likelihoods)
    _, q, qd, qdd = motion(model.robot.dof, 1500, [seed, 99])
    columns = model.regressor(q, qd, qdd)[:, :, model.base.independent]
    truths = model.base.project(fleet)
    rms = lambda beta, true: float(np.sqrt(np.mean((columns @ (beta - true)) ** 2)))  # noqa: E731
    members = [found.member(r) for r in range(robots)]
    inside = [(m.interval(0.9)[:, 0] <= t) & (t <= m.interval(0.9)[:, 1]) for m, t in zip(members, truths, strict=True)]
    return {
        "pooled": float(np.mean([rms(m.mean, t) for m, t in zip(members, truths, strict=True)])),
        "separate": float(np.mean([rms(b, t) for b, t in zip(separate, truths, strict=True)])),
        "coverage90": float(np.mean(inside)),
        "max_rhat": found.diagnostics.max_rhat,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args()
    model = Model(load_robot("two_link"))
    results = [one(model, args.robots, seed) for seed in range(args.repeats)]
    mean = {key: float(np.mean([r[key] for r in results])) for key in results[0]}
    better = sum(r["pooled"] < r["separate"] for r in results)
    date, command = datetime.date.today().isoformat(), "python experiments/posterior_fleet/run.py " + " ".join(sys.argv[1:])
    out = Path(__file__).parent
    content = {"command": command, "date": date, "mean": mean, "pooled_better": better, "fleets": results}
    (out / "results.json").write_text(json.dumps(content, indent=1) + "\n")
    text = "\n".join(
        [
            f"# Fleets of {args.robots} simulated robots",
            "",
            f"`{command.strip()}`, {date}",
            "",
            f"Torque error on a motion not used [N m]: pooled {mean['pooled']:.3f}, each by itself {mean['separate']:.3f} "
            f"(ratio {mean['separate'] / mean['pooled']:.2f}); pooled better in {better} of {args.repeats} fleets. "
            f"90 % intervals of the members' base parameters hold the truth in {100 * mean['coverage90']:.1f} %.",
        ]
    )
    (out / "results.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
