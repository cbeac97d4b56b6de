"""The critic that sees: what it reads, what it changes, and that nothing of it reaches a policy.

Rows are held against the classes of the hidden information, native passes against autograd.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from learn.memory_helpers import GRU, STACK
from make import make_ppo
from sparring import Rules
from sparring.capabilities.refusals import games_offering
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.games.hidden import hidden_of, read_hidden
from sparring.learn.advantages import VTrace
from sparring.learn.critic import CRITIC, CRITIC_OPTIMIZER, fresh_critic
from sparring.learn.head_terms import seats_of
from sparring.learn.ppo import PPO
from sparring.nets.critic_rows import CriticRows
from sparring.nets.heads import POLICY, VALUE
from sparring.pools.lineups import LEARNER
from sparring.schedule import Moment, Schedule
from sparring.store.policies import load_policy, save_policy

GAMES = games_offering("hidden")
FULL = NetConfig(hidden=(32, 16), critic="full", critic_hidden=(24, 8))
COLLECT = CollectConfig(games=16, steps=24)


def settings(**changes: Any) -> PPOConfig:
    none = Schedule.constant(0.0)
    usual = PPOConfig(epochs=2, minibatch=100, lr=Schedule.constant(3e-3), target_kl=none)
    return replace(usual, **changes)


def learner(game: str = "kuhn_poker", net: NetConfig = FULL, **options: Any) -> PPO:
    options = {"config": settings(), "collect": COLLECT, **options}
    run: PPO = make_ppo(game, net=net, **options)
    return run


def same(one: PPO, other: PPO) -> bool:
    mine, theirs = (run.snapshot().tensors for run in (one, other))
    return all(
        torch.equal(tensor, theirs[group][name])
        for group in ("net", "optimizer", CRITIC, CRITIC_OPTIMIZER)
        for name, tensor in mine[group].items()
    )


@pytest.mark.parametrize("game", GAMES)
def test_rows_hold_what_is_hidden_then_what_is_seen(game: str) -> None:
    rules = Rules(game)
    rows, hidden = CriticRows(rules), hidden_of(rules)
    assert hidden is not None and rows.row_bytes % 16 == 0
    pool = sparring.Pool(rules, 32, seed=2, threads=1)
    pool.reset()
    for _ in range(6):
        batch = pool.step(pool.sample_actions())
    obs, seat = torch.from_numpy(batch.obs.copy()), torch.from_numpy(batch.seat.copy())
    raw = torch.from_numpy(pool.tables[:, rows.state_field.byte_slice].copy())
    built = rows.build(obs, raw, seat).numpy()
    assert (built[:, rows.width :] == batch.obs).all()
    classes = read_hidden(rules, hidden, pool.tables, batch.seat)
    assert classes.min() >= 0 and classes.max() < len(hidden.classes)
    for row in range(32):
        wanted = [float(found == one) for found in classes[row] for one in rows.classes]
        assert (built[row, : rows.used] == wanted).all()
    assert not built[:, rows.used : rows.width].any()
    numbers = rows.rules.widen(built)
    assert (numbers[:, rows.width :] == rules.widen(batch.obs)).all()
    assert (numbers[:, : rows.width] == built[:, : rows.width]).all()
    assert len({feature.name for feature in rows.rules.features[: rows.used]}) == rows.used


@pytest.mark.few(3)
@pytest.mark.parametrize("game", GAMES)
def test_the_policy_does_not_change_with_what_is_hidden(game: str, tmp_path: Path) -> None:
    """Of two positions that a seat cannot tell apart the critic sees two, the policy one."""
    run = learner(game)
    run.iterate(0.0)
    assert run.playing.critic
    policy, critic, differ = run.policy(), run.playing.critic, 0
    state = sparring.new_state(game, seed=4)
    rng = np.random.default_rng(0)
    for number in range(40):
        if state.over:
            state = sparring.new_state(game, seed=number)
        seat, other = state.seat, state.clone()
        for seed in range(3):
            other.resample_hidden(seat, seed=seed)
            (mine, mask), (theirs, _) = state.decision(), other.decision()
            assert (mine == theirs).all()
            rows = [critic_row(critic.rows, run.rules, one, seat) for one in (state, other)]
            differ += bool((rows[0] != rows[1]).any())
            told = [policy.probabilities(obs, mask) for obs in (mine, theirs)]
            assert (told[0] == told[1]).all()
        state.apply(int(rng.choice(np.flatnonzero(mask[0]))))
    assert differ
    saved = load_policy(save_policy(policy, tmp_path / "policy"))
    assert set(saved.net.heads) == {POLICY, VALUE}
    assert saved.net.config == FULL.played and saved.has_values
    assert saved.net.inputs.row_bytes == run.rules.obs_bytes
    assert saved.net.state_dict().keys() == run.snapshot().tensors["net"].keys()
    assert not any("critic" in name for name in saved.net.state_dict())


def critic_row(rows: CriticRows, rules: Rules, state: Any, seat: int) -> np.ndarray:
    """The critic's row of a position."""
    _, field = state.native.field(rules.native, rows.hidden.field)
    raw, (obs, _) = np.frombuffer(field, np.uint8)[None].copy(), state.decision()
    found: np.ndarray = rows.build(*map(torch.from_numpy, (obs, raw, np.array([seat])))).numpy()
    return found


@pytest.mark.parametrize("game", ["skull_king", "kuhhandel", "kuhn_poker_3"])
def test_advantages_come_from_the_values_of_the_critic(game: str) -> None:
    run = learner(game, collect=replace(COLLECT, cpu="float32"))
    run.iterate(0.0)
    run.collector.collect(1)
    samples, targets = run.targets(run.hparams_at(Moment(0, 0.0)))
    rollout, critic = run.collector.rollout, run.playing.critic
    assert critic
    raw = torch.from_numpy(rollout.hidden[samples])
    seats = torch.from_numpy(seats_of(run, samples))
    rows = critic.rows.build(torch.from_numpy(rollout.obs[samples]), raw, seats)
    with torch.no_grad():
        values = critic.net(rows)[VALUE] * critic.net.value_scale
    found = torch.from_numpy(rollout.columns["value"][samples])
    torch.testing.assert_close(found, values, atol=1e-4, rtol=1e-4)
    assert (critic.by_place[samples] == rows.numpy()).all()
    returns = targets["advantage"] + rollout.columns["value"]
    assert (targets["returns"][samples] == returns[samples]).all()
    assert float(critic.net.value_scale) == float(run.net.value_scale)


@pytest.mark.parametrize("net", [FULL, replace(FULL, activation="silu", critic_hidden=(30,))])
def test_native_steps_are_those_of_torch(net: NetConfig) -> None:
    runs = [
        learner("leduc_poker", net, collect=replace(COLLECT, cpu=cpu))
        for cpu in ("float32", "torch")
    ]
    critics = [run.playing.critic for run in runs]
    assert [critic.forward.native is not None for critic in critics if critic] == [True, False]
    for _ in range(3):
        one, other = (run.iterate(0.0)[0].stats for run in runs)
        for name in ("losses/critic_loss", "losses/value_loss", "losses/explained_variance"):
            assert one[name] == pytest.approx(other[name], rel=0.02, abs=2e-3), name
    for mine, theirs in zip(*(one.net.parameters() for one in critics if one), strict=True):
        torch.testing.assert_close(mine, theirs, atol=2e-3, rtol=0.02)


def test_native_gradients_are_those_of_autograd() -> None:
    run = learner("skull_king", collect=replace(COLLECT, cpu="float32"))
    run.iterate(0.0)
    critic = run.playing.critic
    assert critic and critic.forward.native
    rows = {"obs": torch.from_numpy(critic.by_place[-200:].copy()), "returns": torch.randn(200)}
    packed = critic.forward.native.packed
    packed.grad.zero_()
    critic.loss(rows, None)[0].backward()  # type: ignore[no-untyped-call]
    grads = {name: grad.clone() for name, grad in packed.views(packed.grad).items()}
    slow = fresh_critic(critic.rows, FULL, 0)
    slow.load_state_dict(critic.net.state_dict())
    ((slow(rows["obs"])[VALUE] - rows["returns"]) ** 2).mean().backward()
    for name, parameter in slow.named_parameters():
        torch.testing.assert_close(grads[name], parameter.grad, atol=1e-5, rtol=1e-3)


def test_who_sees_the_cards_knows_more_of_the_returns() -> None:
    """In Kuhn poker the other's card decides most showdowns."""
    run = learner(config=settings(minibatch=64, lr=Schedule.constant(1e-2)))
    for _ in range(12):
        stats = run.iterate(0.0)[0].stats
    assert stats["losses/critic_loss"] < 0.8 * stats["losses/value_loss"]


def test_the_policy_begins_with_the_weights_it_has_without_a_critic() -> None:
    plain, full = learner(net=FULL.played), learner()
    for mine, theirs in zip(plain.net.parameters(), full.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert plain.playing.critic is None and CRITIC not in plain.snapshot().tensors
    rollouts = [run.collector for run in (plain, full)]
    for collector in rollouts:
        collector.collect(0)
    assert (rollouts[0].rollout.action == rollouts[1].rollout.action).all()
    assert (rollouts[0].rollout.policy == LEARNER).all()


@pytest.mark.parametrize("cpu", ["float32", pytest.param("torch", marks=pytest.mark.slow)])
def test_a_resumed_run_goes_on_to_the_bit(cpu: str) -> None:
    run, again = (learner("leduc_poker", collect=replace(COLLECT, cpu=cpu)) for _ in range(2))
    for _ in range(3):
        run.iterate(0.0)
    again.restore(run.snapshot())
    for _ in range(2):
        one, other = (each.iterate(0.0)[0].stats for each in (run, again))
        assert one["losses/critic_loss"] == other["losses/critic_loss"]
    assert same(run, again)


def test_a_dry_run_leaves_no_trace() -> None:
    run, other = (learner() for _ in range(2))
    for each in (run, other):
        each.iterate(0.0)
    run.dry_run()
    for each in (run, other):
        each.iterate(0.0)
    assert same(run, other)


def test_stale_rollouts_have_the_values_of_the_critic() -> None:
    run = learner("leduc_poker", correction=VTrace())
    run.iterate(0.0)
    run.collector.collect(1)
    run.collector.lag = np.ones(COLLECT.games, np.int32)  # type: ignore[attr-defined]
    _, targets = run.targets(run.hparams_at(Moment(0, 0.0)))
    assert "rho" in targets
    assert (run.rows()["value"] == run.collector.rollout.columns["value"]).all()


@pytest.mark.parametrize("net", [pytest.param(GRU, marks=pytest.mark.slow), STACK])
def test_it_stands_beside_policies_with_memory(net: NetConfig) -> None:
    pool = sparring.Pool("kuhhandel", 8, threads=1, memory=memory_of(net))
    full = replace(net, critic="full", critic_hidden=(16,))
    run = PPO(pool, CollectConfig(games=8, steps=16), settings(minibatch=32), full)
    for _ in range(2):
        stats = run.iterate(0.0)[0].stats
    assert np.isfinite(stats["losses/critic_loss"])


def memory_of(net: NetConfig) -> int:
    from sparring.nets.inputs import memory_bytes_of

    return memory_bytes_of(Rules("kuhhandel"), net)


def test_truncated_games_are_valued_by_the_policys_network() -> None:
    run = learner("kuhhandel", flags={"max_decisions": 9})
    run.iterate(0.0)
    run.collector.collect(1)
    run.targets(run.hparams_at(Moment(0, 0.0)))
    rollout = run.collector.rollout
    obs = torch.from_numpy(np.concatenate(rollout.truncations.obs))
    where = np.concatenate(rollout.truncations.where)
    with torch.no_grad():
        values = run.net.unscaled_values(run.net(obs))
    found = torch.from_numpy(rollout.final_value.reshape(-1)[where])
    torch.testing.assert_close(found, values, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize(
    ("game", "changes", "message"),
    [
        ("tic_tac_toe", {}, "net.critic full needs a game that provides hidden information, and"),
        (
            "skull_king",
            {"hierarchy": {"on": True}},
            "needs a learner .*leave hierarchy.on out",
        ),
        ("skull_king", {"algo": "dqn"}, "net.critic full needs a learner .*use --algo ppo"),
        ("leduc_poker", {"ppo": {"value_clip": 0.2}}, "critic full and ppo.value_clip 0.2 do not"),
        (
            "leduc_poker",
            {"net": {"critic": "half"}},
            "net.critic 'half' is unknown; use own or",
        ),
        (
            "leduc_poker",
            {"net": {"critic": "own", "critic_hidden": (8,)}},
            "net.critic_hidden 8 needs a critic .* add --net.critic full",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    game: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given = {"net": {"critic": "full"}, "updates": 1, "device": "cpu", **changes}
    with pytest.raises(ConfigError, match=message):
        sparring.train(game, runs=str(tmp_path), quiet=True, **given)
    assert not list(tmp_path.iterdir())


def test_a_policy_tells_nothing_of_it() -> None:
    told = learner().policy().net.describe()["net"]
    assert told == asdict(FULL.played) and told["critic"] == "own"
    assert POLICY in learner().net.heads
