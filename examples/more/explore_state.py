"""A single game: observe, ask a bot, try a move on a copy, save and load.

python examples/more/explore_state.py
"""

from __future__ import annotations

import sparring


def main() -> None:
    """Walk through the first rounds of a game of Skull King."""
    state = sparring.new_state("skull_king", seed=7)
    while state.fields()["round"][0] < 3:
        state.apply(state.ask("captain"))
    print(state.text(state.seat))
    print()

    print(f"seat {state.seat} may:", ", ".join(state.action_name(a) for a in state.legal()))
    print("rule_hard would choose:", state.action_name(state.clone().ask("rule_hard")))

    # What the hand is worth: play it out many times, other hands dealt anew each time.
    seat, rounds = state.seat, 200
    for bid in state.legal():
        paid = 0.0
        for number in range(rounds):
            world = state.clone()
            world.resample_hidden(seat, seed=number)
            world.apply(bid)
            while not world.over and world.fields()["round"][0] == 3:
                world.apply(world.ask("captain"))
                paid += world.rewards[seat]
        print(f"  {state.action_name(bid)}: {100 * paid / rounds:6.1f} points on average")

    same = sparring.load_state(state.serialize())
    print("loaded again:", same.text() == state.text())


if __name__ == "__main__":
    main()
