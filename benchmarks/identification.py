"""Whole identification: this project against Pinocchio in a Python loop plus NumPy least squares, in one run.

    python benchmarks/identification.py [--robot ur10e] [--samples 3000 30000] [--repeats 3]

Both get the same simulated samples and the same choice of base parameters, and both must find the same ordinary least
squares estimate. The last columns show what the default job adds: weights, Newey-West intervals, physical consistency.
On a busy machine set OPENBLAS_NUM_THREADS=1: BLAS threads that wait for a core distort both sides.
"""

import argparse
import time

import numpy as np
import pinocchio

from bayesid.models import Model
from bayesid.regression import Observations, identify, ols
from bayesid.robots import load_robot
from bayesid.signals import Samples


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="ur10e", help="a built-in name or a robot file")
    parser.add_argument("--samples", type=int, nargs="+", default=[3000, 30000])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    model = Model(load_robot(arguments.robot))
    started = time.perf_counter()
    dimension = model.base.dimension
    print(
        f"{model.robot.name}: {dimension} base parameters (chosen in {time.perf_counter() - started:.2f} s, for both); "
        f"best of {arguments.repeats}, seconds"
    )
    print(
        f"{'samples':>8} {'first fit':>10} {'fit':>7} {'Pinocchio + NumPy':>18} {'ratio':>6} {'default job':>12} {'ratio':>6}"
    )
    for count in arguments.samples:
        samples = simulated(model, count)
        started = time.perf_counter()
        beta = ols(Observations(model, (samples,))).beta
        first = time.perf_counter() - started
        np.testing.assert_allclose(beta, by_numpy(model, samples), rtol=1e-6, atol=1e-8)
        jobs = (
            lambda samples=samples: ols(Observations(model, (samples,))),
            lambda samples=samples: by_numpy(model, samples),
            lambda samples=samples: identify(model, samples),
        )
        best = np.full(3, np.inf)
        for _ in range(arguments.repeats):
            for k, job in enumerate(jobs):
                started = time.perf_counter()
                job()
                best[k] = min(best[k], time.perf_counter() - started)
        print(
            f"{count:8d} {first:10.2f} {best[0]:7.3f} {best[1]:18.3f} {best[0] / best[1]:6.2f} "
            f"{best[2]:12.2f} {best[2] / best[1]:6.2f}",
            flush=True,
        )


def simulated(model, count):
    """A slow sum of sines on every joint, with 1 % of torque noise."""
    rng = np.random.default_rng(0)
    n = model.robot.dof
    time_ = 0.01 * np.arange(count)
    speed, amplitude, phase = rng.uniform(0.3, 3.0, (4, n)), rng.uniform(0.1, 0.5, (4, n)), rng.uniform(0, 6, (4, n))
    angle = time_[:, None, None] * speed + phase
    q = np.sum(amplitude * np.sin(angle), axis=1)
    qd = np.sum(amplitude * speed * np.cos(angle), axis=1)
    qdd = -np.sum(amplitude * speed**2 * np.sin(angle), axis=1)
    parameters = model.nominal.copy()
    parameters[np.array(model.kinds) != "link"] = 1.0
    torque = model.torque(parameters, q, qd, qdd)
    torque = torque + 0.01 * np.abs(torque).mean(axis=0) * rng.normal(size=torque.shape)
    return Samples(time=time_, q=q, qd=qd, qdd=qdd, effort=torque, effort_kind="torque")


def by_numpy(model, samples):
    """Base parameters as commonly computed: one stacked matrix, filled by a loop, and a least-squares solver."""
    robot = model.robot
    n, count = robot.dof, len(samples.time)
    engine = pinocchio_model(robot)
    data = engine.createData()
    order = np.argsort([0, 1, 2, 3, 4, 5, 7, 6, 8, 9])  # Pinocchio has Iyy before Ixz
    order = np.concatenate([10 * link + order for link in range(n)])
    stack = np.zeros((count, n, model.size))
    for k in range(count):
        stack[k, :, : 10 * n] = pinocchio.computeJointTorqueRegressor(
            engine, data, samples.q[k], samples.qd[k], samples.qdd[k]
        )[:, order]
    for j in range(n):
        stack[:, j, 10 * n + j] = samples.qdd[:, j]
        at = 11 * n + 3 * j
        stack[:, j, at], stack[:, j, at + 1], stack[:, j, at + 2] = samples.qd[:, j], np.sign(samples.qd[:, j]), 1.0
    columns = stack.reshape(count * n, -1)[:, model.base.independent]
    return np.linalg.lstsq(columns, samples.effort.reshape(-1), rcond=None)[0]


def pinocchio_model(robot):
    model = pinocchio.Model()
    model.gravity.linear = np.array(robot.gravity)
    for joint in robot.joints:
        kind = pinocchio.JointModelPrismaticUnaligned if joint.kind == "prismatic" else pinocchio.JointModelRevoluteUnaligned
        kind = pinocchio.JointModelRZ() if joint.kind != "prismatic" and joint.axis == (0, 0, 1) else kind(np.array(joint.axis))
        placement = pinocchio.SE3(np.reshape(joint.rotation, (3, 3)), np.array(joint.xyz))
        model.addJoint(joint.parent + 1, kind, placement, joint.name)
    return model


if __name__ == "__main__":
    main()
