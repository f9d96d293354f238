"""Families of trajectories: derivatives, ends, and the published law."""

import numpy as np
import pytest

from bayesid.errors import DesignError
from bayesid.excitation import Fourier, FourierQuintic, QuinticSpline
from bayesid.excitation.families import family_from_settings

FAMILIES = [FourierQuintic(7.0, 4), Fourier(7.0, 4), QuinticSpline(7.0, 5)]
REST = [FAMILIES[0], FAMILIES[2]]


def motion(family, coefficients, time, derivative, start, end):
    return family.offset(time, derivative, start, end) + family.basis(time, derivative) @ coefficients


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_each_derivative_is_the_slope_of_the_one_before(family, derivative):
    rng = np.random.default_rng(0)
    coefficients = rng.normal(size=(family.size, 2))
    start = rng.normal(size=2)
    end = start if family.name == "fourier" else rng.normal(size=2)
    time, step = rng.uniform(0.1, 6.9, 50), 1e-5
    if family.name == "quintic-spline":
        time = time[np.abs(time % (7.0 / 5) - 0.7) < 0.68]
    slope = (
        motion(family, coefficients, time + step, derivative, start, end)
        - motion(family, coefficients, time - step, derivative, start, end)
    ) / (2 * step)
    exact = motion(family, coefficients, time, derivative + 1, start, end)
    np.testing.assert_allclose(slope, exact, atol=1e-6 * max(1.0, np.abs(exact).max()))


@pytest.mark.parametrize("family", REST, ids=lambda f: f.name)
def test_motion_rests_at_its_start_and_end_poses(family):
    rng = np.random.default_rng(1)
    coefficients, start, end = rng.normal(size=(family.size, 3)), rng.normal(size=3), rng.normal(size=3)
    ends = np.array([0.0, family.period])
    np.testing.assert_allclose(motion(family, coefficients, ends, 0, start, end), [start, end], atol=1e-10)
    for derivative in (1, 2):
        np.testing.assert_allclose(motion(family, coefficients, ends, derivative, start, end), 0.0, atol=1e-10)


def test_periodic_fourier_starts_at_its_pose_and_repeats_with_all_derivatives():
    family, rng = FAMILIES[1], np.random.default_rng(2)
    coefficients, start = rng.normal(size=(family.size, 2)), rng.normal(size=2)
    for derivative in range(4):
        first, last = motion(family, coefficients, np.array([0.0, family.period]), derivative, start, start)
        np.testing.assert_allclose(first, last, atol=1e-9)
        if derivative == 0:
            np.testing.assert_allclose(first, start, atol=1e-12)


def test_spline_is_smooth_to_acceleration_at_its_waypoints():
    family, rng = FAMILIES[2], np.random.default_rng(3)
    coefficients = rng.normal(size=(family.size, 1))
    knots = family.period * np.arange(1, family.pieces) / family.pieces
    for derivative in range(3):
        below, above = (motion(family, coefficients, knots + h, derivative, [0.0], [0.0]) for h in (-1e-9, 1e-9))
        np.testing.assert_allclose(below, above, atol=1e-6)


def test_published_coefficients_give_the_published_polynomial_and_return_to_the_start(ur10e_data):
    from scipy.io import loadmat

    folder = ur10e_data / "trajectory_optmzn" / "optimal_trjctrs"
    for path in sorted(folder.glob("*.mat")):
        content = loadmat(path, squeeze_me=True)
        par = content["traj_par"]
        family = FourierQuintic(float(par["T"].item()), int(par["N"].item()))
        start = par["q0"].item()
        ours = family.polynomial(np.concatenate([content["a"].T, content["b"].T]), start, start)
        scale = family.period ** np.arange(6.0)[:, None]
        np.testing.assert_allclose(ours * scale, content["c_pol"].T * scale, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_settings_rebuild_the_family(family):
    assert family_from_settings(family.settings()) == family


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FourierQuintic(0.0, 3), "period must be a positive number"),
        (lambda: FourierQuintic(float("nan"), 3), "period must be a positive number"),
        (lambda: Fourier(5.0, 0), "harmonics must be a whole number"),
        (lambda: QuinticSpline(5.0, 1), "pieces must be a whole number"),
        (lambda: family_from_settings({"name": "bezier"}), "unknown trajectory family 'bezier'"),
        (lambda: family_from_settings({"name": "fourier", "period": 3.0}), "do not fit"),
    ],
)
def test_impossible_families_are_refused(make, words):
    with pytest.raises(DesignError, match=words):
        make()
