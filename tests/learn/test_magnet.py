"""The magnet: its formula, when it is copied, what is saved; on a CPU, and as a GPU has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Normal, kl_divergence

from learn.memory_helpers import GRU, STACK
from learn.memory_helpers import make as make_remembering
from learn.test_fused_images import MEMBERS, ROOM, images_of, minibatch_of, random_rollout
from learn.test_hierarchy import FIRST, SECOND, learner_of, roles_of
from make import SMALL, make_ppo, some_net
from sparring import Rules
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.fused.magnet import FusedMagnet, places_by_member
from sparring.learn.fused.rollout import mask_of
from sparring.learn.fused.terms import FusedTerms
from sparring.learn.learner import Overrides
from sparring.learn.magnet import MAGNET, MagnetTerm
from sparring.learn.ppo import PPO
from sparring.learn.role_learners import COPIED
from sparring.nets.distribution import categorical_kl, entropy_of, gaussian_kl, masked_log_probs
from sparring.nets.heads import POLICY
from sparring.nets.run.captured import CapturedNet
from sparring.schedule import Moment, Schedule

COLLECT = CollectConfig(games=16, steps=24)
START = Moment(0, 0.0)


def settings(weight: float = 0.3, period: float = 1, **changes: Any) -> PPOConfig:
    usual = PPOConfig(
        epochs=2, minibatch=100, lr=Schedule.constant(3e-3), target_kl=Schedule.constant(0)
    )
    magnet = {"magnet": Schedule.constant(weight), "magnet_period": Schedule.constant(period)}
    return replace(usual, **{**magnet, **changes})


def same(one: PPO, other: PPO) -> bool:
    pairs = zip(one.net.parameters(), other.net.parameters(), strict=True)
    return all(torch.equal(mine, theirs) for mine, theirs in pairs)


def some_masks(rows: int, actions: int) -> torch.Tensor:
    mask = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (rows, actions), np.uint8))
    mask[:, 0] = 1
    return mask


def test_it_is_the_reverse_divergence_over_legal_actions() -> None:
    torch.manual_seed(0)
    mask, logits = some_masks(8, 5), torch.randn(8, 5, requires_grad=True)
    other = masked_log_probs(torch.randn(8, 5), mask)
    found = categorical_kl(logits, other)
    for row in range(8):
        legal = mask[row] != 0
        mine, theirs = Categorical(logits=logits[row, legal]), Categorical(logits=other[row, legal])
        torch.testing.assert_close(found[row], kl_divergence(mine, theirs), atol=1e-6, rtol=1e-4)
    found.sum().backward()  # type: ignore[no-untyped-call]
    log_probs = masked_log_probs(logits.detach(), mask)
    apart = (log_probs - other).nan_to_num(0.0)
    by_hand = log_probs.exp() * (apart - found.detach()[:, None])
    torch.testing.assert_close(logits.grad, by_hand)
    assert logits.grad is not None and (logits.grad[mask == 0] == 0).all()


def test_its_gradient_is_that_of_finite_differences() -> None:
    torch.manual_seed(1)
    mask, logits = some_masks(6, 4), torch.randn(6, 4, requires_grad=True)
    other = masked_log_probs(torch.randn(6, 4), mask)
    categorical_kl(logits, other).sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    for row, action in np.ndindex(6, 4):
        step = torch.zeros(6, 4)
        step[row, action] = 1e-2
        up, down = (categorical_kl(logits.detach() + s * step, other)[row] for s in (1, -1))
        assert float(up - down) / 2e-2 == pytest.approx(float(logits.grad[row, action]), abs=1e-3)


def test_that_of_gaussians_has_a_closed_form() -> None:
    torch.manual_seed(0)
    head, other = (0.3 * torch.randn(7, 6) - 1 for _ in range(2))  # within the bounds of spreads
    head.requires_grad_()
    one, two = (Normal(x[:, :3], x[:, 3:].exp()) for x in (head, other))
    slow = kl_divergence(one, two).sum(-1)
    torch.testing.assert_close(gaussian_kl(head, other), slow)
    (mine,) = torch.autograd.grad(gaussian_kl(head, other).sum(), head)
    (theirs,) = torch.autograd.grad(slow.sum(), head)
    torch.testing.assert_close(mine, theirs)


def test_to_a_uniform_magnet_it_is_the_entropy_up_to_a_constant() -> None:
    torch.manual_seed(0)
    mask, logits = some_masks(8, 5), torch.randn(8, 5)
    term = MagnetTerm(Rules("tic_tac_toe"), settings(period=0))
    column = term.stored(torch.zeros(8, 5), mask)
    found = term.each({POLICY: logits}, {MAGNET: column})
    entropy = entropy_of(masked_log_probs(logits, mask))
    torch.testing.assert_close(found, mask.sum(-1).log() - entropy)


@pytest.mark.parametrize("cpu", ["float32", "torch"])
def test_an_update_with_a_uniform_magnet_is_one_with_an_entropy_bonus(cpu: str) -> None:
    none, collect = Schedule.constant(0.0), replace(COLLECT, cpu=cpu)
    magnet = make_ppo(config=settings(0.2, 0, entropy=none), collect=collect)
    bonus = make_ppo(config=settings(0.0, entropy=Schedule.constant(0.2)), collect=collect)
    stats = magnet.iterate(0.0)[0].stats
    assert "losses/magnet_kl" not in bonus.iterate(0.0)[0].stats and stats["losses/magnet_kl"] > 0
    for mine, theirs in zip(magnet.net.parameters(), bonus.net.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=2e-5, rtol=1e-4)
    assert COPIED not in magnet.snapshot().meta


@pytest.mark.parametrize(
    ("game", "mirror"), [("skull_king", False), ("tic_tac_toe", True), ("duel", False)]
)
def test_native_steps_are_those_of_torch(game: str, mirror: bool) -> None:
    collect = replace(COLLECT, mirror=mirror)
    runs = [
        make_ppo(game, settings(1.0, 2), SMALL, collect=replace(collect, cpu=cpu))
        for cpu in ("float32", "torch")
    ]
    assert [run.forward.native is not None for run in runs] == [True, False]
    for _ in range(3):
        one, other = (run.iterate(0.0)[0].stats["losses/magnet_kl"] for run in runs)
        assert one == pytest.approx(other, rel=0.02, abs=1e-5)
    for mine, theirs in zip(*(run.net.parameters() for run in runs), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-3)


def test_the_policy_becomes_the_magnet_every_few_updates() -> None:
    run = make_ppo(config=settings(period=3))
    magnet, played = run.learners[""].magnet, []
    assert magnet.tensors() == {}
    for update in range(7):
        played.append(run.snapshot().tensors["net"])
        run.iterate(0.0)
        assert magnet.copied_at == update - update % 3
        held, then = magnet.tensors(), played[magnet.copied_at]
        names = [name for name in then if "value" not in name]  # values were in another unit
        assert all(torch.equal(held[name], then[name]) for name in names)


def test_period_and_weight_follow_their_schedules() -> None:
    run = make_ppo(
        config=settings(
            magnet=Schedule.read("0%:0,50%:0,100%:1"), magnet_period=Schedule.line(1, 5)
        )
    )
    magnet = run.learners[""].magnet
    found = []
    for progress in (0.25, 0.75):
        measured = "losses/magnet_kl" in run.iterate(progress)[0].stats
        found.append((measured, magnet.weight, magnet.period, magnet.copied_at))
    assert found == [(False, 0.0, 2, None), (True, 0.5, 4, 1)]  # without weight it is not copied


def test_a_magnet_holds_the_policy_back() -> None:
    moved = []
    for weight in (0.0, 100.0):
        run = make_ppo(config=settings(weight, 100))
        before = {name: x.clone() for name, x in run.net.state_dict().items()}
        obs = torch.from_numpy(run.collector.rollout.obs[:64].copy())
        said = run.net(obs)[POLICY].detach().softmax(-1)
        for _ in range(4):
            run.iterate(0.0)
        assert any(not torch.equal(x, before[name]) for name, x in run.net.state_dict().items())
        now = run.net(obs)[POLICY].detach().softmax(-1)
        moved.append(float((now - said).abs().mean()))
    assert moved[1] < 0.5 * moved[0]


@pytest.mark.parametrize("cpu", ["float32", "torch"])
def test_a_resumed_run_goes_on_to_the_bit(cpu: str) -> None:
    collect = replace(COLLECT, cpu=cpu)
    run, again = (make_ppo(config=settings(period=3), collect=collect) for _ in range(2))
    for _ in range(5):
        run.iterate(0.0)
    saved = run.snapshot()
    assert saved.meta[COPIED] == {"": 3}
    again.restore(saved)
    for _ in range(3):
        one, other = (each.iterate(0.0)[0].stats for each in (run, again))
        assert one["losses/magnet_kl"] == other["losses/magnet_kl"]
    assert same(run, again)


def test_a_dry_run_leaves_no_trace() -> None:
    run, other = (make_ppo(config=settings(period=2)) for _ in range(2))
    for each in (run, other):
        each.iterate(0.0)
    run.dry_run()
    for each in (run, other):
        each.iterate(0.0)
    assert same(run, other)


def test_every_role_has_its_own() -> None:
    rules = Rules("skull_king", {"rounds": [1, 2, 3]})
    plans = roles_of(rules, second_ppo=replace(SECOND, magnet=Schedule.constant(0.5)))
    run = learner_of(roles=plans)
    first, second = rules.roles
    stats = run.iterate(0.0)[0].stats
    assert f"losses/magnet_kl/{second}" in stats and f"losses/magnet_kl/{first}" not in stats
    saved = run.snapshot()
    assert f"{MAGNET}.{second}" in saved.tensors and f"{MAGNET}.{first}" not in saved.tensors
    again = learner_of(roles=plans)
    again.restore(saved)
    for each in (run, again):
        each.iterate(0.0)
    assert same(run, again)


def test_a_phase_switches_it_on_for_one_role() -> None:
    run = learner_of()
    first, second = run.rules.roles
    assert all("magnet" not in name for name in run.iterate(0.0)[0].stats)
    changed = {first: replace(FIRST, magnet=Schedule.constant(1.0))}
    run.apply_overrides(Overrides(role_settings=changed))
    stats = run.iterate(0.0)[0].stats
    assert f"losses/magnet_kl/{first}" in stats and f"losses/magnet_kl/{second}" not in stats


@pytest.mark.parametrize("net", [GRU, STACK])
def test_it_reads_the_memory_that_the_policy_had(net: NetConfig) -> None:
    """Without a step, a policy of the same weights is nowhere away from it."""
    still = settings(1.0, lr=Schedule.constant(0.0))
    run = make_remembering(net, settings=still)
    for _ in range(2):
        assert abs(run.iterate(0.0)[0].stats["losses/magnet_kl"]) < 1e-6


def test_images_of_gaussians_have_turned_means_alone() -> None:
    rules = Rules("laser_hockey")
    collect = CollectConfig(games=4, steps=8, mirror=True)
    run = make_ppo("laser_hockey", settings(), SMALL, collect=collect)
    (mirror,) = run.learners[""].magnet.mirrors
    head, coin = torch.randn(6, 2 * rules.box), torch.tensor([True, False] * 3)
    image = mirror.by_head(head, coin)
    assert torch.equal(image[1::2], head[1::2])
    mean, log_std = head[::2].chunk(2, -1)
    ones = torch.ones(3, dtype=torch.bool)
    turned = torch.cat([mirror.actions(mean, ones), log_std[:, mirror.places]], -1)
    assert torch.equal(image[::2], turned)


def fused_magnet(configs: list[PPOConfig]) -> tuple[FusedMagnet, Any, Any]:
    """As on a GPU, with its arithmetic on a CPU."""
    rules, config = Rules("tic_tac_toe"), NetConfig(hidden=(16,))
    rollout = random_rollout(rules)
    rollout.legal[:, 0] |= 1  # something is always legal
    nets = [
        CapturedNet(rules, config, MEMBERS, bf16=False, device=torch.device("cpu")) for _ in "ab"
    ]
    for member in range(MEMBERS):
        nets[0].load(member, some_net(rules, config, seed=member).state_dict())
    images = images_of(rollout)
    magnet = FusedMagnet(nets[0], nets[1], rollout, configs, [images.mirroring])
    return magnet, rollout, images


def test_on_a_gpu_every_member_has_its_own() -> None:
    configs = [settings(0.5, 2), settings(0.25, 0)]
    magnet, rollout, _ = fused_magnet(configs)
    moments = [START] * MEMBERS
    magnet.follow(0, moments)
    assert magnet.copied_at == [0, None] and magnet.weights(moments) == [0.5, 0.25]
    module = some_net(rollout.rules, NetConfig(hidden=(16,)), seed=0)
    magnet.policy.weight.add_(1.0)  # the policy goes on, the magnet stays
    magnet.follow(1, moments)
    magnet.fill()
    mine, uniform = (torch.unique(magnet.places[:, member]).long() for member in range(MEMBERS))
    assert len(mine) + len(uniform) == rollout.places
    mask = mask_of(rollout.legal, rollout.rules)
    with torch.no_grad():
        slow = masked_log_probs(module(rollout.obs[mine])[POLICY], mask[mine])
    torch.testing.assert_close(magnet.by_place[MAGNET][mine], slow)
    zeros = masked_log_probs(torch.zeros(len(uniform), 9), mask[uniform])
    torch.testing.assert_close(magnet.by_place[MAGNET][uniform], zeros)
    magnet.follow(2, moments)
    assert magnet.copied_at == [2, None]
    assert torch.equal(magnet.net.weight[0], magnet.policy.weight[0])
    assert not torch.equal(magnet.net.weight[1], magnet.policy.weight[1])


def test_on_a_gpu_its_state_is_that_of_a_network() -> None:
    configs = [settings(0.5, 2), settings(0.25, 3)]
    magnet, _, _ = fused_magnet(configs)
    assert magnet.state(1) == ({}, None)
    magnet.follow(4, [START] * MEMBERS)
    other, _, _ = fused_magnet(configs)
    other.load(1, *magnet.state(1))
    assert other.copied_at == [None, 4]
    assert torch.equal(other.net.weight[1], magnet.net.weight[1])
    some_net("tic_tac_toe", NetConfig(hidden=(16,))).load_state_dict(magnet.state(1)[0])


def test_on_a_gpu_gradients_are_those_of_autograd() -> None:
    configs = [settings(0.5, 1), settings(0.25, 0)]
    magnet, rollout, images = fused_magnet(configs)
    magnet.net.weight.normal_()
    magnet.copied_at = [0] * MEMBERS
    moments = [START] * MEMBERS
    terms = FusedTerms(magnet.policy, rollout, torch.zeros(MEMBERS, dtype=torch.uint8))
    terms.put([magnet])
    magnet.follow(0, moments)
    terms.set_hparams(moments)
    terms.fill()
    images.throw()
    images.choose(0)
    minibatch = images.turn(0, minibatch_of(images, 0))
    at = magnet.policy.make_pass(minibatch.places.shape[1], learn=True)
    at.read(minibatch.rows["obs"], minibatch.places)
    at.forward()
    terms.add_gradients(at, images.samples.picked[0, :, :ROOM], minibatch)
    at.backward()
    for member, config in enumerate(configs):
        module = some_net(rollout.rules, NetConfig(hidden=(16,)), seed=member)
        picked = images.samples.picked[0, member, :ROOM]
        place = picked[picked >= 0].long()
        mirrored = images.mirrored[0, member, :ROOM][picked >= 0]
        seen = {name: getattr(rollout, name)[place] for name in ("obs", "action")}
        seen["mask"] = mask_of(rollout.legal[place], rollout.rules)
        images.mirroring.reflect(seen, mirrored)
        rows = {MAGNET: magnet.by_place[MAGNET][place], "mirrored": mirrored}
        loss = magnet.term.each(module(seen["obs"]), rows).mean()
        assert float(terms.sums["magnet_kl"][member]) == pytest.approx(
            float(loss.detach()), rel=1e-4
        )
        (config.magnet.at(START) * loss).backward()  # type: ignore[no-untyped-call]
        for name, grad in magnet.policy.unpack(magnet.policy.grad[member]).items():
            mine = module.get_parameter(name).grad
            torch.testing.assert_close(grad, torch.zeros_like(grad) if mine is None else mine)


def test_places_of_members_come_in_passes_of_one_size() -> None:
    rollout = random_rollout(Rules("tic_tac_toe"))
    each = rollout.places // MEMBERS
    passes = places_by_member(rollout, each - 3)
    assert passes.shape[:2] == (2, MEMBERS)
    for member in range(MEMBERS):
        assert len(torch.unique(passes[:, member])) == each
    rows = (passes - rollout.max_pending)[passes >= rollout.max_pending] % rollout.rows
    assert rows.max() == rollout.rows - 1
