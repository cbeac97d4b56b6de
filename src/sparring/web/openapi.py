"""Operations of `sparring serve --api`, and their OpenAPI 3.1 description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.json import schema_components

from sparring.web.act_request import INPUT_KEYS, ActRequest, ByteInput


class ActionProbability(Struct):
    """An action with its probability."""

    action: int
    name: str
    probability: float
    visits: Annotated[int, Meta(description="Simulations that tried it.")] | UnsetType = UNSET
    value: (
        Annotated[float | None, Meta(description="Mean return of those; null: not tried.")]
        | UnsetType
    ) = UNSET


class SearchSummary(Struct):
    """A tree search behind an action."""

    budget: Annotated[str, Meta(description="As the request gave it.")]
    simulations: Annotated[int, Meta(description="Those that were made.")]
    network_value: Annotated[float, Meta(description="Expected return without the search.")]
    line: Annotated[list[str], Meta(description="Expected actions, the chosen one first.")]


class ActResponse(Struct):
    """The action of an agent."""

    action: Annotated[
        int | list[float],
        Meta(description="A number, or numbers within -1..1 where actions are continuous."),
    ]
    name: Annotated[str, Meta(description="What the action means.")]
    player: Annotated[str, Meta(description="The player of the request.")]
    value: Annotated[float | None, Meta(description="Expected return of the seat.")]
    probabilities: list[ActionProbability] | None
    fallback: Annotated[
        Literal[False] | str, Meta(description="false, or the bot that answered for the player.")
    ]
    loaded_from: Annotated[str | None, Meta(description="Checkpoint of the weights.")] = None
    memory: Annotated[
        ByteInput | None,
        Meta(description="Recurrent memory: send it with the seat's next decision."),
    ] = None
    mean: list[float] | UnsetType = UNSET
    spread: list[float] | UnsetType = UNSET
    why: Annotated[str, Meta(description="Why the bot answered.")] | UnsetType = UNSET
    search: SearchSummary | UnsetType = UNSET


class HealthResponse(Struct):
    """State of the service."""

    status: Literal["ok", "degraded", "unavailable"]
    loaded: list[dict[str, Any]]
    agent: str | None = None
    trouble: str = ""
    fallback: str | None = None
    rows: Annotated[int, Meta(description="Requests answered by networks.")] = 0
    passes: Annotated[int, Meta(description="Forward passes for them.")] = 0
    waiting: int = 0


class ErrorResponse(Struct):
    """A rejected request."""

    error: Annotated[str, Meta(description="One line with the reason and what to do.")]


@dataclass(frozen=True)
class Operation:
    """One operation of the API."""

    name: str
    method: str
    path: str
    summary: str
    answer: type
    request: type | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)
    """Requests for an agent of tic-tac-toe."""
    errors: Mapping[int, str] = field(default_factory=dict)


ROW = [0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
"""Features of an example: O in a corner, X in the center."""
OPERATIONS = (
    Operation(
        "act",
        "post",
        "/api/act",
        "The action of an agent",
        ActResponse,
        ActRequest,
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
            "search": {"replay": {"game": "tic_tac_toe", "actions": [4, 0]}, "search": 32},
        },
        {
            400: "The body is not JSON.",
            403: "A state, but the server was started without --states.",
            415: "The content type is not application/json.",
            422: "The request does not fit the game: sizes, an illegal action, no legal action; or "
            "its search is larger than the server allows.",
            503: "The player is missing or damaged, and there is no fallback.",
        },
    ),
    Operation(
        "health",
        "get",
        "/api/health",
        "State of the service and its loaded agents",
        HealthResponse,
        errors={503: "The server's --agent cannot be loaded, and there is no --fallback."},
    ),
    Operation("openapi", "get", "/openapi.json", "This description", dict),
)
"""All operations of `--api`; `AgentService.routes` is made of them."""


TYPES = (ActRequest, ActResponse, HealthResponse, ErrorResponse)


def describe_api() -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = describe_operation(one)
    _, schemas = schema_components(TYPES, ref_template="#/components/schemas/{name}")
    schemas["ActRequest"]["oneOf"] = [{"required": [way]} for way in INPUT_KEYS]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sparring: actions of agents",
            "version": package_version(),
            "description": "If the server needs a token, send it: authorization: Bearer TOKEN.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def describe_operation(one: Operation) -> dict[str, Any]:
    errors = {401: "The token is missing or wrong.", 429: "Too many requests.", **one.errors}
    description: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "responses": {
            "200": {"description": "The response.", "content": json_content(one.answer)},
            **{
                str(status): {"description": why, "content": json_content(ErrorResponse)}
                for status, why in sorted(errors.items())
            },
        },
    }
    if one.request is not None:
        content = json_content(one.request)
        content["application/json"]["examples"] = {
            name: {"value": value} for name, value in one.examples.items()
        }
        description["requestBody"] = {"required": True, "content": content}
    return description


def json_content(kind: type) -> dict[str, Any]:
    known = {"$ref": f"#/components/schemas/{kind.__name__}"}
    schema = known if kind in TYPES else {"type": "object"}
    return {"application/json": {"schema": schema}}


def package_version() -> str:
    try:
        return version("sparring")
    except PackageNotFoundError:  # sources that are not installed
        return "0"
