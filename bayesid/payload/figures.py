"""Figures of a payload estimate."""

from __future__ import annotations

import numpy as np

from bayesid.payload.parameters import about_com
from bayesid.payload.streaming import Reading
from bayesid.results import Estimate


def interval_figure(estimate: Estimate, level: float = 0.95):
    """Mass, centre of mass and inertia about it with their intervals."""
    figure, axes = _subplots(1, 3, (9.0, 2.8))
    about = about_com(estimate)
    interval = about.interval(level)
    for axis, rows, title in zip(
        axes, (slice(0, 1), slice(1, 4), slice(4, 10)), ("mass [kg]", "centre of mass [m]", "inertia [kg m²]")
    ):
        mean, span = about.mean[rows], interval[rows]
        at = np.arange(len(mean))
        axis.errorbar(mean, at, xerr=np.stack([mean - span[:, 0], span[:, 1] - mean]), fmt="o", capsize=3, color="C0")
        axis.set_yticks(at, [name.removeprefix("payload.").removeprefix("com_") for name in about.names[rows]])
        axis.set_ylim(len(mean) - 0.5, -0.5)
        axis.set_title(title, fontsize=10)
        axis.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    return figure


def convergence_figure(time, readings: Reading, level: float = 0.95):
    """Mass and centre of mass over time [s] with their intervals, changes of load marked."""
    from bayesid.results.estimate import t_quantile

    z = t_quantile((1 + level) / 2, float("inf"))
    figure, axes = _subplots(2, 1, (7.0, 4.5))
    series = [(axes[0], np.asarray(readings.mass), np.asarray(readings.mass_std), "mass")]
    for k, name in enumerate("xyz"):
        series.append((axes[1], np.asarray(readings.com)[:, k], np.asarray(readings.com_std)[:, k], name))
    for axis, mean, std, label in series:
        known = z * std < np.maximum(0.5 * np.abs(mean[-1]), 0.02)
        shown, half = np.where(known, mean, np.nan), np.where(known, z * std, np.nan)
        (line,) = axis.plot(time, shown, label=label)
        axis.fill_between(time, shown - half, shown + half, color=line.get_color(), alpha=0.25)
    for axis in axes:
        for at in np.asarray(time)[np.asarray(readings.changed)]:
            axis.axvline(at, color="k", linestyle=":", linewidth=1)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mass [kg]")
    axes[1].set_ylabel("centre of mass [m]")
    axes[1].set_xlabel("time [s]")
    axes[1].legend(fontsize=8)
    figure.tight_layout()
    return figure


def _subplots(rows, columns, size):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=120)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)
