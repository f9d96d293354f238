"""Figures of a payload: every interval can be seen, whatever its size."""

import numpy as np

from bayesid.payload import StopRule, convergence_figure, interval_figure
from bayesid.payload.parameters import from_com, payload_estimate
from bayesid.payload.streaming import Reading

TRUTH = np.asarray(from_com([8.0, 0.26, -0.11, 0.03, 0.24, 0.01, -0.02, 0.29, 0.08, 0.3]))


def test_each_interval_fills_a_good_part_of_its_axis():
    std = np.array([2e-3] + [1e-4] * 3 + [1e-4] * 6)
    figure = interval_figure(payload_estimate(TRUTH, np.diag(std**2), method="test", covariance_method={}))
    assert len(figure.axes) == 10
    for axis in figure.axes:
        low, high = axis.get_xlim()
        bar = axis.collections[0].get_segments()[0]
        assert 0.4 < (bar[1, 0] - bar[0, 0]) / (high - low) < 0.9
    assert "8.0000 ± 0.0039" in figure.axes[0].get_title()


def test_first_readings_do_not_set_the_scale_and_the_goal_is_drawn():
    time = np.linspace(0.0, 10.0, 500)
    std = 1e-4 + 5.0 * np.exp(-5.0 * time)
    count = len(time)
    readings = Reading(
        mean=np.tile(TRUTH, (count, 1)),
        covariance=np.zeros((count, 10, 10)),
        mass=8.0 + std,
        mass_std=std,
        com=np.tile([0.26, -0.11, 0.03], (count, 1)),
        com_std=np.tile(0.01 * std[:, None], (1, 3)),
        count=np.arange(count),
        changed=np.zeros(count, dtype=bool),
    )
    figure = convergence_figure(time, readings, goal=StopRule(0.01, 0.002))
    low, high = figure.axes[0].get_ylim()
    assert low < 8.0 < high
    assert high - low < 0.3
    assert figure.axes[2].get_yscale() == "log"
    assert {line.get_label() for line in figure.axes[2].lines} >= {"goal 1", "goal 2"}
