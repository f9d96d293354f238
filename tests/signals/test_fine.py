"""Friction that turns around within the filter's width: its columns pass the filter, as the effort does."""

import numpy as np
import pytest

from bayesid.dynamics import stribeck_law
from bayesid.logs import Log
from bayesid.models import Model
from bayesid.regression import Observations, wls
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log
from bayesid.signals.filtering import low_pass

RATE, CUTOFF = 1000.0, 9.0
LAW = stribeck_law(0.05)


@pytest.fixture(scope="module")
def swing():
    """Position, velocity and acceleration (N, 2) of two joints swinging, and their times."""
    time = np.arange(8000) / RATE
    w = 2 * np.pi * np.array([0.31, 0.47])
    phase = np.outer(time, w)
    return time, 0.6 * np.sin(phase), 0.6 * w * np.cos(phase), -0.6 * w**2 * np.sin(phase)


def _log(time, q, qd, effort):
    return Log(time=time, position=q, velocity=qd, torque=effort)


@pytest.mark.parametrize("recorded", [True, False])
def test_columns_are_those_of_the_law_through_the_filter(swing, recorded):
    time, q, qd, _ = swing
    samples = samples_from_log(_log(time, q, qd if recorded else None, q), trim=False, cutoff=CUTOFF)
    found = samples.fine.columns(LAW.columns, samples.time)
    at = np.searchsorted(time, samples.time)
    inner = (samples.time > 0.5) & (samples.time < 7.5)
    for column, law in zip(found[1:], np.asarray(LAW.columns(qd))[1:]):
        right = low_pass(law, RATE, CUTOFF)[at]
        plain = low_pass(qd, RATE, CUTOFF)[at]
        assert np.abs(column - right)[inner].max() < 0.01
        assert np.abs(np.asarray(LAW.columns(plain))[1:] - right)[:, inner].max() > 0.1
    unfiltered = samples.fine.columns(LAW.columns, samples.time, filtered=False)
    np.testing.assert_allclose(unfiltered[0][inner], qd[at][inner], atol=2e-3)


def test_a_delay_moves_the_columns_with_the_motion(swing):
    time, q, qd, _ = swing
    plain, late = (samples_from_log(_log(time, q, qd, q), trim=False, cutoff=CUTOFF, delay=d) for d in (0.0, 0.02))
    shared = late.time[20:-20]
    np.testing.assert_allclose(
        late.fine.columns(LAW.columns, shared), plain.fine.columns(LAW.columns, shared - 0.02), atol=1e-9
    )


def test_stribeck_friction_is_found_without_the_filters_bias(swing):
    time, q, qd, qdd = swing
    model = Model(load_robot("two_link"), LAW)
    truth = model.nominal.copy()
    truth[-6:] = (2.0, 1.5, 0.8, 1.0, 0.8, 0.4)
    effort = model.torque(truth, q, qd, qdd)
    samples = samples_from_log(_log(time, q, qd, effort), trim=False, cutoff=CUTOFF)
    beta = model.base.project(truth)
    found = wls(Observations(model, (samples,))).beta
    biased = wls(Observations(model, (samples.replace(fine=None),))).beta
    assert np.abs(found - beta)[-6:].max() < 0.02
    assert np.abs(biased - beta)[-6:].max() > 0.1
