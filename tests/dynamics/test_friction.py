"""Friction laws against values worked out by hand and the published figures of the UR16e extended model."""

import jax
import numpy as np
import pytest

from bayesid.dynamics import friction_law, friction_names, stribeck_law
from bayesid.errors import ModelError

VISCOUS = np.array([21.25, 20.22, 10.38, 3.58, 2.49, 3.03])
COULOMB = np.array([12.54, 13.27, 4.99, 2.00, 2.69, 2.30])
BREAKAWAY = np.array([12.80, 13.5, 5.3, 2.3, 2.85, 2.45])


def torque(law, parameters, qd, direction=None):
    return np.tensordot(parameters, law.columns(qd, direction), axes=1)


@pytest.mark.parametrize("name", friction_names())
def test_every_law_names_each_of_its_columns(name):
    law, ones = friction_law(name), np.ones((2, 3))
    assert law.name == name
    columns = law.columns(ones, load=ones, temperature=ones)
    assert len(law.parameters) == len(law.units) == len(law.nonnegative) == columns.shape[0]


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("viscous", [2.0], [-3.0, 0.0, 6.0]),
        ("coulomb", [2.0, 0.5], [-3.5, 0.0, 6.5]),
        ("coulomb-offset", [2.0, 0.5, -1.0], [-4.5, -1.0, 5.5]),
        ("asymmetric", [2.0, 4.0, 0.5, 0.7], [-6.7, -0.1, 6.5]),
        ("sublinear", [2.0, 0.5, -1.0, 4.0], [-4.5 - 4 * 1.5**0.5, -1.0, 5.5 + 4 * 3**0.5]),
    ],
)
def test_laws_have_their_textbook_values(name, parameters, expected):
    np.testing.assert_allclose(torque(friction_law(name), parameters, np.array([-1.5, 0.0, 3.0])), expected)


def test_a_loaded_gear_and_a_warm_motor_have_the_friction_worked_out_by_hand():
    qd, load, temperature = np.array([-1.5, 0.0, 3.0]), np.array([10.0, 20.0, 30.0]), np.array([25.0, 35.0, 45.0])
    found = np.tensordot([2.0, 0.5, -1.0, 0.1], friction_law("load").columns(qd, load=load), axes=1)
    np.testing.assert_allclose(found, [-4.5 - 1.0, -1.0, 5.5 + 3.0])
    both = np.tensordot([2.0, 0.5, -1.0, 4.0, 0.1], friction_law("harmonic-drive").columns(qd, load=load), axes=1)
    np.testing.assert_allclose(both - found, [-4 * 1.5**0.5, 0.0, 4 * 3**0.5], atol=1e-12)
    found = np.tensordot([2.0, 0.5, -1.0, -0.02], friction_law("temperature").columns(qd, temperature=temperature), axes=1)
    np.testing.assert_allclose(found, [-4.5, -1.0, 5.5 - 0.02 * 20 * 3])


@pytest.mark.parametrize(("name", "reason"), [("load", "the gear transmits"), ("temperature", "temperature of the motor")])
def test_a_law_without_what_it_depends_on_is_refused(name, reason):
    with pytest.raises(ModelError, match=f"friction law '{name}' depends on .*{reason}.*: choose another law"):
        friction_law(name).columns(np.ones(3))


def test_a_given_direction_stands_in_for_the_sign_of_the_velocity():
    qd, direction = np.array([1e-4, -1e-4, 0.0]), np.array([0.3, -1.0, 1.0])
    coulomb = friction_law("coulomb").columns(qd, direction)
    np.testing.assert_array_equal(coulomb, [qd, direction])
    asymmetric = friction_law("asymmetric").columns(qd, direction)
    np.testing.assert_allclose(asymmetric[2] + asymmetric[3], direction)


def test_stribeck_law_is_the_published_one():
    """Source eqs. 22-23 written out in tau_brk and tau_c, on all six joints."""
    w = np.linspace(-2.0, 2.0, 41)
    x = w / (np.sqrt(2.0) * 0.1)
    columns = friction_law("stribeck").columns(w)
    for f_v, tau_c, tau_brk in zip(VISCOUS, COULOMB, BREAKAWAY):
        published = np.sqrt(2 * np.e) * (tau_brk - tau_c) * np.exp(-(x**2)) * x + tau_c * np.tanh(w / 0.01) + f_v * w
        np.testing.assert_allclose(np.tensordot([f_v, tau_c, tau_brk - tau_c], columns, axes=1), published, atol=1e-12)


def test_stribeck_friction_peaks_at_the_breakaway_torque():
    """Without viscosity: the peak is the breakaway torque, at the breakaway speed, and decays to the Coulomb torque."""
    speed = np.linspace(0.0, 1.0, 20001)
    for tau_c, tau_brk in zip(COULOMB, BREAKAWAY):
        dry = torque(stribeck_law(0.1), [0.0, tau_c, tau_brk - tau_c], speed)
        assert dry.max() == pytest.approx(tau_brk, rel=1e-6)
        assert speed[dry.argmax()] == pytest.approx(0.1, abs=1e-3)
        assert dry[-1] == pytest.approx(tau_c, rel=1e-6)


def test_stribeck_friction_always_opposes_motion_and_is_smooth_through_zero():
    law = stribeck_law(0.05)
    qd = np.linspace(-0.4, 0.4, 9)
    tau = torque(law, [1.0, 2.0, 0.5], qd)
    np.testing.assert_allclose(tau, -tau[::-1], atol=1e-15)
    assert (tau * qd >= 0).all()
    slope = jax.grad(lambda w: law.columns(w) @ np.array([1.0, 2.0, 0.5]))(0.0)
    assert slope == pytest.approx(1.0 + 2.0 / 0.005 + 0.5 * np.sqrt(np.e) / 0.05)


def test_unknown_laws_and_speeds_are_refused_in_one_line():
    with pytest.raises(ModelError, match=r"unknown friction law 'dry': choose one of none, viscous"):
        friction_law("dry")
    with pytest.raises(ModelError, match="positive number of rad/s, got -1"):
        stribeck_law(-1.0)
