"""Policies that remember, with weights drawn at random: what they play depends on what they saw."""

from __future__ import annotations

from typing import Any

import torch

from sparring import Policy, Rules
from sparring.config import NetConfig
from sparring.nets.make import make_net

KINDS: dict[str, dict[str, Any]] = {
    "gru": {"memory": "gru", "memory_width": 6},
    "stack": {"memory": "stack", "frames": 3},
    "wide": {"memory": "gru", "memory_width": 40},
    "": {},
}


def remembering(rules: Rules | str, kind: str = "gru", seed: int = 0, **net: Any) -> Policy:
    """Return a policy of one of `KINDS`, "" for one that remembers nothing."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rules = Rules(rules) if isinstance(rules, str) else rules
    made: Any = make_net(rules, NetConfig(hidden=(16,), **KINDS[kind], **net))
    for weights in made.parameters():
        torch.nn.init.normal_(weights, std=0.4)
    return Policy(rules, made, name=f"{kind or 'none'} {seed}")
