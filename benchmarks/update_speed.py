"""Samples per second of `sparring train`'s learner: trees or settings side by side, in turn.

python benchmarks/update_speed.py --before ../before/src           another checkout against this one
python benchmarks/update_speed.py --sides collect.cpu=torch collect.cpu=float32
python benchmarks/update_speed.py --game kuhhandel --threads 1 --pin 2,3 --json

--before is the `src` folder of a checkout with its own compiled extension in it. Every side has a
process of its own, makes its learner once and is timed for some seconds in every round; ratios are
taken to the first side within a round. Beside samples stand the GFLOP/s of the update, and their
share of what `a @ b` reaches with as many threads in the same run.
docs/inside/benchmarks.md has more.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from sides.cores import core_groups
from sides.turns import Side, Terms, summed_up, take_turns
from sparring.errors import SparringError
from sparring.machine import machine_info, warn_if_busy

HERE = Path(__file__).resolve().parents[1] / "src"


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="skull_king")
    parser.add_argument("--config", default="", help="a TOML file of settings for all sides")
    parser.add_argument("--with", dest="common", default="", help="settings of all sides")
    parser.add_argument("--before", type=Path, help="the src folder of another checkout")
    parser.add_argument("--sides", nargs="+", default=[""], help="settings of each side here")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0, help="of a turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pin", default="", help="cores for all sides, such as 2,3")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.rounds < 1 or given.seconds <= 0:
        parser.error("--rounds and --seconds must be above 0")
    return given


def sides_of(given: argparse.Namespace) -> list[Side]:
    """Return who takes part: the other tree first, because ratios are taken to the first."""
    here = [Side(words or "now", HERE, words) for words in given.sides]
    return [Side("before", given.before), *here] if given.before else here


def main() -> None:
    """Measure and print."""
    given = options()
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    try:
        cores = core_groups(given.pin, given.threads, 1)[0] if given.pin else ()
        terms = Terms(given.game, given.config, given.common, given.threads, cores, warm_up=3)
        found = summed_up(
            take_turns(sides_of(given), terms, rounds=given.rounds, seconds=given.seconds)
        )
    except SparringError as wrong:
        print(f"update_speed: {wrong}", file=sys.stderr)
        sys.exit(2)
    if given.json:
        settings = {key: str(value) for key, value in vars(given).items()}
        print(json.dumps({"machine": facts, "options": settings, "sides": found}, indent=1))
        return
    show(found, given)


def show(found: list[dict[str, Any]], given: argparse.Namespace) -> None:
    """Print a table, and what `a @ b` reached."""
    threads = f"{given.threads} thread{'s' * (given.threads != 1)}"
    print(f"{given.game}, {threads}, {given.rounds} rounds of {given.seconds:g} s for each side")
    print(
        "| side | samples/s | x first | in single rounds | update | GFLOP/s | x first | of a @ b "
        "| dense |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for one in found:
        ratio, update, gflops = one["ratio"], one["update_ratio"], one["gflops"]
        cells = [
            one["name"],
            f"{one['samples_per_s']['median']:,.0f}",
            f"{ratio['median']:.2f}",
            f"{ratio['min']:.2f}..{ratio['max']:.2f}",
            f"{one['update_share']['median']:.0%}",
            f"{gflops['median']:.1f}" if gflops else "",
            f"{update['median']:.2f}" if update else "",
            f"{one['gflops_share']:.0%}" if gflops else "",
            f"{one['gflops_dense_share']:.0%}" if gflops else "",
        ]
        print(f"| {' | '.join(cells)} |")
    best = {
        name: max(one[f"matmul_{name}"]["max"] for one in found) for name in ("float32", "bf16")
    }
    print(
        f"update: its share of the time; a @ b reached {best['float32']:.0f} GFLOP/s in float32, "
        f"{best['bf16']:.0f} in bf16 at best; {found[-1]['density']:.0%} of what is observed is "
        "not 0, and only that counts as work of a sparse first layer (dense: everything does)"
    )


if __name__ == "__main__":
    main()
