"""Schemas: presets load, units convert once, and a wrong entry is named."""

import numpy as np
import pytest

from bayesid.errors import LogError
from bayesid.logs import load_schema, read_log, schema_names

BASE = """
joints = 1
effort = "current"
time = { column = "t", unit = "ms" }
position = { columns = ["q"], unit = "deg" }
velocity = { columns = ["qd"], unit = "rpm" }
current = { columns = ["i"], unit = "mA" }
temperature = { columns = ["temp"], unit = "K" }
"""


def save(tmp_path, text):
    path = tmp_path / "own.toml"
    path.write_text(text)
    return path


def test_presets_load_under_their_names():
    assert {"bayesid", "kinova-gen3", "ros2-joint-state", "tx40", "ur-rtde", "ur10e-innopolis"} <= set(schema_names())
    for name in schema_names():
        assert load_schema(name).name == name
        assert load_schema(name).description


def test_units_are_converted_to_si(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("t,q,qd,i,temp,other\n" + "".join(f"{10 * k},{90 + 3 * k},{50},{1500},300,x\n" for k in range(5)))
    log = read_log(path, save(tmp_path, BASE))
    np.testing.assert_allclose(log.time, np.arange(5) / 100)
    np.testing.assert_allclose(log.position[0], np.pi / 2)
    np.testing.assert_allclose(log.velocity[0], 50 * 2 * np.pi / 60)
    np.testing.assert_allclose(log.current[0], 1.5)
    np.testing.assert_allclose(log.temperature[0], 26.85)


def test_units_may_differ_from_joint_to_joint(tmp_path):
    text = 'time = { rate = 50 }\nposition = { columns = ["a", "b"], unit = ["deg", "mm"] }\n'
    path = tmp_path / "run.csv"
    path.write_text("a,b\n180,250\n181,251\n")
    log = read_log(path, save(tmp_path, text))
    np.testing.assert_allclose(log.position[0], [np.pi, 0.25])
    np.testing.assert_allclose(log.time, [0.0, 0.02])
    assert log.effort_kind is None


def test_time_may_stand_in_seconds_and_nanoseconds(tmp_path):
    text = "header = false\ntime = { column = [1, 2] }\nposition = { columns = [4], unit = 'rad' }\n"
    path = tmp_path / "echo.csv"
    path.write_text("1700000000,0,base,0.1\n1700000000,250000000,base,0.2\n1700000001,500000000,base,0.3\n")
    log = read_log(path, save(tmp_path, text))
    np.testing.assert_allclose(log.time - log.time[0], [0.0, 0.25, 1.5], atol=1e-6)
    with pytest.raises(LogError, match="seconds and nanoseconds"):
        load_schema(save(tmp_path, text.replace("[1, 2]", "[1, 2, 3]")))


def test_raw_effort_keeps_the_drives_unit(tmp_path):
    text = 'effort = "raw"\njoints = 1\ntime = { rate = 50 }\nposition = { columns = ["q"], unit = "rad" }\n'
    text += 'current = { columns = ["ticks"], unit = "raw" }\n'
    path = tmp_path / "run.csv"
    path.write_text("q,ticks\n0,4194304\n0.1,-77\n")
    log = read_log(path, save(tmp_path, text))
    assert log.effort_kind == "raw"
    np.testing.assert_array_equal(log.current[:, 0], [4194304, -77])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('unit = "deg"', 'unit = "degrees"', "position unit 'degrees' is not one of rad, deg"),
        (', unit = "deg"', "", "position has no unit"),
        ('position = { columns = ["q"], unit = "deg" }', "", "'position' is missing"),
        ('time = { column = "t", unit = "ms" }', "", "'time' is missing"),
        ('time = { column = "t", unit = "ms" }', "time = { }", "time needs a column, or a rate"),
        ('time = { column = "t", unit = "ms" }', 'time = { column = "t", unit = "sample" }', "needs a rate"),
        ('time = { column = "t", unit = "ms" }', 'time = { column = 3, unit = "ms" }', "time column must be a name"),
        ('effort = "current"', 'effort = "amps"', "effort must be torque, current or raw"),
        ('effort = "current"', 'effort = "torque"', "no entry 'torque'"),
        ('effort = "current"', 'effort = "raw"', "go together"),
        ('columns = ["q"]', 'columns = ["q", "r"]', "position has 2 columns for 1 joints"),
        ('columns = ["q"]', "columns = 7", "columns must be a list of names"),
        ("joints = 1", 'joints = "six"', "joints must be a whole number"),
        ("joints = 1", "joint = 1", "unknown entry 'joint'"),
        ("joints = 1", "joints = 1\ndelimiter = '::'", "delimiter must be one of"),
        ("joints = 1", "joints = 1\nheader = 'yes'", "header must be true or false"),
        ("joints = 1", "joints = 1\nfiles = [3]", "files must be a list"),
        ("joints = 1", "joints = 1\ntransmission = { matrix = [[0]] }", "cannot be inverted"),
        ("joints = 1", "joints = 1\ntransmission = { matrix = [[1, 2]] }", "transmission needs a matrix"),
        ("joints = 1", "joints = = 1", "not a TOML file"),
    ],
)
def test_a_wrong_entry_is_named_in_one_line(tmp_path, old, new, said):
    assert old in BASE
    path = save(tmp_path, BASE.replace(old, new, 1))
    with pytest.raises(LogError) as caught:
        load_schema(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_preset_lists_the_known_ones_and_absent_file_is_named(tmp_path):
    with pytest.raises(LogError, match="choose one of bayesid"):
        load_schema("ur10")
    with pytest.raises(LogError, match="no such schema file"):
        load_schema(tmp_path / "none.toml")


def test_ranges_need_a_file_without_header_and_names_one_with(tmp_path):
    text = "header = false\ntime = { rate = 50 }\nposition = { columns = '5-2', unit = 'rad' }\n"
    with pytest.raises(LogError, match="a range such as"):
        load_schema(save(tmp_path, text))
