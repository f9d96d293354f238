from dataclasses import dataclass, replace

import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.posterior import NUTS, SVI, Laplace, Target, Wishart, calibrated
from bayesid.posterior.prior import pseudo

SAMPLER = NUTS(chains=4, warmup=150, draws=500)


@pytest.fixture(scope="module")
def both(arm, fit):
    """Posterior of real use, and one whose data say nothing, sampled by one program."""
    likelihood = calibrated(fit)
    vague = replace(likelihood, rows=1e-9 * likelihood.rows, target=1e-9 * likelihood.target)
    prior = Wishart(8.0).of(arm)
    targets = [Target(prior, likelihood), Target(prior, vague)]
    return targets, SAMPLER.run_many(targets)


def test_without_data_draws_follow_the_wishart_distribution(both, arm):
    targets, (_, draws) = both
    links = pseudo(draws.parameters[..., :20].reshape(-1, 2, 10))
    center = targets[1].prior.centers
    relative = np.linalg.solve(center, links)
    # E log det of a 4x4 Wishart: sum of digamma((dof - i)/2) + 4 log 2 - 4 log dof.
    from scipy.special import digamma

    expected = sum(digamma((8.0 - i) / 2) for i in range(4)) + 4 * np.log(2) - 4 * np.log(8.0)
    error = 4 * np.linalg.slogdet(relative)[1].std(axis=0) / np.sqrt(400)
    assert np.all(np.abs(np.linalg.slogdet(relative)[1].mean(axis=0) - expected) < error)
    trace = np.trace(relative, axis1=2, axis2=3)
    assert np.all(np.abs(trace.mean(axis=0) - 4.0) < 4 * trace.std(axis=0) / np.sqrt(400))
    # tr(C^-1 P) follows chi-squared with 4 dof / dof.
    np.testing.assert_allclose(trace.var(axis=0), 2 * 4 / 8.0, rtol=0.3)


def test_chains_agree_without_divergences(both):
    for draws in both[1]:
        assert draws.diagnostics.divergences == 0
        assert draws.diagnostics.max_rhat < 1.03
        assert draws.diagnostics.min_ess_bulk > 200


def test_every_draw_is_a_body_with_numpy_alone(both, arm):
    for draws in both[1]:
        flat = draws.parameters.reshape(-1, arm.size)
        assert np.linalg.eigvalsh(pseudo(flat[:, :20].reshape(-1, 2, 10))).min() > 0
        assert flat[:, arm.nonnegative].min() > 0


def test_data_are_met_as_least_squares_meets_them(both, arm, fit):
    draws = both[1][0].parameters.reshape(-1, arm.size)
    rows = both[0][0].likelihood.rows[0]
    deviation = (arm.base.project(draws) - fit.beta) @ rows.T
    # Whitened residuals of b well-determined parameters: no larger than b on average.
    assert np.mean(np.sum(deviation**2, axis=1)) < 1.3 * len(fit.beta)


@pytest.mark.parametrize("method", [Laplace(draws=2000), SVI(steps=400, draws=2000)], ids=["laplace", "svi"])
def test_fast_methods_are_close_to_the_chains(both, arm, method):
    target, chains = both[0][0], both[1][0].parameters.reshape(-1, arm.size)
    fast = method.run(target).parameters.reshape(-1, arm.size)
    shift = np.abs(fast.mean(axis=0) - chains.mean(axis=0)) / chains.std(axis=0)
    assert shift.max() < 0.7
    ratio = arm.base.project(fast).std(axis=0) / arm.base.project(chains).std(axis=0)
    assert 0.6 < ratio.min() < ratio.max() < 1.5


def test_same_seed_same_draws(both):
    again = SAMPLER.run_many(both[0])
    np.testing.assert_array_equal(again[0].parameters, both[1][0].parameters)


@dataclass(frozen=True)
class LogNormalLayout:
    def potential(self, arrays):
        return lambda z: 0.5 * ((z - arrays["shift"]) ** 2).sum()


@dataclass(frozen=True, eq=False)
class LogNormal:
    """Two log-normal parameters exp(z), z ~ N(shift, 1), kept where their sum is below `limit`: no link, no likelihood."""

    arrays: dict
    limit: float
    layout: LogNormalLayout = LogNormalLayout()
    size: int = 2
    names: tuple = ("a", "b")
    target_accept: float = 0.8

    def problem(self):
        return self

    def parameters(self, whitened):
        return np.exp(whitened)

    def exists(self, whitened):
        return np.exp(whitened).sum(axis=-1) < self.limit

    def accept(self, whitened, rng):
        return self.exists(whitened)


def test_samplers_take_any_density_in_any_coordinates():
    shift = np.array([0.3, -0.2])
    unbounded, bounded = (LogNormal({"shift": shift}, limit) for limit in (np.inf, 4.0))
    free, held = NUTS(chains=4, warmup=100, draws=500).run_many([unbounded, bounded])
    logs = np.log(free.parameters).reshape(-1, 2)
    np.testing.assert_allclose(logs.mean(axis=0), shift, atol=4 * 1 / np.sqrt(800))
    np.testing.assert_allclose(logs.var(axis=0), 1.0, rtol=0.25)
    assert held.parameters.sum(axis=-1).max() < 4.0
    reference = np.exp(shift + np.random.default_rng(0).normal(size=(20000, 2)))
    reference = reference[reference.sum(axis=1) < 4.0].mean(axis=0)
    np.testing.assert_allclose(held.parameters.mean(axis=(0, 1)), reference, rtol=0.1)
    assert Laplace(200).run(bounded).parameters.sum(axis=-1).max() < 4.0


def test_densities_of_different_shape_are_not_sampled_together(both):
    with pytest.raises(DataError, match="same model"):
        NUTS().run_many([both[0][0], LogNormal({"shift": np.zeros(2)}, np.inf)])


def test_useless_settings_are_refused():
    with pytest.raises(DataError, match="at least one chain"):
        NUTS(chains=0)
    with pytest.raises(DataError, match="probability"):
        NUTS(target_accept=1.5)
