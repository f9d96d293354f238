import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.inertia import pseudo_inertia
from bayesid.models import Model
from bayesid.posterior import Bounded, ClassPrior, FromRobot, Wishart
from bayesid.posterior.prior import from_pseudo, pseudo
from bayesid.robots import load_robot


def test_numpy_pseudo_inertia_agrees_with_the_one_of_the_inertia_room():
    pi = np.random.default_rng(0).normal(size=(7, 10))
    np.testing.assert_allclose(pseudo(pi), pseudo_inertia(pi), atol=1e-14)
    np.testing.assert_allclose(from_pseudo(pseudo(pi)), pi, atol=1e-13)


def test_draws_have_the_nominal_mean_and_the_variance_of_a_wishart_distribution(arm):
    dof = 12.0
    prior = Wishart(dof).of(arm)
    draws = prior.sample(1, 40_000)
    links = pseudo(draws[:, :20].reshape(-1, 2, 10))
    center = prior.centers
    diagonal = np.einsum("nii->ni", center)
    # var P_ij = (C_ij^2 + C_ii C_jj) / dof; 40000 draws know it to about 1 %.
    expected = (center**2 + diagonal[:, :, None] * diagonal[:, None, :]) / dof
    np.testing.assert_allclose(links.var(axis=0), expected, rtol=0.06)
    np.testing.assert_allclose(links.mean(axis=0), center, atol=4 * np.sqrt(expected.max() / 40_000))
    np.testing.assert_allclose(draws[:, prior.positive].mean(axis=0), prior.scale, rtol=0.02)


def test_every_draw_is_a_body(arm):
    draws = Wishart(6.0).of(arm).sample(0, 2000)
    assert np.linalg.eigvalsh(pseudo(draws[:, :20].reshape(-1, 2, 10))).min() > 0


def test_bounded_bodies_fit_into_their_ellipsoid(arm):
    link = arm.robot.link_names[1]
    center, axes = np.array([0.1, 0.0, 0.0]), np.array([0.5, 0.3, 0.3])
    prior = Bounded(Wishart(8.0), ((link, tuple(center), tuple(axes)),)).of(arm)
    draws = prior.sample(0, 1000)
    com = draws[:, 11:14] / draws[:, 10:11]
    assert np.max(np.sum(((com - center) / axes) ** 2, axis=1)) < 1.0
    # A mass within the ellipsoid has no second moment about its centre above m axes^2.
    second = pseudo(draws[:, 10:20])
    about = np.einsum("kii->k", second[:, :3, :3] / axes**2) - 2 * second[:, :3, 3] @ (center / axes**2)
    assert np.all(about + second[:, 3, 3] * (np.sum((center / axes) ** 2) - 1.0) < 0)


def test_class_prior_needs_the_total_mass_only():
    model = Model(load_robot("ur10e"))
    prior = ClassPrior(30.0).of(model)
    assert np.linalg.eigvalsh(prior.centers).min() > 0
    assert prior.start[0:60:10].sum() == pytest.approx(30.0)


@pytest.mark.parametrize("dof", [0.0, -3.0, 5.0, np.nan])
def test_degrees_of_freedom_that_make_no_density_are_refused(arm, dof):
    with pytest.raises(DataError, match="degrees of freedom"):
        Wishart(dof).of(arm)


def test_bad_priors_are_refused_by_name(arm):
    with pytest.raises(DataError, match="3 degrees of freedom for 2 links"):
        Wishart((9.0, 9.0, 9.0)).of(arm)
    with pytest.raises(DataError, match="has 6 joints"):
        FromRobot(load_robot("ur5")).of(arm)
    with pytest.raises(DataError, match="no rigid body"):
        Wishart().of(Model(load_robot("panda")))
    with pytest.raises(DataError, match="total mass"):
        ClassPrior(0.0).of(arm)
    with pytest.raises(DataError, match="does not fit"):
        Bounded(Wishart(), ((arm.robot.link_names[0], (5.0, 0, 0), (0.1, 0.1, 0.1)),)).of(arm)
