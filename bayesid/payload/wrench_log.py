"""Wrench logs: CSV files with a header, one row per sample.

Columns, in any order: `time` [s]; `q1` ... `qn` joint positions [rad]; `fx fy fz` [N] and `mx my mz` [N m], the wrench of the
robot on the payload at the sensor frame's origin along its axes; if there are any `qd1` ... `qdn` joint velocities [rad/s] and
`wx wy wz` measured angular velocity of the sensor frame along its axes [rad/s]. Further columns are ignored.
"""

from __future__ import annotations

import csv
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import frame_jacobian, frame_pose
from bayesid.errors import LogError
from bayesid.payload.record import SensorMotion, WrenchRecord
from bayesid.robots import Robot

_CHUNK = 2048


def read_wrench_log(path, robot: Robot, frame: str | None = None, parts=()) -> WrenchRecord:
    """A record from a CSV file (see the module); poses and velocities come from the robot's forward kinematics.

    `parts` names spans of time, see SensorMotion. Raises LogError naming row and column.
    """
    columns = _read(Path(path))
    joints = [f"q{i + 1}" for i in range(robot.dof)]
    speeds = [f"qd{i + 1}" for i in range(robot.dof)]
    wrench = ["fx", "fy", "fz", "mx", "my", "mz"]
    missing = [name for name in ("time", *joints, *wrench) if name not in columns]
    if missing:
        raise LogError(
            f"{path}: no column '{missing[0]}': a wrench log for robot '{robot.name}' needs time, q1 "
            f"to q{robot.dof}, {', '.join(wrench)}"
        )
    time = columns["time"]
    q = np.column_stack([columns[name] for name in joints])
    if all(name in columns for name in speeds):
        qd = np.column_stack([columns[name] for name in speeds])
    else:
        qd = np.gradient(q, time, axis=0)
    rotation, position, velocity = _kinematics(robot, q, qd, frame or robot.link_names[-1])
    rates = ["wx", "wy", "wz"]
    rate = np.column_stack([columns[name] for name in rates]) if all(name in columns for name in rates) else None
    values = np.column_stack([columns[name] for name in wrench])
    motion = SensorMotion(time, rotation, velocity, tuple(parts), position, robot.gravity)
    return WrenchRecord(motion, values[:, :3], values[:, 3:], rate, str(path))


def write_wrench_log(path, q, record: WrenchRecord, qd=None) -> None:
    """Write a record with its joint positions (N, n) [rad] and velocities as a CSV file that `read_wrench_log` reads."""
    q = np.asarray(q)
    names = ["time", *(f"q{i + 1}" for i in range(q.shape[1]))]
    parts = [record.motion.time[:, None], q]
    if qd is not None:
        names += [f"qd{i + 1}" for i in range(q.shape[1])]
        parts.append(np.asarray(qd))
    names += ["wx", "wy", "wz", "fx", "fy", "fz", "mx", "my", "mz"]
    parts += [record.angular_velocity, record.force, record.moment]
    np.savetxt(path, np.concatenate(parts, axis=1), fmt="%.12g", delimiter=",", header=",".join(names), comments="")


def _read(path):
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LogError(f"{path}: not a text file: {error}") from error
    if len(rows) < 4:
        raise LogError(f"{path}: {max(len(rows) - 1, 0)} data rows: a wrench log needs a header and at least three rows")
    header = [name.strip() for name in rows[0]]
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise LogError(f"{path} row 1: column '{twice}' appears twice")
    values = np.empty((len(rows) - 1, len(header)))
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise LogError(f"{path} row {number}: {len(row)} columns, the header has {len(header)}")
        for column, text in enumerate(row):
            try:
                values[number - 2, column] = float(text)
            except ValueError:
                raise LogError(
                    f"{path} row {number}, column {column + 1} ('{header[column]}'): not a number: '{text}'"
                ) from None
    return dict(zip(header, values.T))


def _kinematics(robot, q, qd, frame):
    rotation, position, velocity = np.empty((len(q), 3, 3)), np.empty((len(q), 3)), np.empty((len(q), 3))
    robot.frame(frame)
    for start in range(0, len(q), _CHUNK):
        count = min(_CHUNK, len(q) - start)
        padded = [np.concatenate([x[start : start + count], np.zeros((_CHUNK - count, robot.dof))]).T for x in (q, qd)]
        blocks = _pose_and_velocity(robot, frame, *map(jnp.asarray, padded))
        for out, block in zip((rotation, position, velocity), blocks):
            out[start : start + count] = np.moveaxis(np.asarray(block), -1, 0)[:count]
    return rotation, position, velocity


@jax.jit(static_argnums=(0, 1))
def _pose_and_velocity(robot, frame, q, qd):
    rotation, position = frame_pose(robot, q, frame)
    return rotation, position, jnp.einsum("inb,nb->ib", frame_jacobian(robot, q, frame)[:3], qd)
