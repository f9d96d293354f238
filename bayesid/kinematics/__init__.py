"""Inverse kinematics and motions: closed form for UR-like arms, a numerical solver for any robot, Cartesian paths."""

from bayesid.kinematics.cartesian import (
    TOOL_DOWN,
    CircleWithCosine,
    StraightSegments,
    follow,
    follow_numerically,
    minimum_jerk,
)
from bayesid.kinematics.motion import JointMotion, random_motion
from bayesid.kinematics.numeric import IkSolution, damped_least_squares
from bayesid.kinematics.ur import (
    BRANCHES,
    UrSolutions,
    explain_reach,
    nearest_turn,
    require_reachable,
    ur_inverse_kinematics,
)

__all__ = [
    "BRANCHES",
    "TOOL_DOWN",
    "CircleWithCosine",
    "IkSolution",
    "JointMotion",
    "StraightSegments",
    "UrSolutions",
    "damped_least_squares",
    "explain_reach",
    "follow",
    "follow_numerically",
    "minimum_jerk",
    "nearest_turn",
    "random_motion",
    "require_reachable",
    "ur_inverse_kinematics",
]
