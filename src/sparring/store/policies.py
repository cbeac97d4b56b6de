"""Policies on disk: from a run, a checkpoint, a snapshot or a folder of their own."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import Tensor

from sparring import trusted
from sparring.config import NetConfig
from sparring.config.ranges import shortened
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.custom import keep_net
from sparring.nets.hierarchy import ROLES
from sparring.nets.make import make_net
from sparring.nets.net import Net
from sparring.nets.policy import HEAD_META, Policy
from sparring.pools.custom.rules import CustomRules
from sparring.store.archive_index import ArchiveIndex, SnapshotEntry
from sparring.store.checkpoint import CheckpointError, load, newest_valid, save
from sparring.store.files import read_regular, temp_name
from sparring.store.folders import BEST, CHECKPOINTS, LEAGUE, MANIFEST
from sparring.store.lookup import find_policy, run_of
from sparring.store.manifest import Checkpoint
from sparring.store.policy_schema import check_heads, check_policy, uses_custom_net
from sparring.store.schema import integer, object_with, parse_json
from sparring.store.snapshots import read_snapshot
from sparring.store.tensors import check_fits_net, check_same_tensors

NET_FIELDS = {field.name for field in fields(NetConfig)}
"""Settings of a network."""
RENAMED_NET_FIELDS = {"normalise": "normalize", "segment": "bptt_steps", "spread": "std"}
"""Names of settings in older policies, and the present ones."""
BEST_SCHEMA = object_with({"checkpoint": integer()})
NET_GROUP = "net"
"""The group of a checkpoint's tensors that plays."""
LOADED_FROM = "loaded_from"
"""Where a loaded policy comes from, in its `meta`: a run and a number, or a folder."""

MADE_BY = "made_by"
"""What makes the environment of somebody's own that a policy plays, in its `meta`."""


def load_policy(
    path: str | Path,
    *,
    name: str = "",
    device: str = "cpu",
    threads: int = 1,
    net: Any = None,
    trust: str | Sequence[str] = (),
) -> Policy:
    """Load a policy for inference from a run, a checkpoint, a snapshot or what `save_policy` wrote.

    Of a run it is the best checkpoint, or the newest before any was measured. No code of the file's
    author is run: a network or environment of somebody's own has to be named by you.
    path: see `store/lookup.py`.
    net: that network, or its class, where it was an object of the program that trained it.
    trust: classes and factories that the policy may use, such as my_nets:Net.
    """
    trusted.allow(*([trust] if isinstance(trust, str) else trust))
    folder, saved = load_playable(find_policy(path))
    trusted.allow_remembered(run_of(folder), saved.meta)
    rules = rules_from_meta(folder, saved.meta)
    kind = saved.meta["net"].get("kind", "")
    if net is not None and is_factory(kind):
        keep_net(net, kind)
    made = build_net(folder, rules, saved, threads)
    meta = {**saved.meta, LOADED_FROM: checkpoint_label(folder)}
    return Policy(rules, made, name=name or checkpoint_label(folder), device=device, meta=meta)


def build_net(folder: Path, rules: Rules, saved: Checkpoint, threads: int) -> Net:
    """Build the network of a checkpoint, if its weights are those that it needs."""
    meta = saved.meta

    def build() -> Net:
        return make_net(
            rules,
            net_config(meta["net"]),
            heads=meta.get("heads"),
            memory=meta.get("memory", 0),
            threads=threads,
            roles=role_configs(meta, rules),
        )

    try:
        check_heads(rules, meta.get("heads"))
        weights = with_current_names(saved.tensors[NET_GROUP])
        if not uses_custom_net(meta):
            check_fits_net(build, weights)
        made = build()
        check_same_tensors(made.state_dict(), weights)
        made.load_state_dict(weights)
    except SparringError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        first = str(error).splitlines()[-1].strip()
        raise CheckpointError(
            f"{folder} holds no network that this version can build: {first}; load it with the "
            "version of sparring that wrote it"
        ) from error
    return made


def read_snapshot_checkpoint(file: Path) -> Checkpoint:
    """Load a snapshot as if it were a checkpoint with nothing but a network."""
    weights, meta = read_snapshot(file)
    entry = entry_of(file)
    number = entry.update if entry else 0
    when = {"update": number, "decisions": entry.decisions} if entry else {}
    return Checkpoint({NET_GROUP: weights}, {}, {**meta, **when}, number)


def entry_of(file: Path) -> SnapshotEntry | None:
    """Return what a run knows about one of its snapshots, None of a file that lies elsewhere."""
    file = file.resolve()
    if file.parent.name != LEAGUE:
        return None
    return ArchiveIndex(file.parent.parent).called(file.stem)


def load_playable(path: Path) -> tuple[Path, Checkpoint]:
    """Load the checkpoint that is here, or of a run the best one, or the newest that is whole.

    To be played, not to go on: nobody looks after the segments that it names. What it says about
    its policy is within what its weights can be.
    """
    folder, saved = _load_playable(path)
    try:
        check_policy(saved.meta, saved.tensors.get(NET_GROUP))
    except ValueError as error:
        raise CheckpointError(f"{folder} holds no policy: {error}") from error
    return folder, saved


def _load_playable(path: Path) -> tuple[Path, Checkpoint]:
    if path.is_file():
        return path, read_snapshot_checkpoint(path)
    if (path / MANIFEST).is_file():
        return path, load(path, segments=False)
    checkpoints = path / CHECKPOINTS
    best, why = best_checkpoint(path), ""
    if best is not None:
        try:
            return (named := checkpoints / f"{best:08d}"), load(named, segments=False)
        except CheckpointError as error:
            why = f"the best checkpoint of {path.name}, {best}, cannot be used: {error}"
    newest = newest_valid(checkpoints, segments=False) if checkpoints.is_dir() else None
    if newest is None:
        raise CheckpointError(
            f"{path} holds no checkpoint; give a run folder, one of its checkpoints/<number> "
            "folders, or a saved policy"
        )
    if why:
        text = f"taking checkpoint {int(newest.name)}, the newest that is whole: {why}"
        warnings.warn(SparringWarning(text), stacklevel=3)
    return newest, load(newest, segments=False)


def best_checkpoint(run: Path) -> int | None:
    """Return the number that best.json names, None without that file or if it is damaged."""
    file = run / BEST
    if not file.exists():
        return None
    try:
        best = parse_json(read_regular(file, within=run))
        BEST_SCHEMA(best, "")
    except (OSError, ValueError):
        text = f'{file} is not {{"checkpoint": number}}; taking the newest checkpoint'
        warnings.warn(SparringWarning(text), stacklevel=3)
        return None
    return int(best["checkpoint"])


def checkpoint_label(folder: Path) -> str:
    """Name a checkpoint or snapshot by its run and number, anything else by its folder."""
    if entry := entry_of(folder):
        return entry.name
    folder = folder.resolve()
    if folder.parent.name == CHECKPOINTS:
        return f"{folder.parent.parent.name}/{int(folder.name)}"
    return folder.name


def rules_from_meta(folder: Path, meta: Mapping[str, Any]) -> Rules:
    """Return the game of a checkpoint, if its rules are still the same."""
    game, version = meta["game"], meta["rules_version"]
    if "foreign" in meta:
        own = CustomRules(**meta["foreign"])
        own.factory = str(meta.get(MADE_BY, ""))
        return own
    rules = Rules(game, meta["game_config"])
    if rules.rules_version != version:
        raise CheckpointError(
            f"{folder} was trained under version {version} of the rules of {game}, this is version "
            f"{rules.rules_version}; use the version of sparring that trained it, or train anew: "
            f"sparring train {game}"
        )
    return rules


def custom_meta(rules: Rules) -> dict[str, Any]:
    """What a checkpoint has to say about an environment that is not ours."""
    if not isinstance(rules, CustomRules):
        return {}
    return {"foreign": rules.plain(), MADE_BY: rules.factory}


def policy_meta(rules: Rules, net: Net, said: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What has to be said about a network so that it can be loaded from its weights.

    said: `meta` of its policy, from which comes what its heads hold.
    """
    facts = {key: said[key] for key in HEAD_META if key in said} if said else {}
    return {
        "game": rules.name,
        "rules_version": rules.rules_version,
        "game_config": rules.config,
        **net.describe(),
        **custom_meta(rules),
        **facts,
    }


def net_config(saved: Mapping[str, Any]) -> NetConfig:
    """Read a network's configuration, also by older names; JSON made lists of its tuples."""
    saved = {RENAMED_NET_FIELDS.get(key, key): value for key, value in saved.items()}
    for key in saved:
        if key not in NET_FIELDS:
            raise ValueError(f"net.{shortened(key)} is unknown")
    return NetConfig(**saved)


def with_current_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights by the present names of layers; older policies spell normaliser."""
    return {name.replace("normaliser.", "normalizer."): one for name, one in weights.items()}


def role_configs(meta: Mapping[str, Any], rules: Rules) -> dict[str, NetConfig]:
    """Read the configurations of networks by role, none where one network is for all.

    They come in the order of the rules; snapshots have sorted them by name.
    """
    saved = meta.get(ROLES, {})
    known = [role for role in rules.roles if role in saved]
    return {role: net_config(saved[role]) for role in dict.fromkeys((*known, *saved))}


def save_policy(policy: Policy, path: str | Path) -> Path:
    """Write a policy to a folder of its own, which `load_policy` reads. A policy is replaced."""
    target = Path(path)
    if target.exists() and not (target / MANIFEST).is_file():
        raise ConfigError(f"{target} exists and holds no policy; choose another name")
    meta: dict[str, Any] = {
        **{key: policy.meta[key] for key in ("update", "decisions") if key in policy.meta},
        **policy_meta(policy.rules, policy.net, policy.meta),
    }
    number = int(policy.meta.get("update", 0))
    target.parent.mkdir(parents=True, exist_ok=True)
    workshop = target.with_name(temp_name(target.name))
    try:
        net = dict(policy.net.state_dict())
        made = save(workshop, number, tensors={NET_GROUP: net}, blobs={}, meta=meta)
        if target.exists():
            target.rename(workshop / "replaced")
        made.rename(target)
        trusted.remember(target, trusted.strings_in(meta))
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    return target
