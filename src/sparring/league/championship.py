"""Measurements of champions, and of whoever wants to become one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparring.games.rules import Rules
from sparring.league import cage2_challenge as cage2
from sparring.league.arena import play_match
from sparring.league.intervals import Z_95
from sparring.nets.policy import Policy
from sparring.proof.exploitability import EXACT_GAMES, Greedy, Tree, exploitability, has_memory
from sparring.search.worlds import uses_worlds
from sparring.store.champions import CHALLENGE, EXPLOITABILITY, MATCH, SCORE
from sparring.store.styles import read_styles

GAMES = {10**6: (8192, 256), 10**8: (1024, 64)}
"""Games of a match and of one with search, by the multiply-accumulates of a decision up to which
they are played: a perceptron, a small residual network. Larger ones play `FEW_GAMES`."""
FEW_GAMES = (256, 32)
CHALLENGE_GAMES = 1000
"""Games of each setting of CAGE-2's challenge."""
SEARCH = "64"
"""Budget of the search where a measurement has one."""
SEED = 1_000_000
"""Of the deals. Trainings and their evaluations have smaller seeds."""
EXACT_TOLERANCE = 1e-6
"""Of an exploitability: products in another order differ by less."""


def usual_measurements(policy: Policy, plays: str = "") -> list[dict[str, Any]]:
    """Return what is measured of a champion: matches against all bots, and what its game allows.

    plays: its own style, see `Champion.plays`.
    """
    from sparring.nets.sizes import count  # loads torch

    rules, macs = policy.rules, count(policy.net).macs or 0
    games, search_games = next((GAMES[most] for most in GAMES if macs <= most), FEW_GAMES)
    if rules.name == cage2.GAME:
        return [{"of": CHALLENGE, "games": CHALLENGE_GAMES, "seed": SEED}]
    sampled = plays == "sampled"
    # At cards for stakes, games that are won say little.
    of = SCORE if rules.name in EXACT_GAMES and rules.hides else MATCH
    match = {"of": of, "games": games, "seed": SEED, "sampled": sampled}
    wanted = [{**match, "against": bot} for bot in reversed(rules.bots)]
    if rules.seats > 1 and not rules.box and not uses_worlds(rules):
        wanted.append({**match, "against": rules.bots[-1], "style": SEARCH, "games": search_games})
    if rules.name in EXACT_GAMES:
        wanted.append({"of": EXPLOITABILITY, "sampled": sampled})
    return wanted


def measure(
    policy: Policy,
    rules: Rules,
    wanted: Sequence[Mapping[str, Any]],
    *,
    threads: int = 1,
    seed: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Return the measurements with their values and 95 % intervals.

    rules: with the flags of the policy's training.
    seed: of all deals, in place of their own.
    """
    found = []
    for one in wanted:
        if progress:
            progress(described(one))
        spec = dict(one) if seed is None or "seed" not in one else {**one, "seed": seed}
        of = {CHALLENGE: challenge, EXPLOITABILITY: exact}.get(spec["of"], match)
        found.append({**spec, **of(policy, rules, spec, threads)})
    return found


def described(measurement: Mapping[str, Any]) -> str:
    """Return what is measured, in words."""
    if "against" not in measurement:
        return str(measurement["of"])
    style = measurement.get("style", "")
    return f"{measurement['against']}{f', searching @{style}' if style else ''}"


def match(policy: Policy, rules: Rules, spec: Mapping[str, Any], threads: int) -> dict[str, float]:
    """Play a match against copies of a bot; every deal is played from every seat."""
    style = spec.get("style", "")
    player = read_styles(style, [style] if style else []).applied(policy)
    seats = [player, *[spec["against"]] * (rules.seats - 1)]
    settings = {"games": spec["games"], "seed": spec["seed"], "threads": threads}
    result = play_match(rules, seats, greedy=not spec.get("sampled", False), **settings)
    first = result.first
    value, interval = first.win_share, first.win_interval
    if spec["of"] == SCORE:
        value, interval = first.score, first.score_interval
    return {"value": value, "low": interval[0], "high": interval[1], "games": result.games}


def challenge(
    policy: Policy, rules: Rules, spec: Mapping[str, Any], threads: int
) -> dict[str, float]:
    """Play CAGE-2's nine settings."""
    cells = cage2.play_settings(
        policy,
        rules.changed({"preset": "CHALLENGE"}),
        games=spec["games"],
        seed=spec["seed"],
        threads=threads,
        greedy=True,
        progress=lambda _: None,
    )
    total = cage2.total_of(cells)
    half = Z_95 * total.error
    return {"value": total.mean, "low": total.mean - half, "high": total.mean + half}


def exact(policy: Policy, rules: Rules, spec: Mapping[str, Any], threads: int) -> dict[str, float]:
    """Compute the exploitability: NashConv divided by the seats."""
    measured = policy if spec.get("sampled", False) else Greedy(policy)
    tree = Tree(rules, recall=has_memory(measured))
    return {"value": exploitability(tree, measured).exploitability}


def agrees(stated: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether a second measurement confirms the stated one.

    On the same deals it has to lie in the stated interval, on others the intervals have to overlap.
    """
    if "low" not in stated:
        return bool(abs(found["value"] - stated["value"]) <= EXACT_TOLERANCE)
    if stated.get("seed") == found.get("seed"):
        return bool(stated["low"] <= found["value"] <= stated["high"])
    return bool(found["high"] >= stated["low"] and found["low"] <= stated["high"])
