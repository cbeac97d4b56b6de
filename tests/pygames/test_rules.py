"""Rules in Python: equal to native ones, interpreted and compiled, in everything above the pool."""

from __future__ import annotations

import ctypes
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import sparring
from reference.philox import CHANCE, Philox
from sparring import trusted
from sparring.errors import RulesError, StateError, UntrustedError
from sparring.proof.conformance import check
from sparring.proof.python_rules import compare
from sparring.pygames.draws import Rng, philox
from sparring.pygames.interpreted import Signed
from sparring.pygames.registry import is_env, register

FOLDER = Path(__file__).parents[2] / "examples" / "python_games"
CONNECT_FOUR = f"{FOLDER}/connect_four.py:ConnectFour"
LEDUC = f"{FOLDER}/leduc_poker.py:LeducPoker"
OH_HELL = f"{FOLDER}/oh_hell.py:OhHell"
NATIVE = {CONNECT_FOUR: "connect_four", LEDUC: "leduc_poker"}


@pytest.fixture(autouse=True)
def trust() -> None:
    trusted.allow(CONNECT_FOUR, LEDUC, OH_HELL)


def interpreted(word: str) -> sparring.Rules:
    return sparring.Rules(register(word, interpreted=True))


def compiled(word: str) -> sparring.Rules:
    pytest.importorskip("numba")
    return sparring.Rules(word)


def native(word: str) -> sparring.Rules:
    return sparring.Rules(NATIVE[word])


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5, -7])
def test_draws_equal_those_of_the_core(seed: int) -> None:
    bits = seed % 2**64
    words = np.zeros(12, np.uint32)
    words[:7] = [bits & 0xFFFFFFFF, bits >> 32, 3, 2, CHANCE, 0, 0xFFFFFFFF]
    rng = Rng(words.view(np.int32).view(Signed))
    reference = Philox(bits, 3, 2, CHANCE)
    counts = [1, 2, 52, 1000, 2**31 - 1] * 40
    assert [rng.below(n) for n in counts] == [reference.below(n) for n in counts]
    assert philox(1, 2, 3, 4, (5, 6)) == philox(1, 2, 3, 4, (5, 6))


def test_draws_are_refused_outside_their_range() -> None:
    rng = Rng(np.zeros(12, np.int32).view(Signed))
    for wrong in (0, -1, 2**31):
        with pytest.raises(ValueError, match="below"):
            rng.below(wrong)
    with pytest.raises(TypeError, match="whole number"):
        rng.below(2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("word", [CONNECT_FOUR, LEDUC])
def test_interpreted_rules_equal_native_ones(word: str) -> None:
    assert compare(interpreted(word), native(word), games=8, steps=60, seed=4) >= 400


@pytest.mark.parametrize("word", [CONNECT_FOUR, LEDUC])
def test_compiled_rules_equal_native_ones(word: str) -> None:
    assert compare(compiled(word), native(word), games=512, steps=100, seed=4) >= 50_000


@pytest.mark.parametrize("word", [CONNECT_FOUR, LEDUC, OH_HELL])
def test_compiled_rules_equal_interpreted_ones(word: str) -> None:
    assert compare(compiled(word), interpreted(word), games=4, steps=150, seed=9) >= 400


@pytest.mark.slow
@pytest.mark.timeout(3600)  # the interpreter plays 1,500 to 5,000 decisions per second
@pytest.mark.parametrize("word", [CONNECT_FOUR, LEDUC, OH_HELL])
def test_a_million_decisions_are_equal(word: str) -> None:
    assert compare(compiled(word), interpreted(word), games=500, steps=2001, seed=1) >= 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("word", [CONNECT_FOUR, LEDUC, OH_HELL])
def test_the_examples_pass_the_check(word: str) -> None:
    report = check(word, games=10)
    assert report.passed, report


def test_threads_change_nothing() -> None:
    rules = compiled(OH_HELL)
    pools = [sparring.Pool(rules, 64, seed=2, threads=threads) for threads in (1, 3)]
    for pool in pools:
        pool.reset()
        pool.run_random(200)
    assert pools[0].digest() == pools[1].digest()
    assert pools[0].counts().tolist() == pools[1].counts().tolist()


def test_roles_parts_scores_and_statistics() -> None:
    rules = interpreted(OH_HELL)
    assert rules.roles == ("bidder", "player") and rules.parts == ("points", "kept")
    pool = sparring.Pool(rules, 4, seed=1, threads=1)
    batch = pool.reset()
    assert batch.reward.shape == (4, 4, 2)
    total = np.zeros(4)
    while not batch.terminated[0]:
        batch = pool.step(pool.sample_actions())
        total += batch.reward[0, :, 0]
    at = list(batch.final_game).index(0)
    assert batch.final_score[at] == pytest.approx(10 * total, abs=1e-3)
    bids, kept = pool.counts().tolist()
    assert bids >= 28 and 0 < kept < bids
    pool.set_rewards({"kept": (0.0, 2.0)})
    assert pool.weights() == [0, 0, 0, 2]


def test_live_flags_and_fixed_deals() -> None:
    pool = sparring.Pool(interpreted(OH_HELL), 2, seed=1, threads=1)
    pool.reset()
    pool.set_config(rounds=1)
    lengths = []
    for _ in range(200):
        batch = pool.step(pool.sample_actions())
        lengths += list(batch.final_length)
    assert lengths[-1] == 8  # four bids, one trick
    config = {"deal": 17}
    both = [
        sparring.new_state(game, config=config) for game in (interpreted(LEDUC).name, "leduc_poker")
    ]
    assert both[0].fields()["cards"].tolist() == both[1].fields()["cards"].tolist()
    with pytest.raises(sparring.ConfigError, match="deal=120"):
        sparring.Rules(LEDUC, {"deal": 120})


def test_hidden_cards_are_drawn_anew() -> None:
    state = sparring.new_state(interpreted(LEDUC), seed=3)
    hands = set()
    for seed in range(40):
        other = state.clone()
        assert other.resample_hidden(0, seed)
        assert (other.observe_bytes(0) == state.observe_bytes(0)).all()
        hands.add(tuple(other.fields()["cards"].tolist()))
    assert len(hands) > 10


def test_states_are_saved_loaded_and_checked() -> None:
    state = sparring.new_state(interpreted(CONNECT_FOUR), seed=3)
    for action in (3, 3, 2):
        state.apply(action)
    raw = state.serialize()
    again = sparring.load_state(raw)
    assert str(again) == str(state) and again.legal() == state.legal()
    head, body = raw.split(b"\n", 1)
    broken = bytearray(body)
    broken[8] = 7  # a stone of nobody
    header = json.loads(head)
    header["sha256"] = hashlib.sha256(bytes(broken)).hexdigest()
    with pytest.raises(StateError, match=r"board is not in 0\.\.2"):
        sparring.load_state(json.dumps(header).encode() + b"\n" + bytes(broken))
    header["rules_version"] += 1
    with pytest.raises(StateError, match="rules version"):
        sparring.load_state(json.dumps(header).encode() + b"\n" + bytes(broken))


def test_pools_are_saved_and_loaded() -> None:
    rules = interpreted(LEDUC)
    pool = sparring.Pool(rules, 8, seed=5, threads=1)
    pool.reset()
    pool.run_random(10)
    other = sparring.Pool(rules, 8, seed=6, threads=1)
    other.load_state(pool.state())
    for each in (pool, other):
        each.run_random(20)
    assert pool.digest() == other.digest()


def test_code_runs_only_if_the_user_named_it(tmp_path: Path) -> None:
    file = tmp_path / "unnamed_rules.py"
    file.write_text("raise SystemExit('it ran')\n")
    with pytest.raises(UntrustedError, match="--trust"):
        sparring.Rules(f"{file}:Rules")
    assert is_env(f"{file}:Rules")


def test_a_call_from_python_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "called_rules.py"
    file.write_text((FOLDER / "connect_four.py").read_text())
    pool = sparring.Pool(f"{file}:ConnectFour", 2, seed=1, threads=1)
    assert pool.rules.actions == 7


def test_a_class_that_is_no_game_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other_class.py"
    file.write_text("class Rules:\n    pass\n")
    trusted.allow(f"{file}:Rules")
    with pytest.raises(RulesError, match=r"no sparring\.Game"):
        register(f"{file}:Rules")


def test_without_numba_the_interpreter_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    from sparring.errors import SparringWarning
    from sparring.pygames import registry

    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.warns(SparringWarning, match="pip install"):
        assert not registry.may_compile("my_game.py:Game")


def test_the_call_has_the_layout_of_the_core() -> None:
    from sparring.pygames.interpreted import CALL

    assert CALL.itemsize == 7 * ctypes.sizeof(ctypes.c_void_p) + 8 + 4 * 8
