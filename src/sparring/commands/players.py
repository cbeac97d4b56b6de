"""Who plays: the words that people type for bots and agents. Torch is loaded for agents alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sparring.games.flags import as_typed, changed_flags, read_pair, read_rules
from sparring.games.rules import Rules, game_names

if TYPE_CHECKING:
    from sparring.league.players import Player
    from sparring.nets.policy import Policy


def player_called(word: str, rules: Rules) -> Player:
    """Return a bot, or the agent of a run or checkpoint."""
    bot = rules.bot_called(word)
    if bot is not None:
        return bot
    from sparring.store.policies import find_player

    player = find_player(word, rules)
    tell_origin(word, player)
    return player


def load_with_flags(path: str, pairs: Sequence[str], threads: int = 1) -> tuple[Policy, Rules]:
    """Return a policy, and its game with the flags of its training except those given anew."""
    from sparring.store.policies import load_policy

    policy = load_policy(path, name=path, threads=threads)
    tell_origin(path, policy)
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
    if origin and not word.rstrip("/").endswith(origin):
        print(f"{word} is {origin}", file=sys.stderr)


def nobody_called(word: str) -> str:
    """Say what to do about a word that is neither a folder nor, without a game, a bot."""
    if word in game_names():
        bots = Rules(word).bots
        return f"{word} is a game; name a player: {bots[-1]} --game {word}, or a run"
    return f"no folder {word}; if it is a bot, add --game {' or --game '.join(game_names())}"
