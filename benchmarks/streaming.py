"""Streaming payload estimation: cost of one more sample, alone and in a scan, against solving anew and the sensor's period.

python benchmarks/streaming.py [--rate 1000] [--repeats 5]
"""

import argparse
import time

import jax
import numpy as np

from bayesid.payload import EstimationMotion, PayloadStream, SensorNoise, from_com, joint_estimate, samples_of
from bayesid.payload.simulation import simulated_record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=1000.0, help="samples a second")
    parser.add_argument("--repeats", type=int, default=5, help="each figure is the best of so many")
    arguments = parser.parse_args()
    payload = np.asarray(from_com([2.0, 0.02, -0.01, 0.08, 0.01, 0.0, 0.0, 0.01, 0.0, 0.01]))
    noise = SensorNoise(0.5e-3, 0.1, 5e-3)
    record = simulated_record(EstimationMotion(), payload, noise, arguments.rate)
    stream = PayloadStream(noise, 1.0 / arguments.rate, tuple(payload))
    samples = samples_of(record)
    rows = [jax.tree.map(lambda x, k=k: x[k], samples) for k in range(500)]

    def alone():
        state = stream.start(rows[0])
        for row in rows[1:]:
            state, reading = stream.update(state, row)
        jax.block_until_ready(reading)

    jobs = {
        "in a scan": (lambda: jax.block_until_ready(stream.run(record)), len(record) - 1),
        "alone": (alone, len(rows) - 1),
        "all samples anew": (lambda: joint_estimate(record, noise, assumed=payload), 1),
    }
    print(f"{len(record)} samples at {arguments.rate:g} Hz, best of {arguments.repeats}")
    print(f"{'one more sample':>18} {'wall us':>9} {'processor us':>13} {'of the period':>14} {'of solving anew':>16}")
    found = {name: best(job, count, arguments.repeats) for name, (job, count) in jobs.items()}
    whole = found["all samples anew"][0]
    for name, (wall, processor) in found.items():
        print(f"{name:>18} {wall:9.1f} {processor:13.1f} {1e-6 * wall * arguments.rate:14.3f} {wall / whole:16.5f}")


def best(job, count, repeats):
    """Least wall clock and processor time of one unit of a job [us]; the first run, which compiles, does not count."""
    job()
    times = []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        job()
        times.append((time.perf_counter() - wall, time.process_time() - processor))
    return tuple(1e6 * min(column) / count for column in zip(*times))


if __name__ == "__main__":
    main()
