"""Every renamed setting: the old name is refused with the new one, wherever it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparring
from sparring.cli import main
from sparring.config import TrainConfig
from sparring.config.options import paths_of
from sparring.config.renamed import RENAMED, SECTIONS
from sparring.errors import ConfigError

OTHER_COMMANDS = {"most", "meter", "save_most", "from_policy"}
"""Options of commands other than train."""
OF_TRAIN = sorted(set(RENAMED) - OTHER_COMMANDS)


def first_renamed(old: str) -> str:
    """What a reader of nested settings meets first: a renamed section, or the setting."""
    return SECTIONS.get(old.partition(".")[0], RENAMED[old])


def option(path: str) -> str:
    return "--" + path.replace("_", "-")


@pytest.mark.parametrize("old", OF_TRAIN)
def test_the_new_name_exists_and_the_old_one_does_not(old: str) -> None:
    known = set(paths_of(TrainConfig))
    assert RENAMED[old] in known
    assert old not in known


@pytest.mark.parametrize("old", OF_TRAIN)
def test_the_command_line_names_the_new_option(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "tic_tac_toe", option(old), "1"]) == 2
    assert option(RENAMED[old]) in capsys.readouterr().err


@pytest.mark.parametrize("old", OF_TRAIN)
def test_a_file_names_the_new_setting(
    old: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    section, _, key = old.rpartition(".")
    file = tmp_path / "run.toml"
    file.write_text(f"[{section}]\n{key} = 1\n" if section else f"{key} = 1\n")
    assert main(["train", "tic_tac_toe", "--config", str(file)]) == 2
    assert first_renamed(old) in capsys.readouterr().err.replace("-", "_")


@pytest.mark.parametrize("old", OF_TRAIN)
def test_python_names_the_new_setting(old: str) -> None:
    section, _, key = old.rpartition(".")
    given = {section: {key: 1}} if section else {key: 1}
    with pytest.raises(ConfigError) as refused:
        sparring.train("tic_tac_toe", updates=1, quiet=True, **given)
    assert first_renamed(old) in str(refused.value)
