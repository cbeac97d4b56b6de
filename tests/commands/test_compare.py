"""`sparring compare`: groups, known answers, honest words, and refusals."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from commands.run_helpers import make_run, write_results
from sparring.cli import main
from sparring.commands.shared.comparing import print_comparison
from sparring.config import NetConfig
from sparring.errors import ConfigError, SparringWarning
from sparring.games.rules import Rules
from sparring.league.arena import share_of_wins
from sparring.league.statistics import student_factor
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store import checkpoint
from sparring.training.records.comparison import compare
from sparring.training.records.comparison_report import GroupMatch, described, disagreements, notes
from sparring.training.records.exploited import Exploited, add_exploited, read_exploited
from sparring.training.records.overview import Overview

LRS = {"slow": 1e-4, "fast": 1e-2}
WINS = {"slow": (0.2, 0.3, 0.4), "fast": (0.5, 0.7, 0.6)}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two learning rates with three seeds each; slow runs go on for twice as long."""
    root = tmp_path_factory.mktemp("model") / "runs"
    for kind, lr in LRS.items():
        updates = 20 if kind == "slow" else 10
        for seed, win in enumerate(WINS[kind]):
            wins = {5: 0.1, 10: win / 2 if kind == "slow" else win}
            wins |= {20: win} if kind == "slow" else {}
            settings: dict[str, Any] = {"ppo": {"lr": lr}, "seed": seed}
            name = f"{kind}-{seed}"
            make_run(root, name, wins, updates=updates, **settings)
            save_net(root / name, seed)
    return root


def save_net(path: Path, seed: int) -> None:
    torch.manual_seed(seed)
    rules = Rules("tic_tac_toe")
    net = make_net(rules, NetConfig(hidden=(8,)))
    meta = {"update": 10, "game": rules.name, "rules_version": rules.rules_version}
    meta |= {"game_config": rules.config, **net.describe()}
    tensors = {"net": dict(net.state_dict())}
    checkpoint.save(path / "checkpoints", 10, tensors=tensors, blobs={}, meta=meta)


def paths(root: Path, *kinds: str) -> list[Path]:
    return [path for kind in kinds for path in sorted(root.glob(f"{kind}-*"))]


def test_runs_are_grouped_by_what_differs_but_the_seed(model: Path) -> None:
    found = compare(paths(model, "slow", "fast"))
    # How long a run is to be is a setting too: schedules depend on it.
    assert found.by == ("updates", "ppo.lr")
    assert [(g.name, g.label) for g in found.groups] == [
        ("A", "updates=20, ppo.lr=0.0001"),
        ("B", "updates=10, ppo.lr=0.01"),
    ]
    assert [[e.seed for e in g.entries] for g in found.groups] == [[0, 1, 2], [0, 1, 2]]
    by_seed = compare(paths(model, "slow", "fast"), "seed")
    assert [g.label for g in by_seed.groups] == ["seed=0", "seed=1", "seed=2"]
    assert "within A runs also differ in updates and ppo.lr" in notes(by_seed)
    by_run = compare(paths(model, "fast"), "run")
    assert [g.label for g in by_run.groups] == ["fast-0", "fast-1", "fast-2"]
    same = compare(paths(model, "fast"))
    assert len(same.groups) == 1
    assert "the runs differ in nothing but the seed: one group" in notes(same)


def test_runs_that_are_not_asked_for_forced_moves_play_the_same_game(tmp_path: Path) -> None:
    """`skip_forced` says who is asked, not what is played, so that it can be compared."""
    for name, flags in {"asked": ["skip_forced=0"], "skipped": ["skip_forced=1"]}.items():
        make_run(tmp_path, name, {5: 0.1}, set=flags, game="skull_king")
    make_run(tmp_path, "other", {5: 0.1}, set=["num_players=5"], game="skull_king")
    assert labels(tmp_path, "asked", "skipped") == ["set.skip_forced=0", "set.skip_forced=1"]
    found = compare([tmp_path / "asked", tmp_path / "skipped"])
    assert any("decisions are those that were asked for" in line for line in notes(found))
    with pytest.raises(ConfigError, match="different rules: num_players"):
        compare([tmp_path / "asked", tmp_path / "other"])


def test_phases_are_told_by_their_names_and_by_what_differs_in_them(tmp_path: Path) -> None:
    late = {"name": "late", "decisions": 1000, "set": {"skip_forced": 1}}
    more = [late | {"decisions": 2000, "rewards": {"outcome": 0.5}}, {"name": "whole game"}]
    make_run(tmp_path, "plain", {5: 0.1})
    make_run(tmp_path, "short", {5: 0.1}, phases=[late, {"name": "whole game"}], curriculum="a")
    make_run(tmp_path, "long", {5: 0.1}, phases=more, curriculum="b")
    named = "phases=late / whole game"
    assert labels(tmp_path, "plain", "short") == ["phases=none", named]
    assert labels(tmp_path, "short", "long") == [
        "phases.late.decisions=1000, phases.late.rewards.outcome=as the run",
        "phases.late.decisions=2000, phases.late.rewards.outcome=0.5",
    ]
    assert labels(tmp_path, "short", "long", by="phases") == [named, named]


def test_roles_are_told_by_what_differs_in_them(tmp_path: Path) -> None:
    on = {"on": True}
    some = ["manager.ppo.epochs=16", "worker.net.hidden=64,64"]
    make_run(tmp_path, "plain", {5: 0.1})
    make_run(tmp_path, "some", {5: 0.1}, hierarchy=on, roles=[*some, "manager.ppo.lr=1e-3"])
    make_run(tmp_path, "rate", {5: 0.1}, hierarchy=on, roles=[*some, "manager.ppo.lr=0.002"])
    make_run(tmp_path, "less", {5: 0.1}, hierarchy=on, roles=some[:1], ppo={"lr": 0.001})
    assert labels(tmp_path, "plain", "some") == ["hierarchy.on=False", "hierarchy.on=True"]
    assert labels(tmp_path, "some", "rate") == [
        "roles.manager.ppo.lr=0.001",
        "roles.manager.ppo.lr=0.002",
    ]
    by = "roles.worker.net.hidden,roles.manager.ppo.lr"
    assert labels(tmp_path, "some", "less", by=by) == [
        "roles.worker.net.hidden=64,64, roles.manager.ppo.lr=0.001",
        "roles.worker.net.hidden=256,256, roles.manager.ppo.lr=0.001",
    ]


def test_long_values_are_shortened_to_where_they_differ(tmp_path: Path) -> None:
    steps = ",".join(f"{at}e3:{at}" for at in range(40))
    make_run(tmp_path, "one", {5: 0.1}, opponents=[f"self={steps}", "careful=1"])
    make_run(tmp_path, "two", {5: 0.1}, opponents=[f"self={steps}", "careful=2"])
    assert labels(tmp_path, "one", "two") == ["opponents=…careful=1", "opponents=…careful=2"]


def labels(root: Path, *names: str, by: str = "") -> list[str]:
    return [group.label for group in compare([root / name for name in names], by).groups]


def test_numbers_have_known_answers(model: Path) -> None:
    found = compare(paths(model, "slow", "fast"), "ppo.lr")
    slow, fast = found.groups
    assert found.strengths(fast) == [0.5, 0.7, 0.6]
    strength = found.strength(fast)
    assert strength.value == pytest.approx(0.6)
    half = 0.1 * student_factor(3)  # the bootstrap's own ends are 0.5 and 0.7
    assert (strength.low, strength.high) == (pytest.approx(0.6 - half), pytest.approx(0.6 + half))
    ((one, two, chance),) = found.pairs()
    assert (one, two, chance.value) == (slow, fast, 0.0)
    assert chance.low == 0.0 and chance.high is not None and chance.high > 0.5
    assert found.best(fast).run.name == "fast-1"
    # Slow runs had 20 minutes and 20,000 decisions, fast ones 10 of each.
    assert found.common("minutes") == 10.0
    assert found.common("decisions") == 10_000.0
    at = found.strength_at_common(slow, "minutes")
    assert at is not None
    assert at.value == pytest.approx(0.15)
    band = fast.over("decisions")
    assert (band.x[0], band.x[-1]) == (5000.0, 10_000.0)
    assert band.values[[0, -1]] == pytest.approx([0.1, 0.6])
    again = compare(paths(model, "slow", "fast"), "ppo.lr")
    assert [again.strength(group) for group in again.groups] == [
        found.strength(group) for group in found.groups
    ]


def test_what_was_measured_at_the_end_counts_if_all_runs_have_it(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, f"r{n}", {5: 0.2, 10: 0.3}, seed=n) for n in range(2)]
    write_results(runs[0], careful=0.5, random=0.7, idle=1.0)
    assert compare(runs).strengths(compare(runs).groups[0]) == [0.3, 0.3]
    write_results(runs[1], careful=0.4, random=0.6, idle=0.0)
    found = compare(runs)
    assert found.strengths(found.groups[0]) == [0.5, 0.4]
    told = "strength: win share against careful, best checkpoint, measured after training"
    assert notes(found)[0] == told


def test_runs_that_were_measured_at_their_end_alone_are_compared_without_curves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_run(tmp_path, f"r{n}", {}, seed=n) for n in range(2)]
    write_results(runs[0], careful=0.5, random=0.7)
    with pytest.raises(ConfigError, match="r1 has no evaluation yet"):
        compare(runs)
    write_results(runs[1], careful=0.4, random=0.9)
    found = compare(runs)
    assert found.strengths(found.groups[0]) == [0.5, 0.4]
    assert found.budgets == ()
    assert "some runs were measured at their end alone: there are no curves" in notes(found)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "r0", "r1", "--games", "0", "--by", "run"]) == 0
    shown = capsys.readouterr().out
    assert "careful (IQM)" in shown
    assert "score/h" not in shown
    mixed = make_run(tmp_path, "r2", {10: 0.3}, seed=2)
    with pytest.raises(ConfigError, match="r0 is measured at its end alone, and not every run is"):
        compare([*runs, mixed])


def test_what_is_gained_per_hour_is_told_of_long_runs_of_other_than_zero_sum_games(
    tmp_path: Path,
) -> None:
    def rate(name: str, game: str, minutes: float, **wins: float) -> float | None:
        bot = next(iter(wins))
        each = {5: {bot: 0.1}, 10: {bot: wins[bot]}}
        run = make_run(tmp_path, name, each, game=game, seconds_per_update=6 * minutes)
        other = make_run(tmp_path, f"{name}-2", each, game=game, seed=1)
        found = compare([run, other])
        return found.groups[0].entries[0].score_per_hour

    assert rate("long", "kuhhandel", 20.0, dealer=0.6) == pytest.approx(10 * 0.5 * 60 / 10)
    assert rate("short", "kuhhandel", 1.0, dealer=0.6) is None
    assert rate("zero", "tic_tac_toe", 20.0, careful=0.6) is None


def test_only_common_opponents_count(tmp_path: Path) -> None:
    one = make_run(tmp_path, "one", {10: {"careful": 0.3, "random": 0.9}})
    two = make_run(tmp_path, "two", {10: {"careful": 0.4}}, seed=1)
    found = compare([one, two])
    assert found.opponents == ("careful",)
    assert found.strengths(found.groups[0]) == [0.3, 0.4]


def test_the_loss_to_responses_stands_beside_the_strength(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [Path("runs") / name for name in "abc"]
    for name, lr, value in (("a", 1e-3, 0.25), ("b", 1e-2, 0.5), ("c", 1e-2, 0.75)):
        path = make_run(tmp_path / "runs", name, {5: 0.5}, ppo={"lr": lr}, seed=len(name))
        (path / "best.json").write_text('{"checkpoint": 5, "strength": 0.5}')
        one = Exploited(5, "sampled", "score", value, value - 0.1, value + 0.1, "own", True)
        add_exploited(path, replace(one, decisions=1000 if name == "a" else 9000, responses=2))
        add_exploited(path, replace(one, checkpoint=4, value=9.0))  # of another checkpoint
        add_exploited(path, replace(one, plays="greedy", value=8.0))  # another way to play
        add_exploited(path, replace(one, value=value - 0.2))  # a weaker response
    found = described(compare(runs), [])
    assert [group["exploited"]["value"] for group in found["groups"]] == [0.25, 0.625]
    assert found["groups"][0]["exploited"]["low"] == pytest.approx(0.15)
    assert found["groups"][1]["runs"][0]["exploited"]["kind"] == "own"
    print_comparison(compare(runs), [], notes(compare(runs)))
    shown = capsys.readouterr().out
    assert "exploited" in shown.splitlines()[0]
    assert "0.25 (0.15 .. 0.35)" in shown
    assert "exploited: score per game of the strongest response, a lower bound; an equal" in shown
    assert "the responses are not alike (1k to 9k decisions" in shown
    assert main(["runs", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)["runs"]}
    assert listed["b"]["exploited"]["value"] == 0.5
    exact = Exploited(5, "sampled", "exploitability", 0.3, 0.3, 0.3, "exact", True)
    for path in runs:
        add_exploited(path, exact)
    assert "exploitability of the strongest response, exact" in str(notes(compare(runs)))


def test_commands_that_end_at_once_keep_all_that_they_measured(tmp_path: Path) -> None:
    one = Exploited(5, "sampled", "score", 0.5, 0.4, 0.6, "own", True)
    measured = [replace(one, seed=seed) for seed in range(24)]
    with ThreadPoolExecutor(8) as several:
        assert all(several.map(lambda each: add_exploited(tmp_path, each), measured))
    assert sorted(each.seed for each in read_exploited(tmp_path)) == list(range(24))


def test_what_was_exploited_before_is_damaged_or_old(tmp_path: Path) -> None:
    one = Exploited(4, "sampled", "score", 0.5, 0.4, 0.6, "own", True)
    for name in ("a", "b"):
        path = make_run(tmp_path / "runs", name, {5: 0.5}, seed=1)
        (path / "best.json").write_text('{"checkpoint": 5, "strength": 0.5}')
        add_exploited(path, one)
    (tmp_path / "runs/b/exploited.json").write_text('[{"checkpoint": "x"}]')
    with pytest.warns(SparringWarning, match=r"exploited\.json was not written"):
        assert not add_exploited(tmp_path / "runs/b", one)
    found = compare([tmp_path / "runs/a", tmp_path / "runs/b"])
    assert "a: exploited at another checkpoint than its best; do it again" in notes(found)
    assert not found.exploited_of
    assert "exploited.json" in Overview(tmp_path / "runs/b").trouble


def test_words_are_honest_about_few_runs(model: Path) -> None:
    alone = compare([model / "slow-0", model / "fast-0"])
    told = "\n".join(notes(alone))
    assert "A and B have one run: nothing can be told about seeds" in told
    assert alone.strength(alone.groups[0]).low is None
    few = notes(compare(paths(model, "slow", "fast")))
    assert "A and B: fewer than 4 runs, so the intervals are rough; train more seeds" in few
    apart = "B over A: all runs of the one are stronger than all of the other"
    assert any(line.startswith(apart) and "1 of 10 comparisons" in line for line in few)
    assert any("not equally long" in line and "10k decisions" in line for line in few)


def test_matches_that_the_weaker_group_wins_are_told(model: Path) -> None:
    found = compare(paths(model, "slow", "fast"))
    slow, fast = found.groups
    assert disagreements(found, [GroupMatch(slow, fast, 64, 0.2, 0.1, 0.3)]) == []
    assert disagreements(found, [GroupMatch(slow, fast, 64, 0.6, 0.4, 0.8)]) == []
    (line,) = disagreements(found, [GroupMatch(slow, fast, 64, 0.9, 0.8, 0.95)])
    assert "disagree: A wins the matches against B, which has more strength" in line
    assert line.endswith("strength counts careful alone")


def test_runs_of_equally_many_decisions_are_equally_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine makes some of them slower; that is nothing to compare them by."""
    for seed, pace in enumerate((1.0, 1.3, 0.9)):
        make_run(tmp_path, f"r{seed}", {5: 0.2, 10: 0.3}, seed=seed, seconds_per_update=pace)
    assert not [
        line for line in notes(compare(sorted(tmp_path.iterdir()))) if "equally long" in line
    ]
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "r0", "r1", "r2", "--games", "0"]) == 0
    assert " at " not in capsys.readouterr().out.splitlines()[0]


def test_the_command_prints_plays_and_draws(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    words = ["compare", "slow", "fast", "--by", "ppo.lr", "--games", "64", "--threads", "1"]
    assert main(words) == 0
    first = capsys.readouterr().out
    lines = first.splitlines()
    assert lines[1].split()[:5] == ["A", "ppo.lr=0.0001", "3", "30.0%", "3.1%"]
    assert lines[2].split()[:5] == ["B", "ppo.lr=0.01", "3", "60.0%", "33.1%"]
    assert "B: fast-0, fast-1, fast-2" in lines
    with Image.open(model / "compare.png") as image:
        assert image.width == 1600
    page = (model / "compare.html").read_text()
    for title in ("Strength by decisions", "Strength by minutes", "Final strength", "Head to head"):
        assert title in page
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    (match,) = told["matches"]
    assert match["games"] == 64
    assert 0 <= match["low"] <= match["share"] <= match["high"] <= 1
    assert f"{match['share']:.1%}" in first
    assert told["improvement"][0]["value"] == 0.0
    assert [run["seed"] for run in told["groups"][0]["runs"]] == [0, 1, 2]


@pytest.mark.parametrize("seats", [3, 4])
def test_equals_share_the_wins_at_any_table(seats: int) -> None:
    rules = Rules("skull_king", {"num_players": seats})
    torch.manual_seed(0)
    policies = [Policy(rules, make_net(rules, NetConfig(hidden=(4,))), name=n) for n in "ab"]
    policies[1].net.load_state_dict(policies[0].net.state_dict())
    share, games, deals = share_of_wins(rules, *policies, games=64, seed=1, threads=1)
    assert abs(share - 0.5) < 0.2
    assert games == deals * seats >= 64  # deals are what is independent


def test_runs_that_cannot_be_compared_are_refused_with_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "runs"
    make_run(root, "board", {10: 0.5})
    make_run(root, "empty", {})
    make_run(root, "met", {10: {"someone": 0.5}})
    make_run(root, "cards4", {10: 0.5}, game="skull_king")
    make_run(root, "cards6", {10: 0.5}, game="skull_king", set=("num_players=6",))
    make_run(root, "own", {10: 0.5}, game="my_env")
    monkeypatch.chdir(tmp_path)
    for words, hint in (
        ("board cards4", "board plays tic_tac_toe, cards4 plays skull_king"),
        ("cards", "num_players is 4 and 6"),
        ("board empty", "empty has no evaluation yet"),
        ("board met", "no opponent is common to all runs"),
        ("own board", "'my_env', which has no evaluations"),
        ("board", "at least two runs"),
        ("board board", "at least two runs, this is 1"),
        ("boart met", "did you mean 'board'"),
        ("board board --by ppo.lrr", "at least two"),
        ("board met --games 1", "must be 0 or at least 4"),
        ("board met --threads -1", "from 0 to 1024"),
        ("board met --seed -1", "at least 0"),
    ):
        assert main(["compare", *words.split()]) == 2, words
        shown = capsys.readouterr().err
        assert len(shown.splitlines()) == 1, shown
        assert hint in shown, shown
    assert not (root / "compare.png").exists()


def test_an_unknown_setting_is_answered_with_the_nearest(model: Path) -> None:
    for by, hint in (("ppo.lrr", "'ppo.lr'"), ("lr", "'ppo.lr'"), ("net.hiden", "'net.hidden'")):
        with pytest.raises(ValueError, match=f"did you mean {hint}"):
            compare(paths(model, "slow"), by)
    assert compare(paths(model, "slow"), "ppo.gae-lambda,algo").by == ("ppo.gae_lambda", "algo")


def test_a_game_of_one_seat_is_compared_by_score(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, f"r{n}", {5: -100.0, 10: -50.0 + n}, game="cage2", seed=n)
        for n in range(2)
    ]
    found = compare(runs)
    assert found.strengths(found.groups[0]) == [-50.0, -49.0]
    assert notes(found)[0] == "strength: return, last evaluation"
