"""Figures of a motion against its limits, and of its path in space."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bayesid.excitation.animation import stick_figure
from bayesid.excitation.excitation import Excitation
from bayesid.models import Model

RATE = 100.0


def motion_figure(excitation: Excitation, robot=None):
    """A Matplotlib figure: position, velocity, acceleration and nominal torque of every joint as parts of their limits.

    Where a limit is infinite the largest value stands in for it, which the axis then says.
    """
    import matplotlib.pyplot as plt

    robot = robot or excitation.robot
    time, q, qd, qdd = excitation.sampled(RATE)
    model = Model(robot, _friction(excitation))
    tau = model.torque(model.nominal, q, qd, qdd)
    limits = excitation.limits
    centre, half = 0.5 * (limits.upper + limits.lower), 0.5 * (limits.upper - limits.lower)
    inside = np.isfinite(half)
    rows = [
        ("position", q - np.where(inside, centre, 0.0), np.where(inside, half, np.inf), "rad"),
        ("velocity", qd, limits.velocity, "rad/s"),
        ("acceleration", qdd, limits.acceleration, "rad/s²"),
        ("torque", tau, limits.torque, "N m"),
    ]
    figure, axes = plt.subplots(len(rows), 1, sharex=True, figsize=(10, 9), layout="constrained")
    for axis, (what, values, limit, unit) in zip(axes, rows):
        for joint, name in enumerate(excitation.joint_names):
            bounded = np.isfinite(limit[joint])
            scale = limit[joint] if bounded else max(float(np.abs(values[:, joint]).max()), 1e-12)
            label = name if bounded else f"{name} (no limit, peak {scale:.3g} {unit})"
            axis.plot(time, values[:, joint] / scale, lw=1, label=label)
        axis.axhline(1, color="0.4", lw=0.8, ls="--")
        axis.axhline(-1, color="0.4", lw=0.8, ls="--")
        axis.set_ylabel(f"{what} / limit")
        axis.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    axes[-1].set_xlabel("time [s]")
    checked = excitation.certificate
    state = "limits not checked" if checked is None else "within all limits" if checked.feasible else "OUTSIDE its limits"
    figure.suptitle(f"{excitation.robot_name}: {excitation.family.name} motion of {excitation.period:g} s, {state}")
    return figure


def path_figure(excitation: Excitation, robot=None):
    """A Matplotlib figure: the path of the last point of the robot in the base frame, seen from two sides and above."""
    import matplotlib.pyplot as plt

    robot = robot or excitation.robot
    time, q, _, _ = excitation.sampled(RATE / 5)
    points, _ = stick_figure(robot, q)
    tip = points[:, -1]
    figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
    for axis, (a, b) in zip(axes, ((0, 2), (1, 2), (0, 1))):
        shade = axis.scatter(tip[:, a], tip[:, b], c=time, s=2)
        axis.plot(*tip[0, [a, b]], "k^", label="start")
        axis.set_xlabel(f"{'xyz'[a]} [m]")
        axis.set_ylabel(f"{'xyz'[b]} [m]")
        axis.set_aspect("equal")
    axes[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False)
    figure.colorbar(shade, ax=axes, label="time [s]")
    return figure


def write_figures(excitation: Excitation, folder, robot=None) -> list[Path]:
    """Write motion.svg and path.svg into a folder."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    written = []
    for name, make in (("motion", motion_figure), ("path", path_figure)):
        figure = make(excitation, robot)
        path = Path(folder) / f"{name}.svg"
        figure.savefig(path)
        plt.close(figure)
        written.append(path)
    return written


def _friction(excitation):
    return excitation.design.get("observation", {}).get("friction", "none")
