"""Gumbel AlphaZero with hidden cards: targets of the slow search, threads, resume, refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from learn.q_helpers import links_of
from reference.worlds import Options, Worlds, mirror_step
from sparring import Pool, Rules
from sparring.capabilities.refusals import games_offering
from sparring.config import CollectConfig, GumbelConfig, HeadsConfig, NetConfig, TrainConfig
from sparring.errors import ConfigError
from sparring.learn.gumbel import Gumbel
from sparring.learn.learner import Overrides
from sparring.learn.searching import FULL, belief_hint, search_settings
from sparring.learn.transforms import IMPROVED
from sparring.nets.searching import config_of
from sparring.proof.exploitability import Tree, exploitability
from sparring.schedule import Moment, Schedule
from sparring.search.budget import Budget
from sparring.search.search import Search
from sparring.training.planning.plan import resolve

SMALL = NetConfig(hidden=(32, 32))
BELIEF = HeadsConfig(hidden=Schedule.constant(1.0))
FEW = {"simulations": 8, "fast_simulations": 1, "full_share": 0.5, "minibatch": 64, "epochs": 1}
SKULL_KING = {"num_players": 2, "rounds": [2]}


def make_gumbel(
    game: str | Rules = "leduc_poker",
    *,
    games: int = 8,
    steps: int = 16,
    threads: int = 1,
    heads: HeadsConfig | None = None,
    **settings: Any,
) -> Gumbel:
    pool = Pool(game, games, seed=1, threads=threads)
    collect = CollectConfig(games=games, steps=steps, cpu="float32")
    config = GumbelConfig(**{**FEW, **settings})
    return Gumbel(pool, collect, config, SMALL, heads=heads, seed=1, threads=threads)


def stirred(learner: Gumbel) -> Gumbel:
    """Give the network probabilities and values that differ from row to row."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in learner.net.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    learner.forward.go_native(1)
    return learner


def steps_of(learner: Gumbel, count: int) -> Iterator[tuple[dict[str, Any], Pool]]:
    """Yield the rows of single steps, each after the pool in which it is decided."""
    for number in range(count):
        before = Pool(learner.rules, learner.pool.num_games, seed=1, threads=1)
        before.reset()
        before.load_state(learner.pool.state())
        learner.collector.collect(number)
        first = learner.collector.transitions.max_pending
        yield {name: array[first:].copy() for name, array in learner.rows().items()}, before
        learner.collector.link(1.0, required=False)
        learner.collector.keep_pending()


CASES = {
    "kuhn_poker": {"eta": 0.5, "alpha": 0.1},
    "leduc_poker": {"eta": "0%:0.1,100%:0.5", "alpha": 0.02, "least": 2, "caution": 0.0},
    "goofspiel": {"horizon": 1, "gamma": 0.9},
    "skull_king": {"gamma_into": (0, 1), "least": 4, "considered": 2},
}


@pytest.mark.parametrize("game", CASES)
def test_targets_are_those_of_the_slow_search(game: str) -> None:
    rules = Rules(game, SKULL_KING if game == "skull_king" else {})
    learner = stirred(make_gumbel(rules, games=4, steps=1, **CASES[game]))
    learner.net.value_scale.fill_(2.5)
    hparams, config = learner.hparams_at(Moment(0, 0.5)), learner.config
    full = Options(
        playouts=8,
        seed=1,
        noise=True,
        considered=config.considered,
        least=config.least,
        horizon=config.horizon,
        eta=hparams.eta / 2.5,
        alpha=hparams.alpha * 2.5,
        caution=config.caution,
        gamma=config.gamma,
        gamma_into=config.gamma_into,
    )
    for rows, before in steps_of(learner, 5):
        for place in np.flatnonzero(before.batch().seat >= 0):
            at, row = divmod(int(place), rules.rows)
            options = full if rows[FULL][place] else replace(full, playouts=1)
            slow = Worlds(before.state_of(at), row, learner.searching.evaluate, options)
            found, improved = slow.run(), rows[IMPROVED][place].astype(np.float32)
            assert rows["action"][place] == found.action
            np.testing.assert_allclose(improved[slow.legal], found.policy, atol=1e-3)
            assert rows["value"][place] == pytest.approx(found.value, abs=1e-5)


def test_a_target_is_one_step_of_mirror_descent_from_the_same_returns() -> None:
    learner = stirred(make_gumbel("kuhn_poker", eta=0.7, alpha=0.2, caution=0.0))
    learner.net.value_scale.fill_(3.0)
    learner.hparams_at(Moment(0, 0.0))
    learner.pool.reset()
    search, policy, batch = learner.searching.search, learner.policy(), learner.pool.batch()
    found = search.from_pool(learner.pool, np.arange(8))
    prior = policy.probabilities(batch.obs, batch.mask)
    for mine in range(8):
        step = mirror_step(prior[mine], found.q[mine], 0.7 / 3, 0.2 * 3)
        np.testing.assert_allclose(found.policy[mine], step, atol=1e-5)


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "skull_king"])
def test_worlds_are_drawn_by_the_head_as_at_play(game: str) -> None:
    rules = Rules(game, SKULL_KING if game == "skull_king" else {})
    learner = stirred(make_gumbel(rules, steps=1, heads=BELIEF, full_share=1.0, eta=0.5))
    learner.hparams_at(Moment(0, 0.0))
    policy, evaluate = learner.policy(), learner.searching.evaluate
    settings = search_settings(learner.config)
    worlds = replace(settings.worlds, eta=0.5, alpha=0.05, unit=config_of(policy).worlds.unit)
    options: dict[str, Any] = {"trees": 8, "seed": 1, "noise": True}
    options["config"] = replace(settings, worlds=worlds)
    played = Search(rules, evaluate, Budget(8), **options, believe=policy.belief)
    blind = Search(rules, evaluate, Budget(8), **options)
    told = 0.0
    for rows, before in steps_of(learner, 6):
        found, other = (search.from_pool(before, np.arange(8)) for search in (played, blind))
        assert (rows["action"] == found.action).all()
        np.testing.assert_allclose(rows[IMPROVED].astype("f4"), found.policy, atol=1e-3)
        np.testing.assert_allclose(rows["value"], found.value, atol=1e-5)
        told += float(np.abs(other.policy - found.policy).max())
    assert told > 0.01


@pytest.mark.few(1)
@pytest.mark.parametrize("game", ["leduc_poker", "goofspiel", "skull_king"])
def test_threads_change_no_bit(game: str) -> None:
    rules = Rules(game, SKULL_KING if game == "skull_king" else {})
    heads = None if game == "goofspiel" else BELIEF
    one, two = (make_gumbel(rules, games=70, threads=n, heads=heads) for n in (1, 2))
    for progress in (0.0, 0.5):
        (mine,), (theirs,) = one.iterate(progress), two.iterate(progress)
        assert mine.stats == theirs.stats
    for name, array in one.rows().items():
        assert np.array_equal(array, two.rows()[name]), name


@pytest.mark.parametrize("heads", [None, BELIEF], ids=["uniform", "belief"])
def test_a_restored_learner_goes_on_to_the_bit(heads: HeadsConfig | None) -> None:
    settings: dict[str, Any] = {"heads": heads, "eta": "0%:1,100%:0.1", "alpha": "0%:0.1,100%:0"}
    one = make_gumbel(**settings)
    one.iterate(0.0)
    one.iterate(0.1)
    fresh = make_gumbel(**settings)
    fresh.restore(one.snapshot())
    for progress in (0.2, 0.3):
        (mine,), (theirs,) = one.iterate(progress), fresh.iterate(progress)
        assert mine.stats == theirs.stats
    for name, tensor in one.net.state_dict().items():
        assert torch.equal(tensor, fresh.net.state_dict()[name])


def test_returns_end_where_the_game_discounts_them_to_nothing() -> None:
    """In Skull King the next bid, which begins another round."""
    rules = Rules("skull_king", {"num_players": 2, "rounds": [2, 3]})
    learner = make_gumbel(rules, games=6, steps=24, gamma_into=(0, 1), td_lambda=1.0)
    learner.hparams_at(Moment(0, 0.0))
    learner.collector.collect(0)
    samples, returns = learner.lambda_returns(learner.hparams_at(Moment(0, 0.0)))
    rows, links = learner.rows(), links_of(learner.collector)
    role = learner.collector.rollout.role.reshape(-1)
    first, wanted = learner.collector.transitions.max_pending, dict[int, float]()
    for place in sorted(links, reverse=True):
        paid, after = links[place]
        goes_on = after is not None and role[after - first] == 1
        wanted[place] = paid + (wanted.get(after, rows["value"][after]) if goes_on else 0.0)
    np.testing.assert_allclose(returns, [wanted[place] for place in samples], atol=1e-4)


def test_phases_change_settings_of_the_search() -> None:
    learner = make_gumbel("kuhn_poker", eta=0.5)
    learner.iterate(0.0)
    more = GumbelConfig(**{**FEW, "simulations": 12, "least": 3, "eta": 0.2})
    learner.apply_overrides(Overrides(settings=more))
    assert learner.iterate(0.5)[0].stats["learning/simulations"] == 12


@pytest.mark.slow
def test_a_short_training_lowers_exploitability() -> None:
    settings: dict[str, Any] = {"epochs": 2, "lr": "0%:2e-3,100%:0", "full_share": 1.0}
    settings |= {"eta": 0.3, "alpha": "0%:0.1,100%:0.02"}
    learner = make_gumbel("kuhn_poker", games=64, heads=BELIEF, **settings)
    tree = Tree(learner.rules)

    def measured() -> float:
        return exploitability(tree, learner.policy().probabilities).exploitability

    before = measured()
    for update in range(60):
        learner.iterate(update / 60)
    assert measured() < 0.5 * before


@pytest.mark.parametrize("game", games_offering("hides"))
def test_every_game_with_hidden_cards_is_learned(game: str) -> None:
    learner = make_gumbel(game, games=2, steps=48, simulations=4, least=2)
    (report,) = learner.iterate(0.0)
    assert report.stats["learning/full_searches"] > 0
    improved, mask = learner.rows()[IMPROVED].astype(np.float64), learner.rows()["mask"]
    searched = improved.sum(1) > 0
    np.testing.assert_allclose(improved[searched].sum(1), 1.0, atol=5e-3)
    assert (improved[searched][mask[searched] == 0] == 0).all()


def config_of_run(**settings: Any) -> TrainConfig:
    usual: dict[str, Any] = {"game": "leduc_poker", "algo": "gumbel", "device": "cpu"}
    return TrainConfig(**{**usual, **settings})


WORLDS_ALONE = r"needs a game whose seats hide something from each other, and connect_four is not o"
REFUSED = [
    ({"game": "own_envs:make_table"}, r"^algo gumbel needs a bundled game, and nim_v0 is"),
    ({"gumbel": GumbelConfig(c_scale=1.0)}, r"^gumbel\.c_scale 1\.0 needs a game without hidden c"),
    ({"game": "connect_four", "gumbel": GumbelConfig(eta=1)}, rf"^gumbel\.eta 1 {WORLDS_ALONE}"),
    (
        {"game": "connect_four", "gumbel": GumbelConfig(least=2)},
        rf"^gumbel\.least 2 {WORLDS_ALONE}",
    ),
    (
        {"game": "connect_four", "phases": ('{"name": "a", "gumbel": {"alpha": 1}}',)},
        rf"^gumbel\.alpha 1 {WORLDS_ALONE}",
    ),
    ({"gumbel": GumbelConfig(gamma_into=(0, 1))}, r"gamma_into has 2 discounts; leduc_poker needs"),
    ({"net": NetConfig(memory="stack")}, r"^net\.memory stack needs a learner of networks with me"),
    ({"population": 2}, "^a population of 2 needs games and networks on one GPU, and this run's"),
]


@pytest.mark.parametrize(
    ("game", "hidden", "says"),
    [
        ("kuhn_poker", 0.0, "; add --heads.hidden 1"),
        ("kuhn_poker", 1.0, ""),
        ("goofspiel", 0.0, "goofspiel takes no belief, .*; --algo ppo has no such bias"),
        ("connect_four", 0.0, ""),
    ],
)
def test_a_training_without_a_belief_says_once_what_to_type(
    game: str, hidden: float, says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    heads = HeadsConfig(hidden=Schedule.constant(hidden))
    hint = belief_hint(Rules(game), heads)
    assert bool(hint) == bool(says) and re.search(says, hint)
    if game == "kuhn_poker":
        sparring.train(
            game,
            algo="gumbel",
            heads=heads,
            updates=1,
            device="cpu",
            collect={"games": 8, "steps": 2},
            eval={"off": True},
            runs=str(tmp_path),
        )
        assert capfd.readouterr().err.count(hint or "hint:") == bool(hint)


@pytest.mark.parametrize(("settings", "says"), REFUSED)
def test_what_does_not_combine_is_refused_in_one_line(settings: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as wrong:
        resolve([config_of_run(**settings)] * settings.get("population", 1))
    assert "; " in str(wrong.value) and "\n" not in str(wrong.value)


@pytest.mark.parametrize("eta", [0, -1, "0%:1,100%:0", float("nan")])
def test_a_step_has_a_size(eta: Any) -> None:
    with pytest.raises(ConfigError, match=r"gumbel\.eta"):
        GumbelConfig(eta=eta)
    with pytest.raises(ValueError, match="eta and alpha are at least 0"):
        make_gumbel().searching.search.native.set_step(-1.0, 0.0)
