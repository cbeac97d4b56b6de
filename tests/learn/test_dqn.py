"""DQN from replay: the same step as stable-baselines3's, targets, exploration, exact resume."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from learn.q_helpers import RANDOM, SMALL, links_of, make_dqn, score_against_random, tables, walks
from sparring import Pool
from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig
from sparring.games.rules import Rules
from sparring.learn.dqn import DQN
from sparring.learn.learner import DivergedError, Snapshot
from sparring.learn.replay import ReplayBatch
from sparring.learn.transforms import mirrors_of, random_bits
from sparring.learn.transitions import TO_NEXT
from sparring.nets.make import make_net
from sparring.schedule import Moment, Schedule

PARTS = ("weight", "bias")


def warm(dqn: DQN) -> DQN:
    """Play until something was learned."""
    while not dqn.experience.steps:
        dqn.iterate(0.0)
    return dqn


def play(dqn: DQN, progress: float = 0.0) -> None:
    """Play a rollout and remember it, without learning."""
    moment = Moment(dqn.experience.decisions, progress)
    dqn.set_hparams(moment)
    dqn.set_epsilon()
    dqn.experience.collect(moment, dqn.hparams.gamma, dqn.config, reset_stats=True)


def sampled(obs: np.ndarray, following: np.ndarray, **columns: Any) -> ReplayBatch:
    """Float observations as samples of a game without illegal actions."""
    rows = [np.zeros((len(obs), 16), np.uint8) for _ in range(2)]
    for row, numbers in zip(rows, (obs, following), strict=True):
        row[:, : 4 * numbers.shape[1]] = numbers.astype(np.float32).view(np.uint8)
    mask = torch.ones(len(obs), 3, dtype=torch.uint8)
    given = {name: torch.from_numpy(column) for name, column in columns.items()}
    where = np.arange(len(obs))
    ones = torch.ones(len(obs))
    obs_, next_ = (torch.from_numpy(row) for row in rows)
    return ReplayBatch(
        obs_, mask, next_obs=next_, next_mask=mask, weight=ones, places=where, **given
    )


def test_three_updates_are_those_of_stable_baselines3() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    pool = walks(1)
    dqn = make_dqn(pool, double=False, dueling=False, lr=1e-2, target_every=2, max_grad_norm=0.5)
    space = pool.env.envs[0]
    theirs = sb3.DQN(
        "MlpPolicy",
        space,
        learning_rate=1e-2,
        gamma=0.9,
        max_grad_norm=0.5,
        policy_kwargs={"net_arch": [32, 32]},
        device="cpu",
    )
    theirs.set_logger(Logger(None, []))
    linear = [layer for layer in theirs.q_net.q_net if isinstance(layer, torch.nn.Linear)]
    names = ["first", "towers.0.0", "policy_head"]

    def weights(of: Any) -> dict[str, torch.Tensor]:
        layers = dict(zip(names, of, strict=True))
        found = {f"{name}.{part}": getattr(layers[name], part) for name in layers for part in PARTS}
        return {**found, "first.weight": found["first.weight"].T}

    state = {**dqn.net.state_dict(), **{k: v.detach() for k, v in weights(linear).items()}}
    for net in (dqn.net, dqn.target):
        net.load_state_dict(state)
    rng = np.random.default_rng(3)
    dqn.set_hparams(Moment(0, 0.0))
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
            theirs.q_net_target.load_state_dict(theirs.q_net.state_dict())
        discount = (0.9 * (1 - over)).astype(np.float32)
        dqn.step(
            sampled(obs, following, action=action.astype(np.int32), reward=paid, discount=discount)
        )
        dqn.experience.steps += 1
        ours = dqn.net.state_dict()
        for name, tensor in weights(linear).items():
            torch.testing.assert_close(ours[name], tensor.detach(), atol=1e-5, rtol=1e-5, msg=name)
    assert not ours["value_head.weight"].any()


def test_n_step_targets_over_the_turns_of_the_other_seat() -> None:
    dqn = make_dqn(tables(4), steps=30, replay_n_step=2, replay_warmup=100_000, gamma=0.9)
    play(dqn)
    torch.nn.init.normal_(dqn.net.policy_head.weight, std=0.5)
    dqn.target.load_state_dict(dqn.net.state_dict())
    rollout, links = dqn.playing.collector.rollout, links_of(dqn.playing.collector)
    wanted = {}
    for place, link in links.items():
        (total, after), discount = link, 0.9
        if after in links:  # else it is the last, or still open and no more is known
            paid, after = links[after]
            total, discount = total + 0.9 * paid, 0.81
        if after is not None:
            obs, mask = rollout.obs[after : after + 1], rollout.mask[after]
            q = dqn.net(torch.from_numpy(obs))["policy"].detach().double().numpy()[0]
            total += discount * (q - q[mask > 0].mean())[mask > 0].max()
        key = (rollout.obs[place].tobytes(), int(rollout.action[place]))
        wanted.setdefault(key, []).append(total)
    for number in range(8):
        samples = dqn.experience.replay.sample(number)
        found = dqn.targets(samples).numpy()
        for at in range(len(found)):
            key = (samples.obs[at].numpy().tobytes(), int(samples.action[at]))
            assert np.abs(np.array(wanted[key]) - found[at]).min() < 1e-5


def test_a_cut_game_goes_on_in_the_target() -> None:
    dqn = make_dqn(walks(2), steps=10, gamma=0.5, replay_warmup=100_000)
    play(dqn)
    torch.nn.init.normal_(dqn.net.policy_head.weight)
    dqn.net.value_head.bias.data.fill_(3.0)
    dqn.target.load_state_dict(dqn.net.state_dict())
    samples = dqn.experience.replay.sample(0)
    seen, after = (
        x[:, :4].contiguous().numpy().view(np.float32)[:, 0]
        for x in (samples.obs, samples.next_obs)
    )
    assert (after == seen + 1).all()
    assert (samples.discount == 0.5).all()
    assert (seen == 4).any()  # the last one before the cut
    heads = dqn.net(samples.next_obs)
    q = heads["policy"].detach().numpy()
    best = (q - q.mean(1, keepdims=True)).max(1) + heads["value"].detach().numpy()
    np.testing.assert_allclose(dqn.targets(samples), 1 + 0.5 * best, atol=1e-5)


@pytest.mark.parametrize("double", [True, False])
def test_the_network_chooses_and_the_target_values(double: bool) -> None:
    dqn = make_dqn(tables(8), double=double, dueling=False, replay_warmup=100_000)
    play(dqn)
    for net in (dqn.net, dqn.target):
        torch.nn.init.normal_(net.policy_head.weight, std=0.5)
    samples = dqn.experience.replay.sample(0)
    said, ahead = (net(samples.next_obs)["policy"].detach() for net in (dqn.net, dqn.target))
    chooser = said if double else ahead
    best = np.where(samples.next_mask > 0, chooser, -np.inf).argmax(1)
    wanted = samples.reward + samples.discount * ahead[np.arange(32), best]
    torch.testing.assert_close(dqn.targets(samples), wanted)


def test_roles_have_discounts_of_their_own() -> None:
    rules = Rules("skull_king", {"rounds": [1, 2]})
    pool = Pool(rules, 4, seed=1, threads=1)
    dqn = make_dqn(pool, steps=40, gamma=0.9, gamma_into=(0.0, 0.5), replay_warmup=100_000)
    play(dqn)
    ring = dqn.experience.replay.ring
    assert set(ring["discount"][ring["end"] == TO_NEXT].tolist()) == {0.0, 0.5}


def test_nothing_is_owed_for_a_warm_up() -> None:
    dqn = make_dqn(tables(8), replay_warmup=200, replay_ratio=2.0)
    while not dqn.experience.warm:
        assert dqn.experience.owed == 0
        before = dqn.playing.collector.decisions
        play(dqn)
    assert dqn.experience.owed == 2.0 * (dqn.playing.collector.decisions - before)


@pytest.mark.parametrize("every", [0, 3])
def test_the_target_follows_or_is_replaced(every: int) -> None:
    dqn = make_dqn(tables(8), tau=0.1, target_every=every, lr=1e-2)
    while len(dqn.experience.replay) < 64:
        play(dqn)
    for number in range(7):
        before = {name: t.clone() for name, t in dqn.target.state_dict().items()}
        dqn.step(dqn.experience.replay.sample(number))
        dqn.experience.steps += 1
        for name, net in dqn.net.named_parameters():
            followed = dqn.target.state_dict()[name]
            if every:
                wanted = net if dqn.experience.steps % every == 0 else before[name]
                assert torch.equal(followed, wanted)
            else:
                torch.testing.assert_close(followed, 0.9 * before[name] + 0.1 * net)


def shares_of_others(dqn: DQN, rounds: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """By game: the share of actions that are not the network's best, and the share expected."""
    others, expected = [], []
    for _ in range(rounds):
        play(dqn, 0.5)
        rollout, first = (
            dqn.playing.collector.rollout,
            dqn.playing.collector.transitions.max_pending,
        )
        obs, mask, action = (array[first:] for array in (rollout.obs, rollout.mask, rollout.action))
        head = dqn.net(torch.from_numpy(obs))["policy"].detach().numpy()
        best = np.where(mask > 0, head, -np.inf).argmax(1)
        assert mask[np.arange(len(mask)), action].all()
        others.append((action != best).reshape(-1, dqn.pool.num_games))
        expected.append((1 - 1 / mask.sum(1)).reshape(-1, dqn.pool.num_games))
    return np.concatenate(others).mean(0), np.concatenate(expected).mean(0)


def test_epsilon_is_the_share_of_random_actions() -> None:
    dqn = make_dqn(tables(64), steps=32, epsilon="0%:1.0,100%:0.2", replay_warmup=0)
    others, expected = shares_of_others(dqn)
    assert dqn.hparams.epsilon == pytest.approx(0.6)
    assert others.mean() == pytest.approx(0.6 * expected.mean(), abs=0.02)


def test_every_game_explores_as_much_as_its_own_epsilon_says() -> None:
    dqn = make_dqn(tables(32), steps=64, epsilon=0.5, epsilon_spread=4.0, replay_warmup=0)
    others, expected = shares_of_others(dqn)
    wanted = 0.5 ** (1 + 4 * np.arange(32) / 31) * expected
    for part in np.array_split(np.arange(32), 4):
        assert others[part].mean() == pytest.approx(wanted[part].mean(), abs=0.03)


def test_the_first_decisions_are_random_and_evaluations_never_are() -> None:
    dqn = make_dqn(tables(32), steps=16, epsilon=0.0, replay_warmup=10_000)
    others, expected = shares_of_others(dqn, 2)
    assert others.mean() == pytest.approx(expected.mean(), abs=0.05)
    own = make_dqn(
        tables(32), steps=16, epsilon=0.0, replay_warmup=10_000, replay_warmup_by="policy"
    )
    assert shares_of_others(own, 2)[0].sum() == 0
    policy = make_dqn(tables(8), epsilon=1.0).policy()
    batch = dqn.pool.batch()
    head = policy.net(torch.from_numpy(batch.obs))["policy"].detach().numpy()
    best = np.where(batch.mask > 0, head, -np.inf).argmax(1)
    for greedy in (True, False):
        assert (policy.act(batch.obs, batch.mask, greedy=greedy) == best).all()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "settings",
    [
        {"replay_ratio": 3.7},
        {"target_every": 5, "net": NetConfig(hidden=(16, 8), norm=True)},
        {"replay_prioritized": True, "replay_n_step": 3},
    ],
)
def test_a_restored_learner_goes_on_to_the_bit(settings: dict[str, Any]) -> None:
    dqn, other = (make_dqn(tables(4, RANDOM, seed=seed), **settings) for seed in (1, 9))
    dqn.experience.rounds = other.experience.rounds = 5  # an update of a few decisions
    dqn.experience.since = 7
    warm(dqn)
    dqn.iterate(0.1)
    saved = dqn.snapshot()
    kept = {name: read() for name, read in saved.segments.items()}
    segments = {name: (lambda held=held: held) for name, held in kept.items()}
    saved = replace(saved, segments=segments)
    other.restore(saved)
    assert (other.experience.owed, other.experience.since) == (dqn.experience.owed, 7)
    for progress in (0.2, 0.3, 0.4):
        (mine,), (theirs,) = dqn.iterate(progress), other.iterate(progress)
        assert mine.stats == theirs.stats
    assert torch.equal(dqn.packed.weight, other.packed.weight)
    assert torch.equal(dqn.packed_target.weight, other.packed_target.weight)
    assert dqn.experience.steps == other.experience.steps > 20


def test_weights_from_elsewhere_are_the_targets_too() -> None:
    dqn = make_dqn(tables(4))
    fresh = dqn.snapshot()
    theirs = {name: t + 1 for name, t in make_net(dqn.rules, SMALL).state_dict().items()}
    dqn.restore(Snapshot({**fresh.tensors, "net": theirs}, fresh.blobs, fresh.meta))
    for name, tensor in dqn.target.state_dict().items():
        assert torch.equal(tensor, theirs[name]), name


def prioritized() -> DQN:
    """One whose decisions are preferred more or less, and that owes one optimizer step."""
    schedule = Schedule.read("0%:0.0,100%:1.0")
    dqn = make_dqn(tables(8), replay_prioritized=True, replay_priority_correction=schedule, lr=1e-2)
    while len(dqn.experience.replay) < 200:
        play(dqn)
    places = np.flatnonzero(dqn.experience.replay.ring["end"])
    dqn.experience.replay.reprioritize(places, np.linspace(0.01, 9, len(places), dtype=np.float32))
    dqn.set_hparams(Moment(0, 0.0))
    dqn.experience.owed = 32.0
    return dqn


def test_a_step_counts_samples_by_their_weights_and_says_how_wrong_they_were() -> None:
    learner, by_hand = prioritized(), prioritized()
    samples = by_hand.experience.replay.sample(0, 0.75)
    assert samples.weight.min() < 0.5
    _, error = by_hand.step(samples)
    learner.experience.learn(Moment(0, 0.75), learner.step)
    assert torch.equal(learner.packed.weight, by_hand.packed.weight)
    assert (learner.experience.owed, learner.experience.steps) == (0.0, 1)
    assert learner.experience.replay.weight is not None
    assert isinstance(samples.places, np.ndarray)
    largest = {}  # of a decision that was drawn twice
    for place, wrong in zip(samples.places.tolist(), error.tolist(), strict=True):
        largest[place] = max(wrong, largest.get(place, 0.0))
    wanted = 65536 * np.array(list(largest.values())) ** 0.6
    np.testing.assert_allclose(learner.experience.replay.weight[list(largest)], wanted, atol=1)


def test_samples_without_weight_teach_nothing() -> None:
    dqn = prioritized()
    samples = dqn.experience.replay.sample(0)
    losses, error = dqn.step(replace(samples, weight=torch.zeros(32)))
    assert losses["q_loss"] == 0 and losses["grad_norm"] == 0
    assert error.min() > 0


def test_every_step_decides_anew_who_is_mirrored() -> None:
    collect = CollectConfig(games=8, steps=8, mirror=True)
    replay = ReplayConfig(batch=32, capacity=8192, warmup=100_000)
    learner, by_hand = (
        DQN(tables(8), collect, DQNConfig(lr=1e-2), replay, SMALL, seed=1) for _ in range(2)
    )
    for dqn in (learner, by_hand):
        play(dqn)
    learner.experience.owed = 64.0
    learner.experience.learn(Moment(0, 0.0), learner.step)
    (mirroring,) = mirrors_of(by_hand.rules, collect, "cpu")
    for step in range(2):
        coin = random_bits(1, step, 32)
        by_hand.step(mirroring.mirror_batch(by_hand.experience.replay.sample(step), coin))
        by_hand.experience.steps += 1
    assert torch.equal(learner.packed.weight, by_hand.packed.weight)


@pytest.mark.few(1)
@pytest.mark.parametrize("games", [1, 16])
def test_the_replay_ratio_holds_for_any_number_of_games(games: int) -> None:
    dqn = make_dqn(tables(games), steps=max(1, 32 // games), replay_ratio=3.5, replay_warmup=0)
    trained = decisions = 0.0
    for _ in range(3):
        (report,) = dqn.iterate(0.0)
        trained += report.stats["learning/samples"]
        decisions += report.stats["learning/decisions"]
    assert decisions > 2000
    assert trained == pytest.approx(3.5 * decisions, abs=2 * 32)
    assert report.samples == dqn.experience.steps * 32


def test_a_loss_that_is_not_finite_is_never_stepped_on() -> None:
    dqn = make_dqn(tables(4))
    play(dqn)
    before = dqn.packed.weight.clone(), dqn.packed_target.weight.clone()
    samples = dqn.experience.replay.sample(0)
    for wrong in (np.nan, np.inf):
        with pytest.raises(DivergedError, match="q_loss"):
            dqn.step(replace(samples, reward=torch.full_like(samples.reward, wrong)))
    assert torch.equal(dqn.packed.weight, before[0])
    assert torch.equal(dqn.packed_target.weight, before[1])


@pytest.mark.parametrize("prioritized", [False, True])
def test_rehearsing_changes_nothing(prioritized: bool) -> None:
    dqn, other = (make_dqn(tables(4), replay_prioritized=prioritized) for _ in range(2))
    for learner in (dqn, other):
        learner.experience.rounds = 5
        warm(learner)
    (report,) = other.dry_run()
    assert report.stats["learning/optimizer_steps"] > 0
    (mine,), (theirs,) = dqn.iterate(0.5), other.iterate(0.5)
    assert mine.stats["losses/q_loss"] == theirs.stats["losses/q_loss"]
    assert torch.equal(dqn.packed.weight, other.packed.weight)
    assert torch.equal(dqn.packed_target.weight, other.packed_target.weight)


def test_frozen_networks_take_their_best_action() -> None:
    dqn = make_dqn(tables(4), slots=2)
    dqn.put(2, dqn.net.state_dict())
    assert dqn.playing._slots is not None
    assert dqn.playing._slots.greedy.tolist() == [False, False, True]


def test_it_learns_to_beat_random_play() -> None:
    dqn = make_dqn(
        tables(16, RANDOM),
        steps=4,
        lr=2e-3,
        tau=0.02,
        gamma=1.0,
        epsilon="0%:1.0,50%:0.1",
        replay_n_step=2,
        replay_ratio=6.0,
        replay_capacity=20_000,
    )
    before = score_against_random(dqn.policy())
    while dqn.playing.collector.decisions < 9_000:
        dqn.iterate(dqn.playing.collector.decisions / 9_000)
    assert score_against_random(dqn.policy()) > max(0.85, before)
