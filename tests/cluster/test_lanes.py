"""What a learner makes of actors' rollouts, with runners in this process in place of actors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from cluster.supervisors import TINY, LocalSupervisor, alone, settings, together
from sparring.cluster.actors.packing import counts_of
from sparring.config import TrainConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.learn.learner import Learner, Overrides, Report, Snapshot
from sparring.learn.rollout import Truncations
from sparring.pools.lineups import Lineup, Mix
from sparring.pools.starts import Start
from sparring.training.display.lines import learning_texts
from sparring.training.planning.settings import merged, with_preset
from sparring.training.status import shown_of
from sparring.training.train import train_with

SLOW = pytest.mark.slow
LOCKSTEP: dict[str, Any] = {"actors": 2, "distributed": {"lockstep": True}}


def iterated(learner: Learner, updates: int = 3) -> list[Report]:
    return [learner.iterate(0.1 * update)[0] for update in range(updates)]


def check_same_tensors(one: Snapshot, other: Snapshot) -> None:
    assert one.tensors.keys() == other.tensors.keys()
    for group, tensors in one.tensors.items():
        for name, value in tensors.items():
            assert torch.equal(value, other.tensors[group][name]), (group, name)
    assert one.blobs["open.bin"] == other.blobs["open.bin"]
    assert one.meta == other.meta


def check_same(report: Report, other: Report) -> None:
    told = {
        name: value for name, value in other.stats.items() if not name.startswith("distributed/")
    }
    plain = {
        name: value for name, value in report.stats.items() if not name.startswith("distributed/")
    }
    assert told == plain
    assert (report.decisions, report.samples) == (other.decisions, other.samples)
    assert report.opponent_rows == other.opponent_rows
    assert (report.met is None) == (other.met is None)
    assert report.met is None or (report.met == other.met).all()


SHORT: dict[str, Any] = {"set": ("num_players=3", "rounds=1,2"), "collect": {"steps": 16}}
"""Games of Skull King that end in a rollout."""
GAMES: dict[str, dict[str, Any]] = {
    "tic_tac_toe": {"net": {"hidden": (16,), "normalize": True}},
    "skull_king": {**SHORT, "opponents": ("self=1", "captain=1", "past=1"), "league": {"slots": 2}},
    "kuhhandel": {"set": ("max_decisions=9",), "rewards": ()},
    "cage2": {"set": ("max_steps=5",)},
    "leduc_poker": {"net": {"hidden": (16,), "critic": "full"}},
}
MEMORIES: dict[str, dict[str, Any]] = {
    "gru": {"hidden": (16,), "memory": "gru", "memory_width": 8, "bptt_steps": 3},
    "stack": {"hidden": (16,), "memory": "stack", "frames": 3},
}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "game",
    [
        "tic_tac_toe",
        "skull_king",
        "leduc_poker",
        *(pytest.param(game, marks=SLOW) for game in ("kuhhandel", "cage2")),
    ],
)
def test_in_lockstep_actors_play_what_one_process_with_as_many_slots_does(game: str) -> None:
    config = settings(game, **LOCKSTEP, **GAMES[game])
    learners = [alone(config), together(config)]
    if config.league.slots == 2:  # a past self, met in some of the games
        for learner in learners:
            weights = learner.snapshot().tensors["net"]
            other = {name: value + 0.1 * torch.ones_like(value) for name, value in weights.items()}
            learner.put(1, other)  # type: ignore[attr-defined]
            learner.put(2, other, greedy=True)  # type: ignore[attr-defined]
            learner.set_mixes({"past": {1: 1.0, 2: 1.0}})  # type: ignore[attr-defined]
    for mine, theirs in zip(*map(iterated, learners), strict=True):
        check_same(mine, theirs)
    check_same_tensors(*[learner.snapshot() for learner in learners])
    if game == "skull_king":
        assert mine.met is not None and mine.met[1:].any()
        seated = [learner.seated() for learner in learners]  # type: ignore[attr-defined]
        assert (seated[0] == seated[1]).all()


@pytest.mark.parametrize("memory", ["gru", pytest.param("stack", marks=SLOW)])
def test_in_lockstep_what_networks_remember_travels_with_their_rows(memory: str) -> None:
    """Past selves remember too; games in flight are saved with what is remembered of them."""
    changes: dict[str, Any] = {"opponents": ("self=1", "past=1"), "league": {"slots": 1}}
    changes |= {"net": MEMORIES[memory], "collect": {"games": 8, "steps": 5}}
    config = settings("leduc_poker", **LOCKSTEP, **changes)
    one, distributed, again = alone(config), together(config), together(config)
    first = distributed.snapshot().tensors["net"]
    for learner in (one, distributed, again):
        learner.put(1, first)  # type: ignore[attr-defined]
        learner.set_mixes({"past": {1: 1.0}})  # type: ignore[attr-defined]
    for mine, theirs in zip(iterated(one), iterated(distributed), strict=True):
        check_same(mine, theirs)
    check_same_tensors(one.snapshot(), distributed.snapshot())
    assert distributed.collector.rollout.obs[:, distributed.rules.obs_bytes :].any()
    again.restore(distributed.snapshot())
    check_same(distributed.iterate(0.5)[0], again.iterate(0.5)[0])
    check_same_tensors(distributed.snapshot(), again.snapshot())


def test_a_snapshot_in_lockstep_goes_on_bit_for_bit() -> None:
    config = settings("skull_king", **LOCKSTEP)
    first, second = together(config), together(config)
    iterated(first, 2)
    second.restore(first.snapshot())
    check_same(first.iterate(0.5)[0], second.iterate(0.5)[0])
    check_same_tensors(first.snapshot(), second.snapshot())


def test_other_terms_reach_the_games_of_actors() -> None:
    config = settings("skull_king", opponents=("self=1", "past=1"), **SHORT, **LOCKSTEP)
    overrides = Overrides(
        lineups=(Lineup((0, "captain", Mix("past"))),),
        flags={"episode": "ROUND", "start_round": 1},
        starts=[Start(None, 1.0)],
        rewards={"score_final": (1.0, 0.5)},
    )
    learners = [alone(config), together(config)]
    for learner in learners:
        iterated(learner, 1)
        learner.apply_overrides(overrides)  # type: ignore[attr-defined]
    for mine, theirs in zip(*map(iterated, learners), strict=True):
        check_same(mine, theirs)


def test_phases_begin_in_actors_as_they_do_in_one_process() -> None:
    phases = [
        {"name": "with a bot", "decisions": 200, "opponents": ["random=1"]},
        {"name": "alone", "opponents": ["self=1"]},
    ]
    config = settings("tic_tac_toe", **LOCKSTEP, phases=phases)
    learners = [alone(config), together(config)]
    for mine, theirs in zip(*map(iterated, learners), strict=True):
        check_same(mine, theirs)
    assert mine.opponent_rows == 0
    assert mine.met is not None


# Without lock-step


def scripted(seed: int) -> Any:
    """ActorHandle in something, of whom a lot decides; sometimes nobody does."""
    rng = np.random.default_rng(seed)

    def deliver(able: list[int]) -> list[int]:
        return [actor for actor in able if rng.random() < 0.3]

    return deliver


LAGS = [(1, 0), (3, 4), *(pytest.param(*each, marks=SLOW) for each in ((0, 1), (1, 1), (4, 1)))]


@pytest.mark.parametrize(("lag", "queue"), LAGS)
def test_no_rollout_is_ever_too_old_and_none_is_counted_twice(lag: int, queue: int) -> None:
    distributed = {"max_lag": lag, "queue": queue, "actors_per_update": 1}
    config = settings(actors=4, distributed=distributed)
    learner = together(config, deliver=scripted(lag))
    supervisor = learner.supervisor
    assert isinstance(supervisor, LocalSupervisor)
    lags, absent = [], 0
    for update in range(15):
        report = learner.iterate(update / 15)[0]
        lags.append(int(report.stats["distributed/lag_max"]))
        absent += 4 - int(report.stats["distributed/rollouts"])
        assert learner.collector.lag.shape == (8,)
        assert learner.collector.lag.max() <= lag
        rows = learner.collector.rollout.policy.reshape(8, 4, 2)
        queues = (rows >= 0).any((0, 2))
        assert queues.sum() == report.stats["distributed/rollouts"]
    assert max(lags) == lag  # the script does its worst, and the bound is met
    assert absent or queue >= lag  # with so much ahead, something is always about to be too old
    waiting = [
        one.batch for queue in learner.collector.queues for one in queue.pending if one.batch
    ]
    counted = sum(counts_of(batch.arrays)["decisions"] for batch in supervisor.handed_in)
    counted -= sum(counts_of(batch.arrays)["decisions"] for batch in waiting)
    assert counted == learner.collector.decisions


def test_what_late_rollouts_weigh_is_as_configured() -> None:
    def trained(rho: float, trace: float) -> tuple[list[float], Snapshot]:
        distributed = {
            "max_lag": 3,
            "queue": 2,
            "actors_per_update": 1,
            "rho_clip": rho,
            "c_clip": trace,
        }
        config = settings("skull_king", actors=2, distributed=distributed, **SHORT)
        learner = together(config, deliver=scripted(3))
        reports = iterated(learner, 6)
        late = [one for one in reports if one.stats["distributed/rho_clipped"] > 0]
        assert late
        return [one.stats["distributed/rho_mean"] for one in late], learner.snapshot()

    (usual, plain), (light, most), (same, less) = (
        trained(*limits) for limits in ((1.0, 1.0), (0.5, 0.5), (0.5, 0.25))
    )
    assert min(usual) > 0.5 >= max(light) and max(same) <= 0.5
    head = [one.tensors["net"]["policy_head.weight"] for one in (plain, most, less)]
    assert not torch.equal(head[0], head[1]) and not torch.equal(head[1], head[2])


def test_an_absent_lane_keeps_its_open_decisions() -> None:
    config = settings("skull_king", actors=2, distributed={"max_lag": 9, "actors_per_update": 1})
    learner = together(config, deliver=lambda able: able[:1])
    learner.iterate(0.0)
    before = learner.collector.pending_state()
    learner.iterate(0.0)
    assert learner.collector.queues[1].pending
    after = learner.collector.pending_state()
    half = len(learner.collector.transitions.pending) // 2
    assert (learner.collector.transitions.pending_rows()[half:] == -1).all()  # it never came
    learner.supervisor.deliver = lambda able: able[-1:]  # type: ignore[attr-defined]
    learner.iterate(0.0)
    late = learner.collector.pending_state()
    learner.supervisor.deliver = lambda able: able[:1]  # type: ignore[attr-defined]
    learner.iterate(0.0)
    last = learner.collector.pending_state()
    assert (learner.collector.transitions.pending_rows()[half:] >= 0).any()
    for name in before[0]:
        assert torch.equal(late[0][name][half:], last[0][name][half:]), name
        assert not torch.equal(before[0]["obs"][:half], after[0]["obs"][:half])


def test_what_dies_is_played_again_and_its_open_decisions_are_forgotten() -> None:
    config = settings("skull_king", **LOCKSTEP)
    learner = together(config, deliver=lambda able: able[:1])
    iterated(learner, 1)
    supervisor, taken = learner.supervisor, learner.collector.decisions
    assert isinstance(supervisor, LocalSupervisor)
    each = len(learner.collector.transitions.pending) // 2
    opened = learner.collector.transitions.pending_rows()
    assert (opened[:each] >= 0).any() and (opened[each:] >= 0).any()
    deliver, supervisor.deliver = supervisor.deliver, lambda able: []
    kills = iter([1])

    def die(able: list[int]) -> list[int]:
        for actor in kills:
            supervisor.kill(actor)
            return []
        supervisor.deliver = deliver
        return []

    supervisor.deliver = die
    report = learner.iterate(0.1)[0]
    assert report.stats["distributed/restarts"] == report.stats["distributed/lost"] == 1
    counted = sum(counts_of(batch.arrays)["decisions"] for batch in supervisor.handed_in)
    assert counted == learner.collector.decisions > taken
    front = learner.collector.transitions.end[: 2 * each] > 0
    assert front[:each].any() and not front[each:].any()


def test_slots_are_free_only_when_every_actor_knows_that_nobody_is_drawn_from_them() -> None:
    config = settings(
        "skull_king",
        actors=2,
        opponents=("past=1",),
        distributed={"max_lag": 9, "actors_per_update": 2},
        **SHORT,
    )
    learner = together(config)
    weights = learner.snapshot().tensors["net"]
    learner.put(1, weights)
    learner.put(2, weights)
    learner.set_mixes({"past": {1: 1.0}})
    assert (learner.seated()[1:3] > 0).tolist() == [True, False]
    learner.iterate(0.0)
    learner.set_mixes({"past": {2: 1.0}})
    # Their games may end, and begin with policy 1 once more, before they hear of it.
    assert learner.seated()[1] > 0
    updates = 0
    while learner.seated()[1] and updates < 60:
        learner.iterate(0.0)
        updates += 1
    assert all(runner.pool.seated(3)[1] == 0 for runner in learner.supervisor.runners)  # type: ignore[attr-defined]
    assert learner.seated()[2] > 0


def test_a_restored_learner_forgets_what_was_played_for_the_weights_before() -> None:
    config = settings(actors=2, distributed={"max_lag": 4, "queue": 2, "actors_per_update": 1})
    learner = together(config, deliver=scripted(1))
    iterated(learner, 5)
    assert not learner.exact
    learner.restore(learner.snapshot())
    assert not (learner.collector.transitions.pending_rows() >= 0).any()
    decisions = learner.collector.decisions
    before = len(learner.supervisor.handed_in)  # type: ignore[attr-defined]
    gone = sum(len(queue.dropped) for queue in learner.collector.queues)
    iterated(learner, 5)
    handed_in = learner.supervisor.handed_in[before:]  # type: ignore[attr-defined]
    waiting = [one for queue in learner.collector.queues for one in queue.pending if one.batch]
    assert gone
    taken = (learner.collector.decisions - decisions) / counts_of(handed_in[0].arrays)["decisions"]
    assert taken == len(handed_in) - gone - len(waiting)


# Environments of somebody's own


def test_actors_of_a_run_that_goes_on_begin_other_games() -> None:
    config = settings("leduc_poker", actors=2)
    first, second, third = (together(config) for _ in range(3))
    first.iterate(0.0)
    second.restore(first.snapshot())
    second.iterate(0.1)
    third.restore(second.snapshot())
    third.iterate(0.2)
    supervisors = [each.supervisor for each in (first, second, third)]
    seeds = [
        {runner._seed for runner in supervisor.runners}
        for supervisor in supervisors
        if isinstance(supervisor, LocalSupervisor)
    ]
    assert all(runner._started for supervisor in supervisors for runner in supervisor.runners)  # type: ignore[attr-defined]
    assert [len(each) for each in seeds] == [1, 1, 1]
    assert len(set.union(*seeds)) == 3


def test_actors_make_environments_by_name_and_play_the_same_games(tmp_path: Path) -> None:
    base = merged(TrainConfig(), TINY, "test")
    changes = {"game": "own_envs:make_cards", "collect": {"games": 8, "steps": 9}, **LOCKSTEP}
    config = merged(base, changes, "test")
    distributed, one = together(config), alone(replace(config, actors=1))
    distributed.iterate(0.0)
    one.iterate(0.0)
    first = [learner.collector.rollout for learner in (one, distributed)]  # type: ignore[attr-defined]
    max_pending = distributed.collector.transitions.max_pending
    for name in ("obs", "mask"):
        mine, theirs = (getattr(rollout, name)[max_pending : max_pending + 8] for rollout in first)
        assert (mine == theirs).all()  # game i is seeded with its number, wherever it is played
    assert not distributed.exact
    assert distributed.snapshot().blobs == {}
    assert distributed.iterate(0.1)[0].episodes is not None


def test_a_vector_has_to_be_the_games_of_one_actor(tmp_path: Path) -> None:
    base = merged(TrainConfig(), {**TINY, "runs": str(tmp_path), "updates": 1}, "test")
    config = merged(base, {"game": "own_envs:make_vector", "actors": 4}, "test")
    with pytest.raises(ConfigError, match=r"makes a vector of \d+ envs.*set collect.games"):
        train_with(config, quiet=True)
    assert not list(tmp_path.iterdir())


# Whole games

WHOLE: dict[str, Any] = {"actors": 2, "distributed": {"whole_episodes": True, "lockstep": True}}


@pytest.mark.parametrize("game", ["tic_tac_toe", "cage2"])
def test_whole_episodes_are_one_whole_game_in_every_place(game: str) -> None:
    steps = 12 if game == "tic_tac_toe" else 8
    changes: dict[str, Any] = {"opponents": ("self=1",)}
    if game == "cage2":
        changes = {"set": ("max_steps=5",)}
    learner = together(settings(game, **WHOLE, collect={"steps": steps}, **changes))
    lengths = []
    for update in range(3):
        report = learner.iterate(0.1 * update)[0]
        rollout, episodes = learner.collector.rollout, report.episodes
        assert episodes is not None
        assert sorted(episodes.game) == list(range(8))
        ended = rollout.terminated | rollout.truncated
        assert (ended.sum(0) == 1).all()
        decided = (rollout.policy == 0).reshape(steps, 8, -1).any(2)
        assert (decided.sum(0) == ended.argmax(0) + 1).all()
        by_game = dict(zip(episodes.game.tolist(), episodes.length.tolist(), strict=True))
        assert [by_game[game] for game in range(8)] == decided.sum(0).tolist()
        assert not (learner.collector.transitions.pending_rows() >= 0).any()
        truncations: Truncations = rollout.truncations
        assert sum(map(len, truncations.where)) == int(rollout.truncated.sum())
        lengths.append(tuple(by_game.values()))
        assert report.stats["learning/samples"] == report.stats["learning/decisions"]
        assert report.stats["distributed/unfinished"] == 0
    if game == "tic_tac_toe":
        assert len(set(lengths)) > 1  # other games in every rollout


def test_games_that_take_too_long_are_left_out_and_told_of_once() -> None:
    collect = {"games": 32, "steps": 6}
    learner = together(settings(**WHOLE, opponents=("self=1",), collect=collect))
    with pytest.warns(SparringWarning, match=r"collect.steps 6.*raise it") as told:
        reports = iterated(learner, 3)
    assert len(told) == 1
    for report in reports:
        assert report.episodes is not None
        assert report.stats["distributed/unfinished"] == 32 - len(report.episodes) > 0
        assert report.stats["learning/decisions"] == report.episodes.length.sum()


# Refusals


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"actors": 3}, "collect.games 8 does not divide equally; nearest: 6"),
        ({"actors": 16}, "collect.games 8 does not divide equally; nearest: 16"),
        (
            {"actors": 2, "algo": "dqn", "distributed": {"rho_clip": 2.0}},
            "distributed.rho_clip 2 needs .*V-trace.*, and algo dqn is not one; use --algo ppo",
        ),
        (
            {"actors": 2, "distributed": {"actors_per_update": 3}},
            "actors_per_update 3 must be at most actors",
        ),
    ],
)
def test_what_actors_cannot_do_is_refused(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    game, algo = changes.get("game", "tic_tac_toe"), changes.get("algo", "ppo")
    hierarchy = "hierarchy" in changes
    base = with_preset(game, algo=algo, hierarchy=hierarchy)
    tiny = {"collect": {"games": 8}, "device": "cpu", "runs": str(tmp_path), "updates": 1}
    with pytest.raises(ConfigError, match=said):
        train_with(merged(base, {**tiny, **changes}, "test"), quiet=True)
    assert not list(tmp_path.iterdir())


def test_opponents_that_are_objects_are_refused_with_actors(tmp_path: Path) -> None:
    def mine(obs: Any, mask: Any, rng: Any) -> Any:
        return mask.argmax(1)

    with pytest.raises(ConfigError, match=r"mine are objects of this program.*save them"):
        sparring.train(
            "tic_tac_toe", actors=2, opponents=[mine], runs=str(tmp_path), updates=1, quiet=True
        )
    assert not list(tmp_path.iterdir())


def test_what_is_shown_of_a_run_says_how_actors_and_learner_keep_step() -> None:
    learner = together(settings(actors=2, distributed={"max_lag": 2}))
    stats = learner.iterate(0.0)[0].stats
    (told,) = learning_texts(shown_of({**stats, "distributed/restarts": 3.0}))
    assert told.startswith("actors 33% idle, learner ")
    assert told.endswith(", lag 0.0, 3 died and started again")


def test_a_resumed_run_begins_other_games_than_it_began_with() -> None:
    config = settings("skull_king", actors=2, distributed={"max_lag": 4})

    def first_rows(learner: Any) -> Any:
        learner.iterate(0.0)
        rollout, max_pending = learner.collector.rollout, learner.collector.transitions.max_pending
        return rollout.obs[max_pending : max_pending + 8].copy()

    first, again = together(config), together(config)
    before = first_rows(first)
    again.restore(first.snapshot())
    assert again.seated()[0]
    after = first_rows(again)
    assert (before != after).any(1).all()
    assert len(np.unique(after, axis=0)) == 8
    again.supervisor.kill(0)  # type: ignore[attr-defined]
    assert (first_rows(again)[:4] != after[:4]).any(1).all()
