"""Cartesian motions: drawn by Pinocchio from the joint motion, and compared with the path asked for."""

import jax
import numpy as np
import pytest

from bayesid.errors import DesignError
from bayesid.kinematics import CircleWithCosine, StraightSegments, follow, follow_numerically, minimum_jerk
from bayesid.robots import load_robot, urdf_text

START = [0.0, -1.5, 1.5, -1.5, -1.5, 0.0]
CIRCLE = CircleWithCosine((-0.45, -0.15, 0.3), radius=0.1, height=0.05, period=4.0, duration=4.0, waves=2)
TURNED = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
TOOL_DOWN = ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0))
SEGMENTS = StraightSegments(
    ((-0.5, -0.2, 0.3), (-0.4, 0.1, 0.3), (-0.4, 0.1, 0.5), (-0.5, -0.2, 0.3)),
    (0.0, 1.0, 2.5, 4.0),
    rotations=(TOOL_DOWN, TURNED, TURNED, TOOL_DOWN),
)


@pytest.fixture(scope="module")
def robot():
    return load_robot("ur16e_extended")


def poses(robot, q):
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(urdf_text(robot).replace('type="continuous"', 'type="revolute"'))
    data = model.createData()
    index = model.getFrameId("tool0")
    out = []
    for row in q:
        pin.framesForwardKinematics(model, data, row)
        out.append((data.oMf[index].rotation.copy(), data.oMf[index].translation.copy()))
    return (np.array(part) for part in zip(*out, strict=True))


def wanted(path, time):
    rotation, position = jax.jit(jax.vmap(path.pose))(time)
    return np.asarray(rotation), np.asarray(position)


@pytest.mark.parametrize("path", [CIRCLE, SEGMENTS], ids=["circle", "segments"])
def test_the_joint_motion_draws_the_path_and_its_derivatives_agree(robot, path):
    motion = follow(robot, path, START, rate=1000.0, frame="tool0")
    rotation, position = poses(robot, motion.q)
    expected = wanted(path, motion.time)
    np.testing.assert_allclose(rotation, expected[0], atol=1e-12)
    np.testing.assert_allclose(position, expected[1], atol=1e-12)
    assert np.abs(np.diff(motion.q, axis=0)).max() < 0.01
    for value, derivative in ((motion.q, motion.qd), (motion.qd, motion.qdd)):
        central = (value[2:] - value[:-2]) * 500.0
        smooth = np.abs(np.diff(derivative, n=2, axis=0)).max()
        np.testing.assert_allclose(central, derivative[1:-1], atol=smooth + 1e-6)


def test_the_numerical_solver_follows_the_same_branch(robot):
    closed = follow(robot, CIRCLE, START, rate=50.0, frame="tool0")
    numerical = follow_numerically(robot, CIRCLE, closed.q[0], rate=50.0, frame="tool0")
    np.testing.assert_allclose(numerical.q, closed.q, atol=1e-8)
    np.testing.assert_allclose(numerical.qd, closed.qd, atol=1e-8)
    np.testing.assert_allclose(numerical.qdd, closed.qdd, atol=1e-7)


def test_the_start_chooses_branch_and_turn(robot):
    first = follow(robot, CIRCLE, START, rate=20.0, frame="tool0")
    turned = follow(robot, CIRCLE, first.q[0] + np.array([0, 0, 0, 0, 0, 2 * np.pi]), rate=20.0, frame="tool0")
    np.testing.assert_allclose(turned.q[:, 5], first.q[:, 5] + 2 * np.pi, atol=1e-12)
    other = follow(robot, CIRCLE, [0.0, -1.5, -1.5, -1.5, 1.5, 0.0], rate=20.0, frame="tool0")
    assert np.sign(other.q[0, 2]) != np.sign(first.q[0, 2])
    _, position = poses(robot, other.q)
    np.testing.assert_allclose(position, wanted(CIRCLE, other.time)[1], atol=1e-12)


def test_straight_segments_are_straight_and_pass_their_waypoints_at_rest():
    time = np.linspace(0.0, 1.0, 101)
    _, position = wanted(SEGMENTS, time)
    along = np.subtract(SEGMENTS.waypoints[1], SEGMENTS.waypoints[0])
    assert np.abs(np.cross(position - SEGMENTS.waypoints[0], along)).max() < 1e-15
    np.testing.assert_allclose(wanted(SEGMENTS, np.array(SEGMENTS.times))[1], SEGMENTS.waypoints, atol=1e-15)
    slopes = jax.jit(jax.vmap(lambda s: (jax.grad(minimum_jerk)(s), jax.grad(jax.grad(minimum_jerk))(s))))
    ends = np.stack(slopes(np.array([1e-9, 1 - 1e-9])))
    np.testing.assert_allclose(ends, 0.0, atol=1e-6)


def test_paths_out_of_reach_and_through_singularities_are_refused(robot):
    far = CircleWithCosine((-0.7, -0.15, 0.3), radius=0.3, height=0.05, period=4.0, duration=4.0)
    with pytest.raises(DesignError, match="leaves the workspace near t"):
        follow(robot, far, START, rate=100.0, frame="tool0")
    with pytest.raises(DesignError, match="cannot follow the path at t"):
        follow_numerically(robot, far, START, rate=100.0, frame="tool0")
    level = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    singular = CircleWithCosine((0.174, 0.0, 0.3), radius=0.5, height=0.0, period=4.0, duration=4.0, rotation=level)
    with pytest.raises(DesignError, match=r"wrist singularity .* near t"):
        follow(robot, singular, START, rate=100.0, frame="tool0", min_margin=1e-2)
    nowhere = CircleWithCosine((3.0, 0.0, 0.3), radius=0.1, height=0.0, period=4.0, duration=4.0)
    with pytest.raises(DesignError, match="unreachable"):
        follow(robot, nowhere, START, frame="tool0")


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: CircleWithCosine((0, 0, np.nan), 0.1, 0.0, 1.0, 1.0), "not finite"),
        (lambda: CircleWithCosine((0, 0, 0), 0.1, 0.0, 0.0, 1.0), "positive period"),
        (lambda: StraightSegments(((0, 0, 0), (1, 0, 0)), (0.0,)), "one time per waypoint"),
        (lambda: StraightSegments(((0, 0, 0), (1, 0, 0)), (0.0, 0.0)), "increase"),
        (lambda: StraightSegments(((0, 0, 0), (1, 0, 0)), (0.0, 1.0), (TOOL_DOWN,) * 3), "one rotation"),
        (lambda: follow(load_robot("ur5e"), CIRCLE, [0.0] * 5), "6 finite joint positions"),
        (lambda: follow(load_robot("ur5e"), CIRCLE, [0.0] * 6, rate=-1.0), "sampling rate"),
    ],
)
def test_malformed_paths_are_refused(make, match):
    with pytest.raises(DesignError, match=match):
        make()
