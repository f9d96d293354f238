"""One design problem, solved once, for all tests of this folder: the two-link arm above a floor, torques limited."""

import numpy as np
import pytest

from bayesid.excitation import DOptimal, FourierQuintic, Limits, Problem, TorqueLimit, TorqueObservation, Wall, design
from bayesid.models import Model
from bayesid.robots import load_robot


def arm_problem(**changes):
    robot = load_robot("two_link")
    limits = Limits.of(robot, lower=-2.6, upper=2.6, velocity=3.0, acceleration=10.0, torque=[45.0, 20.0])
    model = Model(robot, "coulomb")
    options = {
        "observation": TorqueObservation(model),
        "family": FourierQuintic(6.0, 3),
        "limits": limits,
        "objective": DOptimal(),
        "start": np.array([1.8, 0.5]),
        "end": None,
        "constraints": (TorqueLimit.nominal(model, limits.torque), Wall((0.0, 1.0, 0.0), -0.5)),
        "sampling": 0.1,
        "noise": np.array([0.5, 0.2]),
    }
    return Problem(**(options | changes))


@pytest.fixture(scope="session")
def make_problem():
    return arm_problem


@pytest.fixture(scope="session")
def problem():
    return arm_problem()


@pytest.fixture(scope="session")
def excitation(problem):
    return design(problem, seed=1, starts=2, steps=60, seconds=1e6)
