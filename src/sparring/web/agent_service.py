"""An agent as a service: programs ask what it would do, and hear how well it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.web.act_request import (
    ActRequest,
    Decision,
    make_decision,
    one_line,
    parse_request,
    state_of,
)
from sparring.web.agent_cache import AgentCache, LoadedAgent, UnavailableError
from sparring.web.openapi import (
    OPERATIONS,
    ActionProbability,
    ActResponse,
    HealthResponse,
    describe_api,
)
from sparring.web.responses import read_json, run_in_thread
from sparring.web.runs_folder import RunsFolder

if TYPE_CHECKING:
    from sparring.web.inference import InferenceQueue


class AgentService:
    """What stands behind `--api`."""

    def __init__(
        self,
        folder: RunsFolder,
        *,
        agent: str = "",
        fallback: str = "",
        batch: int = 64,
        wait_ms: float = 1.0,
        states: bool = False,
    ) -> None:
        """Load nothing yet.

        agent: who answers where a request names nobody.
        fallback: a bot that answers for an agent that cannot be loaded; "": nobody does.
        batch, wait_ms: see `InferenceQueue`.
        states: take states as bytes. They are the memory of a game, which the rules check only in
            part: made up on purpose, they can crash us. So that is for programs that are trusted.
        """
        self.agents = AgentCache(folder, agent)
        self.fallback, self.states = fallback, states
        self._queue = (batch, wait_ms)
        self._thinker: InferenceQueue | None = None

    @property
    def thinker(self) -> InferenceQueue:
        """The queue; torch is loaded with it, at the first question."""
        if self._thinker is None:
            from sparring.web.inference import InferenceQueue

            self._thinker = InferenceQueue(*self._queue)
        return self._thinker

    def routes(self) -> list[Route]:
        """Return what there is to ask; `openapi.OPERATIONS` describes the same."""
        handlers: dict[str, Callable[[Request], Any]] = {
            "act": self.act,
            "health": self.health,
            "openapi": self.openapi,
        }
        return [
            Route(one.path, handlers[one.name], methods=[one.method.upper()]) for one in OPERATIONS
        ]

    async def act(self, request: Request) -> Response:
        """Answer one question."""
        body = await read_json(request)
        try:
            question = parse_request(body)
            if question.way == "state" and not self.states:
                raise HTTPException(
                    403, "states need --states, since they are a game's memory; send a replay"
                )
            return encode_response(await self.answer(question))
        except UnavailableError as wrong:
            raise HTTPException(503, one_line(wrong)) from None
        except SparringError as wrong:
            raise HTTPException(422, one_line(wrong)) from None

    async def answer(self, question: ActRequest) -> ActResponse:
        """Return what an agent says, or what the bot says that stands in for it."""
        name = self.agents.name(question.player)
        try:
            agent = await self.agents.get(name)
        except UnavailableError as wrong:
            if not self.fallback:
                raise
            return await self._stand_in(question, name, one_line(wrong))
        policy = agent.policy
        if question.sampled and policy.is_value_based:
            raise ConfigError(f"{name} has learned values of actions; leave sampled out")
        row_bytes = policy.net.inputs.row_bytes
        decision = await read_position(question, make_decision, question, policy.rules, row_bytes)
        if decision.state is not None:
            policy.check_fits(decision.state.rules)
        return await self._think(name, agent, decision, question)

    async def _think(
        self, name: str, agent: LoadedAgent, decision: Decision, question: ActRequest
    ) -> ActResponse:
        from sparring.web.inference import BatchItem

        said = await self.thinker.answer(agent.policy, BatchItem(decision, question))
        rules = agent.policy.rules
        shares = [
            ActionProbability(action, rules.action_name(action), share)
            for action, share in said.pop("probabilities", ())
        ]
        return ActResponse(
            name=action_label(rules, said["action"]),
            player=name,
            probabilities=None if rules.box else shares,
            fallback=False,
            loaded_from=agent.policy.name,
            **said,
        )

    async def _stand_in(self, question: ActRequest, name: str, why: str) -> ActResponse:
        if not question.by_state:
            raise UnavailableError(
                f"{why}; {self.fallback} could stand in, but a bot needs a state or a replay"
            )
        state = await read_position(question, state_of, question, None)
        if state.rules.bot_called(self.fallback) is None:
            bots = ", ".join(state.rules.bots)
            raise UnavailableError(
                f"{why}; {state.rules.name} has no bot {self.fallback} that could stand in, but "
                f"{bots}"
            )
        action = state.ask(self.fallback, question.row)
        action = [float(one) for one in action] if state.rules.box else int(action)
        return ActResponse(
            action=action,
            name=action_label(state.rules, action),
            player=name,
            value=None,
            probabilities=None,
            fallback=self.fallback,
            memory=question.memory,
            why=why,
        )

    async def health(self, request: Request) -> Response:
        """Say whether questions are answered, and by whom."""
        trouble = ""
        if self.agents.default:
            try:
                trouble = (await self.agents.get(self.agents.default)).trouble
            except SparringError as wrong:
                trouble = one_line(wrong)
        broken = bool(trouble) and self.agents.default not in self.agents.kept
        thinker = self._thinker
        health = HealthResponse(
            status="unavailable" if broken else "degraded" if trouble else "ok",
            loaded=[agent.plain(name) for name, agent in self.agents.kept.items()],
            agent=self.agents.default or None,
            trouble=trouble,
            fallback=self.fallback or None,
            rows=thinker.rows if thinker else 0,
            passes=thinker.passes if thinker else 0,
            waiting=thinker.waiting if thinker else 0,
        )
        return encode_response(health, 503 if broken and not self.fallback else 200)

    async def openapi(self, request: Request) -> Response:
        """Describe all this for programs."""
        return JSONResponse(describe_api())


def encode_response(value: Struct, status: int = 200) -> Response:
    """Return an answer as `openapi` describes it."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def read_position(question: ActRequest, work: Callable[..., Any], *given: Any) -> Any:
    """Read a position in a thread, since a replay may be long; a row is read at once."""
    if not question.by_state:
        return work(*given)
    try:
        return await run_in_thread(work, *given)
    except HTTPException as wrong:
        raise HTTPException(422, " ".join(wrong.detail.split())) from None


def action_label(rules: Rules, action: Any) -> str:
    """Return what an action means; a continuous one is its numbers."""
    if rules.box:
        return " ".join(f"{number:.3f}" for number in action)
    return rules.action_name(int(action))
