import cvxpy as cp
import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.posterior import Target, Wishart, calibrated, soften
from bayesid.posterior.prior import BASIS, pseudo
from bayesid.robots import load_robot


@pytest.fixture(scope="module")
def target(arm, fit):
    return Target(Wishart(12.0).of(arm), calibrated(fit))


def test_mode_is_the_entropic_solution_of_a_conic_solver(target, arm):
    prior, likelihood = target.prior, target.likelihood
    scale = np.maximum(np.abs(prior.start), 0.05)
    unit = cp.Variable(arm.size)
    x = cp.multiply(scale, unit)
    cost = 0.5 * cp.sum_squares((likelihood.rows[0] @ arm.base.matrix * scale) @ unit - likelihood.target[0])
    for i in range(2):
        root = np.linalg.inv(np.linalg.cholesky(prior.centers[i]))
        body = cp.reshape(np.einsum("ab,bck,dc->adk", root, BASIS, root).reshape(16, 10) @ x[10 * i : 10 * i + 10], (4, 4), "C")
        cost += -(12.0 - 5) / 2 * cp.log_det(body) + 12.0 / 2 * cp.trace(body)
    positive = cp.multiply(1 / prior.scale, x[prior.positive])
    cost += cp.sum(-(prior.shape - 1) @ cp.log(positive) + prior.shape @ positive)
    cost += 0.5 * cp.sum_squares(cp.multiply(1 / prior.spread, x[prior.free] - prior.middle))
    cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    difference = (target.mode() - unit.value * scale) / scale
    assert np.max(np.abs(difference)) < 1e-5


def test_density_is_flat_at_the_mode_and_curved_as_stated(target):
    mode, steps = target.mode(), 1e-4 * np.maximum(np.abs(target.prior.start), 0.01)
    precision = target.precision(mode, 5.0, 1.0)
    for k in range(len(mode)):
        step = np.zeros(len(mode))
        step[k] = steps[k] * min(1.0, 0.1 / (steps[k] * np.sqrt(precision[k, k])))
        up, middle, down = (target.log_density(mode + s * step) for s in (1, 0, -1))
        size = np.sqrt(precision[k, k]) * step[k]
        assert abs(up - down) / (2 * size) < 1e-3
        assert (2 * middle - up - down) / size**2 == pytest.approx(1.0, rel=2e-2)


def test_nothing_is_possible_outside_of_bodies(target):
    outside = target.mode()
    outside[0] = -1.0
    assert target.log_density(outside) == -np.inf


def test_a_link_at_odds_with_its_nominal_is_named_and_softened(arm, fit):
    heavy = arm.robot.inertials.copy()
    heavy[1] *= 12.0
    model = Model(arm.robot.with_inertials(heavy))
    target, conflicts = soften(Target(Wishart(40.0).of(model), calibrated(fit)))
    assert [c.link for c in conflicts] == [model.robot.link_names[1]]
    assert target.prior.dof[1] < 40.0 == target.prior.dof[0]
    assert model.robot.link_names[1] in str(conflicts[0])


def test_no_conflict_where_the_nominal_is_right(target):
    same, conflicts = soften(target)
    assert conflicts == ()
    np.testing.assert_array_equal(same.prior.dof, target.prior.dof)


def test_another_models_likelihood_is_refused(fit):
    with pytest.raises(DataError, match="same model"):
        Target(Wishart().of(Model(load_robot("ur10e"))), calibrated(fit))


def test_center_of_the_prior_alone_is_its_mean(arm, fit):
    from dataclasses import replace

    likelihood = calibrated(fit)
    vague = replace(likelihood, rows=1e-9 * likelihood.rows, target=1e-9 * likelihood.target)
    target = Target(Wishart(9.0).of(arm), vague)
    np.testing.assert_allclose(pseudo(target.center()[:20].reshape(2, 10)), target.prior.centers, rtol=1e-5, atol=1e-8)
    # The mode of a Wishart distribution is (dof - 5) / dof of its mean.
    np.testing.assert_allclose(pseudo(target.mode()[:20].reshape(2, 10)), target.prior.centers * 4 / 9, rtol=1e-5, atol=1e-8)
