"""What programs can ask of `sparring serve --api`, in one table, and as OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Schema = dict[str, Any]

BYTES: Schema = {
    "oneOf": [
        {"type": "string", "contentEncoding": "base64"},
        {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}},
    ]
}
SHARE: Schema = {
    "type": "object",
    "properties": {
        "action": {"type": "integer"},
        "name": {"type": "string"},
        "probability": {"type": "number"},
    },
}
ACTION: Schema = {
    "description": "A number, or numbers within -1..1 where actions are continuous.",
    "oneOf": [{"type": "integer"}, {"type": "array", "items": {"type": "number"}}],
}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
QUESTION: Schema = {
    "type": "object",
    "description": "A decision, given in one of four ways: obs, numbers, state or replay.",
    "additionalProperties": False,
    "oneOf": [{"required": [way]} for way in ("obs", "numbers", "state", "replay")],
    "properties": {
        "player": {
            "type": "string",
            "description": "RUN (its best checkpoint), RUN/40, RUN/past/12 (a snapshot of its "
            "league); latest is a run too. Left out: the server's --agent.",
        },
        "obs": {**BYTES, "description": "A row as the pool writes it."},
        "numbers": {
            "type": "array",
            "items": {"type": "number"},
            "description": "The same as one number per feature, as State.observe returns it.",
        },
        "mask": {**BYTES, "description": "With obs or numbers: 1 for every legal action."},
        "memory": {
            "oneOf": [*BYTES["oneOf"], {"type": "null"}],
            "description": "Of a player that remembers: the memory of its answer to the seat's "
            "decision before, empty where a game begins.",
        },
        "state": {
            "type": "string",
            "contentEncoding": "base64",
            "description": "State.serialize(); taken with --states.",
        },
        "replay": {
            "type": "object",
            "description": "The position after some actions: game, flags, seed and actions, or a "
            "whole replay. Game and flags are the player's where they are left out.",
            "properties": {
                "game": {"type": "string"},
                "flags": {"type": "object"},
                "seed": {"type": ["integer", "string"]},
                "actions": {"type": "array"},
            },
            "required": ["actions"],
        },
        "row": {
            "type": "integer",
            "default": 0,
            "description": "With state or replay, where seats move at once: whose decision.",
        },
        "sampled": {
            "type": "boolean",
            "default": False,
            "description": "Draw the action instead of taking the most probable one.",
        },
        "seed": {"type": "integer", "default": 0, "description": "Of the draw."},
        "step": {"type": "integer", "default": 0, "description": "Of the draw: another for each."},
        "top": {
            "type": "integer",
            "default": 5,
            "minimum": 0,
            "maximum": 1000,
            "description": "How many of the most probable actions are told.",
        },
    },
}
ANSWER: Schema = {
    "type": "object",
    "required": ["action", "name", "player", "value", "probabilities", "fallback"],
    "properties": {
        "action": ACTION,
        "name": {"type": "string", "description": "What the action means."},
        "player": {"type": "string", "description": "Who was asked."},
        "loaded_from": {"type": ["string", "null"], "description": "Whose weights answered."},
        "value": {**NUMBER_OR_NULL, "description": "What the seat is expected to be paid."},
        "memory": {
            "type": ["string", "null"],
            "contentEncoding": "base64",
            "description": "What the player remembers: send it with the seat's next decision.",
        },
        "probabilities": {"type": ["array", "null"], "items": SHARE},
        "mean": {"type": "array", "items": {"type": "number"}},
        "spread": {"type": "array", "items": {"type": "number"}},
        "fallback": {
            "description": "false, or the bot that stood in for the player.",
            "oneOf": [{"const": False}, {"type": "string"}],
        },
        "why": {"type": "string", "description": "Why the bot stood in."},
    },
}
HEALTH: Schema = {
    "type": "object",
    "required": ["status", "loaded"],
    "properties": {
        "status": {"enum": ["ok", "degraded", "unavailable"]},
        "agent": {"type": ["string", "null"]},
        "trouble": {"type": "string"},
        "fallback": {"type": ["string", "null"]},
        "loaded": {"type": "array", "items": {"type": "object"}},
        "rows": {"type": "integer", "description": "Questions that networks have answered."},
        "passes": {"type": "integer", "description": "Forward passes in which they did."},
        "waiting": {"type": "integer"},
    },
}
ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string", "description": "One line that says what to do."}},
}


@dataclass(frozen=True)
class Operation:
    """One thing to ask."""

    name: str
    method: str
    path: str
    summary: str
    answer: Schema
    request: Schema | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Requests that are answered by an agent for tic-tac-toe."""
    errors: Mapping[int, str] = field(default_factory=dict)


ROW = [0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
"""The features of an example: a ring in the corner against a cross in the middle."""
OPERATIONS = (
    Operation(
        "act",
        "post",
        "/api/act",
        "What an agent would do",
        ANSWER,
        QUESTION,
        {
            "replay": {"replay": {"game": "tic_tac_toe", "actions": [4, 0]}, "top": 3},
            "obs": {
                "obs": [*ROW, *[0] * 13],
                "mask": [0, 1, 1, 1, 0, 1, 1, 1, 1],
            },
            "base64": {
                "obs": "AAAAAAEAAAAAAQAAAAAAAAAAAQAAAAAAAAAAAAAAAAA=",
                "mask": "AAEBAQABAQEB",
            },
            "numbers": {
                "numbers": ROW,
                "mask": [0, 1, 1, 1, 0, 1, 1, 1, 1],
                "sampled": True,
                "seed": 7,
            },
        },
        {
            400: "This is not JSON.",
            403: "A state, and the server was started without --states.",
            415: "The content type is not application/json.",
            422: "Something in it does not fit the game: sizes, an illegal action, no legal one.",
            503: "The player is missing or damaged, and no bot can stand in.",
        },
    ),
    Operation(
        "health",
        "get",
        "/api/health",
        "Whether questions are answered, and who is loaded",
        HEALTH,
        errors={503: "The server's --agent cannot be loaded, and there is no --fallback."},
    ),
    Operation("openapi", "get", "/openapi.json", "This description", {"type": "object"}),
)
"""Everything that `--api` adds; `acting.Service.routes` is made of it."""


def describe() -> dict[str, Any]:
    """Return the description that programs read."""
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sparring: an agent that answers",
            "version": own_version(),
            "description": "Where the server wants a token, send it: authorization: Bearer TOKEN.",
        },
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def operation(one: Operation) -> dict[str, Any]:
    """Return what OpenAPI says about an operation."""
    errors = {401: "The token is missing or wrong.", 429: "Too many requests.", **one.errors}
    told: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "responses": {
            "200": {"description": "The answer.", "content": json_of(one.answer)},
            **{
                str(status): {"description": why, "content": json_of(ERROR)}
                for status, why in sorted(errors.items())
            },
        },
    }
    if one.request is not None:
        content = json_of(one.request)
        content["application/json"]["examples"] = {
            name: {"value": value} for name, value in one.examples.items()
        }
        told["requestBody"] = {"required": True, "content": content}
    return told


def json_of(schema: Schema) -> dict[str, Any]:
    """Return a body of JSON."""
    return {"application/json": {"schema": schema}}


def own_version() -> str:
    """Return which sparring this is."""
    try:
        return version("sparring")
    except PackageNotFoundError:  # sources that nobody installed
        return "0"
