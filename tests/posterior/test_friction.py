import numpy as np
import pytest

from bayesid.dynamics import stribeck_law
from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.posterior import candidates, compare_friction, ladder
from bayesid.robots import load_robot

LAWS = ("viscous", "coulomb-offset", "asymmetric")


def parameters(model, **values):
    out = model.nominal.copy()
    for index, name in enumerate(model.names):
        key = name.rsplit(".", 1)[1]
        if key in values:
            out[index] = values[key]
    return out


def test_the_law_that_made_the_data_wins_where_laws_differ(simulate):
    robot = load_robot("two_link")
    model = Model(robot, "asymmetric")
    true = parameters(
        model, viscous_forward=4.0, viscous_backward=1.0, coulomb_forward=3.0, coulomb_backward=2.0, rotor_inertia=0.3
    )
    found = compare_friction(robot, simulate(model, true, samples=1500, seed=1), laws=candidates(LAWS), blocks=6)
    assert found.best == ("asymmetric", "asymmetric")
    assert found.chosen == "asymmetric"
    behind = found.difference[found.names.index("viscous")] / found.error[found.names.index("viscous")]
    assert np.all(behind < -2)


def test_the_simplest_law_is_chosen_where_more_terms_do_not_help(simulate):
    robot = load_robot("two_link")
    model = Model(robot, "coulomb")
    true = parameters(model, viscous=2.0, coulomb=3.0, rotor_inertia=0.3)
    run = simulate(model, true, samples=1500, seed=2)
    found = compare_friction(robot, run, laws=candidates(("coulomb", "coulomb-offset", "asymmetric")), blocks=6)
    assert found.chosen == "coulomb"
    head, rows = found.table()
    assert head == ["friction law", "joint1", "joint2"]
    assert len(rows) == 3


def test_friction_that_grows_with_load_is_seen(simulate):
    robot = load_robot("two_link")
    model = Model(robot)
    true = parameters(model, viscous=2.0, coulomb=3.0, rotor_inertia=0.3)
    run = simulate(model, true, samples=1500, seed=3)
    rigid = parameters(model)
    load = 0.1 * np.abs(model.torque(rigid, run.q, run.qd, run.qdd)) * np.sign(run.qd)
    loaded = run.replace(effort=run.effort + load, effort_measured=run.effort + load)
    found = compare_friction(robot, loaded, laws=candidates(("coulomb-offset", "load")), blocks=6)
    assert found.chosen == "load"


def test_friction_that_falls_with_temperature_is_seen_where_all_runs_hold_it(simulate):
    robot = load_robot("two_link")
    model = Model(robot)
    true = parameters(model, viscous=2.0, coulomb=3.0, rotor_inertia=0.3)
    run = simulate(model, true, samples=1500, seed=4)
    warming = 30.0 + 10.0 * np.sin(run.time / 2.0)[:, None] * [1.0, 1.0]
    change = -0.04 * (warming - 25.0) * run.qd
    warm = run.replace(effort=run.effort + change, effort_measured=run.effort + change, temperature=warming)
    assert ladder([warm]) == (*ladder([warm, run]), "temperature")
    found = compare_friction(robot, warm, laws=candidates(("coulomb-offset", "temperature")), blocks=6)
    assert found.chosen == "temperature"
    assert ladder([warm.replace(temperature=np.where(run.q > run.q.max() - 0.1, np.nan, warming))]) == ladder([run])


def test_breakaway_speeds_are_fitted_where_stribeck_friction_made_the_data(simulate):
    robot, speeds = load_robot("two_link"), np.array([0.12, 0.05])
    model = Model(robot, stribeck_law(speeds))
    true = parameters(model, viscous=2.0, coulomb=3.0, stribeck=2.0, rotor_inertia=0.3)
    run = simulate(model, true, samples=1500, seed=5, amplitude=0.5)
    found = compare_friction(robot, run, laws=candidates(("coulomb-offset", "stribeck")), blocks=6)
    assert found.chosen == "stribeck"
    np.testing.assert_allclose(found.breakaway_speeds(), speeds, rtol=0.1)
    assert np.isnan(found.speeds[found.names.index("coulomb-offset")]).all()


def test_too_few_blocks_are_refused(arm, run):
    with pytest.raises(DataError, match="three blocks"):
        compare_friction(arm.robot, run, blocks=2)
