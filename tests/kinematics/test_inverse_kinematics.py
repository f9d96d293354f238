"""Inverse kinematics against Pinocchio's forward kinematics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesid.errors import DesignError, RobotError
from bayesid.kinematics import (
    TOOL_DOWN,
    damped_least_squares,
    explain_reach,
    require_reachable,
    ur_inverse_kinematics,
)
from bayesid.robots import load_robot, urdf_text

UR = ("ur3e", "ur5", "ur5e", "ur10e", "ur16e", "ur16e_extended")


def pinocchio_model(robot):
    """The robot in Pinocchio, with one number per joint: continuous joints are declared revolute."""
    pin = pytest.importorskip("pinocchio")
    return pin.buildModelFromXML(urdf_text(robot).replace('type="continuous"', 'type="revolute"'))


def reference_poses(robot, q, frame="tool0"):
    """Poses (N, 3, 3), (N, 3) of a frame by Pinocchio."""
    pin = pytest.importorskip("pinocchio")
    model = pinocchio_model(robot)
    data = model.createData()
    index = model.getFrameId(frame)
    rotations, positions = np.empty((len(q), 3, 3)), np.empty((len(q), 3))
    for k, row in enumerate(q):
        pin.framesForwardKinematics(model, data, row)
        rotations[k], positions[k] = data.oMf[index].rotation, data.oMf[index].translation
    return rotations, positions


@pytest.mark.parametrize("name", UR)
def test_every_true_configuration_is_found_and_every_solution_reproduces_its_pose(name):
    robot = load_robot(name)
    q = np.random.default_rng(7).uniform(-np.pi, np.pi, (10_000, 6))
    rotation, position = reference_poses(robot, q)
    solutions = ur_inverse_kinematics(robot, rotation, position, "tool0")
    found, valid = np.asarray(solutions.q), np.asarray(solutions.valid)
    apart = np.abs((found - q[:, None] + np.pi) % (2 * np.pi) - np.pi).max(-1)
    # Within 1e-5 rad of a singularity the rounding of the pose itself (1e-16) moves the angles by more than 1e-9.
    closest = np.nanargmin(apart, axis=1)
    margin = np.asarray(solutions.margins)[np.arange(len(q)), closest].min(1)
    regular = margin > 1e-10
    assert regular.mean() > 0.9995
    assert np.nanmin(apart, axis=1)[regular].max() < 1e-9
    assert np.nanmin(apart, axis=1).max() < 1e-7
    assert set(np.unique(valid.sum(1))) <= {2, 4, 6, 8}
    assert np.abs(found[valid]).max() <= np.pi
    again = reference_poses(robot, found[valid])
    owner = np.nonzero(valid)[0]
    assert np.abs(again[0] - rotation[owner]).max() < 1e-10
    assert np.abs(again[1] - position[owner]).max() < 1e-10


def test_derivatives_of_the_closed_form_invert_the_geometric_jacobian():
    pin = pytest.importorskip("pinocchio")
    robot = load_robot("ur10e")
    q = np.array([0.3, -1.2, 1.4, -0.8, 1.1, 0.4])
    rotation, position = (x[0] for x in reference_poses(robot, q[None]))
    solutions = ur_inverse_kinematics(robot, rotation, position, "tool0")
    branch = int(np.nanargmin(np.abs(np.asarray(solutions.q) - q).max(1)))

    def angles(shift):
        return ur_inverse_kinematics(robot, rotation, position + shift, "tool0").q[branch]

    model = pinocchio_model(robot)
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    jacobian = pin.getFrameJacobian(model, data, model.getFrameId("tool0"), pin.LOCAL_WORLD_ALIGNED)
    expected = np.linalg.inv(jacobian)[:, :3]
    np.testing.assert_allclose(jax.jacfwd(angles)(jnp.zeros(3)), expected, atol=1e-12)
    np.testing.assert_allclose(jax.jacrev(angles)(jnp.zeros(3)), expected, atol=1e-12)

    def numerical(shift):
        return damped_least_squares(robot, rotation, position + shift, q + 0.01, "tool0").q

    np.testing.assert_allclose(jax.jacrev(numerical)(jnp.zeros(3)), expected, atol=1e-9)


def test_unreachable_and_singular_poses_are_named():
    robot = load_robot("ur10e")
    rotation = np.array(TOOL_DOWN)
    far = ur_inverse_kinematics(robot, rotation[None], np.array([[3.0, 0.0, 0.2]]), "tool0")
    assert not np.asarray(far.valid).any()
    assert "too far from" in explain_reach(far)[0]
    with pytest.raises(DesignError, match="pose 0: unreachable"):
        require_reachable(robot, far)
    near_axis = ur_inverse_kinematics(robot, rotation[None], np.array([[0.05, 0.0, 0.6]]), "tool0")
    assert "too close to axis 1" in explain_reach(near_axis)[0]
    not_finite = ur_inverse_kinematics(robot, rotation[None], np.array([[np.nan, 0.0, 0.6]]), "tool0")
    assert "not finite" in explain_reach(not_finite)[0]
    configurations = {
        "wrist": [0.3, -1.2, 1.4, -0.8, 0.0, 0.4],
        "elbow": [0.3, -1.2, 0.0, -0.8, 1.0, 0.4],
        "regular": [0.3, -1.2, 1.4, -0.8, 1.1, 0.4],
    }
    poses = reference_poses(robot, np.array(list(configurations.values())))
    for word, told in zip(configurations, explain_reach(ur_inverse_kinematics(robot, *poses, "tool0")), strict=True):
        assert word in told


def test_a_pose_on_a_singularity_is_still_reproduced():
    robot = load_robot("ur5e")
    q = np.array([[0.3, -1.2, 1.4, -0.8, 0.0, 0.4], [0.3, -1.2, 0.0, -0.8, 1.0, 0.4], [0.1, -1.0, 0.9, 0.5, np.pi, 0.0]])
    rotation, position = reference_poses(robot, q)
    solutions = ur_inverse_kinematics(robot, rotation, position, "tool0")
    valid = np.asarray(solutions.valid)
    assert valid.any(1).all()
    again = reference_poses(robot, np.asarray(solutions.q)[valid])
    owner = np.nonzero(valid)[0]
    assert np.abs(again[0] - rotation[owner]).max() < 1e-7
    assert np.abs(again[1] - position[owner]).max() < 1e-7


@pytest.mark.parametrize("name", ["panda", "two_link", "6rp"])
def test_other_structures_are_refused_with_the_way_out(name):
    with pytest.raises(RobotError, match="damped_least_squares"):
        ur_inverse_kinematics(load_robot(name), np.eye(3), np.zeros(3))


def test_damped_least_squares_reaches_reachable_poses_of_a_redundant_arm():
    robot = load_robot("panda").with_inertials(np.tile([1.0, 0, 0, 0, 0.1, 0, 0, 0.1, 0, 0.1], (7, 1)))
    rng = np.random.default_rng(3)
    middle = 0.5 * (robot.limit("lower") + robot.limit("upper"))
    q = middle + rng.uniform(-0.8, 0.8, (64, robot.dof))
    link = robot.link_names[-1]
    rotation, position = reference_poses(robot, q, link)
    starts = q + rng.uniform(-0.3, 0.3, q.shape)
    solve = jax.vmap(lambda r, p, s: damped_least_squares(robot, r, p, s, link))
    solution = solve(jnp.asarray(rotation), jnp.asarray(position), jnp.asarray(starts))
    assert np.asarray(solution.converged).all()
    again = reference_poses(robot, np.asarray(solution.q), link)
    assert np.abs(again[0] - rotation).max() < 1e-9
    assert np.abs(again[1] - position).max() < 1e-9


def test_damped_least_squares_says_by_how_much_an_unreachable_pose_is_missed():
    robot = load_robot("ur10e")
    solution = damped_least_squares(robot, np.array(TOOL_DOWN), [5.0, 0.0, 0.2], [0.3, -1.2, 1.4, -0.8, 1.1, 0.4], "tool0")
    assert not bool(solution.converged)
    assert 3.0 < float(jnp.linalg.norm(solution.error)) < 5.0
    with pytest.raises(DesignError, match="needs 6 numbers"):
        damped_least_squares(robot, np.eye(3), np.zeros(3), np.zeros(5), "tool0")
