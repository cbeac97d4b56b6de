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

import pytest

from commands.typed import ANY
from remembering import remembering
from sparring import Rules, new_state
from sparring.cli import main
from sparring.commands.play import PlaySession, Quit
from sparring.games.recorded import Replay
from sparring.games.skull_king import read
from sparring.games.state import State
from sparring.games.terminal import ActionChoice, Terminal
from sparring.store.policies import save_policy

PROGRAM = Path(sys.executable).with_name("sparring")


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(words: str, typed: str) -> str:
        if "--against" not in words:
            words += {"s": " --against captain", "t": " --against careful"}.get(words[0], "")
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert main(["play", *words.split()]) == 0
        return capsys.readouterr().out

    return run


def test_a_whole_game_of_tic_tac_toe(play: Any) -> None:
    shown = play("tic_tac_toe --seed 3", ANY)
    assert "you are X" in shown
    assert "seat 1: " in shown
    assert re.search(r"(three in a row|board full): (you win|you lose|a draw)\n", shown)
    assert shown.endswith(
        "Play it again: sparring play tic_tac_toe --seat 0 --against careful --seed 3\n"
    )


@pytest.mark.parametrize(
    "flags",
    [
        "--seat 2 --against bot:captain,rule_easy,random",
        "--set num_players=3 --set abilities=1 --set rounds=6,7 --set skip_forced=1",
        "--set deck=CLASSIC66 --set rounds=10",
        *(
            pytest.param(flags, marks=pytest.mark.slow)
            for flags in (
                "",
                "--set num_players=2",
                "--set num_players=2 --set ghost=0 --set open_bids=1",
                "--set num_players=6 --set abilities=1 --set scoring=RASCAL --set cannonball=1",
            )
        ),
    ],
)
def test_a_whole_game_of_skull_king(play: Any, flags: str) -> None:
    shown = play(f"skull_king --seed 5 {flags}", ANY * 100)
    assert "Final standings:" in shown
    standings = shown[shown.index("Final standings:") :]
    places = re.findall(r"^  (\d)\. (you|seat \d) +(-?\d+)$", standings, re.MULTILINE)
    scores = [int(score) for _, _, score in places]
    assert scores == sorted(scores, reverse=True)
    assert sum(name == "you" for _, name, _ in places) == 1
    rounds = re.findall(r"^Round \d+  bid won bonus loot points  total$", shown, re.MULTILINE)
    assert len(rounds) == (1 if "rounds=10" in flags else 2 if "rounds=6,7" in flags else 10)


def test_the_command_at_the_end_deals_the_same_game(play: Any) -> None:
    first = play("skull_king --seed 7 --against rule_easy --set rounds=2,3", ANY * 9)
    again = first.splitlines()[-1].removeprefix("Play it again: sparring play ")
    assert play(again, ANY * 9) == first


def test_help_hint_undo_and_quit(play: Any) -> None:
    typed = "h\n?\nu\n1\n?\nu\n0\nzebra\nq\n"
    shown = play("skull_king --seed 3 --set rounds=3,5", typed)
    assert "take exactly that many" in shown
    assert "captain would choose: bid" in shown
    assert "There is nothing to take back." in shown
    assert "\nyou bid 1\n" in shown
    assert "Taken back." in shown
    assert "\nyou bid 0\n" in shown
    assert "This is not a choice" in shown
    assert shown.endswith("Good bye.\n")


def test_undo_and_hint_do_not_change_the_game(play: Any) -> None:
    plain = play("skull_king --seed 4 --set rounds=4", "1\n1\n4\n2\n3\n")
    typed = "?\n2\nu\n1\n?\n2\nu\n1\n4\n2\n3\n"
    wavering = play("skull_king --seed 4 --set rounds=4", typed)
    assert "Final standings:" in plain
    assert wavering.splitlines()[-6:] == plain.splitlines()[-6:]


def test_choices_keep_their_numbers_when_others_disappear(play: Any) -> None:
    listed = re.findall(r"^ +(\d:.*)$", play("tic_tac_toe --seed 3", "1\n5\n"), re.MULTILINE)
    fixed = {choice.split(":")[1]: int(choice[0]) for choice in listed[0].split()}
    cells = ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"]
    assert fixed == {cell: at for at, cell in enumerate(cells, 1)}
    for line in listed[1:]:
        left = {choice.split(":")[1]: int(choice[0]) for choice in line.split()}
        assert "a1" not in left
        assert left.items() <= fixed.items()


def test_cards_have_their_numbers_from_the_deal_on(play: Any) -> None:
    """Also those that must not be played in the first trick, and after an undo."""
    shown = play("skull_king --seed 4 --set rounds=4", "1\n1\n4\nu\n4\n2\n")
    lines = re.findall(r"^ {8}(\d:.*)$", shown, re.MULTILINE)
    found = [dict(reversed(choice.split(":")) for choice in line.split()) for line in lines]
    rest = {"B7": "2", "G7": "3"}
    assert found[0] == {"KR": "1", **rest, "P12": "4"}
    assert found[1:] == [{"P12": "4"}, rest, {"P12": "4"}, rest, {"G7": "3"}]


class Letters(Terminal):
    """Tic-tac-toe whose cells are called like the keys, and one that begins like one."""

    names = ("u", "h", "q", "hop", "e", "f", "g", "i", "j")

    def choices(self, state: State) -> list[ActionChoice]:
        names = [(action, self.names[action]) for action in state.legal()]
        return [ActionChoice(action, name, name) for action, name in names]


def test_keys_hide_no_choice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    game = PlaySession(Rules("tic_tac_toe"), 0, {1: "careful"}, 3, "careful")
    game.terminal = Letters(game.rules, 0)
    monkeypatch.setattr("sys.stdin", io.StringIO("u\n:u\nh\n:h\nq\n:q\n"))
    with pytest.raises(Quit):
        game.play()
    shown = capsys.readouterr().out
    assert "Taken back." in shown
    assert "take back your last move" in shown  # the help
    assert [game.terminal.names[action] for action in game.actions[::2]] == ["h", "q"]


def test_a_key_that_begins_a_choice_is_asked_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    game = PlaySession(Rules("tic_tac_toe"), 0, {1: "careful"}, 3, "careful")
    game.terminal = Letters(game.rules, 0)
    game.terminal.names = ("up", "quit it", "c", "d", "e", "f", "g", "i", "j")
    monkeypatch.setattr("sys.stdin", io.StringIO("u\nq\nqu\n:q\n"))
    with pytest.raises(Quit):
        game.play()
    shown = capsys.readouterr().out
    assert "Type :u for the key, or more of up." in shown
    assert "Type :q for the key, or more of quit it." in shown
    assert game.terminal.names[game.actions[0]] == "quit it"


def test_the_end_of_the_input_is_polite(play: Any) -> None:
    assert play("skull_king --seed 3", "").endswith("Good bye.\n")
    assert play("tic_tac_toe --seed 3", "b2\n").endswith("Good bye.\n")


def test_a_seed_is_drawn_and_told(play: Any) -> None:
    seeds = {re.search(r"Seed (\d+)", play("tic_tac_toe", ""))[1] for _ in range(3)}
    assert len(seeds) > 1


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


class Screen:
    """A program in a pseudo-terminal."""

    def __init__(self, *words: str) -> None:
        self.master, slave = pty.openpty()
        # A job in the background is deaf to Ctrl-C, and so would be its children.
        deaf = signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.process = subprocess.Popen(
            [str(PROGRAM), *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
            start_new_session=True,
        )
        signal.signal(signal.SIGINT, deaf)
        os.close(slave)
        self.seen, self.at = "", 0

    def wait_for(self, text: str, timeout_s: float = 20.0) -> None:
        """Read until the text comes, counting from behind the one waited for last."""
        until = time.monotonic() + timeout_s
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

    def interrupt(self, text: str, timeout_s: float = 20.0) -> None:
        """Press Ctrl-C until the text comes: one that falls just before readline waits is lost."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            os.kill(self.process.pid, signal.SIGINT)
            if select.select([self.master], [], [], 2.0)[0]:
                break
        self.wait_for(text)


def test_play_in_a_terminal_with_colors_and_ctrl_c() -> None:
    words = ("skull_king", "--against", "captain", "--seed", "5", "--set", "rounds=3,5")
    terminal = Screen("play", *words)
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


@pytest.mark.parametrize("kind", ["gru", pytest.param("stack", marks=pytest.mark.slow)])
def test_what_is_remembered_is_taken_back_with_the_moves(
    play: Any, kind: str, tmp_path: Path
) -> None:
    """Hints change nothing, and the game goes on as if nothing had been taken back."""
    rules = Rules("skull_king", {"num_players": 3, "rounds": [3, 4]})
    folder = save_policy(remembering(rules, kind), tmp_path / "agent")

    def actions(name: str, typed: str) -> Any:
        shown = play(f"{folder} --seed 10 --save {tmp_path / name}", typed)
        return Replay.read(tmp_path / name).actions, shown.count("would choose")

    plain, _ = actions("plain.json", "1\n1\n" + ANY * 9 + "q\n")
    back, hints = actions("back.json", "?\n1\n1\nu\nu\n?\n1\n1\n?\n" + ANY * 9 + "q\n")
    assert len(plain) > 15 and plain == back
    assert hints == 3


def test_hockey_is_sent_to_the_browser(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "laser_hockey"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "play it in a browser, under Play: sparring serve --open" in line
    assert "sparring render laser_hockey:strong" in line
