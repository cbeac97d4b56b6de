"""Agents that answer programs: loaded once, loaded again when a run has a better checkpoint."""

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
"""Networks that are kept; the one that was asked longest ago makes room."""
CHECK_EVERY_S = 1.0
"""How often it is looked whether a checkpoint has changed, at most."""
PLAYER_NAME = re.compile(r"[^./\\\0][^/\\\0]*(?:/(?:past/)?\d{1,9})?")
"""RUN, RUN/40 or RUN/past/12, where RUN may be `latest` or the beginning of a name."""


class UnavailableError(SparringError):
    """A player that cannot answer now."""


@dataclass
class LoadedAgent:
    """A policy that is loaded, and which files it came from."""

    policy: Policy
    mark: str
    looked: float
    trouble: str = ""
    """Why newer files could not be loaded; these weights answer on."""
    since: float = field(default_factory=time.time)

    def plain(self, name: str) -> dict[str, Any]:
        """Return what there is to know about it."""
        return {
            "player": name,
            "loaded_from": self.policy.name,
            "game": self.policy.rules.name,
            "update": self.policy.meta.get("update"),
            "since": self.since,
            "trouble": self.trouble,
        }


class AgentCache:
    """Players by the words that requests use, in a folder of runs."""

    def __init__(
        self, folder: RunsFolder, default: str = "", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Load nothing yet.

        default: who is meant where a request names nobody: a word, or any path of this machine,
            since whoever starts the server may choose any.
        """
        self.folder, self.default, self.clock = folder, default, clock
        self.kept: OrderedDict[str, LoadedAgent] = OrderedDict()
        self._loading: dict[str, asyncio.Task[LoadedAgent]] = {}

    def name(self, word: str) -> str:
        """Return who is meant; an error says how to name somebody."""
        if not word and not self.default:
            raise ConfigError("player: name a run, or start the server with --agent RUN")
        if word and word != self.default and not PLAYER_NAME.fullmatch(word):
            raise ConfigError(f"player={quoted(word)}: give RUN, RUN/CHECKPOINT or RUN/past/NUMBER")
        return word or self.default

    async def get(self, word: str) -> LoadedAgent:
        """Return an agent. If its files have changed, it serves until the new one is loaded."""
        agent = self.kept.get(word)
        if agent is None:
            return await self._load(word)
        self.kept.move_to_end(word)
        if self.clock() - agent.looked >= CHECK_EVERY_S and word not in self._loading:
            agent.looked = self.clock()
            task = asyncio.get_running_loop().create_task(self._look(word, agent))
            self._loading[word] = task
            task.add_done_callback(lambda _: self._loading.pop(word, None))
        return agent

    async def _load(self, word: str) -> LoadedAgent:
        """Load an agent once, however many ask for it."""
        task = self._loading.get(word)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.get_running_loop().create_task(WORKERS.do(partial(self._read, word)))
            self._loading[word] = task
            task.add_done_callback(lambda _: self._loading.pop(word, None))
        agent = await asyncio.shield(task)
        self._keep(word, agent)
        return agent

    async def _look(self, word: str, old: LoadedAgent) -> LoadedAgent:
        """Load an agent anew if its files are others now."""
        try:
            if await WORKERS.do(partial(self._mark_now, word)) == old.mark:
                return old
            fresh = await WORKERS.do(partial(self._read, word))
        except SparringError as wrong:
            old.trouble = str(wrong)
            return old
        self._keep(word, fresh)
        return fresh

    def _keep(self, word: str, agent: LoadedAgent) -> None:
        self.kept[word] = agent
        self.kept.move_to_end(word)
        while len(self.kept) > MAX_LOADED:
            self.kept.popitem(last=False)

    def _mark_now(self, word: str) -> str:
        return file_signature(self.place(word))

    def _read(self, word: str) -> LoadedAgent:
        from sparring.store.policies import load_policy

        try:
            place = self.place(word)
            mark = file_signature(place)  # first: what changes meanwhile is seen the next time
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a damaged best checkpoint the newest is taken
                policy = load_policy(place)
        except UntrustedError:
            raise
        except Exception as wrong:  # of others' files
            raise UnavailableError(f"{quoted(word)} cannot answer: {told(wrong)}") from None
        return LoadedAgent(policy, mark, self.clock())

    def place(self, word: str) -> Path:
        """Return the folder or file that a word means, one of our folder unless we were told so."""
        from sparring.store.lookup import locate

        try:
            found = locate(self.folder.root / word)
            if found is None and word == self.default:
                found = locate(word)
        except SparringError as wrong:
            raise UnavailableError(str(wrong)) from None
        if found is None:
            raise UnavailableError(f"there is no player {quoted(word)}; /api/players lists them")
        if word != self.default:
            if not self.folder.contains(found):
                raise UnavailableError(f"{quoted(word)} leads out of the folder with the runs")
            self.folder.check_links(found if is_folder(found) else found.parent)
        return found


def file_signature(place: Path) -> str:
    """Return what changes when another checkpoint would be loaded."""
    from sparring.store.folders import BEST, CHECKPOINTS, MANIFEST

    if place.is_file():
        files = [place]
    elif (place / MANIFEST).is_file():
        files = [place / MANIFEST]
    elif (place / BEST).is_file():
        files = [place / BEST]
    else:
        files = sorted((place / CHECKPOINTS).glob(f"[0-9]*/{MANIFEST}"))[-1:]
    marks = []
    for file in files:
        facts = file.stat()
        marks.append(f"{file} {facts.st_mtime_ns} {facts.st_ino} {facts.st_size}")
    return "; ".join(marks)
