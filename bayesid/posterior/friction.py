"""Which friction law predicts best: expected log predictive density by cross-validation over blocks of time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayesid.dynamics import FrictionLaw, friction_law
from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.posterior.folds import normal_prior, ridge, total
from bayesid.posterior.prior import Prior, Wishart
from bayesid.regression import (
    AtSpeeds,
    Information,
    NodalInformation,
    Observations,
    VelocityBasis,
    compress,
    fit_speeds,
    settle_load,
)
from bayesid.regression.checks import check_runs
from bayesid.regression.velocity import SPEEDS, Nodal
from bayesid.signals import Samples

LADDER = ("viscous", "coulomb", "coulomb-offset", "asymmetric", "sublinear", "stribeck", "load", "harmonic-drive")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A friction law under the name that results give it; with a range of `speeds` [rad/s], each joint's breakaway speed is
    fitted within it."""

    name: str
    law: FrictionLaw
    speeds: tuple[float, float] | None = None

    @property
    def size(self) -> int:
        """Number of parameters of a joint."""
        return len(self.law.parameters) + (self.speeds is not None)


@dataclass(frozen=True, eq=False)
class FrictionComparison:
    """ELPD of each candidate, per joint, in nats.

    `elpd` (laws, n) over all moving samples, corrected for autocorrelation (see `compare_friction`); `difference` and `error`
    (laws, n) to the joint's best candidate with the standard error over blocks; `best` (n,) the law with the highest ELPD,
    `chosen` the simplest law whose sum over joints is within one standard error of the best. `rms` (laws, n) held-out. `speeds`
    (laws, n) are the breakaway speeds [rad/s] of all blocks together, NaN for laws without.
    """

    names: tuple[str, ...]
    joints: tuple[str, ...]
    elpd: np.ndarray
    difference: np.ndarray
    error: np.ndarray
    best: tuple[str | None, ...]
    chosen: str
    reason: str
    rms: np.ndarray
    speeds: np.ndarray

    def breakaway_speeds(self) -> tuple[float, ...]:
        """(n,) fitted speeds [rad/s] of the chosen law; joints that never moved get the median of the others."""
        speeds = self.speeds[self.names.index(self.chosen)]
        return tuple(np.where(np.isfinite(speeds), speeds, np.nanmedian(speeds)).tolist())

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows of a text table: difference and its standard error per joint, best first."""
        head = ["friction law", *self.joints]
        rows = []
        for k in np.argsort(-np.nansum(self.elpd, axis=1)):
            cells = [
                "-" if not np.isfinite(d) else ("best" if d == 0 else f"{d:.1f} ({e:.1f})")
                for d, e in zip(self.difference[k], self.error[k])
            ]
            rows.append([self.names[k], *cells])
        return head, rows


def ladder(runs) -> tuple[str, ...]:
    """Names of the laws worth comparing on these runs: `temperature` only where all of them hold it."""
    known = all(run.temperature is not None and np.isfinite(run.temperature).all() for run in runs)
    return (*LADDER, "temperature") if known else LADDER


def candidates(names=LADDER, speeds=SPEEDS) -> tuple[Candidate, ...]:
    """Candidates by name, simplest first; "stribeck" has breakaway speeds to be fitted in the range `speeds` [rad/s]."""
    return tuple(Candidate(name, friction_law(name), speeds if name == "stribeck" else None) for name in names)


def compare_friction(
    robot, runs, *, gains=None, laws=None, prior: Prior | None = None, blocks: int = 10, rotor: bool = True
) -> FrictionComparison:
    """Compare friction laws on runs of one robot by cross-validation over contiguous blocks.

    Each run is cut into `blocks` blocks; each fold leaves one block of every run out, fits the others under the prior and
    scores the block's residuals per joint by the normal log density with the noise of the others. Neighbouring samples are
    alike, so the sum over samples counts the same information many times: it is divided by the ratio of samples to effective
    samples of the best law (AR(1) of its residuals). Standard errors are those of the differences between blocks, which are
    long against the autocorrelation. Breakaway speeds are fitted to the others, too; the load of load-dependent friction is
    that of a fit to all blocks.
    """
    runs = (runs,) if isinstance(runs, Samples) else tuple(runs)
    laws = candidates() if laws is None else tuple(laws)
    check_runs(Model(robot, "none", rotor), runs)
    if blocks < 3:
        raise DataError(f"cross-validation needs at least three blocks, got {blocks}")
    found = [_cross_validate(_fitter(law, robot, rotor, runs, gains, prior or Wishart()), runs, blocks) for law in laws]
    scores, rms, thinning, speeds = (np.array(parts) for parts in zip(*found))
    idle = np.isnan(scores).all(axis=(0, 1))
    totals = scores.sum(axis=1)
    leader = np.argmax(np.where(idle, 0.0, totals), axis=0)
    scores = scores * thinning[leader, np.arange(len(idle))]
    elpd = scores.sum(axis=1)
    gap = scores - scores[leader, :, np.arange(len(idle))].T[None]
    difference = gap.sum(axis=1)
    error = np.sqrt(blocks) * gap.std(axis=1, ddof=1)
    whole = np.nansum(scores, axis=2)
    top = int(np.argmax(whole.sum(axis=1)))
    behind = whole - whole[top]
    behind_error = np.sqrt(blocks) * behind.std(axis=1, ddof=1)
    order = sorted(range(len(laws)), key=lambda k: (laws[k].size, -whole[k].sum()))
    pick = next(k for k in order if behind[k].sum() >= -behind_error[k])
    reason = (
        f"{laws[pick].name} has the highest expected log predictive density"
        if pick == top
        else f"{laws[pick].name} is {-behind[pick].sum():.1f} nats below {laws[top].name}, less than the standard error "
        f"{behind_error[pick]:.1f}, and simpler"
    )
    return FrictionComparison(
        tuple(law.name for law in laws),
        robot.joint_names,
        elpd,
        difference,
        error,
        tuple(None if idle[j] else laws[leader[j]].name for j in range(len(idle))),
        laws[pick].name,
        reason,
        rms,
        speeds,
    )


def _fitter(law, robot, rotor, runs, gains, prior):
    model = Model(robot, law.law, rotor)
    if law.speeds is not None:
        return _Speeds(model, gains, normal_prior(prior.of(model)), VelocityBasis.over(runs, law.speeds))
    model, _ = settle_load(model, lambda model: _Linear(model, gains, normal_prior(prior.of(model))).of(runs))
    return _Linear(model, gains, normal_prior(prior.of(model)))


class _Fit(NamedTuple):
    beta: np.ndarray
    noise: np.ndarray
    speeds: np.ndarray
    information: Information


@dataclass(frozen=True, eq=False)
class _Linear:
    """Fits of one linear law under a normal prior, centre (b,) and root (b, b) of its precision."""

    model: Model
    gains: np.ndarray | None
    prior: tuple[np.ndarray, np.ndarray]

    def of(self, runs):
        return self.fit(self.compress(runs))

    def compress(self, runs):
        return compress(Observations(self.model, runs, self.gains))

    def fit(self, data, start=None):
        beta, noise = ridge(data, *self.prior)
        return _Fit(beta, noise, np.full(len(noise), np.nan), data)

    def at(self, data, fit):
        return data

    def chunks(self, run, fit):
        return Observations(self.model, (run,), self.gains).chunks()


@dataclass(frozen=True, eq=False)
class _Speeds:
    """Fits of Stribeck friction with a breakaway speed for each joint, under the same prior of base parameters."""

    model: Model
    gains: np.ndarray | None
    prior: tuple[np.ndarray, np.ndarray]
    basis: VelocityBasis

    def compress(self, runs):
        return NodalInformation.of(Observations(self.model, runs, self.gains), self.basis)

    def fit(self, data, start=None):
        found = fit_speeds(data, self.prior, None if start is None else start.speeds)
        return _Fit(found.beta, found.noise, found.speeds, data.at(found.speeds))

    def at(self, data, fit):
        return data.at(fit.speeds)

    def chunks(self, run, fit):
        nodal = Nodal(Observations(self.model, (run,), self.gains), self.basis)
        return AtSpeeds(nodal, nodal.maps(fit.speeds)).chunks()


def _cross_validate(fitter, runs, blocks):
    folds = [None] * blocks
    n = fitter.model.robot.dof
    lag_one = np.zeros((2, n))
    for run in runs:
        edges = np.linspace(0, len(run), blocks + 1).astype(int)
        for k, (start, stop) in enumerate(pairwise(edges)):
            part = run.select(slice(start, stop))
            if part.moving.any():
                data = fitter.compress((part,))
                folds[k] = data if folds[k] is None else folds[k] + data
    if any(fold is None for fold in folds):
        raise DataError("a block holds no motion: use fewer blocks or longer runs")
    everything = fitter.fit(total(folds))
    scores, squares, counts = np.full((blocks, n), np.nan), np.zeros(n), np.zeros(n)
    for k in range(blocks):
        rest = fitter.fit(total(folds[:k] + folds[k + 1 :]), everything)
        left = fitter.at(folds[k], rest)
        own, noise = left.squared_residuals(rest.beta), rest.noise
        used = (left.counts > 0) & (rest.information.counts > 0)
        scores[k, used] = -0.5 * own[used] / noise[used] ** 2 - left.counts[used] * np.log(noise[used] * np.sqrt(2.0 * np.pi))
        squares, counts = squares + own * used, counts + left.counts * used
    moved = counts > 0
    scores[:, moved] = np.where(np.isnan(scores[:, moved]), 0.0, scores[:, moved])
    for run in runs:
        for chunk in fitter.chunks(run, everything):
            residual = (chunk.effort - np.einsum("nbs,b->ns", chunk.columns, everything.beta)) * (chunk.weight > 0)
            lag_one += [np.sum(residual**2, axis=1), np.sum(residual[:, 1:] * residual[:, :-1], axis=1)]
    rho = np.clip(lag_one[1] / np.maximum(lag_one[0], 1e-300), 0.0, 0.999)
    rms = np.sqrt(np.where(moved, squares / np.maximum(counts, 1.0), np.nan))
    return scores, rms, (1.0 - rho) / (1.0 + rho), np.where(moved, everything.speeds, np.nan)
