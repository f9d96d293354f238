"""Synthetic logs go through the main job and come back as the parameters that made them, inside their intervals."""

import numpy as np

from bayesid.kinematics import random_motion
from bayesid.models import Model
from bayesid.regression import identify
from bayesid.robots import load_robot
from bayesid.signals import samples_from_log
from bayesid.simulation import Sensors, synthetic_log


def test_intervals_of_parameters_identified_from_synthetic_logs_hold_the_truth():
    model = Model(load_robot("two_link"), "coulomb-offset")
    truth = model.nominal.copy()
    truth[-6:] = (2.0, 1.5, 0.2, 0.5, 0.4, -0.1)
    beta = model.base.project(truth)
    motion = random_motion(model.robot, duration=20.0, rate=200.0, harmonics=6, usage=0.8, seed=1)
    sensors = Sensors(position_noise=1e-6, velocity_noise=1e-4, effort_noise=[0.5, 0.1], effort_correlation=0.9)
    inside, errors = [], []
    for seed in range(12):
        samples = samples_from_log(synthetic_log(model, motion, truth, sensors=sensors, seed=seed))
        found = identify(model, samples, method="wls").unconstrained
        low, high = found.interval(0.95).T
        inside.append((low <= beta) & (beta <= high))
        errors.append(np.abs(found.mean - beta) / np.maximum(np.abs(beta), 0.05))
    assert 0.85 < np.mean(inside) < 0.995
    assert np.median(errors) < 0.05
