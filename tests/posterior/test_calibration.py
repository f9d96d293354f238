"""A small simulation-based calibration; the full one is experiments/posterior_sbc."""

import numpy as np
import pytest

from bayesid.posterior import NUTS, Target, Wishart, autoregressive, calibrated
from bayesid.regression import Observations, wls

REPLICATES = 24


@pytest.fixture(scope="module")
def problems(arm, simulate):
    prior = Wishart(12.0).of(arm)
    truths = prior.sample(11, REPLICATES)
    runs = [simulate(arm, truth, samples=1000, noise=1.0, correlation=0.95, seed=100 + k) for k, truth in enumerate(truths)]
    return prior, truths, [Observations(arm, (run,)) for run in runs]


@pytest.mark.parametrize("likelihood", [lambda o: calibrated(wls(o)), lambda o: autoregressive(o, 1)], ids=["calibrated", "ar"])
def test_intervals_cover_and_ranks_are_uniform_under_autocorrelated_noise(problems, likelihood):
    prior, truths, observations = problems
    targets = [Target(prior, likelihood(o)) for o in observations]
    sampler = NUTS(chains=1, warmup=100, draws=120, max_tree_depth=6)
    # In groups: chains side by side wait for the longest trajectory among them.
    found = [draws for at in range(0, REPLICATES, 8) for draws in sampler.run_many(targets[at : at + 8])]
    flat = [d.parameters[0] for d in found]
    inside = [(np.quantile(f, 0.05, axis=0) <= t) & (t <= np.quantile(f, 0.95, axis=0)) for f, t in zip(flat, truths)]
    # 24 replicates of 28 dependent parameters: the standard error of the mean coverage is about 2 %.
    assert 0.83 < np.mean(inside) < 0.96
    ranks = np.array([(f < t).mean(axis=0) for f, t in zip(flat, truths)])
    assert abs(ranks.mean() - 0.5) < 0.05
    assert abs(ranks.var() - 1 / 12) < 0.02
