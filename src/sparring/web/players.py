"""Opponents in the web app: bots, and the agents of runs with their networks."""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sparring.errors import ConfigError, UntrustedError
from sparring.factories import is_factory
from sparring.games.flags import read_rules
from sparring.games.rules import Rules, game_names
from sparring.search.worlds import uses_worlds
from sparring.store.champions import CHAMPION, MATCH, champion_games, champion_of, named_champion
from sparring.store.files import read_regular
from sparring.store.folders import BEST, is_file, is_folder
from sparring.store.schema import parse_json
from sparring.training.records.overview import read_json
from sparring.web.responses import ConflictError, NotFoundError, json_handler, reading_files
from sparring.web.run_summaries import RunSummaries
from sparring.web.runs_folder import MANIFEST, RunsFolder, list_checkpoints, quoted

MAX_NETWORK = 2**30
"""Bytes of a snapshot."""
LOCK_TIMEOUT_S = 30.0
"""Time to wait while another network is packed."""
MAX_CACHED = 16
"""Packed networks in memory, of up to some megabytes each."""
PLAYER_NAME = re.compile(r"(?P<run>[^/]+)(?:/(?P<past>past/)?(?P<number>\d{1,9}))?")
"""RUN for its best checkpoint, RUN/40, or RUN/past/12 for a snapshot of its league."""


def player_routes(folder: RunsFolder, summaries: RunSummaries) -> list[Route]:
    networks = NetworkCache(folder)

    def list_players(request: Request) -> Any:
        game = request.query_params.get("game", "")
        if game not in game_names():
            raise ConfigError(f"game has to be one of {', '.join(game_names())}")
        rules = read_rules(game, request.query_params.getlist("set"))
        return {
            "game": game,
            "bots": list(rules.bots),
            "agents": [*list_champions(rules), *list_agents(summaries, folder, rules)],
        }

    def send_network(request: Request) -> Any:
        player = request.query_params.get("player", "")
        with reading_files(quoted(player)):
            raw, tag = networks.packed(player)
        headers = {"etag": tag, "cache-control": "no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(raw, media_type="application/octet-stream", headers=headers)

    return [
        Route("/api/players", json_handler(list_players)),
        Route("/api/network", json_handler(send_network)),
    ]


def list_champions(rules: Rules) -> list[dict[str, Any]]:
    """Return the champion of a game in the form of `list_agents`, if it fits the flags."""
    if rules.name not in champion_games():
        return []
    champion = champion_of(rules.name)
    meta = read_policy_meta(champion.weights)
    if not fits(meta, rules):
        return []
    measured = next(iter(champion.strength), {})
    return [
        {
            "name": f"{rules.name}:{CHAMPION}",
            "algo": CHAMPION,
            "strength": measured.get("value") if measured.get("of") == MATCH else None,
            "measure": MATCH,
            "against": measured.get("against", ""),
            "decisions": champion.recipe.get("decisions"),
            "checkpoint": None,
            "searchable": is_searchable(meta, rules),
            "checkpoints": [],
        }
    ]


def list_agents(summaries: RunSummaries, folder: RunsFolder, rules: Rules) -> list[dict[str, Any]]:
    """Return the runs whose agents fit a game, strongest first, with their checkpoints."""
    agents = []
    for summary in summaries.all():
        if summary["game"] != rules.name:
            continue
        run = folder.root / summary["name"]
        manifest = None if summary["trouble"] else read_playing_checkpoint(run)
        if manifest is None or not fits(manifest["meta"], rules):
            continue
        agents.append(
            {
                "name": summary["name"],
                "algo": summary["algo"],
                "strength": summary["strength"],
                "measure": summary["measure"],
                "against": summary["against"],
                "decisions": manifest["meta"].get("decisions"),
                "checkpoint": manifest["number"],
                "searchable": is_searchable(manifest["meta"], rules),
                "checkpoints": [number for number, _ in list_checkpoints(run)],
            }
        )
    return sorted(agents, key=lambda one: math.inf if one["strength"] is None else -one["strength"])


def read_playing_checkpoint(run: Path) -> dict[str, Any] | None:
    """Return the manifest of the checkpoint that plays: the best one, else the newest."""
    best = read_json(run / BEST)
    chosen = best.get("checkpoint") if isinstance(best, dict) else None
    chosen = chosen if isinstance(chosen, int) else None
    folders = dict(list_checkpoints(run))
    for number in [*([chosen] if chosen in folders else []), *folders]:
        manifest = read_json(folders[number] / MANIFEST)
        if isinstance(manifest, dict) and isinstance(manifest.get("meta"), dict):
            return {**manifest, "number": number}
    return None


def fits(meta: dict[str, Any], rules: Rules) -> bool:
    """Whether a policy was trained on the observations and actions of this game."""
    try:
        if meta["rules_version"] != rules.rules_version or "foreign" in meta:
            return False
        if meta.get("net", {}).get("sees"):  # what is hidden: nobody may play so
            return False
        trained = Rules(meta["game"], meta["game_config"])
    except Exception:  # the manifest may contain anything
        return False
    return (trained.actions, trained.box) == (rules.actions, rules.box) and (
        trained.features == rules.features
    )


def is_searchable(meta: dict[str, Any], rules: Rules) -> bool:
    """Whether a policy has what a search needs: values, where cards are hidden of one network."""
    by_role = uses_worlds(rules) and bool(meta.get("roles"))
    return bool(meta.get("values", True)) and not meta.get("by_value", False) and not by_role


def check_no_custom_network(path: Path) -> None:
    """Reject a custom network by its metadata, before its code could run.

    The browser could not run it, and starting a server must not run code of the folder.
    """
    meta = read_policy_meta(path)
    roles = meta.get("roles") or {}
    nets = [meta.get("net"), *(roles.values() if isinstance(roles, dict) else [None])]
    for net in nets:
        kind = net.get("kind", "") if isinstance(net, dict) else None
        if not isinstance(kind, str):
            raise ConfigError(f"{path.name} does not say what its network is")
        if is_factory(kind):
            raise UntrustedError(
                f"{path.name} is {quoted(kind)}, a custom network; a browser runs sparring's: "
                "net.kind mlp or residual"
            )


def read_policy_meta(path: Path) -> dict[str, Any]:
    """Return the metadata of a checkpoint or snapshot, {} if there is none."""
    if is_folder(path):
        found = read_json(path / MANIFEST)
        meta = found.get("meta") if isinstance(found, dict) else None
    else:
        from sparring.store.snapshots import POLICY
        from sparring.store.tensors import metadata_of

        meta = parse_json(metadata_of(read_regular(path, MAX_NETWORK)).get(POLICY, "{}"))
    return meta if isinstance(meta, dict) else {}


class NetworkCache:
    """Cache of packed networks; the first one imports torch."""

    def __init__(self, folder: RunsFolder) -> None:
        self.folder = folder
        self._cached: OrderedDict[tuple[str, int], tuple[bytes, str]] = OrderedDict()
        self._lock = threading.Lock()  # one at a time: torch takes all cores as it is

    def packed(self, player: str) -> tuple[bytes, str]:
        """Return the packed network of a player, and its ETag."""
        path = self.path(player)
        key = (str(path), (path / MANIFEST if path.is_dir() else path).stat().st_mtime_ns)
        if not self._lock.acquire(timeout=LOCK_TIMEOUT_S):
            raise ConflictError("another network is still loading; try again in a minute")
        try:
            if key not in self._cached:
                self._cached[key] = self.pack(path)
                while len(self._cached) > MAX_CACHED:
                    self._cached.popitem(last=False)
            self._cached.move_to_end(key)
            return self._cached[key]
        finally:
            self._lock.release()

    def pack(self, path: Path) -> tuple[bytes, str]:
        from sparring.store.policies import load_policy
        from sparring.web.networks import pack_network

        check_no_custom_network(path)
        raw = pack_network(load_policy(path))
        return raw, f'"{hashlib.sha256(raw).hexdigest()[:32]}"'

    def path(self, player: str) -> Path:
        """Return the path of a player's checkpoint or snapshot."""
        if champion := named_champion(player):
            return champion_of(champion).weights
        match = PLAYER_NAME.fullmatch(player)
        if match is None:
            raise ConfigError(
                f"player={quoted(player)}: give RUN, RUN/CHECKPOINT or RUN/past/NUMBER"
            )
        run = self.folder.run(match["run"])
        if match["past"]:
            from sparring.store.archive_index import ArchiveIndex

            index = ArchiveIndex(run)
            entry = index.by_number(int(match["number"]))
            file = index.file(entry.hash) if entry else None
            if file is None or not is_file(file) or not self.folder.contains(file):
                raise NotFoundError(f"{run.name} has no snapshot {match['number']}")
            return file
        if match["number"]:
            return self.folder.checkpoint(run, int(match["number"]))
        manifest = read_playing_checkpoint(run)
        if manifest is None:
            raise NotFoundError(f"{run.name} has no checkpoint yet; wait for its first one")
        return self.folder.checkpoint(run, int(manifest["number"]))
