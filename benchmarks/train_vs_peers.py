"""Training speed on one game: sparring, sb3-contrib's MaskablePPO and a plain torch loop.

python benchmarks/train_vs_peers.py                  measure, write results/train-<machine>.json
python benchmarks/train_vs_peers.py --original       ... and compare with the original environment
python benchmarks/train_vs_peers.py --update-docs    ... and write the table of docs/benchmarks.md
python benchmarks/train_vs_peers.py --stored         do not measure, show the results there are
python benchmarks/train_vs_peers.py --quick          a smoke run; its figures mean nothing

Every contestant lives in a process of its own and trains when it is its turn: Skull King with four
players, the learner in one seat and random bots in the others. docs/benchmarks.md says how to
read the table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn.utils import parameters_to_vector

from sparring import LEARNER, Lineup, Pool, Rules
from sparring.commands.bench.train import free_twin
from sparring.config import NetConfig, PPOConfig
from sparring.envs.gymnasium import SparringVectorEnv
from sparring.games.skull_king import game_length
from sparring.learn.ppo import PPO
from sparring.machine import machine_facts, warn_if_busy

ROOT = Path(__file__).resolve().parents[1]
RESULTS, QUICK_RESULTS = ROOT / "benchmarks" / "results", ROOT / "build" / "benchmarks"
DOCS = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- train figures: begin -->", "<!-- train figures: end -->"
NO_FIGURES = "No results are stored yet."
GAME, SEATS, BOT = "skull_king", 4, "random"
DECISIONS = game_length(Rules(GAME)) or 0
"""Decisions of all seats in a whole game, forced ones included."""
ORIGINAL_STEPS_PER_S = 938
ORIGINAL = (
    "MaskablePPO on the original Skull King environment: "
    f"{ORIGINAL_STEPS_PER_S} agent steps/s on this kind of machine (quoted, see docs)"
)


@dataclass(frozen=True)
class Settings:
    """What all contestants have in common."""

    rollout: int = 8192
    minibatch: int = 1024
    epochs: int = 4
    hidden: tuple[int, ...] = (256, 256)
    lr: float = 3e-4
    gamma: float = 0.99
    lambda_: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value_weight: float = 0.5
    max_grad_norm: float = 0.5
    threads: int = 2
    seed: int = 1


QUICK = Settings(rollout=1024, minibatch=256, epochs=1, hidden=(32, 32))


@dataclass(frozen=True)
class Entry:
    """A contestant: its program, how many games it steps at once, and what differs in ours."""

    kind: str
    games: int
    label: str
    shared: bool = False
    sparse: bool = False
    skip_forced: bool = False

    @property
    def name(self) -> str:
        """A short name that is unique."""
        return f"{self.kind}-{self.games}"

    @property
    def ours(self) -> bool:
        """Whether it is sparring's own learner."""
        return self.kind not in ("maskable", "plain")


def entries(sizes: Sequence[int], plain_sizes: Sequence[int], games: int) -> list[Entry]:
    """Return everybody who takes part."""
    peers = [Entry("maskable", size, f"MaskablePPO, {size} envs") for size in sizes]
    peers += [Entry("plain", size, f"plain torch loop, {size} envs") for size in plain_sizes]
    shared = "ours, one shared trunk, sparse"
    return [
        *peers,
        Entry("dense", games, "ours, same nets, dense first layer"),
        Entry("sparse", games, "ours, same nets, sparse first layer", sparse=True),
        Entry("shared", games, shared, shared=True, sparse=True),
        Entry("unforced", games, f"{shared}, forced moves skipped", True, True, True),
    ]


# The contestants. Each has a net, a pool, `iterate` (a rollout and its update) and `lengths`.


class Maskable:
    """sb3-contrib's MaskablePPO through SparringVecEnv."""

    def __init__(self, entry: Entry, settings: Settings) -> None:
        from sb3_contrib import MaskablePPO

        from sparring.envs.sb3 import SparringVecEnv

        env = SparringVecEnv(
            GAME, entry.games, opponents=BOT, seed=settings.seed, threads=settings.threads
        )
        widths = list(settings.hidden)
        self.model = MaskablePPO(
            "MlpPolicy",
            env,
            n_steps=settings.rollout // entry.games,
            batch_size=settings.minibatch,
            n_epochs=settings.epochs,
            learning_rate=settings.lr,
            gamma=settings.gamma,
            gae_lambda=settings.lambda_,
            clip_range=settings.clip,
            ent_coef=settings.entropy,
            vf_coef=settings.value_weight,
            max_grad_norm=settings.max_grad_norm,
            policy_kwargs={"net_arch": {"pi": widths, "vf": widths}, "activation_fn": nn.Tanh},
            seed=settings.seed,
            device="cpu",
        )
        self.rollout, self.net = settings.rollout, self.model.policy
        self.pool, self.whole_game = env._seats._pools[0], DECISIONS // SEATS

    def iterate(self) -> dict[str, int]:
        """One iteration of learn(), with all that it does around the update."""
        self.model.learn(self.rollout, reset_num_timesteps=False)
        return {"samples": self.rollout, "decisions": self.rollout}

    def lengths(self) -> list[int]:
        """The learner's decisions in the last games that ended."""
        return [int(episode["l"]) for episode in self.model.ep_info_buffer]


class Plain:
    """PPO as textbooks and single-file implementations have it, on a Gymnasium vector env."""

    def __init__(self, entry: Entry, settings: Settings) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.steps = settings, settings.rollout // entry.games
        self.env = SparringVectorEnv(
            GAME, entry.games, opponents=BOT, seed=settings.seed, threads=settings.threads
        )
        self.pool, self.whole_game = self.env._seats._pools[0], DECISIONS // SEATS
        features = self.env.single_observation_space.shape[0]
        self.actor = self.tower(features, int(self.env.single_action_space.n))
        self.critic = self.tower(features, 1)
        self.net = nn.ModuleList([self.actor, self.critic])
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=settings.lr, eps=1e-5)
        obs, info = self.env.reset(seed=settings.seed)
        self.obs, self.mask = torch.as_tensor(obs), torch.as_tensor(info["action_mask"])
        self.running = torch.zeros(entry.games, dtype=torch.int64)
        self.ended: list[int] = []

    def tower(self, inputs: int, outputs: int) -> Any:
        """Return a tanh network."""
        layers: list[nn.Module] = []
        for width in self.settings.hidden:
            layers += [nn.Linear(inputs, width), nn.Tanh()]
            inputs = width
        return nn.Sequential(*layers, nn.Linear(inputs, outputs))

    def distribution(self, obs: Any, mask: Any) -> Any:
        """Return the policy over legal actions."""
        return Categorical(logits=self.actor(obs).masked_fill(~mask, -1e8))

    def iterate(self) -> dict[str, int]:
        """Collect a rollout, compute advantages, make the epochs."""
        data = self.collect()
        returns = data["advantage"] + data["value"]
        flat = {name: rows.flatten(0, 1) for name, rows in (data | {"returns": returns}).items()}
        for _ in range(self.settings.epochs):
            for picked in torch.randperm(self.settings.rollout).split(self.settings.minibatch):
                self.descend({name: rows[picked] for name, rows in flat.items()})
        return {"samples": self.settings.rollout, "decisions": self.settings.rollout}

    def collect(self) -> dict[str, Any]:
        """Play the rollout; the arrays are [steps, envs, ...]."""
        names = ("obs", "mask", "action", "log_prob", "value", "reward", "over")
        kept: dict[str, list[Any]] = {name: [] for name in names}
        for _ in range(self.steps):
            with torch.no_grad():
                policy = self.distribution(self.obs, self.mask)
                action = policy.sample()
                value = self.critic(self.obs).squeeze(-1)
            obs, reward, terminated, truncated, info = self.env.step(action.numpy())
            over = torch.as_tensor(terminated | truncated)
            paid = torch.as_tensor(reward.astype(np.float32))
            row = (self.obs, self.mask, action, policy.log_prob(action), value, paid, over)
            for name, tensor in zip(names, row, strict=True):
                kept[name].append(tensor)
            self.obs, self.mask = torch.as_tensor(obs), torch.as_tensor(info["action_mask"])
            self.running += 1
            self.ended += self.running[over].tolist()
            self.running[over] = 0
        data = {name: torch.stack(rows) for name, rows in kept.items()}
        data["advantage"] = self.advantages(data)
        return data

    def advantages(self, data: dict[str, Any]) -> Any:
        """Generalised advantage estimation, backwards in NumPy."""
        reward, value, over = (data[name].numpy() for name in ("reward", "value", "over"))
        with torch.no_grad():
            following = self.critic(self.obs).squeeze(-1).numpy()
        advantage, last = np.zeros_like(reward), np.zeros_like(following)
        for step in reversed(range(self.steps)):
            goes_on = self.settings.gamma * (1.0 - over[step])
            delta = reward[step] + goes_on * following - value[step]
            advantage[step] = last = delta + goes_on * self.settings.lambda_ * last
            following = value[step]
        return torch.as_tensor(advantage)

    def descend(self, part: dict[str, Any]) -> None:
        """One gradient step on the clipped surrogate, the value error and the entropy."""
        settings = self.settings
        policy = self.distribution(part["obs"], part["mask"])
        advantage = part["advantage"]
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        ratio = (policy.log_prob(part["action"]) - part["log_prob"]).exp()
        clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
        policy_loss = -torch.min(advantage * ratio, advantage * clipped).mean()
        value_loss = (self.critic(part["obs"]).squeeze(-1) - part["returns"]).pow(2).mean()
        loss = policy_loss + settings.value_weight * value_loss
        loss = loss - settings.entropy * policy.entropy().mean()
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), settings.max_grad_norm)
        self.optimiser.step()

    def lengths(self) -> list[int]:
        """The learner's decisions in all games that ended."""
        return self.ended


class Ours:
    """sparring's PPO on a pool; `ceiling` gives it games that cost nothing."""

    def __init__(self, entry: Entry, settings: Settings) -> None:
        rules = Rules(GAME, {"skip_forced": int(entry.skip_forced)})
        lineup = Lineup((LEARNER, *[BOT] * (SEATS - 1)))
        self.threads, self.whole_game = settings.threads, DECISIONS
        self.ended: list[float] = []
        self.pool = Pool(
            rules, entry.games, seed=settings.seed, threads=self.threads, lineups=[lineup]
        )
        net = NetConfig(
            hidden=settings.hidden, shared=entry.shared, activation="tanh", sparse=entry.sparse
        )
        config = PPOConfig(
            games=entry.games,
            steps=settings.rollout // entry.games,
            epochs=settings.epochs,
            minibatch=settings.minibatch,
            lr=settings.lr,
            lr_end=1.0,
            gamma=settings.gamma,
            lambda_=settings.lambda_,
            clip=settings.clip,
            value_weight=settings.value_weight,
            entropy=settings.entropy,
            entropy_end=1.0,
            max_grad_norm=settings.max_grad_norm,
            target_kl=0.0,
        )
        self.ppo = PPO(self.pool, config, net, seed=settings.seed, threads=self.threads)
        self.net = self.ppo.net
        self.twin: PPO | None = None

    def iterate(self) -> dict[str, int]:
        """Collect and update; forced decisions of the learner's seat count as decisions."""
        before, rollout = self.ppo.samples, self.ppo.rollout
        earned = self.ppo.collect()
        self.ppo.update(0.0)
        self.ended += [earned["length"]] * int(earned["games"]) if earned["games"] else []
        own = rollout.seat[..., None].astype(np.intp)
        forced = int(np.take_along_axis(rollout.skipped, own, axis=2).sum())
        samples = self.ppo.samples - before
        return {"samples": samples, "decisions": samples + forced}

    def ceiling(self) -> dict[str, int]:
        """The same on recorded rows; the first call makes the twin."""
        if self.twin is None:
            self.twin = free_twin(self.ppo, self.threads)
        before = self.twin.samples
        self.twin.collect()
        self.twin.update(0.0)
        return {"samples": self.twin.samples - before}

    def lengths(self) -> list[float]:
        """All seats' decisions in the games that ended, as the mean of each rollout."""
        return self.ended


# A contestant's process: answers each line of its input with one line of JSON.


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


# The contest.


@contextmanager
def process(entry: Entry, settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """Start a contestant; the thread counts are set before it imports anything."""
    count = str(settings.threads)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    words = ("--contestant", json.dumps([asdict(entry), asdict(settings)]))
    started = subprocess.Popen(
        [sys.executable, __file__, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | dict.fromkeys(names, count),
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def answer(contestant: subprocess.Popen[str], entry: Entry, ask: str = "") -> dict[str, Any]:
    """Send a word, if any, and wait for the answer."""
    assert contestant.stdin is not None
    assert contestant.stdout is not None
    if ask:
        contestant.stdin.write(f"{ask}\n")
        contestant.stdin.flush()
    line = contestant.stdout.readline()
    if not line:
        sys.exit(f"{entry.label} stopped with code {contestant.wait()}; nothing was written")
    reply: dict[str, Any] = json.loads(line)
    return reply


def contest(field: Sequence[Entry], settings: Settings, rounds: int) -> list[dict[str, Any]]:
    """Let everybody train in turn, `rounds` times after a warm-up; who begins changes."""
    turns: dict[Entry, list[dict[str, Any]]] = {entry: [] for entry in field}
    free: dict[Entry, list[dict[str, Any]]] = {entry: [] for entry in field if entry.ours}
    with ExitStack() as stack:
        running = {entry: stack.enter_context(process(entry, settings)) for entry in field}
        results = [asdict(entry) | answer(running[entry], entry) for entry in field]
        for number in range(rounds + 1):
            print(f"round {number} of {rounds}" if number else "warming up", file=sys.stderr)
            first = number % len(field)
            for entry in (*field[first:], *field[:first]):
                turns[entry].append(answer(running[entry], entry, "train"))
                if entry.ours:
                    free[entry].append(answer(running[entry], entry, "ceiling"))
        for entry, result in zip(field, results, strict=True):
            proved = answer(running[entry], entry, "proof")
            result.update({key: proved[key] for key in ("games_finished", "problems")})
            result["name"] = entry.name
            result["samples_per_s"] = spread(rates(turns[entry][1:], "samples"))
            result["decisions_per_s"] = spread(rates(turns[entry][1:], "decisions"))
            if entry.ours:
                result["ceiling"] = spread(rates(free[entry][1:], "samples"))
    return results


def rates(turns: Sequence[dict[str, Any]], what: str) -> list[float]:
    """Return what was done per second, turn by turn."""
    return [turn[what] / turn["seconds"] for turn in turns]


def spread(values: Sequence[float], digits: int | None = None) -> dict[str, Any]:
    """Return median, range and all values."""
    rounded = [round(value, digits) for value in values]
    middle = round(median(values), digits)
    return {"median": middle, "min": min(rounded), "max": max(rounded), "rounds": rounded}


def ratio(mine: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Compare round by round, so that a busy moment hits both sides."""
    pairs = zip(mine["rounds"], other["rounds"], strict=True)
    return spread([a / b for a, b in pairs], 3)


def compare(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Add everybody's ratios to the best of each peer and to the own ceiling; name those best."""
    best = {}
    for kind in ("maskable", "plain"):
        mine = [result for result in results if result["kind"] == kind]
        fastest = max(mine, key=lambda result: float(result["samples_per_s"]["median"]))
        best[kind] = fastest["name"]
        for result in results:
            result[f"to_{kind}"] = ratio(result["samples_per_s"], fastest["samples_per_s"])
    for result in results:
        if "ceiling" in result:
            result["of_ceiling"] = ratio(result["samples_per_s"], result["ceiling"])
    return best


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Run the contest and return one record for this machine."""
    facts = machine_facts()
    warn_if_busy(facts["load_average"])
    settings = replace(QUICK if given.quick else Settings(), threads=given.threads)
    field = entries([16], [16], 16) if given.quick else entries([16, 64, 256], [64, 256], 256)
    results = contest(field, settings, 2 if given.quick else given.rounds)
    system = facts["system"].split()
    libraries = ("torch", "numpy", "stable-baselines3", "sb3-contrib", "gymnasium")
    return {
        "machine": f"{facts['cpu']}, {facts['cores']} cores",
        "system": f"{system[0]} {system[-1]}",
        "python": facts["python"],
        **{name: version(name) for name in libraries},
        **{name: facts[name] for name in ("sparring", "commit", "load_average")},
        "date": facts["date"][:10],
        "quick": given.quick,
        "valid": not any(result["problems"] for result in results),
        "settings": {"game": GAME, "opponents": [BOT] * (SEATS - 1), **asdict(settings)},
        "best": compare(results),
        "contestants": results,
    }


# What is shown and kept.


def cells(record: dict[str, Any]) -> list[list[str]]:
    """Return the table: names above, then a row per contestant."""
    rows = [["contestant", "samples/s", "range", "decisions/s", "x MaskablePPO", "x plain loop"]]
    rows[0].append("of its ceiling")
    for result in record["contestants"]:
        rate, of = result["samples_per_s"], result.get("of_ceiling")
        best = " (its best)" if result["name"] in record["best"].values() else ""
        rows.append(
            [
                result["label"] + best,
                f"{rate['median']:,}",
                f"{rate['min']:,}..{rate['max']:,}",
                f"{result['decisions_per_s']['median']:,}",
                f"{result['to_maskable']['median']:.2f}",
                f"{result['to_plain']['median']:.2f}",
                f"{of['median']:.2f} ({of['min']:.2f}..{of['max']:.2f})" if of else "",
            ]
        )
    return rows


def text_table(record: dict[str, Any]) -> str:
    """Return the table for a terminal."""
    rows = cells(record)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        numbers = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *numbers]).rstrip())
    return "\n".join(lines)


def docs_table(record: dict[str, Any]) -> str:
    """Return the table for the docs, and where it was measured."""
    head, *rows = [f"| {' | '.join(row)} |" for row in cells(record)]
    rule = "|---|" + "---:|" * (head.count("|") - 2)
    rounds = len(record["contestants"][0]["samples_per_s"]["rounds"])
    where = (
        f"{record['machine']}, {record['system']}, Python {record['python']}, torch "
        f"{record['torch']}, sb3-contrib {record['sb3-contrib']}, sparring {record['sparring']} at "
        f"{record['commit']}, {record['date']}; {record['settings']['threads']} threads, "
        f"medians of {rounds} rounds."
    )
    return "\n".join([head, rule, *rows, "", where, "", original_lines(record)])


def original_lines(record: dict[str, Any]) -> str:
    """Compare with what was measured on the environment that our game replaces."""
    lines = [f"{ORIGINAL}."]
    if record["quick"]:
        return f"{lines[0]}\nA quick run has smaller networks and rollouts; it cannot be compared."
    for result in record["contestants"]:
        if result["kind"] in ("dense", "sparse"):
            rate = result["samples_per_s"]["median"]
            times = rate / ORIGINAL_STEPS_PER_S
            lines.append(f"{result['label']}: {rate:,} samples/s, {times:.1f} times as many.")
    return "\n".join(lines)


def store(record: dict[str, Any], folder: Path) -> Path:
    """Write a machine's record, replacing its older one."""
    name = re.sub(r"[^a-z0-9]+", "-", record["machine"].lower()).strip("-")
    path = folder / f"train-{name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path


def stored(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the records of all machines."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("train-*.json"))]


def with_figures(text: str, records: Sequence[dict[str, Any]]) -> str:
    """Return the docs with the part between the markers replaced."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{DOCS.name} has no {BEGIN} ... {END}")
    figures = "\n\n".join(map(docs_table, records)) or NO_FIGURES
    return f"{before}{BEGIN}\n{figures}\n{END}{after}"


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="turns of every contestant")
    parser.add_argument("--threads", type=int, default=2, help="for torch, OpenBLAS and games")
    parser.add_argument("--quick", action="store_true", help="a smoke run of small sizes")
    parser.add_argument("--original", action="store_true", help="compare with the original env")
    parser.add_argument("--stored", action="store_true", help="do not measure")
    parser.add_argument("--update-docs", action="store_true", help="write the table of the docs")
    parser.add_argument("--out", type=Path, help="the folder for the results")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.quick and given.update_docs:
        parser.error("figures of a --quick run mean nothing; they do not belong in the docs")
    if given.rounds < 3:
        parser.error("--rounds must be at least 3, so that games come to their end")
    return given


def main() -> None:
    """Take part in a contest that is running, or hold one."""
    given = options()
    if not given.contestant:
        return report(given)
    entry, settings = json.loads(given.contestant)
    settings["hidden"] = tuple(settings["hidden"])
    return serve(Entry(**entry), Settings(**settings))


def report(given: argparse.Namespace) -> None:
    """Measure unless told otherwise, write it down and show it."""
    folder = given.out or (QUICK_RESULTS if given.quick else RESULTS)
    if not given.stored:
        record = measure(given)
        for result in record["contestants"]:
            for problem in result["problems"]:
                print(f"{result['label']}: {problem}", file=sys.stderr)
        if not record["valid"]:
            sys.exit("not valid; nothing was written")
        print(f"wrote {store(record, folder)}", file=sys.stderr)
    for record in stored(folder):
        print(text_table(record))
        if given.original:
            print(original_lines(record))
    if given.update_docs:
        DOCS.write_text(with_figures(DOCS.read_text(), stored(folder)))
        print(f"wrote the figures of {DOCS.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
