"""Policies on disk: from a run, a checkpoint or a folder of their own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparring.config import NetConfig
from sparring.errors import ConfigError, nearest
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools.foreign.base import ForeignRules
from sparring.store.checkpoint import CheckpointError, load, newest_valid, save
from sparring.store.files import temp_name
from sparring.store.folders import CHECKPOINTS, LATEST, RUNS, find, sorted_runs
from sparring.store.manifest import MANIFEST

BEST = "best.json"
"""The file of a run that names its best checkpoint."""


def load_policy(
    path: str | Path, *, name: str = "", device: str = "cpu", threads: int = 1
) -> Policy:
    """Load a policy for inference from a run, a checkpoint or what `save_policy` wrote.

    Of a run it is the best checkpoint, or the newest before any was measured.
    path: a folder, a run's name, or `latest`.
    """
    found = locate(path)
    if found is None:
        raise ConfigError(f"no folder {path}; give a run, a checkpoint or a saved policy")
    folder = checkpoint_of(found)
    saved = load(folder)
    rules = rules_of(folder, saved.meta)
    try:
        net = make_net(
            rules,
            net_config(saved.meta["net"]),
            heads=saved.meta.get("heads"),
            memory=saved.meta.get("memory", 0),
            threads=threads,
        )
        net.load_state_dict(saved.tensors["net"])
    except (KeyError, TypeError, RuntimeError) as wrong:
        first = str(wrong).splitlines()[-1].strip()
        raise CheckpointError(
            f"{folder} holds no network that this version can build: {first}; load it with the "
            "version of sparring that wrote it"
        ) from wrong
    return Policy(rules, net, name=name or label(folder), device=device, meta=saved.meta)


def locate(text: str | Path) -> Path | None:
    """Return the folder that a user means: its path, the beginning of a run's name, `latest`."""
    path = Path(text)
    if path.is_dir():
        return path
    if path.name == LATEST:
        return find(path, RUNS)
    if (RUNS / path).is_dir():
        return RUNS / path
    within = path.parent if len(path.parts) > 1 else RUNS
    known = any(run.name.startswith(path.name) for run in sorted_runs(within))
    return find(path, RUNS) if known else None


def checkpoint_of(path: Path) -> Path:
    """Return the folder with the manifest."""
    if (path / MANIFEST).is_file():
        return path
    checkpoints = path / CHECKPOINTS
    best = best_of(path)
    if best is not None:
        named = checkpoints / f"{best:08d}"
        if (named / MANIFEST).is_file():
            return named
        raise CheckpointError(
            f"{path / BEST} names checkpoint {best}, which is gone; delete {BEST} to use the "
            "newest, or give a checkpoint folder"
        )
    newest = newest_valid(checkpoints) if checkpoints.is_dir() else None
    if newest is None:
        raise CheckpointError(
            f"{path} holds no checkpoint; give a run folder, one of its checkpoints/<number> "
            "folders, or a saved policy"
        )
    return newest


def best_of(run: Path) -> int | None:
    """Return the number that best.json names, None without that file."""
    file = run / BEST
    if not file.is_file():
        return None
    try:
        return int(json.loads(file.read_text())["checkpoint"])
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(
            f'{file} is not {{"checkpoint": number}}; delete it to use the newest checkpoint'
        ) from None


def label(folder: Path) -> str:
    """Name a checkpoint by its run and number, anything else by its folder."""
    folder = folder.resolve()
    if folder.parent.name == CHECKPOINTS:
        return f"{folder.parent.parent.name}/{int(folder.name)}"
    return folder.name


def rules_of(folder: Path, meta: Mapping[str, Any]) -> Rules:
    """Return the game of a checkpoint, if its rules are still the same."""
    try:
        game, version, flags = meta["game"], meta["rules_version"], meta["game_config"]
    except KeyError as missing:
        raise CheckpointError(f"{folder} does not say its {missing}; it holds no policy") from None
    if "foreign" in meta:
        return ForeignRules(**meta["foreign"])
    rules = Rules(game, flags)
    if rules.rules_version != version:
        raise CheckpointError(
            f"{folder} was trained under version {version} of the rules of {game}, this is version "
            f"{rules.rules_version}; use the version of sparring that trained it, or train anew: "
            f"sparring train {game}"
        )
    return rules


def foreign_meta(rules: Rules) -> dict[str, Any]:
    """What a checkpoint has to say about an environment that is not ours."""
    return {"foreign": rules.plain()} if isinstance(rules, ForeignRules) else {}


def net_config(saved: Mapping[str, Any]) -> NetConfig:
    """Read a network's configuration; JSON made lists of its tuples."""
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in saved.items()
    }
    return NetConfig(**fields)


def save_policy(policy: Policy, path: str | Path) -> Path:
    """Write a policy to a folder of its own, which `load_policy` reads. A policy is replaced."""
    target = Path(path)
    if target.exists() and not (target / MANIFEST).is_file():
        raise ConfigError(f"{target} exists and holds no policy; choose another name")
    rules = policy.rules
    meta: dict[str, Any] = {
        **{key: policy.meta[key] for key in ("update", "decisions") if key in policy.meta},
        "game": rules.name,
        "rules_version": rules.rules_version,
        "game_config": rules.config,
        **policy.net.describe(),
        **foreign_meta(rules),
    }
    number = int(policy.meta.get("update", 0))
    target.parent.mkdir(parents=True, exist_ok=True)
    workshop = target.with_name(temp_name(target.name))
    try:
        net = dict(policy.net.state_dict())
        made = save(workshop, number, tensors={"net": net}, blobs={}, meta=meta)
        if target.exists():
            target.rename(workshop / "replaced")
        made.rename(target)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    return target


def find_player(text: str, rules: Rules, *, threads: int = 1) -> Policy | str:
    """Return the bot or the saved policy that a user means; results carry the name as typed."""
    bot = rules.bot_called(text)
    if bot is not None:
        return bot
    if locate(text) is None:
        raise ConfigError(
            f"{text!r} is neither a bot of {rules.name} nor a folder with a policy"
            f"{nearest(text, rules.bots)}"
        )
    policy = load_policy(text, name=text, threads=threads)
    policy.check_fits(rules)
    return policy
