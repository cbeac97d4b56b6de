"""Conformance test of native games."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sparring.errors import IllegalActionError, RulesError
from sparring.games.lookup import game_module
from sparring.games.rules import Rules, rules_for
from sparring.games.state import load_state, new_state
from sparring.pools.native import Pool
from sparring.proof.python_rules import PROPERTIES as PYTHON_PROPERTIES
from sparring.proof.python_rules import PythonRules, has_python_rules
from sparring.proof.random_games import Broken, random_action, random_game, require

LARGEST_FEATURE = 100.0
"""Observation values above this lack a divisor."""
MEMBER_BYTES = 4
"""Bytes of an i32 or f32, the only members of a Config."""


@dataclass
class PropertyFinding:
    """Result of one property, with a detail."""

    name: str
    passed: bool
    detail: str


@dataclass
class ConformanceReport:
    """Result of `check`."""

    game: str
    findings: list[PropertyFinding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every property holds."""
        return all(finding.passed for finding in self.findings)

    def __str__(self) -> str:
        lines = [f"{'ok  ' if f.passed else 'FAIL'} {f.name}: {f.detail}" for f in self.findings]
        return "\n".join([f"{self.game}: {'passed' if self.passed else 'FAILED'}", *lines])


def check(
    game: str | Rules,
    *,
    config: Mapping[str, Any] | None = None,
    games: int = 20,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> ConformanceReport:
    """Play a game in every way and compare the results."""
    report = ConformanceReport(game if isinstance(game, str) else game.name)

    def test(name: str, run: Callable[[], str]) -> bool:
        if progress:
            progress(name)
        try:
            report.findings.append(PropertyFinding(name, True, run()))
        except (Broken, RulesError) as broken:
            report.findings.append(PropertyFinding(name, False, str(broken)))
        return report.findings[-1].passed

    if has_python_rules(report.game):
        steps = PythonRules(game, config, games, seed)
        if not all(test(name, run) for name, run in steps.properties.items()):
            return report
    rules = rules_for(game, config)
    report.game = rules.name
    for name, run in PROPERTIES.items():
        test(name, partial(run, rules, games, seed))
    return report


def check_flags(rules: Rules, games: int, seed: int) -> str:
    """Every member of the header's Config can be set, except those in the game's UNSET."""
    if has_python_rules(rules.name):
        return f"{len(rules.fields)} flags"
    members = len(rules.native.config_bytes) // MEMBER_BYTES  # an empty struct has one byte
    unset = len(getattr(game_module(rules.name), "UNSET", ()))
    named = sum(count for _, _, count, *_ in rules.native.config_fields)
    require(
        named + unset == members,
        f"Config holds {members} numbers, `config_fields` names {named}: give every member its "
        "SPARRING_CONFIG line, or remove it",
    )
    return f"{named} of {members} numbers can be set"


def check_legal_actions(rules: Rules, games: int, seed: int) -> str:
    """A seat can always act, every offered action is accepted, and every audit passes."""
    longest = 0
    for number in range(games):
        steps = random_game(rules, seed + number)
        longest = max(longest, len(steps) - 1)
        for at, (state, _) in enumerate(steps):
            where = f"seed {seed + number}, decision {at}"
            require(state.audit() == "", f"{where}: {state.audit()}")
            if state.over:
                continue
            require(bool(state.seats_to_act), f"{where}: the game runs but no seat is to act")
            if rules.box:
                continue
            for row in range(rules.rows):
                if state.native.seat(row) < 0:
                    continue
                legal = state.legal(row)
                require(bool(legal), f"{where}: the mask is empty")
                require(legal[-1] < rules.actions, f"{where}: legal action past the action count")
        if rules.rows == 1 and not rules.box:
            for state, action in steps[:-1:7]:
                for other in state.legal():
                    state.clone().apply(other)
                state.action_name(action)
    return f"{games} games, longest {longest} decisions"


def check_observations(rules: Rules, games: int, seed: int) -> str:
    """All bytes are written, values are finite and small, and feature names are unique."""
    names = [feature.name for feature in rules.features]
    require(len(set(names)) == len(names), "two features have the same name")
    used = np.zeros(rules.obs_bytes, bool)
    for feature in rules.features:
        used[feature.offset : feature.offset + np.dtype(feature.dtype).itemsize] = True
    largest = 0.0
    for number in range(games):
        for state, _ in random_game(rules, seed + number)[::3]:
            for seat in range(rules.seats):
                dirty = np.full(rules.obs_bytes, 0xA5, np.uint8)
                state.native.observe(seat, dirty)
                clean = state.observe_bytes(seat)
                require(bool((dirty == clean)[used].all()), "observe leaves bytes unwritten")
                wide = rules.widen(clean)
                require(bool(np.isfinite(wide).all()), "an observation is not finite")
                largest = max(largest, float(np.abs(wide).max()))
    require(largest <= LARGEST_FEATURE, f"a feature reaches {largest:g}; give it a divisor")
    return f"{len(names)} features in {rules.obs_bytes} bytes, largest value {largest:g}"


def check_hidden_information(rules: Rules, games: int, seed: int) -> str:
    """Two positions that differ only in hidden information look the same to a seat."""
    if not rules.hides:
        return "nothing is hidden"
    pairs = changed = 0
    for number in range(games):
        positions = list(enumerate(random_game(rules, seed + number)))
        for at, (state, _) in positions[number % 5 :: 5]:  # other decisions in every game
            for seat in range(rules.seats):
                where = f"seed {seed + number}, decision {at}"
                other = state.clone()
                other.resample_hidden(seat, seed=1000 * (seed + number) + 8 * at + seat)
                pairs += 1
                changed += other.native.serialize() != state.native.serialize()
                seen, again = state.observe_bytes(seat), other.observe_bytes(seat)
                if (seen != again).any():
                    differ = np.flatnonzero(rules.widen(seen) != rules.widen(again))
                    what = f": feature {rules.features[differ[0]].name} changed" * bool(differ.size)
                    raise Broken(f"{where}: seat {seat} sees what is hidden{what}")
                if state.seat == seat:
                    require(other.legal() == state.legal(), "legal actions depend on hidden parts")
    require(changed > 0, "resampling never changed anything")
    return f"{pairs} pairs, {changed} of them different"


def check_clone_and_replay(rules: Rules, games: int, seed: int) -> str:
    """Clones, replayed actions and loaded states continue as the original."""
    for number in range(games):
        steps = random_game(rules, seed + number)
        last = steps[-1][0].native.serialize()
        again = new_state(rules, seed=seed + number)
        for _, action in steps[:-1]:
            again.apply(action)
        require(again.native.serialize() == last, f"seed {seed + number}: the replay differs")
        middle = len(steps) // 2
        for copy in (steps[middle][0].clone(), load_state(steps[middle][0].serialize())):
            for _, action in steps[middle:-1]:
                copy.apply(action)
            if rules.skip_forced == copy.rules.skip_forced:
                require(
                    bool((copy.observe_bytes(0) == steps[-1][0].observe_bytes(0)).all()),
                    f"seed {seed + number}: a copy went another way",
                )
    return f"{games} games"


def check_saved_states(rules: Rules, games: int, seed: int) -> str:
    """Every byte of a state is declared, and every position can be loaded."""
    declared, total = rules.native.first_undeclared, rules.native.game_bytes
    require(
        declared == total,
        f"`bounds` declares no field at byte {declared} of {total}; name it, or fill padding with "
        "a spare field",
    )
    positions = 0
    for number in range(games):
        for at, (state, _) in enumerate(random_game(rules, seed + number)):
            where = f"seed {seed + number}, decision {at}"
            require(state.native.check() == "", f"{where}: {state.native.check()}")
            positions += 1
            if (at - number) % 5 or not rules.hides:
                continue
            for seat in range(rules.seats):
                other = state.clone()
                other.resample_hidden(seat, seed=1000 * (seed + number) + 8 * at + seat)
                require(other.native.check() == "", f"{where}, resampled: {other.native.check()}")
    return f"{total} bytes, {positions} positions"


def check_refusals(rules: Rules, games: int, seed: int) -> str:
    """Illegal actions are refused and change nothing."""
    refused = 0
    for number in range(games):
        for state, _ in random_game(rules, seed + number)[::11]:
            before = state.native.serialize()
            legal = set(state.legal())
            wrong: list[Any] = [
                a for a in (-1, 0, rules.actions - 1, rules.actions) if a not in legal
            ]
            if rules.box:
                wrong = [np.full((rules.rows, rules.box), np.nan, np.float32)]
            elif rules.rows > 1:
                wrong = [[a] * rules.rows for a in (-1, rules.actions)]
            for action in wrong:
                try:
                    state.apply(action)
                except IllegalActionError:
                    refused += 1
                else:
                    raise Broken(f"action {action} was accepted")
                require(state.native.serialize() == before, "a refused action changed the game")
    return f"{refused} refused"


def check_pool_against_states(rules: Rules, games: int, seed: int) -> str:
    """A pool's rows, masks, rewards, ends and last observations equal those of single states."""
    pool = Pool(rules, 1, seed=seed, threads=1)
    batch = pool.reset()
    state = new_state(rules, seed=seed)
    decisions = 0
    while not state.over:
        for row in range(rules.rows):
            seat = state.native.seat(row)
            require(int(batch.seat[row]) == seat, f"decision {decisions}: another seat is to act")
            require(
                bool((batch.obs[row] == state.observe_bytes(seat)).all()),
                f"decision {decisions}: observations differ",
            )
            if rules.role_bytes:
                require(
                    int(rules.role_of(batch.obs[row])) == int(batch.role[row]),
                    f"decision {decisions}: the row has another role than "
                    f"{rules.roles[int(batch.role[row])]}",
                )
            if not rules.box:
                mask = [int(a) for a in np.flatnonzero(batch.mask[row])]
                require(mask == state.legal(row), f"decision {decisions}: masks differ")
        action = np.array(pool.sample_actions())
        batch = pool.step(action)
        state.apply(action if rules.box or rules.rows > 1 else int(action[0]))
        same = np.array_equal(batch.reward[0], state.rewards_by_role)
        require(same, f"decision {decisions}: rewards differ")
        decisions += 1
    require(bool(batch.terminated[0]) == state.terminated, "terminated differs")
    require(bool(batch.truncated[0]) == state.truncated, "truncated differs")
    require(not (state.terminated and state.truncated), "a game both terminated and was truncated")
    for seat in range(rules.seats):
        same = (batch.final_obs[0, seat] == state.observe_bytes(seat)).all()
        require(bool(same), f"seat {seat}: final_obs is not the last observation")
        require(float(batch.final_score[0, seat]) == state.scores[seat], "final scores differ")
    return f"{decisions} decisions"


def digests(
    rules: Rules, games: int, steps: int, seed: int, *, threads: int, parts: int, slots: int = 1
) -> list[int]:
    """Return digests of random games after every step, for any number of threads and parts."""
    size = games // parts
    pools = [
        Pool(rules, size, seed=seed, threads=threads, slots=slots, first_game=part * size)
        for part in range(parts)
    ]
    found = []
    for pool in pools:
        pool.reset()
    for _ in range(steps):
        for pool in pools:
            pool.step(pool.sample_actions())
        found.append(sum(pool.digest() for pool in pools) % 2**64)
    return found


def check_threads(rules: Rules, games: int, seed: int) -> str:
    """Games are the same for any number of threads and any split into pools."""
    total, steps = 96, 300
    expected = digests(rules, total, steps, seed, threads=1, parts=1)
    for threads, parts, slots in ((2, 1, 1), (4, 1, 1), (1, 3, 1), (2, 2, 2)):
        where = f"{threads} threads, {parts} parts, {slots} slots"
        found = digests(rules, total, steps, seed, threads=threads, parts=parts, slots=slots)
        require(found == expected, f"{where}: other games came out")
    return f"{total} games, {steps} steps, signature {expected[-1]:016x}"


def check_saved_pool(rules: Rules, games: int, seed: int) -> str:
    """A saved and loaded pool continues exactly."""
    pool = Pool(rules, 32, seed=seed, threads=1)
    pool.reset()
    for _ in range(57):
        pool.step(pool.sample_actions())
    saved = pool.state()
    other = Pool(rules, 32, seed=seed + 1, threads=2)
    other.load_state(saved)
    for step in range(200):
        pool.step(pool.sample_actions())
        other.step(other.sample_actions())
        require(pool.digest() == other.digest(), f"{step + 1} steps after loading they differ")
    return f"{len(saved):,} bytes for 32 games"


def check_bots(rules: Rules, games: int, seed: int) -> str:
    """Every bot plays only legal actions."""
    for bot in rules.bots:
        for number in range(max(1, games // 4)):
            state = new_state(rules, seed=seed + number)
            while not state.over:
                rows = [state.ask(bot, row) for row in range(rules.rows)]
                try:
                    state.apply(np.array(rows) if rules.box or rules.rows > 1 else rows[0])
                except IllegalActionError as wrong:
                    raise Broken(f"bot {bot}: {wrong}") from None
    return ", ".join(rules.bots)


def check_zero_sum(rules: Rules, games: int, seed: int) -> str:
    """In a game that declares zero sum, rewards of all seats add up to 0 in every part."""
    if not rules.zero_sum:
        return "not declared"
    paid = 0
    for part in rules.parts:
        for number in range(games):
            state = new_state(rules, seed=seed + number, rewards={part: 1.0})
            rng = np.random.default_rng([seed, number])
            while not state.over:
                state.apply(random_action(state, rng))
                sums = state.rewards_by_role.sum(axis=0)
                paid += int(state.rewards_by_role.any())
                require(
                    bool(np.allclose(sums, 0.0, atol=1e-5)),
                    f"part {part}: the seats are paid {state.rewards.tolist()}, which is not zero "
                    "in sum; leave zero_sum out",
                )
    return f"{paid} payments add up to 0"


def check_win_part(rules: Rules, games: int, seed: int) -> str:
    """The part that pays wins pays 1 and -1, or nothing, and only at the end."""
    part = rules.win_part
    if not part:
        return "not declared"
    won = 0
    for number in range(games):
        state = new_state(rules, seed=seed + number, rewards={part: 1.0})
        rng = np.random.default_rng([seed, number])
        while not state.over:
            state.apply(random_action(state, rng))
            paid = sorted(state.rewards.tolist())
            at_the_end = state.terminated and paid == [-1.0, 1.0]
            require(
                at_the_end or paid == [0.0, 0.0],
                f"part {part} pays {paid}, and not 1 to a winner and -1 to a loser at the end; "
                "leave kWinPart out",
            )
            won += at_the_end
    return f"{won} of {games} games are won"


def check_chance(rules: Rules, games: int, seed: int) -> str:
    """In a game that declares no chance, the same actions lead to the same state for any seed."""
    if rules.chance:
        return "the game has chance"
    decisions = 0
    for number in range(games):
        other = new_state(rules, seed=seed + number + 1)
        for at, (state, action) in enumerate(random_game(rules, seed + number)):
            require(
                state.native.serialize() == other.native.serialize(),
                f"seeds {seed + number} and {seed + number + 1} differ after {at} equal decisions; "
                "leave chance = false out",
            )
            if action is not None:
                other.apply(action)
                decisions += 1
    return f"{decisions} decisions lead to the same from another seed"


PROPERTIES: dict[str, Callable[[Rules, int, int], str]] = {
    "flags": check_flags,
    "legal actions": check_legal_actions,
    "observations": check_observations,
    "hidden information": check_hidden_information,
    "clone and replay": check_clone_and_replay,
    "saved states": check_saved_states,
    "refused actions": check_refusals,
    "pool equals single states": check_pool_against_states,
    "threads and splits": check_threads,
    "saved pools": check_saved_pool,
    "bots": check_bots,
    "zero sum": check_zero_sum,
    "wins": check_win_part,
    "chance": check_chance,
}
"""Properties that `check` tests, in this order; those of rules in Python come first."""


def stages_of(game: str) -> int:
    """How many properties `check` tests of a game."""
    return len(PROPERTIES) + len(PYTHON_PROPERTIES) * has_python_rules(game)
