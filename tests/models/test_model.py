"""The model's order, names and units, and its torque against recursive Newton-Euler and friction by hand."""

import jax
import numpy as np
import pytest

from bayesid.dynamics import inverse_dynamics
from bayesid.models import Model
from bayesid.robots import Joint, Link, Robot, load_robot

LAWS = {"none": 0, "viscous": 1, "coulomb": 2, "coulomb-offset": 3, "asymmetric": 4, "stribeck": 3}


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


@pytest.mark.parametrize("law", ["coulomb-offset", "stribeck"])
def test_model_survives_a_round_trip_through_json(law):
    import json

    model = Model(load_robot("ur10e"), law, rotor=False)
    again = Model.from_dict(json.loads(json.dumps(model.to_dict())))
    assert again == model
    assert again.names == model.names
