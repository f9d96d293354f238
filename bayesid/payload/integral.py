"""Momentum integral equations of a payload, one row block per sampling step.

With c = m r the first moment and I the inertia about the sensor frame's origin, along its axes, momentum and angular momentum
change from one sample to the next by the integrals of force f and moment n (Newton, Euler; no acceleration appears):

    m dv + d(w x c)     - m g dt = integral of f
    d(I w) + c x (dv - g dt)     = integral of n

Both are written along the sensor's axes halfway through the step. White noise of f and n over a step is white; that of w
enters as the difference of two samples. Summing the equations up to a time gives the integrated form, whose noise is a random
walk plus white noise: differencing is what whitens it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesid.payload.record import SensorMotion, rotations, skew

SIZE = 10


@dataclass(frozen=True, eq=False)
class IntegralEquations:
    """The equations along one motion, sample axis last: rows (6, p, N-1), force [N s] first, then moment [N m s]."""

    motion: SensorMotion

    @cached_property
    def step(self) -> np.ndarray:
        """(N-1,) lengths of the steps [s]."""
        return np.diff(self.motion.time)

    @cached_property
    def halves(self):
        """Half a step ahead, half a step behind, base to halfway axes: (N-1, 3, 3) rotations each."""
        forward = rotations(0.5 * self.motion.turn)
        middle = self.motion.rotation[:-1] @ forward
        return forward, np.swapaxes(forward, 1, 2), np.swapaxes(middle, 1, 2)

    @cached_property
    def gravity(self) -> np.ndarray:
        """(N-1, 3) gravity along the sensor's axes [m/s^2]."""
        return self.halves[2] @ np.asarray(self.motion.gravity, dtype=float)

    @cached_property
    def push(self) -> np.ndarray:
        """(N-1, 3) change of velocity less that by gravity, dv - g dt, along the sensor's axes [m/s]."""
        change = np.einsum("kij,kj->ki", self.halves[2], np.diff(self.motion.velocity, axis=0))
        return change - self.gravity * self.step[:, None]

    def rows(self, angular_velocity) -> np.ndarray:
        """(6, 10, N-1) columns of m, c, I for an angular velocity (N, 3) along the sensor's axes [rad/s]."""
        ahead, behind, _ = self.halves
        w = np.asarray(angular_velocity)
        out = np.zeros((6, SIZE, len(self.step)))
        out[:3, 0] = self.push.T
        spin, turning = skew(w), inertia_columns(w)
        out[:3, 1:4] = np.moveaxis(ahead @ spin[1:] - behind @ spin[:-1], 0, -1)
        out[3:, 1:4] = np.moveaxis(skew(-self.push), 0, -1)
        out[3:, 4:] = np.moveaxis(ahead @ turning[1:] - behind @ turning[:-1], 0, -1)
        return out

    def integrals(self, force, moment) -> np.ndarray:
        """(6, N-1) trapezoidal integrals of force [N s] and moment [N m s] over each step, along the sensor's axes."""
        ahead, behind, _ = self.halves
        both = np.stack([force, moment], axis=2)
        ends = ahead @ both[1:] + behind @ both[:-1]
        return (0.5 * self.step * np.moveaxis(ends, 0, -1)).swapaxes(0, 1).reshape(6, -1)


def inertia_columns(w) -> np.ndarray:
    """(..., 3, 6) columns of Ixx, Ixy, Ixz, Iyy, Iyz, Izz in I w."""
    x, y, z = np.moveaxis(np.asarray(w), -1, 0)
    o = np.zeros_like(x)
    rows = [[x, y, z, o, o, o], [o, x, o, y, z, o], [o, o, x, o, y, z]]
    return np.stack([np.stack(row, -1) for row in rows], -2)
