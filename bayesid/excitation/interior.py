"""The optimiser: sequential quadratic programming whose every iterate satisfies all constraints on the optimised grids.

Each step minimises a quadratic model of the cost (damped BFGS) plus a small logarithmic barrier of the constraints by a
primal-dual interior-point method, and is then shortened until the cost falls (Nocedal, Wright 2006, Numerical Optimization,
sec. 16.6, 18.3). Joint limits are linear in the coefficients, so a full step satisfies them; other constraints enter by
their derivatives at each instant. The inner iterations cost no evaluation of the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bayesid.excitation.evaluation import Evaluator

# Total weight of the barrier: bounds what it costs, in units of the (logarithmic) cost.
BARRIER = 3e-3
INNER_START = 1.0
INNER_FALL = 0.15
INNER_STEPS = 40
TO_BOUNDARY = 0.99
SHARPNESS_START = 2.0
SHARPNESS_END = 128.0
# Below this fall of the cost over WINDOW steps the sharpness doubles; at the last sharpness the start has converged.
GAIN = 1e-3
WINDOW = 8
ARMIJO = 1e-4
BACKTRACKS = 20


@dataclass
class Iterate:
    """State of one start: scaled coefficients, BFGS matrix, sharpness, steps made, failed steps in a row, recent costs."""

    u: np.ndarray
    hessian: np.ndarray | None = None
    sharpness: float = SHARPNESS_START
    steps: int = 0
    stalled: int = 0
    recent: list = field(default_factory=list)
    converged: bool = False
    information: np.ndarray | None = None
    _known: tuple = field(default=(None, None), repr=False)

    def arrays(self, prefix) -> dict:
        hessian = np.zeros((0, 0)) if self.hessian is None else self.hessian
        numbers = np.array([self.sharpness, self.steps, self.stalled, self.converged], dtype=float)
        parts = {"u": self.u, "hessian": hessian, "numbers": numbers, "recent": np.array(self.recent, dtype=float)}
        return {f"{prefix}.{name}": value for name, value in parts.items()}

    @classmethod
    def from_arrays(cls, prefix, data) -> Iterate:
        hessian = np.array(data[f"{prefix}.hessian"])
        sharpness, steps, stalled, converged = data[f"{prefix}.numbers"]
        return cls(
            np.array(data[f"{prefix}.u"]),
            hessian if hessian.size else None,
            float(sharpness),
            int(steps),
            int(stalled),
            data[f"{prefix}.recent"].tolist(),
            bool(converged),
        )


class InteriorPoint:
    """Steps on one problem."""

    def __init__(self, evaluator: Evaluator):
        self.evaluator = evaluator

    def feasible(self, u) -> bool:
        """Whether all slacks are positive: strictly inside on the optimised grids."""
        return all(float(s.min()) > 0 for s in self.slacks(u))

    def largest_feasible(self, u, shrink=0.9):
        """The direction u, scaled towards zero coefficients until it is strictly feasible; None if no scale is."""
        joint = self.evaluator.joint_slacks(u)
        rest = self.evaluator.joint_slacks(np.zeros_like(u))
        reach = max(float(((r - s) / r).max()) for s, r in zip(joint, rest))
        scale = shrink / max(reach, 1e-12)
        for _ in range(60):
            if self.feasible(scale * u):
                return scale * u
            scale *= 0.8
        return None

    def slacks(self, u) -> list[np.ndarray]:
        """Slacks of all constraints, joint limits first."""
        return [*self.evaluator.joint_slacks(u), *(margin for margin, _ in self.evaluator.jacobians(u))]

    def step(self, it: Iterate) -> float:
        """One step in place; returns its length, 0 when no decrease was found."""
        e = self.evaluator
        value, gradient, it.information = self._cost(it)
        states = e.jacobians(it.u)
        slacks = [*e.joint_slacks(it.u), *(margin for margin, _ in states)]
        weight = BARRIER / sum(s.size for s in slacks)
        fresh = it.hessian is None
        if fresh:
            it.hessian = max(np.linalg.norm(gradient), 1e-6) * np.eye(e.count)
        direction, multipliers = self._direction(gradient, it.hessian, slacks, states, weight)
        slope = float(gradient @ direction) - weight * sum(
            float((change / s).sum()) for change, s in zip(self._change(direction, states), slacks)
        )
        merit = value - weight * sum(float(np.log(s).sum()) for s in slacks)
        it.steps += 1
        length = 1.0
        for _ in range(BACKTRACKS):
            u = it.u + length * direction
            trial = self.slacks(u)
            if all(float(s.min()) > 0 for s in trial):
                new_value, new_gradient, matrix = e.cost(u, it.sharpness)
                new_merit = new_value - weight * sum(float(np.log(s).sum()) for s in trial)
                if new_merit <= merit + ARMIJO * length * slope + 1e-12 * abs(merit):
                    break
            length *= 0.5
        else:
            it.stalled += 1
            it.hessian = None
            self._advance(it, value)
            return 0.0
        bend = new_gradient - gradient
        if states:
            for z, (_, before), (_, after) in zip(multipliers[len(e.joints) :], states, e.jacobians(u)):
                bend = bend - e.pull(np.einsum("ks,ksoj->soj", z, after - before))
        it.hessian = _damped_bfgs(it.hessian, u - it.u, bend, fresh)
        it.u, it.information, it.stalled = u, matrix, 0
        it._known = (it.sharpness, u, new_value, new_gradient, matrix)
        self._advance(it, new_value)
        return length

    @staticmethod
    def _advance(it, value):
        """Sharpen the cost, or call it converged, when it hardly falls any more."""
        it.recent = [*it.recent[-WINDOW:], value]
        if len(it.recent) > WINDOW and it.recent[0] - value < GAIN:
            if it.sharpness >= SHARPNESS_END:
                it.converged = True
            it.sharpness = min(SHARPNESS_END, 2.0 * it.sharpness)
            it.recent = []

    def _direction(self, gradient, hessian, slacks, states, weight):
        """Minimiser p of g.p + p.H.p/2 - weight * sum log(slack + change(p)), and the multipliers, by a primal-dual method."""
        e = self.evaluator
        count = sum(s.size for s in slacks)
        p = np.zeros(e.count)
        now = [s.copy() for s in slacks]
        target = max(INNER_START / count, weight)
        z = [target / s for s in now]
        negligible = 1e-7 * float(np.trace(hessian)) / e.count
        for _ in range(INNER_STEPS):
            system = hessian + e.joint_hessian([a / s for a, s in zip(z, now)], negligible)
            if states:
                local = sum(_outer(a / s, slope) for a, s, (_, slope) in zip(z[len(e.joints) :], now[len(e.joints) :], states))
                system = system + e.state_hessian(local.reshape(-1, 3, e.dof, 3, e.dof), negligible)
            right = self._pull([target / s for s in now], states) - gradient - hessian @ p
            dp = _solve(system, right)
            change = self._change(dp, states)
            dz = [target / s - a - a / s * ds for a, s, ds in zip(z, now, change)]
            primal, dual = _reach(now, change), _reach(z, dz)
            p = p + primal * dp
            now = [s + primal * ds for s, ds in zip(now, change)]
            z = [a + dual * da for a, da in zip(z, dz)]
            if target <= weight and min(primal, dual) > 0.9:
                break
            if min(primal, dual) > 0.2:
                target = max(weight, INNER_FALL * target)
        return p, z

    def _cost(self, it):
        if it._known[0] == it.sharpness and it._known[1] is it.u:
            return it._known[2:]
        return self.evaluator.cost(it.u, it.sharpness)

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

    def _change(self, direction, states):
        """First-order change of all slacks along a direction."""
        e = self.evaluator
        x = direction.reshape(e.scale.shape) * e.scale
        change = [(basis @ x) * width for basis, _, width in e.joints]
        if states:
            moved = e.push(direction)
            change += [np.einsum("ksoj,soj->ks", slope, moved) for _, slope in states]
        return change


def _reach(values, change):
    """Largest step, at most 1, that keeps all values positive with a little to spare."""
    length = 1.0
    for value, delta in zip(values, change):
        falling = delta < 0
        if falling.any():
            length = min(length, TO_BOUNDARY * float((value[falling] / -delta[falling]).min()))
    return length


def _outer(weights, slopes):
    """(S, 3 n, 3 n) sum over k of weights (k, S) times the outer products of slopes (k, S, 3, n)."""
    rows = np.swapaxes(slopes.reshape(*slopes.shape[:2], -1), 0, 1)
    return np.swapaxes(rows * weights.T[:, :, None], 1, 2) @ rows


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
