"""Identified against nominal bodies: does gravity load the joints as the robot's own description says?"""

from __future__ import annotations

import numpy as np

# Logs of UR10, UR10e and TX40 lie between 0.86 and 1.15 with any published drive gains, with a load or without; taken for
# those of the robots next in size, UR16e and UR30, the logs of UR robots lie above 1.43 or below 0.66.
OFF = 1.35
# Part of the nominal gravity torque's norm that a load on the flange must not explain: below it, a load could be the reason.
_OWN = 0.03
_POSES = 1000


def gravity_scale(estimate, model, runs, rms) -> tuple[float, float]:
    """How many times the nominal gravity torque the identified one is over the poses of `runs`, and its standard error.

    The slope of g = s g_nominal + g_load by least squares over all joints, each divided by its residual `rms` (n,), where
    g_load is that of any body on the last links: so a load on the flange does not count. `estimate` is one of base
    parameters. NaN where the robot states no masses, or where a load could make up all of its gravity torque.
    """
    robot, base = model.robot, model.base
    every = -(-sum(len(run) for run in runs) // _POSES)
    q = np.concatenate([run.q[::every] for run in runs])
    still = np.zeros_like(q)
    weight = 1.0 / np.maximum(rms, 1e-12)
    rows = np.concatenate(
        [
            np.moveaxis(block * weight[:, None, None], 2, 0).reshape(-1, model.size)
            for _, block in model.chunks(q, still, still, temperature=still)
        ]
    )
    rows[:, np.array(model.kinds) == "friction"] = 0.0
    nominal = rows @ model.nominal
    leaves = np.setdiff1d(np.arange(robot.dof), robot.parents)
    load = rows[:, (10 * leaves[:, None] + np.arange(4)).ravel()]
    own = nominal - load @ np.linalg.lstsq(load, nominal, rcond=1e-9)[0]
    if not np.linalg.norm(own) > _OWN * np.linalg.norm(nominal):
        return np.nan, np.nan
    slope = own @ rows[:, base.independent] / (own @ own)
    return float(slope @ estimate.mean), float(np.sqrt(max(slope @ estimate.covariance @ slope, 0.0)))


def nominal_warnings(estimate, model, runs, rms) -> list[str]:
    """A sentence when gravity loads the robot in `runs` clearly otherwise than its description says; or none."""
    scale, error = gravity_scale(estimate, model, runs, rms)
    if not (scale - 2.0 * error > OFF or scale + 2.0 * error < 1.0 / OFF):
        return []
    return [
        f"The torques with which gravity loads the joints in the logs are about {scale:.2g} times those of the nominal "
        f"parameters of robot '{model.robot.name}', which a load on its flange does not explain: check the robot (--robot), "
        "--drive-gains and the unit of effort."
    ]
