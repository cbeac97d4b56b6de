"""Kernels of learners: sampling of actions, losses, optimizer steps."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.kernels import KernelModule, build, build_ahead
from sparring.kernels.views import KernelView
from sparring.nets.critic_rows import CriticRows
from sparring.nets.frozen import gpu
from sparring.nets.inputs import Inputs, memory_bytes_of
from sparring.nets.run import flat
from sparring.nets.run.flat import VALUE_WIDTH, FlatNet, Pass, row_constants

PPO_SOURCE = '#include "cuda/ppo.cuh"\n'
GUMBEL_SOURCE = '#include "cuda/gumbel.cuh"\n'
REPLAY_SOURCE = '#include "cuda/optimizer.cuh"\n#include "cuda/replay.cuh"\n'


def action_constants(rules: Rules, *, bf16: bool) -> dict[str, int]:
    """Compile-time constants of a game's actions."""
    return {
        "SPARRING_BF16": int(bf16),
        "SPARRING_BOX": rules.box,
        "SPARRING_ACTIONS": rules.actions,
        "SPARRING_LEGAL_WORDS": rules.legal_words,
    }


def learner_kernels(rules: Rules, source: str, *, bf16: bool, device: torch.device) -> KernelModule:
    """Compile the kernels of a learner."""
    constants = action_constants(rules, bf16=bf16)
    return build(source, constants, exact=False, device=device, what=rules.name)


def compile_ahead(
    rules: Rules,
    source: str,
    nets: Iterable[NetConfig],
    *,
    bf16: bool,
    slots: int,
    device: torch.device,
) -> None:
    """Start compiling the kernels of a learner and its networks, while games are made.

    slots: of frozen opponents.
    """
    programs = [(source, action_constants(rules, bf16=bf16))]
    for net in nets:
        inputs = Inputs(rules, memory_bytes_of(rules, net), net.inputs)
        programs.append((flat.SOURCE, row_constants(inputs, bf16=bf16)))
        if slots:
            met = Inputs(rules, memory_bytes_of(rules, net))
            programs.append((gpu.SOURCE, row_constants(met, bf16=bf16)))
        if net.full_critic:
            seen = Inputs(CriticRows(rules).rules)
            programs.append((flat.SOURCE, row_constants(seen, bf16=bf16)))
    for program, constants in programs:
        build_ahead(program, constants, exact=False, device=device, what=rules.name)


def heads_view(kernels: KernelModule, net: FlatNet, at: Pass) -> KernelView:
    """View of the outputs of a pass, and of the biases that are added to them."""
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
    return -(-threads // block)
