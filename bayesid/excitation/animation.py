"""A look at the motion before running it: one self-contained HTML page with a stick figure that can be turned."""

from __future__ import annotations

import html
import json
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
    """The page: figure, path of its tip, time slider, joint positions within their limits. `floor` draws a grid at that height [m]."""
    robot = robot or excitation.robot
    time, q, qd, _ = excitation.sampled(RATE)
    points, segments = stick_figure(robot, q)
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
    return _PAGE.replace("__TITLE__", title).replace("__DATA__", data)


def write_animation(excitation: Excitation, path, robot=None, floor: float | None = None) -> Path:
    """Write the page to a file."""
    path = Path(path)
    path.write_text(animation_html(excitation, robot, floor), encoding="utf-8")
    return path


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>__TITLE__</title>
<style>
:root { color-scheme: light dark; --ink: #1c2430; --soft: #7a8699; --line: #d5dbe4; --arm: #1f6feb; --path: #e08a00; --paper: #fbfcfe; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #8b96a8; --line: #343c4a; --paper: #12161d; --arm: #58a6ff; } }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; display: grid; gap: 1rem; grid-template-columns: minmax(0, 3fr) minmax(14rem, 2fr); }
h1 { grid-column: 1 / -1; font-size: 1.1rem; margin: 0; }
canvas { width: 100%; aspect-ratio: 1; border: 1px solid var(--line); border-radius: 6px; touch-action: none; cursor: grab; }
.controls { display: flex; gap: .6rem; align-items: center; grid-column: 1 / -1; }
.controls input { flex: 1; }
button { font: inherit; padding: .25rem .9rem; border: 1px solid var(--line); border-radius: 5px; background: transparent; color: inherit; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { padding: .2rem .3rem; text-align: right; font-weight: normal; }
td:first-child, th:first-child { text-align: left; }
th { color: var(--soft); border-bottom: 1px solid var(--line); }
.bar { height: 4px; background: var(--line); border-radius: 2px; position: relative; min-width: 5rem; }
.bar i { position: absolute; width: 6px; height: 10px; top: -3px; margin-left: -3px; background: var(--arm); border-radius: 2px; }
@media (max-width: 40rem) { main { grid-template-columns: minmax(0, 1fr); } }
</style>
</head>
<body>
<main>
<h1>__TITLE__</h1>
<canvas id="view" aria-label="stick figure of the robot"></canvas>
<div><table><thead><tr><th>joint</th><th>rad</th><th>rad/s</th><th>range</th></tr></thead><tbody id="rows"></tbody></table></div>
<div class="controls"><button id="play">Pause</button><input id="at" type="range" min="0" value="0" aria-label="time"><output id="clock"></output></div>
</main>
<script type="application/json" id="data">__DATA__</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("view"), slider = document.getElementById("at");
const clock = document.getElementById("clock"), play = document.getElementById("play"), rows = document.getElementById("rows");
let yaw = -0.9, pitch = 0.35, frame = 0, running = true, last = performance.now(), elapsed = 0;
slider.max = data.time.length - 1;
const cells = data.joints.map((name) => {
  const row = rows.insertRow();
  row.insertCell().textContent = name;
  const q = row.insertCell(), qd = row.insertCell(), bar = row.insertCell().appendChild(document.createElement("div"));
  bar.className = "bar";
  return { q, qd, mark: bar.appendChild(document.createElement("i")) };
});
const paint = getComputedStyle(document.documentElement);
const colour = (name) => paint.getPropertyValue(name).trim();
function project(p, size) {
  const cy = Math.cos(yaw), sy = Math.sin(yaw), cp = Math.cos(pitch), sp = Math.sin(pitch);
  const x = cy * p[0] - sy * p[1], y = sy * p[0] + cy * p[1];
  const scale = 0.42 * size / data.reach;
  return [size / 2 + scale * x, size * 0.55 - scale * (cp * p[2] - sp * y)];
}
function stroke(context, list, style, width) {
  context.strokeStyle = style; context.lineWidth = width; context.beginPath();
  list.forEach((p, i) => i ? context.lineTo(p[0], p[1]) : context.moveTo(p[0], p[1]));
  context.stroke();
}
function draw() {
  const size = canvas.clientWidth * (window.devicePixelRatio || 1);
  if (canvas.width !== Math.round(size)) { canvas.width = canvas.height = Math.round(size); }
  const context = canvas.getContext("2d"), w = canvas.width;
  context.clearRect(0, 0, w, w);
  context.lineJoin = context.lineCap = "round";
  const z = data.floor === null ? 0 : data.floor, r = data.reach;
  for (let k = -4; k <= 4; k++) {
    stroke(context, [project([k * r / 4, -r, z], w), project([k * r / 4, r, z], w)], colour("--line"), 1);
    stroke(context, [project([-r, k * r / 4, z], w), project([r, k * r / 4, z], w)], colour("--line"), 1);
  }
  const tip = data.points[0].length - 1;
  stroke(context, data.points.slice(0, frame + 1).map((p) => project(p[tip], w)), colour("--path"), 1.5);
  const now = data.points[frame].map((p) => project(p, w));
  data.segments.forEach(([a, b]) => stroke(context, [now[a], now[b]], colour("--arm"), Math.max(3, w / 110)));
  context.fillStyle = colour("--ink");
  now.forEach((p) => { context.beginPath(); context.arc(p[0], p[1], Math.max(2.5, w / 140), 0, 7); context.fill(); });
  data.joints.forEach((_, j) => {
    const q = data.q[frame][j], lower = data.limits[0][j], upper = data.limits[1][j];
    cells[j].q.textContent = q.toFixed(3);
    cells[j].qd.textContent = data.qd[frame][j].toFixed(3);
    const bounded = lower !== null && upper !== null;
    cells[j].mark.style.left = (bounded ? 100 * (q - lower) / (upper - lower) : 50) + "%";
  });
  slider.value = frame;
  clock.textContent = data.time[frame].toFixed(2) + " s";
  document.body.dataset.frame = frame;
}
function tick() {
  const stamp = performance.now();
  if (running) {
    elapsed += (stamp - last) / 1000;
    const length = data.time[data.time.length - 1];
    if (elapsed > length) { elapsed = 0; }
    frame = Math.min(data.time.length - 1, Math.round(elapsed / length * (data.time.length - 1)));
    draw();
  }
  last = stamp;
}
play.onclick = () => { running = !running; play.textContent = running ? "Pause" : "Play"; };
slider.oninput = () => { frame = Number(slider.value); elapsed = data.time[frame]; draw(); };
canvas.onpointerdown = (event) => canvas.setPointerCapture(event.pointerId);
canvas.onpointermove = (event) => {
  if (!event.buttons) { return; }
  yaw += event.movementX / 120; pitch = Math.max(-1.5, Math.min(1.5, pitch + event.movementY / 120)); draw();
};
draw();
document.body.dataset.ready = "yes";
setInterval(tick, 40);
</script>
</body>
</html>
"""
