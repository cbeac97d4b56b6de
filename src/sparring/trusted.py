"""Trust: user code runs only if the user named its factory.

Files are data. A factory name such as `my_nets:Net` in a run, a checkpoint or a settings file is
code of the file's author. It is imported only if the user named it: on the command line, in Python,
or earlier for the same file and the same code (`allow_remembered`). What the user named is
remembered in the user's state folder, never in the run's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from sparring.errors import UntrustedError

TRUSTED = "SPARRING_TRUSTED"
"""Environment variable that passes the allowed names to child processes."""
STATE = "SPARRING_STATE"
"""Environment variable with the folder of remembered names, instead of the default."""

_allowed: set[str] = set()
"""Factories that the user named for this process."""
_remembered: set[str] = set()
"""Factories that the user named earlier, for a file that this process has read."""
_refused_for: dict[str, tuple[str, str]] = {}
"""Refused factories: the file that names each, and why one that was named before is refused."""
CHANGED = "whose code has changed since you named it"
NOT_FOUND = "which is not found from here; run this in the folder that has it"
_use_remembered = True
"""Whether remembered names count. A server turns it off: anyone may send it requests."""


def is_factory(word: str) -> bool:
    """Whether a word has the form of a factory name."""
    module, colon, name = word.rpartition(":")
    relative = module.startswith(".") and not module.endswith(".py")
    return bool(colon and module and name) and not relative


def is_address(word: str) -> bool:
    """Whether a name is host:port, the address of a cluster that may send code."""
    return word.rpartition(":")[2].isdecimal()


def absolute_name(word: str) -> str:
    """The same name with the absolute path of its file."""
    module, _, name = word.rpartition(":")
    if not is_factory(word) or not module.endswith(".py"):
        return word
    return f"{Path(module).resolve()}:{name}"


def allow(*words: str) -> None:
    """Allow factories, because the user named them."""
    _allowed.update(absolute_name(word) for word in words if is_factory(word))


def allow_typed(args: Sequence[str]) -> list[str]:
    """Allow the factories on a command line; return the line without `--trust NAME`."""
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--trust":
            typed = next(words, "")
        elif word.startswith("--trust="):
            typed = word.removeprefix("--trust=")
        else:
            rest.append(word)
            if not is_path(word):  # the name of a folder was chosen by its author, not the user
                allow(
                    *(one for each in (word, *re.split(r"[=,;\s]+", word)) for one in parts(each))
                )
            continue
        if not is_factory(typed):
            raise UntrustedError(
                f"--trust {typed!r}: give the name to allow, module:factory or file.py:factory"
            )
        allow(typed)
    return rest


def parts(word: str) -> tuple[str, ...]:
    """A word, and the game of FILE.py:CLASS:BOT."""
    game = word.rpartition(":")[0]
    return (word, game) if game.rpartition(":")[0].endswith(".py") else (word,)


def is_path(word: str) -> bool:
    """Whether a word of the command line is an existing path, here or among the runs."""
    value = word.split("=", 1)[-1] if word.startswith("--") else word
    with suppress(OSError, ValueError):
        return Path(value).exists() or Path("runs", value).exists()
    return False


def is_allowed_now(word: str) -> bool:
    """Whether the user named a factory for this process, not only earlier."""
    return absolute_name(word) in _allowed


def check_trusted(word: str, what: str) -> None:
    """Refuse a factory that the user has not named. what: the setting that holds it."""
    word = absolute_name(word)
    if word in _allowed or word in _remembered:
        return
    file, refused = _refused_for.get(word, ("", ""))
    asks = f"{file} asks for {what} {word}" if file else f"{what} {word}"
    why = f"{'an address' if is_address(word) else 'code'} that you have not named"
    if refused == NOT_FOUND:
        raise UntrustedError(f"{asks}, {NOT_FOUND}")
    why = refused or why
    raise UntrustedError(f"{asks}, {why}; to use it: --trust {word} (in Python: trust={word!r})")


def allow_remembered(source: Path, values: Any) -> None:
    """Allow the factories in a file's values that the user named for this file earlier.

    Those that the user named in this process are remembered for later ones.
    source: a run, a policy or a settings file.
    """
    source = source.resolve()
    words = {absolute_name(word) for word in strings_in(values) if is_factory(word)}
    if not words:
        return
    remembered = read_remembered(source) if _use_remembered else {}
    for word in words - _allowed:
        code = fingerprint(word) if word in remembered else ""
        if code and remembered[word] == code:
            _remembered.add(word)
        else:
            why = CHANGED if code else NOT_FOUND
            _refused_for[word] = (str(source), why if word in remembered else "")
    remember(source, words & _allowed)


def remember(source: Path, words: Iterable[str]) -> None:
    """Remember allowed factories for a file; does nothing if the state folder is not writable."""
    source = source.resolve()
    allowed = {absolute_name(word) for word in words} & (_allowed | _remembered)
    codes = {word: code for word in allowed if (code := fingerprint(word))}
    before = read_remembered(source) if codes else {}
    if not codes.items() - before.items():
        return
    file = memory_file(source)
    text = json.dumps({"source": str(source), "code": {**before, **codes}}, indent=1)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(text)
        part.replace(file)


def read_remembered(source: Path) -> dict[str, str]:
    """Return the fingerprints of the factories remembered for a file, by factory name."""
    file = memory_file(source)
    with suppress(OSError, ValueError, RecursionError):
        if not is_private(file.parent.stat()) or not is_private(file.stat()):
            return {}
        saved = json.loads(file.read_bytes())
        if isinstance(saved, dict) and saved.get("source") == str(source):
            codes = saved.get("code")
            return codes if isinstance(codes, dict) else {}
    return {}


def ignore_remembered() -> None:
    """Count only the names that this process was started with."""
    global _use_remembered  # noqa: PLW0603 - one switch for the process
    _use_remembered = False
    _remembered.clear()


def is_private(found: os.stat_result) -> bool:
    """Whether only this user can write a file; Windows does not tell, so nothing is."""
    if not hasattr(os, "geteuid"):
        return False
    others = stat.S_IWGRP | stat.S_IWOTH
    return found.st_uid == os.geteuid() and not found.st_mode & others


def memory_file(source: Path) -> Path:
    """Return the file with the remembered factories of a run or a settings file."""
    home = os.environ.get(STATE) or os.environ.get("XDG_STATE_HOME")
    folder = Path(home) if home else Path("~/.local/state").expanduser()
    digest = hashlib.sha256(os.fsencode(source)).hexdigest()[:32]
    return folder / "sparring" / "trusted" / f"{digest}.json"


def environment() -> dict[str, str]:
    """Environment variables that pass the allowed names to child processes."""
    return {TRUSTED: json.dumps([sorted(_allowed), sorted(_remembered)])}


def strings_in(values: Any) -> Iterator[str]:
    """Yield every string in nested values, also behind an equals sign: worker.net.kind=my:Net."""
    waiting = [values]
    while waiting:  # a loop, not recursion: files may be nested deeply
        value = waiting.pop()
        if isinstance(value, str):
            yield value
            yield from value.split("=")[1:]
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value


def fingerprint(word: str) -> str:
    """Return a hash of the files that importing a factory would read; "" if there are none.

    Nothing is imported. Modules that these files import are not hashed. The address of a cluster
    is a name like any other, because the cluster may send code.
    """
    module, _, _ = word.rpartition(":")
    if is_address(word):
        return "an address"
    if module.endswith(".py"):
        files = [Path(module)]
    else:  # gymnasium:package:ID-v0 makes Gymnasium import the package
        found = [source_files(one) for one in module.split(":")]
        files = [file for one in found for file in one] if all(found) else []
    total = hashlib.sha256()
    with suppress(OSError, ValueError):
        for file in files:
            total.update(hashlib.sha256(file.read_bytes()).digest())
        return total.hexdigest() if files else ""
    return ""


def source_files(module: str) -> list[Path]:
    """Return the files of a module and of its parent packages, without importing any."""
    found: list[Path] = []
    within: Sequence[str] | None = None
    folder = str(Path.cwd())
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        spec = find_spec(".".join(parts[:count]), within, folder)
        if spec is None:
            return []
        if spec.origin and spec.has_location:
            found.append(Path(spec.origin))
        within = spec.submodule_search_locations
        if within is None and count < len(parts):
            return []
    return found


def find_spec(module: str, within: Sequence[str] | None, folder: str) -> ModuleSpec | None:
    """Ask Python's import finders for a module's location."""
    path = list(within) if within is not None else [*sys.path, folder]
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(module, path) if find else None
        if isinstance(spec, ModuleSpec):
            return spec
    return None


def inherit() -> None:
    """Read the names that the parent process allows."""
    with suppress(ValueError, TypeError):
        allowed, remembered = json.loads(os.environ.get(TRUSTED, "[[], []]"))
        _allowed.update(map(str, allowed))
        _remembered.update(map(str, remembered))


inherit()
