"""Requests for actions: a decision as packed bytes, as numbers, as a state or as a replay.

Requests are validated before a network sees them; errors have one line.
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
"""Keys with which a request gives its decision; exactly one of them."""
REPLAY_KEYS = (
    *("format", "version", "game", "rules_version", "flags", "seed", "index"),
    *("players", "setup", "actions", "scores", "end"),
)
MAX_ACTIONS = 10_000
"""Of a replay, which every request plays again."""


class ActRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A decision, given as one of obs, numbers, state and replay."""

    player: Annotated[
        str,
        Meta(
            max_length=200,
            description="RUN (its best checkpoint), RUN/40, RUN/past/12 (a snapshot of its "
            "league); latest is a run too. Default: the server's --agent.",
        ),
    ] = ""
    obs: Annotated[ByteInput | None, Meta(description="The observation as packed bytes.")] = None
    numbers: Annotated[
        list[float] | None,
        Meta(description="The observation as one number per feature, see State.observe."),
    ] = None
    mask: Annotated[
        ByteInput | None, Meta(description="With obs or numbers: 1 for every legal action.")
    ] = None
    memory: Annotated[
        ByteInput | None,
        Meta(
            description="Of a recurrent player: `memory` of the response to the seat's last "
            "decision, empty at the start of a game."
        ),
    ] = None
    state: Annotated[Base64 | None, Meta(description="State.serialize(); needs --states.")] = None
    replay: Annotated[
        dict[str, Any] | None,
        Meta(
            description="The position after some actions: game, flags, seed and actions, or a "
            "whole replay. Game and flags default to the player's."
        ),
    ] = None
    row: Annotated[
        int,
        Meta(
            ge=0,
            le=63,
            description="With state or replay in games with simultaneous moves: the row.",
        ),
    ] = 0
    sampled: Annotated[
        bool, Meta(description="Sample the action instead of taking the most probable one.")
    ] = False
    seed: Annotated[int, Meta(ge=-(2**63), description="Of the sampling.")] = 0
    step: Annotated[
        int, Meta(ge=0, le=2**31 - 1, description="Of the sampling: a new one for each request.")
    ] = 0
    top: Annotated[
        int,
        Meta(ge=0, le=1000, description="Number of most probable actions to return."),
    ] = 5
    search: Annotated[
        int | str | None,
        Meta(
            description="With state or replay: a tree search of so many simulations (64), or of a "
            'time ("500ms"), or by another rule ("800/puct"). 0: none. Default: the server\'s '
            "--search."
        ),
    ] = None

    @property
    def input_key(self) -> str:
        return next(key for key in INPUT_KEYS if getattr(self, key) is not None)

    @property
    def has_state(self) -> bool:
        """Whether there is a position, which bots and searches need."""
        return self.input_key in ("state", "replay")


@dataclass(frozen=True)
class Decision:
    """Inputs of a network for one decision, and the position if there is one."""

    obs: Bytes
    mask: Bytes
    state: State | None = None


def parse_request(body: Any) -> ActRequest:
    """Validate a request as far as possible without its player."""
    if not isinstance(body, dict):
        raise ConfigError(f"send one object with one of {', '.join(INPUT_KEYS)}")
    for key in body:
        if key not in ActRequest.__struct_fields__:
            raise ConfigError(
                f"{key!r} is unknown{suggestion(str(key), ActRequest.__struct_fields__)}"
            )
    try:
        request = convert(body, ActRequest)
    except ValidationError as wrong:
        message, _, key = str(wrong).partition(" - at `$.")
        raise ConfigError(f"{key.rstrip('`')}: {message[0].lower()}{message[1:]}") from None
    keys = [key for key in INPUT_KEYS if getattr(request, key) is not None]
    if len(keys) != 1:
        found = " and ".join(keys) or "none of them"
        raise ConfigError(f"give exactly one of {', '.join(INPUT_KEYS)}; there is {found}")
    if request.seed >= 2**64:
        raise ConfigError("seed: expected an integer below 2^64")
    return request


def state_of(request: ActRequest, rules: Rules | None) -> State:
    """Return the position of a request.

    rules: of the player; the default of a replay without game or flags.
    """
    if request.input_key == "state":
        state = load_state(decode_base64(request.state or "", "state"))
    else:
        state = play_replay(request.replay or {}, rules)
    if state.over:
        raise ConfigError("the game is over in this position; no seat is to act")
    if request.row >= state.rules.rows or state.native.seat(request.row) < 0:
        raise ConfigError(f"row={request.row}: no seat is to act there; leave row out")
    return state


def play_replay(replay: dict[str, Any], rules: Rules | None) -> State:
    """Return the position after the actions of a replay; game, seed and actions are enough."""
    for key in replay:
        if key not in REPLAY_KEYS:
            raise ConfigError(f"replay: {key!r} is unknown{suggestion(str(key), REPLAY_KEYS)}")
    actions = replay.get("actions")
    if isinstance(actions, list) and len(actions) > MAX_ACTIONS:
        raise ConfigError(f"replay: more than {MAX_ACTIONS:,} actions; send obs and mask instead")
    facts: dict[str, Any] = {"format": FORMAT, "version": VERSION, "seed": 0, **replay}
    if rules is not None and facts.setdefault("game", rules.name) == rules.name:
        facts.setdefault("flags", rules.config)
    facts.setdefault("flags", {})
    if not isinstance(facts.get("game"), str) or not isinstance(facts["flags"], dict):
        raise ConfigError("replay: game has to be a name and flags an object")
    played = Rules(facts["game"], facts["flags"])
    facts.setdefault("rules_version", played.rules_version)
    facts.setdefault("players", ["?"] * played.seats)
    facts.setdefault("scores", [0] * played.seats)
    *_, last = replay_from_dict(facts, "replay").states()
    return last


def make_decision(request: ActRequest, rules: Rules, row_bytes: int) -> Decision:
    """Return the inputs of a player's network.

    row_bytes: of the network: the observation and, if it is recurrent, its memory.
    """
    memory_bytes = row_bytes - rules.obs_bytes
    if request.input_key == "obs" and request.memory is None:  # obs includes the memory
        obs = decode_bytes(request.obs or [], row_bytes, "obs", rules)
        return Decision(obs, read_mask(request.mask, rules))
    memory = read_memory(request.memory, memory_bytes, rules)
    if request.has_state:
        if request.mask is not None:
            raise ConfigError(f"mask: {request.input_key} has its legal actions; leave mask out")
        state = state_of(request, rules)
        rows, mask = state.decision(request.row)
        return Decision(np.concatenate([rows[0], memory]), mask[0], state)
    if request.input_key == "obs":
        obs = decode_bytes(request.obs or [], rules.obs_bytes, "obs", rules)
    else:
        obs = pack_features(rules, request.numbers or [])
    return Decision(np.concatenate([obs, memory]), read_mask(request.mask, rules))


def read_memory(value: ByteInput | None, size: int, rules: Rules) -> Bytes:
    """Return the memory of a recurrent player; zeros at the start of a game."""
    if value is None and size:
        raise ConfigError(
            'this player is recurrent: send memory, "" at the start of a game, then the memory of '
            "the response to the seat's last decision"
        )
    if not value:
        return np.zeros(size, np.uint8)
    if not size:
        raise ConfigError("memory: this player has no memory; leave memory out")
    memory = decode_bytes(value, size, "memory", rules)
    if not np.isfinite(memory.view(np.float32)).all():
        raise ConfigError("memory: it contains numbers that are not finite; send it unchanged")
    return memory


def read_mask(value: ByteInput | None, rules: Rules) -> Bytes:
    """Return the mask of legal actions, one byte each."""
    if rules.box:
        if value not in (None, []):
            raise ConfigError(f"mask: {rules.name} has continuous actions; leave mask out")
        return np.zeros(0, np.uint8)
    if value is None:
        raise ConfigError(f"mask is missing: 1 for each legal one of the {rules.actions} actions")
    mask = decode_bytes(value, rules.actions, "mask", rules)
    if mask.max(initial=0) > 1:
        raise ConfigError("mask: use 1 for legal and 0 for illegal actions")
    if not mask.any():
        raise ConfigError("mask: no action is legal")
    return mask


def decode_bytes(value: ByteInput, count: int, key: str, rules: Rules) -> Bytes:
    """Return bytes given as base64 text or as a list."""
    raw = np.frombuffer(decode_base64(value, key) if isinstance(value, str) else bytes(value), "u1")
    if len(raw) != count:
        raise ConfigError(f"{key}: {len(raw)} bytes; for {rules.name} it has {count}")
    return raw


def decode_base64(value: str, key: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        raise ConfigError(f"{key} has to be base64 text") from None


def pack_features(rules: Rules, numbers: list[float]) -> Bytes:
    """Return the packed observation of a list of features."""
    features = rules.features
    if len(numbers) != len(features):
        raise ConfigError(f"numbers: {len(numbers)} features; {rules.name} has {len(features)}")
    (row,) = pack_rows(features, rules.obs_bytes, np.array([numbers], np.float64))
    return np.asarray(row)


def one_line(wrong: SparringError) -> str:
    return " ".join(str(wrong).split())
