"""Observations: rows are derivatives of what is measured, by the parameters they are named after."""

import dataclasses

import numpy as np
import pytest

from bayesid.errors import DesignError
from bayesid.excitation import GainObservation, PayloadObservation, TorqueObservation
from bayesid.models import Model
from bayesid.robots import load_robot

ROBOT = load_robot("two_link")
MODEL = Model(ROBOT, "coulomb")
LOAD = np.array([1.3, 0.1, -0.2, 0.05, 0.04, 0.01, 0.0, 0.05, 0.02, 0.03])


def states(count=7):
    return np.random.default_rng(0).normal(size=(3, 2, count)) * np.array([1.0, 2.0, 4.0])[:, None, None]


def torque(parameters, q, qd, qdd):
    return MODEL.torque(parameters, q.T, qd.T, qdd.T, np.tanh(qd.T / 0.02)).T


def with_load(parameters, load):
    out = parameters.copy()
    out[10:20] += load
    return out


def test_torque_rows_times_base_parameters_are_the_torque():
    q, qd, qdd = states()
    rows = np.asarray(TorqueObservation(MODEL).columns(q, qd, qdd))
    base = MODEL.base.project(MODEL.nominal)
    np.testing.assert_allclose(np.einsum("jps,p->js", rows, base), torque(MODEL.nominal, q, qd, qdd), atol=1e-9)


def test_payload_rows_times_the_load_are_the_torque_that_it_adds():
    q, qd, qdd = states()
    rows = np.asarray(PayloadObservation(MODEL).columns(q, qd, qdd))
    added = torque(with_load(MODEL.nominal, LOAD), q, qd, qdd) - torque(MODEL.nominal, q, qd, qdd)
    np.testing.assert_allclose(np.einsum("jps,p->js", rows, LOAD), added, atol=1e-9)


def test_gain_rows_are_the_slopes_of_both_currents():
    q, qd, qdd = states()
    gains = np.array([8.0, 5.0])
    observation = GainObservation(MODEL, tuple(gains), 1.3)
    rows = np.asarray(observation.columns(q, qd, qdd))
    b = MODEL.base.dimension
    assert rows.shape == (4, b + 2 + 9, 7)
    assert len(observation.names) == b + 11

    def currents(x):
        standard = MODEL.base.standard(x[:b], MODEL.nominal[MODEL.base.dependent])
        load = np.concatenate([[1.3], x[b + 2 :]])
        k = x[b : b + 2, None]
        return np.concatenate([torque(standard, q, qd, qdd) / k, torque(with_load(standard, load), q, qd, qdd) / k])

    at = np.concatenate([MODEL.base.project(MODEL.nominal), gains, np.zeros(9)])
    for i in range(len(at)):
        step = np.zeros(len(at))
        step[i] = 1e-4
        slope = (currents(at + step) - currents(at - step)) / 2e-4
        np.testing.assert_allclose(rows[:, i], slope, atol=1e-6, err_msg=observation.names[i])


def test_gains_are_determined_by_a_known_load_only():
    q, qd, qdd = states(200)
    rows = np.asarray(GainObservation(MODEL, (8.0, 5.0), 1.3).columns(q, qd, qdd))
    with_both = rows.transpose(0, 2, 1).reshape(-1, rows.shape[1])
    unloaded = rows[:2, : MODEL.base.dimension + 2].transpose(0, 2, 1).reshape(-1, MODEL.base.dimension + 2)
    gains = slice(MODEL.base.dimension, MODEL.base.dimension + 2)
    _, values, vectors = np.linalg.svd(unloaded)
    assert values[-1] < 1e-9 * values[0]
    assert np.abs(vectors[-1, gains]).max() > 0.01
    _, values, vectors = np.linalg.svd(with_both)
    blind = vectors[values < 1e-9 * values[0]]
    np.testing.assert_allclose(blind[:, gains], 0.0, atol=1e-6)


def test_impossible_gain_observations_are_refused():
    with pytest.raises(DesignError, match="drive gains must be 2 positive numbers"):
        GainObservation(MODEL, (8.0,), 1.0)
    with pytest.raises(DesignError, match="planned load's mass must be positive"):
        dataclasses.replace(GainObservation(MODEL, (8.0, 5.0), 1.0), load_mass=0.0)
