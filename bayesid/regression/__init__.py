"""Regression: from samples to base and standard parameters with covariances."""

from bayesid.regression.breakaway import BreakawayProfile, NodalInformation, SpeedFit, breakaway_profile, fit_speeds
from bayesid.regression.covariance import AR, COVARIANCES, HAC, Bootstrap, Covariance, White
from bayesid.regression.damping import viscous_and_coulomb
from bayesid.regression.identify import Identification, gain_sensitivity, identify
from bayesid.regression.information import Information, compress
from bayesid.regression.least_squares import METHODS, Fit, gls, ols, robust, wls
from bayesid.regression.load import load_response, settle_load
from bayesid.regression.nominal import gravity_scale
from bayesid.regression.observations import Lagged, Observations, Whitened
from bayesid.regression.physical import Constraints, PhysicalFit, PhysicalProgram, min_eigenvalues, physical
from bayesid.regression.predict import TorquePredictor, base_names, torque_predictor
from bayesid.regression.validation import Validation, validate
from bayesid.regression.velocity import AtSpeeds, VelocityBasis

__all__ = [
    "AR",
    "COVARIANCES",
    "HAC",
    "METHODS",
    "AtSpeeds",
    "Bootstrap",
    "BreakawayProfile",
    "Constraints",
    "Covariance",
    "Fit",
    "Identification",
    "Information",
    "Lagged",
    "NodalInformation",
    "Observations",
    "PhysicalFit",
    "PhysicalProgram",
    "SpeedFit",
    "TorquePredictor",
    "Validation",
    "VelocityBasis",
    "White",
    "Whitened",
    "base_names",
    "breakaway_profile",
    "compress",
    "fit_speeds",
    "gain_sensitivity",
    "gls",
    "gravity_scale",
    "identify",
    "load_response",
    "min_eigenvalues",
    "ols",
    "physical",
    "robust",
    "settle_load",
    "torque_predictor",
    "validate",
    "viscous_and_coulomb",
    "wls",
]
