"""Wrench records of a known payload along a motion, in closed form: for planning, demonstrations and tests."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from bayesid.payload.baselines import wrench_rows
from bayesid.payload.motion import EstimationMotion
from bayesid.payload.record import SensorNoise, WrenchRecord


def simulated_record(
    motion: EstimationMotion, payload, noise: SensorNoise | None = None, rate: float = 1000.0, seed=0, name: str = "simulated"
) -> WrenchRecord:
    """What a wrench sensor reads while it moves a payload of standard parameters (10,) about the sensor frame."""
    tool = motion.sampled(rate)
    sensed = motion.sensor_motion(rate)
    push = tool.acceleration - np.asarray(sensed.gravity)
    rows = wrench_rows(*map(jnp.asarray, (tool.rotation, tool.angular_velocity, push, tool.angular_acceleration)))
    wrench, w = np.asarray(rows @ jnp.asarray(payload, dtype=float)), tool.angular_velocity
    force, moment = wrench[:, :3], wrench[:, 3:]
    if noise is not None:
        rng = np.random.default_rng(seed)
        stds = (noise.force, noise.moment, noise.angular_velocity)
        force, moment, w = (x + s * rng.standard_normal(x.shape) for x, s in zip((force, moment, w), stds))
    return WrenchRecord(sensed, force, moment, w, name)
