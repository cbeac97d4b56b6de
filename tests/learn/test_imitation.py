"""Imitation: native steps equal torch, the network repeats what it saw, the KL term holds."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal

from sparring.config import CollectConfig, ImitationConfig, NetConfig
from sparring.games.rules import Rules
from sparring.learn.demonstrations import Decisions, unpacked
from sparring.learn.fused.heads import FusedKLPenalty
from sparring.learn.fused.rollout import FusedRollout, legal_of
from sparring.learn.head_terms import REFERENCE, KLPenalty, kl_from
from sparring.learn.imitation import WARM_UP, BehaviorCloning, warmup_factor
from sparring.learn.transforms import MIRRORED, mirrors_of
from sparring.nets.distribution import masked_log_probs
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.nets.sampling import LOG_STD
from sparring.schedule import Moment, Schedule
from sparring.store.policies import save_policy
from sparring.training.imitation.making import make_decisions, read_sources, tasks_of
from sparring.training.imitation.positions import Pay


@pytest.fixture(scope="module")
def decisions() -> Decisions:
    rules = Rules("tic_tac_toe")
    tasks = tasks_of(read_sources(rules, ["careful"]), 60, 5)
    found = make_decisions(rules, Pay(tuple(rules.weights(None)), 0.9), tasks)
    found.returns[::7] = np.nan
    return found


@pytest.fixture(scope="module")
def numbers() -> Decisions:
    """The same of a game with continuous actions."""
    rules = Rules("laser_hockey")
    tasks = tasks_of(read_sources(rules, ["strong"]), 12, 5)
    return make_decisions(rules, Pay(tuple(rules.weights(None)), 0.9), tasks)


def cloned(
    decisions: Decisions,
    *,
    game: str = "tic_tac_toe",
    cpu: str = "float32",
    mirror: bool = False,
    net: dict[str, Any] | None = None,
    **settings: Any,
) -> BehaviorCloning:
    rules = Rules(game)
    torch.manual_seed(3)
    config = ImitationConfig(**{"epochs": 4, "minibatch": 32, **settings})
    cloning = BehaviorCloning(
        make_net(rules, NetConfig(hidden=(32, 16), **(net or {}))),
        decisions,
        config,
        CollectConfig(cpu=cpu),
        seed=1,
        transforms=mirrors_of(rules, CollectConfig(mirror=mirror), "cpu", seed=1),
    )
    cloning.course = list(cloning.learn(0.0))  # type: ignore[attr-defined]
    return cloning


@pytest.mark.parametrize("mirror", [False, True])
def test_native_steps_are_those_of_torch(decisions: Decisions, mirror: bool) -> None:
    native = cloned(decisions, mirror=mirror)
    slow = cloned(decisions, cpu="torch", mirror=mirror)
    assert native.native and not native.optimizer
    assert slow.optimizer and not slow.native
    for (name, mine), theirs in zip(
        native.net.state_dict().items(), slow.net.state_dict().values(), strict=True
    ):
        assert torch.allclose(mine, theirs, atol=2e-5), name
    one, other = native.course[-1], slow.course[-1]  # type: ignore[attr-defined]
    assert one.moves == pytest.approx(other.moves, abs=1e-4)
    assert one.values == pytest.approx(other.values, abs=1e-4)


SPREADS = [{}, {"std": "predicted"}, {"std": "predicted", "squash": True}]


@pytest.mark.parametrize("net", SPREADS)
def test_continuous_actions_are_learned_by_native_passes_as_by_torch(
    numbers: Decisions, net: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"game": "laser_hockey", "net": net, "mirror": True}
    options |= {"epochs": 2, "minibatch": 256}
    native, slow = cloned(numbers, **options), cloned(numbers, cpu="torch", **options)
    assert native.forward.native and not slow.forward.native
    for (name, mine), theirs in zip(
        native.net.state_dict().items(), slow.net.state_dict().values(), strict=True
    ):
        assert torch.allclose(mine, theirs, atol=5e-5), name
    one, other = native.course[-1], slow.course[-1]  # type: ignore[attr-defined]
    assert one.moves == pytest.approx(other.moves, abs=1e-3)
    assert one.moves < native.course[0].moves  # type: ignore[attr-defined]
    assert set(one.measured) == {"error", "cross_entropy", "explained_variance"}
    assert one.measured["error"] == pytest.approx(other.measured["error"], abs=1e-4)


@pytest.mark.parametrize("game", ["tic_tac_toe", "laser_hockey"])
def test_a_whole_distribution_is_learned_from_fewer_games(game: str, tmp_path: Path) -> None:
    """Mirrored too; native passes are torch's; the clone is nearer to its policy than by draws."""
    rules = Rules(game)
    torch.manual_seed(0)
    net = make_net(rules, NetConfig(hidden=(16,), std="predicted"))
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    name = str(save_policy(Policy(rules, net), tmp_path / "mine"))
    (task,) = tasks_of(read_sources(rules, [name]), 4 if rules.box else 60, 5, distribution=True)
    found = make_decisions(rules, Pay(tuple(rules.weights(None)), 0.9), [task])
    assert found.target.shape == (len(found), 2 * rules.box or rules.actions)
    obs, mask = torch.from_numpy(found.obs), unpacked(found.legal, rules.actions)
    head = net(obs)["policy"].detach()
    if rules.box:
        assert torch.allclose(torch.from_numpy(found.target), head, atol=1e-5)
    else:
        shares = masked_log_probs(head, torch.from_numpy(mask)).exp()
        assert torch.allclose(torch.from_numpy(found.target).exp().float(), shares, atol=1e-3)
    options: dict[str, Any] = {"game": game, "net": {"std": "predicted"}, "mirror": True}
    options |= {"epochs": 6, "minibatch": 32, "lr": Schedule.constant(3e-3)}
    soft, slow = cloned(found, **options), cloned(found, cpu="torch", **options)
    assert soft.forward.native and not slow.forward.native
    for mine, theirs in zip(soft.net.parameters(), slow.net.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=2e-3)
    draws = replace(found, target=found.target[:, :0])
    apart = []
    options |= {"mirror": False, "epochs": 20}  # its policy has no symmetry
    for clone in (cloned(found, **options), cloned(draws, **options)):
        rows = clone.rows(soft.held_out)
        target = torch.from_numpy(found.target[soft.held_out]).float()
        head = clone.net(rows["obs"])["policy"]
        apart.append(float(kl_from(target, head, box=bool(rules.box)).mean().detach()))
    assert apart[0] < 0.9 * apart[1], apart


def test_by_epochs_it_comes_out_the_same(decisions: Decisions, numbers: Decisions) -> None:
    one, again = cloned(decisions), cloned(decisions)
    assert all(
        torch.equal(mine, theirs)
        for mine, theirs in zip(
            one.net.state_dict().values(), again.net.state_dict().values(), strict=True
        )
    )
    options: dict[str, Any] = {"game": "laser_hockey", "epochs": 1, "minibatch": 256}
    one, again = cloned(numbers, **options), cloned(numbers, **options)
    assert all(
        torch.equal(mine, theirs)
        for mine, theirs in zip(
            one.net.state_dict().values(), again.net.state_dict().values(), strict=True
        )
    )


def test_it_learns_what_was_done_and_what_it_was_worth(decisions: Decisions) -> None:
    cloning = cloned(decisions, epochs=60, lr=Schedule.constant(3e-3))
    course = cloning.course  # type: ignore[attr-defined]
    assert course[-1].progress == 1
    assert course[-1].moves < 0.8 * course[0].moves
    assert course[-1].values < 0.8 * course[0].values
    assert course[-1].measured["accuracy"] > 0.4
    assert cloning.measure()["accuracy"] == course[-1].measured["accuracy"]


def anchored(rows: int = 6, game: str = "tic_tac_toe") -> tuple[KLPenalty, dict[str, torch.Tensor]]:
    rules = Rules(game)
    torch.manual_seed(0)
    term = KLPenalty(make_net(rules, NetConfig(hidden=(16,))), Schedule.line(1.0, 0.0))
    for parameter in term.net.parameters():
        torch.nn.init.normal_(parameter, std=0.1 if rules.box else 1.0)
    rng = np.random.default_rng(0)
    known = {
        "obs": rng.integers(0, 2, (rows, rules.obs_bytes), np.uint8),
        "mask": (rng.random((rows, rules.actions)) < 0.6).astype(np.uint8),
    }
    known["mask"][:, :1] = 1
    learner = SimpleNamespace(rows=lambda: known)
    columns = term.columns(learner, np.arange(rows))
    assert columns[REFERENCE].dtype == (np.float32 if rules.box else np.float16)
    return term, {name: torch.from_numpy(a) for name, a in {**known, **columns}.items()}


def test_the_anchor_is_the_divergence_over_legal_actions() -> None:
    term, rows = anchored()
    logits = torch.randn(6, 9, requires_grad=True)
    mine = masked_log_probs(logits, rows["mask"])
    theirs = masked_log_probs(term.net(rows["obs"])["policy"], rows["mask"])
    for row, found in enumerate(term.each({"policy": logits}, rows)):
        legal = rows["mask"][row] != 0
        slow = (theirs[row, legal].exp() * (theirs[row, legal] - mine[row, legal])).sum()
        assert float(found.detach()) == pytest.approx(float(slow.detach()), rel=5e-3)
    term.each({"policy": logits}, rows).sum().backward()
    assert logits.grad is not None
    assert (logits.grad[rows["mask"] == 0] == 0).all()
    assert logits.grad.isfinite().all()
    assert term.each({"policy": term.net(rows["obs"])["policy"]}, rows).abs().max() < 0.02


def test_the_anchor_of_continuous_actions_is_the_divergence_of_gaussians() -> None:
    term, rows = anchored(game="laser_hockey")
    head = torch.randn(6, 8, requires_grad=True)
    found = term.each({"policy": head}, rows)
    clone = term.net(rows["obs"])["policy"].detach()
    normals = [
        Normal(one[:, :4].detach(), one[:, 4:].detach().clamp(*LOG_STD).exp())
        for one in (clone, head)
    ]
    slow = torch.distributions.kl_divergence(*normals).sum(-1)
    torch.testing.assert_close(found.detach(), slow)
    found.sum().backward()
    assert head.grad is not None and (head.grad.abs().sum(1) > 0).all()
    assert term.each({"policy": clone}, rows).abs().max() < 1e-5
    mirrors = mirrors_of(Rules("laser_hockey"), CollectConfig(mirror=True), "cpu")
    mirrored = KLPenalty(term.net, term.schedule, mirrors)
    image = {**rows, MIRRORED: torch.ones(6, dtype=torch.bool)}
    theirs = mirrors[0].by_head(clone, image[MIRRORED])
    assert mirrored.each({"policy": theirs}, image).abs().max() < 1e-5
    assert mirrored.each({"policy": clone}, image).abs().max() > 1e-2


def test_the_anchor_lets_go_as_its_schedule_says() -> None:
    term, _ = anchored()
    assert term.weight == 1
    term.set_weight(Moment(0, 0.75))
    assert term.weight == pytest.approx(0.25)


@pytest.mark.parametrize("game", ["tic_tac_toe", "laser_hockey"])
def test_on_a_gpu_the_anchor_says_the_same_of_every_place(game: str) -> None:
    """Its arithmetic, on a CPU; tests/cuda has it inside a graph."""
    term, rows = anchored(rows=40, game=game)
    rules = Rules(game)
    rollout = FusedRollout(
        *(rules, 4, 9),
        members=1,
        row_bytes=rules.obs_bytes,
        squash=False,
        device=torch.device("cpu"),
    )
    places = slice(2, 42)
    rollout.obs[places] = rows["obs"]
    if not rules.box:
        rollout.legal[places] = legal_of(rows["mask"], rollout.legal.shape[1])
    anchor = FusedKLPenalty(term, rollout, bf16=False)
    anchor.fill()
    assert torch.equal(anchor.by_place[REFERENCE][places], rows[REFERENCE])


def test_the_first_steps_leave_a_deep_value_head_alive() -> None:
    """Full steps of noise would silence a good part of it at once, and for good."""
    rules = Rules("shogi")
    tasks = tasks_of(read_sources(rules, ["ab2"]), 1, 5)
    positions = make_decisions(rules, Pay(tuple(rules.weights(None)), 0.99), tasks)
    torch.manual_seed(0)
    net = make_net(rules, NetConfig(kind="residual", channels=64, blocks=6))
    cloning = BehaviorCloning(net, positions, ImitationConfig(minibatch=8), CollectConfig())
    for step, (picked, _) in zip(range(4), cloning.minibatches(0), strict=False):
        cloning.step(picked, {}, cloning.hparams(step, 0, 0.0))
    heard = dict[str, torch.Tensor]()
    net.value_hidden.register_forward_hook(lambda _, seen, out: heard.update(seen=seen[0], out=out))
    with torch.no_grad():
        net(torch.from_numpy(positions.obs[::3]))
    assert min(float((one > 0).any(0).float().mean()) for one in heard.values()) > 0.9


def test_the_rate_rises_and_is_all_there_from_half_of_the_way_on() -> None:
    shares = [warmup_factor(step, 0.0) for step in range(WARM_UP)]
    assert shares == sorted(shares) and shares[0] == 1 / WARM_UP and shares[-1] == 1.0
    assert (warmup_factor(0, 0.25), warmup_factor(0, 0.5), warmup_factor(3, 1.0)) == (0.5, 1.0, 1.0)
