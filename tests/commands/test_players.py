"""A word means the same in every command, and an unknown one gets the same answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparring.cli import main
from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.checkpoint import save
from sparring.store.folders import CHECKPOINTS, CONFIG, MADE_BY_FILE
from sparring.store.lookup import find_player, locate
from sparring.store.policies import policy_meta


def make_run(path: Path, game: str = "tic_tac_toe") -> None:
    rules = Rules(game)
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(8,))))
    (path / CHECKPOINTS).mkdir(parents=True)
    tensors = {"net": dict(policy.net.state_dict())}
    save(path / CHECKPOINTS, 0, tensors=tensors, blobs={}, meta=policy_meta(rules, policy.net))
    (path / CONFIG).write_text(f'game = "{game}"\n')


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "runs" / "mine")
    return tmp_path


QUESTIONS = (
    "eval WORD",
    "arena WORD random",
    "ladder tic_tac_toe --submit WORD",
    "play WORD",
    "play tic_tac_toe --against WORD",
    "exploit WORD",
    "render WORD",
    "export WORD --html x.html",
    "usi WORD",
    "plot WORD",
    "profile WORD",
    "league WORD",
    "compare WORD runs/mine",
    "resume WORD",
    "runs WORD",
    "train tic_tac_toe --init WORD --dry-run",
    "train tic_tac_toe --opponents WORD=1 --dry-run",
)


@pytest.mark.few(8)
@pytest.mark.parametrize("command", QUESTIONS)
def test_every_command_guesses_which_run_was_meant(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.replace("WORD", "mnie").split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "did you mean 'mine'" in line


@pytest.mark.parametrize("command", ["eval WORD", "arena WORD", "render WORD", "exploit WORD"])
def test_bots_of_every_game_are_guessed_too(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.replace("WORD", "captan").split()) == 2
    assert "did you mean 'captain' (a bot of skull_king)?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("eval skull_king", "skull_king is a game; name a player: skull_king:captain, or a run"),
        ("eval random", "games have random: cage2, connect_four, "),
        ("eval careful@greedy", "careful is a bot, without a network"),
        ("eval mine@gredy", "@gredy is unknown; did you mean 'greedy'?"),
        ("eval mine/7", "runs/mine has no checkpoint 7; there are: 0"),
        ("eval mine/best", "runs/mine has no checkpoint 'best'; there are: 0; mine alone means"),
        ("eval runs/mine/last.ckpt", "runs/mine has no checkpoint 'last.ckpt'; there are: 0"),
        ("export mine/best --html x.html", "runs/mine has no checkpoint 'best'; there are: 0"),
        ("eval shogi:captain", "shogi has no bot 'captain'"),
        ("arena captain ab2", "no game together: captain of skull_king, ab2 of shogi"),
        ("plot captain", "captain is a bot of skull_king; name a run"),
        ("plot mine/0", "mine/0 is part of the run mine; name the run"),
        ("export tic_tac_toe --html x.html", "tic_tac_toe is a game; name a policy"),
        ("play captain", "play against it: sparring play skull_king --against captain"),
        ("play laser_hockey", "play it in a browser, under Play: sparring serve --open"),
        ("play laser_hockey", "watch it: sparring render laser_hockey:strong"),
        ("play skul_king", "did you mean 'skull_king'"),
        ("profile skul_king", "did you mean 'skull_king'"),
    ],
)
def test_a_word_for_something_else_is_recognized(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert told in capsys.readouterr().err


def test_a_bot_that_one_game_has_needs_no_game(capsys: pytest.CaptureFixture[str]) -> None:
    for word, game in (
        ("captain", "skull_king"),
        ("bot:captain", "skull_king"),
        ("tic_tac_toe:random", "tic_tac_toe"),
    ):
        assert main(["eval", word, "--games", "4", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["game"] == game
    assert main(["arena", "random", "captain", "--games", "4", "--json"]) == 0


def test_a_run_goes_before_an_unrelated_folder_of_its_name(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mine").mkdir()
    (here / "latest").mkdir()
    for word in ("mine", "latest"):
        assert main(["eval", word, "--games", "2", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["policy"] == "mine/0"
        assert main(["plot", word, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["run"] == "runs/mine"
    assert main(["eval", "./mine"]) == 3
    assert "mine holds no checkpoint" in capsys.readouterr().err


def test_two_runs_of_one_name_are_both_named(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(here / "mine")
    for command in ("eval mine", "plot mine", "export mine --html x.html", "league mine"):
        assert main(command.split()) == 2
        assert "mine may be ./mine or runs/mine; write one" in capsys.readouterr().err
    assert (locate("./mine"), locate("runs/mine")) == (Path("mine"), Path("runs/mine"))
    assert locate("./mine/0") == Path("mine") / CHECKPOINTS / "00000000"


def test_a_bot_goes_before_the_beginning_of_a_runs_name(here: Path) -> None:
    make_run(here / "runs" / "captain-2")
    make_run(here / "runs" / "captain-3")
    assert find_player("captain").games == ("skull_king",)
    make_run(here / "runs" / "captain")
    assert find_player("captain").path == Path("runs/captain")
    assert find_player("captain", Rules("skull_king")).bot == "captain"


def test_what_a_run_was_taught_by_is_named_behind_it(here: Path) -> None:
    (here / "runs" / "mine" / "imitated").mkdir()
    assert locate("mine/imitated") is None
    (here / "runs" / "mine" / "imitated" / "manifest.json").touch()
    assert locate("latest/imitated") == locate("mine/imitated") == Path("runs/mine/imitated")


def test_a_run_that_a_command_made_for_itself_is_never_the_latest(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(here / "runs" / "response")
    (here / "runs" / "response" / MADE_BY_FILE).write_text('{"command": "exploit"}')
    assert locate("latest") == Path("runs/mine")
    assert locate("response") == Path("runs/response")
    assert main(["runs"]) == 0
    listed = capsys.readouterr().out
    assert "response" in listed and "latest: mine" in listed
    (here / "runs" / "mine").rename(here / "elsewhere")
    assert main(["runs"]) == 0
    assert "latest" not in capsys.readouterr().out
    assert main(["plot", "latest"]) == 2
    assert "runs (commands made them all): response" in capsys.readouterr().err
