"""Mirror images, checked against the rules: images are played as images, and nothing else holds."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import sparring
from sparring import Rules, State
from sparring.errors import ConfigError
from sparring.games import laser_hockey, shogi
from sparring.games.laser_hockey import HockeyPosition, RigidBody, load_position
from sparring.games.mirror import Mirror
from sparring.games.rules import game_names

DECLARED: list[tuple[str, dict[str, Any]]] = [
    ("connect_four", {}),
    ("laser_hockey", {}),
    ("laser_hockey", {"keep_mode": 0, "scale_observation": 1}),
    ("laser_hockey_discrete", {}),
    ("laser_hockey_discrete", {"fineness": 5, "keep_mode": 0}),
    ("shogi", {}),
    ("shogi", {"observation": "PLANES46"}),
    ("tic_tac_toe", {}),
]


def mirror_of(rules: Rules) -> Mirror:
    assert rules.mirror is not None
    return rules.mirror


@pytest.mark.parametrize(("game", "config"), DECLARED)
def test_the_image_of_the_image_is_the_original(game: str, config: dict[str, Any]) -> None:
    rules = Rules(game, config)
    mirror, rng = mirror_of(rules), np.random.default_rng(1)
    rows = rng.integers(0, 256, (50, rules.obs_bytes)).astype(np.uint8)
    image = mirror.rows(rules.features, rows)
    assert (image != rows).any()
    np.testing.assert_array_equal(mirror.rows(rules.features, image), rows)
    if rules.box:
        action = rng.normal(size=(50, rules.box)).astype(np.float32)
    else:
        action = np.arange(rules.actions, dtype=np.int32)
        mask = rng.integers(0, 2, (50, rules.actions)).astype(np.uint8)
        np.testing.assert_array_equal(mirror.masks(mirror.masks(mask)), mask)
    np.testing.assert_array_equal(mirror.play(mirror.play(action)), action)


def test_games_without_a_symmetry_declare_none() -> None:
    assert [name for name in game_names() if Rules(name).mirror] == [
        *("connect_four", "laser_hockey", "laser_hockey_discrete", "shogi", "tic_tac_toe")
    ]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"features": (0,)}, "one entry for each of 19 features"),
        ({"features": (1, 2, 0, *range(3, 19))}, "image of the image"),
        ({"features": (-1, *range(1, 19))}, "image of the image"),
        ({"signs": (-1,) * 19}, "own.a1 is uint8; only float32"),
        ({"actions": (0, 1)}, "actions need 9 entries"),
        ({"action_signs": (1,)}, "action_signs 0"),
    ],
)
def test_a_declaration_that_cannot_be_one_is_refused(
    change: dict[str, Any], complaint: str
) -> None:
    rules = Rules("tic_tac_toe")
    changed = replace(mirror_of(rules), **change)
    with pytest.raises(ConfigError, match=rf"symmetry of tic_tac_toe: .*{complaint}.*; fix its"):
        changed.check(rules.name, rules.features, actions=rules.actions, box=rules.box)


@dataclass
class Pairs:
    """What was seen and allowed in games, and in those that should be their images."""

    rules: Rules
    rows: list[list[np.ndarray]] = field(default_factory=lambda: [[], []])
    masks: list[list[np.ndarray]] = field(default_factory=lambda: [[], []])

    def add(self, one: State, other: State) -> None:
        """Note a situation; whose turn it is, payments and ends are the same at once."""
        assert (one.seat, one.end, one.scores) == (other.seat, other.end, other.scores)
        assert one.rewards.tolist() == other.rewards.tolist()
        for which, state in enumerate((one, other)):
            self.rows[which] += [state.observe_bytes(seat) for seat in range(self.rules.seats)]
            if not state.over:
                self.masks[which].append(state.decision()[1])

    def check_images(self) -> None:
        """All of them, for every seat, to the bit."""
        mirror, (rows, images) = mirror_of(self.rules), map(np.stack, self.rows)
        np.testing.assert_array_equal(mirror.rows(self.rules.features, rows), images)
        legal, allowed = map(np.stack, self.masks)
        np.testing.assert_array_equal(mirror.masks(legal), allowed)


def image_of(rules: Rules, action: int) -> int:
    return int(mirror_of(rules).play(np.array(action)))


# Shogi: the position's text is mirrored, its squares are not asked


def mirrored_sfen(sfen: str) -> str:
    board, *rest = sfen.split()
    rows = ["".join(shogi.cells(row)[::-1]) for row in board.split("/")]
    for run in range(9, 0, -1):
        rows = [row.replace("." * run, str(run)) for row in rows]
    return " ".join(["/".join(rows), *rest])


def mirrored_usi(move: str) -> str:
    """Digits are files: 7g7f is 3g3f in the mirror, P*5e stays."""
    return "".join(str(10 - int(letter)) if letter.isdigit() else letter for letter in move)


@pytest.mark.parametrize(("observation", "games"), [("COMPACT", 3), ("PLANES46", 1)])
def test_shogi_is_the_same_in_a_mirror(observation: str, games: int) -> None:
    """Random games and their images side by side: hundreds of positions, both colors."""
    config = {"observation": observation, "material": 0.5, "max_plies": 150}
    draw = random.Random(4)
    pairs = Pairs(Rules("shogi", config))
    for _ in range(games):
        one = shogi.load_sfen(config=config)
        other = shogi.load_sfen(mirrored_sfen(shogi.START), config=config)
        while not one.over:
            pairs.add(one, other)
            move, action = draw.choice(list(shogi.moves(one).items()))
            image = image_of(pairs.rules, action)
            assert shogi.moves(other)[mirrored_usi(move)] == image
            one.apply(action)
            other.apply(image)
            assert shogi.read_sfen(other) == mirrored_sfen(shogi.read_sfen(one))
        pairs.add(one, other)
    pairs.check_images()
    assert len(pairs.masks[0]) > 100 * games


@pytest.mark.parametrize(
    ("sfen", "move", "end"),
    [
        ("7nk/9/7G1/9/9/9/9/9/K8 b G 1", "G*1b", "checkmate"),
        ("+P+P+P+P+P+P+P+P1/+P2K1+R+B2/9/9/9/9/9/4k4/9 w 4G4SN 1", "5h5i", "declaration"),
    ],
)
def test_shogi_ends_the_same_in_a_mirror(sfen: str, move: str, end: str) -> None:
    one, other = shogi.load_sfen(sfen), shogi.load_sfen(mirrored_sfen(sfen))
    pairs = Pairs(one.rules)
    pairs.add(one, other)
    image = image_of(one.rules, shogi.action_of(one, move))
    shogi.play(one, move)
    other.apply(image)
    pairs.add(one, other)
    pairs.check_images()
    assert one.end == end


def test_tic_tac_toe_is_the_same_in_a_mirror() -> None:
    draw = random.Random(1)
    pairs = Pairs(Rules("tic_tac_toe"))
    for _ in range(50):
        one, other = sparring.new_state("tic_tac_toe"), sparring.new_state("tic_tac_toe")
        while not one.over:
            action = draw.choice(one.legal())
            column, row = one.action_name(action)
            image = image_of(one.rules, action)
            assert one.action_name(image) == {"a": "c", "b": "b", "c": "a"}[column] + row
            one.apply(action)
            other.apply(image)
            pairs.add(one, other)
    pairs.check_images()


# Laser hockey: bodies are reflected in the rink's long axis, in meters and radians


def flipped(position: HockeyPosition) -> HockeyPosition:
    def flip(body: RigidBody) -> RigidBody:
        return RigidBody(body.x, -body.y, -body.angle, body.vx, -body.vy, -body.spin)

    bodies = {name: flip(getattr(position, name)) for name in ("left", "right", "puck")}
    return replace(position, **bodies, kick=(position.kick[0], -position.kick[1]))


def random_position(rng: np.random.Generator, *, keeps: bool) -> HockeyPosition:
    """Anywhere, at any speed; half of the pucks near a racket, some of them kept."""

    def racket(side: int) -> RigidBody:
        x, y, angle = rng.uniform(0.6, 3.4), rng.uniform(-2.5, 2.5), rng.uniform(-1.2, 1.2)
        return RigidBody(side * x, y, angle, *rng.uniform(-6, 6, 3))

    left, right = racket(-1), racket(1)
    puck = RigidBody(*rng.uniform((-3.5, -3.0), (3.5, 3.0)), 0.0, *rng.uniform(-20, 20, 3))
    if rng.random() < 0.5:
        near = left if rng.random() < 0.5 else right
        place = near.x + rng.uniform(-0.7, 0.7), near.y + rng.uniform(-0.7, 0.7)
        puck = replace(puck, x=place[0], y=place[1])
    kept = int(rng.integers(2, 16)) if keeps and rng.random() < 0.3 else 0
    keep = (kept, 0) if rng.random() < 0.5 else (0, kept)
    mode = str(rng.choice(laser_hockey.MODES))
    return HockeyPosition(left, right, puck, keep, int(rng.integers(0, 80)), mode)


HOCKEY: list[tuple[str, dict[str, Any]]] = [
    ("laser_hockey", {}),
    ("laser_hockey", {"keep_mode": 0, "scale_observation": 1, "profile": "FAST"}),
    ("laser_hockey_discrete", {"fineness": 4}),
]
STEPS, TOLERANCE = 5, 1e-4
"""Meters, radians and meters per second, behind so many steps."""


@pytest.mark.few(1)
@pytest.mark.parametrize(("game", "config"), HOCKEY)
def test_laser_hockey_is_the_same_in_a_mirror(game: str, config: dict[str, Any]) -> None:
    """What is seen, paid and ended agrees up to rounding.

    Where rounding decides whether something touches already, both may go on apart: 1 in 50 may.
    """
    rng = np.random.default_rng(3)
    worst, ended = [], 0
    for _ in range(100):
        position = random_position(rng, keeps=bool(config.get("keep_mode", 1)))
        one = load_position(position, config=config, game=game)
        other = load_position(flipped(position), config=config, game=game)
        worst.append(largest_gap(one, other))
        for _ in range(STEPS):
            if one.over or other.over:
                break
            action = drawn_action(one.rules, rng)
            one.apply(action)
            other.apply(mirror_of(one.rules).play(action))
            worst[-1] = max(worst[-1], largest_gap(one, other))
        ended += one.over
    assert np.median(worst) <= 1e-5
    assert np.mean(np.array(worst) <= TOLERANCE) >= 0.98
    assert ended


def drawn_action(rules: Rules, rng: np.random.Generator) -> np.ndarray:
    if rules.box:
        return rng.uniform(-1, 1, (2, rules.box)).astype(np.float32)
    return rng.integers(0, rules.actions, 2).astype(np.int32)


def largest_gap(one: State, other: State) -> float:
    """How far what both seats see and are paid is from its image; infinite if only one is over."""
    rules = one.rules
    if (one.over, one.end, one.scores) != (other.over, other.end, other.scores):
        return np.inf
    seen = np.stack([one.observe_bytes(seat) for seat in (0, 1)])
    again = np.stack([other.observe_bytes(seat) for seat in (0, 1)])
    gap = np.abs(
        rules.widen(mirror_of(rules).rows(rules.features, seen)) - rules.widen(again)
    ).max()
    return float(max(gap, np.abs(one.rewards - other.rewards).max()))
