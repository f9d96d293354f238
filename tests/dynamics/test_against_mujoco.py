"""Every built-in robot against MuJoCo, whose model is built here body by body, to 1e-8."""

import numpy as np
import pytest

from bayesid import dynamics
from bayesid.inertia import nearest_consistent
from bayesid.robots import builtin_names, load_robot


def same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 * np.abs(theirs).max())


@pytest.mark.parametrize("name", builtin_names())
def test_builtin_robots_move_as_in_mujoco(name, in_mujoco):
    robot = load_robot(name)
    if name == "panda":  # MuJoCo refuses the vendor's link 4, which no solid body can have
        robot = robot.with_inertials(np.array(nearest_consistent(robot.inertials, 1e-4)))
    engine = in_mujoco(robot)
    for q, qd, qdd in np.random.default_rng(7).uniform(-2, 2, (2, 3, robot.dof)):
        engine.set(q, qd)
        same(dynamics.inverse_dynamics(robot, q, qd, qdd), engine.inverse_dynamics(qdd))
        same(dynamics.mass_matrix(robot, q), engine.mass_matrix())
        for frame in robot.frames:
            rotation, origin = dynamics.frame_pose(robot, q, frame.name)
            np.testing.assert_allclose(origin, engine.data.site(frame.name).xpos, atol=1e-8)
            np.testing.assert_allclose(rotation, engine.data.site(frame.name).xmat.reshape(3, 3), atol=1e-8)
            same(dynamics.frame_jacobian(robot, q, frame.name), engine.jacobian(frame.name))
