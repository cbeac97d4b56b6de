"""Observation vector of section 16; every entry is an integer divided by a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference.skull_king.rules import (
    CARD_COUNT,
    KIND,
    LOOTS,
    MERMAIDS,
    NUMBER,
    SKULL_KING,
    SUIT,
    TIGRESS,
    Play,
    is_escape_like,
    is_pirate_like,
    resolve,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from reference.skull_king.game import SkullKing

EXTENSION_PHASES = ("CANNON", "ROSIE", "DISCARD", "WAGER", "HARRY")


def observation_size(game: SkullKing) -> int:
    seats = game.seats
    size: int = 107 + 106 * seats if game.config["obs"] == "FULL" else 181 + 32 * seats
    if game.config["abilities"] or game.config["cannonball"]:
        size += 80 + 3 * seats
    if game.config["phase_embed"]:
        size += 3
    if game.config["history"]:
        size += 10 * seats + 10
    return size


def observe(game: SkullKing, observer: int) -> list[float]:
    if not 0 <= observer < game.num_players:
        raise ValueError(f"no player sits on seat {observer}")
    # Absolute seats in relative order; the ghost is last for both observers.
    seats = [(observer + offset) % game.num_players for offset in range(game.num_players)]
    if game.ghost is not None:
        seats.append(game.ghost)

    entries = many_hot(game.hands[observer])
    if game.config["obs"] == "FULL":
        for seat in seats:
            entries += many_hot(game.played[seat])
    else:
        entries += many_hot({card for cards in game.played for card in cards})
    on_table = {seat: (card, as_pirate) for seat, card, as_pirate in game.trick}
    for seat in seats:
        entries += trick_features(on_table.get(seat))
    entries += one_hot(game.follow(), 6)
    entries += [float(game.phase == "BID"), float(game.phase == "PLAY")]
    entries += one_hot(game.round - 1, 10)
    left = game.cards - game.tricks_done
    entries += [game.cards / 10, game.tricks_done / 10, left / 10]
    entries += one_hot(game.bid[observer], 11)
    entries.append((sum(game.player_bids()) - game.cards) / 10 if game.bids_complete() else 0.0)
    for seat in seats:
        entries += seat_features(game, observer, seat)

    if game.config["abilities"] or game.config["cannonball"]:
        entries += extension(game, observer, seats)
    if game.config["phase_embed"]:
        entries += one_hot(0 if game.round <= 3 else 1 if game.round <= 6 else 2, 3)
    if game.config["history"]:
        for tokens in game.history_tokens:
            entries += [float(tokens[seat]) for seat in seats]
        for leader in game.history_leaders:
            entries.append(-1.0 if leader == -1 else float(seats.index(leader)))
    return entries


def one_hot(index: int, size: int) -> list[float]:
    """All zeros for index -1."""
    return [float(position == index) for position in range(size)]


def many_hot(cards: Collection[int]) -> list[float]:
    return [float(card in cards) for card in range(CARD_COUNT)]


def trick_features(play: Play | None) -> list[float]:
    """Section 16.2."""
    if play is None:
        return [0.0] * 14
    card, as_pirate = play
    return [
        1.0,
        *[float(SUIT[card] == suit) for suit in range(4)],
        NUMBER[card] / 14,
        float(is_pirate_like(card, as_pirate)),
        float(card in MERMAIDS),
        float(card == SKULL_KING),
        float(is_escape_like(card, as_pirate)),
        float(card in LOOTS),
        float(KIND[card] == "KRAKEN"),
        float(KIND[card] == "WHALE"),
        float(card == TIGRESS),
    ]


def seat_features(game: SkullKing, observer: int, seat: int) -> list[float]:
    """Section 16.3."""
    features = [0.0] * 18
    won = game.won[seat]
    if seat != game.ghost:
        bid = game.bid[seat]
        visible = seat == observer or game.config["open_bids"] or game.bids_complete()
        if bid != -1 and visible:
            features[0] = 1.0
            features[1] = bid / 10
            features[3] = (bid - won) / 10
            features[4] = float(won == bid)
            features[5] = float(won > bid)
        features[6] = game.score[seat] / 300
        features[16] = game.sum_bid[seat] / 55
        features[17] = game.sum_err[seat] / 55
    features[2] = won / 10
    features[7] = game.bonus[seat] / 100
    features[8:12] = [float(shown) for shown in game.void[seat]]
    features[12] = float(seat == game.leader)
    if game.trick:
        winner, _ = resolve(game.trick_cards())
        features[13] = float(winner is not None and game.trick[winner][0] == seat)
    if seat != observer:
        pair = {observer, seat}
        features[14] = sum({by, partner} == pair for by, partner in game.loot) / 2
    features[15] = float(seat == game.seat)
    return features


def extension(game: SkullKing, observer: int, seats: list[int]) -> list[float]:
    """EXT block of section 16.4."""
    entries = [float(game.phase == phase) for phase in EXTENSION_PHASES]
    entries += many_hot(game.priv[observer])
    entries.append(game.pending / 2)
    loads_revealed = game.phase not in ("BID", "CANNON")
    for seat in seats:
        if seat == game.ghost:
            entries += [0.0] * 3
            continue
        entries.append(game.wager[seat] / 20)
        entries.append(float(game.harry == seat))
        entries.append(float(game.cannon[seat] and (seat == observer or loads_revealed)))
    return entries
