"""The language of who plays: words for players, and lists of them for tables.

    self                    the learner itself
    captain, bot:captain    a bot of the game
    past, past:5            an earlier self of the run, or one of the newest five
    best                    the best self of the run so far
    random                  any legal action, in an environment of one's own, which has no bots
    latest, x/40, ...       a run, a checkpoint, a saved policy: see `store/lookup.py`
    NAME                    a table: the learner, and this player in all other seats
    A,B,C                   a table: without `self` the other seats, with `self` every seat
    TABLE=WEIGHT            how often the table is drawn, compared with the others; in a run it
                            may be a schedule, 0:1,1e6:0.2

A bot goes before a run of the same name; bot:NAME and a path such as runs/NAME say which is meant.
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
from sparring.store.lookup import find_player, split_style

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

SELF, PAST, BEST, RANDOM = "self", "past", "best", "random"
MAX_WEIGHT = 10**9
"""Of a table, compared with the others."""

Kind = Literal["self", "bot", "past", "best", "policy", "policy object", "callable"]
LineupArg: TypeAlias = Any
"""A table: a word, a player for all other seats, a list of players, or (one of these, weight)."""


@dataclass(frozen=True)
class PlayerSpec:
    """A player as it was named."""

    kind: Kind
    name: str
    """As typed, or as the object calls itself."""
    means: str = ""
    """The bot's own name, or where the policy lies."""
    newest: int = 0
    """Of `past`: so many of the newest; 0: all."""
    greedy: bool | None = None
    """Whether it always takes its most probable action, or always draws; None: as is usual."""
    player: Any = field(default=None, compare=False, repr=False)
    """The policy or the function itself, where Python code gave one."""


@dataclass(frozen=True)
class LineupSpec:
    """Who sits at a table, one per seat, and how often such a table is drawn."""

    players: tuple[PlayerSpec, ...]
    weight: float = 1.0
    shuffle: bool = True
    """Seats are drawn anew for every game, so that nobody owns a good one."""
    schedule: Schedule | None = None
    """How the weight goes on, where it changes; `weight` is the first one."""


def read_lineups(
    rules: Rules, words: Sequence[LineupArg], where: str = "opponents", *, scheduled: bool = False
) -> list[LineupSpec]:
    """Read one table per word.

    where: the setting that the words were given for; errors begin with it.
    scheduled: weights may be schedules, and 0 at times.
    """
    tables = [read_lineup(rules, word, where, scheduled=scheduled) for word in words]
    if not tables:
        raise ConfigError(f"{where} is empty; give at least self=1")
    return tables


def read_lineup(
    rules: Rules, word: LineupArg, where: str = "opponents", *, scheduled: bool = False
) -> LineupSpec:
    weight, schedule = 1.0, None
    if is_weighted(word):
        word, weight = word[0], check_weight(repr(word), word[1], where)
    elif isinstance(word, str) and "=" in word:
        name, _, amount = word.rpartition("=")
        read_pair(word, where)  # refuses a word without a name
        if scheduled and ":" in amount:
            schedule = read_weight_schedule(word, amount, where)
        word, weight = name, schedule.values[0] if schedule else read_weight(word, amount, where)
    names = word.split(",") if isinstance(word, str) else word
    if isinstance(names, Sequence):
        shown = ",".join(name_of(name) for name in names)
        players = [read_player(rules, name, where) for name in names]
        several = len(names) > 1 or not isinstance(word, str)
    else:
        shown, players, several = name_of(names), [read_player(rules, names, where)], False
    return LineupSpec(fill_seats(rules, players, shown, several, where), weight, schedule=schedule)


def is_weighted(word: LineupArg) -> bool:
    """Whether this is a table and its weight, as Python code gives them."""
    return (
        isinstance(word, tuple)
        and len(word) == 2
        and isinstance(word[1], int | float)
        and not isinstance(word[1], bool)
    )


def fill_seats(
    rules: Rules, players: Sequence[PlayerSpec], shown: str, several: bool, where: str
) -> tuple[PlayerSpec, ...]:
    """Return one player per seat, the learner first where nobody said where it is."""
    others, learner = rules.seats - 1, PlayerSpec("self", SELF)
    selves = sum(player.kind == "self" for player in players)
    if not several:
        if selves:
            return (learner,) * rules.seats
        if not others:
            raise ConfigError(f"{where}: {rules.name} has one seat, there is none for {shown}")
        return (learner, *list(players) * others)
    if selves and len(players) == rules.seats:
        return tuple(players)
    if not selves and len(players) == others:
        return (learner, *players)
    if not selves and len(players) == rules.seats:
        raise ConfigError(
            f"{where}: {shown} leaves the learner no seat; put self in, or name the {others} others"
        )
    wanted = f"every one, {rules.seats}" if selves else f"the {others} others"
    rule = f"a list {'with' if selves else 'without'} self names {wanted}"
    raise ConfigError(
        f"{where}: {shown} names {len(players)} of the {rules.seats} seats of {rules.name}; {rule}"
    )


def read_player(rules: Rules, given: AnyPlayer, where: str = "opponents") -> PlayerSpec:
    """Read one player: a word, or a policy, agent or function as it is."""
    if not isinstance(given, str):
        return read_player_object(given, where)
    typed = given.strip()
    word, greedy = split_style(typed)
    if not word:
        raise ConfigError(f"{where}: a name is missing in {given!r}; give a player per seat")
    if word == SELF:
        if greedy is not None:
            raise ConfigError(f"{where}: {typed}: the learner draws; write {SELF}")
        return PlayerSpec("self", typed)
    if word == BEST:
        return PlayerSpec("best", typed, greedy=greedy)
    if word == PAST or word.startswith(f"{PAST}:"):
        return PlayerSpec("past", typed, newest=read_newest(word, where), greedy=greedy)
    return read_named_player(rules, typed, where)


def read_named_player(rules: Rules, typed: str, where: str) -> PlayerSpec:
    try:
        found = find_player(typed, rules, also=(SELF, PAST, BEST))
    except ConfigError as wrong:
        raise ConfigError(f"{where}: {wrong}") from None
    if not found.bot:
        return PlayerSpec("policy", typed, means=found.word, greedy=found.greedy)
    if not rules.bots:  # every environment has this one
        return PlayerSpec("callable", typed, means=RANDOM, player=random_player(rules))
    return PlayerSpec("bot", typed, means=found.bot)


def read_player_object(given: Any, where: str) -> PlayerSpec:
    player = given.policy if isinstance(given, HasPolicy) else given
    if hasattr(player, "check_fits") and hasattr(player, "act"):
        kind: Kind = "callable" if hasattr(player, "function") else "policy object"
        return PlayerSpec(kind, player.name, greedy=getattr(player, "greedy", None), player=player)
    if not callable(player) and not hasattr(player, "act"):
        raise ConfigError(f"{where}: {not_a_player(given)}")
    is_player_factory(player)  # refuses a function that is neither a player nor makes some
    return PlayerSpec("callable", name_of(player), player=player)


def not_a_player(given: object) -> str:
    return (
        f"{given!r} is no player; give a word, a policy, an agent, a function "
        "(obs, mask, rng) -> actions or an object with act(obs, mask)"
    )


def read_newest(word: str, where: str) -> int:
    """Return N of past:N, 0 for past alone."""
    if word == PAST:
        return 0
    count = word.removeprefix(f"{PAST}:")
    if not count.isdecimal() or int(count) < 1:
        raise ConfigError(f"{where}: {word!r} is not past:N; N counts the newest ones, from 1 on")
    return int(count)


def read_weight_schedule(word: str, amount: str, where: str) -> Schedule:
    """How often a table is drawn as a run goes on; at times that may be never."""
    schedule = Schedule.read(amount, f"{where}: {word}")
    if not all(0 <= weight <= MAX_WEIGHT for weight in schedule.values):
        raise ConfigError(
            f"{where}: the weights of {word!r} must be at least 0 and at most {MAX_WEIGHT:,}"
        )
    return schedule


def read_weight(word: str, amount: str, where: str = "opponents") -> float:
    """How often a table is drawn, compared with the others."""
    try:
        weight = float(amount or 1)
    except ValueError:
        raise ConfigError(f"{where}: {word!r} is not NAME=WEIGHT") from None
    return check_weight(word, weight, where)


def check_weight(word: str, weight: float, where: str) -> float:
    if not 0 < weight <= MAX_WEIGHT:
        raise ConfigError(
            f"{where}: the weight of {word!r} must be above 0 and at most {MAX_WEIGHT:,}; "
            "leave a line-up out that is not to be played"
        )
    return float(weight)


def load_player(word: str, rules: Rules, *, threads: int = 1) -> Policy | str:
    """Return the bot or the policy that a word means; results carry the name as typed."""
    found = find_player(word, rules)
    if found.place is None:
        return found.bot
    from sparring.store.policies import load_policy  # loads torch

    policy = load_policy(found.place, name=found.word, threads=threads)
    policy.check_fits(rules)
    return policy if found.greedy is None else policy.always(greedy=found.greedy)


def resolve_player(player: AnyPlayer, rules: Rules) -> Policy | CallablePlayer | str:
    """Return a player as it sits at a table: agents are their policies, functions are wrapped."""
    if isinstance(player, str):
        return load_player(player, rules)
    if isinstance(player, HasPolicy):
        player = player.policy
    seated: Any = player
    if hasattr(seated, "check_fits"):
        seated.check_fits(rules)
        return cast("BatchPlayer", seated)
    if is_player_factory(player):
        raise ConfigError(
            f"{name_of(player)} makes players, which are seated in training and by adapters alone; "
            f"give one of them: {name_of(player)}()"
        )
    if callable(player) or hasattr(seated, "act"):
        return CallablePlayer(rules, as_function(player), name_of(player))
    raise ConfigError(not_a_player(player))


def resolve_spec(who: PlayerSpec, rules: Rules, known: dict[str, Any] | None = None) -> Any:
    """Return a bot's name, or whoever answers the rows of this player.

    A policy of another game, or of other flags that change what is seen, is refused.
    known: policies by their words, so that each is loaded once.
    """
    if who.kind == "bot":
        return who.means
    if who.player is not None:
        return resolve_player(who.player, rules)
    if who.kind != "policy":
        raise ConfigError(
            f"{who.name} is a player of a run that trains; here name a bot, a run, a checkpoint, "
            "or give a policy or a function"
        )
    known = {} if known is None else known
    if who.name not in known:
        known[who.name] = load_player(who.name, rules)
    return known[who.name]


@dataclass(frozen=True)
class GameInfo:
    """A game of a run, as makers are told of it."""

    rules: Rules
    index: int
    """Its number in the run."""


class FactoryPlayer:
    """Whoever a maker seats, one game after the other."""

    memory_bytes = 0

    def __init__(self, rules: Rules, maker: PlayerFactory) -> None:
        self.rules, self.maker, self.name = rules, maker, name_of(maker)
        self._last: tuple[Any, BatchPlayer] | None = None
        """What was returned last, and how it sits: one object in many games is asked at once."""

    def for_game(self, index: int) -> BatchPlayer:
        try:
            made = call_factory(self.maker, self.rules.seats - 1, GameInfo(self.rules, index))
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
                "sits in every seat that the table gives it"
            )
        player = resolve_player(made, self.rules)
        if isinstance(player, str):
            raise ConfigError(
                f"opponents: {self.name} returned the bot {player}; name bots beside it: "
                f"opponents=[{self.name}, {player!r}]"
            )
        if player.memory_bytes:
            raise ConfigError(
                f"opponents: {self.name} returned {player.name}, which remembers "
                f"{player.memory_bytes} bytes; name it as an opponent itself"
            )
        self._last = made, player
        return player
