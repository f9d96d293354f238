"""Excitation: design informative motions that a robot can run, check them, and write them for controllers."""

from bayesid.excitation.animation import animation_html, write_animation
from bayesid.excitation.certificate import Certificate, certify
from bayesid.excitation.check import Execution, check_execution, find_timing
from bayesid.excitation.constraints import SelfCollision, ToolBox, TorqueLimit, Wall
from bayesid.excitation.design import Progress, achieved, design, random_motion
from bayesid.excitation.evaluation import information, information_at
from bayesid.excitation.excitation import Excitation
from bayesid.excitation.export import FORMATS, write_formats
from bayesid.excitation.families import Fourier, FourierQuintic, QuinticSpline
from bayesid.excitation.figures import write_figures
from bayesid.excitation.limits import Limits
from bayesid.excitation.objectives import (
    AOptimal,
    ConditionNumber,
    DOptimal,
    EOptimal,
    ExpectedInformation,
    Subset,
)
from bayesid.excitation.observation import GainObservation, PayloadObservation, TorqueObservation
from bayesid.excitation.problem import Problem

__all__ = [
    "FORMATS",
    "AOptimal",
    "Certificate",
    "ConditionNumber",
    "DOptimal",
    "EOptimal",
    "Excitation",
    "Execution",
    "ExpectedInformation",
    "Fourier",
    "FourierQuintic",
    "GainObservation",
    "Limits",
    "PayloadObservation",
    "Problem",
    "Progress",
    "QuinticSpline",
    "SelfCollision",
    "Subset",
    "ToolBox",
    "TorqueLimit",
    "TorqueObservation",
    "Wall",
    "achieved",
    "animation_html",
    "certify",
    "check_execution",
    "design",
    "find_timing",
    "information",
    "information_at",
    "random_motion",
    "write_animation",
    "write_figures",
    "write_formats",
]
