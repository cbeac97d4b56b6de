"""Rewards of section 18 as pure functions in exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from reference.skull_king.rules import KIND, NUMBER, SUIT

PARTS = (
    "score_delta",
    "score_delta_zs",
    "rank",
    "win",
    "score_final",
    "manager",
    "worker",
    "flat_shaped",
    "ability_nudge",
)


@cache
def exact(decimal: str) -> Fraction:
    return Fraction(decimal)


def score_delta(points: Sequence[int]) -> list[Fraction]:
    return [Fraction(own, 100) for own in points]


def score_delta_zero_sum(points: Sequence[int]) -> list[Fraction]:
    others = len(points) - 1
    return [(own - Fraction(sum(points) - own, others)) / 100 for own in points]


def tied_positions(scores: Sequence[int], player: int) -> range:
    """All positions (0 best) that the player shares with its ties."""
    better = sum(score > scores[player] for score in scores)
    return range(better, better + scores.count(scores[player]))


def _mean_over_ties(scores: Sequence[int], values: Sequence[Fraction]) -> list[Fraction]:
    result = []
    for player in range(len(scores)):
        positions = tied_positions(scores, player)
        total = sum((values[position] for position in positions), Fraction(0))
        result.append(total / len(positions))
    return result


def rank_rewards(scores: Sequence[int]) -> list[Fraction]:
    last = len(scores) - 1
    return _mean_over_ties(scores, [1 - Fraction(2 * rank, last) for rank in range(len(scores))])


def win_rewards(scores: Sequence[int]) -> list[Fraction]:
    best = max(scores)
    share = Fraction(1, scores.count(best))
    return [(share if score == best else 0) - Fraction(1, len(scores)) for score in scores]


def score_final(scores: Sequence[int]) -> list[Fraction]:
    return [Fraction(score, 300) for score in scores]


def manager_reward(bid: int, won: int, cards: int) -> Fraction:
    error = abs(bid - won)
    if error == 0:
        return 5 + (Fraction(cards, 2) if bid == 0 else Fraction(0))
    if error == 1:
        return Fraction(1)
    if error == 2:
        return Fraction(-1)
    return -2 - Fraction(error, 2)


def worker_trick(need: int, won: bool, left: int) -> Fraction:
    """`need` before the trick, `left` = tricks left after it."""
    if won:
        return exact("3") if need > 0 else exact("-1.5") if need == 0 else exact("-2")
    if need <= left:
        return exact("0.5")
    return exact("-1") if need > left + 1 else exact("0")


def worker_round(error: int) -> Fraction:
    return exact("5") if error == 0 else exact("-2")


def flat_strength(card: int) -> int:
    """Card strength of FLAT_SHAPED in thousandths; .35n/14 is 25n."""
    if KIND[card] == "SUIT":
        return (500 if SUIT[card] == 0 else 200) + 25 * NUMBER[card]
    return {
        "KING": 950,
        "PIRATE": 800,
        "TIGRESS": 550,
        "WHALE": 400,
        "MERMAID": 350,
        "KRAKEN": 250,
        "LOOT": 80,
        "ESCAPE": 50,
    }[KIND[card]]


def flat_estimate(hand: Sequence[int], cards: int) -> int:
    kinds = [KIND[card] for card in hand]
    longest = max(sum(SUIT[card] == suit for card in hand) for suit in (1, 2, 3))
    strong = sum(flat_strength(card) > 700 for card in hand)
    total = sum(flat_strength(card) for card in hand)
    if longest >= 3 and 10 * longest >= 6 * cards:
        total += 500
    if "MERMAID" in kinds and strong >= 2:
        total -= 500
    if cards >= 5 and kinds.count("PIRATE") >= 2:
        total += 300
    total -= 400 * kinds.count("ESCAPE")
    if "KING" in kinds:
        total += 200
    return max(0, round(Fraction(total, 1000)))  # round() of a Fraction is exact, half to even


def flat_bid(bid: int, hand: Sequence[int], cards: int) -> Fraction:
    return 2 * (1 - Fraction(abs(bid - flat_estimate(hand, cards)), cards))


def flat_card(need: int, card: int) -> Fraction:
    strength = flat_strength(card)
    if need > 0:
        if strength > 600:
            return exact("1")
        if strength < 300:
            return exact("-0.5")
    if need == 0:
        if strength < 400:
            return exact("0.5")
        if strength > 700:
            return exact("-0.3")
    return exact("0")


def flat_trick(need: int, won: bool, left: int) -> Fraction:
    """`need` before the trick, `left` = tricks left after it; need < 0 gives nothing."""
    if need > 0:
        if won:
            return exact("3")
        return exact("0") if need > left else exact("-1")
    if need == 0:
        return exact("-2") if won else exact("1.5")
    return exact("0")


def flat_captures(counts: dict[str, int]) -> Fraction:
    return (
        exact("0.3") * counts["standard_14"]
        + exact("0.5") * counts["black_14"]
        + exact("0.5") * counts["mermaids"]
        + exact("0.7") * counts["pirates"]
        + exact("1") * counts["king"]
    )


def flat_round(error: int, paid_loot: int) -> Fraction:
    return exact({0: "5", 1: "2", 2: "-1"}.get(error, "-5")) + 2 * paid_loot


def flat_ranks(scores: Sequence[int]) -> list[Fraction]:
    values = [Fraction(value) for value in (10, 3, -2)] + [Fraction(-5)] * len(scores)
    return _mean_over_ties(scores, values)


def nudge_rosie(chose_self: bool) -> Fraction:
    return exact("0.1") if chose_self else exact("-0.05")


def nudge_wager(wager: int, need: int, left: int) -> Fraction:
    if need <= 0:
        return exact("0.005") * wager
    return exact("-0.005") * wager if need > left else exact("0")


def nudge_harry(bid: int, change: int, won: int) -> Fraction:
    before, after = abs(bid - won), abs(bid + change - won)
    if before > 0 and after == 0:
        return exact("0.3")
    if before == 0 and change == 0:
        return exact("0.1")
    return exact("-0.2") if after > before else exact("0")


def nudge_discard(need: int, card: int) -> Fraction:
    strength = flat_strength(card)
    if need > 0:
        if strength < 300:
            return exact("0.15")
        if strength > 600:
            return exact("-0.15")
    else:
        if strength > 700:
            return exact("0.1")
        if strength < 400:
            return exact("-0.05")
    return exact("0")
