"""Bundles the JavaScript modules of the web app into one script, for a page opened from disk.

A browser does not load modules from file:// addresses. The modules follow narrow rules, so that no
parser is needed: they import names at the top from absolute addresses and export names where they
are declared. Each module becomes a function that returns its exports, in dependency order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sparring import games
from sparring.errors import SparringError

APP = Path(__file__).parent / "app"
GAMES = Path(games.__file__).parent

IMPORT = re.compile(r'^import \{([^{}]*)\} from "(/[^"]+)";$', re.M)
EXPORT = re.compile(
    r"^export (?=(?:async function\*?|function\*?|const|class) ([A-Za-z_$][\w$]*))", re.M
)
MEMBER = re.compile(r"[A-Za-z_$][\w$]*(?: as [A-Za-z_$][\w$]*)?")
DYNAMIC_IMPORTER = "/app/play/source.js"
"""The one module with a dynamic import: of a game's page, from the server."""
FORBIDDEN = (
    (re.compile(r"^import\b", re.M), 'write import { a, b } from "/app/x.js";'),
    (re.compile(r"^export\b", re.M), "export function, async function, const or class"),
    (
        re.compile(r"^(?:await\b|(?:const|let|var)\b[^=\n]*=\s*await\b)", re.M),
        "no await outside functions",
    ),
    (re.compile(r"\bimport\.meta\b"), "there is no import.meta in a plain script"),
    (re.compile(r"</script|<!--|<script", re.I), "this would end the inline script"),
)
ENTRY = "the start of the page"
SHARED = "globalThis.sparringModules"
DYNAMIC_IMPORT = re.compile(r"\bimport\(")


@dataclass(frozen=True)
class JsModule:
    """Imports, exports and code of a module."""

    address: str
    imports: tuple[tuple[str, str], ...]
    """(names between the braces, address)."""
    exports: tuple[str, ...]
    code: str


def bundle(entry: str, *, before: str = "") -> str:
    """Return one script of some code and all modules that it imports.

    before: code whose modules the page has already, by `shared_bundle`.
    """
    here = {module.address for module in modules_of(before)} if before else set()
    modules = modules_of(entry)
    names = {module.address: f"module{at}" for at, module in enumerate(modules)}
    parts = [
        f'const {names[module.address]} = {SHARED}["{module.address}"];'
        if module.address in here and module.address != ENTRY
        else wrap_module(module, names)
        for module in modules
    ]
    return as_script(parts)


def shared_bundle(entry: str) -> str:
    """Return a script of all modules that some code imports, for scripts that come after it."""
    modules = modules_of(entry)[:-1]
    names = {module.address: f"module{at}" for at, module in enumerate(modules)}
    given = ", ".join(f'"{address}": {name}' for address, name in names.items())
    parts = [wrap_module(module, names) for module in modules]
    return as_script([*parts, f"{SHARED} = {{ {given} }};"])


def as_script(parts: list[str]) -> str:
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"


def modules_of(entry: str) -> list[JsModule]:
    """Return some code as the last module, after those that it imports."""
    return list(dependency_order(read_module(entry, ENTRY)))


def wrap_module(module: JsModule, names: dict[str, str]) -> str:
    """Return a module as an immediately called function."""
    taken = [
        f"const {{ {members.replace(' as ', ': ')} }} = {names[address]};"
        for members, address in module.imports
    ]
    lines = [
        f"// {module.address}",
        f"const {names[module.address]} = (() => {{",
        *taken,
        module.code.strip(),
        f"return {{ {', '.join(module.exports)} }};",
        "})();",
    ]
    return "\n".join(lines)


def dependency_order(entry: JsModule) -> Iterator[JsModule]:
    """Yield modules, dependencies first."""
    known: dict[str, JsModule] = {}
    done: set[str] = set()
    waiting: list[str] = []

    def visit(module: JsModule) -> Iterator[JsModule]:
        if module.address in done:
            return
        if module.address in waiting:
            circle = " -> ".join([*waiting[waiting.index(module.address) :], module.address])
            raise SparringError(f"circular imports: {circle}")
        waiting.append(module.address)
        for members, address in module.imports:
            if address not in known:
                text = resolve_address(address, module.address).read_text("utf-8")
                known[address] = read_module(text, address)
            for name in imported_names(members):
                if name not in known[address].exports:
                    raise SparringError(f"{module.address}: {address} exports no {name}")
            yield from visit(known[address])
        waiting.pop()
        done.add(module.address)
        yield module

    yield from visit(entry)


def read_module(text: str, address: str) -> JsModule:
    """Parse a module; reject one that does not follow the rules, with the line."""
    imports = tuple((" ".join(m[1].split()).rstrip(","), m[2]) for m in IMPORT.finditer(text))
    exports = tuple(match[1] for match in EXPORT.finditer(text))
    code = EXPORT.sub("", IMPORT.sub("", text))
    for pattern, advice in FORBIDDEN:
        if found := pattern.search(code):
            raise bundle_error(text, address, line_at(code, found.start()), advice)
    if address != DYNAMIC_IMPORTER and (found := DYNAMIC_IMPORT.search(code)):
        advice = f"only {DYNAMIC_IMPORTER} may use a dynamic import"
        raise bundle_error(text, address, line_at(code, found.start()), advice)
    for members, _ in imports:
        for member in members.split(", "):
            if not MEMBER.fullmatch(member):
                raise bundle_error(text, address, f"import {{ {members} }}", FORBIDDEN[0][1])
    return JsModule(address, imports, exports, code)


def line_at(text: str, place: int) -> str:
    return text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0]


def bundle_error(text: str, address: str, found: str, advice: str) -> SparringError:
    """Return the error of a line that cannot be bundled, with what to write instead."""
    line = text[: max(text.find(found), 0)].count("\n") + 1
    return SparringError(f"{address}:{line}: {found.strip()[:80]!r} cannot be bundled; {advice}")


def imported_names(members: str) -> list[str]:
    """Return the imported names, without their aliases."""
    return [member.split(" as ")[0] for member in members.split(", ")]


def resolve_address(address: str, needed_by: str = "") -> Path:
    """Return the file of an address of the server."""
    top, _, rest = address.lstrip("/").partition("/")
    folder = {"app": APP, "games": GAMES}.get(top)
    path = folder / rest if folder else None
    if path is None or ".." in rest or not path.is_file():
        by = f"{needed_by}: " if needed_by else ""
        raise SparringError(f"{by}no file {address}; addresses begin with /app/ or /games/")
    return path
