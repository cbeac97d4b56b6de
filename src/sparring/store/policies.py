"""Load policies from runs, checkpoints, snapshots and saved folders; save policies."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparring import trusted
from sparring.config import NetConfig
from sparring.config.ranges import shortened
from sparring.errors import ConfigError, SparringError, SparringWarning
from sparring.extras import has_torch, needs_package
from sparring.factories import is_factory
from sparring.games.rules import Rules
from sparring.nets.array_net import ArrayNet
from sparring.nets.critic_rows import never_plays
from sparring.nets.heads import ROLES
from sparring.nets.policy import HEAD_META, Policy
from sparring.pools.custom.rules import CustomRules
from sparring.store.archive_index import ArchiveIndex, SnapshotEntry
from sparring.store.champions import CHAMPION, ZOO
from sparring.store.checkpoint import CheckpointError, load, newest_valid, save
from sparring.store.files import read_regular, temp_name
from sparring.store.folders import BEST, CHECKPOINTS, LEAGUE, MANIFEST
from sparring.store.lookup import find_policy, is_sb3_model, run_of, split_style
from sparring.store.manifest import Checkpoint
from sparring.store.policy_schema import check_heads, check_policy, uses_custom_net
from sparring.store.schema import integer, object_with, parse_json
from sparring.store.snapshots import read_snapshot
from sparring.store.styles import AS_IS
from sparring.store.tensors import check_fits_net, check_same_tensors, widen_halves

if TYPE_CHECKING:
    from torch import Tensor

    from sparring.nets.net import Net

NET_FIELDS = {field.name for field in fields(NetConfig)}
"""Names of all network settings."""
RENAMED_NET_FIELDS = {"normalise": "normalize", "segment": "bptt_steps", "spread": "std"}
"""Old names of settings, and the current ones."""
BEST_SCHEMA = object_with({"checkpoint": integer()})
NET_GROUP = "net"
"""Group of a checkpoint's tensors with the network."""
LOADED_FROM = "loaded_from"
"""Key of `meta`: origin of a loaded policy, RUN/NUMBER or a folder."""

MADE_BY = "made_by"
"""Key of `meta`: factory of the custom environment that a policy plays."""


def load_policy(
    path: str | Path,
    *,
    name: str = "",
    device: str = "cpu",
    threads: int = 1,
    net: Any = None,
    trust: str | Sequence[str] = (),
    seeing: bool = False,
    game: Rules | str | None = None,
) -> Policy:
    """Load a policy for inference from a run, a checkpoint, a snapshot or what `save_policy` wrote.

    For a run it is the best checkpoint, or the newest before the first evaluation. The file cannot
    run code: you have to trust custom networks and environments by name.
    path: name or path, see `store/lookup.py`; latest@64 searches, see `store/styles.py`.
    net: the custom network or its class, if training got it as an object.
    trust: classes and factories that the policy may use, such as my_nets:Net.
    seeing: take one that sees what is hidden; it measures, and never plays.
    game: what a model of Stable-Baselines3 (PATH.zip) plays, which its file does not say.
    """
    trusted.allow(*([trust] if isinstance(trust, str) else trust))
    place, style = split_style(path) if isinstance(path, str) else (path, AS_IS)
    folder, saved = load_playable(find_policy(place), seeing=seeing, game=game)
    trusted.allow_remembered(run_of(folder), saved.meta)
    rules = rules_from_meta(folder, saved.meta)
    if isinstance(game, str) and game not in ("", rules.name):
        raise ConfigError(f"{path} plays {rules.name}, not {game}")
    kind = saved.meta["net"].get("kind", "")
    if net is not None and is_factory(kind):
        from sparring.nets.custom import keep_net

        keep_net(net, kind)
    loaded = build_net(folder, rules, saved, threads)
    meta = {**saved.meta, LOADED_FROM: checkpoint_label(folder)}
    name = name or checkpoint_label(folder)
    return style.applied(Policy(rules, loaded, name=name, device=device, meta=meta))


def build_net(folder: Path, rules: Rules, saved: Checkpoint, threads: int) -> Net:
    """Build the network of a checkpoint and load its weights; raises CheckpointError.

    Without torch it is one of arrays.
    """
    meta = saved.meta
    make: Any = ArrayNet
    if has_torch():
        from sparring.nets.make import make_net as make

    def build() -> Net:
        net: Net = make(
            rules,
            net_config(meta["net"]),
            heads=meta.get("heads"),
            memory=meta.get("memory", 0),
            threads=threads,
            roles=role_configs(meta, rules),
        )
        return net

    try:
        check_heads(rules, meta.get("heads"))
        weights = widen_halves(with_current_names(saved.tensors[NET_GROUP]))
        if not uses_custom_net(meta):
            check_fits_net(build, weights)
        net = build()
        check_same_tensors(net.state_dict(), weights)
        net.load_state_dict(weights)
    except SparringError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        first = str(error).splitlines()[-1].strip()
        raise CheckpointError(
            f"{folder} holds no network that this version can build: {first}; load it with the "
            "version of sparring that wrote it"
        ) from error
    return net


def read_snapshot_checkpoint(file: Path) -> Checkpoint:
    """Read a snapshot as a checkpoint that holds only a network."""
    weights, meta = read_snapshot(file)
    entry = entry_of(file)
    number = entry.update if entry else 0
    when = {"update": number, "decisions": entry.decisions} if entry else {}
    return Checkpoint({NET_GROUP: weights}, {}, {**meta, **when}, number)


def entry_of(file: Path) -> SnapshotEntry | None:
    """Return the index entry of a snapshot, None for a file outside of a run."""
    file = file.resolve()
    if file.parent.name != LEAGUE:
        return None
    return ArchiveIndex(file.parent.parent).by_hash(file.stem)


def load_playable(
    path: Path, *, seeing: bool = False, game: Rules | str | None = None
) -> tuple[Path, Checkpoint]:
    """Load a checkpoint for playing; of a run the best one, or the newest undamaged one.

    Segments are not checked. The metadata of the policy are validated against its weights.
    seeing: also one that sees what is hidden. game: of a model of Stable-Baselines3.
    """
    if is_sb3_model(path):
        if not has_torch():
            raise ConfigError(needs_package("a model of Stable-Baselines3", "torch"))
        from sparring.store.sb3 import read_sb3

        weights, meta = read_sb3(path, game)
        return path, Checkpoint({NET_GROUP: weights}, {}, meta, 0)
    folder, saved = _load_playable(path)
    try:
        check_policy(saved.meta, saved.tensors.get(NET_GROUP))
    except ValueError as error:
        raise CheckpointError(f"{folder} holds no policy: {error}") from error
    if saved.meta["net"].get("sees") and not seeing:
        raise ConfigError(never_plays(checkpoint_label(folder)))
    return folder, saved


def _load_playable(path: Path) -> tuple[Path, Checkpoint]:
    if path.is_file():
        return path, read_snapshot_checkpoint(path)
    if (path / MANIFEST).is_file():
        return path, load(path, segments=False)
    checkpoints = path / CHECKPOINTS
    best, problem = best_checkpoint(path), ""
    if best is not None:
        try:
            return (named := checkpoints / f"{best:08d}"), load(named, segments=False)
        except CheckpointError as error:
            problem = f"the best checkpoint of {path.name}, {best}, cannot be used: {error}"
    newest = newest_valid(checkpoints, segments=False) if checkpoints.is_dir() else None
    if newest is None:
        raise CheckpointError(
            f"{path} holds no checkpoint; give a run folder, one of its checkpoints/<number> "
            "folders, or a saved policy"
        )
    if problem:
        text = f"taking checkpoint {int(newest.name)}, the newest undamaged one: {problem}"
        warnings.warn(SparringWarning(text), stacklevel=3)
    return newest, load(newest, segments=False)


def best_checkpoint(run: Path) -> int | None:
    """Return the number in best.json, None if the file is missing or damaged."""
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
    """Return RUN/NUMBER of a checkpoint or snapshot, otherwise the folder's name."""
    if entry := entry_of(folder):
        return entry.name
    if folder.parent == ZOO:
        return f"{folder.stem}:{CHAMPION}"
    folder = folder.resolve()
    if folder.parent.name == CHECKPOINTS:
        return f"{folder.parent.parent.name}/{int(folder.name)}"
    return folder.name


def rules_from_meta(folder: Path, meta: Mapping[str, Any]) -> Rules:
    """Return the rules of a checkpoint; raises CheckpointError if their version changed."""
    game, version = meta["game"], meta["rules_version"]
    if "foreign" in meta:
        custom = CustomRules(**meta["foreign"])
        custom.factory = str(meta.get(MADE_BY, ""))
        return custom
    rules = Rules(game, meta["game_config"])
    if rules.rules_version != version:
        raise CheckpointError(
            f"{folder} was trained under version {version} of the rules of {game}, this is version "
            f"{rules.rules_version}; use the version of sparring that trained it, or train anew: "
            f"sparring train {game}"
        )
    return rules


def custom_meta(rules: Rules) -> dict[str, Any]:
    """Return metadata of a custom environment, empty for built-in games."""
    if not isinstance(rules, CustomRules):
        return {}
    return {"foreign": rules.plain(), MADE_BY: rules.factory}


def policy_meta(rules: Rules, net: Net, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the metadata that are needed to load a network from its weights.

    meta: metadata of its policy, for facts about its heads.
    """
    facts = {key: meta[key] for key in HEAD_META if key in meta} if meta else {}
    return {
        "game": rules.name,
        "rules_version": rules.rules_version,
        "game_config": rules.config,
        **net.describe(),
        **custom_meta(rules),
        **facts,
    }


def net_config(saved: Mapping[str, Any]) -> NetConfig:
    """Read the configuration of a network, also with old names of settings."""
    saved = {RENAMED_NET_FIELDS.get(key, key): value for key, value in saved.items()}
    for key in saved:
        if key not in NET_FIELDS:
            raise ValueError(f"net.{shortened(key)} is unknown")
    return NetConfig(**saved)


def with_current_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename layers of older policies, which spell normaliser."""
    return {name.replace("normaliser.", "normalizer."): one for name, one in weights.items()}


def role_configs(meta: Mapping[str, Any], rules: Rules) -> dict[str, NetConfig]:
    """Read the network configurations by role, empty with one network for all roles.

    They are in the order of the rules; snapshots sort them by name.
    """
    saved = meta.get(ROLES, {})
    known = [role for role in rules.roles if role in saved]
    return {role: net_config(saved[role]) for role in dict.fromkeys((*known, *saved))}


def save_policy(policy: Policy, path: str | Path) -> Path:
    """Save a policy as a folder for `load_policy`; an existing policy is replaced."""
    target = Path(path)
    if target.exists() and not (target / MANIFEST).is_file():
        raise ConfigError(f"{target} exists and is no policy; choose another name")
    meta: dict[str, Any] = {
        **{key: policy.meta[key] for key in ("update", "decisions") if key in policy.meta},
        **policy_meta(policy.rules, policy.net, policy.meta),
    }
    number = int(policy.meta.get("update", 0))
    target.parent.mkdir(parents=True, exist_ok=True)
    temp = target.with_name(temp_name(target.name))
    try:
        net = dict(policy.net.state_dict())
        saved = save(temp, number, tensors={NET_GROUP: net}, blobs={}, meta=meta)
        if target.exists():
            target.rename(temp / "replaced")
        saved.rename(target)
        trusted.remember(target, trusted.strings_in(meta))
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    return target
