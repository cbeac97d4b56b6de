"""Whose code may run: factories that the person at the keyboard named, and no others.

Files are data. A name such as `my_nets:Net` inside a run, a checkpoint or a file of settings is
code of whoever wrote that file, so that it is used only where the person named it: on the command
line, in Python, or once before for the same file (`admit`) with the same code behind it. What was
named is remembered in a folder of the person's own, never in that of the run.
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
"""The variable by which a process tells those that it starts what may run."""
STATE = "SPARRING_STATE"
"""The variable that names the folder with what is remembered, instead of the usual one."""

_named: set[str] = set()
"""By the person, for this process."""
_admitted: set[str] = set()
"""Named once before, for a file that this process has read."""
_asked_by: dict[str, tuple[str, bool]] = {}
"""What a file has asked for in vain: the file, and whether other code was behind the name."""
_memory = True
"""Whether names that were given before count. Not in a server: it serves whoever asks."""


def is_factory(word: str) -> bool:
    """Whether a word has the form of a factory's name."""
    module, colon, name = word.rpartition(":")
    relative = module.startswith(".") and not module.endswith(".py")
    return bool(colon and module and name) and not relative


def is_address(word: str) -> bool:
    """Whether a name is host:port, where somebody may answer who sends code."""
    return word.rpartition(":")[2].isdecimal()


def lasting(word: str) -> str:
    """The same name with the whole path of a file, so that it is found from everywhere."""
    module, _, name = word.rpartition(":")
    if not is_factory(word) or not module.endswith(".py"):
        return word
    return f"{Path(module).resolve()}:{name}"


def name(*words: str) -> None:
    """Allow factories, because the person named them."""
    _named.update(lasting(word) for word in words if is_factory(word))


def name_typed(args: Sequence[str]) -> list[str]:
    """Allow what stands on a command line; return the line without `--trust NAME`."""
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--trust":
            given = next(words, "")
        elif word.startswith("--trust="):
            given = word.removeprefix("--trust=")
        else:
            rest.append(word)
            if not is_path(word):  # whoever made a folder has chosen its name, not who types it
                name(word, *re.split(r"[=,;\s]+", word))
            continue
        if not is_factory(given):
            raise UntrustedError(
                f"--trust {given!r}: name what may run, as module:factory or file.py:factory"
            )
        name(given)
    return rest


def is_path(word: str) -> bool:
    """Whether a word of the command line is there on the disk, here or among the runs."""
    value = word.split("=", 1)[-1] if word.startswith("--") else word
    with suppress(OSError, ValueError):
        return Path(value).exists() or Path("runs", value).exists()
    return False


def is_named(word: str) -> bool:
    """Whether the person named a factory for this process, not for an earlier one."""
    return lasting(word) in _named


def require(word: str, what: str) -> None:
    """Refuse a factory that nobody named. what: the setting that asks for it."""
    word = lasting(word)
    if word in _named or word in _admitted:
        return
    file, changed = _asked_by.get(word, ("", False))
    asks = f"{file} asks for {what} {word}" if file else f"{what} {word}"
    why = f"{'an address' if is_address(word) else 'code'} that you have not named"
    if changed:
        why = "whose code has changed since you named it"
    raise UntrustedError(f"{asks}, {why}; to use it: --trust {word} (in Python: trust={word!r})")


def admit(source: Path, values: Any) -> None:
    """Allow the factories among the values of a file that the person named for it before.

    Those that the person named in this process are remembered for the next one.
    source: a run, a policy or a file of settings.
    """
    source = source.resolve()
    words = {lasting(word) for word in texts(values) if is_factory(word)}
    if not words:
        return
    remembered = recall(source) if _memory else {}
    for word in words - _named:
        code = fingerprint(word) if word in remembered else ""
        if code and remembered[word] == code:
            _admitted.add(word)
        else:
            _asked_by[word] = (str(source), word in remembered)
    remember(source, words & _named)


def remember(source: Path, words: Iterable[str]) -> None:
    """Keep factories for a file that was made or read with them; without a home nothing is kept."""
    source = source.resolve()
    allowed = {lasting(word) for word in words} & (_named | _admitted)
    codes = {word: code for word in allowed if (code := fingerprint(word))}
    before = recall(source) if codes else {}
    if not codes.items() - before.items():
        return
    file = memory_of(source)
    text = json.dumps({"source": str(source), "code": {**before, **codes}}, indent=1)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(text)
        part.replace(file)


def recall(source: Path) -> dict[str, str]:
    """Return which code was named for a file before, by the name of its factory."""
    file = memory_of(source)
    with suppress(OSError, ValueError, RecursionError):
        if not only_mine(file.parent.stat()) or not only_mine(file.stat()):
            return {}
        kept = json.loads(file.read_bytes())
        if isinstance(kept, dict) and kept.get("source") == str(source):
            found = kept.get("code")
            return found if isinstance(found, dict) else {}
    return {}


def forget_memory() -> None:
    """Let only those names count that this process was started with."""
    global _memory  # noqa: PLW0603 - one switch for the process, as there is one memory
    _memory = False
    _admitted.clear()


def only_mine(found: os.stat_result) -> bool:
    """Whether nobody else can have written a file of the memory."""
    others = stat.S_IWGRP | stat.S_IWOTH
    return found.st_uid == os.geteuid() and not found.st_mode & others


def memory_of(source: Path) -> Path:
    """Return the file that remembers what was named for a run or a file."""
    home = os.environ.get(STATE) or os.environ.get("XDG_STATE_HOME")
    folder = Path(home) if home else Path("~/.local/state").expanduser()
    digest = hashlib.sha256(os.fsencode(source)).hexdigest()[:32]
    return folder / "sparring" / "trusted" / f"{digest}.json"


def variables() -> dict[str, str]:
    """What the processes of this one are told in their environment."""
    return {TRUSTED: json.dumps([sorted(_named), sorted(_admitted)])}


def texts(values: Any) -> Iterator[str]:
    """Every word in the values of a file, also behind an equals sign: worker.net.kind=my:Net."""
    waiting = [values]
    while waiting:  # no recursion: a file may be nested as deeply as it likes
        value = waiting.pop()
        if isinstance(value, str):
            yield value
            yield from value.split("=")[1:]
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value


def fingerprint(word: str) -> str:
    """Return a hash of the files that importing a factory reads by its name; "" if there are none.

    Nothing is imported for it. What these files import themselves is not looked at. The address of
    a cluster is a name like any other: whoever answers there may send code.
    """
    module, _, _ = word.rpartition(":")
    if is_address(word):
        return "an address"
    if module.endswith(".py"):
        files = [Path(module)]
    else:  # gymnasium:package:ID-v0 has Gymnasium import a package
        found = [sources_of(one) for one in module.split(":")]
        files = [file for one in found for file in one] if all(found) else []
    total = hashlib.sha256()
    with suppress(OSError, ValueError):
        for file in files:
            total.update(hashlib.sha256(file.read_bytes()).digest())
        return total.hexdigest() if files else ""
    return ""


def sources_of(module: str) -> list[Path]:
    """Return the files of a module and of the packages around it, without importing any."""
    found: list[Path] = []
    within: Sequence[str] | None = None
    here = str(Path.cwd())
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        spec = specified(".".join(parts[:count]), within, here)
        if spec is None:
            return []
        if spec.origin and spec.has_location:
            found.append(Path(spec.origin))
        within = spec.submodule_search_locations
        if within is None and count < len(parts):
            return []
    return found


def specified(module: str, within: Sequence[str] | None, here: str) -> ModuleSpec | None:
    """Ask those who would import a module where it lies."""
    path = list(within) if within is not None else [*sys.path, here]
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(module, path) if find else None
        if isinstance(spec, ModuleSpec):
            return spec
    return None


def inherit() -> None:
    """Take over what the process that started this one may run."""
    with suppress(ValueError, TypeError):
        named, admitted = json.loads(os.environ.get(TRUSTED, "[[], []]"))
        _named.update(map(str, named))
        _admitted.update(map(str, admitted))


inherit()
