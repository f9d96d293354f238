"""Independent fits of recordings of different days agree within their intervals; the whole study is in experiments."""

import itertools

import numpy as np
import pytest
from scipy.special import stdtrit

from bayesid.regression import HAC, Observations, White, physical, wls

_GAINS = np.array([10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232])
_LOGS = (
    "ur-20_02_10-30sec_12harm.csv@635:3510",
    "ur-20_02_12-50sec_12harm.csv@355:5090",
    "ur-20_02_05-20sec_8harm.csv@320:2310",
    "ur-20_01_31-unload.csv@300:2623",
)


@pytest.fixture(scope="module")
def fits(ur10e, ur10e_run):
    return [wls(Observations(ur10e, (ur10e_run(name),), _GAINS)) for name in _LOGS]


def _agreement(results):
    """Share of parameters whose 95 % interval of the difference covers zero, over all pairs."""
    hits = []
    for (one, first, nu), (two, second, mu) in itertools.combinations(results, 2):
        v, w = np.diag(first), np.diag(second)
        quantile = 1.959964 if np.isinf(nu) else stdtrit((v + w) ** 2 / (v**2 / nu + w**2 / mu), 0.975)
        hits.append(np.abs(one - two) < quantile * np.sqrt(v + w))
    return np.mean(hits, axis=0)


def test_least_squares_fits_of_different_days_agree_within_their_intervals(ur10e, fits):
    found = [HAC().of(fit) for fit in fits]
    share = _agreement([(fit.beta, c.covariance, c.dof) for fit, c in zip(fits, found)])
    assert 0.92 <= share.mean() <= 0.98
    rigid = np.array(ur10e.base.kinds) != "friction"
    assert share[rigid].mean() > share[~rigid].mean()  # friction really changes from day to day


def test_consistent_fits_of_different_days_agree_within_their_intervals(ur10e, fits):
    results = []
    for fit in fits:
        found = HAC().of(fit)
        consistent = physical(fit, found.covariance, found.dof, draws=100)
        base = ur10e.base.project(consistent.draws)
        results.append((ur10e.base.project(consistent.parameters), np.cov(base.T), np.inf))
    assert 0.92 <= _agreement(results).mean() <= 0.98


@pytest.mark.filterwarnings("ignore:the white-noise")
def test_white_noise_intervals_of_different_days_do_not_agree(fits):
    found = [White().of(fit) for fit in fits]
    assert _agreement([(fit.beta, c.covariance, c.dof) for fit, c in zip(fits, found)]).mean() < 0.5
