"""Reward terms of section 15 in exact fractions, and the options as weights of the terms.

A step pays terms; an option is a weighted sum of them. The seed's term "raised own high bid"
never happens here, because the highest bidder is not asked (section 4), and a quartet is never
lost (section 19), so neither has a term.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

TERMS = (
    "rank",
    "win",
    "score_zs",
    "potential",
    "seed_broke",
    "seed_rich",
    "seed_auction_won",
    "seed_free",
    "seed_was_paid",
    "seed_bought",
    "seed_overraise",
    "seed_quartet",
    "seed_trade_won",
    "seed_trade_cheap",
    "seed_trade_lost",
    "seed_trade_paid",
    "seed_trade_lost_early",
    "seed_final_win",
)

_SEED_TRADES = {
    "seed_trade_won": "0.1",
    "seed_trade_cheap": "0.1",
    "seed_trade_lost": "-0.1",
    "seed_trade_paid": "0.15",
    "seed_trade_lost_early": "-0.1",
}
_SEED = {
    "seed_broke": "-0.2",
    "seed_rich": "0.05",
    "seed_auction_won": "0.1",
    "seed_free": "0.2",
    "seed_was_paid": "0.1",
    "seed_bought": "-0.05",
    "seed_overraise": "-1",
    "seed_quartet": "0.5",
    **_SEED_TRADES,
    "seed_final_win": "2",
}
_SEED_AGGRESSIVE = {
    "seed_auction_won": "0.2",
    "seed_free": "0.2",
    "seed_was_paid": "0.2",
    "seed_quartet": "1",
    **_SEED_TRADES,
    "seed_final_win": "2",
}

# Option -> weight of each term that it pays.
OPTIONS: dict[str, dict[str, Fraction]] = {
    name: {term: Fraction(weight) for term, weight in weights.items()}
    for name, weights in {
        "RANK": {"rank": "1"},
        "WIN": {"win": "1"},
        "SCORE_ZS": {"score_zs": "1"},
        "POTENTIAL": {"rank": "1", "potential": "1"},
        "SEED": _SEED,
        "SEED_AGGRESSIVE": _SEED_AGGRESSIVE,
        "SEED_WIN_ONLY": {"seed_quartet": "0.5", "seed_final_win": "2"},
    }.items()
}


def rank_rewards(scores: Sequence[int]) -> list[Fraction]:
    """1 - 2 * rank / (N - 1) with rank 0 best; tied players share the mean of their ranks."""
    last = len(scores) - 1
    rewards = []
    for own in scores:
        better = sum(score > own for score in scores)
        rank = better + Fraction(scores.count(own) - 1, 2)
        rewards.append(1 - 2 * rank / last)
    return rewards


def win_rewards(scores: Sequence[int]) -> list[Fraction]:
    best = max(scores)
    share = Fraction(1, scores.count(best))
    return [(share if score == best else 0) - Fraction(1, len(scores)) for score in scores]


def score_zero_sum(scores: Sequence[int]) -> list[Fraction]:
    others = len(scores) - 1
    return [(own - Fraction(sum(scores) - own, others)) / 10000 for own in scores]


def potential(score: int) -> Fraction | int:
    return Fraction(score, 10000) if score else 0


def seed_trade_cheap(payment: int) -> Fraction:
    """`payment` is what the winner gave minus what he received."""
    return max(Fraction(0), Fraction(500 - payment, 500))


def seed_trade_paid(payment: int) -> Fraction:
    return min(Fraction(1), Fraction(payment, 500))


def option_reward(option: str, terms: dict[str, list[float]]) -> list[float]:
    """What an option pays to every seat, given the terms of a step."""
    seats = range(len(terms["rank"]))
    weights = OPTIONS[option]
    return [float(sum(float(w) * terms[t][seat] for t, w in weights.items())) for seat in seats]
