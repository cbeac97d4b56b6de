"""Programs that ask an agent to search: what it finds, what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from sparring import new_state
from sparring.cli import main
from sparring.nets.policy import BY_VALUE, VALUES
from sparring.search.budget import Budget
from sparring.store.policies import load_policy, save_policy
from web.test_api import ask, policy, runs  # noqa: F401 (fixtures)

REPLAY = {"replay": {"actions": [4, 0]}}
OBS = {"obs": [0] * 32, "mask": [1] * 9}


@pytest.mark.parametrize(
    ("budget", "sampled"), [(32, False), ("32", True), ("50/puct", False), (5, True)]
)
def test_the_answer_is_that_of_the_search(ask, runs, budget, sampled):  # noqa: F811
    status, answer = ask()({**REPLAY, "search": budget, "sampled": sampled, "seed": 3, "top": 9})
    assert status == 200
    state = new_state("tic_tac_toe")
    for action in (4, 0):
        state.apply(action)
    mine = load_policy(runs / "ttt")
    search = mine.search(budget=Budget.parse(str(budget)), seed=3, noise=sampled)
    found = search.from_state(state)
    assert answer["action"] == found.action[0]
    assert answer["value"] == pytest.approx(float(found.value[0]))
    told = answer["search"]
    assert told["budget"] == str(budget)
    assert told["simulations"] == found.visits.sum()
    assert told["network_value"] == pytest.approx(float(mine.value(*state.decision())[0]), abs=1e-5)
    assert told["line"] == [state.action_name(action) for action in search.line()]
    listed = answer["probabilities"]
    assert {one["action"] for one in listed} == set(np.flatnonzero(found.policy[0]))
    for one in listed:
        assert one["probability"] == pytest.approx(float(found.policy[0, one["action"]]))
        assert one["visits"] == found.visits[0, one["action"]]
        tried = one["visits"] > 0
        assert one["value"] == (pytest.approx(float(found.q[0, one["action"]])) if tried else None)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({**REPLAY, "search": 1601}, "1601 simulations; this server allows 1600"),
    ({**REPLAY, "search": "11s"}, "this server allows 10s"),
    ({**REPLAY, "search": -1}, "is no budget"),
    ({**REPLAY, "search": "much"}, "is no budget"),
    ({**REPLAY, "search": "50/puct", "sampled": True}, "leave sampled out"),
    ({**REPLAY, "search": True}, "search: expected"),
    ({**OBS, "search": 16}, "obs is none; send a state or a replay"),
    ({"numbers": [0] * 19, "mask": [1] * 9, "search": 16}, "numbers is none"),
]


@pytest.mark.parametrize(("body", "why"), REFUSED)
def test_what_cannot_be_searched_is_refused_in_a_line(ask, body, why):  # noqa: F811
    status, answer = ask()(body)
    assert (status, "\n" in answer["error"]) == (422, False)
    assert why in answer["error"]


@pytest.mark.parametrize(
    ("name", "made", "why"),
    [
        ("dqn", {BY_VALUE: True}, "has learned action values"),
        ("sac", {VALUES: False}, "has no values"),
    ],
)
def test_an_agent_without_values_cannot_search(ask, runs, name, made, why):  # noqa: F811
    save_policy(policy(**made), runs / name)
    status, answer = ask()({**REPLAY, "player": name, "search": 16})
    assert status == 422
    assert why in answer["error"]


@pytest.mark.parametrize("search", [16, "20ms"])
def test_hidden_cards_are_searched_in_worlds(ask, runs, search):  # noqa: F811
    save_policy(policy("kuhn_poker"), runs / "cards")
    asked = {"replay": {"game": "kuhn_poker", "actions": []}, "player": "cards", "sampled": True}
    status, answer = ask()({**asked, "search": search})
    assert status == 200
    assert answer["search"]["simulations"] == sum(one["visits"] for one in answer["probabilities"])
    status, answer = ask()({**asked, "search": "16/puct"})
    assert status == 422
    assert "hides cards, so no tree is grown by puct" in answer["error"]


def test_a_server_may_search_for_every_request(ask):  # noqa: F811
    post = ask(search="24")
    assert post(REPLAY)[1]["search"]["simulations"] == 24
    assert post({**REPLAY, "search": 8})[1]["search"]["simulations"] == 8
    assert "search" not in post({**REPLAY, "search": 0})[1]
    status, answer = post(OBS)
    assert status == 422
    assert "search: 0 for the network alone" in answer["error"]
    assert post({**OBS, "search": 0})[0] == 200


def test_searches_that_come_at_once_are_answered_as_those_alone(ask):  # noqa: F811
    post = ask()
    wishes = [{**REPLAY, "search": 20 + at % 3} for at in range(12)]
    expected = [post(wish) for wish in wishes]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(post, wishes)) == expected


def test_a_server_may_forbid_searches(ask):  # noqa: F811
    post = ask(max_search=0)
    for budget in (1, "1ms"):
        status, answer = post({**REPLAY, "search": budget})
        assert status == 422
        assert "this server allows" in answer["error"]


def test_a_budget_that_is_none_is_refused_when_the_server_starts(tmp_path, capsys):
    assert main(["serve", str(tmp_path), "--api", "--search", "0"]) == 2
    assert "search" in capsys.readouterr().err
    assert main(["serve", str(tmp_path), "--search", "64"]) == 2
    assert "--search needs --api" in capsys.readouterr().err
