"""`sparring serve`: runs and games in a browser."""

from __future__ import annotations

import importlib.util
import ipaddress
import re
import secrets
import webbrowser
from pathlib import Path
from urllib.parse import quote

from sparring import trusted
from sparring.config import ServeConfig
from sparring.errors import ConfigError
from sparring.store.folders import RUNS

NEEDED = ("starlette", "uvicorn")
TOKEN = re.compile(r"[A-Za-z0-9_.~-]{8,200}")
"""What can stand in an address and in a cookie as it is."""


def run(config: ServeConfig) -> int:
    """Answer browsers until Ctrl-C."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f'{" and ".join(missing)} missing here: pip install "sparring[web]"')
    trusted.forget_memory()  # whoever asks is not who named something here before
    root = Path(config.runs)
    if not root.is_dir() and root != RUNS:
        raise ConfigError(f"{root}: no such folder; give the one that holds the runs")
    token = token_for(config)
    check_api(config)

    from sparring.web.guard import Guard
    from sparring.web.listening import listen, serve
    from sparring.web.server import make_app

    api = None
    if config.api:
        from functools import partial

        from sparring.web.acting import Service

        api = partial(
            Service,
            agent=config.agent,
            fallback=config.fallback,
            batch=config.batch,
            wait_ms=config.wait_ms,
            states=config.states,
        )
    socket = listen(config.host, config.port)
    port = int(socket.getsockname()[1])
    app = make_app(root, guard=Guard(config.host, port, token), api=api)

    def ready() -> None:
        tell(config, port, token)

    serve(app, socket, ready)
    return 0


def check_api(config: ServeConfig) -> None:
    """Refuse settings of an agent that nobody can ask."""
    given = [f"--{name}" for name in ("agent", "fallback", "states") if getattr(config, name)]
    if given and not config.api:
        raise ConfigError(f"{given[0]} is for programs that ask an agent; add --api")


def token_for(config: ServeConfig) -> str:
    """Return what a visitor has to show, nothing where only this machine can reach us."""
    if config.token and not TOKEN.fullmatch(config.token):
        raise ConfigError("--token needs 8 to 200 letters, digits and - _ . ~; or leave it out")
    if config.token or is_loopback(config.host):
        return config.token
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, which nobody else can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def tell(config: ServeConfig, port: int, token: str) -> None:
    """Print where to look, now that somebody answers there."""
    address = address_of(config.host, port) + (f"/?token={quote(token)}" if token else "")
    if config.json:
        from sparring.commands.printing import print_json

        print_json({"address": address, "runs": config.runs, "port": port, "token": token})
    else:
        print(f"{config.runs} in a browser: {address} (Ctrl-C ends)", flush=True)
    if config.open:
        webbrowser.open(address)


def address_of(host: str, port: int) -> str:
    """Return an address that a browser on this machine can open."""
    import socket

    if host in ("0.0.0.0", "::"):  # every network: by the name under which others know us
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
