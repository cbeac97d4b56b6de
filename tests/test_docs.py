"""What README and docs show is true: snippets run, links resolve, commands and figures exist."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from sparring import config
from sparring.cli import COMMANDS, main
from sparring.config.arguments import by_flag

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?(sparring .+)$", re.M)
INLINE_COMMAND = re.compile(r"`(sparring [^`]+)`")
NEEDS = {"gymnasium": "gymnasium", "pettingzoo": "pettingzoo", "sb3": "sb3_contrib"}


def blocks(page: Path, language: str) -> list[tuple[int, str, str]]:
    """Return line number, code, and the ```text block right after it, "" if there is none."""
    text = page.read_text()
    found = []
    for fence in FENCE.finditer(text):
        if fence[2] == language:
            follows = FENCE.match(text, fence.end() + 2)
            shown = follows[3] if follows and follows[2] == "text" else ""
            found.append((text.count("\n", 0, fence.start()) + 1, fence[3], shown))
    return found


SNIPPETS = [
    pytest.param(
        code,
        shown,
        id=f"{page.relative_to(ROOT)}:{line}",
        marks=[pytest.mark.slow] * (page.name == "search.md" and "train" in code),
    )
    for page in PAGES
    for line, code, shown in blocks(page, "python")
]


@pytest.mark.parametrize(("code", "shown"), SNIPPETS)
def test_snippet_runs(
    code: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for adapter, package in NEEDS.items():
        if f"sparring.envs.{adapter}" in code:
            pytest.importorskip(package)
    if "CudaPool(" in code:
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("needs a GPU, torch sees none here")
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<snippet>", "exec"), {"__name__": "snippet"})
    if shown:
        assert printed.getvalue().rstrip() == shown.rstrip()


def test_there_are_snippets_on_the_pages_that_promise_them() -> None:
    shown = {param.id.partition(":")[0] for param in SNIPPETS if param.id}
    promised = {
        "README.md",
        "docs/reference/pools.md",
        "docs/reference/adapters.md",
        "docs/games/skull_king.md",
    }
    assert promised <= shown


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text())
    heads = re.findall(r"^#+ (.+)$", text, re.M)
    names = set(re.findall(r"^::: ([\w.]+)$", text, re.M))  # headings of the Python reference
    return names | {
        re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(file), f"{target}: no such heading"


def test_the_site_leads_to_every_page() -> None:
    listed = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    listed = {name for name in listed if not name.startswith("files/")}  # of the repository's root
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages == listed


def test_pages_agree_on_how_many_games_there_are_and_how_long_one_trains() -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    browser = (ROOT / "docs/guides/browser.md").read_text()
    counted = [re.findall(r"\b(\w+) games\b(?= \(|\.)", page)[0] for page in (readme, browser)]
    assert counted[0] == counted[1]
    lengths = re.findall(r"make train .*? for (\w+) minutes", readme)
    lengths += re.findall(r"^train:.*? for (\w+) minutes", makefile, re.M)
    assert lengths == ["five", "five"]
    assert config.TrainConfig().minutes == 5


def test_a_table_has_no_row_twice() -> None:
    """`preset.py` stood twice in the table of a game's folder, with other words each time."""
    for page in PAGES:
        for table in re.findall(r"(?:^\|.*\n)+", FENCE.sub("", page.read_text()), re.M):
            first = [row.split("|")[1].strip() for row in table.splitlines()[2:]]
            files = [name for name in first if re.fullmatch(r"`\w+\.py`", name)]
            assert len(files) == len(set(files)), f"{page}: {files}"


def test_guides_name_every_setting_of_their_subject() -> None:
    """A setting that is added is explained where somebody looks for it."""
    from sparring.sweep.file import SearchConfig

    guides = ROOT / "docs/guides"
    machines, gpu, browser, sweeps = (
        (guides / f"{name}.md").read_text() for name in ("machines", "gpu", "browser", "sweeps")
    )
    for setting in fields(config.learning.DistributedConfig):
        name = f"distributed.{setting.name}"
        assert name in machines + gpu, name
    for setting in fields(config.tools.ServeConfig):
        if setting.name != "folder":
            assert f"--{setting.name.replace('_', '-')}" in browser, setting.name
    for setting in fields(SearchConfig):
        name = setting.name.replace("raised", "raise")
        assert f"| `{name}`" in sweeps or f", `{name}` |" in sweeps, name


def commands(page: Path) -> set[str]:
    text = page.read_text()
    shown = {line for _, code, _ in blocks(page, "sh") for line in COMMAND.findall(code)}
    return shown | set(INLINE_COMMAND.findall(FENCE.sub("", text)))


def options(name: str) -> set[str]:
    """Every option of a command, as it is typed."""
    command = next(command for command in COMMANDS if command.name == name)
    known = by_flag(command.settings)
    return {*known, "--help", "--help-all", "--trust", "--league", "--game"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    known = [*(command.name for command in COMMANDS), "help"]
    for shown in commands(page):
        words = shlex.split(shown, comments=True)[1:]
        if words[0] in ("--help", "--version", "COMMAND"):
            continue
        fitting = [name for name in known if words[: len(name.split())] == name.split()]
        assert fitting, f"{shown!r}: no such command"
        for word in words if fitting[0] != "help" else ():
            if word.startswith("--"):
                name = word.partition("=")[0].replace("_", "-")
                assert name in options(fitting[0]), f"{shown!r}: no option {word}"


def test_excerpts_of_the_header_are_current() -> None:
    header = (ROOT / "csrc/games/tic_tac_toe.hpp").read_text()
    mark = "// csrc/games/tic_tac_toe.hpp\n"
    excerpts = [
        code for _, code, _ in blocks(ROOT / "docs/inside/add-a-game.md", "cpp") if mark in code
    ]
    assert len(excerpts) >= 5
    for excerpt in excerpts:
        assert excerpt.removeprefix(mark) in header, excerpt


def test_excerpts_of_algorithms_are_current() -> None:
    pages = [ROOT / f"docs/inside/{name}.md" for name in ("one-page", "add-a-learner")]
    shown = [code.split("\n", 1) for page in pages for _, code, _ in blocks(page, "py")]
    assert len(shown) >= 7
    for mark, excerpt in shown:
        source = (ROOT / mark.removeprefix("# ")).read_text()
        assert excerpt in source, excerpt


def test_skull_kings_page_lists_every_flag_part_block_and_bot() -> None:
    import sparring

    page = (ROOT / "docs/games/skull_king.md").read_text()
    usual = sparring.Rules("skull_king")
    every = sparring.Rules("skull_king", {"abilities": 1, "phase_embed": 1, "history": 1})
    for name, value in usual.config.items():
        row = re.search(rf"^\| `{name}` \| ([^|]+) \|", page, re.M)
        assert row, name
        if not isinstance(value, list):
            assert row[1].strip(" `") == str(value), f"{name}: the default is {value}"
    for name in (*usual.parts, *usual.bots, *(block.name for block in every.blocks)):
        assert f"| `{name}` |" in page, name


def test_laser_hockeys_page_lists_every_flag_part_block_and_bot() -> None:
    import sparring

    page = (ROOT / "docs/games/laser_hockey.md").read_text()
    rules = sparring.Rules("laser_hockey_discrete")
    for name, value in rules.config.items():
        row = re.search(rf"^\| `{name}` \| ([^|]+) \|", page, re.M)
        assert row, name
        if not isinstance(value, list):
            assert row[1].strip(" `") == str(value), f"{name}: the default is {value}"
    for name in (*rules.parts, *rules.bots, *(block.name for block in rules.blocks)):
        assert f"| `{name}` |" in page, name


def test_cage2s_page_lists_every_flag_part_block_and_bot() -> None:
    import sparring
    from sparring.games.cage2 import HOSTS

    page = (ROOT / "docs/games/cage2.md").read_text()
    usual = sparring.Rules("cage2")
    every = sparring.Rules("cage2", {"scan_history": "ALL", "decoys_left": 1, "orders": "DRAWN"})
    for name, value in usual.config.items():
        row = re.search(rf"^\| `{name}` \| `([^|]+)` \|", page, re.M)
        assert row, name
        shown = value if isinstance(value, list) else [value]
        assert row[1] == ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in shown)
    blocks = {block.name for block in every.blocks} - set(HOSTS)
    for name in (*usual.parts, *usual.bots, *blocks):
        assert f"| `{name}` |" in page, name


def test_shogis_page_lists_every_flag_part_and_bot() -> None:
    import sparring

    page = (ROOT / "docs/games/shogi.md").read_text()
    rules = sparring.Rules("shogi")
    for name, value in rules.config.items():
        shown = re.findall(rf"^\| `{name}` \| ([^|]+) \|", page, re.M)
        assert str(value) in [cell.strip(" `") for cell in shown], f"{name}: {value}"
    for name in (*rules.parts, *rules.bots):
        assert re.search(rf"^\| [^|]*`{name}`[^|]* \|", page, re.M), name


def test_the_figures_are_those_that_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    pool, pages = (importlib.import_module(name) for name in ("pool", "pages"))
    records = pages.stored("pool")
    assert records, "benchmarks/results has no pool-*.json"
    for record in records:
        assert set(record["games"]) == set(pool.GAMES)
        assert all(report["valid"] for report in record["games"].values())
    shown = pages.with_table(pages.BENCHMARKS, "figures", pool.figures(records))
    assert pages.BENCHMARKS.read_text() == shown, (
        "run: python benchmarks/pool.py --update-docs --stored"
    )


def benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module(name)


def test_the_headline_shows_what_its_sources_say(monkeypatch: pytest.MonkeyPatch) -> None:
    headline, pages = (benchmark(name, monkeypatch) for name in ("headline", "pages"))
    for page in headline.PAGES:
        assert page.read_text() == pages.with_table(page, headline.MARK, headline.table(page)), (
            "run: python benchmarks/headline.py --stored --update-docs"
        )
    for figure in headline.figures():
        assert figure.commit in (ROOT / figure.source).read_text()


@pytest.mark.parametrize("source", ["GPU", "CHAMPION", "KIND"])
def test_a_headline_figure_without_its_source_is_an_error(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    headline = benchmark("headline", monkeypatch)
    monkeypatch.setattr(headline, source, "gone")
    with pytest.raises((FileNotFoundError, SystemExit)):
        headline.figures()


def test_the_tables_of_the_benchmarks_page_are_those_of_their_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learning, gpu, pages = (benchmark(name, monkeypatch) for name in ("learning", "gpu", "pages"))
    (on_gpu,) = pages.stored("gpu")
    strength = [learning.strength_table(record) for record in pages.stored("learning")]
    tables = {"strength": "\n\n".join(strength), "gpu": gpu.table(on_gpu)}
    for name, table in tables.items():
        assert pages.BENCHMARKS.read_text() == pages.with_table(pages.BENCHMARKS, name, table)


def test_the_network_of_ten_lines_trains_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs/guides/networks.md"
    (_, module, _), *_ = blocks(page, "python")
    (_, shown, _), *_ = blocks(page, "sh")
    monkeypatch.chdir(tmp_path)
    Path("my_net.py").write_text(module)
    command = COMMAND.findall(shown)[0].replace("--minutes 3", "--updates 2")
    small = "--collect.games 16 --collect.steps 24 --eval.off --threads 1 --device cpu"
    small += " --eval.final-games 2 --eval.against random"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([*shlex.split(command)[1:], *small.split()]) == 0
    from sparring.store.policies import load_policy

    config = load_policy("latest").net.config
    assert (config.kind, config.set) == (f"{tmp_path}/my_net.py:MyNet", ("width=128",))
