"""The trajectories that ship with the package: certified again, from their own files."""

from pathlib import Path

import numpy as np
import pytest

from bayesid.excitation import Excitation, Problem, TorqueObservation, certify
from bayesid.excitation.constraints import constraint_from_settings
from bayesid.excitation.objectives import objective_from_settings
from bayesid.models import Model

FOLDER = Path(__file__).resolve().parents[2] / "trajectories"


@pytest.mark.parametrize("name", ["ur10e", "ur16e", "panda", "two_link"])
def test_shipped_motion_holds_every_limit_of_its_file(name):
    excitation = Excitation.load(FOLDER / f"{name}.json")
    robot, design = excitation.robot, excitation.design
    constraints = tuple(constraint_from_settings(c, robot) for c in design["constraints"])
    kinds = {c.name for c in constraints}
    assert {"torque", "wall"} <= kinds
    assert "self-collision" in kinds or not robot.capsules
    observation = TorqueObservation(Model(robot, design["observation"]["friction"], design["observation"]["rotor"]))
    problem = Problem(
        observation,
        excitation.family,
        excitation.limits,
        objective_from_settings(design["objective"]),
        excitation.start,
        excitation.end,
        constraints=constraints,
        sampling=design["sampling_s"],
        noise=np.array(design["noise"]),
    )
    certificate = certify(problem, excitation.coefficients)
    assert certificate.feasible
    assert certificate.instants == excitation.certificate.instants
    for again, check in zip(certificate.checks, excitation.certificate.checks, strict=True):
        assert again.what == check.what
        assert again.margin == pytest.approx(check.margin, abs=1e-8)
    assert design["command"].startswith(f"bayesid excite --robot {name} ")
    assert tuple(design["predicted_std"]) == observation.names
