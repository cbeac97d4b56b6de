"""Native steps of DQN and SAC are those of torch: gradients, whole steps, threads, checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sparring
from sparring import Lineup, Pool, _native
from sparring.config import CollectConfig, DQNConfig, NetConfig, ReplayConfig, SACConfig
from sparring.learn.dqn import DQN
from sparring.learn.losses import (
    actor_loss,
    critic_loss,
    critic_target,
    dqn_loss,
    squashed_sample,
    td_target,
)
from sparring.learn.replay import ReplayBatch
from sparring.learn.sac import SAC
from sparring.nets.critics import Critics
from sparring.nets.run.native_critics import NativeCritics
from sparring.schedule import Moment, Schedule

ROWS, ACTIONS, BOX = 300, 5, 3
REPLAY = {"batch": 64, "capacity": 4000, "warmup": 100}
FAST = Schedule.constant(1e-2)


def normal(*shape: int) -> Tensor:
    return torch.randn(shape)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize(("huber", "weighted"), [(0.0, False), (0.5, True)])
def test_targets_and_gradients_of_q(
    double: bool, dueling: bool, huber: float, weighted: bool
) -> None:
    torch.manual_seed(1)
    said, ahead, chooser = (normal(ROWS, ACTIONS + 1) for _ in range(3))
    mask, next_mask = ((torch.rand(ROWS, ACTIONS) < 0.5).to(torch.uint8) for _ in range(2))
    action = torch.randint(ACTIONS, (ROWS,), dtype=torch.int32)
    mask[torch.arange(ROWS), action.long()] = 1
    paid, weight = normal(ROWS), torch.rand(ROWS)
    ended = (next_mask == 0).all(-1)
    discount = torch.where(ended, 0.0, normal(ROWS))  # below 0: the other seat's
    target = td_target(
        ahead[:, :-1],
        ahead[:, -1],
        selection_head=(chooser if double else ahead)[:, :-1],
        mask=next_mask,
        reward=paid,
        discount=discount,
        dueling=dueling,
    )
    learning = said.clone().requires_grad_()
    expected, errors = dqn_loss(
        learning[:, :-1],
        learning[:, -1],
        mask=mask,
        action=action,
        target=target,
        weight=weight if weighted else None,
        dueling=dueling,
        huber=huber,
    )
    grad, error = torch.empty_like(said), torch.empty(ROWS)
    loss, off = _native.OffPolicyLosses(2).q_loss(
        outputs=said.numpy(),
        next_target=ahead.numpy(),
        next_online=chooser.numpy() if double else None,
        mask=mask.numpy(),
        next_mask=next_mask.numpy(),
        action=action.numpy(),
        reward=paid.numpy(),
        discount=discount.numpy(),
        weight=weight.numpy() if weighted else None,
        dueling=dueling,
        huber=huber,
        grad=grad.numpy(),
        error=error.numpy(),
    )
    expected.backward()
    assert learning.grad is not None
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    assert off == pytest.approx(float(errors.mean()), rel=1e-5)
    torch.testing.assert_close(error, errors, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(grad, learning.grad, atol=1e-7, rtol=1e-4)


def test_draws_losses_and_gradients_of_sac() -> None:
    torch.manual_seed(2)
    work, temperature = _native.OffPolicyLosses(2), 0.3
    # Some means lie where tanh is 1, some spreads beyond their bounds.
    head = torch.cat((4 * normal(ROWS, BOX), 3 * normal(ROWS, BOX), normal(ROWS, 1)), -1)
    noise, read, log_prob = normal(ROWS, BOX), normal(ROWS, 7), torch.empty(ROWS)
    before = read.clone()
    mean = work.sample_actions(head.numpy(), noise.numpy(), read.numpy(), log_prob.numpy())
    learning = head[:, : 2 * BOX].clone().requires_grad_()
    action, expected = squashed_sample(learning, noise)
    torch.testing.assert_close(read[:, -BOX:], action.detach(), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(log_prob, expected.detach(), atol=1e-4, rtol=1e-5)
    assert torch.equal(read[:, :-BOX], before[:, :-BOX])
    assert mean == pytest.approx(float(expected.detach().mean()), rel=1e-5)

    q, next_q, paid, weight = normal(ROWS, 2), normal(ROWS, 2), normal(ROWS), torch.rand(ROWS)
    discount = torch.where(torch.rand(ROWS) < 0.3, 0.0, normal(ROWS))
    grad, error = torch.empty(ROWS, 2), torch.empty(ROWS)
    loss = work.critic_loss(
        q=q.numpy(),
        next_q=next_q.numpy(),
        next_log_prob=log_prob.numpy(),
        reward=paid.numpy(),
        discount=discount.numpy(),
        weight=weight.numpy(),
        temperature=temperature,
        grad=grad.numpy(),
        error=error.numpy(),
    )
    worth = torch.tensor(temperature)
    target = critic_target(paid, discount, next_q.T, log_prob, worth)
    said = q.T.clone().requires_grad_()
    their_loss, errors = critic_loss(said, target, weight)
    (their_grad,) = torch.autograd.grad(their_loss, said)
    assert loss == pytest.approx(float(their_loss.detach()), rel=1e-5)
    torch.testing.assert_close(grad.T, their_grad, atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(error, errors, atol=1e-5, rtol=1e-5)

    loss = work.actor_loss(q.numpy(), log_prob.numpy(), temperature, grad.numpy())
    their_loss = actor_loss(said, log_prob, worth)
    (their_grad,) = torch.autograd.grad(their_loss, said)
    assert loss == pytest.approx(float(their_loss.detach()), rel=1e-5)
    torch.testing.assert_close(grad.T, their_grad, atol=0, rtol=1e-6)

    read_grad, head_grad, share = normal(ROWS, 7), torch.empty_like(head), temperature / ROWS
    work.sample_gradient(
        head.numpy(), noise.numpy(), read.numpy(), read_grad.numpy(), share, head_grad.numpy()
    )
    of_log_prob = torch.full((ROWS,), share)
    (wanted,) = torch.autograd.grad(
        (action, expected), learning, (read_grad[:, -BOX:], of_log_prob)
    )
    torch.testing.assert_close(head_grad[:, : 2 * BOX], wanted, atol=1e-5, rtol=1e-4)
    assert not head_grad[:, 2 * BOX :].any()  # nothing is learned by the value


def test_a_target_follows_as_torch_says() -> None:
    torch.manual_seed(3)
    weight, target = normal(70_001), normal(70_001)
    for tau in (0.005, 0.7, 1.0):
        expected = torch.lerp(target, weight, tau)
        _native.OffPolicyLosses(2).polyak_update(weight.numpy(), tau, target.numpy())
        torch.testing.assert_close(target, expected, atol=1e-6, rtol=1e-6)
    assert torch.equal(target, weight)


def make(algo: str, cpu: str = "float32", threads: int = 1, **settings: Any) -> DQN | SAC:
    """A small learner of laser hockey that has played enough to learn."""
    game = settings.pop("game", "laser_hockey" if algo == "sac" else "laser_hockey_discrete")
    pool = Pool(sparring.Rules(game), 8, seed=1, threads=1, lineups=[Lineup((0, "weak"))])
    collect = CollectConfig(games=8, steps=16, cpu=cpu)
    replay = ReplayConfig(**REPLAY, prioritized=bool(settings.pop("prioritized", False)))
    options: dict[str, Any] = {"seed": 1, "threads": threads}
    learner: DQN | SAC
    if algo == "dqn":
        config = DQNConfig(lr=FAST, **settings)
        learner = DQN(pool, collect, config, replay, NetConfig(hidden=(40, 32)), **options)
    else:
        net = NetConfig(hidden=(40, 32), squash=True, std="predicted")
        given = SACConfig(lr=FAST, critic_lr=FAST, temperature_lr=FAST, **settings)
        learner = SAC(pool, collect, given, replay, net, **options)
    learner.experience.rounds = 1
    while not learner.experience.warm:
        learner.iterate(0.0)
    learner.set_hparams(Moment(0, 0.0))
    return learner


def weights_of(learner: DQN | SAC) -> dict[str, Tensor]:
    """Everything that learning changes."""
    groups = {"net": dict(learner.net.state_dict()), **learner.learner_state()}
    return {f"{g}/{n}": t.detach().clone() for g, part in groups.items() for n, t in part.items()}


def steps(learner: DQN | SAC, batches: list[ReplayBatch]) -> list[Any]:
    found = []
    for samples in batches:
        losses, error = learner.step(samples)
        learner.experience.steps += 1
        found.append(({k: float(v) for k, v in losses.items()}, error.clone()))
    return found


def batches_of(learner: DQN | SAC, count: int = 3) -> list[ReplayBatch]:
    return [learner.experience.replay.sample(number) for number in range(count)]


def close(one: dict[str, Tensor], other: dict[str, Tensor], share: float) -> None:
    """Arrays differ by at most this share of their size."""
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert (tensor - other[name]).norm() <= share * other[name].norm() + 1e-6, name


KINDS: list[tuple[str, dict[str, Any]]] = [
    ("dqn", {}),
    ("dqn", {"double": False, "dueling": False, "target_every": 2}),
    ("dqn", {"prioritized": True, "huber": 0.0}),
    ("sac", {}),
    ("sac", {"temperature": 0.2, "max_grad_norm": Schedule.constant(0.1)}),
]


@pytest.mark.parametrize(("algo", "settings"), KINDS)
def test_steps_are_those_of_torch_and_either_goes_on_from_the_other(
    algo: str, settings: dict[str, Any]
) -> None:
    native, plain = make(algo, **settings), make(algo, "torch", **settings)
    assert native.native and not plain.native
    plain.restore(native.snapshot())
    batches = batches_of(native)
    for (mine, error), (theirs, other) in zip(
        steps(native, batches), steps(plain, batches), strict=True
    ):
        assert mine == pytest.approx(theirs, rel=2e-3, abs=1e-5)
        torch.testing.assert_close(error, other, atol=1e-3, rtol=1e-3)
    close(weights_of(native), weights_of(plain), 2e-3)
    native.restore(plain.snapshot())
    for name, tensor in weights_of(plain).items():
        assert torch.equal(weights_of(native)[name], tensor), name
    (mine, _), (theirs, _) = steps(native, batches[:1])[0], steps(plain, batches[:1])[0]
    assert mine == pytest.approx(theirs, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"game": "laser_hockey_discrete"},
        {"game": "laser_hockey_discrete", "prioritized": True, "target_entropy_share": 0.5},
        {"game": "laser_hockey_discrete", "critic_norm": True},
        {"critic_norm": True},
    ],
)
def test_steps_through_native_passes_are_those_of_torch(settings: dict[str, Any]) -> None:
    native, plain = make("sac", **settings), make("sac", "torch", **settings)
    assert native.forward.native and not native.native and not plain.forward.native
    plain.restore(native.snapshot())
    batches = batches_of(native)
    for (mine, error), (theirs, other) in zip(
        steps(native, batches), steps(plain, batches), strict=True
    ):
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-5)
        torch.testing.assert_close(error, other, atol=1e-3, rtol=1e-3)
    close(weights_of(native), weights_of(plain), 2e-3)


BF16 = pytest.param(
    "bf16", 0.02, marks=pytest.mark.skipif(not _native.has_amx(), reason="bfloat16 needs AMX")
)


@pytest.mark.parametrize(("cpu", "share"), [("float32", 1e-4), BF16])
@pytest.mark.parametrize("algo", ["dqn", "sac"])
def test_gradients_are_those_of_torch(algo: str, cpu: str, share: float) -> None:
    native, plain = make(algo, cpu), make(algo, "torch")
    plain.restore(native.snapshot())
    batch = batches_of(native, 1)
    steps(native, batch)
    steps(plain, batch)
    pairs = (
        [(native.optimizer, plain.optimizer)]
        if isinstance(native, DQN) and isinstance(plain, DQN)
        else [(getattr(native, n), getattr(plain, n)) for n in ("actor_adam", "critic_adam")]
    )
    for mine, theirs in pairs:  # a tenth of the first gradient is what Adam remembers of it
        assert (mine.exp_avg - theirs.exp_avg).norm() <= share * theirs.exp_avg.norm()


@pytest.mark.parametrize("algo", ["dqn", "sac"])
def test_any_number_of_threads_gives_the_same_bits(algo: str) -> None:
    found = []
    for threads in (1, 2, 3):
        learner = make(algo, threads=threads)
        steps(learner, batches_of(learner))
        learner.iterate(0.1)  # plays with what was learned
        found.append(weights_of(learner))
    for other in found[1:]:
        for name, tensor in found[0].items():
            assert torch.equal(tensor, other[name]), name


def test_what_is_learned_acts_at_once() -> None:
    for algo in ("dqn", "sac"):
        learner = make(algo)
        obs = batches_of(learner, 1)[0].obs
        with torch.no_grad():
            before = learner.forward(obs)["policy"].clone()
            steps(learner, batches_of(learner, 1))
            after = learner.forward(obs)["policy"].clone()
            torch.testing.assert_close(after, learner.net(obs)["policy"], atol=1e-5, rtol=1e-4)
        assert not torch.allclose(before, after)


def test_kinds_without_native_losses_still_have_native_passes_where_they_can() -> None:
    rules = sparring.Rules("laser_hockey_discrete")
    pool = Pool(rules, 4, seed=1, threads=1, lineups=[Lineup((0, "weak"))])
    collect, replay = CollectConfig(games=4, steps=16), ReplayConfig(**REPLAY)
    net = NetConfig(hidden=(16, 16))
    for config, judges in ((SACConfig(), NativeCritics), (SACConfig(critic_norm=True), None)):
        sac = SAC(pool, collect, config, replay, net, seed=1)
        assert sac.native is None
        assert isinstance(sac.q_nets, NativeCritics) == (judges is NativeCritics)
    torch_one = SAC(pool, CollectConfig(games=4, cpu="torch"), SACConfig(), replay, net, seed=1)
    assert isinstance(torch_one.q_nets, Critics)


def test_wrong_shapes_are_refused() -> None:
    work, one = _native.OffPolicyLosses(1), np.zeros(1, np.float32)
    with pytest.raises(ValueError, match="target has 2 numbers, 1 are needed"):
        work.polyak_update(one, 0.5, np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="head and critic_input have different numbers of rows"):
        work.sample_actions(
            np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32), one[None], one
        )
