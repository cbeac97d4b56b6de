"""Ends what a local cluster leaves behind when its program is killed: `... reaper FOLDER`.

Ray's own processes notice such a death one after the other, and some never do. This one waits for
the end of its input, which also comes when the program dies, and then ends every process that was
given the token in that folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path

DONE = "done"
"""Said by a program that has ended its cluster itself."""


def main(folder: str) -> None:
    """Wait, then end what is left."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # meant for the program, which says when it is done
    if sys.stdin.read().strip() != DONE:
        while left := processes_with(str(Path(folder) / "token")):
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def processes_with(token: str) -> list[int]:
    """Processes that were started with a token; those that have ended do not count."""
    wanted = f"RAY_AUTH_TOKEN_PATH={token}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in place.read_bytes().split(b"\0"):
                found.append(int(place.parent.name))
    return [pid for pid in found if pid != os.getpid()]


if __name__ == "__main__":
    main(sys.argv[1])
