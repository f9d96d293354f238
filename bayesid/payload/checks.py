"""What is wrong with a wrench record, said before anything is estimated from it."""

from __future__ import annotations

import numpy as np

from bayesid.errors import DataError
from bayesid.payload.record import WrenchRecord

# A step longer than so many median ones is a gap: the integral over it is a guess.
_GAP = 5.0
# So many readings at exactly the same extreme value are a clipped signal.
_CLIPPED = 20
# Forces of a payload in slow motion point along gravity to this angle [deg].
_MISALIGNED = 10.0


def check_record(record: WrenchRecord) -> None:
    """Raise DataError for gaps in time, clipped channels, no load, a wrench of the wrong sign or in another frame."""
    _check_gaps(record)
    _check_saturation(record)
    _check_gravity(record)


def _check_gaps(record):
    time = record.motion.time
    step = np.diff(time)
    long = step > _GAP * np.median(step)
    if long.any():
        k = int(np.argmax(long))
        raise DataError(
            f"{record.name}: time jumps from {time[k]:.6g} s to {time[k + 1]:.6g} s after sample "
            f"{k + 1} ({int(long.sum())} such gaps): "
            "the integral over a gap is not known; cut the record there"
        )


def _check_saturation(record):
    for what, values in (("force", record.force), ("moment", record.moment)):
        for axis, channel in zip("xyz", values.T):
            if np.ptp(channel) == 0.0:
                continue
            for extreme in (channel.max(), channel.min()):
                count = int(np.sum(channel == extreme))
                if count >= _CLIPPED and np.mean(channel == extreme) < 0.9 and not _quantised(channel, extreme):
                    raise DataError(
                        f"{record.name}: {what} {axis} stays at its extreme value {extreme:.6g} for "
                        f"{count} samples, the sensor saturates: "
                        "use a smaller load or a larger range"
                    )


def _quantised(channel, extreme):
    """True where other values repeat as often: the channel is coarse, not clipped."""
    _, counts = np.unique(channel, return_counts=True)
    return np.sum(channel == extreme) <= 3 * np.median(counts)


def _check_gravity(record):
    gravity = np.swapaxes(record.motion.rotation, 1, 2) @ np.asarray(record.motion.gravity, dtype=float)
    force = record.force.mean(0)
    size, weight = float(np.linalg.norm(force)), gravity.mean(0)
    spread = float(np.sqrt(np.mean(np.sum((record.force - force) ** 2, axis=1)) / len(record)))
    if size < max(10.0 * spread, 1e-6):
        raise DataError(f"{record.name}: the mean force is {size:.3g} N: the sensor carries no load, or was tared with it")
    cosine = float(-force @ weight / (size * np.linalg.norm(weight)))
    angle = float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    if angle > 180.0 - _MISALIGNED:
        raise DataError(
            f"{record.name}: the force points along gravity, which implies a mass of "
            f"{-size / np.linalg.norm(weight):.3g} kg: the wrench has "
            "the opposite sign (negate it) or is given in the base's axes"
        )
    if angle > _MISALIGNED:
        raise DataError(
            f"{record.name}: the mean force is {angle:.0f} deg away from opposing gravity: the wrench "
            f"is not given along the axes of this "
            "frame, or the sensor has a large bias; name the sensor's frame"
        )
