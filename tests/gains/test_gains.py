"""Gains as other commands read them, the sensor comparison, the plan, and the recordings."""

import json

import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.gains import (
    GainRuns,
    Gains,
    Load,
    estimate_gains,
    gain_friction,
    motor_constants,
    plan_gains,
    read_gains,
    sensor_gain,
)
from bayesid.gains.solving import METHODS
from bayesid.logs import read_log
from bayesid.models import Model
from bayesid.regression import AR, compress
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log
from tests.gains.conftest import GAINS, MASS, PAYLOAD

CONTROLLER = np.array([11.976, 9.839, 10.762, 10.762])


def test_gains_are_read_from_numbers_and_from_a_result_with_their_covariance(tmp_path, world):
    robot = world.model.robot
    assert read_gains("1,2,3,4,5,6", robot).mean.tolist() == [1, 2, 3, 4, 5, 6]
    covariance = np.diag(np.arange(1.0, 7.0)) + 0.1
    rows = [{"kind": "gain", "name": n, "estimate": k, "std": 1.0} for n, k in zip(robot.joint_names, GAINS)]
    document = {"bayesid": "0.1.0", "schema": 1, "command": "drive-gains", "parameters": rows}
    document["gains"] = {"covariance": covariance.tolist(), "dof": 30.0}
    (tmp_path / "result.json").write_text(json.dumps(document))
    gains = read_gains(tmp_path, robot)
    np.testing.assert_array_equal(gains.covariance, covariance)
    np.testing.assert_array_equal(gains.mean, GAINS)
    assert gains.dof == 30.0


@pytest.mark.parametrize(
    ("text", "words"),
    [("1,2,3", "3 drive gains for the 6 joints"), ("fast", "neither"), ("1,2,3,4,5,-6", "positive")],
)
def test_gains_that_cannot_be_are_refused(text, words, world):
    with pytest.raises(DataError, match=words):
        read_gains(text, world.model.robot)


def test_gains_come_out_of_an_estimate_with_their_covariance(world):
    estimate = estimate_gains(world.gain_runs(seed=7), covariance=AR())
    gains = Gains.of(estimate)
    np.testing.assert_array_equal(gains.covariance, estimate.covariance[:6, :6])
    assert gains.known.all()


def test_a_sensor_tells_the_gain_and_friction_spoils_the_plain_slope():
    rng = np.random.default_rng(0)
    clock = np.arange(4000) * 1e-3
    velocity = np.sin(2 * np.pi * 0.7 * clock)
    torque = 3.0 * np.sin(2 * np.pi * 0.7 * clock + 0.6) + np.sin(2 * np.pi * 1.9 * clock)
    current = (torque + 1.5 * np.sign(velocity) + 0.8 * velocity) / 9.0 + 0.01 * rng.normal(size=4000)
    found = sensor_gain(torque, current, velocity, 1e-3)
    assert found.gain == pytest.approx(9.0, abs=4 * found.std)
    np.testing.assert_allclose(found.friction[:2], [0.8, 1.5], atol=0.05)
    assert abs(found.without_friction - 9.0) > 1.0
    with pytest.raises(DataError, match="constant"):
        sensor_gain(np.zeros(4000), current, velocity, 1e-3)


def test_a_plan_foretells_the_widths_of_the_fit_and_asks_for_more_load_when_light(world):
    # The plan sees the unloaded run only; the fit has friction of each run, as the plan assumes.
    runs = world.gain_runs(seed=8)
    free = runs.runs[0]
    com = tuple(PAYLOAD[1:4] / MASS)
    heavy = plan_gains(world.model, free, Load(MASS, com), GAINS)
    light = plan_gains(world.model, free, Load(MASS / 10, com), GAINS)
    found = estimate_gains(GainRuns(world.model, runs.runs, (None, 0), (Load(MASS),)), covariance=AR())
    ratio = heavy.std[1:] / found.std[1:6]
    assert np.all((ratio > 0.5) & (ratio < 2.0))
    assert np.all(light.half_width[1:] > 2.0 * heavy.half_width[1:])


@pytest.fixture(scope="module")
def fourteen(ur10e_data):
    """The 14-harmonic pair of the UR10e, house defaults."""
    folder = ur10e_data / "dataset_ur10e" / "identification_data"
    names = ("ur-20_02_19_14harm50sec.csv@195:4966", "ur-20_02_19_14harm50secLoad.csv@308:5071")
    samples = tuple(samples_from_log(read_log(str(folder / name), "ur10e-innopolis")) for name in names)
    return GainRuns(Model(load_robot("ur10e"), gain_friction("sublinear")), samples, (None, 0), (Load(2.805),))


def test_likelihood_comes_close_to_the_controller_constants_that_it_never_saw(fourteen):
    fit = METHODS["ml"](fourteen, None, compress(fourteen))
    off = np.abs(fit.gains[1:5] / CONTROLLER - 1.0)
    assert np.all(off < [0.03, 0.03, 0.06, 0.06])


def test_intervals_of_the_recordings_say_which_gain_is_hard(fourteen):
    estimate = estimate_gains(fourteen)
    low, high = estimate.interval(0.95)[1:5].T
    assert np.sum((low < CONTROLLER) & (high > CONTROLLER)) >= 3
    half = (estimate.interval(0.95)[:6, 1] - estimate.mean[:6]) / estimate.mean[:6]
    assert np.argmax(half) == 0
    assert half[0] > 0.08


def test_the_controller_constants_lie_within_what_gear_losses_leave_open(fourteen):
    constants = motor_constants(estimate_gains(fourteen), fourteen)
    low, high = constants.interval(0.95)[1:5].T
    assert np.all((low < CONTROLLER) & (high > CONTROLLER))
    assert np.all((high - low) / CONTROLLER < 0.2)
    assert 0.05 < constants.meta["load_friction"][1] < 0.08
