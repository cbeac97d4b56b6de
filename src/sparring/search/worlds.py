"""Search in games whose seats hide something from each other: settings of the native playouts.

A decision is tried in worlds that its seat thinks possible: every candidate action in every world,
in which all seats play on by the policy from what they see.
docs/guides/search.md explains the rules, csrc/search/playout.hpp plays them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparring import _native
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.games.seeds import seed_bits
from sparring.search.budget import Budget


@dataclass(frozen=True)
class WorldsConfig:
    """Settings of a search over worlds."""

    considered: int = 16
    """Actions that are tried: the most probable ones."""
    least: int = 8
    """Worlds in which each is tried; where the budget does not suffice, fewer actions are."""
    horizon: int = 12
    """Own decisions after which the value of the network counts; 0: played to the end. Where the
    training discounts rewards to nothing, as behind a round of Skull King, playouts end before."""
    eta: float | None = None
    """Step size of mirror descent: how much a unit of return adds to a log probability. None: 100,
    and in zero-sum games, where larger steps can be exploited, 0.3, or 0.1 in uniform worlds."""
    alpha: float | None = None
    """Pull of a step toward the uniform policy, per unit of return. None: 0.05 in zero-sum games,
    else 0."""
    caution: float = 1.0
    """How much smaller the step is by the standard error of the returns: 1 / (1 / eta + caution *
    error). 0: not at all."""
    belief: bool = True
    """Whether worlds are drawn by the policy's `hidden` head, if it has one; else uniformly."""
    unit: float = 1.0
    """A unit of return, in rewards; a policy gives the scale of its values."""

    def step_size(self, rules: Rules, *, believes: bool) -> float:
        """Return the step size per reward in a game. believes: worlds are drawn by a belief."""
        usual = (0.3 if believes else 0.1) if rules.zero_sum else 100.0
        return (usual if self.eta is None else self.eta) / self.unit

    def pull(self, rules: Rules) -> float:
        """Return the pull toward the uniform policy, in rewards."""
        usual = 0.05 if rules.zero_sum else 0.0
        return (usual if self.alpha is None else self.alpha) * self.unit


def uses_worlds(rules: Rules) -> bool:
    """Whether the seats of a game hide something from each other."""
    return rules.hides and rules.seats > 1


def check_worlds(rules: Rules, budget: Budget | None = None) -> None:
    """Raise if a game with hidden cards cannot be searched, or not with this budget."""
    if rules.box:
        raise ConfigError(
            f"search: {rules.name} hides something and has continuous actions, of which no worlds "
            "are played; leave the search out"
        )
    if budget is not None and budget.names_rule:
        raise ConfigError(
            f"search: {rules.name} hides cards, so no tree is grown by {budget.rule}; leave "
            f"/{budget.rule} out"
        )


def make_worlds(
    rules: Rules,
    playouts: int,
    config: WorldsConfig,
    *,
    roots: int,
    threads: int,
    seed: int,
    noise: bool,
    gamma: float,
    gamma_into: Sequence[float],
    believes: bool,
) -> _native.Search:
    """Return the native search of so many roots."""
    return _native.make_worlds(
        rules.native,
        roots,
        seed=seed_bits(seed),
        threads=threads,
        playouts=playouts,
        considered=config.considered,
        least=config.least,
        horizon=config.horizon,
        eta=config.step_size(rules, believes=believes),
        alpha=config.pull(rules),
        caution=config.caution,
        gamma=gamma,
        gamma_into=list(gamma_into),
        noise=noise,
    )
