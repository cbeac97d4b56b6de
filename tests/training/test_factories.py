"""Runs of environments that are found by their factory's name, and of objects given again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import own_envs
import sparring
from sparring.cli import main
from sparring.errors import ConfigError, SparringWarning
from sparring.league.players import random_player
from sparring.pools.custom import SoloPool, make_pool
from sparring.store.archive_index import ArchiveIndex
from sparring.training.planning.custom import custom_pool
from sparring.training.planning.plan import resolve
from sparring.training.records.run import Run
from sparring.training.train import complete

TINY: dict[str, Any] = {
    "net": {"hidden": (16,)},
    "collect": {"games": 4, "steps": 32},
    "tensorboard": False,
    "threads": 1,
    "eval": {"off": True},
}
Game = Any
pytestmark = pytest.mark.filterwarnings("ignore:.*not its games")


def trained(game: Game, runs: Path, **settings: Any) -> sparring.Agent:
    return sparring.train(game, runs=str(runs), quiet=True, **{"updates": 2, **TINY, **settings})


def weights(agent: sparring.Agent) -> np.ndarray:
    return np.concatenate([w.detach().numpy().ravel() for w in agent.policy.net.parameters()])


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> sparring.Agent:
    """A run that hardly learns: what it has can be told from what begins anew."""
    runs = tmp_path_factory.mktemp("runs")
    with pytest.warns(SparringWarning, match="not its games"):
        return trained("own_envs:make_cards", runs, ppo={"lr": 1e-12})


def test_a_factory_s_run_goes_on_by_itself(cards: sparring.Agent) -> None:
    assert cards.run.name.startswith("own_envs_make_cards-ppo-")
    assert Run.open(str(cards.run)).config["game"] == "own_envs:make_cards"
    assert cards.policy.rules.name == "Cards"
    before = weights(cards)
    again = sparring.resume(str(cards.run), updates=3, quiet=True)
    assert again.run == cards.run
    assert again.decisions == 3 * 4 * 32
    assert np.allclose(weights(again), before, atol=1e-6)


@pytest.mark.parametrize("kind", ["a function", "its name", "a class", "a file"])
def test_a_function_is_kept_by_its_name(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "cards_in_a_file.py"
    file.write_text("from own_envs import make_walk\n")
    given, wanted = {
        "a function": (own_envs.make_walk, "own_envs:make_walk"),
        "its name": ("own_envs:make_walk", "own_envs:make_walk"),
        "a class": (own_envs.Walk, "own_envs:Walk"),
        "a file": (f"{file}:make_walk", f"{file}:make_walk"),
    }[kind]
    agent = trained(given, tmp_path / "runs", updates=1)
    assert Run.open(str(agent.run)).config["game"] == wanted


def make_anonymous() -> Callable[[], Any]:
    return lambda: own_envs.Cards(None)


@pytest.mark.parametrize(
    "kind",
    [*(pytest.param(kind, marks=pytest.mark.slow) for kind in ("a vector", "envs")), "a function"],
)
def test_an_object_is_given_again_to_go_on(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def game() -> Any:
        if kind == "a vector":
            return own_envs.make_vector()
        return make_anonymous() if "function" in kind else [own_envs.make_cards() for _ in range(4)]

    agent = trained(game(), tmp_path, ppo={"lr": 1e-12})
    assert main(["resume", str(agent.run), "--updates", "3"]) == 2
    said = capsys.readouterr().err
    assert "an environment of the program that began it" in said
    assert "sparring.resume(run, game=env)" in said
    with pytest.raises(ConfigError, match=r"learned .* with (name|seats|actions).*start a new run"):
        sparring.resume(str(agent.run), updates=3, game=own_envs.make_table, quiet=True)
    again = sparring.resume(str(agent.run), updates=3, game=game(), quiet=True)
    assert (agent.run / "checkpoints" / "00000003").is_dir()  # the best may be an earlier one
    assert np.allclose(weights(again), weights(agent), atol=1e-6)


class Noting(own_envs.Cards):
    """Remembers what it was seeded with."""

    seeds: ClassVar[list[int]] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self.seeds.append(seed)
        return super().reset(seed=seed, options=options)


def test_a_run_that_goes_on_sees_other_episodes_than_at_its_beginning(tmp_path: Path) -> None:
    def game() -> Any:
        return [Noting() for _ in range(4)]

    Noting.seeds.clear()
    agent = trained(game(), tmp_path, updates=1, seed=2**31 - 2)
    begun = [Noting.seeds[-4:]]
    for updates in (2, 3):
        sparring.resume(str(agent.run), updates=updates, game=game(), quiet=True)
        begun.append(Noting.seeds[-4:])
    assert begun[0] == [2**31 - 2, 2**31 - 1, 0, 1]
    assert len({seed for seeds in begun for seed in seeds}) == 12
    assert all(0 <= seed < 2**31 for seed in Noting.seeds)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["own_envs:make_nothing"], "returns NoneType"),
        (["own_envs:make_trouble"], "cannot be made: OSError"),
        (["own_envs:no_such"], "own_envs has no 'no_such'"),
        (["no_such_module:make"], "no module called 'no_such_module'"),
        (["own_envs:make_vector", "--collect.games", "3"], "a vector of 4 envs"),
        (["own_envs:make_cards", "--set", "a=1"], "its flags are set by its code"),
        (["own_envs:make_cards", "--opponents", "past"], "one seat"),
        (["own_envs:make_table", "--opponents", "randm"], "did you mean 'random'?"),
        (["own_envs:make_cards", "--net.inputs", "hands"], "no block 'hands'.*'hand'"),
        (["tic_tac_toe", "--workers", "2"], "steps its games on threads"),
    ],
)
def test_what_cannot_be_trained_is_told_in_a_line(
    words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *words, "--updates", "1", "--runs", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert re.search(why, said), said
    assert said.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_settings_come_from_presets_a_file_and_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('game = "own_envs:make_cards"\nalgo = "dqn"\n[collect]\ngames = 3\n')
    assert main(["train", "--config", str(file), "--updates", "1", "--dry-run"]) == 0
    assert "own_envs:make_cards, dqn, updates 1; nothing was trained" in capsys.readouterr().out
    config = complete("", str(file), {})
    assert (config.game, config.collect.games, config.replay.batch) == (
        "own_envs:make_cards",
        3,
        128,
    )
    usual = complete("own_envs:make_cards", "", {})
    assert (usual.collect.games, str(usual.ppo.gamma)) == (16, "0.99")
    assert complete("own_envs:make_vector", "", {}).collect.games == 4


def test_games_of_a_run_count_on_where_others_stop() -> None:
    config = complete("own_envs:make_cards", "", {**TINY, "device": "cpu", "seed": 3})
    own, plan = custom_pool(config, 2), resolve([config], first_game=2)
    wanted = make_pool("own_envs:make_cards", 6, seed=3).reset().obs[2:]
    assert np.array_equal(own.reset().obs, wanted)
    assert np.array_equal(plan.host_pool().reset().obs, wanted)  # type: ignore[attr-defined]


def test_settings_are_refused_before_workers_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for processes, or for whether they pay, to be told of a slip of the pen."""

    def started(*_: object) -> None:
        raise AssertionError("workers were asked for")

    monkeypatch.setattr("sparring.training.planning.plan.custom_pool", started)
    settings = {**TINY, "device": "cpu", "workers": "auto"}
    config = complete("own_envs:make_cards", "", settings)
    assert isinstance(resolve([config], played=False).custom, SoloPool)
    with pytest.raises(AssertionError, match="asked for"):
        resolve([config])
    wrong = complete("own_envs:make_cards", "", {**settings, "opponents": ("nobody",)})
    with pytest.raises(ConfigError, match="nobody"):
        resolve([wrong])


def lowest(obs: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return mask.argmax(axis=1)


@pytest.mark.parametrize(
    "game", ["own_envs:make_table", pytest.param("own_envs:make_parallel", marks=pytest.mark.slow)]
)
def test_pettingzoo_games_meet_the_past_the_saved_and_functions(game: str, tmp_path: Path) -> None:
    first = trained(game, tmp_path / "runs", league={"preset": "generations", "every_decisions": 1})
    assert ArchiveIndex(first.run).entries()
    saved = first.save(tmp_path / "policy")
    words = ["self=1", "past=1", "random=2", str(saved), (lowest, 1.0), ["self", first.policy]]
    more = {"updates": 3, "episodes_csv": True, "league": {"every_decisions": 1}}
    second = trained(game, tmp_path / "runs", opponents=words, **more)
    met = set(map(int, re.findall(r"policy (\d+)", (second.run / "episodes.csv").read_text())))
    assert met > {17, 18, 19, 20}  # the two saved ones behind 16 slots, then random and lowest
    assert min(met) <= 16  # past selves
    phases = [
        {"name": "easy", "decisions": 200, "opponents": ["random=1"]},
        {"name": "hard", "opponents": ["self=1", f"{saved}=1"]},
    ]
    third = trained(game, tmp_path / "runs", phases=phases, decisions=400, updates=0)
    assert third.decisions >= 400


def test_a_policy_of_another_environment_is_no_opponent(
    cards: sparring.Agent, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="plays Cards, not nim_v0"):
        trained("own_envs:make_table", tmp_path / "runs", opponents=[str(cards.run)])
    assert not (tmp_path / "runs").exists()


def test_the_random_player_takes_every_legal_action_as_often() -> None:
    rules = make_pool("own_envs:make_table", 1).rules
    mask = np.tile(np.array([[1, 0, 1]], np.uint8), (2000, 1))
    obs = np.zeros((2000, rules.obs_bytes), np.uint8)
    counts = np.bincount(random_player(rules).act(obs, mask), minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 1000) < 150


def test_what_is_refused_late_leaves_no_environment_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []

    def close(self: Any) -> None:
        opened.remove(self)

    monkeypatch.setattr(own_envs.Walk, "close", close)
    make = own_envs.Walk.__init__

    def made(self: Any, *args: Any) -> None:
        make(self, *args)
        opened.append(self)

    def refuse(*_: object) -> None:
        raise ConfigError("no such network")

    monkeypatch.setattr(own_envs.Walk, "__init__", made)
    for place in ("planning.training.make_learner", "session.check_leagues"):
        with monkeypatch.context() as changed, pytest.raises(ConfigError, match="no such network"):
            changed.setattr(f"sparring.training.{place}", refuse)
            trained("own_envs:make_walk", tmp_path)
        assert not opened
