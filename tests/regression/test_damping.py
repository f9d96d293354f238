"""Viscous and Coulomb friction nearest to any law, against its torque written out."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from bayesid.models import Model
from bayesid.regression import viscous_and_coulomb
from bayesid.robots import load_robot


@pytest.fixture(scope="module")
def run(arm):
    return arm.run(std=(0.0, 0.0))


def values(model, *rows):
    out = model.nominal.copy()
    out[model.rigid :] = np.ravel(rows)
    return out


def test_laws_of_the_two_are_kept(arm, run):
    parameters = values(arm.model, (2.0, 1.5, 0.7), (0.0, 0.8, -0.1))
    np.testing.assert_allclose(viscous_and_coulomb(arm.model, parameters, [run, run]), [[2.0, 1.5], [0.0, 0.8]], atol=1e-9)


def test_a_robot_without_friction_has_none(run):
    model = Model(load_robot("two_link"), "none")
    np.testing.assert_allclose(viscous_and_coulomb(model, model.nominal, [run]), 0.0, atol=1e-12)


@pytest.mark.parametrize("rows", [((-0.4, 1.5, 0.2, 1.0), (3.0, 0.5, 0.1, -2.5)), ((1.0, 2.0, 0.0, 0.3), (0.2, 0.1, 0.0, 0.5))])
def test_other_laws_are_met_as_nearly_as_the_two_can_where_joints_move(run, rows):
    model = Model(load_robot("two_link"), "sublinear")
    found = viscous_and_coulomb(model, values(model, *rows), [run])
    assert (found >= 0).all()
    for j, (viscous, coulomb, _, sublinear) in enumerate(rows):
        speed = np.abs(run.qd[run.moving[:, j], j])
        torque = viscous * speed + coulomb + sublinear * np.sqrt(speed)
        expected = lsq_linear(np.column_stack([speed, np.ones_like(speed)]), torque, (0.0, np.inf), method="bvls").x
        np.testing.assert_allclose(found[j], expected, atol=1e-9)


def test_friction_of_two_directions_lies_between_them(run):
    model = Model(load_robot("two_link"), "asymmetric")
    found = viscous_and_coulomb(model, values(model, (2.0, 3.0, 1.0, 1.4), (1.0, 1.0, 0.5, 0.5)), [run])
    np.testing.assert_allclose(found[0], [2.5, 1.2], rtol=0.1)
    np.testing.assert_allclose(found[1], [1.0, 0.5], atol=1e-9)
