"""Rules in Python compile for a GPU and are linked to its kernels, on machines without one too."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparring import trusted
from sparring.errors import ConfigError, RulesError, SparringError
from sparring.games.rules import Rules
from sparring.pygames import registry

pytest.importorskip("torch")
for wheel in ("numba_cuda", "cuda.bindings", "nvidia"):
    if importlib.util.find_spec(wheel.partition(".")[0]) is None:
        pytest.skip(f"needs {wheel}: sparring[cuda-python-games]", allow_module_level=True)

from sparring.kernels import compiling, linking  # noqa: E402
from sparring.pools import Pool, cuda  # noqa: E402
from sparring.pools.cuda.sources import bundled_source, game_source  # noqa: E402
from sparring.search import cuda as search  # noqa: E402

FOLDER = Path(__file__).parents[2] / "examples" / "python_games"
EXAMPLES = [
    f"{FOLDER}/{name}" for name in ("connect_four.py:ConnectFour", "leduc_poker.py:LeducPoker")
]
RULES = """
import math
import numpy as np
from sparring.pygames import Float, Game, Int


class Rules(Game):
    '''One number goes up.'''

    seats = 1
    actions = 2
    state = {"at": Int(0, 20), "x": Float()}
    observation = {"at": 1}

    def reset(state, rng):
        state.at = rng.below(3)

    def legal(state, mask):
        mask[:] = True

    def observe(state, seat, obs):
        obs.at[0] = state.at

    def step(state, action, rewards):
        state.at += 1
        LINE
        return state.at == 20
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rules run by the interpreter here, so that only the GPU's compiler has to work."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(registry.INTERPRETED, "1")
    trusted.allow(*EXAMPLES)
    yield


def interpreted(word: str) -> Rules:
    trusted.allow(word)
    return Rules(registry.register(word))


def device_code(rules: Rules, arch: str = "sm_90") -> tuple[bytes, ...]:
    from sparring.pygames.on_gpu import DeviceRules

    return DeviceRules(registry.declaration_called(rules.name)).code(arch)


def written(tmp_path: Path, line: str) -> Rules:
    file = tmp_path / "rules_here.py"
    file.write_text(RULES.replace("LINE", line))
    return interpreted(f"{file}:Rules")


@pytest.mark.parametrize("word", EXAMPLES)
def test_rules_are_linked_to_the_kernels(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = interpreted(word)
    monkeypatch.setattr(registry, "lacks_on_gpu", lambda: "")
    sizes = cuda.sizes_of(rules, Pool(rules, 1, threads=1))
    source, defines, options = game_source(rules, cuda.SOURCE, dict(sizes))
    linked = options["linked"]("sm_90")
    assert linked is options["linked"]("sm_90")  # compiled once
    for unit, kernel in enumerate((b".text.open_rows", b".text.step")):
        one = compiling.program(
            source, defines | {"SPARRING_UNIT": unit}, exact=True, arch="sm_90", linked=linked
        )
        code = compiling.finish(one)
        assert kernel in code and b".text.sparring_rule" not in code  # all rules are inlined
        assert one.file.is_file() and compiling.read_cached(one.file) == code


def test_bundled_games_compile_as_ever() -> None:
    rules = Rules("tic_tac_toe")
    source, defines, options = game_source(rules, cuda.SOURCE, {"A": 1})
    assert source == cuda.SOURCE.format(name="tic_tac_toe")
    assert defines == {"A": 1} and not options
    one = compiling.program("int x;", {}, exact=True, arch="sm_90")
    assert one.options[1] == "-arch=sm_90"
    assert one.file.stem == compiling.fingerprint(one.source, one.options)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("state.x = np.zeros(3)[0]", "about the GPU, which makes no new lists and arrays"),
        ("state.x = sum([1, state.at])", "about the GPU"),
        ("state.x = math.sin(state.x)", "uses sin, which a GPU rounds in another way"),
        ("state.x = state.x ** 0.3", "uses pow, which a GPU rounds"),
    ],
)
def test_what_a_gpu_cannot_do_is_told(line: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(RulesError, match=told) as raised:
        device_code(written(tmp_path, line))
    assert "rules_here.py" in str(raised.value) and "\n" not in str(raised.value)


def test_exact_functions_are_fine(tmp_path: Path) -> None:
    line = "state.x = math.sqrt(abs(state.x)) + math.floor(state.x / 3)"
    assert len(device_code(written(tmp_path, line))) == 4


def test_code_that_is_newer_than_the_linker_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SparringError, match=r"nvJitLink \d+\.\d+ cannot link") as raised:
        linking.link(b"nothing", (b"no code",), "sm_90")
    assert "\n" not in str(raised.value)
    monkeypatch.setattr(linking, "linker_version", lambda: "13.0")
    monkeypatch.setattr(linking, "wheel_version", lambda name: "13.4")
    with pytest.raises(SparringError, match=r"nvvm 13\.4 is newer: .*'nvidia-nvjitlink>=13\.4'"):
        linking.link(b"nothing", (b"no code",), "sm_90")


def test_the_interpreter_and_searches_stay_on_the_cpu() -> None:
    rules = interpreted(EXAMPLES[0])
    with pytest.raises(RulesError, match=r"the interpreter runs on the CPU only.*--pool cpu"):
        game_source(rules, cuda.SOURCE, {})
    with pytest.raises(ConfigError, match=r"searches on a GPU are for bundled games"):
        bundled_source(rules, search.SOURCE, "searches")


def test_a_missing_compiler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = interpreted(EXAMPLES[0])
    monkeypatch.setattr(registry, "lacks_on_gpu", lambda: "")
    monkeypatch.setitem(__import__("sys").modules, "sparring.pygames.on_gpu", None)
    with pytest.raises(RulesError, match=r"cannot run on a GPU: .*pip install .*--pool cpu"):
        registry.rules_on_gpu(rules.name)
    monkeypatch.undo()
    monkeypatch.delenv(registry.INTERPRETED, raising=False)
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert "numba-cuda" in registry.lacks_on_gpu()
