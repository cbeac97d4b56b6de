"""Rules of a game with its flags: sizes, names, features and reward weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring import _native, trusted
from sparring.errors import ConfigError, suggestion
from sparring.games.arguments import check_index, check_type, short_repr
from sparring.games.features import Feature, FeatureBlock, Run, runs_of
from sparring.games.lookup import game_module
from sparring.games.mirror import Mirror
from sparring.games.packing import pack_rows
from sparring.games.sources import not_built_hint
from sparring.games.stats import Stat
from sparring.pygames.registry import SUFFIX, registered_name

UNIVERSAL_FLAGS = {"skip_forced": "play on when only one action is legal"}
"""Flags of every game."""
BOT_PREFIX = "bot:"
"""Optional prefix of a bot's name, which distinguishes it from a folder."""
TEST_GAMES = ("cage2_replay", "corridor", "duel", "rock_paper_scissors", "signal", "stairs")
"""Games that only test builds have."""

Rewards = Mapping[str, float | Sequence[float]]


@dataclass(frozen=True)
class Field:
    """One flag of a game."""

    name: str
    dtype: str
    count: int
    low: float
    high: float
    words: tuple[str, ...]
    help: str
    live: bool
    value: tuple[float, ...]

    def show(self) -> Any:
        """Return the value as users write it."""
        # The shortest decimal with the same float32: 0.2, not 0.20000000298.
        plain = [
            float(str(np.float32(v))) if self.dtype == "float32" else int(v) for v in self.value
        ]
        named = [self.words[int(v)] if self.words else v for v in plain]
        return named[0] if self.count == 1 else named

    def parse(self, given: Any) -> list[float]:
        """Validate a user's value and return it for the native core."""
        if self.count == 1:
            return [self._parse_one(given)]
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
            raise ConfigError(f"{self.name} needs a list of up to {self.count} values")
        if len(given) > self.count:
            raise ConfigError(f"{self.name} takes at most {self.count} values, got {len(given)}")
        values = [self._parse_one(v) for v in given]
        return values + [0.0] * (self.count - len(values))

    def _parse_one(self, given: Any) -> float:
        if isinstance(given, str) and self.words:
            if given.upper() in self.words:
                return float(self.words.index(given.upper()))
            raise ConfigError(f"{self.name}={given!r} is unknown{suggestion(given, self.words)}")
        try:
            value = float(given)
        except OverflowError:
            raise ConfigError(f"{self.name} is outside {self.low:g}..{self.high:g}") from None
        except (TypeError, ValueError):
            raise ConfigError(f"{self.name}={given!r} is not a number") from None
        if not self.low <= value <= self.high:
            raise ConfigError(f"{self.name}={given} is outside {self.low:g}..{self.high:g}")
        if self.dtype != "float32" and value != int(value):
            raise ConfigError(f"{self.name}={given} must be a whole number")
        return value


class Bots(tuple[str, ...]):
    """Names of bots from the weakest to the strongest; `in` also accepts aliases.

    A game's folder may have `BOT_NAMES`, from alias to name. Aliases are not listed.
    """

    game = ""

    def called(self, name: object) -> object:
        """Return the name of an alias; other names unchanged."""
        if not self.game or super().__contains__(name):
            return name
        return getattr(game_module(self.game), "BOT_NAMES", {}).get(name, name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(self.called(name))


SKIP_FORCED = Field(
    "skip_forced", "int32", 1, 0, 1, (), UNIVERSAL_FLAGS["skip_forced"], False, (0,)
)


class Rules:
    """Everything about a game that does not change while it is played."""

    declares_flags = True
    """Whether `fields` lists all flags."""

    def __init__(self, name: str, config: Mapping[str, Any] | None = None) -> None:
        check_type("game", name, str, "name of a game")
        if name not in _native.game_names():
            name = registered_name(name)
        if name not in _native.game_names():
            if why := not_built_hint(name):
                raise ConfigError(why)
            hint = suggestion(name, game_names())
            if ":" in name or name.endswith(".py") or is_python_file(name):
                hint = "; a custom environment is module:factory, or file.py:factory"
            raise ConfigError(f"no game called {short_repr(name)}{hint}")
        given = dict(config or {})
        self.skip_forced = bool(SKIP_FORCED.parse(given.pop("skip_forced", 0))[0])
        fields = {row[0]: row for row in _native.default_fields(name)}
        for key in given:
            if key not in fields:
                known = [*fields, *UNIVERSAL_FLAGS]
                raise ConfigError(f"{name} has no flag {key!r}{suggestion(key, known)}")
        values = [
            make_field(row).parse(given[key]) if key in given else list(row[8])
            for key, row in fields.items()
        ]
        try:
            self.native = _native.make_rules(name, values)
        except ValueError as error:
            raise ConfigError(f"{name}: {error}") from None
        self.name = name
        self.title = self.native.title
        self.rules_version = self.native.rules_version
        self.seats = self.native.seats
        self.rows = self.native.rows
        self.roles = tuple(self.native.roles)
        self.board = tuple(self.native.board)
        self.actions = self.native.actions
        self.box = self.native.box
        self.legal_words = self.native.legal_words
        self.obs_bytes = self.native.obs_bytes
        self.parts = tuple(self.native.parts)
        self.bots = Bots(self.native.bots)
        self.bots.game = name
        self.ends = tuple(self.native.ends)
        self.counters = tuple(self.native.counters)
        self.hides = self.native.hides
        self.win_part = self.native.win_part
        """The reward part that pays 1 to a winner and -1 to a loser, at the end; "": none."""
        self.zero_sum = self.native.zero_sum
        """Whether the two seats' rewards sum to zero."""
        self.chance = self.native.chance
        """Whether the game has random events."""
        if self.zero_sum and self.seats != 2:
            raise ConfigError(f"{name} declares zero_sum, which is for two seats, not {self.seats}")

    def __repr__(self) -> str:
        return f"Rules({self.name!r}, seats={self.seats})"

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Flags by name."""
        return {row[0]: make_field(row) for row in self.native.config_fields}

    @cached_property
    def stats(self) -> tuple[Stat, ...]:
        """Statistics of play, computed from `counters`, the most important first."""
        return tuple(
            Stat(name, tuple(above), tuple(below), text, detail)
            for name, above, below, text, detail in self.native.stats
        )

    @property
    def config(self) -> dict[str, Any]:
        """A copy of all flags, as `Rules` accepts them."""
        return {
            name: list(value) if isinstance(value, list) else value
            for name, value in self._config.items()
        }

    @cached_property
    def _config(self) -> dict[str, Any]:
        flags = {name: field.show() for name, field in self.fields.items()}
        return {**flags, "skip_forced": int(self.skip_forced)}

    def changed(self, changes: Mapping[str, Any]) -> Rules:
        """Return the same game with some flags changed."""
        return Rules(self.name, {**self.config, **changes})

    def action_name(self, action: int) -> str:
        """Return the name of an action."""
        return self.native.action_name(
            check_index(self.name, "actions", action, self.actions, ConfigError)
        )

    @cached_property
    def blocks(self) -> tuple[FeatureBlock, ...]:
        """The named blocks of the observation, in order."""
        blocks = []
        first = 0
        for name, rows, columns in self.native.blocks:
            blocks.append(FeatureBlock(name, first, rows, tuple(c[0] for c in columns)))
            first += rows * len(columns)
        return tuple(blocks)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """All features of the observation, in the order of `widen`."""
        offsets: dict[tuple[int, int, int], int] = {}
        at = 0
        for dtype in ("uint8", "int8", "int16", "float32"):
            size = np.dtype(dtype).itemsize
            at = -(-at // size) * size
            for b, (_, rows, columns) in enumerate(self.native.blocks):
                for row in range(rows):
                    for c, column in enumerate(columns):
                        if column[1] == dtype:
                            offsets[b, row, c] = at
                            at += size
        return tuple(
            Feature(
                f"{name}[{row}].{column}" if rows > 1 else f"{name}.{column}",
                dtype,
                offsets[b, row, c],
                divisor,
            )
            for b, (name, rows, columns) in enumerate(self.native.blocks)
            for row in range(rows)
            for c, (column, dtype, divisor) in enumerate(columns)
        )

    @cached_property
    def role_bytes(self) -> tuple[tuple[int, ...], ...]:
        """Bytes of an observation that mark each role. Empty: observations do not show the role.

        An observation has the first role with a nonzero marker byte, otherwise the last role.
        """
        if len(self.roles) == 1:
            return ((),)
        markers = self.native.role_features
        by_name = {feature.name: feature for feature in self.features}
        return tuple(
            tuple(at for name in names for at in by_name[name].bytes)
            for names in [*markers, *([[]] * (len(self.roles) - len(markers)) if markers else [])]
        )

    def role_of(self, obs: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
        """Return the roles [...] of observations [..., obs_bytes]."""
        if not self.role_bytes:
            raise ConfigError(f"{self.name} does not mark roles in observations")
        obs = np.asarray(obs)
        roles = np.full(obs.shape[:-1], len(self.roles) - 1, np.int8)
        for role in reversed(range(len(self.roles) - 1)):
            roles[obs[..., list(self.role_bytes[role])].any(-1)] = role
        return roles

    @cached_property
    def mirror(self) -> Mirror | None:
        """Mirror symmetry of the game, None if it declares none or a flag breaks it."""
        module = game_module(self.name, "symmetry")
        declared: Mirror | None = module.mirror(self) if module else None
        if declared is None:
            return None
        return declared.check(self.name, self.features, actions=self.actions, box=self.box)

    def widen(self, obs: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Turn observation bytes [..., obs_bytes] into numbers [..., len(features)]."""
        rows = np.ascontiguousarray(obs).reshape(-1, self.obs_bytes)
        wide = np.empty((len(rows), len(self.features)), np.float32)
        _native.widen(rows, wide, self.runs)
        return wide.reshape(*obs.shape[:-1], len(self.features))

    def pack(self, numbers: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Turn numbers [..., len(features)] into bytes [..., obs_bytes]; `widen` backwards."""
        given, count = np.asarray(numbers), len(self.features)
        if given.shape[-1:] != (count,):
            raise ConfigError(f"observations have shape {given.shape}, need (..., {count})")
        rows = pack_rows(self.features, self.obs_bytes, given.reshape(-1, count))
        return rows.reshape(*given.shape[:-1], self.obs_bytes)

    def env_actions(self, action: npt.ArrayLike) -> npt.NDArray[Any]:
        """Convert a policy's actions to those of the environment; the same for built-in games."""
        return np.asarray(action)

    def env_masks(self, given: npt.ArrayLike) -> npt.NDArray[Any]:
        """Convert masks of the environment to masks of actions; the same for built-in games."""
        return np.asarray(given)

    def choices_in(self, block: str) -> int:
        """Number of choices in a block of the environment's observations; 0: it is as flattened."""
        return 0

    def env_block(self, block: str, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert the choices of a block [B, choices] to its numbers; the same without choices."""
        return given

    @cached_property
    def runs(self) -> list[Run]:
        """Features as runs for the native core."""
        return runs_of(self.features)

    def weights(self, rewards: Rewards | None) -> list[float]:
        """Return the flat weights [parts, roles] from {part: weight, or one weight per role}."""
        if rewards is None:
            return list(self.native.default_weights)
        check_type("rewards", rewards, Mapping, "weight by name")
        flat = np.zeros((len(self.parts), len(self.roles)), np.float32)
        for part, weight in rewards.items():
            if part not in self.parts:
                raise ConfigError(f"no reward part {part!r}{suggestion(part, self.parts)}")
            row = np.asarray(weight, np.float32)
            if row.shape not in ((), (len(self.roles),)):
                raise ConfigError(f"reward {part!r} needs one weight or {len(self.roles)}")
            if not np.isfinite(row).all():
                raise ConfigError(f"reward {part!r} has a weight that is not finite")
            flat[self.parts.index(part)] = row
        return [float(w) for w in flat.ravel()]

    def bot(self, name: str) -> int:
        """Return the index of a bot by name."""
        if not isinstance(name, str):
            raise ConfigError(f"{self.name} has no bot {short_repr(name)}; bots have names")
        if name not in self.bots:
            raise ConfigError(f"{self.name} has no bot {name!r}{suggestion(name, self.bots)}")
        return self.bots.index(self.bots.called(name))

    def bot_called(self, text: str) -> str | None:
        """Return the bot of NAME or bot:NAME, None if there is none."""
        name = text.removeprefix(BOT_PREFIX) if isinstance(text, str) else None
        return name if name in self.bots else None


def rules_for(game: str | Rules, config: Mapping[str, Any] | None) -> Rules:
    """Return the rules of a game given by name, or the rules themselves."""
    if isinstance(game, str):
        trusted.allow(game)  # the caller names it; names in files were checked before
        return Rules(game, config)
    if config:
        raise ConfigError("give a configuration or Rules, not both; Rules.changed makes variants")
    if not hasattr(game, "declares_flags"):
        raise ConfigError(f"game: {short_repr(game)} is neither a name nor Rules")
    return game


def is_python_file(name: str) -> bool:
    """Whether NAME.py exists."""
    try:
        return Path(f"{name}.py").is_file()
    except (OSError, ValueError):  # not a valid file name
        return False


def make_field(row: Any) -> Field:
    """Turn the native core's tuple into a Field."""
    name, dtype, count, low, high, words, text, live, value = row
    named = tuple(words.split("|")) if words else ()
    return Field(name, dtype, count, low, high, named, text, live, tuple(value))


def game_names() -> list[str]:
    """Return the playable games, without those of tests."""
    return [
        name
        for name in _native.game_names()
        if name not in TEST_GAMES and not name.endswith(SUFFIX)
    ]


def describe_illegal_action(rules: Rules, refused: tuple[Any, ...]) -> str:
    """Return an error text with the illegal action and the legal ones."""
    game, row, seat, action, component, value, legal = refused
    where = f"{rules.name} game {game}, seat {seat} (row {row})"
    if component >= 0:
        return f"{where}: action component {component} is {value}; give finite numbers"
    known = 0 <= action < rules.actions
    called = f" ({rules.action_name(action)})" if known else ""
    options = ", ".join(f"{a} ({rules.action_name(a)})" for a in legal)
    return f"{where}: action {action}{called} is not legal; legal: {options}"
