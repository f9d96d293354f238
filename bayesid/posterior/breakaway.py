"""Posterior of Stribeck friction with unknown breakaway speeds, from data compressed once.

Parameters are those of the model and one breakaway speed per joint; in coordinates, the logarithm of it. The likelihood is
that of the nodal information (see `bayesid.regression.velocity`), so that a gradient costs the same for any number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bayesid.dynamics import stribeck_law_about, stribeck_shapes
from bayesid.errors import DataError, SolverError
from bayesid.models import Model
from bayesid.posterior.continued import LinearProblem
from bayesid.posterior.likelihood import calibrated
from bayesid.posterior.prior import LinearPrior
from bayesid.posterior.target import Target
from bayesid.regression import BreakawayProfile, Observations, breakaway_profile

_DEFAULT_SPEED = 0.1
_ROUNDS = 60
_LONGEST_STEP = 0.5
_SETTLED = 1e-3
# A law is linearised about Coulomb torques of at least this size [N m]: speeds stay parameters where friction is nil.
_LEAST = 1e-3


@dataclass(frozen=True)
class BreakawayPrior:
    """Each breakaway speed is log-normal about `median` [rad/s] (None: what the robot states, else 0.1), independently, with
    the standard deviation `spread` of its logarithm."""

    median: float | None = None
    spread: float = 1.0

    def __post_init__(self):
        if (self.median is not None and not 0 < self.median < np.inf) or not 0 < self.spread < np.inf:
            raise DataError(f"a prior of breakaway speeds needs positive numbers, got {self.median} and {self.spread}")

    def of(self, prior: LinearPrior) -> LinearPrior:
        """The prior of a model whose law has breakaway speeds, with these in place of what was assumed of them."""
        model = prior.model
        speeds = np.flatnonzero([name.endswith(".breakaway_speed") for name in model.names])
        at = np.searchsorted(prior.free, speeds)
        stated = model.robot.friction("breakaway_speed")
        median = np.where(stated > 0, stated, _DEFAULT_SPEED) if self.median is None else self.median
        middle, spread = prior.middle.copy(), prior.spread.copy()
        middle[at], spread[at] = np.log(median), self.spread
        return replace(prior, middle=middle, spread=spread, logs=speeds)


@dataclass(frozen=True)
class NodalSquares:
    """A likelihood as samplers compile it: where among its `size` values those stand that each joint's rows meet."""

    size: int
    rest: tuple[int, ...]
    coulomb: tuple[int, ...]
    excess: tuple[int, ...]
    speed: tuple[int, ...]

    def potential(self, values, arrays):
        """Half the sum of squares, in JAX, at base parameters and log speeds (size,)."""
        import jax.numpy as jnp

        # Below and above the range of the basis the data are taken to say no more than at its ends.
        speeds = jnp.exp(jnp.clip(values[np.array(self.speed)], arrays["range"][0], arrays["range"][1]))[:, None]
        dry, bump = stribeck_shapes(arrays["knots"], speeds)
        nodal = values[np.array(self.coulomb)][:, None] * dry + values[np.array(self.excess)][:, None] * bump
        rest = jnp.broadcast_to(values[np.array(self.rest)], (len(self.speed), len(self.rest)))
        residual = jnp.einsum("nrk,nk->nr", arrays["factors"], jnp.concatenate([rest, nodal], axis=1)) - arrays["right"]
        return 0.5 * jnp.sum(residual**2)


@dataclass(frozen=True, eq=False)
class SpeedLikelihood:
    """log p(data | theta) = l(best + stretch (theta - best)), theta (b + n) base parameters of `model` with log speeds in the
    places of breakaway speeds, and l the weighted sum of squares of the nodal information.

    The joints' weights take care, at any distance from `best`, of the excess of their log speed's variance over that of
    independent residuals; `stretch`, upper triangular, makes the curvature at `best` that of the calibrated likelihood exactly
    (Ribatet, Cooley, Davison 2012). What the profile does not linearise is not stretched.
    """

    model: Model
    profile: BreakawayProfile
    best: np.ndarray
    stretch: np.ndarray
    places: tuple[np.ndarray, ...]
    noise: np.ndarray
    effective: np.ndarray
    samples: int
    description: dict = field(default_factory=dict)

    # Read as "not quadratic" by whoever needs a mode.
    counts = np.ones(1)

    @classmethod
    def of(cls, observations: Observations, gains_covariance=None) -> SpeedLikelihood:
        """Of runs and a model with Stribeck friction, at whatever speeds."""
        profile = breakaway_profile(observations)
        given, fit, nodal = observations.model, profile.fit, profile.data.nodal
        sizes = [fit.beta[at] for at in nodal.places[1:]]
        law = stribeck_law_about(fit.speeds, np.maximum(np.abs(sizes[0]), _LEAST), sizes[1])
        model = Model(given.robot, law, given.rotor)
        linear = calibrated(profile.linear, gains_covariance=gains_covariance)
        names, joints = model.base.names, given.robot.joint_names
        kept = np.array([names.index(name) for name in given.base.names])
        speed = np.array([names.index(f"{joint}.breakaway_speed") for joint in joints])
        order = np.append(kept, speed)[profile.linearised]
        white = np.sign(np.diag(profile.linear.factor))[:, None] * profile.linear.factor
        stretch = np.eye(len(names))
        stretch[np.ix_(order, order)] = np.linalg.solve(white, linear.rows[0])
        best = np.zeros(len(names))
        best[kept], best[speed] = fit.beta, np.log(fit.speeds)
        places = (*(kept[at] for at in nodal.places), speed)
        description = {**linear.description, "breakaway": profile.to_dict()}
        effective, samples = linear.effective, observations.count
        return cls(model, profile, best, stretch, places, fit.noise, effective, samples, description)

    @property
    def size(self) -> int:
        return len(self.best)

    @property
    def beta(self) -> np.ndarray:
        return self.best

    @property
    def rows(self) -> np.ndarray:
        return self.stretch[None]

    @property
    def target(self) -> np.ndarray:
        return (self.stretch @ self.best - self.best)[None]

    @property
    def form(self) -> NodalSquares:
        return NodalSquares(self.size, *(tuple(at.tolist()) for at in self.places))

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        factors = np.sqrt(self.profile.fit.weights)[:, None, None] * self.profile.data.information.factors
        return {
            "counts": self.counts,
            "factors": factors[:, :-1, :-1],
            "right": factors[:, :-1, -1],
            "knots": self.profile.data.nodal.basis.knots,
            "range": np.log(self.profile.data.nodal.basis.speeds),
        }

    def log_density(self, theta) -> float:
        """Logarithm of the likelihood at theta (b + n), up to a constant."""
        return float(-0.5 * np.sum(self._residual(self._shifted(theta))[0] ** 2))

    def quadratic(self, theta) -> tuple[np.ndarray, np.ndarray]:
        """R (k, b + n) and r (k,) of the quadratic -1/2 ||R theta - r||^2 of Gauss and Newton about theta."""
        residual, slopes = self._residual(self._shifted(theta))
        rows = slopes @ self.stretch
        factor = np.linalg.qr(np.column_stack([rows, rows @ theta - residual]), mode="r")
        return factor[:-1, :-1], factor[:-1, -1]

    def _shifted(self, theta):
        return self.best + self.stretch @ (theta - self.best)

    def _residual(self, theta):
        rest, coulomb, excess, speed = self.places
        nodal, arrays = self.profile.data.nodal, self.arrays
        inside = np.clip(theta[speed], *arrays["range"])
        maps = nodal.maps(np.exp(inside), (theta[coulomb], theta[excess]))
        maps[:, :, nodal.model.base.dimension :] *= inside == theta[speed]
        own = np.empty(nodal.model.base.dimension)
        for at, place in zip(nodal.places, (rest, coulomb, excess)):
            own[at] = theta[place]
        residual = arrays["factors"] @ (maps[:, :, : len(own)] @ own)[:, :, None]
        slopes = np.zeros((*residual.shape[:2], self.size))
        kept = np.empty(len(own), dtype=int)
        for at, place in zip(nodal.places, (rest, coulomb, excess)):
            kept[at] = place
        slopes[:, :, np.append(kept, speed)] = arrays["factors"] @ maps
        return (residual[:, :, 0] - arrays["right"]).ravel(), slopes.reshape(-1, self.size)


@dataclass(frozen=True, eq=False)
class SpeedTarget(Target):
    """Posterior of parameters and breakaway speeds, these in coordinates by their logarithms."""

    def problem(self) -> LinearProblem:
        """The density for samplers, whitened by the curvature at the centre; along log speeds, whose density may be flatter
        away from it, by the spread under the profile and the prior."""
        plain = super().problem()
        root, logs = plain.root, self.prior.logs
        wider = np.eye(len(root))
        for row, spread in zip(root[logs], self._spreads()):
            size = np.linalg.norm(row)
            wider += (max(spread / size, 1.0) ** 2 - 1.0) * np.outer(row, row) / size**2
        return LinearProblem(self.prior, self.likelihood, plain.center, root @ np.linalg.cholesky(wider))

    def _spreads(self):
        """(n,) standard deviation of each log speed as the profile of the data and the prior have it."""
        prior, profile = self.prior, self.likelihood.profile
        at = np.searchsorted(prior.free, prior.logs)
        logs = np.linspace(np.log(profile.grid[0]) - 3.0, np.log(profile.grid[-1]) + 3.0, 400)
        out = []
        for row, middle, spread in zip(profile.deviance, prior.middle[at], prior.spread[at]):
            exponent = np.interp(logs, np.log(profile.grid), row) + ((logs - middle) / spread) ** 2
            weight = np.exp(-0.5 * (exponent - exponent.min()))
            mean = np.average(logs, weights=weight)
            out.append(np.sqrt(np.average((logs - mean) ** 2, weights=weight)))
        return np.array(out)

    def _minimize(self, lost, lost_scalar):
        """Gauss and Newton's method: each round solves the convex program of the linearised likelihood, and goes as far towards
        its solution as the density itself improves."""
        matrix, logs = self.model.base.matrix, self.prior.logs

        def value(x):
            return -self.likelihood.log_density(matrix @ x) - sum(self._prior_terms(x, lost, lost_scalar))

        x = np.where(np.isin(np.arange(self.model.size), logs), self.likelihood.best @ matrix, self.prior.start)
        current = value(x)
        for _ in range(_ROUNDS):
            rows, right = self.likelihood.quadratic(matrix @ x)
            step = self._newton(x, rows @ matrix, right, lost, lost_scalar) - x
            length = min(1.0, _LONGEST_STEP / max(np.max(np.abs(step[logs])), 1e-300))
            while not (fresh := value(x + length * step)) < current and length > 1e-6:
                length *= 0.5
            if not current - fresh > _SETTLED:
                return x
            x, current = x + length * step, fresh
        raise SolverError(
            "the breakaway speeds of the posterior do not settle: the data say too little of them; hold them with "
            "--breakaway-speed, or choose another friction law"
        )
