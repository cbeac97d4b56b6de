"""Start positions of games, their names, and files with positions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparring.errors import ConfigError, SparringError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules
from sparring.games.state import State, load_state, new_state
from sparring.schedule import format_number

DEFAULT_START = "usual"
"""Name of the start of the rules."""
RANDOM = "random:"
"""Before the number of moves of random openings, as in random:6."""
OPENINGS, TRIES = 4096, 100
"""Positions of random openings, and games that are tried for each."""
MAX_OPENING = 100
STARTS_SUFFIX = ".jsonl"
"""Suffix of files of `write_starts`."""


@dataclass(frozen=True, slots=True)
class SavedPosition:
    """Bytes of a position: the game, and its extra state (empty: zeros)."""

    game: bytes
    side: bytes = b""


@dataclass(frozen=True, slots=True)
class Start:
    """A start position with its weight."""

    position: State | SavedPosition | bytes | None = None
    """A state, the bytes of `State.serialize()`, or None for the default start."""
    weight: float = 1.0
    name: str = ""
    """Name in errors."""


def resolve_start(rules: Rules, start: Start) -> SavedPosition | None:
    """Return the bytes of a start, None for the default; raises for invalid positions."""
    at = start.position
    if at is None or isinstance(at, SavedPosition):
        return at
    state = load_state(at) if isinstance(at, bytes) else at
    check_same_rules(rules, state.rules)
    if state.over:
        raise ConfigError(f"the game is over ({state.end}); give a position with a decision")
    return saved_position(state)


def saved_position(state: State) -> SavedPosition:
    """Return what a game goes on from."""
    game, side = state.native.position()
    return SavedPosition(game, side if side.strip(b"\0") else b"")


def check_same_rules(rules: Rules, theirs: Rules) -> None:
    """Refuse a position of other rules; flags that can change during a run may differ."""
    if theirs.name != rules.name:
        raise ConfigError(f"a position of {theirs.name}, and the game is {rules.name}")
    fixed = [name for name, field in rules.fields.items() if not field.live]
    for name in fixed:
        mine, other = rules.config[name], theirs.config[name]
        if mine != other:
            raise ConfigError(f"a position with {name}={other}, and the game has {name}={mine}")


def read_starts(rules: Rules, words: Sequence[str]) -> tuple[Start, ...]:
    """Read START=WEIGHT texts: usual, a file, or a start that the game names.

    The positions of a text share its weight.
    """
    found: list[Start] = []
    for word in words:
        what, weight = split_weight(word)
        starts = (
            [Start(name=DEFAULT_START)] if what == DEFAULT_START else starts_by_name(rules, what)
        )
        total = math.fsum(start.weight for start in starts)
        found += [replace(start, weight=weight * start.weight / total) for start in starts]
    return tuple(found)


def with_absolute_path(word: str) -> str:
    """Make the path of a file absolute, so that it is valid in any working directory."""
    what, weight = split_weight(word)
    file = Path(what).expanduser()
    return f"{file.absolute()}={format_number(weight)}" if file.is_file() else word


def split_weight(word: str) -> tuple[str, float]:
    """Split START=WEIGHT; the default weight is 1."""
    what, _, given = word.rpartition("=")
    try:
        weight = float(given)
    except ValueError:
        what, weight = word, 1.0
    if not what.strip():
        raise ConfigError(
            f"starts: {word!r} names no start; give WHAT=WEIGHT, such as {DEFAULT_START}=1"
        )
    if not (math.isfinite(weight) and weight > 0):
        raise ConfigError(f"starts: {word!r}: the weight must be above 0 and finite")
    return what.strip(), weight


def starts_by_name(rules: Rules, what: str) -> list[Start]:
    """Return the starts of a name, at least one."""
    try:
        starts = find_starts(rules, what)
    except (ConfigError, OSError) as error:
        raise ConfigError(f"starts: {error}") from None
    if not starts:
        raise ConfigError(f"starts: {what!r} has no position; give at least one")
    return starts


def find_starts(rules: Rules, what: str) -> list[Start]:
    """Return random openings, starts that the game names, or those of a file."""
    if what.startswith(RANDOM):
        return random_openings(rules, what.removeprefix(RANDOM))
    module = game_module(rules.name, "starts")
    known = module.read_starts(rules, what) if module else None
    if known is not None:
        return list(known)
    path = Path(what).expanduser()
    if path.suffix == STARTS_SUFFIX and path.is_file():
        return list(read_lines(rules, path))
    if path.suffix == STARTS_SUFFIX:
        raise ConfigError(f"no file {what!r}; give the path of one that write_starts wrote")
    words = f", {module.START_FORMATS}" if module else ""
    raise ConfigError(
        f"{rules.name} knows no {what!r}; give {DEFAULT_START}, {RANDOM}6, a {STARTS_SUFFIX} "
        f"file{words}"
    )


def random_openings(rules: Rules, given: str) -> list[Start]:
    """Return positions after 1 to `given` random moves, as many of each number; always the same."""
    what = f"{RANDOM}{given}"
    if not (given.isascii() and given.isdigit() and 0 < int(given) <= MAX_OPENING):
        raise ConfigError(f"{what!r}: give a number of moves from 1 to {MAX_OPENING}")
    if rules.box:
        raise ConfigError(f"{what!r}: {rules.name} has continuous actions; leave it out")
    rng, most = np.random.default_rng(int(given)), int(given)
    return [
        Start(random_opening(rules, 1 + number % most, rng, what), name=what)
        for number in range(OPENINGS)
    ]


def random_opening(rules: Rules, moves: int, rng: np.random.Generator, what: str) -> SavedPosition:
    """Play random moves in a new game; one that ends is tried again."""
    for _ in range(TRIES):
        state = new_state(rules, seed=int(rng.integers(2**31)))
        for _ in range(moves):
            legal = [state.legal(row) or [0] for row in range(rules.rows)]
            drawn = [each[rng.integers(len(each))] for each in legal]
            state.apply(drawn if rules.rows > 1 else drawn[0])
            if state.over:
                break
        else:
            return saved_position(state)
    raise ConfigError(f"{what!r}: games of {rules.name} are over after {moves} moves; give fewer")


def read_lines(rules: Rules, path: Path) -> Iterator[Start]:
    """Read a file of `write_starts`, or lines with a seed and moves."""
    for number, line in read_content_lines(path):
        where = f"{path}:{number}"
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ConfigError("an object is needed")
            yield read_entry(rules, entry, where)
        except SparringError as error:
            raise ConfigError(f"{where}: {error}") from None
        except (ValueError, TypeError, OverflowError, RecursionError):
            text = (
                'give {"state": "HEX"} or {"seed": 0, "moves": [...]}, and a "weight" if you like'
            )
            raise ConfigError(f"{where}: this line cannot be read; {text}") from None


def read_content_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines, without empty lines and # comments."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


def read_entry(rules: Rules, entry: Mapping[str, Any], where: str) -> Start:
    """Read one line: a serialized state, or a seed with moves."""
    unknown = sorted(set(entry) - {"state", "seed", "moves", "weight"})
    if unknown or ("state" in entry) == ("moves" in entry):
        raise ValueError(unknown)
    weight = float(entry.get("weight", 1.0))
    if not (math.isfinite(weight) and weight > 0):
        raise ConfigError(f"weight {weight} must be above 0 and finite")
    if "state" in entry:
        state = load_state(bytes.fromhex(entry["state"]))
    else:
        state = new_state(rules, seed=int(entry.get("seed", 0)))
        for move in entry["moves"]:
            state.apply(move)
    return Start(resolve_start(rules, Start(state)), weight, where)


def write_starts(path: str | Path, states: Iterable[State]) -> None:
    """Write positions to a file for `--starts`, one per line."""
    lines = [json.dumps({"state": state.serialize().hex()}) for state in states]
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
