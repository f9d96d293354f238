"""Payload: mass, centre of mass and inertia of what a robot holds, from a wrench sensor or from joint torques."""

from bayesid.payload.joint import TARED, UNTARED, SensorPrior, joint_batch, joint_estimate, noise_of
from bayesid.payload.momentum import momentum_batch, momentum_batch_white, momentum_estimate
from bayesid.payload.motion import ELBOW_UP, EstimationMotion, joint_motion, tool_motion
from bayesid.payload.parameters import COM_NAMES, NAMES, about_com, consistency, from_com, to_com
from bayesid.payload.record import SensorMotion, SensorNoise, WrenchRecord

__all__ = [
    "COM_NAMES",
    "ELBOW_UP",
    "NAMES",
    "TARED",
    "UNTARED",
    "EstimationMotion",
    "SensorMotion",
    "SensorNoise",
    "SensorPrior",
    "WrenchRecord",
    "about_com",
    "consistency",
    "from_com",
    "joint_batch",
    "joint_estimate",
    "joint_motion",
    "momentum_batch",
    "momentum_batch_white",
    "momentum_estimate",
    "noise_of",
    "to_com",
    "tool_motion",
]
