"""Strategies that turn recorded position (and velocity) into q, qd and qdd: interchangeable frozen objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import SignalError
from bayesid.signals.filtering import low_pass


@dataclass(frozen=True)
class Motion:
    """q, qd, qdd (N, n) at the rows of the grid; `std` holds their standard deviations (3, N, n) where the strategy knows them."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    std: np.ndarray | None
    record: dict


@dataclass(frozen=True)
class PositionDifferences:
    """qd and qdd as central differences of the low-passed position. Needs no recorded velocity."""

    def derive(self, time, position, velocity, rate: float, cutoff: float) -> Motion:
        q = low_pass(position, rate, cutoff)
        qd = central_difference(q, 1 / rate)
        # The second difference over one step each side: the derivative of a derivative would reach over two.
        qdd = second_difference(q, 1 / rate)
        return Motion(q, qd, qdd, None, {"name": "differentiate", "of": "position", "by": "central differences"})


@dataclass(frozen=True)
class MeasuredVelocity:
    """qd is the low-passed recorded velocity, qdd its central difference: one differentiation instead of two."""

    def derive(self, time, position, velocity, rate: float, cutoff: float) -> Motion:
        if velocity is None:
            raise SignalError("the log has no recorded velocity: differentiate the position instead")
        q = low_pass(position, rate, cutoff)
        qd = low_pass(velocity, rate, cutoff)
        return Motion(q, qd, central_difference(qd, 1 / rate), None, {"name": "differentiate", "of": "velocity", "by": "central differences"})


def central_difference(values: np.ndarray, step: float) -> np.ndarray:
    """Derivative along the rows of (N, n): five-point central differences, error step^4/30 times the fifth derivative; lower
    order in the two rows at each end. Needs five rows."""
    out = np.gradient(values, step, axis=0, edge_order=2)
    out[2:-2] = (values[:-4] - 8 * values[1:-3] + 8 * values[3:-1] - values[4:]) / (12 * step)
    return out


def second_difference(values: np.ndarray, step: float) -> np.ndarray:
    """Second derivative along the rows of (N, n): five-point central differences, error step^4/90 times the sixth derivative;
    the two rows at each end repeat the nearest central value. Needs five rows."""
    inner = (-values[:-4] + 16 * values[1:-3] - 30 * values[2:-2] + 16 * values[3:-1] - values[4:]) / (12 * step**2)
    return np.concatenate([inner[:1], inner[:1], inner, inner[-1:], inner[-1:]])
