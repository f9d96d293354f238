"""The simplified model of a manipulator: its Coriolis matrix is half the rate of the mass matrix.

"Simplified Methodology for Obtaining the Dynamic Model of Robot Manipulators" sets C = Hdot / 2 (eqs. 106-125 give
the two-link arm). The exact Coriolis matrix is Hdot / 2 + S with S skew-symmetric, so the model leaves S qd out. That
torque does no work: qd^T S qd = 0. Hence the simplified model keeps the energy balance and the passivity identity
exactly, and neither of them can reveal its error: a torque of the order of the centrifugal and Coriolis torques
themselves, which bends the motion without feeding it. It is harmless at rest, in slow motions, for set points under
feedback, and for one joint alone; it is wrong for simulating free motion, for feedforward at speed and as a regressor
for identification.
"""

import jax
import jax.numpy as jnp

from bayesid.dynamics import gravity_torque, inverse_dynamics, mass_matrix

SIMPLIFIED_WARNING = (
    "the symmetric Coriolis model (C = Mdot/2) leaves the skew-symmetric part out: it keeps the energy balance but not "
    "the equations of motion; use it to study that model, not to predict torques"
)


def simplified_coriolis(robot, q, qd, inertials=None):
    """Coriolis matrix (n, n, *batch) of the simplified model: half the rate of the mass matrix along qd."""
    return 0.5 * jax.jvp(lambda x: mass_matrix(robot, x, inertials), (q,), (qd,))[1]


def simplified_mass_and_bias(robot, q, qd, inertials=None, rotor_inertias=None, gravity=None):
    """Mass matrix (n, n, *batch) and Mdot qd / 2 + g (n, *batch) of the simplified model."""
    matrix, rate = jax.jvp(lambda x: mass_matrix(robot, x, inertials, rotor_inertias), (q,), (qd,))
    return matrix, 0.5 * jnp.sum(rate * qd[None], axis=1) + gravity_torque(robot, q, inertials, gravity)


def simplified_inverse_dynamics(robot, q, qd, qdd, inertials=None, rotor_inertias=None, gravity=None):
    """Joint torques (n, *batch) of the simplified model: M qdd + Mdot qd / 2 + g, friction excluded."""
    matrix, bias = simplified_mass_and_bias(robot, q, qd, inertials, rotor_inertias, gravity)
    return jnp.sum(matrix * qdd[None], axis=1) + bias


def simplification_error(robot, q, qd, inertials=None):
    """Torque (n, *batch) that the simplified model leaves out: S qd = C qd - Mdot qd / 2."""
    zero = jnp.zeros_like(qd)
    exact = inverse_dynamics(robot, q, qd, zero, inertials, None, (0.0, 0.0, 0.0))
    return exact - jnp.sum(simplified_coriolis(robot, q, qd, inertials) * qd[None], axis=1)
