"""Laser hockey as a user meets it: symmetry, flags, positions, bad input, many games at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparring
from sparring import Lineup, Pool, Rules
from sparring.errors import ConfigError, IllegalActionError
from sparring.games import laser_hockey
from sparring.games.laser_hockey import Body, Position, load_position, read, set_position

NOTHING = np.zeros((2, 4), np.float32)
GAMES = ("laser_hockey", "laser_hockey_discrete")


def random_position(rng: np.random.Generator) -> Position:
    def racket(side: int) -> Body:
        x, y, angle = rng.uniform(0.6, 3.4), rng.uniform(-2.5, 2.5), rng.uniform(-0.9, 0.9)
        return Body(side * x, y, angle, *rng.uniform(-6, 6, 3))

    puck = Body(*rng.uniform((-3.5, -3.0), (3.5, 3.0)), 0.0, *rng.uniform(-20, 20, 3))
    return Position(racket(-1), racket(1), puck)


def turned(position: Position) -> Position:
    """Half a turn, players exchanged."""

    def turn(body: Body) -> Body:
        return Body(-body.x, -body.y, body.angle, -body.vx, -body.vy, body.spin)

    return replace(
        position,
        left=turn(position.right),
        right=turn(position.left),
        puck=turn(position.puck),
        keep=position.keep[::-1],
    )


def flipped(position: Position) -> Position:
    """Top and bottom exchanged."""

    def flip(body: Body) -> Body:
        return Body(body.x, -body.y, -body.angle, body.vx, -body.vy, -body.spin)

    return replace(
        position, left=flip(position.left), right=flip(position.right), puck=flip(position.puck)
    )


def final_errors(kind: str) -> np.ndarray:
    """How far 20 random steps and their image end apart, for 300 random positions."""
    rng = np.random.default_rng(5)
    errors = []
    for _ in range(300):
        position = random_position(rng)
        one = load_position(position)
        image = turned(position) if kind == "turn" else flipped(position)
        other = load_position(image)
        for _ in range(20):
            actions = rng.uniform(-1, 1, (2, 4)).astype(np.float32)
            one.apply(actions)
            if kind == "turn":
                other.apply(actions[::-1].copy())
            else:
                other.apply(laser_hockey.mirrored_action(actions))
            if one.over or other.over:
                break
        seen = one.observe(0)
        again = other.observe(1) if kind == "turn" else laser_hockey.mirrored(other.observe(0))
        errors.append(np.abs(seen - again)[:16].max())
    return np.array(errors)


@pytest.mark.parametrize("kind", ["turn", "flip"])
def test_both_players_and_both_hands_are_alike(kind: str) -> None:
    errors = final_errors(kind)
    assert np.median(errors) <= 1e-4
    assert np.quantile(errors, 0.9) <= 1e-2


def test_discrete_actions_mirror() -> None:
    rules = Rules("laser_hockey_discrete", {"fineness": 4})
    swap = {"left": "right", "right": "left", "turn clockwise": "turn counter-clockwise"}
    swap["turn counter-clockwise"] = "turn clockwise"
    for action in range(rules.actions):
        name, _, level = rules.action_name(action).rpartition(" ")
        other = laser_hockey.mirrored_discrete(action, fineness=4)
        assert laser_hockey.mirrored_discrete(other, fineness=4) == action
        if name:
            assert rules.action_name(other) == f"{swap.get(name, name)} {level}"
        else:
            assert other == action  # nothing and the shot


@pytest.mark.parametrize(
    ("action", "wish"),
    list(
        enumerate(
            [
                [0, 0, 0, 0],
                [-1, 0, 0, 0],
                [1, 0, 0, 0],
                [0, -1, 0, 0],
                [0, 1, 0, 0],
                [0, 0, -1, 0],
                [0, 0, 1, 0],
                [0, 0, 0, 1],
            ]
        )
    ),
)
def test_discrete_actions_are_continuous_ones(action: int, wish: list[float]) -> None:
    """Section 9, for both seats, with and without a puck to shoot."""
    for keep in ((0, 0), (9, 0), (0, 9)):
        position = Position(keep=keep)
        one = load_position(position, game="laser_hockey_discrete")
        other = load_position(position)
        one.apply([action, action])
        other.apply(np.array([wish, wish], np.float32))
        for seat in (0, 1):
            np.testing.assert_array_equal(one.observe(seat), other.observe(seat))


def test_finer_discrete_actions() -> None:
    """Section 9: k strengths for each direction; three of them here."""
    rules = Rules("laser_hockey_discrete", {"fineness": 4})
    assert rules.actions == 1 + 6 * 3 + 1
    assert Rules("laser_hockey_discrete", {"fineness": 3}).actions == 14
    assert Rules("laser_hockey_discrete", {"fineness": 3, "keep_mode": 0}).actions == 13
    assert Rules("laser_hockey_discrete").actions == 8
    state = load_position(Position(), config={"fineness": 4}, game="laser_hockey_discrete")
    state.apply([1 + 1 * 3 + 1, 0])  # forward with 2/3
    other = load_position(Position())
    other.apply(np.array([[2 / 3, 0, 0, 0], [0, 0, 0, 0]], np.float32))
    np.testing.assert_array_equal(state.observe(0), other.observe(0))
    assert rules.action_name(1 + 3 + 1) == "forward 2/3"
    assert rules.action_name(19) == "shoot"


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("profile", ["EXACT", "FAST"])
def test_it_passes_the_check(game: str, profile: str) -> None:
    config = {"mode": "MIXTURE", "profile": profile}
    report = sparring.check(game, config=config, games=4)
    assert report.passed, report


def test_names_and_sizes() -> None:
    rules = Rules("laser_hockey")
    assert tuple(feature.name for feature in rules.features) == laser_hockey.FEATURE_NAMES
    assert (rules.rows, rules.seats, rules.box) == (2, 2, len(laser_hockey.ACTION_NAMES))
    bare = Rules("laser_hockey", {"keep_mode": 0})
    assert len(bare.features) == 16
    assert rules.bots == ("random", "idle", "weak", "strong")


def test_the_original_reward_is_the_default() -> None:
    state = load_position(Position(puck=Body(x=3.6, vx=40.0), right=Body(x=3.0, y=-2.0)))
    goals = 0.0
    while not state.over:
        state.apply(NOTHING)
        goals += state.rewards[0]
    assert state.end == "goal" and state.terminated and not state.truncated
    assert goals == pytest.approx(10.0)
    state = load_position(Position(puck=Body(x=-2.0), left=Body(x=-3.0)))
    state.apply(NOTHING)
    assert state.rewards.tolist() == pytest.approx([-0.0576, 0.0])
    train = load_position(Position(puck=Body(x=-2.0), mode="TRAIN_SHOOTING"))
    train.apply(NOTHING)
    assert train.rewards.tolist() == pytest.approx([-0.18, 0.0])


def test_rewards_can_be_weighted() -> None:
    pool = Pool("laser_hockey", 64, rewards={"direction": 1.0})
    pool.reset()
    for _ in range(100):
        batch = pool.step(pool.sample_actions())
        assert batch.reward.sum(axis=1) == pytest.approx(0, abs=1e-6)  # one's gain, other's loss
    assert np.abs(batch.reward).max() > 0


@pytest.mark.parametrize(("mode", "length"), [("NORMAL", 251), ("TRAIN_SHOOTING", 81)])
def test_the_time_limit_cuts_or_ends(mode: str, length: int) -> None:
    for flag in (0, 1):
        config = {"mode": mode, "timeout_as_terminated": flag}
        state = sparring.new_state("laser_hockey", config=config)
        steps = 0
        while not state.over:
            state.apply(NOTHING)
            steps += 1
        assert steps == length
        assert (state.terminated, state.truncated) == (bool(flag), not flag)
        assert state.end == "time limit" and state.scores == [0.0, 0.0]


def keep_counts(config: dict[str, Any]) -> list[int]:
    """Keep counters right after a restart, over many matches of strong players."""
    pool = Pool("laser_hockey", 64, config=config, lineups=[Lineup(("strong", "weak"))])
    pool.reset()
    found: list[int] = []
    for _ in range(1200):
        batch = pool.step(np.zeros((128, 4), np.float32))
        fresh = batch.obs.view(np.float32)[:, 16:18].reshape(64, 2, 2)[batch.final_game]
        found += fresh.astype(int).ravel().tolist()
    return found


def test_kept_pucks_survive_a_reset_only_on_request() -> None:
    assert set(keep_counts({})) == {0}
    assert len(set(keep_counts({"clear_keep_on_reset": 0}))) > 3


def spawns(config: dict[str, Any]) -> np.ndarray:
    pool = Pool("laser_hockey", 2000, config={"mode": "TRAIN_SHOOTING", **config})
    return pool.reset().obs.view(np.float32)[::2, 6].copy()


def test_rackets_start_inside_walls_only_on_request() -> None:
    assert spawns({}).max() == pytest.approx(3.4)
    assert spawns({"safe_spawn": 0}).max() > 4.5
    assert spawns({}).min() < -0.2


def first_pucks(serve: str, resets: int) -> np.ndarray:
    """Which half the puck lies in, [resets, games]: True for the right one."""
    pool = Pool("laser_hockey", 400, config={"serve": serve})
    return np.array([pool.reset().obs.view(np.float32)[::2, 12] > 0 for _ in range(resets)])


def test_serves() -> None:
    assert not first_pucks("LEFT", 2).any()
    assert first_pucks("RIGHT", 2).all()
    alternating = first_pucks("ALTERNATING", 4)
    assert alternating[0].all() and alternating[2].all()  # as in the original, the right one first
    assert not alternating[1].any() and not alternating[3].any()
    drawn = first_pucks("DRAWN", 4)
    assert 0.45 < drawn.mean() < 0.55
    assert 0.4 < (drawn[0] != drawn[1]).mean() < 0.6


def test_modes_are_drawn_by_weight_and_can_change() -> None:
    config = {"mode": "MIXTURE", "mixture": [1, 0, 3]}
    modes = [
        read(sparring.new_state("laser_hockey", seed=seed, config=config)).mode
        for seed in range(400)
    ]
    assert set(modes) == {"NORMAL", "TRAIN_DEFENSE"}
    assert modes.count("NORMAL") / 400 == pytest.approx(0.25, abs=0.08)
    pool = Pool("laser_hockey", 50, config={"mode": "NORMAL"})
    pool.reset()
    pool.set_config(mode="TRAIN_SHOOTING")
    batch = pool.reset()
    assert (batch.obs.view(np.float32)[::2, 12] < 0).all()
    with pytest.raises(ConfigError, match="keep_mode cannot change"):
        pool.set_config(keep_mode=0)


def test_scaled_observations() -> None:
    """Section 8: the divisors that the original suggests."""
    divisors = [1, 1, 0.5, 4, 4, 4, 1, 1, 0.5, 4, 4, 4, 2, 2, 10, 10, 4, 4]
    rules = Rules("laser_hockey", {"scale_observation": 1})
    assert [feature.divisor for feature in rules.features] == divisors
    plain = load_position(Position(puck=Body(x=1.0, vx=5.0)))
    scaled = load_position(Position(puck=Body(x=1.0, vx=5.0)), config={"scale_observation": 1})
    np.testing.assert_allclose(scaled.observe(0), plain.observe(0) / divisors)


def test_a_shot_is_released_at_once_or_after_fourteen_steps() -> None:
    """Section 6.3: the counter is seen as 15, 14, ..., 2, 0."""
    state = load_position(Position(left=Body(x=-2.0), puck=Body(x=-1.6, vx=-5.0)))
    counts = []
    while len(counts) < 30 and not (counts and counts[-1] == 0 and 15 in counts):
        state.apply(NOTHING)
        counts.append(int(state.observe(0)[16]))
    first = counts.index(15)
    assert counts[first:] == [*range(15, 1, -1), 0]
    assert state.observe(0)[14] == pytest.approx(60 * 0.999, rel=0.02)
    shot = load_position(Position(left=Body(x=-2.0), puck=Body(x=-1.6), keep=(15, 0)))
    shot.apply(np.array([[0, 0, 0, 0.5], [0, 0, 0, 0]], np.float32))
    assert shot.observe(0)[16] == 14  # 0.5 is not yet a shot
    shot.apply(np.array([[0, 0, 0, 0.51], [0, 0, 0, 0]], np.float32))
    assert shot.observe(0)[16] == 0
    assert shot.observe(0)[14] > 50


def test_without_keep_mode_nothing_is_kept() -> None:
    pool = Pool("laser_hockey", 64, config={"keep_mode": 0}, lineups=[Lineup(("strong", "strong"))])
    pool.reset()
    for _ in range(300):
        pool.step(np.zeros((128, 4), np.float32))
    assert pool.audit() == ""


def test_a_position_can_be_set_and_read() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        position = replace(
            random_position(rng), keep=(7, 0), time=33, mode="TRAIN_DEFENSE", touching=1, server=1
        )
        back = read(load_position(position))
        for body, wanted in zip(
            (back.left, back.right, back.puck),
            (position.left, position.right, position.puck),
            strict=True,
        ):
            np.testing.assert_allclose(body.numbers, wanted.numbers, rtol=0, atol=2e-6)
        same = replace(back, left=position.left, right=position.right, puck=position.puck)
        assert same == position


BAD_POSITIONS = {
    "keep counter must be": Position(keep=(1, 0)),
    "number 2 is not within": Position(left=Body(angle=float("nan"))),
    "number 12 is not within": Position(puck=Body(x=float("inf"))),
    "mode='FAST' is unknown": Position(mode="FAST"),
    "time is past": Position(time=251),
    "touching must be": Position(touching=16),
    "server must be": Position(server=2),
}


@pytest.mark.parametrize("message", BAD_POSITIONS)
def test_bad_positions_are_refused_and_change_nothing(message: str) -> None:
    state = load_position(Position())
    before = state.serialize()
    with pytest.raises(ConfigError, match=message):
        set_position(state, BAD_POSITIONS[message])
    assert state.serialize() == before


def test_a_kept_puck_needs_keep_mode() -> None:
    with pytest.raises(ConfigError, match="needs keep_mode"):
        load_position(Position(keep=(5, 0)), config={"keep_mode": 0})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_refuse_the_step(value: float) -> None:
    pool = Pool("laser_hockey", 3)
    pool.reset()
    before = pool.digest()
    actions = np.zeros((6, 4), np.float32)
    actions[3, 2] = value
    with pytest.raises(IllegalActionError, match=r"game 1, seat 1 .*component 2 .*finite"):
        pool.step(actions)
    assert pool.digest() == before


def test_numbers_out_of_range_are_clipped() -> None:
    one, other = load_position(Position()), load_position(Position())
    one.apply(np.array([[3, -7, 1.5, 0], [-2, 0, 0, 0]], np.float32))
    other.apply(np.array([[1, -1, 1, 0], [-1, 0, 0, 0]], np.float32))
    np.testing.assert_array_equal(one.observe(0), other.observe(0))


@pytest.mark.parametrize(
    ("game", "actions"),
    [
        ("laser_hockey", np.zeros((2, 3))),
        ("laser_hockey", np.zeros(4)),
        ("laser_hockey_discrete", [0, 8]),
        ("laser_hockey_discrete", [0, -1]),
        ("laser_hockey_discrete", [0.0, 1.0]),
        ("laser_hockey_discrete", [0]),
    ],
)
def test_wrong_actions_are_refused(game: str, actions: Any) -> None:
    state = sparring.new_state(game)
    before = state.serialize()
    with pytest.raises(IllegalActionError):
        state.apply(actions)
    assert state.serialize() == before


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mode": "TRAIN"}, "mode='TRAIN' is unknown"),
        ({"mode": 4}, "mode=4 is outside"),
        ({"mode": None}, "mode=None is not a number"),
        ({"mixture": [0, 0, 0]}, "mixture needs at least one weight"),
        ({"mixture": [-1, 0, 0]}, "mixture=-1 is outside"),
        ({"keep": 1}, "keep_mode"),
        ({"fineness": 3}, "no flag 'fineness'"),
    ],
)
def test_wrong_flags_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rules("laser_hockey", config)


@pytest.mark.parametrize("game", GAMES)
def test_threads_and_splits_play_the_same(game: str) -> None:
    def digest(threads: int, parts: int) -> int:
        total = 0
        for part in range(parts):
            size = 96 // parts
            pool = Pool(
                game,
                size,
                seed=7,
                threads=threads,
                first_game=part * size,
                config={"mode": "MIXTURE", "serve": "ALTERNATING", "clear_keep_on_reset": 0},
                lineups=[Lineup((0, "strong")), Lineup(("weak", "strong"))],
            )
            pool.reset()
            pool.run_random(400)
            total += pool.digest()
        return total % 2**64

    assert digest(1, 1) == digest(2, 1) == digest(1, 3) == digest(2, 2)


def test_a_seed_starts_over() -> None:
    """Although serves and the scripted players' swing go on from match to match."""
    config = {"serve": "ALTERNATING", "clear_keep_on_reset": 0}
    pool = Pool("laser_hockey", 8, config=config, lineups=[Lineup(("strong", "weak"))])
    digests = []
    for _ in range(2):
        pool.reset(seed=3)
        for _ in range(300):
            pool.step(np.zeros((16, 4), np.float32))
        digests.append(pool.digest())
    assert digests[0] == digests[1]


def test_strong_beats_weak_beats_random() -> None:
    for game in GAMES:
        for better, worse in (("strong", "weak"), ("weak", "random")):
            pool = Pool(game, 128, seed=3, lineups=[Lineup((better, worse))])
            pool.reset()
            balance = 0.0
            better_id = pool.player_id(better)
            rows = np.zeros((256, 4), np.float32) if pool.rules.box else np.zeros(256, np.int32)
            for _ in range(1500):
                batch = pool.step(rows)
                balance += float(batch.final_score[batch.final_policy == better_id].sum())
            assert balance > 50, (game, better, worse)


def test_the_rink_as_text() -> None:
    state = load_position(Position(puck=Body(x=1.0, y=1.0), keep=(0, 4), time=9))
    lines = str(state).splitlines()
    assert lines[0] == "NORMAL, step 9 of 251; seat 1 keeps the puck, 4 left"
    assert sum(line.count("o") for line in lines[1:18]) == 1
    assert sum(line.count("]") for line in lines[1:18]) == 1
