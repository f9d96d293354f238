"""The published UR10e motion: its condition number by Pinocchio, and a small design that beats it under the same limits."""

import numpy as np
import pytest

from bayesid.excitation import (
    ConditionNumber,
    DOptimal,
    FourierQuintic,
    Limits,
    Problem,
    TorqueObservation,
    certify,
    design,
    information,
)
from bayesid.models import Model
from bayesid.robots import load_robot, urdf_text

ROBOT = load_robot("ur10e")


@pytest.fixture(scope="module")
def published(ur10e_data):
    """Problem (40 columns, 0.2 s sampling, published limits and start pose) and published coefficients of N = 12, T = 30 s."""
    from scipy.io import loadmat

    content = loadmat(ur10e_data / "trajectory_optmzn" / "optimal_trjctrs" / "ptrnSrch_N12T30QR.mat", squeeze_me=True)
    par = {name: content["traj_par"][name].item() for name in content["traj_par"].dtype.names}
    limits = Limits.of(
        ROBOT, lower=par["q_min"], upper=par["q_max"], velocity=par["qd_max"], acceleration=par["q2d_max"], torque=np.inf
    )
    family = FourierQuintic(float(par["T"]), int(par["N"]))
    observation = TorqueObservation(Model(ROBOT, "none"))
    problem = Problem(observation, family, limits, ConditionNumber(), par["q0"], par["q0"], sampling=0.2)
    return problem, np.concatenate([content["a"].T, content["b"].T])


def test_condition_number_of_the_published_motion_agrees_with_pinocchio(published):
    pin = pytest.importorskip("pinocchio")
    problem, coefficients = published
    q, qd, qdd, _ = problem.motion(coefficients, problem.time)
    oracle = pin.buildModelFromXML(urdf_text(ROBOT))
    data = oracle.createData()
    order = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
    columns = np.concatenate([10 * link + np.array(order) for link in range(6)])
    rows = []
    for state in zip(q, qd, qdd):
        regressor = np.array(pin.computeJointTorqueRegressor(oracle, data, *state))[:, columns]
        rows.append(np.concatenate([regressor, np.diag(state[2])], axis=1))
    base = np.concatenate(rows)[:, problem.observation.model.base.independent]
    assert base.shape[1] == 40
    matrix = information(problem, coefficients)
    assert ConditionNumber().value(matrix) == pytest.approx(np.linalg.cond(base), rel=1e-6)
    assert DOptimal().value(matrix / 151) == pytest.approx(33.0, abs=0.1)
    print("published condition number on these columns:", np.linalg.cond(base))


def test_design_has_a_third_of_the_published_condition_number_within_all_limits(published):
    problem, coefficients = published
    reference = ConditionNumber().value(information(problem, coefficients))
    found = design(problem, seed=0, starts=1, steps=150, seconds=1e6)
    reached = ConditionNumber().value(information(problem, found.coefficients))
    print(f"condition number {reached:.1f} after 150 steps of one start, published {reference:.1f}")
    assert reached <= reference / 3
    assert found.certificate.feasible
    assert certify(problem, found.coefficients, np.linspace(0.0, 30.0, 30001)).feasible
