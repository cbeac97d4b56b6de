"""Ratings: known strengths are found within their intervals, and nothing else moves them."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations

import numpy as np
import numpy.typing as npt
import pytest

from sparring import ConfigError, Rules
from sparring.league.arena import play_match
from sparring.league.elo import fit
from sparring.league.plackett_luce import RankingsFit
from sparring.league.ratings import (
    PairScore,
    Rankings,
    Rating,
    default_anchors,
    rankings_of,
    rate,
    score_of,
)

TRUE = {"random": 0.0, "a": 150.0, "b": -60.0, "c": 320.0, "d": 200.0}
TIES = 0.6
REPEATS = 200


def by_name(rows: list[Rating]) -> dict[str, Rating]:
    return {row.player: row for row in rows}


def synthetic_places(
    draw: np.random.Generator, elos: npt.ArrayLike, games: int
) -> npt.NDArray[np.intp]:
    """Games of players with known strengths, some of whom tie.

    Two neighbors tie as likely from the one order as from the other, so that a tie says no more
    than both orders in equal parts do.
    """
    log = np.asarray(elos) * np.log(10) / 400
    order = np.argsort(-(log + draw.gumbel(size=(games, len(log)))), axis=1)
    places = np.argsort(order, axis=1)
    at = draw.integers(len(log) - 1, size=games)
    rows = np.arange(games)
    ahead, behind = order[rows, at], order[rows, at + 1]
    strength = np.exp(log)
    left = np.cumsum(strength[order][:, ::-1], axis=1)[:, ::-1][rows, at]
    after = left - strength[ahead], left - strength[behind]  # the less, the likelier the order
    tied = draw.random(games) < TIES * after[0] / (after[0] + after[1])
    places[rows[tied], behind[tied]] = places[rows[tied], ahead[tied]]
    return places


def synthetic_score(draw: np.random.Generator, one: str, two: str, games: int) -> PairScore:
    places = synthetic_places(draw, [TRUE[one], TRUE[two]], games)
    won, lost = int((places[:, 0] < places[:, 1]).sum()), int((places[:, 0] > places[:, 1]).sum())
    return PairScore(one, two, won, games - won - lost, lost)


def coverage(seats: int, repeats: int, games: int) -> tuple[float, float]:
    """How often the truth is in its interval, and the share of games with ties."""
    inside: list[bool] = []
    ties: list[float] = []
    for repeat in range(repeats):
        draw = np.random.default_rng([seats, repeat])
        matches: list[PairScore] | list[Rankings]
        if seats == 2:
            matches = [synthetic_score(draw, *pair, games) for pair in combinations(TRUE, 2)]
            ties += [score.draws / score.games for score in matches]
        else:
            tables = [(one, *[two] * (seats - 1)) for one, two in permutations(TRUE, 2)]
            matches = [
                Rankings(table, synthetic_places(draw, [TRUE[n] for n in table], games))
                for table in tables
            ]
            ties += [float((np.diff(np.sort(t.places)) == 0).any(1).mean()) for t in matches]
        rows = rate(list(TRUE), matches, seats=seats, seed=repeat)
        inside += [row.low <= TRUE[row.player] <= row.high for row in rows if not row.anchor]
    return float(np.mean(inside)), float(np.mean(ties))


@pytest.mark.few(1)
@pytest.mark.parametrize(("seats", "games"), [(2, 60), (4, 30)])
def test_intervals_hold_known_strengths(seats: int, games: int) -> None:
    covered, ties = coverage(seats, 12, games)
    assert ties > 0.1
    assert covered >= 0.85  # 48 ratings, 95 % of which are 46


@pytest.mark.slow
@pytest.mark.parametrize(("seats", "games"), [(2, 60), (4, 30), (2, 600), (4, 200)])
def test_stated_coverage_is_the_real_one(seats: int, games: int) -> None:
    covered, _ = coverage(seats, REPEATS, games)
    print(f"{seats} seats, {games} games per table: {covered:.1%} of {4 * REPEATS} intervals")
    # Ratings of one repeat go together (0.5), so that a standard error is 1.2 %: three of them.
    assert 0.913 <= covered <= 0.987


def test_elo_is_the_case_of_two_seats() -> None:
    """Both models say the same about games of two, draws among them."""
    scores = [
        PairScore("a", "b", 30, 20, 50),
        PairScore("b", "c", 70, 0, 30),
        PairScore("a", "c", 10, 50, 40),
    ]
    tables = []
    for score in scores:
        places = [[0, 1]] * score.wins + [[0, 0]] * score.draws + [[1, 0]] * score.losses
        tables.append(Rankings((score.one, score.two), np.array(places)))
    ours, theirs = (by_name(rate(list("abc"), found)) for found in (scores, tables))
    for name in "abc":
        assert theirs[name].elo == pytest.approx(ours[name].elo, abs=1e-4)
        assert theirs[name].low == pytest.approx(ours[name].low, abs=6)
        assert theirs[name].high == pytest.approx(ours[name].high, abs=6)
        assert (theirs[name].games, theirs[name].score) == (ours[name].games, ours[name].score)


def test_the_order_of_games_does_not_matter() -> None:
    draw = np.random.default_rng(0)
    table = tuple("abcd")
    places = synthetic_places(draw, [0, 100, 200, 300], 200)
    once = rate(table, [Rankings(table, places)], seats=4)
    again = rate(table, [Rankings(table, places[100:]), Rankings(table, places[:100])], seats=4)
    assert [row.elo for row in once] == pytest.approx([row.elo for row in again], abs=1e-4)


def likelihood(log: npt.NDArray[np.float64], places: npt.NDArray[np.intp]) -> float:
    """Of one game, an order at a time: the mean over those that are possible."""
    orders = [
        order
        for order in permutations(range(len(log)))
        if all(places[one] <= places[two] for one, two in pairwise(order))
    ]
    total = 0.0
    for order in orders:
        rest = [log[at] for at in order]
        total += sum(rest[k] - np.log(np.exp(rest[k:]).sum()) for k in range(len(rest)))
    return total / len(orders)


def test_ratings_are_where_the_likelihood_of_all_orders_is_largest() -> None:
    """Held against the definition, written out slowly, with ties of two, three and all."""
    places = np.array([[0, 1, 2, 3], [0, 0, 1, 1], [2, 0, 0, 0], [0, 0, 0, 0], [3, 2, 1, 0]])
    found = RankingsFit(list("abcd"), [Rankings(tuple("abcd"), places)], {0: 0.0})
    found.prior[:] = 0
    best = found.maximum_likelihood() * np.log(10) / 400

    def slow(log: npt.NDArray[np.float64]) -> float:
        return sum(likelihood(log, game) for game in places)

    for at in (1, 2, 3):
        for step in (-1e-3, 1e-3):
            moved = best.copy()
            moved[at] += step
            assert slow(moved) < slow(best)


def test_openskill_puts_players_in_the_same_order() -> None:
    models = pytest.importorskip("openskill.models")
    draw = np.random.default_rng(0)
    table = ("a", "b", "c", "d")
    places = synthetic_places(draw, [TRUE[name] for name in table], 400)
    ours = [row.player for row in rate(table, [Rankings(table, places)], seats=4)]
    model = models.PlackettLuce()
    teams = [[model.rating(name=name)] for name in table]
    for game in places.tolist():
        teams = model.rate(teams, ranks=game)
    theirs = sorted(teams, key=lambda team: -team[0].mu)
    assert ours == [team[0].name for team in theirs]


def test_an_anchor_keeps_its_rating_whoever_joins() -> None:
    draw = np.random.default_rng(0)
    scores = [synthetic_score(draw, *pair, 400) for pair in combinations(TRUE, 2)]
    few = by_name(rate(["random", "a"], [s for s in scores if {s.one, s.two} == {"random", "a"}]))
    all_of_them = by_name(rate(list(TRUE), scores))
    for rows in (few, all_of_them):
        assert (rows["random"].elo, rows["random"].low, rows["random"].high) == (0, 0, 0)
        assert rows["random"].anchor
        assert not rows["a"].anchor
    assert few["a"].low <= all_of_them["a"].elo <= few["a"].high
    moved = by_name(rate(list(TRUE), scores, anchors={"random": 1000.0}))
    assert moved["a"].elo == pytest.approx(all_of_them["a"].elo + 1000, abs=1e-3)
    two = by_name(rate(list(TRUE), scores, anchors={"random": 0.0, "c": 320.0}))
    assert (two["random"].elo, two["c"].elo) == (0, 320)
    # What is known of two players is more than what is known of one.
    width = all_of_them["a"].high - all_of_them["a"].low
    assert two["a"].high - two["a"].low < width


def test_the_usual_anchor_is_random_or_the_weakest_bot() -> None:
    bots = Rules("skull_king").bots
    assert default_anchors(["x", "captain", "random"], bots) == {"random": 0.0}
    weaker = next(bot for bot in bots if bot in ("rule_easy", "captain"))
    assert default_anchors(["x", "captain", "rule_easy"], bots) == {weaker: 0.0}
    assert default_anchors(["x", "y"], bots) == {"x": 0.0}


def test_a_thousand_matches_against_oneself_move_nothing() -> None:
    draw = np.random.default_rng(0)
    scores = [synthetic_score(draw, *pair, 100) for pair in combinations(TRUE, 2)]
    before = rate(list(TRUE), scores)
    mirrors = [PairScore("a", "a", 7, 2, 1)] * 1000
    assert rate(list(TRUE), [*scores, *mirrors]) == before
    places = synthetic_places(draw, [0, 50, 0, 100], 100)
    table = Rankings(("random", "a", "random", "b"), places)
    mirror = Rankings(("a",) * 4, np.arange(4)[None].repeat(1000, 0))
    names = ["random", "a", "b"]
    assert rate(names, [table, mirror], seats=4) == rate(names, [table], seats=4)


def test_a_policy_under_two_names_stays_within_its_interval() -> None:
    """1,000 games of a bot against itself: neither name wins rating from the other."""
    rules = Rules("tic_tac_toe")
    against = score_of(play_match(rules, ["careful", "random"], games=1000, seed=1))
    same = score_of(play_match(rules, ["careful", "careful"], games=1000, seed=2))
    twin = PairScore("careful", "twin", same.wins, same.draws, same.losses, deals=same.deals)
    before = by_name(rate(["random", "careful"], [against]))["careful"]
    after = by_name(rate(["random", "careful", "twin"], [against, twin]))
    assert before.low < after["careful"].elo < before.high
    assert after["twin"].low < after["careful"].elo < after["twin"].high
    apart = by_name(rate(["careful", "twin"], [twin]))["twin"]
    assert apart.low < 0 < apart.high


def test_deals_that_both_seats_share_are_counted_once() -> None:
    """The seat decides every deal: 50 % for sure, where games alone would leave room for luck."""
    games = PairScore("a", "b", 200, 0, 200)
    deals = PairScore("a", "b", 200, 0, 200, deals=(0, 0, 200, 0, 0))
    cards = PairScore("a", "b", 200, 0, 200, deals=(100, 0, 0, 0, 100))
    width = {}
    for kind, score in (("games", games), ("seat", deals), ("cards", cards)):
        row = by_name(rate(["a", "b"], [score]))["b"]
        width[kind] = row.high - row.low
    assert width["seat"] < 0.3 * width["games"]
    # Where the cards decide both games of a deal, half as many are independent.
    assert width["cards"] == pytest.approx(width["games"] * 2**0.5, rel=0.1)


def test_a_match_becomes_scores_and_rankings() -> None:
    rules = Rules("tic_tac_toe")
    result = play_match(rules, ["careful", "random"], games=200, seed=3)
    score = score_of(result)
    first = result.first
    assert (score.wins, score.draws, score.losses) == (first.wins, first.ties, first.losses)
    assert sum(score.deals) == pytest.approx(result.distinct_deals)
    table = play_match(Rules("skull_king"), ["captain", *["random"] * 3], games=80, seed=3)
    ranked = rankings_of(table)
    assert ranked.places.shape == (80, 4)
    alone = (ranked.places == 0).sum(1) == 1
    assert int(((ranked.places[:, 0] == 0) & alone).sum()) == table.first.wins
    rows = by_name(rate(["captain", "random"], [ranked], seats=4))
    assert rows["captain"].low > 100
    assert rows["random"].elo == 0


def test_one_sided_tables_stay_finite_and_wide() -> None:
    table = ("a", "b", "b", "b")
    places = np.tile([0, 1, 2, 3], (40, 1))
    row = by_name(rate(["b", "a"], [Rankings(table, places)], seats=4))["a"]
    assert 200 < row.low < row.elo < row.high < 3000


def test_tables_that_nobody_connects_have_zeros_of_their_own() -> None:
    draw = np.random.default_rng(0)
    tables = [
        Rankings(("random", "a", "a"), synthetic_places(draw, [0, 100, 100], 50)),
        Rankings(("x", "y", "y"), synthetic_places(draw, [0, 100, 100], 50)),
    ]
    rows = rate(["random", "a", "x", "y", "z"], tables, seats=3)
    assert {row.player: row.group for row in rows} == {"random": 0, "a": 0, "x": 1, "y": 1, "z": 2}
    assert [by_name(rows)[name].elo for name in ("random", "x", "z")] == [0, 0, 0]


def test_what_cannot_be_rated_is_refused() -> None:
    score = PairScore("a", "b", 1, 0, 1)
    table = Rankings(("a", "b", "b"), np.array([[0, 1, 2]]))
    with pytest.raises(ConfigError, match="a is given twice"):
        rate(["a", "a"], [score])
    with pytest.raises(ConfigError, match="'b' played but is not among"):
        rate(["a"], [score])
    with pytest.raises(ConfigError, match="anchor 'randm' does not play; did you mean 'random'"):
        rate(["random", "a"], [], anchors={"randm": 0})
    with pytest.raises(ConfigError, match="anchor 'a' has the rating nan"):
        rate(["a", "b"], [score], anchors={"a": float("nan")})
    with pytest.raises(ConfigError, match="rate them separately"):
        rate(["a", "b"], [score, table], seats=3)
    with pytest.raises(ConfigError, match="seats=4, but a match has 3"):
        rate(["a", "b"], [table], seats=4)
    with pytest.raises(ConfigError, match="with deals and without"):
        rate(["a", "b"], [score, PairScore("b", "a", 1, 0, 1, deals=(0, 0, 1, 0, 0))])
    with pytest.raises(ConfigError, match="not \\(games, 3 players\\)"):
        Rankings(("a", "b", "b"), np.array([[0, 1]]))


def test_anchors_far_from_what_was_played_do_not_overflow() -> None:
    games = np.array([[0.0, 100.0], [100.0, 0.0]])
    with np.errstate(all="raise", under="ignore"):
        assert fit(games, games / 2, {0: 1e6})[1] == pytest.approx(1e6)
