"""What programs ask an agent: a decision as a row, as numbers, as a state or by its actions.

Whatever is wrong with it is said in one line, before a network sees it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.errors import ConfigError, SparringError, nearest
from sparring.games.narrowing import narrow
from sparring.games.recorded import FORMAT, VERSION, read_facts
from sparring.games.rules import Rules
from sparring.games.sealed import is_number, is_whole
from sparring.games.state import State, load_state

Bytes = npt.NDArray[np.uint8]

WAYS = ("obs", "numbers", "state", "replay")
"""How a decision can be given."""
KEYS = ("player", *WAYS, "mask", "memory", "row", "sampled", "seed", "step", "top")
REPLAY_KEYS = (
    *("format", "version", "game", "rules_version", "flags", "seed", "index"),
    *("players", "setup", "actions", "scores", "end"),
)
MOST_ACTIONS = 10_000
"""Of a replay: they are played again for every question."""
MOST_TOP = 1000


@dataclass(frozen=True)
class Wish:
    """How an answer is to be chosen and told."""

    sampled: bool = False
    seed: int = 0
    step: int = 0
    top: int = 5


@dataclass(frozen=True)
class Question:
    """One request, checked as far as that needs no player."""

    player: str
    way: str
    given: Any
    mask: Any
    row: int
    wish: Wish
    memory: Any = None
    """What the player remembers of the seat, as its answer before said; "": nothing yet."""

    @property
    def by_state(self) -> bool:
        """Whether there is a position, which bots need."""
        return self.way in ("state", "replay")


@dataclass(frozen=True)
class Decision:
    """A question about a game: what a network takes, and the position if there is one."""

    obs: Bytes
    mask: Bytes
    state: State | None = None


def read_question(body: Any) -> Question:
    """Check what was posted."""
    if not isinstance(body, dict):
        raise ConfigError(f"send one object with one of {', '.join(WAYS)}")
    for key in body:
        if key not in KEYS:
            raise ConfigError(f"{key!r} is unknown{nearest(str(key), KEYS)}")
    ways = [way for way in WAYS if way in body]
    if len(ways) != 1:
        found = " and ".join(ways) or "none of them"
        raise ConfigError(f"give exactly one of {', '.join(WAYS)}; there is {found}")
    player = body.get("player", "")
    if not isinstance(player, str) or len(player) > 200:
        raise ConfigError("player has to be a name, such as RUN, RUN/40 or RUN/past/12")
    if not isinstance(body.get("sampled", False), bool):
        raise ConfigError("sampled has to be true or false")
    wish = Wish(
        body.get("sampled", False),
        whole_within(body, "seed", 0, -(2**63), 2**64 - 1),
        whole_within(body, "step", 0, 0, 2**31 - 1),
        whole_within(body, "top", Wish.top, 0, MOST_TOP),
    )
    (way,) = ways
    row = whole_within(body, "row", 0, 0, 63)
    return Question(player, way, body[way], body.get("mask"), row, wish, body.get("memory"))


def whole_within(body: Mapping[str, Any], key: str, default: int, low: int, high: int) -> int:
    """Return a whole number within bounds."""
    value = body.get(key, default)
    if not is_whole(value) or not low <= value <= high:
        raise ConfigError(f"{key} has to be a whole number within {low}..{high}")
    return int(value)


def position(question: Question, rules: Rules | None) -> State:
    """Return the position that a question gives.

    rules: those of the player; a replay that names no game or no flags is played by them.
    """
    if question.way == "state":
        state = load_state(from_base64(question.given, "state"))
    else:
        state = replayed(question.given, rules)
    if state.over:
        raise ConfigError("the game is over in this position; nobody is to act")
    if question.row >= state.rules.rows or state.native.seat(question.row) < 0:
        raise ConfigError(f"row={question.row}: nobody is to act there; leave row out")
    return state


def replayed(given: Any, rules: Rules | None) -> State:
    """Return the position after the actions of a replay; game, seed and actions are enough."""
    if not isinstance(given, dict):
        raise ConfigError("replay has to be an object with game, flags, seed and actions")
    for key in given:
        if key not in REPLAY_KEYS:
            raise ConfigError(f"replay: {key!r} is unknown{nearest(str(key), REPLAY_KEYS)}")
    actions = given.get("actions")
    if isinstance(actions, list) and len(actions) > MOST_ACTIONS:
        raise ConfigError(f"replay: more than {MOST_ACTIONS:,} actions; send obs and mask instead")
    found: dict[str, Any] = {"format": FORMAT, "version": VERSION, "seed": 0, **given}
    if rules is not None and found.setdefault("game", rules.name) == rules.name:
        found.setdefault("flags", rules.config)
    found.setdefault("flags", {})
    if not isinstance(found.get("game"), str) or not isinstance(found["flags"], dict):
        raise ConfigError("replay: game has to be a name and flags an object")
    known = Rules(found["game"], found["flags"])
    found.setdefault("rules_version", known.rules_version)
    found.setdefault("players", ["?"] * known.seats)
    found.setdefault("scores", [0] * known.seats)
    *_, last = read_facts(found, "replay").states()
    return last


def decision_of(question: Question, rules: Rules, row_bytes: int) -> Decision:
    """Return what a player's network takes.

    row_bytes: of the network, which may see more than the game shows: what it remembers.
    """
    held = row_bytes - rules.obs_bytes
    if question.way == "obs" and question.memory is None:  # a whole row, as a pool has it
        obs = octets(question.given, row_bytes, "obs", rules)
        return Decision(obs, read_mask(question.mask, rules))
    memory = read_memory(question.memory, held, rules)
    if question.by_state:
        if question.mask is not None:
            raise ConfigError(f"mask: {question.way} says itself what is legal; leave mask out")
        state = position(question, rules)
        seen, mask = state.decision(question.row)
        return Decision(np.concatenate([seen[0], memory]), mask[0], state)
    if question.way == "obs":
        obs = octets(question.given, rules.obs_bytes, "obs", rules)
    else:
        obs = narrowed(rules, question.given)
    return Decision(np.concatenate([obs, memory]), read_mask(question.mask, rules))


def read_memory(given: Any, size: int, rules: Rules) -> Bytes:
    """Return what a player remembers, so many bytes; zeros where a game begins."""
    if given is None and size:
        raise ConfigError(
            'this player remembers: send memory, "" where a game begins, and then what its answer '
            "to the seat's decision before said"
        )
    if not given and not isinstance(given, int):
        return np.zeros(size, np.uint8)
    if not size:
        raise ConfigError("memory: this player remembers nothing; leave memory out")
    memory = octets(given, size, "memory", rules)
    if not np.isfinite(memory.view(np.float32)).all():
        raise ConfigError("memory: there are numbers in it that are not finite; send it as it came")
    return memory


def read_mask(given: Any, rules: Rules) -> Bytes:
    """Return which actions are legal, one byte each."""
    if rules.box:
        if given not in (None, []):
            raise ConfigError(f"mask: {rules.name} has continuous actions; leave mask out")
        return np.zeros(0, np.uint8)
    if given is None:
        raise ConfigError(f"mask: say which of the {rules.actions} actions are legal")
    mask = octets(given, rules.actions, "mask", rules)
    if mask.max(initial=0) > 1:
        raise ConfigError("mask: 1 is legal, 0 is not; there is nothing else")
    if not mask.any():
        raise ConfigError("mask: no action is legal, so there is nothing to decide")
    return mask


def octets(given: Any, count: int, key: str, rules: Rules) -> Bytes:
    """Return bytes that are given as text in base64 or as a list."""
    if isinstance(given, str):
        found = np.frombuffer(from_base64(given, key), np.uint8)
    elif isinstance(given, list):
        found = bytes_of(given, key)
    else:
        raise ConfigError(f"{key} has to be a list of bytes, or text in base64")
    if len(found) != count:
        raise ConfigError(f"{key}: {len(found)} bytes; for {rules.name} it has {count}")
    return found


def bytes_of(given: list[Any], key: str) -> Bytes:
    """Return a list of bytes as an array."""
    try:
        found = np.array(given)
    except ValueError:  # lists of different lengths
        found = np.array("")
    if given and (found.ndim != 1 or found.dtype.kind not in "iu"):
        raise ConfigError(f"{key}: a list holds whole numbers within 0..255")
    if found.size and not 0 <= found.min() <= found.max() < 256:
        raise ConfigError(f"{key}: a list holds whole numbers within 0..255")
    return found.astype(np.uint8)


def from_base64(given: Any, key: str) -> bytes:
    """Return what a text stands for."""
    try:
        if not isinstance(given, str):
            raise ValueError
        return base64.b64decode(given, validate=True)
    except (ValueError, binascii.Error):
        raise ConfigError(f"{key} has to be text in base64") from None


def narrowed(rules: Rules, given: Any) -> Bytes:
    """Return the row of which `rules.widen` makes a list of numbers; others are refused."""
    features = rules.features
    if not isinstance(given, list) or len(given) != len(features):
        found = f"{len(given)} of them" if isinstance(given, list) else "something else"
        raise ConfigError(f"numbers: {rules.name} has {len(features)}; there is {found}")
    for feature, number in zip(features, given, strict=True):
        if not is_number(number):
            raise ConfigError(f"numbers: {feature.name} is no number")
    (row,) = narrow(features, rules.obs_bytes, np.array([given], np.float64))
    return np.asarray(row)


def told(wrong: SparringError) -> str:
    """Return an error in one line."""
    return " ".join(str(wrong).split())
