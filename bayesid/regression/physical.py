"""Physically consistent least squares: the same normal equations under linear matrix inequalities, one per link."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from bayesid.errors import DataError, SolverError
from bayesid.inertia import min_eigenvalue, pseudo_inertia
from bayesid.models import Model
from bayesid.regression.least_squares import Fit

# Smallest eigenvalue that the pseudo-inertia of a link may have [kg, kg m^2 in SI units], and as part of its nominal one.
MARGIN = 1e-6
_PART = 1e-2


@dataclass(frozen=True)
class Constraints:
    """What physics and the user know of the standard parameters.

    The pseudo-inertia of every link is positive definite (Wensing, Kim, Slotine 2017); rotor inertia, viscous and Coulomb
    friction are not negative. `mass_bounds` maps a link to its least and greatest mass [kg], `total_mass` bounds their sum.
    `pull` > 0 adds the entropic divergence from the nominal pseudo-inertias with that weight (Lee, Wensing, Park 2020);
    directions that neither data nor constraints determine are otherwise held by a Gaussian of the nominal's own size.
    """

    mass_bounds: tuple[tuple[str, float, float], ...] = ()
    total_mass: tuple[float, float] | None = None
    pull: float = 0.0


@dataclass(frozen=True, eq=False)
class PhysicalFit:
    """Standard parameters (P,), draws (S, P) of a parametric bootstrap, and the constraints that hold with equality."""

    parameters: np.ndarray
    draws: np.ndarray
    active: tuple[str, ...]


class PhysicalProgram:
    """The convex program min ||R beta(pi) - r||^2 + prior over consistent pi, compiled once and solved for many r.

    It is solved for the deviation from the unconstrained minimum in the coordinates where the cost is the squared distance:
    so the solver's tolerance is one in standard deviations, and only the right-hand side of the constraints changes.
    """

    def __init__(self, model: Model, factor: np.ndarray, constraints: Constraints):
        import cvxpy as cp

        if not 0 <= constraints.pull < np.inf:
            raise DataError(f"the pull to the nominal model must be a number from 0 on, got {constraints.pull}")
        self.model, self.constraints = model, constraints
        self.center, self.spread = _prior(model)
        self._factor = factor
        self._orthogonal, upper = np.linalg.qr(np.vstack([factor @ model.base.matrix * self.spread, np.eye(model.size)]))
        self._upper, self._inverse = upper, np.linalg.inv(upper)
        self._deviation = cp.Variable(model.size)
        self._minimum = cp.Parameter(model.size)
        parameters = cp.multiply(self.spread, self._minimum + self._inverse @ self._deviation)
        cost = cp.sum_squares(self._deviation)
        pseudo = [_pseudo_inertia(cp, parameters[10 * i : 10 * i + 10]) for i in range(model.robot.dof)]
        if constraints.pull > 0:
            nominal = np.asarray(pseudo_inertia(_consistent_nominal(model)))
            cost += constraints.pull * cp.sum(
                [-cp.log_det(p) + cp.trace(np.linalg.inv(n) @ p) for p, n in zip(pseudo, nominal)]
            )
        limits = [p - margin * np.eye(4) >> 0 for p, margin in zip(pseudo, margins(model))]
        if model.nonnegative.any():
            at = np.flatnonzero(model.nonnegative)
            limits.append(self._minimum[at] + self._inverse[at] @ self._deviation >= 0)
        limits += self._mass_limits(parameters)
        self._problem = cp.Problem(cp.Minimize(cost), limits)

    def solve(self, beta, center=None) -> np.ndarray:
        """Standard parameters (P,) for unconstrained base parameters (b,). Raises SolverError when there are none."""
        import cvxpy as cp

        self._minimum.value = self._unconstrained(beta, self.center if center is None else center)
        status = self._solved(cp)
        if status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
            raise SolverError("no physically consistent parameters meet the mass bounds: widen them")
        if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            raise SolverError(f"the physically consistent fit did not converge (solver: {status}); use --method wls")
        found = (self._minimum.value + self._inverse @ self._deviation.value) * self.spread
        if self._problem.status == cp.OPTIMAL_INACCURATE and min_eigenvalues(self.model, found).min() <= 0:
            raise SolverError("the physically consistent fit stopped short of consistency; use --method wls")
        return found

    def solve_many(self, betas, centers) -> np.ndarray:
        """Standard parameters (S, P) for base parameters (S, b) and prior centres (S, P).

        Only the right-hand side of the constraints differs, so cvxpy's canonical form is made once and shifted; what the
        solver does not settle that way, and a program with a pull, goes through `solve`.
        """
        import cvxpy as cp

        if self.constraints.pull > 0 or self._minimum.value is None:
            return np.array([self.solve(beta, center) for beta, center in zip(betas, centers, strict=True)])
        data, chain, _ = self._problem.get_problem_data(cp.CLARABEL)
        first, right = self._minimum.value.copy(), data["b"]
        slope = data["A"][:, : self.model.size] @ self._upper
        found = []
        for beta, center in zip(betas, centers, strict=True):
            minimum = self._unconstrained(beta, center)
            solution = chain.solve_via_data(self._problem, {**data, "b": right - slope @ (minimum - first)})
            if str(solution.status) == "Solved":
                deviation = np.array(solution.x[: self.model.size])
                found.append((minimum + self._inverse @ deviation) * self.spread)
            else:
                found.append(self.solve(beta, center))
        return np.array(found)

    def _unconstrained(self, beta, center):
        right = np.concatenate([self._factor @ beta, center / self.spread])
        return self._inverse @ (self._orthogonal.T @ right)

    def _solved(self, cp):
        """Status of the solver; what its own scaling of the data keeps from converging is tried once more without it."""
        for settings in ({}, {"warm_start": False, "equilibrate_enable": False, "max_iter": 1000}):
            try:
                with warnings.catch_warnings():
                    # Reduced accuracy is judged by the caller, by the consistency of what was found.
                    warnings.filterwarnings("ignore", message="Solution may be inaccurate")
                    self._problem.solve(solver=cp.CLARABEL, **settings)
            except cp.SolverError as error:
                status = str(error)
                continue
            status = self._problem.status
            if status != cp.USER_LIMIT:
                break
        return status

    def _mass_limits(self, parameters):
        import cvxpy as cp

        names, limits = self.model.robot.link_names, []
        for link, least, most in self.constraints.mass_bounds:
            if link not in names:
                raise DataError(f"mass bounds name link '{link}', robot '{self.model.robot.name}' has {', '.join(names)}")
            if not 0 <= least <= most:
                raise DataError(f"mass bounds of '{link}' must be 0 <= least <= greatest, got {least} and {most}")
            at = 10 * names.index(link)
            limits += [parameters[at] >= least, parameters[at] <= most]
        if self.constraints.total_mass is not None:
            least, most = self.constraints.total_mass
            if not 0 <= least <= most:
                raise DataError(f"the total mass must be bounded by 0 <= least <= greatest, got {least} and {most}")
            total = cp.sum(parameters[0 : 10 * len(names) : 10])
            limits += [total >= least, total <= most]
        return limits


def physical(
    fit: Fit,
    covariance: np.ndarray,
    dof: float,
    *,
    constraints: Constraints | None = None,
    draws: int = 200,
    seed: int = 0,
) -> PhysicalFit:
    """Physically consistent parameters for a least-squares fit with its covariance (b, b).

    The bootstrap draws base parameters from the fit's distribution and the prior's centre from its own spread
    (randomise, then optimise), and solves the same program for each: so intervals of parameters that the data do not
    determine are as wide as prior and constraints leave them.
    """
    constraints = constraints or Constraints()
    model = fit.observations.model
    program = PhysicalProgram(model, fit.factor, constraints)
    parameters = program.solve(fit.beta)
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(covariance)
    shifts = rng.normal(size=(draws, len(values))) * np.sqrt(np.clip(values, 0.0, None)) @ vectors.T
    if np.isfinite(dof):
        shifts *= np.sqrt(dof / rng.chisquare(dof, size=(draws, 1)))
    centers = program.center + program.spread * rng.normal(size=(draws, model.size))
    sampled = program.solve_many(fit.beta + shifts, centers).reshape(draws, model.size)
    return PhysicalFit(parameters, sampled, _active(model, parameters))


def min_eigenvalues(model: Model, parameters) -> np.ndarray:
    """(n,) smallest eigenvalue of each link's pseudo-inertia for standard parameters (P,)."""
    return np.asarray(min_eigenvalue(model.split(parameters)[0]))


def margins(model: Model) -> np.ndarray:
    """(n,) smallest eigenvalue that the fit leaves each link's pseudo-inertia: far below the nominal one, also of links of
    a few grams."""
    nominal = min_eigenvalues(model, model.nominal)
    return np.where(nominal > 0, np.minimum(MARGIN, _PART * nominal), MARGIN)


def _pseudo_basis():
    basis = np.zeros((4, 4, 10))
    basis[3, 3, 0] = 1.0
    for axis in range(3):
        basis[axis, 3, 1 + axis] = basis[3, axis, 1 + axis] = 1.0
    diagonal = (4, 7, 9)
    for axis in range(3):
        for other in range(3):
            basis[axis, axis, diagonal[other]] = -0.5 if other == axis else 0.5
    for (row, column), index in {(0, 1): 5, (0, 2): 6, (1, 2): 8}.items():
        basis[row, column, index] = basis[column, row, index] = -1.0
    return basis


_PSEUDO = _pseudo_basis()


def _pseudo_inertia(cp, inertial):
    return cp.reshape(_PSEUDO.reshape(16, 10) @ inertial, (4, 4), order="C")


def _prior(model: Model):
    """Centre (P,) and spread (P,) of the weak Gaussian that holds what data do not determine."""
    inertials, _, _ = model.split(model.nominal)
    mass = np.maximum(inertials[:, 0], 0.1)
    first = np.linalg.norm(inertials[:, 1:4], axis=1) / mass
    turning = np.abs(inertials[:, [4, 7, 9]]).max(axis=1) / mass
    length = np.maximum(np.sqrt(first**2 + turning), 0.05)
    spread = np.ones(model.size)
    spread[: 10 * model.robot.dof] = np.column_stack([mass, *[mass * length] * 3, *[mass * length**2] * 6]).ravel()
    spread[10 * model.robot.dof :] = 10.0
    return model.nominal, spread


def _consistent_nominal(model: Model):
    inertials, _, _ = model.split(model.nominal)
    smallest = min_eigenvalues(model, model.nominal)
    if np.any(smallest <= 0):
        bad = model.robot.link_names[int(np.argmin(smallest))]
        raise DataError(
            f"the nominal inertial parameters of link '{bad}' are not physically consistent, so the fit cannot be pulled "
            "towards them: project the robot first (bayesid robots show NAME --project FILE) or drop the pull"
        )
    return inertials


def _active(model: Model, parameters):
    smallest = min_eigenvalues(model, parameters)
    active = [
        f"{link}: pseudo-inertia"
        for link, low, margin in zip(model.robot.link_names, smallest, margins(model))
        if low < 10 * margin
    ]
    for index in np.flatnonzero(model.nonnegative):
        if parameters[index] < 1e-5:
            active.append(f"{model.names[index]} >= 0")
    return tuple(active)
