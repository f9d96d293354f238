"""Breakaway speeds from data compressed once: against direct columns, finite differences, and simulations."""

import numpy as np
import pytest

from bayesid.dynamics import stribeck_law
from bayesid.errors import DataError
from bayesid.logs import Log
from bayesid.models import Model
from bayesid.regression import NodalInformation, Observations, VelocityBasis, breakaway_profile, compress, fit_speeds
from bayesid.regression.velocity import ERROR
from bayesid.robots import load_robot
from bayesid.signals import Samples, samples_from_log
from bayesid.simulation.synthetic import autocorrelated

SPEEDS = np.array([0.12, 0.05])
RATE = 50.0


def swing(samples, seed):
    """Two joints in sums of sines, slow enough to dwell about the breakaway speed."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples) / RATE
    w = 2 * np.pi * rng.uniform(0.1, 1.0, (5, 2))
    a, phase = 0.3 * rng.uniform(0.2, 0.6, (5, 2)) / w**0.5, rng.uniform(0, 2 * np.pi, (5, 2))
    angle = w * time[:, None, None] + phase
    return time, (a * np.sin(angle)).sum(1), (a * w * np.cos(angle)).sum(1), (-a * w**2 * np.sin(angle)).sum(1)


@pytest.fixture(scope="module")
def model():
    return Model(load_robot("two_link"), stribeck_law(SPEEDS))


def truth(model, excess=1.5):
    out = model.nominal.copy()
    out[-6:] = (2.0, 3.0, excess, 1.0, 2.0, excess)
    return out


def recorded(model, parameters, *, noise=0.0, samples=1500, seed=0):
    time, q, qd, qdd = swing(samples, seed)
    torque = model.torque(parameters, q, qd, qdd)
    if noise:
        torque = torque + autocorrelated(np.random.default_rng([seed, 1]), torque.shape, np.full(2, noise), 0.9)
    return Samples(time, q, qd, qdd, torque, "torque")


@pytest.fixture(scope="module")
def clean(model):
    return recorded(model, truth(model))


def test_nodal_shapes_follow_the_published_law_within_the_stated_error(clean):
    """Source eqs. 22-23 at other velocities and speeds than those that the basis was checked on."""
    basis, rng = VelocityBasis.over((clean,)), np.random.default_rng(0)
    assert basis.error <= ERROR
    qd = np.exp(rng.uniform(np.log(1e-7), np.log(np.abs(clean.qd).max(axis=0)), (400, 2))) * rng.choice([-1, 1], (400, 2))
    columns = basis.columns(qd.T)
    for speeds in np.exp(rng.uniform(np.log(0.005), 0.0, (30, 2))):
        x = qd / (np.sqrt(2.0) * speeds)
        exact = np.tanh(qd / (speeds / 10)), np.sqrt(2 * np.e) * np.exp(-(x**2)) * x
        for shape, right in zip(basis.shapes(speeds), exact):
            np.testing.assert_allclose(np.einsum("nk,kns->sn", shape, columns), right, atol=2 * ERROR)
    np.testing.assert_allclose(basis.columns(-qd.T), -columns, atol=1e-12)


def test_a_range_that_no_basis_can_follow_is_refused(clean):
    with pytest.raises(DataError, match="narrow their range"):
        VelocityBasis.over((clean,), speeds=(1e-12, 1.0))
    with pytest.raises(DataError, match="positive number to a larger one"):
        VelocityBasis.over((clean,), speeds=(1.0, 0.1))


def test_compressed_data_are_those_of_direct_columns_at_any_speeds(model, clean):
    data = NodalInformation.of(Observations(model, (clean,)))
    for speeds in ((0.01, 0.7), (0.3, 0.02), SPEEDS):
        direct = compress(Observations(Model(model.robot, stribeck_law(speeds)), (clean,)))
        found = data.at(np.array(speeds))
        for j in range(2):
            size = np.sqrt(np.diag(direct.gram(j)))
            size[size == 0] = 1.0
            np.testing.assert_allclose(found.gram(j) / np.outer(size, size), direct.gram(j) / np.outer(size, size), atol=3e-3)
    parts = [
        NodalInformation.of(Observations(model, (clean.select(part),)), data.nodal.basis)
        for part in (slice(700), slice(700, None))
    ]
    np.testing.assert_allclose(
        (parts[0] + parts[1]).at(SPEEDS).gram(0), data.at(SPEEDS).gram(0), rtol=1e-9, atol=1e-9 * data.at(SPEEDS).gram(0).max()
    )


def test_columns_pass_the_efforts_filter_where_there_is_one(model):
    time, q, qd, _ = swing(1000, 3)
    samples = samples_from_log(Log(time=time, position=q, velocity=qd, torque=q), trim=False, cutoff=4.0)
    data = NodalInformation.of(Observations(model, (samples,)))
    direct = compress(Observations(model, (samples,)))
    plain = compress(Observations(model, (samples.replace(fine=None),)))
    at = [model.base.names.index(f"{model.robot.joint_names[1]}.{name}") for name in ("coulomb", "stribeck")]
    found, right, wrong = (np.diag(part.gram(1))[at] for part in (data.at(SPEEDS), direct, plain))
    np.testing.assert_allclose(found, right, rtol=2e-3)
    assert np.all(np.abs(wrong / right - 1.0) > 0.02)


def test_slopes_are_those_of_the_torque_by_the_log_speed(model, clean):
    nodal = NodalInformation.of(Observations(model, (clean,))).nodal
    sizes = np.array([[3.0, 2.0], [1.5, 0.7]])
    slopes = nodal.maps(SPEEDS, sizes)[:, :, -2:]
    _, coulomb, excess = nodal.places
    step = 1e-5
    for j in range(2):
        up, down = (nodal.maps(SPEEDS * np.exp(sign * step * np.eye(2)[j])) for sign in (1, -1))
        change = (up - down) / (2 * step)
        expected = change[j][:, coulomb[j]] * sizes[0, j] + change[j][:, excess[j]] * sizes[1, j]
        np.testing.assert_allclose(slopes[j, :, j], expected, atol=1e-6)
        assert np.all(slopes[1 - j, :, j] == 0)


def test_speeds_are_found_to_the_basis_error_without_noise(model, clean):
    found = fit_speeds(NodalInformation.of(Observations(model, (clean,))))
    np.testing.assert_allclose(found.speeds, SPEEDS, rtol=3e-3)
    np.testing.assert_allclose(found.beta[-6:], truth(model)[-6:], atol=0.02)


def test_excess_is_zero_and_not_negative_where_there_is_none(model):
    data = NodalInformation.of(Observations(model, (recorded(model, truth(model, excess=-0.5), noise=0.1),)))
    found = fit_speeds(data)
    assert np.all(found.beta[data.nodal.places[2]] == 0.0)


def test_intervals_of_speeds_cover_under_autocorrelated_noise(model):
    inside, halves, errors = [], [], []
    for seed in range(25):
        profile = breakaway_profile(Observations(model, (recorded(model, truth(model), noise=0.5, seed=seed),)))
        low, high = profile.interval.T
        inside.append((low <= SPEEDS) & (high >= SPEEDS))
        halves.append(np.log(high / low) / 2)
        errors.append(np.log(profile.fit.speeds / SPEEDS))
    # 50 intervals at 95 %: fewer than 43 hits happen in one of 1000 times.
    assert np.sum(inside) >= 43
    # Nor are they wide for nothing: half widths are about two standard deviations.
    assert np.all(np.median(halves, axis=0) < 3.5 * np.std(errors, axis=0))


def test_a_speed_that_the_data_do_not_tell_has_an_open_interval(model):
    """Motion far above the smallest speeds: any below a tenth of the slowest samples fits alike."""
    run = recorded(Model(model.robot, stribeck_law(0.005)), truth(model), noise=0.3)
    fast = run.replace(moving=np.abs(run.qd) > 0.1)
    profile = breakaway_profile(Observations(model, (fast,)))
    assert np.all(profile.open[:, 0])
    assert np.all(profile.interval[:, 0] == pytest.approx(0.005))


def test_a_joint_that_stands_still_is_named(model, clean):
    still = clean.replace(moving=clean.moving & [True, False])
    with pytest.raises(DataError, match=f"joint {model.robot.joint_names[1]} does not move"):
        breakaway_profile(Observations(model, (still,)))
