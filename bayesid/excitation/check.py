"""After the run: was the motion executed as designed, and how much information was lost, per parameter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import DesignError
from bayesid.excitation.evaluation import information_at
from bayesid.excitation.excitation import Excitation
from bayesid.excitation.observation import TorqueObservation
from bayesid.models import Model

# Tracking within this part of the amplitude counts as executed as designed.
TOLERANCE = 0.02
SPEED_TOLERANCE = 0.01
_SEARCH = 4000


@dataclass(frozen=True, eq=False)
class Execution:
    """A recorded run beside its design. Arrays per joint (n,) or per parameter (p,).

    `start` [s] is the log time at which the motion began, `speed` how fast it was played (1: as designed), `covered` the
    part of the motion that the log holds; errors are recorded minus designed at that speed. `std_ratio` is the standard
    deviation of each base parameter with the motion as it was run over that as designed, at equal noise and number of
    samples: above 1, information was lost.
    """

    start: float
    speed: float
    covered: float
    position_rms: np.ndarray
    position_max: np.ndarray
    velocity_rms: np.ndarray
    relative: np.ndarray
    names: tuple[str, ...]
    std_ratio: np.ndarray
    condition_designed: float
    condition_run: float
    joint_names: tuple[str, ...]

    @property
    def as_designed(self) -> bool:
        """All of it was run, at its speed to 1 %, and every joint's RMS position error stays below 2 % of its amplitude."""
        return bool(self.covered > 0.99 and abs(self.speed - 1.0) < SPEED_TOLERANCE and (self.relative < TOLERANCE).all())

    def to_dict(self) -> dict:
        joints = {
            name: {"position_rms_rad": a, "position_max_rad": b, "velocity_rms_rad_s": c, "relative": d}
            for name, a, b, c, d in zip(
                self.joint_names,
                self.position_rms.tolist(),
                self.position_max.tolist(),
                self.velocity_rms.tolist(),
                self.relative.tolist(),
            )
        }
        return {
            "as_designed": self.as_designed,
            "start_s": self.start,
            "speed": self.speed,
            "covered": self.covered,
            "joints": joints,
            "condition_number": {"designed": self.condition_designed, "run": self.condition_run},
            "std_ratio": dict(zip(self.names, self.std_ratio.tolist())),
        }


def check_execution(excitation: Excitation, samples, robot=None, noise=None) -> Execution:
    """Compare recorded `Samples` with the design; the motion's start in the log is found by least squares on position.

    Raises DesignError when the joints do not match, or the log holds less than half of the motion.
    """
    robot = robot or excitation.robot
    if samples.q.shape[1] != excitation.dof:
        raise DesignError(f"the log has {samples.q.shape[1]} joints, the trajectory {excitation.dof}")
    start, speed = find_timing(excitation, samples.time, samples.q)
    phase = (samples.time - start) * speed
    inside = (phase >= -1e-9) & (phase <= excitation.period + 1e-9)
    covered = float(np.ptp(phase[inside])) / excitation.period if inside.sum() > 1 else 0.0
    if covered < 0.5:
        raise DesignError(f"the log holds {100 * covered:.0f} % of the motion: give the whole run, without trimming it")
    at = np.clip(phase[inside], 0.0, excitation.period)
    q, qd, qdd, _ = excitation.motion(at)
    error, rate_error = samples.q[inside] - q, samples.qd[inside] - speed * qd
    amplitude = 0.5 * np.ptp(excitation.motion(np.linspace(0, excitation.period, 2000))[0], axis=0)
    rms = np.sqrt(np.mean(error**2, axis=0))
    observation = TorqueObservation(Model(robot, excitation.design.get("observation", {}).get("friction", "none")))
    noise = np.ones(excitation.dof) if noise is None else noise
    designed = information_at(observation, q.T, qd.T, qdd.T, noise)
    run = information_at(observation, *(x[inside].T for x in (samples.q, samples.qd, samples.qdd)), noise)
    return Execution(
        start=start,
        speed=speed,
        covered=min(1.0, covered),
        position_rms=rms,
        position_max=np.abs(error).max(axis=0),
        velocity_rms=np.sqrt(np.mean(rate_error**2, axis=0)),
        relative=rms / np.maximum(amplitude, 1e-6),
        names=observation.names,
        std_ratio=_std(run) / _std(designed),
        condition_designed=float(np.sqrt(np.linalg.cond(designed))),
        condition_run=float(np.sqrt(np.linalg.cond(run))),
        joint_names=excitation.joint_names,
    )


def find_timing(excitation: Excitation, time, q) -> tuple[float, float]:
    """Log time [s] at which the motion began and the speed at which it was played, by least squares on position.

    A start is searched at speed 1 over the log, then both are refined (Gauss-Newton) with the amplitude of each joint free, so
    that a motion that was shrunk is not taken for one that began at another time. A quarter of the motion is enough, played
    at half to twice its speed. Raises DesignError for a log without time.
    """
    from scipy.optimize import least_squares

    time = np.asarray(time, dtype=float)
    grid = np.linspace(0.0, excitation.period, 400)
    design = excitation.motion(grid)[0]

    def errors(start, speed):
        at = start + grid / speed
        recorded = np.stack([np.interp(at, time, column) for column in q.T], axis=1)
        known = ((at >= time[0]) & (at <= time[-1]))[:, None]
        return np.where(known, recorded - design, 0.0), known

    def misfit(start):
        error, known = errors(start, 1.0)
        return float(np.sum(error**2) / known.sum()) if known.sum() >= len(grid) // 4 else np.inf

    low, high = time[0] - 0.75 * excitation.period, time[-1] - 0.25 * excitation.period
    if high <= low:
        raise DesignError("the log is empty or its time stands still")
    starts = np.arange(low, high, max((high - low) / _SEARCH, 0.02))
    best = float(starts[int(np.argmin([misfit(s) for s in starts]))])
    swing = design - design[0]

    def shapes(x):
        error, known = errors(*x)
        recorded = np.where(known, error + swing, 0.0)
        size = np.sum(np.where(known, swing, 0.0) ** 2, axis=0)
        amplitude = np.where(size > 0, np.sum(recorded * swing, axis=0) / np.where(size > 0, size, 1.0), 1.0)
        return np.where(known, recorded - amplitude * swing, 0.0).ravel()

    fitted = least_squares(shapes, [best, 1.0], bounds=([-np.inf, 0.5], [np.inf, 2.0]), x_scale=[0.01, 0.001], xtol=1e-12)
    return float(fitted.x[0]), float(fitted.x[1])


def _std(information):
    """Standard deviations of an information matrix, huge and not imaginary where a part of a log leaves it singular."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    values = np.maximum(values, np.finfo(float).eps * values[-1])
    return scale * np.sqrt(np.sum(vectors**2 / values, axis=1))
