"""Excitation: design informative motions that a robot can run, check them, and write them for controllers."""

from bayesid.excitation.certificate import Certificate, certify
from bayesid.excitation.constraints import SelfCollision, ToolBox, TorqueLimit, Wall
from bayesid.excitation.design import Progress, achieved, design, random_motion
from bayesid.excitation.evaluation import information, information_at
from bayesid.excitation.excitation import Excitation
from bayesid.excitation.families import Fourier, FourierQuintic, QuinticSpline
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
    "AOptimal",
    "Certificate",
    "ConditionNumber",
    "DOptimal",
    "EOptimal",
    "Excitation",
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
    "certify",
    "design",
    "information",
    "information_at",
    "random_motion",
]
