"""Processes and what they use, as the system says it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from sparring.usage import PROC, busy_ticks, is_running

STAT = """cpu  700 0 70 9000 5 0 7 0 0 0
cpu0 100 0 10 3000 2 0 1 0 0 0
cpu1 200 0 20 3000 2 0 2 0 0 0
cpu2 400 0 40 3000 1 0 4 0 0 0
intr 12345 0 0
"""


def test_only_cores_that_may_be_used_count_as_busy() -> None:
    assert busy_ticks(STAT, {0, 1}) == 111 + 222
    assert busy_ticks(STAT, set()) == 777


@pytest.mark.skipif(not PROC.is_dir(), reason="there is no /proc")
def test_a_process_that_has_ended_does_not_run_though_nobody_asked() -> None:
    assert is_running(os.getpid())
    process = subprocess.Popen([sys.executable, "-c", ""])
    until = time.monotonic() + 20
    while is_running(process.pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_running(process.pid)
    process.wait()
    assert not is_running(process.pid)
