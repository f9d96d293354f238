"""A payload in the words of robot controllers."""

from __future__ import annotations

import json

from bayesid.errors import ResultError
from bayesid.payload.parameters import about_com
from bayesid.results import Estimate


def urscript(estimate: Estimate) -> str:
    """URScript: mass and centre of mass for `set_payload`, with inertia for `set_target_payload` (PolyScript 5.10 and later).

    Lengths in m along the tool flange's axes; inertia about the centre of mass in kg m^2, order Ixx, Iyy, Izz, Ixy, Ixz, Iyz.
    """
    mass, com, (xx, xy, xz, yy, yz, zz) = _parts(estimate)
    point = ", ".join(f"{x:.6f}" for x in com)
    inertia = ", ".join(f"{x:.6f}" for x in (xx, yy, zz, xy, xz, yz))
    return (
        "# older than PolyScript 5.10: mass and centre of mass\n"
        f"#   set_payload({mass:.5f}, [{point}])\n"
        f"set_target_payload({mass:.5f}, [{point}], [{inertia}])\n"
    )


def franka_json(estimate: Estimate) -> str:
    """JSON for Franka's `setLoad`: mass [kg], `F_x_Cload` [m], `load_inertia` [kg m^2] about the centre of mass, by columns."""
    mass, com, (xx, xy, xz, yy, yz, zz) = _parts(estimate)
    content = {"mass": mass, "F_x_Cload": list(com), "load_inertia": [xx, xy, xz, xy, yy, yz, xz, yz, zz]}
    return json.dumps(content, indent=2) + "\n"


def _parts(estimate):
    values = about_com(estimate).mean.tolist()
    if values[0] <= 0:
        raise ResultError(f"a payload of {values[0]:.4g} kg cannot be given to a controller")
    return values[0], tuple(values[1:4]), tuple(values[4:])
