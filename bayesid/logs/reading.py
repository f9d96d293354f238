"""Reading logs: columns to channels, units to SI, and every check that a row must pass."""

from __future__ import annotations

import bisect
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bayesid.errors import LogError
from bayesid.logs.log import CHANNELS, Log
from bayesid.logs.schema import UNITS, Columns, Schema, load_schema
from bayesid.logs.tables import JoinedTable, open_table

# No position, speed, current, torque or temperature of a robot comes near it, while corrupt floats usually pass it.
IMPLAUSIBLE = 1e6
IMPLAUSIBLE_RAW = 1e12
# Seconds; stamps counted from 1970 are near 2e9.
IMPLAUSIBLE_TIME = 1e11
MEND = "mend the file, read another window, or drop such rows with --drop-bad-rows"


def read_log(path: str | Path, schema: str | Path | Schema, *, drop_bad_rows: bool = False) -> Log:
    """Read a recording and check it.

    `path` may end in a window "@first:last", rows counted from 1 without the header, both ends included, either end
    omitted. `schema` is a preset's name, a TOML file or a Schema. Every value must be a finite, plausible number and
    time must rise; the first offence raises a LogError naming file, row and column. With `drop_bad_rows` offending
    rows are left out and listed in `Log.notes`. Positions and velocities whose units disagree raise either way.
    """
    name, first, last = split_window(path)
    source = _Source(Path(name), load_schema(schema))
    parts, dropped = [], []
    for values, rows in source.read(first, last, drop_bad_rows, dropped):
        parts.append((values, rows))
    if not parts:
        if dropped:
            raise LogError(f"{name}: no usable row is left: {dropped[0]}")
        raise LogError(f"{name}: no rows in the window {first}:{last or ''}; the file has {source.count()} rows")
    values = np.concatenate([values for values, _ in parts])
    rows = np.concatenate([rows for _, rows in parts])
    if last is not None and not dropped and rows[-1] < last:
        raise LogError(f"{name}: the window {first}:{last} passes the end of the file, which has {source.count()} rows")
    values, rows = source.ordered(values, rows, drop_bad_rows, dropped)
    log = source.log(values, rows, source.sha256(), (first, last) != (1, None), dropped)
    check_units(log)
    return log


def iter_log(
    path: str | Path,
    schema: str | Path | Schema,
    *,
    rows_per_chunk: int = 100_000,
    overlap: int = 0,
    drop_bad_rows: bool = False,
) -> Iterator[Log]:
    """The same recording as consecutive logs of at most `rows_per_chunk` new rows: for files larger than memory.

    Each chunk after the first starts with the last `overlap` rows of the one before. The checks are those of
    `read_log`.
    """
    if rows_per_chunk < 2:
        raise LogError(f"rows_per_chunk must be at least 2, it is {rows_per_chunk}")
    if not 0 <= overlap < rows_per_chunk:
        raise LogError(f"overlap must be from 0 to below rows_per_chunk ({rows_per_chunk}), it is {overlap}")
    name, first, last = split_window(path)
    source = _Source(Path(name), load_schema(schema))
    digest = source.sha256()
    window = (first, last) != (1, None)
    dropped: list[str] = []
    held = np.empty((0, source.columns_read))
    held_rows = np.empty(0, dtype=int)
    kept = 0
    previous = -np.inf
    end = 0
    for values, rows in source.read(first, last, drop_bad_rows, dropped):
        values, rows = source.ordered(values, rows, drop_bad_rows, dropped, previous)
        if not rows.size:
            continue
        previous, end = source.time_of(values)[-1], rows[-1]
        held, held_rows = np.concatenate([held, values]), np.concatenate([held_rows, rows])
        while len(held) - kept > rows_per_chunk:
            upto = kept + rows_per_chunk
            yield _checked(source.log(held[:upto], held_rows[:upto], digest, window, dropped))
            held, held_rows = held[upto - overlap :], held_rows[upto - overlap :]
            kept = overlap
    if last is not None and not dropped and end < last:
        raise LogError(f"{name}: the window {first}:{last} passes the end of the file, which has {source.count()} rows")
    if not end:
        raise LogError(f"{name}: no rows in the window {first}:{last or ''}; the file has {source.count()} rows")
    if len(held) > kept:
        yield _checked(source.log(held, held_rows, digest, window, dropped))


def split_window(path: str | Path) -> tuple[str, int, int | None]:
    """The file's name, and the first and last row (None: the end) of "name@first:last"."""
    text = str(path)
    name, at, window = text.rpartition("@")
    if not at or Path(text).exists():
        return text, 1, None
    match = re.fullmatch(r"(\d*):(\d*)", window)
    if not match or not name:
        raise LogError(f"{text}: the window after @ must read first:last, rows counted from 1, for example run.csv@635:3510")
    first = int(match[1]) if match[1] else 1
    last = int(match[2]) if match[2] else None
    if first < 1 or (last is not None and last < first):
        raise LogError(f"{text}: the window must start at row 1 or later and not end before it starts")
    return name, first, last


def check_units(log: Log) -> None:
    """Refuse a log whose recorded velocity is not the derivative of its position up to noise.

    The increments of position between rows are regressed on the trapezoidal integral of velocity, joint by joint;
    where the two are well correlated the slope is one if the units are right, 180/pi if positions are in degrees.
    """
    if log.velocity is None or len(log) < 10:
        return
    dt = np.diff(log.time)
    # A gap in the recording says nothing about units, and the trapezoid is wrong across it.
    usable = dt < 5 * np.median(dt)
    moved = np.diff(log.position, axis=0)[usable]
    integrated = (0.5 * (log.velocity[1:] + log.velocity[:-1]) * dt[:, None])[usable]
    a, b, ab = (moved**2).sum(0), (integrated**2).sum(0), (moved * integrated).sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = ab / np.sqrt(a * b)
        slope = ab / b
    sure = (np.abs(correlation) > 0.95) & (a > 1e-16) & (b > 1e-16)
    for j in np.flatnonzero(sure & ((slope < 0.5) | (slope > 2.0))):
        factor = float(slope[j])
        causes = {
            "positions are in degrees but declared in radians": 180 / np.pi,
            "velocities are in degrees per second but declared in radians per second": np.pi / 180,
            "time is in milliseconds but declared in seconds": 1e-3,
            "time is in microseconds but declared in seconds": 1e-6,
            "time is in seconds but declared in milliseconds": 1e3,
            "position and velocity have opposite signs": -1.0,
        }
        cause = next((text for text, value in causes.items() if 0.8 < factor / value < 1.25), "their units disagree")
        raise LogError(
            f"{log.where} position of joint {j + 1}: changes {factor:.4g} times as fast as its velocity says: {cause}; "
            "correct the units in the schema"
        )


class _Source:
    """One file under one schema: which of its columns are read, and what each of them is."""

    def __init__(self, path: Path, schema: Schema):
        self.path = path
        self.schema = schema
        if schema.files:
            self.table = JoinedTable(path, schema.files, schema.delimiters)
        else:
            self.table = open_table(path, schema.header, schema.delimiters)
        if self.table.names is not None and not schema.header:
            raise LogError(f"{path}: its columns have names, schema '{schema.name}' gives numbers: use a schema with names")
        self.joint_names: tuple[str, ...] | None = None
        self.channels: dict[str, list[int]] = {}
        self.scales: dict[str, np.ndarray] = {}
        for name, columns in schema.channels:
            found = self._find(name, columns)
            if found is not None:
                self.channels[name] = found
        n = len(self.channels["position"])
        for name, columns in schema.channels:
            if name not in self.channels:
                continue
            if len(self.channels[name]) != n:
                raise LogError(f"{path}: {len(self.channels[name])} columns of {name} but {n} of position")
            units = columns.units if len(columns.units) == n else columns.units[:1] * n
            if len(columns.units) not in (1, n):
                raise LogError(f"{path}: schema '{schema.name}' gives {len(columns.units)} units of {name} for {n} joints")
            self.scales[name] = np.array([UNITS[name][unit] for unit in units])
        self._kelvin = np.array([u == "K" for u in dict(schema.channels).get("temperature", Columns(("degC",))).units])
        self.time_columns = self._time_columns()
        order = list(self.time_columns) + [c for found in self.channels.values() for c in found]
        self.columns = tuple(dict.fromkeys(order))
        self.columns_read = len(self.columns)
        self._position_of = {column: i for i, column in enumerate(self.columns)}
        self._meaning = dict.fromkeys(self.time_columns, "time")
        for name, found in self.channels.items():
            for j, c in enumerate(found):
                self._meaning.setdefault(c, f"{name.replace('_', ' ')} of joint {j + 1}")
        raw = schema.effort == "raw"
        self._bound = np.full(len(self.columns), IMPLAUSIBLE)
        for name, found in self.channels.items():
            for c in found:
                self._bound[self._position_of[c]] = IMPLAUSIBLE_RAW if raw and name == "current" else IMPLAUSIBLE
        unit = 1.0 / schema.rate if schema.time_unit == "sample" else UNITS["time"][schema.time_unit]
        for c in self.time_columns:
            self._bound[self._position_of[c]] = IMPLAUSIBLE_TIME / unit

    def _find(self, channel: str, columns: Columns) -> list[int] | None:
        if columns.numbers:
            beyond = [c for c in columns.numbers if c > self.table.width]
            if len(beyond) == len(columns.numbers) and columns.optional:
                return None
            if beyond:
                raise LogError(
                    f"{self.path}: column {beyond[0]} ({channel.replace('_', ' ')}) is missing: the file has "
                    f"{self.table.width} columns, schema '{self.schema.name}' needs it"
                )
            return [c - 1 for c in columns.numbers]
        names = self.table.names
        wanted = list(columns.names)
        if len(columns.names) == 1 and "{joint}" in columns.names[0]:
            pattern = columns.names[0]
            start = 0 if pattern.replace("{joint}", "0") in names else 1
            count = self.schema.joints
            if count is None:
                count = 0
                while pattern.replace("{joint}", str(start + count)) in names:
                    count += 1
            wanted = [pattern.replace("{joint}", str(start + j)) for j in range(max(count, 1))]
        elif len(columns.names) == 1 and "{name}" in columns.names[0]:
            head, tail = columns.names[0].split("{name}", 1)
            expression = re.compile(re.escape(head) + "(.+)" + re.escape(tail))
            found = tuple(m[1] for m in map(expression.fullmatch, names) if m)
            if self.joint_names is None and found and channel == "position":
                self.joint_names = found
            joints = self.joint_names or found
            wanted = [head + joint + tail for joint in joints] or [columns.names[0]]
        missing = [name for name in wanted if name not in names]
        if missing and columns.optional and len(missing) == len(wanted):
            return None
        if missing:
            shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise LogError(
                f"{self.path}: the column '{missing[0]}' ({channel.replace('_', ' ')}) is missing; "
                f"schema '{self.schema.name}' needs it, the file has {shown}"
            )
        return [names.index(name) for name in wanted]

    def _time_columns(self) -> tuple[int, ...]:
        if self.schema.time is None:
            return ()
        found = []
        for column in self.schema.time:
            if isinstance(column, int):
                if column > self.table.width:
                    raise LogError(f"{self.path}: column {column} (time) is missing: the file has {self.table.width} columns")
                found.append(column - 1)
            elif column not in self.table.names:
                shown = ", ".join(self.table.names[:8]) + (", ..." if self.table.width > 8 else "")
                raise LogError(f"{self.path}: the column '{column}' (time) is missing; the file has {shown}")
            else:
                found.append(self.table.names.index(column))
        return tuple(found)

    def read(self, first: int, last: int | None, drop: bool, dropped: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Blocks (rows, columns) of raw numbers with their row numbers, cell by cell checked."""
        for block in self.table.blocks(self.columns, first):
            count = len(block.values)
            begin = max(first - block.first, 0)
            end = count if last is None else min(count, last - block.first + 1)
            if end <= begin:
                if last is not None and block.first > last:
                    return
                continue
            values = block.values[begin:end]
            rows = np.arange(block.first + begin, block.first + end)
            with np.errstate(invalid="ignore"):
                wrong = ~(np.abs(values) < self._bound)
            offending = np.flatnonzero(wrong.any(1))
            for i in offending:
                message = self._offence(int(rows[i]), values[i], wrong[i], i + begin, block.bad)
                if not drop:
                    raise LogError(f"{message}; {MEND}")
                dropped.append(message)
            keep = np.setdiff1d(np.arange(len(values)), offending)
            if keep.size:
                yield values[keep], rows[keep]
            if last is not None and block.first + count > last:
                return

    def _offence(self, row: int, values, wrong, index: int, bad: dict) -> str:
        quoted = {column: text for (i, column), text in bad.items() if i == index}
        if quoted:
            column, text = next(iter(quoted.items()))
            if text.startswith("the row"):
                truncated = " (cut short?)" if column >= 0 and "columns" in text else ""
                return f"{self._place(row)}: {text}{truncated}"
            return f"{self._place(row, column)}: {text}"
        k = int(np.flatnonzero(wrong)[0])
        value = values[k]
        text = f"not finite: {value}" if not np.isfinite(value) else f"implausible value {value:.6g}"
        return f"{self._place(row, self.columns[k])}: {text}"

    def _place(self, row: int, column: int | None = None) -> str:
        if column is None:
            return f"{self.path} row {row}"
        label = f"column '{self.table.names[column]}'" if self.table.names is not None else f"column {column + 1}"
        return f"{self.path} row {row}, {label} ({self._meaning.get(column, 'not used')})"

    def time_of(self, values: np.ndarray) -> np.ndarray:
        """Seconds of raw rows that have a clock."""
        raw = values[:, [self._position_of[c] for c in self.time_columns]]
        if raw.shape[1] > 1:
            return raw @ np.array([1.0, 1e-9])[: raw.shape[1]]
        if self.schema.time_unit == "sample":
            return raw[:, 0] / self.schema.rate
        return raw[:, 0] * UNITS["time"][self.schema.time_unit]

    def ordered(self, values, rows, drop: bool, dropped: list[str], previous: float = -np.inf):
        """Rows whose time rises above `previous` and on: the first that does not raises, or the fewest are left out."""
        time = self.time_of(values) if self.time_columns else rows / self.schema.rate
        highest = np.maximum.accumulate(np.concatenate([[previous], time]))[:-1]
        late = np.flatnonzero(time <= highest)
        if not late.size:
            return values, rows
        if not drop:
            i = late[0]
            what = (
                f"repeats {time[i]:.9g} s"
                if time[i] == highest[i]
                else f"goes back to {time[i]:.9g} s after {highest[i]:.9g} s"
            )
            raise LogError(f"{self._at_time(rows[i])}: time {what}; {MEND}")
        kept = _longest_rise(time, previous)
        for i in np.setdiff1d(np.arange(len(rows)), kept):
            dropped.append(f"{self._at_time(rows[i])}: time {time[i]:.9g} s is out of order")
        return values[kept], rows[kept]

    def _at_time(self, row: int) -> str:
        return self._place(int(row), self.time_columns[0] if self.time_columns else None)

    def count(self) -> int:
        """Rows of the whole file; reads it."""
        return sum(len(block.values) for block in self.table.blocks(self.columns[:1], 1))

    def sha256(self) -> str:
        """Hash of the file's bytes; of several files, of their bytes one after the other in the schema's order."""
        digest = hashlib.sha256()
        for path in [self.path / file for file in self.schema.files] or [self.path]:
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        return digest.hexdigest()

    def log(self, values, rows, digest: str, window: bool, dropped: list[str]) -> Log:
        """The log of checked rows, in SI units."""
        arrays = {}
        for name, found in self.channels.items():
            arrays[name] = values[:, [self._position_of[c] for c in found]] * self.scales[name]
        if "temperature" in arrays and self._kelvin.any():
            arrays["temperature"] = arrays["temperature"] - 273.15 * self._kelvin
        if self.schema.transmission is not None:
            arrays = _joint_side(arrays, self.schema.transmission)
        time = self.time_of(values) if self.time_columns else (rows - 1) / self.schema.rate
        effort = self.schema.effort
        if effort is None:
            effort = "torque" if "torque" in arrays else "current" if "current" in arrays else None
        notes = ()
        if dropped:
            listed = "; ".join(message.removeprefix(f"{self.path} ") for message in dropped[:20])
            more = f"; and {len(dropped) - 20} more" if len(dropped) > 20 else ""
            notes = (f"dropped {len(dropped)} bad rows: {listed}{more}",)
        return Log(
            time=time,
            effort_kind=effort,
            joint_names=self.joint_names,
            path=str(self.path),
            sha256=digest,
            rows=(int(rows[0]), int(rows[-1])),
            window=window,
            schema=self.schema.name,
            notes=notes,
            **{name: arrays[name] for name in CHANNELS if name in arrays},
        )


def _checked(log: Log) -> Log:
    check_units(log)
    return log


def _joint_side(arrays: dict[str, np.ndarray], transmission) -> dict[str, np.ndarray]:
    matrix = np.array(transmission.matrix)
    out = dict(arrays)
    for name in ("position", "velocity"):
        if name in arrays:
            out[name] = np.linalg.solve(matrix, arrays[name].T).T
    out["position"] = out["position"] + np.array(transmission.offset)
    for name in ("torque", "target_torque"):
        if name in arrays:
            out[name] = arrays[name] @ matrix
    return out


def _longest_rise(time: np.ndarray, above: float) -> np.ndarray:
    """Indices of the longest strictly rising run of stamps above `above`, others left out between.

    By patience sorting (Fredman, Discrete Mathematics 11 (1975) 29), so that one stamp far ahead costs one row and not
    all that follow.
    """
    tails: list[float] = []
    ends: list[int] = []
    before = np.full(len(time), -1)
    for i, t in enumerate(time.tolist()):
        if t <= above:
            continue
        k = bisect.bisect_left(tails, t)
        if k < len(tails) and tails[k] == t:
            continue
        before[i] = ends[k - 1] if k else -1
        tails[k : k + 1], ends[k : k + 1] = [t], [i]
    path = []
    i = ends[-1] if ends else -1
    while i >= 0:
        path.append(i)
        i = int(before[i])
    return np.array(path[::-1], dtype=int)
