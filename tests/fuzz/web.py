"""Questions to an agent behind HTTP, asked without a network."""

from __future__ import annotations

import base64
import random
from functools import cache, partial
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from sparring.config import NetConfig
from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.games.state import new_state
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.policies import save_policy
from sparring.web.agent_service import AgentService
from sparring.web.server import make_app


def question(by: random.Random) -> Any:
    """A decision in one of the ways that there are."""
    state = new_state("tic_tac_toe", seed=1)
    obs, mask = state.decision()
    how = {"sampled": True, "seed": 3, "step": 1, "top": 2}
    legal = mask[0].tolist()
    replay = {"game": "tic_tac_toe", "seed": 3, "flags": {}, "actions": [4, 0]}
    ways: tuple[dict[str, Any], ...] = (
        {"obs": obs[0].tolist(), "mask": legal},
        {"obs": base64.b64encode(obs[0].tobytes()).decode(), "mask": legal, "row": 0},
        {"numbers": state.rules.widen(obs)[0].tolist(), "mask": legal},
        {"replay": replay, "player": "ttt"},
    )
    return {**by.choice(ways), **how}


@cache
def client(runs: Path) -> TestClient:
    """A server with one agent."""
    rules = Rules("tic_tac_toe")
    save_policy(Policy(rules, make_net(rules, NetConfig(hidden=(8,)))), runs / "ttt")
    app = make_app(runs, make_service=partial(AgentService, agent="ttt"))
    made = TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=True)
    made.__enter__()
    return made


def ask(path: Path) -> None:
    """`POST /api/act`: an answer, or one line that says what is wrong with the question."""
    headers = {"content-type": "application/json"}
    asked = client(path.parent / "runs").post(
        "/api/act", content=path.read_bytes(), headers=headers
    )
    assert asked.status_code < 500 or asked.status_code == 503, asked.text
    if asked.status_code != 200:
        raise SparringError(str(asked.json().get("error") or asked.json()))
