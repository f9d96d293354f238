"""What `bayesid robots show` prints says what a user must know."""

import numpy as np
import pytest

from bayesid import inertia
from bayesid.robots import builtin_names, load_robot
from bayesid.robots.describe import builtin_report, robot_report


@pytest.mark.parametrize("name", builtin_names())
def test_every_joint_link_frame_and_source_is_named(name):
    robot = load_robot(name)
    text = robot_report(robot)
    for word in (*robot.joint_names, *robot.link_names, *(frame.name for frame in robot.frames), "source: "):
        assert word in text
    assert max(len(line) for line in text.split("Notes")[0].splitlines()) < 250


def test_the_pandas_impossible_link_is_named_with_its_eigenvalue_and_the_way_out():
    text = robot_report(load_robot("panda"))
    assert "Physical consistency: FAILED by link4.\n" in text
    smallest = float(inertia.min_eigenvalue(load_robot("panda").inertials[3]))
    assert f"the smallest eigenvalue of its pseudo-inertia is {smallest:.3g}" in text
    assert "robot.with_inertials(bayesid.inertia.nearest_consistent(robot.inertials))" in text


def test_the_list_names_every_builtin_robot_and_the_impossible_link():
    lines = builtin_report().splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(builtin_names())
    assert [line.split()[0] for line in lines if "cannot exist" in line] == ["panda"]
    assert "RRRRRRP" in next(line for line in lines if "6rp" in line)


def test_following_the_advice_mends_the_robot():
    robot = load_robot("panda")
    mended = robot.with_inertials(inertia.nearest_consistent(robot.inertials))
    assert "every link can exist" in robot_report(mended)


def test_negative_masses_and_massless_links_are_told_apart():
    robot = load_robot("ur5e")
    inertials = robot.inertials.copy()
    inertials[0], inertials[1, 0] = 0.0, -2.0
    text = robot_report(robot.with_inertials(inertials))
    assert "FAILED by upper_arm_link.\n  upper_arm_link: its mass -2 kg is negative" in text
    assert "no inertia" in next(line for line in text.splitlines() if line.startswith("  shoulder_link   0"))


@pytest.mark.parametrize("seed", range(10))
def test_trees_of_any_shape_are_drawn_whole(seed, random_robot):
    robot = random_robot(seed)
    tree = robot_report(robot).split("Tree\n")[1].split("\n\nJoints")[0].splitlines()
    assert len(tree) == robot.dof + 1
    depth = {name: line.index("- ") // 3 for name in robot.link_names for line in tree if f" {name}  (" in line}
    for i, parent in enumerate(robot.parents):
        above = depth[robot.link_names[parent]] if parent >= 0 else 0
        assert depth[robot.link_names[i]] == above + 1


def test_actuators_are_shown_where_they_are_known():
    text = robot_report(load_robot("ur16e_extended"))
    row = next(line for line in text.splitlines() if "10.7 N m/A" in line)
    assert " ".join(row.split()) == "shoulder_lift_joint 3.74 kg m^2 10.7 N m/A 20.22 13.27 13.5 0.1"
    assert "Actuators" not in robot_report(load_robot("ur16e"))
    assert np.isfinite(load_robot("ur16e_extended").drive_gains).all()
