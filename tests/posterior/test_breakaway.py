"""Stribeck friction with unknown breakaway speeds: the compressed likelihood against direct sums, and what draws say."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from bayesid.dynamics import stribeck_law
from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.posterior import NUTS, BreakawayPrior, Wishart, calibrated, coverage, infer
from bayesid.posterior.breakaway import SpeedLikelihood, SpeedTarget
from bayesid.regression import Observations, breakaway_profile, gain_sensitivity
from bayesid.results import Estimate

SPEEDS = np.array([0.12, 0.06])


@pytest.fixture(scope="module")
def model(arm):
    return Model(arm.robot, stribeck_law(SPEEDS))


@pytest.fixture(scope="module")
def true(model):
    out = model.nominal.copy()
    out[20:22] = 0.3
    out[22:] = (2.0, 3.0, 1.5, 1.0, 2.0, 1.5)
    return out


@pytest.fixture(scope="module")
def slow(model, true, simulate):
    return simulate(model, true, samples=1500, correlation=0.9, seed=4, amplitude=0.4)


@pytest.fixture(scope="module")
def likelihood(arm, slow):
    return SpeedLikelihood.of(Observations(Model(arm.robot, "stribeck"), (slow,)))


@pytest.fixture(scope="module")
def found(arm, slow):
    return infer(Model(arm.robot, "stribeck"), slow, breakaway=BreakawayPrior(), method=NUTS(2, 200, 500))


def nearby(likelihood, seed, reach=1.0):
    """Base parameters and log speeds some standard deviations off the best."""
    rows, _ = likelihood.quadratic(likelihood.best)
    return likelihood.best + reach * np.linalg.solve(rows, np.random.default_rng(seed).normal(size=likelihood.size))


def test_without_stretch_it_is_the_weighted_sum_of_squares_of_all_samples(likelihood, slow):
    plain = replace(likelihood, stretch=np.eye(likelihood.size))
    speed = likelihood.places[3]
    sums, values = [], []
    for seed in range(3):
        theta = nearby(likelihood, seed, 2.0)
        model = Model(likelihood.model.robot, stribeck_law(np.exp(theta[speed])))
        columns = model.regressor(slow.q, slow.qd, slow.qdd)[:, :, model.base.independent]
        residual = slow.effort - columns @ np.delete(theta, speed)
        sums.append(-0.5 * np.sum(likelihood.profile.fit.weights * residual**2))
        values.append(plain.log_density(theta))
    np.testing.assert_allclose(np.diff(values), np.diff(sums), rtol=0.02, atol=0.05)


def test_curvature_at_the_best_is_that_of_the_calibrated_covariance(likelihood):
    rows, right = likelihood.quadratic(likelihood.best)
    names = list(likelihood.model.base.names)
    linear = calibrated(likelihood.profile.linear)
    order = np.array([names.index(n) for n in names if not n.endswith("breakaway_speed")] + likelihood.places[3].tolist())[
        likelihood.profile.linearised
    ]
    # A negative one would mirror the density of a log speed, which its curvature does not show.
    assert np.all(np.diag(likelihood.stretch) > 0)
    curvature = (rows.T @ rows)[np.ix_(order, order)]
    expected = linear.rows[0].T @ linear.rows[0]
    size = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(curvature / np.outer(size, size), expected / np.outer(size, size), atol=1e-6)
    # Least squares is best there: the slope is nil but for what the search for speeds left.
    scaled = rows.T @ (rows @ likelihood.best - right) / np.sqrt(np.diag(rows.T @ rows))
    assert np.abs(scaled).max() < 0.1


def test_uncertain_drive_gains_widen_it_by_how_the_best_moves_with_them(arm, slow):
    """Against fits with each gain a little higher and lower, the weights of joints going their own way in these."""
    gains, model = np.array([10.0, 8.0]), Model(arm.robot, "stribeck")
    currents = slow.replace(effort=slow.effort / gains, effort_kind="current", effort_unit="A", effort_measured=None)
    fit = breakaway_profile(Observations(model, (currents,), gains)).linear
    slopes = gain_sensitivity(fit)
    assert slopes.shape == (len(fit.beta), 2)
    for j in range(2):
        step = 1e-3 * gains[j] * np.eye(2)[j]
        up, down = (SpeedLikelihood.of(Observations(model, (currents,), gains + s)) for s in (step, -step))
        names = up.model.base.names
        friction = [names.index(n) for n in names if n.rpartition(".")[2] in ("viscous", "coulomb", "stribeck")]
        numeric = (up.best - down.best)[friction] / (2e-3 * gains[j])
        order = [list(model.base.names).index(names[k]) for k in friction]
        np.testing.assert_allclose(slopes[order, j], numeric, atol=0.02)
    wide = SpeedLikelihood.of(Observations(model, (currents,), gains), np.diag([0.5, 0.4]) ** 2)
    assert wide.description["drive_gains"] == "propagated"


def test_gradient_is_that_of_the_density_far_from_the_best_too(likelihood):
    theta = nearby(likelihood, 7, 3.0)
    rows, right = likelihood.quadratic(theta)
    slope = rows.T @ (rows @ theta - right)
    for direction in np.random.default_rng(1).normal(size=(4, likelihood.size)):
        step = 1e-4 * np.linalg.solve(rows, direction)
        change = likelihood.log_density(theta - step) - likelihood.log_density(theta + step)
        assert change == pytest.approx(2.0 * slope @ step, rel=2e-3, abs=1e-6)


def test_the_samplers_potential_is_the_negative_log_density(likelihood):
    target = SpeedTarget(BreakawayPrior().of(Wishart().of(likelihood.model)), likelihood)
    problem = target.problem()
    potential = jax.jit(problem.layout.potential(problem.arrays))
    whitened = 0.5 * np.random.default_rng(2).normal(size=(4, problem.size))
    values = [float(potential(z)) for z in whitened]
    coordinates = problem.center + whitened @ problem.root.T
    assert np.all(problem.exists(whitened))
    exact = [-target.log_density(x) for x in coordinates]
    np.testing.assert_allclose(np.diff(values), np.diff(exact), rtol=1e-6, atol=1e-6)
    drawn = problem.parameters(whitened)
    logs = target.prior.logs
    np.testing.assert_allclose(np.log(drawn[:, logs]), coordinates[:, logs])


def test_speeds_are_drawn_with_the_parameters_and_hold_the_truth(found, true, model):
    assert found.diagnostics.divergences == 0
    assert found.diagnostics.max_rhat < 1.05
    estimate = found.estimate()
    parts = estimate.select([f"{joint}.breakaway_speed" for joint in model.robot.joint_names])
    assert parts.units == ("rad/s", "rad/s")
    low, high = parts.interval(0.99).T
    assert np.all((low < SPEEDS) & (high > SPEEDS))
    profile = found.target.likelihood.profile
    np.testing.assert_allclose(parts.interval(0.95), profile.interval, rtol=0.1)
    others = estimate.select(model.names)
    assert np.mean(np.abs(others.mean - true) < 3 * others.std) > 0.9


def test_the_estimate_predicts_with_its_speeds_and_survives_a_file(found, model, true, simulate, tmp_path):
    run = simulate(model, true, samples=1500, correlation=0.9, seed=6, amplitude=0.4)
    estimate = found.estimate()
    np.testing.assert_allclose(coverage(estimate, run)["moving"], 0.9, atol=0.06)
    prediction = estimate.predict(run, 0.9)
    clean = model.torque(true, run.q, run.qd, run.qdd)
    assert np.all(np.sqrt(np.mean((prediction.mean - clean) ** 2, axis=0)) < 0.15)
    estimate.save(tmp_path / "estimate.json")
    again = Estimate.load(tmp_path / "estimate.json").predict(run, 0.9)
    np.testing.assert_allclose(again.mean, prediction.mean, rtol=1e-9)


def test_prior_speeds_are_log_normal_about_what_is_known(likelihood):
    prior = BreakawayPrior(0.2, 0.5).of(Wishart().of(likelihood.model))
    drawn = np.log(prior.sample(0, 4000)[:, prior.logs])
    np.testing.assert_allclose(drawn.mean(axis=0), np.log(0.2), atol=0.04)
    np.testing.assert_allclose(drawn.std(axis=0), 0.5, rtol=0.05)
    with pytest.raises(DataError, match="positive numbers"):
        BreakawayPrior(-1.0)


def test_what_cannot_be_inferred_is_refused(arm, slow):
    with pytest.raises(DataError, match="has no breakaway speed to infer"):
        infer(arm, slow, breakaway=BreakawayPrior())
    with pytest.raises(DataError, match="calibrated likelihood"):
        infer(Model(arm.robot, "stribeck"), slow, breakaway=BreakawayPrior(), likelihood="autoregressive")
