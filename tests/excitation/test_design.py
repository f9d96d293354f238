"""Designs: feasible on dense grids, reproducible, resumable, honest about their precision; impossible requests refused."""

import dataclasses

import numpy as np
import pytest

from bayesid.errors import DesignError
from bayesid.excitation import (
    DOptimal,
    Excitation,
    Fourier,
    FourierQuintic,
    Limits,
    QuinticSpline,
    Subset,
    ToolBox,
    Wall,
    certify,
    design,
    information,
    random_motion,
)
from bayesid.excitation.design import _Run
from bayesid.robots import load_robot

ARM = load_robot("two_link")


def test_every_limit_holds_on_a_grid_ten_times_denser_than_the_optimised_one(problem, excitation):
    time = np.linspace(0.0, excitation.period, 10 * (len(problem.limit_grid) - 1) + 1)
    q, qd, qdd, _ = excitation.motion(time)
    limits = problem.limits
    assert (q >= limits.lower).all()
    assert (q <= limits.upper).all()
    assert (np.abs(qd) <= limits.velocity).all()
    assert (np.abs(qdd) <= limits.acceleration).all()
    model = problem.observation.model
    for way in (1.0, -1.0):
        assert (np.abs(model.torque(model.nominal, q, qd, qdd, np.full(q.shape, way))) <= limits.torque).all()
    elbow = -0.45 * np.cos(q[:, 0])
    tip = elbow - 0.45 * np.cos(q[:, 0] + q[:, 1])
    assert tip.min() >= -0.5 - 1e-9
    assert excitation.certificate.feasible
    assert excitation.certificate.instants == len(time)


def test_certificate_names_what_a_motion_violates_and_when(problem, excitation):
    faster = certify(problem, 1.5 * excitation.coefficients)
    assert not faster.feasible
    assert any(check.what.startswith(("velocity", "acceleration", "position", "torque")) for check in faster.violations)
    for check in faster.checks:
        if check.allowed is not None and check.what.startswith("velocity"):
            joint = ARM.joint_names.index(check.what.split()[2].rstrip(","))
            moved = 1.5 * problem.family.basis(np.array([check.time]), 1) @ excitation.coefficients[:, joint]
            assert moved[0] == pytest.approx(check.used)


def test_design_says_more_than_random_motions_of_equal_length_and_limits(problem, excitation):
    """The volume is what a D-optimal design makes small: deviations are 1.8 times smaller in geometric mean, none 1.2 times
    larger."""
    predicted = np.array(list(excitation.design["predicted_std"].values()))
    rivals = [np.sqrt(np.diag(np.linalg.inv(information(problem, random_motion(problem, seed))))) for seed in range(10)]
    factor = np.median(rivals, axis=0) / predicted
    print("random over designed:", np.round(factor, 2))
    assert (factor > 1 / 1.2).all()
    assert np.exp(np.mean(np.log(factor))) > 1.8


def test_estimates_from_the_designed_motion_scatter_as_predicted(problem, excitation):
    model = problem.observation.model
    q, qd, qdd, _ = excitation.motion(problem.time)
    direction = np.tanh(qd / 0.02)
    rows = model.regressor(q, qd, qdd, direction)[:, :, model.base.independent].reshape(-1, model.base.dimension)
    clean = model.torque(model.nominal, q, qd, qdd, direction).ravel()
    std = np.tile(problem.noise, len(problem.time))
    noise = np.random.default_rng(5).normal(size=(len(clean), 600)) * std[:, None]
    estimates = np.linalg.lstsq(rows / std[:, None], (clean[:, None] + noise) / std[:, None], rcond=None)[0]
    achieved = estimates.std(axis=1, ddof=1)
    ratio = achieved / np.array(list(excitation.design["predicted_std"].values()))
    print("achieved over predicted:", np.round(ratio, 3))
    np.testing.assert_allclose(ratio, 1.0, atol=0.2)


def test_the_same_seed_gives_the_same_motion_and_a_resumed_design_too(problem, tmp_path, monkeypatch):
    options = {"seed": 3, "starts": 2, "steps": 36, "seconds": 1e6}
    once = design(problem, **options)
    file = tmp_path / "state.npz"
    saved = []
    keep = _Run.save

    def interrupt(self, path, key):
        keep(self, path, key)
        saved.append(self.steps)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(_Run, "save", interrupt)
    with pytest.raises(KeyboardInterrupt):
        design(problem, **options, checkpoint=file)
    monkeypatch.undo()
    resumed = design(problem, **options, checkpoint=file)
    assert 0 < saved[-1] < once.design["steps"]
    np.testing.assert_array_equal(resumed.coefficients, once.coefficients)
    with pytest.raises(DesignError, match="belongs to another design problem"):
        design(dataclasses.replace(problem, sampling=0.2), **options, checkpoint=file)


def test_a_spent_time_budget_still_ends_in_a_feasible_motion(problem):
    found = design(problem, seed=4, starts=2, steps=500, seconds=1e-3)
    assert found.design["stopped_by"] == "clock"
    assert found.certificate.feasible


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"start": np.array([3.0, 0.5])}, "start position 3 rad of joint 'joint1' is not inside its limits"),
        ({"start": np.array([0.3])}, "start needs 2 finite numbers"),
        ({"end": np.array([0.3, -2.7])}, "end position -2.7 rad of joint 'joint2'"),
        ({"family": FourierQuintic(6.0, 40)}, "take fewer than 30 harmonics or sample faster"),
        ({"sampling": 0.0}, "sampling time must be a positive number"),
        ({"sampling": 7.0}, "must be shorter than the period"),
        ({"free": (False, False)}, "no joint is free to move"),
        ({"free": (True, False), "end": np.array([1.8, 0.4])}, "joint 'joint2' is held but starts and ends"),
        ({"noise": np.array([1.0, 0.0])}, "noise of joint 'joint2' must be positive"),
        ({"limits": Limits.of(ARM)}, "joint 'joint1' has no limit on position, velocity, acceleration or jerk"),
        ({"start": np.array([0.1, 0.0])}, "violates the wall constraint at the start pose"),
        (
            {"end": np.array([2.4, 0.4]), "family": FourierQuintic(0.5, 1), "sampling": 0.02},
            "cannot go from start to end in 0.5 s",
        ),
        ({"family": Fourier(6.0, 3), "end": np.array([1.8, 0.4])}, "a 'fourier' motion ends where it starts"),
        ({"family": FourierQuintic(0.5, 1), "sampling": 0.2}, "measurements cannot determine 11 parameters"),
        ({"constraints": (ToolBox((2.0, 2.0, -1.0), (3.0, 3.0, 1.0)),)}, "violates the tool-box constraint"),
    ],
)
def test_impossible_requests_say_what_and_how_to_mend(make_problem, changes, words):
    with pytest.raises(DesignError, match=words):
        make_problem(**changes)


def test_a_held_joint_stays_where_it_is(make_problem):
    problem = make_problem(free=(True, False), constraints=(), objective=Subset((0,)), collected=np.eye(11))
    found = design(problem, starts=1, steps=8, seconds=1e6)
    q = found.motion(problem.time)[0]
    np.testing.assert_allclose(q[:, 1], 0.5, atol=1e-12)
    assert np.ptp(q[:, 0]) > 0.1


def test_spline_and_other_end_pose_are_designed_within_limits_too(make_problem):
    problem = make_problem(family=QuinticSpline(6.0, 4), end=np.array([0.8, 0.1]), constraints=())
    found = design(problem, starts=1, steps=15, seconds=1e6)
    assert found.certificate.feasible
    np.testing.assert_allclose(found.motion([6.0])[0][0], [0.8, 0.1], atol=1e-9)
    before = DOptimal().value(information(problem, random_motion(problem, 0)))
    assert found.design["values"]["objective"] > before


def test_information_collected_before_counts(make_problem, problem, excitation):
    matrix = information(problem, excitation.coefficients)
    more = make_problem(collected=matrix)
    found = design(more, starts=1, steps=6, seconds=1e6, initial=excitation.coefficients)
    first = np.array(list(excitation.design["predicted_std"].values()))
    both = np.array(list(found.design["predicted_std"].values()))
    assert (both < 0.8 * first).all()


def test_file_holds_the_whole_design(excitation, tmp_path):
    path = tmp_path / "trajectory.json"
    excitation.save(path)
    again = Excitation.load(path)
    time = np.linspace(0, 6, 77)
    for ours, theirs in zip(excitation.motion(time), again.motion(time)):
        np.testing.assert_array_equal(ours, theirs)
    assert again.certificate == excitation.certificate
    assert again.design["seed"] == 1
    assert again.robot == ARM
    law = excitation.to_dict()["law"]
    w = 2 * np.pi / 6.0
    k = np.arange(1, 4)
    t = 2.345
    q = (np.array(law["a"]).T / (k * w)) @ np.sin(k * w * t) - (np.array(law["b"]).T / (k * w)) @ np.cos(k * w * t)
    q += np.array(law["c"]).T @ t ** np.arange(6.0)
    np.testing.assert_allclose(q, excitation.motion([t])[0][0], atol=1e-10)
    path.write_text(path.read_text().replace('"version": 1', '"version": 99'))
    with pytest.raises(DesignError, match=r"trajectory\.json: trajectory file version 99"):
        Excitation.load(path)
    path.write_text("{}")
    with pytest.raises(DesignError, match="not a trajectory written by bayesid excite"):
        Excitation.load(path)


def test_a_wall_holds_for_any_direction_of_its_normal():
    assert Wall((0.0, 2.0, 0.0), 1.0).offset == 0.5
