"""Conflict between prior and data: links whose data pull far from their nominal values are named, and their prior softened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from bayesid.posterior.log_cholesky import LogCholeskyTarget
from bayesid.posterior.target import Target

T = TypeVar("T", Target, LogCholeskyTarget)

# A link is in conflict when fewer than this share of the prior's own draws lie as far from the centre.
RARE = 0.005
SOFTEST_DOF = 5.5
_DRAWS = 4000


@dataclass(frozen=True)
class Conflict:
    """A link at odds with its nominal: `divergence` of its centre, the prior's `tail` probability of that, `dof` given."""

    link: str
    divergence: float
    tail: float
    dof: float

    def __str__(self):
        return (
            f"the data of link '{self.link}' contradict its nominal inertial parameters (fewer than {100 * self.tail:.2g} % of "
            f"the prior lie as far): its prior was softened to {self.dof:.3g} degrees of freedom; check its CAD values"
        )


def soften(target: T, seed: int = 0) -> tuple[T, tuple[Conflict, ...]]:
    """The target with softer priors of the links in conflict, and what was found.

    The entropic divergence of each link at the posterior's centre is compared with its distribution under the prior (a
    prior-data check in the sense of Evans, Moshonov 2006). A link in conflict gets the most degrees of freedom, from half
    the old ones down, at which it no longer is.
    """
    prior = target.prior
    dof = prior.dof.copy()
    found: dict[int, Conflict] = {}
    for _ in range(4):
        current = replace(target, prior=prior.with_dof(dof))
        divergence = current.prior.divergence(current.center())
        reference = current.prior.divergence(current.prior.sample(seed, _DRAWS))
        tail = (1.0 + np.sum(reference >= divergence, axis=0)) / (1.0 + _DRAWS)
        rare = (tail < RARE) & (dof > SOFTEST_DOF)
        if not rare.any():
            break
        for i in np.flatnonzero(rare):
            dof[i] = max(SOFTEST_DOF, 5.0 + 0.5 * (dof[i] - 5.0))
            first = found.get(i)
            found[i] = Conflict(
                target.model.robot.link_names[i],
                float(divergence[i]) if first is None else first.divergence,
                float(tail[i]) if first is None else first.tail,
                float(dof[i]),
            )
    return replace(target, prior=prior.with_dof(dof)), tuple(found[i] for i in sorted(found))
