"""Games whose perfect play is known: does training come near it, alone and in a league?

    python benchmarks/yardsticks.py [GAME ...] [--variants V ...] [--decisions N] [--seeds K]
    python benchmarks/yardsticks.py --stored FILE --plot curves.png

Rock-paper-scissors (a test game of development installs) and the small games with hidden cards are
trained by self-play. `plain` has the clip of 0.2 and the constant learning rate that are usual in
PPO, `league` meets itself and everybody of the past alike with the same settings. `small steps` has
a clip of 0.02, and a learning rate that falls to 0. `magnet` adds a magnet to it, or in Kuhn poker
has one in place of the entropy bonus; `critic` adds a critic that sees what is hidden. `preset` is
what `sparring train` does: the weights of the last fifth are averaged, with small steps or, in Kuhn
and Leduc poker, with the magnet too. Measured is the exact exploitability (NashConv / seats) of the
last policy, and of the mixture of snapshots of the second half, one of which is drawn once per
game. All have snapshots at the same decisions.
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

LARGE_GAMES = ("phantom_tic_tac_toe", "dark_hex")
"""Where a measurement takes seconds, and mixtures would need a tree that is too large."""
GAMES = (
    *("rock_paper_scissors", "kuhn_poker", "kuhn_poker_3", "leduc_poker", "liars_dice"),
    *("goofspiel", *LARGE_GAMES),
)
DECISIONS = {"rock_paper_scissors": 1_500_000, "kuhn_poker": 6_000_000, "leduc_poker": 20_000_000}
MOST = 10_000_000
"""Decisions in the other games."""
WITHOUT_PRESET: dict[str, Any] = {
    "net": {"hidden": (16,)},
    "collect": {"games": 256, "steps": 8},
    "ppo": {"epochs": 2, "minibatch": 1024, "lr": 3e-3, "entropy": 0.0, "target_kl": 0.0},
}
"""Settings of rock-paper-scissors."""
SMALL: dict[str, Any] = {"lr": "0%:1e-3,100%:0", "entropy": 0.05, "clip": 0.02, "magnet": 0.0}
"""What `small steps` and `critic` change of a preset."""
USUAL: dict[str, Any] = {**SMALL, "lr": 2e-3, "clip": 0.2, "target_kl": 0.0}
"""What `plain` and `league` change of it."""
TERM: dict[str, Any] = {"magnet": 0.05, "magnet_period": 200}
MAGNET: dict[str, Any] = {**SMALL, **TERM}
KUHN_MAGNET: dict[str, Any] = {
    **{"lr": "0%:2e-3,100%:0", "entropy": 0.0, "clip": 0.05, "target_kl": 0.0},
    **{"magnet": 0.4, "magnet_period": 20},
}
SNAPSHOTS = 120
"""In a run."""
POINTS = 12
"""Of a curve."""
COLORS = {
    **{"plain": "gray", "league": "brown", "small steps": "C0", "magnet": "C2", "critic": "C3"},
    "preset": "C1",
}
TICKS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
LEAGUE: dict[str, Any] = {
    "opponents": ("self=1", "past=1"),
    "league": {"sampling": "uniform", "slots": 128},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"ppo": USUAL},
    "league": {"ppo": USUAL, **LEAGUE},
    "small steps": {"ppo": SMALL},
    "magnet": {"ppo": MAGNET},
    "critic": {"ppo": SMALL, "net": {"critic": "full"}},
    "preset": {},
}


def settings_of(game: str, variant: str) -> dict[str, Any]:
    """Settings of a run."""
    settings = {"opponents": ("self=1",), **VARIANTS[variant]}
    if game.startswith("kuhn") and variant == "magnet":
        settings["ppo"] = KUHN_MAGNET
    if variant != "preset":
        settings["average"] = 0.0
        if game == "leduc_poker":
            settings["net"] = {"hidden": (64, 64), **settings.get("net", {})}
    if game == "rock_paper_scissors":
        small = {"lr": "0%:3e-3,100%:0", "clip": 0.02}
        usual = variant in ("plain", "league")
        ppo = WITHOUT_PRESET["ppo"] | ({} if usual else small)
        ppo |= TERM if variant == "magnet" else {}
        settings["average"] = 0.2 if variant == "preset" else 0.0
        net = {**WITHOUT_PRESET["net"], **settings.get("net", {})}
        settings |= {**WITHOUT_PRESET, "net": net, "ppo": ppo}
    return settings


def measure(game: str, variant: str, decisions: int, seed: int, runs: Path) -> dict[str, Any]:
    """Train once; returns the curve of exploitability."""
    settings = settings_of(game, variant)
    every = decisions // SNAPSHOTS
    if "league" in settings:
        settings["league"] = {**settings["league"], "every_decisions": every}
    points = POINTS if game not in LARGE_GAMES else 2
    tree = Tree(sparring.Rules(game))
    kept: list[Policy] = []
    curve: list[dict[str, float | None]] = []

    def look(watched: CallbackRun) -> None:
        made = watched.status.decisions
        if made < (len(kept) + 1) * every:
            return
        kept.append(watched.policy())
        if len(kept) % (SNAPSHOTS // points) == 0:
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


def point(tree: Tree, kept: list[Policy], decisions: int) -> dict[str, float | None]:
    """The last policy, and those of the second half in a mixture."""
    last = exploitability(tree, kept[-1].probabilities).exploitability
    found = {"decisions": decisions, "last": round(last, 4), "mixture": None}
    if tree.rules.name not in LARGE_GAMES:
        members = [policy.probabilities for policy in kept[len(kept) // 2 :]]
        mixed = mixture_exploitability(tree, members, [1.0] * len(members)).exploitability
        found["mixture"] = round(mixed, 4)
    return found


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """Draw a panel per game with a line per run: the exploitability of the last policy."""
    import matplotlib.pyplot as plt
    from PIL import Image

    games = list(dict.fromkeys(run["game"] for run in runs))
    columns = min(len(games), 4)
    rows = -(-len(games) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(3.2 * columns, 2.6 * rows), squeeze=False, layout="constrained"
    )
    drawn = {}
    for panel, game in zip(panels.flat, games, strict=False):
        for run in (run for run in runs if run["game"] == game):
            made = [at["decisions"] / 1e6 for at in run["curve"]]
            last = [at["last"] for at in run["curve"]]
            (line,) = panel.plot(made, last, ".-", color=COLORS[run["variant"]], lw=1, ms=3)
            drawn.setdefault(run["variant"], line)
        panel.set_yscale("log")
        limits = panel.get_ylim()
        panel.set_yticks(TICKS, map(str, TICKS))
        panel.set_yticks([], minor=True)
        panel.set_ylim(limits)
        panel.set_title(game.replace("_", " "), fontsize=9)
        panel.set_xlabel("million decisions", fontsize=8)
        panel.tick_params(labelsize=7)
    for panel in panels.flat[len(games) :]:
        panel.axis("off")
    figure.legend(drawn.values(), drawn, loc="outside upper right", ncols=len(drawn), fontsize=8)
    figure.supylabel("exploitability of the last policy", fontsize=9)
    figure.savefig(path, dpi=80)
    Image.open(path).quantize(64).save(path, optimize=True)  # a fifth of the size


def main() -> None:
    """Train everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games", nargs="*", help=f"of {', '.join(GAMES)}; left out: all")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--decisions", type=float, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", default="")
    parser.add_argument("--plot", type=Path, help="a picture of all curves")
    parser.add_argument("--stored", type=Path, nargs="+", help="do not measure: what --out wrote")
    options = parser.parse_args()
    if unknown := set(options.games) - set(GAMES):
        parser.error(f"no yardstick {', '.join(unknown)}; give some of {', '.join(GAMES)}")
    if options.stored:
        if not (options.plot and all(file.is_file() for file in options.stored)):
            parser.error("--stored needs files that --out wrote, and --plot a picture's name")
        stored = [json.loads(file.read_text())["runs"] for file in options.stored]
        draw([run for runs in stored for run in runs], options.plot)
        return
    found = []
    for game in options.games or GAMES:
        for seed in range(options.seeds):
            for variant in options.variants:
                if variant == "critic" and not sparring.Rules(game).hides:
                    continue
                with tempfile.TemporaryDirectory() as runs:
                    made = int(options.decisions) or DECISIONS.get(game, MOST)
                    one = measure(game, variant, made, seed, Path(runs))
                found.append(one)
                end = one["curve"][-1]
                print(f"{game} {variant} seed {seed}: {end} {one.get('mixture', '')}", flush=True)
    report = {"command": "yardsticks", "machine": machine_info(), "runs": found}
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n")
    if options.plot:
        draw(found, options.plot)


if __name__ == "__main__":
    main()
