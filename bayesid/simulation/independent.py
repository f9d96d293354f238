"""The same closed loop in MuJoCo: an independent multibody engine, with friction applied from outside.

Needs the extra `mujoco` (pip install bayesid[mujoco]). The controller, the saturation and the sampling are those of
`simulate`; bodies, rotors and integration are MuJoCo's. Its soft stops at the joints' position limits act too:
`simulate` has none, so that a comparison must stay inside the limits.
"""

from __future__ import annotations

from contextlib import contextmanager

import jax
import numpy as np

from bayesid.errors import DesignError, SolverError
from bayesid.robots import mjcf_text
from bayesid.simulation.closed_loop import Simulation, refuse_unstable, sampling_period
from bayesid.simulation.plant import Plant

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast")


@contextmanager
def friction_in_every_stage(model, friction):
    """Friction recomputed wherever MuJoCo evaluates forces, also within a Runge-Kutta step. Yields what to do before
    a step.
    """
    import mujoco

    def passive(_, data):
        data.qfrc_passive[:] -= np.asarray(friction(np.array(data.qvel)))

    mujoco.set_mjcb_passive(passive)
    try:
        yield lambda data: None
    finally:
        mujoco.set_mjcb_passive(None)


@contextmanager
def friction_held_over_a_step(model, friction):
    """Friction computed once per step and held over it, as an applied force: the plain way of coupling an engine."""

    def before(data):
        data.qfrc_applied[:] = -np.asarray(friction(np.array(data.qvel)))

    yield before


def simulate_mujoco(
    plant: Plant,
    controller,
    motion,
    *,
    initial=None,
    steps: int = 1,
    integrator: str = "RK4",
    coupling=friction_in_every_stage,
) -> Simulation:
    """Let a controller drive MuJoCo's model of a plant along a motion; arguments as in `simulate`.

    `integrator` is one of MuJoCo's, `coupling` says how friction enters it. Raises SolverError when the loop is
    unstable.
    """
    try:
        import mujoco
    except ImportError as error:
        raise SolverError("simulate_mujoco needs MuJoCo: pip install 'bayesid[mujoco]'") from error
    if integrator not in INTEGRATORS:
        raise DesignError(f"unknown MuJoCo integrator '{integrator}': choose one of {', '.join(INTEGRATORS)}")
    if np.ndim(plant.inertials) != 2 or plant.coriolis != "exact":
        raise DesignError("simulate_mujoco takes one robot with the exact equations of motion")
    period = sampling_period(motion)
    model = mujoco.MjModel.from_xml_string(
        mjcf_text(plant.robot, plant.inertials, plant.rotor_inertias, timestep=period / steps)
    )
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (motion.q[0], motion.qd[0]) if initial is None else initial
    command = jax.jit(controller)
    friction = jax.jit(plant.friction.friction_torque)
    shape = motion.q.shape
    q, qd, qdd, torque, saturated = (np.empty(shape) for _ in range(5))
    with coupling(model, friction) as before:
        for k in range(len(motion)):
            q[k], qd[k] = data.qpos, data.qvel
            asked = np.asarray(command(q[k], qd[k], motion.q[k], motion.qd[k], motion.qdd[k]))
            if not np.isfinite(asked).all():
                q[k:] = np.nan
                break
            torque[k] = np.clip(asked, -plant.torque_limit, plant.torque_limit)
            saturated[k] = torque[k] != asked
            data.ctrl[:] = torque[k]
            before(data)
            mujoco.mj_forward(model, data)
            qdd[k] = data.qacc
            for _ in range(steps):
                before(data)
                mujoco.mj_step(model, data)
    refuse_unstable(plant, motion.time, q, qd, qdd, steps)
    return Simulation(plant.robot, motion.time, q, qd, qdd, torque, q, qd, saturated.astype(bool), motion, steps)
