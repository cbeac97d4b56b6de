"""Mirror images on the GPU are those of the CPU, and nothing waits for the device on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from learn.fused_helpers import COLLECT, PPO_, check_gradients, losses_of, play, turn
from sparring import Lineup, Rules
from sparring.config import NetConfig, TrainConfig
from sparring.learn.algos import LEARNERS
from sparring.learn.fused import DeviceGames, FusedPPO
from sparring.learn.fused.rollout import mask_of
from sparring.learn.role_learners import PPO_METRICS
from sparring.learn.transforms import Mirroring, random_bits
from sparring.nets.make import make_net
from sparring.pools.cuda import CudaPool
from sparring.training.planning.plan import resolve

IMAGES = replace(COLLECT, mirror=True)
SEEDS = (1, 2**40 + 3)
NETS = {
    "tic_tac_toe": NetConfig(hidden=(64, 32)),
    "laser_hockey": NetConfig(hidden=(64, 32)),
    "laser_hockey_discrete": NetConfig(hidden=(60, 30), activation="silu"),  # run by autograd
    "shogi": NetConfig(kind="residual", channels=16, blocks=2),
}


@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete", "shogi"])
def test_images_are_captured_and_equal(game: str) -> None:
    rules = Rules(game)
    assert rules.mirror
    rng = np.random.default_rng(1)
    coin = random_bits(1, 2, 512)
    minibatch = {
        "obs": torch.from_numpy(rng.integers(0, 256, (512, rules.obs_bytes)).astype(np.uint8)),
        "mask": torch.from_numpy(rng.integers(0, 2, (512, rules.actions)).astype(np.uint8)),
        "action": torch.from_numpy(rng.integers(0, rules.actions or 1, 512).astype(np.int32)),
    }
    if rules.box:
        minibatch["action"] = torch.from_numpy(rng.normal(size=(512, rules.box))).float()
    on_gpu = {name: tensor.cuda() for name, tensor in minibatch.items()}
    there, device_coin = Mirroring(rules, rules.mirror, "cuda"), coin.cuda()
    Mirroring(rules, rules.mirror).reflect(minibatch, coin)
    there.reflect(dict(on_gpu), device_coin)  # what is made at a first call is not captured
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # a wait inside would be refused
        there.reflect(on_gpu, device_coin)
    graph.replay()
    for name, tensor in on_gpu.items():
        assert torch.equal(tensor.cpu(), minibatch[name])


def learner(game: str, *, graphs: bool = False) -> FusedPPO:
    games = IMAGES.games * len(SEEDS)
    pool = CudaPool(game, games, seeds=SEEDS, lineups=[Lineup((0, 0))])
    config = replace(PPO_, gamma_into=(), clip=0.02, value_clip=0.3)
    return FusedPPO(DeviceGames(pool), IMAGES, config, NETS[game], graphs=graphs)


@pytest.mark.parametrize("game", NETS)
@pytest.mark.parametrize("epoch", [0, 1])
def test_ppo_steps_on_images_as_autograd_does(game: str, epoch: int) -> None:
    """Whom coins choose is mirrored; how far the policy moved is measured on the others."""
    ppo = learner(game)
    for _ in range(3):  # away from the start, where ratios are 1 and gradients vanish
        ppo.iterate(0.0)
    update, rollout = ppo.update, ppo.rollout
    hparams = turn(ppo)
    play(ppo)
    update.shuffle(epoch)
    for number in range(update.minibatches - 1):
        update.step(number)
    before = [ppo.net.state(member) for member in range(len(SEEDS))]
    update.step(update.minibatches - 1)
    assert ppo.rules.mirror
    on_cpu = Mirroring(ppo.rules, ppo.rules.mirror)
    for member, seed in enumerate(SEEDS):
        module = make_net(ppo.rules, NETS[game])
        module.load_state_dict(before[member])
        places = update.picked[update.minibatches - 1, member]
        places = places[places >= 0].long()
        samples = update.list[member, : int(update.sample_counts[member])].cpu()
        rank = torch.searchsorted(samples, places.cpu().int())
        coin = random_bits(seed, ppo.updates, len(samples))[rank] ^ bool(epoch)
        assert coin.any() and not coin.all()
        seen = {
            "obs": rollout.obs[places].cpu(),
            "mask": mask_of(rollout.legal[places].cpu(), ppo.rules),
            "action": rollout.action[places].cpu(),
            "mirrored": coin,
        }
        on_cpu.apply(seen)
        heads = module(seen["obs"])
        losses = losses_of(ppo, member, heads, places, hparams[member], seen=seen)
        check_gradients(ppo, member, module, losses, within=1e-4)
        found = update.loss.means[update.minibatches - 1, member].tolist()
        for name, figure in zip(PPO_METRICS, found, strict=True):
            wanted = float(getattr(losses, name).detach())
            assert figure == pytest.approx(wanted, rel=1e-3, abs=2e-3), name


@pytest.mark.parametrize("game", NETS)
def test_graphs_hold_images(game: str) -> None:
    runs = [learner(game, graphs=graphs) for graphs in (False, True)]
    for _ in range(3):
        stats = [[report.stats for report in run.iterate(0.0)] for run in runs]
    for member in range(len(SEEDS)):
        for name in ("losses/policy_loss", "losses/approx_kl", "learning/samples"):
            assert stats[0][member][name] == stats[1][member][name], name
        one, other = (run.net.state(member) for run in runs)
        for name, weight in one.items():
            assert torch.equal(weight, other[name]), name


def test_a_run_with_images_goes_to_the_gpu() -> None:
    config = TrainConfig(game="tic_tac_toe", device="cuda", collect=replace(IMAGES, games=512))
    plan = resolve([config])
    assert plan.fused
    ppo = LEARNERS["ppo"](plan)
    assert isinstance(ppo, FusedPPO) and ppo.update.images
    (report,) = ppo.iterate(0.0)
    assert np.isfinite(report.stats["losses/approx_kl"])
