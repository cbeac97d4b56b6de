"""A learner that is like another one combines with the same, and makes updates with it."""

from __future__ import annotations

import pytest

from combinations.cells import FEATURES, LEARNERS, NETWORKS, PLACES, VARIANTS, Cell, Choice
from combinations.trying import ACCEPTED, REFUSED, Outcome, planned, updated

BOX = next(feature for feature in FEATURES if feature.name == "box")
FEWER = {("qrdqn", "residual"), ("qrdqn", "attention"), ("qrdqn", "own perceptron")}
FEWER |= {("qrdqn", "own"), ("qrdqn", "population"), ("redq", "population"), ("td3", "population")}
"""Networks and places that a variant has not."""
NAMES = [variant.name for _, variant in VARIANTS]


def cells_of(learner: Choice, *, box: bool) -> list[Cell]:
    """Without a feature in every network and place, and with every feature."""
    always = (BOX,) if box else ()
    native, mlp = PLACES[0], NETWORKS[0]
    places = [place for place in PLACES if place.device == "cpu" and not (box and place.own)]
    cells = [Cell(learner, native, network, always) for network in NETWORKS]
    cells += [Cell(learner, place, mlp, always) for place in places]
    return cells + [Cell(learner, native, mlp, (*always, one)) for one in FEATURES if one != BOX]


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_a_variant_combines_with_what_its_like_combines_with(name: str, every: int) -> None:
    """Planning is asked of all; `every` so many make updates."""
    like, variant = next(pair for pair in VARIANTS if pair[1].name == name)
    original = next(learner for learner in LEARNERS if learner.name == like)
    wrong, accepted = dict[str, Outcome](), 0
    pairs = zip(*(cells_of(one, box=name == "td3") for one in (variant, original)), strict=True)
    for mine, theirs in pairs:
        found, wanted = planned(mine), planned(theirs)
        absent = {(name, mine.network.name), (name, mine.place.name)} & FEWER
        state = REFUSED if absent else wanted.state
        if (found.state in ACCEPTED) != (state in ACCEPTED):
            wrong[str(mine)] = found
        elif found.state in ACCEPTED:
            accepted += 1
            made = updated(mine) if accepted % every == 0 else found
            if made.state not in ACCEPTED:
                wrong[str(mine)] = made
        elif found.state == REFUSED:
            assert ("\n" not in found.line and name in found.line) or "needs" in found.line
    assert not wrong
    assert accepted > 15


def test_continuous_actions_are_for_some_alone() -> None:
    for _, variant in VARIANTS:
        found = planned(Cell(variant, PLACES[0], NETWORKS[0], (BOX,)))
        assert (found.state in ACCEPTED) == (variant.name != "qrdqn")
