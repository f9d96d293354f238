"""Signals whose derivatives are known in closed form."""

import numpy as np
import pytest

from bayesid.logs import Log


class Tones:
    """Sums of sines per joint, all below 1.5 Hz: q and its derivatives at any time."""

    frequency = np.array([[0.2, 0.5, 1.1], [0.3, 0.7, 1.4]])
    amplitude = np.array([[0.8, 0.3, 0.1], [0.6, 0.2, 0.08]])

    def __call__(self, time, order):
        w = 2 * np.pi * self.frequency
        phase = np.asarray(time)[:, None, None] * w + np.array([0.3, 1.1]).reshape(2, 1) + order * np.pi / 2
        return (self.amplitude * w**order * np.sin(phase)).sum(-1)


@pytest.fixture(scope="session")
def tones():
    return Tones()


def stamps(count=2500, jitter=False, rate=100.0, seed=0):
    """Uniform stamps, or steps of 8, 10 and 12 ms at random."""
    if not jitter:
        return 3.0 + np.arange(count) / rate
    return 3.0 + np.cumsum(np.random.default_rng(seed).choice([0.008, 0.010, 0.012], count))


@pytest.fixture(scope="session")
def make_log(tones):
    """Makes a log of the tones with noise (standard deviations of position, velocity, effort)."""

    def maker(time=None, jitter=False, noise=(0.0, 0.0, 0.0), velocity=True, seed=1, **fields):
        time = stamps(jitter=jitter) if time is None else time
        rng = np.random.default_rng(seed)
        q, qd, effort = (tones(time, k) + s * rng.standard_normal((len(time), 2)) for k, s in zip((0, 1, 2), noise))
        return Log(time, q, velocity=qd if velocity else None, torque=effort, effort_kind="torque", **fields)

    return maker
