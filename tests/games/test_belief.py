"""Hidden information drawn anew, uniformly or by a belief: against enumerated deals."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sparring import ConfigError, Pool, Rules, State, new_state
from sparring.games.hidden import hidden_of, read_hidden, state_field

CARDS, BENDT = 74, 6
DISCARD = 4
"""Phase in which a seat has drawn by Bendt and not discarded yet."""
Floats = npt.NDArray[np.float32]


def played(rules: Rules, seed: int) -> list[State]:
    """Every position of a game of random moves."""
    rng, state, found = np.random.default_rng(seed), new_state(rules, seed=seed), []
    while not state.over:
        found.append(state.clone())
        state.apply(int(rng.choice(state.legal())))
    return found


def suit(card: int) -> int:
    """Suit of a card, below 0 or above 3 if it has none."""
    return (card - 10) // 14


def fields_of(rules: Rules, worlds: npt.NDArray[np.uint8], name: str) -> npt.NDArray[np.uint8]:
    """The bytes of a field in every world."""
    return worlds[..., state_field(rules, name).byte_slice]


def hands_of(rules: Rules, worlds: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Who holds which card in worlds of Skull King [worlds, seats, cards]."""
    raw = fields_of(rules, worlds, "hand").reshape(len(worlds), 8, -1)
    return np.unpackbits(raw, axis=-1, bitorder="little")[..., :CARDS].astype(bool)


def cards_in(fields: dict[str, Any], name: str) -> list[set[int]]:
    """The members of a field of card sets."""
    words = fields[name].reshape(-1, 2)
    return [{i for i in range(CARDS) if int(w[i // 64]) >> (i % 64) & 1} for w in words]


def lacking(fields: dict[str, Any], seat: int) -> set[int]:
    """Suits that a seat has shown not to hold, unless it drew new cards since."""
    drew = fields["gone"].any() or int(fields["phase"][0]) == DISCARD
    if drew and BENDT in cards_in(fields, "played")[seat]:
        return set()
    return {s for s in range(4) if int(fields["void_suits"][seat]) >> s & 1}


def surprise(drawn: Counter[Any], weight: dict[Any, float]) -> float:
    """By how many standard deviations chi squared is above what chance makes it."""
    count, total = sum(drawn.values()), sum(weight.values())
    assert set(drawn) <= {key for key, w in weight.items() if w > 0}
    expected = {key: count * w / total for key, w in weight.items() if w > 0}
    rest = {key: e for key, e in expected.items() if e >= 5}
    chi = sum((drawn[key] - e) ** 2 / e for key, e in rest.items())
    return (chi - len(rest)) / (2 * len(rest)) ** 0.5


UNIFORM = [
    ("skull_king", {"rounds": [4]}, 0x56DF4FED),
    ("kuhhandel", {"num_players": 4}, 0x2050FB01),
    ("leduc_poker", {}, 0x61EC04C9),
    ("kuhn_poker_3", {}, 0xA98E6BA0),
    ("liars_dice", {"dice": 2}, 0x4E2C59F4),
    ("goofspiel", {"order": "DRAWN"}, 0x55C8E88),
    ("phantom_tic_tac_toe", {}, 0x7DA26A06),
]


@pytest.mark.parametrize(("game", "config", "digest"), UNIFORM)
def test_a_uniform_draw_stays_what_it_was(game: str, config: Any, digest: int) -> None:
    rules, found = Rules(game, config), 0
    for at, state in enumerate(played(rules, 3)[:120]):
        if game == "skull_king" and state.fields()["void_suits"].any():
            continue  # those changed when shown suits began to count
        state.resample_hidden(at % rules.seats, seed=at)
        found = zlib.crc32(state.native.position()[0], found)
    assert found == digest, f"{found:#x}"


@pytest.mark.parametrize(
    "config",
    [
        {"rounds": [5, 9]},
        {"num_players": 2, "rounds": [8, 9, 10]},
        {"num_players": 8, "rounds": [8]},
        {"num_players": 6, "abilities": 1, "rounds": [7, 9], "follow_rule": "SEED"},
    ],
)
def test_worlds_fit_what_was_seen(config: dict[str, Any]) -> None:
    """Hands keep their sizes, suits that were shown to lack stay away, nothing seen changes."""
    rules, restricted = Rules("skull_king", config), 0
    weights = np.random.default_rng(1).normal(0, 2, rules.native.belief_size)
    for seed in range(2):
        for state in played(rules, seed)[::3]:
            fields, viewer = state.fields(), state.seat
            belief = weights.astype(np.float32) if len(state.legal()) % 2 else None
            worlds = state.draw_worlds(viewer, 3, belief=belief)
            hands, sizes = hands_of(rules, worlds), [len(h) for h in cards_in(fields, "hand")]
            assert (hands.sum(-1) == sizes).all()
            true_hands = cards_in(fields, "hand")
            for seat in set(range(rules.seats)) - {viewer}:
                absent = [c for c in range(CARDS) if suit(c) in lacking(fields, seat)]
                restricted += bool(absent)
                assert not true_hands[seat] & set(absent)
                assert not hands[:, seat, absent].any()
            other = state.clone()
            other.resample_hidden(viewer, 1, belief)
            assert other.native.check() == ""
            assert (other.observe_bytes(viewer) == state.observe_bytes(viewer)).all()
    assert restricted


def test_the_ghost_plays_in_any_order() -> None:
    state = new_state(Rules("skull_king", {"num_players": 2, "rounds": [5]}), seed=1)
    orders = fields_of(state.rules, state.draw_worlds(0, 400), "ghost_order")[:, :5]
    ascending = (np.diff(orders.astype(int), axis=1) > 0).mean(0)
    assert (np.abs(ascending - 0.5) < 0.15).all()


def last_trick(seed: int) -> State:
    """A position of eight players with six unseen cards: four in hands, two in the stock."""
    rules = Rules(
        "skull_king", {"num_players": 8, "rounds": [8], "deck": "CLASSIC66", "skip_forced": 0}
    )
    return next(
        state
        for state in played(rules, seed)
        if (state.fields()["tricks_done"][0], state.fields()["trick_size"][0]) == (7, 3)
    )


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]
)
@pytest.mark.parametrize("spread", [0.0, 1.5])
def test_deals_are_as_likely_as_their_weights(seed: int, spread: float) -> None:
    """All 360 deals of six cards, by the product of their weights; without a belief, all alike."""
    state = last_trick(seed)
    rules, fields, viewer = state.rules, state.fields(), state.seat
    hands, stock = cards_in(fields, "hand"), cards_in(fields, "stock")[0]
    others = [s for s in range(8) if s != viewer and hands[s]]
    unseen = sorted(stock.union(*(hands[s] for s in others)))
    table = np.random.default_rng(seed).normal(0, spread, (CARDS, 8)).astype(np.float32)
    weight = {}
    for deal in itertools.permutations(unseen, len(others)):
        holder = {card: (s - viewer) % 8 for card, s in zip(deal, others, strict=True)}
        fits = all(
            suit(card) not in lacking(fields, s) for card, s in zip(deal, others, strict=True)
        )
        log = sum(table[card, holder.get(card, 0)] for card in unseen)
        weight[deal] = float(np.exp(log)) if fits else 0.0
    worlds = state.draw_worlds(viewer, 20_000, belief=table.ravel() if spread else None)
    drawn = hands_of(rules, worlds)[:, others].argmax(-1)
    assert surprise(Counter(map(tuple, drawn.tolist())), weight) < 5


def exact_shares(table: npt.NDArray[np.float64], sizes: list[int]) -> npt.NDArray[np.float64]:
    """How often each card lies in each place [cards, places]: sums over all deals, card by card.

    table: weights [cards, places]; sizes: of all places but the last, which takes the rest.
    """
    shape = tuple(size + 1 for size in sizes)

    def moved(states: npt.NDArray[np.float64], place: int, by: int) -> npt.NDArray[np.float64]:
        if place == len(sizes):
            return states
        out = np.roll(states, by, place)
        edge = [slice(None)] * len(sizes)
        edge[place] = slice(0, 1) if by > 0 else slice(-1, None)
        out[tuple(edge)] = 0
        return out

    before = [np.zeros(shape)]
    before[0][(0,) * len(sizes)] = 1
    for row in table:
        after = sum(w * moved(before[-1], p, 1) for p, w in enumerate(row))
        before.append(after / after.sum())
    behind, shares = np.zeros(shape), np.zeros(table.shape)
    behind[(-1,) * len(sizes)] = 1
    for card in reversed(range(len(table))):
        for place, w in enumerate(table[card]):
            shares[card, place] = (w * before[card] * moved(behind, place, -1)).sum()
        behind = sum(w * moved(behind, p, -1) for p, w in enumerate(table[card]))
        behind /= behind.sum()
    return shares / shares.sum(-1, keepdims=True)


@pytest.mark.slow
def test_a_long_deal_comes_near_its_weights() -> None:
    """Some sixty unseen cards cannot be enumerated as deals, but where each of them lies."""
    rules = Rules("skull_king", {"rounds": [8]})
    state = next(s for s in played(rules, 4) if s.fields()["tricks_done"][0] == 3)
    fields, viewer = state.fields(), state.seat
    hands, stock = cards_in(fields, "hand"), cards_in(fields, "stock")[0]
    others = [(viewer + away) % 4 for away in (1, 2, 3)]
    unseen = sorted(stock.union(*(hands[s] for s in others)))
    table = np.random.default_rng(2).normal(0, 1, (CARDS, 4)).astype(np.float32)
    weight = np.exp(table[unseen][:, [1, 2, 3, 0]].astype(np.float64))
    for place, seat in enumerate(others):
        absent = [suit(c) in lacking(fields, seat) for c in unseen]
        weight[absent, place] = 0
    assert (weight == 0).any()
    wanted = exact_shares(weight, [len(hands[s]) for s in others])
    worlds = state.draw_worlds(viewer, 20_000, belief=table.ravel())
    shares = hands_of(rules, worlds)[:, others][..., unseen].mean(0).T
    assert np.abs(shares - wanted[:, :3]).max() < 0.02


@pytest.mark.few(1)
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_counts_of_money_are_as_likely_as_their_weights(spread: float) -> None:
    """Every way in which two seats may share the unknown notes, by the product of the weights.

    Of the counts of n notes at two seats, n - 1 are free.
    """
    rules, tried = Rules("kuhhandel"), 0
    for state in played(rules, 5)[60::3]:
        fields, viewer = state.fields(), state.seat
        known = np.frombuffer(fields["known"].tobytes(), np.uint8).reshape(5, 5, 8)[..., :6]
        others = [(viewer + away) % 3 for away in (1, 2)]
        least = known[viewer, others].astype(int)
        unknown = sum(known[s, s] - known[viewer, s] for s in others).astype(int)
        missing = int((known[others[0], others[0]] - least[0]).sum())
        if int(fields["phase"][0]) != 0 or np.prod(unknown + 1) < 8 or tried == 4:
            continue  # at a turn nothing else is secret
        table = np.random.default_rng(1).normal(0, spread, (2, 6, 12)).astype(np.float32)
        weight, notes = {}, np.count_nonzero(unknown)
        free = (notes - 1) / (2 * notes)
        for given in itertools.product(*(range(n + 1) for n in unknown)):
            if sum(given) == missing:
                counts = least + np.stack((given, unknown - given))
                rows = table[np.arange(2)[:, None], np.arange(6), np.minimum(counts, 11)]
                weight[tuple(counts.ravel().tolist())] = float(np.exp(free * rows.sum()))
        worlds = state.draw_worlds(viewer, 5_000, belief=table.ravel())
        raw = fields_of(rules, worlds, "known").reshape(-1, 5, 5, 8)[..., :6]
        drawn = raw[:, others, others].reshape(len(raw), -1)
        assert surprise(Counter(map(tuple, drawn.tolist())), weight) < 5
        tried += 1
    assert tried == 4


def test_where_all_is_known_nothing_is_drawn() -> None:
    state = new_state("kuhhandel")
    worlds = state.draw_worlds(0, 3, belief=np.zeros(144, np.float32))
    assert (fields_of(state.rules, worlds, "known") == state.fields()["known"].view(np.uint8)).all()


def test_cards_of_small_pokers_are_as_likely_as_their_weights() -> None:
    worlds = 20_000
    state = new_state("kuhn_poker", seed=1)
    mine = int(state.fields()["cards"][0])
    belief = np.log(np.array([0.2, 0.3, 0.5], np.float32))
    rules = state.rules
    drawn = Counter(
        fields_of(rules, state.draw_worlds(0, worlds, belief=belief), "cards")[:, 1].tolist()
    )
    assert surprise(drawn, {c: float(np.exp(belief[c])) for c in range(3) if c != mine}) < 5
    state = new_state("leduc_poker", seed=1)
    mine = int(state.fields()["cards"][0])
    belief = np.random.default_rng(0).normal(0, 1, 3).astype(np.float32)
    cards = fields_of(state.rules, state.draw_worlds(0, worlds, belief=belief), "cards")
    pairs = Counter(map(tuple, (cards[:, 1:] // 2).tolist()))
    assert surprise(pairs, leduc_weights(mine, belief)) < 5


def test_two_cards_and_a_die_are_as_likely_as_their_weights() -> None:
    state, belief = new_state("kuhn_poker_3", seed=1), np.random.default_rng(0).normal(0, 1, 8)
    cards = state.draw_worlds(1, 20_000, belief=belief.astype(np.float32))
    drawn = fields_of(state.rules, cards, "cards")[:, [2, 0]]
    left = set(range(4)) - {int(state.fields()["cards"][1])}
    weight = {
        (next_seat, behind): float(np.exp(belief[next_seat] + belief[4 + behind]))
        for next_seat, behind in itertools.permutations(left, 2)
    }
    assert surprise(Counter(map(tuple, drawn.tolist())), weight) < 5
    state, belief = new_state("liars_dice", seed=1), np.random.default_rng(1).normal(0, 1, 6)
    rolls = state.draw_worlds(1, 20_000, belief=belief.astype(np.float32))
    faces = Counter(fields_of(state.rules, rolls, "dice").reshape(-1, 2, 2)[:, 0, 0].tolist())
    assert surprise(faces, {face + 1: float(np.exp(belief[face])) for face in range(6)}) < 5
    assert Rules("liars_dice", {"dice": 2}).native.belief_size == 0


def leduc_weights(mine: int, belief: Floats) -> dict[tuple[int, int], float]:
    """Probabilities of the other's rank and the table's, which is chance whatever the other has."""
    left, weight = set(range(6)) - {mine}, Counter[tuple[int, int]]()
    shares = {rank: float(np.exp(belief[rank])) for rank in {card // 2 for card in left}}
    for rank, share in shares.items():
        theirs = min(card for card in left if card // 2 == rank)
        for table in left - {theirs}:
            weight[rank, table // 2] += share / 4
    return dict(weight)


def test_worlds_of_a_pool_are_those_of_its_states() -> None:
    pool = Pool("skull_king", 6, seed=4)
    batch = pool.reset()
    for _ in range(9):
        batch = pool.step(pool.sample_actions())
    rows = np.flatnonzero(np.asarray(batch.seat) >= 0)
    belief = np.random.default_rng(0).normal(0, 1, (len(rows), 296)).astype(np.float32)
    worlds = pool.draw_worlds(rows, 5, seed=9, belief=belief)
    assert (
        len({world.tobytes() for world in worlds.reshape(-1, worlds.shape[-1])})
        == worlds.size // worlds.shape[-1]
    )
    for at, row in enumerate(rows):
        state = pool.state_of(row)
        more = state.draw_worlds(state.seat, 8, seed=9, belief=belief[at])
        assert (more[:5] == worlds[at]).all()
        assert (pool.draw_worlds([row], 5, seed=9, belief=belief[at : at + 1]) == worlds[at]).all()
    assert (pool.draw_worlds(rows, 5, seed=8, belief=belief) != worlds).any()


def test_a_head_and_a_belief_have_one_layout() -> None:
    small = ("kuhn_poker", "kuhn_poker_3", "leduc_poker", "liars_dice")
    for game in ("skull_king", "kuhhandel", *small):
        for players in (3, 5) if game not in small else (2,):
            rules = Rules(game, {"num_players": players} if players > 2 else {})
            hidden = hidden_of(rules)
            assert hidden is not None
            assert hidden.width == rules.native.belief_size


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
def test_hidden_cards_are_read(game: str) -> None:
    rules, pool = Rules(game), Pool(game, 32, seed=2)
    pool.reset()
    hidden = hidden_of(rules)
    assert hidden is not None
    for seat in (0, 1):
        read = read_hidden(rules, hidden, pool.tables, np.full(32, seat))
        cards = np.array([pool.state_of(game).fields()["cards"] for game in range(32)])
        rank = cards if game == "kuhn_poker" else cards // 2
        assert (read == rank[:, 1 - seat, None]).all()


def test_what_is_no_belief_is_refused() -> None:
    state, pool = new_state("leduc_poker"), Pool("leduc_poker", 2)
    pool.reset()
    with pytest.raises(ConfigError, match=r"belief has shape \(6,\); leduc_poker needs \(3,\)"):
        state.resample_hidden(0, 1, np.zeros(6, np.float32))
    with pytest.raises(ConfigError, match=r"needs \(2, 3\)"):
        pool.draw_worlds([0, 1], 3, belief=np.zeros(3, np.float32))
    with pytest.raises(ConfigError, match="is not a number"):
        state.draw_worlds(0, 1, belief=np.full(3, np.nan, np.float32))
    with pytest.raises(ConfigError, match="worlds=0 must be at least 1"):
        state.draw_worlds(0, 0)
    with pytest.raises(ConfigError, match="goofspiel is drawn uniformly"):
        new_state("goofspiel").resample_hidden(0, 1, np.zeros(6, np.float32))
    with pytest.raises(IndexError, match="row 7"):
        pool.draw_worlds([7], 1)
