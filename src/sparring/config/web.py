"""What the commands for a browser take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional

from sparring.config.ranges import Checked, between


@dataclass(frozen=True)
class ServeConfig(Checked):
    """Show runs in a browser, live, and play against their agents there."""

    runs: Positional[str] = "runs"
    """The folder with the runs. Files outside of it are never shown."""
    host: str = "127.0.0.1"
    """Where to listen; 0.0.0.0: in every network. Whoever comes from elsewhere needs a token."""
    port: Annotated[int, between(0, 65_535)] = 8000
    """The port to listen at. 0: any that is free."""
    token: str = ""
    """What a visitor has to show. Left out: nothing on this machine alone, elsewhere a new one."""
    open: bool = False
    """Open the page in a browser as soon as it answers."""
    api: bool = False
    """Let programs ask agents for actions: POST /api/act, described in /openapi.json."""
    json: bool = False
    """Print the address as one JSON object instead of lines."""
