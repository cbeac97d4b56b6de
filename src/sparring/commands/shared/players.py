"""Players by the names that users type: bots, runs, checkpoints. Only agents load torch."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparring.errors import ConfigError
from sparring.games.flags import changed_flags, flags_as_options, read_pair, read_rules
from sparring.games.rules import Rules
from sparring.league.players import Player, name_of
from sparring.league.seating import load_player as called
from sparring.pools.custom.cache import is_custom
from sparring.search.budget import Budget
from sparring.store.champions import full_name, telling_words
from sparring.store.lookup import (
    LookupResult,
    common_game,
    find_player,
    is_sb3_model,
    split_style,
    style_of_champion,
)
from sparring.trusted import absolute_name

if TYPE_CHECKING:
    from sparring.config.commands import PlayConfig
    from sparring.nets.policy import Policy


def who_plays(
    words: Sequence[str], game: str = "", flags: Sequence[str] = (), threads: int = 1
) -> tuple[list[Player], Rules]:
    """Return the named players, and their game with its flags."""
    rules, known = find_game(words, game, flags, threads)
    for word in words:
        if word not in known:
            known[word] = player_called(word, rules, threads)
    return [known[word] for word in words], rules


def find_game(
    words: Sequence[str], game: str = "", flags: Sequence[str] = (), threads: int = 1
) -> tuple[Rules, dict[str, Player]]:
    """Return the game of players, and the policy that was loaded to find it, by name.

    The game is the one that is named, that of the first trained policy, or the only one that has
    all these bots; a champion without its game is of the others' game. Unknown names are refused
    before anything is loaded.
    """
    rules = read_rules(game, flags) if game else None
    found = {word: find_player(word, rules) for word in (words if game else telling_words(words))}
    trained = next((word for word, one in found.items() if one.tells_game), None)
    if trained is None:
        return rules or read_rules(game_of_players(found.values()), flags), {}
    named = full_name(trained, game)
    policy, played = load_with_flags(named, flags, threads, name=split_style(trained)[0])
    if game and absolute_name(game) != played.name:
        raise ConfigError(f"{trained} plays {played.name}, not {game}")
    return played, {trained: policy}


def game_of_players(found: Collection[LookupResult]) -> str:
    """Return the only game that has all these bots; models play it, and do not say which it is."""
    bots = [one for one in found if one.bot]
    if not bots:
        from sparring.store.policies import load_policy

        load_policy(next(one.word for one in found))  # refuses, and says which games it fits
    return common_game(bots)


def player_called(word: str, rules: Rules, threads: int = 1) -> Player:
    """Return a bot or an agent, and print which run and checkpoint it is."""
    player = called(word, rules, threads=threads)
    print_origin(word, player)
    return player


def load_with_flags(
    path: str, pairs: Sequence[str], threads: int = 1, *, name: str = ""
) -> tuple[Policy, Rules]:
    """Return a policy, and its game with the flags of its training, overridden by `pairs`.

    name: shown in tables; left out, as typed.
    """
    from sparring.store.policies import load_policy

    word, style = split_style(path)
    name = name or word
    if is_sb3_model(Path(word)):
        raise ConfigError(
            f"{word} does not say which game it plays; name the game first: sparring play GAME "
            f"--against {word}"
        )
    policy = load_policy(word, name=name, threads=threads)
    print_origin(name, policy)
    policy = (style or style_of_champion(word)).applied(policy)
    if is_custom(policy.rules):
        if pairs:
            raise ConfigError(
                f"--set {' '.join(pairs)}: {policy.rules.name} is a custom environment, whose "
                "factory sets its flags; leave it out"
            )
        return policy, policy.rules
    given = {read_pair(pair, "set")[0] for pair in pairs}
    kept = {key: value for key, value in changed_flags(policy.rules).items() if key not in given}
    rules = read_rules(policy.rules.name, [*flags_as_options(kept), *pairs])
    policy.check_fits(rules)
    return policy, rules


def with_search(players: Sequence[Player], search: str) -> list[Player]:
    """Return players of which the policies search; bots and names with a budget stay as they are.

    search: the option --search, "" for none.
    """
    if not search:
        return list(players)
    budget = read_search(search)
    if all(isinstance(player, str) for player in players):
        names = ", ".join(map(name_of, players))
        raise ConfigError(
            f"--search {search}: {names} is a bot, which has no network to search with"
        )
    return [
        player if isinstance(player, str) or player.budget else player.searching(budget)
        for player in players
    ]


def on_device(players: Sequence[Player], device: str) -> None:
    """Move the networks of policies to a device; bots have none."""
    if device == "cpu":
        return
    from sparring.training.planning.placement import choose_device

    chosen = choose_device(device)
    for player in players:
        if not isinstance(player, str):
            player.to(chosen)


def with_strength(others: dict[int, Player], config: PlayConfig) -> dict[int, Player]:
    """Return the players at --level or with --search; each policy once."""
    if not config.level:
        return dict(zip(others, with_search(list(others.values()), config.search), strict=True))
    if config.search:
        raise ConfigError("--level and --search exclude each other; leave one out")
    known = {id(one): one for one in others.values()}
    leveled = {
        key: one if isinstance(one, str) else one.at_level(config.level)
        for key, one in known.items()
    }
    if config.against and all(isinstance(one, str) for one in known.values()):
        raise ConfigError(f"--level {config.level}: bots have no levels; leave it or --against out")
    return {seat: leveled[id(one)] for seat, one in others.items()}


def read_search(text: str) -> Budget:
    """Read the option --search."""
    try:
        return Budget.parse(text)
    except ConfigError as wrong:
        raise ConfigError(f"--search {text}: {str(wrong).removeprefix('search: ')}") from None


def is_timed(players: Sequence[Player]) -> bool:
    """Whether a player searches for a time, which is long and differs from game to game."""
    return any(
        player.budget.seconds for player in players if not isinstance(player, str) and player.budget
    )


def loaded_from(player: Player) -> str | None:
    """Return the run and checkpoint, or the folder, of a policy; None for a bot."""
    return None if isinstance(player, str) else player.meta.get("loaded_from")


def print_origin(word: str, player: Player) -> None:
    """Print which run and checkpoint a name such as `latest` means."""
    origin = loaded_from(player)
    name, _ = split_style(word)
    if origin and not name.rstrip("/").endswith(origin) and not origin.endswith(f":{name}"):
        print(f"{name} is {origin}", file=sys.stderr)
