"""Writing in pictures: it keeps to its room, agents have short names, nothing is overprinted."""

from __future__ import annotations

import string
from typing import Any

import pytest

from draw.text_boxes import boxes, overlaps, svg_boxes
from sparring import Rules
from sparring.commands import render
from sparring.draw.names import short_name, short_names
from sparring.draw.pictures.pixels import load_font
from sparring.games.picture import Picture, RecordedEpisode, SvgPicture, picture_of
from sparring.games.text_width import text_width, truncate_text

RUN = "skull_king-ppo-20261115-214501-abcd"
NAMES = (
    f"runs/{RUN}/checkpoints/00000120",
    "WWWWWWWWWWMMMMMMMMMM/100000",
    "x",
    "a name with spaces",
)
QUICK = {
    "shogi": {"max_plies": 40},
    "cage2": {"max_steps": 40},
    "kuhhandel": {"max_decisions": 250},
    "skull_king": {"rounds": [2, 10, *[0] * 8]},
}
EXTRAS = {"abilities": 1, "scoring": "RASCAL", "cannonball": 1}
TABLES: list[tuple[str, dict[str, Any]]] = [
    ("tic_tac_toe", {}),
    ("kuhn_poker", {}),
    ("connect_four", {}),
    ("leduc_poker", {}),
    ("laser_hockey", {}),
    ("skull_king", {"num_players": 2}),
    ("skull_king", {"num_players": 3, "abilities": 1}),
    ("skull_king", {"num_players": 4}),
    ("skull_king", {"num_players": 8, **EXTRAS}),
    ("kuhhandel", {"num_players": 3}),
    ("kuhhandel", {"num_players": 5, "skip_forced": 1}),
]


def played(game: str, flags: dict[str, Any], wins: int = 0) -> RecordedEpisode:
    rules = Rules(game, QUICK.get(game, {}) | flags)
    bots = [rules.bots[-1 - seat % 2] for seat in range(rules.seats)]
    states = list(render.play_one(rules, bots, 5, sampled=False))
    names = tuple(NAMES[seat % len(NAMES)] for seat in range(rules.seats))
    return RecordedEpisode(states, names, (wins,) * rules.seats)


def test_no_letter_is_wider_than_its_measure() -> None:
    font = load_font(100)
    for letter in [*string.printable[:95], "…", "·"]:
        assert font.getlength(letter) <= text_width(letter, 100) + 1, letter


@pytest.mark.parametrize("room", [0.0, 5.0, 20.0, 60.0, 150.0, 1000.0])
def test_a_fitted_text_keeps_to_its_room(room: float) -> None:
    for name in (*NAMES, "", "飛車角行"):
        short = truncate_text(name, 16, room)
        assert text_width(short, 16) <= room or short == ""
        assert short == name or "…" in short or short == ""
    assert truncate_text(NAMES[0], 16, 1000) == NAMES[0]
    assert truncate_text(NAMES[0], 16, 150).endswith("120")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (f"{RUN}/120", "ppo abcd/120"),
        (f"/somewhere/runs/{RUN}", "ppo abcd"),
        (f"runs/{RUN}/checkpoints/00000120", "ppo abcd/120"),
        ("laser_hockey-ppo-20261115-214501", "ppo 214501"),
        ("runs/laser_hockey-ppo-20261115-214501/", "ppo 214501"),
        ("runs/the-good-one/checkpoints/00000007", "the-good-one/7"),
        ("captain", "captain"),
        ("latest", "latest"),
        ("", ""),
    ],
)
def test_agents_have_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


def test_names_that_would_become_the_same_stay_apart() -> None:
    one, other = "a/shogi-ppo-20261115-214501", "b/shogi-ppo-20261115-214501"
    assert short_names([one, other, "ab2"]) == (one, other, "ab2")
    assert short_names([one, one, "ab2"]) == ("ppo 214501", "ppo 214501", "ab2")


@pytest.mark.few(5)
@pytest.mark.parametrize(("game", "flags"), TABLES, ids=str)
def test_no_text_lies_on_another_or_beyond_the_edge(game: str, flags: dict[str, Any]) -> None:
    episode = played(game, flags, wins=98)
    picture: Picture = picture_of(episode.states[0].rules)  # type: ignore[assignment]
    film, still = picture.film([episode]), picture.still(episode)
    step = max(1, len(film.frames) // 12)
    scenes = [(film.view, (*film.backdrop, *frame)) for frame in film.frames[::step]]
    scenes += [(film.view, (*film.backdrop, *film.frames[-1])), (still.view, still.shapes)]
    for view, shapes in scenes:
        found = boxes(shapes)
        assert len(found) >= 2
        assert overlaps(found) == []
        for left, bottom, right, top, text in found:
            inside = view.left <= left and right <= view.right
            assert inside and view.bottom <= bottom and top <= view.top, text


@pytest.mark.parametrize(
    ("game", "bot", "shown"), [("cage2", "random", "decoys: "), ("shogi", "ab2", "飛")]
)
def test_no_text_of_a_document_lies_on_another(game: str, bot: str, shown: str) -> None:
    rules = Rules(game, QUICK[game])
    picture = picture_of(rules)
    assert isinstance(picture, SvgPicture)
    seen = ""
    for state in render.play_one(rules, [bot] * rules.seats, 2, sampled=False):
        page = picture.svg(state)
        found = svg_boxes(page)
        assert len(found) > 10
        assert overlaps(found) == []
        assert max(box[2] for box in found) <= float(page.split('width="')[1].split('"')[0])
        seen += page
    assert shown in seen
