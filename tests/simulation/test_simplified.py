"""The two-link arm: published coefficients, exact identities, and what the simplified model leaves out.

Numbers: "Simplified Methodology for Obtaining the Dynamic Model of Robot Manipulators", table 2, eqs. 106-125.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesid import dynamics
from bayesid.errors import ModelError
from bayesid.kinematics import JointMotion
from bayesid.robots import load_robot
from bayesid.simulation import joint_pd, plant_of, simplified, simulate

coriolis_matrix, forward_dynamics, gravity_torque, inverse_dynamics, mass_matrix = (
    jax.jit(getattr(dynamics, name), static_argnums=0)
    for name in ("coriolis_matrix", "forward_dynamics", "gravity_torque", "inverse_dynamics", "mass_matrix")
)
simplification_error, simplified_coriolis, simplified_inverse_dynamics = (
    jax.jit(getattr(simplified, name), static_argnums=0)
    for name in ("simplification_error", "simplified_coriolis", "simplified_inverse_dynamics")
)


@pytest.fixture(scope="module")
def robot():
    return load_robot("two_link")


@pytest.fixture(scope="module")
def states():
    return np.random.default_rng(5).uniform(-3, 3, (3, 2, 200))


def published_mass(q):
    c = np.cos(q[1])
    h12 = 0.1019395200 + 0.083808 * c
    return np.array([[2.3515719820 + 0.167616 * c, h12], [h12, np.full_like(c, 0.1019395200)]])


def published_coriolis(q, qd):
    """C of the paper's Euler-Lagrange model: (11), (12), (21) as printed, (22) zero."""
    s = np.sin(q[1])
    return np.array([[-0.167616 * s * qd[1], -0.083808 * s * qd[1]], [0.083808 * s * qd[0], 0 * s]])


def published_gravity(q):
    return np.array([38.46581442 * np.sin(q[0]) + 1.8270144 * np.sin(q[0] + q[1]), 1.8270144 * np.sin(q[0] + q[1])])


def test_the_coefficients_are_those_published(robot, states):
    q, qd, qdd = states
    np.testing.assert_allclose(mass_matrix(robot, q), published_mass(q), atol=1e-9)
    np.testing.assert_allclose(gravity_torque(robot, q), published_gravity(q), atol=1e-9)
    torque = np.einsum("ijs,js->is", published_mass(q), qdd) + np.einsum("ijs,js->is", published_coriolis(q, qd), qd)
    np.testing.assert_allclose(inverse_dynamics(robot, q, qd, qdd), torque + published_gravity(q), atol=1e-8)


def test_the_simplified_coefficients_are_those_published(robot, states):
    q, qd, _ = states
    s = np.sin(q[1]) * qd[1]
    expected = np.array([[-0.083808 * s, -0.041904 * s], [-0.041904 * s, 0 * s]])
    np.testing.assert_allclose(simplified_coriolis(robot, q, qd), expected, atol=1e-9)


@pytest.mark.parametrize("name", ["two_link", "ur16e"])
def test_the_exact_model_is_passive_and_the_simplified_one_differs_from_it_by_a_torque_without_work(name):
    robot = load_robot(name)
    rng = np.random.default_rng(2)
    for _ in range(3):
        q, qd, qdd = rng.uniform(-2, 2, (3, robot.dof))
        exact = np.asarray(coriolis_matrix(robot, q, qd))
        rate = 2 * np.asarray(simplified_coriolis(robot, q, qd))
        scale = np.abs(exact).max() * qd @ qd
        assert abs(qd @ (rate - 2 * exact) @ qd) < 1e-12 * max(1.0, scale)
        np.testing.assert_allclose(rate - 2 * exact, -(rate - 2 * exact).T, atol=1e-12 * max(1.0, np.abs(rate).max()))
        left_out = np.asarray(simplification_error(robot, q, qd))
        np.testing.assert_allclose(left_out, (exact - 0.5 * rate) @ qd, atol=1e-10)
        assert abs(left_out @ qd) < 1e-11 * max(1.0, scale)
        assert np.abs(left_out).max() > 1e-3
        difference = inverse_dynamics(robot, q, qd, qdd) - simplified_inverse_dynamics(robot, q, qd, qdd)
        np.testing.assert_allclose(difference, left_out, atol=1e-10)


def free_motion(plant, q0, qd0):
    time = np.arange(10_001) / 1000.0
    still = np.zeros((len(time), 2))
    return simulate(plant, joint_pd(2, 0.0, 0.0), JointMotion(time, still, still, still), initial=(q0, qd0))


def energy(q, qd):
    """From the published coefficients, potential energy by integrating the gravity torques."""
    kinetic = 0.5 * np.einsum("si,ijs,sj->s", qd, published_mass(q.T), qd)
    return kinetic - 38.46581442 * np.cos(q[:, 0]) - 1.8270144 * np.cos(q[:, 0] + q[:, 1])


def test_the_frictionless_exact_model_keeps_its_energy_for_ten_seconds(robot):
    run = free_motion(plant_of(robot), np.array([1.2, 0.8]), np.array([0.0, 0.0]))
    total = energy(run.q, run.qd)
    assert np.abs(run.qd).max() > 1.0
    assert np.abs(total - total[0]).max() < 1e-8 * np.ptp(38.46581442 * np.cos(run.q[:, 0]))


def test_the_simplified_model_keeps_the_energy_too_but_moves_elsewhere(robot):
    with pytest.warns(UserWarning, match="equations of motion"):
        wrong = plant_of(robot, coriolis="symmetric")
    start = np.array([0.5, 1.5]), np.array([4.0, -3.0])
    false = free_motion(wrong, *start)
    true = free_motion(plant_of(robot), *start)
    total = energy(false.q, false.qd)
    assert np.abs(total - total[0]).max() < 1e-8 * np.abs(total[0])
    assert np.abs(false.q - true.q).max() > 0.1


def test_the_exact_simulation_agrees_with_the_forward_dynamics_of_the_published_model(robot):
    run = free_motion(plant_of(robot), np.array([1.2, 0.8]), np.array([1.0, -2.0]))
    for k in (0, 40, 100):
        q, qd = run.q[k], run.qd[k]
        expected = np.linalg.solve(published_mass(q), -published_coriolis(q, qd) @ qd - published_gravity(q))
        np.testing.assert_allclose(run.qdd[k], expected, atol=1e-8)
        np.testing.assert_allclose(forward_dynamics(robot, jnp.asarray(q), jnp.asarray(qd), jnp.zeros(2)), expected, atol=1e-8)


def test_an_unknown_coriolis_form_is_refused(robot):
    with pytest.raises(ModelError, match="exact or symmetric"):
        plant_of(robot, coriolis="skew")
