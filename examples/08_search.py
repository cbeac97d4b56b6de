"""8. Search: the same agent, with and without looking ahead.

You learn: how an agent gets a budget of simulations, what that is worth, and how to read the tree
behind a move.

    python examples/08_search.py
    sparring play connect_four --search 200     # against the champion that comes along

It takes 32 s of processor time (README.md says where) and prints:

    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . O O O . .
    . . X X X . .

    after 64 simulations f, value +1.00 from -1 (lost) to +1 (won)
    move  network  visits  value
       a     0.1%       3  -0.46
       b     2.1%      21  +1.00
       c    29.2%       3  -0.19
       d    40.6%       3  -0.17
       e    25.4%      10  -0.18
       f     2.5%      21  +1.00
       g     0.1%       3  -0.46
    main line: f

    network alone  against careful  18.0% (12.9% to 24.5%)
    searching      against careful  55.5% (48.4% to 62.4%)
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import sparring

GAME = "connect_four"


def read_tree(agent: sparring.Agent, simulations: int) -> list[str]:
    """Print what a search finds in a position where two moves win; return the main line."""
    state = sparring.new_state(GAME)
    for column in (3, 3, 2, 2, 4, 4):  # the first player has three in a row, open on both sides
        state.apply(column)
    print(state)

    search = agent.policy.search(budget=simulations)
    found = search.from_state(state)
    print(f"\nafter {simulations} simulations {state.action_name(found.action[0])}, ", end="")
    print(f"value {found.value[0]:+.2f} from -1 (lost) to +1 (won)")
    print("move  network  visits  value")
    # One line per move: how probable the network alone finds it, how often the search went there,
    # and the mean of what it found. A search asks the network where its lines end, and counts the
    # ends of games as what they are.
    for action, prior, visits, value, _child in search.edges():
        shown = f"{value:+.2f}" if visits else "    -"
        print(f"{state.action_name(action):>4}  {prior:7.1%}  {visits:6}  {shown}")
    line = []
    for action in search.line():  # the main line: best answers of both
        line.append(state.action_name(action))
        state.apply(action)
    print("main line:", " ".join(line))
    return line


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Train a weak agent, let it search; return win shares against a bot, both ways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=60, help="rollouts to learn from")
    parser.add_argument("--simulations", type=int, default=64, help="of every decision")
    parser.add_argument("--games", type=int, default=200, help="of each match")
    given = parser.parse_args(arguments)

    agent = sparring.train(
        GAME,
        updates=given.updates,
        seed=1,
        quiet=True,
        eval={"off": True},
        collect={"games": 128},
        net={"hidden": (128, 128)},
    )
    read_tree(agent, given.simulations)

    # The weights are the same in both; `searching` gives an agent that looks ahead at every
    # decision. A budget is a number of simulations, or a time ("500ms").
    shares = {}
    print()
    players = {"network alone": agent, "searching": agent.searching(given.simulations)}
    for name, player in players.items():
        match = player.evaluate("careful", games=given.games)["careful"].first
        low, high = match.win_interval
        shares[name] = match.win_share
        print(f"{name:14} against careful {match.win_share:6.1%} ({low:.1%} to {high:.1%})")
    return shares


if __name__ == "__main__":
    main()
