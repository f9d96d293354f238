"""Bands of new sessions: fits that leave parts out, against dense least squares; noise that differs between sessions."""

import numpy as np
import pytest

from bayesid.posterior import Laplace, Wishart, coverage, infer, torque_predictor
from bayesid.posterior.folds import held_out_fits, normal_prior
from bayesid.posterior.prediction import session_spread
from bayesid.regression import Observations
from bayesid.results import Estimate


def test_parts_are_left_out_of_the_fits_that_judge_them(arm, run):
    prior = Wishart().of(arm)
    fits = held_out_fits(prior, (run,), None)
    assert sum(len(part) for part, _ in fits) == len(run)
    center, root = normal_prior(prior)
    beta = fits[2][1]
    rest = [p for k, (p, _) in enumerate(fits) if k != 2]
    chunks = list(Observations(arm, tuple(rest)).chunks())
    columns = np.concatenate([np.moveaxis(chunk.columns, 2, 0) for chunk in chunks])
    effort = np.concatenate([chunk.effort.T for chunk in chunks])
    # The fit is its own fixed point: least squares with the noise of its residuals, and the prior's rows.
    noise = np.sqrt(np.mean((effort - columns @ beta) ** 2, axis=0))
    rows = np.concatenate([*(columns[:, j] / noise[j] for j in range(2)), root])
    right = np.concatenate([*(effort[:, j] / noise[j] for j in range(2)), root @ center])
    np.testing.assert_allclose(beta, np.linalg.lstsq(rows, right, rcond=None)[0], rtol=1e-5, atol=1e-6)
    assert len(held_out_fits(prior, (run,) * 5, None)) == 5


def test_spread_between_sessions_is_that_of_the_noise_of_parts():
    rng = np.random.default_rng(0)
    scale = np.exp(0.3 * rng.normal(size=400))
    parts = [s * rng.normal(size=(200, 2)) for s in scale]
    # The noise of 200 samples is itself known to 5 %.
    np.testing.assert_allclose(session_spread(parts, 1), np.sqrt(2.0) * 0.3, rtol=0.1)
    np.testing.assert_allclose(session_spread(parts, 8), 0.5 * 0.3, rtol=0.1)
    same = [rng.normal(size=(2000, 2)) for _ in range(5)]
    assert np.all(session_spread(same, 1) < 0.1)


def test_bands_hold_sessions_whose_noise_differs(arm, truth, simulate):
    """Log noise varies between sessions, and between fifths of a session, by 0.2 each: bands hold on average over sessions."""
    rng = np.random.default_rng(4)

    def session(seed):
        run = simulate(arm, truth, samples=500, noise=1.0, seed=seed)
        level = np.repeat(np.exp(0.2 * rng.normal() + 0.2 * rng.normal(size=5)), 100)[:, None]
        clean = arm.torque(truth, run.q, run.qd, run.qdd)
        return run.replace(effort=clean + level * (run.effort - clean), effort_measured=None)

    prior = Wishart().of(arm)
    covariance = 1e-8 * np.eye(arm.size)
    shares = []
    for seed in range(30):
        predictor = torque_predictor(prior, (session(seed),), None)
        known = Estimate(arm.names, arm.units, arm.kinds, truth, covariance, "known", predictor=predictor)
        shares.append(np.mean([coverage(known, session(100 + 5 * seed + k), 0.9)["moving"] for k in range(5)]))
    # Coverage differs by 0.06 between fitted sessions, so that the mean of thirty is known to 0.011.
    assert np.mean(shares) == pytest.approx(0.9, abs=0.025)


def test_a_stand_counts_once_in_the_coverage_of_stands(arm, run):
    estimate = infer(arm, run, method=Laplace(200)).estimate()
    still = np.ones((300, 2), dtype=bool)
    still[:10, 0] = still[100:200, 0] = False
    still[:, 1] = False
    part = run.select(slice(0, 300))
    band = estimate.predict(part.replace(moving=~still), 0.9)
    effort = np.where(np.arange(300)[:, None] < 50, band.upper + 1.0, band.mean)
    shares = coverage(estimate, part.replace(moving=~still, effort=effort, effort_measured=None), 0.9)
    # Stands of joint 1: rows 10 to 99, of which 50 to 99 are inside, and 200 to 299, all inside.
    np.testing.assert_array_equal(shares["stands"], [2, 0])
    assert shares["by_stand"][0] == pytest.approx((50 / 90 + 1.0) / 2)
    assert shares["standstill"][0] == pytest.approx(150 / 190)
    assert np.isnan(shares["by_stand"][1])
