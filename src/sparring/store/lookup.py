"""Who and what a user means by a word: runs, checkpoints, saved policies, bots. Loads no torch.

    captain, bot:captain    a bot of the game, or of the one game that has such a bot
    skull_king:captain      a bot of that game
    latest                  the run that a person began last
    NAME, runs/NAME         a run, by its name, by the beginning of it, or by its folder
    NAME/40, NAME/past/12   a checkpoint of a run, a snapshot of its league
    NAME/imitated           the policy that a run imitated before it played
    PATH                    the folder of a run, of a checkpoint or of a saved policy; a snapshot
    ...@greedy, @sampled    the same policy, always with its most probable action, or drawing

Where the game is known a bot goes before a run of the same name, elsewhere before the beginning of
one. A run goes before a folder of its name that is none. ./NAME and bot:NAME say which is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from sparring.errors import ConfigError, suggestion
from sparring.games.rules import BOT_PREFIX, Rules, game_names
from sparring.games.sources import not_built_hint
from sparring.pools.custom.cache import RANDOM
from sparring.store.archive_index import ArchiveIndex
from sparring.store.folders import (
    CHECKPOINTS,
    CONFIG,
    IMITATED_POLICY,
    LATEST,
    MANIFEST,
    RUNS,
    SNAPSHOT,
    is_file,
    is_folder,
    join_names,
    latest_run,
    sorted_runs,
)

PAST = "past"
"""Between a run and a number, it means a snapshot of the run's league: latest/past/12."""
STYLES = {"greedy": True, "sampled": False}
MIN_SIMILARITY = 0.7
"""How similar a word has to be to the name that may have been meant."""
MAX_GUESSES = 3


@dataclass(frozen=True)
class LookupResult:
    """What a word means: a bot, or what lies on the disk."""

    word: str
    """As typed, without its style."""
    greedy: bool | None = None
    """Whether it always takes its most probable action, or always draws; None: as is usual."""
    bot: str = ""
    games: tuple[str, ...] = ()
    """Of a bot: those that have it."""
    place: Path | None = None
    """Of a policy: its run, checkpoint, folder or file."""


def find_player(text: str, rules: Rules | None = None, *, also: Sequence[str] = ()) -> LookupResult:
    """Return the player that a word means; an error names who may have been meant.

    rules: the game, where it is known.
    also: words that mean something else here, for the error.
    """
    word, greedy = split_style(text)
    bot, games = find_bot(word, rules)
    is_name = not rules and any(map(has_policy, (Path(word), RUNS / word)))
    if bot and not is_name:
        if greedy is not None:
            raise ConfigError(f"{text}: a bot plays as it is written; write {word}")
        return LookupResult(word, bot=bot, games=games)
    place = locate(word)
    if place is None:
        raise unknown_name_error(word, rules=rules, also=also)
    return LookupResult(word, greedy, place=place)


def find_bot(word: str, rules: Rules | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the bot that a word means and the games that have it; "" and none for other words."""
    game, _, name = word.rpartition(":")
    if game in game_names():
        if rules and rules.name != game:
            raise ConfigError(f"{word} is a player of {game}, and this is {rules.name}")
        own = rules or Rules(game)
        own.bot(name)  # refuses one that it does not have
        return name, (game,)
    if rules:
        bot = rules.bot_called(word) or (RANDOM if word == RANDOM and not rules.bots else "")
        return bot, (rules.name,) if bot else ()
    name = word.removeprefix(BOT_PREFIX)
    games = tuple(game for game in game_names() if name in Rules(game).bots)
    return (name, games) if games else ("", ())


def split_style(word: str) -> tuple[str, bool | None]:
    """Split NAME@greedy; a name may have other @ in it."""
    name, at, style = word.rpartition("@")
    return (name, STYLES[style]) if at and style in STYLES else (word, None)


def find_run(text: str | Path, root: Path = RUNS) -> Path:
    """Return the folder of the run that is meant; an error names what there is instead."""
    place = locate(text, root)
    if place is None:
        raise unknown_name_error(str(text), what="run", root=root)
    run = run_of(place)
    if run != place.resolve():
        raise ConfigError(f"{text} is a part of the run {run.name}; give the run itself")
    return place


def find_policy(text: str | Path) -> Path:
    """Return the run, checkpoint, snapshot or saved policy that is meant, or say who is not."""
    place = locate(text)
    if place is None:
        raise unknown_name_error(str(text), what="policy")
    return place


def locate(text: str | Path, root: Path = RUNS) -> Path | None:
    """Return the folder or the file of what is meant, None if nothing of that name is there.

    text: a word as it was typed; a `Path` is nothing but a path.
    root: where runs are looked for by name.
    """
    try:
        is_path = isinstance(text, Path) or text.startswith((".", "/"))
        return _locate(Path(text), root, is_path=is_path)
    except ConfigError:
        raise
    except (OSError, ValueError):  # a name that is too long, or with a zero byte
        return None


def _locate(path: Path, root: Path, *, is_path: bool) -> Path | None:
    looked_at = [path] if is_path else [path, root / path]
    places = [place for place in looked_at if has_policy(place)]
    if len(places) > 1 and not places[0].samefile(places[1]):
        raise ConfigError(f"{path} may be ./{places[0]} or {places[1]}; write one of these")
    if places:
        return places[0]
    if path.name.isdecimal() and len(path.parts) > 1:
        is_past = path.parent.name == PAST and len(path.parts) > 2
        run = _locate(path.parents[is_past], root, is_path=is_path)
        if run is None:
            return None
        if is_past:
            return snapshot_file(run, int(path.name))
        return checkpoint_of(run, int(path.name))
    if path.name == IMITATED_POLICY and len(path.parts) > 1:
        run = _locate(path.parent, root, is_path=is_path)
        return run / IMITATED_POLICY if run and has_policy(run / IMITATED_POLICY) else None
    within = path.parent if is_path or len(path.parts) > 1 else root
    return find_run_by_prefix(path.name, within) or next(filter(is_folder, looked_at), None)


def checkpoint_of(run: Path, number: int) -> Path:
    """Return a checkpoint of a run by its number; an error names those that are there."""
    numbered = run / CHECKPOINTS / f"{number:08d}"
    if is_folder(numbered):
        return numbered
    raise ConfigError(f"{run} has no checkpoint {number}; there are: {list_checkpoints(run)}")


def list_checkpoints(run: Path) -> str:
    """List the checkpoints of a run by their numbers, the newest first."""
    folders = (run / CHECKPOINTS).glob("[0-9]*")
    there = sorted(int(folder.name) for folder in folders if folder.name.isdecimal())
    return join_names([str(number) for number in reversed(there)]) or "none"


def find_run_by_prefix(name: str, within: Path) -> Path | None:
    """Return the run that a name or its beginning means; several are refused."""
    if name == LATEST:
        return latest_run(within)
    found = [run for run in sorted_runs(within) if name and run.name.startswith(name)]
    exact = [run for run in found if run.name == name]
    if len(exact or found) > 1:
        names = [run.name for run in reversed(found)]
        raise ConfigError(f"{len(found)} runs begin with {name!r}: {join_names(names)}")
    return next(iter(exact or found), None)


def has_policy(place: Path) -> bool:
    """Whether a path is a run, a checkpoint, a saved policy or a snapshot."""
    if is_folder(place):
        return any((place / name).exists() for name in (CONFIG, CHECKPOINTS, MANIFEST))
    return place.suffix == SNAPSHOT and is_file(place)


def run_of(path: Path) -> Path:
    """Return the run that a checkpoint or a snapshot belongs to, or what was given."""
    path = path.resolve()
    runs = [near for near in path.parents[:2] if (near / CONFIG).is_file()]
    return next((run for run in runs if (run / CHECKPOINTS).is_dir()), path)


def snapshot_file(run: Path, number: int) -> Path:
    """Return where a snapshot of a run's league lies; an error names those that are there."""
    index = ArchiveIndex(run)
    entry = index.numbered(number)
    if entry and index.file(entry.hash).is_file():
        return index.file(entry.hash)
    there = [each.number for each in index.entries() if index.file(each.hash).is_file()]
    if not there:
        raise ConfigError(f"{run} has no snapshots; it was trained without a league")
    near = sorted(sorted(there, key=lambda each: abs(each - number))[:3])
    gone = "is not there any more" if entry else "does not exist"
    listed = ", ".join(map(str, near))
    raise ConfigError(f"snapshot {number} of {run} {gone}; of {len(there)}, near it: {listed}")


def unknown_name_error(
    word: str,
    *,
    what: str = "player",
    rules: Rules | None = None,
    also: Sequence[str] = (),
    root: Path = RUNS,
) -> ConfigError:
    """Say that nobody is called so, and who may have been meant.

    what: the kind of thing that was wanted: a player, a policy, a run, a game or run.
    """
    name, at, style = word.rpartition("@")
    if at and what == "player" and (find_bot(name, rules)[0] or locate(name)):
        return ConfigError(f"{word}: @{style} is unknown{suggestion(style, STYLES)}")
    path = Path(word)
    if error := unknown_checkpoint_error(word, root):
        return error
    within = path.parent if len(path.parts) > 1 else root
    runs = [run.name for run in reversed(sorted_runs(within))]
    told = f"no {what} {word!r}{f' for {rules.name}' if rules else ''}"
    if what.startswith("game") and word not in game_names() and (why := not_built_hint(word)):
        return ConfigError(why)
    if word in game_names():
        told = f"{word} is a game; name a {what}"
        if what == "player":
            told += f": {word}:{Rules(word).bots[-1]}, or a run"
    elif what != "player" and (owners := find_bot(word)[1]):
        told = f"{word} is a bot of {' and '.join(owners)}; name a {what}"
    bots = bots_of(rules) if what == "player" else {}
    games = game_names() if what.startswith("game") else []
    close = similar_names(
        path.name.removeprefix(BOT_PREFIX), dict.fromkeys([*runs, *games, *also], "") | bots
    )
    if close:
        return ConfigError(f"{told}; did you mean {' or '.join(close)}?")
    there = f"{within} holds no run, `sparring train` makes one"
    if runs:
        own = " (commands made them all)" if path.name == LATEST else ""
        there = f"runs in {within}{own}: {join_names(runs)}"
    if games:
        there = f"games: {', '.join(games)}; {there}"
    elif rules and bots:
        there = f"bots of {rules.name}: {', '.join(bots)}; {there}"
    elif bots:
        there += "; the bots of a game: sparring games GAME"
    return ConfigError(f"{told}; {there}")


def unknown_checkpoint_error(word: str, root: Path) -> ConfigError | None:
    """Say which checkpoints a run has whose part nobody knows: NAME/best, NAME/last.ckpt."""
    named, _, part = word.rpartition("/")
    run = locate(named, root) if named and part else None
    if run is None or not is_folder(run / CHECKPOINTS):
        return None
    return ConfigError(
        f"{run} has no checkpoint {part!r}; there are: {list_checkpoints(run)}; "
        f"{named} alone means its best one"
    )


def bots_of(rules: Rules | None) -> dict[str, str]:
    """Return the bots of a game, or of all games with whose they are."""
    if rules:
        return dict.fromkeys(rules.bots or [RANDOM], "")
    whose: dict[str, list[str]] = {}
    for game in game_names():
        for bot in Rules(game).bots:
            whose.setdefault(bot, []).append(game)
    return {bot: f" (a bot of {join_names(games, 2)})" for bot, games in whose.items()}


def similar_names(word: str, names: dict[str, str]) -> list[str]:
    """Return the names that are most like a word, each with what is said about it."""

    def likeness(name: str) -> float:
        return max(
            similarity(word, name),
            similarity(word, name[: len(word)]),
            MIN_SIMILARITY * (word in name),
        )

    if not word:
        return []
    close = sorted(names, key=likeness, reverse=True)[:MAX_GUESSES]
    best = [name for name in close if likeness(name) >= MIN_SIMILARITY]
    return [f"{name!r}{names[name]}" for name in best]


def similarity(one: str, other: str) -> float:
    """How similar two words are, 0 to 1."""
    return SequenceMatcher(None, one.lower(), other.lower()).ratio()


def common_game(found: Iterable[LookupResult]) -> str:
    """Return the only game that has all these bots; an error says what to add."""
    bots = list(found)
    shared = [game for game in game_names() if all(game in one.games for one in bots)]
    if len(shared) == 1:
        return shared[0]
    if not shared:
        each = ", ".join(f"{one.bot} of {' and '.join(one.games)}" for one in bots)
        raise ConfigError(f"these bots play no game together: {each}")
    names = ", ".join(dict.fromkeys(one.bot for one in bots))
    raise ConfigError(
        f"{len(shared)} games have {names}: {', '.join(shared)}; add --game {shared[0]} or another"
    )
