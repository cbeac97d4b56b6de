"""Valid calls of every binding, found by introspection, for `calls` to spoil."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.odd import Lots, one
from fuzz.search_calls import SearchCalls
from sparring import _native

RUNS = [(0, 8, 0, 0, 1.0), (8, 2, 8, 3, 2.0)]
"""Ten features in twelve bytes of a row."""
FEATURES, ROW_BYTES, WIDTH, HEADS = 10, 16, 32, 5
SIDE, PLANES, CHANNELS = 3, 2, 8
CAPACITY, CARRIED, ROWS, BATCH, ACTIONS = 24, 4, 6, 5, 7
STEPS, GAMES, SEATS, ROLES = 3, 2, 2, 2
PLACES = GAMES * SEATS + STEPS * GAMES
SFEN = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
GOALS = "stairs"
OF_SCRIPTS = ("register_script", "take_script_failure")
"""Games in Python: the first takes addresses of code, which only a compiler knows."""


@dataclass
class Call:
    """One call with positional arguments that are all right."""

    name: str
    function: Callable[..., Any]
    arguments: list[Any] = field(default_factory=list)
    most: int | None = None
    """Higher whole numbers would be honest work of hours."""


def bindings() -> Iterator[str]:
    """Name everything in `_native` that can be called or read."""
    for name, thing in vars(_native).items():
        if name.startswith("__") or name in OF_SCRIPTS:
            continue
        if isinstance(thing, type):
            if "__init__" in vars(thing):
                yield name
            yield from (f"{name}.{one}" for one in vars(thing) if not one.startswith("__"))
        elif callable(thing):
            yield name


def reals(*shape: int) -> np.ndarray[Any, Any]:
    """Return numbers between -1 and 1."""
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def ints(dtype: str, *shape: int, below: int = 1) -> np.ndarray[Any, Any]:
    """Return whole numbers from 0 on, below a bound."""
    return (np.arange(int(np.prod(shape))) % below).astype(dtype).reshape(shape)


class Workshop(SearchCalls):
    """Makes valid calls. Objects live on from call to call, so that they are met in many states."""

    def __init__(self, lots: Lots) -> None:
        self.lots = lots
        self.kept: dict[str, Any] = {}
        self.rules = {name: self.rules_of(name) for name in _native.game_names()}
        self.game = ""
        """Of the state or pool that was made last."""

    @staticmethod
    def rules_of(name: str) -> Any:
        """Return native rules as they are by default."""
        return _native.make_rules(name, [row[8] for row in _native.default_fields(name)])

    def others(self) -> list[Any]:
        """Return objects of every kind that was made, for places that are not theirs."""
        return [*self.kept.values(), *self.rules.values()]

    def make(self, name: str) -> Call:
        """Return a valid call of a binding."""
        owner, _, method = name.partition(".")
        if not method:
            most = {"shogi_perft": 2, "make_tree": 200}.get(name)
            return Call(name, getattr(_native, name), self.arguments(name), most)
        thing = self.thing(owner)
        declared = vars(type(thing))[method]
        if isinstance(declared, property):
            if declared.fset and self.lots.random() < 0.5:
                return Call(name, lambda value: setattr(thing, method, value), [3])
            return Call(name, lambda: np.sum(np.asarray(getattr(thing, method), object) != 0))
        most = 10 if name == "Pool.run_random" else None
        return Call(name, getattr(thing, method), self.arguments(name), most)

    def thing(self, owner: str) -> Any:
        """Return an object: mostly one that was used before, now and then one that was not made."""
        if owner not in self.kept or self.lots.random() < 0.1:
            self.kept[owner] = getattr(self, f"new_{owner.lower()}")()
        kind = getattr(_native, owner)
        return kind.__new__(kind) if self.lots.random() < 0.02 else self.kept[owner]

    def arguments(self, name: str) -> list[Any]:
        """Return what a binding is called with, by the method of its name."""
        made = getattr(self, "of_" + name.lower().replace(".", "_"), None)
        return list(made()) if made else []

    def knows(self, name: str) -> bool:
        """Whether there is a method for a binding, or it takes nothing."""
        owner, _, method = name.partition(".")
        if hasattr(self, "of_" + name.lower().replace(".", "_")):
            return True
        thing = getattr(_native, owner)
        found = vars(thing)[method or "__init__"] if isinstance(thing, type) else thing
        told = getattr(found, "__nb_signature__", None)  # what cannot be made has none
        return told is None or "(self)" in told[0][0] or "()" in told[0][0]

    # Rules, states and pools

    def any_rules(self) -> Any:
        if not self.game or self.lots.random() < 0.5:  # states and pools are often of one game
            self.game = str(one(self.lots, list(self.rules)))
        return self.rules[self.game]

    new_rules = any_rules

    def of_rules(self) -> Any:
        return [self.any_rules()]

    def of_rules_action_name(self) -> Any:
        return [0]

    def of_default_fields(self) -> Any:
        return [one(self.lots, list(self.rules))]

    def of_make_rules(self) -> Any:
        name = str(one(self.lots, list(self.rules)))
        return [name, [list(row[8]) for row in _native.default_fields(name)]]

    def of_state_fields(self) -> Any:
        return [self.any_rules()]

    def of_make_state(self) -> Any:
        rules = self.any_rules()
        return [rules, 1, 0, False, list(rules.default_weights)]

    def new_state(self) -> Any:
        state = _native.make_state(*self.of_make_state())
        self.state_rules = self.rules[self.game]
        for _ in range(int(self.lots.integers(6))):
            if state.terminated or state.truncated:
                break
            if self.state_rules.box:
                state.apply_box([0.5] * self.state_rules.box * self.state_rules.rows)
            else:
                legal = [state.legal(row) or [0] for row in range(self.state_rules.rows)]
                state.apply_discrete([int(one(self.lots, some)) for some in legal])
        return state

    def any_row(self) -> Any:
        return [int(self.lots.integers(self.state_rules.rows))]

    of_state_seat = of_state_role = of_state_legal = any_row

    def any_seat(self) -> Any:
        return [int(self.lots.integers(self.state_rules.seats))]

    of_state_score = of_state_text = any_seat

    def of_state_apply_discrete(self) -> Any:
        return [[int(self.lots.integers(3)) for _ in range(self.state_rules.rows)]]

    def of_state_apply_box(self) -> Any:
        return [[0.5] * (self.state_rules.rows * self.state_rules.box)]

    def of_state_observe(self) -> Any:
        return [*self.any_seat(), np.zeros(self.state_rules.obs_bytes, np.uint8)]

    def of_state_setup(self) -> Any:
        return [[int(n) for n in self.lots.integers(-2, 60, size=int(self.lots.integers(90)))]]

    def of_state_load_from_pool(self) -> Any:
        return [self.thing("Pool"), 0]

    def of_state_bot_action(self) -> Any:
        return [int(self.lots.integers(len(self.state_rules.bots))), 0]

    def of_state_resample_hidden(self) -> Any:
        return [*self.any_seat(), 3, self.belief(self.state_rules, 1)]

    def of_state_draw_worlds(self) -> Any:
        worlds = np.zeros(2 * self.state_rules.game_bytes, np.uint8)
        return [*self.any_seat(), 3, 2, self.belief(self.state_rules, 1), worlds]

    def belief(self, rules: Any, rows: int) -> Any:
        return reals(rows * rules.belief_size) if self.lots.random() < 0.5 else None

    def of_state_load(self) -> Any:
        state = self.kept["State"]
        return [state.serialize()]

    def of_state_field(self) -> Any:
        names = [name for name, _, _ in _native.state_fields(self.state_rules)] or ["none"]
        return [self.state_rules, one(self.lots, names)]

    def of_make_pool(self) -> Any:
        return [self.any_rules(), 4, 1, 0, 2, 2, False, True, 16, False, 0]

    def new_pool(self) -> Any:
        pool = _native.make_pool(*self.of_make_pool())
        self.pool_rules, self.pool_game = self.rules[self.game], self.game
        if self.lots.random() < 0.9:
            pool.reset()
        return pool

    def any_slot(self) -> Any:
        return [int(self.lots.integers(2))]

    of_pool_final_count = of_pool_group_begin = of_pool_group_end = any_slot
    of_pool_send = of_pool_recv = any_slot

    def actions(self, rows: int) -> Any:
        """Legal ones of all rows, the first slot's or all."""
        pool, box = self.kept["Pool"], self.pool_rules.box
        if box:
            return reals(rows, box)
        lowest = [int(word & -word).bit_length() - 1 for word in pool.legal[:rows, 0].tolist()]
        return np.maximum(np.array(lowest, np.int32), 0)

    def of_pool_accept_discrete(self) -> Any:
        return [0, self.actions(2 * self.pool_rules.rows)]

    of_pool_accept_box = of_pool_accept_discrete

    def of_pool_sample_discrete(self) -> Any:
        return [*self.any_slot(), np.zeros(2 * self.pool_rules.rows, np.int32)]

    def of_pool_sample_box(self) -> Any:
        shape = 2 * self.pool_rules.rows, self.pool_rules.box
        return [*self.any_slot(), np.zeros(shape, np.float32)]

    def of_pool_step_discrete(self) -> Any:
        return [self.actions(4 * self.pool_rules.rows)]

    of_pool_step_box = of_pool_step_discrete

    def of_pool_draw_worlds(self) -> Any:
        rows = ints("int64", 3, below=4 * self.pool_rules.rows)
        worlds = np.zeros(6 * self.pool_rules.game_bytes, np.uint8)
        return [rows, 3, 2, self.belief(self.pool_rules, 3), worlds]

    def of_pool_reseed(self) -> Any:
        return [5]

    def of_pool_run_random(self) -> Any:
        return [2]

    def of_pool_check(self) -> Any:
        pool = self.kept["Pool"]
        return [pool.envs.ravel().copy(), pool.extra.ravel().copy()]

    def of_pool_load(self) -> Any:
        return [5, *self.of_pool_check(), self.kept["Pool"].memory.ravel().copy()]

    def of_pool_seated(self) -> Any:
        return [3]

    def of_pool_set_counting(self) -> Any:
        return [True, 0]

    def of_pool_set_weights(self) -> Any:
        return [list(self.pool_rules.default_weights)]

    def of_pool_set_config(self) -> Any:
        return [self.pool_rules]

    def of_pool_set_lineups(self) -> Any:
        seats = self.pool_rules.seats
        return [[1.0, 2.0], [0] * seats + [-2] * (seats - 1) + [0], [1, 0]]

    def of_pool_set_mixes(self) -> Any:
        return [[1, 2], [1.0, 1.0, 2.0], [0, 1, -2]]

    def of_pool_set_starts(self) -> Any:
        weights = list(self.pool_rules.default_weights)
        start = _native.make_state(self.pool_rules, 1, 0, False, weights)
        game, side = start.position()
        return [np.array([1.0, 2.0]), game, np.zeros(1, np.int32), side]

    def of_make_tree(self) -> Any:
        return [[self.thing("State")], 50, 9, bool(self.lots.integers(2))]

    def new_tree(self) -> Any:
        rules = self.rules["kuhn_poker"]
        state = _native.make_state(rules, 1, 0, False, list(rules.default_weights))
        return _native.make_tree([state], 50, 9, False)

    def of_tree_values(self) -> Any:
        return [np.full((len(self.kept["Tree"].seat), 2), self.lots.random())]

    def of_tree_best_response(self) -> Any:
        return [int(self.lots.integers(2)), *self.of_tree_values()]

    # Rollouts and goals

    def of_link_transitions(self) -> Any:
        seat, by_seat = ints("i1", STEPS, GAMES, 1, below=SEATS), (STEPS, GAMES, SEATS)
        opened = np.zeros(
            GAMES * SEATS, [(n, "i4") for n in ("row", "decisions", "role")] + [("r", "f4")]
        )
        flags = [ints("u1", STEPS, GAMES, below=3) // 2 for _ in range(2)]
        rows = [ints("i1", STEPS, GAMES, below=ROLES), ints("i2", STEPS, GAMES)]
        numbers = [SEATS, ROLES, 1, 0, 0.9, [0.9] * ROLES, [0.8] * ROLES, [1] * ROLES]
        given = [seat, *rows, reals(*by_seat, ROLES), *flags, reals(*by_seat)]
        maybe = [ints("i1", *by_seat, below=ROLES), ints("u2", *by_seat, below=3)]
        return [*numbers, *given, *maybe, opened.view(np.uint8), *self.links()]

    def links(self) -> list[Any]:
        """end, next, paid, discount, tail: every decision goes on at one that lies behind it."""
        first = GAMES * SEATS
        following = np.minimum(np.maximum(np.arange(PLACES) + 1, first), PLACES - 1)
        end = np.ones(PLACES, np.uint8)
        end[-1] = 2
        return [end, following.astype(np.int32), reals(PLACES), reals(PLACES), reals(PLACES)]

    def of_estimate_advantages(self) -> Any:
        sizes = [STEPS, GAMES, 1, SEATS, 1, 0.9, [0.9] * ROLES]
        role = ints("i1", STEPS, GAMES, below=ROLES)
        return [*sizes, role, reals(PLACES), *self.links(), *(reals(PLACES) for _ in range(3))]

    def of_find_goal_results(self) -> Any:
        seat = ints("i1", STEPS, GAMES, 1, below=SEATS)
        flags = [ints("u1", STEPS, GAMES, below=2) for _ in range(2)]
        return [
            SEATS,
            1,
            seat,
            *flags,
            ints("u4", STEPS, GAMES, SEATS, below=9),
            ints("u4", PLACES),
        ]

    def of_draw_hindsight(self) -> Any:
        return [ints("u4", 9, below=5), ints("i8", 4, below=9), 1, 2, 0.5, np.zeros(4, np.uint8)]

    def of_goals(self) -> Any:
        return [self.rules[GOALS]]

    def new_goals(self) -> Any:
        return _native.Goals(self.rules[GOALS])

    def of_goals_desired_goal(self) -> Any:
        return [int(self.lots.integers(2**32))]

    of_goals_achieved_goal = of_goals_desired_goal

    def of_goals_action(self) -> Any:
        return [1]

    def goal_row(self) -> Any:
        return ints("u1", self.rules[GOALS].obs_bytes, below=3)

    def of_goals_decision(self) -> Any:
        return [self.goal_row()]

    def of_goals_set_goal(self) -> Any:
        return [self.goal_row(), 1]

    def of_goals_goal_reward(self) -> Any:
        weights = list(self.rules[GOALS].default_weights)
        return [weights, 0, *self.of_goals_desired_goal(), 1, 0, 3]

    def of_goals_relabel(self) -> Any:
        rules = self.rules[GOALS]
        obs = ints("u1", 3, rules.obs_bytes, below=3)
        record = self.lots.integers(2**32, size=3, dtype=np.uint32)
        rest = [ints("u1", 3, rules.actions, below=2), ints("i4", 3), np.zeros(3, np.uint8)]
        return [record, obs, *rest]

    # Networks

    def of_widen(self) -> Any:
        return [ints("u1", 3, ROW_BYTES, below=4), reals(3, FEATURES), RUNS]

    def of_layers(self) -> Any:
        first = (FEATURES, WIDTH, [(0, WIDTH, FEATURES, 0, FEATURES * WIDTH, WIDTH, 1)])
        at = (FEATURES + 1) * WIDTH
        head = (WIDTH, HEADS, [(0, HEADS, WIDTH, at, at + WIDTH * HEADS, 1, WIDTH)])
        runs = RUNS if self.lots.random() < 0.7 else []
        self.reads_bytes = bool(runs)
        sparse = bool(runs) and bool(self.lots.random() < 0.5)
        return [runs, FEATURES, sparse, int(self.lots.integers(3)), HEADS, [(0, [first, head])], 2]

    def new_layers(self) -> Any:
        return _native.Layers(*self.of_layers())

    def weights(self) -> Any:
        return reals((FEATURES + 1) * WIDTH + (WIDTH + 1) * HEADS)

    def of_layers_load(self) -> Any:
        return [self.weights()]

    def of_layers_forward(self) -> Any:
        index = ints("i8", BATCH, below=3) if self.lots.random() < 0.5 else None
        obs = ints("u1", 3 if index is not None else BATCH, ROW_BYTES, below=4)
        return [obs, index, reals(BATCH, HEADS), True]

    def of_layers_forward_numbers(self) -> Any:
        return [reals(BATCH, FEATURES), reals(BATCH, HEADS), True]

    def of_layers_backward(self) -> Any:
        return [reals(BATCH, HEADS), self.weights(), reals(BATCH, FEATURES), False]

    def of_firstlayer(self) -> Any:
        return [RUNS, 2]

    def new_firstlayer(self) -> Any:
        return _native.FirstLayer(*self.of_firstlayer())

    def of_firstlayer_forward(self) -> Any:
        obs = ints("u1", BATCH, ROW_BYTES, below=4)
        return [obs, reals(FEATURES, WIDTH), reals(WIDTH), reals(BATCH, WIDTH)]

    def of_firstlayer_backward(self) -> Any:
        obs = ints("u1", BATCH, ROW_BYTES, below=4)
        return [obs, reals(BATCH, WIDTH), reals(FEATURES, WIDTH), reals(WIDTH)]

    def of_firstlayer_tanh(self) -> Any:
        return [reals(7), reals(7)]

    def of_groupedlayers(self) -> Any:
        return [RUNS, FEATURES, [WIDTH, WIDTH], HEADS, 1, 2, 2]

    def new_groupedlayers(self) -> Any:
        return _native.GroupedLayers(*self.of_groupedlayers())

    def of_groupedlayers_forward(self) -> Any:
        size = WIDTH * (FEATURES + 1) + WIDTH * (WIDTH + 1)
        slots = ints("i2", BATCH, below=2) + np.int16(1)
        obs = ints("u1", BATCH, ROW_BYTES, below=4)
        return [obs, slots, reals(2, size), reals(BATCH, HEADS)]

    def of_convolutions(self) -> Any:
        squares = SIDE * SIDE
        runs = [(0, PLANES * squares, 0, 0, 1.0), (PLANES * squares, 2, PLANES * squares, 0, 2.0)]
        return [SIDE, SIDE, PLANES, runs, 2]

    def new_convolutions(self) -> Any:
        return _native.Convolutions(*self.of_convolutions())

    def boards(self, channels: int) -> Any:
        return reals(BATCH, SIDE, SIDE, channels)

    def of_convolutions_apply(self) -> Any:
        kernel = [reals(3, 3, PLANES, CHANNELS), reals(CHANNELS)]
        return [
            self.boards(PLANES),
            *kernel,
            *(self.boards(CHANNELS) for _ in range(2)),
            True,
            self.boards(CHANNELS),
        ]

    def of_convolutions_kernel_gradient(self) -> Any:
        kernel = [reals(3, 3, PLANES, CHANNELS), reals(CHANNELS)]
        return [self.boards(PLANES), self.boards(CHANNELS), *kernel]

    def board_rows(self) -> Any:
        return ints("u1", BATCH, 32, below=3)

    def of_convolutions_stem(self) -> Any:
        weights = [reals(3, 3, PLANES, CHANNELS), reals(2, CHANNELS), reals(CHANNELS)]
        return [self.board_rows(), *weights, self.boards(CHANNELS)]

    def of_convolutions_stem_gradient(self) -> Any:
        weights = [reals(3, 3, PLANES, CHANNELS), reals(2, CHANNELS), reals(CHANNELS)]
        return [self.board_rows(), self.boards(CHANNELS), *weights]

    def of_sample_masked(self) -> Any:
        masks, ids = ints("u1", BATCH, ACTIONS, below=2), ints("u4", BATCH, below=9)
        made = [ints("i4", BATCH), reals(BATCH)]
        return [reals(BATCH, ACTIONS), masks, 1, ids, 2, 3, False, reals(BATCH), *made]

    def of_sample_gaussian(self) -> Any:
        made = [reals(BATCH, 3), reals(BATCH)]
        ids = ints("u4", BATCH, below=9)
        return [reals(BATCH, 6), 1, ids, 2, 3, False, reals(BATCH), True, *made]

    # Learning

    def of_ppoupdate(self) -> Any:
        return [2]

    def new_ppoupdate(self) -> Any:
        return _native.PPOUpdate(2)

    def of_ppoupdate_sample_actions(self) -> Any:
        masks, ids = ints("u1", BATCH, ACTIONS, below=2), ints("u4", BATCH, below=9)
        said = [reals(BATCH, ACTIONS + 1), masks, 1, ids, 2, 3, 1.0]
        return [*said, ints("i4", BATCH), None, reals(BATCH), reals(BATCH)]

    def of_ppoupdate_policy_loss(self) -> Any:
        lists = [ints("i8", BATCH, below=9), ints("i8", BATCH, below=8)]
        chosen = [ints("u1", 9, ACTIONS, below=2), ints("i4", 8, below=ACTIONS), None]
        judged = [*(reals(8) for _ in range(4)), ints("u1", 8, below=2)]
        knobs = [0.2, 0.2, 0.5, 0.01]
        return [
            reals(BATCH, ACTIONS + 1),
            *lists,
            *chosen,
            *judged,
            *knobs,
            reals(BATCH, ACTIONS + 1),
        ]

    def of_ppoupdate_example_loss(self) -> Any:
        said = [reals(BATCH, ACTIONS + 1), ints("u1", BATCH, ACTIONS, below=2)]
        return [*said, ints("i4", BATCH, below=ACTIONS), None, 0.5, reals(BATCH, ACTIONS + 1)]

    def of_ppoupdate_adam(self) -> Any:
        return [*(reals(9) for _ in range(3)), np.abs(reals(9)), 1, 1e-3, 1e-5, 1.0]

    def of_offpolicylosses(self) -> Any:
        return [2]

    def new_offpolicylosses(self) -> Any:
        return _native.OffPolicyLosses(2)

    def of_offpolicylosses_q_loss(self) -> Any:
        heads = [reals(BATCH, ACTIONS + 1) for _ in range(3)]
        masks = [ints("u1", BATCH, ACTIONS, below=2) for _ in range(2)]
        rest = [ints("i4", BATCH, below=ACTIONS), *(reals(BATCH) for _ in range(3)), True, 1.0]
        return [*heads, *masks, *rest, reals(BATCH, ACTIONS + 1), reals(BATCH)]

    def of_offpolicylosses_sample_actions(self) -> Any:
        return [reals(BATCH, 6), reals(BATCH, 3), reals(BATCH, 9), reals(BATCH)]

    def of_offpolicylosses_critic_loss(self) -> Any:
        rows = [reals(BATCH) for _ in range(4)]
        return [reals(BATCH, 2), reals(BATCH, 2), *rows, 0.2, reals(BATCH, 2), reals(BATCH)]

    def of_offpolicylosses_actor_loss(self) -> Any:
        return [reals(BATCH, 2), reals(BATCH), 0.2, reals(BATCH, 2)]

    def of_offpolicylosses_sample_gradient(self) -> Any:
        reads = [reals(BATCH, 9), reals(BATCH, 9)]
        return [reals(BATCH, 6), reals(BATCH, 3), *reads, 0.1, reals(BATCH, 6)]

    def of_offpolicylosses_polyak_update(self) -> Any:
        return [reals(9), 0.1, reals(9)]

    # Replay

    def of_replayring(self) -> Any:
        columns = [ints("u1", CAPACITY, ROW_BYTES), ints("u8", CAPACITY), ints("u1", CAPACITY, 2)]
        links = [ints("i4", CAPACITY), ints("u1", CAPACITY), *(np.zeros((2, CAPACITY), "f4"))]
        opened = np.full(CARRIED, -1, np.int64)
        sums = np.zeros(_native.tree_sums(CAPACITY), np.uint64)
        tree = [ints("u4", CAPACITY), sums] if self.lots.random() < 0.5 else [None, None]
        return [ACTIONS, 0, *columns, *links, opened, *tree, ints("u4", CAPACITY), 2]

    def new_replayring(self) -> Any:
        ring = _native.ReplayRing(*self.of_replayring())
        for _ in range(int(self.lots.integers(5))):
            ring.push(*self.of_replayring_push())
        return ring

    def of_replayring_push(self) -> Any:
        places = CARRIED + ROWS
        end = np.ones(places, np.uint8)
        end[:CARRIED], end[-2:] = 0, (3, 2)
        following = np.arange(1, places + 1, dtype=np.int32)
        following[-2] = 0
        seen = [ints("u1", places, ROW_BYTES, below=5), ints("u1", places, ACTIONS, below=2)]
        rows = [ints("i2", ROWS), ints("i1", ROWS), *seen, ints("i4", places, below=ACTIONS), None]
        cuts = [
            ints("i4", 3) - np.int32(0),
            reals(3),
            ints("u1", 1, ROW_BYTES),
            ints("u1", 1, ACTIONS),
        ]
        links = [end, following, reals(places), reals(places), np.full(CARRIED, -1, np.int32)]
        return [0, *rows, *links, *cuts, ints("u4", places, below=9)]

    def of_replayring_sample(self) -> Any:
        rows = [ints("u1", BATCH, ROW_BYTES), ints("u1", BATCH, ACTIONS), ints("i4", BATCH), None]
        after = [
            reals(BATCH),
            reals(BATCH),
            ints("u1", BATCH, ROW_BYTES),
            ints("u1", BATCH, ACTIONS),
        ]
        return [1, 2, 3, 0.5, *rows, *after, reals(BATCH), ints("i8", BATCH)]

    def of_replayring_reprioritize(self) -> Any:
        return [ints("i8", BATCH, below=CAPACITY), reals(BATCH), 0.6]

    def of_tree_sums(self) -> Any:
        return [CAPACITY]

    # Shogi

    def of_shogi_moves(self) -> Any:
        return [SFEN]

    def of_shogi_perft(self) -> Any:
        return [SFEN, 1]

    def of_shogi_camp(self) -> Any:
        return [SFEN, 1]
