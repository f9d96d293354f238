"""Inertial coordinates against clouds of point masses and Pinocchio; projection against its optimality conditions."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from bayesid import inertia
from bayesid.robots import load_robot

log_cholesky, from_log_cholesky = jax.jit(inertia.log_cholesky), jax.jit(inertia.from_log_cholesky)
pseudo_inertia, transform = jax.jit(inertia.pseudo_inertia), jax.jit(inertia.transform)
nearest_consistent = jax.jit(inertia.nearest_consistent)


def cloud(rng, points=12):
    """Masses (k,) and places (k, 3) of a random cloud of point masses, off the origin and flat to a random degree."""
    return rng.uniform(0.01, 2.0, points), rng.normal(size=(points, 3)) * 10.0 ** rng.uniform(-2, 0, 3) + rng.normal(size=3)


def standard(masses, places):
    """Standard parameters by their definition: sums over the points."""
    first = masses @ places
    tensor = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, places))
    return np.array([masses.sum(), *first, *tensor[np.triu_indices(3)]])


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    return [cloud(rng) for _ in range(40)]


@pytest.fixture(scope="module")
def bodies(clouds):
    return np.array([standard(*c) for c in clouds])


def pinocchio_parameters(pi):
    """Pinocchio's dynamic parameters (10,) in its own order: m, mc, Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""
    return pi[..., [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]]


def random_pose(rng):
    return pin.SE3.Random() if rng is None else pin.SE3(pin.Quaternion(*rng.normal(size=4)).normalized(), rng.normal(size=3))


def test_pseudo_inertia_is_the_second_moment_of_the_homogeneous_points(clouds, bodies):
    expected = np.array([np.einsum("k,ki,kj->ij", m, *(np.c_[r, np.ones(len(r))],) * 2) for m, r in clouds])
    np.testing.assert_allclose(pseudo_inertia(bodies), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(inertia.from_pseudo_inertia(expected), bodies, rtol=1e-12, atol=1e-13)


def test_pseudo_inertia_agrees_with_pinocchios(bodies):
    for pi in bodies[:10]:
        reference = pin.Inertia.FromDynamicParameters(pinocchio_parameters(pi)).toPseudoInertia().toMatrix()
        np.testing.assert_allclose(pseudo_inertia(pi), reference, rtol=1e-11, atol=1e-12)


def test_centre_of_mass_form_goes_there_and_back(clouds, bodies):
    m, com, I_com = inertia.to_com(bodies)
    for k, (masses, places) in enumerate(clouds):
        centre = masses @ places / masses.sum()
        central = standard(masses, places - centre)
        np.testing.assert_allclose(com[k], centre, rtol=1e-12)
        np.testing.assert_allclose(I_com[k][np.triu_indices(3)], central[4:], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(inertia.from_com(m, com, I_com), bodies, rtol=1e-12, atol=1e-13)


def test_from_com_broadcasts_a_single_tensor_over_many_masses():
    pi = inertia.from_com(np.array([1.0, 2.0]), np.zeros(3), np.eye(3))
    np.testing.assert_array_equal(pi, [[1, 0, 0, 0, 1, 0, 0, 1, 0, 1], [2, 0, 0, 0, 1, 0, 0, 1, 0, 1]])


def test_transform_moves_the_points_and_agrees_with_pinocchio(clouds, bodies):
    rng = np.random.default_rng(1)
    for (masses, places), pi in zip(clouds[:10], bodies):
        pose = random_pose(rng)
        moved = np.asarray(transform(pi, pose.rotation, pose.translation))
        expected = standard(masses, places @ pose.rotation.T + pose.translation)
        np.testing.assert_allclose(moved, expected, rtol=1e-11, atol=1e-12)
        reference = pose.act(pin.Inertia.FromDynamicParameters(pinocchio_parameters(pi))).toDynamicParameters()
        np.testing.assert_allclose(pinocchio_parameters(moved), reference, rtol=1e-10, atol=1e-11)
        back = pose.inverse()
        np.testing.assert_allclose(
            transform(moved, back.rotation, back.translation), pi, rtol=1e-10, atol=1e-11 * np.abs(pi).max()
        )


def test_transform_is_right_for_a_body_without_mass():
    pi = np.array([0.0, 1.0, 2.0, 3.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    whole, light = np.array([2.0, *pi[1:]]), np.array([2.0, *np.zeros(9)])
    pose = random_pose(np.random.default_rng(2))
    moved = [np.asarray(transform(body, pose.rotation, pose.translation)) for body in (pi, whole, light)]
    np.testing.assert_allclose(moved[0], moved[1] - moved[2], atol=1e-13)


def test_log_cholesky_goes_there_and_back(bodies):
    theta = log_cholesky(bodies)
    assert np.isfinite(theta).all()
    np.testing.assert_allclose(from_log_cholesky(theta), bodies, rtol=1e-10, atol=1e-12)
    rng = np.random.default_rng(3)
    theta = rng.normal(size=(50, 10))
    np.testing.assert_allclose(log_cholesky(from_log_cholesky(theta)), theta, rtol=1e-8, atol=1e-8)


def test_log_cholesky_agrees_with_pinocchios():
    for theta in np.random.default_rng(4).normal(size=(10, 10)):
        reference = pin.LogCholeskyParameters(theta).toDynamicParameters()
        np.testing.assert_allclose(pinocchio_parameters(from_log_cholesky(theta)), reference, rtol=1e-12, atol=1e-12)


def test_every_log_cholesky_point_is_a_body():
    theta = np.random.default_rng(5).normal(size=(200, 10)) * 2.0
    pi = np.asarray(from_log_cholesky(theta))
    J = np.asarray(pseudo_inertia(pi))
    scale = np.sqrt(np.einsum("kii->ki", J))
    assert (np.linalg.eigvalsh(J / scale[:, :, None] / scale[:, None, :]) > -1e-12).all()
    assert (pi[:, 0] > 0).all()


def test_log_cholesky_of_the_impossible_is_not_a_number():
    assert np.isnan(log_cholesky(load_robot("panda").inertials[3])).any()


@pytest.mark.parametrize("function", ["log_cholesky", "from_log_cholesky", "min_eigenvalue", "nearest_consistent"])
def test_derivatives_agree_with_finite_differences(function, bodies):
    f = jax.jit(getattr(inertia, function))
    x = np.asarray(log_cholesky(bodies[0])) if function == "from_log_cholesky" else bodies[0]
    if function == "nearest_consistent":
        x = load_robot("panda").inertials[3]
    h = 1e-6
    numeric = np.stack([(np.asarray(f(x + h * e)) - np.asarray(f(x - h * e))) / (2 * h) for e in np.eye(10)], axis=-1)
    scale = np.abs(numeric).max()
    for derivative in (jax.jit(jax.jacfwd(f)), jax.jit(jax.jacrev(f))):
        np.testing.assert_allclose(derivative(jnp.asarray(x)), numeric, atol=1e-6 * scale, rtol=1e-6)


def test_derivatives_stay_finite_for_bodies_with_symmetries():
    ball = inertia.from_com(1.0, np.zeros(3), 0.01 * np.eye(3))
    projection, eigenvalue = jax.jit(jax.jacrev(inertia.nearest_consistent)), jax.jit(jax.grad(inertia.min_eigenvalue))
    for body in (ball, ball * jnp.array([1.0, 1, 1, 1, -1, 1, 1, -1, 1, -1])):
        assert np.isfinite(projection(body)).all()
        assert np.isfinite(eigenvalue(body)).all()


def test_smallest_eigenvalue_tells_bodies_from_impossible_ones(bodies):
    assert inertia.is_consistent(bodies).all()
    panda = inertia.is_consistent(load_robot("panda").inertials)
    assert list(panda) == [True, True, True, False, True, True, True]
    rod = standard(np.ones(2), np.array([[0.0, 0, 0], [1.0, 0, 0]]))
    assert abs(float(inertia.min_eigenvalue(rod))) < 1e-15


def test_bodies_come_back_from_the_projection_unchanged(bodies):
    np.testing.assert_array_equal(nearest_consistent(bodies, 0.0), bodies)


def test_projection_meets_the_optimality_conditions_of_the_nearest_point():
    rng = np.random.default_rng(6)
    pi = rng.normal(size=(50, 10))
    pi[0] = load_robot("panda").inertials[3]
    margin = 1e-3
    projected = np.asarray(nearest_consistent(pi, margin))
    J, P = np.asarray(pseudo_inertia(pi)), np.asarray(pseudo_inertia(projected))
    assert (np.linalg.eigvalsh(P) > margin - 1e-12).all()
    assert (projected[:, 0] >= margin - 1e-12).all()
    # P is nearest in a convex set if and only if <J - P, X - P> <= 0 for all X in it
    A = rng.normal(size=(2000, 4, 4))
    others = A @ A.transpose(0, 2, 1) * 10.0 ** rng.uniform(-4, 1, (2000, 1, 1)) + margin * np.eye(4)
    products = np.einsum("kij,lij->kl", J - P, others) - np.einsum("kij,kij->k", J - P, P)[:, None]
    assert products.max() < 1e-10
    np.testing.assert_allclose(nearest_consistent(projected, margin), projected, atol=1e-12)


def test_projected_panda_is_consistent_and_near():
    pi = load_robot("panda").inertials
    projected = np.asarray(nearest_consistent(pi))
    assert inertia.is_consistent(projected).all()
    np.testing.assert_array_equal(np.delete(projected, 3, 0), np.delete(pi, 3, 0))
    assert np.abs(projected - pi).max() < 1e-3


def test_maps_take_any_batch_and_run_under_vmap(bodies):
    assert pseudo_inertia(bodies.reshape(8, 5, 10)).shape == (8, 5, 4, 4)
    one_by_one = jax.jit(jax.vmap(inertia.nearest_consistent))
    panda = load_robot("panda").inertials
    np.testing.assert_allclose(one_by_one(panda), nearest_consistent(panda), rtol=1e-12, atol=1e-15)
