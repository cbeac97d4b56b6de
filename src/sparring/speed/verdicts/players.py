"""Causes among those who are played against: networks that are asked one by one, functions."""

from __future__ import annotations

from dataclasses import asdict, replace

from sparring.errors import SparringError
from sparring.learn.opponents import PlayerActor
from sparring.nets.policy import Policy
from sparring.speed.verdicts.case import Candidate, Case
from sparring.speed.verdicts.frames import INFERENCE as NETWORK
from sparring.speed.verdicts.places import OPPONENTS, Sight
from sparring.speed.verdicts.told import Verdict, expected, percent, typed, without
from sparring.training.planning.casting import cast_of
from sparring.training.planning.own import rules_of
from sparring.training.planning.roles import nets_of, read_roles

ONE_CALL_EACH = "one call per opponent"
SLOW_FUNCTION = "a slow opponent"
NOTICED = 0.1
MOST_GAMES = 4096


def of_function(sight: Sight) -> bool:
    """Whether an opponent is a function of somebody's own."""
    return sight.place == OPPONENTS and bool(sight.theirs)


def verdicts(case: Case) -> list[Verdict]:
    """Opponents that are functions: nobody but their author can change them."""
    share = case.places.share(of_function)
    if share < NOTICED:
        return []
    asks = case.places.share(lambda sight: of_function(sight) and sight.work == NETWORK)
    where = case.places.where(of_function) or "your function"
    if asks > 0.5 * share:
        gain = without(share, 0.6)
        advice = "give the network itself as opponent, or answer all rows in one call"
        cause = ONE_CALL_EACH
    else:
        gain = without(share, 0.5)
        advice = "answer all rows at once with arrays, not row by row"
        cause = SLOW_FUNCTION
    return [
        Verdict(
            cause,
            f"{percent(share)} in an opponent that is your function, {where}: {advice}; "
            f"{expected(gain, timed=False)}",
            share,
            gain,
            do=f"{where}: {advice}",
        )
    ]


def candidates(case: Case) -> list[Candidate]:
    """Networks of another kind than the learner's: each is asked by a call of its own."""
    share = case.places.share(lambda sight: sight.place == OPPONENTS and not sight.theirs)
    if share < NOTICED:
        return []
    found, others = [], apart(case)
    count = len(others) or sum(not word.startswith("self") for word in case.config.opponents)
    whom = f"each of {count} policies" if count > 1 else "one policy"
    why = f"{percent(share)} in opponents' inference, one call for {whom}"
    nets = {replace(policy.net.config, sparse=True) for policy in others}
    if len(nets) == 1 and count > 1 and not case.config.hierarchy.on:
        (net,) = nets
        alike = {key: value for key, value in asdict(net).items() if key != "sparse"}
        mine = asdict(case.config.net)
        change = {key: value for key, value in alike.items() if mine[key] != value}
        grouped = typed({"net": change})
        found += [
            Candidate(
                ONE_CALL_EACH,
                share,
                {"net": change},
                f"{why}, as their network is another than the learner's",
                f"group them: with {grouped} it has theirs, and all are answered together",
                reckoned=without(share, 0.5 * (1 - 1 / max(count, 2))),
                hope=without(share, 0.9) + 0.2,
                alters=True,
            )
        ] * bool(change)
    games, steps = case.config.collect.games, case.config.collect.steps
    if games < MOST_GAMES:
        change_games = {"games": 4 * games, "steps": max(steps // 4, 1)}
        found.append(
            Candidate(
                ONE_CALL_EACH,
                share,
                {"collect": change_games},
                f"{why} in every step",
                f"play {4 * games} games at once in shorter rollouts, so that every call answers "
                "more rows; or name fewer policies",
                hope=without(share, 0.6),
                alters=True,
            )
        )
    return found


def apart(case: Case) -> list[Policy]:
    """Policies that the run meets and that have no slot."""
    if not case.repeatable:
        return []
    try:
        rules = rules_of(case.config)
        nets = nets_of(read_roles(rules, [case.config]), case.config)
        cast = cast_of(rules, case.config, nets)
    except SparringError:
        return []
    players = [actor.player for actor in cast.actors.values() if isinstance(actor, PlayerActor)]
    return [player for player in players if isinstance(player, Policy)]
