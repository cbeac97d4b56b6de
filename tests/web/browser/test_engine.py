"""Games and networks in Chromium against Python: the same moves, the same numbers."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.games.state import State
from sparring.nets.heads import check_hidden
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.nets.searching import config_of
from sparring.search.budget import Budget
from sparring.web.networks import pack_network
from web.test_networks import grown, rows_of

PLAY = """
async ({ game, packed, seed, steps }) => {
  const { Engine } = await import("/app/engine/engine.js");
  const { Network } = await import("/app/engine/network.js");
  const rules = await (await fetch(`/api/games/${game}`)).json();
  const wasm = await (await fetch(`/wasm/${game}.wasm`)).arrayBuffer();
  const engine = await Engine.load(wasm, rules);
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const network = Network.load(engine, bytes);
  const state = engine.state(seed);
  const said = [];
  for (let step = 0; step < steps && !state.over; ++step) {
    const actions = [], answers = [];
    for (let row = 0; row < rules.rows; ++row) {
      const { probabilities, value, mean = [] } = network.answer(state, row);
      answers.push([...probabilities, ...mean, value]);
      actions.push(network.action(state, row, { temperature: 1, seed, step }));
    }
    said.push({ actions, answers, saved: Array.from(state.save()) });
    state.apply(...actions);
  }
  return said;
}
"""

SEARCH = """
async ({ game, packed, seed, simulations, belief }) => {
  const { Engine } = await import("/app/engine/engine.js");
  const { Network } = await import("/app/engine/network.js");
  const { Search } = await import("/app/engine/search.js");
  const rules = await (await fetch(`/api/games/${game}`)).json();
  const engine = await Engine.load(await (await fetch(`/wasm/${game}.wasm`)).arrayBuffer(), rules);
  const network = Network.load(engine, Uint8Array.from(atob(packed), (one) => one.charCodeAt(0)));
  const wish = { simulations, rule: "gumbel", seed, belief };
  const search = new Search(network, engine.state(seed), 0, wish);
  while (search.run(16) > 0);
  const { policy, q } = search.found();
  return { policy, q };
}
"""

LOAD = """
async ({ game, bytes }) => {
  const { Engine } = await import("/app/engine/engine.js");
  const { Network } = await import("/app/engine/network.js");
  const rules = await (await fetch(`/api/games/${game}`)).json();
  const engine = await Engine.load(await (await fetch(`/wasm/${game}.wasm`)).arrayBuffer(), rules);
  try {
    Network.load(engine, Uint8Array.from(bytes));
    return "";
  } catch (wrong) {
    return wrong.message;
  }
}
"""


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve()


def policy_of(game: str, config: NetConfig) -> Policy:
    rules = Rules(game)
    return Policy(rules, make_net(rules, config), name="a network")


@pytest.mark.parametrize(
    ("game", "config"),
    [
        ("skull_king", NetConfig(hidden=(64, 64))),
        ("shogi", NetConfig(kind="residual", channels=16, blocks=2)),
        ("laser_hockey", NetConfig(hidden=(32,), squash=True)),
        ("kuhhandel", NetConfig(hidden=(32,), activation="tanh", shared=False)),
    ],
)
def test_a_network_plays_as_in_python(page, address, game, config):
    policy, seed = policy_of(game, config), 2**52 + 1
    packed = base64.b64encode(pack_network(policy)).decode()
    page.goto(address)
    given = {"game": game, "packed": packed, "seed": seed, "steps": 60}
    said = page.evaluate(PLAY, given)
    rules = policy.rules
    state = State(rules, seed, rules.weights(None))
    assert len(said) > 20
    for step, found in enumerate(said):
        assert bytes(found["saved"]) == state.native.serialize()
        for row in range(rules.rows):
            obs, mask = state.decision(row)
            known = policy.gaussian(obs)[0] if rules.box else policy.probabilities(obs, mask)
            wanted = np.append(known[0], policy.value(obs))
            assert np.abs(np.array(found["answers"][row]) - wanted).max() < 1e-5
            action = policy.action(state, row=row, greedy=False, seed=seed, step=step)
            assert np.abs(np.array(found["actions"][row]) - action).max() < 1e-6
        state.apply(found["actions"] if rules.rows > 1 else found["actions"][0])


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "liars_dice", "connect_four"])
@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("belief", [False, True])
def test_a_search_has_the_settings_of_python(page, address, game, head, belief):
    """The step over worlds too, which is larger where worlds are drawn by a belief."""
    rules, seed = Rules(game), 7
    hidden = {"hidden": check_hidden(rules).width} if head and rules.hides else {}
    heads = {"policy": rules.actions, "value": 1, **hidden}
    net = grown(make_net(rules, NetConfig(hidden=(16,)), heads=heads), rows_of(rules)[0])
    policy = Policy(rules, net, name="a network")
    packed = base64.b64encode(pack_network(policy)).decode()
    page.goto(address)
    given = {"game": game, "packed": packed, "seed": seed, "simulations": 64, "belief": belief}
    found = page.evaluate(SEARCH, given)
    usual = config_of(policy)
    config = replace(usual, worlds=replace(usual.worlds, belief=belief))
    search = policy.search(budget=Budget(64), seed=seed, config=config)
    wanted = search.from_state(State(rules, seed, rules.weights(None)))
    assert np.abs(np.array(found["policy"]) - wanted.policy[0]).max() < 1e-4
    assert np.abs(np.array(found["q"]) - wanted.q[0]).max() < 1e-4


def test_what_does_not_fit_is_refused_in_a_line(page, address):
    page.goto(address)
    packed = pack_network(policy_of("tic_tac_toe", NetConfig(hidden=(8,))))

    def said(game: str, data: bytes) -> str:
        return page.evaluate(LOAD, {"game": game, "bytes": list(data)})

    assert said("tic_tac_toe", packed) == ""
    assert said("kuhn_poker", packed) == "a network plays tic_tac_toe, not kuhn_poker"
    assert said("tic_tac_toe", b"no network at all\n") == "this is no network of sparring"
    assert said("tic_tac_toe", packed[:-400]) == "the network is damaged: load it again"
    newer = packed.replace(b'"version": 2', b'"version": 9', 1)
    assert said("tic_tac_toe", newer).startswith("a network of version 9")
