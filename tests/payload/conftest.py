"""Simulated records: MuJoCo's wrench of a UR16e with the reference's first object, and noise on top."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bayesid.payload import SensorNoise, WrenchRecord, from_com

STUDY = Path(__file__).resolve().parents[2] / "experiments" / "payload_momentum"
OBJECT = (
    8.12,
    np.array([0.262, -0.114, 0.032]),
    np.array([[0.239, 0.014, -0.023], [0.014, 0.293, 0.086], [-0.023, 0.086, 0.303]]),
)
TRUTH = np.concatenate([[OBJECT[0]], OBJECT[1], OBJECT[2][np.triu_indices(3)]])
NOISE = {
    "low": SensorNoise(0.25e-3, 50e-3, 2.5e-3),
    "moderate": SensorNoise(0.5e-3, 100e-3, 5e-3),
    "high": SensorNoise(1e-3, 330e-3, 6.7e-3),
}


@pytest.fixture(scope="session")
def levels():
    """The reference's three noise levels."""
    return NOISE


@pytest.fixture(scope="session")
def about():
    """(10,) mass, centre of mass and inertia about it of the first object."""
    return TRUTH


@pytest.fixture(scope="session")
def physics():
    """The study's MuJoCo simulation, as a module."""
    pytest.importorskip("mujoco")
    spec = importlib.util.spec_from_file_location("payload_physics", STUDY / "physics.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def robot():
    from bayesid.robots import load_robot

    return load_robot("ur16e")


@pytest.fixture(scope="session")
def ideal(physics, robot):
    """(motion, force, moment, angular velocity) of the first object at range 0.1, without noise."""
    return physics.simulate(robot, OBJECT, 0.1)


@pytest.fixture(scope="session")
def truth():
    """(10,) standard parameters of the first object about the sensor frame."""
    return np.asarray(from_com(TRUTH))


@pytest.fixture(scope="session")
def noisy(ideal):
    """A function (level, seed) -> WrenchRecord of the ideal record with noise."""

    def make(level="moderate", seed=0):
        motion, *channels = ideal
        rng = np.random.default_rng(seed)
        noise = NOISE[level]
        scales = (noise.force, noise.moment, noise.angular_velocity)
        return WrenchRecord(motion, *(x + s * rng.standard_normal(x.shape) for x, s in zip(channels, scales)))

    return make


@pytest.fixture(scope="session")
def draws(ideal):
    """A function (level, count, seed) -> (motion, force, moment, angular velocity), arrays (count, N, 3)."""

    def make(level, count, seed=0):
        motion, *channels = ideal
        rng = np.random.default_rng(seed)
        noise = NOISE[level]
        scales = (noise.force, noise.moment, noise.angular_velocity)
        return motion, *(x + s * rng.standard_normal((count, *x.shape)) for x, s in zip(channels, scales))

    return make
