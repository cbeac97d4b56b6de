"""QR-DQN: the same step as sb3-contrib's, plain loops over quantiles, exact resume, what plays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from learn.q_helpers import RANDOM, SMALL, score_against_random, tables, walks
from learn.test_dqn import PARTS, sampled
from sparring.config import CollectConfig, NetConfig, QRDQNConfig, ReplayConfig
from sparring.learn.learner import DivergedError, Snapshot
from sparring.learn.losses import quantile_loss, quantile_target
from sparring.learn.qrdqn import QRDQN, heads_of
from sparring.learn.replay import ReplayBatch
from sparring.nets.make import make_net
from sparring.pools.protocol import GamePool
from sparring.schedule import Moment


def make(
    pool: GamePool, *, net: NetConfig = SMALL, cpu: str = "float32", slots: int = 0, **settings: Any
) -> QRDQN:
    """settings: those of the replay are called replay_..."""
    replay = {"batch": 32, "capacity": 8192, "warmup": 64, "ratio": 4.0}
    replay |= {k[7:]: settings.pop(k) for k in list(settings) if k.startswith("replay_")}
    options = {"threads": settings.pop("threads", 1), "slots": slots}
    collect = CollectConfig(games=pool.num_games, steps=8, cpu=cpu)
    config = QRDQNConfig(**{"quantiles": 7, **settings})
    return QRDQN(pool, collect, config, ReplayConfig(**replay), net, seed=1, **options)


def batches(learner: QRDQN, count: int) -> list[ReplayBatch]:
    while not learner.experience.steps:
        learner.iterate(0.0)
    return [learner.experience.replay.sample(number) for number in range(count)]


@pytest.mark.parametrize("cpu", ["torch", "float32"])
def test_three_updates_are_those_of_sb3_contrib(cpu: str) -> None:
    contrib = pytest.importorskip("sb3_contrib")
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    pool = walks(1)
    mine = make(pool, cpu=cpu, lr=1e-2, target_every=2, max_grad_norm=0.5)
    assert mine.hparams.gamma == 0.99 and (mine.forward.native is not None) == (cpu != "torch")
    theirs = contrib.QRDQN(
        "MlpPolicy",
        pool.env.envs[0],
        learning_rate=1e-2,
        batch_size=32,
        max_grad_norm=0.5,
        policy_kwargs={"net_arch": [32, 32], "n_quantiles": 7},
        device="cpu",
    )
    theirs.set_logger(Logger(None, []))
    linear = [at for at in theirs.quantile_net.quantile_net if isinstance(at, torch.nn.Linear)]
    names = ["first", "towers.0.0", "quantiles_head"]

    def weights() -> dict[str, torch.Tensor]:
        layers = dict(zip(names, linear, strict=True))
        found = {f"{name}.{part}": getattr(layers[name], part) for name in layers for part in PARTS}
        return {**found, "first.weight": found["first.weight"].T}

    state = {**mine.net.state_dict(), **{k: v.detach() for k, v in weights().items()}}
    for net in (mine.net, mine.target):
        net.load_state_dict(state)
    rng = np.random.default_rng(3)
    mine.set_hparams(Moment(0, 0.0))
    for step in range(3):
        obs, following = (rng.normal(size=(32, 2)).astype(np.float32) * 3 for _ in range(2))
        action = rng.integers(0, 3, 32)
        paid = rng.normal(size=32).astype(np.float32) * 3
        over = (rng.random(32) < 0.3).astype(np.float32)
        fixed = ReplayBufferSamples(
            *(torch.from_numpy(x) for x in (obs, action[:, None], following, over[:, None])),
            torch.from_numpy(paid[:, None]),
        )
        theirs.replay_buffer.sample = lambda *a, fixed=fixed, **k: fixed
        theirs.train(gradient_steps=1, batch_size=32)
        if step % 2:  # our target is replaced after every other step
            theirs.quantile_net_target.load_state_dict(theirs.quantile_net.state_dict())
        discount = (0.99 * (1 - over)).astype(np.float32)
        samples = sampled(
            obs, following, action=action.astype(np.int32), reward=paid, discount=discount
        )
        mine.step(samples)
        mine.experience.steps += 1
        ours = mine.net.state_dict()
        for name, tensor in weights().items():
            torch.testing.assert_close(ours[name], tensor.detach(), atol=1e-5, rtol=1e-5, msg=name)
        seen = torch.from_numpy(obs)
        values = theirs.quantile_net(seen).mean(1)
        head = mine.net(samples.obs)["policy"]
        torch.testing.assert_close(head, values, atol=1e-4, rtol=1e-4)


def plain_loss(
    mine: np.ndarray, target: np.ndarray, weight: np.ndarray, huber: float
) -> tuple[float, np.ndarray]:
    """As the paper has it, one pair of quantiles after the other; and its gradient."""
    (rows, count), total, grad = mine.shape, 0.0, np.zeros_like(mine)
    for row in range(rows):
        for k in range(count):
            for j in range(count):
                u = target[row, j] - mine[row, k]
                asymmetry = abs((k + 0.5) / count - (u < 0))
                if huber and abs(u) <= huber:
                    size, slope = u * u / (2 * huber), u / huber
                else:
                    size, slope = abs(u) - huber / 2, np.sign(u)
                total += weight[row] * asymmetry * size / count / rows
                grad[row, k] -= weight[row] * asymmetry * slope / count / rows
    return total, grad


@pytest.mark.parametrize("huber", [0.0, 0.5, 1.0])
def test_targets_and_loss_against_plain_float64(huber: float) -> None:
    rng = np.random.default_rng(1)
    rows, count, actions = 6, 5, 4
    quantiles, following = rng.normal(size=(2, rows, count, actions)) * 2
    mask = rng.random((rows, actions)) < 0.5
    mask[:, 0] = True
    action, reward = rng.integers(0, actions, rows), rng.normal(size=rows)
    discount = np.array([0.9, 0.0, -0.9, 0.5, 1.0, 0.9])
    weight = rng.random(rows)
    values = following.mean(1)
    best = [max(np.flatnonzero(mask[row]), key=lambda a: values[row, a]) for row in range(rows)]
    wanted = np.stack([reward[r] + discount[r] * following[r, :, best[r]] for r in range(rows)])
    given = {name: torch.tensor(x) for name, x in {"reward": reward, "discount": discount}.items()}
    target = quantile_target(
        torch.tensor(following),
        means=torch.tensor(following).mean(-2),
        mask=torch.tensor(mask.astype(np.uint8)),
        **given,
    )
    np.testing.assert_allclose(target, wanted, rtol=1e-12)
    taken = np.stack([quantiles[row, :, action[row]] for row in range(rows)])
    loss_wanted, grad_wanted = plain_loss(taken, wanted, weight, huber)
    learned = torch.tensor(quantiles, requires_grad=True)
    loss, error = quantile_loss(
        learned,
        action=torch.tensor(action),
        target=target,
        huber=huber,
        weight=torch.tensor(weight),
    )
    loss.backward()
    assert float(loss.detach()) == pytest.approx(loss_wanted, rel=1e-6)
    np.testing.assert_allclose(error, abs(taken.mean(1) - wanted.mean(1)), rtol=1e-9)
    assert learned.grad is not None
    for row in range(rows):
        np.testing.assert_allclose(learned.grad[row, :, action[row]], grad_wanted[row], rtol=1e-6)
    others = learned.grad.numpy().copy()
    others[np.arange(rows), :, action] = 0
    assert not others.any()


@pytest.mark.parametrize("double", [False, True])
def test_the_target_values_what_the_target_or_the_network_chooses(double: bool) -> None:
    learner = make(tables(8, RANDOM), double=double, gamma=0.9)
    samples = batches(learner, 1)[0]
    torch.nn.init.normal_(learner.net.get_parameter("quantiles_head.weight"))
    torch.nn.init.normal_(learner.target.get_parameter("quantiles_head.weight"))
    with torch.no_grad():
        online, target = (
            net(samples.next_obs)["quantiles"].view(32, 7, 9)
            for net in (learner.net, learner.target)
        )
    choosing = (online if double else target).mean(1).masked_fill(samples.next_mask == 0, -9e9)
    best = choosing.argmax(1)
    chosen = target[torch.arange(32), :, best]
    wanted = samples.reward[:, None] + samples.discount[:, None] * chosen
    torch.testing.assert_close(learner.targets(samples), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "net",
    [
        SMALL,
        NetConfig(hidden=(16, 8), shared=False),
        NetConfig(hidden=(16, 8), norm=True, policy_hidden=(8,)),
    ],
)
def test_what_plays_is_the_mean_of_the_quantiles(net: NetConfig) -> None:
    learner = make(tables(4, ((0, 1), (1, 0))), net=net, slots=1)
    learner.put(1, learner.net.state_dict())
    batches(learner, 1)
    obs, mask = learner.pool.batch().obs, learner.pool.batch().mask
    with torch.no_grad():
        heads = learner.net(torch.from_numpy(obs))
    mean = heads["quantiles"].view(len(obs), 7, 9).mean(1)
    assert mean.abs().max() > 0
    torch.testing.assert_close(heads["policy"], mean, atol=1e-6, rtol=1e-5)
    policy = learner.policy()
    best = np.where(mask > 0, mean.numpy(), -np.inf).argmax(1)
    for greedy in (True, False):
        assert (policy.act(obs, mask, greedy=greedy) == best).all()
    np.testing.assert_allclose(
        policy.value(obs, mask), np.where(mask > 0, mean, -np.inf).max(1), atol=1e-5
    )


def test_native_passes_make_the_steps_of_torch_on_any_number_of_threads() -> None:
    samples = batches(make(tables(8, RANDOM)), 4)
    learners = [
        make(tables(8, RANDOM), cpu=cpu, threads=threads, replay_prioritized=True)
        for cpu, threads in (("torch", 1), ("float32", 1), ("float32", 2))
    ]
    for learner in learners:
        learner.set_hparams(Moment(0, 0.0))
        for one in samples:
            learner.step(replace(one, weight=torch.linspace(0, 1, 32)))
            learner.experience.steps += 1
    by_torch, native, threads = (learner.net.state_dict() for learner in learners)
    for name, tensor in by_torch.items():
        torch.testing.assert_close(native[name], tensor, atol=1e-6, rtol=1e-5, msg=name)
        assert torch.equal(native[name], threads[name]), name


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "settings",
    [
        {"replay_ratio": 3.7},
        {"target_every": 5, "net": NetConfig(hidden=(16, 8), norm=True)},
        {"replay_prioritized": True, "replay_n_step": 3},
    ],
)
def test_a_restored_learner_goes_on_to_the_bit(settings: dict[str, Any]) -> None:
    learner, other = (make(tables(4, RANDOM, seed=seed), **settings) for seed in (1, 9))
    learner.experience.rounds = other.experience.rounds = 5  # an update of a few decisions
    batches(learner, 1)
    learner.iterate(0.1)
    saved = learner.snapshot()
    kept = {name: read() for name, read in saved.segments.items()}
    segments = {name: (lambda held=held: held) for name, held in kept.items()}
    other.restore(replace(saved, segments=segments))
    for progress in (0.2, 0.3, 0.4):
        (mine,), (theirs,) = learner.iterate(progress), other.iterate(progress)
        assert mine.stats == theirs.stats
    assert torch.equal(learner.packed.weight, other.packed.weight)
    assert torch.equal(learner.packed_target.weight, other.packed_target.weight)
    assert learner.experience.steps == other.experience.steps > 20


def test_quantiles_lie_around_values_from_elsewhere() -> None:
    learner = make(tables(4))
    fresh = learner.snapshot()
    learner.restore(fresh)
    for name, tensor in fresh.tensors["net"].items():
        assert torch.equal(learner.net.state_dict()[name], tensor), name
    theirs = make_net(learner.rules, SMALL).state_dict()
    net = {**fresh.tensors["net"], **{name: t + 1 for name, t in theirs.items()}}
    learner.restore(Snapshot({**fresh.tensors, "net": net}, fresh.blobs, fresh.meta))
    for policy, quantiles in heads_of(learner.net):
        torch.testing.assert_close(quantiles.detach().mean(0), policy.detach())
    assert torch.equal(learner.net.state_dict()["policy_head.bias"], theirs["policy_head.bias"] + 1)


def test_a_loss_that_is_not_finite_is_never_stepped_on_and_rehearsing_changes_nothing() -> None:
    learner = make(tables(8, RANDOM))
    samples = batches(learner, 1)[0]
    before = learner.packed.weight.clone(), learner.packed_target.weight.clone()
    with pytest.raises(DivergedError, match="quantile_loss nan"):
        learner.step(replace(samples, reward=torch.full((32,), torch.nan)))
    learner.dry_run()
    after = learner.packed.weight, learner.packed_target.weight
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.slow
def test_it_learns_to_beat_random_play() -> None:
    settings = {"gamma": 1.0, "lr": 2e-3, "epsilon": "0%:1.0,40%:0.1", "tau": 0.02}
    learner = make(tables(16, RANDOM), replay_ratio=8.0, replay_batch=64, **settings)
    for update in range(8):
        learner.iterate(update / 8)
    assert score_against_random(learner.policy()) > 0.8
