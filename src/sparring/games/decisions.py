"""Reconstruct the decisions of a game from its states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.games.state import State, new_state

Step = tuple[State, int, State]
"""State before a decision, the action, state after it."""


def decisions(states: Sequence[State]) -> Iterator[Step]:
    """Yield every decision of a turn-based game, also those that `skip_forced` skipped.

    States do not store their last action, so each action is found by trying all legal ones.
    """
    first = states[0].rules
    rules = Rules(first.name, {**first.config, "skip_forced": 0})
    for was, now in pairwise(states):
        yield from steps_between(rules, was, now)


def steps_between(rules: Rules, was: State, now: State) -> list[Step]:
    """Return the steps between two states: one choice, then forced moves."""
    for choice in was.legal():
        before, action = without_skip_forced(rules, was), choice
        steps: list[Step] = []
        while True:
            after = before.clone()
            after.apply(action)
            steps.append((before, action, after))
            if same_position(after, now):
                return steps
            if after.over or len(after.legal()) != 1:
                break
            before, action = after, after.legal()[0]
    raise SparringError(f"no action of {rules.name} leads from one of these states to the next")


def without_skip_forced(rules: Rules, state: State) -> State:
    """Return the same position in a game without skip_forced."""
    copy = new_state(rules, seed=state.seed)
    copy.native.load(state.native.serialize())
    return copy


def same_position(one: State, other: State) -> bool:
    if one.seat != other.seat:  # cheaper than comparing fields
        return False
    first, second = one.fields(), other.fields()
    return all((first[name] == second[name]).all() for name in first)
