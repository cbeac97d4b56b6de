"""Every game header compiles for the GPU, on machines without one too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = """
#include "core/advantage.hpp"
#include "core/table.hpp"
#include "{header}"
using G = sparring::{name}::Game;
static_assert(sparring::Game<G>);

// Everything a GPU pool calls, so that nothing escapes the compiler.
extern "C" __global__ void play_all(
    sparring::Table<G>* tables, const sparring::Setting<G>* setting, unsigned char* side,
    sparring::Legal<G>* legal, const G::Action* actions, float* reward, unsigned short* skipped,
    unsigned char* obs, unsigned char* mask, float* score, sparring::RolloutView* rollout) {{
  const unsigned game = blockIdx.x * blockDim.x + threadIdx.x;
  sparring::begin(tables[game], *setting, game, side, legal + game * G::kRows);
  const sparring::Result result =
      sparring::answer(tables[game], *setting, game, side, legal + game * G::kRows,
                       actions + game * G::kRows, reward, skipped);
  if (result.over()) score[game] = tables[game].game.score(setting->config, 0);
  sparring::call_observe(tables[game].game, setting->config, 0, obs, side);
  sparring::expand_bits(legal[game], setting->shape.actions, mask);
  sparring::link_game(*rollout, static_cast<int>(game));
  sparring::advantages_of_game(*rollout, static_cast<int>(game));
}}
"""


def games() -> list[tuple[str, str]]:
    """The games of the build's list, and the test game."""
    listed = re.search(r"set\(SPARRING_GAMES(.*?)\)", (ROOT / "CMakeLists.txt").read_text(), re.S)
    assert listed is not None
    return [(n, f"games/{n}.hpp") for n in listed[1].split()] + [("duel", "tests/duel.hpp")]


@pytest.mark.parametrize(("name", "header"), games())
def test_header_compiles_as_device_code(name: str, header: str) -> None:
    core = pytest.importorskip("cuda.core", reason="needs the extra: pip install 'sparring[cuda]'")
    options = core.ProgramOptions(
        std="c++20",
        arch="sm_90",
        include_path=str(ROOT / "csrc"),
        device_as_default_execution_space=True,
        fma=False,
        ofast_compile="max",
    )
    source = KERNEL.format(name=name, header=header)
    compiled = core.Program(source, "c++", options).compile("cubin")
    assert b"play_all" in compiled.code
