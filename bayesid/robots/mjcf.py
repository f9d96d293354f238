"""MuJoCo models: robots written for simulating them, and read from MJCF files."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from bayesid.errors import RobotError
from bayesid.robots.inertial import central, moved, standard_from_com
from bayesid.robots.placement import ANGLE_TOLERANCE, clean_offset, compose, vector
from bayesid.robots.tree import UNKNOWN, Frame, Joint, Link, Robot
from bayesid.robots.urdf import check_consistent, with_values


def read_mjcf(path) -> Robot:
    """The robot in an MJCF file, as MuJoCo compiles it (needs the extra bayesid[mujoco]).

    Bodies without joints are folded into the body that carries them and stay as Frames, like sites; a body with
    several joints becomes a chain of massless links that ends in the body. Armature is read as rotor inertia, damping
    as viscous and frictionloss as Coulomb friction, actuator force ranges and motor control ranges as torque limits.
    The joint variable is MuJoCo's qpos, so a joint's `ref` turns its frame. Orientations within 1e-5 of a quarter
    turn's are taken as that.

    Raises RobotError, one line naming the file, for what MuJoCo refuses, free and ball joints, and equality
    constraints.
    """
    try:
        import mujoco
    except ImportError:
        raise RobotError(f"{path}: reading MJCF needs MuJoCo: pip install 'bayesid[mujoco]'") from None
    path = Path(path)
    try:
        path.read_bytes()
        model = mujoco.MjModel.from_xml_path(str(path))
    except OSError as error:
        raise RobotError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RobotError(f"{path}: MuJoCo refuses it: {' '.join(str(error).split())}") from None
    return _from_model(mujoco, model, path)


def _from_model(mujoco, model, path) -> Robot:
    if model.neq:
        name = model.equality(0).name or "the first"
        raise RobotError(f"{path}: equality constraint '{name}': robots with loops or coupled joints are not supported")
    here = (np.eye(3), np.zeros(3))
    joints, links, inertials, frames = [], [], [], []
    places = [(-1, here)]
    torque = _torque_limits(mujoco, model)
    for b in range(1, model.nbody):
        body = model.body(b)
        name = body.name or f"body{b}"
        carrier, pose = places[int(body.parentid[0])]
        pose = compose(pose, (_rotation(mujoco, body.quat), np.array(body.pos)))
        first, count = int(body.jntadr[0]), int(body.jntnum[0])
        for k in range(first, first + count):
            joint = model.joint(k)
            last = k == first + count - 1
            kind = int(joint.type[0])
            at = f"{path}: joint '{joint.name or k}'"
            if kind not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
                raise RobotError(f"{at} of body '{name}': free and ball joints are not supported: use hinge or slide")
            slides = kind == mujoco.mjtJoint.mjJNT_SLIDE
            axis, reference = np.array(joint.axis), float(model.qpos0[model.jnt_qposadr[k]])
            start = (np.eye(3), np.array(joint.pos) - reference * axis * slides)
            if not slides:
                start = (_turn(axis, -reference), start[1])
            rotation, offset = compose(pose, start)
            joints.append(_read_joint(model, k, slides, axis, carrier, (rotation, offset), torque[k]))
            links.append(name if last else f"{name}_{joints[-1].name}")
            inertials.append(np.zeros(10))
            carrier, pose = len(joints) - 1, (np.eye(3), -np.array(joint.pos))
        if not count:
            frames.append(Frame(name, carrier, vector(clean_offset(pose[1])), vector(pose[0])))
        if carrier >= 0:
            turn = _rotation(mujoco, body.iquat)
            body_inertia = standard_from_com(float(body.mass[0]), np.zeros(3), np.diag(body.inertia), turn, np.array(body.ipos))
            inertials[carrier] += moved(body_inertia, *pose)
        places.append((carrier, pose))
    for s in range(model.nsite):
        site = model.site(s)
        carrier, pose = places[int(site.bodyid[0])]
        rotation, offset = compose(pose, (_rotation(mujoco, site.quat), np.array(site.pos)))
        name = site.name or f"site{s}"
        if name in ("world", *links, *(frame.name for frame in frames)):
            name = f"{name}_site"
        frames.append(Frame(name, carrier, vector(clean_offset(offset)), vector(rotation)))
    notes = [f"read from {path.name}"]
    if model.body_gravcomp.any():
        notes.append("gravity compensation of bodies is not read")
    try:
        return Robot(
            name=model.names.split(b"\0")[0].decode() or path.stem,
            joints=tuple(joints),
            links=tuple(Link(name, vector(row)) for name, row in zip(links, inertials, strict=True)),
            frames=tuple(frames),
            gravity=vector(model.opt.gravity),
            base="world",
            notes=tuple(notes),
        )
    except RobotError as error:
        raise RobotError(f"{path}: {error}") from None


def _read_joint(model, k, slides, axis, parent, placed, torque) -> Joint:
    joint = model.joint(k)
    limited = bool(model.jnt_limited[k])
    lower, upper = model.jnt_range[k] if limited else (-np.inf, np.inf)
    friction = (("viscous", float(joint.damping[0])), ("coulomb", float(joint.frictionloss[0])))
    return Joint(
        name=joint.name or f"joint{k}",
        kind="prismatic" if slides else ("revolute" if limited else "continuous"),
        parent=parent,
        xyz=vector(clean_offset(placed[1])),
        rotation=vector(placed[0]),
        axis=vector(axis),
        lower=float(lower),
        upper=float(upper),
        torque=torque,
        rotor_inertia=float(joint.armature[0]),
        drive_gain=UNKNOWN,
        friction=tuple(pair for pair in friction if pair[1]),
    )


def _torque_limits(mujoco, model) -> np.ndarray:
    """(joints,) what the joint's own force range and its motors allow, infinite where neither says."""
    limits = np.where(model.jnt_actfrclimited, np.abs(model.jnt_actfrcrange).max(axis=1, initial=0.0), np.inf)
    for a in range(model.nu):
        if model.actuator_trntype[a] != mujoco.mjtTrn.mjTRN_JOINT:
            continue
        k, gear = model.actuator_trnid[a, 0], abs(model.actuator_gear[a, 0])
        if model.actuator_forcelimited[a]:
            limits[k] = min(limits[k], gear * np.abs(model.actuator_forcerange[a]).max())
        plain = model.actuator_biastype[a] == mujoco.mjtBias.mjBIAS_NONE
        if plain and model.actuator_ctrllimited[a] and model.actuator_gaintype[a] == mujoco.mjtGain.mjGAIN_FIXED:
            reach = np.abs(model.actuator_ctrlrange[a]).max() * abs(model.actuator_gainprm[a, 0])
            limits[k] = min(limits[k], gear * reach)
    return limits


def _rotation(mujoco, quaternion) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return _squared(matrix.reshape(3, 3))


def _turn(axis, angle) -> np.ndarray:
    x, y, z = axis
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return _squared(np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * skew @ skew)


def _squared(rotation) -> np.ndarray:
    near = np.round(rotation) + 0.0
    return near if np.abs(rotation - near).max() <= ANGLE_TOLERANCE else rotation


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
        raise RobotError(f"{at}: it has no extent, and MuJoCo needs an inertia on every moving link: give it a small one")
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
