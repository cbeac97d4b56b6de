"""Episodes played in another process: `python -m sparring.proof.contract.child FD PARENT`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from typing import Any, BinaryIO

from sparring.factories import load_factory
from sparring.pools.foreign.make import made
from sparring.processes import end_group, follow_parent, start_python
from sparring.proof.contract.drivers import EnvRaisedError
from sparring.proof.contract.kinds import driver_of
from sparring.proof.contract.playing import Facts, play
from sparring.proof.contract.values import Fact


def play_elsewhere(
    word: str,
    settings: dict[str, Any],
    episodes: Sequence[tuple[int, int]],
    *,
    hashes: str,
    wait_s: float,
) -> tuple[list[list[Facts]], str]:
    """Play episodes, (seed, steps) each, in a new process; return their facts, or what went wrong.

    hashes: the seed of Python's hashes there.
    """
    asked = {"word": word, "settings": settings, "episodes": list(episodes), "path": sys.path}
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors:
        process = start_python(
            "sparring.proof.contract.child",
            [str(answer.fileno()), str(os.getpid())],
            fds=[answer.fileno()],
            variables={"PYTHONHASHSEED": hashes},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            process.communicate(json.dumps(asked).encode(), timeout=wait_s)
        except subprocess.TimeoutExpired:
            return [], f"it had not played {len(episodes)} episodes after {wait_s:.0f} s"
        finally:
            end_group(process)
        if process.returncode:
            lines = written(errors).decode(errors="replace").strip().splitlines()
            return [], f"it ended with {process.returncode}: {lines[-1] if lines else 'no word'}"
        return read(json.loads(written(answer))), ""


def written(file: BinaryIO) -> bytes:
    """Return what another process wrote to a file."""
    file.seek(0)
    return file.read()


def read(told: list[list[dict[str, list[str]]]]) -> list[list[Facts]]:
    """Turn JSON into facts again."""
    return [
        [{name: Fact(*fact) for name, fact in facts.items()} for facts in script] for script in told
    ]


def main(words: Sequence[str]) -> int:
    """Play what standard input asks for."""
    fd, parent = int(words[0]), int(words[1])
    follow_parent(parent)
    asked = json.load(sys.stdin)
    sys.path[:] = asked["path"]
    make = load_factory(asked["word"], "game")
    found = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for seed, steps in asked["episodes"]:
                env = made(lambda: make(**asked["settings"]), asked["word"])
                found.append(play(driver_of(env, asked["word"]), seed, steps=steps).facts)
    except EnvRaisedError as raised:
        print(raised, file=sys.stderr)
        return 1
    with os.fdopen(fd, "wb") as answer:
        answer.write(json.dumps(found).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
