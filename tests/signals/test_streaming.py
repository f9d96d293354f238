"""Samples taken chunk by chunk are those of the whole log."""

import numpy as np
import pytest

from bayesid.errors import SignalError
from bayesid.logs import read_log, write_log
from bayesid.signals import iter_samples, samples_from_log


@pytest.mark.parametrize("rows", [300, 777, 5000])
def test_chunks_give_the_samples_of_the_whole_log(make_log, tmp_path, rows):
    path = write_log(make_log(noise=(1e-5, 1e-3, 0.3)), tmp_path / "run.csv")
    whole = samples_from_log(read_log(path, "bayesid"), trim=False, cutoff=8.0)
    parts = list(iter_samples(path, "bayesid", rows_per_chunk=rows, cutoff=8.0))
    assert len(parts) == max(round(2500 / rows + 0.4999), 1)
    for name in ("q", "qd", "qdd", "effort"):
        joined = np.concatenate([getattr(p, name) for p in parts])
        true = getattr(whole, name)
        assert np.abs(joined - true).max() < 1e-3 * true.std()
    np.testing.assert_array_equal(np.concatenate([p.time for p in parts]), whole.time)


def test_decimation_keeps_its_phase_across_chunks(make_log, tmp_path):
    path = write_log(make_log(), tmp_path / "run.npz")
    whole = samples_from_log(read_log(path, "bayesid"), trim=False, cutoff=5.0, decimate=3)
    parts = list(iter_samples(path, "bayesid", rows_per_chunk=400, cutoff=5.0, decimate=3))
    np.testing.assert_array_equal(np.concatenate([p.time for p in parts]), whole.time)


def test_a_cutoff_chosen_on_the_first_chunk_is_kept(make_log, tmp_path):
    path = write_log(make_log(), tmp_path / "run.npz")
    assert len({p.cutoff for p in iter_samples(path, "bayesid", rows_per_chunk=600)}) == 1


def test_chunks_shorter_than_the_filter_are_refused(make_log, tmp_path):
    path = write_log(make_log(), tmp_path / "run.npz")
    with pytest.raises(SignalError, match="rows a chunk are too few"):
        list(iter_samples(path, "bayesid", rows_per_chunk=120, cutoff=2.0))
