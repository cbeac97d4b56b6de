"""Converts curricula of the original hockey project to phases (laser_hockey.md section 19.1).

Its archive and run_checkpoints become `past`, the run's past members; its `none` becomes the bot
`idle`, and a copy of the current agent `self`: the learner then learns from both seats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sparring.errors import ConfigError, suggestion
from sparring.games.laser_hockey import MODES, TIME_LIMIT
from sparring.schedule import format_number

About = Callable[..., AbstractContextManager[None]]
"""(phase, its name, *keys): adds the location to errors. Phase -1: outside the phases."""
TOP = ("curriculum", "hyperparameters", "training", "agent")
PHASE = (
    *("name", "episodes", "environment", "opponent"),
    *("reward_shaping", "reward_bonus", "clear_buffer"),
)
ENVIRONMENT = ("mode", "mixture", "keep_mode")
OPPONENT = (
    *("type", "weight", "checkpoint", "deterministic", "agent_type"),
    *("opponents", "distribution", "skill_range"),
)
BOTS = {"none": "idle", "basic_weak": "weak", "basic_strong": "strong"}
TYPES = (*BOTS, "self_play", "weighted_mixture", "archive", "run_checkpoints")
ARCHIVE = {"pfsp": 0.5, "random": 0.3, "baseline": 0.2}
CHOOSE = {"pfsp": "pfsp-even", "random": "uniform", "skill": "skill"}
"""`league.sampling` for each key of an archive's distribution."""
SHAPING = {
    **{"N": 600, "K": 400, "CLOSENESS_START": 20, "CLOSENESS_FINAL": 1.5},
    **{"TOUCH_START": 15, "TOUCH_FINAL": 1, "DIRECTION_START": 0, "DIRECTION_FINAL": 2},
}
BONUS = {
    **{"N": 0, "K": 2000, "WIN_BONUS_START": 10, "WIN_BONUS_FINAL": 1},
    **{"WIN_DISCOUNT_START": 0.92, "WIN_DISCOUNT_FINAL": 0.92},
}
PARTS = {"goal": 10.0, "closeness": 1.0, "touch": 0.0, "direction": 0.0}
"""Reward weights of the environment, to which shaping is added."""
AGENTS = {"DDDQN": "dqn", "SAC": "sac"}
TRAINING = (
    *("warmup_steps", "updates_per_step", "train_freq", "reward_scale", "max_episode_steps"),
    *("eval_frequency", "checkpoint_frequency", "checkpoint_save_freq"),
)
HYPERPARAMETERS = ("learning_rate", "batch_size")
REPLAYED = ("dqn", "sac")


def read(table: Mapping[str, Any], algo: str, about: About) -> dict[str, Any]:
    """Return the settings of a run, phases among them.

    algo: algorithm of the run; empty: that of the file.
    """
    return Original(table, about).settings(algo)


class Original:
    """A curriculum file of the original project."""

    def __init__(self, table: Mapping[str, Any], about: About) -> None:
        self.table, self.about = table, about
        self.training = self._section("training", TRAINING)
        self.hyper = self._section("hyperparameters", HYPERPARAMETERS)
        self.agent = self._section("agent", ("type", "hyperparameters", "checkpoint_path"))
        self.keep: bool | None = None
        self.choose = ""

    def settings(self, algo: str) -> dict[str, Any]:
        """Return all settings of the file."""
        with self.about(-1, ""):
            check_keys(self.table, TOP, "the file")
        algo = algo or self._algo() or "ppo"
        with self.about(-1, "", "training", "reward_scale"):
            scale = number(self.training.get("reward_scale", 1.0), "training.reward_scale")
        given = self.table["curriculum"].get("phases", [])
        with self.about(-1, "", "curriculum", "phases"):
            if not isinstance(given, Sequence) or not given:
                raise ConfigError("curriculum.phases must be a list with at least one phase")
        phases = [self._phase(at, phase, scale, algo) for at, phase in enumerate(given)]
        found: dict[str, Any] = {
            "phases": phases,
            "episodes": sum(phase["episodes"] for phase in phases),
            **self._learning(algo),
        }
        if self._algo():
            found["algo"] = algo
        if self.keep is False:
            found["set"] = ["keep_mode=0"]
        if self.choose:
            found["league"] = {"sampling": self.choose}
        if scale != 1:
            found["rewards"] = [
                f"{part}={format_number(weight * scale)}" for part, weight in PARTS.items()
            ]
        if self.agent.get("checkpoint_path"):
            found["init"] = str(self.agent["checkpoint_path"])
        return found

    def _section(self, name: str, keys: Sequence[str]) -> Mapping[str, Any]:
        section = self.table.get(name, {})
        with self.about(-1, "", name):
            if not isinstance(section, Mapping):
                raise ConfigError(f"{name} must be an object, not {section!r}")
        for key in section:
            with self.about(-1, "", name, key):
                check_keys([key], keys, name)
        return section

    def _algo(self) -> str:
        kind = self.agent.get("type")
        with self.about(-1, "", "agent", "type"):
            if kind is not None and kind not in tuple(AGENTS):  # it may be a list
                raise ConfigError(
                    f"agent.type {kind!r} is not there; use DDDQN (our dqn) or SAC, or leave it "
                    "out and give --algo"
                )
        return AGENTS[kind] if kind else ""

    def _learning(self, algo: str) -> dict[str, Any]:
        """Return settings of the algorithm, evaluations and checkpoints."""
        hyper, agent_hyper = {**self.hyper}, self.agent.get("hyperparameters", {})
        with self.about(-1, "", "agent", "hyperparameters"):
            if not isinstance(agent_hyper, Mapping):
                raise ConfigError(f"agent.hyperparameters must be an object, not {agent_hyper!r}")
        for key, value in agent_hyper.items():
            with self.about(-1, "", "agent", "hyperparameters", key):
                check_keys([key], HYPERPARAMETERS, "agent.hyperparameters")
                hyper[key] = value
        found: dict[str, dict[str, Any]] = {}
        batch = 0
        if "learning_rate" in hyper:
            with self.about(-1, "", "hyperparameters", "learning_rate"):
                rate = number(hyper["learning_rate"], "hyperparameters.learning_rate")
            found[algo] = {"lr": rate, **({"critic_lr": rate} if algo == "sac" else {})}
        if "batch_size" in hyper:
            with self.about(-1, "", "hyperparameters", "batch_size"):
                batch = count(hyper["batch_size"], "hyperparameters.batch_size", 1)
            where, key = ("replay", "batch") if algo in REPLAYED else (algo, "minibatch")
            found.setdefault(where, {})[key] = batch
        return {**found, **self._training(algo, batch, found.get("replay", {}))}

    def _training(self, algo: str, batch: int, replay: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of `training` except reward_scale."""
        given = {}
        for key in self.training:
            if key != "reward_scale":
                with self.about(-1, "", "training", key):
                    least = 0 if key == "warmup_steps" else 1
                    given[key] = count(self.training[key], f"training.{key}", least)
        found: dict[str, Any] = {}
        replay_settings = dict(replay)
        if algo in REPLAYED and "warmup_steps" in given:
            replay_settings["warmup"] = given["warmup_steps"]
        if algo in REPLAYED and batch and ("updates_per_step" in given or "train_freq" in given):
            often = given.get("updates_per_step", 1) / given.get("train_freq", 1)
            replay_settings["ratio"] = batch * often
        if replay_settings:
            found["replay"] = replay_settings
        if "eval_frequency" in given:
            found["eval"] = {"every_decisions": given["eval_frequency"]}
        if "checkpoint_frequency" in given:
            found["checkpoint_every_decisions"] = given["checkpoint_frequency"]
        longest = max(TIME_LIMIT.values()) + 1
        with self.about(-1, "", "training", "max_episode_steps"):
            if given.get("max_episode_steps", longest) < longest:
                raise ConfigError(
                    f"training.max_episode_steps {given['max_episode_steps']}: a match ends "
                    f"after at most {longest} steps; give at least that, or leave it out"
                )
        with self.about(-1, "", "training", "checkpoint_save_freq"):
            if given.get("checkpoint_save_freq", 100) != 100:
                raise ConfigError(
                    "training.checkpoint_save_freq: checkpoints do not go by episodes here; give "
                    "checkpoint_frequency in steps, or leave it out"
                )
        return found

    def _phase(self, at: int, phase: Any, scale: float, algo: str) -> dict[str, Any]:
        """Return a phase as settings of a curriculum phase."""
        with self.about(at, ""):
            if not isinstance(phase, Mapping) or not isinstance(phase.get("name"), str):
                raise ConfigError("a phase is an object with a name")
        name = phase["name"]
        for key in phase:
            with self.about(at, name, key):
                check_keys([key], PHASE, "a phase")
        with self.about(at, name, "episodes"):
            episodes = count(phase.get("episodes"), "episodes", 1)
        with self.about(at, name, "environment"):
            flags = self._environment(phase.get("environment", {}))
        if phase.get("opponent") is None:
            with self.about(at, name):
                raise ConfigError("opponent is missing; give one, for example a type basic_weak")
        opponents = self._opponents((at, name, "opponent"), phase["opponent"])
        bonus_settings: dict[str, Any] = {}
        with self.about(at, name, "reward_bonus"):
            if phase.get("reward_bonus") is not None:
                bonus_settings = win_bonus(phase["reward_bonus"], scale, algo)
        found: dict[str, Any] = {
            **{"name": name, "episodes": episodes, "set": flags},
            "opponents": [
                f"{who}={format_number(weight)}" for who, weight in opponents.items() if weight
            ],
        }
        shaping = phase.get("reward_shaping")
        if shaping is not None:
            with self.about(at, name, "reward_shaping"):
                found["rewards"] = shaping_weights(shaping, scale)
        with self.about(at, name, "clear_buffer"):
            clear = flag(phase.get("clear_buffer", True), "clear_buffer")
        if clear and algo in REPLAYED:
            found["clear_replay"] = True
        return {**found, **bonus_settings}

    def _environment(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            raise ConfigError(f"environment must be an object, not {given!r}")
        check_keys(given, ENVIRONMENT, "environment")
        keep = flag(given.get("keep_mode", True), "environment.keep_mode")
        if self.keep is not None and keep != self.keep:
            raise ConfigError(
                "environment.keep_mode cannot change in a run, since it changes what is seen; give "
                "all phases the same"
            )
        self.keep = keep
        if "mixture" not in given:
            return {"mode": mode_of(given.get("mode", "NORMAL"))}
        if "mode" in given:
            raise ConfigError("environment has mode and mixture; give one of them")
        weights = dict.fromkeys(MODES, 0.0)
        if not isinstance(given["mixture"], Sequence) or isinstance(given["mixture"], str):
            raise ConfigError("environment.mixture must be a list of {mode, weight}")
        for one in given["mixture"]:
            if not isinstance(one, Mapping):
                raise ConfigError(f"environment.mixture: {one!r} is no {{mode, weight}}")
            check_keys(one, ("mode", "weight"), "environment.mixture")
            share = number(one.get("weight", 1), "environment.mixture: weight", least=0)
            weights[mode_of(one.get("mode"))] += share
        if not any(weights.values()):
            raise ConfigError("environment.mixture: every weight is 0; raise one")
        return {"mode": "MIXTURE", "mixture": list(weights.values())}

    def _opponents(self, location: tuple[Any, ...], given: Any) -> dict[str, float]:
        """Return opponents with shares that sum to 1. location: phase, its name, and keys."""
        with self.about(*location):
            if not isinstance(given, Mapping):
                raise ConfigError(f"opponent must be an object with a type, not {given!r}")
            check_keys(given, OPPONENT, "opponent")
            kind = given.get("type")
            if kind not in TYPES:
                raise ConfigError(
                    f"opponent.type {kind!r} is unknown{suggestion(str(kind), TYPES)}"
                )
            if kind != "weighted_mixture":
                return self._players(kind, given)
            inner = given.get("opponents")
            if not isinstance(inner, Sequence) or isinstance(inner, str) or not inner:
                raise ConfigError("opponent.opponents must be a list with at least one opponent")
            weights = [
                number(one.get("weight", 1.0) if isinstance(one, Mapping) else 1.0, "weight", 0)
                for one in inner
            ]
            if not sum(weights):
                raise ConfigError("opponent.opponents: every weight is 0; raise one")
        found: dict[str, float] = {}
        for index, (one, weight) in enumerate(zip(inner, weights, strict=True)):
            for who, share in self._opponents((*location, "opponents", index), one).items():
                found[who] = found.get(who, 0.0) + share * weight / sum(weights)
        return found

    def _players(self, kind: str, given: Mapping[str, Any]) -> dict[str, float]:
        """Return the opponents of one entry, with shares that sum to 1."""
        if kind in BOTS:
            return {BOTS[kind]: 1.0}
        greedy = flag(given.get("deterministic", True), "opponent.deterministic")
        style = "@greedy" if greedy else "@sampled"
        if kind == "archive":
            return self._archive(given, style)
        if kind == "run_checkpoints":
            return {f"past{style}": 1.0}
        checkpoint = given.get("checkpoint")
        if checkpoint is None:
            return {"self": 1.0}
        return {f"past:1{style}" if checkpoint == "latest" else f"{checkpoint}{style}": 1.0}

    def _archive(self, given: Mapping[str, Any], style: str) -> dict[str, float]:
        shares = given.get("distribution", ARCHIVE)
        if not isinstance(shares, Mapping):
            raise ConfigError("opponent.distribution must be an object of shares")
        check_keys(shares, (*CHOOSE, "baseline"), "opponent.distribution (tags are not kept here)")
        parts = {key: number(part, f"distribution.{key}", 0) for key, part in shares.items()}
        total = sum(parts.values())
        if not total:
            raise ConfigError("opponent.distribution: every share is 0; raise one")
        baseline = parts.pop("baseline", 0.0) / total
        if parts:
            self.choose = CHOOSE[max(parts, key=lambda key: parts[key])]
        found = {f"past{style}": 1 - baseline, "weak": baseline / 2, "strong": baseline / 2}
        return {who: part for who, part in found.items() if part > 0}


def shaping_weights(given: Any, scale: float) -> dict[str, Any]:
    """Return schedules of the shaping weights over finished games of the phase."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"reward_shaping must be an object or null, not {given!r}")
    check_keys(given, tuple(SHAPING), "reward_shaping")
    values = {key: number(given.get(key, usual), key) for key, usual in SHAPING.items()}
    first, length = count(values["N"], "N"), count(values["K"], "K")
    return {
        part: linear_schedule(
            (PARTS[part] + values[f"{part.upper()}_START"]) * scale,
            (PARTS[part] + values[f"{part.upper()}_FINAL"]) * scale,
            first,
            length,
        )
        for part in ("closeness", "touch", "direction")
    }


def win_bonus(given: Any, scale: float, algo: str) -> dict[str, Any]:
    """Return schedules of win_bonus and win_discount over finished games of the phase."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"reward_bonus must be an object or null, not {given!r}")
    check_keys(given, tuple(BONUS), "reward_bonus")
    if algo not in REPLAYED:
        raise ConfigError(
            f"reward_bonus is paid backwards in a replay, and {algo} has none; make it null, or "
            f"let {' or '.join(REPLAYED)} learn"
        )
    values = {key: number(given.get(key, usual), key) for key, usual in BONUS.items()}
    first, length = count(values["N"], "N"), count(values["K"], "K")
    bonus = (values["WIN_BONUS_START"] * scale, values["WIN_BONUS_FINAL"] * scale)
    left = (values["WIN_DISCOUNT_START"], values["WIN_DISCOUNT_FINAL"])
    return {
        algo: {
            "win_bonus": linear_schedule(*bonus, first, length),
            "win_discount": linear_schedule(*left, first, length),
        }
    }


def linear_schedule(start: float, end: float, first: int, length: int) -> float | str:
    """Return a schedule: `start` until game `first`, then linear to `end`."""
    if start == end or not first + length:
        return end
    if not length:
        return f"0ep:{format_number(start)},{first}ep:{format_number(end)} stepped"
    begin = f"0ep:{format_number(start)}," if first else ""
    return f"{begin}{first}ep:{format_number(start)},{first + length}ep:{format_number(end)}"


def check_keys(keys: Any, allowed: Sequence[str], where: str) -> None:
    for key in keys:
        if key not in allowed:
            raise ConfigError(f"{where}: no key {key!r}{suggestion(str(key), allowed)}")


def mode_of(given: Any) -> str:
    if given not in MODES:
        raise ConfigError(f"environment.mode {given!r} is unknown{suggestion(str(given), MODES)}")
    return str(given)


def number(given: Any, where: str, least: float = float("-inf")) -> float:
    fits = isinstance(given, int | float) and not isinstance(given, bool)
    if not fits or not max(least, -1e12) <= given <= 1e12:
        wanted = "a finite number" if least == float("-inf") else f"a number from {least:g} on"
        raise ConfigError(f"{where} {given!r} must be {wanted}")
    return float(given)


def count(given: Any, where: str, least: int = 0) -> int:
    """Return a whole number after checking it."""
    if given is None:
        raise ConfigError(f"{where} is missing; give a whole number from {least} on")
    if number(given, where) != int(given) or given < least:
        raise ConfigError(f"{where} {given!r} must be a whole number from {least} on")
    return int(given)


def flag(given: Any, where: str) -> bool:
    if not isinstance(given, bool):
        raise ConfigError(f"{where} {given!r} must be true or false")
    return given
