"""Figures of an identification: torque with its band, residuals and their autocorrelation, parameters with intervals."""

from __future__ import annotations

import re

import numpy as np

_MEASURED, _MODEL, _BAND = "#3c3c3c", "#0b5fa5", "#bcd9f0"
_NOMINAL, _TRUTH = "#c77700", "#b03030"
_MOST_POINTS = 2000
# Parameters share an axis down to this part of the largest of them.
_SPREAD = 8.0


def _figure(rows, columns, width, height):
    from matplotlib.figure import Figure

    # Margins in inches: a layout engine would draw everything three times to find them.
    figure = Figure(figsize=(width, height))
    figure.subplots_adjust(
        left=0.95 / width, right=1 - 0.1 / width, bottom=0.5 / height, top=1 - 0.6 / height, hspace=0.25, wspace=0.13
    )
    return figure.subplots(rows, columns, sharex="col", squeeze=False)


def _entitle(figure, title):
    figure.suptitle(_short(title), fontsize=10, y=1 - 0.1 / figure.get_figheight(), va="top")


def torque_figure(time, measured, prediction, joint_names, units=None, title=""):
    """Measured torque (N, n) and its prediction with the band, one panel per joint. Returns a matplotlib Figure."""
    n = measured.shape[1]
    axes = _figure(n, 1, 10, 1.0 + 1.6 * n)
    step = max(1, len(time) // _MOST_POINTS)
    at = slice(None, None, step)
    clock = (time - time[0])[at]
    for j, ax in enumerate(axes[:, 0]):
        ax.fill_between(
            clock, prediction.lower[at, j], prediction.upper[at, j], color=_BAND, lw=0, label=f"{prediction.level:.0%} band"
        )
        ax.plot(clock, measured[at, j], color=_MEASURED, lw=0.6, label="measured")
        ax.plot(clock, prediction.mean[at, j], color=_MODEL, lw=0.9, label="model")
        ax.set_ylabel(f"{joint_names[j]}\n[{units[j] if units else 'N m'}]", fontsize=8)
        ax.margins(x=0)
    axes[0, 0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=8, ncols=3, frameon=False, borderaxespad=0.1)
    axes[-1, 0].set_xlabel("time [s]")
    _entitle(axes[0, 0].figure, title)
    return axes[0, 0].figure


def residual_figure(time, residual, joint_names, lags: int = 200, title=""):
    """Residuals (N, n) over time, and their autocorrelation beside the band that white noise would leave."""
    n = residual.shape[1]
    axes = _figure(n, 2, 10, 1.0 + 1.5 * n)
    step = max(1, len(time) // _MOST_POINTS)
    lags = min(lags, len(residual) - 1)
    for j in range(n):
        axes[j, 0].plot((time - time[0])[::step], residual[::step, j], color=_MEASURED, lw=0.6)
        axes[j, 0].set_ylabel(f"{joint_names[j]}\n[N m]", fontsize=8)
        axes[j, 0].margins(x=0)
        axes[j, 1].axhspan(-1.96 / np.sqrt(len(residual)), 1.96 / np.sqrt(len(residual)), color=_BAND, lw=0)
        axes[j, 1].plot(autocorrelation(residual[:, j], lags), color=_MODEL, lw=0.9)
        axes[j, 1].set_ylim(-0.5, 1.0)
        axes[j, 1].margins(x=0)
    axes[0, 0].set_title("residual", fontsize=9)
    axes[0, 1].set_title("autocorrelation (band: white noise)", fontsize=9)
    axes[-1, 0].set_xlabel("time [s]")
    axes[-1, 1].set_xlabel("lag [samples]")
    _entitle(axes[0, 0].figure, title)
    return axes[0, 0].figure


def parameter_figure(estimate, level: float = 0.95, truth=None, title=""):
    """Every parameter's interval around its estimate, in its unit; parameters of one kind and like size share a panel.

    Diamonds mark what the robot's description states, where the estimate has its model. Crosses mark `truth` (p,), NaN where
    it is not known; by default what the estimate's meta holds of it by name, for simulated robots.
    """
    from matplotlib.figure import Figure

    interval = estimate.interval(level)
    nominal = _stated(estimate)
    if truth is None:
        known = estimate.meta.get("truth", {})
        truth = [known.get(name, np.nan) for name in estimate.names]
    truth = np.asarray(truth, dtype=float)
    reach = np.nanmax(np.abs(np.column_stack([interval, nominal, truth])), axis=1)
    panels = _panels(estimate, reach)
    # All in inches: each panel has its heading above and its ticks below.
    heights = [0.19 * len(index) + 0.1 for _, index in panels]
    width, height, between = 9.0, 0.6 + sum(heights) + 0.5 * len(panels), 0.5
    labels = 0.2 + 0.05 * max((len(name) for name in estimate.names), default=0)
    figure = Figure(figsize=(width, height))
    top = height - 0.6 + 0.25
    shown = {}
    for (heading, index), tall in zip(panels, heights):
        top -= between + tall
        ax = figure.add_axes((labels / width, top / height, 1 - (labels + 0.15) / width, tall / height))
        rows = np.arange(len(index))
        shown[f"{level:.0%} interval"] = ax.hlines(rows, interval[index, 0], interval[index, 1], color=_MODEL, lw=2)
        ax.plot(estimate.mean[index], rows, "o", color=_MODEL, ms=3)
        marks = (("stated by the robot file", nominal, "D", _NOMINAL), ("true value", truth, "x", _TRUTH))
        for label, values, marker, color in marks:
            if np.isfinite(values[index]).any():
                (shown[label],) = ax.plot(values[index], rows, marker, color=color, ms=4, mfc="none", lw=0, zorder=3)
        ax.set_yticks(rows, [estimate.names[i] for i in index], fontsize=6)
        ax.set_ylim(len(index) - 0.5, -0.5)
        ax.axvline(0.0, color="#cccccc", lw=0.6, zorder=0)
        ax.set_title(heading, fontsize=8, loc="left")
        ax.tick_params(axis="x", labelsize=7)
    figure.suptitle(title, fontsize=10, y=1 - 0.12 / height, va="top")
    if panels:
        corner = (1 - 0.1 / width, 1 - 0.32 / height)
        figure.legend(shown.values(), shown, loc="upper right", bbox_to_anchor=corner, fontsize=8, ncols=3, frameon=False)
    return figure


def _stated(estimate):
    """(p,) what the robot of the estimate's model states, NaN where nothing."""
    model = getattr(estimate.predictor, "model", None)
    return np.full(len(estimate), np.nan) if model is None else model.stated(estimate.names)


def _panels(estimate, reach):
    """Headings and indices of parameters that share an axis: one kind, quantity and unit, none much smaller than another."""
    groups: dict[tuple[str, str], list[int]] = {}
    for i, (name, kind, unit) in enumerate(zip(estimate.names, estimate.kinds, estimate.units)):
        what = f"{kind}: {name.rpartition('.')[2].replace('_', ' ')}" if kind == "friction" else kind
        groups.setdefault((what, unit), []).append(i)
    panels = []
    for (what, unit), index in groups.items():
        ordered = sorted(index, key=lambda i: -reach[i])
        while ordered:
            alike = [i for i in ordered if reach[i] * _SPREAD >= reach[ordered[0]]]
            limit = f", up to {reach[ordered[0]]:.2g}" if len(alike) < len(index) else ""
            panels.append((f"{what} [{unit}]{limit}", sorted(alike)))
            ordered = ordered[len(alike) :]
    return panels


def _short(title: str) -> str:
    """The title with a file's name in place of its path: `training: /logs/run.csv` becomes `training: run.csv`."""
    return re.sub(r"(^|: )[^:]*[/\\]", r"\1", title)


def autocorrelation(x, lags: int) -> np.ndarray:
    """(lags + 1,) sample autocorrelation of a signal (N,), biased estimate."""
    x = np.asarray(x, dtype=float) - np.mean(x)
    size = 1 << int(2 * len(x) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(x, size)) ** 2
    moments = np.fft.irfft(spectrum, size)[: lags + 1]
    return moments / moments[0] if moments[0] > 0 else np.zeros(lags + 1)
