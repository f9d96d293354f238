"""From logs to samples: resampling, zero-phase filtering, differentiation, trimming, decimation; all recorded."""

from bayesid.signals.delay import Delay, estimate_delay
from bayesid.signals.derivatives import MeasuredVelocity, PositionDifferences
from bayesid.signals.kalman import KalmanSmoother
from bayesid.signals.reversal import SlipState, friction_direction, slip_states
from bayesid.signals.samples import Samples, samples_from_log
from bayesid.signals.streaming import iter_samples

__all__ = [
    "Delay",
    "KalmanSmoother",
    "MeasuredVelocity",
    "PositionDifferences",
    "Samples",
    "SlipState",
    "estimate_delay",
    "friction_direction",
    "iter_samples",
    "samples_from_log",
    "slip_states",
]
