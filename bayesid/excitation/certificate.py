"""The certificate of a motion: every limit checked on a dense grid in NumPy, apart from the code that optimised it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.excitation.limits import UNITS
from bayesid.excitation.problem import RATES, Problem


@dataclass(frozen=True)
class Check:
    """The tightest instant of one limit: `used` of `allowed` [unit] at `time` [s]; `margin` is positive when it is held."""

    what: str
    margin: float
    time: float
    unit: str
    used: float | None = None
    allowed: float | None = None


@dataclass(frozen=True)
class Certificate:
    """All checks on a grid of `instants` every `step` seconds, and the rest at both ends where the family promises it."""

    instants: int
    step: float
    checks: tuple[Check, ...]

    @property
    def feasible(self) -> bool:
        return all(check.margin >= 0 for check in self.checks)

    @property
    def worst(self) -> Check | None:
        """The check with the least margin relative to what is allowed."""
        return min(self.checks, key=_relative, default=None)

    @property
    def violations(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.margin < 0)

    def to_dict(self) -> dict:
        rows = [{k: v for k, v in vars(check).items() if v is not None} | {"held": check.margin >= 0} for check in self.checks]
        return {"feasible": self.feasible, "instants": self.instants, "step_s": self.step, "checks": rows}

    @classmethod
    def from_dict(cls, data: dict) -> Certificate:
        checks = tuple(Check(**{k: v for k, v in row.items() if k != "held"}) for row in data["checks"])
        return cls(int(data["instants"]), float(data["step_s"]), checks)


def certify(problem: Problem, coefficients, time=None) -> Certificate:
    """Check a motion (size, n) against all limits of its problem at times (S,), by default the problem's certificate grid."""
    time = problem.certificate_grid if time is None else np.asarray(time, dtype=float)
    states = problem.motion(coefficients, time)
    names = problem.robot.joint_names
    checks = []
    for k, lower, upper in problem.bounds():
        what = "position" if k == 0 else RATES[k - 1]
        for j, name in enumerate(names):
            for bound, sign in ((upper[j], 1.0), (lower[j], -1.0)):
                if not np.isfinite(bound):
                    continue
                value = states[k][:, j]
                at = int(np.argmax(sign * value))
                margin = float(sign * (bound - value[at]))
                side = "upper" if sign > 0 else "lower"
                unit = UNITS["upper" if k == 0 else what]
                checks.append(Check(f"{what} of {name}, {side}", margin, float(time[at]), unit, float(value[at]), float(bound)))
    q, qd, qdd, _ = (x.T for x in states)
    for constraint in problem.constraints:
        margins = constraint.measured(problem.robot, q, qd, qdd)
        unit = "of the limit" if constraint.name == "torque" else "m"
        for label, row in zip(constraint.labels(problem.robot), margins):
            at = int(np.argmin(row))
            checks.append(Check(label, float(row[at]), float(time[at]), unit))
    if problem.family.at_rest:
        for end, at in (("start", 0), ("end", -1)):
            pose = problem.start if end == "start" else problem.end
            off = max(float(np.abs(states[0][at] - pose).max()), *(float(np.abs(states[k][at]).max()) for k in (1, 2)))
            checks.append(Check(f"rest at the {end} pose", 1e-8 - off, float(time[at]), "rad", off, 1e-8))
    return Certificate(len(time), float(time[1] - time[0]), tuple(checks))


def _relative(check):
    return check.margin / abs(check.allowed) if check.allowed else check.margin
