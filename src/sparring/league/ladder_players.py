"""Players of a ladder: what is kept of one, and the same one found again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sparring.errors import SparringError, warn
from sparring.games.rules import Rules
from sparring.league.ladder_file import BOT, POLICY, Ladder, LadderPlayer
from sparring.league.players import Player
from sparring.store.champions import (
    CHAMPION,
    champion_games,
    champion_of,
    champion_rules,
    named_champion,
)
from sparring.store.folders import display_path, is_file, is_folder
from sparring.store.lookup import find_player, run_of, split_style, style_of_champion
from sparring.store.styles import AS_IS, Style, read_styles

if TYPE_CHECKING:
    from sparring.nets.policy import Policy


class GoneError(SparringError):
    """A player of a ladder does not exist any more as it was."""


def enter(word: str, rules: Rules, threads: int = 1) -> tuple[LadderPlayer, Player]:
    """Return a player as a ladder keeps it, and itself. Runs are named by their checkpoint."""
    found = find_player(word, rules)
    if found.path is None:
        return LadderPlayer(found.bot), found.bot
    if named_champion(found.word, rules):
        entry = champion_entry(rules, split_style(word)[1])
        return entry, find_again(entry, rules, threads)
    from sparring.store.policies import LOADED_FROM, load_playable

    folder, _ = load_playable(found.path)
    policy = load(folder, found.style, threads)
    policy.check_fits(rules)
    name = f"{policy.meta[LOADED_FROM]}{found.style}"
    path = str(display_path(folder.absolute()))
    return LadderPlayer(name, POLICY, path, str(found.style), weights_hash(policy)), policy


def find_again(player: LadderPlayer, rules: Rules, threads: int = 1) -> Player:
    """Return a player of a ladder; raises GoneError with the reason if it is another one now."""
    if player.kind == BOT:
        if player.name not in rules.bots:
            raise GoneError(f"{rules.name} has no bot {player.name}")
        return player.name
    champion = player.kind == CHAMPION
    if not exists(player, rules):
        why = "the weights of past champions are not kept" if champion else f"{player.path} is gone"
        raise GoneError(why)
    try:
        path = champion_of(rules.name).weights if champion else Path(player.path)
        policy = load(path, style_of(player), threads)
        policy.check_fits(rules)
    except (OSError, SparringError) as error:
        raise GoneError(f"it cannot be loaded: {error}") from error
    if not champion and weights_hash(policy) != player.hash:
        raise GoneError(f"{player.path} holds other weights now")
    policy.name = player.name
    return policy


def exists(player: LadderPlayer, rules: Rules) -> bool:
    """Whether the files of a player are there; weights of a run are not read."""
    if player.kind == CHAMPION:
        try:
            return bool(champion_of(rules.name).entry["sha256"] == player.hash)
        except SparringError:  # there is none, or none that can play
            return False
    path = Path(player.path)
    return player.kind == BOT or is_folder(path) or is_file(path)


def load(folder: Path, style: Style, threads: int) -> Policy:
    from sparring.store.policies import load_policy

    return style.applied(load_policy(folder, threads=threads))


def style_of(player: LadderPlayer) -> Style:
    return read_styles(player.name, player.style.split("@")[1:])


def weights_hash(policy: Policy) -> str:
    """Return the hash that a snapshot of this network has: of the weights and what they play."""
    from sparring.store.policies import policy_meta
    from sparring.store.snapshots import pack_snapshot, sha256_hex

    meta = policy_meta(policy.rules, policy.net, policy.meta)
    return sha256_hex(pack_snapshot(dict(policy.net.state_dict()), meta))


def own_players(rules: Rules) -> list[LadderPlayer]:
    """Return the players that come with a game: its bots, with its own flags its champion too."""
    players = [LadderPlayer(bot) for bot in rules.bots]
    if rules.name in champion_games() and rules.config == champion_rules(rules.name).config:
        try:
            players.append(champion_entry(rules, AS_IS))
        except SparringError as error:
            warn(f"{error}; the ladder goes on without it")
    return players


def champion_entry(rules: Rules, style: Style) -> LadderPlayer:
    champion, name = champion_of(rules.name), f"{CHAMPION}{style}"
    plays = style or style_of_champion(f"{rules.name}:{CHAMPION}")
    return LadderPlayer(name, CHAMPION, "", str(plays), champion.entry["sha256"])


def admit(
    ladder: Ladder, player: LadderPlayer, *, replaces: bool = False
) -> tuple[Ladder, LadderPlayer]:
    """Return the ladder that a player enters, and the player under its name there.

    Weights that are there already keep their name, wherever they lie now. A champion always has
    its name: the one before it is champion-HASH. For others a name that is taken gets a number.
    replaces: the player takes the place of its run's or folder's earlier ones that play alike.
    """
    same = player.kind == BOT, player.hash or player.name, player.style
    for other in ladder.players:
        if (other.kind == BOT, other.hash or other.name, other.style) == same:
            found = other if exists(other, ladder.rules) else replace(other, path=player.path)
            players = (found if one == other else one for one in ladder.players)
            return replace(ladder, players=tuple(players)), found
    if player.kind == CHAMPION:
        for other in ladder.players:
            if other.name == player.name:
                past = f"{CHAMPION}-{other.hash[:12]}{player.name.removeprefix(CHAMPION)}"
                ladder = ladder.renamed(other.name, past)
    if replaces:
        ladder = ladder.without([one.name for one in ladder.players if is_earlier(one, player)])
    if player.name in ladder.names:
        number = 2
        while f"{player.name}#{number}" in ladder.names:
            number += 1
        player = replace(player, name=f"{player.name}#{number}")
    return ladder, player


def is_earlier(one: LadderPlayer, player: LadderPlayer) -> bool:
    """Whether one is an earlier state of the run or folder of a player."""
    if (one.kind, player.kind) != (POLICY, POLICY) or one.style != player.style:
        return False
    return run_of(Path(one.path)) == run_of(Path(player.path))
