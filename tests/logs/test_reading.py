"""Reading: values arrive as written, and every fault is named with file, row and column in one line."""

import gzip

import numpy as np
import pytest

from bayesid.errors import BayesidError, LogError
from bayesid.logs import Log, check_robot, iter_log, read_log
from bayesid.robots.tree import Joint, Link, Robot


def message(path, schema, **options):
    with pytest.raises(LogError) as caught:
        read_log(path, schema, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


def cell(row, column, value):
    """A change of one cell, both counted from 1."""

    def change(lines):
        cells = lines[row - 1].split(",")
        cells[column - 1] = value
        lines[row - 1] = ",".join(cells)
        return lines

    return change


def test_values_arrive_as_written(write, schema, motion):
    log = read_log(write(), schema)
    time, q, qd, current = motion
    for got, true in ((log.time, time), (log.position, q), (log.velocity, qd), (log.current, current)):
        np.testing.assert_allclose(got, true, rtol=1e-8, atol=1e-9)
    assert log.rows == (1, 400)
    assert log.effort_kind == "current"
    assert log.torque is None
    assert not log.position.flags.writeable


def test_hash_is_that_of_the_bytes_and_window_does_not_change_it(write, schema):
    import hashlib

    path = write()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_log(path, schema).sha256 == digest
    assert read_log(f"{path}@10:20", schema).sha256 == digest


@pytest.mark.parametrize(("window", "rows"), [("10:20", (10, 20)), (":20", (1, 20)), ("390:", (390, 400)), ("7:7", (7, 7))])
def test_window_counts_rows_from_one_with_both_ends(write, schema, motion, window, rows):
    log = read_log(f"{write()}@{window}", schema)
    assert log.rows == rows
    assert len(log) == rows[1] - rows[0] + 1
    assert log.time[0] == pytest.approx(motion[0][rows[0] - 1])
    assert log.window


@pytest.mark.parametrize("window", ["5", "a:b", "0:4", "20:10", "-3:5", "1:2:3"])
def test_wrong_window_is_refused(write, schema, window):
    assert "window" in message(f"{write()}@{window}", schema)


def test_window_past_the_end_is_refused(write, schema):
    assert "400 rows" in message(f"{write()}@390:500", schema)
    assert "400 rows" in message(f"{write()}@500:600", schema)


def test_a_file_whose_name_holds_an_at_sign_is_read(write, schema):
    assert len(read_log(write(name="run@home.csv"), schema)) == 400


def test_gzip_reads_the_same(write, schema, tmp_path):
    path = write()
    packed = tmp_path / "run.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_log(packed, schema).position, read_log(path, schema).position)


def test_windows_line_ends_byte_order_mark_blanks_and_empty_last_lines_are_read(write, schema):
    path = write(lambda lines: [line.replace(",", " , ") for line in lines], join="\r\n", end="\r\n\r\n\n")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(read_log(path, schema)) == 400


@pytest.mark.parametrize(
    ("row", "column", "value", "said"),
    [
        (7, 5, "bad?", "row 7, column 5 (velocity of joint 2): not a number: 'bad?'"),
        (1, 2, "x", "row 1, column 2 (position of joint 1): not a number: 'x'"),
        (2, 2, "1_000", "row 2, column 2 (position of joint 1): not a number: '1_000'"),
        (400, 7, "", "row 400, column 7 (current of joint 2): the cell is empty"),
        (9, 2, "nan", "row 9, column 2 (position of joint 1): not finite"),
        (9, 6, "-inf", "row 9, column 6 (current of joint 1): not finite"),
        (12, 3, "1e300", "row 12, column 3 (position of joint 2): implausible value 1e+300"),
        (12, 1, "inf", "row 12, column 1 (time): not finite"),
        (30, 1, "5.0", "row 30, column 1 (time): time goes back to 5 s"),
        (30, 1, "5.28", "row 30, column 1 (time): time repeats 5.28 s"),
        (3, 4, "1,2", "row 3: the row has 8 of 7 columns"),
    ],
)
def test_a_bad_cell_is_named_and_can_be_dropped(write, schema, row, column, value, said):
    path = write(cell(row, column, value))
    text = message(path, schema)
    assert text.startswith(f"{path} {said}")
    assert "--drop-bad-rows" in text
    log = read_log(path, schema, drop_bad_rows=True)
    assert len(log) == 399
    assert said.partition(": time")[0] in log.notes[0]
    assert log.notes[0].startswith("dropped 1 bad rows")


def test_one_stamp_far_ahead_costs_one_row(write, schema):
    path = write(cell(200, 1, "1e9"))
    assert "row 201, column 1 (time): time goes back" in message(path, schema)
    log = read_log(path, schema, drop_bad_rows=True)
    assert len(log) == 399
    assert "row 200, column 1 (time): time 1e+09 s is out of order" in log.notes[0]


def test_a_pasted_repetition_of_rows_is_dropped_once(write, schema):
    path = write(lambda lines: lines[:150] + lines[100:])
    assert len(read_log(path, schema, drop_bad_rows=True)) == 400


def test_truncated_last_row_is_named_and_can_be_dropped(write, schema):
    path = write()
    path.write_text(path.read_text()[:-30])
    assert "row 400: the row has" in message(path, schema)
    assert "cut short" in message(path, schema)
    assert len(read_log(path, schema, drop_bad_rows=True)) == 399


def test_bad_rows_outside_the_window_do_not_matter(write, schema):
    assert len(read_log(f"{write(cell(7, 5, 'bad?'))}@8:", schema)) == 393


def test_empty_files_are_named(tmp_path, schema):
    path = tmp_path / "none.csv"
    path.write_text("")
    assert message(path, schema) == f"{path}: the file is empty"
    path.write_text("\n\n\n")
    assert "empty" in message(path, schema)


def test_missing_file_folder_and_unknown_suffix_are_named(tmp_path, schema):
    assert "no such file" in message(tmp_path / "absent.csv", schema)
    assert "not a file" in message(tmp_path, schema)
    (tmp_path / "run.xlsx").write_text("1")
    assert "unknown kind of file" in message(tmp_path / "run.xlsx", schema)


@pytest.mark.parametrize("delimiter", [";", "\t", " ", "|"])
def test_wrong_delimiter_is_named(write, schema, delimiter):
    text = message(write(lambda lines: [line.replace(",", delimiter) for line in lines]), schema)
    assert repr(delimiter) in text
    assert "delimiter" in text


def test_missing_column_is_named(write, schema):
    text = message(write(lambda lines: [line.rpartition(",")[0] for line in lines]), schema)
    assert "column 7 (current) is missing" in text


def test_header_where_none_is_declared_is_named(write, schema):
    assert "header" in message(write(lambda lines: ["t,a,b,c,d,e,f", *lines]), schema)


def test_header_missing_where_names_are_declared_is_named(write):
    assert "header is missing" in message(write(), "bayesid")


def test_missing_named_column_lists_those_there(write):
    path = write(lambda lines: ["time,position_1,position_2,v1,v2,i1,i2", *lines])
    assert read_log(path, "bayesid").channels == ("position",)
    path = write(lambda lines: ["time,q1,q2,v1,v2,i1,i2", *lines])
    assert "'position_1' (position) is missing" in message(path, "bayesid")
    assert "q1" in message(path, "bayesid")


@pytest.mark.parametrize(
    ("column", "factor", "said"),
    [
        ((1, 2), 180 / np.pi, "positions are in degrees"),
        ((3, 4), 180 / np.pi, "velocities are in degrees per second"),
        ((0,), 1e3, "time is in milliseconds"),
        ((3, 4), -1.0, "opposite signs"),
        ((1,), 7.0, "units disagree"),
    ],
)
def test_wrong_units_are_caught_by_velocity_against_position(tmp_path, motion, schema, column, factor, said):
    table = np.column_stack(motion)
    table[:, list(column)] *= factor
    path = tmp_path / "run.csv"
    np.savetxt(path, table, delimiter=",")
    assert said in message(path, schema)
    assert said in message(path, schema, drop_bad_rows=True)


def test_noisy_velocity_of_the_right_unit_passes(tmp_path, motion, schema):
    rng = np.random.default_rng(0)
    table = np.column_stack(motion)
    table[:, 3:5] += 0.3 * rng.standard_normal((400, 2))
    path = tmp_path / "run.csv"
    np.savetxt(path, table, delimiter=",")
    assert len(read_log(path, schema)) == 400


@pytest.mark.parametrize(("rows_per_chunk", "overlap"), [(2, 0), (7, 3), (100, 20), (399, 0), (1000, 10)])
def test_chunks_join_to_the_whole(write, schema, rows_per_chunk, overlap):
    path = write()
    whole = read_log(path, schema)
    chunks = list(iter_log(path, schema, rows_per_chunk=rows_per_chunk, overlap=min(overlap, rows_per_chunk - 1)))
    parts = [chunks[0].position] + [c.position[overlap:] for c in chunks[1:]]
    np.testing.assert_array_equal(np.concatenate(parts), whole.position)
    assert all(len(c) <= rows_per_chunk + overlap for c in chunks)
    assert chunks[-1].rows[1] == 400
    assert {c.sha256 for c in chunks} == {whole.sha256}


def test_chunks_make_the_same_complaints(write, schema):
    path = write(cell(250, 1, "5.0"))
    with pytest.raises(LogError, match="row 250, column 1 \\(time\\): time goes back"):
        list(iter_log(path, schema, rows_per_chunk=100))
    assert sum(len(c) for c in iter_log(path, schema, rows_per_chunk=100, drop_bad_rows=True)) == 399


@pytest.mark.parametrize("columns", [31, 25, 19])
def test_ur10e_preset_takes_all_three_widths(tmp_path, columns):
    time = np.arange(50) / 100
    table = np.column_stack([time, np.tile(np.arange(columns - 1) / 100.0, (50, 1))])
    path = tmp_path / "run.csv"
    np.savetxt(path, table, delimiter=",")
    log = read_log(path, "ur10e-innopolis")
    assert (log.target_current is not None) == (columns >= 25)
    assert (log.target_torque is not None) == (columns == 31)
    np.testing.assert_allclose(log.current[0], np.arange(12, 18) / 100)


def test_rtde_header_is_read_with_spaces_and_with_commas(tmp_path, motion):
    time, q, qd, current = motion
    names = ["timestamp"] + [f"{n}_{j}" for n in ("actual_q", "actual_qd", "actual_current") for j in range(2)]
    for delimiter in (" ", ","):
        path = tmp_path / "rtde.csv"
        np.savetxt(
            path,
            np.column_stack([time, q, qd, current]),
            header=delimiter.join(names),
            comments="",
            delimiter=delimiter,
        )
        log = read_log(path, "ur-rtde")
        np.testing.assert_allclose(log.current, current)
        assert log.dof == 2


def test_joints_named_in_the_file_are_put_into_the_robots_order(tmp_path, motion):
    time, q, qd, _ = motion
    head = "__time," + ",".join(f"/joint_states/{j}/{f}" for f in ("position", "velocity", "effort") for j in ("b", "a"))
    path = tmp_path / "states.csv"
    np.savetxt(path, np.column_stack([time, q, qd, q]), header=head, comments="", delimiter=",")
    log = read_log(path, "ros2-joint-state")
    assert log.joint_names == ("b", "a")
    turned = check_robot(log, robot("a", "b"))
    np.testing.assert_array_equal(turned.velocity, log.velocity[:, ::-1])
    with pytest.raises(LogError, match="no column for the joint 'c'"):
        check_robot(log, robot("a", "c"))
    np.testing.assert_array_equal(check_robot(log, robot("x", "y")).velocity, log.velocity)


def robot(*names, limit=3.0):
    joints = tuple(Joint(name, "revolute", i - 1, lower=-limit, upper=limit) for i, name in enumerate(names))
    return Robot("made", joints, tuple(Link(f"{name}_link") for name in names))


def test_too_few_joints_and_positions_in_degrees_do_not_fit_the_robot(small_log):
    with pytest.raises(LogError, match="2 joints recorded, robot 'made' has 3"):
        check_robot(small_log, robot("a", "b", "c"))
    with pytest.raises(LogError, match="degrees"):
        check_robot(small_log.replace(position=small_log.position * 57.3), robot("a", "b"))
    assert check_robot(small_log, robot("a", "b")) is small_log


def test_a_log_whose_arrays_disagree_is_refused():
    with pytest.raises(BayesidError, match="shape"):
        Log(np.arange(5.0), np.zeros((4, 2)))
    with pytest.raises(BayesidError, match="velocity"):
        Log(np.arange(4.0), np.zeros((4, 2)), velocity=np.zeros((4, 3)))


def test_corrupt_rows_of_the_ur10e_recording_are_named_and_dropped(ur10e_data):
    path = ur10e_data / "dataset_ur10e/identification_data/ur-19_09_27-11_32_02.csv"
    assert f"{path} row 3, column 3 (position of joint 2): implausible value" in message(path, "ur10e-innopolis")
    log = read_log(path, "ur10e-innopolis", drop_bad_rows=True)
    assert len(log) == 1129
    assert log.notes[0].startswith("dropped 10 bad rows")


def test_every_other_ur10e_recording_reads_clean(ur10e_data):
    paths = [p for p in sorted(ur10e_data.rglob("*.csv")) if p.name != "ur-19_09_27-11_32_02.csv"]
    assert len(paths) == 30
    for path in paths:
        log = read_log(path, "ur10e-innopolis")
        assert log.dof == 6
        assert not log.notes


def test_motor_side_recording_of_the_tx40_comes_out_on_the_joint_side(data_root):
    log = read_log(data_root / "staubli_tx40/examples/staubli_TX40/data", "tx40")
    assert len(log) == 45000
    motor = np.array([3.1958e-05, 50.265, -70.685, 0, 0, -0.00028762])
    np.testing.assert_allclose(log.position[0, 1], motor[1] / 32 - np.pi / 2)
    np.testing.assert_allclose(log.position[0, 2], motor[2] / 45 + np.pi / 2)
    # Power is the same on both sides of a transmission: tau . dq of the joints is tau_m . dq_m of the motors.
    assert log.torque[0, 4] == pytest.approx(45 * -0.0036467 + 32 * 0.016623)


def test_bag_of_the_ur10_reads_as_joint_states(data_root):
    log = read_log(
        data_root / "ur10_unisa/ur10_inverse_dynamics_solver/bagfiles/ur10_exciting_trajectory.db3", "ros2-joint-state"
    )
    assert len(log) == 3441
    assert log.duration == pytest.approx(27.52, abs=1e-6)
    assert log.joint_names[2] == "elbow_joint"
    derived = np.gradient(log.position, log.time, axis=0)
    assert np.corrcoef(derived[:, 1], log.velocity[:, 1])[0, 1] > 0.99


def test_torque_constants_of_the_kinova_recording_are_those_of_its_card(data_root):
    log = read_log(
        data_root / "kinova_gen3/from_history/pyDynaMapp/data/kinova/identification_data/RunTrajectory1.csv.gz",
        "kinova-gen3",
    )
    gain = (log.torque * log.current).sum(0) / (log.current**2).sum(0)
    np.testing.assert_allclose(gain, [9.13] * 4 + [5.85] * 3, rtol=1e-3)
