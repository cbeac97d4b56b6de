"""Valid calls of the public classes, found by introspection, for `calls` to spoil."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

import sparring
from fuzz.native_calls import Call
from fuzz.odd import Lots, one
from sparring.games.rules import Rules, game_names
from sparring.games.state import State, new_state
from sparring.pools.batch import Batch
from sparring.pools.lineups import Lineup
from sparring.pools.native import Pool

CLASSES: dict[str, type] = {"State": State, "Pool": Pool, "Batch": Batch, "Rules": Rules}
SLOW = {"Pool.run_random": 10, "Pool.__init__": 200, "Pool.reset": None}
"""Higher whole numbers would be honest work of hours."""


def methods() -> Iterator[str]:
    """Name the public methods and properties, and what makes the objects."""
    yield from ("new_state", "load_state", "Pool.__init__", "Rules.__init__")
    for name, kind in CLASSES.items():
        yield from (f"{name}.{one}" for one in dir(kind) if not one.startswith("_"))


class PublicWorkshop:
    """Makes valid calls of games in many states."""

    def __init__(self, lots: Lots) -> None:
        self.lots = lots
        self.kept: dict[str, Any] = {}

    def others(self) -> list[Any]:
        """Return objects for places that are not theirs."""
        return list(self.kept.values())

    def make(self, name: str) -> Call:
        """Return a valid call."""
        owner, _, method = name.partition(".")
        if owner not in CLASSES:
            return self.called(name, getattr(sparring, name))
        if method == "__init__":
            return self.called(name, CLASSES[owner])
        thing = self.thing(owner)
        if not callable(getattr(CLASSES[owner], method)):
            return Call(name, lambda: getattr(thing, method))
        return self.called(name, getattr(thing, method))

    def called(self, name: str, function: Any) -> Call:
        """Return a call with a value for every parameter that has one without a default."""
        wanted = inspect.signature(function).parameters.values()
        own = [p.name for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        more = [p.name for p in wanted if p.kind == p.KEYWORD_ONLY]
        drawn = [key for key in more if self.lots.random() < 0.3]
        values = [self.value(name, key) for key in (*own, *drawn)]

        def call(*given: Any) -> Any:
            return function(*given[: len(own)], **dict(zip(drawn, given[len(own) :], strict=False)))

        return Call(name, call, values, SLOW.get(name))

    def thing(self, owner: str) -> Any:
        """Return an object, mostly one that was used before."""
        if owner not in self.kept or self.lots.random() < 0.1:
            self.kept[owner] = getattr(self, f"new_{owner.lower()}")()
        return self.kept[owner]

    def game(self) -> str:
        return str(one(self.lots, game_names()))

    def new_rules(self) -> Any:
        return Rules(self.game())

    def new_state(self) -> Any:
        state = new_state(self.game(), seed=int(self.lots.integers(9)))
        for _ in range(int(self.lots.integers(5))):
            if not state.over:
                state.apply(state.ask("random") if state.rules.rows == 1 else self.moves(state))
        return state

    def moves(self, state: Any) -> Any:
        rules = state.rules
        return (
            np.zeros((rules.rows, rules.box)) if rules.box else [state.legal(r)[0] for r in (0, 1)]
        )

    def new_pool(self) -> Any:
        pool = Pool(self.game(), 4, threads=1, slots=2)
        if self.lots.random() < 0.8:
            pool.reset()
        return pool

    def new_batch(self) -> Any:
        return self.thing("Pool").batch()

    def value(self, name: str, key: str) -> Any:
        """Return a valid value of a parameter."""
        if key in ("action", "obs", "raw", "numbers"):
            return getattr(self, f"{key}_of")(name)
        return {
            "game": 0 if name == "Pool.state_of" else self.game(),
            "name": "random" if name == "Rules.bot" else self.game(),
            "lineups": [Lineup(("random",) * 2)],
            "starts": (),
            "mixes": {"some": {0: 1.0}} if name == "Pool.set_mixes" else ["some"],
            "config": {"skip_forced": 0},
            "changes": {"skip_forced": 1},
            "rewards": {"win": 1.0},
            "flags": {},
            "packed": self.thing("Pool").pack_starts([]),
            "device": "cpu",
            "bot": "random",
            "text": "random",
            "viewer": 0,
            "observe": True,
            "every_game": False,
            "records": False,
        }.get(key, self.number(key))

    def number(self, key: str) -> int:
        return {"num_games": 4, "threads": 1, "slots": 1, "memory": 16, "steps": 2, "seed": 5}.get(
            key, 0
        )

    def action_of(self, name: str) -> Any:
        if name.startswith("Rules") or name == "State.action_name":
            return 0
        if name == "State.apply":
            state = self.kept["State"]
            return self.moves(state) if state.rules.rows == 2 else (state.legal() or [0])[0]
        pool = self.kept["Pool"]
        rows = 4 * pool.rules.rows // (2 if name == "Pool.send" else 1)
        box = pool.rules.box
        return np.zeros((rows, box), np.float32) if box else np.zeros(rows, np.int32)

    def obs_of(self, name: str) -> Any:
        return np.zeros((3, self.kept["Rules"].obs_bytes), np.uint8)

    def raw_of(self, name: str) -> Any:
        if name == "Pool.load_state" and self.kept["Pool"]._started:
            return self.kept["Pool"].state() if not any(self.kept["Pool"]._in_flight) else b""
        return self.thing("State").serialize()

    def numbers_of(self, name: str) -> Any:
        return [int(n) for n in self.lots.integers(-2, 60, size=int(self.lots.integers(90)))]
