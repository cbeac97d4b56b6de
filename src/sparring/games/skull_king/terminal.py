"""Terminal view of Skull King: bids, cards, tricks and scores of rounds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from sparring.games import State
from sparring.games.skull_king import (
    TIGRESS,
    SkullKingPosition,
    card_short_name,
    read,
    show_cards,
    token_short_name,
)
from sparring.games.skull_king.tricks import (
    PLAY_FIRST,
    PLAY_TIGRESS_ESCAPE,
    is_destroyed,
    round_ended,
    token_of,
    trick_after,
    trick_winner,
)
from sparring.games.terminal import HELP, ActionChoice, Terminal

ROSIE_FIRST = 86
JADE = 9
"""The token, that is 1 + card id."""

RULES = """\
Bid how many tricks you will take, then take exactly that many.
  Follow the suit that was led if you can; special cards may always be played.
  B (black) is trump over G, P and Y. Numbers run from 1 to 14.
  E escapes never win. M mermaids beat numbers, Pi pirates beat mermaids,
  SK the Skull King beats pirates, and a mermaid takes the Skull King.
  T the Tigress is a pirate or an escape, as you like.
  KR the Kraken destroys the trick. With WW the White Whale the highest
  number wins, suits and specials count for nothing.
  L loot allies you with the trick's winner: +20 each if both bids come true."""
POINTS = {
    "SKULL_KING": """\
Points: 20 per trick of an exact bid, -10 per trick off; a bid of 0 wins or
loses 10 per card dealt.""",
    "RASCAL": """\
Points: 10 per card dealt for an exact bid, half of it if one trick off. With a
cannonball 15 per card, but only if exact.""",
}
BONUSES = """\
An exact bid also collects bonuses: 14s 10 (black 20), mermaid taken by a
pirate 20, pirate by the king 30, king by a mermaid 40."""
OLD_BONUSES = """\
An exact bid also collects bonuses: pirate taken by the king 30, king by a
mermaid 50."""
ABILITIES = """\
Pirates that win a trick: Pi1 Rosie chooses who leads, Pi2 Bendt draws two and
discards two, Pi3 Rascal wagers up to 20, Pi4 Jade looks at the stock, Pi5 Harry
changes the bid by one at the end."""


class SkullKingTerminal(Terminal):
    """Bids, cards and the trick on the table."""

    styles = (
        (r"\bB\d+\b", "reverse"),
        (r"\bG\d+\b", "green"),
        (r"\bP\d+\b", "magenta"),
        (r"\bY\d+\b", "yellow"),
        (r"\b(SK|Pi\d|TP|T)\b", "bold red"),
        (r"\bM\d\b", "bold cyan"),
        (r"\b(KR|WW)\b", "bold blue"),
        (r"\b(E\d|TE|L\d)\b", "dim"),
        (r"\byou\b", "bold"),
        (r"(?m)^Round \d+.*$", "bold"),
        (r"(?m)^ +bid won .*$", "dim"),
    )

    def ask(self, state: State) -> str:
        return {
            "bid": "your bid",
            "cannon": "your load",
            "play": "your card",
            "rosie": "who leads",
            "discard": "discard",
            "wager": "your wager",
            "harry": "your bid",
        }[read(state).phase]

    def choices(self, state: State) -> list[ActionChoice]:
        """Return the legal actions by their short names."""
        at = read(state)
        return [self.choice(state, at, action) for action in state.legal()]

    def question(self, state: State) -> Hashable:
        """Return round and phase, so that cards keep their numbers for a whole round."""
        at = read(state)
        return at.round, at.phase

    def possible(self, state: State) -> Iterable[tuple[int, ...]]:
        """Return all cards in the hand, also those that are not legal now."""
        at = read(state)
        if at.phase not in ("play", "discard"):
            return
        for card in at.hands[at.actor]:
            yield (PLAY_FIRST + card,)
            if card == TIGRESS and at.phase == "play":
                yield (PLAY_TIGRESS_ESCAPE,)

    def choice(self, state: State, at: SkullKingPosition, action: int) -> ActionChoice:
        """Return an action as it is typed: a bid by its number, a card by its letters."""
        name = state.action_name(action)
        if at.phase == "bid":
            return ActionChoice(action, str(action), name)
        if at.phase == "discard":
            return ActionChoice(action, card_short_name(action - PLAY_FIRST), name)
        if at.phase == "play":
            return ActionChoice(action, token_short_name(token_of(action)), name)
        if at.phase == "rosie":
            leads = self.name((at.actor + action - ROSIE_FIRST) % at.players)
            return ActionChoice(action, leads, f"{leads} leads")
        return ActionChoice(action, name, name)

    def list_choices(self, choices: Sequence[ActionChoice]) -> str:
        """Return bids as a range, all other choices numbered."""
        if choices[0].name.startswith("bid "):
            return f"bid {choices[0].short}..{choices[-1].short}"
        return super().list_choices(choices)

    def narrate(self, before: State, action: int, after: State) -> list[str]:
        """Describe an action and its effects up to the next decision."""
        was, now = read(before), read(after)
        lines = self.describe_decision(before, was, now, action)
        if was.phase == "play":
            lines += self.describe_trick(was, now, action)
        if round_ended(was, now):
            lines += ["", *self.round_scores(was, now)]
        return lines

    def describe_decision(
        self, before: State, was: SkullKingPosition, now: SkullKingPosition, action: int
    ) -> list[str]:
        """Describe a decision without revealing hidden cards, bids or loads."""
        if was.phase in ("bid", "cannon"):
            lines = [self.describe_commitment(before, was, action)]
            return (
                lines if now.phase == was.phase else [*lines, self.describe_reveal(now, was.phase)]
            )
        who, s, name = self.name(was.actor), self.verb_ending(was.actor), before.action_name(action)
        event = {
            "play": f"play{s} {name}",
            "rosie": f"choose{s}: {self.name(now.leader)} lead{self.verb_ending(now.leader)}",
            "discard": f"discard{s} {'a card' if s else name}",
            "wager": f"wager{s} {name.removeprefix('wager ')} on the bid",
            "harry": f"choose{s}: {name}",
        }
        line = f"{who} {event[was.phase]}"
        return [f"{line} ({token_short_name(token_of(action))})" if was.phase == "play" else line]

    def describe_commitment(self, before: State, was: SkullKingPosition, action: int) -> str:
        """Describe a bid or load; its value only if the person may know it."""
        who, name = self.name(was.actor), before.action_name(action)
        if was.actor == self.person:
            return f"{who} {name}" if was.phase == "bid" else f"{who} load {name}"
        if was.phase == "bid" and before.rules.config["open_bids"]:
            return f"{who} bids {action}"
        return f"{who} has bid" if was.phase == "bid" else f"{who} has loaded"

    def describe_reveal(self, now: SkullKingPosition, what: str) -> str:
        """Describe the bids or loads of all players when they are revealed."""
        values = now.by_seat[what][: now.players]
        if what == "cannon":
            loaded = [self.name(seat) for seat, load in enumerate(values) if load]
            return f"Loads: cannonball by {', '.join(loaded) or 'nobody'}"
        bids = ", ".join(f"{self.name(seat)} {bid}" for seat, bid in enumerate(values))
        tricks = f"{now.cards} trick{'s' * (now.cards != 1)}"
        return f"Bids: {bids}. That is {sum(values)} for {tricks}."

    def describe_trick(
        self, was: SkullKingPosition, now: SkullKingPosition, action: int
    ) -> list[str]:
        """Describe the cards of the ghost and the end of the trick."""
        laid = trick_after(was, action)
        lines = []
        if len(laid) > len(was.trick) + 1:
            lines.append(f"the ghost plays {token_short_name(laid[-1][1])}")
        if len(laid) < was.seats:
            return lines
        ended = round_ended(was, now)
        if is_destroyed(laid):
            leads = (
                ""
                if ended
                else f"; {self.name(now.leader)} lead{self.verb_ending(now.leader)} next"
            )
            lines.append(f"  the trick is destroyed{leads}")
        else:
            winner = trick_winner(was, now)
            lines += self.describe_winner(was, now, winner, dict(laid)[winner])
        if now.trick and not ended:
            lines.append(f"the ghost leads {token_short_name(now.trick[0][1])}")
        return lines

    def describe_winner(
        self, was: SkullKingPosition, now: SkullKingPosition, winner: int, token: int
    ) -> list[str]:
        """Describe the winner of the trick, the bonus and the ability of the pirate."""
        who, s = self.name(winner), self.verb_ending(winner)
        line = f"  {who} win{s} the trick with {token_short_name(token)}"
        if winner == was.players:
            return [line]
        ended = round_ended(was, now)
        gained = now.by_seat["last_bonus" if ended else "bonus"][winner]
        gained -= was.by_seat["bonus"][winner]
        lines = [f"{line}, +{gained} bonus" if gained else line]
        if now.phase == "discard":
            drawn = sorted(set(now.hands[winner]) - set(was.hands[winner]))
            cards = show_cards(drawn) if winner == self.person else f"{len(drawn)} cards"
            lines.append(f"  Bendt: {who} draw{s} {cards} from the stock")
        if token == JADE and self.rules.config["abilities"] and not ended:
            lines.append(f"  Juanita Jade: {who} look{s} at the stock")
        return lines

    def round_scores(self, was: SkullKingPosition, now: SkullKingPosition) -> list[str]:
        """Return the score sheet of the finished round."""
        per = now.by_seat
        lines = [f"Round {was.round}  bid won bonus loot points  total"]
        for seat in range(now.players):
            bid, won = per["last_bid"][seat], per["last_won"][seat]
            loot = 20 * per["last_loot_exact"][seat] if bid == won else 0
            lines.append(
                f"  {self.name(seat):7} {bid:>2} {won:>3} {per['last_bonus'][seat]:>5} {loot:>4} "
                f"{per['last_points'][seat]:>+6} {per['total'][seat]:>6}"
            )
        return [*lines, ""]

    def name(self, seat: int) -> str:
        """Return "you", "seat 1", or "the ghost"."""
        return super().name(seat) if seat < self.rules.seats else "the ghost"

    def verb_ending(self, seat: int) -> str:
        return "" if seat == self.person else "s"

    def help(self) -> str:
        config = self.rules.config
        bonuses = OLD_BONUSES if config["deck"] == "CLASSIC66" else BONUSES
        pieces = [RULES, POINTS[config["scoring"]], bonuses]
        return "\n".join([*pieces, *[ABILITIES] * config["abilities"], "", HELP])


TERMINAL = SkullKingTerminal
