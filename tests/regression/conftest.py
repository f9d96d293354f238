"""A planar arm with known parameters under autocorrelated noise, and the rows of its regression written out densely."""

from dataclasses import dataclass

import numpy as np
import pytest

from bayesid.kinematics.motion import random_motion
from bayesid.models import Model
from bayesid.robots import load_robot
from bayesid.signals import Samples
from bayesid.simulation.synthetic import autocorrelated


@dataclass(frozen=True, eq=False)
class Arm:
    """A model, its true parameters, and runs made from them."""

    model: Model
    parameters: np.ndarray

    @property
    def beta(self):
        return self.model.base.project(self.parameters)

    def run(self, seed=0, seconds=12.0, std=(1.0, 0.3), correlation=0.8, still=True):
        """Samples at 100 Hz; with `still`, some rows are marked as standing and carry weights of their own."""
        motion = random_motion(self.model.robot, duration=seconds, rate=100.0, harmonics=6, seed=7)
        rng = np.random.default_rng(seed)
        torque = self.model.torque(self.parameters, motion.q, motion.qd, motion.qdd)
        effort = torque + autocorrelated(rng, torque.shape, np.array(std), correlation)
        rows = {}
        if still:
            rows = {"moving": rng.random(torque.shape) > 0.05, "weights": rng.uniform(0.5, 2.0, torque.shape)}
        return Samples(motion.time, motion.q, motion.qd, motion.qdd, effort, "torque", **rows)

    def dense(self, run):
        """Per joint: columns (N, b), effort (N,) and weights (N,) of a run, standing rows with weight 0."""
        columns = self.model.regressor(run.q, run.qd, run.qdd)[:, :, self.model.base.independent]
        weight = run.weights * run.moving
        return [(columns[:, j], run.effort[:, j], weight[:, j]) for j in range(run.dof)]


@pytest.fixture(scope="session")
def arm():
    model = Model(load_robot("two_link"))
    parameters = model.nominal.copy()
    parameters[-6:] = (2.0, 1.5, 0.2, 1.0, 0.8, -0.1)
    return Arm(model, parameters)


@pytest.fixture(scope="session")
def ur10e():
    return Model(load_robot("ur10e"))


@pytest.fixture(scope="session")
def ur10e_run(ur10e_data):
    """Samples of a UR10e recording by its path below the identification data, or below the recordings."""
    from bayesid.logs import read_log
    from bayesid.signals import samples_from_log

    folder = ur10e_data / "dataset_ur10e"

    def read(name):
        below = name if "/" in name else f"identification_data/{name}"
        return samples_from_log(read_log(str(folder / below), "ur10e-innopolis"))

    return read
