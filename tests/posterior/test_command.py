"""bayesid posterior, called as the command line calls it."""

import argparse
import json

import numpy as np
import pytest

from bayesid.cli import posterior as command
from bayesid.dynamics import stribeck_law
from bayesid.errors import BayesidError
from bayesid.kinematics import JointMotion
from bayesid.logs import write_log
from bayesid.models import Model
from bayesid.simulation import Sensors, synthetic_log


@pytest.fixture(scope="module")
def log_file(arm, truth, simulate, tmp_path_factory):
    run = simulate(arm, truth, samples=1000, seed=21)
    sensors = Sensors(effort_noise=0.3, effort_correlation=0.9)
    log = synthetic_log(arm, JointMotion(run.time, run.q, run.qd, run.qdd), truth, sensors=sensors)
    return write_log(log, tmp_path_factory.mktemp("log") / "run.csv")


def call(capsys, *words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    status = command.run(parser.parse_args([str(w) for w in words]))
    return status, capsys.readouterr().out


def test_result_holds_parameters_diagnostics_and_draws(log_file, tmp_path, capsys):
    out = tmp_path / "result"
    words = (log_file, "--robot", "two_link", "--schema", "bayesid", "--json", "--quiet", "--out", out)
    status, text = call(capsys, *words, "--chains", 2, "--draws", 300, "--warmup", 150, "--export-samples", 2)
    document = json.loads(text)
    assert status == (1 if document["problems"] else 0)
    assert document["command"] == "posterior"
    assert document["diagnostics"]["divergences"] == 0
    assert document["physical"]["consistent"]
    assert {"name", "unit", "kind", "estimate", "std", "interval95"} <= set(document["parameters"][0])
    assert len(list((out / "robots").glob("*.urdf"))) == 2
    assert (out / "posterior.nc").is_file()
    assert json.loads((out / "result.json").read_text())["parameters"] == document["parameters"]


def test_chains_too_short_to_mix_end_with_status_one_and_a_reason(log_file, capsys):
    words = (log_file, "--robot", "two_link", "--schema", "bayesid", "--quiet")
    status, text = call(capsys, *words, "--chains", 2, "--draws", 10, "--warmup", 1)
    assert status == 1
    assert "problem: " in text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--prior-dof", 0), "degrees of freedom"),
        (("--prior-dof", -4), "degrees of freedom"),
        (("--prior-robot", "ur5"), "has 6 joints"),
        (("--export-samples", 3), "--out"),
        (("--friction", "sticky"), "unknown friction law"),
        (("--friction", "temperature"), "no motor temperature"),
        (("--friction", "coulomb", "--breakaway-speed", 0.1), "belongs to friction law stribeck"),
        (("--friction", "stribeck", "--likelihood", "white"), "calibrated likelihood"),
        (("--total-mass", -1), "total mass"),
        (("--total-mass", 30, "--prior-robot", "two_link"), "give one of them"),
        (("--drive-gains", "5,5"), "would not be used"),
        (("--method", "laplace", "--chains", 1, "--draws", 19), "at least 20 draws"),
        (("--prior", "log-cholesky", "--prior-spread", "1e300,0.1,0.2"), "from 0.0001 to 10"),
        (("--prior", "log-cholesky", "--prior-dof", 8), "--prior-spread"),
        (("--prior", "log-cholesky", "--friction", "stribeck"), "breakaway speeds are inferred with a Wishart prior"),
        (("--prior-spread", "0.3,0.1,0.2"), "--prior log-cholesky"),
        (("--prior", "log-cholesky", "--prior-spread", "0.3,0.1"), "three numbers"),
        (("--prior", "log-cholesky", "--prior-spread", "0.3,-0.1,0.2"), "spread of size"),
        (("--prior", "log-cholesky", "--prior-robot", "ur5"), "has 6 joints"),
        (("--prior", "log-cholesky", "--total-mass", -1), "total mass"),
    ],
)
def test_bad_input_is_one_line(log_file, capsys, words, reason):
    with pytest.raises(BayesidError, match=reason) as error:
        call(capsys, log_file, "--robot", "two_link", "--schema", "bayesid", "--quiet", *words)
    assert "\n" not in str(error.value)


def test_stribeck_friction_comes_with_a_breakaway_speed_for_each_joint(log_file, capsys):
    words = (log_file, "--robot", "two_link", "--schema", "bayesid", "--json", "--quiet", "--friction", "stribeck")
    status, text = call(capsys, *words, "--method", "laplace")
    document = json.loads(text)
    assert status == 0
    rows = {row["name"]: row for row in document["parameters"]}
    assert {rows[f"{joint}.breakaway_speed"]["unit"] for joint in document["joints"]} == {"rad/s"}
    assert len(document["covariance"]["breakaway"]["interval"]) == 2
    held, text = call(capsys, *words, "--breakaway-speed", 0.1, "--method", "laplace")
    assert held == 0
    assert not any("breakaway_speed" in row["name"] for row in json.loads(text)["parameters"])


def test_speeds_of_the_comparison_are_held_where_they_cannot_be_inferred(arm, simulate, tmp_path, capsys):
    model = Model(arm.robot, stribeck_law((0.12, 0.06)))
    truth = model.nominal.copy()
    truth[20:] = (0.3, 0.3, 2.0, 3.0, 3.0, 1.0, 2.0, 2.0)
    run = simulate(arm, arm.nominal, samples=1000, seed=22, amplitude=0.4)
    log = synthetic_log(model, JointMotion(run.time, run.q, run.qd, run.qdd), truth, sensors=Sensors(effort_noise=0.3))
    path = write_log(log, tmp_path / "run.csv")
    words = (
        path,
        "--robot",
        "two_link",
        "--schema",
        "bayesid",
        "--json",
        "--quiet",
        "--method",
        "laplace",
        "--friction",
        "auto",
    )
    _, text = call(capsys, *words, "--prior", "log-cholesky")
    document = json.loads(text)
    assert document["friction"] == "stribeck"
    assert not any("breakaway_speed" in row["name"] for row in document["parameters"])


def test_laplace_is_quick_and_has_no_chains_to_judge(log_file, capsys):
    words = (log_file, "--robot", "two_link", "--schema", "bayesid", "--json", "--quiet", "--method", "laplace")
    status, text = call(capsys, *words, "--friction", "auto")
    document = json.loads(text)
    assert status == 0
    assert document["diagnostics"] is None
    assert document["friction_comparison"]["chosen"] in document["friction_comparison"]["laws"]
    assert np.isfinite([row["std"] for row in document["parameters"]]).all()


def test_what_is_printed_says_what_it_means_and_names_all_that_was_written(log_file, arm, truth, simulate, tmp_path, capsys):
    run = simulate(arm, truth, samples=400, seed=33)
    log = synthetic_log(arm, JointMotion(run.time, run.q, run.qd, run.qdd), truth, sensors=Sensors(effort_noise=0.3))
    other = write_log(log, tmp_path / "other.csv")
    out = tmp_path / "result"
    words = (log_file, "--robot", "two_link", "--schema", "bayesid", "--quiet", "--method", "laplace", "--draws", 50)
    _, text = call(capsys, *words, "--validate", other, "--export-samples", 2, "--out", out)
    lines = text.splitlines()
    start = lines.index("held out: other.csv")
    assert lines[start + 1].split() == ["joint", "rms", "[N", "m]", "nrmse", "in", "90", "%", "band,", "moving", "standing"]
    assert [line.split()[0] for line in lines[start + 2 : start + 4]] == list(arm.robot.joint_names)
    assert "share of the prior's variance that the data removed" in text
    assert lines[-1].endswith("posterior.nc, robots/ (2 urdf files)")
    assert str(tmp_path) not in text.replace(lines[-1], "")


def test_log_cholesky_prior_and_uncertain_gains_are_said_in_the_result(arm, truth, simulate, tmp_path, capsys):
    run = simulate(arm, truth, samples=1000, seed=22)
    motion = JointMotion(run.time, run.q, run.qd, run.qdd)
    log = synthetic_log(arm, motion, truth, sensors=Sensors(effort_noise=0.03), drive_gains=np.array([10.0, 8.0]))
    path = write_log(log, tmp_path / "currents.csv")
    words = (
        path,
        "--robot",
        "two_link",
        "--schema",
        "bayesid",
        "--effort",
        "current",
        "--json",
        "--quiet",
        "--method",
        "laplace",
    )
    words += ("--prior", "log-cholesky", "--prior-spread", "0.4,0.1,0.2")
    exact, vague = (json.loads(call(capsys, *words, "--drive-gains", g)[1]) for g in ("10,8", "10+-0.5,8"))
    assert exact["prior"]["name"] == "log-cholesky"
    assert exact["prior"]["mass"] == pytest.approx([0.4, 0.4])
    assert exact["drive_gains"] == {"source": "given exactly", "gains": [10.0, 8.0]}
    assert vague["drive_gains"]["source"] == "given with standard deviations"
    assert vague["drive_gains"]["std"] == [0.5, 0.0]
    assert vague["covariance"]["drive_gains"] == "propagated"
    # Five percent of the first joint's gain are five percent of its Coulomb torque, 3 N m, to be added in quadrature.
    std = [{row["name"]: row["std"] for row in document["parameters"]} for document in (exact, vague)]
    assert std[1]["joint1.coulomb"] == pytest.approx(np.hypot(std[0]["joint1.coulomb"], 0.15), rel=0.15)
    assert std[1]["joint2.coulomb"] == pytest.approx(std[0]["joint2.coulomb"], rel=0.2)
