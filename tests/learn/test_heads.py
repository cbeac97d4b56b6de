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
from learn.calibration import calibration_error, listen, reliability
from make import make_ppo
from sparring import Lineup, Pool
from sparring.config import CollectConfig, HeadsConfig, NetConfig, PPOConfig
from sparring.games.hidden import hidden_of, read_hidden
from sparring.games.kuhhandel import read as read_kuhhandel
from sparring.learn.fused.heads import FusedOutcomes
from sparring.learn.fused.rollout import FusedRollout
from sparring.learn.head_terms import HiddenTerm, final_scores, outcomes_of, predictor, seats_of
from sparring.learn.ppo import PPO
from sparring.nets.heads import HIDDEN, SCORE, VALUE, WDL, head_widths
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet
from sparring.nets.sampling import log_softmax
from sparring.schedule import Moment, Schedule

ONE = Schedule.constant(1.0)
ALL = HeadsConfig(wdl=ONE, score=ONE, hidden=ONE)
BOTH = HeadsConfig(wdl=ONE, score=ONE)
SETTINGS = PPOConfig(epochs=2, minibatch=100)
NET = NetConfig(hidden=(32, 16))
STEPS = 24


def make(
    game: str,
    heads: HeadsConfig,
    *,
    net: NetConfig = NET,
    cpu: str = "float32",
    steps: int = STEPS,
    config: dict[str, Any] | None = None,
    by_role: bool = False,
) -> PPO:
    collect = CollectConfig(games=12, steps=steps, cpu=cpu)
    return make_ppo(
        game, SETTINGS, net, flags=config, collect=collect, heads=heads, by_role=by_role
    )


def said_by_loops(learner: PPO) -> tuple[np.ndarray, np.ndarray]:
    """What came of every decision, one after the other; whether it was the end of a game."""
    collector, rules = learner.collector, learner.rules
    rollout, say = collector.rollout, predictor(learner)
    steps, games = rollout.terminated.shape
    max_pending = collector.transitions.max_pending
    ends: dict[tuple[int, int], np.ndarray] = {}
    episodes = collector.finished.episodes()
    if episodes is not None:
        for game in range(games):
            over = np.flatnonzero(rollout.terminated[:, game] | rollout.truncated[:, game])
            for step, score in zip(over, episodes.score[episodes.game == game], strict=True):
                ends[int(step), game] = score
    cut: dict[int, np.ndarray] = {}
    for where, obs, mirrored in zip(
        rollout.truncations.where,
        rollout.truncations.obs,
        rollout.truncations.mirrored,
        strict=True,
    ):
        for at, one, also in zip(where, say(obs), mirrored, strict=True):
            cut[int(at)] = one
            if also:
                cut[int(at) ^ 1] = np.array([one[2], one[1], one[0], -one[3]])
    found = np.full((collector.transitions.places, 4), np.nan, np.float32)
    final = np.zeros(len(found), bool)
    for place in range(len(found)):
        step, at = divmod(max(place - max_pending, 0), games * rules.rows)
        game, seat = at // rules.rows, int(rollout.seat[step, at])
        if place < max_pending:
            owner = place // collector.transitions.chains
            step, (game, seat) = 0, divmod(owner, rules.seats)
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
                max_pending + (s * games + game) * rules.rows + row
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
        ("kuhhandel", {"num_players": 3}, False),  # roles are paid apart
    ],
)
def test_what_came_of_games_is_that_of_loops_over_them(game: str, config: Any, cut: bool) -> None:
    learner = make(game, BOTH, config=config, by_role=game == "kuhhandel")
    learner.iterate(0.0)
    learner.collector.collect(1)
    samples, _ = learner.targets(learner.hparams_at(Moment(0, 0.0)))
    found = outcomes_of(learner.collector, predictor(learner))
    wanted, final = said_by_loops(learner)
    assert np.allclose(found.result[samples], wanted[samples], atol=1e-5, equal_nan=True)
    assert np.array_equal(found.final[samples], final[samples])
    assert bool(learner.collector.rollout.truncations.where) == cut
    assert final[samples].any() or cut or game == "kuhhandel"


@pytest.mark.parametrize(("game", "steps"), [("skull_king", 300), ("kuhhandel", 300)])
def test_what_is_hidden_is_read_from_the_bytes_of_games(game: str, steps: int) -> None:
    rules = sparring.Rules(game)
    hidden = hidden_of(rules)
    assert hidden is not None
    pool = Pool(rules, 4, seed=3, threads=1)
    batch = pool.reset()
    for step in range(steps):
        if step % 7 == 0:
            truth = read_hidden(rules, hidden, pool.tables, batch.seat)
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
    runs = [make("skull_king", ALL, cpu=cpu, steps=8) for cpu in ("float32", "torch")]
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
        rollout, first = learner.collector.rollout, learner.collector.transitions.max_pending
        said = learner.net(torch.from_numpy(rollout.obs[first:]))
        chances = said[WDL].softmax(-1)
        plain = said[VALUE] * learner.net.value_scale
        wanted = 0.75 * plain + 0.25 * 2.0 * (chances[:, 0] - chances[:, 2])
        assert np.allclose(rollout.columns["value"][first:], wanted.detach().numpy(), atol=1e-5)
        stored.append(rollout.columns["value"][first:])
    assert np.allclose(*stored, atol=1e-5)


def test_a_win_is_worth_what_it_is_paid() -> None:
    learner = make("tic_tac_toe", replace(BOTH, blend=0.5))
    learner.net.wdl_unit.fill_(3.0)
    for _ in range(15):
        learner.iterate(0.0)
    assert float(learner.net.wdl_unit) == pytest.approx(1.0, abs=0.7)
    assert float(learner.net.score_scale) == pytest.approx(1.0, abs=0.3)
    policy = learner.policy()
    assert float(policy.net.wdl_blend) == 0.5


def test_scores_keep_their_meaning_in_another_unit() -> None:
    net = make_net(
        sparring.Rules("skull_king"), NET, heads=head_widths(sparring.Rules("skull_king"), BOTH)
    )
    obs = torch.randint(0, 2, (8, net.inputs.row_bytes), dtype=torch.uint8)
    before = net(obs)[SCORE] * net.score_scale
    net.rescale_score_head(40.0)
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
    net = make_net(rules, config, heads=head_widths(rules, BOTH))
    shapes = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    assert shapes["policy_layers.0.weight"] == (24, 16)
    assert shapes["value_layers.2.weight"] == (4, 8)
    assert (shapes["policy_head.weight"], shapes["value_head.weight"]) == ((9, 24), (1, 4))
    assert (shapes["wdl_head.weight"], shapes["score_head.weight"]) == ((3, 4), (1, 4))
    learner = make("tic_tac_toe", BOTH, net=config)
    assert "net.policy_hidden" in learner.forward.why_torch()
    learner.iterate(0.0)


def test_a_game_that_hides_nothing_is_refused_in_words() -> None:
    with pytest.raises(
        sparring.errors.ConfigError, match="tic_tac_toe declares no hidden information"
    ):
        make("tic_tac_toe", ALL)


def test_seats_of_open_decisions_are_those_of_their_places() -> None:
    learner = make("skull_king", ALL, steps=10)
    learner.iterate(0.0)
    learner.collector.collect(1)
    samples, _ = learner.targets(learner.hparams_at(Moment(0, 0.0)))
    assert (samples < learner.collector.transitions.max_pending).any()
    (term,) = (one for one in learner.terms if isinstance(one, HiddenTerm))
    rows = {HIDDEN: torch.from_numpy(learner.collector.rollout.hidden[samples])}
    rows["hidden_seat"] = torch.from_numpy(seats_of(learner, samples))
    truth, rules = term.truth(rows), learner.rules
    own = rules.widen(learner.collector.rollout.obs[samples])[:, :74] > 0
    assert not truth.numpy()[own].any()  # nobody else holds a card of the own hand
    assert truth.any(1).float().mean() > 0.8


@pytest.mark.parametrize(
    ("game", "config"), [("tic_tac_toe", None), ("duel", {"limit": 7}), ("shogi", {"max_plies": 9})]
)
def test_a_gpu_finds_what_came_of_games_as_a_cpu_does(game: str, config: Any) -> None:
    """The arrays are a CPU's here; the arithmetic is that of a GPU, for two members at once."""
    learner = make(game, replace(BOTH, blend=0.5), cpu="torch", config=config)
    learner.iterate(0.0)
    learner.net.score_scale.fill_(3.0)
    with torch.no_grad():
        learner.net.score_head.weight.normal_()
    learner.collector.collect(1)
    twin = fused_twin(learner)
    outcomes = FusedOutcomes(*twin, blend=True)
    collector, rollout = learner.collector, twin[1]
    for number in range(len(rollout.cut_at)):
        at = twin[0].make_pass(rollout.rows // 2, learn=False)
        at.read(rollout.cut_obs[number])
        at.forward()
        outcomes.add_truncated(number, at)
    samples, targets = learner.targets(learner.hparams_at(Moment(0, 0.0)))
    learner.batch(learner.learners[""], samples, targets)  # finds the units of scores and wins
    own = learner.collector.transitions
    rollout.end.copy_(doubled(own.end, own.max_pending))
    advantage = np.zeros(own.places, np.float32)
    advantage[samples] = targets["advantage"][samples]
    rollout.advantage.copy_(doubled(advantage, own.max_pending))
    found = outcomes_of(collector, predictor(learner))
    outcomes.fill()
    for member in range(2):
        mine = doubled(np.arange(own.places), own.max_pending, member)
        places = np.flatnonzero(np.isin(mine.numpy(), samples))
        order = mine[places].numpy()
        assert np.allclose(
            outcomes.result[places].numpy(), found.result[order], atol=1e-4, equal_nan=True
        )
        assert np.array_equal(outcomes.final[places].numpy(), found.final[order])
    for name in ("score_scale", "wdl_unit"):
        wanted = float(getattr(learner.net, name))
        assert twin[0].head_buffers[name].tolist() == pytest.approx([wanted] * 2, rel=1e-4), name
    state = twin[0].state(1)
    assert torch.allclose(state["score_head.weight"], learner.net.score_head.weight, rtol=1e-4)


def doubled(by_place: np.ndarray, max_pending: int, member: int | None = None) -> torch.Tensor:
    """Places of a rollout as a population of two has them; member: -1 at those of the other."""
    front, rows = by_place[:max_pending], by_place[max_pending:]
    rows = rows.reshape(STEPS, -1, *rows.shape[1:])
    other = [np.full_like(part, -1) if member is not None else part for part in (front, rows)]
    parts = [(front, other[0]), (rows, other[1])]
    if member == 1:
        parts = [(b, a) for a, b in parts]
    fronts, steps = np.concatenate(parts[0]), np.concatenate(parts[1], 1)
    return torch.from_numpy(np.concatenate([fronts, steps.reshape(-1, *rows.shape[2:])]))


def fused_twin(learner: PPO) -> tuple[CapturedNet, FusedRollout]:
    """The network and the last rollout of a learner twice, side by side, as a GPU holds them."""
    rules, rollout, games = learner.rules, learner.collector.rollout, 2 * learner.pool.num_games
    device, heads = torch.device("cpu"), learner.net.heads
    net = CapturedNet(rules, learner.net.config, 2, bf16=False, device=device, heads=heads)
    for member in range(2):
        net.load(member, learner.net.state_dict())
    row_bytes = rollout.obs.shape[1]
    twin = FusedRollout(
        rules,
        games,
        STEPS,
        members=2,
        row_bytes=row_bytes,
        squash=False,
        device=device,
        scores=True,
    )
    max_pending = learner.collector.transitions.max_pending
    twin.obs.copy_(doubled(rollout.obs, max_pending))
    twin.value.copy_(doubled(rollout.columns["value"], max_pending))
    for name in ("seat", "terminated", "truncated"):
        array = torch.from_numpy(getattr(rollout, name))
        getattr(twin, name).copy_(torch.cat([array, array], 1))
    scores = torch.from_numpy(
        final_scores(rollout, learner.collector.finished.episodes(), rules.seats)
    ).nan_to_num(7.0)
    assert twin.final_score is not None
    twin.final_score.copy_(torch.cat([scores, scores], 1))
    each = learner.pool.num_games
    for where, obs, mirrored in zip(
        rollout.truncations.where,
        rollout.truncations.obs,
        rollout.truncations.mirrored,
        strict=True,
    ):
        step, game, seat = np.unravel_index(where, (STEPS, each, rules.seats))
        for member in range(2):
            for at in range(len(where)):
                one = member * each + int(game[at])
                layer = int(twin.cut_count[one])
                if at and game[at] == game[at - 1]:  # the same game's next row
                    layer -= 1
                else:
                    twin.cut_count[one] += 1
                    twin.cut_at[layer, one * rules.rows : (one + 1) * rules.rows] = -1
                row = one * rules.rows + (int(seat[at]) if rules.rows > 1 else 0)
                flat = (int(step[at]) * games + one) * rules.seats + int(seat[at])
                twin.cut_at[layer, row] = 2 * flat + int(mirrored[at])
                twin.cut_obs[layer, row] = torch.from_numpy(obs[at])
    return net, twin


def test_a_head_that_says_what_happens_is_calibrated() -> None:
    chance = np.repeat(np.linspace(0.05, 0.95, 10, dtype=np.float32), 200)
    came = (np.arange(2000) % 200 < 200 * chance).astype(np.float32)
    bins = reliability(chance, came)
    assert [one.count for one in bins] == [200] * 10
    assert calibration_error(bins) < 1e-3
    assert calibration_error(reliability(np.ones(2000, np.float32), came)) == pytest.approx(
        0.5, abs=1e-2
    )


def test_what_is_said_is_held_against_the_ends_of_games() -> None:
    policy = make("tic_tac_toe", BOTH).policy()
    told = listen(policy, 300, seed=5)
    assert told.games >= 300
    assert np.allclose(told.said.sum(1), 1, atol=1e-5)
    assert (told.happened.sum(1) == 1).all()
    # Both seats of every game are listened to: as many wins as losses, up to who decides last.
    wins, _, losses = told.happened.mean(0)
    assert wins == pytest.approx(losses, abs=0.1)
    against = listen(policy, 64, seed=5, lineups=[Lineup((0, "careful"))])
    assert against.happened[:, 2].mean() > against.happened[:, 0].mean()
    plain = make("tic_tac_toe", HeadsConfig()).policy()
    with pytest.raises(sparring.errors.ConfigError, match="no head of win, draw and loss"):
        listen(plain, 1, seed=5)


def test_a_rehearsal_leaves_no_outcomes_behind() -> None:
    """The update behind it learns what came of its own games, as if nobody had rehearsed."""
    one, other = (make("tic_tac_toe", replace(BOTH, blend=0.25)) for _ in range(2))
    for learner in (one, other):
        learner.iterate(0.0)
    one.dry_run()
    for learner in (one, other):
        learner.iterate(0.0)
    for name, weight in one.net.state_dict().items():
        assert torch.equal(weight, other.net.state_dict()[name]), name


def test_a_belief_is_what_the_head_says() -> None:
    learner = make("leduc_poker", HeadsConfig(hidden=ONE))
    policy = learner.policy()
    obs = learner.pool.batch().obs
    belief, logits = policy.belief(obs), policy.heads(obs)[HIDDEN].reshape(len(obs), 1, 3)
    assert belief is not None
    assert np.allclose(belief.reshape(-1, 1, 3), log_softmax(logits), atol=1e-6)
    flat = policy.belief(obs, temperature=1e6)
    assert np.allclose(flat, np.log(1 / 3), atol=1e-4)
    learner.pool.draw_worlds(np.arange(len(obs)), 2, belief=belief)
    assert make("leduc_poker", BOTH).policy().belief(obs) is None
