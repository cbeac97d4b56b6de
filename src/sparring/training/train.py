"""Training from Python: a run from scratch, several at once, or one that goes on."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, overload

from sparring import ids, trusted
from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.factories import absolute_name, check_not_importing, register_factory
from sparring.games.starts import with_absolute_path
from sparring.kernels import compiling
from sparring.pools.custom.faults import restored_folder
from sparring.pools.custom.make import EnvInfo
from sparring.pools.protocol import GamePool
from sparring.store import checkpoint as checkpoints
from sparring.store.folders import display_path
from sparring.store.policies import load_policy
from sparring.training.agent import Agent
from sparring.training.budget import only_one
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
from sparring.training.planning.participants import pinned, told
from sparring.training.planning.placement import choose_device, uses_gpu
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
from sparring.training.records.run import Run, check_name, holding, nothing_left_in, word_of
from sparring.training.resuming import check_resumable
from sparring.training.session import TrainingSession
from sparring.training.several import Agents, check_one_kind, train_several
from sparring.training.starting import resolve_init

SEVERAL = {"seeds", "population"}
"""Keywords that ask for `Agents`, also if there is one of them."""
REPLAY = "replay"
"""The group of a snapshot's tensors that holds what is remembered, together with segments."""


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
    """Train an agent; any setting of `sparring train` may be given by name.

    seeds, population, vary: several runs, one after the other, or a population at once on a GPU.
        `Agents` come back, a sequence that compares them.

    game: a game's name, or an environment of your own: its factory's name (my_game:make_env), the
        factory itself, or an object: a Gymnasium env or vector, a PettingZoo AEC or parallel env,
        or a list of envs. Left out: the game of the file that `config` names, or skull_king.
    on_update, on_evaluation, on_episode: called on the way, see `Callbacks`.
    opponents: words as on the command line; policies, agents, functions (obs, mask, rng) ->
        actions, objects with act(obs, mask), and what makes one of these for every game.
    trust: classes and factories that the files which are read may use, such as my_nets:Net.
    net: a table of settings, or a network of your own: its class, or a torch.nn.Module as it is.
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
        raise ConfigError("dry_run: use `sparring train --dry-run`; here everything is trained")
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
    """Every setting of a run. facts: of an environment that the program brings along."""
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
    if uses_gpu(config.device):
        base = replace_budget(with_preset(game, file, gpu=True, **asked), changes)
        config = merged(base, changes, "train")
    return config


def check_given(config: TrainConfig, changes: Mapping[str, Any]) -> None:
    """Refuse keywords that the algorithm does not have, whatever they say."""
    with said_by("train"):
        check_custom(config.algo, config.dqn.mode, named(changes))
        check_of_mode(config.dqn.mode, named(changes))
        check_not_by_role(config.roles, named(changes, BY_ROLE))


def given_opponents(changes: dict[str, Any]) -> list[Any]:
    """Take opponents out of the settings that are objects; what is left says what they were."""
    given = changes.get("opponents", ())
    if isinstance(given, str):
        changes["opponents"] = (given,)
        return []
    if not isinstance(given, list | tuple):
        given = [given]
    if all(isinstance(word, str) for word in given):
        return []
    changes["opponents"] = told(given)
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

    opponents: instead of the words of the configuration, with policies and functions among them.
    made_by: the command that makes the run for itself, so that it is never `latest`.
    """
    options = {"pool": pool, "callbacks": callbacks, "opponents": opponents}
    return train_all([config], quiet=quiet, made_by=made_by, **options)[0]


def train_population(config: TrainConfig, *, quiet: bool = False) -> list[Agent]:
    """Train several runs at once on one GPU; each has a folder of its own, like any other run."""
    return train_all(members_of(config), quiet=quiet)


def train_all(members: Sequence[TrainConfig], *, made_by: str = "", **options: Any) -> list[Agent]:
    """Train new runs together. Environments may go where they like meanwhile, their folders not."""
    root = Path(members[0].runs).absolute()
    with restored_folder():
        session, configs = prepare_new(members, **options)
        with nothing_left_in(root) as runs:
            told = session.announced.line
            runs += [new_run(member, root, made_by, told) for member in configs]
            with holding(runs):
                return session.finish(runs)


def prepare(
    configs: Sequence[TrainConfig],
    *,
    callbacks: Callbacks | None = None,
    quiet: bool = False,
    **given: Any,
) -> TrainingSession:
    """Plan training (given: see `plan_training`) and build what trains; nothing is written."""
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
    """Prepare runs that are new; return their settings as their files are to have them, too."""
    for member in members:
        check_name(Path(member.runs), member.name)
    configs = [absolute(member, pool, opponents) for member in members]
    session = prepare(configs, pool=pool, opponents=opponents, **options)
    session.begin()
    return session, configs


def at_once(config: TrainConfig) -> bool:
    """Whether several runs are trained together: on a GPU, or because a population was asked."""
    return config.population > 1 or uses_gpu(config.device)


def new_run(
    config: TrainConfig, root: Path | None = None, made_by: str = "", told: str = ""
) -> Run:
    """Make the folder of a run. root: where all runs lie, if not where its settings say."""
    words = (word_of(config.game) or "env", word_of(config.algo))
    where = root or Path(config.runs)
    own = written(config)
    return Run.create(where, *words, own, name=config.name, made_by=made_by, told=told)


def resume(
    path: str | Path,
    *,
    number: int = -1,
    minutes: float = 0.0,
    updates: int = 0,
    decisions: int = 0,
    episodes: int = 0,
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
    """Go on with a run from one of its checkpoints; budgets are totals over its life.

    One that is done returns its agent at once; it goes on with a larger budget.
    From an older checkpoint a new run begins, in a folder of its own: nothing is lost.
    game: the environment object, or the function without a name, that the run was begun with, once
        more. An environment by its factory's name is made anew without it.
    opponents: those that were objects of the program which began the run, once more.
    net: the network of your own, once more, where that was an object. One by its class's name is
        made anew without it.
    trust: classes and factories that the run may use, such as my_nets:Net, if it is not yours.
    clear_replay: forget what is remembered and begin the replay anew.
    """
    check_not_importing("sparring.resume")
    trusted.allow(*([trust] if isinstance(trust, str) else trust))
    budget = {"minutes": minutes, "updates": updates, "decisions": decisions, "episodes": episodes}
    callbacks = Callbacks(on_update, on_evaluation, on_episode)
    run = Run.open(path)
    seen = Overview(run.path)
    is_done = number < 0 and not only_one(budget) and seen.state == "done"
    with (
        restored_folder(),
        run.held(),
    ):  # nobody may save or prune between what is read here and what is trained
        newest = checkpoints.newest_valid(run.checkpoints, segments=not clear_replay)
        if newest is None:
            return begin_again(run, number, callbacks=callbacks, opponents=opponents, quiet=quiet)
        chosen = newest if number < 0 else run.checkpoints / f"{number:08d}"
        saved = checkpoints.load(chosen, segments=not clear_replay)
        check_resumable(chosen, saved)
        if clear_replay:
            check_remembers(run, saved)
        config = read_config(run.config, f"{run.path}/config.toml")
        before = read_config(saved.meta["config"], f"{run.path}: checkpoint {saved.number}")
        check_same(written(before), written(config))
        if opponents and told(opponents) != config.opponents:
            raise ConfigError(
                f"opponents: the run was begun with {'; '.join(config.opponents)}, and now there "
                f"are {'; '.join(told(opponents))}; give the same, or start a new run with --init"
            )
        if net is not None:
            net_again(net, config, str(run.path))
        if is_done:
            return Agent(load_policy(run.path), run.path, seen.ended or "done")
        config = with_budget(config, saved.meta, budget)
        session = prepare(
            [config],
            pool=pool_again(game, config, saved.meta, str(run.path)),
            lr_factor=saved.meta.get("lr_factor", 1.0),
            callbacks=callbacks,
            opponents=opponents,
            quiet=quiet,
        )
        if saved.number == int(newest.name):
            if written(config) != run.config:
                run.configure(written(config), session.announced.line)
            return go_on(session, run, saved, clear_replay=clear_replay)
        best = int(saved.meta["best"]["update"])
        line = session.announced.line
        new = run.branch(saved.number, written(config), best=best, told=line)
    if not quiet:
        text = f"{run.name} has newer checkpoints and stays as it is; going on in "
        print(f"{text}{display_path(new.path)}", file=sys.stderr)
    with restored_folder(), new.held():
        saved = checkpoints.load(new.checkpoints / chosen.name, segments=not clear_replay)
        return go_on(session, new, saved, clear_replay=clear_replay)


def begin_again(run: Run, number: int, **options: Any) -> Agent:
    """Begin a run once more that ended while it imitated: records are learned from anew."""
    config = read_config(run.config, f"{run.path}/config.toml")
    if not config.imitate or number >= 0:
        raise SparringError(f"{run.path} has no checkpoint yet; start again: sparring train")
    session = prepare([config], **options)
    session.start_from_init()
    return session.finish([run])[0]


def go_on(
    session: TrainingSession, run: Run, saved: checkpoints.Checkpoint, *, clear_replay: bool
) -> Agent:
    if not clear_replay:
        return session.finish([run], resume=saved)[0]
    tensors = {group: named for group, named in saved.tensors.items() if group != REPLAY}
    without = replace(saved, tensors=tensors, segments={})
    return session.finish([run], resume=without, note="replay cleared")[0]


def check_remembers(run: Run, saved: checkpoints.Checkpoint) -> None:
    if REPLAY not in saved.tensors and not saved.segments:
        raise ConfigError(
            f"clear_replay: checkpoint {saved.number} of {run.path} holds no replay "
            f"(algo {run.config.get('algo', 'ppo')}); go on without this option"
        )


def with_budget(config: TrainConfig, meta: dict[str, Any], wanted: dict[str, float]) -> TrainConfig:
    kind = only_one(wanted)
    if not kind:
        return config
    used = {"minutes": meta["seconds"] / 60, "updates": meta["update"]}
    gone = used.get(kind, meta.get(kind, 0))
    if wanted[kind] <= gone:
        raise ConfigError(
            f"{kind} {amount(kind, wanted[kind])}: the run has {amount(kind, gone)} behind it "
            "already; budgets are totals, give more than that"
        )
    changed: TrainConfig = replace(replace_budget(config, wanted), **{kind: wanted[kind]})  # type: ignore[arg-type]
    return changed


def absolute(
    config: TrainConfig, pool: GamePool | None = None, opponents: Sequence[Any] = ()
) -> TrainConfig:
    """Settings whose names stay what they are: `latest` is another run tomorrow."""
    config = with_phases(config)
    rules = rules_of(config, pool)
    return replace(
        config,
        collect=computed(rules, config, choose_device(config.device)),
        game=absolute_name(config.game),
        net=replace(config.net, kind=absolute_name(config.net.kind)),
        init=resolve_init(config.init),
        opponents=config.opponents if opponents else pinned(rules, config.opponents),
        starts=tuple(map(with_absolute_path, config.starts)),
        imitate=tuple(absolute_source(rules, word) for word in config.imitate),
        phases=absolute_phases(config, rules),
    )
