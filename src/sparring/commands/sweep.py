"""`sparring sweep`: search settings by training with them, and confirm the best."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from sparring.commands.shared.printing import (
    ProgressBar,
    echo,
    make_table,
    print_facts,
    print_json,
    print_table,
)
from sparring.commands.shared.stopping import Interrupted, interruptible
from sparring.config.tools import SweepConfig
from sparring.errors import SparringError
from sparring.sweep.sampling import load_optuna, too_few
from sparring.sweep.space import show_setting
from sparring.sweep.sweep import (
    POPULATIONS,
    Sweep,
    SweepResult,
    describe,
    prepare,
    run_sweep,
    write_results,
)
from sparring.sweep.trials import DONE, FAILED, PRUNED, SCORE, STRENGTH, Trial, best_of, finished
from sparring.training.planning.custom import rules_of

OK, NOTHING = 0, 3
BEST_SHOWN = 10


def run(config: SweepConfig) -> int:
    """Search, confirm the best setting, and print the result."""
    load_optuna()
    sweep = prepare(config)
    if config.dry_run:
        if config.json:
            print_json(describe(sweep, SweepResult(list(sweep.there), best_of(sweep.there))))
        else:
            show_plan(sweep)
        return OK
    if not config.json:
        show_plan(sweep)
    try:
        with interruptible():
            found = with_bar(sweep)
    except Interrupted as error:
        saved = len(sweep.folder.trials.ended) if sweep.folder.is_sweep else 0
        print(f"{error.name}: {saved} trials are saved in {sweep.folder.path}", file=sys.stderr)
        print(f"continue with: sparring sweep {sweep.folder.path}", file=sys.stderr)
        return error.code
    found.pictures = drawn(sweep, found)
    write_results(sweep, found)
    if config.json:
        print_json(describe(sweep, found))
    else:
        show(sweep, found)
    return OK if found.best else NOTHING


def with_bar(sweep: Sweep) -> SweepResult:
    """Run the sweep with a progress bar."""
    search = sweep.file.search
    total = max(sweep.cost.trials or search.trials or len(sweep.there) + 1, len(sweep.there))
    with ProgressBar(f"sweep of {sweep.config.game}", total + 2 * search.confirm) as steps:
        steps.done = len(sweep.there)

        def ended(trial: Trial) -> None:
            left = left_words(sweep, total - steps.done - 1)
            print_above_bar(f"trial {trial.number}: {outcome(trial)}; {words(trial)}{left}", steps)

        def confirmed(trial: Trial) -> None:
            side = "the best setting" if trial.settings else "the preset"
            print_above_bar(f"{side} with seed {trial.seed}: {outcome(trial)}", steps)

        return run_sweep(sweep, on_trial=ended, confirmed=confirmed)


def print_above_bar(line: str, steps: ProgressBar) -> None:
    """Print a line above the bar, or to stderr without a terminal."""
    if steps.bar:
        steps.bar.console.print(line)
        steps.next("confirming" if steps.done + 1 >= steps.total else "trials")
        return
    print(line, file=sys.stderr, flush=True)
    steps.done += 1


def left_words(sweep: Sweep, trials: int) -> str:
    """Return the estimated time left, by the trials so far."""
    known = [trial.seconds for trial in sweep.folder.trials.ended if trial.state == DONE]
    if not known or trials < 1:
        return ""
    minutes = median(known) * -(-trials // max(sweep.place.at_once, 1)) / 60
    return f"; {trials} to go, about {minutes:.1f} minutes"


def outcome(trial: Trial) -> str:
    if trial.state == FAILED:
        return f"failed: {trial.why}"
    value = f"{shown_value(trial)} {interval(trial)}".strip()
    return f"pruned: {trial.why}" if trial.state == PRUNED else value


def shown_value(trial: Trial) -> str:
    return "" if trial.value is None else f"{trial.value:.4g}"


def interval(trial: Trial) -> str:
    if trial.low is None or trial.high is None:
        return ""
    return f"({trial.low:.4g} .. {trial.high:.4g})"


def words(trial: Trial) -> str:
    return ", ".join(f"{name}={show_setting(value)}" for name, value in trial.settings.items())


def drawn(sweep: Sweep, found: SweepResult) -> list[Path]:
    """Draw the charts; a failure is printed and does not matter otherwise."""
    from sparring.sweep.charts import draw_sweep

    if not any(trial.state == DONE for trial in found.trials):
        return []
    alone = sweep.file.search.raised == SCORE or rules_of(sweep.config).seats == 1
    try:
        return draw_sweep(
            sweep.folder.path,
            found.trials,
            sweep.file.ranges,
            found.importance,
            title=f"Sweep of {sweep.config.game}: {sweep.folder.path.name}",
            form="number" if alone else "percent",
            what=sweep.file.search.raised,
        )
    except (OSError, SparringError) as error:
        print(f"sparring: no pictures were drawn: {error}", file=sys.stderr)
        return []


# Printed texts


def show_plan(sweep: Sweep) -> None:
    """Show the ranges and the cost."""
    search, place, cost = sweep.file.search, sweep.place, sweep.cost
    table = make_table(("setting", "range"))
    for name, range_ in sweep.file.ranges.items():
        table.add_row(name, str(range_))
    print_table(table)
    threads = f"{place.threads} thread{'s' if place.threads > 1 else ''}"
    prunes = search.prune and place.kind != "cluster"
    if place.kind == POPULATIONS:
        how = f"populations of up to {place.at_once} on a GPU"
        shared = f", members share {', '.join(place.shared)}" if place.shared else ""
        where = how + shared
    elif place.kind == "cluster":
        where = f"tasks of Ray with {threads} each; nothing is pruned there"
    else:
        where = f"{place.at_once} at once, a process with {threads} each"
    facts = [
        ("game", sweep.config.game),
        ("raises", raised_words(search.raised)),
        ("sampler", search.sampler),
        ("trials", f"{cost.trials or 'as many as there is time for'}: {where}"),
        ("pruning", f"after {search.prune} trials" if prunes else "none"),
        ("confirming", f"{search.confirm} fresh seeds" if search.confirm else "none"),
        ("cost", cost_words(sweep)),
        ("folder", str(sweep.folder.path)),
    ]
    if sweep.there:
        facts.append(("there already", f"{len(sweep.there)} trials"))
    print_facts(facts)


def raised_words(raised: str) -> str:
    usual = "mean win share over the opponents of evaluations, of one seat the score"
    return f"{raised}: {usual}" if raised == STRENGTH else raised


def cost_words(sweep: Sweep) -> str:
    cost = sweep.cost
    if cost.each_s is None or cost.search_s is None or cost.confirm_s is None:
        most = sweep.file.search.minutes
        return cost.why + (f"; {most:g} minutes at most" if most else "")
    whole = (cost.search_s + cost.confirm_s) / 60
    parts = f"search {cost.search_s / 60:.1f}, confirmation {cost.confirm_s / 60:.1f}"
    return f"about {whole:.1f} minutes ({parts}; a trial {cost.each_s / 60:.1f})"


def show(sweep: Sweep, found: SweepResult) -> None:
    """Show the best trials, the importance of settings, and the confirmation."""
    show_best(sweep, found.trials)
    states = {
        state: sum(trial.state == state for trial in found.trials) for state in (PRUNED, FAILED)
    }
    others = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    if others:
        echo(f"of {len(found.trials)} trials {others}")
    for trial in found.trials:
        if trial.state == FAILED:
            echo(f"trial {trial.number} failed: {trial.why}")
    few = too_few(found.trials, sweep.file.ranges)
    if few:
        echo(few)
    elif found.importance:
        shares = (f"{name} {share:.0%}" for name, share in found.importance.items())
        echo(f"what matters (PED-ANOVA): {', '.join(shares)}")
    if found.best is None:
        echo("no trial finished")
        return
    if found.confirmed:
        show_confirmed(sweep, found)
    if found.pictures:
        echo(f"pictures: {', '.join(map(str, found.pictures))}")
    text = f"the best setting: {found.preset}"
    if not found.confirmed or found.confirmed.is_better:
        text += f"; train it: sparring train --config {found.preset}"
    echo(text)


def show_best(sweep: Sweep, trials: Sequence[Trial]) -> None:
    done = finished(trials)
    done.sort(key=lambda trial: (-(trial.value or 0.0), trial.number))
    names = list(sweep.file.ranges)
    numbers = ("trial", sweep.file.search.raised, "95 %", "decisions", "seconds")
    table = make_table((*numbers, *names), numbers=numbers, least=("decisions", "seconds"))
    for trial in done[:BEST_SHOWN]:
        cells = [str(trial.number), shown_value(trial), interval(trial).strip("()")]
        cells += [f"{trial.decisions:,}", f"{trial.seconds:.0f}"]
        table.add_row(*cells, *(show_setting(trial.settings[name]) for name in names))
    if done:
        print_table(table)
    if len(done) > BEST_SHOWN:
        echo(f"and {len(done) - BEST_SHOWN} more")


def show_confirmed(sweep: Sweep, found: SweepResult) -> None:
    """Print the results with fresh seeds."""
    assert found.confirmed
    sides = {"best setting": found.confirmed.best, "preset": found.confirmed.preset}
    for side, values in sides.items():
        echo(f"{side} with fresh seeds: {', '.join(f'{value:.4g}' for value in values) or 'none'}")
    for line in found.confirmed.failed:
        echo(f"failed: {line}")
    echo(found.confirmed.verdict)
    same_rules = not any(name.startswith("set.") for name in sweep.file.ranges)
    if same_rules and len(found.confirmed.runs) > 1:
        echo(f"the curves of both: sparring compare {' '.join(found.confirmed.runs)}")
