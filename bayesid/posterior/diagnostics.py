"""Whether chains can be believed, in numbers and in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

HIGHEST_RHAT = 1.01
LEAST_ESS = 400.0
LEAST_ENERGY = 0.3


@dataclass(frozen=True)
class Diagnostics:
    """Divergent transitions, largest split R-hat, smallest bulk and tail ESS, smallest E-BFMI over chains, with the parameter
    that each extreme belongs to (Vehtari et al. 2021; Betancourt 2016)."""

    divergences: int
    max_rhat: float
    min_ess_bulk: float
    min_ess_tail: float
    min_energy: float
    worst_rhat: str = ""
    worst_ess: str = ""
    mean_steps: float = 0.0
    rejected: float = 0.0

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, one sentence each; empty when the chains can be believed."""
        out = []
        if self.divergences:
            out.append(
                f"{self.divergences} divergent transition{'s' if self.divergences > 1 else ''}: the chains miss a part of the "
                "posterior; raise --target-accept, or hold the prior tighter (--prior-dof, or --prior-spread with "
                "--prior log-cholesky)"
            )
        if not self.max_rhat <= HIGHEST_RHAT:
            out.append(
                f"the chains disagree (R-hat {self.max_rhat:.3f} of {self.worst_rhat}, wanted {HIGHEST_RHAT}): they have not "
                "mixed; run more warm-up and draws"
            )
        if not min(self.min_ess_bulk, self.min_ess_tail) >= LEAST_ESS:
            out.append(
                f"only {min(self.min_ess_bulk, self.min_ess_tail):.0f} effective draws of {self.worst_ess}, wanted "
                f"{LEAST_ESS:.0f}: run more draws"
            )
        if not self.min_energy >= LEAST_ENERGY:
            out.append(f"the energy mixes slowly (E-BFMI {self.min_energy:.2f}): the posterior has heavy tails; run more draws")
        return tuple(out)

    @property
    def good(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict:
        """JSON-able content, as the `diagnostics` part of a result."""
        return asdict(self)


def diagnose(draws, names, divergences: int, energy, mean_steps: float = 0.0, rejected: float = 0.0) -> Diagnostics:
    """Diagnostics of draws (chains, S, P) with the energies (chains, S) of the sampler."""
    draws = np.asarray(draws)
    if not np.isfinite(draws).all():
        return Diagnostics(int(divergences), np.inf, 0.0, 0.0, 0.0, "all parameters", "all parameters")
    lower, upper = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
    ranks = _rank_normal(draws)
    folded = _rank_normal(np.abs(draws - np.median(draws, axis=(0, 1))))
    rhat = np.maximum(split_rhat(ranks), split_rhat(folded))
    bulk = ess(_split(ranks))
    tail = np.minimum(ess(_split((draws <= lower) * 1.0)), ess(_split((draws <= upper) * 1.0)))
    energy = np.asarray(energy)
    spread = np.maximum(energy.var(axis=1), 1e-300)
    bfmi = float(np.min(np.mean(np.diff(energy, axis=1) ** 2, axis=1) / spread))
    return Diagnostics(
        int(divergences),
        float(rhat.max()),
        float(bulk.min()),
        float(tail.min()),
        bfmi,
        names[int(np.argmax(rhat))],
        names[int(np.argmin(np.minimum(bulk, tail)))],
        float(mean_steps),
        float(rejected),
    )


def split_rhat(draws) -> np.ndarray:
    """(P,) potential scale reduction of chains (chains, S, P) split in halves (Gelman et al. 2013, eq. 11.4)."""
    halves = _split(draws)
    size = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = size * halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt(((size - 1) / size * within + between / size) / np.maximum(within, 1e-300))


def ess(draws) -> np.ndarray:
    """(P,) effective sample size of (chains, S, P) by Geyer's initial monotone sequence (Vehtari et al. 2021, eq. 10-11)."""
    chains, size, _ = draws.shape
    centered = draws - draws.mean(axis=1, keepdims=True)
    transform = np.fft.rfft(centered, 2 * size, axis=1)
    covariance = np.fft.irfft(np.abs(transform) ** 2, axis=1)[:, :size].mean(axis=0) / size
    within = covariance[0] * size / (size - 1)
    total = within * (size - 1) / size
    if chains > 1:
        total = total + draws.mean(axis=1).var(axis=0, ddof=1)
    total = np.maximum(total, 1e-300)
    rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0
    even = size - size % 2
    pairs = rho[:even:2] + rho[1:even:2]
    positive = np.cumprod(pairs > 0, axis=0)
    pairs = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(-1.0 + 2.0 * pairs.sum(axis=0), 1.0 / np.log10(chains * size))
    return chains * size / time


def _split(draws):
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _rank_normal(draws):
    from scipy.special import ndtri
    from scipy.stats import rankdata

    shape = draws.shape
    ranks = rankdata(draws.reshape(-1, shape[2]), axis=0)
    return ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(shape)
