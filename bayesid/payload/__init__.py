"""Payload: mass, centre of mass and inertia of what a robot holds, from a wrench sensor or from joint torques."""

from bayesid.payload.baselines import (
    extended_kalman_filter,
    integrated_least_squares,
    least_squares,
    recursive_least_squares,
    total_least_squares,
)
from bayesid.payload.checks import check_record
from bayesid.payload.consistent import consistent_estimate, payload_posterior
from bayesid.payload.controller import franka_json, urscript
from bayesid.payload.figures import convergence_figure, interval_figure
from bayesid.payload.joint import TARED, UNTARED, SensorPrior, joint_batch, joint_estimate, noise_of
from bayesid.payload.momentum import momentum_batch, momentum_batch_white, momentum_estimate
from bayesid.payload.motion import ELBOW_UP, EstimationMotion, joint_motion, tool_motion
from bayesid.payload.parameters import COM_NAMES, NAMES, about_com, consistency, from_com, to_com
from bayesid.payload.planning import Plan, expected_precision, smallest_motion
from bayesid.payload.record import SensorMotion, SensorNoise, WrenchRecord
from bayesid.payload.simulation import simulated_record
from bayesid.payload.streaming import PayloadStream, StopRule, samples_of
from bayesid.payload.torque import attach, detach, payload_from_difference, payload_from_torques
from bayesid.payload.wrench_log import read_wrench_log, write_wrench_log

__all__ = [
    "COM_NAMES",
    "ELBOW_UP",
    "NAMES",
    "TARED",
    "UNTARED",
    "EstimationMotion",
    "PayloadStream",
    "Plan",
    "SensorMotion",
    "SensorNoise",
    "SensorPrior",
    "StopRule",
    "WrenchRecord",
    "about_com",
    "attach",
    "check_record",
    "consistency",
    "consistent_estimate",
    "convergence_figure",
    "detach",
    "expected_precision",
    "extended_kalman_filter",
    "franka_json",
    "from_com",
    "integrated_least_squares",
    "interval_figure",
    "joint_batch",
    "joint_estimate",
    "joint_motion",
    "least_squares",
    "momentum_batch",
    "momentum_batch_white",
    "momentum_estimate",
    "noise_of",
    "payload_from_difference",
    "payload_from_torques",
    "payload_posterior",
    "read_wrench_log",
    "recursive_least_squares",
    "samples_of",
    "simulated_record",
    "smallest_motion",
    "to_com",
    "tool_motion",
    "total_least_squares",
    "urscript",
    "write_wrench_log",
]
