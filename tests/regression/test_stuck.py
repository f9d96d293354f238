"""Friction of joints that stick, learned from simulated stands whose shares are known, and bands against plain sampling."""

import numpy as np
import pytest
from scipy.stats import norm

from bayesid.dynamics import stribeck_law
from bayesid.models import Model
from bayesid.regression import Observations, torque_predictor
from bayesid.regression.stuck import BREAKAWAY, UNSEEN, StuckFriction, band
from bayesid.results import Estimate, Prediction
from bayesid.signals import Samples, SlipState, slip_states

COULOMB = np.array([2.0, 1.0])


def stop_and_go(arm, seed, share, noise=0.02, stands=60):
    """Both joints move back and forth for 0.2 s and stand for 0.1 s, each stand holding `share(rng)` of the Coulomb torque."""
    rng = np.random.default_rng(seed)
    signs = np.repeat(rng.choice([-1.0, 1.0], (stands, 2)), 30, axis=0)
    moving = np.tile(np.arange(30) < 20, stands)[:, None] & np.ones((1, 2), dtype=bool)
    qd = np.where(moving, signs * 0.5, 0.0)
    q = np.cumsum(qd, axis=0) * 0.01
    held = np.repeat(share(rng, (stands, 2)), 30, axis=0) * signs
    parameters = arm.parameters.copy()
    parameters[[-5, -2]] = COULOMB
    effort = arm.model.torque(parameters, q, qd, 0 * q, direction=np.where(moving, signs, held))
    effort = effort + noise * rng.normal(size=q.shape)
    time = 0.01 * np.arange(len(q))
    return parameters, Samples(time, q, qd, 0 * q, effort, "torque", direction=signs, moving=moving)


def skewed(rng, shape):
    return rng.normal(0.6, 0.1, shape)


@pytest.fixture(scope="module")
def learned(arm):
    parameters, run = stop_and_go(arm, 0, skewed)
    return torque_predictor(Observations(arm.model, (run,)), arm.model.base.project(parameters)).stuck


def test_every_stand_counts_once_and_shares_are_those_put_in(learned):
    held = [SlipState.HELD, SlipState.TURNING, SlipState.LEFT, SlipState.UNKNOWN]
    assert dict(zip(held, learned.stands)) == {SlipState.HELD: 120, **dict.fromkeys(held[1:], 0)}
    at = (np.arange(learned.shares.shape[1]) + 0.5) / learned.shares.shape[1]
    # 120 draws of a normal distribution: quantiles of the middle are known to 0.02.
    inner = (at > 0.1) & (at < 0.9)
    np.testing.assert_allclose(learned.shares[0][inner], norm(0.6, 0.1).ppf(at[inner]), atol=0.05)


def test_learned_bands_hold_new_stands_and_are_narrower_than_without(arm, learned):
    _, run = stop_and_go(arm, 5, skewed, stands=200)
    parameters, _ = stop_and_go(arm, 5, skewed, stands=1)
    free = arm.model.torque(parameters, run.q, run.qd, run.qdd, direction=np.where(run.moving, run.direction_measured, 0.0))
    noise, spread = 0.02 * norm.ppf((np.arange(64) + 0.5) / 64) * np.ones((2, 1)), np.zeros_like(run.q)
    size = np.zeros_like(run.q) + COULOMB
    width, still = {}, slip_states(run) != SlipState.SLIDING
    for name, stuck in (("learned", learned), ("prior", UNSEEN)):
        found = stuck.replace(Prediction(free, spread, free, free, 0.9), run, free, size, noise, spread)
        inside = (found.lower <= run.effort_measured) & (run.effort_measured <= found.upper)
        width[name] = (found.upper - found.lower)[still].mean()
        assert inside[still].mean() > (0.88 if name == "learned" else 0.97)
        np.testing.assert_array_equal(found.upper[~still], free[~still])
    # The stands' own band is 0.33 wide; ten of 130 stands are the prior's.
    assert width["learned"] < 0.4 * width["prior"]


def test_unseen_friction_lies_between_the_breakaway_torques_most_likely_where_the_motion_left_it():
    at = [0.0, 0.25, 0.5, 1.0]
    draws = UNSEEN.draws(SlipState.UNKNOWN, 3.0, np.zeros(1), 4001)
    np.testing.assert_allclose(np.quantile(draws, at), BREAKAWAY * np.array([-3, -1.5, 0, 3]), atol=1e-2)
    # A density that grows linearly from -1 has the distribution (1 + t)^2 / 4.
    draws = np.sort(UNSEEN.draws(SlipState.LEFT, 3.0, np.zeros(1), 4001)) / (3.0 * BREAKAWAY)
    np.testing.assert_allclose((1.0 + draws) ** 2 / 4.0, (np.arange(4001) + 0.5) / 4001, atol=1e-9)
    assert not np.any(UNSEEN.draws(SlipState.HELD, 0.0, np.zeros(1), 50))


def test_unknown_direction_takes_shares_with_both_signs(arm, learned):
    _, run = stop_and_go(arm, 2, skewed)
    blind = run.replace(moving=np.zeros_like(run.moving))
    zero = np.zeros_like(run.q)
    stuck = StuckFriction(np.roll(learned.stands, 3), np.roll(np.abs(learned.shares), 3, axis=0))
    found = stuck.replace(Prediction(zero, zero, zero, zero, 0.9), blind, zero, zero + COULOMB, np.zeros((2, 1)), zero)
    forward = run.direction_measured > 0
    assert len(np.unique(found.upper[forward[:, 0], 0])) == 1
    np.testing.assert_array_equal(found.upper[forward[:, 0], 0][:5], found.upper[~forward[:, 0], 0][:5])


def test_band_is_that_of_a_sum_of_random_numbers():
    rng = np.random.default_rng(1)
    spread = np.array([0.1, 1.0, 2.5])
    low, high, std = band(rng.permutation(np.linspace(0.0, 2.0, 8192)), spread, 0.8)
    for k, value in enumerate(spread):
        drawn = rng.uniform(0.0, 2.0, 400000) + value * rng.normal(size=400000)
        np.testing.assert_allclose([low[k], high[k]], np.quantile(drawn, [0.1, 0.9]), atol=0.02 + 0.02 * value)
        assert std[k] == pytest.approx(drawn.std(), rel=0.01)


def test_a_law_that_is_zero_at_standstill_still_remembers_the_last_slip(arm):
    """With stands that keep nine tenths of the Coulomb torque, the mean of Stribeck friction is that of the slip before."""
    _, run = stop_and_go(arm, 3, lambda rng, shape: np.full(shape, 0.9), noise=0.0)
    model = Model(arm.model.robot, stribeck_law(0.05))
    parameters = np.append(arm.parameters[: model.rigid], [2.0, 2.0, 0.0, 1.0, 1.0, 0.0])
    beta = model.base.project(parameters)
    predictor = torque_predictor(Observations(model, (run,)), beta)
    estimate = Estimate(model.names, model.units, model.kinds, parameters, np.zeros((model.size,) * 2), "test")
    found = predictor.predict(estimate, run, 0.9)
    held = slip_states(run) == SlipState.HELD
    free = model.torque(parameters, run.q, 0.0 * run.qd, run.qdd)
    last = free + run.direction_measured * [2.0, 1.0]
    assert held.any(axis=0).all()
    np.testing.assert_allclose(found.mean[held], last[held], atol=1e-9)
