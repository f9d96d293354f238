"""Payload from joint torques or motor currents, on top of a robot whose own model is identified; no acceleration needed.

Over a short window the generalised momentum changes by the integral of torque and drift (De Luca et al. 2006, eq. 6),

    [Y_p]_t^(t+h) pi - integral (drift) pi + integral (friction) = integral tau ,

linear in all parameters. A payload adds its ten parameters to those of the last link, so its columns are that link's. Runs
without payload tell the robot's base parameters, the run with it the payload; dry friction differs from day to day
and with load,
hence the loaded run has friction parameters of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from bayesid.dynamics import momentum_drift_regressor, momentum_regressor
from bayesid.errors import DataError
from bayesid.inertia import transform
from bayesid.models import Model
from bayesid.payload.parameters import NAMES, payload_estimate
from bayesid.regression.checks import check_runs, overlap
from bayesid.regression.covariance import ScoreBlocks, flat_top
from bayesid.results import Estimate
from bayesid.robots import Robot
from bayesid.signals import Samples

WINDOW = 0.1
# Residuals of good fits stay correlated over about this long [s]; see the Newey-West lags of `bayesid.regression`.
MEMORY = 1.5
# A step longer than so many median ones is a gap, over which the integrals are not known.
_GAP = 5.0
_CHUNK = 512
_COMMON_GAINS = (
    "the uncertainty of drive gains acts on the robot's model and on the payload alike: give the unloaded logs instead of a "
    "result"
)
_PASSES = 4


@dataclass(frozen=True, eq=False)
class LoadRows:
    """Rows of one run, windows first: `columns` (K, n, P) of the model's standard parameters, mean `effort` (K, n) in the
    log's unit, `used` (K, n) False where a joint stands still within the window, or the recording has a gap."""

    columns: np.ndarray
    effort: np.ndarray
    used: np.ndarray
    kind: str


def load_rows(model: Model, samples: Samples, window: float = WINDOW) -> LoadRows:
    """Integral equations over successive windows of about `window` [s], divided by their lengths."""
    if len(samples) < 20:
        raise DataError(f"{len(samples)} samples are too few for a payload: at least 20 are needed")
    edges = np.arange(0, len(samples), max(1, round(window / samples.step)))
    return _rows_between(model, samples, edges)


def payload_from_torques(
    model: Model,
    unloaded,
    loaded: Samples,
    *,
    gains=None,
    gain_covariance=None,
    frame: str | None = None,
    window: float = WINDOW,
    memory: float = MEMORY,
) -> Estimate:
    """Standard parameters of the payload about `frame` (default: the last link's) with intervals that count model error.

    `unloaded`: one or several `Samples` of runs without payload, or an Estimate of the model's base or standard parameters as
    `bayesid identify` gives it. `gains` (n,) [N m/A] are needed for currents; `gain_covariance` (n, n), or gains given as an
    Estimate of kind `gain`, widens the result by their uncertainty, which needs the unloaded runs themselves, since
    gains act on both. The covariance is Newey-West's (1987) over `memory` [s]. Raises DataError when the motion does not
    determine the payload.
    """
    gains, gain_covariance = _gains(model, gains, gain_covariance)
    _check_apart(model, unloaded, loaded)
    link = _last_link(model.robot, frame)
    spread = payload_columns(model.robot, frame)
    base, friction = _base_split(model)
    size = len(base) + 2 * len(friction) + 10
    loaded_rows = load_rows(model, loaded, window)
    runs = [] if isinstance(unloaded, Estimate) else [load_rows(model, run, window) for run in _runs(unloaded)]
    parts = [_design(rows, base, friction, None, size) for rows in runs]
    parts.append(_design(loaded_rows, base, friction, (link, spread), size))
    efforts = [_torques(rows, gains, model) for rows in (*runs, loaded_rows)]
    used = [rows.used for rows in (*runs, loaded_rows)]
    prior, centre = (
        _prior(model, unloaded, base, friction, size)
        if isinstance(unloaded, Estimate)
        else (np.zeros((size, size)), np.zeros(size))
    )
    lags = max(1, round(memory / window))
    fit = _fit(parts, efforts, used, prior, centre, lags)
    covariance = fit.covariance
    description = {"method": "hac", "lags": lags, "window_s": window}
    if gain_covariance is not None:
        if isinstance(unloaded, Estimate):
            raise DataError(_COMMON_GAINS)
        slope = fit.sensitivity([_currents(rows) for rows in (*runs, loaded_rows)])
        covariance = covariance + slope @ gain_covariance @ slope.T
        description["drive_gains"] = "propagated"
    return _payload(fit, covariance, description, model, frame, lags, len(loaded_rows.effort), "momentum of the loaded robot")


def payload_from_difference(
    model: Model,
    unloaded: Samples,
    loaded: Samples,
    *,
    gains=None,
    gain_covariance=None,
    frame: str | None = None,
    window: float = WINDOW,
    memory: float = MEMORY,
    tolerance: float = 0.05,
) -> Estimate:
    """Payload from two runs of the same motion: what does not change, the robot's own dynamics, cancels.

    The runs are aligned in time; where their positions still differ, by `tolerance` [rad] rms at most, the model's nominal
    parameters account for the rest. Friction may change with load. Otherwise as `payload_from_torques`.
    """
    gains, gain_covariance = _gains(model, gains, gain_covariance)
    _check_apart(model, unloaded, loaded)
    first, second = aligned(unloaded, loaded, tolerance)
    edges = np.arange(0, len(first), max(1, round(window / first.step)))
    rows = [_rows_between(model, run, edges) for run in (first, second)]
    link, spread = _last_link(model.robot, frame), payload_columns(model.robot, frame)
    _, friction = _base_split(model)
    start = model.size - len(friction)
    nominal = model.nominal.copy()
    mismatch = (rows[1].columns - rows[0].columns) @ nominal
    design = np.concatenate([rows[1].columns[:, :, start:], rows[1].columns[:, :, link] @ spread], axis=2)
    size = design.shape[2]
    effort = _torques(rows[1], gains, model) - _torques(rows[0], gains, model) - mismatch
    lags = max(1, round(memory / window))
    used = rows[0].used & rows[1].used
    fit = _fit([design], [effort], [used], np.zeros((size, size)), np.zeros(size), lags)
    covariance, description = fit.covariance, {"method": "hac", "lags": lags, "window_s": window}
    if gain_covariance is not None:
        slope = fit.sensitivity([_currents(rows[1]) - _currents(rows[0])])
        covariance = covariance + slope @ gain_covariance @ slope.T
        description["drive_gains"] = "propagated"
    return _payload(fit, covariance, description, model, frame, lags, len(effort), "difference of two runs")


def aligned(first: Samples, second: Samples, tolerance: float = 0.05) -> tuple[Samples, Samples]:
    """Both runs on one time grid, shifted so that their positions agree. Raises DataError when they are not the same motion."""
    step = max(first.step, second.step)
    starts = [run.time - run.time[0] for run in (first, second)]
    length = int(min(t[-1] for t in starts) / step)
    grid = step * np.arange(length + 1)
    q = [np.column_stack([np.interp(grid, t, c) for c in run.q.T]) for t, run in zip(starts, (first, second))]
    centred = [x - x.mean(0) for x in q]
    product = sum(
        np.fft.irfft(np.fft.rfft(b, 2 * len(grid)) * np.conj(np.fft.rfft(a, 2 * len(grid))))
        for a, b in zip(centred[0].T, centred[1].T)
    )
    shift = int(np.argmax(product))
    shift = shift if shift < len(grid) else shift - 2 * len(grid)
    fine = _fine_shift(first, second, starts, grid, shift * step, step)
    low, high = max(0.0, -fine), min(starts[0][-1], starts[1][-1] - fine)
    at = np.arange(low, high, step)
    if len(at) < 20:
        raise DataError("the two runs have no motion in common: use payload_from_torques")
    pair = _onto(first, starts[0], at), _onto(second, starts[1], at + fine)
    error = float(np.sqrt(np.mean((pair[0].q - pair[1].q) ** 2)))
    if error > tolerance:
        raise DataError(
            f"the two runs are not the same motion: positions differ by {error:.3g} rad rms after "
            f"alignment (at most {tolerance:g}); "
            "use an unloaded run of the same motion, or identify the robot first"
        )
    return pair


def attach(robot: Robot, payload: Estimate, frame: str | None = None) -> Robot:
    """The robot with the payload's mean (about `frame`) added to its last link."""
    return _changed(robot, payload, frame, 1.0)


def detach(robot: Robot, payload: Estimate, frame: str | None = None) -> Robot:
    """The robot without the payload that `attach` added."""
    return _changed(robot, payload, frame, -1.0)


def payload_columns(robot: Robot, frame: str | None = None) -> np.ndarray:
    """(10, 10) map from payload parameters about `frame` to those about its link's frame."""
    at = robot.frame(frame or robot.link_names[-1])
    return np.asarray(transform(jnp.eye(10), np.reshape(at.rotation, (3, 3)), np.array(at.xyz))).T


@dataclass(frozen=True, eq=False)
class _Fit:
    """Weighted least squares: `mean` (p,), Newey-West `covariance`, `inverse` normal matrix, weights (n,), residual rms."""

    mean: np.ndarray
    covariance: np.ndarray
    inverse: np.ndarray
    weights: np.ndarray
    rms: np.ndarray
    parts: list
    used: list

    def sensitivity(self, currents) -> np.ndarray:
        """(p, n) derivative of the mean with respect to the drive gains."""
        columns = sum(
            np.einsum("kjp,kj->pj", part, use * self.weights**2 * current)
            for part, use, current in zip(self.parts, self.used, currents)
        )
        return self.inverse @ columns

    @cached_property
    def payload(self) -> slice:
        return slice(len(self.mean) - 10, len(self.mean))


def _fit(parts, efforts, used, prior, centre, lags) -> _Fit:
    n = efforts[0].shape[1]
    weights = np.ones(n) / max(float(np.std(efforts[-1])), 1e-12)
    for _ in range(_PASSES):
        normal, right = prior.copy(), prior @ centre
        for part, effort, use in zip(parts, efforts, used):
            flat = (part * (use * weights)[:, :, None]).reshape(-1, part.shape[2])
            normal += flat.T @ flat
            right = right + flat.T @ (effort * use * weights).reshape(-1)
        root = _inverse_root(normal)
        mean = root @ (root.T @ right)
        residuals = [effort - part @ mean for part, effort in zip(parts, efforts)]
        count = sum(use.sum(0) for use in used)
        rms = np.sqrt(sum((r**2 * use).sum(0) for r, use in zip(residuals, used)) / np.maximum(count, 1))
        last, weights = weights, 1.0 / np.maximum(rms, 1e-12)
    middle = _score_covariance(parts, residuals, used, last, root, lags) + root.T @ prior @ root
    covariance = root @ middle @ root.T
    return _Fit(mean, 0.5 * (covariance + covariance.T), root @ root.T, last, rms, parts, used)


def _score_covariance(parts, residuals, used, weights, root, lags):
    """Flat-top Newey-West covariance of the scores with leverage correction, in the coordinates of `root`; see HAC."""
    size = max(1, lags // 3)
    sums, normals, starts = [], [], []
    for part, residual, use in zip(parts, residuals, used):
        rows = part * (use * weights)[:, :, None] @ root
        scores = np.einsum("kjp,kj->kp", rows, use * weights * residual)
        blocks = len(rows) // size
        if blocks < 20:
            raise DataError(f"{len(rows)} windows are too few for an uncertainty over {lags} lags: use a longer run")
        for k in range(blocks):
            rows_of = slice(k * size, (k + 1) * size if k + 1 < blocks else len(rows))
            flat = rows[rows_of].reshape(-1, root.shape[1])
            sums.append(scores[rows_of].sum(axis=0))
            normals.append(flat.T @ flat)
            starts.append(k == 0)
    count, coordinates = sum(map(len, parts)), np.eye(root.shape[1])
    blocks = ScoreBlocks(size, np.array(sums), np.array(normals), np.array(starts), np.ones((2, 1)), coordinates, count)
    return flat_top(blocks, max(1, round(lags / size)))


def _inverse_root(normal):
    """Root (p, r) of the inverse of a normal matrix, its diagonal scaled to one first; directions without data are left out."""
    scale = np.sqrt(np.clip(np.diag(normal), 1e-300, None))
    scale[np.diag(normal) <= 0] = 1.0
    values, vectors = np.linalg.eigh(normal / np.outer(scale, scale))
    keep = values > 1e-11 * values[-1]
    lost = vectors[:, ~keep]
    if np.abs(lost[-10:]).max(initial=0.0) > 0.1:
        names = [NAMES[i] for i in np.flatnonzero(np.abs(lost[-10:]).max(axis=1) > 0.1)]
        raise DataError(f"this motion does not determine {', '.join(names)}: move more joints, the wrist ones too")
    return vectors[:, keep] / np.sqrt(values[keep]) / scale[:, None]


def _payload(fit, covariance, description, model, frame, lags, windows, method):
    at = fit.payload
    return payload_estimate(
        fit.mean[at],
        covariance[at, at],
        method=method,
        covariance_method=description,
        dof=max(0.75 * windows / lags, 1.0),
        meta={
            "frame": frame or model.robot.link_names[-1],
            "residual_rms": fit.rms.tolist(),
            "windows": windows,
        },
    )


def _design(rows: LoadRows, base, friction, payload, size):
    """(K, n, size) columns: base without friction, friction unloaded, friction loaded, payload."""
    b, f = len(base), len(friction)
    out = np.zeros((*rows.effort.shape, size))
    out[:, :, :b] = rows.columns[:, :, base]
    if payload is None:
        out[:, :, b : b + f] = rows.columns[:, :, friction]
    else:
        link, spread = payload
        out[:, :, b + f : b + 2 * f] = rows.columns[:, :, friction]
        out[:, :, b + 2 * f :] = rows.columns[:, :, link] @ spread
    return out


def _base_split(model: Model):
    """Independent columns of the base parameters without those of friction, and all friction columns."""
    count = model.robot.dof * len(model.friction.parameters)
    friction = np.arange(model.size - count, model.size)
    return np.setdiff1d(model.base.independent, friction), friction


def _prior(model, estimate: Estimate, base, friction, size):
    """Information (size, size) and centre of an estimate of base or standard parameters."""
    from bayesid.regression import base_names

    if estimate.names == model.names:
        matrix = model.base.matrix
        mean, covariance = matrix @ estimate.mean, matrix @ estimate.covariance @ matrix.T
    elif estimate.names == base_names(model):
        mean, covariance = np.array(estimate.mean), np.array(estimate.covariance)
    else:
        raise DataError(
            f"the result holds parameters of another model: {len(estimate)} of them, while robot "
            f"'{model.robot.name}' with friction "
            f"'{model.friction.name}' has {model.base.dimension} base or {model.size} standard parameters"
        )
    order = {index: k for k, index in enumerate(model.base.independent)}
    if any(index not in order for index in friction):
        raise DataError("friction parameters of this model are not base parameters: the payload cannot be told from them")
    at = np.array([order[index] for index in (*base, *friction)])
    covariance = covariance[np.ix_(at, at)]
    scale = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    values = np.maximum(values, 1e-8 * values[-1])
    information, centre = np.zeros((size, size)), np.zeros(size)
    information[: len(at), : len(at)] = (vectors / values) @ vectors.T / np.outer(scale, scale)
    centre[: len(at)] = mean[at]
    return information, centre


def _gains(model, gains, covariance):
    if isinstance(gains, Estimate):
        at = [i for i, kind in enumerate(gains.kinds) if kind == "gain"]
        gains, covariance = np.array(gains.mean[at]), np.array(gains.covariance[np.ix_(at, at)])
    if gains is None:
        return None, None
    gains = np.asarray(gains, dtype=float)
    if gains.shape != (model.robot.dof,) or not np.isfinite(gains).all() or (gains <= 0).any():
        raise DataError(f"drive gains must be {model.robot.dof} positive numbers of N m/A, got {gains}")
    return gains, None if covariance is None else np.asarray(covariance, dtype=float)


def _torques(rows: LoadRows, gains, model):
    if rows.kind == "torque":
        return rows.effort
    if gains is None:
        raise DataError(
            "the log holds motor currents: give the drive gains with --drive-gains (N m/A per joint, or a drive-gains result)"
        )
    return rows.effort * gains


def _currents(rows: LoadRows):
    """What gains multiply: torques do not depend on them."""
    return rows.effort * (rows.kind == "current")


def _check_apart(model, unloaded, loaded):
    """Refuse a loaded run that is an unloaded one too, and a model that is loose by gains which the payload shares."""
    if not isinstance(unloaded, Estimate):
        check_runs(model, [*_runs(unloaded), loaded])
        return
    check_runs(model, [loaded])
    if unloaded.covariance_method.get("drive_gains") == "propagated":
        raise DataError(_COMMON_GAINS)
    if any(overlap(loaded.source, run) for run in unloaded.meta.get("trained_on", ())):
        raise DataError(
            f"{loaded.source['path']}: the unloaded robot was identified from this log: give one recorded with a load"
        )


def _runs(unloaded):
    return (unloaded,) if isinstance(unloaded, Samples) else tuple(unloaded)


def _last_link(robot: Robot, frame):
    at = robot.frame(frame or robot.link_names[-1]).parent
    if at < 0:
        raise DataError(f"frame '{frame}' does not move: a payload hangs on a moving link")
    return slice(10 * at, 10 * at + 10)


def _changed(robot, payload, frame, sign):
    at = robot.frame(frame or robot.link_names[-1]).parent
    inertials = np.array(robot.inertials)
    inertials[at] += sign * payload_columns(robot, frame) @ payload.select(NAMES).mean
    return robot.with_inertials(inertials)


def _rows_between(model: Model, samples: Samples, edges) -> LoadRows:
    n, k = model.robot.dof, len(model.friction.parameters)
    momentum, drift = _momentum_columns(model.robot, samples)
    time = samples.time

    def integral(values):
        step = np.diff(time).reshape(-1, *(1,) * (values.ndim - 1))
        total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(0.5 * step * (values[1:] + values[:-1]), axis=0)])
        return np.diff(total[edges], axis=0)

    parts = [np.diff(momentum[edges], axis=0) - integral(drift)]
    eye = np.eye(n)
    if model.rotor:
        parts.append(np.diff(samples.qd[edges], axis=0)[:, :, None] * eye)
    if k:
        columns = integral(np.moveaxis(np.asarray(model.friction.columns(samples.qd, samples.direction)), 0, 2))
        parts.append((columns[:, :, None, :] * eye[:, :, None]).reshape(len(columns), n, n * k))
    length = np.diff(time[edges])[:, None]
    still = np.concatenate([np.zeros((1, n), dtype=int), np.cumsum(~samples.moving, axis=0)])
    moving = still[edges[1:] + 1] == still[edges[:-1]]
    gaps = np.concatenate([[0], np.cumsum(np.diff(time) > _GAP * samples.step)])
    moving &= (gaps[edges[1:]] == gaps[edges[:-1]])[:, None]
    return LoadRows(
        np.concatenate(parts, axis=2) / length[:, :, None], integral(samples.effort) / length, moving, samples.effort_kind
    )


def _momentum_columns(robot, samples):
    momentum, drift = (np.empty((len(samples), robot.dof, 10 * robot.dof)) for _ in range(2))
    for start in range(0, len(samples), _CHUNK):
        rows = slice(start, min(start + _CHUNK, len(samples)))
        q, qd = (np.zeros((robot.dof, _CHUNK)) for _ in range(2))
        count = rows.stop - start
        q[:, :count], qd[:, :count] = samples.q[rows].T, samples.qd[rows].T
        for out, block in zip((momentum, drift), _columns(robot, jnp.asarray(q), jnp.asarray(qd))):
            out[rows] = np.moveaxis(np.asarray(block), 2, 0)[:count]
    return momentum, drift


@partial(jax.jit, static_argnums=0)
def _columns(robot, q, qd):
    return momentum_regressor(robot, q, qd), momentum_drift_regressor(robot, q, qd)


def _onto(run: Samples, time, at) -> Samples:
    def put(values):
        return np.column_stack([np.interp(at, time, column) for column in values.T])

    nearest = np.clip(np.searchsorted(time, at), 0, len(time) - 1)
    return Samples(
        time=at,
        q=put(run.q),
        qd=put(run.qd),
        qdd=put(run.qdd),
        effort=put(run.effort),
        effort_kind=run.effort_kind,
        effort_unit=run.effort_unit,
        moving=run.moving[nearest],
    )


def _fine_shift(first, second, starts, grid, shift, step):
    """The shift [s] near a coarse one at which the positions agree best, to a twentieth of a step."""
    low, high = max(0.0, -shift) + 2 * step, min(starts[0][-1], starts[1][-1] - shift) - 2 * step
    at = np.arange(low, high, 5 * step)
    if len(at) < 4:
        return shift
    reference = np.column_stack([np.interp(at, starts[0], c) for c in first.q.T])

    def mismatch(s):
        return sum(np.sum((np.interp(at + s, starts[1], c) - r) ** 2) for c, r in zip(second.q.T, reference.T))

    candidates = shift + step * np.linspace(-1.5, 1.5, 61)
    return float(candidates[int(np.argmin([mismatch(s) for s in candidates]))])
