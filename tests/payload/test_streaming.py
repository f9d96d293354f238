"""Sample-by-sample estimation: the same numbers as in one go, when to stop, and changes of load."""

import jax
import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.payload import PayloadStream, StopRule, WrenchRecord, joint_estimate, samples_of


@pytest.fixture(scope="module")
def stream(levels, truth):
    return PayloadStream(levels["moderate"], 1e-3, tuple(truth))


@pytest.fixture(scope="module")
def streamed(stream, noisy):
    record = noisy("moderate", 11)
    return record, *stream.run(record)


def test_streaming_and_batch_agree(streamed, stream, levels, truth):
    record, state, _ = streamed
    batch = joint_estimate(record, levels["moderate"], assumed=truth)
    found = stream.estimate(state)
    np.testing.assert_allclose(found.mean, batch.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.std, batch.std, rtol=1e-7)


def test_single_updates_agree_with_the_scan(streamed, stream):
    record, _, readings = streamed
    samples = samples_of(record)
    state = stream.start(jax.tree.map(lambda x: x[0], samples))
    for k in range(1, 40):
        state, reading = stream.update(state, jax.tree.map(lambda x, k=k: x[k], samples))
    np.testing.assert_allclose(reading.mass, readings.mass[38], rtol=1e-9)


def test_mass_and_its_interval_are_there_from_the_first_second(streamed, truth):
    _, _, readings = streamed
    error = np.asarray(readings.mass)[1000:] - truth[0]
    assert (np.abs(error) < 5 * np.asarray(readings.mass_std)[1000:]).all()
    assert np.asarray(readings.mass_std)[1000] < 0.001 * truth[0]


def test_stop_rule_waits_for_the_centre_of_mass_along_gravity(streamed):
    record, _, readings = streamed
    met = StopRule(mass=0.01, com=0.002).met(readings.mass, readings.mass_std, readings.com_std)
    stop = record.motion.time[1:][np.argmax(met)]
    # The rest of 2 s tells nothing about it; the whole motion lasts 10 s.
    assert met.any()
    assert 2.0 < stop < 6.0


def test_no_change_is_noticed_where_there_is_none(streamed):
    assert not np.asarray(streamed[2].changed).any()


@pytest.mark.parametrize("factor", [1.05, 0.9])
def test_a_change_of_load_is_noticed_and_the_estimate_starts_afresh(stream, noisy, truth, factor):
    record = noisy("moderate", 12)
    force, moment = record.force.copy(), record.moment.copy()
    force[6500:] *= factor
    moment[6500:] *= factor
    state, readings = stream.run(WrenchRecord(record.motion, force, moment, record.angular_velocity))
    changes = np.flatnonzero(np.asarray(readings.changed)) + 1
    assert len(changes) == 1
    assert 6500 <= changes[0] < 6550
    assert abs(float(readings.mass[-1]) / (factor * truth[0]) - 1) < 0.002
    assert int(state.count) == len(record) - 1 - changes[0]


def test_a_stream_needs_a_sampling_step(levels):
    with pytest.raises(DataError, match="positive number of seconds"):
        PayloadStream(levels["low"], 0.0)
