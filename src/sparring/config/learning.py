"""What a policy is, how experience is collected and measured, and who is met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sparring.config.ranges import (
    Checked,
    Count,
    Scheduled,
    above,
    at_least,
    between,
    one_of,
)
from sparring.errors import ConfigError
from sparring.schedule import Schedule


@dataclass(frozen=True)
class CollectConfig(Checked, section="collect"):
    """How experience is collected, whatever learns from it."""

    games: Annotated[int, at_least(1)] = 512
    """Games played at once. More gives more varied rollouts and slower updates."""
    steps: Annotated[int, at_least(1)] = 64
    """Steps per rollout. Longer looks further ahead and updates less often."""
    slots: Annotated[int, between(1, 64)] = 1
    """Groups of games. 2 lets one group step while a network on a GPU answers the other."""
    bf16: bool = True
    """On a GPU, compute in bfloat16; weights stay float32."""
    cpu: Annotated[str, one_of("auto", "bf16", "float32", "torch")] = "auto"
    """On a CPU, how a network is computed. float32: natively. bf16: natively with products in
    bfloat16, on CPUs with AMX. torch: the readable way, slower. auto: the best that there is."""
    mirror: bool = False
    """Learn from mirror images too, in games that are the same in a mirror (laser hockey, Shogi,
    tic-tac-toe)."""


@dataclass(frozen=True)
class EvaluationConfig(Checked, section="eval"):
    """How a run measures itself while it trains."""

    every_s: Annotated[float, at_least(0)] = 40.0
    """Seconds between evaluations, less in a short run. They run beside training."""
    every_decisions: Count = 0
    """Decisions of the learner between them instead; then a run repeats anywhere. 0: by seconds."""
    games: Annotated[int, at_least(2)] = 1024
    """Games against each opponent. More gives narrower intervals and takes longer."""
    final_games: Annotated[int, at_least(2)] = 8192
    """Games against each opponent after training."""
    against: tuple[str, ...] = ()
    """Bots to meet, unless the game has one seat. Left out: the two best, at the end all. A run's
    strength is the share won against the best one; without that it has none."""
    target: Annotated[tuple[float, ...], between(-1e9, 1e9)] = ()
    """Win shares against the hardest bot, or scores of one seat, whose times are noted: each
    counts as reached when the lower end of the 95 % interval is there."""
    patience: Annotated[int, at_least(0)] = 0
    """Stop after this many evaluations in a row without a new best. 0: never."""
    stop: tuple[str, ...] = ()
    """Stop when an evaluation finds all of these against every opponent: win=0.6, score=50, or a
    statistic of the game, as order_kept=0.9 (or more) and hosts_lost=..2 (or less). Of win and
    score the 95 % interval has to be inside."""
    limit_s: Annotated[float, above(0, 86_400)] = 60.0
    """Of an environment of your own: seconds after which an evaluation begins no more episodes;
    those under way may take as long again, and what still hangs after three times as long is
    ended. At the end ten times as long."""
    off: bool = False
    """No evaluation while training, only at the end."""


@dataclass(frozen=True)
class LeagueConfig(Checked, section="league"):
    """The past selves of a run: when they are kept, and who is met how often.

    There is a league as soon as `opponents` names `past`, `best` or a saved policy.
    """

    preset: Annotated[str, one_of("", "generations")] = ""
    """generations: learn against everybody of the past, freeze, add, repeat. --league NAME for
    short."""
    every: Count = 0
    """Decisions of the learner between two snapshots. 0: those of twenty updates."""
    gate: Annotated[float, between(0, 1)] = 0.0
    """Keep a snapshot only when the learner has this share of the points against the past since the
    last one. 0: keep every one."""
    choose: Annotated[
        str, one_of("uniform", "newest", "pfsp", "pfsp-even", "forgotten", "skill")
    ] = "uniform"
    """Who is met: uniform over the past; newest: the last one in 4 of 5 games; pfsp: those that are
    harder to beat; pfsp-even: those of equal strength; forgotten: those that were beaten once and
    are not any more; skill: those within a range of ratings."""
    slots: Annotated[int, between(1, 240)] = 16
    """Past selves that can be met at a time. More are more varied and cost more."""
    shared: bool = False
    """Members of a population meet each other's past selves too, not only their own."""
    role: Annotated[str, one_of("main", "exploiter")] = "main"
    """main: learns to beat everybody. exploiter: meets main agents alone, and starts anew whenever
    it wins or stalls."""
    gigabytes: Annotated[float, above(0)] = 4.0
    """Disk that snapshots may take; beyond it some are removed that resemble others."""


@dataclass(frozen=True)
class HierarchyConfig(Checked, section="hierarchy"):
    """A network of its own for every role of a game: a manager that bids, a worker that plays."""

    on: bool = False
    """Every role has a network of its own. Without it one network decides in all roles."""
    learn: str = "together"
    """Who learns: together, alternately, or one role by its name while the others stay."""
    turn: Annotated[int, at_least(1)] = 10
    """Of alternately: updates that a role learns before it is another's turn."""


@dataclass(frozen=True)
class HindsightConfig(Checked, section="hindsight"):
    """Decisions seen once more, as if what came out had been the goal."""

    on: bool = False
    """Learn from them too: out of the replay, or beside PPO as examples, never in its ratio."""
    share: Annotated[float, between(0, 1)] = 0.5
    """Share of the decisions that could be seen so which are."""
    weight: Annotated[Scheduled, at_least(0)] = Schedule.constant(0.1)
    """Of PPO: weight of the examples' loss."""

    @property
    def sees(self) -> bool:
        """Whether anything is seen so; a share of 0 changes nothing at all."""
        return self.on and self.share > 0


@dataclass(frozen=True)
class EnvConfig(Checked, section="env"):
    """How an environment of your own is stepped in worker processes."""

    groups: Annotated[int, between(0, 4096)] = 0
    """Groups of games, each stepped on as soon as it is answered. More wait less for slow games and
    ask the network in smaller batches. 0: two for every worker."""
    step_limit_s: Annotated[float, above(0, 86_400)] = 60.0
    """Seconds after which a step, or a reset, is taken to hang: its worker is killed and started
    again. A measurement fails then."""
    start_limit_s: Annotated[float, above(0, 86_400)] = 120.0
    """Seconds that a worker may take to make its environments."""
    most_restarts: Annotated[int, at_least(0)] = 100
    """Workers that may die in a run before it gives up."""
    most_in_a_row: Annotated[int, at_least(1)] = 10
    """Times that one worker may die without having ended a single episode in between before the run
    gives up. Higher bears long episodes of a fragile simulator."""


@dataclass(frozen=True)
class FleetConfig(Checked, section="fleet"):
    """How actors, processes that play, work for the learner (`actors`)."""

    lockstep: bool = False
    """Everybody waits for everybody: the same run as in one process, bit for bit."""
    batch: Annotated[int, at_least(0)] = 0
    """Actors whose rollouts an update waits for, whichever come first. 0: half of them."""
    queue: Annotated[int, between(0, 16)] = 0
    """Rollouts that an actor may have finished and play on before they are taken. More wait less,
    lag more. 0: it plays while the learner learns from its last one."""
    lag: Annotated[int, at_least(0)] = 4
    """Updates that the weights of a rollout may be behind; the learner waits for it rather."""
    rho: Annotated[float, above(0, 1000)] = 1.0
    """Of V-trace: most that a decision weighs which the present policy would make more often than
    the one that played. Higher is less biased and more noisy."""
    trace: Annotated[float, between(0, 1000)] = 1.0
    """Of V-trace: most that what came after it weighs, rho at most. Lower looks less far ahead."""
    whole_episodes: bool = False
    """A rollout is one whole game in each place, played by the same weights from beginning to end;
    collect.steps is the longest that it may take."""
    threads: Annotated[int, between(1, 256)] = 1
    """Threads of every actor."""
    trusted: bool = False
    """Replicas on other machines: their sums travel through torch.distributed, which knows no token
    and listens on the machines' addresses. Only in a network of your own."""
    limit_s: Annotated[float, above(0, 86_400)] = 300.0
    """Seconds without a rollout after which an actor is ended and started again."""
    most_restarts: Annotated[int, at_least(0)] = 100
    """Actors that may die in a run before it gives up."""

    def __post_init__(self) -> None:
        """Refuse weights for which V-trace is not made."""
        super().__post_init__()
        if self.trace > self.rho:
            raise ConfigError(
                f"fleet.trace {self.trace:g} is above fleet.rho {self.rho:g}; give {self.rho:g} at "
                "most, or raise fleet.rho"
            )
