#!/usr/bin/env python3
"""Make the files of a release: scripts/release.py VERSION, or `make release VERSION=x.y.z`.

Checks the tree and the changelog, writes the version where it lives, builds sdist and wheel into
dist/, tries the wheel in a bare environment, and says how to tag. Nothing is pushed or uploaded.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOMES = {
    "pyproject.toml": r'^(version = ")([^"]+)(")$',
    "src/sparring/__init__.py": r'^(__version__ = ")([^"]+)(")$',
    "CITATION.cff": r"^(version: )([^\n]+)()$",
}
"""Where the version lives, and how it is written there."""


class RefusalError(Exception):
    """Why there can be no release yet, and what to do."""


def main() -> int:
    """Check, build, test; exit code 2 means that something is not ready."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("version", nargs="?", default="", help="such as 0.2.0")
    parser.add_argument("--check", action="store_true", help="only check whether it could be made")
    options = parser.parse_args()
    try:
        check(options.version)
        if options.check:
            print(f"{options.version} can be released")
            return 0
        make(options.version)
    except RefusalError as why:
        print(f"release: {why}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as wrong:
        words = " ".join(map(str, wrong.cmd))
        print(f"release: {words} failed with {wrong.returncode}", file=sys.stderr)
        return 1
    return 0


def check(version: str) -> None:
    """Refuse a tree that is not ready for a release."""
    if not version:
        raise RefusalError("which version? make release VERSION=x.y.z")
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        raise RefusalError(f"VERSION={version} is not of the form x.y.z, such as 0.2.0")
    current = read_version()
    if numbers(version) < numbers(current):
        raise RefusalError(f"VERSION={version} is older than {current}, which is here")
    changed = git("status", "--porcelain").splitlines()
    if changed:
        raise RefusalError(
            f"{len(changed)} files are not committed, such as {changed[0][3:]}; commit them first"
        )
    if git("tag", "--list", f"v{version}"):
        raise RefusalError(f"there is a tag v{version} already; take the next version")
    if not section(version):
        raise RefusalError(
            f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD' with lines in it; "
            "move those under Unreleased there"
        )


def read_version() -> str:
    """Return the version of the tree, which is the same everywhere."""
    found = {}
    for file, pattern in HOMES.items():
        line = re.search(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE)
        if line is None:
            raise RefusalError(f"{file} has no line with a version; mend it")
        found[file] = line[2]
    if len(set(found.values())) > 1:
        told = ", ".join(f"{version} in {file}" for file, version in found.items())
        raise RefusalError(f"the version differs: {told}; make them the same")
    return next(iter(found.values()))


def numbers(version: str) -> list[int]:
    """Return a version as a comparable tuple."""
    return [int(number) for number in re.findall(r"\d+", version)]


def section(version: str) -> str:
    """Return the changelog section of a version."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    head = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    found = re.search(rf"{head}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def git(*words: str) -> str:
    """Return the output of git."""
    done = subprocess.run(
        ["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    )
    return done.stdout.strip()


def make(version: str) -> None:
    """Write the version, build and try; a failure leaves the files as they were."""
    before = {file: (ROOT / file).read_text("utf-8") for file in HOMES}
    try:
        for file, pattern in HOMES.items():
            text = re.sub(pattern, rf"\g<1>{version}\g<3>", before[file], flags=re.MULTILINE)
            (ROOT / file).write_text(text, "utf-8")
        built = build(version)
    except BaseException:
        for file, text in before.items():
            (ROOT / file).write_text(text, "utf-8")
        raise
    print(f"\nbuilt and tried: {', '.join(path.name for path in built)} in dist/\n")
    print("when you are content:")
    if git("status", "--porcelain"):
        print(f"  git commit -am 'Release {version}'")
    print(f"  git tag -a v{version} -m 'sparring {version}'")


def build(version: str) -> list[Path]:
    """Return sdist and wheel, built from the sdist, after trying them."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as workshop:
        venv.create(workshop, with_pip=True)
        python = Path(workshop) / "bin" / "python"
        run(python, "-m", "pip", "install", "-q", "build")
        run(python, "-m", "build", "--outdir", dist, ROOT, SPARRING_WASM="1")
    built = sorted(dist.iterdir())
    if len(built) != 2 or not all(path.name.startswith(f"sparring-{version}") for path in built):
        raise RefusalError(f"dist holds {', '.join(p.name for p in built)}; expected {version}")
    if shutil.which("twine"):
        run("twine", "check", "--strict", *built)
    else:
        print("twine is not installed, so the descriptions are not checked: pip install twine")
    run(sys.executable, ROOT / "scripts" / "wheel_smoke.py", *dist.glob("*.whl"), "--train")
    return built


def run(*words: object, **environment: str) -> None:
    """Run a program with more in its environment, or stop."""
    subprocess.run(
        [str(word) for word in words], cwd=ROOT, check=True, env={**os.environ, **environment}
    )


if __name__ == "__main__":
    sys.exit(main())
