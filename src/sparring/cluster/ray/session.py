"""Start or join a Ray cluster, and clean up afterwards.

Ray is an optional dependency and loads slowly: it is imported when a cluster is used.
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
from sparring.cluster.ray.resources import (
    CPU,
    GPU,
    Machines,
    ResourceRequest,
    check_fits,
    show,
    waiting_line,
)
from sparring.errors import ConfigError, SparringError
from sparring.processes import start_python

LOCAL, AUTO = "local", "auto"
ANSWER_S, JOIN_S = 10.0, 60.0
"""Seconds for a connection to an address, and for joining its cluster."""
HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
HTTP2_KIND, HTTP2_SETTINGS = 3, 4
"""First bytes of a client of HTTP/2; the place of a frame's kind, and the kind that comes first."""
MAX_FOLDER = 40
"""Longest path of a folder in which Ray can create its sockets."""
MODE, TOKEN, TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
DEFAULT_TOKEN = Path("~/.ray/auth_token")
"""Where Ray looks for a token by default."""
LOCAL_VARIABLES = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listen on 127.0.0.1 only
    "RAY_worker_niceness": "0",  # actors are as important as their learner
}
"""Environment variables of a local cluster."""


class Cluster:
    """A Ray cluster that this process has joined."""

    def __init__(self, ray: Any, cleanup: contextlib.ExitStack) -> None:
        """Use a connection. cleanup: callbacks for when it ends."""
        self.ray, self._cleanup = ray, cleanup
        self.open = True
        """Until it is closed. Ray must not be called later: it would start a new cluster."""
        self.node = str(ray.get_runtime_context().get_node_id())
        """Ray's id of this machine."""

    @property
    def machines(self) -> Machines:
        """Resources of every machine, in use or not."""
        return [one["Resources"] for one in self.ray.nodes() if one["Alive"]]

    @property
    def cpus(self) -> int:
        """CPUs of all machines together."""
        return int(self.ray.cluster_resources().get(CPU, 0))

    @property
    def gpus(self) -> int:
        """GPUs of all machines together."""
        return int(self.ray.cluster_resources().get(GPU, 0))

    def check_room(self, count: int, each: ResourceRequest, why: str, one: str) -> None:
        """Refuse processes that do not fit the cluster together: Ray would wait for them forever.

        why: the settings that ask for all. one: a process in words.
        """
        check_fits(self.machines, each, f"{why}: {one}")
        if (room := each.count(self.machines)) < count:
            raise ConfigError(
                f"{why} need {show({CPU: count * each.cpus})}, {each.cpus} on one machine each, "
                f"and the cluster has {show({CPU: self.cpus})}, room for {room} of {count}; ask "
                "for less, or join more machines with ray start --address"
            )

    def waiting_line(self, request: ResourceRequest, who: str) -> str:
        """Say in a line what something waits for."""
        total, free = self.ray.cluster_resources(), self.ray.available_resources()
        return waiting_line(total, free, request, who)

    def close(self) -> None:
        """Leave the cluster; one that was started by this process ends."""
        self.open = False
        self._cleanup.close()
        atexit.unregister(self.close)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()


def connect(address: str, *, cpus: int = 0, gpus: int | None = None) -> Cluster:
    """Start or join a cluster.

    address: local starts one on this machine, which ends with `close`; auto joins the one that runs
        here or that RAY_ADDRESS names; anything else is HOST:PORT.
    cpus: fewest CPUs of a local cluster, even if the machine has fewer cores: actors then share
        them, as processes do.
    gpus: GPUs of a local cluster, for tests; None: those of the machine.
    """
    if trusted.is_factory(address):  # HOST:PORT: a cluster may send code
        trusted.check_trusted(address, "cluster")
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(
            f"cluster {address}: Ray is not installed; install it with: "
            'pip install "sparring[cluster]"'
        )
    if "ray" in sys.modules and sys.modules["ray"].is_initialized():
        raise ConfigError(f"cluster {address}: this process has joined one already; leave it first")
    with contextlib.ExitStack() as cleanup:
        cleanup.enter_context(restored_environment())
        options: dict[str, Any] = {"address": address}
        if address == LOCAL:
            options |= local_options(cleanup, cpus) | {"num_gpus": gpus}
        else:
            check_token(address)
            check_reachable(os.environ.get("RAY_ADDRESS", address) if address == AUTO else address)
        with time_limit(JOIN_S, f"cluster {address}: no answer within {JOIN_S:.0f} s"):
            ray = start_ray(cleanup, options)
        cluster = Cluster(ray, cleanup.pop_all())
        atexit.register(cluster.close)  # for programs that end without closing it
        return cluster


def local_options(cleanup: contextlib.ExitStack, cpus: int) -> dict[str, Any]:
    """Return options of `ray.init` for a local cluster that only this process can use."""
    folder = make_folder()
    cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
    cleanup.callback(stop_reaper, start_reaper(folder))
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32), "utf-8")
    os.environ.pop(TOKEN, None)
    os.environ.update({MODE: "token", TOKEN_PATH: str(token), **LOCAL_VARIABLES})
    return {
        "num_cpus": max(cpus, os.cpu_count() or 1),
        "include_dashboard": False,
        "_temp_dir": str(folder / "ray"),  # Ray makes it public; the folder around it is private
    }


def start_reaper(folder: Path) -> subprocess.Popen[bytes]:
    """Start the process that cleans up if this process is killed."""
    return start_python("sparring.cluster.ray.reaper", [str(folder)], stdin=subprocess.PIPE)


def stop_reaper(reaper: subprocess.Popen[bytes]) -> None:
    """Tell the reaper that the cluster has ended."""
    reaper.communicate(DONE.encode())


def check_token(address: str) -> None:
    """Refuse a cluster without a token: anyone could run code there."""
    if os.environ.get(MODE, "token") != "token":
        raise ConfigError(
            f"cluster {address}: {MODE} is {os.environ[MODE]}, which lets anyone in; set it to "
            "token here and on every machine"
        )
    os.environ[MODE] = "token"
    path = os.environ.get(TOKEN_PATH)
    if os.environ.get(TOKEN) or Path(path or DEFAULT_TOKEN).expanduser().is_file():
        return
    missing = f"{TOKEN_PATH} {path} is not a file" if path else f"no token in {DEFAULT_TOKEN}"
    raise ConfigError(
        f"cluster {address}: {missing}; create one with `ray get-auth-token --generate`, copy it "
        f"to every machine, and set {TOKEN_PATH} if it is not in the default file"
    )


def check_reachable(address: str) -> None:
    """Refuse an address that does not accept connections: Ray would retry for minutes."""
    host, _, port = address.rpartition(":")
    if address == AUTO:
        return
    if not host or not port.isdigit() or "/" in host:
        raise ConfigError(
            f"cluster {address}: give local, auto, or HOST:PORT as ray start prints it"
        )
    try:
        with socket.create_connection((host, int(port)), ANSWER_S) as connection:
            answers = os.environ.get("RAY_USE_TLS") == "1" or speaks_http2(connection)
    except (OSError, OverflowError) as wrong:
        raise SparringError(
            f"cluster {address}: no connection ({wrong}); is it the address that ray start --head "
            "has printed?"
        ) from wrong
    if not answers:
        raise SparringError(
            f"cluster {address}: something else than Ray listens there; is it the address that "
            "ray start --head has printed?"
        )


def speaks_http2(connection: socket.socket) -> bool:
    """Whether the other end greets as servers of gRPC do; Ray would wait for it for minutes."""
    connection.sendall(HTTP2_GREETING)
    answer = b""
    while len(answer) <= HTTP2_KIND and (more := connection.recv(HTTP2_KIND + 1)):
        answer += more
    return len(answer) > HTTP2_KIND and answer[HTTP2_KIND] == HTTP2_SETTINGS


def start_ray(cleanup: contextlib.ExitStack, options: Mapping[str, Any]) -> Any:
    """Initialize Ray and return its module; its output stays off the terminal."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # a later call would start another cluster
    known = "ray" in sys.modules
    import ray

    if known:
        forget_token()
    cleanup.callback(shut_down, ray)
    try:
        with restored_signals(), muted():
            ray.init(
                log_to_driver=False,
                logging_level=logging.ERROR,
                runtime_env={"env_vars": trusted.environment()},
                **options,
            )
    except SparringError:
        raise
    except Exception as wrong:
        why = next((line for line in str(wrong).splitlines() if line.strip()), repr(wrong))
        hint = "" if options["address"] == LOCAL else "; is the token here that of the cluster?"
        if "version mismatch" in why.lower():  # the lines below say which
            why = " ".join(str(wrong).split())
            hint = " Install the same Ray and Python on every machine."
        raise SparringError(f"cluster {options['address']}: {why.strip()}{hint}") from wrong
    silence(cleanup)
    return ray


def silence(cleanup: contextlib.ExitStack) -> None:
    """Keep Ray from printing that a worker has died: the supervisor reports it."""
    from ray._private import worker  # Ray has no option for it

    usual = getattr(worker, "print_to_stdstream", None)
    if usual is not None:
        worker.print_to_stdstream = lambda *_, **__: None
        cleanup.callback(setattr, worker, "print_to_stdstream", usual)


def shut_down(ray: Any) -> None:
    with restored_signals(), contextlib.suppress(Exception):
        ray.shutdown()


@contextlib.contextmanager
def restored_environment() -> Iterator[None]:
    """Restore Ray's environment variables afterwards: they hold for one cluster."""
    before = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]
        os.environ.update(before)


def forget_token() -> None:
    """Make Ray read mode and token again: it caches those of its import or last use."""
    from ray import _raylet  # not public

    internals: Any = _raylet
    with contextlib.suppress(AttributeError):
        internals.Config.initialize("")
        internals.AuthenticationTokenLoader.instance().reset_cache()


def make_folder() -> Path:
    """Make a private folder for token, sockets and logs."""
    parent = tempfile.gettempdir()
    return Path(
        tempfile.mkdtemp(prefix="sparring-", dir=parent if len(parent) < MAX_FOLDER else "/tmp")
    )


@contextlib.contextmanager
def restored_signals() -> Iterator[None]:
    """Restore this process's signal handlers afterwards; Ray installs its own."""
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
    """Discard what native code prints to stderr; errors are raised."""
    stderr = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as devnull:
            os.dup2(devnull.fileno(), 2)
            yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


@contextlib.contextmanager
def time_limit(seconds: float, error: str) -> Iterator[None]:
    """Raise an error after some seconds, where a signal can interrupt the code."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise SparringError(error)

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
