"""A robot in words: its tree, limits, inertial parameters, and whether each link can exist."""

from __future__ import annotations

import numpy as np

from bayesid.robots.inertial import central, defect, smallest_eigenvalue
from bayesid.robots.library import builtin_names, load_robot
from bayesid.robots.tree import Robot


def robot_report(robot: Robot) -> str:
    """Text about a robot for the terminal: tree, joints, limits, links and whether each can exist, frames, notes."""
    size = f"{robot.dof} moving joint{'s' if robot.dof > 1 else ''}"
    mass = robot.inertials[:, 0].sum()
    gravity = " ".join(f"{value:g}" for value in robot.gravity)
    parts = [f"{robot.name}: {size}, {mass:.4g} kg in motion, gravity {gravity} m/s^2", "", "Tree", *_tree(robot)]
    parts += ["", "Joints", *_joints(robot)]
    if _has_actuators(robot):
        parts += ["", "Actuators, joint side", *_actuators(robot)]
    parts += ["", "Links", *_links(robot), "", *_verdict(robot)]
    if robot.frames:
        names = (*robot.link_names, robot.base)
        parts += ["", "Frames", *_table([[frame.name, f"on {names[frame.parent]}"] for frame in robot.frames])]
    if robot.notes:
        parts += ["", "Notes", *(f"  {note}" for note in robot.notes)]
    return "\n".join(parts) + "\n"


def builtin_report() -> str:
    """Text that lists the built-in robots: joints, mass, the largest torque limit, links that cannot exist."""
    rows = [["name", "joints", "in motion", "torque", ""]]
    for name in builtin_names():
        robot = load_robot(name)
        kinds = "".join("P" if joint.kind == "prismatic" else "R" for joint in robot.joints)
        wrong = [link.name for link in robot.links if defect(link.inertial)]
        note = f"{', '.join(wrong)} cannot exist: see bayesid robots show {name}" if wrong else ""
        torque = _known(robot.limit("torque").max(), "N m")
        rows.append([name, kinds, f"{robot.inertials[:, 0].sum():.4g} kg", torque, note])
    return "\n".join(_table(rows)) + "\n"


def _tree(robot) -> list[str]:
    children = {i: [j for j in range(robot.dof) if robot.parents[j] == i] for i in range(-1, robot.dof)}
    lines = [f"  {robot.base}"]
    pending = [(child, "  ", child == children[-1][-1]) for child in reversed(children[-1])]
    while pending:
        i, indent, last = pending.pop()
        joint = robot.joints[i]
        lines.append(f"{indent}{'`-' if last else '|-'} {robot.links[i].name}  ({joint.name}, {joint.kind})")
        below = indent + ("   " if last else "|  ")
        pending += [(child, below, child == children[i][-1]) for child in reversed(children[i])]
    return lines


def _joints(robot) -> list[str]:
    rows = [["", "name", "kind", "lower", "upper", "velocity", "acceleration", "torque"]]
    for number, joint in enumerate(robot.joints, 1):
        unit, force = ("m", "N") if joint.kind == "prismatic" else ("rad", "N m")
        rows.append(
            [
                str(number),
                joint.name,
                joint.kind,
                _known(joint.lower, unit),
                _known(joint.upper, unit),
                _known(joint.velocity, f"{unit}/s"),
                _known(joint.acceleration, f"{unit}/s^2"),
                _known(joint.torque, force),
            ]
        )
    return _table(rows)


def _has_actuators(robot) -> bool:
    return bool(
        robot.rotor_inertias.any() or np.isfinite(robot.drive_gains).any() or any(joint.friction for joint in robot.joints)
    )


def _actuators(robot) -> list[str]:
    laws = list(dict.fromkeys(name for joint in robot.joints for name, _ in joint.friction))
    rows = [["", "rotor inertia", "drive gain", *laws]]
    for joint in robot.joints:
        prismatic = joint.kind == "prismatic"
        friction = dict(joint.friction)
        row = [
            joint.name,
            f"{joint.rotor_inertia:.4g} {'kg' if prismatic else 'kg m^2'}",
            _known(joint.drive_gain, "N/A" if prismatic else "N m/A"),
        ]
        rows.append(row + [f"{friction[law]:.4g}" if law in friction else "-" for law in laws])
    return _table(rows)


def _links(robot) -> list[str]:
    rows = [["name", "mass kg", "centre of mass m", "principal moments kg m^2", "smallest eigenvalue", ""]]
    for link in robot.links:
        if link.inertial[0]:
            mass, com, inertia = central(link.inertial)
            moments = np.linalg.eigvalsh(inertia)
            numbers = [f"{mass:.5g}", " ".join(f"{x:.4f}" for x in com), " ".join(f"{x:.4g}" for x in moments)]
        else:
            numbers = ["0", "-", "-"]
        verdict = "IMPOSSIBLE" if defect(link.inertial) else ("ok" if any(link.inertial) else "no inertia")
        rows.append([link.name, *numbers, f"{smallest_eigenvalue(link.inertial):.3g}", verdict])
    return _table(rows)


def _verdict(robot) -> list[str]:
    wrong = [(link, defect(link.inertial)) for link in robot.links]
    wrong = [(link, reason) for link, reason in wrong if reason]
    if not wrong:
        return ["Physical consistency: every link can exist (no pseudo-inertia has a negative eigenvalue)."]
    lines = [f"Physical consistency: FAILED by {', '.join(link.name for link, _ in wrong)}."]
    for link, reason in wrong:
        smallest = smallest_eigenvalue(link.inertial)
        lines.append(f"  {link.name}: {reason}; the smallest eigenvalue of its pseudo-inertia is {smallest:.3g}.")
    lines.append(
        "  No distribution of mass has such parameters. The robot can be used as it is; --project FILE writes the nearest"
    )
    lines.append("  one that can exist; in Python: robot.with_inertials(bayesid.inertia.nearest_consistent(robot.inertials))")
    return lines


def _known(value, unit) -> str:
    return f"{value:.4g} {unit}" if np.isfinite(value) else "-"


def _table(rows) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
