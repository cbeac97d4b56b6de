"""`train` and `resume`: train a new run, several at once, or continue one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, overload

from sparring import ids, trusted
from sparring.config import TrainConfig
from sparring.config.options import flat
from sparring.config.renamed import renamed
from sparring.errors import ConfigError, SparringError
from sparring.factories import absolute_name, check_not_importing, register_factory
from sparring.games.starts import with_absolute_path
from sparring.kernels import compiling
from sparring.learn.learner import GAMES
from sparring.learn.plan import CPU
from sparring.pools.custom.faults import restored_folder
from sparring.pools.custom.make import EnvInfo
from sparring.pools.protocol import GamePool
from sparring.store import checkpoint as checkpoints
from sparring.store.champions import full_name
from sparring.store.folders import display_path
from sparring.store.policies import load_policy
from sparring.training.agent import Agent
from sparring.training.budget import only_budget
from sparring.training.callbacks import Callbacks
from sparring.training.imitation.making import absolute_source
from sparring.training.planning.algorithms import check_custom, check_of_mode, mode_of, named
from sparring.training.planning.curricula import absolute_phases, with_phases
from sparring.training.planning.custom import (
    facts_of_given,
    given_pool,
    is_maker,
    name_net,
    net_again,
    pool_again,
    rules_of,
)
from sparring.training.planning.participants import opponent_texts, pin_checkpoints
from sparring.training.planning.placement import device_of
from sparring.training.planning.plan import computed
from sparring.training.planning.settings import (
    BY_ROLE,
    check_not_by_role,
    check_same,
    members_of,
    merged,
    read_config,
    replace_budget,
    said_by,
    with_preset,
    written,
)
from sparring.training.planning.training import plan_training
from sparring.training.records.overview import Overview, amount
from sparring.training.records.run import Run, check_name, folder_word, lock_all, remove_on_refusal
from sparring.training.resuming import check_resumable
from sparring.training.session import TrainingSession
from sparring.training.several import Agents, check_one_kind, train_several
from sparring.training.starting import resolve_init

SEVERAL = {"seeds", "population"}
"""Keywords that make `train` return `Agents`, even of one run."""
REPLAY = "replay"
"""Tensor group of a snapshot with the replay buffer, besides its segments."""


@overload
def train(game: Any = None, *, seeds: int, **settings: Any) -> Agents: ...


@overload
def train(game: Any = None, *, population: int, **settings: Any) -> Agents: ...


@overload
def train(game: Any = None, **settings: Any) -> Agent: ...


def train(
    game: Any = None,
    *,
    minutes: float | None = None,
    quiet: bool = False,
    on_update: Any = None,
    on_evaluation: Any = None,
    on_episode: Any = None,
    **settings: Any,
) -> Agent | Agents:
    """Train an agent; all settings of `sparring train` are keyword arguments.

    seeds, population, vary: train several runs, one after the other or as a population on a GPU;
        returns `Agents`, a sequence that compares them.
    game: a game's name, or a custom environment: its factory's name (my_game:make_env), the
        factory itself, or an object: a Gymnasium env or vector, a PettingZoo AEC or parallel env,
        or a list of envs. Left out: the game of the file `config`, or skull_king.
    on_update, on_evaluation, on_episode: see `Callbacks`.
    opponents: texts as on the command line, policies, agents, functions (obs, mask, rng) ->
        actions, objects with act(obs, mask), or factories that make one of these per game.
    trust: classes and factories that configuration files may name, such as my_nets:Net.
    net: a table of settings, or a custom network: its class, or a torch.nn.Module.
    """
    check_not_importing("sparring.train")
    changes: dict[str, Any] = dict(settings)
    trusted.allow(*trusted.strings_in([game, changes, changes.pop("trust", ())]))
    opponents = given_opponents(changes)
    name_net(changes)
    if isinstance(changes.get("league"), str):
        changes["league"] = {"preset": changes["league"]}
    if isinstance(changes.get("hierarchy"), bool):
        changes["hierarchy"] = {"on": changes["hierarchy"]}
    if "workers" in changes:
        changes["workers"] = str(changes["workers"])
    if minutes is not None:
        changes["minutes"] = float(minutes)
    file = str(changes.pop("config", ""))
    if is_maker(game):
        game = register_factory(game) or game
    brought = game is not None and not isinstance(game, str)
    if brought:
        config = complete("", file, changes, facts=facts_of_given(game))
    else:
        config = complete(ids.trust_typed(game or ""), file, changes)
    check_given(config, changes)
    if config.dry_run:
        raise ConfigError("dry_run: use `sparring train --dry-run`; train() has no dry run")
    check_one_kind(config)
    options: dict[str, Any] = {
        "quiet": quiet,
        "callbacks": Callbacks(on_update, on_evaluation, on_episode),
        "opponents": opponents,
    }

    pool_for = partial(given_pool, game) if brought else None
    if len(members_of(config)) == 1 and not SEVERAL & settings.keys():
        return train_with(config, pool=pool_for(config) if pool_for else None, **options)
    together = at_once(config)
    return train_several(config, train_all, at_once=together, pool_for=pool_for, **options)


def complete(
    game: str, file: str, changes: Mapping[str, Any], *, facts: EnvInfo | None = None
) -> TrainConfig:
    """Return the complete configuration of a run. facts: of an environment object."""
    changes = dict(changes)
    asked: dict[str, Any] = {
        "league": str(changes.get("league", {}).get("preset", "")),
        "algo": str(changes.get("algo", "")),
        "mode": mode_of(changes),
        "hierarchy": bool(changes.get("hierarchy", {}).get("on", False)),
        "curriculum": str(changes.pop("curriculum", "")),
        "facts": facts,
    }
    config: TrainConfig
    base = replace_budget(with_preset(game, file, **asked), changes)
    config = merged(base, changes, "train")
    if device_of(config) != CPU:
        base = replace_budget(with_preset(game, file, gpu=True, **asked), changes)
        config = merged(base, changes, "train")
    return config


def check_given(config: TrainConfig, changes: Mapping[str, Any]) -> None:
    """Raise an error for keywords that the algorithm does not have."""
    with said_by("train"):
        check_custom(config.algo, config.dqn.mode, named(changes))
        check_of_mode(config.dqn.mode, named(changes))
        check_not_by_role(config.roles, named(changes, BY_ROLE))


def given_opponents(changes: dict[str, Any]) -> list[Any]:
    """Return opponents that are objects, and replace them by their names in the settings."""
    given = changes.get("opponents", ())
    if isinstance(given, str):
        changes["opponents"] = (given,)
        return []
    if not isinstance(given, list | tuple):
        given = [given]
    if all(isinstance(word, str) for word in given):
        return []
    changes["opponents"] = opponent_texts(given)
    return list(given)


def train_with(
    config: TrainConfig,
    *,
    quiet: bool = False,
    pool: GamePool | None = None,
    callbacks: Callbacks | None = None,
    opponents: Sequence[Any] = (),
    made_by: str = "",
) -> Agent:
    """Train an agent under a complete configuration.

    opponents: replace those of the configuration; may be policies and functions.
    made_by: the command that trains the run for its purposes; such a run is never `latest`.
    """
    options = {"pool": pool, "callbacks": callbacks, "opponents": opponents}
    return train_all([config], quiet=quiet, made_by=made_by, **options)[0]


def train_population(config: TrainConfig, *, quiet: bool = False) -> list[Agent]:
    """Train several runs at once on one GPU; each has its folder, like any other run."""
    return train_all(members_of(config), quiet=quiet)


def train_all(members: Sequence[TrainConfig], *, made_by: str = "", **options: Any) -> list[Agent]:
    """Train new runs together. Environments may change the working directory meanwhile."""
    root = Path(members[0].runs).absolute()
    with restored_folder():
        session, configs = prepare_new(members, response=bool(made_by), **options)
        with remove_on_refusal(root) as runs:
            line = session.announced.line
            runs += [new_run(member, root, made_by, line) for member in configs]
            with lock_all(runs):
                return session.finish(runs)


def prepare(
    configs: Sequence[TrainConfig],
    *,
    callbacks: Callbacks | None = None,
    quiet: bool = False,
    **given: Any,
) -> TrainingSession:
    """Plan training (given: see `plan_training`) and build the learner; writes nothing."""
    compiling.PROGRESS.quiet = quiet
    return TrainingSession.prepare(
        plan_training(configs, **given), callbacks=callbacks, quiet=quiet
    )


def prepare_new(
    members: Sequence[TrainConfig],
    *,
    pool: GamePool | None = None,
    opponents: Sequence[Any] = (),
    **options: Any,
) -> tuple[TrainingSession, list[TrainConfig]]:
    """Prepare new runs; return the session and the settings for their files."""
    for member in members:
        check_name(Path(member.runs), member.name)
    configs = [absolute(member, pool, opponents) for member in members]
    session = prepare(configs, pool=pool, opponents=opponents, **options)
    session.begin()
    return session, configs


def at_once(config: TrainConfig) -> bool:
    """Whether several runs are trained as a population; members that share a league must be."""
    return config.population > 1 or config.league.shared or device_of(config) != CPU


def new_run(
    config: TrainConfig, root: Path | None = None, made_by: str = "", line: str = ""
) -> Run:
    """Create the folder of a run. root: folder of all runs; default: as the settings say."""
    words = (folder_word(config.game) or "env", folder_word(config.algo))
    where = root or Path(config.runs)
    settings = written(config)
    return Run.create(where, *words, settings, name=config.name, made_by=made_by, comment=line)


def resume(
    path: str | Path,
    *,
    number: int = -1,
    minutes: float = 0.0,
    updates: int = 0,
    decisions: int = 0,
    episodes: int = 0,
    devices: str = "",
    game: Any = None,
    opponents: Sequence[Any] = (),
    net: Any = None,
    trust: str | Sequence[str] = (),
    clear_replay: bool = False,
    quiet: bool = False,
    on_update: Any = None,
    on_evaluation: Any = None,
    on_episode: Any = None,
) -> Agent:
    """Continue a run from one of its checkpoints; budgets are totals of the whole run.

    A finished run returns its agent at once; give a larger budget to continue it.
    From an older checkpoint, a new run starts in another folder: nothing is lost.
    devices: GPUs to go on with, such as "0,1"; default: those of the run.
    game: the environment object or anonymous function that the run was started with. Not needed
        for an environment with a factory's name.
    opponents: the opponents that were objects, again.
    net: the custom network, again, if it was an object. Not needed for one with a class's name.
    trust: classes and factories that the run may use, such as my_nets:Net, if it is not yours.
    clear_replay: start with an empty replay buffer.
    """
    check_not_importing("sparring.resume")
    trusted.allow(*([trust] if isinstance(trust, str) else trust))
    budget = {"minutes": minutes, "updates": updates, "decisions": decisions, "episodes": episodes}
    callbacks = Callbacks(on_update, on_evaluation, on_episode)
    run = Run.open(path)
    check_version(run)
    seen = Overview(run.path)
    is_done = number < 0 and not only_budget(budget) and seen.state == "done"
    with (
        restored_folder(),
        run.lock(),
    ):  # locked until training ends, so that no other process saves or prunes meanwhile
        newest = checkpoints.newest_valid(run.checkpoints, segments=not clear_replay)
        if newest is None:
            return restart_imitation(
                run, number, callbacks=callbacks, opponents=opponents, quiet=quiet
            )
        chosen = newest if number < 0 else run.checkpoints / f"{number:08d}"
        saved = checkpoints.load(chosen, segments=not clear_replay)
        check_resumable(chosen, saved)
        if clear_replay:
            check_has_replay(run, saved)
        config = read_config(run.config, f"{run.path}/config.toml")
        before = read_config(saved.meta["config"], f"{run.path}: checkpoint {saved.number}")
        check_same(written(before), written(config))
        if opponents and opponent_texts(opponents) != config.opponents:
            raise ConfigError(
                f"opponents: the run was started with {'; '.join(config.opponents)}, and now there "
                f"are {'; '.join(opponent_texts(opponents))}; give the same, or start a new run "
                "with --init"
            )
        if net is not None:
            net_again(net, config, str(run.path))
        if is_done:
            return Agent(load_policy(run.path, seeing=True), run.path, seen.ended or "done")
        config, usual = with_budget(config, saved.meta, budget), config.devices or config.device
        if devices:
            config = replace(config, devices=devices, device="cuda")
        session = prepare(
            [config],
            pool=pool_again(game, config, saved.meta, str(run.path)),
            lr_factor=saved.meta.get("lr_factor", 1.0),
            callbacks=callbacks,
            opponents=opponents,
            quiet=quiet,
            response=True,
        )
        if devices not in ("", usual) and not quiet:
            games = "the same games go on" if GAMES in saved.blobs else "new games begin"
            text = f"devices {devices} instead of {usual}: {games}, sums over them are rounded"
            print(f"{text} in another order, and minibatches are drawn anew", file=sys.stderr)
        if saved.number == int(newest.name):
            if written(config) != run.config:
                run.configure(written(config), session.announced.line)
            return continue_run(session, run, saved, clear_replay=clear_replay)
        best = int(saved.meta["best"]["update"])
        line = session.announced.line
        new = run.branch(saved.number, written(config), best=best, comment=line)
    if not quiet:
        text = f"{run.name} has newer checkpoints and is not changed; continuing in "
        print(f"{text}{display_path(new.path)}", file=sys.stderr)
    with restored_folder(), new.lock():
        saved = checkpoints.load(new.checkpoints / chosen.name, segments=not clear_replay)
        return continue_run(session, new, saved, clear_replay=clear_replay)


def check_version(run: Run) -> None:
    """Raise an error for a run whose settings have names of an older version."""
    old = next(filter(renamed, flat(run.config)), "")
    if old:
        raise ConfigError(
            f"{run.path} was made by an older version of sparring ({old} is now {renamed(old)}) "
            f"and cannot be resumed; start a new run with its weights: --init {run.path}"
        )


def restart_imitation(run: Run, number: int, **options: Any) -> Agent:
    """Restart a run that ended during imitation."""
    config = read_config(run.config, f"{run.path}/config.toml")
    if not config.imitate or number >= 0:
        raise SparringError(f"{run.path} has no checkpoint yet; start again: sparring train")
    session = prepare([config], **options)
    session.start_from_init()
    return session.finish([run])[0]


def continue_run(
    session: TrainingSession, run: Run, saved: checkpoints.Checkpoint, *, clear_replay: bool
) -> Agent:
    if not clear_replay:
        return session.finish([run], resume=saved)[0]
    tensors = {group: named for group, named in saved.tensors.items() if group != REPLAY}
    without = replace(saved, tensors=tensors, segments={})
    return session.finish([run], resume=without, note="replay cleared")[0]


def check_has_replay(run: Run, saved: checkpoints.Checkpoint) -> None:
    if REPLAY not in saved.tensors and not saved.segments:
        raise ConfigError(
            f"clear_replay: checkpoint {saved.number} of {run.path} holds no replay "
            f"(algo {run.config.get('algo', 'ppo')}); resume without this option"
        )


def with_budget(config: TrainConfig, meta: dict[str, Any], wanted: dict[str, float]) -> TrainConfig:
    kind = only_budget(wanted)
    if not kind:
        return config
    used = {"minutes": meta["seconds"] / 60, "updates": meta["update"]}
    used = used.get(kind, meta.get(kind, 0))
    if wanted[kind] <= used:
        raise ConfigError(
            f"{kind} {amount(kind, wanted[kind])}: the run has {amount(kind, used)} behind it "
            "already; budgets are totals, give more than that"
        )
    changed: TrainConfig = replace(replace_budget(config, wanted), **{kind: wanted[kind]})  # type: ignore[arg-type]
    return changed


def absolute(
    config: TrainConfig, pool: GamePool | None = None, opponents: Sequence[Any] = ()
) -> TrainConfig:
    """Return settings with absolute paths, and with checkpoints instead of names like `latest`."""
    config = with_phases(config)
    rules = rules_of(config, pool)
    return replace(
        config,
        collect=computed(rules, config, device_of(config)),
        game=absolute_name(config.game),
        net=replace(config.net, kind=absolute_name(config.net.kind)),
        init=resolve_init(full_name(config.init, rules.name)),
        opponents=config.opponents if opponents else pin_checkpoints(rules, config.opponents),
        starts=tuple(map(with_absolute_path, config.starts)),
        imitate=tuple(absolute_source(rules, word) for word in config.imitate),
        phases=absolute_phases(config, rules),
    )
