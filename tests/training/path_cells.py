"""Settings whose networks take different paths, and the words that announce those of a GPU."""

from __future__ import annotations

from typing import Any

from sparring.training.planning.training import plan_training
from sparring.training.session import TrainingSession
from sparring.training.train import complete

SMALL: dict[str, Any] = {
    "device": "cpu",
    "threads": 1,
    "collect": {"games": 8, "steps": 8, "cpu": "float32"},
    "eval": {"off": True},
}
SKULL_KING = {"game": "skull_king", "set": ("rounds=1",)}
HOCKEY = {"game": "laser_hockey", "algo": "sac", "replay": {"capacity": 20_000, "warmup": 100}}
ATTENTION = {"kind": "attention", "token_width": 8, "token_heads": 2, "token_layers": 1}

KERNELS, CAPTURED = "kernels bf16", "captured graph bf16"
THIRD = ": about a third of the speed"
FLAT: dict[str, tuple[dict[str, Any], str]] = {
    "perceptron": ({}, KERNELS),
    "stack": ({"net": {"memory": "stack", "frames": 2}}, KERNELS),
    "residual": ({"net": {"kind": "residual", "channels": 8, "blocks": 1}}, KERNELS),
    "recognized": ({"net": {"kind": "own_nets:Plain"}}, KERNELS),
    "heads": (
        {"heads": {"wdl": 0.5}},
        f"{CAPTURED} because heads.wdl has no kernels{THIRD}",
    ),
    "several heads": (
        {"heads": {"wdl": 0.5, "score": 1}},
        f"{CAPTURED} because heads.wdl and heads.score have no kernels{THIRD}",
    ),
    "norm": (
        {"net": {"norm": True}},
        f"{CAPTURED} because net.norm has no kernels{THIRD}",
    ),
    "silu": (
        {"net": {"activation": "silu"}},
        f"{CAPTURED} because net.activation silu has no kernels{THIRD}",
    ),
    "odd width": (
        {"net": {"hidden": (12,)}},
        f"{CAPTURED} because net.hidden 12 (no multiples of 8) has no kernels{THIRD}",
    ),
    "own layers": (
        {"net": {"value_hidden": (8,)}},
        f"{CAPTURED} because net.value_hidden 8 has no kernels{THIRD}",
    ),
    "gru": (
        {"net": {"memory": "gru"}},
        f"{CAPTURED} because net.memory gru has no kernels",
    ),
    "odd channels": (
        {"net": {"kind": "residual", "channels": 12, "blocks": 1}},
        f"{CAPTURED} because net.channels 12 (no multiple of 8) has no kernels: about two "
        "thirds of the speed",
    ),
    "attention": (
        {**SKULL_KING, "net": ATTENTION},
        f"{CAPTURED} because net.kind attention has no kernels",
    ),
    "not recognized": (
        {"net": {"kind": "own_nets:Gated"}},
        f"{CAPTURED} because it is no plain perceptron (it has mul)",
    ),
    "dqn": ({"algo": "dqn"}, KERNELS),
    "sac": (HOCKEY, f"{KERNELS}, critics by captured graph"),
}


def prepared(**changes: Any) -> TrainingSession:
    own = {**SMALL, **changes, "collect": {**SMALL["collect"], **changes.get("collect", {})}}
    game = own.pop("game", "tic_tac_toe")
    return TrainingSession.prepare(
        plan_training([complete(game, "", {"updates": 1, **own})]), quiet=True
    )
