"""The smoother: its states are right and its standard deviations hold on motion that its model makes."""

import numpy as np
import pytest

from bayesid.errors import SignalError
from bayesid.signals import KalmanSmoother, samples_from_log
from bayesid.signals.kalman import Noise, most_likely_noise, smooth

JERK, POSITION, VELOCITY = 100.0, 1e-4, 3e-3


@pytest.fixture(scope="module")
def walk():
    """White-jerk motion of four joints on irregular stamps, by exact integration over a ten times finer grid."""
    rng = np.random.default_rng(0)
    fine = 10
    time = np.cumsum(rng.choice([0.008, 0.010, 0.012], 1500))
    state = np.zeros((4, 3))
    out = []
    for dt in np.diff(time, prepend=time[0] - 0.01):
        h = dt / fine
        for _ in range(fine):
            # Jerk is constant over each fine step, of the variance that white noise of this density has there.
            jerk = rng.standard_normal(4) * np.sqrt(JERK / h)
            q, qd, qdd = state.T
            state = np.column_stack(
                [q + h * qd + h**2 / 2 * qdd + h**3 / 6 * jerk, qd + h * qdd + h**2 / 2 * jerk, qdd + h * jerk]
            )
        out.append(state)
    truth = np.array(out)
    q = truth[..., 0] + POSITION * rng.standard_normal((len(time), 4))
    qd = truth[..., 1] + VELOCITY * rng.standard_normal((len(time), 4))
    return time, truth, q, qd


@pytest.mark.parametrize("with_velocity", [True, False])
def test_noise_levels_are_found_and_intervals_cover(walk, with_velocity):
    time, truth, q, qd = walk
    qd = qd if with_velocity else None
    noise = most_likely_noise(time, q, qd)
    np.testing.assert_allclose(noise.position, POSITION, rtol=0.15)
    np.testing.assert_allclose(noise.jerk, JERK, rtol=0.5)
    if with_velocity:
        np.testing.assert_allclose(noise.velocity, VELOCITY, rtol=0.3)
    mean, covariance = smooth(time, q, qd, noise)
    ratio = (mean - truth) / np.sqrt(np.diagonal(covariance, axis1=2, axis2=3))
    covered = (np.abs(ratio) < 1.645).mean((0, 1))
    # 1500 rows correlated over some tens: about 200 independent ones for four joints.
    assert np.all(np.abs(covered - 0.90) < 0.05)


def test_smoother_equals_weighted_least_squares_over_the_whole_path(walk):
    time, _, q, qd = (array[:40] for array in walk)
    noise = Noise(*(np.full(4, v) for v in (JERK, POSITION, VELOCITY)))
    mean, covariance = smooth(time, q, qd, noise)
    rows, values = [], []
    for k in range(40):
        for i, v, s in ((0, q[k, 0], POSITION), (1, qd[k, 0], VELOCITY)):
            row = np.zeros(120)
            row[3 * k + i] = 1 / s
            rows.append(row)
            values.append(v / s)
    for k in range(39):
        h = time[k + 1] - time[k]
        f = np.array([[1, h, h * h / 2], [0, 1, h], [0, 0, 1]])
        # Covariance of the integrals of white jerk by quadrature, not by the formula in use.
        s = (np.arange(2000) + 0.5) / 2000 * h
        g = np.stack([s**2 / 2, s, np.ones_like(s)])
        root = np.linalg.inv(np.linalg.cholesky(JERK * (g @ g.T) * h / 2000))
        block = np.zeros((3, 120))
        block[:, 3 * k : 3 * k + 3] = -root @ f
        block[:, 3 * k + 3 : 3 * k + 6] = root
        rows.extend(block)
        values.extend([0.0] * 3)
    a = np.array(rows)
    path, *_ = np.linalg.lstsq(a, np.array(values), rcond=None)
    spread = np.sqrt(np.diag(np.linalg.inv(a.T @ a))).reshape(40, 3)
    np.testing.assert_allclose(mean[:, 0] / spread, path.reshape(40, 3) / spread, atol=0.01)
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance[:, 0], axis1=1, axis2=2)), spread, rtol=0.01)


def test_smoother_serves_as_a_differentiation_and_carries_its_uncertainty(make_log, tones):
    log = make_log(jitter=True, noise=(1e-4, 3e-3, 0.1))
    samples = samples_from_log(log, differentiation=KalmanSmoother(), trim=False)
    assert samples.qdd_std.shape == samples.qdd.shape
    inner = slice(100, -100)
    error = samples.qdd[inner] - tones(samples.time[inner], 2)
    # Tones are smoother than white jerk: the standard deviation is on the safe side.
    assert np.all(np.sqrt((error**2).mean(0)) < 1.1 * samples.qdd_std[inner].mean(0))
    (step,) = [s for s in samples.steps if s["name"] == "smooth"]
    assert len(step["jerk_density"]) == 2


def test_noise_levels_are_given_all_or_none_and_positive(make_log):
    with pytest.raises(SignalError, match=r"all .* or none"):
        samples_from_log(make_log(), differentiation=KalmanSmoother(jerk=1.0))
    with pytest.raises(SignalError, match="above zero"):
        samples_from_log(make_log(), differentiation=KalmanSmoother(1.0, 0.0, 1e-3))


def test_noise_free_motion_does_not_break_the_search(make_log, tones):
    samples = samples_from_log(make_log(), differentiation=KalmanSmoother(), trim=False)
    assert np.abs(samples.qd[100:-100] - tones(samples.time[100:-100], 1)).max() < 1e-3
