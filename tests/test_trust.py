"""Files are data: whatever they name, loading them runs no code that nobody named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomlkit

import sparring
from sparring import trusted
from sparring.cli import COMMANDS, main
from sparring.errors import SparringWarning, UntrustedError
from sparring.store.manifest import digest
from sparring.store.policies import load_policy, save_policy
from sparring.store.snapshots import pack_snapshot

QUICK: dict[str, Any] = {
    **{"updates": 1, "quiet": True, "threads": 1, "tensorboard": False, "eval": {"off": True}},
    **{"net": {"hidden": (8,)}, "collect": {"games": 4, "steps": 16}},
}
EVIL = '''"""Leaves a trace when it is imported."""
from pathlib import Path
Path(__file__).with_name("PWNED").touch()
Net = make = learner = print
'''


@dataclass
class Booty:
    """A stranger's files, and the trace that their code would leave."""

    root: Path
    trace: Path
    words: dict[str, str]
    """What a command is given, by the kind of file."""

    def __getitem__(self, kind: str) -> str:
        return self.words[kind]


def poison(run: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change what the checkpoints of a run say, with hashes that fit."""
    for file in run.glob("checkpoints/*/manifest.json"):
        manifest = json.loads(file.read_bytes())
        change(manifest["meta"])
        manifest["sha256"] = digest(manifest)
        file.write_text(json.dumps(manifest))
    return run


def configured(run: Path, **settings: Any) -> Path:
    """Change the settings of a run, in its file and in its checkpoints; None takes one away."""

    def change(table: Any) -> None:
        for key, value in settings.items():
            if value is None:
                del table[key]
            else:
                table[key] = {**table[key], **value} if isinstance(value, dict) else value

    table = tomlkit.parse((run / "config.toml").read_text())
    change(table)
    (run / "config.toml").write_text(tomlkit.dumps(table))
    return poison(run, lambda meta: change(meta["config"]))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Booty:
    """Every kind of file that may name code, each naming some that leaves a trace."""
    root = tmp_path_factory.mktemp("stranger")
    runs = root / "runs"
    evil = root / "evil.py"
    evil.write_text(EVIL)
    clean = sparring.train("tic_tac_toe", runs=str(runs), name="clean", **QUICK).run
    with pytest.warns(SparringWarning, match="not its games"):
        env = sparring.train("own_envs:make_cards", runs=str(runs), name="env", **QUICK).run

    def copied(name: str, of: Path = clean) -> Path:
        return Path(shutil.copytree(of, runs / name))

    def shell(meta: dict[str, Any]) -> None:
        command = f"touch {root / 'PWNED'}"
        meta["net"].update(kind="pydoc:pipepager", set=[f"cmd={command}"])

    def module(meta: dict[str, Any]) -> None:
        meta["net"].update(kind=f"{evil}:Net", set=[])

    words = {
        "net": poison(copied("net"), module),
        "shell": poison(copied("shell"), shell),
        "made_by": poison(copied("made_by", env), lambda m: m.update(made_by=f"{evil}:make")),
        "game": configured(copied("game", env), game=f"{evil}:make"),
        "algo": configured(copied("algo"), algo=f"{evil}:learner", ppo=None),
        "kind": configured(poison(copied("kind"), module), net={"kind": f"{evil}:Net"}),
    }
    words["checkpoint"] = next((runs / "net" / "checkpoints").glob("0*"))
    policy = load_policy(clean)
    words["policy"] = save_policy(policy, root / "policy")
    manifest = json.loads((root / "policy" / "manifest.json").read_bytes())
    shell(manifest["meta"])
    manifest["sha256"] = digest(manifest)
    (root / "policy" / "manifest.json").write_text(json.dumps(manifest))
    meta = dict(manifest["meta"])
    words["snapshot"] = root / "agent.safetensors"
    words["snapshot"].write_bytes(pack_snapshot(policy.net.state_dict(), meta))
    files = {
        "toml": {"game": f"{evil}:make"},
        "curriculum": {"net": {"kind": f"{evil}:Net"}, "phases": [{"decisions": 1}]},
        "sweep": {"game": f"{evil}:make", "sweep": {"ranges": {"ppo.lr": [1e-4, 1e-3]}}},
        "configs": {"game": "tic_tac_toe", "configs": {"a": {"net": {"kind": f"{evil}:Net"}}}},
        "cluster": {"game": "tic_tac_toe", "cluster": "127.0.0.1:9", "actors": 1},
    }
    for kind, table in files.items():
        words[kind] = root / f"{kind}.toml"
        words[kind].write_text(tomlkit.dumps(table))
    return Booty(root, root / "PWNED", {kind: str(path) for kind, path in words.items()})


@pytest.fixture(autouse=True)
def nobody_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stranger: Booty
) -> Iterator[None]:
    """Nothing is named and nothing is remembered at first; no trace is left at the end."""
    for kept in ("_allowed", "_remembered"):
        monkeypatch.setattr(trusted, kept, set())
    monkeypatch.setattr(trusted, "_refused_for", {})
    monkeypatch.setattr(trusted, "_use_remembered", True)
    monkeypatch.setenv(trusted.STATE, str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    yield
    assert not stranger.trace.exists(), "a file ran code of its author"


PLAYERS = ("net", "shell", "checkpoint", "policy", "snapshot", "kind")
"""Files that hold a network which is code."""
SOME = ("shell", "snapshot")
"""A folder and a file, for commands that take any of them."""
COMMAND_LINES: dict[str, list[str]] = {
    "train": [
        *(f"train tic_tac_toe --updates 1 --init {{{kind}}}" for kind in SOME),
        *(f"train tic_tac_toe --updates 1 --opponents {{{kind}}}" for kind in SOME),
        "train --config {toml}",
        "train --config {algo}/config.toml",
        "train --config {cluster}",
        "train tic_tac_toe --curriculum {curriculum}",
    ],
    "resume": [f"resume {{{kind}}} --updates 2" for kind in ("game", "algo", "kind")],
    "play": [f"play {{{kind}}}" for kind in SOME],
    "eval": [
        *(f"eval {{{kind}}} --games 2" for kind in (*SOME, "made_by")),
        *(f"eval careful --game tic_tac_toe --against {{{kind}}} --games 2" for kind in SOME),
    ],
    "exploit": [f"exploit {{{kind}}} --minutes 0.01" for kind in SOME],
    "arena": [f"arena random {{{kind}}} --game tic_tac_toe --games 2" for kind in SOME],
    "ladder": [f"ladder tic_tac_toe --submit {{{kind}}} --games 2" for kind in SOME],
    "usi": ["usi {net}", "usi {shell}"],
    "render": [f"render {{{kind}}}" for kind in (*SOME, "made_by")],
    "export": [f"export {{{kind}}} --onnx out.onnx" for kind in (*SOME, "made_by")],
    "profile": ["profile {game}", "profile {algo}", "profile {kind}"],
    "tune": ["tune tic_tac_toe --config {kind}/config.toml"],
    "sweep": ["sweep {sweep}"],
    "bench train": ["bench train tic_tac_toe --config {kind}/config.toml"],
    "bench configs": ["bench configs {configs}"],
    "bench search": [f"bench search {{{kind}}}" for kind in SOME],
    "bench scaling": ["bench scaling tic_tac_toe --config {kind}/config.toml"],
    # These read files and load nothing.
    "runs": ["runs --runs {root}/runs"],
    "plot": ["plot {net}"],
    "compare": ["compare {net} {shell}"],
    "league": ["league {net}"],
    "replay": ["replay {toml}"],
}
NO_FILES = {
    "games",
    "bench pool",
    "check",
    "new-game",
    "port",
    "completion",
    "doctor",
    "zoo",
    "demo",
}
"""Commands that read no file of anybody's, or run code because it was typed."""


def test_every_command_is_tried() -> None:
    served = {"serve"}  # below
    assert {command.name for command in COMMANDS} == {*COMMAND_LINES, *NO_FILES, *served}


@pytest.mark.few(8)
@pytest.mark.filterwarnings("ignore:load average")
@pytest.mark.parametrize("command", COMMAND_LINES)
def test_a_command_runs_no_code_of_a_file(
    command: str, stranger: Booty, capsys: pytest.CaptureFixture[str]
) -> None:
    harmless = {"runs", "plot", "compare", "league", "replay"}
    for line in COMMAND_LINES[command]:
        words = line.format(root=stranger.root, **stranger.words).split()
        code = main(words)
        said = capsys.readouterr().err.strip()
        assert not stranger.trace.exists(), line
        if command in harmless:
            continue
        assert code == 2, (line, said)
        assert "--trust" in said.splitlines()[-1], (line, said)
        assert "Traceback" not in said


LOADERS: dict[str, Callable[[str], Any]] = {
    "load": sparring.load,
    "resume": lambda path: sparring.resume(path, updates=2, quiet=True),
    "init": lambda path: sparring.train("tic_tac_toe", init=path, **QUICK),
    "opponents": lambda path: sparring.train("tic_tac_toe", opponents=path, **QUICK),
    "config": lambda path: sparring.train(config=f"{path}/config.toml", **QUICK),
}


@pytest.mark.parametrize(
    ("loader", "kind"),
    [
        *(("load", kind) for kind in PLAYERS),
        *(("resume", kind) for kind in ("game", "algo", "kind")),
        *(("init", kind) for kind in SOME),
        *(("opponents", kind) for kind in SOME),
        *(("config", kind) for kind in ("game", "algo", "kind")),
    ],
)
def test_python_runs_no_code_of_a_file(loader: str, kind: str, stranger: Booty) -> None:
    with pytest.raises(UntrustedError, match="--trust") as refused:
        LOADERS[loader](stranger[kind])
    assert "\n" not in str(refused.value)


def test_an_environment_of_a_file_is_not_made(stranger: Booty) -> None:
    agent = sparring.load(stranger["made_by"])  # weights alone are data
    with pytest.raises(UntrustedError, match="made_by asks for game"):
        sparring.Agent(agent, Path(stranger["made_by"]), "done").evaluate(games=2)


def test_the_server_loads_none(stranger: Booty, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("starlette")
    from starlette.testclient import TestClient

    from sparring.web.guard import Guard
    from sparring.web.server import make_app

    app = make_app(stranger.root / "runs", guard=Guard("127.0.0.1", 8000, ""))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        for kind in ("net", "shell", "kind"):
            answer = client.get(f"/api/network?player={kind}")
            assert 400 <= answer.status_code < 500, (kind, answer.text)


# What one names oneself


NET = '''"""A network of one's own."""
from own_nets import Plain as Net
def make(inputs):
    return Net(inputs)
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file with a network of one's own."""
    file = tmp_path / "my_net.py"
    file.write_text(NET)
    return file


def train_mine(file: Path, what: str = "Net") -> Path:
    """Train a run with it, as somebody would on the command line."""
    line = f"train tic_tac_toe --updates 1 --name mine --net.kind {file}:{what} --threads 1"
    assert typed(f"{line} --collect.games 4 --collect.steps 16 --eval.off --eval.games 2") == 0
    return Path("runs/mine")


def typed(line: str) -> int:
    """Type a command; what an earlier one was told is known only as far as it is remembered."""
    trusted._allowed.clear()
    trusted._remembered.clear()
    return main([*line.split(), "--json"])


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """The last line of what a command complained about."""
    return capsys.readouterr().err.strip().splitlines()[-1]


@pytest.mark.slow
def test_a_run_of_ones_own_goes_on_with_nothing_typed(mine: Path) -> None:
    """Each command in a process of its own, the environment in workers, evaluations beside it."""
    tests = str(Path(__file__).parent)
    variables = {key: value for key, value in os.environ.items() if key != trusted.TRUSTED}
    shell: dict[str, Any] = {"text": True, "capture_output": True, "check": False}
    train = f"train own_envs:make_cards --name mine --net.kind {mine}:Net --threads 1 --workers 1"
    lines = [f"{train} --updates 1 --collect.games 4 --collect.steps 16 --eval.games 2"]
    lines += ["resume mine --updates 2", "eval mine --games 2"]
    for line in lines:
        words = [sys.executable, "-m", "sparring", *line.split(), "--json"]
        shell["env"] = {**variables, "PYTHONPATH": tests}
        done = subprocess.run(words, **shell)  # noqa: PLW1510 - it is among the options
        assert done.returncode == 0, (line, done.stderr)


def test_a_copied_run_asks_and_a_typed_name_is_remembered(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train_mine(mine)
    assert typed(f"eval {run} --games 2") == 0
    copy = Path(shutil.copytree(run, "runs/copy")).resolve()
    assert typed(f"eval {copy} --games 2") == 2
    assert complaint(capsys) == (
        f"sparring: {copy} asks for net.kind {mine}:Net, code that you have not named; to use it: "
        f"--trust {mine}:Net (in Python: trust='{mine}:Net')"
    )
    assert typed(f"eval {copy} --games 2 --trust {mine}:Net") == 0
    assert typed(f"eval {copy} --games 2") == 0


def test_changed_code_asks(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = train_mine(mine)
    mine.write_text(NET + "# another line\n")
    assert typed(f"eval {run} --games 2") == 2
    assert "whose code has changed since you named it" in complaint(capsys)


def test_code_that_is_not_found_is_no_changed_code(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train_mine(mine)
    mine.unlink()
    assert typed(f"eval {run} --games 2") == 2
    told = complaint(capsys)
    assert "not found from here" in told and "--trust" not in told and "changed" not in told


def test_another_user_is_asked(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train_mine(mine)
    monkeypatch.setenv(trusted.STATE, "somebody else")
    assert typed(f"resume {run} --updates 2") == 2
    assert "code that you have not named" in complaint(capsys)


def test_a_function_is_named_each_time(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = train_mine(mine, "make")
    assert typed(f"eval {run} --games 2") == 2
    assert "is a function" in complaint(capsys)
    assert typed(f"eval {run} --games 2 --trust {mine}:make") == 0


def test_trust_in_python(mine: Path) -> None:
    run = train_mine(mine)
    copy = shutil.copytree(run, "runs/copy")
    trusted._allowed.clear()
    with pytest.raises(UntrustedError):
        sparring.load(copy)
    assert sparring.load(copy, trust=f"{mine}:Net").net is not None


def test_what_the_server_was_started_with_is_all_that_counts(mine: Path) -> None:
    run = train_mine(mine)
    trusted._allowed.clear()
    trusted.ignore_remembered()
    with pytest.raises(UntrustedError):
        sparring.load(run)
    trusted.allow(f"{mine}:Net")
    assert sparring.load(run).net is not None


# The names themselves


def test_a_command_line_names_what_stands_on_it(tmp_path: Path) -> None:
    line = ["train", "a:b", "--net.kind=c:d", "--roles", "x.net.kind=e:f", "--trust", "g:h"]
    assert trusted.allow_typed(line) == line[:-2]
    assert all(trusted.is_allowed_now(word) for word in ("a:b", "c:d", "e:f", "g:h"))
    assert not trusted.is_allowed_now("train")


def test_a_folder_is_no_name(tmp_path: Path) -> None:
    for folder in ("pydoc:pipepager", "x=pydoc:pipepager", "runs/y,pydoc:pipepager"):
        Path(folder).mkdir(parents=True)
    trusted.allow_typed(["eval", "pydoc:pipepager", "x=pydoc:pipepager", "y,pydoc:pipepager"])
    assert not trusted.is_allowed_now("pydoc:pipepager")


def test_a_name_without_a_form_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "x", "--trust", "pydoc"]) == 2
    assert main(["eval", "x", "--trust"]) == 2
    assert "module:factory" in capsys.readouterr().err


def test_memory_that_others_can_write_does_not_count(tmp_path: Path, mine: Path) -> None:
    trusted.allow(f"{mine}:Net")
    trusted.remember(tmp_path, [f"{mine}:Net"])
    assert trusted.read_remembered(tmp_path)
    trusted.memory_file(tmp_path).parent.chmod(0o777)
    assert not trusted.read_remembered(tmp_path)


def test_nothing_is_imported_to_look_at_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "boxed"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "inner.py").write_text("x = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = trusted.fingerprint("boxed.inner:x")
    (package / "__init__.py").write_text("raise SystemExit('changed')")
    assert first and trusted.fingerprint("boxed.inner:x") not in ("", first)
    assert trusted.fingerprint("boxed.nothing:x") == ""
    assert "boxed" not in sys.modules
