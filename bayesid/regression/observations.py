"""Observation equations: the rows that samples give for a model's base parameters, streamed in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.signals import Samples


class Chunk(NamedTuple):
    """Consecutive samples of one run: columns (n, b, S), effort (n, S) as torque, weight (n, S) with 0 for unused rows.

    `starts_run`: the past of its first sample is not known. A gap within a run starts another.
    """

    columns: np.ndarray
    effort: np.ndarray
    weight: np.ndarray
    starts_run: bool


@dataclass(frozen=True, eq=False)
class Observations:
    """tau = X beta + noise for one or several runs of one robot.

    `gains` (n,) [N m/A] turn currents into torques and are required for runs whose effort is a current. Rows in which a
    joint stands still are not used for that joint: the size of its friction is not determined there. With `filtered` False
    the efforts are the unfiltered ones.
    """

    model: Model
    runs: tuple[Samples, ...]
    gains: np.ndarray | None = None
    filtered: bool = True

    def __post_init__(self):
        n = self.model.robot.dof
        if not self.runs:
            raise DataError("no run to fit: give at least one log")
        for run in self.runs:
            if run.dof != n:
                raise DataError(f"a run has {run.dof} joints, robot '{self.model.robot.name}' has {n}")
            if "temperature" in self.model.friction.needs:
                _check_temperature(self.model, run)
        if self.gains is not None:
            gains = np.asarray(self.gains, dtype=float)
            if gains.shape != (n,):
                raise DataError(f"{gains.size} drive gains for {n} joints: give one per joint, comma-separated")
            if not ((gains > 1e-6) & (gains < 1e6)).all():
                raise DataError(
                    f"drive gains must be positive numbers from 1e-6 to 1e6 N m/A, got {', '.join(map(str, gains))}"
                )
            object.__setattr__(self, "gains", gains)
        if self.gains is None and any(run.effort_kind == "current" for run in self.runs):
            raise DataError(
                "the log holds motor currents: give the drive gains with --drive-gains (N m/A per joint, or a drive-gains "
                "result), or estimate them with 'bayesid drive-gains'"
            )

    @property
    def size(self) -> int:
        """Number of base parameters b."""
        return self.model.base.dimension

    @cached_property
    def count(self) -> int:
        """Number of samples N over all runs."""
        return sum(len(run) for run in self.runs)

    def scale(self, run: Samples) -> np.ndarray:
        """(n,) factor from a run's effort to torque."""
        return self.gains if run.effort_kind == "current" else np.ones(self.model.robot.dof)

    def chunks(self) -> Iterator[Chunk]:
        """All rows, run by run."""
        for run in self.runs:
            effort = (run.effort if self.filtered else run.effort_measured) * self.scale(run)
            weight = run.weights * run.moving
            starts = np.append(0, run.breaks)
            for rows, block in self.model.chunks_of(run, filtered=self.filtered, columns=self.model.base.independent):
                inside = starts[(starts > rows.start) & (starts < rows.stop)]
                for first, last in pairwise([rows.start, *inside, rows.stop]):
                    columns = block[:, :, first - rows.start : last - rows.start]
                    yield Chunk(columns, effort[first:last].T, weight[first:last].T, bool(np.any(starts == first)))


def _check_temperature(model, run):
    where = run.source.get("path") or "a run"
    law = model.friction.name
    if run.temperature is None:
        raise DataError(
            f"{where}: no motor temperature was recorded (or its schema names none), which friction law '{law}' needs: choose "
            "another law"
        )
    bad = ~np.isfinite(run.temperature)
    if bad.any():
        row, joint = np.argwhere(bad)[0]
        raise DataError(
            f"{where}, sample {row + 1}: the motor temperature of joint {model.robot.joint_names[joint]} is not a number, "
            f"which friction law '{law}' needs: choose another law or rows"
        )


@dataclass(frozen=True, eq=False)
class Lagged:
    """Observations beside their own past: columns of sample t are [X y] at t - order, ..., t - 1, then X at t.

    Rows whose past is not known are left out: the first ones of each run and after each gap, and those within `order` of unused
    rows.
    """

    source: Observations
    order: int

    def chunks(self) -> Iterator[Chunk]:
        for chunk, past in _with_past(self.source, self.order):
            stacked = np.concatenate(past[::-1], axis=1)
            yield Chunk(stacked[:, :-1], stacked[:, -1], chunk.weight, chunk.starts_run)


@dataclass(frozen=True, eq=False)
class Whitened:
    """Observations through one autoregressive whitening filter per joint: x[t] - sum_k a[j, k] x[t - k].

    Rows that the filter cannot whiten are left out: the first ones of each run and after each gap, and those within its reach
    of unused rows.
    """

    source: Observations
    coefficients: np.ndarray

    @property
    def model(self):
        return self.source.model

    @property
    def size(self) -> int:
        return self.source.size

    @property
    def count(self) -> int:
        return self.source.count

    def chunks(self) -> Iterator[Chunk]:
        for chunk, past in _with_past(self.source, self.coefficients.shape[1]):
            white = past[0] - sum(a[:, None, None] * lag for a, lag in zip(self.coefficients.T, past[1:], strict=True))
            yield Chunk(white[:, :-1], white[:, -1], chunk.weight, chunk.starts_run)


def _with_past(source, order):
    """Chunks, weighted zero where the past is not known, with [X y] (n, b + 1, S) at lags 0, ..., order."""
    history = used = None
    for chunk in source.chunks():
        both = np.concatenate([chunk.columns, chunk.effort[:, None]], axis=1)
        if chunk.starts_run or history is None:
            history = np.zeros((*both.shape[:2], order))
            used = np.zeros((len(both), order), dtype=bool)
        padded = np.concatenate([history, both], axis=2)
        known = np.concatenate([used, chunk.weight > 0], axis=1)
        size = both.shape[2]
        lags = [slice(order - k, order - k + size) for k in range(order + 1)]
        weight = chunk.weight * np.all([known[:, lag] for lag in lags], axis=0)
        history, used = padded[:, :, size:], known[:, size:]
        yield chunk._replace(weight=weight), [padded[:, :, lag] for lag in lags]
