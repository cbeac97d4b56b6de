"""Learning from records with the network on a GPU: the same clone, the start of PPO, the anchor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from learn.fused_helpers import NETS, game_of, learner, play
from sparring.config import CollectConfig, ImitationConfig, NetConfig, TrainConfig
from sparring.games.rules import Rules
from sparring.learn.fused.heads import FusedKLPenalty
from sparring.learn.head_terms import REFERENCE, KLPenalty
from sparring.learn.imitation import BehaviorCloning
from sparring.nets.make import make_net
from sparring.schedule import Schedule
from sparring.store.policies import load_policy
from sparring.training.imitation.making import make_decisions, read_sources, tasks_of
from sparring.training.imitation.positions import Pay
from sparring.training.planning.settings import merged, with_preset
from sparring.training.records.metrics import read
from sparring.training.train import resume, train_population, train_with

QUICK: dict[str, Any] = {
    "device": "cuda",
    "updates": 4,
    "net": {"kind": "mlp", "hidden": (64, 32)},
    "collect": {"games": 64, "steps": 16},
    "ppo": {"minibatch": 512, "epochs": 1, "lr": 1e-3},
    "eval": {"off": True},
    "imitate": ("captain",),
    "imitation": {"games": 40, "epochs": 3, "minibatch": 256, "kl_weight": 0.5},
    "tensorboard": False,
    "checkpoint_every_s": 0.0,
    "keep": 5,
}


def config(runs: Path, **changes: Any) -> TrainConfig:
    base = merged(with_preset("skull_king", gpu=True), {**QUICK, "runs": str(runs)}, "test")
    changed: TrainConfig = merged(base, changes, "test")
    return changed


@pytest.mark.parametrize(
    ("game", "bot", "net"),
    [
        ("skull_king", "captain", NetConfig(hidden=(32, 16))),
        ("skull_king", "captain", NetConfig(hidden=(24,), norm=True)),
        ("laser_hockey", "strong", NetConfig(hidden=(32, 16))),
        ("laser_hockey", "strong", NetConfig(hidden=(32,), std="predicted", squash=True)),
    ],
)
def test_a_clone_on_the_gpu_is_that_of_the_cpu(game: str, bot: str, net: NetConfig) -> None:
    rules = Rules(game)
    tasks = tasks_of(read_sources(rules, [bot]), 20, 5)
    decisions = make_decisions(rules, Pay(tuple(rules.weights(None)), 0.9), tasks)
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(3)
        cloning = BehaviorCloning(
            make_net(rules, net),
            decisions,
            ImitationConfig(epochs=3, minibatch=256),
            CollectConfig(cpu="torch", bf16=False),
            seed=1,
            device=device,
        )
        found.append((list(cloning.learn(0.0))[-1], cloning.net))
    (one, _), (other, _) = found
    assert one.moves == pytest.approx(other.moves, rel=1e-3, abs=1e-3)
    assert one.values == pytest.approx(other.values, rel=1e-3)
    mine, theirs = (found.measured["cross_entropy"] for found in (one, other))
    assert mine == pytest.approx(theirs, rel=1e-3, abs=1e-3)
    for mine, theirs in zip(found[0][1].parameters(), found[1][1].parameters(), strict=True):
        assert torch.allclose(mine, theirs.cpu(), atol=2e-3)


@pytest.mark.parametrize("net", ["shared", "residual", "silu, odd widths"])
@pytest.mark.parametrize("graphs", [False, True])
def test_the_anchor_holds_a_policy_inside_graphs(net: str, graphs: bool) -> None:
    ppo = learner(net=NETS[net], game=game_of(net), graphs=graphs)
    torch.manual_seed(1)
    frozen = make_net(ppo.rules, NETS[net])
    frozen.load_state_dict(ppo.snapshot().tensors["net"])
    term = KLPenalty(frozen, Schedule.constant(1.0))
    anchor = FusedKLPenalty(term, ppo.rollout, bf16=False)
    ppo.put_terms([*ppo.terms, anchor])
    first = ppo.iterate(0.0)[0].stats["losses/reference_kl"]
    assert 0 <= first < 0.1  # it begins where the anchor is
    for _ in range(3):
        moved = ppo.iterate(0.0)[0].stats["losses/reference_kl"]
    assert 0 <= moved < 1.0
    play(ppo)
    anchor.fill()
    decided = torch.nonzero(ppo.rollout.end).squeeze(1)[:64].cpu()
    obs = ppo.rollout.obs.cpu().numpy()[decided]
    legal = torch.isfinite(anchor.by_place[REFERENCE].cpu()[decided]).to(torch.uint8).numpy()
    slow = term.look(obs, legal)
    assert torch.allclose(
        anchor.by_place[REFERENCE].cpu()[decided].nan_to_num(neginf=0.0).float(),
        slow.nan_to_num(neginf=0.0).float(),
        atol=2e-2,
    )


def test_a_run_is_taught_and_resumed(tmp_path: Path) -> None:
    run = train_with(config(tmp_path), quiet=True).run
    events = json.loads((run / "events.json").read_text())
    facts = next(event for event in events if event["event"] == "imitated")
    assert facts["accuracy"] > 0
    curves = read(run)
    assert curves["losses/reference_kl"][2][0] < 0.2
    again = resume(run, number=2, quiet=True).run
    one, other = (load_policy(where / "checkpoints" / "00000004") for where in (run, again))
    for mine, theirs in zip(one.net.parameters(), other.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_run_of_continuous_actions_begins_at_its_anchor(tmp_path: Path) -> None:
    hockey = {**QUICK, "imitate": ("strong",), "runs": str(tmp_path)}
    wanted = merged(with_preset("laser_hockey", gpu=True), hockey, "test")
    curves = read(train_with(wanted, quiet=True).run)
    assert curves["losses/reference_kl"][2][0] < 0.2


def test_a_population_is_taught_once(tmp_path: Path) -> None:
    agents = train_population(config(tmp_path, population=2, updates=1), quiet=True)
    clones = [load_policy(agent.run / "imitated") for agent in agents]
    for mine, theirs in zip(clones[0].net.parameters(), clones[1].net.parameters(), strict=True):
        assert torch.equal(mine, theirs)
