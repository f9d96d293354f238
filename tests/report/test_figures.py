"""Figures of results: nothing covers the data, nothing shrinks to a dot, and what is known is marked."""

import numpy as np
import pytest

from bayesid.models import Model
from bayesid.regression.predict import base_names
from bayesid.report import parameter_figure, torque_figure
from bayesid.results import Estimate, Prediction
from bayesid.robots import load_robot

SIZES = np.array([20.0, 4.0, 0.05, 0.01])


class Known:
    """A predictor that holds a model and no more."""

    def __init__(self, model):
        self.model = model


def estimate_of(names, mean, **others):
    k = len(names)
    spread = np.diag((0.1 * np.asarray(mean)) ** 2)
    return Estimate(names, ("kg m^2",) * k, ("link",) * k, mean, spread, "test", **others)


@pytest.fixture(scope="module")
def model():
    return Model(load_robot("two_link"), "coulomb")


def test_no_parameter_is_small_beside_the_others_of_its_panel():
    figure = parameter_figure(estimate_of(("a.Ixx", "b.Ixx", "c.Ixx", "d.Ixx"), SIZES))
    assert [[t.get_text() for t in ax.get_yticklabels()] for ax in figure.axes] == [["a.Ixx", "b.Ixx"], ["c.Ixx", "d.Ixx"]]
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["link [kg m^2], up to 24", "link [kg m^2], up to 0.06"]
    boxes = [ax.get_position() for ax in figure.axes]
    assert boxes[0].y0 > boxes[1].y1
    assert boxes[1].y0 > 0


def test_true_and_stated_values_are_marked_where_they_are_known(model):
    names = model.names
    truth = dict.fromkeys(names[:3], 1.0)
    estimate = Estimate(
        names,
        model.units,
        model.kinds,
        model.nominal + 0.1,
        0.01 * np.eye(len(names)),
        "test",
        predictor=Known(model),
        meta={"truth": truth},
    )
    drawn = {"D": 0, "x": 0}
    for line in (line for ax in parameter_figure(estimate).axes for line in ax.lines):
        if line.get_marker() in drawn:
            drawn[line.get_marker()] += int(np.isfinite(line.get_xdata()).sum())
    assert drawn == {"D": int(np.isfinite(model.stated(names)).sum()), "x": 3}


def test_stated_values_are_the_robots_own_and_absent_where_it_states_none(model):
    stated = model.stated(model.names)
    assert np.array_equal(stated[:20], model.nominal[:20])
    assert np.isnan(stated[model.nominal == 0][-1])
    assert np.isnan(model.stated(("someone.else",))).all()
    names = base_names(model)
    nominal = model.base.project(model.nominal)
    for name, kind, value, own in zip(names, model.base.kinds, model.stated(names), nominal):
        assert np.isnan(value) or value == pytest.approx(own), (name, kind)
    assert np.isfinite(model.stated(names)).any()


def test_legend_lies_above_the_axes_and_the_title_names_the_file_alone():
    rng = np.random.default_rng(1)
    time, torque = np.arange(50) * 0.1, rng.normal(size=(50, 2))
    band = Prediction(torque, np.ones_like(torque), torque - 1, torque + 1, 0.95)
    figure = torque_figure(time, torque, band, ("a", "b"), title="held out: /data/my logs/run.csv")
    figure.canvas.draw()
    assert figure.get_suptitle() == "held out: run.csv"
    assert figure.axes[0].get_legend().get_window_extent().y0 >= figure.axes[0].get_window_extent().y1
    relative = torque_figure(time, torque, band, ("a", "b"), title="logs/run.csv")
    assert relative.get_suptitle() == "run.csv"
