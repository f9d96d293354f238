"""Friction laws, linear in their parameters, joint side.

A law has one column per parameter; friction torque is the sum of parameter times column. Where the joint stands still
the sign of its velocity is not defined: `direction` (values in [-1, 1]) replaces it, see `bayesid.signals`. Some laws
depend on more than velocity: on the torque that the gear transmits, or on the motor's temperature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from bayesid.errors import ModelError

# Temperature [deg C] at which the viscous friction of the law `temperature` is its parameter `viscous`.
REFERENCE_TEMPERATURE = 25.0

_UNITS = {"viscous": "N m s/rad"}
_NEEDED = {"load": "the torque that the gear transmits", "temperature": "the temperature of the motor"}


@dataclass(frozen=True)
class FrictionLaw:
    """One linear friction law.

    `parameters` names its parameters per joint, `units` and `nonnegative` belong to them in order. `needs` names what it
    depends on beside velocity: `load`, the size of the torque that the gear transmits [N m], `temperature` [deg C].
    `basis(qd, direction, *needs)` gives one column per parameter. `sharp`: columns turn around within less than a low-pass
    filter resolves, so that they have to be filtered themselves where the effort was. `origin` (n, k), of laws that are
    linearised, holds the parameters of each joint at which its torque is zero.
    """

    name: str
    parameters: tuple[str, ...]
    units: tuple[str, ...]
    nonnegative: tuple[bool, ...]
    basis: Callable
    needs: tuple[str, ...] = ()
    sharp: bool = False
    origin: tuple[tuple[float, ...], ...] | None = None

    def columns(self, qd, direction=None, **surroundings):
        """Columns (k, *shape) at velocities (*shape) [rad/s]; `direction` (*shape) stands in for sign(qd) when given.

        `load` and `temperature` (*shape) are required of laws that need them: ModelError without them.
        """
        if not self.parameters:
            return jnp.zeros((0, *jnp.shape(qd)))
        for name in self.needs:
            if surroundings.get(name) is None:
                raise ModelError(
                    f"friction law '{self.name}' depends on {_NEEDED[name]}, which is not known here: choose another law"
                )
        given = [surroundings[name] for name in self.needs]
        return jnp.stack(self.basis(qd, jnp.sign(qd) if direction is None else direction, *given))


def _viscous(qd, direction):
    return (qd,)


def _coulomb(qd, direction):
    return qd, direction


def _offset(qd, direction):
    return qd, direction, jnp.ones_like(qd)


def _asymmetric(qd, direction):
    forward, backward = 0.5 * (1.0 + direction), 0.5 * (1.0 - direction)
    return jnp.maximum(qd, 0.0), jnp.minimum(qd, 0.0), forward, -backward


def _sublinear(qd, direction):
    return *_offset(qd, direction), direction * jnp.sqrt(jnp.abs(qd))


def _load(qd, direction, load):
    return *_offset(qd, direction), direction * load


def _harmonic_drive(qd, direction, load):
    return *_sublinear(qd, direction), direction * load


def _temperature(qd, direction, temperature):
    return *_offset(qd, direction), qd * (temperature - REFERENCE_TEMPERATURE)


def stribeck_shapes(qd, speed, numpy=jnp):
    """The two dry shapes of the UR16e extended model (eqs. 22-23) at a breakaway speed: Coulomb torque that sets in at a tenth
    of it, and the excess that peaks, with the value one, at it. `qd` and `speed` broadcast."""
    x = qd / (np.sqrt(2.0) * speed)
    return numpy.tanh(10.0 * qd / speed), np.sqrt(2.0 * np.e) * numpy.exp(-(x**2)) * x


@dataclass(frozen=True)
class _Stribeck:
    """Basis of the law of the UR16e extended model (eqs. 22-23): viscous, Coulomb and excess breakaway torque."""

    breakaway_speed: float | tuple[float, ...]

    def __call__(self, qd, direction):
        return qd, *stribeck_shapes(qd, _spread(self.breakaway_speed, qd))


@dataclass(frozen=True)
class _StribeckAbout:
    """The same with a fourth column: the derivative of the torque by the breakaway speed, at these values (n,) of all three."""

    breakaway_speed: tuple[float, ...]
    coulomb: tuple[float, ...]
    excess: tuple[float, ...]

    def __call__(self, qd, direction):
        speed, coulomb, excess = (_spread(values, qd) for values in (self.breakaway_speed, self.coulomb, self.excess))
        dry, bump = stribeck_shapes(qd, speed)
        # d tanh(10 w / v) / dv and, since the bump depends on w / v alone, d bump / dv = -(w / v) d bump / dw.
        slope = -coulomb * (1.0 - dry**2) * 10.0 * qd / speed**2 - excess * bump * (1.0 - (qd / speed) ** 2) / speed
        return qd, dry, bump, slope


def _spread(values, qd):
    """One value, or one per joint along the first axis of velocities."""
    return values if isinstance(values, float) else np.array(values).reshape(-1, *(1,) * (jnp.ndim(qd) - 1))


def stribeck_law(breakaway_speed: float | Sequence[float] = 0.1) -> FrictionLaw:
    """The Stribeck law of the UR16e extended model (eqs. 22-23) at known breakaway speeds [rad/s]: one, or one per joint (along
    the first axis of velocities).

    Its third parameter is the excess tau_brk - tau_c of the breakaway torque over the Coulomb torque.
    """
    return FrictionLaw(
        "stribeck",
        ("viscous", "coulomb", "stribeck"),
        (_UNITS["viscous"], "N m", "N m"),
        (True, True, True),
        _Stribeck(_speeds(breakaway_speed)),
        sharp=True,
    )


def stribeck_law_about(breakaway_speed, coulomb, excess) -> FrictionLaw:
    """The Stribeck law with the breakaway speed as its fourth parameter, linearised about these values (n,) of the joints.

    It is affine: columns belong to parameters less `origin`.
    """
    speed = _speeds(tuple(breakaway_speed))
    law = stribeck_law(speed)
    return FrictionLaw(
        law.name,
        (*law.parameters, "breakaway_speed"),
        (*law.units, "rad/s"),
        (*law.nonnegative, False),
        _StribeckAbout(speed, tuple(map(float, coulomb)), tuple(map(float, excess))),
        sharp=True,
        origin=tuple((0.0, 0.0, 0.0, value) for value in speed),
    )


def _speeds(given):
    values = np.asarray(given, dtype=float)
    if values.ndim > 1 or not values.size or not (np.isfinite(values).all() and (values > 0).all()):
        raise ModelError(f"the breakaway speed must be a positive number of rad/s, got {given}")
    return tuple(values.tolist()) if values.ndim else float(values)


_LAWS = {
    law.name: law
    for law in (
        FrictionLaw("none", (), (), (), _viscous),
        FrictionLaw("viscous", ("viscous",), (_UNITS["viscous"],), (True,), _viscous),
        FrictionLaw("coulomb", ("viscous", "coulomb"), (_UNITS["viscous"], "N m"), (True, True), _coulomb),
        FrictionLaw(
            "coulomb-offset",
            ("viscous", "coulomb", "offset"),
            (_UNITS["viscous"], "N m", "N m"),
            (True, True, False),
            _offset,
        ),
        FrictionLaw(
            "asymmetric",
            ("viscous_forward", "viscous_backward", "coulomb_forward", "coulomb_backward"),
            (_UNITS["viscous"], _UNITS["viscous"], "N m", "N m"),
            (True, True, True, True),
            _asymmetric,
        ),
        # Friction of harmonic drives grows ever more slowly with speed.
        FrictionLaw(
            "sublinear",
            ("viscous", "coulomb", "offset", "sublinear"),
            (_UNITS["viscous"], "N m", "N m", "N m s^0.5/rad^0.5"),
            (False, False, False, False),
            _sublinear,
        ),
        stribeck_law(),
        FrictionLaw(
            "load",
            ("viscous", "coulomb", "offset", "load_friction"),
            (_UNITS["viscous"], "N m", "N m", "1"),
            (True, True, False, True),
            _load,
            ("load",),
        ),
        FrictionLaw(
            "harmonic-drive",
            ("viscous", "coulomb", "offset", "sublinear", "load_friction"),
            (_UNITS["viscous"], "N m", "N m", "N m s^0.5/rad^0.5", "1"),
            (False, False, False, False, True),
            _harmonic_drive,
            ("load",),
        ),
        FrictionLaw(
            "temperature",
            ("viscous", "coulomb", "offset", "viscous_temperature"),
            (_UNITS["viscous"], "N m", "N m", "N m s/(rad K)"),
            (True, True, False, False),
            _temperature,
            ("temperature",),
        ),
    )
}


def friction_names() -> tuple[str, ...]:
    """Names that `friction_law` knows."""
    return tuple(_LAWS)


def friction_law(name: str) -> FrictionLaw:
    """The friction law of that name. Raises ModelError for an unknown one."""
    if name not in _LAWS:
        raise ModelError(f"unknown friction law '{name}': choose one of {', '.join(_LAWS)}")
    return _LAWS[name]
