"""Samples of a log larger than memory: overlapping chunks, filtered one by one, joined without a seam."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bayesid.errors import SignalError
from bayesid.logs.reading import iter_log
from bayesid.logs.schema import Schema
from bayesid.signals.filtering import Grid, transient
from bayesid.signals.samples import Samples, decimation, samples_from_log


def iter_samples(
    path: str | Path,
    schema: str | Path | Schema,
    *,
    rows_per_chunk: int = 100_000,
    drop_bad_rows: bool = False,
    effort: str = "auto",
    cutoff: float | None = None,
    differentiation=None,
    decimate: int | None = None,
) -> Iterator[Samples]:
    """The samples of `samples_from_log` chunk by chunk; options mean the same, idle ends are not trimmed.

    Chunks overlap by four filter transients, and the samples nearer than two to an inner edge are left to the
    neighbour, so every row is there once and, with uniform stamps, differs from that of the whole log by what the
    filter has forgotten (1e-4 of the signal's spread); with irregular ones also by the place of the grid (1e-2 of a
    noisy effort). A default cutoff or decimation is chosen on the first chunk and kept. Standstill is judged within a
    chunk, and the direction of friction of a joint that stands where a chunk begins starts anew.
    """
    settings = {"effort": effort, "differentiation": differentiation, "trim": False, "decimate": 1}
    first = next(iter_log(path, schema, rows_per_chunk=rows_per_chunk, drop_bad_rows=drop_bad_rows))
    cutoff = samples_from_log(first, cutoff=cutoff, **settings).cutoff
    rate = Grid.over(first.time).rate
    reach = 2 * transient(rate, cutoff)
    if rows_per_chunk < 4 * reach:
        raise SignalError(
            f"{path}: {rows_per_chunk} rows a chunk are too few for a cutoff of {cutoff:.6g} Hz: take {4 * reach}"
        )
    decimate = decimation(decimate, rate, cutoff, str(path))
    chunks = iter_log(path, schema, rows_per_chunk=rows_per_chunk, overlap=2 * reach, drop_bad_rows=drop_bad_rows)
    number = phase = 0
    log = next(chunks)
    while log is not None:
        following = next(chunks, None)
        begin = reach if number else 0
        end = len(log) - (0 if following is None else reach)
        samples = samples_from_log(log, cutoff=cutoff, **settings)
        row = np.searchsorted(log.time, samples.time)
        keep = (row >= begin) & (row < end)
        if not number and keep.any():
            phase = row[keep][0]
        keep &= (row + number - phase) % decimate == 0
        step = {"name": "chunk", "reach_rows": reach, "decimate": decimate}
        yield samples.then(samples.select(keep), step)
        number += len(log) - 2 * reach
        log = following
