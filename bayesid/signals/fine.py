"""Functions of velocity that change faster than the low-pass resolves, carried through the same filter as the effort."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesid.signals.derivatives import MeasuredVelocity, PositionDifferences
from bayesid.signals.filtering import Grid, low_pass, spline
from bayesid.signals.reversal import friction_direction

# The velocity that such functions are taken of keeps so many times the cutoff, below this part of the rate.
_CUTOFFS = 4.0
_OVER_RATE = 0.4


@dataclass(frozen=True, eq=False)
class FineMotion:
    """The recorded motion from which samples were made: `position` and `velocity` (N, n, or None) on a grid's stamps.

    A filter does not pass f(qd) as f of the filtered qd: where friction turns around within the filter's width, columns of
    filtered velocity explain a filtered effort with a bias (three standard deviations of Stribeck friction at 9 Hz in a
    simulated UR16e). `delay` [s]: an instant t of the samples belongs to the motion at t - delay.
    """

    grid: Grid
    position: np.ndarray
    velocity: np.ndarray | None
    cutoff: float
    delay: float = 0.0

    @cached_property
    def _motion(self) -> tuple[np.ndarray, np.ndarray]:
        cutoff = max(min(_CUTOFFS * self.cutoff, _OVER_RATE * self.grid.rate), self.cutoff)
        derive = PositionDifferences() if self.velocity is None else MeasuredVelocity()
        motion = derive.derive(self.grid, self.position, self.velocity, cutoff)
        direction = friction_direction(motion.q, motion.qd)
        return self.grid.smooth(motion.qd), self.grid.noisy(direction)

    def columns(self, basis, time, filtered: bool = True) -> np.ndarray:
        """(k, S, n) of `basis(qd, direction)` (k columns) at instants (S,) [s], through the low-pass unless not `filtered`."""
        qd, direction = self._motion
        at = np.asarray(time) - self.delay
        out = []
        for column in np.asarray(basis(qd, direction)):
            if filtered:
                out.append(spline(self.grid.grid, low_pass(column, self.grid.rate, self.cutoff), at))
            else:
                out.append(np.column_stack([np.interp(at, self.grid.grid, joint) for joint in column.T]))
        return np.array(out)
