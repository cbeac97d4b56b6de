"""`sparring profile`: where the time of a training goes, and how to make it faster."""

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
from sparring.draw.text_charts import AsciiRenderable, bar, is_ascii_only
from sparring.errors import ConfigError
from sparring.machine import machine_info
from sparring.speed.profiling import (
    ProfileResult,
    SamplingOptions,
    profile_new_training,
    profile_run,
)
from sparring.speed.report import (
    FUNCTION_HEADS,
    NUMBERS,
    Profile,
    by_size,
    choose_folder,
    function_cells,
    sampling_line,
    speed_line,
    top_functions,
    write_folder,
)
from sparring.speed.sampling import SamplerError, find_py_spy
from sparring.speed.target import ProfileTarget, find_profile_target
from sparring.speed.timer import TimerProcess
from sparring.speed.verdicts.judge import judge
from sparring.speed.verdicts.profiled_run import Verdict

RATE, NATIVE_RATE, GENTLE_RATE = 100, 25, 20
"""Samples per second: of Python code; of native code, whose stacks take milliseconds to read; of a
run in progress, which should not slow down."""
STAGES = ("starting", "warming up", "watching", "sampling", "recording", "reading", "judging")
SHOWN = 10
"""Functions in the printed table; the report has more."""
NAME_CELLS, BAR_CELLS = 56, 30


def run(config: ProfileConfig) -> int:
    """Profile, find verdicts, write the files, and print the result."""
    target = find_profile_target(config)
    folder = choose_folder(config.out, target.name)
    with interruptible():
        with ProgressBar(f"profile {target.name}", len(STAGES)) as steps:
            result = profile_target(target, config, steps)
            steps.next("judging")
            verdicts = find_verdicts(result, try_out=config.try_out)
        profile = Profile(target.name, result, verdicts, machine_info())
        files = write_folder(folder, profile)
    if config.json:
        print((folder / NUMBERS).read_text(), end="")
    else:
        show(profile, files)
    return 0


def profile_target(
    target: ProfileTarget, config: ProfileConfig, steps: ProgressBar
) -> ProfileResult:
    is_new = target.run is None
    native = config.native == "on" or (config.native == "auto" and is_new)
    py_spy_native = native and find_py_spy() is not None
    rate = config.rate or (NATIVE_RATE if py_spy_native else RATE if is_new else GENTLE_RATE)
    pausing = is_new or native
    options = SamplingOptions(config.seconds, rate, native, pausing, config.updates)

    def show_progress(doing: str) -> None:
        steps.reach(STAGES.index(doing.partition(":")[0]) + 1, doing)

    if target.run is None:
        return profile_new_training(target.config, options, show_progress)
    try:
        return profile_run(target.run, target.config, target.pid, options, show_progress)
    except SamplerError as error:
        raise ConfigError(f"{target.run} cannot be profiled: {error}") from error


def find_verdicts(result: ProfileResult, *, try_out: bool) -> list[Verdict]:
    """Return the verdicts. Beside a run in progress nothing is timed: it would slow both down."""
    if not try_out or result.evidence.attached:
        return judge(result.evidence)
    with TimerProcess() as timer:
        return judge(result.evidence, timer)


def show(profile: Profile, files: Sequence[Path]) -> None:
    out = make_console()
    for verdict in profile.verdicts:
        echo(f"{verdict.cause}: {verdict.text}")
        if verdict.do:
            echo(f"  do: {verdict.do}")
    print()
    if profile.evidence.path:
        echo(profile.evidence.path)
    echo(f"{speed_line(profile.evidence)} {sampling_line(profile.result)}")
    print()
    for name, share in by_size(profile.evidence.phases):
        line = Text.assemble(f"  {name:16}", bar(share, BAR_CELLS, style="cyan"), f" {share:6.1%}")
        out.print(AsciiRenderable(line) if is_ascii_only(out) else line)
    rows = top_functions(profile.functions, "self", SHOWN)
    if rows:
        print()
        table = make_table(FUNCTION_HEADS, numbers=FUNCTION_HEADS[2:])
        for one in rows:
            table.add_row(*function_cells(one, NAME_CELLS))
        print_table(table)
    print()
    for text in profile.evidence.not_seen:
        echo(f"not seen: {text}")
    echo("wrote: " + ", ".join(map(str, files)))
