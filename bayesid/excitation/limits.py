"""Joint limits of a motion: from the robot description, overridden by a file or by hand."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bayesid.errors import DesignError

LIMIT_NAMES = ("lower", "upper", "velocity", "acceleration", "jerk", "torque")
UNITS = {
    "lower": "rad",
    "upper": "rad",
    "velocity": "rad/s",
    "acceleration": "rad/s^2",
    "jerk": "rad/s^3",
    "torque": "N m",
}


@dataclass(frozen=True, eq=False)
class Limits:
    """Per joint (n,) [rad, rad/s, rad/s^2, rad/s^3, N m; metres and newtons for prismatic joints]; infinite: not limited."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray
    torque: np.ndarray

    def __post_init__(self):
        n = len(self.lower)
        for name in LIMIT_NAMES:
            value = np.asarray(getattr(self, name), dtype=float)
            object.__setattr__(self, name, value)
            if value.shape != (n,) or np.isnan(value).any():
                raise DesignError(f"limit '{name}' must hold {n} numbers, got {value.tolist()}")
            if name not in ("lower", "upper") and (value <= 0).any():
                raise DesignError(f"limit '{name}' of joint {int(np.argmin(value)) + 1} must be positive, got {value.min()}")
        if (self.lower >= self.upper).any():
            joint = int(np.argmax(self.lower >= self.upper))
            raise DesignError(
                f"joint {joint + 1} has no room: lower {self.lower[joint]} is not below upper {self.upper[joint]}"
            )

    @classmethod
    def of(cls, robot, **changes) -> Limits:
        """The robot's own limits with some replaced; a scalar stands for all joints. Raises DesignError for an unknown name."""
        values = {name: robot.limit(name) for name in LIMIT_NAMES}
        for name, value in changes.items():
            if name not in values:
                raise DesignError(f"unknown limit '{name}': known are {', '.join(LIMIT_NAMES)}")
            try:
                value = np.asarray(value, dtype=float)
            except (TypeError, ValueError):
                raise DesignError(f"limit '{name}' is not a number or a list of numbers: {value!r}") from None
            if value.ndim > 1 or (value.ndim == 1 and value.shape != (robot.dof,)):
                raise DesignError(f"limit '{name}' needs one number or {robot.dof}, one per joint of '{robot.name}'")
            values[name] = np.broadcast_to(value, (robot.dof,)).copy()
        return cls(**values)

    @classmethod
    def read(cls, path, robot) -> Limits:
        """Limits from a TOML file with keys lower, upper, velocity, ...: one number or one per joint; the rest is the
        robot's."""
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DesignError(f"{path}: cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DesignError(f"{path}: not a TOML file: {error}") from None
        try:
            return cls.of(robot, **data)
        except DesignError as error:
            raise DesignError(f"{path}: {error}") from None

    def scaled(self, factor: float) -> Limits:
        """Limits on rates and torques times a factor: positions stay."""
        rates = {name: factor * getattr(self, name) for name in LIMIT_NAMES[2:]}
        return dataclasses.replace(self, **rates)

    def to_dict(self) -> dict:
        """JSON-able content with None for infinite values; `from_dict` is its inverse."""
        return {n: [float(x) if np.isfinite(x) else None for x in getattr(self, n)] for n in LIMIT_NAMES}

    @classmethod
    def from_dict(cls, data: dict) -> Limits:
        values = {}
        for name in LIMIT_NAMES:
            infinite = -np.inf if name == "lower" else np.inf
            values[name] = np.array([infinite if x is None else x for x in data[name]], dtype=float)
        return cls(**values)
