"""Pictures of Skull King and Kuhhandel tell the game that was played."""

from __future__ import annotations

from typing import Any

import pytest

from draw.text_boxes import texts
from sparring import Rules
from sparring.commands import render
from sparring.games import kuhhandel, skull_king
from sparring.games.decisions import decisions
from sparring.games.kuhhandel.scenes import scenes_of as kuhhandel_scenes
from sparring.games.picture import Drawing, Film, RecordedEpisode, picture_of
from sparring.games.skull_king.scenes import SkullKingScene, scenes_of

ROUNDS = [1, 4, *[0] * 8]
EXTRAS = {"abilities": 1, "scoring": "RASCAL", "cannonball": 1}


def played(game: str, flags: dict[str, Any], seed: int = 3) -> RecordedEpisode:
    rules = Rules(game, flags)
    bots = tuple(rules.bots[-1] for _ in range(rules.seats))
    return RecordedEpisode(
        list(render.play_one(rules, bots, seed, sampled=False)), bots, (0,) * rules.seats
    )


def film_of(episode: RecordedEpisode) -> Film:
    return picture_of(episode.states[0].rules).film([episode])  # type: ignore[union-attr]


def still_of(episode: RecordedEpisode) -> Drawing:
    return picture_of(episode.states[0].rules).still(episode)  # type: ignore[union-attr]


def written(shapes: Any) -> list[str]:
    return [text.text for text in texts(shapes)]


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel"])
def test_skipped_decisions_are_found_again(game: str) -> None:
    rounds = {"rounds": ROUNDS} if game == "skull_king" else {}
    whole, skipped = (played(game, {"skip_forced": skip, **rounds}) for skip in (0, 1))
    assert len(skipped.states) < len(whole.states)
    actions = [[action for _, action, _ in decisions(e.states)] for e in (whole, skipped)]
    assert len(actions[0]) == len(whole.states) - 1
    forced_before_the_start = int(game == "kuhhandel")  # there is nothing to trade yet
    assert actions[0][forced_before_the_start:] == actions[1]


@pytest.mark.parametrize("players", [2, 3, 8])
def test_every_trick_is_seen_whole_and_every_round_is_scored(players: int) -> None:
    episode = played("skull_king", {"num_players": players, "rounds": ROUNDS, **EXTRAS})
    scenes = list(scenes_of(episode))
    tricks = [scene for scene in scenes if scene.kind == "trick"]
    assert len(tricks) == 1 + 4
    seats = players + (players == 2)
    for scene in tricks:
        assert sorted(seat for seat, _ in scene.at.trick) == list(range(seats))
        held = {card for hand in scene.at.hands for card in hand}
        assert not held & {token - 1 for _, token in scene.at.trick}
    rounds = [scene for scene in scenes if scene.kind == "scores"]
    totals = [sum(points) for points in zip(*(scene.points for scene in rounds), strict=True)]
    assert totals == [int(score) for score in episode.states[-1].scores]


def test_the_taker_of_a_trick_is_the_one_who_is_credited() -> None:
    scenes = list(scenes_of(played("skull_king", {"rounds": ROUNDS})))
    won: dict[int, list[int]] = {}
    for scene in scenes:
        if scene.kind == "trick" and scene.winner is not None:
            won.setdefault(scene.at.round, []).append(scene.winner)
        if scene.kind == "scores":
            counted = [won.get(scene.at.round, []).count(seat) for seat in range(4)]
            assert counted == scene.at.by_seat["won"][:4]


def test_a_still_of_skull_king_has_the_table_and_all_points() -> None:
    episode = played("skull_king", {"rounds": ROUNDS})
    shown = written(still_of(episode).shapes)
    rounds: list[SkullKingScene] = [s for s in scenes_of(episode) if s.kind == "scores"]
    for scene in rounds:
        assert all(f"{points:+}" in shown for points in scene.points)
    best = max(episode.states[-1].scores)
    assert any(f"with {best:g} points" in text for text in shown)
    names = [skull_king.card_short_name(card) for card in range(skull_king.CARDS)]
    assert sum(text in names or text in ("TP", "TE") for text in shown) == 4 * 4


def test_hands_and_bids_are_those_of_the_game() -> None:
    episode = played("skull_king", {"rounds": [3, *[0] * 9]})
    frame = film_of(episode).frames[4]  # all bids are in, nothing is played
    at = skull_king.read(episode.states[4])
    shown = written(frame)
    for hand in at.hands:
        assert all(skull_king.card_short_name(card) in shown for card in hand)
    assert [t for t in shown if t.startswith("won ")] == [
        f"won 0 of {bid}" for bid in at.by_seat["bid"][:4]
    ]


def test_kuhhandel_shows_bids_piles_and_quartets() -> None:
    episode = played("kuhhandel", {})
    scenes = list(kuhhandel_scenes(episode))
    counters = [scene for scene in scenes if scene.counter]
    assert counters
    for scene in counters:
        assert scene.events[0].endswith(kuhhandel.show_pile(scene.counter or ()))
    assert list(scenes[-1].scores) == episode.states[-1].scores
    shown = written(still_of(episode).shapes)
    completed = [text for text in shown if text.endswith(" points") and ": " in text]
    assert len(completed) == 10 + 1  # the quartets, and the result
    frames = film_of(episode).frames
    bids = [str(scene.at.high_bid) for scene in scenes[:40] if scene.at.high_bid]
    assert set(bids) <= {text for frame in frames[:120] for text in written(frame)}


def test_a_game_that_was_cut_is_drawn_too() -> None:
    episode = played("kuhhandel", {"max_decisions": 60})
    assert episode.states[-1].truncated
    assert "the game was cut" in written(film_of(episode).frames[-1])
    assert "the game was cut" in written(still_of(episode).shapes)
