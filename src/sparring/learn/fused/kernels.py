"""The kernels of the learner: from what heads say to actions, losses and optimiser steps."""

from __future__ import annotations

import torch

from sparring.games.rules import Rules
from sparring.kernels import Module, build
from sparring.kernels.views import View
from sparring.nets.flat import VALUE_WIDTH, FlatNet, Pass

PPO_SOURCE = '#include "cuda/ppo.cuh"\n'
REPLAY_SOURCE = '#include "cuda/optimiser.cuh"\n#include "cuda/replay.cuh"\n'


def action_constants(rules: Rules, *, bf16: bool) -> dict[str, int]:
    """The actions of a game, which the kernels are compiled for."""
    return {
        "SPARRING_BF16": int(bf16),
        "SPARRING_BOX": rules.box,
        "SPARRING_ACTIONS": rules.actions,
        "SPARRING_LEGAL_WORDS": rules.legal_words,
    }


def learner_kernels(rules: Rules, source: str, *, bf16: bool, device: torch.device) -> Module:
    """Compile what a learner launches."""
    return build(source, action_constants(rules, bf16=bf16), exact=False, device=device)


def heads_view(kernels: Module, net: FlatNet, at: Pass) -> View:
    """What a pass says about its rows, and the biases that are still missing."""
    return kernels.view(
        "HeadsView",
        policy=at.logits,
        value=at.value,
        value_stride=VALUE_WIDTH,
        policy_bias=net.policy_bias,
        value_bias=net.value_bias,
        bias_stride=net.bias_stride,
    )


def blocks_of(threads: int, block: int = 256) -> int:
    """Blocks for so many threads."""
    return -(-threads // block)
