"""How long bots and networks think per move in a browser: Chromium, one tab, one core.

    python benchmarks/browser_moves.py [--modules FOLDER]

Needs what `make web` installs, and Chromium.
"""

from __future__ import annotations

import argparse
import base64
import json
import platform
import shutil
import threading
import time
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.web import modules
from sparring.web.networks import pack_network
from sparring.web.server import make_app

PORT = 8209
PERCEPTRON = NetConfig()
GAMES: dict[str, dict[str, NetConfig]] = {
    "skull_king": {"mlp 256x256": PERCEPTRON},
    "kuhhandel": {"mlp 256x256": PERCEPTRON},
    "laser_hockey": {"mlp 256x256": PERCEPTRON},
    "shogi": {
        "residual 24x2": NetConfig(kind="residual", channels=24, blocks=2),
        "residual 128x6": NetConfig(kind="residual", channels=128, blocks=6),
    },
}
# Games between bots, drawn at random move by move; all of them and the networks are asked for every
# move, each in a copy of the state.
MEASURE = """
async ({ game, packed, moves }) => {
  const { Engine } = await import("/app/engine/engine.js");
  const { Network } = await import("/app/engine/network.js");
  const read = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const rules = await (await fetch(`/api/games/${game}`)).json();
  const wasm = await (await fetch(`/wasm/${game}.wasm`)).arrayBuffer();
  const began = performance.now();
  const engine = await Engine.load(wasm, rules);
  const ready = performance.now() - began;
  const thinkers = {};
  rules.bots.forEach((name, bot) => (thinkers[name] = (state, row) => state.ask(bot, row)));
  for (const [name, text] of Object.entries(packed)) {
    const network = Network.load(engine, read(text));
    thinkers[name] = (state, row) => network.action(state, row, { greedy: false });
  }
  const times = Object.fromEntries(Object.keys(thinkers).map((name) => [name, []]));
  let state = engine.state(1);
  for (let move = 0, seed = 1; move < moves; ++move) {
    if (state.over) {
      state.free();
      state = engine.state(++seed);
    }
    const actions = [];
    for (let row = 0; row < rules.rows; ++row) {
      const answers = [];
      for (const [name, think] of Object.entries(thinkers)) {
        const copy = state.clone();
        const from = performance.now();
        const answer = think(copy, row);
        times[name].push(performance.now() - from);
        copy.free();
        if (rules.bots.includes(name)) answers.push(answer);
      }
      actions.push(answers[(move * 7 + row) % answers.length]);
    }
    state.apply(...actions);
  }
  const shown = {};
  for (const [name, all] of Object.entries(times)) {
    const sum = all.reduce((a, b) => a + b); // a browser's clock is coarse, its mean is not
    shown[name] = [sum / all.length, Math.max(...all)];
  }
  return { ready, bytes: wasm.byteLength, times: shown };
}
"""


def main() -> None:
    """Print a line per game and player."""
    options = argparse.ArgumentParser()
    options.add_argument("--modules", help="folder with other modules than those of the build")
    options.add_argument("--moves", type=int, default=300)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    if given.modules:
        modules.MODULES = Path(given.modules)
    server = uvicorn.Server(uvicorn.Config(make_app(Path("runs")), port=PORT, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    with sync_playwright() as driver:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{PORT}/")
        found = {game: measure(page, game, given.moves) for game in GAMES}
        version = browser.version
        browser.close()
    server.should_exit = True
    if given.json:
        print(json.dumps(found))
        return
    print(f"Chromium {version}, {platform.machine()}; ms per move: mean, longest")
    for game, said in found.items():
        print(f"{game}: module {said['bytes']:,} bytes, ready in {said['ready']:.0f} ms")
        for name, (mean, longest) in said["times"].items():
            print(f"  {name:15} {mean:8.3f} {longest:8.1f}")


def measure(page: Page, game: str, moves: int) -> dict:
    """Return the times of all players of a game."""
    rules, packed = Rules(game), {}
    for name, config in GAMES[game].items():
        policy = Policy(rules, make_net(rules, config), name=name)
        packed[name] = base64.b64encode(pack_network(policy)).decode()
    return page.evaluate(MEASURE, {"game": game, "packed": packed, "moves": moves})


if __name__ == "__main__":
    main()
