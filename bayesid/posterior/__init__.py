"""Posteriors over link, rotor and friction parameters: priors, compressed likelihoods, NUTS; ArviZ out."""

from bayesid.posterior.breakaway import BreakawayPrior
from bayesid.posterior.conflict import Conflict, soften
from bayesid.posterior.diagnostics import Diagnostics, diagnose
from bayesid.posterior.fleet import Fleet, FleetPosterior
from bayesid.posterior.friction import FrictionComparison, candidates, compare_friction, ladder
from bayesid.posterior.likelihood import Likelihood, autoregressive, calibrated, white
from bayesid.posterior.log_cholesky import LogCholesky, LogCholeskyPrior, LogCholeskyTarget
from bayesid.posterior.posterior import Posterior, infer
from bayesid.posterior.prediction import TorquePredictor, coverage, torque_predictor
from bayesid.posterior.prior import Bounded, ClassPrior, FromRobot, LinearPrior, ParameterPrior, Prior, Wishart
from bayesid.posterior.problem import Density, Layout, Problem
from bayesid.posterior.sampling import NUTS, SVI, Draws, Laplace
from bayesid.posterior.target import Target

__all__ = [
    "NUTS",
    "SVI",
    "Bounded",
    "BreakawayPrior",
    "ClassPrior",
    "Conflict",
    "Density",
    "Diagnostics",
    "Draws",
    "Fleet",
    "FleetPosterior",
    "FrictionComparison",
    "FromRobot",
    "Laplace",
    "Layout",
    "Likelihood",
    "LinearPrior",
    "LogCholesky",
    "LogCholeskyPrior",
    "LogCholeskyTarget",
    "ParameterPrior",
    "Posterior",
    "Prior",
    "Problem",
    "Target",
    "TorquePredictor",
    "Wishart",
    "autoregressive",
    "calibrated",
    "candidates",
    "compare_friction",
    "coverage",
    "diagnose",
    "infer",
    "ladder",
    "soften",
    "torque_predictor",
    "white",
]
