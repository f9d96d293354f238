"""A normal prior in log-Cholesky coordinates of each link, an alternative to the Wishart prior.

A link's pseudo-inertia is P = U V V^T U^T (Rucker, Wensing 2022, "Smooth parameterization of rigid-body inertia"), U U^T its
nominal value and V = e^a [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]. Every coordinate vector
is a body, and the density of a body vanishes towards the edge of what exists faster than any power. Taken from the nominal,
coordinates read without units: 2 a is the logarithm of mass over nominal mass, d are those of sizes, t the centre of mass's
offset over the radius of gyration.

The mode is sought in these coordinates, but chains run in the linear parameters. Data hold sums of masses times lengths to a
thousandth where a mass itself is open: flat sheets there, thin bent ones in log-Cholesky coordinates, in which NUTS diverges on
the UR10e, or finds a hundred effective draws of 2800.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bayesid.errors import DataError, SolverError
from bayesid.inertia import from_log_cholesky, log_cholesky
from bayesid.models import Model
from bayesid.posterior.likelihood import Likelihood, Squares
from bayesid.posterior.prior import FromRobot, LinearPrior, Wishart, divergence, from_pseudo, pseudo
from bayesid.posterior.target import check_match, inverse_root
from bayesid.robots import Robot

_STEPS = 500
# Damping of Gauss-Newton steps: what it starts with, and what means that no step helps.
_DAMPING = (1e-3, 1e12)
# Spreads that are believable, and whose exponentials are numbers.
_SPREADS = (1e-4, 10.0)
# Standard deviations from its median at which a parameter contradicts its prior.
_STRAINED = 4.0
# Standard deviations below the nominal from which on the density is continued.
_FAR = 5.0
_UPPER = np.triu_indices(4)


@dataclass(frozen=True)
class LogCholesky:
    """Each link normal about its nominal in log-Cholesky coordinates, with standard deviations that say what is believed.

    `mass`: of log mass. `size`: of log size along each axis; shear has sqrt(2) times it, so that to first order no direction
    is preferred. `offset`: of the centre of mass, as part of the nominal radius of gyration. `friction`: of the logarithms of
    rotor inertia and friction, whose medians are the robot's own values, or, where it states none, a small part of the joint's
    torque limit; friction offsets are normal. The links' nominal values come from `robot`, if given (its own CAD file).
    `Wishart(12)` has spreads of 0.43, 0.32 and 0.32.
    """

    mass: float = 0.3
    size: float = 0.15
    offset: float = 0.2
    friction: float = 0.5
    robot: Robot | None = None

    def of(self, model: Model) -> LogCholeskyPrior:
        for name in ("mass", "size", "offset", "friction"):
            value = getattr(self, name)
            if not _SPREADS[0] <= value <= _SPREADS[1]:
                raise DataError(
                    f"the prior's spread of {name} must be a number from {_SPREADS[0]:g} to {_SPREADS[1]:g}, got {value}: it "
                    "is a part of the nominal value, 0.2 for 20 %"
                )
        linear = (FromRobot(self.robot) if self.robot else Wishart()).of(model)
        one = [self.mass / 2.0, *(self.size,) * 3, *(np.sqrt(2.0) * self.size,) * 3, *(self.offset,) * 3]
        return LogCholeskyPrior(model, linear, np.tile(one, (model.robot.dof, 1)), self.friction)


@dataclass(frozen=True, eq=False)
class LogCholeskyPrior:
    """Standard parameters x of standard normal coordinates c (P,), in the order of the model's parameters.

    Links: log-Cholesky coordinates `widths` (n, 10) times c from the nominal; positive parameters: median exp(`friction` c);
    offsets: normal. `linear` holds the nominal values.
    """

    model: Model
    linear: LinearPrior
    widths: np.ndarray
    friction: float

    @property
    def start(self) -> np.ndarray:
        """(P,) the prior median."""
        return self.linear.start

    @property
    def dof(self) -> np.ndarray:
        """(n,) degrees of freedom of the Wishart distributions with the same spread of mass."""
        return 0.5 / self.widths[:, 0] ** 2

    @property
    def description(self) -> dict:
        """JSON-able: the spreads of each link and of friction."""
        spreads = {"mass": 2.0 * self.widths[:, 0], "size": self.widths[:, 1], "offset": self.widths[:, 7]}
        spreads |= {"dof": self.dof}
        return {"name": "log-cholesky", **{k: v.tolist() for k, v in spreads.items()}, "friction": self.friction}

    def with_dof(self, dof) -> LogCholeskyPrior:
        """The same prior with all spreads of each link scaled to other degrees of freedom (n,)."""
        return replace(self, widths=self.widths * np.sqrt(self.dof / np.asarray(dof))[:, None])

    def target(self, likelihood: Likelihood) -> LogCholeskyTarget:
        """The posterior with this prior."""
        return LogCholeskyTarget(self, likelihood)

    def sample(self, key, draws: int) -> np.ndarray:
        """(draws, P) parameters from the prior; `key` is a seed or a Generator."""
        return self.parameters(np.random.default_rng(key).normal(size=(draws, self.model.size)))

    def strained(self, parameters) -> list[str]:
        """Names of rotor inertias and friction parameters (P,) that no such prior expects."""
        far = np.abs(self.coordinates(parameters)) > _STRAINED
        return [self.model.names[i] for i in np.arange(len(far))[self.linear.positive] if far[i]]

    def divergence(self, parameters) -> np.ndarray:
        """(..., n) entropic divergence of each link from its nominal, for parameters (..., P)."""
        return divergence(self.linear.centers, parameters)

    def parameters(self, coordinates) -> np.ndarray:
        """(..., P) standard parameters of coordinates (..., P)."""
        linear, n = self.linear, len(self.widths)
        coordinates = np.asarray(coordinates, dtype=float)
        out = np.empty(coordinates.shape)
        links = coordinates[..., : 10 * n].reshape(*coordinates.shape[:-1], n, 10) * self.widths
        bodies = np.einsum("nkl,...nl->...nk", self.maps, np.asarray(from_log_cholesky(links)))
        out[..., : 10 * n] = bodies.reshape(*coordinates.shape[:-1], -1)
        out[..., linear.positive] = linear.scale * np.exp(self.friction * coordinates[..., linear.positive])
        out[..., linear.free] = linear.middle + linear.spread * coordinates[..., linear.free]
        return out

    def coordinates(self, parameters) -> np.ndarray:
        """(..., P) coordinates of standard parameters (..., P), NaN where no body exists."""
        linear, n = self.linear, len(self.widths)
        parameters = np.asarray(parameters, dtype=float)
        out = np.empty(parameters.shape)
        links = parameters[..., : 10 * n].reshape(*parameters.shape[:-1], n, 10)
        relative = np.einsum("nkl,...nl->...nk", np.linalg.inv(self.maps), links)
        out[..., : 10 * n] = (np.asarray(log_cholesky(relative)) / self.widths).reshape(*parameters.shape[:-1], -1)
        positive = parameters[..., linear.positive] / linear.scale
        out[..., linear.positive] = np.log(np.where(positive > 0, positive, np.nan)) / self.friction
        out[..., linear.free] = (parameters[..., linear.free] - linear.middle) / linear.spread
        return out

    def jacobian(self, coordinates) -> np.ndarray:
        """(P, P) derivative of the parameters at coordinates (P,)."""
        linear, n = self.linear, len(self.widths)
        out = np.zeros((self.model.size, self.model.size))
        for i in range(n):
            at = slice(10 * i, 10 * i + 10)
            factor = _factor(coordinates[at] * self.widths[i])
            # d(V V^T) = dV V^T + its transpose.
            half = _directions(factor) @ factor.T
            relative = from_pseudo(half + np.swapaxes(half, 1, 2))
            out[at, at] = self.maps[i] @ relative.T * self.widths[i]
        positive = linear.scale * np.exp(self.friction * coordinates[linear.positive])
        out[linear.positive, linear.positive] = self.friction * positive
        out[linear.free, linear.free] = linear.spread
        return out

    def log_density(self, parameters) -> float:
        """Logarithm of the density of standard parameters (P,), normalised; -inf where no body exists.

        That of the coordinates, less the logarithm of the volume that a unit of them makes: with m = e^(2 a), the map to the
        standard parameters of V V^T has the determinant 2 m 8 m^9 e^(2 d1 + 3 d2 + 4 d3), up to the constant of from moments
        to moments of inertia, which is 2.
        """
        c = self.coordinates(parameters)
        if not np.isfinite(c).all():
            return -np.inf
        linear, n = self.linear, len(self.widths)
        links = c[: 10 * n].reshape(n, 10) * self.widths
        volume = np.sum(20.0 * links[:, 0] + links[:, 1:4] @ [2.0, 3.0, 4.0]) + n * np.log(32.0)
        volume += np.sum(np.linalg.slogdet(self.maps)[1]) + np.sum(np.log(self.widths))
        volume += np.sum(np.log(self.friction * parameters[linear.positive])) + np.sum(np.log(linear.spread))
        return float(-0.5 * c @ c - 0.5 * len(c) * np.log(2.0 * np.pi) - volume)

    @property
    def maps(self) -> np.ndarray:
        """(n, 10, 10) map from standard parameters of V V^T to those of the link, U V V^T U^T."""
        units = pseudo(np.eye(10))
        turned = [from_pseudo(root @ units @ root.T).T for root in map(_upper_root, self.linear.centers)]
        return np.array(turned)


@dataclass(frozen=True, eq=False)
class LogCholeskyTarget:
    """Posterior of P standard parameters: a compressed likelihood times a prior in log-Cholesky coordinates."""

    prior: LogCholeskyPrior
    likelihood: Likelihood
    # Towards small masses the density grows steep: short steps.
    target_accept = 0.95

    def __post_init__(self):
        check_match(self.prior.model, self.likelihood)

    @property
    def model(self) -> Model:
        return self.prior.model

    def log_density(self, parameters) -> float:
        """Logarithm of the posterior density at (P,), up to a constant; -inf where no body exists."""
        return self.likelihood.log_density(self.model.base.project(parameters)) + self.prior.log_density(parameters)

    def center(self) -> np.ndarray:
        """(P,) the parameters at the mode of the coordinates."""
        return self.prior.parameters(self.mode())

    def mode(self) -> np.ndarray:
        """(P,) coordinates of highest density, by damped Gauss-Newton steps (Levenberg, Marquardt)."""
        prior, likelihood, matrix = self.prior, self.likelihood, self.model.base.matrix

        def value(c):
            return 0.5 * c @ c - likelihood.log_density(matrix @ prior.parameters(c))

        c = np.zeros(self.model.size)
        current, damping = value(c), _DAMPING[0]
        for _ in range(_STEPS):
            rows, right = self._rows(c)
            normal = rows.T @ rows + np.eye(len(c))
            slope = rows.T @ right + c
            while damping < _DAMPING[1]:
                step = -np.linalg.solve(normal + damping * np.diag(np.diag(normal)), slope)
                fresh = value(c + step)
                if fresh < current:
                    break
                damping *= 4.0
            else:
                return self._settled(c, normal, slope)
            gain = current - fresh
            c, current, damping = c + step, fresh, max(damping / 8.0, 1e-12)
            if gain < 1e-10 * max(1.0, abs(current)):
                return self._settled(c, normal, slope)
        raise SolverError("the posterior's mode was not found: the prior and the data contradict each other strongly")

    def problem(self) -> LogCholeskyProblem:
        """The density for samplers, whitened by the Gauss-Newton curvature at `center`."""
        mode = self.mode()
        center, inverse = self.prior.parameters(mode), np.linalg.inv(self.prior.jacobian(mode))
        rows, _ = self.likelihood.quadratic(self.model.base.project(center))
        rows = rows @ self.model.base.matrix
        return LogCholeskyProblem(self.prior, self.likelihood, center, inverse_root(rows.T @ rows + inverse.T @ inverse))

    def _rows(self, c):
        """Derivative (k, P) and values (k,) of the residuals whose squares agree with the likelihood about coordinates c."""
        matrix = self.model.base.matrix
        beta = matrix @ self.prior.parameters(c)
        rows, right = self.likelihood.quadratic(beta)
        return rows @ matrix @ self.prior.jacobian(c), rows @ beta - right

    def _settled(self, c, normal, slope):
        # The Newton decrement is what is left to gain.
        if slope @ np.linalg.solve(normal, slope) > 1e-2:
            raise SolverError("the posterior's mode does not settle: the noise of a joint is not determined by the data")
        return c


@dataclass(frozen=True)
class LogCholeskyLayout:
    """How many links, positive and free parameters there are beside the squares of the data."""

    squares: Squares
    links: int
    positive: int

    def potential(self, arrays):
        """One matrix product and elementwise functions of its result."""
        import jax.numpy as jnp

        ends = np.cumsum([self.squares.size, 10 * self.links, self.positive])

        def potential(z):
            values = arrays["matrix"] @ z + arrays["offset"]
            out = self.squares.potential(values[: ends[0]], arrays)
            bodies = values[ends[0] : ends[1]].reshape(self.links, 10)
            positive = values[ends[1] : ends[2]]
            return out + _energy(bodies, positive, values[ends[2] :], arrays, _floored(jnp), jnp)

        return potential


class LogCholeskyProblem:
    """Posterior of linear parameters x = center + root z, positive everywhere: see `_floored`."""

    def __init__(self, prior: LogCholeskyPrior, likelihood: Likelihood, center, root):
        self.prior, self.center, self.root = prior, center, root
        self.names, self.size = prior.model.names, len(center)
        linear, n = prior.linear, len(prior.widths)
        self.layout = LogCholeskyLayout(likelihood.form, n, len(linear.positive))
        select = np.eye(self.size)
        rows = (likelihood.rows @ prior.model.base.matrix).reshape(-1, self.size)
        links = np.zeros((n, 10, self.size))
        for i, inverse in enumerate(np.linalg.inv(prior.maps)):
            links[i][:, 10 * i : 10 * i + 10] = pseudo(inverse.T)[:, _UPPER[0], _UPPER[1]].T
        positive = select[linear.positive] / linear.scale[:, None]
        free = select[linear.free] / linear.spread[:, None]
        matrix = np.concatenate([rows, links.reshape(-1, self.size), positive, free])
        offset = matrix @ center
        offset[: len(rows)] -= likelihood.target.ravel()
        offset[len(offset) - len(free) :] -= linear.middle / linear.spread
        spread = np.sqrt(4.0 * prior.widths[:, 0] ** 2 + 4.0 * prior.widths[:, 1] ** 2)
        self.arrays = {
            "matrix": matrix @ root,
            "offset": offset,
            **likelihood.arrays,
            "widths": prior.widths,
            "friction": np.array(prior.friction),
            "mass_floor": np.exp(-_FAR * 2.0 * prior.widths[:, 0]),
            "floor": np.exp(-_FAR * spread),
            "friction_floor": np.array(np.exp(-_FAR * prior.friction)),
        }

    def parameters(self, whitened) -> np.ndarray:
        return self.center + whitened @ self.root.T

    def accept(self, whitened, rng) -> np.ndarray:
        exact, continued = self._prior_energy(whitened, _exact), self._prior_energy(whitened, _floored(np))
        return np.log(rng.random(exact.shape)) < continued - exact

    def exists(self, whitened) -> np.ndarray:
        return np.isfinite(self._prior_energy(whitened, _exact))

    def _prior_energy(self, whitened, pivot):
        """(...,) negative logarithm of the prior, up to a constant, infinite where a pivot is none."""
        values = whitened @ self.arrays["matrix"].T + self.arrays["offset"]
        n, first = self.layout.links, self.layout.squares.size
        bodies = values[..., first : first + 10 * n].reshape(*values.shape[:-1], n, 10)
        positive = values[..., first + 10 * n : first + 10 * n + self.layout.positive]
        free = values[..., first + 10 * n + self.layout.positive :]
        with np.errstate(invalid="ignore"):
            energy = _energy(bodies, positive, free, self.arrays, pivot, np)
        return np.where(np.isnan(energy), np.inf, energy)


def _energy(bodies, positive, free, arrays, pivot, numpy):
    """Negative logarithm of the prior's density of linear parameters, up to a constant.

    `bodies` (..., n, 10) are the upper entries of V V^T, `positive` over their medians, `free` over their spreads. Cholesky's
    elimination, from the last row on, with `pivot(p, floor)` in the place of every pivot p.
    """
    xx, xy, xz, hx, yy, yz, hy, zz, hz, mass = (bodies[..., k] for k in range(10))
    m = pivot(mass, arrays["mass_floor"])
    x, y, z = hx / m, hy / m, hz / m
    p3 = pivot(zz - hz * z, arrays["floor"])
    third = numpy.sqrt(p3 * m)
    yz, xz = yz - hy * z, xz - hx * z
    p2 = pivot(yy - hy * y - yz * yz / p3, arrays["floor"])
    xy = xy - hx * y - xz * yz / p3
    p1 = pivot(xx - hx * x - xz * xz / p3 - xy * xy / p2, arrays["floor"])
    log_m, log_1, log_2, log_3 = (numpy.log(p) for p in (m, p1, p2, p3))
    sizes = [0.5 * log_m, *(0.5 * (p - log_m) for p in (log_1, log_2, log_3))]
    theta = numpy.stack([*sizes, xy / numpy.sqrt(p2 * m), yz / third, xz / third, x, y, z], axis=-1)
    logarithm = numpy.log(pivot(positive, arrays["friction_floor"]))
    out = 0.5 * numpy.sum((theta / arrays["widths"]) ** 2, axis=(-2, -1))
    # The logarithm of the volume that a unit of coordinates makes, see `LogCholeskyPrior.log_density`.
    out = out + numpy.sum(5.5 * log_m + log_1 + 1.5 * log_2 + 2.0 * log_3, axis=-1)
    out = out + numpy.sum(0.5 * (logarithm / arrays["friction"]) ** 2 + logarithm, axis=-1)
    return out + 0.5 * numpy.sum(free**2, axis=-1)


def _exact(p, floor):
    return np.where(p > 0, p, np.nan)


def _floored(numpy):
    """Pivots whose logarithm goes on as its tangent below a floor: the density has no edge, and a sampler meets no wall.

    The floor lies five standard deviations of the prior below the nominal. Draws below it are kept with the probability of
    the density over its continuation, as far as that is below one, and those without a body are not kept.
    """

    def floored(p, floor):
        return numpy.where(p > floor, p, floor * numpy.exp(numpy.minimum(p, floor) / floor - 1.0))

    return floored


def _upper_root(body):
    """Upper triangular U with U U^T = body."""
    return np.linalg.cholesky(body[::-1, ::-1])[::-1, ::-1]


def _factor(theta):
    """(4, 4) the factor V of log-Cholesky coordinates (10,)."""
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta
    rows = [[np.exp(d1), s12, s13, t1], [0.0, np.exp(d2), s23, t2], [0.0, 0.0, np.exp(d3), t3], [0.0, 0.0, 0.0, 1.0]]
    return np.exp(alpha) * np.array(rows)


def _directions(factor):
    """(10, 4, 4) derivatives of the factor by its coordinates."""
    out = np.zeros((10, 4, 4))
    out[0] = factor
    for k, (row, column) in enumerate(_PLACES, start=1):
        out[k, row, column] = factor[row, column] if row == column else factor[3, 3]
    return out


_PLACES = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
