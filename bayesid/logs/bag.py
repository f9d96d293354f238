"""ROS 2 bags in sqlite3 storage (.db3): the JointState messages of one topic as a table of numbers."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bayesid.errors import LogError
from bayesid.logs.tables import Block

TYPE = "sensor_msgs/msg/JointState"
FIELDS = ("position", "velocity", "effort")


class BagTable:
    """Columns `__time` [s] (header stamps) and /joint_states/<joint>/<field> of a bag, whatever its topic is called.

    The message layout is that of sensor_msgs/JointState in CDR (OMG DDS-XTypes 1.3, XCDR1), either byte order. A
    field that the messages leave empty has no columns. Raises LogError when the bag has no such topic or more than
    one.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            with sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True) as bag:
                topics = bag.execute("SELECT id, name FROM topics WHERE type = ?", (TYPE,)).fetchall()
                if len(topics) != 1:
                    found = ", ".join(name for _, name in topics) or "none"
                    raise LogError(f"{path}: needs one topic of {TYPE}, found {found}: record one, or split the bag")
                rows = bag.execute(
                    "SELECT data FROM messages WHERE topic_id = ? ORDER BY timestamp, id", (topics[0][0],)
                ).fetchall()
        except sqlite3.Error as error:
            raise LogError(f"{path}: not a ROS 2 bag in sqlite3 storage: {error}") from None
        finally:
            if "bag" in locals():
                bag.close()
        if not rows:
            raise LogError(f"{path}: no message on {topics[0][1]}")
        stamps, arrays = np.empty(len(rows)), []
        joints: tuple[str, ...] | None = None
        for k, (data,) in enumerate(rows):
            try:
                stamps[k], names, fields = _joint_state(data)
            except (struct.error, UnicodeDecodeError, ValueError, TypeError):
                raise LogError(f"{path} message {k + 1}: not a {TYPE} in CDR") from None
            if joints is None:
                joints, lengths = names, [len(f) for f in fields]
                if not joints or any(length not in (0, len(joints)) for length in lengths):
                    raise LogError(f"{path} message 1: {len(joints)} joint names, but {lengths} values of {', '.join(FIELDS)}")
            if [len(f) for f in fields] != lengths or sorted(names) != sorted(joints):
                raise LogError(f"{path} message {k + 1}: other joints or fields than in message 1: split the bag")
            order = [names.index(name) for name in joints] if names != joints else slice(None)
            arrays.append(np.concatenate([np.asarray(f)[order] for f in fields if len(f)]))
        used = [field for field, length in zip(FIELDS, lengths) if length]
        self.names = ("__time", *(f"/joint_states/{joint}/{field}" for field in used for joint in joints))
        self.width = len(self.names)
        self._values = np.column_stack([stamps, np.array(arrays)])

    def blocks(self, columns: tuple[int, ...], first: int) -> Iterator[Block]:
        """The rows from `first` (counted from 1) on, as one block."""
        if first <= len(self._values):
            yield Block(first, self._values[first - 1 :, list(columns)])


def _joint_state(data: bytes) -> tuple[float, tuple[str, ...], list[tuple[float, ...]]]:
    """Stamp [s], joint names and (position, velocity, effort) of one serialized message."""
    order = "<" if data[1] & 1 else ">"
    body, at = memoryview(data)[4:], 0

    def number(code: str, size: int) -> int:
        nonlocal at
        at += -at % size
        (value,) = struct.unpack_from(order + code, body, at)
        at += size
        return value

    def text() -> str:
        nonlocal at
        length = number("I", 4)
        value = bytes(body[at : at + length]).rstrip(b"\0").decode()
        if len(body) < at + length:
            raise ValueError
        at += length
        return value

    def doubles() -> tuple[float, ...]:
        nonlocal at
        count = number("I", 4)
        if not count:
            return ()
        at += -at % 8
        values = struct.unpack_from(f"{order}{count}d", body, at)
        at += 8 * count
        return values

    seconds, nanoseconds = number("i", 4), number("I", 4)
    text()
    names = tuple(text() for _ in range(number("I", 4)))
    return seconds + 1e-9 * nanoseconds, names, [doubles() for _ in FIELDS]
