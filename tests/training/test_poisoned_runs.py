"""Going on with a run of somebody else: one line for what is odd, nothing written elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import torch as safetensors

import sparring
from sparring.errors import ConfigError, SparringError
from sparring.learn.transitions import PENDING_DTYPE
from sparring.store.policies import load_policy
from sparring.training.agent import Agent
from sparring.training.records.run import Run
from sparring.training.train import resume
from store.poison_helpers import change, put
from training.run_helpers import trained

UPDATES = 3


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody has touched."""
    return trained(tmp_path_factory.mktemp("whole"), updates=UPDATES).run


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def newest(run: Path) -> Path:
    return max((run / "checkpoints").glob("0*"))


def refused(run: Path, match: str) -> None:
    with pytest.raises(SparringError, match=match) as caught:
        resume(run, updates=UPDATES + 1, quiet=True)
    assert "\n" not in str(caught.value)


def test_an_untouched_run_goes_on(run: Path) -> None:
    assert resume(run, updates=UPDATES + 1, quiet=True).policy.meta["update"] == UPDATES + 1


META: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no config": (lambda meta: meta.pop("config"), "config is missing"),
    "config a list": (lambda meta: meta.update(config=[]), "config is .*not an object"),
    "config.eval a number": (lambda meta: meta["config"].update(eval=3), "eval needs a table"),
    "config.ppo a list": (lambda meta: meta["config"].update(ppo=[1]), "ppo needs a table"),
    "old rates odd": (lambda meta: meta["config"]["ppo"].update(lr_end="x"), "lr_end"),
    "no best": (lambda meta: meta.pop("best"), "best is missing"),
    "best text": (lambda meta: meta.update(best="x"), "best is 'x'"),
    "best without update": (lambda meta: meta["best"].pop("update"), "best.update is missing"),
    "seconds text": (lambda meta: meta.update(seconds="x"), "seconds is 'x'"),
    "seconds endless": (lambda meta: meta.update(seconds=1e400), "seconds is inf"),
    "update text": (lambda meta: meta.update(update="3"), "update is '3'"),
    "decisions": (lambda meta: meta.update(decisions=-1), "decisions is -1"),
    "samples null": (lambda meta: meta.update(samples=None), "samples is None"),
    "events a table": (lambda meta: meta.update(events={}), "events is .*not a list"),
    "events of numbers": (lambda meta: meta.update(events=[1]), r"events\[0\] is 1"),
    "steps a list": (lambda meta: meta.update(steps=[1]), r"steps is \[1\]"),
    "wins a list": (lambda meta: meta.update(wins=[1]), "wins is .*not an object"),
    "waiting odd": (lambda meta: meta.update(waiting={"x": 1}), "the number of a checkpoint"),
    "lr_factor": (lambda meta: meta.update(lr_factor="x"), "lr_factor is 'x'"),
    "home elsewhere": (
        lambda meta: meta.update(league={"home": "../../other"}),
        "league.home is '../../other', not the name of a run",
    ),
    "foreign {}": (lambda meta: meta.update(foreign={}), "foreign.name is missing"),
}


@pytest.mark.parametrize("kind", META)
def test_what_a_checkpoint_says_about_its_run_has_the_right_kind(run: Path, kind: str) -> None:
    edit, match = META[kind]
    change(newest(run), lambda manifest: edit(manifest["meta"]))
    refused(run, match)


def test_groups_and_files_that_a_learner_needs_are_missed_in_one_line(run: Path) -> None:
    path = newest(run)
    whole = (path / "manifest.json").read_bytes()
    for group in ("net", "carried"):
        change(path, lambda manifest, group=group: manifest["groups"].remove(group))
        refused(run, f"cannot be resumed: .*{group}")
        (path / "manifest.json").write_bytes(whole)
    change(path, lambda manifest: manifest["blobs"].remove("open.bin"))
    refused(run, "cannot be resumed: .*open.bin")


@pytest.mark.parametrize("field", ["role", "decisions", "reward", "action"])
def test_open_decisions_that_no_game_has_left_are_refused(run: Path, field: str) -> None:
    """Native code adds up what they are paid, by role, in a loop over their decisions."""
    path = newest(run)
    if field == "action":
        carried = safetensors.load((path / "carried.safetensors").read_bytes())
        carried["action"].fill_(2**30)
        put(path, "carried.safetensors", safetensors.save(carried))
    else:
        waiting = np.frombuffer((path / "open.bin").read_bytes(), PENDING_DTYPE).copy()
        assert (waiting["row"] >= 0).any()
        waiting[field] = np.nan if field == "reward" else 2**30
        put(path, "open.bin", waiting.tobytes())
    refused(run, "pending transitions that tic_tac_toe cannot have")


@pytest.mark.parametrize("column", ["open", "action"])
def test_a_replay_holds_decisions_of_its_game(tmp_path: Path, column: str) -> None:
    run = trained(tmp_path, algo="dqn", updates=UPDATES).run
    path = newest(run)
    kept = safetensors.load((path / "replay.safetensors").read_bytes())
    kept[column].fill_(-5)
    put(path, "replay.safetensors", safetensors.save(kept))
    refused(run, "the checkpoint's replay (has pending transitions|has actions)")


def test_weights_of_another_type_are_refused(run: Path) -> None:
    path = newest(run)
    weights = safetensors.load((path / "net.safetensors").read_bytes())
    changed = {name: tensor.to(torch.int64) for name, tensor in weights.items()}
    put(path, "net.safetensors", safetensors.save(changed))
    refused(run, "int64 .* the network's is float32")


@pytest.mark.parametrize(
    "name", ["metrics.csv", "metrics.sqlite", ".lock", "events.json", "checkpoints/.lock", "league"]
)
def test_a_link_out_of_the_run_is_not_written_through(run: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(outside)
    refused(run, "a link that leaves .*nothing was written")
    assert outside.read_text() == "mine\n"


def test_a_link_out_of_the_run_makes_no_file(run: Path, tmp_path: Path) -> None:
    (run / ".lock").unlink(missing_ok=True)
    (run / ".lock").symlink_to(tmp_path / "made")
    refused(run, "a link that leaves")
    assert not (tmp_path / "made").exists()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["metrics.csv", "events.json", "metrics.sqlite-wal", "any"])
def test_a_fifo_among_the_files_of_a_run_does_not_stop_a_resume(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    refused(run, "not a regular file")


def test_links_within_the_run_are_fine(run: Path) -> None:
    (run / "events.json").rename(run / "old events.json")
    (run / "events.json").symlink_to("old events.json")
    (run.parent / "link").symlink_to(run)
    resume(run.parent / "link", updates=UPDATES + 1, quiet=True)


@pytest.mark.timeout(60)
def test_odd_settings_of_a_run_are_one_line(run: Path) -> None:
    file = run / "config.toml"
    odd = [b"a=" + b"[" * 5000, b"\xff", b"a = ", b"a = " + b"9" * 9999, b"#" * (5 * 2**20)]
    for text in odd:
        file.write_bytes(text)
        with pytest.raises(ConfigError, match=r"config\.toml cannot be read") as caught:
            Run.open(run)
        assert "\n" not in str(caught.value)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="not a regular file"):
        Run.open(run)


@pytest.mark.timeout(60)
def test_an_odd_measurement_is_none(run: Path) -> None:
    agent = Agent(load_policy(run), run, "done")
    assert isinstance(agent, sparring.Agent)
    file = run / "results.json"
    for text in ("[" * 200_000, "[]", "{}", '{"results": [1]}', '{"results": {"random": 1}}', "x"):
        file.write_text(text)
        assert agent.results == {}
    file.unlink()
    os.mkfifo(file)
    assert agent.results == {}
