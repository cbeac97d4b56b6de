"""Environments and networks of somebody's own: by name, or as a program gives them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from sparring.config import NetConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.factories import check_factory_trusted, is_factory, is_object_name
from sparring.games.flags import initial_flags, read_rules
from sparring.games.rules import Rules
from sparring.machine import cores
from sparring.nets.custom import keep_net
from sparring.nets.heads import configured_heads
from sparring.nets.inputs import memory_bytes_of
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.run.trace import TracedPerceptron, trace_perceptron
from sparring.pools.custom import pool_of
from sparring.pools.custom.base import CustomPool
from sparring.pools.custom.make import EnvInfo, env_info, make_pool
from sparring.pools.custom.rules import CustomRules
from sparring.pools.protocol import GamePool
from sparring.pools.workers import WorkerPool
from sparring.pools.workers.auto import choose_workers
from sparring.pygames.registry import is_env

AUTO = "auto"


def by_factory(config: TrainConfig) -> bool:
    """Whether a run's game is an environment of somebody's own, by its factory's name."""
    return is_env(config.game)


def custom_pool(config: TrainConfig, first_game: int = 0) -> CustomPool:
    """Make collect.games games of a run. first_game: how many others play before these."""
    workers, games = workers_of(config), config.collect.games
    room: dict[str, Any] = {
        "seed": config.seed,
        "first_game": first_game,
        "memory": memory_bytes_of(env_info(config.game).rules, config.net),
    }
    if not workers:
        return make_pool(config.game, games, **room)
    return WorkerPool(config.game, games, workers=workers, **room, **asdict(config.env))


def check_vector(config: TrainConfig, typed: str, count: int) -> None:
    """Refuse a vector of environments that is not the share of each of several processes.

    typed: the setting with the number of processes.
    """
    vector = env_info(config.game).games if by_factory(config) else 0
    if vector not in (0, config.collect.games // count):
        raise ConfigError(
            f"{typed}: {config.game} makes a vector of {vector} envs, the games of one "
            f"process; set collect.games {vector * count}"
        )


def one_game(config: TrainConfig) -> GamePool:
    """A single environment to look at, where its games are played by others or not at all."""
    memory = memory_bytes_of(env_info(config.game).rules, config.net)
    return make_pool(config.game, copies=1, memory=memory)


def workers_of(config: TrainConfig) -> int:
    """How many worker processes a run has; `auto` finds out whether they pay, and says why."""
    if config.workers != AUTO:
        return int(config.workers)
    choice = choose_workers(config.game, config.collect.games, cores())
    print(f"workers: {choice.why}", file=sys.stderr)
    return choice.workers


def rules_of(config: TrainConfig, pool: GamePool | None = None) -> Rules:
    """What a run plays by. pool: an environment that a program brought along."""
    if pool is not None:
        return pool.rules
    if by_factory(config):
        return env_info(config.game).rules
    return read_rules(config.game, initial_flags(config.set))


def is_maker(game: Any) -> bool:
    """Whether a program gave a function or a class that makes environments, not one of them."""
    return (callable(game) and not hasattr(game, "reset")) or isinstance(game, type)


def facts_of_given(game: Any) -> EnvInfo:
    """What is known of an environment that a program brings along."""
    if is_maker(game):
        return env_info(game)
    pool = pool_of(game)
    return EnvInfo(pool.rules, pool.num_games)


def given_pool(game: Any, config: TrainConfig) -> CustomPool:
    """The games that a program brings along, as an object or as a function without a name."""
    memory = memory_bytes_of(facts_of_given(game).rules, config.net) if config.net.memory else 0
    if is_maker(game):
        return make_pool(game, config.collect.games, seed=config.seed, memory=memory)
    return pool_of(game, seed=config.seed, memory=memory)


def pool_again(
    game: Any, config: TrainConfig, meta: Mapping[str, Any], run: str
) -> CustomPool | None:
    """The games of a run that goes on, if its program has to bring them; None: found by name."""
    if "foreign" not in meta:
        if game is not None:
            raise ConfigError(f"game: {run} plays {config.game}, which needs no environment")
        return None
    if game is None and not by_factory(config):
        raise ConfigError(
            f"{run} learned {config.game}, an environment of the program that began it; give it "
            "again, in Python: sparring.resume(run, game=env)"
        )
    if game is None:
        check_unchanged(env_info(config.game).rules, meta, run)
        return None
    pool = given_pool(game, config)
    check_unchanged(pool.rules, meta, run)
    return pool


def check_unchanged(rules: CustomRules, meta: Mapping[str, Any], run: str) -> None:
    now, before = rules.plain(), CustomRules(**meta["foreign"]).plain()
    if "parts" in before and len(before["parts"]) == len(now.get("parts", ())):
        pairs = zip(now["parts"], before["parts"], strict=True)
        now["parts"] = [part[: len(old)] for part, old in pairs]  # older files have no shapes
    for key in before:
        if before[key] != now.get(key):
            raise ConfigError(
                f"{run} learned {before['name']} with {key} {before[key]}, and now it is "
                f"{now.get(key)}; put the environment back, or start a new run"
            )


def name_net(changes: dict[str, Any]) -> None:
    """Put a name where a program gave a network or its class, as `net` or as its kind."""
    given = changes.get("net")
    if given is None or isinstance(given, NetConfig):
        return
    settings = dict(given) if isinstance(given, Mapping) else {"kind": given}
    kind, words = settings.get("kind", ""), settings.get("set", ())
    if not isinstance(kind, str):
        settings["kind"] = keep_net(kind)
    if isinstance(words, Mapping):
        settings["set"] = tuple(f"{key}={json.dumps(value)}" for key, value in words.items())
    changes["net"] = settings


def net_again(given: Any, config: TrainConfig, run: str) -> None:
    """Take the network of a run that goes on, where the program that began it brought it along."""
    if not is_factory(config.net.kind):
        raise ConfigError(f"net: {run} has net.kind {config.net.kind}, none of your own")
    keep_net(given, config.net.kind)


def require_code(config: TrainConfig) -> None:
    """Refuse settings that name code which nobody at this keyboard named, before any is loaded."""
    named = [("game", config.game), ("algo", config.algo), ("net.kind", config.net.kind)]
    for word in config.roles:
        key, _, value = word.partition("=")
        if key.endswith(".net.kind"):
            named.append((f"roles {key}", value))
    for what, word in named:
        check_factory_trusted(word, what)


def check_custom_nets(rules: Rules, config: TrainConfig, nets: Mapping[str, NetConfig]) -> None:
    """Refuse modules that cannot be made or trained, before anything else is made."""
    for net in nets.values():
        if not is_factory(net.kind):
            continue
        if is_object_name(config.net.kind) and (
            config.actors or config.cluster or config.replicas > 1
        ):
            raise ConfigError(
                f"net.kind {net.kind}: other processes cannot find an object of this program; give "
                "a class of a module, or leave actors, replicas and cluster out"
            )
        made_custom(rules, net, configured_heads(rules, config.heads))


def is_perceptron(rules: Rules, net: NetConfig) -> bool:
    """Whether a network is computed as a perceptron, whoever wrote it."""
    if is_factory(net.kind):
        return isinstance(trace_perceptron(made_custom(rules, net)), TracedPerceptron)
    return net.perceptron


def made_custom(rules: Rules, net: NetConfig, heads: Mapping[str, int] | None = None) -> Net:
    """Make a network to look at. heads: widths by name; left out, a policy and a value."""
    with torch.random.fork_rng(devices=[]):
        return make_net(rules, net, heads=heads, memory=memory_bytes_of(rules, net))
