"""Mirror images of minibatches on a GPU are those of the CPU; held on any device that torch has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparring import Rules
from sparring.config import NetConfig
from sparring.learn.fused.heads import FusedKLPenalty
from sparring.learn.fused.minibatches import FusedMinibatch, FusedSamples, Images, throw
from sparring.learn.fused.rollout import FusedRollout, legal_of, mask_of
from sparring.learn.fused.terms import FusedTerms
from sparring.learn.head_terms import REFERENCE, KLPenalty
from sparring.learn.transforms import Mirroring, random_bits
from sparring.nets.make import make_net
from sparring.nets.run.captured import CapturedNet
from sparring.schedule import Moment, Schedule

MEMBERS, STEPS, ROOM, OWN = 2, 12, 24, 8
SEEDS = (5, 2**63 + 11)
UPDATE = 9


def random_rollout(rules: Rules) -> FusedRollout:
    """Rows of nothing that was played, with room for some that terms bring along."""
    rng = np.random.default_rng(1)
    device = torch.device("cpu")
    rollout = FusedRollout(
        rules,
        8,
        STEPS,
        members=MEMBERS,
        row_bytes=rules.obs_bytes,
        squash=False,
        device=device,
        examples=OWN,
    )
    places = rollout.places
    rollout.obs.copy_(torch.from_numpy(rng.integers(0, 256, rollout.obs.shape).astype(np.uint8)))
    masks = torch.from_numpy(rng.integers(0, 2, (places, rules.actions)).astype(np.uint8))
    rollout.legal.copy_(legal_of(masks, rules.legal_words))
    action = torch.from_numpy(rng.integers(0, max(rules.actions, 1), places).astype(np.int32))
    rollout.action.copy_(torch.rand(places, rules.box) * 2 - 1 if rules.box else action)
    for name in ("log_prob", "value", "advantage"):
        getattr(rollout, name).copy_(torch.from_numpy(rng.normal(size=places)))
    return rollout


def images_of(rollout: FusedRollout) -> Images:
    """Two minibatches of shuffled samples, the last rows of each nobody's or a term's."""
    assert rollout.rules.mirror
    rng = np.random.default_rng(2)
    each = rollout.places // MEMBERS
    listed = torch.stack([torch.arange(each) * MEMBERS + member for member in range(MEMBERS)])
    counts = torch.tensor([40, 33], dtype=torch.int32)
    picked = torch.full((2, MEMBERS, ROOM + OWN), -1, dtype=torch.int32)
    for member, count in enumerate(counts.tolist()):
        shuffled = listed[member, torch.from_numpy(rng.permutation(count))].int()
        for number, part in enumerate(shuffled.split(-(-count // 2))):
            picked[number, member, : len(part)] = part
        picked[:, member, ROOM : ROOM + 4] = rollout.places + torch.arange(4, dtype=torch.int32)
    seeds = torch.from_numpy(np.array(SEEDS, np.uint64).view(np.int64))
    clock = torch.tensor([UPDATE], dtype=torch.int32)
    samples = FusedSamples(listed.int(), counts, picked, ROOM, seeds, clock)
    return Images(Mirroring(rollout.rules, rollout.rules.mirror), rollout, samples)


def minibatch_of(images: Images, number: int) -> FusedMinibatch:
    rollout = images.rollout
    names = ("obs", "legal", "action", "advantage")
    rows = {name: getattr(rollout, name) for name in names}
    return FusedMinibatch(images.samples.picked[number], rows | {"old_log_prob": rollout.log_prob})


@pytest.mark.parametrize("count", [1, 31, 128, 300])
@pytest.mark.parametrize("number", [0, 7, 2**31 - 1])
def test_coins_are_thrown_for_all_members_at_once(number: int, count: int) -> None:
    seeds = torch.from_numpy(np.array(SEEDS, np.uint64).view(np.int64))
    thrown = throw(seeds, torch.tensor([number], dtype=torch.int32), count)
    assert thrown.shape == (len(SEEDS), count)
    for mine, seed in zip(thrown, SEEDS, strict=True):
        assert torch.equal(mine, random_bits(seed, number, count))


@pytest.mark.parametrize("game", ["tic_tac_toe", "shogi", "laser_hockey", "laser_hockey_discrete"])
def test_rows_are_turned_as_on_a_cpu(game: str) -> None:
    rules = Rules(game)
    rollout = random_rollout(rules)
    images = images_of(rollout)
    images.throw()
    for epoch in range(3):
        images.choose(epoch)
        for number in range(2):
            turned = images.turn(number, minibatch_of(images, number))
            for member, seed in enumerate(SEEDS):
                picked = images.samples.picked[number, member, :ROOM]
                place = picked[picked >= 0].long()
                at = turned.places[member, :ROOM]
                assert torch.equal(at >= 0, picked >= 0)
                at = at[at >= 0].long()
                rank = [images.samples.list[member].tolist().index(one) for one in place]
                coin = random_bits(seed, UPDATE, 100)[rank] ^ bool(epoch % 2)
                wanted = {
                    "obs": rollout.obs[place],
                    "mask": mask_of(rollout.legal[place], rules),
                    "action": rollout.action[place],
                }
                images.mirroring.reflect(wanted, coin)
                assert torch.equal(turned.rows["obs"][at], wanted["obs"])
                assert torch.equal(mask_of(turned.rows["legal"][at], rules), wanted["mask"])
                assert torch.equal(turned.rows["action"][at], wanted["action"])
                assert torch.equal(turned.rows["advantage"][at], rollout.advantage[place])
                assert torch.equal(turned.known["mirrored"][member, :ROOM][picked >= 0], coin)
                own = turned.places[member, ROOM : ROOM + 4].long()
                assert torch.equal(turned.rows["obs"][own], rollout.obs[rollout.places :][:4])


def test_means_are_those_of_rows_as_they_were_played() -> None:
    images = images_of(random_rollout(Rules("tic_tac_toe")))
    images.throw()
    images.choose(0)
    places = images.samples.picked[0]

    def means_of(asked: torch.Tensor) -> torch.Tensor:
        """Of places, divided by the samples of the minibatch."""
        total = asked[:, :ROOM].clamp(min=0).sum(1, keepdim=True)
        return total / (places[:, :ROOM] >= 0).sum(1, keepdim=True)

    found = images.unmirrored_means(0, places, means_of)
    for member in range(MEMBERS):
        mine, mirrored = places[member, :ROOM], images.mirrored[0, member, :ROOM]
        plain = mine[(mine >= 0) & ~mirrored]
        assert 0 < len(plain) < int((mine >= 0).sum())
        assert float(found[member]) == pytest.approx(float(plain.float().mean()))


@pytest.mark.parametrize("actions", [9, 64, 2187])
def test_masks_are_bits_of_words(actions: int) -> None:
    rules = Rules({9: "tic_tac_toe", 2187: "shogi"}.get(actions, "tic_tac_toe"))
    mask = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (5, actions)).astype(np.uint8))
    words = legal_of(mask, -(-actions // 64))
    for row, legal in zip(mask, words.tolist(), strict=True):
        bits = sum(bool(one) << at for at, one in enumerate(row.tolist()))
        assert sum((word % 2**64) << 64 * at for at, word in enumerate(legal)) == bits
    if rules.actions == actions:
        assert torch.equal(mask_of(words, rules), mask)


def test_terms_see_images_as_they_are_learned_from() -> None:
    """The anchor's word is mirrored with its row, and masks with theirs; nobody's rows say nothing.

    Autograd on rows that were mirrored by hand is the reference.
    """
    torch.manual_seed(3)
    rules, config = Rules("tic_tac_toe"), NetConfig(hidden=(16,))
    rollout = random_rollout(rules)
    rollout.legal[:, 0] |= 1  # something is always legal
    images = images_of(rollout)
    net = CapturedNet(rules, config, MEMBERS, bf16=False, device=torch.device("cpu"))
    modules = [make_net(rules, config) for _ in range(MEMBERS)]
    for member, module in enumerate(modules):
        net.load(member, module.state_dict())
    anchor = KLPenalty(make_net(rules, config), Schedule.constant(0.5), [images.mirroring])
    terms = FusedTerms(net, rollout, torch.zeros(MEMBERS, dtype=torch.uint8))
    held = FusedKLPenalty(anchor, rollout, bf16=False)
    terms.put([held])
    terms.set_hparams([Moment(0, 0.0)] * MEMBERS)
    terms.fill()
    images.throw()
    images.choose(0)
    minibatch = images.turn(0, minibatch_of(images, 0))
    at = net.make_pass(ROOM + OWN, learn=True)
    at.read(minibatch.rows["obs"], minibatch.places)
    at.forward()
    at.logits_grad.zero_()
    at.value_grad.zero_()
    terms.add_gradients(at, images.samples.picked[0, :, :ROOM], minibatch)
    at.backward()
    for member, module in enumerate(modules):
        picked = images.samples.picked[0, member, :ROOM]
        place = picked[picked >= 0].long()
        mirrored = images.mirrored[0, member, :ROOM][picked >= 0]
        assert mirrored.any() and not mirrored.all()
        seen = {name: getattr(rollout, name)[place] for name in ("obs", "action")}
        seen["mask"] = mask_of(rollout.legal[place], rules)
        images.mirroring.reflect(seen, mirrored)
        heads = module(seen["obs"])
        plain = {REFERENCE: held.by_place[REFERENCE][place], "mirrored": mirrored}
        loss = anchor.each(heads, plain).mean()
        assert float(terms.sums["reference_kl"][member]) == pytest.approx(
            float(loss.detach()), rel=1e-4
        )
        (0.5 * loss).backward()  # type: ignore[no-untyped-call]
        for name, grad in net.unpack(net.grad[member]).items():
            mine = module.get_parameter(name).grad
            torch.testing.assert_close(grad, torch.zeros_like(grad) if mine is None else mine)
