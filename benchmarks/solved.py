"""Positions with exact values: how often an agent keeps them, by its network alone and by search.

    python benchmarks/solved.py connect_four runs/mine --search 64,800
    python benchmarks/solved.py tic_tac_toe latest --search 64 --json

A move keeps the value of a position if no other is better, with perfect play of both from there on.
Connect Four has 1,000 positions of plies 0 to 30, tic-tac-toe all 4,520. Those of a ply are
searched at once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np

from pages import keep
from search.positions import SOLVED, Position, keeps_value, pools, positions
from sparring import Pool, Rules
from sparring.commands.shared.printing import make_table, print_json, print_table
from sparring.errors import ConfigError, SparringError
from sparring.league.seating import load_player
from sparring.machine import machine_info
from sparring.nets.policy import Policy
from sparring.search.budget import Budget
from sparring.training.planning.placement import choose_device

ALONE = "network"


def moves_of(policy: Policy, pool: Pool, threads: int) -> Any:
    """Return a move per game: the most probable one, or what a search without noise finds."""
    batch = pool.batch()
    if policy.budget is None:
        return policy.act(batch.obs, batch.mask, greedy=True)
    rows = np.arange(len(batch.obs))
    return policy.search(trees=len(rows), threads=threads).from_pool(pool, rows).action


def measure(policy: Policy, found: list[Position], threads: int = 1) -> dict[str, Any]:
    """Return the share of positions whose value is kept, in all and by ply, and the others."""
    began, by_ply, lost = time.perf_counter(), {}, []
    for same, pool in pools(found):
        moves = moves_of(policy, pool, threads)
        wrong = [p for p, move in zip(same, moves, strict=True) if not keeps_value(p, move)]
        by_ply[len(same[0].moves)] = round(1 - len(wrong) / len(same), 4)
        lost += wrong
    return {
        "kept": round(1 - len(lost) / len(found), 4),
        "by_ply": by_ply,
        "lost": ["".join(map(str, position.moves)) for position in lost],
        "seconds": round(time.perf_counter() - began, 1),
    }


def report(given: argparse.Namespace) -> dict[str, Any]:
    """Measure the network alone, and with every budget."""
    budgets = [Budget.parse(word) for word in given.search.split(",") if word]
    policy = load_player(given.policy, Rules(given.game), threads=given.threads)
    if isinstance(policy, str):
        raise ConfigError(f"{policy} is a bot; give a run or a policy, such as latest")
    policy.to(choose_device(given.device))
    players = {ALONE: policy, **{str(budget): policy.searching(budget) for budget in budgets}}
    found = positions(given.game)
    return {
        "machine": machine_info(),
        "game": given.game,
        "policy": given.policy,
        "positions": len(found),
        "players": {name: measure(one, found, given.threads) for name, one in players.items()},
    }


def show(record: dict[str, Any]) -> None:
    """Print a row per ply."""
    players = record["players"]
    table = make_table(("ply", *players), numbers=("ply", *players))
    for ply in players[ALONE]["by_ply"]:
        table.add_row(str(ply), *(f"{one['by_ply'][ply]:.1%}" for one in players.values()))
    table.add_row("all", *(f"{one['kept']:.1%}" for one in players.values()))
    print_table(table)
    times = ", ".join(f"{name}: {one['seconds']:.1f} s" for name, one in players.items())
    print(f"{record['positions']:,} positions of {record['game']}; {times}")


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and write the record if a file is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("game", choices=list(SOLVED))
    parser.add_argument("policy", help="a run or a policy file")
    parser.add_argument("--search", default="64", help="budgets by commas, such as 64,800 or 1s")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="of the network: cpu, cuda or auto")
    parser.add_argument("--out", type=Path, help="the file to write")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args(words)
    try:
        record = report(given)
    except SparringError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    if given.out:
        keep(record, given.out)
    if given.json:
        print_json(record)
    else:
        show(record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
