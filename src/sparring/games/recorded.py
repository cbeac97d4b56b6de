"""Replays: recorded games as small JSON files with the start and all actions.

Positions are not stored; replaying the actions restores them. `app/play/session.js` writes the same
format.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sparring.errors import ConfigError, SparringError
from sparring.games.files import os_error_text, replace_file
from sparring.games.flags import changed_flags
from sparring.games.rules import Rules
from sparring.games.saved import is_int, is_int64, is_number, shorten
from sparring.games.seeds import check_seed
from sparring.games.state import State
from sparring.output_files import check_file

FORMAT, VERSION = "sparring-replay", 1
MAX_BYTES = 16 * 2**20
MAX_STEPS = 1_000_000
MAX_INDEX = 2**31
MAX_NAME = 200
MAX_JSON_INT = 2**53 - 1
"""Largest integer that is exact in all JSON readers; larger seeds are written as text."""

StepActions = tuple[Any, ...]
"""Actions of one step by row: integers, or tuples of floats for continuous actions."""


@dataclass(frozen=True)
class Replay:
    """A recorded game: `read` and `write` files, `states` replays it."""

    rules: Rules
    seed: int
    players: tuple[str, ...]
    """Player of each seat."""
    actions: tuple[StepActions, ...]
    """Actions of every step, by row."""
    scores: tuple[float, ...]
    end: str | None
    """Reason of the end; None for an unfinished game."""
    index: int = 0
    """Index of the game in its pool; its random numbers depend on it."""
    setup: tuple[int, ...] = ()
    """Start position as numbers for `State.set_up`; empty: the default start."""
    source: str = field(default="the replay", compare=False)
    """Name in errors."""

    @classmethod
    def of(cls, last: State, actions: Iterable[Any], players: Sequence[str]) -> Replay:
        """Record a game. last: its current state; actions: all arguments of `State.apply`."""
        rules = last.rules
        moves = tuple(to_plain_actions(rules, action) for action in actions)
        return cls(
            rules,
            last.seed,
            tuple(players),
            moves,
            tuple(last.scores),
            last.end,
            last.index,
            last.setup,
        )

    @classmethod
    def read(cls, path: str | Path) -> Replay:
        """Read a file; raises ConfigError."""
        try:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read {path}: {os_error_text(error)}") from None
        return cls.from_json(raw, str(path))

    @classmethod
    def from_json(cls, raw: str | bytes, source: str = "the replay") -> Replay:
        """Parse the text of a replay. source: name in errors."""
        try:
            return replay_from_dict(parse(raw), source)
        except SparringError as error:
            raise ConfigError(f"{source}: {error}") from None

    @property
    def name(self) -> str:
        return f"{self.rules.name}-{self.seed}-{self.index}.json"

    def plain(self) -> dict[str, Any]:
        one = self.rules.rows == 1
        return {
            "format": FORMAT,
            "version": VERSION,
            "game": self.rules.name,
            "rules_version": self.rules.rules_version,
            "flags": changed_flags(self.rules),
            "seed": self.seed if abs(self.seed) <= MAX_JSON_INT else str(self.seed),
            **({"index": self.index} if self.index else {}),
            "players": list(self.players),
            **({"setup": [json_int(n) for n in self.setup]} if self.setup else {}),
            "actions": [moves[0] if one else moves for moves in self.actions],
            "scores": list(self.scores),
            "end": self.end,
        }

    def to_json(self) -> str:
        return json.dumps(self.plain(), ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the file atomically. replace: overwrite an existing file."""
        target = check_file(path, "", new=not replace)
        try:
            replace_file(target, self.to_json().encode())
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot write {target}: {os_error_text(error)}") from None
        return target

    def start(self) -> State:
        """Return the position before the first action."""
        state = State(self.rules, self.seed, self.rules.weights(None), game=self.index)
        if self.setup and (error := state.set_up(self.setup)):
            raise ConfigError(f"{self.source}: setup: {error}")
        return state

    def states(self) -> Iterator[State]:
        """Yield the start and the state after every step, as separate copies.

        Raises ConfigError with the step of an illegal action.
        """
        state = self.start()
        yield state.clone()
        for step, moves in enumerate(self.actions, 1):
            try:
                state.apply(np.stack(moves) if self.rules.rows > 1 else moves[0])
            except SparringError as error:
                raise ConfigError(f"{self.source}, step {step}: {error}") from None
            yield state.clone()

    def differences(self, last: State | None = None) -> list[str]:
        """Return differences between the replayed end and the recorded one.

        last: final state; None: replay the game.
        """
        if last is None:
            *_, last = self.states()
        differences = []
        if tuple(last.scores) != self.scores:
            data = ", ".join(f"{score:g}" for score in last.scores)
            kept = ", ".join(f"{score:g}" for score in self.scores)
            differences.append(f"the scores come out as {data}, the file says {kept}")
        if last.end != self.end:
            data, kept = last.end or "not over", self.end or "not over"
            differences.append(f"the end comes out as {data!r}, the file says {kept!r}")
        return differences


def json_int(number: int) -> int | str:
    return number if abs(number) <= MAX_JSON_INT else str(number)


def to_plain_actions(rules: Rules, action: Any) -> StepActions:
    """Return the actions of one step as plain numbers by row."""
    if rules.box:
        rows = np.asarray(action, np.float32).reshape(rules.rows, rules.box)
        return tuple(tuple(float(number) for number in row) for row in rows)
    return tuple(int(one) for one in np.atleast_1d(np.asarray(action)))


def parse(raw: str | bytes) -> Mapping[str, Any]:
    """Parse and check format and version."""
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"more than {MAX_BYTES // 2**20} MiB: this is no replay")

    def refuse(word: str) -> Any:
        raise ConfigError(f"{word} is no number that can be played")

    try:
        data = json.loads(raw, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        if isinstance(error, SparringError):
            raise
        raise ConfigError("this is not JSON, so no replay") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ConfigError(f'this is no replay: "format" has to be "{FORMAT}"')
    if data.get("version") != VERSION:
        raise ConfigError(
            f"a replay of version {data.get('version')!r}; this sparring reads version {VERSION}"
        )
    return data


def replay_from_dict(data: Mapping[str, Any], source: str) -> Replay:
    """Validate all entries and return the replay."""
    rules = rules_of_replay(data)
    players = required(data, "players", list)
    if len(players) != rules.seats or not all(is_player_name(name) for name in players):
        raise ConfigError(f"players: {rules.name} needs {rules.seats} names")
    actions = required(data, "actions", list)
    if len(actions) > MAX_STEPS:
        raise ConfigError(f"{len(actions):,} actions; at most {MAX_STEPS:,} can be played again")
    scores = required(data, "scores", list)
    if len(scores) != rules.seats or not all(is_number(score) for score in scores):
        raise ConfigError(f"scores: {rules.name} needs {rules.seats} numbers")
    end = data.get("end")
    if end is not None and end not in rules.ends:
        raise ConfigError(f"end: {rules.name} does not end by {end!r}")
    index = data.get("index", 0)
    if not is_int(index) or not 0 <= index < MAX_INDEX:
        raise ConfigError(f"index: {index!r} is no number of a game")
    return Replay(
        rules,
        check_seed(parse_int(data.get("seed"), "seed")),
        tuple(players),
        tuple(parse_actions(rules, given, step) for step, given in enumerate(actions, 1)),
        tuple(float(score) for score in scores),
        end,
        index,
        read_setup(data),
        source,
    )


def rules_of_replay(data: Mapping[str, Any]) -> Rules:
    """Return the rules of a replay; raises ConfigError for other versions."""
    rules = Rules(required(data, "game", str), required(data, "flags", dict))
    version = data.get("rules_version")
    if version != rules.rules_version:
        raise ConfigError(
            f"played by version {version!r} of the rules of {rules.name}, and this sparring has "
            f"version {rules.rules_version}; play it with the sparring that wrote it"
        )
    return rules


def read_setup(data: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the numbers of the start position."""
    if data.get("setup") is None:
        return ()
    numbers = tuple(parse_int(number, "setup") for number in required(data, "setup", list))
    if not all(map(is_int64, numbers)):
        raise ConfigError("setup: a number does not fit into 64 bits")
    return numbers


def parse_actions(rules: Rules, given: Any, step: int) -> StepActions:
    """Return the actions of one step by row; replaying checks whether they are legal."""
    rows = [given] if rules.rows == 1 else given
    if not isinstance(rows, list) or len(rows) != rules.rows:
        raise ConfigError(f"step {step}: {rules.name} needs a list with {rules.rows} actions")
    if not rules.box:
        if not all(is_int(action) for action in rows):
            raise ConfigError(f"step {step}: {shorten(given)} is no action of {rules.name}")
        return tuple(rows)
    for action in rows:
        if not isinstance(action, list) or len(action) != rules.box:
            raise ConfigError(f"step {step}: an action of {rules.name} is {rules.box} numbers")
        if not all(is_number(number) for number in action):
            raise ConfigError(f"step {step}: {shorten(action)} are not numbers")
    return to_plain_actions(rules, rows)


def required(data: Mapping[str, Any], name: str, kind: type) -> Any:
    if not isinstance(data.get(name), kind):
        raise ConfigError(f"{name!r} is missing or is no {kind.__name__}")
    return data[name]


def is_player_name(value: Any) -> bool:
    """Whether a value is a printable name of a player."""
    return (
        isinstance(value, str)
        and len(value) <= MAX_NAME
        and not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in value)
    )


def parse_int(value: Any, name: str) -> int:
    """Return an integer, which may be written as text."""
    if is_int(value):
        return int(value)
    try:
        return int(value) if isinstance(value, str) and len(value) < 25 else int("")
    except ValueError:
        raise ConfigError(f"{name}: {shorten(value)} is no whole number") from None
