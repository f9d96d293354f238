"""Families of trajectories: positions linear in coefficients, so that limits on position, velocity, ... are linear too.

A family of period T maps coefficients (size, n) to q(t) = offset(t) + basis(t) @ coefficients; `start` and `end` are poses.
A new family is one frozen dataclass with `name`, `size`, `at_rest`, `basis`, `offset` and `settings`, entered in `FAMILIES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from bayesid.errors import DesignError

DERIVATIVES = 4


class Family(Protocol):
    """What the optimiser, the certificate and the exporters ask of a family."""

    name: ClassVar[str]
    at_rest: ClassVar[bool]
    period: float

    @property
    def size(self) -> int:
        """Coefficients per joint."""

    def basis(self, time, derivative: int) -> np.ndarray:
        """(S, size) a derivative (0 to 3) of the basis functions at times (S,)."""

    def offset(self, time, derivative: int, start, end) -> np.ndarray:
        """(S, n) the same derivative of the motion with all coefficients zero."""

    def settings(self) -> dict:
        """What rebuilds the family."""


@dataclass(frozen=True)
class FourierQuintic:
    """Truncated Fourier series plus a quintic that brings position, velocity and acceleration to rest at both ends.

    q(t) = sum_k a_k/(k w) sin(k w t) - b_k/(k w) cos(k w t) + sum_{j<6} c_j t^j, w = 2 pi / T (Swevers et al. 1997 for the
    series; Mamedov, Mikhel 2020 for the polynomial). Coefficients: a_1 .. a_N, b_1 .. b_N [rad/s]; the c_j follow from
    them.
    """

    period: float
    harmonics: int
    name: ClassVar[str] = "fourier-quintic"
    at_rest: ClassVar[bool] = True

    def __post_init__(self):
        _check_period(self.period)
        _check_count("harmonics", self.harmonics, 1)

    @property
    def size(self) -> int:
        return 2 * self.harmonics

    @property
    def bandwidth(self) -> float:
        """Highest frequency of the series [Hz]."""
        return self.harmonics / self.period

    @cached_property
    def _quintic(self) -> np.ndarray:
        ends = [_series(np.array([0.0, self.period]), self.period, self.harmonics, k) for k in range(3)]
        return _quintic_through(self.period, -np.concatenate(ends))

    def basis(self, time, derivative=0):
        time = np.asarray(time, dtype=float)
        series = _series(time, self.period, self.harmonics, derivative)
        return series + _powers(time, self.period, derivative) @ self._quintic

    def offset(self, time, derivative, start, end):
        return _minimum_jerk(time, self.period, derivative, start, end)

    def polynomial(self, coefficients, start, end) -> np.ndarray:
        """(6, n) the c_j of the docstring's law [rad/s^j]."""
        scale = self.period ** -np.arange(6.0)[:, None]
        step = np.outer([0, 0, 0, 10.0, -15.0, 6.0], np.subtract(end, start))
        step[0] += start
        return scale * (self._quintic @ coefficients + step)

    def settings(self):
        return {"name": self.name, "period": self.period, "harmonics": self.harmonics}


@dataclass(frozen=True)
class Fourier:
    """Periodic truncated Fourier series through the start pose at t = 0 (Swevers et al. 1997): moving at both ends.

    q(t) = start + sum_k a_k/(k w) sin(k w t) + b_k/(k w) (1 - cos(k w t)); coefficients as in `FourierQuintic`.
    """

    period: float
    harmonics: int
    name: ClassVar[str] = "fourier"
    at_rest: ClassVar[bool] = False

    def __post_init__(self):
        _check_period(self.period)
        _check_count("harmonics", self.harmonics, 1)

    @property
    def size(self) -> int:
        return 2 * self.harmonics

    @property
    def bandwidth(self) -> float:
        return self.harmonics / self.period

    def basis(self, time, derivative=0):
        series = _series(np.asarray(time, dtype=float), self.period, self.harmonics, derivative)
        if derivative == 0:
            series = series - _series(np.zeros(1), self.period, self.harmonics, 0)
        return series

    def offset(self, time, derivative, start, end):
        if not np.array_equal(start, end):
            raise DesignError("a periodic Fourier motion ends where it starts: leave the end pose out or use fourier-quintic")
        return np.tile(np.asarray(start, dtype=float) * (derivative == 0), (len(time), 1))

    def settings(self):
        return {"name": self.name, "period": self.period, "harmonics": self.harmonics}


@dataclass(frozen=True)
class QuinticSpline:
    """Quintic pieces of equal length through waypoints, at rest at both ends; C2 at the waypoints.

    Coefficients: at each of the `pieces` - 1 inner waypoints position, velocity times T_piece, acceleration times
    T_piece^2, all [rad], relative to the straight motion from start to end.
    """

    period: float
    pieces: int
    name: ClassVar[str] = "quintic-spline"
    at_rest: ClassVar[bool] = True

    def __post_init__(self):
        _check_period(self.period)
        _check_count("pieces", self.pieces, 2)

    @property
    def size(self) -> int:
        return 3 * (self.pieces - 1)

    @property
    def bandwidth(self) -> float:
        """About the frequency of waypoints that alternate [Hz]."""
        return self.pieces / (2.0 * self.period)

    def basis(self, time, derivative=0):
        time = np.asarray(time, dtype=float)
        length = self.period / self.pieces
        piece = np.clip((time / length).astype(int), 0, self.pieces - 1)
        hermite = _powers(time - piece * length, length, derivative) @ _quintic_through(1.0, np.eye(6))
        out = np.zeros((len(time), self.pieces + 1, 3))
        rows = np.arange(len(time))
        for k in range(3):
            out[rows, piece, k] += hermite[:, 2 * k]
            out[rows, piece + 1, k] += hermite[:, 2 * k + 1]
        return out[:, 1:-1].reshape(len(time), self.size)

    def offset(self, time, derivative, start, end):
        return _minimum_jerk(time, self.period, derivative, start, end)

    def settings(self):
        return {"name": self.name, "period": self.period, "pieces": self.pieces}


FAMILIES = {family.name: family for family in (FourierQuintic, Fourier, QuinticSpline)}


def family_from_settings(settings: dict) -> Family:
    """The family that `settings()` described. Raises DesignError for anything else."""
    values = dict(settings)
    name = values.pop("name", None)
    if name not in FAMILIES:
        raise DesignError(f"unknown trajectory family {name!r}: choose one of {', '.join(FAMILIES)}")
    try:
        return FAMILIES[name](**values)
    except TypeError as error:
        raise DesignError(f"settings of the trajectory family '{name}' do not fit: {error}") from None


def _series(time, period, harmonics, derivative):
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    phase = np.outer(time, w) + derivative * np.pi / 2.0
    size = w ** (derivative - 1.0)
    return np.concatenate([np.sin(phase) * size, -np.cos(phase) * size], axis=1)


def _powers(time, period, derivative):
    """(S, 6) a derivative of (t / period)^j."""
    s = np.asarray(time, dtype=float) / period
    out = np.zeros((len(s), 6))
    for j in range(derivative, 6):
        factor = np.prod(np.arange(j - derivative + 1, j + 1.0))
        out[:, j] = factor * s ** (j - derivative) / period**derivative
    return out


def _quintic_through(period, ends):
    """(6, columns) coefficients of (t / period)^j; `ends` (6, columns) are q(0), q(T), qd(0), qd(T), qdd(0), qdd(T)."""
    matrix = np.concatenate([_powers(np.array([0.0, period]), period, k) for k in range(3)])
    return np.linalg.solve(matrix, ends)


def _minimum_jerk(time, period, derivative, start, end):
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    step = _powers(time, period, derivative) @ np.array([0, 0, 0, 10.0, -15.0, 6.0])
    return (start if derivative == 0 else 0.0) + np.outer(step, end - start)


def _check_period(period):
    if not (np.isfinite(period) and period > 0):
        raise DesignError(f"the period must be a positive number of seconds, got {period}")


def _check_count(what, value, least):
    if int(value) != value or value < least:
        raise DesignError(f"{what} must be a whole number of at least {least}, got {value}")
