"""Coordinates of inertial parameters in JAX, with exact maps between them, and physical consistency."""

from bayesid.inertia.consistency import is_consistent, min_eigenvalue, nearest_consistent
from bayesid.inertia.coordinates import (
    from_com,
    from_log_cholesky,
    from_pseudo_inertia,
    inertia_tensor,
    log_cholesky,
    pseudo_inertia,
    to_com,
    transform,
)

__all__ = [
    "from_com",
    "from_log_cholesky",
    "from_pseudo_inertia",
    "inertia_tensor",
    "is_consistent",
    "log_cholesky",
    "min_eigenvalue",
    "nearest_consistent",
    "pseudo_inertia",
    "to_com",
    "transform",
]
