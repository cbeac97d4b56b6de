"""Which inner loops networks use is found out by itself, and can be chosen."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sparring import _native

SAY = "from sparring import _native; print(_native.kernels_used())"


def said_with(kernels: str) -> subprocess.CompletedProcess[str]:
    """What a process says whose SPARRING_KERNELS is this."""
    env = os.environ | {"SPARRING_KERNELS": kernels}
    return subprocess.run(
        [sys.executable, "-c", SAY], env=env, capture_output=True, text=True, check=False
    )


def test_the_widest_are_used() -> None:
    if os.environ.get("SPARRING_KERNELS"):
        pytest.skip("chosen from outside")
    assert _native.kernels_used() == _native.kernel_names()[-1]


def test_they_can_be_chosen() -> None:
    narrowest = _native.kernel_names()[0]
    assert said_with(narrowest).stdout.strip() == narrowest


def test_a_wrong_name_is_told_with_those_that_are_there() -> None:
    wrong = said_with("avx1024")
    assert wrong.returncode
    last = wrong.stderr.strip().splitlines()[-1]
    assert "SPARRING_KERNELS=avx1024" in last
    assert all(name in last for name in _native.kernel_names())
