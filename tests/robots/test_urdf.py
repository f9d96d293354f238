"""URDF read and written, against Pinocchio's own reader, on the robots of the recordings and random trees; refusals."""

import dataclasses
import re

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from bayesid import inertia
from bayesid.errors import RobotError
from bayesid.robots import Joint, Link, Robot, builtin_names, load_robot, mjcf_text, read_urdf, update_urdf, urdf_text
from bayesid.robots.inertial import moved
from bayesid.robots.urdf import robot_from_urdf

BODY = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
EASY = f"""<robot name="easy">
<link name="base"/><link name="arm">{BODY}</link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
</robot>"""


class Reference:
    """Pinocchio's reading of the same URDF, with its own order of joints."""

    def __init__(self, text, names):
        self.model = pin.buildModelFromXML(text)
        self.data = self.model.createData()
        self.model.armature[:] = 0.0
        self.ids = [self.model.getJointId(name) for name in names]
        self.order = np.array([self.model.joints[i].idx_v for i in self.ids])

    def configuration(self, q):
        out = pin.neutral(self.model)
        for joint_id, value in zip(self.ids, q):
            joint = self.model.joints[joint_id]
            out[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
        return out

    def mass_matrix(self, q):
        M = pin.crba(self.model, self.data, self.configuration(q))
        M = np.triu(M) + np.triu(M, 1).T
        return M[np.ix_(self.order, self.order)]

    def potential(self, q):
        return pin.computePotentialEnergy(self.model, self.data, self.configuration(q))

    def frame(self, q, name):
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        return self.data.oMf[self.model.getFrameId(name, pin.BODY)].homogeneous


def agree(robot, text, kinematics, seed, tolerance=1e-12):
    reference = Reference(text, robot.joint_names)
    assert reference.model.nv == robot.dof
    rng = np.random.default_rng(seed)
    rigid = robot.with_inertials(robot.inertials, np.zeros(robot.dof))
    for q in rng.uniform(-1, 1, (3, robot.dof)):
        M = kinematics.mass_matrix(rigid, q)
        np.testing.assert_allclose(M, reference.mass_matrix(q), rtol=0, atol=tolerance * np.abs(M).max())
        for name in (*robot.link_names, *(frame.name for frame in robot.frames)):
            np.testing.assert_allclose(kinematics.frame_pose(robot, q, name), reference.frame(q, name), atol=50 * tolerance)
    q0, q1 = rng.uniform(-1, 1, (2, robot.dof))
    change = kinematics.potential(robot, q1) - kinematics.potential(robot, q0)
    expected = reference.potential(q1) - reference.potential(q0)
    scale = 9.81 * np.abs(robot.inertials).sum()
    assert abs(change - expected) < 10 * tolerance * scale


@pytest.mark.parametrize(
    "path",
    [
        "ur10e_innopolis/URe/urdf/ur10e.urdf",
        "staubli_tx40/examples/staubli_TX40/urdf/tx40_mdh_modified.urdf",
        "kinova_gen3/gen3.urdf",
        "ur10_unisa/ur10.urdf",
    ],
)
def test_robots_of_the_recordings_are_read_as_pinocchio_reads_them(path, data_root, kinematics):
    path = data_root / path
    exact = read_urdf(path, angle_tolerance=0.0, length_tolerance=0.0)
    agree(exact, path.read_bytes(), kinematics, seed=1)
    rounded = read_urdf(path)
    assert set(np.abs(rounded.rotations).ravel()) <= {0.0, 1.0}
    np.testing.assert_allclose(rounded.rotations, exact.rotations, atol=2e-5)
    np.testing.assert_allclose(rounded.inertials, exact.inertials, atol=1e-4)


def random_urdf(seed):
    """A tree with deep chains of fixed joints, massive and massless links behind them, written here by hand."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 16))
    parts, moving = ['<link name="root">' + BODY + "</link>"], []
    for i in range(count):
        parent = "root" if i == 0 else f"link{int(rng.integers(max(0, i - 3), i))}"
        kind = str(rng.choice(["fixed", "revolute", "prismatic", "continuous"], p=[0.5, 0.25, 0.15, 0.1]))
        kind = "revolute" if i == count - 1 else kind
        moving += [f"joint{i}"] if kind != "fixed" else []
        axis = rng.normal(size=3)
        axis = np.array([0.0, 1.0, 0.0]) if rng.random() < 0.3 else axis / np.linalg.norm(axis)
        xyz, rpy, com, turn = rng.normal(size=(4, 3))
        A = rng.normal(size=(3, 3))
        S = A @ A.T
        xx, xy, xz, yy, yz, zz = (np.trace(S) * np.eye(3) - S)[np.triu_indices(3)]
        say = lambda values: " ".join(repr(float(x)) for x in values)  # noqa: E731
        body = (
            f'<inertial><origin xyz="{say(com)}" rpy="{say(turn)}"/><mass value="{rng.uniform(0.1, 5)}"/>'
            f'<inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/>'
            "</inertial>"
        )
        parts.append(f'<link name="link{i}">{body if rng.random() < 0.7 or i == count - 1 else ""}</link>')
        limit = '<limit lower="-2" upper="2" effort="9" velocity="3"/>' if kind != "fixed" else ""
        parts.append(
            f'<joint name="joint{i}" type="{kind}"><parent link="{parent}"/><child link="link{i}"/>'
            f'<origin xyz="{say(xyz)}" rpy="{say(rpy)}"/><axis xyz="{say(axis)}"/>{limit}</joint>'
        )
    order = rng.permutation(len(parts))
    return f'<robot name="random{seed}">' + "".join(parts[k] for k in order) + "</robot>"


@pytest.mark.parametrize("seed", range(25))
def test_fixed_chains_fold_as_pinocchio_folds_them(seed, kinematics):
    text = random_urdf(seed)
    agree(robot_from_urdf(text), text, kinematics, seed)


@pytest.mark.parametrize("seed", range(25))
def test_any_tree_survives_being_written_and_read(seed, random_robot, kinematics):
    robot = random_robot(seed)
    text = urdf_text(robot)
    back = robot_from_urdf(text, angle_tolerance=0.0)
    by_name = [back.joint_names.index(name) for name in robot.joint_names]
    for name in ("rotations", "translations", "axes", "inertials", "rotor_inertias", "drive_gains"):
        ours, theirs = getattr(robot, name), getattr(back, name)[by_name]
        scale = np.abs(ours).max(initial=0, where=np.isfinite(ours)) or 1.0
        np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-13 * scale, err_msg=name)
    for name in ("lower", "upper", "velocity", "torque", "acceleration"):
        np.testing.assert_array_equal(back.limit(name)[by_name], robot.limit(name))
    assert [back.joints[k].kind for k in by_name] == [joint.kind for joint in robot.joints]
    assert [back.joints[k].friction for k in by_name] == [joint.friction for joint in robot.joints]
    assert {frame.name for frame in back.frames} == {frame.name for frame in robot.frames}
    agree(robot, text, kinematics, seed, tolerance=1e-11)


@pytest.mark.parametrize("name", [name for name in builtin_names() if name != "panda"])
def test_builtin_robots_survive_being_written_and_read_by_us_and_by_pinocchio(name, kinematics):
    robot = load_robot(name)
    text = urdf_text(robot)
    back = robot_from_urdf(text)
    np.testing.assert_allclose(back.inertials, robot.inertials, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(back.rotor_inertias, robot.rotor_inertias)
    hung = dataclasses.replace(robot, gravity=(0.0, 0.0, -9.81))
    if name != "two_link":
        np.testing.assert_array_equal(back.rotations, robot.rotations)
        agree(hung, text, kinematics, seed=2)
    q = np.full(robot.dof, 0.3)
    np.testing.assert_allclose(kinematics.mass_matrix(back, q), kinematics.mass_matrix(robot, q), rtol=0, atol=1e-13)


@pytest.mark.parametrize("gravity", [(0.0, -9.81, 0.0), (0.0, 0.0, 9.81), (3.0, -4.0, 7.0)])
def test_gravity_that_does_not_point_down_becomes_a_turned_base(gravity, kinematics):
    robot = dataclasses.replace(load_robot("ur5e"), gravity=gravity)
    back = robot_from_urdf(urdf_text(robot), angle_tolerance=0.0)
    assert back.gravity == (0.0, 0.0, -9.81)
    factor = np.linalg.norm(gravity) / 9.81
    q = np.random.default_rng(3).uniform(-2, 2, (2, 6))
    ours, theirs = ([kinematics.potential(r, x) for x in q] for r in (robot, back))
    assert np.ptp(ours) == pytest.approx(factor * np.ptp(theirs), rel=1e-12)
    assert "identified under a gravity of" not in urdf_text(load_robot("two_link"))


def test_other_parameters_can_be_written_in_place_of_the_nominal_ones():
    robot = load_robot("ur5e")
    inertials, rotors = robot.inertials * 1.1, np.linspace(0.0, 1.0, 6)
    text = urdf_text(robot, inertials, rotors, friction={"viscous": np.full(6, 2.0)})
    back = robot_from_urdf(text)
    np.testing.assert_allclose(back.inertials, inertials, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(back.rotor_inertias, rotors, rtol=1e-12)
    np.testing.assert_array_equal(back.friction("viscous"), np.full(6, 2.0))
    with pytest.raises(RobotError, match=r"inertials have the shape \(5, 10\), not \(6, 10\)"):
        urdf_text(robot, inertials[:5])
    with pytest.raises(RobotError, match=r"rotor inertias have the shape \(3,\), not \(6,\)"):
        urdf_text(robot, inertials, rotors[:3])


def test_impossible_bodies_are_not_written():
    with pytest.raises(RobotError, match=r"'panda', link 'link4': its principal moments .* break the triangle inequality"):
        urdf_text(load_robot("panda"))
    robot = load_robot("ur5e")
    inertials = robot.inertials.copy()
    inertials[2, 0] = -1.0
    with pytest.raises(RobotError, match=r"link 'forearm_link': its mass -1 kg is negative.*nearest_consistent"):
        urdf_text(robot, inertials)
    inertials[2] = [0.0, *robot.inertials[2, 1:]]
    with pytest.raises(RobotError, match="it has no mass but a first moment"):
        urdf_text(robot, inertials)
    with pytest.raises(RobotError, match=r"joint 'elbow_joint': its rotor inertia -0\.1 is negative"):
        urdf_text(robot, rotor_inertias=[0.0, 0.0, -0.1, 0.0, 0.0, 0.0])


def test_a_file_keeps_its_meshes_and_comments_when_its_inertias_are_replaced(data_root, tmp_path, kinematics):
    path = data_root / "ur10_unisa" / "ur10.urdf"
    robot = read_urdf(path)
    new = robot.with_inertials(robot.inertials * 1.2, np.linspace(0.0, 0.5, 6))
    text = update_urdf(path, new)
    back = robot_from_urdf(text)
    np.testing.assert_allclose(back.inertials, new.inertials, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(back.rotor_inertias, new.rotor_inertias)
    assert back.frames == robot.frames
    for word in ("<mesh ", "<visual>", "<transmission ", "<!--"):
        outside = re.sub(r"<inertial>.*?</inertial>", "", path.read_text(), flags=re.DOTALL)
        assert text.count(word) == outside.count(word)
    agree(back, text, kinematics, seed=4, tolerance=1e-9)
    with pytest.raises(RobotError, match="its joints and links are not those of robot 'panda'"):
        update_urdf(path, load_robot("panda"))
    with pytest.raises(RobotError, match="its joints and links are not those of robot 'ur16e'"):
        update_urdf(path, load_robot("ur16e"))
    with pytest.raises(RobotError, match="link 'shoulder_link': its mass -1 kg is negative"):
        update_urdf(path, robot.with_inertials(-np.eye(6, 10)))


def test_friction_that_is_not_the_files_is_written_where_urdf_has_it(data_root, tmp_path):
    path = tmp_path / "robot.urdf"
    text = (data_root / "ur10_unisa" / "ur10.urdf").read_text()
    path.write_text(text.replace('<dynamics damping="0" friction="0"/>', '<dynamics damping="0.50" friction="0"/>', 1))
    robot = read_urdf(path)
    given = [(("viscous", 0.1 + j), ("coulomb", 2.0 * j)) for j in range(6)]
    joints = tuple(dataclasses.replace(joint, friction=pairs) for joint, pairs in zip(robot.joints, given))
    text = update_urdf(path, dataclasses.replace(robot, joints=joints))
    assert text.count("<dynamics") == 6
    back = robot_from_urdf(text)
    np.testing.assert_array_equal(back.friction("viscous"), 0.1 + np.arange(6.0))
    np.testing.assert_array_equal(back.friction("coulomb"), 2.0 * np.arange(6.0))
    without = tuple(dataclasses.replace(joint, friction=()) for joint in robot.joints)
    back = robot_from_urdf(update_urdf(path, dataclasses.replace(robot, joints=without)))
    assert not back.friction("viscous").any()


@pytest.mark.parametrize("seed", range(8))
def test_replacing_inertias_by_themselves_changes_nothing_but_where_they_are_written(seed, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(random_urdf(seed))
    robot = read_urdf(path)
    back = robot_from_urdf(update_urdf(path, robot))
    np.testing.assert_allclose(back.inertials, robot.inertials, rtol=1e-10, atol=1e-12 * np.abs(robot.inertials).max())
    assert (back.joints, back.frames) == (robot.joints, robot.frames)


def test_projected_robots_are_written():
    robot = load_robot("panda")
    mended = robot.with_inertials(inertia.nearest_consistent(robot.inertials))
    np.testing.assert_allclose(robot_from_urdf(urdf_text(mended)).inertials, mended.inertials, rtol=1e-12, atol=1e-15)
    model = mujoco.MjModel.from_xml_string(mjcf_text(mended))
    np.testing.assert_allclose(model.body_mass[1:], mended.inertials[:, 0])


def test_rods_points_and_massless_links_are_possible_bodies():
    rod = (1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 1 / 3, 0.0, 1 / 3)
    point = (2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 2.0)
    links = tuple(Link(name, row) for name, row in (("rod", rod), ("point", point), ("nothing", (0.0,) * 10)))
    robot = Robot("odd", tuple(Joint(f"j{i}", "revolute", i - 1) for i in range(3)), links)
    np.testing.assert_allclose(robot_from_urdf(urdf_text(robot)).inertials, robot.inertials, atol=1e-15)


def test_angles_that_were_rounded_are_read_as_right_angles_and_others_are_not():
    text = EASY.replace('<axis xyz="0 0 1"/>', '<origin rpy="1.5708 -3.1416 0.4" xyz="1 2e-11 0"/><axis xyz="0 0 1"/>')
    joint = robot_from_urdf(text).joints[0]
    c, s = np.cos(0.4), np.sin(0.4)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    half = np.diag([-1.0, 1.0, -1.0])
    quarter = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    np.testing.assert_array_equal(np.reshape(joint.rotation, (3, 3)), turn @ half @ quarter)
    assert joint.xyz == (1.0, 0.0, 0.0)
    assert robot_from_urdf(text, length_tolerance=0.0).joints[0].xyz[1] == 2e-11
    assert "angles up to 7e-06 rad off a multiple of pi/2 taken as that" in robot_from_urdf(text).notes


def test_base_fixed_links_stay_as_frames_of_the_base_and_their_mass_does_not_count():
    text = EASY.replace(
        "</robot>",
        f'<link name="camera">{BODY}</link><joint name="mount" type="fixed"><parent link="base"/><child link="camera"/>'
        '<origin xyz="0 1 2"/></joint></robot>',
    )
    robot = robot_from_urdf(text)
    assert (robot.frame("camera").parent, robot.frame("camera").xyz) == (-1, (0.0, 1.0, 2.0))
    np.testing.assert_array_equal(robot.inertials, robot_from_urdf(EASY).inertials)


def test_unknown_limits_are_infinite_and_said_to_be():
    robot = robot_from_urdf(EASY.replace('<limit lower="-1" upper="1" effort="5" velocity="2"/>', '<limit effort="0"/>'))
    assert np.isinf([robot.joints[0].lower, robot.joints[0].torque, robot.joints[0].velocity]).all()
    assert "joint 'turn': effort limit 0 taken as unknown" in robot.notes
    assert "joint 'turn': no position limits, though it is revolute" in robot.notes


def test_siblings_keep_the_files_order():
    parts = "".join(
        f'<link name="l{k}"/><joint name="{k}" type="revolute"><parent link="{p}"/><child link="l{k}"/></joint>'
        for k, p in (("z", "base"), ("a", "base"), ("m", "lz"))
    )
    robot = robot_from_urdf(f'<robot name="r"><link name="base"/>{parts}</robot>')
    assert robot.joint_names == ("z", "m", "a")
    assert list(robot.parents) == [-1, 0, -1]


def changed(old, new):
    assert old in EASY
    return EASY.replace(old, new)


LOOP = '<joint name="back" type="fixed"><parent link="arm"/><child link="base"/></joint></robot>'
REFUSED = {
    "not xml": ("<robot", "not well-formed XML"),
    "odd encoding": ('<?xml version="1.0" encoding="utf-99"?><robot/>', "not well-formed XML"),
    "another root": ("<sdf/>", "the root element is <sdf>, not <robot>"),
    "empty": ('<robot name="x"/>', "no <link> in it"),
    "nothing moves": ('<robot name="x"><link name="a"/></robot>', "no joint moves"),
    "xacro": (
        '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="a"/></robot>',
        "holds the macro <xacro:include>: expand the file with xacro first",
    ),
    "mimic": (changed("<limit", '<mimic joint="other"/><limit'), "joint 'turn': mimic joints are not supported"),
    "floating": (changed('"revolute"', '"floating"'), "joint 'turn': joints of type 'floating' are not supported"),
    "planar": (changed('"revolute"', '"planar"'), "joint 'turn': joints of type 'planar' are not supported"),
    "no type": (changed(' type="revolute"', ""), "joint 'turn': <joint> has no attribute 'type'"),
    "missing link": (
        changed('<child link="arm"/>', '<child link="leg"/>'),
        "joint 'turn': its child link 'leg' is not in",
    ),
    "no parent": (changed('<parent link="base"/>', ""), "joint 'turn': <parent> is missing"),
    "loop of all": (changed("</robot>", LOOP), "the links form a loop: no link is the root"),
    "loop beside": (
        changed(
            "</robot>",
            '<link name="a"/><link name="b"/><joint name="ab" type="fixed"><parent link="a"/><child link="b"/></joint>'
            '<joint name="ba" type="fixed"><parent link="b"/><child link="a"/></joint></robot>',
        ),
        "the links a, b form a loop, out of reach of the root 'base'",
    ),
    "two parents": (
        changed("</robot>", LOOP.replace("arm", "base2").replace('child link="base"', 'child link="arm"')).replace(
            '<link name="base"/>', '<link name="base"/><link name="base2"/>'
        ),
        "joint 'back': the link 'arm' already hangs on joint 'turn': loops are not supported",
    ),
    "two roots": (changed("</robot>", '<link name="other"/></robot>'), "several root links (base, other)"),
    "same link twice": (changed("</robot>", '<link name="arm"/></robot>'), "the link name 'arm' is used twice"),
    "no name": (changed('<link name="base"/>', "<link/>"), "a <link> has no name"),
    "text for a number": (
        changed('value="1"', 'value="one"'),
        "link 'arm', <inertial>, <mass>: value: not a number: 'one'",
    ),
    "nan": (changed('ixx="1"', 'ixx="nan"'), "link 'arm', <inertial>, <inertia>: ixx: not a finite number: 'nan'"),
    "infinite": (
        changed('ixx="1"', 'ixx="1e999"'),
        "link 'arm', <inertial>, <inertia>: ixx: not a finite number: '1e999'",
    ),
    "no inertia": (changed(' izz="1"', ""), "link 'arm', <inertial>, <inertia>: <inertia> has no attribute 'izz'"),
    "no mass": (changed('<mass value="1"/>', ""), "link 'arm', <inertial>: <mass> is missing"),
    "two numbers": (changed('xyz="0 0 1"', 'xyz="0 1"'), "joint 'turn': xyz must hold 3 numbers, not '0 1'"),
    "long axis": (changed('xyz="0 0 1"', 'xyz="0 0 2"'), "joint 'turn': its axis has length 2, not 1"),
    "no axis": (changed('xyz="0 0 1"', 'xyz="0 0 0"'), "joint 'turn': its axis has length 0, not 1"),
    "limits crossed": (changed('lower="-1"', 'lower="3"'), "joint 'turn' has its lower limit above its upper one"),
    "negative effort": (changed('effort="5"', 'effort="-5"'), "joint 'turn', <limit>: its effort -5 is negative"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_serial_tree_is_refused_in_one_line_naming_file_and_element(case, tmp_path):
    text, message = REFUSED[case]
    path = tmp_path / "bad.urdf"
    path.write_text(text)
    with pytest.raises(RobotError, match=re.escape(message)) as caught:
        load_robot(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_not_readable_is_refused(tmp_path):
    with pytest.raises(RobotError, match="cannot be read: No such file"):
        read_urdf(tmp_path / "no.urdf")
    with pytest.raises(RobotError, match="cannot be read: Is a directory"):
        read_urdf(tmp_path)


def test_moving_a_body_by_its_pseudo_inertia_is_pinocchios_action():
    rng = np.random.default_rng(7)
    for _ in range(10):
        body = pin.Inertia.Random()
        pose = pin.SE3(pin.Quaternion(*rng.normal(size=4)).normalized(), rng.normal(size=3))
        ours = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
        pi = body.toDynamicParameters()[ours]
        expected = pose.act(body).toDynamicParameters()[ours]
        np.testing.assert_allclose(moved(pi, pose.rotation, pose.translation), expected, rtol=1e-11, atol=1e-12)
