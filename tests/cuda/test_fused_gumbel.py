"""Gumbel AlphaZero on the GPU: searches in the rollout, the loss of the readable learner."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from sparring.config import CollectConfig, GumbelConfig, NetConfig
from sparring.errors import ConfigError
from sparring.learn.fused import DeviceGames
from sparring.learn.fused.gumbel import FusedGumbel
from sparring.learn.fused.rollout import mask_of
from sparring.learn.gumbel import gumbel_loss
from sparring.learn.searching import FULL
from sparring.learn.transforms import IMPROVED
from sparring.nets.make import make_net
from sparring.pools import Lineup
from sparring.pools.cuda import CudaPool
from sparring.schedule import Moment, Schedule

COLLECT = CollectConfig(games=64, steps=12, bf16=False)
CONFIG = GumbelConfig(simulations=Schedule.constant(8), minibatch=128, epochs=2)
NETS = {
    "perceptron": ("connect_four", NetConfig(hidden=(64, 32))),
    "towers": ("tic_tac_toe", NetConfig(hidden=(64, 32), shared=False)),
    "residual": ("shogi", NetConfig(kind="residual", channels=16, blocks=1)),
    "dense policy": ("connect_four", NetConfig(kind="residual", channels=16, blocks=2)),
    "autograd": ("tic_tac_toe", NetConfig(hidden=(60, 30), activation="silu")),
}


def learner(
    net: str = "perceptron",
    seeds: tuple[int, ...] = (1,),
    *,
    config: GumbelConfig = CONFIG,
    collect: CollectConfig = COLLECT,
    graphs: bool = False,
) -> FusedGumbel:
    game, network = NETS[net]
    pool = CudaPool(game, collect.games * len(seeds), seeds=seeds)
    return FusedGumbel(DeviceGames(pool), collect, config, network, graphs=graphs)


def play(gumbel: FusedGumbel) -> None:
    """A rollout, ready to be learned from."""
    gumbel.set_hparams([Moment(0, 0.0)] * gumbel.members)
    gumbel.playing.play()
    for number in range(gumbel.rollout.cut_layers()):
        gumbel.update.bootstrap_truncated(number)
    gumbel.estimate_advantages()


def test_targets_are_policies_over_legal_actions() -> None:
    gumbel = learner()
    play(gumbel)
    rollout, playing = gumbel.rollout, gumbel.playing
    for step in range(rollout.steps):
        at = rollout.at(step)
        improved, mask = playing.improved[at], mask_of(rollout.legal[at], gumbel.rules)
        assert torch.allclose(improved.sum(1), torch.ones(rollout.rows, device=improved.device))
        assert (improved[mask == 0] == 0).all()
        assert mask.gather(1, rollout.action[at].long()[:, None]).all()
        assert (playing.full[at] == float(step % 4 == 3)).all()


@pytest.mark.parametrize("net", NETS)
def test_gradients_are_those_of_autograd(net: str) -> None:
    collect = replace(COLLECT, games=32) if net == "residual" else COLLECT
    gumbel = learner(net, (1, 2), collect=collect)
    for _ in range(2):
        gumbel.iterate(0.0)
    play(gumbel)
    update, rollout, playing = gumbel.update, gumbel.rollout, gumbel.playing
    update.shuffle(0)
    before = [gumbel.net.state(member) for member in range(2)]
    update.step(0)
    scale = update.kernels.names("Statistics").index("scale")
    for member in range(2):
        module = make_net(gumbel.rules, NETS[net][1])
        module.load_state_dict(before[member])
        places = update.picked[0, member]
        places = places[places >= 0].long()
        heads = module(rollout.obs[places].cpu())
        returns = (rollout.advantage + rollout.value)[places] / update.statistics[member, scale]
        total, metrics = gumbel_loss(
            heads["policy"],
            heads["value"],
            mask=mask_of(rollout.legal[places].cpu(), gumbel.rules),
            improved=playing.improved[places].cpu(),
            full=playing.full[places].cpu(),
            returns=returns.cpu(),
            value_weight=1.0,
        )
        total.backward()  # type: ignore[no-untyped-call]
        mine = gumbel.net.unpack(gumbel.net.grad[member] * gumbel.net.scale)
        wanted = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
        length = float(torch.cat([grad.flatten() for grad in wanted.values()]).norm())
        for name, grad in wanted.items():
            assert float((mine[name] - grad).norm()) / length < 2e-4, name
        names = update.kernels.names("Losses")
        found = dict(zip(names, update.loss.means[0, member].tolist(), strict=True))
        for name, field in (("policy_loss", "policy_loss"), ("value_loss", "value_loss")):
            assert found[field] == pytest.approx(float(metrics[name].detach()), rel=1e-3), name
        assert found["entropy"] == pytest.approx(float(metrics["target_entropy"]), rel=1e-3)
        assert found["clipfrac"] == pytest.approx(float(metrics["search_changed"]), abs=0.02)


def test_members_learn_what_they_would_alone() -> None:
    both = learner(seeds=(3, 4))
    alone = [learner(seeds=(seed,)) for seed in (3, 4)]
    for _ in range(2):
        reports = both.iterate(0.0)
        for member, gumbel in enumerate(alone):
            (other,) = gumbel.iterate(0.0)
            mine, theirs = reports[member].stats, other.stats
            for key in ("learning/samples", "losses/policy_loss", "losses/value_loss"):
                assert mine[key] == pytest.approx(theirs[key], rel=0.05), key


def test_graphs_do_what_launches_do() -> None:
    """The first update runs without graphs, the second captures them, the third replays them."""
    captured, launched = (learner(graphs=on) for on in (True, False))
    for _ in range(3):
        for gumbel in (captured, launched):
            gumbel.iterate(0.0)
    assert torch.equal(captured.playing.improved, launched.playing.improved)
    assert torch.equal(captured.net.weight, launched.net.weight)


def test_a_run_is_resumed_exactly() -> None:
    first = learner()
    first.iterate(0.0)
    saved = first.snapshot()
    again = learner()
    again.restore(saved)
    assert {IMPROVED, FULL} <= saved.tensors["carried"].keys()
    for gumbel in (first, again):
        gumbel.iterate(0.5)
    assert torch.equal(first.net.weight, again.net.weight)


def test_simulations_follow_their_schedule() -> None:
    config = replace(CONFIG, simulations=Schedule.read("0%:2,50%:8 stepped"))
    gumbel = learner(config=config, graphs=True)
    shown = [gumbel.iterate(progress)[0].stats["learning/simulations"] for progress in (0.0, 0.6)]
    assert shown == [2.0, 8.0]


def test_mirror_images_have_mirrored_targets() -> None:
    collect = replace(COLLECT, mirror=True)
    gumbel = learner(collect=collect)
    for _ in range(2):
        (report,) = gumbel.iterate(0.0)
    assert report.stats["losses/policy_loss"] > 0


def test_bots_and_other_rows_are_not_learned_from() -> None:
    lineups = [Lineup((0, "random"), shuffle=True)]
    pool = CudaPool("connect_four", 64, seed=2, lineups=lineups)
    gumbel = FusedGumbel(DeviceGames(pool), COLLECT, CONFIG, NETS["perceptron"][1], graphs=False)
    (report,) = gumbel.iterate(0.0)
    assert report.stats["charts/score"] > -1


def test_members_search_alike() -> None:
    pool = CudaPool("tic_tac_toe", 128, seeds=(1, 2))
    configs = [CONFIG, replace(CONFIG, considered=4)]
    with pytest.raises(ConfigError, match="considered differs between members"):
        FusedGumbel(DeviceGames(pool), COLLECT, configs, NetConfig(hidden=(64,)))
