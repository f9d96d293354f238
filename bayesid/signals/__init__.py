"""From logs to samples: resampling, zero-phase filtering, differentiation, trimming, decimation; every step recorded."""

from bayesid.signals.derivatives import MeasuredVelocity, PositionDifferences
from bayesid.signals.samples import Samples, samples_from_log

__all__ = ["MeasuredVelocity", "PositionDifferences", "Samples", "samples_from_log"]
