"""What verdicts make of evidence: stacks and phases by hand, whose causes and gains are known."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sparring
from sparring.config import TrainConfig
from sparring.speed.code import phases_in
from sparring.speed.evidence import CallStack, CallStacks, Evidence, Frame
from sparring.speed.timer import SessionInfo, TimerProcess
from sparring.speed.verdicts.judge import CANNOT_TELL, LEARNING, TimedChange, judge
from sparring.speed.verdicts.profiled_run import ProfiledRun, Verdict, typed, without
from sparring.training.planning.settings import merged, with_preset

HOME = str(Path(sparring.__file__).parent)
LIB = "/usr/lib/python3.11"
PACKAGES = f"{LIB}/site-packages"
MAIN = 4242
SAMPLES = 1000


def named(file: str, phase: str) -> tuple[str, str, int]:
    """A function of ours in a line whose phase the code names so."""
    return next((f"{HOME}/{file}", phase, last) for _, last, one in phases_in(file) if one == phase)


LOOP = (named("training/loop.py", "training"),)
STEP = (
    *LOOP,
    (f"{HOME}/learn/ppo.py", "iterate"),
    named("learn/collect.py", "stepping"),
    named("pools/custom/stepper.py", "stepping"),
    (f"{HOME}/pools/custom/solo.py", "SoloTable.play"),
)
RESET = (*STEP[:-1], named("pools/custom/stepper.py", "reset"))
ANSWER = (*LOOP, (f"{HOME}/learn/ppo.py", "iterate"), named("learn/collect.py", "inference"))
UPDATE = (
    *LOOP,
    named("learn/ppo.py", "update"),
    (f"{HOME}/learn/backends/native.py", "NativeBackend.step"),
)
OTHERS = (*ANSWER, named("learn/collect.py", "opponents"))
CALLBACK = (*LOOP, named("training/loop.py", "callback"))
SAVE = (*LOOP, named("training/loop.py", "saving"))
MINE = ("/home/me/my_env.py", "MyEnv.step")
TORCH = f"{PACKAGES}/torch/nn/modules"

OWN = replace(with_preset("tic_tac_toe"), game="my_env:make_env", threads=1)
GAME = replace(with_preset("tic_tac_toe"), threads=1)
SEARCH = replace(with_preset("connect_four", algo="gumbel"), threads=1)


At = tuple[str, str] | tuple[str, str, int]
"""A function: its file, its name, and the line if that matters."""


def stack(share: float, *frames: At, thread: str = "MainThread") -> CallStack:
    """A stack that was met for a share of the time."""
    made = tuple(Frame(name, file, *line or (7,)) for file, name, *line in frames)
    return CallStack(made, round(SAMPLES * share), thread, MAIN)


def seen(config: TrainConfig, stacks: Sequence[CallStack], **facts: Any) -> Evidence:
    """Ten seconds of a training on one core of four."""
    usual: dict[str, Any] = {
        "phases": {},
        "decisions_per_s": 1000.0,
        "samples_per_s": 1000.0,
        "seconds": 10.0,
        "cpu_cores": 1.0,
        "cores": 1,
    }
    return Evidence(config=config, stacks=CallStacks(tuple(stacks), 100), **(usual | facts))


def first(evidence: Evidence) -> Verdict:
    """The first verdict, estimated."""
    return judge(evidence)[0]


def phases(**shares: float) -> dict[str, dict[str, float]]:
    return {"phases": shares}


CODE = {
    "logging": (
        "logging every step",
        [stack(0.6, *STEP, MINE, (f"{LIB}/logging/__init__.py", "Logger.debug"))],
        0.6,
    ),
    "json": (
        "logging every step",
        [stack(0.6, *STEP, MINE, (f"{LIB}/json/encoder.py", "JSONEncoder.encode"))],
        0.6,
    ),
    "parsing": (
        "reading a file in every step",
        [stack(0.6, *STEP, MINE, (f"{LIB}/json/__init__.py", "load"))],
        0.6,
    ),
    "parsing by a library": (
        "reading a file in every step",
        [stack(0.6, *STEP, MINE, (f"{PACKAGES}/yaml/__init__.py", "safe_load"))],
        0.6,
    ),
    "reading, seen natively": (
        "reading a file in every step",
        [stack(0.6, *STEP, MINE, ("textio.c", "_io_TextIOWrapper_read"))],
        0.6,
    ),
    "printing, seen natively": (
        "logging every step",
        [stack(0.6, *STEP, MINE, ("bltinmodule.c", "builtin_print"))],
        0.6,
    ),
    "a network": (
        "a network inside the environment",
        [stack(0.6, *STEP, MINE, (f"{TORCH}/module.py", "Module._call_impl"))],
        0.6,
    ),
    "one of our own": (
        "a network inside the environment",
        [stack(0.6, *STEP, MINE, (f"{HOME}/nets/policy.py", "Policy.act"))],
        0.6,
    ),
    "deep copies": ("copying", [stack(0.6, *STEP, MINE, (f"{LIB}/copy.py", "deepcopy"))], 0.6),
    "drawing": (
        "rendering every step",
        [stack(0.6, *STEP, MINE, (f"{PACKAGES}/pygame/draw.py", "line"))],
        0.6,
    ),
    "checks": (
        "checks around the environment",
        [stack(0.6, *STEP, (f"{PACKAGES}/gymnasium/utils/passive_env_checker.py", "check"))],
        0.6,
    ),
    "garbage": (
        "garbage collection",
        [stack(0.6, *STEP, MINE, ("gcmodule.c", "gc_collect_main"))],
        0.6,
    ),
    "a reset": ("a costly reset", [stack(0.6, *RESET, MINE)], 0.6),
    "a plain step": ("slow environment", [stack(0.6, *STEP, MINE)], 0.6),
    "a function as opponent": ("a slow opponent", [stack(0.6, *OTHERS, MINE)], 0.6),
    "a function that asks": (
        "one call per opponent",
        [stack(0.6, *OTHERS, MINE, (f"{TORCH}/linear.py", "Linear.forward"))],
        0.6,
    ),
    "a callback": ("a slow callback", [stack(0.6, *CALLBACK, MINE)], 0.6),
    "a callback that logs": (
        "logging in a callback",
        [stack(0.6, *CALLBACK, MINE, (f"{LIB}/csv.py", "writerow"))],
        0.6,
    ),
}


@pytest.mark.parametrize("name", CODE)
def test_a_cause_in_the_code_is_named_with_a_gain_that_its_share_allows(name: str) -> None:
    cause, met, share = CODE[name]
    verdict = first(seen(OWN, [*met, stack(1 - share, *UPDATE)], **phases(update=1 - share)))
    assert verdict.cause == cause
    assert verdict.share == pytest.approx(share, abs=0.01)
    assert verdict.gain is not None
    assert 0 < verdict.gain <= without(share) + 1e-9
    assert not verdict.timed
    assert not verdict.change
    assert verdict.do
    assert verdict.text.startswith("60 %")


def test_time_between_updates_is_no_callback_where_none_was_seen() -> None:
    """A run from the command line has none; on a busy machine there is time between updates."""
    facts = {"update": 0.8, "inference": 0.1, "between updates": 0.1}
    evidence = replace(seen(GAME, [stack(1.0, *UPDATE)], **phases(**facts)), attached=True)
    assert [verdict.cause for verdict in judge(evidence)] == [LEARNING]


def test_gains_are_reckoned_by_hand() -> None:
    cause, met, share = CODE["logging"]
    verdict = first(seen(OWN, [*met, stack(0.4, *UPDATE)]))
    assert verdict.cause == cause
    # 92 % of what logging takes goes: 1 / (1 - 0.6 * 0.92) - 1.
    assert verdict.gain == pytest.approx(1 / (1 - share * 0.92) - 1)
    assert "my_env.py:7" in verdict.do


def test_what_happens_in_workers_is_told_with_its_place() -> None:
    worker = ((f"{HOME}/pools/workers/process.py", "main"), *STEP[-2:], MINE)
    logs = stack(0.9, *worker, (f"{LIB}/logging/__init__.py", "Logger.debug"))
    waits = stack(0.9, *LOOP, (f"{HOME}/pools/workers/pool.py", "WorkerPool.wait"))
    evidence = seen(
        replace(OWN, workers="2"),
        [waits, stack(0.1, *UPDATE)],
        **phases(stepping=0.9, update=0.1),
        child_stacks=CallStacks((replace(logs, process=77),), 100),
        processes={MAIN: "training", 77: "worker"},
        cores=2,
    )
    verdict = first(evidence)
    assert verdict.cause == "logging every step"
    assert "my_env.py:7" in verdict.do


def test_what_a_step_can_do_without_goes_before_sharing_it_out() -> None:
    logs = stack(0.7, *STEP, MINE, (f"{LIB}/logging/__init__.py", "Logger.debug"))
    evidence = seen(OWN, [logs, stack(0.2, *STEP, MINE), stack(0.1, *UPDATE)], cores=8)
    evidence = replace(evidence, phases={"stepping": 0.9, "update": 0.1})
    causes = [verdict.cause for verdict in judge(evidence)]
    assert causes[0] == "logging every step"
    assert "slow environment" in causes


def changed(config: TrainConfig, **changes: Any) -> TrainConfig:
    made: TrainConfig = merged(config, changes, "test")
    return made


SETTINGS: dict[str, tuple[str, TrainConfig, dict[str, Any], Mapping[str, Any]]] = {
    "minibatches": (
        "tiny minibatches",
        changed(GAME, ppo={"minibatch": 32}),
        phases(update=0.9, inference=0.1),
        {"ppo": {"minibatch": 512}},
    ),
    "batches of a replay": (
        "tiny minibatches",
        changed(replace(with_preset("tic_tac_toe", algo="dqn"), threads=1), replay={"batch": 16}),
        phases(update=0.7, sampling=0.2, inference=0.1),
        {"replay": {"batch": 256}},
    ),
    "threads": (
        "too many threads",
        replace(GAME, threads=16),
        {**phases(update=0.9, inference=0.1), "cores": 2, "cpu_cores": 2.0},
        {"threads": 2},
    ),
    "simulations": (
        "many simulations",
        changed(SEARCH, gumbel={"simulations": 400}),
        phases(select=0.2, evaluate=0.5, settle=0.1, update=0.2),
        {"gumbel": {"simulations": 64}},
    ),
    "full searches": (
        "many full searches",
        changed(SEARCH, gumbel={"full_share": 1.0}),
        phases(select=0.2, evaluate=0.5, settle=0.1, update=0.2),
        {"gumbel": {"full_share": 0.25}},
    ),
    "workers": (
        "slow environment",
        OWN,
        {**phases(stepping=0.9, update=0.1), "cores": 4},
        {"workers": "4"},
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_named_with_what_to_change(name: str) -> None:
    cause, config, facts, change = SETTINGS[name]
    verdict = first(seen(config, [], **facts))
    assert verdict.cause == cause
    assert verdict.change == change
    assert verdict.do == typed(change)
    assert verdict.gain
    assert not verdict.timed


@pytest.mark.parametrize("name", SETTINGS)
def test_nobody_is_told_to_do_what_is_done_already(name: str) -> None:
    cause, config, facts, change = SETTINGS[name]
    done: TrainConfig = merged(config, change, "test")
    for verdict in judge(seen(done, [], **facts)):
        assert verdict.cause != cause or not verdict.change
        for key, value in verdict.change.items():
            now = getattr(done, key)
            assert now != value
            if isinstance(value, Mapping):
                assert any(getattr(now, name) != one for name, one in value.items())


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        (
            {"select": 0.3, "settle": 0.25, "evaluate": 0.35, "update": 0.1},
            "55 % in the trees of the searches, 64 simulations in 25 % of the decisions, 256 games "
            "at once: that is the learning itself; no setting stands out; fewer simulations "
            "(gumbel.simulations, gumbel.full_share) take less time and learn otherwise; the "
            "network takes 35 %, so that a larger one costs little",
        ),
        (
            {"select": 0.2, "settle": 0.15, "evaluate": 0.45, "update": 0.2},
            "45 % in the network of the searches, 64 simulations in 25 % of the decisions, 256 "
            "games at once: that is the learning itself; no setting stands out; a smaller network "
            "or fewer simulations (gumbel.simulations, gumbel.full_share) take less time and learn "
            "otherwise; the trees take 35 %",
        ),
    ],
)
def test_searches_are_bound_by_their_trees_or_their_network(
    shares: dict[str, float], says: str
) -> None:
    config = changed(SEARCH, collect={"games": 256}, gumbel={"minibatch": 1024})
    (verdict,) = judge(seen(config, [], **phases(**shares)))
    assert verdict.cause == LEARNING
    assert verdict.text == says


def test_searches_on_a_gpu_are_in_its_rollout() -> None:
    shares = {"trees": 0.3, "products": 0.5, "idle": 0.0}
    config = changed(SEARCH, gumbel={"minibatch": 16384})
    verdict = judge(seen(config, [], **phases(rollout=0.8, update=0.2), gpu=shares))[-1]
    assert verdict.text.startswith("80 % in the rollout, 64 simulations in 25 % of the decisions")
    assert verdict.text.endswith("the trees take 30 %")


def test_opponents_that_search_are_told_from_the_learner() -> None:
    config = replace(GAME, opponents=("self=1", "runs/other@64=1", "runs/third@100/puct=1"))
    stacks = [stack(0.6, *OTHERS, named("search/search.py", "evaluate")), stack(0.4, *UPDATE)]
    verdict = first(seen(config, stacks, **phases(inference=0.6, update=0.4)))
    assert verdict.cause == "opponents that search"
    assert verdict.change == {"opponents": ("self=1", "runs/other@16=1", "runs/third@25/puct=1")}
    assert ProfiledRun(seen(SEARCH, stacks)).at("evaluate") == 0


SLEEPS = ("timemodule.c", "pysleep")


@pytest.mark.parametrize("known", [True, False])
def test_an_environment_that_waits_gets_as_many_workers_as_games(known: bool) -> None:
    """ProfileResult natively, or known from cores that nobody used."""
    config = changed(OWN, collect={"games": 16})
    step = (*STEP, MINE, SLEEPS) if known else (*STEP, MINE)
    facts = {**phases(stepping=0.9, update=0.1), "cores": 2}
    stacks = [stack(0.9, *step), stack(0.1, *UPDATE)]
    verdict = first(seen(config, stacks, cpu_cores=0.5 if known else 0.15, **facts))
    assert verdict.cause == "an environment that waits"
    assert verdict.change == {"workers": "16"}
    busy = seen(config, [stack(0.9, *STEP, MINE)], cpu_cores=0.15, load=1.8, **facts)
    assert first(busy).cause == "slow environment"


def test_one_game_that_waits_gets_no_workers_to_wait_beside_it() -> None:
    config = changed(OWN, collect={"games": 1})
    stacks = [stack(0.9, *STEP, MINE, SLEEPS), stack(0.1, *UPDATE)]
    found = judge(seen(config, stacks, cores=4, **phases(stepping=0.9, update=0.1)))
    assert all("workers" not in verdict.change for verdict in found)


class Untouched(TimerProcess):
    """Times nothing."""

    def open(self, name: str, config: TrainConfig, *, warm_up: int = 2) -> SessionInfo:
        raise AssertionError(name)


def test_nothing_is_timed_where_no_update_ends() -> None:
    """It would not end there either, and profile would wait for it."""
    stacks = [stack(1.0, *STEP, MINE, SLEEPS)]
    verdict = judge(seen(OWN, stacks, decisions_per_s=0.0, cores=2), Untouched())[0]
    assert verdict.cause == "an environment that waits"
    assert not verdict.timed


def test_other_programs_never_come_first() -> None:
    """Nobody can do anything about them in a training's settings, however much they take."""
    stacks = [stack(0.09, *STEP, MINE, (f"{LIB}/copy.py", "deepcopy")), stack(0.91, *UPDATE)]
    evidence = seen(OWN, stacks, **phases(update=0.91), cpu_cores=0.1, load=0.9)
    causes = [verdict.cause for verdict in judge(evidence)]
    assert causes[:2] == ["copying", "other programs"]


def test_an_environment_that_only_a_program_has_gets_no_workers() -> None:
    config = replace(OWN, game="MyEnv")
    stacks = [stack(0.9, *STEP, MINE), stack(0.1, *UPDATE)]
    evidence = seen(config, stacks, cores=4, **phases(stepping=0.9, update=0.1))
    verdict = first(evidence)
    assert verdict.cause == "slow environment"
    assert not verdict.change


def test_saving_all_the_time_is_told_apart_from_learning() -> None:
    config = replace(GAME, checkpoint_every_s=0.5)
    verdict = first(seen(config, [stack(0.4, *SAVE), stack(0.6, *UPDATE)], **phases(update=0.6)))
    assert verdict.cause == "checkpoints too often"
    assert verdict.change["checkpoint_every_s"] > 0.5


def test_evaluations_that_take_a_core_are_named() -> None:
    config = changed(replace(GAME, threads=2), eval={"every_s": 1.0})
    evaluates = CallStack((Frame("play", f"{HOME}/league/arena.py", 3),), 900, "MainThread", 77)
    evidence = seen(
        config,
        [stack(1.0, *UPDATE)],
        **phases(update=0.95),
        child_stacks=CallStacks((evaluates,), 100),
        processes={MAIN: "training", 77: "evaluation"},
        cores=2,
        cpu_cores=1.1,
        load=0.9,
    )
    verdict = first(evidence)
    assert verdict.cause == "evaluations too often"
    assert verdict.change == {"eval": {"every_s": 40.0}}


def test_a_thread_that_spins_beside_training_is_named() -> None:
    spins = stack(0.9, ("/home/me/watch.py", "Watcher.run"), thread="watcher")
    verdict = first(seen(GAME, [stack(1.0, *UPDATE), spins], **phases(update=0.95)))
    assert verdict.cause == "a thread beside training"
    assert "watch.py:7" in verdict.do


def test_opponents_without_a_slot_are_named_by_their_share() -> None:
    stacks = [stack(0.6, *OTHERS, (f"{TORCH}/linear.py", "Linear.forward")), stack(0.4, *UPDATE)]
    evidence = seen(GAME, stacks, **phases(inference=0.6, update=0.4))
    run = ProfiledRun(evidence)
    assert run.at("opponents") == pytest.approx(0.6)
    assert run.at("inference") == 0


@pytest.mark.parametrize("game", ["skull_king", "tic_tac_toe"])
def test_a_sound_run_is_told_what_bounds_it_and_nothing_else(game: str) -> None:
    config = replace(with_preset(game), threads=1)
    stacks = [stack(0.85, *UPDATE), stack(0.15, *ANSWER)]
    found = judge(seen(config, stacks, **phases(update=0.85, inference=0.1, stepping=0.05)))
    assert [verdict.cause for verdict in found] == [LEARNING]
    assert found[0].gain is None
    assert "85 % in the update" in found[0].text
    assert str(config.ppo.minibatch) in found[0].text


def test_too_little_evidence_is_said_to_be_so() -> None:
    evidence = seen(GAME, [], not_seen=("stacks: py-spy is not installed",))
    (verdict,) = judge(evidence)
    assert verdict.cause == CANNOT_TELL
    assert verdict.gain is None
    assert "py-spy is not installed" in verdict.text


def test_a_change_that_was_not_better_every_time_is_not_sure() -> None:
    assert TimedChange((1.5, 1.4, 1.6)).sure
    assert not TimedChange((1.5, 0.9, 1.6)).sure
    assert not TimedChange((1.01, 1.02, 1.03)).sure
    assert TimedChange((1.5, 0.9, 1.6)).needs_more
    # Of five, one may have met a busy moment.
    assert TimedChange((1.5, 0.9, 1.6, 1.4, 1.5)).sure
    assert not TimedChange((1.5, 0.9, 1.6, 0.8, 1.5)).sure
    assert TimedChange((1.5, 1.4, 1.6)).gain == pytest.approx(0.4)


def test_changes_are_shown_as_they_are_typed() -> None:
    change = {"threads": 2, "collect": {"games": 64}, "net": {"hidden": (64, 64)}}
    assert typed(change) == "--threads 2 --collect.games 64 --net.hidden 64 64"
    assert typed({"checkpoint_every_s": 60.0}) == "--checkpoint-every-s 60.0"
    assert typed({"episodes_csv": False, "collect": {"bf16": True}}) == (
        "--no-episodes-csv --collect.bf16"
    )


def test_the_number_of_cores_is_that_of_the_evidence() -> None:
    config = replace(GAME, threads=0)
    evidence = seen(config, [], cores=os.cpu_count() or 1, **phases(update=0.9, inference=0.1))
    assert all(verdict.cause != "too many threads" for verdict in judge(evidence))


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def pathologies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The benchmark of prepared pathologies, in a folder of its own."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.chdir(tmp_path)
    return importlib.import_module("pathologies")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logging", "minibatches"])
def test_a_real_pathology_is_named_and_mending_it_pays(
    pathologies: Any, tmp_path: Path, name: str
) -> None:
    result = pathologies.examined(name, pathologies.pathologies(tmp_path)[name], 3.0)
    assert result["named"] == result["cause"]
    assert result["promised"] > 0
    assert result["gained"] > 0
