"""Terminal view of Kuhhandel: bids by amount, piles by their cards, trades as text."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from sparring.games import State
from sparring.games.kuhhandel import (
    DONKEY_PAYS,
    KINDS,
    VALUES,
    KuhhandelPosition,
    Pile,
    count_noun,
    pile_value,
    read,
    show_pile,
)
from sparring.games.kuhhandel.choices import (
    BIDS,
    PASS,
    PILES,
    bid_choices,
    completed_pile,
    example_piles,
    is_finished,
    payment_choices,
    pile_choice,
    read_pile,
    subtract_piles,
)
from sparring.games.terminal import HELP, ActionChoice, Terminal

AUCTION, TRADE_FIRST = 0, 1
SELL, BUY, ACCEPT, COUNTER = 43, 44, 45, 46
MAX_LISTED = 12

RULES = """\
Collect quartets. In your turn auction the next animal, or trade animals with another player.
  Auction: the others bid; then the auctioneer sells to the highest bidder, or buys by paying
  that bid to the bidder. No bid: the auctioneer gets the animal for nothing.
  There is no change. Zeros cannot be used to pay.
  Trade: name an animal that you both own and lay down cards face down, zeros too. The other
  takes them and gives the animal, or counters: piles are swapped and the higher one wins.
  Two against two trade both animals. After equal piles both bid once more."""
POINTS = """\
The donkeys bring all players 50, 100, 200 and 500. When the deck is empty only trades are left,
until every quartet is complete.
Points: the values of your quartets, added up, times the number of your quartets.
A bid is typed like 120, cards like 50 2x10 0."""
BLUFFS = {
    "EXCLUDE": "Who bids more than he has and must pay shows his money and is out of the auction.",
    "CAP": "Who bids more than he has and must pay shows his money and may bid no more than that.",
    "FORBID": "Players may not bid more than they have.",
}


class KuhhandelTerminal(Terminal):
    """Animals and money of all players, bids and trades."""

    styles = (
        (r"\byou\b", "bold"),
        (r"\b(horse|cow|pig)s?\b", "bold yellow"),
        (r"\bdonkeys?\b", "bold magenta"),
        (r"\b[a-z]+ 4\*", "bold green"),
        (r"(?m)^ +points +money.*$", "dim"),
        (r"\bunknown( cards?)?\b", "dim"),
    )

    def ask(self, state: State) -> str:
        return {
            "turn": "your turn",
            "bid": "your bid",
            "tens": "your bid",
            "decide": "sell or buy",
            "pay": "your payment",
            "offer": "your offer",
            "respond": "your answer",
            "counter": "your counter-offer",
        }[read(state).phase]

    def question(self, state: State) -> Hashable:
        """Return the phase; for payments also the price and the hand."""
        at = read(state)
        return (at.phase, at.high_bid, at.money[at.actor]) if at.phase == "pay" else at.phase

    def choices(self, state: State) -> list[ActionChoice]:
        """Return the choices; offers are too many to list, so only examples."""
        at = read(state)
        if at.phase in BIDS:
            return bid_choices(state)
        if at.phase == "pay":
            return payment_choices(state)
        if at.phase in PILES:
            return example_piles(state)
        return [self.plain_choice(at, action) for action in state.legal()]

    def plain_choice(self, at: KuhhandelPosition, action: int) -> ActionChoice:
        """Return a choice that takes a single action."""
        if TRADE_FIRST <= action < PASS:
            other, kind = trade_partner_and_kind(at, action)
            stake = min(at.animals[at.actor][kind], at.animals[other][kind])
            name = f"trade {count_noun(stake, KINDS[kind])} with {self.name(other)}"
            return ActionChoice(action, f"{KINDS[kind]} {other}", name)
        words = {
            AUCTION: "auction the next animal",
            SELL: f"sell to {self.name(at.high_bidder)} for {at.high_bid}",
            BUY: f"buy for {at.high_bid}",
            ACCEPT: f"accept {count_noun(sum(at.offer), 'card')}",
            COUNTER: "counter",
        }
        return ActionChoice(action, words[action].split()[0], words[action])

    def list_choices(self, choices: Sequence[ActionChoice]) -> str:
        """Return trades and payments as a list, bids and offers as what to type."""
        if choices[0].short == "pass":
            amounts = [choice.short for choice in choices[1:]]
            return f"pass, or bid {amounts[0]} to {amounts[-1]}"
        if choices[0].name.startswith("lay down"):
            nothing = ", or nothing" if choices[0].short == "-" else ""
            return f"cards such as 50 2x10 0, or all{nothing}"
        more = "  or other cards" if len(choices) > MAX_LISTED else ""
        return super().list_choices(choices[:MAX_LISTED]) + more

    def match(
        self, state: State, typed: str, choices: Sequence[ActionChoice]
    ) -> list[ActionChoice]:
        """Read amounts and cards; everything else by number or name."""
        at = read(state)
        if at.phase in BIDS and typed.isdecimal():
            return [choice for choice in choices if choice.short == typed]
        if at.phase in PILES:
            wanted = read_pile(typed, at.money[at.actor])
            if wanted is not None:
                choice = pile_choice(state, wanted)
                return [choice] if choice else []
            if at.phase != "pay":
                return []
        return super().match(state, typed, choices)

    def advice(self, state: State, adviser: Callable[[State], int]) -> str:
        """Return the adviser's choice; a bid or pile of several actions as one."""
        at = read(state)
        if at.phase not in (*BIDS, *PILES):
            return super().advice(state, adviser)
        done = False
        while not done:
            was, action = read(state), adviser(state)
            state.apply(action)
            done = is_finished(was, action, read(state))
        if at.phase not in BIDS:
            laid = completed_pile(was, action, read(state))
            return f"{'pay' if at.phase == 'pay' else 'lay down'} {show_pile(laid)}"
        return "pass" if action == PASS else f"bid {read(state).last_bids[at.actor]}"

    def narrate(self, before: State, action: int, after: State) -> list[str]:
        """Describe an action and its effects; nothing until a bid or pile is complete."""
        was, now = read(before), read(after)
        if was.phase in (*BIDS, *PILES) and not is_finished(was, action, now):
            return []
        trades = was.phase in ("offer", "respond", "counter")
        describe = self.describe_trade if trades else self.describe_auction
        return [*describe(was, action, now), *self.describe_quartets(was, now, after)]

    def describe_auction(
        self, was: KuhhandelPosition, action: int, now: KuhhandelPosition
    ) -> list[str]:
        """Describe a step of an auction, or the start of a trade."""
        if was.phase == "turn" and action != AUCTION:
            return self.describe_challenge(was, action, now)
        if was.phase == "turn":
            kind = was.deck[0]
            lines = [self.sentence(was.actor, f"auction+ a {KINDS[kind]} ({VALUES[kind]})")]
            if now.donkeys > was.donkeys:
                lines.append(f"  a donkey: everybody gets {DONKEY_PAYS[was.donkeys]}")
        elif was.phase == "decide":
            lines = self.describe_sale(was, action)
        elif was.phase in BIDS:
            predicate = "pass+" if action == PASS else f"bid+ {now.last_bids[was.actor]}"
            lines = [self.sentence(was.actor, predicate)]
        else:
            lines = []
        return [
            *lines,
            *self.describe_forced_passes(was, action, now),
            *self.describe_auction_end(was, now),
        ]

    def describe_challenge(
        self, was: KuhhandelPosition, action: int, now: KuhhandelPosition
    ) -> list[str]:
        """Describe the start of a trade, and the offer if it was forced."""
        other, kind = trade_partner_and_kind(was, action)
        stake = min(was.animals[was.actor][kind], was.animals[other][kind])
        wanted = f"{count_noun(stake, KINDS[kind])} ({VALUES[kind]})"
        lines = [self.sentence(was.actor, f"challenge+ {self.name(other)} for {wanted}")]
        if now.phase == "respond":
            lines.append(self.describe_pile(was.actor, now.offer, [was.actor]))
        return lines

    def describe_sale(self, was: KuhhandelPosition, action: int) -> list[str]:
        """Describe whether the auctioneer sells or buys, and the end of a bluff."""
        bidder = was.high_bidder
        if action == BUY:
            return [
                self.sentence(was.actor, f"buy+ for {was.high_bid}, paid to {self.name(bidder)}")
            ]
        lines = [self.sentence(was.actor, f"sell+ to {self.name(bidder)} for {was.high_bid}")]
        hand = was.money[bidder]
        if pile_value(hand) < was.high_bid:
            shown = f"{show_pile(hand)}, that is {pile_value(hand)}"
            lines.append("  " + self.sentence(bidder, f"cannot pay and show+ {shown}"))
        return lines

    def describe_forced_passes(
        self, was: KuhhandelPosition, action: int, now: KuhhandelPosition
    ) -> list[str]:
        """Describe passes of players who could not raise, in the words of any other pass."""
        if now.lot < 0 or now.phase == "pay":
            return []
        raised = was.phase in BIDS and action != PASS
        cleared = was.phase == "decide" or (raised and self.rules.config["pass_mode"] == "SOFT")
        described = [was.actor, *([] if cleared else was.passed)]
        return [self.sentence(seat, "pass+") for seat in now.passed if seat not in described]

    def describe_auction_end(self, was: KuhhandelPosition, now: KuhhandelPosition) -> list[str]:
        """Describe the end of an auction: payment and new owner."""
        kind = was.lot if was.lot >= 0 else was.deck[0] if was.deck else -1
        if now.lot >= 0 or kind < 0:
            return []
        gains = [now.animals[s][kind] - was.animals[s][kind] for s in range(was.players)]
        owner = gains.index(1)
        changes = [sum(now.money[s]) - sum(was.money[s]) for s in range(was.players)]
        lines = []
        if was.high_bidder >= 0 and changes[owner] < 0:
            other = was.turn if owner != was.turn else was.high_bidder
            paid = subtract_piles(was.money[owner], now.money[owner])
            seen = self.sees([owner, other]) or self.rules.config["open_pay"]
            cards = count_noun(sum(paid), "card") + (f": {show_pile(paid)}" if seen else "")
            lines.append("  " + self.sentence(owner, f"pay+ {self.name(other)} {cards}"))
        free = "" if lines else " for nothing"
        return [*lines, "  " + self.sentence(owner, f"take+ the {KINDS[kind]}{free}")]

    def describe_trade(
        self, was: KuhhandelPosition, action: int, now: KuhhandelPosition
    ) -> list[str]:
        laid = completed_pile(was, action, now)
        if was.phase == "offer":
            lines = [self.describe_pile(was.actor, laid, [was.actor])]
            return lines if now.target >= 0 else [*lines, *self.describe_piles(was, laid, (), now)]
        if action == ACCEPT:
            cards = count_noun(sum(was.offer), "card")
            seen = f": {show_pile(was.offer)}" if self.sees([was.turn, was.target]) else ""
            return [
                self.sentence(was.actor, f"accept+ {cards}{seen}"),
                *self.describe_trade_winner(was, now),
            ]
        if was.phase == "respond" and now.phase == "counter" and now.ties == was.ties:
            return [self.sentence(was.actor, "counter+")]
        lines = [self.describe_pile(was.actor, laid, [was.turn, was.target])]
        return [*lines, *self.describe_piles(was, was.offer, laid, now)]

    def describe_piles(
        self, was: KuhhandelPosition, offer: Pile, counter: Pile, now: KuhhandelPosition
    ) -> list[str]:
        values = f"{pile_value(offer)} against {pile_value(counter)}" if counter else ""
        if counter and pile_value(offer) == pile_value(counter):
            lines = ["  equal piles" + (f", {values}" if self.sees([was.turn, was.target]) else "")]
        else:
            lines = [f"  {values}"] if counter and self.sees([was.turn, was.target]) else []
        if now.target < 0:
            return [*lines, *self.describe_trade_winner(was, now)]
        lines.append("  both bid again")
        if now.phase == "counter":
            lines.append(self.describe_pile(now.turn, now.offer, [now.turn]))
        return lines

    def describe_trade_winner(self, was: KuhhandelPosition, now: KuhhandelPosition) -> list[str]:
        gained = now.animals[was.turn][was.traded] > was.animals[was.turn][was.traded]
        winner = was.turn if gained else was.target
        return ["  " + self.sentence(winner, f"take+ {count_noun(was.stake, KINDS[was.traded])}")]

    def describe_pile(self, seat: int, pile: Pile, seen_by: Sequence[int]) -> str:
        """Describe a pile; its cards only if the person may know them."""
        seen = f": {show_pile(pile)}" if self.sees(seen_by) else ""
        return self.sentence(seat, f"lay+ down {count_noun(sum(pile), 'card')}{seen}")

    def describe_quartets(
        self, was: KuhhandelPosition, now: KuhhandelPosition, after: State
    ) -> list[str]:
        return [
            "  "
            + self.sentence(seat, f"complete+ the {count_noun(4, KINDS[kind])[2:]}")
            + f": {after.scores[seat]:g} points"
            for seat in range(was.players)
            for kind in range(len(KINDS))
            if now.animals[seat][kind] == 4 > was.animals[seat][kind]
        ]

    def sentence(self, seat: int, predicate: str) -> str:
        """Return a sentence; + marks where the verb's ending goes."""
        if seat == self.person:
            return f"you {predicate.replace('+', '')}"
        return f"seat {seat} {predicate.replace('pass+', 'passes').replace('+', 's')}"

    def sees(self, seats: Sequence[int]) -> bool:
        """Whether the person is one of these; a spectator sees everything."""
        return self.person < 0 or self.person in seats

    def help(self) -> str:
        return "\n".join([RULES, BLUFFS[self.rules.config["bluff"]], POINTS, "", HELP])


def trade_partner_and_kind(at: KuhhandelPosition, action: int) -> tuple[int, int]:
    """Return the seat and the kind of animal of a trade action."""
    offset, kind = divmod(action - TRADE_FIRST, len(KINDS))
    return (at.actor + 1 + offset) % at.players, kind


TERMINAL = KuhhandelTerminal
