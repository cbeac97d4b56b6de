"""Games that bring their own SVG documents become films of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from commands.render_helpers import SVG, report
from sparring import Rules
from sparring.commands import render
from sparring.config.tools import RenderConfig
from sparring.draw.pictures.svg import flip_through, short
from sparring.errors import ConfigError, SparringError
from sparring.games.picture import RecordedEpisode, SvgPicture


def pages(state: Any) -> str:
    shown = str(state).split("\n")[0]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>{shown}</text></svg>'
    )


@pytest.mark.parametrize("still", [False, True])
def test_a_game_may_bring_its_own_documents(still: bool, tmp_path: Path) -> None:
    rules = Rules("tic_tac_toe")
    states = list(render.play_one(rules, ["careful", "careful"], 0, sampled=False))
    episode = RecordedEpisode(states, ("careful", "careful"), (0, 0))
    config = RenderConfig(players="careful", out="game.svg", still=still)
    facts = render.draw(SvgPicture(pages, 0.5), [episode], config, tmp_path / "game.svg")
    text = (tmp_path / "game.svg").read_text("utf-8")
    if still:
        assert text == pages(states[-1])
        return
    assert facts == {"frames": 10, "seconds": 5.0}
    shown = [group[0].attrib for group in ElementTree.fromstring(text)]
    assert [attributes["keyTimes"] for attributes in shown[:3]] == ["0;.1", "0;.1;.2", "0;.2;.3"]
    assert [attributes["values"] for attributes in shown[-1:]] == ["none;inline"]


def test_documents_are_svg_of_their_own_size(tmp_path: Path) -> None:
    rules = Rules("tic_tac_toe")
    for wrong, hint in (
        ({"out": "a.gif"}, "--out a.svg"),
        ({"out": "a.svg", "width": 400}, "fixed size"),
    ):
        config = RenderConfig(players="careful", **wrong)
        with pytest.raises(ConfigError, match=hint):
            render.check_documents(config, rules, Path(config.out))


def test_a_page_that_is_no_svg_is_refused() -> None:
    with pytest.raises(SparringError, match="begin with <svg"):
        flip_through(["<html></html>"], 1.0)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["vreact", "--game", "cage2", "--set", "max_steps=12", "--episodes", "2"], "Op_Server0"),
        (["greedy,random", "--game", "shogi", "--set", "max_plies=20", "--speed", "2"], "飛"),
    ],
    ids=["cage2", "shogi"],
)
def test_films_of_documents_show_every_position_in_turn(
    words: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "game.svg"
    facts = report(capsys, out, *words)
    pages = list(ElementTree.parse(out).getroot())
    steps = [episode["steps"] for episode in facts["episodes"]]
    assert len(pages) == facts["frames"] == sum(steps) + len(steps)
    assert min(steps) >= 12
    shown = []
    for page in pages:
        animation, document = page
        assert animation.attrib["dur"] == f"{short(facts['seconds'], 3)}s"
        assert document.tag == f"{SVG}svg"
        shown.append(ElementTree.tostring(document))
        assert name in "".join(document.itertext())
    assert all(one != after for one, after in pairwise(shown))
    starts = [
        float(page[0].attrib["keyTimes"].split(";")[values.index("inline")])
        for page in pages
        for values in [page[0].attrib["values"].split(";")]
    ]
    assert np.abs(np.array(starts) - np.arange(len(pages)) / len(pages)).max() < 1e-4
    assert [page.get("display") for page in pages] == [None] + ["none"] * (len(pages) - 1)
