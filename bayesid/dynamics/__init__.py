"""Equations of motion in JAX: pure functions of (robot, state, parameters). The only place where they live."""

from bayesid.dynamics.equations import (
    coriolis_matrix,
    forward_dynamics,
    gravity_torque,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
    momentum,
    potential_energy,
)
from bayesid.dynamics.friction import FrictionLaw, friction_law, friction_names, stribeck_law
from bayesid.dynamics.kinematics import frame_jacobian, frame_pose, link_poses
from bayesid.dynamics.regressors import (
    body_regressor,
    joint_regressor,
    momentum_drift_regressor,
    momentum_regressor,
)

__all__ = [
    "FrictionLaw",
    "body_regressor",
    "coriolis_matrix",
    "forward_dynamics",
    "frame_jacobian",
    "frame_pose",
    "friction_law",
    "friction_names",
    "gravity_torque",
    "inverse_dynamics",
    "joint_regressor",
    "kinetic_energy",
    "link_poses",
    "mass_matrix",
    "momentum",
    "momentum_drift_regressor",
    "momentum_regressor",
    "potential_energy",
    "stribeck_law",
]
