"""Two nodes of a Ray cluster on this machine, with addresses of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

HEAD, SECOND = "10.77.0.2", "10.77.0.3"
PORT = 6379
NAMES = {HEAD: "sparring2", SECOND: "sparring3"}
BRIDGE = "sparring0"
STORE = "120000000"
"""Bytes of a node's object store."""


def run(*words: str, check: bool = True) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert not check or done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def can_make_networks() -> bool:
    """Whether network namespaces can be made here."""
    if shutil.which("ip") is None or os.geteuid():
        return False
    made = subprocess.run(["ip", "netns", "add", "sparring9"], capture_output=True, check=False)
    run("ip", "netns", "del", "sparring9", check=False)
    return made.returncode == 0


class TwoNodes:
    """A head node, and a second one that comes and goes."""

    def __init__(self, cpus: int = 1) -> None:
        """cpus: that each has, as Ray counts them."""
        self.cpus = cpus

    def __enter__(self) -> TwoNodes:
        self.folder = Path(tempfile.mkdtemp(prefix="nodes-", dir="/tmp"))
        token = self.folder / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32))
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("RAY_")},
            **{"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)},
            **{"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"},
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        self._remove_networks()
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "link", "set", BRIDGE, "up")
        for address, name in NAMES.items():
            outside = f"{name}v"
            run("ip", "netns", "add", name)
            pair = ("type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "add", outside, *pair)
            run("ip", "link", "set", outside, "master", BRIDGE, "up")
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                run("ip", "-n", name, "link", "set", device, "up")
        place = ("--head", f"--port={PORT}", f"--temp-dir={self.folder / 'ray'}")
        self._start(HEAD, *place, "--include-dashboard=false", cpus=self.cpus)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for address in NAMES:
            self.kill(address)
        self._remove_networks()
        shutil.rmtree(self.folder, ignore_errors=True)

    def join(self) -> None:
        """Start the second node."""
        self._start(SECOND, f"--address={HEAD}:{PORT}", cpus=self.cpus)

    def _start(self, address: str, *words: str, cpus: int) -> None:
        room = (f"--num-cpus={cpus}", f"--object-store-memory={STORE}", "--disable-usage-stats")
        ray = str(Path(sys.executable).with_name("ray"))
        self.run(address, ray, "start", *words, f"--node-ip-address={address}", *room)

    def run(self, address: str, *words: str) -> None:
        command = [*inside(address), *words]
        subprocess.run(
            command, env=self.environment, check=True, timeout=180, stdout=subprocess.DEVNULL
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a program at the head node; its output can be read."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen([*inside(HEAD), *words], env=self.environment, text=True, **pipes)

    def processes(self, address: str) -> list[int]:
        return [int(pid) for pid in run("ip", "netns", "pids", NAMES[address], check=False).split()]

    def kill(self, address: str) -> None:
        """Kill everything that runs at a node, as if its machine lost its power."""
        while pids := self.processes(address):
            subprocess.run(["kill", "-9", *map(str, pids)], stderr=subprocess.DEVNULL, check=False)

    def cut(self, *, off: bool) -> None:
        """Cut the second node off from the first, or connect it again."""
        run("ip", "link", "set", f"{NAMES[SECOND]}v", "down" if off else "up")

    def _remove_networks(self) -> None:
        for name in NAMES.values():
            run("ip", "netns", "del", name, check=False)
            run("ip", "link", "del", f"{name}v", check=False)
        run("ip", "link", "del", BRIDGE, check=False)


def inside(address: str) -> Sequence[str]:
    return ["ip", "netns", "exec", NAMES[address]]
