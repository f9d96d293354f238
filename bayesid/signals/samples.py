"""Samples: what an estimator sees of a log, with the record of every step that led there."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesid.errors import SignalError
from bayesid.logs.log import Log
from bayesid.signals.derivatives import MeasuredVelocity, PositionDifferences
from bayesid.signals.filtering import Grid, low_pass, motion_bandwidth, spline
from bayesid.signals.fine import FineMotion
from bayesid.signals.reversal import REVERSAL_WIDTH, friction_direction
from bayesid.signals.trimming import motion_window, standstill_speed

# The default cutoff: in multiples of the motion's bandwidth, within these bounds [Hz] and below this part of the rate.
BANDWIDTHS = 20.0
LOWEST_CUTOFF = 8.0
HIGHEST_CUTOFF = 20.0
CUTOFF_OVER_RATE = 0.2
# Decimated samples keep at least so many times the cutoff as their rate.
RATE_OVER_CUTOFF = 10.0
# Correlation with the position's derivative from which a recorded velocity is believed.
FOLLOWS = 0.9
# A gap in the recording longer than so many steps is not bridged.
GAP = 10


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows ready for regression; arrays are (sample, joint), float64, SI units and radians.

    `time` (N,) [s] are stamps as recorded. q, qd, qdd are smooth and noncausal; `effort` is the measured effort
    through the same filter, `effort_measured` the unfiltered value at the same instants. `effort_kind` is "torque" [N
    m] or "current" [A, or the drive's own unit when `effort_unit` is "raw"]. `moving` (N, n) is False where the
    joint's speed cannot be told from zero: the sign of its friction is unknown there. `direction` (N, n) in [-1, 1]
    is the slip that dry friction opposes (see `reversal.friction_direction`), through the same filter;
    `direction_measured` is its unfiltered value. `weights` (N, n) scale the squared residuals, one by default. `q_std`,
    `qd_std`, `qdd_std` are standard deviations where the smoother knows them, else None. `temperature` [deg C] is the
    motors', as recorded, None where it was not. `fine` is the recorded motion, for functions of velocity that have to pass
    the filter themselves (None: nothing was filtered). `cutoff` [Hz] is the low-pass that shaped them (None: none). `steps`
    records each step: its name, its settings, the number of samples before and after. `source` is the log's provenance.
    """

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    effort: np.ndarray
    effort_kind: Literal["torque", "current"]
    effort_measured: np.ndarray | None = None
    effort_unit: str = ""
    direction: np.ndarray | None = None
    direction_measured: np.ndarray | None = None
    moving: np.ndarray | None = None
    weights: np.ndarray | None = None
    q_std: np.ndarray | None = None
    qd_std: np.ndarray | None = None
    qdd_std: np.ndarray | None = None
    temperature: np.ndarray | None = None
    fine: FineMotion | None = None
    cutoff: float | None = None
    steps: tuple[dict, ...] = ()
    source: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        def put(name, value):
            object.__setattr__(self, name, value)

        put("time", np.asarray(self.time, dtype=np.float64))
        put("q", np.asarray(self.q, dtype=np.float64))
        if self.effort_measured is None:
            put("effort_measured", self.effort)
        if self.direction_measured is None:
            put("direction_measured", np.sign(self.qd) if self.direction is None else self.direction)
        if self.direction is None:
            put("direction", self.direction_measured)
        if self.moving is None:
            put("moving", np.abs(np.asarray(self.qd)) > 0)
        if self.weights is None:
            put("weights", np.ones_like(self.q))
        if not self.effort_unit:
            put("effort_unit", "N m" if self.effort_kind == "torque" else "A")
        if self.effort_kind not in ("torque", "current"):
            raise SignalError(f"effort kind must be torque or current, it is {self.effort_kind!r}")
        put("moving", np.asarray(self.moving, dtype=bool))
        for name in [name for name in self._arrays() if name not in ("q", "moving")]:
            value = getattr(self, name)
            if value is not None:
                put(name, np.asarray(value, dtype=np.float64))
        for name in self._arrays():
            if getattr(self, name).shape != self.q.shape or self.q.ndim != 2 or len(self.time) != len(self.q):
                raise SignalError(f"samples: {name} has the shape {getattr(self, name).shape}, q has {self.q.shape}")

    def _arrays(self) -> list[str]:
        names = ("q", "qd", "qdd", "effort", "effort_measured", "direction", "direction_measured", "moving", "weights")
        names += ("q_std", "qd_std", "qdd_std", "temperature")
        return [name for name in names if getattr(self, name) is not None]

    def __len__(self) -> int:
        return len(self.time)

    @property
    def dof(self) -> int:
        """Number of joints."""
        return self.q.shape[1]

    @property
    def step(self) -> float:
        """Median time between samples [s]."""
        return float(np.median(np.diff(self.time))) if len(self) > 1 else float("nan")

    @property
    def breaks(self) -> np.ndarray:
        """Rows that follow a gap: what comes before them in the arrays is not their past."""
        return np.flatnonzero(np.diff(self.time) > GAP * self.step) + 1

    @property
    def duration(self) -> float:
        """Seconds from the first to the last sample."""
        return float(self.time[-1] - self.time[0]) if len(self) else 0.0

    def replace(self, **changes) -> Samples:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def select(self, rows) -> Samples:
        """The samples at `rows`: a slice, an index array or a mask (N,)."""
        return self.replace(time=self.time[rows], **{name: getattr(self, name)[rows] for name in self._arrays()})

    def then(self, samples: Samples, step: dict) -> Samples:
        """`samples` made from these, with the step recorded."""
        return samples.replace(steps=(*self.steps, {**step, "samples": [len(self), len(samples)]}))


def samples_from_log(
    log: Log,
    *,
    effort: Literal["auto", "torque", "current"] = "auto",
    trim: bool | None = None,
    cutoff: float | None = None,
    differentiation=None,
    decimate: int | None = None,
    delay: float = 0.0,
) -> Samples:
    """Low-pass, differentiate, trim and decimate a log. Every step is recorded in `Samples.steps`.

    - `effort`: the channel to explain; "auto" takes the one that the log's schema declares.
    - irregular stamps: signals are carried to a uniform grid at the median step (position and velocity by cubic
      spline, effort linearly), filtered there, and the smooth results are carried back to the recorded stamps by
      cubic spline; so `effort_measured` is never interpolated. Samples within a period of the cutoff of a gap of ten
      steps, or of an end of the log at which the robot moves, are left out: the filter has to invent what lies beyond.
    - `cutoff` [Hz]: half-amplitude frequency of the zero-phase Butterworth filter, the same for motion and effort so
      that both sides of the regression pass it. Default: twenty times the motion's bandwidth (99 % of the velocity's
      power), not below 8 Hz nor above 20 Hz nor a fifth of the rate. So high because friction reverses within a
      fraction of a motion's period; not higher because above lie the resonances of the joints, which a rigid model
      cannot explain. On four of five UR10e logs the error on a held-out one is least, and flat within 1 %, from 8 to 12 Hz; 4
      Hz costs 5 %.
    - `differentiation`: MeasuredVelocity() when the velocity was recorded and follows the position, since the UR10e's
      acceleration is less noisy from it (held-out error 4.86 N m against 5.33 at 8 Hz); else PositionDifferences().
      KalmanSmoother() also gives standard deviations.
    - `trim`: cut the idle ends (see `trimming.motion_window`); default: when no window was given with the path.
    - `decimate`: keep every so many rows after filtering; default: as many as leave ten samples per period of the
      cutoff.
    - `delay` [s]: effort stamped t belongs to the motion at t - delay (see `estimate_delay`); the motion is moved.

    Raises SignalError when the log has no such effort, is shorter than the filter, or nothing is left.
    """
    kind, unit, measured = _effort(log, effort)
    n = len(log)
    if n < 16:
        raise SignalError(f"{log.where}: {n} rows are too few to filter: a log needs at least 16")
    try:
        grid = Grid.over(log.time)
    except SignalError as error:
        raise SignalError(f"{log.where}: {error}") from None
    steps: list[dict] = []
    if not grid.uniform:
        dt = np.diff(log.time)
        spread = {"shortest": float(dt.min()), "median": float(np.median(dt)), "longest": float(dt.max())}
        how = {"motion": "cubic spline", "effort": "linear", "back": "cubic spline"}
        steps.append({"name": "resample", "rate_hz": grid.rate, "steps_s": spread, **how, "samples": [n, len(grid.grid)]})
    follows = _follows(log, grid.rate)
    if differentiation is None:
        differentiation = MeasuredVelocity() if follows else PositionDifferences()
    raw_velocity = log.velocity if follows else np.gradient(log.position, log.time, axis=0)
    bandwidth = motion_bandwidth(grid.smooth(raw_velocity), grid.rate)
    chosen = cutoff is None
    if chosen:
        highest = min(HIGHEST_CUTOFF, CUTOFF_OVER_RATE * grid.rate)
        cutoff = min(max(BANDWIDTHS * bandwidth, LOWEST_CUTOFF), highest)
        if bandwidth > cutoff == highest < LOWEST_CUTOFF:
            raise SignalError(
                f"{log.where}: the motion reaches {bandwidth:.3g} Hz, too fast for {grid.rate:.4g} rows a second: log at "
                f"{5 * bandwidth:.3g} Hz at least, or give --cutoff to use what can be told"
            )
    try:
        motion = differentiation.derive(grid, log.position, log.velocity, cutoff)
        filtered = grid.back(low_pass(grid.noisy(measured), grid.rate, cutoff))
    except SignalError as error:
        raise SignalError(f"{log.where}: {error}") from None
    steps.append(
        {
            "name": "low-pass",
            "filter": "zero-phase Butterworth, order 4 each way",
            "cutoff_hz": float(cutoff),
            "chosen": "from the motion's bandwidth" if chosen else "given",
            "bandwidth_hz": bandwidth,
            "samples": [len(grid.grid), len(grid.grid)],
        }
    )
    steps.append({"name": "friction direction", "width": REVERSAL_WIDTH, "samples": [n, n]})
    steps.append({**motion.record, "samples": [len(grid.grid), n]})
    if log.velocity is not None and not follows:
        steps[-1]["note"] = "the recorded velocity does not follow the position and was not used"
    slip = friction_direction(motion.q, motion.qd)
    smooth_slip = grid.back(low_pass(grid.noisy(slip), grid.rate, cutoff))
    threshold = standstill_speed(raw_velocity, motion.qd, grid.rate, cutoff)
    std = (None, None, None) if motion.std is None else motion.std
    samples = Samples(
        time=log.time,
        q=motion.q,
        qd=motion.qd,
        qdd=motion.qdd,
        effort=filtered,
        effort_kind=kind,
        effort_measured=measured,
        effort_unit=unit,
        direction=smooth_slip,
        direction_measured=slip,
        moving=np.abs(motion.qd) > threshold,
        q_std=std[0],
        qd_std=std[1],
        qdd_std=std[2],
        temperature=log.temperature,
        fine=FineMotion(grid, log.position, log.velocity if follows else None, float(cutoff)),
        cutoff=float(cutoff),
        source=log.provenance(),
    )
    still = {"name": "standstill", "threshold": threshold.tolist(), "share_moving": samples.moving.mean(0).tolist()}
    samples = samples.replace(steps=(*steps, {**still, "samples": [n, n]}))
    moving = samples.moving
    if delay:
        samples = _delayed(samples, delay, threshold)
    if trim or (trim is None and not log.window):
        window = motion_window(samples.time, samples.moving.any(1))
        # A delay may have taken rows from one end: the log's own row numbers are what a reader can look up.
        rows = [int(log.rows[0] + np.searchsorted(log.time, samples.time[i])) for i in (window.first, window.last)]
        step = {"name": "trim", "rows": rows, "cut": list(window.cut)}
        samples = samples.then(samples.select(slice(window.first, window.last + 1)), step)
    samples = _without_transients(samples, log.time, still_before=not moving[0].any(), still_after=not moving[-1].any())
    samples = _without_gaps(samples, log.time, 1 / grid.rate, 1 / cutoff)
    decimate = decimation(decimate, grid.rate, cutoff, log.where)
    if decimate > 1:
        step = {"name": "decimate", "factor": int(decimate), "rate_hz": grid.rate / decimate}
        samples = samples.then(samples.select(slice(None, None, int(decimate))), step)
    if len(samples) < 2:
        raise SignalError(f"{log.where}: fewer than two samples are left after trimming and decimation")
    return samples


def _follows(log: Log, rate: float) -> bool:
    """Whether the recorded velocity is that of the recorded position: drivers that do not measure it log zeros.

    Moves over a tenth of a second are compared with the integral of velocity, on the joints that move at all.
    """
    reach = max(round(0.1 * rate), 1)
    if log.velocity is None or len(log) <= reach + 2:
        return log.velocity is not None
    increments = 0.5 * (log.velocity[1:] + log.velocity[:-1]) * np.diff(log.time)[:, None]
    integral = np.concatenate([np.zeros((1, log.dof)), increments.cumsum(0)])
    moved, integrated = (values[reach:] - values[:-reach] for values in (log.position, integral))
    moves = np.ptp(log.position, axis=0) > 1e-2
    norm = np.sqrt((moved**2).sum(0) * (integrated**2).sum(0))
    correlation = (moved * integrated).sum(0) / np.maximum(norm, 1e-300)
    return bool(np.all(correlation[moves] > FOLLOWS))


def decimation(decimate: int | None, rate: float, cutoff: float, where: str) -> int:
    """How many rows make one sample: as asked, or as many as leave ten samples per period of the cutoff."""
    if decimate is None:
        return max(int(rate / (RATE_OVER_CUTOFF * cutoff)), 1)
    if decimate < 1 or decimate != int(decimate):
        raise SignalError(f"decimate must be a whole number from 1, it is {decimate}")
    if decimate > 1 and rate / decimate < 2 * cutoff:
        raise SignalError(
            f"{where}: every {decimate}th row of {rate:.6g} Hz is less than twice the cutoff of {cutoff:.6g} Hz: "
            "decimate less or lower the cutoff"
        )
    return int(decimate)


def _delayed(samples: Samples, delay: float, threshold: np.ndarray) -> Samples:
    at = samples.time - delay
    inside = (at >= samples.time[0]) & (at <= samples.time[-1])
    if inside.sum() < 2:
        raise SignalError(f"a delay of {delay:.6g} s leaves no samples of {samples.duration:.6g} s")
    names = ("q", "qd", "qdd", "direction", "direction_measured", "q_std", "qd_std", "qdd_std")
    names = [name for name in names if getattr(samples, name) is not None]
    moved = {name: spline(samples.time, getattr(samples, name), at[inside]) for name in names}
    if samples.fine is not None:
        moved["fine"] = dataclasses.replace(samples.fine, delay=samples.fine.delay + delay)
    kept = samples.select(inside).replace(**moved)
    kept = kept.replace(moving=np.abs(kept.qd) > threshold)
    return samples.then(kept, {"name": "delay", "seconds": float(delay), "moved": "motion, by cubic spline"})


def _effort(log: Log, effort: str) -> tuple[str, str, np.ndarray]:
    kind = log.effort_kind if effort == "auto" else effort
    if kind is None:
        kind = "torque" if log.torque is not None else "current"
    if kind not in ("torque", "current", "raw"):
        raise SignalError(f"effort must be auto, torque or current, it is {effort!r}")
    values = log.torque if kind == "torque" else log.current
    if values is None:
        raise SignalError(f"{log.where}: no {kind} was recorded; the file has {', '.join(log.channels)}")
    raw = kind != "torque" and log.effort_kind == "raw"
    return ("torque", "N m", values) if kind == "torque" else ("current", "raw" if raw else "A", values)


def _without_transients(samples: Samples, time: np.ndarray, still_before: bool, still_after: bool) -> Samples:
    """Without the rows within a period of the cutoff of a recording's end at which the robot moves.

    The filter has to invent what lies beyond. At rest it does so rightly; in motion it bends accelerations at the end by
    up to a quarter of their peak on the UR10e recordings, and by less than 1 % a period away.
    """
    reach = 1 / samples.cutoff
    keep = np.ones(len(samples), dtype=bool)
    if not still_before:
        keep &= samples.time >= time[0] + reach
    if not still_after:
        keep &= samples.time <= time[-1] - reach
    if keep.all():
        return samples
    return samples.then(samples.select(keep), {"name": "leave out transients", "reach_s": reach})


def _without_gaps(samples: Samples, time: np.ndarray, step: float, reach: float) -> Samples:
    gaps = np.flatnonzero(np.diff(time) > GAP * step)
    keep = np.ones(len(samples), dtype=bool)
    for i in gaps:
        keep &= (samples.time < time[i] - reach) | (samples.time > time[i + 1] + reach)
    if keep.all():
        return samples
    return samples.then(samples.select(keep), {"name": "leave out gaps", "gaps": len(gaps), "reach_s": round(reach, 6)})
