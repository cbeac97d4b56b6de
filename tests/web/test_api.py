"""Programs that ask an agent: every way to ask, what is refused, what happens without a model."""

from __future__ import annotations

import asyncio
import base64
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason='pip install "sparring[web]"')
pytest.importorskip("httpx", reason="starlette's test client needs httpx: pip install httpx")

from starlette.testclient import TestClient

from remembering import remembering
from sparring import new_state
from sparring.cli import main
from sparring.config import NetConfig
from sparring.games.recorded import Replay
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.policy import BY_VALUE, Policy
from sparring.nets.stateful_player import StatefulPlayer
from sparring.store.policies import load_policy, save_policy
from sparring.web.act_request import ActRequest, Decision
from sparring.web.agent_cache import MAX_LOADED
from sparring.web.agent_service import AgentService
from sparring.web.inference import BatchItem, InferenceQueue, infer_batch
from sparring.web.openapi import OPERATIONS
from sparring.web.server import make_app


def policy(game: str = "tic_tac_toe", seed: int = 0, **meta: Any) -> Policy:
    import torch

    torch.manual_seed(seed)
    rules = Rules(game)
    net = make_net(rules, NetConfig(hidden=(16,)))
    for weights in net.parameters():  # a fresh policy head says the same of every action
        torch.nn.init.normal_(weights, std=0.5)
    return Policy(rules, net, meta=meta)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    save_policy(policy(), tmp_path / "runs" / "ttt")
    return tmp_path / "runs"


@pytest.fixture
def ask(runs: Path):
    """Return what asks a server over the runs: (body, options) -> (status, answer)."""
    opened = []

    def start(**options: Any) -> Any:
        made = {"agent": "ttt", "states": True, **options}
        client = TestClient(
            make_app(runs, make_service=partial(AgentService, **made)),
            base_url="http://127.0.0.1:8000",
        )
        client.__enter__()
        opened.append(client)

        def post(body: Any) -> tuple[int, Any]:
            answer = client.post("/api/act", json=body)
            return answer.status_code, answer.json()

        post.client = client
        return post

    yield start
    for client in opened:
        client.__exit__(None, None, None)


def in_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def test_all_ways_to_ask_have_one_answer(ask, runs):
    state = new_state("tic_tac_toe")
    for action in (4, 0):
        state.apply(action)
    obs, mask = state.decision()
    ways = [
        {"obs": obs[0].tolist(), "mask": mask[0].tolist()},
        {"obs": in_base64(obs.tobytes()), "mask": in_base64(mask.tobytes())},
        {"numbers": state.observe(state.seat).tolist(), "mask": mask[0].tolist()},
        {"state": in_base64(state.serialize())},
        {"replay": {"game": "tic_tac_toe", "flags": {}, "seed": 0, "actions": [4, 0]}},
        {"replay": {"actions": [4, 0]}, "player": "ttt"},
        {"replay": Replay.of(state, [4, 0], ["you", "careful"]).plain()},
    ]
    post = ask()
    answers = [post({**way, "top": 3}) for way in ways]
    assert [status for status, _ in answers] == [200] * len(ways)
    assert all(answer == answers[0][1] for _, answer in answers)
    answer, mine = answers[0][1], load_policy(runs / "ttt")
    assert answer["action"] == mine.action(state)
    assert answer["name"] == state.action_name(answer["action"])
    assert (answer["player"], answer["fallback"]) == ("ttt", False)
    assert answer["value"] == pytest.approx(float(mine.value(obs)[0]), abs=1e-5)
    shares = mine.probabilities(obs, mask)[0]
    best = sorted(range(9), key=lambda action: -shares[action])[:3]
    assert [one["action"] for one in answer["probabilities"]] == best
    told = [one["probability"] for one in answer["probabilities"]]
    assert told == pytest.approx(shares[best].tolist(), abs=1e-5)


def test_drawn_actions_are_those_of_the_policy(ask, runs):
    mine, state, post = load_policy(runs / "ttt"), new_state("tic_tac_toe"), ask()
    for step in range(8):
        wish = {"sampled": True, "seed": 5, "step": step}
        _, answer = post({"replay": {"actions": []}, **wish})
        assert answer["action"] == mine.action(state, greedy=False, seed=5, step=step)


REFUSED = [
    ([1], 422, "one object"),
    ({}, 422, "exactly one of"),
    ({"obs": [0], "state": "AA=="}, 422, "obs and state"),
    ({"obs": [0] * 31, "mask": [1] * 9}, 422, "31 bytes; for tic_tac_toe it has 32"),
    ({"obs": [256] * 32, "mask": [1] * 9}, 422, "obs[0]: expected `int` <= 255"),
    ({"obs": [0.5] * 32, "mask": [1] * 9}, 422, "obs[0]: expected `int`, got `float`"),
    ({"obs": "?", "mask": [1] * 9}, 422, "base64"),
    ({"obs": {}, "mask": [1] * 9}, 422, "obs: expected `str | array | null`, got `object`"),
    ({"obs": [0] * 32}, 422, "legal one of the 9 actions"),
    ({"obs": [0] * 32, "mask": [0] * 9}, 422, "no action is legal"),
    ({"obs": [0] * 32, "mask": [2] * 9}, 422, "1 for legal and 0 for illegal"),
    ({"numbers": [0] * 18, "mask": [1] * 9}, 422, "18 features; tic_tac_toe has 19"),
    ({"numbers": [0.5] * 19, "mask": [1] * 9}, 422, "multiple of"),
    ({"numbers": [999] * 19, "mask": [1] * 9}, 422, "out of its range"),
    ({"numbers": ["1"] * 19, "mask": [1] * 9}, 422, "numbers[0]: expected `float`"),
    ({"state": "AAAA"}, 422, "not a saved state"),
    ({"state": 5}, 422, "state: expected `str | null`"),
    ({"replay": []}, 422, "replay: expected `object | null`"),
    ({"replay": {"actions": [4, 4]}}, 422, "step 2"),
    ({"replay": {"actions": [0, 3, 1, 4, 2]}}, 422, "over"),
    ({"replay": {"game": "chess", "actions": []}}, 422, "no game called"),
    ({"replay": {"game": "kuhn_poker", "actions": []}}, 422, "plays tic_tac_toe, not"),
    ({"replay": {"actions": [], "moves": []}}, 422, "'moves' is unknown"),
    ({"replay": {"actions": []}, "mask": [1] * 9}, 422, "leave mask out"),
    ({"replay": {"actions": []}, "row": 1}, 422, "no seat is to act there"),
    ({"replay": {"actions": []}, "sampled": 1}, 422, "sampled: expected `bool`"),
    ({"replay": {"actions": []}, "top": -1}, 422, "top: expected `int` >= 0"),
    ({"replay": {"actions": []}, "topp": 1}, 422, "'topp' is unknown; did you mean 'top'?"),
    ({"replay": {"actions": []}, "player": 3}, 422, "player: expected `str`, got `int`"),
    ({"replay": {"actions": []}, "player": "../ttt"}, 422, "give RUN"),
    ({"replay": {"actions": []}, "player": "/etc"}, 422, "give RUN"),
    ({"replay": {"actions": []}, "player": "nobody"}, 503, "no player 'nobody'"),
    ({"replay": {"actions": []}, "player": "ttt/past/3"}, 503, "snapshots"),
]


def test_bad_questions_are_refused_in_one_line(ask):
    post = ask()
    for body, status, words in REFUSED:
        found, answer = post(body)
        assert (found, list(answer)) == (status, ["error"]), body
        assert words in answer["error"]
        assert "\n" not in answer["error"]


def test_what_is_not_json_is_refused(ask):
    client = ask().client
    said = {"content-type": "application/json"}
    for raw in (b"{", b'{"top": NaN}', b"\xff"):
        assert client.post("/api/act", content=raw, headers=said).status_code == 400
    assert client.post("/api/act", content=b"{}").status_code == 415


def test_nobody_is_asked_without_a_name(ask):
    status, answer = ask(agent="")({"replay": {"actions": []}})
    assert status == 422
    assert "--agent" in answer["error"]


def test_damaged_player_is_told_or_a_bot_stands_in(ask, runs):
    weights = next((runs / "ttt").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-7])
    by_actions = {"replay": {"game": "tic_tac_toe", "actions": [4]}}
    by_row = {"obs": [0] * 32, "mask": [1] * 9}
    status, answer = ask()(by_actions)
    assert (status, list(answer)) == (503, ["error"])
    assert "'ttt' cannot answer" in answer["error"]
    assert str(runs) not in answer["error"]
    post = ask(fallback="careful")
    status, answer = post(by_actions)
    assert status == 200
    assert answer["fallback"] == "careful"
    assert "cannot answer" in answer["why"]
    assert answer["action"] in new_state("tic_tac_toe").legal()
    status, answer = post(by_row)
    assert status == 503
    assert "needs a state or a replay" in answer["error"]
    status, answer = ask(fallback="stockfish")(by_actions)
    assert status == 503
    assert "no bot stockfish" in answer["error"]


def test_states_are_taken_only_if_that_was_said(ask):
    raw = in_base64(new_state("tic_tac_toe").serialize())
    status, answer = ask(states=False)({"state": raw})
    assert status == 403
    assert "send a replay" in answer["error"]


def test_newer_checkpoint_answers_after_a_moment_and_the_old_one_until_then(runs):
    service = Service_over(runs, agent="ttt")
    now = 0.0
    service.agents.clock = lambda: now

    async def values() -> list[float]:
        nonlocal now
        found = []
        question = read({"replay": {"actions": []}})
        found.append((await service.answer(question)).value)
        save_policy(policy(seed=1), runs / "ttt")
        found.append((await service.answer(question)).value)  # nobody has looked yet
        now = 2.0
        found.append((await service.answer(question)).value)  # the old one, while it loads
        await asyncio.gather(*service.agents._loading.values())
        found.append((await service.answer(question)).value)
        shutil.rmtree(runs / "ttt")
        now = 4.0
        await service.answer(question)
        await asyncio.gather(*service.agents._loading.values())
        found.append((await service.answer(question)).value)
        return found

    first, second, third, fourth, fifth = asyncio.run(values())
    assert first == second == third != fourth
    assert fifth == fourth  # what is loaded answers on
    assert "no player" in service.agents.loaded["ttt"].trouble


def Service_over(runs: Path, **options: Any) -> AgentService:  # noqa: N802
    from sparring.web.runs_folder import RunsFolder

    return AgentService(RunsFolder(runs), **options)


def read(body: Any) -> Any:
    from sparring.web.act_request import parse_request

    return parse_request(body)


def test_few_agents_stay_loaded(runs):
    for number in range(MAX_LOADED + 2):
        shutil.copytree(runs / "ttt", runs / f"copy-{number}")
    service = Service_over(runs)

    async def ask_all() -> None:
        for number in range(MAX_LOADED + 2):
            await service.agents.get(f"copy-{number}")

    asyncio.run(ask_all())
    assert list(service.agents.loaded) == [f"copy-{n}" for n in range(2, MAX_LOADED + 2)]


def test_questions_that_come_together_share_a_pass():
    mine = policy()
    states = [new_state("tic_tac_toe") for _ in range(9)]
    for action, state in enumerate(states):
        state.apply(action)
    asked = []
    for at, state in enumerate(states):
        obs, mask = state.decision()
        asked.append(BatchItem(Decision(obs[0], mask[0]), ActRequest(sampled=at % 2 == 1, seed=at)))
    thinker = InferenceQueue(4, wait_ms=1.0)

    async def together() -> list[Any]:
        return await asyncio.gather(*(thinker.answer(mine, one) for one in asked))

    answers = asyncio.run(together())
    assert thinker.rows == 9
    assert thinker.passes <= 4
    for one, answer in zip(asked, answers, strict=True):
        (alone,) = infer_batch(mine, [one])
        assert answer["action"] == alone["action"]
        assert answer["value"] == pytest.approx(alone["value"], abs=1e-5)


def test_what_goes_wrong_in_a_pass_reaches_everybody():
    thinker = InferenceQueue(8, wait_ms=0.0)
    obs, mask = new_state("tic_tac_toe").decision()
    bad = BatchItem(Decision(obs[0, :3], mask[0]), ActRequest())

    async def both() -> list[Any]:
        answers = (thinker.answer(policy(), bad) for _ in range(2))
        return await asyncio.gather(*answers, return_exceptions=True)

    assert all(isinstance(wrong, ValueError) for wrong in asyncio.run(both()))


@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete", "kuhn_poker"])
def test_continuous_actions_rows_and_other_games(ask, runs, game):
    save_policy(policy(game), runs / game)
    rules = Rules(game)
    state = new_state(game)
    for row in range(rules.rows):
        status, answer = ask(agent=game)({"replay": {"game": game, "actions": []}, "row": row})
        assert status == 200
        expected = load_policy(runs / game).action(state, row=row)
        assert answer["action"] == pytest.approx(np.asarray(expected).tolist(), abs=1e-6)
        assert (answer["probabilities"] is None) == bool(rules.box)
        assert len(answer.get("mean", [])) == rules.box


def test_policy_by_value_is_not_drawn_from(ask, runs):
    save_policy(policy(**{BY_VALUE: True}), runs / "dqn")
    post = ask(agent="dqn")
    status, answer = post({"replay": {"actions": []}})
    assert status == 200
    assert [one["probability"] for one in answer["probabilities"]] == [1.0]
    status, answer = post({"replay": {"actions": []}, "sampled": True})
    assert status == 422
    assert "leave sampled out" in answer["error"]


def test_health(ask, runs):
    post = ask()
    client = post.client
    post({"replay": {"actions": []}})
    found = client.get("/api/health")
    assert found.status_code == 200
    assert found.json()["status"] == "ok"
    assert (found.json()["rows"], found.json()["loaded"][0]["player"]) == (1, "ttt")
    shutil.rmtree(runs / "ttt")
    found = ask().client.get("/api/health")
    assert (found.status_code, found.json()["status"]) == (503, "unavailable")
    assert ask(fallback="careful").client.get("/api/health").status_code == 200


def test_description_is_that_of_the_routes_and_its_examples_are_answered(ask, runs):
    post = ask()
    described = post.client.get("/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    routes = {
        (route.path, method.lower())
        for route in Service_over(runs).routes()
        for method in route.methods - {"HEAD"}
    }
    assert routes == {
        (path, method) for path, methods in described["paths"].items() for method in methods
    }
    assert routes == {(one.path, one.method) for one in OPERATIONS}
    for path, methods in described["paths"].items():
        for method, told in methods.items():
            if method == "get":
                assert post.client.get(path).status_code == 200
                continue
            content = told["requestBody"]["content"]["application/json"]
            assert content["examples"]
            for name, example in content["examples"].items():
                status, answer = post(example["value"])
                assert status == 200, name
                schemas = described["components"]["schemas"]
                schema = schemas["ActResponse"]
                assert set(schema["required"]) <= set(answer) <= set(schema["properties"])
                assert set(example["value"]) <= set(schemas["ActRequest"]["properties"])


def test_there_is_no_api_unless_it_is_asked_for(runs):
    with TestClient(make_app(runs), base_url="http://127.0.0.1:8000") as client:
        assert client.get("/openapi.json").status_code == 404
        assert client.post("/api/act", json={}).status_code in (404, 405)


def test_options_of_an_agent_need_the_api():
    from sparring.commands.serve import run
    from sparring.config.tools import ServeConfig
    from sparring.errors import ConfigError

    for given in ({"agent": "ttt"}, {"fallback": "strong"}, {"states": True}):
        with pytest.raises(ConfigError, match="needs --api"):
            run(ServeConfig(**given))


def test_the_folder_is_named_as_everywhere_else(tmp_path, capsys):
    for words in (["--runs", f"{tmp_path}/none"], [f"{tmp_path}/none"]):
        assert main(["serve", *words]) == 2
        assert f"{tmp_path}/none: no such folder" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--runs", f"{tmp_path}/none"]) == 2
    assert "are two folders; give one" in capsys.readouterr().err


def test_what_an_agent_remembers_comes_with_its_answer_and_goes_with_the_next_question(ask, runs):
    save_policy(remembering("tic_tac_toe"), runs / "mind")
    mine = StatefulPlayer(load_policy(runs / "mind"))
    post, state, memory, played = ask(agent="mind"), new_state("tic_tac_toe"), "", []
    for action in (8, 4, 0, 2, None):
        if state.seat == 0:
            obs, mask = state.decision()
            held = in_base64(mine.memory_of(0).tobytes())
            row = np.concatenate([obs[0], mine.memory_of(0)[0]])
            ways = [
                {"replay": {"actions": played}, "memory": memory},
                {"obs": obs[0].tolist(), "mask": mask[0].tolist(), "memory": held},
                {"numbers": state.observe(0).tolist(), "mask": mask[0].tolist(), "memory": held},
                {"obs": in_base64(row.tobytes()), "mask": mask[0].tolist()},
            ]
            answers = [post(way) for way in ways]
            assert [status for status, _ in answers] == [200] * 4
            assert all(answer == answers[0][1] for _, answer in answers)
            assert answers[0][1]["action"] == mine.action(state)
            memory = answers[0][1]["memory"]
            assert memory == in_base64(mine.memory_of(0).tobytes())
        if action is not None:
            state.apply(action)
            played.append(action)
    replay = {"replay": {"actions": played}}
    for given, said in (
        ({}, 'send memory, "" at the start of a game'),
        ({"memory": "AAAA"}, "memory: 3 bytes"),
        ({"memory": 7}, "memory: expected `str | array | null`"),
        ({"memory": in_base64(b"\xff" * 32)}, "not finite"),
        ({"memory": "AAAA", "player": "ttt"}, "has no memory"),
    ):
        status, answer = post({**replay, **given})
        assert (status, said in answer["error"]) == (422, True), answer
    assert post({**replay, "memory": None, "player": "ttt"})[1]["memory"] is None
