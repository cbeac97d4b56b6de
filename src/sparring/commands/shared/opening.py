"""Checks before torch is loaded, which takes seconds: names, options, and one line of progress."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from sparring import ids
from sparring.capabilities.refusals import check_typed
from sparring.config import TrainConfig
from sparring.config.arguments import by_flag, is_option, pairs, unknown_option_message, values_of
from sparring.config.ranges import READERS
from sparring.config.runs import ResumeConfig
from sparring.config.synonyms import DEFAULT_ALGO
from sparring.errors import ConfigError, printable
from sparring.games.flags import initial_flags, read_rules
from sparring.games.rules import Rules, game_names
from sparring.machine import cores, may_have_gpu
from sparring.pools.custom.make import env_info
from sparring.pygames.registry import is_env
from sparring.store.champions import telling_words
from sparring.store.folders import display_path
from sparring.store.lookup import find_bot, find_player, locate, split_style, unknown_name_error
from sparring.training.budget import BUDGETS
from sparring.training.planning.algorithms import check_custom, check_of_mode, typed
from sparring.training.planning.requests import combination
from sparring.training.planning.settings import (
    BY_ROLE,
    budget_of,
    check_not_by_role,
    members_of,
    read_toml,
    replace_budget,
    with_preset,
)
from sparring.training.records.run import Run, check_name, folder_word
from sparring.trusted import is_factory, is_path

OF_RUNS = ("--game", "--runs", "--name", "--init", "--config", "--device", "--dry-run")
"""Options of `train` that set nothing which a run keeps, or that a resumed run has otherwise."""
HEAVY = "torch"
"""Module that takes seconds to load; if it is loaded already, nothing is announced."""
Parse = Callable[[list[str], TrainConfig], TrainConfig]


def read_training(words: list[str], parse: Parse) -> TrainConfig:
    """Return the settings of `sparring train` and print what starts.

    parse: applies the command line to a configuration.
    """
    if words and not is_option(words[0]):  # the game, nearly always
        check_game(ids.to_factory(words[0]))
    asked = read_typed(words)
    if asked.game:
        check_game(asked.game)
    base = defaults(words, asked)
    names = typed(words)
    mode = base.dqn.mode if "dqn.mode" not in names else asked.dqn.mode
    check_custom(base.algo, mode, names)
    check_of_mode(mode, names)
    check_not_by_role(base.roles, typed(words, BY_ROLE))
    config = parse(words, base)
    config = replace(config, game=ids.to_factory(config.game))
    if not config.roles:  # whose networks may use what others have no use for
        check_typed(config.net, typed(words, ("net",)))
    check_training(config)
    announce(training_line(config), quiet=config.json or config.dry_run)
    if not on_gpu(config):
        return config
    return replace(parse(words, defaults(words, asked, gpu=True)), game=config.game)


def read_typed(words: list[str]) -> TrainConfig:
    """Return the settings of the command line that choose presets.

    A Gymnasium id becomes a factory. Invalid numbers are left out: the parser refuses them.
    """
    check_options("train", TrainConfig, words)
    given = values_of(words, TrainConfig)
    plain = TrainConfig()
    budget = {kind: given[kind] for kind in BUDGETS if kind in given}
    return replace(
        plain,
        game=ids.trust_typed(given.get("game", "")),
        config=given.get("config", plain.config),
        algo=given.get("algo", ""),
        curriculum=given.get("curriculum", plain.curriculum),
        league=replace(plain.league, preset=given.get("league.preset", plain.league.preset)),
        dqn=replace(plain.dqn, mode=given.get("dqn.mode", plain.dqn.mode)),
        hierarchy=replace(plain.hierarchy, on=given.get("hierarchy.on") == "True"),
        **{kind: number for kind, text in budget.items() if (number := amount_of(kind, text))},
    )


def amount_of(budget: str, text: str) -> Any:
    try:
        return READERS[type(getattr(TrainConfig(), budget))](text)
    except ValueError:
        return 0


def check_options(command: str, config: Any, words: list[str]) -> None:
    """Refuse an option that a command does not have, and name a similar one."""
    if config is ResumeConfig:
        refuse_new_settings(words)
    if error := unknown_option_message(words, config, command):
        raise ConfigError(f"{error}; see: sparring {command} --help")


def refuse_new_settings(words: list[str]) -> None:
    """Refuse settings of a training, which a resumed run keeps; name the command that sets them."""
    mine, theirs = by_flag(ResumeConfig), by_flag(TrainConfig)
    new = [(name, values) for name, values in pairs(words) if name in {*theirs} - {*mine, *OF_RUNS}]
    if not new:
        return
    run, game, algo = "RUN", "GAME", DEFAULT_ALGO
    if not is_option(words[0]):
        config = Run.open(words[0]).config
        run, game = words[0], ids.display_name(str(config.get("game", "")))
        algo = str(config.get("algo", algo))
    other = [] if algo == DEFAULT_ALGO or "--algo" in dict(new) else ["--algo", algo]
    typed_again = chain.from_iterable([name, *values] for name, values in new)
    again = shlex.join(["--init", run, *other, *typed_again])
    raise ConfigError(
        f"resume cannot change {theirs[new[0][0]].path}; a new run from these weights: "
        f"sparring train {game} {again}"
    )


def shown_training(words: list[str]) -> TrainConfig:
    """Return the defaults that help shows, given the rest of the command line."""
    try:
        asked = read_typed(words)
    except ConfigError:
        asked = replace(TrainConfig(), game="", algo="")
    return defaults(words, asked)


def defaults(words: list[str], asked: TrainConfig, *, gpu: bool = False) -> TrainConfig:
    """Return the settings before the command line: presets and file."""
    budget = {kind: getattr(asked, kind) for kind in BUDGETS}
    budget["minutes"] *= asked.minutes != TrainConfig.minutes
    choices: dict[str, Any] = {
        "league": asked.league.preset,
        "algo": asked.algo,
        "mode": asked.dqn.mode if "dqn.mode" in typed(words) else "",
        "curriculum": asked.curriculum,
        "hierarchy": asked.hierarchy.on,
    }
    return replace_budget(with_preset(asked.game, asked.config, gpu=gpu, **choices), budget)


def on_gpu(config: TrainConfig) -> bool:
    """Whether a run's network will be on a GPU; without a driver torch is not loaded."""
    device = config.device
    if not config.devices and (device == "cpu" or (device == "auto" and not may_have_gpu())):
        return False
    from sparring.training.planning.placement import device_of

    return device_of(config) != "cpu"


def check_training(config: TrainConfig) -> None:
    """Refuse unknown or invalid names, and an algorithm that does not fit the game."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        from sparring.training.planning.gpus import check_torchrun

        check_torchrun(config)
    if is_env(config.game):
        rules: Rules = env_info(config.game).rules
    else:
        rules = read_rules(config.game, initial_flags(config.set))
    if refused := combination(rules, config, {}).refusal():
        raise ConfigError(refused)
    for member in members_of(config):
        check_name(Path(member.runs), member.name)


def check_game(word: str) -> None:
    """Refuse a game that does not exist, and name similar ones."""
    if is_env(word):
        return  # checked when the environment is made
    try:
        Rules(word)
    except ConfigError as error:
        raise ConfigError(f"{error}{ids.suggest_env(word)}") from None


def training_line(config: TrainConfig) -> str:
    kind, amount = budget_of(config)
    threads = config.threads or cores()
    algo = config.algo.upper() if not is_factory(config.algo) else config.algo
    name = config.name or f"{folder_word(config.game)}-{folder_word(config.algo)}-..."
    where = display_path(Path(config.runs) / name)
    members = len(members_of(config))
    several = f"{members} runs, " if members > 1 else ""
    return (
        f"{ids.display_name(config.game)}: {several}{algo}, {threads} thread{'s' * (threads > 1)}, "
        f"{amount:,.10g} {kind[:-1] if amount == 1 else kind}, {where}"
    )


def open_command(name: str, config: Any) -> Any:
    """Check the names that a command was given, and print what starts if loading is slow.

    Returns its configuration, with Gymnasium ids as factories.
    """
    word = getattr(config, ENVIRONMENTS[name]) if name in ENVIRONMENTS else ""
    if word and not is_path(word):
        config = replace(config, **{ENVIRONMENTS[name]: ids.trust_typed(word)})
    if HEAVY not in sys.modules:  # otherwise the command itself checks them at once
        open_slow(name, config)
    return config


def open_slow(name: str, config: Any) -> None:
    """Check names and print what starts, for a command that is about to load torch."""
    quiet = getattr(config, "json", False)
    if isinstance(config, ResumeConfig):
        run = Run.open(config.run)
        what = f"{run.config.get('game', '')}, {str(run.config.get('algo', '')).upper()}"
        announce(f"resume {display_path(run.path)}: {what}", quiet=quiet)
    elif name in GAME_COMMANDS:
        if not is_env(config.game):
            read_rules(config.game, initial_flags(config.set))
        announce(f"{name} {ids.display_name(config.game)}", quiet=quiet)
    elif name in FILE_COMMANDS:
        if not Path(config.file).is_dir():
            check_file(name, config.file)
        announce(f"{name} {config.file}", quiet=quiet)
    elif name in PLAYER_COMMANDS:
        check_players(name, config)
        word = first_word(config)
        with_bots = name == "play" and word in game_names()  # starts at once
        announce(f"{name} {ids.display_name(word)}", quiet=quiet or with_bots)


ENVIRONMENTS = {
    **dict.fromkeys(("check", "tune", "bench scaling"), "game"),
    **{"profile": "target", "port": "env"},
}
"""Commands that take Gymnasium ids, and the argument that names the environment."""
GAME_COMMANDS = ("tune", "bench train", "bench scaling")
"""Commands that load torch and whose first argument is a game."""
FILE_COMMANDS = ("sweep", "bench configs")
"""Commands that load torch and whose first argument is a file of settings, or a folder."""
PLAYER_COMMANDS = ("eval", "exploit", "arena", "play", "profile")
"""Commands that load torch and whose first arguments are players."""


def check_players(name: str, config: Any) -> None:
    if name in ("play", "profile"):
        word, _ = split_style(first_word(config))
        known = word in game_names() or is_factory(word) or find_bot(word)[0]
        if not known and locate(word) is None:
            raise unknown_name_error(word, what="game or run")
        return
    rules = read_rules(config.game, ()) if config.game and not is_env(config.game) else None
    words = config.players if name == "arena" else [first_word(config)]
    for word in words if rules else telling_words(words):
        find_player(word, rules)


def check_file(name: str, file: str) -> None:
    if name == "sweep":
        from sparring.sweep.file import read_sweep

        read_sweep(file)
    else:
        read_toml(file)


def first_word(config: Any) -> str:
    value = next(iter(vars(config).values()))
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def announce(line: str, *, quiet: bool) -> None:
    if not quiet and HEAVY not in sys.modules:
        print(printable(line), file=sys.stderr, flush=True)
