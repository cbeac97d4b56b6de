"""How an agent plays is told wherever a run is looked at: reports, panel, charts, evaluations."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from sparring import Lineup, Pool, Rules
from sparring.cli import main
from sparring.config import CollectConfig, DQNConfig, NetConfig, PPOConfig, ReplayConfig
from sparring.draw.charts.curves import make_charts, make_common_charts, statistic_names
from sparring.games.stats import PREFIX, stat_metrics
from sparring.league.arena import play_match
from sparring.learn.dqn import DQN
from sparring.learn.ppo import PPO
from sparring.training.display import draw
from sparring.training.display.panel import Machine
from sparring.training.status import Status, played_of

COLLECT = CollectConfig(games=32, steps=40)
SMALL = NetConfig(hidden=(16,))


def pool_of(game: str = "skull_king") -> Pool:
    rules = Rules(game)
    return Pool(rules, COLLECT.games, seed=1, threads=1, lineups=[Lineup((0,) * rules.seats)])


def told(stats: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in stats.items() if name.startswith(PREFIX)}


def test_a_learner_reports_what_happened_in_its_rollout() -> None:
    ppo = PPO(pool_of(), COLLECT, PPOConfig(epochs=1, minibatch=256), SMALL, seed=1)
    seen = []
    for _ in range(3):
        (report,) = ppo.iterate(0.0)
        counts = ppo.pool.counts()
        assert told(report.stats) == stat_metrics(ppo.rules.stats, counts.tolist())
        seen.append(int(counts[::5].sum()))
    assert 0 < report.stats["stats/bid_kept"] < 1
    assert max(seen) <= 4 * COLLECT.games * COLLECT.steps / 8  # of one rollout, not of all


def test_a_learner_from_replay_reports_all_rollouts_of_an_update() -> None:
    collect = CollectConfig(games=32, steps=10)
    replay = ReplayConfig(capacity=4096, warmup=10**6)
    pool = pool_of()
    dqn = DQN(pool, collect, DQNConfig(), replay, SMALL, seed=1)
    (report,) = dqn.iterate(0.0)
    assert told(report.stats) == stat_metrics(pool.rules.stats, pool.counts().tolist())


def test_a_game_without_counters_reports_nothing() -> None:
    ppo = PPO(pool_of("tic_tac_toe"), COLLECT, PPOConfig(minibatch=256), SMALL, seed=1)
    assert told(ppo.iterate(0.0)[0].stats) == {}


def test_the_panel_has_a_few() -> None:
    first = {"stats/bid_kept": 0.5, "stats/tricks_over": 0.25, "charts/score": 3.0}
    shown = played_of(first, {})
    assert shown == {"bid_kept": 0.5, "tricks_over": 0.25}
    later = played_of({"stats/bid_kept": 0.75, "stats/tricks_over": 0.5, "stats/a": 1.0}, shown)
    assert later == {"bid_kept": 0.75, "tricks_over": 0.5, "a": 1.0}
    assert played_of({"charts/score": 3.0}, later) == later
    out = io.StringIO()
    status = Status("skull_king", Path("runs/a"), update=1, stats=later, losses={"entropy": 1.0})
    Console(file=out, width=100).print(draw([status], Machine(), width=100))
    assert "bid kept 0.75   tricks over 0.5   a 1" in out.getvalue()


def test_charts_show_stages_together_and_leave_single_rounds_out() -> None:
    names = [stat.name for stat in Rules("skull_king").stats]
    curve = (np.arange(3), np.arange(3.0), np.array([0.1, 0.2, 0.3]))
    run = {PREFIX + name: curve for name in names}
    charts = make_charts(run)
    assert [chart.title for chart in charts] == [
        "Game statistics: bid kept",
        "Game statistics: tricks over",
        "Game statistics: tricks under",
        "Game statistics: round score",
    ]
    lines = [line.name for line in charts[0].series]
    assert lines == ["whole game", "early", "mid", "late"]
    both = make_common_charts({"a": run, "b": run})
    assert [len(chart.series) for chart in both] == [2] * 4
    assert statistic_names(["charts/score", "losses/value_loss"]) == {}


def test_an_evaluation_counts_its_games_and_no_others() -> None:
    """Tables that have finished their share play on while others are still busy."""
    result = play_match(
        Rules("laser_hockey"), ["strong", "weak"], games=100, parallel=24, seed=2, threads=1
    )
    counts = dict(zip(Rules("laser_hockey").counters, result.record.counts.sum(0), strict=True))
    assert counts["games"] == result.games == 100
    assert counts["goals"] == result.first.wins
    assert counts["conceded"] == result.first.losses
    assert result.stats["goals"] == result.first.wins / 100


def test_an_evaluation_tells_how_the_challenger_plays(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", "captain", "--game", "skull_king", "--against", "random,rule_easy"]
    quick = ["--games", "64", "--threads", "1"]
    assert main([*words, *quick, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    for found in results.values():
        assert 0 < found["stats"]["bid_kept_late"] < found["stats"]["bid_kept_early"] < 1
        assert "bid_kept_round_10" in found["stats"]
    assert main([*words, *quick]) == 0
    text = capsys.readouterr().out
    assert "bid_kept_early" in text
    assert "bid_kept_round" not in text


def test_the_list_of_games_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games", "kuhhandel"]) == 0
    assert "offers of a trade that are worth nothing" in capsys.readouterr().out
    assert main(["games", "kuhhandel", "--json"]) == 0
    shown = {stat["name"]: stat for stat in json.loads(capsys.readouterr().out)["statistics"]}
    assert shown["bluffs"]["above"] == ["bluffs"]
    assert shown["price_paid"]["below"] == ["lots won", "lots kept"]
