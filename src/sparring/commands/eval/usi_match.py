"""`sparring eval --engine`: a match against a USI engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sparring.commands.shared.printing import ProgressBar, print_json, print_table, say
from sparring.commands.shared.results import all_lines, results_table
from sparring.config.commands import EvalConfig
from sparring.errors import ConfigError, SparringError
from sparring.games.flags import changed_flags, read_pair
from sparring.games.rules import Rules
from sparring.league.arena import USUAL_PLIES
from sparring.league.players import Player
from sparring.league.usi import GAME
from sparring.league.usi.match import GO, Terms, play_match
from sparring.pools.limits import MOST_PLIES

GAMES = 100
"""Unless --games says otherwise: an engine takes its time."""
IN_MILLISECONDS = ("movetime", "byoyomi")
MOST_LIMIT, MOST_TIMEOUT_S = 2**31 - 1, 86_400.0


def run(config: EvalConfig, challenger: Player, rules: Rules) -> int:
    """Play a match against a USI engine and print what it says."""
    if rules.name != GAME:
        raise ConfigError(f"{config.challenger} plays {rules.name}; --engine is for {GAME}")
    terms = terms_of(config)
    with ProgressBar(f"playing {rules.name}", terms.games) as steps:

        def tell(played: int) -> None:
            steps.reach(played, "games")

        match = play_match(challenger, rules, terms, tell)
    results = {match.engine: match.result}
    if config.json:
        print_json(
            {
                "challenger": config.challenger,
                "game": rules.name,
                "flags": changed_flags(rules),
                "seed": config.seed,
                "sampled": config.sampled,
                "engine": {
                    "command": config.engine,
                    "name": match.engine,
                    "limit": config.engine_limit,
                    "options": terms.options,
                },
                "openings": config.openings or terms.opening_plies,
                "results": {name: found.summary() for name, found in results.items()},
                "faults": [asdict(fault) for fault in match.faults],
                "stopped": match.stopped,
            }
        )
    else:
        print_table(results_table(results))
        for line in all_lines(results):
            say(line)
        print(f"ends: {', '.join(f'{end} {count}' for end, count in match.result.ends.items())}")
        for fault in match.faults:
            print(f"game {fault.game + 1} lost by the engine's {fault.kind}: {fault.what}")
    if match.stopped:
        raise SparringError(
            f"stopped after {match.result.games} games of {terms.games}: {match.stopped}"
        )
    return 0


def check_options(config: EvalConfig) -> None:
    """Refuse what does not go together, before anything is loaded."""
    if config.opening_plies is not None and not 0 <= config.opening_plies <= MOST_PLIES:
        raise ConfigError(f"--opening-plies {config.opening_plies} is outside 0..{MOST_PLIES}")
    if config.engine is None:
        usual = EvalConfig(config.challenger)
        names = ("engine_limit", "engine_option", "engine_timeout_s", "openings")
        given = [name for name in names if getattr(config, name) != getattr(usual, name)]
        if given:
            raise ConfigError(f"--{given[0].replace('_', '-')} is for matches with --engine")
        return
    for other in ("against", "protocol"):
        if getattr(config, other):
            raise ConfigError(f"--engine and --{other} exclude each other; leave one out")
    if config.game not in ("", GAME):
        raise ConfigError(f"--engine speaks USI, which is for {GAME}, not {config.game}")
    if config.games % 2:
        raise ConfigError(
            f"--games {config.games} must be even: openings are played with both colours"
        )
    if not 0 < config.engine_timeout_s <= MOST_TIMEOUT_S:
        raise ConfigError(
            f"--engine-timeout-s {config.engine_timeout_s:g} must be above 0 and at most "
            f"{MOST_TIMEOUT_S:g}"
        )
    read_limit(config)
    read_options(config.engine_option)


def read_limit(config: EvalConfig) -> str:
    """Return the `go` line of a limit."""
    kind, _, number = config.engine_limit.partition("=")
    digits = number.isascii() and number.isdecimal() and len(number) <= len(str(MOST_LIMIT))
    if kind not in GO or not digits or not 0 < int(number) <= MOST_LIMIT:
        known = ", ".join(f"{name}=NUMBER" for name in GO)
        raise ConfigError(
            f"--engine-limit {config.engine_limit[:40]!r} is none of {known}, "
            f"with numbers from 1 to {MOST_LIMIT}"
        )
    if kind in IN_MILLISECONDS and int(number) >= 1000 * config.engine_timeout_s:
        raise ConfigError(
            f"--engine-limit {config.engine_limit} leaves no time before the engine has lost; "
            "raise --engine-timeout-s"
        )
    return GO[kind].format(number)


def read_options(pairs: Sequence[str]) -> dict[str, str]:
    """Return the options that the engine is given."""
    options = {}
    for pair in pairs:
        name, value = read_pair(pair, "engine-option")
        if pair.splitlines() != [pair]:
            raise ConfigError(f"engine-option: {pair!r} has to be one line")
        options[name] = value
    return options


def terms_of(config: EvalConfig) -> Terms:
    """Return what the options say about the match."""
    return Terms(
        engine=config.engine or "",
        options=read_options(config.engine_option),
        go=read_limit(config),
        timeout_s=config.engine_timeout_s,
        start_s=config.engine_timeout_s,
        games=config.games or GAMES,
        openings=config.openings,
        opening_plies=USUAL_PLIES if config.opening_plies is None else config.opening_plies,
        seed=config.seed,
        sampled=config.sampled,
    )
