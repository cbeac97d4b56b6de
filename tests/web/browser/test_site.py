"""A static site of all champions: every game is played to its end, and no other host is asked."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sparring import Replay
from sparring.store.champions import champion_games
from sparring.store.policies import load_policy
from sparring.web.description import MODULES
from sparring.web.networks import pack_network
from sparring.web.site import write_site

BELOW = "some/docs/play"
"""Folder of the site below the top of the server: addresses are relative."""
PLAY = """async () => {
  const { session } = window;
  let drawn = 7;
  const pick = (all) => all[(drawn = (48271 * drawn) % 2147483647) % all.length];
  const end = Date.now() + 240000;
  while (!session.state.over && !(session.points?.length > 0)) {
    if (session.answer) session.choose(pick(session.answer.legal));
    if (Date.now() > end) throw new Error(`not over after ${session.moves.length} steps`);
    await new Promise((go) => setTimeout(go, 0));
  }
  return JSON.stringify(session.points?.[0] ?? session.replay());
}"""
"""Plays the person's seat at random until the game, or the first point, is over."""


class Quiet(SimpleHTTPRequestHandler):
    """A static server that compresses text, as most do."""

    def log_message(self, *args: object) -> None:
        pass

    def send_head(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() and self.path.endswith("/") else path
        if path.suffix not in (".html", ".js", ".css", ".svg") or not path.is_file():
            return super().send_head()
        body = gzip.compress(path.read_bytes())
        self.send_response(200)
        self.send_header("content-type", self.guess_type(str(path)))
        self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Iterator[str]:
    """The address of a site of all champions."""
    if not all((MODULES / f"{game}.wasm").is_file() for game in champion_games()):
        pytest.skip("no WebAssembly modules here; make web builds them")
    top = tmp_path_factory.mktemp("space")
    write_site(top / BELOW)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=top))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{BELOW}/"
    server.shutdown()


@pytest.fixture
def visitor(browser, site):
    """A page. A request to another host, a complaint and a violated policy fail the test."""
    context = browser.new_context(viewport={"width": 1100, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda wrong: complaints.append(str(wrong)))
    page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
    page.add_init_script(
        "if (location.protocol === 'http:') localStorage.setItem('sparring-quick-table', 'yes');"
        "document.addEventListener('securitypolicyviolation', (event) =>"
        " console.error(`${event.violatedDirective} ${event.blockedURI}`));"
    )
    page.complaints = complaints
    yield page
    context.close()
    assert asked
    assert [url for url in asked if not url.startswith((site, f"blob:{site[:20]}"))] == []
    assert complaints == []


def until(page, expression, seconds=60):
    """Wait for something in the page. (Playwright's own way needs eval, which it forbids.)"""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if page.evaluate(f"() => Boolean({expression})"):
            return
        page.wait_for_timeout(20)
    raise TimeoutError(expression)


def sit_down(page, address):
    page.goto("about:blank")
    page.goto(address)
    until(page, "window.session")


@pytest.mark.parametrize("game", champion_games())
def test_a_whole_game_is_played_against_the_champion(visitor, site, game):
    sit_down(visitor, f"{site}{game}/#/play/{game}?seed=3&seat=0&against=champion")
    played = Replay.from_json(visitor.evaluate(PLAY))
    assert played.end in played.rules.ends
    assert played.differences() == []
    assert list(played.players) == ["person", *["champion"] * (played.rules.seats - 1)]


@pytest.mark.parametrize("game", champion_games())
def test_the_network_is_the_champion_bit_for_bit(visitor, site, game):
    seat = "watch" if game == "cage2" else "0"  # whose defender is alone
    sit_down(visitor, f"{site}{game}/#/play/{game}?seed=1&seat={seat}")
    network = "window.session.players.find(({ kind }) => kind === 'agent').network"
    until(visitor, f"{network}.handle")
    found = visitor.evaluate(
        f"""async () => {{
          const sum = await crypto.subtle.digest("SHA-256", {network}.packed);
          return Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join("");
        }}"""
    )
    policy = load_policy(f"{game}:champion", name="champion")
    assert found == hashlib.sha256(pack_network(policy)).hexdigest()


def test_the_index_leads_to_every_game_and_the_keys_do(visitor, site):
    visitor.goto(site)
    cards = visitor.eval_on_selector_all(".card", "(all) => all.map((a) => a.href)")
    assert sorted(cards) == [f"{site}{game}/" for game in champion_games()]
    visitor.focus(".card >> nth=0")
    visitor.keyboard.press("Enter")
    visitor.wait_for_url("**/tic_tac_toe/**")
    until(visitor, "window.session?.answer")
    visitor.keyboard.press("5")  # the middle of tic-tac-toe
    until(visitor, "window.session.moves.length === 2")
    log = visitor.inner_text("[role=status].status-line")
    assert log
    visitor.click("text=Games")
    visitor.wait_for_selector(".cards")


def test_a_table_says_what_to_do(visitor, site):
    visitor.goto(f"{site}connect_four/")
    until(visitor, "window.session?.answer")
    assert visitor.inner_text(".status-line") == "Your turn: click a column."
    assert "deal" not in visitor.inner_text(".play-buttons").lower()
    visitor.evaluate("() => window.session.choose(3)")
    until(visitor, "window.session.moves.length === 2 && window.session.answer")
    told = visitor.inner_text(".status-line")
    assert told.startswith("champion: ")
    assert told.endswith(". Your turn: click a column.")


def test_levels_are_chosen_and_a_search_runs_in_a_worker(visitor, site):
    visitor.goto(f"{site}connect_four/")
    until(visitor, "window.session?.answer")
    words = visitor.eval_on_selector_all(
        ".play-against option", "(all) => all.map((option) => option.value)"
    )
    assert words[:2] == ["champion", "champion@level1"]
    assert "champion@level9" in words
    assert words[-3:] == ["careful", "ab4", "ab6"]
    visitor.select_option(".play-against select", "champion@level6")
    until(visitor, "window.session.players[1].name === 'champion@level6'")
    until(visitor, "window.session.answer")
    visitor.evaluate("() => window.session.choose(3)")
    until(visitor, "window.session.moves.length === 2")


def test_the_first_move_does_not_wait_for_the_network(visitor, site):
    held = []

    def hold(route):
        held.append(route)

    visitor.route("**/network.bin*", hold)
    visitor.goto(f"{site}shogi/")
    until(visitor, "window.session?.answer")
    assert "being fetched" in visitor.inner_text(".arriving")
    visitor.evaluate("() => window.session.choose(window.session.answer.legal[0])")
    until(visitor, "window.session.moves.length === 1")
    held[0].continue_()
    until(visitor, "window.session.moves.length === 2")
    until(visitor, "!document.querySelector('.arriving')")


def test_a_network_that_does_not_come_is_asked_for_again(visitor, site):
    visitor.route("**/network.bin*", lambda route: route.abort())
    visitor.goto(f"{site}tic_tac_toe/")
    until(visitor, "document.querySelector('.arriving [role=alert]')")
    assert "network.bin" in visitor.inner_text(".arriving")
    visitor.evaluate("() => window.session.choose(window.session.answer.legal[0])")
    until(visitor, "document.querySelector('.notice.bad')")
    visitor.unroute("**/network.bin*")
    visitor.click("text=Try again")
    until(visitor, "window.session.moves.length === 2")
    assert visitor.complaints
    visitor.complaints.clear()  # the browser's own about what the test cut off


def test_a_link_holds_the_whole_game(visitor, site):
    sit_down(visitor, f"{site}skull_king/#/play/skull_king?seed=3&seat=0&against=champion@level3")
    played = json.loads(visitor.evaluate(PLAY))
    assert set(played["players"]) == {"person", "champion@level3"}
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.evaluate("() => (document.querySelector('.panel-share').open = true)")
    visitor.click("text=Copy link")
    until(visitor, "document.querySelector('.toast')")
    link = visitor.evaluate("() => navigator.clipboard.readText()")
    assert link.startswith(f"{site}skull_king/#/replay?data=")
    visitor.goto("about:blank")
    visitor.goto(link)
    visitor.wait_for_selector(".replay .player-controls")
    steps = f"/ {len(played['actions'])}"
    assert steps in visitor.inner_text(".player-slider output")


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("replay?data=eyJhIjo", "holds no whole replay"),
        ("replay?data=e30", "this is no replay"),
        ("play/tic_tac_toe?against=another", "holds champion, not another"),
        ("play/tic_tac_toe?seed=no", "is not a whole number"),
        ("play/shogi", "plays tic_tac_toe, not shogi"),
        ("play/tic_tac_toe?against=champion@level3@64", "or one level"),
    ],
)
def test_a_bad_link_says_what_is_wrong(visitor, site, part, told):
    visitor.goto(f"{site}tic_tac_toe/#/{part}")
    visitor.wait_for_selector(".notice")
    assert told in visitor.inner_text(".notice")


class Firefox:
    """A headless Firefox, told what to do by WebDriver BiDi over a socket of its own."""

    def __init__(self, profile: Path) -> None:
        program = shutil.which("firefox") or shutil.which("firefox-esr")
        if program is None:
            pytest.skip("no Firefox here; on Debian: apt install firefox-esr")
        client = pytest.importorskip("websockets.sync.client", reason="make web installs it")
        command = [program, "--headless", "--profile", str(profile), "--remote-debugging-port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr
        found = None
        while not found:
            line = self.process.stderr.readline()
            assert line, "Firefox ended before it listened"
            found = re.search(r"BiDi listening on (ws://\S+)", line)
        self.opened = client.connect(f"{found[1]}/session", max_size=None)
        self.socket = self.opened.__enter__()
        self.events: list[dict] = []
        self.sent = 0
        self.ask("session.new", capabilities={})
        events = ["network.beforeRequestSent", "log.entryAdded"]
        self.ask("session.subscribe", events=events)
        self.tab = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method, seconds=280, **params):
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv(timeout=seconds))
            if answer.get("id") == self.sent:
                assert answer["type"] == "success", answer
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        target = {"context": self.tab}
        found = self.ask("script.evaluate", expression=expression, target=target, awaitPromise=True)
        assert found["type"] == "success", found
        return found["result"].get("value")

    def close(self):
        self.opened.__exit__(None, None, None)
        self.process.terminate()
        self.process.wait(20)


def test_a_whole_game_in_firefox(site, tmp_path):
    firefox = Firefox(tmp_path)
    try:
        address = f"{site}connect_four/#/play/connect_four?seed=3&seat=0&against=champion"
        firefox.ask("browsingContext.navigate", context=firefox.tab, url=address, wait="complete")
        end = time.monotonic() + 60
        while not firefox.evaluate("Boolean(window.session)"):
            assert time.monotonic() < end
        played = Replay.from_json(firefox.evaluate(f"({PLAY})()"))
    finally:
        firefox.close()
    assert played.end in played.rules.ends
    assert played.differences() == []
    requests = [
        event["params"]["request"]["url"]
        for event in firefox.events
        if event["method"] == "network.beforeRequestSent"
    ]
    assert any("network.bin" in url for url in requests)
    own = (site, "data:")  # a font of the browser's own
    assert [url for url in requests if not url.startswith(own)] == []
    logged = [e["params"] for e in firefox.events if e["method"] == "log.entryAdded"]
    assert [entry["text"] for entry in logged if entry["level"] in ("error", "warn")] == []
