"""Rules in Python on the GPU are those on the CPU, and those of the native headers, bit for bit."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sparring import trusted
from sparring.config import (
    CollectConfig,
    EvaluationConfig,
    NetConfig,
    PPOConfig,
    TrainConfig,
)
from sparring.errors import ConfigError, RulesError
from sparring.games.rules import Rules
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool
from sparring.search.cuda import CudaSearch
from sparring.store import checkpoint as checkpoints
from sparring.training.train import train_with

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None,
    reason="needs the extra: pip install 'sparring[cuda-python-games]'",
)
FOLDER = Path(__file__).parents[2] / "examples" / "python_games"
CONNECT_FOUR = f"{FOLDER}/connect_four.py:ConnectFour"
LEDUC = f"{FOLDER}/leduc_poker.py:LeducPoker"
OH_HELL = f"{FOLDER}/oh_hell.py:OhHell"
CASES: dict[str, tuple[str, list[Lineup]]] = {
    "connect_four": (CONNECT_FOUR, []),
    "leduc_poker": (LEDUC, [Lineup((0, "solid")), Lineup((0, 0))]),
    "oh_hell": (OH_HELL, [Lineup((0, "careful", "careful", "random")), Lineup((0, 0, 0, 0))]),
}
NATIVE = ("connect_four", "leduc_poker")
SEEN = ("obs", "mask", "seat", "role", "policy", "reward", "terminated", "truncated")
FINALS = ("game", "obs", "mask", "score", "policy", "length", "reason")
DECISIONS = 1_000_000

BROKEN = """
from sparring.pygames import Game, Int


class Broken(Game):
    '''Twenty decisions; some of them fail.'''

    seats = 1
    actions = 3
    state = {"at": Int(0, 20), "board": Int(0, 9, shape=4)}
    observation = {"board": 4}

    def reset(state, rng):
        state.at = 0

    def legal(state, mask):
        mask[:] = True

    def observe(state, seat, obs):
        obs.board[0] = state.at

    def step(state, action, rewards):
        FAULT
        state.at += 1
        return state.at == 20
"""
FAULTS = {
    "index": "state.board[state.at // 4 + action // 2] = 1",
    "division": "state.board[0] = 6 // (action - 1 + (state.at < 3) * 2)",
    "raise": "\n        if state.at > 5 and action == 2: raise ValueError",
    "reward": "rewards[0] = 0.0 if state.at < 4 else 1e300 * 1e300",
    "seat": "state.seat = state.at // 6",
    "end": "\n        if state.at == 9: return 7",
}


@pytest.fixture(autouse=True)
def trust() -> None:
    trusted.allow(CONNECT_FOUR, LEDUC, OH_HELL)


def bits(array: Any) -> np.ndarray[Any, Any]:
    plain = array.cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)
    return np.ascontiguousarray(plain).view(np.uint8)


def assert_same(cpu: Pool, gpu: CudaPool, where: str, *, states: bool = True) -> None:
    ours, theirs = cpu.batch(), gpu.batch()
    names = [*SEEN, "skipped", *(f"final_{name}" for name in FINALS)]
    for name in names:
        mine, other = bits(getattr(ours, name)), bits(getattr(theirs, name))
        assert np.array_equal(mine, other), f"{where}: {name} differs"
    if states:
        assert np.array_equal(cpu._native.envs, gpu.tables.cpu().numpy()), f"{where}: states differ"


def play(cpu: Pool, gpu: CudaPool, decisions: int, *, states: bool = True) -> None:
    """Play at random on both; everything must be equal after every step."""
    cpu.reset()
    gpu.reset()
    played = step = ended = 0
    assert_same(cpu, gpu, "at the start", states=states)
    while played < decisions:
        played += int((cpu.batch().policy >= 0).sum())
        actions, others = cpu.sample_actions(), gpu.sample_actions()
        assert np.array_equal(bits(actions), bits(others)), f"step {step}: sampled actions differ"
        cpu.step(actions)
        gpu.step(others)
        step += 1
        ended += len(cpu.batch().final_game)
        assert_same(cpu, gpu, f"step {step}", states=states)
    assert ended > cpu.num_games // 2
    gpu.check()


@pytest.mark.parametrize("case", CASES)
def test_a_million_decisions_are_those_of_the_cpu(case: str) -> None:
    word, lineups = CASES[case]
    given: dict[str, Any] = {"seed": 3, "lineups": lineups or None}
    rules = Rules(word)
    cpu, gpu = Pool(rules, 4096, threads=4, **given), CudaPool(rules, 4096, **given)
    play(cpu, gpu, DECISIONS)
    assert np.array_equal(cpu.counts(), gpu.counts())
    assert gpu.audit() == ""


@pytest.mark.parametrize("case", NATIVE)
def test_a_million_decisions_are_those_of_the_native_header(case: str) -> None:
    """All but the bytes of states, which each lays out as it likes, and bots' ways of drawing."""
    rules = Rules(CASES[case][0])
    play(
        Pool(case, 4096, seed=5, threads=4), CudaPool(rules, 4096, seed=5), DECISIONS, states=False
    )


def test_memory_line_ups_and_saved_games() -> None:
    rules = Rules(OH_HELL)
    cpu, gpu = Pool(rules, 128, seed=6, threads=2), CudaPool(rules, 128, seed=6, stage_bytes=0)
    play(cpu, gpu, 20_000)  # larger games play in global memory
    for pool in (cpu, gpu):
        pool.set_lineups([Lineup((0, "careful", 0, "careful"))])
        pool.set_rewards({"kept": 1.0})
        pool.set_config(rounds=2)
    for step in range(100):
        cpu.step(cpu.sample_actions())
        gpu.step(gpu.sample_actions())
        assert_same(cpu, gpu, f"step {step}")
    saved = gpu.state()
    assert saved == cpu.state()
    other = CudaPool(rules, 128, seed=1)
    other.set_config(rounds=2)
    other.load_state(saved)
    assert other.state() == saved


@pytest.mark.parametrize("fault", FAULTS)
def test_rules_that_fail_freeze_their_game_and_are_told(fault: str, tmp_path: Path) -> None:
    file = tmp_path / f"broken_{fault}.py"
    file.write_text(BROKEN.replace("FAULT", FAULTS[fault]))
    word = f"{file}:Broken"
    trusted.allow(word)
    pool = CudaPool(word, 256, seed=1)
    pool.reset()
    with pytest.raises(RulesError, match=r"game \d+: the rules failed on the GPU; .*--device cpu"):
        for _ in range(40):
            pool.step(pool.sample_actions())
            pool.check()
    on_cpu = Pool(word, 256, seed=1, threads=1)
    on_cpu.reset()
    with pytest.raises(RulesError, match=rf"broken_{fault}\.py"):
        for _ in range(40):
            on_cpu.step(on_cpu.sample_actions())


def test_searches_are_refused_in_a_line() -> None:
    with pytest.raises(ConfigError, match=r"searches on a GPU are for bundled games.*--pool cpu"):
        CudaSearch(CudaPool(CONNECT_FOUR, 32), 8)


def learned(word: str, tmp_path: Path) -> dict[str, Any]:
    config = TrainConfig(
        game=word,
        device="cuda",
        pool="cuda",
        runs=str(tmp_path),
        updates=4,
        net=NetConfig(hidden=(64, 32)),
        collect=CollectConfig(games=256, steps=16),
        ppo=PPOConfig(minibatch=512),
        eval=EvaluationConfig(off=True),
        tensorboard=False,
    )
    folder = checkpoints.newest_valid(train_with(config, quiet=True).run / "checkpoints")
    assert folder is not None
    found = checkpoints.load(folder)
    assert found.meta["update"] == 4
    return dict(found.tensors["net"])


def test_an_agent_learns_what_it_learns_from_the_native_header(tmp_path: Path) -> None:
    """The same rows, rewards and draws give the same weights."""
    ours, native = learned(CONNECT_FOUR, tmp_path), learned("connect_four", tmp_path)
    assert ours.keys() == native.keys()
    for name, weights in ours.items():
        assert np.array_equal(bits(weights), bits(native[name])), name


def test_roles_counters_and_bots_train(tmp_path: Path) -> None:
    assert learned(OH_HELL, tmp_path)
