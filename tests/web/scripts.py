"""The pages' modules without a browser: bundled, and run by node over a small document."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparring.web.bundle import bundle

DOCUMENT = Path(__file__).with_name("dom.js")


def run_script(script: str) -> str:
    """Run a script and return what it prints."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here to run a script; the browser's tests run it too")
    return subprocess.run(
        [node, "-"], input=script, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def run_modules(script: str) -> Any:
    """Run a module that imports those of the pages; return what it gives to `answer`."""
    answer = "const answer = (value) => console.log(JSON.stringify(value));\n"
    return json.loads(run_script(DOCUMENT.read_text("utf-8") + answer + bundle(script)))
