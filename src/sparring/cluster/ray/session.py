"""Starting or joining a Ray cluster, and leaving nothing of it behind.

Ray is an extra and loads slowly: it is imported when a cluster is asked for.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparring import trusted
from sparring.cluster.ray.reaper import DONE
from sparring.errors import ConfigError, SparringError
from sparring.processes import start_python

LOCAL, AUTO = "local", "auto"
ANSWER_S, JOIN_S = 10.0, 60.0
"""Seconds within which somebody has to answer at an address, and to let us in."""
LONGEST_FOLDER = 40
"""Letters of a folder in which Ray can still make its sockets."""
MODE, TOKEN, TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
USUAL_TOKEN = Path("~/.ray/auth_token")
"""Where Ray itself looks for a token."""
OURS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listen on 127.0.0.1 and nowhere else
    "RAY_worker_niceness": "0",  # actors are as important as their learner
}
"""What else a cluster of our own is told."""


class Cluster:
    """A Ray cluster that this process has joined."""

    def __init__(self, ray: Any, cleanup: contextlib.ExitStack) -> None:
        """Take over a connection. cleanup: what is to be done when it has ended."""
        self.ray, self._cleanup = ray, cleanup
        self.open = True
        """Until it is closed. Ray must not be asked for anything later: it would start anew."""
        self.node = str(ray.get_runtime_context().get_node_id())
        """This machine, as Ray calls it."""

    @property
    def cpus(self) -> int:
        """CPUs of all machines together."""
        return int(self.ray.cluster_resources().get("CPU", 0))

    @property
    def gpus(self) -> int:
        """GPUs of all machines together."""
        return int(self.ray.cluster_resources().get("GPU", 0))

    def check_cpus(self, count: int, why: str) -> None:
        """Refuse what could never be placed: Ray would wait for it without end."""
        if count > self.cpus:
            raise ConfigError(
                f"{why} need {count} CPUs, and the cluster has {self.cpus}; ask for less, or join "
                "more machines with ray start --address"
            )

    def close(self) -> None:
        """Leave the cluster; one that was started for this process ends."""
        self.open = False
        self._cleanup.close()
        atexit.unregister(self.close)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()


def connect(word: str, *, cpus: int = 0) -> Cluster:
    """Start or join a cluster.

    word: local starts one on this machine, which ends with `close`; auto joins the one that runs
        here or that RAY_ADDRESS names; anything else is the address of one.
    cpus: that a local one has at least, however many cores there are: actors share them then, as
        processes do.
    """
    if trusted.is_factory(word):  # an address: whoever answers there may send code
        trusted.require(word, "cluster")
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(
            f"cluster {word}: Ray is not installed; install it with: "
            'pip install "sparring[cluster]"'
        )
    if "ray" in sys.modules and sys.modules["ray"].is_initialized():
        raise ConfigError(f"cluster {word}: this process is in a cluster already; leave it first")
    with contextlib.ExitStack() as cleanup:
        cleanup.enter_context(kept_environment())
        options: dict[str, Any] = {"address": word}
        if word == LOCAL:
            options |= own_cluster(cleanup, cpus)
        else:
            check_token(word)
            check_answer(os.environ.get("RAY_ADDRESS", word) if word == AUTO else word)
        with time_limit(JOIN_S, f"cluster {word}: no answer within {JOIN_S:.0f} s"):
            ray = initialized(cleanup, options)
        cluster = Cluster(ray, cleanup.pop_all())
        atexit.register(cluster.close)  # for programs that end without closing it
        return cluster


def own_cluster(cleanup: contextlib.ExitStack, cpus: int) -> dict[str, Any]:
    """Return how to start a cluster on this machine that nobody else can use."""
    folder = make_folder()
    cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
    cleanup.callback(let_go, watched(folder))
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32), "utf-8")
    os.environ.pop(TOKEN, None)
    os.environ.update({MODE: "token", TOKEN_PATH: str(token), **OURS})
    return {
        "num_cpus": max(cpus, os.cpu_count() or 1),
        "include_dashboard": False,
        "_temp_dir": str(folder / "ray"),  # which it opens for everybody; the one around stays ours
    }


def watched(folder: Path) -> subprocess.Popen[bytes]:
    """Have somebody clear up should this process be killed."""
    return start_python("sparring.cluster.ray.reaper", [str(folder)], stdin=subprocess.PIPE)


def let_go(reaper: subprocess.Popen[bytes]) -> None:
    """Say that all has ended as it should."""
    reaper.communicate(DONE.encode())


def check_token(word: str) -> None:
    """Refuse a cluster that anybody could use: who may run code there is who has the token."""
    if os.environ.get(MODE, "token") != "token":
        raise ConfigError(
            f"cluster {word}: {MODE} is {os.environ[MODE]}, which lets everybody in; set it to "
            "token here and on every machine"
        )
    os.environ[MODE] = "token"
    path = os.environ.get(TOKEN_PATH)
    if os.environ.get(TOKEN) or Path(path or USUAL_TOKEN).expanduser().is_file():
        return
    missing = f"{TOKEN_PATH} {path} is no file" if path else f"no token in {USUAL_TOKEN}"
    raise ConfigError(
        f"cluster {word}: {missing}; make one with `ray get-auth-token --generate`, bring it to "
        f"every machine, and set {TOKEN_PATH} where it lies elsewhere"
    )


def check_answer(address: str) -> None:
    """Refuse an address at which nobody listens: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if address == AUTO:
        return
    if not host or not port.isdigit() or "/" in host:
        raise ConfigError(
            f"cluster {address}: is neither local nor auto nor HOST:PORT, as ray start prints it"
        )
    try:
        socket.create_connection((host, int(port)), ANSWER_S).close()
    except (OSError, OverflowError) as wrong:
        raise SparringError(
            f"cluster {address}: nobody answers there ({wrong}); is it the address that ray start "
            "--head has printed?"
        ) from wrong


def initialized(cleanup: contextlib.ExitStack, options: Mapping[str, Any]) -> Any:
    """Return Ray, connected; what it has to say stays out of our display."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # a call after the end would start another one
    known = "ray" in sys.modules
    import ray

    if known:
        forget_token()
    cleanup.callback(ended, ray)
    try:
        with own_signals(), muted():
            ray.init(
                log_to_driver=False,
                logging_level=logging.ERROR,
                runtime_env={"env_vars": trusted.variables()},
                **options,
            )
    except SparringError:
        raise
    except Exception as wrong:
        why = next((line for line in str(wrong).splitlines() if line.strip()), repr(wrong))
        hint = "" if options["address"] == LOCAL else "; is the token here the one that it has?"
        raise SparringError(f"cluster {options['address']}: {why.strip()}{hint}") from wrong
    silence(cleanup)
    return ray


def silence(cleanup: contextlib.ExitStack) -> None:
    """Keep Ray from printing that a worker has died: that is told by whoever starts it again."""
    from ray._private import worker  # has no switch for it

    usual = getattr(worker, "print_to_stdstream", None)
    if usual is not None:
        worker.print_to_stdstream = lambda *_, **__: None
        cleanup.callback(setattr, worker, "print_to_stdstream", usual)


def ended(ray: Any) -> None:
    """Leave a cluster, or end the one that was started."""
    with own_signals(), contextlib.suppress(Exception):
        ray.shutdown()


@contextlib.contextmanager
def kept_environment() -> Iterator[None]:
    """Put variables back as they were: what Ray was told holds for one cluster."""
    before = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]
        os.environ.update(before)


def forget_token() -> None:
    """Let Ray read mode and token anew: it keeps those it was imported or last used with."""
    from ray import _raylet  # has no public name

    own: Any = _raylet
    with contextlib.suppress(AttributeError):
        own.Config.initialize("")
        own.AuthenticationTokenLoader.instance().reset_cache()


def make_folder() -> Path:
    """Make a folder of our own for token, sockets and logs."""
    parent = tempfile.gettempdir()
    return Path(
        tempfile.mkdtemp(prefix="sparring-", dir=parent if len(parent) < LONGEST_FOLDER else "/tmp")
    )


@contextlib.contextmanager
def own_signals() -> Iterator[None]:
    """Keep who hears signals in this process; Ray would hear some itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Keep what native code prints meanwhile from the terminal; what matters is raised."""
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextlib.contextmanager
def time_limit(seconds: float, wrong: str) -> Iterator[None]:
    """End what takes longer, where a signal can interrupt it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise SparringError(wrong)

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
