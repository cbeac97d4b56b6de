"""An agent as one HTML file with rules, bots, network and user interface.

Scripts and styles are inline, and the content security policy allows them by their hashes and
nothing else: the page cannot send any request.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sparring
from sparring.errors import ConfigError
from sparring.nets.policy import Policy
from sparring.store.champions import MATCH, champion_of, named_champion
from sparring.store.lookup import locate
from sparring.training.records.overview import read_json
from sparring.training.records.run import RESULTS
from sparring.training.records.strength import best_opponent, strength_in
from sparring.web.bundle import APP, GAMES, bundle, resolve_address
from sparring.web.description import describe_rules, wasm_file
from sparring.web.networks import header_of, pack_network

MARK = "sparring agent file"
"""Generator mark of the page; a file without it is never overwritten."""
STYLES = ("style.css", "play/play.css", "agent.css")
IMPORTED = re.compile(r'@import url\("(/[^"]+)"\);')
NOT_IN_NAMES = re.compile(r"[+,=@\s]+")
"""Separators in the address of a game, which player names must not contain."""


def agent_page(policy: Policy, word: str) -> tuple[str, dict[str, int], dict[str, Any]]:
    """Return the page, the bytes of its parts, and the description of the agent.

    word: name by which the policy was loaded.
    """
    game = policy.rules.name
    network = pack_network(policy)  # first, as it rejects what a browser cannot run
    about = describe_agent(policy, word)
    parts = {
        "wasm": compress(wasm_file(game).read_bytes()),
        "network": compress(network),
        "script": start_script(game),
        "worker": bundle((APP / "engine" / "worker.js").read_text("utf-8")),
        "style": styles_of(game),
        "about": json.dumps(about, ensure_ascii=False).replace("<", "\\u003c"),
    }
    theme = (APP / "theme.js").read_text("utf-8")
    title = html.escape(f"{about['agent']['name']} - {policy.rules.title}")
    page = PAGE.format(
        mark=f"{MARK}, {sparring.__version__}",
        policy=html.escape(content_policy([theme, parts["script"]], parts["style"])),
        title=title,
        icon=html.escape(icon()),
        name=html.escape(about["agent"]["name"]),
        game=game,
        theme=theme,
        button=THEME_BUTTON,
        **parts,
    )
    return page, {name: len(part.encode()) for name, part in parts.items()}, about


def describe_agent(policy: Policy, word: str) -> dict[str, Any]:
    """Return the description of an agent. word: name by which it was loaded."""
    results, when = strength_of(policy, word)
    meta, header = policy.meta, header_of(policy)
    run, _, checkpoint = str(meta.get("loaded_from", policy.name)).rpartition("/")
    config = meta.get("config") or {}
    strength = strength_in(results, best_opponent(policy.rules))
    return {
        "sparring": sparring.__version__,
        "agent": {
            "name": NOT_IN_NAMES.sub("-", policy.name),
            "run": run or None,
            "checkpoint": checkpoint if run else None,
            "algo": config.get("algo") or ("ppo" if config else None),
            "decisions": meta.get("decisions"),
            "minutes": meta["seconds"] / 60 if "seconds" in meta else None,
            "kind": header["kind"],
            "parameters": header["parameters"],
            "searchable": can_search(policy),
            "strength": strength and strength.value,
            "measure": strength and strength.measure,
        },
        "strength": [
            {
                "opponent": opponent,
                "when": when,
                **{key: found.get(key) for key in ("win", "low", "high", "score", "games")},
            }
            for opponent, found in results.items()
        ],
        "rules": describe_rules(policy.rules),
    }


def can_search(policy: Policy) -> bool:
    try:
        policy.check_searchable()
    except ConfigError:
        return False
    return True


def strength_of(policy: Policy, word: str) -> tuple[dict[str, Any], str]:
    """Return the results of matches of this network, by opponent, and when they were played."""
    if game := named_champion(word):
        rows = champion_of(game).strength
        return dict(
            champion_row(row) for row in rows if "games" in row
        ), "measured when it became champion"
    folder = locate(word)
    for place in [folder, *folder.parents][:3] if folder else []:
        found = read_json(place / RESULTS)
        if isinstance(found, dict) and found.get("policy") == policy.meta.get("loaded_from"):
            return dict(found.get("results", {})), "measured after training"
    return dict(policy.meta.get("wins") or {}), "measured while it trained"


def champion_row(measured: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the opponent and the result of a match of a champion."""
    style = f" (searching @{measured['style']})" if measured.get("style") else ""
    figure = "win" if measured["of"] == MATCH else "score"
    return f"{measured.get('against', 'the challenge')}{style}", {
        figure: measured["value"],
        **{key: measured.get(key) for key in ("low", "high", "games")},
    }


def compress(raw: bytes) -> str:
    """Return gzipped bytes as base64 text."""
    return base64.b64encode(gzip.compress(raw, 9, mtime=0)).decode()


def start_script(game: str) -> str:
    has_page = (GAMES / game / "page.js").is_file()
    lines = ['import { startAgent } from "/app/agent.js";']
    if has_page:
        lines.append(f'import {{ page }} from "/games/{game}/page.js";')
    return bundle("\n".join([*lines, f"startAgent({'page' if has_page else 'null'});", ""]))


def styles_of(game: str) -> str:
    files = [APP / name for name in STYLES]
    if (GAMES / game / "page.css").is_file():
        files.append(GAMES / game / "page.css")
    return "\n".join(inline_imports(file) for file in files)


def inline_imports(file: Path) -> str:
    """Return a style sheet with its imports inlined."""
    text = file.read_text("utf-8")
    return IMPORTED.sub(lambda found: inline_imports(resolve_address(found[1], str(file))), text)


def content_policy(scripts: list[str], style: str) -> str:
    """Return the content security policy: inline parts only.

    A worker is a blob of the page's own text, which nothing from outside can become.
    """
    allowed = " ".join(f"'{hash_of(script)}'" for script in scripts)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {allowed} 'wasm-unsafe-eval'",
            f"style-src '{hash_of(style)}'",
            "worker-src blob:",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def hash_of(text: str) -> str:
    """Return the hash of an inline part for the policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def icon() -> str:
    """Return the icon as a data URL."""
    raw = base64.b64encode((APP / "icon.svg").read_bytes()).decode()
    return f"data:image/svg+xml;base64,{raw}"


THEME_BUTTON = """<button id="theme" class="quiet icon" type="button" aria-label="Colors">
<svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">
<circle cx="12" cy="12" r="8.5" fill="none" stroke="currentColor" stroke-width="1.8" />
<path d="M12 3.5a8.5 8.5 0 0 1 0 17z" fill="currentColor" />
</svg>
</button>"""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="{mark}">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<link rel="icon" href="{icon}" type="image/svg+xml">
<style>{style}</style>
<script>{theme}</script>
</head>
<body>
<a class="skip" href="#page">Skip to the page</a>
<header class="bar">
<a class="mark" href="#/about">{name}</a>
<nav aria-label="Pages">
<a href="#/about" data-page="about">About</a>
<a href="#/play/{game}" data-page="play">Play</a>
<a href="#/replay" data-page="replay">Replay</a>
</nav>
{button}
</header>
<main id="page" tabindex="-1">
<noscript><p class="notice">This page plays by JavaScript and WebAssembly.</p></noscript>
</main>
<div id="toasts" role="status" aria-live="polite"></div>
<script type="application/json" id="about">{about}</script>
<script type="text/plain" id="wasm">{wasm}</script>
<script type="text/plain" id="network">{network}</script>
<script type="text/plain" id="worker">{worker}</script>
<script>{script}</script>
</body>
</html>
"""
