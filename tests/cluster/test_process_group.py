"""Learners that learn as one have the gradients, steps and endings of one with all the games."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

import sparring
from sparring import Pool
from sparring.cluster.replicas.process_group import TorchProcessGroup
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.acting import ActorOutput, RngKeys
from sparring.learn.forward import Forward
from sparring.learn.learner import DivergedError, LostError
from sparring.learn.ppo import PPO
from sparring.learn.process_group import SINGLE, ProcessGroup
from sparring.nets.inputs import memory_bytes_of
from sparring.schedule import Moment, Schedule

LIMIT_S = 20.0
BY_TURNS = threading.Lock()
"""Threads share the random numbers that networks begin with; processes have their own."""
WHOLE = PPOConfig(
    epochs=1, minibatch=1 << 20, max_grad_norm=Schedule.constant(1e9), lr=Schedule.constant(3e-3)
)
"""Every update is one step with all samples."""
GAMES: list[tuple[str, dict[str, Any]]] = [
    ("tic_tac_toe", {}),
    ("skull_king", {"rounds": [1, 2, 3]}),
    ("duel", {"limit": 5}),
]
GRU = NetConfig(hidden=(16,), memory="gru", memory_width=8, bptt_steps=3)


class ByNumber:
    """Decides by a row's number alone, so that no rounding of a network changes what is played."""

    def __init__(self, forward: Forward) -> None:
        self.forward = forward

    @torch.no_grad()
    def act(self, obs: Any, mask: Any, keys: RngKeys) -> ActorOutput:
        number = keys.rollout * 7919 + keys.step * 104_729 + keys.rows * 613
        heads = self.forward(torch.from_numpy(obs))
        value, memory = (
            self.forward.net.unscaled_values(heads).numpy(),
            self.forward.memory(obs, heads),
        )
        if not mask.shape[1]:
            action = np.sin(number[:, None] + np.arange(1.0, 1.0 + self.numbers(obs)))
            return ActorOutput(
                action.astype(np.float32), {"log_prob": value * 0 - 1, "value": value}
            )
        legal = mask.sum(1, dtype=np.int64)
        action = [np.flatnonzero(m)[n % c] for m, n, c in zip(mask, number, legal, strict=True)]
        log_prob = -np.log(legal).astype(np.float32)
        return ActorOutput(
            np.array(action, np.int32), {"log_prob": log_prob, "value": value}, memory
        )

    def numbers(self, obs: Any) -> int:
        """How many an action has, where it is continuous."""
        return self.forward(torch.from_numpy(obs[:1]))["policy"].shape[1] // 2


def make(
    game: str,
    config: dict[str, Any],
    ppo: PPOConfig,
    *,
    first: int,
    games: int,
    net: NetConfig = NetConfig(hidden=(16,)),  # noqa: B008
) -> PPO:
    rules = sparring.Rules(game, config)
    memory = memory_bytes_of(rules, net)
    pool = Pool(rules, games, seed=1, threads=1, first_game=first, memory=memory)
    collect = CollectConfig(games=games, steps=13, cpu="float32")
    made = PPO(pool, collect, ppo, net, seed=1, first_row=first * rules.rows)
    made.collector.actors[0] = ByNumber(made.forward)
    return made


def at_once(work: Callable[[int, ProcessGroup], Any], size: int) -> list[Any]:
    """Let so many learners do something, each in a thread; what they return or raise, by rank."""
    store, found = dist.HashStore(), [None] * size

    def run(rank: int) -> None:
        try:
            found[rank] = work(rank, TorchProcessGroup(store, rank, size, timeout_s=LIMIT_S))
        except BaseException as wrong:
            found[rank] = wrong

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * LIMIT_S)
        assert not thread.is_alive(), "somebody waits for ever"
    return found


def shares(ppo: PPOConfig, games: list[int], **game: Any) -> Callable[[int, ProcessGroup], PPO]:
    """Make the learner of a rank."""

    def one(rank: int, process_group: ProcessGroup) -> PPO:
        with BY_TURNS:
            made = make(**game, ppo=ppo, first=sum(games[:rank]), games=games[rank])
        made.process_group = process_group
        return made

    return one


@pytest.mark.parametrize("split", [pytest.param([8, 8], marks=pytest.mark.slow), [3, 11, 2]])
@pytest.mark.parametrize(("game", "config"), GAMES)
def test_gradients_are_those_of_one_learner_with_all_games(
    game: str, config: dict[str, Any], split: list[int]
) -> None:
    check_same_gradients(split, game=game, config=config)


@pytest.mark.slow
def test_gradients_through_states_are_those_of_one_learner_too() -> None:
    check_same_gradients([3, 11, 2], game="leduc_poker", config={}, net=GRU)


def test_statistics_of_observations_are_those_of_all_games() -> None:
    """Every replica adds the rows of all, in one order: one learner's numbers."""
    net = NetConfig(hidden=(16,), normalize=True)
    played: dict[str, Any] = {"game": "duel", "config": {"limit": 5}, "net": net}
    one = make(**played, ppo=WHOLE, first=0, games=16)
    learner = shares(WHOLE, [3, 11, 2], **played)

    def work(rank: int, process_group: ProcessGroup) -> Any:
        mine = learner(rank, process_group)
        for _ in range(3):
            mine.iterate(0.0)
        return mine.net.normalizer.state_dict()

    several = at_once(work, 3)
    for _ in range(3):
        one.iterate(0.0)
    assert one.net.normalizer
    for name, value in one.net.normalizer.state_dict().items():
        torch.testing.assert_close(several[0][name], value, rtol=1e-10, atol=1e-12)
        assert all(torch.equal(several[0][name], other[name]) for other in several[1:])


def check_same_gradients(split: list[int], **played: Any) -> None:
    one = make(**played, ppo=WHOLE, first=0, games=16)
    learner = shares(WHOLE, split, **played)

    def work(rank: int, process_group: ProcessGroup) -> list[dict[str, Any]]:
        mine, seen = learner(rank, process_group), []
        for _ in range(3):
            (report,) = mine.iterate(0.0)
            grads = [p.grad.clone() for p in mine.net.parameters() if p.grad is not None]
            weights = [p.detach().clone() for p in mine.net.parameters()]
            seen.append({"stats": report.stats, "grads": grads, "weights": weights})
        return seen

    several = at_once(work, len(split))
    for update in range(3):
        (report,) = one.iterate(0.0)
        first = several[0][update]
        for mine, theirs in zip(one.net.parameters(), first["grads"], strict=True):
            # That of a bias is a sum whose terms nearly cancel; the norm is about 0.6.
            torch.testing.assert_close(theirs, mine.grad, atol=5e-6, rtol=1e-5)
        for mine, theirs in zip(one.net.parameters(), first["weights"], strict=True):
            torch.testing.assert_close(theirs, mine.detach(), atol=2e-5, rtol=1e-4)
        shown = ("losses/policy_loss", "losses/approx_kl", "losses/grad_norm")
        for name in (*shown, "learning/value_scale", "losses/explained_variance"):
            assert first["stats"][name] == pytest.approx(report.stats[name], abs=2e-5), name
        samples = sum(each[update]["stats"]["learning/samples"] for each in several)
        assert samples == report.stats["learning/samples"]
        for other in several[1:]:
            for mine, theirs in zip(first["weights"], other[update]["weights"], strict=True):
                assert torch.equal(mine, theirs)


@pytest.mark.parametrize("net", [NetConfig(hidden=(16,)), GRU], ids=["mlp", "gru"])
def test_all_make_as_many_steps_whatever_their_samples_and_stop_together(net: NetConfig) -> None:
    """Small minibatches, a learner with far fewer samples, and a policy that soon moves enough."""
    config = PPOConfig(
        epochs=20,
        minibatch=8,
        lr=Schedule.constant(0.02),
        target_kl=Schedule.constant(0.01),
    )
    learner = shares(config, [1, 6], game="tic_tac_toe", config={}, net=net)

    def work(rank: int, process_group: ProcessGroup) -> tuple[list[float], Any]:
        mine, steps = learner(rank, process_group), []
        for _ in range(4):
            steps.append(mine.iterate(0.0)[0].stats["learning/optimizer_steps"])
        return steps, [p.detach().clone() for p in mine.net.parameters()]

    (steps, weights), (other_steps, other_weights) = at_once(work, 2)
    assert steps == other_steps
    assert all(1 < count < 20 * 7 * 13 / 8 for count in steps)
    for mine, theirs in zip(weights, other_weights, strict=True):
        assert torch.equal(mine, theirs)


def test_a_loss_that_is_not_a_number_ends_all_of_them() -> None:
    learner = shares(replace(WHOLE, epochs=2), [4, 4], game="tic_tac_toe", config={})

    def work(rank: int, process_group: ProcessGroup) -> Any:
        mine = learner(rank, process_group)
        mine.iterate(0.0)
        before = [p.detach().clone() for p in mine.net.parameters()]
        mine.collector.collect(mine.updates)
        if rank:
            mine.collector.rollout.columns["log_prob"][:] = np.nan
        with pytest.raises(DivergedError, match="with a learning rate of"):
            mine.update(mine.hparams_at(Moment(0, 0.0)))
        return [torch.equal(p, old) for p, old in zip(mine.net.parameters(), before, strict=True)]

    kept = at_once(work, 2)
    assert all(all(each[:-2]) for each in kept)  # the value head may have another unit


def test_statistics_are_those_of_all_numbers() -> None:
    numbers = np.random.default_rng(0).normal(size=100).astype(np.float32)
    parts = [numbers[:7], numbers[7:7], numbers[7:]]

    def work(rank: int, process_group: ProcessGroup) -> Any:
        mine = parts[rank]
        told = [process_group.mean(mine), process_group.var(mine), process_group.std(mine)]
        flags = [process_group.any(rank == 1), process_group.any(False)]
        return told, flags, process_group.counts(len(mine)), process_group.total(rank)

    alone = SINGLE
    expected = [alone.mean(numbers), alone.var(numbers), alone.std(numbers)]
    for told, flags, counts, total in at_once(work, 3):
        assert told == pytest.approx(expected, abs=1e-6)
        assert flags == [True, False]
        assert counts == [7, 0, 93]
        assert total == 3


def test_whoever_waits_for_somebody_that_never_comes_is_told() -> None:
    with pytest.raises(LostError, match="did not join"):
        TorchProcessGroup(dist.HashStore(), 0, 2, timeout_s=0.5)
