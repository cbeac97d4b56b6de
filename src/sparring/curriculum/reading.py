"""Parse the phases of a configuration; errors name the phase and the key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sparring.config import TrainConfig
from sparring.config.algorithms import REPLAYED
from sparring.config.ranges import read, read_count, settings_of
from sparring.config.synonyms import ALGORITHMS
from sparring.curriculum.checks import check_flags, check_phase_length, check_phases, check_weights
from sparring.curriculum.files import Key, default_name, locate_errors, name_file_and_line
from sparring.curriculum.phases import Phase, Threshold
from sparring.curriculum.rewards import check_any_reward, read_rewards
from sparring.errors import ConfigError, suggestion
from sparring.games.flags import read_flag, read_pair
from sparring.games.rules import Rules
from sparring.games.starts import read_starts
from sparring.league.arena import default_opponents
from sparring.league.seating import read_lineups
from sparring.schedule import Schedule

LENGTHS = ("decisions", "episodes", "from", "to")
SECTIONS = ALGORITHMS
KEYS = (
    *("name", *LENGTHS, "until", "opponents", "set", "starts", "rewards"),
    *(*SECTIONS, "clear_replay"),
)
MAX_NAME_CHARS = 60
"""Longest name of a phase: tables, charts and the panel show it in one line."""
MAX_LENGTH = 10**15
"""Largest count of decisions or games."""
UNTIL = ("win", "score", "against")
DEFAULT_EVAL_BOTS = 2
"""Number of bots in evaluations without `eval.against`."""


def read_phases(rules: Rules, config: TrainConfig) -> tuple[Phase, ...]:
    """Read the phases of a run; empty if it has none."""
    with name_file_and_line(config.curriculum, config.config):
        tables = [parse_phase(index, text) for index, text in enumerate(config.phases)]
        reader = PhaseReader(rules, config)
        phases = tuple(reader.phase(index, table) for index, table in enumerate(tables))
        check_phases(phases, [span_of(table) for table in tables])
    return phases


def parse_phase(index: int, text: str) -> dict[str, Any]:
    with locate_errors(index, ""):
        try:
            table = json.loads(text)
        except (ValueError, RecursionError):
            raise ConfigError(f"{text!r} is no JSON; give a table of settings") from None
        if not isinstance(table, dict):
            raise ConfigError(f"{text} is no table of settings; give name, decisions and so on")
        return table


def span_of(table: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return `from` and `to` of a phase, None if it has neither."""
    if "from" not in table and "to" not in table:
        return None
    return parse_count(table.get("from", -1), "from"), parse_count(table.get("to", 0), "to")


class PhaseReader:
    """Reads the phases of one run, in order."""

    def __init__(self, rules: Rules, config: TrainConfig) -> None:
        self.rules, self.config = rules, config
        self.base_rewards = read_rewards(rules, config.rewards)
        self.end = 0
        """Decisions at which the previous phase ends, if all phases end by decisions."""
        self.at = (0, "")
        """Index and name of the phase that is being read."""

    def phase(self, index: int, table: Mapping[str, Any]) -> Phase:
        """Read one phase. index: from 0."""
        name = table.get("name", default_name(index))
        name = name if isinstance(name, str) else ""
        self.at = (index, name)
        for key in table:
            with locate_errors(index, name, key):
                if key not in KEYS:
                    raise ConfigError(f"no key {key!r}{suggestion(key, KEYS)}")
        with locate_errors(index, name if is_printable_name(name) else "", "name"):
            if not name.strip():
                raise ConfigError(f"name {table['name']!r} must be text; give the phase a name")
            if not is_printable_name(name):
                raise ConfigError(
                    f"a name must be one line of at most {MAX_NAME_CHARS} characters; shorten it"
                )
        with locate_errors(
            index, name, *[key for key in ("to", "from", "decisions") if key in table][:1]
        ):
            decisions = self._decisions(table)
        with locate_errors(index, name, "episodes"):
            episodes = parse_count(table.get("episodes", 0), "episodes")
        found: dict[str, Any] = {}
        for key, reads in (
            ("until", self._until),
            ("opponents", self._opponents),
            ("set", self._flags),
            ("starts", self._starts),
            ("rewards", self._rewards),
            ("clear_replay", self._clear),
        ):
            if key in table:
                with locate_errors(index, name, key):
                    found[key] = reads(table[key])
        settings = {}
        for section in SECTIONS:
            if section in table:
                settings[section] = self._settings(index, name, section, table[section])
        phase = Phase(
            name=name,
            decisions=decisions,
            episodes=episodes,
            until=found.get("until"),
            opponents=found.get("opponents"),
            flags=found.get("set", {}),
            starts=found.get("starts"),
            rewards=found.get("rewards", {}),
            settings=settings,
            clear_replay=found.get("clear_replay", False),
        )
        self._check_lengths(index, phase, table)
        return phase

    def _decisions(self, table: Mapping[str, Any]) -> int:
        decisions = parse_count(table.get("decisions", 0), "decisions")
        span = span_of(table)
        if span is None:
            self.end += decisions
            return decisions
        if decisions:
            raise ConfigError("decisions and from/to both set the length; give one of them")
        begin, end = span
        begin = self.end if begin < 0 else begin
        if end and end <= begin:
            raise ConfigError(f"to {end:,} must be above {begin:,}, where the phase begins")
        self.end = end
        return max(end - begin, 0)

    def _until(self, given: Any) -> Threshold:
        if not isinstance(given, Mapping):
            raise ConfigError(f"until needs a table such as {{ win = 0.6 }}, not {given!r}")
        for key in given:
            if key not in UNTIL:
                raise ConfigError(f"until: no key {key!r}{suggestion(key, UNTIL)}")
        if ("win" in given) == ("score" in given):
            raise ConfigError("until needs either win or score; give one of them")
        if self.config.eval.off:
            raise ConfigError("until needs evaluations; leave --eval.off out")
        by_score = "score" in given
        value = parse_number(given["score" if by_score else "win"], "until")
        alone = self.rules.seats == 1
        if not by_score and (alone or not 0 < value <= 1):
            why = "has one seat and no opponents; give score" if alone else ""
            text = (
                f"{self.rules.name} {why}" if why else f"win {value:g} must be above 0, at most 1"
            )
            raise ConfigError(f"until: {text}")
        return Threshold(value, by_score, self._measured(given.get("against", "")))

    def _measured(self, against: Any) -> str:
        """Return the bot of a threshold; it must be an opponent of the evaluations."""
        if against == "":
            return ""
        bot = self.rules.bot_called(str(against))
        if self.rules.seats == 1 or bot is None:
            self.rules.bot(str(against))
            raise ConfigError(f"until: {self.rules.name} has one seat; leave against out")
        met = self.config.eval.against or default_opponents(self.rules, DEFAULT_EVAL_BOTS)
        called = [self.rules.bots.called(name) for name in met]
        if self.rules.bots.called(bot) not in called:
            raise ConfigError(
                f"until: {against} is not among the opponents of evaluations, "
                f"{', '.join(met)}; add it with --eval.against {' '.join((*met, str(against)))}"
            )
        return next(
            name for name in met if self.rules.bots.called(name) == self.rules.bots.called(bot)
        )

    def _opponents(self, given: Any) -> tuple[str, ...]:
        texts: list[str] = []
        weights: list[Schedule] = []
        for key, entry in entries(given, "opponents"):
            with self._about("opponents", key):
                word = entry if isinstance(key, int) else opponent_text(key, entry)
                if has_zero_weight(word):
                    continue
                (table,) = read_lineups(self.rules, [word], scheduled=True)
                weights.append(table.schedule or Schedule.constant(table.weight))
                texts.append(word)
        if not texts:
            why = "every weight is 0; raise one" if given else "the list is empty"
            raise ConfigError(f"opponents: {why}")
        check_weights(weights)
        return tuple(texts)

    def _flags(self, given: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, entry in entries(given, "set"):
            with self._about("set", key):
                name, value = read_pair(entry, "set") if isinstance(key, int) else (key, entry)
                if name in found:
                    raise ConfigError(f"set: {name} was given twice; give it once")
                found[name] = read_flag(self.rules, name, value)
        if self.rules.declares_flags:
            check_flags(self.rules, found)
        return found

    def _rewards(self, given: Any) -> dict[str, Schedule]:
        for key, entry in entries(given, "rewards"):
            with self._about("rewards", key):
                read_rewards(self.rules, [entry] if isinstance(key, int) else {key: entry})
        found = read_rewards(self.rules, given)
        check_any_reward(self.rules, self.base_rewards, found)
        return found

    def _about(self, *keys: Key) -> AbstractContextManager[None]:
        return locate_errors(*self.at, *keys)

    def _starts(self, given: Any) -> tuple[str, ...]:
        words = parse_texts(given, "starts")
        for at, word in enumerate(words):
            with self._about("starts", at):
                read_starts(self.rules, [word])
        return words

    def _clear(self, given: Any) -> bool:
        if not isinstance(given, bool):
            raise ConfigError(f"clear_replay needs true or false, not {given!r}")
        if given and not has_replay(self.config):
            raise ConfigError(
                f"clear_replay: {self.config.algo} has no replay buffer; leave it out"
            )
        return given

    def _settings(self, index: int, name: str, section: str, given: Any) -> dict[str, Schedule]:
        with locate_errors(index, name, section):
            if not isinstance(given, Mapping):
                raise ConfigError(f"{section} needs a table of settings, not {given!r}")
            if section != self.config.algo:
                raise ConfigError(
                    f"{section}: the algorithm is {self.config.algo}; settings of "
                    "other algorithms have no effect"
                )
        kinds = settings_of(getattr(self.config, section))
        may = [key for key, (kind, _) in kinds.items() if kind is Schedule]
        found = {}
        for key, value in given.items():
            with locate_errors(index, name, section, key):
                if key not in may:
                    known = "" if key in kinds else suggestion(key, may)
                    why = f"cannot change in a run; those that can: {', '.join(may)}"
                    raise ConfigError(
                        f"{section}.{key} " + (f"is unknown{known}" if known else why)
                    )
                found[key] = read(value, *kinds[key], f"{section}.{key}")
        return found

    def _check_lengths(self, index: int, phase: Phase, table: Mapping[str, Any]) -> None:
        """Refuse schedules in percent of a phase whose length is unknown."""
        schedules: list[tuple[tuple[str, ...], Any, bool]] = []
        tables = (
            read_lineups(self.rules, phase.opponents, scheduled=True) if phase.opponents else ()
        )
        schedules += [(("opponents",), one.schedule, False) for one in tables if one.schedule]
        schedules += [(("set", name), value, False) for name, value in phase.flags.items()]
        schedules += [(("rewards", name), value, False) for name, value in phase.rewards.items()]
        for section, settings in phase.settings.items():
            schedules += [((section, name), value, True) for name, value in settings.items()]
        for keys, value, of_learner in schedules:
            with locate_errors(index, phase.name, *keys):
                for schedule in value if isinstance(value, list) else [value]:
                    if isinstance(schedule, Schedule):
                        check_phase_length(phase, schedule, ".".join(keys), of_learner=of_learner)


def is_printable_name(name: str) -> bool:
    return len(name) <= MAX_NAME_CHARS and name.isprintable()


def parse_count(given: Any, where: str) -> int:
    """Read a count such as 2000000 or 2e6."""
    try:
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            raise ValueError
        count = read_count(str(given))
    except (ValueError, OverflowError):
        raise ConfigError(f"{where} {given!r} must be a whole number") from None
    if count < (-1 if where == "from" else 0):
        raise ConfigError(f"{where} {given!r} must be at least 0")
    if count > MAX_LENGTH:
        raise ConfigError(f"{where} {given!r} must be at most {MAX_LENGTH:.0e}")
    return count


def parse_number(given: Any, where: str) -> float:
    schedule = None if isinstance(given, str) else Schedule.read(given, where)
    if schedule is None or schedule.changes:
        raise ConfigError(f"{where}: {given!r} is no number")
    return schedule.values[0]


def parse_texts(given: Any, where: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(f"{where} needs a list of texts, not {given!r}")
    if not all(isinstance(word, str) for word in given):
        raise ConfigError(f"{where}: every member of the list must be text")
    return tuple(given)


def entries(given: Any, where: str) -> list[tuple[Key, Any]]:
    """Return the entries of a table by key, or the texts of a list by index."""
    if isinstance(given, Mapping):
        return [(str(key), value) for key, value in given.items()]
    return list(enumerate(parse_texts(given, where)))


def opponent_text(who: str, weight: Any) -> str:
    """Return an entry of a table of opponents as OPPONENT=WEIGHT."""
    return f"{who}={Schedule.read(weight, f'opponents: {who}').plain()}"


def opponent_texts(given: Any) -> list[str]:
    """Return the opponents of a phase as texts, without those of weight 0."""
    texts = [
        entry if isinstance(key, int) else opponent_text(key, entry)
        for key, entry in entries(given, "opponents")
    ]
    return [text for text in texts if not has_zero_weight(text)]


def has_zero_weight(word: str) -> bool:
    """Whether an opponent has the constant weight 0, which leaves it out."""
    _, equals, amount = word.rpartition("=")
    try:
        return bool(equals) and float(amount) == 0
    except ValueError:
        return False


def has_replay(config: TrainConfig) -> bool:
    own = getattr(config, config.algo, None)
    return isinstance(own, REPLAYED) and getattr(own, "mode", "") != "rollouts"
