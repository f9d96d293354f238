"""Whatever bytes a file holds, reading it ends in a log or in one line that names the file."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayesid.errors import BayesidError, LogError
from bayesid.logs import iter_log, load_schema, read_log

CELLS = st.one_of(
    st.floats(width=32).map(repr),
    st.sampled_from(["", " ", "nan", "1e300", "-inf", "NULL", "0x10", '"', '"1.0"', "1_0", "١", "1;2", "a,b", "\t", "#", "é"]),
    st.text(max_size=4),
)


def lines_with_faults(draw_rows):
    good = [",".join(f"{x:.6g}" for x in (0.01 * k, *np.sin(0.01 * k * np.arange(1, 7)))) for k in range(12)]
    for index, column, text, kind in draw_rows:
        cells = good[index % len(good)].split(",")
        if kind == "replace":
            cells[column % len(cells)] = text
        elif kind == "insert":
            cells.insert(column % len(cells), text)
        elif kind == "cut":
            cells = cells[: column % len(cells)]
        good[index % len(good)] = ",".join(cells)
    return good


def outcome(call):
    """The message of a BayesidError and None, or nothing and what the call returns; other errors pass through."""
    try:
        return "", call()
    except BayesidError as error:
        return str(error), None


def only_clean_ends(path, schema):
    for drop in (False, True):
        text, log = outcome(lambda drop=drop: read_log(path, schema, drop_bad_rows=drop))
        if log is None:
            assert "\n" not in text
            assert str(path) in text
        else:
            assert np.isfinite(log.position).all()
            assert np.all(np.diff(log.time) > 0)
            chunks = list(iter_log(path, schema, rows_per_chunk=5, drop_bad_rows=drop))
            assert sum(len(c) for c in chunks) == len(log)


FAULTS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 6), CELLS, st.sampled_from(["replace", "insert", "cut"])), max_size=4
)
ONCE = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ONCE
@given(faults=FAULTS, end=st.sampled_from(["\n", "", "\r\n", "\n\n", ",\n"]), join=st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_faults_in_rows_end_cleanly(tmp_path, schema, faults, end, join):
    path = tmp_path / "run.csv"
    path.write_bytes((join.join(lines_with_faults(faults)) + end).encode("utf-8", "surrogatepass"))
    only_clean_ends(path, schema)


@ONCE
@given(content=st.binary(max_size=200), name=st.sampled_from(["a.csv", "a.csv.gz", "a.npz", "a.parquet", "a.db3", "a.txt"]))
def test_any_bytes_end_cleanly(tmp_path, schema, content, name):
    path = tmp_path / name
    path.write_bytes(content)
    for layout in (schema, "bayesid"):
        only_clean_ends(path, layout)


@ONCE
@given(
    head=st.lists(
        st.sampled_from(["time", "position_1", "position_2", "torque_1", "torque_2", "x", ""]), min_size=1, max_size=6
    )
)
def test_any_header_ends_cleanly(tmp_path, head):
    path = tmp_path / "run.csv"
    rows = [",".join(f"{0.1 * k + j:.3f}" for j in range(len(head))) for k in range(4)]
    path.write_text("\n".join([",".join(head), *rows]) + "\n")
    only_clean_ends(path, "bayesid")


VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-2, 40),
        st.floats(allow_nan=False),
        st.sampled_from(["rad", "s", "2-3", "x", "{joint}"]),
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@ONCE
@given(
    key=st.sampled_from(["header", "joints", "effort", "delimiter", "files", "transmission", "time", "position", "current"]),
    inner=st.sampled_from([None, "columns", "column", "unit", "rate", "matrix", "offset", "optional"]),
    value=VALUES,
)
def test_any_schema_entry_ends_cleanly(tmp_path, key, inner, value):
    def toml(v):
        if isinstance(v, bool):
            return str(v).lower()
        if isinstance(v, list):
            return "[" + ", ".join(map(toml, v)) + "]"
        return f"'{v}'" if isinstance(v, str) else repr(v)

    table = {
        "header": "false",
        "joints": "2",
        "time": "{ column = 1, unit = 's' }",
        "position": "{ columns = '2-3', unit = 'rad' }",
        "current": "{ columns = '4-5', unit = 'A' }",
    }
    table[key] = toml(value) if inner is None else f"{{ {inner} = {toml(value)} }}"
    path = tmp_path / "own.toml"
    path.write_text("\n".join(f"{k} = {v}" for k, v in table.items()))
    text, schema = outcome(lambda: load_schema(path))
    assert schema is not None or ("\n" not in text and str(path) in text)


@pytest.mark.parametrize(
    ("entry", "words"), [("delimiter = [[',']]", "delimiter"), ("time = { column = 1, unit = ['s'] }", "time")]
)
def test_lists_where_words_belong_are_named(tmp_path, entry, words):
    path = tmp_path / "own.toml"
    time = "" if entry.startswith("time") else "time = { column = 1, unit = 's' }\n"
    path.write_text(f"header = false\n{time}{entry}\nposition = {{ columns = '2-3', unit = 'rad' }}\n")
    with pytest.raises(LogError, match=words):
        load_schema(path)
