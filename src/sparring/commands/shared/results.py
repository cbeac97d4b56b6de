"""Tables and lines about match results, and the folder of `--save-games`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from sparring.commands.shared.printing import make_table
from sparring.errors import ConfigError
from sparring.games.rules import Rules, game_names
from sparring.games.stats import format_stat, main_stats
from sparring.league.match_batch import ReplayRecorder
from sparring.league.results import MatchResult
from sparring.output_files import check_folder, writing
from sparring.pools.custom.cache import is_custom
from sparring.pools.custom.rules import CustomRules
from sparring.store.lookup import is_sb3_model, split_style

NOT_IN_FOLDERS = re.compile(r"[^A-Za-z0-9._@-]+")
"""Characters of player names that folder names should not have."""


def next_command(rules: Rules, path: object, *, instead: str = "eval") -> str:
    """Return the command to try a trained agent: play in the terminal, or render a film.

    instead: the command for an environment of one seat whose actions have no names, which a person
        cannot play.
    """
    named = is_sb3_model(Path(split_style(str(path))[0]))  # whose file does not say the game
    if rules.box or (rules.rows > 1 and not is_custom(rules)):
        game = f" --game {rules.name}" if named else ""
        return f"sparring render {path}{game} --out game.gif"
    if isinstance(rules, CustomRules) and rules.seats == 1 and not rules.action_names:
        return f"sparring {instead} {path}"
    return f"sparring play {rules.name} --against {path}" if named else f"sparring play {path}"


def score_word(rules: Rules) -> str:
    return "return" if is_custom(rules) else "score"


def results_table(results: Mapping[str, MatchResult], word: str = "score") -> Table:
    """Return a table with a row per opponent. word: see `score_word`."""
    if all(result.seats == 1 for result in results.values()):
        return scores_table(results, word)
    numbers = ("win share", "95 % interval", f"{word} (95 %)", f"their {word}", "place")
    table = make_table(("against", *numbers), numbers=numbers)
    for name, result in results.items():
        first, others = result.first, result.others_score
        low, high = first.win_interval
        table.add_row(
            name,
            f"{first.win_share:.1%}",
            f"{low:.1%} .. {high:.1%}",
            f"{first.score:.2f} ± {first.score_interval[1] - first.score:.2f}".replace("nan", "?"),
            "-" if others is None else f"{others:.2f}",
            f"{first.rank:.2f}",
        )
    return table


def scores_table(results: Mapping[str, MatchResult], word: str = "score") -> Table:
    numbers = ("games", word, "95 % interval", "decisions")
    table = make_table(("played", *numbers), numbers=numbers)
    for name, result in results.items():
        low, high = result.first.score_interval
        # A return may be of any size; the interval shows which digits matter.
        digits = 2 if word == "score" or not high - low < 0.2 else 4
        interval = "?" if math.isnan(low) else f"{low:.{digits}f} .. {high:.{digits}f}"
        score, length = f"{result.first.score:.{digits}f}", f"{result.length:.0f}"
        table.add_row(name, f"{result.games:,}", score, interval, length)
    return table


def stats_table(rules: Rules, results: Mapping[str, MatchResult]) -> Table | None:
    """Return a table of the game's statistics of the challenger; None if it has none."""
    names = [
        name for name in main_stats(rules.stats) if any(name in r.stats for r in results.values())
    ]
    if not names:
        return None
    columns = tuple(f"against {name}" if results[name].seats > 1 else name for name in results)
    table = make_table(("statistic", *columns), numbers=columns)
    for name in names:
        cells = (format_stat(r.stats[name]) if name in r.stats else "-" for r in results.values())
        table.add_row(name, *cells)
    return table


def all_lines(results: Mapping[str, MatchResult]) -> list[str]:
    parts = (seat_lines, draw_lines, distinct_lines, skewed_lines, verdict)
    return [line for lines in parts for line in lines(results)]


def seat_lines(results: Mapping[str, MatchResult]) -> list[str]:
    width = max(map(len, results))
    return [
        f"by seat  {name:{width}}  "
        + "  ".join("-" if share is None else f"{share:.1%}" for share in result.seat_shares)
        for name, result in results.items()
        if result.seats > 1
    ]


def draw_lines(results: Mapping[str, MatchResult]) -> list[str]:
    """Return the share of decided games, for two-player games with draws."""
    width, lines = max(map(len, results)), []
    for name, result in results.items():
        first = result.first
        if result.seats != 2 or not first.ties or first.decided_share is None:
            continue
        low, high = first.decided_interval
        lines.append(
            f"decided  {name:{width}}  {first.decided / first.games:.1%} of the games, of which "
            f"{first.decided_share:.1%} won ({low:.1%} .. {high:.1%})"
        )
    return lines


def distinct_lines(results: Mapping[str, MatchResult]) -> list[str]:
    """Return the number of distinct games, where games repeat."""
    width, lines = max(map(len, results)), []
    for name, result in results.items():
        if result.distinct_games == result.games and not result.opening_plies:
            continue
        text = f"{result.distinct_games:,} of {result.games:,}"
        if result.distinct_deals < result.deals:
            text += f", intervals count {result.distinct_deals:,} of {result.deals:,} deals"
        if result.opening_plies:
            text += f"; the first {result.opening_plies} decisions of a deal are random"
        elif result.distinct_deals < result.deals and result.game in game_names():
            text += "; no opening is random: more games differ with --opening-plies"
        lines.append(f"distinct games  {name:{width}}  {text}")
    return lines


def skewed_lines(results: Mapping[str, MatchResult]) -> list[str]:
    """Return a note if the scores are skewed, so that their interval is rough."""
    rough = [name for name, result in results.items() if result.skewed]
    if not rough:
        return []
    deals = min(results[name].distinct_deals for name in rough)
    against = "" if len(results) == 1 else f" against {', '.join(rough)}"
    return [f"scores{against} are skewed: {deals:,} deals give a rough interval; more --games"]


def verdict(results: Mapping[str, MatchResult]) -> list[str]:
    """Return parity, and which opponents the challenger beats beyond chance."""
    one = next(iter(results.values()))
    seats = one.seats
    if seats == 1:
        return []
    games = f"{one.games:,} games against each"
    if one.games == one.deals * seats:  # an engine may have ended the match before
        games += f": {one.deals:,} deals, each from all {seats} seats"
    if all(result.distinct_games == result.games for result in results.values()):
        games += ", no game twice"
    found: dict[str, list[str]] = {
        "stronger than": [],
        "not distinguishable from": [],
        "weaker than": [],
    }
    for name, result in results.items():
        low, high = result.first.win_interval
        stronger, equal, weaker = found.values()
        (stronger if low > 1 / seats else weaker if high < 1 / seats else equal).append(name)
    parts = [f"{relation} {', '.join(names)}" for relation, names in found.items() if names]
    return [games, f"parity is {1 / seats:.1%} (1 of {seats} seats): {'; '.join(parts)}"]


@dataclass
class KeptGames:
    """Folder of replays, with a subfolder per match."""

    folder: Path
    most: int
    """Maximum of saved games per match."""
    matches: dict[str, list[ReplayRecorder]] = field(default_factory=dict)

    def match(self, *names: str) -> ReplayRecorder:
        parts = self.parts_of(names)  # parts of a match that a test may end early
        recorder = ReplayRecorder(max(self.most - sum(len(part.replays) for part in parts), 0))
        parts.append(recorder)
        return recorder

    def parts_of(self, names: tuple[str, ...]) -> list[ReplayRecorder]:
        return self.matches.setdefault(NOT_IN_FOLDERS.sub("-", " against ".join(names)), [])

    def write(self) -> list[Path]:
        files: list[Path] = []
        with writing(f"into {self.folder}", "--save-games"):
            for name, parts in self.matches.items():
                folder = self.folder / name
                folder.mkdir(parents=True, exist_ok=True)
                for recorder in parts:
                    for replay, seat in zip(recorder.replays, recorder.seats, strict=True):
                        file = f"{replay.name.removesuffix('.json')}-seat{seat}.json"
                        files.append(replay.write(folder / file))
        return files

    @property
    def missed(self) -> int:
        return sum(recorder.failed for parts in self.matches.values() for recorder in parts)

    def summary(self, files: list[Path]) -> str:
        first = f"; next: sparring replay {files[0]}" if files else ""
        missed = f", {self.missed} could not be replayed and are left out" if self.missed else ""
        return f"{len(files)} games saved in {self.folder}{missed}{first}"


def kept_games(folder: str, most: int) -> KeptGames | None:
    """Return the folder of --save-games, None without it; refuse a folder with games in it."""
    if not folder:
        return None
    place = check_folder(folder, "--save-games")
    if place.is_dir() and any(place.glob("**/*.json")):
        raise ConfigError(f"--save-games {folder} holds games already; name another folder")
    return KeptGames(place, most)
