"""Drive gains: from motor current to joint torque, from runs without and with a weighed load."""

from bayesid.gains.estimate import estimate_gains
from bayesid.gains.gains import Gains, gain_sensitivity, read_gains
from bayesid.gains.runs import SUBLINEAR, GainRuns, Load, gain_friction
from bayesid.gains.solving import METHODS

__all__ = [
    "METHODS",
    "SUBLINEAR",
    "GainRuns",
    "Gains",
    "Load",
    "estimate_gains",
    "gain_friction",
    "gain_sensitivity",
    "read_gains",
]
