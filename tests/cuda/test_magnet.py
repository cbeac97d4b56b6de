"""The magnet inside the graphs of a GPU: copied on time, its own for every member, saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import sparring
from learn.fused_helpers import COLLECT, NETS, PPO_, game_of, learner
from sparring.learn.fused import DeviceGames, FusedPPO
from sparring.learn.fused.rollout import mask_of
from sparring.learn.learner import Overrides
from sparring.learn.magnet import MAGNET
from sparring.learn.role_learners import COPIED
from sparring.nets.heads import POLICY
from sparring.nets.make import make_net
from sparring.pools.cuda import CudaPool
from sparring.schedule import Schedule
from sparring.store.policies import load_policy

HELD = replace(PPO_, magnet=Schedule.constant(1.0), magnet_period=Schedule.constant(3))


def policy_of(ppo: FusedPPO, tensors: dict[str, torch.Tensor]) -> torch.nn.Module:
    net = make_net(ppo.rules, ppo.playing.config)
    net.load_state_dict(tensors)
    return net


@pytest.mark.parametrize("net", ["shared", "gaussian", "residual", "silu, odd widths"])
@pytest.mark.parametrize("graphs", [False, True])
def test_it_is_the_policy_of_some_updates_ago(net: str, graphs: bool) -> None:
    ppo = learner(HELD, NETS[net], game=game_of(net), graphs=graphs)
    (magnet,), played = ppo.magnets.values(), []
    for update in range(7):
        played.append(ppo.snapshot().tensors["net"])
        kl = ppo.iterate(0.0)[0].stats["losses/magnet_kl"]
        assert -1e-5 < kl < 1.0
        assert magnet.copied_at == [update - update % 3]
    module = policy_of(ppo, played[6])
    places = torch.unique(magnet.places)[:512].long()
    magnet.fill()
    obs, mask = ppo.rollout.obs[places].cpu(), mask_of(ppo.rollout.legal[places].cpu(), ppo.rules)
    known = mask.any(1) | bool(ppo.rules.box)
    with torch.no_grad():
        slow = magnet.term.stored(module(obs)[POLICY], mask)
    torch.testing.assert_close(
        magnet.by_place[MAGNET][places].cpu()[known].nan_to_num(neginf=0.0).float(),
        slow[known].nan_to_num(neginf=0.0).float(),
        atol=2e-3,
        rtol=1e-3,
    )


def test_members_have_their_own_weight_and_period() -> None:
    pool = CudaPool("skull_king", 3 * 64, seeds=(0, 1, 2))
    none, uniform = Schedule.constant(0.0), replace(HELD, magnet_period=Schedule.constant(0))
    configs = [HELD, replace(HELD, magnet=none), uniform]
    ppo = FusedPPO(DeviceGames(pool), COLLECT, configs, NETS["shared"])
    (magnet,) = ppo.magnets.values()
    for _ in range(4):
        reports = ppo.iterate(0.0)
    assert magnet.copied_at == [3, None, None]
    kls = [report.stats["losses/magnet_kl"] for report in reports]
    assert kls[2] > kls[0] > 0
    assert [COPIED in ppo.snapshot(member).meta for member in range(3)] == [True, False, False]


@pytest.mark.parametrize("graphs", [False, True])
def test_a_restored_learner_goes_on_to_the_bit(graphs: bool) -> None:
    one, other = (learner(HELD, NETS["shared"], graphs=graphs) for _ in range(2))
    for _ in range(5):
        one.iterate(0.0)
    saved = one.snapshot()
    assert saved.meta[COPIED] == {"": 3}
    other.restore(saved)
    for _ in range(3):
        stats = [each.iterate(0.0)[0].stats["losses/magnet_kl"] for each in (one, other)]
        assert stats[0] == stats[1]
    assert torch.equal(one.net.weight, other.net.weight)


def test_settings_that_come_later_give_it_weight() -> None:
    ppo = learner(PPO_, NETS["shared"], graphs=True)
    for _ in range(3):
        assert "losses/magnet_kl" not in ppo.iterate(0.0)[0].stats
    ppo.apply_overrides(Overrides(settings=HELD))
    for _ in range(3):
        assert ppo.iterate(0.0)[0].stats["losses/magnet_kl"] >= -1e-5


def test_a_run_is_resumed_between_two_copies(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "device": "cuda",
        "updates": 6,
        "keep": 6,
        "collect": {"games": 64, "steps": 16},
        "ppo": {"magnet": 0.5, "magnet_period": 4, "minibatch": 512},
        "eval": {"off": True},
        "tensorboard": False,
        "checkpoint_every_s": 0.0,
        "quiet": True,
    }
    run = sparring.train("leduc_poker", runs=str(tmp_path), **settings).run
    again = sparring.resume(run, number=2, quiet=True).run
    one, other = (load_policy(where / "checkpoints" / "00000006") for where in (run, again))
    for mine, theirs in zip(one.net.parameters(), other.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)
