"""Agents that search, in a browser: in a worker beside the page, and in an agent's own file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparring import new_state
from sparring.cli import main
from sparring.nets.levels import LEVELS
from sparring.nets.policy import Policy
from sparring.search.budget import Budget
from sparring.search.search import Search
from sparring.store.policies import load_policy
from sparring.web.description import search_settings
from sparring.web.networks import pack_network
from training.run_helpers import trained
from web.browser.test_agent_file import alone, sit_down  # noqa: F401 (a fixture)
from web.browser.test_play import until
from web.test_searches import answers_of
from web.wasm import Module, WasmSearch


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    trained(folder, name="small", game="connect_four", updates=2)
    trained(folder, name="slow", game="connect_four", updates=1, net={"hidden": (512, 512)})
    trained(folder, name="dueling", game="connect_four", algo="dqn", updates=1)
    trained(folder, name="kuhn", game="kuhn_poker", updates=1)
    trained(folder, name="cards", game="skull_king", updates=1, heads={"hidden": 0.1})
    trained(folder, name="roles", game="skull_king", updates=1, hierarchy={"on": True})
    return folder


@pytest.fixture(scope="module")
def address(serve, runs) -> str:
    return serve(runs)


@pytest.fixture
def table(page, address):
    """Open a table and wait until the person is asked: table("connect_four?against=small/2@64")."""
    page.emulate_media(reduced_motion="reduce")

    def open_table(route: str, *, asked: bool = True):
        page.goto("about:blank")
        page.goto(f"{address}/#/play/{route}")
        page.wait_for_selector(".play-body")
        until(
            page,
            "window.session && (session.answer || !ASKED)".replace("ASKED", str(asked).lower()),
        )
        return page

    return open_table


def searched(policy: Policy, actions: list[int], simulations: int, seed: int) -> dict:
    """What the module finds without a browser."""
    module = Module(policy.rules)
    state = module.state(seed)
    for action in actions:
        assert state.apply([action])
    network = module.network(pack_network(policy))
    about, found = network.about, search_settings(policy.rules)
    assert found
    if found["worlds"]:  # per unit of return
        unit = about["value_unit"]
        found |= {"eta": found["eta"] / unit, "alpha": found["alpha"] * unit}
    discounts = {"gamma": about["gamma"], "gamma_into": about["gamma_into"]}
    wish = {"simulations": simulations, "rule": 0, **found, **discounts}
    search = WasmSearch(state, network, 0, seed=seed, **wish)
    search.run(simulations)
    return search.found()


def test_an_agent_plays_what_its_search_finds_and_its_mind_shows_it(table, runs):
    page = table("connect_four?seed=5&seat=1&against=small@200")
    found = searched(load_policy(runs / "small"), [], 200, 5)
    assert page.evaluate("session.moves[0][0]") == found["action"][0]
    assert page.evaluate("session.players[0].name") == "small@200"
    page.keyboard.press("h")
    until(page, "document.querySelector('.status-line').textContent.includes('@200 would play')")
    page.keyboard.press("m")
    page.wait_for_selector(".mind-found")
    rows = page.locator(".mind-found tbody tr")
    visits = [int(text) for text in rows.locator("td:nth-child(2)").all_inner_texts()]
    assert visits == sorted((int(count) for count in found["visits"]), reverse=True)
    assert page.locator(".mind-found .played").count() == 1
    said = page.locator(".mind-answer").inner_text()
    assert f"{found['value']:.3f}" in said
    assert "200 simulations" in said
    names = [page.evaluate(f"session.engine.actionName({a})") for a in found["line"][:3]]
    assert " · ".join(names) in said


def test_an_agent_searches_over_worlds_where_cards_are_hidden(table, runs):
    policy = load_policy(runs / "cards")
    rules = policy.rules
    first = new_state("skull_king", seed=5).native.seat(0)
    page = table(f"skull_king?seed=5&seat={(first + 1) % rules.seats}&against=cards@64")
    found = searched(policy, [], 64, 5)
    assert page.evaluate("session.moves[0][0]") == found["action"][0]
    page.keyboard.press("m")
    page.get_by_label("Whose mind").select_option(label=f"cards@64, seat {first}")
    page.wait_for_selector(".mind-found")
    said = page.locator(".mind-answer").inner_text()
    tried, worlds = np.count_nonzero(found["visits"]), found["visits"].max()
    made = f"{found['simulations']} playouts: {tried} actions in {worlds} worlds each"
    assert f"{made}, drawn by what it believes" in said
    assert f"{found['value']:.3f}" in said
    shown = page.locator(".mind-found tbody tr td:nth-child(2)").all_inner_texts()
    shares = sorted((100 * found["policy"]).tolist(), reverse=True)
    assert shown == [f"{share:.1f} %" for share in shares[: len(shown)]]
    page.keyboard.press("h")
    until(page, "document.querySelector('.status-line').textContent.includes('@64 would play')")


def test_the_mind_of_an_agent_that_does_not_search_may(table):
    page = table("connect_four?seed=5&seat=1&against=small")
    page.keyboard.press("m")
    page.wait_for_selector(".mind-bars")
    page.get_by_label("How far it searches").select_option("64")
    page.wait_for_selector(".mind-found")
    page.get_by_label("How far it searches").select_option("")
    page.wait_for_selector(".mind-bars")


def test_a_long_search_shows_how_far_it_is_and_ends_when_asked_to(table):
    page = table("connect_four?seed=5&seat=1&against=slow@50000", asked=False)
    page.wait_for_selector(".thinking:not(.idle) progress")
    before = page.locator(".thinking span").inner_text()
    assert before.endswith(" simulations")
    until(page, f"document.querySelector('.thinking span').textContent !== {before!r}")
    page.get_by_role("button", name="Move now").click()
    until(page, "session.answer && session.moves.length === 1")
    assert page.locator(".thinking.idle").count() == 1


def test_a_move_is_taken_back_while_the_other_searches(table):
    page = table("connect_four?seed=5&seat=0&against=slow@50000")
    page.click(".table [data-action]:not([disabled])")
    page.wait_for_selector(".thinking:not(.idle)")
    page.keyboard.press("u")
    until(page, "session.answer && session.moves.length === 0")
    page.click(".table [data-action]:not([disabled])")  # the worker is free for the next one
    page.wait_for_selector(".thinking:not(.idle)")
    page.keyboard.press(".")
    until(page, "session.answer && session.moves.length === 2")


def test_how_an_agent_plays_is_chosen_in_the_form(table):
    page = table("connect_four?seed=1&against=small")
    page.click(".panel-setup > summary")
    choice = page.get_by_label("How seat 1 plays")
    choice.select_option("64")
    page.click(".setup [type=submit]")
    until(page, "location.hash.includes('small@64')")
    page = table("connect_four?seed=1&against=small@level7")
    assert page.evaluate("session.players[1].network.budget") == str(LEVELS[7].simulations)
    page = table("connect_four?seed=1&against=small@level1")
    assert page.evaluate("session.players[1].temperature") == LEVELS[1].temperature


@pytest.mark.parametrize(("game", "agent"), [("skull_king", "roles"), ("connect_four", "dueling")])
def test_where_nothing_can_be_searched_nothing_is_offered(table, page, address, game, agent):
    table(f"{game}?seed=1&against={agent}")
    page.click(".panel-setup > summary")
    options = page.get_by_label("How seat 1 plays").locator("option").all_inner_texts()
    assert options[:2] == ["most probable action", "sampled action"]
    assert not [text for text in options if "simulations" in text]
    page.keyboard.press("m")
    assert page.get_by_label("How far it searches").is_hidden()
    page.goto(f"{address}/#/play/{game}?seed=1&against={agent}@64")
    told = page.wait_for_selector(".notice.bad").inner_text()
    assert "network for every role" in told or "values of actions" in told


def test_no_tree_is_grown_over_hidden_cards(page, address):
    page.goto(f"{address}/#/play/kuhn_poker?seed=1&against=kuhn@64/puct")
    told = page.wait_for_selector(".notice.bad").inner_text()
    assert "kuhn_poker hides cards, so no tree is grown by puct" in told


def test_a_search_that_is_none_is_refused_in_words(page, address):
    page.goto(f"{address}/#/play/connect_four?seed=1&against=small@0")
    assert "such as 64, 2s" in page.wait_for_selector(".notice.bad").inner_text()


def test_native_and_page_agree_with_the_same_network(runs):
    """The action of the page is that of `Search` with the module's network."""
    policy = load_policy(runs / "small")
    network = Module(policy.rules).network(pack_network(policy))
    search = Search(policy.rules, answers_of(network), Budget(200), seed=5)
    state = new_state("connect_four", seed=5)
    assert search.from_state(state).action[0] == searched(policy, [], 200, 5)["action"][0]


def test_an_agent_file_searches_without_a_network(alone, runs, tmp_path):  # noqa: F811
    file = tmp_path / "agent.html"
    assert main(["export", str(runs / "small"), "--html", str(file)]) == 0
    sit_down(alone, file, "&against=small/2@64")
    alone.click(".table [data-action]:not([disabled])")
    while not alone.evaluate("() => session.moves.length === 2 && Boolean(session.answer)"):
        alone.wait_for_timeout(20)
    alone.keyboard.press("m")
    alone.wait_for_selector(".mind-found")
    assert "64 simulations" in alone.locator(".mind-answer").inner_text()


def test_an_agent_file_searches_over_worlds(alone, runs, tmp_path):  # noqa: F811
    file = tmp_path / "agent.html"
    assert main(["export", str(runs / "cards"), "--html", str(file)]) == 0
    alone.goto(file.as_uri())
    choice = alone.get_by_label("How it plays")
    assert "64 playouts" in choice.locator("option").all_inner_texts()
    sit_down(alone, file, "&against=cards/1@64")
    alone.keyboard.press("m")
    alone.click(".table [data-action]:not([disabled])")
    while not alone.evaluate("() => session.moves.length >= 4"):
        alone.wait_for_timeout(20)
    alone.wait_for_selector(".mind-found")
    assert " playouts: " in alone.locator(".mind-answer").inner_text()
