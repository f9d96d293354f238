"""Whether gravity loads the joints as the robot's description says, on robots that are simulated to weigh otherwise."""

import dataclasses

import numpy as np
import pytest

from bayesid.inertia import from_com
from bayesid.kinematics.motion import random_motion
from bayesid.models import Model
from bayesid.regression import Constraints, gravity_scale, identify
from bayesid.regression.checks import fit_warnings
from bayesid.results import Estimate
from bayesid.robots import load_robot
from bayesid.signals import Samples
from bayesid.simulation.synthetic import autocorrelated

NOISE = np.array([3.0, 3.0, 2.0, 0.5, 0.5, 0.5])


def weighing(model, factor, load=0.0):
    """Parameters of the model's robot with links of `factor` times their inertials and a load [kg] on its flange."""
    parameters = model.nominal.copy()
    parameters[:60] *= factor
    parameters[50:60] += from_com(load, (0.02, -0.03, 0.1), 0.01 * load * np.eye(3))
    parameters[60:66] = 0.5
    parameters[66:] = np.tile([8.0, 6.0, 0.5], 6)
    return parameters


@pytest.fixture(scope="module")
def motion(ur10e):
    return random_motion(ur10e.robot, duration=15.0, rate=50.0, harmonics=6, seed=3)


@pytest.fixture(scope="module")
def run(ur10e, motion):
    def recorded(factor=1.0, load=0.0):
        torque = ur10e.torque(weighing(ur10e, factor, load), motion.q, motion.qd, motion.qdd)
        effort = torque + autocorrelated(np.random.default_rng(0), torque.shape, NOISE, 0.8)
        return Samples(motion.time, motion.q, motion.qd, motion.qdd, effort, "torque")

    return recorded


def words(found):
    return " ".join(fit_warnings(found))


def known(model, parameters, covariance):
    """The estimate of base parameters that these standard ones are."""
    base = model.base
    mean = base.project(parameters)
    return Estimate(base.names, base.units, base.kinds, mean, covariance, method="wls", covariance_method={}, dof=np.inf)


@pytest.mark.parametrize(("factor", "load"), [(1.0, 0.0), (1.0, 12.0), (0.6, 3.0), (2.0, 0.0)])
def test_the_scale_is_the_links_own_whatever_the_load(ur10e, run, factor, load):
    size = ur10e.base.dimension
    rng = np.random.default_rng(1)
    root = 0.1 * rng.normal(size=(size, size))
    estimate = known(ur10e, weighing(ur10e, factor, load), root @ root.T)
    scale, error = gravity_scale(estimate, ur10e, [run()], NOISE)
    assert scale == pytest.approx(factor, rel=1e-6)
    drawn = estimate.mean + rng.normal(size=(400, size)) @ root.T
    scales = [gravity_scale(dataclasses.replace(estimate, mean=row), ur10e, [run()], NOISE)[0] for row in drawn[:60]]
    assert np.std(scales) == pytest.approx(error, rel=0.3)


@pytest.mark.parametrize(
    ("factor", "load", "warned"), [(1.0, 0.0, False), (0.85, 0.0, False), (1.0, 10.0, False), (2.0, 0.0, True)]
)
def test_links_of_other_masses_are_warned_of_and_loads_are_not(ur10e, run, factor, load, warned):
    found = identify(ur10e, run(factor, load), method="wls")
    assert ("nominal parameters of robot 'ur10e'" in words(found)) == warned
    assert ("about 2 times" in words(found)) == warned


def test_robots_without_masses_or_whose_torque_a_load_could_make_have_no_scale(ur10e, run, arm):
    bare = Model(ur10e.robot.with_inertials(np.zeros((6, 10))), ur10e.friction)
    found = identify(bare, run(), method="wls")
    assert "nominal" not in words(found)
    assert np.isnan(gravity_scale(found.unconstrained, bare, [run()], NOISE)).all()
    planar = identify(arm.model, arm.run(), method="wls")
    assert np.isnan(gravity_scale(planar.unconstrained, arm.model, [arm.run()], np.ones(2))).all()


def test_links_on_the_bound_of_their_inertia_are_said_to_have_a_cure(ur10e, run):
    log = run()
    found = identify(ur10e, log, draws=20)
    assert any("pseudo-inertia" in name for name in found.active)
    assert "--pull 1" in words(found)
    pulled = identify(ur10e, log, draws=20, constraints=Constraints(pull=1.0))
    assert "--pull" not in words(pulled)
    assert np.mean(pulled.training[0].rms / found.training[0].rms) < 1.01
    assert "--pull" not in words(identify(ur10e, run(2.0), draws=20))
    bare = dataclasses.replace(found, model=Model(ur10e.robot.with_inertials(np.zeros((6, 10))), ur10e.friction))
    assert "--pull" not in words(bare)


def test_gravity_of_an_unscaled_wrong_robot_is_warned_of(run):
    assert "nominal parameters of robot 'ur5e'" in words(identify(Model(load_robot("ur5e")), run(), method="wls"))
