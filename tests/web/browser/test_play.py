"""Tables in a browser: small games by clicks, what stands beside them, replays, agents."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

import sparring
from sparring.games.recorded import Replay
from sparring.store.policies import load_policy
from training.run_helpers import trained

OVER = "session.state.over"
ASKED = "window.session && (session.answer || session.state.over)"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    trained(folder, name="tiny", updates=2)
    return folder


@pytest.fixture(scope="module")
def address(serve, runs) -> str:
    return serve(runs)


@pytest.fixture
def table(page, address):
    """Open a table: table("kuhn_poker?seed=1")."""
    page.emulate_media(reduced_motion="reduce")

    def open_table(route: str):
        page.goto("about:blank")
        page.goto(f"{address}/#/play/{route}")
        page.wait_for_selector(".play-body")
        until(page, ASKED)
        return page

    return open_table


def until(page, expression: str) -> None:
    """Wait for something in the page; Playwright's own way is `eval`, which our pages forbid."""
    end = time.monotonic() + 15
    while not page.evaluate(f"() => Boolean({expression})"):
        assert time.monotonic() < end, f"never came true: {expression}"
        page.wait_for_timeout(20)


def play_out(page) -> list[str]:
    """Click whatever is first until the game is over; returns the log."""
    for _ in range(60):
        until(page, ASKED)
        if page.evaluate(OVER):
            break
        before = page.evaluate("session.moves.length")
        page.click(".table [data-action]:not([disabled])")
        until(page, f"session.moves.length > {before}")
    page.wait_for_selector(".verdict:not([hidden])")
    return page.locator(".log li").all_inner_texts()


def open_panel(page, name: str) -> None:
    page.click(f".panel-{name} > summary")


def replay_of(page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("session.replay()")
    return found


def as_data(replay: Any) -> str:
    raw = json.dumps(replay).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def test_all_games_can_be_chosen(page, address):
    page.goto(f"{address}/#/play")
    page.wait_for_selector(".tile")
    assert page.locator(".tile").count() == len(sparring.game_names())
    page.click("text=Kuhn poker")
    page.wait_for_selector(".kuhn-poker-table")
    assert re.search(r"#/play/kuhn_poker\?seed=\d+&seat=0", page.url)


@pytest.mark.parametrize("game", ["tic_tac_toe", "kuhn_poker", "leduc_poker"])
@pytest.mark.parametrize("seat", [0, 1])
def test_a_whole_game_by_clicks_is_what_the_rules_say(table, game, seat):
    page = table(f"{game}?seed=11&seat={seat}")
    log = play_out(page)
    replay = replay_of(page)
    assert len([line for line in log if re.match(r"^(you|\w+): ", line)]) >= len(replay["actions"])
    read = Replay.from_json(json.dumps(replay))
    assert read.differences() == []
    assert read.end is not None
    assert read.players[seat] == "person"
    score = page.locator(f'.plate[data-seat="{seat}"] .plate-score').inner_text()
    assert float(score) == read.scores[seat]


def test_keys_play_too(table):
    page = table("tic_tac_toe?seed=1")
    page.keyboard.press("5")
    until(page, "session.moves.length === 2 && session.answer")
    assert page.evaluate("session.moves[0][0]") == 4
    page.keyboard.press("u")
    until(page, "session.moves.length === 0 && session.answer")
    page = table("leduc_poker?seed=1")
    page.keyboard.press("r")
    until(page, "session.moves.length > 0")
    assert page.evaluate("session.moves[0][0]") == 2


def test_other_cards_stay_face_down_until_the_end(table):
    page = table("kuhn_poker?seed=3")
    assert page.locator('.poker-seat[data-seat="1"] .back').count() == 1
    assert page.locator('.poker-seat[data-seat="0"] .back').count() == 0
    play_out(page)
    assert page.locator(".poker-card.back").count() == 0


def test_undo_takes_back_after_the_end_and_says_so(table):
    page = table("tic_tac_toe?seed=2")
    assert page.locator("button", has_text="Undo").is_disabled()
    play_out(page)
    steps = page.evaluate("session.moves.length")
    page.keyboard.press("u")
    until(page, f"session.answer && session.moves.length < {steps}")
    assert page.locator(".verdict").is_hidden()
    assert page.locator(".status-line").inner_text() == "Taken back."
    assert page.locator(".log li").count() == page.evaluate("session.moves.length")


def test_a_hint_is_marked_on_the_table(table):
    page = table("tic_tac_toe?seed=2&against=careful")
    page.keyboard.press("h")
    page.wait_for_selector(".hinted")
    assert re.match(r"careful would play [abc][123]", page.locator(".status-line").inner_text())
    page.click(".hinted")
    until(page, "session.moves.length === 2 && session.answer")
    assert page.locator(".hinted").count() == 0


def test_the_same_deal_again_and_a_new_one(table):
    page = table("leduc_poker?seed=77")
    cards = "JSON.stringify([...session.state.fields().cards])"
    dealt = page.evaluate(cards)
    page.click(".poker-choices button")
    until(page, "session.moves.length > 0")
    page.keyboard.press("s")
    until(page, "session.moves.length === 0 && session.answer")
    assert page.evaluate(cards) == dealt
    assert "seed=77" in page.url
    page.keyboard.press("n")
    until(page, "session.seed !== 77 && session.answer")
    assert f"seed={page.evaluate('session.seed')}" in page.url


def test_flags_and_seat_are_chosen_in_the_form_and_stand_in_the_address(table):
    page = table("kuhn_poker?seed=1")
    open_panel(page, "setup")
    page.click(".setup-flags > summary")
    page.fill('.setup [name="deal"]', "4")
    page.select_option('.setup [name="seat"]', "1")
    page.fill('.setup [name="seed"]', "9")
    page.click(".setup [type=submit]")
    until(page, "session.seed === 9")
    until(page, ASKED)
    assert "seat=1" in page.url
    assert "set=deal=4" in page.url
    assert page.evaluate("[...session.state.fields().cards]") == [2, 0]
    assert page.evaluate("session.person") == 1


def test_a_mixture_is_drawn_by_the_seed(table):
    page = table("tic_tac_toe?seed=1")
    open_panel(page, "setup")
    page.click(".setup fieldset button")
    page.fill(".setup-weight >> nth=1", "3")
    page.click(".setup [type=submit]")
    until(page, "location.hash.includes('%2B')")
    assert "against=careful=1%2Brandom=3" in page.url
    met = set()
    for seed in range(8):
        page = table(f"tic_tac_toe?seed={seed}&against=careful=1%2Brandom=3")
        met.add(page.evaluate("session.players[1].name"))
    assert met == {"careful", "random"}


def test_somebody_can_only_watch(page, address):
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{address}/#/play/leduc_poker?seed=1&seat=watch&against=solid,caller")
    page.wait_for_selector(".verdict:not([hidden])")
    assert page.evaluate("session.players.map((p) => p.name)") == ["solid", "caller"]
    assert page.locator(".poker-choices button").count() == 0


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("tic_tac_toe?seat=5", "is not one of 0..1"),
        ("tic_tac_toe?seed=x", "is not a whole number"),
        ("tic_tac_toe?against=a,b,c", "3 players for 1 seats"),
    ],
)
def test_a_wrong_address_is_refused_in_words(page, address, route, said):
    page.goto(f"{address}/#/play/{route}")
    assert said in page.wait_for_selector(".notice.bad").inner_text()


def test_a_bot_has_no_mind(table):
    page = table("tic_tac_toe?seed=1")
    page.keyboard.press("m")
    page.locator(".panel-mind").get_by_text("Bots have no network").wait_for()  # once it is open


def test_an_agent_of_a_real_training_plays_and_shows_its_mind(table, runs):
    page = table("tic_tac_toe?seed=5&against=tiny@sampled")
    assert not page.locator(".mind-answer").is_visible()
    page.click('[data-action="4"]')
    until(page, "session.moves.length === 2")
    played = page.evaluate("session.moves[1][0]")
    page.keyboard.press("m")
    page.wait_for_selector(".mind-bars")
    shares = page.locator(".mind-share").all_inner_texts()
    assert sum(float(share.removesuffix(" %")) for share in shares) > 50
    name = page.evaluate(f"session.engine.actionName({played})")
    assert page.locator(".mind-bars .played .mind-name").inner_text() == f"{name} played"
    assert "b2" in page.locator(".mind-blocks").inner_text()
    policy = load_policy(runs / "tiny")
    state = sparring.new_state("tic_tac_toe", seed=5)
    state.apply(4)
    assert policy.action(state, greedy=False, seed=5, step=1) == played
    likeliest = float(shares[0].removesuffix(" %")) / 100
    assert abs(likeliest - policy.probabilities(*state.decision()).max()) < 1e-3
    told = page.locator(".mind-value strong").inner_text()
    assert abs(float(told) - policy.value(*state.decision())[0]) < 1e-3
    play_out(page)
    assert Replay.from_json(json.dumps(replay_of(page))).differences() == []


def test_an_agent_comments_on_a_game_of_bots(table):
    page = table("tic_tac_toe?seed=5&against=careful")
    page.click('[data-action="4"]')
    until(page, "session.moves.length === 2")
    page.keyboard.press("m")
    page.select_option(".panel-mind select", label="tiny")
    page.wait_for_selector(".mind-bars")
    assert "careful (seat 1) was to decide" in page.locator(".mind-where").inner_text()
    page.check(".mind-choice input")
    assert "to be made now" in page.locator(".mind-where").inner_text()


def test_two_tables_at_once(table, page, address):
    first = table("tic_tac_toe?seed=1")
    second = page.context.new_page()
    second.goto(f"{address}/#/play/leduc_poker?seed=2")
    until(second, "window.session?.answer")
    first.click('[data-action="4"]')
    second.click(".poker-choices button")
    until(first, "session.moves.length === 2")
    until(second, "session.moves.length > 0")
    assert first.evaluate("session.rules.name") == "tic_tac_toe"
    assert second.evaluate("session.rules.name") == "leduc_poker"


def test_leaving_a_table_closes_it(table):
    page = table("tic_tac_toe?seed=1")
    page.evaluate("window.left = session")
    page.click("nav >> text=Play")
    page.wait_for_selector(".tile")
    until(page, "window.left.closed && window.left.state.handle === 0")


def test_a_phone_has_no_sideways_scrolling(page, address):
    page.set_viewport_size({"width": 375, "height": 740})
    for route in ("play", "play/leduc_poker?seed=3", "play/tic_tac_toe?seed=3", "replay"):
        page.goto(f"{address}/#/{route}")
        page.wait_for_selector("h1")
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_replay_goes_round_by_a_file(table, tmp_path):
    page = table("leduc_poker?seed=21")
    play_out(page)
    played = replay_of(page)
    open_panel(page, "share")
    with page.expect_download() as caught:
        page.click("text=Download")
    file = tmp_path / caught.value.suggested_filename
    caught.value.save_as(file)
    assert Replay.read(file).differences() == []
    page.goto(page.url.partition("#")[0] + "#/replay")
    page.set_input_files("input[type=file]", file)
    page.wait_for_selector(".player-controls")
    last = len(played["actions"])
    assert page.locator(".player-slider output").inner_text() == f"0 / {last}"
    page.keyboard.press("ArrowRight")
    until(page, f"document.querySelector('output').textContent === '1 / {last}'")
    page.keyboard.press("End")
    until(page, f"document.querySelector('output').textContent === '{last} / {last}'")
    score = page.locator('.plate[data-seat="0"] .plate-score').inner_text()
    assert float(score) == played["scores"][0]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Home")
    assert page.locator(".player-slider output").inner_text() == f"0 / {last}"
    assert page.locator(".poker-card.back").count() == 1  # the table's, in the first round
    page.select_option("[aria-label='Through whose eyes']", "1")
    assert page.locator('.poker-seat[data-seat="0"] .back').count() == 1
    assert "sparring replay" in page.locator(".panel-film pre").text_content()


def test_a_replay_plays_by_itself(table):
    page = table("tic_tac_toe?seed=3")
    play_out(page)
    open_panel(page, "share")
    page.click("text=Look at it")
    page.wait_for_selector(".player-controls")
    page.select_option("[aria-label=Speed]", "16")
    page.keyboard.press(" ")
    last = page.locator(".steps li").count()
    until(page, f"document.querySelector('output').textContent === '{last} / {last}'")
    page.wait_for_selector("[aria-label=Play]")


def test_continue_from_a_step_of_a_replay(table):
    page = table("tic_tac_toe?seed=3&against=careful")
    play_out(page)
    actions = replay_of(page)["actions"]
    open_panel(page, "share")
    page.click("text=Look at it")
    page.wait_for_selector(".player-controls")
    page.click('.steps [data-step="2"]')
    open_panel(page, "go-on")
    page.click("text=Continue from here")
    until(page, "window.session?.moves?.length === 2 && session.answer")
    assert page.evaluate("session.moves.map((m) => m[0])") == actions[:2]
    assert page.locator(".log li").count() == 2
    page.reload()
    until(page, "window.session?.moves?.length === 2 && session.answer")
    play_out(page)
    assert Replay.from_json(json.dumps(replay_of(page))).differences() == []


def test_the_server_keeps_replays_and_lists_them(table, page, serve, address):
    page.goto(serve.pages[address])
    table("kuhn_poker?seed=8")
    play_out(page)
    open_panel(page, "share")
    page.click("text=Keep on the server")
    page.wait_for_selector("text=Kept as")
    page.click("nav >> text=Replays")
    page.wait_for_selector(".replays")
    assert "kuhn_poker" in page.locator(".replays tbody").inner_text()
    page.click(".replays tbody a")
    page.wait_for_selector(".player-controls")


def test_the_mind_of_an_agent_at_every_step_of_a_replay(table):
    page = table("tic_tac_toe?seed=3&against=tiny")
    play_out(page)
    open_panel(page, "share")
    page.click("text=Look at it")
    page.wait_for_selector(".player-controls")
    page.keyboard.press("m")
    page.select_option(".panel-mind select", label="tiny")
    page.wait_for_selector(".mind-bars")
    page.click('.steps [data-step="1"]')
    assert "tiny (seat 1) was to decide" in page.locator(".mind-where").inner_text()
    assert page.locator(".mind-bars .played").count() == 1


GOOD = {
    "format": "sparring-replay",
    "version": 1,
    "game": "tic_tac_toe",
    "rules_version": 1,
    "flags": {},
    "seed": 1,
    "players": ["person", "careful"],
    "actions": [4, 0, 8],
    "scores": [0, 0],
    "end": None,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"actions": [4, 0, 4]}, "step 3: b2 cannot be played there"),
        ({"actions": [4, "a"]}, 'step 2: "a" is no action'),
        ({"actions": [0, 3, 1, 4, 2, 5]}, "step 6: the game was over"),
        ({"rules_version": 9}, "version 9 of the rules"),
        ({"format": "other"}, "this is no replay"),
        ({"version": 2}, "version 2"),
        ({"players": ["a"]}, "needs 2 names"),
        ({"seed": "x"}, "no whole number"),
    ],
)
def test_a_replay_that_does_not_fit_is_refused_in_words(page, address, changes, said):
    page.goto(f"{address}/#/replay?data={as_data({**GOOD, **changes})}")
    assert said in page.wait_for_selector(".notice.bad").inner_text()


def test_an_unknown_game_is_refused_in_words(page, address):
    page.goto(f"{address}/#/replay?data={as_data({**GOOD, 'game': 'chess'})}")
    assert "chess" in page.wait_for_selector(".notice.bad").inner_text()
    page.complaints.clear()  # the browser reports the server's refusal, as it should
