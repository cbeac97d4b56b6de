"""Resolve names that users type: runs, checkpoints, saved policies, bots. Imports no torch.

    captain, bot:captain    a bot of the game, or of the one game that has such a bot
    skull_king:captain      a bot of that game
    champion                the champion of the game, skull_king:champion where it is not known
    latest                  the newest run that a person started
    NAME, runs/NAME         a run, by name, prefix of the name, or folder
    NAME/40, NAME/past/12   a checkpoint of a run, a snapshot of its league
    NAME/imitated           the policy that a run learned by imitation
    PATH                    the folder of a run, of a checkpoint or of a saved policy; a snapshot
    PATH.zip                a model of Stable-Baselines3, which does not say its game
    ...@greedy, @64, ...    the same policy in a style of play, see `store/styles.py`

If the game is known, a bot or champion takes precedence over a run of the same name, otherwise over
a prefix of a run's name. A run takes precedence over another folder of that name. ./NAME and
bot:NAME are unambiguous.
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
from sparring.pygames.registry import is_python_game
from sparring.store.archive_index import ArchiveIndex
from sparring.store.champions import (
    CHAMPION,
    champion_games,
    champion_of,
    named_champion,
)
from sparring.store.folders import (
    CHECKPOINTS,
    CONFIG,
    IMITATED_POLICY,
    LATEST,
    MANIFEST,
    RUNS,
    SB3_MODEL,
    SNAPSHOT,
    is_file,
    is_folder,
    join_names,
    latest_run,
    sorted_runs,
)
from sparring.store.styles import AS_IS, EXAMPLES, Style, is_style, read_styles

PAST = "past"
"""Marks a snapshot of a run's league: latest/past/12."""
MIN_SIMILARITY = 0.7
"""Similarity from which a name is suggested."""
MAX_GUESSES = 3


@dataclass(frozen=True)
class LookupResult:
    """A resolved name: a bot or a path."""

    word: str
    """Text as typed, without its style."""
    style: Style = AS_IS
    """How a policy plays, from what follows its name: @greedy, @64."""
    bot: str = ""
    games: tuple[str, ...] = ()
    """Games that have the bot."""
    path: Path | None = None
    """Run, checkpoint, folder or file of a policy."""

    @property
    def tells_game(self) -> bool:
        """Whether this is a policy that says which game it plays."""
        return self.path is not None and not is_sb3_model(self.path)


def find_player(text: str, rules: Rules | None = None, *, also: Sequence[str] = ()) -> LookupResult:
    """Resolve a player; an error suggests similar names.

    rules: the game, if it is known.
    also: other texts that the caller accepts, as suggestions.
    """
    word, style = split_style(text)
    if game := named_champion(word, rules):
        style = style or style_of_champion(f"{game}:{CHAMPION}")
        return LookupResult(word, style, path=champion_of(game).weights)
    name, at, unknown = word.rpartition("@")
    if at and named_champion(name, rules):
        raise ConfigError(f"{word}: @{unknown} is unknown{suggestion(unknown, EXAMPLES)}")
    bot, games = find_bot(word, rules)
    is_run = not rules and is_exact(word)
    if bot and not is_run:
        if style:
            raise ConfigError(
                f"{text}: {word} is a bot, without a network to sample from or to search with; "
                f"write {word}"
            )
        return LookupResult(word, bot=bot, games=games)
    path = locate(word)
    if path is None:
        raise unknown_name_error(word, rules=rules, also=also)
    return LookupResult(word, style, path=path)


def style_of_champion(word: str) -> Style:
    """Return how a champion plays where its name has no style; `AS_IS` for other policies."""
    game = named_champion(word)
    plays = champion_of(game).plays if game else ""
    return read_styles(word, [plays] if plays else [])


def find_bot(word: str, rules: Rules | None = None) -> tuple[str, tuple[str, ...]]:
    """Return a bot and the games that have it; ("", ()) if the text names no bot."""
    game, _, name = word.rpartition(":")
    if game in game_names() or is_python_game(game):
        game = Rules(game).name
        if rules and rules.name != game:
            raise ConfigError(f"{word} is a player of {game}; the game here is {rules.name}")
        (rules or Rules(game)).bot(name)  # raises for an unknown bot
        return name, (game,)
    if rules:
        bot = rules.bot_called(word) or (RANDOM if word == RANDOM and not rules.bots else "")
        return bot, (rules.name,) if bot else ()
    name = word.removeprefix(BOT_PREFIX)
    games = tuple(game for game in game_names() if name in Rules(game).bots)
    return (name, games) if games else ("", ())


def split_style(text: str) -> tuple[str, Style]:
    """Split NAME@greedy or NAME@sampled@64. Other @ belong to the name, as in existing names."""
    name, words = text, list[str]()
    while "@" in name and not is_exact(name):
        rest, _, word = name.rpartition("@")
        if not is_style(word):
            break
        name = rest
        words.append(word)
    return name, read_styles(text, words)


def is_exact(name: str) -> bool:
    """Whether a policy has exactly this name or path."""
    try:
        return any(map(has_policy, (Path(name), RUNS / name)))
    except (OSError, ValueError):  # a name that is too long, or with a zero byte
        return False


def find_run(text: str | Path, root: Path = RUNS) -> Path:
    """Return the folder of a run; an error suggests similar names."""
    place = locate(text, root)
    if place is None:
        raise unknown_name_error(str(text), what="run", root=root)
    run = run_of(place)
    if run != place.resolve():
        raise ConfigError(f"{text} is part of the run {run.name}; name the run")
    return place


def find_policy(text: str | Path) -> Path:
    """Return the path of a run, checkpoint, snapshot or saved policy."""
    place = locate(text)
    if place is None:
        raise unknown_name_error(str(text), what="policy")
    return place


def locate(text: str | Path, root: Path = RUNS) -> Path | None:
    """Return the folder or file of a name, None if it does not exist.

    text: as typed; a `Path` is not looked up as the name of a run.
    root: folder of runs.
    """
    try:
        is_path = isinstance(text, Path) or text.startswith((".", "/"))
        if not is_path and (champion := named_champion(str(text))):
            return champion_of(champion).weights
        return _locate(Path(text), root, is_path=is_path)
    except ConfigError:
        raise
    except (OSError, ValueError):  # a name that is too long, or with a zero byte
        return None


def _locate(path: Path, root: Path, *, is_path: bool) -> Path | None:
    candidates = [path] if is_path else [path, root / path]
    found = [candidate for candidate in candidates if has_policy(candidate)]
    if len(found) > 1 and not found[0].samefile(found[1]):
        raise ConfigError(f"{path} may be ./{found[0]} or {found[1]}; write one of these")
    if found:
        return found[0]
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
    return find_run_by_prefix(path.name, within) or next(filter(is_folder, candidates), None)


def checkpoint_of(run: Path, number: int) -> Path:
    """Return a checkpoint of a run by number; an error lists the existing ones."""
    folder = run / CHECKPOINTS / f"{number:08d}"
    if is_folder(folder):
        return folder
    raise ConfigError(f"{run} has no checkpoint {number}; there are: {list_checkpoints(run)}")


def list_checkpoints(run: Path) -> str:
    """Join the numbers of a run's checkpoints, the newest first."""
    folders = (run / CHECKPOINTS).glob("[0-9]*")
    numbers = sorted(int(folder.name) for folder in folders if folder.name.isdecimal())
    return join_names([str(number) for number in reversed(numbers)]) or "none"


def find_run_by_prefix(name: str, within: Path) -> Path | None:
    """Return the run with a name or prefix; raises if several match."""
    if name == LATEST:
        return latest_run(within)
    found = [run for run in sorted_runs(within) if name and run.name.startswith(name)]
    exact = [run for run in found if run.name == name]
    if len(exact or found) > 1:
        names = [run.name for run in reversed(found)]
        raise ConfigError(f"{len(found)} runs begin with {name!r}: {join_names(names)}")
    return next(iter(exact or found), None)


def has_policy(place: Path) -> bool:
    """Whether a path is a run, a checkpoint, a saved policy, a snapshot or a model of SB3."""
    if is_folder(place):
        return any((place / name).exists() for name in (CONFIG, CHECKPOINTS, MANIFEST))
    return place.suffix in (SNAPSHOT, SB3_MODEL) and is_file(place)


def is_sb3_model(place: Path) -> bool:
    """Whether a path is a file of Stable-Baselines3."""
    return place.suffix == SB3_MODEL and is_file(place)


def run_of(path: Path) -> Path:
    """Return the run of a checkpoint or snapshot, otherwise the resolved path."""
    path = path.resolve()
    runs = [parent for parent in path.parents[:2] if (parent / CONFIG).is_file()]
    return next((run for run in runs if (run / CHECKPOINTS).is_dir()), path)


def snapshot_file(run: Path, number: int) -> Path:
    """Return the file of a snapshot by number; an error lists the nearest ones."""
    index = ArchiveIndex(run)
    entry = index.by_number(number)
    if entry and index.file(entry.hash).is_file():
        return index.file(entry.hash)
    numbers = [each.number for each in index.entries() if index.file(each.hash).is_file()]
    if not numbers:
        raise ConfigError(f"{run} has no snapshots; it was trained without a league")
    near = sorted(sorted(numbers, key=lambda each: abs(each - number))[:3])
    problem = "was removed" if entry else "does not exist"
    nearest = ", ".join(map(str, near))
    raise ConfigError(
        f"snapshot {number} of {run} {problem}; nearest of {len(numbers)} snapshots: {nearest}"
    )


def unknown_name_error(
    word: str,
    *,
    what: str = "player",
    rules: Rules | None = None,
    also: Sequence[str] = (),
    root: Path = RUNS,
) -> ConfigError:
    """Return an error for an unknown name, with similar names.

    what: expected kind: player, policy, run, or game or run.
    """
    name, at, style = word.rpartition("@")
    if at and what == "player" and (find_bot(name, rules)[0] or locate(name)):
        return ConfigError(f"{word}: @{style} is unknown{suggestion(style, EXAMPLES)}")
    path = Path(word)
    if word == CHAMPION:
        return no_champion_error(rules)
    if error := unknown_checkpoint_error(word, root):
        return error
    within = path.parent if len(path.parts) > 1 else root
    runs = [run.name for run in reversed(sorted_runs(within))]
    message = f"no {what} {word!r}{f' for {rules.name}' if rules else ''}"
    if what.startswith("game") and word not in game_names() and (why := not_built_hint(word)):
        return ConfigError(why)
    if word in game_names():
        message = f"{word} is a game; name a {what}"
        if what == "player":
            message += f": {word}:{Rules(word).bots[-1]}, or a run"
    elif what != "player" and (owners := find_bot(word)[1]):
        message = f"{word} is a bot of {', '.join(owners)}; name a {what}"
    bots = bots_of(rules) if what == "player" else {}
    games = game_names() if what.startswith("game") else []
    close = similar_names(
        path.name.removeprefix(BOT_PREFIX), dict.fromkeys([*runs, *games, *also], "") | bots
    )
    if close:
        return ConfigError(f"{message}; did you mean {' or '.join(close)}?")
    existing = f"{within} holds no run, `sparring train` makes one"
    if runs:
        note = " (commands made them all)" if path.name == LATEST else ""
        existing = f"runs in {within}{note}: {join_names(runs)}"
    if games:
        existing = f"games: {', '.join(games)}; {existing}"
    elif rules and bots:
        existing = f"bots of {rules.name}: {', '.join(bots)}; {existing}"
    elif bots:
        existing += "; the bots of a game: sparring games GAME"
    return ConfigError(f"{message}; {existing}")


def no_champion_error(rules: Rules | None) -> ConfigError:
    known = ", ".join(f"{game}:{CHAMPION}" for game in champion_games()) or "none"
    if rules:
        return ConfigError(f"{rules.name} has no champion; there are: {known}")
    return ConfigError(f"{CHAMPION}: name its game, as in GAME:{CHAMPION}; there are: {known}")


def unknown_checkpoint_error(word: str, root: Path) -> ConfigError | None:
    """Return an error for an unknown checkpoint of a run (NAME/best), None for other names."""
    named, _, part = word.rpartition("/")
    run = locate(named, root) if named and part else None
    if run is None or not is_folder(run / CHECKPOINTS):
        return None
    return ConfigError(
        f"{run} has no checkpoint {part!r}; there are: {list_checkpoints(run)}; "
        f"{named} alone means its best one"
    )


def bots_of(rules: Rules | None) -> dict[str, str]:
    """Return the bots of a game, or of all games with a note of their games."""
    if rules:
        return dict.fromkeys(rules.bots or [RANDOM], "")
    games_of: dict[str, list[str]] = {}
    for game in game_names():
        for bot in Rules(game).bots:
            games_of.setdefault(bot, []).append(game)
    return {bot: f" (a bot of {join_names(games, 2)})" for bot, games in games_of.items()}


def similar_names(word: str, names: dict[str, str]) -> list[str]:
    """Return the most similar names, each with its note."""

    def score(name: str) -> float:
        return max(
            similarity(word, name),
            similarity(word, name[: len(word)]),
            MIN_SIMILARITY * (word in name),
        )

    if not word:
        return []
    close = sorted(names, key=score, reverse=True)[:MAX_GUESSES]
    best = [name for name in close if score(name) >= MIN_SIMILARITY]
    return [f"{name!r}{names[name]}" for name in best]


def similarity(one: str, other: str) -> float:
    return SequenceMatcher(None, one.lower(), other.lower()).ratio()


def common_game(found: Iterable[LookupResult]) -> str:
    """Return the only game that has all these bots; an error names --game."""
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
