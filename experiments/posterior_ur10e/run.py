"""Do posteriors hold on a real robot? Eight unloaded UR10e logs, each fitted by itself; one log held out.

For every pair of logs, 95 % intervals of the difference of two independent posteriors should hold zero in 92 to 98 % of
parameters. On a log that was not used, the 90 % band should hold 87 to 93 % of the measured samples.

    BAYESID_DATA=... python experiments/posterior_ur10e/run.py
"""

import datetime
import itertools
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from bayesid.logs import read_log
from bayesid.models import Model
from bayesid.posterior import NUTS, Posterior, Target, TorquePredictor, Wishart, calibrated, coverage, soften
from bayesid.posterior.prediction import residual_quantiles
from bayesid.regression import Observations, wls
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log

GAINS = np.array([10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232])
LOGS = (
    "ur-20_02_10-30sec_12harm.csv@635:3510",
    "ur-20_02_12-50sec_12harm.csv@355:5090",
    "ur-20_02_05-20sec_8harm.csv@320:2310",
    "ur-20_02_19_14harm50sec.csv@195:4966",
    "ur-20_01_31-unload.csv@300:2623",
    "ur-20_02_05-20sec_12harm.csv",
    "ur-20_02_06-20sec_5harm.csv",
    "ur-20_02_10-20sec_7harm.csv",
)
HELD_OUT = "ur-20_01_17-ptp_10_points.csv@700:4200"


def target_of(model, runs):
    return soften(Target(Wishart().of(model), calibrated(wls(Observations(model, runs, GAINS)))))[0]


def agreement(draws, level=0.95, seed=0):
    """Share of parameters whose interval of the difference holds zero, over pairs: (pairs, P)."""
    rng = np.random.default_rng(seed)
    hit = []
    for one, two in itertools.combinations(draws, 2):
        pick = rng.integers(len(one), size=4000), rng.integers(len(two), size=4000)
        low, high = np.quantile(one[pick[0]] - two[pick[1]], [(1 - level) / 2, (1 + level) / 2], axis=0)
        hit.append((low <= 0) & (high >= 0))
    return np.array(hit)


def main():
    root = Path(os.environ.get("BAYESID_DATA", Path(__file__).parents[3] / "shared" / "datasets"))
    folder = root / "ur10e_innopolis" / "dataset_ur10e"
    model = Model(load_robot("ur10e"))
    read = lambda part, name: samples_from_log(read_log(f"{folder / part / name}", "ur10e-innopolis"))  # noqa: E731
    runs = [read("identification_data", name) for name in LOGS]
    held_out = read("validation_data", HELD_OUT)
    targets = [target_of(model, (run,)) for run in runs] + [target_of(model, tuple(runs))]
    clock, cpu = time.perf_counter(), time.process_time()
    found = NUTS(warmup=200, draws=400).run_many(targets)
    seconds = {"wall": time.perf_counter() - clock, "cpu": time.process_time() - cpu}
    draws = [d.parameters.reshape(-1, model.size) for d in found]
    hits = agreement(draws[:-1])
    base = agreement([model.base.project(d) for d in draws[:-1]])
    kinds = np.array(model.kinds)
    results = {
        "agreement95": {
            "standard": float(hits.mean()),
            "base": float(base.mean()),
            **{str(kind): float(hits[:, kinds == kind].mean()) for kind in sorted(set(kinds))},
        },
        "diagnostics": [d.diagnostics.to_dict() for d in found],
        "sampling_seconds_for_nine_posteriors": seconds,
        "consistent_draws": bool(min(Posterior(t, d).min_eigenvalues().min() for t, d in zip(targets, found, strict=True)) > 0),
        "held_out": {},
    }
    names = [*(name.split("@")[0] for name in LOGS), "all eight"]
    for name, target, draw, used in zip(names, targets, found, [*((run,) for run in runs), tuple(runs)], strict=True):
        raw = Observations(model, used, GAINS, filtered=False)
        beta = model.base.project(draw.parameters.mean(axis=(0, 1)))
        estimate = Posterior(target, draw, TorquePredictor(model, residual_quantiles(raw, beta), GAINS)).estimate()
        shares = coverage(estimate, held_out, 0.9)
        residual = estimate.predictor.measured(held_out) - estimate.predict(held_out).mean
        results["held_out"][name] = {
            "rms": np.sqrt((residual**2).mean(axis=0)).round(3).tolist(),
            "moving": shares["moving"].round(3).tolist(),
            "standstill": shares["standstill"].round(3).tolist(),
            "standstill_samples": shares["standstill_samples"].tolist(),
        }
    out = Path(__file__).parent
    date, command = datetime.date.today().isoformat(), "python experiments/posterior_ur10e/run.py " + " ".join(sys.argv[1:])
    (out / "results.json").write_text(json.dumps({"command": command, "date": date, **results}, indent=1) + "\n")
    lines = ["# Posteriors of eight UR10e logs", "", f"`{command.strip()}`, {date}", ""]
    lines.append("Pairs of logs whose 95 % interval of the difference holds zero, share of parameters:")
    lines += ["", *(f"- {key}: {100 * value:.1f} %" for key, value in results["agreement95"].items()), ""]
    lines.append(f"Held-out log {HELD_OUT}: samples inside of the 90 % band, joint 1 to 6, in percent")
    lines += ["", "| fitted to | moving | at standstill | RMS [N m] |", "|---|---|---|---|"]
    for name, part in results["held_out"].items():
        share = lambda values: " ".join(f"{100 * v:.0f}" for v in values)  # noqa: E731
        rms = " ".join(f"{v:.2f}" for v in part["rms"])
        lines.append(f"| {name} | {share(part['moving'])} | {share(part['standstill'])} | {rms} |")
    counts = results["held_out"]["all eight"]["standstill_samples"]
    lines += ["", f"Samples at standstill per joint: {' '.join(map(str, counts))} of {len(held_out)}."]
    worst = found[int(np.argmin([d.diagnostics.min_ess_bulk for d in found]))].diagnostics
    lines.append(
        f"Over nine posteriors: {sum(d.diagnostics.divergences for d in found)} divergences, largest R-hat "
        f"{max(d.diagnostics.max_rhat for d in found):.3f}, smallest bulk ESS {worst.min_ess_bulk:.0f} of 1600 draws; "
        f"{seconds['cpu']:.0f} s of processor time together; every draw consistent: {results['consistent_draws']}."
    )
    (out / "results.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
