"""URDF in and out: links behind fixed joints are folded into the moving link that carries them."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from xml.parsers import expat

import numpy as np

from bayesid.errors import RobotError
from bayesid.robots.inertial import central, defect, moved, standard_from_com, tensor
from bayesid.robots.placement import (
    ANGLE_TOLERANCE,
    LENGTH_TOLERANCE,
    clean_offset,
    compose,
    rotation_from_rpy,
    rpy_from_rotation,
    vector,
)
from bayesid.robots.tree import GRAVITY, Frame, Joint, Link, Robot

_MOVING = ("revolute", "continuous", "prismatic")
_EXTRA = "bayesid"
_EXTRA_LIMITS = ("acceleration", "jerk")


def read_urdf(path, angle_tolerance: float = ANGLE_TOLERANCE, length_tolerance: float = LENGTH_TOLERANCE) -> Robot:
    """The robot in a URDF file.

    Links behind fixed joints are folded in: their inertia is added to the moving link that carries them, or dropped
    where the base carries them, and each stays as a Frame. Angles within `angle_tolerance` [rad] of a multiple of pi/2
    are taken as that, offsets within `length_tolerance` [m] of zero as zero. A joint without position limits, or with
    an effort or velocity limit of 0 (which exporters write for "not known"), has infinite ones; `Robot.notes` says so.

    Joints come depth first, siblings in the order of the file. Raises RobotError, one line naming file and element,
    for a file that is missing or not URDF, mimic, floating and planar joints, axes that are not unit vectors, loops,
    several roots, bad numbers.
    """
    path = Path(path)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise RobotError(f"{path}: cannot be read: {error.strerror}") from None
    return robot_from_urdf(text, str(path), angle_tolerance, length_tolerance)


def robot_from_urdf(
    text: str | bytes,
    where: str = "URDF",
    angle_tolerance: float = ANGLE_TOLERANCE,
    length_tolerance: float = LENGTH_TOLERANCE,
) -> Robot:
    """The robot described by the text of a URDF file; `where` names it in errors. See `read_urdf`."""
    return _Reader(where, angle_tolerance, length_tolerance).robot(text)


class _Reader:
    def __init__(self, where, angle_tolerance, length_tolerance):
        self.where = where
        self.angle_tolerance = angle_tolerance
        self.length_tolerance = length_tolerance
        self.notes = []
        self.rounding = 0.0

    def robot(self, text) -> Robot:
        try:
            root = ET.fromstring(text)
        except (ET.ParseError, ValueError, LookupError) as error:
            raise RobotError(f"{self.where}: not well-formed XML: {error}") from None
        if root.tag != "robot":
            raise RobotError(f"{self.where}: the root element is <{root.tag}>, not <robot>: this is no URDF file")
        macros = [element.tag for element in root.iter() if "ros.org/wiki/xacro" in element.tag]
        if macros:
            name = macros[0].split("}")[-1]
            raise RobotError(f"{self.where}: holds the macro <xacro:{name}>: expand the file with xacro first")
        links = self.named(root, "link")
        joints = self.named(root, "joint")
        if not links:
            raise RobotError(f"{self.where}: no <link> in it")
        children = {name: [] for name in links}
        carrier = {}
        for name, element in joints.items():
            at = self.at("joint", name)
            ends = {}
            for end in ("parent", "child"):
                ends[end] = self.attribute(self.child(element, end, at), "link", at)
                if ends[end] not in links:
                    raise RobotError(f"{at}: its {end} link '{ends[end]}' is not in the file")
            if ends["child"] in carrier:
                raise RobotError(
                    f"{at}: the link '{ends['child']}' already hangs on joint '{carrier[ends['child']]}':"
                    " loops are not supported"
                )
            carrier[ends["child"]] = name
            children[ends["parent"]].append((name, ends["child"]))
        roots = [name for name in links if name not in carrier]
        if not roots:
            raise RobotError(f"{self.where}: the links form a loop: no link is the root")
        if len(roots) > 1:
            raise RobotError(f"{self.where}: several root links ({', '.join(roots)}): join them with fixed joints")
        return self.grow(root, links, joints, children, roots[0])

    def grow(self, root, links, joints, children, base) -> Robot:
        tree_joints, tree_links, inertials, frames = [], [], [], []
        here = (np.eye(3), np.zeros(3))
        reached = set()
        pending = [(None, base, -1, here)]
        while pending:
            joint_name, name, carrier, pose = pending.pop()
            reached.add(name)
            if joint_name is not None:
                element = joints[joint_name]
                rotation, offset = compose(pose, self.placement(element, self.at("joint", joint_name)))
                pose = (rotation + 0.0, clean_offset(offset, self.length_tolerance))
                kind = self.kind(element, joint_name)
                if kind == "fixed":
                    frames.append(Frame(name, carrier, vector(pose[1]), vector(pose[0])))
                else:
                    tree_joints.append(self.joint(element, joint_name, kind, carrier, pose))
                    tree_links.append(name)
                    inertials.append(np.zeros(10))
                    carrier, pose = len(tree_joints) - 1, here
            standard = self.inertial(links[name], name)
            if carrier >= 0:
                inertials[carrier] += moved(standard, *pose)
            pending += [(joint, child, carrier, pose) for joint, child in reversed(children[name])]
        lost = [name for name in links if name not in reached]
        if lost:
            raise RobotError(f"{self.where}: the links {', '.join(lost)} form a loop, out of reach of the root '{base}'")
        if self.rounding > 1e-8:
            self.notes.append(f"angles up to {self.rounding:.1g} rad off a multiple of pi/2 taken as that")
        if not tree_joints:
            raise RobotError(f"{self.where}: no joint moves: a robot needs at least one")
        try:
            return Robot(
                name=root.get("name") or Path(self.where).stem,
                joints=tuple(tree_joints),
                links=tuple(Link(name, vector(row)) for name, row in zip(tree_links, inertials, strict=True)),
                frames=tuple(frames),
                base=base,
                notes=(f"read from {Path(self.where).name}", *self.notes),
            )
        except RobotError as error:
            raise RobotError(f"{self.where}: {error}") from None

    def kind(self, element, name) -> str:
        at = self.at("joint", name)
        kind = self.attribute(element, "type", at)
        if kind not in (*_MOVING, "fixed"):
            raise RobotError(f"{at}: joints of type '{kind}' are not supported: use {', '.join(_MOVING)} or fixed")
        if element.find("mimic") is not None:
            raise RobotError(f"{at}: mimic joints are not supported: make it fixed, or let it move by itself")
        return kind

    def joint(self, element, name, kind, parent, placed) -> Joint:
        at = self.at("joint", name)
        axis = np.array([1.0, 0.0, 0.0])
        written = element.find("axis")
        if written is not None:
            axis = self.numbers(written, "xyz", at, 3)
        norm = np.linalg.norm(axis)
        if abs(norm - 1.0) > 1e-3:
            raise RobotError(f"{at}: its axis has length {norm:.4g}, not 1")
        limit = element.find("limit")
        lower, upper = -np.inf, np.inf
        values = {"effort": np.inf, "velocity": np.inf}
        if limit is not None:
            for key in values:
                if key in limit.attrib:
                    values[key] = self.number(limit, key, f"{at}, <limit>", infinite=True)
                    if values[key] < 0:
                        raise RobotError(f"{at}, <limit>: its {key} {values[key]:g} is negative")
                    if values[key] == 0:
                        values[key] = np.inf
                        self.notes.append(f"joint '{name}': {key} limit 0 taken as unknown")
            if kind != "continuous" and {"lower", "upper"} & set(limit.attrib):
                lower = self.number(limit, "lower", f"{at}, <limit>", infinite=True, default=0.0)
                upper = self.number(limit, "upper", f"{at}, <limit>", infinite=True, default=0.0)
        if kind == "revolute" and np.isinf([lower, upper]).all():
            self.notes.append(f"joint '{name}': no position limits, though it is revolute")
        dynamics = element.find("dynamics")
        friction = []
        if dynamics is not None:
            for key, parameter in (("damping", "viscous"), ("friction", "coulomb")):
                value = self.number(dynamics, key, f"{at}, <dynamics>", default=0.0)
                if value:
                    friction.append((parameter, value))
        extra = element.find(_EXTRA)
        more = {}
        if extra is not None:
            for key in (*_EXTRA_LIMITS, "rotor_inertia", "drive_gain"):
                if key in extra.attrib:
                    more[key] = self.number(extra, key, f"{at}, <{_EXTRA}>")
        return Joint(
            name=name,
            kind=kind,
            parent=parent,
            xyz=vector(placed[1]),
            rotation=vector(placed[0]),
            axis=vector(axis / norm + 0.0),
            lower=lower,
            upper=upper,
            velocity=values["velocity"],
            torque=values["effort"],
            friction=tuple(friction),
            **more,
        )

    def placement(self, element, at):
        """Rotation (3, 3) and offset (3,) of an <origin>, none where there is no such element."""
        origin = element.find("origin")
        if origin is None:
            return np.eye(3), np.zeros(3)
        rpy = self.numbers(origin, "rpy", f"{at}, <origin>", 3, default=(0.0, 0.0, 0.0))
        xyz = self.numbers(origin, "xyz", f"{at}, <origin>", 3, default=(0.0, 0.0, 0.0))
        off = np.abs(rpy - np.round(rpy / (np.pi / 2)) * np.pi / 2)
        self.rounding = max(self.rounding, np.max(off, where=off <= self.angle_tolerance, initial=0.0))
        return rotation_from_rpy(rpy, self.angle_tolerance), clean_offset(xyz, self.length_tolerance)

    def inertial(self, element, name) -> np.ndarray:
        inertial = element.find("inertial")
        if inertial is None:
            return np.zeros(10)
        at = f"{self.at('link', name)}, <inertial>"
        rotation, offset = self.placement(inertial, at)
        mass = self.number(self.child(inertial, "mass", at), "value", f"{at}, <mass>")
        written = self.child(inertial, "inertia", at)
        keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        six = [self.number(written, key, f"{at}, <inertia>") for key in keys]
        return standard_from_com(mass, np.zeros(3), tensor(six), rotation, offset)

    def named(self, root, tag) -> dict:
        found = {}
        for element in root.findall(tag):
            name = element.get("name")
            if not name:
                raise RobotError(f"{self.where}: a <{tag}> has no name")
            if name in found:
                raise RobotError(f"{self.where}: the {tag} name '{name}' is used twice")
            found[name] = element
        return found

    def at(self, tag, name) -> str:
        return f"{self.where}: {tag} '{name}'"

    def child(self, element, tag, at):
        found = element.find(tag)
        if found is None:
            raise RobotError(f"{at}: <{tag}> is missing")
        return found

    def attribute(self, element, key, at) -> str:
        value = element.get(key)
        if value is None:
            raise RobotError(f"{at}: <{element.tag}> has no attribute '{key}'")
        return value

    def number(self, element, key, at, infinite=False, default=None) -> float:
        text = element.get(key)
        if text is None and default is not None:
            return default
        return self.parse(self.attribute(element, key, at), key, at, infinite)

    def numbers(self, element, key, at, size, default=None) -> np.ndarray:
        text = element.get(key)
        if text is None and default is not None:
            return np.array(default)
        words = self.attribute(element, key, at).split()
        if len(words) != size:
            raise RobotError(f"{at}: {key} must hold {size} numbers, not '{' '.join(words)}'")
        return np.array([self.parse(word, key, at) for word in words])

    def parse(self, word, key, at, infinite=False) -> float:
        try:
            value = float(word)
        except ValueError:
            raise RobotError(f"{at}: {key}: not a number: '{word.strip()}'") from None
        if math.isnan(value) or (math.isinf(value) and not infinite):
            raise RobotError(f"{at}: {key}: not a finite number: '{word.strip()}'")
        return value


def urdf_text(robot: Robot, inertials=None, rotor_inertias=None, friction: dict | None = None) -> str:
    """The text of a URDF file of the robot, with other standard inertial parameters (n, 10) where given.

    Reading it back gives the same robot to rounding. URDF knows no rotor inertia, drive gain, acceleration or jerk
    limit: they go into a <bayesid> element of the joint, which other readers skip. `friction` replaces viscous and
    Coulomb coefficients: {"viscous": (n,), "coulomb": (n,)}. URDF's gravity points along -z of the root, so a robot
    whose gravity does not gets a root link of its own above its base. Visual and collision geometry is not written.

    Raises RobotError when a link's inertial parameters are those of no rigid body, or when a rotor inertia is negative.
    """
    robot = with_values(robot, inertials, rotor_inertias)
    friction = {key: np.asarray(value, dtype=float) for key, value in (friction or {}).items()}
    check_consistent(robot, "URDF")
    root = ET.Element("robot", name=robot.name)
    base = robot.base
    direction = np.array(robot.gravity) / (np.linalg.norm(robot.gravity) or 1.0)
    if np.any(robot.gravity) and not np.allclose(direction, (0.0, 0.0, -1.0), rtol=0, atol=1e-12):
        world = "world"
        while world in {base, *robot.link_names, *(frame.name for frame in robot.frames)}:
            world += "_"
        ET.SubElement(root, "link", name=world)
        joint = ET.SubElement(root, "joint", name=f"{world}_joint", type="fixed")
        _ends(joint, world, base, (0.0, 0.0, 0.0), _turn_down(direction))
    if not np.isclose(np.linalg.norm(robot.gravity), -GRAVITY[2]):
        root.append(ET.Comment(f" identified under a gravity of {np.linalg.norm(robot.gravity)!r} m/s^2 "))
    ET.SubElement(root, "link", name=base)
    names = (*robot.link_names, base)
    for i, (joint, link) in enumerate(zip(robot.joints, robot.links, strict=True)):
        _inertial(ET.SubElement(root, "link", name=link.name), link)
        element = ET.SubElement(root, "joint", name=joint.name, type=joint.kind)
        _ends(element, names[joint.parent], link.name, joint.xyz, joint.rotation)
        ET.SubElement(element, "axis", xyz=_text(joint.axis))
        _limits(element, joint)
        pairs = dict(joint.friction)
        values = {key: friction[key][i] if key in friction else pairs.get(key, 0.0) for key in ("viscous", "coulomb")}
        if any(values.values()):
            ET.SubElement(element, "dynamics", damping=_text([values["viscous"]]), friction=_text([values["coulomb"]]))
        extra = {key: getattr(joint, key) for key in _EXTRA_LIMITS if np.isfinite(getattr(joint, key))}
        if joint.rotor_inertia:
            extra["rotor_inertia"] = joint.rotor_inertia
        if np.isfinite(joint.drive_gain):
            extra["drive_gain"] = joint.drive_gain
        if extra:
            ET.SubElement(element, _EXTRA, {key: _text([value]) for key, value in extra.items()})
    for frame in robot.frames:
        ET.SubElement(root, "link", name=frame.name)
        joint = ET.SubElement(root, "joint", name=f"{frame.name}_fixed", type="fixed")
        _ends(joint, names[frame.parent], frame.name, frame.xyz, frame.rotation)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def update_urdf(path, robot: Robot) -> str:
    """The text of the URDF file at `path` with the inertial parameters and friction of `robot`; meshes and comments stay.

    `robot` must have the joints and links of the file, as after `read_urdf(path).with_inertials(...)`. A moving link
    gets the whole inertia that bayesid knows it with, so links that fixed joints hang on it lose theirs; those of the
    base keep them. Rotor inertias are written into <bayesid> elements as by `urdf_text`, viscous and Coulomb friction that
    is not the file's into <dynamics>.

    Raises RobotError as `read_urdf` does, when the file places its joints otherwise, and when a link is no rigid body.
    """
    was = read_urdf(path)
    same = (was.joint_names, was.link_names) == (robot.joint_names, robot.link_names) and all(
        np.allclose(getattr(was, part), getattr(robot, part), rtol=0, atol=1e-9)
        for part in ("rotations", "translations", "axes")
    )
    if not same:
        raise RobotError(f"{path}: its joints and links are not those of robot '{robot.name}': read the robot from this file")
    check_consistent(robot, "URDF")
    text = Path(path).read_bytes()
    root = ET.fromstring(text, ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    known = dict(zip(robot.link_names, robot.links, strict=True))
    folded = {frame.name for frame in was.frames if frame.parent >= 0}
    for element in root.findall("link"):
        name = element.get("name")
        if name not in known and name not in folded:
            continue
        for inertial in element.findall("inertial"):
            element.remove(inertial)
        if name in known:
            _inertial(element, known[name])
    for element in root.findall("joint"):
        if element.get("name") in robot.joint_names:
            joint = robot.joints[robot.joint_names.index(element.get("name"))]
            friction = dict(joint.friction)
            for key, name in (("damping", "viscous"), ("friction", "coulomb")):
                value = friction.get(name, 0.0)
                if value != was.friction(name)[was.joint_names.index(joint.name)]:
                    dynamics = element.find("dynamics")
                    if dynamics is None:
                        dynamics = ET.SubElement(element, "dynamics")
                    dynamics.set(key, _text([value]))
            extra = element.find(_EXTRA)
            if extra is None and joint.rotor_inertia:
                extra = ET.SubElement(element, _EXTRA)
            if extra is not None:
                extra.set("rotor_inertia", _text([joint.rotor_inertia]))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _prologue(text) + ET.tostring(root, encoding="unicode") + "\n"


def _prologue(text: bytes) -> str:
    """What stands before the root element, a licence as a rule, without the XML declaration."""
    starts = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda *_: starts.append(parser.CurrentByteIndex)
    parser.Parse(text, True)
    return re.sub(r"^\ufeff?<\?xml.*?\?>\s*", "", text[: starts[0]].decode("utf-8", errors="replace"), flags=re.DOTALL)


def check_consistent(robot: Robot, target: str):
    """Raise RobotError naming the first link that is no rigid body, or joint whose rotor inertia is negative."""
    for link in robot.links:
        wrong = defect(link.inertial)
        if wrong:
            raise RobotError(
                f"robot '{robot.name}', link '{link.name}': {wrong}: not written as {target};"
                " project it with bayesid.inertia.nearest_consistent or identify with --method lmi"
            )
    for joint in robot.joints:
        if joint.rotor_inertia < 0:
            raise RobotError(
                f"robot '{robot.name}', joint '{joint.name}': its rotor inertia {joint.rotor_inertia:.4g} is negative:"
                f" not written as {target}; identify with --method lmi"
            )


def with_values(robot, inertials, rotor_inertias) -> Robot:
    if inertials is None and rotor_inertias is None:
        return robot
    inertials = robot.inertials if inertials is None else np.asarray(inertials, dtype=float)
    if inertials.shape != (robot.dof, 10):
        raise RobotError(f"robot '{robot.name}': inertials have the shape {inertials.shape}, not ({robot.dof}, 10)")
    if rotor_inertias is not None and np.shape(rotor_inertias) != (robot.dof,):
        raise RobotError(f"robot '{robot.name}': rotor inertias have the shape {np.shape(rotor_inertias)}, not ({robot.dof},)")
    return robot.with_inertials(inertials, rotor_inertias)


def _turn_down(direction) -> np.ndarray:
    """(3, 3) rotation that takes the unit vector `direction` to -z: the base's orientation in a world that hangs so."""
    down = np.array([0.0, 0.0, -1.0])
    cosine = float(direction @ down)
    if cosine < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    x, y, z = np.cross(direction, down)
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + skew + skew @ skew / (1.0 + cosine)


def _ends(joint, parent, child, xyz, rotation):
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    ET.SubElement(joint, "origin", xyz=_text(xyz), rpy=_text(rpy_from_rotation(rotation)))


def _inertial(element, link: Link):
    if not any(link.inertial):
        return
    mass, com, inertia = central(link.inertial)
    inertial = ET.SubElement(element, "inertial")
    ET.SubElement(inertial, "origin", xyz=_text(com), rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=_text([mass]))
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    six = inertia[np.triu_indices(3)]
    ET.SubElement(inertial, "inertia", {key: _text([value]) for key, value in zip(keys, six, strict=True)})


def _limits(element, joint: Joint):
    limits = {}
    if joint.kind != "continuous" and np.isfinite([joint.lower, joint.upper]).any():
        limits |= {"lower": joint.lower, "upper": joint.upper}
    limits |= {"effort": joint.torque, "velocity": joint.velocity}
    ET.SubElement(element, "limit", {key: _text([value]) for key, value in limits.items()})


def _text(values) -> str:
    return " ".join(repr(float(value) + 0.0) for value in values)
