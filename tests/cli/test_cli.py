"""The command line as a user meets it: results whole or not at all, one line and exit 2 for bad input."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bayesid.cli.main import COMMANDS, main
from bayesid.kinematics import JointMotion
from bayesid.logs import write_log
from bayesid.models import Model
from bayesid.results import Estimate, read_result
from bayesid.robots import load_robot
from bayesid.simulation import Sensors, synthetic_log


@pytest.fixture(scope="module")
def arm():
    return Model(load_robot("two_link"), "coulomb")


def recorded(model, seed, path):
    rng = np.random.default_rng(seed)
    time = np.arange(1500) * 0.01
    frequency = rng.uniform(0.2, 1.2, (6, 2))
    phase, size = rng.uniform(0, 2 * np.pi, (6, 2)), rng.uniform(0.1, 0.4, (6, 2))
    angle = 2 * np.pi * frequency * time[:, None, None] + phase
    speed = 2 * np.pi * frequency
    q, qd = (size * np.sin(angle)).sum(1), (size * speed * np.cos(angle)).sum(1)
    qdd = -(size * speed**2 * np.sin(angle)).sum(1)
    truth = model.nominal.copy()
    truth[-4:] = [0.6, 0.9, 0.3, 0.5]
    sensors = Sensors(effort_noise=0.4, effort_correlation=0.9)
    write_log(synthetic_log(model, JointMotion(time, q, qd, qdd), truth, sensors=sensors, seed=seed), path)
    return path


@pytest.fixture(scope="module")
def logs(arm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    return [recorded(arm, seed, folder / f"run{seed}.csv") for seed in (1, 2)]


@pytest.fixture(scope="module")
def result(logs, tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "arm"
    arguments = ["identify", str(logs[0]), "--validate", str(logs[1]), *COMMON, "--draws", "20", "--out", str(out)]
    assert main([*arguments, "--quiet"]) == 0
    return out


COMMON = ["--robot", "two_link", "--schema", "bayesid", "--friction", "coulomb"]


def test_identify_writes_the_promised_document(result, arm):
    document = read_result(result)
    assert document["command"] == "identify"
    assert document["base_dimension"] == arm.base.dimension
    assert {row["kind"] for row in document["parameters"]} >= {"base", "friction"}
    assert len(document["fit"]["rms"]) == 2
    assert len(document["validation"]) == 1
    assert document["physical"]["consistent"] is True
    assert min(document["physical"]["min_eigenvalue"]) > 0
    assert len(document["data"][0]["sha256"]) == 64
    assert document["data"][0]["steps"]
    assert set(document["timing_s"]) >= {"read", "compile", "solve", "total"}


def test_identified_friction_intervals_hold_the_truth(result):
    rows = {row["name"]: row for row in read_result(result)["parameters"]}
    names = [name for name in rows if name.endswith((".viscous", ".coulomb"))]
    inside = [
        rows[name]["interval95"][0] <= value <= rows[name]["interval95"][1]
        for name, value in zip(sorted(names), [0.9, 0.6, 0.5, 0.3])
    ]
    assert sum(inside) >= 3


def test_estimate_files_load_and_predict(result, logs):
    estimate = Estimate.load(result / "estimate.json")
    assert estimate.method == "lmi"
    assert estimate.draws.shape == (20, len(estimate))
    assert main(["validate", str(result), str(logs[1]), "--schema", "bayesid", "--quiet", "--max-nrmse", "0.5"]) == 0


def test_a_missed_goal_exits_with_one(result, logs):
    assert main(["validate", str(result), str(logs[1]), "--schema", "bayesid", "--quiet", "--max-nrmse", "1e-6"]) == 1


def test_the_report_is_one_file_without_network(result):
    page = (result / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "<script" not in page


def test_the_identified_urdf_reads_back_consistent(result):
    robot = load_robot(str(result / "identified.urdf"))
    estimate = Estimate.load(result / "estimate.json")
    for name in ("viscous", "coulomb"):
        found = estimate.select([f"{joint}.{name}" for joint in robot.joint_names]).mean
        np.testing.assert_allclose(robot.friction(name), found, rtol=1e-9)
    from bayesid.inertia import is_consistent

    assert np.all(is_consistent(robot.inertials))


def test_json_prints_the_document_and_nothing_else(logs, capsys):
    assert main(["identify", str(logs[0]), *COMMON, "--method", "wls", "--json", "--quiet"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["method"] == "wls"
    assert "physical" not in document


def test_a_result_can_be_written_over_but_a_strangers_folder_cannot(logs, tmp_path, capsys):
    stranger = tmp_path / "mine"
    stranger.mkdir()
    (stranger / "thesis.tex").write_text("x")
    arguments = ["identify", str(logs[0]), *COMMON, "--method", "wls", "--quiet", "--out"]
    assert main([*arguments, str(stranger)]) == 2
    assert [p.name for p in stranger.iterdir()] == ["thesis.tex"]
    assert "did not write" in capsys.readouterr().err


def test_load_friction_is_identified_from_its_own_reference_and_validated(logs, tmp_path):
    out = tmp_path / "load"
    arguments = ["identify", str(logs[0]), *COMMON, "--friction", "load", "--draws", "20", "--quiet", "--out", str(out)]
    assert main(arguments) == 0
    document = json.loads((out / "result.json").read_text())
    assert document["friction"] == "load"
    assert document["load_reference"]["change"] < 1e-3
    model = Estimate.load(out / "estimate.json").predictor.model
    assert len(model.reference) == model.rigid
    assert main(["validate", str(out), str(logs[1]), "--schema", "bayesid", "--quiet", "--max-nrmse", "0.5"]) == 0


BAD = {
    "no such log": (["identify", "nowhere.csv", *COMMON], "nowhere.csv"),
    "no such robot": (["identify", "LOG", "--robot", "ur99", "--schema", "bayesid"], "ur99"),
    "robot file missing": (["identify", "LOG", "--robot", "gone.urdf", "--schema", "bayesid"], "gone.urdf"),
    "other joint count": (["identify", "LOG", "--robot", "ur10e", "--schema", "bayesid"], "joints"),
    "unknown schema": (["identify", "LOG", "--robot", "two_link", "--schema", "nope"], "nope"),
    "unknown friction": (["identify", "LOG", *COMMON[:4], "--friction", "sticky"], "sticky"),
    "temperature not recorded": (["identify", "LOG", *COMMON[:4], "--friction", "temperature"], "no motor temperature"),
    "gains of the wrong length": (["identify", "LOG", *COMMON, "--drive-gains", "1,2,3"], "3 values"),
    "gains with a negative deviation": (["identify", "LOG", *COMMON, "--drive-gains", "5+--1,5"], "standard deviation"),
    "gains with a deviation of words": (["identify", "LOG", *COMMON, "--drive-gains", "5+-x,5"], "12+-0.5"),
    "gains that are words": (["identify", "LOG", *COMMON, "--drive-gains", "a,b"], "a,b"),
    "negative total mass": (["identify", "LOG", *COMMON, "--total-mass=-5:-1", "--draws", "20"], "total mass"),
    "mass bounds on a stranger": (["identify", "LOG", *COMMON, "--mass-bounds", "hand=0:1", "--draws", "20"], "hand"),
    "too few draws": (["identify", "LOG", *COMMON, "--draws", "1"], "at least 20"),
    "cutoff above the rate": (["identify", "LOG", *COMMON, "--cutoff", "80"], "cutoff"),
    "window of nothing": (["identify", "LOG@9000:9100", *COMMON], "9000"),
    "no result to validate": (["validate", "nowhere", "LOG", "--schema", "bayesid"], "nowhere"),
    "no data set": (["datasets", "fetch", "moon"], "moon"),
    "no result to report": (["report", "nowhere", "--out", "x.html"], "nowhere"),
}


@pytest.mark.parametrize("case", BAD, ids=[name.replace(" ", "-") for name in BAD])
def test_bad_input_is_one_line_and_exit_two(case, logs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments, word = BAD[case]
    arguments = [a.replace("LOG", str(logs[0])) for a in arguments]
    if arguments[0] == "identify":
        arguments += ["--out", "out", "--quiet"]
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert word in printed.err
    assert list(tmp_path.iterdir()) == []


def test_a_joint_that_never_moves_is_named(arm, tmp_path, capsys):
    time = np.arange(800) * 0.01
    q = np.column_stack([0.5 * np.sin(2 * time), np.full(800, 0.3)])
    qd = np.column_stack([np.cos(2 * time), np.zeros(800)])
    qdd = np.column_stack([-2 * np.sin(2 * time), np.zeros(800)])
    path = tmp_path / "still.csv"
    write_log(synthetic_log(arm, JointMotion(time, q, qd, qdd)), path)
    assert main(["identify", str(path), *COMMON, "--quiet"]) == 2
    assert arm.robot.joint_names[1] in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_imports_neither_jax_nor_cvxpy(arguments):
    code = (
        "import sys\nfrom bayesid.cli.main import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'jax', 'cvxpy', 'numpyro', 'matplotlib', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_robots_show_names_the_impossible_link(capsys):
    assert main(["robots", "show", "panda"]) == 0
    assert "link4" in capsys.readouterr().out


def test_an_unknown_command_says_which_there_are(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["identfy"])
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    assert "identify" in printed
    assert printed.count("\n") == 1


def test_a_missing_option_is_one_line(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["identify", "run.csv"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("value", ["2", "nan", "x"])
def test_a_delay_is_a_time_below_a_second(value, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["identify", "a.csv", "--robot", "ur10e", "--schema", "ur-rtde", "--delay", value])
    assert stop.value.code == 2
    assert "is not a number of seconds between -1 and 1" in capsys.readouterr().err
