"""Everything that a learner has to remember, as tensors, bytes and plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.errors import StateError
from sparring.learn.ppo import PPO
from sparring.learn.rollout import parts_of

EXACT = "exact state"
"""What a pool must be able to do for its games to be part of a checkpoint."""


@dataclass(frozen=True)
class Snapshot:
    """A learner between two updates; restored, it goes on bit for bit."""

    tensors: dict[str, dict[str, Tensor]]
    blobs: dict[str, bytes]
    meta: dict[str, Any]


def take(ppo: PPO) -> Snapshot:
    """Copy what the next update depends on: weights, optimiser, games in flight, open decisions."""
    carried = ppo.assembler.carried
    rows = {name: torch.from_numpy(a[:carried].copy()) for name, a in ppo.rollout.rows().items()}
    optimiser = {
        f"{index}.{name}": value.detach().cpu().clone()
        for index, kept in ppo.optimiser.state_dict()["state"].items()
        for name, value in kept.items()
    }
    blobs = {}
    if EXACT in ppo.pool.can:
        blobs = {"games.bin": ppo.pool.state(), "open.bin": ppo.assembler.open.tobytes()}
    net = {name: value.detach().cpu().clone() for name, value in ppo.net.state_dict().items()}
    return Snapshot(
        tensors={"net": net, "optimiser": optimiser, "carried": rows},
        blobs=blobs,
        meta={"update": ppo.updates, "decisions": ppo.decisions, "samples": ppo.samples},
    )


def restore(ppo: PPO, snapshot: Snapshot) -> None:
    """Put a fresh learner of the same configuration where the snapshot was taken."""
    try:
        ppo.net.load_state_dict(snapshot.tensors["net"])
    except RuntimeError as wrong:
        first = str(wrong).splitlines()[-1].strip()
        raise StateError(f"the checkpoint holds another network: {first}") from None
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in snapshot.tensors["optimiser"].items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    groups = ppo.optimiser.state_dict()["param_groups"]
    ppo.optimiser.load_state_dict({"state": state, "param_groups": groups})
    if "games.bin" in snapshot.blobs:
        restore_games(ppo, snapshot)
    ppo.updates = snapshot.meta["update"]
    ppo.decisions = snapshot.meta["decisions"]
    ppo.samples = snapshot.meta["samples"]


def restore_games(ppo: PPO, snapshot: Snapshot) -> None:
    """Continue the games in flight and the decisions that were open in them."""
    for name, array in ppo.rollout.rows().items():
        array[: ppo.assembler.carried] = snapshot.tensors["carried"][name].numpy()
    open_rows = np.frombuffer(snapshot.blobs["open.bin"], ppo.assembler.open.dtype)
    if open_rows.shape != ppo.assembler.open.shape:
        raise StateError("the checkpoint was taken with another number of games")
    ppo.assembler.open[:] = open_rows
    ppo.pool.load_state(snapshot.blobs["games.bin"])
    ppo.parts = parts_of(ppo.pool)
