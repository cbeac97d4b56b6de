"""PPO's mathematics and bookkeeping against plain programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from make import make_ppo
from sparring import Lineup, Pool
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.collect import Sampling
from sparring.learn.forward import Forward
from sparring.learn.learner import DivergedError
from sparring.learn.plan import PPOHparams
from sparring.learn.ppo import PPO, ppo_loss
from sparring.schedule import Moment, Schedule

COLLECT = CollectConfig(games=16, steps=24)
SMALL = PPOConfig(epochs=2, minibatch=128)
FIRST = Moment(0, 0.0)
HPARAMS = PPOHparams.at(PPOConfig(), FIRST)


def make(
    game: str = "tic_tac_toe",
    config: PPOConfig = SMALL,
    members: tuple[Any, ...] | None = None,
    game_config: dict[str, Any] | None = None,
) -> PPO:
    return make_ppo(game, config, members=members, flags=game_config)


def collect(ppo: PPO) -> dict[str, float]:
    return ppo.collector.collect(ppo.updates)


def update(ppo: PPO) -> dict[str, float]:
    return ppo.update(ppo.hparams_at(FIRST))


def random_minibatch(rows: int = 64, actions: int = 12) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(0)
    mask = rng.random((rows, actions)) < 0.5
    mask[:, 0] = True
    action = np.array([rng.choice(np.flatnonzero(m)) for m in mask])
    return {
        "logits": torch.tensor(rng.normal(size=(rows, actions))),
        "value": torch.tensor(rng.normal(size=rows)),
        "mask": torch.tensor(mask),
        "action": torch.tensor(action),
        "old_log_prob": torch.tensor(rng.normal(size=rows) * 0.3 - 1.5),
        "old_value": torch.tensor(rng.normal(size=rows)),
        "advantage": torch.tensor(rng.normal(size=rows)),
        "returns": torch.tensor(rng.normal(size=rows)),
    }


@pytest.mark.parametrize("value_clip", [0.0, 0.3])
def test_loss_and_gradient_against_plain_float64(value_clip: float) -> None:
    data = random_minibatch()
    hparams = replace(HPARAMS, clip=0.2, value_weight=0.7, entropy=0.05, value_clip=value_clip)
    single = {k: v.float() if v.is_floating_point() else v for k, v in data.items()}
    logits, value = (single.pop(k).requires_grad_() for k in ("logits", "value"))
    losses = ppo_loss(logits, value, **single, hparams=hparams)
    losses.total.backward()

    slow_logits, slow_value = (data[k].clone().requires_grad_() for k in ("logits", "value"))
    total = torch.zeros((), dtype=torch.float64)
    for row in range(64):
        legal = torch.nonzero(data["mask"][row]).squeeze(1)
        p = torch.exp(slow_logits[row][legal]) / torch.exp(slow_logits[row][legal]).sum()
        mine = p[(legal == data["action"][row]).nonzero().squeeze()]
        ratio = mine / torch.exp(data["old_log_prob"][row])
        a, r = data["advantage"][row], data["returns"][row]
        surrogate = torch.min(ratio * a, torch.clamp(ratio, 0.8, 1.2) * a)
        error = (slow_value[row] - r) ** 2
        if value_clip:
            old = data["old_value"][row]
            near = old + torch.clamp(slow_value[row] - old, -value_clip, value_clip)
            error = torch.max(error, (near - r) ** 2)
        total = total + (-surrogate + 0.7 * error + 0.05 * (p * torch.log(p)).sum()) / 64
    total.backward()
    assert losses.total.item() == pytest.approx(total.item(), abs=1e-5)
    torch.testing.assert_close(logits.grad, slow_logits.grad.float(), atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(value.grad, slow_value.grad.float(), atol=1e-6, rtol=1e-4)


def test_loss_equals_sb3_contribs() -> None:
    """The same terms as MaskablePPO.train computes them, from its own distribution."""
    distributions = pytest.importorskip("sb3_contrib.common.maskable.distributions")
    data = random_minibatch()
    data = {k: v.float() if v.is_floating_point() else v for k, v in data.items()}
    theirs = distributions.MaskableCategoricalDistribution(12).proba_distribution(data["logits"])
    theirs.apply_masking(data["mask"].numpy())
    ratio = torch.exp(theirs.log_prob(data["action"]) - data["old_log_prob"])
    advantage = data["advantage"]
    policy = -torch.min(advantage * ratio, advantage * torch.clamp(ratio, 0.8, 1.2)).mean()
    value = torch.nn.functional.mse_loss(data["returns"], data["value"])
    entropy = -theirs.entropy().mean()
    expected = policy + 0.01 * entropy + 0.5 * value
    logits, values = data.pop("logits"), data.pop("value")
    hparams = replace(HPARAMS, clip=0.2, value_clip=0.0, value_weight=0.5, entropy=0.01)
    ours = ppo_loss(logits, values, **data, hparams=hparams)
    assert float(ours.total) == pytest.approx(float(expected), abs=1e-5)
    assert float(ours.entropy) == pytest.approx(-float(entropy), abs=1e-5)


def test_every_learner_row_becomes_a_sample_once() -> None:
    ppo = make("skull_king", game_config={"rounds": [1, 2]}, members=(0, 0, "random", 0))
    learned = rows = 0
    for _ in range(6):
        (report,) = ppo.iterate(0.0)
        rows += int((ppo.collector.rollout.policy == 0).sum())
        learned += int(report.stats["learning/samples"])
        assert (report.decisions, report.samples) == (rows, learned)
    pending = int((ppo.collector.transitions.pending["row"] >= 0).sum())
    assert learned + pending == rows


def test_stored_log_probs_are_those_of_the_network() -> None:
    ppo = make("skull_king", game_config={"rounds": [1, 2, 3]})
    collect(ppo)
    rollout, samples = ppo.collector.rollout, slice(ppo.collector.transitions.max_pending, None)
    heads = ppo.net(torch.from_numpy(rollout.obs[samples]))
    illegal = torch.from_numpy(rollout.mask[samples]) == 0
    log_probs = torch.log_softmax(heads["policy"].masked_fill(illegal, -torch.inf), -1)
    chosen = torch.from_numpy(rollout.action[samples]).long().unsqueeze(1)
    mine = log_probs.gather(1, chosen).squeeze(1).detach().numpy()
    np.testing.assert_allclose(rollout.columns["log_prob"][samples], mine, atol=1e-5)
    value = heads["value"].detach().numpy()
    np.testing.assert_allclose(rollout.columns["value"][samples], value, atol=1e-5)


@pytest.mark.parametrize(("game", "members"), [("tic_tac_toe", (0, 1)), ("skull_king", None)])
def test_slots_collect_and_learn_the_same(game: str, members: tuple[Any, ...] | None) -> None:
    """Overlapping stepping with inference changes nothing but the rounding of smaller batches."""
    found = []
    for slots in (1, 3):
        rules = sparring.Rules(game)
        lineups = [Lineup(members or (0,) * rules.seats)]
        pool = Pool(rules, COLLECT.games, seed=1, threads=2, lineups=lineups, slots=slots)
        config = replace(COLLECT, groups=slots)
        ppo = PPO(pool, config, SMALL, NetConfig(hidden=(32, 32)), seed=1)
        ppo.collector.actors[1] = ppo.collector.actors[0]
        for _ in range(3):
            collect(ppo)
            rows = {name: array.copy() for name, array in ppo.collector.rollout.rows().items()}
            update(ppo)
        found.append((rows, ppo.pool.digest(), [p.detach() for p in ppo.net.parameters()]))
    (rows, digest, weights), (other_rows, other_digest, other_weights) = found
    assert digest == other_digest
    for name, array in rows.items():
        np.testing.assert_allclose(array, other_rows[name], atol=1e-6, err_msg=name)
    for mine, yours in zip(weights, other_weights, strict=True):
        torch.testing.assert_close(mine, yours, atol=1e-5, rtol=1e-4)


def test_frozen_opponents_answer_their_own_rows() -> None:
    ppo = make(members=(0, 1))
    frozen = make().net
    with torch.no_grad():
        frozen.policy_head.bias.copy_(torch.arange(9.0) * 50)
    collector = ppo.collector
    with pytest.raises(sparring.ConfigError, match="policy 1 is in the line-ups but has no player"):
        collect(ppo)
    collector.actors[1] = Sampling(Forward(frozen, torch.device("cpu"), COLLECT), seed=1)
    collect(ppo)
    # New line-ups hold from each game's next reset on; until then the old ones sit there.
    ppo.pool.set_lineups([Lineup((0, 0))])
    frozen_actor = collector.actors.pop(1)
    with pytest.raises(sparring.ConfigError, match="policy 1 is in the line-ups but has no player"):
        collect(ppo)
    ppo.pool.set_lineups([Lineup((0, 1))])
    collector.actors[1] = frozen_actor
    ppo.pool.reset()
    collector.opponent_rows = collector.decisions = 0
    collect(ppo)
    rollout, behind = collector.rollout, collector.transitions.max_pending
    rows = rollout.policy.ravel() == 1
    action, mask = rollout.action[behind:][rows], rollout.mask[behind:][rows]
    highest = 8 - mask[:, ::-1].argmax(1)
    assert rows.any()
    np.testing.assert_array_equal(action, highest)
    assert collector.opponent_rows == rows.sum()
    assert collector.decisions == (rollout.policy == 0).sum()
    update(ppo)


def test_a_loss_that_is_not_a_number_is_never_stepped_on() -> None:
    ppo = make()
    collect(ppo)
    ppo.collector.rollout.columns["log_prob"][:] = np.nan
    before = [p.detach().clone() for p in ppo.net.parameters()]
    with pytest.raises(DivergedError, match="with a learning rate of"):
        update(ppo)
    scaled = {"value_head.weight", "value_head.bias"}
    for (name, now), old in zip(ppo.net.named_parameters(), before, strict=True):
        assert torch.isfinite(now).all()
        if name not in scaled:
            assert torch.equal(now, old)


def test_schedules_move_with_progress_and_with_decisions() -> None:
    entropy = Schedule(((0, 0.5), (16 * 24, 0.25), (2 * 16 * 24, 0.0)))
    config = replace(SMALL, lr=Schedule.line(1e-2, 1e-3), entropy=entropy)
    ppo = make(config=config)
    for progress, lr, weight in ((0.0, 1e-2, 0.5), (0.5, 5.5e-3, 0.25), (1.0, 1e-3, 0.0)):
        stats = ppo.iterate(progress)[0].stats
        assert stats["learning/lr"] == pytest.approx(lr)
        assert stats["learning/entropy_weight"] == pytest.approx(weight)


def test_epochs_stop_when_the_policy_has_moved_far_enough() -> None:
    moved = make(
        config=replace(
            SMALL, lr=Schedule.constant(0.05), epochs=20, target_kl=Schedule.constant(0.001)
        )
    )
    assert moved.iterate(0.0)[0].stats["learning/optimizer_steps"] < 20 * 3


def test_reward_size_does_not_matter() -> None:
    """The same games paid a thousandfold: the policy after an update is the same."""
    nets = []
    for size in (1.0, 1000.0):
        ppo = make()
        ppo.pool.set_rewards({"result": size})
        for _ in range(3):
            ppo.iterate(0.0)
        nets.append([p.detach() for p in ppo.net.policy_head.parameters()])
    for small, large in zip(*nets, strict=True):
        torch.testing.assert_close(small, large, rtol=1e-2, atol=1e-4)


@pytest.mark.timeout(120)
def test_a_masked_bandit_is_solved() -> None:
    """One card, one trick: bids are a bandit whose best arm depends on the card alone."""
    config = PPOConfig(epochs=4, minibatch=256, lr=Schedule.line(3e-3, 3e-4), gamma_into=(0.0, 1.0))
    rules = sparring.Rules("skull_king", {"num_players": 2, "ghost": 0, "rounds": [1]})
    pool = Pool(rules, 128, seed=1, threads=1, lineups=[Lineup((0, "captain"))])
    ppo = PPO(pool, CollectConfig(games=128, steps=16), config, NetConfig(hidden=(32,)), seed=1)
    scores = [ppo.iterate(update / 40)[0].stats["charts/score"] for update in range(40)]
    assert np.mean(scores[-5:]) > np.mean(scores[:3]) + 5
