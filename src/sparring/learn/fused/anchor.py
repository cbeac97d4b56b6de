"""The anchor of `learn.anchor` on a GPU: what it says of every place, inside the update's graph."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from sparring.learn.anchor import ANCHOR, AnchorTerm
from sparring.learn.fused.rollout import FusedRollout, mask_of
from sparring.nets.distribution import masked_log_probs
from sparring.nets.net import POLICY

AT_ONCE = 16384
"""Places that the frozen network is asked about in one pass."""


class FusedAnchor:
    """Asks the frozen network once per update about all that was played."""

    def __init__(self, term: AnchorTerm, rollout: FusedRollout, *, bf16: bool) -> None:
        """Move the frozen network to where the rollout is."""
        self.term, self.rollout, self.bf16 = term, rollout, bf16
        device = rollout.obs.device
        term.net.to(device)
        room = torch.zeros(
            rollout.places, rollout.rules.actions, dtype=torch.float16, device=device
        )
        self.by_place: Mapping[str, Tensor] = {ANCHOR: room}
        self._ask(slice(0, min(AT_ONCE, rollout.places)))  # what it makes once, before any graph

    def fill(self) -> None:
        """Ask about every place; those that nobody decided are never picked."""
        for at in range(0, self.rollout.places, AT_ONCE):
            self._ask(slice(at, min(at + AT_ONCE, self.rollout.places)))

    @torch.no_grad()
    def _ask(self, places: slice) -> None:
        obs, legal = self.rollout.obs[places], self.rollout.legal[places]
        obs = obs[:, : self.term.net.inputs.row_bytes]
        # As in `nets.run.captured`: rounded weights that are kept would be read by a later replay.
        with torch.autocast(
            obs.device.type, torch.bfloat16, enabled=self.bf16, cache_enabled=False
        ):
            logits = self.term.net(obs)[POLICY]
        said = masked_log_probs(logits, mask_of(legal, self.rollout.rules))
        self.by_place[ANCHOR][places].copy_(said)
