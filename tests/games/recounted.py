"""Games played by a pool, and what a slow look at each of them counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reference.cage2.draws import Generator
from reference.cage2.game import action_of
from reference.cage2.network import HOSTS
from reference.cage2.options import Episode
from reference.kuhhandel.game import Kuhhandel
from reference.kuhhandel.rules import total
from reference.philox import CHANCE, Philox
from reference.skull_king.game import SkullKing
from sparring import Lineup, Pool, State
from sparring.games import shogi

Counted = Counter[tuple[str, int]]
"""By counter and seat."""


@dataclass
class Played:
    """The first episode of one of a pool's games."""

    game: int
    actions: list[np.ndarray] = field(default_factory=list)
    """Of every step, a line per row."""
    policy: Sequence[int] = ()
    """By seat, 0 is the learner."""


def play(pool: Pool) -> list[Played]:
    """Play every game once with random actions; nothing after its end is counted."""
    rules = pool.rules
    batch = pool.reset()
    games = [Played(game) for game in range(pool.num_games)]
    while not pool.left_out.all():
        actions = pool.sample_actions().copy()
        by_game = actions.reshape(pool.num_games, rules.rows, -1)
        for game in np.flatnonzero(pool.left_out == 0):
            games[game].actions.append(by_game[game])
        batch = pool.step(actions)
        for at, game in enumerate(batch.final_game):
            if not pool.left_out[game]:
                games[game].policy = batch.final_policy[at].tolist()
                pool.left_out[game] = 1
    return games


def mixed_lineup(seats: int) -> Lineup:
    """The learner in every other seat, somebody else between; shuffled."""
    return Lineup(tuple(seat % 2 for seat in range(seats)), shuffle=True)


def recount(pool: Pool, games: Sequence[Played], look: Callable[..., Counted]) -> dict[str, int]:
    """Add up what a slow look finds at the learner's seats."""
    sums: Counter[str] = Counter()
    for played in games:
        for (name, seat), amount in look(pool, played).items():
            if played.policy[seat] == 0:
                sums[name] += amount
    return {name: sums[name] for name in pool.rules.counters}


def whole_config(pool: Pool) -> dict[str, Any]:
    return dict(pool.rules.config)


def skull_king(pool: Pool, played: Played) -> Counted:
    """From the twin's own account of every finished round."""
    config = whole_config(pool)
    del config["reward"]  # the twin pays all parts
    config["rounds"] = [cards for cards in config["rounds"] if cards]
    game = SkullKing(config, Philox(pool.seed, played.game, 1, CHANCE))
    game.reset()
    found: Counted = Counter()
    for action in played.actions:
        number, before = game.round, game.last_round
        game.step(int(action[0, 0]))
        if game.last_round is before:
            continue
        for seat in range(game.num_players):
            last = {name: values[seat] for name, values in game.last_round.items()}
            found[f"played {number}", seat] += 1
            found[f"kept {number}", seat] += last["won"] == last["bid"]
            found[f"over {number}", seat] += max(last["won"] - last["bid"], 0)
            found[f"under {number}", seat] += max(last["bid"] - last["won"], 0)
            found[f"points {number}", seat] += last["points"]
    assert game.terminated
    return found


class CountingKuhhandel(Kuhhandel):
    """The twin, with a tally."""

    def start(self) -> Counted:
        self.found: Counted = Counter()
        self.reset()
        return self.found

    def _start_auction(self) -> None:
        for seat in range(self.num_players):
            self.found["lots", seat] += seat != self.turn
        super()._start_auction()

    def _raise(self, bid: int) -> None:
        self.found["bids", self.seat] += 1
        self.found["bluff bids", self.seat] += bid > total(self.money[self.seat])
        super()._raise(bid)

    def _finish_payment(self) -> None:
        payer = self.pile.payer
        kept = payer == self.now.auctioneer
        self.found["lots kept" if kept else "lots won", payer] += 1
        before = total(self.money[payer])
        super()._finish_payment()
        self.found["money paid", payer] += before - total(self.money[payer])

    def _lay_offer(self) -> None:
        self.found["offers", self.seat] += 1
        self.found["bluffs", self.seat] += total(self.pile.selected) == 0
        super()._lay_offer()

    def _finish_trade(self, winner: int, payment: int, counter_cards: int) -> None:
        for seat in (self.deal.challenger, self.deal.target):
            self.found["trades", seat] += 1
            self.found["trades won", seat] += seat == winner
        super()._finish_trade(winner, payment, counter_cards)


def kuhhandel(pool: Pool, played: Played) -> Counted:
    game = CountingKuhhandel(whole_config(pool), Philox(pool.seed, played.game, 1, CHANCE))
    found = game.start()
    for action in played.actions:
        game.step(int(action[0, 0]))
    assert game.over
    for seat, animals in enumerate(game.animals):
        found["games", seat] += 1
        found["quartets", seat] += animals.count(4)
    return found


def cage2(pool: Pool, played: Played) -> Counted:
    episode = Episode(whole_config(pool), Generator(Philox(pool.seed, played.game, 1, CHANCE)))
    game, found = episode.game, Counter[tuple[str, int]]()

    def held() -> set[str]:
        return {host for host in HOSTS if host != "User0" and game.level(host) == 2}

    for action in played.actions:
        before = held()
        report, judged = episode.step(int(action[0, 0]))
        family, _ = action_of(episode.last_action)
        found["lost", 0] += len(held() - (before - {report.restored}))
        found["held", 0] += len(held())
        found["stopped", 0] += not game.service_up
        found["restores", 0] += report.restored is not None
        found["removes", 0] += family == "Remove"
        found["decoys", 0] += report.placed is not None
        found["steps", 0] += 1
        found["repairs", 0] += judged != 0
        found["in order", 0] += judged > 0
    assert episode.over
    found["games", 0] += 1
    return found


def replayed(pool: Pool, played: Played) -> State:
    """The native game from its beginning, alone."""
    return State(pool.rules, pool.seed, pool.rules.weights(None), game=played.game)


def laser_hockey(pool: Pool, played: Played) -> Counted:
    """From what the position says before and after every step."""
    state, found = replayed(pool, played), Counter[tuple[str, int]]()
    for actions in played.actions:
        before = state.fields()
        state.apply(actions if pool.rules.box else actions[:, 0])
        after = state.fields()
        begun = int(after["touching"][0]) & ~int(before["touching"][0])
        for seat in (0, 1):
            kept, keeps = int(before["keep"][seat]), int(after["keep"][seat])
            found["steps", seat] += 1
            found["held", seat] += kept > 0
            found["touches", seat] += begun >> seat & 1
            # A kept puck is kept one step less, or it was shot; then it may be caught again.
            found["shots", seat] += kept > 0 and keeps != kept - 1
    assert state.over
    winner = int(state.fields()["winner"][0])
    for seat, side in enumerate((1, -1)):
        found["games", seat] += 1
        found["goals", seat] += winner == side
        found["conceded", seat] += winner == -side
    return found


def pieces(sfen: str, color: int) -> tuple[int, int, int]:
    """Pieces of a color on the board, promoted ones among them, and those in hand."""
    board, _, hands, _ = sfen.split()
    mine = str.isupper if color == 0 else str.islower
    there = [(sign, letter) for sign, letter in re.findall(r"(\+?)([A-Za-z])", board)]
    held = re.findall(r"(\d*)([A-Za-z])", hands)
    return (
        sum(mine(letter) for _, letter in there),
        sum(bool(sign) and mine(letter) for sign, letter in there),
        sum(int(count or 1) for count, letter in held if mine(letter)),
    )


def shogi_game(pool: Pool, played: Played) -> Counted:
    """From the positions as text."""
    state, found = replayed(pool, played), Counter[tuple[str, int]]()
    sfen = shogi.read_sfen(state)
    for action in played.actions:
        seat = state.seat
        own, other = pieces(sfen, seat), pieces(sfen, 1 - seat)
        state.apply(int(action[0, 0]))
        sfen = shogi.read_sfen(state)
        now, others = pieces(sfen, seat), pieces(sfen, 1 - seat)
        found["moves", seat] += 1
        found["captures", seat] += others[0] < other[0]
        found["drops", seat] += now[2] < own[2]
        found["promotions", seat] += now[1] > own[1]
        found["checks", seat] += int(state.fields()["in_check"][0])
    assert state.over
    for seat in (0, 1):
        found["games", seat] += 1
        found["plies", seat] += len(played.actions)
    return found
