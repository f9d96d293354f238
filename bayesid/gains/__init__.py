"""Drive gains: from motor current to joint torque, from runs without and with a weighed load."""

from bayesid.gains.estimate import contradicted, estimate_gains
from bayesid.gains.gains import Gains, read_gains
from bayesid.gains.losses import motor_constants
from bayesid.gains.planning import Plan, plan_gains
from bayesid.gains.runs import GainRuns, Load, gain_friction
from bayesid.gains.sensor import SensorGain, sensor_gain
from bayesid.gains.solving import METHODS, with_load_friction

__all__ = [
    "METHODS",
    "GainRuns",
    "Gains",
    "Load",
    "Plan",
    "SensorGain",
    "contradicted",
    "estimate_gains",
    "gain_friction",
    "motor_constants",
    "plan_gains",
    "read_gains",
    "sensor_gain",
    "with_load_friction",
]
