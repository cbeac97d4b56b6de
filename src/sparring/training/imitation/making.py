"""From files, bots and policies to decisions, on all cores: processes play games again, this one
collects, and asks policies.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from sparring.errors import ConfigError, SparringError, suggestion
from sparring.games.demonstrations import Demonstration, file_kinds, read_demonstrations
from sparring.games.recorded import Replay, to_plain_actions
from sparring.games.rules import Rules
from sparring.games.seeds import derive_seed
from sparring.games.state import State
from sparring.learn.demonstrations import Decisions, joined, unpacked
from sparring.machine import cores, format_bytes, free_memory
from sparring.messages import Message
from sparring.processes import Child, Parent, ProcessEndedError
from sparring.schedule import Schedule
from sparring.store.champions import full_name
from sparring.store.lookup import has_policy, locate, split_style
from sparring.training.imitation.positions import Pay, decisions_of, plain_rules

if TYPE_CHECKING:
    from sparring.config import NetConfig
    from sparring.nets.policy import Policy

MAGIC = "*?["
OPENING = 4
"""Most steps at the beginning that lots decide, where nothing else makes two games differ."""
SHARE = 0.5
"""Of the memory that is free, so much may be taken."""
AT_ONCE = 4096
"""Decisions of a pass of the policy that is imitated."""
TASK = 32
"""Games or files of a task."""
POLICY_TASK = 1024
"""Games of a task that a policy plays, all at once."""
MIN_TASKS = 4
"""For which it pays to start a process."""
MODULE = "sparring.training.imitation.making"
Tell = Callable[[int, int, int], None]
"""Is told how many tasks are done and how many there are, and how many positions that made."""


@dataclass(frozen=True)
class Sources:
    """Where games come from."""

    files: tuple[Path, ...]
    bots: tuple[str, ...]
    """Each plays in all seats of a share of the games."""
    policies: tuple[str, ...] = ()
    """The same."""


def read_sources(rules: Rules, words: Sequence[str]) -> Sources:
    """Find what the words of --imitate mean; what is nothing is refused."""
    files: dict[Path, None] = {}
    bots: dict[str, None] = {}
    policies: dict[str, None] = {}
    for word in words:
        if bot := rules.bot_called(word):
            bots[str(rules.bots.called(bot))] = None
        elif policy_called(rules, word):
            from sparring.league.seating import load_player

            load_player(word, rules)  # refuses another game
            policies[word] = None
        else:
            files |= dict.fromkeys(files_called(rules, word))
    return Sources(tuple(files), tuple(bots), tuple(policies))


def policy_called(rules: Rules, word: str) -> Path | None:
    """Return the run, checkpoint or policy that a word means; files and folders go before it."""
    name, _ = split_style(word)
    path = Path(name).expanduser()
    if (path.exists() and not has_policy(path)) or any(sign in word for sign in MAGIC):
        return None
    return locate(full_name(name, rules.name))


def files_called(rules: Rules, word: str) -> list[Path]:
    """Return the files that a word means: one, those of a folder and below it, or of a pattern."""
    path, kinds = Path(word).expanduser(), file_kinds(rules)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [one for one in path.rglob("*") if one.suffix.lower() in kinds and one.is_file()]
    elif any(sign in word for sign in MAGIC):
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207  (it may be absolute)
        found = [one for one in map(Path, names) if one.suffix.lower() in kinds and one.is_file()]
    else:
        raise ConfigError(
            f"imitate: {word!r} is neither a bot of {rules.name} nor a run, file or folder"
            f"{suggestion(word, rules.bots)}"
        )
    if not found:
        raise ConfigError(f"imitate: {word} has no files that end in {', '.join(kinds)}")
    return sorted(found)


def absolute_source(rules: Rules, word: str) -> str:
    """The same word with whole paths, for whoever reads it from another folder."""
    if rules.bot_called(word):
        return word
    if place := policy_called(rules, word):
        from sparring.store.policies import load_playable

        folder, _ = load_playable(place, game=rules)  # a run means another checkpoint tomorrow
        return f"{folder.absolute()}{split_style(word)[1]}"
    return str(Path(word).expanduser().absolute())


def bot_game(rules: Rules, bot: str, seed: int, number: int) -> Demonstration:
    """Play a game with a bot in every seat. The same seed and number give the same game.

    Where the rules leave nothing to chance, a few steps at the beginning are drawn by lot: none in
    the first game, one in the second, up to `OPENING` of them.
    """
    plain = plain_rules(rules)
    lots = 0 if rules.chance else number % (OPENING + 1)
    rng = np.random.default_rng(derive_seed(seed, number))
    state = State(plain, seed, plain.weights(None), game=number)
    actions: list[Any] = []
    while not state.over:
        by_lot = len(actions) < lots
        moves: list[Any] = []
        for row in range(rules.rows):
            if state.native.seat(row) < 0:
                moves.append(np.zeros(rules.box, np.float32) if rules.box else 0)
            elif by_lot and rules.box:
                moves.append(rng.uniform(-1, 1, rules.box).astype(np.float32))
            elif by_lot:
                moves.append(rng.choice(state.legal(row)))
            else:
                moves.append(state.ask(bot, row))
        actions.append(to_plain_actions(plain, moves))
        state.apply(moves[0] if rules.rows == 1 else np.array(moves))
    played = (bot,) * rules.seats
    replay = Replay(plain, seed, played, tuple(actions), tuple(state.scores), state.end, number)
    return Demonstration(replay, by_lot=lots)


def policy_games(rules: Rules, name: str, seed: int, games: int) -> Iterator[Demonstration]:
    """Play games with a policy in every seat, whose actions are drawn; @greedy takes the best.

    Where nothing makes two games differ, some steps at the beginning are drawn by lot.
    """
    from sparring.league.arena import play_match  # loads torch, which helpers do without
    from sparring.league.match_batch import ReplayRecorder
    from sparring.league.seating import load_player

    policy, recorder = load_player(name, rules, threads=cores()), ReplayRecorder(games)
    found = play_match(
        rules,
        [policy] * rules.seats,
        games=games,
        seed=seed,
        threads=cores(),
        greedy=False,
        recorder=recorder,
    )
    for replay in recorder.replays:
        yield Demonstration(replay, by_lot=found.opening_plies)


@dataclass(frozen=True)
class Task:
    """Games that are made into decisions at once."""

    files: Sequence[str] = ()
    bot: str = ""
    policy: str = ""
    distribution: bool = False
    """Whether what the policy says is recorded, too."""
    seed: int = 0
    numbers: Sequence[int] = ()


def tasks_of(sources: Sources, games: int, seed: int, *, distribution: bool = False) -> list[Task]:
    """Share out the work, whoever does it.

    games: that bots and policies play. distribution: of policies is recorded.
    """
    files = [str(path) for path in sources.files]
    tasks = [Task(files[at : at + TASK]) for at in range(0, len(files), TASK)]
    players = [*sources.bots, *sources.policies]
    for index, player in enumerate(players):
        numbers = range(index, games, len(players))
        is_bot = index < len(sources.bots)
        named = {"bot" if is_bot else "policy": player}
        size = TASK if is_bot else POLICY_TASK
        tasks += [
            Task(**named, distribution=distribution, seed=seed, numbers=[*numbers[at : at + size]])
            for at in range(0, len(numbers), size)
        ]
    return tasks


def done(rules: Rules, pay: Pay, task: Task) -> Decisions | None:
    """Make the decisions of a task; games are numbered within it. None: there are none."""
    parts: list[Decisions] = []
    for demonstration in demonstrations(rules, task):
        if demonstration.replay.actions:
            parts.append(decisions_of(rules, demonstration, pay, len(parts)))
    made = joined(parts) if parts else None
    return with_target(rules, made, task.policy) if made and task.distribution else made


def with_target(rules: Rules, made: Decisions, name: str) -> Decisions:
    """Add what a policy says about its decisions."""
    from sparring.learn.head_terms import KLPenalty

    term = KLPenalty(distribution_of(rules, name).net, Schedule.constant(1.0))
    mask = unpacked(made.legal, rules.actions)
    parts = range(0, len(made), AT_ONCE)
    target = [
        term.look(made.obs[at : at + AT_ONCE], mask[at : at + AT_ONCE]).numpy() for at in parts
    ]
    return replace(made, target=np.concatenate(target))


def distribution_of(rules: Rules, name: str) -> Policy:
    """Return the policy of a name; refuse one that does not act by its network's distribution."""
    from sparring.league.seating import load_player
    from sparring.nets.policy import Policy

    policy = load_player(name, rules)
    draws = isinstance(policy, Policy) and not (policy.greedy or policy.budget)
    if not isinstance(policy, Policy) or not draws or policy.net.config.memory:
        raise ConfigError(
            f"imitation.targets distribution: {name} does not draw its actions from a distribution "
            "that a network computes from the observation; leave imitation.targets out"
        )
    return policy


def check_distribution(rules: Rules, sources: Sources, net: NetConfig) -> None:
    """Raise if a source has no distribution that a network could learn."""
    if sources.bots or sources.files:
        raise ConfigError(
            f"imitation.targets distribution: {[*sources.bots, *map(str, sources.files)][0]} has "
            "actions alone; imitate runs and policies, or leave imitation.targets out"
        )
    for name in sources.policies:
        squash = distribution_of(rules, name).net.config.squash
        if rules.box and squash != net.squash:
            wanted = "--net.squash" if squash else "--net.no-squash"
            raise ConfigError(
                f"imitation.targets distribution: {name} {'squashes' if squash else 'clips'} its "
                f"actions, and this run's network does not; set {wanted}, or leave "
                "imitation.targets out"
            )


def demonstrations(rules: Rules, task: Task) -> Iterator[Demonstration]:
    for path in task.files:
        yield from read_demonstrations(rules, Path(path))
    if task.policy:
        seed = derive_seed(task.seed, task.numbers[0])
        yield from policy_games(rules, task.policy, seed, max(len(task.numbers), 2))
        return
    for number in task.numbers:
        yield bot_game(rules, task.bot, task.seed, number)


def make_decisions(
    rules: Rules, pay: Pay, tasks: Sequence[Task], *, threads: int = 1, tell: Tell | None = None
) -> Decisions:
    parts: list[Decisions] = []
    games = rows = size = 0
    room = SHARE * free_memory()
    for number, part in enumerate(each_done(rules, pay, tasks, threads), 1):
        if part is not None and len(part):
            part.game[:] += games
            games = int(part.game[-1]) + 1
            rows, size = rows + len(part), size + part.size
            parts.append(part)
        if size > room:
            raise ConfigError(
                f"imitate: {rows:,} positions of {number} of {len(tasks)} parts need "
                f"{format_bytes(size)}, and {format_bytes(room)} of memory may be taken; "
                "name fewer files, or lower imitation.games"
            )
        if tell:
            tell(number, len(tasks), rows)
    if not rows:
        raise ConfigError("imitate: there is not a single decision in these games")
    return joined(parts)


def each_done(
    rules: Rules, pay: Pay, tasks: Sequence[Task], threads: int
) -> Iterator[Decisions | None]:
    """Yield what comes of every task; of several threads each has a process.

    In their order, but games of policies come last: they are played here.
    """
    by_policy = [task for task in tasks if task.policy]
    tasks = [task for task in tasks if not task.policy]
    helpers = min(threads, len(tasks) // MIN_TASKS)
    for task in (*tasks, *by_policy) if helpers < 2 else ():
        yield done(rules, pay, task)
    if helpers < 2:
        return
    with ExitStack() as stack:
        spare: SimpleQueue[Helper] = SimpleQueue()
        for _ in range(helpers):
            spare.put(stack.enter_context(Helper(rules, pay)))

        def ask(task: Task) -> Decisions | None:
            helper = spare.get()
            try:
                return helper.made(task)
            finally:
                spare.put(helper)

        asking = stack.enter_context(ThreadPoolExecutor(helpers))
        stack.callback(asking.shutdown, wait=False, cancel_futures=True)
        yield from asking.map(ask, tasks)
    for task in by_policy:
        yield done(rules, pay, task)


class Helper(Child):
    """A process that makes decisions."""

    def __init__(self, rules: Rules, pay: Pay) -> None:
        super().__init__(MODULE)
        facts = {"game": rules.name, "config": rules.config, "pay": asdict(pay)}
        self.send(Message("begin", facts))

    def made(self, task: Task) -> Decisions | None:
        try:
            arrays = self.request(Message("task", asdict(task))).arrays
        except ProcessEndedError as gone:
            raise SparringError(f"imitate: making positions failed: {gone}") from None
        return Decisions(**arrays) if arrays else None


def main() -> None:
    """Answer one task after the other, until there are none."""
    parent = Parent()
    first = next(parent).payload
    rules, pay = Rules(first["game"], first["config"]), Pay(**first["pay"])

    def answer(task: Message) -> Message:
        found = done(rules, pay, Task(**task.payload))
        return Message("made", arrays=found.arrays if found else {})

    parent.serve(answer)


if __name__ == "__main__":
    main()
