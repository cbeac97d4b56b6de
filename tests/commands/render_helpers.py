"""Matches to draw, and what `sparring render` reports about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparring import Rules
from sparring.cli import main
from sparring.commands import render
from sparring.games.picture import RecordedEpisode

HOCKEY = ["strong,weak", "--game", "laser_hockey", "--width", "190"]
MATCH = [*HOCKEY, "--seed", "11"]
BOARD = ["careful,random", "--game", "tic_tac_toe", "--width", "190"]
SVG = "{http://www.w3.org/2000/svg}"


def report(capsys: pytest.CaptureFixture[str], out: Path, *words: str) -> dict[str, Any]:
    assert main(["render", *words, "--out", str(out), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["bytes"] == out.stat().st_size
    return found


def match(seed: int = 11, **flags: Any) -> RecordedEpisode:
    rules = Rules("laser_hockey", flags)
    states = list(render.play_one(rules, ["strong", "weak"], seed, sampled=False))
    return RecordedEpisode(states, ("strong", "weak"), (0, 0))
