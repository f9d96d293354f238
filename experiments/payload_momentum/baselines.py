"""The estimators of the literature beside the joint estimator on one case of the study.

    python experiments/payload_momentum/baselines.py --reference payload_momentum.toml [--draws 4]

Object 1, range 0.05, three noise levels: median absolute error of mass, centre of mass and inertia [%], the root mean square of
error over standard deviation (1 when intervals hold), and CPU seconds per estimate. Writes baselines.json and baselines.md.
"""

import argparse
import datetime
import json
import os
import time
from pathlib import Path

import numpy as np
from physics import object_parameters, reference, simulate

from bayesid.payload import (
    SensorNoise,
    WrenchRecord,
    about_com,
    extended_kalman_filter,
    integrated_least_squares,
    joint_estimate,
    least_squares,
    momentum_estimate,
    recursive_least_squares,
    total_least_squares,
)
from bayesid.robots import load_robot

ESTIMATORS = (
    joint_estimate,
    momentum_estimate,
    integrated_least_squares,
    least_squares,
    recursive_least_squares,
    total_least_squares,
    extended_kalman_filter,
)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", default=os.environ.get("BAYESID_REFERENCE", "payload_momentum.toml"))
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1986)
    parser.add_argument("--out", default=str(Path(__file__).parent))
    args = parser.parse_args(argv)
    tables = reference(args.reference)
    mass, com, inertia = object_parameters(tables["object1"])
    truth = np.concatenate([[mass], com, inertia[np.triu_indices(3)]])
    motion, *ideal = simulate(load_robot("ur16e"), (mass, com, inertia), 0.05)
    rows = []
    for level, entry in tables["noise"].items():
        noise = SensorNoise(entry["angular_velocity"], entry["force"], entry["torque"])
        rng = np.random.default_rng(args.seed)
        scales = (noise.force, noise.moment, noise.angular_velocity)
        records = [
            WrenchRecord(motion, *(x + s * rng.standard_normal(x.shape) for x, s in zip(ideal, scales)))
            for _ in range(args.draws)
        ]
        for estimator in ESTIMATORS:
            about_com(estimator(records[0], noise))
            start = time.process_time()
            found = [about_com(estimator(record, noise)) for record in records]
            seconds = (time.process_time() - start) / args.draws
            error = np.array([100 * np.abs(f.mean / truth - 1) for f in found])
            z = np.array([(f.mean - truth) / f.std for f in found])
            rows.append(
                {
                    "noise": level,
                    "estimator": found[0].method,
                    "mass": float(np.median(error[:, 0])),
                    "com": float(np.median(error[:, 1:4])),
                    "inertia": float(np.median(error[:, 4:])),
                    "z_rms": float(np.sqrt(np.mean(z**2))),
                    "cpu_seconds": seconds,
                }
            )
            print(rows[-1], flush=True)
    date = datetime.date.today().isoformat()
    command = f"python experiments/payload_momentum/baselines.py --draws {args.draws} --seed {args.seed}"
    lines = ["# Payload estimators side by side", "", f"`{command}`, {date}. Object 1, range 0.05.", ""]
    lines += ["| noise | estimator | mass % | com % | inertia % | rms error/std | CPU s |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(
            f"| {r['noise']} | {r['estimator']} | {r['mass']:.3f} | {r['com']:.2f} | {r['inertia']:.2f} | {r['z_rms']:.3g} | "
            f"{r['cpu_seconds']:.3f} |"
        )
    out = Path(args.out)
    (out / "baselines.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / "baselines.json").write_text(
        json.dumps({"command": command, "date": date, "rows": rows}, indent=1), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
