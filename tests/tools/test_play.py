"""`sparring play`, driven as a person would: through a pipe and through a terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparring import Rules, State, new_state
from sparring.cli import main
from sparring.games.skull_king import load_round, read
from sparring.tools.tables.skull_king import SkullKingTable
from sparring.tools.tables.table import Choice, GameTable, match

PROGRAM = Path(sys.executable).with_name("sparring")


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(words: str, typed: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert main(["play", *words.split()]) == 0
        return capsys.readouterr().out

    return run


def test_a_whole_game_of_tic_tac_toe(play: Any) -> None:
    shown = play("tic_tac_toe --seed 3", "1\n" * 9)
    assert "you are X" in shown
    assert "seat 1: " in shown
    assert re.search(r"(three in a row|board full): (you win|you lose|a draw)\n", shown)
    assert shown.endswith(
        "Play it again: sparring play tic_tac_toe --seat 0 --against careful --seed 3\n"
    )


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "--seat 2 --against bot:captain,rule_easy,random",
        "--set num_players=2",
        "--set num_players=2 --set ghost=0 --set open_bids=1",
        "--set num_players=6 --set abilities=1 --set scoring=RASCAL --set cannonball=1",
        "--set num_players=3 --set abilities=1 --set rounds=6,7 --set skip_forced=1",
        "--set deck=CLASSIC66 --set rounds=10",
    ],
)
def test_a_whole_game_of_skull_king(play: Any, flags: str) -> None:
    shown = play(f"skull_king --seed 5 {flags}", "1\n" * 200)
    assert "Final standings:" in shown
    standings = shown[shown.index("Final standings:") :]
    places = re.findall(r"^  (\d)\. (you|seat \d) +(-?\d+)$", standings, re.MULTILINE)
    scores = [int(score) for _, _, score in places]
    assert scores == sorted(scores, reverse=True)
    assert sum(name == "you" for _, name, _ in places) == 1
    rounds = re.findall(r"^Round \d+  bid won bonus loot points  total$", shown, re.MULTILINE)
    assert len(rounds) == (1 if "rounds=10" in flags else 2 if "rounds=6,7" in flags else 10)


def test_the_command_at_the_end_deals_the_same_game(play: Any) -> None:
    first = play("skull_king --seed 7 --against rule_easy --set rounds=2,3", "1\n" * 20)
    again = first.splitlines()[-1].removeprefix("Play it again: sparring play ")
    assert play(again, "1\n" * 20) == first


def test_help_hint_undo_and_quit(play: Any) -> None:
    typed = "h\n?\nu\n1\n?\nu\n0\nzebra\nq\n"
    shown = play("skull_king --seed 3 --set rounds=3,5", typed)
    assert "take exactly that many" in shown
    assert "captain would choose: bid" in shown
    assert "There is nothing to take back." in shown
    assert "\nyou bid 1\n" in shown
    assert "Taken back." in shown
    assert "\nyou bid 0\n" in shown
    assert "That is no choice here" in shown
    assert shown.endswith("Good bye.\n")


def test_undo_and_hint_do_not_change_the_game(play: Any) -> None:
    plain = play("skull_king --seed 4 --set rounds=4", "1\n" * 5)
    wavering = play("skull_king --seed 4 --set rounds=4", "?\n2\nu\n1\n?\n2\nu\n1\n1\n1\n1\n")
    assert wavering.splitlines()[-6:] == plain.splitlines()[-6:]


def test_the_end_of_the_input_is_polite(play: Any) -> None:
    assert play("skull_king --seed 3", "").endswith("Good bye.\n")
    assert play("tic_tac_toe --seed 3", "b2\n").endswith("Good bye.\n")


def test_a_seed_is_drawn_and_told(play: Any) -> None:
    seeds = {re.search(r"Seed (\d+)", play("tic_tac_toe", ""))[1] for _ in range(3)}
    assert len(seeds) > 1


CHOICES = [
    Choice(1, "G1", "Green 1"),
    Choice(2, "G10", "Green 10"),
    Choice(3, "Pi1", "Pirate Rosie"),
    Choice(4, "TP", "Tigress as pirate"),
    Choice(5, "TE", "Tigress as escape"),
]


@pytest.mark.parametrize(
    ("typed", "actions"),
    [
        ("g1", [1]),
        ("G10", [2]),
        ("g", [1, 2]),
        ("pi", [3]),
        ("3", [3]),
        ("5", [5]),
        ("6", []),
        ("t", [4, 5]),
        ("te", [5]),
        ("green 10", [2]),
        ("ros", [3]),
        ("esc", [5]),
        ("", []),
        ("x", []),
    ],
)
def test_what_a_word_means(typed: str, actions: list[int]) -> None:
    assert [choice.action for choice in match(typed, CHOICES)] == actions


def test_a_bid_is_typed_as_its_number() -> None:
    state = load_round(2, [["G1", "T"], ["G2", "G3"], ["G4", "G5"], ["G6", "G7"]], 0)
    choices = SkullKingTable(state.rules, 0).choices(state)
    assert [match(str(bid), choices)[0].action for bid in range(3)] == [0, 1, 2]


def test_the_tigress_asks_how(play: Any) -> None:
    seed = next(
        seed
        for seed in range(1000)
        if read(new_state("skull_king", seed=seed, config={"rounds": [1]})).hands[0] == [71]
    )
    for answer, said in (("p", "Tigress as pirate"), ("e", "Tigress as escape")):
        shown = play(f"skull_king --seed {seed} --set rounds=1", f"0\nt\n{answer}\n")
        assert "which: 1:Tigress as pirate, 2:Tigress as escape" in shown
        assert f"you play {said}" in shown


def random_games(config: dict[str, Any], seeds: range) -> Any:
    """Yield (before, action, after) of random games."""
    rules = Rules("skull_king", config)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        state = new_state(rules, seed=seed)
        while not state.over:
            before, action = state.clone(), int(rng.choice(state.legal()))
            state.apply(action)
            yield before, action, state.clone()


@pytest.mark.parametrize(
    "config",
    [
        {"rounds": [4, 6, 3]},
        {"num_players": 2, "rounds": [5, 7]},
        {"num_players": 7, "abilities": 1, "rounds": [8]},
    ],
)
def test_the_story_of_the_tricks_is_true(config: dict[str, Any]) -> None:
    """Told wins are the wins of the score sheet; told leaders lead."""
    told: dict[str, int] = {}
    destroyed = 0
    for before, action, after in random_games(config, range(8)):
        was, now = read(before), read(after)
        table = SkullKingTable(before.rules, person=-1)
        lines = table.narrate(before, action, after)
        for line in lines:
            if match := re.match(r"  (seat \d|the ghost) wins the trick with (\w+)", line):
                told[match[1]] = told.get(match[1], 0) + 1
            if match := re.match(r"  the trick is destroyed(; (.*) leads next)?", line):
                destroyed += 1
                if match[2]:
                    assert match[2] == table.name(now.leader)
        if now.round != was.round or now.phase == "over":
            won = now.by_seat["last_won"]
            assert [told.get(f"seat {s}", 0) for s in range(was.players)] == won[: was.players]
            assert sum(told.values()) + destroyed == was.cards
            told, destroyed = {}, 0


def test_the_story_keeps_secrets() -> None:
    """What a person reads does not depend on what that seat cannot know."""
    config = {"num_players": 5, "abilities": 1, "scoring": "RASCAL", "cannonball": 1}
    different = 0
    for at, (before, action, after) in enumerate(random_games(config, range(1))):
        person = (before.seat + 1 + at % 4) % 5
        table = SkullKingTable(before.rules, person)
        other = after.clone()
        other.resample_hidden(person, seed=at)
        different += other.native.serialize() != after.native.serialize()
        if read(before).phase in ("bid", "cannon") and read(after).phase == read(before).phase:
            hidden = next(legal for legal in before.legal() if legal != action)
            assert table.narrate(before, hidden, other) == table.narrate(before, action, after)
        elif read(before).phase == "discard":
            assert "a card" in table.narrate(before, action, other)[0]
        if not after.over:
            assert table.show(other) == table.show(after)
    assert different > 50


def test_any_turn_game_has_a_plain_table() -> None:
    state = new_state("tic_tac_toe")
    table = GameTable(state.rules, 0)
    assert [choice.short for choice in table.choices(state)][:3] == ["a1", "b1", "c1"]
    before: State = state.clone()
    state.apply(4)
    assert table.narrate(before, 4, state) == ["you: b2"]


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(self, *words: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [str(PROGRAM), *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
            start_new_session=True,
        )
        os.close(slave)
        self.seen, self.at = "", 0

    def wait_for(self, text: str, limit_s: float = 20.0) -> None:
        """Read until the text comes, counting from behind the one waited for last."""
        until = time.monotonic() + limit_s
        while text not in self.seen[self.at :]:
            ready, _, _ = select.select([self.master], [], [], max(0, until - time.monotonic()))
            assert ready, f"{text!r} never came; seen: {self.seen[-500:]!r}"
            try:
                self.seen += os.read(self.master, 4096).decode(errors="replace")
            except OSError:
                raise AssertionError(f"ended before {text!r}: {self.seen[-500:]!r}") from None
        self.at = self.seen.index(text, self.at) + len(text)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def interrupt(self, text: str, limit_s: float = 20.0) -> None:
        """Press Ctrl-C until the text comes: one that falls just before readline waits is lost."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            os.kill(self.process.pid, signal.SIGINT)
            if select.select([self.master], [], [], 2.0)[0]:
                break
        self.wait_for(text)


def test_play_in_a_terminal_with_colours_and_ctrl_c() -> None:
    terminal = Terminal("play", "skull_king", "--seed", "5", "--set", "rounds=3,5")
    terminal.wait_for("your bid> ")
    terminal.type("1\n")
    terminal.wait_for("your card> ")
    assert "\x1b[32mG14\x1b[0m" in terminal.seen
    terminal.type("?\n")
    terminal.wait_for("captain would choose: ")
    terminal.wait_for("your card> ")
    terminal.interrupt("sparring: interrupted")
    assert terminal.process.wait(timeout=20) == 130
    assert "Traceback" not in terminal.seen
    os.close(terminal.master)
