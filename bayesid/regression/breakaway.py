"""The breakaway speed of each joint's Stribeck friction, from data compressed once: best values and intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bayesid.errors import DataError
from bayesid.regression.covariance import HAC, Covariance
from bayesid.regression.information import Information, compress
from bayesid.regression.least_squares import HIGHEST_CONDITION, Fit, scaled_condition
from bayesid.regression.observations import Observations
from bayesid.regression.velocity import AtSpeeds, Nodal, VelocityBasis, mapped
from bayesid.results.estimate import t_quantile

# Standard deviation of a log speed, residuals taken as independent, from which its joint is not linearised.
WIDEST = 0.5
_SWEEPS = 12
_COARSE, _FINE = 25, 121
_SETTLED = 1e-3


@dataclass(frozen=True, eq=False)
class NodalInformation:
    """All that least squares at any breakaway speeds needs of the samples: `information` of the columns of `nodal`."""

    nodal: Nodal
    information: Information

    @classmethod
    def of(cls, observations: Observations, basis: VelocityBasis | None = None) -> NodalInformation:
        """One pass over the samples; `basis` defaults to one over the runs' own velocities."""
        nodal = Nodal(observations, VelocityBasis.over(observations.runs) if basis is None else basis)
        return cls(nodal, compress(nodal))

    def at(self, speeds) -> Information:
        """Information of the model's base parameters at breakaway speeds (n,) [rad/s]."""
        return mapped(self.information, self.nodal.maps(speeds))

    def __add__(self, other: NodalInformation) -> NodalInformation:
        return NodalInformation(self.nodal, self.information + other.information)


@dataclass(frozen=True, eq=False)
class SpeedFit:
    """Breakaway speeds (n,) [rad/s] of least squares with the base parameters (b,), the noise (n,) and the weights (n,) of the
    joints that go with them."""

    speeds: np.ndarray
    beta: np.ndarray
    noise: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class BreakawayProfile:
    """What the data say of each joint's breakaway speed [rad/s].

    `data` is what they were found from, `fit` has the best ones. `interval` (n, 2) holds the speeds whose profile likelihood,
    scaled to the covariance that the residuals really give, is within the quantile of `level`; `open` (n, 2) marks ends that
    the range searched cut off. `grid` (G,) are the speeds tried and `deviance` (n, G) the scaled likelihood ratios. `linear` is
    a fit to those of the b base parameters and n log speeds that `linearised` (k,) lists: excesses that are zero and speeds
    that the data leave open are not among them.
    """

    data: NodalInformation
    fit: SpeedFit
    interval: np.ndarray
    open: np.ndarray
    level: float
    grid: np.ndarray
    deviance: np.ndarray
    linear: Fit
    linearised: np.ndarray

    def to_dict(self) -> dict:
        """JSON-able: best speeds, intervals, and how exactly the basis follows friction."""
        basis = self.data.nodal.basis
        return {
            "speeds": self.fit.speeds.tolist(),
            "interval": self.interval.tolist(),
            "level": self.level,
            "cut_off": self.open.tolist(),
            "range": list(basis.speeds),
            "knots": basis.knots.shape[1],
            "basis_error": basis.error,
        }


def fit_speeds(data: NodalInformation, prior=None, start=None, inflation=1.0) -> SpeedFit:
    """Weighted least squares over base parameters and breakaway speeds; joints weigh by the inverse of their residual variance
    times `inflation` (n,).

    The excess of the breakaway torque over the Coulomb torque is not negative. Variable projection, one speed at a time: base
    parameters are eliminated by QR for every speed tried. `prior`, a centre (b,) and a root (k, b), adds ||root (beta -
    centre)||^2. With `start` (n,) speeds are sought within a factor three of it, else in the whole range of the basis. Joints
    that never move keep theirs.
    """
    counts = data.information.counts
    low, high = np.log(data.nodal.basis.speeds)
    reach = (low, high)
    logs = np.full(len(counts), 0.5 * (low + high)) if start is None else np.log(start)
    found = _solve(data, logs, prior, inflation)
    for sweep in range(_SWEEPS):
        last = logs.copy()
        for j in np.flatnonzero(counts > 0):
            if start is not None or sweep:
                width = np.log(3.0) if not sweep else 0.4
                reach = max(low, logs[j] - width), min(high, logs[j] + width)
            profile = _Profile(data, replace(found, speeds=np.exp(logs)), j, prior)
            logs[j] = _best(profile, *reach, _COARSE if start is None and not sweep else 0)
        found = _solve(data, logs, prior, inflation, found.noise)
        if sweep and np.max(np.abs(logs - last)) < _SETTLED:
            break
    return found


def breakaway_profile(
    observations: Observations, basis: VelocityBasis | None = None, *, level: float = 0.95, covariance: Covariance | None = None
) -> BreakawayProfile:
    """Best breakaway speeds of runs with their intervals. The model's law must be Stribeck's, at whatever speeds.

    Three passes over the samples; what is tried in between costs the same for any number of them. Joints weigh, in a second
    round, by the inverse of their residual variance times the ratio of their log speed's variance under `covariance` (default
    HAC) to that of independent residuals. So the likelihood ratio of a speed becomes the adjusted one of Pauli, Racugno,
    Ventura 2011, up to a remainder by which it is divided. It is compared with Student's t.
    """
    covariance = covariance or HAC()
    data = NodalInformation.of(observations, basis)
    found = fit_speeds(data)
    _check(data, found)
    inflation = _linearised(data, found, covariance)[2]
    found = fit_speeds(data, None, found.speeds, inflation)
    linear, linearised, remainder, dof = _linearised(data, found, covariance)
    grid = np.geomspace(*data.nodal.basis.speeds, _FINE)
    profiles = [_Profile(data, found, j, None) for j in range(len(remainder))]
    best = [profile(s) for profile, s in zip(profiles, np.log(found.speeds))]
    deviance = np.array([[profile(s) - least for s in np.log(grid)] for profile, least in zip(profiles, best)])
    deviance = deviance / remainder[:, None]
    limit = t_quantile(0.5 + 0.5 * level, dof) ** 2
    ends = np.array([_ends(np.log(grid), row, s, limit) for row, s in zip(deviance, np.log(found.speeds))])
    return BreakawayProfile(data, found, np.exp(ends[:, 0]), ends[:, 1] > 0, level, grid, deviance, linear, linearised)


def _linearised(data, found, covariance):
    """A fit to base parameters and log speeds, which of them it holds, how much larger than its weights say the variance of
    each log speed is, others than its own fixed, and the degrees of freedom."""
    nodal, n, b = data.nodal, len(found.speeds), len(found.beta)
    coulomb, excess = nodal.places[1:]
    maps = nodal.maps(found.speeds, (found.beta[coulomb], found.beta[excess]))
    free = np.setdiff1d(np.arange(b), excess[found.beta[excess] <= 0.0])
    factor = mapped(data.information, maps[:, :, np.append(free, b + np.arange(n))]).stacked(found.weights)[0]
    alone = np.linalg.norm(factor[len(free) :, len(free) :], axis=0)
    known = alone * np.sqrt(found.weights * found.noise**2) ** -1 > 1.0 / WIDEST
    kept = np.append(free, b + np.flatnonzero(known))
    beta = np.append(found.beta, np.zeros(n))[kept]
    information = mapped(data.information, maps[:, :, kept])
    linear = Fit("wls", beta, found.noise, found.weights, information, AtSpeeds(nodal, maps[:, :, kept]))
    result = covariance.of(linear)
    variance = np.diag(result.covariance)
    inflation = np.full(n, np.median(variance / np.sum(np.linalg.inv(linear.factor) ** 2, axis=1)))
    inflation[known] = variance[len(free) :] * alone[known] ** 2
    return linear, kept, inflation, result.dof


class _Profile:
    """Smallest weighted sum of squares as a function of one joint's log speed, those of the others fixed; excesses are not
    negative, and those of other joints that are zero stay so."""

    def __init__(self, data, found, joint, prior):
        self.data, self.speeds, self.joint = data, found.speeds, joint
        rest, coulomb, excess = data.nodal.places
        information = data.at(found.speeds)
        others = np.delete(np.arange(len(found.speeds)), joint)
        kept = np.setdiff1d(np.arange(information.size), excess[found.beta[excess] <= 0.0])
        # The joint's own excess comes last, so that dropping it costs one square.
        self.order = np.append(kept[kept != excess[joint]], excess[joint])
        rows = (np.sqrt(found.weights[others])[:, None, None] * information.factors[others]).reshape(-1, information.size + 1)
        if prior is not None:
            rows = np.vstack([rows, np.column_stack([prior[1], prior[1] @ prior[0]])])
        rows = np.vstack([rows[:, np.append(self.order, -1)], np.zeros((len(self.order) + 1,) * 2)])
        self.rest = np.linalg.qr(rows, mode="r")
        self.own = np.sqrt(found.weights[joint]) * data.information.factors[joint]
        self.places = rest, coulomb[joint], excess[joint]

    def __call__(self, log_speed) -> float:
        rest, coulomb, excess = self.places
        m, j = len(rest), self.joint
        rows = np.zeros((len(self.own), self.data.nodal.model.base.dimension + 1))
        rows[:, rest], rows[:, -1] = self.own[:, :m], self.own[:, -1]
        own = np.arange(len(self.speeds)) == j
        dry, bump = self.data.nodal.basis.shapes(np.where(own, np.exp(log_speed), self.speeds))
        rows[:, coulomb], rows[:, excess] = self.own[:, m:-1] @ dry[j], self.own[:, m:-1] @ bump[j]
        corner = np.linalg.qr(np.vstack([self.rest, rows[:, np.append(self.order, -1)]]), mode="r")[-2:, -2:]
        dropped = corner[0, 0] * corner[0, 1] < 0.0
        return float(corner[1, 1] ** 2 + dropped * corner[0, 1] ** 2)


def _best(profile, low, high, coarse):
    """The log speed of least squares in a range: of so many points, then by Brent's method between its neighbours."""
    from scipy.optimize import minimize_scalar

    if coarse:
        points = np.linspace(low, high, coarse)
        at = int(np.argmin([profile(s) for s in points]))
        low, high = points[max(at - 1, 0)], points[min(at + 1, coarse - 1)]
    return float(minimize_scalar(profile, bounds=(low, high), method="bounded", options={"xatol": 0.3 * _SETTLED}).x)


def _solve(data, logs, prior, inflation, noise=None):
    """The fit at given log speeds, excesses not negative; weights iterated from `noise` (None: equal ones)."""
    information, excess = data.at(np.exp(logs)), data.nodal.places[2]
    counts = information.counts
    spare = np.maximum(counts - (information.size / len(counts) + 1.0) * (prior is None), 1.0)
    for _ in range(5 if noise is None else 1):
        weights = np.where(counts > 0, 1.0 if noise is None else 1.0 / (inflation * noise**2), 0.0)
        factor, right = information.stacked(weights)
        if prior is not None:
            factor, right = np.vstack([factor, prior[1]]), np.append(right, prior[1] @ prior[0])
        # Excesses that come out negative are zero; few do, and those left out stay negative when let in again.
        free = np.ones(information.size, dtype=bool)
        while True:
            beta = np.zeros(information.size)
            beta[free] = np.linalg.lstsq(factor[:, free], right, rcond=None)[0]
            if not np.any(beta[excess] < 0.0):
                break
            free[excess[beta[excess] < 0.0]] = False
        noise = np.sqrt(information.squared_residuals(beta) / spare)
        noise = np.where(counts > 0, np.maximum(noise, 1e-9 * max(float(noise.max()), 1e-12)), 1.0)
    return SpeedFit(np.exp(logs), beta, noise, np.where(counts > 0, 1.0 / (inflation * noise**2), 0.0))


def _check(data, found):
    still = [name for name, count in zip(data.nodal.model.robot.joint_names, data.information.counts) if count == 0]
    if still:
        raise DataError(
            f"joint {', '.join(still)} does not move in this log: nothing is known of its friction; use another log"
        )
    condition, weakest, norms = scaled_condition(data.at(found.speeds).stacked(found.weights)[0])
    if not condition < HIGHEST_CONDITION:
        names = np.array(data.nodal.model.base.names)
        worst = names[norms == 0] if np.any(norms == 0) else names[np.abs(weakest) > 0.3 * np.abs(weakest).max()]
        raise DataError(f"the data do not determine {', '.join(worst[:6])}: add a log with richer motion (bayesid excite)")


def _ends(logs, deviance, best, limit):
    """[[lower, upper], [lower cut off, upper cut off]] of the stretch about `best` where the deviance is below the limit."""
    out, cut = [best, best], [0.0, 0.0]
    for side, order in ((0, -1), (1, 1)):
        at, value = best, 0.0
        for s, d in zip(logs[::order], deviance[::order]):
            if (s - best) * order <= 0:
                continue
            if d > limit:
                out[side] = at + (s - at) * (limit - value) / (d - value)
                break
            at, value = s, d
        else:
            out[side], cut[side] = (logs[0], logs[-1])[side], 1.0
    return [out, cut]
