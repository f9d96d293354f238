"""Precision before moving, physical consistency, controllers, and the command."""

import argparse
import json

import jax.numpy as jnp
import numpy as np
import pytest

from bayesid.dynamics import frame_pose
from bayesid.errors import DataError, DesignError
from bayesid.payload import (
    UNTARED,
    SensorNoise,
    StopRule,
    about_com,
    consistency,
    consistent_estimate,
    expected_precision,
    franka_json,
    from_com,
    joint_estimate,
    joint_motion,
    payload_posterior,
    read_wrench_log,
    simulated_record,
    smallest_motion,
    tool_motion,
    urscript,
    write_wrench_log,
)

LIGHT = np.array([2.0, 0.02, -0.03, 0.06, 0.004, 0.0, 0.0, 0.005, 0.0, 0.003])
COARSE = SensorNoise(1e-3, 0.33, 6.7e-3)


@pytest.fixture(scope="module")
def unlikely(robot):
    """An estimate of a light object from a small motion, outside the set of bodies."""
    record = simulated_record(tool_motion(robot, 0.05, 0.05), np.asarray(from_com(LIGHT)), COARSE, seed=0)
    return joint_estimate(record, COARSE)


@pytest.mark.parametrize("prior", [None, UNTARED])
def test_expected_precision_is_what_the_estimate_reports(robot, truth, prior):
    motion = tool_motion(robot, 0.05, 0.05, frame="tool0")
    options = {} if prior is None else {"prior": prior}
    expected = expected_precision(motion.sensor_motion(), truth, COARSE, **options)
    found = joint_estimate(simulated_record(motion, truth, COARSE, seed=1), COARSE, **options)
    np.testing.assert_allclose(found.std[:10], expected.std, rtol=0.05)


def test_the_smallest_motion_meets_the_goal_and_a_smaller_one_does_not(robot, truth):
    goal = StopRule(0.01, 0.002)
    plan = smallest_motion(tool_motion(robot, 0.1, 0.1), truth, COARSE, goal, UNTARED)
    assert plan.met
    smaller = tool_motion(robot, 0.9 * plan.motion.distance, 0.9 * plan.motion.angle).sensor_motion(500.0)
    noise = SensorNoise(COARSE.angular_velocity / 2**0.5, COARSE.force / 2**0.5, COARSE.moment / 2**0.5)
    less = about_com(expected_precision(smaller, truth, noise, UNTARED))
    assert not goal.met(less.mean[0], less.std[0], less.std[1:4])


def test_an_impossible_goal_is_said_to_be_missed(robot, truth):
    plan = smallest_motion(tool_motion(robot, 0.01, 0.01), truth, COARSE, StopRule(1e-9, 1e-9), largest=1.0)
    assert not plan.met


@pytest.mark.parametrize("reach", [0.1, 0.025])
def test_joint_motion_performs_the_tool_motion(robot, reach):
    motion = tool_motion(robot, reach, reach, frame="tool0")
    joints = joint_motion(robot, motion, rate=100.0, frame="tool0")
    sensed = motion.sensor_motion(100.0)
    rotation, position = frame_pose(robot, jnp.asarray(joints.q).T, "tool0")
    np.testing.assert_allclose(np.moveaxis(np.asarray(rotation), 2, 0), sensed.rotation, atol=1e-9)
    np.testing.assert_allclose(np.asarray(position).T, sensed.position, atol=1e-9)
    assert np.abs(joints.qd[[0, -1]]).max() < 1e-9


def test_a_motion_out_of_reach_is_refused(robot):
    with pytest.raises(DesignError):
        joint_motion(robot, tool_motion(robot, 3.0, 0.1), rate=50.0)


def test_the_nearest_consistent_payload_is_a_body_and_near(unlikely):
    assert consistency(unlikely.mean) < 0
    found = consistent_estimate(unlikely)
    assert consistency(found.mean) > 0
    move = found.mean - unlikely.mean
    assert np.sqrt(move @ np.linalg.solve(unlikely.covariance, move)) == pytest.approx(found.meta["moved_std"], rel=1e-3)
    # The optimum is at most as far as the truth, which is a body too.
    error = np.asarray(from_com(LIGHT)) - unlikely.mean
    assert found.meta["moved_std"] <= np.sqrt(error @ np.linalg.solve(unlikely.covariance, error)) + 1e-6


def test_a_consistent_estimate_is_left_alone(noisy, levels):
    found = joint_estimate(noisy("low", 30), levels["low"])
    np.testing.assert_array_equal(consistent_estimate(found).mean, found.mean)


def test_the_posterior_holds_only_bodies_and_converges(unlikely):
    found = payload_posterior(unlikely, draws=1000)
    assert min(consistency(x) for x in found.draws[::20]) > 0
    assert found.meta["max_rhat"] < 1.05
    interval = found.interval(0.99)
    truth = np.asarray(from_com(LIGHT))
    assert ((interval[:, 0] < truth) & (truth < interval[:, 1])).all()


def test_the_posterior_far_from_the_boundary_is_the_estimate(noisy, levels):
    found = joint_estimate(noisy("low", 31), levels["low"])
    posterior = payload_posterior(found, draws=2000)
    np.testing.assert_allclose((posterior.mean - found.mean) / found.std, 0.0, atol=0.2)
    np.testing.assert_allclose(posterior.std, found.std, rtol=0.15)


def test_the_posterior_keeps_the_tails_of_few_degrees_of_freedom():
    from bayesid.payload.parameters import payload_estimate

    mean = np.array([2.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5, 0.0, 0.5])
    given = payload_estimate(mean, 1e-6 * np.eye(10), method="few", covariance_method={}, dof=6.0)
    posterior = payload_posterior(given, draws=4000)
    assert np.median(posterior.std / given.std) == pytest.approx(np.sqrt(6.0 / 4.0), rel=0.06)
    widths = np.diff(posterior.interval(0.95)) / np.diff(given.interval(0.95))
    assert np.median(widths) == pytest.approx(1.0, abs=0.05)


def test_controllers_get_mass_centre_and_central_inertia(truth, about):
    from bayesid.payload.parameters import payload_estimate

    exact = payload_estimate(truth, 1e-12 * np.eye(10), method="truth", covariance_method={"method": "none"})
    script = urscript(exact).splitlines()[-1]
    assert script == (
        "set_target_payload(8.12000, [0.262000, -0.114000, 0.032000], "
        "[0.239000, 0.293000, 0.303000, 0.014000, -0.023000, 0.086000])"
    )
    load = json.loads(franka_json(exact))
    assert load["mass"] == pytest.approx(8.12)
    np.testing.assert_allclose(load["F_x_Cload"], about[1:4])
    tensor = np.reshape(load["load_inertia"], (3, 3))
    np.testing.assert_allclose(tensor, tensor.T)
    np.testing.assert_allclose(tensor[np.triu_indices(3)], about[4:])


def test_a_wrench_log_survives_writing_and_reading(robot, truth, tmp_path):
    motion = tool_motion(robot, 0.05, 0.05, frame="tool0")
    record = simulated_record(motion, truth, COARSE, rate=200.0)
    joints = joint_motion(robot, motion, rate=200.0, frame="tool0")
    write_wrench_log(tmp_path / "w.csv", joints.q, record, joints.qd)
    back = read_wrench_log(tmp_path / "w.csv", robot, "tool0", motion.parts)
    np.testing.assert_allclose(back.motion.rotation, record.motion.rotation, atol=1e-9)
    np.testing.assert_allclose(back.motion.velocity, record.motion.velocity, atol=1e-9)
    np.testing.assert_allclose(back.force, record.force, atol=1e-9)


def command(capsys, *argv):
    from bayesid.cli import payload

    parser = argparse.ArgumentParser()
    payload.add_arguments(parser)
    code = payload.run(parser.parse_args(list(argv)))
    return code, capsys.readouterr().out


def test_the_command_estimates_and_exports(capsys, tmp_path):
    log, out = str(tmp_path / "w.csv"), tmp_path / "out"
    assert command(capsys, "--robot", "ur16e", "--example", log)[0] == 0
    code, text = command(
        capsys, log, "--robot", "ur16e", "--goal-mass", "1", "--goal-com", "2", "--out", str(out), "--quiet", "--json"
    )
    assert code == 0
    found = {row["name"]: row for row in json.loads(text)["parameters"]}
    low, high = found["payload.mass"]["interval95"]
    assert low - 0.02 < 8.12 < high + 0.02
    assert json.loads(text)["physical"]["consistent"]
    assert {p.name for p in out.iterdir()} == {
        "result.json",
        "estimate.json",
        "payload.script",
        "franka_load.json",
        "payload.png",
        "convergence.png",
    }


def test_the_command_plans(capsys):
    code, text = command(capsys, "--plan", "--robot", "ur16e", "--mass-guess", "8", "--json")
    assert code == 0
    plan = json.loads(text)["plan"]
    assert plan["goal"]["met"]
    assert 0.0 < plan["distance_m"] <= 0.1


def test_a_result_is_used_with_the_gains_that_it_was_identified_with():
    from types import SimpleNamespace

    from bayesid.cli.payload import _gains_of_result

    identified = SimpleNamespace(predictor=SimpleNamespace(gains=np.array([10.0, 8.5])))
    np.testing.assert_array_equal(_gains_of_result("result", identified, None), [10.0, 8.5])
    np.testing.assert_array_equal(_gains_of_result("result", identified, np.array([10.0, 8.5])), [10.0, 8.5])
    with pytest.raises(DataError, match=r"was identified with the drive gains 10,8\.5"):
        _gains_of_result("result", identified, np.array([12.0, 9.8]))
    torques = SimpleNamespace(predictor=SimpleNamespace(gains=None))
    np.testing.assert_array_equal(_gains_of_result("result", torques, np.array([12.0, 9.8])), [12.0, 9.8])
