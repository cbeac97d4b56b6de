"""Where the games of matches are kept: `--save-games` of `sparring eval` and `sparring arena`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from sparring.errors import ConfigError
from sparring.league.tables import Keeping
from sparring.targets import check_folder, writing

OTHERS = re.compile(r"[^A-Za-z0-9._@-]+")


@dataclass
class KeptGames:
    """A folder for replays, one folder inside for every match."""

    folder: Path
    most: int
    """Games of each match."""
    matches: dict[str, list[Keeping]] = field(default_factory=dict)

    def match(self, *names: str) -> Keeping:
        so_far = self.known(names)  # parts of a match that a test may end early
        keeping = Keeping(max(self.most - sum(len(part.replays) for part in so_far), 0))
        so_far.append(keeping)
        return keeping

    def known(self, names: tuple[str, ...]) -> list[Keeping]:
        """What was kept of matches between these players so far."""
        return self.matches.setdefault(OTHERS.sub("-", " against ".join(names)), [])

    def write(self) -> list[Path]:
        files: list[Path] = []
        with writing(f"into {self.folder}", "--save-games"):
            for name, parts in self.matches.items():
                place = self.folder / name
                place.mkdir(parents=True, exist_ok=True)
                for keeping in parts:
                    for replay, seat in zip(keeping.replays, keeping.seats, strict=True):
                        file = f"{replay.name.removesuffix('.json')}-seat{seat}.json"
                        files.append(replay.write(place / file))
        return files

    @property
    def missed(self) -> int:
        return sum(keeping.missed for parts in self.matches.values() for keeping in parts)

    def told(self, files: list[Path]) -> str:
        first = f"; next: sparring replay {files[0]}" if files else ""
        missed = f", {self.missed} did not come out again and are left out" if self.missed else ""
        return f"{len(files)} games kept in {self.folder}{missed}{first}"


def kept_games(folder: str, most: int) -> KeptGames | None:
    """Return where games are kept, None if nobody asked; a folder with games in it is refused."""
    if not folder:
        return None
    place = check_folder(folder, "--save-games")
    if place.is_dir() and any(place.glob("**/*.json")):
        raise ConfigError(f"--save-games {folder} holds games already; name another folder")
    return KeptGames(place, most)
