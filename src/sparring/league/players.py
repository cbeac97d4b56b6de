"""Who can sit at a table. Nothing here loads torch: bots are played without it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, IllegalActionError
from sparring.games.rules import Rules
from sparring.games.state import State

if TYPE_CHECKING:
    from sparring.nets.policy import Policy
    from sparring.nets.stateful_player import StatefulPlayer

CALLABLE_STREAM = 0xCA11
"""Keeps the chances of callables apart from everything else that a seed decides."""

Bytes = npt.NDArray[np.uint8]
Function: TypeAlias = Callable[[Bytes, Bytes, np.random.Generator], Any]
"""Takes obs [B, obs_bytes], mask [B, actions] and a generator; returns B actions."""
Player: TypeAlias = "Policy | str"
"""What words can name: a trained policy, or a bot."""
BatchPlayer: TypeAlias = "Policy | CallablePlayer"
"""Whoever answers rows in batches."""

PlayerFactory: TypeAlias = Callable[..., Any]
"""Takes nothing, or (seats, game): the number of other seats, and the game with `rules`, `index`.

Returns a player: a policy, an agent, a function (obs, mask, rng) -> actions, an object with
`act(obs, mask)`, or the word for a run or a saved policy.
"""
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NOTHING, TABLE, PLAYER = 0, 2, 3
"""How many arguments makers take, and players."""


@runtime_checkable
class HasPolicy(Protocol):
    """What training gives back: an agent."""

    @property
    def policy(self) -> Policy:
        """The policy that it plays with."""


AnyPlayer: TypeAlias = "Policy | CallablePlayer | str | Function | HasPolicy"
"""What Python code may give: a word, a policy, an agent, or a function of one's own."""


class CallablePlayer:
    """A function of somebody's own as a player: `(obs, mask, rng) -> actions` over a batch.

    Observations are bytes, as pools write them; `rules.widen(obs)` makes numbers of them.
    """

    def __init__(self, rules: Rules, function: Function, name: str = "") -> None:
        self.rules, self.function = rules, function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.meta: dict[str, Any] = {}
        self.memory_bytes = 0
        """A function that remembers something keeps it itself."""

    def __repr__(self) -> str:
        return f"CallablePlayer({self.name!r}, {self.rules!r})"

    def act(
        self,
        obs: Bytes,
        mask: Bytes,
        *,
        greedy: bool = False,
        seed: int = 0,
        rollout: int = 0,
        step: int = 0,
        rows: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Return an action per row. The generator depends on (seed, rollout, step, rows[0]) alone.

        The function knows nothing of `greedy`; it is here because a policy has it.
        """
        first = int(rows[0]) if rows is not None and len(rows) else 0
        chances = make_rng(seed, CALLABLE_STREAM, step, rollout, first)
        return self._checked(self.function(obs, mask, chances), mask)

    def decide(
        self, obs: Bytes, mask: Bytes, memory: Bytes | None = None, **how: Any
    ) -> tuple[npt.NDArray[Any], Bytes]:
        """Return an action per row, and nothing to remember, as policies do. how: see `act`."""
        return self.act(obs, mask, **how), np.zeros((len(obs), 0), np.uint8)

    def action(
        self, state: State, *, row: int = 0, greedy: bool = True, seed: int = 0, step: int = 0
    ) -> Any:
        """Return the action for the seat to act in a single game: a number, or an array of them."""
        (action,) = self.act(*state.decision(row), greedy=greedy, seed=seed, step=step)
        return action if self.rules.box else int(action)

    def check_fits(self, rules: Rules) -> None:
        """Do nothing: what a function can play is for its author to know."""

    def _checked(self, given: Any, mask: Bytes) -> npt.NDArray[Any]:
        """Refuse what cannot be played, and say in which row."""
        answer, box = np.asarray(given), self.rules.box
        wanted = (len(mask), box) if box else (len(mask),)
        if answer.shape != wanted:
            raise IllegalActionError(f"{self.name} returned shape {answer.shape}, need {wanted}")
        if answer.dtype.kind not in ("iuf" if box else "iu"):
            kind = "numbers" if box else "integers"
            raise IllegalActionError(f"{self.name} returned {answer.dtype}, need {kind}")
        if box:
            wrong = ~np.isfinite(answer).all(axis=1)
        else:
            known = (answer >= 0) & (answer < self.rules.actions)
            wrong = ~known | (mask[np.arange(len(mask)), np.where(known, answer, 0)] == 0)
        if wrong.any():
            row = int(wrong.argmax())
            legal = np.flatnonzero(mask[row]).tolist()
            why = "is not finite" if box else f"is not legal; legal: {legal}"
            raise IllegalActionError(f"{self.name}, row {row}: action {answer[row]} {why}")
        return answer.astype(np.float32).clip(-1, 1) if box else answer.astype(np.int32)


def is_player_factory(given: Any) -> bool:
    """Whether this makes players: players themselves take three arguments."""
    if isinstance(given, str | list | tuple) or not callable(given):
        return False
    if hasattr(given, "check_fits") or hasattr(given, "policy"):
        return isinstance(given, type)
    needed, most = count_arguments(given)
    if needed <= PLAYER <= most and not isinstance(given, type):
        return False
    if needed not in (NOTHING, TABLE):
        raise ConfigError(
            f"opponents: {getattr(given, '__name__', given)!r} takes {needed} arguments; a player "
            "takes (obs, mask, rng), what makes players takes nothing or (seats, game)"
        )
    return True


def count_arguments(function: Any) -> tuple[int, float]:
    """How many arguments a function needs by their places, and how many it takes at most."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of something built in nobody can tell; a player, then
        return PLAYER, PLAYER
    placed = [p for p in parameters if p.kind in POSITIONAL]
    needed = sum(p.default is p.empty for p in placed)
    endless = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return needed, float("inf") if endless else len(placed)


def call_factory(maker: PlayerFactory, seats: int, game: Any) -> Any:
    """Return what a maker makes for a game. seats: besides the learner's."""
    return maker(seats, game) if count_arguments(maker)[0] == TABLE else maker()


def as_function(player: Any) -> Function:
    """Return a function of somebody's own, or the `act(obs, mask)` of an object, as a function."""
    if callable(player):
        return cast(Function, player)

    def act(obs: Bytes, mask: Bytes, rng: np.random.Generator) -> Any:
        return player.act(obs, mask)

    return act


def random_player(rules: Rules) -> CallablePlayer:
    """Return somebody who takes any legal action, each as likely as the others."""

    def choose(obs: Bytes, mask: Bytes, rng: np.random.Generator) -> npt.NDArray[Any]:
        if rules.box:
            return rng.uniform(-1, 1, (len(obs), rules.box))
        return np.asarray(np.where(mask != 0, rng.random(mask.shape), -1.0).argmax(axis=1))

    return CallablePlayer(rules, choose, "random")


def make_rng(seed: int, kind: int, *at: int) -> np.random.Generator:
    """Return where lots of a kind come from. at: up to three numbers that tell draws apart."""
    # Arrays, because lists would lose digits from 2**63 on.
    key = np.array([seed % 2**64, kind], np.uint64)
    counter = np.array([0, *at, *[0] * (3 - len(at))], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def name_of(player: AnyPlayer | StatefulPlayer) -> str:
    if isinstance(player, str):
        return player
    if isinstance(player, HasPolicy):
        return player.policy.name
    name = getattr(player, "name", "") or getattr(player, "__name__", "")
    return name or type(player).__name__


def is_random(player: Policy | CallablePlayer | str, *, greedy: bool) -> bool:
    """Whether a player surely plays by lot, so that two games from one position differ.

    Bots do. Of a function nobody knows.
    """
    if isinstance(player, str):
        return True
    if isinstance(player, CallablePlayer):
        return False
    return not (greedy if player.greedy is None else player.greedy)
