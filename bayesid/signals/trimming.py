"""Where the motion is: standstill, pauses, and the idle ends of a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# A pause is a standstill of all joints of at least so many seconds.
PAUSE = 0.5
# An approach or return is separated from the motion by a pause and lasts less than this part of the longest motion.
APPROACH = 0.1
# A joint's speed counts as standing below this part of its peak speed: friction there depends on presliding, not on
# speed.
STANDING = 2e-3
# ... or below this speed [rad/s, m/s], which encoders and holding controllers alone produce.
SLOWEST = 1e-3
# ... or below so many standard deviations of the noise that is left in the filtered velocity.
NOISE_FACTOR = 5.0


@dataclass(frozen=True)
class Window:
    """First and last row (from 0, both included) of the motion, and how many seconds were cut at each end and why."""

    first: int
    last: int
    cut: tuple[str, ...]


def standstill_speed(measured: np.ndarray, smooth: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """(n,) speed [rad/s] below which a joint cannot be told from standing still.

    The noise of the unfiltered velocity is the median absolute deviation of `measured - smooth` (both (N, n)) times
    1.4826; white noise of that size leaves sqrt(2 cutoff / rate) of it after the filter. The threshold is five times
    that, but at least 0.2 % of the joint's peak speed and 1e-3 rad/s (m/s).
    """
    sigma = 1.4826 * np.median(np.abs(measured - smooth), axis=0) * np.sqrt(min(2 * cutoff / rate, 1.0))
    return np.maximum(np.maximum(NOISE_FACTOR * sigma, STANDING * np.abs(smooth).max(0)), SLOWEST)


def motion_window(time: np.ndarray, moving: np.ndarray) -> Window:
    """The rows of the main motion, given where any joint moves (N,).

    Standstill at both ends is cut. What is left falls into motions separated by pauses of at least 0.5 s. From each
    end, motions shorter than a tenth of the longest are taken for the approach to the start or the return, and cut
    with the pause that follows; the first longer one stops the search, so pauses inside the experiment stay.
    """
    rows = np.flatnonzero(moving)
    if not rows.size:
        return Window(0, len(time) - 1, ("nothing: the robot stands still throughout",))
    breaks = np.flatnonzero(np.diff(time[rows]) >= PAUSE)
    starts, ends = rows[np.r_[0, breaks + 1]], rows[np.r_[breaks, rows.size - 1]]
    lengths = time[ends] - time[starts]
    long_enough = np.flatnonzero(lengths >= APPROACH * lengths.max())
    first, last = int(starts[long_enough[0]]), int(ends[long_enough[-1]])
    cut = []
    for where, seconds, motions in (
        ("start", time[first] - time[0], long_enough[0]),
        ("end", time[-1] - time[last], len(starts) - 1 - long_enough[-1]),
    ):
        if seconds > 0:
            what = "standstill" if not motions else f"standstill and {motions} short motion{'s' if motions > 1 else ''}"
            cut.append(f"{where}: {seconds:.2f} s of {what}")
    return Window(first, last, tuple(cut))
