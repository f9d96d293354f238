"""Which friction law do the joints of a UR10e and of a Kinova Gen3 follow, and what is it worth on motions not fitted?

BAYESID_DATA=... python experiments/posterior_friction/run.py
"""

import datetime
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from bayesid.dynamics import stribeck_law
from bayesid.kinematics import random_motion
from bayesid.logs import read_log
from bayesid.models import Model
from bayesid.posterior import ClassPrior, candidates, compare_friction, ladder
from bayesid.regression import (
    NodalInformation,
    Observations,
    VelocityBasis,
    breakaway_profile,
    compress,
    fit_speeds,
    identify,
)
from bayesid.robots import load_robot
from bayesid.signals import Samples, samples_from_log
from bayesid.simulation.synthetic import autocorrelated

GAINS = np.array([10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232])
UR10E = "ur10e_innopolis/dataset_ur10e"
TRAINING = "identification_data/ur-20_02_10-30sec_12harm.csv@635:3510"
HELD_OUT = "validation_data/ur-20_01_17-ptp_10_points.csv@700:4200"
KINOVA = "kinova_gen3/from_history/pyDynaMapp/data/kinova"
KINOVA_MASS = 7.2
SIMULATIONS = 100


def main():
    root = Path(os.environ.get("BAYESID_DATA", Path(__file__).parents[3] / "shared" / "datasets"))
    date = datetime.date.today().isoformat()
    command = ("python experiments/posterior_friction/run.py " + " ".join(sys.argv[1:])).strip()
    content = {"command": command, "date": date}
    lines = ["# Friction laws", "", f"`{command}`, {date}", ""]
    parts = {
        "ur10e": jointwise,
        "exciting": exciting,
        "held_out": held_out,
        "kinova": kinova,
        "speeds": breakaway,
        "coverage": covered,
    }
    for name, part in parts.items():
        content[name], text = part(root)
        lines += [*text, ""]
    out = Path(__file__).parent
    (out / "results.md").write_text("\n".join(lines).rstrip() + "\n")
    (out / "results.json").write_text(json.dumps(content, indent=1) + "\n")
    print("\n".join(lines))


def jointwise(root):
    """The UR10e, one joint moving at a time."""
    folder = root / UR10E / "jointwise_motion"
    runs = [samples_from_log(read_log(path, "ur10e-innopolis")) for path in sorted(folder.glob("*.csv"))]
    found = compare_friction(load_robot("ur10e"), runs, gains=GAINS, laws=candidates(ladder(runs)))
    note = "One joint moves at a time, published drive gains; joint 6 has no log of its own."
    return compared(found, "UR10e, joint by joint", note)


def exciting(root):
    """The UR10e in one exciting motion, as `bayesid posterior --friction auto` sees it."""
    run = samples_from_log(read_log(root / UR10E / TRAINING, "ur10e-innopolis"))
    found = compare_friction(load_robot("ur10e"), run, gains=GAINS, laws=candidates(ladder([run])))
    return compared(found, "UR10e, exciting motion", f"The blocks are those of {Path(TRAINING).name}.")


def held_out(root):
    """The UR10e fitted to one exciting motion and judged on another."""
    robot = load_robot("ur10e")
    training, other = (samples_from_log(read_log(root / UR10E / name, "ur10e-innopolis")) for name in (TRAINING, HELD_OUT))
    rows, content = [], {}
    profile = breakaway_profile(Observations(Model(robot, "stribeck"), (training,), GAINS))
    laws = {"coulomb-offset": None, "asymmetric": None, "stribeck": stribeck_law(profile.fit.speeds), "load": None}
    for name, law in laws.items():
        found = identify(Model(robot, law or name), training, gains=GAINS, method="wls", validation=other)
        run = found.validation[0]
        moving = np.sqrt([np.mean((run.measured - run.prediction.mean)[m, j] ** 2) for j, m in enumerate(other.moving.T)])
        content[name] = {"rms": run.rms.tolist(), "rms_moving": moving.tolist()}
        rows.append([name, *(f"{v:.3f} ({w:.3f})" for v, w in zip(run.rms, moving))])
    content["load_reference"] = found.estimate.meta["load_reference"]
    names = [f"{joint}.load_friction" for joint in robot.joint_names]
    loss = found.estimate.select(names)
    content["load_friction"] = {"mean": loss.mean.tolist(), "std": loss.std.tolist()}
    rows.append(["load friction [%]", *(f"{100 * m:.1f} ± {100 * s:.1f}" for m, s in zip(loss.mean, loss.std))])
    note = [
        "## UR10e, RMS [N m] on a motion that was not fitted",
        "",
        f"Weighted least squares on {Path(TRAINING).name}, judged on {Path(HELD_OUT).name}.",
        "In brackets: while the joint moves. Stribeck friction is at the breakaway speeds of the fitted motion. Last row: the",
        "share of its torque that each gear loses (standard deviation); the load settled in "
        f"{content['load_reference']['rounds']} rounds.",
    ]
    return content, [*note, "", *table(["friction law", *robot.joint_names], rows)]


def breakaway(root):
    """Breakaway speeds of the UR10e on an exciting motion: profile intervals, and what the velocity basis costs."""
    robot = load_robot("ur10e")
    run = samples_from_log(read_log(root / UR10E / TRAINING, "ur10e-innopolis"))
    observations = Observations(Model(robot, "stribeck"), (run,), GAINS)
    compress(observations)
    seconds = {}
    clock = time.process_time()
    compress(observations)
    seconds["one pass, law at known speeds"] = time.process_time() - clock
    clock = time.process_time()
    basis = VelocityBasis.over((run,))
    seconds["choosing and checking the basis"] = time.process_time() - clock
    clock = time.process_time()
    data = NodalInformation.of(observations, basis)
    seconds["one pass, velocity basis"] = time.process_time() - clock
    clock = time.process_time()
    fit_speeds(data)
    seconds["search for six speeds, compressed"] = time.process_time() - clock
    clock = time.process_time()
    profile = breakaway_profile(observations, basis)
    seconds["all of it, with intervals"] = time.process_time() - clock
    content = {**profile.to_dict(), "cpu_seconds": seconds, "samples": len(run)}
    edges = [
        [f"{v:.3f}{' (cut off)' if cut else ''}" for v, cut in zip(ends, open_)]
        for ends, open_ in zip(profile.interval.T, profile.open.T)
    ]
    rows = [["best", *(f"{v:.3f}" for v in profile.fit.speeds)], ["from", *edges[0]], ["to", *edges[1]]]
    cost = [[name, f"{value:.2f}"] for name, value in seconds.items()]
    lines = [
        "## UR10e, breakaway speeds [rad/s]",
        "",
        f"Profile likelihood on {Path(TRAINING).name} ({len(run)} samples), scaled to the HAC covariance, 95 % intervals",
        f"within {basis.speeds[0]} to {basis.speeds[1]} rad/s. {content['knots']} knots a joint; interpolation error at the",
        f"log's own velocities at most {basis.error:.1e} of the friction's size.",
        "",
        *table(["", *robot.joint_names], rows),
        "",
        *table(["step", "CPU s"], cost),
    ]
    return content, lines


def covered(root):
    """Intervals of breakaway speeds of a simulated two-link arm under autocorrelated noise."""
    robot, speeds = load_robot("two_link"), np.array([0.1, 0.06])
    model = Model(robot, stribeck_law(speeds))
    truth = model.nominal.copy()
    truth[-6:] = np.tile([2.0, 3.0, 1.5], 2)
    inside, error, half = [], [], []
    for seed in range(SIMULATIONS):
        motion = random_motion(robot, duration=30.0, rate=50.0, seed=seed)
        torque = model.torque(truth, motion.q, motion.qd, motion.qdd)
        torque += autocorrelated(np.random.default_rng(seed), torque.shape, np.full(2, 0.5), 0.9)
        run = Samples(motion.time, motion.q, motion.qd, motion.qdd, torque, "torque")
        profile = breakaway_profile(Observations(model, (run,)))
        low, high = profile.interval.T
        inside.append((low <= speeds) & (speeds <= high))
        error.append(np.log(profile.fit.speeds / speeds))
        half.append(0.5 * np.log(high / low))
    share, spread, bias, width = np.mean(inside, 0), np.std(error, 0), np.mean(error, 0), np.median(half, 0)
    content = {"covered": share.tolist(), "std": spread.tolist(), "bias": bias.tolist(), "half_width": width.tolist()}
    rows = [
        ["intervals that hold the truth", *(f"{100 * v:.1f} %" for v in share)],
        ["bias of the log speed", *(f"{v:.4f}" for v in bias)],
        ["standard deviation of the log speed", *(f"{v:.4f}" for v in spread)],
        ["median half width of the interval", *(f"{v:.4f}" for v in width)],
    ]
    lines = [
        "## Simulated two-link arm, breakaway speeds of 0.1 and 0.06 rad/s",
        "",
        f"{SIMULATIONS} random motions of 30 s, torque noise of 0.5 N m with a correlation of 0.9 between samples at 50 Hz;",
        "95 % profile intervals.",
        "",
        *table(["", *robot.joint_names], rows),
    ]
    return content, lines


def kinova(root):
    """The Kinova Gen3, whose logs hold motor temperatures from 24 to 41 degrees."""
    robot = load_robot(str(root / "kinova_gen3" / "gen3.urdf"))
    names = ["identification_data/RecordTrajectory_quadratic", "identification_data/RunTrajectory1"]
    names += [f"jointwise_motion/joint_{k}_trapez" for k in range(1, 8)]
    runs = [samples_from_log(read_log(root / KINOVA / f"{name}.csv.gz", "kinova-gen3")) for name in names]
    laws = candidates(("coulomb-offset", "load", "temperature"))
    content, lines = compared(
        compare_friction(robot, runs, laws=laws, prior=ClassPrior(KINOVA_MASS)),
        "Kinova Gen3, temperature logged",
        f"Two exciting motions and seven of one joint each; the prior is of a class of {KINOVA_MASS} kg.",
    )
    found = identify(Model(robot, "temperature"), runs, method="wls").estimate
    parts = [found.select([f"{joint}.{name}" for joint in robot.joint_names]) for name in ("viscous", "viscous_temperature")]
    rows = [
        ["viscous at 25 deg C [N m s/rad]", *(f"{m:.2f} ± {s:.2f}" for m, s in zip(parts[0].mean, parts[0].std))],
        ["its change [N m s/(rad K)]", *(f"{m:.3f} ± {s:.3f}" for m, s in zip(parts[1].mean, parts[1].std))],
    ]
    content["viscous_temperature"] = {"mean": parts[1].mean.tolist(), "std": parts[1].std.tolist()}
    return content, [*lines, "", "Weighted least squares on the same runs:", "", *table(["", *robot.joint_names], rows)]


def compared(found, title, note):
    """JSON and Markdown of a comparison."""
    head, rows = found.table()
    speeds = [[f"{v:.3f}" if np.isfinite(v) else "-" for v in row] for row in found.speeds if np.isfinite(row).any()]
    rms = [[name, *(f"{v:.3f}" if np.isfinite(v) else "-" for v in row)] for name, row in zip(found.names, found.rms)]
    lines = [
        f"## {title}",
        "",
        note,
        "Expected log predictive density per joint [nats, corrected for autocorrelation], difference to the joint's best law",
        "(standard error over ten blocks).",
        "",
        *table(head, rows),
        "",
        "RMS of blocks left out [N m]:",
        "",
        *table(head, [*rms, *(["breakaway speed [rad/s]", *row] for row in speeds)]),
        "",
        f"Chosen for the whole robot: {found.reason}.",
    ]
    content = {
        "laws": found.names,
        "difference": clean(found.difference),
        "standard_error": clean(found.error),
        "rms": clean(found.rms),
        "best": found.best,
        "breakaway_speeds": clean(found.speeds),
        "chosen": found.chosen,
        "reason": found.reason,
    }
    return content, lines


def clean(values):
    return [[float(v) if np.isfinite(v) else None for v in row] for row in values]


def table(head, rows):
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    main()
