"""bayesid drive-gains: what the command line refuses before it reads a log, in one line that says how to mend it."""

import importlib
import re

import numpy as np
import pytest

command = importlib.import_module("bayesid.cli.main").main
LOGS = ["drive-gains", "--unloaded", "free.csv", "--robot", "ur10e", "--schema", "ur10e-innopolis"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--loaded", "b.csv", "--payload-mass", "0"], "mass must be a positive number of kg"),
        (["--loaded", "b.csv", "--payload-mass", "-1"], "mass must be a positive number of kg"),
        (["--payload-mass", "2"], "no loaded log: give --loaded LOG"),
        (["--loaded", "b.csv", "--payload-mass", "2", "3"], "2 masses for 1 loaded logs"),
        (["--loaded", "b.csv", "--payload-mass", "2", "--payload-com", "1,2"], "not three comma-separated numbers"),
        (["--loaded", "b.csv", "--payload-mass", "2", "--hold", "elbow=3"], "no joint 'elbow'"),
        (["--loaded", "b.csv", "--payload-mass", "2", "--prior", "elbow_joint=3"], "write it as JOINT=K\\+-S"),
        (["--loaded", "b.csv", "--payload-mass", "2", "--prior", "elbow_joint=3+-0"], "must be positive"),
        (["--loaded", "b.csv", "--payload-mass", "2", "--hold", "elbow_joint=-3"], "must be positive numbers"),
        (["--loaded", "b.csv", "--payload-mass", "2", "--hold", "elbow_joint=1e9"], "must be positive numbers"),
        (["--loaded", "b.csv", "--payload-mass", "2", "--hold", "elbow_joint=11+-1"], "--prior elbow_joint=11"),
        (["--loaded", "b.csv", "--payload-mass", "2", "--prior", "elbow_joint=11±inf"], "must be positive"),
        (["--loaded", "b.csv", "--payload-mass", "2", *["--prior", "elbow_joint=9+-1", "--hold", "elbow_joint=9"]], "give one"),
        (["--payload-mass", "2", "--plan", "--hold", "elbow_joint=9"], "--hold has no part in --plan"),
        (["--payload-mass", "2", "--plan", "--compare"], "--compare has no part in --plan"),
        (["--loaded", "b.csv", "--payload-mass", "2"], "free.csv"),
    ],
)
def test_bad_input_ends_in_one_line_and_status_2(arguments, words, capsys):
    assert command([*LOGS, *arguments]) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert text.startswith("bayesid drive-gains: ")
    assert re.search(words, text)


def test_the_same_recording_as_loaded_and_unloaded_is_refused(ur10e_data, capsys):
    log = f"{ur10e_data}/dataset_ur10e/identification_data/ur-20_01_31-load.csv@370:2881"
    options = ["--robot", "ur10e", "--schema", "ur10e-innopolis", "--payload-mass", "2.805", "--quiet"]
    assert command(["drive-gains", "--unloaded", log, "--loaded", log, *options]) == 2
    assert "the same recording is given twice" in capsys.readouterr().err


def test_the_figure_marks_gains_that_are_not_determined_and_shows_the_motors_constant():
    from bayesid.gains.figures import gain_figure
    from bayesid.results import Estimate

    def of(meta):
        return Estimate(("a.g", "b.g"), ("N m/A",) * 2, ("gain",) * 2, np.array([10.0, 9.0]), np.eye(2), "test", meta=meta)

    figure = gain_figure({"ml": of({"undetermined": {}}), "ls": of({"undetermined": {"b": "noise"}})}, ("a", "b"), of({}))
    labels = [[label.get_text() for label in axis.get_xticklabels()] for axis in figure.axes]
    assert labels == [["ml", "ls", "motor"], ["ml", "ls ?", "motor"]]
    assert "do not determine" in figure.get_supxlabel()
