"""TD3: Stable-Baselines3's step, plain targets, noise on actions, exact resume, what plays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sparring
from learn.test_sac_learner import some_samples, weights_of
from sparring import Lineup, Pool
from sparring.config import CollectConfig, NetConfig, ReplayConfig, TD3Config, TrainConfig
from sparring.learn.learner import DivergedError
from sparring.learn.losses import smoothed_action
from sparring.learn.td3 import TD3
from sparring.schedule import Moment
from sparring.training.planning.plan import resolve

REPLAY = ReplayConfig(ratio=4, batch=32, capacity=4000, warmup=40)
ACTOR = NetConfig(hidden=(32, 32), squash=True)
FIRST = Moment(0, 0.0)


def make(
    *,
    cpu: str = "float32",
    threads: int = 1,
    replay: ReplayConfig = REPLAY,
    net: NetConfig = ACTOR,
    seed: int = 1,
    players: tuple[Any, ...] = (0, "weak"),
    **settings: Any,
) -> TD3:
    collect = CollectConfig(games=4, steps=8, cpu=cpu)
    pool = Pool(sparring.Rules("laser_hockey"), 4, seed=seed, threads=1, lineups=[Lineup(players)])
    slots = int(1 in players)
    config = TD3Config(**settings)
    td3 = TD3(pool, collect, config, replay, net, seed=seed, threads=threads, slots=slots)
    td3.experience.rounds = 3  # an update of a few decisions
    return td3


@pytest.mark.parametrize("cpu", ["torch", "float32"])
def test_updates_are_those_of_stable_baselines3(cpu: str) -> None:
    """From equal weights, with the same batch and the same noise."""
    sb3 = pytest.importorskip("stable_baselines3")
    gym = pytest.importorskip("gymnasium")
    td3 = make(cpu=cpu, lr=1e-3, critic_lr=1e-3)
    assert (td3.q_nets is td3.critics) == (cpu == "torch")
    samples: Any = some_samples(td3)  # type: ignore[arg-type]
    space = gym.spaces.Box(-np.inf, np.inf, (18,)), gym.spaces.Box(-1, 1, (4,))

    class Nowhere(gym.Env):  # type: ignore[misc]
        observation_space, action_space = space

    theirs = sb3.TD3(
        "MlpPolicy",
        Nowhere(),
        learning_rate=1e-3,
        policy_kwargs={"net_arch": [32, 32]},
        device="cpu",
    )
    theirs.set_logger(sb3.common.logger.Logger(None, []))
    with torch.no_grad():
        for tensor, ours in pairs(theirs, td3):
            tensor.copy_(ours)
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    class Fixed(torch.Tensor):
        """Actions whose noise in targets is ours: they are cloned, then filled with noise."""

        def clone(self, **_: Any) -> Any:
            noise, std = td3._noise(), td3.config.target_noise
            drawn = type("Drawn", (), {"normal_": lambda self, mean, given: noise * std})()
            return type("Clone", (), {"data": drawn})()

    batch = ReplayBufferSamples(
        td3.critics.widen(samples.obs),
        samples.action.as_subclass(Fixed),
        td3.critics.widen(samples.next_obs),
        (samples.discount == 0).float().unsqueeze(1),
        samples.reward.unsqueeze(1),
        None,
    )
    theirs.replay_buffer = type("Same", (), {"sample": lambda *_, **__: batch})()
    for _ in range(4):
        theirs.train(1, 32)
        td3.step(samples)
        td3.experience.steps += 1
        for tensor, ours in pairs(theirs, td3):
            torch.testing.assert_close(ours, tensor.detach(), atol=1e-5, rtol=0)
    assert not torch.equal(td3.net.get_parameter("first.weight"), td3.target.first.weight)


def pairs(theirs: Any, td3: TD3) -> list[tuple[Tensor, Tensor]]:
    """Their tensors beside ours, turned as theirs lie."""
    layers = []
    for actor, net in ((theirs.actor, td3.net), (theirs.actor_target, td3.target)):
        ours: Any = net
        head = ours.policy_head
        layers += [(actor.mu[0], ours.first.weight.t(), ours.first.bias)]
        layers += [(actor.mu[2], ours.towers[0][0].weight, ours.towers[0][0].bias)]
        layers += [(actor.mu[4], head.weight[:4], head.bias[:4])]
    for kind, flat in (("critic", None), ("critic_target", td3.critics.target)):
        pieces = td3.critics.named_tensors(flat)
        for which, critic in enumerate(getattr(theirs, kind).q_networks):
            for layer in range(3):
                matrix, shift = (pieces[f"{layer}.{part}"][0, which] for part in ("weight", "bias"))
                layers += [(critic[2 * layer], matrix.t(), shift[0])]
    return [
        pair
        for linear, matrix, shift in layers
        for pair in ((linear.weight, matrix.detach()), (linear.bias, shift.detach()))
    ]


def test_targets_against_plain_float64() -> None:
    rng = np.random.default_rng(1)
    head, noise = rng.normal(size=(5, 8)) * 2, rng.normal(size=(5, 4)) * 3
    wanted = np.empty((5, 4))
    for row in range(5):
        for axis in range(4):
            moved = np.tanh(head[row, axis]) + min(max(noise[row, axis] * 0.2, -0.5), 0.5)
            wanted[row, axis] = min(max(moved, -1), 1)
    action = smoothed_action(torch.tensor(head), torch.tensor(noise), std=0.2, limit=0.5)
    np.testing.assert_allclose(action, wanted)
    td3 = make()
    samples: Any = some_samples(td3)  # type: ignore[arg-type]
    discount = torch.linspace(-0.9, 0.9, 32)  # the other seat's value where it is negative
    discount[3] = 0.0
    samples = replace(samples, discount=discount)
    torch.nn.init.normal_(td3.target.get_parameter("policy_head.weight"), std=0.3)
    td3.critics.target.normal_(std=0.3)
    with torch.no_grad():
        head32 = td3.target(samples.next_obs)["policy"]
        following = smoothed_action(head32, td3._noise(), std=0.2, limit=0.5)
        q = td3.critics.target_q(td3.critics.widen(samples.next_obs), following).double().numpy()
    numbers = discount.double().numpy()
    wanted = samples.reward.double().numpy() + np.minimum(numbers * q[0], numbers * q[1])
    np.testing.assert_allclose(td3.targets(samples), wanted, atol=1e-4)


def test_native_passes_make_the_steps_of_torch_on_any_number_of_threads() -> None:
    ways = (("torch", 1), ("float32", 1), ("float32", 2))
    learners = [make(cpu=cpu, threads=threads) for cpu, threads in ways]
    samples: Any = some_samples(learners[0])  # type: ignore[arg-type]
    for learner in learners:
        for _ in range(4):
            learner.step(replace(samples, weight=torch.linspace(0, 1, 32)))
            learner.experience.steps += 1
    found = [weights_of(learner) for learner in learners]  # type: ignore[arg-type]
    for name, tensor in found[0].items():
        torch.testing.assert_close(found[1][name], tensor, atol=1e-6, rtol=1e-4, msg=name)
        assert torch.equal(found[1][name], found[2][name]), name


def test_the_policy_and_all_targets_move_every_other_step() -> None:
    td3 = make(policy_every=3, tau=0.5)
    samples: Any = some_samples(td3)  # type: ignore[arg-type]
    names = ("net/first.weight", "critics/target", "target/first.weight")
    for step in range(1, 7):
        before = weights_of(td3)  # type: ignore[arg-type]
        losses, _ = td3.step(samples)
        td3.experience.steps += 1
        after = weights_of(td3)  # type: ignore[arg-type]
        assert not torch.equal(before["critics/flat"], after["critics/flat"])
        for name in names:
            assert torch.equal(before[name], after[name]) == (step % 3 > 0), name
        assert ("policy_loss" in losses) == (step % 3 == 0)
    followed = 0.5 * before["target/first.weight"] + 0.5 * after["net/first.weight"]
    torch.testing.assert_close(after["target/first.weight"], followed)


def actions_of(td3: TD3, rounds: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Actions that were played, and those of the policy."""
    played, own = [], []
    for _ in range(rounds):
        td3.set_hparams(FIRST)
        td3.noisy.random = td3.experience.is_random_warmup
        td3.experience.collect(FIRST, 0.99, td3.config, reset_stats=True)
        rollout, first = td3.collector.rollout, td3.collector.transitions.max_pending
        mine = rollout.policy.reshape(-1) == 0
        with torch.no_grad():
            head = td3.net(torch.from_numpy(rollout.obs[first:][mine]))["policy"]
        own.append(np.tanh(head[:, :4].numpy()))
        played.append(np.tanh(rollout.action[first:][mine]))
    return np.concatenate(played), np.concatenate(own)


def test_noise_is_on_the_action_and_cut_off_at_the_bounds() -> None:
    td3 = make(noise=0.2, replay=replace(REPLAY, warmup=0))
    with torch.no_grad():
        td3.net.get_parameter("policy_head.bias")[:4] = torch.tensor([0.0, 0.5, 1.5, -4.0])
    played, own = actions_of(td3, 20)
    assert abs(played).max() <= 1 and (abs(played) > 1 - 1e-6).any()
    moved = (played - own)[:, :2]
    assert moved.std() == pytest.approx(0.2, rel=0.1) and abs(moved.mean()) < 0.02
    again, _ = actions_of(make(noise=0.2, replay=replace(REPLAY, warmup=0)), 1)
    other, _ = actions_of(make(noise=0.2, replay=replace(REPLAY, warmup=0)), 1)
    assert np.array_equal(again, other)
    quiet = make(noise=0.0, replay=replace(REPLAY, warmup=0))
    np.testing.assert_allclose(*actions_of(quiet, 1), atol=1e-6)


def test_a_warm_up_is_random() -> None:
    played, own = actions_of(make(replay=replace(REPLAY, warmup=10**6)), 20)
    assert played.std() == pytest.approx(3**-0.5, rel=0.05)
    assert abs(np.corrcoef(played[:, 0], own[:, 0])[0, 1]) < 0.2


@pytest.mark.parametrize("replay", [REPLAY, replace(REPLAY, prioritized=True, n_step=3)])
def test_a_restored_learner_goes_on_bit_for_bit(replay: ReplayConfig) -> None:
    straight, stopped, resumed = (make(replay=replay, critic_norm=True) for _ in range(3))
    for _ in range(2):
        straight.iterate(0.0)
        stopped.iterate(0.0)
    assert straight.experience.steps > 0
    resumed.restore(stopped.snapshot())
    for learner in (straight, resumed):
        learner.iterate(0.5)
        learner.iterate(0.6)
    assert straight.experience.steps == resumed.experience.steps
    ours, theirs = weights_of(straight), weights_of(resumed)  # type: ignore[arg-type]
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name
    assert straight.pool.digest() == resumed.pool.digest()


def test_a_loss_that_is_not_a_number_is_never_stepped_on_and_rehearsing_changes_nothing() -> None:
    td3 = make()
    td3.iterate(0.0)
    td3.iterate(0.0)
    good: Any = some_samples(td3)  # type: ignore[arg-type]
    before = weights_of(td3)  # type: ignore[arg-type]
    with pytest.raises(DivergedError, match="critic_loss nan"):
        td3.step(replace(good, reward=torch.full((32,), torch.nan)))
    td3.dry_run()
    for name, tensor in weights_of(td3).items():  # type: ignore[arg-type]
        assert torch.equal(tensor, before[name]), name


def test_its_policies_and_past_selves_play_without_noise() -> None:
    td3 = make(players=(0, 1))
    td3.put(1, td3.net.state_dict())
    td3.iterate(0.0)
    policy = td3.policy()
    obs = td3.pool.batch().obs
    with torch.no_grad():
        means = torch.tanh(td3.net(torch.from_numpy(obs))["policy"][:, :4])
    for greedy in (True, False):
        np.testing.assert_allclose(policy.act(obs, greedy=greedy), means, atol=1e-6)
    slots = td3.playing._slots
    assert slots is not None and slots.greedy[1]
    with pytest.raises(sparring.ConfigError, match="leave @sampled out"):
        policy.always(greedy=False)
    with pytest.raises(sparring.ConfigError, match="never trained"):
        policy.value(obs)


@pytest.mark.parametrize(
    ("game", "net", "said"),
    [
        ("laser_hockey", replace(ACTOR, squash=False), "algo td3 needs squashed actions"),
        ("tic_tac_toe", ACTOR, "tic_tac_toe needs a learner of discrete actions, and algo td3"),
    ],
)
def test_what_it_cannot_learn_is_refused(game: str, net: NetConfig, said: str) -> None:
    with pytest.raises(sparring.ConfigError, match=said):
        resolve([TrainConfig(game=game, algo="td3", net=net)])
