"""Estimates: intervals, draws, selection, round trips and what other tools read of them."""

import dataclasses
import math
import sys
import types

import numpy as np
import pytest
from scipy.stats import norm, t

from bayesid.errors import ResultError
from bayesid.results import Estimate, join_estimates

COVARIANCE = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 1.0]])


def _estimate(**changes):
    content = {
        "names": ("a.m", "b.viscous", "c.offset"),
        "units": ("kg", "N m s/rad", "N m"),
        "kinds": ("link", "friction", "friction"),
        "mean": np.array([1.0, 2.0, -3.0]),
        "covariance": COVARIANCE,
        "method": "wls",
        "covariance_method": {"method": "hac", "lags": 150},
        "dof": 12.0,
        "meta": {"note": "made up"},
    }
    return Estimate(**(content | changes))


@pytest.mark.parametrize(("dof", "law"), [(12.0, t(12.0)), (math.inf, norm())])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_interval_is_a_quantile_of_student_or_normal(dof, law, level):
    half = law.ppf((1 + level) / 2) * np.sqrt(np.diag(COVARIANCE))
    expected = np.column_stack([[1.0, 2.0, -3.0] - half, [1.0, 2.0, -3.0] + half])
    np.testing.assert_allclose(_estimate(dof=dof).interval(level), expected, rtol=1e-9)


def test_interval_of_draws_is_their_quantiles_whatever_their_shape():
    draws = np.random.default_rng(0).exponential(size=(4000, 3))
    interval = _estimate(draws=draws).interval(0.9)
    np.testing.assert_allclose(interval, np.quantile(draws, [0.05, 0.95], axis=0).T)
    np.testing.assert_allclose(interval[:, 0], -math.log(0.95), atol=0.02)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, float("nan")])
def test_level_must_be_a_probability(level):
    with pytest.raises(ResultError, match="between 0 and 1"):
        _estimate().interval(level)


def test_samples_have_the_moments_of_the_estimate():
    drawn = _estimate(dof=30.0).sample(1, 200_000)
    np.testing.assert_allclose(drawn.mean(axis=0), [1.0, 2.0, -3.0], atol=0.01)
    np.testing.assert_allclose(np.cov(drawn.T), COVARIANCE * 30 / 28, atol=0.02)
    inside = np.mean((drawn > _estimate(dof=30.0).interval(0.9)[:, 0]) & (drawn < _estimate(dof=30.0).interval(0.9)[:, 1]), 0)
    np.testing.assert_allclose(inside, 0.9, atol=0.005)


def test_samples_are_reproducible_and_resampled_from_draws():
    draws = np.arange(30.0).reshape(10, 3)
    estimate = _estimate(draws=draws)
    np.testing.assert_array_equal(estimate.sample(3, 50), estimate.sample(3, 50))
    assert {tuple(row) for row in estimate.sample(3, 50)} <= {tuple(row) for row in draws}


def test_selection_is_the_marginal_in_the_order_asked():
    draws = np.random.default_rng(0).normal(size=(20, 3))
    part = _estimate(draws=draws).select(["c.offset", "a.m"])
    assert part.names == ("c.offset", "a.m")
    assert part.units == ("N m", "kg")
    np.testing.assert_array_equal(part.covariance, COVARIANCE[np.ix_([2, 0], [2, 0])])
    np.testing.assert_array_equal(part.draws, draws[:, [2, 0]])
    assert part["a.m"] == (1.0, pytest.approx(0.2))
    with pytest.raises(ResultError, match="no parameter 'd'"):
        part.index("d")


@pytest.mark.parametrize("changes", [{}, {"dof": math.inf}, {"draws": np.random.default_rng(0).normal(size=(7, 3))}])
def test_round_trip_through_a_file_loses_nothing(tmp_path, changes):
    estimate = _estimate(**changes)
    estimate.save(tmp_path / "e.json")
    again = Estimate.load(tmp_path / "e.json")
    for field in dataclasses.fields(Estimate):
        one, other = getattr(estimate, field.name), getattr(again, field.name)
        np.testing.assert_array_equal(one, other) if isinstance(one, np.ndarray) else None
        assert isinstance(one, np.ndarray) or one == other


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "not a JSON file"), ("[1]", "no JSON object"), ("{}", "not an estimate"), ('{"names": ["a"]}', "not an estimate")],
)
def test_broken_files_are_refused_by_name(tmp_path, text, words):
    path = tmp_path / "e.json"
    path.write_text(text)
    with pytest.raises(ResultError, match=words) as error:
        Estimate.load(path)
    assert str(path) in str(error.value)
    with pytest.raises(ResultError, match="cannot be read"):
        Estimate.load(tmp_path / "none.json")
    with pytest.raises(ResultError, match="cannot be read"):
        Estimate.load(tmp_path)


def test_a_result_folder_is_read_by_its_name(tmp_path):
    _estimate().save(tmp_path / "estimate.json")
    assert Estimate.load(tmp_path).names == _estimate().names


def test_a_file_cannot_name_code_outside_the_package():
    content = _estimate().to_dict() | {"predictor": {"class": "os:system", "data": {}}}
    with pytest.raises(ResultError, match="outside bayesid"):
        Estimate.from_dict(content)


def test_summary_has_a_row_per_parameter():
    table = _estimate().summary(0.9)
    assert list(table.columns) == ["estimate", "std", "lower 90%", "upper 90%", "unit", "kind"]
    assert table.loc["b.viscous", "unit"] == "N m s/rad"
    np.testing.assert_allclose(table[["lower 90%", "upper 90%"]], _estimate().interval(0.9))


def test_notebooks_show_a_table():
    text = _estimate()._repr_html_()
    assert "<table" in text
    assert "b.viscous" in text
    assert repr(_estimate()) == "Estimate(3 parameters by wls, covariance hac)"


@pytest.mark.filterwarnings("ignore")
def test_arviz_reads_the_estimate():
    data = _estimate().to_arviz(500, seed=2)
    posterior = data.posterior["parameters"]
    assert posterior.dims == ("chain", "draw", "parameter")
    assert list(posterior.coords["parameter"].values) == ["a.m", "b.viscous", "c.offset"]
    np.testing.assert_array_equal(posterior.values[0], _estimate().sample(2, 500))


@pytest.mark.parametrize(("version", "positional"), [("0.23.0", False), ("1.1.0", True)])
def test_both_interfaces_of_arviz_are_served(monkeypatch, version, positional):
    """ArviZ 0.x takes groups as keywords, 1.x one dictionary of groups."""
    calls = []
    fake = types.ModuleType("arviz")
    fake.__version__, fake.from_dict = version, lambda *args, **named: calls.append((args, named))
    monkeypatch.setitem(sys.modules, "arviz", fake)
    _estimate().to_arviz(10)
    ((args, named),) = calls
    groups = args[0] if positional else named
    assert bool(args) == positional
    assert groups["posterior"]["parameters"].shape == (1, 10, 3)
    assert named["dims"] == {"parameters": ["parameter"]}


@pytest.mark.parametrize(
    "changes",
    [{"mean": np.zeros(2)}, {"covariance": np.eye(2)}, {"units": ("kg",)}, {"kinds": ()}, {"draws": np.zeros((5, 2))}],
)
def test_parts_that_do_not_fit_are_refused(changes):
    with pytest.raises(ResultError):
        _estimate(**changes)


def test_estimates_are_immutable():
    estimate = _estimate()
    with pytest.raises(ValueError, match="read-only"):
        estimate.mean[0] = 5.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.mean = np.zeros(3)
    assert COVARIANCE.flags.writeable


def test_an_estimate_without_predictor_says_so():
    with pytest.raises(ResultError, match="predicts no effort"):
        _estimate().predict(None)


def test_joined_estimates_are_independent():
    joint = join_estimates(_estimate(), _estimate(names=("x", "y", "z"), dof=5.0))
    assert joint.names == ("a.m", "b.viscous", "c.offset", "x", "y", "z")
    np.testing.assert_array_equal(joint.covariance[:3, :3], COVARIANCE)
    assert not joint.covariance[:3, 3:].any()
    assert joint.dof == 5.0
