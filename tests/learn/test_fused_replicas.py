"""What several GPUs sum in an update, on plain tensors: means, counts and figures of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cluster.test_process_group import at_once
from sparring.learn.fused.graphs import Figures
from sparring.learn.fused.replicas import FigureTotals, MinibatchMeans, ReplicaSums
from sparring.learn.process_group import ProcessGroup

MEMBERS, SIZE, LOSSES = 2, 33, 5


def at_host(work: Callable[[], None]) -> None:
    work()


def sums_of(group: ProcessGroup) -> ReplicaSums:
    group.captures = False
    return ReplicaSums(group, at_host)


@pytest.mark.parametrize("rows", [[(300, 100), (100, 300)], [(7, 0), (0, 5), (400, 0)]])
def test_means_are_those_of_all_rows(rows: list[tuple[int, int]]) -> None:
    """Every row has a gradient and losses of its own; a replica has the means of its rows.

    rows: of every replica and member, in the first minibatch; the second has them swapped.
    """
    counts = torch.tensor([[mine, mine[::-1]] for mine in rows])  # [replicas, minibatches, members]
    shape = *counts.shape, int(counts.max())
    generator = torch.Generator().manual_seed(0)
    grads = torch.randn(*shape, SIZE, generator=generator)
    losses = torch.rand(*shape, LOSSES, generator=generator)
    among = torch.arange(shape[-1]) < counts[..., None]

    def mean(of_rows: torch.Tensor, there: torch.Tensor, axes: Any) -> torch.Tensor:
        total = (of_rows * there[..., None]).sum(axes)
        return total / there.sum(axes).clamp(min=1)[..., None]

    def work(rank: int, group: ProcessGroup) -> Any:
        grad, loss = mean(grads[rank], among[rank], 2), mean(losses[rank], among[rank], 2)
        means = MinibatchMeans(sums_of(group), 4, MEMBERS, grad)
        means.count(torch.where(among[rank], 3, -1))
        for number in range(2):
            means.of_gradient(number, grad[number])
        means.of_losses(loss)
        return grad, loss

    first, *others = at_once(work, len(rows))
    torch.testing.assert_close(first[0], mean(grads, among, (0, 3)), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(first[1], mean(losses, among, (0, 3)), atol=1e-6, rtol=1e-6)
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_gradient_that_is_no_number_is_none_in_every_replica() -> None:
    def work(rank: int, group: ProcessGroup) -> Any:
        grad, sums = torch.ones(1, 3), sums_of(group)
        if rank:
            grad[0, 1] = torch.nan
        means = MinibatchMeans(sums, 1, 1, grad)
        means.count(torch.full((1, 1, 2), rank - 1))
        means.of_gradient(0, grad)
        diverged = torch.tensor([rank, 0, 1], dtype=torch.uint8)
        sums.any_of(diverged)
        return grad, diverged

    for grad, diverged in at_once(work, 2):
        assert grad[0].isnan().tolist() == [False, True, False]
        assert diverged.tolist() == [1, 0, 1]


def test_counts_are_added_and_other_figures_stay() -> None:
    def work(rank: int, group: ProcessGroup) -> Any:
        counts = {"samples": 10, "worker/samples": 4, "earned_score": 1.5, "count_0": 3}
        same = {"grad_norm": 0.7, "value_scale": 1 / 3, "diverged": 0}
        given = {name: torch.tensor([float(value)]) for name, value in (counts | same).items()}
        figures = Figures(lambda: given, 1)
        met = torch.full((1, 2, 3), rank, dtype=torch.int32)
        totals = FigureTotals(sums_of(group), figures, met)
        figures.take()
        totals.take()
        figures.fetch()
        return figures.of(0), met

    (first, met), (second, _) = at_once(work, 2)
    assert first == second
    assert first["samples"] == 20
    assert first["worker/samples"] == 8
    assert first["earned_score"] == 3
    assert first["count_0"] == 6
    assert first["grad_norm"] == float(torch.tensor(0.7))
    assert first["value_scale"] == float(torch.tensor(1 / 3))
    assert met.tolist() == [[[1] * 3] * 2]


def test_moments_and_counts_are_summed_where_they_are() -> None:
    def work(rank: int, group: ProcessGroup) -> Any:
        moments = torch.full((1, 4, 5), 1.0 + rank, dtype=torch.float64)
        counts = torch.tensor([5 + rank], dtype=torch.int32)
        sums_of(group).add_up(moments, counts)
        return moments, counts

    for moments, counts in at_once(work, 2):
        assert moments.eq(3).all()
        assert counts.tolist() == [11]
