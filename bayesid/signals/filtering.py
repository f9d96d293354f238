"""Zero-phase low-pass filtering on a uniform grid, and the way to that grid and back."""

from __future__ import annotations

import numpy as np

from bayesid.errors import SignalError

ORDER = 4
# Time stamps that stray less than this part of a step from a uniform grid count as uniform.
UNIFORM = 1e-3


def uniform_grid(time: np.ndarray) -> tuple[np.ndarray, bool]:
    """A uniform grid from the first to the last stamp, as near the median step as divides the span; and whether `time` is it."""
    step = float(np.median(np.diff(time)))
    count = max(int(round((time[-1] - time[0]) / step)), 1)
    grid = time[0] + np.arange(count + 1) * ((time[-1] - time[0]) / count)
    same = len(grid) == len(time) and bool(np.abs(grid - time).max() < UNIFORM * step)
    return grid, same


def onto(grid: np.ndarray, time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Smooth signals (N, n) interpolated by a C2 cubic spline; needs four rows."""
    from scipy.interpolate import CubicSpline

    return CubicSpline(time, values, axis=0)(grid)


def onto_linear(grid: np.ndarray, time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Noisy signals (N, n) interpolated linearly: a spline would overshoot between noisy rows."""
    return np.column_stack([np.interp(grid, time, column) for column in values.T])


def padding(rate: float, cutoff: float) -> int:
    """Rows of odd extension at each end: the filter's impulse response has died out after about one and a half periods."""
    return max(int(np.ceil(1.5 * rate / cutoff)), 3 * ORDER)


def low_pass(values: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Butterworth filter of order 4, forwards and backwards (no phase lag) along the rows of (N, n).

    `cutoff` [Hz] is where the two passes together halve the amplitude. Raises SignalError when the cutoff is not below half
    the rate or when there are fewer rows than the filter's transient.
    """
    from scipy.signal import butter, sosfiltfilt

    if not 0 < cutoff < rate / 2:
        raise SignalError(f"cutoff {cutoff:.6g} Hz is not between 0 and half the sampling rate, {rate / 2:.6g} Hz: choose a lower one")
    rows = padding(rate, cutoff)
    if len(values) <= rows:
        raise SignalError(
            f"{len(values)} rows at {rate:.6g} Hz are too few for a low-pass filter at {cutoff:.6g} Hz, which needs more than "
            f"{rows}: use a longer log or a higher cutoff"
        )
    return sosfiltfilt(butter(ORDER, cutoff, fs=rate, output="sos"), values, axis=0, padtype="odd", padlen=rows)


def motion_bandwidth(velocity: np.ndarray, rate: float, part: float = 0.99) -> float:
    """Frequency [Hz] below which the given part of the acceleration's power lies, over all joints alike.

    Acceleration, not position, because inertial torque follows it. The spectrum comes from velocities smoothed to a tenth
    of the rate (where measurement noise, not motion, rules the derivative), Hann-windowed, each joint scaled to unit power.
    """
    rows = velocity - velocity.mean(0)
    scale = rows.std(0)
    rows = rows[:, scale > 1e-6] / scale[scale > 1e-6]
    if not rows.size:
        return 0.0
    frequency = np.fft.rfftfreq(len(rows), 1 / rate)
    power = (np.abs(np.fft.rfft(rows * np.hanning(len(rows))[:, None], axis=0)) ** 2).mean(1) * frequency**2
    power[frequency > rate / 10] = 0.0
    total = np.cumsum(power)
    return float(frequency[np.searchsorted(total, part * total[-1])])
