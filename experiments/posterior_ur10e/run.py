"""Do posteriors hold on a real robot? Eight unloaded UR10e logs, each fitted by itself and judged on 22 others.

For every pair of logs, 95 % intervals of the difference of two independent posteriors should hold zero in 92 to 98 % of
parameters. On a log that was not used, the 90 % band should hold 87 to 93 % of the measured samples: moving, per sample; at
standstill, where friction hardly changes while a joint stands, per stand, over many logs.

    BAYESID_DATA=... python experiments/posterior_ur10e/run.py [--friction LAW]

Load that friction takes from a fit is that of all eight logs together.
"""

import argparse
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
from bayesid.posterior import NUTS, Posterior, Target, Wishart, calibrated, coverage, soften, torque_predictor
from bayesid.regression import Observations, settle_load, wls
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
# Friction at standstill was explored on all of these; the prior's weight was chosen on excitation and jointwise logs alone.
JUDGED = {
    "excitation": (("identification_data", "ur-19_12_23_free.csv"),),
    "one joint at a time": tuple(("jointwise_motion", f"ur-20_01_22-joint_{k}.csv") for k in range(1, 6)),
    "ten points": (("validation_data", HELD_OUT),),
    "standing": tuple(("validation_data", f"ur-20_01_17-p{k}.csv") for k in range(1, 9)),
}


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


def pooled(parts, share, count):
    """Coverage of several logs together: (n,), NaN where there is nothing to cover."""
    hits = sum(np.nan_to_num(part[share]) * part[count] for part in parts)
    total = sum(part[count] for part in parts)
    return np.where(total > 0, hits / np.maximum(total, 1), np.nan)


def judge(estimates, runs, judged):
    """Coverage of each estimate on the logs of each group that it was not fitted to."""
    out = {}
    for name, estimate in estimates.items():
        out[name] = {}
        for group, logs in judged.items():
            others = [] if group != "excitation" or name == "all eight" else [run for key, run in runs.items() if key != name]
            parts = [coverage(estimate, run, 0.9) for run in (*others, *logs)]
            moving = np.array([part["moving"] for part in parts])
            enough = np.array([part["moving_samples"] >= 200 for part in parts])
            out[name][group] = {
                "logs": len(parts),
                "moving": pooled(parts, "moving", "moving_samples").round(3).tolist(),
                "by_stand": pooled(parts, "by_stand", "stands").round(3).tolist(),
                "standstill": pooled(parts, "standstill", "standstill_samples").round(3).tolist(),
                "stands": sum(part["stands"] for part in parts).tolist(),
                "pairs": moving[enough].round(3).tolist(),
            }
    return out


def judged_lines(results):
    """Tables of coverage over many logs, in percent."""
    lines = ["", "All logs that were not fitted, 90 % band. Moving, per sample, joint 1 to 6, in percent:", ""]
    share = lambda values: " ".join("-" if np.isnan(v) else f"{100 * v:.0f}" for v in values)  # noqa: E731
    moved = [group for group in JUDGED if group != "standing"]
    lines += ["| fitted to | " + " | ".join(moved) + " |", "|---" * (1 + len(moved)) + "|"]
    for name, groups in results.items():
        lines.append(f"| {name} | " + " | ".join(share(groups[group]["moving"]) for group in moved) + " |")
    pairs = np.array([pair for groups in results.values() for part in groups.values() for pair in part["pairs"]])
    inside = np.mean((pairs >= 0.87) & (pairs <= 0.93))
    lines += [
        "",
        f"Over {len(pairs)} cases (fit, other log, joint with 200 moving samples): mean {100 * pairs.mean():.1f} %, mean "
        f"distance from 90 % {100 * np.abs(pairs - 0.9).mean():.1f}, {100 * inside:.0f} % of cases within 87 to 93, "
        f"{100 * np.mean(pairs < 0.8):.0f} % below 80.",
        "",
        "At standstill, per stand, joint 1 to 6, in percent:",
        "",
        "| fitted to | " + " | ".join(JUDGED) + " |",
        "|---" * (1 + len(JUDGED)) + "|",
    ]
    for name, groups in results.items():
        lines.append(f"| {name} | " + " | ".join(share(groups[group]["by_stand"]) for group in JUDGED) + " |")
    for group in JUDGED:
        parts = [groups[group] for groups in results.values()]
        stands = np.mean([part["stands"] for part in parts], axis=0)
        parts = [{key: np.array(part[key]) for key in ("by_stand", "stands")} for part in parts]
        shares = pooled(parts, "by_stand", "stands")
        weight = sum(part["stands"] for part in parts)
        mean = np.nansum(shares * weight) / weight.sum()
        counts = " ".join(f"{v:.0f}" for v in stands)
        lines += ["", f"Stands in '{group}' ({counts} of joint 1 to 6 on average): {100 * mean:.1f} % inside."]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--friction", default="coulomb-offset", help="friction law (default coulomb-offset)")
    law = parser.parse_args().friction
    root = Path(os.environ.get("BAYESID_DATA", Path(__file__).parents[3] / "shared" / "datasets"))
    folder = root / "ur10e_innopolis" / "dataset_ur10e"
    model = Model(load_robot("ur10e"), law)
    read = lambda part, name: samples_from_log(read_log(f"{folder / part / name}", "ur10e-innopolis"))  # noqa: E731
    runs = [read("identification_data", name) for name in LOGS]
    held_out = read("validation_data", HELD_OUT)
    model, _ = settle_load(model, lambda model: wls(Observations(model, tuple(runs), GAINS)))
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
    estimates = {}
    for name, target, draw, used in zip(names, targets, found, [*((run,) for run in runs), tuple(runs)], strict=True):
        predictor = torque_predictor(target.prior, used, GAINS)
        estimate = estimates[name] = Posterior(target, draw, predictor).estimate()
        shares = coverage(estimate, held_out, 0.9)
        residual = estimate.predictor.measured(held_out) - estimate.predict(held_out).mean
        results["held_out"][name] = {
            "rms": np.sqrt((residual**2).mean(axis=0)).round(3).tolist(),
            "moving": shares["moving"].round(3).tolist(),
            "standstill": shares["standstill"].round(3).tolist(),
            "standstill_samples": shares["standstill_samples"].tolist(),
        }
    judged = {group: [read(*log) for log in logs] for group, logs in JUDGED.items()}
    results["judged"] = judge(estimates, dict(zip(names, runs)), judged)
    out, name = Path(__file__).parent, "results" if law == "coulomb-offset" else f"results_{law}"
    date, command = datetime.date.today().isoformat(), "python experiments/posterior_ur10e/run.py " + " ".join(sys.argv[1:])
    (out / f"{name}.json").write_text(json.dumps({"command": command, "date": date, **results}, indent=1) + "\n")
    lines = [f"# Posteriors of eight UR10e logs, friction law {law}", "", f"`{command.strip()}`, {date}", ""]
    lines.append("Pairs of logs whose 95 % interval of the difference holds zero, share of parameters:")
    lines += ["", *(f"- {key}: {100 * value:.1f} %" for key, value in results["agreement95"].items()), ""]
    lines.append(f"Held-out log {HELD_OUT}: samples inside of the 90 % band, joint 1 to 6, in percent")
    lines += ["", "| fitted to | moving | at standstill | RMS [N m] |", "|---|---|---|---|"]
    for fitted, part in results["held_out"].items():
        share = lambda values: " ".join(f"{100 * v:.0f}" for v in values)  # noqa: E731
        rms = " ".join(f"{v:.2f}" for v in part["rms"])
        lines.append(f"| {fitted} | {share(part['moving'])} | {share(part['standstill'])} | {rms} |")
    counts = results["held_out"]["all eight"]["standstill_samples"]
    lines += ["", f"Samples at standstill per joint: {' '.join(map(str, counts))} of {len(held_out)}."]
    lines += judged_lines(results["judged"])
    worst = found[int(np.argmin([d.diagnostics.min_ess_bulk for d in found]))].diagnostics
    lines.append(
        f"Over nine posteriors: {sum(d.diagnostics.divergences for d in found)} divergences, largest R-hat "
        f"{max(d.diagnostics.max_rhat for d in found):.3f}, smallest bulk ESS {worst.min_ess_bulk:.0f} of 1600 draws; "
        f"{seconds['cpu']:.0f} s of processor time together; every draw consistent: {results['consistent_draws']}."
    )
    (out / f"{name}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
