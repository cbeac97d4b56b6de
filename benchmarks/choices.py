"""Strength per minute of choices: trainings with several seeds, side by side, held together.

python benchmarks/choices.py                                  forced moves and trunks, both games
python benchmarks/choices.py --choices trunks --games skull_king --parallel 7 --pin 2-15
python benchmarks/choices.py --own "torch: collect.cpu=torch" "native: " --with eval.target=[0.5]

Every run is one of `sparring train` with the game's preset, the choice and two cores. What is the
same in several choices is trained once. Then `sparring compare` says which is stronger, after as
many minutes and after as many decisions. The same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sides.cores import core_groups, side_by_side
from sides.words import read_side
from sparring.commands.comparing import matches_of, print_comparison
from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringError
from sparring.games.flags import latest, read_rules
from sparring.machine import machine_facts, warn_if_busy
from sparring.measuring.configs import Planned, complete_one
from sparring.measuring.trained import Progress, plain_settings, train_run
from sparring.training.planning.settings import with_preset
from sparring.training.records.compared import described, notes
from sparring.training.records.comparison import Comparison, compare_named

CHOICES: dict[str, dict[str, str]] = {
    "forced": {"asked": "set=skip_forced=0", "skipped": "set=skip_forced=1"},
    "trunks": {"one": "net.shared=true", "two": "net.shared=false"},
}
"""By name: the settings of each side."""
OWN = "own"
"""The choice that the command line makes."""


@dataclass(frozen=True)
class Choice:
    """A game, what is chosen, and which run of every seed each side has."""

    game: str
    name: str
    sides: dict[str, list[Planned]]


class Noting(Progress):
    """What is behind the bench, noted by several threads."""

    lock = threading.Lock()

    def note(self, run: Planned, **known: Any) -> None:
        """Write down what is known about a run."""
        with self.lock:
            super().note(run, **known)


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--choices", nargs="*", choices=CHOICES, help="left out: all, or --own")
    parser.add_argument("--own", nargs="+", default=[], help='sides as "NAME: settings"')
    parser.add_argument("--games", nargs="+", default=["skull_king", "kuhhandel"])
    parser.add_argument("--with", dest="common", default="", help="settings of all runs")
    parser.add_argument("--minutes", type=float, default=5.0, help="training time of a run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2, help="cores and threads of a run")
    parser.add_argument("--parallel", type=int, default=1, help="runs at once")
    parser.add_argument("--pin", default="", help="the cores to run on, such as 2,3 or 2-15")
    parser.add_argument("--matches", type=int, default=0, help="games between the best of each")
    parser.add_argument("--out", type=Path, default=Path("bench-choices"), help="for the runs")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.minutes <= 0 or not 1 <= given.seeds <= 64:
        parser.error("--minutes must be above 0, --seeds 1 to 64")
    return given


def main() -> None:
    """Train what is left, compare and print."""
    given = options()
    facts = machine_facts()
    warn_if_busy(facts["load_average"])
    try:
        choices = planned(given)
        progress = Noting.read(given.out)
        assert isinstance(progress, Noting)
        train_all(choices, progress, given)
        found = [compared(choice, progress, given) for choice in choices]
    except SparringError as wrong:
        print(f"choices: {wrong}", file=sys.stderr)
        sys.exit(2)
    if given.json:
        settings = {key: str(value) for key, value in vars(given).items()}
        print(json.dumps({"machine": facts, "options": settings, "choices": found}, indent=1))


def planned(given: argparse.Namespace) -> list[Choice]:
    """Read all choices; sides of the same settings are the same runs."""
    chosen = {name: CHOICES[name] for name in given.choices or ([] if given.own else CHOICES)}
    if given.own:
        chosen[OWN] = own_sides(given.own)
    known: dict[str, list[Planned]] = {}
    found = []
    for game in given.games:
        for name, sides in chosen.items():
            inner = {}
            for side, words in sides.items():
                runs = runs_of(game, side, words, given)
                inner[side] = known.setdefault(meaning(runs[0]), runs)
            found.append(Choice(game, name, inner))
    return found


def meaning(run: Planned) -> str:
    """Return a run's settings, the same text however its flags were said."""
    flags = read_rules(run.config.game, run.config.set).config
    return json.dumps({**plain_settings(run), "name": "", "set": flags}, sort_keys=True)


def own_sides(words: Sequence[str]) -> dict[str, str]:
    """Read "NAME: settings" of every side."""
    sides = {name.strip(): text for name, _, text in (word.partition(":") for word in words)}
    if len(sides) < max(len(words), 2):
        raise ConfigError('--own: give two sides or more, each as "NAME: settings" of its own name')
    return sides


def runs_of(game: str, side: str, words: str, given: argparse.Namespace) -> list[Planned]:
    """Return the runs of one side, a run for every seed."""
    table, variables = read_side(f"{given.common} {words}")
    if variables:
        raise ConfigError(f"{side}: {min(variables)} is a variable; set it for all runs instead")
    if "set" in table:  # beside the flags of the preset, not instead of them
        table["set"] = list(latest([*with_preset(game).set, *table["set"]]))
    own = {**table, "game": game, "threads": given.cores, "device": "cpu"}
    name = f"{game}-{side}"
    config: TrainConfig = complete_one(name, {}, own, (), given.minutes)
    return [
        Planned(
            name,
            replace(config, seed=seed, name=f"{name}-s{seed}", runs=str(given.out.absolute())),
        )
        for seed in range(given.seeds)
    ]


def train_all(choices: Sequence[Choice], progress: Progress, given: argparse.Namespace) -> None:
    """Train the first seed of everybody, then the second; what is trained already is left alone."""
    sides = [runs for choice in choices for runs in choice.sides.values()]
    every = {runs[seed].name: runs[seed] for seed in range(given.seeds) for runs in sides}
    for run in every.values():
        progress.demand_same(run)
    left = [run for run in every.values() if not progress.ended(run)]
    groups = core_groups(given.pin, given.cores, given.parallel)
    minutes = -(-len(left) // len(groups)) * given.minutes
    print(
        f"{len(left)} of {len(every)} runs to train, {len(groups)} at once: {minutes:g} minutes, "
        "and what measuring takes at the end of each",
        file=sys.stderr,
    )

    def work(run: Planned, _: tuple[int, ...]) -> str:
        train_run(run, progress, lambda *_: None)
        return str(progress.runs[run.name].get("failed", ""))

    def done(run: Planned, why: str) -> None:
        print(f"{run.name}: {f'failed: {why}' if why else 'trained'}", file=sys.stderr, flush=True)

    side_by_side(left, groups, work, done)


def compared(choice: Choice, progress: Progress, given: argparse.Namespace) -> dict[str, Any]:
    """Show what the runs of a choice say, and return it as JSON has it."""
    groups: dict[str, list[str]] = {
        side: [run.name for run in runs if "facts" in progress.runs[run.name]]
        for side, runs in choice.sides.items()
    }
    told: dict[str, Any] = {"game": choice.game, "choice": choice.name, "runs": groups}
    if lost := [side for side, names in groups.items() if not names]:
        return {**told, "why": f"no run of {', '.join(lost)} came to its end"}
    paths = {side: [progress.folder / name for name in names] for side, names in groups.items()}
    found = compare_named(paths)
    matches, said = matches_of(found, games=given.matches)
    said = notes(found) + said
    told["facts"] = {
        side: [progress.runs[name]["facts"] for name in names] for side, names in groups.items()
    }
    if not given.json:
        print(f"\n{choice.game}, {choice.name}")
        show(found, told["facts"])
        print_comparison(found, matches, said)
    return {**told, **described(found, matches), "notes": said}


def show(found: Comparison, facts: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print strength after as many minutes, and after as many decisions."""
    at = {by: found.common(by) for by in ("minutes", "decisions")}
    print(
        f"| | decisions/s | at the end | after {at['minutes']:.2f} min "
        f"| after {at['decisions']:,.0f} decisions | to targets |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for group in found.groups:
        runs = facts[group.name]
        speed = sum(run["decisions_per_s"] for run in runs) / len(runs)
        seeds = ", ".join(f"{strength:.3f}" for strength in found.strengths(group))
        common = [found.strength_at_common(group, by) for by in ("minutes", "decisions")]
        reached = [f"{t}: {s:.0f} s" for run in runs for t, s in run["targets"].items()]
        cells = [
            group.name,
            f"{speed:,.0f}",
            f"{found.strength(group).value:.3f} ({seeds})",
            *(f"{value.value:.3f}" if value else "" for value in common),
            ", ".join(reached),
        ]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
