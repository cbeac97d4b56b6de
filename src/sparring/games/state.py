"""A single game, for exploring, search and people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native
from sparring.errors import ConfigError, IllegalActionError, SparringError, StateError
from sparring.games.arguments import check_index, check_int, short_repr
from sparring.games.belief import check_belief, worlds_array
from sparring.games.lookup import game_module
from sparring.games.rules import Rewards, Rules, describe_illegal_action, rules_for
from sparring.games.saved import add_header, split_header
from sparring.games.seeds import seed_bits
from sparring.games.views import text_view

MAX_INDEX = 2**32 - 1
"""Largest index of a game; all pools share 32 bits."""

Action = int | Sequence[float] | Sequence[Any] | npt.NDArray[Any]


class State:
    """State of one game. Make one with `sparring.new_state`."""

    def __init__(self, rules: Rules, seed: int, weights: Sequence[float], *, game: int = 0) -> None:
        self.rules = rules
        self.seed = seed
        self.weights = list(weights)
        self.index = game
        self.setup: tuple[int, ...] = ()
        """Numbers of `set_up`, for replays."""
        self.native = _native.make_state(
            rules.native, seed_bits(seed), game, rules.skip_forced, self.weights
        )

    @property
    def seat(self) -> int:
        """Seat to act; -1 when the game is over."""
        return self.native.seat()

    @property
    def role(self) -> int:
        """Role of the seat to act, an index into `rules.roles`."""
        return self.native.role()

    @property
    def seats_to_act(self) -> list[int]:
        """Seats to act; several in games with simultaneous moves."""
        seats = [self.native.seat(row) for row in range(self.rules.rows)]
        return [seat for seat in seats if seat >= 0]

    @property
    def terminated(self) -> bool:
        """Whether the rules ended the game."""
        return self.native.terminated

    @property
    def truncated(self) -> bool:
        """Whether a limit ended the game."""
        return self.native.truncated

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self.terminated or self.truncated

    @property
    def end(self) -> str | None:
        """Reason of the end, None while the game runs."""
        return self.rules.ends[self.native.reason] if self.over else None

    @property
    def rewards(self) -> npt.NDArray[np.float32]:
        """Rewards of the last `apply` by seat (in its first role)."""
        return self.rewards_by_role[:, 0]

    @property
    def rewards_by_role(self) -> npt.NDArray[np.float32]:
        """Rewards of the last `apply`, [seats, roles]."""
        return np.array(self.native.rewards(), np.float32).reshape(self.rules.seats, -1)

    @property
    def scores(self) -> list[float]:
        """Scores of the game by seat."""
        return [self.native.score(seat) for seat in range(self.rules.seats)]

    def legal(self, row: int = 0) -> list[int]:
        """Return the legal actions, ascending; empty when the game is over."""
        return self.native.legal(self._row(row))

    def action_name(self, action: int) -> str:
        """Return the name of an action."""
        return self.rules.action_name(action)

    def apply(self, action: Action) -> None:
        """Apply an action (one per row with simultaneous moves); an illegal one changes nothing."""
        if self.over:
            raise IllegalActionError(f"{self.rules.name}: the game is over; make a new state")
        if self.rules.box:
            given = self._numbers(action)
            if given.size != self.rules.rows * self.rules.box:
                shape = (self.rules.rows, self.rules.box)
                raise IllegalActionError(f"{self.rules.name} needs actions of shape {shape}")
            refused = self.native.apply_box([float(v) for v in given.ravel()])
        else:
            given = np.atleast_1d(self._numbers(action, None))
            if given.dtype.kind not in "iu" or given.shape != (self.rules.rows,):
                wanted = "an int" if self.rules.rows == 1 else f"{self.rules.rows} ints"
                raise IllegalActionError(
                    f"{self.rules.name} needs {wanted}, got {short_repr(action)}"
                )
            limit = np.iinfo(np.int32).max
            refused = self.native.apply_discrete([max(-1, min(int(a), limit)) for a in given])
        if refused is not None:
            raise IllegalActionError(describe_illegal_action(self.rules, refused))

    def set_up(self, numbers: Sequence[int]) -> str:
        """Set a position from numbers; return an error text, "" if it is valid."""
        given = [check_int("set_up", number, -(2**63), 2**63 - 1) for number in numbers]
        error = self.native.setup(given)
        if not error:
            self.setup = tuple(given)
        return error

    def observe_bytes(self, seat: int) -> npt.NDArray[np.uint8]:
        """Return the observation of a seat as bytes, as in a pool."""
        out = np.zeros(self.rules.obs_bytes, np.uint8)
        self.native.observe(self._seat(seat), out)
        return out

    def observe(self, seat: int) -> npt.NDArray[np.float32]:
        """Return the observation of a seat, one number per feature of `rules.features`."""
        return self.rules.widen(self.observe_bytes(seat))

    def decision(self, row: int = 0) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """Return observation and mask of the seat to act, [1, ...] each, as in a pool."""
        seat = self.native.seat(self._row(row))
        if self.over or seat < 0:
            raise SparringError("no seat is to act")
        mask = np.zeros((1, self.rules.actions), np.uint8)
        if not self.rules.box:
            mask[0, self.legal(row)] = 1
        return self.observe_bytes(seat)[None], mask

    def ask(self, bot: str, row: int = 0) -> Any:
        """Return the action that a bot would choose for the seat to act."""
        index = self.rules.bot(bot)
        if self.native.seat(self._row(row)) < 0:
            raise SparringError("no seat is to act")
        answer = self.native.bot_action(index, row)
        return np.array(answer, np.float32) if self.rules.box else int(answer[0])

    def clone(self) -> State:
        """Return an independent copy."""
        copy = object.__new__(State)
        copy.__dict__.update(self.__dict__, native=self.native.clone())
        return copy

    def resample_hidden(
        self, seat: int, seed: int, belief: npt.NDArray[np.float32] | None = None
    ) -> bool:
        """Resample what a seat cannot know. False if the game hides nothing.

        belief: log-weights of what is hidden, such as a row of `Policy.belief`; None: all deals
        that fit what the seat saw are equally likely.
        """
        weights = check_belief(self.rules, belief, ())
        return self.native.resample_hidden(self._seat(seat), seed_bits(seed), weights)

    def draw_worlds(
        self,
        seat: int,
        worlds: int,
        *,
        seed: int = 0,
        belief: npt.NDArray[np.float32] | None = None,
    ) -> npt.NDArray[np.uint8]:
        """Return positions as a seat may imagine them [worlds, bytes]; see `Pool.draw_worlds`."""
        out = worlds_array(self.rules, (), worlds)
        weights = check_belief(self.rules, belief, ())
        self.native.draw_worlds(self._seat(seat), seed_bits(seed), len(out), weights, out)
        return out

    def fields(self) -> dict[str, npt.NDArray[Any]]:
        """Return all fields of the state, hidden ones included."""
        shown = {}
        for name, _, _ in _native.state_fields(self.rules.native):
            dtype, raw = self.native.field(self.rules.native, name)
            shown[name] = np.frombuffer(raw, dtype).copy()
        return shown

    def audit(self) -> str:
        """Return an error text of an invalid position, "" if it is valid."""
        return self.native.audit()

    def serialize(self) -> bytes:
        """Return the position as bytes; `sparring.load_state` reads them."""
        more: dict[str, Any] = {"seed": self.seed, "weights": self.weights}
        if self.index:  # not the first game of its pool
            more["index"] = self.index
        if self.setup:
            more["setup"] = list(self.setup)
        return add_header(self.rules, more, self.native.serialize())

    def text(self, viewer: int | None = None) -> str:
        """Return the position as text: as one seat sees it, or everything with viewer=None."""
        return text_view(self, None if viewer is None else self._seat(viewer))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        status = "over" if self.over else f"seat {self.seat} to act"
        return f"State({self.rules.name!r}, {status})"

    def _seat(self, seat: int) -> int:
        return check_index(self.rules.name, "seats", seat, self.rules.seats)

    def _row(self, row: int) -> int:
        return check_index(self.rules.name, "rows", row, self.rules.rows)

    def _numbers(self, action: Action, dtype: Any = np.float32) -> npt.NDArray[Any]:
        """Return an action as an array; too large numbers become infinite and are refused later."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.asarray(action, dtype)
        except (TypeError, ValueError, OverflowError):
            raise IllegalActionError(
                f"{self.rules.name} needs actions that are numbers, got {short_repr(action)}"
            ) from None


def new_state(
    game: str | Rules,
    *,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    rewards: Rewards | None = None,
    **start: Any,
) -> State:
    """Start one game. The same seed gives the same game.

    start: start position, for games that support it, such as `sfen=` for Shogi.
    """
    rules = rules_for(game, config)
    state = State(rules, seed, rules.weights(rewards))
    set_start(state, start)
    return state


def set_start(state: State, start: Mapping[str, Any]) -> None:
    """Set a position with the `STARTS` of the game's folder: argument name to reader."""
    if not start:
        return
    rules = state.rules
    known = getattr(game_module(rules.name), "STARTS", {})
    for word in start:
        if word not in known:
            accepted = ", ".join(("seed", "config", "rewards", *known))
            raise ConfigError(f"{rules.name} takes no {word}=; a new state takes {accepted}")
    for word, value in start.items():
        known[word](state, value)


def load_state(raw: bytes) -> State:
    """Read the bytes of `State.serialize`; raises StateError if they are invalid."""
    header, body = split_header(raw)
    rules = header.rules()
    weights = header.weights(len(rules.native.default_weights))
    index = header.whole("index", 0, MAX_INDEX, 0)
    state = State(rules, header.seed(), weights, game=index)
    if error := state.native.load(body):
        raise StateError(f"this is no state of {rules.name}: {error}; replay its actions")
    state.setup = header.setup()
    return state
