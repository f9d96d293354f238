"""Rebuilds the reference's simulation study: three objects, three ranges, three noise levels, many noise draws.

    python experiments/payload_momentum/run.py --reference payload_momentum.toml [--draws 200] [--out
    experiments/payload_momentum]

MuJoCo gives the wrench, bayesid the motion and the estimates. Writes results.json and results.md.
"""

import argparse
import datetime
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from physics import cases, reference, simulate

from bayesid.payload import (
    SensorNoise,
    WrenchRecord,
    about_com,
    joint_batch,
    joint_estimate,
    momentum_batch,
    momentum_batch_white,
    momentum_estimate,
    to_com,
    tool_motion,
)
from bayesid.payload.parameters import com_jacobian

PARAMETERS = ("mass", "rx", "ry", "rz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
LEVELS = ("low", "moderate", "high")
SMALLEST = 0.05  # a reported error of 0.0 % is printed with one decimal


def one_case(tables, motion, ideal, truth, level, draws, seed):
    """Median absolute errors [%] and coverage of both estimators over noise draws of one case."""
    entry = tables["noise"][level]
    noise = SensorNoise(entry["angular_velocity"], entry["force"], entry["torque"])
    rng = np.random.default_rng(seed)
    scales = (noise.force, noise.moment, noise.angular_velocity)
    data = [x + s * rng.standard_normal((draws, *x.shape)) for x, s in zip(ideal, scales, strict=True)]
    out = {}
    mean, covariance = momentum_batch(motion, *data, noise)
    out["momentum"] = _judge(mean, np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)), truth)
    out["momentum_white"] = _judge(*momentum_batch_white(motion, *data), truth)
    standard, covariance = joint_batch(motion, *data, noise)
    slopes = np.stack([np.asarray(com_jacobian(x)) for x in standard])
    std = np.sqrt(np.einsum("dij,djk,dik->di", slopes, covariance, slopes))
    out["joint"] = _judge(np.asarray(to_com(standard)), std, truth)
    record = WrenchRecord(motion, *(x[0] for x in data))
    for name, estimator in (("joint", joint_estimate), ("momentum", momentum_estimate)):
        estimator(record, noise)
        start = time.perf_counter()
        about_com(estimator(record, noise))
        out[name]["seconds"] = time.perf_counter() - start
    return out


def _judge(mean, std, truth):
    error = mean - truth
    return {
        "error": (100 * np.median(np.abs(error / truth), axis=0)).tolist(),
        "covered": np.mean(np.abs(error) < 1.959964 * std, axis=0).tolist(),
    }


def study(tables, draws, seed, objects=("object1", "object2", "object3"), ranges=(0.1, 0.05, 0.025), tell=print):
    """Results by object, range and noise level."""
    results = []
    for robot, name, parameters, reach in cases(tables):
        if name not in objects or reach not in ranges:
            continue
        motion, *ideal = simulate(robot, parameters, reach)
        mass, com, inertia = parameters
        truth = np.concatenate([[mass], com, inertia[np.triu_indices(3)]])
        for k, level in enumerate(LEVELS):
            case = one_case(tables, motion, ideal, truth, level, draws, [seed, len(results)])
            column = 3 * (0.1, 0.05, 0.025).index(reach) + k
            case["reported"] = {"error": [tables["reported"][name][p][column] for p in PARAMETERS]}
            results.append({"object": name, "range": reach, "noise": level, **case})
            tell(f"{name} range {reach} noise {level}: " + figures([results[-1]])["line"])
    return results


def figures(results):
    """The study's claims in numbers."""
    out = {}
    for name in ("momentum", "joint"):
        at_or_below = [e <= max(r, SMALLEST) for c in results for e, r in zip(c[name]["error"], c["reported"]["error"])]
        out[f"{name}_at_or_below"] = float(np.mean(at_or_below))
        out[f"{name}_seconds"] = float(np.mean([c[name]["seconds"] for c in results]))
    out["cells"] = len(at_or_below)
    for name in ("momentum", "joint", "momentum_white"):
        covered = np.mean([c[name]["covered"] for c in results], axis=0)
        out[f"{name}_coverage"] = dict(zip(PARAMETERS, covered.round(4).tolist()))
    high = [c for c in results if c["noise"] == "high"]
    if high:
        ratio = [np.median([c["joint"]["error"][4:] for c in high]), np.median([c["momentum"]["error"][4:] for c in high])]
        out["inertia_error_high_noise"] = {
            "joint": float(ratio[0]),
            "momentum": float(ratio[1]),
            "ratio": float(ratio[0] / ratio[1]),
        }
    rz = [c["joint"]["error"][3] for c in results if c["object"] == "object1" and c["range"] == 0.1 and c["noise"] != "high"]
    out["rz_object1_range_0.1"] = rz
    out["line"] = (
        f"momentum {out['momentum_at_or_below']:.2f}, joint {out['joint_at_or_below']:.2f} at or below the reported errors"
    )
    return out


def motion_table(robot, ranges=(0.1, 0.05, 0.025)):
    """Rows (range, speed cm/s, acceleration cm/s^2, speed mrad/s, acceleration mrad/s^2)."""
    rows = []
    for reach in ranges:
        v, a, w, wd = tool_motion(robot, reach, reach, frame="tool0").accelerations()
        rows.append((reach, 100 * v, 100 * a, 1000 * w, 1000 * wd))
    return rows


def markdown(tables, results, summary, rows, command, date):
    """The tables as text."""
    lines = ["# Momentum-based payload estimation: the reference's study, rebuilt", "", f"`{command}`, {date}.", ""]
    lines += ["Median absolute error in percent over the noise draws, against the reported error of one draw.", ""]
    for name in dict.fromkeys(c["object"] for c in results):
        mine = [c for c in results if c["object"] == name]
        heads = [f"{c['range']:g} {c['noise']}" for c in mine]
        lines += [f"## {name}", "", "| | | " + " | ".join(heads) + " |", "|---|---|" + "---|" * len(heads)]
        for i, parameter in enumerate(PARAMETERS):
            for source in ("reported", "momentum", "joint"):
                label = parameter if source == "reported" else ""
                lines.append(f"| {label} | {source} | " + " | ".join(f"{c[source]['error'][i]:.2f}" for c in mine) + " |")
        lines.append("")
    lines += ["## Coverage of nominal 95 % intervals, all cases and draws", "", "| | " + " | ".join(PARAMETERS) + " |"]
    lines.append("|---|" + "---|" * len(PARAMETERS))
    for name in ("momentum", "joint", "momentum_white"):
        lines.append(f"| {name} | " + " | ".join(f"{summary[name + '_coverage'][p]:.3f}" for p in PARAMETERS) + " |")
    lines += ["", "`momentum_white` treats the integrated noise as white.", "", "## Motion", ""]
    lines += ["| range | cm/s | cm/s^2 | mrad/s | mrad/s^2 |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(f"{x:.4g}" for x in row) + " |" for row in rows]
    told = tables["reported"]["motion"]
    lines.append(
        f"| reported, 0.1 | {told['linear_speed_cm_s']} | {told['linear_acc_cm_s2']} | {told['angular_speed_mrad_s']} | "
        f"{told['angular_acc_mrad_s2']} |"
    )
    inertia = summary.get("inertia_error_high_noise")
    lines += ["", "## Figures", "", f"- cells: {summary['cells']}"]
    for name in ("momentum", "joint"):
        lines.append(
            f"- {name}: at or below the reported error in {100 * summary[name + '_at_or_below']:.1f} % of the cells, "
            f"{summary[name + '_seconds']:.3f} s per estimate (mean, after compilation)"
        )
    if inertia:
        lines.append(
            f"- median inertia error at high noise: joint {inertia['joint']:.2f} %, momentum {inertia['momentum']:.2f} %"
        )
    lines.append(
        f"- rz of object 1 at range 0.1, low and moderate noise, joint: "
        f"{', '.join(f'{x:.3f} %' for x in summary['rz_object1_range_0.1'])}"
    )
    return "\n".join(lines) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", default=os.environ.get("BAYESID_REFERENCE", "payload_momentum.toml"))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2025)
    parser.add_argument("--out", default=str(Path(__file__).parent))
    args = parser.parse_args(argv)
    from bayesid.robots import load_robot

    tables = reference(args.reference)
    results = study(tables, args.draws, args.seed, tell=lambda line: print(line, file=sys.stderr, flush=True))
    summary = figures(results)
    rows = motion_table(load_robot("ur16e"))
    date = datetime.date.today().isoformat()
    command = f"python experiments/payload_momentum/run.py --draws {args.draws} --seed {args.seed}"
    out = Path(args.out)
    (out / "results.json").write_text(
        json.dumps({"command": command, "date": date, "summary": summary, "motion": rows, "cases": results}, indent=1),
        encoding="utf-8",
    )
    text = markdown(tables, results, summary, rows, command, date)
    (out / "results.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
