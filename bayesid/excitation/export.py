"""Trajectories in the formats that controllers take. Positions in rad, times in s."""

from __future__ import annotations

import csv
import io
import struct
from pathlib import Path

import numpy as np

from bayesid.errors import DesignError
from bayesid.excitation.excitation import Excitation

_MESSAGE = "trajectory_msgs/msg/JointTrajectory"
_SCHEMA = """std_msgs/Header header
string[] joint_names
trajectory_msgs/JointTrajectoryPoint[] points
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
================================================================================
MSG: trajectory_msgs/JointTrajectoryPoint
float64[] positions
float64[] velocities
float64[] accelerations
float64[] effort
builtin_interfaces/Duration time_from_start
================================================================================
MSG: builtin_interfaces/Duration
int32 sec
uint32 nanosec
"""


def csv_text(excitation: Excitation, rate: float = 100.0) -> str:
    """Time, position, velocity and acceleration of every joint, one row per sample, with a header."""
    time, q, qd, qdd = excitation.sampled(rate)
    header = ["time"]
    for what in ("position", "velocity", "acceleration"):
        header += [f"{what}.{name}" for name in excitation.joint_names]
    return _csv(header, np.column_stack([time, q, qd, qdd]))


def franka_csv_text(excitation: Excitation) -> str:
    """Positions and velocities of seven joints at 1 kHz, the rate of libfranka's motion callbacks."""
    _needs_rest(excitation, "a Franka robot")
    if excitation.dof != 7:
        raise DesignError(f"a Franka trajectory has 7 joints, this one has {excitation.dof}")
    time, q, qd, _ = excitation.sampled(1000.0)
    header = ["time", *(f"q{i}" for i in range(1, 8)), *(f"dq{i}" for i in range(1, 8))]
    return _csv(header, np.column_stack([time, q, qd]))


def joint_trajectory_yaml(excitation: Excitation, rate: float = 50.0) -> str:
    """A ROS 2 trajectory_msgs/msg/JointTrajectory as `ros2 topic pub` and the trajectory controllers read it.

    Positions, velocities and accelerations at `rate` [Hz]: controllers put quintic pieces through them, which follow a
    motion of bandwidth f to about (f / rate)^6.
    """
    _needs_rest(excitation, "a trajectory controller")
    time, q, qd, qdd = excitation.sampled(rate)
    lines = ["header:", "  stamp: {sec: 0, nanosec: 0}", '  frame_id: ""', "joint_names:"]
    lines += [f"- {_quoted(name)}" for name in excitation.joint_names]
    lines.append("points:")
    for row in range(len(time)):
        sec, nanosec = _split(time[row])
        lines.append(f"- positions: {_flow(q[row])}")
        lines.append(f"  velocities: {_flow(qd[row])}")
        lines.append(f"  accelerations: {_flow(qdd[row])}")
        lines.append("  effort: []")
        lines.append(f"  time_from_start: {{sec: {sec}, nanosec: {nanosec}}}")
    return "\n".join(lines) + "\n"


def write_mcap(excitation: Excitation, path, rate: float = 50.0, topic: str = "/joint_trajectory") -> None:
    """The same message in an MCAP file (profile ros2, CDR). Raises DesignError where the `mcap` extra is not installed."""
    try:
        from mcap.writer import Writer
    except ImportError:
        raise DesignError("writing MCAP needs the extra: pip install 'bayesid[mcap]'") from None
    _needs_rest(excitation, "a trajectory controller")
    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2", library="bayesid")
        schema = writer.register_schema(name=_MESSAGE, encoding="ros2msg", data=_SCHEMA.encode())
        channel = writer.register_channel(topic=topic, message_encoding="cdr", schema_id=schema)
        writer.add_message(channel, log_time=0, publish_time=0, data=joint_trajectory_cdr(excitation, rate))
        writer.finish()


def joint_trajectory_cdr(excitation: Excitation, rate: float = 50.0) -> bytes:
    """The message in little-endian CDR (OMG DDS-XTypes 7.4.1, as ROS 2 serialises it)."""
    cdr = _Cdr()
    cdr.pack("iI", 0, 0)
    cdr.string("")
    cdr.pack("I", excitation.dof)
    for name in excitation.joint_names:
        cdr.string(name)
    time, *states = excitation.sampled(rate)
    cdr.pack("I", len(time))
    for row in range(len(time)):
        for state in states:
            cdr.doubles(state[row])
        cdr.doubles(())
        cdr.pack("iI", *_split(time[row]))
    return b"\x00\x01\x00\x00" + bytes(cdr.data)


def urscript_text(excitation: Excitation, name: str = "bayesid_excitation", servo_step: float = 0.008) -> str:
    """A URScript program: asks, goes slowly to the start pose, checks it, runs the motion with servoj, stops.

    The program evaluates the motion itself every `servo_step` [s], as piecewise quintics through knots of the design (their
    error is below 1e-7 rad), so that it is short. Approach: movej at 0.2 rad/s and 0.3 rad/s^2 after the operator has agreed.
    """
    _needs_rest(excitation, "a UR robot")
    if excitation.dof != 6:
        raise DesignError(f"a UR program moves 6 joints, this trajectory has {excitation.dof}")
    if not name.isidentifier():
        raise DesignError(f"'{name}' cannot name a URScript program: use letters, digits and underscores")
    if not 0.002 <= servo_step <= 0.1:
        raise DesignError(f"the servo step must lie between 0.002 and 0.1 s, got {servo_step}")
    pieces = quintic_pieces(excitation)
    time = np.linspace(0.0, excitation.period, pieces + 1)
    q, qd, qdd, _ = excitation.motion(time)
    step = excitation.period / pieces
    lines = [
        f"def {name}():",
        f"  # {excitation.robot_name}: {excitation.family.name}, {excitation.period:g} s, {pieces} quintic pieces.",
        "  # Read it, run it in the simulator, keep a hand on the emergency stop.",
        f"  piece_s = {_number(step)}",
        f"  duration_s = {_number(excitation.period)}",
        f"  servo_s = {_number(servo_step)}",
        f"  knots = {pieces}",
    ]
    for joint in range(6):
        lines.append(f"  p{joint} = {_flow(q[:, joint])}")
        lines.append(f"  v{joint} = {_flow(qd[:, joint] * step)}")
        lines.append(f"  a{joint} = {_flow(qdd[:, joint] * step**2)}")
    lines += [
        "  def hermite(p, v, a, i, s):",
        "    d = p[i + 1] - p[i]",
        "    c3 = 10.0 * d - 6.0 * v[i] - 4.0 * v[i + 1] - 1.5 * a[i] + 0.5 * a[i + 1]",
        "    c4 = 8.0 * v[i] - 15.0 * d + 7.0 * v[i + 1] + 1.5 * a[i] - a[i + 1]",
        "    c5 = 6.0 * d - 3.0 * v[i] - 3.0 * v[i + 1] - 0.5 * a[i] + 0.5 * a[i + 1]",
        "    return p[i] + s * (v[i] + s * (0.5 * a[i] + s * (c3 + s * (c4 + s * c5))))",
        "  end",
        f"  q_start = {_flow(excitation.start)}",
        '  popup("The robot moves slowly to the start pose, then runs the motion. Is the space clear?", '
        'title="bayesid", blocking=True)',
        "  movej(q_start, a=0.3, v=0.2)",
        "  q_now = get_actual_joint_positions()",
        "  j = 0",
        "  while j < 6:",
        "    if norm(q_now[j] - q_start[j]) > 0.01:",
        '      popup("The start pose was not reached.", title="bayesid", error=True, blocking=True)',
        "      halt",
        "    end",
        "    j = j + 1",
        "  end",
        "  t = 0.0",
        "  while t < duration_s:",
        "    i = floor(t / piece_s)",
        "    if i > knots - 1:",
        "      i = knots - 1",
        "    end",
        "    s = t / piece_s - i",
        "    q = [" + ", ".join(f"hermite(p{j}, v{j}, a{j}, i, s)" for j in range(6)) + "]",
        "    servoj(q, t=servo_s, lookahead_time=0.1, gain=300)",
        "    t = t + servo_s",
        "  end",
        f"  servoj({_flow(excitation.end)}, t=servo_s, lookahead_time=0.1, gain=300)",
        "  stopj(1.0)",
        "end",
        f"{name}()",
    ]
    return "\n".join(lines) + "\n"


def quintic_pieces(excitation: Excitation, tolerance: float = 1e-7) -> int:
    """Equal quintic pieces through the design's position, velocity and acceleration that keep within `tolerance` [rad]."""
    pieces = max(8, int(4 * excitation.period * excitation.family.bandwidth))
    while True:
        pieces = int(np.ceil(1.25 * pieces))
        knots = np.linspace(0.0, excitation.period, pieces + 1)
        at = excitation.motion(knots)[:3]
        middle = 0.5 * (knots[1:] + knots[:-1])
        if np.abs(hermite_middle(at, knots[1]) - excitation.motion(middle)[0]).max() < tolerance:
            return pieces


def hermite_middle(states, step):
    """Positions (S-1, n) half way between knots of a quintic through q, qd, qdd (S, n) that are `step` [s] apart."""
    q, qd, qdd = states
    middle = (q[1:] + q[:-1]) / 2 + step * (qd[:-1] - qd[1:]) * 5 / 32
    return middle + step**2 * (qdd[1:] + qdd[:-1]) / 64


def write_formats(excitation: Excitation, folder, formats, rate: float = 100.0) -> list[Path]:
    """Write the formats named (csv, ros2, mcap, urscript, franka) into a folder; returns the files."""
    folder = Path(folder)
    written = []
    for name in formats:
        if name not in FORMATS:
            raise DesignError(f"unknown format '{name}': choose from {', '.join(FORMATS)}")
        path = folder / FORMATS[name]
        if name == "mcap":
            write_mcap(excitation, path)
        else:
            path.write_text(_TEXTS[name](excitation, rate), encoding="utf-8")
        written.append(path)
    return written


FORMATS = {
    "csv": "trajectory.csv",
    "ros2": "joint_trajectory.yaml",
    "mcap": "joint_trajectory.mcap",
    "urscript": "trajectory.script",
    "franka": "franka.csv",
}
_TEXTS = {
    "csv": csv_text,
    "ros2": lambda excitation, rate: joint_trajectory_yaml(excitation),
    "urscript": lambda excitation, rate: urscript_text(excitation),
    "franka": lambda excitation, rate: franka_csv_text(excitation),
}


class _Cdr:
    """Little-endian CDR: every primitive aligned to its size, counted from the end of the four-byte header."""

    def __init__(self):
        self.data = bytearray()

    def pack(self, kinds, *values):
        for kind, value in zip(kinds, values):
            size = struct.calcsize("<" + kind)
            self.data += bytes(-len(self.data) % size) + struct.pack("<" + kind, value)

    def string(self, text):
        raw = text.encode() + b"\x00"
        self.pack("I", len(raw))
        self.data += raw

    def doubles(self, values):
        self.pack("I", len(values))
        if len(values):
            self.data += bytes(-len(self.data) % 8) + np.asarray(values, dtype="<f8").tobytes()


def _needs_rest(excitation, who):
    if not excitation.family.at_rest:
        raise DesignError(
            f"a '{excitation.family.name}' motion does not start at rest, so {who} cannot run it as it is: "
            "design a fourier-quintic or a quintic-spline one"
        )


def _split(time):
    nanoseconds = round(time * 1e9)
    return nanoseconds // 10**9, nanoseconds % 10**9


def _csv(header, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([[repr(float(x)) for x in row] for row in rows])
    return out.getvalue()


def _number(x):
    """A decimal literal that YAML and URScript both read as a floating-point number."""
    text = f"{float(x):.12f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def _flow(values):
    return "[" + ", ".join(_number(x) for x in values) + "]"


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
