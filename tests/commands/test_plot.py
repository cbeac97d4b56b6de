"""`sparring plot`: both pictures of any run, and that they show the numbers."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from commands.run_helpers import make_run as make_known_run
from sparring.cli import main
from sparring.commands.shared.curves import plot_run
from sparring.draw.charts.page import COLORS
from sparring.errors import SparringError
from sparring.training.records.metrics import MetricsWriter
from sparring.training.records.run import Run

PHASES = {"stepping": 0.2, "inference": 0.3, "transfer": 0.1, "advantage": 0.1, "update": 0.3}


def make_run(root: Path, updates: int, **more: float) -> Run:
    run = Run.create(root, "skull_king", "ppo", {"game": "skull_king", "set": []})
    with MetricsWriter(run.path, tensorboard=False) as out:
        for update in range(1, updates + 1):
            share = update / updates
            values = {f"phases/{name}": seconds for name, seconds in PHASES.items()}
            values |= {"charts/score": 100 * share, "charts/SPS": 4e5, "charts/samples_per_s": 3e5}
            values |= {
                "losses/policy_loss": -0.01,
                "losses/value_loss": 1 - share / 2,
                "losses/odd_one": 3,
            }
            if update % max(1, updates // 4) == 0:
                for name, win in (("captain", 0.25 + share / 3), ("<random>", 0.9)):
                    low, high = win - 0.05, min(win + 0.05, 1.0)
                    found = {"win": win, "low": low, "high": high, "score": 10 * win}
                    values |= {f"eval/{name}/{key}": value for key, value in found.items()}
            out.add(update, {**values, **more}, seconds=update * 480 / updates)
    return run


class Page(HTMLParser):
    """What a browser finds in the file: balanced tags, text, and addresses of other files."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.data: dict[str, str] = {}
        self.outside: list[str] = []
        self.feed(path.read_text())
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.outside += [f"{k}={v}" for k, v in attrs if k in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("path", "use", "rect", "g")
        self.outside += [v or "" for k, v in attrs if k == "xlink:href" and not v.startswith("#")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        tag = self.open[-1] if self.open else ""
        self.data[tag] = self.data.get(tag, "") + data + "\n"


def test_a_normal_run_becomes_a_picture_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, 400)
    assert main(["plot", str(run.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.search(r"captain +58\.3% +53\.3% +63\.3%", "\n".join(lines))
    assert lines[-1].startswith(f"run: {run.path}; next: sparring ")

    with Image.open(run.path / "plot.png") as image:
        assert image.format == "PNG"
        assert image.width == 1600
        seen = {bytes(c).hex() for _, c in image.convert("RGB").getcolors(2**24) or ()}
    assert {COLORS[0][1:], COLORS[1][1:]} <= seen

    page = Page(run.path / "plot.html")
    assert page.outside == []
    assert "http" not in (run.path / "plot.html").read_text()
    assert "url(" not in page.data["style"]
    titles = page.data["text"]
    for title in ("Win share against each opponent", "Score", "Speed", "Where the time goes"):
        assert title in titles
    assert titles.index("Policy loss") < titles.index("Value loss") < titles.index("Odd one")
    for shown in ("<random>", "equal strength 25%", "58.3%", "400k"):
        assert shown in titles


def test_an_empty_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, 0)
    assert main(["plot", str(run.path)]) == 0
    assert "no metrics yet" in capsys.readouterr().out
    assert "Nothing has been measured yet" in Page(run.path / "plot.html").data["text"]
    with Image.open(run.path / "plot.png") as image:
        image.load()
    (run.path / "metrics.sqlite").unlink()
    (run.path / "machine.json").unlink()
    assert main(["plot", str(run.path)]) == 0


@pytest.mark.parametrize(
    "updates", [1, *(pytest.param(count, marks=pytest.mark.slow) for count in (2, 7))]
)
def test_few_or_broken_numbers_are_drawn(tmp_path: Path, updates: int) -> None:
    more = {
        "losses/value_loss": math.nan,
        "eval/captain/low": math.nan,
        "phases/stepping": math.nan,
    }
    png, html = plot_run(make_run(tmp_path, updates, **more).path)
    with Image.open(png) as image:
        image.load()
    text = html.read_text()
    Page(html)
    for path in re.findall(r' d="([^"]*)"', text):
        assert "nan" not in path
    for script in re.findall(r'<script type="application/json">(.*?)</script>', text):
        json.loads(script, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "text",
    [
        '{"cpu": 1}',
        "[" * 100_000,
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in ("[]", "3", '{"cpu": "a", "cores": 2}', "{")
        ),
    ],
)
def test_what_the_machine_was_may_be_unknown(text: str, tmp_path: Path) -> None:
    path = make_known_run(tmp_path, "mine", {10: 0.6})
    (path / "machine.json").write_text(text)
    assert all(file.is_file() for file in plot_run(path))


@pytest.mark.parametrize(
    "at",
    [
        "5",
        float("nan"),
        *(pytest.param(at, marks=pytest.mark.slow) for at in (None, [], 10**400)),
    ],
)
def test_a_phase_that_began_nowhere_has_no_mark(at: Any, tmp_path: Path) -> None:
    path = make_known_run(tmp_path, "mine", {10: 0.6})
    event = {"event": "phase", "phase": 1, "name": "first", "seconds": at}
    (path / "events.json").write_text(json.dumps([event]))
    assert all(file.is_file() for file in plot_run(path))


def test_json_and_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "runs", 40)
    out = tmp_path / "new" / "folder"
    assert main(["plot", str(run.path), "--out", str(out), "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["png"] == str(out / "plot.png")
    assert told["updates"] == 40
    assert told["minutes"] == 8.0
    assert told["wins"]["captain"]["win"] == pytest.approx(0.25 + 1 / 3)
    assert told["charts"][0] == "Win share against each opponent"
    assert (out / "plot.html").exists()
    assert not (run.path / "plot.png").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(SparringError, match="choose another with --out"):
        plot_run(run.path, tmp_path / "file")


def test_out_names_a_file_of_a_kind_that_there_is(
    several: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(several.parent)
    assert main(["plot", "try-one", "--out", "new/one.svg"]) == 0
    assert Path("new/one.svg").read_text().startswith("<?xml")
    assert "curves: new/one.svg\n" in capsys.readouterr().out
    assert main(["plot", "try-one", "--out", "one.jpg"]) == 2
    assert "--out one.jpg has to end in .png, .svg, .pdf or .html" in capsys.readouterr().err
    assert not Path("one.jpg").exists()


@pytest.mark.slow
def test_out_may_name_the_file(
    several: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(several.parent)
    both = ["plot", "try-one", "try-two", "--out"]
    assert main([*both, "cmp.png"]) == 0
    assert Path("cmp.png").read_bytes().startswith(b"\x89PNG")
    assert "curves: cmp.png\n" in capsys.readouterr().out
    assert main([*both, "new/cmp.html", "--json"]) == 0
    assert Path("new/cmp.html").read_text().startswith("<!")
    told = json.loads(capsys.readouterr().out)
    assert told["html"] == "new/cmp.html" and "png" not in told
    assert main([*both, "v1.2/"]) == 0
    assert sorted(file.name for file in Path("v1.2").iterdir()) == ["plot.html", "plot.png"]
    assert main([*both, "v1.2"]) == 0, "a folder that is there stays one"
    assert main([*both, "cmp.svg"]) == 0
    assert Path("cmp.svg").read_text().startswith("<?xml")
    assert main([*both, "cmp.pdf"]) == 0
    assert Path("cmp.pdf").read_bytes().startswith(b"%PDF")
    capsys.readouterr()
    assert main([*both, "cmp.jpg"]) == 2
    assert "--out cmp.jpg has to end in .png, .svg, .pdf or .html" in capsys.readouterr().err
    assert not Path("cmp.jpg").exists()


@pytest.mark.parametrize(
    "words",
    [
        "plot try-one",
        "compare try-one try-two",
        "arena random careful --game tic_tac_toe --out pictures",
        "bench scaling tic_tac_toe --out x.svg",
        "bench configs nothing.toml",
    ],
)
def test_without_matplotlib_nothing_is_begun(
    several: Path,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(several.parent)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(words.split()) == 2
    told = capsys.readouterr()
    assert told.err.splitlines()[-1].endswith(
        "charts need matplotlib: pip install 'sparring[plot]'"
    )
    assert told.out == ""


def test_an_unknown_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(tmp_path / "nothing")]) == 2
    assert "holds no run" in capsys.readouterr().err


def test_no_learning_library_is_needed(tmp_path: Path) -> None:
    import subprocess

    run = make_run(tmp_path, 3)
    text = (
        "import sys; from sparring.cli import main; assert main(['plot', sys.argv[1]]) == 0\n"
        "sys.exit(', '.join(m for m in ('torch', 'tensorboard') if m in sys.modules) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, str(run.path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two short runs by name, the second one newer."""
    root = tmp_path_factory.mktemp("several") / "runs"
    make_known_run(root, "try-one", {2: 0.25, 8: 0.5}, age_s=10)
    make_known_run(root, "try-two", {4: 0.75}, updates=20, seed=1)
    return root


def series_of(page: Path, title: str) -> list[dict[str, Any]]:
    """What the pointer shows in a chart."""
    figure = page.read_text().partition(f'aria-label="{title}"')[2]
    text = figure.partition('<script type="application/json">')[2].partition("</script>")[0]
    found: list[dict[str, Any]] = json.loads(text)["series"]
    return found


def test_several_runs_share_a_picture(
    several: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(several.parent)
    assert main(["plot", "try-o", "latest", "--by", "decisions"]) == 0
    shown = capsys.readouterr().out
    assert "runs: runs/try-one, runs/try-two" in shown
    with Image.open(several / "plot.png") as image:
        seen = {bytes(c).hex() for _, c in image.convert("RGB").getcolors(2**24) or ()}
    assert {COLORS[0][1:], COLORS[1][1:]} <= seen
    page = several / "plot.html"
    Page(page)
    one, two = series_of(page, "Mean over opponents")
    assert (one["name"], two["name"]) == ("one", "two")
    assert (one["x"], one["y"]) == ([2000, 8000], [0.25, 0.5])
    assert (two["x"], two["y"]) == ([4000], [0.75])
    assert "previous best" not in page.read_text()


@pytest.mark.slow
def test_an_evaluation_lies_where_its_checkpoint_was_made(several: Path, tmp_path: Path) -> None:
    """Its answer comes later; curves by minutes must not show strength as later than it was."""
    for by, places in (("minutes", [2, 8]), ("updates", [2, 8]), ("decisions", [2000, 8000])):
        _, page = plot_run(several / "try-one", tmp_path, by=by)  # type: ignore[arg-type]
        (line, *_) = series_of(page, "Win share against each opponent")
        assert line["x"] == places


def test_numbers_as_csv(several: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "new" / "numbers.csv", ["--out", str(tmp_path), "--json"]
    assert main(["plot", str(several / "try-one"), "--csv", str(file), *out]) == 0
    told = json.loads(capsys.readouterr().out)
    with file.open(newline="") as text:
        lines = list(csv.DictReader(text))
    assert list(lines[0]) == ["update", "seconds", "decisions", "name", "value"]
    assert told["csv_lines"] == len(lines)
    (strength,) = [x for x in lines if x["name"] == "eval/strength" and x["update"] == "2"]
    assert (strength["decisions"], strength["value"]) == ("2000", "0.25")
    both = [str(several / "try-one"), str(several / "try-two")]
    assert main(["plot", *both, "--csv", str(file), *out]) == 0
    told = json.loads(capsys.readouterr().out)
    with file.open(newline="") as text:
        assert {line["run"] for line in csv.DictReader(text)} == {"try-one", "try-two"}
    assert [Path(run["run"]).name for run in told["runs"]] == ["try-one", "try-two"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("try-one --by decision", "did you mean 'decisions'?"),
        ("try-one try-one", "given twice"),
        ("try-one try-tow", "did you mean 'try-two'"),
        ("try", "2 runs begin with 'try'"),
    ],
)
def test_a_mistake_draws_nothing(
    several: Path,
    words: str,
    hint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(several.parent)
    assert main(["plot", *words.split()]) == 2
    assert hint in capsys.readouterr().err
