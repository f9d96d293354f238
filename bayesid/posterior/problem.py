"""What a sampler is given: a density over whitened coordinates, and the way from them to parameters.

Samplers know nothing else of a posterior: another kind of prior, likelihood or coordinates is another `Problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np


class Layout(Protocol):
    """The sizes that a compiled density depends on, hashable: one program serves all problems of equal layout."""

    def potential(self, arrays: Mapping) -> Callable:
        """Negative logarithm of the density, a JAX function of whitened coordinates (D,); `arrays` may be traced."""
        ...


class Problem(Protocol):
    """A density over D whitened coordinates: about zero, with a covariance near the identity, positive everywhere.

    `arrays` are all the data that the layout's potential reads, equal in shape for equal layouts. `names` are those of the
    P parameters.
    """

    layout: Layout
    arrays: Mapping[str, np.ndarray]
    size: int
    names: tuple[str, ...]

    def parameters(self, whitened) -> np.ndarray:
        """(..., P) parameters of whitened coordinates (..., D)."""
        ...

    def accept(self, whitened, rng: np.random.Generator) -> np.ndarray:
        """(...,) the rejection step that turns draws of the potential's density into draws of the posterior."""
        ...

    def exists(self, whitened) -> np.ndarray:
        """(...,) whether the posterior's own density is positive there."""
        ...


class Density(Protocol):
    """A posterior that can be sampled: `Target`, for one. `target_accept` is the mean acceptance that suits it."""

    target_accept: float

    def problem(self) -> Problem:
        """Raises SolverError when the centre of the coordinates cannot be found."""
        ...
