"""From defaults, preset, file and command line to one complete configuration, and back."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.config import TrainConfig
from sparring.config.options import flat, paths_of
from sparring.config.ranges import Checked
from sparring.config.renamed import renamed
from sparring.config.synonyms import DEFAULT_ALGO, like, setting_named
from sparring.curriculum.files import as_json, read_curriculum
from sparring.errors import ConfigError, suggestion
from sparring.games.flags import read_pair, split_list
from sparring.games.rules import Rules
from sparring.ids import to_factory
from sparring.league.seating import load_player
from sparring.pools.custom.cache import is_custom
from sparring.pools.custom.make import EnvInfo
from sparring.proof.exploitability import DEAL
from sparring.schedule import Schedule
from sparring.store.folders import CHECKPOINTS
from sparring.training.budget import COUNTED, only_budget
from sparring.training.planning.algorithms import (
    OF_ALGORITHMS,
    check_custom,
    check_of_mode,
    mode_of,
    named,
    sections_of,
)
from sparring.training.planning.presets import LEAGUES, presets_of

OF_A_RUN = ("name", "init", "config", "json", "dry_run")
"""What the file of a run says about that run alone."""
FLAGS = "set"
"""Flags of the game: a list of pairs, of which members may have some otherwise."""
MAY_CHANGE = frozenset(
    {"minutes", "updates", "decisions", "episodes", "threads", "device", "devices", "pool"}
    | {"name", "init", "runs", "json", "tensorboard", "wandb", "csv", "episodes_csv", "config"}
    | {"curriculum", "dry_run"}
    | {"checkpoint_every_s", "checkpoint_every_decisions", "keep", "eval"}
    | {"population", "vary", "seeds"}
)
"""Settings that a resumed run may have otherwise than before."""
IN_PYTHON = "train"
"""Where settings stand that a program gives as keywords."""
MACHINES = frozenset({"collect.cpu"})
"""And those inside a section: what another machine may not have."""
BY_ROLE = ("net", "ppo")
"""Sections whose settings roles may have their own of."""


def merged(config: Any, changes: Mapping[str, Any], where: str) -> Any:
    """Return a configuration with some values replaced; unknown keys are errors."""
    known = {field.name: getattr(config, field.name) for field in fields(config)}
    new: dict[str, Any] = {}
    for key, value in changes.items():
        if key not in known:
            hint = setting_hint(str(key), config, changes, where)
            raise ConfigError(f"{where}: no setting {key!r}{hint}")
        if key == "roles":
            with said_by(where):
                new[key] = joined(known[key], value)
            continue
        inner = is_dataclass(known[key]) and isinstance(value, Mapping)
        new[key] = merged(known[key], value, where) if inner else value
    if isinstance(config, TrainConfig) and isinstance(new.get("phases"), list | tuple):
        new["phases"] = tuple(map(as_json, new["phases"]))
    with said_by(where):
        return replace(config, **new)


def setting_hint(key: str, config: Any, changes: Mapping[str, Any], where: str) -> str:
    """Say which setting somebody means who wrote another word, as the end of an error."""
    section = config._section if isinstance(config, Checked) else ""
    if now := renamed(f"{section}{key}"):
        return f"; it is now {now!r}"
    own = [field.name for field in fields(config)]
    close = suggestion(key, own)
    if "did you mean" in close and not setting_named(key):
        return close
    algo = str(changes.get("algo", "")) or getattr(config, "algo", DEFAULT_ALGO)
    found = like(f"{section}{key}", paths_of(TrainConfig), algo, python=where == IN_PYTHON)
    return found if "did you mean" in found or not section else close


def with_preset(
    game: str = "",
    file: str = "",
    *,
    gpu: bool = False,
    league: str = "",
    algo: str = "",
    mode: str = "",
    curriculum: str = "",
    hierarchy: bool = False,
    facts: EnvInfo | None = None,
) -> TrainConfig:
    """The defaults with what suits the game, the algorithm, the league, and what a file says.

    game, algo, mode (of DQN): left out, the file says them. Where both do, the file's are not
    looked at.
    gpu: games and network live on a GPU, which likes other sizes.
    curriculum: another file, with phases; what else it says goes before what `file` says.
    hierarchy: every role has a network of its own; left out, the file says it.
    facts: of an environment that a program brings along; what the file calls its game is not
    looked at.
    """
    algo = TrainConfig(algo=algo).algo  # typed in any case
    own = read_file(file) if file else {}
    told = merged(TrainConfig(), own, file)
    curriculum = curriculum or ("" if own.get("phases") else told.curriculum)
    course = read_curriculum(curriculum, game or told.game, algo) if curriculum else {}
    given = {**own, **course}
    told = merged(told, course, curriculum)
    game, algo, mode = to_factory(game or told.game), algo or told.algo, mode or mode_of(given)
    game = facts.rules.name if facts else game
    for source, table in ((file, own), (curriculum, course)):
        with said_by(source):
            check_custom(algo, mode, named(table))
    config = TrainConfig(game=game, algo=algo)
    hierarchy = hierarchy or told.hierarchy.on
    kind: dict[str, Any] = {"gpu": gpu, "hierarchy": hierarchy, "facts": facts}
    for where, preset in presets_of(game, algo, mode, **kind):
        config = merged(config, preset, where)
    league = league or str(given.get("league", {}).get("preset", ""))
    if league in LEAGUES:  # an unknown one is refused with the other settings
        config = merged(config, LEAGUES[league], f"preset {league}")
    named_so = {"game": game, "algo": algo}
    read: TrainConfig = merged(config, {**own, **named_so, "config": file}, file)
    if course:
        course = {**course, **named_so, "curriculum": curriculum}
        course["set"] = [*read.set, *course.get("set", ())]
        read = merged(replace_budget(read, course), course, curriculum)
    return read


def budget_of(config: TrainConfig) -> tuple[str, float]:
    """Return what ends a run: minutes, updates, decisions or episodes, and how many in all."""
    kind = only_budget({kind: getattr(config, kind) for kind in COUNTED}) or "minutes"
    return kind, getattr(config, kind)


def replace_budget(config: TrainConfig, given: Mapping[str, float]) -> TrainConfig:
    """Let a budget that somebody gives go before that of a preset, a file or an earlier time."""
    return replace(config, updates=0, decisions=0, episodes=0) if only_budget(given) else config


@contextmanager
def said_by(where: str) -> Iterator[None]:
    """Put where a setting stands in front of what is wrong with it."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def read_file(file: str) -> dict[str, Any]:
    """What a TOML file with settings says; that of a run says nothing about its name or start."""
    with said_by("config"):
        given = read_toml(file)
    of_run = (Path(file).parent / CHECKPOINTS).is_dir()
    trusted.allow_remembered(Path(file).parent if of_run else Path(file), given)
    if of_run:
        return {key: value for key, value in given.items() if key not in OF_A_RUN}
    return given


def read_toml(file: str) -> dict[str, Any]:
    """Read a TOML file; whatever keeps it from being one is said in a line."""
    try:
        return tomllib.loads(Path(file).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(why_unreadable(file, error)) from None


def why_unreadable(file: str, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"{file} is nested too deeply; use tables of settings"
    if isinstance(error, OSError):
        return f"cannot read {file}: {error.strerror or error}"
    if isinstance(error, UnicodeDecodeError):
        return f"{file} is not text in UTF-8; give a TOML file"
    if isinstance(error, tomllib.TOMLDecodeError):
        return f"{file} is not TOML: {error}"
    return f"cannot read {file!r}: {error}"


def members_of(config: TrainConfig) -> list[TrainConfig]:
    """The runs of a population: seeds and varied settings, each a complete configuration.

    Varied settings go round; the seed moves on with every round, so that members that differ in a
    setting play the same games. Members of a shared league are opponents: each has its own seed,
    and so has a member whose settings are those of an earlier one.
    """
    varied = [read_varied(word) for word in config.vary]
    with said_by("vary"):
        check_varied(config, varied)
    rounds = max([len(values) for _, values in varied], default=1)
    count = config.population if config.population > 1 else rounds * config.seeds
    members: list[TrainConfig] = []
    for index in range(count):
        changes: dict[str, Any] = {}
        for keys, values in varied:
            if keys[0] == FLAGS:
                changes[FLAGS] = with_flag(changes.get(FLAGS, config.set), keys[1], values, index)
                continue
            inner = changes
            for key in keys[:-1]:
                inner = inner.setdefault(key, {})
            inner[keys[-1]] = values[index % len(values)]
        name = f"{config.name}-{index + 1}" if config.name and count > 1 else config.name
        seed = config.seed + (index if config.league.shared else index // rounds)
        alone = replace(config, seed=seed, name=name, population=1, seeds=1, vary=())
        member = merged(alone, changes, "vary")
        while any(replace(member, name=one.name) == one for one in members):
            member = replace(member, seed=member.seed + 1)
        members.append(member)
    return members


def check_varied(config: TrainConfig, varied: Sequence[tuple[list[str], list[Any]]]) -> None:
    names = [".".join(keys) for keys, _ in varied]
    if "algo" in names:
        raise ConfigError(
            "algo: each algorithm has a preset of its own; train a run of each, and hold them "
            "against each other with sparring compare"
        )
    modes = [values for keys, values in varied if keys == ["dqn", "mode"]]
    for mode in modes[0] if modes else [config.dqn.mode]:
        check_custom(config.algo, str(mode), names)
        check_of_mode(str(mode), names)


def with_flag(pairs: Sequence[str], key: str, values: Sequence[Any], index: int) -> tuple[str, ...]:
    """Flags of the game, one of which is another for every member."""
    value = values[index % len(values)]
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return (*(pair for pair in pairs if read_pair(pair, FLAGS)[0] != key), f"{key}={text}")


def value_at(config: TrainConfig, keys: Sequence[str]) -> Any:
    if keys[0] == FLAGS:
        return dict(read_pair(pair, FLAGS) for pair in config.set)[keys[1]]
    value: Any = config
    for key in keys:
        value = getattr(value, key)
    return value


def read_varied(word: str) -> tuple[list[str], list[Any]]:
    """Turn a.b=1,2 into the keys and the values; flags may be words, or lists in brackets."""
    name, text = read_pair(word, "vary")
    if name.partition(".")[0] == FLAGS:
        return [FLAGS, flag_named(name, word)], read_flags(text, word)
    try:
        values = tomllib.loads(f"x = [{text}]")["x"]
    except tomllib.TOMLDecodeError:
        raise ConfigError(f"vary: {word!r} is not key=value,value") from None
    if not values:
        raise ConfigError(f"vary: {word!r} is not key=value,value")
    return name.split("."), values


def flag_named(name: str, word: str) -> str:
    key = name.partition(".")[2]
    if not key:
        raise ConfigError(f"vary: {word!r} names no flag; give set.KEY=value,value")
    return key


def read_flags(text: str, word: str) -> list[Any]:
    """Values of a flag: words, numbers, or lists as [0,1],[1,0]."""
    if "[" in text:
        try:
            lists = tomllib.loads(f"x = [{text}]")["x"]
        except tomllib.TOMLDecodeError:
            raise ConfigError(f"vary: {word!r} is not set.KEY=[a,b],[b,a]") from None
        return list(lists)
    if not split_list(text):
        raise ConfigError(f"vary: {word!r} is not set.KEY=value,value")
    return split_list(text)


def read_config(table: Mapping[str, Any], where: str) -> TrainConfig:
    """The configuration that a run's config.toml holds."""
    config: TrainConfig = merged(TrainConfig(), table, where)
    return config


def written(config: TrainConfig) -> dict[str, Any]:
    """The complete configuration as plain values, without what belongs to other algorithms."""
    others = set(OF_ALGORITHMS) - set(sections_of(config.algo, config.dqn.mode))
    table: dict[str, Any] = as_plain(asdict(config))
    table["phases"] = [json.loads(phase) for phase in config.phases]
    return {key: value for key, value in table.items() if key not in others}


def as_plain(value: Any) -> Any:
    """Tuples as lists and schedules as text, as TOML and JSON have them."""
    if isinstance(value, Schedule):
        return value.plain()
    if isinstance(value, dict):
        return {key: as_plain(inner) for key, inner in value.items()}
    return [as_plain(inner) for inner in value] if isinstance(value, tuple | list) else value


def check_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to resume under settings that would make it another run."""
    then = flat({key: value for key, value in before.items() if key not in MAY_CHANGE})
    there = flat(now)
    changed = [key for key in then if key not in MACHINES and then[key] != there.get(key)]
    if changed:
        lines = ", ".join(f"{key} was {then[key]}, is {there.get(key)}" for key in changed)
        raise ConfigError(
            f"the run's config.toml has changed: {lines}; put it back, or start a new run with "
            "sparring train --config"
        )


def check_against(rules: Rules, names: Sequence[str]) -> None:
    """Refuse opponents that a run cannot be measured against."""
    if names and rules.seats == 1:
        raise ConfigError(f"eval.against: {rules.name} has one seat and no opponents; leave it out")
    for name in names:
        if is_custom(rules):
            load_player(name, rules)
        else:
            rules.bot(name)
    if len(set(names)) < len(names):
        raise ConfigError(f"eval.against: {', '.join(names)} names a bot twice; give each once")


def check_exploitability(rules: Rules, wanted: str) -> None:
    """Refuse an exact answer in games whose chance is not enumerated, or without end."""
    if wanted != "on":
        return
    why = "is a custom environment" if is_custom(rules) else ""
    why = why or ("has continuous actions" if rules.box else "")
    if why or (rules.chance and DEAL not in rules.fields):
        why = why or f"leaves something to chance that no flag {DEAL!r} enumerates"
        raise ConfigError(
            f"eval.exploitability on: {rules.name} {why}; leave it out, and measure the run with "
            "sparring exploit"
        )


def joined(before: Sequence[str], given: Any) -> tuple[str, ...]:
    """Put words or tables behind those that are there; of two of a name the later one counts."""
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Mapping | Sequence):
        raise ConfigError(f"roles needs words or a table by role, not {given!r}")
    words = list(words_of(given) if isinstance(given, Mapping) else map(str, given))
    return tuple({read_pair(word, "roles")[0]: word for word in (*before, *words)}.values())


def words_of(tables: Mapping[str, Any]) -> Iterator[str]:
    """Write {role: {"net": {...}, "ppo": {...}, "ended_by": ...}} as words."""
    for role, settings in tables.items():
        if not isinstance(settings, Mapping):
            raise ConfigError(f"roles.{role} needs a table of settings, not {settings!r}")
        for name, value in settings.items():
            inner = value if isinstance(value, Mapping) else {"": value}
            for key, one in inner.items():
                yield f"{'.'.join(filter(None, (role, name, key)))}={as_text(one)}"


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value and isinstance(value[0], Sequence) and not isinstance(value[0], str):
            return str(Schedule.read(value, "roles"))  # points, as files may write them
        return ",".join(map(str, value))
    return str(value)


def check_not_by_role(words: Sequence[str], names: Collection[str]) -> None:
    """Refuse settings of all networks, such as net.hidden, that every role has its own of."""
    own = [read_pair(word, "roles")[0].partition(".") for word in words]
    roles = {role for role, _, _ in own}
    for name in names:
        deaf = {role for role, _, setting in own if setting == name}
        if deaf and deaf == roles:
            example = " ".join(f"{role}.{name}=..." for role in sorted(roles))
            raise ConfigError(
                f"{name}: with hierarchy.on every role has its own; use --roles {example}"
            )
