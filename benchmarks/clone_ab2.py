"""How well a network learns to play like a bot from its games, and what that is worth to PPO.

python benchmarks/clone_ab2.py [--games 20000] [--teach-minutes 3] [--minutes 7] [--device auto]
    [--threads 0] [--positions 1000] [--match 512] [--json FILE] [SETTING=VALUE ...]

1. `sparring train shogi --teach ab2`: games of the bot are made on all cores, with up to four
   moves by lot at the beginning; a network learns from them; PPO goes on for `--minutes`.
2. The clone is asked about positions of games that nobody has learned from. The bot draws among
   its equally good moves, so that asking it `ASKED` times finds them all: of k of them, one is
   missed with a chance of (1 - 1/k)^ASKED. The share of positions is told in which the clone's most
   probable move is among them, beside that of a move by lot and of a network that knows nothing.
3. A run without records trains as long as all of that took, making games included.
4. Clone, taught run and the other one play the bots, and each other.

SETTING=VALUE: of both runs, such as net.channels=64.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import sparring
from sparring.league.arena import evaluate, play_match
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy
from sparring.training.teaching.bots import bot_game
from sparring.training.teaching.positions import plain_rules

ASKED = 400
SEED = 20_000_003
"""Of the games that nobody learns from."""


def nested(words: list[str]) -> dict[str, Any]:
    """Read SETTING=VALUE words."""
    found: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        *groups, last = name.split(".")
        into = found
        for group in groups:
            into = into.setdefault(group, {})
        try:
            into[last] = json.loads(value)
        except ValueError:
            into[last] = value
    return found


def best_moves(state: sparring.State, bot: str) -> set[int]:
    """The moves among which the bot draws."""
    asked = state.clone()
    return {int(asked.ask(bot)) for _ in range(ASKED)}


def agreement(policies: dict[str, Policy], bot: str, positions: int) -> dict[str, Any]:
    """In which share of fresh positions a policy's move is among the bot's best ones."""
    rules = next(iter(policies.values())).rules
    right = dict.fromkeys(policies, 0)
    same = dict.fromkeys(policies, 0)
    by_lot, sizes, seen, number = 0.0, [], 0, 0
    rng = np.random.default_rng(0)
    while seen < positions:
        lesson = bot_game(rules, bot, SEED, number)
        number += 1
        state = sparring.new_state(plain_rules(rules), seed=SEED)
        chosen = set(rng.permutation(len(lesson.replay.actions))[:10].tolist())
        for at, (action,) in enumerate(lesson.replay.actions):
            if at in chosen and at >= lesson.by_lot and seen < positions:
                best = best_moves(state, bot)
                obs, mask = state.decision()
                for name, policy in policies.items():
                    move = int(policy.act(obs, mask, deterministic=True)[0])
                    right[name] += move in best
                    same[name] += move == action
                by_lot += len(best) / len(state.legal())
                sizes.append(len(best))
                seen += 1
            state.apply(action)
    return {
        "positions": seen,
        "games": number,
        "among the best": {name: count / seen for name, count in right.items()},
        "the very move": {name: count / seen for name, count in same.items()},
        "a move by lot": by_lot / seen,
        "best moves, mean": float(np.mean(sizes)),
        "best moves, most": max(sizes),
        "chance to miss one of the most": float((1 - 1 / max(sizes)) ** ASKED),
    }


def strength(policy: Policy, games: int, threads: int) -> dict[str, Any]:
    """Win shares against the bots, greedily."""
    found = evaluate(policy, ["random", "greedy", "ab2", "ab3"], games=games, threads=threads)
    return {
        name: {key: one.summary()[key] for key in ("win", "low", "high")}
        for name, one in found.items()
    }


def taught_facts(run: Path) -> dict[str, Any]:
    """How cloning went."""
    events = json.loads((run / "events.json").read_text())
    facts: dict[str, Any] = next(event for event in events if event["event"] == "taught")
    return facts


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Train both runs and measure all of it."""
    own = nested(asked.settings)
    own |= {"runs": asked.runs, "device": asked.device, "threads": asked.threads, "seed": 1}
    cores = asked.threads or os.cpu_count() or 1
    began = time.perf_counter()
    cloning = {**own.pop("cloning", {}), "games": asked.games}
    taught = sparring.train(
        "shogi",
        minutes=asked.minutes,
        teach=("ab2",),
        teach_minutes=asked.teach_minutes,
        cloning=cloning,
        **own,
    )
    facts = taught_facts(taught.run)
    whole = asked.minutes + (facts["read_s"] + facts["seconds"]) / 60
    print(json.dumps({"taught": facts, "run": str(taught.run)}), flush=True)
    clone = load_policy(taught.run / "teacher")
    fresh = Policy(clone.rules, make_net(clone.rules, clone.net.config), name="fresh")
    found: dict[str, Any] = {
        "teaching": facts,
        "games_per_s": facts["games"] / facts["read_s"],
        "threads": cores,
        "agreement": agreement(
            {"clone": clone, "taught": taught.policy, "fresh": fresh}, "ab2", asked.positions
        ),
    }
    print(json.dumps(found["agreement"]), flush=True)
    plain = None if asked.alone else sparring.train("shogi", minutes=whole, **own)
    players = {"clone": clone, "taught": taught.policy}
    players |= {"plain": plain.policy} if plain else {}
    found["strength"] = {}
    for name, policy in players.items():
        found["strength"][name] = strength(policy, asked.match, cores)
        print(json.dumps({name: found["strength"][name]}), flush=True)
    for one, other in (("taught", "clone"), ("taught", "plain"), ("clone", "plain")):
        if one in players and other in players:
            match = play_match(
                clone.rules, [players[one], players[other]], games=asked.match, threads=cores
            )
            found[f"{one} against {other}"] = match.summary()
    found["minutes"] = {"taught": whole, "plain": whole if plain else 0.0}
    found["seconds"] = time.perf_counter() - began
    return found


def main() -> None:
    """Measure, print and write."""
    read = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("settings", nargs="*")
    read.add_argument("--games", type=int, default=20000)
    read.add_argument("--teach-minutes", type=float, default=3.0)
    read.add_argument("--minutes", type=float, default=7.0)
    read.add_argument("--device", default="auto")
    read.add_argument("--threads", type=int, default=0)
    read.add_argument("--positions", type=int, default=1000)
    read.add_argument("--match", type=int, default=512)
    read.add_argument("--alone", action="store_true", help="leave the run without records out")
    read.add_argument("--runs", default="runs/clone_ab2")
    read.add_argument("--json", default="")
    asked = read.parse_args()
    found = measure(asked)
    print(json.dumps(found, indent=2))
    if asked.json:
        Path(asked.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
