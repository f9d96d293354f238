"""The compressed information against least squares on all rows at once."""

import dataclasses

import numpy as np
import pytest

import bayesid.models.model as model_module
from bayesid.errors import DataError
from bayesid.regression import Information, Observations, compress
from bayesid.signals import Samples


def _normal(information):
    return np.array([factor.T @ factor for factor in information.factors])


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.3, 7.0)])
def test_factors_give_the_solution_of_least_squares_on_all_rows(arm, weights):
    run = arm.run()
    factor, right = compress(Observations(arm.model, (run,))).stacked(weights)
    rows, efforts = [], []
    for (columns, effort, weight), share in zip(arm.dense(run), weights):
        root = np.sqrt(weight * share)
        rows.append(columns * root[:, None])
        efforts.append(effort * root)
    expected = np.linalg.lstsq(np.vstack(rows), np.concatenate(efforts), rcond=None)[0]
    np.testing.assert_allclose(np.linalg.solve(factor, right), expected, rtol=1e-9, atol=1e-10)


def test_residual_sums_equal_those_of_all_rows(arm):
    run, beta = arm.run(), arm.beta + 0.1
    found = compress(Observations(arm.model, (run,))).squared_residuals(beta)
    expected = [np.sum(weight * (effort - columns @ beta) ** 2) for columns, effort, weight in arm.dense(run)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_gram_and_moment_are_those_of_all_rows(arm):
    run = arm.run()
    information = compress(Observations(arm.model, (run,)))
    for j, (columns, effort, weight) in enumerate(arm.dense(run)):
        gram = columns.T @ (weight[:, None] * columns)
        np.testing.assert_allclose(information.gram(j), gram, rtol=1e-9, atol=1e-9 * np.abs(gram).max())
        np.testing.assert_allclose(information.moment(j), columns.T @ (weight * effort), rtol=1e-8, atol=1e-8)


def test_counts_are_of_moving_rows_only(arm):
    run = arm.run()
    np.testing.assert_array_equal(compress(Observations(arm.model, (run,))).counts, run.moving.sum(axis=0))


def test_sum_of_information_is_the_information_of_both_runs(arm):
    first, second = arm.run(1), arm.run(2, seconds=5.0)
    parts = [compress(Observations(arm.model, (run,))) for run in (first, second)]
    whole = compress(Observations(arm.model, (first, second)))
    both = parts[0] + parts[1]
    np.testing.assert_allclose(_normal(both), _normal(whole), rtol=1e-9, atol=1e-9 * np.abs(_normal(whole)).max())
    np.testing.assert_array_equal(both.counts, whole.counts)
    with pytest.raises(DataError, match="different models"):
        both + Information(np.zeros((2, 3, 3)), np.zeros(2))


def test_information_does_not_depend_on_the_size_of_chunks(arm, monkeypatch):
    observations = Observations(arm.model, (arm.run(),))
    whole = _normal(compress(observations))
    monkeypatch.setattr(model_module, "CHUNK", 97)
    np.testing.assert_allclose(_normal(compress(observations)), whole, rtol=1e-9, atol=1e-9 * np.abs(whole).max())


def test_parameters_without_effect_on_a_joint_leave_zero_columns(arm):
    """The second joint feels neither the first link nor the first joint's friction."""
    information = compress(Observations(arm.model, (arm.run(),)))
    foreign = [i for i, name in enumerate(arm.model.base.names) if name.startswith(arm.model.robot.joint_names[0])]
    assert foreign
    assert not information.factors[1][:, foreign].any()
    assert np.all(np.tril(information.factors, -1) == 0)


def test_a_robot_that_stands_still_is_refused(arm):
    run = arm.run()
    still = dataclasses.replace(run, moving=np.zeros_like(run.moving))
    with pytest.raises(DataError, match="no sample of any joint moves"):
        compress(Observations(arm.model, (still,)))


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        (None, "motor currents"),
        ((10.0,), "1 drive gains for 2 joints"),
        ((10.0, -1.0), "must be positive"),
        ((10.0, np.nan), "must be positive"),
    ],
)
def test_bad_gains_are_refused_in_one_line(arm, gains, words):
    run = dataclasses.replace(arm.run(), effort_kind="current", effort_unit="A")
    with pytest.raises(DataError, match=words) as error:
        Observations(arm.model, (run,), gains)
    assert "\n" not in str(error.value)


def test_runs_of_another_robot_and_no_runs_are_refused(arm):
    rows = np.zeros((20, 3))
    with pytest.raises(DataError, match="3 joints"):
        Observations(arm.model, (Samples(np.arange(20.0), rows, rows, rows, rows, "torque"),))
    with pytest.raises(DataError, match="at least one log"):
        Observations(arm.model, ())


def test_currents_times_gains_are_torques(arm):
    run, gains = arm.run(), np.array([10.0, 8.0])
    currents = dataclasses.replace(run, effort=run.effort / gains, effort_measured=None, effort_kind="current", effort_unit="A")
    one, other = (_normal(compress(o)) for o in (Observations(arm.model, (run,)), Observations(arm.model, (currents,), gains)))
    np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9 * np.abs(one).max())
