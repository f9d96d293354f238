"""After the run: a recorded run is found in its log and compared with its design."""

import numpy as np
import pytest

from bayesid.errors import DesignError
from bayesid.excitation import Excitation, FourierQuintic, Limits, check_execution, find_timing
from bayesid.excitation.excitation import fingerprint
from bayesid.robots import load_robot
from bayesid.signals import Samples


def recorded(excitation, start=1.7, rate=100.0, wrong=None):
    """Samples of a log in which the motion begins at `start` [s] and the robot rests before and after."""
    time = np.arange(0.0, start + excitation.period + 2.0, 1.0 / rate)
    at = np.clip(time - start, 0.0, excitation.period)
    q, qd, qdd, _ = excitation.motion(at)
    inside = ((time >= start) & (time <= start + excitation.period))[:, None]
    qd, qdd = qd * inside, qdd * inside
    if wrong is not None:
        q, qd, qdd = wrong(q, qd, qdd)
    return Samples(time, q, qd, qdd, np.zeros_like(q), "torque")


def test_a_faithful_run_is_found_and_loses_nothing(excitation):
    samples = recorded(excitation)
    start, speed = find_timing(excitation, samples.time, samples.q)
    assert start == pytest.approx(1.7, abs=1e-3)
    assert speed == pytest.approx(1.0, abs=1e-3)
    found = check_execution(excitation, samples)
    assert found.as_designed
    assert found.covered == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(found.std_ratio, 1.0, atol=0.01)


def test_a_run_at_half_amplitude_is_told_and_loses_precision(excitation):
    def halved(q, qd, qdd):
        return excitation.start + 0.5 * (q - excitation.start), 0.5 * qd, 0.5 * qdd

    found = check_execution(excitation, recorded(excitation, wrong=halved))
    assert not found.as_designed
    assert (found.relative > 0.05).all()
    assert np.median(found.std_ratio) > 1.3
    report = found.to_dict()
    assert report["as_designed"] is False
    assert set(report["std_ratio"]) == set(excitation.design["predicted_std"])


def test_a_motion_played_too_slowly_is_told_by_its_speed(excitation):
    samples = recorded(excitation)
    slow = samples.replace(time=samples.time / 0.96, qd=0.96 * samples.qd, qdd=0.96**2 * samples.qdd)
    found = check_execution(excitation, slow)
    assert found.speed == pytest.approx(0.96, abs=1e-3)
    assert found.relative.max() < 0.01
    assert not found.as_designed


def test_half_a_log_is_not_a_whole_run(excitation):
    samples = recorded(excitation)
    found = check_execution(excitation, samples.select(slice(0, 620)))
    assert 0.5 < found.covered < 0.8
    assert not found.as_designed
    start, speed = find_timing(excitation, samples.time[:400], samples.q[:400])
    assert start == pytest.approx(1.7, abs=1e-3)
    assert speed == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(DesignError, match=r"% of the motion|half"):
        check_execution(excitation, samples.select(slice(0, 400)))


def test_a_log_of_another_robot_is_refused(excitation):
    other = Samples(np.arange(9.0), *(np.zeros((9, 3)),) * 4, "torque")
    with pytest.raises(DesignError, match="log has 3 joints, the trajectory 2"):
        check_execution(excitation, other)


def test_a_published_motion_is_found_in_its_recording_whose_clock_wandered(ur10e_data):
    """The run lags and leads the design by up to a tenth of a second, so it is not as designed, but as informative."""
    from scipy.io import loadmat

    from bayesid.logs import load_schema, read_log
    from bayesid.signals import samples_from_log

    content = loadmat(ur10e_data / "trajectory_optmzn" / "optimal_trjctrs" / "ptrnSrch_N12T30QR.mat", squeeze_me=True)
    par = content["traj_par"]
    robot = load_robot("ur10e")
    start = par["q0"].item()
    design = Excitation(
        "ur10e",
        "ur10e",
        fingerprint(robot),
        robot.joint_names,
        FourierQuintic(float(par["T"].item()), int(par["N"].item())),
        np.concatenate([content["a"].T, content["b"].T]),
        start,
        start,
        Limits.of(robot),
    )
    log = ur10e_data / "dataset_ur10e" / "identification_data" / "ur-20_02_10-30sec_12harm.csv"
    samples = samples_from_log(read_log(log, load_schema("ur10e-innopolis")), trim=False)
    found = check_execution(design, samples)
    print("speed", found.speed, "RMS", found.position_rms, "median std ratio", np.median(found.std_ratio))
    assert found.speed == pytest.approx(0.99, abs=0.005)
    assert not found.as_designed
    assert 0.005 < found.relative.max() < 0.04
    assert np.median(found.std_ratio) == pytest.approx(1.0, abs=0.05)
