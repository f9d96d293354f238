"""jit, vmap, trailing batches and derivatives of every order asked for, on a branching tree with a prismatic joint."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesid import dynamics

FUNCTIONS = {
    "inverse_dynamics": lambda robot, q, qd, qdd: dynamics.inverse_dynamics(robot, q, qd, qdd),
    "mass_and_bias": lambda robot, q, qd, qdd: dynamics.mass_and_bias(robot, q, qd),
    "joint_regressor": lambda robot, q, qd, qdd: dynamics.joint_regressor(robot, q, qd, qdd),
    "momentum_drift_regressor": lambda robot, q, qd, qdd: dynamics.momentum_drift_regressor(robot, q, qd),
    "frame_pose": lambda robot, q, qd, qdd: dynamics.frame_pose(robot, q, "f0"),
    "frame_jacobian": lambda robot, q, qd, qdd: dynamics.frame_jacobian(robot, q, "f0"),
    "energies": lambda robot, q, qd, qdd: (
        dynamics.kinetic_energy(robot, q, qd),
        dynamics.potential_energy(robot, q),
    ),
}


@pytest.fixture(scope="module")
def robot(grow):
    robot = grow(3, 6)
    assert len(set(robot.parents.tolist())) < robot.dof
    assert not robot.revolute.all()
    return robot


@pytest.fixture(scope="module")
def small(grow):
    """Three joints, one of them prismatic, two of them on the same link: small enough for compiled derivatives."""
    robot = grow(21, 3)
    assert robot.parents.tolist() == [-1, 0, 0]
    assert robot.revolute.tolist() == [True, True, False]
    return robot


@pytest.fixture(scope="module")
def states():
    return np.random.default_rng(5).normal(size=(3, 6, 2, 3))


def close(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * max(1.0, float(np.abs(y).max())))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_trailing_batches_equal_single_states(name, robot, states):
    batched = FUNCTIONS[name](robot, *states)
    for index in ((0, 1), (1, 2)):
        single = FUNCTIONS[name](robot, *(part[:, *index] for part in states))
        close(jax.tree.map(lambda x, index=index: x[..., *index], batched), single)


def test_compiled_and_mapped_functions_equal_the_plain_ones(robot, states):
    def everything(q, qd, qdd):
        regressor = dynamics.joint_regressor(robot, q, qd, qdd)
        return regressor, dynamics.coriolis_matrix(robot, q, qd), dynamics.forward_dynamics(robot, q, qd, qdd)

    rows = np.moveaxis(states.reshape(3, 6, -1), 2, 1)
    mapped = jax.jit(jax.vmap(everything))(*rows)
    for k in range(2):
        close(jax.tree.map(lambda x, k=k: x[k], mapped), everything(*rows[:, k]))


def assert_slopes(function, point, seed):
    """Forward mode against central differences, and reverse mode against forward mode, along a random direction."""
    rng = np.random.default_rng(seed)
    point = jax.tree.map(np.asarray, point)
    along = jax.tree.map(lambda x: rng.normal(size=x.shape), point)
    plain = jax.jit(function)
    value, slope = jax.jit(lambda x, v: jax.jvp(function, (x,), (v,)))(point, along)
    h = 1e-5
    ahead, behind = (plain(jax.tree.map(lambda x, v, s=s: x + s * v, point, along)) for s in (h, -h))
    scale = max(1.0, float(np.abs(slope).max()))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=0, atol=1e-6 * scale)
    towards = rng.normal(size=value.shape)
    pulled = jax.jit(lambda x, u: jax.vjp(function, x)[1](u)[0])(point, towards)
    product = sum(float(np.sum(a * b)) for a, b in zip(jax.tree.leaves(pulled), jax.tree.leaves(along)))
    np.testing.assert_allclose(product, np.sum(towards * slope), rtol=1e-10)


def together(*parts):
    return jnp.concatenate([jnp.ravel(part) for part in parts])


def test_derivatives_by_the_state_equal_finite_differences(small):
    def function(state):
        q, qd, qdd = state
        return together(
            dynamics.joint_regressor(small, q, qd, qdd),
            dynamics.coriolis_matrix(small, q, qd),
            dynamics.forward_dynamics(small, q, qd, qdd),
        )

    assert_slopes(function, np.random.default_rng(6).normal(size=(3, 3)), 1)


def test_derivatives_by_the_inertial_parameters_equal_finite_differences(small):
    q, qd, last = np.random.default_rng(7).normal(size=(3, 3))

    def function(parameters):
        inertials, rotors = parameters
        return together(
            dynamics.inverse_dynamics(small, q, qd, last, inertials, rotors),
            dynamics.mass_matrix(small, q, inertials, rotors),
            dynamics.forward_dynamics(small, q, qd, last, inertials, rotors),
        )

    assert_slopes(function, (small.inertials, small.rotor_inertias), 2)


def test_second_derivatives_of_the_mass_matrix_equal_finite_differences(small):
    weight = np.random.default_rng(8).normal(size=(3, 3))

    def slope(q):
        return jax.grad(lambda x: jnp.sum(weight * dynamics.mass_matrix(small, x)))(q)

    assert_slopes(slope, np.array([0.4, -1.1, 0.7]), 3)


def test_the_regressor_is_the_jacobian_of_inverse_dynamics_by_the_parameters(robot, states):
    q, qd, qdd = states[:, :, 0, 0]
    jacobian = jax.jacrev(lambda pi: dynamics.inverse_dynamics(robot, q, qd, qdd, pi))(robot.inertials)
    close(jacobian.reshape(6, 60), dynamics.joint_regressor(robot, q, qd, qdd))


def test_blocks_are_the_regressor_without_its_zeros(robot, states):
    dense = np.array(dynamics.joint_regressor(robot, *states)).reshape(6, 6, 10, 2, 3)
    joint, link = dynamics.regressor_pairs(robot)
    np.testing.assert_array_equal(dynamics.joint_regressor_blocks(robot, *states), dense[joint, link])
    dense[joint, link] = 0.0
    assert not dense.any()


def test_parameters_may_differ_from_sample_to_sample(robot, states):
    scale = np.linspace(1.0, 2.0, 6).reshape(2, 3)
    inertials = robot.inertials[..., None, None] * scale
    rotors = robot.rotor_inertias[:, None, None] * scale
    tau = dynamics.inverse_dynamics(robot, *states, inertials, rotors)
    close(tau, dynamics.inverse_dynamics(robot, *states) * scale)


def test_gravity_can_be_given_and_differentiated(robot, states):
    q, qd, qdd = states[:, :, 0, 0]
    field = np.array([1.0, -2.0, 3.0])
    slope = jax.jacfwd(lambda g: dynamics.inverse_dynamics(robot, q, qd, qdd, gravity=g))(field)
    close(slope @ field, dynamics.gravity_torque(robot, q, gravity=field))
    close(dynamics.joint_regressor(robot, q, 0 * q, 0 * q, field) @ robot.inertials.ravel(), slope @ field)
