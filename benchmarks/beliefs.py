"""How far a belief about hidden cards can be trusted, and the deals that are drawn by it.

    python benchmarks/beliefs.py runs/mine
    python benchmarks/beliefs.py runs/mine --decisions 2000 --worlds 256 --json

The policy plays against itself with another seed than that of its training. At decisions drawn from
these games, the probabilities of its `hidden` head are held against the true hands, and so is how
often the drawn deals place each card where. Items that all uniform deals agree on are known and do
not count. One half of the decisions fits temperatures of both, the other half is reported.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np
import numpy.typing as npt

from learn.calibration import calibration_error, reliability
from pages import keep
from sparring import Pool
from sparring.commands.shared.printing import make_table, print_json, print_table
from sparring.errors import ConfigError, SparringError
from sparring.games.hidden import Hidden, hidden_of, read_hidden
from sparring.machine import machine_info
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy

Floats = npt.NDArray[np.float32]
GAMES, EACH = 128, 16
"""Games side by side, and decisions of a step that count."""
TEMPERATURES = np.linspace(0.5, 3.0, 26)
DEALS = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Temperatures that are tried for drawing."""
COLUMNS = ("cross-entropy", "error", "right", "right of others")


@dataclass(frozen=True)
class Decisions:
    """What was believed at decisions [decisions, items, classes], and what was so."""

    head: Floats
    uniform: Floats
    """Shares of uniform deals."""
    drawn: dict[float, Floats]
    """Shares of deals drawn by the belief, by temperature."""
    truth: npt.NDArray[np.intp]
    """The class of every item [decisions, items]."""
    open: npt.NDArray[np.bool_]
    """Items that are not known [decisions, items]."""


def cooled(log_probs: Floats, temperature: float) -> Floats:
    """Return log-probabilities at another temperature."""
    scaled = log_probs / temperature
    found: Floats = scaled - np.log(np.exp(scaled).sum(-1, keepdims=True))
    return found.astype(np.float32)


class Listener:
    """Plays games of a policy against itself, and asks at some of the decisions."""

    def __init__(self, policy: Policy, worlds: int) -> None:
        hidden = hidden_of(policy.rules)
        if hidden is None or not policy.rules.native.belief_size:
            raise ConfigError(f"{policy.rules.name} takes no belief; try skull_king or kuhhandel")
        self.policy, self.hidden, self.worlds = policy, hidden, worlds
        self.drawing_s, self.deals = 0.0, 0

    def listen(self, decisions: int, seed: int, temperatures: Sequence[float]) -> Decisions:
        """Ask at so many decisions of games with a seed."""
        policy, rng = self.policy, np.random.default_rng(seed)
        pool = Pool(policy.rules, GAMES, seed=seed, memory=policy.memory_bytes)
        batch, found, step = pool.reset(), list[Decisions](), 0
        while len(found) * EACH < decisions:
            mine = np.flatnonzero(batch.seat >= 0)
            obs, mask = batch.obs[mine], batch.mask[mine]
            if step % 5 == 0:  # decisions of a game resemble each other
                at = rng.choice(len(mine), EACH, replace=False)
                found.append(self.ask(pool, mine[at], obs[at], temperatures, step))
            actions: npt.NDArray[Any] = pool.sample_actions()
            actions[mine], memory = policy.decide(obs, mask, greedy=False, seed=seed, step=step)
            if policy.memory_bytes:
                pool.memory[mine // policy.rules.rows, batch.seat[mine]] = memory
            batch, step = pool.step(actions), step + 1
        told = joined(found)
        if not told.open.any():
            raise ConfigError(f"nothing was hidden at {decisions} decisions; raise --decisions")
        return told

    def ask(
        self, pool: Pool, rows: Any, obs: Any, temperatures: Sequence[float], seed: int
    ) -> Decisions:
        """Return what the head says of rows, what is drawn, and what is so."""
        hidden, seat = self.hidden, pool.batch().seat[rows]
        log_probs = self.policy.belief(obs)
        if log_probs is None:
            raise ConfigError(f"{self.policy.name} has no belief; train it with --heads.hidden")
        shape = (len(rows), len(hidden.items), len(hidden.classes))
        head = log_probs.reshape(shape)
        drawn, uniform = dict[float, Floats](), self.shares(pool, rows, seat, seed, None)
        for temperature in temperatures:
            belief = cooled(head, temperature).reshape(len(rows), -1)
            drawn[temperature] = self.shares(pool, rows, seat, seed, belief)
        tables = pool.tables[rows // self.policy.rules.rows]
        truth = read_hidden(self.policy.rules, hidden, tables, seat).astype(np.intp)
        return Decisions(head, uniform, drawn, truth, uniform.max(-1) < 1)

    def shares(self, pool: Pool, rows: Any, seat: Any, seed: int, belief: Floats | None) -> Floats:
        """Return how often drawn deals have each item in each class."""
        began = time.perf_counter()
        worlds = pool.draw_worlds(rows, self.worlds, seed=seed, belief=belief)
        if belief is not None:
            self.drawing_s += time.perf_counter() - began
            self.deals += worlds.shape[0] * worlds.shape[1]
        flat = worlds.reshape(-1, worlds.shape[-1])
        classes = self.read(flat, np.repeat(seat, self.worlds)).reshape(len(rows), self.worlds, -1)
        every = np.arange(len(self.hidden.classes))
        return (classes[..., None] == every).mean(1, dtype=np.float32)

    def read(self, games: npt.NDArray[np.uint8], seat: Any) -> Any:
        return read_hidden(self.policy.rules, self.hidden, games, seat)


def joined(parts: Sequence[Decisions]) -> Decisions:
    """Return all decisions as one."""
    names = ("head", "uniform", "truth", "open")
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    drawn = {t: np.concatenate([part.drawn[t] for part in parts]) for t in parts[0].drawn}
    return Decisions(**whole, drawn=drawn)


def cross_entropy(probs: Floats, told: Decisions) -> float:
    chosen = np.take_along_axis(probs, told.truth[..., None], -1)[..., 0]
    return float(-np.log(chosen[told.open]).mean())


def score(probs: Floats, told: Decisions, hidden: Hidden) -> dict[str, float]:
    """Return how good probabilities are, over the items that are not known.

    right: how often an item drawn by them is the true one; of others: of items whose class is not
    the one that most have.
    """
    happened = told.truth[..., None] == np.arange(probs.shape[-1])
    chosen = np.take_along_axis(probs, told.truth[..., None], -1)[..., 0]
    others = told.open & (told.truth != hidden.dull)
    said, so = probs[told.open].ravel(), happened[told.open].ravel().astype(np.float32)
    numbers = (
        cross_entropy(probs, told),
        calibration_error(reliability(said, so)),
        chosen[told.open].mean(),
        chosen[others].mean(),
    )
    return {name: round(float(n), 4) for name, n in zip(COLUMNS, numbers, strict=True)}


def smooth(shares: Floats, worlds: int) -> Floats:
    """Return shares of deals as probabilities: what was never drawn is not impossible."""
    return (shares * worlds + 1 / shares.shape[-1]) / (worlds + 1)


def report(given: argparse.Namespace) -> dict[str, Any]:
    """Fit temperatures on one half of the decisions, and report the other."""
    policy = load_policy(given.policy)
    listener, half, worlds = Listener(policy, given.worlds), given.decisions // 2, given.worlds
    fit = listener.listen(half, given.seed, DEALS)
    best = min(TEMPERATURES, key=lambda t: cross_entropy(np.exp(cooled(fit.head, t)), fit))
    heads = 1.0, round(float(best), 2)
    fitted = min(DEALS, key=lambda t: cross_entropy(smooth(fit.drawn[t], worlds), fit))
    deals, hidden = {1.0, fitted}, listener.hidden
    told = listener.listen(half, given.seed + 1, sorted(deals))
    found = {"uniform deals": score(smooth(told.uniform, worlds), told, hidden)}
    for t in dict.fromkeys(heads):
        found[f"head at temperature {t:g}"] = score(np.exp(cooled(told.head, t)), told, hidden)
    for t in sorted(deals):
        drawn = smooth(told.drawn[t], worlds)
        found[f"deals at temperature {t:g}"] = score(drawn, told, hidden)
    return {
        "machine": machine_info(),
        "game": policy.rules.name,
        "policy": given.policy,
        "decisions": len(told.truth),
        "open_items": round(float(told.open.sum(-1).mean()), 1),
        "us_per_deal": round(1e6 * listener.drawing_s / listener.deals, 1),
        "found": found,
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and write the record if a file is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("policy", help="a run or a policy file, trained with --heads.hidden")
    parser.add_argument("--decisions", type=int, default=1024)
    parser.add_argument("--worlds", type=int, default=128, help="deals of each decision")
    parser.add_argument("--seed", type=int, default=1_000_003, help="of the games")
    parser.add_argument("--out", type=Path, help="the file to write")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args(words)
    try:
        record = report(given)
    except SparringError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    if given.out:
        keep(record, given.out)
    if given.json:
        print_json(record)
        return 0
    table = make_table((record["game"], *COLUMNS), numbers=COLUMNS)
    for name, row in record["found"].items():
        table.add_row(name, *(f"{row[column]:.3f}" for column in COLUMNS))
    print_table(table)
    counts = f"{record['decisions']:,} decisions, {record['open_items']:g} unknown items in each"
    print(f"{counts}; {record['us_per_deal']:g} us per deal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
