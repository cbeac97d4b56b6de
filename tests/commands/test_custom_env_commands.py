"""Commands with runs on environments of one's own: measured, played, drawn, exported."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import sparring
from sparring.cli import main
from sparring.errors import SparringWarning
from sparring.training.records.exploited import read_exploited

gymnasium = pytest.importorskip("gymnasium")

QUICK: dict[str, Any] = {
    **{"updates": 1, "quiet": True, "threads": 1, "tensorboard": False, "eval": {"off": True}},
    **{"net": {"hidden": (8,), "normalize": True}, "collect": {"games": 4, "steps": 16}},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A run on cards, one on a game for two, one on an object: paths by name."""
    root = tmp_path_factory.mktemp("runs")
    made = {}
    words: dict[str, Any] = {"cards": "own_envs:make_cards", "nim": "own_envs:make_table"}
    words["open"] = "own_envs:make_open_table"
    words |= {"walk": "own_envs:make_walk", "vector": "own_envs:make_vector"}
    words["object"] = gymnasium.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync")
    for name, game in words.items():
        with pytest.warns(SparringWarning, match="not its games"):
            made[name] = str(sparring.train(game, runs=str(root), name=name, **QUICK).run)
    return made


def told(words: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    """Run a command; return what it printed, or what it complained about."""
    assert main(words.split()) == code, capsys.readouterr().err
    said = capsys.readouterr()
    return said.err if code else said.out


def test_eval_shows_the_return(runs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    shown = told(f"eval {runs['cards']} --games 10", capsys)
    assert re.search(r"played +games +return +95 % interval +decisions\nalone +10 ", shown)
    found = json.loads(told(f"eval {runs['cards']} --games 10 --json", capsys))["results"]["alone"]
    assert found["score_low"] < found["score"] < found["score_high"]
    assert (found["games"], found["length"]) == (10, 6.0)
    assert re.search(r"alone +4 ", told(f"eval {runs['vector']} --games 4", capsys))


def test_eval_of_a_game_for_two_is_against_random_or_whoever_is_named(
    runs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = told(f"eval {runs['nim']} --games 6", capsys)
    assert re.search(r"against +win share .*return .*\nrandom ", shown)
    assert "3 deals, each from all 2 seats" in shown
    shown = told(f"eval {runs['nim']} --games 4 --against {runs['nim']}@sampled,random", capsys)
    assert f"{runs['nim']}@sampled" in shown
    shown = told(f"arena {runs['nim']} random --games 4", capsys)
    assert "every deal from all 2 seats" in shown


@pytest.mark.filterwarnings("ignore:.*not its games")
def test_a_policy_is_exploited_in_games_that_the_factory_makes(
    runs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"--decisions 100 --games 4 --threads 1 --runs {tmp_path} --kinds own"
    found = json.loads(told(f"exploit {runs['nim']} {words} --name response --json", capsys))
    assert (found["game"], found["result"]["games"]) == ("nim_v0", 4)
    assert (tmp_path / "response-own-0" / "results.json").exists()
    assert [one.kind for one in read_exploited(Path(runs["nim"]))] == ["own"]
    assert "custom environment, whose tree is not known" in told(
        f"exploit {runs['nim']} --exact", capsys, 2
    )
    why = "is a custom environment, which does not declare what it hides; leave sees out"
    assert why in told(f"exploit {runs['nim']} --kinds sees", capsys, 2)


def test_agents_search_in_copies(
    runs: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = told(f"eval {runs['cards']} --games 4 --search 8", capsys)
    assert re.search(r"alone +4 ", shown)
    shown = told(f"arena {runs['open']} {runs['open']}@8 random --games 4", capsys)
    assert re.search(r"1 .*open@8 ", shown)
    shown = played(
        f"{runs['open']} --level 6 --seed 2", "w\n?\n0\nw\n" + "0\n" * 20, monkeypatch, capsys
    )
    assert "> w\nNobody has searched yet." in shown
    assert re.search(r"open@level6 would choose: [012]\n.*open@level6: 16 simulations", shown)
    assert re.search(
        r"> w\n.*open@level6: 16 simulations, value .*\n  move  visits  value\n", shown
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("eval {nim} --search 8", "declare it in the environment: perfect_information = True"),
        ("eval {nim}@8", "declare it in the environment: perfect_information = True"),
        ("eval {vector} --search 8", "are stepped by a vector or by workers"),
        ("play {open} --search 8 --level 6", "--level and --search exclude each other"),
        ("play {open} --search 8 --against random", "random is a bot"),
        ("play {open} --search no", "--search no: 'no' is no budget"),
        ("bench search {cards}", "bench search measures native games"),
    ],
)
def test_what_cannot_be_searched(
    runs: dict[str, str], capsys: pytest.CaptureFixture[str], words: str, reason: str
) -> None:
    complaint = told(words.format(**runs), capsys, code=2)
    assert reason in complaint
    assert len([line for line in complaint.splitlines() if line.startswith("sparring: ")]) == 1


def played(
    words: str, typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    return told(f"play {words}", capsys)


def test_a_person_plays_with_the_environment_s_own_text(
    runs: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every = "".join(f"{card}\n" for card in range(12))
    shown = played(f"{runs['cards']} --seed 3", f"x\n?\n{every * 6}", monkeypatch, capsys)
    assert re.search(r"open \d+ \| hand [\d ]+ \| won 0\nlegal: \d+", shown)
    assert "is not legal; type one of" in shown
    assert re.search(r"cards.* would choose: \d+", shown)
    assert re.search(r"terminated after 6 steps\nyou: return \d\nPlay it again: .*--seed 3", shown)


def test_a_person_sits_where_it_wants_and_sees_what_the_seat_sees(
    runs: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = played(f"{runs['nim']} --seat 1 --seed 2", "0\n" * 20, monkeypatch, capsys)
    assert "You sit in seat 1 of 2" in shown
    assert re.search(r"\nseat 0: [012]\n", shown)
    assert re.search(r"\nyou: return -?1\n", shown)
    shown = played(f"{runs['walk']} --seed 2", "2\nq\n", monkeypatch, capsys)
    assert shown.count("legal: 0 1 2") == 2
    assert shown.endswith("Good bye.\n")


def test_frames_are_the_environment_s_own(
    runs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pytest.importorskip("PIL.Image")
    film = tmp_path / "game.gif"
    facts = json.loads(told(f"render {runs['cards']} --out {film} --episodes 2 --json", capsys))
    assert (facts["frames"], facts["seconds"]) == (14, 3.5)  # 4 a second, as the env says
    assert image.open(film).size == (12 * 16, 16)
    shown = told(f"render {runs['cards']} --out {tmp_path / 'end.png'} --width 384", capsys)
    assert re.search(r"Cards, 6 steps, terminated: return \d\n.*end.png: a still", shown)
    assert image.open(tmp_path / "end.png").size == (384, 32)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("render nim", r"nim_v0 draws no pixels: its metadata\['render_modes'\] has none"),
        ("render cards --out game.svg", "renders pixels: use --out game.gif"),
        ("render vector", "makes a vector; a single game needs a factory of a single"),
        (
            "render object",
            "CartPole-v1 was given as an object, which cannot be made again",
        ),
        ("play object", "given as an object"),
        ("eval object", "given as an object"),
        ("eval cards --set speed=2", "--set speed=2: Cards is a custom environment"),
        ("eval cards --against random", "one seat"),
        ("eval nim --against strong", "no player 'strong' for nim_v0"),
        ("eval nim --opening-plies 2", "its seeds decide how games open"),
        ("play nim --seat 2", r"--seat 2 is outside 0\.\.1"),
        ("play nim --against random,random", "names 2 players for 1 seats"),
        ("play cards --against random", "has one seat"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    words: str,
    why: str,
    runs: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    command, name, *options = words.split()
    complaint = told(" ".join([command, runs[name], *options]), capsys, code=2)
    assert re.search(why, complaint)
    assert not list(tmp_path.iterdir())


def test_runs_are_listed_and_compared(
    runs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(runs["cards"]).parent
    listed = told(f"runs --runs {root}", capsys)
    assert re.search(r"cards +own_envs:make_cards +ppo +done", listed)
    complaint = told(f"compare {runs['cards']} {runs['nim']}", capsys, code=2)
    assert "only runs of one game can be compared" in complaint


@pytest.mark.slow
def test_export_says_the_same(
    runs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    for name in ("cards", "object"):
        file = tmp_path / f"{name}.onnx"
        facts = json.loads(told(f"export {runs[name]} --onnx {file} --json", capsys))
        assert facts["max_abs_difference"] < 1e-5
        assert file.is_file()


@pytest.mark.filterwarnings("always")
def test_a_film_of_a_game_without_an_end_is_cut(
    runs: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("PIL.Image")
    monkeypatch.setattr("sparring.commands.render.MAX_FRAMES", 4)
    words = f"render {runs['cards']} --out {tmp_path / 'a.gif'} --episodes 2"
    assert main(words.split()) == 0
    said = capsys.readouterr()
    assert "cut after 4 frames" in said.err
    assert re.search(r"Cards, 3 steps, unfinished: return \d\n.*: 4 frames", said.out)
