"""Several robots or sessions of one type: what they share, how much they differ, and each one's own parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesid.errors import DataError
from bayesid.models import Model
from bayesid.posterior.diagnostics import Diagnostics, diagnose
from bayesid.posterior.likelihood import Likelihood
from bayesid.posterior.prior import Prior, Wishart
from bayesid.results import Estimate

_PRIOR_DRAWS = 4000
_SPREAD_SCALE = 0.2


@dataclass(frozen=True)
class Fleet:
    """Hierarchical normal model of base parameters: beta_r ~ N(mu, diag(tau s)^2), mu ~ the prior's own moments.

    s is the prior's standard deviation of each base parameter and tau how much members differ, one per parameter, half-Cauchy
    with scale 0.2 (Gelman 2006): some parameters are shared to the gram, others differ, and no common scale fits both.
    Members enter through their compressed likelihoods. Everything is conditionally conjugate, so the sampler is Gibbs' with
    the half-Cauchy written as a mixture of inverse gammas (Makalic, Schmidt 2016).
    """

    prior: Prior | None = None
    chains: int = 4
    warmup: int = 300
    draws: int = 1000
    seed: int = 0

    def run(self, model: Model, likelihoods: list[Likelihood]) -> FleetPosterior:
        """Posterior from one likelihood per robot or session."""
        if len(likelihoods) < 2:
            raise DataError("a fleet needs at least two robots or sessions")
        for likelihood in likelihoods:
            if likelihood.size != model.base.dimension:
                raise DataError("all members of a fleet must share the model: a likelihood has other base parameters")
        base = model.base
        prior = base.project((self.prior or Wishart()).of(model).sample(self.seed, _PRIOR_DRAWS))
        center, scale = prior.mean(axis=0), prior.std(axis=0)
        held = np.linalg.inv(np.cov((prior / scale).T))
        members = []
        for likelihood in likelihoods:
            rows, right = likelihood.quadratic(likelihood.beta)
            rows = rows * scale
            members.append((rows.T @ rows, rows.T @ right))
        names = tuple(f"{base.names[k]}" for k in range(base.dimension))
        chains = [self._chain(members, center / scale, held, c) for c in range(self.chains)]
        own, shared, spreads = (np.array(part) for part in zip(*chains))
        own, shared = own * scale, shared * scale
        tested = np.concatenate([own.reshape(*own.shape[:2], -1), shared, np.log(spreads)], axis=2)
        labels = [f"{name} of member {r + 1}" for r in range(len(members)) for name in names]
        labels += [*names, *(f"spread of {name}" for name in names)]
        # Gibbs' sampler has no energy: independent numbers stand for one that mixes perfectly.
        energy = np.random.default_rng(0).normal(size=tested.shape[:2])
        return FleetPosterior(model, own, shared, spreads, diagnose(tested, labels, 0, energy), scale)

    def _chain(self, members, center, held, chain):
        rng = np.random.default_rng([self.seed, chain])
        size, count = len(center), len(members)
        tau2 = _SPREAD_SCALE**2 * np.exp(rng.normal(size=size))
        mixing = np.ones(size)
        shared = center.copy()
        own = np.tile(center, (count, 1))
        kept = []
        for step in range(self.warmup + self.draws):
            loose = 1.0 / tau2
            for r, (precision, moment) in enumerate(members):
                own[r] = _normal(rng, precision + np.diag(loose), moment + loose * shared)
            shared = _normal(rng, held + np.diag(count * loose), held @ center + loose * own.sum(axis=0))
            squares = np.sum((own - shared) ** 2, axis=0)
            tau2 = (0.5 * squares + 1.0 / mixing) / rng.gamma(0.5 * (count + 1.0), size=size)
            mixing = (1.0 / _SPREAD_SCALE**2 + 1.0 / tau2) / rng.gamma(1.0, size=size)
            if step >= self.warmup:
                kept.append((own.copy(), shared, np.sqrt(tau2)))
        return [np.array(part) for part in zip(*kept)]


@dataclass(frozen=True, eq=False)
class FleetPosterior:
    """Draws of base parameters: `members` (chains, S, R, b), `shared` (chains, S, b), `spreads` (chains, S, b), the
    standard deviation between members as part of the prior's `scale` (b,)."""

    model: Model
    members: np.ndarray
    shared: np.ndarray
    spreads: np.ndarray
    diagnostics: Diagnostics
    scale: np.ndarray

    def member(self, r: int) -> Estimate:
        """Base parameters of one member, pooled with the others."""
        return self._estimate(self.members[:, :, r], "fleet member")

    def population(self) -> Estimate:
        """Base parameters that the fleet shares."""
        return self._estimate(self.shared, "fleet population")

    def newcomer(self, seed: int = 0) -> Estimate:
        """Base parameters of another robot of this type, of which there are no data yet."""
        noise = np.random.default_rng(seed).normal(size=self.shared.shape)
        return self._estimate(self.shared + noise * self.spreads * self.scale, "fleet newcomer")

    def _estimate(self, draws, method):
        base = self.model.base
        flat = draws.reshape(-1, base.dimension)
        return Estimate(base.names, base.units, base.kinds, flat.mean(axis=0), np.cov(flat.T), method, draws=flat)


def _normal(rng, precision, moment):
    factor = np.linalg.cholesky(precision)
    half = np.linalg.solve(factor, moment)
    return np.linalg.solve(factor.T, half + rng.normal(size=len(moment)))
