"""Kuhhandel as a person plays it: bids by amount, piles by their cards, trades told in words."""

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
  Nobody gives change. Zeros cannot be used to pay.
  Trade: name an animal that you both own and lay down cards face down, zeros too. The other
  takes them and gives the animal, or counters: piles are swapped and the higher one wins.
  Two against two trade both animals. After equal piles both bid once more."""
POINTS = """\
The donkeys bring everybody 50, 100, 200 and 500. When the deck is empty only trades are left,
until every quartet is complete.
Points: the values of your quartets, added up, times the number of your quartets.
A bid is typed like 120, cards like 50 2x10 0."""
BLUFFS = {
    "EXCLUDE": "Who bids more than he has and must pay shows his money and is out of the auction.",
    "CAP": "Who bids more than he has and must pay shows his money and may bid no more than that.",
    "FORBID": "Nobody may bid more than he has.",
}


class KuhhandelTerminal(Terminal):
    """Everybody's animals and money, and what was bid and traded."""

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
        """Return what is asked; each payment is a question of its own."""
        at = read(state)
        return (at.phase, at.high_bid, at.money[at.actor]) if at.phase == "pay" else at.phase

    def choices(self, state: State) -> list[ActionChoice]:
        """Return what can be chosen; of offers, which are too many to list, only some."""
        at = read(state)
        if at.phase in BIDS:
            return bid_choices(state)
        if at.phase == "pay":
            return payment_choices(state)
        if at.phase in PILES:
            return example_piles(state)
        return [self.plain_choice(at, action) for action in state.legal()]

    def plain_choice(self, at: KuhhandelPosition, action: int) -> ActionChoice:
        """Return an action that stands for itself."""
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
        """Return trades and payments as a list; bids and offers by what may be typed."""
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
        """Return what an adviser would do, whole bids and piles at once."""
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
        """Say what an action did, up to the next decision; nothing until a wish is complete."""
        was, now = read(before), read(after)
        if was.phase in (*BIDS, *PILES) and not is_finished(was, action, now):
            return []
        trades = was.phase in ("offer", "respond", "counter")
        tell = self.trade if trades else self.auction
        return [*tell(was, action, now), *self.quartets(was, now, after)]

    def auction(self, was: KuhhandelPosition, action: int, now: KuhhandelPosition) -> list[str]:
        """Tell a step of an auction, or that a trade begins."""
        if was.phase == "turn" and action != AUCTION:
            return self.challenge(was, action, now)
        if was.phase == "turn":
            kind = was.deck[0]
            lines = [self.tell(was.actor, f"auction+ a {KINDS[kind]} ({VALUES[kind]})")]
            if now.donkeys > was.donkeys:
                lines.append(f"  a donkey: everybody gets {DONKEY_PAYS[was.donkeys]}")
        elif was.phase == "decide":
            lines = self.decision(was, action)
        elif was.phase in BIDS:
            did = "pass+" if action == PASS else f"bid+ {now.last_bids[was.actor]}"
            lines = [self.tell(was.actor, did)]
        else:
            lines = []
        return [*lines, *self.unasked(was, action, now), *self.settled(was, now)]

    def challenge(self, was: KuhhandelPosition, action: int, now: KuhhandelPosition) -> list[str]:
        """Tell that a trade begins, and the offer if there was no choice about it."""
        other, kind = trade_partner_and_kind(was, action)
        stake = min(was.animals[was.actor][kind], was.animals[other][kind])
        wanted = f"{count_noun(stake, KINDS[kind])} ({VALUES[kind]})"
        lines = [self.tell(was.actor, f"challenge+ {self.name(other)} for {wanted}")]
        if now.phase == "respond":
            lines.append(self.laying(was.actor, now.offer, [was.actor]))
        return lines

    def decision(self, was: KuhhandelPosition, action: int) -> list[str]:
        """Tell what the auctioneer chose, and the end of a bluff."""
        bidder = was.high_bidder
        if action == BUY:
            return [self.tell(was.actor, f"buy+ for {was.high_bid}, paid to {self.name(bidder)}")]
        lines = [self.tell(was.actor, f"sell+ to {self.name(bidder)} for {was.high_bid}")]
        hand = was.money[bidder]
        if pile_value(hand) < was.high_bid:
            shown = f"{show_pile(hand)}, that is {pile_value(hand)}"
            lines.append("  " + self.tell(bidder, f"cannot pay and show+ {shown}"))
        return lines

    def unasked(self, was: KuhhandelPosition, action: int, now: KuhhandelPosition) -> list[str]:
        """Tell who passed because he could not raise; it sounds like any other pass."""
        if now.lot < 0 or now.phase == "pay":
            return []
        raised = was.phase in BIDS and action != PASS
        cleared = was.phase == "decide" or (raised and self.rules.config["pass_mode"] == "SOFT")
        told = [was.actor, *([] if cleared else was.passed)]
        return [self.tell(seat, "pass+") for seat in now.passed if seat not in told]

    def settled(self, was: KuhhandelPosition, now: KuhhandelPosition) -> list[str]:
        """Tell the end of an auction."""
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
            lines.append("  " + self.tell(owner, f"pay+ {self.name(other)} {cards}"))
        free = "" if lines else " for nothing"
        return [*lines, "  " + self.tell(owner, f"take+ the {KINDS[kind]}{free}")]

    def trade(self, was: KuhhandelPosition, action: int, now: KuhhandelPosition) -> list[str]:
        """Tell a step of a trade."""
        laid = completed_pile(was, action, now)
        if was.phase == "offer":
            lines = [self.laying(was.actor, laid, [was.actor])]
            return lines if now.target >= 0 else [*lines, *self.outcome(was, laid, (), now)]
        if action == ACCEPT:
            cards = count_noun(sum(was.offer), "card")
            seen = f": {show_pile(was.offer)}" if self.sees([was.turn, was.target]) else ""
            return [self.tell(was.actor, f"accept+ {cards}{seen}"), *self.won(was, now)]
        if was.phase == "respond" and now.phase == "counter" and now.ties == was.ties:
            return [self.tell(was.actor, "counter+")]
        lines = [self.laying(was.actor, laid, [was.turn, was.target])]
        return [*lines, *self.outcome(was, was.offer, laid, now)]

    def outcome(
        self, was: KuhhandelPosition, offer: Pile, counter: Pile, now: KuhhandelPosition
    ) -> list[str]:
        """Tell how two piles compare."""
        values = f"{pile_value(offer)} against {pile_value(counter)}" if counter else ""
        if counter and pile_value(offer) == pile_value(counter):
            lines = ["  equal piles" + (f", {values}" if self.sees([was.turn, was.target]) else "")]
        else:
            lines = [f"  {values}"] if counter and self.sees([was.turn, was.target]) else []
        if now.target < 0:
            return [*lines, *self.won(was, now)]
        lines.append("  both bid again")
        if now.phase == "counter":
            lines.append(self.laying(now.turn, now.offer, [now.turn]))
        return lines

    def won(self, was: KuhhandelPosition, now: KuhhandelPosition) -> list[str]:
        """Tell who took the animals."""
        gained = now.animals[was.turn][was.traded] > was.animals[was.turn][was.traded]
        winner = was.turn if gained else was.target
        return ["  " + self.tell(winner, f"take+ {count_noun(was.stake, KINDS[was.traded])}")]

    def laying(self, seat: int, pile: Pile, seen_by: Sequence[int]) -> str:
        """Tell that a pile was laid down; its cards only to those who may know them."""
        seen = f": {show_pile(pile)}" if self.sees(seen_by) else ""
        return self.tell(seat, f"lay+ down {count_noun(sum(pile), 'card')}{seen}")

    def quartets(self, was: KuhhandelPosition, now: KuhhandelPosition, after: State) -> list[str]:
        """Tell which quartets were completed."""
        return [
            "  "
            + self.tell(seat, f"complete+ the {count_noun(4, KINDS[kind])[2:]}")
            + f": {after.scores[seat]:g} points"
            for seat in range(was.players)
            for kind in range(len(KINDS))
            if now.animals[seat][kind] == 4 > was.animals[seat][kind]
        ]

    def tell(self, seat: int, did: str) -> str:
        """Return a sentence; + marks where the verb's ending goes."""
        if seat == self.person:
            return f"you {did.replace('+', '')}"
        return f"seat {seat} {did.replace('pass+', 'passes').replace('+', 's')}"

    def sees(self, seats: Sequence[int]) -> bool:
        """Whether the person is one of these; a table without a person shows everything."""
        return self.person < 0 or self.person in seats

    def help(self) -> str:
        """Return the rules in short, as they are at this table, and the keys."""
        return "\n".join([RULES, BLUFFS[self.rules.config["bluff"]], POINTS, "", HELP])


def trade_partner_and_kind(at: KuhhandelPosition, action: int) -> tuple[int, int]:
    """Return whom and what a trade names."""
    ahead, kind = divmod(action - TRADE_FIRST, len(KINDS))
    return (at.actor + 1 + ahead) % at.players, kind


TERMINAL = KuhhandelTerminal
