"""Drive gains of the UR10e recordings: published, each method here, and the controller's constants that no method uses.

    python experiments/ur10e_drive_gains/run.py [real] [payload] [simulation] [kinova]

Recordings are read from BAYESID_DATA (default: the folder shared/datasets beside the checkout). Writes results.json and one
Markdown file per part beside this script.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bayesid.errors import BayesidError
from bayesid.gains import GainRuns, Gains, Load, estimate_gains, gain_friction, motor_constants, sensor_gain, with_load_friction
from bayesid.gains.estimate import estimate_of
from bayesid.gains.solving import ls, ml
from bayesid.logs import read_log
from bayesid.models import Model
from bayesid.regression import HAC, Information, compress
from bayesid.regression.observations import Chunk
from bayesid.robots import load_robot
from bayesid.signals import Samples, samples_from_log

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("BAYESID_DATA", HERE.parents[2] / "shared" / "datasets"))
FOLDER = DATA / "ur10e_innopolis" / "dataset_ur10e" / "identification_data"

# datasets/ur10e_innopolis card: published gains (joint 1 on an imposed bound), the controller's constants, windows, masses.
PUBLISHED = np.array([10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232])
CONTROLLER = np.array([np.nan, 11.976, 9.839, 10.762, 10.762, np.nan])
FREE, LOADED = "ur-20_02_19_14harm50sec.csv@195:4966", "ur-20_02_19_14harm50secLoad.csv@308:5071"
FREE_31, LOADED_31 = "ur-20_01_31-unload.csv@300:2623", "ur-20_01_31-load.csv@370:2881"
OTHER = "ur-20_01_13-load_2600.csv@250:2274"
MASS, OTHER_MASS = 2.805, 2.602


def log(name):
    return read_log(str(FOLDER / name), "ur10e-innopolis")


def house(name):
    return samples_from_log(log(name), effort="current")


def published_filtering(name):
    """Samples through the filters of the published work: 10 Hz velocity, 2.5 Hz acceleration, 5 Hz current, all rows kept."""
    from scipy.signal import butter, filtfilt

    recorded = log(name)

    def through(order, share, values):
        return filtfilt(*butter(order, share), values, axis=0)

    velocity = through(3, 0.2, recorded.velocity)
    acceleration = np.zeros_like(velocity)
    acceleration[1:-1] = (velocity[2:] - velocity[:-2]) / (recorded.time[2:] - recorded.time[:-2])[:, None]
    return Samples(
        recorded.time,
        recorded.position,
        velocity,
        through(5, 0.05, acceleration),
        through(5, 0.1, recorded.current),
        "current",
        moving=np.ones_like(velocity, dtype=bool),
        source=recorded.provenance(),
    )


def pair(samples, law="sublinear", shared=False, load_friction=False):
    runs = GainRuns(
        Model(load_robot("ur10e"), gain_friction(law)), tuple(samples), (None, 0), (Load(MASS),), (0, 0) if shared else None
    )
    return with_load_friction(runs) if load_friction else runs


def row(name, estimate, constants=None):
    low, high = estimate.interval(0.95)[:6].T
    gains = estimate.mean[:6]
    return {
        "name": name,
        "gains": gains.tolist(),
        "std": estimate.std[:6].tolist(),
        "interval95": np.column_stack([low, high]).tolist(),
        "from_controller_percent": (100 * (gains / CONTROLLER - 1)).tolist(),
        "covers_controller": [bool(a < k < b) for a, k, b in zip(low, CONTROLLER, high)],
        "undetermined": estimate.meta["undetermined"],
        "noise_A": estimate.meta["current_noise"],
        "motor_constants": None if constants is None else told(constants),
    }


def told(constants):
    low, high = constants.interval(0.95).T
    return {
        "interval95": np.column_stack([low, high]).tolist(),
        "covers_controller": [bool(a < k < b) for a, k, b in zip(low, CONTROLLER, high)],
        "load_friction": constants.meta["load_friction"],
        "load_friction_std": constants.meta["load_friction_std"],
    }


def real():
    old = tuple(map(published_filtering, (FREE, LOADED)))
    new, january = tuple(map(house, (FREE, LOADED))), tuple(map(house, (FREE_31, LOADED_31)))
    published = pair(old, "coulomb-offset", shared=True)
    hold = np.full(6, np.inf)
    hold[0] = 0.0
    cases = [
        ("ls, filters as published", published, "ls", None),
        ("ls, filters as published, joint 1 held at 10", published, "ls", Gains(PUBLISHED, np.diag(hold))),
        ("ls", pair(new, "coulomb-offset", shared=True), "ls", None),
        ("lmi", pair(new, "coulomb-offset", shared=True), "lmi", None),
        ("tls", pair(new), "tls", None),
        ("ml (default)", pair(new), "ml", None),
        ("ml, Coulomb-viscous friction of each run", pair(new, "coulomb-offset"), "ml", None),
        ("ml, one Coulomb-viscous friction", pair(new, "coulomb-offset", shared=True), "ml", None),
        ("ml, with load friction", pair(new, load_friction=True), "ml", None),
        ("ml (default), 2020-01-31 pair", pair(january), "ml", None),
        ("ml, with load friction, 2020-01-31 pair", pair(january, load_friction=True), "ml", None),
    ]
    rows, estimates = [], {}
    for name, runs, method, prior in cases:
        estimates[name] = estimate_gains(runs, method, prior=prior)
        constants = motor_constants(estimates[name], runs) if name.startswith("ml (default)") else None
        rows.append(row(name, estimates[name], constants))
        print(line(rows[-1]), flush=True)
    agreement = {}
    for tail in ("(default)", "with load friction"):
        first = next(e for n, e in estimates.items() if n.startswith("ml") and n.endswith(tail))
        second = next(e for n, e in estimates.items() if tail in n and n.endswith("pair"))
        agreement[tail] = ((first.mean - second.mean)[:6] / np.hypot(first.std, second.std)[:6]).tolist()
    return {"rows": rows, "agreement_z": agreement}


def payload():
    """Mass of the load in a recording that no gain was estimated from, gains held, their covariance carried over."""
    new = tuple(map(house, (FREE, LOADED)))
    other, out = house(OTHER), []
    unloaded = {
        "2020-01-31": house(FREE_31),
        "2020-02-19, 14 harmonics": new[0],
        "2019-12-23": house("ur-19_12_23_free.csv@1:2036"),
    }
    model = Model(load_robot("ur10e"), gain_friction("sublinear"))
    for method, source in (("ml (default)", pair(new)), ("ls", pair(new, "coulomb-offset", shared=True))):
        gains = Gains.of(estimate_gains(source, method.split()[0]))
        for name, run in unloaded.items():
            runs = GainRuns(model, (run, other), (None, 0), (Load(),))
            information, at = compress(runs), runs.size - 10

            def mass(mean, runs=runs, information=information, at=at):
                return ml(runs, Gains(mean, np.zeros((6, 6))), information).coefficients[at]

            held = Gains(gains.mean, np.zeros((6, 6)))
            found, std = estimate_of(ml(runs, held, information), runs, information, HAC())["payload.m"]
            steps = 1e-3 * np.diag(gains.mean)
            slope = np.array([(mass(gains.mean + s) - mass(gains.mean - s)) / (2 * s.max()) for s in steps])
            std = float(np.sqrt(std**2 + slope @ gains.covariance @ slope))
            out.append({"gains": method, "unloaded": name, "mass_kg": found, "std_kg": std})
            out[-1]["error_percent"] = 100 * (found / OTHER_MASS - 1)
            print(out[-1], flush=True)
    return out


class Frozen:
    """Runs with columns kept, so that draws change only the current: exact and fast."""

    def __init__(self, runs):
        self.runs_, self.model, self.size = runs, runs.model, runs.size
        self.runs, self.count, self.known = runs.runs, runs.count, runs.known
        self.names, self.units, self.kinds, self.sets, self.loads = runs.names, runs.units, runs.kinds, runs.sets, runs.loads
        self.load_columns = runs.load_columns
        chunks = list(runs.chunks())
        self._columns = [c.columns for c in chunks]
        self._weights, self._starts = [c.weight for c in chunks], [c.starts_run for c in chunks]
        columns = np.concatenate(self._columns, axis=2)
        self._used = [np.any(columns[j] != 0, axis=1) for j in range(len(columns))]
        self._qr = [np.linalg.qr(columns[j][used].T) for j, used in enumerate(self._used)]
        self.effort = None

    def with_current(self, current):
        """`current` (N, n) over all runs."""
        self.effort = current.T
        n, p = len(self._qr), self.size
        factors = np.zeros((n, p + 1, p + 1))
        for j, (used, (q, r)) in enumerate(zip(self._used, self._qr)):
            inside = q.T @ self.effort[j]
            at = np.append(np.flatnonzero(used), p)
            rest = np.sqrt(max(self.effort[j] @ self.effort[j] - inside @ inside, 0.0))
            block = np.zeros((len(r) + 1, len(r) + 1))
            block[:-1, :-1], block[:-1, -1], block[-1, -1] = r, inside, rest
            factors[j][np.ix_(range(len(block)), at)] = block
        return Information(factors, np.full(n, float(self.effort.shape[1])))

    def chunks(self):
        first = 0
        for columns, weight, starts in zip(self._columns, self._weights, self._starts):
            last = first + columns.shape[2]
            yield Chunk(columns, self.effort[:, first:last], np.ones_like(weight), starts)
            first = last


def simulation(draws=400):
    """Bias and coverage over `draws` of AR(1) current noise, 0.9 per 20 ms sample, on a motion of twelve harmonics."""
    sys.path.insert(0, str(HERE.parents[1]))
    from bayesid.simulation.synthetic import autocorrelated
    from tests.gains import conftest as truth

    model = Model(load_robot("ur10e"), "coulomb-offset")
    rng = np.random.default_rng(5)
    parameters = model.nominal.copy()
    parameters[60:66] = rng.uniform(0.5, 3.0, 6)
    parameters[66:] = np.column_stack([rng.uniform(3, 9, 6), rng.uniform(3, 9, 6), rng.normal(0, 0.5, 6)]).ravel()
    loaded = parameters.copy()
    loaded[50:60] += truth.PAYLOAD
    clock, q, qd, qdd = truth.motion(3, samples=1500, step=0.02)
    samples = Samples(clock, q, qd, qdd, np.zeros_like(q), "current")
    runs = GainRuns(model, (samples, samples), (None, 0), (Load(truth.MASS),), (0, 0))
    frozen = Frozen(runs)
    clean = np.concatenate([model.torque(p, q, qd, qdd) for p in (parameters, loaded)]) / truth.GAINS
    found = {"ml": [], "ls": []}
    hits, widths = [], []
    started = time.monotonic()
    for draw in range(draws):
        noise = np.random.default_rng(1000 + draw)
        parts = [autocorrelated(noise, q.shape, truth.NOISE, 0.9) for _ in range(2)]
        information = frozen.with_current(clean + np.concatenate(parts))
        fit = ml(frozen, None, information)
        estimate = estimate_of(fit, frozen, information, HAC())
        low, high = estimate.interval(0.95)[:6].T
        hits.append((low < truth.GAINS) & (high > truth.GAINS))
        widths.append((high - low) / 2 / truth.GAINS)
        found["ml"].append(fit.gains)
        found["ls"].append(ls(frozen, None, information).gains)
    print(f"{draws} draws in {time.monotonic() - started:.0f} s")
    result = {
        "draws": draws,
        "coverage95": np.mean(hits, axis=0).tolist(),
        "coverage95_all": float(np.mean(hits)),
        "half_width_percent": (100 * np.mean(widths, axis=0)).tolist(),
    }
    for name, gains in found.items():
        gains = np.array(gains) / truth.GAINS
        result[f"bias_percent_{name}"] = (100 * (gains.mean(axis=0) - 1)).tolist()
        result[f"std_percent_{name}"] = (100 * gains.std(axis=0)).tolist()
    print(json.dumps(result, indent=1))
    return result


def kinova():
    """Gain from the current against the joint torque sensor, joints 2 to 7 of RunTrajectory1 and 1 to 7 of the test log."""
    from scipy.signal import butter, filtfilt

    folder = DATA / "kinova_gen3" / "from_history" / "pyDynaMapp" / "data" / "kinova"
    told = np.array([9.13, 9.13, 9.13, 9.13, 5.85, 5.85, 5.85])
    out = []
    for name in ("identification_data/RunTrajectory1.csv.gz", "validation_data/opti_traj_testing1.csv.gz"):
        try:
            recorded = read_log(str(folder / name), "kinova-gen3-sensor")
        except BayesidError:
            recorded = read_log(str(folder / name), "kinova-gen3-sensor", drop_bad_rows=True)
        step = float(np.median(np.diff(recorded.time)))
        b, a = butter(4, 2 * 8.0 * step)
        torque, current, velocity = (filtfilt(b, a, x, axis=0) for x in (recorded.torque, recorded.current, recorded.velocity))
        for j in range(7):
            entry = {"log": Path(name).name, "joint": j + 1, "stated": float(told[j])}
            try:
                found = sensor_gain(torque[:, j], current[:, j], velocity[:, j], step)
                entry |= {
                    "gain": found.gain,
                    "std": found.std,
                    "without_friction": found.without_friction,
                    "coulomb_Nm": float(found.friction[1]),
                }
            except BayesidError as error:
                entry["refused"] = str(error)
            out.append(entry)
            print(entry, flush=True)
    return out


def line(entry):
    cells = [
        f"{k:.2f} [{low:.2f}, {high:.2f}]{'' if np.isnan(c) else f' {p:+.1f} %' + (' covers' if covers else '')}"
        for k, (low, high), p, covers, c in zip(
            entry["gains"], entry["interval95"], entry["from_controller_percent"], entry["covers_controller"], CONTROLLER
        )
    ]
    return f"| {entry['name']} | " + " | ".join(cells) + " |"


def markdown(part, result):
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    text = [f"`python experiments/ur10e_drive_gains/run.py {part}`, {date}", ""]
    if part == "real":
        text += ["Drive gains [N m/A] with 95 % intervals, and the difference from the controller's constants.", ""]
        text += ["| | joint 1 | joint 2 | joint 3 | joint 4 | joint 5 | joint 6 |", "|---" * 7 + "|"]
        text += [f"| published | {' | '.join(f'{k:.2f}' for k in PUBLISHED)} |"]
        text += [f"| controller | {' | '.join('' if np.isnan(k) else f'{k:.2f}' for k in CONTROLLER)} |"]
        text += [line(entry) for entry in result["rows"]]
        text += [""] + [f"- {e['name']}, {j}: {w}" for e in result["rows"] for j, w in e["undetermined"].items()]
        text += [
            "",
            "What a controller states is the motor's constant: the drive gain up to how the gear's loss splits between driving",
        ]
        text += ["and being driven back, which lies within plus and minus the load friction. 95 % intervals:", ""]
        text += ["| | joint 1 | joint 2 | joint 3 | joint 4 | joint 5 | joint 6 |", "|---" * 7 + "|"]
        for entry in (e for e in result["rows"] if e["motor_constants"]):
            found = entry["motor_constants"]
            marks = [
                "" if np.isnan(k) else " covers" if c else " misses" for k, c in zip(CONTROLLER, found["covers_controller"])
            ]
            cells = [f"[{low:.2f}, {high:.2f}]{mark}" for (low, high), mark in zip(found["interval95"], marks)]
            losses = [f"{m:.3f} +- {s:.3f}" for m, s in zip(found["load_friction"], found["load_friction_std"])]
            text += [f"| {entry['name']} | {' | '.join(cells)} |", f"| load friction | {' | '.join(losses)} |"]
        text += ["", "Difference of the two pairs in standard deviations, joints 1 to 6:", ""]
        text += [f"- ml, {k}: {', '.join(f'{z:.2f}' for z in v)}" for k, v in result["agreement_z"].items()]
    elif part == "payload":
        text += [f"Mass of the load in `{OTHER}`, weighed {OTHER_MASS} kg, with the gains of the 14-harmonic pair.", ""]
        text += ["| gains by | unloaded run | mass [kg] | error |", "|---|---|---|---|"]
        text += [
            f"| {m['gains']} | {m['unloaded']} | {m['mass_kg']:.3f} +- {m['std_kg']:.3f} | {m['error_percent']:+.1f} % |"
            for m in result
        ]
    elif part == "simulation":
        text += [f"{result['draws']} draws of AR(1) current noise, 0.9 per 20 ms sample, UR10e, two runs of 30 s.", ""]
        text += ["| | joint 1 | joint 2 | joint 3 | joint 4 | joint 5 | joint 6 |", "|---" * 7 + "|"]
        for key in ("bias_percent_ml", "bias_percent_ls", "std_percent_ml", "std_percent_ls", "half_width_percent"):
            text += [f"| {key} | " + " | ".join(f"{v:.2f}" for v in result[key]) + " |"]
        text += ["| coverage95 | " + " | ".join(f"{100 * v:.0f} %" for v in result["coverage95"]) + " |"]
        text += ["", f"Coverage of 95 % intervals over all joints: {100 * result['coverage95_all']:.1f} %."]
    else:
        text += [
            "Sensor torque against current, 8 Hz. The motor also drives friction between it and the sensor. Left out of the",
            "fit, friction passes for gain: far too low where it takes most of the current, too high where the load helps the",
            "motor against it. Joints 5 and 7 carry almost no load in these motions: their gain stays open.",
            "",
        ]
        text += ["| log | joint | gain with friction | without | Coulomb friction [N m] | stated constant |", "|---" * 6 + "|"]
        for e in result:
            if "refused" in e:
                text += [f"| {e['log']} | {e['joint']} | {e['refused']} | | | {e['stated']} |"]
            else:
                text += [
                    f"| {e['log']} | {e['joint']} | {e['gain']:.2f} +- {e['std']:.2f} | {e['without_friction']:.2f} "
                    f"| {e['coulomb_Nm']:.2f} | {e['stated']} |"
                ]
    return "\n".join(text) + "\n"


def main():
    parts = sys.argv[1:] or ["real", "payload", "simulation", "kinova"]
    file = HERE / "results.json"
    for part in parts:
        found = {"real": real, "payload": payload, "simulation": simulation, "kinova": kinova}[part]()
        results = json.loads(file.read_text()) if file.exists() else {}
        results[part] = found
        (HERE / f"{part}.md").write_text(markdown(part, results[part]))
        file.write_text(json.dumps(results, indent=1).replace("NaN", "null"))


if __name__ == "__main__":
    main()
