"""The direction that dry friction opposes, from position alone: defined at standstill, unlike sign(velocity)."""

from enum import IntEnum

import numpy as np

# Slip that turns friction around, joint side [rad or m]. On the UR10e recordings the held-out error is least at 0.2
# mrad and flat from 0.1 to 0.4 mrad.
REVERSAL_WIDTH = 2e-4
# Friction is turned around by this part of the slip that turns it.
_TURNED = 0.99
# A joint that has not slid for so long has not just stopped [s].
LEFT_AFTER = 0.2


class SlipState(IntEnum):
    """What is known of a joint's dry friction: SLIDING, against the motion; HELD, just stopped with what the motion left;
    TURNING, on its way through a reversal; LEFT, some time after the last motion; UNKNOWN, before the first."""

    SLIDING, HELD, TURNING, LEFT, UNKNOWN = range(5)


def friction_direction(position, velocity, width: float = REVERSAL_WIDTH) -> np.ndarray:
    """Direction (N, n) in [-1, 1] of the slip that dry friction opposes, from positions (N, n) [rad or m].

    The stop operator of hysteresis models (Prandtl's element): it follows position with slope 2 / `width`, held
    within [-1, 1]. At speed it is the sign of velocity; at standstill it keeps the value of the last motion, and
    noise smaller than `width` does not turn it. `velocity` (N, n) gives its first value.
    """
    position = np.asarray(position, dtype=float)
    shift = np.diff(position, axis=0) * (2.0 / width)
    low, high = np.full_like(shift, -1.0), np.full_like(shift, 1.0)
    # Each step is z -> clip(z + shift, low, high); such maps compose to maps of the same form, so that prefixes can be
    # doubled instead of stepped through.
    span = 1
    while span < len(shift):
        first_shift, first_low, first_high = shift[:-span], low[:-span], high[:-span]
        then_shift, then_low, then_high = shift[span:].copy(), low[span:].copy(), high[span:].copy()
        shift[span:] = first_shift + then_shift
        low[span:] = np.clip(first_low + then_shift, then_low, then_high)
        high[span:] = np.clip(first_high + then_shift, then_low, then_high)
        span *= 2
    start = np.sign(np.asarray(velocity, dtype=float)[:1])
    return np.concatenate([start, np.clip(start + shift, low, high)])


def slip_states(samples) -> np.ndarray:
    """(N, n) SlipState of each joint at samples in order of time.

    A joint slides when it moves and the slip since its last reversal has turned its friction around. Joints that creep by
    less, pushed by the others, are stuck as far as friction goes, whatever their speed.
    """
    turned = np.abs(samples.direction_measured) >= _TURNED
    sliding = samples.moving & turned
    last = np.maximum.accumulate(np.where(sliding, samples.time[:, None], -np.inf), axis=0)
    stuck = np.where(turned, SlipState.HELD, SlipState.TURNING)
    stuck = np.where(samples.time[:, None] - last > LEFT_AFTER, SlipState.LEFT, stuck)
    stuck = np.where(np.isinf(last), SlipState.UNKNOWN, stuck)
    return np.where(sliding, SlipState.SLIDING, stuck)
