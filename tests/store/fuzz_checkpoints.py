"""Loads runs whose files were changed at random, in a process that may die of it.

    python fuzz_checkpoints.py FOLDER KIND,... FIRST LAST

Every case is one line of JSON: its number, its kind, its outcome and what was said. The kinds take
turns. A case that takes longer
than LIMIT_S ends the process by SIGALRM, one that needs more than LIMIT_BYTES is a MemoryError.
"""

from __future__ import annotations

import copy
import json
import math
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import torch as safetensors

from sparring.config import NetConfig
from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools.custom.rules import CustomRules
from sparring.store import checkpoint
from sparring.store.archive import Archive
from sparring.store.manifest import MANIFEST
from sparring.store.policies import load_policy, policy_meta
from sparring.store.standings import standings_of
from store.poison_helpers import NUMBER, promise, write

LIMIT_S = 20
LIMIT_BYTES = 2**30
"""Of address space beyond what the process has when it begins."""
WEIGHTS = "net.safetensors"
CLEAN, ACCEPTED, TRACEBACK = "clean error", "accepted", "traceback"

DEEP: list[Any] = []
for _ in range(60):
    DEEP = [DEEP]
ODD: tuple[Any, ...] = (None, True, False, -1, 0, 1, 2, 16, 2**31, 2**63, -(2**63), 10**30, 10**12)
ODD += (0.5, -0.0, 1e308, math.inf, -math.inf, math.nan, "", "x", "9", "..", "../..", "/etc/passwd")
ODD += ("a\0b", "\ud800", "\u2603", "x" * 5000, "no_such_module:Net", "mlp", "residual", "gru")
ODD += ([], {}, [[]], [None], [1], [-1], [8192] * 40, [1] * 1000, {"a": 1}, {"": None}, DEEP)
EVERYTHING = slice(None)
TYPES = (torch.int64, torch.float64, torch.bfloat16, torch.bool, torch.uint8, torch.float16)


# What is loaded


def networks() -> list[tuple[Rules, dict[str, Any]]]:
    """Kinds of policies: what they play, and how their networks are made."""
    bounds = {"low": [0.0, 0.0], "high": [1.0, 2.0], "shape": [2], "dtype": "float32"}
    parts = [["pixels", 12, "uint8", 255.0], ["speed", 4, "float32", 1.0]]
    sizes: dict[str, Any] = {"seats": 1, "rows": 1, "numbers": 16, "parts": parts}
    ttt, heads = Rules("tic_tac_toe"), {"policy": 9, "value": 1, "wdl": 3}
    return [
        (ttt, {"config": NetConfig(hidden=(16,))}),
        (ttt, {"config": NetConfig(hidden=(16, 8), memory="gru", memory_width=8), "heads": heads}),
        (ttt, {"config": NetConfig(kind="residual", channels=8, blocks=1)}),
        (
            Rules("kuhhandel"),
            {
                "config": NetConfig(),
                "roles": dict.fromkeys(("turn", "bidder"), NetConfig(hidden=(8,))),
            },
        ),
        (CustomRules("env", actions=3, **sizes), {"config": NetConfig(hidden=(8,))}),
        (
            CustomRules("box", actions=0, bounds=bounds, **sizes),
            {"config": NetConfig(shared=False)},
        ),
    ]


def make_whole(run: Path, rules: Rules, made: dict[str, Any]) -> None:
    """Make a run with a checkpoint, a snapshot beside it, and a league."""
    net = make_net(rules, **made)
    meta = {**policy_meta(rules, net), "update": NUMBER, "decisions": 100, "seconds": 1.5}
    weights = dict(net.state_dict())
    parts = {"part": lambda: {"x": torch.arange(5)}}
    saved: dict[str, Any] = {"blobs": {"games.bin": b"games"}, "meta": meta, "segments": parts}
    run.mkdir()
    (run / "config.toml").write_text(f'game = "{rules.name}"\n')
    (run / "best.json").write_text(json.dumps({"checkpoint": NUMBER, "strength": 0.5}))
    for number in (1, NUMBER):
        checkpoint.save(run / "checkpoints", number, tensors={"net": weights}, **saved)
    with Archive(run, max_bytes=10**9, policy=meta) as archive:
        entry = archive.add(weights, role="main", member="", update=1, decisions=1, seconds=1.0)
        archive.record(1, 10, {entry.hash: (1, 0, 2)})
        archive.rate(1, 10, {entry.hash: (1.0, 0.5, 1.5)})
    shutil.copy(archive.file(entry.hash), run / "agent.safetensors")


def load_all(run: Path, which: slice = EVERYTHING) -> list[str]:
    """Load what there is; return what was said about each, "" of what was accepted."""
    path = run / "checkpoints" / f"{NUMBER:08d}"
    (past,) = (*(run / "league").glob("*"), None)[:1]
    loads: list[Callable[[], object]] = [
        lambda: played(load_policy(path)),
        lambda: played(load_policy(run)),
        lambda: [read() for read in checkpoint.load(path).segments.values()],
        lambda: checkpoint.newest_valid(path.parent),
        lambda: played(load_policy(run / "agent.safetensors")),
        lambda: played(load_policy(past or "nothing")),
        lambda: standings_of(run),
    ]
    said = []
    for load in loads[which]:
        try:
            load()
            said.append("")
        except SparringError as wrong:
            said.append(str(wrong))
    return said


def played(policy: Policy) -> None:
    """Ask a policy for actions: what was accepted can be used."""
    policy.act(np.zeros((2, policy.net.inputs.row_bytes), np.uint8))


# What is done to it


def nodes(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand in JSON."""
    keys: Any = value if isinstance(value, dict) else ()
    for key in range(len(value)) if isinstance(value, list) else keys:
        yield (*at, key)
        yield from nodes(value[key], (*at, key))


def mutate(by: random.Random, value: dict[str, Any]) -> None:
    """Change, drop, add or move some values."""
    for _ in range(by.choice((1, 1, 1, 2, 3))):
        places = [at for at in nodes(value) if at != ("sha256",)]
        if not places:
            return
        *above, key = by.choice(places)
        outer: Any = value
        for step in above:
            outer = outer[step]
        how = by.randrange(7)
        if how == 0:
            del outer[key]
        elif how == 1 and isinstance(outer, dict):
            outer[str(by.choice(ODD))] = outer.pop(key)
        elif how == 2 and isinstance(outer[key], int | float) and not isinstance(outer[key], bool):
            outer[key] = outer[key] * by.choice((-1, 2, 1000, 10**9)) + by.choice((0, 1, 0.5))
        elif how == 3:
            outer[key] = by.choice(([outer[key]], {"a": outer[key]}, str(outer[key])[:99]))
        elif how == 4:
            other: Any = value
            for step in by.choice(places):
                other = other[step]
            outer[key] = json.loads(json.dumps(other))
        else:
            outer[key] = copy.deepcopy(by.choice(ODD))


def mutate_tensors(by: random.Random, data: bytes) -> bytes:
    """Change names, types, shapes and values of a safetensors file, or its bytes."""
    if by.random() < 0.3:
        return spoiled(by, data)
    tensors = safetensors.load(data)
    name = by.choice(sorted(tensors))
    how = by.randrange(6)
    if how == 0:
        del tensors[name]
    elif how == 1:
        tensors[by.choice(("extra", "a.b", "\u2603", "x" * 300))] = tensors.pop(name)
    elif how == 2:
        tensors[name] = tensors[name].to(by.choice(TYPES))
    elif how == 3:
        tensors[name] = tensors[name].reshape(-1, 1).repeat(1, by.choice((1, 2, 0)))
    elif how == 4:
        odd = (math.nan, math.inf, 1e30, 0) if tensors[name].is_floating_point() else (-1, 0, 127)
        tensors[name] = tensors[name].clone().fill_(by.choice(odd))
    else:
        tensors = {key: tensor.to(by.choice(TYPES)) for key, tensor in tensors.items()}
    head = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return safetensors.save(tensors, head.get("__metadata__"))


def spoiled(by: random.Random, data: bytes) -> bytes:
    """Cut, lengthen or change bytes."""
    how, rest = by.randrange(4), bytearray(data)
    if how == 0:
        return data[: by.randrange(len(data) + 1)]
    if how == 1:
        return data + by.randbytes(by.choice((1, 8, 1000)))
    for _ in range(by.choice((1, 2, 50))) if rest else ():
        at = by.randrange(len(rest)) if how == 2 else by.randrange(min(len(rest), 600))
        rest[at] = by.randrange(256)
    return bytes(rest)


def rehash(by: random.Random, run: Path) -> None:
    """Change a checkpoint, and make its hashes again."""
    path = run / "checkpoints" / f"{NUMBER:08d}"
    manifest = json.loads((path / MANIFEST).read_bytes())
    if by.random() < 0.3:
        name = by.choice((WEIGHTS, WEIGHTS, "games.bin"))
        data = (path / name).read_bytes()
        if by.random() < 0.2:
            data = (path / by.choice((WEIGHTS, "games.bin", MANIFEST))).read_bytes()
        else:
            data = mutate_tensors(by, data) if name == WEIGHTS else spoiled(by, data)
        (path / name).write_bytes(data)
        manifest["files"][name] = promise(data)
    if by.random() < 0.8:
        mutate(by, manifest if by.random() < 0.4 else manifest["meta"])
    write(path, manifest)


def damage(by: random.Random, run: Path) -> None:
    """Change bytes of some file, or put something else in its place."""
    path = by.choice(sorted(file for file in run.rglob("*") if file.is_file()))
    if by.random() < 0.7:
        path.write_bytes(spoiled(by, path.read_bytes()))
        return
    data = path.read_bytes()
    path.unlink()
    how = by.randrange(6)
    if how == 0:
        os.mkfifo(path)
    elif how == 1:
        path.mkdir()
    elif how == 2:
        path.symlink_to(by.choice(("/dev/zero", "/etc/passwd", "/proc/self/mem", path, "nowhere")))
    elif how == 3:
        path.write_text(by.choice(("[", '{"a":')) * 200_000)
    elif how == 4:
        (run.parent / "outside").write_bytes(data)
        path.symlink_to(run.parent / "outside")


def forge(by: random.Random, run: Path) -> None:
    """Change a snapshot, with the name that its bytes ask for."""
    file = run / "agent.safetensors"
    data = file.read_bytes()
    if by.random() < 0.4:
        data = mutate_tensors(by, data)
    else:
        meta = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        policy = json.loads(meta["policy"])
        mutate(by, policy)
        text = by.choice((json.dumps(policy), json.dumps(policy), "[" * 10**5, "[]", "3", ""))
        texts = {"policy": text} if by.random() < 0.95 else None
        data = safetensors.save(safetensors.load(data), texts)
    file.write_bytes(data)
    for old in (run / "league").glob("*"):
        old.unlink()
    (run / "league" / f"{promise(data)['sha256']}.safetensors").write_bytes(data)


def falsify(by: random.Random, run: Path) -> None:
    """Change what the index of a league and the file of the best checkpoint say."""
    best = {"checkpoint": NUMBER, "strength": 0.5}
    mutate(by, best)
    (run / "best.json").write_text(json.dumps(best) if by.random() < 0.8 else "[" * 10**5)
    plain = [value for value in ODD if isinstance(value, int | float | str | None)]
    plain = [v for v in plain if not isinstance(v, int) or abs(v) < 2**63]
    with closing(sqlite3.connect(run / "league.sqlite")) as db:
        table = by.choice(("snapshots", "players", "results", "ratings"))
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        value = by.choice((*plain, b"\xff")) if by.random() < 0.9 else by.randbytes(8)
        if value != "\ud800":
            change = f"UPDATE OR IGNORE {table} SET {by.choice(names)} = ?"
            try:
                db.execute(change, (value,))
                db.commit()
            except sqlite3.Error:
                pass  # the table's own constraints


KINDS: dict[str, tuple[Callable[[random.Random, Path], None], slice]] = {
    "rehashed": (rehash, slice(4)),
    "damaged": (damage, EVERYTHING),
    "snapshots": (forge, slice(4, 6)),
    "indexes": (falsify, slice(1, None, 5)),
}
"""How files are changed, and which loads read them."""


# Cases


def main(folder: Path, kinds: list[str], first: int, last: int) -> None:
    """Try cases, and say what came of each."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    wholes = []
    for at, (rules, made) in enumerate(networks()):
        wholes.append(folder / f"whole{at}-{os.getpid()}")
        make_whole(wholes[-1], rules, made)
        assert load_all(wholes[-1]) == [""] * 7, load_all(wholes[-1])
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT_BYTES,) * 2)
    for number in range(first, last):
        kind = kinds[number % len(kinds)]
        by = random.Random(f"{kind} {number}")
        run = folder / f"run-{os.getpid()}" / "run"
        shutil.rmtree(run.parent, ignore_errors=True)
        run.parent.mkdir()
        shutil.copytree(by.choice(wholes), run)
        spoil, which = KINDS[kind]
        spoil(by, run)
        signal.alarm(LIMIT_S)
        try:
            said = load_all(run, which)
            lines = [line for line in said if line]
            outcome = CLEAN if lines else ACCEPTED
            if any("\n" in line or len(line) > 1500 for line in lines):
                outcome = "not one line"
        except BaseException as wrong:
            outcome, said = TRACEBACK, [f"{type(wrong).__name__}: {wrong}"[:300], where(wrong)]
        signal.alarm(0)
        print(json.dumps([number, kind, outcome, said]), flush=True)


def where(wrong: BaseException) -> str:
    """Say where an exception came from."""
    trace = wrong.__traceback__
    places = []
    while trace:
        code = trace.tb_frame.f_code
        places.append(f"{Path(code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " ".join(places[-6:])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4]))
