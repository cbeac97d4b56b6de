"""A folder of static files in which agents play in the page: an index, and one page per game.

Any web space holds it, below any address, and no server takes part. Pages share one script and one
style; rules and network of a game are files beside its page, gzipped, because static servers
compress neither. The content security policy allows files of the same server and nothing else.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sparring
from sparring.draw.pictures.svg import draw_svg
from sparring.errors import ConfigError
from sparring.games.picture import RecordedEpisode, SvgPicture, picture_of
from sparring.league.cage2_challenge import LEADERBOARD
from sparring.league.one_game import play_one
from sparring.league.players import Player
from sparring.nets.policy import Policy
from sparring.output_files import check_folder, writing
from sparring.store.champions import (
    CHAMPION,
    champion_games,
    champion_of,
    named_champion,
    share_text,
)
from sparring.store.files import write_atomic
from sparring.store.policies import load_policy
from sparring.training.records.overview import read_json
from sparring.web.agent_page import STYLES, THEME_BUTTON, describe_agent, inline_imports
from sparring.web.bundle import APP, GAMES, bundle, shared_bundle
from sparring.web.description import wasm_file
from sparring.web.networks import header_of, pack_network

MANIFEST = "sparring-site.json"
"""Lists the files of a site; a folder with other files and without it is never written to."""
GENERATOR = "sparring site"
OWN_NAME = re.compile(r"(?:[a-z0-9_]+/)?[a-z0-9_.-]+")
PICTURE_SEED, PICTURE_WIDTH = 5, 480
PICTURE_TRIES = 20
EASY = (
    "tic_tac_toe",
    "connect_four",
    "skull_king",
    "kuhhandel",
    "laser_hockey",
    "shogi",
    "kuhn_poker",
    "leduc_poker",
    "cage2",
)
"""Games in the order in which a visitor grasps them; others follow."""
Files = dict[str, bytes]
"""Contents by their path in the folder."""


def write_site(
    folder: Path, words: Sequence[str] = (CHAMPION,), *, home: str = ""
) -> dict[str, Any]:
    """Write the site of some agents, at most one per game; return its files with their bytes.

    words: agents as on the command line; `champion` stands for those of all games.
    home: address of the documentation that holds the folder, seen from there, "" if none does.
    """
    before = check_site(folder)
    names = [name for word in words for name in spread(word)]
    policies: dict[str, tuple[Policy, str]] = {}
    for name in names:
        policy = load_policy(name, name=CHAMPION if named_champion(name) else "")
        game = policy.rules.name
        if game in policies:
            raise ConfigError(f"{name} and {policies[game][1]} both play {game}; leave one out")
        policies[game] = (policy, name)
    files = shared_files()
    games = {}
    for game, (policy, name) in policies.items():
        own, about = game_files(policy, name, files, home)
        files |= {f"{game}/{file}": content for file, content in own.items()}
        games[game] = about
    files["index.html"] = index_page(games, files, home).encode()
    strange = sorted(name for name in files if name not in before and (folder / name).exists())
    if strange:
        raise ConfigError(f"{folder / strange[0]} is no file of a site of sparring; move it away")
    sizes = {name: len(content) for name, content in sorted(files.items())}
    manifest = {"generator": GENERATOR, "sparring": sparring.__version__, "files": sizes}
    files = {MANIFEST: json.dumps(manifest, indent=1).encode(), **files}
    with writing(folder, "--site"):
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / name, content)
        for name in before - set(files):
            (folder / name).unlink(missing_ok=True)
    return {"folder": str(folder), "games": list(games), "replaced": bool(before), "files": sizes}


def check_site(folder: Path) -> set[str]:
    """Return the files of the site that is there; refuse a folder of something else."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--site {folder} is a file; name a folder, which need not exist")
    if not folder.exists() or not any(folder.iterdir()):
        check_folder(folder, "--site")
        return set()
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("generator") != GENERATOR:
        raise ConfigError(
            f"--site {folder} holds other files and is no site of sparring; name a new or an "
            "empty folder"
        )
    check_folder(folder, "--site")
    return {name for name in manifest.get("files", {}) if OWN_NAME.fullmatch(name)}


def spread(word: str) -> list[str]:
    """Return the agents that a word stands for."""
    return [f"{game}:{CHAMPION}" for game in champion_games()] if word == CHAMPION else [word]


# Files


START = 'import { startSite } from "/app/site.js";\n'


def shared_files() -> Files:
    """Return what all pages share."""
    styles = [APP / name for name in (*STYLES, "site.css")]
    return {
        "assets/app.js": shared_bundle(START).encode(),
        "assets/worker.js": bundle((APP / "engine" / "worker.js").read_text("utf-8")).encode(),
        "assets/theme.js": (APP / "theme.js").read_bytes(),
        "assets/style.css": "\n".join(map(inline_imports, styles)).encode(),
        "assets/icon.svg": (APP / "icon.svg").read_bytes(),
    }


def look_of(game: str) -> Files:
    """Return the script and the style of a game's page."""
    script, style = GAMES / game / "page.js", GAMES / game / "page.css"
    drawn = f'import {{ page }} from "/games/{game}/page.js";\n' if script.is_file() else ""
    start = f"{START}{drawn}startSite({'page' if drawn else 'null'});\n"
    return {
        "page.js": bundle(start, before=START).encode(),
        "page.css": inline_imports(style).encode() if style.is_file() else b"",
    }


def game_files(
    policy: Policy, word: str, shared: Files, home: str = ""
) -> tuple[Files, dict[str, Any]]:
    """Return the files of a game's folder, and the description of its agent."""
    game = policy.rules.name
    packed = pack_network(policy)  # first, as it rejects what a browser cannot run
    files = {
        "rules.bin": gzip.compress(wasm_file(game).read_bytes(), 9, mtime=0),
        "network.bin": in_planes(packed),
        "picture.svg": picture(policy).encode(),
        **look_of(game),
    }
    about = describe_agent(policy, word)
    champion = champion_of(game) if named_champion(word) else None
    about["agent"]["plays"] = champion.plays if champion else ""
    about["header"] = header_of(policy)
    about["files"] = {
        name: {"address": stamped(address, content), "bytes": len(content)}
        for name, address, content in (
            ("wasm", "rules.bin", files["rules.bin"]),
            ("network", "network.bin", files["network.bin"]),
            ("worker", "../assets/worker.js", shared["assets/worker.js"]),
        )
    }
    files["index.html"] = game_page(about, shared, files, home).encode()
    return files, about


def in_planes(packed: bytes) -> bytes:
    """Return a packed network, compressed, with the bytes of its numbers sorted by their place.

    Weights that were saved in 16 bits leave zeros that way. Nothing is rounded. Runs alone are
    looked for, as other repetitions are chance and cost more than they save.
    """
    start = packed.index(b"\n") + 1
    planes = np.frombuffer(packed, np.uint8, offset=start).reshape(-1, 4).T
    gzipped = zlib.compressobj(9, zlib.DEFLATED, 31, 9, zlib.Z_RLE)
    return gzipped.compress(packed[:start] + planes.tobytes()) + gzipped.flush()


def stamped(address: str, content: bytes) -> str:
    """Return an address that changes with the content, so that no stale copy is used."""
    return f"{address}?{hashlib.sha256(content).hexdigest()[:12]}"


def picture(policy: Policy) -> str:
    """Return a game of the agent against the best bots as one picture, if possible a won one."""
    rules = policy.rules
    drawn, best = picture_of(rules), rules.bots[-1]
    players: list[Player] = [policy, *[best] * (rules.seats - 1)]
    for seed in range(PICTURE_SEED, PICTURE_SEED + PICTURE_TRIES):
        states = list(play_one(rules, players, seed, sampled=False))
        own, *others = states[-1].scores
        if all(own > other for other in others):
            break
    if isinstance(drawn, SvgPicture):
        return drawn.svg(states[-1])
    names = (policy.name, *[best] * (rules.seats - 1))
    return draw_svg(drawn.still(RecordedEpisode(states, names, (0,) * rules.seats)), PICTURE_WIDTH)


# Pages


def game_page(about: Mapping[str, Any], shared: Files, own: Files, home: str) -> str:
    rules = about["rules"]
    title = html.escape(f"{about['agent']['name']} - {rules['title']}")
    data = json.dumps(about, ensure_ascii=False).replace("<", "\\u003c")
    early = html.escape(about["files"]["wasm"]["address"])
    return PAGE.format(
        head=head(title, PAGE_POLICY, "../", shared),
        more=f'<link rel="stylesheet" href="{stamped("page.css", own["page.css"])}">\n'
        f'<link rel="preload" href="{early}" as="fetch" crossorigin>\n'
        f'<script defer src="{stamped("../assets/app.js", shared["assets/app.js"])}"></script>\n'
        f'<script defer src="{stamped("page.js", own["page.js"])}"></script>',
        home="../",
        nav='<a href="../">Games</a>\n'
        f'<a href="#/play/{rules["name"]}" data-page="play">Play</a>\n'
        '<a href="#/replay" data-page="replay">Replay</a>\n'
        '<a href="#/about" data-page="about">About</a>' + documentation(home and f"../{home}"),
        button=THEME_BUTTON,
        body='<p class="soft loading">Setting the table …</p>\n<noscript><p class="notice">This '
        "page plays by JavaScript and WebAssembly.</p></noscript>",
        end='<div id="toasts" role="status" aria-live="polite"></div>\n'
        f'<script type="application/json" id="about">{data}</script>',
    )


def index_page(games: Mapping[str, Mapping[str, Any]], shared: Files, home: str) -> str:
    inviting = sorted(games, key=lambda game: EASY.index(game) if game in EASY else len(EASY))
    cards = "\n".join(card(game, games[game]) for game in inviting)
    lead = (
        "Games, rules, opponents and networks run in the page itself. Nothing is installed, and "
        "nothing is sent."
    )
    return PAGE.format(
        head=head("Play against sparring", INDEX_POLICY, "", shared),
        more="",
        home="./",
        nav=documentation(home),
        button="",
        body=f"<h1>Play against trained agents</h1>\n<p>{lead}</p>\n"
        f'<ul class="cards">\n{cards}\n</ul>',
        end="",
    )


def documentation(address: str) -> str:
    """Return the link to the documentation, if there is any."""
    return f'\n<a href="{html.escape(address)}">Documentation</a>' if address else ""


def card(game: str, about: Mapping[str, Any]) -> str:
    name, line = split_title(about["rules"]["title"])
    return (
        f'<li><a class="card" href="{game}/"><img src="{game}/picture.svg" alt="" width="320" '
        f'height="240" loading="lazy"><strong>{html.escape(name)}</strong>'
        f"<span>{html.escape(line[:1].upper() + line[1:])}.</span>"
        f'<small class="soft">{html.escape(strength_line(about))}</small></a></li>'
    )


def split_title(title: str) -> tuple[str, str]:
    """Return the name of a game and what else its title says, as the page of a table does."""
    name, _, line = title.partition(":") if ":" in title else title.partition(" ")
    return name, line.strip()


def strength_line(about: Mapping[str, Any]) -> str:
    """Return in one sentence how strong an agent is, by its first measurement."""
    found, seats = next(iter(about["strength"]), None), about["rules"]["seats"]
    if not found:
        return f"{about['agent']['name']}: its strength has not been measured."
    whom = f"{found['opponent']}" if seats < 3 else f"{seats - 1} × {found['opponent']}"
    who = "The champion" if about["agent"]["name"] == CHAMPION else about["agent"]["name"]
    if found.get("win") is not None:
        return f"{who} wins {share_text(found['win'])} of games against {whom}, the best bot."
    if seats == 1:
        return f"{who} scores {found['score']:.2f} in {found['opponent']}{scale(about)}."
    if found.get("low") is not None and found["low"] <= 0 <= found["high"]:
        return f"{who} is level with {whom}, the best bot."
    return f"{who} wins {found['score']:+.3f} a game against {whom}, the best bot."


def scale(about: Mapping[str, Any]) -> str:
    """Return what a score of a game of one seat compares with, if that is known."""
    if about["rules"]["name"] != "cage2":
        return ""
    return f" (0: no damage); the winner of that challenge had {LEADERBOARD[0].total:.2f}"


def head(title: str, policy: str, up: str, shared: Files) -> str:
    def address(name: str) -> str:
        return stamped(f"{up}assets/{name}", shared[f"assets/{name}"])

    return HEAD.format(
        generator=f"{GENERATOR}, {sparring.__version__}",
        policy=html.escape(policy),
        title=title,
        icon=address("icon.svg"),
        style=address("style.css"),
        theme=address("theme.js"),
    )


INDEX_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'"
)
PAGE_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'"
)
HEAD = """<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="{generator}">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="{icon}" type="image/svg+xml">
<link rel="stylesheet" href="{style}">
<script src="{theme}"></script>"""
PAGE = """<!doctype html>
<html lang="en">
<head>
{head}
{more}
</head>
<body>
<a class="skip" href="#page">Skip to the page</a>
<header class="bar">
<a class="mark" href="{home}">
<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
<path d="M3 17.5 9 10l4 4 8-9" fill="none" stroke="currentColor" stroke-width="2.4" \
stroke-linecap="round" stroke-linejoin="round" />
<circle cx="21" cy="5" r="2.4" fill="currentColor" />
</svg>
sparring</a>
<nav aria-label="Pages">
{nav}
</nav>
{button}
</header>
<main id="page" tabindex="-1">
{body}
</main>
{end}
</body>
</html>
"""
