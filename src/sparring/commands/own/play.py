"""A person in an environment of somebody's own: actions are typed by number, or by name."""

from __future__ import annotations

import secrets
import sys

import numpy as np

from sparring.commands.shared.own_game import OwnGame, own_players
from sparring.config.commands import PlayConfig
from sparring.errors import ConfigError
from sparring.league.players import Seated, name_of
from sparring.nets.policy import Policy

TEXT = "ansi"
MOST_NUMBERS = 40
"""Longer observations are shown without what is 0."""


def run(config: PlayConfig, policy: Policy) -> int:
    """Play one game against the policy, or instead of it where there is one seat."""
    rules = policy.rules
    if rules.box:
        raise ConfigError(
            f"{rules.name} has continuous actions, which nobody types; watch it: sparring render "
            f"{config.game}"
        )
    if not 0 <= config.seat < rules.seats:
        raise ConfigError(f"--seat {config.seat} is outside 0..{rules.seats - 1}")
    if config.against and rules.seats == 1:
        raise ConfigError(f"--against {config.against}: {rules.name} has one seat; leave it out")
    words = [word.strip() for word in config.against.split(",") if word.strip()]
    others: list[Seated] = [policy] * (rules.seats - 1)
    if words:
        others = own_players(words, rules, rules.seats - 1, "--against")
    game = OwnGame(policy.name, rules, TEXT)
    game.start(secrets.randbelow(10**6) if config.seed is None else config.seed)
    seats = [seat for seat in range(rules.seats) if seat != config.seat]
    Table(game, config.seat, dict(zip(seats, others, strict=True)), policy).play(config.game)
    return 0


class Table:
    """One game at one terminal."""

    def __init__(
        self, game: OwnGame, person: int, others: dict[int, Seated], adviser: Seated
    ) -> None:
        self.game, self.person, self.others, self.adviser = game, person, others, adviser

    def play(self, word: str) -> None:
        """Take turns until the game is over."""
        game, rules = self.game, self.game.rules
        print(rules.title)
        if self.others:
            names = ", ".join(dict.fromkeys(name_of(player) for player in self.others.values()))
            print(f"You sit in seat {self.person} of {rules.seats} against {names}.")
        print(f"Seed {game.seed}. ? hint, q quit.")
        while not game.over:
            actions = []
            for row, seat in game.asked():
                if seat == self.person:
                    action = self.decide()
                    if action is None:
                        print("Good bye.")
                        return
                else:
                    action = int(game.answer(self.others[seat], seat))
                    print(f"seat {seat}: {rules.action_name(action)}")
                actions.append((row, action))
            game.play(actions)
            for paid in np.flatnonzero(game.table.reward):
                print(f"{self.whose(int(paid))}: {game.table.reward[paid]:+g}")
        print("", self.shown(), f"{game.end} after {game.steps} steps", sep="\n")
        for seat, score in enumerate(game.score):
            print(f"{self.whose(seat)}: return {score:g}")
        print(f"Play it again: sparring play {word} --seat {self.person} --seed {game.seed}")

    def whose(self, seat: int) -> str:
        """What a seat is called."""
        return "you" if seat == self.person else f"seat {seat}"

    def decide(self) -> int | None:
        """Show the position and return what the person wants; None: to leave."""
        game = self.game
        advice = int(game.answer(self.adviser, self.person))  # asked or not: it is to remember
        choices = self.choices()
        named = any(name for _, name in choices.values())
        shown = (f"{number}: {name}" if named else number for number, name in choices.values())
        legal = ("  " if named else " ").join(shown)
        print("", self.shown(), f"legal: {legal}", sep="\n")
        while True:
            print("> ", end="", flush=True)
            line = sys.stdin.readline()
            typed = line.strip()
            if not sys.stdin.isatty():
                print(typed)
            if not line or typed in ("q", "quit"):
                return None
            for action, words in choices.items():
                if typed and typed.lower() in map(str.lower, words):
                    return action
            if typed == "?":
                print(f"{name_of(self.adviser)} would choose: {game.rules.action_name(advice)}")
            else:
                print(f"That is no choice here; type one of {legal}.")

    def choices(self) -> dict[int, tuple[str, str]]:
        """What may be typed for every legal action: the env's own number, and its name if any."""
        rules, found = self.game.rules, {}
        for action in self.game.legal(self.person):
            number, name = str(action + rules.first_action), rules.action_name(action)
            found[action] = number, "" if name == number else name
        return found

    def shown(self) -> str:
        """The environment's own text, or what the person's seat observes."""
        if TEXT in self.game.modes:
            text = self.game.render()
            if text is not None:
                return str(text.getvalue() if hasattr(text, "getvalue") else text).rstrip("\n")
        numbers = self.game.table.numbers[self.person]
        names = [feature.name for feature in self.game.rules.features]
        named = list(zip(names, numbers, strict=True))
        if len(named) > MOST_NUMBERS:
            named = [(name, number) for name, number in named if number]
        return "  ".join(f"{name} {number:.4g}" for name, number in named)
