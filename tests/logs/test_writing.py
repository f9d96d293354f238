"""A log written in bayesid's layout reads back bit for bit, from every kind of file."""

import numpy as np
import pytest

from bayesid.errors import LogError
from bayesid.logs import iter_log, read_log, write_log


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".npz"])
def test_written_log_reads_back_bit_for_bit(small_log, tmp_path, suffix):
    path = write_log(small_log, tmp_path / f"run{suffix}")
    log = read_log(path, "bayesid")
    np.testing.assert_array_equal(log.time, small_log.time)
    assert log.channels == small_log.channels
    for name in log.channels:
        np.testing.assert_array_equal(getattr(log, name), getattr(small_log, name))
    assert log.effort_kind == "current"
    part = read_log(f"{path}@100:150", "bayesid")
    np.testing.assert_array_equal(part.current, small_log.current[99:150])
    assert [len(c) for c in iter_log(path, "bayesid", rows_per_chunk=150)] == [150, 150, 100]
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_bad_numbers_in_binary_files_are_named(small_log, tmp_path, suffix):
    broken = small_log.position.copy()
    broken[41, 1] = np.nan
    path = write_log(small_log.replace(position=broken), tmp_path / f"run{suffix}")
    with pytest.raises(LogError, match=r"row 42, column 'position_2' \(position of joint 2\): not finite"):
        read_log(path, "bayesid")
    assert len(read_log(path, "bayesid", drop_bad_rows=True)) == 399


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet", ".npz", ".db3"])
def test_damaged_binary_files_are_named(small_log, tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    if suffix != ".db3":
        write_log(small_log, path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.write_bytes(b"no database at all, but some bytes" * 40)
    with pytest.raises(LogError, match=str(path)):
        read_log(path, "bayesid")


def test_unknown_suffix_and_raw_effort_are_refused_and_leave_nothing(small_log, tmp_path):
    with pytest.raises(LogError, match="is written as"):
        write_log(small_log, tmp_path / "run.mat")
    with pytest.raises(LogError, match="no physical unit"):
        write_log(small_log.replace(effort_kind="raw"), tmp_path / "run.csv")
    with pytest.raises(LogError, match="cannot be written"):
        write_log(small_log, tmp_path / "absent" / "run.csv")
    assert not list(tmp_path.iterdir())


def test_arrays_of_unequal_length_are_named(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, time=np.arange(5.0), position=np.zeros((4, 2)))
    with pytest.raises(LogError, match="has 4 rows"):
        read_log(path, "bayesid")
