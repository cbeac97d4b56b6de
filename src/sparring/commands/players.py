"""Who plays: the words that people type for bots and agents. Torch is loaded for agents alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sparring.errors import ConfigError
from sparring.games.flags import as_typed, changed_flags, read_pair, read_rules
from sparring.games.rules import Rules, game_names
from sparring.league.seating import player_called as called
from sparring.league.seating import split_style
from sparring.pools.foreign.again import is_own

if TYPE_CHECKING:
    from sparring.league.players import Player
    from sparring.nets.policy import Policy


def player_called(word: str, rules: Rules) -> Player:
    """Return a bot, or the agent of a run or checkpoint; @greedy or @sampled may follow."""
    player = called(word, rules)
    tell_origin(word, player)
    return player


def load_with_flags(path: str, pairs: Sequence[str], threads: int = 1) -> tuple[Policy, Rules]:
    """Return a policy, and its game with the flags of its training except those given anew."""
    from sparring.store.policies import load_policy

    name, greedy = split_style(path)
    policy = load_policy(name, name=name, threads=threads)
    tell_origin(name, policy)
    if greedy is not None:
        policy = policy.always(greedy=greedy)
    if is_own(policy.rules):
        if pairs:
            raise ConfigError(
                f"--set {' '.join(pairs)}: {policy.rules.name} is your own environment, whose "
                "factory sets its flags; leave it out"
            )
        return policy, policy.rules
    anew = {read_pair(pair, "set")[0] for pair in pairs}
    kept = {key: value for key, value in changed_flags(policy.rules).items() if key not in anew}
    rules = read_rules(policy.rules.name, [*as_typed(kept), *pairs])
    policy.check_fits(rules)
    return policy, rules


def loaded_from(player: Player) -> str | None:
    """Return the run and checkpoint, or the folder, of a policy; None for a bot."""
    return None if isinstance(player, str) else player.meta.get("loaded_from")


def tell_origin(word: str, player: Player) -> None:
    """Say which run and checkpoint a word such as `latest` means, where it does not say so."""
    origin = loaded_from(player)
    name, _ = split_style(word)
    if origin and not name.rstrip("/").endswith(origin):
        print(f"{name} is {origin}", file=sys.stderr)


def nobody_called(word: str) -> str:
    """Say what to do about a word that is neither a folder nor, without a game, a bot."""
    if word in game_names():
        bots = Rules(word).bots
        return f"{word} is a game; name a player: {bots[-1]} --game {word}, or a run"
    return f"no folder {word}; if it is a bot, add --game {' or --game '.join(game_names())}"
