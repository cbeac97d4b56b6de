"""Cache of loaded agents; an agent is reloaded when its run has a better checkpoint."""

from __future__ import annotations

import asyncio
import re
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparring.errors import ConfigError, SparringError, UntrustedError
from sparring.store.folders import is_folder
from sparring.training.records.overview import told
from sparring.web.runs_folder import RunsFolder, quoted
from sparring.web.workers import WORKERS

if TYPE_CHECKING:
    from sparring.nets.policy import Policy

MAX_LOADED = 8
"""Networks in memory; the least recently used one is dropped."""
CHECK_EVERY_S = 1.0
"""Minimum time between checks whether a checkpoint has changed."""
PLAYER_NAME = re.compile(r"[^./\\\0][^/\\\0]*(?:/(?:past/)?\d{1,9})?")
"""RUN, RUN/40 or RUN/past/12, where RUN may be `latest` or a prefix of a name."""


class UnavailableError(SparringError):
    """The player cannot be loaded (503)."""


@dataclass
class LoadedAgent:
    """A loaded policy and the signature of its files."""

    policy: Policy
    signature: str
    checked: float
    trouble: str = ""
    """Why newer files could not be loaded; the old weights stay in use."""
    since: float = field(default_factory=time.time)

    def plain(self, name: str) -> dict[str, Any]:
        return {
            "player": name,
            "loaded_from": self.policy.name,
            "game": self.policy.rules.name,
            "update": self.policy.meta.get("update"),
            "since": self.since,
            "trouble": self.trouble,
        }


class AgentCache:
    """Agents of a folder of runs, by the names that requests use."""

    def __init__(
        self, folder: RunsFolder, default: str = "", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Load nothing yet.

        default: player of requests that name none; may be any path of this machine, since the user
            who starts the server gives it.
        """
        self.folder, self.default, self.clock = folder, default, clock
        self.loaded: OrderedDict[str, LoadedAgent] = OrderedDict()
        self._loading: dict[str, asyncio.Task[LoadedAgent]] = {}

    def name(self, word: str) -> str:
        """Return the name of a request's player."""
        if not word and not self.default:
            raise ConfigError("player: name a run, or start the server with --agent RUN")
        if word and word != self.default and not PLAYER_NAME.fullmatch(word):
            raise ConfigError(f"player={quoted(word)}: give RUN, RUN/CHECKPOINT or RUN/past/NUMBER")
        return word or self.default

    async def get(self, word: str) -> LoadedAgent:
        """Return an agent; if its files have changed, the old one until the new one is loaded."""
        agent = self.loaded.get(word)
        if agent is None:
            return await self._load(word)
        self.loaded.move_to_end(word)
        if self.clock() - agent.checked >= CHECK_EVERY_S and word not in self._loading:
            agent.checked = self.clock()
            task = asyncio.get_running_loop().create_task(self._reload(word, agent))
            self._loading[word] = task
            task.add_done_callback(lambda _: self._loading.pop(word, None))
        return agent

    async def _load(self, word: str) -> LoadedAgent:
        """Load an agent; concurrent requests share one load."""
        task = self._loading.get(word)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.get_running_loop().create_task(WORKERS.do(partial(self._read, word)))
            self._loading[word] = task
            task.add_done_callback(lambda _: self._loading.pop(word, None))
        agent = await asyncio.shield(task)
        self._keep(word, agent)
        return agent

    async def _reload(self, word: str, old: LoadedAgent) -> LoadedAgent:
        """Load an agent again if its files have changed."""
        try:
            if await WORKERS.do(partial(self._signature, word)) == old.signature:
                return old
            fresh = await WORKERS.do(partial(self._read, word))
        except SparringError as wrong:
            old.trouble = str(wrong)
            return old
        self._keep(word, fresh)
        return fresh

    def _keep(self, word: str, agent: LoadedAgent) -> None:
        self.loaded[word] = agent
        self.loaded.move_to_end(word)
        while len(self.loaded) > MAX_LOADED:
            self.loaded.popitem(last=False)

    def _signature(self, word: str) -> str:
        return file_signature(self.find(word))

    def _read(self, word: str) -> LoadedAgent:
        from sparring.store.policies import load_policy

        try:
            path = self.find(word)
            signature = file_signature(path)  # before loading, so that no later change is missed
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about a damaged best checkpoint
                policy = load_policy(path)
        except UntrustedError:
            raise
        except Exception as wrong:  # the files may contain anything
            raise UnavailableError(f"{quoted(word)} cannot answer: {told(wrong)}") from None
        return LoadedAgent(policy, signature, self.clock())

    def find(self, word: str) -> Path:
        """Return the folder or file of a player, in the folder of runs unless it is the default."""
        from sparring.store.lookup import locate

        try:
            found = locate(self.folder.root / word)
            if found is None and word == self.default:
                found = locate(word)
        except SparringError as wrong:
            raise UnavailableError(str(wrong)) from None
        if found is None:
            raise UnavailableError(f"no player {quoted(word)}; /api/players lists them")
        if word != self.default:
            if not self.folder.contains(found):
                raise UnavailableError(f"{quoted(word)} is a link out of the folder of runs")
            self.folder.check_links(found if is_folder(found) else found.parent)
        return found


def file_signature(path: Path) -> str:
    """Return a text that changes when another checkpoint would be loaded."""
    from sparring.store.folders import BEST, CHECKPOINTS, MANIFEST

    if path.is_file():
        files = [path]
    elif (path / MANIFEST).is_file():
        files = [path / MANIFEST]
    elif (path / BEST).is_file():
        files = [path / BEST]
    else:
        files = sorted((path / CHECKPOINTS).glob(f"[0-9]*/{MANIFEST}"))[-1:]
    parts = []
    for file in files:
        stat = file.stat()
        parts.append(f"{file} {stat.st_mtime_ns} {stat.st_ino} {stat.st_size}")
    return "; ".join(parts)
