"""`sparring replay`: show a recorded game step by step, as text or as a film, or check it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sparring.commands.shared.filming import (
    check_documents,
    check_options,
    draw,
    finished,
    result_line,
)
from sparring.commands.shared.printing import make_console, print_json, print_styled
from sparring.config.tools import ReplayFileConfig
from sparring.draw.names import short_names
from sparring.errors import ConfigError
from sparring.games import State
from sparring.games.picture import RecordedEpisode, SvgPicture, picture_of
from sparring.games.recorded import Replay
from sparring.games.terminal import terminal_of
from sparring.machine import format_bytes
from sparring.output_files import check_file

RECORDS = (".kif", ".kifu", ".csa", ".usi")
"""File formats of Shogi games in other programs."""
FAILED = 3
HELP = """\
  enter, n, right   the next step        b, left   back
  g 12              to step 12           e         to the end
  q                 quit"""
ARROWS = {
    "\x1b[C": "n",
    "\x1b[B": "n",
    "\x1b[D": "b",
    "\x1b[A": "b",
    "\x1b[H": "g 0",
    "\x1b[F": "e",
}


def run(config: ReplayFileConfig) -> int:
    check_options_exclusive(config)
    replay = Replay.read(config.file)
    rules = replay.rules
    if config.seat >= rules.seats:
        raise ConfigError(f"--seat {config.seat} is outside 0..{rules.seats - 1}, or -1 for all")
    states = list(replay.states())
    differences = replay.differences(states[-1])
    facts = describe(replay, config, differences)
    if config.out:
        facts |= film(replay, states, config)
    if config.json:
        print_json(facts)
        return FAILED if config.check and differences else 0
    if config.check:
        return report(replay, config, differences)
    for difference in differences:
        print(f"sparring: {config.file}: {difference}", file=sys.stderr)
    if config.out:
        print(f"{config.out}: {len(replay.actions)} steps, {format_bytes(facts['bytes'])}")
        return 0
    viewer = ReplayViewer(replay, states, config.seat)
    if config.text:
        viewer.print_all()
    else:
        viewer.step_through()
    return 0


def check_options_exclusive(config: ReplayFileConfig) -> None:
    """Refuse options that exclude each other, before anything is read."""
    given = [name for name in ("text", "check", "out") if getattr(config, name)]
    if len(given) > 1:
        raise ConfigError(f"--{given[0]} and --{given[1]} exclude each other; leave one out")
    if config.out and Path(config.out).suffix not in RECORDS:
        check_options(config, Path(config.out))
    elif config.out:
        check_file(config.out, "--out")


def describe(replay: Replay, config: ReplayFileConfig, differences: list[str]) -> dict[str, Any]:
    plain = replay.plain()
    names = ("game", "rules_version", "flags", "seed", "players", "scores", "end")
    return {
        "file": config.file,
        **{name: plain[name] for name in names},
        "index": replay.index,
        "steps": len(replay.actions),
        "comes_out": not differences,
        "differences": differences,
    }


def report(replay: Replay, config: ReplayFileConfig, differences: list[str]) -> int:
    for difference in differences:
        print(f"{config.file}: {difference}")
    if differences:
        return FAILED
    print(f"{config.file}: {result_of(replay)}; the result is reproduced")
    return 0


def result_of(replay: Replay) -> str:
    steps, names = len(replay.actions), replay.players
    return result_line(replay.rules, steps, replay.end, names, replay.scores)


def film(replay: Replay, states: list[State], config: ReplayFileConfig) -> dict[str, Any]:
    out = Path(config.out)
    if out.suffix in RECORDS:
        write_record(replay, states, out)
        return {"out": str(out), "bytes": out.stat().st_size}
    picture = picture_of(replay.rules)
    if isinstance(picture, SvgPicture):
        check_documents(config, replay.rules, out)
    names = short_names(list(replay.players))
    episode = RecordedEpisode(states, names, (0,) * replay.rules.seats)
    with finished(out) as unfinished:
        facts = draw(picture, [episode], config, unfinished)
    return {"out": str(out), "bytes": out.stat().st_size, **facts}


def write_record(replay: Replay, states: list[State], out: Path) -> None:
    if replay.rules.name != "shogi":
        raise ConfigError(f"--out {out} is for Shogi; this is {replay.rules.name}: write .gif")
    from sparring.games import shogi
    from sparring.games.shogi.records import GameRecord, end_of, save_record

    moves = tuple(
        shogi.usi(state, moves[0]) for state, moves in zip(states, replay.actions, strict=False)
    )
    start, (black, white) = shogi.read_sfen(states[0]), replay.players
    save_record(GameRecord(moves, start, black, white, end_of(states[-1])), out)


class ReplayViewer:
    """Shows the positions of a game to one seat, or everything to an onlooker."""

    def __init__(self, replay: Replay, states: list[State], seat: int) -> None:
        self.replay, self.states, self.seat = replay, states, seat
        self.terminal = terminal_of(replay.rules, seat)
        self.out = make_console()
        self.step = 0

    def print_all(self) -> None:
        """Print the whole game, every step with its position."""
        self.head()
        for step in range(len(self.states)):
            self.step = step
            self.show()
        self.echo("", result_of(self.replay))

    def step_through(self) -> None:
        self.head()
        self.echo(HELP)
        self.show()
        with keys() as typed:
            for line in typed:
                if line in ("q", "quit"):
                    break
                if not self.go(line):
                    self.echo(HELP)
                    continue
                self.show()
                if self.step == len(self.states) - 1:
                    self.echo("", result_of(self.replay))

    def go(self, line: str) -> bool:
        """Move to the step of a command; False if the command is unknown."""
        last = len(self.states) - 1
        word, _, number = line.partition(" ")
        steps = {"": 1, "n": 1, "b": -1}
        if word in steps and not number:
            self.step = min(max(self.step + steps[word], 0), last)
        elif word == "e":
            self.step = last
        elif word == "g" and number.strip().isdecimal():
            self.step = min(int(number), last)
        else:
            return False
        return True

    def head(self) -> None:
        rules = self.replay.rules
        seats = ", ".join(f"seat {at} {name}" for at, name in enumerate(self.replay.players))
        view = "" if self.seat < 0 else f"; as seat {self.seat} saw it"
        self.echo(rules.title, style="bold")
        self.echo(f"Seed {self.replay.seed}, {len(self.replay.actions)} steps: {seats}{view}.")

    def show(self) -> None:
        state = self.states[self.step]
        self.echo("", f"step {self.step} of {len(self.states) - 1}", style="dim")
        self.echo(*self.narration(), state.text(None if self.seat < 0 else self.seat).rstrip("\n"))

    def narration(self) -> list[str]:
        """Return lines about the last action, in games with one action per step."""
        rules = self.replay.rules
        if self.step == 0 or rules.box or rules.rows > 1:
            return []
        (action,) = self.replay.actions[self.step - 1]
        return self.terminal.narrate(self.states[self.step - 1], action, self.states[self.step])

    def echo(self, *lines: str, style: str = "") -> None:
        print_styled(self.out, lines, self.terminal.styles, style)


@contextmanager
def keys() -> Iterator[Iterator[str]]:
    """Yield the input: single keys on a terminal, lines from a pipe."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield (line.strip().lower() for line in sys.stdin)
        return
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    tty.setcbreak(handle)
    try:
        yield pressed(handle)
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def pressed(handle: int) -> Iterator[str]:
    """Yield keys as commands; `g` waits for its number."""
    with suppress(OSError):
        while data := os.read(handle, 16):
            key = data.decode("ascii", "replace")
            if key in ("\x04", "\x1b"):
                return
            if key.startswith("g"):  # more may have been typed already
                whole = key.endswith(("\n", "\r"))
                key = "g " + (key[1:].strip() if whole else number_typed(handle, key[1:].strip()))
            yield ARROWS.get(key, key.strip().lower())


def number_typed(handle: int, typed: str) -> str:
    print(f"to step {typed}", end="", flush=True)
    while (key := os.read(handle, 1).decode("ascii", "replace")) not in ("\n", "\r", ""):
        typed = typed[:-1] if key in ("\x7f", "\b") else typed + key
        print(f"\rto step {typed} \b", end="", flush=True)
    print()
    return typed.strip()
