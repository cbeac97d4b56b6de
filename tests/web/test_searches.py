"""Searches in the modules of the browser against the native ones, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.search.budget import RULES, Budget
from sparring.search.search import Search, tree_settings
from sparring.web.networks import pack_network
from web.test_networks import grown, rows_of
from web.wasm import Module, WasmNetwork, WasmSearch

NETS = {
    "tic_tac_toe": NetConfig(hidden=(24,)),
    "connect_four": NetConfig(hidden=(24, 16)),
    "shogi": NetConfig(kind="residual", channels=4, blocks=1),
    "cage2": NetConfig(hidden=(16,)),
    "laser_hockey": NetConfig(hidden=(16,)),
    "laser_hockey_discrete": NetConfig(hidden=(16,)),
}
CASES = [
    *((game, budget) for game in NETS for budget in ("2", "40", "40/puct")),
    ("tic_tac_toe", "300"),
    ("connect_four", "300/puct"),
    ("shogi", "130"),
]


def made(game: str) -> tuple[Module, WasmNetwork]:
    rules = Rules(game)
    module = Module(rules)
    net = grown(make_net(rules, NETS[game]), rows_of(rules)[0])
    return module, module.network(pack_network(Policy(rules, net)))


def answers_of(network: WasmNetwork) -> Any:
    """The module's own network as the evaluator of a native search."""

    def evaluate(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mask = bytes(network.module.rules.actions)
        answers = [network.answer(row.tobytes(), mask) for row in rows]
        heads = np.stack([head for head, _ in answers])
        return heads, np.array([value for _, value in answers], np.float32)

    return evaluate


def positions(module: Module, count: int, seed: int) -> Any:
    """The same positions from all over random games, natively and in the module."""
    rng = np.random.default_rng(seed)
    rules = module.rules
    while count:
        native, wasm = State(rules, seed, rules.weights(None)), module.state(seed)
        for _ in range(int(rng.integers(0, 30))):
            actions = [action_in(native, row, rng) for row in range(rules.rows)]
            native.apply(actions if rules.rows > 1 else actions[0])
            assert wasm.apply(actions)
            if native.over:
                break
        if not native.over:
            count -= 1
            yield native, wasm
        seed += 1


def action_in(state: State, row: int, rng: np.random.Generator) -> Any:
    if state.rules.box:
        return rng.uniform(-1, 1, state.rules.box).astype(np.float32).tolist()
    return int(rng.choice(state.native.legal(row)))


@pytest.mark.parametrize(("game", "text"), CASES)
@pytest.mark.parametrize("noise", [False, True])
def test_finds_what_the_native_search_finds(game, text, noise):
    module, network = made(game)
    budget, rules = Budget.parse(text), module.rules
    rng = np.random.default_rng(7)
    for at, (native, wasm) in enumerate(positions(module, 3, seed=50)):
        row = at % rules.rows
        seed = int(rng.integers(0, 2**63))
        search = Search(rules, answers_of(network), budget, seed=seed, noise=noise)
        found = search.from_state(native, row)
        wish = {"simulations": budget.simulations, "rule": RULES.index(budget.rule)}
        mine = WasmSearch(
            wasm, network, row, seed=seed, noise=noise, **wish, **tree_settings(rules)
        )
        while mine.run(7):
            pass
        told = mine.found()
        assert told["simulations"] == found.simulations[0] == budget.simulations
        assert told["nodes"] == search.native.nodes(0)
        assert told["visits"].tolist() == found.visits[0].tolist()
        assert told["q"].tobytes() == found.q[0].tobytes()
        assert told["policy"].tobytes() == found.policy[0].tobytes()
        assert told["value"] == found.value[0]
        assert told["line"].tolist() == search.line()
        assert told["action"].tolist() == np.atleast_1d(found.action[0]).tolist()
        mine.free()


def test_a_search_leaves_the_state_as_it_was_and_can_be_read_at_any_time():
    module, network = made("connect_four")
    state = module.state(1)
    before = state.save()
    wish = {"simulations": 60, "rule": 0, **tree_settings(module.rules)}
    search = WasmSearch(state, network, 0, **wish)
    assert search.found()["visits"].sum() == 0
    assert search.found()["action"] in range(7)
    left = [search.run(9) for _ in range(8)]
    assert left == [51, 42, 33, 24, 15, 6, 0, 0]
    assert search.found()["visits"].sum() == 60
    assert state.save() == before
