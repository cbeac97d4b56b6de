"""What pages show, without a browser: their own modules over a small document."""

from __future__ import annotations

import json

from sparring.web.bundle import APP, GAMES
from web.scripts import run_modules

MINUS = "\N{MINUS SIGN}"


def test_layers_of_a_network_are_cells_of_a_table():
    layers = [
        {"name": "first", "kind": "FirstLayer", "shape": [19, 64], "parameters": 1280, "macs": 1216}
    ]
    network = {"parameters": 1280, "macs": 1216, "layers": layers}
    facts = {"machine": {}, "network": network, "overview": {"name": "a"}}
    cells = run_modules(
        'import { machineTab } from "/app/runs/facts.js";\n'
        f"const table = machineTab({json.dumps(facts)}).all('tbody')[0];\n"
        "const rows = table.all('tr');\n"
        "answer(rows.map((row) => row.children.map((cell) => cell.textContent)));\n"
    )
    assert cells == [["first", "FirstLayer", "19 × 64", "1,280", "1,216"]]


def test_a_run_says_how_its_network_is_computed_if_it_knows():
    line = "ppo, perceptron 19-64-64-10, native float32"
    told = [{"path": line}, {"path": 7}, {"parameters": 3}, [], None]
    shown = run_modules(
        'import { pathText } from "/app/runs/facts.js";\n'
        f"answer({json.dumps(told)}.map((network) => pathText({{ network }})));\n"
    )
    assert shown == [line, "", "", "", ""]


def test_children_in_lists_of_lists_are_elements_and_no_text():
    shown = run_modules(
        'import { el, replace } from "/app/dom.js";\n'
        'const links = () => [["a", "b"].map((name) => el("a", {}, name)), undefined, null];\n'
        "const [one, two] = [el('p', {}, [links()]), replace(el('p', {}), 'x', [links()])];\n"
        "answer([one, two].map((place) => [place.all('a').length, place.textContent]));\n"
    )
    assert shown == [[2, "ab"], [2, "xab"]]


def test_an_error_takes_the_place_of_what_was_being_made():
    shown = run_modules(
        'import { startFrame } from "/app/frame.js";\n'
        'import { el } from "/app/dom.js";\n'
        "const show = async (host) => {\n"
        '  host.append(el("p", {}, "Setting the table …"));\n'
        '  throw new Error("there is no game x");\n'
        "};\n"
        'startFrame({ play: { show } }, "play");\n'
        'setTimeout(() => answer(document.getElementById("page").textContent), 20);\n'
    )
    assert shown == "there is no game xTry again"


BOARD = """
import { Board } from "/app/charts/board.js";
globalThis.requestAnimationFrame = (drawn) => setTimeout(drawn);
globalThis.cancelAnimationFrame = clearTimeout;
for (const name of ["IntersectionObserver", "ResizeObserver"]) {
  globalThis[name] = class { observe() {} disconnect() {} };
}
const chart = (name, width) => ({
  name, visible: false, drawn: null, draws: 0, plot: { clientWidth: width },
  end: () => 1, draw() { this.drawn = {}; this.draws += 1; }, point() {},
});
const stop = new AbortController();
const board = new Board({ signal: stop.signal });
const charts = [chart("seen", 300), chart("below", 300), chart("folded", 0)];
charts.forEach((one) => board.add(one));
charts[0].visible = true;
const draws = () => Object.fromEntries(charts.map(({ name, draws }) => [name, draws]));
"""


def test_charts_below_the_first_screen_are_drawn_when_the_page_is_idle():
    drawn = run_modules(
        BOARD + "setTimeout(() => { stop.abort(); board.close(); answer(draws()); }, 300);\n"
    )
    assert drawn["below"] == 1
    assert drawn["folded"] == 0, "one without a size cannot be drawn"


def test_every_chart_is_drawn_as_it_is_now_before_the_page_is_printed():
    drawn = run_modules(BOARD + 'fire("beforeprint");\nboard.close();\nanswer(draws());\n')
    assert drawn["seen"] == drawn["below"] == 1


def test_pages_have_one_minus_sign():
    files = [*APP.rglob("*.js"), *GAMES.glob("*/*.js")]
    assert not [file.name for file in files if MINUS in file.read_text("utf-8")]


def test_a_note_with_markup_is_text_and_tags_lead_to_their_runs():
    shown = run_modules(
        'import { showLabels } from "/app/runs/labels.js";\n'
        'import { el } from "/app/dom.js";\n'
        'const place = el("div", {});\n'
        'showLabels(place, { name: "a", note: "<b>wide</b>", tags: ["good", "c++"] }, () => {});\n'
        'answer([place.all(".note")[0].children, place.all("b").length,\n'
        '  place.all("a").map((one) => one.getAttribute("href"))]);\n'
    )
    assert shown == [["<b>wide</b>"], 0, ["#/runs?tag=good", "#/runs?tag=c%2B%2B"]]


def test_where_pages_cannot_play_the_play_button_is_gray_and_says_why():
    link = (
        'import { playLink } from "/app/runs/facts.js";\n'
        'const facts = { overview: { game: "shogi" }, settings: [], unplayable: WHY };\n'
        'const { attributes } = playLink(facts, "a", "Play against it", "button primary");\n'
        "answer([attributes.href ?? null, attributes.title ?? null]);\n"
    )
    assert run_modules(link.replace("WHY", '""')) == ["#/play/shogi?against=a", None]
    assert run_modules(link.replace("WHY", '"run make web"')) == [None, "run make web"]
