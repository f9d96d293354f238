"""Closed-loop simulation: a control law sampled in time, its torque held between samples, the robot integrated
between them.

The integrator is the classical Runge-Kutta method of fourth order with a fixed step. Fixed, because thousands of robots
advance in lockstep and compile once (a scan over stages: one evaluation of the dynamics in the traced graph); explicit,
because the control period already bounds the step. Friction near standstill is the one stiff term: its rate is computed
beforehand, the step follows from it, and a step that cannot follow it is refused.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.errors import DesignError, SolverError
from bayesid.kinematics import JointMotion
from bayesid.logs import Log
from bayesid.robots import Robot
from bayesid.simulation.plant import Plant, limited
from bayesid.simulation.synthetic import IDEAL, Sensors, assemble_log

# The method is stable for decay rates up to 2.785 per step; 1.5 keeps the error of the decay itself below 6 %.
_STABLE, _ACCURATE = 2.5, 1.5


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened: arrays (N, n), or (N, n, robots) when many were simulated at once.

    `time` (N,) [s]; `q`, `qd`, `qdd` the true state at the samples, `torque` the motor torque held from each sample
    to the next [N m, joint side], `measured_q` and `measured_qd` what the controller saw; `reference` the motion
    asked for; `saturated` (N, n) where the command exceeded the joint's limit; `steps` integration steps per sample.
    """

    robot: Robot
    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    torque: np.ndarray
    measured_q: np.ndarray
    measured_qd: np.ndarray
    saturated: np.ndarray
    reference: JointMotion
    steps: int
    sensors: Sensors = IDEAL
    seed: int = 0

    @property
    def error(self) -> np.ndarray:
        """Reference minus true position."""
        reference = self.reference.q
        return (reference if self.q.ndim == 2 else reference[:, :, None]) - self.q

    def member(self, k: int) -> Simulation:
        """One robot of many."""
        if self.q.ndim != 3:
            raise DesignError("this simulation holds one robot only")
        parts = {
            name: getattr(self, name)[:, :, k]
            for name in ("q", "qd", "qdd", "torque", "measured_q", "measured_qd", "saturated")
        }
        return dataclasses.replace(self, **parts, seed=self.seed + k)

    def log(self, drive_gains=None) -> Log:
        """The log that the sensors of this simulation leave: measured positions and velocities, noisy torque or
        current.
        """
        if self.q.ndim != 2:
            raise DesignError("choose one robot with member(k) before asking for its log")
        rng = np.random.default_rng([self.seed, 1])
        return assemble_log(
            self.time,
            self.measured_q,
            self.measured_qd,
            self.torque,
            drive_gains=drive_gains,
            sensors=self.sensors,
            rng=rng,
            joint_names=self.robot.joint_names,
        )

    def digest(self) -> str:
        """SHA-256 of the true motion and torque."""
        return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in (self.q, self.torque))).hexdigest()


def simulate(
    plant: Plant,
    controller,
    motion: JointMotion,
    *,
    initial=None,
    steps: int | None = None,
    delay: int = 0,
    sensors: Sensors = IDEAL,
    disturbance=None,
    seed: int = 0,
) -> Simulation:
    """Let a controller drive a plant along a motion, sampled at the motion's own rate, torque held between samples.

    `initial` is (q, qd), each (n,) or (n, robots): the motion's start by default. `steps` Runge-Kutta steps are taken
    per sample (default: as many as the friction law needs). `delay` is the number of whole samples between
    measurement and effect, zero torque before the first. `sensors` corrupt what the controller and the log see;
    `disturbance` (N, n) [N m] acts on the joints beside the motors.

    Raises SolverError when the step cannot follow the friction law near standstill, or when the loop is unstable.
    """
    period = sampling_period(motion)
    n = plant.robot.dof
    if motion.dof != n:
        raise DesignError(f"the motion has {motion.dof} joints, robot '{plant.robot.name}' {n}")
    batch = np.shape(plant.inertials)[2:]
    q0, qd0 = (motion.q[0], motion.qd[0]) if initial is None else initial
    y0 = np.stack([_broadcast(x, n, batch, name) for x, name in ((q0, "position"), (qd0, "velocity"))])
    steps = _steps(plant, motion, period, steps, y0[0].reshape(n, -1)[:, 0])
    if delay < 0 or int(delay) != delay:
        raise DesignError(f"the delay counts whole samples, got {delay}")
    shape = (len(motion), n, *batch)
    rng = np.random.default_rng(seed)
    noise_q, noise_qd = (_noise(rng, std, shape) for std in (sensors.position_noise, sensors.velocity_noise))
    grid = [np.broadcast_to(x, n).astype(float) for x in (sensors.position_step, sensors.velocity_step)]
    pushed = np.zeros((1, 1)) if disturbance is None else np.asarray(disturbance, dtype=float)
    if disturbance is not None and (pushed.shape != (len(motion), n) or not np.isfinite(pushed).all()):
        raise DesignError(f"a disturbance must be finite and ({len(motion)}, {n}), got {pushed.shape}")
    inputs = [np.broadcast_to(_trailing(x, len(batch)), shape) for x in (motion.q, motion.qd, motion.qdd)]
    inputs += [noise_q, noise_qd, np.broadcast_to(_trailing(pushed, len(batch)), shape)]
    out = _loop(plant, controller, tuple(map(jnp.asarray, inputs)), y0, period, grid, steps, int(delay))
    q, qd, qdd, torque, saturated, seen_q, seen_qd = (np.asarray(x) for x in out)
    refuse_unstable(plant, motion.time, q, qd, qdd, steps)
    return Simulation(plant.robot, motion.time, q, qd, qdd, torque, seen_q, seen_qd, saturated, motion, steps, sensors, seed)


@partial(jax.jit, static_argnums=(6, 7))
def _loop(plant, controller, inputs, y0, period, grid, steps, delay):
    h = period / steps

    def sample(carry, now):
        y, waiting = carry
        reference_q, reference_qd, reference_qdd, noise_q, noise_qd, push = now
        seen_q, seen_qd = _snap(y[0] + noise_q, grid[0]), _snap(y[1] + noise_qd, grid[1])
        command = controller(seen_q, seen_qd, reference_q, reference_qd, reference_qdd)
        if delay:
            command, waiting = waiting[0], jnp.concatenate([waiting[1:], command[None]])
        torque = limited(command, plant.torque_limit)

        def rate(state):
            return jnp.stack([state[1], plant.acceleration(state[0], state[1], torque + push)])

        def step(state, _):
            state, first = runge_kutta(rate, state, h)
            return state, first[1]

        after, accelerations = jax.lax.scan(step, y, None, length=steps)
        out = (y[0], y[1], accelerations[0], torque, torque != command, seen_q, seen_qd)
        return (after, waiting), out

    waiting = jnp.zeros((delay, *y0.shape[1:]))
    return jax.lax.scan(sample, (y0, waiting), inputs)[1]


def runge_kutta(rate, state, h):
    """One classical fourth-order step; returns the new state and the rate at the old one."""
    nodes, weights = jnp.array([0.0, 0.5, 0.5, 1.0]), jnp.array([1.0, 2.0, 2.0, 1.0]) / 6.0

    def stage(carry, now):
        slope, total = carry
        node, weight = now
        slope = rate(state + h * node * slope)
        return (slope, total + weight * slope), slope

    zero = jnp.zeros_like(state)
    (_, total), slopes = jax.lax.scan(stage, (zero, zero), (nodes, weights))
    return state + h * total, slopes[0]


def _steps(plant, motion, period, steps, start):
    positions = np.column_stack([start, motion.q[np.linspace(0, len(motion) - 1, 15).astype(int)].T])
    fastest = plant.stiffness(jnp.asarray(positions))
    needed = int(np.ceil(period * fastest / _STABLE)) or 1
    if steps is None:
        return max(1, int(np.ceil(period * fastest / _ACCURATE)))
    if int(steps) != steps or steps < 1:
        raise DesignError(f"the number of integration steps per sample must be a positive whole number, got {steps}")
    if steps < needed:
        raise SolverError(
            f"step too large: friction near standstill decays at {fastest:.4g} 1/s, {steps} steps of "
            f"{period / steps:.3g} s per sample cannot follow it; take at least {needed} steps (steps={needed}), "
            "or let simulate choose"
        )
    return int(steps)


def refuse_unstable(plant, time, *parts):
    """Raise SolverError at the first sample where an array is not finite or absurdly large; `parts` ends with the
    steps.
    """
    *arrays, steps = parts
    wild = np.zeros(len(time), dtype=bool)
    for array in arrays:
        flat = array.reshape(len(time), -1)
        wild |= ~np.isfinite(flat).all(1) | (np.abs(np.where(np.isfinite(flat), flat, 0.0)) > 1e9).any(1)
    if wild.any():
        k = int(np.argmax(wild))
        raise SolverError(
            f"the simulation of robot '{plant.robot.name}' became unstable at t = {time[k]:.4g} s "
            f"({steps} steps per sample): lower the control gains or the delay, or sample faster"
        )


def sampling_period(motion) -> float:
    """Time between the samples of a motion [s]; raises DesignError where it is not constant."""
    steps = np.diff(motion.time)
    if len(motion) < 2 or not (steps > 0).all() or np.ptp(steps) > 1e-6 * steps.mean():
        raise DesignError("a closed loop needs a motion sampled at a constant rate, with at least two samples")
    return float((motion.time[-1] - motion.time[0]) / (len(motion) - 1))


def _broadcast(value, n, batch, name):
    value = np.asarray(value, dtype=float)
    if value.shape not in ((n,), (n, *batch)) or not np.isfinite(value).all():
        raise DesignError(f"the initial {name} must be {n} finite numbers, or ({n}, robots); got the shape {value.shape}")
    return np.broadcast_to(value if value.ndim > 1 else _trailing(value, len(batch)), (n, *batch))


def _trailing(value, rank):
    return value.reshape(value.shape + (1,) * rank)


def _noise(rng, std, shape):
    std = np.broadcast_to(np.asarray(std, dtype=float), shape[1])
    if not std.any():
        return np.zeros(shape)
    return rng.standard_normal(shape) * std.reshape(-1, *(1,) * (len(shape) - 2))


def _snap(value, step):
    step = step.reshape(-1, *(1,) * (value.ndim - 1))
    return jnp.where(step > 0, jnp.round(value / jnp.where(step > 0, step, 1.0)) * step, value)
