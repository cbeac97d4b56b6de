"""Strength, machine, minutes: how long each game takes to be learned, beside Stable-Baselines3.

python benchmarks/minutes.py                                     all games and peers, 3 seeds, hours
python benchmarks/minutes.py --games skull_king --minutes 5 --peers maskable_ppo --seeds 3
python benchmarks/minutes.py --games tic_tac_toe --minutes 0.1 --seeds 1 --peers none --out x.json
python benchmarks/minutes.py --stored --update-docs              only the tables, from what is there

Ours is `sparring train` with the preset of the game on this machine; peers learn through our
adapter. Checkpoints at fixed times of training are measured after it.
docs/inside/benchmarks.md has more.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pages import ROOT, file_of, keep, stored, write_table
from sides.answers import ask
from sides.cores import core_groups, side_by_side
from sides.reaching import reached_after, typical
from sides.words import read_side
from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.machine import cores, machine_info, warn_if_busy

KIND = "minutes"
DOCS = ROOT / "docs/inside/benchmarks.md"
OURS, CHAMPION = "sparring", "champion"
POINTS = (0.5, 0.8, 0.95)
"""Marks where players meet: shares of the points, or of the wins, against the best bot."""
MARKS: dict[str, tuple[float, ...]] = {
    "cage2": (-50.0, -30.0, -20.0),
    "tic_tac_toe": (0.5, 0.2, 0.1),
    "kuhn_poker": (0.1, 0.05, 0.02),
    "leduc_poker": (0.5, 0.3, 0.2),
}
"""Other marks: the mean score in CAGE-2, the exact exploitability in small games."""
EXACT = ("tic_tac_toe", "kuhn_poker", "leduc_poker")
"""Where a lower value is better."""
GAMES = (
    *("skull_king", "kuhhandel", "laser_hockey", "cage2", "shogi", "connect_four"),
    *EXACT,
)
PEERS = ("maskable_ppo", "sac", "dqn")
LABELS = {OURS: "sparring", "maskable_ppo": "MaskablePPO", "sac": "SB3's SAC", "dqn": "SB3's DQN"}
FEW_ILLEGAL = ("cage2", "connect_four", "tic_tac_toe")
"""Where DQN, which knows no masks, is not lost among illegal actions."""
LEAST_GAMES = 1000
"""Of a match, below which a record says that it is a trial."""


def fits(peer: str, game: str) -> bool:
    """Whether a peer can learn a game."""
    if peer == "dqn":
        return game in FEW_ILLEGAL
    return (peer == "sac") == bool(Rules(game).box)


def options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES))
    parser.add_argument("--minutes", type=float, help="of each training; default: the preset's")
    parser.add_argument("--peers", nargs="+", choices=(*PEERS, "none"), default=list(PEERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--points", type=int, default=20, help="checkpoints of a training")
    parser.add_argument("--match-games", type=int, default=1024, help="of each measurement")
    parser.add_argument("--cores", type=int, default=0, help="of a training; 0: all")
    parser.add_argument("--pin", default="", help="the cores to run on, such as 2,3 or 2-15")
    parser.add_argument("--device", default="auto", help="of ours; peers are on the CPU")
    parser.add_argument("--with", dest="common", default="", help="more settings of ours")
    parser.add_argument("--out", type=Path, help="the file to write; default: one in results/")
    parser.add_argument("--stored", action="store_true", help="do not train, show what is there")
    parser.add_argument("--update-docs", action="store_true", help="write the tables of the docs")
    given = parser.parse_args(words)
    given.cores = given.cores or cores()
    if min(given.seeds, given.points) < 1 or given.match_games < 2 or (given.minutes or 1) <= 0:
        parser.error("--seeds, --points and --minutes must be above 0, --match-games at least 2")
    return given


def main(words: Sequence[str] | None = None) -> int:
    """Train everybody, write the record after each game, and print the tables."""
    given = options(words)
    if not given.stored:
        try:
            measure(given)
        except SparringError as wrong:
            print(f"minutes: {wrong}", file=sys.stderr)
            return 2
    if given.out and given.out.is_file():
        records = [json.loads(given.out.read_text())]
    else:
        records = stored(KIND)
    tables = [tables_of(record) for record in records]
    print("\n\n".join(tables) or "nothing is stored")
    if given.update_docs:
        write_table(DOCS, "minutes figures", "\n\n".join(tables))
    return 0


def measure(given: argparse.Namespace) -> Path:
    """Measure the games in turn, and return the file; other games in it stay."""
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    where = f"{facts['cpu']}, {given.cores} core{'s' * (given.cores > 1)}{gpu_of(given.device)}"
    path = given.out or file_of(KIND, where)
    before = json.loads(path.read_text())["games"] if path.is_file() else {}
    record: dict[str, Any] = {"machine": where, "games": before}
    for game in given.games:
        found = train_all(game, given)
        record["games"][game] = {
            **{name: facts[name] for name in ("python", "sparring", "commit", "load_average")},
            **{"date": facts["date"][:10], "seeds": given.seeds, "cores": given.cores},
            "match_games": given.match_games,
            "trial": given.match_games < LEAST_GAMES,
            **found,
        }
        keep(record, path)
        print(f"wrote {path}: {game}", file=sys.stderr, flush=True)
    return path


def gpu_of(device: str) -> str:
    """Return the GPU that ours trains on, as part of the machine's name; "" for none."""
    import torch

    from sparring.training.planning.placement import choose_device

    chosen = choose_device(device)
    return "" if chosen == "cpu" else f", {torch.cuda.get_device_name(chosen)}"


def train_all(game: str, given: argparse.Namespace) -> dict[str, Any]:
    """Train all contestants with all seeds in turn: the first seed of each, then the second."""
    from sparring.training.train import complete

    kinds = [OURS, *(peer for peer in given.peers if peer in PEERS and fits(peer, game))]
    settings, variables = read_side(given.common)
    minutes = given.minutes or complete(game, "", {}).minutes
    runs: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}

    def work(job: tuple[str, int], _: tuple[int, ...]) -> dict[str, Any]:
        kind, seed = job
        request = {"game": game, "kind": kind, "seed": seed, "threads": given.cores}
        request |= {"minutes": minutes, "settings": settings, "device": given.device}
        request |= {"points": given.points, "match_games": given.match_games}
        return ask("sides.minutes", request, variables)

    def done(job: tuple[str, int], run: dict[str, Any]) -> None:
        runs[job[0]].append(run)

    jobs = [(kind, seed) for seed in range(given.seeds) for kind in kinds]
    side_by_side(jobs, core_groups(given.pin, given.cores, 1), work, done)
    champion = runs[OURS][0]["champion"]
    if not champion and game not in MARKS:
        print(f"{game}: no player called {CHAMPION}; that mark is left out", file=sys.stderr)
    found = {kind: summed_up(game, every, champion) for kind, every in runs.items()}
    return {"minutes": minutes, CHAMPION: champion, "contestants": found}


def summed_up(game: str, runs: list[dict[str, Any]], champion: str) -> dict[str, Any]:
    """Return the minutes to every mark, by seed and the median, and the value at the end."""
    marks = [("value", mark) for mark in MARKS.get(game, POINTS)]
    if champion:  # as strong as it: of two players half of the points
        marks.append((CHAMPION, 1 / Rules(game).seats))
    ends = [run["curve"][-1] for run in runs]
    times = {}
    for name, mark in marks:
        reached = [minutes_to(game, run["curve"], name, mark) for run in runs]
        key = CHAMPION if name == CHAMPION else f"{mark:g}"
        times[key] = {"median": typical(reached), "seeds": reached}
    return {
        "times": times,
        "end": median(end["value"] for end in ends),
        "decisions_per_s": median(end["decisions"] / end["seconds"] for end in ends),
        "runs": runs,
    }


def minutes_to(game: str, curve: list[dict[str, float]], name: str, mark: float) -> float | None:
    """Return after how many minutes a mark was reached to stay; None: never."""
    sign = -1 if game in EXACT else 1
    values = [sign * at[name] for at in curve]
    seconds = reached_after([at["seconds"] for at in curve], values, sign * mark)
    return None if seconds is None else seconds / 60


def tables_of(record: dict[str, Any]) -> str:
    """Return a table for each kind of marks, with a line per contestant and game."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for game, one in record["games"].items():
        for kind, found in one["contestants"].items():
            cells = [shown(time) for time in found["times"].values()]
            numbers = [f"{one['minutes']:g}", f"{found['end']:.3g}"]
            row = [game, LABELS[kind], *cells, *numbers, f"{found['decisions_per_s']:,.0f}"]
            marks = (measure_of(game), *found["times"])
            kinds.setdefault(marks, []).append(f"| {' | '.join(row)} |")
    parts = []
    for (measured, *marks), lines in kinds.items():
        heads = [f"to {mark}" for mark in marks]
        columns = ["game", "trained by", *heads, "minutes", "at the end", "decisions/s"]
        rule = f"|---|---|{'---:|' * (len(columns) - 2)}"
        parts.append("\n".join([f"{measured}:", "", f"| {' | '.join(columns)} |", rule, *lines]))
    return "\n\n".join([*parts, facts_line(record)])


def measure_of(game: str) -> str:
    """Say what the marks of a game are."""
    if game in EXACT:
        return f"Minutes until the exact exploitability in {game} is at most"
    if game in MARKS:
        return f"Minutes until the mean score in {game} is at least"
    return "Minutes until the share of the points against the best bot is at least"


def shown(found: dict[str, Any]) -> str:
    """The median over seeds with all of them, `never` for one that did not arrive."""

    def text(minutes: float | None) -> str:
        return "never" if minutes is None else f"{minutes:.2g}"

    return f"{text(found['median'])} ({', '.join(map(text, found['seeds']))})"


def facts_line(record: dict[str, Any]) -> str:
    """Say where, when and how it was measured."""
    games = record["games"].values()
    parts = {f"sparring {one['sparring']} at {one['commit']}, {one['date']}" for one in games}
    matches = min(one["match_games"] for one in games)
    trial = "; a trial, with few games" if any(one["trial"] for one in games) else ""
    return (
        f"{record['machine']}; {'; '.join(sorted(parts))}; median over seeds (each in brackets), "
        f"matches of {matches:,} games{trial}."
    )


if __name__ == "__main__":
    sys.exit(main())
