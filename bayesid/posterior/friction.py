"""Which friction law predicts best: expected log predictive density by cross-validation over blocks of time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayesid.dynamics import FrictionLaw, friction_law
from bayesid.dynamics.friction import stribeck_law
from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.posterior.folds import normal_prior, ridge, total
from bayesid.posterior.prior import Prior, Wishart
from bayesid.regression import Information, Observations, compress, settle_load
from bayesid.signals import Samples

LADDER = ("viscous", "coulomb", "coulomb-offset", "asymmetric", "stribeck", "load")
BREAKAWAY_SPEEDS = (0.03, 0.1, 0.3)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A friction law under the name that results give it."""

    name: str
    law: FrictionLaw


@dataclass(frozen=True, eq=False)
class FrictionComparison:
    """ELPD of each candidate, per joint, in nats.

    `elpd` (laws, n) over all moving samples, corrected for autocorrelation (see `compare_friction`); `difference` and `error`
    (laws, n) to the joint's best candidate with the standard error over blocks; `best` (n,) the law with the highest ELPD,
    `chosen` the simplest law whose sum over joints is within one standard error of the best. `rms` (laws, n) held-out.
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


def candidates(names=LADDER, speeds=BREAKAWAY_SPEEDS) -> tuple[Candidate, ...]:
    """Candidates by name, simplest first; "stribeck" stands for one law per breakaway speed [rad/s]."""
    out = []
    for name in names:
        if name == "stribeck":
            out += [Candidate(f"stribeck at {speed:g} rad/s", stribeck_law(speed)) for speed in speeds]
        else:
            out.append(Candidate(name, friction_law(name)))
    return tuple(out)


def compare_friction(
    robot, runs, *, gains=None, laws=None, prior: Prior | None = None, blocks: int = 10, rotor: bool = True
) -> FrictionComparison:
    """Compare friction laws on runs of one robot by cross-validation over contiguous blocks.

    Each run is cut into `blocks` blocks; each fold leaves one block of every run out, fits the others under the prior and
    scores the block's residuals per joint by the normal log density with the noise of the others. Neighbouring samples are
    alike, so the sum over samples counts the same information many times: it is divided by the ratio of samples to effective
    samples of the best law (AR(1) of its residuals). Standard errors are those of the differences between blocks, which are
    long against the autocorrelation. The load of load-dependent friction is that of a fit to all blocks.
    """
    runs = (runs,) if isinstance(runs, Samples) else tuple(runs)
    laws = candidates() if laws is None else tuple(laws)
    if blocks < 3:
        raise DataError(f"cross-validation needs at least three blocks, got {blocks}")
    scores, rms, thinning = [], [], []
    for law in laws:
        score, held_out, ratio = _cross_validate(Model(robot, law.law, rotor), runs, gains, prior or Wishart(), blocks)
        scores.append(score)
        rms.append(held_out)
        thinning.append(ratio)
    scores, rms, thinning = np.array(scores), np.array(rms), np.array(thinning)
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
    order = sorted(range(len(laws)), key=lambda k: (len(laws[k].law.parameters), -whole[k].sum()))
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
    )


def _cross_validate(model, runs, gains, prior, blocks):
    model, _ = settle_load(model, lambda model: _fit(model, runs, gains, prior))
    folds: list[Information | None] = [None] * blocks
    lag_one = np.zeros((2, model.robot.dof))
    for run in runs:
        edges = np.linspace(0, len(run), blocks + 1).astype(int)
        for k, (start, stop) in enumerate(pairwise(edges)):
            part = run.select(slice(start, stop))
            if not part.moving.any():
                continue
            information = compress(Observations(model, (part,), gains))
            folds[k] = information if folds[k] is None else folds[k] + information
    if any(fold is None for fold in folds):
        raise DataError("a block holds no motion: use fewer blocks or longer runs")
    center, root = normal_prior(prior.of(model))
    n = model.robot.dof
    scores, squares, counts = np.full((blocks, n), np.nan), np.zeros(n), np.zeros(n)
    for k in range(blocks):
        rest = total(folds[:k] + folds[k + 1 :])
        beta, noise = ridge(rest, center, root)
        own = folds[k].squared_residuals(beta)
        used = (folds[k].counts > 0) & (rest.counts > 0)
        scores[k, used] = -0.5 * own[used] / noise[used] ** 2 - folds[k].counts[used] * np.log(
            noise[used] * np.sqrt(2.0 * np.pi)
        )
        squares, counts = squares + own * used, counts + folds[k].counts * used
    moved = counts > 0
    scores[:, moved] = np.where(np.isnan(scores[:, moved]), 0.0, scores[:, moved])
    beta, _ = ridge(total(folds), center, root)
    for run in runs:
        for chunk in Observations(model, (run,), gains).chunks():
            residual = (chunk.effort - np.einsum("nbs,b->ns", chunk.columns, beta)) * (chunk.weight > 0)
            lag_one += [np.sum(residual**2, axis=1), np.sum(residual[:, 1:] * residual[:, :-1], axis=1)]
    rho = np.clip(lag_one[1] / np.maximum(lag_one[0], 1e-300), 0.0, 0.999)
    rms = np.sqrt(np.where(moved, squares / np.maximum(counts, 1.0), np.nan))
    return scores, rms, (1.0 - rho) / (1.0 + rho)


class _Fit(NamedTuple):
    beta: np.ndarray
    information: Information


def _fit(model, runs, gains, prior):
    information = compress(Observations(model, runs, gains))
    return _Fit(ridge(information, *normal_prior(prior.of(model)))[0], information)
