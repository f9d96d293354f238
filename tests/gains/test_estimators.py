"""Estimators of drive gains against known truth."""

import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.gains import (
    METHODS,
    GainRuns,
    Gains,
    Load,
    contradicted,
    estimate_gains,
    gain_friction,
    motor_constants,
    with_load_friction,
)
from bayesid.gains.solving import attenuation, ls, ml, relative
from bayesid.regression import AR, HAC, Observations, compress, gain_sensitivity, wls
from tests.gains.conftest import GAINS, MASS, NOISE, PAYLOAD


@pytest.mark.parametrize("method", ["ml", "ls", "tls"])
def test_without_noise_every_method_returns_gains_base_parameters_and_load(world, method):
    runs = world.gain_runs(scale=0.0)
    fit = METHODS[method](runs, None, compress(runs))
    np.testing.assert_allclose(fit.gains, GAINS, rtol=2e-6)
    np.testing.assert_allclose(fit.coefficients[runs.load_columns(0)], PAYLOAD, atol=2e-6)
    base = world.model.base.project(world.parameters)
    np.testing.assert_allclose(fit.coefficients[: len(base)], base, atol=5e-5)


def test_the_constrained_form_returns_the_truth_when_it_is_consistent(world):
    runs = world.gain_runs(scale=0.0)
    fit = METHODS["lmi"](runs, None, compress(runs))
    np.testing.assert_allclose(fit.gains, GAINS, rtol=5e-3)


def test_likelihood_is_unbiased_where_least_squares_is_pulled_down_by_the_noise_share(world):
    runs = world.gain_runs(scale=0.0)
    clean = compress(runs)
    ratios = {"ml": [], "ls": []}
    for seed in range(6):
        noisy = world.gain_runs(seed=seed, correlation=0.0)
        information = compress(noisy)
        for name, method in (("ml", ml), ("ls", ls)):
            ratios[name].append(method(noisy, None, information).gains / GAINS)
    share = attenuation(noisy, information, None)
    low = 1.0 - np.mean(ratios["ls"], axis=0)
    assert clean.counts.min() > 1000
    assert low.max() > 0.02
    spread = np.std(ratios["ml"], axis=0) / np.sqrt(6)
    assert np.all(np.abs(np.mean(ratios["ml"], axis=0) - 1.0) < 4.0 * spread)
    assert share[np.argmax(low)] > 0.01


def test_hac_intervals_of_the_likelihood_hold_the_truth_under_autocorrelated_noise(world):
    hits = []
    for seed in range(5):
        runs = world.gain_runs(seed=100 + seed)
        estimate = estimate_gains(runs, "ml", covariance=HAC())
        low, high = estimate.interval(0.95)[:6].T
        hits.append((low < GAINS) & (high > GAINS))
    assert np.mean(hits) > 0.85


def test_a_prior_and_a_held_gain_enter_as_stated(world):
    runs = world.gain_runs(seed=1)
    variance = np.full(6, np.inf)
    variance[0], variance[1] = 0.0, 1e-6
    mean = np.full(6, np.nan)
    mean[0], mean[1] = 14.0, 13.2
    estimate = estimate_gains(runs, prior=Gains(mean, np.diag(variance)), covariance=AR())
    assert estimate.mean[0] == 14.0
    assert estimate.std[0] == 0.0
    assert estimate.meta["held"] == ["shoulder_pan_joint"]
    assert estimate.mean[1] == pytest.approx(13.2, abs=0.005)
    assert estimate.std[1] < 2e-3


def test_known_gains_weigh_a_load_of_unknown_mass(world):
    runs = world.gain_runs(seed=2, load=Load())
    estimate = estimate_gains(runs, prior=Gains(GAINS, np.diag((0.01 * GAINS) ** 2)), covariance=AR())
    mass, std = estimate["payload.m"]
    assert abs(mass - MASS) < 4 * std
    assert 0 < std < 0.05 * MASS


def test_known_centre_of_mass_enters_the_fit(world):
    com = tuple(PAYLOAD[1:4] / MASS)
    runs = world.gain_runs(seed=3, load=Load(MASS, com))
    estimate = estimate_gains(runs, covariance=AR())
    np.testing.assert_allclose(estimate.mean[estimate.index("payload.mcx")], PAYLOAD[1], rtol=1e-12)
    assert estimate["payload.mcx"][1] == 0.0
    free = estimate_gains(world.gain_runs(seed=3), covariance=AR())
    assert np.all(estimate.std[1:6] <= 1.05 * free.std[1:6])


def test_a_load_friction_in_the_data_is_found_and_absent_otherwise(world):
    runs = world.gain_runs(scale=0.05)
    loss = np.array([0.03, 0.06, 0.07, 0.02, 0.03, 0.04])
    law = world.model.kinds
    rigid = np.where(np.array(law) == "friction", 0.0, world.parameters)
    changed = []
    for run, extra in zip(runs.runs, (0.0, PAYLOAD)):
        parameters = rigid.copy()
        parameters[50:60] += extra
        own = world.model.torque(parameters, run.q, run.qd, run.qdd)
        current = run.effort + loss * np.abs(own) * np.sign(run.qd) / GAINS
        changed.append(run.replace(effort=current, effort_measured=current))
    lossy = GainRuns(world.model, tuple(changed), (None, 0), (Load(MASS),), (0, 0))
    fit = ml(with_load_friction(lossy, rounds=3))
    at = [with_load_friction(lossy, rounds=1).names.index(f"{j}.load_friction") for j in world.model.robot.joint_names]
    np.testing.assert_allclose(fit.coefficients[at][1:], loss[1:], atol=6e-3)
    np.testing.assert_allclose(fit.gains[1:], GAINS[1:], rtol=8e-3)
    np.testing.assert_allclose(ml(with_load_friction(runs, rounds=2)).coefficients[at][1:], 0.0, atol=6e-3)


@pytest.mark.parametrize(("driving", "driven"), [(0.07, 0.02), (0.02, 0.07)])
def test_motor_constants_hold_the_truth_whatever_the_gear_loses_in_either_direction(world, driving, driven):
    runs = world.gain_runs(seed=4, scale=0.1)
    rigid = np.where(np.array(world.model.kinds) == "friction", 0.0, world.parameters)
    changed = []
    for run, extra in zip(runs.runs, (0.0, PAYLOAD)):
        parameters = rigid.copy()
        parameters[50:60] += extra
        own = world.model.torque(parameters, run.q, run.qd, run.qdd)
        current = run.effort + np.where(own * run.qd > 0, driving, -driven) * own / GAINS
        changed.append(run.replace(effort=current, effort_measured=current))
    lossy = with_load_friction(GainRuns(world.model, tuple(changed), (None, 0), (Load(MASS),), (0, 0)))
    estimate = estimate_gains(lossy, covariance=HAC())
    seen = GAINS / (1.0 + 0.5 * (driving - driven))
    assert np.all(np.abs(estimate.mean[:6] - seen) < 3.5 * estimate.std[:6])
    assert np.sum(np.abs(estimate.mean[:6] - GAINS) > 3.5 * estimate.std[:6]) >= 3
    constants = motor_constants(estimate, lossy)
    low, high = constants.interval(0.95).T
    assert np.all((low < GAINS) & (high > GAINS))
    np.testing.assert_allclose(constants.meta["load_friction"][1:], 0.5 * (driving + driven), atol=0.01)


def test_motor_constants_of_another_estimate_are_refused(world):
    runs = world.gain_runs(seed=4)
    estimate = estimate_gains(runs)
    with pytest.raises(DataError, match="holds no drive gains"):
        motor_constants(estimate.select(estimate.names[6:]), runs)


def test_friction_of_each_run_is_its_own_when_asked(world):
    runs = world.gain_runs(scale=0.02)
    warmer = runs.runs[1]
    current = warmer.effort - 1.5 * np.sign(warmer.qd) / GAINS
    second = warmer.replace(effort=current, effort_measured=current)
    own = GainRuns(world.model, (runs.runs[0], second), (None, 0), (Load(MASS),))
    fit = ml(own)
    np.testing.assert_allclose(fit.gains[1:], GAINS[1:], rtol=5e-3)
    first = fit.coefficients[own.names.index("elbow_joint.coulomb")]
    assert fit.coefficients[own.names.index("elbow_joint.coulomb@2")] - first == pytest.approx(-1.5, abs=0.1)


def test_swapped_runs_are_refused(world):
    runs = world.gain_runs(order=(1, 0))
    with pytest.raises(DataError, match="swapped"):
        estimate_gains(runs)


def test_a_load_that_changes_nothing_is_refused(world):
    runs = world.gain_runs(order=(0, 0))
    with pytest.raises(DataError, match="changes no current measurably"):
        estimate_gains(runs)


@pytest.mark.parametrize("mass", [0.0, -2.0, float("nan")])
def test_a_mass_that_is_no_mass_is_refused(mass):
    with pytest.raises(DataError, match="positive number of kg"):
        Load(mass)


def test_the_same_recording_twice_and_other_joint_counts_are_refused(world):
    run = world.runs[0].replace(source={"sha256": "a" * 64, "path": "free.csv", "rows": [1, 9]})
    with pytest.raises(DataError, match=r"free\.csv: the same recording"):
        GainRuns(world.model, (run, run), (None, 0), (Load(MASS),))
    narrow = type(run)(run.time, run.q[:, :3], run.qd[:, :3], run.qdd[:, :3], run.effort[:, :3], "current")
    with pytest.raises(DataError, match="3 joints"):
        GainRuns(world.model, (narrow, run), (None, 0), (Load(MASS),))


def test_a_still_joint_is_named(world):
    runs = world.gain_runs()
    still = tuple(run.replace(moving=run.moving & (np.arange(6) != 4)) for run in runs.runs)
    runs = GainRuns(world.model, still, (None, 0), (Load(MASS),), (0, 0))
    with pytest.raises(DataError, match="wrist_2_joint does not move"):
        estimate_gains(runs)


def test_without_a_load_only_ratios_of_gains_are_known(world):
    runs = world.gain_runs(scale=0.0)
    fit = relative(runs, compress(runs))
    np.testing.assert_allclose(fit.gains / fit.gains[1], GAINS / GAINS[1], rtol=1e-5)


def test_sensitivity_is_the_derivative_of_base_parameters_by_gains(world):
    run = world.gain_runs(seed=4).runs[0]
    fit = wls(Observations(world.model, (run,), GAINS))
    sensitivity = gain_sensitivity(fit)
    for j in (1, 4):
        step = np.zeros(6)
        step[j] = 1e-4 * GAINS[j]
        up, down = (_weighted(Observations(world.model, (run,), GAINS + s * step), fit.weights) for s in (1.0, -1.0))
        numeric = (up - down) / (2 * step[j])
        np.testing.assert_allclose(sensitivity[:, j], numeric, atol=1e-5 * np.abs(numeric).max())


def _weighted(observations, weights):
    factor, right = compress(observations).stacked(weights)
    return np.linalg.solve(factor, right)


def test_noise_of_the_current_is_estimated(world):
    fit = ml(world.gain_runs(seed=6, correlation=0.0))
    np.testing.assert_allclose(fit.sigma, NOISE, rtol=0.08)


@pytest.mark.parametrize("name", ["load", "temperature"])
def test_laws_that_depend_on_more_than_velocity_are_refused(name):
    with pytest.raises(DataError, match=f"'{name}' is not for drive gains"):
        gain_friction(name)


def test_a_prior_that_the_data_contradict_is_named_and_a_true_one_is_not(world):
    runs = world.gain_runs()
    wrong = GAINS * np.array([1.0, 1.0, 0.3, 1.0, 1.0, 1.0])
    for mean, joints in ((GAINS, []), (wrong, ["elbow_joint"])):
        prior = Gains(mean, np.diag(np.where(np.arange(6) == 2, 0.05**2, np.inf)))
        words = contradicted(estimate_gains(runs, prior=prior, covariance=AR()), prior)
        assert [text.split(":")[0] for text in words] == joints
