"""The kinds of files that are fuzzed: a healthy one, how it is damaged, and what reads it.

Each is read by the function that its command calls once the options are known.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz import games, plans, records, web
from fuzz.mutations import spoil_bytes, spoil_file, spoil_lines, spoil_text, to_json, to_toml

Spoil = Callable[[Any, random.Random], bytes]
Whole = Callable[[Any], bytes]


def text_or_bytes(healthy: str, by: random.Random) -> bytes:
    """Damage a text, now and then as bytes in one of the encodings that records have."""
    if by.random() < 0.8:
        return spoil_text(healthy, by)
    return spoil_bytes(healthy.encode(by.choice(("utf-8", "cp932")), "replace"), by)


def spoil_json(healthy: Any, by: random.Random) -> bytes:
    """Damage a file of JSON."""
    return spoil_file(healthy, to_json, by)


def spoil_toml(healthy: Any, by: random.Random) -> bytes:
    """Damage a file of TOML."""
    return spoil_file(healthy, to_toml, by)


@dataclass(frozen=True)
class Form:
    """How a healthy value becomes a file, and a damaged one."""

    whole: Whole
    spoil: Spoil


JSON = Form(lambda value: to_json(value).encode(), spoil_json)
TOML = Form(lambda value: to_toml(value).encode(), spoil_toml)
LINES = Form(lambda rows: "".join(f"{to_json(r)}\n" for r in rows).encode(), spoil_lines)
TEXT = Form(str.encode, text_or_bytes)
TABLES = Form(records.as_database, records.spoil_database)
"""SQLite: rows by table."""


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    file: str
    """Its name, in a folder that `around` may have filled."""
    form: Form
    sample: Callable[[random.Random], Any]
    read: Callable[[Path], object]
    around: Callable[[Path], object] | None = None

    def healthy(self, by: random.Random) -> bytes:
        """A file that is read."""
        return self.form.whole(self.sample(by))

    def spoiled(self, by: random.Random) -> bytes:
        """A file that is damaged; the same lots damage it alike."""
        return self.form.spoil(self.sample(by), by)

    def place(self, folder: Path, content: bytes) -> Path:
        """Put a file where it is read."""
        path = folder / self.file
        if self.around and not path.parent.is_dir():
            self.around(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


FILES: Mapping[str, Kind] = {
    "replay": Kind("game.json", JSON, games.recorded, games.show_replay),
    "kif": Kind("game.kif", TEXT, games.kif, games.learn_from),
    "csa": Kind("games.csa", TEXT, games.csa, games.learn_from),
    "usi": Kind("games.usi", TEXT, games.usi, games.learn_from),
    "usi_engine": Kind("lines", TEXT, games.engine_lines, games.answer_engine),
    "openings": Kind("openings.txt", TEXT, games.openings, games.open_with),
    "starts": Kind("starts.jsonl", LINES, games.starts, games.start_tic_tac_toe),
    "starts_hockey": Kind("starts.json", JSON, games.hockey_starts, games.start_hockey),
    "starts_shogi": Kind("starts.sfen", TEXT, games.sfens, games.start_shogi),
    "config": Kind("settings.toml", TOML, plans.settings, plans.plan_config),
    "opponents": Kind("opponents.toml", TOML, plans.opponents, plans.plan_config),
    "curriculum": Kind("phases.toml", TOML, plans.phases, plans.plan_curriculum),
    "curriculum_json": Kind("phases.json", JSON, plans.phases, plans.plan_curriculum),
    "curriculum_hockey": Kind("hockey.json", JSON, plans.hockey_phases, plans.plan_hockey),
    "sweep": Kind("sweep.toml", TOML, plans.sweep, plans.plan_sweep),
    **{
        f"sweep_{name}": Kind(f"sweep/{file}", form, sample, plans.go_on_sweep, plans.make_sweep)
        for name, file, form, sample in (
            ("trials", "trials.jsonl", LINES, plans.trials),
            ("confirm", "confirm.jsonl", LINES, plans.confirming),
            ("options", "options.json", JSON, plans.options),
        )
    },
    "bench_file": Kind("configs.toml", TOML, plans.bench, plans.plan_bench),
    "bench_record": Kind("record.json", JSON, plans.bench_record, plans.compare_record),
    "ladder": Kind("ladder.json", JSON, records.ladder, records.show_ladder),
    "act": Kind("question.json", JSON, web.question, web.ask),
}
"""What people write, send or are sent."""
RUNS: Mapping[str, Kind] = {
    name: Kind(f"runs/mine/{file}", form, sample, read, records.make_runs)
    for name, file, form, sample, read in (
        ("run_config", "config.toml", TOML, plans.run_settings, plans.plan_run),
        ("listed_config", "config.toml", TOML, plans.run_settings, records.show_runs),
        ("results", "results.json", JSON, records.results, records.show_runs),
        ("events", "events.json", JSON, records.events, records.show_runs),
        ("network", "network.json", JSON, records.network, records.show_runs),
        ("machine", "machine.json", JSON, records.machine, records.draw_run),
        ("metrics", "metrics.sqlite", TABLES, records.metric_rows, records.show_runs),
        ("curves", "metrics.sqlite", TABLES, records.metric_rows, records.draw_run),
        ("league", "league.sqlite", TABLES, records.league_rows, records.show_league),
    )
}
"""What runs leave behind."""
KINDS: Mapping[str, Kind] = {**FILES, **RUNS}
