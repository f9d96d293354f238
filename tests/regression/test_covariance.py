"""Covariances against direct sums over all samples, and the coverage of their intervals under autocorrelated noise."""

import dataclasses

import numpy as np
import pytest
from scipy.linalg import sqrtm, toeplitz
from scipy.special import stdtrit

import bayesid.regression.covariance as covariance_module
from bayesid.errors import DataError
from bayesid.regression import AR, COVARIANCES, HAC, METHODS, Bootstrap, Observations, White, wls
from bayesid.regression.covariance import score_blocks
from bayesid.regression.least_squares import autoregression, gls
from bayesid.signals import Samples


@pytest.fixture(scope="module")
def run(arm):
    return arm.run(seconds=4.0)


@pytest.fixture(scope="module")
def fit(arm, run):
    return wls(Observations(arm.model, (run,)))


@pytest.fixture(scope="module")
def dense(arm, run, fit):
    """Normal matrix, score (N, b) and each sample's part of the normal matrix (N, b, b), written out."""
    rows = arm.dense(run)
    normal = sum(share * x.T @ (w[:, None] * x) for (x, _, w), share in zip(rows, fit.weights))
    score = sum(share * (w * (y - x @ fit.beta))[:, None] * x for (x, y, w), share in zip(rows, fit.weights))
    parts = sum(share * np.einsum("n,nb,nc->nbc", w, x, x) for (x, _, w), share in zip(rows, fit.weights))
    return normal, score, parts


def _bartlett(score, lags):
    """Newey and West 1987, equation 5: autocovariances of the scores with weights that fall to 0 at `lags`."""
    total = score.T @ score
    for lag in range(1, lags):
        product = score[lag:].T @ score[:-lag]
        total += (1 - lag / lags) * (product + product.T)
    return total


def _relative(found, expected):
    scale = np.sqrt(np.diag(expected))
    return np.abs(found - expected) / np.outer(scale, scale)


def test_windows_of_scores_are_the_newey_west_sum(fit, dense, monkeypatch):
    monkeypatch.setattr(covariance_module, "_unleveraged", lambda normal, score: score)
    normal, score, _ = dense
    blocks = score_blocks(fit, 1)
    for lags in (1, 7, 20):
        expected = np.linalg.solve(normal, np.linalg.solve(normal, _bartlett(score, lags)).T)
        assert _relative(blocks.sandwich(blocks.moving_windows(lags)), expected).max() < 1e-6


def test_blocks_approximate_the_newey_west_sum_of_single_samples(fit, dense, monkeypatch):
    monkeypatch.setattr(covariance_module, "_unleveraged", lambda normal, score: score)
    normal, score, _ = dense
    expected = np.linalg.solve(normal, np.linalg.solve(normal, _bartlett(score, 60)).T)
    blocks = score_blocks(fit, 10)
    assert _relative(blocks.sandwich(blocks.moving_windows(6)), expected).max() < 0.1


def test_windows_are_corrected_for_leverage_as_bell_and_mccaffrey_have_it(fit, dense):
    """(1 - Q)^(-1/2) by a general matrix square root, window by window."""
    normal, score, parts = dense
    upper = np.linalg.cholesky(normal).T
    inverse = np.linalg.inv(upper)
    lags, count = 25, len(score)
    total = np.zeros_like(normal)
    for first in range(1 - lags, count):
        window = slice(max(first, 0), min(first + lags, count))
        share = inverse.T @ parts[window].sum(axis=0) @ inverse
        adjusted = np.linalg.inv(np.real(sqrtm(np.eye(len(normal)) - share))) @ (inverse.T @ score[window].sum(axis=0))
        total += np.outer(adjusted, adjusted) / lags
    blocks = score_blocks(fit, 1)
    assert _relative(blocks.sandwich(blocks.moving_windows(lags)), inverse @ total @ inverse.T).max() < 1e-5


def test_flat_top_removes_the_bias_of_bartletts_kernel_and_is_never_smaller(fit):
    found = HAC(lags=11).of(fit).covariance
    blocks = score_blocks(fit, 1)
    whole, half = (blocks.sandwich(blocks.moving_windows(lags)) for lags in (11, 5))
    assert np.linalg.eigvalsh(found - whole).min() > -1e-9 * np.linalg.eigvalsh(whole).max()
    flat = whole + 5 / 6 * (whole - half)
    assert np.linalg.eigvalsh(found - flat).min() > -1e-9 * np.linalg.eigvalsh(whole).max()


def test_automatic_bandwidth_is_that_of_andrews(fit, dense, run):
    """Equation 6.2 with 6.4 for Bartlett's kernel, AR(1) coefficients by regression of each score on its last value."""
    normal, score, _ = dense
    turned = score @ np.linalg.inv(np.linalg.cholesky(normal).T)
    rho = np.sum(turned[1:] * turned[:-1], axis=0) / np.sum(turned**2, axis=0)
    alpha = np.mean(4 * rho**2 / ((1 - rho) ** 2 * (1 + rho) ** 2))
    moved = run.moving.sum(axis=0).max()
    assert score_blocks(fit, None).bandwidth(100.0) == pytest.approx(1.1447 * (alpha * moved) ** (1 / 3), rel=1e-3)


def test_more_rows_of_the_same_seconds_tell_no_more(arm):
    """Residuals correlated over half a second, sampled at 100 Hz and, held in between, at 1 kHz."""
    coarse = arm.run(seconds=60.0, correlation=0.98, still=False)
    fine = Samples(
        np.linspace(coarse.time[0], coarse.time[-1] + 0.009, 10 * len(coarse)),
        *(np.repeat(x, 10, axis=0) for x in (coarse.q, coarse.qd, coarse.qdd, coarse.effort)),
        "torque",
    )
    found = [HAC().of(wls(Observations(arm.model, (run,)))) for run in (coarse, fine)]
    assert found[1].description["lags"] / found[0].description["lags"] == pytest.approx(10.0, rel=0.25)
    np.testing.assert_allclose(np.diag(found[1].covariance), np.diag(found[0].covariance), rtol=0.2)


def test_degrees_of_freedom_do_not_count_rows_at_standstill(arm):
    run = arm.run(seconds=20.0, still=False)
    paused = run.replace(moving=np.repeat([True, False], len(run) // 2)[:, None] & np.ones_like(run.moving))
    moving, half = (HAC(lags=60).of(wls(Observations(arm.model, (r,)))).dof for r in (run, paused))
    assert half == pytest.approx(0.5 * moving, rel=0.01)
    first = run.select(slice(0, len(run) // 2))
    alone, still = (HAC().of(wls(Observations(arm.model, (r,)))) for r in (first, paused))
    assert still.description["lags"] == alone.description["lags"]
    np.testing.assert_allclose(still.covariance, alone.covariance, rtol=1e-6)


def test_white_is_the_textbook_covariance(arm, run, fit):
    rows = arm.dense(run)
    bread = np.linalg.inv(sum(share * x.T @ (w[:, None] * x) for (x, _, w), share in zip(rows, fit.weights)))
    with pytest.warns(UserWarning, match="too narrow"):
        found = White().of(fit).covariance
    assert _relative(found, bread).max() < 1e-7  # the weights are the inverse noise variances


def test_ar_is_the_covariance_with_the_whole_toeplitz_matrix(arm, run, fit):
    """X^T Omega X with Omega the N x N autocovariance of the fitted process, its end and all."""
    order = 3
    coefficients, innovation = autoregression(fit.observations, fit.beta, order)
    middle = 0.0
    for (x, _, w), share, taps, std in zip(arm.dense(run), fit.weights, coefficients, innovation):
        response = np.zeros(6000)
        response[0] = 1.0
        for k in range(1, len(response)):
            past = response[max(0, k - order) : k][::-1]
            response[k] = taps[: len(past)] @ past
        gamma = std**2 * np.array([response[: len(response) - k] @ response[k:] for k in range(len(x))])
        weighted = share * w[:, None] * x
        middle = middle + weighted.T @ toeplitz(gamma) @ weighted
    normal = sum(share * x.T @ (w[:, None] * x) for (x, _, w), share in zip(arm.dense(run), fit.weights))
    expected = np.linalg.solve(normal, np.linalg.solve(normal, middle).T)
    assert _relative(AR(order).of(fit).covariance, expected).max() < 1e-5


def test_bootstrap_agrees_with_hac(arm):
    fit = wls(Observations(arm.model, (arm.run(seconds=60.0, still=False),)))
    ratio = np.sqrt(np.diag(Bootstrap().of(fit).covariance) / np.diag(HAC().of(fit).covariance))
    assert 0.85 < np.median(ratio) < 1.15
    assert ratio.min() > 0.6
    assert ratio.max() < 1.6


def test_scores_of_several_runs_never_mix(arm):
    runs = arm.run(1, seconds=6.0), arm.run(2, seconds=3.7)
    both = wls(Observations(arm.model, runs))
    blocks = score_blocks(both, 10)
    apart = [score_blocks(dataclasses.replace(both, observations=Observations(arm.model, (run,))), 10) for run in runs]
    assert blocks.starts_run.sum() == 2
    assert len(blocks.sums) == sum(len(part.sums) for part in apart)
    whole = blocks.moving_windows(7)
    np.testing.assert_allclose(whole, sum(part.moving_windows(7) for part in apart), rtol=1e-9, atol=1e-9 * whole.max())
    assert len(blocks.window_sums(7)) == sum(len(part.window_sums(7)) for part in apart)


def test_a_gap_in_a_run_parts_it(arm):
    run = arm.run(1, seconds=6.0)
    before, after = run.select(slice(0, 250)), run.select(slice(300, None))
    gappy = run.select(np.r_[0:250, 300 : len(run)])
    apart, whole = (gls(Observations(arm.model, runs), 3) for runs in ((before, after), (gappy,)))
    np.testing.assert_allclose(whole.beta, apart.beta, rtol=1e-9)
    np.testing.assert_array_equal(whole.information.counts, apart.information.counts)
    one, two = (score_blocks(fit, 10) for fit in (whole, apart))
    np.testing.assert_array_equal(one.starts_run, two.starts_run)
    np.testing.assert_allclose(one.sums, two.sums, rtol=1e-8, atol=1e-9)


def test_merging_blocks_of_long_logs_changes_the_result_little(arm, monkeypatch):
    fit = wls(Observations(arm.model, (arm.run(seconds=60.0), arm.run(1, seconds=30.0))))
    before = HAC().of(fit)
    length, total = score_blocks(fit, None).length, score_blocks(fit, None).sums.sum(axis=0)
    monkeypatch.setattr(covariance_module, "_MOST_BLOCKS", 200)
    merged = score_blocks(fit, None)
    assert merged.length == 2 * length
    np.testing.assert_allclose(merged.sums.sum(axis=0), total, atol=1e-9 * np.abs(merged.sums).max())
    np.testing.assert_allclose(merged.normals.sum(axis=0), np.eye(len(fit.beta)), atol=1e-8)
    ratio = np.sqrt(np.diag(HAC().of(fit).covariance) / np.diag(before.covariance))
    assert ratio.min() > 0.85
    assert ratio.max() < 1.2


@pytest.mark.parametrize("kind", [HAC, Bootstrap])
def test_logs_too_short_for_their_correlation_are_refused(arm, kind):
    fit = wls(Observations(arm.model, (arm.run(seconds=0.7),)))
    with pytest.raises(DataError, match="longer log"):
        kind().of(fit)


def test_hac_needs_a_lag():
    with pytest.raises(DataError, match="at least one lag"):
        HAC(lags=0)


@pytest.fixture(scope="module")
def coverage(arm):
    """Share of true parameters inside 90 % intervals over 60 data sets of 30 s with AR(1) noise of coefficient 0.95."""
    hits = {name: [] for name in COVARIANCES}
    for seed in range(60):
        fit = wls(Observations(arm.model, (arm.run(seed, 30.0, (1.0, 0.3), 0.95, still=False),)))
        for name, kind in COVARIANCES.items():
            found = (kind(draws=200) if kind is Bootstrap else kind()).of(fit)
            quantile = 1.6449 if np.isinf(found.dof) else stdtrit(found.dof, 0.95)
            hits[name].append(np.abs(fit.beta - arm.beta) < quantile * np.sqrt(np.diag(found.covariance)))
    return {name: np.mean(found) for name, found in hits.items()}


@pytest.mark.filterwarnings("ignore:the white-noise")
def test_hac_intervals_cover_under_autocorrelated_noise(coverage):
    assert 0.86 <= coverage["hac"] <= 0.94


@pytest.mark.filterwarnings("ignore:the white-noise")
def test_white_intervals_do_not_cover_under_autocorrelated_noise(coverage):
    assert coverage["white"] < 0.5


@pytest.mark.filterwarnings("ignore:the white-noise")
def test_autoregressive_and_bootstrap_intervals_nearly_cover_under_autocorrelated_noise(coverage):
    assert 0.82 <= coverage["ar"] <= 0.94
    assert 0.82 <= coverage["bootstrap"] <= 0.94


def test_robust_fits_get_hubers_sandwich(arm):
    """On white Gaussian noise Huber's estimate has 1 / 0.95 of the variance of least squares (Huber 1964, table I); the normal
    matrix of its weights in place of the estimating equations' derivative would say 0.78."""
    run = arm.run(2, seconds=40.0, correlation=0.0, still=False)
    observations = Observations(arm.model, (run,))
    fit = METHODS["robust"](observations)
    bread, middle = np.zeros((2, len(fit.beta), len(fit.beta)))
    for (x, y, _), share in zip(arm.dense(run), fit.weights):
        residual, limit = y - x @ fit.beta, 1.345 / np.sqrt(share)
        kept = np.abs(residual) <= limit
        bread += share * kept.mean() * x.T @ x
        middle += share**2 * np.mean(np.clip(residual, -limit, limit) ** 2) * x.T @ x
    expected = np.linalg.solve(bread, np.linalg.solve(bread, middle).T)
    with pytest.warns(UserWarning, match="too narrow"):
        assert _relative(White().of(fit).covariance, expected).max() < 0.1
    least = METHODS["wls"](observations)
    for covariance in (HAC(), AR()):
        ratio = np.diag(covariance.of(fit).covariance) / np.diag(covariance.of(least).covariance)
        assert np.median(ratio) == pytest.approx(1.05, abs=0.06)
