"""Fifty random trees (branches, revolute and prismatic joints, fixed frames) against Pinocchio, to 1e-10 relative."""

import numpy as np
import pytest

from bayesid import dynamics

SEEDS = range(50)


@pytest.fixture(scope="module", params=SEEDS)
def case(request, grow, in_pinocchio):
    """Robot, the same one in Pinocchio, and a state. Evaluated eagerly: trees of one size share every compilation."""
    robot = grow(request.param, 6)
    q, qd, qdd = np.random.default_rng(1000 + request.param).normal(size=(3, robot.dof))
    return robot, in_pinocchio(robot), q, qd, qdd


def same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * max(np.abs(theirs).max(), 1e-3))


def test_inverse_and_forward_dynamics_agree(case):
    robot, engine, q, qd, qdd = case
    tau = dynamics.inverse_dynamics(robot, q, qd, qdd)
    same(tau, engine.rnea(q, qd, qdd))
    same(dynamics.gravity_torque(robot, q), engine.computeGeneralizedGravity(q))
    same(dynamics.forward_dynamics(robot, q, qd, qdd), engine.aba(q, qd, qdd))
    same(dynamics.forward_dynamics(robot, q, qd, tau), qdd)


def test_mass_and_coriolis_matrices_agree(case):
    robot, engine, q, qd, _ = case
    M = dynamics.mass_matrix(robot, q)
    same(M, engine.mass_matrix(q))
    same(dynamics.coriolis_matrix(robot, q, qd) @ qd, engine.computeCoriolisMatrix(q, qd) @ qd)
    mass, bias = dynamics.mass_and_bias(robot, q, qd)
    same(mass, M)
    same(bias, engine.nonLinearEffects(q, qd))


def test_energies_and_momentum_agree(case, in_pinocchio):
    robot, engine, q, qd, _ = case
    M = engine.mass_matrix(q)
    same(dynamics.kinetic_energy(robot, q, qd), 0.5 * qd @ M @ qd)
    no_rotors = np.zeros(robot.dof)
    rotorless = in_pinocchio(robot.with_inertials(robot.inertials, no_rotors))
    same(dynamics.kinetic_energy(robot, q, qd, None, no_rotors), rotorless.computeKineticEnergy(q, qd))
    same(dynamics.potential_energy(robot, q), engine.computePotentialEnergy(q))
    same(dynamics.momentum(robot, q, qd), M @ qd)


def test_regressors_agree_and_give_the_torque(case):
    robot, engine, q, qd, qdd = case
    Y = dynamics.joint_regressor(robot, q, qd, qdd)
    same(Y, engine.regressor(q, qd, qdd))
    tau = dynamics.inverse_dynamics(robot, q, qd, qdd, None, np.zeros(robot.dof))
    np.testing.assert_allclose(Y @ robot.inertials.ravel(), tau, rtol=0, atol=1e-11 * np.abs(tau).max())


def test_frames_and_jacobians_agree(case):
    robot, engine, q, _, _ = case
    for name in [frame.name for frame in robot.frames]:
        rotation, origin, jacobian = engine.frame(q, name)
        ours = dynamics.frame_pose(robot, q, name)
        same(ours[0], rotation)
        same(ours[1], origin)
        same(dynamics.frame_jacobian(robot, q, name), jacobian)
    rotations, origins = dynamics.link_poses(robot, q)
    engine.forwardKinematics(q)
    same(rotations, np.array([placement.rotation for placement in engine.data.oMi])[1:])
    same(origins, np.array([placement.translation for placement in engine.data.oMi])[1:])
