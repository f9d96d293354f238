"""Samples: what an estimator sees of a log, with the record of every step that led there."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesid.errors import SignalError
from bayesid.logs.log import Log
from bayesid.signals.derivatives import MeasuredVelocity, PositionDifferences
from bayesid.signals.filtering import low_pass, motion_bandwidth, onto, onto_linear, uniform_grid
from bayesid.signals.trimming import motion_window, standstill_speed

# Cutoff in multiples of the motion's bandwidth, and its bounds: in Hz from below, in parts of the rate from above.
BANDWIDTHS = 5.0
LOWEST_CUTOFF = 5.0
HIGHEST_CUTOFF = 0.2
# Decimated samples keep at least so many times the cutoff as their rate.
RATE_OVER_CUTOFF = 5.0
# A gap in the recording longer than so many steps is not bridged.
GAP = 10


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows ready for regression; arrays are (sample, joint), float64, SI units and radians.

    `time` (N,) [s] are stamps as recorded. q, qd, qdd are smooth and noncausal; `effort` is the measured effort through the
    same filter, `effort_measured` the unfiltered value at the same instants. `effort_kind` is "torque" [N m] or "current"
    [A, or the drive's own unit when `effort_unit` is "raw"]. `moving` (N, n) is False where the joint's speed cannot be told
    from zero: the sign of its friction is unknown there. `weights` (N, n) scale the residuals, one by default.
    `q_std`, `qd_std`, `qdd_std` are standard deviations where the smoother knows them, else None.
    `cutoff` [Hz] is the low-pass that shaped them (None: none). `steps` records each step: its name, its settings, the
    number of samples before and after. `source` is the log's provenance.
    """

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    effort: np.ndarray
    effort_kind: Literal["torque", "current"]
    effort_measured: np.ndarray | None = None
    effort_unit: str = ""
    moving: np.ndarray | None = None
    weights: np.ndarray | None = None
    q_std: np.ndarray | None = None
    qd_std: np.ndarray | None = None
    qdd_std: np.ndarray | None = None
    cutoff: float | None = None
    steps: tuple[dict, ...] = ()
    source: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("time", np.asarray(self.time, dtype=np.float64))
        put("q", np.asarray(self.q, dtype=np.float64))
        if self.effort_measured is None:
            put("effort_measured", self.effort)
        if self.moving is None:
            put("moving", np.abs(np.asarray(self.qd)) > 0)
        if self.weights is None:
            put("weights", np.ones_like(self.q))
        if not self.effort_unit:
            put("effort_unit", "N m" if self.effort_kind == "torque" else "A")
        if self.effort_kind not in ("torque", "current"):
            raise SignalError(f"effort kind must be torque or current, it is {self.effort_kind!r}")
        put("moving", np.asarray(self.moving, dtype=bool))
        for name in ("qd", "qdd", "effort", "effort_measured", "weights", "q_std", "qd_std", "qdd_std"):
            value = getattr(self, name)
            if value is not None:
                put(name, np.asarray(value, dtype=np.float64))
        for name in self._arrays():
            if getattr(self, name).shape != self.q.shape or self.q.ndim != 2 or len(self.time) != len(self.q):
                raise SignalError(f"samples: {name} has the shape {getattr(self, name).shape}, q has {self.q.shape}")

    def _arrays(self) -> list[str]:
        names = ("q", "qd", "qdd", "effort", "effort_measured", "moving", "weights", "q_std", "qd_std", "qdd_std")
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
) -> Samples:
    """Low-pass, differentiate, trim and decimate a log. Every step is recorded in `Samples.steps`.

    - `effort`: the channel to explain; "auto" takes the one that the log's schema declares.
    - irregular stamps: signals are carried to a uniform grid at the median step (position and velocity by cubic spline,
      effort linearly), filtered there, and the smooth results are carried back to the recorded stamps by cubic spline; so
      `effort_measured` is never interpolated. Samples nearer than one filter period to a gap of ten steps are left out.
    - `cutoff` [Hz]: half-amplitude frequency of the zero-phase Butterworth filter, used alike for motion and effort so that
      both sides of the regression see the same filter. Default: five times the bandwidth of the motion (99 % of the
      acceleration's power), at least 5 Hz so that reversals of friction stay sharp, at most a fifth of the rate.
    - `differentiation`: MeasuredVelocity() when velocity was recorded (its default), else PositionDifferences().
    - `trim`: cut the idle ends (see `trimming.motion_window`); default: when no window was given with the path.
    - `decimate`: keep every so many rows after filtering; default: as many as leave five samples per period of the cutoff.

    Raises SignalError when the log has no such effort, is shorter than the filter, or nothing is left.
    """
    kind, unit, measured = _effort(log, effort)
    if len(log) < 16:
        raise SignalError(f"{log.where}: {len(log)} rows are too few to differentiate: a log needs at least 16")
    steps: list[dict] = []
    n = len(log)
    grid, uniform = uniform_grid(log.time)
    rate = float((len(grid) - 1) / (grid[-1] - grid[0]))
    if len(grid) > 20 * n:
        raise SignalError(f"{log.where}: time is too irregular: {n} rows span {len(grid)} median steps")
    position, velocity, torque = log.position, log.velocity, measured
    if not uniform:
        dt = np.diff(log.time)
        position = onto(grid, log.time, position)
        velocity = None if velocity is None else onto(grid, log.time, velocity)
        torque = onto_linear(grid, log.time, torque)
        steps.append(
            {
                "name": "resample",
                "rate_hz": round(rate, 6),
                "step_s": [float(dt.min()), float(np.median(dt)), float(dt.max())],
                "motion": "cubic spline",
                "effort": "linear",
                "samples": [n, len(grid)],
            }
        )
    if differentiation is None:
        differentiation = PositionDifferences() if velocity is None else MeasuredVelocity()
    raw_velocity = velocity if velocity is not None else np.gradient(position, 1 / rate, axis=0)
    bandwidth = motion_bandwidth(raw_velocity, rate)
    chosen = cutoff is None
    if chosen:
        cutoff = min(max(BANDWIDTHS * bandwidth, LOWEST_CUTOFF), HIGHEST_CUTOFF * rate)
    try:
        motion = differentiation.derive(grid, position, velocity, rate, cutoff)
        filtered = low_pass(torque, rate, cutoff)
    except SignalError as error:
        raise SignalError(f"{log.where}: {error}") from None
    steps.append(
        {
            "name": "low-pass",
            "filter": "zero-phase Butterworth, order 4 each way",
            "cutoff_hz": round(cutoff, 6),
            "chosen": "from the motion's bandwidth" if chosen else "given",
            "bandwidth_hz": round(bandwidth, 6),
            "samples": [len(grid), len(grid)],
        }
    )
    steps.append({**motion.record, "samples": [len(grid), len(grid)]})
    threshold = standstill_speed(raw_velocity, motion.qd, rate, cutoff)
    back = (lambda values: values) if uniform else (lambda values: onto(log.time, grid, values))
    qd = back(motion.qd)
    std = [None] * 3 if motion.std is None else [np.abs(back(s)) for s in motion.std]
    samples = Samples(
        time=log.time,
        q=back(motion.q),
        qd=qd,
        qdd=back(motion.qdd),
        effort=back(filtered),
        effort_kind=kind,
        effort_measured=measured,
        effort_unit=unit,
        moving=np.abs(qd) > threshold,
        q_std=std[0],
        qd_std=std[1],
        qdd_std=std[2],
        cutoff=float(cutoff),
        source=log.provenance(),
    )
    if not uniform:
        steps.append({"name": "return to recorded stamps", "by": "cubic spline", "samples": [len(grid), n]})
    steps.append({"name": "standstill", "threshold": threshold.tolist(), "share_moving": samples.moving.mean(0).round(6).tolist(), "samples": [n, n]})
    samples = samples.replace(steps=tuple(steps))
    if trim is None:
        trim = not log.window
    keep = np.ones(n, dtype=bool)
    if trim:
        window = motion_window(log.time, samples.moving.any(1))
        keep[: window.first] = keep[window.last + 1 :] = False
        rows = [log.rows[0] + window.first, log.rows[0] + window.last]
        samples = samples.then(samples.select(keep), {"name": "trim", "rows": rows, "cut": list(window.cut)})
    samples = _without_gaps(samples, log.time, 1 / rate, 1 / cutoff)
    if decimate is None:
        decimate = max(int(rate / (RATE_OVER_CUTOFF * cutoff)), 1)
    if decimate < 1 or decimate != int(decimate):
        raise SignalError(f"decimate must be a whole number from 1, it is {decimate}")
    if decimate > 1:
        if rate / decimate < 2 * cutoff:
            raise SignalError(
                f"{log.where}: every {decimate}th row of {rate:.6g} Hz is less than twice the cutoff of {cutoff:.6g} Hz: decimate less or "
                "lower the cutoff"
            )
        step = {"name": "decimate", "factor": int(decimate), "rate_hz": round(rate / decimate, 6)}
        samples = samples.then(samples.select(slice(None, None, int(decimate))), step)
    if len(samples) < 2:
        raise SignalError(f"{log.where}: fewer than two samples are left after trimming and decimation")
    return samples


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


def _without_gaps(samples: Samples, time: np.ndarray, step: float, reach: float) -> Samples:
    gaps = np.flatnonzero(np.diff(time) > GAP * step)
    keep = np.ones(len(samples), dtype=bool)
    for i in gaps:
        keep &= (samples.time < time[i] - reach) | (samples.time > time[i + 1] + reach)
    if keep.all():
        return samples
    return samples.then(samples.select(keep), {"name": "leave out gaps", "gaps": len(gaps), "reach_s": round(reach, 6)})
