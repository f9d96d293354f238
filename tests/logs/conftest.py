"""Small logs written to a temporary folder, with the true arrays beside them."""

import numpy as np
import pytest

from bayesid.logs import Log


@pytest.fixture(scope="session")
def motion():
    """Two joints moving for 4 s at 100 Hz: time, q, qd, current."""
    time = 5.0 + np.arange(400) / 100
    w = 2 * np.pi * np.array([0.5, 0.8])
    phase = time[:, None] * w
    return time, 0.7 * np.sin(phase), 0.7 * w * np.cos(phase), 3.0 * np.cos(phase) + 0.2


@pytest.fixture(scope="session")
def small_log(motion):
    time, q, qd, current = motion
    return Log(time, q, velocity=qd, current=current, temperature=30 + 0 * q, effort_kind="current", path="made")


SCHEMA = """
header = false
joints = 2
effort = "current"
time = { column = 1, unit = "s" }
position = { columns = "2-3", unit = "rad" }
velocity = { columns = [4, 5], unit = "rad/s" }
current = { columns = "6-7", unit = "A" }
"""


@pytest.fixture(scope="session")
def schema(tmp_path_factory):
    """A schema for headerless CSV of `motion`."""
    path = tmp_path_factory.mktemp("schema") / "two.toml"
    path.write_text(SCHEMA)
    return path


@pytest.fixture
def write(tmp_path, motion):
    """Writes rows of `motion` as CSV, after a change to the list of lines, and returns the path."""

    def writer(change=lambda lines: lines, name="run.csv", join="\n", end="\n", rows=None):
        table = np.column_stack(motion)[:rows]
        lines = change([",".join(f"{x:.9g}" for x in row) for row in table])
        path = tmp_path / name
        path.write_text(join.join(lines) + end)
        return path

    return writer
