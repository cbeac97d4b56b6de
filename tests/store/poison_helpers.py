"""Runs of tic-tac-toe whose files somebody has changed, with the hashes made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.store import checkpoint
from sparring.store.manifest import MANIFEST, digest
from sparring.store.policies import policy_meta

NUMBER = 3


def make_run(folder: Path) -> Path:
    """Make a run with one checkpoint, and return that."""
    rules = Rules("tic_tac_toe")
    net = make_net(rules, NetConfig(hidden=(16,)))
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('game = "tic_tac_toe"\n')
    (folder / "best.json").write_text(json.dumps({"checkpoint": NUMBER}))
    return checkpoint.save(
        folder / "checkpoints",
        NUMBER,
        tensors={"net": dict(net.state_dict())},
        blobs={"games.bin": b"games"},
        meta={**policy_meta(rules, net), "update": NUMBER, "decisions": 100},
    )


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest, and make its hash again."""
    manifest = json.loads((path / MANIFEST).read_bytes())
    edit(manifest)
    write(path, manifest)


def write(path: Path, manifest: dict[str, Any]) -> None:
    """Replace a manifest, with a hash that fits."""
    manifest["sha256"] = digest(manifest)
    (path / MANIFEST).write_text(json.dumps(manifest))


def promise(data: bytes) -> dict[str, Any]:
    """What a manifest says about a file."""
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def put(path: Path, name: str, data: bytes) -> None:
    """Replace a file of a checkpoint, as if it had always been so."""
    (path / name).write_bytes(data)
    change(path, lambda manifest: manifest["files"].__setitem__(name, promise(data)))
