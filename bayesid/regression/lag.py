"""Does the recorded effort belong to another instant than the recorded motion? Friction and inertia would pay for it."""

from __future__ import annotations

import numpy as np

from bayesid.errors import SignalError
from bayesid.models import Model
from bayesid.signals import estimate_delay

# Smaller delays are those of sampling and filters; larger ones are told from noise by so many standard deviations.
LEAST = 1.5e-3
CLEAR = 5.0
# Searched so far either way [s], on so many samples of each of so many runs, of which there must be so many per parameter:
# each joint is fitted by itself, and a fit to few samples likes any delay.
_LONGEST = 0.1
_SAMPLES, _RUNS = 1500, 4
_PER_PARAMETER = 10


def effort_delay(model: Model, runs) -> tuple[float, float]:
    """Seconds by which effort lags behind motion in `runs` and the standard deviation, NaN where the runs do not tell.

    The mean over the runs of `estimate_delay`, weighted by precision; its standard deviation is at least that of the runs'
    spread. It is what is left of it: samples may have been made with a delay already.
    """
    found = []
    for run in runs[:_RUNS]:
        part = run.select(slice(0, _SAMPLES))
        if len(part) < _PER_PARAMETER * model.size:
            continue
        regressor = np.concatenate([np.moveaxis(block, 2, 0) for _, block in model.chunks_of(part)])
        try:
            found.append(estimate_delay(part, regressor, longest=_LONGEST))
        except SignalError:
            continue
    precision = np.array([delay.std**-2.0 for delay in found if delay.std > 0])
    seconds = np.array([delay.seconds for delay in found if delay.std > 0])
    if not len(seconds):
        return np.nan, np.nan
    mean = float(precision @ seconds / precision.sum())
    spread = float(precision @ (seconds - mean) ** 2 / precision.sum() / len(seconds))
    return mean, float(np.sqrt(max(1.0 / precision.sum(), spread)))


def delay_warnings(model: Model, runs) -> list[str]:
    """A sentence when the effort clearly lags behind the motion, or leads it; or none."""
    seconds, std = effort_delay(model, runs)
    if not abs(seconds) > max(LEAST, CLEAR * std):
        return []
    how = "lags behind" if seconds > 0 else "leads"
    applied = 0.0 if runs[0].fine is None else runs[0].fine.delay
    return [
        f"The recorded effort {how} the recorded motion by {1e3 * abs(seconds):.1f} ms (standard deviation {1e3 * std:.1f}): "
        f"friction and inertia pay for it; correct the time stamps, or read the log with --delay {applied + seconds:.4f}."
    ]
