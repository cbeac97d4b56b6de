"""Matches: every game counts once, nobody owns a seat, and the intervals mean what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from reference.philox import LINEUPS, Philox
from sparring import ConfigError, Lineup, Pool, Rules, State, _native, new_state
from sparring.config import NetConfig
from sparring.league.arena import MatchResult, evaluate, play_match, sit_down
from sparring.league.results import Record, interval_of_mean, summarise, wilson
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy

BOTS = ["captain", "rule_hard", "random", "rule_easy"]


def make_policy(game: str, seed: int = 0, name: str = "fresh") -> Policy:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rules = Rules(game)
    net = Perceptron(rules, NetConfig(hidden=(32, 32)))
    torch.nn.init.normal_(net.policy_head.weight)  # a fresh net hardly prefers any action
    return Policy(rules, net, name=name)


def new_game(rules: Rules, seed: int, game: int) -> State:
    """The first game of one table of a pool, on its own."""
    state = new_state(rules, seed=seed)
    state.native = _native.make_state(rules.native, seed, game, rules.skip_forced, state.weights)
    return state


def seats_of(players: list[str], seed: int, game: int, episode: int = 1) -> list[str]:
    """Who sits where, as the pool draws it."""
    seated, rng = list(players), Philox(seed, game, episode, LINEUPS)
    for seat in range(len(seated) - 1, 0, -1):
        other = rng.below(seat + 1)
        seated[seat], seated[other] = seated[other], seated[seat]
    return seated


def count_slowly(players: list[str], sheets: list[tuple[list[str], list[float]]]) -> list[dict]:
    """Shares, ties, places and scores, one game and one player at a time."""
    found = []
    for name in players:
        share = wins = ties = place = total = 0.0
        for seated, scores in sheets:
            mine = scores[seated.index(name)]
            top = [score for score in scores if score == max(scores)]
            if mine == max(scores):
                share += 1 / len(top)
                wins, ties = wins + (len(top) == 1), ties + (len(top) > 1)
            equal = sum(score == mine for score in scores)
            place += 1 + sum(score > mine for score in scores) + (equal - 1) / 2
            total += mine
        games = len(sheets)
        found.append(
            {
                "win_share": share / games,
                "wins": wins,
                "ties": ties,
                "losses": games - wins - ties,
                "score": total / games,
                "rank": place / games,
            }
        )
    return found


def agree(result: MatchResult, slowly: list[dict]) -> None:
    for player, slow in zip(result.players, slowly, strict=True):
        assert {key: getattr(player, key) for key in slow} == pytest.approx(slow)


@pytest.mark.parametrize(("game", "players"), [("skull_king", BOTS), ("tic_tac_toe", None)])
def test_a_match_equals_single_games_played_one_by_one(
    game: str, players: list[str] | None
) -> None:
    rules, games, seed = Rules(game), 24, 7
    players = players or ["careful", "random"]
    sheets = []
    for number in range(games):
        state, seated = new_game(rules, seed, number), seats_of(players, seed, number)
        while not state.over:
            state.apply(state.ask(seated[state.seat]))
        sheets.append((seated, state.scores))
    result = play_match(rules, players, games=games, parallel=games, seed=seed)
    assert [player.name for player in result.players] == players
    agree(result, count_slowly(players, sheets))
    first = [seated.index(players[0]) for seated, _ in sheets]
    assert result.seat_games == tuple(first.count(seat) for seat in range(rules.seats))


def test_policies_too_play_as_they_would_alone() -> None:
    policy, seed, games = make_policy("tic_tac_toe"), 3, 40
    players = {"fresh": policy.action, "careful": lambda state: state.ask("careful")}
    sheets = []
    for number in range(games):
        state = new_game(policy.rules, seed, number)
        seated = seats_of(["fresh", "careful"], seed, number)
        while not state.over:
            state.apply(players[seated[state.seat]](state))
        sheets.append((seated, state.scores))
    result = play_match(policy.rules, [policy, "careful"], games=games, seed=seed)
    agree(result, count_slowly(["fresh", "careful"], sheets))


def test_every_table_counts_its_first_games_and_no_others() -> None:
    """8 games on 3 tables: 3, 3 and 2 of them, however long they take."""
    rules, players = Rules("tic_tac_toe"), ["careful", "random"]
    sheets = []
    for table, share in enumerate((3, 3, 2)):
        pool = Pool(rules, 1, seed=5, first_game=table, lineups=[Lineup(tuple(players))])
        pool.reset()
        episode = 0
        while episode < share:
            batch = pool.step(np.zeros(1, np.int32))
            if len(batch.final_game):
                episode += 1
                seated = seats_of(players, 5, table, episode)
                sheets.append((seated, [float(score) for score in batch.final_score[0]]))
    result = play_match(rules, players, games=8, parallel=3, seed=5)
    assert result.games == result.first.games == sum(result.seat_games) == 8
    agree(result, count_slowly(players, sheets))


def test_nobody_owns_a_seat() -> None:
    result = play_match(Rules("skull_king"), ["captain"] * 4, games=2048, seed=1)
    expected = 2048 / 4
    assert sum((sat - expected) ** 2 / expected for sat in result.seat_games) < 16.3  # p = 0.001
    for player in result.players:
        low, high = player.win_interval
        assert low < result.parity < high
        assert 0.03 < high - low < 0.05
    assert sum(player.win_share for player in result.players) == pytest.approx(1)


def test_a_good_seat_shows_and_does_not_help() -> None:
    """Greedy copies of one net play the same tic-tac-toe game again and again; one seat wins it."""
    policy = next(
        policy
        for policy in (make_policy("tic_tac_toe", seed) for seed in range(20))
        if play_match(policy.rules, [policy] * 2, games=2).first.ties == 0
    )
    result = play_match(policy.rules, [policy, policy], games=1000, seed=4)
    assert sorted(result.seat_shares) == [0, 1]
    low, high = result.first.win_interval
    assert low < 0.5 < high


def test_the_same_seed_plays_the_same_match() -> None:
    policy, other = make_policy("skull_king", 1), make_policy("skull_king", 2, "other")
    seats, rules = [policy, other, "captain", other], policy.rules.changed({"rounds": [2, 3]})
    for greedy in (True, False):
        options = {"games": 96, "parallel": 40, "greedy": greedy}
        first = play_match(rules, seats, seed=9, **options)
        assert play_match(rules, seats, seed=9, **options) == first
        assert play_match(rules, seats, seed=9, threads=2, **options) == first
        assert play_match(rules, seats, seed=10, **options) != first


def test_drawn_actions_are_not_the_greedy_ones() -> None:
    policy = make_policy("tic_tac_toe")
    drawn = play_match(policy.rules, [policy, policy], games=512, greedy=False)
    greedy = play_match(policy.rules, [policy, policy], games=512)
    assert len(set(greedy.ends)) == 1
    assert len(set(drawn.ends)) == 2


def test_a_win_is_split_among_those_who_share_the_top() -> None:
    score = np.array([[5, 5, 1, 0], [7, 7, 7, 0], [3, 3, 3, 3], [9, 1, 2, 3]], np.float32)
    seat_of = np.tile(np.arange(4), (4, 1))
    ends = np.zeros(4, np.uint8)
    record = Record(score, seat_of.astype(np.int16), np.full(4, 10, np.int32), ends)
    result = summarise(Rules("skull_king"), list("abcd"), seat_of, record)
    first, last = result.players[0], result.players[3]
    assert first.win_share == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1) / 4)
    assert (first.wins, first.ties, first.losses) == (1, 3, 0)
    assert first.rank == pytest.approx((1.5 + 2 + 2.5 + 1) / 4)
    assert (last.wins, last.ties, last.losses) == (0, 1, 3)
    assert sum(player.rank for player in result.players) == pytest.approx(1 + 2 + 3 + 4)
    assert result.seat_shares[1:] == (None, None, None)
    assert result.others_score == pytest.approx(np.mean(score[:, 1:]))
    json.dumps(result.summary(), allow_nan=False)


def test_lots_tell_copies_apart_and_nobody_else() -> None:
    ids = np.array([0, -6, -6, 3])
    player = np.array([[-6, 3, 0, -6]] * 4000, np.int16)
    seat_of = sit_down(ids, player, seed=1)
    assert (seat_of[:, 0] == 2).all()
    assert (seat_of[:, 3] == 1).all()
    assert (np.sort(seat_of, axis=1) == np.arange(4)).all()
    assert abs((seat_of[:, 1] == 0).mean() - 0.5) < 0.04


@pytest.mark.filterwarnings("error")
def test_large_seeds_draw_lots_of_their_own() -> None:
    ids, player = np.zeros(4, np.int64), np.zeros((50, 4), np.int16)
    seeds = (5, 2**63 + 5, 2**63 + 6, 2**64 - 1)
    drawn = [sit_down(ids, player, seed=seed).tobytes() for seed in seeds]
    assert len(set(drawn)) == len(seeds)
    assert sit_down(ids, player, seed=-1).tobytes() == drawn[-1]
    result = play_match(Rules("tic_tac_toe"), ["random"] * 2, games=64, seed=2**63 + 5)
    assert result.first.games == 64


@pytest.mark.parametrize("share", [0.02, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("tied", [0.0, 0.5])
def test_win_intervals_cover_the_truth(share: float, tied: float) -> None:
    rng, games, matches = np.random.default_rng(1), 300, 2000
    won = rng.random((matches, games)) < share
    # In a share of the games the win or loss is replaced by a half with the same mean.
    half = (rng.random((matches, games)) < tied) * (rng.random((matches, games)) < 2 * share)
    values = np.where(half & (share <= 0.5), 0.5, won)
    truth = float(values.mean())
    inside = [low <= truth <= high for low, high in (wilson(m, games) for m in values.mean(1))]
    assert np.mean(inside) > 0.93


def test_no_interval_is_empty_and_score_intervals_cover() -> None:
    assert wilson(0.0, 100)[0] == 0
    assert 0.03 < wilson(0.0, 100)[1] < 0.04
    assert wilson(1.0, 100)[1] == 1
    rng = np.random.default_rng(2)
    scores = rng.exponential(50, (2000, 400)).astype(np.float32)
    inside = [low < 50 < high for low, high in map(interval_of_mean, scores)]
    assert 0.93 < np.mean(inside) < 0.97


def test_evaluate_seats_one_challenger_against_copies() -> None:
    counted: list[int] = []
    rules = Rules("skull_king")
    results = evaluate(
        "captain", ["random", "rule_hard"], rules=rules, games=100, progress=counted.append
    )
    assert list(results) == ["random", "rule_hard"]
    for name, result in results.items():
        assert [player.name for player in result.players] == ["captain", name, name, name]
        assert result.first.win_interval[0] > result.parity
    assert counted[-1] == 200
    assert counted == sorted(counted)
    alone = play_match(rules, ["captain", *["random"] * 3], games=100)
    assert alone == results["random"]


def test_games_with_simultaneous_moves_and_boxes() -> None:
    result = play_match(Rules("duel"), ["pusher", "random"], games=50, parallel=20)
    assert result.first.wins > 40
    assert sum(result.ends.values()) == 50


@pytest.mark.parametrize(
    ("seats", "options", "hint"),
    [
        (["captain"] * 3, {}, "has 4 seats, not 3"),
        (["captian"] * 4, {}, "did you mean 'captain'"),
        (BOTS, {"games": 1}, "at least 2"),
        (BOTS, {"parallel": 0}, "at least 1"),
        (BOTS, {"threads": 0}, "at least 1"),
    ],
)
def test_mistakes_say_what_to_do(seats: list[str], options: dict[str, int], hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        play_match(Rules("skull_king"), seats, **options)


def test_more_mistakes() -> None:
    policy = make_policy("tic_tac_toe")
    with pytest.raises(ConfigError, match="plays tic_tac_toe, not skull_king"):
        play_match(Rules("skull_king"), [policy, "captain", "captain", "captain"])
    with pytest.raises(ConfigError, match="rules="):
        evaluate("careful", ["random"])
    with pytest.raises(ConfigError, match="bots random, careful"):
        evaluate(policy, [])
    with pytest.raises(ConfigError, match="given twice"):
        evaluate(policy, ["random", "random"])


def test_drawn_games_are_left_out_of_the_decided_share() -> None:
    result = play_match(Rules("tic_tac_toe"), ["random", "random"], games=400)
    first = result.first
    assert first.ties > 0
    assert first.decided == first.games - first.ties
    assert first.decided_share == pytest.approx(first.wins / (first.wins + first.losses))
    low, high = first.decided_interval
    assert low < first.decided_share < high
    assert result.summary()["decided_low"] == low
