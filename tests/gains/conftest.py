"""A UR10e along a known motion with known gains, load and friction: samples whose only noise is in the current."""

from dataclasses import dataclass

import numpy as np
import pytest

from bayesid.gains import GainRuns, Load
from bayesid.models import Model
from bayesid.robots import load_robot
from bayesid.signals import Samples

GAINS = np.array([14.0, 13.0, 11.0, 10.0, 9.5, 11.5])
MASS = 3.0
PAYLOAD = np.array([3.0, 0.12, 0.3, 0.15, 0.06, -0.008, -0.005, 0.035, -0.012, 0.05])
NOISE = np.array([0.1, 0.2, 0.12, 0.03, 0.03, 0.03])


def motion(seed, samples=1500, step=0.02):
    """q, qd, qdd (N, n) of six random harmonics over the whole run, and time."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples) * step
    rate = 2 * np.pi / (samples * step)
    k = np.arange(1, 13)
    a, b = rng.normal(size=(2, 12, 6)) * np.array([0.5, 0.3, 0.4, 0.5, 0.5, 0.6]) / np.sqrt(k)[:, None] / 1.5
    phase = np.outer(time, k * rate)
    w = (k * rate)[:, None]
    q = np.sin(phase) @ a + np.cos(phase) @ b + np.array([0.0, -1.5, 1.0, -1.0, -1.0, 0.0])
    qd = np.cos(phase) @ (w * a) - np.sin(phase) @ (w * b)
    qdd = -np.sin(phase) @ (w**2 * a) - np.cos(phase) @ (w**2 * b)
    return time, q, qd, qdd


@dataclass(frozen=True)
class World:
    """Model, true parameters, and clean torques of an unloaded and a loaded run of the same motion."""

    model: Model
    parameters: np.ndarray
    runs: tuple
    torques: tuple

    def gain_runs(self, seed=0, scale=1.0, correlation=0.95, load=None, order=(0, 1)):
        """GainRuns with AR(1) noise of standard deviation scale * NOISE in the currents."""
        from bayesid.simulation.synthetic import autocorrelated

        rng = np.random.default_rng(seed)
        runs = []
        for index in order:
            shape = self.torques[index].shape
            noise = autocorrelated(rng, shape, scale * NOISE, correlation) if scale else np.zeros(shape)
            current = self.torques[index] / GAINS + noise
            runs.append(self.runs[index].replace(effort=current, effort_measured=current))
        return GainRuns(self.model, tuple(runs), (None, 0), (load or Load(MASS),), (0, 0))


@pytest.fixture(scope="session")
def world():
    model = Model(load_robot("ur10e"), "coulomb-offset")
    parameters = model.nominal.copy()
    rng = np.random.default_rng(5)
    parameters[60:66] = rng.uniform(0.5, 3.0, 6)
    parameters[66:] = np.column_stack([rng.uniform(3, 9, 6), rng.uniform(3, 9, 6), rng.normal(0, 0.5, 6)]).ravel()
    loaded = parameters.copy()
    loaded[50:60] += PAYLOAD
    time, q, qd, qdd = motion(3)
    samples = Samples(time, q, qd, qdd, np.zeros_like(q), "current")
    torques = tuple(model.torque(p, q, qd, qdd) for p in (parameters, loaded))
    return World(model, parameters, (samples, samples), torques)
