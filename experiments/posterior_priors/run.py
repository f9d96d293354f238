"""Wishart and log-Cholesky priors on the 50 s UR10e log: how well chains mix, what they cost, how far the answers differ.

BAYESID_DATA=... python experiments/posterior_priors/run.py
"""

import datetime
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from bayesid.logs import read_log
from bayesid.models import Model
from bayesid.posterior import NUTS, LogCholesky, Wishart, soften
from bayesid.posterior.posterior import likelihood_of
from bayesid.posterior.prior import pseudo
from bayesid.regression import Observations
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log

GAINS = np.array([10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232])
LOG = "ur-20_02_12-50sec_12harm.csv@355:5090"
PRIORS = {
    "Wishart, 12 points": Wishart(),
    "log-Cholesky 0.3,0.15,0.2": LogCholesky(),
    "log-Cholesky 0.4,0.2,0.3": LogCholesky(0.4, 0.2, 0.3, 0.55),
}
LIKELIHOODS = ("calibrated", "autoregressive", "white")


def main():
    root = Path(os.environ.get("BAYESID_DATA", Path(__file__).parents[3] / "shared" / "datasets"))
    model = Model(load_robot("ur10e"))
    path = root / "ur10e_innopolis" / "dataset_ur10e" / "identification_data" / LOG
    observations = Observations(model, (samples_from_log(read_log(str(path), "ur10e-innopolis")),), GAINS)
    rows = []
    for kind in LIKELIHOODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            likelihood = likelihood_of(observations, kind)
        reference = None
        for name, prior in PRIORS.items():
            target, conflicts = soften(prior.of(model).target(likelihood))
            NUTS().run(target)
            clock = time.process_time()
            found = NUTS(seed=1).run(target)
            seconds = time.process_time() - clock
            flat = found.parameters.reshape(-1, model.size)
            base = model.base.project(flat)
            reference = base if reference is None else reference
            shift = np.abs(base.mean(axis=0) - reference.mean(axis=0)) / reference.std(axis=0)
            smallest = np.linalg.eigvalsh(pseudo(flat[:, : 10 * model.robot.dof].reshape(-1, model.robot.dof, 10))).min()
            rows.append(
                {
                    "likelihood": kind,
                    "prior": name,
                    **found.diagnostics.to_dict(),
                    "cpu_seconds_compiled": seconds,
                    "conflicts": [c.link for c in conflicts],
                    "median_shift": float(np.median(shift)),
                    "largest_shift": float(shift.max()),
                    "consistent": bool(smallest > 0),
                }
            )
    out = Path(__file__).parent
    date, command = datetime.date.today().isoformat(), "python experiments/posterior_priors/run.py " + " ".join(sys.argv[1:])
    (out / "results.json").write_text(json.dumps({"command": command, "date": date, "rows": rows}, indent=1) + "\n")
    lines = ["# Two kinds of priors on the 50 s UR10e log", "", f"`{command.strip()}`, {date}", ""]
    lines.append(
        f"NUTS with 4 chains of {NUTS().warmup} warm-up steps and {NUTS().draws} draws. Processor time of a second run, "
        "compiled. Shift of the"
    )
    lines += ["mean of base parameters from the Wishart prior's, in its standard deviations: median and largest.", ""]
    head = ("likelihood", "prior", "divergences", "R-hat", "ESS bulk, tail", "rejected", "CPU s", "shift", "links softened")
    lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        lines.append(
            f"| {row['likelihood']} | {row['prior']} | {row['divergences']} | {row['max_rhat']:.3f} | "
            f"{row['min_ess_bulk']:.0f}, {row['min_ess_tail']:.0f} | {100 * row['rejected']:.2f} % | "
            f"{row['cpu_seconds_compiled']:.1f} | {row['median_shift']:.2f}, {row['largest_shift']:.2f} | "
            f"{len(row['conflicts'])} |"
        )
    lines += ["", f"Every draw physically consistent: {all(row['consistent'] for row in rows)}."]
    (out / "results.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
