"""The main job on a known arm: what it returns, predicts and refuses."""

import dataclasses

import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.regression import (
    COVARIANCES,
    HAC,
    METHODS,
    Whitened,
    gain_sensitivity,
    identify,
    load_response,
    ols,
    validate,
    wls,
)
from bayesid.regression.observations import Observations
from bayesid.regression.stuck import BREAKAWAY
from bayesid.results import Estimate
from bayesid.signals import SlipState, slip_states


@pytest.fixture(scope="module")
def found(arm):
    return identify(arm.model, [arm.run(1), arm.run(2)], validation=[arm.run(3)], draws=40)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:the white-noise")
def test_every_method_takes_every_covariance(arm, method):
    for covariance in COVARIANCES.values():
        estimate = identify(arm.model, arm.run(seconds=20.0), method=method, covariance=covariance()).estimate
        distance = np.abs(estimate.mean - arm.beta) / estimate.std
        assert np.linalg.eigvalsh(estimate.covariance / np.outer(estimate.std, estimate.std)).min() > -1e-9
        assert np.median(distance) < 4.0, (method, covariance)
        assert estimate.method == method


def test_noise_put_in_is_the_noise_found(found):
    np.testing.assert_allclose(found.training[0].rms, [1.0, 0.3], rtol=0.3)


def test_condition_number_is_that_of_all_rows(arm, found):
    rows = [np.sqrt(w)[:, None] * x for run in (arm.run(1), arm.run(2)) for x, _, w in arm.dense(run)]
    assert found.condition_number == pytest.approx(np.linalg.cond(np.vstack(rows)), rel=1e-6)


def test_prediction_is_the_model_torque_and_its_band_holds_new_samples(arm, found):
    run = arm.run(4)
    prediction = found.estimate.predict(run, 0.9)
    known = slip_states(run) != SlipState.UNKNOWN
    torque = arm.model.torque(found.estimate.mean, run.q, run.qd, run.qdd)
    np.testing.assert_allclose(prediction.mean[known], torque[known], rtol=1e-9, atol=1e-9)
    inside = (prediction.lower <= run.effort_measured) & (run.effort_measured <= prediction.upper)
    np.testing.assert_allclose(inside.mean(axis=0), 0.9, atol=0.05)
    wide = found.estimate.predict(run, 0.99)
    assert np.all(wide.upper >= prediction.upper)


def test_base_and_standard_estimates_predict_the_same(arm, found):
    run = arm.run(4)
    one, other = found.estimate.predict(run), found.base.predict(run)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-4)


def test_band_widens_at_standstill_by_the_undetermined_dry_friction(arm, found):
    """Dry friction of a joint that never moved may be anything between the breakaway torques: variance of that over 3."""
    run = arm.run(4, still=False)
    still = dataclasses.replace(run, moving=np.zeros_like(run.moving))
    one, other = (found.estimate.predict(samples).std for samples in (run, still))
    coulomb = np.array([found.estimate[f"{joint}.coulomb"][0] for joint in arm.model.robot.joint_names])
    # Bands add 8192 values of friction and noise in random order: chance correlations of 1 %, and Coulomb torque's own error.
    np.testing.assert_allclose(other**2 - one**2, np.broadcast_to((BREAKAWAY * coulomb) ** 2 / 3, one.shape), rtol=3e-2)


def test_validation_measures_what_it_says(arm, found):
    run = arm.run(3)
    checked = validate(found.base, run)
    prediction = found.base.predict(run, 0.95)
    residual = run.effort_measured - prediction.mean
    np.testing.assert_allclose(checked.rms, np.sqrt((residual**2).mean(axis=0)))
    np.testing.assert_allclose(checked.nrmse, checked.rms / run.effort_measured.std(axis=0))
    np.testing.assert_allclose(checked.r2, 1 - (residual**2).mean(axis=0) / run.effort_measured.var(axis=0))
    inside = (prediction.lower <= run.effort_measured) & (run.effort_measured <= prediction.upper)
    np.testing.assert_allclose(checked.coverage95, inside.mean(axis=0), atol=1e-9)
    for j in range(2):
        assert checked.coverage95_still[j] == pytest.approx(inside[~run.moving[:, j], j].mean())
        assert checked.coverage95_moving[j] == pytest.approx(inside[run.moving[:, j], j].mean())
    np.testing.assert_array_equal(checked.rms, found.validation[0].rms)


def test_a_run_that_never_stands_has_no_coverage_at_standstill(arm, found):
    checked = validate(found.base, arm.run(3, still=False))
    assert np.isnan(checked.coverage95_still).all()
    assert set(checked.to_dict()) >= {"rms", "nrmse", "r2", "coverage95"}


def test_a_saved_estimate_predicts_what_it_did(arm, found, tmp_path):
    found.estimate.save(tmp_path / "e.json")
    again, run = Estimate.load(tmp_path / "e.json"), arm.run(4)
    np.testing.assert_array_equal(again.predict(run).upper, found.estimate.predict(run).upper)
    np.testing.assert_array_equal(again.draws, found.estimate.draws)


def test_gain_uncertainty_widens_the_result_by_the_delta_method(arm):
    gains, share = np.array([10.0, 8.0]), 0.05
    run = arm.run(1)
    currents = dataclasses.replace(run, effort=run.effort / gains, effort_measured=None, effort_kind="current", effort_unit="A")
    without = identify(arm.model, currents, gains=gains, method="ols")
    spread = np.diag((share * gains) ** 2)
    widened = identify(arm.model, currents, gains=gains, gain_covariance=spread, method="ols")
    slope = np.empty((len(arm.beta), 2))
    for j in range(2):
        moved = gains.copy()
        moved[j] *= 1.001
        slope[:, j] = (identify(arm.model, currents, gains=moved, method="ols").estimate.mean - without.estimate.mean) / (
            moved[j] - gains[j]
        )
    np.testing.assert_allclose(gain_sensitivity(without.fit), slope, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        widened.estimate.covariance - without.estimate.covariance, slope @ spread @ slope.T, rtol=1e-5, atol=1e-9
    )


def test_gain_sensitivity_needs_currents(arm):
    with pytest.raises(DataError, match="hold torques"):
        gain_sensitivity(wls(Observations(arm.model, (arm.run(),))))
    with pytest.raises(DataError, match="hold torques"):
        gain_sensitivity(wls(Observations(arm.model, (arm.run(),), np.array([10.0, 8.0]))))


def test_gain_sensitivity_refuses_torques_among_currents(arm):
    run, gains = arm.run(1), np.array([10.0, 8.0])
    currents = dataclasses.replace(run, effort=run.effort / gains, effort_measured=None, effort_kind="current", effort_unit="A")
    with pytest.raises(DataError, match="others currents"):
        gain_sensitivity(wls(Observations(arm.model, (arm.run(2), currents), gains)))


def test_unknown_methods_and_foreign_logs_are_refused(arm, found):
    with pytest.raises(DataError, match="unknown method 'magic'"):
        identify(arm.model, arm.run(), method="magic")
    run = arm.run()
    narrow = dataclasses.replace(run, **{name: getattr(run, name)[:, :1] for name in run._arrays()})
    with pytest.raises(DataError, match="1 joints"):
        validate(found.base, narrow)


def test_the_same_seed_gives_the_same_draws(arm, found):
    again = identify(arm.model, [arm.run(1), arm.run(2)], draws=40)
    np.testing.assert_array_equal(again.estimate.draws, found.estimate.draws)


def test_bands_hold_torques_measured_with_gains_of_which_only_the_spread_is_known(arm):
    found, run = identify(arm.model, arm.run(2), method="wls"), arm.run(6, still=False)
    rng = np.random.default_rng(1)
    plain, widened = [], []
    for _ in range(200):
        torque = run.effort_measured * (1.0 + 0.1 * rng.normal(size=2))
        off = run.replace(effort=torque, effort_measured=torque)
        plain.append(validate(found.base, off).coverage95)
        widened.append(validate(found.base, off, np.array([0.1, 0.1])).coverage95)
    assert np.all(np.abs(np.mean(widened, axis=0) - 0.95) < 0.035)
    assert np.mean(plain) < np.mean(widened) - 0.02


def loaded(arm, run, share, robot):
    """The run with a gear loss in proportion to the torque of the arm's own bodies, and the model of such a robot."""
    rigid = np.where(np.array(arm.model.kinds) == "friction", 0.0, arm.parameters)
    torque = np.abs(arm.model.torque(rigid, run.q, run.qd, run.qdd))
    effort = run.effort + share * torque * run.direction
    return run.replace(effort=effort, effort_measured=effort), Model(robot, "load")


def test_load_friction_is_found_whatever_the_reference_that_the_rounds_start_from(arm):
    share = np.array([0.08, 0.05])
    robot = arm.model.robot
    wrong = robot.with_inertials(1.7 * robot.inertials, np.full(2, 0.2))
    found = []
    for start in (robot, wrong):
        run, model = loaded(arm, arm.run(5, std=(0.1, 0.03), still=False), share, start)
        result = identify(model, run, method="wls")
        assert result.estimate.meta["load_reference"]["rounds"] <= 4
        assert result.model.reference is not None
        found.append(result.estimate.select([f"{joint}.load_friction" for joint in robot.joint_names]))
    np.testing.assert_allclose(found[0].mean, found[1].mean, atol=1e-4)
    low, high = found[0].interval(0.99).T
    assert np.all((low < share) & (share < high))
    assert np.all(found[0].std < 0.2 * share)
    response, held = load_response(result.fit), HAC().of(result.fit).covariance
    np.testing.assert_allclose(result.estimate.covariance, response @ held @ response.T, rtol=1e-9)


def at_reference(model, beta):
    """The model whose load is the torque of these base parameters."""
    base = model.base
    rigid = base.standard(beta, model.nominal[base.dependent])[: model.rigid]
    return dataclasses.replace(model, reference=tuple(rigid))


def test_errors_grow_as_those_of_the_fixed_point_do(arm):
    """Noise of 1e-6 N m added to an exact fit, and rounds until nothing changes, against the response to a load that stays."""
    run, model = loaded(arm, arm.run(5, std=(0.0, 0.0), still=False), 0.3, arm.model.robot)
    noise = 1e-6 * np.random.default_rng(0).normal(size=run.effort.shape).cumsum(axis=0)
    model = at_reference(model, model.base.project(model.nominal))
    moved = []
    for sign in (1.0, -1.0):
        observations = lambda m, s=sign: Observations(m, (run.replace(effort=run.effort + s * noise),))  # noqa: E731
        for _ in range(25):
            fit = ols(observations(model))
            model = at_reference(model, fit.beta)
        moved.append(fit.beta)
    stays = ols(Observations(model, (run.replace(effort=noise),))).beta
    numeric = 0.5 * (moved[0] - moved[1])
    np.testing.assert_allclose(load_response(fit) @ stays, numeric, rtol=2e-3, atol=1e-3 * np.abs(numeric).max())
    assert np.abs(stays - numeric).max() > 0.02 * np.abs(numeric).max()


@pytest.mark.parametrize("method", ["wls", "gls", "robust"])
def test_response_to_the_load_is_that_of_the_estimating_equations(arm, method):
    """Their derivative by differences between the columns of neighbouring references."""
    run, model = loaded(arm, arm.run(5, seconds=4.0), 0.3, arm.model.robot)
    start = wls(Observations(model, (run,))).beta
    fit = METHODS[method](Observations(at_reference(model, start), (run,)))

    def stacked(beta, of="columns"):
        source = Observations(at_reference(model, beta), (run,))
        rows = Whitened(source, fit.observations.coefficients) if method == "gls" else source
        return np.concatenate([getattr(chunk, of) for chunk in rows.chunks()], axis=-1)

    weight = stacked(start, "weight") * fit.weights[:, None]
    if method == "robust":
        weight = weight * np.concatenate(list(fit.observations.unclipped()), axis=1)
    weighted = stacked(start) * weight[:, None]
    slopes = np.empty((len(start),) * 2)
    for k, step in enumerate(np.diag(1e-5 * np.abs(start) + 1e-7)):
        change = (stacked(start + step) - stacked(start - step)) / (2.0 * step[k])
        slopes[:, k] = np.einsum("nbs,ncs,c->b", weighted, change, fit.beta)
    normal = fit.factor.T @ fit.factor
    scale = np.sqrt(np.diag(normal))
    expected = np.linalg.solve((normal + slopes) / np.outer(scale, scale), normal / np.outer(scale, scale))
    np.testing.assert_allclose(load_response(fit) * scale[:, None] / scale, expected, atol=1e-3)
    assert np.abs(expected - np.eye(len(start))).max() > 0.02


def test_a_reference_that_was_given_is_kept(arm):
    run, model = loaded(arm, arm.run(5, still=False), 0.05, arm.model.robot)
    held = dataclasses.replace(model, reference=tuple(1.1 * model.nominal[: model.rigid]))
    result = identify(held, run, method="wls")
    assert result.model is held
    assert "load_reference" not in result.estimate.meta


def test_temperature_dependence_is_found_and_needs_temperatures(arm):
    run = arm.run(6, std=(0.1, 0.03), still=False)
    ramp = 25.0 + 20.0 * (run.time / run.time[-1])[:, None] * [1.0, 0.5]
    slope = np.array([-0.05, 0.02])
    effort = run.effort + slope * (ramp - 25.0) * run.qd
    warm = run.replace(effort=effort, effort_measured=effort, temperature=ramp)
    model = Model(arm.model.robot, "temperature")
    found = identify(model, warm, method="wls").estimate
    part = found.select([f"{joint}.viscous_temperature" for joint in model.robot.joint_names])
    low, high = part.interval(0.99).T
    assert np.all((low < slope) & (slope < high))
    assert np.all(part.std < 0.02)
    with pytest.raises(DataError, match="no motor temperature was recorded"):
        identify(model, run, method="wls")
    ramp = ramp.copy()
    ramp[4, 1] = np.nan
    with pytest.raises(
        DataError, match=f"sample 5: the motor temperature of joint {model.robot.joint_names[1]} is not a number"
    ):
        identify(model, warm.replace(temperature=ramp), method="wls")
