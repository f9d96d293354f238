"""Regression: from samples to base and standard parameters with covariances."""

from bayesid.regression.covariance import AR, COVARIANCES, HAC, Bootstrap, Covariance, White
from bayesid.regression.information import Information, compress
from bayesid.regression.least_squares import METHODS, Fit, gls, ols, robust, wls
from bayesid.regression.observations import Observations, Whitened
from bayesid.regression.physical import Constraints, PhysicalFit, PhysicalProgram, min_eigenvalues, physical

__all__ = [
    "AR",
    "COVARIANCES",
    "HAC",
    "METHODS",
    "Bootstrap",
    "Constraints",
    "Covariance",
    "Fit",
    "Information",
    "Observations",
    "PhysicalFit",
    "PhysicalProgram",
    "White",
    "Whitened",
    "compress",
    "gls",
    "min_eigenvalues",
    "ols",
    "physical",
    "robust",
    "wls",
]
