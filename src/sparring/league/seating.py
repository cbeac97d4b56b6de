"""Names of players and line-ups, as `opponents` takes them.

    self                    the learner itself
    captain, bot:captain    a bot of the game
    past, past:5            a past self of the run, or one of the newest five
    best                    the best self of the run so far
    random                  random legal actions, in a custom environment, which has no bots
    latest, x/40, ...       a run, a checkpoint, a saved policy: see `store/lookup.py`
    NAME                    a line-up: the learner, and this player in all other seats
    A,B,C                   a line-up: without `self` the other seats, with `self` every seat
    LINEUP=WEIGHT           how often the line-up is drawn, compared with the others; in a run it
                            may be a schedule, 0:1,1e6:0.2

A bot takes precedence over a run of the same name; bot:NAME and a path such as runs/NAME are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from sparring.errors import USER_CODE_ERRORS, ConfigError
from sparring.factories import describe_error
from sparring.games.flags import read_pair
from sparring.games.rules import Rules
from sparring.league.players import (
    AnyPlayer,
    BatchPlayer,
    CallablePlayer,
    HasPolicy,
    PlayerFactory,
    as_function,
    call_factory,
    is_player_factory,
    name_of,
    random_player,
)
from sparring.schedule import Schedule
from sparring.store.champions import full_name
from sparring.store.lookup import find_player, split_style
from sparring.store.styles import AS_IS, Style

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

SELF, PAST, BEST, RANDOM = "self", "past", "best", "random"
MAX_WEIGHT = 10**9
"""Of a line-up."""

Kind = Literal["self", "bot", "past", "best", "policy", "policy object", "callable"]
LineupArg: TypeAlias = Any
"""A line-up: text, a player for all other seats, a list of players, or (one of these, weight)."""


@dataclass(frozen=True)
class PlayerSpec:
    """A player as the user gave it."""

    kind: Kind
    name: str
    """As typed, or the name of the object."""
    target: str = ""
    """The full name of the bot, or the path of the policy."""
    newest: int = 0
    """For `past`: number of the newest selves; 0: all."""
    style: Style = AS_IS
    """How a policy plays: always its most probable action, with a search."""
    player: Any = field(default=None, compare=False, repr=False)
    """The policy or function, if Python code gave one."""


@dataclass(frozen=True)
class LineupSpec:
    """The players of a game, one per seat, and how often the line-up is drawn."""

    players: tuple[PlayerSpec, ...]
    weight: float = 1.0
    shuffle: bool = True
    """Seats are drawn anew for every game, so that no player keeps a good one."""
    schedule: Schedule | None = None
    """Of the weight, if it changes; `weight` is its first value."""


def read_lineups(
    rules: Rules,
    lineups: Sequence[LineupArg],
    option: str = "opponents",
    *,
    scheduled: bool = False,
) -> list[LineupSpec]:
    """Read one line-up per entry.

    option: the setting that the entries come from; errors begin with it.
    scheduled: weights may be schedules, and 0 at times.
    """
    specs = [read_lineup(rules, lineup, option, scheduled=scheduled) for lineup in lineups]
    if not specs:
        raise ConfigError(f"{option} is empty; give at least self=1")
    return specs


def read_lineup(
    rules: Rules, lineup: LineupArg, option: str = "opponents", *, scheduled: bool = False
) -> LineupSpec:
    weight, schedule = 1.0, None
    if is_weighted(lineup):
        lineup, weight = lineup[0], check_weight(repr(lineup), lineup[1], option)
    elif isinstance(lineup, str) and "=" in lineup:
        text, (name, _, amount) = lineup, lineup.rpartition("=")
        read_pair(text, option)  # rejects text without a name
        if scheduled and ":" in amount:
            schedule = read_weight_schedule(text, amount, option)
        lineup, weight = name, schedule.values[0] if schedule else read_weight(text, amount, option)
    names = lineup.split(",") if isinstance(lineup, str) else lineup
    if isinstance(names, Sequence):
        label = ",".join(name_of(name) for name in names)
        players = [read_player(rules, name, option) for name in names]
        is_list = len(names) > 1 or not isinstance(lineup, str)
    else:
        label, players, is_list = name_of(names), [read_player(rules, names, option)], False
    return LineupSpec(fill_seats(rules, players, label, is_list, option), weight, schedule=schedule)


def is_weighted(lineup: LineupArg) -> bool:
    """Whether this is a tuple of a line-up and its weight."""
    return (
        isinstance(lineup, tuple)
        and len(lineup) == 2
        and isinstance(lineup[1], int | float)
        and not isinstance(lineup[1], bool)
    )


def fill_seats(
    rules: Rules, players: Sequence[PlayerSpec], label: str, is_list: bool, option: str
) -> tuple[PlayerSpec, ...]:
    """Return one player per seat, the learner first if the line-up does not name it."""
    others, learner = rules.seats - 1, PlayerSpec("self", SELF)
    selves = sum(player.kind == "self" for player in players)
    if not is_list:
        if selves:
            return (learner,) * rules.seats
        if not others:
            raise ConfigError(f"{option}: {rules.name} has one seat, there is none for {label}")
        return (learner, *list(players) * others)
    if selves and len(players) == rules.seats:
        return tuple(players)
    if not selves and len(players) == others:
        return (learner, *players)
    if not selves and len(players) == rules.seats:
        raise ConfigError(
            f"{option}: {label} leaves the learner no seat; add self, or name the {others} others"
        )
    expected = f"all {rules.seats} seats" if selves else f"the {others} others"
    rule = f"a list {'with' if selves else 'without'} self names {expected}"
    raise ConfigError(
        f"{option}: {label} names {len(players)} of the {rules.seats} seats of {rules.name}; {rule}"
    )


def read_player(rules: Rules, player: AnyPlayer, option: str = "opponents") -> PlayerSpec:
    """Read one player: a name, or a policy, agent or function."""
    if not isinstance(player, str):
        return read_player_object(player, option)
    typed = player.strip()
    name, style = split_style(typed)
    if not name:
        raise ConfigError(f"{option}: a name is missing in {player!r}; give a player per seat")
    if name == SELF:
        if style:
            raise ConfigError(f"{option}: {typed}: the learner always samples; write {SELF}")
        return PlayerSpec("self", typed)
    if name == BEST:
        return PlayerSpec("best", typed, style=self_style(typed, style, option))
    if name == PAST or name.startswith(f"{PAST}:"):
        style = self_style(typed, style, option)
        return PlayerSpec("past", typed, newest=read_newest(name, option), style=style)
    return read_named_player(rules, typed, option)


def self_style(typed: str, style: Style, option: str) -> Style:
    """Return the style of past selves, which act in one batch: greedy or sampled, no search."""
    if style.budget or style.level:
        raise ConfigError(
            f"{option}: {typed}: past selves play without search; write @greedy or @sampled, or "
            "name a checkpoint"
        )
    return style


def read_named_player(rules: Rules, typed: str, option: str) -> PlayerSpec:
    try:
        found = find_player(typed, rules, also=(SELF, PAST, BEST))
    except ConfigError as wrong:
        raise ConfigError(f"{option}: {wrong}") from None
    if not found.bot:
        target = full_name(found.word, rules.name)
        return PlayerSpec("policy", typed, target=target, style=found.style)
    if not rules.bots:  # a custom environment, which has `random` alone
        return PlayerSpec("callable", typed, target=RANDOM, player=random_player(rules))
    return PlayerSpec("bot", typed, target=found.bot)


def read_player_object(value: Any, option: str) -> PlayerSpec:
    player = value.policy if isinstance(value, HasPolicy) else value
    if hasattr(player, "check_fits") and hasattr(player, "act"):
        kind: Kind = "callable" if hasattr(player, "function") else "policy object"
        style = Style(greedy=getattr(player, "greedy", None))
        return PlayerSpec(kind, player.name, style=style, player=player)
    if not callable(player) and not hasattr(player, "act"):
        raise ConfigError(f"{option}: {not_a_player(value)}")
    is_player_factory(player)  # rejects a function that is neither a player nor a factory
    return PlayerSpec("callable", name_of(player), player=player)


def not_a_player(value: object) -> str:
    return (
        f"{value!r} is no player; give a name, a policy, an agent, a function "
        "(obs, mask, rng) -> actions or an object with act(obs, mask)"
    )


def read_newest(name: str, option: str) -> int:
    """Return N of past:N, 0 for `past` alone."""
    if name == PAST:
        return 0
    count = name.removeprefix(f"{PAST}:")
    if not count.isdecimal() or int(count) < 1:
        raise ConfigError(f"{option}: {name!r} is not past:N with N from 1, the number of newest")
    return int(count)


def read_weight_schedule(text: str, amount: str, option: str) -> Schedule:
    """Return the schedule of a line-up's weight, which may be 0 at times."""
    schedule = Schedule.read(amount, f"{option}: {text}")
    if not all(0 <= weight <= MAX_WEIGHT for weight in schedule.values):
        raise ConfigError(
            f"{option}: the weights of {text!r} must be at least 0 and at most {MAX_WEIGHT:,}"
        )
    return schedule


def read_weight(text: str, amount: str, option: str = "opponents") -> float:
    try:
        weight = float(amount or 1)
    except ValueError:
        raise ConfigError(f"{option}: {text!r} is not NAME=WEIGHT") from None
    return check_weight(text, weight, option)


def check_weight(text: str, weight: float, option: str) -> float:
    if not 0 < weight <= MAX_WEIGHT:
        raise ConfigError(
            f"{option}: the weight of {text!r} must be above 0 and at most {MAX_WEIGHT:,}; "
            "leave out a line-up that is not to be played"
        )
    return float(weight)


def load_player(name: str, rules: Rules, *, threads: int = 1) -> Policy | str:
    """Return a bot's name, or the policy of a run or file; it keeps the name as typed."""
    found = find_player(name, rules)
    if found.path is None:
        return found.bot
    from sparring.store.policies import load_policy  # loads torch

    policy = load_policy(found.path, name=found.word, threads=threads, game=rules)
    policy.check_fits(rules)
    return found.style.applied(policy)


def resolve_player(player: AnyPlayer, rules: Rules) -> Policy | CallablePlayer | str:
    """Return a bot's name or a player for batches: an agent's policy, a wrapped function."""
    if isinstance(player, str):
        return load_player(player, rules)
    if isinstance(player, HasPolicy):
        player = player.policy
    untyped: Any = player
    if hasattr(untyped, "check_fits"):
        untyped.check_fits(rules)
        return cast("BatchPlayer", untyped)
    if is_player_factory(player):
        raise ConfigError(
            f"{name_of(player)} is a player factory, which only training and adapters take; "
            f"give one of its players: {name_of(player)}()"
        )
    if callable(player) or hasattr(untyped, "act"):
        return CallablePlayer(rules, as_function(player), name_of(player))
    raise ConfigError(not_a_player(player))


def resolve_spec(spec: PlayerSpec, rules: Rules, loaded: dict[str, Any] | None = None) -> Any:
    """Return a bot's name, or the player for batches.

    A policy of another game, or of flags with other observations, is rejected.
    loaded: policies by name, so that each is loaded once.
    """
    if spec.kind == "bot":
        return spec.target
    if spec.player is not None:
        return resolve_player(spec.player, rules)
    if spec.kind != "policy":
        raise ConfigError(
            f"{spec.name} exists only in a training run; name a bot, a run or a checkpoint, or "
            "give a policy or a function"
        )
    loaded = {} if loaded is None else loaded
    if spec.name not in loaded:
        loaded[spec.name] = load_player(spec.name, rules)
    return loaded[spec.name]


@dataclass(frozen=True)
class GameInfo:
    """A game of a run, as player factories get it."""

    rules: Rules
    index: int
    """Number of the game in the run."""


class FactoryPlayer:
    """Players of a factory, one per game."""

    memory_bytes = 0

    def __init__(self, rules: Rules, factory: PlayerFactory) -> None:
        self.rules, self.factory, self.name = rules, factory, name_of(factory)
        self._last: tuple[Any, BatchPlayer] | None = None
        """The last object returned, and its player: one object in many games gets one batch."""

    def for_game(self, index: int) -> BatchPlayer:
        try:
            made = call_factory(self.factory, self.rules.seats - 1, GameInfo(self.rules, index))
        except ConfigError:
            raise
        except USER_CODE_ERRORS as wrong:
            raise ConfigError(f"opponents: {self.name} failed: {describe_error(wrong)}") from wrong
        if self._last and made is self._last[0]:
            return self._last[1]
        if isinstance(made, list | tuple) or (
            not isinstance(made, str) and is_player_factory(made)
        ):
            raise ConfigError(
                f"opponents: {self.name} returned {type(made).__name__}; return one player, which "
                "gets all of the factory's seats"
            )
        player = resolve_player(made, self.rules)
        if isinstance(player, str):
            raise ConfigError(
                f"opponents: {self.name} returned the bot {player}; name bots as well: "
                f"opponents=[{self.name}, {player!r}]"
            )
        if player.memory_bytes:
            raise ConfigError(
                f"opponents: {self.name} returned {player.name}, which has {player.memory_bytes} "
                "bytes of memory; name it as an opponent itself"
            )
        self._last = made, player
        return player
