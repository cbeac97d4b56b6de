"""Settings of trials, from the values of ranges, and files with settings."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomlkit

from sparring import trusted
from sparring.config import TrainConfig
from sparring.config.options import joined
from sparring.errors import ConfigError, SparringError
from sparring.learn.plan import SHARED, check_shared
from sparring.output_files import check_file
from sparring.pygames.registry import is_env
from sparring.store.files import write_atomic
from sparring.sweep.file import SweepFile
from sparring.sweep.parameters import TuneCandidate
from sparring.sweep.space import show_setting
from sparring.training.planning.curricula import check_alike
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import FLAGS, OF_A_RUN, as_plain, read_file, with_flag
from sparring.training.records.run import folder_word
from sparring.training.train import check_given, complete

FOLDER = "runs"
"""Folder of a sweep's runs."""
MARK = "Written by sparring tune"
"""First comment of a file that tune may overwrite."""


def settings_at(file: SweepFile, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file's settings with these values; flags of the game are left out."""
    table = deepcopy(dict(file.settings))
    for name, value in point.items():
        *tables, last = name.split(".")
        if tables[:1] == [FLAGS]:
            continue
        inner = table
        for key in tables:
            inner = inner.setdefault(key, {})
        inner[last] = deepcopy(value)
    return table


def config_at(
    file: SweepFile, point: Mapping[str, Any], *, seed: int = 0, name: str = "", folder: str = ""
) -> TrainConfig:
    """Return the configuration of a trial. folder: of the sweep."""
    changes = settings_at(file, point)
    game = changes.pop("game")
    config = complete(game, "", changes)
    check_given(config, changes)
    pairs = config.set
    for key, value in point.items():
        if key.startswith(f"{FLAGS}."):
            flag = int(value) if isinstance(value, bool) else value
            pairs = with_flag(pairs, key.partition(".")[2], [flag], 0)
    own: dict[str, Any] = {"set": pairs, "seed": seed, "name": name}
    if folder:
        own["runs"] = str(Path(folder) / FOLDER)
    for key, usual in (("tensorboard", False), ("keep", 1)):
        own[key] = file.settings.get(key, usual)
    return replace(config, **own)


def preset_of(file: SweepFile, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trial's settings for a file of `sparring train --config`."""
    table = settings_at(file, point)
    if any(key.startswith(f"{FLAGS}.") for key in point):
        table[FLAGS] = list(config_at(file, point).set)
    return table


def file_for(game: str, out: str) -> Path:
    """Return the path of tune's result; raise if it is a file of the user.

    Without a name it is a new file, so that earlier results stay.
    """
    path = Path(out) if out else unused(f"tuned-{folder_word(game)}")
    check_file(path, "--out", suffixes=(".toml",))
    try:
        mine = not path.exists() or path.read_text("utf-8", "replace").startswith(f"# {MARK}")
    except OSError as error:
        raise ConfigError(f"out {out!r}: cannot read {path}: {error.strerror}") from None
    if not mine:
        raise ConfigError(
            f"out: {path} is there and not of sparring tune; give another name with --out"
        )
    return path


def unused(stem: str) -> Path:
    """Return the first unused path of stem.toml, stem-2.toml, ..."""
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    return next(path for name in names if not (path := Path(f"{name}.toml")).exists())


def settings_of(
    base: TrainConfig, file: str, point: TuneCandidate, flags: Sequence[str]
) -> dict[str, Any]:
    """Return the contents of tune's file: the user's settings, flags, and all parameters."""
    given = read_file(file) if file else {}
    table = {key: value for key, value in given.items() if key not in OF_A_RUN}
    if flags:
        table["set"] = list(base.set)  # complete: a file replaces the preset's flags
    table = joined(table, {"game": base.game, "algo": base.algo, "device": base.device})
    if is_env(base.game):
        table["workers"] = base.workers
    return joined(table, as_plain(point.table))


def write_settings(path: Path, table: Mapping[str, Any], comments: Sequence[str]) -> None:
    """Write a file for `sparring train --config` atomically, checked by reading it back."""
    head = "\n".join(f"# {' '.join(line.split())}".rstrip() for line in comments)
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    plain |= {key: value for key, value in table.items() if isinstance(value, Mapping)}
    text = f"{head}\n\n{tomlkit.dumps(plain)}"
    if tomllib.loads(text) != plain:
        raise ConfigError("the settings do not survive TOML; use tables, lists and values")
    write_atomic(path, text.encode())
    trusted.remember(path, trusted.strings_in(plain))


def check_points(file: SweepFile) -> TrainConfig:
    """Raise if some values of the ranges cannot be trained; return the file's settings.

    Every choice and both ends of every range are tried, one range at a time.
    """
    config = config_at(file, {})
    resolve([config], played=False)
    if config.eval.off:
        raise ConfigError(f"{file.where}: eval.off: trials are judged by evaluations; leave it out")
    for range_ in file.ranges.values():
        for value in range_.corners():
            try:
                resolve([config_at(file, {range_.name: value})], played=False)
            except SparringError as error:
                text = str(error).removeprefix("train: ")
                raise ConfigError(
                    f"{file.where}: range {range_.name!r}: {show_setting(value)} is refused: {text}"
                ) from None
    return config


def may_share(one: TrainConfig, two: TrainConfig) -> bool:
    """Whether two trials can be members of one population."""
    if one.algo != two.algo or one.algo not in SHARED:
        return False
    try:
        check_shared(one.algo, [getattr(config, one.algo) for config in (one, two)])
        check_alike([one, replace(two, init=one.init)])
    except ConfigError:
        return False
    if one.rewards == two.rewards:
        return True
    return len({resolve([config], played=False).by_role for config in (one, two)}) == 1


def ranges_shared(file: SweepFile) -> list[str]:
    """Return the ranges that have one value for all members of a population."""
    found = []
    for name, range_ in file.ranges.items():
        first, *others = (config_at(file, {name: value}) for value in range_.corners())
        if not all(may_share(first, other) for other in others):
            found.append(name)
    return found
