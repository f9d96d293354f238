"""Base parameters: the combinations of standard parameters that joint torques can determine, and the map to and from them.

Numerical method of Gautier 1991 (Numerical calculation of the base inertial parameters of robots): a QR decomposition of the
observation matrix at random states; columns are visited in a fixed order, and a column that depends on those before it is
regrouped into them. The order makes the choice deterministic and the expressions the customary ones: first, link by link
from the base, Izz, Ixx, Ixy, Ixz, Iyz, mcx, mcy; then friction; then Iyy, mcz, m; rotor inertias last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.dynamics.friction import REFERENCE_TEMPERATURE
from bayesid.robots import INERTIAL_NAMES

_FIRST = ("Izz", "Ixx", "Ixy", "Ixz", "Iyz", "mcx", "mcy")
_LATER = ("Iyy", "mcz", "m")
_STATES = 300
_RANK_TOLERANCE = 1e-9
_ROUND = 1e-10


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters of a model with P standard parameters.

    `independent` (b,) and `dependent` (d,) index the standard parameters, b + d = P; `matrix` (b, P) gives
    beta = matrix @ pi = pi[independent] + grouping @ pi[dependent]. Dependent parameters with an all-zero column in
    `grouping` have no effect on any torque.
    """

    independent: np.ndarray
    dependent: np.ndarray
    grouping: np.ndarray
    standard_names: tuple[str, ...]
    standard_units: tuple[str, ...]
    standard_kinds: tuple[str, ...]

    @property
    def dimension(self) -> int:
        return len(self.independent)

    @property
    def matrix(self) -> np.ndarray:
        out = np.zeros((self.dimension, len(self.standard_names)))
        out[np.arange(self.dimension), self.independent] = 1.0
        out[:, self.dependent] = self.grouping
        return out

    @property
    def names(self) -> tuple[str, ...]:
        """(b,) name of the standard parameter that leads each combination."""
        return tuple(self.standard_names[i] for i in self.independent)

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(self.standard_units[i] for i in self.independent)

    @property
    def kinds(self) -> tuple[str, ...]:
        """(b,) `base` for a combination of several parameters, else the kind of the one parameter it is."""
        alone = ~np.any(self.grouping != 0, axis=1)
        return tuple(self.standard_kinds[i] if single else "base" for i, single in zip(self.independent, alone))

    @property
    def expressions(self) -> tuple[str, ...]:
        """(b,) each combination in words: `upper_arm_link.Izz + upper_arm.rotor_inertia + 0.3754 forearm_link.m`."""
        out = []
        for row, name in zip(self.grouping, self.names):
            terms = [
                f" {'-' if value < 0 else '+'} {abs(value):.6g} {self.standard_names[column]}"
                for value, column in zip(row, self.dependent)
                if value != 0
            ]
            out.append(name + "".join(terms).replace(" 1 ", " "))
        return tuple(out)

    def project(self, parameters) -> np.ndarray:
        """Base parameters (b,) of standard parameters (P,)."""
        parameters = np.asarray(parameters)
        return parameters[..., self.independent] + parameters[..., self.dependent] @ self.grouping.T

    def standard(self, base, dependent) -> np.ndarray:
        """Standard parameters (P,) with these base parameters (b,) and dependent ones (d,): the inverse of `project`."""
        base, dependent = np.asarray(base), np.asarray(dependent)
        out = np.empty((*base.shape[:-1], len(self.standard_names)))
        out[..., self.dependent] = dependent
        out[..., self.independent] = base - dependent @ self.grouping.T
        return out

    def unidentifiable(self) -> tuple[str, ...]:
        """One sentence per standard parameter that no torque can determine by itself."""
        out = []
        for column, index in zip(self.grouping.T, self.dependent):
            name = self.standard_names[index]
            homes = [self.names[i] for i in np.flatnonzero(column)]
            if homes:
                out.append(f"{name} acts only together with {', '.join(homes)}")
            else:
                out.append(f"{name} has no effect on any joint torque")
        for i, kind in enumerate(self.kinds):
            if kind == "base":
                partners = [self.standard_names[self.dependent[k]] for k in np.flatnonzero(self.grouping[i])]
                out.append(f"{self.names[i]} is known only as a sum with {', '.join(partners)}")
        return tuple(out)


def base_parameters(model) -> BaseParameters:
    """Base parameters of a `Model` (Gautier 1991), found at seeded random states inside the joint limits."""
    robot = model.robot
    rng = np.random.default_rng(1991)
    lower, upper = robot.limit("lower"), robot.limit("upper")
    nearest = np.clip(0.0, lower, upper)
    lower, upper = np.maximum(lower, nearest - np.pi), np.minimum(upper, nearest + np.pi)
    q = rng.uniform(lower, upper, (_STATES, robot.dof))
    qd, qdd = 2.0 * rng.normal(size=q.shape), 4.0 * rng.normal(size=q.shape)
    # Some friction shows at low speeds only: every other state is slower by up to three decades.
    qd[::2] *= 10.0 ** -rng.uniform(0.0, 3.0, qd[::2].shape)
    temperature = REFERENCE_TEMPERATURE + 10.0 * rng.normal(size=q.shape)
    rows = model.regressor(q, qd, qdd, temperature=temperature).reshape(-1, model.size)
    norms = np.linalg.norm(rows, axis=0)
    order = np.array(_visiting_order(model))
    scale = np.where(norms > _RANK_TOLERANCE * norms.max(), norms, np.inf)
    chosen = _independent_columns((rows / scale)[:, order])
    independent = np.sort(order[chosen])
    dependent = np.setdiff1d(np.arange(model.size), independent)
    grouping = np.linalg.lstsq(rows[:, independent] / norms[independent], rows[:, dependent], rcond=None)[0]
    grouping /= norms[independent, None]
    grouping[:, ~np.isfinite(scale[dependent])] = 0.0
    grouping[np.abs(grouping) < _ROUND * max(1.0, np.abs(grouping).max(initial=1.0))] = 0.0
    whole = np.round(grouping)
    grouping = np.where(np.abs(grouping - whole) < _ROUND * 10, whole, grouping)
    return BaseParameters(independent, dependent, grouping, model.names, model.units, model.kinds)


def _independent_columns(columns):
    """Indices of columns that do not depend on those before them, by modified Gram-Schmidt with one re-orthogonalisation."""
    basis = np.zeros((len(columns), 0))
    chosen = []
    for index, column in enumerate(columns.T):
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        size = np.linalg.norm(rest)
        if size > 1e-7:
            basis = np.column_stack([basis, rest / size])
            chosen.append(index)
    return np.array(chosen, dtype=int)


def _visiting_order(model):
    n, k = model.robot.dof, len(model.friction.parameters)
    links = range(n)
    first = [10 * i + INERTIAL_NAMES.index(name) for i in links for name in _FIRST]
    later = [10 * i + INERTIAL_NAMES.index(name) for i in links for name in _LATER]
    rotor = list(range(10 * n, 10 * n + (n if model.rotor else 0)))
    friction = list(range(model.size - n * k, model.size))
    return [*first, *friction, *later, *rotor]
