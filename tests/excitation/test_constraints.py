"""Constraints: capsule distances against brute force, margins against plain kinematics, torques against Pinocchio."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesid.errors import DesignError
from bayesid.excitation import Limits, SelfCollision, ToolBox, TorqueLimit, Wall
from bayesid.excitation.capsules import collision_pairs, segment_distance, segment_distance_by_cases
from bayesid.excitation.constraints import constraint_from_settings, usable
from bayesid.models import Model
from bayesid.robots import load_robot

PANDA = load_robot("panda")


def states(robot, count, seed=0):
    rng = np.random.default_rng(seed)
    lower, upper = np.maximum(robot.limit("lower"), -3), np.minimum(robot.limit("upper"), 3)
    q = rng.uniform(lower, upper, (count, robot.dof)).T
    return q, rng.normal(size=q.shape), 3.0 * rng.normal(size=q.shape)


def segments(count, seed):
    rng = np.random.default_rng(seed)
    a0, a1, b0, b1 = rng.normal(size=(4, 3, count))
    b1[:, ::5] = b0[:, ::5] + 0.7 * (a1 - a0)[:, ::5]
    a1[:, ::7] = a0[:, ::7]
    b0[:, ::11] = 0.5 * (a0 + a1)[:, ::11]
    return a0, a1, b0, b1


def test_two_ways_to_the_distance_of_segments_agree_and_match_brute_force():
    ends = segments(600, 1)
    fast = np.asarray(segment_distance(*ends))
    cases = segment_distance_by_cases(*ends)
    np.testing.assert_allclose(fast, cases, atol=2e-6)
    u = np.linspace(0, 1, 101)
    a0, a1, b0, b1 = (x[:, :60] for x in ends)
    on_a = a0[:, None] + (a1 - a0)[:, None] * u[:, None]
    on_b = b0[:, None] + (b1 - b0)[:, None] * u[:, None]
    brute = np.sqrt(((on_a[:, :, None] - on_b[:, None]) ** 2).sum(axis=0)).min(axis=(0, 1))
    assert (cases[:60] <= brute + 1e-9).all()
    np.testing.assert_allclose(cases[:60], brute, atol=0.03)


def test_gradient_of_the_distance_is_its_slope():
    rng = np.random.default_rng(2)
    ends = jnp.asarray(rng.normal(size=(4, 3)))
    gradient = jax.grad(lambda e: segment_distance(*e))(ends)
    for _ in range(10):
        way = jnp.asarray(rng.normal(size=(4, 3)))
        slope = (segment_distance(*(ends + 1e-6 * way)) - segment_distance(*(ends - 1e-6 * way))) / 2e-6
        assert float(jnp.sum(gradient * way)) == pytest.approx(float(slope), abs=1e-6)


def test_collision_pairs_leave_out_neighbours_and_pairs_that_no_joint_moves():
    pairs = collision_pairs(PANDA)
    owners = [(PANDA.capsules[i].parent, PANDA.capsules[j].parent) for i, j in pairs]
    assert owners
    assert all(abs(a - b) > 1 for a, b in owners)
    assert collision_pairs(load_robot("two_link")) == ()


@pytest.mark.parametrize(
    "constraint",
    [
        SelfCollision(0.02),
        Wall((0.0, 0.0, 1.0), 0.1, 0.01),
        Wall((1.0, -2.0, 0.5), -0.4),
        ToolBox((-1, -1, 0), (1, np.inf, 1.2)),
    ],
    ids=lambda c: c.name,
)
def test_margins_equal_those_of_plain_kinematics(constraint):
    q, qd, qdd = states(PANDA, 40)
    margins = np.asarray(constraint.margins(PANDA, q, qd, qdd))
    measured = constraint.measured(PANDA, q, qd, qdd)
    assert margins.shape == measured.shape == (len(constraint.labels(PANDA)), 40)
    np.testing.assert_allclose(margins, measured, atol=2e-6)
    again = constraint_from_settings(constraint.settings(), PANDA)
    np.testing.assert_allclose(again.measured(PANDA, q, qd, qdd), measured)


def test_torque_margin_with_load_friction_is_that_of_the_models_torque_and_its_reference_is_kept():
    robot = load_robot("two_link")
    plain = Model(robot, "load")
    model = Model(robot, "load", reference=1.3 * plain.nominal[: plain.rigid])
    parameters = model.nominal.copy()
    parameters[22:] = np.tile([2.0, 1.0, 0.3, 0.1], 2)
    constraint = TorqueLimit(model, np.array([45.0, 20.0]), parameters)
    q, qd, qdd = states(robot, 20)
    measured = constraint.measured(robot, q, qd, qdd)
    np.testing.assert_allclose(np.asarray(constraint.margins(robot, q, qd, qdd)), measured, atol=1e-9)
    again = constraint_from_settings(constraint.settings(), robot)
    np.testing.assert_array_equal(again.measured(robot, q, qd, qdd), measured)


def test_torque_margin_is_the_distance_of_pinocchio_torque_and_friction_from_the_limit():
    pin = pytest.importorskip("pinocchio")
    from bayesid.robots import urdf_text

    robot = load_robot("ur10e")
    model = Model(robot, "coulomb")
    limit = np.array([330.0, 330.0, 150.0, 54.0, 54.0, 54.0])
    parameters = model.nominal.copy()
    parameters[66:] = np.tile([2.0, 5.0], 6)
    constraint = TorqueLimit(model, limit, parameters)
    q, qd, qdd = states(robot, 20)
    measured = constraint.measured(robot, q, qd, qdd)
    np.testing.assert_allclose(np.asarray(constraint.margins(robot, q, qd, qdd)), measured, atol=1e-6)
    oracle = pin.buildModelFromXML(urdf_text(robot))
    data = oracle.createData()
    rigid = np.array([pin.rnea(oracle, data, *(x[:, i] for x in (q, qd, qdd))) for i in range(20)]).T
    rigid += robot.rotor_inertias[:, None] * qdd
    for row, way in enumerate((1.0, -1.0)):
        expected = (limit[:, None] - np.abs(rigid + 2.0 * qd + 5.0 * way)) / limit[:, None]
        np.testing.assert_allclose(measured[6 * row : 6 * row + 6], expected, atol=1e-8)


def test_uncertain_parameters_keep_the_torque_further_away():
    robot = load_robot("two_link")
    model = Model(robot, "coulomb")
    limit = np.full(2, 60.0)
    q, qd, qdd = states(robot, 15)
    root = 0.1 * np.random.default_rng(3).normal(size=(model.size, model.size))
    covariance = root @ root.T
    sure = TorqueLimit.nominal(model, limit).measured(robot, q, qd, qdd)
    constraint = TorqueLimit(model, limit, model.nominal, covariance, 2.0)
    unsure = constraint.measured(robot, q, qd, qdd)
    rows = model.regressor(q.T, qd.T, qdd.T, np.ones(q.T.shape))
    std = np.sqrt(np.einsum("sjp,pr,sjr->js", rows, covariance, rows))
    np.testing.assert_allclose(sure - unsure, np.tile(2.0 * std / 60.0, (2, 1)), atol=1e-10)
    np.testing.assert_allclose(np.asarray(constraint.margins(robot, q, qd, qdd)), unsure, atol=1e-6)
    again = constraint_from_settings(constraint.settings(), robot)
    np.testing.assert_allclose(again.measured(robot, q, qd, qdd), unsure)


def test_constraints_that_bind_nothing_are_known_as_such():
    robot = load_robot("two_link")
    assert not usable(SelfCollision(), robot)
    assert not usable(TorqueLimit.nominal(Model(robot, "none"), robot.limit("torque")), robot)
    assert usable(Wall((0.0, 1.0, 0.0), -1.0), robot)
    assert not usable(Wall((0.0, 0.0, 1.0), -1.0), robot)


def test_impossible_constraints_and_limits_are_refused(tmp_path):
    with pytest.raises(DesignError, match="normal must be a vector"):
        Wall((0.0, 0.0, 0.0), 1.0)
    with pytest.raises(DesignError, match="tool box is empty"):
        ToolBox((0, 0, 0), (1, -1, 1))
    with pytest.raises(DesignError, match="unknown limit 'speed'"):
        Limits.of(PANDA, speed=1.0)
    with pytest.raises(DesignError, match="must be positive"):
        Limits.of(PANDA, velocity=0.0)
    with pytest.raises(DesignError, match="has no room"):
        Limits.of(PANDA, lower=1.0, upper=1.0)
    file = tmp_path / "limits.toml"
    file.write_text("velocity = [1, 2]\n")
    with pytest.raises(DesignError, match=r"limits\.toml: limit 'velocity' needs one number or 7"):
        Limits.read(file, PANDA)
    file.write_text("velocity = \n")
    with pytest.raises(DesignError, match="not a TOML file"):
        Limits.read(file, PANDA)
    file.write_text("velocity = 0.5\nacceleration = [1, 2, 3, 4, 5, 6, 7]\n")
    limits = Limits.read(file, PANDA)
    assert limits.velocity.tolist() == [0.5] * 7
    assert limits.acceleration[3] == 4.0
    assert (Limits.from_dict(limits.to_dict()).jerk == limits.jerk).all()
