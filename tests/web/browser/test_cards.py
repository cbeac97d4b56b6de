"""Card tables in a browser: whole games by clicks and keys, and nothing hidden in the page."""

from __future__ import annotations

import re
import time

import pytest

PHONE = {"width": 375, "height": 700}
ASKED = "window.session && (session.answer || session.state.over)"
OVER = "window.session && session.state.over"
CHOICES = (
    ".sk-buttons [data-action], .sk-hand-card[data-action], .sk-hand-card.playable[data-card='71']"
)
PIRATES = ", ".join(f".sk-hand-card.playable[data-card='{card}']" for card in (5, 6, 7, 8, 9, 71))


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve()


@pytest.fixture
def table(page, address):
    """Open a table on which nothing flies."""
    page.emulate_media(reduced_motion="reduce")
    page.goto(address)
    page.evaluate("localStorage.setItem('sparring-quick-table', 'yes')")

    def open_table(route: str):
        page.goto("about:blank")
        page.goto(f"{address}/#/play/{route}")
        until(page, ASKED)
        return page

    return open_table


def until(page, expression: str) -> None:
    """Wait for something in the page; Playwright's own way is `eval`, which our pages forbid."""
    end = time.monotonic() + 20
    while not page.evaluate(f"() => Boolean({expression})"):
        assert time.monotonic() < end, f"never came true: {expression}"
        page.wait_for_timeout(10)


def click_on(page, look, seen=None) -> int:
    """Decide by clicks until the game is over; `look(page)` is called before every click."""
    steps = 0
    while True:
        until(page, ASKED)
        look(page)
        if page.evaluate(OVER):
            return steps
        before = page.evaluate("session.moves.length")
        step(page, steps, seen)
        until(page, f"{OVER} || session.moves.length > {before}")
        steps += 1


def step(page, number: int, seen) -> None:
    """Take one of the choices, another one every time; the Tigress asks for a role."""
    name = page.evaluate("session.rules.name")
    if name == "skull_king":
        offered = page.locator(CHOICES)
        pirates = page.locator(PIRATES)
        if seen is not None and pirates.count():  # they have to win for what they offer
            offered = pirates
        offered.nth(number % offered.count()).click()
        role = page.locator(".sk-choice.red, .sk-choice[data-action='85']")
        if role.count() and page.evaluate("Boolean(session.answer)"):
            role.nth(number % 2).click()
            if seen is not None:
                seen.add("tigress")
        return
    if page.locator(".kh-laying").count():
        while page.locator(".kh-confirm").is_disabled():
            page.locator(".kh-stack:not([disabled])").first.click()
        page.click(".kh-confirm")
        return
    offered = page.locator(".kh-inside .kh-choice:not([disabled])")
    offered.nth(number % offered.count()).click()


def hides_hands(page) -> None:
    """Face-up cards in the page are the person's, those of the trick, and no others."""
    hidden, shown = page.evaluate(
        """() => {
          const words = session.state.fields().hand;
          const held = (seat) => words[2 * seat] | (words[2 * seat + 1] << 64n);
          let hidden = [];
          for (let seat = 0; seat < 8; ++seat)
            for (let card = 0; seat !== session.person && card < 74; ++card)
              if ((held(seat) >> BigInt(card)) & 1n) hidden.push(card);
          const own = [...document.querySelectorAll('.sk-hand [data-card]')];
          const actions = [...document.querySelectorAll('.sk-hand [data-action]')];
          return [hidden, {
            cards: own.map((one) => Number(one.dataset.card)),
            actions: actions.map((one) => Number(one.dataset.action) - 11),
            faces: document.querySelectorAll('.sk-felt .card-face').length,
            laid: document.querySelectorAll('.sk-felt .sk-laid').length,
          }];
        }"""
    )
    assert not set(hidden) & set(shown["cards"]) and not set(hidden) & set(shown["actions"])
    assert shown["faces"] == shown["laid"]


def hides_money(page) -> None:
    """Of others there are backs of notes, and sums that are known for certain."""
    if page.evaluate(OVER):
        return
    assert page.locator(".kh-others .kh-money .kh-note:not([aria-label='a note'])").count() == 0
    told = page.evaluate(
        """() => [...document.querySelectorAll('.kh-others .kh-plate')].map((plate) => {
          const seat = Number(plate.dataset.seat);
          const known = session.state.fields().known[5 * session.person + seat];
          const held = session.state.fields().known[6 * seat];
          const sum = (word) => [0, 10, 50, 100, 200, 500].reduce(
            (all, value, d) => all + value * Number((word >> BigInt(8 * d)) & 0xffn), 0);
          const cards = (word) => [0, 1, 2, 3, 4, 5].reduce(
            (all, d) => all + Number((word >> BigInt(8 * d)) & 0xffn), 0);
          return [plate.querySelector('.kh-sum').textContent, sum(known), cards(held)];
        })"""
    )
    for words, known, cards in told:
        numbers = sorted(int(number) for number in re.findall(r"\d+", words))
        assert numbers == sorted([known, cards]), words


@pytest.mark.parametrize("players", [2, 4, 8])
def test_rounds_of_skull_king_by_clicks_with_hidden_hands(table, players):
    page = table(f"skull_king?seed=4&against=rule_easy&set=rounds=1,2,3&set=num_players={players}")
    assert click_on(page, hides_hands) >= 3 + 1 + 2 + 3
    assert "points" in page.inner_text(".status-line")
    page.click("text=Scores")
    assert page.locator(".sk-sheet tbody tr").count() == 3
    assert page.locator(".sk-sheet tbody tr").first.locator("td").count() == players


def test_a_whole_game_of_skull_king(table):
    page = table("skull_king?seed=11&against=random")
    click_on(page, lambda _: None)
    totals = page.locator(".sk-round .total").all_inner_texts()
    scores = page.evaluate("session.state.scores")
    assert sorted(map(int, totals)) == sorted(scores)


def test_every_ability_can_be_used_by_clicks(table):
    """Wanted are all questions that pirates, loads and the Tigress ask."""
    phases = ["bid", "cannon", "play", "rosie", "discard", "wager", "harry", "over"]
    wanted = {"cannon", "rosie", "discard", "wager", "harry", "tigress"}
    seen: set[str] = set()
    flags = "&".join(
        f"set={flag}"
        for flag in ("num_players=2", "ghost=0", "abilities=1", "scoring=RASCAL", "cannonball=1")
    )
    for seed in range(6):
        page = table(f"skull_king?seed={seed}&against=rule_easy&{flags}&set=rounds=10,10,10")

        def look(page) -> None:
            if not page.evaluate(OVER):
                seen.add(phases[page.evaluate("session.state.fields().phase[0]")])
            if page.locator(".sk-dialog[open]").count():  # Juanita Jade
                page.keyboard.press("Escape")

        click_on(page, look, seen)
        if wanted <= seen:
            return
    raise AssertionError(f"never asked: {wanted - seen}")


def test_grayed_cards_say_why(table):
    page = table("skull_king?seed=3&against=rule_easy&set=rounds=8,8,8")
    for number in range(20):
        until(page, ASKED)
        grayed = page.locator(".sk-hand-card.grayed")
        if grayed.count():
            assert "follow it" in grayed.first.get_attribute("title")
            before = page.evaluate("session.moves.length")
            grayed.first.click(force=True)  # it is disabled for assistive technology
            assert "follow it" in page.inner_text(".sk-words")
            assert page.evaluate("session.moves.length") == before
            return
        step(page, number, None)
        page.wait_for_timeout(30)
    raise AssertionError("nothing had to be followed")


def test_who_won_skull_king_is_said_once(table):
    page = table("skull_king?seed=2&seat=watch&against=rule_easy&set=rounds=1")
    until(page, OVER)
    page.wait_for_selector(".status-line.verdict")
    ended = page.inner_text(".status-line")
    assert re.search(r"wins? with -?\d+ points\.$", ended)
    assert page.inner_text("body").count(ended) == 1


def test_skull_king_by_keys_and_the_last_trick_again(table):
    page = table("skull_king?seed=2&against=rule_easy&set=rounds=1,2")
    page.keyboard.press("1")
    until(page, "session.answer && session.moves.length >= 4")
    while not page.evaluate("session.state.fields().round[0] > 1"):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        until(page, ASKED)
    page.keyboard.press("l")
    assert page.locator(".sk-dialog[open] .sk-laid").count() == 4
    page.keyboard.press("Escape")
    assert page.locator(".sk-dialog[open]").count() == 0


def test_a_click_skips_what_flies(page, address):
    page.goto(f"{address}/#/play/skull_king?seed=2&against=rule_easy&set=rounds=3,3")
    until(page, ASKED)
    started = time.monotonic()
    for number in range(4):
        step(page, number, None)
        while not page.evaluate(ASKED):
            page.locator(".sk-head").click()
        until(page, ASKED)
    assert time.monotonic() - started < 12


def test_an_undo_takes_a_card_back(table):
    page = table("skull_king?seed=2&against=rule_easy&set=rounds=4,4")
    page.keyboard.press("2")
    until(page, "session.answer && session.moves.length >= 4")
    held = page.locator(".sk-hand-card").count()
    page.locator(".sk-hand-card.playable").first.click()
    until(page, "session.answer")
    assert page.locator(".sk-hand-card").count() == held - 1
    page.keyboard.press("u")
    until(page, "session.answer")
    page.wait_for_timeout(50)
    assert page.locator(".sk-hand-card").count() == held


def test_skull_king_on_a_phone_shows_hand_and_choices(table, page):
    page.set_viewport_size(PHONE)
    for players in (4, 8):
        route = f"skull_king?seed=1&against=rule_easy&set=rounds=8,8&set=num_players={players}"
        table(route)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        for one in page.locator(".sk-hand-card, .sk-buttons button").all():
            box = one.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
            assert box["y"] + box["height"] <= PHONE["height"] + 4
            assert min(box["width"], box["height"]) >= 40


def test_a_whole_game_of_kuhhandel_by_clicks_with_hidden_money(table):
    page = table("kuhhandel?seed=5&against=dealer&set=num_players=3")
    click_on(page, hides_money)
    assert "Final scores" in page.inner_text(".kh-standings")
    told = [int(text) for text in page.locator(".kh-standings .total").all_inner_texts()]
    assert told == sorted(page.evaluate("session.state.scores"), reverse=True)
    quartets = page.locator(".kh-standings .kh-kind.whole").count()
    assert quartets == 10


def test_a_jump_bid_is_one_act(table):
    page = table("kuhhandel?seed=5&against=random&set=num_players=3")
    for number in range(200):
        until(page, ASKED)
        if page.locator(".kh-amount").count():
            break
        step(page, number, None)
        page.wait_for_timeout(20)
    low = int(page.input_value(".kh-amount"))
    bid = low + 70
    page.keyboard.press(str(bid)[0])
    page.keyboard.type(str(bid)[1:])
    page.keyboard.press("Enter")
    until(page, ASKED)
    assert f"You bid {bid}." in page.inner_text(".log")


def test_a_bluff_is_called_one(table):
    page = table("kuhhandel?seed=5&against=random&set=num_players=3")
    for number in range(200):
        until(page, ASKED)
        if page.locator(".kh-amount").count():
            break
        step(page, number, None)
        page.wait_for_timeout(20)
    page.fill(".kh-amount", "200")
    assert "bluff" in page.inner_text(".kh-warning")
    page.fill(".kh-amount", "205")
    assert page.locator(".kh-bid").is_disabled()


def test_kuhhandel_on_a_phone_does_not_scroll_sideways(table, page):
    page.set_viewport_size(PHONE)
    table("kuhhandel?seed=5&against=dealer&set=num_players=5")
    for number in range(12):
        until(page, ASKED)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        step(page, number, None)
        page.wait_for_timeout(30)
