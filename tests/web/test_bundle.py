"""Modules become one script, and one that leaves the form says where and what to write instead."""

from __future__ import annotations

import re

import pytest

from sparring.errors import SparringError
from sparring.web import bundle as bundles
from sparring.web.bundle import APP, GAMES, bundle
from web.scripts import run_script

MODULES = sorted(f"/app/{path.relative_to(APP)}" for path in APP.rglob("*.js")) + sorted(
    f"/games/{path.relative_to(GAMES)}" for path in GAMES.glob("*/*.js")
)


@pytest.fixture
def app(tmp_path, monkeypatch):
    """A front end of its own: `write(name, text)`."""
    monkeypatch.setattr(bundles, "APP", tmp_path)

    def write(name, text):
        (tmp_path / name).write_text(text)

    return write


def test_every_module_of_the_front_end_can_be_bundled():
    lines, offered = [], []
    for at, address in enumerate(MODULES):
        text = bundles.resolve_address(address).read_text("utf-8")
        exports = bundles.read_module(text, address).exports
        if exports:
            lines.append(f'import {{ {exports[0]} as name{at} }} from "{address}";')
        offered += exports
    script = bundle("\n".join(lines) + "\n")
    assert "\nimport " not in script
    assert "\nexport " not in script
    assert all(name in script for name in offered)


def test_the_page_asks_at_once_for_every_module_that_it_needs():
    start = bundles.read_module((APP / "main.js").read_text("utf-8"), "/app/main.js")
    needed = {module.address for module in bundles.dependency_order(start)} - {start.address}
    page = (APP / "index.html").read_text("utf-8")
    assert sorted(re.findall('modulepreload" href="([^"]+)"', page)) == sorted(needed)


def test_modules_run_once_each_after_what_they_need(app):
    app("a.js", 'console.log("a");\nexport const one = 1;\nexport const add = (x) => x + one;\n')
    app("b.js", 'import { add, one as first } from "/app/a.js";\nexport const two = add(first);\n')
    app(
        "c.js",
        'import {\n  add,\n  one,\n} from "/app/a.js";\nexport class C {\n  x = add(one);\n}\n',
    )
    script = bundle(
        'import { two } from "/app/b.js";\nimport { C } from "/app/c.js";\n'
        "console.log(two, new C().x);\n"
    )
    assert run_script(script) == "a\n2 2\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('import x from "/app/b.js";\n', "x.js:1.*write import { a, b }"),
        ('\nimport * as x from "/app/b.js";\n', "x.js:2.*write import { a, b }"),
        ('import { x } from "./b.js";\n', "x.js:1.*write import { a, b }"),
        ("export default 1;\n", "x.js:1.*export function"),
        ("const a = 1;\nexport { a };\n", "x.js:2.*export function"),
        ("export let a = 1;\n", "x.js:1.*export function"),
        ("const a = 1;\nconst b = await a;\n", "x.js:2.*no await"),
        ("function f() {\n  return import(g);\n}\n", "x.js:2.*only /app/play/source.js"),
        ("const a = import.meta.url;\n", "x.js:1.*import.meta"),
        ('const a = "</script>";\n', "x.js:1.*would end the inline script"),
        ('import { gone } from "/app/y.js";\n', "/app/y.js exports no gone"),
        ('import { gone } from "/app/z.js";\n', "x.js: no file /app/z.js"),
        ('import { gone } from "/app/../z.js";\n', "x.js: no file /app/../z.js"),
        ('import { b } from "/app/circle.js";\nexport const a = 1;\n', "circular imports: .*x.js"),
    ],
)
def test_what_cannot_be_bundled_is_refused_with_its_line(app, text, told):
    app("y.js", "export const here = 1;\n")
    app("circle.js", 'import { a } from "/app/x.js";\nexport const b = a;\n')
    app("x.js", text + "export const start = 1;\n")
    with pytest.raises(SparringError, match=told):
        bundle('import { start } from "/app/x.js";\n')
