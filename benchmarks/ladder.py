"""Elo of Shogi players: bots, engines and policies in matches, every opening with both colors.

python benchmarks/ladder.py                      neighbors on the ladder, results/ladder-*.json
python benchmarks/ladder.py runs/mine            ... and a run, which meets everybody
python benchmarks/ladder.py mix:random,ab2,0.5   ... and who moves like random half of the time
python benchmarks/ladder.py --all --games 400    everybody meets everybody
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import os
import random
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pages import file_of, keep
from sparring.commands.shared.printing import make_table, print_json, print_table
from sparring.errors import ConfigError, SparringError
from sparring.games import Rules, State, shogi
from sparring.games.shogi.protocol import game_seed, position_line
from sparring.league.arena import DEFAULT_PLIES
from sparring.league.elo import PRIOR, PairScore, unbounded_pairs
from sparring.league.ratings import Rating, connected_groups, rate
from sparring.league.seating import load_player
from sparring.league.usi.engine import Engine, EngineError
from sparring.league.usi.match import GO, Opening, random_opening, set_up
from sparring.machine import machine_info
from sparring.nets.policy import Policy
from sparring.pools.limits import MAX_PLIES

LADDER = ("random", "fairy-20", "greedy", "ab2", "ab3", "fairy0")
"""From weak to strong; the first one has the Elo 0."""
ENGINES: dict[str, tuple[dict[str, str], str, int]] = {
    "fairy-20": ({"Skill Level": "-20"}, "depth", 1),
    "fairy0": ({"Skill Level": "0"}, "nodes", 500),
}
"""Fairy-Stockfish by name: its options, and what it may use for a move."""
MIX, FAULT = "mix:", "fault: "
TIMEOUT_S = 5.0
"""Longest wait for a move. Limits by depth and nodes bound no time: an engine may look for captures
for minutes when both hands are full. It has lost then, as in `sparring eval --engine`."""


@dataclass
class Table:
    """A game that is played, and how it came where it is."""

    number: int
    state: State
    opening: Opening
    first: int
    """The seat of the pair's first player."""
    moves: list[str] = field(default_factory=list)
    lost_by: int | None = None
    """The seat that resigned or broke the rules."""
    end: str = ""

    def play(self, action: int) -> None:
        """Make a move."""
        self.moves.append(shogi.usi(self.state, action))
        self.state.apply(action)
        self.end = self.state.end or ""

    def give_up(self, why: str) -> None:
        """The side to move has lost."""
        self.lost_by, self.end = self.state.seat, why

    @property
    def over(self) -> bool:
        """Whether the game is over."""
        return self.state.over or self.lost_by is not None

    @property
    def score(self) -> float:
        """1 if the first player won, 0 if it lost, one half for anything else."""
        if self.lost_by is not None:
            return float(self.lost_by != self.first)
        return (1 + float(self.state.scores[self.first])) / 2


class Seated(Protocol):
    """A player that can be asked for moves."""

    at_once: bool
    """Whether games may be played side by side."""

    def move(self, tables: Sequence[Table]) -> None:
        """Make a move in every game."""


class Bot:
    """A bot of the game."""

    at_once = True

    def __init__(self, name: str) -> None:
        self.name = name

    def move(self, tables: Sequence[Table]) -> None:
        """Make a move in every game."""
        for table in tables:
            table.play(table.state.ask(self.name))


class Net:
    """A policy, which answers all games in one batch."""

    at_once = True

    def __init__(self, policy: Policy, *, sampled: bool) -> None:
        self.policy, self.sampled = policy, sampled

    def move(self, tables: Sequence[Table]) -> None:
        """Make a move in every game."""
        mask = np.zeros((len(tables), self.policy.rules.actions), np.uint8)
        for row, table in zip(mask, tables, strict=True):
            row[table.state.legal()] = 1
        obs = np.stack([t.state.observe_bytes(t.state.seat) for t in tables])
        first = tables[0]
        # Rows shift as games end, so that the seed of one of them stands for all.
        actions = self.policy.act(
            obs, mask, greedy=not self.sampled, seed=first.state.seed, step=len(first.moves)
        )
        for table, action in zip(tables, actions, strict=True):
            table.play(int(action))


class Mix:
    """Moves like one player with some probability, else like another."""

    def __init__(self, name: str, one: Seated, two: Seated, share: float) -> None:
        self.name, self.one, self.two, self.share = name, one, two, share
        self.at_once = one.at_once and two.at_once

    def move(self, tables: Sequence[Table]) -> None:
        """Make a move in every game, lots deciding how."""
        lots = [
            random.Random(f"{self.name} {t.state.seed} {len(t.moves)}").random() < self.share
            for t in tables
        ]
        for player, wanted in ((self.one, True), (self.two, False)):
            chosen = [t for t, lot in zip(tables, lots, strict=True) if lot == wanted]
            if chosen:
                player.move(chosen)


class Usi:
    """An engine. It plays one game after the other, as it keeps what it has found."""

    at_once = False

    def __init__(self, engine: Engine, go: str) -> None:
        self.engine, self.go, self.playing = engine, go, -1

    def move(self, tables: Sequence[Table]) -> None:
        """Make a move in every game; a fault loses it, and the engine is started anew."""
        for table in tables:
            try:
                move = self.ask(table)
            except EngineError as fault:
                table.give_up(f"{FAULT}{fault.kind}")
                self.engine.restart()
                continue
            if move == "resign":
                table.give_up("resignation")
            elif move in (legal := shogi.moves(table.state)):
                table.play(legal[move])
            else:
                table.give_up(f"{FAULT}illegal move")

    def ask(self, table: Table) -> str:
        """Return the reply of the engine."""
        if table.number != self.playing:
            self.playing = table.number
            self.engine.new_game()
        place = position_line(table.opening.start, table.moves)
        return self.engine.move(place, self.go, TIMEOUT_S)


@dataclass(frozen=True)
class Pair(PairScore):
    """A match, and how its games went."""

    plies: float
    """Per game."""
    ends: dict[str, int]
    seconds: float


def play_pair(
    rules: Rules, names: tuple[str, str], players: tuple[Seated, Seated], given: argparse.Namespace
) -> Pair:
    """Play a match: openings by lot, each with both colors."""
    started = time.perf_counter()
    tables = [sit_down(rules, number, given) for number in range(given.games)]
    at_once = all(player.at_once for player in players)
    for together in [tables] if at_once else [[table] for table in tables]:
        while playing := [table for table in together if not table.over]:
            turns = [[t for t in playing if t.state.seat == t.first ^ who] for who in (0, 1)]
            for player, mine in zip(players, turns, strict=True):
                if mine:
                    player.move(mine)
    scores = [table.score for table in tables]
    return Pair(
        *names,
        wins=scores.count(1.0),
        draws=scores.count(0.5),
        losses=scores.count(0.0),
        plies=float(np.mean([len(table.moves) for table in tables])),
        ends=dict(collections.Counter(table.end for table in tables)),
        seconds=round(time.perf_counter() - started, 1),
    )


def sit_down(rules: Rules, number: int, given: argparse.Namespace) -> Table:
    """Return a game of a match at its opening."""
    opening = random_opening(rules, given.opening_plies, given.seed, number // 2)
    state = set_up(rules, opening, game_seed(given.seed, number))
    return Table(number, state, opening, number % 2, list(opening.moves))


def invite(
    name: str, rules: Rules, given: argparse.Namespace, until: contextlib.ExitStack
) -> Seated:
    """Return the player of that name; engines run until the stack is left."""
    if name.startswith(MIX):
        words = name.removeprefix(MIX).split(",")
        try:
            one, two, share = words[0], words[1], float(words[2])
        except (IndexError, ValueError):
            share = -1.0
        if not 0 <= share <= 1 or len(words) != len(("one", "two", "share")):
            raise ConfigError(f"{name} is not {MIX}ONE,TWO,SHARE with a share from 0 to 1")
        parts = (invite(part, rules, given, until) for part in (one, two))
        return Mix(name, *parts, share)
    if name in ENGINES:
        options, kind, limit = ENGINES[name]
        return Usi(until.enter_context(Engine(given.engine, options)), GO[kind].format(limit))
    player = load_player(name, rules)
    return Bot(player) if isinstance(player, str) else Net(player, sampled=given.sampled)


def pairs_of(ladder: Sequence[str], guests: Sequence[str], *, everybody: bool) -> list[Any]:
    """Return the pairings: neighbors on the ladder, and guests with all players."""
    if everybody:
        return list(itertools.combinations([*ladder, *guests], 2))
    meetings = itertools.chain(
        itertools.pairwise(ladder),
        itertools.product(ladder, guests),
        itertools.combinations(guests, 2),
    )
    return list(meetings)


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Play all matches and rate the players."""
    rules = Rules("shogi", dict(word.split("=", 1) for word in given.set)).changed(
        {"skip_forced": 0}  # every move has to be told to the engines
    )
    if given.opening_plies >= rules.config["max_plies"]:
        raise ConfigError(f"--opening-plies {given.opening_plies} leaves no move within max_plies")
    names = [*given.ladder, *given.guests]
    pairs = []
    with contextlib.ExitStack() as until:
        players = {name: invite(name, rules, given, until) for name in names}
        for one, two in pairs_of(given.ladder, given.guests, everybody=given.all):
            pair = play_pair(rules, (one, two), (players[one], players[two]), given)
            told = f"+{pair.wins} ={pair.draws} -{pair.losses}, {pair.seconds:.0f} s"
            print(f"{one} - {two}: {told}", file=sys.stderr, flush=True)
            pairs.append(pair)
        engines = {
            name: {"name": player.engine.name, "options": ENGINES[name][0], "go": player.go}
            for name, player in players.items()
            if isinstance(player, Usi)
        }
    options = ("games", "opening_plies", "seed", "sampled", "all", "set")
    return {
        "machine": machine_info(),
        "options": {name: getattr(given, name) for name in options},
        "prior_draws_per_player": PRIOR,
        "engines": engines,
        "players": [rounded(rating) for rating in rate(names, pairs, anchors={}, seed=given.seed)],
        "pairs": [{**asdict(pair), "score": round(pair.share, 4)} for pair in pairs],
        "open_gaps": unbounded_pairs(pairs),
        "groups": connected_groups(names, pairs),
    }


def rounded(rating: Rating) -> dict[str, Any]:
    """Return a rating with as many digits as it is worth."""
    digits = {"elo": 1, "low": 1, "high": 1, "score": 4}
    found = asdict(rating).items()
    return {k: round(v, digits[k]) if k in digits and v is not None else v for k, v in found}


def show(record: dict[str, Any]) -> None:
    """Print ratings and matches."""
    table = make_table(
        ("player", "Elo", "95 % interval", "games", "score"), numbers=("Elo", "games", "score")
    )
    for row in record["players"]:
        interval = f"{row['low']:.0f}..{row['high']:.0f}"
        cells = (f"{row['elo']:.0f}", interval, f"{row['games']:,}", f"{row['score']:.1%}")
        table.add_row(row["player"], *cells)
    print_table(table)
    print()
    numbers = ("won", "drawn", "lost", "score", "plies")
    table = make_table(("match", *numbers), numbers=numbers)
    for pair in record["pairs"]:
        counts = [str(pair[key]) for key in ("wins", "draws", "losses")]
        cells = (*counts, f"{pair['score']:.1%}", f"{pair['plies']:.0f}")
        table.add_row(f"{pair['one']} - {pair['two']}", *cells)
    print_table(table)
    if len(groups := record["groups"]) > 1:
        said = " | ".join(", ".join(group) for group in groups)
        print(f"No games connect these groups, so that their Elo cannot be compared: {said}")
    if gaps := record["open_gaps"]:
        said = ", ".join(f"{one} - {two}" for one, two in gaps)
        print(f"One side got every point, so that the distance may be any larger: {said}")
    ends = [end for pair in record["pairs"] for end in pair["ends"].items()]
    if faults := sum(count for end, count in ends if end.startswith(FAULT)):
        print(f"Engines lost {faults} games by faults of their own")


def read_options(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the checked command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("guests", nargs="*", help="runs, policies, bots or mix:ONE,TWO,SHARE")
    parser.add_argument("--ladder", help=f"who is on it, by commas; default: {','.join(LADDER)}")
    parser.add_argument("--all", action="store_true", help="everybody meets everybody")
    parser.add_argument("--games", type=int, default=100, help="per pair, an even number")
    parser.add_argument(
        "--opening-plies", type=int, default=DEFAULT_PLIES, help="moves by lot before a game"
    )
    parser.add_argument("--seed", type=int, default=0, help="which openings are drawn")
    parser.add_argument("--sampled", action="store_true", help="policies draw their moves")
    parser.add_argument("--set", action="append", default=[], help="a flag of the game: key=value")
    parser.add_argument(
        "--engine", default="fairy-stockfish", help="the program of fairy-20, fairy0"
    )
    parser.add_argument("--out", type=Path, help="the file to write")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    given = parser.parse_args(words)
    path = f"{os.environ.get('PATH', '')}:/usr/games"  # where Debian has it
    engine = shutil.which(given.engine, path=path)
    if given.ladder:
        given.ladder = given.ladder.split(",")
    else:
        given.ladder = [name for name in LADDER if engine or name not in ENGINES]
        if not engine:
            print(f"{given.engine} is not here: the ladder has bots alone", file=sys.stderr)
    given.engine = engine or given.engine
    names = [*given.ladder, *given.guests]
    if given.games < 2 or given.games % 2:
        raise ConfigError(f"--games {given.games} must be even and at least 2: both colors")
    if not 0 <= given.opening_plies <= MAX_PLIES:
        raise ConfigError(f"--opening-plies {given.opening_plies} is outside 0..{MAX_PLIES}")
    if len(names) < 2 or len(set(names)) < len(names):
        raise ConfigError(f"a ladder has at least two players, each once: {', '.join(names)}")
    if wrong := [word for word in given.set if "=" not in word]:
        raise ConfigError(f"--set {wrong[0]!r} is not key=value")
    return given


def main(words: Sequence[str] | None = None) -> int:
    """Measure and save the record."""
    try:
        given = read_options(words)
        record = measure(given)
    except SparringError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    machine = f"{record['machine']['cpu']}, {record['machine']['cores']} cores"
    path = keep(record, given.out or file_of("ladder", machine))
    if given.json:
        print_json(record)
    else:
        show(record)
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
