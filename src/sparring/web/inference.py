"""Batched inference: one forward pass for many requests, and their queue."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparring.nets.heads import POLICY, Evaluation, Floats
from sparring.nets.policy import Policy
from sparring.nets.sampling import ActionSampler, log_softmax, mean_and_std, squash_actions
from sparring.web.act_request import ActRequest, Decision


@dataclass(frozen=True)
class BatchItem:
    """A decision and its request."""

    decision: Decision
    request: ActRequest


def infer_batch(policy: Policy, items: Sequence[BatchItem]) -> list[dict[str, Any]]:
    """Return the responses of a batch; each is the item that it would get alone."""
    obs = np.stack([item.decision.obs for item in items])
    mask = np.stack([item.decision.mask for item in items])
    found = policy.evaluate(obs)
    head = found.heads[POLICY]
    actions = choose_actions(policy, head, mask, [item.request for item in items])
    values = state_values(policy, found, mask)
    memory = policy.next_memory(obs, found) if policy.memory_bytes else None
    responses: list[dict[str, Any]] = [
        {
            "value": None if values is None else float(values[i]),
            "memory": None if memory is None else base64.b64encode(memory[i].tobytes()).decode(),
        }
        for i in range(len(items))
    ]
    if policy.rules.box:
        mean, std = mean_and_std(head)
        for i, response in enumerate(responses):
            response["action"] = [float(number) for number in actions[i]]
            response["mean"], response["spread"] = mean[i].tolist(), std[i].tolist()
        return responses
    probabilities = None if policy.is_value_based else np.exp(log_softmax(head, mask))
    for i, (item, response) in enumerate(zip(items, responses, strict=True)):
        response["action"] = int(actions[i])
        response["probabilities"] = (
            [(int(actions[i]), 1.0)][: item.request.top]
            if probabilities is None
            else most_probable(probabilities[i], item.request.top)
        )
    return responses


def choose_actions(
    policy: Policy, logits: Floats, mask: Any, requests: Sequence[ActRequest]
) -> Any:
    """Return the actions that `Policy.act` would return for each row alone."""
    # Greedy actions need no seed; each sampled one is row 0 of its own draw.
    actions, _ = ActionSampler(0).draw(logits, mask, rollout=0, step=0, greedy=True)
    for i, request in enumerate(requests):
        if request.sampled and policy.greedy is None:
            (actions[i],), _ = ActionSampler(request.seed).draw(
                logits[i : i + 1], mask[i : i + 1], rollout=0, step=request.step
            )
    if not policy.rules.box:
        return actions
    return squash_actions(actions, squash=policy.net.config.squash).clip(-1, 1)


def state_values(policy: Policy, found: Evaluation, mask: Any) -> Any:
    """Return the expected return of every row; None if the policy has no value head."""
    if not policy.has_values:
        return None
    return policy.best_value(found, mask) if policy.is_value_based else found.values


def most_probable(probabilities: Any, count: int) -> list[tuple[int, float]]:
    """Return the most probable legal actions, best first."""
    if count == 0:
        return []
    order = np.argsort(-probabilities, kind="stable")[:count]
    return [(int(i), float(probabilities[i])) for i in order if probabilities[i] > 0]


@dataclass
class QueuedRequest:
    """A request in the queue."""

    policy: Policy
    item: BatchItem
    future: asyncio.Future[dict[str, Any]]


class InferenceQueue:
    """Collects requests that arrive at about the same time and answers them in one batch.

    A forward pass takes hardly longer for many rows than for one. A single request does not wait:
    the queue waits only if the last batch had several requests.
    """

    def __init__(self, batch: int, wait_ms: float) -> None:
        """Make an empty queue.

        batch: maximum batch size.
        wait_ms: time to wait for more requests.
        """
        self.batch, self.wait_s = batch, wait_ms / 1000
        self.rows = self.passes = 0
        self._queue: list[QueuedRequest] = []
        self._busy = False
        self._last_batch = 1
        self._full: asyncio.Event | None = None
        # One thread: the next requests collect while it computes.
        self._thread = ThreadPoolExecutor(1, "inference")

    @property
    def waiting(self) -> int:
        """Number of requests in the queue."""
        return len(self._queue)

    async def answer(self, policy: Policy, item: BatchItem) -> dict[str, Any]:
        """Queue a request and return its response."""
        loop = asyncio.get_running_loop()
        queued = QueuedRequest(policy, item, loop.create_future())
        self._queue.append(queued)
        if self._full and len(self._queue) >= self.batch:
            self._full.set()
        if not self._busy:
            self._busy = True
            self._task = loop.create_task(self._drain())
        return await queued.future

    async def _drain(self) -> None:
        """Answer requests until the queue is empty."""
        try:
            while self._queue:
                await self._gather()
                batch, self._queue = self._queue[: self.batch], self._queue[self.batch :]
                await self._answer_batch(batch)
        finally:
            self._busy = False

    async def _gather(self) -> None:
        """Wait for more requests, if the last batch had several."""
        if self._last_batch == 1 or self.wait_s == 0 or len(self._queue) >= self.batch:
            return
        self._full = asyncio.Event()
        try:
            await asyncio.wait_for(self._full.wait(), self.wait_s)
        except TimeoutError:
            pass
        finally:
            self._full = None

    async def _answer_batch(self, batch: list[QueuedRequest]) -> None:
        """Answer a batch with one forward pass per policy."""
        self._last_batch = len(batch)
        groups: dict[int, list[QueuedRequest]] = {}
        for queued in batch:
            groups.setdefault(id(queued.policy), []).append(queued)
        loop = asyncio.get_running_loop()
        for group in groups.values():
            self.passes += 1
            self.rows += len(group)
            items = [queued.item for queued in group]
            try:
                responses = await loop.run_in_executor(
                    self._thread, infer_batch, group[0].policy, items
                )
            except Exception as wrong:  # all of the group raise it
                for queued in group:
                    if not queued.future.done():
                        queued.future.set_exception(wrong)
                continue
            for queued, response in zip(group, responses, strict=True):
                if not queued.future.done():  # the client may have disconnected
                    queued.future.set_result(response)
