"""Payload from joint torques: against inverse dynamics with accelerations, and against the weighed loads of a UR10e."""

import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.kinematics import random_motion
from bayesid.models import Model
from bayesid.payload import about_com, attach, detach, from_com, payload_from_difference, payload_from_torques
from bayesid.payload.parameters import payload_estimate
from bayesid.results import Estimate
from bayesid.robots import load_robot
from bayesid.signals import Samples
from bayesid.simulation.synthetic import autocorrelated

HELD = np.array([2.8, 0.03, 0.17, 0.05, 0.02, 0.001, -0.002, 0.015, 0.003, 0.018])
NOISE = np.array([1.5, 3.0, 1.4, 0.2, 0.2, 0.15])
GAINS = np.array([12.0, 12.0, 9.8, 10.8, 10.8, 10.8])


@pytest.fixture(scope="module")
def world():
    """Model, payload Estimate, and clean runs without and with it along two motions."""
    model = Model(load_robot("ur10e"))
    held = payload_estimate(np.asarray(from_com(HELD)), 1e-9 * np.eye(10), method="truth", covariance_method={"method": "none"})
    loaded = Model(attach(model.robot, held))
    friction = model.size - 18
    values = [m.nominal.copy() for m in (model, loaded)]
    for parameters in values:
        parameters[friction:] = np.tile([8.0, 5.0, 0.5], 6)
    motions = [random_motion(model.robot, 25.0, 100.0, harmonics=6, usage=0.5, seed=seed) for seed in (1, 2)]

    def run(which, motion):
        torque = (model, loaded)[which].torque(values[which], motion.q, motion.qd, motion.qdd)
        return Samples(time=motion.time, q=motion.q, qd=motion.qd, qdd=motion.qdd, effort=torque, effort_kind="torque")

    return model, held, run(0, motions[0]), run(1, motions[0]), run(1, motions[1]), values[0]


def noisy(run, seed):
    rng = np.random.default_rng(seed)
    return run.replace(effort=run.effort + autocorrelated(rng, run.effort.shape, NOISE, 0.95))


def test_payload_is_found_without_noise_and_without_acceleration(world):
    model, held, unloaded, _, loaded, _ = world
    blind = [run.replace(qdd=np.full_like(run.qdd, 7.0)) for run in (unloaded, loaded)]
    found = payload_from_torques(model, *blind)
    np.testing.assert_allclose(found.mean, held.mean, atol=3e-3)


def test_payload_about_another_frame_is_the_same_body(world):
    model, _, unloaded, _, loaded, _ = world
    link, flange = (payload_from_torques(model, unloaded, loaded, frame=frame) for frame in (None, "flange"))
    one, other = attach(model.robot, link), attach(model.robot, flange, "flange")
    np.testing.assert_allclose(one.inertials, other.inertials, atol=1e-6)


def test_attaching_and_detaching_leaves_the_robot(world):
    model, held, *_ = world
    back = detach(attach(model.robot, held, "flange"), held, "flange")
    np.testing.assert_allclose(back.inertials, model.robot.inertials, atol=1e-12)


def test_difference_of_two_runs_needs_no_model(world):
    model, held, unloaded, loaded, *_ = world
    other = Model(model.robot.with_inertials(1.3 * model.robot.inertials))
    found = payload_from_difference(other, unloaded, loaded)
    np.testing.assert_allclose(found.mean, held.mean, atol=2e-2)
    np.testing.assert_allclose(found.mean[:4], held.mean[:4], atol=5e-3)


def test_runs_of_different_motions_are_refused_for_the_difference(world):
    model, _, unloaded, _, loaded, _ = world
    with pytest.raises(DataError, match="not the same motion"):
        payload_from_difference(model, unloaded, loaded)


def test_intervals_hold_under_autocorrelated_noise(world):
    model, held, unloaded, _, loaded, _ = world
    errors = []
    for seed in range(4):
        found = payload_from_torques(model, noisy(unloaded, seed), noisy(loaded, 100 + seed))
        errors.append((found.mean - held.mean) / found.std)
    assert 0.5 < np.sqrt(np.mean(np.square(errors))) < 1.5


def test_a_result_stands_in_for_the_unloaded_run(world):
    from bayesid.regression import base_names

    model, held, _, _, loaded, values = world
    known = Estimate(
        base_names(model),
        model.base.units,
        model.base.kinds,
        model.base.project(values),
        1e-6 * np.eye(model.base.dimension),
        "truth",
    )
    found = payload_from_torques(model, known, noisy(loaded, 7))
    assert np.abs((found.mean - held.mean) / found.std).max() < 5
    vague = Estimate(
        known.names, known.units, known.kinds, known.mean, np.diag((0.05 * np.abs(known.mean) + 0.05) ** 2), "rough"
    )
    assert payload_from_torques(model, vague, noisy(loaded, 7)).std[0] > 1.5 * found.std[0]
    with pytest.raises(DataError, match="parameters of another model"):
        payload_from_torques(Model(model.robot, "viscous"), known, loaded)


def test_a_log_is_not_its_own_reference(world):
    model, _, unloaded, _, loaded, values = world
    marked = unloaded.replace(source={"path": "a.csv", "sha256": "a", "rows": (1, 2500)})
    for runs in ((marked, marked), ([marked, marked], loaded)):
        with pytest.raises(DataError, match="count twice"):
            payload_from_torques(model, *runs)
    fields = model.names, model.units, model.kinds, values, 1e-6 * np.eye(model.size), "truth"
    with pytest.raises(DataError, match="was identified from this log"):
        payload_from_torques(model, Estimate(*fields, meta={"trained_on": [marked.source]}), marked)
    with pytest.raises(DataError, match="give the unloaded logs instead"):
        payload_from_torques(model, Estimate(*fields, covariance_method={"drive_gains": "propagated"}), loaded)


def test_uncertain_gains_widen_the_interval_as_they_scale_the_mass(world):
    model, _, unloaded, _, loaded, _ = world
    runs = [noisy(run, 9).replace(effort_kind="current", effort_unit="A") for run in (unloaded, loaded)]
    runs = [run.replace(effort=run.effort / GAINS) for run in runs]
    exact = payload_from_torques(model, *runs, gains=GAINS)
    # All gains off by one common 4 %: the payload is off by 4 %.
    common = payload_from_torques(model, *runs, gains=GAINS, gain_covariance=np.outer(0.04 * GAINS, 0.04 * GAINS))
    extra = np.sqrt(common.covariance[0, 0] - exact.covariance[0, 0])
    assert extra == pytest.approx(0.04 * exact.mean[0], rel=1e-3)
    with pytest.raises(DataError, match="motor currents"):
        payload_from_torques(model, *runs)


def test_the_uncertainty_of_gains_does_not_widen_what_torques_tell(world):
    model, _, unloaded, _, loaded, _ = world
    runs = [noisy(run, 9) for run in (unloaded, loaded)]
    covariance = np.diag((0.04 * GAINS) ** 2)
    found = payload_from_torques(model, *runs, gains=GAINS, gain_covariance=covariance)
    np.testing.assert_allclose(found.covariance, payload_from_torques(model, *runs).covariance, rtol=1e-9)


def test_nothing_is_integrated_over_a_gap(world):
    model, held, unloaded, _, loaded, _ = world
    cut = [run.select(np.r_[0:705, 795 : len(run)]) for run in (unloaded, loaded)]
    np.testing.assert_allclose(payload_from_torques(model, *cut).mean, held.mean, atol=1e-4)


def test_a_still_robot_is_refused(world):
    model, _, unloaded, _, loaded, _ = world
    still = loaded.replace(
        q=np.tile(loaded.q[:1], (len(loaded), 1)), qd=np.zeros_like(loaded.qd), moving=np.ones_like(loaded.moving)
    )
    with pytest.raises(DataError, match="does not determine payload"):
        payload_from_torques(model, unloaded, still)


@pytest.fixture(scope="module")
def ur10e_pair(ur10e_data):
    from bayesid.logs import read_log
    from bayesid.signals import samples_from_log

    folder = ur10e_data / "dataset_ur10e" / "identification_data"
    names = ("ur-20_02_19_14harm50sec.csv@195:4966", "ur-20_02_19_14harm50secLoad.csv@308:5071")
    return [samples_from_log(read_log(str(folder / name), "ur10e-innopolis")) for name in names]


@pytest.mark.parametrize("estimator", [payload_from_torques, payload_from_difference])
def test_the_weighed_payload_of_a_real_ur10e(ur10e_pair, estimator):
    # Weighed: 2.805 kg. Gains: the controller's target moment over target current; joints 1 and 6 by size.
    gains = np.array([11.976, 11.976, 9.839, 10.762, 10.762, 10.762])
    found = about_com(estimator(Model(load_robot("ur10e")), *ur10e_pair, gains=gains))
    low, high = found.interval(0.95)[0]
    assert abs(found.mean[0] / 2.805 - 1) < 0.03
    assert low < 2.805 < high
    assert high - low < 0.15
