"""What a drive gain says of the motor's constant: the gear between them loses torque, and no current tells how it does so."""

from __future__ import annotations

import numpy as np

from bayesid.errors import DataError
from bayesid.gains.estimate import estimate_gains
from bayesid.gains.gains import Gains
from bayesid.gains.runs import GainRuns
from bayesid.gains.solving import with_load_friction
from bayesid.results import Estimate


def motor_constants(estimate: Estimate, runs: GainRuns, prior: Gains | None = None) -> Estimate:
    """`<joint>.motor_constant` (n,) [N m/A]: what a datasheet or a controller states, from drive gains estimated by currents.

    A gear that transmits a torque tau takes (1 + d) tau from the motor when it drives and (1 - b) tau when it is driven back,
    with losses d, b >= 0. Currents tell their mean (d + b) / 2, the load friction. Half their difference, (d - b) / 2,
    scales every torque alike: no current can tell it from the gain, which is the motor's constant times 1 / (1 + (d - b) / 2).
    It lies within plus and minus the load friction, and is taken as uniform there. The drive gain itself, which turns
    currents into torques beyond the gear, is free of this doubt. `meta["load_friction"]` (n,) is the mean loss.

    Raises DataError for an estimate whose gains are not those of `runs`.
    """
    joints = runs.model.robot.joint_names
    names = [f"{joint}.drive_gain" for joint in joints]
    if not set(names) <= set(estimate.names):
        raise DataError(f"an estimate by '{estimate.method}' holds no drive gains of robot '{runs.model.robot.name}'")
    if runs.torques is None:
        lossy = estimate_gains(with_load_friction(runs, prior, rounds=1), "ml", prior=prior)
    else:
        lossy = estimate
    loss = lossy.select([f"{joint}.load_friction" for joint in joints])
    squares = np.maximum(loss.mean, 0.0) ** 2 + loss.std**2
    gains = estimate.select(names)
    return Estimate(
        names=tuple(f"{joint}.motor_constant" for joint in joints),
        units=gains.units,
        kinds=("gain",) * len(joints),
        mean=gains.mean,
        covariance=gains.covariance + np.diag(gains.mean**2 * squares / 3.0),
        method=f"{estimate.method}, motor constants",
        covariance_method=estimate.covariance_method,
        dof=estimate.dof,
        meta={"load_friction": loss.mean.tolist(), "load_friction_std": loss.std.tolist()},
    )
