"""A league by itself: results that are given to it, and what it makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sparring.errors import ConfigError, SparringWarning
from sparring.league.roles import EXPLOITER, LEAGUE_EXPLOITER, MAIN
from sparring.learn.acting import TakesOpponents
from sparring.learn.learner import Report
from sparring.store.archive import MATCH, Archive
from sparring.training.evaluate import PAIRS
from sparring.training.league import League
from sparring.training.planning.participants import check_leagues
from sparring.training.planning.plan import make_learner, resolve
from training.run_helpers import settings, trained

EACH = 16 * 8
"""Decisions of an update."""


def league_in(
    folder: Path, *, name: str = "mine", archive: Archive | None = None, **changes: Any
) -> League:
    config = settings(folder, **{"opponents": ("past=1",), **changes})
    plan = resolve([config])
    learner = make_learner(config, plan)
    assert isinstance(learner, TakesOpponents)
    folder.mkdir(exist_ok=True)
    kept = archive or Archive(folder, max_bytes=10**9)
    league = League(config.league, plan, learner, kept, name=name)
    league.begin()
    return league


def after(
    league: League, update: int, counts: dict[int | str, tuple[int, int, int]] | None = None
) -> None:
    """An update in which the learner met some, by slot or bot."""
    bots = league.learner.rules.bots
    met = np.zeros((league.participants.slots + 1 + len(bots), 3), np.int64)
    for who, found in (counts or {}).items():
        at = who if isinstance(who, int) else league.participants.slots + 1 + bots.index(who)
        met[at] = found
    league.after_update(Report({}, update * EACH, 0, 0, met=met), update=update, seconds=0.0)


def other_net(league: League, number: int) -> dict[str, torch.Tensor]:
    net = league.learner.policy().net.state_dict()
    return {name: tensor + number for name, tensor in net.items()}


def keep(league: League, number: int, role: str = MAIN) -> str:
    """Somebody else's snapshot in the same archive."""
    return league.archive.add(
        other_net(league, number),
        role=role,
        member="other",
        update=number,
        decisions=number,
        seconds=0.0,
    ).hash


def slot_of(league: League, content: str) -> int:
    return next(n for n in range(1, len(league.slots) + 1) if league.slots[n].hash == content)


def test_results_are_of_whoever_was_in_the_slot(tmp_path: Path) -> None:
    saved = trained(tmp_path / "runs", name="saved", updates=2)
    league = league_in(
        tmp_path / "new",
        opponents=("past=1", "random=1", f"{saved.run}=1"),
        league={"every_decisions": 2 * EACH, "slots": 3},
    )
    first, second = keep(league, 1), keep(league, 2)
    after(league, 2)
    slots = {content: slot_of(league, content) for content in (first, second)}
    fixed = league.participants.fixed[0].slot
    after(league, 3, {slots[first]: (1, 0, 0), slots[second]: (0, 2, 0), fixed: (0, 0, 9)})
    after(league, 4, {slots[first]: (5, 0, 4), "random": (7, 0, 0)})
    found = league.archive.totals()
    assert found[first] == (6, 0, 4) and found[second] == (0, 2, 0)
    assert found["random"] == (7, 0, 0) and found[str(league.slots[fixed].hash)] == (0, 0, 9)
    assert league.results[first].games == pytest.approx(0.7 * 10), "older ones count less"


def test_a_gate_counts_games_against_the_past_alone(tmp_path: Path) -> None:
    saved = trained(tmp_path / "runs", name="saved", updates=2)
    league = league_in(
        tmp_path / "new",
        opponents=("past=1", "random=1", f"{saved.run}=1"),
        league={"every_decisions": EACH, "slots": 2, "gate": 0.6},
    )
    theirs, fixed = keep(league, 1), league.participants.fixed[0].slot
    after(league, 1)
    after(league, 2, {fixed: (999, 0, 0), "random": (999, 0, 0)})
    after(league, 3, {slot_of(league, theirs): (200, 0, 55)})
    assert [entry.member for entry in league._past_entries()] == ["other"], "one game is missing"
    after(league, 4, {slot_of(league, theirs): (1, 0, 0)})
    assert [entry.member for entry in league._past_entries()] == ["other", "mine"]
    assert league.since_last.games == 0


def test_an_exploiter_has_ten_snapshots_of_patience(tmp_path: Path) -> None:
    league = league_in(tmp_path, league={"slots": 2, "role": "exploiter"})
    keep(league, 1)
    before = league._weights()
    for update in range(20, 200, 20):
        after(league, update)
    assert league.attempt.number == 1
    after(league, 200)
    assert league.attempt.number == 2 and league.attempt.began == 200 * EACH
    now = league._weights()
    assert any(not torch.equal(before[name], now[name]) for name in before)
    assert [entry.role for entry in league.archive.entries()] == [MAIN], "it has found nothing"


def test_an_exploiter_that_wins_is_kept_as_it_was_and_begins_anew(tmp_path: Path) -> None:
    league = league_in(tmp_path, league={"every_decisions": EACH, "slots": 2, "role": "exploiter"})
    old, new = keep(league, 1), keep(league, 2)
    keep(league, 3, EXPLOITER)
    after(league, 1)
    assert league.slots.policies == {old, new}, "it meets main agents alone"
    before = league._weights()
    after(league, 2, {slot_of(league, old): (999, 0, 0)})
    assert league.attempt.number == 1, "only the newest counts"
    after(league, 3, {slot_of(league, new): (300, 0, 100)})
    assert league.attempt.number == 2 and not league.results
    won = league.archive.entries()[-1]
    assert (won.role, won.member) == (EXPLOITER, "mine")
    kept = league.archive.weights(won.hash)
    assert all(torch.equal(kept[name], before[name]) for name in before)


def test_an_exploiter_may_restart_as_the_newest_main_agent(tmp_path: Path) -> None:
    league = league_in(
        tmp_path,
        league={"every_decisions": EACH, "slots": 2, "role": "exploiter", "restart": "main"},
    )
    keep(league, 1)
    new = keep(league, 2)
    keep(league, 3, EXPLOITER)
    after(league, 1)
    after(league, 2, {slot_of(league, new): (300, 0, 100)})
    assert league.attempt.number == 2
    main, mine = league.archive.weights(new), league._weights()
    assert all(torch.equal(main[name], mine[name]) for name in main)


def test_a_snapshot_of_this_moment_does_not_keep_an_exploiter_from_winning(tmp_path: Path) -> None:
    """Members archive at the same update: what came a moment ago has no games yet."""
    league = league_in(tmp_path, league={"every_decisions": EACH, "slots": 2, "role": "exploiter"})
    met = keep(league, 1)
    after(league, 1)
    keep(league, 2)
    after(league, 2, {slot_of(league, met): (300, 0, 100)})
    assert league.attempt.number == 2
    assert [entry.role for entry in league.archive.entries()] == [MAIN, MAIN, EXPLOITER]
    assert league.state()["newest"] == league.newest != met


def test_a_league_exploiter_has_to_beat_everybody(tmp_path: Path) -> None:
    role = {"every_decisions": EACH, "slots": 3, "role": LEAGUE_EXPLOITER}
    league = league_in(tmp_path, league=role)
    main, new, other = keep(league, 1), keep(league, 2), keep(league, 3, EXPLOITER)
    after(league, 1)
    assert league.slots.policies == {main, new, other}, "it meets exploiters too"
    after(league, 2, {slot_of(league, new): (400, 0, 0), slot_of(league, other): (0, 0, 400)})
    assert league.attempt.number == 1, "half of the points"
    after(league, 3, {slot_of(league, main): (900, 0, 0), slot_of(league, other): (100, 0, 0)})
    assert league.attempt.number == 2 and not league.results
    assert league.archive.entries()[-1].role == LEAGUE_EXPLOITER


def test_an_exploiter_without_a_main_agent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no main agent to meet.*sparring exploit"):
        trained(tmp_path / "new", updates=2, opponents=("past=1",), league={"role": "exploiter"})
    assert not (tmp_path / "new").exists()
    roles = ("main", "exploiter")
    shared, apart = (
        [settings(tmp_path, league={"role": role, "shared": yes}).league for role in roles]
        for yes in (True, False)
    )
    cast = resolve([settings(tmp_path, opponents=("past=1",))]).participants
    check_leagues(cast, shared)
    for wrong in (apart, shared[1:], [apart[0], shared[1]]):
        with pytest.raises(ConfigError, match="no main agent"):
            check_leagues(cast, wrong)


def test_a_best_that_is_known_late_is_not_the_newest(tmp_path: Path) -> None:
    league = league_in(
        tmp_path,
        opponents=("past:1=1", "best=1"),
        league={"every_decisions": EACH, "slots": 2},
        eval={"off": False},
    )
    for number in range(1, 4):
        keep(league, number)
    newest = keep(league, 5)
    league.new_best(other_net(league, 9), update=4, decisions=4, seconds=0.0)
    league._rotate(5, exchange=True)
    assert league.best is not None
    assert league.mixes == {
        "past:1": {slot_of(league, newest): 1.0},
        "best": {slot_of(league, league.best): 1.0},
    }


def test_going_back_forgets_a_best_that_was_not_known_then(tmp_path: Path) -> None:
    league = league_in(tmp_path, opponents=("best=1",), league={"slots": 2}, eval={"off": False})
    first = keep(league, 1)
    state = league.state()
    league.new_best(other_net(league, 9), update=2, decisions=2, seconds=0.0)
    league.archive.forget_after(3, last=state["last"])
    assert [entry.hash for entry in league.archive.entries()] == [first]


def test_two_copies_of_a_policy_have_a_slot_each(tmp_path: Path) -> None:
    saved = trained(tmp_path / "runs", name="saved", updates=2)
    league = league_in(
        tmp_path / "new", opponents=(f"{saved.run}=1", f"{saved.run}/2=1"), league={"slots": 2}
    )
    one, two = (league.slots[fixed.slot] for fixed in league.participants.fixed)
    assert one.hash == two.hash and one is not two


def test_what_another_member_needs_is_not_removed(tmp_path: Path) -> None:
    one = league_in(tmp_path, name="one", league={"every_decisions": EACH, "slots": 2})
    two = league_in(
        tmp_path, name="two", archive=one.archive, league={"every_decisions": EACH, "slots": 2}
    )
    one.sharing = two.sharing = [one, two]
    theirs = keep(one, 1)
    two.slots.fix(1, theirs)
    one.archive.max_bytes = 1
    for update in range(2, 9):
        keep(one, update)
    one._prune(9)
    left = {entry.hash for entry in one.archive.entries()}
    assert theirs in left and len(left) == 2, "and the newest"
    two.slots.slots[0].hash = None
    one._prune(10)
    assert theirs not in {entry.hash for entry in one.archive.entries()}


def test_between_snapshots_free_slots_are_filled_and_nobody_else_leaves(tmp_path: Path) -> None:
    league = league_in(tmp_path, league={"every_decisions": 100 * EACH, "slots": 3, "gate": 1.0})
    for number in range(12):
        newest = keep(league, number)
    after(league, 100)
    leaving, staying = (n for n in (1, 2, 3) if league.slots[n].hash != newest)
    stays = league.slots[staying].hash
    for update in range(101, 120):
        league.slots[leaving].draining = True
        after(league, update)
        assert len(league.slots.active()) == 3 and newest in league.slots.policies
        assert league.slots[staying].hash == stays
        assert sorted(league.mixes["past"]) == [1, 2, 3]


@pytest.mark.parametrize("choose", ["uniform", "forgotten"])
def test_matches_beside_training_tell_what_is_forgotten(tmp_path: Path, choose: str) -> None:
    league = league_in(tmp_path, league={"slots": 2, "sampling": choose})
    theirs = keep(league, 1)
    file = str(league.archive.file(theirs))
    assert league.add_match(7, 70, file, {PAIRS: [90, 0, 10]}) == "past 0"
    assert league.add_match(8, 80, file, {PAIRS: [0, 0, 200]}) == "past 0"
    assert league.add_match(8, 80, "random", {PAIRS: [3, 2, 1]}) == "random"
    assert league.archive.totals(MATCH) == {theirs: (90, 0, 210), "random": (3, 2, 1)}
    (known,) = league._opponents()
    if choose == "forgotten":
        assert known.best_share > 0.85 and known.share < 0.4
    else:
        assert known.results.games == 0


def test_evaluations_meet_the_newest_and_others_that_are_there(tmp_path: Path) -> None:
    league = league_in(tmp_path, league={"slots": 2})
    assert league.rivals(0) == []
    first, gone, newest = keep(league, 1), keep(league, 2), keep(league, 3)
    league.archive.file(gone).unlink()
    files = [str(league.archive.file(content)) for content in (newest, first)]
    assert all(league.rivals(number) == files for number in range(3, 8))
    assert league.rivals(2) == [str(league.archive.file(first))], "those of its time"


def test_a_league_goes_on_from_its_state_without_what_is_gone(tmp_path: Path) -> None:
    league = league_in(tmp_path, league={"every_decisions": 2 * EACH, "slots": 3, "gate": 1.0})
    for number in range(3):
        keep(league, number)
    after(league, 2)
    after(league, 3, {1: (4, 2, 3), "random": (1, 1, 1)})
    state = league.state()
    assert state["counted"] and state["results"] and state["since_last"] == [4, 2, 3]
    again = league_in(tmp_path, league={"every_decisions": 2 * EACH, "slots": 3, "gate": 1.0})
    again.restore(state, again._weights())
    assert again.state() == state
    league.archive.file(str(league.slots[2].hash)).unlink()
    other = league_in(tmp_path, league={"every_decisions": 2 * EACH, "slots": 3, "gate": 1.0})
    with pytest.warns(SparringWarning, match="a past self is left out"):
        other.restore(state, other._weights())
    assert other.slots[2].draining and sorted(other.mixes["past"]) == [1, 3]
