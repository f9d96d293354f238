"""Priors over the standard parameters of a model: each link's pseudo-inertia, rotor inertias, friction.

All are in the linear parameters themselves, so that what is linear in the data stays linear, and all keep every draw
physically consistent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.robots import Robot

# From this many degrees of freedom on, the density of a 4x4 Wishart distribution vanishes at singular matrices.
SMALLEST_DOF = 5.0
# What is known of a joint that its description says nothing of, as parts of its torque limit.
_ROTOR_PART = 0.005
_FRICTION_PART = 0.05
_OFFSET_PART = 0.05
# A gear loses some hundredths of the torque it transmits; viscous friction changes by some hundredths per kelvin.
_LOAD_FRICTION = 0.05
_VISCOUS_PER_KELVIN = 0.03
_DEFAULT_TORQUE = 100.0
_CANDIDATES = 10


class ParameterPrior(Protocol):
    """A density of a model's P standard parameters, all of whose draws are physically consistent."""

    model: Model

    @property
    def dof(self) -> np.ndarray:
        """(n,) how many points of each body its nominal value is worth."""
        ...

    @property
    def description(self) -> dict:
        """JSON-able: `name` and what there is to know of it."""
        ...

    def with_dof(self, dof) -> ParameterPrior:
        """The same prior with other degrees of freedom (n,) of the links."""
        ...

    def sample(self, key, draws: int) -> np.ndarray:
        """(draws, P) parameters from the prior; `key` is a seed or a Generator."""
        ...

    def divergence(self, parameters) -> np.ndarray:
        """(..., n) entropic divergence of each link from its nominal, for parameters (..., P)."""
        ...

    def target(self, likelihood):
        """The posterior with this prior, as samplers and the search for conflicts take it."""
        ...


class Prior(Protocol):
    """Turns a model into the density of its parameters."""

    def of(self, model: Model) -> ParameterPrior: ...


@dataclass(frozen=True, eq=False)
class LinearPrior:
    """A prior over P parameters whose logarithm is a sum of log-determinants, logarithms and squares.

    log p = sum_i (dof_i - 5)/2 log det P_i - dof_i/2 tr(center_i^-1 P_i)            links, pseudo-inertia P_i
          + sum_k (shape_k - 1) log x_k - shape_k x_k / scale_k                       positive parameters, mean scale_k
          - sum_l x_l^2 / (2 spread_l^2)                                               offsets
          + sum_e weight_e log tr(P_i(e) shape_e)                                      bounding ellipsoids

    `centers` (n, 4, 4) and `dof` (n,); `positive`, `shape`, `scale`; `free`, `middle`, `spread`; `ellipsoids` (E, 4, 4)
    with their link `on` (E,) and `edge` (E,) exponent. `logs` are those of `free` that enter by their logarithm.
    """

    model: Model
    centers: np.ndarray
    dof: np.ndarray
    positive: np.ndarray
    shape: np.ndarray
    scale: np.ndarray
    free: np.ndarray
    middle: np.ndarray
    spread: np.ndarray
    ellipsoids: np.ndarray
    on: np.ndarray
    edge: np.ndarray
    logs: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))

    @property
    def description(self) -> dict:
        """JSON-able: the degrees of freedom of each link."""
        return {"name": "wishart", "dof": self.dof.tolist()}

    @property
    def start(self) -> np.ndarray:
        """(P,) the prior mean (of logarithms, where they count)."""
        out = np.zeros(self.model.size)
        out[: 10 * len(self.dof)] = from_pseudo(self.centers).ravel()
        out[self.positive], out[self.free] = self.scale, self.middle
        return out

    def with_dof(self, dof) -> LinearPrior:
        """The same prior with other degrees of freedom (n,) of the links."""
        return replace(self, dof=_checked_dof(dof, self.model.robot))

    def sample(self, key, draws: int) -> np.ndarray:
        """(draws, P) parameters from the prior; `key` is a seed or a Generator.

        Links by Bartlett's decomposition of the Wishart distribution; bounding ellipsoids by importance resampling from
        ten times as many.
        """
        rng = np.random.default_rng(key)
        out = np.empty((draws, self.model.size))
        for i, (center, dof) in enumerate(zip(self.centers, self.dof)):
            bounds = np.flatnonzero(self.on == i)
            links = _wishart(rng, center, dof, draws if not len(bounds) else _CANDIDATES * draws)
            for k, bound in enumerate(bounds):
                kept = draws if k == len(bounds) - 1 else len(links)
                links = _inside(rng, links, self.ellipsoids[bound], self.edge[bound], kept)
            out[:, 10 * i : 10 * i + 10] = from_pseudo(links)
        out[:, self.positive] = rng.gamma(self.shape, self.scale / self.shape, (draws, len(self.scale)))
        out[:, self.free] = self.middle + self.spread * rng.normal(size=(draws, len(self.spread)))
        out[:, self.logs] = np.exp(out[:, self.logs])
        return out

    def divergence(self, parameters) -> np.ndarray:
        """(..., n) entropic divergence tr(C^-1 P) - log det(C^-1 P) - 4 of each link from its centre (Lee, Wensing,
        Park 2020, eq. 14), for parameters (..., P)."""
        return divergence(self.centers, parameters)

    def target(self, likelihood):
        """The posterior with this prior."""
        from bayesid.posterior.target import Target

        return Target(self, likelihood)


@dataclass(frozen=True)
class Wishart:
    """Each link's pseudo-inertia follows a Wishart distribution whose mean is the nominal (CAD) value.

    `dof` (one number or one per link, above 5) reads as how many points of the body the CAD is worth: the average of
    x x^T over `dof` points drawn from the nominal mass distribution has this distribution, and a mass its relative standard
    deviation sqrt(2 / dof). Up to a constant it is the entropic regulariser of Lee, Wensing, Park 2020, so that the
    posterior's mode is a convex program. Rotor inertia and friction follow gamma distributions of shape `shape` about the
    robot's own values, or, where it states none, about a small part of the joint's torque limit; friction offsets a normal
    distribution about the nominal.
    """

    dof: float | tuple[float, ...] = 12.0
    shape: float = 3.0

    def of(self, model: Model) -> LinearPrior:
        return _about(model, model.robot.inertials, self.dof, self.shape)


@dataclass(frozen=True)
class ClassPrior:
    """For robots without CAD: bodies of plausible size, from the kinematics and the total mass alone.

    Each link is a uniform ellipsoid along the segment to its next joint, masses in proportion to the segments' lengths with
    those nearer the base heavier; `total_mass` [kg] is that of all moving links; `dof` small since little is known.
    """

    total_mass: float
    dof: float = 6.0
    shape: float = 3.0

    def of(self, model: Model) -> LinearPrior:
        return _about(model, typical_inertials(model.robot, self.total_mass), self.dof, self.shape)


@dataclass(frozen=True)
class Bounded:
    """Another prior, restricted to bodies that fit into ellipsoids (Wensing, Kim, Slotine 2017, eq. 21).

    `ellipsoids` maps a link to its centre (3,) and semi-axes (3,) [m] in the link frame: ((link, centre, semi-axes), ...).
    A body whose mass lies in the ellipsoid has tr(P Q) >= 0; the density vanishes at that edge like its `edge`-th power.
    """

    prior: Prior
    ellipsoids: tuple[tuple[str, tuple[float, float, float], tuple[float, float, float]], ...]
    edge: float = 1.0

    def of(self, model: Model) -> LinearPrior:
        prior, names = self.prior.of(model), model.robot.link_names
        shapes, on = [], []
        for link, center, axes in self.ellipsoids:
            if link not in names:
                raise DataError(f"a bounding ellipsoid names link '{link}', the robot has {', '.join(names)}")
            if min(axes) <= 0:
                raise DataError(f"the semi-axes of the ellipsoid of link '{link}' must be positive, got {axes}")
            shape = _ellipsoid(np.array(center), np.array(axes))
            at = names.index(link)
            room = np.trace(prior.centers[at] @ shape)
            if room <= 0:
                raise DataError(
                    f"the nominal body of link '{link}' does not fit into its bounding ellipsoid: enlarge the ellipsoid"
                )
            shapes.append(shape / room)
            on.append(at)
        return replace(prior, ellipsoids=np.array(shapes).reshape(-1, 4, 4), on=np.array(on), edge=np.full(len(on), self.edge))


@dataclass(frozen=True, eq=False)
class FromRobot:
    """The Wishart prior about another description of the same robot (its own CAD file)."""

    robot: Robot
    dof: float | tuple[float, ...] = 12.0
    shape: float = 3.0

    def of(self, model: Model) -> LinearPrior:
        if self.robot.dof != model.robot.dof:
            raise DataError(
                f"the prior robot '{self.robot.name}' has {self.robot.dof} joints, '{model.robot.name}' has "
                f"{model.robot.dof}: give a description of the same robot"
            )
        return _about(model, self.robot.inertials, self.dof, self.shape)


def typical_inertials(robot: Robot, total_mass: float) -> np.ndarray:
    """(n, 10) standard parameters of bodies of plausible size for a robot of which only the kinematics are known."""
    if not (np.isfinite(total_mass) and total_mass > 0):
        raise DataError(f"the total mass of a class prior must be positive, got {total_mass} kg")
    n = robot.dof
    ends = np.zeros((n, 3))
    for child in range(n):
        parent = robot.joints[child].parent
        if parent >= 0:
            ends[parent] = robot.joints[child].xyz
    reach = float(np.sum(np.linalg.norm(ends, axis=1))) or 0.5
    lengths = np.maximum(np.linalg.norm(ends, axis=1), 0.1 * reach)
    weights = lengths * np.linspace(1.0, 0.3, n)
    masses = total_mass * weights / weights.sum()
    out = np.empty((n, 4, 4))
    for i, (mass, end, length) in enumerate(zip(masses, ends, lengths)):
        direction = end / (np.linalg.norm(end) or 1.0)
        across, along = 0.2 * length, 0.6 * length
        second = (across**2 * np.eye(3) + (along**2 - across**2) * np.outer(direction, direction)) / 5.0
        center = 0.5 * end
        out[i, :3, :3] = mass * (second + np.outer(center, center))
        out[i, :3, 3] = out[i, 3, :3] = mass * center
        out[i, 3, 3] = mass
    return from_pseudo(out)


def divergence(centers, parameters) -> np.ndarray:
    """(..., n) entropic divergence tr(C^-1 P) - log det(C^-1 P) - 4 of links from `centers` (n, 4, 4), for parameters
    (..., P)."""
    links = pseudo(np.asarray(parameters)[..., : 10 * len(centers)].reshape(*np.shape(parameters)[:-1], -1, 10))
    relative = np.linalg.solve(centers, links)
    return np.trace(relative, axis1=-2, axis2=-1) - np.linalg.slogdet(relative)[1] - 4.0


def pseudo(inertials) -> np.ndarray:
    """Pseudo-inertias (..., 4, 4) of standard parameters (..., 10), with NumPy alone."""
    return np.einsum("ijk,...k->...ij", BASIS, np.asarray(inertials, dtype=float))


def from_pseudo(links) -> np.ndarray:
    """Standard parameters (..., 10) of pseudo-inertias (..., 4, 4), with NumPy alone."""
    return np.einsum("kij,...ij->...k", _DUAL, np.asarray(links, dtype=float))


def _basis():
    # Pseudo-inertia [[tr(I)/2 1 - I, mc], [mc^T, m]] is linear in m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz.
    basis = np.zeros((4, 4, 10))
    basis[3, 3, 0] = 1.0
    for axis in range(3):
        basis[axis, 3, 1 + axis] = basis[3, axis, 1 + axis] = 1.0
        for other, index in enumerate((4, 7, 9)):
            basis[axis, axis, index] = -0.5 if other == axis else 0.5
    for (row, column), index in {(0, 1): 5, (0, 2): 6, (1, 2): 8}.items():
        basis[row, column, index] = basis[column, row, index] = -1.0
    return basis


BASIS = _basis()
_DUAL = np.linalg.pinv(BASIS.reshape(16, 10)).reshape(10, 4, 4)


def _about(model, inertials, dof, shape):
    robot = model.robot
    dof = _checked_dof(dof, robot)
    if not shape > 1:
        raise DataError(f"the shape of the prior of rotor inertia and friction must be above 1, got {shape}")
    centers = pseudo(inertials)
    smallest = np.linalg.eigvalsh(centers)[:, 0]
    if not np.all(smallest > 0):
        bad = robot.link_names[int(np.argmin(smallest))]
        raise DataError(
            f"the prior's inertial parameters of link '{bad}' are those of no rigid body (smallest eigenvalue of its "
            f"pseudo-inertia {smallest.min():.3g}): project the robot first (bayesid robots show NAME --project FILE), "
            "or use a class prior (--total-mass)"
        )
    limit = robot.limit("torque")
    limit = np.where(np.isfinite(limit), limit, _DEFAULT_TORQUE)
    positive, scale, free, middle, spread = [], [], [], [], []
    for index in range(10 * robot.dof, model.size):
        part = limit[model.joints[index]]
        nominal = model.nominal[index]
        if model.nonnegative[index]:
            positive.append(index)
            default = (_ROTOR_PART if model.kinds[index] == "rotor" else _FRICTION_PART) * part
            if model.names[index].endswith(".load_friction"):
                default = _LOAD_FRICTION
            scale.append(nominal if nominal > 0 else default)
        else:
            free.append(index)
            middle.append(nominal)
            warms = model.names[index].endswith(".viscous_temperature")
            spread.append((_VISCOUS_PER_KELVIN * _FRICTION_PART if warms else _OFFSET_PART) * part)
    return LinearPrior(
        model,
        centers,
        dof,
        np.array(positive, dtype=int),
        np.full(len(positive), float(shape)),
        np.array(scale, dtype=float),
        np.array(free, dtype=int),
        np.array(middle, dtype=float),
        np.array(spread, dtype=float),
        np.zeros((0, 4, 4)),
        np.zeros(0, dtype=int),
        np.zeros(0),
    )


def _checked_dof(dof, robot):
    values = np.atleast_1d(np.asarray(dof, dtype=float))
    if values.shape == (1,):
        values = np.full(robot.dof, values[0])
    if values.shape != (robot.dof,):
        raise DataError(f"{values.size} degrees of freedom for {robot.dof} links: give one number, or one per link")
    if not np.all(np.isfinite(values)) or np.any(values <= SMALLEST_DOF):
        raise DataError(
            f"the prior's degrees of freedom must be above {SMALLEST_DOF:g} (12 is the default, larger trusts the CAD "
            f"more), got {values.min():g}"
        )
    return values


def _ellipsoid(center, axes):
    inverse = np.diag(1.0 / axes**2)
    out = np.empty((4, 4))
    out[:3, :3] = -inverse
    out[:3, 3] = out[3, :3] = inverse @ center
    out[3, 3] = 1.0 - center @ inverse @ center
    return out


def _wishart(rng, center, dof, draws):
    factor = np.linalg.cholesky(center / dof)
    lower = np.tril(rng.normal(size=(draws, 4, 4)), -1)
    at = np.arange(4)
    lower[:, at, at] = np.sqrt(rng.chisquare(dof - at, size=(draws, 4)))
    root = factor @ lower
    return root @ np.swapaxes(root, 1, 2)


def _inside(rng, candidates, shape, edge, draws):
    room = np.clip(np.einsum("ij,kji->k", shape, candidates), 0.0, None) ** edge
    if not room.any():
        raise DataError("a bounding ellipsoid leaves no room for the prior: enlarge it or raise the degrees of freedom")
    return candidates[rng.choice(len(candidates), size=draws, p=room / room.sum())]
