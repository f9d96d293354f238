"""The two coefficients that robot descriptions know of friction, for any law."""

from __future__ import annotations

import numpy as np

_ROWS = 4000


def viscous_and_coulomb(model, parameters, runs) -> np.ndarray:
    """(n, 2) viscous and Coulomb friction, none negative, nearest to the law's torque without offset while joints of `runs`
    move. Exact for laws of these two and an offset; `parameters` are the P standard ones."""
    from scipy.optimize import nnls

    opposes = [kind == "friction" and not name.endswith(".offset") for name, kind in zip(model.names, model.kinds)]
    values = np.where(opposes, np.asarray(parameters) - model.origin, 0.0)
    every = -(-sum(len(run) for run in runs) // _ROWS)
    shapes, torques = [], []
    for run in (run.select(slice(None, None, every)) for run in runs):
        direction = np.sign(run.qd)
        for rows, block in model.chunks(run.q, run.qd, run.qdd, direction, temperature=run.temperature):
            moving = run.moving[rows]
            shapes.append(np.stack([run.qd[rows] * moving, direction[rows] * moving], axis=2))
            torques.append(np.tensordot(values, block, axes=(0, 1)).T * moving)
    shapes, torques = np.concatenate(shapes), np.concatenate(torques)
    return np.array([nnls(shapes[:, j], torques[:, j])[0] for j in range(model.robot.dof)])
