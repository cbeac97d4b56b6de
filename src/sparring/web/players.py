"""Who can be played against in a page: bots, and the agents of runs with their networks."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sparring.errors import ConfigError, SparringError
from sparring.games.flags import read_rules
from sparring.games.rules import Rules, game_names
from sparring.store.folders import CHECKPOINTS
from sparring.training.records.overview import read_json
from sparring.web.answers import MissingError, answers
from sparring.web.folder import Folder, shown
from sparring.web.glance import Glances

BEST, MANIFEST = "best.json", "manifest.json"
"""Named here, because the store's own names for them come with torch."""
MOST_KEPT = 16
"""Packed networks that are kept; one has up to some megabytes."""
WORD = re.compile(r"(?P<run>[^/]+)(?:/(?P<past>past/)?(?P<number>\d{1,9}))?")
"""RUN for its best checkpoint, RUN/40, or RUN/past/12 for a snapshot of its league."""


def player_routes(folder: Folder, glances: Glances) -> list[Route]:
    """Return who there is and what they compute with."""
    networks = Networks(folder)

    def list_players(request: Request) -> Any:
        game = request.query_params.get("game", "")
        if game not in game_names():
            raise ConfigError(f"game has to be one of {', '.join(game_names())}")
        rules = read_rules(game, request.query_params.getlist("set"))
        return {"game": game, "bots": list(rules.bots), "agents": agents(glances, folder, rules)}

    def send_network(request: Request) -> Any:
        raw, tag = networks.packed(request.query_params.get("player", ""))
        headers = {"etag": tag, "cache-control": "no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(raw, media_type="application/octet-stream", headers=headers)

    return [
        Route("/api/players", answers(list_players)),
        Route("/api/network", answers(send_network)),
    ]


def agents(glances: Glances, folder: Folder, rules: Rules) -> list[dict[str, Any]]:
    """Return the runs whose agents fit a game, the strongest first, with their checkpoints."""
    found = []
    for told in glances.all():
        if told["game"] != rules.name:
            continue
        run = folder.root / told["name"]
        manifest = played_checkpoint(run)
        if manifest is None or not fits(manifest.get("meta", {}), rules):
            continue
        numbers = [
            int(one.name) for one in (run / CHECKPOINTS).glob("[0-9]*") if one.name.isdecimal()
        ]
        found.append(
            {
                "name": told["name"],
                "algo": told["algo"],
                "strength": told["strength"],
                "measure": told["measure"],
                "decisions": manifest["meta"].get("decisions"),
                "checkpoint": manifest.get("number"),
                "checkpoints": sorted(numbers, reverse=True),
            }
        )
    return sorted(found, key=lambda one: -(one["strength"] or 0.0))


def played_checkpoint(run: Path) -> dict[str, Any] | None:
    """Return what the checkpoint says that would play: the best one, otherwise the newest."""
    best = read_json(run / BEST)
    chosen = best.get("checkpoint") if isinstance(best, dict) else None
    names = sorted((one.name for one in (run / CHECKPOINTS).glob("[0-9]*")), reverse=True)
    if isinstance(chosen, int):
        names.insert(0, f"{chosen:08d}")
    for name in names:
        manifest = read_json(run / CHECKPOINTS / name / MANIFEST)
        if isinstance(manifest, dict):
            return manifest
    return None


def fits(meta: dict[str, Any], rules: Rules) -> bool:
    """Whether a policy sees and does in this game what it was trained on."""
    try:
        if meta["rules_version"] != rules.rules_version or "foreign" in meta:
            return False
        trained = Rules(meta["game"], meta["game_config"])
    except (KeyError, TypeError, SparringError):
        return False
    return (trained.actions, trained.box) == (rules.actions, rules.box) and (
        trained.features == rules.features
    )


class Networks:
    """Networks as pages load them, packed once. Torch is loaded with the first."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._kept: OrderedDict[tuple[str, int], tuple[bytes, str]] = OrderedDict()
        self._lock = threading.Lock()  # one at a time: torch takes all cores as it is

    def packed(self, player: str) -> tuple[bytes, str]:
        """Return a player's bytes and their tag."""
        place = self.place(player)
        key = (str(place), (place / MANIFEST if place.is_dir() else place).stat().st_mtime_ns)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self.pack(place)
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def pack(self, place: Path) -> tuple[bytes, str]:
        """Load a policy and turn it into bytes."""
        from sparring.store.policies import load_policy
        from sparring.web.networks import pack_network

        raw = pack_network(load_policy(place))
        return raw, f'"{hashlib.sha256(raw).hexdigest()[:32]}"'

    def place(self, player: str) -> Path:
        """Return the checkpoint or the snapshot that a word means."""
        word = WORD.fullmatch(player)
        if word is None:
            raise ConfigError(
                f"player={shown(player)}: give RUN, RUN/CHECKPOINT or RUN/past/NUMBER"
            )
        run = self.folder.run(word["run"])
        if word["past"]:
            from sparring.store.archive_index import ArchiveIndex

            index = ArchiveIndex(run)
            entry = index.numbered(int(word["number"]))
            file = index.file(entry.hash) if entry else None
            if file is None or not file.is_file() or not self.folder.holds(file):
                raise MissingError(f"{run.name} has no snapshot {word['number']}")
            return file
        if word["number"]:
            return self.folder.checkpoint(run, int(word["number"]))
        manifest = played_checkpoint(run)
        if manifest is None:
            raise MissingError(f"{run.name} has no checkpoint yet; wait for its first one")
        return self.folder.checkpoint(run, int(manifest["number"]))
