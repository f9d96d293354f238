"""From runs to an Estimate of drive gains, base parameters, friction and load, with what the data cannot tell said aloud."""

from __future__ import annotations

import numpy as np

from bayesid.errors import DataError
from bayesid.gains.gains import Gains
from bayesid.gains.runs import GainRuns
from bayesid.gains.solving import METHODS, SWAPPED, GainFit, attenuation, relative, still_joints
from bayesid.regression.covariance import HAC, Covariance
from bayesid.regression.information import Information, compress
from bayesid.results import Estimate
from bayesid.results.estimate import t_quantile

# A gain counts as undetermined when its 95 % interval reaches this share of it to either side, or when this share of what a
# published form sees of its current is noise.
UNDETERMINED = 0.25
_LEAST_LOAD = 3.0


def estimate_gains(
    runs: GainRuns,
    method: str = "ml",
    *,
    prior: Gains | None = None,
    covariance: Covariance | None = None,
) -> Estimate:
    """Drive gains [N m/A], base parameters, friction and load parameters of `runs` as one Estimate.

    `method` is one of ml, ls, lmi, tls (see `bayesid.gains.solving`). `meta["undetermined"]` has one sentence per joint
    whose gain the data cannot determine. Raises DataError for loads without a measurable effect and for swapped runs.
    """
    if method not in METHODS:
        raise DataError(f"unknown drive-gain method '{method}': choose one of {', '.join(METHODS)}")
    return fit_and_estimate(runs, compress(runs), method, prior=prior, covariance=covariance)[1]


def fit_and_estimate(
    runs: GainRuns,
    information: Information,
    method: str,
    *,
    prior: Gains | None = None,
    covariance: Covariance | None = None,
) -> tuple[GainFit, Estimate]:
    """The fit beside its Estimate, from information already compressed."""
    covariance = HAC() if covariance is None else covariance
    still = still_joints(runs, information, None if prior is None else np.diag(prior.covariance) == 0)
    if still:
        raise DataError(still)
    check_loads(runs, information, covariance)
    fit = METHODS[method](runs, prior, information)
    return fit, estimate_of(fit, runs, information, covariance)


def estimate_of(fit: GainFit, runs: GainRuns, information: Information, covariance: Covariance) -> Estimate:
    """Estimate of a fit with the covariance asked for."""
    found = covariance.of(fit)
    n, names = runs.model.robot.dof, runs.model.robot.joint_names
    spread = found.covariance
    if len(fit.prior):
        inverse = np.linalg.inv(fit.factor)
        bread = inverse @ inverse.T
        spread = spread + bread @ fit.prior.T @ fit.prior @ bread
    full = np.zeros((n + runs.size, n + runs.size))
    full[np.ix_(fit.free, fit.free)] = spread
    units = ["N m/A" if turns else "N/A" for turns in runs.model.robot.revolute]
    estimate = Estimate(
        names=(*(f"{name}.drive_gain" for name in names), *runs.names),
        units=(*units, *runs.units),
        kinds=(*("gain",) * n, *runs.kinds),
        mean=np.concatenate([fit.gains, fit.coefficients]),
        covariance=full,
        method=f"drive-gains {fit.method}",
        covariance_method=found.description,
        dof=found.dof,
        meta={
            "current_noise": fit.sigma.tolist(),
            "noise_share": attenuation(runs, information, fit).tolist(),
            "held": [name for name, free in zip(names, fit.free) if not free],
            "active": list(fit.active),
            "friction_sets": runs.sets,
            "friction_law": runs.model.friction.name,
        },
    )
    estimate.meta["undetermined"] = undetermined(fit, estimate)
    return estimate


def undetermined(fit: GainFit, estimate: Estimate) -> dict[str, str]:
    """Joint name and one sentence for each gain that the data cannot determine by this method."""
    published = fit.method in ("ls", "lmi")
    out = {}
    quantile = t_quantile(0.975, estimate.dof)
    for j, name in enumerate(estimate.names[: len(fit.gains)]):
        if not fit.free[j]:
            continue
        joint, mean, half = name.removesuffix(".drive_gain"), estimate.mean[j], quantile * estimate.std[j]
        share = estimate.meta["noise_share"][j]
        if mean <= 0:
            out[joint] = f"its gain came out at {mean:.3g} N m/A, which no drive has: the data do not determine it"
        elif any(entry.startswith(name) for entry in fit.active):
            out[joint] = f"its gain sits on the constraint at {mean:.3g} N m/A: the data do not determine it"
        elif published and share > UNDETERMINED:
            out[joint] = (
                f"{100 * share:.0f} % of what the fit sees of its current is noise, which lowers its gain by about that "
                f"share: {mean:.3g} N m/A is not determined by this method"
            )
        elif half > UNDETERMINED * mean:
            out[joint] = f"its 95 % interval, {mean - half:.3g} to {mean + half:.3g} N m/A, is too wide for use"
    return out


def contradicted(estimate: Estimate, prior: Gains) -> list[str]:
    """One sentence for each gain that the data pull further from its prior than either's uncertainty explains.

    Weights take residuals as independent, so that a true prior gives way to correlated noise by up to the estimate's own
    standard deviation.
    """
    std = np.sqrt(np.diag(prior.covariance))
    return [
        f"{name.removesuffix('.drive_gain')}: the data contradict the given {known:.4g} +- {s:.2g} N m/A, which pulls all "
        "other gains: leave it out and compare"
        for name, found, own, known, s in zip(estimate.names, estimate.mean, estimate.std, prior.mean, std)
        if 0 < s < np.inf and abs(found - known) > 3.0 * np.hypot(s, own)
    ]


def check_loads(runs: GainRuns, information: Information, covariance: Covariance) -> None:
    """Raise DataError when a load of known mass acts negatively (runs swapped) or not measurably."""
    start = relative(runs, information)
    inverse = np.linalg.inv(start.factor)
    white = np.sqrt(np.sum(inverse**2, axis=1))
    place = np.cumsum(start.free) - 1
    spread = None
    for index, load in enumerate(runs.loads):
        if load.mass is None:
            continue
        at = runs.load_columns(index).start
        mass, where = start.coefficients[at], int(place[len(start.gains) + at])
        if mass < 30.0 * white[where] and spread is None:
            spread = np.sqrt(np.diag(covariance.of(start).covariance))
        if spread is None:
            continue
        if mass < -_LEAST_LOAD * spread[where]:
            raise DataError(SWAPPED)
        if mass < _LEAST_LOAD * spread[where]:
            raise DataError(
                f"the payload of {load.mass:g} kg changes no current measurably, so it sets no scale: use a heavier load, "
                "further from the axes, and check that the loaded log was recorded with it ('bayesid drive-gains --plan')"
            )
