"""The magnet: the KL divergence of the policy from an earlier copy of itself, as a loss term.

In games with hidden information self-play cycles: each policy answers the one before. A magnet
slows the policy down, and together with an entropy bonus the last policy approaches an equilibrium
(magnetic mirror descent). The divergence is the reverse one, KL(policy || magnet), over legal
actions; its gradient flows through the policy alone. Every `ppo.magnet_period` updates the policy
that has just played becomes the magnet. With period 0 the magnet is uniform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.config import CollectConfig, PPOConfig
from sparring.games.rules import Rules
from sparring.learn.forward import Forward
from sparring.learn.playing import copied
from sparring.learn.terms import Arrays
from sparring.learn.transforms import MIRRORED, Mirroring
from sparring.nets.distribution import categorical_kl, gaussian_kl, masked_log_probs
from sparring.nets.heads import POLICY
from sparring.nets.net import HeadOutputs
from sparring.schedule import Moment

MAGNET = "magnet"
"""Column with log-probabilities of the magnet, -inf for illegal actions; or with its Gaussians.
Also the group of its weights in snapshots; with several roles, ".ROLE" is appended."""
AT_ONCE = 4096
"""Rows of a pass."""
MANY_ACTIONS = 256
"""More log-probabilities than this per row are stored in half precision."""


class MagnetTerm:
    """Weight, period and formula; CPU and GPU share them."""

    name = "magnet_kl"

    def __init__(
        self, rules: Rules, settings: PPOConfig, mirrors: Sequence[Mirroring] = ()
    ) -> None:
        """Take weight and period from settings.

        mirrors: of the learner; what the magnet says about a row is mirrored with it.
        """
        self.rules, self.settings, self.mirrors = rules, settings, mirrors
        self.weight, self.period = 0.0, 0

    def set_weight(self, moment: Moment) -> None:
        self.weight = self.settings.magnet.at(moment)
        self.period = round(self.settings.magnet_period.at(moment))

    def is_due(self, update: int, copied_at: int | None) -> bool:
        """Whether the policy becomes the magnet in an update. copied_at: update of the last copy.

        A magnet without weight is not renewed.
        """
        if not (self.weight and self.period):
            return False
        return copied_at is None or update - copied_at >= self.period

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Return nothing: on a GPU `learn.fused.magnet` computes the column."""
        return {}

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        magnet = rows[MAGNET].float()
        for mirror in self.mirrors:
            magnet = mirror.by_head(magnet, rows[MIRRORED])
        kl = gaussian_kl if self.rules.box else categorical_kl
        return kl(heads[POLICY], magnet)

    def stored(self, head: Tensor, mask: Tensor) -> Tensor:
        """Return the column for outputs of the magnet's policy head."""
        if self.rules.box:
            return head.float()
        return masked_log_probs(head, mask).to(self.dtype)

    @property
    def dtype(self) -> torch.dtype:
        """Of the column."""
        return torch.float16 if self.rules.actions > MANY_ACTIONS else torch.float32


class Magnet(MagnetTerm):
    """The magnet of one network on the host."""

    def __init__(
        self,
        policy: Forward,
        collect: CollectConfig,
        threads: int,
        settings: PPOConfig,
        mirrors: Sequence[Mirroring] = (),
    ) -> None:
        """Begin without a copy. policy: the network that learns. threads: of native passes."""
        super().__init__(policy.net.inputs.rules, settings, mirrors)
        self.policy, self.collect, self.threads = policy, collect, threads
        self.forward: Forward | None = None
        self.copied_at: int | None = None
        """Update of the last copy."""

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Make the copy if it is due; return the column of some samples of a rollout."""
        if self.is_due(learner.updates, self.copied_at):
            self.put(self.policy.net.state_dict(), learner.updates)
        rows = learner.rows()
        parts = np.array_split(samples, -(-len(samples) // AT_ONCE) or 1)
        found = [self.look(rows["obs"][part], rows["mask"][part]) for part in parts]
        return {MAGNET: np.concatenate(found)}

    @torch.no_grad()
    def look(self, obs: npt.NDArray[np.uint8], mask: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return the column of some rows."""
        if self.period and len(obs):
            assert self.forward is not None
            head = self.forward(torch.from_numpy(obs))[POLICY].float().cpu()
        else:
            head = torch.zeros(len(obs), self.policy.net.heads[POLICY])
        return self.stored(head, torch.from_numpy(mask)).numpy().copy()

    def put(self, weights: Mapping[str, Tensor], update: int) -> None:
        """Make weights of the policy the magnet's."""
        if self.forward is None:
            net = self.policy.net.cpu_copy().to(self.policy.device)
            self.forward = Forward(net, self.policy.device, self.collect)
            if self.policy.native:
                self.forward.go_native(self.threads)
        self.forward.net.load_state_dict(weights)
        self.copied_at = update

    def tensors(self) -> dict[str, Tensor]:
        """Copy its weights; none if it never had any."""
        return copied(self.forward.net) if self.forward and self.copied_at is not None else {}

    def load(self, tensors: Mapping[str, Tensor], copied_at: int | None) -> None:
        """Restore weights and the update of their copy."""
        self.copied_at = None
        if tensors and copied_at is not None:
            self.put(tensors, copied_at)
