"""Zero-phase low-pass filtering, and the uniform grid that it needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import SignalError

ORDER = 4
# Time stamps that stray less than this part of a step from a uniform grid count as uniform.
UNIFORM = 1e-3
# A log whose gaps make the grid so many times as long as its rows is refused: the grid would be filled with guesses.
LONGEST = 20


# Rows a second of a recording [Hz]: others are the sign of a wrong unit of time.
SLOWEST, FASTEST = 2.0, 5e4


@dataclass(frozen=True, eq=False)
class Grid:
    """Uniform stamps `grid` (M,) at `rate` [Hz] over the recorded `time` (N,); `uniform` when both are the same."""

    time: np.ndarray
    grid: np.ndarray
    rate: float
    uniform: bool

    @classmethod
    def over(cls, time: np.ndarray) -> Grid:
        """The grid from the first to the last stamp whose step is as near the median step as divides the span.

        Raises SignalError when gaps would make it more than twenty times as long as the log.
        """
        span = float(time[-1] - time[0])
        step = float(np.median(np.diff(time)))
        if not 1 / FASTEST <= step <= 1 / SLOWEST:
            raise SignalError(
                f"a row every {step:.3g} s is no recording of a motion, which needs {SLOWEST:g} to {FASTEST:g} rows a second: "
                "correct the unit of time in the schema, or log faster"
            )
        count = max(round(span / step), 1)
        if count > LONGEST * len(time):
            raise SignalError(
                f"its {len(time)} rows span {span / step:.4g} of its median steps, with the longest gap from {_longest(time)}: "
                "read the pieces between its gaps by their rows"
            )
        grid = time[0] + np.arange(count + 1) * (span / count)
        uniform = len(grid) == len(time) and bool(np.abs(grid - time).max() < UNIFORM * span / count)
        return cls(time, grid, count / span, uniform)

    def smooth(self, values: np.ndarray) -> np.ndarray:
        """Smooth signals (N, n) from the recorded stamps onto the grid, by cubic spline."""
        return values if self.uniform else spline(self.time, values, self.grid)

    def noisy(self, values: np.ndarray) -> np.ndarray:
        """Noisy signals (N, n) from the recorded stamps onto the grid, linearly: a spline would overshoot."""
        return values if self.uniform else np.column_stack([np.interp(self.grid, self.time, column) for column in values.T])

    def back(self, values: np.ndarray) -> np.ndarray:
        """Smooth signals (M, n) from the grid to the recorded stamps, by cubic spline."""
        return values if self.uniform else spline(self.grid, values, self.time)


def _longest(time) -> str:
    at = int(np.argmax(np.diff(time)))
    return f"{time[at]:.9g} to {time[at + 1]:.9g} s"


def spline(time: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Not-a-knot cubic spline through the rows of `values`, evaluated at the stamps `at`."""
    from scipy.interpolate import CubicSpline

    return CubicSpline(time, values, axis=0)(at)


def transient(rate: float, cutoff: float) -> int:
    """Rows in which the filter forgets its start: about one and a half periods of the cutoff."""
    return max(int(np.ceil(1.5 * rate / cutoff)), 3 * ORDER)


def low_pass(values: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Butterworth filter of order 4, forwards and backwards (no phase lag) along the rows of (N, n).

    `cutoff` [Hz] is where the two passes together halve the amplitude. The ends are extended by odd reflection. Raises
    SignalError when the cutoff is not below half the rate or when there are fewer rows than the filter's transient.
    """
    from scipy.signal import butter, sosfiltfilt

    if not 0 < cutoff < rate / 2:
        raise SignalError(
            f"cutoff {cutoff:.6g} Hz is not between 0 and half the sampling rate, {rate / 2:.6g} Hz: choose another"
        )
    rows = transient(rate, cutoff)
    if len(values) <= rows:
        raise SignalError(
            f"{len(values)} rows at {rate:.6g} Hz are too few for a low-pass filter at {cutoff:.6g} Hz, which needs "
            f"more than {rows}: use a longer log or a higher cutoff"
        )
    return sosfiltfilt(butter(ORDER, cutoff, fs=rate, output="sos"), values, axis=0, padtype="odd", padlen=rows)


def motion_bandwidth(velocity: np.ndarray, rate: float, part: float = 0.99) -> float:
    """Frequency [Hz] below which the given part of the velocity's power lies, the joints scaled to equal power.

    Velocity, not acceleration: vibration and measurement noise, weighted by frequency squared, would rule the latter.
    Joints that hardly move (below 1 % of the fastest one's power) are left out; 0 when none moves. (N, n) in, Hann
    window.
    """
    rows = velocity - velocity.mean(0)
    scale = rows.std(0)
    used = scale > max(0.1 * scale.max(), 1e-6)
    if not used.any():
        return 0.0
    rows = rows[:, used] / scale[used] * np.hanning(len(rows))[:, None]
    power = (np.abs(np.fft.rfft(rows, axis=0)) ** 2).mean(1)
    total = np.cumsum(power)
    return float(np.fft.rfftfreq(len(rows), 1 / rate)[np.searchsorted(total, part * total[-1])])
