"""What mechanics demands of the equations of motion, whatever engine computes them; and an arm solved by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesid import dynamics
from bayesid.robots import Joint, Link, Robot


@pytest.fixture(scope="module", params=(11, 12))
def tree(request, grow):
    return grow(request.param, 6)


@pytest.fixture(scope="module")
def state():
    return np.random.default_rng(2).normal(size=(2, 6))


def test_coriolis_matrix_is_made_of_christoffel_symbols(tree, state):
    """C_ij = sum_k (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) qd_k / 2."""
    q, qd = state
    slope = np.array(jax.jit(jax.jacfwd(lambda x: dynamics.mass_matrix(tree, x)))(q))
    symbols = 0.5 * (slope + slope.transpose(0, 2, 1) - slope.transpose(2, 1, 0))
    C = dynamics.coriolis_matrix(tree, q, qd)
    np.testing.assert_allclose(C, symbols @ qd, rtol=0, atol=1e-12 * np.abs(C).max())


def test_momentum_balance_holds_along_a_motion(tree):
    """d/dt (M qd) = tau + C^T qd - g, the derivative by Richardson's extrapolation along a known motion."""
    rng = np.random.default_rng(3)
    amplitude, phase, speed = rng.normal(size=6), rng.uniform(0, 6, 6), rng.uniform(0.5, 2.0, 6)
    h, at = 1e-2, 0.7
    t = at + h * np.array([0.0, -2.0, -1.0, 1.0, 2.0])
    angle = speed[:, None] * t + phase[:, None]
    q, qd = amplitude[:, None] * np.sin(angle), (amplitude * speed)[:, None] * np.cos(angle)
    qdd = -(speed[:, None] ** 2) * q
    p = np.array(dynamics.momentum(tree, q, qd))
    rate = (8 * (p[:, 3] - p[:, 2]) - (p[:, 4] - p[:, 1])) / (12 * h)
    q, qd, qdd = q[:, 0], qd[:, 0], qdd[:, 0]
    tau = dynamics.inverse_dynamics(tree, q, qd, qdd)
    drift = dynamics.coriolis_matrix(tree, q, qd).T @ qd - dynamics.gravity_torque(tree, q)
    np.testing.assert_allclose(tau + drift, rate, rtol=0, atol=1e-6 * np.abs(rate).max())
    parameters = tree.inertials.ravel()
    np.testing.assert_allclose(
        dynamics.momentum_drift_regressor(tree, q, qd) @ parameters, drift, rtol=0, atol=1e-11 * np.abs(drift).max()
    )
    np.testing.assert_allclose(
        dynamics.momentum_regressor(tree, q, qd) @ parameters + tree.rotor_inertias * qd, p[:, 0], rtol=1e-11, atol=1e-11
    )


def test_gravity_torque_is_the_slope_of_potential_energy(tree, state):
    slope = jax.grad(lambda q: dynamics.potential_energy(tree, q))(state[0])
    np.testing.assert_allclose(dynamics.gravity_torque(tree, state[0]), slope, rtol=1e-12, atol=1e-12)


def test_frame_jacobian_maps_joint_speeds_to_the_velocity_of_the_frame(tree, state):
    q, qd = state
    (rotation, _), (spin, velocity) = jax.jvp(lambda x: dynamics.frame_pose(tree, x, "f1"), (q,), (qd,))
    hat = np.array(spin @ rotation.T)
    expected = np.concatenate([velocity, [hat[2, 1], hat[0, 2], hat[1, 0]]])
    np.testing.assert_allclose(dynamics.frame_jacobian(tree, q, "f1") @ qd, expected, atol=1e-12)


def test_rotor_inertia_enters_exactly_once(tree, state):
    q, qd = state
    rotor = np.arange(1.0, 7.0)
    none = np.zeros(6)
    heavier = dataclasses.replace(tree, joints=tree.with_inertials(tree.inertials, rotor).joints)
    qdd = np.linspace(-1.0, 2.0, 6)

    def added(function, *arguments):
        by_argument = function(tree, *arguments, None, rotor) - function(tree, *arguments, None, none)
        np.testing.assert_allclose(function(heavier, *arguments), function(tree, *arguments, None, rotor), atol=1e-12)
        return by_argument

    np.testing.assert_allclose(added(dynamics.inverse_dynamics, q, qd, qdd), rotor * qdd, atol=1e-10)
    np.testing.assert_allclose(added(dynamics.mass_matrix, q), np.diag(rotor), atol=1e-10)
    np.testing.assert_allclose(added(dynamics.momentum, q, qd), rotor * qd, atol=1e-10)
    np.testing.assert_allclose(added(dynamics.kinetic_energy, q, qd), 0.5 * rotor @ qd**2, atol=1e-10)
    torque = dynamics.inverse_dynamics(heavier, q, qd, qdd)
    np.testing.assert_allclose(dynamics.forward_dynamics(heavier, q, qd, torque), qdd, atol=1e-9)
    np.testing.assert_array_equal(dynamics.gravity_torque(heavier, q), dynamics.gravity_torque(tree, q))


def test_body_regressor_gives_newton_and_euler():
    """Force m (a_c) and moment about the origin of a body, from its centre of mass and central inertia."""
    rng = np.random.default_rng(8)
    mass, com, half = 3.0, rng.normal(size=3), rng.normal(size=(3, 3))
    central = half @ half.T + 3 * np.eye(3)
    v, w, a, wd = rng.normal(size=(4, 3))
    moment = central + mass * (com @ com * np.eye(3) - np.outer(com, com))
    pi = np.array([mass, *(mass * com), *moment[np.triu_indices(3)]])
    force = mass * (a + np.cross(wd, com) + np.cross(w, np.cross(w, com)))
    couple = central @ wd + np.cross(w, central @ w) + np.cross(com, force)
    wrench = dynamics.body_regressor(np.append(v, w), np.append(a, wd)) @ pi
    np.testing.assert_allclose(wrench, np.append(force, couple), rtol=1e-12)


# Two-link direct-drive arm: angles from the hanging position, link lengths, distances of the centres of mass, masses
# and central inertias ("Simplified Methodology for Obtaining the Dynamic Model of Robot Manipulators", table 2).
L1, LC1, LC2, M1, M2, I1, I2, G = 0.45, 0.091, 0.048, 23.902, 3.88, 1.266, 0.093, 9.81


@pytest.fixture(scope="module")
def arm():
    """The arm in its own plane: x down, y to the side, z the joint axes."""

    def link(name, m, c, moment):
        return Link(name, (m, m * c, 0.0, 0.0, 0.01, 0.0, 0.0, moment + m * c**2, 0.0, moment + m * c**2))

    joints = (Joint("joint1", "revolute", -1), Joint("joint2", "revolute", 0, (L1, 0.0, 0.0)))
    return Robot("arm", joints, (link("link1", M1, LC1, I1), link("link2", M2, LC2, I2)), gravity=(G, 0.0, 0.0))


def test_two_link_arm_equals_its_closed_form(arm):
    for (q1, q2), (v1, v2) in np.random.default_rng(4).uniform(-3, 3, (5, 2, 2)):
        b = M2 * L1 * LC2
        h22 = I2 + M2 * LC2**2
        h11 = I1 + M1 * LC1**2 + h22 + M2 * L1**2 + 2 * b * np.cos(q2)
        h12 = h22 + b * np.cos(q2)
        swing = b * np.sin(q2)
        C = np.array([[-swing * v2, -swing * (v1 + v2)], [swing * v1, 0.0]])
        far = M2 * LC2 * G * np.sin(q1 + q2)
        g = np.array([(M1 * LC1 + M2 * L1) * G * np.sin(q1) + far, far])
        q, qd = np.array([q1, q2]), np.array([v1, v2])
        np.testing.assert_allclose(dynamics.mass_matrix(arm, q), [[h11, h12], [h12, h22]], rtol=1e-12)
        np.testing.assert_allclose(dynamics.coriolis_matrix(arm, q, qd), C, atol=1e-12)
        np.testing.assert_allclose(dynamics.gravity_torque(arm, q), g, atol=1e-12)


def test_two_link_arm_has_the_published_coefficients(arm):
    """The same source, eqs. 106-125: H11 = 2.3515719820 + 0.167616 cos q2, and so on."""
    M = dynamics.mass_matrix(arm, np.array([0.3, 0.0]))
    np.testing.assert_allclose(M, [[2.351571982 + 0.167616, 0.10193952 + 0.083808], [0.10193952 + 0.083808, 0.10193952]])
    g = dynamics.gravity_torque(arm, np.array([np.pi / 2, 0.0]))
    np.testing.assert_allclose(g, [38.46581442 + 1.8270144, 1.8270144])


def test_energy_of_the_free_double_pendulum_is_conserved(arm):
    """Two seconds of Runge-Kutta at 1 ms: the scheme's own error is far below the tolerance."""

    def slope(x):
        return jnp.concatenate([x[2:], dynamics.forward_dynamics(arm, x[:2], x[2:], jnp.zeros(2))])

    def energy(x):
        return dynamics.kinetic_energy(arm, x[:2], x[2:]) + dynamics.potential_energy(arm, x[:2])

    def step(x, _):
        h = 1e-3
        k1 = slope(x)
        k2 = slope(x + h / 2 * k1)
        k3 = slope(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3))
        return x, energy(x)

    start = jnp.array([2.0, -1.0, 0.5, 1.0])
    end, energies = jax.jit(lambda x: jax.lax.scan(step, x, None, 2000))(start)
    assert np.abs(end - start).max() > 0.5
    np.testing.assert_allclose(energies, energy(start), rtol=0, atol=1e-8)
