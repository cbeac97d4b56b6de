"""`sparring play`: a person against bots or trained agents in the terminal."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sparring.commands.shared.custom_game import play_custom
from sparring.commands.shared.players import load_with_flags, player_called, with_strength
from sparring.commands.shared.playing import choose, searches, with_memory
from sparring.commands.shared.printing import make_console, print_styled
from sparring.commands.shared.thinking import Thought
from sparring.config.commands import PlayConfig
from sparring.errors import ConfigError, SparringError
from sparring.games import Rules, State, game_names, new_state
from sparring.games.flags import changed_flags, flags_as_options, read_rules, split_list
from sparring.games.lookup import game_module
from sparring.games.recorded import Replay
from sparring.games.terminal import ActionChoice, match_choices, terminal_of
from sparring.league.players import Player, name_of
from sparring.nets.levels import LEVELS
from sparring.nets.stateful_player import Memories, StatefulPlayer
from sparring.output_files import check_file
from sparring.pools.custom.cache import is_custom
from sparring.pygames.registry import is_python_game
from sparring.store.champions import CHAMPION, champion_games
from sparring.store.lookup import find_bot, locate, split_style, unknown_name_error

with contextlib.suppress(ImportError):
    import readline  # noqa: F401  (arrow keys and history for input())


if TYPE_CHECKING:
    pass

KEYS = ("h", "help", "?", "hint", "w", "why", "u", "undo", "q", "quit")
"""Keys that work at every prompt besides its choices."""
PAGE = "page.js"
"""File of a game that a browser can play."""


class Quit(Exception):  # noqa: N818
    """The user quits."""


class TakeBack(Exception):  # noqa: N818
    """The user takes the last move back."""


def run(config: PlayConfig) -> int:
    agent, rules = read_game(config)
    if is_custom(rules):
        assert not isinstance(agent, str | None)
        if config.save:
            raise ConfigError(f"--save is for native games, not {rules.name}; leave it out")
        return play_custom(config, agent)
    if rules.box or rules.rows > 1:
        watched = config.game if agent else f"{rules.name}:{rules.bots[-1]}"
        raise ConfigError(f"{rules.name} is not played in turns; {instead(rules.name, watched)}")
    if not 0 <= config.seat < rules.seats:
        raise ConfigError(f"--seat {config.seat} is outside 0..{rules.seats - 1}")
    if config.save:
        check_file(config.save, "--save", new=True)
    others = seat_others(rules, config.seat, config.against, usual_player(config, agent, rules))
    others = with_strength(others, config)
    seed = secrets.randbelow(10**6) if config.seed is None else config.seed
    policies = [player for player in others.values() if not isinstance(player, str)]
    adviser = next(iter(policies), agent or rules.bots[-1])
    game = PlaySession(rules, config.seat, others, seed, adviser)
    try:
        game.play()
    except (Quit, EOFError):
        game.echo("Good bye.")
    finally:
        if config.save and game.actions:
            game.replay().write(config.save)
            game.echo(f"Saved; watch it: sparring replay {config.save}")
    return 0


def instead(game: str, watched: str) -> str:
    """Return where to play or watch a game that a terminal cannot show."""
    folder, ways = game_module(game), []
    if folder and folder.__file__ and Path(folder.__file__).with_name(PAGE).is_file():
        ways.append("play it in a browser, under Play: sparring serve --open")
    if game_module(game, "picture"):
        ways.append(f"watch it: sparring render {watched}")
    return "; ".join(ways) or "try another"


def read_game(config: PlayConfig) -> tuple[Player | None, Rules]:
    if config.game in game_names() or is_python_game(config.game):
        return None, read_rules(config.game, config.set)
    if locate(split_style(config.game)[0]) is not None:
        return load_with_flags(config.game, config.set)
    bot, games = find_bot(config.game)
    if bot:
        raise ConfigError(
            f"{config.game} is a bot; play against it: sparring play {games[0]} --against {bot}"
        )
    raise unknown_name_error(config.game, what="game or run")


def usual_player(config: PlayConfig, agent: Player | None, rules: Rules) -> Player:
    """Return who takes the other seats: the agent, the champion, or a bot.

    A level without either is one of the bots, which are in order of their strength.
    """
    if agent is None and not config.against and rules.name in champion_games():
        try:
            return player_called(CHAMPION, rules)
        except SparringError as error:
            print(f"{error}; a bot plays instead", file=sys.stderr)
    if agent is not None or not config.level:
        return agent or rules.bots[-1]
    return rules.bots[(config.level - 1) * len(rules.bots) // max(LEVELS)]


def seat_others(rules: Rules, person: int, against: str, usual: Player) -> dict[int, Player]:
    names = split_list(against)
    known = {name: player_called(name, rules) for name in names}
    players = [known[name] for name in names] or [usual]
    others = [seat for seat in range(rules.seats) if seat != person]
    if len(players) == 1:
        players *= len(others)
    if len(players) != len(others):
        raise ConfigError(
            f"--against names {len(players)} players for {len(others)} seats; "
            f"give 1 or {len(others)}"
        )
    return dict(zip(others, players, strict=True))


class PlaySession:
    """One game of a person in the terminal."""

    def __init__(
        self,
        rules: Rules,
        person: int,
        others: dict[int, Player],
        seed: int,
        adviser: Player,
    ) -> None:
        # Forced moves are played here, so that the user sees them.
        self.skip_forced = forced = rules.skip_forced
        self.rules = rules = rules.changed({"skip_forced": 0})
        self.person, self.seed = person, seed
        *seated, self.adviser = with_memory([*others.values(), adviser], skip_forced=forced)
        self.others = dict(zip(others, seated, strict=True))
        known = {id(one): one for one in (*seated, self.adviser)}
        self.stateful = [one for one in known.values() if not isinstance(one, str)]
        """Players with memory."""
        self.terminal = terminal_of(rules, person)
        self.out = make_console()
        self.state = new_state(rules, seed=seed)
        self.undo: list[tuple[State, int, list[Memories]]] = []
        """Before each decision of the user: state, number of actions, memories."""
        self.actions: list[int] = []
        self.thought: Thought | None = None
        """The last search of another player."""

    def play(self) -> None:
        self.welcome()
        while not self.state.over:
            if self.state.seat != self.person:
                self.apply(self.answer(self.others[self.state.seat]))
                continue
            choices = self.terminal.numbered(self.state)
            if self.skip_forced and len(choices) == 1:
                self.take(choices[0])
                continue
            try:
                choice = self.decide(choices)
            except TakeBack:
                self.take_back()
                continue
            self.undo.append((self.state.clone(), len(self.actions), self.save_memories()))
            self.take(choice)
        self.echo("", self.terminal.result(self.state), "", f"Play it again: {self.command()}")

    def answer(self, player: StatefulPlayer | str) -> int:
        """Return the move of another player, and keep what its search saw."""
        action, thought = choose(player, self.state)
        self.thought = thought or self.thought
        return action

    def welcome(self) -> None:
        flags = "".join(f", {flag}" for flag in flags_as_options(changed_flags(self.rules)))
        self.echo(self.rules.title, style="bold")
        if self.others:
            seats = f"seat {self.person} of {self.rules.seats}"
            self.echo(f"You sit in {seats} against {self.against()}.")
        why = " w why," if any(map(searches, self.others.values())) else ""
        self.echo(f"Seed {self.seed}{flags}. h help, ? hint,{why} u undo, q quit.", "")

    def against(self) -> str:
        names = [name_of(player) for player in self.others.values()]
        return names[0] if len(set(names)) == 1 else ",".join(names)

    def command(self) -> str:
        flags = "".join(f" --set {flag}" for flag in flags_as_options(changed_flags(self.rules)))
        others = f"--seat {self.person} --against {self.against()} " if self.others else ""
        return f"sparring play {self.rules.name} {others}--seed {self.seed}{flags}"

    def replay(self) -> Replay:
        names = {self.person: "person"} | {at: name_of(one) for at, one in self.others.items()}
        players = [names[seat] for seat in range(self.rules.seats)]
        return Replay.of(self.state, self.actions, players)

    def take(self, choice: ActionChoice) -> None:
        """Play all actions of a choice; the adviser observes what the user saw."""
        for action in (choice.action, *choice.then):
            if not isinstance(self.adviser, str):
                self.adviser.observe(self.state)
            self.apply(action)

    def save_memories(self) -> list[Memories]:
        return [dict(player.memories) for player in self.stateful]

    def restore_memories(self, saved: Sequence[Memories]) -> None:
        for player, memories in zip(self.stateful, saved, strict=True):
            player.memories = dict(memories)

    def apply(self, action: int) -> None:
        before = self.state.clone()
        self.state.apply(action)
        self.actions.append(action)
        self.echo(*self.terminal.narrate(before, action, self.state))

    def decide(self, choices: Sequence[ActionChoice]) -> ActionChoice:
        self.echo("", self.terminal.show(self.state))
        while True:
            self.echo(f"        {self.terminal.list_choices(choices)}")
            typed = self.ask(f"{self.terminal.ask(self.state)}> ", choices)
            fitting = self.terminal.match(self.state, typed, choices)
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                narrowed = self.narrow(fitting)
                if narrowed is not None:
                    return narrowed
            else:
                self.echo("This is not a choice; type one of these, or h for help.")

    def narrow(self, fitting: Sequence[ActionChoice]) -> ActionChoice | None:
        """Ask which of several choices was meant; None if it stays unclear."""
        offered = [replace(choice, number=at) for at, choice in enumerate(fitting, 1)]
        options = ", ".join(f"{choice.number}:{choice.name}" for choice in offered)
        meant = match_choices(self.ask(f"which: {options}> ", offered), offered)
        return meant[0] if len(meant) == 1 else None

    def ask(self, prompt: str, choices: Sequence[ActionChoice]) -> str:
        """Read a line; help, hint, undo and quit work at every question.

        They never hide a choice: the name of a choice comes first, and an ambiguous letter is asked
        about. With a colon in front, input is always a key.
        """
        names = [choice.short.lower() for choice in choices]
        while True:
            line = self.read_line(prompt)
            key = line.removeprefix(":")
            begun = [name for name in names if line in KEYS and name.startswith(line)]
            if line in names:
                return line
            if begun:
                self.echo(f"Type :{line} for the key, or more of {', '.join(begun)}.")
            elif not self.press(key) and key:
                return line

    def press(self, key: str) -> bool:
        if key in ("q", "quit"):
            raise Quit
        if key in ("u", "undo"):
            raise TakeBack
        if key in ("h", "help"):
            self.echo(self.terminal.help())
        elif key in ("?", "hint"):
            self.hint()
        elif key in ("w", "why"):
            self.explain()
        elif key == "v" and self.terminal.next_view():
            self.echo("", self.terminal.show(self.state))
        else:
            return False
        return True

    def read_line(self, prompt: str) -> str:
        """Return the input; lines of a pipe are echoed, so that the transcript is readable."""
        if sys.stdin.isatty() and sys.stdout.isatty():
            try:
                return input(prompt).strip().lower()
            except EOFError:
                self.echo("")
                raise
        line = sys.stdin.readline()
        if not line:
            self.echo(prompt)
            raise EOFError
        self.echo(f"{prompt}{line.strip()}")
        return line.strip().lower()

    def hint(self) -> None:
        held = self.save_memories()
        thoughts: list[Thought | None] = []

        def advise(state: State) -> int:
            action, thought = choose(self.adviser, state)
            thoughts.append(thought)
            return action

        advice = self.terminal.advice(self.state.clone(), advise)
        self.restore_memories(held)
        self.echo(f"{name_of(self.adviser)} would choose: {advice}")
        if thoughts[0]:
            self.echo(*thoughts[0].lines(self.terminal))

    def explain(self) -> None:
        """Show the search before the last move of another player."""
        if self.thought:
            self.echo(*self.thought.lines(self.terminal))
        else:
            self.echo("No search to show: the others have not moved, or do not search (--search).")

    def take_back(self) -> None:
        if self.undo:
            self.state, played, held = self.undo.pop()
            del self.actions[played:]
            self.restore_memories(held)
            self.echo("", "Taken back.")
        else:
            self.echo("There is nothing to take back.")

    def echo(self, *lines: str, style: str = "") -> None:
        print_styled(self.out, lines, self.terminal.styles, style)
