"""Games that were played, as small files: where they began and every action after that.

Nothing of a position is kept, so that a file of a few kilobytes is enough and says nothing that the
rules do not say again. `app/play/session.js` writes the same format.
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
"""The largest whole number that every reader of JSON keeps; seeds beyond it are written as text."""

StepActions = tuple[Any, ...]
"""One action per row: whole numbers, or tuples of numbers where actions are continuous."""


@dataclass(frozen=True)
class Replay:
    """A game that can be played again: `read` and `write` files, `states` plays it."""

    rules: Rules
    seed: int
    players: tuple[str, ...]
    """Who sat in each seat."""
    actions: tuple[StepActions, ...]
    """Of every step, one entry per row."""
    scores: tuple[float, ...]
    end: str | None
    """Why it was over; None if nobody played it to the end."""
    index: int = 0
    """The number of the game in its pool, on which its chances depend."""
    setup: tuple[int, ...] = ()
    """Where it began, in the numbers of `State.set_up`; nothing: as usual."""
    source: str = field(default="the replay", compare=False)
    """What errors call it."""

    @classmethod
    def of(cls, last: State, actions: Iterable[Any], players: Sequence[str]) -> Replay:
        """Record a game. last: where it stands; actions: all that `State.apply` was given."""
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
        """Read a file; what is wrong with it is said in one line."""
        try:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read {path}: {os_error_text(error)}") from None
        return cls.from_json(raw, str(path))

    @classmethod
    def from_json(cls, raw: str | bytes, source: str = "the replay") -> Replay:
        """Read what `to_json` wrote, or a page. source: what errors call it."""
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
        """Return the file's text."""
        return json.dumps(self.plain(), ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the file, the whole of it or nothing. replace: also where there is one already."""
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
        """Yield the start and what followed every step, each on its own.

        An action that the rules do not allow is an error that names its step.
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
        """Say in which facts the end is another one than the file says; nothing: in none.

        last: where it ended; left out, it is played again.
        """
        if last is None:
            *_, last = self.states()
        told = []
        if tuple(last.scores) != self.scores:
            found = ", ".join(f"{score:g}" for score in last.scores)
            kept = ", ".join(f"{score:g}" for score in self.scores)
            told.append(f"the scores come out as {found}, the file says {kept}")
        if last.end != self.end:
            found, kept = last.end or "not over", self.end or "not over"
            told.append(f"the end comes out as {found!r}, the file says {kept!r}")
        return told


def json_int(number: int) -> int | str:
    """Return a whole number as every reader of JSON keeps it."""
    return number if abs(number) <= MAX_JSON_INT else str(number)


def to_plain_actions(rules: Rules, action: Any) -> StepActions:
    """Return what one step was given, as plain numbers by row."""
    if rules.box:
        rows = np.asarray(action, np.float32).reshape(rules.rows, rules.box)
        return tuple(tuple(float(number) for number in row) for row in rows)
    return tuple(int(one) for one in np.atleast_1d(np.asarray(action)))


def parse(raw: str | bytes) -> Mapping[str, Any]:
    """Return the object that a text is."""
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"more than {MAX_BYTES // 2**20} MiB: this is no replay")

    def refuse(word: str) -> Any:
        raise ConfigError(f"{word} is no number that can be played")

    try:
        found = json.loads(raw, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        if isinstance(error, SparringError):
            raise
        raise ConfigError("this is not JSON, so no replay") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ConfigError(f'this is no replay: "format" has to be "{FORMAT}"')
    if found.get("version") != VERSION:
        raise ConfigError(
            f"a replay of version {found.get('version')!r}; this sparring reads version {VERSION}"
        )
    return found


def replay_from_dict(found: Mapping[str, Any], source: str) -> Replay:
    """Check every entry and put them together."""
    rules = rules_of_replay(found)
    players = required(found, "players", list)
    if len(players) != rules.seats or not all(is_player_name(name) for name in players):
        raise ConfigError(f"players: {rules.name} needs {rules.seats} names")
    actions = required(found, "actions", list)
    if len(actions) > MAX_STEPS:
        raise ConfigError(f"{len(actions):,} actions; at most {MAX_STEPS:,} can be played again")
    scores = required(found, "scores", list)
    if len(scores) != rules.seats or not all(is_number(score) for score in scores):
        raise ConfigError(f"scores: {rules.name} needs {rules.seats} numbers")
    end = found.get("end")
    if end is not None and end not in rules.ends:
        raise ConfigError(f"end: {rules.name} does not end by {end!r}")
    index = found.get("index", 0)
    if not is_int(index) or not 0 <= index < MAX_INDEX:
        raise ConfigError(f"index: {index!r} is no number of a game")
    return Replay(
        rules,
        check_seed(parse_int(found.get("seed"), "seed")),
        tuple(players),
        tuple(parse_actions(rules, given, step) for step, given in enumerate(actions, 1)),
        tuple(float(score) for score in scores),
        end,
        index,
        read_setup(found),
        source,
    )


def rules_of_replay(found: Mapping[str, Any]) -> Rules:
    """Return the rules that a replay was played by, if they are these."""
    rules = Rules(required(found, "game", str), required(found, "flags", dict))
    version = found.get("rules_version")
    if version != rules.rules_version:
        raise ConfigError(
            f"played by version {version!r} of the rules of {rules.name}, and this sparring has "
            f"version {rules.rules_version}; play it with the sparring that wrote it"
        )
    return rules


def read_setup(found: Mapping[str, Any]) -> tuple[int, ...]:
    """Return where a game began, as its rules read it."""
    if found.get("setup") is None:
        return ()
    numbers = tuple(parse_int(number, "setup") for number in required(found, "setup", list))
    if not all(map(is_int64, numbers)):
        raise ConfigError("setup: a number does not fit into 64 bits")
    return numbers


def parse_actions(rules: Rules, given: Any, step: int) -> StepActions:
    """Return what one step says, one entry per row; whether it is legal shows in playing it."""
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


def required(found: Mapping[str, Any], name: str, kind: type) -> Any:
    if not isinstance(found.get(name), kind):
        raise ConfigError(f"{name!r} is missing or is no {kind.__name__}")
    return found[name]


def is_player_name(value: Any) -> bool:
    """Whether this can be printed as a player's name."""
    return (
        isinstance(value, str)
        and len(value) <= MAX_NAME
        and not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in value)
    )


def parse_int(value: Any, name: str) -> int:
    """Return a whole number, which may be written as text."""
    if is_int(value):
        return int(value)
    try:
        return int(value) if isinstance(value, str) and len(value) < 25 else int("")
    except ValueError:
        raise ConfigError(f"{name}: {shorten(value)} is no whole number") from None
