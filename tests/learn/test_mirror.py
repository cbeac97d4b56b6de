"""Mirror images for learners: the tables, the coins, what PPO makes of them, and who is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from learn.batches import data_of
from make import make_ppo
from reference.philox import Philox
from sparring import Lineup, Pool, Rules
from sparring.cli import main
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.games.mirror import Mirror
from sparring.learn.minibatches import Minibatch
from sparring.learn.plan import PPOHparams, RolePlan
from sparring.learn.ppo import PPO, ppo_loss
from sparring.learn.process_group import SINGLE
from sparring.learn.replay import ReplayBatch
from sparring.learn.transforms import STREAM, Mirroring, random_bits
from sparring.pools.custom.base import CustomRules
from sparring.schedule import Moment, Schedule

ZERO = Schedule.constant(0.0)
COLLECT = CollectConfig(games=8, steps=16, mirror=True)
GAMES: list[tuple[str, dict[str, Any]]] = [
    ("laser_hockey", {}),
    ("laser_hockey_discrete", {"fineness": 3}),
    ("shogi", {}),
    ("tic_tac_toe", {}),
]


def random_samples(rules: Rules, rows: int = 64) -> ReplayBatch:
    rng = np.random.default_rng(0)

    def bytes_of(*shape: int, high: int) -> torch.Tensor:
        return torch.from_numpy(rng.integers(0, high, shape).astype(np.uint8))

    action = torch.from_numpy(rng.integers(0, max(rules.actions, 1), rows).astype(np.int32))
    if rules.box:
        action = torch.from_numpy(rng.uniform(-1, 1, (rows, rules.box)).astype(np.float32))
    one = torch.ones(rows)
    return ReplayBatch(
        obs=bytes_of(rows, rules.obs_bytes, high=256),
        mask=bytes_of(rows, rules.actions, high=2),
        action=action,
        reward=one,
        discount=-0.5 * one,
        next_obs=bytes_of(rows, rules.obs_bytes, high=256),
        next_mask=bytes_of(rows, rules.actions, high=2),
        weight=one,
        places=np.arange(rows),
    )


@pytest.mark.parametrize(("game", "config"), GAMES)
def test_the_coin_decides_who_is_mirrored(game: str, config: dict[str, Any]) -> None:
    rules = Rules(game, config)
    mirror = rules.mirror
    assert mirror
    given, coin = random_samples(rules), random_bits(3, 7, 64)
    mirrored = Mirroring(rules, mirror).mirror_batch(given, coin)

    def rows(obs: Any) -> Any:
        return mirror.rows(rules.features, obs)

    images = {"obs": rows, "next_obs": rows, "action": mirror.play}
    images |= {"mask": mirror.masks, "next_mask": mirror.masks}
    for name, image in images.items():
        before, now = getattr(given, name), getattr(mirrored, name)
        assert now.dtype == before.dtype
        assert torch.equal(now[~coin], before[~coin])
        np.testing.assert_array_equal(now[coin].numpy(), image(before.numpy())[coin])
    for name in ("reward", "discount", "weight", "places"):
        assert getattr(mirrored, name) is getattr(given, name)


def test_coins_are_those_of_the_native_generator() -> None:
    """So that a kernel can throw the same: bits of game 0's numbers in a stream of their own."""
    for seed, number in ((0, 0), (2**63 + 5, 123_456)):
        rng = Philox(seed, 0, number, STREAM)
        words = [rng.u32() for _ in range(10)]
        bits = [bool(words[i // 32] >> i % 32 & 1) for i in range(300)]
        assert random_bits(seed, number, 300).tolist() == bits
        assert random_bits(seed, number, 5).tolist() == bits[:5]
    assert abs(random_bits(1, 1, 100_000).float().mean().item() - 0.5) < 0.01


def learner(game: str = "tic_tac_toe", collect: CollectConfig = COLLECT) -> PPO:
    config = PPOConfig(epochs=2, minibatch=128, lr=Schedule.constant(0.01), target_kl=ZERO)
    return make_ppo(game, config, NetConfig(hidden=(16,)), collect=collect)


def test_each_row_is_seen_plain_and_mirrored() -> None:
    ppo = learner()
    (mirroring,) = ppo.transforms.in_place
    first, second, third = (mirroring.epoch(0, number, 200)["mirrored"] for number in range(3))
    assert torch.equal(first, ~second)
    assert torch.equal(first, third)
    assert 60 < int(first.sum()) < 140


@pytest.mark.parametrize("cpu", ["torch", "float32"])
@pytest.mark.parametrize("game", ["tic_tac_toe", "laser_hockey"])
def test_ppo_steps_on_images_with_their_own_old_numbers(game: str, cpu: str) -> None:
    """A step on mirrored rows is a step on rows that were mirrored by hand; the rest stays."""
    ours = learner(game, replace(COLLECT, cpu=cpu))
    plain = learner(game, replace(COLLECT, cpu=cpu, mirror=False))
    hparams = PPOHparams.at(ours.learners[""].settings, Moment(0, 0.0))
    ours.collector.collect(0)
    known = data_of(ours, hparams)
    everyone = torch.arange(len(known["action"]))
    data = Minibatch(known, everyone, {}).rows()
    plain.net.load_state_dict(ours.net.state_dict())
    rules = ours.rules
    assert rules.mirror
    by_hand = dict(data)
    by_hand["obs"] = torch.from_numpy(rules.mirror.rows(rules.features, data["obs"].numpy()))
    by_hand["mask"] = torch.from_numpy(rules.mirror.masks(data["mask"].numpy()))
    by_hand["action"] = torch.from_numpy(rules.mirror.play(data["action"].numpy()))
    data["mirrored"] = torch.ones(len(data["obs"]), dtype=torch.bool)
    turned, plainly = (
        Minibatch(data, everyone, {}, ours.transforms.in_place),
        Minibatch(by_hand, everyone, {}),
    )
    losses = ours.learners[""].backend.step(turned, hparams, ours.loss, SINGLE)
    expected = plain.learners[""].backend.step(plainly, hparams, plain.loss, SINGLE)
    for name in ("policy_loss", "value_loss", "entropy", "grad_norm"):
        assert float(losses[name]) == float(expected[name]), name
    assert float(losses["approx_kl"]) == 0  # nobody was plain


def test_how_far_the_policy_moved_is_measured_on_plain_rows() -> None:
    """Images of a lopsided policy would end the epochs before anything was learned."""
    logits = torch.zeros(4, 3)
    old = torch.full((4,), 1 / 3).log()
    old[2:] -= 50  # of images: far off, beyond what a float's exponential holds
    zeros = torch.zeros(4)
    losses = ppo_loss(
        logits,
        zeros,
        mask=torch.ones(4, 3),
        action=torch.zeros(4, dtype=torch.int32),
        old_log_prob=old.where(torch.arange(4) < 3, torch.tensor(-500.0)),
        old_value=zeros,
        advantage=zeros,
        returns=zeros,
        hparams=PPOHparams.at(PPOConfig(), Moment(0, 0.0)),
        mirrored=torch.tensor([False, False, True, True]),
    )
    assert losses.approx_kl.item() == pytest.approx(0, abs=1e-6)
    assert losses.clipfrac.item() == 0


def test_a_run_with_images_repeats_and_goes_on_exactly() -> None:
    one, other = learner("laser_hockey"), learner("laser_hockey")
    one.iterate(0.0)
    other.restore(one.snapshot())
    first, second = (ppo.iterate(0.5)[0].stats for ppo in (one, other))
    assert first == second
    for name, weight in one.net.state_dict().items():
        assert torch.equal(weight, other.net.state_dict()[name])


def gap(ppo: PPO) -> float:
    """How differently images are answered: the mean change of probabilities."""
    rules, rollout = ppo.rules, ppo.collector.rollout
    mirroring = Mirroring(rules, rules.mirror)  # type: ignore[arg-type]
    obs, mask = torch.from_numpy(rollout.obs), torch.from_numpy(rollout.mask)
    legal = mask.sum(1) > 0
    everyone = torch.ones(int(legal.sum()), dtype=torch.bool)
    obs, mask = obs[legal], mask[legal]
    with torch.no_grad():
        chance = ppo.net(obs)["policy"].masked_fill(mask == 0, -torch.inf).softmax(-1)
        image = ppo.net(mirroring.rows(obs, everyone))["policy"]
        images = image.masked_fill(mirroring.masks(mask, everyone) == 0, -torch.inf).softmax(-1)
    back = images[:, mirroring.places]
    return float((chance - back).abs().sum(1).mean())


def test_what_is_learned_holds_in_the_mirror_too() -> None:
    gaps = {}
    for mirror in (True, False):
        ppo = learner(collect=CollectConfig(games=32, steps=16, mirror=mirror))
        for _ in range(10):
            ppo.iterate(0.0)
        gaps[mirror] = gap(ppo)
    assert gaps[True] < 0.6 * gaps[False]


# Who is refused


def test_games_without_an_image_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["train", "skull_king", "--collect.mirror", "--runs", str(tmp_path / "runs")]
    assert main(given) == 2
    told = capsys.readouterr().err.strip()
    assert len(told.splitlines()) == 1
    assert "collect.mirror needs a game that declares a mirror image, and skull_king is" in told
    assert "leave collect.mirror out" in told
    assert "laser_hockey, laser_hockey_discrete, shogi, tic_tac_toe" in told
    assert not list(tmp_path.iterdir())


def test_environments_of_others_are_refused(tmp_path: Path) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    runs = str(tmp_path / "runs")
    with pytest.raises(ConfigError, match=r"mirror image, and CartPole-v1 is not one"):
        sparring.train(env, updates=1, quiet=True, runs=runs, collect={"mirror": True})
    assert not list(tmp_path.iterdir())
    called_like_ours = CustomRules("shogi", seats=1, rows=1, actions=2, numbers=3)
    assert called_like_ours.mirror is None


def test_memory_has_no_image() -> None:
    pool = Pool("tic_tac_toe", 8, memory=16)
    with pytest.raises(
        ConfigError, match=r"collect\.mirror: .*memory has no mirror image.*16 bytes"
    ):
        PPO(pool, COLLECT, PPOConfig(), NetConfig(hidden=(16,)))


# Roles


def swapped(count: int, one: int, other: int) -> tuple[int, ...]:
    places = list(range(count))
    places[one], places[other] = other, one
    return tuple(places)


def roles_in_the_mirror(cpu: str, *, mirror: bool = True) -> PPO:
    """Two roles of Skull King; no bundled game has roles and an image, so it is given one."""
    rules = Rules("skull_king")
    pool = Pool(rules, 8, seed=1, threads=1, lineups=[Lineup((0,) * rules.seats)])
    config = PPOConfig(epochs=2, minibatch=128, lr=Schedule.constant(0.01), target_kl=ZERO)
    plans = [RolePlan(role, NetConfig(hidden=(16,)), (config,)) for role in rules.roles]
    learner = PPO(pool, CollectConfig(games=8, steps=24, cpu=cpu), plans, seed=1)
    features, actions = len(rules.features), rules.actions
    image = Mirror(
        swapped(features, 0, 1), (1,) * features, swapped(actions, actions - 1, actions - 2)
    )
    if mirror:
        image.check(rules.name, rules.features, actions=actions, box=0)
        turning = [Mirroring(rules, image, seed=1)]
        learner.transforms = replace(learner.transforms, in_place=turning)
    return learner


def test_every_role_learns_from_images() -> None:
    native, torchs = (roles_in_the_mirror(cpu) for cpu in ("float32", "torch"))
    plain = roles_in_the_mirror("float32", mirror=False)
    for one in (native, torchs, plain):
        one.iterate(0.0)
    for role in native.rules.roles:
        mine, theirs, other = (
            torch.cat([weight.detach().view(-1) for weight in one.net.net_of(role).parameters()])
            for one in (native, torchs, plain)
        )
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-3)
        assert (mine - other).abs().max() > 0.01, role
