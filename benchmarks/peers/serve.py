"""A contestant's process: answers each line of its input with one line of JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from torch.nn.utils import parameters_to_vector

from peers.contestants import Maskable, Ours
from peers.entries import Entry, Settings
from peers.plain import Plain


def serve(entry: Entry, settings: Settings) -> None:
    """Train, train without games, or prove what was done, as each line demands."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    torch.set_num_threads(settings.threads)
    kinds: dict[str, Any] = {"maskable": Maskable, "plain": Plain}
    contestant = kinds.get(entry.kind, Ours)(entry, settings)
    start = weights(contestant.net)
    print(json.dumps({"parameters": len(start)}), file=answers, flush=True)
    for line in sys.stdin:
        word = line.strip()
        started = time.perf_counter()
        if word == "proof":
            reply: dict[str, Any] = proof(contestant, start)
        else:
            reply = contestant.iterate() if word == "train" else contestant.ceiling()
        reply["seconds"] = time.perf_counter() - started
        print(json.dumps(reply), file=answers, flush=True)


def weights(net: Any) -> Any:
    """Return all parameters in one vector."""
    return parameters_to_vector(net.parameters()).detach().clone()


def proof(contestant: Any, start: Any) -> dict[str, Any]:
    """Return whether whole games were played and something was learned from them."""
    lengths, now = contestant.lengths(), weights(contestant.net)
    problems = [f"audit: {wrong}"] if (wrong := contestant.pool.audit()) else []
    if not lengths:
        problems.append("no game was finished; measure more rounds")
    elif set(lengths) != {contestant.whole_game}:
        problems.append(f"games of {set(lengths)} decisions, not {contestant.whole_game}")
    if bool((now == start).all()) or not bool(now.isfinite().all()):
        problems.append("the weights did not change, or are not finite")
    return {"games_finished": len(lengths), "problems": problems}
