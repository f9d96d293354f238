"""Drive gains as other estimators use them: with their covariance, read from text or a result, propagated to first order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bayesid.errors import DataError
from bayesid.results import Estimate, read_result


@dataclass(frozen=True, eq=False)
class Gains:
    """Drive gains `mean` (n,) [N m/A, joint side] with `covariance` (n, n) and degrees of freedom.

    As prior knowledge, a variance of 0 holds a gain at its mean and an infinite one says that nothing is known of it.
    """

    mean: np.ndarray
    covariance: np.ndarray
    dof: float = math.inf

    def __post_init__(self):
        mean, covariance = np.asarray(self.mean, dtype=float), np.asarray(self.covariance, dtype=float)
        if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
            raise DataError(f"gains (n,) need a covariance (n, n), got {mean.shape} and {covariance.shape}")
        known = np.isfinite(np.diag(covariance))
        if not (np.isfinite(mean[known]).all() and (mean[known] > 0).all()):
            raise DataError(f"drive gains must be positive numbers [N m/A], got {', '.join(f'{k:g}' for k in mean)}")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", covariance)

    @property
    def known(self) -> np.ndarray:
        """(n,) whether anything is known of a gain."""
        return np.isfinite(np.diag(self.covariance))

    @classmethod
    def of(cls, estimate: Estimate) -> Gains:
        """The gains within an estimate, in its order. Raises DataError when it holds none."""
        at = [i for i, kind in enumerate(estimate.kinds) if kind == "gain"]
        if not at:
            raise DataError(f"an estimate by '{estimate.method}' holds no drive gains: use a result of 'bayesid drive-gains'")
        return cls(estimate.mean[at], estimate.covariance[np.ix_(at, at)], estimate.dof)


def read_gains(text, robot) -> Gains:
    """Gains from comma-separated numbers (exact), or from a drive-gains result: its folder or its result.json.

    Raises DataError when their number is not the robot's, ResultError when the file is no result.
    """
    text = str(text)
    parts = [part.strip() for part in text.split(",")]
    try:
        mean = np.array([float(part) for part in parts])
    except ValueError:
        if not Path(text).exists():
            raise DataError(
                f"drive gains '{text}': neither comma-separated numbers (N m/A) nor a drive-gains result folder"
            ) from None
        mean = None
    gains = Gains(mean, np.zeros((len(mean), len(mean)))) if mean is not None else _from_result(Path(text))
    if len(gains.mean) != robot.dof:
        raise DataError(f"{len(gains.mean)} drive gains for the {robot.dof} joints of '{robot.name}': give one per joint")
    return gains


def _from_result(path: Path) -> Gains:
    document = read_result(path)
    rows = [row for row in document.get("parameters", []) if row.get("kind") == "gain"]
    if not rows:
        raise DataError(f"{path}: this result of 'bayesid {document['command']}' holds no drive gains")
    stored = document.get("gains", {})
    mean = np.array([row["estimate"] for row in rows])
    covariance = np.asarray(stored.get("covariance", np.diag([row["std"] ** 2 for row in rows])), dtype=float)
    dof = stored.get("dof")
    return Gains(mean, covariance, math.inf if dof is None else float(dof))
