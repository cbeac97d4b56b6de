"""7. Recorded games: write them, look at them, and learn from them before any self-play.

You learn: what a replay file is, and how a run begins with the moves of good players (imitation)
instead of random ones.

    python examples/07_recorded_games.py
    sparring replay games/connect_four-7.json      # step through one of the files

It takes 42 s of processor time (README.md says where) and prints:

    400 games; the first: 37 moves in 310 bytes, its end:
    . O . X X . O
    O X . O O . X
    X O X O O X O
    O O X X X O X
    O X O O X X X
    X O X O X O X

    clone     against careful: 47.9% (44.7% to 51.0%)
    self-play against careful: 8.2% (6.6% to 10.2%)
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import sparring

GAME, TEACHER = "connect_four", "ab4"
"""ab4 looks four moves ahead."""


def record(folder: Path, games: int) -> list[Path]:
    """Let the teacher play itself, and write every game to a file."""
    folder.mkdir(exist_ok=True)
    files = []
    for seed in range(games):
        state, actions = sparring.new_state(GAME, seed=seed), []
        choose = random.Random(seed)
        while not state.over:
            # Without some random moves the teacher would play the same game again and again.
            stray = len(actions) < 4 or choose.random() < 0.1
            actions.append(choose.choice(state.legal()) if stray else state.ask(TEACHER))
            state.apply(actions[-1])
        replay = sparring.Replay.of(state, actions, [TEACHER, TEACHER])
        files.append(replay.write(folder / f"{GAME}-{seed}.json", replace=True))
    return files


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Record, imitate, measure; return win shares against a bot, of the clone and of self-play."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recorded", type=int, default=400, help="games of the teacher")
    parser.add_argument("--epochs", type=int, default=15, help="passes over the recorded games")
    parser.add_argument("--games", type=int, default=1000, help="of each match")
    given = parser.parse_args(arguments)

    # A file holds the start and the actions, no positions: rules restore them. It is data that
    # anybody may send you; a game that does not follow the rules is refused, with file and move.
    files = record(Path("games"), given.recorded)
    replay = sparring.Replay.read(files[0])
    positions = list(replay.states())
    size = files[0].stat().st_size
    print(f"{len(files)} games; the first: {len(positions) - 1} moves in {size} bytes, its end:")
    print(positions[-1])
    assert not replay.differences(), "playing it again gives another result"

    # `imitate` takes files, folders, bots and other runs. The run clones first, then goes on with
    # PPO, here for a single update; `imitated` in its folder is the clone as it was before.
    agent = sparring.train(
        GAME,
        imitate=("games/",),
        imitation={"epochs": given.epochs},
        updates=1,
        seed=1,
        quiet=True,
        eval={"off": True},
        net={"hidden": (128, 128)},
    )
    clone = sparring.load(agent.run / "imitated")

    # For comparison: a network that has seen ten times as many decisions, all of them its own.
    moves = sum(len(sparring.Replay.read(file).actions) for file in files)
    alone = sparring.train(
        GAME,
        decisions=10 * moves,
        seed=1,
        quiet=True,
        eval={"off": True},
        net={"hidden": (128, 128)},
    )
    shares = {}
    for name, player in {"clone": clone, "self-play": alone.policy}.items():
        # `Agent.evaluate` measures what was just trained, `sparring.evaluate` whatever plays:
        # loaded policies, bots, functions. `careful` wins if it can and blocks if it must.
        match = sparring.evaluate(player, ["careful"], games=given.games)["careful"].first
        low, high = match.win_interval
        shares[name] = match.win_share
        print(f"{name:9} against careful: {match.win_share:.1%} ({low:.1%} to {high:.1%})")
    return shares


if __name__ == "__main__":
    main()
