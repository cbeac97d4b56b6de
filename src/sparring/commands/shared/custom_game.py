"""One game of a custom environment, step by step, and playing it in the terminal.

Actions are typed by number or by name.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from sparring.commands.shared.players import player_called, with_strength
from sparring.commands.shared.thinking import MAX_LINE, describe_search
from sparring.config.commands import PlayConfig
from sparring.errors import ConfigError
from sparring.games.flags import split_list
from sparring.games.rules import Rules
from sparring.league.players import BatchPlayer, Player, name_of, random_player
from sparring.nets.stateful_player import StatefulPlayer
from sparring.pools.custom.cache import (
    cached_pool,
    check_same,
    factory_of,
    modes_of,
    tables_of,
)
from sparring.pools.custom.faults import env_errors

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

TEXT = "ansi"
MAX_NUMBERS = 40
"""Longer observations are shown without zeros."""


class CustomGame:
    """A single custom environment, with the return of every seat."""

    def __init__(self, name: str, rules: Rules, mode: str = "") -> None:
        """Make the environment of a policy. name: of the policy, for messages."""
        word = factory_of(rules)
        pool = cached_pool(word, 1, mode)
        if not tables_of(pool):
            raise ConfigError(
                f"{word} makes a vector; a single game needs a factory of a single environment"
            )
        check_same(name, rules, pool.rules)
        self.word, self.rules, self.table = word, pool.rules, tables_of(pool)[0]
        self.pool = pool
        self.env = self.table.env
        self.score = np.zeros(pool.rules.seats)
        self.steps = self.seed = 0
        self._stateful: dict[tuple[int, int], StatefulPlayer] = {}
        """Players with their memory, by player and seat."""

    @property
    def modes(self) -> list[str]:
        return modes_of(self.env)

    @property
    def over(self) -> bool:
        return self.table.over

    @property
    def end(self) -> str:
        return "truncated" if self.table.truncated.any() else "terminated"

    def start(self, seed: int) -> None:
        with env_errors(f"{self.rules.name} failed in its reset"):
            self.table.start(seed)
            self.table.check()
        self.score[:] = 0
        self.steps, self.seed = 0, seed
        self._stateful.clear()

    def asked(self) -> list[tuple[int, int]]:
        return [(row, seat) for row, seat in enumerate(self.table.deciding()) if seat >= 0]

    def legal(self, seat: int) -> list[int]:
        """Return the legal actions of a seat, numbered from 0."""
        return [int(action) for action in np.flatnonzero(self.table.mask[seat])]

    def answer(self, player: BatchPlayer, seat: int, *, greedy: bool = True) -> Any:
        """Return the action of a player in a seat, once per step; updates its memory."""
        stateful = self._stateful.setdefault((id(player), seat), StatefulPlayer(player))
        obs = self.rules.pack(self.table.numbers[seat][None])
        mask = self.table.mask[seat][None]
        row = self.table.deciding().index(seat)
        how: dict[str, Any] = {"greedy": greedy, "seed": self.seed}
        how["roots"] = [(self.pool, np.array([row]))]
        return stateful.decide(seat, obs, mask, rollout=seat, step=self.steps, **how)

    def play(self, actions: Sequence[tuple[int, Any]]) -> None:
        rules = self.rules
        shape = (rules.rows, rules.box) if rules.box else (rules.rows,)
        by_row: npt.NDArray[Any] = np.zeros(shape, np.float32 if rules.box else np.int64)
        for row, action in actions:
            by_row[row] = action
        self.table.reward.fill(0)
        with env_errors(f"{rules.name} failed in step {self.steps + 1}"):
            self.table.play(rules.env_actions(by_row))
            self.table.check()
        self.score += self.table.reward
        self.steps += 1

    def render(self) -> Any:
        with env_errors(f"{self.rules.name}: render() failed"):
            return self.env.render()


def custom_player(player: Player, rules: Rules) -> BatchPlayer:
    return random_player(rules) if isinstance(player, str) else player


def custom_players(words: Sequence[str], rules: Rules, seats: int, what: str) -> list[BatchPlayer]:
    """Return one player per seat; a single one plays all of them."""
    return [custom_player(player, rules) for player in named_players(words, rules, seats, what)]


def named_players(words: Sequence[str], rules: Rules, seats: int, what: str) -> list[Player]:
    """Return one player per seat, of which bots are still names."""
    known = {word: player_called(word, rules) for word in dict.fromkeys(words)}
    players = [known[word] for word in words]
    if len(players) == 1:
        players *= seats
    if len(players) != seats:
        raise ConfigError(
            f"{what} names {len(players)} players for {seats} seats; give 1 or {seats}"
        )
    return players


def play_custom(config: PlayConfig, policy: Policy) -> int:
    """Play one game against the policy, or in its place if there is one seat."""
    rules = policy.rules
    if rules.box:
        raise ConfigError(
            f"{rules.name} has continuous actions; watch it: sparring render {config.game}"
        )
    if not 0 <= config.seat < rules.seats:
        raise ConfigError(f"--seat {config.seat} is outside 0..{rules.seats - 1}")
    if config.against and rules.seats == 1:
        raise ConfigError(f"--against {config.against}: {rules.name} has one seat; leave it out")
    words = split_list(config.against)
    others: list[Player] = [policy] * (rules.seats - 1)
    if words:
        others = named_players(words, rules, rules.seats - 1, "--against")
    seats = [seat for seat in range(rules.seats) if seat != config.seat]
    strong = with_strength(dict(zip(seats, others, strict=True)), config) if others else {}
    (adviser,) = with_strength({config.seat: policy}, config).values()
    players = {seat: custom_player(player, rules) for seat, player in strong.items()}
    game = CustomGame(policy.name, rules, TEXT)
    game.start(secrets.randbelow(10**6) if config.seed is None else config.seed)
    TerminalGame(game, config.seat, players, custom_player(adviser, rules)).play(config.game)
    return 0


class TerminalGame:
    """One game of a person in the terminal."""

    def __init__(
        self, game: CustomGame, user_seat: int, others: dict[int, BatchPlayer], adviser: BatchPlayer
    ) -> None:
        self.game, self.user_seat, self.others, self.adviser = game, user_seat, others, adviser
        self.thought: list[str] = []
        """The last search of another player."""

    def play(self, word: str) -> None:
        game, rules = self.game, self.game.rules
        print(rules.title)
        if self.others:
            names = ", ".join(dict.fromkeys(name_of(player) for player in self.others.values()))
            print(f"You sit in seat {self.user_seat} of {rules.seats} against {names}.")
        print(f"Seed {game.seed}. ? hint, w why, q quit.")
        while not game.over:
            actions = []
            for row, seat in game.asked():
                if seat == self.user_seat:
                    action = self.decide()
                    if action is None:
                        print("Good bye.")
                        return
                else:
                    action, self.thought = self.answer(self.others[seat], seat)
                    print(f"seat {seat}: {rules.action_name(action)}")
                actions.append((row, action))
            game.play(actions)
            for paid in np.flatnonzero(game.table.reward):
                print(f"{self.whose(int(paid))}: {game.table.reward[paid]:+g}")
        print("", self.shown(), f"{game.end} after {game.steps} steps", sep="\n")
        for seat, score in enumerate(game.score):
            print(f"{self.whose(seat)}: return {score:g}")
        print(f"Play it again: sparring play {word} --seat {self.user_seat} --seed {game.seed}")

    def answer(self, player: BatchPlayer, seat: int) -> tuple[int, list[str]]:
        """Return the action of a player, and what its search saw if it searches."""
        game, budget = self.game, getattr(player, "budget", None)
        if not budget:
            return int(game.answer(player, seat)), []
        policy = cast("Policy", player)
        options = {"seed": game.seed, "noise": policy.greedy is False}
        search = policy.searches.search(policy, game.rules, 1, **options)
        found = search.from_pool(cast(Any, game.pool), np.array([0]))
        line = [game.rules.action_name(action) for action in search.line()[:MAX_LINE]]
        lines = describe_search(policy.name, found, game.rules.action_name, line)
        return int(found.action[0]), lines

    def whose(self, seat: int) -> str:
        return "you" if seat == self.user_seat else f"seat {seat}"

    def decide(self) -> int | None:
        """Show the position and return the action of the user; None: quit."""
        game = self.game
        advice, thought = self.answer(self.adviser, self.user_seat)  # always: updates its memory
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
                print(*thought, sep="\n", end="\n" * bool(thought))
            elif typed == "w":
                print(*self.thought or ["Nobody has searched yet."], sep="\n")
            else:
                print(f"{typed!r} is not legal; type one of {legal}.")

    def choices(self) -> dict[int, tuple[str, str]]:
        """Return what may be typed for every legal action: the env's number, and its name."""
        rules, found = self.game.rules, {}
        for action in self.game.legal(self.user_seat):
            number, name = str(action + rules.first_action), rules.action_name(action)
            found[action] = number, "" if name == number else name
        return found

    def shown(self) -> str:
        """Return the rendered text of the environment, or the user's observation."""
        if TEXT in self.game.modes:
            text = self.game.render()
            if text is not None:
                return str(text.getvalue() if hasattr(text, "getvalue") else text).rstrip("\n")
        numbers = self.game.table.numbers[self.user_seat]
        names = [feature.name for feature in self.game.rules.features]
        named = list(zip(names, numbers, strict=True))
        if len(named) > MAX_NUMBERS:
            named = [(name, number) for name, number in named if number]
        return "  ".join(f"{name} {number:.4g}" for name, number in named)
