"""Synthetic logs by recipe: everything but the numbers is stored, so that anyone can make the same log again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.dynamics import stribeck_law
from bayesid.kinematics import JointMotion
from bayesid.logs import Log
from bayesid.models import Model
from bayesid.robots import load_robot
from bayesid.simulation.synthetic import Sensors, synthetic_log


@dataclass(frozen=True, eq=False)
class Prepared:
    """A synthetic log, the model that made it, its true parameters (P,), and the drive gains (n,) of the robot."""

    log: Log
    model: Model
    truth: np.ndarray
    drive_gains: np.ndarray


def follow(recipe: dict, *, seed=None, motion: str = "trajectory") -> Prepared:
    """Make the log of a recipe (see `bayesid.logs.registry.recipe`).

    `seed` replaces the recipe's own; `motion` "reversed" swaps the order of the harmonics, which gives a second
    motion of the same robot for validation.
    """
    robot = load_robot(recipe["robot"])
    parts = recipe["recipe"]
    model = Model(robot, stribeck_law(float(robot.friction("breakaway_speed")[0])))
    rng = np.random.default_rng(parts["seed"] if seed is None else seed)
    moved = _motion(parts["trajectory"], motion == "reversed")
    time = _stamps(parts, rng)
    start = parts["sampling"]["idle_before_s"]
    q, qd, qdd = moved(np.clip(time - start, 0.0, parts["trajectory"]["period_s"]))
    noise = parts["noise"]
    sensors = Sensors(
        position_noise=noise["position_rad"],
        velocity_noise=noise["velocity_rad_s"],
        effort_noise=np.array(noise["torque_std"]) / robot.drive_gains,
        effort_correlation=noise["torque_ar1"],
    )
    log = synthetic_log(model, JointMotion(time, q, qd, qdd), drive_gains=robot.drive_gains, sensors=sensors, seed=rng)
    return Prepared(log, model, model.nominal, robot.drive_gains)


def _motion(trajectory, backwards):
    period = trajectory["period_s"]
    a, b = np.array(trajectory["a"]), np.array(trajectory["b"])
    if backwards:
        a, b = 0.8 * a[:, ::-1], 0.8 * b[:, ::-1]
    start = np.array(trajectory["q0"], dtype=float)
    harmonics = 2 * np.pi / period * np.arange(1, a.shape[1] + 1)

    def series(t):
        s, c = np.sin(np.outer(t, harmonics)), np.cos(np.outer(t, harmonics))
        return (s / harmonics) @ a.T - (c / harmonics) @ b.T, c @ a.T + s @ b.T, c * harmonics @ b.T - s * harmonics @ a.T

    powers = np.arange(6)

    def polynomial(t):
        t = np.asarray(t)[:, None]
        position = t**powers
        velocity = powers * t ** np.maximum(powers - 1, 0)
        acceleration = powers * (powers - 1) * t ** np.maximum(powers - 2, 0)
        return position, velocity, acceleration

    ends = np.array([0.0, period])
    rows = np.vstack(polynomial(ends))
    wanted = -np.vstack(series(ends))
    wanted[:2] += start
    coefficients = np.linalg.solve(rows, wanted)

    def at(t):
        return tuple(fourier + poly @ coefficients for fourier, poly in zip(series(t), polynomial(t), strict=True))

    return at


def _stamps(parts, rng):
    sampling = parts["sampling"]
    length = sampling["idle_before_s"] + parts["trajectory"]["period_s"] + sampling["idle_after_s"]
    count = int(length * sampling["rate_hz"])
    jitter = rng.choice([-1.0, 0.0, 1.0], size=count, p=[0.05, 0.9, 0.05]) * sampling["jitter_s"]
    return np.cumsum(1.0 / sampling["rate_hz"] + jitter)
