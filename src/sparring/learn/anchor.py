"""A term of the loss that holds a policy near to another one: KL(anchor || policy) over the legal
actions. What was cloned is not forgotten while values are still poor; a schedule lets go of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.learn.mirror import MIRRORED, Mirroring
from sparring.learn.terms import Arrays, Weighted
from sparring.nets.distribution import masked_log_probs
from sparring.nets.net import POLICY, Heads, Net
from sparring.schedule import Schedule

ANCHOR = "anchor"
"""The column of what the anchor says."""
AT_ONCE = 4096


class AnchorTerm(Weighted):
    """The divergence of a policy from a frozen one."""

    name = "anchor_kl"

    def __init__(self, net: Net, weight: Schedule, mirrors: Sequence[Mirroring] = ()) -> None:
        """Hold a policy near to what this network says; nobody may change that any more.

        mirrors: in which rows are learned from: so is the anchor's word.
        """
        super().__init__(weight)
        self.net, self.mirrors = net.eval(), mirrors

    def columns(self, learner: Any, samples: npt.NDArray[Any]) -> Arrays:
        """Of every sample, the anchor's log-probabilities; -inf where an action is not legal."""
        rows = learner.rows()
        said = [
            self.said(rows["obs"][part], rows["mask"][part]).numpy()
            for part in np.array_split(samples, -(-len(samples) // AT_ONCE) or 1)
        ]
        return {ANCHOR: np.concatenate(said)}

    @torch.no_grad()
    def said(self, obs: npt.NDArray[np.uint8], mask: npt.NDArray[np.uint8]) -> Tensor:
        """What the anchor says about rows, in 16 bits: there may be thousands of actions."""
        device = next(self.net.parameters()).device
        own = np.ascontiguousarray(obs[:, : self.net.inputs.row_bytes])
        logits = self.net(torch.from_numpy(own).to(device))[POLICY]
        return masked_log_probs(logits, torch.from_numpy(mask).to(device)).half().cpu()

    def each(self, heads: Heads, rows: Mapping[str, Tensor]) -> Tensor:
        """The divergence of every row."""
        wanted = rows[ANCHOR].float()
        for mirror in self.mirrors:
            image = wanted.index_select(1, mirror.places)
            wanted = torch.where(rows[MIRRORED].unsqueeze(1), image, wanted)
        legal = torch.isfinite(wanted)
        log_probs = masked_log_probs(heads[POLICY], legal).masked_fill(~legal, 0.0)
        return (wanted.exp() * (wanted.masked_fill(~legal, 0.0) - log_probs)).sum(-1)
