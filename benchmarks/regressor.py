"""Joint-torque regressor: time per sample of this project against a Python loop around Pinocchio, in one run.

    python benchmarks/regressor.py [--robot ur10] [--batch 250 1000 4000] [--samples 8000] [--repeats 7]

The contestants are timed in turn and each figure is the best of the repeats, so that other work on the machine counts
least; the processor time beside it counts both cores and depends less still on who else is running.
"""

import argparse
import time

import jax
import numpy as np
import pinocchio

from bayesid.dynamics import joint_regressor, joint_regressor_blocks
from bayesid.robots import load_robot


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="ur10", help="a built-in name or a robot file")
    parser.add_argument("--batch", type=int, nargs="+", default=[250, 1000, 4000], help="samples per call")
    parser.add_argument("--samples", type=int, default=8000, help="samples per repeat")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    robot = load_robot(arguments.robot)
    print(
        f"{robot.name}: {robot.dof} joints, {arguments.samples} samples, best of {arguments.repeats}, us per sample: "
        "wall clock (processor)"
    )
    print(f"{'batch':>6} {'compile':>8} {'regressor':>14} {'nonzero blocks':>15} {'Pinocchio loop':>15} {'ratios':>13}")
    for batch in arguments.batch:
        compiling, figures = compare(robot, batch, arguments.samples, arguments.repeats)
        texts = [f"{wall:.2f} ({processor:.2f})" for wall, processor in figures]
        ratios = " ".join(f"{figures[k][0] / figures[2][0]:.2f}" for k in (0, 1))
        print(f"{batch:6d} {compiling:6.2f} s {texts[0]:>14} {texts[1]:>15} {texts[2]:>15} {ratios:>13}", flush=True)


def compare(robot, batch, samples, repeats):
    """Seconds to compile, and (wall clock, processor) us per sample of the regressor, its blocks and Pinocchio's."""
    rows = np.random.default_rng(0).normal(size=(samples // batch, 3, batch, robot.dof))
    chunks = [tuple(np.ascontiguousarray(part.T) for part in row) for row in rows]
    dense, blocks = (jax.jit(function, static_argnums=0) for function in (joint_regressor, joint_regressor_blocks))
    started = time.perf_counter()
    first = dense(robot, *chunks[0]).block_until_ready()
    compiling = time.perf_counter() - started
    model = pinocchio_model(robot)
    data = model.createData()
    stack = np.empty((batch, robot.dof, 10 * robot.dof))

    def loop(row):
        for k, (q, qd, qdd) in enumerate(zip(*row)):
            stack[k] = pinocchio.computeJointTorqueRegressor(model, data, q, qd, qdd)

    loop(rows[0])
    np.testing.assert_allclose(np.moveaxis(first, -1, 0), reordered(stack), atol=1e-10)
    blocks(robot, *chunks[0]).block_until_ready()
    jobs = (
        lambda: stream(dense, robot, chunks),
        lambda: stream(blocks, robot, chunks),
        lambda: [loop(row) for row in rows],
    )
    best = np.full((3, 2), np.inf)
    for _ in range(repeats):
        for k, job in enumerate(jobs):
            started = time.perf_counter(), time.process_time()
            job()
            passed = time.perf_counter() - started[0], time.process_time() - started[1]
            best[k] = np.minimum(best[k], 1e6 * np.array(passed) / (batch * len(chunks)))
    return compiling, best


def stream(function, robot, chunks):
    """All chunks, each result dropped when it is ready, as a pass over a log does."""
    for chunk in chunks:
        function(robot, *chunk).block_until_ready()


def pinocchio_model(robot):
    model = pinocchio.Model()
    model.gravity.linear = np.array(robot.gravity)
    kinds = {False: pinocchio.JointModelRevoluteUnaligned, True: pinocchio.JointModelPrismaticUnaligned}
    for joint in robot.joints:
        placement = pinocchio.SE3(np.reshape(joint.rotation, (3, 3)), np.array(joint.xyz))
        kind = pinocchio.JointModelRZ() if is_rz(joint) else kinds[joint.kind == "prismatic"](np.array(joint.axis))
        model.addJoint(joint.parent + 1, kind, placement, joint.name)
    return model


def is_rz(joint):
    """Pinocchio is faster on joints about z; it deserves that here."""
    return joint.kind != "prismatic" and joint.axis == (0.0, 0.0, 1.0)


def reordered(stack):
    """Pinocchio's columns in this project's order: it has Iyy before Ixz."""
    order = np.argsort([0, 1, 2, 3, 4, 5, 7, 6, 8, 9])
    return stack.reshape(*stack.shape[:2], -1, 10)[..., order].reshape(stack.shape)


if __name__ == "__main__":
    main()
