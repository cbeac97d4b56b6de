"""Searches in the modules of the browser against the native ones, bit for bit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.nets.heads import check_hidden
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.search.budget import RULES, Budget
from sparring.search.search import Found, Search, SearchConfig, tree_settings
from sparring.search.worlds import WorldsConfig
from sparring.web.description import search_settings
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
HIDDEN_CARDS: dict[str, tuple[str, dict[str, Any]]] = {
    "kuhn": ("kuhn_poker", {}),
    "three at Kuhn": ("kuhn_poker_3", {}),
    "leduc": ("leduc_poker", {}),
    "goofspiel": ("goofspiel", {}),
    "skull king, 2": ("skull_king", {"num_players": 2}),
    "skull king, 4": ("skull_king", {"num_players": 4, "skip_forced": 1}),
    "skull king, 7": ("skull_king", {"num_players": 7}),
    "kuhhandel, 3": ("kuhhandel", {"num_players": 3}),
    "kuhhandel, 5": ("kuhhandel", {"num_players": 5, "skip_forced": 1}),
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
        assert told["simulations"] == budget.simulations
        check(told, found, search)
        mine.free()


def check(told: dict[str, Any], found: Found, search: Search) -> None:
    """All that a search tells, bit for bit."""
    assert told["simulations"] == found.simulations[0]
    assert told["nodes"] == search.native.nodes(0)
    assert told["visits"].tolist() == found.visits[0].tolist()
    assert told["q"].tobytes() == found.q[0].tobytes()
    assert told["policy"].tobytes() == found.policy[0].tobytes()
    assert told["value"] == found.value[0]
    assert told["line"].tolist() == search.line()
    assert told["action"].tolist() == np.atleast_1d(found.action[0]).tolist()


def settings_of(rules: Rules) -> dict[str, Any]:
    """The settings that a page has of a game's search."""
    settings = search_settings(rules)
    assert settings
    return settings


def made_for_worlds(case: str, *, believes: bool) -> tuple[Module, WasmNetwork]:
    """A network that tells what is hidden, or does not."""
    rules = Rules(*HIDDEN_CARDS[case])
    heads = {"policy": rules.actions, "value": 1}
    if believes:
        heads["hidden"] = check_hidden(rules).width
    module = Module(rules)
    net = grown(make_net(rules, NetConfig(hidden=(16,)), heads=heads), rows_of(rules)[0])
    if believes:
        head = net.get_submodule("hidden_head")
        assert isinstance(head, torch.nn.Linear)
        head.weight.data *= 30  # a belief that is far from uniform
    return module, module.network(pack_network(Policy(rules, net)))


@pytest.mark.parametrize("case", HIDDEN_CARDS)
@pytest.mark.parametrize("noise", [False, True])
def test_finds_in_worlds_what_the_native_search_finds(case, noise):
    module, network = made_for_worlds(case, believes=False)
    rules, rng = module.rules, np.random.default_rng(7)
    roles = len(rules.roles)
    into = tuple(0.9 - 0.5 * role for role in range(roles)) if noise else ()
    worlds = WorldsConfig(least=4, horizon=3, unit=1.5) if noise else WorldsConfig()
    config = SearchConfig(gamma=0.95, gamma_into=into, worlds=worlds)
    settings = {
        **asdict(worlds),
        **{"eta": worlds.step_size(rules, believes=False), "alpha": worlds.pull(rules)},
        **{"gamma": 0.95, "gamma_into": into},
    }
    for native, wasm in positions(module, 3, seed=50):
        for playouts in (1, 50):
            seed = int(rng.integers(0, 2**63))
            options: dict[str, Any] = {"seed": seed, "noise": noise}
            search = Search(rules, answers_of(network), Budget(playouts), config=config, **options)
            found = search.from_state(native)
            mine = WasmSearch(wasm, network, 0, simulations=playouts, **options, **settings)
            while mine.run(7):
                pass
            check(mine.found(), found, search)
            mine.free()


@pytest.mark.parametrize("case", ["kuhn", "leduc", "skull king, 4", "kuhhandel, 3"])
def test_worlds_are_drawn_by_what_the_network_believes(case):
    module, network = made_for_worlds(case, believes=True)
    rules, budget = module.rules, Budget(40)
    differed = 0

    def believe(rows: np.ndarray) -> np.ndarray:
        return np.stack([network.belief(row.tobytes()) for row in rows])

    wish = {"simulations": 40, "seed": 11, "gamma": 1.0, **settings_of(rules)}
    for native, wasm in positions(module, 8, seed=80):
        search = Search(rules, answers_of(network), budget, seed=11, believe=believe)
        found = search.from_state(native)
        by_belief, uniform = (
            WasmSearch(wasm, network, 0, **{**wish, "belief": belief}) for belief in (True, False)
        )
        for one in (by_belief, uniform):
            one.run(40)
        check(by_belief.found(), found, search)
        differed += uniform.found()["q"].tobytes() != by_belief.found()["q"].tobytes()
    assert differed


def test_what_a_page_is_told_of_a_search():
    cards, board = settings_of(Rules("skull_king")), settings_of(Rules("connect_four"))
    assert cards["worlds"]
    assert {name: cards[name] for name in ("eta", "alpha", "belief")} == {
        **{"eta": 100.0, "alpha": 0.0, "belief": True}
    }
    kuhn = settings_of(Rules("kuhn_poker"))
    assert (kuhn["eta"], kuhn["uniform_eta"]) == (0.3, 0.1)
    assert not board["worlds"]
    assert board["c_visit"] == SearchConfig().c_visit


def test_a_search_over_worlds_leaves_the_state_and_can_be_read_at_any_time():
    module, network = made_for_worlds("skull king, 4", believes=False)
    state = module.state(1)
    before = state.save()
    wish = {"simulations": 61, "gamma": 1.0, **settings_of(module.rules)}
    search = WasmSearch(state, network, 0, **wish)
    first = search.found()
    assert first["simulations"] == first["visits"].sum() == 0
    assert abs(first["policy"].sum() - 1) < 1e-5
    assert search.run(0) == 60  # two bids in 30 worlds
    assert search.run(5) == 55
    assert search.found()["simulations"] == 4  # whole worlds count
    assert [search.run(40), search.run(40)] == [15, 0]
    found = search.found()
    assert found["visits"].max() == 30
    assert found["visits"].sum() == found["simulations"] == 60
    assert state.save() == before


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
