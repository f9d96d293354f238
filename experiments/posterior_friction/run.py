"""Which friction law does each joint of the UR10e follow? One-joint-at-a-time logs, block cross-validation.

BAYESID_DATA=... python experiments/posterior_friction/run.py
"""

import datetime
import json
import os
import sys
from pathlib import Path

import numpy as np

from bayesid.logs import read_log
from bayesid.models import Model
from bayesid.posterior import candidates, compare_friction, load_dependent
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log

GAINS = np.array([10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232])


def main():
    root = Path(os.environ.get("BAYESID_DATA", Path(__file__).parents[3] / "shared" / "datasets"))
    folder = root / "ur10e_innopolis" / "dataset_ur10e" / "jointwise_motion"
    runs = [samples_from_log(read_log(path, "ur10e-innopolis")) for path in sorted(folder.glob("*.csv"))]
    robot = load_robot("ur10e")
    laws = (*candidates(), load_dependent(Model(robot)))
    found = compare_friction(robot, runs, gains=GAINS, laws=laws, blocks=10)
    head, rows = found.table()
    date = datetime.date.today().isoformat()
    command = "python experiments/posterior_friction/run.py " + " ".join(sys.argv[1:])
    lines = ["# Friction laws of the UR10e", "", f"`{command.strip()}`, {date}", ""]
    lines += [
        "Expected log predictive density per joint [nats, corrected for autocorrelation], difference to the joint's best law",
        "(standard error over ten blocks). The published drive gains are used; joint 6 has no log of its own.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "Held-out RMS [N m]:",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *(
            "| " + " | ".join([name, *(f"{v:.3f}" if np.isfinite(v) else "-" for v in row)]) + " |"
            for name, row in zip(found.names, found.rms)
        ),
        "",
        f"Chosen for the whole robot: {found.reason}.",
    ]
    out = Path(__file__).parent
    (out / "results.md").write_text("\n".join(lines) + "\n")
    clean = lambda a: [[None if not np.isfinite(v) else float(v) for v in row] for row in a]  # noqa: E731
    content = {
        "command": command,
        "date": date,
        "laws": found.names,
        "difference": clean(found.difference),
        "standard_error": clean(found.error),
        "rms": clean(found.rms),
        "best": found.best,
        "chosen": found.chosen,
        "reason": found.reason,
    }
    (out / "results.json").write_text(json.dumps(content, indent=1) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
