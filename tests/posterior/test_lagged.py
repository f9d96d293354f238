"""The marginal likelihood of autoregressive residuals against sums over all rows, integrals on grids, and an optimiser."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from bayesid.errors import DataError
from bayesid.posterior import Target, Wishart, autoregressive, white
from bayesid.posterior.lagged import compress_lags
from bayesid.regression import Observations


@pytest.fixture(scope="module")
def two_runs(arm, truth, simulate):
    """Runs of 300 and 200 samples, the second with a stretch in which a joint stands still."""
    first, second = (simulate(arm, truth, samples=n, correlation=0.9, seed=n) for n in (300, 200))
    moving = second.moving.copy()
    moving[80:90, 1] = False
    return Observations(arm, (first, replace(second, moving=moving)))


def residuals_of(observations, beta):
    """Per run: residuals (n, S) and which are used."""
    out = []
    for run in observations.runs:
        chunks = list(Observations(observations.model, (run,)).chunks())
        residual = np.concatenate([c.effort - np.einsum("nbs,b->ns", c.columns, beta) for c in chunks], axis=1)
        out.append((residual, np.concatenate([c.weight > 0 for c in chunks], axis=1)))
    return out


def lag_matrix(runs, joint, order):
    """(N, order + 1) residuals at lags 0, 1, ..., in plain loops."""
    return np.array(
        [
            residual[joint, t - order : t + 1][::-1]
            for residual, used in runs
            for t in range(order, residual.shape[1])
            if used[joint, t - order : t + 1].all()
        ]
    )


@pytest.mark.parametrize("order", [1, 4])
def test_compressed_density_is_that_of_all_rows(two_runs, arm, truth, order):
    rows, target, counts, lags = compress_lags(two_runs, order)
    base = arm.base.project(truth)
    rng = np.random.default_rng(order)
    compressed, direct = [], []
    for size in (0.0, 1e-3, 0.1, 10.0):
        beta = base + size * rng.normal(size=len(base))
        runs = residuals_of(two_runs, beta)
        total = 0.0
        for joint in range(2):
            now, *past = lag_matrix(runs, joint, order).T
            past = np.stack(past, axis=1)
            assert counts[joint] == len(now)
            rest = now - past @ np.linalg.lstsq(past, now, rcond=None)[0]
            total -= (len(now) - order) / 2 * np.log(rest @ rest) + 0.5 * np.linalg.slogdet(past.T @ past)[1]
        direct.append(total)
        compressed.append(lags.log_density(rows @ beta - target, counts))
    np.testing.assert_allclose(compressed, direct, rtol=1e-9)
    assert counts[1] < counts[0] == 500 - 2 * order


def test_density_is_the_integral_over_coefficient_and_scale(arm, truth, simulate):
    observations = Observations(arm, (simulate(arm, truth, samples=60, correlation=0.8, seed=7),))
    rows, target, counts, lags = compress_lags(observations, 1)
    base = arm.base.project(truth)
    beta = base + 0.1 * np.random.default_rng(1).normal(size=(3, len(base)))
    grid, log_scale = np.linspace(-1.0, 3.0, 2001), np.linspace(-6.0, 6.0, 2001)
    values, integrals = [], []
    for b in beta:
        values.append(lags.log_density(rows @ b - target, counts))
        total = 0.0
        for joint in range(2):
            now, past = lag_matrix(residuals_of(observations, b), joint, 1).T
            squares = np.sum((now - grid[:, None] * past) ** 2, axis=1)
            exponent = -len(now) * log_scale - 0.5 * squares[:, None] * np.exp(-2 * log_scale)
            total += exponent.max() + np.log(np.trapezoid(np.trapezoid(np.exp(exponent - exponent.max()), log_scale), grid))
        integrals.append(total)
    np.testing.assert_allclose(np.diff(values), np.diff(integrals), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:the white-noise likelihood")
def test_without_lags_it_is_the_density_of_white_noise(two_runs):
    rows, target, counts, lags = compress_lags(two_runs, 0)
    plain = white(two_runs)
    beta = plain.beta + np.random.default_rng(0).normal(size=(2, plain.size))
    one, two = (lags.log_density(rows @ b - target, counts) for b in beta)
    assert one - two == pytest.approx(plain.log_density(beta[0]) - plain.log_density(beta[1]), rel=1e-10)


def test_potential_falls_as_the_density_rises(two_runs, arm):
    target = Target(Wishart().of(arm), autoregressive(two_runs, 3))
    problem = target.problem()
    import jax

    slope = jax.jit(jax.value_and_grad(problem.layout.potential(problem.arrays)))
    z = 0.3 * np.random.default_rng(2).normal(size=problem.size)
    value, gradient = slope(z)
    steps = 1e-5 * np.eye(problem.size)
    numeric = [(slope(z + step)[0] - slope(z - step)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)
    # Both are up to a constant, and nothing is continued this near to the centre.
    zero = np.zeros(problem.size)
    difference = target.log_density(problem.parameters(z)) - target.log_density(problem.parameters(zero))
    assert float(slope(zero)[0] - value) == pytest.approx(difference, abs=1e-6)


def test_mode_is_that_of_a_generic_optimiser(two_runs, arm):
    target = Target(Wishart().of(arm), autoregressive(two_runs, 2))
    problem, mode = target.problem(), target.mode()
    start = problem.parameters(np.zeros(problem.size))
    found = minimize(
        lambda z: -target.log_density(problem.parameters(z)) if problem.exists(z) else 1e9,
        np.linalg.solve(problem.root, mode - start) + 0.05,
        method="BFGS",
        options={"gtol": 1e-4},
    )
    assert -found.fun <= target.log_density(mode) + 1e-9
    np.testing.assert_allclose(np.linalg.solve(problem.root, mode - start), found.x, atol=2e-3)


def test_quadratic_touches_the_density_from_below(two_runs):
    likelihood = autoregressive(two_runs, 2)
    rng = np.random.default_rng(3)
    at = likelihood.beta + 0.02 * rng.normal(size=likelihood.size)
    rows, right = likelihood.quadratic(at)
    lower = lambda b: -0.5 * np.sum((rows @ b - right) ** 2)  # noqa: E731
    gap = lambda b: likelihood.log_density(b) - lower(b)  # noqa: E731
    for size in (1e-3, 1e-1, 10.0):
        for step in size * rng.normal(size=(5, likelihood.size)):
            assert gap(at + step) > gap(at) - 1e-7
    step = 1e-5 * rng.normal(size=likelihood.size)
    assert likelihood.log_density(at + step) - likelihood.log_density(at - step) == pytest.approx(
        lower(at + step) - lower(at - step), rel=1e-4
    )


def test_coefficients_that_reach_a_unit_root_are_told(arm, truth, simulate):
    short = simulate(arm, truth, samples=150, correlation=0.98, noise=3.0, seed=4)
    long = simulate(arm, truth, samples=1500, correlation=0.9, seed=4)
    shares = [autoregressive(Observations(arm, (run,)), 1).description["stationary"] for run in (short, long)]
    assert min(shares[0]) < 0.999 < min(shares[1])


def test_logs_shorter_than_the_order_are_refused(arm, truth, simulate):
    with pytest.raises(DataError, match="longer log"):
        compress_lags(Observations(arm, (simulate(arm, truth, samples=14, seed=1),)), 8)
