"""Design a motion: several random starts, the better half goes on, the best is certified."""

from __future__ import annotations

import dataclasses
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bayesid
from bayesid.errors import DesignError
from bayesid.excitation.certificate import certify
from bayesid.excitation.evaluation import evaluator_of, information
from bayesid.excitation.excitation import Excitation, fingerprint
from bayesid.excitation.interior import SHARPNESS_END, InteriorPoint, Iterate
from bayesid.excitation.objectives import ConditionNumber, DOptimal
from bayesid.excitation.problem import Problem

STRETCH = 10
STALLS = 3
REFINEMENTS = 4
REFINEMENT_STEPS = 4
SHRINK = 0.995
# Left to all limits, since a peak may lie between the instants of the certificate.
CUSHION = 1.0 - 2e-4
STATE_CUSHION = 1e-4


@dataclass(frozen=True)
class Progress:
    """What the optimiser tells while it works: seconds spent, steps done and planned, starts left, the best so far."""

    seconds: float
    steps: int
    planned: int
    starts: int
    cost: float
    objective: float
    violation: float


@dataclass
class _Run:
    """Resumable state: iterates still in play, in order of merit, and the place in the plan."""

    seed: int
    iterates: list
    round: int = 0
    done: int = 0
    steps: int = 0

    def save(self, path, key):
        arrays = {"key": np.array(key), "place": np.array([self.seed, len(self.iterates), self.round, self.done, self.steps])}
        for i, it in enumerate(self.iterates):
            arrays.update(it.arrays(f"start{i}"))
        temporary = Path(f"{path}.part")
        with open(temporary, "wb") as file:
            np.savez(file, **arrays)
        temporary.replace(path)

    @classmethod
    def load(cls, path, key):
        try:
            with np.load(path) as data:
                if str(data["key"]) != key:
                    raise DesignError(f"{path}: belongs to another design problem; name a fresh file or repeat its options")
                seed, count, round_, done, steps = (int(x) for x in data["place"])
                iterates = [Iterate.from_arrays(f"start{i}", data) for i in range(count)]
        except (OSError, ValueError, KeyError) as error:
            raise DesignError(f"{path}: cannot be resumed from: {error}") from None
        return cls(seed, iterates, round_, done, steps)


def design(
    problem: Problem,
    *,
    seed: int = 0,
    starts: int = 4,
    steps: int = 500,
    seconds: float = 45.0,
    initial=None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint=None,
    robot_source: str | None = None,
    command: str | None = None,
) -> Excitation:
    """The best motion found for a problem, feasible on its certificate grid.

    `starts` random motions take `steps` / 12 steps each, the best third three times as many, the best of those goes on to
    `steps`. The same seed gives the same motion unless `seconds` of wall clock, compilation included, cut the work short,
    which the result says. `initial` (size, n) replaces the first start. `checkpoint` names a file to which the state is
    written and from which an interrupted design goes on. Raises DesignError when no feasible motion was found.
    """
    began = clock.monotonic()
    if starts < 1 or steps < 1:
        raise DesignError(f"a design needs at least one start and one step, got {starts} and {steps}")
    if not seconds > 0:
        raise DesignError(f"the time budget must be positive, got {seconds} s")
    evaluator = evaluator_of(problem)
    evaluator.backoff = [0.0] * len(problem.constraints)
    solver = InteriorPoint(evaluator)
    key = f"{fingerprint(problem.robot)} {describe(problem)} {starts} {steps}"
    if checkpoint is not None and Path(checkpoint).exists():
        run = _Run.load(checkpoint, key)
    else:
        run = _Run(seed, _begin(problem, solver, seed, starts, initial))
    stopped = _work(problem, solver, run, steps, began + seconds, progress, began, checkpoint, key)
    u, certificate, rescaled = _finish(problem, solver, run.iterates[0], stopped, began + 1.15 * seconds)
    coefficients = evaluator.full(u)
    matrix = information(problem, coefficients)
    robot = problem.robot
    record = {
        "bayesid": bayesid.__version__,
        "command": command,
        "seed": run.seed,
        "starts": starts,
        "steps": run.steps,
        "stopped_by": stopped,
        "seconds": round(clock.monotonic() - began, 2),
        "rescaled": rescaled,
        **describe(problem),
        **achieved(problem, matrix),
    }
    return Excitation(
        robot_name=robot.name,
        robot_source=robot_source or robot.name,
        robot_hash=fingerprint(robot),
        joint_names=robot.joint_names,
        family=problem.family,
        coefficients=coefficients,
        start=problem.start,
        end=problem.end,
        limits=problem.limits,
        certificate=certificate,
        design=record,
    )


def describe(problem: Problem) -> dict:
    """What was asked, JSON-able."""
    model = problem.observation.model
    observation = {"kind": type(problem.observation).__name__, "friction": model.friction.name, "rotor": model.rotor}
    for name in ("gains", "load_mass"):
        if hasattr(problem.observation, name):
            value = getattr(problem.observation, name)
            observation[name] = list(value) if isinstance(value, tuple) else value
    return {
        "objective": problem.objective.settings(),
        "observation": observation,
        "sampling_s": problem.sampling,
        "noise": problem.noise.tolist(),
        "free": list(problem.free),
        "constraints": [c.settings() for c in problem.constraints],
        "collected": None if problem.collected is None else np.asarray(problem.collected).tolist(),
    }


def achieved(problem: Problem, matrix) -> dict:
    """What a motion with information `matrix` (p, p) achieves; earlier data counts where there is any."""
    total = matrix if problem.collected is None else matrix + problem.collected
    names = problem.observation.names
    values, vectors = np.linalg.eigh(total)
    determined = values[0] > 1e-12 * values[-1]
    std = np.sqrt(np.diag(vectors / values @ vectors.T)) if determined else np.full(len(names), np.nan)
    weakest = np.argsort(-np.abs(vectors[:, 0]))[:3]
    samples = len(problem.time)
    return {
        "values": {
            "objective": problem.objective.value(total),
            "condition_number": ConditionNumber().value(total),
            "log_det_per_sample": DOptimal().value(total / samples),
            "samples": samples,
            "weakest_direction": [names[i] for i in weakest],
        },
        "predicted_std": {name: float(s) if np.isfinite(s) else None for name, s in zip(names, std)},
    }


def random_motion(problem: Problem, seed: int, fill: float = 0.98) -> np.ndarray:
    """(size, n) coefficients of a random motion of the family, scaled per joint to use `fill` of the limits that it meets
    first."""
    solver = InteriorPoint(evaluator_of(problem))
    u = solver.largest_feasible(_random(problem, solver, np.random.default_rng(seed)), fill)
    if u is None:
        raise DesignError("no feasible motion near the start pose: it lies too close to a constraint")
    return solver.evaluator.full(u)


def _random(problem, solver, rng):
    """Random scaled coefficients, each joint filling its limits by itself."""
    e = solver.evaluator
    u = rng.normal(size=e.scale.shape) * rng.uniform(0.2, 1.0, size=(e.scale.shape[0], 1))
    zero = e.joint_slacks(np.zeros(e.count))
    reach = np.max([((r - s) / r).max(axis=0) for s, r in zip(e.joint_slacks(u.ravel()), zero)], axis=0)
    return (u / np.maximum(reach, 1e-12)).ravel()


def _begin(problem, solver, seed, starts, initial):
    iterates = []
    for index, child in enumerate(np.random.SeedSequence(seed).spawn(starts)):
        rng = np.random.default_rng(child)
        if index == 0 and initial is not None:
            initial = np.asarray(initial, dtype=float)
            wanted = (problem.family.size, problem.robot.dof)
            if initial.shape != wanted:
                raise DesignError(f"the initial motion's coefficients must be {wanted}, got {initial.shape}")
            u = solver.largest_feasible(solver.evaluator.scaled(initial), 0.98)
        else:
            u = solver.largest_feasible(_random(problem, solver, rng))
        if u is not None:
            iterates.append(Iterate(u))
    if not iterates:
        raise DesignError("no feasible motion near the start pose: it lies too close to a constraint")
    return iterates


def _plan(starts, steps):
    """(starts kept, steps each has when the round ends) per round."""
    if starts == 1:
        return [(1, steps)]
    first = max(1, steps // 12)
    return [(starts, first), (max(1, -(-starts // 3)), 4 * first), (1, max(steps, 4 * first + 1))]


def _work(problem, solver, run, steps, deadline, progress, began, checkpoint, key):
    """Carry out the plan; returns why it ended: plan, converged or clock."""
    plan = _plan(len(run.iterates) if run.round == 0 else 2, steps)
    planned = sum(kept * (end - start) for (kept, end), start in zip(plan, [0, *(end for _, end in plan)]))
    shares = [0.35, 0.65, 1.0][-len(plan) :]
    begin = clock.monotonic()
    ended = "plan"
    while run.round < len(plan):
        kept, end = plan[run.round]
        run.iterates = sorted(run.iterates, key=lambda it: _rank(problem, it))[:kept] if run.round else run.iterates[:kept]
        until = begin + shares[run.round] * (deadline - begin)
        while any(_unfinished(it, end) for it in run.iterates) and clock.monotonic() < until:
            for it in run.iterates:
                for _ in range(STRETCH):
                    if not _unfinished(it, end) or clock.monotonic() >= until:
                        break
                    solver.step(it)
                    run.steps += 1
            if progress is not None:
                progress(_report(problem, solver, run, planned, began))
            if checkpoint is not None:
                run.save(checkpoint, key)
        if clock.monotonic() >= until and any(_unfinished(it, end) for it in run.iterates):
            ended = "clock"
        run.round += 1
    return "converged" if ended == "plan" and run.iterates[0].converged else ended


def _unfinished(it, end):
    return it.steps < end and it.stalled < STALLS and not it.converged


def _rank(problem, it):
    if it.information is None:
        return np.inf
    return float(problem.objective.cost(it.information, SHARPNESS_END))


def _report(problem, solver, run, planned, began):
    best = min(run.iterates, key=lambda it: _rank(problem, it))
    slack = min(float(s.min()) for s in solver.slacks(best.u))
    value = problem.objective.value(best.information)
    spent = clock.monotonic() - began
    return Progress(spent, run.steps, planned, len(run.iterates), _rank(problem, best), value, max(0.0, -slack))


def _finish(problem, solver, best, stopped, deadline):
    """Certify the best iterate; between the optimised instants a limit may be passed by a hair: back off, refine, rescale."""
    e = solver.evaluator
    for _ in range(REFINEMENTS if problem.constraints else 0):
        excess = _excess(problem, e.full(best.u))
        if all(float(x.max()) <= 0 for x in excess) or clock.monotonic() > deadline:
            break
        e.backoff = [off + 1.1 * np.maximum(x, 0.0)[:, None] for off, x in zip(e.backoff, excess)]
        u = solver.largest_feasible(best.u, 0.999)
        if u is None:
            break
        best = dataclasses.replace(best, u=u, hessian=None, stalled=0, converged=False)
        for _ in range(REFINEMENT_STEPS):
            if clock.monotonic() > deadline or best.stalled >= STALLS:
                break
            solver.step(best)
    scale = CUSHION * _joint_scale(problem, e.full(best.u))
    for _ in range(1000):
        certificate = certify(problem, e.full(scale * best.u))
        if certificate.feasible:
            return scale * best.u, certificate, scale
        scale *= SHRINK
    worst = certificate.worst
    raise DesignError(
        f"no feasible motion was found: {worst.what} misses its limit by {-worst.margin:.3g} {worst.unit} at {worst.time:.3g} s"
    )


def _joint_scale(problem, coefficients):
    """The largest scale, at most 1, at which the joint limits hold on the certificate grid."""
    scale = 1.0
    for k, lower, upper in problem.bounds():
        still = problem.family.offset(problem.certificate_grid, k, problem.start, problem.end)
        moved = problem.family.basis(problem.certificate_grid, k) @ coefficients
        for room, part in ((upper - still, moved), (still - lower, -moved)):
            over = part > room
            if over.any():
                scale = min(scale, float((room[over] / part[over]).min()) * (1.0 - 1e-9))
    return scale


def _excess(problem, coefficients):
    """How far each constraint's rows pass zero on the certificate grid, one array (k,) per constraint."""
    q, qd, qdd, _ = (x.T for x in problem.motion(coefficients, problem.certificate_grid))
    return [STATE_CUSHION - c.measured(problem.robot, q, qd, qdd).min(axis=1) for c in problem.constraints]
