"""The log: what was recorded, in SI units and radians, with its provenance; never silently altered."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesid.errors import LogError

EffortKind = Literal["torque", "current", "raw"]
CHANNELS = ("position", "velocity", "current", "torque", "target_current", "target_torque", "temperature")


@dataclass(frozen=True, eq=False)
class Log:
    """Arrays of one recording: `time` (N,) [s] as recorded and, (N, n) each, what there is of the channels.

    position [rad, m], velocity [rad/s, m/s], current [A, or the drive's own unit when `effort_kind` is "raw"], torque
    [N m, N], target_current, target_torque (what the controller asked for), temperature [degC]; None where the file
    has none. `effort_kind` says which channel the schema declares as measured effort. `rows` are the first and last
    row of the file that were read, counted from 1 without the header; `sha256` is of the file's bytes; `window` is
    True when those rows were asked for by the caller. `notes` lists, one line each, what was left out or noticed.
    """

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray | None = None
    current: np.ndarray | None = None
    torque: np.ndarray | None = None
    target_current: np.ndarray | None = None
    target_torque: np.ndarray | None = None
    temperature: np.ndarray | None = None
    effort_kind: EffortKind | None = None
    joint_names: tuple[str, ...] | None = None
    path: str = ""
    sha256: str = ""
    rows: tuple[int, int] = (0, 0)
    window: bool = False
    schema: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        time = _frozen(self.time)
        object.__setattr__(self, "time", time)
        if time.ndim != 1:
            raise LogError(f"{self.where}: time must be one column, it has the shape {time.shape}")
        for name in CHANNELS:
            value = getattr(self, name)
            if value is None:
                if name == "position":
                    raise LogError(f"{self.where}: a log needs positions")
                continue
            value = _frozen(value)
            object.__setattr__(self, name, value)
            if value.ndim != 2 or value.shape[0] != time.size or value.shape[1] != self.position.shape[1]:
                raise LogError(
                    f"{self.where}: {name} has the shape {value.shape}, time has {time.size} rows and position "
                    f"{self.position.shape[-1]} joints: they must agree"
                )
        if self.joint_names is not None and len(self.joint_names) != self.dof:
            raise LogError(f"{self.where}: {len(self.joint_names)} joint names for {self.dof} joints")
        if self.rows == (0, 0) and time.size:
            object.__setattr__(self, "rows", (1, time.size))

    def __len__(self) -> int:
        return self.time.size

    @property
    def dof(self) -> int:
        """Number of joints recorded."""
        return self.position.shape[1]

    @property
    def duration(self) -> float:
        """Seconds from the first to the last row."""
        return float(self.time[-1] - self.time[0]) if self.time.size else 0.0

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels that were recorded."""
        return tuple(name for name in CHANNELS if getattr(self, name) is not None)

    @property
    def where(self) -> str:
        """The path as the user wrote it, window included: for messages."""
        path = self.path or "log"
        return f"{path}@{self.rows[0]}:{self.rows[1]}" if self.window else path

    def replace(self, **changes) -> Log:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def slice(self, first: int, last: int) -> Log:
        """The rows from index `first` to `last`, both included, counted from 0 within this log."""
        part = slice(first, last + 1)
        arrays = {name: getattr(self, name)[part] for name in self.channels}
        rows = (self.rows[0] + first, self.rows[0] + last)
        return self.replace(time=self.time[part], rows=rows, **arrays)

    def provenance(self) -> dict:
        """Path, hash and extent, ready for a result file."""
        return {
            "path": self.path,
            "sha256": self.sha256,
            "rows": list(self.rows),
            "samples": len(self),
            "duration_s": round(self.duration, 6),
            "schema": self.schema,
            "notes": list(self.notes),
        }


def check_robot(log: Log, robot, *, drop_bad_rows: bool = False) -> Log:
    """The log with its joints in the robot's order, or a LogError that says why it cannot be that robot's.

    Joints are matched by name when the file names them and the robot knows those names, else by order. A revolute
    position more than a full turn outside the joint's limits is refused: such a number is in degrees or belongs to
    another joint. With `drop_bad_rows` such rows, and those with a velocity above five times the joint's limit, are left
    out and listed in `Log.notes` when they are at most 5 % of the rows: more of them are no accident.
    """
    names = robot.joint_names
    if log.joint_names is not None and set(names) & set(log.joint_names):
        missing = [name for name in names if name not in log.joint_names]
        if missing:
            raise LogError(
                f"{log.where}: no column for the joint '{missing[0]}' of robot '{robot.name}'; the file has "
                f"{', '.join(log.joint_names)}"
            )
        order = [log.joint_names.index(name) for name in names]
        arrays = {name: getattr(log, name)[:, order] for name in log.channels}
        log = log.replace(joint_names=tuple(names), **arrays)
    if log.dof != robot.dof:
        raise LogError(
            f"{log.where}: {log.dof} joints recorded, robot '{robot.name}' has {robot.dof}: choose the robot or "
            "the schema that fits"
        )
    if drop_bad_rows:
        log = _without_impossible(log, robot)
    lower, upper = robot.limit("lower"), robot.limit("upper")
    for j in np.flatnonzero(robot.revolute):
        beyond = np.maximum(lower[j] - log.position[:, j], log.position[:, j] - upper[j])
        if beyond.size and beyond.max() > 2 * np.pi:
            row = int(beyond.argmax())
            raise LogError(
                f"{log.where} row {log.rows[0] + row}: position of joint {j + 1} ({names[j]}) is "
                f"{log.position[row, j]:.6g} rad, its limits are {lower[j]:.4g} to {upper[j]:.4g}: "
                "declare the file's unit (degrees?) in the schema"
            )
    return log


def _without_impossible(log: Log, robot) -> Log:
    lower, upper, fastest = (robot.limit(name) for name in ("lower", "upper", "velocity"))
    margin = np.where(robot.revolute, 2 * np.pi, np.inf)
    wrong = (log.position < lower - margin) | (log.position > upper + margin)
    if log.velocity is not None:
        wrong |= np.abs(log.velocity) > np.where(fastest > 0, 5 * fastest, np.inf)
    bad = np.flatnonzero(wrong.any(axis=1))
    if not bad.size or bad.size > 0.05 * len(log):
        return log
    joint = robot.joint_names[int(np.flatnonzero(wrong[bad[0]])[0])]
    note = (
        f"dropped {bad.size} rows whose position or velocity the robot cannot reach, the first at {log.time[bad[0]]:.9g} s "
        f"(joint {joint})"
    )
    keep = np.setdiff1d(np.arange(len(log)), bad)
    arrays = {name: getattr(log, name)[keep] for name in log.channels}
    return log.replace(time=log.time[keep], notes=(*log.notes, note), **arrays)


def _frozen(value) -> np.ndarray:
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array is value or array.base is not None:
        array = array.copy() if array.flags.writeable else array
    array.flags.writeable = False
    return array
