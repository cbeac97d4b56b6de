"""Compiles kernels with NVRTC: several programs in parallel, cached on disk."""

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
from sparring.kernels.linking import link, linker_version
from sparring.kernels.views import Interface

HEADERS = Path(_native.__file__).parent / "csrc"
"""The sources of this build of the native core."""
EXTRA = "the GPU needs the extra cuda: pip install 'sparring[cuda]'"


@dataclass(frozen=True)
class Program:
    """One NVRTC program."""

    source: str
    options: tuple[str, ...]
    arch: str
    what: str = ""
    """Name of the game or network, for progress output."""
    linked: tuple[bytes, ...] = ()
    """LTO-IR of rules that the kernels call."""

    @property
    def file(self) -> Path:
        """Cache file; its name depends on sources, options and compiler."""
        return cache_folder() / self.arch / f"{self.fingerprint}.cubin"

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.source, self.options, self.linked)


def program(
    source: str,
    defines: Mapping[str, object],
    *,
    exact: bool,
    arch: str,
    draft: bool = False,
    what: str = "",
    linked: tuple[bytes, ...] = (),
) -> Program:
    """Make a program. linked: LTO-IR of rules that it calls."""
    options = (
        "--std=c++20",
        *((f"-arch={arch.replace('sm', 'compute')}", "-dlto", "-rdc=true") if linked else ()),
        *(() if linked else (f"-arch={arch}",)),
        f"-I{HEADERS}",
        "-default-device",
        f"--fmad={'false' if exact else 'true'}",
        *(["--Ofast-compile=max"] if draft else []),
        *(f"-D{name}={value}" for name, value in defines.items()),
    )
    return Program(
        source + Interface(source, defines, HEADERS).checks(), options, arch, what, linked
    )


class CompileProgress:
    """Progress of compilation on stderr: compiled programs of all.

    Without a terminal it prints one line when compiling begins.
    """

    def __init__(self) -> None:
        self.quiet = False
        self.running = self.requested = self.done = 0
        self.began = 0.0

    def starts(self, what: str) -> None:
        if not self.running:
            self.requested = self.done = 0
            self.began = time.monotonic()
            self.echo(f"compiling kernels for {what or 'the GPU'}, once per machine ...")
        self.running += 1
        self.requested += 1

    def ends(self, what: str) -> None:
        self.running -= 1
        self.done += 1
        if sys.stderr is not None and sys.stderr.isatty():
            seconds = time.monotonic() - self.began
            of = f"{self.done} of {self.requested}"
            self.echo(f"compiled kernels for {what or 'the GPU'} ({of}), {seconds:.0f} s")

    def echo(self, line: str) -> None:
        if not self.quiet and sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)


PROGRESS = CompileProgress()
_lock = threading.Lock()
_running: dict[str, Future[bytes]] = {}


def start(one: Program) -> Future[bytes]:
    """Compile a program in a thread; NVRTC compiles several in parallel.

    Programs in the cache, or being compiled, are not compiled again.
    """
    version()
    key = str(one.file)
    with _lock:
        if key in _running:
            return _running[key]
        future: Future[bytes] = Future()
        cached = read_cached(one.file)
        if cached is not None:
            future.set_result(cached)
            return future
        _running[key] = future
        PROGRESS.starts(one.what)
    # A daemon thread, so that exiting does not wait for the compiler.
    threading.Thread(target=_compile, args=(one, future), daemon=True).start()
    return future


def _compile(one: Program, future: Future[bytes]) -> None:
    try:
        with locked(one.file):
            code = read_cached(one.file)
            if code is None:
                code = run_compiler(one.source, one.options, "LTOIR" if one.linked else "CUBIN")
                if one.linked:
                    code = link(code, one.linked, one.arch)
                write_cache(one.file, code)
        future.set_result(code)
    except BaseException as error:
        future.set_exception(error)
    finally:
        with _lock:
            PROGRESS.ends(one.what)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lock a program, so that other processes wait and then read it from the cache."""
    lock = file.with_suffix(".lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = lock.open("wb")
    except OSError:
        yield  # the cache is not writable
        return
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        lock.unlink(missing_ok=True)  # the cache file exists by now


def finish(one: Program) -> bytes:
    try:
        return start(one).result()
    finally:
        with _lock:
            _running.pop(str(one.file), None)


def fingerprint(source: str, options: Sequence[str], linked: tuple[bytes, ...] = ()) -> str:
    digest = hashlib.sha256(headers_digest())
    for text in (source, *(word for word in options if not word.startswith("-I")), version()):
        digest.update(text.encode() + b"\0")
    for part in (*linked, *([linker_version().encode()] if linked else [])):
        digest.update(hashlib.sha256(part).digest())
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
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as missing:
        raise ConfigError(f"{EXTRA} ({missing})") from None
    return f"{major}.{minor}"


def run_compiler(source: str, options: Sequence[str], output: str = "CUBIN") -> bytes:
    """Run NVRTC; its log becomes the error.

    output: CUBIN, or LTOIR for the linker.

    It writes into `bytes` that are made here. They must not be shared by Python, as b" " is: an
    empty log needs one byte.
    """
    from cuda.bindings import nvrtc

    version()
    nvrtc_program = checked(
        nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], []), "NVRTC"
    )
    words = [option.encode() for option in options]
    (failed,) = nvrtc.nvrtcCompileProgram(nvrtc_program, len(words), words)
    if int(failed):
        log = bytes(checked(nvrtc.nvrtcGetProgramLogSize(nvrtc_program), "NVRTC"))
        nvrtc.nvrtcGetProgramLog(nvrtc_program, log)
        text = log.decode(errors="replace")
        error = SparringError(f"the kernels do not compile: {text}")
        error.add_note(text)  # the whole log, for the author of the game
        raise error
    size = checked(getattr(nvrtc, f"nvrtcGet{output}Size")(nvrtc_program), "NVRTC")
    code = bytes(size)
    checked(getattr(nvrtc, f"nvrtcGet{output}")(nvrtc_program, code), "NVRTC")
    nvrtc.nvrtcDestroyProgram(nvrtc_program)
    return code


def checked(answer: tuple[Any, ...], what: str) -> Any:
    code, *values = answer
    if int(code):
        raise SparringError(f"CUDA: {what}: {getattr(code, 'name', code)}")
    return values[0] if values else None


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sparring" / "kernels"


def read_cached(file: Path) -> bytes | None:
    """Return machine code from the cache; None if it is missing or damaged."""
    try:
        cached = file.read_bytes()
    except OSError:
        return None
    digest, code = cached[:32], cached[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def write_cache(file: Path, code: bytes) -> None:
    """Write machine code to the cache, if possible."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
            temporary.write(hashlib.sha256(code).digest() + code)
        Path(temporary.name).replace(file)
    except OSError:
        return
