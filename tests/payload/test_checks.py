"""Records that cannot be used are refused in one line that says why."""

import dataclasses

import numpy as np
import pytest

from bayesid.errors import DataError, LogError, ResultError
from bayesid.payload import SensorMotion, SensorNoise, WrenchRecord, about_com, joint_estimate, momentum_estimate
from bayesid.payload.parameters import payload_estimate


def changed(record, **channels):
    values = {"force": record.force, "moment": record.moment, "angular_velocity": record.angular_velocity, **channels}
    return WrenchRecord(record.motion, **values)


def test_a_wrench_of_the_wrong_sign(noisy):
    record = noisy("low", 20)
    with pytest.raises(DataError, match=r"mass of -8\.12 kg: the wrench has the opposite sign"):
        joint_estimate(changed(record, force=-record.force, moment=-record.moment))


def test_a_wrench_in_another_frame(noisy):
    record = noisy("low", 21)
    turn = np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    with pytest.raises(DataError, match="90 deg away from opposing gravity"):
        joint_estimate(changed(record, force=record.force @ turn.T, moment=record.moment @ turn.T))


def test_a_wrench_in_a_slightly_turned_frame_is_flagged_by_its_residuals(noisy, levels):
    from bayesid.payload.record import rotations

    record = noisy("low", 22)
    turn = rotations(np.array([0.1, 0.0, 0.0]))
    found = joint_estimate(changed(record, force=record.force @ turn.T, moment=record.moment @ turn.T), levels["low"])
    assert found.meta["residual_scale"] > 1.5


def test_no_load(noisy, levels):
    record = noisy("low", 23)
    with pytest.raises(DataError, match="carries no load"):
        joint_estimate(changed(record, force=record.force - record.force.mean(0)), levels["low"])


def test_no_motion_names_what_cannot_be_known(noisy, levels):
    record = noisy("low", 24).select(slice(0, 2000))
    with pytest.raises(DataError, match=r"does not determine .*payload\.Ixx") as error:
        joint_estimate(record, levels["low"])
    assert "payload.mcz" in str(error.value)
    assert "payload.m," not in str(error.value)


def test_saturation(noisy):
    record = noisy("low", 25)
    with pytest.raises(DataError, match=r"moment x stays at its extreme value .* saturates"):
        joint_estimate(changed(record, moment=np.minimum(record.moment, np.quantile(record.moment, 0.9, axis=0))))


def test_a_coarse_but_unclipped_sensor_is_accepted(noisy, levels):
    record = noisy("moderate", 26)
    joint_estimate(changed(record, force=np.round(record.force, 1), moment=np.round(record.moment, 2)), levels["moderate"])


def test_gaps_in_time(noisy):
    record = noisy("low", 27)
    rows = np.r_[0:4000, 4100 : len(record)]
    with pytest.raises(DataError, match=r"time jumps from 3\.999 s to 4\.1 s after sample 4000"):
        joint_estimate(record.select(rows))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("time", np.zeros(50), "time does not increase from sample 1 to 2"),
        ("velocity", np.full((50, 3), np.nan), "velocity is not finite at sample 1"),
        ("rotation", 2 * np.tile(np.eye(3), (50, 1, 1)), "not orthonormal"),
    ],
)
def test_impossible_motions(name, value, words):
    good = {"time": np.arange(50) / 100, "rotation": np.tile(np.eye(3), (50, 1, 1)), "velocity": np.zeros((50, 3))}
    with pytest.raises(DataError, match=words):
        SensorMotion(**{**good, name: value})


def test_a_missing_sample_is_named(noisy):
    record = noisy("low", 28)
    force = record.force.copy()
    force[122] = np.nan
    with pytest.raises(DataError, match="force is not finite at sample 123"):
        changed(record, force=force)


def test_negative_mass_has_no_centre(truth):
    bad = payload_estimate(-truth, np.eye(10), method="none", covariance_method={"method": "none"})
    with pytest.raises(ResultError, match=r"estimated mass is -8\.12 kg"):
        about_com(bad)


def test_the_stepwise_estimator_says_which_motion_it_needs(noisy, levels):
    record = noisy("low", 29)
    unnamed = WrenchRecord(dataclasses.replace(record.motion, parts=()), record.force, record.moment, record.angular_velocity)
    with pytest.raises(DataError, match="needs a rest, at least one straight motion and three turns"):
        momentum_estimate(unnamed, levels["low"])


def test_noise_must_be_positive():
    with pytest.raises(DataError, match="positive force and moment"):
        SensorNoise(1e-3, 0.0, 1e-3)


def test_wrench_logs_name_row_and_column(tmp_path, robot):
    from bayesid.payload import read_wrench_log

    header = "time," + ",".join(f"q{i}" for i in range(1, 7)) + ",fx,fy,fz,mx,my,mz\n"
    path = tmp_path / "bad.csv"
    path.write_text(header + ("0," * 12 + "0\n") * 3 + "0," * 9 + "abc,0,0,0\n", encoding="utf-8")
    with pytest.raises(LogError, match=r"row 5, column 10 \('fz'\): not a number: 'abc'"):
        read_wrench_log(path, robot)
    path.write_text(header.replace(",mz", ""), encoding="utf-8")
    with pytest.raises(LogError, match="0 data rows"):
        read_wrench_log(path, robot)
    with pytest.raises(LogError, match="cannot be read"):
        read_wrench_log(tmp_path / "none.csv", robot)
