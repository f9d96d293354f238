"""Options and steps that several commands share."""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from pathlib import Path

from bayesid.errors import DataError

LAWS = (
    "none, viscous, coulomb, coulomb-offset, asymmetric, sublinear, stribeck, load (grows with torque), harmonic-drive (load "
    "and sublinear), temperature (of the motor)"
)
# Standard deviation of a drive gain, as part of it, from which first-order propagation says nothing.
_VAGUE = 0.5
METHODS = ("ols", "wls", "gls", "robust", "lmi")
COVARIANCES = ("hac", "ar", "bootstrap", "white")


def at_least(least: int):
    """The type of an option's value: a whole number from `least` on."""

    def number(text: str) -> int:
        if not text.strip().isascii() or not text.strip().isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} on")
        return int(text)

    return number


whole = at_least(0)


def positive(text: str) -> float:
    """An option's value: a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def seconds(text: str) -> float:
    """An option's value: a time between -1 and 1 s."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -1 < value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds between -1 and 1")
    return value


def probability(text: str) -> float:
    """An option's value: a share from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a share from 0 to 1 (0.95, not 95)")
    return value


def is_path(text: str) -> bool:
    """Whether an option that is a path or numbers names something that exists."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def path_name(text: str) -> str:
    """An option's value: a path that is not empty."""
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError("the path is empty")
    return text


def add_common(parser, *, out: bool = True) -> None:
    """--out, --json, --seed, --quiet."""
    group = parser.add_argument_group("common options")
    if out:
        group.add_argument("--out", type=path_name, metavar="DIR", help="folder for the results, written whole or not at all")
    group.add_argument("--json", action="store_true", help="print the result document on standard output, nothing else")
    group.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of everything random (default 0)")
    group.add_argument("--quiet", action="store_true", help="neither progress nor warnings on standard error")


def add_log_options(parser, *, robot: bool = True) -> None:
    """Options that say how logs are read and turned into samples."""
    group = parser.add_argument_group("logs")
    if robot:
        group.add_argument("--robot", required=True, metavar="R", help="built-in name, or a URDF, MJCF or TOML file")
    group.add_argument("--schema", required=robot, metavar="S", help="preset (see 'bayesid datasets list') or TOML file")
    group.add_argument(
        "--drive-gains",
        metavar="K",
        help="N m/A per joint, comma-separated, with standard deviation if known (12+-0.5), or a drive-gains result; needed "
        "for currents",
    )
    group.add_argument("--rows", metavar="A:B", help="rows to use of every log, from 1, both included (also LOG@A:B)")
    group.add_argument(
        "--effort", choices=("auto", "torque", "current"), default="auto", help="channel to explain (default: the schema's)"
    )
    group.add_argument(
        "--cutoff", type=positive, metavar="HZ", help="cutoff of the low-pass filter (default: from the motion, 8 to 20 Hz)"
    )
    add_delay_option(group)
    group.add_argument("--drop-bad-rows", action="store_true", help="leave corrupt rows out and say which")


def add_delay_option(group) -> None:
    """The option that moves the motion to the instants of the effort."""
    group.add_argument(
        "--delay",
        type=seconds,
        default=0.0,
        metavar="S",
        help="time [s] by which effort lags behind motion (default 0)",
    )


def from_registry(name: str) -> str:
    """The path of `<data set>/<file>` when there is no such file here but a registered data set of that name.

    Its window comes from the data set's card unless the name has one.
    """
    from bayesid.logs import registry

    path, at, window = name.partition("@")
    data_set, slash, file = path.partition("/")
    if not slash or is_path(path) or data_set not in registry.names():
        return name
    found = str(registry.fetch(data_set, [file])[0])
    known = registry.card(data_set).windows().get(Path(file).name)
    if not at and known:
        return f"{found}@{known[0]}:{known[1]}"
    return found + at + window


def read_samples(paths, args, robot):
    """(logs, samples) of several files, checked against the robot; warns of rows that were dropped."""
    from bayesid.logs import check_robot, load_schema, read_log
    from bayesid.signals import samples_from_log

    schema = load_schema(args.schema)
    logs, runs = [], []
    for path in paths:
        name = from_registry(str(path))
        if args.rows and "@" not in name:
            name = f"{name}@{args.rows}"
        log = read_log(name, schema, drop_bad_rows=args.drop_bad_rows)
        log = check_robot(log, robot, drop_bad_rows=args.drop_bad_rows)
        for note in log.notes:
            warnings.warn(f"{log.where}: {note}", stacklevel=2)
        logs.append(log)
        runs.append(samples_from_log(log, effort=args.effort, cutoff=args.cutoff, delay=args.delay))
    return logs, runs


def read_gains(text, robot):
    """Drive gains (n,) and their covariance (n, n) or None, from comma-separated numbers or a drive-gains result.

    Numbers may state an uncertainty as `12+-0.5`, one standard deviation; those of different joints are taken as independent.
    """
    import numpy as np

    if text is None:
        return None, None
    if not text.strip():
        raise DataError("--drive-gains is empty: give one gain in N m/A per joint, comma-separated, or a drive-gains result")
    if is_path(text):
        from bayesid.results import Estimate

        estimate = Estimate.load(text)
        names = [f"{joint}.drive_gain" for joint in robot.joint_names]
        missing = [name for name in names if name not in estimate.names]
        if missing:
            raise DataError(f"{text}: holds no {missing[0]}; give a result of 'bayesid drive-gains' for robot '{robot.name}'")
        gains = estimate.select(names)
        _check_spread(text, robot, gains.mean, gains.std)
        return np.array(gains.mean), np.array(gains.covariance)
    try:
        pairs = [part.replace("±", "+-").partition("+-") for part in text.split(",")]
        values = np.array([float(value) for value, _, _ in pairs])
        spread = np.array([float(std) if sign else 0.0 for _, sign, std in pairs])
    except ValueError:
        raise DataError(
            f"--drive-gains {text[:60]}: neither a file nor comma-separated numbers; give one gain in N m/A per joint, with "
            "its standard deviation if known, such as 12+-0.5"
        ) from None
    if not (np.isfinite(spread) & (spread >= 0)).all():
        raise DataError(f"--drive-gains {text}: the standard deviation after +- must be a number from 0 on")
    if len(values) != robot.dof:
        raise DataError(
            f"--drive-gains has {len(values)} value{'s' if len(values) != 1 else ''}, robot '{robot.name}' has {robot.dof} "
            f"joint{'s' if robot.dof != 1 else ''}"
        )
    _check_spread(f"--drive-gains {text}", robot, values, spread)
    return values, np.diag(spread**2) if spread.any() else None


def _check_spread(where, robot, gains, spread):
    """Refuse gains so vague that their error does not act in proportion to it any more."""
    for joint, gain, std in zip(robot.joint_names, gains, spread):
        if std > _VAGUE * gain > 0:
            raise DataError(
                f"{where}: the drive gain of joint {joint}, {gain:.4g} +- {std:.2g} N m/A, is too uncertain to turn currents "
                "into torques: determine it first (bayesid drive-gains)"
            )


def gains_part(text, gains, covariance) -> dict | None:
    """The part of a result document that says which drive gains were used, how sure they are, and whose word that is."""
    import numpy as np

    if gains is None:
        return None
    from_result = is_path(text)
    how = "result" if from_result else ("given exactly" if covariance is None else "given with standard deviations")
    out = {"source": how, "gains": np.asarray(gains).tolist()}
    if from_result:
        out["path"] = text
    return out | ({} if covariance is None else {"std": np.sqrt(np.diag(covariance)).tolist()})


def check_gains_used(gains, runs) -> None:
    """Refuse drive gains that no run needs: the user means currents, the schema says torques."""
    if gains is not None and not any(run.effort_kind == "current" for run in runs):
        raise DataError(
            "--drive-gains would not be used: the logs' effort is a torque; choose the currents with --effort current, or "
            "leave the gains out"
        )


class Progress:
    """Names the stage at hand on standard error, once the job has lasted a second; keeps the time of each stage."""

    def __init__(self, quiet: bool):
        self._quiet = quiet
        self._start = self._last = time.monotonic()
        self.seconds: dict[str, float] = {}
        self._name = None

    def stage(self, name: str, key: str) -> None:
        """Close the stage before and begin another; `key` is its name in `timing_s`."""
        self._close()
        self._name, self._key, self._last = name, key, time.monotonic()
        if not self._quiet and self._last - self._start > 1.0:
            print(f"bayesid: {name} ({self._last - self._start:.0f} s)", file=sys.stderr, flush=True)

    def done(self) -> dict:
        """Seconds per stage and in total."""
        self._close()
        self._name = None
        return {**self.seconds, "total": time.monotonic() - self._start}

    def _close(self):
        if self._name is not None:
            self.seconds[self._key] = self.seconds.get(self._key, 0.0) + time.monotonic() - self._last


def show_warnings(quiet: bool) -> None:
    """Print the package's warnings as one line each, and only once."""

    def line(message, category, filename, lineno, file=None, text=None):
        if not quiet:
            print(f"bayesid: warning: {message}", file=sys.stderr)

    warnings.showwarning = line


def data_part(logs, runs) -> list[dict]:
    """The `data` part of a result document."""
    return [
        {
            "path": log.path,
            "sha256": log.sha256,
            "rows": list(log.rows),
            "samples": len(run),
            "duration_s": run.duration,
            "steps": list(run.steps),
            "notes": list(log.notes),
        }
        for log, run in zip(logs, runs, strict=True)
    ]


def table(head, rows) -> str:
    """Plain text table; numbers are formatted by the caller."""
    cells = [tuple(map(str, head)), *[tuple(map(str, row)) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = [
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))) for row in cells
    ]
    return "\n".join(lines)
