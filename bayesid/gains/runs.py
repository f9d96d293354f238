"""Runs without and with loads: the linear columns that every estimator of drive gains shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesid.dynamics import FrictionLaw, friction_law
from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.regression.observations import Chunk
from bayesid.robots import INERTIAL_NAMES, INERTIAL_UNITS
from bayesid.signals import Samples

# Bounds on the payload a robot carries, to catch grams given as kilograms.
_HEAVIEST = 1000.0


def gain_friction(name: str) -> FrictionLaw:
    """The friction law of that name, one that depends on velocity alone.

    `sublinear` is the default of drive gains: what Coulomb and viscous terms leave of the friction of harmonic drives would be
    taken for a part of the load.
    """
    law = friction_law(name)
    if law.needs:
        raise DataError(
            f"friction law '{name}' is not for drive gains and payloads: choose another law (drive-gains has --load-friction)"
        )
    return law


@dataclass(frozen=True)
class Load:
    """What is known of a load on the last link: mass [kg], centre of mass (3,) [m] in the last link's frame, and inertia
    (6,) [kg m^2] Ixx, Ixy, Ixz, Iyy, Iyz, Izz about the centre of mass along that frame's axes. None: to be estimated."""

    mass: float | None = None
    com: tuple[float, float, float] | None = None
    inertia: tuple[float, ...] | None = None

    def __post_init__(self):
        if self.mass is not None and not (np.isfinite(self.mass) and 0 < self.mass < _HEAVIEST):
            raise DataError(f"the payload's mass must be a positive number of kg below {_HEAVIEST:g}, got {self.mass}")
        if self.mass is None and self.com is not None:
            raise DataError("a known centre of mass needs a known mass: give both")
        if self.com is None and self.inertia is not None:
            raise DataError("a known inertia needs a known centre of mass: give both")
        for value, size, name in ((self.com, 3, "centre of mass"), (self.inertia, 6, "inertia")):
            if value is not None and (np.shape(value) != (size,) or not np.isfinite(value).all()):
                raise DataError(f"the payload's {name} needs {size} finite numbers, got {value}")

    @property
    def known(self) -> np.ndarray:
        """(10,) standard inertial parameters about the last link's origin, nan where unknown."""
        out = np.full(10, np.nan)
        if self.mass is None:
            return out
        out[0] = self.mass
        if self.com is not None:
            from bayesid.inertia import from_com

            x, y, z = self.com
            ixx, ixy, ixz, iyy, iyz, izz = self.inertia if self.inertia is not None else (0.0,) * 6
            tensor = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
            full = np.asarray(from_com(np.array(self.mass), np.array([x, y, z]), tensor))
            out[1:4] = full[1:4]
            if self.inertia is not None:
                out[4:] = full[4:]
        return out


@dataclass(frozen=True, eq=False)
class GainRuns:
    """Runs of one robot without and with loads; currents [A] are the measured channel.

    `carried` says for each run which of `loads` it carries (None: no load). `friction_of` gives each run's friction set:
    runs of one set share their friction; by default every run has its own, because friction changes with temperature and
    load from run to run and would else be taken for a change of the load. Columns (p): base parameters (b) with the friction
    of set 0, then the friction of the other sets, then, with `torques`, load friction, then ten inertial parameters per load
    about the last link's origin; for every joint, K i = columns @ coefficients.

    `torques` are joint torques (N, n) of every run without friction, of an earlier fit: with them each joint has a loss in
    its gear in proportion to their size, `<joint>.load_friction` [1], against the direction of motion.
    """

    model: Model
    runs: tuple[Samples, ...]
    carried: tuple[int | None, ...]
    loads: tuple[Load, ...]
    friction_of: tuple[int, ...] | None = None
    torques: tuple[np.ndarray, ...] | None = None
    filtered: bool = True

    def __post_init__(self):
        n = self.model.robot.dof
        if not self.runs or len(self.carried) != len(self.runs):
            raise DataError("drive gains need runs, and for each run whether it carries a load")
        if self.friction_of is None:
            object.__setattr__(self, "friction_of", tuple(range(len(self.runs))))
        for run in self.runs:
            if run.dof != n:
                raise DataError(f"a run has {run.dof} joints, robot '{self.model.robot.name}' has {n}")
            if run.effort_kind != "current":
                raise DataError("a run holds torques, not motor currents: there is no drive gain to estimate from it")
        used = sorted({c for c in self.carried if c is not None})
        if used != list(range(len(self.loads))):
            raise DataError("every load needs a run that carries it, and every loaded run a load")
        if None not in self.carried:
            raise DataError("drive gains need at least one run without a load: give --unloaded LOG")
        if not self.loads:
            raise DataError("drive gains need at least one run with a known load: give --loaded LOG and --payload-mass KG")
        prints = [run.source.get("sha256") for run in self.runs]
        windows = [(p, str(run.source.get("rows", run.source.get("window")))) for p, run in zip(prints, self.runs)]
        for index, key in enumerate(windows):
            if prints[index] and key in windows[:index] and prints[index] != "synthetic":
                name = self.runs[index].source.get("path", "a log")
                raise DataError(f"{name}: the same recording is given twice; every run must be a recording of its own")

    @property
    def count(self) -> int:
        """Number of samples over all runs."""
        return sum(len(run) for run in self.runs)

    @cached_property
    def friction(self) -> np.ndarray:
        """Positions within base.independent of the friction parameters."""
        kinds = np.array(self.model.kinds)
        return np.flatnonzero(kinds[self.model.base.independent] == "friction")

    @property
    def sets(self) -> int:
        """Number of friction sets."""
        return max(self.friction_of) + 1

    @property
    def size(self) -> int:
        """Number of columns p."""
        further = (self.sets - 1) * len(self.friction) + (0 if self.torques is None else self.model.robot.dof)
        return self.model.base.dimension + further + 10 * len(self.loads)

    @property
    def _load_friction(self) -> slice:
        last = self.size - 10 * len(self.loads)
        return slice(last - (0 if self.torques is None else self.model.robot.dof), last)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """(p,) names; the friction of a further run carries its number, `elbow.viscous@2`."""
        base = self.model.base.names
        extra = [f"{base[i]}@{s + 1}" for s in range(1, self.sets) for i in self.friction]
        loads = ["payload"] if len(self.loads) == 1 else [f"payload{k + 1}" for k in range(len(self.loads))]
        if self.torques is not None:
            extra += [f"{joint}.load_friction" for joint in self.model.robot.joint_names]
        return (*base, *extra, *(f"{load}.{name}" for load in loads for name in INERTIAL_NAMES))

    @cached_property
    def units(self) -> tuple[str, ...]:
        base = self.model.base.units
        extra = [base[i] for _ in range(1, self.sets) for i in self.friction]
        if self.torques is not None:
            extra += ["1"] * self.model.robot.dof
        return (*base, *extra, *(list(INERTIAL_UNITS) * len(self.loads)))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        extra = ["friction"] * (self.size - 10 * len(self.loads) - self.model.base.dimension)
        return (*self.model.base.kinds, *extra, *(["payload"] * (10 * len(self.loads))))

    def load_columns(self, load: int) -> slice:
        """Columns of one load."""
        first = self.size - 10 * (len(self.loads) - load)
        return slice(first, first + 10)

    @cached_property
    def known(self) -> np.ndarray:
        """(p,) values of the coefficients that are known, nan for the others."""
        out = np.full(self.size, np.nan)
        for index, load in enumerate(self.loads):
            out[self.load_columns(index)] = load.known
        return out

    def chunks(self) -> Iterator[Chunk]:
        """Columns (n, p, S), current (n, S) and weights (n, S), run by run."""
        b, friction = self.model.base.dimension, self.friction
        n = self.model.robot.dof
        columns = [*self.model.base.independent, *range(10 * (n - 1), 10 * n)]
        for index, (run, carried, own) in enumerate(zip(self.runs, self.carried, self.friction_of)):
            effort = run.effort if self.filtered else run.effort_measured
            direction = run.direction if self.filtered else run.direction_measured
            weight = run.weights * run.moving
            for rows, block in self.model.chunks_of(run, filtered=self.filtered, columns=columns):
                out = np.zeros((n, self.size, block.shape[2]))
                out[:, :b] = block[:, :b]
                if own > 0:
                    first = b + (own - 1) * len(friction)
                    out[:, first : first + len(friction)] = block[:, friction]
                    out[:, friction] = 0.0
                if self.torques is not None:
                    out[np.arange(n), np.arange(n) + self._load_friction.start] = (
                        direction[rows] * np.abs(self.torques[index][rows])
                    ).T
                if carried is not None:
                    out[:, self.load_columns(carried)] = block[:, b:]
                yield Chunk(out, effort[rows].T, weight[rows].T, rows.start == 0)

    def rigid_torques(self, coefficients) -> tuple[np.ndarray, ...]:
        """Joint torque (N, n) of every run without friction."""
        rigid = np.where(np.array(self.kinds) == "friction", 0.0, coefficients)
        parts = [[] for _ in self.runs]
        index = -1
        for chunk in self.chunks():
            index += chunk.starts_run
            parts[index].append(np.einsum("nps,p->sn", chunk.columns, rigid))
        return tuple(np.concatenate(part) for part in parts)


@dataclass(frozen=True, eq=False)
class Mapped:
    """Observations whose columns and right-hand side are linear maps, joint by joint, of another's.

    `maps` (n, p + 1, q + 1): a row [columns, effort] of joint j becomes that row @ maps[j]. The published linear forms and
    the linearised likelihood are both of this kind, so that all covariances of `bayesid.regression` serve them.
    """

    source: GainRuns
    maps: np.ndarray

    @property
    def model(self):
        return self.source.model

    @property
    def size(self) -> int:
        return self.maps.shape[2] - 1

    @property
    def count(self) -> int:
        return self.source.count

    def chunks(self) -> Iterator[Chunk]:
        for chunk in self.source.chunks():
            rows = np.concatenate([chunk.columns, chunk.effort[:, None]], axis=1)
            mapped = np.swapaxes(self.maps, 1, 2) @ rows
            yield Chunk(mapped[:, :-1], mapped[:, -1], chunk.weight, chunk.starts_run)
