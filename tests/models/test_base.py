"""Base parameters against ranks of the equations of motion, closed forms, and torques by recursive Newton-Euler."""

import dataclasses
import re

import jax
import numpy as np
import pytest

from bayesid.dynamics import inverse_dynamics
from bayesid.errors import ModelError
from bayesid.models import Model
from bayesid.robots import Joint, Link, Robot, load_robot

_TURN = tuple(np.array([[0.0, -0.6, 0.8], [1.0, 0.0, 0.0], [0.0, 0.8, 0.6]]).ravel())


def _tree(*joints):
    """A robot from (type, parent, axis) triples, every joint placed askew."""
    links = tuple(Link(f"l{i}", (2.0, 0.1, -0.2, 0.3, 0.2, 0.01, 0.02, 0.3, 0.03, 0.4)) for i in range(len(joints)))
    placed = tuple(
        Joint(f"j{i}", kind, parent, (0.3, -0.2, 0.5), _TURN, axis, rotor_inertia=0.1)
        for i, (kind, parent, axis) in enumerate(joints)
    )
    return Robot("tree", placed, links)


ODD_TREES = {
    "prismatic root, two branches": _tree(
        ("prismatic", -1, (0.0, 0.6, 0.8)), ("revolute", 0, (1.0, 0.0, 0.0)), ("revolute", 0, (0.0, 0.0, 1.0))
    ),
    "two roots, prismatic tip": _tree(
        ("revolute", -1, (0.0, 0.0, 1.0)), ("prismatic", 0, (0.6, 0.0, 0.8)), ("revolute", -1, (0.0, 1.0, 0.0))
    ),
}


def _states(dof, count=40, seed=5):
    rng = np.random.default_rng(seed)
    return rng.uniform(-2, 2, (count, dof)), rng.normal(0, 2, (count, dof)), rng.normal(0, 4, (count, dof))


@pytest.fixture(scope="module")
def ur10e():
    return Model(load_robot("ur10e"))


@pytest.mark.parametrize(
    ("friction", "rotor", "dimension"),
    [("none", False, 36), ("none", True, 40), ("coulomb-offset", True, 58), ("load", True, 64), ("temperature", True, 64)],
)
def test_ur10e_has_the_published_number_of_base_parameters(friction, rotor, dimension):
    assert Model(load_robot("ur10e"), friction, rotor).base.dimension == dimension


@pytest.mark.parametrize("robot", ODD_TREES.values(), ids=ODD_TREES)
def test_dimension_is_the_rank_of_the_equations_at_other_states(robot):
    model = Model(robot)
    rows = model.regressor(*_states(model.robot.dof, 200)).reshape(-1, model.size)
    norms = np.linalg.norm(rows, axis=0)
    values = np.linalg.svd(rows / np.where(norms > 1e-9, norms, 1.0), compute_uv=False)
    assert model.base.dimension == np.sum(values > 1e-9 * values[0])


@pytest.mark.parametrize("robot", ODD_TREES.values(), ids=ODD_TREES)
def test_null_directions_leave_torques_of_newton_euler_unchanged(robot):
    """The torque is computed by the recursive algorithm from changed inertials, not by the regressor."""
    model = Model(robot, "coulomb-offset")
    base, rng = model.base, np.random.default_rng(0)
    changed = base.standard(base.project(model.nominal), rng.normal(size=len(base.dependent)))
    q, qd, qdd = _states(robot.dof)
    for parameters in (model.nominal, changed):
        inertials, rotors, friction = model.split(parameters)
        rigid = jax.jit(inverse_dynamics, static_argnums=0)(robot, q.T, qd.T, qdd.T, inertials, rotors).T
        total = np.asarray(rigid) + friction[:, 0] * qd + friction[:, 1] * np.sign(qd) + friction[:, 2]
        if parameters is model.nominal:
            expected = total
    assert np.abs(changed - model.nominal).max() > 0.5
    np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_a_gear_whose_reference_transmits_nothing_has_no_load_friction_to_identify():
    """Two links in the horizontal plane, the outer one massless in the reference: its gear never transmits a torque."""
    robot = load_robot("two_link")
    held = Model(robot, "none").nominal.copy()
    held[10:] = 0.0
    base = Model(robot, "load", reference=held).base
    outer, inner = (f"{joint}.load_friction" for joint in reversed(robot.joint_names))
    assert inner in base.names
    assert outer not in base.names
    assert f"{outer} has no effect on any joint torque" in base.unidentifiable()


def test_standard_and_base_with_dependent_parameters_are_a_bijection(ur10e):
    base, rng = ur10e.base, np.random.default_rng(1)
    pi = rng.normal(size=(5, ur10e.size))
    np.testing.assert_allclose(base.standard(base.project(pi), pi[:, base.dependent]), pi, rtol=0, atol=1e-12)
    beta, dependent = rng.normal(size=base.dimension), rng.normal(size=len(base.dependent))
    np.testing.assert_allclose(base.project(base.standard(beta, dependent)), beta, rtol=0, atol=1e-12)
    np.testing.assert_allclose(base.project(pi), pi @ base.matrix.T, rtol=0, atol=1e-12)
    assert sorted([*base.independent, *base.dependent]) == list(range(ur10e.size))


def test_independent_columns_alone_give_the_torque(ur10e):
    q, qd, qdd = _states(6)
    rows = ur10e.regressor(q, qd, qdd)
    torque = rows[:, :, ur10e.base.independent] @ ur10e.base.project(ur10e.nominal)
    np.testing.assert_allclose(torque, rows @ ur10e.nominal, rtol=1e-9, atol=1e-9)


def test_choice_of_base_parameters_is_deterministic(ur10e):
    again = Model(load_robot("ur10e")).base
    np.testing.assert_array_equal(again.independent, ur10e.base.independent)
    np.testing.assert_array_equal(again.grouping, ur10e.base.grouping)
    assert again.expressions == ur10e.base.expressions


def test_expressions_say_what_the_matrix_does(ur10e):
    """Each expression is parsed as written and evaluated on random parameters."""
    values = dict(zip(ur10e.names, np.random.default_rng(2).normal(size=ur10e.size)))
    expected = ur10e.base.project(np.array(list(values.values())))
    for text, value in zip(ur10e.base.expressions, expected):
        terms = re.findall(r"(?:^|([+-]) )(?:([0-9.e+-]+) )?([A-Za-z_]\S*)", text)
        found = sum((-1 if sign == "-" else 1) * float(factor or 1) * values[name] for sign, factor, name in terms)
        assert found == pytest.approx(value, abs=1e-4), text


def test_vertical_slide_cannot_tell_mass_offset_and_rotor_apart():
    """tau = (m + J) qdd + g m + viscous qd + coulomb sign(qd) + offset: known are m + J and offset - g J."""
    robot = Robot("lift", (Joint("slide", "prismatic", -1, axis=(0.0, 0.0, 1.0)),), (Link("cart", (3.0, *[0.0] * 9)),))
    base = Model(robot).base
    known = dict(zip(base.names, base.matrix))
    names = base.standard_names
    mass = np.zeros(len(names))
    mass[names.index("cart.m")] = mass[names.index("slide.rotor_inertia")] = 1.0
    offset = np.zeros(len(names))
    offset[names.index("slide.offset")], offset[names.index("slide.rotor_inertia")] = 1.0, -9.81
    np.testing.assert_allclose(known["cart.m"], mass, atol=1e-9)
    np.testing.assert_allclose(known["slide.offset"], offset, atol=1e-9)
    assert base.dimension == 4
    words = " ".join(base.unidentifiable())
    assert "slide.rotor_inertia acts only together with" in words
    assert "cart.m is known only as a sum with slide.rotor_inertia" in words
    assert "slide.offset is known only as a sum with slide.rotor_inertia" in words
    assert "cart.Ixx has no effect on any joint torque" in words


def test_states_of_the_wrong_width_are_refused(ur10e):
    with pytest.raises(ModelError, match=r"\(samples, 6\)"):
        ur10e.regressor(np.zeros((4, 5)), np.zeros((4, 5)), np.zeros((4, 5)))
    with pytest.raises(ModelError, match="unknown friction law"):
        Model(load_robot("ur10e"), "sticky")


def test_a_joint_whose_range_lies_beyond_half_a_turn_has_the_same_base_parameters():
    robot = load_robot("two_link")
    far = dataclasses.replace(robot, joints=tuple(dataclasses.replace(j, lower=4.0, upper=6.0) for j in robot.joints))
    assert Model(far).base.names == Model(robot).base.names
