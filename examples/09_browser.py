"""9. In a browser: an agent as one HTML file that plays by itself.

You learn: how to give an agent to somebody who has nothing but a browser, and what to do where
this build of sparring has no games for browsers.

    python examples/09_browser.py
    sparring serve                 # all agents and runs of this folder, as pages of a server

The file holds rules, bots, network and pictures. It opens from a disk or a mail, without a server
and without the internet.

It takes 11 s of processor time (README.md says where) and prints:

    against careful 62.8% (59.3% to 66.2%)
    agent.html: ... plays tic_tac_toe, 275.4 KiB
    inside: wasm 65.3 KiB, network 30.0 KiB, script 132.6 KiB, ...; bots random, careful
    Open it in a browser, from a disk or from any server; it needs no network.
    A double click opens it: agent.html
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import sparring
from sparring.cli import main as sparring_command

PAGE = Path("agent.html")


def main(arguments: Sequence[str] | None = None) -> Path | None:
    """Train, measure and export an agent; return the page, or None if it cannot be written here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=100, help="rollouts to learn from")
    parser.add_argument("--games", type=int, default=1000, help="of each match")
    given = parser.parse_args(arguments)

    agent = sparring.train(
        "tic_tac_toe", updates=given.updates, seed=1, quiet=True, eval={"off": True}
    )
    match = agent.evaluate("careful", games=given.games)["careful"].first
    low, high = match.win_interval
    print(f"against careful {match.win_share:.1%} ({low:.1%} to {high:.1%})")

    # Every command of the command line can be called like this; it returns the exit code. A browser
    # runs the C++ rules of the game as WebAssembly. Wheels have these modules, and a build from
    # sources has them after `make web`; without them the command says so, in a line.
    code = sparring_command(["export", str(agent.run), "--html", str(PAGE)])
    if code != 0:
        print("No page here. The agent plays in a terminal: sparring play latest")
        return None
    print(f"A double click opens it: {PAGE}")
    return PAGE


if __name__ == "__main__":
    main()
