"""Whether chances of win, draw and loss can be believed: a reliability table of held-out games.

python benchmarks/calibration.py --run runs/mine                       an agent that is there
python benchmarks/calibration.py --games tic_tac_toe leduc_poker skull_king shogi --minutes 2
python benchmarks/calibration.py --games skull_king --against captain --json

Without --run every game is trained with its preset and --heads.wdl first. The games that are
listened to have another seed than those that were learned from, and the same company: chances of
somebody who plays against bots half of the time are not those of a mirror match.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparring.errors import SparringError
from sparring.league.calibration import lines_of, listen, table_of
from sparring.machine import machine_facts
from sparring.nets.policy import Policy
from sparring.pools import Lineup
from sparring.store.policies import load_policy
from sparring.training.planning.casting import cast_of
from sparring.training.planning.roles import nets_of, read_roles
from sparring.training.planning.settings import read_config
from sparring.training.records.run import Run
from sparring.training.train import train

GAMES = ("tic_tac_toe", "leduc_poker", "skull_king", "shogi")


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", nargs="+", default=[], help="agents instead of trainings")
    parser.add_argument("--games", nargs="+", default=list(GAMES), help="to train")
    parser.add_argument("--minutes", type=float, default=1.0, help="of each training")
    parser.add_argument("--weight", type=float, default=0.5, help="of the head's loss")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    parser.add_argument("--held-out", type=int, default=2000, help="games to listen to")
    parser.add_argument("--held-out-seed", type=int, default=1_000_003)
    parser.add_argument("--against", nargs="+", default=[], help="bots; left out: as in training")
    parser.add_argument("--out", type=Path, default=Path("bench-calibration"), help="for runs")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Train what is asked for, listen and print."""
    given = options()
    found: dict[str, Any] = {}
    try:
        runs = [Run.open(run) for run in given.run] or [
            trained(game, given) for game in given.games
        ]
        for run in runs:
            policy = load_policy(run.path)
            company = company_of(run, policy, given.against)
            told = listen(policy, given.held_out, seed=given.held_out_seed, lineups=company)
            found[policy.name] = {"game": policy.rules.name, **table_of(told)}
            if not given.json:
                title = f"{policy.rules.name}, {policy.name}"
                print(title, *lines_of(found[policy.name]), sep="\n", flush=True)
    except SparringError as wrong:
        print(f"calibration: {wrong}", file=sys.stderr)
        sys.exit(2)
    if given.json:
        settings = {key: str(value) for key, value in vars(given).items()}
        print(json.dumps({"machine": machine_facts(), "settings": settings, "found": found}))


def company_of(run: Run, policy: Policy, against: Sequence[str]) -> Sequence[Lineup]:
    """Whom an agent meets: those that it was trained with, or the bots that are named."""
    if against:
        return [Lineup((0, *(bot,) * (policy.rules.seats - 1))) for bot in against]
    config = read_config(run.config, str(run.path))
    nets = nets_of(read_roles(policy.rules, [config]), config)
    return cast_of(policy.rules, config, nets).lineups


def trained(game: str, given: argparse.Namespace) -> Run:
    """Train a game with its preset and a head of win, draw and loss."""
    agent = train(
        game,
        minutes=given.minutes,
        quiet=given.json,
        seed=given.seed,
        device=given.device,
        threads=given.threads,
        runs=str(given.out),
        heads={"wdl": given.weight},
    )
    return Run.open(agent.run)


if __name__ == "__main__":
    main()
