"""Ends what a local Ray cluster leaves behind when its program is killed: `... reaper FOLDER`.

Ray's processes notice the death of their program late, or never. This process waits for the end of
its input, which also comes when the program dies, and then kills every process that was started
with the token in the folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path

DONE = "done"
"""Input from a program that has ended its cluster itself."""


def main(folder: str) -> None:
    """Wait, then kill what is left."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the program handles them
    if sys.stdin.read().strip() != DONE:
        while left := processes_with(str(Path(folder) / "token")):
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def processes_with(token: str) -> list[int]:
    """Processes that were started with a token, zombies excluded."""
    wanted = f"RAY_AUTH_TOKEN_PATH={token}".encode()
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in environ.read_bytes().split(b"\0"):
                found.append(int(environ.parent.name))
    return [pid for pid in found if pid != os.getpid()]


if __name__ == "__main__":
    main(sys.argv[1])
