"""A policy becomes the champion of its game: its weights in 16 bits, measured, written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sparring.errors import ConfigError
from sparring.league.championship import measure, usual_measurements
from sparring.nets.policy import Policy
from sparring.pools.custom.cache import is_custom
from sparring.store.champions import Champion, check_size, write_champion
from sparring.store.policies import policy_meta
from sparring.store.policy_schema import uses_custom_net
from sparring.store.snapshots import pack_snapshot
from sparring.store.tensors import narrow_to_halves, widen_halves


def crown(
    policy: Policy,
    recipe: Mapping[str, Any],
    *,
    plays: str = "",
    facts: Mapping[str, Any] | None = None,
    threads: int = 1,
    zoo: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Champion:
    """Measure a policy with rounded weights and write it as the champion of its game.

    zoo: folder of the champions; left out, that of the package.
    plays: style where a name has none: "sampled" where the best action alone could be exploited.
    facts: further parts of its entry: exploited, rating.
    """
    weights = round_weights(policy)
    wanted = usual_measurements(policy, plays)
    strength = measure(policy, policy.rules, wanted, threads=threads, progress=progress)
    entry = {
        "rules_version": policy.rules.rules_version,
        **({"plays": plays} if plays else {}),
        "recipe": dict(recipe),
        "strength": strength,
        **(facts or {}),
    }
    return write_champion(policy.rules.name, weights, entry, zoo)


def round_weights(policy: Policy) -> bytes:
    """Give a policy the weights of 16 bits that it has as a champion; return them as its file."""
    check_may_be_champion(policy)
    try:
        halves = narrow_to_halves(policy.net.state_dict())
    except ValueError as error:
        raise ConfigError(f"{policy.name} cannot be a champion: {error}") from None
    meta = policy_meta(policy.rules, policy.net, policy.meta)
    meta |= {key: policy.meta[key] for key in ("update", "decisions") if key in policy.meta}
    policy.net.load_state_dict(widen_halves(halves))
    weights = pack_snapshot(halves, meta)
    check_size(weights)
    return weights


def check_may_be_champion(policy: Policy) -> None:
    """Refuse what cannot travel as data alone."""
    if is_custom(policy.rules):
        raise ConfigError(f"{policy.name} plays a custom environment; champions are of our games")
    if uses_custom_net(policy_meta(policy.rules, policy.net, policy.meta)):
        raise ConfigError(f"{policy.name} is a custom network, which is code; a champion is data")
