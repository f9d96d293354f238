"""Estimators of drive gains: published linear forms in torque, and maximum likelihood where the noise is, in the current."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from bayesid.errors import DataError, SolverError
from bayesid.gains.gains import Gains
from bayesid.gains.runs import GainRuns, Mapped
from bayesid.regression.information import Information, compress
from bayesid.regression.least_squares import HIGHEST_CONDITION, Fit, scaled_condition

_ROUNDS = 100
_LONGEST_STEP = 0.5
_CONVERGED = 1e-7
# Standard deviation of the ratio of two joints' gains before any data.
_LOOSE = 3.0


@dataclass(frozen=True, eq=False)
class GainFit(Fit):
    """A fit linearised at its solution: `beta` is zero for the likelihood (deviations), the solution for the linear forms.

    `gains` (n,) and `coefficients` (p,) are the solution, `free` (n + p,) what was estimated, `prior` (k, q) rows of the
    square root of the prior's precision, `sigma` (n,) standard deviation of the current [A], `active` constraints that hold
    with equality.
    """

    gains: np.ndarray = None
    coefficients: np.ndarray = None
    free: np.ndarray = None
    prior: np.ndarray = None
    sigma: np.ndarray = None
    active: tuple[str, ...] = field(default=())

    @property
    def factor(self) -> np.ndarray:
        """(q, q) triangular R with R^T R the weighted normal matrix, prior included."""
        factor = self.information.stacked(self.weights)[0]
        return factor if not len(self.prior) else np.linalg.qr(np.vstack([factor, self.prior]), mode="r")


def current_noise(information: Information) -> np.ndarray:
    """(n,) standard deviation [A] of each joint's current about its own best combination of columns: no gain is needed."""
    out = np.zeros(len(information.counts))
    for j, factor in enumerate(information.factors):
        used = np.linalg.norm(factor[:, :-1], axis=0) > 0
        rank = np.linalg.matrix_rank(_unit(factor[:, :-1][:, used]), tol=1e-9) if used.any() else 0
        basis = np.linalg.qr(factor[:, :-1][:, used])[0] if used.any() else np.zeros((len(factor), 0))
        rest = factor[:, -1] - basis @ (basis.T @ factor[:, -1])
        out[j] = np.linalg.norm(rest) / np.sqrt(max(information.counts[j] - rank, 1.0))
    return np.maximum(out, 1e-9 * max(out.max(), 1e-12))


def relative(runs: GainRuns, information: Information) -> GainFit:
    """Gains relative to one joint's, and everything else relative to that gain: what can be known without a known load.

    The apparent masses of the loads are in units of kg per unit of the reference's gain; a load that is known sets the scale.
    Ratios that the data leave open are held near one, loosely.
    """
    n = len(information.counts)
    reference = int(np.argmax(_load_effect(runs, information)))
    known = np.full(runs.size, np.nan)
    fixed = (np.arange(n) == reference) | (information.counts == 0)
    gains = Gains(np.ones(n), np.diag(np.where(fixed, 0.0, _LOOSE**2)))
    return _likelihood(runs, information, known, gains, np.ones(n), np.zeros(runs.size), "relative")


def ml(runs: GainRuns, prior: Gains | None = None, information: Information | None = None) -> GainFit:
    """Maximum likelihood of i_j = columns_j @ coefficients / K_j + noise_j, one noise level per joint, by Gauss-Newton.

    `prior`: Gaussian knowledge of gains, for example from a datasheet; variance 0 holds a gain.
    """
    information = compress(runs) if information is None else information
    _check_scale(runs, prior)
    start = relative(runs, information)
    scale = _scale(runs, start, prior)
    if prior is None:
        n = len(information.counts)
        prior = Gains(np.ones(n), np.diag(np.full(n, np.inf)))
    return _likelihood(runs, information, runs.known, prior, scale * start.gains, scale * start.coefficients, "ml")


def ls(runs: GainRuns, held: Gains | None = None, information: Information | None = None) -> GainFit:
    """Ordinary least squares of K i = W beta + W_load pi_load, known load terms on the right (Gautier, Briot 2014).

    The noisy current is among the regressors, so gains come out low where little but noise is left of a current once the
    other columns are fitted; see `attenuation`.
    """
    information = compress(runs) if information is None else information
    _check_scale(runs, held)
    form = _published(runs, information, held)
    factor, right = form.information.stacked(form.weights)
    condition, weakest, norms = scaled_condition(factor)
    if not condition < HIGHEST_CONDITION:
        raise DataError(not_determined(runs, form.free, weakest, norms))
    return _linear_solution(form, np.linalg.solve(factor / norms, right) / norms)


def lmi(runs: GainRuns, held: Gains | None = None, information: Information | None = None) -> GainFit:
    """Least squares as in `ls` under physical consistency of links and loads (linear matrix inequalities), gains, rotor
    inertias and dry and viscous friction not negative (Gautier, Briot 2014; Sousa, Cortesao 2014).

    `active` names the constraints that hold with equality. Covariances are those of the unconstrained equations.
    """
    import cvxpy as cp

    from bayesid.inertia import min_eigenvalue, pseudo_inertia

    information = compress(runs) if information is None else information
    _check_scale(runs, held)
    form = _published(runs, information, held)
    model, n = runs.model, runs.model.robot.dof
    factor, right = form.information.stacked(form.weights)
    norms = np.linalg.norm(factor, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    standard = cp.Variable(model.size)
    nominal = np.maximum(np.abs(model.nominal), 1e-2)
    scaled = cp.Variable(factor.shape[1])
    gains_free, columns_free = form.free[:n], form.free[n:]
    values = cp.multiply(1.0 / norms, scaled)
    base = model.base
    b, at = base.dimension, int(gains_free.sum())
    limits = [base.matrix @ cp.multiply(nominal, standard) == values[at : at + b]]
    basis = np.asarray(pseudo_inertia(np.eye(10)))

    def pseudo(inertial):
        return cp.sum([inertial[k] * basis[k] for k in range(10)])

    parameters = cp.multiply(nominal, standard)
    limits += [pseudo(parameters[10 * i : 10 * i + 10]) >> 0 for i in range(n)]
    if model.nonnegative.any():
        limits.append(standard[np.flatnonzero(model.nonnegative)] >= 0)
    kept = np.flatnonzero(np.tile(model.nonnegative[base.independent][runs.friction], runs.sets - 1))
    if len(kept):
        limits.append(values[at + b + kept] >= 0)
    position = np.cumsum(form.free) - 1
    for index in range(len(runs.loads)):
        columns = runs.load_columns(index)
        known = runs.known[columns]
        entries = [
            values[int(position[n + columns.start + k])] if columns_free[columns.start + k] else known[k] for k in range(10)
        ]
        limits.append(pseudo(entries) >> 0)
    if at:
        limits.append(values[:at] >= 0)
    weak = 1e-6 * float(np.linalg.norm(right))
    cost = cp.sum_squares((factor / norms) @ scaled - right) + cp.sum_squares(weak * standard)
    problem = cp.Problem(cp.Minimize(cost), limits)
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.SolverError as error:
        raise SolverError(f"the constrained drive-gain fit failed: {error}; use --method ml") from error
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise SolverError(f"the constrained drive-gain fit has no solution (solver: {problem.status}); use --method ml")
    solution = _linear_solution(form, np.asarray(values.value), "lmi")
    active = [
        f"{name}.drive_gain >= 0" for name, k in zip(model.robot.joint_names, solution.gains) if k < 1e-3 * solution.gains.max()
    ]
    links = np.asarray(min_eigenvalue(model.split(parameters.value)[0]))
    active += [f"{name}: pseudo-inertia" for name, low in zip(model.robot.link_names, links) if low < 1e-5]
    for index in range(len(runs.loads)):
        if float(min_eigenvalue(solution.coefficients[runs.load_columns(index)])) < 1e-5:
            active.append(f"payload {index + 1}: pseudo-inertia")
    return _with(solution, active=tuple(active))


def tls(runs: GainRuns, held: Gains | None = None, information: Information | None = None) -> GainFit:
    """Mixed total least squares (Van Huffel, Vandewalle 1991) of the homogeneous system K i - W beta - W_load pi_load = 0.

    Only currents are noisy: the columns of states are exact and eliminated by QR; current columns are scaled by their noise,
    which each joint's own fit tells. The known mass sets the scale of the smallest singular vector. One load mass, no held
    gain and no further known load parameter.
    """
    information = compress(runs) if information is None else information
    known = np.flatnonzero(np.isfinite(runs.known))
    if held is not None and held.known.any():
        raise DataError("total least squares holds no gain and takes no prior: use --method ml")
    if len(known) != 1:
        raise DataError("total least squares takes exactly one known load parameter, the mass: use --method ml")
    n, sigma = len(information.counts), current_noise(information)
    rows = []
    for j, factor in enumerate(information.factors):
        currents = np.zeros((len(factor), n))
        currents[:, j] = factor[:, -1]
        rows.append(np.hstack([-factor[:, :-1], currents]) / sigma[j])
    stacked = np.concatenate(rows)
    norms = np.linalg.norm(stacked, axis=0)
    if np.any(norms == 0):
        raise DataError(still_joints(runs, information) or "a column of the model is never excited: use richer motion")
    triangle = np.linalg.qr(stacked / norms, mode="r")
    p = runs.size
    noisy = triangle[p:, p:] * norms[p:] / np.sqrt(information.counts)
    gains = np.linalg.svd(noisy)[2][-1] / np.sqrt(information.counts)
    exact = np.linalg.solve(triangle[:p, :p], -triangle[:p, p:] @ (gains * norms[p:])) / norms[:p]
    scale = runs.known[known[0]] / exact[known[0]]
    solution = linearised(
        runs,
        information,
        scale * gains,
        scale * exact,
        np.concatenate([np.ones(n, bool), ~np.isfinite(runs.known)]),
        np.zeros((0, n + p - 1)),
        sigma,
        "tls",
    )
    return solution


def with_load_friction(runs: GainRuns, prior: Gains | None = None, rounds: int = 2) -> GainRuns:
    """The runs with a gear loss proportional to the torque it transmits, its size taken from likelihood fits, `rounds` times.

    The loss of a gear grows with the torque it transmits (5 to 7 % of it on the UR10e's large joints, where this halves the
    residual). The size of the torque depends so little on what is estimated that two rounds settle it.
    """
    if rounds < 1:
        raise DataError(f"load friction needs at least one round, got {rounds}")
    for _ in range(rounds):
        runs = dataclasses.replace(runs, torques=runs.rigid_torques(ml(runs, prior).coefficients))
    return runs


METHODS = {"ml": ml, "ls": ls, "lmi": lmi, "tls": tls}


def attenuation(runs: GainRuns, information: Information, fit: GainFit) -> np.ndarray:
    """(n,) share of noise in what is left of each current column once the other columns of `ls` are fitted.

    Least squares with a noisy regressor returns its coefficient lowered by about this share (Fuller 1987, section 1.1).
    """
    form = _published(runs, information, None)
    factor = form.information.stacked(form.weights)[0]
    n, sigma = len(information.counts), current_noise(information)
    norms = np.linalg.norm(factor, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    inverse = np.linalg.pinv(factor / norms)
    left = norms[:n] ** 2 / np.maximum(np.sum(inverse[:n] ** 2, axis=1), 1e-300)
    return np.clip(information.counts * sigma**2 / left, 0.0, 1.0)


def _likelihood(runs, information, known, prior, gains, coefficients, method):
    n, p = len(information.counts), runs.size
    variance = np.diag(prior.covariance)
    held = variance == 0.0
    gains, coefficients = np.where(held, prior.mean, gains), np.where(np.isfinite(known), known, coefficients)
    free = np.concatenate([~held, ~np.isfinite(known)])
    gains = np.array(gains, dtype=float)
    root, weighted = _prior_rows(prior, held)
    sigma = current_noise(information)
    if not np.any(coefficients[~np.isfinite(known)]):
        coefficients = _coefficients(information, gains, known, sigma)
    still = still_joints(runs, information, held)
    if still:
        raise DataError(still)
    moved = np.inf
    for _ in range(_ROUNDS):
        jacobian, residual = _rows(information, gains, coefficients)
        share = free.sum() / n
        sigma = np.sqrt(np.sum(residual**2, axis=1) / np.maximum(information.counts - share, 1.0))
        sigma = np.maximum(sigma, 1e-9 * max(sigma.max(), 1e-12))
        rows = (jacobian / sigma[:, None, None]).reshape(-1, n + p)
        right = (residual / sigma[:, None]).ravel()
        rows = np.vstack([rows, np.hstack([root, np.zeros((len(root), p))])])
        right = np.concatenate([right, weighted - root @ gains])
        rows[:, :n] *= gains
        rows = rows[:, free]
        norms = np.linalg.norm(rows, axis=0)
        if np.any(norms == 0):
            raise DataError(not_determined(runs, free, norms == 0, norms))
        step = np.zeros(n + p)
        step[free] = np.linalg.lstsq(rows / norms, right, rcond=None)[0] / norms
        moved = np.abs(step[:n]).max()
        length = min(1.0, _LONGEST_STEP / max(moved, 1e-300))
        gains, coefficients = gains * np.exp(length * step[:n]), coefficients + length * step[n:]
        if moved < _CONVERGED:
            break
    condition, weakest, _ = scaled_condition(np.linalg.qr(rows, mode="r"))
    if not condition < HIGHEST_CONDITION:
        raise DataError(not_determined(runs, free, weakest, norms))
    # Without a load some ratios may be open; what is asked of the relative fit, the load, does not depend on them.
    if moved > 1e-3 and method != "relative":
        worst = runs.model.robot.joint_names[int(np.argmax(np.abs(step[:n])))]
        raise SolverError(
            f"the likelihood of the drive gains has no maximum: the current of joint '{worst}' does not follow its torque; "
            "hold that gain with --hold JOINT=K or give a prior with --prior JOINT=K+-S"
        )
    return linearised(runs, information, gains, coefficients, free, root[:, ~held], sigma, method)


def _rows(information, gains, coefficients):
    """Jacobian (n, r, n + p) of the model current by (gains, coefficients) and residual (n, r) on the compressed rows."""
    factors = information.factors
    n, r, _ = factors.shape
    fitted = factors[:, :, :-1] @ coefficients / gains[:, None]
    jacobian = np.zeros((n, r, n + factors.shape[2] - 1))
    jacobian[np.arange(n), :, np.arange(n)] = -fitted / gains[:, None]
    jacobian[:, :, n:] = factors[:, :, :-1] / gains[:, None, None]
    return jacobian, factors[:, :, -1] - fitted


def _coefficients(information, gains, known, sigma):
    free = ~np.isfinite(known)
    rows = information.factors[:, :, :-1] / (gains * sigma)[:, None, None]
    right = information.factors[:, :, -1] / sigma[:, None] - rows @ np.where(free, 0.0, known)
    rows = rows.reshape(-1, rows.shape[2])[:, free]
    norms = np.linalg.norm(rows, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    out = np.where(free, 0.0, known)
    out[free] = np.linalg.lstsq(rows / norms, right.ravel(), rcond=None)[0] / norms
    return out


def linearised(runs, information, gains, coefficients, free, prior, sigma, method):
    n, p = len(information.counts), runs.size
    maps = np.zeros((n, p + 1, n + p + 1))
    for j in range(n):
        maps[j, :p, j] = -coefficients / gains[j] ** 2
        maps[j, :p, n : n + p] = np.eye(p) / gains[j]
        maps[j, :p, -1] = -coefficients / gains[j]
        maps[j, p, -1] = 1.0
    maps = maps[:, :, np.append(free, True)]
    prior = np.hstack([prior, np.zeros((len(prior), free[n:].sum()))]) if prior.shape[1] == free[:n].sum() else prior
    mapped = Mapped(runs, maps)
    return GainFit(
        method,
        np.zeros(int(free.sum())),
        sigma,
        1.0 / sigma**2,
        _map(information, maps),
        mapped,
        gains=gains,
        coefficients=coefficients,
        free=free,
        prior=prior,
        sigma=sigma,
    )


def _published(runs, information, held):
    n, p, known = len(information.counts), runs.size, runs.known
    variance = np.full(n, np.inf) if held is None else np.diag(held.covariance)
    if np.any((variance > 0) & np.isfinite(variance)):
        raise DataError("the published linear forms take no prior on a gain: hold it with --hold, or use --method ml")
    fixed = variance == 0
    free = np.concatenate([~fixed, ~np.isfinite(known)])
    maps = np.zeros((n, p + 1, n + p + 1))
    for j in range(n):
        maps[j, p, j] = 1.0
        maps[j, :p, n : n + p] = -np.eye(p)
        maps[j, :p, -1] = np.where(np.isfinite(known), known, 0.0)
        if fixed[j]:
            maps[j, p, -1] = -held.mean[j]
    maps = maps[:, :, np.append(free, True)]
    return GainFit(
        "ls",
        np.zeros(int(free.sum())),
        np.ones(n),
        np.ones(n),
        _map(information, maps),
        Mapped(runs, maps),
        gains=np.where(fixed, held.mean if held is not None else np.nan, np.nan),
        coefficients=known,
        free=free,
        prior=np.zeros((0, int(free.sum()))),
        sigma=current_noise(information),
    )


def _linear_solution(form, solution, method="ls"):
    n = len(form.weights)
    values = np.concatenate([form.gains, form.coefficients])
    values[form.free] = solution
    spare = np.maximum(form.information.counts - len(solution) / n, 1.0)
    noise = np.sqrt(form.information.squared_residuals(solution) / spare)
    return _with(form, method=method, beta=solution, noise=noise, gains=values[:n], coefficients=values[n:])


def _with(fit, **changes):
    return dataclasses.replace(fit, **changes)


def _map(information, maps):
    rows = information.factors @ maps
    size = maps.shape[2]
    padded = np.zeros((len(rows), max(rows.shape[1], size), size))
    padded[:, : rows.shape[1]] = rows
    return Information(np.linalg.qr(padded, mode="r"), information.counts)


def _prior_rows(prior, held):
    """Rows (k, n) and right-hand sides (k,) of a Gaussian prior on the gains that it knows and does not hold."""
    n = len(held)
    at = np.flatnonzero(prior.known & ~held)
    if not len(at):
        return np.zeros((0, n)), np.zeros(0)
    root = np.zeros((len(at), n))
    root[:, at] = np.linalg.inv(np.linalg.cholesky(prior.covariance[np.ix_(at, at)]))
    return root, root[:, at] @ prior.mean[at]


def _check_scale(runs, held):
    if all(load.mass is None for load in runs.loads) and (held is None or not held.known.any()):
        raise DataError("nothing sets the scale of the gains: give the payload's mass, or what is known of a gain")


def _scale(runs, start, prior):
    """Gain of the reference joint: from loads of known mass, else from what is known of gains."""
    masses = [(load.mass, start.coefficients[runs.load_columns(i)][0]) for i, load in enumerate(runs.loads) if load.mass]
    if masses:
        scale = sum(m * a for m, a in masses) / sum(a * a for _, a in masses)
        if scale <= 0:
            raise DataError(SWAPPED)
        return scale
    return float(np.median(prior.mean[prior.known] / start.gains[prior.known]))


SWAPPED = (
    "the payload comes out with a negative mass: the loaded and unloaded logs seem to be swapped; "
    "exchange --unloaded and --loaded"
)


def _load_effect(runs, information):
    """(n,) how much of each joint's current the loads explain beyond everything else, in noise variances."""
    first = runs.load_columns(0).start
    sigma = current_noise(information)
    out = np.zeros(len(sigma))
    for j, factor in enumerate(information.factors):
        used = np.linalg.norm(factor[:, :first], axis=0) > 0
        loads = np.linalg.norm(factor[:, first:-1], axis=0) > 0
        if not loads.any():
            continue
        stacked = _unit(np.hstack([factor[:, :first][:, used], factor[:, first:-1][:, loads]]))
        triangle = np.linalg.qr(np.hstack([stacked, factor[:, -1:]]), mode="r")
        out[j] = np.sum(triangle[used.sum() : used.sum() + loads.sum(), -1] ** 2) / sigma[j] ** 2
    return out


def _unit(columns):
    norms = np.linalg.norm(columns, axis=0)
    return columns / np.where(norms > 0, norms, 1.0)


def still_joints(runs: GainRuns, information: Information, held=None) -> str:
    """What to say of joints that do not move and whose gain is not `held` (n,); empty when there are none."""
    held = np.zeros(len(information.counts), bool) if held is None else held
    still = [runs.model.robot.joint_names[j] for j in np.flatnonzero((information.counts == 0) & ~held)]
    if not still:
        return ""
    return f"joint {', '.join(still)} does not move in these logs: its drive gain cannot be estimated; use a log that moves it"


def not_determined(runs, free, weakest, norms) -> str:
    """What to say of a fit of the parameters that are `free` whose columns, of such norms, depend on each other."""
    names = np.array([*(f"{name}.drive_gain" for name in runs.model.robot.joint_names), *runs.names])[free]
    zero = names[norms == 0]
    worst = zero if len(zero) else names[np.argsort(-np.abs(weakest))[:4]]
    if not _tells_load(runs, free):
        return (
            f"robot '{runs.model.robot.name}' turns what its last link carries about too few axes to determine "
            f"{', '.join(worst[:6])}, whatever its motion: gains from a load need a robot that moves it in all directions"
        )
    return f"the runs do not determine {', '.join(worst[:6])}: add a run with richer motion, or hold what is known (--hold)"


def _tells_load(runs, free, states: int = 40) -> bool:
    """Whether some motion of the robot could determine the unknown parameters of a load."""
    model, n = runs.model, runs.model.robot.dof
    q, qd, qdd = np.random.default_rng(0).uniform(-2.0, 2.0, (3, states, n))
    rows = model.regressor(q, qd, qdd)[:, :, 10 * (n - 1) : 10 * n].reshape(-1, 10)
    return all(
        scaled_condition(np.linalg.qr(rows[:, free[n:][runs.load_columns(load)]], mode="r"))[0] < HIGHEST_CONDITION
        for load in range(len(runs.loads))
        if free[n:][runs.load_columns(load)].any()
    )
