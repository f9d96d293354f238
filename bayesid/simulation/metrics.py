"""How far two signals are apart. All take (N, n) arrays and return one number per column, but for the L2 index."""

import numpy as np

from bayesid.errors import DataError


def rms(observed, predicted) -> np.ndarray:
    """Root mean square difference (n,): sqrt(mean((o - p)^2)), in the signals' unit."""
    observed, predicted = _pair(observed, predicted)
    return np.sqrt(np.mean((observed - predicted) ** 2, axis=0))


def rsd(observed, predicted) -> np.ndarray:
    """Relative standard deviation (n,): sqrt(sum((o - p)^2) / sum(o^2)), of the extended model of the UR16e.

    Its scale is the observed signal itself, offset included; a column that is zero throughout has none and gives NaN.
    """
    observed, predicted = _pair(observed, predicted)
    power = np.sum(observed**2, axis=0)
    return np.sqrt(np.sum((observed - predicted) ** 2, axis=0) / np.where(power > 0, power, np.nan))


def nrmse(observed, predicted) -> np.ndarray:
    """RMS difference over the observed signal's standard deviation (n,): 1 is no better than its mean."""
    observed, predicted = _pair(observed, predicted)
    spread = observed.std(axis=0)
    return rms(observed, predicted) / np.where(spread > 0, spread, np.nan)


def l2_index(time, error) -> float:
    """sqrt(1/(t - t0) integral ||e||^2 dt) of an error (N, n) over time (N,), by the trapezoidal rule."""
    time, error = np.asarray(time, dtype=float), np.asarray(error, dtype=float)
    if error.ndim != 2 or time.shape != error.shape[:1] or time.size < 2 or not time[-1] > time[0]:
        raise DataError(f"the L2 index needs an error (N, n) over N > 1 increasing times, got {error.shape} and {time.shape}")
    return float(np.sqrt(np.trapezoid(np.sum(error**2, axis=1), time) / (time[-1] - time[0])))


def _pair(observed, predicted):
    observed, predicted = np.asarray(observed, dtype=float), np.asarray(predicted, dtype=float)
    if observed.shape != predicted.shape or observed.ndim != 2 or not len(observed):
        raise DataError(f"two signals to compare must both be (N, n), got {observed.shape} and {predicted.shape}")
    return observed, predicted
