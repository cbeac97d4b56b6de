"""Everything that a learner has to remember, as tensors, bytes and plain values.

Both learners write the same, so that a run begun on one goes on with the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sparring.errors import StateError
from sparring.learn.ppo import PPO
from sparring.learn.rollout import parts_of

if TYPE_CHECKING:
    from sparring.learn.fused import FusedPPO

EXACT = "exact state"
"""What a pool must be able to do for its games to be part of a checkpoint."""


@dataclass(frozen=True)
class Snapshot:
    """A learner between two updates; restored, it goes on bit for bit."""

    tensors: dict[str, dict[str, Tensor]]
    blobs: dict[str, bytes]
    meta: dict[str, Any]


def take(learner: PPO | FusedPPO, member: int = 0) -> Snapshot:
    """Copy what the next update depends on: weights, optimiser, games in flight, open decisions."""
    if not isinstance(learner, PPO):
        return take_fused(learner, member)
    carried = learner.assembler.carried
    rows = {
        name: torch.from_numpy(a[:carried].copy()) for name, a in learner.rollout.rows().items()
    }
    optimiser = {
        f"{index}.{name}": value.detach().cpu().clone()
        for index, kept in learner.optimiser.state_dict()["state"].items()
        for name, value in kept.items()
    }
    blobs = {}
    if EXACT in learner.pool.can:
        blobs = {"games.bin": learner.pool.state(), "open.bin": learner.assembler.open.tobytes()}
    net = {name: value.detach().cpu().clone() for name, value in learner.net.state_dict().items()}
    return Snapshot(
        tensors={"net": net, "optimiser": optimiser, "carried": rows},
        blobs=blobs,
        meta={
            "update": learner.updates,
            "decisions": learner.decisions,
            "samples": learner.samples,
        },
    )


def restore(learner: PPO | FusedPPO, snapshot: Snapshot, member: int = 0) -> None:
    """Put a fresh learner of the same configuration where the snapshot was taken."""
    if not isinstance(learner, PPO):
        restore_fused(learner, snapshot, member)
        return
    try:
        learner.net.load_state_dict(snapshot.tensors["net"])
    except RuntimeError as wrong:
        first = str(wrong).splitlines()[-1].strip()
        raise StateError(f"the checkpoint holds another network: {first}") from None
    groups = learner.optimiser.state_dict()["param_groups"]
    state = optimiser_state(snapshot)
    learner.optimiser.load_state_dict({"state": state, "param_groups": groups})
    if "games.bin" in snapshot.blobs:
        restore_games(learner, snapshot)
    learner.updates = snapshot.meta["update"]
    learner.decisions = snapshot.meta["decisions"]
    learner.samples = snapshot.meta["samples"]


def optimiser_state(snapshot: Snapshot) -> dict[int, dict[str, Tensor]]:
    """The optimiser's memory of every parameter, in the order of the parameters."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in snapshot.tensors["optimiser"].items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state


def restore_games(learner: PPO, snapshot: Snapshot) -> None:
    """Continue the games in flight and the decisions that were open in them."""
    for name, array in learner.rollout.rows().items():
        array[: learner.assembler.carried] = snapshot.tensors["carried"][name].numpy()
    open_rows = np.frombuffer(snapshot.blobs["open.bin"], learner.assembler.open.dtype)
    if open_rows.shape != learner.assembler.open.shape:
        raise StateError("the checkpoint was taken with another number of games")
    learner.assembler.open[:] = open_rows
    learner.pool.load_state(snapshot.blobs["games.bin"])
    learner.parts = parts_of(learner.pool)


def take_fused(learner: FusedPPO, member: int) -> Snapshot:
    """The same of one member of a learner on the GPU."""
    net, rollout = learner.net, learner.rollout
    moments = {
        "exp_avg": net.unpack(learner.first_moment[member]),
        "exp_avg_sq": net.unpack(learner.second_moment[member]),
    }
    step = torch.tensor(float(learner.steps[member]))
    optimiser = {}
    for index, name in enumerate(net.parameter_names()):
        optimiser[f"{index}.step"] = step.clone()
        for kind, named in moments.items():
            optimiser[f"{index}.{kind}"] = named[name]
    carried = learner.carried_of(member)
    legal = rollout.legal[carried].cpu()
    action = torch.arange(learner.pool.rules.actions)
    rows = {
        "obs": rollout.obs[carried].cpu(),
        "mask": (legal[:, action // 64] >> (action % 64) & 1).to(torch.uint8),
        **{name: getattr(rollout, name)[carried].cpu() for name in ("action", "log_prob", "value")},
    }
    return Snapshot(
        tensors={"net": net.state(member), "optimiser": optimiser, "carried": rows},
        blobs={
            "games.bin": learner.pool.state(member),
            "open.bin": rollout.open[carried].cpu().numpy().tobytes(),
        },
        meta={
            "update": learner.updates,
            "decisions": learner.decisions[member],
            "samples": learner.samples[member],
        },
    )


def restore_fused(learner: FusedPPO, snapshot: Snapshot, member: int) -> None:
    """Put one member where the snapshot was taken."""
    net, rollout, carried = learner.net, learner.rollout, learner.carried_of(member)
    kept = snapshot.tensors["carried"]
    open_rows = np.frombuffer(snapshot.blobs["open.bin"], np.int32).reshape(-1, 3).copy()
    if len(open_rows) != carried.stop - carried.start:
        raise StateError("the checkpoint was taken with another number of games")
    state = optimiser_state(snapshot)
    try:
        net.load(member, snapshot.tensors["net"])
        names = net.parameter_names()
        for array, kind in (
            (learner.first_moment, "exp_avg"),
            (learner.second_moment, "exp_avg_sq"),
        ):
            named = {name: state[index][kind] for index, name in enumerate(names)}
            array[member] = net.pack(named).to(learner.device)
    except (KeyError, RuntimeError) as wrong:
        raise StateError(f"the checkpoint holds another network: {wrong}") from None
    learner.steps[member] = int(state[0]["step"])
    rollout.open[carried] = torch.from_numpy(open_rows).to(learner.device)
    for name in ("obs", "action", "log_prob", "value"):
        getattr(rollout, name)[carried] = kept[name].to(learner.device)
    rollout.legal[carried] = packed(kept["mask"], rollout.legal.shape[1]).to(learner.device)
    learner.pool.load_state(snapshot.blobs["games.bin"], member)
    learner.updates = snapshot.meta["update"]
    learner.decisions[member] = snapshot.meta["decisions"]
    learner.samples[member] = snapshot.meta["samples"]


def packed(mask: Tensor, words: int) -> Tensor:
    """Bytes of a mask [rows, actions] as 64-bit words [rows, words]."""
    padded = torch.zeros(len(mask), words * 64, dtype=torch.int64)
    padded[:, : mask.shape[1]] = mask
    shifts = torch.arange(64)
    return (padded.view(len(mask), words, 64) << shifts).sum(-1)
