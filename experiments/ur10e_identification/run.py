"""The UR10e identified step by step (Swevers, Verdonck, De Schutter 2007), this project's numbers beside the published ones.

    python experiments/ur10e_identification/run.py [--data DIR] [--sets 60] [--out experiments/ur10e_identification]

DIR (default: BAYESID_DATA) holds the folder ur10e_innopolis. Writes results.json, results.md and held_out_torque.png.
"""

import argparse
import datetime
import itertools
import json
import os
import re
import sys
import time
import tomllib
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import stdtrit

from bayesid.logs import read_log
from bayesid.models import Model
from bayesid.regression import COVARIANCES, HAC, METHODS, Constraints, Observations, identify, physical
from bayesid.report import png, torque_figure
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log
from bayesid.simulation.synthetic import autocorrelated

TRAINING = "ur-20_02_10-30sec_12harm.csv"
HELD_OUT = "ur-20_01_17-ptp_10_points.csv"
UNLOADED = (
    TRAINING,
    "ur-20_02_12-50sec_12harm.csv",
    "ur-20_02_05-20sec_8harm.csv",
    "ur-20_02_19_14harm50sec.csv",
    "ur-20_01_31-unload.csv",
    "ur-20_02_05-20sec_12harm.csv",
    "ur-20_02_06-20sec_5harm.csv",
    "ur-20_02_10-20sec_7harm.csv",
)
CORRELATION = 0.95


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("BAYESID_DATA"), help="folder of the recordings")
    parser.add_argument("--sets", type=int, default=60, help="simulated data sets of the coverage study")
    parser.add_argument("--draws", type=int, default=200, help="bootstrap draws of the physically consistent fit")
    parser.add_argument("--out", default=Path(__file__).parent, type=Path)
    arguments = parser.parse_args()
    if not arguments.data:
        parser.error("name the folder of the recordings with --data or BAYESID_DATA")
    warnings.simplefilter("ignore", UserWarning)
    study = Study(Path(arguments.data) / "ur10e_innopolis", arguments.sets, arguments.draws)
    sections = [step(study) for step in (modelling, excitation, signals, estimation, validation, agreement, coverage)]
    command = "python experiments/ur10e_identification/run.py"
    if arguments.sets != 60 or arguments.draws != 200:
        command += f" --sets {arguments.sets} --draws {arguments.draws}"
    write(arguments.out, sections, command)
    (arguments.out / "held_out_torque.png").write_bytes(picture(study))
    return 0


class Study:
    """The recordings, the model, and the fits that several steps share."""

    def __init__(self, folder, sets, draws):
        self.folder, self.sets, self.draws = folder, sets, draws
        self.card = tomllib.loads((folder / "card.toml").read_text(encoding="utf-8"))
        self.gains = np.array(self.card["drive_gain"]["published"])
        self.model = Model(load_robot("ur10e"))
        self.runs = {name: self.read("identification_data", name) for name in UNLOADED}
        self.held_out = self.read("validation_data", HELD_OUT)
        self.fits = {name: METHODS["wls"](self.observations(run)) for name, run in self.runs.items()}
        self.found = identify(self.model, self.runs[TRAINING], gains=self.gains, validation=[self.held_out], draws=draws)

    def read(self, below, name):
        window = self.card["windows"].get(name)
        rows = f"@{window[0]}:{window[1]}" if window else ""
        return samples_from_log(read_log(f"{self.folder / 'dataset_ur10e' / below / name}{rows}", "ur10e-innopolis"))

    def observations(self, run):
        return Observations(self.model, (run,), self.gains)

    def published(self, name):
        text = (self.folder / "UR10E_parameters.txt").read_text(encoding="utf-8")
        numbers = re.search(rf"^{name} = \[([^\]]*)\]", text, re.MULTILINE).group(1)
        return np.array(numbers.split(), dtype=float)


def picture(study):
    """PNG of the held-out torque with its band."""
    run = study.found.validation[0]
    title = "UR10e, point-to-point log that was not fitted: unfiltered torque and its prediction"
    return png(torque_figure(run.time, run.measured, run.prediction, study.model.robot.joint_names, title=title), 80)


def modelling(study):
    """Base dimensions against the published ones."""
    robot = study.model.robot
    rows = [
        ("rigid body", Model(robot, "none", rotor=False).base.dimension, "-"),
        ("rigid body and rotors", Model(robot, "none").base.dimension, study.card["published"]["base_parameters"]),
        ("and friction (viscous, Coulomb, offset)", study.model.base.dimension, 58),
    ]
    return section("1 Model", "Number of base parameters.", ("model", "here", "published"), rows)


def excitation(study):
    """Condition number of the recorded motion."""
    name, run = TRAINING, study.runs[TRAINING]
    columns = study.model.regressor(run.q, run.qd, run.qdd)
    rigid = study.model.base.independent < 66
    rows = []
    for label, kept in (("rigid body and rotors", rigid), ("all", np.ones_like(rigid))):
        matrix = columns[:, :, study.model.base.independent[kept]].reshape(-1, kept.sum())
        published = study.card["published"]["condition_number"] if label != "all" else "-"
        rows.append((label, f"{np.linalg.cond(matrix):.1f}", published))
    note = f"Condition number of the base observation matrix along {name}, as recorded; the published one is of the design."
    return section("2 Excitation", note, ("columns", "here", "published"), rows)


def signals(study):
    """What was done to each log."""
    rows = [
        (name, len(run), f"{run.duration:.1f}", f"{run.cutoff:.1f}", "card" if name in study.card["windows"] else "automatic")
        for name, run in {**study.runs, HELD_OUT: study.held_out}.items()
    ]
    head = ("log", "samples", "duration [s]", "cutoff [Hz]", "window")
    return section("3 Data and signals", "Zero-phase low-pass, the same for motion and current.", head, rows)


def estimation(study):
    """Rotor inertia and friction with intervals, beside the published values."""
    estimate = study.found.estimate
    n = study.model.robot.dof
    published = np.concatenate([study.published("pi_drvs"), study.published("pi_frcn")])
    interval = estimate.interval(0.95)
    rows, inside = [], 0
    for at, value in zip(range(10 * n, study.model.size), published):
        low, high = interval[at]
        inside += low <= value <= high
        unit = estimate.units[at]
        rows.append((estimate.names[at], unit, f"{estimate.mean[at]:.3g}", f"{low:.3g} .. {high:.3g}", f"{value:.3g}"))
    note = (
        f"Physically consistent fit to {TRAINING}; published: UR10E_parameters.txt, from another log. {inside} of "
        f"{len(rows)} published values lie inside the 95 % interval; friction depends on the day's temperature."
    )
    return section("4 Estimation", note, ("parameter", "unit", "here", "95 % interval", "published"), rows)


def validation(study):
    """RMS of the unfiltered held-out torque, for every method."""
    plain = (2.35, 3.70, 1.78, 0.55, 0.57, 1.41)
    rows = []
    for method in METHODS:
        found = identify(
            study.model, study.runs[TRAINING], gains=study.gains, validation=[study.held_out], method=method
        ).validation[0]
        rows.append((method, *(f"{value:.3f}" for value in found.rms)))
    checked = study.found.validation[0]
    rows.append(("lmi (default)", *(f"{value:.3f}" for value in checked.rms)))
    rows.append(("published, on a log not named", *(f"{v:.2f}" for v in study.card["published"]["validation_rms"])))
    rows.append(("least squares with sign(0) friction", *(f"{value:.2f}" for value in plain)))
    rows.append(("share inside the 95 % band (lmi)", *(f"{value:.1%}" for value in checked.coverage95)))
    low = ", ".join(f"{value:.3g}" for value in study.found.min_eigenvalue)
    note = (
        f"RMS [N m] of the unfiltered torque of {HELD_OUT}, fitted to {TRAINING}. Smallest pseudo-inertia eigenvalue of "
        f"each link: {low}. Constraints that hold with equality: {', '.join(study.found.active)}."
    )
    return section("5 Validation", note, ("method", *(f"joint {j + 1}" for j in range(6))), rows)


def agreement(study):
    """Do independent fits differ by no more than their intervals say?"""
    kinds = np.array(study.model.base.kinds)
    friction = kinds == "friction"
    rows = []

    def judge(label, results):
        hit = []
        for a, b in itertools.combinations(UNLOADED, 2):
            (one, first, nu), (two, second, mu) = results[a], results[b]
            v, w = np.diag(first), np.diag(second)
            quantile = 1.959964
            if np.isfinite(nu):  # Welch, Satterthwaite
                quantile = stdtrit((v + w) ** 2 / (v**2 / nu + w**2 / mu), 0.975)
            hit.append(np.abs(one - two) < quantile * np.sqrt(v + w))
        hit = np.array(hit)
        rows.append((label, *(f"{share:.1%}" for share in (hit.mean(), hit[:, ~friction].mean(), hit[:, friction].mean()))))

    for name, kind in COVARIANCES.items():
        found = {log: kind().of(fit) for log, fit in study.fits.items()}
        judge(f"wls, {name}", {log: (study.fits[log].beta, c.covariance, c.dof) for log, c in found.items()})
        if name == "hac":
            default = found
    for method in ("ols", "robust", "gls"):
        fits = {log: METHODS[method](study.observations(run)) for log, run in study.runs.items()}
        found = {log: HAC().of(fit) for log, fit in fits.items()}
        judge(f"{method}, hac", {log: (fits[log].beta, c.covariance, c.dof) for log, c in found.items()})
    project = study.model.base.project
    consistent = {
        log: physical(fit, default[log].covariance, default[log].dof, constraints=Constraints(), draws=study.draws)
        for log, fit in study.fits.items()
    }
    judge(
        "lmi, hac, standard deviation of draws",
        {log: (project(p.parameters), np.cov(project(p.draws).T), np.inf) for log, p in consistent.items()},
    )
    hit = []
    for a, b in itertools.combinations(UNLOADED, 2):
        low, high = np.quantile(project(consistent[a].draws) - project(consistent[b].draws), [0.025, 0.975], axis=0)
        hit.append((low < 0) & (high > 0))
    hit = np.array(hit)
    shares = (hit.mean(), hit[:, ~friction].mean(), hit[:, friction].mean())
    rows.append(("lmi, hac, percentiles of differences of draws", *(f"{share:.1%}" for share in shares)))
    note = (
        "Over all pairs of the eight unloaded logs: share of base parameters whose 95 % interval of the difference covers "
        "zero. Rigid-body parameters are the same on every day; friction is not: the logs span three weeks, and friction of "
        "these joints changes with temperature by more than the error of one fit, so its lower share is no fault of the "
        "intervals. White-noise intervals claim far too much."
    )
    return section("6 Agreement of independent fits", note, ("fit, covariance", "all 58", "40 rigid", "18 friction"), rows)


def coverage(study):
    """Nominal 90 % intervals on simulated torques along the recorded motion, AR(1) noise."""
    run, model = study.runs[TRAINING], study.model
    truth = study.found.estimate.mean
    beta = model.base.project(truth)
    torque = model.torque(truth, run.q, run.qd, run.qdd, run.direction)
    noise = study.fits[TRAINING].noise
    rng = np.random.default_rng(0)
    hits = {f"wls, {name}": [] for name in COVARIANCES} | {"lmi, hac": []}
    for number in range(study.sets):
        effort = torque + autocorrelated(rng, torque.shape, noise, CORRELATION)
        sample = run.replace(effort=effort, effort_measured=effort, effort_kind="torque", effort_unit="N m")
        fit = METHODS["wls"](Observations(model, (sample,)))
        for name, kind in COVARIANCES.items():
            found = kind().of(fit)
            quantile = stdtrit(found.dof, 0.95) if np.isfinite(found.dof) else 1.644854
            hits[f"wls, {name}"].append(np.abs(fit.beta - beta) < quantile * np.sqrt(np.diag(found.covariance)))
            if name == "hac" and number % 3 == 0:
                draws = model.base.project(physical(fit, found.covariance, found.dof, draws=study.draws, seed=number).draws)
                low, high = np.quantile(draws, [0.05, 0.95], axis=0)
                hits["lmi, hac"].append((low < beta) & (beta < high))
    rows = []
    for name, hit in hits.items():
        hit = np.array(hit)
        error = hit.mean(axis=1).std(ddof=1) / np.sqrt(len(hit))
        rows.append((name, len(hit), f"{hit.mean():.1%}", f"{error:.1%}"))
    note = (
        f"Share of true base parameters inside nominal 90 % intervals: torque simulated along the motion of {TRAINING} from "
        f"the identified model, AR(1) noise of coefficient {CORRELATION} and the size of the real residuals. The truth of the "
        "consistent fit lies on the boundary of what is possible, where percentile intervals are judged most severely."
    )
    return section("7 Coverage on simulated data", note, ("fit, covariance", "data sets", "coverage", "standard error"), rows)


def section(title, note, head, rows):
    """One table; printed at once."""
    print(f"\n{title}\n{note}\n" + markdown(head, rows), flush=True)
    return {"title": title, "note": note, "head": list(head), "rows": [list(map(str, row)) for row in rows]}


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def write(folder, sections, command):
    date = datetime.date.today().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    document = {"command": command, "date": date, "sections": sections}
    (folder / "results.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = [f"# The UR10e identified step by step\n\nWritten by `{command}` on {date}; do not edit."]
    text += [f"## {s['title']}\n\n{s['note']}\n\n{markdown(s['head'], s['rows'])}" for s in sections]
    (folder / "results.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    started = time.process_time()
    status = main()
    print(f"\n{time.process_time() - started:.0f} s of CPU time", file=sys.stderr)
    sys.exit(status)
