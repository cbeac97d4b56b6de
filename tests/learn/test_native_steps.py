"""PPO's native optimizer steps are those of torch, and whoever plays has the weights as they are.

torch's steps and `ppo_loss` are the slow, obvious reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from learn.batches import data_of
from make import make_ppo
from sparring import Pool, _native
from sparring.config import CollectConfig, HindsightConfig, NetConfig, PPOConfig
from sparring.learn.backends.native import NativeBackend
from sparring.learn.backends.torch import TorchBackend
from sparring.learn.hindsight import ExamplesTerm, Hindsight
from sparring.learn.learner import DivergedError
from sparring.learn.minibatches import ExtraRowsSampler, Minibatch
from sparring.learn.plan import PPOHparams
from sparring.learn.ppo import PPO, ppo_loss
from sparring.learn.process_group import SINGLE
from sparring.learn.role_learners import PPO_METRICS
from sparring.learn.terms import Weighted
from sparring.nets.distribution import masked_log_probs
from sparring.nets.net import HeadOutputs
from sparring.nets.sampling import ActionSampler
from sparring.schedule import Moment, Schedule

COLLECT = CollectConfig(games=16, steps=24)
FIRST = Moment(0, 0.0)
SETTINGS = PPOConfig(epochs=3, minibatch=100, lr=Schedule.constant(3e-3))
HPARAMS = PPOHparams.at(SETTINGS, FIRST)


def make(
    cpu: str,
    game: str = "skull_king",
    config: PPOConfig = SETTINGS,
    net: NetConfig | None = None,
    *,
    threads: int = 2,
    kind: type[PPO] = PPO,
    mirror: bool = False,
) -> PPO:
    collect = replace(COLLECT, cpu=cpu, mirror=mirror)
    net = net or NetConfig(hidden=(64, 32))
    return make_ppo(game, config, net, collect=collect, kind=kind, threads=threads)


def random_rows(actions: int, box: int, rows: int = 200) -> dict[str, torch.Tensor]:
    """Rows of every kind: ratios and values far off and near, one legal action, images."""
    random = torch.Generator().manual_seed(3)
    numbers = {
        name: torch.randn(rows, generator=random) * size
        for name, size in (("log_prob", 0.4), ("value", 1), ("advantage", 1), ("returns", 1))
    }
    numbers["log_prob"] -= 1.5
    mask = (torch.rand(rows, actions, generator=random) < 0.3).to(torch.uint8)
    action = torch.randint(actions or 1, (rows,), generator=random).to(torch.int32)
    if box:
        action = torch.randn(rows, box, generator=random)
        numbers["log_prob"] -= box
    else:
        mask[:20] = 0
        mask[torch.arange(rows), action.long()] = 1
        numbers["log_prob"][:20] = 0.1
    mirrored = torch.rand(rows, generator=random) < 0.3
    return {**numbers, "mask": mask, "action": action, "mirrored": mirrored}


def gradient(
    data: dict[str, torch.Tensor], said: torch.Tensor, hparams: PPOHparams, threads: int
) -> tuple[torch.Tensor, tuple[float, ...]]:
    """What the native loss makes of heads, by row of a shuffled minibatch."""
    grad, order = torch.empty_like(said), torch.randperm(len(said))
    box = data["action"].is_floating_point()
    shuffled = {name: torch.empty_like(tensor) for name, tensor in data.items()}
    for name, tensor in data.items():
        shuffled[name][order] = tensor
    sums = _native.PPOUpdate(threads).policy_loss(
        outputs=said.numpy(),
        index=order.numpy(),
        sample=order.numpy(),
        mask=shuffled["mask"].numpy(),
        action=None if box else shuffled["action"].numpy(),
        box_action=shuffled["action"].numpy() if box else None,
        log_prob=shuffled["log_prob"].numpy(),
        value=shuffled["value"].numpy(),
        advantage=shuffled["advantage"].numpy(),
        returns=shuffled["returns"].numpy(),
        mirrored=shuffled["mirrored"].view(torch.uint8).numpy() if "mirrored" in data else None,
        clip=hparams.clip,
        value_clip=hparams.value_clip,
        value_weight=hparams.value_weight,
        entropy=hparams.entropy,
        grad=grad.numpy(),
    )
    *losses, moved, clipped, plain = sums
    return grad, (*(one / len(said) for one in losses), moved / plain, clipped / plain)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("value_clip", [0.0, 0.3])
@pytest.mark.parametrize(("actions", "box"), [(86, 0), (7, 0), (0, 3)])
def test_the_loss_and_its_gradient_are_those_of_torch(
    actions: int, box: int, value_clip: float, mirrored: bool
) -> None:
    data = random_rows(actions, box)
    if not mirrored:
        del data["mirrored"]
    said = torch.randn(200, (actions or 2 * box) + 1, generator=torch.Generator().manual_seed(1))
    said[:, box:-1] *= 3 if box else 1  # spreads beyond their bounds
    hparams = replace(HPARAMS, value_clip=value_clip, entropy=0.05, value_weight=0.7)
    heads = said.clone().requires_grad_()
    old = {"old_log_prob": data["log_prob"], "old_value": data["value"]}
    rest = {name: t for name, t in data.items() if name not in ("log_prob", "value")}
    expected = ppo_loss(heads[:, :-1], heads[:, -1], **old, **rest, hparams=hparams)
    expected.total.backward()
    assert heads.grad is not None
    grad, losses = gradient(data, said, hparams, 2)
    assert torch.isfinite(grad).all()
    torch.testing.assert_close(grad, heads.grad, rtol=1e-4, atol=1e-7)
    assert losses == pytest.approx(
        [getattr(expected, name).item() for name in PPO_METRICS], rel=1e-5
    )


def test_a_row_with_one_legal_action_has_no_entropy_and_no_gradient() -> None:
    data = {name: tensor[:20] for name, tensor in random_rows(86, 0).items()}
    grad, losses = gradient(data, torch.randn(20, 87), replace(HPARAMS, entropy=1.0), 1)
    assert not grad[:, :-1].any()
    assert losses[2] == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads_gives_the_same_bits(threads: int) -> None:
    found = []
    for count in (2, threads):
        ppo = make("float32", threads=count)
        stats = [ppo.iterate(0.0)[0].stats for _ in range(2)][-1]
        found.append((stats["losses/policy_loss"], stats["losses/grad_norm"], ppo.snapshot()))
    (*losses, one), (*others, two) = found
    assert losses == others
    for group in ("net", "optimizer"):
        for name, tensor in one.tensors[group].items():
            assert torch.equal(tensor, two.tensors[group][name]), name


@pytest.mark.parametrize(
    ("game", "net", "mirror"),
    [
        ("skull_king", NetConfig(hidden=(64, 32)), False),
        ("laser_hockey", NetConfig(hidden=(32, 32), activation="tanh"), True),
        ("tic_tac_toe", NetConfig(hidden=(32,), shared=False), True),
    ],
)
def test_an_update_is_that_of_torch(game: str, net: NetConfig, mirror: bool) -> None:
    """From the same rollout, 3 epochs: losses, steps, weights and Adam's memory."""
    config = replace(SETTINGS, value_clip=Schedule.constant(0.2), target_kl=Schedule.constant(0.0))
    ours, theirs = (make(cpu, game, config, net, mirror=mirror) for cpu in ("float32", "torch"))
    assert isinstance(ours.learners[""].backend, NativeBackend)
    assert isinstance(theirs.learners[""].backend, TorchBackend)
    ours.collector.collect(0)
    theirs.collector.collect(0)
    np.testing.assert_allclose(  # continuous actions are rounded elsewhere
        ours.collector.rollout.action, theirs.collector.rollout.action, atol=1e-5
    )
    stats, expected = (ppo.update({"": PPOHparams.at(config, FIRST)}) for ppo in (ours, theirs))
    assert stats.keys() == expected.keys()
    assert (stats.pop("learning/native"), expected.pop("learning/native")) == (1, 0)
    for name, value in expected.items():
        near = {"losses/clipfrac": 0.01}.get(name, 1e-4 + 1e-3 * abs(value))
        assert stats[name] == pytest.approx(value, abs=near), name
    for (name, one), two in zip(ours.net.named_parameters(), theirs.net.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-4, msg=name)


def test_epochs_stop_where_torchs_do() -> None:
    config = replace(
        SETTINGS, epochs=12, lr=Schedule.constant(0.02), target_kl=Schedule.constant(0.01)
    )
    steps = [
        make(cpu, config=config).iterate(0.0)[0].stats["learning/optimizer_steps"]
        for cpu in ("float32", "torch")
    ]
    assert steps[0] == steps[1] < 12 * 2


@pytest.mark.parametrize(("before", "behind"), [("torch", "float32"), ("float32", "torch")])
def test_either_goes_on_from_the_others_checkpoint(before: str, behind: str) -> None:
    first = make(before)
    first.iterate(0.0)
    saved = first.snapshot()
    first.iterate(0.0)
    second = make(behind)
    second.restore(saved)
    again = second.snapshot()
    for group in ("net", "optimizer"):
        for name, tensor in saved.tensors[group].items():
            assert torch.equal(tensor, again.tensors[group][name]), name
    second.iterate(0.0)
    for one, two in zip(first.net.parameters(), second.net.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-4)


class ByFormula(Weighted):
    """Examples without a loss in native code: what a term with rows of its own has to have."""

    name, counted = ExamplesTerm.name, ExamplesTerm.counted
    measured = ("hindsight_right",)
    columns, rows, each = ExamplesTerm.columns, ExamplesTerm.rows, ExamplesTerm.each

    def measure(
        self, heads: HeadOutputs, rows: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        log_probs = masked_log_probs(heads["policy"], rows["mask"])
        return {"hindsight_right": (log_probs.argmax(-1) == rows["action"]).float()}


def examples_term(*, by_formula: bool) -> Any:
    if by_formula:
        return ByFormula(Schedule.constant(0.7))
    config = HindsightConfig(on=True, weight=Schedule.constant(0.7))
    return ExamplesTerm(Hindsight(Pool("skull_king", 1, records=True), config, 0))


@pytest.mark.parametrize("by_formula", [False, True])
@pytest.mark.parametrize("count", [40, 0])
def test_rows_of_a_term_are_learned_from_as_torch_does(count: int, by_formula: bool) -> None:
    native, torchs = make("float32"), make("torch")
    native.collector.collect(0)
    hparams = native.hparams_at(FIRST)[""]
    data = data_of(native, hparams)
    torchs.net.load_state_dict(native.net.state_dict())
    rows = {name: data[name][len(data[name]) - count :] for name in ("obs", "mask")}
    rows["action"] = rows["mask"].argmax(1).to(torch.int32)
    (part,) = ExtraRowsSampler("hindsight", rows, np.random.default_rng(0)).deal(1)
    minibatch = Minibatch(data, torch.arange(100), part)
    for ppo in (native, torchs):
        ppo.terms.append(examples_term(by_formula=by_formula))
    shown, expected = (
        ppo.learners[""].backend.step(minibatch, hparams, ppo.loss, SINGLE)
        for ppo in (native, torchs)
    )
    assert shown.keys() == expected.keys()
    assert (float(shown["hindsight"]) > 0) == (count > 0)
    for name in expected:
        if name.startswith("hindsight"):
            assert float(shown[name]) == pytest.approx(float(expected[name]), rel=1e-5), name
    assert float(shown["grad_norm"]) == pytest.approx(float(expected["grad_norm"]), rel=1e-4)
    for one, two in zip(native.net.parameters(), torchs.net.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-4)


@pytest.mark.parametrize("wrong", ["log_prob", "returns"])
def test_nothing_is_stepped_on_that_is_not_finite(wrong: str) -> None:
    ppo = make("float32")
    ppo.collector.collect(0)
    data = data_of(ppo, HPARAMS)
    data[wrong][3] = np.inf if wrong == "returns" else np.nan
    before = {name: tensor.clone() for name, tensor in ppo.net.state_dict().items()}
    with pytest.raises(DivergedError, match="with a learning rate of"):
        minibatch = Minibatch(data, torch.arange(100), {})
        ppo.learners[""].backend.step(minibatch, HPARAMS, ppo.loss, SINGLE)
    for name, tensor in ppo.net.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert not ppo.learners[""].backend.tensors()


def saying_is_current(ppo: PPO) -> None:
    obs = torch.from_numpy(ppo.pool.batch().obs.copy())
    with torch.no_grad():
        said, expected = ppo.forward(obs), ppo.net(obs)
        for name, head in expected.items():
            torch.testing.assert_close(said[name], head, rtol=1e-4, atol=1e-5)


def test_what_plays_has_the_weights_as_they_are() -> None:
    """Behind whatever may change them; old ones would play on unnoticed."""
    ppo = make("float32")
    assert ppo.forward.lean is not None
    saying_is_current(ppo)
    ppo.iterate(0.0)
    saying_is_current(ppo)
    saved = ppo.snapshot()
    ppo.net.rescale_value_head(7.0)
    saying_is_current(ppo)
    ppo.iterate(0.0)
    saying_is_current(ppo)
    ppo.restore(saved)
    saying_is_current(ppo)
    ppo.dry_run()
    saying_is_current(ppo)
    ppo.net.load_state_dict({name: 2 * t for name, t in saved.tensors["net"].items()})
    saying_is_current(ppo)
    with torch.no_grad():
        ppo.net.policy_head.bias[3] += 1
    saying_is_current(ppo)
    for tensor in ppo.net.state_dict().values():  # as actors take over what was learned
        tensor.copy_(tensor / 3)
    saying_is_current(ppo)


@pytest.mark.parametrize("game", ["skull_king", "laser_hockey"])
def test_actions_are_drawn_as_the_sampler_draws_them(game: str) -> None:
    ppo = make("float32", game)
    ppo.net.rescale_value_head(0.25)
    batch = ppo.pool.batch()
    rows = np.arange(len(batch.obs)) + 7
    native = ppo.forward.native
    assert native
    with torch.no_grad():
        heads = native.forward_heads(torch.from_numpy(batch.obs))[0]
    expected = ActionSampler(5).draw(heads["policy"], batch.mask, rollout=3, step=2, rows=rows)
    drawn = native.draw(batch.obs, batch.mask, seed=5, rows=rows, rollout=3, step=2)
    for mine, theirs in zip(
        drawn, (*expected, ppo.net.unscaled_values(heads).numpy()), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype


@pytest.mark.skipif(not _native.has_amx(), reason="this CPU has no AMX")
def test_steps_in_bfloat16_point_where_torchs_do() -> None:
    """Within 2 %: the gradient of a minibatch, beside the same in float32."""
    found = []
    for cpu in ("bf16", "float32"):
        ppo = make(cpu, net=NetConfig(hidden=(128, 128)))
        collected = make("float32", net=NetConfig(hidden=(128, 128)))
        collected.collector.collect(0)
        ppo.net.load_state_dict(collected.net.state_dict())
        data = data_of(collected, HPARAMS)
        steps = ppo.learners[""].backend
        assert isinstance(steps, NativeBackend)
        steps.step(Minibatch(data, torch.arange(256), {}), HPARAMS, ppo.loss, SINGLE)
        found.append(steps.native.packed.grad.clone())
    assert not torch.equal(*found)
    assert (found[0] - found[1]).norm() <= 0.02 * found[1].norm()


class OwnLoss(PPO):
    """With a loss that native code knows nothing of."""

    def loss(self, minibatch: Any, hparams: PPOHparams) -> Any:
        total, shown = super().loss(minibatch, hparams)
        return 2 * total, shown


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"cpu": "torch"}, "collect.cpu is torch"),
        (
            {"cpu": "auto", "net": NetConfig(hidden=(16,), norm=True)},
            "net.norm has no native",
        ),
        (
            {"cpu": "auto", "net": NetConfig(hidden=(16,), normalize=True)},
            "net.normalize has",
        ),
        ({"cpu": "auto", "kind": OwnLoss}, ""),
    ],
)
def test_the_rest_is_left_to_torch(options: dict[str, Any], why: str) -> None:
    ppo = make(**options)
    assert isinstance(ppo.learners[""].backend, TorchBackend)
    assert ppo.forward.lean is None
    assert why in ppo.forward.why_torch()
    assert ppo.iterate(0.0)[0].stats["learning/native"] == 0
