"""`sparring zoo`: the champions that come along, and whether they are as strong as stated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sparring.commands.shared.printing import (
    ProgressBar,
    echo,
    make_table,
    print_facts,
    print_json,
    print_table,
)
from sparring.config.tools import ZooConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.machine import check_threads, format_bytes
from sparring.store.champions import (
    CHALLENGE,
    CHAMPION,
    MATCH,
    SCORE,
    Champion,
    champion_games,
    champion_of,
    share_text,
)

DIFFERS = 1
"""Exit code if a champion is not as strong as stated."""


def run(config: ZooConfig) -> int:
    if config.seed is not None and not config.verify:
        raise ConfigError("--seed is for --verify; leave it or add --verify")
    games = [config.game] if config.game else champion_games()
    champions = [champion_of(game) for game in games]
    if config.verify:
        return verify(champions, config)
    if config.json:
        print_json({"champions": [plain(one) for one in champions]})
        return 0
    for number, champion in enumerate(champions):
        if number:
            print()
        show(champion, whole=bool(config.game))
    if not config.game:
        echo("\nplay one: sparring play GAME; use one anywhere: GAME:champion, champion@level3")
    return 0


def plain(champion: Champion) -> dict[str, Any]:
    size = champion.weights.stat().st_size
    return {"game": champion.game, "bytes": size, **champion.entry}


def show(champion: Champion, *, whole: bool) -> None:
    """Print what is known of a champion. whole: with its past."""
    echo(f"{Rules(champion.game).title} ({champion.game}:{CHAMPION})")
    recipe = champion.recipe
    facts = [("strength", "; ".join(map(measured, champion.strength)))]
    if exploited := champion.entry.get("exploited"):
        facts.append(("exploited", exploited_text(exploited, Rules(champion.game))))
    if rating := champion.entry.get("rating"):
        anchor = f", measured from {rating['anchor']}" if "anchor" in rating else ""
        facts.append(
            ("rating", f"{rating['elo']:.0f} ({rating['low']:.0f} .. {rating['high']:.0f}){anchor}")
        )
    decisions = f", {recipe['decisions']:,} decisions" if "decisions" in recipe else ""
    facts.append(("trained", f"{recipe['minutes']:.1f} minutes on {recipe['machine']}{decisions}"))
    facts.append(("size", format_bytes(champion.weights.stat().st_size)))
    facts.append(("command", recipe["command"]))
    if whole:
        facts.append(("commit", f"{recipe['commit']}, {recipe.get('date', '')}"))
        facts += [("note", recipe["note"])] if "note" in recipe else []
        for past in champion.entry.get("past", []):
            facts.append(("past", f"{past['sha256'][:12]}: {past['recipe']['command']}"))
    print_facts(facts, label=9, prose=True)


def measured(one: Mapping[str, Any]) -> str:
    """Return a measurement in words."""
    if one["of"] == MATCH:
        style = f"searching @{one['style']}, " if one.get("style") else ""
        interval = f"{share_text(one['low'])} .. {share_text(one['high'])}"
        return f"{one['against']} {share_text(one['value'])} ({style}{interval})"
    if one["of"] == SCORE:
        return f"{one['against']} {one['value']:+.3f} ({one['low']:+.3f} .. {one['high']:+.3f})"
    if one["of"] == CHALLENGE:
        return f"the challenge {one['value']:.2f} ({one['low']:.2f} .. {one['high']:.2f})"
    return f"exploitability {one['value']:.4f}, exact"


def exploited_text(found: Mapping[str, Any], rules: Rules) -> str:
    interval = f" ({found['low']:.1%} .. {found['high']:.1%})" if "low" in found else ""
    trained = f"{found['kind']}, {found['decisions']:,} decisions"
    equal = f"an equal player {1 / rules.seats:.1%}"
    return f"the best response found wins {found['value']:.1%}{interval}; {trained}; {equal}"


def verify(champions: list[Champion], config: ZooConfig) -> int:
    """Measure champions again, and compare with what is stated."""
    from sparring.league.championship import agrees, described, measure
    from sparring.store.policies import load_policy

    threads = check_threads(config.threads or os.cpu_count() or 1)
    rows: list[dict[str, Any]] = []
    with ProgressBar("measuring", sum(len(one.strength) for one in champions)) as steps:
        for champion in champions:
            policy = load_policy(champion.weights, name=f"{champion.game}:{CHAMPION}")
            options: dict[str, Any] = {"threads": threads, "seed": config.seed}
            found = measure(policy, policy.rules, champion.strength, progress=steps.next, **options)
            for stated, now in zip(champion.strength, found, strict=True):
                same = agrees(stated, now)
                rows.append({"game": champion.game, "stated": stated, "now": now, "agrees": same})
    failed = [row for row in rows if not row["agrees"]]
    if config.json:
        print_json({"measurements": rows, "agrees": not failed})
        return DIFFERS if failed else 0
    table = make_table(("game", "measured", "stated", "now", ""), numbers=("stated", "now"))
    for row in rows:
        shown = [number(row[key]) for key in ("stated", "now")]
        verdict = "as stated" if row["agrees"] else "differs"
        table.add_row(row["game"], described(row["stated"]), *shown, verdict)
    print_table(table)
    if failed:
        echo(f"{len(failed)} of {len(rows)} measurements differ from what is stated")
    return DIFFERS if failed else 0


def number(measurement: Mapping[str, Any]) -> str:
    value = measurement["value"]
    formats = {MATCH: ".1%", SCORE: "+.3f", CHALLENGE: ".2f"}
    return format(value, formats.get(measurement["of"], ".5f"))
