"""Whatever is set, typed, in a file or in Python: a run that starts, or one line and no folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sparring.cli import main, read_options
from sparring.commands.shared.table import COMMANDS
from sparring.errors import ConfigError, SparringError
from sparring.training.planning.settings import members_of, merged, with_preset
from sparring.training.train import at_once, prepare_new
from training.fuzz_helpers import as_toml, as_words, drawn, spoiled

GAME = "tic_tac_toe"
FORMS = ("words", *["file", "python"] * 4, "file")
"""In turn. Reading a command line takes longest."""


@pytest.fixture(autouse=True)
def restored_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def start(number: int, form: str, folder: Path) -> None:
    """Decide and build everything, and make one update."""
    config: Any
    if form == "words":
        config = read_options(COMMANDS[0], [GAME, *as_words(drawn(number))])
    elif form == "file":
        settings = folder / "settings.toml"
        settings.write_text(as_toml(drawn(number)), "utf-8")
        config = with_preset("", str(settings))
    else:
        changes = spoiled(drawn(number), number)
        file = str(changes.pop("config", ""))
        config = merged(with_preset(GAME, file), changes, "train")
    groups = [members_of(config)] if at_once(config) else [[one] for one in members_of(config)]
    for members in groups:
        session, _ = prepare_new(members)
        session.learner.iterate(0.0)


def why_refused(number: int, folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """Return what is said about a case, "" if it starts; everything else is an error."""
    form = FORMS[number % len(FORMS)]
    try:
        start(number, form, folder)
    except SparringError as refused:
        why = str(refused)
        assert 0 < len(why.strip()) < 1000
        assert "\n" not in why.strip()
        if form == "words" and isinstance(refused, ConfigError):
            capfd.readouterr()
            assert main(["train", GAME, *as_words(drawn(number))]) == 2
            assert len(capfd.readouterr().err.splitlines()) == 1
        return why
    return ""


def try_cases(numbers: range, folder: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, int]:
    """Return how many cases start and how many are refused."""
    started = 0
    for number in numbers:
        try:
            started += not why_refused(number, folder, capfd)
        except Exception as wrong:
            raise AssertionError(f"case {number}: {drawn(number)}") from wrong
        left = {path.name for path in folder.iterdir()} - {"settings.toml"}
        assert not left, f"case {number} left {left}"
    return started, len(numbers) - started


@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
def test_many_configurations_start_or_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    started, refused = try_cases(range(60), tmp_path, capfd)
    assert started > 7
    assert refused > 7


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")
@pytest.mark.parametrize("first", range(100, 2100, 100))
def test_thousands_of_configurations_start_or_are_refused(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sum(try_cases(range(first, first + 100), tmp_path, capfd)) == 100
