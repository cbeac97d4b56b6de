"""The service behind `sparring serve --api`: programs request actions of agents."""

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
from sparring.web.searches import Searches

if TYPE_CHECKING:
    from sparring.web.inference import InferenceQueue


class AgentService:
    """Answers requests for actions with loaded agents; bots are a fallback."""

    def __init__(
        self,
        folder: RunsFolder,
        *,
        agent: str = "",
        fallback: str = "",
        batch: int = 64,
        wait_ms: float = 1.0,
        states: bool = False,
        search: str = "",
        max_search: int = 1600,
    ) -> None:
        """Load nothing yet.

        agent: the default player of requests.
        fallback: a bot that answers for an agent that cannot be loaded; "": none.
        batch, wait_ms: see `InferenceQueue`.
        states: accept serialized states. The rules check them only in part, so malicious ones can
            crash the server: only for trusted programs.
        search, max_search: see `Searches`.
        """
        self.agents = AgentCache(folder, agent)
        self.fallback, self.states = fallback, states
        self.searches = Searches(search, max_search)
        self._queue = (batch, wait_ms)
        self._inference: InferenceQueue | None = None

    @property
    def inference(self) -> InferenceQueue:
        """The inference queue; the first request imports torch."""
        if self._inference is None:
            from sparring.web.inference import InferenceQueue

            self._inference = InferenceQueue(*self._queue)
        return self._inference

    def routes(self) -> list[Route]:
        """Return the routes of `openapi.OPERATIONS`."""
        handlers: dict[str, Callable[[Request], Any]] = {
            "act": self.act,
            "health": self.health,
            "openapi": self.openapi,
        }
        return [Route(op.path, handlers[op.name], methods=[op.method.upper()]) for op in OPERATIONS]

    async def act(self, request: Request) -> Response:
        body = await read_json(request)
        try:
            act_request = parse_request(body)
            if act_request.input_key == "state" and not self.states:
                raise HTTPException(403, "state needs `sparring serve --states`; send a replay")
            return encode_response(await self.answer(act_request))
        except UnavailableError as wrong:
            raise HTTPException(503, one_line(wrong)) from None
        except SparringError as wrong:
            raise HTTPException(422, one_line(wrong)) from None

    async def answer(self, request: ActRequest) -> ActResponse:
        """Return the response of an agent, or that of the fallback bot."""
        name = self.agents.name(request.player)
        try:
            agent = await self.agents.get(name)
        except UnavailableError as wrong:
            if not self.fallback:
                raise
            return await self._fall_back(request, name, one_line(wrong))
        policy, budget = agent.policy, self.searches.budget_of(request)
        if request.sampled and policy.is_greedy:
            learned = (
                "values of actions (DQN)" if policy.is_value_based else "no probabilities (TD3)"
            )
            raise ConfigError(f"{name} learned {learned}; leave sampled out")
        row_bytes = policy.net.inputs.row_bytes
        decision = await read_position(request, make_decision, request, policy.rules, row_bytes)
        if decision.state is not None:
            policy.check_fits(decision.state.rules)
        if budget is not None:
            found = await self.searches.answer(policy, decision, request, budget)
            return self._response(name, agent, found)
        return await self._infer(name, agent, decision, request)

    async def _infer(
        self, name: str, agent: LoadedAgent, decision: Decision, request: ActRequest
    ) -> ActResponse:
        from sparring.web.inference import BatchItem

        outputs = await self.inference.answer(agent.policy, BatchItem(decision, request))
        outputs["probabilities"] = [
            ActionProbability(action, agent.policy.rules.action_name(action), probability)
            for action, probability in outputs.pop("probabilities", ())
        ]
        return self._response(name, agent, outputs)

    def _response(self, name: str, agent: LoadedAgent, outputs: dict[str, Any]) -> ActResponse:
        rules = agent.policy.rules
        probabilities = outputs.pop("probabilities")
        return ActResponse(
            name=action_label(rules, outputs["action"]),
            player=name,
            probabilities=None if rules.box else probabilities,
            fallback=False,
            loaded_from=agent.policy.name,
            **outputs,
        )

    async def _fall_back(self, request: ActRequest, name: str, why: str) -> ActResponse:
        if not request.has_state:
            raise UnavailableError(
                f"{why}; the fallback {self.fallback} is a bot, which needs a state or a replay"
            )
        state = await read_position(request, state_of, request, None)
        if state.rules.bot_called(self.fallback) is None:
            bots = ", ".join(state.rules.bots)
            raise UnavailableError(
                f"{why}; {state.rules.name} has no bot {self.fallback} as a fallback, but {bots}"
            )
        action = state.ask(self.fallback, request.row)
        action = [float(one) for one in action] if state.rules.box else int(action)
        return ActResponse(
            action=action,
            name=action_label(state.rules, action),
            player=name,
            value=None,
            probabilities=None,
            fallback=self.fallback,
            memory=request.memory,
            why=why,
        )

    async def health(self, request: Request) -> Response:
        """Return the state of the service and its loaded agents."""
        trouble = ""
        if self.agents.default:
            try:
                trouble = (await self.agents.get(self.agents.default)).trouble
            except SparringError as wrong:
                trouble = one_line(wrong)
        broken = bool(trouble) and self.agents.default not in self.agents.loaded
        inference = self._inference
        health = HealthResponse(
            status="unavailable" if broken else "degraded" if trouble else "ok",
            loaded=[agent.plain(name) for name, agent in self.agents.loaded.items()],
            agent=self.agents.default or None,
            trouble=trouble,
            fallback=self.fallback or None,
            rows=inference.rows if inference else 0,
            passes=inference.passes if inference else 0,
            waiting=inference.waiting if inference else 0,
        )
        return encode_response(health, 503 if broken and not self.fallback else 200)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(describe_api())


def encode_response(value: Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def read_position(request: ActRequest, work: Callable[..., Any], *args: Any) -> Any:
    """Read a position: in a thread if there is a replay, which may be long."""
    if not request.has_state:
        return work(*args)
    try:
        return await run_in_thread(work, *args)
    except HTTPException as wrong:
        raise HTTPException(422, " ".join(wrong.detail.split())) from None


def action_label(rules: Rules, action: Any) -> str:
    """Return an action as text."""
    if rules.box:
        return " ".join(f"{number:.3f}" for number in action)
    return rules.action_name(int(action))
