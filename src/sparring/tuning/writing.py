"""The file of settings that came out, for `sparring train --config`."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit

from sparring import trusted
from sparring.config import TrainConfig
from sparring.config.options import joined
from sparring.errors import ConfigError
from sparring.factories import is_factory
from sparring.store.files import write_atomic
from sparring.targets import check_file
from sparring.training.planning.settings import OF_A_RUN, as_plain, read_file
from sparring.training.records.run import word_of
from sparring.tuning.knobs import Point

MARK = "# Written by sparring tune"
"""How a file begins that may be written anew."""


def file_for(game: str, out: str) -> Path:
    """Where the settings go; a file of somebody else's is refused.

    Without a name it is a new one: what an earlier search has found stays.
    """
    path = Path(out) if out else unused(f"tuned-{word_of(game)}")
    check_file(path, "--out", suffixes=(".toml",))
    try:
        mine = not path.exists() or path.read_text("utf-8", "replace").startswith(MARK)
    except OSError as wrong:
        raise ConfigError(f"out {out!r}: cannot read {path}: {wrong.strerror}") from None
    if not mine:
        raise ConfigError(
            f"out: {path} is there and not of sparring tune; give another name with --out"
        )
    return path


def unused(stem: str) -> Path:
    """The first of stem.toml, stem-2.toml and so on that is not there."""
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    return next(path for name in names if not (path := Path(f"{name}.toml")).exists())


def settings_of(base: TrainConfig, file: str, point: Point, flags: Sequence[str]) -> dict[str, Any]:
    """What the file holds: what the given file said, flags, and every knob."""
    given = read_file(file) if file else {}
    table = {key: value for key, value in given.items() if key not in OF_A_RUN}
    if flags:
        table["set"] = list(base.set)  # with what preset and file say, which a file replaces
    table = joined(table, {"game": base.game, "algo": base.algo, "device": base.device})
    if is_factory(base.game):
        table["workers"] = base.workers
    return joined(table, as_plain(point.table))


def write_settings(path: Path, table: Mapping[str, Any], comments: Sequence[str]) -> None:
    """Write the file whole or not at all; what it says is read back first."""
    head = "\n".join([MARK, *(f"# {line}".rstrip() for line in comments)])
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    plain |= {key: value for key, value in table.items() if isinstance(value, Mapping)}
    text = f"{head}\n\n{tomlkit.dumps(plain)}"
    if tomllib.loads(text) != plain:
        raise ConfigError("the settings do not survive TOML; use tables, lists and values")
    write_atomic(path, text.encode())
    trusted.remember(path, trusted.texts(plain))
