"""The vectors of the specification, played through the native game."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparring
from sparring.games.skull_king import load_round
from vectors import skull_king as vectors

ALL_CARDS = range(74)
PLAY, ROSIE = 2, 3


def started(
    hands: list[list[int]], leader: int, bids: list[int] | None = None, **config: Any
) -> sparring.State:
    """A one-round game with these hands, bids placed."""
    players = config.setdefault("num_players", len(hands))
    size = len(hands[0])
    config = {"rounds": [size], "episode": "ROUND", "start_round": 1, **config}
    state = load_round(1, hands, leader, config=config)
    for turn in range(players):
        state.apply(bids[(leader + turn) % players] if bids else 0)
    return state


def play(state: sparring.State, words: str) -> None:
    for word in words.split():
        state.apply(vectors.action(word))


def with_spare_cards(plays: list[tuple[int, bool]], count: int = 1) -> list[list[int]]:
    """Hands that hold the trick's cards and others that bind nobody to another suit."""
    used = {card for card, _ in plays}
    suits = {(card - 10) // 14 for card, _ in plays if 10 <= card < 66}
    free = [c for c in ALL_CARDS if c not in used and 10 <= c < 66 and (c - 10) // 14 not in suits]
    free += [c for c in ALL_CARDS if c not in used and 66 <= c < 71]
    hands = []
    for card, _ in plays:
        hands.append([card, *(free.pop() for _ in range(count))])
    return hands


def trick_result(cards: str, **config: Any) -> tuple[int | None, int, int]:
    """Winner, next leader and bonus of a trick, read off the table after it."""
    words = cards.split()
    hands = with_spare_cards(vectors.cards(cards))
    config = {"ghost": 0, "dedupe": 0, "follow_rule": "OFFICIAL", **config}
    state = started(hands, 0, **config)
    for word in words:
        state.apply(vectors.action(word))
    fields = state.fields()
    won = fields["won"][: len(words)]
    winner = int(won.argmax()) if won.any() else None
    bonus = int(fields["bonus"][: len(words)].sum())
    return winner, int(fields["leader"][0]), bonus


@pytest.mark.parametrize(("name", "cards", "winner", "leader", "bonus"), vectors.TRICKS)
def test_tricks(name: str, cards: str, winner: int | None, leader: int, bonus: int) -> None:
    assert trick_result(cards) == (winner, leader, bonus)


@pytest.mark.parametrize(("cards", "deck", "tigress_bonus", "bonus"), vectors.OTHER_BONUSES)
def test_other_bonuses(cards: str, deck: str, tigress_bonus: int, bonus: int) -> None:
    assert trick_result(cards, deck=deck, tigress_bonus=tigress_bonus)[2] == bonus


@pytest.mark.parametrize(("cards", "leader"), vectors.LEFT_OF_KRAKEN)
def test_left_of_kraken(cards: str, leader: int) -> None:
    assert trick_result(cards, kraken_lead="LEFT_OF_KRAKEN")[:2] == (None, leader)


@pytest.mark.parametrize("rule", ["OFFICIAL", "FIRST_SUIT", "SEED"])
@pytest.mark.parametrize(("name", "trick", "hand", "legal"), vectors.LEGALITY)
def test_legality(name: str, trick: str, hand: str, legal: str, rule: str) -> None:
    other = {"FIRST_SUIT": vectors.LEGALITY_FIRST_SUIT, "SEED": vectors.LEGALITY_SEED}
    expected = other.get(rule, {}).get(name, legal)
    plays, mine = vectors.cards(trick), vectors.ids(hand)
    spare = [c for c in ALL_CARDS if c not in mine and c not in [card for card, _ in plays]]
    # Each earlier player holds its card and escapes or suits that do not bind it.
    suits = {(card - 10) // 14 for card, _ in plays if 10 <= card < 66}
    loose = [c for c in spare if 10 <= c < 66 and (c - 10) // 14 not in suits]
    hands = [[card, *(loose.pop() for _ in mine[1:])] for card, _ in plays]
    config = {"follow_rule": rule, "ghost": 0, "dedupe": 0, "num_players": len(plays) + 1}
    state = started([*hands, mine], 0, **config)
    play(state, trick)
    found = sorted({71 if a == 85 else a - 11 for a in state.legal()})
    assert found == sorted(vectors.ids(expected))


@pytest.mark.parametrize("vector", vectors.ROUNDS, ids=lambda vector: vector["name"])
def test_rounds(vector: dict[str, Any]) -> None:
    hands = [vectors.ids(hand) for hand in vector["hands"]]
    config = {**vector.get("config", {}), "num_players": vector["num_players"], "history": 1}
    state = started(hands, vector["leader"], vector["bids"], **config)
    actors = []
    for word in vector["plays"].split():
        actors.append(state.seat)
        state.apply(vectors.action(word))
    assert state.terminated
    fields = state.fields()
    players = vector["num_players"]
    assert fields["won"][: len(vector["won"])].tolist() == vector["won"]
    assert fields["last_points"][:players].tolist() == vector["points"]
    assert state.scores == vector["points"]
    np.testing.assert_allclose(state.rewards, np.array(vector["points"]) / 100, atol=1e-6)
    assert actors == vector.get("actors", actors)
    loot = list(
        map(list, zip(fields["loot_by"].tolist(), fields["loot_with"].tolist(), strict=True))
    )
    assert loot == vector.get("loot", loot)
    leaders = vector.get("leaders", [])
    assert fields["history_leader"][: len(leaders)].tolist() == leaders


def test_x07_first_leaders() -> None:
    players, first, leaders = vectors.FIRST_LEADERS
    state = load_round(1, [[10], [11], [12], [13]], first, config={"num_players": players})
    found: dict[int, int] = {}
    while not state.over:
        fields = state.fields()
        found.setdefault(int(fields["round"][0]), int(fields["leader"][0]))
        state.apply(state.legal()[0])
    assert [found[number] for number in range(1, 11)] == leaders


@pytest.mark.parametrize(("deck", "players", "number", "dealt", "stock"), vectors.DEAL_SIZES)
def test_x08_deals(deck: str, players: int, number: int, dealt: int, stock: int) -> None:
    config = {"num_players": players, "deck": deck, "episode": "ROUND", "start_round": number}
    fields = sparring.new_state("skull_king", config=config).fields()

    def count(name: str) -> int:
        return sum(int(word).bit_count() for word in fields[name])

    assert (count("hand"), count("stock")) == (dealt, stock)


def test_x09_bids_stay_hidden_until_complete() -> None:
    bids = [2, 0, 1, 2]
    for open_bids in (0, 1):
        hands = [vectors.ids(h) for h in ("G1 G2", "G3 G4", "G5 G6", "G7 G8")]
        state = load_round(2, hands, 1, config={"num_players": 4, "open_bids": open_bids})
        for placed in range(5):
            done = [(1 + i) % 4 for i in range(placed)]
            for observer in range(4):
                seen = state.observe(observer)
                for relative in range(4):
                    seat = (observer + relative) % 4
                    features = seen[459 + 18 * relative :][:18]
                    known = seat in done and (seat == observer or open_bids or placed == 4)
                    assert features[0] == float(known)
                    assert features[1] == np.float32(bids[seat] / 10 if known else 0)
            if placed < 4:
                state.apply(bids[state.seat])


@pytest.mark.parametrize(
    ("hand", "card", "rule", "shown"),
    [
        ("Y3 Pi1", "Y3", "OFFICIAL", 2),
        ("Y3 Pi1", "Pi1", "OFFICIAL", 0),
        ("B3 Pi1", "B3", "SEED", 0),
    ],
)
def test_x10_shown_void(hand: str, card: str, rule: str, shown: int) -> None:
    hands = [vectors.ids(h) for h in ("G1 G2", "G3 G4", hand, "G5 G6")]
    state = started(hands, 0, follow_rule=rule)
    play(state, f"G1 G3 {card}")
    assert state.fields()["void_suits"].tolist() == [0, 0, shown, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(("scores", "rank", "win"), vectors.RANKS)
def test_x12_final_ties(scores: list[int], rank: list[float], win: list[float]) -> None:
    """A last round of one card that changes nobody's place, so the given scores decide."""
    for part, expected in (("rank", rank), ("win", win)):
        config = {"rounds": [1], "reward": part.upper()}
        hands = [[24], [38], [52], [25]]
        state = load_round(1, hands, 0, scores=scores, config=config)
        for bid in (0, 0, 0, 1):
            state.apply(bid)
        play(state, "G1 P1 Y1 G2")
        points = state.fields()["last_points"][:4].tolist()
        assert points == [10, 10, 10, 20]
        totals = [s + p for s, p in zip(scores, points, strict=True)]
        assert state.scores == totals
        np.testing.assert_allclose(state.rewards, expected, atol=1e-6)


@pytest.mark.parametrize(("name", "led", "hand", "legal"), vectors.LEGAL_ACTIONS)
def test_x13_x14_legal_actions(name: str, led: str | None, hand: str, legal: list[int]) -> None:
    mine = vectors.ids(hand)
    first = [*[10, 11, 12, 13][: len(mine) - 1], vectors.card(led or "G5")[0]]
    state = started([first, mine], 0 if led else 1, ghost=0)
    if led:
        state.apply(vectors.action(led))
    assert state.seat == 1
    assert state.legal() == legal


def test_x15_rosie() -> None:
    words = ("G1 G2 G3 G4 G5", "Pi1 G9 G10 G11 G12", "Y1 Y2 Y3 Y4 Y5", "P1 P2 P3 P4 P5")
    state = started([vectors.ids(w) for w in words], 0, abilities=1)
    play(state, "G1 G9 Y1 P1  Pi1 Y2 P2 G2")
    assert (int(state.fields()["phase"][0]), state.seat, state.role) == (ROSIE, 1, 1)
    assert state.legal() == [86, 87, 88, 89]
    state.apply(89)
    assert (int(state.fields()["phase"][0]), state.seat) == (PLAY, 0)
    last = started(
        [vectors.ids(w) for w in ("G1", "Pi1", "Y1", "P1")], 0, [0, 1, 0, 0], abilities=1
    )
    play(last, "G1 Pi1 Y1 P1")
    assert last.terminated


def test_x16_what_a_learner_needs_to_relabel_a_round() -> None:
    words = ("B14 B13 B12 B11 G2 G3", "Y1 Y2 Y3 Y4 G4 G5", "P1 P2 P3 P4 G6 G7")
    state = started([vectors.ids(w) for w in words], 0, [2, 0, 2])
    play(state, "B14 Y1 P1  B13 Y2 P2  B12 Y3 P3  B11 Y4 P4  G2 G4 G6  G7 G3 G5")
    fields = state.fields()
    assert fields["last_bid"][:3].tolist() == [2, 0, 2]
    assert fields["last_won"][:3].tolist() == [4, 0, 2]
    assert fields["last_bonus"][:3].tolist() == [20, 0, 0]
    assert fields["last_points"][:3].tolist() == [-20, 60, 40]
    assert int(fields["last_cards"][0]) == 6


def test_spot_checks_of_section_16_5() -> None:
    hands = [vectors.ids(w) for w in ("G5 Pi1 E1", "G6 G7 G8", "Y1 Y2 Y3", "P1 P2 P3")]
    seen = load_round(3, hands, 1).observe(0)
    assert seen.shape == (531,)
    nonzero = {index: float(value) for index, value in enumerate(seen) if value}
    third = float(np.float32(0.3))
    ones = dict.fromkeys((5, 28, 66, 430, 432, 436, 489, 492), 1.0)
    assert nonzero == {**ones, 444: third, 446: third}


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"num_players": 2, "ghost": 0}, 319),
        ({"num_players": 2}, 425),
        ({"num_players": 3}, 425),
        ({"num_players": 4}, 531),
        ({"num_players": 5}, 637),
        ({"num_players": 8}, 955),
        ({"abilities": 1}, 623),
        ({"obs": "COMPACT"}, 309),
        ({"phase_embed": 1}, 534),
        ({"history": 1}, 531 + 50),
    ],
)
def test_observation_sizes(config: dict[str, Any], size: int) -> None:
    rules = sparring.Rules("skull_king", config)
    assert len(rules.features) == size
    assert rules.actions == (102 if "abilities" in config else 86)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0, [[10]] * 4, 0), "round must be 1..10"),
        ((1, [[10], [10], [11], [12]], 0), "card 10 is not in the deck or was dealt twice"),
        ((2, [[10], [11], [12], [13]], 0), "needs 2 cards"),
        ((1, [[10], [11], [12], [13]], 4), "first_leader must be 0..3"),
    ],
)
def test_bad_rounds_are_refused(given: Any, message: str) -> None:
    with pytest.raises(sparring.ConfigError, match=message):
        load_round(*given)
