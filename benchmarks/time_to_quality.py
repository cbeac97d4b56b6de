"""Time until an agent is as strong as another program's: ours and MaskablePPO on the same games.

python benchmarks/time_to_quality.py                              3 seeds each, one after the other
python benchmarks/time_to_quality.py --parallel 7 --pin 2-15      ... side by side on pairs of cores
python benchmarks/time_to_quality.py --peer none --target 0.64    ours alone
python benchmarks/time_to_quality.py --seconds 60 --seeds 1 --every 10 --games 1024     a short look

Everybody learns Skull King from one seat against three captains, with the settings of our preset as
far as each has them, and is measured by the same deals at moments of training time; meanwhile the
clock stands still. The target is what the peer reaches at the end, the mean over its seeds.
docs/inside/benchmarks.md has more.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from sides.answers import ask
from sides.cores import core_groups, side_by_side
from sides.reaching import described, mean_curve
from sides.words import read_side
from sparring.errors import SparringError
from sparring.machine import machine_info, warn_if_busy

LABELS = {
    "maskable": "MaskablePPO",
    "preset": "ours, preset",
    "same": "ours, same nets",
}


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=295.0, help="training time of a run")
    parser.add_argument("--ours-seconds", type=float, help="of ours, where it is another")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peer", choices=("maskable", "none"), default="maskable")
    parser.add_argument(
        "--ours", nargs="+", choices=("preset", "same"), default=["preset"], help="our networks"
    )
    parser.add_argument("--with", dest="common", default="", help="more settings of ours")
    parser.add_argument("--target", type=float, default=0.64, help="where there is no peer")
    parser.add_argument("--every", type=float, default=15.0, help="seconds between measurements")
    parser.add_argument("--games", type=int, default=4096, help="of a measurement: +-1.5 %%")
    parser.add_argument("--game", default="skull_king")
    parser.add_argument("--opponent", default="captain")
    parser.add_argument("--cores", type=int, default=2, help="cores and threads of a run")
    parser.add_argument("--parallel", type=int, default=1, help="runs at once")
    parser.add_argument("--pin", default="", help="the cores to run on, such as 2,3 or 2-15")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.ours_seconds = given.ours_seconds or given.seconds
    times = given.seconds, given.ours_seconds, given.every
    if given.seeds < 1 or min(times) <= 0 or given.games < 2:
        parser.error("--seeds, --seconds and --every must be above 0, --games at least 2")
    return given


def main() -> None:
    """Train all contestants and print."""
    given = options()
    facts = machine_info()
    warn_if_busy(facts["load_average"])
    try:
        found = train_all(given)
    except SparringError as wrong:
        print(f"time_to_quality: {wrong}", file=sys.stderr)
        sys.exit(2)
    told = summed_up(found, given)
    if given.json:
        print(json.dumps({"machine": facts, "options": vars(given), **told}, indent=1))
    else:
        show(told, given)


def train_all(given: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Train all contestants with all seeds; the first seed of each, then the second."""
    groups = core_groups(given.pin, given.cores, given.parallel)
    kinds = [*([given.peer] if given.peer != "none" else []), *given.ours]
    settings, variables = read_side(given.common)
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}

    def work(job: tuple[str, int], _: tuple[int, ...]) -> dict[str, Any]:
        kind, seed = job
        request = {"kind": kind, "seed": seed, "threads": given.cores, "settings": settings}
        names = ("game", "opponent", "seconds", "every", "games")
        request |= {name: getattr(given, name) for name in names}
        if kind != given.peer:
            request["seconds"] = given.ours_seconds
        return ask("sides.quality", request, variables)

    def done(job: tuple[str, int], run: dict[str, Any]) -> None:
        found[job[0]].append(run)

    jobs = [(kind, seed) for seed in range(given.seeds) for kind in kinds]
    side_by_side(jobs, groups, work, done)
    return found


def summed_up(found: dict[str, list[dict[str, Any]]], given: argparse.Namespace) -> dict[str, Any]:
    """Return times to the peer's strength and to a half, with how much sooner that was."""
    target = given.target
    if given.peer in found:
        target = described(found[given.peer], ())["win"]
    contestants = {}
    for kind, runs in found.items():
        one = described(runs, (0.5, target))
        time = one["typical"][f"{target:.3f}"]
        one["sooner"] = given.seconds / time if time else None
        if kind == given.peer:  # it takes all of its time by definition
            one["sooner"] = 1.0
        one["mean_curve"] = mean_curve([run["curve"] for run in runs], given.every)
        contestants[kind] = {"label": LABELS[kind], **one, "runs": runs}
    return {"target": target, "contestants": contestants}


def show(told: dict[str, Any], given: argparse.Namespace) -> None:
    """Print a table."""
    target = f"{told['target']:.3f}"
    print(
        f"{given.game} against {given.opponent}, {given.seconds:g} s of training (ours "
        f"{given.ours_seconds:g} s) on {given.cores} cores, seeds 0 to {given.seeds - 1}"
    )
    print(f"| | samples/s | win share at the end | to 0.5 | to {target} | sooner |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind, one in told["contestants"].items():
        shares = ", ".join(f"{win:.3f}" for win in one["wins"])
        cells = [
            one["label"],
            f"{one['samples_per_s']:,.0f}",
            f"{one['win']:.3f} ({shares})",
            shown(one["typical"]["0.500"]),
            f"{given.seconds:g} s, its end"
            if kind == given.peer
            else f"{shown(one['typical'][target])} ({', '.join(map(shown, one['times'][target]))})",
            f"{one['sooner']:.1f}x" if one["sooner"] else "",
        ]
        print(f"| {' | '.join(cells)} |")
    print(f"sooner: {given.seconds:g} s by the time to {target}, the median over the seeds")


def shown(seconds: float | None) -> str:
    """A time, or that it was never reached."""
    return "never" if seconds is None else f"{seconds:.0f} s"


if __name__ == "__main__":
    main()
