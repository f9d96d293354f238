"""Weighed payloads of a real UR10e from its motor currents.

    python experiments/payload_momentum/ur10e.py --data DIR [--out experiments/payload_momentum]

DIR holds ur10e_innopolis (default: BAYESID_DATA). Three loaded recordings, each with a model from an unloaded one: of the same
day where there is one; the load of 2020-01-13 has none, its model comes from the longest unloaded recording. Gains are
those of the controller (target moment over target current; joints 1 and 6, which have no such figure, take those of the
joints of the same size), then those that `bayesid drive-gains` estimates from the pair of 2020-01-31. Friction is the
sublinear law that drive-gains takes by default, for the gains and for the models alike.
"""

import argparse
import datetime
import json
import os
import sys
from pathlib import Path

import numpy as np

from bayesid.gains import GainRuns, Load, estimate_gains, gain_friction
from bayesid.logs import read_log
from bayesid.models import Model
from bayesid.payload import about_com, payload_from_difference, payload_from_torques
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log

CONTROLLER = np.array([11.976, 11.976, 9.839, 10.762, 10.762, 10.762])
FOLDER = "dataset_ur10e/identification_data"
CASES = (
    ("2020-02-19", "ur-20_02_19_14harm50sec.csv@195:4966", "ur-20_02_19_14harm50secLoad.csv@308:5071", 2.805, True),
    ("2020-01-31", "ur-20_01_31-unload.csv@300:2623", "ur-20_01_31-load.csv@370:2881", 2.805, True),
    ("2020-01-13", "ur-20_02_19_14harm50sec.csv@195:4966", "ur-20_01_13-load_2600.csv@250:2274", 2.602, False),
)


class Recordings:
    """Samples by file and window, read once."""

    def __init__(self, root):
        self._folder = Path(root) / "ur10e_innopolis" / FOLDER
        self._known = {}

    def __call__(self, name):
        if name not in self._known:
            self._known[name] = samples_from_log(read_log(f"{self._folder / name}", "ur10e-innopolis"))
        return self._known[name]


def model_of_the_robot():
    """The UR10e with the friction law of drive-gains."""
    return Model(load_robot("ur10e"), gain_friction("sublinear"))


def estimated_gains(read):
    """Gains of `bayesid.gains` from the pair of 2020-01-31 and its weighed load."""
    _, unloaded, loaded, mass, _ = CASES[1]
    model = model_of_the_robot()
    return estimate_gains(GainRuns(model, (read(unloaded), read(loaded)), (None, 0), (Load(mass),)))


def row(case, label, weighed, estimate):
    """One line of the table."""
    about = about_com(estimate)
    low, high = about.interval(0.95)[0]
    return {
        "recording": case,
        "method": label,
        "weighed_kg": weighed,
        "estimate_kg": float(about.mean[0]),
        "interval95_kg": [float(low), float(high)],
        "error_percent": float(100 * (about.mean[0] / weighed - 1)),
        "covers": bool(low <= weighed <= high),
        "com_m": about.mean[1:4].tolist(),
        "com_std_m": about.std[1:4].tolist(),
    }


def study(read, tell=print):
    """Rows of the table."""
    model = model_of_the_robot()
    rows = []
    for case, unloaded, loaded, weighed, _ in CASES:
        rows.append(
            row(case, "controller gains", weighed, payload_from_torques(model, read(unloaded), read(loaded), gains=CONTROLLER))
        )
        tell(rows[-1])
    case, unloaded, loaded, weighed, _ = CASES[0]
    pair = read(unloaded), read(loaded)
    rows.append(
        row(case, "controller gains, difference of two runs", weighed, payload_from_difference(model, *pair, gains=CONTROLLER))
    )
    tell(rows[-1])
    gains = estimated_gains(read)
    for case, unloaded, loaded, weighed, _ in (CASES[0], CASES[2]):
        rows.append(
            row(case, "estimated gains", weighed, payload_from_torques(model, read(unloaded), read(loaded), gains=gains))
        )
        tell(rows[-1])
    return rows


def markdown(rows, command, date):
    """The table as text."""
    lines = ["# Weighed payloads of a UR10e from its motor currents", "", f"`{command}`, {date}.", ""]
    lines += [
        "| recording | method | weighed | estimate | 95 % interval | error | covers | centre of mass |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        com = ", ".join(f"{x:.3f}" for x in r["com_m"])
        low, high = r["interval95_kg"]
        lines.append(
            f"| {r['recording']} | {r['method']} | {r['weighed_kg']} kg | {r['estimate_kg']:.3f} kg | "
            f"{low:.3f} to {high:.3f} | "
            f"{r['error_percent']:+.1f} % | {'yes' if r['covers'] else 'no'} | ({com}) m |"
        )
    lines += ["", "The centre of mass is in the last link's frame; it was not measured."]
    return "\n".join(lines) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("BAYESID_DATA", "."))
    parser.add_argument("--out", default=str(Path(__file__).parent))
    args = parser.parse_args(argv)
    rows = study(
        Recordings(args.data), tell=lambda r: print(r["recording"], r["method"], r["estimate_kg"], file=sys.stderr, flush=True)
    )
    date, command = datetime.date.today().isoformat(), "python experiments/payload_momentum/ur10e.py"
    out = Path(args.out)
    (out / "ur10e.json").write_text(json.dumps({"command": command, "date": date, "rows": rows}, indent=1), encoding="utf-8")
    text = markdown(rows, command, date)
    (out / "ur10e.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
