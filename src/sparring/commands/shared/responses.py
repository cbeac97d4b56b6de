"""Responses to a frozen policy: the settings of each, its training, and its match."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sparring.commands.shared.players import is_timed, loaded_from
from sparring.commands.shared.printing import ProgressBar
from sparring.config import TrainConfig
from sparring.config.commands import ExploitConfig
from sparring.errors import ConfigError
from sparring.games.flags import changed_flags, flags_as_options
from sparring.games.hidden import hidden_of
from sparring.games.rules import Rules
from sparring.league.arena import default_games, evaluate, whole_rounds
from sparring.league.intervals import Interval
from sparring.league.players import Player
from sparring.league.results import MatchResult
from sparring.learn.critic import critic_config
from sparring.learn.plan import CPU
from sparring.nets.heads import QUANTILES
from sparring.nets.hierarchy import HierarchyNet
from sparring.nets.inputs import memory_bytes_of
from sparring.nets.policy import Policy
from sparring.pools.custom.cache import is_custom
from sparring.pools.custom.rules import CustomRules
from sparring.store.files import remove_folder
from sparring.store.folders import CHECKPOINTS
from sparring.store.lookup import run_of
from sparring.training.agent import FINAL_SEED, Agent
from sparring.training.planning.placement import uses_gpu
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import (
    budget_of,
    check_same,
    merged,
    replace_budget,
    with_preset,
    written,
)
from sparring.training.records.exploited import SEES
from sparring.training.records.overview import read_json
from sparring.training.records.run import NAME_LETTERS, RESULTS, Run, check_name, folder_word
from sparring.training.train import absolute, resume, train_with

SCRATCH, OWN = "scratch", "own"
GAMES = 8192
STYLE_TEXTS = {
    "bot": "a bot",
    "greedy": "taking its most probable actions",
    "sampled": "drawing its actions",
}


@dataclass(frozen=True)
class ExploitTarget:
    """The player that is exploited."""

    player: Player
    rules: Rules
    folder: Path | None
    """Folder of its checkpoint; None for a bot."""
    plays: str = "bot"
    """bot, greedy or sampled."""

    @property
    def label(self) -> str:
        return f"{loaded_from(self.player) or self.player}{self.search}"

    @property
    def search(self) -> str:
        """How it searches, as behind a name: @64; "" if it does not."""
        budget = None if isinstance(self.player, str) else self.player.budget
        return f"@{budget}" if budget else ""

    @property
    def checkpoint(self) -> tuple[Path, int] | None:
        """The run and the number of its checkpoint; None for a bot or a saved policy."""
        folder = self.folder.absolute() if self.folder else None
        if not folder or folder.parent.name != CHECKPOINTS or run_of(folder) == folder.resolve():
            return None
        return run_of(folder), int(folder.name)

    @property
    def style(self) -> str:
        """How it plays, in words."""
        return STYLE_TEXTS[self.plays] + (", with search" if self.search else "")


@dataclass(frozen=True)
class Response:
    """A response that is to be trained, or was."""

    kind: str
    settings: TrainConfig

    @property
    def path(self) -> Path:
        return Path(self.settings.runs) / self.settings.name


def responses_to(target: ExploitTarget, config: ExploitConfig) -> list[Response]:
    """Return the responses of a command; all are checked before the first is trained."""
    name = config.name or default_name(target.label)
    check_own(target, config)
    check_sees(target, config)
    kinds = dict.fromkeys(config.kinds) or usual_kinds(target)
    found = [
        Response(kind, settings_of(config, target, kind, seed, f"{name}-{kind}-{seed}"))
        for kind in kinds
        for seed in range(config.seed, config.seed + config.seeds)
    ]
    for one in found:
        if one.path.exists():
            check_continued(one)
        else:
            check_name(Path(config.runs), one.settings.name)
    for one in found[:: config.seeds]:
        resolve([absolute(one.settings)], played=False, response=True)
    return found


def usual_kinds(target: ExploitTarget) -> tuple[str, ...]:
    own = isinstance(target.player, Policy) and not isinstance(target.player.net, HierarchyNet)
    return (SCRATCH, OWN) if own else (SCRATCH,)


def check_own(target: ExploitTarget, config: ExploitConfig) -> None:
    """Refuse responses that cannot be initialized with the policy's weights."""
    if OWN not in config.kinds or OWN in usual_kinds(target):
        return
    why = "is a bot and has no weights"
    if isinstance(target.player, Policy):
        why = "has a network for every role, and what exploits it has one for all"
    raise ConfigError(f"--kinds own: {target.label} {why}; leave own out")


def check_sees(target: ExploitTarget, config: ExploitConfig) -> None:
    """Refuse responses that would see what is hidden where nothing is, or nothing says what."""
    if SEES not in config.kinds:
        return
    rules, player, why = target.rules, target.player, ""
    if not rules.hides:
        why = f"{rules.name} hides nothing, every response sees everything;"
    elif is_custom(rules):
        why = f"{rules.name} is a custom environment, which does not declare what it hides;"
    elif hidden_of(rules) is None:
        why = f"{rules.name} declares nothing that it hides; add games/{rules.name}/hidden.py, or"
    elif not isinstance(player, str) and player.memory_bytes:
        why = f"{target.label} has memory, for which rows that see have no room;"
    if why:
        raise ConfigError(f"--kinds sees: {why} leave sees out")


def check_continued(response: Response) -> None:
    """Refuse to continue a run that was trained otherwise than this response would be."""
    run, now = Run.open(response.path.absolute()), written(absolute(response.settings))
    kind, amount = budget_of(response.settings)
    now = {**now, "collect": {**now["collect"], "cpu": run.config.get("collect", {}).get("cpu")}}
    try:
        check_same(run.config, now)
    except ConfigError as error:
        what = str(error).partition(": ")[2].partition(";")[0]
    else:
        before = run.config.get(kind)
        what = f"{kind} was {before}, is {amount}" if before != amount else ""
    if what:
        raise ConfigError(
            f"{response.path} is there already and another response: {what}; choose another --name"
        )


def settings_of(
    config: ExploitConfig, target: ExploitTarget, kind: str, seed: int, name: str
) -> TrainConfig:
    """Return the settings of a response: the preset of the game, against one opponent."""
    rules = target.rules
    device = CPU if kind == SEES else config.device  # where what is hidden can be read
    changes: dict[str, Any] = {
        "opponents": (
            f"{target.folder}@{target.plays}{target.search}=1"
            if target.folder
            else f"{target.player}=1",
        ),
        "set": tuple(flags_as_options(changed_flags(rules))),
        "seed": seed,
        "device": device,
        "threads": config.threads,
        "runs": config.runs,
        "name": name,
        # Evaluations would choose the checkpoint that is best against bots.
        "eval": {"off": True, "against": ()},
    }
    budget = {"decisions": config.decisions} if config.decisions else {"minutes": config.minutes}
    algo = config.algo
    own = start_of(target, kind)
    if own:
        changes |= {"init": str(target.folder), "net": {}}
        algo = algo or value_learner(own)
    base = with_preset(game_of(rules), config.config, gpu=uses_gpu(device), algo=algo)
    settings: TrainConfig = merged(replace_budget(base, budget), {**changes, **budget}, "exploit")
    net = own.net.config if own else settings.net
    if kind == SEES:
        return replace(settings, net=replace(critic_config(net), sees=True))
    return replace(settings, net=net) if own else with_memory(settings, target)


def value_learner(own: Policy) -> str:
    """Return the algorithm that goes on with a policy's action values, "" if it has none."""
    if not own.is_value_based:
        return ""
    return "qrdqn" if QUANTILES in own.net.heads else "dqn"


def start_of(target: ExploitTarget, kind: str) -> Policy | None:
    """Return the policy whose weights a response begins with; None: with random ones.

    One that sees begins as a plain perceptron does, whose weights from what is hidden are 0.
    """
    player = target.player
    if not isinstance(player, Policy) or kind not in (OWN, SEES) or OWN not in usual_kinds(target):
        return None
    config = player.net.config
    fits = config == critic_config(config) and not player.is_value_based
    return player if kind == OWN or fits else None


def game_of(rules: Rules) -> str:
    """Return what `sparring train` calls a game: its name, or the factory of an environment."""
    if isinstance(rules, CustomRules) and not rules.factory:
        raise ConfigError(
            f"{rules.name} was given as an object, which exploit cannot make again; train the "
            "policy on a factory, such as my_module:make_env"
        )
    return rules.factory if isinstance(rules, CustomRules) else rules.name


def with_memory(settings: TrainConfig, target: ExploitTarget) -> TrainConfig:
    """Give the response as much memory as the target, so that rows can hold it."""
    player, net = target.player, settings.net
    if isinstance(player, str) or player.memory_bytes <= memory_bytes_of(target.rules, net):
        return settings
    theirs = player.net.config
    alike = replace(
        net, memory=theirs.memory, memory_width=theirs.memory_width, frames=theirs.frames
    )
    return replace(settings, net=alike)


def default_name(label: str) -> str:
    letters = "".join(secrets.choice(NAME_LETTERS) for _ in range(4))
    return f"exploit-{folder_word(label)[:50]}-{datetime.now():%Y%m%d-%H%M%S}-{letters}"


def train_response(response: Response, *, quiet: bool) -> Agent:
    """Train a response, continue one that was stopped, or load one that is done."""
    path = response.path
    if path.exists() and not any(Run.open(path.absolute()).checkpoints.iterdir()):
        with Run.open(path.absolute()).lock():
            remove_folder(path)  # it was killed before its first checkpoint
    if path.exists():
        return resume(path.absolute(), quiet=quiet)
    return train_with(response.settings, quiet=quiet, made_by="exploit")


def measured(
    response: Response, target: ExploitTarget, config: ExploitConfig
) -> Mapping[str, Any] | None:
    """Return what an earlier command wrote about a response that it trained and measured."""
    found = read_json(response.path.absolute() / RESULTS)
    results = found.get("results") if isinstance(found, dict) else None
    result = results.get(target.label) if isinstance(results, dict) else None
    games = games_of(config, target.rules), target.rules.seats
    return found if isinstance(result, dict) and result.get("games") in games else None


def is_deterministic(target: ExploitTarget, response: Policy) -> bool:
    """Whether every game from a seat is the same: no chance, and both players are greedy."""
    varied = target.rules.chance or is_timed([target.player])
    return not varied and target.plays == "greedy" and response.is_greedy


def games_of(config: ExploitConfig, rules: Rules) -> int:
    usual = default_games(rules) if is_custom(rules) else GAMES
    return whole_rounds(rules, config.games or usual)


def match(
    response: Policy, target: ExploitTarget, config: ExploitConfig, threads: int, number: int = 0
) -> MatchResult:
    """Play one response among copies of the policy, every deal from every seat.

    The response is greedy, unless all games would then be the same. number: each has its own deals.
    """
    other, rules = target.player, target.rules
    greedy = target.plays == "greedy"
    repeats = not rules.chance and greedy
    if isinstance(other, Policy):
        other = other.always(greedy=greedy)
    one_round = is_deterministic(target, response)  # more of them would be the same games
    games = whole_rounds(rules, rules.seats) if one_round else games_of(config, rules)
    with ProgressBar(f"measuring {rules.name}", games) as steps:
        results = evaluate(
            response.always(greedy=not repeats or response.is_greedy),
            [other],
            rules=rules,
            games=games,
            seed=(FINAL_SEED + config.seed + number) % 2**63,
            threads=threads,
            opening_plies=0,  # openings by lot are not what the response was trained on
            progress=steps.reach,
        )
    return next(iter(results.values()))


@dataclass(frozen=True)
class Loss:
    """How much a policy loses to the response, and what an equal player would lose."""

    what: str
    value: float
    interval: Interval
    equal: float

    @property
    def found(self) -> bool:
        return self.interval[0] > self.equal


def loss_of(rules: Rules, result: Mapping[str, Any], *, exact: bool = False) -> Loss:
    """Return the loss of the policy. exact: the match has played all possible games.

    In a zero-sum game of two that is what the response wins per game, half of the difference of
    the scores: by so much at least the policy is exploitable. Elsewhere it is the response's win
    share.
    """
    zero_sum = rules.zero_sum and result["margin"] is not None
    name = "margin" if zero_sum else "win"
    value, low, high = (
        float("nan") if result[key] is None else float(result[key])
        for key in ((name, "margin_low", "margin_high") if zero_sum else (name, "low", "high"))
    )
    low, high = (value, value) if exact else (low, high)
    if zero_sum:
        return Loss("score", value / 2, (low / 2, high / 2), 0.0)
    return Loss("win share", value, (low, high), result["parity"])
