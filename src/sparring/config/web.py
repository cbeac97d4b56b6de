"""What the commands for a browser take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional

from sparring.config.ranges import Checked, between


@dataclass(frozen=True)
class ServeConfig(Checked):
    """Show runs in a browser, live, and play against their agents there."""

    folder: Positional[str] = ""
    """The folder with the runs. Left out: that of --runs."""
    runs: str = "runs"
    """The same, as other commands take it. Files outside of it are never shown."""
    host: str = "127.0.0.1"
    """Where to listen; 0.0.0.0: in every network. Whoever comes from elsewhere needs the token."""
    port: Annotated[int, between(0, 65_535)] = 8000
    """The port to listen at. 0: any that is free."""
    token: str = ""
    """What a visitor has to show, for everything. Other users of this machine see it among the
    processes: --token-file or SPARRING_TOKEN hides it. Left out: a new one each time."""
    token_file: str = ""
    """A file with the token in it, which nobody else should be able to read."""
    open: bool = False
    """Open the page in a browser as soon as it answers."""
    api: bool = False
    """Let programs ask agents for actions: POST /api/act, described in /openapi.json."""
    agent: str = ""
    """With --api: who answers requests that name nobody; a run, RUN/40, RUN/past/12 or a folder."""
    fallback: str = ""
    """With --api: the bot that answers for an agent that is missing or damaged. None: an error."""
    states: bool = False
    """With --api: take states as bytes, which are checked whole before anything is played."""
    batch: Annotated[int, between(1, 4096)] = 64
    """With --api: most requests that share a forward pass. Higher answers more a second."""
    wait_ms: Annotated[float, between(0.0, 1000.0)] = 1.0
    """With --api: how long requests wait for others, once several come at a time."""
    json: bool = False
    """Print the address as one JSON object instead of lines."""
