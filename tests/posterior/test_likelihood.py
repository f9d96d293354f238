import numpy as np
import pytest

import bayesid.posterior.likelihood as likelihood_module
from bayesid.errors import DataError, SolverError
from bayesid.posterior.likelihood import autoregressive, calibrated, likelihood_order, white
from bayesid.regression import HAC, Observations, wls


def test_calibrated_keeps_the_hac_standard_deviations(fit):
    likelihood, hac = calibrated(fit), HAC().of(fit)
    rows = likelihood.rows[0]
    covariance = np.linalg.inv(rows.T @ rows)
    widened = np.sqrt(np.diag(hac.covariance) * hac.dof / (hac.dof - 2))
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), widened, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.solve(rows, likelihood.target[0]), fit.beta, rtol=1e-8)


def test_autocorrelation_lowers_the_effective_number_of_samples(fit, arm, truth, simulate):
    few = calibrated(fit).effective
    many = calibrated(wls(Observations(arm, (simulate(arm, truth, samples=1500, seed=3),)))).effective
    assert np.all(few < many / 3)


def test_schwarz_criterion_finds_the_order_of_the_noise(arm, truth, run):
    likelihood = autoregressive(Observations(arm, (run,)))
    assert likelihood.description["order"] == 1
    np.testing.assert_allclose(likelihood.description["coefficients"], 0.9, atol=0.06)
    # An AR(1) process of coefficient 0.9 holds N (1 - 0.9) / (1 + 0.9) independent samples for its mean.
    np.testing.assert_allclose(likelihood.effective, 1500 * 0.1 / 1.9, rtol=0.6)


@pytest.mark.filterwarnings("ignore:the white-noise likelihood")
def test_log_density_is_that_of_marginalised_noise_from_the_samples(arm, run):
    observations = Observations(arm, (run,))
    likelihood = white(observations)
    rng = np.random.default_rng(0)
    beta = likelihood.beta + 0.1 * rng.normal(size=(2, likelihood.size))
    from_samples = []
    for b in beta:
        square = sum(np.sum((c.effort - np.einsum("nbs,b->ns", c.columns, b)) ** 2, axis=1) for c in observations.chunks())
        from_samples.append(-0.5 * 1500 * np.log(square).sum())
    assert likelihood.log_density(beta[0]) - likelihood.log_density(beta[1]) == pytest.approx(
        from_samples[0] - from_samples[1], rel=1e-9
    )


def test_white_noise_is_warned_about(arm, run):
    with pytest.warns(UserWarning, match="too narrow"):
        white(Observations(arm, (run,)))


def test_two_logs_count_as_both(fit):
    one = calibrated(fit)
    both = one + one
    np.testing.assert_allclose(both.beta, one.beta, rtol=1e-8)
    np.testing.assert_allclose(both.rows[0].T @ both.rows[0], 2 * one.rows[0].T @ one.rows[0], rtol=1e-7, atol=1e-6)


def test_likelihoods_that_cannot_be_added_are_refused(fit, arm, run):
    with pytest.raises(DataError, match="calibrated"):
        calibrated(fit) + autoregressive(Observations(arm, (run,)), 1)


def test_gains_must_match(fit):
    with pytest.raises(DataError, match="positive semidefinite"):
        calibrated(fit, gains_covariance=np.eye(3))


def test_a_response_multiplies_all_errors(fit):
    response = np.eye(len(fit.beta)) + 0.1 * np.random.default_rng(0).normal(size=(len(fit.beta),) * 2)
    plain, moved = (np.linalg.inv(calibrated(fit, response=r).rows[0]) for r in (None, response))
    np.testing.assert_allclose(moved @ moved.T, response @ plain @ plain.T @ response.T, rtol=1e-5, atol=1e-9)


def test_order_zero_for_white_noise(arm, truth, simulate):
    observations = Observations(arm, (simulate(arm, truth, samples=1500, seed=5),))
    assert likelihood_order(observations, wls(observations).beta) == 0


def test_samples_at_standstill_do_not_speak_for_a_higher_order(arm, truth, simulate):
    run = simulate(arm, truth, samples=3000, seed=1)
    moving = np.tile(np.arange(3000)[:, None] < 300, (1, 2))
    observations = Observations(arm, (run.replace(moving=moving),))
    assert likelihood_order(observations, wls(observations).beta) == 0


def test_a_log_that_least_squares_cannot_weigh_still_has_an_autoregressive_likelihood(arm, run, monkeypatch):
    observations = Observations(arm, (run,))
    settled = autoregressive(observations, 1)

    def unsettled(_):
        raise SolverError("the weights of the joints do not settle")

    monkeypatch.setattr(likelihood_module, "wls", unsettled)
    found = autoregressive(observations, 1)
    np.testing.assert_allclose(found.beta, settled.beta, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.noise, settled.noise, rtol=1e-4)
