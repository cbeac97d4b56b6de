"""Shogi and CAGE-2 in a real browser: whole games by what a person does with a mouse and keys."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

import sparring
from sparring.games import cage2, shogi

ADVICE = """async (bot) => {
  const { readMove, readSfen, usi } = await import("/games/shogi/position.js");
  session.adviser = { kind: "bot", name: bot, index: session.rules.bots.indexOf(bot) };
  const { action } = await session.hint();
  return usi(readMove(readSfen(session.state.text()), action));
}"""
MY_TURN = "window.session && (session.answer || session.state.over)"
TOUCH = {"viewport": {"width": 375, "height": 700}, "has_touch": True}


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve()


def until(page, expression: str) -> None:
    """Wait for something in the page; Playwright's own way is `eval`, which our pages forbid."""
    end = time.monotonic() + 15
    while not page.evaluate(f"() => Boolean({expression})"):
        assert time.monotonic() < end, f"never came true: {expression}"
        page.wait_for_timeout(20)


def packed(**replay: Any) -> str:
    """A game that goes on from somewhere, as an address has it."""
    whole = {"format": "sparring-replay", "version": 1, "players": ["a", "b"], "actions": []}
    text = json.dumps({**whole, "seed": 1, "flags": {}, **replay})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def open_shogi(page, address: str, sfen: str = "", seat: int = 0, against: str = "greedy") -> None:
    page.emulate_media(reduced_motion="reduce")
    start = ""
    if sfen:
        start = "&from=" + packed(game="shogi", rules_version=1, setup=[ord(c) for c in sfen])
    page.goto(f"{address}/#/play/shogi?seed=1&seat={seat}&against={against}{start}")
    until(page, MY_TURN)


def square(page, name: str):
    return page.locator(f'.shogi-set .square[data-square="{name}"]')


def source_of(page, move: str):
    """Where a USI move starts: a square, or a piece on the person's stand."""
    if "*" in move:
        return page.locator(f'.shogi-set .stand.near .slot[data-drop="{move[0]}"]')
    return square(page, move[:2])


def make_move(page, move: str, *, drag: bool) -> None:
    """Play a USI move on the board."""
    start, end = source_of(page, move), square(page, move[2:4])
    if drag:
        start.drag_to(end)
    else:
        start.click()
        end.click()
    question = page.locator(".shogi-set .promotion")
    if question.is_visible():
        question.locator(f'[data-promote="{"yes" if move.endswith("+") else "no"}"]').click()


def sfen(page) -> str:
    return page.evaluate("session.state.text()")


def played(page) -> sparring.State:
    """The page's game, played again by the library."""
    replay = page.evaluate("session.replay()")
    if "setup" in replay:
        state = shogi.load_sfen("".join(map(chr, replay["setup"])))
    else:
        state = sparring.new_state("shogi")
    for action in replay["actions"]:
        state.apply(action)
    return state


@pytest.mark.parametrize("seat", [0, 1])
def test_a_game_of_shogi_by_clicks_and_drags(page, address, seat):
    open_shogi(page, address, seat=seat)
    mine: list[str] = []
    while not page.evaluate("session.state.over"):
        move = page.evaluate(ADVICE, "ab2")
        make_move(page, move, drag=len(mine) % 2 == 1)
        mine.append(move)
        until(page, f"session.moves.length >= {2 * len(mine) - 1 + seat}")
        until(page, MY_TURN)
    state = played(page)
    assert state.over and shogi.read_sfen(state) == sfen(page)
    assert page.evaluate("session.state.end") == state.end
    again = sparring.new_state("shogi")
    theirs = []
    for number, action in enumerate(page.evaluate("session.replay().actions")):
        if number % 2 == seat:
            theirs.append(shogi.usi(again, action))
        again.apply(action)
    assert theirs == mine
    assert page.locator(".shogi-set .stand.won").count() == (1 if any(state.scores) else 0)
    assert page.locator(".verdict").is_visible()
    lines = page.locator(".panel-happened li").all_text_contents()
    assert len(lines) == len(page.evaluate("session.moves"))


def test_promotion_is_asked_for_at_the_square(page, address):
    position = "4k4/9/4S4/9/9/9/9/9/4K4 b P 1"
    open_shogi(page, address, position)
    make = page.locator(".shogi-set .promotion")
    square(page, "5c").click()
    square(page, "4b").click()
    assert make.is_visible()
    page.keyboard.press("Escape")
    assert not make.is_visible() and page.evaluate("session.moves.length") == 0
    make_move(page, "5c4b+", drag=True)
    until(page, "session.moves.length >= 1")
    assert shogi.usi(shogi.load_sfen(position), page.evaluate("session.moves[0][0]")) == "5c4b+"


def test_only_one_way_is_not_asked_about(page, address):
    open_shogi(page, address, "k8/4P4/9/9/9/9/9/9/4K4 b - 1")
    square(page, "5b").click()
    assert square(page, "5a").get_attribute("class").split().count("target") == 1
    square(page, "5a").click()
    until(page, "session.moves.length >= 1")
    assert sfen(page).startswith("k3+P4") or "+P" in sfen(page)


def test_drops_by_click_drag_and_key(page, address):
    open_shogi(page, address, "4k4/9/9/9/9/9/9/9/4K4 b 2G2S2P 1")
    make_move(page, "G*6h", drag=False)
    until(page, "session.moves.length >= 2 && session.answer")
    make_move(page, "S*3h", drag=True)
    until(page, "session.moves.length >= 4 && session.answer")
    square(page, "5g").focus()
    page.keyboard.press("p")
    assert page.locator(".shogi-set .target").count() > 30
    assert not page.locator('.shogi-set .square[data-square="9a"].target').count()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    until(page, "session.moves.length >= 5")
    pieces = shogi.board_of(played(page))
    assert (pieces["6h"], pieces["3h"], pieces["5f"]) == ("G", "S", "P")


def test_shogi_by_keyboard_alone(page, address):
    open_shogi(page, address)
    page.locator("main").focus()  # as after a link
    page.keyboard.press("ArrowDown")  # the board takes the keyboard at its middle
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft", "Enter", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    until(page, "session.moves.length >= 1")
    assert shogi.usi(sparring.new_state("shogi"), page.evaluate("session.moves[0][0]")) == "7g7f"


def middle(place) -> dict[str, float]:
    box = place.bounding_box()
    return {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}


def drag_by_finger(page, start, end) -> None:
    finger = page.context.new_cdp_session(page)
    points = [middle(start), middle(end)]
    finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
    for _ in range(2):
        finger.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": points[1:]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_shogi_by_touch_on_a_phone(browser, address):
    context = browser.new_context(**TOUCH)
    page = context.new_page()
    open_shogi(page, address, seat=1)
    before = page.evaluate("session.moves.length")
    square(page, "3c").tap()
    assert square(page, "3d").get_attribute("class").split().count("target") == 1
    square(page, "3d").tap()
    until(page, f"session.moves.length > {before}")
    until(page, "session.answer")
    before = page.evaluate("session.moves.length")
    drag_by_finger(page, square(page, "7c"), square(page, "7d"))
    until(page, f"session.moves.length > {before}")
    own = square(page, "1a").bounding_box()
    other = square(page, "1i").bounding_box()
    assert own["y"] > other["y"]  # the own side is at the bottom
    assert page.evaluate("document.documentElement.scrollWidth") <= TOUCH["viewport"]["width"]
    context.close()


def test_letters_and_kanji_are_remembered(page, address):
    open_shogi(page, address)
    page.evaluate("localStorage.removeItem('sparring-shogi-signs')")
    switch = page.locator(".shogi-set .tools button").first
    if switch.inner_text() == "Show letters":
        switch.click()
    assert square(page, "5i").inner_text() == "K"
    switch.click()
    assert square(page, "5i").inner_text() == "玉" and square(page, "5a").inner_text() == "王"
    page.reload()
    until(page, MY_TURN)
    assert square(page, "8h").inner_text() == "角"


def test_check_a_hint_and_undo_are_shown(page, address):
    open_shogi(page, address, "4k4/9/9/9/9/9/9/4r4/4K4 b G 1")
    assert "check" in square(page, "5i").get_attribute("class")
    page.keyboard.press("h")
    page.wait_for_selector(".shogi-set .square.hint")
    square(page, "5i").click()
    square(page, "5h").click()
    until(page, "session.moves.length >= 2 && session.answer")
    assert page.locator(".shogi-set .square.last").count() == 2
    page.keyboard.press("u")
    until(page, "session.moves.length === 0 && session.answer")
    assert "check" in square(page, "5i").get_attribute("class")
    assert page.locator(".shogi-set .square.last").count() == 0


def open_cage2(page, address: str, query: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{address}/#/play/cage2?{query}")
    until(page, MY_TURN)


def defend(page, name: str) -> None:
    """Do something by its name: choose the host, then the action."""
    steps = page.evaluate("session.moves.length")
    host = name.partition(" ")[2]
    if host:
        page.locator(f'.cage2-view .host[data-host="{host}"]').click()
    page.locator(f'.cage2-view .deed[aria-label^="{name}"]').first.click()
    until(page, f"session.moves.length === {steps + 1}")


def test_an_episode_of_cage2_by_clicks(page, address):
    open_cage2(page, address, "seed=5&set=max_steps=30&set=red=B_LINE")
    first = ["DecoyHarakaSMPT Enterprise0", "DecoyFemitter Enterprise1", "Analyse User3"]
    done = []
    for step in range(30):
        until(page, MY_TURN)
        advice = page.evaluate("session.hint().then((hint) => hint.name)")
        done.append(first[step] if step < len(first) else advice)
        defend(page, done[-1])
        if step < 29:
            hidden = page.locator(".cage2-view").inner_html()
            assert "data-truth" not in hidden and "B_line" not in hidden and "red:" not in hidden
    page.wait_for_selector(".cage2-view .debrief ol")
    state = sparring.new_state("cage2", seed=5, config={"max_steps": 30, "red": "B_LINE"})
    for name in done:
        state.apply(cage2.action_id(name))
    assert state.over
    assert page.evaluate("session.state.scores[0]") == pytest.approx(state.scores[0])
    truth = cage2.read(state)
    shown = page.locator(".cage2-view .host")
    for host in range(13):
        node = page.locator(f'.cage2-view .host[data-host="{cage2.HOSTS[host]}"]')
        assert node.get_attribute("data-label") == truth.labels[host]
        assert node.get_attribute("data-truth") == truth.levels[host]
    assert shown.count() == 13
    assert page.locator(".cage2-view .debrief li").count() == 30


def test_cage2_by_keys(page, address):
    open_cage2(page, address, "seed=2&set=max_steps=9")
    page.locator("main").focus()  # as after a link
    keys = ["w", ".", "ArrowRight", "1", "2", "a", "ArrowDown", "x", ".", "j", "r", "w"]
    for key in keys:
        page.keyboard.press(key)
        until(page, MY_TURN)
    names = page.evaluate("session.moves.map(([action]) => session.engine.actionName(action))")
    assert names[:4] == ["Sleep", "Sleep", "DecoyApache User2", "DecoyFemitter User2"]
    assert names[4:7] == ["Analyse User2", "Restore Enterprise2", "Restore Enterprise2"]
    assert page.evaluate("session.state.over")


def test_onlookers_see_what_red_does(page, address):
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{address}/#/play/cage2?seed=2&seat=watch&against=vreact&set=max_steps=20")
    until(page, "window.session && session.state.over")
    page.wait_for_selector('.cage2-view .host[data-host="User0"][data-truth="privileged"]')
    assert not page.locator(".cage2-view .desk").is_visible()
    assert any("red: " in line for line in page.locator(".panel-happened li").all_text_contents())


def test_a_replay_of_shogi_through_either_pair_of_eyes(page, address):
    state = sparring.new_state("shogi")
    actions = []
    for move in ("7g7f", "3c3d", "8h2b+"):
        actions.append(shogi.action_of(state, move))
        state.apply(actions[-1])
    data = packed(game="shogi", rules_version=1, actions=actions)
    page.goto(f"{address}/#/replay?data={data}")
    page.get_by_label("Last position").click()
    assert square(page, "2b").locator(".promoted").count() == 1
    assert "last" in square(page, "8h").get_attribute("class")
    assert square(page, "1i").bounding_box()["y"] > square(page, "1a").bounding_box()["y"]
    page.get_by_label("Through whose eyes").select_option("1")
    assert square(page, "1i").bounding_box()["y"] < square(page, "1a").bounding_box()["y"]


def test_a_replay_of_cage2_hides_from_blue_what_blue_did_not_know(page, address):
    data = packed(game="cage2", rules_version=1, players=["blue"], actions=[0] * 12)
    page.goto(f"{address}/#/replay?data={data}")
    page.get_by_label("Last position").click()
    assert page.locator(".cage2-view [data-truth]").count() == 13
    page.get_by_label("Through whose eyes").select_option("0")
    assert page.locator(".cage2-view [data-truth]").count() == 0
    assert "red:" not in page.locator(".cage2-view").inner_html()


@pytest.mark.parametrize("width", [375, 1200])
@pytest.mark.parametrize("game", ["shogi", "cage2"])
def test_the_page_fits(page, address, game, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{address}/#/play/{game}?seed=1")
    until(page, MY_TURN)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
