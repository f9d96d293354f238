import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.posterior import Fleet, Wishart, autoregressive, calibrated
from bayesid.regression import Observations


@pytest.fixture(scope="module")
def fleet(arm, simulate):
    rng = np.random.default_rng(4)
    common = Wishart(30.0).of(arm).sample(rng, 1)[0]
    truths = common * (1 + 0.08 * rng.normal(size=(8, arm.size)))
    runs = [simulate(arm, t, samples=1000, noise=3.0, correlation=0.9, seed=k) for k, t in enumerate(truths)]
    likelihoods = [autoregressive(Observations(arm, (run,)), 1) for run in runs]
    return arm.base.project(truths), likelihoods, Fleet(chains=2, warmup=200, draws=400).run(arm, likelihoods)


def test_pooled_members_are_nearer_to_the_truth_than_separate_ones(fleet, arm, simulate):
    truths, likelihoods, found = fleet
    run = simulate(arm, arm.nominal, samples=500, seed=50)
    columns = arm.regressor(run.q, run.qd, run.qdd)[:, :, arm.base.independent]
    rms = lambda betas: np.sqrt(np.mean(((np.array(betas) - truths) @ columns.reshape(-1, columns.shape[2]).T) ** 2))  # noqa: E731
    assert rms([found.member(r).mean for r in range(8)]) < 0.9 * rms([one.beta for one in likelihoods])


def test_intervals_of_members_cover(fleet):
    truths, _, found = fleet
    inside = []
    for r, true in enumerate(truths):
        interval = found.member(r).interval(0.9)
        inside.append((interval[:, 0] <= true) & (true <= interval[:, 1]))
    assert 0.8 < np.mean(inside) < 0.99


def test_a_newcomer_is_less_certain_than_the_population(fleet):
    found = fleet[2]
    assert np.all(found.newcomer().std > found.population().std)


def test_a_fleet_of_one_is_refused(fit, arm):
    with pytest.raises(DataError, match="at least two"):
        Fleet().run(arm, [calibrated(fit)])
