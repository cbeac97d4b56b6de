"""Every game compiles for the GPU, on machines without one too, and is compiled only once.

Most programs are compiled up to PTX: the compiler has then read and optimized everything. To
assemble that for one GPU takes four times as long and is done for one pool and one learner; on a
machine with a GPU its own tests do it for every game.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sparring import _native, kernels
from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.kernels import compiling
from sparring.learn.fused import kernels as learner
from sparring.nets.frozen import gpu
from sparring.nets.inputs import Inputs
from sparring.nets.run import flat
from sparring.pools import cuda
from sparring.pools.cuda import worlds
from sparring.pools.native import Pool
from sparring.search import cuda as search

pytest.importorskip("cuda.bindings", reason="needs the extra: pip install 'sparring[cuda]'")
GAMES = sorted(_native.game_names())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sparring" / "kernels"


def ptx(source: str, defines: Mapping[str, object], *, exact: bool) -> bytes:
    """What the assembler is given; all that it calls must be there."""
    from cuda.bindings import nvrtc

    one = compiling.program(source, defines, exact=exact, arch="compute_90", draft=True)
    made = compiling.checked(nvrtc.nvrtcCreateProgram(one.source.encode(), b"k.cu", 0, [], []), "")
    words = [option.encode() for option in one.options]
    (failed,) = nvrtc.nvrtcCompileProgram(made, len(words), words)
    log = bytes(compiling.checked(nvrtc.nvrtcGetProgramLogSize(made), ""))  # not b" ": it is shared
    nvrtc.nvrtcGetProgramLog(made, log)
    assert not int(failed), log.decode()
    code = bytes(compiling.checked(nvrtc.nvrtcGetPTXSize(made), ""))
    compiling.checked(nvrtc.nvrtcGetPTX(made, code), "")
    nvrtc.nvrtcDestroyProgram(made)
    assert b".extern .func" not in code
    return code


def learner_constants(game: str, *, bf16: bool) -> dict[str, object]:
    return {**learner.action_constants(Rules(game), bf16=bf16)}


def pool_code(game: str, memory: int) -> bytes:
    rules = Rules(game)
    sizes = cuda.sizes_of(rules, Pool(rules, 1, threads=1), memory=memory)
    return ptx(cuda.SOURCE.format(name=game), sizes, exact=True)


TINY = 'extern "C" __global__ void tiny(int* x) { *x = NUMBER; }'


def tiny_code(number: int = 1) -> bytes:
    return kernels.compiled(TINY, {"NUMBER": number}, exact=False, arch="sm_90", draft=True)


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


@pytest.mark.few(6)
@pytest.mark.parametrize("game", GAMES)
def test_a_pool_compiles(game: str) -> None:
    code = pool_code(game, 0)
    for kernel in (b"step", b"open_rows", b"sample_actions", b"expand_masks"):
        assert kernel in code


def test_the_compiler_writes_into_nothing_that_python_shares() -> None:
    pool_code("tic_tac_toe", 0)
    letters = bytes(range(256))
    assert [letters[i : i + 1][0] for i in range(256)] == [*letters]


def test_a_pool_with_memory_compiles() -> None:
    assert pool_code("tic_tac_toe", 32) != pool_code("tic_tac_toe", 0)


# One game of each kind: stored positions with extra state, chance and hidden parts, several seats,
# several rows, continuous actions. Shogi takes minutes.
@pytest.mark.parametrize("game", ["connect_four", "cage2", "signal", "rock_paper_scissors", "duel"])
def test_searches_compile(game: str) -> None:
    rules = Rules(game)
    sizes = cuda.sizes_of(rules, Pool(rules, 1, threads=1))
    code = ptx(search.SOURCE.format(name=game), sizes, exact=True)
    for kernel in (b"begin_search", b"advance_search", b"decide_roots"):
        assert kernel in code


@pytest.mark.few(3)
@pytest.mark.parametrize("game", [name for name in GAMES if Rules(name).hides])
def test_worlds_compile(game: str) -> None:
    assert b"draw_worlds" in ptx(worlds.SOURCE.format(name=game), {}, exact=True)


# Games differ for the learner in sizes alone, except that actions are discrete or continuous. Shogi
# has the most actions by far.
@pytest.mark.parametrize(
    ("game", "bf16"),
    [("skull_king", False), ("skull_king", True), ("duel", False), ("duel", True), ("shogi", True)],
)
def test_the_learner_compiles(game: str, bf16: bool) -> None:
    code = ptx(learner.PPO_SOURCE, learner_constants(game, bf16=bf16), exact=False)
    for kernel in (
        b"draw",
        b"estimate_advantages",
        b"loss",
        b"compute_step_params",
        b"adam",
        b"move_pending",
    ):
        assert kernel in code
    assert b"widen" not in code


def test_the_learner_is_assembled() -> None:
    constants = learner_constants("skull_king", bf16=True)
    code = kernels.compiled(learner.PPO_SOURCE, constants, exact=False, arch="sm_90", draft=True)
    assert b".text.adam" in code


@pytest.mark.few(2)
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize(("game", "memory"), [("skull_king", 0), ("duel", 32), ("shogi", 0)])
def test_a_network_compiles_without_the_learner(game: str, memory: int, bf16: bool) -> None:
    code = ptx(flat.SOURCE, flat.row_constants(Inputs(Rules(game), memory), bf16=bf16), exact=False)
    for kernel in (b"widen", b"activate", b"backward_activation", b"sum_columns"):
        assert kernel in code
    assert b"adam" not in code


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize(("game", "memory"), [("skull_king", 32), ("shogi", 0)])
def test_frozen_networks_compile(game: str, memory: int, bf16: bool) -> None:
    constants = flat.row_constants(Inputs(Rules(game), memory), bf16=bf16)
    code = ptx(gpu.SOURCE, constants, exact=False)
    for kernel in (b"place_rows", b"widen_sorted", b"copy_boards", b"grouped_product"):
        assert kernel in code


REPLAY = """
#include "core/replay.hpp"
using namespace sparring;
extern "C" __global__ void take(RingView ring, SamplesView out, SumTree tree, u64 seed, int n) {
  const int i = static_cast<int>(threadIdx.x);
  Rng rng = sample_rng(seed, i, 0);
  const int place = tree.leaf ? draw_leaf(tree, rng) : pick(ring, 0, ring.capacity, rng);
  take_sample(ring, out, i, place, n_step_return(ring, place, n));
  out.weight[i] = correction_of(tree.leaf[place], 1, 0.5f);
  tree.leaf[place] = weight_of(out.reward[i], 0.6f);
  for (int level = 1; level <= tree_height(tree.leaves); ++level)
    sum_node(tree, tree_level(tree.leaves, level), node_above(place, level));
}
"""


def test_the_replay_compiles() -> None:
    """What CPU and GPU share of it; fused multiply-add is off, as bits must be equal."""
    assert b"take" in ptx(REPLAY, {}, exact=True)


HINDSIGHT = """
#include "core/goals.hpp"
#include "games/{name}.hpp"
#include "core/goals.hpp"
using namespace sparring;
using G = ::sparring::{name}::Game;
extern "C" __global__ void see(RolloutView v, RingView ring, SamplesView out, const u32* record,
                               u32* of_place, const G::Config* config, const f32* weight, int n) {{
  const int i = static_cast<int>(threadIdx.x);
  goal_results_of_game(v, record, of_place, i);
  if (draws_hindsight(7, static_cast<u32>(i), 0, 0.5f))
    relabel_sample<G>(*config, weight, ring, of_place, out, i, n);
}}
"""


@pytest.mark.parametrize("game", ["skull_king", "stairs"])
def test_hindsight_compiles(game: str) -> None:
    assert b"see" in ptx(HINDSIGHT.format(name=game), {}, exact=True)


def test_many_actions_compile() -> None:
    many = {"SPARRING_ACTIONS": 2187, "SPARRING_LEGAL_WORDS": 35}
    constants = learner_constants("skull_king", bf16=True) | many
    assert b"draw" in ptx(learner.PPO_SOURCE, constants, exact=False)


def test_what_was_compiled_is_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tiny_code()
    (file,) = (own_cache / "sm_90").iterdir()
    monkeypatch.setattr(compiling, "run_compiler", lambda *_: pytest.fail("compiled again"))
    assert tiny_code() == code
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache.parents[1]))
    file.write_bytes(file.read_bytes()[:-7])  # a damaged file is not trusted
    assert tiny_code() == code
    assert tiny_code(2) != code
    assert len(list((own_cache / "sm_90").iterdir())) == 2


def test_what_another_process_is_compiling_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many processes of one run ask for the same program at once."""
    one = compiling.program(TINY, {"NUMBER": 3}, exact=False, arch="sm_90", draft=True)
    monkeypatch.setattr(compiling, "run_compiler", lambda *_: pytest.fail("compiled again"))
    with compiling.locked(one.file):
        compiling.start(one)
        compiling.write_cache(one.file, b"made elsewhere")
    assert compiling.finish(one) == b"made elsewhere"
    assert [file.suffix for file in one.file.parent.iterdir()] == [".cubin"]


def test_a_cache_that_cannot_be_written_is_done_without(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("in the way")
    assert b"tiny" in tiny_code()


def test_complaints_of_the_compiler_are_shown() -> None:
    with pytest.raises(SparringError, match="not_a_type"):
        kernels.compiled("not_a_type x;", {}, exact=False, arch="sm_90")
