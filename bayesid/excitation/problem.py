"""The design problem: what is observed, how the robot may move, and what counts as informative."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bayesid.errors import DesignError
from bayesid.excitation.constraints import Constraint
from bayesid.excitation.families import Family
from bayesid.excitation.limits import UNITS, Limits
from bayesid.excitation.objectives import Objective
from bayesid.excitation.observation import Observation

RATES = ("velocity", "acceleration", "jerk")
CERTIFICATE_REFINEMENT = 10
INSTANTS_PER_CYCLE = 40


@dataclass(frozen=True, eq=False)
class Problem:
    """One design problem. Raises DesignError, on construction, for a request that no motion can meet.

    `start`, `end` (n,) [rad]; `sampling` [s] is the grid of the information; `noise` (n,) are standard deviations of the
    measured effort [N m or A]; `collected` (p, p) is information from earlier experiments; `free` (n,) says which joints
    may move. Joint limits are enforced on a grid with 40 instants per period of the fastest motion, other constraints,
    whose frequencies add up, on the same; the certificate checks a grid ten times denser.
    """

    observation: Observation
    family: Family
    limits: Limits
    objective: Objective
    start: np.ndarray
    end: np.ndarray
    constraints: tuple[Constraint, ...] = ()
    sampling: float = 0.1
    noise: np.ndarray | None = None
    collected: np.ndarray | None = None
    free: tuple[bool, ...] | None = None
    meta: dict = field(default_factory=dict)

    def __post_init__(self):
        n = self.robot.dof
        for name, default in (("start", np.zeros(n)), ("end", self.start), ("noise", np.ones(n))):
            value = getattr(self, name)
            value = np.array(default if value is None else value, dtype=float)
            if value.shape != (n,) or not np.isfinite(value).all():
                raise DesignError(
                    f"{name} needs {n} finite numbers, one per joint of '{self.robot.name}', got {value.tolist()}"
                )
            object.__setattr__(self, name, value)
        if (self.noise <= 0).any():
            raise DesignError(f"the noise of joint '{self.robot.joint_names[int(np.argmin(self.noise))]}' must be positive")
        free = (True,) * n if self.free is None else tuple(bool(x) for x in self.free)
        object.__setattr__(self, "free", free)
        if len(free) != n or not any(free):
            raise DesignError("no joint is free to move: free at least one")
        self._check_sampling()
        self._check_start()
        self._check_bounded()

    @property
    def robot(self):
        return self.observation.model.robot

    @cached_property
    def time(self) -> np.ndarray:
        """(S,) instants of the information [s], both ends included."""
        return self.grid(1)

    def grid(self, refinement: int) -> np.ndarray:
        """Instants `refinement` times denser than the sampling, both ends included."""
        steps = max(1, round(self.family.period / self.sampling)) * refinement
        return np.linspace(0.0, self.family.period, steps + 1)

    @cached_property
    def limit_grid(self) -> np.ndarray:
        """Instants at which the optimiser enforces all constraints."""
        return self.grid(max(1, int(np.ceil(INSTANTS_PER_CYCLE * self.family.bandwidth * self.sampling))))

    @cached_property
    def certificate_grid(self) -> np.ndarray:
        return np.linspace(0.0, self.family.period, CERTIFICATE_REFINEMENT * (len(self.limit_grid) - 1) + 1)

    @cached_property
    def free_index(self) -> np.ndarray:
        return np.flatnonzero(self.free)

    def motion(self, coefficients, time):
        """q, qd, qdd, qddd (S, n) of coefficients (size, n) at times (S,)."""
        return [self.family.offset(time, k, self.start, self.end) + self.family.basis(time, k) @ coefficients for k in range(4)]

    def bounds(self):
        """(derivative, lower (n,), upper (n,)) of each joint limit that is finite for some joint."""
        pairs = [(0, self.limits.lower, self.limits.upper)]
        pairs += [(k + 1, -getattr(self.limits, name), getattr(self.limits, name)) for k, name in enumerate(RATES)]
        return [(k, lo, hi) for k, lo, hi in pairs if np.isfinite(lo).any() or np.isfinite(hi).any()]

    def _check_sampling(self):
        if not (np.isfinite(self.sampling) and self.sampling > 0):
            raise DesignError(f"the sampling time must be a positive number of seconds, got {self.sampling}")
        if self.sampling >= self.family.period:
            raise DesignError(f"the sampling time {self.sampling:g} s must be shorter than the period {self.family.period:g} s")
        if 2.0 * self.family.bandwidth * self.sampling >= 1.0:
            raise DesignError(
                f"motion up to {self.family.bandwidth:.3g} Hz cannot be told from slower motion at samples every "
                f"{self.sampling:g} s: "
                f"take fewer than {self.family.period / (2.0 * self.sampling):.4g} harmonics or sample faster"
            )
        rows, unknowns = len(self.time) * len(self.observation.row_joints), len(self.observation.names)
        if rows < unknowns and self.collected is None:
            raise DesignError(
                f"{rows} measurements cannot determine {unknowns} parameters: lengthen the period or sample faster"
            )

    def _check_start(self):
        names = self.robot.joint_names
        for what, pose in (("start", self.start), ("end", self.end)):
            for j, name in enumerate(names):
                lower, upper = self.limits.lower[j], self.limits.upper[j]
                inside = lower < pose[j] < upper if self.free[j] else lower <= pose[j] <= upper
                if not inside:
                    raise DesignError(
                        f"the {what} position {pose[j]:.4g} rad of joint '{name}' is not inside its limits "
                        f"{lower:.4g} to {upper:.4g} rad: "
                        "move the pose or widen the limits"
                    )
        held = [j for j in range(len(names)) if not self.free[j] and self.start[j] != self.end[j]]
        if held:
            raise DesignError(f"joint '{names[held[0]]}' is held but starts and ends at different positions")
        if not self.family.at_rest and not np.array_equal(self.start, self.end):
            raise DesignError(f"a '{self.family.name}' motion ends where it starts: give one pose")
        time = self.limit_grid
        still = [self.family.offset(time, k, self.start, self.end) for k in range(4)]
        for k, lower, upper in self.bounds():
            excess = np.maximum(still[k] - upper, lower - still[k])
            if excess.max() >= 0 and k > 0:
                j = int(np.unravel_index(np.argmax(excess), excess.shape)[1])
                raise DesignError(
                    f"joint '{names[j]}' cannot go from start to end in {self.family.period:g} s: its {RATES[k - 1]} limit "
                    f"{upper[j]:.4g} {UNITS[RATES[k - 1]]} is exceeded; lengthen the period"
                )
        zero = np.zeros((self.family.size, self.robot.dof))
        q, qd, qdd, _ = (x.T for x in self.motion(zero, time))
        for constraint in self.constraints:
            margins = constraint.measured(self.robot, q, qd, qdd)
            row, sample = np.unravel_index(np.argmin(margins), margins.shape)
            if margins[row, sample] <= 0:
                where = "at the start pose" if np.array_equal(self.start, self.end) else "on the straight way from start to end"
                raise DesignError(
                    f"{constraint.labels(self.robot)[row]} violates the {constraint.name} constraint {where} "
                    f"(margin {margins[row, sample]:.4g}): choose another pose or loosen the constraint"
                )

    def _check_bounded(self):
        for j in self.free_index:
            position = np.isfinite(self.limits.lower[j]) and np.isfinite(self.limits.upper[j])
            if not position and not any(np.isfinite(getattr(self.limits, name)[j]) for name in RATES):
                raise DesignError(
                    f"joint '{self.robot.joint_names[j]}' has no limit on position, velocity, acceleration or jerk: "
                    "give one, for example in a limits file (velocity = 1.5)"
                )
