"""Validation of a pool's games before they are measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from sparring.games import Rules
from sparring.games.lookup import game_module
from sparring.pools import Pool
from sparring.proof.conformance import digests

PROOF_GAMES, MIN_STEPS, MAX_STEPS = 256, 300, 100_000
AUDIT_EVERY = 37
"""Steps between audits; odd, so that every phase of a game is audited."""

SIGNATURE_GAMES, SIGNATURE_SEED, SIGNATURE_STEPS = 64, 2026, 600
SIGNATURE_WAYS = ((1, 1), (2, 1), (4, 1), (1, 2))
"""(threads, pools) that must all play the same games."""


@dataclass
class Proof:
    """Statistics of whole games, and problems found in them."""

    games: int = 0
    shortest: int = 0
    mean: float = 0.0
    longest: int = 0
    terminated: int = 0
    truncated: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    audits: int = 0
    signature: str = ""
    problems: list[str] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        return not self.problems


def prove(rules: Rules, seed: int) -> Proof:
    """Play whole games and the fixed workload; problems are listed in the result."""
    proof = Proof()
    play_whole_games(rules, seed, proof)
    signatures = {way: signature(rules, *way) for way in SIGNATURE_WAYS}
    proof.signature = signatures[1, 1]
    for (threads, pools), other in signatures.items():
        if other != proof.signature:
            proof.problems.append(
                f"signature {other} with {threads} threads in {pools} pools, "
                f"{proof.signature} with 1 thread in 1 pool"
            )
    return proof


def play_whole_games(rules: Rules, seed: int, proof: Proof) -> None:
    """Play the first episode of every game of a pool to its end."""
    pool = Pool(rules, PROOF_GAMES, seed=seed)
    batch = pool.reset()
    lengths = np.zeros(PROOF_GAMES, np.int64)
    ends: Counter[str] = Counter()
    for step in range(MAX_STEPS):
        batch = pool.step(pool.sample_actions())
        ended = batch.terminated | batch.truncated
        if int(ended.sum()) != len(batch.final_game):
            proof.problems.append(
                f"step {step}: {ended.sum()} games ended, {len(batch.final_game)} were reported"
            )
        for at, game in enumerate(batch.final_game):
            if lengths[game]:
                continue
            lengths[game] = batch.final_length[at]
            ends[rules.ends[batch.final_reason[at]]] += 1
            proof.terminated += int(batch.terminated[game])
            proof.truncated += int(batch.truncated[game])
        if step % AUDIT_EVERY == 0:
            proof.audits += 1
            wrong = pool.audit()
            if wrong:
                proof.problems.append(f"audit after {step + 1} steps: {wrong}")
        if (lengths.all() and step >= MIN_STEPS) or proof.problems:
            break
    finished = lengths[lengths > 0]
    proof.games, proof.ends = len(finished), dict(ends)
    if len(finished):
        proof.shortest, proof.longest = int(finished.min()), int(finished.max())
        proof.mean = float(finished.mean())
    proof.problems += wrong_lengths(rules, proof) + wrong_ends(proof)


def wrong_lengths(rules: Rules, proof: Proof) -> list[str]:
    if proof.games < PROOF_GAMES:
        return [f"only {proof.games} of {PROOF_GAMES} games came to an end"]
    expected = getattr(game_module(rules.name), "game_length", lambda _: None)(rules)
    if expected is None or proof.shortest == proof.longest == expected:
        return []
    return [
        f"games have {proof.shortest}..{proof.longest} decisions, "
        f"the rules make it {expected} in every game"
    ]


def wrong_ends(proof: Proof) -> list[str]:
    if proof.terminated + proof.truncated == proof.games:
        return []
    return [
        f"{proof.games} games ended, but {proof.terminated} were terminated "
        f"and {proof.truncated} truncated"
    ]


def signature(rules: Rules, threads: int, pools: int) -> str:
    """Fingerprint of a fixed workload: it changes only when the rules do."""
    number, played = 0, (SIGNATURE_GAMES, SIGNATURE_STEPS, SIGNATURE_SEED)
    for digest in digests(rules, *played, threads=threads, parts=pools):
        number = (number * 0x100000001B3 + digest) % 2**64
    return f"{number:016x}"
