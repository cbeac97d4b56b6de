"""Heads beside policy and value: what came of games, what is hidden, and how they are learned.

What came of games is held against loops over games, what is hidden against the readable state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring import Lineup, Pool
from sparring.config import CollectConfig, HeadsConfig, NetConfig, PPOConfig
from sparring.games.hidden import hidden_of, truth_of
from sparring.games.kuhhandel import read as read_kuhhandel
from sparring.learn.head_terms import HiddenTerm, saying, seats_of
from sparring.learn.outcomes import outcomes_of
from sparring.learn.ppo import PPO
from sparring.nets.heads import heads_of
from sparring.nets.make import make_net
from sparring.nets.net import HIDDEN, SCORE, VALUE, WDL
from sparring.schedule import Moment, Schedule

ONE = Schedule.constant(1.0)
ALL = HeadsConfig(wdl=ONE, score=ONE, hidden=ONE)
BOTH = HeadsConfig(wdl=ONE, score=ONE)
SETTINGS = PPOConfig(epochs=2, minibatch=100)
NET = NetConfig(hidden=(32, 16))


def make(
    game: str,
    heads: HeadsConfig,
    *,
    net: NetConfig = NET,
    cpu: str = "float32",
    steps: int = 24,
    config: dict[str, Any] | None = None,
    lineups: list[Lineup] | None = None,
) -> PPO:
    rules = sparring.Rules(game, config)
    lineups = lineups or [Lineup((0,) * rules.seats)]
    pool = Pool(rules, 12, seed=1, threads=1, lineups=lineups)
    collect = CollectConfig(games=12, steps=steps, cpu=cpu)
    return PPO(pool, collect, SETTINGS, net, seed=1, heads=heads)


def said_by_loops(learner: PPO) -> tuple[np.ndarray, np.ndarray]:
    """What came of every decision, one after the other; whether it was the end of a game."""
    collector, rules = learner.collector, learner.rules
    rollout, say = collector.rollout, saying(learner)
    steps, games = rollout.terminated.shape
    carried = collector.transitions.carried
    ends: dict[tuple[int, int], np.ndarray] = {}
    episodes = collector.earned.episodes()
    if episodes is not None:
        for game in range(games):
            over = np.flatnonzero(rollout.terminated[:, game] | rollout.truncated[:, game])
            for step, score in zip(over, episodes.score[episodes.game == game], strict=True):
                ends[int(step), game] = score
    cut: dict[int, np.ndarray] = {}
    for where, obs, mirrored in zip(
        rollout.cuts.where, rollout.cuts.obs, rollout.cuts.mirrored, strict=True
    ):
        for at, one, also in zip(where, say(obs), mirrored, strict=True):
            cut[int(at)] = one
            if also:
                cut[int(at) ^ 1] = np.array([one[2], one[1], one[0], -one[3]])
    found = np.full((collector.transitions.places, 4), np.nan, np.float32)
    final = np.zeros(len(found), bool)
    for place in range(len(found)):
        step, at = divmod(max(place - carried, 0), games * rules.rows)
        game, seat = at // rules.rows, int(rollout.seat[step, at])
        if place < carried:
            step, (game, seat) = 0, divmod(place, rules.seats)
        if seat < 0:
            continue
        end = next((s for s in range(step, steps) if (s, game) in ends), None)
        if end is not None and rollout.terminated[end, game]:
            score = ends[end, game]
            others = max(np.delete(score, seat), default=score[seat])
            won = 0 if score[seat] > others else 1 if score[seat] == others else 2
            found[place] = [*np.eye(3)[won], score[seat]]
            final[place] = True
        elif end is not None:
            found[place] = cut.get((end * games + game) * rules.seats + seat, np.nan)
        else:
            mine = [
                carried + (s * games + game) * rules.rows + row
                for s in range(step, steps)
                for row in range(rules.rows)
                if rollout.seat[s, game * rules.rows + row] == seat
            ]
            last = mine[-1] if mine else place
            found[place] = say(rollout.obs[last : last + 1])[0]
    return found, final


@pytest.mark.parametrize(
    ("game", "config", "cut"),
    [
        ("tic_tac_toe", None, False),
        ("duel", {"limit": 7}, True),  # both seats move at once
        ("shogi", {"max_plies": 9}, True),  # one of two does, and the other knows as much
        ("corridor", None, False),  # one seat, which has a score alone
    ],
)
def test_what_came_of_games_is_that_of_loops_over_them(game: str, config: Any, cut: bool) -> None:
    learner = make(game, BOTH, config=config)
    learner.iterate(0.0)
    learner.collector.collect(1)
    samples, _ = learner.targets(learner.knobs_at(Moment(0, 0.0)))
    found = outcomes_of(learner.collector, saying(learner))
    wanted, final = said_by_loops(learner)
    assert np.allclose(found.result[samples], wanted[samples], atol=1e-5, equal_nan=True)
    assert np.array_equal(found.final[samples], final[samples])
    assert bool(learner.collector.rollout.cuts.where) == cut
    assert final[samples].any() or cut


@pytest.mark.parametrize(("game", "steps"), [("skull_king", 300), ("kuhhandel", 300)])
def test_what_is_hidden_is_read_from_the_bytes_of_games(game: str, steps: int) -> None:
    rules = sparring.Rules(game)
    hidden = hidden_of(rules)
    assert hidden is not None
    pool = Pool(rules, 4, seed=3, threads=1)
    batch = pool.reset()
    for step in range(steps):
        if step % 7 == 0:
            truth = truth_of(rules, hidden, pool.tables, batch.seat)
            for number in range(4):
                seat = int(batch.seat[number])
                wanted = readable(game, pool.state_of(number), seat)
                assert truth[number].tolist() == wanted
        batch = pool.step(pool.sample_actions())


def readable(game: str, state: sparring.State, seat: int) -> list[int]:
    """What a seat does not see, from what a state shows to everybody who may see all of it."""
    seats = state.rules.seats
    if game == "kuhhandel":
        money = read_kuhhandel(state).money
        return [min(n, 11) for away in range(1, seats) for n in money[(seat + away) % seats]]
    hands = state.fields()["hand"].reshape(8, 2)
    found = [0] * 74
    for away in range(1, seats):
        low, high = hands[(seat + away) % seats].tolist()
        held = low | high << 64
        for card in range(74):
            if held >> card & 1:
                found[card] = away
    return found


def test_all_heads_learn_natively_as_in_torch() -> None:
    runs = [make("skull_king", ALL, cpu=cpu, steps=16) for cpu in ("float32", "torch")]
    assert [run.forward.native is not None for run in runs] == [True, False]
    for _ in range(2):
        stats = [run.iterate(0.0)[0].stats for run in runs]
    for name in ("wdl", "score", "hidden", "hidden_accuracy", "policy_loss"):
        mine, theirs = (one[f"losses/{name}"] for one in stats)
        assert mine == pytest.approx(theirs, rel=2e-2, abs=1e-4), name
    for mine, theirs in zip(*(run.net.parameters() for run in runs), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-3)


def test_heads_change_nothing_of_policy_and_value_without_weight() -> None:
    """Another head reads what the others read, and with a weight of almost 0 leaves it alone."""
    small = HeadsConfig(wdl=Schedule.constant(1e-12))
    runs = [make("tic_tac_toe", heads, cpu="torch") for heads in (small, HeadsConfig())]
    weights = runs[1].net.state_dict()
    runs[0].net.load_state_dict(weights, strict=False)
    for run in runs:
        run.iterate(0.0)
    for name, value in runs[1].net.state_dict().items():
        assert torch.allclose(runs[0].net.state_dict()[name], value, atol=1e-5), name


def test_values_are_blended_wherever_they_are_asked_for() -> None:
    heads = replace(BOTH, blend=0.25)
    stored = []
    for cpu in ("float32", "torch"):
        learner = make("tic_tac_toe", heads, cpu=cpu)
        learner.net.wdl_unit.fill_(2.0)
        learner.collector.collect(0)
        rollout, first = learner.collector.rollout, learner.collector.transitions.carried
        said = learner.net(torch.from_numpy(rollout.obs[first:]))
        chances = said[WDL].softmax(-1)
        plain = said[VALUE] * learner.net.value_scale
        wanted = 0.75 * plain + 0.25 * 2.0 * (chances[:, 0] - chances[:, 2])
        assert np.allclose(rollout.columns["value"][first:], wanted.detach().numpy(), atol=1e-5)
        stored.append(rollout.columns["value"][first:])
    assert np.allclose(*stored, atol=1e-5)


def test_a_win_is_worth_what_it_is_paid() -> None:
    learner = make("tic_tac_toe", replace(BOTH, blend=0.5))
    for _ in range(30):
        learner.iterate(0.0)
    assert float(learner.net.wdl_unit) == pytest.approx(1.0, abs=0.3)
    assert float(learner.net.score_scale) == pytest.approx(1.0, abs=0.3)
    policy = learner.policy()
    assert float(policy.net.wdl_blend) == 0.5


def test_scores_keep_their_meaning_in_another_unit() -> None:
    net = make_net(
        sparring.Rules("skull_king"), NET, heads=heads_of(sparring.Rules("skull_king"), BOTH)
    )
    obs = torch.randint(0, 2, (8, net.inputs.row_bytes), dtype=torch.uint8)
    before = net(obs)[SCORE] * net.score_scale
    net.rescale_scores(40.0)
    assert torch.allclose(net(obs)[SCORE] * net.score_scale, before, atol=1e-5)


def test_a_run_with_heads_goes_on_where_it_was() -> None:
    whole, first, second = (make("skull_king", ALL, steps=12) for _ in range(3))
    for _ in range(3):
        whole.iterate(0.0)
    first.iterate(0.0)
    second.restore(first.snapshot())
    for _ in range(2):
        second.iterate(0.0)
    for name, value in whole.net.state_dict().items():
        assert torch.equal(second.net.state_dict()[name], value), name


def test_layers_of_their_own_stand_between_trunk_and_head() -> None:
    rules, config = (
        sparring.Rules("tic_tac_toe"),
        replace(NET, policy_hidden=(24,), value_hidden=(8, 4)),
    )
    net = make_net(rules, config, heads=heads_of(rules, BOTH))
    shapes = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    assert shapes["policy_layers.0.weight"] == (24, 16)
    assert shapes["value_layers.2.weight"] == (4, 8)
    assert (shapes["policy_head.weight"], shapes["value_head.weight"]) == ((9, 24), (1, 4))
    assert (shapes["wdl_head.weight"], shapes["score_head.weight"]) == ((3, 4), (1, 4))
    learner = make("tic_tac_toe", BOTH, net=config)
    assert "net.policy_hidden" in learner.forward.why_torch()
    learner.iterate(0.0)


def test_a_game_that_hides_nothing_is_refused_in_words() -> None:
    with pytest.raises(sparring.errors.ConfigError, match="tic_tac_toe does not say"):
        make("tic_tac_toe", ALL)


def test_seats_of_open_decisions_are_those_of_their_places() -> None:
    learner = make("skull_king", ALL, steps=10)
    learner.iterate(0.0)
    learner.collector.collect(1)
    samples, _ = learner.targets(learner.knobs_at(Moment(0, 0.0)))
    assert (samples < learner.collector.transitions.carried).any()
    (term,) = (one for one in learner.terms if isinstance(one, HiddenTerm))
    rows = {HIDDEN: torch.from_numpy(learner.collector.rollout.hidden[samples])}
    rows["hidden_seat"] = torch.from_numpy(seats_of(learner, samples))
    truth, rules = term.truth(rows), learner.rules
    own = rules.widen(learner.collector.rollout.obs[samples])[:, :74] > 0
    assert not truth.numpy()[own].any()  # nobody else holds a card of the own hand
    assert truth.any(1).float().mean() > 0.8
