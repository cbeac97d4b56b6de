"""Every game compiles for the GPU, on machines without one too, and is compiled only once."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparring import _native, kernels
from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.kernels import compiling
from sparring.learn.fused import kernels as learner
from sparring.nets import flat, grouped_pass
from sparring.nets.inputs import Inputs
from sparring.pools import cuda
from sparring.pools.native import Pool

pytest.importorskip("cuda.bindings", reason="needs the extra: pip install 'sparring[cuda]'")
GAMES = sorted(_native.game_names())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sparring" / "kernels"


def learn_code(game: str = "skull_king", *, bf16: bool = True, **sizes: int) -> bytes:
    constants = learner.action_constants(Rules(game), bf16=bf16) | sizes
    return kernels.compiled(learner.PPO_SOURCE, constants, exact=False, arch="sm_90", draft=True)


def pool_code(game: str, memory: int) -> bytes:
    rules = Rules(game)
    sizes = cuda.sizes_of(rules, Pool(rules, 1, threads=1), memory=memory)
    source = cuda.SOURCE.format(name=game)
    return kernels.compiled(source, sizes, exact=True, arch="sm_90", draft=True)


def test_programs_are_compiled_side_by_side_and_told_of(
    own_cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun ahead is not begun again; a pool in two units has every kernel once."""
    monkeypatch.setattr(compiling.PROGRESS, "quiet", False)  # a quiet training may have gone before
    rules = Rules("tic_tac_toe")
    sizes = cuda.sizes_of(rules, Pool(rules, 1, threads=1))
    units = [
        compiling.program(
            cuda.SOURCE.format(name=rules.name),
            sizes | {"SPARRING_UNIT": unit},
            exact=True,
            arch="sm_90",
            draft=True,
            what=rules.name,
        )
        for unit in range(cuda.UNITS)
    ]
    begun = [compiling.start(unit) for unit in units]
    assert [compiling.start(unit) for unit in units] == begun
    rest, step = (compiling.finish(unit) for unit in units)
    for name in (b".text.open_rows", b".text.sample_actions", b".text.expand_masks"):
        assert name in rest and name not in step
    assert b".text.step" in step and b".text.step" not in rest
    assert len(list((own_cache / "sm_90").iterdir())) == cuda.UNITS
    said = capsys.readouterr()
    assert said.err == "compiling kernels for tic_tac_toe, once per machine ...\n"
    assert said.out == ""


@pytest.mark.parametrize("game", GAMES)
def test_a_pool_compiles(game: str) -> None:
    code = pool_code(game, 0)
    for kernel in (b"step", b"open_rows", b"sample_actions", b"expand_masks"):
        assert kernel in code


def test_a_pool_with_memory_compiles() -> None:
    assert pool_code("tic_tac_toe", 32) != pool_code("tic_tac_toe", 0)


# Games differ for the learner in sizes alone, except that actions are discrete or continuous. Shogi
# has the most actions by far.
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("game", ["skull_king", "duel", "shogi"])
def test_the_learner_compiles(game: str, bf16: bool) -> None:
    code = learn_code(game, bf16=bf16)
    for kernel in (b"draw", b"estimate_advantages", b"loss", b"plan_step", b"adam", b"carry"):
        assert kernel in code
    assert b"widen" not in code


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize(("game", "memory"), [("skull_king", 0), ("duel", 32), ("shogi", 0)])
def test_a_network_compiles_without_the_learner(game: str, memory: int, bf16: bool) -> None:
    constants = flat.row_constants(Inputs(Rules(game), memory), bf16=bf16)
    code = kernels.compiled(flat.SOURCE, constants, exact=False, arch="sm_90", draft=True)
    for kernel in (b"widen", b"activate", b"backward_activation", b"sum_columns"):
        assert kernel in code
    assert b"adam" not in code


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize(("game", "memory"), [("skull_king", 32), ("shogi", 0)])
def test_frozen_networks_compile(game: str, memory: int, bf16: bool) -> None:
    constants = flat.row_constants(Inputs(Rules(game), memory), bf16=bf16)
    code = kernels.compiled(grouped_pass.SOURCE, constants, exact=False, arch="sm_90", draft=True)
    for kernel in (b"place_rows", b"widen_sorted", b"lay_boards", b"grouped_product"):
        assert kernel in code


REPLAY = """
#include "core/replay.hpp"
using namespace sparring;
extern "C" __global__ void take(RingView ring, SamplesView out, SumTree tree, u64 seed, int n) {
  const int i = static_cast<int>(threadIdx.x);
  Rng rng = sample_rng(seed, i, 0);
  const int place = tree.leaf ? draw_leaf(tree, rng) : pick(ring, 0, ring.capacity, rng);
  take_sample(ring, out, i, place, follow(ring, place, n));
  out.weight[i] = correction_of(tree.leaf[place], 1, 0.5f);
  tree.leaf[place] = weight_of(out.paid[i], 0.6f);
  for (int level = 1; level <= tree_height(tree.leaves); ++level)
    sum_node(tree, tree_level(tree.leaves, level), node_above(place, level));
}
"""


def test_the_replay_compiles() -> None:
    """What CPU and GPU share of it; fused multiply-add is off, as bits must be equal."""
    assert b"take" in kernels.compiled(REPLAY, {}, exact=True, arch="sm_90", draft=True)


HINDSIGHT = """
#include "core/goals.hpp"
#include "games/{name}.hpp"
#include "core/goals.hpp"
using namespace sparring;
using G = ::sparring::{name}::Game;
extern "C" __global__ void see(RolloutView v, RingView ring, SamplesView out, const u32* record,
                               u32* of_place, const G::Config* config, const f32* weight, int n) {{
  const int i = static_cast<int>(threadIdx.x);
  record_of_game(v, record, of_place, i);
  if (drawn_for_hindsight(7, static_cast<u32>(i), 0, 0.5f))
    relabel_sample<G>(*config, weight, ring, of_place, out, i, n);
}}
"""


@pytest.mark.parametrize("game", ["skull_king", "stairs"])
def test_hindsight_compiles(game: str) -> None:
    source = HINDSIGHT.format(name=game)
    assert b"see" in kernels.compiled(source, {}, exact=True, arch="sm_90", draft=True)


def test_many_actions_compile() -> None:
    assert b"draw" in learn_code(SPARRING_ACTIONS=2187, SPARRING_LEGAL_WORDS=35)


def test_what_was_compiled_is_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = learn_code()
    (file,) = (own_cache / "sm_90").iterdir()
    monkeypatch.setattr(compiling, "run_compiler", lambda *_: pytest.fail("compiled again"))
    assert learn_code() == code
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache.parents[1]))
    file.write_bytes(file.read_bytes()[:-7])  # a damaged file is not trusted
    assert learn_code() == code
    assert learn_code(bf16=False) != code
    assert len(list((own_cache / "sm_90").iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_done_without(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("in the way")
    assert b"adam" in learn_code()


def test_complaints_of_the_compiler_are_shown() -> None:
    with pytest.raises(SparringError, match="not_a_type"):
        kernels.compiled("not_a_type x;", {}, exact=False, arch="sm_90")
