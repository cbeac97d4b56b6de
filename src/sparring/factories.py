"""Loading of user code by name: `module:factory`, or `path/to/file.py:factory`.

`ids` converts names of Gymnasium and PettingZoo environments to this form.

A name, unlike an object, can be written to a file, typed, and sent to another process or machine.
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

_registered: dict[str, Callable[..., Any]] = {}
"""Factories that this program passed as objects: their modules are not imported a second time."""
OBJECT = "given"
"""Module part of the name of an object that other processes cannot import: given:NAME."""
_importing: list[str] = []
"""Modules that are being imported, the innermost last."""
_files: list[ModuleType] = []
"""Modules loaded from files: a file of the same name may replace them."""


def load_factory(word: str, what: str) -> Callable[..., Any]:
    """Import and return a factory. Refuses names that the user has not trusted.

    what: the setting that holds the name; errors begin with it.
    """
    if word in _registered:
        return _registered[word]
    if is_object_name(word):
        raise ConfigError(
            f"{what} {word!r} was an object of another program; pass it again, or name its module"
        )
    if not is_factory(word):
        raise ConfigError(f"{what} {word!r} is neither module:factory nor file.py:factory")
    check_factory_trusted(word, what)
    if ids.is_id(word):
        return ids.make_by_id(word, what)
    module, _, name = word.rpartition(":")
    found: Any = load_module(module, what)
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise ConfigError(f"{what} {word!r}: {module} has no {name!r}") from None
    if not callable(found):
        raise ConfigError(f"{what} {word!r}: {name} is not callable")
    factory: Callable[..., Any] = found
    return factory


def check_factory_trusted(word: str, what: str) -> None:
    """Refuse a factory that neither the user nor this program named; other words pass."""
    if is_factory(word) and word not in _registered and not is_object_name(word):
        trusted.check_trusted(word, what)


def load_module(name: str, what: str) -> ModuleType:
    """Import a module by name or file; the current folder is searched, too."""
    folder = str(Path.cwd())
    if folder not in sys.path:  # an installed command does not search the current folder
        sys.path.append(folder)
    if name.endswith(".py"):
        return load_file(Path(name), what)
    with importing(name, what):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as missing:
            searched = f"; searched {folder} and installed packages"
            hint = ids.install_hint(name) or searched
            raise ConfigError(f"{what} {name!r}: no module called {missing.name!r}{hint}") from None


def load_file(path: Path, what: str) -> ModuleType:
    """Import a file once, under its own name; its folder is added to the import path."""
    if not path.is_file():
        raise ConfigError(f"{what}: there is no file {path}")
    path = path.resolve()
    known = sys.modules.get(path.stem)
    if known is not None and Path(getattr(known, "__file__", "") or "").resolve() == path:
        return known
    if known is not None and known not in _files:
        raise ConfigError(
            f"{what}: {path} has the name of the module {path.stem!r}, which is imported already; "
            "rename the file"
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
        with importing(str(path), what):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


@contextmanager
def importing(name: str, what: str) -> Iterator[None]:
    """Report errors of a module's code as one line, and record that it is being imported."""
    _importing.append(name)
    try:
        yield
    except SparringError:
        raise
    except (Exception, SystemExit) as wrong:  # a script that parses a command line may exit
        raise ConfigError(f"{what} {name!r} cannot be imported: {describe_error(wrong)}") from wrong
    finally:
        _importing.pop()


def check_not_importing(what: str) -> None:
    """Refuse to start work while a module is imported: its import would start the same work."""
    if _importing:
        raise ConfigError(
            f"{what} is called while {_importing[-1]} is imported for its environments, which "
            "never ends; put the call under: if __name__ == '__main__':"
        )


def describe_error(wrong: BaseException) -> str:
    """One line about an error in user code: type, message, and the file and line that raised it."""
    ours = Path(__file__).parent
    frames = [f for f in extract_tb(wrong.__traceback__) if ours not in Path(f.filename).parents]
    if isinstance(wrong, SyntaxError):
        frames = []
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    first = (str(wrong).splitlines() or [""])[0]
    return f"{type(wrong).__name__}: {first}{at}"


def factory_name(factory: Any) -> str:
    """Name under which another process can import a function or class, "" if there is none."""
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


def register_factory(factory: Callable[..., Any]) -> str:
    """Return a function's name, which from now on means this object; "" if it has none."""
    name = factory_name(factory)
    if name:
        _registered[name] = factory
        trusted.allow(name)
    return name


def register_object(factory: Callable[..., Any], name: str) -> str:
    """Return a name for an object that other processes cannot import.

    name: a new word, or the full name that the object had before.
    """
    word = name if is_factory(name) else f"{OBJECT}:{name}"
    _registered[word] = factory
    trusted.allow(word)  # under its old name other processes find the class
    return word


def is_object_name(word: str) -> bool:
    """Whether a name stands for an object that other programs cannot import."""
    return word.startswith(f"{OBJECT}:")


def is_allowed_here(word: str) -> bool:
    """Whether this program registered the name, or the user named it for this process."""
    return word in _registered or trusted.is_allowed_now(word)


def is_local_factory(word: str) -> bool:
    """Whether other processes cannot import it, or only by running this program again."""
    return is_object_name(word) or getattr(_registered.get(word), "__module__", "") == "__main__"


def absolute_name(word: str) -> str:
    """The same name with the absolute path of its file."""
    absolute = trusted.absolute_name(word)
    if word in _registered:
        _registered[absolute] = _registered[word]
    return absolute


def read_keywords(words: Sequence[str], what: str = "set") -> dict[str, Any]:
    """Read arguments of a factory from words of the form key=value.

    A value is a number, true, false, null, a JSON list or text. what: the setting that holds them;
    errors begin with it.
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
