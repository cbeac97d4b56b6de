"""A challenge: whoever wants to become the champion of a game has to beat the one that is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sparring.commands.shared.crown import crown, round_weights
from sparring.commands.shared.printing import ProgressBar, echo, print_json
from sparring.config.commands import LadderConfig
from sparring.errors import ConfigError
from sparring.extras import set_threads
from sparring.games.rules import Rules
from sparring.league.championship import measure, usual_measurements
from sparring.league.duel import play_duel
from sparring.league.intervals import Sprt
from sparring.league.players import Player
from sparring.nets.policy import Policy
from sparring.output_files import check_folder
from sparring.proof.exploitability import EXACT_GAMES
from sparring.store import champions
from sparring.store.champions import (
    CHAMPION,
    EXPLOITABILITY,
    champion_games,
    champion_of,
    named_champion,
)
from sparring.store.folders import CONFIG
from sparring.store.lookup import find_player, run_of
from sparring.store.policies import load_playable, load_policy
from sparring.store.styles import Style
from sparring.training.recipe import recipe_of

MAX_GAMES = 40_000
"""Of a challenge, unless another number is given."""
SPRT = Sprt(elo0=0.0, elo1=10.0)
"""A player that is no stronger is crowned in at most 5 of 100 challenges, one that is 10 Elo
stronger is refused in at most 5 that are decided."""
VERDICTS = {
    "stronger": "it is stronger",
    "weaker": "it is not stronger",
    "": "that decides nothing; more --games may",
}
REFUSED = 1
"""Exit code."""


@dataclass(frozen=True)
class Holder:
    """Who has to be beaten."""

    player: Player
    name: str
    plays: str = ""
    """Style of a champion, see `Champion.plays`."""


@dataclass(frozen=True)
class Decision:
    """What a challenge came to."""

    crowned: bool
    figures: str
    values: dict[str, Any]


def run_challenge(config: LadderConfig, rules: Rules, threads: int) -> int:
    """Let a policy challenge the champion, and crown it if it is shown to be stronger."""
    set_threads(threads)
    check_folder(champions.ZOO, "")
    policy, style, run = challenger_of(config.crown, rules, threads)
    name, holder = policy.name, holder_of(policy.rules, threads)
    plays = holder.plays
    if style.greedy is not None:
        plays = "greedy" if style.greedy else "sampled"
    if rules.name in EXACT_GAMES and rules.hides:
        decision = compare_exactly(policy, plays, holder)
    else:
        player = policy.always(greedy=plays == "greedy") if plays else policy
        decision = play(player, holder, config, threads)
    if decision.crowned:
        recipe = {**recipe_of(run), "note": decision.figures}
        total = len(usual_measurements(policy, plays))
        with ProgressBar(f"measuring {name}", total) as steps:
            crown(policy, recipe, plays=plays, threads=threads, progress=steps.next)
    if config.json:
        facts = {"game": rules.name, "challenger": name, "holder": holder.name}
        print_json({**facts, "crowned": decision.crowned, **decision.values})
    elif decision.crowned:
        echo(f"{name} is the champion of {rules.name} now: {decision.figures}")
        echo(f"next: sparring ladder {rules.name}")
    else:
        echo(f"{name} does not become the champion of {rules.name}: {decision.figures}")
    return 0 if decision.crowned else REFUSED


def challenger_of(word: str, rules: Rules, threads: int) -> tuple[Policy, Style, Path]:
    """Return a policy with the weights that it has as a champion, its style, and its run."""
    found = find_player(word, rules)
    if found.path is None or named_champion(found.word, rules):
        raise ConfigError(f"--crown {word} is no run; name a run or one of its checkpoints")
    if found.style.budget or found.style.level:
        raise ConfigError(
            f"--crown {word}: a champion plays as its network does; leave {found.style} out"
        )
    folder, _ = load_playable(found.path)
    run = run_of(folder)
    if not (run / CONFIG).is_file():
        raise ConfigError(
            f"--crown {word}: {folder} is of no run, and a champion has the recipe of its "
            "training; name a run or one of its checkpoints"
        )
    policy = load_policy(folder, threads=threads)
    policy.check_fits(rules)
    round_weights(policy)
    return policy, found.style, run


def holder_of(rules: Rules, threads: int) -> Holder:
    """Return the champion, the strongest bot in a game without one."""
    if rules.name not in champion_games():
        return Holder(rules.bots[-1], rules.bots[-1])
    champion, found = champion_of(rules.name), find_player(CHAMPION, rules)
    policy = load_policy(champion.weights, name=CHAMPION, threads=threads)
    return Holder(found.style.applied(policy), CHAMPION, champion.plays)


def play(policy: Policy, holder: Holder, config: LadderConfig, threads: int) -> Decision:
    """Play until a sequential test decides."""
    games = config.games or MAX_GAMES
    pair = f"{policy.name} - {holder.name}"
    with ProgressBar(f"playing {policy.rules.name}", games) as steps:
        duel = play_duel(
            policy.rules,
            policy,
            holder.player,
            games=games,
            sprt=SPRT,
            seed=config.seed,
            threads=threads,
            progress=partial(steps.reach, doing=pair),
        )
    low, high = duel.interval
    figures = (
        f"won {duel.share:.1%} ({low:.1%} .. {high:.1%}) in {duel.games:,} games against "
        f"{holder.name}, where equals win 50.0%: {VERDICTS[duel.verdict]}"
    )
    values = {"win": duel.share, "low": low, "high": high, "games": duel.games}
    return Decision(
        duel.verdict == "stronger", figures, {**values, "verdict": duel.verdict or None}
    )


def compare_exactly(policy: Policy, plays: str, holder: Holder) -> Decision:
    """Compare exploitabilities: in small games with hidden cards, games that are won say little."""
    ours, theirs = exploitability(policy, plays), None
    figures = f"exploitability {ours:.5f}, exact; there was no champion"
    if not isinstance(holder.player, str):
        theirs = exploitability(holder.player, holder.plays)
        figures = f"exploitability {ours:.5f}, exact; that of {holder.name} is {theirs:.5f}"
    values = {"exploitability": ours, "before": theirs}
    return Decision(theirs is None or ours < theirs, figures, values)


def exploitability(policy: Policy, plays: str) -> float:
    wanted = [{"of": EXPLOITABILITY, "sampled": plays == "sampled"}]
    return float(measure(policy, policy.rules, wanted)[0]["value"])
