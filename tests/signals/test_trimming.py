"""Trimming finds the motion that a careful reader would: on the recordings, and on made ones."""

import numpy as np
import pytest

from bayesid.logs import Log, read_log, registry
from bayesid.signals import samples_from_log
from bayesid.signals.trimming import motion_window

CARD = registry.card("ur10e_innopolis")


def trimmed(log):
    samples = samples_from_log(log)
    (step,) = [s for s in samples.steps if s["name"] == "trim"]
    return samples, step


def motion(*pieces, rate=100):
    """Speed of one joint: pieces of (seconds, moves or not), a raised cosine each."""
    speed = []
    for seconds, moves in pieces:
        n = int(seconds * rate)
        speed.append((1 - np.cos(2 * np.pi * np.arange(n) / n)) * 0.3 if moves else np.zeros(n))
    qd = np.concatenate(speed)
    time = np.arange(len(qd)) / rate
    q = np.cumsum(qd) / rate
    return Log(time, q[:, None], velocity=qd[:, None], torque=qd[:, None], effort_kind="torque")


@pytest.mark.parametrize(
    "name",
    [
        "ur-20_02_10-30sec_12harm.csv",
        "ur-20_02_12-50sec_12harm.csv",
        "ur-20_02_05-20sec_8harm.csv",
        "ur-20_02_19_14harm50sec.csv",
        "ur-20_02_19_14harm50secLoad.csv",
        "ur-20_01_13-load_2600.csv",
    ],
)
def test_window_of_a_recording_is_within_half_a_second_of_the_cards(ur10e_data, name):
    file = CARD.file(name)
    log = read_log(ur10e_data / file.path, CARD.schema)
    samples, _ = trimmed(log)
    assert abs(samples.time[0] - log.time[file.window[0] - 1]) < 0.5
    assert abs(samples.time[-1] - log.time[file.window[1] - 1]) < 0.5


@pytest.mark.parametrize("name", ["ur-20_01_31-load.csv", "ur-20_01_31-unload.csv"])
def test_where_the_card_keeps_standstill_only_that_is_cut(ur10e_data, name):
    file = CARD.file(name)
    log = read_log(ur10e_data / file.path, CARD.schema)
    samples, _ = trimmed(log)
    first, last = file.window
    speed = np.abs(log.velocity).max(1)
    index = np.arange(1, len(log) + 1)
    cut = (index >= first) & (index <= last) & ((log.time < samples.time[0]) | (log.time > samples.time[-1]))
    # The last tenths of the approach lie in one card's window; beyond them nothing moves.
    assert (speed[cut] > 0.01).mean() < 0.06
    assert speed[log.time > samples.time[-1]].max() < 0.01
    assert (log.time >= samples.time[0]).sum() > 2100


def test_point_to_point_log_keeps_all_its_moves_and_the_pauses_between(ur10e_data):
    file = CARD.file("ur-20_01_17-ptp_10_points.csv")
    log = read_log(ur10e_data / file.path, CARD.schema)
    samples, step = trimmed(log)
    # The card's window starts and ends in mid-motion; the whole motion contains it.
    assert step["rows"][0] <= file.window[0]
    assert step["rows"][1] >= file.window[1]
    outside = (log.time < samples.time[0] - 0.1) | (log.time > samples.time[-1] + 0.1)
    assert np.abs(log.velocity[outside]).max() < 0.02


def test_logs_of_a_standing_robot_are_kept_whole_and_said_so(ur10e_data):
    for file in CARD.files:
        if file.kind == "standing":
            log = read_log(ur10e_data / file.path, CARD.schema)
            samples, step = trimmed(log)
            assert "stands still throughout" in step["cut"][0]
            assert samples.duration > log.duration - 0.2


def test_approach_and_return_are_cut_and_pauses_inside_stay():
    log = motion((1, 0), (0.6, 1), (0.8, 0), (8, 1), (2, 0), (7, 1), (1, 0), (0.5, 1), (1.5, 0))
    samples, step = trimmed(log)
    assert samples.time[0] == pytest.approx(2.4, abs=0.15)
    assert samples.time[-1] == pytest.approx(19.4, abs=0.15)
    assert samples.duration == pytest.approx(17, abs=0.3)
    assert "1 short motion" in step["cut"][0]


def test_short_moves_between_long_ones_stay():
    log = motion((1, 0), (8, 1), (1, 0), (0.4, 1), (1, 0), (8, 1), (1, 0))
    samples, _ = trimmed(log)
    assert samples.duration == pytest.approx(18.4, abs=0.3)


def test_equal_short_moves_stay():
    log = motion((1, 0), *[(1, 1), (1, 0)] * 6)
    samples, _ = trimmed(log)
    assert samples.duration == pytest.approx(11, abs=0.3)


def test_given_window_is_not_trimmed_unless_asked():
    log = motion((2, 0), (8, 1), (2, 0))
    assert len(samples_from_log(log.replace(window=True))) == len(log)
    assert len(samples_from_log(log.replace(window=True), trim=True)) < len(log) - 300
    assert len(samples_from_log(log, trim=False)) == len(log)


def test_trimming_happens_after_filtering_so_that_ends_have_context():
    log = motion((2, 0), (8, 1), (2, 0))
    whole = samples_from_log(log, trim=False)
    samples, step = trimmed(log)
    np.testing.assert_array_equal(samples.qdd, whole.qdd[step["rows"][0] - 1 : step["rows"][1]])


def test_window_of_no_motion_is_everything():
    window = motion_window(np.arange(50.0), np.zeros(50, dtype=bool))
    assert (window.first, window.last) == (0, 49)
