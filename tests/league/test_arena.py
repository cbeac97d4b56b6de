"""Matches: every game counts once, nobody owns a seat, and the intervals mean what they say."""

from __future__ import annotations

import itertools
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from reference.philox import LINEUPS, Philox
from sparring import ConfigError, Lineup, Pool, Rules, State, _native, new_state
from sparring.config import NetConfig
from sparring.league.arena import MatchResult, evaluate, play_match
from sparring.league.deals import seat_players, seating_orders
from sparring.league.results import MatchRecord, load_result, save_result, summarize
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


def seats_of(rules: Rules, players: list[str], seed: int, game: int, ahead: int) -> list[str]:
    """Who sits where: an order around the table by lot, everybody `ahead` seats further on."""
    ids = {name: -2 - rules.bot(name) if name in rules.bots else 0 for name in players}
    known = {number: name for name, number in ids.items()}
    orders = seating_orders([ids[name] for name in players], seed)
    lot = Philox(seed, game, 1, LINEUPS).u32() * len(orders) >> 32 if len(orders) > 1 else 0
    seated = [known[number] for number in orders[lot]]
    return [seated[(seat - ahead) % len(seated)] for seat in range(len(seated))]


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
    for number in range(games // rules.seats):
        for ahead in range(rules.seats):  # the same cards from every seat
            state = new_game(rules, seed, number)
            seated = seats_of(rules, players, seed, number, ahead)
            while not state.over:
                state.apply(state.ask(seated[state.seat]))
            sheets.append((seated, state.scores))
    result = play_match(rules, players, games=games, parallel=games, seed=seed)
    assert [player.name for player in result.players] == players
    agree(result, count_slowly(players, sheets))
    assert result.seat_games == (games // rules.seats,) * rules.seats
    assert (result.games, result.deals) == (games, games // rules.seats)


def test_policies_too_play_as_they_would_alone() -> None:
    policy, seed, games = make_policy("tic_tac_toe"), 3, 40
    players = {"fresh": policy.action, "careful": lambda state: state.ask("careful")}
    sheets = []
    for number, ahead in np.ndindex(games // 2, 2):
        state = new_game(policy.rules, seed, number)
        seated = seats_of(policy.rules, ["fresh", "careful"], seed, number, ahead)
        while not state.over:
            state.apply(players[seated[state.seat]](state))
        sheets.append((seated, state.scores))
    result = play_match(policy.rules, [policy, "careful"], games=games, seed=seed)
    agree(result, count_slowly(["fresh", "careful"], sheets))


def test_every_table_counts_its_first_games_and_no_others() -> None:
    """8 deals on 3 tables: 3, 3 and 2 of them, however long they take."""
    rules, players = Rules("tic_tac_toe"), ["careful", "random"]
    sheets = []
    for (table, share), ahead in itertools.product(enumerate((3, 3, 2)), range(2)):
        seated = seats_of(rules, players, 5, table, ahead)
        lineups = [Lineup(tuple(seated), shuffle=False)]
        pool = Pool(rules, 1, seed=5, first_game=table, lineups=lineups)
        pool.reset()
        episode = 0
        while episode < share:
            batch = pool.step(np.zeros(1, np.int32))
            if len(batch.final_game):
                episode += 1
                sheets.append((seated, [float(score) for score in batch.final_score[0]]))
    result = play_match(rules, players, games=16, parallel=6, seed=5)
    assert result.games == result.first.games == sum(result.seat_games) == 16
    agree(result, count_slowly(players, sheets))


@pytest.mark.parametrize("players", [["captain"] * 4, ["captain", *["rule_hard"] * 3], BOTS])
def test_everybody_sits_in_every_seat_equally_often(players: list[str]) -> None:
    for first in range(4):
        rotated = players[first:] + players[:first]
        result = play_match(Rules("skull_king"), rotated, games=100, seed=1)
        assert result.seat_games == (25, 25, 25, 25)


def test_games_that_make_no_whole_rounds_are_rounded_up() -> None:
    result = play_match(Rules("skull_king", {"rounds": [1]}), BOTS, games=9)
    assert (result.games, result.deals, result.seat_games) == (12, 3, (3, 3, 3, 3))
    assert result.summary()["games"] == 12


def test_copies_of_one_player_are_exactly_equal() -> None:
    """They play each deal the same from every seat, so that luck has no part in the shares."""
    result = play_match(Rules("skull_king"), ["captain"] * 4, games=512, seed=1)
    assert [player.win_share for player in result.players] == pytest.approx([0.25] * 4)
    assert (result.distinct_games, result.distinct_deals) == (128, 128)
    low, high = result.first.win_interval
    assert low < 0.25 < high < low + 0.06


def test_who_sits_next_to_whom_is_drawn_too() -> None:
    ids = [-3, -4, -5, -6]
    orders = seating_orders(ids, 0)
    assert len(set(orders)) == 6
    assert {order[0] for order in orders} == {-3}
    assert seating_orders([-3, -4, -4, -4], 0) == [(-3, -4, -4, -4)]
    many = seating_orders(list(range(8)), 0)
    assert len(many) <= _native.MAX_LINEUPS
    assert many == seating_orders(list(range(8)), 0) != seating_orders(list(range(8)), 1)


def test_greedy_policies_open_by_lot_where_chance_has_no_part() -> None:
    one, two = make_policy("tic_tac_toe", 1), make_policy("tic_tac_toe", 2, "other")
    result = play_match(one.rules, [one, two], games=4096, seed=4)
    assert result.opening_plies == 3
    assert 300 < result.distinct_deals <= 504  # so many openings of three stones there are
    assert result.distinct_games <= 2 * result.distinct_deals
    low, high = result.first.win_interval
    # The interval is that of a few hundred deals, not of 4,096 games.
    assert high - low > 0.04
    summary = result.summary()
    assert summary["distinct_games"] == result.distinct_games
    assert summary["deals"] == 2048


def test_one_game_over_and_over_is_worth_one_game() -> None:
    one, two = make_policy("tic_tac_toe", 1), make_policy("tic_tac_toe", 2, "other")
    result = play_match(one.rules, [one, two], games=4096, opening_plies=0)
    assert (result.distinct_games, result.distinct_deals, result.deals) == (2, 1, 2048)
    low, high = result.first.win_interval
    assert high - low > 0.7
    assert result.summary()["score_low"] is None


def test_every_opening_is_played_with_both_colors() -> None:
    """Copies of one net play an opening the same way from both sides."""
    policy = make_policy("tic_tac_toe")
    result = play_match(policy.rules, [policy, policy], games=400)
    assert result.distinct_games == result.distinct_deals > 100
    assert result.first.win_share == 0.5
    assert result.seat_shares[0] == pytest.approx(1 - result.seat_shares[1])


def test_drawn_actions_and_bots_need_no_opening() -> None:
    policy = make_policy("tic_tac_toe")
    for seats, greedy in (([policy] * 2, False), ([policy, "careful"], True)):
        result = play_match(policy.rules, seats, games=200, greedy=greedy)
        assert result.opening_plies == 0
        assert result.distinct_games > 50
    with_chance = make_policy("skull_king")
    result = play_match(with_chance.rules, [with_chance] * 4, games=16)
    assert result.opening_plies == 0
    assert result.distinct_deals == 4


def test_openings_count_games_that_bots_win_at_once() -> None:
    """After four stones the bot may win before the policy ever moves; such games are lost."""
    policy = make_policy("tic_tac_toe")
    result = play_match(policy.rules, [policy, "careful"], games=2000, opening_plies=4, seed=2)
    assert result.seat_games == (1000, 1000)
    pool = Pool(policy.rules, 1000, seed=2, every_game=True, opening_plies=4)
    pool.reset()
    lines = [0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124]
    stones = pool.tables[:, :4].copy().view(np.uint16).tolist()
    at_once = sum(
        any((own & line).bit_count() == 2 and not other & line for line in lines)
        for own, other in stones
    )
    assert at_once > 100
    assert result.seat_shares[1] <= 1 - at_once / 1000


def test_a_match_does_not_depend_on_tables_or_threads() -> None:
    policy = make_policy("tic_tac_toe")
    seats = [policy, make_policy("tic_tac_toe", 2, "other")]
    found = [play_match(policy.rules, seats, games=200, threads=threads) for threads in (1, 3)]
    assert found[0] == found[1]


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
    assert drawn.players != greedy.players
    assert drawn.distinct_games > 200


def test_a_win_is_split_among_those_who_share_the_top() -> None:
    score = np.array([[5, 5, 1, 0], [7, 7, 7, 0], [3, 3, 3, 3], [9, 1, 2, 3]], np.float32)
    seat_of = np.tile(np.arange(4), (4, 1))
    ends = np.zeros(4, np.uint8)
    numbers = np.arange(4)
    length, moves = np.full(4, 10, np.int32), numbers.astype(np.uint64)
    record = MatchRecord(seat_of, score, length, ends, numbers, moves)
    result = summarize(Rules("skull_king"), list("abcd"), record)
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
    player = np.array([[0, -6, 3, -6]] * 4000, np.int16)
    place = seat_players(ids, player, seed=1)
    assert (place[:, 0] == 0).all()
    assert (place[:, 3] == 2).all()
    assert (np.sort(place, axis=1) == np.arange(4)).all()
    assert abs((place[:, 1] == 1).mean() - 0.5) < 0.04
    copies = seat_players(np.array([-6] * 4), np.full((4000, 4), -6, np.int16), seed=1)
    assert (copies[:, 0] == 0).all()
    assert abs((copies[:, 3] == 1).mean() - 1 / 3) < 0.04


@pytest.mark.filterwarnings("error")
def test_large_seeds_draw_lots_of_their_own() -> None:
    ids, player = np.zeros(4, np.int64), np.zeros((50, 4), np.int16)
    seeds = (5, 2**63 + 5, 2**63 + 6, 2**64 - 1)
    drawn = [seat_players(ids, player, seed=seed).tobytes() for seed in seeds]
    assert len(set(drawn)) == len(seeds)
    assert seat_players(ids, player, seed=-1).tobytes() == drawn[-1]
    result = play_match(Rules("tic_tac_toe"), ["random"] * 2, games=64, seed=2**63 + 5)
    assert result.first.games == 64


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
        (BOTS, {"threads": 0}, "threads=0 must be 1..1024"),
        (BOTS, {"opening_plies": -1}, "outside 0..100"),
        (BOTS, {"opening_plies": 101}, "outside 0..100"),
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
    with pytest.raises(ConfigError, match=r"opening_plies=9 leaves no decision.*at most 8"):
        play_match(policy.rules, [policy, "random"], opening_plies=9)
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


def test_a_match_in_a_file_says_the_same(tmp_path: Path) -> None:
    rules = Rules("tic_tac_toe")
    (found,) = evaluate("careful", ["random"], rules=rules, games=64, seed=3).values()
    save_result(tmp_path / "0.npz", found)
    again = load_result(tmp_path / "0.npz", rules)
    assert again == found
    for field in fields(MatchRecord):
        assert (getattr(again.record, field.name) == getattr(found.record, field.name)).all()
