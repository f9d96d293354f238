"""Samples: derivatives are those of the motion, effort sees the same filter, and every step is on record."""

import json

import numpy as np
import pytest

from bayesid.errors import SignalError
from bayesid.logs import Log, read_log
from bayesid.signals import KalmanSmoother, MeasuredVelocity, PositionDifferences, Samples, samples_from_log

INNER = slice(100, -100)


def rms(values):
    return np.sqrt((values**2).mean(0))


@pytest.mark.parametrize("jitter", [False, True])
@pytest.mark.parametrize("strategy", [PositionDifferences(), MeasuredVelocity()])
def test_derivatives_of_a_clean_motion_are_exact_but_for_the_filter(make_log, tones, jitter, strategy):
    samples = samples_from_log(make_log(jitter=jitter), differentiation=strategy, trim=False)
    t = samples.time[INNER]
    # A 4th-order filter at 8 Hz, run twice, loses (f/8)^8 of the amplitude: 1e-6 at 1.4 Hz.
    for name, order, scale in (("q", 0, 1), ("qd", 1, 5), ("qdd", 2, 40)):
        assert np.abs(getattr(samples, name)[INNER] - tones(t, order)).max() < 2e-5 * scale
    # Effort is carried to the grid linearly, which costs (w h)^2 / 8 of its amplitude on irregular stamps.
    assert np.abs(samples.effort[INNER] - tones(t, 2)).max() < (2e-2 if jitter else 1e-3)


@pytest.mark.parametrize("jitter", [False, True])
def test_measured_effort_stays_at_its_own_stamps(make_log, jitter):
    log = make_log(jitter=jitter, noise=(0, 0, 0.5))
    samples = samples_from_log(log, trim=False)
    kept = np.isin(log.time, samples.time)
    assert kept.sum() == len(samples) > 2460
    np.testing.assert_array_equal(samples.effort_measured, log.torque[kept])
    np.testing.assert_array_equal(samples.time, log.time[kept])
    assert [s["name"] for s in samples.steps].count("resample") == int(jitter)


def test_temperature_goes_with_its_samples(make_log):
    plain = make_log()
    temperature = 30.0 + np.arange(2 * len(plain)).reshape(-1, 2) / 100
    samples = samples_from_log(plain.replace(temperature=temperature), decimate=2)
    rows = np.searchsorted(plain.time, samples.time)
    np.testing.assert_array_equal(samples.temperature, temperature[rows])
    np.testing.assert_array_equal(samples.select(slice(3, 9)).temperature, temperature[rows[3:9]])
    assert samples_from_log(plain).temperature is None


def test_filter_has_no_phase_lag_and_halves_the_amplitude_at_the_cutoff():
    time = np.arange(4000) / 100
    for frequency in (2.0, 5.0, 8.0, 12.0):
        wave = np.sin(2 * np.pi * frequency * time)[:, None]
        log = Log(time, wave, velocity=wave, torque=wave, effort_kind="torque")
        samples = samples_from_log(log, cutoff=8.0, trim=False, decimate=1)
        inside = (samples.time > 4.995) & (samples.time < 34.995)
        basis = np.exp(2j * np.pi * frequency * samples.time[inside])
        gain = 2 * np.vdot(basis, samples.effort[inside, 0]) / inside.sum() * 1j
        # |H|^2 of a digital Butterworth filter of order 4, prewarped.
        warp = np.tan(np.pi * frequency / 100) / np.tan(np.pi * 8.0 / 100)
        assert gain.real == pytest.approx(1 / (1 + warp**8), abs=2e-3)
        assert abs(gain.imag) < 2e-3


def test_noise_falls_as_the_filters_bandwidth_says(make_log, tones):
    samples = samples_from_log(make_log(noise=(0, 0, 1.0)), cutoff=8.0, trim=False)
    error = samples.effort[INNER] - tones(samples.time[INNER], 2)
    # White noise through the squared Butterworth response keeps about 2 x 8 Hz / 100 Hz of its power, less the slope.
    assert np.all(np.abs(rms(error) / np.sqrt(2 * 8 / 100) - 0.92) < 0.1)


def test_measured_velocity_gives_the_quieter_acceleration(make_log, tones):
    log = make_log(noise=(1e-4, 1e-3, 0))
    error = {}
    for strategy in (PositionDifferences(), MeasuredVelocity()):
        samples = samples_from_log(log, differentiation=strategy, trim=False)
        error[type(strategy)] = rms(samples.qdd[INNER] - tones(samples.time[INNER], 2))
    assert np.all(error[MeasuredVelocity] < 0.5 * error[PositionDifferences])
    assert [s["of"] for s in samples_from_log(log).steps if s["name"] == "differentiate"] == ["velocity"]


def test_velocity_that_does_not_follow_the_position_is_not_used_and_said_so(make_log):
    log = make_log()
    log = log.replace(velocity=np.zeros_like(log.position))
    samples = samples_from_log(log, trim=False)
    (step,) = [s for s in samples.steps if s["name"] == "differentiate"]
    assert step["of"] == "position"
    assert "does not follow" in step["note"]


def test_standstill_of_one_joint_is_marked(tones):
    time = np.arange(1500) / 100
    q, qd = tones(time, 0), tones(time, 1)
    rng = np.random.default_rng(3)
    q[:, 1], qd[:, 1] = 0.4, 0.0
    log = Log(time, q, velocity=qd + 2e-3 * rng.standard_normal(q.shape), torque=q, effort_kind="torque")
    samples = samples_from_log(log, trim=False, cutoff=8.0)
    assert samples.moving[:, 0].mean() > 0.95
    assert samples.moving[:, 1].mean() < 0.01
    (step,) = [s for s in samples.steps if s["name"] == "standstill"]
    # Five standard deviations of what an 8 Hz filter leaves of 2 mrad/s.
    assert step["threshold"][1] == pytest.approx(5 * 2e-3 * np.sqrt(0.16), rel=0.2)


def test_decimation_keeps_every_kth_row_and_well_above_the_cutoff(make_log):
    whole = samples_from_log(make_log(), trim=False, decimate=1, cutoff=4.0)
    third = samples_from_log(make_log(), trim=False, decimate=3, cutoff=4.0)
    np.testing.assert_array_equal(third.qdd, whole.qdd[::3])
    log = make_log(time=np.arange(20000) / 1000)
    chosen = samples_from_log(log, trim=False)
    assert 1 / chosen.step >= 10 * chosen.cutoff > 0.4 / chosen.step / 2
    with pytest.raises(SignalError, match="less than twice the cutoff"):
        samples_from_log(make_log(), decimate=10, cutoff=8.0)
    with pytest.raises(SignalError, match="whole number"):
        samples_from_log(make_log(), decimate=0)


def test_samples_near_a_gap_are_left_out(make_log):
    time = np.arange(2000) / 100
    time[1000:] += 0.7
    samples = samples_from_log(make_log(time=time), trim=False, decimate=1, cutoff=8.0)
    near = (samples.time > time[999] - 0.1) & (samples.time < time[1000] + 0.1)
    assert not near.any()
    (step,) = [s for s in samples.steps if s["name"] == "leave out gaps"]
    assert step["gaps"] == 1
    assert step["samples"][0] - step["samples"][1] == pytest.approx(2 * 100 / samples.cutoff, abs=3)


def test_ends_in_motion_lose_one_period_and_ends_at_rest_nothing(ur10e_data):
    path = ur10e_data / "dataset_ur10e/validation_data/ur-20_01_17-ptp_10_points.csv"
    whole = samples_from_log(read_log(path, "ur10e-innopolis"), trim=False, cutoff=8.0)
    assert not [s for s in whole.steps if s["name"] == "leave out transients"]
    part = samples_from_log(read_log(f"{path}@700:4200", "ur10e-innopolis"), cutoff=8.0)
    (step,) = [s for s in part.steps if s["name"] == "leave out transients"]
    assert step["samples"][0] - step["samples"][1] == pytest.approx(2 * 100 / 8, abs=4)
    same = whole.select(np.isin(whole.time, part.time))
    for name, allowed in (("q", 1e-4), ("qd", 1e-3), ("qdd", 0.02), ("effort", 0.005)):
        error = np.abs(getattr(part, name) - getattr(same, name)).max()
        assert error < allowed * np.abs(getattr(whole, name)).max()


def test_steps_are_json_and_count_samples_through(make_log):
    samples = samples_from_log(make_log(jitter=True), decimate=2, cutoff=5.0)
    names = [s["name"] for s in json.loads(json.dumps(samples.steps))]
    assert names[0] == "resample"
    assert {"low-pass", "differentiate", "standstill", "trim", "decimate"} <= set(names)
    assert samples.steps[-1]["samples"][1] == len(samples)
    assert json.loads(json.dumps(samples.source))["samples"] == 2500


def test_effort_channel_is_chosen_by_schema_or_by_name(make_log):
    log = make_log()
    both = log.replace(current=log.torque / 10)
    assert samples_from_log(both).effort_kind == "torque"
    assert samples_from_log(both, effort="current").effort_unit == "A"
    np.testing.assert_allclose(samples_from_log(both, effort="current").effort * 10, samples_from_log(both).effort)
    raw = log.replace(torque=None, current=log.torque, effort_kind="raw")
    assert samples_from_log(raw).effort_kind == "current"
    assert samples_from_log(raw).effort_unit == "raw"
    with pytest.raises(SignalError, match="no current was recorded; the file has position, velocity, torque"):
        samples_from_log(log, effort="current")
    with pytest.raises(SignalError, match="must be auto, torque or current"):
        samples_from_log(log, effort="amps")


def test_logs_too_short_for_the_filter_are_refused(make_log):
    with pytest.raises(SignalError, match="too few to filter"):
        samples_from_log(make_log(time=np.arange(9) / 100))
    with pytest.raises(
        SignalError, match=r"run.csv: 30 rows at 100 Hz are too few for a low-pass filter at 2 Hz, .* more than 75"
    ):
        samples_from_log(make_log(time=np.arange(30) / 100, path="run.csv"), cutoff=2.0)
    with pytest.raises(SignalError, match="not between 0 and half the sampling rate"):
        samples_from_log(make_log(), cutoff=51.0)


def test_missing_velocity_is_differentiated_and_cannot_be_demanded(make_log):
    log = make_log(velocity=False)
    assert any(s.get("of") == "position" for s in samples_from_log(log).steps)
    with pytest.raises(SignalError, match="no velocity was recorded"):
        samples_from_log(log, differentiation=MeasuredVelocity())


def test_time_with_a_huge_gap_is_refused(make_log):
    time = np.arange(1000) / 100
    time[500:] += 1e6
    with pytest.raises(SignalError, match="median steps"):
        samples_from_log(make_log(time=time, velocity=False))


def test_samples_check_their_shapes_and_select_all_arrays_alike(make_log):
    samples = samples_from_log(make_log(noise=(1e-4, 1e-3, 0.1)), differentiation=KalmanSmoother(1.0, 1e-4, 1e-3), trim=False)
    part = samples.select(slice(10, 20))
    assert len(part) == 10
    assert part.qdd_std.shape == part.moving.shape == part.weights.shape == (10, 2)
    with pytest.raises(SignalError, match="qd has the shape"):
        Samples(np.arange(3.0), np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((3, 2)), np.zeros((3, 2)), "torque")
    with pytest.raises(SignalError, match="effort kind"):
        Samples(np.arange(3.0), *[np.zeros((3, 2))] * 4, "force")


def test_bare_arrays_make_samples_with_sensible_defaults():
    z = np.linspace(-1, 1, 9)[:, None]
    samples = Samples(np.arange(9.0), z, z, z, z, "current")
    assert samples.effort_unit == "A"
    assert samples.effort_measured is not None
    assert samples.moving.sum() == 8
    assert samples.weights.min() == 1


def test_default_cutoff_on_the_ur10e_excitation_is_between_8_and_20_hz(ur10e_data):
    for path in sorted((ur10e_data / "dataset_ur10e/identification_data").glob("ur-20_*.csv")):
        samples = samples_from_log(read_log(path, "ur10e-innopolis"))
        assert 8.0 <= samples.cutoff <= 20.0
        assert samples.effort_kind == "current"
