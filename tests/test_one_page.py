"""The example that has PPO on one page: it links decisions as the package does, learns, repeats."""

from __future__ import annotations

import ast
import csv
import importlib
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sparring import Lineup, Pool
from sparring.learn.transitions import Transitions

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PAGE = EXAMPLES / "10_ppo_on_one_page.py"
TABLES = [Lineup((0, 0, 0, 0)), Lineup((0, "captain", "captain", "captain"))]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module(PAGE.stem)


def curve(page: Any, file: Path, *, seed: int = 1, updates: int = 2, **changes: Any) -> Any:
    """Train a small one; return the lines of its curve and its weights."""
    small = {"games": 16, "steps": 24, "minibatch": 128, "hidden": 32, **changes}
    given = Namespace(
        minutes=1.0, updates=updates, seed=seed, threads=1, points=updates, games=0, csv=str(file)
    )
    agent = page.train(given, page.Settings(**small))
    with file.open() as lines:
        rows = [{name: float(v) for name, v in row.items() if v} for row in csv.DictReader(lines)]
    return [{k: v for k, v in row.items() if k != "minutes"} for row in rows], agent.state_dict()


def test_is_a_page_that_needs_the_pool_alone() -> None:
    text = PAGE.read_text()
    assert len(text.splitlines()) <= 315
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports if node.module == "sparring" for alias in node.names}
    assert names == {"LEARNER", "Lineup", "Pool"}
    assert not [node.module for node in imports if str(node.module).startswith("sparring.")]
    assert "import sparring" not in text


@pytest.mark.parametrize("gae_lambda", [0.0, 0.7, 1.0])
def test_advantages_are_those_of_the_package(page: Any, gae_lambda: float) -> None:
    games, steps = 32, 90
    pool = Pool(
        "skull_king", games, seed=5, threads=1, lineups=TABLES, config={"rounds": [1, 2, 3]}
    )
    rules = pool.rules
    pool.reset()
    agent = page.Agent(len(rules.features), rules.actions, 16)
    with torch.no_grad():
        agent.value.weight.mul_(50)
    rollout = page.Rollout(pool, steps)
    page.play(pool, agent, rollout, torch.Generator().manual_seed(1))
    assert rollout.ended.sum() > games and len(set(rollout.role.flatten().tolist())) == 2
    advantage, complete = page.advantages(rollout, gae_lambda)

    transitions = Transitions(rules, games, steps)
    transitions.link(
        gamma=1.0,
        gamma_into=(0, 1),
        seat=rollout.seat.astype(np.int8),
        role=rollout.role.astype(np.int8),
        policy=np.where(rollout.asked, 0, -1).astype(np.int16),
        reward=np.repeat(rollout.reward[..., None], len(rules.roles), axis=3),
        terminated=rollout.ended,
        truncated=np.zeros_like(rollout.ended),
    )
    carried = transitions.max_pending
    value = np.zeros(transitions.places, np.float32)
    value[carried:] = rollout.value.numpy().flatten()
    expected = transitions.advantages(value, gae_lambda)
    samples = transitions.samples()
    assert (np.flatnonzero(complete) == samples - carried).all()
    np.testing.assert_allclose(
        advantage.flatten()[complete.flatten()], expected[samples], atol=1e-5
    )


def test_repeats_by_seed_and_differs_by_seed(page: Any, tmp_path: Path) -> None:
    first, weights = curve(page, tmp_path / "a.csv")
    again, same = curve(page, tmp_path / "b.csv")
    other, _ = curve(page, tmp_path / "c.csv", seed=2)
    assert first == again and first != other
    assert all(torch.equal(weights[name], same[name]) for name in weights)


def test_its_losses_are_finite_and_values_get_better(page: Any, tmp_path: Path) -> None:
    rows, weights = curve(page, tmp_path / "a.csv", updates=12, games=64, target_kl=1.0)
    assert [row["update"] for row in rows] == list(range(1, 13))
    assert rows[-1]["decisions"] == 12 * 64 * 24
    assert all(np.isfinite(list(row.values())).all() for row in rows)
    assert all(torch.isfinite(value).all() for value in weights.values())
    losses = [row["value_loss"] for row in rows]
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])
    assert rows[-1]["entropy"] < rows[0]["entropy"]


def test_counts_wins_of_all_tables(page: Any) -> None:
    def first_legal(_obs: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return mask.argmax(axis=1)

    won = page.wins(first_legal, games=128)
    assert 0 <= won < 0.2
    assert won == page.wins(first_legal, games=128)
