"""States of dry friction along a hand-written motion."""

import numpy as np

from bayesid.signals import Samples, SlipState, slip_states
from bayesid.signals.reversal import REVERSAL_WIDTH, friction_direction


def samples(q, moving, step=0.01):
    time = step * np.arange(len(q))
    q = np.array(q)[:, None]
    qd = np.gradient(q, step, axis=0)
    direction = friction_direction(q, qd)
    return Samples(time, q, qd, 0 * q, 0 * q, "torque", direction=direction, moving=np.array(moving)[:, None])


def test_a_joint_that_stops_is_held_then_left_and_before_it_moves_its_friction_is_unknown():
    q = np.concatenate([np.zeros(5), np.linspace(0.0, 0.1, 11)[1:], np.full(40, 0.1)])
    states = slip_states(samples(q, [False] * 5 + [True] * 10 + [False] * 40))[:, 0]
    assert np.all(states[:5] == SlipState.UNKNOWN)
    assert np.all(states[5:15] == SlipState.SLIDING)
    # Sliding until 0.14 s, held for 0.2 s after that.
    assert np.all(states[15:34] == SlipState.HELD)
    assert np.all(states[36:] == SlipState.LEFT)


def test_creep_within_the_width_of_a_reversal_is_no_sliding_whatever_its_speed():
    there = np.linspace(0.0, 0.1, 11)
    back = 0.1 - REVERSAL_WIDTH * np.array([0.3, 0.6, 0.9, 1.2, 1.5])
    states = slip_states(samples(np.concatenate([there, back]), [True] * 16))[:, 0]
    assert np.all(states[:11] == SlipState.SLIDING)
    assert np.all(states[11:14] == SlipState.TURNING)
    assert np.all(states[14:] == SlipState.SLIDING)
