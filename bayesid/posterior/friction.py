"""Which friction law predicts best: expected log predictive density by cross-validation over blocks of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bayesid.dynamics import FrictionLaw, friction_law
from bayesid.dynamics.friction import stribeck_law
from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.posterior.prior import Prior, Wishart
from bayesid.regression import Information, Observations, compress
from bayesid.signals import Samples

LADDER = ("viscous", "coulomb", "coulomb-offset", "asymmetric", "stribeck")
BREAKAWAY_SPEEDS = (0.03, 0.1, 0.3)
_PRIOR_DRAWS = 2000
_ROUNDS = 5
# Columns of an extra term are held by a normal prior of this part of the joint's torque limit per unit column.
_EXTRA_PART = 0.5


@dataclass(frozen=True, eq=False)
class Term:
    """One more friction column per joint, beside a law: `columns(run, start, stop)` gives (n, S) for samples of a run."""

    name: str
    columns: Callable


@dataclass(frozen=True, eq=False)
class Candidate:
    """A friction law with the extra terms that go with it."""

    name: str
    law: FrictionLaw
    terms: tuple[Term, ...] = ()


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


def candidates(names=LADDER, speeds=BREAKAWAY_SPEEDS) -> tuple[Candidate, ...]:
    """Candidates by name, simplest first; "stribeck" stands for one law per breakaway speed [rad/s]."""
    out = []
    for name in names:
        if name == "stribeck":
            out += [Candidate(f"stribeck at {speed:g} rad/s", stribeck_law(speed)) for speed in speeds]
        else:
            out.append(Candidate(name, friction_law(name)))
    return tuple(out)


def load_dependent(model: Model, parameters=None) -> Candidate:
    """Coulomb friction that grows with the load on the gear: |rigid-body torque| times the direction of slip.

    The rigid-body torque is that of `parameters` (P,), nominal ones by default: the term stays linear.
    """
    n = model.robot.dof
    rigid = np.array(model.nominal if parameters is None else parameters, dtype=float)
    rigid[[k not in ("link", "rotor") for k in model.kinds]] = 0.0

    def columns(run: Samples, start: int, stop: int):
        part = run.select(slice(start, stop))
        return (np.abs(model.torque(rigid, part.q, part.qd, part.qdd)) * part.direction).T.reshape(n, -1)

    return Candidate("coulomb-offset, load", friction_law("coulomb-offset"), (Term("load", columns),))


def temperature_dependent(temperatures) -> Candidate:
    """Viscous friction linear in the motor temperature. `temperatures` maps id(run) to (N, n) [deg C], from Log.temperature at
    the samples' instants."""

    def columns(run: Samples, start: int, stop: int):
        if id(run) not in temperatures:
            raise DataError("no temperature was given for a run: a temperature-dependent law needs one for each")
        return ((temperatures[id(run)][start:stop] - 25.0) / 10.0 * run.qd[start:stop]).T

    return Candidate("coulomb-offset, temperature", friction_law("coulomb-offset"), (Term("temperature", columns),))


def compare_friction(
    robot, runs, *, gains=None, laws=None, prior: Prior | None = None, blocks: int = 10, rotor: bool = True
) -> FrictionComparison:
    """Compare friction laws on runs of one robot by cross-validation over contiguous blocks.

    Each run is cut into `blocks` blocks; each fold leaves one block of every run out, fits the others under the prior and
    scores the block's residuals per joint by the normal log density with the noise of the others. Neighbouring samples are
    alike, so the sum over samples counts the same information many times: it is divided by the ratio of samples to effective
    samples of the best law (AR(1) of its residuals). Standard errors are those of the differences between blocks, which are
    long against the autocorrelation.
    """
    runs = (runs,) if isinstance(runs, Samples) else tuple(runs)
    laws = candidates() if laws is None else tuple(laws)
    if blocks < 3:
        raise DataError(f"cross-validation needs at least three blocks, got {blocks}")
    scores, rms, thinning = [], [], []
    for law in laws:
        model = Model(robot, law.law, rotor)
        score, held_out, ratio = _cross_validate(model, law, runs, gains, prior or Wishart(), blocks)
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
    order = sorted(range(len(laws)), key=lambda k: (len(laws[k].law.parameters) + len(laws[k].terms), -whole[k].sum()))
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


class _WithTerms:
    """Observations with further columns at the end."""

    def __init__(self, source: Observations, terms, start):
        self.source, self.terms, self.start = source, terms, start

    def chunks(self):
        run, at = self.source.runs[0], 0
        n = run.dof
        for chunk in self.source.chunks():
            size = chunk.effort.shape[1]
            extra = np.zeros((n, n * len(self.terms), size))
            for k, term in enumerate(self.terms):
                values = term.columns(self.start[0], self.start[1] + at, self.start[1] + at + size)
                extra[np.arange(n), k * n + np.arange(n)] = values
            at += size
            yield chunk._replace(columns=np.concatenate([chunk.columns, extra], axis=1))


def _cross_validate(model, law, runs, gains, prior, blocks):
    folds: list[Information | None] = [None] * blocks
    lag_one = np.zeros((2, model.robot.dof))
    for run in runs:
        edges = np.linspace(0, len(run), blocks + 1).astype(int)
        for k, (start, stop) in enumerate(pairwise(edges)):
            part = run.select(slice(start, stop))
            if not part.moving.any():
                continue
            source = Observations(model, (part,), gains)
            information = compress(_WithTerms(source, law.terms, (run, start)) if law.terms else source)
            folds[k] = information if folds[k] is None else folds[k] + information
    if any(fold is None for fold in folds):
        raise DataError("a block holds no motion: use fewer blocks or longer runs")
    center, root = _held(model, law, prior)
    n = model.robot.dof
    scores, squares, counts = np.full((blocks, n), np.nan), np.zeros(n), np.zeros(n)
    for k in range(blocks):
        rest = None
        for other in (f for i, f in enumerate(folds) if i != k):
            rest = other if rest is None else rest + other
        beta, noise = _ridge(rest, center, root)
        own = folds[k].squared_residuals(beta)
        used = (folds[k].counts > 0) & (rest.counts > 0)
        scores[k, used] = -0.5 * own[used] / noise[used] ** 2 - folds[k].counts[used] * np.log(
            noise[used] * np.sqrt(2.0 * np.pi)
        )
        squares, counts = squares + own * used, counts + folds[k].counts * used
    moved = counts > 0
    scores[:, moved] = np.where(np.isnan(scores[:, moved]), 0.0, scores[:, moved])
    everything = folds[0]
    for other in folds[1:]:
        everything = everything + other
    beta, _ = _ridge(everything, center, root)
    for run in runs:
        source = Observations(model, (run,), gains)
        for chunk in (_WithTerms(source, law.terms, (run, 0)) if law.terms else source).chunks():
            residual = (chunk.effort - np.einsum("nbs,b->ns", chunk.columns, beta)) * (chunk.weight > 0)
            lag_one += [np.sum(residual**2, axis=1), np.sum(residual[:, 1:] * residual[:, :-1], axis=1)]
    rho = np.clip(lag_one[1] / np.maximum(lag_one[0], 1e-300), 0.0, 0.999)
    rms = np.sqrt(np.where(moved, squares / np.maximum(counts, 1.0), np.nan))
    return scores, rms, (1.0 - rho) / (1.0 + rho)


def _held(model, law, prior):
    """Mean (b,) and root (b, b) of the prior's precision of base parameters and extra terms."""
    draws = model.base.project(prior.of(model).sample(0, _PRIOR_DRAWS))
    center, covariance = draws.mean(axis=0), np.cov(draws.T)
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))).T
    extra = model.robot.dof * len(law.terms)
    if not extra:
        return center, root
    size = len(center)
    wide = np.zeros((size + extra, size + extra))
    wide[:size, :size] = root
    wide[size:, size:] = np.eye(extra) / _EXTRA_PART
    return np.append(center, np.zeros(extra)), wide


def _ridge(information, center, root):
    """Posterior mean (b,) under a normal prior and the noise (n,) per joint, iterated together."""
    noise = np.ones(len(information.counts))
    beta = center
    for _ in range(_ROUNDS):
        factor, right = information.stacked(np.where(information.counts > 0, noise**-2.0, 0.0))
        rows, target = np.vstack([factor, root]), np.append(right, root @ center)
        beta = np.linalg.lstsq(rows, target, rcond=None)[0]
        noise = np.sqrt(information.squared_residuals(beta) / np.maximum(information.counts, 1.0))
        noise = np.where(information.counts > 0, np.maximum(noise, 1e-9), 1.0)
    return beta, noise
