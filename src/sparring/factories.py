"""Things that somebody else wrote, by name: `module:factory`, or `path/to/file.py:factory`.

Environments of Gymnasium and PettingZoo have names of their own, which `ids` writes in this form.

A name can be written to a file, typed, and sent to another process or machine, which an object
cannot.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from sparring import ids, trusted
from sparring.errors import ConfigError, SparringError
from sparring.trusted import is_factory as is_factory  # noqa: PLC0414 - asked for here

_given: dict[str, Callable[..., Any]] = {}
"""What this program itself has under a name: its module is not loaded a second time."""
GIVEN = "given"
"""Stands for the module of what no other program finds: given:NAME is an object of this one."""
_loading: list[str] = []
"""Modules whose code is being run, the innermost last."""
_files: list[ModuleType] = []
"""Modules that were loaded from files: another file of the same name may take their place."""


def load_factory(word: str, what: str) -> Callable[..., Any]:
    """Return what a name stands for, which runs its module's code: only if the person named it.

    what: the setting that the name was given for, the first word of errors.
    """
    if word in _given:
        return _given[word]
    if is_given(word):
        raise ConfigError(
            f"{what} {word!r} was an object of another program; give it again, or its module's name"
        )
    if not is_factory(word):
        raise ConfigError(f"{what} {word!r} is not module:factory, nor file.py:factory")
    require_named(word, what)
    if ids.is_id(word):
        return ids.made_by_id(word, what)
    module, _, name = word.rpartition(":")
    found: Any = load_module(module, what)
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise ConfigError(f"{what} {word!r}: {module} has no {name!r}") from None
    if not callable(found):
        raise ConfigError(f"{what} {word!r}: {name} cannot be called")
    factory: Callable[..., Any] = found
    return factory


def require_named(word: str, what: str) -> None:
    """Refuse a factory that neither the person nor this program named; other words are fine."""
    if is_factory(word) and word not in _given and not is_given(word):
        trusted.require(word, what)


def load_module(name: str, what: str) -> ModuleType:
    """Import a module by its name, or a file; the folder that a command is typed in is searched."""
    here = str(Path.cwd())
    if here not in sys.path:  # a command's own folder is searched, the one it is typed in is not
        sys.path.append(here)
    if name.endswith(".py"):
        return load_file(Path(name), what)
    with being_loaded(name, what):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as missing:
            where = f"; it is looked for in {here} and among installed packages"
            raise ConfigError(
                f"{what} {name!r}: no module called {missing.name!r}{ids.missing(name) or where}"
            ) from None


def load_file(path: Path, what: str) -> ModuleType:
    """Import a file under its own name, once; what lies beside it can be imported from it."""
    if not path.is_file():
        raise ConfigError(f"{what}: there is no file {path}")
    path = path.resolve()
    known = sys.modules.get(path.stem)
    if known is not None and Path(getattr(known, "__file__", "") or "").resolve() == path:
        return known
    if known is not None and known not in _files:
        raise ConfigError(
            f"{what}: {path} is called like the module {path.stem!r}, which others import; rename "
            "the file"
        )
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{what}: {path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    _files.append(module)
    try:
        with being_loaded(str(path), what):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


@contextmanager
def being_loaded(name: str, what: str) -> Iterator[None]:
    """Note whose code is run, and tell in one line what is wrong with it."""
    _loading.append(name)
    try:
        yield
    except SparringError:
        raise
    except (Exception, SystemExit) as wrong:  # a script that reads its own command line may exit
        raise ConfigError(f"{what} {name!r} cannot be imported: {in_a_line(wrong)}") from wrong
    finally:
        _loading.pop()


def check_loaded(what: str) -> None:
    """Refuse to begin something while a module that only has to be read is run."""
    if _loading:
        raise ConfigError(
            f"{what} is called while {_loading[-1]} is imported for its environments, and would "
            "begin anew without end; put the call under: if __name__ == '__main__':"
        )


def in_a_line(wrong: BaseException) -> str:
    """Say what somebody's code raised, and where; code that was never run says it itself."""
    ours = Path(__file__).parent
    frames = [f for f in extract_tb(wrong.__traceback__) if ours not in Path(f.filename).parents]
    if isinstance(wrong, SyntaxError):
        frames = []
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    first = (str(wrong).splitlines() or [""])[0]
    return f"{type(wrong).__name__}: {first}{at}"


def name_of_factory(factory: Any) -> str:
    """The name by which another process finds a function or class, "" if none would."""
    name = getattr(factory, "__qualname__", "")
    module = getattr(factory, "__module__", "")
    if not name or "<" in name or not module:
        return ""
    if module != "__main__":
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        return f"{module}:{name}" if found is factory else ""
    try:
        file = Path(inspect.getfile(factory)).resolve()
    except (OSError, TypeError):
        return ""
    return f"{file}:{name}" if file.is_file() and file.suffix == ".py" else ""


def keep_factory(factory: Callable[..., Any]) -> str:
    """Return a function's name, which from now on means this very one here; "" if it has none."""
    name = name_of_factory(factory)
    if name:
        _given[name] = factory
        trusted.name(name)
    return name


def keep_object(factory: Callable[..., Any], name: str) -> str:
    """Return a name for something that has none elsewhere; from now on it means this one here.

    name: a word of its own, or a whole name that it had before.
    """
    word = name if is_factory(name) else f"{GIVEN}:{name}"
    _given[word] = factory
    trusted.name(word)  # by its old name other processes find the class
    return word


def is_given(word: str) -> bool:
    """Whether a name is that of an object of the program which gave it."""
    return word.startswith(f"{GIVEN}:")


def is_here(word: str) -> bool:
    """Whether a name means an object of this program, or was named for this very process."""
    return word in _given or trusted.is_named(word)


def is_of_this_program(word: str) -> bool:
    """Whether a name means what no other process has, or what it would have to run anew for."""
    return is_given(word) or getattr(_given.get(word), "__module__", "") == "__main__"


def lasting_name(word: str) -> str:
    """The same name with the whole path of a file, so that it is found from everywhere."""
    lasting = trusted.lasting(word)
    if word in _given:
        _given[lasting] = _given[word]
    return lasting


def read_keywords(words: Sequence[str], what: str = "set") -> dict[str, Any]:
    """Read arguments of a factory as they are typed: key=value.

    A value is a number, true, false, null, a JSON list or just text. what: the setting that has
    them, the first word of errors.
    """
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigError(f"{what} {word!r} is not key=value")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found
