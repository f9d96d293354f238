"""After the run: a recorded run is found in its log and compared with its design."""

import numpy as np
import pytest

from bayesid.errors import DesignError
from bayesid.excitation import check_execution, find_start
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
    assert find_start(excitation, samples.time, samples.q) == pytest.approx(1.7, abs=2e-4)
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


def test_half_a_log_is_not_a_whole_run(excitation):
    samples = recorded(excitation)
    found = check_execution(excitation, samples.select(slice(0, 620)))
    assert 0.5 < found.covered < 0.8
    assert not found.as_designed
    with pytest.raises(DesignError, match=r"% of the motion|half"):
        check_execution(excitation, samples.select(slice(0, 400)))


def test_a_log_of_another_robot_is_refused(excitation):
    other = Samples(np.arange(9.0), *(np.zeros((9, 3)),) * 4, "torque")
    with pytest.raises(DesignError, match="log has 3 joints, the trajectory 2"):
        check_execution(excitation, other)
