"""What an environment of one's own is measured by: whole episodes, whose seeds are known."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import own_envs
import sparring
from pools.workers.helpers import gone
from sparring import factories
from sparring.config import NetConfig
from sparring.errors import ConfigError, EnvError, SparringError, SparringWarning
from sparring.league import custom_env
from sparring.league.arena import evaluate
from sparring.league.round_robin import join_matches
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools.custom import cache
from sparring.pools.custom.make import make_pool
from sparring.pools.custom.rules import CustomRules
from sparring.store.policies import load_policy, save_policy
from sparring.training.evaluate import EvalWorker, play
from sparring.training.evaluations import SEED
from sparring.training.records.metrics import read

CARDS, TABLE = "own_envs:make_cards", "own_envs:make_table"
QUICK: dict[str, Any] = {
    "net": {"hidden": (16,), "normalize": True},
    "collect": {"games": 8, "steps": 16},
    "tensorboard": False,
    "quiet": True,
    "threads": 1,
}


def policy_of(word: str, seed: int = 0, name: str = "me") -> Policy:
    """An agent of few habits, which is good enough to be measured."""
    import torch

    rules = make_pool(word, 0).rules
    assert isinstance(rules, CustomRules)
    rules.factory = word
    torch.manual_seed(seed)
    net = make_net(rules, NetConfig(hidden=(8,)))
    torch.nn.init.normal_(net.get_submodule("policy_head").weight)
    return Policy(rules, net, name=name)


def by_hand(policy: Policy, seed: int) -> tuple[float, int]:
    """Play one episode as anybody would: return and length."""
    env, rules = own_envs.make_cards(), policy.rules
    assert isinstance(rules, CustomRules)
    obs, _ = env.reset(seed=seed)
    total, length, over = 0.0, 0, False
    spaces = {k: s for k, s in env.observation_space.spaces.items() if k != "action_mask"}
    while not over:
        seen = {key: obs[key] for key in spaces}
        flat = gymnasium.spaces.flatten(gymnasium.spaces.Dict(spaces), seen)
        mask = obs["action_mask"].astype(np.uint8)
        (action,) = policy.act(rules.pack(flat)[None], mask[None], greedy=True)
        obs, reward, over, _, _ = env.step(int(action))
        total, length = total + reward, length + 1
    return total, length


@pytest.mark.parametrize("word", [CARDS, "own_envs:make_vector"])
def test_episodes_are_those_of_a_loop_by_hand(word: str) -> None:
    """However many are played at once, and whichever kind of environment plays them."""
    policy = policy_of(word, seed=3)
    result = evaluate(policy, [], games=21, seed=5)["alone"]
    wanted = [by_hand(policy, custom_env.seed_of(5, deal)) for deal in range(21)]
    assert result.record.score[:, 0].tolist() == [paid for paid, _ in wanted]
    assert result.record.length.tolist() == [length for _, length in wanted]
    low, high = result.first.score_interval
    returns = np.array([paid for paid, _ in wanted])
    half = 2.085963 * returns.std(ddof=1) / np.sqrt(21)  # Student's, of 20 degrees
    assert (low, high) == pytest.approx((returns.mean() - half, returns.mean() + half), rel=1e-5)
    assert result.games == 21


def test_every_deal_is_played_from_every_seat() -> None:
    one, other = policy_of(TABLE, 1, "one"), policy_of(TABLE, 2, "other")
    result = evaluate(one, [other, "random"], games=31, seed=1)
    met = result["other"]
    assert (met.games, met.deals, met.seat_games) == (32, 16, (16, 16))
    assert met.distinct_games < 32  # greedy players repeat games of as many sticks; that is said
    assert met.first.score == -met.players[1].score
    back = evaluate(other, [one], games=32, seed=1)["one"]
    assert back.first.win_share == pytest.approx(1 - met.first.win_share)
    assert result["random"].distinct_games > met.distinct_games


@pytest.mark.parametrize("word", ["own_envs:make_slots", "own_envs:make_slots_vector"])
def test_games_that_differ_in_what_they_pay_alone_are_different_games(word: str) -> None:
    result = evaluate(policy_of(word), [], games=40)["alone"]
    assert len(set(result.record.score[:, 0].tolist())) == 40
    assert (result.distinct_games, result.distinct_deals) == (40, 40)


def test_all_decide_at_once() -> None:
    result = evaluate(policy_of("own_envs:make_parallel"), ["random"], games=10)["random"]
    assert (result.games, result.length) == (10, 10.0)


def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which every look takes a second."""
    looks = iter(range(10**6))
    monkeypatch.setattr(custom_env, "time", SimpleNamespace(monotonic=lambda: float(next(looks))))


def test_an_evaluation_is_bounded_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(CARDS)
    ticking(monkeypatch)
    result = evaluate(policy, [], games=1000, timeout_s=40)["alone"]
    assert 8 <= result.games < 1000
    assert result.games % 8 == 0  # all that were begun came to their ends
    ticking(monkeypatch)
    with pytest.raises(SparringError, match=r"0 of 1000 episodes ended .* eval\.timeout_s"):
        evaluate(policy, [], games=1000, timeout_s=3)


def test_an_environment_that_has_changed_is_refused() -> None:
    policy = policy_of(CARDS)
    assert isinstance(policy.rules, CustomRules)
    policy.rules.factory = "own_envs:make_walk"
    with pytest.raises(ConfigError, match=r"was trained with 25 numbers.* now makes 4 numbers"):
        evaluate(policy, [], games=4)


def test_requests_beside_training_meet_random_and_the_best_before(tmp_path: Path) -> None:
    now = save_policy(policy_of(TABLE, 1), tmp_path / "now")
    before = save_policy(policy_of(TABLE, 2), tmp_path / "before")
    request = {"checkpoint": str(now), "opponents": ["random"], "rivals": [str(before)]}
    found = play({**request, "games": 6, "seed": SEED, "timeout_s": 60.0, "paths": ["/nowhere"]})
    assert list(found) == ["random", str(before)]
    assert all(result["games"] == 6 and 0 <= result["win"] <= 1 for result in found.values())


# Runs


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sparring.Agent]:
    """A run on a factory, measured on the way."""
    runs = tmp_path_factory.mktemp("runs")
    wanted = {"every_decisions": 256, "games": 12, "target": (0.5, 100.0)}
    with pytest.warns(SparringWarning, match="restores its network, not its games"):
        yield sparring.train(CARDS, updates=4, runs=str(runs), eval=wanted, **QUICK)


def test_the_best_checkpoint_is_that_of_the_best_return(measured: sparring.Agent) -> None:
    curves = read(measured.run)
    updates, _, returns = curves["eval/alone/score"]
    assert updates.tolist() == [2, 4]
    assert curves["eval/games"][2].tolist() == [12.0] * 2
    best = json.loads((measured.run / "best.json").read_bytes())
    assert best["strength"] == max(returns)
    assert best["checkpoint"] == updates[int(np.argmax(returns))]
    again = evaluate(load_policy(measured.run), [], games=12, seed=SEED)["alone"]
    assert again.first.score == pytest.approx(best["strength"])
    events = json.loads((measured.run / "events.json").read_bytes())
    reached = [event["target"] for event in events if event["event"] == "target reached"]
    assert reached == [0.5]


def test_an_agent_of_a_factory_is_measured(measured: sparring.Agent) -> None:
    (result,) = measured.evaluate(games=6, timeout_s=60.0).values()
    assert (result.games, result.length) == (6, 6.0)
    assert measured.evaluate(games=6)["alone"].summary() == result.summary()
    with pytest.raises(ConfigError, match="one seat"):
        measured.evaluate("random")
    saved = sparring.load(measured.save(measured.run.parent / "policy"))
    assert evaluate(saved, [], games=6)["alone"].summary() == result.summary()


def test_a_resumed_run_keeps_what_observations_are_normalized_by(tmp_path: Path) -> None:
    def counted(agent: sparring.Agent) -> float:
        normalizer = agent.policy.net.normalizer
        assert normalizer is not None
        return float(normalizer.count)

    lines = "restores its network, not its games"
    with pytest.warns(SparringWarning, match=lines):
        agent = sparring.train(CARDS, updates=2, runs=str(tmp_path), eval={"off": True}, **QUICK)
    assert counted(agent) == 2 * 8 * 16
    with pytest.warns(SparringWarning, match=lines):
        assert counted(sparring.resume(str(agent.run), updates=3, quiet=True)) == 3 * 8 * 16


def test_of_an_object_the_training_return_decides(tmp_path: Path) -> None:
    env = gymnasium.vector.SyncVectorEnv([own_envs.make_cards] * 8)
    with pytest.warns(SparringWarning, match="best checkpoint is that of the best training return"):
        agent = sparring.train(
            env, updates=6, runs=str(tmp_path), checkpoint_every_decisions=1, **QUICK
        )
    _, _, paid = read(agent.run)["charts/score"]
    best = json.loads((agent.run / "best.json").read_bytes())
    assert best["strength"] == pytest.approx(paid.max(), rel=1e-5)
    assert best["checkpoint"] == 1 + int(paid.argmax())
    with pytest.raises(ConfigError, match="given as an object, which cannot be made again"):
        agent.evaluate()
    for wanted in ({"target": (1.0,)}, {"patience": 2}, {"every_s": 3.0}):
        with pytest.raises(ConfigError, match="which other processes cannot evaluate"):
            sparring.train(env, updates=1, runs=str(tmp_path), eval=wanted, **QUICK)


def test_who_is_met_on_the_way_has_to_exist(tmp_path: Path) -> None:
    refuse: Callable[..., Any] = sparring.train
    with pytest.raises(ConfigError, match="no player 'strong' for nim_v0"):
        refuse(TABLE, updates=1, runs=str(tmp_path), eval={"against": ("strong",)}, **QUICK)
    with pytest.raises(ConfigError, match="has one seat and no opponents"):
        refuse(CARDS, updates=1, runs=str(tmp_path), eval={"against": ("random",)}, **QUICK)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_environments_have_started_ends_with_the_process_that_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as simulators: the process beside training leaves none of them behind."""
    import torch

    policy = policy_of("pools.workers.faulty_envs:make_trouble")
    policy.rules.factory = "pools.workers.faulty_envs:make_served"
    torch.nn.init.zeros_(policy.net.get_submodule("policy_head").weight)  # stays out of trouble
    torch.nn.init.zeros_(policy.net.get_submodule("policy_head").bias)
    saved = str(save_policy(policy, tmp_path / "policy"))
    simulators = tmp_path / "simulators"
    monkeypatch.setenv("SIMULATORS", str(simulators))
    with EvalWorker(nice=0, idle=False) as worker:
        request = {"id": 1, "checkpoint": saved, "opponents": [], "games": 2, "seed": 1}
        worker.submit({**request, "paths": [place for place in sys.path if place]})
        (answer,) = worker.drain(60)
        assert "results" in answer, answer
    pids = [int(pid) for pid in simulators.read_text().split()]
    assert pids
    assert gone(pids)


@pytest.mark.slow
def test_a_vector_that_hangs_is_ended_and_the_next_measurement_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It steps its environments itself, so that the process that measures is ended."""
    monkeypatch.setattr("sparring.training.evaluate.MAKING_S", 2.0)
    hanging = policy_of("hostile_envs:measure_sleeping_vector")
    saved = str(save_policy(hanging, tmp_path / "policy"))
    fine = str(save_policy(policy_of(CARDS), tmp_path / "cards"))
    paths = [place for place in sys.path if place]
    request = {"checkpoint": saved, "opponents": [], "games": 2, "seed": 1, "paths": paths}
    with EvalWorker(nice=0, idle=False) as worker:
        worker.submit({"id": 1, **request, "timeout_s": 0.1})
        (answer,) = worker.drain(60)
        assert "a step or reset of the environment hangs" in answer["error"]
        assert not worker.busy
        worker.submit({"id": 2, **request, "checkpoint": fine})
        (answer,) = worker.drain(60)
        assert answer["results"]["alone"]["games"] == 2


@pytest.mark.parametrize("factory", ["make_blind", "make_blind_later"])
def test_numbers_that_are_none_are_refused_as_in_training(factory: str) -> None:
    policy = policy_of(f"hostile_envs:{factory}")
    with pytest.raises(SparringError, match=r"Blind env \d.*observation\[0\] is nan"):
        evaluate(policy, [], games=4)


FAULTS = {
    "measure_leaving": r"SystemExit: 3 \(hostile_envs.py:\d+\)$",
    "measure_failing": r"ValueError: the simulator lost its way \(hostile_envs.py:\d+\)$",
    "measure_vanishing": "ended with exit code 5$",
    "measure_crashing": r"killed by SIGSEGV \(hostile_envs.py:\d+\)$",
    "measure_sleeping": r"a step or reset took longer than env.step_timeout_s 0.5$",
    "measure_holding": r"a step or reset took longer than env.step_timeout_s 0.5$",
}


@pytest.mark.few(3)
@pytest.mark.parametrize("factory", FAULTS)
def test_a_fault_costs_the_measurement_and_nothing_else(factory: str) -> None:
    """Whatever the environment does to its process, hanging too; the next one is another."""
    policy = policy_of(f"hostile_envs:{factory}")
    policy.meta["config"] = {"env": {"step_timeout_s": 0.5}}
    with pytest.raises(
        EnvError, match=f"game 'hostile_envs:{factory}' failed: .*{FAULTS[factory]}"
    ):
        evaluate(policy, [], games=4)
    assert evaluate(policy_of(CARDS), [], games=4)["alone"].games == 4


def test_what_only_this_program_has_is_measured_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of the main file, which no other process could import without running it."""
    policy = policy_of(CARDS, seed=3)
    wanted = evaluate(policy, [], games=5, seed=2)["alone"].record

    def make() -> Any:
        return own_envs.make_cards()

    monkeypatch.setattr(make, "__module__", "__main__")
    word = "/no/such/file.py:make"
    monkeypatch.setitem(factories._registered, word, make)
    policy.rules.factory = word  # type: ignore[attr-defined]
    same = evaluate(policy, [], games=5, seed=2)["alone"].record
    assert same.score.tolist() == wanted.score.tolist()
    assert same.action_hash.tolist() == wanted.action_hash.tolist()


def test_environments_that_are_kept_no_more_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.close_cached()
    closed: list[Any] = []

    def close(self: Any) -> None:
        closed.append(self)

    monkeypatch.setattr(own_envs.Cards, "close", close)
    first = cache.cached_pool(CARDS, 2)
    assert cache.cached_pool(CARDS, 2) is first
    cache.cached_pool(CARDS, 1)
    assert cache.cached_pool("own_envs:make_vector", 8).num_games == 4  # as many as it has
    assert [table.env for table in cache.tables_of(first)] == closed[:2]
    cache.close_cached()
    assert len(closed) == 2 + 1 + 4


def test_parts_of_a_sequential_test_are_told_apart_by_moves_alone() -> None:
    """Nobody knows whether the seeds of an own environment change anything."""
    one, other = policy_of(TABLE, 1, "one"), policy_of(TABLE, 2, "other")
    parts = [evaluate(one, [other], games=16, seed=seed)["other"] for seed in (1, 50)]
    whole = join_matches(one.rules, parts)
    assert whole.deals == 16
    played = {
        tuple(p.record.action_hash[p.record.deal == d]) for p in parts for d in range(p.deals)
    }
    assert whole.distinct_deals == len(played) < 16
