"""The log-Cholesky prior: its density against numerical derivatives and its own draws, and its posterior beside Wishart's."""

from dataclasses import replace

import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.posterior import NUTS, Laplace, LogCholesky, Wishart, autoregressive, calibrated, infer, soften, white
from bayesid.posterior.prior import pseudo
from bayesid.regression import Observations
from bayesid.robots import load_robot

SAMPLER = NUTS(chains=4, warmup=150, draws=500)


@pytest.fixture(scope="module")
def prior(arm):
    return LogCholesky(0.35, 0.15, 0.2, 0.5).of(arm)


@pytest.fixture(scope="module")
def both(arm, fit, prior):
    """Posterior of real use, and one whose data say nothing, sampled by one program."""
    likelihood = calibrated(fit)
    vague = replace(likelihood, rows=1e-9 * likelihood.rows, target=1e-9 * likelihood.target)
    targets = [prior.target(likelihood), prior.target(vague)]
    return targets, SAMPLER.run_many(targets)


def numerical_jacobian(function, at, step=1e-6):
    moves = step * np.eye(len(at))
    return np.array([(function(at + move) - function(at - move)) / (2 * step) for move in moves]).T


def test_coordinates_and_parameters_are_inverse_and_reproduce_the_factor(prior, arm):
    coordinates = np.random.default_rng(0).normal(size=(50, arm.size))
    parameters = prior.parameters(coordinates)
    np.testing.assert_allclose(prior.coordinates(parameters), coordinates, atol=1e-9)
    # Written out for one link: U V V^T U^T with both factors upper triangular.
    theta = coordinates[7, 10:20] * prior.widths[1]
    a, d1, d2, d3, s12, s23, s13, *t = theta
    v = np.exp(a) * np.array([[np.exp(d1), s12, s13, t[0]], [0, np.exp(d2), s23, t[1]], [0, 0, np.exp(d3), t[2]], [0, 0, 0, 1]])
    u = np.linalg.cholesky(prior.linear.centers[1][::-1, ::-1])[::-1, ::-1]
    np.testing.assert_allclose(pseudo(parameters[7, 10:20]), u @ v @ v.T @ u.T, atol=1e-10)
    assert np.isnan(prior.coordinates(-parameters[0])).any()


def test_spreads_stated_of_wisharts_prior_are_those_of_its_draws(arm):
    draws = LogCholesky(1.0, 1.0, 1.0).of(arm).coordinates(Wishart(12).of(arm).sample(0, 20000))[:, :10].std(axis=0)
    assert draws[0] == pytest.approx(0.43, abs=0.01)
    np.testing.assert_allclose(draws[1:4], 0.32, atol=0.015)
    np.testing.assert_allclose(draws[7:10], 0.32, atol=0.015)


def test_friction_that_no_such_prior_expects_is_named(prior, arm):
    parameters = prior.start.copy()
    assert prior.strained(parameters) == []
    at = arm.names.index("joint2.viscous")
    parameters[at] *= np.exp(4.1 * prior.friction)
    assert prior.strained(parameters) == ["joint2.viscous"]


def test_derivative_is_the_numerical_one(prior, arm):
    at = np.random.default_rng(1).normal(size=arm.size)
    np.testing.assert_allclose(prior.jacobian(at), numerical_jacobian(prior.parameters, at), rtol=1e-5, atol=1e-7)


def test_density_of_parameters_is_that_of_coordinates_over_the_volume(prior, arm):
    for seed in range(5):
        at = np.random.default_rng(seed).normal(size=arm.size)
        volume = np.linalg.slogdet(numerical_jacobian(prior.parameters, at))[1]
        normal = -0.5 * at @ at - 0.5 * len(at) * np.log(2 * np.pi)
        assert prior.log_density(prior.parameters(at)) == pytest.approx(normal - volume, abs=1e-4)
    assert prior.log_density(-prior.start) == -np.inf


def test_samplers_see_the_same_density(both, arm):
    """Differences of the compiled potential are those of the density in NumPy, which goes another way."""
    target, problem = both[0][0], both[0][0].problem()
    potential = problem.layout.potential(problem.arrays)
    points = 0.7 * np.random.default_rng(3).normal(size=(6, arm.size))
    compiled = np.array([float(potential(z)) for z in points])
    plain = np.array([-target.log_density(x) for x in problem.parameters(points)])
    np.testing.assert_allclose(np.diff(compiled), np.diff(plain), rtol=1e-6, atol=1e-6)
    assert problem.accept(points, np.random.default_rng(0)).all()


def test_density_goes_on_beyond_the_edge_and_nothing_is_kept_there(both, arm):
    problem = both[0][1].problem()
    potential = problem.layout.potential(problem.arrays)
    far = np.linalg.solve(problem.root, -3.0 * problem.center)
    values = np.array([float(potential(share * far)) for share in np.linspace(0.0, 0.5, 200)])
    assert np.isfinite(values).all()
    assert not problem.exists(0.5 * far)
    assert not problem.accept(np.tile(0.5 * far, (100, 1)), np.random.default_rng(0)).any()


def test_without_data_draws_have_the_moments_of_the_prior(both, prior, arm):
    draws = both[1][1]
    coordinates = prior.coordinates(draws.parameters)
    # Standard normal: at least 200 effective draws of each.
    assert np.abs(coordinates.mean(axis=(0, 1))).max() < 4 / np.sqrt(200)
    assert np.abs(coordinates.std(axis=(0, 1)) - 1.0).max() < 0.25
    mass = np.log(prior.sample(5, 4000)[:, [0, 10]] / arm.nominal[[0, 10]])
    np.testing.assert_allclose(mass.std(axis=0), 0.35, rtol=0.05)
    assert draws.diagnostics.divergences <= 2


def test_every_draw_is_a_body_with_numpy_alone(both, arm, prior):
    for draws in (both[1][0].parameters, both[1][1].parameters, prior.sample(0, 2000)):
        flat = draws.reshape(-1, arm.size)
        assert np.linalg.eigvalsh(pseudo(flat[:, :20].reshape(-1, 2, 10))).min() > 0
        assert flat[:, arm.nonnegative].min() > 0


@pytest.mark.filterwarnings("ignore:the white-noise")
def test_mode_is_where_no_coordinate_improves(prior, arm, run, fit):
    observations = Observations(arm, (run,))
    for likelihood in (calibrated(fit), white(observations), autoregressive(observations, 1)):
        target = prior.target(likelihood)
        mode = target.mode()

        def density(c, target=target):
            return -0.5 * c @ c + target.likelihood.log_density(arm.base.project(target.prior.parameters(c)))

        slope = numerical_jacobian(lambda c: np.array([density(c)]), mode, 1e-5)[0]
        rows, _ = target._rows(mode)
        assert slope @ np.linalg.solve(rows.T @ rows + np.eye(len(mode)), slope) < 1e-3


def test_data_overrule_the_kind_of_prior(both, arm, fit):
    wishart = SAMPLER.run(Wishart().of(arm).target(both[0][0].likelihood))
    ours, theirs = (arm.base.project(d.parameters.reshape(-1, arm.size)) for d in (both[1][0], wishart))
    assert both[1][0].diagnostics.divergences <= 2
    known = theirs.std(axis=0) < 0.1 * arm.base.project(Wishart().of(arm).sample(0, 2000)).std(axis=0)
    assert known.sum() >= 4
    shift = np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0)
    assert shift[known].max() < 0.5
    np.testing.assert_allclose(ours.std(axis=0)[known], theirs.std(axis=0)[known], rtol=0.3)


def test_a_body_at_odds_with_its_nominal_is_named_and_its_prior_softened(arm, truth, simulate):
    wrong = truth.copy()
    wrong[10:20] *= 8.0
    found = infer(arm, simulate(arm, wrong, samples=1000, correlation=0.5, seed=2), prior=LogCholesky(), method=Laplace(300))
    assert [c.link for c in found.conflicts] == [arm.robot.link_names[1]]
    description = found.target.prior.description
    assert description["mass"][1] > 0.3 == pytest.approx(description["mass"][0])
    assert found.min_eigenvalues().min() > 0
    assert np.isfinite(found.contraction()).all()


def test_links_in_agreement_keep_their_prior(both):
    target, conflicts = soften(both[0][0])
    assert not conflicts
    np.testing.assert_array_equal(target.prior.widths, both[0][0].prior.widths)


def test_bad_spreads_and_other_robots_are_refused(arm):
    with pytest.raises(DataError, match="spread of offset"):
        LogCholesky(offset=0.0).of(arm)
    with pytest.raises(DataError, match="has 6 joints"):
        LogCholesky(robot=load_robot("ur5")).of(arm)
