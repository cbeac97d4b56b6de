"""Games whose perfect play is known: does training come near it, alone and in a league?

    python benchmarks/yardsticks.py [GAME ...] [--variants V ...] [--decisions N] [--seeds K]

Rock-paper-scissors (a test game of development installs), Kuhn poker and Leduc poker are trained by
plain self-play, by meeting itself and everybody of the past alike, and by self-play with a magnet,
by turns; `annealed` is the last one without its magnet. `critic` is `annealed`, `magnet, critic` is
`magnet`, with a critic that sees what is hidden. Measured is the exact exploitability
(NashConv / 2) of the last policy, and of the mixture of all snapshots, one of which is drawn once
per game. Plain self-play has snapshots at the same decisions.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import sparring
from sparring.machine import machine_info
from sparring.nets.policy import Policy
from sparring.proof.exploitability import Tree, exploitability, mixture_exploitability
from sparring.training.callbacks import CallbackRun

SETTINGS: dict[str, dict[str, Any]] = {
    "rock_paper_scissors": {
        "net": {"hidden": (16,)},
        "collect": {"games": 256, "steps": 8},
        "ppo": {"epochs": 2, "minibatch": 1024, "lr": 3e-3, "entropy": 0.0, "target_kl": 0.0},
    },
    "kuhn_poker": {"ppo": {"lr": 2e-3, "entropy": 0.05, "target_kl": 0.0}},
    "leduc_poker": {"ppo": {"lr": 2e-3, "entropy": 0.05, "target_kl": 0.0}},
}
DECISIONS = {"rock_paper_scissors": 1_500_000, "kuhn_poker": 6_000_000, "leduc_poker": 6_000_000}
SNAPSHOTS = 120
"""In a run."""
POINTS = 12
"""Of a curve."""
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"opponents": ("self=1",)},
    "league": {"opponents": ("self=1", "past=1"), "league": {"sampling": "uniform", "slots": 128}},
    "annealed": {"opponents": ("self=1",)},
    "magnet": {"opponents": ("self=1",)},
    "critic": {"opponents": ("self=1",), "net": {"critic": "full"}},
    "magnet, critic": {"opponents": ("self=1",), "net": {"critic": "full"}},
}
ANNEALED: dict[str, dict[str, Any]] = {
    "rock_paper_scissors": {"ppo": {"lr": "0%:3e-3,100%:0"}},
    "kuhn_poker": {
        "collect": {"games": 128},
        "ppo": {"minibatch": 1024, "lr": "0%:2e-3,100%:0", "entropy": 0.0},
    },
    "leduc_poker": {"ppo": {"lr": "0%:1e-3,100%:0", "entropy": 0.1}},
}
"""Settings of the last four variants that differ."""
MAGNETS: dict[str, dict[str, Any]] = {
    "rock_paper_scissors": {"magnet": 0.5, "magnet_period": 20},
    "kuhn_poker": {"magnet": 0.4, "magnet_period": 20},
    "leduc_poker": {"magnet": 0.5, "magnet_period": 10},
}


def settings_of(game: str, variant: str) -> dict[str, Any]:
    """Settings of a run."""
    settings = {**SETTINGS[game], **VARIANTS[variant]}
    if variant not in ("plain", "league"):
        changed = ANNEALED[game]
        magnet = MAGNETS[game] if variant.startswith("magnet") else {}
        settings |= {**changed, "ppo": {**settings["ppo"], **changed["ppo"], **magnet}}
    return settings


def measure(game: str, variant: str, decisions: int, seed: int, runs: Path) -> dict[str, Any]:
    """Train once; returns the curve of exploitability."""
    settings = settings_of(game, variant)
    every = decisions // SNAPSHOTS
    if variant == "league":
        settings["league"] = {**settings["league"], "every_decisions": every}
    tree, kept, curve = Tree(sparring.Rules(game)), [], []

    def look(watched: CallbackRun) -> None:
        made = watched.status.decisions
        if made < (len(kept) + 1) * every:
            return
        kept.append(watched.policy())
        if len(kept) % (SNAPSHOTS // POINTS) == 0:
            curve.append(point(tree, kept, made))

    sparring.train(
        game,
        decisions=decisions,
        seed=seed,
        quiet=True,
        runs=str(runs),
        tensorboard=False,
        threads=1,
        on_update=look,
        eval={"off": True},
        **settings,
    )
    found = {"game": game, "variant": variant, "seed": seed, "curve": curve}
    if game == "rock_paper_scissors":
        shares = [p.probabilities(tree.obs[:1], tree.mask[:1])[0] for p in kept]
        found["mixture"] = np.mean(shares, axis=0).round(4).tolist()
        found["largest_share_of_one"] = float(np.max(shares, axis=1)[len(shares) // 2 :].mean())
    return found


def point(tree: Tree, kept: list[Policy], decisions: int) -> dict[str, float]:
    """The last policy, and all of them in a mixture."""
    last = exploitability(tree, kept[-1].probabilities).exploitability
    members = [policy.probabilities for policy in kept]
    mixed = mixture_exploitability(tree, members, [1.0] * len(kept)).exploitability
    return {"decisions": decisions, "last": round(last, 4), "mixture": round(mixed, 4)}


def main() -> None:
    """Train everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games", nargs="*", default=list(SETTINGS))
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--decisions", type=float, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    found = []
    for game in options.games:
        for seed in range(options.seeds):
            for variant in options.variants:
                with tempfile.TemporaryDirectory() as runs:
                    made = int(options.decisions) or DECISIONS[game]
                    one = measure(game, variant, made, seed, Path(runs))
                found.append(one)
                end = one["curve"][-1]
                print(f"{game} {variant} seed {seed}: {end} {one.get('mixture', '')}", flush=True)
    report = {"command": "yardsticks", "machine": machine_info(), "runs": found}
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
