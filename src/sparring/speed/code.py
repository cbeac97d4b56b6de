"""Origin of a stack frame (sparring, library, user), its kind of work, and its phase."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import sparring
from sparring.speed.evidence import Frame

OURS, STDLIB, LIBRARY, USER, NATIVE = "ours", "stdlib", "library", "user", "native"
HOME = Path(sparring.__file__).parent
LOOP = "training"
"""Outermost phase: everything that a run does."""
MARKS = ("phase", "phases")
"""Functions that name a phase, as a decorator or in a `with` statement."""

_PARTS = {
    path.stem if path.is_file() else path.name
    for path in HOME.iterdir()
    if path.suffix == ".py" or path.is_dir()
}
_SOURCE = re.compile(rf"^(?:{re.escape(str(HOME.parent))}|.*/src)/(sparring/.*)")
_PACKAGES = re.compile(r"(?:site|dist)-packages/(.*)")
_STANDARD = re.compile(r"lib(?:64)?/python3[^/]*/(.*)")
_KNOWN = frozenset(
    {"torch", "numpy", "gymnasium", "gym", "pettingzoo", "pandas", "scipy"} | {"cv2", "networkx"}
)
"""Packages of no single kind of work, recognized by name: a sampler may shorten paths."""

INFERENCE, LOGGING, COPYING = "asking a network", "logging and writing", "copying"
RENDERING, CHECKING, WAITING = "rendering", "checking", "waiting"
GARBAGE, IMPORTING, READING = "collecting garbage", "importing", "reading and parsing"

_PACKAGES_BY_WORK = {
    INFERENCE: "onnxruntime tensorflow keras jax sklearn stable_baselines3",
    LOGGING: "logging loguru structlog rich tqdm warnings json csv pickle gzip shutil tempfile "
    "sqlite3 tensorboard tensorboardX wandb mlflow h5py _pyio pprint yaml",
    READING: "tomllib configparser xml",
    COPYING: "copy",
    RENDERING: "matplotlib pygame PIL imageio moviepy",
    WAITING: "socket ssl http urllib urllib3 requests httpx selectors subprocess",
    IMPORTING: "importlib",
}
_BY_PACKAGE = {name: work for work, names in _PACKAGES_BY_WORK.items() for name in names.split()}
"""Kind of work of a package, whatever its functions are called."""

_BY_FUNCTION = (
    (
        frozenset({"json", "csv", "pickle", "gzip", "yaml", "h5py"}),
        re.compile(r"read|load|decode|decompress|parse|scan|__next__|__getitem__|fieldnames", re.I),
        READING,
    ),
    (frozenset({"pathlib", "pandas"}), re.compile(r"\bread_"), READING),
    (frozenset({"pathlib", "pandas"}), re.compile(r"\b(write_|to_csv|to_json)"), LOGGING),
    (
        frozenset({"numpy", "torch"}),
        re.compile(r"^(_?load|loadtxt|genfromtxt|read_array)$"),
        READING,
    ),
    (frozenset({"numpy", "torch"}), re.compile(r"^(_?savez?|savetxt|write_array)$"), LOGGING),
)
"""Functions of packages that do several kinds of work."""

_BY_LINE = (
    (WAITING, re.compile(r"(?<!\bsys)\.std(in|out|err)\.(read|write|flush)")),  # of a program
    (LOGGING, re.compile(r"\bprint\(|\blog(ger|ging)?\.\w+\(|\.(write|writelines|flush)\(")),
    (LOGGING, re.compile(r"\bopen\(.*[\"'][wax][bt+]*[\"']|\bjson\.dump|\bpickle\.dump")),
    (LOGGING, re.compile(r"\bnp\.save|\btorch\.save")),
    (LOGGING, re.compile(r"\.(to_csv|writerow|writerows|fsync|write_text|write_bytes)\(")),
    (READING, re.compile(r"\bopen\(|\b(json|pickle|marshal|tomllib|yaml|np|torch)\.\w*load")),
    (READING, re.compile(r"\.(read_text|read_bytes|readlines?|genfromtxt|fromfile)\(")),
    (READING, re.compile(r"\bpd\.read_|\bcsv\.(reader|DictReader)\(")),
    (READING, re.compile(r"\b(f|fh|fp|\w*(file|handle|stream))\.read\(")),
    (COPYING, re.compile(r"\bdeepcopy\(|\bcopy\.copy\(")),
    (WAITING, re.compile(r"\bsleep\(|\.(recv|accept|communicate|urlopen)\(|\.join\(\)|\.wait\(")),
    (GARBAGE, re.compile(r"\bgc\.collect\(")),
)
"""Calls that leave no frame on a Python stack, recognized by their line."""

_BY_NATIVE = (
    (
        READING,
        re.compile(
            r"_io_\w*read|bufferedreader|textiowrapper_iternext|scan_?(once|string)|_pickle_load|"
            r"unpickl|^(__libc_|__GI_+libc_)?f?read$",
            re.I,
        ),
    ),
    (
        LOGGING,
        re.compile(r"builtin_print|_io_|iobase|textiowrapper|\bfsync\b|\bwrite\b|fwrite", re.I),
    ),
    (
        WAITING,
        re.compile(
            r"nanosleep|\bpysleep|time_sleep|\be?poll|\bselect\b|\brecv|cond_\w*wait|futex", re.I
        ),
    ),
    (GARBAGE, re.compile(r"gc_collect|collect_with_callback|gc_alloc", re.I)),
)

_BY_FOLDER = (
    ("torch", "nn/modules", INFERENCE),
    ("torch", "utils/tensorboard", LOGGING),
    ("gymnasium", "env_checker", CHECKING),
    ("gymnasium", "wrappers/rendering", RENDERING),
)
"""Kind of work of a folder of a package."""


@lru_cache(maxsize=65536)
def origin_of(file: str) -> tuple[str, str]:
    """Return the owner of a file, and its package or its path within sparring."""
    if file.startswith("<frozen "):
        return STDLIB, file.removeprefix("<frozen ").split(".")[0].rstrip(">")
    if not file.endswith(".py") and not file.startswith("<"):
        return NATIVE, file
    for found in (_SOURCE.search(file), _PACKAGES.search(file)):
        if found:
            return _of_package(found[1])
    standard = _STANDARD.search(file)
    if standard:
        return STDLIB, _first(standard[1])
    return (USER, file) if file.startswith("/") else _of_package(file)


def _of_package(path: str) -> tuple[str, str]:
    first = _first(path)
    if first == "sparring" and "/" in path:
        rest = path.split("/", 1)[1]
        if _first(rest) in _PARTS:
            return OURS, rest
    if first in sys.stdlib_module_names:
        return STDLIB, first
    if first in _KNOWN or first in _BY_PACKAGE:
        return LIBRARY, first
    return USER, path


def _first(path: str) -> str:
    return path.partition("/")[0].removesuffix(".py")


def owner(frame: Frame) -> str:
    return origin_of(frame.file)[0]


def phase_of(frame: Frame) -> str:
    """Return the innermost phase that encloses a line of sparring, "" if there is none."""
    file_owner, path = origin_of(frame.file)
    if file_owner != OURS:
        return ""
    enclosing = [one for one in phases_in(path) if one[0] <= frame.line <= one[1]]
    return max(enclosing)[2] if enclosing else ""


@lru_cache
def phases_in(path: str) -> tuple[tuple[int, int, str], ...]:
    """Return first line, last line and name of all phases in a file of sparring."""
    try:
        tree = ast.parse((HOME / path).read_text("utf-8"))
    except (OSError, SyntaxError):
        return ()
    return tuple(
        (node.lineno, node.end_lineno or node.lineno, name)
        for node in ast.walk(tree)
        if isinstance(node, ast.With | ast.FunctionDef)
        for name in _phase_names(node)
    )


def _phase_names(node: ast.With | ast.FunctionDef) -> Iterator[str]:
    if isinstance(node, ast.With):
        calls = [one.context_expr for one in node.items]
    else:
        calls = node.decorator_list
    for call in calls:
        if not isinstance(call, ast.Call) or len(call.args) != 1:
            continue
        function, argument = call.func, call.args[0]
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in MARKS and isinstance(argument, ast.Constant):
            yield str(argument.value)


def work_of(frames: Sequence[Frame]) -> str:
    """Return the kind of work of the user's code, "" if it is unknown.

    frames: from the first frame of the user on, outermost first; the first known one decides.
    """
    known = filter(None, map(_by_file, frames))
    return next(known, "") or _by_line(frames) or _by_native(frames)


def _by_file(frame: Frame) -> str:
    """Return the kind of work of a function by its file."""
    file_owner, origin = origin_of(frame.file)
    if file_owner == OURS:
        return INFERENCE if origin.startswith("nets/") else ""
    for package, folder, kind in _BY_FOLDER:
        if origin == package and folder in frame.file:
            return kind
    name = frame.name.rpartition(".")[2]  # some samplers add the class
    for packages, pattern, kind in _BY_FUNCTION:
        if origin in packages and pattern.search(name):
            return kind
    return _BY_PACKAGE.get(origin, "") if file_owner in (STDLIB, LIBRARY) else ""


def _by_line(frames: Sequence[Frame]) -> str:
    """Return the kind of work of the innermost Python line; in the stdlib, of its caller first."""
    python = [frame for frame in frames if owner(frame) != NATIVE]
    innermost = python[-1:]
    if innermost and owner(innermost[0]) == STDLIB and (caller := last_user_frame(frames)):
        innermost = [caller, *innermost]
    lines = [linecache.getline(frame.file, frame.line) for frame in innermost]
    return next((kind for line in lines for kind, pattern in _BY_LINE if pattern.search(line)), "")


def _by_native(frames: Sequence[Frame]) -> str:
    names = [frame.name for frame in frames if owner(frame) == NATIVE]
    known = (kind for name in names for kind, pattern in _BY_NATIVE if pattern.search(name))
    return next(known, "")


def last_user_frame(frames: Sequence[Frame]) -> Frame | None:
    found = [frame for frame in frames if owner(frame) == USER]
    return found[-1] if found else None


def location_of(frame: Frame) -> str:
    name = Path(frame.file).name
    return f"{frame.name} ({name}:{frame.line})" if frame.line else f"{frame.name} ({name})"
