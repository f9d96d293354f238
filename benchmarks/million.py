"""One million samples in one pass: seconds per sample and peak memory of the compression, each size in a fresh process.

    python benchmarks/million.py [--robot ur10e] [--samples 125000 250000 500000 1000000]

The log is simulated piece by piece, as one larger than memory is read; nothing of it is kept but the factors. Time is
CPU time of the pass, memory the process's greatest resident size, interpreter and compiler included.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
PIECE = 50_000
LIMIT_MB = 1500


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="ur10e", help="a built-in name or a robot file")
    parser.add_argument("--samples", type=int, nargs="+", default=[125_000, 250_000, 500_000, 1_000_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(arguments.robot, arguments.one)))
        return 0
    print(f"{'samples':>9} {'pass [s]':>9} {'us/sample':>10} {'solve [s]':>10} {'peak [MB]':>10}")
    rows = []
    for count in arguments.samples:
        command = [sys.executable, os.path.abspath(__file__), "--robot", arguments.robot, "--one", str(count)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        row = json.loads(done.stdout)
        rows.append(row)
        each = 1e6 * row["pass_s"] / count
        print(f"{count:9d} {row['pass_s']:9.2f} {each:10.2f} {row['solve_s']:10.3f} {row['peak_mb']:10.0f}", flush=True)
    each = [row["pass_s"] / row["samples"] for row in rows]
    peak = max(row["peak_mb"] for row in rows)
    print(f"time per sample differs by {max(each) / min(each) - 1:.0%} over the sizes; greatest memory {peak:.0f} MB")
    return 0 if peak < LIMIT_MB else 1


def one(name, count):
    """Compress `count` samples of robot `name`, then fit; CPU seconds and peak memory."""
    import numpy as np

    from bayesid.models import Model
    from bayesid.regression import Observations, compress
    from bayesid.robots import load_robot

    model = Model(load_robot(name))
    beta = model.base.project(model.nominal)
    information = None
    warm = piece(model, beta, 0, 2000)
    compress(Observations(model, (warm,)))
    spent = 0.0
    for number, start in enumerate(range(0, count, PIECE)):
        samples = piece(model, beta, number, min(PIECE, count - start))
        began = time.process_time()
        part = compress(Observations(model, (samples,)))
        information = part if information is None else information + part
        spent += time.process_time() - began
    began = time.process_time()
    factor, right = information.stacked(np.ones(model.robot.dof))
    found = np.linalg.solve(factor, right)
    solve = time.process_time() - began
    np.testing.assert_allclose(found, beta, atol=0.2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"samples": count, "pass_s": spent, "solve_s": solve, "peak_mb": peak}


def piece(model, beta, number, count):
    """Samples of random states with white torque noise; the rows of different numbers differ."""
    import numpy as np

    from bayesid.signals import Samples

    rng = np.random.default_rng(number)
    shape = (count, model.robot.dof)
    q, qd, qdd = rng.uniform(-3, 3, shape), rng.normal(0, 1, shape), rng.normal(0, 2, shape)
    torque = np.empty(shape)
    for rows, columns in model.chunks(q, qd, qdd, columns=model.base.independent):
        torque[rows] = np.tensordot(beta, columns, axes=(0, 1)).T
    return Samples(0.01 * np.arange(count), q, qd, qdd, torque + rng.normal(0, 1, shape), "torque")


if __name__ == "__main__":
    sys.exit(main())
