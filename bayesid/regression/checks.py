"""Faults of runs that a fit would turn into a confident wrong answer, and what to tell a reader about a fit that is poor."""

from __future__ import annotations

import numpy as np

from bayesid.errors import DataError
from bayesid.regression.lag import delay_warnings
from bayesid.regression.nominal import nominal_warnings
from bayesid.regression.observations import Observations
from bayesid.regression.physical import min_eigenvalues

# A model whose error is above this part of a joint's torque explains less than half of its variance.
POOR_NRMSE = 0.7
# Constraints that raise a joint's residual by this factor say that data and model contradict each other.
COSTLY = 1.25


def check_runs(model, runs) -> None:
    """Raise DataError for a run that was given twice (intervals would be too narrow) or whose effort is dead."""
    for i, run in enumerate(runs):
        for j, name in enumerate(model.robot.joint_names[: run.dof]):
            effort = run.effort_measured[:, j]
            if len(effort) and np.ptp(effort) == 0.0 and run.moving[:, j].any():
                where = run.source.get("path") or "a run"
                raise DataError(
                    f"{where}: the {run.effort_kind} of joint {name} is {effort[0] + 0.0:.6g} in every sample although the "
                    "joint moves, so it was not measured: choose another channel or log"
                )
        for other in runs[:i]:
            if overlap(run.source, other.source):
                raise DataError(
                    f"{run.source.get('path')}: has the same rows as {other.source.get('path')}: data that count twice make "
                    "intervals too narrow; give each log once"
                )


def check_held_out(model, runs, gains=None) -> None:
    """Raise DataError for a run that a fit of this model cannot be judged on."""
    Observations(model, runs, gains)
    for run in runs:
        check_runs(model, [run])


def provenance(runs) -> list[dict]:
    """What `overlap` needs to know of the runs that a fit was made to."""
    keys = ("path", "sha256", "rows")
    return [{key: run.source[key] for key in keys} for run in runs if all(key in run.source for key in keys)]


def overlap(first: dict, second: dict) -> bool:
    """Whether two runs, by their provenance, hold the same rows of the same file."""
    if not first.get("sha256") or first.get("sha256") != second.get("sha256"):
        return False
    (a, b), (c, d) = first["rows"], second["rows"]
    return a <= d and c <= b


def held_out_warnings(trained_on, runs) -> list[str]:
    """A sentence for each run that the estimate was fitted to: what it says about other motions is nothing."""
    return [
        f"{run.get('path')} was used for the fit: how well it is predicted says nothing about other motions."
        for run in runs
        if any(overlap(run, other) for other in trained_on)
    ]


def poor_fit(joints, nrmse) -> list[str]:
    """A sentence on the joints whose torque the model hardly explains, from `nrmse` (runs, n) of the runs fitted; or none."""
    values = np.sqrt(np.mean(np.square(nrmse), axis=0))
    poor = [f"{joint} ({value:.0%})" for joint, value in zip(joints, values) if not value < POOR_NRMSE]
    if not poor:
        return []
    return [
        f"The model explains less than half of the torque of {', '.join(poor)} (its error over the torque's standard "
        "deviation): check the order of joints, signs, units, the robot and the friction law."
    ]


def fit_warnings(found) -> list[str]:
    """Sentences that a reader of an `Identification` must see before the numbers; empty for a sound fit."""
    joints = found.model.robot.joint_names
    words = poor_fit(joints, [v.nrmse for v in found.training])
    rms = np.sqrt(np.mean([v.rms**2 for v in found.training], axis=0))
    otherwise = nominal_warnings(found.unconstrained, found.model, found.runs, rms)
    words += otherwise
    words += delay_warnings(found.model, found.runs)
    high = found.unconstrained.interval(0.95)[:, 1]
    nonnegative = {name for name, sign in zip(found.model.names, found.model.nonnegative) if sign}
    negative = [name for name, upper in zip(found.unconstrained.names, high) if name in nonnegative and upper < 0]
    if negative:
        words.append(
            f"Least squares finds {', '.join(negative)} negative beyond doubt, which friction and inertia cannot be: check the "
            "sign and delay of the effort, and the friction law."
        )
    if found.min_eigenvalue is not None:
        information = found.fit.information
        squares = [information.squared_residuals(b.mean) for b in (found.base, found.unconstrained)]
        cost = np.sqrt(squares[0] / np.maximum(squares[1], 1e-300))
        floor = 1e-3 * np.sqrt(np.mean([v.measured.var(axis=0) for v in found.training], axis=0) * information.counts)
        costly = [
            f"{joint} ({ratio:.1f} times)"
            for joint, ratio, size, low in zip(joints, cost, np.sqrt(squares[0]), floor)
            if ratio > COSTLY and size > low
        ]
        if costly:
            words.append(
                f"Physical consistency and the bounds given raise the residual of {', '.join(costly)}: the data contradict "
                "them; check units and signs of the effort, drive gains, bounds and the robot."
            )
        # Nominal values that the data contradict are no cure.
        words += [] if otherwise else _undetermined_masses(found)
    return words


def _undetermined_masses(found) -> list[str]:
    """A sentence on links that the fit leaves on the bound of their pseudo-inertia though nominal values could place them."""
    bound = [name.removesuffix(": pseudo-inertia") for name in found.active if name.endswith(": pseudo-inertia")]
    if found.pull or not bound or min_eigenvalues(found.model, found.model.nominal).min() <= 0:
        return []
    return [
        f"Torques do not tell the masses of these links apart: {', '.join(bound)}; --pull 1 takes what they leave open from "
        "the robot's nominal values, which an identified.urdf for simulation wants."
    ]
