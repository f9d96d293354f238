"""Metrics against values worked out by hand."""

import numpy as np
import pytest

from bayesid.errors import DataError
from bayesid.simulation import l2_index, nrmse, rms, rsd


def test_rms_rsd_and_nrmse_of_a_small_example():
    observed = np.array([[3.0, 0.0], [4.0, 0.0]])
    predicted = np.array([[3.0, 1.0], [3.0, 1.0]])
    np.testing.assert_allclose(rms(observed, predicted), [np.sqrt(0.5), 1.0])
    np.testing.assert_allclose(rsd(observed, predicted), [0.2, np.nan])
    np.testing.assert_allclose(nrmse(observed, predicted), [np.sqrt(2.0), np.nan])


def test_the_l2_index_of_an_exponential_has_its_closed_form():
    time = np.linspace(0.0, 2.0, 20_001)
    error = np.exp(-time)[:, None] * [3.0, 4.0]
    assert l2_index(time, error) == pytest.approx(5.0 * np.sqrt((1 - np.exp(-4.0)) / 4.0), rel=1e-7)


def test_signals_that_do_not_match_are_refused():
    with pytest.raises(DataError, match="must both be"):
        rms(np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(DataError, match="L2 index"):
        l2_index(np.zeros(3), np.zeros((3, 2)))
