"""Figures of drive gains: currents with their band, gains with intervals, and what the load adds to each joint."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bayesid.gains.runs import GainRuns
from bayesid.results import Estimate
from bayesid.results.estimate import Prediction, t_quantile

_BLUE, _GREY = "#0b5fa5", "#7a7a7a"


def predicted_current(runs: GainRuns, estimate: Estimate, level: float = 0.95) -> list[Prediction]:
    """Current (N, n) [A] of every run with a band that holds one new measurement at `level`."""
    n = runs.model.robot.dof
    gains, coefficients = estimate.mean[:n], estimate.mean[n:]
    noise = np.asarray(estimate.meta["current_noise"])
    values, vectors = np.linalg.eigh(estimate.covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    parts = [[] for _ in runs.runs]
    index = -1
    for chunk in runs.chunks():
        index += chunk.starts_run
        fitted = np.einsum("nps,p->ns", chunk.columns, coefficients) / gains[:, None]
        spread = np.empty_like(fitted)
        for j in range(n):
            rows = chunk.columns[j].T @ root[n:] / gains[j] - np.outer(fitted[j] / gains[j], root[j])
            spread[j] = np.sum(rows**2, axis=1)
        parts[index].append((fitted.T, np.sqrt(spread + noise[:, None] ** 2).T))
    out = []
    for part in parts:
        mean, std = (np.concatenate(rows) for rows in zip(*part, strict=True))
        half = t_quantile((1 + level) / 2, estimate.dof) * std
        out.append(Prediction(mean, std, mean - half, mean + half, level))
    return out


def current_figures(runs: GainRuns, estimate: Estimate) -> list:
    """One matplotlib Figure per run: measured current and model with its 95 % band."""
    from bayesid.report import torque_figure

    joints = runs.model.robot.joint_names
    out = []
    for run, carried, prediction in zip(runs.runs, runs.carried, predicted_current(runs, estimate)):
        title = f"{Path(run.source.get('path', 'run')).name}: {'without load' if carried is None else 'with load'}"
        out.append(torque_figure(run.time, run.effort, prediction, joints, ["A"] * len(joints), title))
    return out


def gain_figure(estimates: dict[str, Estimate], joint_names, constants: Estimate | None = None):
    """Gains of each method with 95 % intervals, one panel per joint. Returns a matplotlib Figure.

    A `?` and an open circle mark gains that the data do not determine; thin lines are the intervals of motor `constants`.
    """
    from matplotlib.figure import Figure

    n = len(joint_names)
    figure = Figure(figsize=(1.0 + 1.7 * n, 3.4), layout="constrained")
    axes = figure.subplots(1, n, squeeze=False)[0]
    names = list(estimates)
    for j, ax in enumerate(axes):
        ticks = []
        for at, estimate in enumerate(estimates.values()):
            low, high = estimate.interval(0.95)[j]
            doubtful = joint_names[j] in estimate.meta.get("undetermined", {})
            ax.plot([at, at], [low, high], color=_BLUE, lw=2, alpha=0.4 if doubtful else 1.0)
            ax.plot([at], [estimate.mean[j]], "o", color=_BLUE, ms=5, mfc="white" if doubtful else _BLUE)
            ticks.append(f"{names[at]} ?" if doubtful else names[at])
        if constants is not None:
            low, high = constants.interval(0.95)[j]
            ax.plot([len(names)] * 2, [low, high], color=_GREY, lw=0.8, marker="_", ms=6)
            ticks.append("motor")
        ax.set_xticks(range(len(ticks)), ticks, fontsize=7)
        ax.set_xlim(-0.6, len(ticks) - 0.4)
        ax.set_title(joint_names[j], fontsize=8)
        ax.grid(axis="y", color="#dddddd", lw=0.5)
    axes[0].set_ylabel("drive gain [N m/A], 95 % interval", fontsize=8)
    words = ["?: the data do not determine this gain"] if any(e.meta.get("undetermined") for e in estimates.values()) else []
    words += ["motor: the motor's constant, which a datasheet states"] if constants is not None else []
    if words:
        figure.supxlabel("; ".join(words), fontsize=8)
    return figure


def load_figure(runs: GainRuns, estimate: Estimate):
    """What each load adds: loaded current minus the unloaded model, as torque, against the load's own torque.

    Panels per joint of the first loaded run. Returns a matplotlib Figure.
    """
    from matplotlib.figure import Figure

    n = runs.model.robot.dof
    gains, coefficients = estimate.mean[:n], estimate.mean[n:]
    first = next(i for i, carried in enumerate(runs.carried) if carried is not None)
    own = runs.load_columns(runs.carried[first])
    load_only = np.zeros_like(coefficients)
    load_only[own] = coefficients[own]
    index, load, rest = -1, [], []
    for chunk in runs.chunks():
        index += chunk.starts_run
        if index == first:
            load.append(np.einsum("nps,p->sn", chunk.columns, load_only))
            rest.append(np.einsum("nps,p->sn", chunk.columns, coefficients - load_only))
    load, rest = np.concatenate(load), np.concatenate(rest)
    added = runs.runs[first].effort * gains - rest
    figure = Figure(figsize=(10, 1.0 + 1.5 * n), layout="constrained")
    clock = runs.runs[first].time - runs.runs[first].time[0]
    step = max(1, len(clock) // 2000)
    axes = figure.subplots(n, 1, sharex=True, squeeze=False)[:, 0]
    for j, ax in enumerate(axes):
        ax.plot(clock[::step], added[::step, j], color=_GREY, lw=0.6, label="loaded minus unloaded model")
        ax.plot(clock[::step], load[::step, j], color=_BLUE, lw=0.9, label="load")
        ax.set_ylabel(f"{runs.model.robot.joint_names[j]}\n[N m]", fontsize=8)
        ax.margins(x=0)
    axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=8, ncols=2, frameon=False)
    axes[-1].set_xlabel("time [s]")
    return figure
