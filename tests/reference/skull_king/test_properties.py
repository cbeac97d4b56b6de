"""What holds in every game of the slow Skull King (section 22)."""

from __future__ import annotations

import copy
import math
import random

import pytest

from reference.philox import CHANCE, Philox
from reference.skull_king import rewards
from reference.skull_king.game import SkullKing
from reference.skull_king.helpers import random_config, random_step
from reference.skull_king.rules import NO_SUIT, SUIT, UNDECIDED


def check_state(game: SkullKing) -> None:
    everywhere = [card for hand in game.hands for card in hand]
    everywhere += [card for cards in game.played for card in cards]
    everywhere += game.stock + game.discards
    assert sorted(everywhere) == game.deck
    sizes = [len(hand) for hand in game.hands]
    if game.phase == "DISCARD":
        sizes[game.seat] -= game.pending
    assert max(sizes) - min(sizes) <= (1 if game.trick else 0)
    if game.trick:
        on_table = {seat for seat, _, _ in game.trick}
        assert {s for s in range(game.seats) if sizes[s] == min(sizes)} == on_table
    state = game.state()
    assert state["hands"] == game.hands
    if game.ghost is not None:
        assert sorted(game.ghost_order) == game.hands[game.ghost]
        assert game.void[game.ghost] == [False] * 4
    if game.terminated:
        assert game.legal() == []
        return
    legal = game.legal()
    assert legal
    assert legal == sorted(set(legal))
    assert legal[-1] < game.action_count
    if game.config["skip_forced"]:
        assert len(legal) > 1
    if game.phase == "PLAY":
        hand = game.hands[game.seat]
        playable = {71 if action == 85 else action - 11 for action in legal}
        assert playable <= set(hand)
        suit = game.follow()
        if suit not in (UNDECIDED, NO_SUIT) and any(SUIT[card] == suit for card in hand):
            allowed = {None, suit, 0} if game.config["follow_rule"] == "SEED" else {None, suit}
            assert all(SUIT[card] in allowed for card in playable)


def check_observation(game: SkullKing, observer: int) -> None:
    vector = game.observe(observer)
    assert len(vector) == game.observation_size()
    assert all(isinstance(value, float) and math.isfinite(value) for value in vector)
    assert sum(vector[:74]) == len(game.hands[observer])
    blocks = game.seats + 1 if game.config["obs"] == "FULL" else 2
    for card in range(74):
        assert sum(vector[74 * block + card] for block in range(blocks)) <= 1


def check_round(game: SkullKing, destroyed: int) -> None:
    last = game.last_round
    assert last is not None
    for player in range(game.num_players):
        bid, won, cards = last["bid"][player], last["won"][player], last["cards"][player]
        points, exact = last["points"][player], bid == won
        extra = 20 if game.config["abilities"] else 0
        assert -10 * cards - extra <= points <= 20 * cards + 280 + extra
        assert 0 <= last["loot_exact"][player] <= last["loot"][player] <= 2
        if game.config["scoring"] == "SKULL_KING":
            assert points % 10 == 0
            assert points <= 0 or exact
    leviathans = game.config["deck"] == "FULL74"
    assert 0 <= destroyed <= (2 if leviathans else 0)
    assert sum(last["loot"]) % 2 == 0


def test_random_games_keep_the_invariants() -> None:
    rng = random.Random(2024)
    for number in range(60):
        game = SkullKing(random_config(rng), Philox(4, number, 0, CHANCE))
        game.reset()
        finished = 0
        while not game.terminated:
            check_state(game)
            if rng.random() < 0.2:
                check_observation(game, rng.randrange(game.num_players))
            if rng.random() < 0.1:
                before = copy.deepcopy(game.state())
                illegal = set(range(-1, game.action_count + 1)) - set(game.legal())
                with pytest.raises(ValueError, match="illegal"):
                    game.step(rng.choice(sorted(illegal)))
                assert game.state() == before
            round_before, cards = game.round, game.cards
            parts = random_step(game, rng)
            assert list(parts) == list(rewards.PARTS)
            for name in ("score_delta_zs", "rank", "win"):
                assert abs(sum(parts[name])) < 1e-6
            if game.terminated or game.round != round_before:
                finished += 1
                assert game.last_round is not None
                # The ghost's tricks are only known while the round stands.
                if game.terminated:
                    check_round(game, cards - sum(game.won))
                elif game.ghost is None:
                    check_round(game, cards - sum(game.last_round["won"]))
        check_state(game)
        for player in range(game.num_players):
            check_observation(game, player)
        one_round = game.config["episode"] == "ROUND"
        assert finished == (1 if one_round else len(game.config["rounds"]))


def test_rotating_the_seats_rotates_the_trajectory() -> None:
    rng = random.Random(99)
    for number in range(12):
        config = {**random_config(rng), "episode": "ROUND", "history": 1}
        config.pop("start_round", None)
        base = SkullKing(config, Philox(6, number, 0, CHANCE))
        turned = SkullKing(config, Philox(6, number, 1, CHANCE))
        base.reset()
        players, shift = base.num_players, rng.randrange(1, base.num_players)
        hands = [list(hand) for hand in base.hands]
        if base.ghost is not None:
            hands[base.ghost] = list(base.ghost_order)
        scores = [10 * rng.randint(-20, 20) for _ in range(players)]
        moved = [hands[(seat - shift) % players] for seat in range(players)] + hands[players:]
        moved_scores = [scores[(seat - shift) % players] for seat in range(players)]
        leader = base.leader
        base.load_round(base.round, hands, leader, scores)
        turned.load_round(base.round, moved, (leader + shift) % players, moved_scores)
        turned.chance = copy.deepcopy(base.chance)
        while not base.terminated:
            assert turned.seat == (base.seat + shift) % players
            for player in range(players):
                assert base.observe(player) == turned.observe((player + shift) % players)
            assert base.legal() == turned.legal()
            action = rng.choice(base.legal())
            parts, turned_parts = base.step(action), turned.step(action)
            for name, values in parts.items():
                for player, value in enumerate(values):
                    assert turned_parts[name][(player + shift) % players] == value
        assert turned.terminated


def test_same_seed_same_game_and_copies_go_on_alike() -> None:
    rng = random.Random(13)
    for number in range(15):
        config = random_config(rng)
        games = [SkullKing(config, Philox(1, number, 5, CHANCE)) for _ in range(2)]
        for game in games:
            game.reset()
        games.append(copy.deepcopy(games[0]))
        while not games[0].terminated:
            action = rng.choice(games[0].legal())
            parts = [game.step(action) for game in games]
            assert parts[0] == parts[1] == parts[2]
            states = [game.state() for game in games]
            assert states[0] == states[1] == states[2]
            if rng.random() < 0.05:
                games[2] = copy.deepcopy(games[1])
