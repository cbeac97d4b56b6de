"""The rates of the five original projects beside ours, on their own work as nearly as it is known.

python benchmarks/originals.py                              all five, a few minutes on two cores
python benchmarks/originals.py --rows skull_king --device cuda
python benchmarks/originals.py --save originals.json --json

Every row trains with the network, epochs, batch and number of games of the original, by `sparring
bench train`, not with what is fast here. What an original does not state is our preset, and named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Original:
    """What an original project does, and how fast it said that it was."""

    game: str
    rate: str
    """Steps per second, and where they were measured."""
    equal: str
    """What is as in the original."""
    ours: str
    """What the original does not state, or what differs."""
    settings: str
    """A TOML file of settings."""
    options: tuple[str, ...] = ()
    """Of `sparring bench train`."""


ORIGINALS = {
    "skull_king": Original(
        "skull_king",
        "6,539 (its owner, a large desktop GPU)",
        "PPO, 512-512-256, 15 epochs, self-play",
        "128 games, 128 steps, minibatch 16,384; our observation and rules",
        """
opponents = ["self=1"]
[net]
hidden = [512, 512, 256]
[ppo]
epochs = 15
minibatch = 16384
[collect]
games = 128
steps = 128
""",
        ("--rounds", "4", "--warm-up", "1"),
    ),
    "kuhhandel": Original(
        "kuhhandel",
        "219 (its program on two Neoverse-N1 cores)",
        "MaskablePPO as Stable-Baselines3 sets it: two games, 2,048 steps, minibatch 64, 10 "
        "epochs, two towers of 64-64 with tanh, forced decisions asked",
        "its 497 actions are 96 here, since money is laid card by card; opponents are the newest "
        "past self",
        """
opponents = ["past=1"]
set = ["skip_forced=0"]
[net]
hidden = [64, 64]
activation = "tanh"
shared = false
[ppo]
epochs = 10
minibatch = 64
lr = 3e-4
[collect]
games = 2
steps = 2048
""",
        ("--rounds", "3", "--warm-up", "1"),
    ),
    "laser_hockey": Original(
        "laser_hockey",
        "5,661 (its owner, eight processes, with a GPU)",
        "SAC, eight games",
        "its network and gradient steps are not stated: 256-256, one step of 256 rows for each "
        "step of all games",
        """
[net]
hidden = [256, 256]
[replay]
batch = 256
ratio = 32
[collect]
games = 8
""",
        ("--algo", "sac"),
    ),
    "cage2": Original(
        "cage2",
        "not stated",
        "the challenge's winner: PPO, 200 environments of 100 steps, 6 epochs of one full batch, "
        "two towers of 64-64",
        "tanh instead of ReLU",
        """
[net]
hidden = [64, 64]
activation = "tanh"
shared = false
[ppo]
epochs = 6
minibatch = 20000
[collect]
games = 200
steps = 100
""",
    ),
    "shogi": Original(
        "shogi",
        "not stated; its Python rules alone 21 to 25 (two Neoverse-N1 cores)",
        "PPO, one game, epochs of 2,048 steps",
        "network and batch are those of our preset",
        """
[collect]
games = 1
steps = 2048
""",
        ("--rounds", "2", "--warm-up", "1"),
    ),
}


def measured(one: Original, device: str, threads: int) -> dict[str, Any]:
    """Train as the original does, in a process of its own; return what `bench train` measured."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "original.toml"
        file.write_text(one.settings, encoding="utf-8")
        words = [sys.executable, "-m", "sparring", "bench", "train", one.game, "--json"]
        words += ["--config", str(file), "--device", device, "--threads", str(threads)]
        ran = subprocess.run([*words, *one.options], stdout=subprocess.PIPE, check=False)
    if ran.returncode:
        sys.exit(ran.returncode)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", default=list(ORIGINALS), choices=list(ORIGINALS))
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save", type=Path, help="a JSON file for all that was measured")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.threads < 1:
        parser.error("--threads must be at least 1")
    return given


def main() -> None:
    """Measure and print."""
    given = options()
    found = {row: measured(ORIGINALS[row], given.device, given.threads) for row in given.rows}
    text = json.dumps(found, indent=1)
    if given.save:
        given.save.write_text(f"{text}\n", encoding="utf-8")
    if given.json:
        print(text)
        return
    print("| game | original, steps/s | ours, decisions/s | as in the original | otherwise |")
    print("|---|---|---:|---|---|")
    for row, result in found.items():
        one, rate = ORIGINALS[row], result["measured"]["ours"]["decisions_per_s"]
        middle = f"{rate['median']:,.0f} ({rate['min']:,.0f}..{rate['max']:,.0f})"
        print(f"| {row} | {one.rate} | {middle} | {one.equal} | {one.ours} |")


if __name__ == "__main__":
    main()
