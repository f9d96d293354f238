"""Physically consistent fits, checked with NumPy alone: eigenvalues of pseudo-inertias written out from the inertias."""

import numpy as np
import pytest

from bayesid.errors import DataError, SolverError
from bayesid.models import Model
from bayesid.regression import HAC, Constraints, Observations, PhysicalProgram, physical, validate, wls
from bayesid.regression.identify import identify
from bayesid.robots import load_robot

_GAINS = np.array([10.0, 10.6956, 8.4566, 9.0029, 9.48, 10.1232])


def _pseudo_inertia(inertial):
    """[[tr(I)/2 1 - I, mc], [mc^T, m]] (Wensing, Kim, Slotine 2017, equation 9)."""
    mass, first = inertial[0], inertial[1:4]
    xx, xy, xz, yy, yz, zz = inertial[4:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    out = np.zeros((4, 4))
    out[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    out[:3, 3] = out[3, :3] = first
    out[3, 3] = mass
    return out


def _smallest(model, parameters):
    inertials = parameters[: 10 * model.robot.dof].reshape(-1, 10)
    return np.array([np.linalg.eigvalsh(_pseudo_inertia(row))[0] for row in inertials])


def _signs_hold(model, parameters):
    named = dict(zip(model.names, parameters))
    return all(value >= -1e-9 for name, value in named.items() if name.split(".")[1] in ("rotor_inertia", "viscous", "coulomb"))


@pytest.fixture(scope="module")
def arm_fit(arm):
    fit = wls(Observations(arm.model, (arm.run(std=(4.0, 2.0)),)))
    return fit, HAC().of(fit)


@pytest.fixture(scope="module")
def arm_physical(arm_fit):
    fit, found = arm_fit
    return physical(fit, found.covariance, found.dof, draws=30)


def test_estimate_and_every_draw_are_consistent(arm, arm_physical):
    for parameters in (arm_physical.parameters, *arm_physical.draws):
        assert _smallest(arm.model, parameters).min() > 0
        assert _signs_hold(arm.model, parameters)
    assert arm_physical.draws.shape == (30, arm.model.size)


def test_the_minimum_meets_the_conditions_of_optimality(arm, arm_fit):
    """No consistent point between the found one and random consistent ones costs less."""
    fit, _ = arm_fit
    model = arm.model
    program = PhysicalProgram(model, fit.factor, Constraints())
    found = program.solve(fit.beta)

    def cost(pi):
        data = fit.factor @ (model.base.project(pi) - fit.beta)
        return data @ data + np.sum(((pi - program.center) / program.spread) ** 2)

    rng = np.random.default_rng(0)
    others = 0
    while others < 20:
        other = found + rng.normal(size=model.size) * program.spread * 0.05
        other[20:] = np.maximum(other[20:], 0.0) * model.nonnegative[20:] + other[20:] * ~model.nonnegative[20:]
        if _smallest(model, other).min() > 1e-6:
            others += 1
            assert all(cost(found + t * (other - found)) >= cost(found) - 1e-6 * cost(found) for t in (1e-4, 1e-2, 0.3, 1.0))


def test_a_fit_that_is_consistent_already_is_only_moved_by_the_weak_prior(arm):
    fit = wls(Observations(arm.model, (arm.run(std=(0.01, 0.01)),)))
    program = PhysicalProgram(arm.model, fit.factor, Constraints())
    found = program.solve(arm.beta)
    np.testing.assert_allclose(arm.model.base.project(found), arm.beta, rtol=5e-3, atol=5e-3)


def test_links_of_a_few_grams_are_not_held_off_their_own_inertia(arm):
    scale = np.array([1e-3] + [1e-4] * 3 + [1e-5] * 6)
    robot = arm.model.robot
    tiny = Model(robot.with_inertials(robot.inertials * scale, robot.rotor_inertias * 1e-5))
    truth = tiny.nominal.copy()
    truth[-6:] = (2e-5, 1.5e-5, 0.2e-5, 1e-5, 0.8e-5, -1e-6)
    run = arm.run(still=False)
    rng = np.random.default_rng(3)
    torque = tiny.torque(truth, run.q, run.qd, run.qdd)
    noisy = torque + 1e-4 * np.abs(torque).max(axis=0) * rng.normal(size=torque.shape)
    fit = wls(Observations(tiny, (run.replace(effort=noisy),)))
    found = HAC().of(fit)
    program = physical(fit, found.covariance, found.dof, draws=2)
    assert np.all(_smallest(tiny, program.parameters) > 0)
    moved = tiny.base.project(program.parameters) - fit.beta
    assert np.all(np.abs(moved) < 2.0 * np.sqrt(np.diag(found.covariance)))


def test_mass_bounds_and_total_mass_hold(arm, arm_fit):
    fit, _ = arm_fit
    first, second = arm.model.robot.link_names
    nominal = arm.model.nominal[[0, 10]]
    bounds = ((second, 0.2 * nominal[1], 0.4 * nominal[1]),)
    total = (0.5 * nominal.sum(), 0.6 * nominal.sum())
    found = PhysicalProgram(arm.model, fit.factor, Constraints(bounds, total)).solve(fit.beta)
    assert 0.2 * nominal[1] - 1e-6 <= found[10] <= 0.4 * nominal[1] + 1e-6
    assert total[0] - 1e-6 <= found[0] + found[10] <= total[1] + 1e-6
    assert _smallest(arm.model, found).min() > 0
    assert first in arm.model.names[0]


def test_the_pull_leads_to_the_nominal_model_as_its_weight_grows(arm, arm_fit):
    """The entropic divergence between pseudo-inertias (Lee, Wensing, Park 2020) falls with its weight."""
    fit, _ = arm_fit
    nominal = [_pseudo_inertia(row) for row in arm.model.nominal[:20].reshape(2, 10)]
    distances = []
    for weight in (0.0, 1.0, 1e4, 1e8):
        found = PhysicalProgram(arm.model, fit.factor, Constraints(pull=weight)).solve(fit.beta)
        distance = 0.0
        for row, target in zip(found[:20].reshape(2, 10), nominal):
            ratio = np.linalg.solve(target, _pseudo_inertia(row))
            distance += np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4
        distances.append(distance)
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-4 * max(distances[0], 1.0)


@pytest.mark.parametrize(
    ("constraints", "error", "words"),
    [
        (Constraints((("elbow", 0.0, 1.0),)), DataError, "name link 'elbow'"),
        (Constraints(total_mass=(5.0, 1.0)), DataError, "0 <= least <= greatest"),
        (Constraints(total_mass=(-5.0, 1.0)), DataError, "0 <= least <= greatest"),
    ],
)
def test_impossible_constraints_are_refused(arm, arm_fit, constraints, error, words):
    with pytest.raises(error, match=words):
        PhysicalProgram(arm.model, arm_fit[0].factor, constraints)


def test_contradicting_bounds_have_no_solution(arm, arm_fit):
    fit, _ = arm_fit
    contradiction = Constraints(tuple((link, 5.0, 6.0) for link in arm.model.robot.link_names), (1.0, 2.0))
    with pytest.raises(SolverError, match="widen them"):
        PhysicalProgram(arm.model, fit.factor, contradiction).solve(fit.beta)


@pytest.fixture(scope="module")
def real(ur10e, ur10e_run):
    """The UR10e identified from one recording and judged on another motion of another day."""
    training, held_out = (
        ur10e_run("ur-20_02_10-30sec_12harm.csv@635:3510"),
        ur10e_run("validation_data/ur-20_01_17-ptp_10_points.csv@700:4200"),
    )
    return identify(ur10e, training, gains=_GAINS, validation=[held_out], draws=60), held_out


def test_ur10e_is_consistent_and_predicts_as_well_as_without_constraints(real):
    found, held_out = real
    model, parameters = found.model, found.estimate.mean
    assert _smallest(model, parameters).min() > 0
    assert _signs_hold(model, parameters)
    np.testing.assert_allclose(found.min_eigenvalue, _smallest(model, parameters), rtol=1e-3, atol=1e-9)
    free = validate(found.unconstrained, held_out).rms
    assert np.all(found.validation[0].rms < 1.03 * free)


def test_ur10e_constraints_listed_as_active_are_active_and_no_others(real):
    found, _ = real
    names, values = found.model.names, found.estimate.mean
    for link, low in zip(found.model.robot.link_names, _smallest(found.model, values)):
        assert (f"{link}: pseudo-inertia" in found.active) == (low < 1e-5)
    for name, value in zip(names, values):
        if name.split(".")[1] in ("rotor_inertia", "viscous", "coulomb"):
            assert (f"{name} >= 0" in found.active) == (value < 1e-5)
    assert any("wrist" in text for text in found.active)


def test_ur10e_held_out_torque_is_predicted_better_than_published(real):
    """The limits are those of plain least squares with sign(0) friction; joints 4 to 6 must be clearly below."""
    rms = real[0].validation[0].rms
    assert np.all(rms <= [2.35, 3.70, 1.78, 0.55, 0.57, 1.41])
    assert np.all(rms[3:] <= 0.8 * np.array([0.55, 0.57, 1.41]))


def test_ur10e_band_holds_the_held_out_torque(real):
    coverage = real[0].validation[0].coverage95
    assert np.all(coverage > 0.9)


def test_base_and_standard_estimates_tell_the_same(real):
    found, _ = real
    np.testing.assert_allclose(found.base.mean, found.model.base.project(found.estimate.mean), atol=1e-12)
    assert found.base.names != found.estimate.names
    assert len(found.base) == 58
    assert len(found.estimate) == 84


def test_many_programs_solved_together_equal_each_solved_alone():
    model = Model(load_robot("two_link"))
    rng = np.random.default_rng(5)
    b = model.base.dimension
    factor = np.linalg.qr(rng.normal(size=(4 * b, b)), mode="r") * 30.0
    beta = model.base.project(model.nominal)
    betas = beta + 0.3 * rng.normal(size=(12, b)) * (0.1 + np.abs(beta))
    together = PhysicalProgram(model, factor, Constraints())
    together.solve(beta)
    centers = together.center + together.spread * rng.normal(size=(12, model.size))
    alone = PhysicalProgram(model, factor, Constraints())
    expected = np.array([alone.solve(*case) for case in zip(betas, centers)])
    np.testing.assert_allclose(together.solve_many(betas, centers) / together.spread, expected / together.spread, atol=2e-4)
