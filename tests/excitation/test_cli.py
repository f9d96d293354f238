"""`bayesid excite`: design to a folder, check a run, one-line errors."""

import json

import numpy as np
import pytest

from bayesid.cli import main
from bayesid.excitation import Excitation

LIMITS = "lower = -2.6\nupper = 2.6\nvelocity = 3.0\nacceleration = 10.0\ntorque = [45.0, 20.0]\n"


@pytest.fixture(scope="module")
def designed(tmp_path_factory):
    """Folder of a small design made by the command line."""
    folder = tmp_path_factory.mktemp("excite")
    limits = folder / "limits.toml"
    limits.write_text(LIMITS)
    out = folder / "design"
    motion = ["--robot", "two_link", "--period", "6", "--harmonics", "3", "--start", "1.8,0.5", "--limits", str(limits)]
    work = ["--friction", "coulomb", "--wall", "0,1,0,-0.5", "--starts", "1", "--steps", "20", "--seconds", "1e5"]
    assert main(["excite", *motion, *work, "--formats", "csv,ros2", "--out", str(out), "--quiet"]) == 0
    return out


def test_design_folder_holds_motion_formats_figures_and_verdict(designed):
    names = {path.name for path in designed.iterdir()}
    assert names == {
        "trajectory.json",
        "trajectory.csv",
        "joint_trajectory.yaml",
        "motion.svg",
        "path.svg",
        "animation.html",
        "result.json",
    }
    document = json.loads((designed / "result.json").read_text())
    assert document["command"] == "excite"
    assert document["certificate"]["feasible"] is True
    assert len(document["excitation"]["predicted_std"]) == document["base_dimension"]
    excitation = Excitation.load(designed / "trajectory.json")
    assert excitation.limits.velocity.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(("amplitude", "status"), [(1.0, 0), (0.6, 1)], ids=["faithful", "shrunk"])
def test_check_tells_a_faithful_run_from_another(designed, tmp_path, capsys, amplitude, status):
    excitation = Excitation.load(designed / "trajectory.json")
    time = np.arange(0.0, 9.0, 0.01)
    q = excitation.motion(np.clip(time - 1.2, 0.0, 6.0))[0]
    q = excitation.start + amplitude * (q - excitation.start)
    torque = np.zeros_like(q)
    log = tmp_path / "run.csv"
    header = "time,position_1,position_2,torque_1,torque_2"
    np.savetxt(log, np.column_stack([time, q, torque]), delimiter=",", header=header, comments="")
    command = ["excite", "--check", str(log), str(designed / "trajectory.json"), "--schema", "bayesid", "--json"]
    assert main(command) == status
    found = json.loads(capsys.readouterr().out)["execution"]
    assert found["as_designed"] is (status == 0)
    assert found["start_s"] == pytest.approx(1.2, abs=2e-3)
    worst = max(found["std_ratio"].values())
    assert worst < 1.1 if status == 0 else worst > 1.2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "name the robot with --robot"),
        (["--robot", "two_link"], "joint 'joint1' has no limit"),
        (["--robot", "two_link", "--start", "1"], "--start 1: has 1 values, needs 2"),
        (["--robot", "two_link", "--start", "a,b"], "not comma-separated numbers"),
        (["--robot", "two_link", "--hold", "wrist"], "--hold wrist: robot 'two_link' has the joints joint1, joint2"),
        (["--robot", "two_link", "--objective", "ds-optimal"], "needs --subset"),
        (["--robot", "two_link", "--objective", "ds-optimal", "--subset", "x"], "no base parameter 'x'"),
        (["--robot", "two_link", "--objective", "ds-optimal", "--subset", "gains"], "needs --gains and --load-mass"),
        (["--robot", "two_link", "--subset", "friction"], "--subset belongs to --objective ds-optimal"),
        (["--robot", "two_link", "--objective", "expected-information"], "needs --prior RESULT"),
        (["--robot", "two_link", "--formats", "krl"], "unknown format 'krl'"),
        (["--robot", "two_link", "--period", "0"], "period must be a positive number"),
        (["--robot", "two_link", "--tool-box", "1,2,3"], "--tool-box needs six values"),
        (["--robot", "two_link", "--limits", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["--check", "run.csv", "nowhere.json"], "--check needs --schema"),
        (["--check", "run.csv", "nowhere.json", "--schema", "bayesid"], "nowhere.json: cannot be read"),
    ],
)
def test_bad_requests_end_with_one_line_and_status_2(options, words, capsys):
    assert main(["excite", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_check_takes_the_name_of_a_registered_recording(designed, ur10e_data, monkeypatch, capsys):
    monkeypatch.setenv("BAYESID_DATA", str(ur10e_data.parent))
    name = "ur10e_innopolis/ur-20_02_10-30sec_12harm.csv"
    command = ["excite", "--check", name, str(designed / "trajectory.json"), "--schema", "ur10e-innopolis"]
    assert main(command) == 2
    assert "joints" in capsys.readouterr().err


def test_the_figure_of_the_motion_is_entitled_in_words(designed):
    from bayesid.excitation.figures import motion_figure

    excitation = Excitation.load(designed / "trajectory.json")
    figure = motion_figure(excitation, excitation.robot)
    assert figure.get_suptitle() == "two_link: fourier-quintic motion of 6 s, within all limits"
