"""Skull King: card names, positions to load and read, and the table as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparring.errors import ConfigError, suggestion
from sparring.games.rules import Rules
from sparring.games.state import State, new_state

SHARES = ("bid_kept", "bid_kept_early", "bid_kept_mid", "bid_kept_late")
"""Statistics that are shares, from 0 to 1."""
CARDS = 74
TIGRESS = 71
TIGRESS_AS_PIRATE, TIGRESS_AS_ESCAPE = TIGRESS + 1, CARDS + 1
"""Tokens: a card on the table is 1 + its id; the Tigress has one for each way to play it."""
SUITS = ("black", "green", "purple", "yellow")
PHASES = ("bid", "cannon", "play", "rosie", "discard", "wager", "harry", "over")
LOADS = ("grapeshot", "cannonball")


def card_short_name(card: int) -> str:
    """Return a card's name in two or three letters, such as "G7", "Pi1" or "SK"."""
    if 10 <= card <= 65:
        return f"{'BGPY'[(card - 10) // 14]}{(card - 10) % 14 + 1}"
    for first, last, letters in ((3, 4, "M"), (5, 9, "Pi"), (66, 70, "E"), (72, 73, "L")):
        if first <= card <= last:
            return f"{letters}{card - first + 1}"
    return {0: "SK", 1: "WW", 2: "KR", TIGRESS: "T"}[card]


def token_short_name(token: int) -> str:
    """Return the short name of a card on the table: the Tigress is TP or TE."""
    named = {TIGRESS_AS_PIRATE: "TP", TIGRESS_AS_ESCAPE: "TE"}
    return named.get(token) or card_short_name(token - 1)


_IDS = {card_short_name(card).upper(): card for card in range(CARDS)}


def card_id(name: str) -> int:
    if name.upper() not in _IDS:
        names = [card_short_name(card) for card in range(CARDS)]
        raise ConfigError(f"no card called {name!r}{suggestion(name, names)}")
    return _IDS[name.upper()]


def show_cards(cards: Iterable[int]) -> str:
    """Return cards by their short names, "-" for none."""
    return " ".join(card_short_name(card) for card in cards) or "-"


def show_card_ranges(cards: Sequence[int]) -> str:
    """Return the short names of cards, runs abbreviated as in "G2-G9"."""
    words: list[str] = []
    start = 0
    for at, card in enumerate(cards):
        follows = at + 1 < len(cards) and cards[at + 1] == card + 1
        if follows and card_short_name(card)[0] == card_short_name(card + 1)[0]:
            continue
        run = [card_short_name(c) for c in cards[start : at + 1]]
        words += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else run
        start = at + 1
    return " ".join(words) or "-"


def hand(state: State, seat: int) -> list[int]:
    """Return the cards a seat holds, ascending by id; the ghost's with two players as seat 2."""
    return read(state).hands[seat]


def game_length(rules: Rules) -> int | None:
    """Return the number of decisions of every game, None if it varies."""
    config = rules.config
    if rules.skip_forced or config["abilities"] or config["episode"] == "ROUND":
        return None
    players = config["num_players"]
    seats = 3 if has_ghost(rules) else players
    deck = int(config["deck"][-2:])
    cap = min(config["cap8"], deck // 8) if players == 8 else min(10, deck // seats)
    cards = [min(size, cap) for size in config["rounds"] if size > 0]
    return int(players * (sum(cards) + len(cards) * (1 + config["cannonball"])))


def has_ghost(rules: Rules) -> bool:
    """Whether two players face a ghost hand."""
    return bool(rules.config["num_players"] == 2 and rules.config["ghost"])


def load_round(
    round: int,
    hands: Sequence[Sequence[int | str]],
    first_leader: int,
    scores: Sequence[int] | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> State:
    """Start a round with given hands, as ids or short names; the ghost's in its order of play."""
    state = new_state("skull_king", seed=seed, config=config)
    players = state.rules.seats
    totals = list(scores) if scores is not None else [0] * players
    seats = players + has_ghost(state.rules)
    if len(totals) != players:
        raise ConfigError(f"{players} players need {players} scores, got {len(totals)}")
    if len(hands) != seats:
        raise ConfigError(f"this table needs {seats} hands, got {len(hands)}")
    numbers = [round, first_leader, *totals]
    for held in hands:
        cards = [card_id(card) if isinstance(card, str) else int(card) for card in held]
        numbers += [len(cards), *cards]
    error = state.set_up(numbers)
    if error:
        raise ConfigError(f"skull_king: {error}")
    return state


@dataclass(frozen=True)
class SkullKingPosition:
    """The true position in plain numbers, hidden parts included. Views choose what to show."""

    players: int
    seats: int
    phase: str
    actor: int
    leader: int
    round: int
    rounds: int
    cards: int
    tricks_done: int
    follow: int
    pending: int
    harry: int
    placed: int
    trick: list[tuple[int, int]]
    """(seat, token) in the order of play."""
    hands: list[list[int]]
    played: list[list[int]]
    known_out: list[list[int]]
    stock: list[int]
    gone: list[int]
    ghost_order: list[int]
    by_seat: dict[str, list[int]]
    """bid, won, bonus, total, wager, cannon, void_suits, and last_* of the finished round."""
    loot: list[tuple[int, int]]
    """Alliances: (seat that played the Loot, seat that won the trick)."""


def read(state: State) -> SkullKingPosition:
    raw = state.fields()
    one = {name: int(value[0]) for name, value in raw.items() if value.size == 1}
    many = {name: [int(v) for v in value] for name, value in raw.items() if value.size > 1}
    players = state.rules.seats
    seats = players + has_ghost(state.rules)
    size, done = one["trick_size"], one["tricks_done"]
    played_by_ghost = done + any(seat == players for seat in many["trick_seat"][:size])
    return SkullKingPosition(
        players=players,
        seats=seats,
        phase=PHASES[one["phase"]],
        **{k: one[k] for k in ("actor", "leader", "round", "cards", "follow", "pending", "harry")},
        rounds=sum(1 for cards in state.rules.config["rounds"] if cards),
        tricks_done=done,
        placed=one["placed"],
        trick=list(zip(many["trick_seat"], many["trick_token"], strict=True))[:size],
        hands=[cards_in(many["hand"], seat) for seat in range(seats)],
        played=[cards_in(many["played"], seat) for seat in range(seats)],
        known_out=[cards_in(many["priv"], seat) for seat in range(players)],
        stock=cards_in(many["stock"], 0),
        gone=cards_in(many["gone"], 0),
        ghost_order=many["ghost_order"][played_by_ghost : one["cards"]] if seats > players else [],
        by_seat={name: value[:seats] for name, value in many.items() if len(value) == 8},
        loot=[p for p in zip(many["loot_by"], many["loot_with"], strict=True) if p[0] >= 0],
    )


def cards_in(words: Sequence[int], index: int) -> list[int]:
    """Return the ids in the index-th 128-bit set of a field."""
    bits = words[2 * index] | words[2 * index + 1] << 64
    return [card for card in range(CARDS) if bits >> card & 1]


def text_view(state: State, viewer: int | None = None) -> str:
    """Show the table: all of it, or only what one seat may know."""
    at = read(state)
    lines = [headline(at), *seat_table(state, at, viewer)]
    if at.trick:
        lines += show_trick(state, at, viewer)
    for by, ally in at.loot:
        lines.append(f"loot    {seat_name(at, by, viewer)} + {seat_name(at, ally, viewer)}")
    for seat in range(at.players) if viewer is None else [viewer]:
        lines.append(
            f"{'hand' if seat == viewer else f'hand {seat}':7} {show_cards(at.hands[seat])}"
        )
        if at.known_out[seat]:
            lines.append(
                f"{seat_name(at, seat, viewer)} saw: {show_card_ranges(at.known_out[seat])}"
            )
    if viewer is None:
        if at.seats > at.players:
            lines.append(f"ghost   {show_cards(at.ghost_order)}, in this order")
        if at.gone:
            lines.append(f"gone    {show_cards(at.gone)}")
        lines.append(f"stock   {show_card_ranges(at.stock)}")
    return "\n".join(lines)


def headline(at: SkullKingPosition) -> str:
    """Return round and phase as one line."""
    progress = f"Round {at.round} of {at.rounds}, {at.cards} card{'s' * (at.cards != 1)} each"
    doing = {
        "bid": "bidding",
        "cannon": "loading",
        "play": f"trick {at.tricks_done + 1}",
        "rosie": "Rosie's winner chooses who leads",
        "discard": f"Bendt's winner discards {at.pending} more",
        "wager": "Rascal's winner wagers",
        "harry": "Harry's winner may change the bid",
        "over": "the game is over",
    }
    return f"{progress}: {doing[at.phase]}"


def seat_table(state: State, at: SkullKingPosition, viewer: int | None) -> list[str]:
    """Return one line per seat: public numbers, and hidden ones that the viewer knows."""
    lines = ["        bid won bonus score  played"]
    per = at.by_seat
    for seat in range(at.seats):
        bid = str(per["bid"][seat]) if bid_is_known(state, at, seat, viewer) else "?"
        score = str(per["total"][seat])
        if seat >= at.players:
            bid = score = "-"
        line = (
            f"{seat_name(at, seat, viewer):7} {bid:>3} {per['won'][seat]:>3} "
            f"{per['bonus'][seat]:>5} {score:>5}  {show_cards(at.played[seat])}"
        )
        notes = seat_notes(state, at, seat, viewer)
        lines.append(f"{line}  ({', '.join(notes)})" if notes else line)
    return lines


def seat_notes(state: State, at: SkullKingPosition, seat: int, viewer: int | None) -> list[str]:
    """Return remarks about a seat: to act, void suits, load, wager."""
    per = at.by_seat
    notes = []
    if at.phase != "over":
        notes += ["leads"] * (seat == at.leader) + ["to act"] * (seat == at.actor)
    shown_void = [suit for s, suit in enumerate(SUITS) if per["void_suits"][seat] >> s & 1]
    notes += ["no " + " or ".join(shown_void)] if shown_void else []
    if load_is_known(state, at, seat, viewer):
        notes.append(LOADS[per["cannon"][seat]])
    if per["wager"][seat]:
        notes.append(f"wagers {per['wager'][seat]}")
    if seat == at.harry:
        notes.append("has Harry")
    return notes


def bid_is_known(state: State, at: SkullKingPosition, seat: int, viewer: int | None) -> bool:
    """Whether a seat has bid and the viewer may know the bid."""
    placed = seat < at.players and at.by_seat["bid"][seat] >= 0
    revealed = at.phase != "bid" or bool(state.rules.config["open_bids"])
    return placed and (revealed or viewer is None or seat == viewer)


def load_is_known(state: State, at: SkullKingPosition, seat: int, viewer: int | None) -> bool:
    """Whether a seat has chosen a load and the viewer may know it."""
    if not state.rules.config["cannonball"] or at.phase == "bid" or seat >= at.players:
        return False
    if at.phase != "cannon":
        return True
    chosen = (seat - at.leader) % at.players < at.placed
    return chosen and (viewer is None or seat == viewer)


def show_trick(state: State, at: SkullKingPosition, viewer: int | None) -> list[str]:
    """Return the cards of the trick, its current winner, and the suit to follow."""
    laid = [f"{seat_name(at, seat, viewer)} {token_short_name(t)}" for seat, t in at.trick]
    winner = winning_seat(state, at)
    wins = "nobody wins" if winner is None else f"{token_short_name(dict(at.trick)[winner])} wins"
    suit = SUITS[at.follow] if at.follow < len(SUITS) else "nothing"
    return [f"trick   {', '.join(laid)}", f"        {wins} so far, {suit} to follow"]


def winning_seat(state: State, at: SkullKingPosition) -> int | None:
    """Return the current winner of the trick. It is public: all observations contain it."""
    seen = dict(zip((f.name for f in state.rules.features), state.observe(0), strict=True))
    winners = [seat for seat in range(at.seats) if seen[f"seat[{seat}].wins trick now"]]
    return winners[0] if winners else None


def seat_name(at: SkullKingPosition, seat: int, viewer: int | None = None) -> str:
    """Return "seat 1", "ghost", or "you" for the viewer."""
    if seat == viewer:
        return "you"
    return f"seat {seat}" if seat < at.players else "ghost"
