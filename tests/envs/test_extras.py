"""The adapters need packages that the library itself does not."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("gymnasium", "gymnasium", "gymnasium"),
        ("pettingzoo", "pettingzoo", "pettingzoo"),
        ("pettingzoo", "gymnasium", "pettingzoo"),
        ("sb3", "stable_baselines3", "sb3"),
    ],
)
def test_a_missing_package_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str, extra: str
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"sparring.envs.{module}", raising=False)
    with pytest.raises(ImportError) as caught:
        importlib.import_module(f"sparring.envs.{module}")
    assert f'needs {package}; pip install "sparring[{extra}]"' in str(caught.value)


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    program = "import sys, sparring.envs, sparring.envs.seat; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    optional = {"gymnasium", "pettingzoo", "stable_baselines3", "torch"}
    assert not optional & set(loaded)
