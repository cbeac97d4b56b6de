"""What programs ask an agent: a decision as a row, as numbers, as a state or by its actions.

Whatever is wrong with it is said in one line, before a network sees it.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct, ValidationError, convert

from sparring.errors import ConfigError, SparringError, suggestion
from sparring.games.packing import pack_rows
from sparring.games.recorded import FORMAT, VERSION, replay_from_dict
from sparring.games.rules import Rules
from sparring.games.state import State, load_state

Bytes = npt.NDArray[np.uint8]
Base64 = Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64"})]
ByteInput = Base64 | list[Annotated[int, Meta(ge=0, le=255)]]

INPUT_KEYS = ("obs", "numbers", "state", "replay")
"""How a decision can be given."""
REPLAY_KEYS = (
    *("format", "version", "game", "rules_version", "flags", "seed", "index"),
    *("players", "setup", "actions", "scores", "end"),
)
MAX_ACTIONS = 10_000
"""Of a replay: they are played again for every question."""


class ActRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A decision, given in one of four ways: obs, numbers, state or replay."""

    player: Annotated[
        str,
        Meta(
            max_length=200,
            description="RUN (its best checkpoint), RUN/40, RUN/past/12 (a snapshot of its "
            "league); latest is a run too. Left out: the server's --agent.",
        ),
    ] = ""
    obs: Annotated[ByteInput | None, Meta(description="A row as the pool writes it.")] = None
    numbers: Annotated[
        list[float] | None,
        Meta(description="The same as one number per feature, as State.observe returns it."),
    ] = None
    mask: Annotated[
        ByteInput | None, Meta(description="With obs or numbers: 1 for every legal action.")
    ] = None
    memory: Annotated[
        ByteInput | None,
        Meta(
            description="Of a player that remembers: the memory of its answer to the seat's "
            "decision before, empty where a game begins."
        ),
    ] = None
    state: Annotated[Base64 | None, Meta(description="State.serialize(); taken with --states.")] = (
        None
    )
    replay: Annotated[
        dict[str, Any] | None,
        Meta(
            description="The position after some actions: game, flags, seed and actions, or a "
            "whole replay. Game and flags are the player's where they are left out."
        ),
    ] = None
    row: Annotated[
        int,
        Meta(
            ge=0,
            le=63,
            description="With state or replay, where seats move at once: whose decision.",
        ),
    ] = 0
    sampled: Annotated[
        bool, Meta(description="Draw the action instead of taking the most probable one.")
    ] = False
    seed: Annotated[int, Meta(ge=-(2**63), description="Of the draw.")] = 0
    step: Annotated[int, Meta(ge=0, le=2**31 - 1, description="Of the draw: another for each.")] = 0
    top: Annotated[
        int,
        Meta(ge=0, le=1000, description="How many of the most probable actions are told."),
    ] = 5

    @property
    def way(self) -> str:
        return next(way for way in INPUT_KEYS if getattr(self, way) is not None)

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


def parse_request(body: Any) -> ActRequest:
    """Check what was posted, as far as that needs no player."""
    if not isinstance(body, dict):
        raise ConfigError(f"send one object with one of {', '.join(INPUT_KEYS)}")
    for key in body:
        if key not in ActRequest.__struct_fields__:
            raise ConfigError(
                f"{key!r} is unknown{suggestion(str(key), ActRequest.__struct_fields__)}"
            )
    try:
        question = convert(body, ActRequest)
    except ValidationError as wrong:
        what, _, where = str(wrong).partition(" - at `$.")
        raise ConfigError(f"{where.rstrip('`')}: {what[0].lower()}{what[1:]}") from None
    ways = [way for way in INPUT_KEYS if getattr(question, way) is not None]
    if len(ways) != 1:
        found = " and ".join(ways) or "none of them"
        raise ConfigError(f"give exactly one of {', '.join(INPUT_KEYS)}; there is {found}")
    if question.seed >= 2**64:
        raise ConfigError("seed: expected a whole number below 2^64")
    return question


def state_of(question: ActRequest, rules: Rules | None) -> State:
    """Return the position that a question gives.

    rules: those of the player; a replay that names no game or no flags is played by them.
    """
    if question.way == "state":
        state = load_state(decode_base64(question.state or "", "state"))
    else:
        state = play_replay(question.replay or {}, rules)
    if state.over:
        raise ConfigError("the game is over in this position; nobody is to act")
    if question.row >= state.rules.rows or state.native.seat(question.row) < 0:
        raise ConfigError(f"row={question.row}: nobody is to act there; leave row out")
    return state


def play_replay(given: dict[str, Any], rules: Rules | None) -> State:
    """Return the position after the actions of a replay; game, seed and actions are enough."""
    for key in given:
        if key not in REPLAY_KEYS:
            raise ConfigError(f"replay: {key!r} is unknown{suggestion(str(key), REPLAY_KEYS)}")
    actions = given.get("actions")
    if isinstance(actions, list) and len(actions) > MAX_ACTIONS:
        raise ConfigError(f"replay: more than {MAX_ACTIONS:,} actions; send obs and mask instead")
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
    *_, last = replay_from_dict(found, "replay").states()
    return last


def make_decision(question: ActRequest, rules: Rules, row_bytes: int) -> Decision:
    """Return what a player's network takes.

    row_bytes: of the network, which may see more than the game shows: what it remembers.
    """
    held = row_bytes - rules.obs_bytes
    if question.way == "obs" and question.memory is None:  # a whole row, as a pool has it
        obs = decode_bytes(question.obs or [], row_bytes, "obs", rules)
        return Decision(obs, read_mask(question.mask, rules))
    memory = read_memory(question.memory, held, rules)
    if question.by_state:
        if question.mask is not None:
            raise ConfigError(f"mask: {question.way} says itself what is legal; leave mask out")
        state = state_of(question, rules)
        seen, mask = state.decision(question.row)
        return Decision(np.concatenate([seen[0], memory]), mask[0], state)
    if question.way == "obs":
        obs = decode_bytes(question.obs or [], rules.obs_bytes, "obs", rules)
    else:
        obs = pack_features(rules, question.numbers or [])
    return Decision(np.concatenate([obs, memory]), read_mask(question.mask, rules))


def read_memory(given: ByteInput | None, size: int, rules: Rules) -> Bytes:
    """Return what a player remembers, so many bytes; zeros where a game begins."""
    if given is None and size:
        raise ConfigError(
            'this player remembers: send memory, "" where a game begins, and then what its answer '
            "to the seat's decision before said"
        )
    if not given:
        return np.zeros(size, np.uint8)
    if not size:
        raise ConfigError("memory: this player remembers nothing; leave memory out")
    memory = decode_bytes(given, size, "memory", rules)
    if not np.isfinite(memory.view(np.float32)).all():
        raise ConfigError("memory: there are numbers in it that are not finite; send it as it came")
    return memory


def read_mask(given: ByteInput | None, rules: Rules) -> Bytes:
    """Return which actions are legal, one byte each."""
    if rules.box:
        if given not in (None, []):
            raise ConfigError(f"mask: {rules.name} has continuous actions; leave mask out")
        return np.zeros(0, np.uint8)
    if given is None:
        raise ConfigError(f"mask: say which of the {rules.actions} actions are legal")
    mask = decode_bytes(given, rules.actions, "mask", rules)
    if mask.max(initial=0) > 1:
        raise ConfigError("mask: 1 is legal, 0 is not; there is nothing else")
    if not mask.any():
        raise ConfigError("mask: no action is legal, so there is nothing to decide")
    return mask


def decode_bytes(given: ByteInput, count: int, key: str, rules: Rules) -> Bytes:
    """Return bytes that are given as text in base64 or as a list."""
    found = np.frombuffer(
        decode_base64(given, key) if isinstance(given, str) else bytes(given), "u1"
    )
    if len(found) != count:
        raise ConfigError(f"{key}: {len(found)} bytes; for {rules.name} it has {count}")
    return found


def decode_base64(given: str, key: str) -> bytes:
    """Return what a text stands for."""
    try:
        return base64.b64decode(given, validate=True)
    except (ValueError, binascii.Error):
        raise ConfigError(f"{key} has to be text in base64") from None


def pack_features(rules: Rules, given: list[float]) -> Bytes:
    """Return the row of which `rules.widen` makes a list of numbers; others are refused."""
    features = rules.features
    if len(given) != len(features):
        raise ConfigError(
            f"numbers: {rules.name} has {len(features)}; there is {len(given)} of them"
        )
    (row,) = pack_rows(features, rules.obs_bytes, np.array([given], np.float64))
    return np.asarray(row)


def one_line(wrong: SparringError) -> str:
    """Return an error in one line."""
    return " ".join(str(wrong).split())
