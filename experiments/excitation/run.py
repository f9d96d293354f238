"""Excitation design against published motions: python experiments/excitation/run.py STUDY [--data DIR].

Studies: published (same limits, condition number and log det side by side), seeds (feasibility of constrained designs over
seeds and robots), precision (predicted against achieved standard deviations in simulation, and against random motions),
recorded (predicted standard deviations of the recorded runs against those of their residuals). Each writes
results/STUDY.json and .md.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import bayesid
from bayesid.errors import DesignError
from bayesid.excitation import (
    AOptimal,
    ConditionNumber,
    DOptimal,
    FourierQuintic,
    Limits,
    Problem,
    SelfCollision,
    TorqueLimit,
    TorqueObservation,
    Wall,
    certify,
    design,
    information,
    random_motion,
)
from bayesid.excitation.constraints import usable
from bayesid.models import Model
from bayesid.robots import load_robot

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def published_motion(path):
    """Family, coefficients (2 N, n), start pose and limits of a published .mat file."""
    from scipy.io import loadmat

    content = loadmat(path, squeeze_me=True)
    par = {name: content["traj_par"][name].item() for name in content["traj_par"].dtype.names}
    robot = load_robot("ur10e")
    limits = Limits.of(
        robot,
        lower=par["q_min"],
        upper=par["q_max"],
        velocity=par["qd_max"],
        acceleration=np.asarray(par["q2d_max"], dtype=float),
        torque=np.inf,
    )
    coefficients = np.concatenate([content["a"].T, content["b"].T])
    return FourierQuintic(float(par["T"]), int(par["N"])), coefficients, par["q0"], limits


def problem_of(objective, family, limits, start, friction="none", **options):
    robot = load_robot("ur10e")
    return Problem(TorqueObservation(Model(robot, friction)), family, limits, objective, start, start, **options)


def numbers(problem, coefficients):
    matrix = information(problem, coefficients)
    certificate = certify(problem, coefficients)
    columns = np.sqrt(np.diag(matrix) / len(problem.time))
    least, most = int(np.argmin(columns)), int(np.argmax(columns))
    names = problem.observation.names
    over = [f"{c.what} by {-c.margin:.3g} {c.unit}" for c in certificate.violations]
    return {
        "condition_number": ConditionNumber().value(matrix),
        "log_det_per_sample": DOptimal().value(matrix / len(problem.time)),
        "least_column_rms": f"{columns[least]:.3g} {names[least]}",
        "largest_column_rms": f"{columns[most]:.3g} {names[most]}",
        "feasible": certificate.feasible,
        "certificate_instants": certificate.instants,
        "limits_exceeded": over,
    }


def study_published(args):
    """UR10e, N = 12, T = 30 s, 0.2 s sampling, 40 columns (rigid bodies and rotors)."""
    folder = args.data / "ur10e_innopolis" / "trajectory_optmzn" / "optimal_trjctrs"
    family, coefficients, start, limits = published_motion(folder / "ptrnSrch_N12T30QR.mat")
    rows = []
    for name, objective in (("condition", ConditionNumber()), ("d-optimal", DOptimal())):
        problem = problem_of(objective, family, limits, start, sampling=0.2)
        if not rows:
            rows.append({"motion": "published (pattern search)", **numbers(problem, coefficients)})
        wall, cpu = time.monotonic(), time.process_time()
        found = design(problem, seed=args.seed, seconds=args.seconds, starts=args.starts, steps=args.steps)
        rows.append(
            {
                "motion": name,
                **numbers(problem, found.coefficients),
                "steps": found.design["steps"],
                "ended_by": found.design["stopped_by"],
                "wall_s": round(time.monotonic() - wall, 1),
                "cpu_s": round(time.process_time() - cpu, 1),
                "load": round(os.getloadavg()[0], 1),
                "weakest_direction": found.design["values"]["weakest_direction"],
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    base, best, volume = rows
    goals = {
        "condition number at most a third of the published": best["condition_number"] <= base["condition_number"] / 3,
        "log det at least 55 above the published": volume["log_det_per_sample"] >= base["log_det_per_sample"] + 55,
        "all limits held on the dense grid": best["feasible"] and volume["feasible"],
    }
    return {"rows": rows, "goals": goals}


ROBOTS = {
    "ur10e": ([0.0, -1.57, 0.6, -1.57, 0.3, 0.0], {"acceleration": 2.5}),
    "ur16e": ([0.0, -1.57, 0.6, -1.57, 0.3, 0.0], {"acceleration": 2.5}),
    "panda": ([0.0, -0.4, 0.0, -1.9, 0.0, 1.9, 0.8], {"velocity": 1.5, "acceleration": 5.0}),
    "two_link": ([1.8, 0.5], {"lower": -2.6, "upper": 2.6, "velocity": 3.0, "acceleration": 10.0, "torque": 40.0}),
}


def constrained_problem(name, period=10.0, harmonics=4, floor=0.05, sampling=0.2):
    """A design with torque, self-collision and floor constraints; the two-link arm stands above a floor of its own plane."""
    start, changes = ROBOTS[name]
    robot = load_robot(name)
    limits = Limits.of(robot, **changes)
    model = Model(robot, "coulomb")
    wall = Wall((0.0, 1.0, 0.0), -0.6, 0.0) if name == "two_link" else Wall((0.0, 0.0, 1.0), floor, 0.01)
    constraints = (TorqueLimit.nominal(model, limits.torque), SelfCollision(0.02), wall)
    return Problem(
        TorqueObservation(model),
        FourierQuintic(period, harmonics),
        limits,
        DOptimal(),
        np.array(start),
        None,
        constraints=tuple(c for c in constraints if usable(c, robot)),
        sampling=sampling,
    )


def study_seeds(args):
    """Constrained designs over seeds and robots: each is feasible on the dense grid, or reported as failed."""
    with ProcessPoolExecutor(args.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        rows = list(pool.map(seeds_of, ROBOTS, *([x] * len(ROBOTS) for x in (args.seeds, args.steps, args.seconds_per_robot))))
    total = {key: sum(row[key] for row in rows) for key in ("seeds", "feasible", "reported_failures", "silently_infeasible")}
    return {"summary": total, "rows": rows, "goals": {"none silently infeasible": total["silently_infeasible"] == 0}}


def seeds_of(name, seeds, steps, seconds):
    """One robot's tally; also checked on a grid three times denser than the certificate's, itself ten times denser."""
    problem = constrained_problem(name)
    tally = {"robot": name, "seeds": 0, "feasible": 0, "reported_failures": 0, "silently_infeasible": 0, "failures": []}
    rescales = []
    began = time.monotonic()
    for seed in range(seeds):
        if time.monotonic() - began > seconds:
            break
        tally["seeds"] += 1
        try:
            found = design(problem, seed=seed, starts=1, steps=steps, seconds=120.0)
        except DesignError as error:
            tally["reported_failures"] += 1
            tally["failures"].append(f"seed {seed}: {error}")
            continue
        finer = np.linspace(0.0, problem.family.period, 3 * len(problem.certificate_grid))
        held = found.certificate.feasible and all(
            check.margin > -1e-6 for check in certify(problem, found.coefficients, finer).checks
        )
        tally["feasible" if held else "silently_infeasible"] += 1
        rescales.append(found.design["rescaled"])
    tally["median_rescale"] = float(np.median(rescales)) if rescales else None
    tally["seconds"] = round(time.monotonic() - began, 1)
    return tally


def study_precision(args):
    """Parameters estimated from a designed UR10e motion with white torque noise: achieved against predicted deviations.

    The design is A-optimal relative to the median deviations of ten random motions of equal length and limits.
    """
    robot = load_robot("ur10e")
    limits = Limits.of(robot, velocity=1.57, acceleration=2.5, lower=-np.pi, upper=np.pi, torque=np.inf)
    model = Model(robot, "coulomb-offset")
    problem = Problem(
        TorqueObservation(model),
        FourierQuintic(20.0, 6),
        limits,
        DOptimal(),
        np.array([0.0, -1.57, 0.0, -1.57, 0.0, 0.0]),
        None,
        sampling=0.1,
    )
    rivals = []
    for seed in range(10):
        matrix = information(problem, random_motion(problem, seed))
        rivals.append(np.sqrt(np.diag(np.linalg.inv(matrix))))
    typical = np.median(np.array(rivals), axis=0)
    problem = dataclasses.replace(problem, objective=AOptimal(typical))
    found = design(problem, seed=args.seed, starts=2, steps=args.steps, seconds=args.seconds)
    achieved, predicted = simulate(problem, found.coefficients, args.repeats, args.seed)
    ratio = achieved / predicted
    factors = typical / predicted
    best = np.min(np.array(rivals), axis=0) / predicted
    rows = [
        {"parameter": name, "predicted": float(p), "achieved": float(a), "ratio": float(r), "random_over_designed": float(f)}
        for name, p, a, r, f in zip(problem.observation.names, predicted, achieved, ratio, factors)
    ]
    summary = {
        "ratio_min": float(ratio.min()),
        "ratio_max": float(ratio.max()),
        "median_factor_over_random": float(np.median(factors)),
        "least_factor_over_random": float(factors.min()),
        "least_factor_over_best_random": float(best.min()),
        "geometric_mean_factor": float(np.exp(np.mean(np.log(factors)))),
        "repeats": args.repeats,
    }
    goals = {
        "achieved within 20 % of predicted": bool(np.all(np.abs(ratio - 1) < 0.2)),
        "smaller than from random motions (median of ten)": bool(factors.min() > 1),
    }
    return {"summary": summary, "rows": rows, "goals": goals}


def simulate(problem, coefficients, repeats, seed):
    """Standard deviations (p,) of least-squares estimates over noisy repetitions, and as predicted from the information."""
    time_ = problem.time
    q, qd, qdd, _ = problem.motion(coefficients, time_)
    model = problem.observation.model
    direction = np.tanh(qd / 0.02)
    rows = model.regressor(q, qd, qdd, direction)[:, :, model.base.independent].reshape(-1, model.base.dimension)
    truth = model.base.project(model.nominal)
    rng = np.random.default_rng(seed)
    clean = model.torque(model.nominal, q, qd, qdd, direction).reshape(-1)
    noise = rng.normal(size=(len(clean), repeats)) * np.tile(problem.noise, len(time_))[:, None]
    estimates = np.linalg.lstsq(rows, clean[:, None] + noise, rcond=None)[0]
    if not np.allclose(rows @ truth, clean, atol=1e-6):
        raise AssertionError("the base parameters do not reproduce the simulated torque")
    matrix = information(problem, coefficients)
    return estimates.std(axis=1, ddof=1), np.sqrt(np.diag(np.linalg.inv(matrix)))


def study_recorded(args):
    """Recorded runs of published designs: spread of estimates between runs against what white noise predicts for the design."""
    from bayesid.logs import load_schema, read_log
    from bayesid.signals import samples_from_log

    folder = args.data / "ur10e_innopolis"
    gains = np.array([14.87, 11.976, 9.839, 10.762, 10.762, 10.762])
    robot = load_robot("ur10e")
    model = Model(robot, "coulomb-offset")
    runs = {
        "ur-20_02_10-30sec_12harm.csv@635:3510": "ptrnSrch_N12T30QR.mat",
        "ur-20_02_12-50sec_12harm.csv@355:5090": "ptrnSrch_N12T50QR.mat",
        "ur-20_02_05-20sec_8harm.csv@320:2310": "ptrnSrch_N8T20QR.mat",
        "ur-20_02_19_14harm50sec.csv@195:4966": "ptrnSrch_N14T50QR.mat",
    }
    rows, found = [], []
    for log_name, design_name in runs.items():
        log = read_log(str(folder / "dataset_ur10e" / "identification_data" / log_name), load_schema("ur10e-innopolis"))
        samples = samples_from_log(log)
        torque = samples.effort * gains
        columns = model.regressor(samples.q, samples.qd, samples.qdd, np.tanh(samples.qd / 0.02))[:, :, model.base.independent]
        scale = np.ones(6)
        for _ in range(3):
            weighted = (columns / scale[:, None]).reshape(-1, model.base.dimension)
            beta = np.linalg.lstsq(weighted, (torque / scale).ravel(), rcond=None)[0]
            scale = np.sqrt(np.mean((torque - columns @ beta) ** 2, axis=0))
        as_run = np.linalg.inv(weighted.T @ weighted)
        family, coefficients, start, limits = published_motion(folder / "trajectory_optmzn" / "optimal_trjctrs" / design_name)
        problem = problem_of(DOptimal(), family, limits, start, "coulomb-offset", sampling=0.05, noise=scale)
        planned = np.linalg.inv(information(problem, coefficients)) * len(problem.time) / len(samples)
        ratio = np.sqrt(np.diag(as_run) / np.diag(planned))
        found.append((beta, np.sqrt(np.diag(planned))))
        rows.append(
            {
                "log": log_name,
                "design": design_name,
                "std_as_run_over_designed_median": float(np.median(ratio)),
                "std_as_run_over_designed_range": [float(ratio.min()), float(ratio.max())],
                "residual_rms": scale.round(3).tolist(),
            }
        )
    pairs = [(a, b) for i, a in enumerate(found) for b in found[:i]]
    z = np.concatenate([(a[0] - b[0]) / np.hypot(a[1], b[1]) for a, b in pairs])
    summary = {
        "pairs": len(pairs),
        "spread_over_predicted": float(1.4826 * np.median(np.abs(z))),
        "note": "white noise would give 1; residuals on the robot are autocorrelated, which the design's prediction leaves out",
    }
    return {"summary": summary, "rows": rows, "goals": {}}


def markdown(title, result, command):
    lines = [f"# {title}", "", f"`{command}` on {result['date']}, bayesid {result['bayesid']}", ""]
    for goal, met in result["goals"].items():
        lines.append(f"- {'met' if met else 'MISSED'}: {goal}")
    for key, value in result.get("summary", {}).items():
        lines.append(f"- {key}: {value:.4g}" if isinstance(value, float) else f"- {key}: {value}")
    rows = result["rows"]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines += ["", "| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    for row in rows:
        cells = [row.get(key, "") for key in keys]
        lines.append("| " + " | ".join(f"{c:.4g}" if isinstance(c, float) else str(c) for c in cells) + " |")
    return "\n".join(lines) + "\n"


STUDIES = {
    "published": study_published,
    "seeds": study_seeds,
    "precision": study_precision,
    "recorded": study_recorded,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BAYESID_DATA", ROOT.parent / "shared" / "datasets")))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=45.0, help="wall clock of one design")
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=25, help="per robot")
    parser.add_argument("--workers", type=int, default=2, help="processes of the seeds study")
    parser.add_argument("--seconds-per-robot", type=float, default=1e9)
    parser.add_argument("--repeats", type=int, default=400)
    args = parser.parse_args()
    result = STUDIES[args.study](args)
    command = "python experiments/excitation/run.py " + " ".join(a for a in sys.argv[1:] if not a.startswith("/"))
    result |= {"command": command, "date": datetime.date.today().isoformat(), "bayesid": bayesid.__version__}
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{args.study}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = markdown(f"Excitation: {args.study}", result, command)
    (folder / f"{args.study}.md").write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(result["goals"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
