"""Kuhhandel: names of animals and money, positions to load and read, the table as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparring.errors import ConfigError, suggestion
from sparring.games.state import State, new_state

SHARES = ("auctions_won", "bluffs", "bluff_bids", "trades_won")
"""Statistics that are shares, from 0 to 1."""
KINDS = ("rooster", "goose", "cat", "dog", "sheep", "goat", "donkey", "pig", "cow", "horse")
VALUES = (10, 40, 90, 160, 250, 350, 500, 650, 800, 1000)
"""Points of a complete quartet, by kind."""
NOTES = (0, 10, 50, 100, 200, 500)
"""Values of money cards. A hand or pile is a count for each of them."""
START_HAND = (2, 4, 1, 0, 0, 0)
DONKEY_PAYS = (50, 100, 200, 500)
PHASES = ("turn", "bid", "tens", "decide", "pay", "offer", "respond", "counter", "done")
PRESETS: dict[str, dict[str, Any]] = {
    "OFFICIAL": {},
    "FAST": {"bluff": "FORBID", "pay_mode": "AUTO", "pass_mode": "HARD"},
    "SEED": {"bluff": "FORBID", "pay_mode": "AUTO", "tie_rounds": 1, "empty_offer": 1},
}
"""Named sets of flags."""

Pile = tuple[int, ...]


def pile_value(pile: Sequence[int]) -> int:
    return sum(count * note for count, note in zip(pile, NOTES, strict=True))


def show_pile(pile: Sequence[int]) -> str:
    """Return a pile as it is typed, large cards first, such as "100 2x50 3x0"; "-" for none."""
    cards = [(count, note) for count, note in zip(pile, NOTES, strict=True) if count]
    words = [f"{count}x{note}" if count > 1 else str(note) for count, note in reversed(cards)]
    return " ".join(words) or "-"


def count_noun(count: int, thing: str) -> str:
    """Return "1 card" or "2 cards"."""
    plurals = {"goose": "geese", "sheep": "sheep"}
    return f"{count} {thing if count == 1 else plurals.get(thing, f'{thing}s')}"


def load_position(
    animals: Sequence[Mapping[str, int]],
    money: Sequence[Sequence[int]] | None = None,
    *,
    turn: int = 0,
    deck: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> State:
    """Start with given animals and money (counts of 0, 10, 50, 100, 200, 500) before a turn.

    `deck` names the next cards; all other cards without an owner follow in the order of the kinds.
    All money is known to all players.
    """
    state = new_state(
        "kuhhandel", seed=seed, config={"num_players": len(animals), **(config or {})}
    )
    hands = [START_HAND] * len(animals) if money is None else list(money)
    players = state.rules.seats
    if not len(animals) == len(hands) == players:
        raise ConfigError(
            f"{players} players need {players} farms and hands, got {len(animals)} and {len(hands)}"
        )
    farms = [{kind_id(name): count for name, count in farm.items()} for farm in animals]
    owned = [[farm.get(kind, 0) for kind in range(len(KINDS))] for farm in farms]
    top = [kind_id(name) for name in deck]
    left = [4 - sum(row[kind] for row in owned) - top.count(kind) for kind in range(len(KINDS))]
    rest = [kind for kind, count in enumerate(left) for _ in range(count)]
    counts = [int(count) for row in (*owned, *hands) for count in row]
    error = state.set_up([turn, *counts, *top, *rest])
    if error:
        raise ConfigError(f"kuhhandel: {error}")
    return state


def kind_id(name: str) -> int:
    if name not in KINDS:
        raise ConfigError(f"no animal called {name!r}{suggestion(name, KINDS)}")
    return KINDS.index(name)


@dataclass(frozen=True)
class KuhhandelPosition:
    """The true position in plain numbers, hidden parts included. Views choose what to show."""

    players: int
    phase: str
    actor: int
    turn: int
    """The auctioneer or challenger."""
    deck: list[int]
    donkeys: int
    decisions: int
    animals: list[list[int]]
    money: list[Pile]
    known: list[list[Pile]]
    """known[p][j]: the cards of j that p knows."""
    lot: int
    """The kind that is auctioned, -1 outside auctions."""
    high_bid: int
    high_bidder: int
    last_bids: list[int]
    passed: list[int]
    exposed: list[int]
    """Seats that showed their money in this auction."""
    hundreds: int
    target: int
    traded: int
    stake: int
    ties: int
    tied_at: int
    offer: Pile
    chosen: Pile
    pointer: int


def read(state: State) -> KuhhandelPosition:
    raw = state.fields()
    one = {name: int(value[0]) for name, value in raw.items() if value.size == 1}
    players = state.rules.seats
    table = raw["known"].reshape(5, 5)[:players, :players]
    known = [[unpack_pile(word) for word in row] for row in table.tolist()]
    return KuhhandelPosition(
        players=players,
        phase=PHASES[one["phase"]],
        actor=one["actor"],
        turn=one["turn"],
        deck=raw["deck"][one["drawn"] :].tolist(),
        donkeys=one["donkeys"],
        decisions=one["decisions"],
        animals=raw["animals"].reshape(5, len(KINDS))[:players].tolist(),
        money=[known[seat][seat] for seat in range(players)],
        known=known,
        lot=one["lot"],
        high_bid=10 * one["high_tens"],
        high_bidder=one["high_bidder"],
        last_bids=[10 * int(bid) for bid in raw["last_bid_tens"][:players]],
        passed=[seat for seat in range(players) if one["passed"] >> seat & 1],
        exposed=[seat for seat in range(players) if one["exposed"] >> seat & 1],
        hundreds=one["hundreds"],
        target=one["target"],
        traded=one["traded"],
        stake=one["stake"],
        ties=one["ties"],
        tied_at=10 * one["tied_tens"],
        offer=unpack_pile(raw["offer"][0]),
        chosen=unpack_pile(raw["chosen"][0]),
        pointer=one["pointer"],
    )


def unpack_pile(word: np.uint64 | int) -> Pile:
    """Return the counts that the native core packs into one number."""
    return tuple(int(word).to_bytes(8, "little")[: len(NOTES)])


def text_view(state: State, viewer: int | None = None) -> str:
    """Show the table: all of it, or only what one seat may know."""
    at = read(state)
    lines = [headline(at, viewer), *seat_table(state, at, viewer)]
    if at.phase in ("bid", "tens", "decide", "pay"):
        lines.append(f"bids    {show_bids(at, viewer)}")
    if at.ties:
        amount = f" at {at.tied_at}" if viewer in (None, at.turn, at.target) else ""
        lines.append(f"tied    once{amount}: both bid again")
    if at.phase in ("respond", "counter"):
        seen = f": {show_pile(at.offer)}" if viewer in (None, at.turn) else ""
        lines.append(f"offer   {count_noun(sum(at.offer), 'card')}{seen}")
    if at.phase in ("pay", "offer", "counter") and viewer in (None, at.actor):
        note = NOTES[at.pointer]
        lines.append(f"chosen  {show_pile(at.chosen)}; how many of {note}?")
    if at.phase == "tens" and viewer in (None, at.actor):
        lines.append(f"chosen  {at.hundreds} hundreds; how many tens?")
    if viewer is None:
        lines.append(f"deck    {' '.join(KINDS[kind] for kind in at.deck) or '-'}")
    return "\n".join(lines)


def headline(at: KuhhandelPosition, viewer: int | None = None) -> str:
    """Return the auction or trade and the seat to decide as one line."""
    who = seat_name(at.actor, viewer)
    s = "" if at.actor == viewer else "s"
    if at.phase == "done":
        return "The game is over"
    if at.lot >= 0:
        value = f"{KINDS[at.lot]} ({VALUES[at.lot]})"
        bids = "bids or passes" if s else "bid or pass"
        doing = {"decide": f"sell{s} or buy{s}", "pay": f"pay{s}"}.get(at.phase, bids)
        what = f"{seat_name(at.turn, viewer)} auction{'' if at.turn == viewer else 's'} a {value}"
        return f"{what}: {who} {doing}"
    if at.target >= 0:
        lays = {"offer": f"lay{s} down an offer", "counter": f"lay{s} down a counter-offer"}
        doing = lays.get(at.phase, f"answer{s}")
        stake = f"{count_noun(at.stake, KINDS[at.traded])} ({VALUES[at.traded]})"
        pair = f"{seat_name(at.turn, viewer)} against {seat_name(at.target, viewer)}"
        return f"Trade for {stake}, {pair}: {who} {doing}"
    return f"{count_noun(len(at.deck), 'card')} in the deck: {who} auction{s} or trade{s}"


def seat_table(state: State, at: KuhhandelPosition, viewer: int | None) -> list[str]:
    """Return one line per seat: points, money as far as the viewer knows it, animals."""
    money = [show_money(at, seat, viewer) for seat in range(at.players)]
    wide = max(5, *(len(text) for text in money))
    lines = [f"        points  {'money':{wide}}  animals"]
    for seat in range(at.players):
        name, points = seat_name(seat, viewer), state.scores[seat]
        farm = show_animals(at.animals[seat])
        lines.append(f"{name:7} {points:>6g}  {money[seat]:{wide}}  {farm}")
    return lines


def show_money(at: KuhhandelPosition, seat: int, viewer: int | None) -> str:
    """Return a hand, or what the viewer knows of it."""
    hand = at.money[seat]
    if viewer in (None, seat):
        return f"{pile_value(hand)}: {show_pile(hand)}"
    known = at.known[viewer][seat]
    cards, hidden = sum(hand), sum(hand) - sum(known)
    if hidden == 0:
        return f"{pile_value(hand)}: {show_pile(hand)}"
    if hidden == cards:
        return count_noun(cards, "unknown card")
    return f"{count_noun(cards, 'card')}: {show_pile(known)} and {hidden} unknown"


def show_animals(counts: Sequence[int]) -> str:
    """Return the animals of a seat; a quartet is marked with a star."""
    held = [(kind, count) for kind, count in enumerate(counts) if count]
    words = [f"{KINDS[kind]} {count}{'*' if count == 4 else ''}" for kind, count in held]
    return ", ".join(words) or "-"


def show_bids(at: KuhhandelPosition, viewer: int | None) -> str:
    """Return the highest bid, and the seats that passed or are out."""
    words = [f"{at.high_bid} by {seat_name(at.high_bidder, viewer)}" if at.high_bid else "none yet"]
    if at.passed:
        words.append("passed: " + ", ".join(seat_name(seat, viewer) for seat in at.passed))
    if at.exposed:
        words.append("bluffed: " + ", ".join(seat_name(seat, viewer) for seat in at.exposed))
    return "; ".join(words)


def seat_name(seat: int, viewer: int | None = None) -> str:
    return "you" if seat == viewer else f"seat {seat}"
