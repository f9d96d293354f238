"""Friction as any function of velocity, compressed once: the samples are not needed again to try another breakaway speed.

A dry friction f(qd; v) that depends on unknowns v without being linear in them is written as sum_k f(w_k; v) B_k(qd), with
knots w_k and cardinal splines B_k. The data enter through the columns B_k; v enters through the values at the knots alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesid.dynamics import stribeck_shapes
from bayesid.errors import DataError
from bayesid.regression.information import Information
from bayesid.regression.observations import Chunk, Observations

# Breakaway speeds [rad/s, m/s] that can be told apart by the knots.
SPEEDS = (0.005, 1.0)
# The interpolated shapes, whose size is one, are at most so much off at any velocity of the data.
ERROR = 1e-3
# Below this part of the smallest breakaway speed friction is a straight line through zero (tanh 0.1 = 0.1 to 4e-4).
_STRAIGHT = 0.01
_SPACING = 0.3
_MOST_KNOTS = 150
_CHECKED_VELOCITIES, _CHECKED_SPEEDS = 5000, 41


@dataclass(frozen=True, eq=False)
class VelocityBasis:
    """Cardinal cubic splines of log |qd|, odd in qd, per joint; below the first knot straight lines through zero.

    `knots` (n, K) [rad/s] increase in geometric progression. `error` is the largest interpolation error of the shapes of
    Stribeck's law, whose size is one, over breakaway speeds within `speeds` at the velocities it was checked on.
    """

    knots: np.ndarray
    speeds: tuple[float, float]
    error: float

    @classmethod
    def over(cls, runs, speeds=SPEEDS, error: float = ERROR) -> VelocityBasis:
        """The coarsest basis whose error at the velocities that friction is taken of in these runs is below `error`."""
        low, high = speeds
        if not 0 < low < high:
            raise DataError(f"breakaway speeds range from a positive number to a larger one, got {low:g} to {high:g}")
        joints = range(runs[0].dof)
        moved = [np.concatenate([np.abs(_velocities(run, j)) for run in runs]) for j in joints]
        top = np.array([max(values.max(initial=0.0), 10.0 * low) for values in moved])
        checked = [_spread(values, _CHECKED_VELOCITIES) for values in moved]
        spacing = _SPACING
        while True:
            count = int(np.ceil(np.log(top.max() / (_STRAIGHT * low)) / spacing)) + 1
            if count > _MOST_KNOTS:
                raise DataError(
                    f"breakaway speeds from {low:g} to {high:g} rad/s need more than {_MOST_KNOTS} knots to follow friction "
                    f"within {error:g} of its size: narrow their range"
                )
            basis = cls(np.geomspace(_STRAIGHT * low, top, count, axis=1), speeds, np.nan)
            found = max(basis._largest_error(j, values) for j, values in enumerate(checked))
            if found <= error:
                return cls(basis.knots, speeds, found)
            spacing *= 0.9

    def columns(self, qd, direction=None) -> np.ndarray:
        """(K, n, S) columns at velocities (n, S) [rad/s]; smooth through zero, they do not need the `direction` of slip."""
        return np.stack([self._joint(j, values) for j, values in enumerate(np.asarray(qd))], axis=1)

    def shapes(self, speeds) -> tuple[np.ndarray, np.ndarray]:
        """Coulomb and excess shape (n, K) at the knots, for breakaway speeds (n,) [rad/s]."""
        return stribeck_shapes(self.knots, np.asarray(speeds)[:, None], np)

    def _joint(self, joint, qd):
        first, size = self.knots[joint, 0], np.abs(qd)
        inside = self._splines[joint](np.log(np.clip(size, first, self.knots[joint, -1])))
        return (np.sign(qd) * np.minimum(size / first, 1.0) * inside.T).reshape(self.knots.shape[1], len(qd))

    @cached_property
    def _splines(self):
        from scipy.interpolate import CubicSpline

        return [CubicSpline(np.log(row), np.eye(len(row))) for row in self.knots]

    def _largest_error(self, joint, qd):
        columns = self._joint(joint, qd)
        worst = 0.0
        for speed in np.geomspace(*self.speeds, _CHECKED_SPEEDS):
            exact, nodal = stribeck_shapes(qd, speed, np), stribeck_shapes(self.knots[joint], speed, np)
            worst = max(worst, *(float(np.abs(n @ columns - e).max(initial=0.0)) for e, n in zip(exact, nodal)))
        return worst


def _velocities(run, joint):
    """Where friction is filtered with the effort, velocities of the fine motion over the run's span; else of moving samples."""
    if run.fine is None:
        return run.qd[run.moving[:, joint], joint]
    at = run.fine.grid.grid + run.fine.delay
    return run.fine.motion[0][joint, (at >= run.time[0]) & (at <= run.time[-1])]


def _spread(values, count):
    """At most so many of the values, evenly spread over their order."""
    return np.sort(values)[np.unique(np.linspace(0, len(values) - 1, min(count, len(values)), dtype=int))]


@dataclass(frozen=True, eq=False)
class Nodal:
    """Observations of a model with Stribeck friction, its two dry columns replaced by the values of friction at the knots.

    Columns (n, m + K, S): the m other base parameters, then the K knots of the row's own joint.
    """

    observations: Observations
    basis: VelocityBasis

    @property
    def model(self):
        return self.observations.model

    @property
    def count(self) -> int:
        return self.observations.count

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions among base parameters of the m others, and of the Coulomb (n,) and excess (n,) parameters."""
        names, joints = self.model.base.names, self.model.robot.joint_names
        dry = np.array([[names.index(f"{joint}.{name}") for joint in joints] for name in ("coulomb", "stribeck")])
        return np.setdiff1d(np.arange(len(names)), dry), *dry

    @property
    def size(self) -> int:
        return len(self.places[0]) + self.basis.knots.shape[1]

    def chunks(self) -> Iterator[Chunk]:
        runs = iter(self.observations.runs)
        run, at = next(runs), 0
        for chunk in self.observations.chunks():
            if at == len(run):
                run, at = next(runs), 0
            rows = slice(at, at + chunk.effort.shape[1])
            if run.fine is None:
                nodal = self.basis.columns(run.qd[rows].T).swapaxes(0, 1)
            else:
                nodal = run.fine.columns(self.basis.columns, run.time[rows], self.observations.filtered).transpose(2, 0, 1)
            at = rows.stop
            yield chunk._replace(columns=np.concatenate([chunk.columns[:, self.places[0]], nodal], axis=1))

    def maps(self, speeds, slopes=None) -> np.ndarray:
        """(n, m + K, b) from base parameters at breakaway speeds (n,) to the nodal ones of each joint.

        With `slopes`, Coulomb torques (n,) and excesses (n,), n more columns hold the derivative by each joint's log speed.
        """
        rest, coulomb, excess = self.places
        n, m = len(self.basis.knots), len(rest)
        out = np.zeros((n, self.size, self.model.base.dimension + n * (slopes is not None)))
        out[:, np.arange(m), rest] = 1.0
        joints, ratio = np.arange(n), self.basis.knots / np.asarray(speeds)[:, None]
        dry, bump = self.basis.shapes(speeds)
        out[joints, m:, coulomb], out[joints, m:, excess] = dry, bump
        if slopes is not None:
            size, peak = (np.asarray(values)[:, None] for values in slopes)
            out[joints, m:, joints - n] = -size * (1.0 - dry**2) * 10.0 * ratio - peak * bump * (1.0 - ratio**2)
        return out


@dataclass(frozen=True, eq=False)
class AtSpeeds:
    """Observations whose columns are linear maps (n, m + K, c), joint by joint, of nodal ones."""

    source: Nodal
    maps: np.ndarray

    @property
    def model(self):
        return self.source.model

    @property
    def runs(self):
        return self.source.observations.runs

    @property
    def gains(self):
        return self.source.observations.gains

    @property
    def size(self) -> int:
        return self.maps.shape[2]

    @property
    def count(self) -> int:
        return self.source.count

    def chunks(self) -> Iterator[Chunk]:
        for chunk in self.source.chunks():
            yield chunk._replace(columns=np.swapaxes(self.maps, 1, 2) @ chunk.columns)


def mapped(information: Information, maps) -> Information:
    """Information of columns that are linear maps (n, p, c), joint by joint, of those of another: no sample is needed."""
    n, p, c = maps.shape
    rows = np.zeros((n, max(p, c) + 1, c + 1))
    rows[:, : p + 1, :c] = information.factors[:, :, :p] @ maps
    rows[:, : p + 1, c] = information.factors[:, :, p]
    return Information(np.linalg.qr(rows, mode="r"), information.counts)
