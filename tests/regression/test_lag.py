"""A delay of the effort is noticed, and none where there is none."""

import numpy as np
import pytest

from bayesid.logs import Log
from bayesid.models import Model
from bayesid.regression.lag import delay_warnings, effort_delay
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log
from bayesid.simulation.synthetic import autocorrelated


@pytest.fixture(scope="module")
def late():
    """Samples of a two-link arm whose torque is recorded so many seconds late, with autocorrelated noise."""
    model = Model(load_robot("two_link"))
    truth = model.nominal.copy()
    truth[-6:] = (2.0, 1.5, 0.2, 1.0, 0.8, -0.1)
    time = np.arange(2000) / 100

    def motion(t):
        w = 2 * np.pi * np.array([[0.23, 0.31], [0.61, 0.47], [0.97, 1.1]])
        phase = t[:, None, None] * w + np.array([[0.0, 1.0], [2.0, 0.5], [1.0, 3.0]])
        size = np.array([[0.8, 0.6], [0.4, 0.5], [0.15, 0.2]])
        return tuple((size * f).sum(1) for f in (np.sin(phase), w * np.cos(phase), -(w**2) * np.sin(phase)))

    def samples(delay, read=0.0):
        q, qd, _ = motion(time)
        torque = model.torque(truth, *motion(time - delay))
        torque = torque + autocorrelated(np.random.default_rng(3), torque.shape, np.array([1.0, 0.3]), 0.8)
        return model, [samples_from_log(Log(time, q, velocity=qd, torque=torque, effort_kind="torque"), delay=read)]

    return samples


@pytest.mark.parametrize("delay", [0.03, -0.012])
def test_a_delay_is_found_and_told_with_the_option_that_mends_it(late, delay):
    seconds, std = effort_delay(*late(delay))
    assert abs(seconds - delay) < 4 * std
    (text,) = delay_warnings(*late(delay))
    assert ("lags behind" if delay > 0 else "leads") in text
    assert f"--delay {seconds:.4f}" in text


def test_no_delay_no_word(late):
    assert delay_warnings(*late(0.0)) == []
    assert delay_warnings(*late(0.03, read=0.03)) == []
    (text,) = delay_warnings(*late(0.03, read=0.06))
    assert "leads the recorded motion" in text
    assert float(text.rpartition("--delay ")[2].rstrip(".")) == pytest.approx(0.03, abs=0.005)


def test_a_run_too_short_tells_nothing(late):
    model, (run,) = late(0.03)
    assert np.isnan(effort_delay(model, [run.select(slice(0, 150))])).all()
