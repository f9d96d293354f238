"""The design problem in numbers: cost and gradient, slacks of all constraints and their derivatives."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.excitation.problem import Problem

# Compilation dominates a short design: LLVM's higher levels double it and save nothing measurable per evaluation.
COMPILER = {"xla_backend_optimization_level": 1}
CHUNK = 1024


def information(problem: Problem, coefficients, time=None) -> np.ndarray:
    """(p, p) information of a motion (size, n) at times (S,), by default the problem's samples; without earlier data."""
    time = problem.time if time is None else np.asarray(time, dtype=float)
    q, qd, qdd, _ = (x.T for x in problem.motion(coefficients, time))
    return information_at(problem.observation, q, qd, qdd, problem.noise)


def information_at(observation, q, qd, qdd, noise) -> np.ndarray:
    """(p, p) information of states (n, S): sum of w^T w / std^2 over rows; `noise` (n,) standard deviations of the effort."""
    weights = 1.0 / np.asarray(noise)[observation.row_joints]
    # The base parameters are found by running compiled functions, which cannot happen while another one is traced.
    size = len(observation.names)
    total = np.zeros((size, size))
    for start in range(0, q.shape[1], CHUNK):
        part = [x[:, start : start + CHUNK] for x in (q, qd, qdd)]
        count = part[0].shape[1]
        length = CHUNK if q.shape[1] > CHUNK // 4 else CHUNK // 4
        mask = np.arange(length) < count
        padded = [np.pad(x, ((0, 0), (0, length - count))) for x in part]
        total = total + np.asarray(_information(observation, *padded, weights, mask))
    return total


@partial(jax.jit, static_argnums=0, compiler_options=COMPILER)
def _information(observation, q, qd, qdd, weights, mask):
    rows = observation.columns(q, qd, qdd) * weights[:, None, None] * mask
    return jnp.einsum("rps,rqs->pq", rows, rows)


@lru_cache(maxsize=4)
def evaluator_of(problem: Problem) -> Evaluator:
    """The compiled functions of a problem, kept for its next design."""
    return Evaluator(problem)


class Evaluator:
    """Compiled functions of one problem. Coefficients are those of the free joints, scaled: (size, f) numbers of order one."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.free = problem.free_index
        self.dof = problem.robot.dof
        self.count = problem.family.size * len(self.free)
        self.scale = self._scales()
        self._samples = self._phases(problem.time, 3)
        self._state_grid = self._phases(problem.limit_grid, 3)
        self.joints = self._joint_rows()
        weights = 1.0 / problem.noise[problem.observation.row_joints]
        collected = 0.0 if problem.collected is None else np.asarray(problem.collected)
        self._cost = jax.jit(
            jax.value_and_grad(partial(_cost, problem.observation, problem.objective, weights, collected), has_aux=True),
            compiler_options=COMPILER,
        )
        self.backoff = [0.0] * len(problem.constraints)
        self._jacobians = [
            jax.jit(
                partial(_local_jacobian, partial(constraint.margins, problem.robot), constraint.orders),
                compiler_options=COMPILER,
            )
            for constraint in problem.constraints
        ]
        self._last = (None, [])

    def _phases(self, time, orders):
        """Basis (orders, S, size) and offset (orders, S, n) on a grid."""
        p = self.problem
        basis = np.stack([p.family.basis(time, k) for k in range(orders)])
        offset = np.stack([p.family.offset(time, k, p.start, p.end) for k in range(orders)])
        return basis, offset

    def _scales(self):
        """(size, f) amplitude at which one coefficient alone uses the room of its tightest limit."""
        p = self.problem
        time = p.limit_grid
        scale = np.full((p.family.size, len(self.free)), np.inf)
        for k, lower, upper in p.bounds():
            peak = np.abs(p.family.basis(time, k)).max(axis=0)
            still = p.family.offset(time, k, p.start, p.end)[:, self.free]
            room = np.minimum(upper[self.free] - still.max(axis=0), still.min(axis=0) - lower[self.free])
            scale = np.minimum(scale, room / np.maximum(peak, 1e-12)[:, None])
        return scale

    def _joint_rows(self):
        """Joint limits as rows: (basis (S, size), lower slack and upper slack at rest (S, f), width (f,)) per kind of limit."""
        p = self.problem
        time = p.limit_grid
        rows = []
        for k, lower, upper in p.bounds():
            basis = p.family.basis(time, k)
            offset = p.family.offset(time, k, p.start, p.end)[:, self.free]
            for sign, bound in ((-1.0, upper[self.free]), (1.0, lower[self.free])):
                finite = np.isfinite(bound)
                width = np.where(finite, np.maximum(np.abs(bound), 1e-3), 1.0)
                slack = np.where(finite, sign * (offset - bound), 1.0) / width
                inner = (np.ptp(basis, axis=1) > 0) | (np.abs(basis).max(axis=1) > 1e-12)
                rows.append((sign * basis[inner], slack[inner], np.where(finite, 1.0 / width, 0.0)))
        return rows

    def full(self, u):
        """(size, n) coefficients of the family from scaled ones (count,)."""
        out = np.zeros((self.problem.family.size, self.problem.robot.dof))
        out[:, self.free] = u.reshape(self.scale.shape) * self.scale
        return out

    def scaled(self, coefficients):
        """Inverse of `full`; what held joints carry is dropped."""
        return (np.asarray(coefficients)[:, self.free] / self.scale).ravel()

    def cost(self, u, sharpness):
        """Cost, its gradient (count,) and the information matrix."""
        basis, offset = self._samples
        (value, matrix), gradient = self._cost(self.full(u), basis, offset, float(sharpness))
        gradient = np.asarray(gradient)[:, self.free] * self.scale
        return float(value), gradient.ravel(), np.asarray(matrix)

    def joint_slacks(self, u):
        """Slacks (rows, f) of the joint limits, one array per kind, relative to the limit; positive inside."""
        x = u.reshape(self.scale.shape) * self.scale
        return [slack + (basis @ x) * width for basis, slack, width in self.joints]

    def state(self, u):
        basis, offset = self._state_grid
        return np.swapaxes(offset + basis @ self.full(u), 1, 2)

    def jacobians(self, u):
        """Per constraint: margins (k, S) less its `backoff` (k, 1), and their derivatives (k, S, 3, n) by the state at that
        instant."""
        if not self._jacobians:
            return []
        if self._last[0] is None or not np.array_equal(self._last[0], u):
            state = self.state(u)
            self._last = (np.array(u), [tuple(np.asarray(x) for x in f(*state)) for f in self._jacobians])
        return [(margin - off, slope) for (margin, slope), off in zip(self._last[1], self.backoff)]

    def pull(self, local):
        """Gradient (count,) of a function with derivatives `local` (S, 3, n) with respect to the states."""
        basis, _ = self._state_grid
        gradient = np.einsum("osd,son->dn", basis, local, optimize=True)
        return (gradient[:, self.free] * self.scale).ravel()

    def push(self, step):
        """First-order change (S, 3, n) of the states for a step (count,)."""
        basis, _ = self._state_grid
        return np.moveaxis(basis @ self.full(step), 0, 1)

    def joint_hessian(self, weights, negligible):
        """(count, count) sum of weight * row row^T over the joint limits, block diagonal; weights below `negligible` are
        left out."""
        size, f = self.scale.shape
        blocks = np.zeros((f, size, size))
        for (basis, _, width), weight in zip(self.joints, weights):
            strong = np.flatnonzero((weight > negligible).any(axis=1))
            part, w = basis[strong], weight[strong] * width**2
            blocks += np.matmul((part[None] * w.T[:, :, None]).transpose(0, 2, 1), part)
        blocks *= self.scale.T[:, :, None] * self.scale.T[:, None, :]
        out = np.zeros((size, f, size, f))
        out[:, np.arange(f), :, np.arange(f)] = blocks
        return out.reshape(self.count, self.count)

    def state_hessian(self, local, negligible):
        """(count, count) from positive semidefinite (S, 3, n, 3, n) with respect to the states; weak instants are left out."""
        size, f = self.scale.shape
        strength = np.einsum("sojoj->s", local)
        strong = np.flatnonzero(strength > negligible)
        basis = self._state_grid[0][:, strong]
        local = local[strong][:, :, self.free][:, :, :, :, self.free]
        used = [o for o in range(3) if np.abs(local[:, o]).max(initial=0.0) > 0]
        out = np.zeros((size, f, size, f))
        for o in used:
            for p in used:
                right = local[:, o, :, p, :, None] * basis[p][:, None, None, :]
                block = basis[o].T @ right.reshape(len(strong), -1)
                out += block.reshape(size, f, f, size).transpose(0, 1, 3, 2)
        out *= self.scale[:, :, None, None] * self.scale[None, None]
        return out.reshape(self.count, self.count)


def _cost(observation, objective, weights, collected, coefficients, basis, offset, sharpness):
    q, qd, qdd = jnp.swapaxes(offset + jnp.einsum("osd,dn->osn", basis, coefficients), 1, 2)
    rows = observation.columns(q, qd, qdd) * weights[:, None, None]
    flat = jnp.swapaxes(rows, 0, 1).reshape(rows.shape[1], -1)
    matrix = flat @ flat.T + collected
    return objective.cost(matrix, sharpness), matrix


def _local_jacobian(margins, orders, q, qd, qdd):
    """Margins (k, S) and their derivatives (k, S, 3, n); only the first `orders` of q, qd, qdd matter to them."""
    n, samples = q.shape
    state = jnp.stack([q, qd, qdd])
    count = orders * n
    directions = jnp.eye(count, 3 * n).reshape(count, 3, n, 1)
    directions = jnp.broadcast_to(directions, (count, 3, n, samples))
    value = margins(q, qd, qdd)
    slopes = jax.vmap(lambda d: jax.jvp(lambda x: margins(*x), (state,), (d,))[1])(directions)
    slopes = jnp.moveaxis(slopes, 0, 2).reshape(*value.shape, orders, n)
    return value, jnp.pad(slopes, ((0, 0), (0, 0), (0, 3 - orders), (0, 0)))
