"""The model's order, names and units, and its torque against recursive Newton-Euler and friction by hand."""

import jax
import numpy as np
import pytest

from bayesid.dynamics import inverse_dynamics, stribeck_law, stribeck_law_about
from bayesid.errors import ModelError
from bayesid.models import Model
from bayesid.robots import Joint, Link, Robot, load_robot

LAWS = {"none": 0, "viscous": 1, "coulomb": 2, "coulomb-offset": 3, "asymmetric": 4, "sublinear": 4, "stribeck": 3, "load": 4}
LAWS |= {"harmonic-drive": 5, "temperature": 4}


@pytest.fixture(scope="module")
def states():
    rng = np.random.default_rng(3)
    return rng.uniform(-2, 2, (1500, 2)), rng.normal(0, 1, (1500, 2)), rng.normal(0, 2, (1500, 2))


@pytest.mark.parametrize(("law", "parameters"), LAWS.items())
def test_every_parameter_has_a_name_a_unit_a_kind_and_a_joint(law, parameters):
    model = Model(load_robot("two_link"), law)
    size = 20 + 2 + 2 * parameters
    assert model.size == size == len(set(model.names))
    assert len(model.units) == len(model.kinds) == len(model.joints) == len(model.nonnegative) == len(model.nominal) == size
    assert model.kinds.count("friction") == 2 * parameters


def test_torque_is_newton_euler_plus_rotor_plus_friction(states):
    model = Model(load_robot("two_link"))
    q, qd, qdd = states
    parameters = np.random.default_rng(4).normal(size=model.size)
    inertials, rotors, friction = model.split(parameters)
    rigid = jax.jit(inverse_dynamics, static_argnums=0)(model.robot, q.T, qd.T, qdd.T, inertials, np.zeros(2))
    dry = friction[:, 0] * qd + friction[:, 1] * np.sign(qd) + friction[:, 2]
    expected = np.asarray(rigid).T + rotors * qdd + dry
    np.testing.assert_allclose(model.torque(parameters, q, qd, qdd), expected, rtol=1e-10, atol=1e-10)


def test_load_friction_is_a_share_of_the_reference_torque_of_newton_euler(states):
    robot, rng = load_robot("two_link"), np.random.default_rng(5)
    held = Model(robot, "none").nominal * rng.uniform(0.5, 1.5, 22)
    model = Model(robot, "load", reference=held)
    q, qd, qdd = states
    parameters = rng.normal(size=model.size)
    rigid = jax.jit(inverse_dynamics, static_argnums=0)
    _, rotors, friction = model.split(parameters)
    own = np.asarray(rigid(robot, q.T, qd.T, qdd.T, parameters[:20].reshape(2, 10), rotors)).T
    load = np.abs(np.asarray(rigid(robot, q.T, qd.T, qdd.T, held[:20].reshape(2, 10), held[20:])).T)
    sign = np.sign(qd)
    dry = friction[:, 0] * qd + friction[:, 1] * sign + friction[:, 2] + friction[:, 3] * load * sign
    np.testing.assert_allclose(model.torque(parameters, q, qd, qdd), own + dry, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.load(q.T, qd.T, qdd.T), load.T, rtol=1e-10, atol=1e-10)
    values = dict(zip(model.names, parameters))
    np.testing.assert_allclose(
        model.dry_friction(values, q, qd, qdd), np.abs(friction[:, 1]) + np.abs(friction[:, 3]) * load, rtol=1e-10, atol=1e-10
    )


def test_viscous_friction_follows_the_motors_temperature(states):
    model = Model(load_robot("two_link"), "temperature")
    q, qd, qdd = states
    temperature = np.random.default_rng(6).uniform(20, 60, q.shape)
    parameters = np.random.default_rng(7).normal(size=model.size)
    cold = model.torque(parameters, q, qd, qdd, temperature=np.full(q.shape, 25.0))
    slope = model.split(parameters)[2][:, 3]
    warm = model.torque(parameters, q, qd, qdd, temperature=temperature)
    np.testing.assert_allclose(warm - cold, slope * (temperature - 25.0) * qd, rtol=1e-9, atol=1e-9)
    with pytest.raises(ModelError, match="depends on the temperature"):
        model.torque(parameters, q, qd, qdd)


def test_a_reference_that_is_not_the_models_is_refused():
    robot = load_robot("two_link")
    with pytest.raises(ModelError, match="22 finite link and rotor parameters"):
        Model(robot, "load", reference=np.ones(20))
    with pytest.raises(ModelError, match="does not depend on load"):
        Model(robot, "coulomb", reference=np.ones(22))


def test_stribeck_law_linearised_has_the_torque_and_the_slope_of_the_law_itself(states):
    robot, rng = load_robot("two_link"), np.random.default_rng(8)
    speeds = np.array([0.8, 0.3])
    plain = Model(robot, stribeck_law(speeds))
    values = rng.uniform(0.5, 2.0, plain.size)
    friction = plain.split(values)[2]
    about = Model(robot, stribeck_law_about(speeds, friction[:, 1], friction[:, 2]))
    parameters = np.concatenate([values[: plain.rigid], np.column_stack([friction, speeds]).ravel()])
    np.testing.assert_allclose(about.torque(parameters, *states), plain.torque(values, *states), rtol=1e-10, atol=1e-10)
    moved = [Model(robot, stribeck_law(speeds + step)).torque(values, *states) for step in (1e-5, -1e-5)]
    slope = about.regressor(*states)[:, :, [about.names.index(f"{joint}.breakaway_speed") for joint in robot.joint_names]]
    np.testing.assert_allclose(np.einsum("sjj->sj", slope), (moved[0] - moved[1]) / 2e-5, rtol=1e-6, atol=1e-6)


def test_each_joint_has_its_own_breakaway_speed(states):
    robot = load_robot("two_link")
    both = Model(robot, stribeck_law((0.2, 0.05))).regressor(*states)
    for joint, speed in enumerate((0.2, 0.05)):
        np.testing.assert_array_equal(both[:, joint], Model(robot, stribeck_law(speed)).regressor(*states)[:, joint])


def test_chunks_cover_a_log_that_is_no_multiple_of_them(states):
    model = Model(load_robot("two_link"))
    whole = model.regressor(*states)
    seen = np.concatenate([np.moveaxis(block, 2, 0) for _, block in model.chunks(*states, columns=[3, 21])])
    np.testing.assert_array_equal(seen, whole[:, :, [3, 21]])
    short = model.regressor(*(x[1400:] for x in states))
    np.testing.assert_allclose(short, whole[1400:], rtol=0, atol=1e-12)


def test_prismatic_joints_have_linear_units():
    robot = Robot("lift", (Joint("slide", "prismatic", -1, axis=(0.0, 0.0, 1.0)),), (Link("cart", (3.0, *[0.0] * 9)),))
    units = dict(zip(Model(robot).names, Model(robot).units))
    assert units["slide.rotor_inertia"] == "kg"
    assert units["slide.viscous"] == "N s/m"
    assert units["slide.coulomb"] == "N"
    assert Model(robot, "load").units[-1] == "1"
    assert Model(robot, "temperature").units[-1] == "N s/(m K)"


@pytest.mark.parametrize(
    ("law", "reference"),
    [
        ("coulomb-offset", None),
        ("stribeck", None),
        (stribeck_law(np.arange(1, 7) / 50), None),
        (stribeck_law_about(np.arange(1, 7) / 50, np.ones(6), np.zeros(6)), None),
        ("load", np.arange(60) / 7),
    ],
)
def test_model_survives_a_round_trip_through_json(law, reference):
    import json

    model = Model(load_robot("ur10e"), law, False, reference)
    again = Model.from_dict(json.loads(json.dumps(model.to_dict())))
    assert again == model
    assert hash(again) == hash(model)
    assert again.names == model.names
