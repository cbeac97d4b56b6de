"""`sparring serve`: runs and games in a browser."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import re
import secrets
import webbrowser
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from sparring import trusted
from sparring.config.tools import ServeConfig
from sparring.errors import ConfigError, warn
from sparring.search.budget import Budget
from sparring.store.files import read_regular
from sparring.store.folders import RUNS

NEEDED = ("msgspec", "starlette", "uvicorn")
TOKEN = re.compile(r"[A-Za-z0-9_.~-]{8,200}")
"""Tokens that need no escaping in an address or a cookie."""
VARIABLE = "SPARRING_TOKEN"
MAX_TOKEN_FILE = 1024


def run(config: ServeConfig) -> int:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f'{" and ".join(missing)} missing here: pip install "sparring[web]"')
    trusted.ignore_remembered()  # a client of the server has named nothing
    if config.folder and config.runs not in (config.folder, str(RUNS)):
        raise ConfigError(f"{config.folder} and --runs {config.runs} are two folders; give one")
    config = replace(config, runs=config.folder or config.runs)
    root = Path(config.runs)
    if not root.is_dir() and root != RUNS:
        raise ConfigError(f"{root}: no such folder; give the one that holds the runs")
    token, chosen = token_for(config)
    check_api(config)

    from sparring.web.guard import Guard
    from sparring.web.server import make_app
    from sparring.web.web_server import listen, serve

    api = None
    if config.api:
        from functools import partial

        from sparring.web.agent_service import AgentService

        api = partial(
            AgentService,
            agent=config.agent,
            fallback=config.fallback,
            batch=config.batch,
            wait_ms=config.wait_ms,
            states=config.states,
            search=config.search,
            max_search=config.max_search,
        )
    socket = listen(config.host, config.port)
    port = int(socket.getsockname()[1])
    # A token of the user guards everything; a generated one guards changes on this machine.
    reads_freely = not chosen and is_loopback(config.host)
    guard = Guard(config.host, port, token, reads_freely=reads_freely)
    app = make_app(root, guard=guard, make_service=api)

    def ready() -> None:
        print_address(config, port, token)
        if config.open:
            webbrowser.open(page_of(config, port, guard.issue_ticket()))

    serve(app, socket, ready)
    return 0


def check_api(config: ServeConfig) -> None:
    only_api = ("agent", "fallback", "states", "search")
    given = [f"--{name}" for name in only_api if getattr(config, name)]
    if given and not config.api:
        raise ConfigError(f"{given[0]} needs --api")
    if config.search:
        Budget.parse(config.search)


def token_for(config: ServeConfig) -> tuple[str, bool]:
    """Return the token, and whether the user chose it."""
    if config.token and config.token_file:
        raise ConfigError("--token and --token-file are two tokens; give one of them")
    from_environment = os.environ.pop(VARIABLE, "")  # resumed runs do not inherit it
    source, token = VARIABLE, from_environment
    if config.token_file:
        source, token = f"--token-file {config.token_file}", read_token(Path(config.token_file))
    elif config.token:
        source, token = "--token", config.token
    if not token and not config.token_file:
        return secrets.token_urlsafe(24), False
    if not TOKEN.fullmatch(token):
        raise ConfigError(f"{source} needs 8 to 200 letters, digits and - _ . ~; or leave it out")
    return token, True


def read_token(file: Path) -> str:
    """Return the token in a file; warn if others may read it."""
    try:
        token = read_regular(file, MAX_TOKEN_FILE).decode("ascii", "replace").strip()
        if file.stat().st_mode & 0o077:
            text = f"{file} can be read by others; close it: chmod 600 {file}"
            warn(text)
    except OSError as error:
        raise ConfigError(f"--token-file {file}: {error.strerror or error}") from None
    return token


def is_loopback(host: str) -> bool:
    """Whether an address is only reachable from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def print_address(config: ServeConfig, port: int, token: str) -> None:
    page = page_of(config, port, token)
    if config.json:
        from sparring.commands.shared.printing import print_json

        address = address_of(config.host, port)
        facts = {"address": address, "page": page, "token": token}
        print_json({**facts, "runs": config.runs, "port": port})
    else:
        print(f"{config.runs} in a browser: {page} (Ctrl-C ends)", flush=True)


def page_of(config: ServeConfig, port: int, token: str) -> str:
    return f"{address_of(config.host, port)}/?token={quote(token)}"


def address_of(host: str, port: int) -> str:
    """Return an address that a browser on this machine can open."""
    import socket

    if host in ("0.0.0.0", "::"):  # every network: by the name under which others know us
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
