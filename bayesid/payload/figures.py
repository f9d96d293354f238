"""Figures of a payload estimate."""

from __future__ import annotations

import math

import numpy as np

from bayesid.payload.parameters import about_com
from bayesid.payload.streaming import Reading, StopRule
from bayesid.results import Estimate

# The first second of a motion tells little: it is left out of the axes' range.
_SETTLING = 1.0


def interval_figure(estimate: Estimate, level: float = 0.95):
    """Mass, centre of mass and inertia about it with their intervals, each parameter on the scale of its own interval."""
    figure, axes = _subplots(2, 5, (11.0, 3.4))
    about = about_com(estimate)
    for axis, name, unit, mean, (low, high) in zip(axes.flat, about.names, about.units, about.mean, about.interval(level)):
        axis.errorbar([mean], [0.0], xerr=[[mean - low], [high - mean]], fmt="o", ms=4, capsize=4, color="C0")
        axis.set_yticks([])
        axis.set_ylim(-1.0, 1.0)
        axis.set_xlim(mean + 1.6 * np.array([-1.0, 1.0]) * max(mean - low, high - mean, 1e-9 * abs(mean), 1e-12))
        axis.ticklabel_format(axis="x", useOffset=False, style="plain")
        axis.locator_params(axis="x", nbins=3)
        axis.tick_params(axis="x", labelsize=7)
        label = name.removeprefix("payload.").replace("com_I", "I").replace("com_", "centre of mass ")
        axis.set_title(f"{label} [{unit.replace('^2', '²')}]\n{_with_spread(mean, 0.5 * (high - low))}", fontsize=8)
        axis.grid(axis="x", alpha=0.3)
    figure.suptitle(f"payload with {level:.0%} intervals; inertia about the centre of mass", fontsize=10)
    figure.tight_layout()
    return figure


def convergence_figure(time, readings: Reading, level: float = 0.95, goal: StopRule | None = None):
    """Mass and centre of mass over time [s] with their intervals, and their half widths beside the goal's; noise alone.

    The axes' range is that of the readings after the first second, or after a tenth of shorter motions. Dotted lines mark
    changes of load.
    """
    from bayesid.results.estimate import t_quantile

    z = t_quantile((1 + level) / 2, float("inf"))
    time = np.asarray(time)
    figure, axes = _subplots(3, 1, (7.0, 6.5))
    mass, com = np.asarray(readings.mass), np.asarray(readings.com)
    mass_half, com_half = z * np.asarray(readings.mass_std), z * np.asarray(readings.com_std)
    settled = time - time[0] >= min(_SETTLING, 0.1 * (time[-1] - time[0]))
    labels = [f"{name} - {1000 * last:.2f} mm".replace("- -", "+ ") for name, last in zip("xyz", com[-1])]
    parts = (axes[0], mass[:, None], mass_half[:, None], ("mass",)), (axes[1], 1000 * (com - com[-1]), 1000 * com_half, labels)
    for axis, mean, half, labels in parts:
        # What is not known yet would fill the axis.
        known = half < (20.0 if axis is axes[1] else max(0.5 * abs(mass[-1]), 0.02))
        mean, half = np.where(known, mean, np.nan), np.where(known, half, np.nan)
        for k, label in enumerate(labels):
            (line,) = axis.plot(time, mean[:, k], label=label)
            axis.fill_between(time, mean[:, k] - half[:, k], mean[:, k] + half[:, k], color=line.get_color(), alpha=0.25, lw=0)
        if known[settled].any():
            axis.set_ylim(*_range(mean[settled], half[settled]))
    relative = 100.0 * mass_half / np.maximum(np.abs(mass), 1e-12)
    widest = 1000.0 * com_half.max(axis=1)
    axes[2].semilogy(time, relative, label="mass [%]", color="C3")
    axes[2].semilogy(time, widest, label="centre of mass, worst axis [mm]", color="C4")
    if goal is not None:
        for value, color in ((100.0 * goal.mass, "C3"), (1000.0 * goal.com, "C4")):
            if math.isfinite(value):
                axes[2].axhline(value, color=color, linestyle="--", linewidth=1, label=f"goal {value:g}")
    shown = np.concatenate([relative[settled], widest[settled]])
    axes[2].set_ylim(0.5 * np.min(shown), 2.0 * np.max(shown))
    if goal is not None:
        goals = [value for value in (100.0 * goal.mass, 1000.0 * goal.com) if math.isfinite(value)]
        low, high = axes[2].get_ylim()
        axes[2].set_ylim(min([low, *(0.5 * value for value in goals)]), max([high, *(2.0 * value for value in goals)]))
    for axis in axes:
        for at in time[np.asarray(readings.changed)]:
            axis.axvline(at, color="k", linestyle=":", linewidth=1)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mass [kg]")
    axes[1].set_ylabel("centre of mass [mm],\nless its last reading")
    axes[2].set_ylabel(f"{level:.0%} half width,\nsensor noise alone")
    axes[2].set_xlabel("time [s]")
    for axis in axes[1:]:
        axis.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, frameon=False, borderaxespad=0.1)
    figure.tight_layout()
    return figure


def _range(mean, half):
    """Ends of an axis that shows all bands (N, k), NaN left out, but for the hundredth part of them that reaches furthest."""
    low, high = np.nanquantile(mean - half, 0.01), np.nanquantile(mean + half, 0.99)
    margin = 0.1 * (high - low) or 1.0
    return low - margin, high + margin


def _with_spread(mean: float, half: float) -> str:
    """`8.1203 ± 0.0012`: the estimate to the second digit of its half width."""
    if not half > 0:
        return f"{mean:.6g}"
    digits = min(max(1 - math.floor(math.log10(half)), 0), 9)
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def _subplots(rows, columns, size):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=120)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)
