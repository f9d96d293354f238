"""The load of friction that grows with it: the torque of a fit's own link and rotor parameters, by fixed-point rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from bayesid.errors import SolverError
from bayesid.models import Model
from bayesid.regression.information import compress
from bayesid.regression.least_squares import Fit
from bayesid.regression.observations import Chunk, Observations, Whitened

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


def load_response(fit: Fit) -> np.ndarray:
    """(b, b) by which errors of base parameters grow because the load is taken from them.

    At the fixed point of `settle_load` with the columns X(beta), the estimating equation X^T W (tau - X beta) = 0 has the
    derivative -X^T W (X + D), D that of X beta by the parameters that make the load. Errors under a load that stays are to be
    multiplied by (X^T W (X + D))^-1 X^T W X (Huber 1981, section 6.3): on the UR10e within 4 % of one, but 1.7 for a Coulomb
    torque of a joint whose load hardly varies.
    """
    observations = fit.observations
    source = observations.source if fit.method in ("gls", "robust") else observations
    beside, weights = _WithSlopes(source, fit.beta), None
    if fit.method == "gls":
        beside = Whitened(beside, observations.coefficients)
    elif fit.method == "robust":
        weights = observations.unclipped()
    factor, b = fit.factor, len(fit.beta)
    rows = compress(beside, weights).factors
    both = np.einsum("n,nki,nkj->ij", fit.weights, rows[:, :, :b], rows[:, :, b:-1], optimize=True)
    return np.linalg.solve(factor + np.linalg.solve(factor.T, both), factor)


@dataclasses.dataclass(frozen=True, eq=False)
class _WithSlopes:
    """Observations whose b columns are followed by b more: the derivative of the torque of load friction by base parameters."""

    source: Observations
    beta: np.ndarray

    def chunks(self) -> Iterator[Chunk]:
        model = self.source.model
        base, joints = model.base, model.robot.joint_names
        friction = [base.names.index(f"{joint}.load_friction") for joint in joints]
        reference = _rigid_part(model, np.array(model.reference))
        unit = base.standard(np.eye(len(self.beta)), np.zeros(len(base.dependent)))[:, : model.rigid]
        rigid = _rigid_part(model, unit).T
        each = np.arange(len(joints))
        for chunk in self.source.chunks():
            torque = np.einsum("nbs,b->ns", chunk.columns, reference)
            load = chunk.columns[each, friction]
            # The load's column is direction |torque|: its derivative by the torque is what remains when divided by it.
            part = np.divide(load, torque, out=np.zeros_like(load), where=torque != 0.0) * self.beta[friction][:, None]
            slopes = part[:, None] * np.einsum("nbs,bc->ncs", chunk.columns, rigid, optimize=True)
            yield chunk._replace(columns=np.concatenate([chunk.columns, slopes], axis=1))


def _rigid_part(model, rigid):
    """(..., b) base parameters of link and rotor parameters (..., r) without friction."""
    rigid = np.asarray(rigid)
    return model.base.project(np.concatenate([rigid, np.zeros((*rigid.shape[:-1], model.size - model.rigid))], axis=-1))


def _norms(model, information, rigid):
    """(n,) size of the torque of link and rotor parameters over the rows of an Information."""
    return np.linalg.norm(information.factors[:, :, :-1] @ _rigid_part(model, rigid), axis=1)
