"""Searches behind the API: what a request may ask for, and their results."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sparring.errors import ConfigError
from sparring.search.budget import PUCT, Budget
from sparring.search.worlds import uses_worlds
from sparring.web.act_request import ActRequest, Decision
from sparring.web.agent_cache import UnavailableError
from sparring.web.openapi import ActionProbability, SearchSummary
from sparring.web.workers import WORKERS

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

MAX_SECONDS = 10.0
"""Longest search of a request that is limited by time."""
MAX_LINE = 16
"""Actions of the main line in a response."""
MAX_WAITING = 64
"""Searches in the queue; more are rejected."""


ONE_AT_A_TIME = threading.Lock()
"""Held by the thread that searches, since searches share the passes of a network. A thread whose
client has gone holds it to the end of its search."""


class Searches:
    """Searches of requests, one after the other."""

    def __init__(self, default: str = "", max_simulations: int = 1600) -> None:
        """Make an empty queue.

        default: budget of requests that name none; "": no search.
        max_simulations: most that a request may ask for.
        """
        self.default = Budget.parse(default) if default else None
        self.max_simulations = max_simulations
        self.waiting = 0
        self._turn = asyncio.Lock()

    def budget_of(self, request: ActRequest) -> Budget | None:
        """Return the budget of a request; None: the network alone answers."""
        if request.search in (0, "0"):
            return None
        budget = self.default if request.search is None else self.read(str(request.search))
        if budget is not None and not request.has_state:
            raise ConfigError(
                f"search {budget} needs a position, and {request.input_key} is none; send a state "
                "or a replay, or search: 0 for the network alone"
            )
        return budget

    def read(self, text: str) -> Budget:
        """Return the budget that a request names, within the limits of this server."""
        budget = Budget.parse(text)
        if budget.simulations > self.max_simulations:
            raise ConfigError(
                f"search: {budget.simulations} simulations; this server allows "
                f"{self.max_simulations} (sparring serve --max-search)"
            )
        if budget.seconds > MAX_SECONDS or (budget.seconds and not self.max_simulations):
            longest = f"{MAX_SECONDS:g}s" if self.max_simulations else "none"
            raise ConfigError(f"search: {text}; this server allows {longest}")
        return budget

    async def answer(
        self, policy: Policy, decision: Decision, request: ActRequest, budget: Budget
    ) -> dict[str, Any]:
        """Search in a thread and return the fields of the response."""
        policy.check_searchable()
        if budget.rule == PUCT and request.sampled and not uses_worlds(policy.rules):
            raise ConfigError(
                f"sampled: search {budget} by puct draws nothing; leave sampled out, or search by "
                "gumbel, such as 64"
            )
        if self.waiting >= MAX_WAITING:
            raise UnavailableError(f"{self.waiting} searches are waiting; ask again later")
        self.waiting += 1
        try:
            async with self._turn:
                work = partial(search_decision, policy, decision, request, budget)
                return await WORKERS.do(work)
        finally:
            self.waiting -= 1


def search_decision(
    policy: Policy, decision: Decision, request: ActRequest, budget: Budget
) -> dict[str, Any]:
    """Return action, value, probabilities of the improved policy, and a summary."""
    state = decision.state
    assert state is not None
    rules = state.rules
    with ONE_AT_A_TIME:
        search = policy.search(rules, budget=budget, seed=request.seed, noise=request.sampled)
        found = search.from_state(state, request.row)
    own = policy.value(decision.obs[None], decision.mask[None])
    fields: dict[str, Any] = {
        "value": float(found.value[0]),
        "memory": None,
        "search": SearchSummary(
            budget=str(budget),
            simulations=int(found.simulations[0]),
            network_value=float(own[0]),
            line=[] if rules.box else [rules.action_name(a) for a in search.line()[:MAX_LINE]],
        ),
    }
    if rules.box:
        action = [float(number) for number in found.action[0]]
        return {**fields, "action": action, "probabilities": None}
    order = np.argsort(-found.policy[0], kind="stable")[: request.top]
    probabilities = [
        ActionProbability(
            int(action),
            rules.action_name(int(action)),
            float(found.policy[0, action]),
            visits=int(found.visits[0, action]),
            value=float(found.q[0, action]) if found.visits[0, action] else None,
        )
        for action in order
        if found.policy[0, action] > 0
    ]
    return {**fields, "action": int(found.action[0]), "probabilities": probabilities}
