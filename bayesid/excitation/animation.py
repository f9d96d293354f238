"""A look at the motion before running it: one self-contained HTML page with a stick figure that can be turned."""

from __future__ import annotations

import html
import json
from importlib import resources
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import link_poses
from bayesid.excitation.excitation import Excitation

RATE = 25.0


def stick_figure(robot, q):
    """(S, points, 3) origins of the links and frames in the base, and the index pairs of the segments that join them."""
    rotation, origin = (np.asarray(x) for x in link_poses(robot, jnp.asarray(q.T)))
    points = [np.zeros((len(q), 3)), *(origin[i].T for i in range(robot.dof))]
    segments = [(0 if parent < 0 else parent + 1, i + 1) for i, parent in enumerate(robot.parents.tolist())]
    for frame in robot.frames:
        if frame.parent >= 0 and np.linalg.norm(frame.xyz) > 1e-6:
            tip = origin[frame.parent] + np.einsum("ijs,j->is", rotation[frame.parent], np.array(frame.xyz))
            points.append(tip.T)
            segments.append((frame.parent + 1, len(points) - 1))
    return np.stack(points, axis=1), segments


def animation_html(excitation: Excitation, robot=None, floor: float | None = None) -> str:
    """The page: figure, path of its tip, time slider, joint positions within their limits. `floor` draws a grid at that
    height [m]."""
    robot = robot or excitation.robot
    time, q, qd, _ = excitation.sampled(RATE)
    points, segments = stick_figure(robot, q)
    points = points @ _upright(robot.gravity).T
    limits = [
        [float(x) if np.isfinite(x) else None for x in side] for side in (excitation.limits.lower, excitation.limits.upper)
    ]
    rounded = {
        "time": np.round(time, 4).tolist(),
        "points": np.round(points, 4).tolist(),
        "segments": segments,
        "q": np.round(q, 4).tolist(),
        "qd": np.round(qd, 4).tolist(),
        "joints": list(excitation.joint_names),
        "limits": limits,
        "velocity": [float(x) if np.isfinite(x) else None for x in excitation.limits.velocity],
        "floor": floor,
        "reach": float(np.abs(points).max()),
    }
    data = json.dumps(rounded, separators=(",", ":")).replace("<", "\\u003c")
    title = html.escape(f"{excitation.robot_name}: {excitation.family.name}, {excitation.period:g} s")
    page = resources.files("bayesid.excitation").joinpath("animation.html").read_text(encoding="utf-8")
    return page.replace("__TITLE__", title).replace("__DATA__", data)


def write_animation(excitation: Excitation, path, robot=None, floor: float | None = None) -> Path:
    """Write the page to a file."""
    path = Path(path)
    path.write_text(animation_html(excitation, robot, floor), encoding="utf-8")
    return path


def _upright(gravity):
    """Rotation (3, 3) that turns the direction against gravity into z: an arm in a vertical xy plane stands on the page."""
    up = -np.asarray(gravity, dtype=float)
    if not np.linalg.norm(up) > 0:
        return np.eye(3)
    up = up / np.linalg.norm(up)
    axis, cosine = np.cross(up, [0.0, 0.0, 1.0]), up[2]
    if cosine < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    hat = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    return np.eye(3) + hat + hat @ hat / (1.0 + cosine)
