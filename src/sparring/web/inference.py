"""One forward pass for many questions, and the queue in which they meet."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sparring.nets.distribution import (
    ActionSampler,
    masked_log_probs,
    mean_and_log_std,
    squash_actions,
)
from sparring.nets.net import POLICY, VALUE, HeadOutputs
from sparring.nets.policy import DUELING, VALUES, Policy, best_value
from sparring.web.act_request import ActRequest, Decision


@dataclass(frozen=True)
class BatchItem:
    """A decision and how it is to be answered."""

    decision: Decision
    wish: ActRequest


@torch.no_grad()
def infer_batch(policy: Policy, asked: Sequence[BatchItem]) -> list[dict[str, Any]]:
    """Answer questions in one pass; each gets what `Policy` would say to it alone."""
    obs = np.stack([one.decision.obs for one in asked])
    mask = np.stack([one.decision.mask for one in asked])
    heads = policy.heads(obs)
    actions = choose_actions(policy, heads[POLICY], mask, [one.wish for one in asked])
    values = state_values(policy, heads, mask)
    memory = policy.next_memory(obs, heads) if policy.memory_bytes else None
    answers: list[dict[str, Any]] = [
        {
            "value": None if values is None else float(values[at]),
            "memory": None if memory is None else base64.b64encode(memory[at].tobytes()).decode(),
        }
        for at in range(len(asked))
    ]
    if policy.rules.box:
        mean, log_std = mean_and_log_std(heads[POLICY])
        spread = log_std.exp()
        for at, answer in enumerate(answers):
            answer["action"] = [float(number) for number in actions[at]]
            answer["mean"], answer["spread"] = mean[at].tolist(), spread[at].tolist()
        return answers
    shares = None if policy.is_value_based else action_probabilities(policy, heads, mask)
    for at, (one, answer) in enumerate(zip(asked, answers, strict=True)):
        answer["action"] = int(actions[at])
        answer["probabilities"] = (
            [(int(actions[at]), 1.0)][: one.wish.top]
            if shares is None
            else most_probable(shares[at], one.wish.top)
        )
    return answers


def choose_actions(
    policy: Policy, logits: torch.Tensor, mask: Any, wishes: Sequence[ActRequest]
) -> Any:
    """Return the actions that `Policy.act` returns for rows that are alone."""
    # The most probable ones follow from no seed; each of the others is row 0 of its own draw.
    actions, _ = ActionSampler(0).draw(logits, mask, rollout=0, step=0, greedy=True)
    for at, wish in enumerate(wishes):
        if wish.sampled and policy.greedy is None:
            (actions[at],), _ = ActionSampler(wish.seed).draw(
                logits[at : at + 1], mask[at : at + 1], rollout=0, step=wish.step
            )
    if not policy.rules.box:
        return actions
    return squash_actions(actions, squash=policy.net.config.squash).clip(-1, 1)


def action_probabilities(policy: Policy, heads: HeadOutputs, mask: Any) -> Any:
    """Return the probability of every action."""
    legal = torch.from_numpy(mask).to(policy.device)
    return masked_log_probs(heads[POLICY], legal).exp().cpu().numpy()


def state_values(policy: Policy, heads: HeadOutputs, mask: Any) -> Any:
    """Return what every seat is expected to be paid; None if the policy does not know."""
    if VALUE not in policy.net.heads or not policy.meta.get(VALUES, True):
        return None
    if not policy.is_value_based:
        return policy.net.unscaled_values(heads).cpu().numpy()
    legal = torch.from_numpy(mask).to(policy.device)
    dueling = bool(policy.meta.get(DUELING, False))
    return best_value(policy.net, heads, legal, dueling=dueling).cpu().numpy()


def most_probable(shares: Any, count: int) -> list[tuple[int, float]]:
    """Return the most probable actions, legal ones alone, the best first."""
    if count == 0:
        return []
    order = np.argsort(-shares, kind="stable")[:count]
    return [(int(action), float(shares[action])) for action in order if shares[action] > 0]


@dataclass
class QueuedRequest:
    """A question in the queue."""

    policy: Policy
    asked: BatchItem
    answer: asyncio.Future[dict[str, Any]]


class InferenceQueue:
    """Gathers questions that come at about the same time and answers them together.

    A pass takes hardly longer for many rows than for one. Whoever asks alone does not wait: there
    is a wait only after several were answered at once.
    """

    def __init__(self, batch: int, wait_ms: float) -> None:
        """Make an empty queue.

        batch: most rows of a pass.
        wait_ms: how long to wait for more of them.
        """
        self.batch, self.wait_s = batch, wait_ms / 1000
        self.rows = self.passes = 0
        self._queue: list[QueuedRequest] = []
        self._busy = False
        self._last = 1
        self._full: asyncio.Event | None = None
        # One thread: the next questions gather while it computes.
        self._thread = ThreadPoolExecutor(1, "thinking")

    @property
    def waiting(self) -> int:
        """How many questions have no answer yet."""
        return len(self._queue)

    async def answer(self, policy: Policy, asked: BatchItem) -> dict[str, Any]:
        """Return an answer as soon as a pass has it."""
        loop = asyncio.get_running_loop()
        waiting = QueuedRequest(policy, asked, loop.create_future())
        self._queue.append(waiting)
        if self._full and len(self._queue) >= self.batch:
            self._full.set()
        if not self._busy:
            self._busy = True
            self._task = loop.create_task(self._drain())
        return await waiting.answer

    async def _drain(self) -> None:
        """Answer until nobody waits."""
        try:
            while self._queue:
                await self._gather()
                taken, self._queue = self._queue[: self.batch], self._queue[self.batch :]
                await self._pass(taken)
        finally:
            self._busy = False

    async def _gather(self) -> None:
        """Wait for more questions, if there were several the last time."""
        if self._last == 1 or self.wait_s == 0 or len(self._queue) >= self.batch:
            return
        self._full = asyncio.Event()
        try:
            await asyncio.wait_for(self._full.wait(), self.wait_s)
        except TimeoutError:
            pass
        finally:
            self._full = None

    async def _pass(self, taken: list[QueuedRequest]) -> None:
        """Answer some of the queue, a pass for every policy among them."""
        self._last = len(taken)
        groups: dict[int, list[QueuedRequest]] = {}
        for one in taken:
            groups.setdefault(id(one.policy), []).append(one)
        loop = asyncio.get_running_loop()
        for group in groups.values():
            self.passes += 1
            self.rows += len(group)
            asked = [one.asked for one in group]
            try:
                answers = await loop.run_in_executor(
                    self._thread, infer_batch, group[0].policy, asked
                )
            except Exception as wrong:  # each of them has to hear of it
                for one in group:
                    if not one.answer.done():
                        one.answer.set_exception(wrong)
                continue
            for one, answer in zip(group, answers, strict=True):
                if not one.answer.done():  # who hung up gets none
                    one.answer.set_result(answer)
