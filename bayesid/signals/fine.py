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
# The low-pass has forgotten all but 1e-8 of what lies so many periods of its cutoff away.
_MEMORY = 8.0


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
    def motion(self) -> tuple[np.ndarray, np.ndarray]:
        """Velocity and direction of slip (n, M) on the grid."""
        cutoff = max(min(_CUTOFFS * self.cutoff, _OVER_RATE * self.grid.rate), self.cutoff)
        derive = PositionDifferences() if self.velocity is None else MeasuredVelocity()
        motion = derive.derive(self.grid, self.position, self.velocity, cutoff)
        direction = friction_direction(motion.q, motion.qd)
        return self.grid.smooth(motion.qd).T, self.grid.noisy(direction).T

    def columns(self, basis, time, filtered: bool = True) -> np.ndarray:
        """(k, S, n) of `basis(qd, direction)`, (k, n, M) of (n, M), at instants (S,) [s], through the low-pass unless not
        `filtered`. Only the stretch of the recording about the instants is looked at."""
        at, stamps = np.asarray(time) - self.delay, self.grid.grid
        reach = _MEMORY / self.cutoff
        window = slice(
            max(int(np.searchsorted(stamps, at.min() - reach)) - 1, 0), int(np.searchsorted(stamps, at.max() + reach)) + 1
        )
        stamps, (qd, direction) = stamps[window], (values[:, window] for values in self.motion)
        values = np.asarray(basis(qd, direction))
        k, n, rows = values.shape
        values = np.moveaxis(values, 2, 0).reshape(rows, -1)
        if filtered:
            values = low_pass(values, self.grid.rate, self.cutoff)
        if self.grid.uniform and not self.delay:
            values = values[np.clip(np.rint((at - stamps[0]) * self.grid.rate).astype(int), 0, rows - 1)]
        elif filtered:
            values = spline(stamps, values, at)
        else:
            values = np.column_stack([np.interp(at, stamps, column) for column in values.T])
        return np.moveaxis(values.reshape(-1, k, n), 1, 0)
