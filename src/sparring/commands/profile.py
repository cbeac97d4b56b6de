"""`sparring profile`: where a training's time goes, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from sparring.commands.shared.printing import (
    ProgressBar,
    echo,
    make_console,
    make_table,
    print_table,
)
from sparring.commands.shared.stopping import interruptible
from sparring.config.tools import ProfileConfig
from sparring.draw.text_charts import AsciiRenderable, bar, is_ascii_only, shorten_middle
from sparring.errors import ConfigError
from sparring.machine import machine_facts
from sparring.speed.looking import Seen, Wish, look_at_custom, look_at_run
from sparring.speed.report import (
    NUMBERS,
    Profile,
    by_size,
    choose_folder,
    listed,
    looked_line,
    pace_line,
    write_folder,
)
from sparring.speed.sampler import CannotLookError, find_spy
from sparring.speed.target import Target, find_target
from sparring.speed.timer import TimerProcess
from sparring.speed.verdicts.case import Verdict
from sparring.speed.verdicts.judge import judge

RATE, NATIVE_RATE, GENTLE_RATE = 100, 25, 20
"""Samples per second: of Python, of native code, whose stacks take milliseconds to read, and of a
run that is going on, which is not to notice."""
STAGES = ("starting", "warming up", "watching", "sampling", "recording", "reading", "judging")
SHOWN = 10
"""Functions that are shown; the report has more."""
NAME_CELLS, BAR_CELLS = 56, 30


def run(config: ProfileConfig) -> int:
    """Look, judge, write, and say what was found."""
    target = find_target(config)
    folder = choose_folder(config.out, target.name)
    with interruptible():
        with ProgressBar(f"profile {target.name}", len(STAGES)) as steps:
            seen = look(target, config, steps)
            steps.next("judging")
            verdicts = judged(seen, try_out=config.try_out)
        profile = Profile(target.name, seen, verdicts, machine_facts())
        files = write_folder(folder, profile)
    if config.json:
        print((folder / NUMBERS).read_text(), end="")
    else:
        show(profile, files)
    return 0


def look(target: Target, config: ProfileConfig, steps: ProgressBar) -> Seen:
    ours = target.run is None
    native = config.native == "on" or (config.native == "auto" and ours)
    deep = native and find_spy() is not None
    rate = config.rate or (NATIVE_RATE if deep else RATE if ours else GENTLE_RATE)
    wish = Wish(config.seconds, rate, native, pausing=ours or native, updates=config.updates)

    def tell(doing: str) -> None:
        steps.reach(STAGES.index(doing.partition(":")[0]) + 1, doing)

    if target.run is None:
        return look_at_custom(target.config, wish, tell)
    try:
        return look_at_run(target.run, target.config, target.pid, wish, tell)
    except CannotLookError as wrong:
        raise ConfigError(f"{target.run} is going on and cannot be looked at: {wrong}") from wrong


def judged(seen: Seen, *, try_out: bool) -> list[Verdict]:
    """Say what to do; beside a run that is going on nothing is timed: each would disturb it."""
    if not try_out or seen.evidence.attached:
        return judge(seen.evidence)
    with TimerProcess() as timer:
        return judge(seen.evidence, timer)


def show(profile: Profile, files: Sequence[Path]) -> None:
    out = make_console()
    for verdict in profile.verdicts:
        echo(f"{verdict.cause}: {verdict.text}")
        if verdict.do:
            echo(f"  do: {verdict.do}")
    print()
    if profile.evidence.path:
        echo(profile.evidence.path)
    echo(f"{pace_line(profile.evidence)} {looked_line(profile.seen)}")
    print()
    for name, share in by_size(profile.evidence.phases):
        line = Text.assemble(f"  {name:16}", bar(share, BAR_CELLS, style="cyan"), f" {share:6.1%}")
        out.print(AsciiRenderable(line) if is_ascii_only(out) else line)
    rows = listed(profile.functions, "own", SHOWN)
    if rows:
        print()
        table = make_table(("function", "where", "own", "total"), numbers=("own", "total"))
        for one in rows:
            where = f"{one.place}:{one.line}" if one.line else one.place
            name = shorten_middle(one.name, NAME_CELLS)
            table.add_row(name, where, f"{one.own:.1%}", f"{one.total:.1%}")
        print_table(table)
    print()
    for text in profile.evidence.blind:
        echo(f"not seen: {text}")
    echo("wrote: " + ", ".join(map(str, files)))
