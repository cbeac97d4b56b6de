"""Who sits in a learner's slots: nobody leaves in mid-game, the newest gets in, shares are kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparring.errors import SparringError
from sparring.league.matchmaking import ArchivedPolicy, WinDrawLoss, weights
from sparring.league.slots import Slot, Slots, inclusion_probabilities, mixes, systematic_sample


def archive(count: int) -> list[ArchivedPolicy]:
    return [ArchivedPolicy(number, f"h{number}") for number in range(count)]


def seated(slots: Slots, **busy: int) -> np.ndarray:
    """Count of seats by policy id; busy: slot_K=seats."""
    found = np.zeros(len(slots) + 1, np.int64)
    for name, seats in busy.items():
        found[int(name.removeprefix("slot_"))] = seats
    return found


def inside(slots: Slots) -> set[str | None]:
    return {slot.hash for slot in slots.active().values()}


def test_everybody_is_in_while_there_is_room() -> None:
    slots, past = Slots(4), archive(3)
    filled = slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=1)
    assert set(filled.values()) == {"h0", "h1", "h2"}
    assert not slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=2)
    past = archive(4)
    filled = slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=3)
    assert list(filled.values()) == ["h3"]
    assert len(slots.active()) == 4


def test_nobody_is_exchanged_in_the_middle_of_a_game() -> None:
    slots, past = Slots(3), archive(3)
    slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=1)
    past = archive(4)
    want = weights("uniform", past)
    busy = seated(slots, slot_1=5, slot_2=5, slot_3=5)
    assert slots.assign(past, want, busy, seed=0, update=2) == {}
    (leaving,) = [n for n in (1, 2, 3) if slots[n].draining]
    assert leaving not in mixes(slots, past, want)["past"]
    assert slots.assign(past, want, busy, seed=0, update=3, exchanged=0) == {}
    busy[leaving] = 0
    assert slots.assign(past, want, busy, seed=0, update=4, exchanged=0) == {leaving: "h3"}
    assert leaving in mixes(slots, past, want)["past"]


@pytest.mark.parametrize("choose", ["uniform", "newest", "pfsp", "forgotten"])
def test_the_newest_always_gets_in_and_most_stay(choose: str) -> None:
    slots = Slots(8)
    for count in range(1, 60):
        past = archive(count)
        before = inside(slots)
        want = weights(choose, past)
        slots.assign(past, want, seated(slots), seed=3, update=count)
        assert f"h{count - 1}" in inside(slots)
        assert len(inside(slots)) == min(count, 8)
        assert len(before - inside(slots)) <= 2


def test_at_most_a_share_drains_however_often_it_is_asked() -> None:
    slots, past = Slots(16), archive(16)
    slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=0)
    past = archive(200)
    busy = seated(slots, **{f"slot_{k}": 1 for k in range(1, 17)})
    for update in range(20):
        slots.assign(past, weights("uniform", past), busy, seed=0, update=update)
        assert sum(slot.draining for slot in slots.slots) <= 4


@pytest.mark.few(2)
@pytest.mark.parametrize("choose", ["uniform", "newest", "pfsp", "skill"])
@pytest.mark.parametrize("room", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_over_time_everybody_is_met_as_often_as_wanted(choose: str, room: int) -> None:
    past = [
        ArchivedPolicy(n, f"h{n}", results=WinDrawLoss(wins=n, losses=24 - n), rating=50.0 * n)
        for n in range(24)
    ]
    want = weights(choose, past, learner_rating=0.0)
    slots, met, turns = Slots(room), np.zeros(len(past)), 800
    for update in range(turns):
        slots.assign(past, want, seated(slots), seed=1, update=update, exchanged=1.0)
        for slot, weight in mixes(slots, past, want)["past"].items():
            met[int(str(slots[slot].hash)[1:])] += weight / turns
    # The newest always has a slot, which costs the others a little where it is hardly wanted.
    assert met == pytest.approx(want, abs=0.02)


def test_a_policy_that_was_forgotten_comes_back() -> None:
    past = [
        ArchivedPolicy(n, f"h{n}", results=WinDrawLoss(wins=90), best_share=0.96) for n in range(50)
    ]
    past[7] = ArchivedPolicy(7, "h7", results=WinDrawLoss(losses=20), best_share=0.96)
    slots = Slots(4)
    for update in range(3):
        slots.assign(past, weights("forgotten", past), seated(slots), seed=0, update=update)
    assert "h7" in inside(slots)
    filled = mixes(slots, past, weights("forgotten", past))["past"]
    assert max(filled, key=lambda at: filled[at]) in [
        n for n in (1, 2, 3, 4) if slots[n].hash == "h7"
    ]


def test_who_is_wanted_less_is_met_less_before_it_leaves() -> None:
    past = archive(8)
    slots = Slots(4)
    slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=0)
    beaten = str(next(iter(slots.active().values())).hash)
    past = [
        ArchivedPolicy(one.number, one.hash, results=WinDrawLoss(wins=500 * (one.hash == beaten)))
        for one in past
    ]
    found = mixes(slots, past, weights("pfsp", past))["past"]
    at = next(n for n in slots.active() if slots[n].hash == beaten)
    assert found.get(at, 0.0) < 0.001


def test_a_policy_that_was_pruned_leaves() -> None:
    slots, past = Slots(3), archive(3)
    slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=0)
    left = past[1:]
    gone = next(n for n in (1, 2, 3) if slots[n].hash == "h0")
    busy = seated(slots)
    busy[gone] = 2
    slots.assign(left, weights("uniform", left), busy, seed=0, update=1, exchanged=0)
    assert slots[gone].draining
    assert "h0" in slots.policies  # a game in flight needs it
    slots.assign(left, weights("uniform", left), seated(slots), seed=0, update=2, exchanged=0)
    assert "h0" not in slots.policies


def test_fixed_policies_keep_their_slots() -> None:
    slots = Slots(3)
    slots.fix(3, "mine")
    slots.fix(2, "mine", greedy=True)
    for count in range(1, 20):
        past = archive(count)
        slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=count)
        assert (slots[3].hash, slots[2].hash, slots[2].greedy) == ("mine", "mine", True)
    assert mixes(slots, past, weights("uniform", past))["past"] == {1: 1.0}
    with pytest.raises(SparringError, match="slot 3 is taken by mine"):
        slots.fix(3, "another")


def test_pots_of_the_newest_and_the_best() -> None:
    slots, past = Slots(5), archive(5)
    slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=0)
    found = mixes(slots, past, weights("uniform", past), recent=(2, 9), best="h1")
    by_mix = {name: {slots[at].hash: w for at, w in mix.items()} for name, mix in found.items()}
    assert by_mix["past:2"] == pytest.approx({"h3": 0.5, "h4": 0.5})
    assert by_mix["past:9"] == pytest.approx(dict.fromkeys(["h0", "h1", "h2", "h3", "h4"], 0.2))
    assert by_mix["best"] == {"h1": 1.0}
    empty = mixes(Slots(5), [], np.zeros(0), recent=(2,))
    assert empty == {"past": {}, "past:2": {}, "best": {}}


def test_the_best_one_gets_a_slot() -> None:
    slots, past = Slots(4), archive(40)
    for update in range(3):
        want = weights("newest", past)
        slots.assign(past, want, seated(slots), seed=0, update=update, always=["h5"])
    assert mixes(slots, past, want, best="h5")["best"]


def test_the_same_seed_update_and_state_give_the_same_slots() -> None:
    def play(stop: int) -> Slots:
        slots = Slots(6)
        for update in range(stop):
            past = archive(10 + update)
            busy = np.random.default_rng(update).integers(0, 2, 7)
            slots.assign(past, weights("pfsp", past), busy, seed=5, update=update)
        return slots

    whole, half = play(30), play(15)
    again = Slots(6)
    again.load(json.loads(json.dumps(half.state())))
    for update in range(15, 30):
        past = archive(10 + update)
        busy = np.random.default_rng(update).integers(0, 2, 7)
        again.assign(past, weights("pfsp", past), busy, seed=5, update=update)
    assert again.state() == whole.state()


def test_another_number_of_slots_is_refused() -> None:
    with pytest.raises(SparringError, match=r"saved with 4 slots and has 8 now; set league\.slots"):
        Slots(8).load(Slots(4).state())
    with pytest.raises(SparringError, match="cannot be read"):
        Slots(8).load({"slots": [{"color": 1}] * 8})


def test_chances_are_in_proportion_and_fill_the_room() -> None:
    nobody = np.zeros(5, bool)
    want = np.array([0.7, 0.1, 0.1, 0.1, 0.0])
    assert inclusion_probabilities(want, 2, nobody) == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 0])
    assert inclusion_probabilities(want, 5, nobody) == pytest.approx([1, 1, 1, 1, 0])
    newest = np.arange(5) == 4
    assert inclusion_probabilities(want, 2, newest) == pytest.approx([0.7, 0.1, 0.1, 0.1, 1.0])
    lots = np.random.default_rng(0)
    drawn = np.zeros(5)
    for _ in range(4000):
        drawn[systematic_sample(inclusion_probabilities(want, 2, newest), lots)] += 1 / 4000
    assert drawn == pytest.approx([0.7, 0.1, 0.1, 0.1, 1.0], abs=0.03)


def test_who_leaves_may_be_drawn_again_but_not_between_two_exchanges() -> None:
    slots, past = Slots(2), archive(2)
    slots.assign(past, weights("uniform", past), seated(slots), seed=0, update=0)
    at = next(n for n in (1, 2) if slots[n].hash == "h0")
    busy = seated(slots)
    busy[at] = 1
    slots.assign(past[1:], weights("uniform", past[1:]), busy, seed=0, update=1)
    assert slots[at].draining
    both = weights("uniform", past)
    assert slots.assign(past, both, busy, seed=0, update=2, exchanged=0) == {}
    assert slots[at].draining, "or a slot would not get empty while lots are drawn every update"
    assert slots.assign(past, both, busy, seed=0, update=3) == {}
    assert not slots[at].draining


def test_who_is_in_no_game_leaves_first() -> None:
    at_once = 0
    for seed in range(20):
        slots, past = Slots(8), archive(40)
        slots.assign(past[:8], weights("uniform", past[:8]), seated(slots), seed=seed, update=0)
        busy = seated(slots) + 5
        busy[[2, 6]] = 0
        at_once += bool(
            slots.assign(past, weights("uniform", past), busy, seed=seed, update=1, exchanged=0)
        )
    assert at_once >= 15


def test_who_came_in_by_a_small_chance_and_is_wanted_now_does_not_weigh_more() -> None:
    slots, past = Slots(2), archive(2)
    slots.slots = [Slot("h0", probability=0.1), Slot("h1", probability=1.0)]
    assert mixes(slots, past, weights("uniform", past))["past"] == pytest.approx({1: 0.5, 2: 0.5})
