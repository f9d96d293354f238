"""Simulated robots: actuators, control laws, closed loops, and the logs that they leave."""

from bayesid.simulation.actuators import Actuators, MotorSide, SmoothFriction, actuators_of
from bayesid.simulation.closed_loop import Simulation, simulate
from bayesid.simulation.control import computed_torque, gravity_pd, joint_pd
from bayesid.simulation.independent import friction_held_over_a_step, friction_in_every_stage, simulate_mujoco
from bayesid.simulation.metrics import l2_index, nrmse, rms, rsd
from bayesid.simulation.plant import Plant, plant_of, stack_plants
from bayesid.simulation.simplified import simplification_error, simplified_coriolis, simplified_inverse_dynamics
from bayesid.simulation.synthetic import IDEAL, Sensors, sense, synthetic_log

__all__ = [
    "IDEAL",
    "Actuators",
    "MotorSide",
    "Plant",
    "Sensors",
    "Simulation",
    "SmoothFriction",
    "actuators_of",
    "computed_torque",
    "friction_held_over_a_step",
    "friction_in_every_stage",
    "gravity_pd",
    "joint_pd",
    "l2_index",
    "nrmse",
    "plant_of",
    "rms",
    "rsd",
    "sense",
    "simplification_error",
    "simplified_coriolis",
    "simplified_inverse_dynamics",
    "simulate",
    "simulate_mujoco",
    "stack_plants",
    "synthetic_log",
]
