"""Heads and terms of the loss on a GPU: gradients, targets, graphs and saving, against the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from learn.fused_helpers import COLLECT, NETS, PPO_, ROUNDED, game_of, learner, play, turn
from sparring.config import CollectConfig, HeadsConfig, NetConfig
from sparring.learn.fused import DeviceGames, FusedPPO, HostGames
from sparring.learn.fused.heads import FusedOutcomes
from sparring.learn.fused.rollout import mask_of
from sparring.learn.fused.terms import FusedTerm
from sparring.learn.head_terms import HiddenTerm, head_terms, results_of
from sparring.learn.opponents import UNKNOWN, next_actions
from sparring.learn.ppo import ppo_loss
from sparring.learn.terms import Arrays, Term
from sparring.nets.distribution import masked_log_probs
from sparring.nets.heads import HIDDEN, OPPONENTS, POLICY, SCORE, VALUE, WDL, configured_heads
from sparring.nets.make import make_net
from sparring.nets.net import HeadOutputs
from sparring.pools import Lineup
from sparring.pools.cuda import CudaPool
from sparring.pools.native import Pool
from sparring.schedule import Moment, Schedule

ONE = Schedule.constant(1.0)
ALL = HeadsConfig(wdl=ONE, score=Schedule.constant(0.5), hidden=Schedule.constant(0.3), blend=0.25)
BOTH = replace(ALL, hidden=Schedule.constant(0.0))
NET = NetConfig(hidden=(64, 32))
SMALL = replace(COLLECT, games=32, steps=20)
FLAGS: dict[str, dict[str, Any]] = {"shogi": {"max_plies": 9}, "skull_king": {"rounds": [2, 3]}}
"""So that games end, or are cut, within a rollout."""


class Anchor:
    """Holds the policy to one that columns say, with a weight that fades."""

    name = "anchor"

    def __init__(self) -> None:
        self.schedule, self.weight = Schedule.line(0.5, 0.1), 0.0

    def set_weight(self, moment: Moment) -> None:
        self.weight = self.schedule.at(moment)

    def columns(self, learner: Any, samples: Any) -> Arrays:
        raise AssertionError("nobody asks on a GPU")

    def each(self, heads: HeadOutputs, rows: Mapping[str, Tensor]) -> Tensor:
        mask = rows["mask"]
        said = masked_log_probs(heads[POLICY], mask).masked_fill(mask == 0, 0.0)
        wanted = masked_log_probs(rows["wanted"], mask).masked_fill(mask == 0, 0.0)
        return (wanted.exp() * mask * (wanted - said)).sum(-1)


class FusedKLPenalty:
    def __init__(self, ppo: FusedPPO) -> None:
        self.term: Term = Anchor()
        shape = ppo.rollout.places, ppo.rules.actions
        generator = torch.Generator("cuda").manual_seed(5)
        self.kept = torch.randn(shape, device=ppo.device, generator=generator)
        self.wanted = torch.zeros_like(self.kept)

    @property
    def by_place(self) -> Mapping[str, Tensor]:
        return {"wanted": self.wanted}

    def fill(self) -> None:
        self.wanted.copy_(self.kept)


def with_heads(
    heads: HeadsConfig = ALL,
    *,
    game: str = "skull_king",
    seeds: tuple[int, ...] = (1, 2),
    graphs: bool = False,
    net: NetConfig = NET,
    collect: CollectConfig = SMALL,
    on_host: bool = False,
) -> FusedPPO:
    config = replace(PPO_, gamma_into=()) if game != "skull_king" else PPO_
    seats = {"skull_king": 4, "kuhhandel": 3}.get(game, 2)
    lineups = [Lineup((0,) * seats), Lineup((0, *("random",) * (seats - 1)))]
    flags = FLAGS.get(game, {})
    if on_host:
        pool = Pool(game, collect.games, config=flags, seed=seeds[0], lineups=lineups, slots=2)
        games: Any = HostGames(pool, "cuda")
    else:
        every = collect.games * len(seeds)
        games = DeviceGames(CudaPool(game, every, config=flags, seeds=seeds, lineups=lineups))
    return FusedPPO(games, collect, config, net, graphs=graphs, heads=heads)


@pytest.mark.parametrize(
    ("net", "bf16"),
    [("towers", False), ("tanh", True), ("residual", False), ("silu, odd widths", False)],
)
def test_gradients_of_a_term_are_those_of_autograd(net: str, bf16: bool) -> None:
    ppo = learner(
        replace(PPO_, clip=0.2, value_clip=3.0),
        NETS[net],
        (1, 2),
        collect=ROUNDED if bf16 else COLLECT,
        game=game_of(net),
    )
    anchor = FusedKLPenalty(ppo)
    ppo.put_terms([anchor])
    for _ in range(2):
        ppo.iterate(0.5)
    hparams = turn(ppo)
    play(ppo)
    update, rollout = ppo.update, ppo.rollout
    update.terms.fill()
    update.shuffle(0)
    before = [ppo.net.state(member) for member in range(2)]
    update.step(0)
    for member in range(2):
        module = make_net(ppo.rules, NETS[net])
        module.load_state_dict(before[member])
        places = update.picked[0, member]
        places = places[places >= 0].long()
        heads = module(rollout.obs[places].cpu())
        rows = {
            "mask": mask_of(rollout.legal[places].cpu(), ppo.rules),
            "wanted": anchor.wanted[places].cpu(),
        }
        total, _ = total_of(ppo, member, places, heads, hparams[member])
        total = total + 0.5 * anchor.term.each(heads, rows).mean()
        compare(ppo, member, module, total, 0.03 if bf16 else 1e-4)
    figures = update.terms.measure()
    assert all(float(one) > 0 for one in figures["term anchor"])


def total_of(
    ppo: FusedPPO, member: int, places: Tensor, heads: HeadOutputs, hparams: Any
) -> tuple[Tensor, Any]:
    """PPO's own loss on a minibatch of a member, by torch."""
    rollout, update = ppo.rollout, ppo.update
    names = ppo.playing.kernels.names("Statistics")
    of = dict(zip(names, update.statistics[member].tolist(), strict=True))
    advantage, old = rollout.advantage[places].cpu(), rollout.value[places].cpu()
    losses = ppo_loss(
        heads[POLICY],
        heads[VALUE],
        mask=mask_of(rollout.legal[places].cpu(), ppo.rules),
        action=rollout.action[places].cpu(),
        old_log_prob=rollout.log_prob[places].cpu(),
        old_value=old / of["scale"],
        advantage=(advantage - of["mean"]) * of["inverse_std"],
        returns=(advantage + old) / of["scale"],
        hparams=hparams,
    )
    return losses.total, losses


def compare(ppo: FusedPPO, member: int, module: Any, total: Tensor, close: float) -> None:
    """Hold the gradient of a member against autograd's."""
    total.backward()  # type: ignore[no-untyped-call]
    mine = ppo.net.unpack(ppo.net.grad[member] * ppo.net.scale)
    wanted = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    assert len(wanted) == len(list(module.parameters()))
    length = torch.cat([grad.flatten() for grad in wanted.values()]).norm()
    for name, grad in wanted.items():
        off = float((mine[name] - grad).norm() / length)
        assert off < close, f"{name}: {off:.2e} of the gradient's length"


def test_gradients_of_all_heads_are_those_of_autograd() -> None:
    ppo = with_heads()
    for _ in range(2):
        ppo.iterate(0.0)
    hparams = turn(ppo)
    play(ppo)
    update, rollout = ppo.update, ppo.rollout
    update.terms.fill()
    update.shuffle(0)
    before = [ppo.net.state(member) for member in range(2)]
    update.step(0)
    formulas = head_terms(ppo.rules, ALL)
    for member in range(2):
        module = make_net(ppo.rules, NET, heads=configured_heads(ppo.rules, ALL))
        module.load_state_dict(before[member])
        places = update.picked[0, member]
        places = places[places >= 0].long()
        heads = module(rollout.obs[places].cpu())
        total, _ = total_of(ppo, member, places, heads, hparams[member])
        for one, term in zip(ppo.terms, formulas, strict=True):
            rows = {name: column[places].cpu() for name, column in one.by_place.items()}
            total = total + term.weight * term.each(heads, rows).mean()
        compare(ppo, member, module, total, 1e-4)


@pytest.mark.parametrize("on_host", [False, True])
def test_scores_and_truth_are_those_of_the_games(on_host: bool) -> None:
    """What was kept of games that are on the device, or on CPU threads, agrees with their rows."""
    ppo = with_heads(seeds=(3,), on_host=on_host)
    ppo.iterate(0.0)
    turn(ppo)
    ppo.playing.play()
    rollout = ppo.rollout
    own = rollout.terminated.cpu().numpy()
    assert rollout.final_score is not None
    scores = rollout.final_score.cpu().numpy()[own]
    assert own.any() and np.isfinite(scores).all() and scores.any()
    (term,) = (one.term for one in ppo.terms if isinstance(one.term, HiddenTerm))
    held = rollout.hidden
    assert held is not None
    first = rollout.max_pending
    seat = rollout.seat.view(-1)
    truth = term.hidden.read(torch, held[first:], seat)
    hand = torch.from_numpy(ppo.rules.widen(rollout.obs[first:].cpu().numpy())[:, :74] > 0)
    assert not truth.cpu()[hand].any()  # nobody else holds a card of the own hand
    assert (truth > 0).any(1).float().mean() > 0.7


@pytest.mark.parametrize("game", ["skull_king", "shogi", "tic_tac_toe"])
def test_outcomes_are_those_of_loops(game: str) -> None:
    """Terminated games by their scores, cut ones by their last rows, others by what is expected."""
    ppo = with_heads(BOTH, game=game, net=NET)
    ppo.iterate(0.0)
    play(ppo)
    ppo.update.terms.fill()
    rollout = ppo.rollout
    (outcomes,) = ppo.update.terms.columns
    assert isinstance(outcomes, FusedOutcomes)
    result = outcomes.result.cpu().numpy()
    over, cut = rollout.terminated.cpu().numpy(), rollout.truncated.cpu().numpy()
    assert rollout.final_score is not None
    scores = rollout.final_score.cpu().numpy()
    wanted = results_of(scores)
    seat = rollout.seat.cpu().numpy()
    said = modules_say(ppo)
    steps, games = over.shape
    checked = {"over": 0, "open": 0}
    for step in range(0, steps, 3):
        for game_ in range(games):
            mine = int(seat[step, game_])
            place = rollout.max_pending + step * rollout.rows + game_
            ends = [s for s in range(step, steps) if over[s, game_] or cut[s, game_]]
            if ends and over[ends[0], game_]:
                assert np.array_equal(result[place], wanted[ends[0], game_, mine])
                checked["over"] += 1
            elif not ends:
                last = max(s for s in range(step, steps) if seat[s, game_] == mine)
                at = rollout.max_pending + last * rollout.rows + game_
                assert np.allclose(result[place], said(at, game_), atol=1e-3)
                checked["open"] += 1
    assert checked["open"] and (checked["over"] or game == "shogi")
    if game == "tic_tac_toe":  # what is paid at the end is the score
        assert np.array_equal(rollout.reward.cpu().numpy()[over][..., 0], scores[over])
    if game == "shogi":
        assert cut.any()
        ended = np.isfinite(result[rollout.max_pending :]).all(1)
        assert ended[(seat.reshape(-1) >= 0)].all()  # of two seats both are known at a cut


def modules_say(ppo: FusedPPO) -> Any:
    """What networks say of places, by the module itself; the score in points."""
    modules = []
    for member in range(ppo.members):
        module = make_net(ppo.rules, NET, heads=configured_heads(ppo.rules, ppo.playing.heads))
        module.load_state_dict(ppo.net.state(member))
        modules.append(module)

    @torch.no_grad()
    def said(place: int, game: int) -> np.ndarray:
        module = modules[game // ppo.games.each]
        heads = module(ppo.rollout.obs[place : place + 1].cpu())
        score = heads[SCORE] * module.score_scale
        return torch.cat([heads[WDL].softmax(-1), score], -1)[0].numpy()

    return said


def test_values_that_are_kept_are_blended() -> None:
    ppo = with_heads(BOTH)
    ppo.iterate(0.0)
    turn(ppo)
    ppo.playing.play()
    rollout = ppo.rollout
    for member in range(2):
        module = make_net(ppo.rules, NET, heads=configured_heads(ppo.rules, BOTH))
        module.load_state_dict(ppo.net.state(member))
        assert float(module.wdl_blend) == 0.25
        each = rollout.rows // 2
        rows = slice(member * each, (member + 1) * each)
        at = rollout.at(3, rows)
        with torch.no_grad():
            wanted = module.unscaled_values(module(rollout.obs[at].cpu()))
        assert torch.allclose(rollout.value[at].cpu(), wanted, atol=1e-3)


@pytest.mark.parametrize("heads", [ALL, BOTH])
def test_graphs_change_nothing_of_heads(heads: HeadsConfig) -> None:
    runs = [with_heads(heads, graphs=graphs) for graphs in (False, True)]
    names = ["losses/wdl", "losses/score", "losses/policy_loss"]
    names += ["losses/hidden", "losses/hidden_accuracy"] if heads is ALL else []
    for _ in range(4):
        reports = [ppo.iterate(0.3)[1] for ppo in runs]
        for key in names:
            first, second = (report.stats[key] for report in reports)
            assert first == pytest.approx(second, rel=1e-5), key
    assert torch.allclose(runs[0].net.weight, runs[1].net.weight, atol=1e-5)


def test_a_run_with_heads_goes_on_where_it_was() -> None:
    whole, first, second = (with_heads(seeds=(4,)) for _ in range(3))
    for _ in range(3):
        whole.iterate(0.0)
    first.iterate(0.0)
    second.restore(first.snapshot())
    for _ in range(2):
        second.iterate(0.0)
    assert torch.equal(whole.net.weight, second.net.weight)
    for name, unit in whole.net.head_buffers.items():
        assert torch.equal(unit, second.net.head_buffers[name]), name
    assert second.policy().net.heads.keys() == {POLICY, VALUE, WDL, SCORE, HIDDEN}


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel", "tic_tac_toe"])
def test_heads_learn(game: str) -> None:
    heads = ALL if game != "tic_tac_toe" else BOTH
    ppo = with_heads(heads, game=game, seeds=(1,), graphs=True)
    reports = [ppo.iterate(0.0)[0].stats for _ in range(30)]
    assert reports[-1]["losses/wdl"] < reports[0]["losses/wdl"]
    if heads is ALL:
        assert reports[-1]["losses/hidden"] < 0.9 * reports[0]["losses/hidden"]


def test_terms_come_and_go() -> None:
    ppo = with_heads(BOTH, seeds=(1,), graphs=True)
    for _ in range(3):
        ppo.iterate(0.0)
    held = ppo.terms
    anchor: FusedTerm = FusedKLPenalty(ppo)
    ppo.put_terms([*held, anchor])
    for _ in range(3):
        stats = ppo.iterate(0.0)[0].stats
    assert stats["losses/anchor"] > 0
    ppo.put_terms(held)
    for _ in range(3):
        stats = ppo.iterate(0.0)[0].stats
    assert "losses/anchor" not in stats and "losses/wdl" in stats


def test_layers_of_their_own_learn() -> None:
    net = replace(NET, policy_hidden=(48,), value_hidden=(24,))
    ppo = with_heads(BOTH, net=net, graphs=True)
    for _ in range(4):
        stats = ppo.iterate(0.0)[0].stats
    assert np.isfinite(stats["losses/wdl"])


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel"])
def test_what_others_do_next_is_that_of_a_cpu(game: str) -> None:
    ppo = with_heads(HeadsConfig(opponents=ONE), game=game)
    reports = [ppo.iterate(0.0)[0].stats for _ in range(30)]
    ppo.playing.play()
    (term,) = ppo.terms
    term.fill()
    rollout, first = ppo.rollout, ppo.rollout.max_pending
    seat, over = rollout.seat.cpu(), (rollout.terminated | rollout.truncated).cpu()
    action = rollout.action[first:].cpu().view(seat.shape)
    wanted = next_actions(seat, action, over, ppo.rules.seats).view(-1, ppo.rules.seats - 1)
    targets = term.by_place[OPPONENTS].cpu()
    assert (targets[first:] == wanted).all()
    assert (targets[:first] == UNKNOWN).all()
    assert (wanted != UNKNOWN).any()
    assert reports[-1]["losses/opponents"] < reports[0]["losses/opponents"]


def test_graphs_change_nothing_of_opponents() -> None:
    heads = HeadsConfig(opponents=ONE)
    runs = [with_heads(heads, graphs=graphs) for graphs in (False, True)]
    for _ in range(3):
        first, second = (ppo.iterate(0.3)[1].stats for ppo in runs)
        for name in ("opponents", "opponents_accuracy", "policy_loss"):
            assert first[f"losses/{name}"] == pytest.approx(second[f"losses/{name}"], rel=1e-5)
