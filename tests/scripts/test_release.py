"""`make release` refuses what is not ready, changes nothing then, and says what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGELOG = """\
# Changelog

## [Unreleased]

## [0.3.0] - 2026-11-15

## [0.2.0] - 2026-11-15

### Added

- Pictures.

## [0.1.0] - 2026-10-01

- The beginning.
"""


def git(folder: Path, *words: str) -> None:
    me = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", *me, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A committed tree with all that a release looks at."""
    versions = ("pyproject.toml", "src/sparring/__init__.py", "CITATION.cff")
    for file in ("scripts/release.py", "Makefile", *versions):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "one.hpp").touch()
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


def release(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, "scripts/release.py", *words]
    return subprocess.run(script, cwd=tree, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.parametrize(
    ("version", "hint"),
    [
        ("", "make release VERSION=x.y.z"),
        ("0.2", "not of the form x.y.z"),
        ("v0.2.0", "not of the form x.y.z"),
        ("0.0.9", "older than 0.1.0"),
        ("0.2.1", "no section '## [0.2.1] - YYYY-MM-DD'"),
        ("0.3.0", "with lines in it"),
    ],
)
def test_what_is_not_ready_is_refused_and_nothing_changes(
    tree: Path, version: str, hint: str
) -> None:
    done = release(tree, version)
    assert done.returncode == 2
    assert hint in done.stderr
    assert len(done.stderr.splitlines()) == 1
    left = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tree, capture_output=True, check=True
    )
    assert left.stdout == b""


def test_make_asks_for_a_version(tree: Path) -> None:
    words = ["make", "-s", "release", f"PYTHON={sys.executable}"]
    done = subprocess.run(words, cwd=tree, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 2
    assert "which version? make release VERSION=x.y.z" in done.stderr


def test_a_tree_with_changes_is_refused(tree: Path) -> None:
    (tree / "new.txt").touch()
    assert "not committed, such as new.txt" in release(tree, "0.2.0", "--check").stderr


def test_a_tag_that_exists_is_refused(tree: Path) -> None:
    git(tree, "tag", "v0.2.0")
    assert "there is a tag v0.2.0 already" in release(tree, "0.2.0", "--check").stderr


def test_versions_that_differ_are_refused(tree: Path) -> None:
    file = tree / "pyproject.toml"
    file.write_text(file.read_text().replace('\nversion = "', '\nversion = "9.'))
    git(tree, "commit", "-qam", "another version")
    assert "the version differs" in release(tree, "0.2.0", "--check").stderr


def test_what_is_ready_can_be_released(tree: Path) -> None:
    done = release(tree, "0.2.0", "--check")
    assert (done.returncode, done.stdout) == (0, "0.2.0 can be released\n")


@pytest.mark.slow
def test_a_build_that_fails_leaves_the_version_as_it_was(tree: Path) -> None:
    """The program that builds cannot be had."""
    before = (tree / "pyproject.toml").read_text()
    done = subprocess.run(
        [sys.executable, "scripts/release.py", "0.2.0"],
        cwd=tree,
        env={"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1
    assert "failed with" in done.stderr
    assert (tree / "pyproject.toml").read_text() == before
