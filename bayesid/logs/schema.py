"""The schema: which column of a file is what, in which unit. Presets are TOML files beside this module."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bayesid.errors import LogError
from bayesid.logs.log import CHANNELS, EffortKind

SCHEMAS = Path(__file__).parent / "schemas"
UNITS = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": {"rad": 1.0, "deg": np.pi / 180, "mrad": 1e-3, "rev": 2 * np.pi, "m": 1.0, "mm": 1e-3},
    "velocity": {
        "rad/s": 1.0,
        "deg/s": np.pi / 180,
        "mrad/s": 1e-3,
        "rev/s": 2 * np.pi,
        "rpm": np.pi / 30,
        "m/s": 1.0,
        "mm/s": 1e-3,
    },
    "current": {"A": 1.0, "mA": 1e-3, "raw": 1.0},
    "torque": {"N m": 1.0, "mN m": 1e-3, "N mm": 1e-3, "N cm": 1e-2, "N": 1.0},
    "temperature": {"degC": 1.0, "K": 1.0},
}
UNITS["target_current"] = UNITS["current"]
UNITS["target_torque"] = UNITS["torque"]
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", " ": "space", "|": "bar"}
_KEYS = {"name", "description", "header", "delimiter", "joints", "effort", "time", "files", "transmission", *CHANNELS}


@dataclass(frozen=True)
class Columns:
    """Where one channel is found: `names` (or one pattern with {joint} or {name}), else `numbers` counted from 1.

    `units` holds one unit, or one for each joint.
    """

    units: tuple[str, ...]
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Transmission:
    """Motor-side recordings: motor position = matrix (joint position - offset), joint torque = matrix^T motor torque.

    `matrix` is n rows of n (turns of each motor per turn of each joint), `offset` n angles [rad]. Velocities follow the
    positions; a current is left on its motor.
    """

    matrix: tuple[tuple[float, ...], ...]
    offset: tuple[float, ...]


@dataclass(frozen=True)
class Schema:
    """Layout of a log file.

    `time` names one column, or two: seconds and nanoseconds; it is None when the file has no clock, then `rate` [Hz]
    is needed; with `time_unit` "sample" the time column counts samples at `rate`. `effort` names the channel that
    holds the measured effort: "torque", "current" (A) or "raw" (a number proportional to the current in the drive's
    own unit, found in the columns of `current`); None means torque where there is one, else current. With `files` the
    path is a folder that holds them, row by row in step, and columns are named "<file without suffix>/<column>". Of
    several `delimiters` the one that the first line holds most is taken.
    """

    name: str
    channels: tuple[tuple[str, Columns], ...]
    effort: EffortKind | None
    time: tuple[str | int, ...] | None = None
    time_unit: str = "s"
    rate: float | None = None
    header: bool = True
    delimiters: tuple[str, ...] = (",",)
    joints: int | None = None
    files: tuple[str, ...] = ()
    transmission: Transmission | None = None
    description: str = ""


def schema_names() -> tuple[str, ...]:
    """Names of the built-in presets."""
    return tuple(sorted(path.stem for path in SCHEMAS.glob("*.toml")))


def load_schema(name_or_path: str | Path | Schema) -> Schema:
    """A preset by name, or a schema from a TOML file. Raises LogError naming the file and the entry that is wrong."""
    if isinstance(name_or_path, Schema):
        return name_or_path
    preset = SCHEMAS / f"{name_or_path}.toml"
    if "/" not in str(name_or_path) and preset.is_file():
        path = preset
    else:
        path = Path(name_or_path)
        if path.suffix != ".toml":
            raise LogError(f"no schema preset '{name_or_path}': choose one of {', '.join(schema_names())}, or name a TOML file")
        if not path.is_file():
            raise LogError(f"{path}: no such schema file")
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LogError(f"{path}: not a TOML file: {str(error).splitlines()[0]}") from None
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from None
    return _schema(table, str(name_or_path) if path is preset else str(path), path.stem)


def _schema(table: dict, where: str, stem: str) -> Schema:
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise LogError(f"schema {where}: unknown entry '{unknown[0]}'; known are {', '.join(sorted(_KEYS))}")
    joints = table.get("joints")
    if joints is not None and not (_is_int(joints) and joints > 0):
        raise LogError(f"schema {where}: joints must be a whole number above zero")
    header = table.get("header", True)
    if not isinstance(header, bool):
        raise LogError(f"schema {where}: header must be true or false")
    delimiters = table.get("delimiter", ",")
    delimiters = (delimiters,) if isinstance(delimiters, str) else tuple(delimiters) if isinstance(delimiters, list) else ()
    if not delimiters or any(not isinstance(d, str) or d not in DELIMITERS for d in delimiters):
        raise LogError(f"schema {where}: delimiter must be one of {', '.join(map(repr, DELIMITERS))}, or a list of them")
    if "position" not in table:
        raise LogError(f"schema {where}: 'position' is missing: a log needs positions")
    channels = tuple((name, _columns(table[name], name, header, joints, where)) for name in CHANNELS if name in table)
    time, time_unit, rate = _clock(table.get("time"), header, where)
    present = dict(channels)
    effort = table.get("effort")
    if effort not in ("torque", "current", "raw", None):
        raise LogError(f"schema {where}: effort must be torque, current or raw, it is {effort!r}")
    needed = {"torque": "torque", "current": "current", "raw": "current"}.get(effort)
    if needed is not None and needed not in present:
        raise LogError(f"schema {where}: effort is {effort} but there is no entry '{needed}'")
    raw = "current" in present and "raw" in present["current"].units
    if raw != (effort == "raw") and (raw or effort == "raw"):
        raise LogError(f"schema {where}: the effort kind 'raw' and the current unit 'raw' go together")
    files = table.get("files", [])
    if not isinstance(files, list) or not all(isinstance(f, str) and f and "/" not in f for f in files):
        raise LogError(f"schema {where}: files must be a list of file names")
    if files and not header:
        raise LogError(f"schema {where}: files need a header, their columns are named <file>/<column>")
    return Schema(
        files=tuple(files),
        transmission=_transmission(table.get("transmission"), joints, where),
        name=str(table.get("name", stem)),
        channels=channels,
        effort=effort,
        time=time,
        time_unit=time_unit,
        rate=rate,
        header=header,
        delimiters=delimiters,
        joints=joints,
        description=str(table.get("description", "")),
    )


def _clock(entry, header: bool, where: str) -> tuple[tuple | None, str, float | None]:
    if not isinstance(entry, dict):
        raise LogError(f"schema {where}: 'time' is missing: give column and unit, or rate in Hz when the file has no clock")
    unknown = sorted(set(entry) - {"column", "columns", "unit", "rate"})
    if unknown:
        raise LogError(f"schema {where}: time has the unknown entry '{unknown[0]}'; known are column, unit, rate")
    rate = entry.get("rate")
    if rate is not None and not (isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate < 1e9):
        raise LogError(f"schema {where}: time rate must be a number of Hz above zero")
    column = entry.get("column", entry.get("columns"))
    if column is None:
        if rate is None:
            raise LogError(f"schema {where}: time needs a column, or a rate in Hz when the file has no clock")
        return None, "s", float(rate)
    columns = tuple(column) if isinstance(column, list) else (column,)
    if len(columns) not in (1, 2) or (len(columns) == 2 and entry.get("unit", "s") != "s"):
        raise LogError(f"schema {where}: time is one column, or two: seconds and nanoseconds")
    if not all(_is_int(c) and c > 0 if not header else isinstance(c, str) for c in columns):
        raise LogError(f"schema {where}: time column must be a {'name' if header else 'number counted from 1'}")
    unit = entry.get("unit", "s")
    if unit == "sample":
        if rate is None:
            raise LogError(f"schema {where}: time in samples needs a rate in Hz")
    elif not isinstance(unit, str) or unit not in UNITS["time"]:
        raise LogError(f"schema {where}: time unit {unit!r} is not one of sample, {', '.join(UNITS['time'])}")
    return columns, unit, None if rate is None else float(rate)


def _columns(entry, channel: str, header: bool, joints: int | None, where: str) -> Columns:
    if not isinstance(entry, dict):
        raise LogError(f"schema {where}: {channel} must be a table with columns and unit")
    unknown = sorted(set(entry) - {"columns", "unit", "optional"})
    if unknown:
        raise LogError(f"schema {where}: {channel} has the unknown entry '{unknown[0]}'; known are columns, unit, optional")
    if "unit" not in entry:
        raise LogError(f"schema {where}: {channel} has no unit; choose from {', '.join(UNITS[channel])}")
    units = entry["unit"]
    units = (units,) if isinstance(units, str) else tuple(units) if isinstance(units, list) else (units,)
    for unit in units:
        if not isinstance(unit, str) or unit not in UNITS[channel]:
            raise LogError(f"schema {where}: {channel} unit {unit!r} is not one of {', '.join(UNITS[channel])}")
    columns = entry.get("columns")
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    if header:
        if isinstance(columns, str):
            names = (columns,)
            if "{joint}" not in columns and "{name}" not in columns and joints != 1:
                raise LogError(
                    f"schema {where}: {channel} columns must be a list of names or a pattern with {{joint}} or {{name}}"
                )
        elif isinstance(columns, list) and columns and all(isinstance(c, str) for c in columns):
            names = tuple(columns)
        else:
            raise LogError(f"schema {where}: {channel} columns must be a list of names or a pattern with {{joint}} or {{name}}")
    else:
        span = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", columns) if isinstance(columns, str) else None
        if span and 0 < int(span[1]) <= int(span[2]) < 100_000:
            numbers = tuple(range(int(span[1]), int(span[2]) + 1))
        elif isinstance(columns, list) and columns and all(_is_int(c) and c > 0 for c in columns):
            numbers = tuple(columns)
        else:
            raise LogError(
                f'schema {where}: {channel} columns must be a range such as "2-7" or a list of numbers counted from 1'
            )
    count = len(numbers) or (len(names) if isinstance(columns, list) else None)
    if joints is not None and count is not None and count != joints:
        raise LogError(f"schema {where}: {channel} has {count} columns for {joints} joints")
    if len(units) > 1 and len(units) != (count or joints):
        raise LogError(
            f"schema {where}: {channel} has {len(units)} units for {count or joints or 'an unknown number of'} joints"
        )
    return Columns(units=units, names=names, numbers=numbers, optional=bool(entry.get("optional", False)))


def _transmission(entry, joints: int | None, where: str) -> Transmission | None:
    if entry is None:
        return None
    if joints is None or not isinstance(entry, dict) or set(entry) - {"matrix", "offset"}:
        raise LogError(f"schema {where}: transmission must be a table with matrix and offset, and joints must be given")
    try:
        matrix = np.array(entry.get("matrix"), dtype=float)
        offset = np.array(entry.get("offset", [0.0] * joints), dtype=float)
    except (TypeError, ValueError):
        matrix = offset = np.empty(0)
    if matrix.shape != (joints, joints) or offset.shape != (joints,):
        raise LogError(f"schema {where}: transmission needs a matrix of {joints} rows of {joints} numbers, offset {joints}")
    if not np.isfinite(matrix).all() or not np.isfinite(offset).all() or np.linalg.matrix_rank(matrix) < joints:
        raise LogError(f"schema {where}: the matrix of the transmission cannot be inverted")
    return Transmission(tuple(map(tuple, matrix.tolist())), tuple(offset.tolist()))


def _is_int(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
