"""The replay against a plain recording of the same games: every sample, link by link."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from learn.replay_helpers import AnyMove, Played, check_samples, make, new_replay
from pools.foreign_envs import Fading
from sparring.config import CollectConfig, ReplayConfig, TrainConfig
from sparring.errors import ConfigError, StateError
from sparring.games.rules import Rules
from sparring.learn.collect import Collector
from sparring.learn.memory import check_replay
from sparring.learn.replay import ReplayBatch, ReplayBuffer, replay_bytes
from sparring.learn.rollout import Truncations
from sparring.machine import UNCHECKED_BYTES
from sparring.phases import Timing
from sparring.pools.custom import pool_of
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import merged

SKULLS = {"rounds": [1, 2, 3]}
FORCED = {"rounds": [1, 2], "skip_forced": 1}
TABLES: list[tuple[str, dict[str, Any], tuple[Any, ...], dict[str, Any]]] = [
    ("tic_tac_toe", {}, (0, 0), {}),
    ("tic_tac_toe", {}, (0, 0), {"n_step": 3, "slots": 3}),
    ("tic_tac_toe", {}, (0, 1), {"n_step": 2}),
    ("tic_tac_toe", {}, (0, "random"), {"prioritized": True}),
    ("skull_king", SKULLS, (0, 0, 0, 0), {"n_step": 3}),
    ("skull_king", FORCED, (0, "captain", 0, 1), {"n_step": 2}),
    ("skull_king", SKULLS, (0, 0, "random", 0), {"by_role": True, "n_step": 2}),
    ("skull_king", SKULLS, (0, 0, 0, 0), {"by_role": True, "gamma_into": (0.0, 1.0), "n_step": 2}),
    ("skull_king", SKULLS, (0, 0, 0, 0), {"gamma_into": (0.0, 0.8), "slots": 2}),
    ("laser_hockey", {}, (0, 0), {"squash": True}),
    ("laser_hockey_discrete", {}, (0, 0), {"n_step": 4}),
    ("duel", {"limit": 4}, (0, 0), {"n_step": 3, "slots": 2}),
    ("duel", {"limit": 5}, (0, 1), {"squash": True}),
    ("duel", {"limit": 7}, (0, 0), {"by_role": True, "n_step": 2}),
    ("cage2", {"max_steps": 7}, (0,), {"n_step": 3}),
    ("shogi", {"max_plies": 8}, (0, 0), {"n_step": 2}),
    ("shogi", {"max_plies": 9}, (0, 1), {"steps": 3}),
    ("shogi", {"max_plies": 9}, (1, 0), {"slots": 2, "n_step": 3}),
]


@pytest.mark.few(8)
@pytest.mark.parametrize(("game", "config", "members", "options"), TABLES)
def test_samples_are_what_was_played(
    game: str, config: dict[str, Any], members: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """Rollouts are short, so that decisions wait across several; the ring goes round many times."""
    played = make(game, config, members, **options)
    drawn: set[int] = set()
    for number in range(12):
        played.play(1 if number < 4 else 3)
        if len(played.replay):
            drawn |= check_samples(played, number)
    assert played.replay.head > 3 * played.replay.config.capacity or members == (0, 1)
    cut = [made for made in played.decisions.values() if made.last is not None]
    mirrored = [made for made in cut if made.discount < 0]
    assert bool(cut) == (game in ("duel", "cage2", "shogi"))
    assert bool(mirrored) == (game == "shogi")
    assert len(drawn) > len(played.replay) / 2


def test_a_ring_that_is_not_full_keeps_everything() -> None:
    played = make("duel", {"limit": 5}, (0, 0), capacity=5_000)
    played.play(20)
    assert played.replay.first == 0
    assert played.replay.stats()["learning/replay_fill"] == played.replay.head / 5_000
    assert len(check_samples(played, 1)) > 50


def test_nobody_else_is_remembered() -> None:
    """Of the opponents' rows nothing is kept; of cut games the last row that stands for one."""
    alone = make("tic_tac_toe", {}, (0, 1), capacity=5_000)
    alone.play(10)
    rollouts = len(alone.decisions)
    assert alone.replay.head == rollouts < 10 * 6 * 5
    cut = make("shogi", {"max_plies": 8}, (0, 1), capacity=5_000)
    cut.play(10)
    assert len(cut.decisions) < cut.replay.head < 1.2 * len(cut.decisions) + 10


def test_every_decision_is_as_likely() -> None:
    played = make("duel", {"limit": 4}, (0, 0), capacity=300, batch=4096, games=8)
    played.play(11)
    replay = played.replay
    fit = np.array(sorted(played.in_ring()))
    assert len(fit) < 0.9 * 300  # last rows and open decisions lie between them
    found = np.zeros(300)
    for number in range(25):
        found += np.bincount(replay.sample(number).places, minlength=300)
    assert found.sum() == found[fit].sum()
    assert_as_expected(found[fit], np.full(len(fit), found.sum() / len(fit)))


def assert_as_expected(found: Any, expected: Any) -> None:
    """Chi-square within four deviations."""
    freedom = len(found) - 1
    chi_square = ((found - expected) ** 2 / expected).sum()
    assert abs(chi_square - freedom) < 4 * np.sqrt(2 * freedom)


def test_priorities_decide_what_is_sampled_and_weights_take_it_back() -> None:
    played = make("tic_tac_toe", {}, (0, 0), capacity=400, batch=8192, prioritized=True)
    played.play(20)
    replay = played.replay
    fit = np.array(sorted(played.in_ring()))
    error = np.random.default_rng(0).normal(size=len(fit)).astype(np.float32)
    replay.reprioritize(fit, error)
    expected = np.abs(error.astype(np.float64)) ** 0.6
    found = np.zeros(400)
    for number in range(20):
        samples = replay.sample(number, 0.7)
        found += np.bincount(samples.places, minlength=400)
    assert_as_expected(found[fit], expected / expected.sum() * found.sum())
    size = dict(zip(fit.tolist(), expected, strict=True))
    share = np.array([size[int(place)] for place in samples.places])
    np.testing.assert_allclose(samples.weight, (share.min() / share) ** 0.7, rtol=1e-3)
    assert samples.weight.max() == 1
    assert torch.equal(replay.sample(3, 0.0).weight, torch.ones(8192))


def test_the_larger_of_two_errors_counts_in_any_order() -> None:
    played = make("tic_tac_toe", {}, (0, 0), prioritized=True)
    played.play(3)
    replay = played.replay
    assert replay.weight is not None and replay.sums is not None
    one, other = sorted(played.in_ring())[:2]
    not_fit = next(place for place in range(60) if place not in played.in_ring())
    places = np.array([one, other, one, not_fit])
    replay.reprioritize(places, np.array([0.1, 1.0, -4.0, 1.0], np.float32))
    kept = replay.weight.copy()
    replay.reprioritize(places[::-1].copy(), np.array([1.0, -4.0, 1.0, 0.1], np.float32))
    np.testing.assert_array_equal(replay.weight, kept)
    assert kept[one] == round(4**0.6 * 65536)
    assert kept[not_fit] == 0
    assert replay.sums[0] == kept.sum(dtype=np.uint64)
    # What is stored next is as urgent as the most urgent so far.
    played.play(3)
    fresh = [place for place, made in played.in_ring().items() if made.serial >= replay.head - 20]
    assert (replay.weight[fresh] == kept[one]).all()
    assert replay.sums[0] == replay.weight.sum(dtype=np.uint64)


SAVED = [
    ("duel", {"limit": 4}, (0, 0), {"capacity": 700, "n_step": 3}),
    ("tic_tac_toe", {}, (0, 0), {"capacity": 2_000, "prioritized": True}),
    ("skull_king", SKULLS, (0, 0, 0, 0), {"capacity": 400, "by_role": True}),
]


@pytest.mark.few(4)
@pytest.mark.parametrize("rounds", [4, 30, 90])
@pytest.mark.parametrize(("game", "config", "members", "options"), SAVED)
def test_a_loaded_replay_goes_on_bit_for_bit(
    game: str, config: Any, members: Any, options: dict[str, Any], rounds: int
) -> None:
    played = make(game, config, members, **options)
    played.play(rounds)
    replay = played.replay
    disturb(replay, 7)
    other = copy_of(played)
    for number in range(3):
        assert_equal(replay.sample(number), other.sample(number))
        disturb(replay, number)
        disturb(other, number)
        played.play(4, other)
    assert (replay.head, replay.first, len(replay)) == (other.head, other.first, len(other))
    assert sorted(replay.state()[1]) == sorted(other.state()[1])
    check_samples(played, 1)


def copy_of(played: Played, **changed: Any) -> ReplayBuffer:
    tensors, segments, meta = played.replay.state()
    other = new_replay(played.collector, replace(played.replay.config, **changed))
    other.load_state(tensors, {name: read() for name, read in segments.items()}, meta)
    return other


def disturb(replay: ReplayBuffer, number: int) -> None:
    if replay.config.prioritized:
        places = replay.sample(number).places
        assert isinstance(places, np.ndarray)
        replay.reprioritize(places, np.sin(places).astype(np.float32))


def assert_equal(one: ReplayBatch, other: ReplayBatch) -> None:
    for name, mine in vars(one).items():
        np.testing.assert_array_equal(mine, getattr(other, name), err_msg=name)


def test_sealed_segments_never_change_and_a_save_costs_what_is_new() -> None:
    played = make("tic_tac_toe", {}, (0, 0), capacity=2_000)
    seen: dict[str, Any] = {}
    for _ in range(12):
        played.play(10)
        tensors, segments, _ = played.replay.state()
        fresh = [name for name in segments if name not in seen]
        assert len(fresh) <= 5  # 300 decisions came, in segments of 125; what waits is short
        assert len(tensors["obs"]) < 4 * 125
        assert all(int(name.split("-")[0]) >= played.replay.first for name in segments)
        for name, read in segments.items():
            rows = {key: value.clone() for key, value in read().items()}
            for key, value in seen.setdefault(name, rows).items():
                assert torch.equal(value, rows[key])
    assert len(seen) > len(segments)


def test_runs_that_part_ways_name_other_segments() -> None:
    names = []
    for seed in (0, 1):
        played = make("tic_tac_toe", {}, (0, 0), capacity=2_000)
        played.play(5)
        played.collector.actors[0].rng = np.random.default_rng(seed)  # type: ignore[attr-defined]
        played.play(20)
        names.append(sorted(played.replay.state()[1]))
    one, other = names
    assert one[0] == other[0]
    assert not set(one[2:]) & set(other[2:])


def test_a_replay_of_another_capacity_takes_the_newest() -> None:
    played = make("duel", {"limit": 4}, (0, 0), capacity=1_000, n_step=2)
    played.play(40)
    for capacity in (300, 5_000):
        other = copy_of(played, capacity=capacity)
        assert other.first == max(played.replay.first, played.replay.head - capacity)
        twin = Played(other, played.collector, played.decisions)
        check_samples(twin, 3)


def test_what_a_checkpoint_lacks_is_said() -> None:
    played = make("tic_tac_toe", {}, (0, 0), capacity=500)
    played.play(30)
    tensors, segments, meta = played.replay.state()
    other = new_replay(played.collector, played.replay.config)
    some = {name: read() for name, read in list(segments.items())[1:]}
    with pytest.raises(StateError, match=r"has 46\d of the replay's 500 decisions"):
        other.load_state(tensors, some, meta)
    custom = new_replay(make("skull_king", {}, (0,) * 4).collector, ReplayConfig(capacity=500))
    with pytest.raises(StateError, match="another game"):
        custom.load_state(tensors, {n: read() for n, read in segments.items()}, meta)


def test_a_cleared_replay_begins_anew() -> None:
    played = make("tic_tac_toe", {}, (0, 0), capacity=500, prioritized=True)
    played.play(10)
    played.replay.state()
    head = played.replay.head
    played.replay.clear()
    assert len(played.replay) == 0
    with pytest.raises(StateError, match="nothing can be sampled yet"):
        played.replay.sample(0)
    played.play(10)  # what was open is not missed
    played.decisions = {s: made for s, made in played.decisions.items() if s >= head}
    check_samples(played, 1)
    assert_equal(played.replay.sample(2), copy_of(played).sample(2))


def test_threads_change_nothing() -> None:
    options: dict[str, Any] = {"capacity": 5_000, "batch": 9_000, "prioritized": True}
    played = make("tic_tac_toe", {}, (0, 0), **options)
    other = new_replay(played.collector, played.replay.config, threads=3)
    played.play(20, other)
    for number in range(4):
        assert_equal(played.replay.sample(number, 0.5), other.sample(number, 0.5))
        disturb(played.replay, number)
        disturb(other, number)
    np.testing.assert_array_equal(played.replay.sums, other.sums)


def test_ages_are_those_of_what_was_sampled() -> None:
    played = make("tic_tac_toe", {}, (0, 0), capacity=500)
    played.play(40)
    head = played.replay.head
    places = played.replay.sample(0).places
    ages = [head - max(s for s in range(head - 500, head) if s % 500 == p) for p in places]
    assert played.replay.stats()["learning/replay_age"] == pytest.approx(np.mean(ages))


def test_priorities_are_for_prioritized_replays() -> None:
    played = make("tic_tac_toe", {}, (0, 0))
    played.play(3)
    with pytest.raises(StateError, match=r"replay\.prioritized=true"):
        played.replay.reprioritize(np.zeros(1, np.int64), np.zeros(1, np.float32))


def test_a_million_decisions_of_hockey_are_under_250_mb() -> None:
    for game in ("laser_hockey", "laser_hockey_discrete"):
        rules, config = Rules(game), ReplayConfig(capacity=1_000_000, prioritized=True)
        assert replay_bytes(rules, rules.obs_bytes, config) < 120e6
        config = replace(config, capacity=3_000)
        made = ReplayBuffer(rules, config, row_bytes=rules.obs_bytes, max_pending=4, seed=0)
        assert made.weight is not None and made.sums is not None
        taken = sum(column.nbytes for column in made.ring.columns.values())
        taken += made.weight.nbytes + made.sums.nbytes
        assert replay_bytes(rules, rules.obs_bytes, config) == taken


@pytest.mark.parametrize(
    ("algo", "capacity", "said"),
    [
        ("dqn", 60, r"replay\.capacity=60 is too small: .* up to 36 decisions, at least 72"),
        ("dqn", 3_000_000_000, r"replay\.capacity=3000000000 is too large, at most 2147483647"),
        ("sac", 2_000_000_000, r"replay\.capacity 2000000000 needs .* GiB, .* are free; at most"),
    ],
)
def test_a_replay_that_does_not_fit_is_refused_before_it_is_made(
    algo: str, capacity: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparring.learn.memory.free_memory", lambda: UNCHECKED_BYTES)
    game = "tic_tac_toe"
    small = {"games": 12, "steps": 1}
    given = {"game": game, "algo": algo, "device": "cpu", "collect": small}
    with pytest.raises(ConfigError, match=said):
        resolve([merged(TrainConfig(), {**given, "replay": {"capacity": capacity}}, "test")])


def test_the_rings_of_a_population_have_a_number_for_every_place() -> None:
    given = {"game": "tic_tac_toe", "algo": "dqn", "device": "cpu"}
    config = merged(TrainConfig(), {**given, "replay": {"capacity": 600_000_000}}, "test")
    plan = resolve([merged(config, {"replay": {"capacity": 100_000}}, "test")])
    large = replace(plan, replay=config.replay)
    check_replay(replace(large, seeds=(1, 2, 3)), 0, free=10**12)
    with pytest.raises(ConfigError, match=r"too large for 4 runs together, at most 536870911"):
        check_replay(replace(large, seeds=(1, 2, 3, 4)), 0, free=10**12)


def test_nothing_follows_for_a_seat_that_was_out_before_the_cut() -> None:
    """Of three agents one leaves in round 1, one in round 2, and the limit cuts the third."""
    pool = pool_of([Fading(limit=2) for _ in range(3)])
    collect = CollectConfig(games=3, steps=4)
    collector = Collector(pool, collect, AnyMove(pool.rules, 0), (), Timing())
    played = Played(new_replay(collector, ReplayConfig(batch=64, capacity=200)), collector)
    for number in range(3):
        collector.collect(number)
        played.replay.mark_truncations(collector.rollout)
        collector.link(0.9, required=False)
        played.replay.push(collector.rollout, collector.transitions)
        collector.keep_pending()
    samples = played.replay.sample(0)
    seen = samples.obs.view(torch.float32)[:, :2].tolist()
    after = samples.next_obs.view(torch.float32)[:, :2].tolist()
    for (time, seat), (next_time, next_seat), discount in zip(
        seen, after, samples.discount.tolist(), strict=True
    ):
        goes_on = time < seat  # until its last round; the third agent's game goes on behind it
        assert discount == pytest.approx(0.9 if goes_on else 0.0)
        assert (next_time, next_seat) == (time + goes_on, seat)
    assert len({(time, seat) for time, seat in seen}) == 5


def test_seats_that_were_out_are_not_asked_where_all_move_at_once() -> None:
    """Continuous actions have no masks that would say so."""
    rules = Rules("duel")
    truncations, rollout = (
        Truncations(),
        SimpleNamespace(final_value=np.full((1, 1, 2), np.nan, np.float32)),
    )
    batch: Any = SimpleNamespace(
        truncated=np.array([True]),
        final_game=np.array([0]),
        final_obs=np.zeros((1, 2, 16), np.uint8),
        final_mask=np.zeros((1, 2, 0), np.uint8),
        final_over=np.array([[True, False]]),
    )
    truncations.add(rules, 0, 0, batch, rollout)  # type: ignore[arg-type]
    truncations.set_values(rollout, np.array([5.0], np.float32))  # type: ignore[arg-type]
    assert rollout.final_value.tolist() == [[[0.0, 5.0]]]
