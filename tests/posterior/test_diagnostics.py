import arviz as az
import numpy as np
import pytest

from bayesid.posterior.diagnostics import diagnose


@pytest.fixture(scope="module")
def chains():
    rng = np.random.default_rng(0)
    out = np.zeros((4, 500, 3))
    for k in range(1, 500):
        out[:, k] = np.array([0.0, 0.7, -0.4]) * out[:, k - 1] + rng.normal(size=(4, 3))
    return out


def test_numbers_are_those_of_arviz(chains):
    ours = diagnose(chains, "abc", 0, chains[..., 0])
    theirs = {name: chains[..., k] for k, name in enumerate("abc")}
    data = az.convert_to_dataset(theirs)
    bulk = min(float(v) for v in az.ess(data, method="bulk").data_vars.values())
    tail = min(float(v) for v in az.ess(data, method="tail", prob=(0.05, 0.95)).data_vars.values())
    rhat = max(float(v) for v in az.rhat(data).data_vars.values())
    assert ours.min_ess_bulk == pytest.approx(bulk, rel=0.02)
    assert ours.min_ess_tail == pytest.approx(tail, rel=0.05)
    assert ours.max_rhat == pytest.approx(rhat, rel=1e-3)
    assert ours.worst_ess == "b"


def test_chains_that_do_not_mix_are_said_so_in_words(chains):
    apart = chains.copy()
    apart[0, :, 1] += 10.0
    found = diagnose(apart, ("mass", "rotor", "offset"), 0, chains[..., 0])
    assert not found.good
    assert any("chains disagree" in p and "rotor" in p for p in found.problems)


def test_divergences_and_lost_chains_are_problems(chains):
    assert "divergent" in diagnose(chains, "abc", 3, chains[..., 0]).problems[0]
    assert diagnose(chains, "abc", 1, chains[..., 0]).problems[0].startswith("1 divergent transition: the chains miss")
    lost = chains.copy()
    lost[0, 0, 0] = np.nan
    assert not diagnose(lost, "abc", 0, chains[..., 0]).good


def test_slow_energy_is_a_problem(chains):
    energy = np.cumsum(np.random.default_rng(1).normal(size=(4, 500)), axis=1)
    assert any("energy" in p for p in diagnose(chains, "abc", 0, energy).problems)
