"""What seats remember while games are played: a slow dictionary, resumption, threads and slots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from learn.memory_helpers import COLLECT, CUT, GRU, SETTINGS, STACK, TWO, make, slotted
from sparring import Lineup, Rules
from sparring.config import (
    CollectConfig,
    DQNConfig,
    HierarchyConfig,
    HindsightConfig,
    NetConfig,
    ReplayConfig,
    TrainConfig,
)
from sparring.errors import ConfigError
from sparring.learn.dqn import DQN
from sparring.learn.forward import bytes_of
from sparring.learn.ppo import PPO
from sparring.nets.inputs import memory_bytes_of
from sparring.nets.net import Net
from sparring.pools import Pool
from sparring.pools.custom.make import make_pool
from sparring.training.planning.plan import resolve

Key = tuple[int, int, int]
"""Game, seat, episode."""
Slow = dict[Key, npt.NDArray[np.uint8]]


@pytest.mark.parametrize(
    ("net", "flags", "slots"),
    [(GRU, TWO, 1), (GRU, CUT, 2), (STACK, TWO, 2), (STACK, CUT, 1)],
    ids=["gru", "gru-cut", "stack", "stack-cut"],
)
def test_every_row_shows_what_its_seat_wrote_last_in_the_same_game(
    net: NetConfig, flags: dict[str, Any], slots: int
) -> None:
    """Also in seats of a frozen network, and in the last rows of games that are cut."""
    ppo = make(net, flags, frozen=True, collect=slotted(slots))
    frozen = ppo.net.cpu_copy()
    frozen.load_state_dict({name: t + 0.1 for name, t in ppo.net.state_dict().items()})
    ppo.put(1, frozen.state_dict())
    seen, episode = Slow(), np.zeros(COLLECT.games, np.intp)
    truncations, met = 0, set[int]()
    for number in range(2):
        ppo.collector.collect(number)
        truncations += follow(ppo, {0: ppo.net, 1: frozen}, seen, episode)
        met |= set(np.unique(ppo.collector.rollout.policy))
        ppo.collector.link(1.0, required=False)
        ppo.collector.keep_pending()
    assert met == {0, 1} and episode.min() > 1
    assert (truncations > 0) == ("limit" in flags)


def follow(ppo: PPO, nets: dict[int, Net], seen: Slow, episode: npt.NDArray[np.intp]) -> int:
    """Go through a rollout row by row; return how many last rows of cut games were compared."""
    rollout, rules, nothing = ppo.collector.rollout, ppo.rules, np.zeros(ppo.pool.memory_bytes)
    obs, truncations = rollout.obs[ppo.collector.transitions.max_pending :], rollout.truncations
    last = {
        int(where): row
        for places, rows in zip(truncations.where, truncations.obs, strict=True)
        for where, row in zip(places, rows, strict=True)
    }
    for step, game in np.ndindex(COLLECT.steps, COLLECT.games):
        row, key = obs[step * COLLECT.games + game], (game, int(rollout.seat[step, game]))
        expect(row, rules, seen.get((*key, int(episode[game])), nothing))
        net, rows = nets[int(rollout.policy[step, game])], torch.from_numpy(row[None].copy())
        with torch.no_grad():
            held = net.next_memory(rows, net(rows))
        assert held is not None
        seen[*key, int(episode[game])] = bytes_of(held)[0]
        for seat in range(rules.seats):
            where = (step * COLLECT.games + game) * rules.seats + seat
            if where in last:  # behind the seat's last decision, not in front of it
                expect(last[where], rules, seen.get((game, seat, int(episode[game])), nothing))
        episode[game] += rollout.terminated[step, game] or rollout.truncated[step, game]
    return len(last)


def expect(row: npt.NDArray[np.uint8], rules: Rules, memory: npt.NDArray[Any]) -> None:
    """Compare what a row shows behind its observation."""
    shown, wrote = row[rules.obs_bytes :], memory.astype(np.uint8)
    np.testing.assert_allclose(shown.view(np.float32), wrote.view(np.float32), atol=1e-6)


@pytest.mark.parametrize("net", [GRU, STACK], ids=["gru", "stack"])
def test_a_resumed_run_goes_on_bit_by_bit(net: NetConfig) -> None:
    """Saved in the middle of games; memory, open decisions and Adam go along."""
    whole = make(net, TWO, frozen=True)
    for _ in range(2):
        whole.iterate(0.0)
    saved = whole.snapshot()
    assert whole.pool.memory.any()
    again = make(net, TWO, frozen=True)
    again.restore(saved)
    assert np.array_equal(again.pool.memory, whole.pool.memory)
    for _ in range(2):
        mine, theirs = again.iterate(0.0)[0], whole.iterate(0.0)[0]
        assert mine.stats == theirs.stats
        assert np.array_equal(again.collector.rollout.obs, whole.collector.rollout.obs)
    for name, tensor in whole.net.state_dict().items():
        assert torch.equal(again.net.state_dict()[name], tensor), name
    assert again.pool.digest() == whole.pool.digest()


@pytest.mark.parametrize("net", [GRU, STACK], ids=["gru", "stack"])
def test_threads_and_slots_play_the_same(net: NetConfig) -> None:
    found = []
    for threads, slots in ((1, 1), (2, 1), (2, 3)):
        ppo = make(net, TWO, threads=threads, frozen=True, collect=slotted(slots))
        for _ in range(2):
            ppo.iterate(0.0)
        obs = ppo.collector.rollout.obs[ppo.collector.transitions.max_pending :]
        memory = obs[:, ppo.rules.obs_bytes :].copy().view(np.float32)
        found.append((ppo.pool.digest(), ppo.collector.rollout.action.copy(), memory))
    for _, action, memory in found[1:]:
        assert np.array_equal(action, found[0][1])
        np.testing.assert_allclose(memory, found[0][2], atol=1e-5)
    assert found[1][0] == found[0][0] and np.array_equal(found[1][2], found[0][2])  # threads


def test_rehearsing_leaves_memory_as_it_was() -> None:
    ppo = make(GRU, TWO)
    ppo.iterate(0.0)
    before = ppo.pool.memory.copy()
    ppo.dry_run()
    assert np.array_equal(ppo.pool.memory, before) and before.any()


@pytest.mark.parametrize("name", ["make_parallel", "make_table", "make_cards"])
@pytest.mark.parametrize("net", [GRU, STACK], ids=["gru", "stack"])
def test_environments_of_ones_own_show_it_too(name: str, net: NetConfig) -> None:
    """Several rows in a step, seats by turns, and one seat."""
    pool = make_pool(f"own_envs:{name}", 3, seed=1)
    pool = make_pool(f"own_envs:{name}", 3, seed=1, memory=memory_bytes_of(pool.rules, net))
    pool.set_lineups([Lineup((0,) * pool.rules.seats)])
    ppo = PPO(pool, CollectConfig(games=3, steps=30), SETTINGS, net, seed=1)
    rules, rows = pool.rules, pool.rules.rows
    ppo.collector.collect(0)
    rollout = ppo.collector.rollout
    seen: dict[tuple[int, int], npt.NDArray[np.float32]] = {}
    compared = 0
    for step in range(30):
        for row in range(3 * rows):
            seat, game = int(rollout.seat[step, row]), row // rows
            if seat < 0:
                continue
            at = ppo.collector.transitions.max_pending + step * 3 * rows + row
            obs = torch.from_numpy(rollout.obs[at][None].copy())
            shown = rollout.obs[at][rules.obs_bytes :].view(np.float32)
            np.testing.assert_allclose(shown, seen.get((game, seat), 0 * shown), atol=1e-5)
            compared += int((game, seat) in seen)
            with torch.no_grad():
                held = ppo.net.next_memory(obs, ppo.net(obs))
            assert held is not None
            seen[game, seat] = held[0].numpy()
        over = rollout.terminated[step] | rollout.truncated[step]
        seen = {key: held for key, held in seen.items() if not over[key[0]]}
    assert compared


def test_a_replay_remembers_what_was_seen_before() -> None:
    """DQN learns from rows with their stack, and from the next row with its own."""
    net = STACK
    rules = make(net, TWO).rules
    pool = Pool(rules, 4, seed=1, memory=memory_bytes_of(rules, net))
    replay = ReplayConfig(capacity=400, warmup=50, batch=16)
    dqn = DQN(pool, CollectConfig(games=4, steps=8), DQNConfig(), replay, net, seed=1)
    dqn.iterate(0.0)
    samples = dqn.experience.replay.sample(0, 0.0)
    width, size = len(rules.features), rules.obs_bytes
    now = samples.obs[:, size:].contiguous().view(torch.float32)
    after = samples.next_obs[:, size:].contiguous().view(torch.float32)
    goes_on = samples.discount > 0
    shown = dqn.net.inputs.numbers(samples.obs)
    assert goes_on.any()
    torch.testing.assert_close(after[goes_on, :width], shown[goes_on])
    torch.testing.assert_close(after[goes_on, width : 3 * width], now[goes_on, : 2 * width])


def test_what_does_not_know_memory_is_refused_in_a_line() -> None:
    bare = Pool("signal", 4, config=TWO)
    with pytest.raises(ConfigError, match=r"has 0 bytes of memory per seat .* memory=32"):
        PPO(bare, COLLECT, SETTINGS, GRU)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            {"algo": "dqn"},
            "net.memory gru needs a learner with backpropagation through time, and algo dqn",
        ),
        ({"collect": CollectConfig(mirror=True)}, "needs a game that declares a mirror image"),
        (
            {"net": replace(GRU, kind="residual")},
            "net.kind residual is not one",
        ),
        (
            {"rewards": ("manager.rank=1", "worker.score_delta=1")},
            "rewards that differ by role",
        ),
        (
            {"hierarchy": HierarchyConfig(on=True)},
            "and hierarchy.on is not one",
        ),
        ({"hindsight": HindsightConfig(on=True)}, "observations under another goal"),
    ],
)
def test_plans_refuse_it_before_anything_is_made(words: dict[str, Any], says: str) -> None:
    config = TrainConfig(**{"game": "skull_king", "net": GRU, "threads": 1, **words})
    with pytest.raises(ConfigError, match=says):
        resolve([config])
