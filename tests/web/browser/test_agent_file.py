"""An agent's own file, opened from the disk without a network: it plays, and it asks nobody."""

from __future__ import annotations

import json
import time

import pytest
import torch

from sparring import Replay, Rules
from sparring.cli import main
from sparring.config import NetConfig
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.policies import save_policy
from sparring.web.description import MODULES

NETS = {
    "tic_tac_toe": NetConfig(hidden=(16,)),
    "skull_king": NetConfig(hidden=(32, 32)),
    "laser_hockey_discrete": NetConfig(hidden=(16,)),
}


@pytest.fixture(scope="module")
def agent_file(tmp_path_factory):
    """Export an agent with fresh weights; returns its page."""
    folder = tmp_path_factory.mktemp("agents")

    def export(game):
        if not (MODULES / f"{game}.wasm").is_file():
            pytest.skip("no WebAssembly modules here; make web builds them")
        page = folder / f"{game}.html"
        if not page.exists():
            torch.manual_seed(0)
            rules = Rules(game)
            saved = save_policy(Policy(rules, make_net(rules, NETS[game])), folder / game)
            assert main(["export", str(saved), "--html", str(page)]) == 0
        return page

    return export


@pytest.fixture
def alone(browser):
    """A page without a network. Any request but for the file, and any complaint, fails the test."""
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    context.set_offline(True)
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda wrong: complaints.append(str(wrong)))
    page.on(
        "console",
        lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.add_init_script(
        "window.broken = [];"
        "document.addEventListener('securitypolicyviolation', (event) =>"
        " window.broken.push(`${event.violatedDirective} ${event.blockedURI}`));"
    )
    yield page
    assert page.evaluate("() => window.broken") == []
    context.close()
    own = {url.partition("#")[0] for url in asked if not url.startswith("blob:")}
    assert len(own) == 1
    assert own.pop().endswith(".html")
    assert complaints == []


def until(page, expression, seconds=20):
    """Wait for something in the page. (Playwright's own way needs eval, which the file forbids.)"""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if page.evaluate(f"() => Boolean({expression})"):
            return
        page.wait_for_timeout(20)
    raise TimeoutError(expression)


def sit_down(page, file, query=""):
    page.goto(f"{file.as_uri()}#/play/x?seed=5&seat=0{query}")
    until(page, "window.session?.answer || window.session?.state.over")


def test_a_whole_game_is_played_and_saved_as_the_program_reads_it(alone, agent_file, tmp_path):
    file = agent_file("tic_tac_toe")
    alone.goto(file.as_uri())
    alone.click("text=Play first")
    until(alone, "window.session?.answer")
    while not alone.evaluate("() => window.session.state.over"):
        until(alone, "window.session.answer || window.session.state.over")
        if alone.evaluate("() => window.session.answer !== null"):
            alone.click("[data-action]:not([disabled])")
            alone.wait_for_timeout(50)
    saved = Replay.from_json(alone.evaluate("() => JSON.stringify(window.session.replay())"))
    assert saved.end in saved.rules.ends
    assert saved.differences() == []
    assert saved.players[0] == "person"
    with alone.expect_download() as got:
        alone.evaluate("() => document.querySelector('details:has(.share-buttons)').open = true")
        alone.click(".share-buttons >> text=Download")
    got.value.save_as(tmp_path / "kept.json")
    assert Replay.read(tmp_path / "kept.json").plain() == saved.plain()


def test_undo_hint_and_mind_are_there(alone, agent_file):
    sit_down(alone, agent_file("tic_tac_toe"))
    alone.keyboard.press("h")
    until(alone, "document.querySelector('.hinted')")
    alone.click("[data-action]:not([disabled])")
    until(alone, "window.session.answer && window.session.moves.length === 2")
    alone.keyboard.press("u")
    until(alone, "window.session.answer && window.session.moves.length === 0")
    names = alone.evaluate("() => window.session.players.map((player) => player.kind)")
    assert names == ["person", "agent"]


def test_the_agent_is_the_one_that_python_has(alone, agent_file):
    """What the file's network says in every position of a game is what torch says."""
    file = agent_file("skull_king")
    sit_down(alone, file)
    told = alone.evaluate(
        """() => {
          const { session } = window;
          const { network } = session.players.find((player) => player.kind === "agent");
          const state = session.engine.state(9, { skipForced: false });
          const said = [];
          while (!state.over && said.length < 60) {
            const action = network.action(state, 0, { temperature: 0 });
            said.push(action);
            state.apply(action);
          }
          state.free();
          return said;
        }"""
    )
    from sparring.games import new_state
    from sparring.store.policies import load_policy

    policy, state = load_policy(file.with_suffix("")), new_state("skull_king", seed=9)
    for action in told:
        assert policy.action(state) == action
        state.apply(action)


def test_a_few_moves_of_skull_king(alone, agent_file):
    sit_down(alone, agent_file("skull_king"), "&against=captain,skull_king,captain")
    for _ in range(3):
        until(alone, "window.session.answer")
        before = alone.evaluate("() => window.session.moves.length")
        assert alone.evaluate("() => window.session.choose(window.session.answer.legal[0])")
        until(alone, f"window.session.moves.length > {before}")


def test_a_replay_of_another_machine_is_shown(alone, agent_file, tmp_path):
    state_of = Rules("tic_tac_toe")
    facts = {
        "format": "sparring-replay",
        "version": 1,
        "game": "tic_tac_toe",
        "rules_version": state_of.rules_version,
        "flags": {},
        "seed": 1,
        "players": ["one", "<img src=x onerror=alert(1)>"],
        "actions": [4, 0, 8],
        "scores": [0, 0],
        "end": None,
    }
    (tmp_path / "game.json").write_text(json.dumps(facts))
    alone.goto(f"{agent_file('tic_tac_toe').as_uri()}#/replay")
    alone.set_input_files("input[type=file]", tmp_path / "game.json")
    until(alone, "document.querySelector('.replay .table, .replay [class*=-table]')")
    assert alone.evaluate("() => document.querySelectorAll('img').length") == 0


def test_what_the_file_does_not_have_is_said(alone, agent_file):
    file = agent_file("tic_tac_toe")
    for query, told in (
        ("&against=another", "this file holds"),
        ("&set=skip=1", "this file plays with"),
    ):
        alone.goto("about:blank")
        alone.goto(f"{file.as_uri()}#/play/tic_tac_toe?seed=1{query}")
        alone.wait_for_selector(".notice")
        assert told in alone.inner_text(".notice")
