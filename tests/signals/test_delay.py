"""The delay between effort and motion is found to a part of a sample, and taking it out aligns both."""

import numpy as np
import pytest

from bayesid.errors import SignalError
from bayesid.logs import Log, read_log
from bayesid.signals import estimate_delay, samples_from_log


def columns(samples):
    """Regressor (N, n, 4) of a joint with inertia, viscous and Coulomb friction and an offset."""
    return np.stack([samples.qdd, samples.qd, np.sign(samples.qd), np.ones_like(samples.q)], axis=-1)


def delayed_log(tones, delay, noise=0.05, seed=0):
    time = np.arange(3000) / 100
    rng = np.random.default_rng(seed)
    torque = 2.0 * tones(time - delay, 2) + 3.0 * tones(time - delay, 1) + 1.0
    return Log(
        time,
        tones(time, 0),
        velocity=tones(time, 1),
        torque=torque + noise * rng.standard_normal(torque.shape),
        effort_kind="torque",
    )


@pytest.mark.parametrize("delay", [-0.013, -0.002, 0.0, 0.0047, 0.021])
def test_delay_is_found_to_a_fraction_of_a_sample(tones, delay):
    samples = samples_from_log(delayed_log(tones, delay), trim=False, decimate=1)
    found = estimate_delay(samples, columns(samples))
    assert abs(found.seconds - delay) < 4e-4
    assert found.std < 4e-4


def test_standard_deviation_of_the_delay_covers(tones):
    ratios = []
    for seed in range(40):
        samples = samples_from_log(delayed_log(tones, 0.004, noise=0.5, seed=seed), trim=False, decimate=1)
        found = estimate_delay(samples, columns(samples))
        ratios.append((found.seconds - 0.004) / found.std)
    # 40 data sets: the 95 % range of the share covered at 90 % is about 0.80 to 0.99.
    assert 0.80 <= np.mean(np.abs(ratios) < 1.645) <= 1.0
    assert 0.5 < np.std(ratios) < 1.6


def test_taking_the_delay_out_restores_the_fit(tones):
    log = delayed_log(tones, 0.02, noise=0.0)
    residual = []
    for delay in (0.0, 0.02):
        samples = samples_from_log(log, trim=False, decimate=1, delay=delay)
        a, b = columns(samples)[200:-200, 0], samples.effort[200:-200, 0]
        residual.append(np.std(b - a @ np.linalg.lstsq(a, b, rcond=None)[0]))
    assert residual[1] < 0.02 * residual[0]
    (step,) = [s for s in samples.steps if s["name"] == "delay"]
    assert step["seconds"] == 0.02
    assert step["samples"] == [3000, 2998]


def test_torque_of_the_tx40_leads_its_position_by_two_milliseconds(data_root):
    from bayesid.models import Model
    from bayesid.robots import load_robot

    folder = data_root / "staubli_tx40/examples/staubli_TX40"
    model = Model(load_robot(str(folder / "urdf/tx40_mdh_modified.urdf")))
    # Friction reverses within tens of milliseconds here: a lower cutoff would blur what tells the delay.
    samples = samples_from_log(read_log(folder / "data", "tx40"), cutoff=80.0, decimate=25)
    found = estimate_delay(samples, np.asarray(model.regressor(samples.q, samples.qd, samples.qdd)), longest=0.012)
    assert found.seconds == pytest.approx(-0.002, abs=0.0007)
    assert found.std < 0.0005


def test_a_delay_needs_motion_samples_and_a_fitting_regressor(tones):
    samples = samples_from_log(delayed_log(tones, 0.0), trim=False)
    with pytest.raises(SignalError, match="regressor has the shape"):
        estimate_delay(samples, columns(samples)[:, :1])
    with pytest.raises(SignalError, match="too few"):
        estimate_delay(samples.select(slice(0, 20)), columns(samples)[:20])
    with pytest.raises(SignalError, match="leaves no samples"):
        samples_from_log(delayed_log(tones, 0.0), delay=100.0)
