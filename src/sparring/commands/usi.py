"""`sparring usi`: a player for any program that runs Shogi engines, over stdin and stdout."""

from __future__ import annotations

import io
import sys

from sparring.commands.players import load_with_flags
from sparring.config import UsiConfig
from sparring.errors import ConfigError, nearest
from sparring.games import Rules
from sparring.games.flags import read_rules
from sparring.league.players import Player
from sparring.league.usi import GAME
from sparring.league.usi.server import Server


def run(config: UsiConfig) -> int:
    """Answer lines until `quit` or until the other side is gone."""
    player, rules = who_plays(config)
    server = Server(player, rules, seed=config.seed, sampled=config.sampled)
    set_streams()
    while not server.finished and (line := sys.stdin.readline()):
        for told in server.answer(line):
            print(told, flush=True)
    return 0


def set_streams() -> None:
    """Speak UTF-8 line by line, whatever the locale says. A bad byte makes a bad line, no end."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)


def who_plays(config: UsiConfig) -> tuple[Player, Rules]:
    """Return who plays, and the game with the flags of the training or those that were set."""
    usual = Rules(GAME)
    bot = usual.bot_called(config.player)
    if bot is not None:
        return bot, read_rules(GAME, config.set)
    from sparring.store.policies import load_policy, locate  # loads torch

    if locate(config.player) is None:
        names = nearest(config.player, usual.bots)
        raise ConfigError(f"{config.player!r} is neither a folder nor a bot of {GAME}{names}")
    game = load_policy(config.player).rules.name
    if game != GAME:
        raise ConfigError(f"{config.player} plays {game}; USI is for {GAME} alone")
    return load_with_flags(config.player, config.set)
