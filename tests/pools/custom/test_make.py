"""Games that a factory makes: one env each, seeded by game, whatever kind of env it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import own_envs
from pools.foreign_envs import Countdown, by_hash, episodes
from sparring import ConfigError, SparringError, trusted
from sparring.factories import (
    absolute_name,
    check_not_importing,
    factory_name,
    is_factory,
    load_factory,
    register_factory,
)
from sparring.pools.custom import SoloPool, make_pool, pool_of
from sparring.pools.custom.buffers import SharedBuffers
from sparring.pools.custom.encoding import encoding_of
from sparring.pools.custom.make import env_info
from sparring.pools.custom.seats import TablePool


def typed(word: str) -> str:
    """A name as somebody types it, who thereby says that its code may run."""
    trusted.allow(word)
    return word


KINDS = ("make_cards", "make_walk", "make_table", "make_parallel")


def seen_in(pool: Any, steps: int) -> list[tuple[bytes, ...]]:
    """Everything that a learner could see."""
    batch = pool.reset()
    found = []
    for _ in range(steps):
        action = [
            by_hash(n, m) if m.any() else 0 for n, m in zip(batch.obs, batch.mask, strict=True)
        ]
        batch = pool.step(np.array(action))
        parts = (
            batch.obs,
            batch.mask,
            batch.seat,
            batch.reward,
            batch.final_obs,
            batch.final_score,
        )
        found.append(tuple(part.tobytes() for part in parts))
    return found


@pytest.mark.parametrize("masks", ["info", "method", "obs", "nowhere"])
def test_an_env_alone_is_seen_as_in_a_vector(masks: str) -> None:
    alone = pool_of([Countdown(masks) for _ in range(3)])
    assert isinstance(alone, SoloPool)
    vector = SyncVectorEnv([lambda: Countdown(masks)] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    wanted, found = episodes(pool_of(vector), 40), episodes(alone, 40)
    assert wanted == found
    assert {end.terminated for end in found[0, 0]} == {True, False}


def test_an_env_alone_is_stepped_as_one_would_by_hand() -> None:
    env, found = own_envs.make_cards(), episodes(make_pool("own_envs:make_cards", 2, seed=7), 30)
    encoding = encoding_of(env.observation_space, env.action_space, "")
    obs, _ = env.reset(seed=8)
    for episode in found[1, 0]:
        score, ended = 0.0, False
        for decision in episode.decisions:
            assert decision.obs == encoding.flatten(obs).tobytes()
            obs, reward, ended, _, _ = env.step(by_hash(encoding.flatten(obs), obs["action_mask"]))
            score += reward
        assert (ended, score) == (True, episode.score)
        assert episode.last_obs == encoding.flatten(obs).tobytes()
        obs, _ = env.reset()
    assert len(found[1, 0]) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_games_are_seeded_by_their_place_in_the_run(kind: str) -> None:
    whole = seen_in(make_pool(f"own_envs:{kind}", 3, seed=5), 1)[0]
    rows = [make_pool(f"own_envs:{kind}", 1, seed=5, first_game=game) for game in range(3)]
    parts = [seen_in(pool, 1)[0] for pool in rows]
    assert whole[0] == b"".join(part[0] for part in parts)


@pytest.mark.parametrize("kind", [*KINDS, "make_vector"])
def test_a_name_and_the_function_itself_make_the_same_games(kind: str) -> None:
    function = getattr(own_envs, kind)
    games = 0 if kind == "make_vector" else 2
    named, given = (make_pool(one, games, seed=3) for one in (f"own_envs:{kind}", function))
    assert seen_in(named, 40) == seen_in(given, 40)


def test_times_change_nothing_that_happens() -> None:
    plain, slow = (
        make_pool(f"own_envs:{one}", 2, seed=1) for one in ("make_cards", "make_slow_cards")
    )
    assert seen_in(plain, 8) == seen_in(slow, 8)


def test_a_vector_brings_its_own_number_of_games() -> None:
    assert make_pool("own_envs:make_vector").num_games == 4
    assert (env_info("own_envs:make_vector").games, env_info(own_envs.make_cards).games) == (4, 0)
    with pytest.raises(ConfigError, match=r"collect.games 3: .*vector of 4 envs.*leave it out"):
        make_pool("own_envs:make_vector", 3)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("own_envs:make_nothing", "returns NoneType; it has to return a gymnasium.Env"),
        ("own_envs:make_trouble", r"OSError: the simulator's port is taken \(own_envs.py:\d+\)"),
        ("own_envs:make_nobody", "own_envs has no 'make_nobody'"),
        ("own_envs:CARDS", "CARDS is not callable"),
        ("no_such_module:make", "no module called 'no_such_module'; searched"),
        ("./nowhere.py:make", "there is no file"),
        ("own_envs", "is neither module:factory nor"),
    ],
)
def test_what_makes_no_games_is_told_in_a_line(word: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^game.*{why}") as refused:
        make_pool(typed(word), 2)
    assert "\n" not in str(refused.value)


def test_an_env_of_the_old_gym_is_refused() -> None:
    class Old(Countdown):
        def reset(self, **_: Any) -> Any:
            return self.look()

    with pytest.raises(SparringError, match=r"Old env 0, step 0: reset returns no \(obs, info\)"):
        make_pool(Old, 1).reset()
    with pytest.raises(ConfigError, match="Env has no observation_space"):
        make_pool(gymnasium.Env, 1)


def test_a_file_is_a_module_whose_code_is_run_once(tmp_path: Path) -> None:
    file = tmp_path / "my_cards.py"
    file.write_text(
        "from own_envs import make_cards\nmade = []\n\ndef make():\n    return make_cards()\n"
    )
    word = absolute_name(f"{file}:make")
    assert make_pool(typed(word), 1).rules.name == "Cards"
    load_factory(typed("my_cards:make"), "game")  # the folder is searched from now on
    assert sys.modules.pop("my_cards") is not None
    file.write_text("1 / 0\n")
    with pytest.raises(ConfigError, match=r"cannot be imported: ZeroDivisionError.*my_cards.py:1"):
        make_pool(word, 1)


def test_a_script_without_a_guard_does_not_begin_anew_without_end(tmp_path: Path) -> None:
    file = tmp_path / "no_guard.py"
    file.write_text("import sparring\nsparring.train('no_guard:make')\n")
    with pytest.raises(ConfigError, match=r"imported for its environments.*if __name__"):
        load_factory(typed(f"{file}:make"), "game")
    check_not_importing("sparring.train")  # nothing is being loaded any more


def test_functions_have_names_that_others_find() -> None:
    assert factory_name(own_envs.make_cards) == "own_envs:make_cards"
    assert factory_name(own_envs.Cards) == "own_envs:Cards"
    assert factory_name(lambda: own_envs.Cards(None)) == ""
    assert factory_name(own_envs.make_lambda) == ""
    assert factory_name(own_envs.make_cards().reset) == ""
    word = register_factory(own_envs.make_walk)
    assert load_factory(typed(word), "game") is own_envs.make_walk
    assert [is_factory(w) for w in ("a:b", "a.py:b", "./a.py:b", ".a:b", "a", "a:", ":b")] == (
        [True] * 3 + [False] * 4
    )


def test_every_reset_is_a_sign_of_life() -> None:
    """A limit is for one step or reset of one env, however many of them end at once."""
    pool, beats = make_pool("own_envs:make_cards", 3), [0]

    def beat() -> None:
        beats[0] += 1

    assert isinstance(pool, TablePool)
    stepper = pool.stepper(0, 3, SharedBuffers.make(pool.rules, 3), beat)
    stepper.start([1, 2, 3])
    assert beats == [3]
    for _ in range(6):  # all of them last six steps
        stepper.step(stepper.buffers.mask.argmax(axis=1))
    assert stepper.buffers.end.all()
    assert beats == [3 + 6 * 3 + 3]


def test_a_file_takes_no_other_module_from_those_who_import_it(tmp_path: Path) -> None:
    for name in ("random", "twin_env"):
        (tmp_path / f"{name}.py").write_text("def make():\n    return 1\n")
    with pytest.raises(ConfigError, match=r"has the name of the module 'random'.*rename the file"):
        load_factory(typed(f"{tmp_path}/random.py:make"), "game")
    assert hasattr(sys.modules["random"], "gauss")
    again = tmp_path / "again" / "twin_env.py"
    again.parent.mkdir()
    again.write_text("def make():\n    return 2\n")
    made = [
        load_factory(typed(f"{file}:make"), "game")() for file in (tmp_path / "twin_env.py", again)
    ]
    assert made == [1, 2]


class Unready(Countdown):
    """Raises when it is reset, or says something about its actions that does not fit."""

    def __init__(self, fault: str) -> None:
        super().__init__("info")
        self.fault = fault

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        if self.fault == "raises":
            raise RuntimeError("no map loaded")
        obs, info = super().reset(seed=seed, options=options)
        return obs, {**info, "action_mask": np.ones(99, np.int8)}


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raises", r"cannot be reset: RuntimeError: no map loaded \(test_make.py:\d+\)$"),
        ("mask", r"cannot be reset: an action mask has shape \(99,\)"),
    ],
)
def test_an_env_that_cannot_be_reset_is_refused_in_one_line(fault: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        env_info(lambda: Unready(fault))
    assert "\n" not in str(refused.value)


def needs(argument: int) -> Any:
    return argument


def test_only_lines_of_somebodys_own_code_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"missing 1 required positional argument: 'argument'$"):
        make_pool(needs)  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    Path("not_python.py").write_text("def f(:\n")
    with pytest.raises(
        ConfigError, match=r"SyntaxError: invalid syntax \(not_python.py, line 1\)$"
    ):
        load_factory(typed("not_python:f"), "game")
    Path("a_script.py").write_text("raise SystemExit(2)\n")
    with pytest.raises(ConfigError, match=r"cannot be imported: SystemExit: 2 \(a_script.py:1\)"):
        load_factory(typed("a_script.py:f"), "game")
