"""Search beside mctx with Pgx: the same trees, networks and batches, in turn.

python benchmarks/search_peers.py --peer-python PYTHON     measure, write results/search-*.json
python benchmarks/search_peers.py --device cuda            ... on a GPU, in bfloat16
python benchmarks/search_peers.py --agree 200              compare visits, not speed
python benchmarks/search_peers.py --stored --update-docs   write the table of docs/guides/search.md

PYTHON has jax, mctx and pgx; sparring needs none of them. docs/guides/search.md says how to
read the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from pages import RESULTS, ROOT, file_of, keep, stored, write_table
from search.positions import SOLVED, positions
from searches.agreement import compare
from searches.cases import Case
from searches.contest import FOLDER, OURS, PEER, contest
from searches.figures import docs_figures, text_table
from sparring.machine import cores, machine_info, warn_if_busy

DOCS = ROOT / "docs/guides/search.md"
GAMES = ("tic_tac_toe", "connect_four", "shogi")
RESIDUAL = {"cpu": (24, 2), "cuda": (128, 6)}
"""Channels and blocks of Shogi's network: those of the presets."""
BATCH = {"cpu": 256, "cuda": 4096}
SHOGI_BATCH = {"cpu": 64, "cuda": 4096}
"""Pgx plays Shogi at some hundred moves per second on a core: a search takes long enough."""
PRECISION = {"cpu": "float32", "cuda": "bf16"}


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", nargs="+", choices=GAMES, default=GAMES)
    parser.add_argument("--device", choices=list(BATCH), default="cpu")
    parser.add_argument("--batch", type=int, nargs="+", help="trees; 256, Shogi 64, on a GPU 4096")
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--threads", type=int, default=cores(), help="of both, on a CPU")
    parser.add_argument("--precision", choices=("float32", "bf16"), help="float32, on a GPU bf16")
    parser.add_argument("--peer-python", default=sys.executable, help="a Python with mctx and pgx")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: CPU time")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds to wait for an answer")
    parser.add_argument("--agree", type=int, default=0, help="compare so many positions' visits")
    parser.add_argument("--json", action="store_true", help="print the record instead of a table")
    parser.add_argument("--stored", action="store_true", help="do not measure")
    parser.add_argument("--update-docs", action="store_true", help="write the table of the docs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder for the results")
    return parser.parse_args()


def main() -> None:
    """Measure unless told otherwise, write it down and show it."""
    given = options()
    if given.agree:
        print(json.dumps([agreement(given, game) for game in SOLVED], indent=1))
        return
    if not given.stored:
        measure(given)
    for record in stored("search", given.out):
        print(json.dumps(record, indent=1) if given.json else text_table(record))
    if given.update_docs:
        write_table(DOCS, "search figures", docs_figures(stored("search", given.out)))


def cases(given: argparse.Namespace) -> list[Case]:
    """Return what is measured: every game with every batch."""
    precision = given.precision or PRECISION[given.device]
    made = []
    for game in given.games:
        channels, blocks = RESIDUAL[given.device] if game == "shogi" else (0, 0)
        usual = (SHOGI_BATCH if game == "shogi" else BATCH)[given.device]
        for batch in given.batch or [usual]:
            case = Case(
                game=game,
                device=given.device,
                batch=batch,
                threads=given.threads,
                simulations=given.simulations,
                channels=channels,
                blocks=blocks,
                bf16=precision == "bf16",
            )
            made.append(case)
    return made


def measure(given: argparse.Namespace) -> None:
    """Hold the contest in every case and write one record for this machine."""
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    pythons = {OURS: sys.executable, PEER: given.peer_python}
    terms = {"rounds": given.rounds, "seconds": given.seconds, "clock": given.clock}
    found = list[dict[str, Any]]()
    for case in cases(given):  # written after each: the last ones may outrun somebody's patience
        found.append(contest(case, pythons, **terms, limit_s=given.limit))
        record = record_of(given, facts, terms, found)
        path = keep(record, file_of("search", record["machine"], given.out))
    print(f"wrote {path}", file=sys.stderr)


def record_of(
    given: argparse.Namespace,
    facts: dict[str, Any],
    terms: dict[str, Any],
    found: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return what is written about some cases."""
    sides = [case[side] for case in found for side in (OURS, PEER) if side in case]
    machine = f"{facts['cpu']}, {facts['cores']} cores"
    if given.device == "cuda":
        machine = next((case[OURS]["device"] for case in found if OURS in case), machine)
    return {
        "machine": machine,
        **{name: facts[name] for name in ("system", "python", "commit")},
        "load_average": round(machine_info()["load_average"], 1),
        "date": facts["date"][:10],
        "versions": {name: number for side in sides for name, number in side["versions"].items()},
        "precision": given.precision or PRECISION[given.device],
        **{name: getattr(given, name) for name in ("device", "threads", "simulations")},
        **terms,
        "cases": found,
    }


def agreement(given: argparse.Namespace, game: str) -> dict[str, Any]:
    """Search solved positions of a game with both, and compare visits and actions."""
    found = positions(game)
    found = found[:: max(1, len(found) // given.agree)][: given.agree]
    case = Case(game, "cpu", len(found), 1, simulations=given.simulations)
    asked = {"case": asdict(case), "moves": [position.moves for position in found]}
    replies = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "positions.json"
        file.write_text(json.dumps(asked))
        for side, python in ((OURS, sys.executable), (PEER, given.peer_python)):
            done = subprocess.run(
                [python, "-m", "searches.agreement", side, str(file)],
                cwd=FOLDER,
                env=os.environ | {"JAX_PLATFORMS": "cpu"},
                stdout=subprocess.PIPE,
                check=True,
            )
            replies[side] = json.loads(done.stdout)
    return {"game": game, "simulations": given.simulations, **compare(*replies.values())}


if __name__ == "__main__":
    main()
