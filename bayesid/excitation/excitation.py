"""An excitation: a motion ready to run, with what it was made for and how good it is; one self-describing JSON file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from bayesid.errors import DesignError, RobotError
from bayesid.excitation.certificate import Certificate
from bayesid.excitation.families import Family, FourierQuintic, family_from_settings
from bayesid.excitation.limits import Limits

FORMAT = "bayesid excitation"
VERSION = 1
LAW = (
    "q(t) = sum_k a_k/(k w) sin(k w t) - b_k/(k w) cos(k w t) + sum_{j=0..5} c_j t^j, w = 2 pi / T; "
    "a and b are (harmonic, joint) [rad/s], c is (power, joint) [rad/s^j]"
)


@dataclass(frozen=True, eq=False)
class Excitation:
    """A motion of all joints: `coefficients` (size, n) of its `family`, from `start` to `end` (n,) [rad].

    `robot_source` is what `load_robot` was given, `robot_hash` a fingerprint of what it returned. `design` records how the
    motion was made: objective, values, seed, version, constraints, command; `certificate` is None for a motion that was
    never checked.
    """

    robot_name: str
    robot_source: str
    robot_hash: str
    joint_names: tuple[str, ...]
    family: Family
    coefficients: np.ndarray
    start: np.ndarray
    end: np.ndarray
    limits: Limits
    certificate: Certificate | None = None
    design: dict = field(default_factory=dict)

    @property
    def period(self) -> float:
        return self.family.period

    @property
    def dof(self) -> int:
        return len(self.joint_names)

    def motion(self, time):
        """q, qd, qdd, qddd (S, n) at times (S,) in [0, period]."""
        time = np.atleast_1d(np.asarray(time, dtype=float))
        if time.size and (time.min() < -1e-9 or time.max() > self.period + 1e-9):
            raise DesignError(f"the motion lasts from 0 to {self.period:g} s, asked at {time.min():g} to {time.max():g} s")
        return tuple(
            self.family.offset(time, k, self.start, self.end) + self.family.basis(time, k) @ self.coefficients for k in range(4)
        )

    def sampled(self, rate: float):
        """(time (S,), q, qd, qdd (S, n)) at a rate [Hz] that is rounded so that both ends are sampled."""
        if not (np.isfinite(rate) and rate > 0):
            raise DesignError(f"the rate must be a positive number of Hz, got {rate}")
        time = np.linspace(0.0, self.period, max(2, round(self.period * rate) + 1))
        return (time, *self.motion(time)[:3])

    @cached_property
    def robot(self):
        """The robot it was designed for. Raises DesignError when the description changed since."""
        from bayesid.robots import load_robot

        try:
            robot = load_robot(self.robot_source)
        except RobotError as error:
            raise DesignError(f"the robot of this trajectory cannot be read: {error}") from error
        if fingerprint(robot) != self.robot_hash:
            raise DesignError(
                f"the description '{self.robot_source}' is not the one that this trajectory was designed for: design it again"
            )
        return robot

    def to_dict(self) -> dict:
        """JSON-able content; `from_dict` is its inverse."""
        out = {
            "format": FORMAT,
            "version": VERSION,
            "robot": {"name": self.robot_name, "source": self.robot_source, "sha256": self.robot_hash},
            "joints": list(self.joint_names),
            "family": self.family.settings(),
            "start": self.start.tolist(),
            "end": self.end.tolist(),
            "coefficients": self.coefficients.tolist(),
            "limits": self.limits.to_dict(),
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "design": self.design,
        }
        if isinstance(self.family, FourierQuintic):
            n = self.family.harmonics
            polynomial = self.family.polynomial(self.coefficients, self.start, self.end)
            out["law"] = {"text": LAW, "a": self.coefficients[:n].tolist(), "b": self.coefficients[n:].tolist()}
            out["law"]["c"] = polynomial.tolist()
        return out

    @classmethod
    def from_dict(cls, data: dict) -> Excitation:
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise DesignError("not a trajectory written by bayesid excite")
        if data.get("version") != VERSION:
            raise DesignError(f"trajectory file version {data.get('version')!r}, this version reads {VERSION}")
        try:
            family = family_from_settings(data["family"])
            coefficients = np.array(data["coefficients"], dtype=float)
            certificate = data["certificate"]
            out = cls(
                robot_name=data["robot"]["name"],
                robot_source=data["robot"]["source"],
                robot_hash=data["robot"]["sha256"],
                joint_names=tuple(data["joints"]),
                family=family,
                coefficients=coefficients,
                start=np.array(data["start"], dtype=float),
                end=np.array(data["end"], dtype=float),
                limits=Limits.from_dict(data["limits"]),
                certificate=None if certificate is None else Certificate.from_dict(certificate),
                design=data["design"],
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise DesignError(f"a part of the trajectory is missing or malformed: {error!r}") from None
        if coefficients.shape != (family.size, out.dof) or not np.isfinite(coefficients).all():
            raise DesignError(f"the coefficients must be ({family.size}, {out.dof}) finite numbers, got {coefficients.shape}")
        return out

    def save(self, path) -> None:
        """Write one JSON file."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path) -> Excitation:
        """Read what `save` wrote. Raises DesignError naming the file."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DesignError(f"{path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise DesignError(f"{path}: not a JSON file: {error}") from None
        try:
            return cls.from_dict(data)
        except DesignError as error:
            raise DesignError(f"{path}: {error}") from None

    def __repr__(self):
        state = "not checked" if self.certificate is None else "feasible" if self.certificate.feasible else "INFEASIBLE"
        return f"Excitation({self.robot_name}, {self.family.name}, {self.period:g} s, {state})"


def fingerprint(robot) -> str:
    """SHA-256 of the kinematics, dynamics and capsules of a robot."""
    content = repr((robot.joints, robot.links, robot.frames, robot.capsules, robot.gravity))
    return hashlib.sha256(content.encode()).hexdigest()
