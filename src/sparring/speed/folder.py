"""The folder of a profile."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

from sparring.draw.charts.flame import draw_flame
from sparring.errors import ConfigError
from sparring.speed.functions import flame, write_stacks
from sparring.speed.report import FORMAT, Profile, markdown, pace_line, plain
from sparring.store.files import remove_folder, temp_name
from sparring.targets import check_folder
from sparring.training.records.run import finite, word_of

REPORT, FLAME = "report.md", "flame.html"
SPEEDSCOPE, NUMBERS = "profile.speedscope.json", "profile.json"


def choose_folder(asked: str, target: str) -> Path:
    """Return where a profile is to lie; one that is there already is only replaced if asked for."""
    if asked:
        folder = Path(asked)
        if folder.exists() and not (folder.is_dir() and may_replace(folder)):
            raise ConfigError(
                f"--out {asked}: there is something else that is not a profile; choose another name"
            )
    else:
        name = f"profile-{word_of(target) or 'training'}"
        tries = itertools.chain([name], (f"{name}-{again}" for again in itertools.count(2)))
        folder = next(Path(one) for one in tries if not Path(one).exists())
    return check_folder(folder, "--out")


def may_replace(folder: Path) -> bool:
    """Whether a folder is empty, or a profile and nothing else."""
    names = {path.name for path in folder.iterdir()}
    if not names:
        return True
    if names - {REPORT, FLAME, SPEEDSCOPE, NUMBERS}:
        return False
    try:
        return bool(json.loads((folder / NUMBERS).read_text()).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError):
        return False


def write_folder(folder: Path, profile: Profile) -> list[Path]:
    """Write all files; the folder is there whole or not at all."""
    evidence = profile.evidence
    everything = evidence.everything
    title = f"Profile of {profile.target}"
    facts = [pace_line(evidence), f"{everything.samples:,} samples", str(profile.machine["date"])]
    texts = {
        REPORT: markdown(profile),
        FLAME: draw_flame(flame(evidence), title, facts),
        SPEEDSCOPE: as_json(write_stacks(everything, title, evidence.processes)),
        NUMBERS: as_json(plain(profile)),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = folder.with_name(temp_name(folder.name))
    try:
        made.mkdir()
        for name, text in texts.items():
            (made / name).write_text(text, "utf-8")
        if folder.exists():
            remove_folder(folder)
        made.rename(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return [folder / name for name in texts]


def as_json(value: object) -> str:
    return json.dumps(finite(value), allow_nan=False, separators=(",", ":")) + "\n"
