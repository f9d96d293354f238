"""Exports: each format is read back by a reader of its own, sampled, and equal to the design to 1e-6."""

import csv
import io
import json
import re
import struct

import numpy as np
import pytest

from bayesid.errors import DesignError
from bayesid.excitation import Excitation, Fourier, FourierQuintic, Limits, write_formats
from bayesid.excitation.excitation import fingerprint
from bayesid.excitation.export import csv_text, franka_csv_text, joint_trajectory_yaml, urscript_text
from bayesid.robots import load_robot


def motion_of(name, family, seed=0):
    robot = load_robot(name)
    rng = np.random.default_rng(seed)
    start = rng.uniform(-1, 1, robot.dof)
    coefficients = rng.normal(size=(family.size, robot.dof)) * 0.4
    return Excitation(
        name, name, fingerprint(robot), robot.joint_names, family, coefficients, start, start.copy(), Limits.of(robot)
    )


@pytest.fixture(scope="module")
def ur():
    return motion_of("ur10e", FourierQuintic(12.0, 6))


@pytest.fixture(scope="module")
def panda():
    return motion_of("panda", FourierQuintic(8.0, 4))


def test_csv_holds_the_motion_to_the_last_digit(ur):
    rows = list(csv.reader(io.StringIO(csv_text(ur, 50.0))))
    table = np.array(rows[1:], dtype=float)
    assert rows[0][0] == "time"
    assert rows[0][7] == f"velocity.{ur.joint_names[0]}"
    expected = np.concatenate(ur.motion(table[:, 0])[:3], axis=1)
    np.testing.assert_array_equal(table[:, 1:], expected)
    assert table[-1, 0] == 12.0


def test_franka_csv_steps_by_a_millisecond(panda, ur):
    rows = list(csv.reader(io.StringIO(franka_csv_text(panda))))
    table = np.array(rows[1:], dtype=float)
    np.testing.assert_allclose(np.diff(table[:, 0]), 1e-3, atol=1e-12)
    np.testing.assert_allclose(table[:, 1:8], panda.motion(table[:, 0])[0], atol=1e-12)
    np.testing.assert_allclose(table[:, 8:], panda.motion(table[:, 0])[1], atol=1e-12)
    with pytest.raises(DesignError, match="has 7 joints, this one has 6"):
        franka_csv_text(ur)


def read_yaml(text):
    """The subset of YAML that the exporter writes, by hand; PyYAML must agree where it is installed."""
    head, _, tail = text.partition("points:\n")
    names = [json.loads(line[2:]) for line in head.splitlines() if line.startswith("- ")]
    points = []
    for block in tail.split("- positions: ")[1:]:
        lines = ("positions: " + block).splitlines()
        point = {line.strip().partition(": ")[0]: line.strip().partition(": ")[2] for line in lines}
        stamp = re.fullmatch(r"\{sec: (\d+), nanosec: (\d+)\}", point["time_from_start"])
        row = {key: json.loads(point[key]) for key in ("positions", "velocities", "accelerations", "effort")}
        points.append(row | {"time": int(stamp[1]) + 1e-9 * int(stamp[2])})
    try:
        import yaml
    except ImportError:
        pass
    else:
        loaded = yaml.safe_load(text)
        assert loaded["joint_names"] == names
        assert [p["positions"] for p in loaded["points"]] == [p["positions"] for p in points]
    return names, points


def through_quintics(points, time):
    """Positions at any time as a trajectory controller computes them: quintics through the points of the message."""
    stamps = np.array([p["time"] for p in points])
    state = [np.array([p[key] for p in points]) for key in ("positions", "velocities", "accelerations")]
    piece = np.clip(np.searchsorted(stamps, time, side="right") - 1, 0, len(stamps) - 2)
    out = np.empty((len(time), state[0].shape[1]))
    for row, (i, t) in enumerate(zip(piece, time)):
        h = stamps[i + 1] - stamps[i]
        matrix, right = [], []
        for at, knot in ((0.0, i), (h, i + 1)):
            for derivative in range(3):
                factor = [np.prod(np.arange(j - derivative + 1, j + 1.0)) if j >= derivative else 0.0 for j in range(6)]
                matrix.append([f * at ** max(j - derivative, 0) for j, f in enumerate(factor)])
                right.append(state[derivative][knot])
        out[row] = (t - stamps[i]) ** np.arange(6.0) @ np.linalg.solve(np.array(matrix), np.array(right))
    return out


def test_joint_trajectory_read_back_and_sampled_equals_the_design(ur):
    names, points = read_yaml(joint_trajectory_yaml(ur))
    assert tuple(names) == ur.joint_names
    assert points[0]["velocities"] == [0.0] * 6
    time = np.random.default_rng(1).uniform(0, 12, 200)
    np.testing.assert_allclose(through_quintics(points, time), ur.motion(time)[0], atol=1e-6)


def read_cdr(data):
    """Little-endian CDR of a JointTrajectory, read by position alone."""
    assert data[:4] == b"\x00\x01\x00\x00"
    body, at = data[4:], 0

    def take(kind):
        nonlocal at
        size = struct.calcsize(kind)
        at += -at % size
        (value,) = struct.unpack_from("<" + kind, body, at)
        at += size
        return value

    def text():
        nonlocal at
        size = take("I")
        at += size
        return body[at - size : at - 1].decode()

    def doubles():
        return [take("d") for _ in range(take("I"))]

    stamp, frame = (take("i"), take("I")), text()
    names = [text() for _ in range(take("I"))]
    points = []
    for _ in range(take("I")):
        values = {key: doubles() for key in ("positions", "velocities", "accelerations", "effort")}
        points.append(values | {"time": take("i") + 1e-9 * take("I")})
    assert at == len(body)
    assert stamp == (0, 0)
    assert frame == ""
    return names, points


def test_mcap_read_back_and_sampled_equals_the_design(ur, tmp_path):
    reader = pytest.importorskip("mcap.reader")
    (path,) = write_formats(ur, tmp_path, ["mcap"])
    with open(path, "rb") as file:
        ((schema, channel, message),) = list(reader.make_reader(file).iter_messages())
    assert (schema.name, schema.encoding) == ("trajectory_msgs/msg/JointTrajectory", "ros2msg")
    assert channel.message_encoding == "cdr"
    names, points = read_cdr(message.data)
    assert tuple(names) == ur.joint_names
    time = np.random.default_rng(2).uniform(0, 12, 200)
    np.testing.assert_allclose(through_quintics(points, time), ur.motion(time)[0], atol=1e-6)


def run_urscript(text, arrives=0.0):
    """Run a URScript program by translating its statements to Python; returns what it commanded, in order."""
    lines, depth = [], 0
    for line in text.splitlines():
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        if words == "end":
            depth -= 1
            continue
        lines.append("    " * depth + ("raise SystemExit" if words == "halt" else words))
        if words.endswith(":"):
            depth += 1
    assert depth == 0, "blocks and their ends do not match"
    commanded, where = [], {}

    def movej(q, a, v):
        where["q"] = list(np.array(q) + arrives)
        commanded.append(("movej", q, a, v))

    names = {
        "popup": lambda *args, **options: commanded.append(("popup", args[0])),
        "movej": movej,
        "get_actual_joint_positions": lambda: where["q"],
        "norm": abs,
        "floor": lambda x: int(np.floor(x)),
        "servoj": lambda q, t, lookahead_time, gain: commanded.append(("servoj", q, t)),
        "stopj": lambda a: commanded.append(("stopj", a)),
    }
    try:
        exec("\n".join(lines), names)
    except SystemExit:
        commanded.append(("halt",))
    return commanded


def test_urscript_run_step_by_step_commands_the_design(ur):
    commanded = run_urscript(urscript_text(ur))
    assert [c[0] for c in commanded[:2]] == ["popup", "movej"]
    assert commanded[1][2:] == (0.3, 0.2)
    np.testing.assert_allclose(commanded[1][1], ur.start, atol=1e-9)
    servo = [c for c in commanded if c[0] == "servoj"]
    q, steps = np.array([c[1] for c in servo]), np.array([c[2] for c in servo])
    time = np.minimum(np.concatenate([[0.0], np.cumsum(steps)[:-1]]), 12.0)
    np.testing.assert_allclose(q, ur.motion(time)[0], atol=1e-6)
    assert time[-1] == 12.0
    assert commanded[-1] == ("stopj", 1.0)


def test_urscript_halts_when_the_start_pose_is_not_reached(ur):
    commanded = run_urscript(urscript_text(ur), arrives=0.05)
    assert [c[0] for c in commanded] == ["popup", "movej", "popup", "halt"]


def test_motions_that_a_controller_cannot_run_are_refused(panda, tmp_path):
    moving = motion_of("ur10e", Fourier(5.0, 2))
    with pytest.raises(DesignError, match="does not start at rest"):
        urscript_text(moving)
    with pytest.raises(DesignError, match="does not start at rest"):
        joint_trajectory_yaml(moving)
    with pytest.raises(DesignError, match="moves 6 joints"):
        urscript_text(panda)
    with pytest.raises(DesignError, match="servo step"):
        urscript_text(motion_of("ur10e", FourierQuintic(5.0, 2)), servo_step=1.0)
    with pytest.raises(DesignError, match="unknown format 'krl'"):
        write_formats(panda, tmp_path, ["krl"])
