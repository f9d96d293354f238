"""Strange robots, logs, options and result folders: one line and exit 2, or an answer that says what is wrong with it."""

import json
import os

import numpy as np
import pytest

from bayesid.cli.main import main
from bayesid.models import Model
from bayesid.results import read_result
from bayesid.robots import load_robot

COMMON = ["--schema", "bayesid", "--draws", "20", "--quiet"]
TWO_LINK = ["--robot", "two_link", "--friction", "coulomb", *COMMON]
ROWS = 1500


def motion(dof, seed):
    rng = np.random.default_rng(seed)
    time = np.arange(ROWS) * 0.01
    speed = 2 * np.pi * rng.uniform(0.2, 1.2, (6, dof))
    phase, size = rng.uniform(0, 2 * np.pi, (6, dof)), rng.uniform(0.1, 0.4, (6, dof))
    angle = speed * time[:, None, None] + phase
    return time, (size * np.sin(angle)).sum(1), (size * speed * np.cos(angle)).sum(1), -(size * speed**2 * np.sin(angle)).sum(1)


def recording(robot, seed=1):
    """Columns of a log of a robot with friction and autocorrelated noise."""
    from scipy.signal import lfilter

    model = Model(load_robot(robot), "coulomb")
    time, q, qd, qdd = motion(model.robot.dof, seed)
    truth = model.nominal.copy()
    truth[-2 * model.robot.dof :] = np.tile([0.6, 0.9], model.robot.dof)
    noise = lfilter([0.17], [1.0, -0.9], np.random.default_rng(seed + 100).normal(size=q.shape), axis=0)
    return {"time": time, "position": q, "velocity": qd, "torque": model.torque(truth, q, qd, qdd) + noise}


def write(path, columns):
    parts, names = [], []
    for name, values in columns.items():
        values = np.asarray(values)
        names += [name] if values.ndim == 1 else [f"{name}_{j + 1}" for j in range(values.shape[1])]
        parts.append(values.reshape(len(values), -1))
    np.savetxt(path, np.hstack(parts), delimiter=",", header=",".join(names), comments="", fmt="%.12g")
    return str(path)


@pytest.fixture(scope="module")
def columns():
    return recording("two_link")


@pytest.fixture(scope="module")
def logs(columns, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    return [write(folder / "run1.csv", columns), write(folder / "run2.csv", recording("two_link", 2))]


@pytest.fixture(scope="module")
def result(logs, tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "arm"
    assert main(["identify", logs[0], *TWO_LINK, "--method", "wls", "--out", str(out)]) == 0
    return out


def refused(arguments, capsys, tmp_path):
    """The line on standard error of a command that must exit with 2 and write nothing."""
    before = sorted(tmp_path.rglob("*"))
    try:
        status = main([str(a) for a in arguments])
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
    return printed.err


def clocked(step):
    return lambda c: {**c, "time": np.arange(ROWS) * step}


def without(*names):
    return lambda c: {k: v for k, v in c.items() if k not in names}


def changed(name, change):
    return lambda c: {**c, name: change(c[name].copy())}


def second(value):
    def change(values):
        values[:, 1] = value
        return values

    return change


LOGS = {
    "two rows": (lambda c: {k: v[:2] for k, v in c.items()}, "at least 16"),
    "twenty rows": (lambda c: {k: v[:20] for k, v in c.items()}, "a longer log"),
    "hundred rows": (lambda c: {k: v[:100] for k, v in c.items()}, "longer log"),
    "a row a second": (lambda c: clocked(1.0)(without("velocity")(c)), "unit of time"),
    "milliseconds declared seconds": (lambda c: clocked(10.0)(without("velocity")(c)), "unit of time"),
    "nanoseconds declared seconds": (lambda c: clocked(1e7)(without("velocity")(c)), "unit of time"),
    "times of 1e300": (clocked(1e297), "implausible value 1e+297"),
    "one stamp far ahead": (changed("time", lambda t: np.append(t[:-1], 1e300)), "row 1500"),
    "a gap of a day": (changed("time", lambda t: np.append(t[:-1], 86400.0)), "longest gap from 14.98 to 86400 s"),
    "time running back": (changed("time", lambda t: t[::-1]), "time goes back"),
    "every row twice": (lambda c: {k: np.repeat(v, 2, axis=0) for k, v in c.items()}, "time repeats"),
    "joint that stands": (lambda c: changed("velocity", second(0.0))(changed("position", second(0.3))(c)), "joint2"),
    "all joints stand": (
        lambda c: {**c, "position": c["position"] * 0, "velocity": c["velocity"] * 0},
        "no sample of any joint",
    ),
    "degrees": (changed("position", np.degrees), "degrees"),
    "one joint in degrees": (changed("position", lambda q: q * [1.0, 180 / np.pi]), "joint 2"),
    "opposite velocity": (changed("velocity", np.negative), "opposite signs"),
    "torque that is zero": (changed("torque", np.zeros_like), "was not measured"),
    "one torque constant": (changed("torque", second(3.0)), "joint2"),
    "one torque NaN": (changed("torque", second(np.nan)), "torque_2"),
    "currents without gains": (lambda c: {**without("torque")(c), "current": c["torque"] / 5}, "--drive-gains"),
    "no effort": (without("torque"), "no current was recorded"),
}


@pytest.mark.parametrize("case", LOGS, ids=[name.replace(" ", "-") for name in LOGS])
def test_a_strange_log_is_refused(case, columns, tmp_path, capsys):
    change, word = LOGS[case]
    log = write(tmp_path / "log.csv", change(columns))
    assert word in refused(["identify", log, *TWO_LINK, "--out", tmp_path / "out"], capsys, tmp_path)


def test_a_slow_log_says_that_its_motion_is_too_fast(tmp_path, capsys):
    time = np.arange(300) / 3.0
    q = np.column_stack([np.sin(6.0 * time), np.cos(5.0 * time)])
    log = write(tmp_path / "slow.csv", {"time": time, "position": q, "torque": q + 1.0})
    assert "too fast for 3 rows a second" in refused(["identify", log, *TWO_LINK], capsys, tmp_path)


def test_bytes_that_are_no_text_are_named_as_such(tmp_path, capsys):
    for number, content in enumerate(("time,position_1\n0,1\n".encode("utf-16"), b"\x1f\x8b\x08\x00junk|junk\n1|2\n")):
        path = tmp_path / f"binary{number}.csv"
        path.write_bytes(content)
        assert "not a text file" in refused(["identify", path, *TWO_LINK], capsys, tmp_path)


@pytest.mark.parametrize("gains", ["0,5", "-5,5", "inf,5", "nan,5", "1e300,1", "5", "5,5,5", "", "5,", "5;5"])
def test_gains_that_are_none_are_refused(gains, columns, tmp_path, capsys):
    log = write(tmp_path / "current.csv", {**without("torque")(columns), "current": columns["torque"] / 5})
    assert "gain" in refused(["identify", log, *TWO_LINK, f"--drive-gains={gains}"], capsys, tmp_path)


OPTIONS = {
    "same log twice": (["LOG", "LOG"], "data that count twice"),
    "overlapping windows": (["LOG@1:900", "LOG@600:1500"], "data that count twice"),
    "gains for torques": (["LOG", "--drive-gains", "5,5"], "would not be used"),
    "negative seed": (["LOG", "--seed", "-1"], "--seed"),
    "pull without end": (["LOG", "--pull", "inf"], "--pull"),
    "negative pull": (["LOG", "--pull=-1"], "--pull"),
    "pull on least squares": (["LOG", "--pull", "1", "--method", "wls"], "method lmi only"),
    "bounds on least squares": (["LOG", "--mass-bounds", "link1=1:2", "--method", "ols"], "method lmi only"),
    "bounds that are none": (["LOG", "--mass-bounds", "link1="], "--mass-bounds link1="),
    "bounds that are NaN": (["LOG", "--total-mass", "nan:4"], "total mass"),
    "goal without held-out log": (["LOG", "--max-nrmse", "0.3"], "--validate"),
    "goal that is NaN": (["LOG", "--validate", "LOG", "--max-nrmse", "nan"], "--max-nrmse"),
    "no draws": (["LOG", "--draws", "0"], "at least 20"),
    "cutoff of zero": (["LOG", "--cutoff", "0"], "--cutoff"),
    "cutoff that removes the motion": (["LOG", "--cutoff", "0.5"], "cutoff too low"),
    "window that ends before it starts": (["LOG", "--rows", "5:3"], "5:3"),
    "robot without a name": (["LOG", "--robot", ""], "name is empty"),
    "output without a name": (["LOG", "--out", ""], "--out"),
    "output that is a file": (["LOG", "--out", "LOG"], "is a file"),
    "output inside a file": (["LOG", "--out", "LOG/x", "--method", "wls"], "cannot be written"),
}


@pytest.mark.parametrize("case", OPTIONS, ids=[name.replace(" ", "-") for name in OPTIONS])
def test_a_strange_option_is_refused(case, logs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments, word = OPTIONS[case]
    given = [a.replace("LOG", logs[0]) for a in arguments]
    assert word in refused(["identify", *TWO_LINK, *given], capsys, tmp_path)


POSTERIOR_OPTIONS = {
    "no chains": (["LOG", "--chains", "0"], "--chains"),
    "draws below zero": (["LOG", "--draws", "-3"], "--draws"),
    "no robots to export": (["LOG", "--export-samples", "0", "--out", "out"], "--export-samples"),
    "same log twice": (["LOG", "LOG"], "data that count twice"),
    "same log twice for the friction": (["LOG", "LOG", "--friction", "auto"], "data that count twice"),
    "dead held-out log": (["LOG", "--validate", "DEAD"], "was not measured"),
    "dead effort": (["DEAD"], "was not measured"),
    "effort of rounding errors": (["TINY"], "check the unit and size of the effort"),
    "gains longer than a file name": (["LOG", "--drive-gains", "x" * 500], "neither a file nor"),
    "log longer than a file name": (["x" * 500], "File name too long"),
}


@pytest.mark.parametrize("case", POSTERIOR_OPTIONS, ids=[name.replace(" ", "-") for name in POSTERIOR_OPTIONS])
def test_a_strange_posterior_is_refused(case, columns, logs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    noise = np.random.default_rng(0).normal(size=columns["torque"].shape)
    files = {
        "LOG": logs[0],
        "DEAD": write(tmp_path / "dead.csv", {**columns, "torque": 0 * noise}),
        "TINY": write(tmp_path / "tiny.csv", {**columns, "torque": 1e-12 * noise}),
    }
    arguments, word = POSTERIOR_OPTIONS[case]
    given = [files.get(a, a) for a in arguments]
    options = ["--robot", "two_link", "--schema", "bayesid", "--quiet", "--method", "laplace"]
    assert word in refused(["posterior", *options, *given], capsys, tmp_path)


def test_a_posterior_knows_what_it_was_fitted_to(logs, tmp_path, capsys):
    options = ["--robot", "two_link", "--schema", "bayesid", "--quiet", "--method", "laplace", "--json"]
    out = str(tmp_path / "out")
    assert main(["posterior", logs[0], *options, "--validate", logs[0], "--out", out]) == 0
    assert "says nothing about other motions" in words_of(capsys)
    assert main(["validate", out, logs[0], "--schema", "bayesid", "--quiet", "--json"]) == 0
    assert "says nothing about other motions" in words_of(capsys)


def test_a_posterior_of_torques_of_other_joints_is_warned_of(columns, tmp_path, capsys):
    log = write(tmp_path / "swapped.csv", changed("torque", lambda t: t[:, ::-1])(columns))
    options = ["--robot", "two_link", "--schema", "bayesid", "--quiet", "--method", "laplace", "--json"]
    assert main(["posterior", log, *options]) == 0
    assert "order of joints" in words_of(capsys)


def test_a_prior_of_scales_that_the_data_contradict_is_warned_of(tmp_path, capsys):
    robot = tmp_path / "small.urdf"
    robot.write_text(ROBOTS["one joint"][0].replace('effort="90"', 'effort="90000"'))
    log = write(tmp_path / "log.csv", recording(robot))
    options = [
        "--robot",
        str(robot),
        "--schema",
        "bayesid",
        "--quiet",
        "--json",
        "--method",
        "laplace",
        "--friction",
        "coulomb",
    ]
    assert main(["posterior", log, *options, "--prior", "log-cholesky"]) == 0
    assert "contradicts the data on j.rotor_inertia" in words_of(capsys)


PAYLOADS = {
    "exchanged logs": (["FREE", "--unloaded", "HEAVY"], "negative mass"),
    "the same log": (["HEAVY", "--unloaded", "HEAVY"], "data that count twice"),
    "gains for torques": (["HEAVY", "--unloaded", "FREE", "--drive-gains", "5,5,5,5,5,5"], "would not be used"),
    "vague gains": (["HEAVY", "--unloaded", "FREE", "--drive-gains", "5+-9,5,5,5,5,5"], "too uncertain"),
    "plan of no mass": (["--plan", "--mass-guess", "nan"], "--mass-guess"),
    "plan into a folder": (["--plan", "--out", "out"], "--out has no part"),
    "plan of another arm": (["--plan", "--robot", "two_link"], "has 2 joints"),
}


@pytest.fixture(scope="module")
def lifts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lifts")
    model = Model(load_robot("ur3e"), "coulomb")
    held = model.nominal.copy()
    held[50:54] += [3.0, 0.1, 0.2, 0.3]
    held[54:60] += 0.05 * np.array([1, 0, 0, 1, 0, 1])
    out = {}
    for name, values in (("FREE", model.nominal), ("HEAVY", held)):
        time, q, qd, qdd = motion(6, len(name))
        out[name] = write(
            folder / f"{name}.csv", {"time": time, "position": q, "velocity": qd, "torque": model.torque(values, q, qd, qdd)}
        )
    return out


@pytest.mark.parametrize("case", PAYLOADS, ids=[name.replace(" ", "-") for name in PAYLOADS])
def test_a_strange_payload_is_refused(case, lifts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments, word = PAYLOADS[case]
    given = [lifts.get(a, a) for a in arguments]
    assert word in refused(["payload", "--robot", "ur3e", "--schema", "bayesid", "--quiet", *given], capsys, tmp_path)


@pytest.mark.parametrize("case", ["one joint", "vertical slide"])
def test_gains_of_a_robot_that_hardly_moves_its_load_are_refused(case, tmp_path, capsys):
    robot = tmp_path / "odd.urdf"
    robot.write_text(ROBOTS[case][0])
    run = without("torque")(found := recording(robot)) | {"current": found["torque"] / 5}
    log = write(tmp_path / "free.csv", run)
    common = ["--unloaded", log, "--payload-mass", "3", "--robot", robot, "--schema", "bayesid", "--quiet"]
    assert "whatever its motion" in refused(["drive-gains", *common, "--plan", "--assume", "5"], capsys, tmp_path)
    loaded = write(tmp_path / "loaded.csv", {**run, "current": run["current"] + np.sin(run["position"])})
    assert "whatever its motion" in refused(["drive-gains", *common, "--loaded", loaded], capsys, tmp_path)


@pytest.mark.parametrize("method", ["ols", "wls", "gls", "robust", "lmi"])
@pytest.mark.parametrize("covariance", ["hac", "ar", "bootstrap", "white"])
@pytest.mark.filterwarnings("ignore:the white-noise covariance")
def test_every_method_goes_with_every_covariance(method, covariance, logs, capsys):
    assert main(["identify", logs[0], *TWO_LINK, "--method", method, "--covariance", covariance, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["warnings"] == []
    assert all(row["std"] > 0 for row in document["parameters"])


def words_of(capsys):
    return " ".join(json.loads(capsys.readouterr().out)["warnings"])


def test_torques_of_other_joints_are_warned_of(columns, tmp_path, capsys):
    log = write(tmp_path / "swapped.csv", changed("torque", lambda t: t[:, ::-1])(columns))
    assert main(["identify", log, *TWO_LINK, "--json"]) == 0
    assert "order of joints" in words_of(capsys)


def test_torques_of_the_wrong_sign_are_warned_of(columns, tmp_path, capsys):
    log = write(tmp_path / "sign.csv", changed("torque", np.negative)(columns))
    assert main(["identify", log, *TWO_LINK, "--json"]) == 0
    words = words_of(capsys)
    assert "negative beyond doubt" in words
    assert "Physical consistency" in words


def test_a_held_out_log_that_was_fitted_to_is_warned_of(logs, result, capsys):
    assert main(["identify", logs[0], *TWO_LINK, "--method", "wls", "--validate", logs[0], "--json"]) == 0
    assert "says nothing about other motions" in words_of(capsys)
    assert main(["validate", str(result), logs[0], "--schema", "bayesid", "--quiet", "--json"]) == 0
    assert "says nothing about other motions" in words_of(capsys)
    assert main(["validate", str(result), logs[1], "--schema", "bayesid", "--quiet", "--json"]) == 0
    assert words_of(capsys) == ""


def test_epoch_times_change_nothing(columns, logs, tmp_path, capsys):
    found = []
    for log in (logs[0], write(tmp_path / "epoch.csv", changed("time", lambda t: np.round(t + 1.7e9, 2))(columns))):
        assert main(["identify", log, *TWO_LINK, "--method", "wls", "--json"]) == 0
        found.append([row["estimate"] for row in json.loads(capsys.readouterr().out)["parameters"]])
    # Stamps of 1.7e9 s resolve 0.24 us: the grid's step is wrong by that much.
    np.testing.assert_allclose(found[1], found[0], rtol=1e-3, atol=1e-3)


def test_rows_that_the_robot_cannot_reach_are_dropped_and_said(columns, tmp_path, capsys):
    bad = {name: values.copy() for name, values in columns.items()}
    bad["position"][[3, 700]] = 253.0
    log = write(tmp_path / "bad.csv", bad)
    robot = tmp_path / "arm.urdf"
    robot.write_text(urdf(LINK.format("l1"), LINK.format("l2"), joint("joint1", "base", "l1"), joint("joint2", "l1", "l2")))
    arguments = ["identify", log, "--robot", str(robot), *COMMON, "--friction", "coulomb", "--method", "wls", "--json"]
    assert "253 rad" in refused(arguments, capsys, tmp_path)
    assert main([*arguments, "--drop-bad-rows"]) == 0
    assert "dropped 2 rows" in json.loads(capsys.readouterr().out)["data"][0]["notes"][0]


def test_validating_into_the_results_own_folder_keeps_the_result(logs, result, tmp_path, capsys):
    line = refused(["validate", result, logs[1], "--schema", "bayesid", "--quiet", "--out", result], capsys, tmp_path)
    assert "would be lost" in line
    assert (result / "estimate.json").is_file()


def test_a_users_file_in_a_result_folder_is_kept(logs, result, tmp_path, capsys):
    (result / "notes.md").write_text("mine")
    try:
        line = refused(["identify", logs[0], *TWO_LINK, "--method", "wls", "--out", result], capsys, tmp_path)
        assert "notes.md" in line
        assert (result / "notes.md").read_text() == "mine"
    finally:
        (result / "notes.md").unlink()


def put(*path, value):
    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


ESTIMATES = {
    "cut short": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "a list": lambda text: "[]",
    "mean not finite": put("mean", 0, value=float("nan")),
    "covariance not finite": put("covariance", 0, 0, value=float("inf")),
    "negative variance": put("covariance", 0, 0, value=-5.0),
    "covariance of one": put("covariance", value=[[1.0]]),
    "unknown parameter": put("names", 0, value="foo"),
    "a name twice": lambda data: data["names"].__setitem__(0, data["names"][1]),
    "names turned around": lambda data: data["names"].reverse(),
    "no draws": put("draws", value=[]),
    "negative degrees of freedom": put("dof", value=-3),
    "predictor from elsewhere": put("predictor", "class", value="os:system"),
    "no predictor": put("predictor", value=None),
    "noise of one joint": put("predictor", "data", "noise", value=[1.0]),
    "model of another kind": put("predictor", "data", "model", "rotor", value=False),
    "unknown friction law": put("predictor", "data", "model", "friction", "name", value="sticky"),
    "robot without joints": put("predictor", "data", "model", "robot", "joints", value=[]),
    "gains of one joint": put("predictor", "data", "gains", value=[1.0]),
}


@pytest.mark.parametrize("case", ESTIMATES, ids=[name.replace(" ", "-") for name in ESTIMATES])
def test_a_damaged_estimate_is_refused(case, logs, result, tmp_path, capsys):
    text = (result / "estimate.json").read_text()
    if case in ("cut short", "empty", "a list"):
        text = ESTIMATES[case](text)
    else:
        data = json.loads(text)
        ESTIMATES[case](data)
        text = json.dumps(data)
    path = tmp_path / "estimate.json"
    path.write_text(text)
    refused(["validate", path, logs[1], "--schema", "bayesid", "--quiet"], capsys, tmp_path)


DOCUMENTS = {
    "another schema": put("schema", value=99),
    "parameters that are a number": put("parameters", value=5),
    "parameters without names": put("parameters", value=[{}]),
    "an estimate that is a word": put("parameters", 0, "estimate", value="x"),
    "data that are a number": put("data", value=4),
    "steps that are words": put("data", 0, "steps", value=["x"]),
}


@pytest.mark.parametrize("case", DOCUMENTS, ids=[name.replace(" ", "-") for name in DOCUMENTS])
def test_a_damaged_document_is_not_reported(case, result, tmp_path, capsys):
    data = json.loads((result / "result.json").read_text())
    DOCUMENTS[case](data)
    (tmp_path / "result.json").write_text(json.dumps(data))
    refused(["report", tmp_path, "--out", tmp_path / "page.html"], capsys, tmp_path)


def test_a_report_does_not_mix_two_results(result, tmp_path, capsys):
    (tmp_path / "result.json").write_text((result / "result.json").read_text())
    data = json.loads((result / "estimate.json").read_text())
    data["names"][0] = "elsewhere.m"
    (tmp_path / "estimate.json").write_text(json.dumps(data))
    assert "another result" in refused(["report", tmp_path, "--out", tmp_path / "page.html"], capsys, tmp_path)


def test_a_report_does_not_overwrite_a_result(result, tmp_path, capsys):
    assert ".html" in refused(["report", result, "--out", result / "result.json"], capsys, tmp_path)
    assert read_result(result)["command"] == "identify"


def test_a_reports_words_are_no_markup(result, tmp_path):
    data = json.loads((result / "result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**data, "robot": "<script>alert(1)</script>"}))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    assert "<script" not in (tmp_path / "page.html").read_text()


LINK = (
    '<link name="{}"><inertial><origin xyz="0.05 0.02 0.1"/><mass value="2"/>'
    '<inertia ixx="0.02" iyy="0.03" izz="0.015" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)


def joint(name, parent, child, kind="revolute", axis="0 1 0", limit='<limit lower="-3" upper="3" effort="90" velocity="9"/>'):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="0.3 0 0"/>'
        f'<axis xyz="{axis}"/>{limit}</joint>'
    )


def urdf(*parts):
    return '<robot name="odd"><link name="base"/>' + "".join(parts) + "</robot>"


ROBOTS = {
    "one joint": (urdf(LINK.format("a"), joint("j", "base", "a")), 5),
    "vertical slide": (urdf(LINK.format("a"), joint("z", "base", "a", "prismatic", "0 0 1")), 4),
    "massless": (urdf('<link name="a"/>', joint("j", "base", "a", limit="")), 5),
}


@pytest.mark.parametrize("case", ROBOTS, ids=[name.replace(" ", "-") for name in ROBOTS])
def test_an_odd_robot_is_identified(case, tmp_path, capsys):
    text, dimension = ROBOTS[case]
    robot = tmp_path / "odd.urdf"
    robot.write_text(text)
    log = write(tmp_path / "log.csv", recording(robot))
    assert main(["identify", log, "--robot", str(robot), "--friction", "coulomb", *COMMON, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["base_dimension"] == dimension
    assert document["physical"]["consistent"]
    rows = {row["name"]: row for row in document["parameters"]}
    friction = [name for name in rows if name.endswith(".viscous")]
    low, high = rows[friction[0]]["interval95"]
    assert low - 0.2 < 0.6 < high + 0.2


REFUSED_ROBOTS = {
    "loop": (urdf(LINK.format("a"), LINK.format("b"), joint("j", "a", "b"), joint("k", "b", "a")), "loop"),
    "two parents": (urdf(LINK.format("a"), joint("j", "base", "a"), joint("k", "base", "a")), "loop"),
    "axis of no length": (urdf(LINK.format("a"), joint("j", "base", "a", axis="0 0 0")), "axis"),
    "floating": (urdf(LINK.format("a"), joint("j", "base", "a", "floating")), "floating"),
    "nothing moves": (urdf(LINK.format("a"), joint("j", "base", "a", "fixed")), "no joint moves"),
    "mimic": (urdf(LINK.format("a"), joint("j", "base", "a", limit='<mimic joint="j"/>')), "mimic"),
    "cut short": ("<robot><link", "XML"),
    "no text": ("", "XML"),
}


@pytest.mark.parametrize("case", REFUSED_ROBOTS, ids=[name.replace(" ", "-") for name in REFUSED_ROBOTS])
def test_a_robot_that_cannot_be_is_refused(case, tmp_path, capsys):
    text, word = REFUSED_ROBOTS[case]
    (tmp_path / "odd.urdf").write_text(text)
    assert word in refused(["robots", "show", tmp_path / "odd.urdf"], capsys, tmp_path)


@pytest.mark.parametrize("target", [".", "no/such/place.urdf", "own.urdf"])
def test_a_projection_that_cannot_be_written_is_refused(target, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "own.urdf"
    own.write_text(urdf(LINK.format("a"), joint("j", "base", "a")))
    refused(["robots", "show", "own.urdf", "--project", target], capsys, tmp_path)
    assert own.read_text().startswith("<robot")


def test_a_closed_pipe_is_no_missed_goal(monkeypatch):
    def closed(args):
        raise BrokenPipeError

    monkeypatch.setattr("bayesid.cli.robots.run", closed)
    with open(os.devnull, "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        assert main(["robots"]) == 141
