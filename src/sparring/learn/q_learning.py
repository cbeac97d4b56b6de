"""Values of actions: from heads to Q, targets and losses. No call waits for a device.

Q is what a seat is paid from here on if it takes an action and its best ones from then on. With
dueling, the policy head holds advantages and the value head what they are measured from:
Q = V + A - mean of A over legal actions. Without, the policy head holds Q itself. Either way the
best action is that of the policy head.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional


def legal_mean(head: Tensor, mask: Tensor) -> Tensor:
    """The mean over the legal actions of each row, 0 where there is none."""
    legal = mask.to(head.dtype)
    return (head * legal).sum(-1) / legal.sum(-1).clamp(min=1)


def q_values(policy_head: Tensor, value: Tensor, mask: Tensor, *, dueling: bool) -> Tensor:
    """Q of every action in float32; exactly -inf where the mask is 0."""
    q = policy_head.float()
    if dueling:
        q = q + (value.float() - legal_mean(q, mask)).unsqueeze(-1)
    return q.masked_fill(mask == 0, -torch.inf)


def q_of(
    policy_head: Tensor, value: Tensor, mask: Tensor, action: Tensor, *, dueling: bool
) -> Tensor:
    """Q of one action of each row, in float32."""
    head = policy_head.float()
    q = head.gather(-1, action.long().unsqueeze(-1)).squeeze(-1)
    return q + value.float() - legal_mean(head, mask) if dueling else q


def best_actions(policy_head: Tensor, mask: Tensor) -> Tensor:
    """The best legal action of each row; where there is none, the first one."""
    return policy_head.masked_fill(mask == 0, -torch.inf).argmax(-1)


def td_target(
    policy_head: Tensor,
    value: Tensor,
    *,
    chooser: Tensor,
    mask: Tensor,
    paid: Tensor,
    discount: Tensor,
    dueling: bool,
) -> Tensor:
    """What the decisions are to be worth: what they were paid, and the best that follows.

    policy_head, value: of the target network about what followed.
    chooser: the policy head whose best action is taken there: the network's own (double) or the
        target's.
    mask: of what followed. Rows without a legal action have a discount of 0.
    """
    best = best_actions(chooser, mask)
    return paid + discount * q_of(policy_head, value, mask, best, dueling=dueling)


def dqn_loss(
    policy_head: Tensor,
    value: Tensor,
    *,
    mask: Tensor,
    action: Tensor,
    target: Tensor,
    dueling: bool,
    huber: float,
    weight: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean loss of the actions that were taken, and how wrong each of their values is.

    huber: errors beyond it count linearly; 0: half the square of all.
    weight: of each sample; None: 1.
    """
    q = q_of(policy_head, value, mask, action, dueling=dueling)
    if huber:
        each = functional.huber_loss(q, target, delta=huber, reduction="none")
    else:
        each = 0.5 * functional.mse_loss(q, target, reduction="none")
    loss = (each if weight is None else each * weight).mean()
    return loss, (q.detach() - target).abs()


def spread_epsilon(epsilon: float, spread: float, games: int) -> npt.NDArray[np.float32]:
    """An epsilon for every game, from epsilon itself to epsilon^(1 + spread)."""
    if not spread or games == 1:
        return np.full(games, epsilon, np.float32)
    share = np.arange(games) / (games - 1)
    return np.asarray(epsilon ** (1 + spread * share), np.float32)
