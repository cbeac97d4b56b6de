"""Milliseconds per move of agents that search in Chromium: python benchmarks/browser_search.py
runs/c4 runs/shogi --simulations 200

Each plays itself, in all seats and with the flags of its training, through the page's own code: the
worker, the module, the network. Only moves with a choice count. The first one starts the worker and
is told apart. Needs WebAssembly modules, Playwright and Chromium (make web).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from sparring.games.flags import changed_flags
from sparring.store.policies import load_policy

PLAY = """async ({ game, flags, agent, way, moves }) => {
  const { loadGame } = await import("/app/play/load.js");
  const { ParticipantsBuilder } = await import("/app/play/lineup.js");
  const { engine } = await loadGame(game, flags);
  const { network } = await new ParticipantsBuilder(engine).player({ name: agent, way });
  const taken = [];
  let [seed, state] = [1, engine.state(1)];
  while (taken.length < moves) {
    const began = performance.now();
    const action = await network.action(state, 0, { seed });
    if (engine.rules.box || state.legal().length > 1) taken.push(performance.now() - began);
    state.apply(action);
    if (state.over) state = engine.state(++seed);
  }
  return taken;
}"""


def measured(page: Any, run: Path, simulations: str, moves: int) -> dict[str, Any]:
    """Play moves with a run's agent; return its figures."""
    policy = load_policy(run)
    game = policy.rules.name
    wish = {"game": game, "flags": changed_flags(policy.rules), "agent": run.name}
    first, *taken = page.evaluate(PLAY, {**wish, "way": simulations, "moves": moves + 1})
    taken.sort()
    return {
        "game": game,
        "seats": policy.rules.seats,
        "network": policy.net.config.kind,
        "parameters": sum(p.numel() for p in policy.net.parameters()),
        "simulations": simulations,
        "moves": moves,
        "median_ms": round(taken[len(taken) // 2], 1),
        "longest_ms": round(taken[-1], 1),
        "first_ms": round(first, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="runs of one folder")
    parser.add_argument("--simulations", nargs="+", default=["200"])
    parser.add_argument("--moves", type=int, default=60)
    options = parser.parse_args()
    command = [sys.executable, "-m", "sparring", "serve", str(options.runs[0].parent)]
    server = subprocess.Popen(
        [*command, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout
    told = ""
    while not told.rstrip().endswith("}"):
        told += server.stdout.readline()
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            for run in options.runs:
                for simulations in options.simulations:
                    page = browser.new_page()
                    page.goto(f"{json.loads(told)['address']}/#/play")
                    print(json.dumps(measured(page, run, simulations, options.moves)), flush=True)
                    page.close()
            browser.close()
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
