"""The optimiser: an interior-point method whose every iterate satisfies all constraints on the optimised grids.

Logarithmic barrier with its exact curvature, a damped BFGS model of the cost and a backtracking line search that never
leaves the feasible set (Nocedal, Wright 2006, Numerical Optimization, sec. 18.3 and 19.6). Joint limits are linear in the coefficients;
other constraints enter by their derivatives at each instant. The barrier falls while full steps are possible and rises when
the boundary cuts them short: a barrier that falls on a schedule runs into the boundary and crawls along it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bayesid.excitation.evaluation import Evaluator

BARRIER_START = 100.0
BARRIER_END = 1e-3
BARRIER_FALL = 0.9
BARRIER_RISE = 1.2
SHARPNESS_START = 2.0
SHARPNESS_END = 128.0
TO_BOUNDARY = 0.9
ARMIJO = 1e-4
BACKTRACKS = 25


@dataclass
class Iterate:
    """State of one start: scaled coefficients, BFGS matrix, total barrier weight, number of steps, failed steps in a row."""

    u: np.ndarray
    hessian: np.ndarray | None = None
    barrier: float = BARRIER_START
    steps: int = 0
    stalled: int = 0
    information: np.ndarray | None = None
    _known: tuple = field(default=(None,), repr=False)

    def arrays(self, prefix) -> dict:
        hessian = np.zeros((0, 0)) if self.hessian is None else self.hessian
        numbers = np.array([self.barrier, self.steps, self.stalled], dtype=float)
        return {f"{prefix}.u": self.u, f"{prefix}.hessian": hessian, f"{prefix}.numbers": numbers}

    @classmethod
    def from_arrays(cls, prefix, data) -> Iterate:
        hessian = np.array(data[f"{prefix}.hessian"])
        barrier, steps, stalled = data[f"{prefix}.numbers"]
        return cls(
            np.array(data[f"{prefix}.u"]), hessian if hessian.size else None, float(barrier), int(steps), int(stalled)
        )


class InteriorPoint:
    """Steps on one problem."""

    def __init__(self, evaluator: Evaluator):
        self.evaluator = evaluator

    def feasible(self, u) -> bool:
        """Whether all slacks are positive: strictly inside on the optimised grids."""
        return all(float(s.min()) > 0 for s in self._slacks(u))

    def largest_feasible(self, u, shrink=0.9):
        """The direction u, scaled towards the motion with zero coefficients until it is strictly feasible; None if no scale is."""
        joint = self.evaluator.joint_slacks(u)
        rest = self.evaluator.joint_slacks(np.zeros_like(u))
        reach = max(float(((r - s) / r).max()) for s, r in zip(joint, rest))
        scale = shrink / max(reach, 1e-12)
        for _ in range(60):
            if self.feasible(scale * u):
                return scale * u
            scale *= 0.8
        return None

    def sharpness(self, barrier: float) -> float:
        """Sharpness that belongs to a barrier weight: a power of two, so that values can be kept from step to step."""
        progress = np.log(BARRIER_START / barrier) / np.log(BARRIER_START / BARRIER_END)
        exponent = np.log2(SHARPNESS_START) + progress * np.log2(SHARPNESS_END / SHARPNESS_START)
        return float(2.0 ** np.floor(exponent + 1e-9))

    def step(self, it: Iterate) -> float:
        """One iteration in place; returns the step length, 0 when no decrease was found."""
        e = self.evaluator
        sharpness = self.sharpness(it.barrier)
        value, gradient, it.information = self._cost(it, sharpness)
        joint = e.joint_slacks(it.u)
        states = e.jacobians(it.u)
        slacks = [*joint, *(margin for margin, _ in states)]
        mu = it.barrier / sum(s.size for s in slacks)
        if it.hessian is None:
            it.hessian = max(np.linalg.norm(gradient), 1e-6) * np.eye(e.count)
            fresh = True
        else:
            fresh = False
        system = it.hessian + e.joint_hessian([mu / s**2 for s in joint])
        if states:
            local = sum(
                np.einsum("ks,ksa,ksb->sab", mu / m**2, _flat(slope), _flat(slope), optimize=True) for m, slope in states
            )
            system += e.state_hessian(local.reshape(-1, 3, e.dof, 3, e.dof))
        total = gradient + self._pull([-mu / s for s in slacks], states)
        direction = _solve(system, -total)
        slope = float(total @ direction)
        length = 1.0
        for s, ds in zip(joint, self._joint_change(direction)):
            shrinking = ds < 0
            if shrinking.any():
                length = min(length, TO_BOUNDARY * float((s[shrinking] / -ds[shrinking]).min()))
        merit = value - mu * sum(float(np.log(s).sum()) for s in slacks)
        it.steps += 1
        for _ in range(BACKTRACKS):
            u = it.u + length * direction
            trial = self._slacks(u)
            if all(float(s.min()) > 0 for s in trial):
                new_value, new_gradient, matrix = e.cost(u, sharpness)
                new_merit = new_value - mu * sum(float(np.log(s).sum()) for s in trial)
                if new_merit <= merit + ARMIJO * length * slope + 1e-12 * abs(merit):
                    break
            length *= 0.5
        else:
            it.stalled += 1
            it.hessian = None
            it.barrier = min(BARRIER_START, it.barrier * BARRIER_RISE**4)
            return 0.0
        bend = new_gradient - gradient
        for (margin, before), (_, after) in zip(states, e.jacobians(u) if states else ()):
            bend = bend - e.pull(np.einsum("ks,ksoj->soj", mu / margin, after - before))
        it.hessian = _damped_bfgs(it.hessian, u - it.u, bend, fresh)
        it.u, it.information, it.stalled = u, matrix, 0
        it._known = (sharpness, u, new_value, new_gradient, matrix)
        if length > 0.3:
            it.barrier = max(BARRIER_END, it.barrier * BARRIER_FALL)
        elif length < 0.1:
            it.barrier = min(BARRIER_START, it.barrier * BARRIER_RISE)
        return length

    def _cost(self, it, sharpness):
        if it._known[0] == sharpness and it._known[1] is it.u:
            return it._known[2:]
        return self.evaluator.cost(it.u, sharpness)

    def _slacks(self, u):
        return [*self.evaluator.joint_slacks(u), *self.evaluator.margins(u)]

    def _pull(self, weights, states):
        """Gradient of the sum of weights * slacks."""
        e = self.evaluator
        x = np.zeros(e.scale.shape)
        for w, (basis, _, width) in zip(weights, e.joints):
            x += basis.T @ (w * width)
        gradient = (x * e.scale).ravel()
        for w, (_, slope) in zip(weights[len(e.joints) :], states):
            gradient = gradient + e.pull(np.einsum("ks,ksoj->soj", w, slope))
        return gradient

    def _joint_change(self, direction):
        e = self.evaluator
        x = direction.reshape(e.scale.shape) * e.scale
        return [(basis @ x) * width for basis, _, width in e.joints]


def _flat(slope):
    return slope.reshape(*slope.shape[:2], -1)


def _solve(system, right):
    shift = 0.0
    for _ in range(20):
        try:
            return cho_solve(cho_factor(system + shift * np.eye(len(system)), lower=True), right)
        except np.linalg.LinAlgError:
            shift = max(10.0 * shift, 1e-10 * np.trace(system) / len(system))
    return right


def _damped_bfgs(hessian, step, bend, fresh):
    """Powell's damped BFGS update (Nocedal, Wright 2006, procedure 18.2): positive definite where the cost is not convex."""
    inner = step @ bend
    if fresh and inner > 0:
        hessian = (bend @ bend) / inner * np.eye(len(step))
    image = hessian @ step
    size = step @ image
    if size <= 0:
        return hessian
    if inner < 0.2 * size:
        theta = 0.8 * size / (size - inner)
        bend = theta * bend + (1.0 - theta) * image
        inner = step @ bend
    return hessian - np.outer(image, image) / size + np.outer(bend, bend) / inner
