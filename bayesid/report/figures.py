"""Figures of an identification: torque with its band, residuals and their autocorrelation, parameters with intervals."""

from __future__ import annotations

import numpy as np

_MEASURED, _MODEL, _BAND = "#7a7a7a", "#0b5fa5", "#9cc3e6"
_MOST_POINTS = 2000


def _figure(rows, columns, width, height):
    from matplotlib.figure import Figure

    # Margins in inches: a layout engine would draw everything three times to find them.
    figure = Figure(figsize=(width, height))
    figure.subplots_adjust(
        left=0.95 / width, right=1 - 0.1 / width, bottom=0.5 / height, top=1 - 0.6 / height, hspace=0.25, wspace=0.13
    )
    return figure.subplots(rows, columns, sharex="col", squeeze=False)


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
    axes[0, 0].legend(loc="upper right", fontsize=8, ncols=3)
    axes[-1, 0].set_xlabel("time [s]")
    axes[0, 0].figure.suptitle(title, fontsize=10)
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
    axes[0, 0].figure.suptitle(title, fontsize=10)
    return axes[0, 0].figure


def parameter_figure(estimate, level: float = 0.95, reference=None, title=""):
    """Every parameter over its standard deviation: interval around the estimate, `reference` values as crosses.

    Parameters are grouped by kind; the axis is in the parameter's unit, one panel per unit and kind.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for i, (kind, unit) in enumerate(zip(estimate.kinds, estimate.units)):
        groups.setdefault((kind, unit), []).append(i)
    interval = estimate.interval(level)
    from matplotlib.figure import Figure

    heights = [max(1, len(index)) for index in groups.values()]
    width, height = 9.0, 1.2 + 0.19 * sum(heights) + 0.55 * len(heights)
    figure = Figure(figsize=(width, height))
    labels = 0.2 + 0.05 * max((len(name) for name in estimate.names), default=0)
    figure.subplots_adjust(
        left=labels / width, right=1 - 0.15 / width, bottom=0.35 / height, top=1 - 0.65 / height, hspace=0.42
    )
    axes = figure.subplots(len(groups), 1, squeeze=False, height_ratios=[h + 1.5 for h in heights])
    for ax, ((kind, unit), index) in zip(axes[:, 0], groups.items()):
        rows = np.arange(len(index))
        ax.hlines(rows, interval[index, 0], interval[index, 1], color=_MODEL, lw=2)
        ax.plot(estimate.mean[index], rows, "o", color=_MODEL, ms=3)
        if reference is not None:
            ax.plot(np.asarray(reference)[index], rows, "x", color="#b03030", ms=4)
        ax.set_yticks(rows, [estimate.names[i] for i in index], fontsize=6)
        ax.set_ylim(len(index) - 0.5, -0.5)
        ax.axvline(0.0, color="#cccccc", lw=0.6, zorder=0)
        ax.set_title(f"{kind} [{unit}]", fontsize=8, loc="left")
        ax.tick_params(axis="x", labelsize=7)
    figure.suptitle(title, fontsize=10)
    return figure


def autocorrelation(x, lags: int) -> np.ndarray:
    """(lags + 1,) sample autocorrelation of a signal (N,), biased estimate."""
    x = np.asarray(x, dtype=float) - np.mean(x)
    size = 1 << int(2 * len(x) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(x, size)) ** 2
    moments = np.fft.irfft(spectrum, size)[: lags + 1]
    return moments / moments[0] if moments[0] > 0 else np.zeros(lags + 1)
