"""Kinds of players. Does not import torch: bots play without it."""

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
    from sparring.nets.roots import Roots
    from sparring.nets.stateful_player import StatefulPlayer

CALLABLE_STREAM = 0xCA11
"""Random stream of function players."""

Bytes = npt.NDArray[np.uint8]
Function: TypeAlias = Callable[[Bytes, Bytes, np.random.Generator], Any]
"""Takes obs [B, obs_bytes], mask [B, actions] and a random generator; returns B actions."""
Player: TypeAlias = "Policy | str"
"""A trained policy, or the name of a bot."""
BatchPlayer: TypeAlias = "Policy | CallablePlayer"
"""A player that chooses actions for a batch of rows."""

PlayerFactory: TypeAlias = Callable[..., Any]
"""Takes no arguments, or (seats, game): the number of other seats, and the game with `rules` and
`index`.

Returns a player: a policy, an agent, a function (obs, mask, rng) -> actions, an object with
`act(obs, mask)`, or the name of a run or saved policy.
"""
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
FACTORY_ARGUMENTS, PLAYER_ARGUMENTS = (0, 2), 3
"""Number of arguments of player factories, and of function players."""


@runtime_checkable
class HasPolicy(Protocol):
    """An agent, as training returns it."""

    @property
    def policy(self) -> Policy:
        """Its policy."""


AnyPlayer: TypeAlias = "Policy | CallablePlayer | str | Function | HasPolicy"
"""A player in Python code: a name, a policy, an agent, or a function."""


class CallablePlayer:
    """A user's function as a player: `(obs, mask, rng) -> actions` for a batch of rows.

    Observations are packed bytes; `rules.widen(obs)` unpacks them into numbers.
    """

    def __init__(self, rules: Rules, function: Function, name: str = "") -> None:
        self.rules, self.function = rules, function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.meta: dict[str, Any] = {}
        self.memory_bytes = 0
        """A function keeps its own state, if any."""

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
        roots: Roots | None = None,
    ) -> npt.NDArray[Any]:
        """Return an action per row. The generator depends on (seed, rollout, step, rows[0]) alone.

        greedy, roots: ignored; the arguments exist because policies have them.
        """
        first = int(rows[0]) if rows is not None and len(rows) else 0
        rng = make_rng(seed, CALLABLE_STREAM, step, rollout, first)
        return self._checked(self.function(obs, mask, rng), mask)

    def decide(
        self, obs: Bytes, mask: Bytes, memory: Bytes | None = None, **options: Any
    ) -> tuple[npt.NDArray[Any], Bytes]:
        """Return an action per row and empty memory, as `Policy.decide`. options: see `act`."""
        return self.act(obs, mask, **options), np.zeros((len(obs), 0), np.uint8)

    def action(
        self, state: State, *, row: int = 0, greedy: bool = True, seed: int = 0, step: int = 0
    ) -> Any:
        """Return the action for the seat to act in a single game: a number, or an array."""
        (action,) = self.act(*state.decision(row), greedy=greedy, seed=seed, step=step)
        return action if self.rules.box else int(action)

    def check_fits(self, rules: Rules) -> None:
        """Accept any game: a function does not say which it plays."""

    def _checked(self, returned: Any, mask: Bytes) -> npt.NDArray[Any]:
        """Reject illegal actions; the error names the row."""
        actions, box = np.asarray(returned), self.rules.box
        shape = (len(mask), box) if box else (len(mask),)
        if actions.shape != shape:
            raise IllegalActionError(f"{self.name} returned shape {actions.shape}, need {shape}")
        if actions.dtype.kind not in ("iuf" if box else "iu"):
            kind = "numbers" if box else "integers"
            raise IllegalActionError(f"{self.name} returned {actions.dtype}, need {kind}")
        if box:
            illegal = ~np.isfinite(actions).all(axis=1)
        else:
            in_range = (actions >= 0) & (actions < self.rules.actions)
            index = np.where(in_range, actions, 0)
            illegal = ~in_range | (mask[np.arange(len(mask)), index] == 0)
        if illegal.any():
            row = int(illegal.argmax())
            legal = np.flatnonzero(mask[row]).tolist()
            reason = "is not finite" if box else f"is not legal; legal: {legal}"
            raise IllegalActionError(f"{self.name}, row {row}: action {actions[row]} {reason}")
        return actions.astype(np.float32).clip(-1, 1) if box else actions.astype(np.int32)


def is_player_factory(value: Any) -> bool:
    """Whether this returns players; function players take three arguments."""
    if isinstance(value, str | list | tuple) or not callable(value):
        return False
    if hasattr(value, "check_fits") or hasattr(value, "policy"):
        return isinstance(value, type)
    required, maximum = count_arguments(value)
    if required <= PLAYER_ARGUMENTS <= maximum and not isinstance(value, type):
        return False
    if required not in FACTORY_ARGUMENTS:
        raise ConfigError(
            f"opponents: {getattr(value, '__name__', value)!r} takes {required} arguments; a "
            "player takes (obs, mask, rng), a player factory takes nothing or (seats, game)"
        )
    return True


def count_arguments(function: Any) -> tuple[int, float]:
    """Return the numbers of required and of possible positional arguments of a function."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature: take it for a player
        return PLAYER_ARGUMENTS, PLAYER_ARGUMENTS
    positional = [p for p in parameters if p.kind in POSITIONAL]
    required = sum(p.default is p.empty for p in positional)
    unlimited = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return required, float("inf") if unlimited else len(positional)


def call_factory(factory: PlayerFactory, seats: int, game: Any) -> Any:
    """Return the player of a factory for a game. seats: without the learner's."""
    return factory(seats, game) if count_arguments(factory)[0] else factory()


def as_function(player: Any) -> Function:
    """Return a function player: the user's function, or the `act(obs, mask)` of an object."""
    if callable(player):
        return cast(Function, player)

    def act(obs: Bytes, mask: Bytes, rng: np.random.Generator) -> Any:
        return player.act(obs, mask)

    return act


def random_player(rules: Rules) -> CallablePlayer:
    """Return a player that takes legal actions uniformly at random."""

    def choose(obs: Bytes, mask: Bytes, rng: np.random.Generator) -> npt.NDArray[Any]:
        if rules.box:
            return rng.uniform(-1, 1, (len(obs), rules.box))
        return np.asarray(np.where(mask != 0, rng.random(mask.shape), -1.0).argmax(axis=1))

    return CallablePlayer(rules, choose, "random")


def make_rng(seed: int, stream: int, *counter: int) -> np.random.Generator:
    """Return a random generator. counter: up to three numbers that select a part of the stream."""
    # Arrays, because lists would lose digits from 2**63 on.
    key = np.array([seed % 2**64, stream], np.uint64)
    words = np.array([0, *counter, *[0] * (3 - len(counter))], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=words))


def name_of(player: AnyPlayer | StatefulPlayer) -> str:
    if isinstance(player, str):
        return player
    if isinstance(player, HasPolicy):
        return player.policy.name
    name = getattr(player, "name", "") or getattr(player, "__name__", "")
    return name or type(player).__name__


def is_random(player: Policy | CallablePlayer | str, *, greedy: bool) -> bool:
    """Whether a player certainly acts randomly, so that two games from one position differ.

    Bots do; a function may not.
    """
    if isinstance(player, str):
        return True
    if isinstance(player, CallablePlayer):
        return False
    if player.budget and player.budget.rule == "puct":  # the most visited move, without noise
        return False
    return not (greedy if player.greedy is None else player.greedy)
