"""MuJoCo models of robots, for simulating them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from bayesid.errors import RobotError
from bayesid.robots.inertial import central
from bayesid.robots.tree import Joint, Robot
from bayesid.robots.urdf import check_consistent, with_values


def mjcf_text(robot: Robot, inertials=None, rotor_inertias=None, timestep: float = 0.002) -> str:
    """The text of a MuJoCo model (MJCF) of the robot, with other standard inertial parameters (n, 10) where given.

    Joints, bodies and frames (as sites) keep their names; rotor inertia is the joint's armature; each joint has a
    motor of its own name whose control is the joint torque [N m, N]; position limits are joint ranges, torque limits
    control ranges. There is no geometry, hence no contact, and no friction: that is for the caller to apply. Gravity
    is the robot's.

    Raises RobotError when a link's inertial parameters are those of no rigid body, or of a body without extent, which
    MuJoCo does not accept, and when a rotor inertia is negative.
    """
    robot = with_values(robot, inertials, rotor_inertias)
    check_consistent(robot, "MJCF")
    if "world" in robot.link_names:
        raise RobotError(f"robot '{robot.name}': MuJoCo keeps the name 'world' for itself: rename that link")
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    ET.SubElement(root, "option", gravity=_text(robot.gravity), timestep=_text([timestep]))
    world = ET.SubElement(root, "worldbody")
    bodies = {-1: world}
    actuators = ET.SubElement(root, "actuator")
    for i, (joint, link) in enumerate(zip(robot.joints, robot.links, strict=True)):
        pose = {"pos": _text(joint.xyz), "xyaxes": _axes(joint.rotation)}
        body = bodies[i] = ET.SubElement(bodies[joint.parent], "body", {"name": link.name, **pose})
        _inertial(body, robot, link)
        _joint(body, joint)
        motor = ET.SubElement(actuators, "motor", name=joint.name, joint=joint.name)
        if np.isfinite(joint.torque) and joint.torque > 0:
            motor.set("ctrlrange", _text([-joint.torque, joint.torque]))
    for frame in robot.frames:
        pose = {"pos": _text(frame.xyz), "xyaxes": _axes(frame.rotation)}
        ET.SubElement(bodies[frame.parent], "site", {"name": frame.name, **pose})
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _inertial(body, robot, link):
    least = 1e-15
    at = f"robot '{robot.name}', link '{link.name}'"
    if link.inertial[0] < least:
        raise RobotError(f"{at}: it has no mass, and MuJoCo needs one on every moving link: give it a small one")
    mass, com, inertia = central(link.inertial)
    if np.linalg.eigvalsh(inertia)[0] < least:
        raise RobotError(
            f"{at}: it has no extent, and MuJoCo needs an inertia on every moving link: give it a small one"
        )
    xx, xy, xz, yy, yz, zz = inertia[np.triu_indices(3)]
    full = _text([xx, yy, zz, xy, xz, yz])
    ET.SubElement(body, "inertial", pos=_text(com), mass=_text([mass]), fullinertia=full)


def _joint(body, joint: Joint):
    kind = "slide" if joint.kind == "prismatic" else "hinge"
    element = ET.SubElement(body, "joint", name=joint.name, type=kind, axis=_text(joint.axis), pos="0 0 0")
    element.set("armature", _text([joint.rotor_inertia]))
    if joint.kind != "continuous" and np.isfinite([joint.lower, joint.upper]).all() and joint.lower < joint.upper:
        element.set("range", _text([joint.lower, joint.upper]))


def _axes(rotation) -> str:
    R = np.reshape(rotation, (3, 3))
    return _text([*R[:, 0], *R[:, 1]])


def _text(values) -> str:
    return " ".join(repr(float(value) + 0.0) for value in values)
