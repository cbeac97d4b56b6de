"""SAC as a learner: Stable-Baselines3's step, exact resume, what is refused and what is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sparring
from sparring import Lineup, Pool
from sparring.config import CollectConfig, NetConfig, ReplayConfig, SACConfig, TrainConfig
from sparring.learn.learner import DivergedError
from sparring.learn.losses import (
    critic_loss,
    discrete_critic_target,
    entropy_target,
    gather_q,
)
from sparring.learn.replay import ReplayBatch
from sparring.learn.sac import SAC
from sparring.nets.distribution import entropy_of, masked_log_probs
from sparring.schedule import Moment, Schedule
from sparring.training.planning.plan import resolve

COLLECT = CollectConfig(games=4, steps=8, cpu="float32")
REPLAY = ReplayConfig(ratio=4, batch=32, capacity=4000, warmup=40)
ACTOR = NetConfig(hidden=(32, 32), squash=True, std="predicted")
PLAIN = SACConfig()
FIRST = Moment(0, 0.0)


def make(
    game: str = "laser_hockey",
    config: SACConfig = PLAIN,
    replay: ReplayConfig = REPLAY,
    net: NetConfig = ACTOR,
    seed: int = 1,
    bot: str = "weak",
    cpu: str = "float32",
) -> SAC:
    rules = sparring.Rules(game)
    pool = Pool(rules, COLLECT.games, seed=seed, threads=1, lineups=[Lineup((0, bot))])
    sac = SAC(pool, replace(COLLECT, cpu=cpu), config, replay, net, seed=seed)
    sac.experience.rounds = 3  # an update of a few decisions
    return sac


def some_samples(sac: SAC, rows: int = 32) -> ReplayBatch:
    """Rows of real games with made-up payments, ends and cuts."""
    rng = np.random.default_rng(5)
    rules, pool = sac.rules, Pool(sac.rules, rows, seed=7, threads=1)
    pool.reset()
    seen = torch.from_numpy(pool.batch().obs.copy())
    mask = torch.from_numpy(pool.batch().mask[: 2 * rows].copy())
    action = rng.uniform(-1, 1, (rows, rules.box)) if rules.box else rng.integers(0, 3, rows)
    kind = np.float32 if rules.box else np.int32
    return ReplayBatch(
        obs=seen[:rows],
        mask=mask[:rows],
        action=torch.tensor(action.astype(kind)),
        reward=torch.tensor(rng.normal(size=rows), dtype=torch.float32),
        discount=torch.tensor(np.where(rng.random(rows) < 0.2, 0.0, 0.99), dtype=torch.float32),
        next_obs=seen[rows : 2 * rows],
        next_mask=mask[rows:],
        weight=torch.ones(rows),
        places=np.arange(rows),
    )


def test_an_update_is_that_of_stable_baselines3() -> None:
    """From equal weights, with the same batch and the same noise."""
    sb3 = pytest.importorskip("stable_baselines3")
    gym = pytest.importorskip("gymnasium")
    rates = Schedule.constant(1e-3)
    sac = make(config=SACConfig(lr=rates, critic_lr=rates, temperature_lr=rates))
    sac.set_hparams(FIRST)
    samples = some_samples(sac)
    space = gym.spaces.Box(-np.inf, np.inf, (18,)), gym.spaces.Box(-1, 1, (4,))

    class Nowhere(gym.Env):  # type: ignore[misc]
        observation_space, action_space = space

    theirs = sb3.SAC(
        "MlpPolicy",
        Nowhere(),
        learning_rate=1e-3,
        policy_kwargs={"net_arch": [32, 32]},
        device="cpu",
    )
    theirs.set_logger(sb3.common.logger.Logger(None, []))
    copy_to(theirs, sac)
    compare(theirs, sac, atol=0.0)
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    batch = ReplayBufferSamples(
        sac.critics.widen(samples.obs),
        samples.action,
        sac.critics.widen(samples.next_obs),
        (samples.discount == 0).float().unsqueeze(1),
        samples.reward.unsqueeze(1),
        None,
    )
    theirs.replay_buffer = type("Same", (), {"sample": lambda *_, **__: batch})()
    for _ in range(3):
        noise = iter(sac._noise())
        drawn = theirs.actor.action_dist.proba_distribution

        def fixed(mean: Tensor, log_std: Tensor, drawn: Any = drawn, noise: Any = noise) -> Any:
            made = drawn(mean, log_std)
            values = mean + log_std.exp() * next(noise)
            made.distribution.rsample = lambda *_: values
            return made

        theirs.actor.action_dist.proba_distribution = fixed
        theirs.train(1, 32)
        theirs.actor.action_dist.proba_distribution = drawn
        sac.step(samples)
        sac.experience.steps += 1
        compare(theirs, sac, atol=1e-5)


def pairs(theirs: Any, sac: SAC) -> list[tuple[Tensor, Tensor]]:
    """Their tensors beside ours, turned as theirs lie."""
    net: Any = sac.net
    actor, found = theirs.actor, []
    layers = [(actor.latent_pi[0], net.first.weight.t(), net.first.bias)]
    layers += [(actor.latent_pi[2], net.towers[0][0].weight, net.towers[0][0].bias)]
    weight, bias = net.policy_head.weight.chunk(2), net.policy_head.bias.chunk(2)
    layers += [(actor.mu, weight[0], bias[0]), (actor.log_std, weight[1], bias[1])]
    for kind, flat in (("critic", None), ("critic_target", sac.critics.target)):
        pieces = sac.critics.named_tensors(flat)
        for which, critic in enumerate(getattr(theirs, kind).q_networks):
            for layer in range(3):
                ours = (pieces[f"{layer}.{part}"][0, which] for part in ("weight", "bias"))
                matrix, shift = ours
                layers += [(critic[2 * layer], matrix.t(), shift[0])]
    for linear, matrix, shift in layers:
        found += [(linear.weight, matrix.detach()), (linear.bias, shift.detach())]
    return [*found, (theirs.log_ent_coef, sac.temperature.log.detach().reshape(1))]


@torch.no_grad()
def copy_to(theirs: Any, sac: SAC) -> None:
    for mine, ours in pairs(theirs, sac):
        mine.copy_(ours)


def compare(theirs: Any, sac: SAC, atol: float) -> None:
    for mine, ours in pairs(theirs, sac):
        torch.testing.assert_close(ours, mine.detach(), atol=atol, rtol=0)


@pytest.mark.parametrize(
    ("net", "said"),
    [
        (
            replace(ACTOR, squash=False),
            "squashed actions, and net.squash, which is off, is not one; set",
        ),
        (replace(ACTOR, std="shared"), "the network predicts, and net.std shared is not one"),
    ],
)
def test_networks_that_cannot_learn_this_are_refused(net: NetConfig, said: str) -> None:
    with pytest.raises(sparring.ConfigError, match=said):
        resolve([TrainConfig(game="laser_hockey", algo="sac", net=net)])


def weights_of(sac: SAC) -> dict[str, Tensor]:
    groups = {"net": dict(sac.net.state_dict()), **sac.learner_state()}
    return {f"{g}/{n}": t.detach().clone() for g, part in groups.items() for n, t in part.items()}


@pytest.mark.parametrize(
    ("game", "replay"),
    [
        ("laser_hockey", REPLAY),
        ("laser_hockey_discrete", replace(REPLAY, prioritized=True, n_step=3)),
    ],
)
def test_a_restored_learner_goes_on_bit_for_bit(game: str, replay: ReplayConfig) -> None:
    config = SACConfig(critic_norm=game == "laser_hockey_discrete")
    straight, stopped = make(game, config, replay), make(game, config, replay)
    for _ in range(2):
        straight.iterate(0.0)
        stopped.iterate(0.0)
    assert straight.experience.steps > 0
    resumed = make(game, config, replay, seed=1)
    resumed.restore(stopped.snapshot())
    for learner in (straight, resumed):
        learner.iterate(0.5)
        learner.iterate(0.6)
    assert straight.experience.steps == resumed.experience.steps
    ours, theirs = weights_of(straight), weights_of(resumed)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name
    assert straight.pool.digest() == resumed.pool.digest()


@pytest.mark.parametrize("game", ["laser_hockey", "laser_hockey_discrete"])
def test_a_loss_that_is_not_a_number_is_never_stepped_on(game: str) -> None:
    sac = make(game)
    sac.set_hparams(FIRST)
    good = some_samples(sac)
    sac.step(good)
    before = weights_of(sac)
    with pytest.raises(DivergedError, match="critic_loss nan"):
        sac.step(replace(good, reward=torch.full((32,), torch.nan)))
    for name, tensor in weights_of(sac).items():
        assert torch.equal(tensor, before[name]), name


def test_everything_learns_and_curves_show_it() -> None:
    sac = make("laser_hockey_discrete")
    before = weights_of(sac)
    for _ in range(2):
        (report,) = sac.iterate(0.0)
    after = weights_of(sac)
    for name in ("net/policy_head.weight", "critics/flat", "critics/target", "temperature/log"):
        assert not torch.equal(before[name], after[name]), name
    for name in ("losses/critic_loss", "losses/policy_loss", "learning/temperature"):
        assert np.isfinite(report.stats[name])
    assert 0 < report.stats["losses/entropy"] <= np.log(8)


def test_discrete_steps_ask_legal_actions_alone_and_count_samples_by_their_weights() -> None:
    rates = Schedule.constant(1e-3)
    config = SACConfig(target_entropy_share=0.9, temperature_lr=rates)
    sac = make("tic_tac_toe", config, replace(REPLAY, warmup=10**6), bot="random")
    sac.iterate(0.0)
    torch.nn.init.normal_(sac.net.policy_head.weight, std=0.1)
    samples = replace(sac.experience.replay.sample(0), weight=torch.linspace(0, 1, 32))
    assert (samples.mask.sum(1) < 9).any() and (samples.next_mask.sum(1) < 9).any()
    with torch.no_grad():
        numbers, following = (sac.critics.widen(x) for x in (samples.obs, samples.next_obs))
        here, ahead = (
            masked_log_probs(sac.net(obs)["policy"], mask)
            for obs, mask in (
                (samples.obs, samples.mask),
                (samples.next_obs, samples.next_mask),
            )
        )
        q = sac.critics(following, weights=sac.critics.target)
        one = torch.tensor(1.0)
        target = discrete_critic_target(samples.reward, samples.discount, q, ahead, one)
        taken = gather_q(sac.critics(numbers), samples.action)
        wanted, _ = critic_loss(taken, target, samples.weight)
        entropy = entropy_of(here)
    losses, _ = sac.step(samples)
    torch.testing.assert_close(losses["critic_loss"], wanted)
    torch.testing.assert_close(losses["entropy"], entropy.mean())
    # Of legal actions the policy is nearly undecided: more than is asked for.
    assert (entropy - entropy_target(samples.mask, config)).mean() > 0
    assert float(sac.temperature.log.detach()) == pytest.approx(-1e-3, abs=1e-5)


def test_every_step_and_every_seed_draws_other_noise() -> None:
    sac, other = make(), make(seed=2)
    first = sac._noise()
    assert torch.equal(first, sac._noise())
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first, other._noise())
    sac.experience.steps += 1
    assert not torch.equal(first, sac._noise())


def test_long_gradients_are_shortened() -> None:
    sac = make(config=SACConfig(max_grad_norm=1e-3))
    sac.set_hparams(FIRST)
    sac.step(some_samples(sac))
    for adam in (sac.actor_adam, sac.critic_adam, sac.temperature_adam):
        # A tenth of the first gradient is what Adam remembers of it.
        assert float(adam.exp_avg.norm()) == pytest.approx(1e-4, rel=1e-2)


def test_its_policies_say_that_critics_hold_the_values() -> None:
    sac = make()
    assert sac.snapshot().meta["values"] is False
    with pytest.raises(sparring.ConfigError, match="never trained"):
        sac.policy().value(sac.pool.batch().obs)


def test_a_fixed_temperature_stays() -> None:
    sac = make(config=SACConfig(temperature=0.25))
    sac.iterate(0.0)
    sac.iterate(0.0)
    assert sac.experience.steps > 0
    assert float(sac.temperature.log.detach().exp()) == pytest.approx(0.25)
