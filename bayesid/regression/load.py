"""The load of friction that grows with it: the torque of a fit's own link and rotor parameters, by fixed-point rounds."""

from __future__ import annotations

import dataclasses

import numpy as np

from bayesid.errors import SolverError
from bayesid.models import Model

# The reference has settled when a round changes the torque without friction by less than this part of it, on every joint.
SETTLED = 1e-3
_ROUNDS = 10


def settle_load(model: Model, solve) -> tuple[Model, dict]:
    """The model with the reference of its load friction taken from its own fit, and how it settled (JSON-able).

    `solve(model)` gives a fit: its `beta` (b,) and the `information` that it was fitted to. The size of a torque hardly
    depends on the friction law it was fitted with, so that three rounds usually do. A model that needs no reference or has
    one comes back as it is, with an empty record.
    """
    if "load" not in model.friction.needs or model.reference is not None:
        return model, {}
    held = model.nominal[: model.rigid]
    for rounds in range(1, _ROUNDS + 1):
        fit, base = solve(model), model.base
        found = base.standard(fit.beta, model.nominal[base.dependent])[: model.rigid]
        torque, step = (_norms(model, fit.information, values) for values in (found, found - held))
        change = float(np.max(step / np.maximum(torque, 1e-300), where=torque > 0, initial=0.0))
        held = found
        model = dataclasses.replace(model, reference=tuple(held))
        if change < SETTLED:
            return model, {"rounds": rounds, "change": change}
    raise SolverError(
        f"the load of friction law '{model.friction.name}' does not settle (a round still changes it by {change:.1%}): use a "
        "log with richer motion, or another law"
    )


def _norms(model, information, rigid):
    """(n,) size of the torque of link and rotor parameters over the rows of an Information."""
    beta = model.base.project(np.pad(rigid, (0, model.size - model.rigid)))
    return np.linalg.norm(information.factors[:, :, :-1] @ beta, axis=1)
