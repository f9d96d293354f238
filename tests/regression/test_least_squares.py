"""The estimators against the same methods written out in plain NumPy on all rows."""

import dataclasses

import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.regression import METHODS, Observations, Whitened, ols
from bayesid.regression.least_squares import autoregression, residual_moments


@pytest.fixture(scope="module")
def run(arm):
    return arm.run()


@pytest.fixture(scope="module")
def rows(arm, run):
    return arm.dense(run)


def _solve(rows, shares):
    """Weighted least squares on all rows; each joint's weights are multiplied by its share."""
    roots = [np.sqrt(weight * share) for (_, _, weight), share in zip(rows, shares)]
    matrix = np.vstack([x * root[:, None] for (x, _, _), root in zip(rows, roots)])
    return np.linalg.lstsq(matrix, np.concatenate([y * root for (_, y, _), root in zip(rows, roots)]), rcond=None)[0]


def _weighted(rows):
    """Joints weigh by the inverse of their residual variance, each charged with its share of the parameters."""
    shares = np.ones(len(rows))
    for _ in range(30):
        beta = _solve(rows, shares)
        squares = np.array([np.sum(w * (y - x @ beta) ** 2) for x, y, w in rows])
        counts = np.array([np.sum(w > 0) for _, _, w in rows])
        noise = np.sqrt(squares / (counts - len(beta) / len(rows)))
        shares = 1 / noise**2
    return beta, noise


def test_ols_is_least_squares_on_all_rows(arm, run, rows):
    fit = ols(Observations(arm.model, (run,)))
    np.testing.assert_allclose(fit.beta, _solve(rows, np.ones(2)), rtol=1e-9, atol=1e-10)


def test_wls_weighs_joints_by_their_residual_variance(arm, run, rows):
    fit = METHODS["wls"](Observations(arm.model, (run,)))
    beta, noise = _weighted(rows)
    np.testing.assert_allclose(fit.beta, beta, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fit.noise, noise, rtol=1e-7)
    np.testing.assert_allclose(fit.weights, 1 / noise**2, rtol=1e-7)


def test_robust_is_hubers_m_estimate(arm, run, rows):
    """Reweighted until nothing changes, from scales that are the median absolute residual over 0.6745."""
    fit = METHODS["robust"](Observations(arm.model, (run,)))
    beta, _ = _weighted(rows)
    for _ in range(40):
        scales, weighted = [], []
        for x, y, w in rows:
            residual = np.abs(y - x @ beta)
            scale = 1.4826 * np.median(residual[w > 0])
            scales.append(scale)
            weighted.append((x, y, w * np.minimum(1, 1.345 * scale / np.maximum(residual, 1e-300))))
        beta = _solve(weighted, 1 / np.array(scales) ** 2)
    np.testing.assert_allclose(fit.beta, beta, rtol=2e-3, atol=2e-4)


def test_robust_withstands_outliers_that_spoil_least_squares(arm):
    run = arm.run(3)
    effort = run.effort.copy()
    at = np.random.default_rng(0).random(effort.shape) < 0.05
    effort[at] += 40.0
    spoiled = Observations(arm.model, (dataclasses.replace(run, effort=effort),))
    clean = METHODS["wls"](Observations(arm.model, (run,))).beta
    distance = {name: np.abs(METHODS[name](spoiled).beta - clean).sum() for name in ("ols", "robust")}
    assert distance["robust"] < 0.2 * distance["ols"]


def test_gls_is_least_squares_after_whitening_with_yule_walker_filters(arm, run, rows):
    order = 4
    fit = METHODS["gls"](Observations(arm.model, (run,)), order)
    beta, _ = _weighted(rows)
    for _ in range(2):
        white = []
        for x, y, w in rows:
            residual = np.where(w > 0, y - x @ beta, 0.0)
            moments = np.array([residual[k:] @ residual[: len(residual) - k] for k in range(order + 1)])
            toeplitz = moments[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))]
            taps = np.concatenate([[1.0], -np.linalg.solve(toeplitz, moments[1:])])
            both = np.column_stack([x, y])
            filtered = sum(taps[k] * both[order - k : len(both) - k] for k in range(order + 1))
            moving = np.all([w[order - k : len(w) - k] > 0 for k in range(order + 1)], axis=0)
            white.append((filtered[:, :-1], filtered[:, -1], w[order:] * moving))
        beta, noise = _weighted(white)
    np.testing.assert_allclose(fit.beta, beta, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fit.noise, noise, rtol=1e-6)


@pytest.mark.parametrize("method", ["wls", "robust", "gls"])
def test_efforts_at_standstill_have_no_influence(arm, run, method):
    spoiled = dataclasses.replace(run, effort=np.where(run.moving, run.effort, 50.0))
    found = [METHODS[method](Observations(arm.model, (one,))).beta for one in (run, spoiled)]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


def test_gls_finds_dry_friction_better_where_noise_is_autocorrelated(arm):
    """Dry friction switches at once, slow noise does not: whitening tells them apart, and costs the others nothing."""
    errors = {"wls": [], "gls": []}
    for seed in range(6):
        observations = Observations(arm.model, (arm.run(seed, correlation=0.95, still=False),))
        for name, found in errors.items():
            found.append(METHODS[name](observations).beta - arm.beta)
    rms = {name: np.sqrt(np.mean(np.square(found), axis=0)) for name, found in errors.items()}
    ratio = dict(zip(arm.model.base.names, rms["gls"] / rms["wls"]))
    assert all(ratio[f"{joint}.coulomb"] < 0.5 for joint in arm.model.robot.joint_names)
    assert max(ratio.values()) < 1.2


def test_autoregression_finds_the_noise_that_was_put_in(arm):
    run = arm.run(5, seconds=60.0, correlation=0.9, still=False)
    coefficients, innovation = autoregression(Observations(arm.model, (run,)), arm.beta, 1)
    np.testing.assert_allclose(coefficients[:, 0], 0.9, atol=0.02)
    np.testing.assert_allclose(innovation, np.sqrt(1 - 0.9**2) * np.array([1.0, 0.3]), rtol=0.05)


def test_no_product_of_residuals_spans_two_runs(arm):
    first, second = arm.run(1), arm.run(2)
    parts = [residual_moments(Observations(arm.model, (run,)), arm.beta, 5) for run in (first, second)]
    moments, count = residual_moments(Observations(arm.model, (first, second)), arm.beta, 5)
    np.testing.assert_allclose(moments, parts[0][0] + parts[1][0], rtol=1e-12)
    np.testing.assert_array_equal(count, parts[0][1] + parts[1][1])


def test_whitening_starts_anew_with_every_run(arm):
    first, second = arm.run(1), arm.run(2)
    taps = np.array([[0.5, 0.2], [0.3, 0.1]])
    whole = list(Whitened(Observations(arm.model, (first, second)), taps).chunks())
    apart = [chunk for run in (first, second) for chunk in Whitened(Observations(arm.model, (run,)), taps).chunks()]
    assert len(whole) == len(apart)
    for one, other in zip(whole, apart):
        np.testing.assert_array_equal(one.columns, other.columns)
        np.testing.assert_array_equal(one.weight, other.weight)
    assert not whole[0].weight[:, :2].any()


def test_a_joint_that_never_moves_is_named(arm):
    run = arm.run()
    moving = run.moving.copy()
    moving[:, 1] = False
    name = arm.model.robot.joint_names[1]
    with pytest.raises(DataError, match=f"joint {name} does not move"):
        ols(Observations(arm.model, (dataclasses.replace(run, moving=moving),)))


def test_motion_that_leaves_parameters_undetermined_names_them(arm):
    run = arm.run()
    slow = np.full_like(run.qdd, 0.0)
    flat = dataclasses.replace(run, qdd=slow, q=np.zeros_like(run.q), qd=np.ones_like(run.qd) * 0.5)
    with pytest.raises(DataError, match="the data do not determine"):
        ols(Observations(arm.model, (flat,)))


def test_gls_needs_an_order(arm, run):
    with pytest.raises(DataError, match="at least 1"):
        METHODS["gls"](Observations(arm.model, (run,)), 0)
