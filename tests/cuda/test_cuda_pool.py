"""Games on the GPU are the games on the CPU, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from sparring.errors import ConfigError, IllegalActionError, StateError
from sparring.games.rules import Rules
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool

EXTRAS = {"num_players": 6, "abilities": 1, "scoring": "RASCAL", "cannonball": 1, "history": 1}
CASES: dict[str, tuple[str, dict[str, Any], list[Lineup]]] = {
    "cage2": ("cage2", {}, []),
    "cage2 everything": (
        "cage2",
        {
            **{"preset": "CHALLENGE", "mix": [1, 2, 1], "green": 1, "max_steps": 50, "mask": 1},
            **{"obs_rule": "CARDIFF", "scan_history": "ALL", "decoys_left": 1},
            **{"orders": "DRAWN", "order_bonus": 1},
        },
        [],
    ),
    "cage2 winner": (
        "cage2",
        {"actions": "WINNER", "scan_history": "WINNER", "obs_rule": "CARDIFF"},
        [Lineup((0,)), Lineup(("vreact",)), Lineup(("react_restore",))],
    ),
    "skull_king": ("skull_king", {}, []),
    "skull_king bots": (
        "skull_king",
        {},
        [
            Lineup((0, "captain", "captain", "rule_hard")),
            Lineup((0, 0, "random", "rule_easy"), weight=2.0),
            Lineup((0, 0, 0, 0), weight=0.5, shuffle=False),
        ],
    ),
    "skull_king extras": ("skull_king", {**EXTRAS, "skip_forced": 1}, []),
    "skull_king two": ("skull_king", {"num_players": 2, "episode": "ROUND"}, []),
    "kuhhandel": ("kuhhandel", {}, []),
    "kuhhandel five": (
        "kuhhandel",
        {"num_players": 5, "bluff": "CAP", "history": 1, "skip_forced": 1, "max_decisions": 300},
        [Lineup((0, 0, "dealer", "thrifty", "random")), Lineup((0,) * 5)],
    ),
    "kuhhandel bots": ("kuhhandel", {"bluff": "FORBID"}, [Lineup((0, "dealer", "dealer"))]),
    "laser_hockey": ("laser_hockey", {}, []),
    "laser_hockey bots": (
        "laser_hockey",
        {"mode": "MIXTURE", "safe_spawn": 0, "clear_keep_on_reset": 0, "serve": "ALTERNATING"},
        [Lineup((0, "strong")), Lineup((0, "weak")), Lineup(("weak", "strong"))],
    ),
    "laser_hockey fast": ("laser_hockey", {"profile": "FAST"}, [Lineup((0, "strong"))]),
    "laser_hockey discrete": (
        "laser_hockey_discrete",
        {"fineness": 4, "keep_mode": 0, "scale_observation": 1},
        [Lineup((0, 0)), Lineup((0, "idle"))],
    ),
    "shogi": ("shogi", {"max_plies": 150}, []),
    "shogi planes": (
        "shogi",
        {"observation": "PLANES46", "declaration": "POINTS24", "memory": 40, "skip_forced": 1},
        [],
    ),
    "shogi bots": (
        "shogi",
        {"max_plies": 80, "at_limit": "DRAW"},
        [Lineup((0, "greedy")), Lineup((0, "ab2")), Lineup((0, "random"))],
    ),
    "tic_tac_toe": ("tic_tac_toe", {}, []),
    "tic_tac_toe random": ("tic_tac_toe", {}, [Lineup((0, "random"))]),
    "kuhn_poker": ("kuhn_poker", {}, [Lineup((0, "nash")), Lineup((0, 0))]),
    "connect_four": ("connect_four", {}, [Lineup((0, "ab4")), Lineup((0, 0))]),
    "leduc_poker": ("leduc_poker", {}, [Lineup((0, "solid")), Lineup((0, 0))]),
    "rock_paper_scissors": ("rock_paper_scissors", {}, [Lineup((0, "paper")), Lineup((0, 0))]),
    "duel": ("duel", {"limit": 9}, []),
    "duel bot": ("duel", {}, [Lineup((0, "pusher")), Lineup((0, 0))]),
}
ARRAYS = ("obs", "mask", "seat", "role", "policy", "reward", "terminated", "truncated")
FINALS = ("game", "obs", "mask", "score", "policy", "length", "reason")


def pools(case: str, games: int, *, seed: int = 3) -> tuple[Pool, CudaPool]:
    game, config, lineups = CASES[case]
    rules = Rules(game, config)
    given = {"seed": seed, "lineups": lineups or None}
    return Pool(rules, games, threads=4, **given), CudaPool(rules, games, **given)


def bits(array: Any) -> np.ndarray[Any, Any]:
    """The bytes of an array, so that -0 is not 0 and NaN is itself."""
    plain = array.cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)
    return np.ascontiguousarray(plain).view(np.uint8)


def assert_same(cpu: Pool, gpu: CudaPool, where: str) -> None:
    ours, theirs = cpu.batch(), gpu.batch()
    for name in ARRAYS:
        same = np.array_equal(bits(getattr(ours, name)), bits(getattr(theirs, name)))
        assert same, f"{where}: {name} differs"
    assert np.array_equal(ours.skipped, theirs.skipped.cpu().numpy()), f"{where}: skipped"
    for name in FINALS:
        mine, other = getattr(ours, f"final_{name}"), getattr(theirs, f"final_{name}")
        assert np.array_equal(bits(mine), bits(other)), f"{where}: final_{name} differs"
    assert np.array_equal(cpu._native.envs, gpu.tables.cpu().numpy()), f"{where}: state differs"
    assert np.array_equal(cpu._native.extra, gpu.side.cpu().numpy()), f"{where}: side differs"


@pytest.mark.parametrize("case", CASES)
def test_a_million_decisions_are_the_same(case: str) -> None:
    games = 1024
    cpu, gpu = pools(case, games)
    cpu.reset()
    gpu.reset()
    decisions, step, ends = 0, 0, 0
    while decisions < 1_000_000:
        decisions += int((cpu.batch().policy >= 0).sum())
        actions, others = cpu.sample_actions(), gpu.sample_actions()
        assert np.array_equal(bits(actions), bits(others)), f"step {step}: sampled actions differ"
        cpu.step(actions)
        gpu.step(others)
        step += 1
        ends += len(cpu.batch().final_game)
        assert_same(cpu, gpu, f"{case}, step {step}")
    assert ends > games // 2
    gpu.check()


@pytest.mark.parametrize("case", ["skull_king bots", "kuhhandel five", "duel bot"])
def test_games_too_large_for_shared_memory_are_the_same(case: str) -> None:
    game, config, lineups = CASES[case]
    rules = Rules(game, config)
    cpu = Pool(rules, 100, seed=8, threads=2, lineups=lineups)
    gpu = CudaPool(rules, 100, seed=8, lineups=lineups, stage_bytes=0)
    cpu.reset()
    gpu.reset()
    for step in range(700):
        cpu.step(cpu.sample_actions())
        gpu.step(gpu.sample_actions())
        assert_same(cpu, gpu, f"{case}, step {step}")


@pytest.mark.parametrize(
    ("case", "stage_bytes"), [("skull_king bots", None), ("duel bot", None), ("kuhhandel five", 0)]
)
def test_memory_is_that_of_the_cpu(case: str, stage_bytes: int | None) -> None:
    game, config, lineups = CASES[case]
    rules, given = Rules(game, config), {"seed": 6, "lineups": lineups, "memory": 48}
    staged = {} if stage_bytes is None else {"stage_bytes": stage_bytes}
    cpu = Pool(rules, 100, threads=2, **given)
    gpu = CudaPool(rules, 100, **given, **staged)
    plain = CudaPool(rules, 100, seed=6, lineups=lineups)
    rng, ends = np.random.default_rng(0), 0
    for pool in (cpu, gpu, plain):
        pool.reset()
    for step in range(400):
        written = rng.integers(0, 256, cpu.memory.shape, np.uint8)
        cpu.memory[:] = written
        gpu.memory.copy_(torch.from_numpy(written))
        cpu.step(cpu.sample_actions())
        for pool in (gpu, plain):
            pool.step(pool.sample_actions())
        assert_same(cpu, gpu, f"{case}, step {step}")
        assert np.array_equal(cpu.memory, gpu.memory.cpu().numpy()), f"step {step}: memory"
        ends += len(cpu.batch().final_game)
    assert ends
    seen = gpu.batch().obs[:, : rules.obs_bytes]
    assert torch.equal(seen, plain.batch().obs)  # the game itself knows nothing of it
    other = CudaPool(rules, 100, **given | {"seed": 1}, **staged)
    other.load_state(cpu.state())
    assert other.state() == cpu.state() == gpu.state()
    assert np.array_equal(bits(cpu.batch().obs), bits(other.batch().obs))
    gpu.reset()
    assert not gpu.memory.any()
    assert not gpu.batch().obs[:, rules.obs_bytes :].any()
    with pytest.raises(StateError, match="memory 48, this pool has 0"):
        plain.load_state(cpu.state())
    with pytest.raises(ConfigError, match="memory=20 must be a multiple of 16"):
        CudaPool(rules, 32, memory=20)


@pytest.mark.parametrize("case", ["skull_king bots", "tic_tac_toe", "duel bot"])
def test_a_game_saved_on_one_continues_on_the_other(case: str) -> None:
    cpu, gpu = pools(case, 256)
    gpu.reset()
    for _ in range(40):
        gpu.step(gpu.sample_actions())
    saved = gpu.state()
    cpu.load_state(saved)
    assert cpu.state() == saved
    for _ in range(40):
        cpu.step(cpu.sample_actions())
        gpu.step(gpu.sample_actions())
        assert_same(cpu, gpu, case)
    other = pools(case, 256, seed=99)[1]
    other.load_state(cpu.state())
    assert other.state() == cpu.state()
    for _ in range(40):
        cpu.step(cpu.sample_actions())
        other.step(other.sample_actions())
        assert_same(cpu, other, case)


def test_several_seeds_play_as_pools_of_their_own() -> None:
    both = CudaPool("skull_king", 512, seeds=(5, 6))
    alone = [CudaPool("skull_king", 256, seed=seed) for seed in (5, 6)]
    for pool in (both, *alone):
        pool.reset()
        for _ in range(60):
            pool.step(pool.sample_actions())
    for member, pool in enumerate(alone):
        assert both.state(member) == pool.state()


@pytest.mark.parametrize("per_warp", [1, 8, 16])
def test_warps_of_any_size_play_the_same_games(per_warp: int) -> None:
    usual, shared = (
        CudaPool("skull_king", 192, seeds=(4, 9), **given) for given in ({}, {"per_warp": per_warp})
    )
    for pool in (usual, shared):
        pool.reset()
        for _ in range(300):
            pool.step(pool.sample_actions())
    for member in range(2):
        assert usual.state(member) == shared.state(member)
    for name in ARRAYS:
        assert torch.equal(getattr(usual.batch(), name), getattr(shared.batch(), name)), name


def test_an_illegal_action_freezes_its_game_alone() -> None:
    cpu, gpu = pools("skull_king", 64)
    cpu.reset()
    gpu.reset()
    action = gpu.sample_actions().clone()
    action[17] = 85
    gpu.step(action)
    before = gpu.batch().obs[17].clone(), gpu.batch().legal[17].clone()
    with pytest.raises(IllegalActionError, match=r"skull_king game 17, seat \d .*action 85"):
        gpu.check()
    good = cpu.sample_actions().copy()
    cpu.step(good)
    others = [game for game in range(64) if game != 17]
    assert np.array_equal(cpu._native.envs[others], gpu.tables.cpu().numpy()[others])
    gpu.step(gpu.sample_actions())
    assert torch.equal(gpu.batch().obs[17], before[0])
    assert torch.equal(gpu.batch().legal[17], before[1])
    with pytest.raises(IllegalActionError):
        gpu.state()
    gpu.reset()
    gpu.check()


def test_numbers_that_are_not_finite_freeze_a_box_game() -> None:
    pool = CudaPool("duel", 8)
    pool.reset()
    action = pool.sample_actions().clone()
    action[5, 1] = torch.nan
    pool.step(action)
    with pytest.raises(IllegalActionError, match=r"game 2, seat 1.*component 1 is nan"):
        pool.check()


def test_a_game_that_never_asks_is_refused() -> None:
    with pytest.raises(ConfigError, match="corridor game 0: no policy was asked"):
        CudaPool("corridor", 64, config={"skip_forced": 1}).reset()
    # The only choice lies behind; what follows it is forced and has no end.
    pool = CudaPool("corridor", 64, config={"length": 0, "door": 2, "skip_forced": 1})
    pool.reset()
    pool.check()
    pool.step(pool.sample_actions())
    with pytest.raises(ConfigError, match="corridor game 0: no policy decides any more"):
        pool.check()
    pool.reset()
    pool.check()


def test_more_games_than_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"on the GPU would need .* at most \d+ games fit"):
        CudaPool("shogi", 10**9)


def test_line_ups_and_rewards_change_on_the_way() -> None:
    cpu, gpu = pools("skull_king", 256)
    for pool in (cpu, gpu):
        pool.reset()
        pool.set_lineups([Lineup((0, "captain", "captain", "captain"))])
        pool.set_rewards({"rank": 1.0, "win": 0.5})
    for step in range(500):
        cpu.step(cpu.sample_actions())
        gpu.step(gpu.sample_actions())
        assert_same(cpu, gpu, f"step {step}")


def test_bad_input_is_refused() -> None:
    pool = CudaPool("tic_tac_toe", 4)
    with pytest.raises(IllegalActionError, match="reset"):
        pool.step(torch.zeros(4, dtype=torch.int32))
    pool.reset()
    with pytest.raises(IllegalActionError, match="shape"):
        pool.step(torch.zeros(5, dtype=torch.int32))
    with pytest.raises(IllegalActionError, match="integers"):
        pool.step(torch.zeros(4))
    with pytest.raises(StateError, match="games"):
        pool.load_state(some_state(8))
    with pytest.raises(ConfigError, match="multiple"):
        CudaPool("tic_tac_toe", 7, seeds=(1, 2))


def some_state(games: int) -> bytes:
    pool = CudaPool("tic_tac_toe", games)
    pool.reset()
    return pool.state()
