"""The modules of the browser against the native core, bit for bit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from sparring import _native
from sparring.games.rules import Rules, game_names
from sparring.games.state import State
from sparring.pools.native import Pool
from sparring.web.server import APP
from web.wasm import Module, WasmState

# Flags that change what is stepped, observed or drawn, beside the usual ones.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "cage2": [{}, {"preset": "CHALLENGE", "green": 1, "mask": 1, "scan_history": "ALL"}],
    "kuhhandel": [{}, {"num_players": 5, "history": 1, "reward": "POTENTIAL"}],
    "connect_four": [{}],
    "dark_hex": [{}, {"abrupt": 0}],
    "goofspiel": [{}, {"cards": 5, "order": "DRAWN", "hidden": 0}],
    "kuhn_poker": [{}],
    "kuhn_poker_3": [{}],
    "laser_hockey": [{}, {"mode": "MIXTURE", "scale_observation": 1}, {"profile": "FAST"}],
    "laser_hockey_discrete": [{}, {"mode": "MIXTURE"}],
    "leduc_poker": [{}],
    "liars_dice": [{}, {"dice": 2, "faces": 4}],
    "phantom_tic_tac_toe": [{}, {"abrupt": 1}],
    "shogi": [{}, {"observation": "PLANES46", "material": 0.5, "max_plies": 80}],
    "skull_king": [
        {},
        {"num_players": 3, "abilities": 1, "cannonball": 1, "scoring": "RASCAL", "history": 1},
        {"num_players": 8, "reward": "RANK", "open_bids": 1},
    ],
    "tic_tac_toe": [{}],
}
GAMES = [game for game in game_names() if game in VARIANTS]
THINKERS = {"ab2", "ab3"}
"""Bots that think for longer than a quick test has."""


class Twins:
    """The same game natively and in a module."""

    def __init__(self, module: Module, seed: int, *, skip_forced: bool) -> None:
        self.rules, self.module, self.seed = module.rules, module, seed
        self.native = _native.make_state(
            self.rules.native, seed, 0, skip_forced, self.rules.weights(None)
        )
        self.wasm: WasmState = module.state(seed, skip_forced=skip_forced)

    @property
    def over(self) -> bool:
        return self.native.terminated or self.native.truncated

    def check(self) -> None:
        """All that a step costs little to compare."""
        native, wasm, rules = self.native, self.wasm, self.rules
        assert wasm.save() == native.serialize()
        assert wasm.end() == (native.terminated, native.truncated, native.reason)
        assert wasm.rewards() == np.array(native.rewards(), np.float32).tobytes()
        for row in range(rules.rows):
            seat = native.seat(row)
            assert wasm.seat(row) == seat
            if seat < 0:
                continue
            assert wasm.call("role", row) == native.role(row)
            if not rules.box:
                assert np.flatnonzero(np.frombuffer(wasm.mask(row), np.uint8)).tolist() == (
                    native.legal(row)
                )
            assert wasm.observe(seat) == self.observe(seat)

    def check_views(self) -> None:
        """What every seat sees, as numbers and as text."""
        for seat in range(self.rules.seats):
            assert self.wasm.observe(seat) == self.observe(seat)
            assert self.wasm.call("score", seat) == self.native.score(seat)
        for viewer in range(-1, self.rules.seats):
            assert self.wasm.text(viewer) == self.native.text(viewer)

    def observe(self, seat: int) -> bytes:
        out = np.zeros(self.rules.obs_bytes, np.uint8)
        self.native.observe(seat, out)
        return out.tobytes()

    def act(self, rng: np.random.Generator, bots: list[int], share: float) -> None:
        """Play a decision of every row: a bot's with a probability, else any that is legal."""
        actions: list[Any] = []
        for row in range(self.rules.rows):
            if self.native.seat(row) < 0:
                actions.append([0.0] * self.rules.box if self.rules.box else 0)
            elif rng.random() < share:
                bot = int(rng.choice(bots))
                answer = self.native.bot_action(bot, row)
                assert self.wasm.ask(bot, row) == answer
                actions.append(answer if self.rules.box else int(answer[0]))
            elif self.rules.box:
                actions.append(rng.uniform(-1, 1, self.rules.box).astype(np.float32).tolist())
            else:
                actions.append(int(rng.choice(self.native.legal(row))))
        if self.rules.box:
            refused = self.native.apply_box([number for each in actions for number in each])
        else:
            refused = self.native.apply_discrete(actions)
        assert refused is None
        assert self.wasm.apply(actions)


def play(rules: Rules, decisions: int, seed: int, *, thinkers: bool, views: int) -> None:
    """Play games with all bots and at random, and compare after every decision.

    views: after how many decisions texts and all observations are compared too.
    """
    module = Module(rules)
    rng = np.random.default_rng(seed)
    bots = [i for i, name in enumerate(rules.bots) if thinkers or name not in THINKERS]
    played, games = 0, 0
    while played < decisions:
        twins = Twins(module, seed + (games << 33), skip_forced=bool(games % 2))
        share = (0.5, 1.0, 0.0)[games % 3]
        twins.check()
        for _ in range(max(decisions // 4, 20)):  # long games leave room for others
            twins.act(rng, bots, share)
            twins.check()
            played += 1
            if played % views == 0:
                twins.check_views()
            if twins.over or played == decisions:
                break
        twins.wasm.free()
        games += 1


def cases() -> list[Any]:
    return [
        pytest.param(game, flags, id=f"{game}-{i}")
        for game in GAMES
        for i, flags in enumerate(VARIANTS[game])
    ]


def test_every_game_is_compared():
    ours = set(game_names()) - {"corridor", "duel", "cage2_replay", "rock_paper_scissors", "stairs"}
    assert ours == set(VARIANTS)


@pytest.mark.parametrize(("game", "flags"), cases())
def test_plays_as_the_native_game(game, flags):
    decisions = 120 // len(VARIANTS[game])
    play(Rules(game, flags), decisions, seed=5, thinkers=False, views=25)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("game", "flags"), cases())
def test_plays_a_hundred_thousand_decisions_as_the_native_game(game, flags):
    decisions = 100_000 // len(VARIANTS[game])
    play(Rules(game, flags), decisions, seed=2**40 + 11, thinkers=False, views=250)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_bots_that_search_think_alike():
    play(Rules("shogi"), 400, seed=1, thinkers=True, views=100)


@pytest.mark.parametrize("game", GAMES)
def test_says_of_a_game_what_the_core_says(game):
    rules = Rules(game)
    module = Module(rules)
    assert module.about["rows"] == rules.rows
    assert module.about["roles"] == len(rules.roles)
    assert module.about["box"] == rules.box
    state = State(rules, 3, rules.weights(None))
    wasm = module.state(3)
    start = wasm.call("game")
    for field in module.about["fields"]:
        dtype = np.dtype(field["type"])
        held = module.read(start + field["offset"], dtype.itemsize * field["count"])
        assert np.array_equal(np.frombuffer(held, dtype), state.fields()[field["name"]])
    for action in range(0, rules.actions, max(1, rules.actions // 16)):
        assert module.text(module.call("action_name", module.config, action)) == (
            rules.action_name(action)
        )


def test_a_refused_action_changes_nothing():
    module = Module(Rules("tic_tac_toe"))
    state = module.state(0)
    assert state.apply([4])
    before = state.save()
    assert not state.apply([4])
    assert not state.apply([99])
    assert state.save() == before


def test_a_clone_and_a_loaded_state_go_on_alike():
    module = Module(Rules("skull_king"))
    state = module.state(7)
    copy, loaded = state.clone(), module.state(8)
    assert loaded.load(state.save()) == ""
    for each in (state, copy, loaded):
        each.apply([each.ask(1)[0]])
    assert state.save() == copy.save() == loaded.save()
    kept = loaded.save()
    assert loaded.load(b"too short") == "it was saved by another build"
    assert loaded.load(b"\xff" * len(kept)) != ""
    assert loaded.save() == kept


def test_a_position_is_set_up_or_refused():
    rules = Rules("shogi")
    module = Module(rules)
    state = module.state(0)
    before = state.save()
    room = module.put(np.array([1, 2, 3], np.int64).tobytes())
    native = State(rules, 0, rules.weights(None)).native
    wrong = module.text(state.call("setup", room, 3))
    assert wrong == native.setup([1, 2, 3])
    assert wrong
    assert state.save() == before


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("game", GAMES)
def test_a_whole_pool_plays_the_same_games(game):
    """Every game of a pool to its first end, by its number."""
    games = 32
    rules = Rules(game)
    module = Module(rules)
    pool = Pool(rules, games, seed=9, threads=2)
    batch = pool.reset()
    states = [module.state(9, game=number) for number in range(games)]
    running = set(range(games))  # every game has a limit of its own
    while running:
        for number in running:
            for row in range(rules.rows):
                at = number * rules.rows + row
                seat = states[number].seat(row)
                assert batch.seat[at] == seat
                if seat >= 0:
                    assert states[number].observe(seat) == batch.obs[at].tobytes()
                    assert rules.box or states[number].mask(row) == batch.mask[at].tobytes()
        actions = pool.sample_actions()
        taken = np.array(actions).reshape(games, rules.rows, -1)
        batch = pool.step(actions)
        for number in list(running):
            state = states[number]
            assert state.apply(taken[number].ravel())
            ended = batch.terminated[number], batch.truncated[number]
            assert state.end()[:2] == tuple(map(bool, ended))
            if any(ended):
                running.discard(number)


def test_a_module_has_all_that_the_page_calls():
    module = Module(Rules("tic_tac_toe"))
    called = set()
    for file in (APP / "engine").glob("*.js"):
        called |= set(re.findall(r"native\.([a-z_]+)", file.read_text()))
    assert "network_draw" in called
    assert called <= {"memory", *module.functions}
