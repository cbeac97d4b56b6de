"""Every finished game of a run as a line of CSV."""

from __future__ import annotations

import warnings
from pathlib import Path

from sparring.errors import SparringWarning
from sparring.games.rules import Rules
from sparring.learn.rollout import Episodes
from sparring.pools.lineups import LEARNER, player_id
from sparring.training.records.sinks import CsvFile, WaitingError

FILE = "episodes.csv"


class EpisodesTable:
    """`episodes.csv`, written in batches of an update."""

    def __init__(self, run_folder: Path, rules: Rules) -> None:
        seats = range(rules.seats)
        players = [f"player_{seat}" for seat in seats]
        head = ["update", "game", "length", "end", *players, *(f"score_{seat}" for seat in seats)]
        self._table = CsvFile(run_folder / FILE, head)
        self._ends = rules.ends
        self._told = False
        self._names = {player_id(rules, bot): bot for bot in rules.bots} | {LEARNER: "learner"}

    def add(self, update: int, found: Episodes) -> None:
        """Add the games of an update; a full disk does not stop training."""
        columns = (found.game, found.length, found.end, found.policy, found.score)
        lines = [
            [update, game, length, self._ends[end], *map(self._called, players), *scores]
            for game, length, end, players, scores in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ]
        try:
            self._table.append(lines)
            self._told = False
        except WaitingError as wrong:
            if not self._told:
                text = f"{wrong}; training goes on, they are kept for now"
                warnings.warn(SparringWarning(text), stacklevel=2)
            self._told = True

    def close(self) -> None:
        """Write the games that wait for a disk with space."""
        try:
            self._table.close()
        except WaitingError as wrong:
            warnings.warn(SparringWarning(str(wrong)), stacklevel=2)

    def _called(self, policy: int) -> str:
        return self._names.get(policy, f"policy {policy}")

    def truncate_after(self, update: int) -> None:
        """Drop the games of later updates."""
        self._table.truncate_after(update)
