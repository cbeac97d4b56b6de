"""Kuhhandel at the terminal: what is typed, what is told, and what stays secret."""

from __future__ import annotations

import io
import random
import re
from typing import Any

import pytest

from sparring.cli import main
from sparring.commands.play import PlaySession
from sparring.games.kuhhandel import read

H = (2, 4, 1, 0, 0, 0)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(words: str, typed: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert main(["play", *words.split(), "--against", "dealer"]) == 0
        return capsys.readouterr().out

    return run


def answer(session: PlaySession, rng: random.Random) -> str:
    """What a person could type now."""
    choices = session.terminal.choices(session.state)
    if read(session.state).phase in ("offer", "counter"):
        hand = read(session.state).money[session.person]
        cards = [d for d, count in enumerate(hand) for _ in range(count)]
        chosen = rng.sample(cards, rng.randint(1, len(cards)))
        return " ".join(str((0, 10, 50, 100, 200, 500)[d]) for d in chosen)
    return rng.choice(choices).short


@pytest.mark.parametrize(
    "flags",
    [
        "",
        pytest.param("--seat 2 --against dealer,random", marks=pytest.mark.slow),
        "--set num_players=5 --set bluff=FORBID --set pay_mode=AUTO --set skip_forced=1",
        *(
            pytest.param(flags, marks=pytest.mark.slow)
            for flags in (
                "--set num_players=4 --set bluff=CAP --set auto_forced=0 --set zeros_return=1",
                "--set auto_forced=0 --set skip_forced=1 --set empty_offer=1 "
                "--set tie_money=TAKE_BACK",
            )
        ),
    ],
)
def test_a_whole_game(play: Any, monkeypatch: pytest.MonkeyPatch, flags: str) -> None:
    rng = random.Random(1)

    def read_line(session: PlaySession, prompt: str) -> str:
        line = rng.choice(["?", "h", "", ""]) or answer(session, rng)
        session.echo(f"{prompt}{line}")
        return line

    monkeypatch.setattr(PlaySession, "read_line", read_line)
    shown = play(f"kuhhandel --seed 5 {flags}", "")
    assert "This is not a choice" not in shown
    assert len(re.findall(r"auctions? a \w+ \(\d+\)$", shown, re.MULTILINE)) == 40
    assert len(re.findall(r"^  .* completes? the ", shown, re.MULTILINE)) == 10
    standings = shown[shown.index("Final standings:") :]
    places = re.findall(r"^  (\d)\. (you|seat \d) +(\d+)$", standings, re.MULTILINE)
    scores = [int(score) for _, _, score in places]
    assert scores == sorted(scores, reverse=True)
    assert sum(name == "you" for _, name, _ in places) == 1


def test_bids_and_cards_are_typed_whole(play: Any) -> None:
    typed = "auction\nh\n?\nsell\nu\nbuy\n10\n?\nzebra\n5\n120\nu\npass\nq\n"
    shown = play("kuhhandel --seed 3 --seat 2", typed)
    assert "you sell to seat 0 for" in shown
    assert "Taken back." in shown
    assert "you buy for 10, paid to seat 0" in shown
    assert "  you pay seat 0 1 card: 10" in shown
    assert "dealer would choose: " in shown
    assert shown.count("This is not a choice") == 2  # zebra, and a bid that is no multiple of ten
    assert "you bid 120" in shown
    assert "you pass" in shown
    assert shown.endswith("Good bye.\n")


def test_the_help_tells_the_rules_of_this_table(play: Any) -> None:
    assert "shows his money and is out" in play("kuhhandel --seed 3 --seat 2", "h\nq\n")
    forbids = play("kuhhandel --seed 3 --seat 2 --set bluff=FORBID", "h\nq\n")
    assert "Players may not bid more than they have." in forbids
