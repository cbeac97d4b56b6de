"""Curricula of the original hockey project: what they become, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparring.config import TrainConfig
from sparring.curriculum.curriculum import Curriculum
from sparring.errors import ConfigError
from sparring.games.flags import initial_flags
from sparring.games.rules import Rules
from sparring.schedule import Moment
from sparring.training.planning.plan import decide
from sparring.training.planning.settings import merged, with_preset

EXAMPLE = Path(__file__).parents[2] / "examples" / "curricula" / "hockey.json"
START = Moment(0, 0.0)


def phase(**changes: Any) -> dict[str, Any]:
    usual = {"name": "one", "episodes": 100, "opponent": {"type": "basic_weak"}}
    return {**usual, **changes}


def settings(
    tmp_path: Path, *phases: dict[str, Any], game: str = "laser_hockey", **top: Any
) -> TrainConfig:
    file = tmp_path / "original.json"
    file.write_text(json.dumps({"curriculum": {"phases": phases}, **top}, indent=2))
    return with_preset(game, curriculum=str(file))


def read(config: TrainConfig) -> Curriculum:
    config = merged(config, {"device": "cpu"}, "test")
    return decide([config])[1][0]


def test_the_example_is_four_phases_that_take_the_shaping_back() -> None:
    config = with_preset("laser_hockey", curriculum=str(EXAMPLE))
    assert (config.algo, config.episodes) == ("sac", 76_000)
    assert config.sac.lr.at(START) == config.sac.critic_lr.at(START) == 3e-4
    assert (config.replay.batch, config.replay.warmup) == (256, 10_000)
    assert "scale_observation=1" in config.set  # what the preset sets stays
    curriculum = read(config)
    assert [one.episodes for one in curriculum.phases] == [8000, 8000, 20_000, 40_000]
    assert [one.clear_replay for one in curriculum.phases] == [True, True, True, False]
    modes = [curriculum.flags_at(at, START, START)["mode"] for at in range(4)]
    assert modes == ["TRAIN_SHOOTING", "TRAIN_DEFENSE", "NORMAL", "NORMAL"]
    met = [
        {one.players[1]: one.weight for one in curriculum.lineups_at(at, START, START)}
        for at in range(4)
    ]
    assert met == [{"idle": 1}, {"weak": 1}, {"weak": 0.55, "strong": 0.45}, {"strong": 1}]


def shaped_by_hand(
    k: int, start: float, final: float, first: int = 600, length: int = 400
) -> float:
    if k < first:
        return start
    return start + (final - start) * (k - first) / length if k < first + length else final


@pytest.mark.parametrize("k", [0, 599, 600, 601, 777, 999, 1000, 5000])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_shaping_comes_on_top_of_what_the_environment_pays(
    k: int, scale: float, tmp_path: Path
) -> None:
    config = settings(
        tmp_path,
        phase(episodes=50),
        phase(name="two", reward_shaping={}),
        phase(name="three"),
        training={"reward_scale": scale},
    )
    curriculum = read(config)
    began, now = Moment(1000, 0.1, 50), Moment(2000, 0.2, 50 + k)
    paid = curriculum.rewards_at(1, began, now)
    assert paid is not None
    assert paid["goal"][0] == pytest.approx(10 * scale)
    assert paid["closeness"][0] == pytest.approx((1 + shaped_by_hand(k, 20, 1.5)) * scale)
    assert paid["touch"][0] == pytest.approx(shaped_by_hand(k, 15, 1) * scale)
    assert paid["direction"][0] == pytest.approx(shaped_by_hand(k, 0, 2) * scale)
    for other in (0, 2):
        plain = curriculum.rewards_at(other, START, now)
        assert plain is not None
        own = {"goal": 10.0, "closeness": 1.0, "touch": 0.0, "direction": 0.0}
        assert {part: w[0] for part, w in plain.items()} == pytest.approx(
            {part: weight * scale for part, weight in own.items()}
        )


def test_mixtures_of_opponents_nest(tmp_path: Path) -> None:
    inner = {
        "type": "weighted_mixture",
        "weight": 3,
        "opponents": [{"type": "none"}, {"type": "basic_weak"}],
    }
    mixture = {"type": "weighted_mixture", "opponents": [inner, {"type": "basic_weak"}]}
    curriculum = read(settings(tmp_path, phase(opponent=mixture)))
    met = {one.players[1]: one.weight for one in curriculum.lineups_at(0, START, START)}
    assert met == pytest.approx({"idle": 0.375, "weak": 0.625})


@pytest.mark.parametrize(
    ("opponent", "words"),
    [
        ({"type": "self_play"}, ["self=1"]),
        ({"type": "self_play", "checkpoint": "latest"}, ["past:1@greedy=1"]),
        ({"type": "run_checkpoints", "deterministic": False}, ["past@sampled=1"]),
        ({"type": "archive"}, ["past@greedy=0.8", "weak=0.1", "strong=0.1"]),
        ({"type": "archive", "distribution": {"random": 1}}, ["past@greedy=1"]),
    ],
)
def test_the_past_of_a_run_is_met(
    opponent: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    config = settings(tmp_path, phase(opponent=opponent))
    assert json.loads(config.phases[0])["opponents"] == words
    read(config)


def test_modes_are_mixed(tmp_path: Path) -> None:
    mixture = [{"mode": "NORMAL"}, {"mode": "TRAIN_DEFENSE", "weight": 3}]
    config = settings(tmp_path, phase(environment={"mixture": mixture}))
    flags = read(config).flags_at(0, START, START)
    assert Rules("laser_hockey", flags).config["mixture"] == [1.0, 0.0, 3.0]
    assert flags["mode"] == "MIXTURE"


def test_without_keep_mode_the_run_has_none(tmp_path: Path) -> None:
    config = settings(tmp_path, phase(environment={"keep_mode": False}))
    assert "keep_mode=0" in initial_flags(config.set)
    assert "scale_observation=1" in initial_flags(config.set)


def test_dqn_plays_the_discrete_game(tmp_path: Path) -> None:
    agent = {"type": "DDDQN", "hyperparameters": {"batch_size": 64}}
    one = phase(reward_shaping={})
    config = settings(tmp_path, one, agent=agent, game="laser_hockey_discrete")
    assert (config.algo, config.replay.batch) == ("dqn", 64)
    assert read(config).phases[0].clear_replay


def test_the_bonus_of_a_win_fades_by_games_of_its_phase(tmp_path: Path) -> None:
    agent = {"type": "SAC"}
    bonus = {"N": 100, "K": 200, "WIN_BONUS_FINAL": 2}
    phases = (
        phase(name="without", episodes=1000),
        phase(name="some", episodes=1000, reward_bonus=bonus),
        phase(name="usual", reward_bonus={}),
    )
    config = settings(tmp_path, *phases, agent=agent, training={"reward_scale": 0.5})
    curriculum = read(config)

    def paid(at: int, episodes: int) -> tuple[float, float]:
        origin = Moment(0, 0.0, 1000 * at)
        told = curriculum.settings_at(at, origin, "sac", config.sac)
        now = Moment(0, 0.0, origin.episodes + episodes)
        return told.win_bonus.at(now), told.win_discount.at(now)

    assert paid(0, 500) == (0.0, 0.92)
    assert [paid(1, k)[0] for k in (0, 100, 200, 300, 900)] == [5.0, 5.0, 3.0, 1.0, 1.0]
    assert [paid(2, k) for k in (0, 1000, 2000)] == [(5.0, 0.92), (2.75, 0.92), (0.5, 0.92)]


def test_ppo_has_nothing_to_clear(tmp_path: Path) -> None:
    assert not read(settings(tmp_path, phase(clear_buffer=True))).phases[0].clear_replay


BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"reward_bonus": {}}, {}, "reward_bonus is paid backwards in a replay, and ppo has none"),
    ({"reward_bonus": 3}, {}, "reward_bonus must be an object or null, not 3"),
    ({"reward_bonus": {"WIN_BONUS": 3}}, {}, "no key 'WIN_BONUS'; did you mean 'WIN_BONUS_"),
    ({"environment": {"mode": "NORMALS"}}, {}, "'NORMALS' is unknown; did you mean 'NORMAL'?"),
    ({"environment": {"keep_mode": False}}, {}, "keep_mode cannot change in a run"),
    ({"environment": {"mixture": [{"mode": "NORMAL", "weight": 0}]}}, {}, "every weight is 0"),
    ({"environment": {"mode": "NORMAL", "mixture": []}}, {}, "mode and mixture; give one"),
    ({"opponent": {"type": "basic"}}, {}, "opponent.type 'basic' is unknown"),
    ({"opponent": {"type": "weighted_mixture"}}, {}, "must be a list with at least one"),
    ({"opponent": {"type": "archive", "distribution": {"tag": 1}}}, {}, "tags are not kept here"),
    ({"episodes": 0}, {}, "episodes 0 must be a whole number from 1 on"),
    ({"episode": 5}, {}, "no key 'episode'; did you mean 'episodes'?"),
    ({"reward_shaping": {"CLOSENES_START": 1}}, {}, "did you mean 'CLOSENESS_START'?"),
    ({"clear_buffer": 1}, {}, "clear_buffer 1 must be true or false"),
    ({}, {"agent": {"type": "TD3"}}, "agent.type 'TD3' is not there"),
    ({}, {"agent": {"type": ["SAC"]}}, "agent.type ['SAC'] is not there"),
    ({}, {"agent": {"hyperparameters": 3}}, "agent.hyperparameters must be an object, not 3"),
    ({"environment": {"mode": ["NORMAL"]}}, {}, "environment.mode ['NORMAL'] is unknown"),
    ({}, {"training": {"max_episode_steps": 100}}, "max_episode_steps 100: a match ends"),
    ({}, {"training": {"warmup": 1}}, "no key 'warmup'; did you mean 'warmup_steps'?"),
    ({}, {"hyperparameters": {"batch_size": 0.5}}, "must be a whole number from 1 on"),
]


@pytest.mark.parametrize(("changes", "top", "hint"), BAD)
def test_what_cannot_be_done_is_refused_by_name_with_its_line(
    changes: dict[str, Any], top: dict[str, Any], hint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, phase(name="fine"), phase(**changes), **top)
    message = str(caught.value)
    assert hint in message
    lines = (tmp_path / "original.json").read_text().splitlines()
    place, _, rest = message.partition(": ")
    assert rest.startswith("phase 2 'one'" if changes else tuple(top))
    found = lines[int(place.rpartition("line ")[2]) - 1]
    keys = changes or next(iter(top.values()))
    assert any(json.dumps(key) in found for key in (*keys, "type"))
