"""Gumbel AlphaZero: the loss against float64, which searches give targets, resume, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from learn.q_helpers import RANDOM, links_of, score_against_random, tables
from sparring import Pool, Rules
from sparring.config import CollectConfig, GumbelConfig, HeadsConfig, NetConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.learn.acting import RngKeys
from sparring.learn.gumbel import Gumbel, gumbel_loss
from sparring.learn.learner import Overrides
from sparring.learn.searching import FULL
from sparring.learn.transforms import IMPROVED, MIRRORED
from sparring.phases import SEARCHING
from sparring.schedule import Moment
from sparring.training.planning.plan import resolve

SMALL = NetConfig(hidden=(32, 32))
FEW = {"simulations": 8, "fast_simulations": 2, "minibatch": 64, "epochs": 1}


def make_gumbel(
    pool: Pool,
    *,
    steps: int = 16,
    heads: HeadsConfig | None = None,
    mirror: bool = False,
    cpu: str = "float32",
    **settings: Any,
) -> Gumbel:
    collect = CollectConfig(games=pool.num_games, steps=steps, cpu=cpu, mirror=mirror)
    return Gumbel(pool, collect, GumbelConfig(**{**FEW, **settings}), SMALL, heads=heads, seed=1)


def collected(learner: Gumbel) -> dict[str, np.ndarray]:
    """The columns of a rollout, without places of pending transitions."""
    learner.hparams_at(Moment(0, 0.0))
    learner.collector.collect(0)
    first = learner.collector.transitions.max_pending
    return {name: array[first:] for name, array in learner.rows().items()}


def test_the_loss_is_the_formula_in_float64() -> None:
    rng = np.random.default_rng(3)
    logits, value, returns = rng.normal(size=(5, 4)), rng.normal(size=5), rng.normal(size=5)
    mask = np.array([[1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0], [1, 1, 1, 0]])
    improved = mask * rng.random((5, 4))
    improved = (improved / improved.sum(1, keepdims=True)).astype(np.float16)
    full = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    cross = []
    for row in range(5):
        legal = [a for a in range(4) if mask[row, a]]
        total = np.log(sum(np.exp(logits[row, a]) for a in legal))
        cross.append(-sum(float(improved[row, a]) * (logits[row, a] - total) for a in legal))
    wanted = sum(full * cross) / 3, np.mean((value - returns) ** 2)
    tensors = {"improved": improved, "full": full, "returns": returns}
    total, metrics = gumbel_loss(
        torch.tensor(logits),
        torch.tensor(value),
        mask=torch.tensor(mask),
        **{name: torch.tensor(array) for name, array in tensors.items()},
        value_weight=0.7,
    )
    assert float(metrics["policy_loss"]) == pytest.approx(wanted[0], abs=1e-5)
    assert float(metrics["value_loss"]) == pytest.approx(wanted[1], abs=1e-5)
    assert float(total) == pytest.approx(wanted[0] + 0.7 * wanted[1], abs=1e-5)


def test_only_full_searches_move_the_policy() -> None:
    logits = torch.zeros(3, 4, requires_grad=True)
    full, improved = torch.tensor([0.0, 1.0, 0.0]), torch.eye(4)[:3]
    zeros, mask = torch.zeros(3), torch.ones(3, 4)
    targets = {"improved": improved, "full": full, "returns": zeros}
    loss, _ = gumbel_loss(logits, zeros, mask=mask, **targets, value_weight=1.0)
    loss.backward()
    assert (logits.grad[0] == 0).all() and (logits.grad[2] == 0).all()
    torch.testing.assert_close(logits.grad[1], torch.tensor([0.25, -0.75, 0.25, 0.25]))


def test_a_share_of_decisions_is_searched_fully_whatever_the_batch() -> None:
    actor = make_gumbel(tables(64), full_share=0.25).searching
    rows = np.arange(64)
    drawn = np.array([actor.is_full(RngKeys(2, step, rows)) for step in range(200)])
    assert drawn.mean() == pytest.approx(0.25, abs=0.02)
    assert (actor.is_full(RngKeys(2, 7, rows[10:20])) == drawn[7, 10:20]).all()
    assert (actor.is_full(RngKeys(3, 7, rows)) != drawn[7]).any()
    always = make_gumbel(tables(4), full_share=1.0).searching
    assert always.is_full(RngKeys(0, 0, rows[:4])).all()


def test_every_decision_has_its_number_of_simulations() -> None:
    learner = make_gumbel(tables(16), full_share=0.5)
    asked, searched = [], learner.searching.search.from_pool

    def spy(pool: Pool, rows: Any, simulations: Any) -> Any:
        asked.append(simulations.copy())
        return searched(pool, rows, simulations)

    learner.searching.search.from_pool = spy  # type: ignore[method-assign]
    columns = collected(learner)
    full = columns[FULL].reshape(16, 16)
    assert (np.array(asked) == np.where(full == 1, 8, 2)).all()
    learner.hparams_at(Moment(0, 0.0))


def test_targets_are_policies_over_legal_actions() -> None:
    columns = collected(make_gumbel(tables(16)))
    improved, mask = columns[IMPROVED].astype(np.float64), columns["mask"]
    np.testing.assert_allclose(improved.sum(1), 1.0, atol=5e-3)
    assert (improved[mask == 0] == 0).all()
    assert (np.take_along_axis(mask, columns["action"][:, None], 1) == 1).all()


def test_returns_mix_outcomes_with_the_values_of_roots() -> None:
    learner = make_gumbel(tables(6), steps=24, gamma=0.9, td_lambda=0.7)
    collected(learner)
    samples, returns = learner.lambda_returns(learner.hparams_at(Moment(0, 0.0)))
    value, wanted = learner.rows()["value"], {}
    links = links_of(learner.collector)
    for place in sorted(links, reverse=True):
        paid, after = links[place]
        wanted[place] = paid
        if after is not None:
            follows = wanted.get(after, value[after])
            wanted[place] += 0.9 * (0.3 * value[after] + 0.7 * follows)
    assert len(samples) > 80
    np.testing.assert_allclose(returns, [wanted[place] for place in samples], atol=1e-5)


def test_mirror_images_have_mirrored_targets() -> None:
    learner = make_gumbel(tables(8), mirror=True)
    (mirror,) = learner.playing.transforms.in_place
    columns = collected(learner)
    names = ("obs", "mask", "action", IMPROVED)
    rows = {name: torch.from_numpy(columns[name].copy()) for name in names}
    rows[MIRRORED] = torch.ones(len(rows["obs"]), dtype=torch.bool)
    image = dict(rows)
    mirror.apply(image)
    best, taken = (one[IMPROVED].gather(1, one["action"].long()[:, None]) for one in (rows, image))
    assert torch.equal(best, taken)
    assert (image[IMPROVED][image["mask"] == 0] == 0).all()
    assert not torch.equal(image[IMPROVED], rows[IMPROVED])


@pytest.mark.parametrize("heads", [None, HeadsConfig(wdl=0.5)], ids=["plain", "wdl"])
def test_a_restored_learner_goes_on_to_the_bit(heads: HeadsConfig | None) -> None:
    one, other = (make_gumbel(tables(8, RANDOM, seed=s), heads=heads) for s in (1, 1))
    other.iterate(0.0)
    one.iterate(0.0)
    one.iterate(0.1)
    fresh = make_gumbel(tables(8, RANDOM), heads=heads)
    fresh.restore(one.snapshot())
    for progress in (0.2, 0.3):
        (mine,), (theirs,) = one.iterate(progress), fresh.iterate(progress)
        assert mine.stats == theirs.stats
    for name, tensor in one.net.state_dict().items():
        assert torch.equal(tensor, fresh.net.state_dict()[name])


@pytest.mark.parametrize("heads", [None, HeadsConfig(wdl=0.5)], ids=["plain", "wdl"])
def test_native_passes_learn_what_torch_learns(heads: HeadsConfig | None) -> None:
    native, by_torch = (
        make_gumbel(tables(8), heads=heads, cpu=cpu) for cpu in ("float32", "torch")
    )
    for learner in (native, by_torch):
        learner.hparams_at(Moment(0, 0.0))
        learner.collector.collect(0)
    assert native.forward.native and not by_torch.forward.native
    for name, array in native.rows().items():
        by_torch.rows()[name][:] = array  # networks round differently, and searches may follow
    for learner in (native, by_torch):
        learner.update(learner.hparams_at(Moment(0, 0.0)))
    for name, tensor in native.net.state_dict().items():
        torch.testing.assert_close(tensor, by_torch.net.state_dict()[name], atol=2e-5, rtol=1e-4)


def test_rehearsing_changes_nothing() -> None:
    one, other = (make_gumbel(tables(8)) for _ in range(2))
    for learner in (one, other):
        learner.iterate(0.0)
    other.dry_run()
    (mine,), (theirs,) = one.iterate(0.5), other.iterate(0.5)
    assert mine.stats == theirs.stats


def test_stages_of_the_searches_are_timed_apart_from_other_inference() -> None:
    learner = make_gumbel(tables(8), full_share=1.0)
    (report,) = learner.iterate(0.0)
    assert {*SEARCHING, "inference", "update"} <= learner.phases.take().keys()
    made, decisions = report.stats["learning/simulated"], report.stats["learning/decisions"]
    assert made == 8 * decisions
    assert report.stats["learning/evaluations"] <= made + decisions  # ends are not evaluated
    assert learner.iterate(0.0)[0].stats["learning/simulated"] == made


def test_simulations_follow_the_schedule_and_phases_may_change_them() -> None:
    learner = make_gumbel(tables(4), simulations="0%:2,50%:8 stepped", fast_simulations=4)
    stats = [learner.iterate(progress)[0].stats for progress in (0.0, 0.6)]
    assert [one["learning/simulations"] for one in stats] == [2, 8]
    more = GumbelConfig(**{**FEW, "simulations": 12})
    learner.apply_overrides(Overrides(settings=more))
    assert learner.iterate(0.7)[0].stats["learning/simulations"] == 12


REFUSED = [
    ({"game": "own_envs:make_table"}, r"^algo gumbel needs a bundled game, and nim_v0 is not one"),
    ({"net": NetConfig(memory="stack")}, r"^net\.memory stack needs a learner of networks with me"),
    ({"population": 2}, "^a population of 2 needs games and networks on one GPU, and this run's"),
    ({"collect": CollectConfig(groups=2)}, r"^collect\.groups 2 needs a learner that acts while"),
    ({"replicas": 2}, r"^replicas 2 needs a learner that sums its gradients with those of others"),
]


@pytest.mark.parametrize(("settings", "says"), REFUSED)
def test_what_does_not_combine_is_refused_in_one_line(settings: Any, says: str) -> None:
    config = TrainConfig(**{"game": "tic_tac_toe", "algo": "gumbel", "device": "cpu", **settings})
    with pytest.raises(ConfigError, match=says) as wrong:
        resolve([config] * settings.get("population", 1))
    assert "; " in str(wrong.value) and "\n" not in str(wrong.value)
    assert "population" in settings or "use --algo ppo" in str(wrong.value)


def train(game: str, algo: str, runs: Path, **settings: Any) -> Any:
    """A short run on one thread."""
    usual: dict[str, Any] = {"collect": {"games": 8, "steps": 8, "cpu": "float32"}}
    usual |= {"net": {"hidden": (16, 16)}}
    usual |= {"average": 0.0, "heads": {"hidden": 1.0} if Rules(game).hides else {}}
    usual |= {"device": "cpu", "threads": 1, "quiet": True, "eval": {"off": True}}
    if algo == "gumbel":
        usual["gumbel"] = {"simulations": 4}
    return sparring.train(game, algo=algo, runs=str(runs), **{**usual, **settings})


@pytest.mark.parametrize(
    "game", ["leduc_poker", pytest.param("tic_tac_toe", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("first", "then"), [("ppo", "gumbel"), ("gumbel", "ppo")])
def test_a_run_starts_from_the_weights_of_the_other_algorithm(
    game: str, first: str, then: str, tmp_path: Path
) -> None:
    begun = train(game, first, tmp_path, updates=2, name="first")
    rate = {then: {"lr": 0.0}}
    gone_on = train(
        game, then, tmp_path, updates=1, name="then", init=str(tmp_path / "first"), **rate
    )
    for name, tensor in begun.policy.net.state_dict().items():
        if not name.startswith("value"):  # whose unit follows the returns
            assert torch.equal(tensor, gone_on.policy.net.state_dict()[name]), name


def test_it_learns_to_beat_random_play() -> None:
    pool = tables(64, ((0, 0), *RANDOM))
    learner = make_gumbel(pool, lr=5e-3, minibatch=64, epochs=4, simulations=16, full_share=0.5)
    before = score_against_random(learner.policy())
    for update in range(40):
        learner.iterate(update / 40)
    assert score_against_random(learner.policy()) > max(0.85, before)
