"""Equations of motion in JAX: pure functions of (robot, state, parameters). The only place where they live."""

from bayesid.dynamics.equations import (
    coriolis_matrix,
    forward_dynamics,
    gravity_torque,
    inverse_dynamics,
    kinetic_energy,
    mass_and_bias,
    mass_matrix,
    momentum,
    potential_energy,
)
from bayesid.dynamics.friction import (
    FrictionLaw,
    friction_law,
    friction_names,
    stribeck_law,
    stribeck_law_about,
    stribeck_shapes,
)
from bayesid.dynamics.kinematics import frame_jacobian, frame_pose, link_poses
from bayesid.dynamics.regressors import (
    body_regressor,
    joint_regressor,
    joint_regressor_blocks,
    momentum_drift_regressor,
    momentum_regressor,
    regressor_pairs,
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
    "joint_regressor_blocks",
    "kinetic_energy",
    "link_poses",
    "mass_and_bias",
    "mass_matrix",
    "momentum",
    "momentum_drift_regressor",
    "momentum_regressor",
    "potential_energy",
    "regressor_pairs",
    "stribeck_law",
    "stribeck_law_about",
    "stribeck_shapes",
]
