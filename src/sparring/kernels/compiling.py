"""From sources to machine code: several programs at once, once per machine, kept on disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sparring import _native
from sparring.errors import ConfigError, SparringError
from sparring.kernels.views import Interface

HEADERS = Path(_native.__file__).parent / "csrc"
"""The sources that this build of the native core was made from."""
EXTRA = "the GPU needs the extra cuda: pip install 'sparring[cuda]'"


@dataclass(frozen=True)
class Program:
    """What is compiled in one go."""

    source: str
    options: tuple[str, ...]
    arch: str
    what: str = ""
    """Whose kernels they are, for those who wait."""

    @property
    def file(self) -> Path:
        """Where its machine code is kept: other sources, options or compilers have other names."""
        return cache_folder() / self.arch / f"{fingerprint(self.source, self.options)}.cubin"


def program(
    source: str,
    defines: Mapping[str, object],
    *,
    exact: bool,
    arch: str,
    draft: bool = False,
    what: str = "",
) -> Program:
    """Describe what to compile; see `kernels.compiled`."""
    options = (
        "--std=c++20",
        f"-arch={arch}",
        f"-I{HEADERS}",
        "-default-device",
        f"--fmad={'false' if exact else 'true'}",
        *(["--Ofast-compile=max"] if draft else []),
        *(f"-D{name}={value}" for name, value in defines.items()),
    )
    return Program(source + Interface(source, defines, HEADERS).checks(), options, arch, what)


class CompileProgress:
    """Lines on stderr for those who wait: how many programs are compiled, and how many there are.

    What is not a terminal is told once, when compiling begins.
    """

    def __init__(self) -> None:
        self.quiet = False
        self.running = self.asked = self.done = 0
        self.began = 0.0

    def starts(self, what: str) -> None:
        """Say that compiling has begun, unless that was said already."""
        if not self.running:
            self.asked = self.done = 0
            self.began = time.monotonic()
            self.echo(f"compiling kernels for {what or 'the GPU'}, once per machine ...")
        self.running += 1
        self.asked += 1

    def ends(self, what: str) -> None:
        """Say how far it is."""
        self.running -= 1
        self.done += 1
        if sys.stderr is not None and sys.stderr.isatty():
            seconds = time.monotonic() - self.began
            of = f"{self.done} of {self.asked}"
            self.echo(f"compiled kernels for {what or 'the GPU'} ({of}), {seconds:.0f} s")

    def echo(self, line: str) -> None:
        if not self.quiet and sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)


PROGRESS = CompileProgress()
_lock = threading.Lock()
_running: dict[str, Future[bytes]] = {}


def start(one: Program) -> Future[bytes]:
    """Have a program compiled in a thread of its own; NVRTC lets them work side by side.

    Programs that are kept on disk, or on their way already, are not compiled again.
    """
    version()
    key = str(one.file)
    with _lock:
        if key in _running:
            return _running[key]
        found: Future[bytes] = Future()
        kept = read_kept(one.file)
        if kept is not None:
            found.set_result(kept)
            return found
        _running[key] = found
        PROGRESS.starts(one.what)
    # A daemon, so that nobody who gives up has to wait for a compiler.
    threading.Thread(target=_compile, args=(one, found), daemon=True).start()
    return found


def _compile(one: Program, found: Future[bytes]) -> None:
    try:
        with alone(one.file):
            code = read_kept(one.file)
            if code is None:
                code = run_compiler(one.source, one.options)
                keep(one.file, code)
        found.set_result(code)
    except BaseException as wrong:
        found.set_exception(wrong)
    finally:
        with _lock:
            PROGRESS.ends(one.what)


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Wait while another process compiles the same program; it then lies on disk."""
    lock = file.with_suffix(".lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = lock.open("wb")
    except OSError:
        yield  # nothing can be kept here, so there is nothing to wait for
        return
    with held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
        lock.unlink(missing_ok=True)  # after what was compiled is there for those who wait


def finish(one: Program) -> bytes:
    """Return the machine code of a program, compiled now or before."""
    try:
        return start(one).result()
    finally:
        with _lock:
            _running.pop(str(one.file), None)


def fingerprint(source: str, options: Sequence[str]) -> str:
    """Return what the machine code depends on, as one number."""
    digest = hashlib.sha256(headers_digest())
    for text in (source, *(word for word in options if not word.startswith("-I")), version()):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:32]


@cache
def headers_digest() -> bytes:
    digest = hashlib.sha256()
    files = sorted(f for f in HEADERS.rglob("*") if f.suffix in (".hpp", ".cuh"))
    if not files:
        raise SparringError(f"no headers in {HEADERS}; install sparring again")
    for file in files:
        digest.update(str(file.relative_to(HEADERS)).encode() + b"\0" + file.read_bytes())
    return digest.digest()


@cache
def version() -> str:
    """Return NVRTC's version; asks for the extra where it is missing."""
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as missing:
        raise ConfigError(f"{EXTRA} ({missing})") from None
    return f"{major}.{minor}"


def run_compiler(source: str, options: Sequence[str]) -> bytes:
    """Run NVRTC; its complaints become the error.

    It writes into bytes that are made here. None of them may be one that Python shares, as b" " is:
    one byte is what an empty log needs.
    """
    from cuda.bindings import nvrtc

    version()
    made = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], []), "NVRTC")
    words = [option.encode() for option in options]
    (code,) = nvrtc.nvrtcCompileProgram(made, len(words), words)
    if int(code):
        log = bytes(checked(nvrtc.nvrtcGetProgramLogSize(made), "NVRTC"))
        nvrtc.nvrtcGetProgramLog(made, log)
        said = log.decode(errors="replace")
        failed = SparringError(f"the kernels do not compile: {said}")
        failed.add_note(said)  # the whole of it is for whoever wrote the game
        raise failed
    cubin = bytes(checked(nvrtc.nvrtcGetCUBINSize(made), "NVRTC"))
    checked(nvrtc.nvrtcGetCUBIN(made, cubin), "NVRTC")
    nvrtc.nvrtcDestroyProgram(made)
    return cubin


def checked(answer: tuple[Any, ...], what: str) -> Any:
    """Return what a driver call gave, or raise what it says went wrong."""
    code, *values = answer
    if int(code):
        raise SparringError(f"CUDA: {what}: {getattr(code, 'name', code)}")
    return values[0] if values else None


def cache_folder() -> Path:
    """Return where compiled kernels are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sparring" / "kernels"


def read_kept(file: Path) -> bytes | None:
    """Return kept machine code; None if there is none or it was damaged."""
    try:
        kept = file.read_bytes()
    except OSError:
        return None
    digest, code = kept[:32], kept[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def keep(file: Path, code: bytes) -> None:
    """Write machine code; where that is impossible, the next start compiles again."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
            temporary.write(hashlib.sha256(code).digest() + code)
        Path(temporary.name).replace(file)
    except OSError:
        return
