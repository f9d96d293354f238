"""A small simulation-based calibration; the full one is experiments/posterior_sbc."""

import numpy as np
import pytest

from bayesid.posterior import NUTS, Target, Wishart, autoregressive, calibrated
from bayesid.regression import Observations, wls

REPLICATES = 40


@pytest.fixture(scope="module")
def problems(arm, simulate):
    prior = Wishart(12.0).of(arm)
    truths = prior.sample(11, REPLICATES)
    runs = [simulate(arm, truth, samples=1200, noise=1.0, correlation=0.95, seed=100 + k) for k, truth in enumerate(truths)]
    return prior, truths, [Observations(arm, (run,)) for run in runs]


@pytest.mark.parametrize("kind", ["autoregressive", "calibrated"])
def test_intervals_cover_and_ranks_are_uniform_under_autocorrelated_noise(problems, arm, kind):
    prior, truths, observations = problems
    make = {"autoregressive": lambda o: autoregressive(o, 1), "calibrated": lambda o: calibrated(wls(o))}[kind]
    targets = [Target(prior, make(o)) for o in observations]
    found = NUTS(chains=1, warmup=150, draws=200).run_many(targets)
    flat = [d.parameters[0] for d in found]
    inside = [(np.quantile(f, 0.05, axis=0) <= t) & (t <= np.quantile(f, 0.95, axis=0)) for f, t in zip(flat, truths)]
    # 40 replicates of 28 dependent parameters: the standard error of the mean coverage is about 1.5 %.
    assert 0.84 < np.mean(inside) < 0.96
    ranks = np.array([(f < t).mean(axis=0) for f, t in zip(flat, truths)])
    assert abs(ranks.mean() - 0.5) < 0.04
    assert abs(ranks.var() - 1 / 12) < 0.02
