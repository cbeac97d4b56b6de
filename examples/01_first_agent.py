"""1. The first agent: train, measure, save, load, and watch a game.

You learn: the whole way of an agent, in five calls of `sparring`.

    python examples/01_first_agent.py

It takes 9 s of processor time (README.md says where) and prints:

    trained on 819,200 decisions
    against random    97.7%   (96.9% to 98.3%)
    against careful   62.9%   (59.7% to 66.1%)

    and a game, move by move, which ends:

    O . X
    . X O
    X O X

    scores: agent +1, careful -1
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import sparring

GAME = "tic_tac_toe"


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Train an agent and let it play; return its win shares by opponent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=100, help="rollouts to learn from")
    parser.add_argument("--games", type=int, default=2000, help="of each match")
    given = parser.parse_args(arguments)

    # 1. Train. Every setting of `sparring train` is a keyword: a budget (here updates, so that
    #    every run does the same; `minutes=5` is a time), a seed, the parts of the algorithm. An
    #    update plays 256 games for 32 moves each and learns from all of them. Opponents are the
    #    agent itself and random play, as the preset of this game has it.
    agent = sparring.train(
        GAME,
        updates=given.updates,
        seed=1,
        quiet=True,  # leave it out to see the panel with curves
        eval={"off": True},  # no matches meanwhile; they come below
    )
    print(f"trained on {agent.decisions:,} decisions")

    # 2. Measure. A match gives every deal to every seat; the share counts a draw as half a win, and
    #    the interval holds the true share in 95 of 100 matches. An equal player would have 50 %.
    #    `careful` wins if it can, blocks if it must, and moves at random otherwise.
    shares = {}
    for name, match in agent.evaluate("random", "careful", games=given.games).items():
        low, high = match.first.win_interval
        shares[name] = match.first.win_share
        print(f"against {name:8} {shares[name]:6.1%}   ({low:.1%} to {high:.1%})")

    # 3. Save and load. A saved agent is a folder of data; loading it runs no code.
    folder = agent.save("my-agent")
    loaded = sparring.load(folder)

    # 4. Play. A state is one game: whose turn it is, what is legal, what it looks like. The loaded
    #    agent moves first, a bot of the game answers.
    state = sparring.new_state(GAME, seed=3)
    while not state.over:
        seat = state.seat
        action = loaded.action(state) if seat == 0 else state.ask("careful")
        name = "agent" if seat == 0 else "careful"
        move = state.action_name(action)
        state.apply(action)
        print(f"\n{name} plays {move}\n{state}")
    print(f"\nscores: agent {state.scores[0]:+.0f}, careful {state.scores[1]:+.0f}")
    print("Your turn: sparring play my-agent")
    return shares


if __name__ == "__main__":
    main()
