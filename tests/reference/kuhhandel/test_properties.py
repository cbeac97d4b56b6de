"""What holds in every game of the slow Kuhhandel (section 19)."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

import pytest

from reference.kuhhandel import rewards
from reference.kuhhandel.game import Kuhhandel
from reference.kuhhandel.helpers import random_config, random_game
from reference.kuhhandel.rules import (
    ACTIONS,
    DONKEY_PAYOUTS,
    KINDS,
    MONEY_VALUES,
    QUARTET_VALUES,
    START_HAND,
    TRADE_PHASES,
    is_minimal_payment,
    stake,
)
from reference.philox import CHANCE, Philox


def check_cards(game: Kuhhandel) -> None:
    n = game.num_players
    expected = [count * n for count in START_HAND]
    for denomination in DONKEY_PAYOUTS[: game.donkeys]:
        expected[denomination] += n
    held = [sum(hand[d] for hand in game.money) for d in range(6)]
    assert held == expected
    payouts = sum(MONEY_VALUES[d] for d in DONKEY_PAYOUTS[: game.donkeys])
    assert game.circulation() == n * (90 + payouts) <= 940 * n
    for kind in range(KINDS):
        under = game.auction is not None and game.now.animal == kind
        assert sum(own[kind] for own in game.animals) + game.deck.count(kind) + under == 4
    assert min(min(hand) for hand in game.money) >= 0
    assert min(min(own) for own in game.animals) >= 0


def check_knowledge(game: Kuhhandel) -> None:
    for p in game.players:
        assert game.known[p][p] == game.money[p]
        for q in game.players:
            for d in range(6):
                assert 0 <= game.known[p][q][d] <= game.money[q][d]


def check_move(before: Kuhhandel, game: Kuhhandel) -> None:
    """What one decision without skipping may change."""
    for player in game.players:
        for kind in range(KINDS):
            if before.animals[player][kind] == 4:
                assert game.animals[player][kind] == 4
    if before.phase in TRADE_PHASES:
        parties = {before.deal.challenger, before.deal.target}
        for player in set(game.players) - parties:
            assert game.money[player] == before.money[player]
            assert game.animals[player] == before.animals[player]
        changed = [
            (player, kind, game.animals[player][kind] - before.animals[player][kind])
            for player in game.players
            for kind in range(KINDS)
            if game.animals[player][kind] != before.animals[player][kind]
        ]
        if changed:
            count = stake(
                *(before.animals[player][before.deal.animal] for player in sorted(parties))
            )
            assert sorted(change for _, _, change in changed) == [-count, count]
            assert {kind for _, kind, _ in changed} == {before.deal.animal}
    if before.phase in ("DECIDE", "PAY") and game.events[-1][0] in (4, 5) and game.phase == "TURN":
        payer = game.events[-1][1]
        paid = [b - a for a, b in zip(game.money[payer], before.money[payer], strict=True)]
        assert is_minimal_payment(paid, before.now.high)
    raised = before.phase == "BID" and game.events[-1][0] == 2 and game.auction is not None
    if raised and game.now.high_bidder == before.seat:
        assert game.now.high > before.now.high


def test_random_games_keep_the_invariants() -> None:
    rng = random.Random(2024)
    for number in range(14):
        game, players, stream = random_game(rng, number)
        skips = game.config["skip_forced"]
        turns = 0
        while not game.over:
            check_cards(game)
            check_knowledge(game)
            legal = game.legal()
            assert legal == sorted(set(legal))
            assert legal
            assert legal[0] >= 0
            assert legal[-1] < ACTIONS
            if rng.random() < 0.05:
                state = copy.deepcopy(game.state())
                illegal = set(range(-1, ACTIONS + 1)) - set(legal)
                with pytest.raises(ValueError, match="illegal"):
                    game.step(rng.choice(sorted(illegal)))
                assert game.state() == state
            before = copy.deepcopy(game) if not skips and rng.random() < 0.15 else None
            turns += game.phase == "TURN"
            action = game.bot(players[game.seat], stream)
            assert action in legal
            terms = game.step(action)
            assert list(terms) == list(rewards.TERMS)
            for name in ("rank", "win", "score_zs"):
                assert abs(sum(terms[name])) < 1e-9
                assert game.terminated or not any(terms[name])
            if before is not None:
                check_move(before, game)
            if game.auction is not None:
                assert sum(game.now.exposed) <= game.num_players - 1
                assert max(game.now.last_bid) == game.now.high
        check_cards(game)
        check_knowledge(game)
        scores = game.scores()
        assert all(0 <= points <= 38500 for points in scores)
        if game.end == "quartets":
            assert not game.deck
            complete = [k for own in game.animals for k in range(KINDS) if own[k] == 4]
            assert sorted(complete) == list(range(KINDS))
            assert sum(QUARTET_VALUES[k] for k in complete) == 3850
            assert skips or turns >= 40
        else:
            assert game.end == "limit"
            assert game.decisions == game.config["max_decisions"]


def rotated(items: Sequence[Any], shift: int) -> list[Any]:
    return [items[(seat - shift) % len(items)] for seat in range(len(items))]


@pytest.mark.slow
def test_rotating_the_seats_rotates_the_game() -> None:
    rng = random.Random(99)
    for number in range(4):
        config = {**random_config(rng), "history": 1}
        base, turned = Kuhhandel(config, Philox(6, number, 0, CHANCE)), Kuhhandel(config)
        base.reset()
        n, shift = base.num_players, rng.randrange(1, base.num_players)
        start = Kuhhandel({**config, "skip_forced": 0}, Philox(6, number, 0, CHANCE))
        start.reset()
        turned.load(
            start.deck,
            rotated(start.animals, shift),
            rotated(start.money, shift),
            (start.turn + shift) % n,
        )
        while not base.over:
            assert turned.seat == (base.seat + shift) % n
            assert base.legal() == turned.legal()
            if rng.random() < 0.2:
                for player in range(n):
                    assert base.observe(player) == turned.observe((player + shift) % n)
            action = rng.choice(base.legal())
            terms, turned_terms = base.step(action), turned.step(action)
            for name, values in terms.items():
                assert turned_terms[name] == rotated(values, shift)
        assert turned.over


@pytest.mark.slow
def test_same_seed_same_game_and_copies_go_on_alike() -> None:
    rng = random.Random(13)
    for number in range(3):
        config = random_config(rng)
        games = [Kuhhandel(config, Philox(1, number, 5, CHANCE)) for _ in range(2)]
        for game in games:
            game.reset()
        games.append(copy.deepcopy(games[0]))
        while not games[0].over:
            action = rng.choice(games[0].legal())
            terms = [game.step(action) for game in games]
            assert terms[0] == terms[1] == terms[2]
            states = [game.state() for game in games]
            assert states[0] == states[1] == states[2]
            if rng.random() < 0.02:
                games[2] = copy.deepcopy(games[1])
