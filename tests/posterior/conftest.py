"""Simulated runs of a two-link arm with friction, shared by the posterior's tests."""

import numpy as np
import pytest

from bayesid.models import Model
from bayesid.regression import Observations, wls
from bayesid.robots import load_robot
from bayesid.signals import Samples

RATE = 50.0


def motion(dof, samples, seed, amplitude=1.2):
    """Sums of five sines per joint, up to 1.3 Hz."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples) / RATE
    q, qd, qdd = np.zeros((3, samples, dof))
    for _ in range(5):
        w = 2 * np.pi * rng.uniform(0.1, 1.3, dof)
        a, phase = amplitude * rng.uniform(0.2, 0.6, dof) / w**0.5, rng.uniform(0, 2 * np.pi, dof)
        q += a * np.sin(w * time[:, None] + phase)
        qd += a * w * np.cos(w * time[:, None] + phase)
        qdd -= a * w**2 * np.sin(w * time[:, None] + phase)
    return time, q, qd, qdd


def simulated(model, parameters, *, samples=1000, noise=0.3, correlation=0.0, seed=0, amplitude=1.2):
    """Samples with stationary AR(1) torque noise of standard deviation `noise`."""
    rng = np.random.default_rng([seed, 1])
    time, q, qd, qdd = motion(model.robot.dof, samples, seed, amplitude)
    white = rng.normal(size=q.shape)
    error = np.empty_like(white)
    error[0] = white[0]
    for k in range(1, samples):
        error[k] = correlation * error[k - 1] + np.sqrt(1 - correlation**2) * white[k]
    torque = model.torque(parameters, q, qd, qdd) + noise * error
    return Samples(time, q, qd, qdd, torque, "torque")


@pytest.fixture(scope="session")
def simulate():
    return simulated


@pytest.fixture(scope="session")
def arm():
    return Model(load_robot("two_link"))


@pytest.fixture(scope="session")
def truth(arm):
    out = arm.nominal.copy()
    out[[i for i, name in enumerate(arm.names) if "rotor" in name]] = 0.4
    out[[i for i, name in enumerate(arm.names) if "viscous" in name]] = 2.0
    out[[i for i, name in enumerate(arm.names) if "coulomb" in name]] = 3.0
    out[[i for i, name in enumerate(arm.names) if "offset" in name]] = 0.5
    return out


@pytest.fixture(scope="session")
def run(arm, truth):
    return simulated(arm, truth, samples=1500, correlation=0.9, seed=3)


@pytest.fixture(scope="session")
def fit(arm, run):
    return wls(Observations(arm, (run,)))
