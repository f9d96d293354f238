"""Strategies that turn recorded position (and velocity) into q, qd and qdd: interchangeable frozen objects.

Each has `derive(grid, position, velocity, cutoff) -> Motion`; position and velocity (N, n, or None) are as recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import SignalError
from bayesid.signals.filtering import Grid, low_pass


@dataclass(frozen=True, eq=False)
class Motion:
    """q, qd, qdd (N, n) at the recorded stamps; `std` (3, N, n) their standard deviations, where known."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    std: np.ndarray | None
    record: dict


@dataclass(frozen=True)
class PositionDifferences:
    """Low-passed position; qd and qdd are its central differences. Needs no recorded velocity."""

    def derive(self, grid: Grid, position, velocity, cutoff: float) -> Motion:
        q = low_pass(grid.smooth(position), grid.rate, cutoff)
        qd = central_difference(q, 1 / grid.rate)
        qdd = second_difference(q, 1 / grid.rate)
        record = {"name": "differentiate", "of": "position", "by": "central differences"}
        return Motion(grid.back(q), grid.back(qd), grid.back(qdd), None, record)


@dataclass(frozen=True)
class MeasuredVelocity:
    """Low-passed position and velocity; qdd is the velocity's central difference: one differentiation, not two."""

    def derive(self, grid: Grid, position, velocity, cutoff: float) -> Motion:
        if velocity is None:
            raise SignalError("no velocity was recorded: differentiate the position instead")
        q = low_pass(grid.smooth(position), grid.rate, cutoff)
        qd = low_pass(grid.smooth(velocity), grid.rate, cutoff)
        qdd = central_difference(qd, 1 / grid.rate)
        record = {"name": "differentiate", "of": "velocity", "by": "central differences"}
        return Motion(grid.back(q), grid.back(qd), grid.back(qdd), None, record)


def central_difference(values: np.ndarray, step: float) -> np.ndarray:
    """Derivative along the rows of (N, n): five-point central differences, error step^4/30 times the fifth derivative.

    Second order in the two rows at each end. Needs five rows.
    """
    out = np.gradient(values, step, axis=0, edge_order=2)
    out[2:-2] = (values[:-4] - 8 * values[1:-3] + 8 * values[3:-1] - values[4:]) / (12 * step)
    return out


def second_difference(values: np.ndarray, step: float) -> np.ndarray:
    """Second derivative along the rows of (N, n): five-point central differences, error step^4/90 times the sixth one.

    The two rows at each end repeat the nearest central value. Needs five rows.
    """
    inner = (-values[:-4] + 16 * values[1:-3] - 30 * values[2:-2] + 16 * values[3:-1] - values[4:]) / (12 * step**2)
    return np.concatenate([inner[:1], inner[:1], inner, inner[-1:], inner[-1:]])
