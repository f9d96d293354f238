"""Objectives: closed forms, gradients where eigenvalues coincide, and the limit of sharpness."""

import jax
import numpy as np
import pytest

from bayesid.errors import DesignError
from bayesid.excitation import AOptimal, ConditionNumber, DOptimal, EOptimal, ExpectedInformation, Subset
from bayesid.excitation.objectives import objective_from_settings

SIZE = 5
PRIOR = np.diag([1.0, 4.0, 0.5, 2.0, 1.0]) + 0.1
OBJECTIVES = [
    DOptimal(),
    AOptimal(),
    AOptimal(np.array([1.0, 2.0, 0.5, 1.0, 3.0])),
    EOptimal(),
    ConditionNumber(),
    ExpectedInformation(PRIOR),
    Subset((1, 3)),
]


def spd(seed, count=12):
    rows = np.random.default_rng(seed).normal(size=(count, SIZE))
    return rows.T @ rows


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
@pytest.mark.parametrize(
    "matrix", [spd(0), 3.0 * np.eye(SIZE), np.diag([1.0, 1.0, 1.0, 5.0, 5.0])], ids=["full", "equal", "pairs"]
)
def test_gradient_is_the_slope_also_where_eigenvalues_coincide(objective, matrix):
    gradient = np.asarray(jax.grad(lambda m: objective.cost(m, 3.0))(matrix))
    rng = np.random.default_rng(1)
    for _ in range(3):
        way = rng.normal(size=(SIZE, SIZE))
        way = way + way.T
        step = 1e-5
        slope = (objective.cost(matrix + step * way, 3.0) - objective.cost(matrix - step * way, 3.0)) / (2 * step)
        assert np.sum(gradient * way) == pytest.approx(float(slope), rel=2e-5, abs=1e-8)


def test_values_agree_with_closed_forms():
    matrix = spd(2)
    inverse = np.linalg.inv(matrix)
    assert DOptimal().value(matrix) == pytest.approx(np.log(np.linalg.det(matrix)))
    assert AOptimal().value(matrix) == pytest.approx(np.sqrt(np.trace(inverse)))
    assert EOptimal().value(matrix) == pytest.approx(1 / np.linalg.norm(inverse, 2))
    assert ConditionNumber().value(matrix) == pytest.approx(np.sqrt(np.linalg.cond(matrix)))
    block = inverse[np.ix_([1, 3], [1, 3])]
    assert Subset((1, 3)).value(matrix) == pytest.approx(-np.log(np.linalg.det(block)))
    gain = 0.5 * np.log(np.linalg.det(PRIOR @ matrix + np.eye(SIZE)))
    assert ExpectedInformation(PRIOR).value(matrix) == pytest.approx(gain)


def test_costs_tend_to_their_objectives_as_they_sharpen():
    matrix = spd(3)
    exact = np.log(ConditionNumber().value(matrix))
    gaps = [float(ConditionNumber().cost(matrix, p)) - exact for p in (2.0, 16.0, 128.0)]
    assert gaps[0] > gaps[1] > gaps[2] > -1e-12
    assert gaps[2] < np.log(SIZE) / 128
    assert float(EOptimal().cost(matrix, 1e4)) == pytest.approx(-np.log(EOptimal().value(matrix)), abs=1e-3)


@pytest.mark.parametrize("objective", [o for o in OBJECTIVES if not isinstance(o, ConditionNumber)], ids=lambda o: o.name)
def test_more_data_never_costs_more_but_for_the_condition_number(objective):
    matrix = spd(4)
    assert float(objective.cost(matrix + spd(5), 64.0)) < float(objective.cost(matrix, 64.0))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
def test_settings_rebuild_the_objective(objective):
    again = objective_from_settings(objective.settings())
    assert again.value(spd(6)) == objective.value(spd(6))


def test_impossible_objectives_are_refused():
    with pytest.raises(DesignError, match="not positive definite"):
        ExpectedInformation(-np.eye(2))
    with pytest.raises(DesignError, match="no parameter of interest"):
        Subset(())
    with pytest.raises(DesignError, match="unknown objective 'best'"):
        objective_from_settings({"name": "best"})
