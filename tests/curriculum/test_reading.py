"""Phases as people write them: what is read, and what is refused with its line."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparring.cli import main
from sparring.config import TrainConfig
from sparring.curriculum.phases import Threshold
from sparring.curriculum.reading import read_phases
from sparring.curriculum.rewards import read_rewards
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.schedule import Moment, Schedule
from sparring.training.planning.curricula import absolute_phases
from sparring.training.planning.custom import rules_of
from sparring.training.planning.settings import read_config, with_preset, written

WHOLE = """
game = "laser_hockey"

[[phases]]
name = "shoot"
episodes = 8_000
opponents = ["idle=1"]
set = { mode = "TRAIN_SHOOTING" }
rewards = { closeness = "0ep:21,600ep:21,1000ep:2.5" }
ppo = { lr = 1e-3 }

[[phases]]
name = "both"
decisions = 2e6
until = { win = 0.6, against = "strong" }
opponents = { weak = "0%:1,100%:0.2", strong = 1 }
[phases.set]
mixture = [1, "0:0,1e6:1", 0.5]
mode = "MIXTURE"

[[phases]]
name = "rest"
"""


def phases_of(text: str, tmp_path: Path) -> Any:
    file = tmp_path / "phases.toml"
    file.write_text(text)
    config = with_preset(curriculum=str(file))
    return read_phases(Rules(config.game), config)


def test_phases_are_read_as_they_were_written(tmp_path: Path) -> None:
    shoot, both, rest = phases_of(WHOLE, tmp_path)
    assert (shoot.name, shoot.episodes, shoot.decisions) == ("shoot", 8000, 0)
    assert shoot.opponents == ("idle=1",)
    assert shoot.flags == {"mode": "TRAIN_SHOOTING"}
    assert shoot.rewards["closeness"].at(Moment(0, 0.0, 800)) == pytest.approx(11.75)
    assert shoot.settings == {"ppo": {"lr": Schedule.constant(1e-3)}}
    assert both.until == Threshold(0.6, against="strong")
    assert both.decisions == 2_000_000
    assert both.opponents == ("weak=0%:1.0,100%:0.2", "strong=1.0")
    assert both.flags["mixture"][1] == Schedule.read("0:0,1e6:1")
    assert not rest.has_end
    assert rest.opponents is None


def test_a_run_keeps_its_phases_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "phases.toml"
    file.write_text(WHOLE)
    config = with_preset(curriculum=str(file))
    table = written(config)
    assert table["phases"][0]["set"] == {"mode": "TRAIN_SHOOTING"}
    again = read_config(table, "config.toml")
    assert again == config
    assert read_config(json.loads(json.dumps(table)), "a checkpoint") == config


def test_json_says_the_same_as_toml(tmp_path: Path) -> None:
    (tmp_path / "phases.json").write_text(json.dumps(tomllib.loads(WHOLE)))
    config = with_preset(curriculum=str(tmp_path / "phases.json"))
    assert read_phases(Rules(config.game), config) == phases_of(WHOLE, tmp_path)


def test_from_and_to_are_decisions_of_the_run(tmp_path: Path) -> None:
    text = "[[phases]]\nto = 100\n[[phases]]\nfrom = 100\nto = 250\n[[phases]]\nfrom = 250\n"
    assert [phase.decisions for phase in phases_of(text, tmp_path)] == [100, 150, 0]


def test_to_counts_from_the_run_behind_phases_with_lengths_too(tmp_path: Path) -> None:
    text = "[[phases]]\ndecisions = 100\n[[phases]]\nto = 250\n"
    text += "[[phases]]\ndecisions = 50\n[[phases]]\nto = 400\n[[phases]]\n"
    assert [phase.decisions for phase in phases_of(text, tmp_path)] == [100, 150, 50, 100, 0]


BAD = {
    # what is wrong: (line, what the message says)
    'nmae = "x"': "no key 'nmae'; did you mean 'name'?",
    'opponents = ["kaptain=1"]': "opponents: no player 'kaptain' for skull_king",
    'opponents = ["captain=-1"]': "opponents: the weight of 'captain=-1' must be above 0",
    'opponents = { captain = "0:1,10:-1" }': "must be at least 0",
    'opponents = ["captain=0", "self=0"]': "every weight is 0",
    'opponents = ["captain=0:1,10:0"]': "at 10 every weight is 0",
    "opponents = []": "opponents: the list is empty",
    'opponents = "captain"': "opponents needs a list of texts",
    "set = { num_players = 3 }": "num_players cannot change while games run; set it for the whole",
    "set = { round_wieghts = [1] }": "no flag 'round_wieghts'; did you mean 'round_weights'?",
    "set = { round_weights = [-1] }": "round_weights=-1 is outside 0..1e+06",
    'set = { episode = "ROUND", round_weights = ["0:1,9:0"] }': "round_weights are all 0",
    "rewards = { rnak = 1 }": "rewards: no reward part 'rnak'; did you mean 'rank'?",
    'rewards = { "wroker.rank" = 1 }': "rewards: no role 'wroker'; did you mean 'worker'?",
    "rewards = { score_delta = 0 }": "every weight is 0, so there is no reward",
    'rewards = { rank = "0:1,5:2,3:4" }': "points have to be in ascending order",
    'rewards = { rank = "0:1,5%:2" }': "points are either all decisions",
    "until = { win = 0.5 }": "until: the agent may never be that strong; give decisions",
    "until = { win = 0.5, score = 3 }": "until needs either win or score",
    "until = { win = 7 }": "win 7 must be above 0, at most 1",
    'until = { win = 0.5, against = "random" }': "random is not among the opponents of evaluations",
    'until = { win = 0.5, against = "captian" }': "no bot 'captian'; did you mean 'captain'?",
    "clear_replay = true": "clear_replay: ppo has no replay buffer",
    "dqn = { lr = 1e-3 }": "dqn: the algorithm is ppo",
    "ppo = { learning = 1e-3 }": "ppo.learning is unknown",
    "ppo = { minibatch = 64 }": "ppo.minibatch cannot change in a run; those that can: lr",
    "ppo = { gamma = 2 }": "ppo.gamma 2 must be from 0 to 1",
    'ppo = { lr = "0ep:1e-3,5ep:1e-4" }': "ppo.lr 0ep:0.001,5ep:0.0001 is by finished games",
    'ppo = { lr = "0%:1e-3,100%:1e-4" }': "the phase has no length to take a percentage of",
    "decisions = -5": "decisions -5 must be at least 0",
    "decisions = 0.5": "decisions 0.5 must be a whole number",
    "decisions = 2e26": "decisions 2e+26 must be at most 1e+15",
    "name = '" + "x" * 61 + "'": "a name must be one line of at most 60 characters; shorten it",
    'name = "a\\nb"': "a name must be one line of at most 60 characters; shorten it",
    'name = "first"': "phase 1 has the same name; rename one",
    "from = 50\nto = 200": "from 50 overlaps with phase 1, which ends at 100",
    "from = 150\nto = 200": "from 150 leaves a gap after phase 1",
    "to = 100": "to 100 must be above 100",
    "": "the phase never ends, so the next one never begins",
}


@pytest.mark.parametrize(("lines", "hint"), BAD.items(), ids=range(len(BAD)))
@pytest.mark.parametrize("kind", ["toml", "json"])
def test_a_mistake_is_named_with_file_line_phase_and_key(
    lines: str, hint: str, kind: str, tmp_path: Path
) -> None:
    first = '[[phases]]\nname = "first"\nto = 100\n\n'
    text = f'{first}[[phases]]\n{lines}\n[[phases]]\nname = "last"\n'
    line = 6 if lines else 5
    if kind == "json":
        begin, second, last = tomllib.loads(text)["phases"]
        inner = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in second.items()]
        rows = [
            '{"phases": [',
            f"  {json.dumps(begin)},",
            *("", "", "  {", ",\n".join(inner), "  },"),
            f"  {json.dumps(last)}",
            "]}",
        ]
        text = "\n".join(rows)
    file = tmp_path / f"bad.{kind}"
    file.write_text(text)
    config = with_preset("skull_king", curriculum=str(file))
    with pytest.raises(ConfigError) as caught:
        read_phases(Rules("skull_king"), config)
    message = str(caught.value)
    assert hint in message
    last_line = line + 1 if "to 100 must" not in hint and "\n" in lines else line
    places = [f"{file}, line {at}: phase 2" for at in (line, last_line)]
    assert message.startswith(tuple(places))
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("a.toml", "[[phases]\n", "is not TOML"),
        ("a.json", '{"phases": [}', "is not JSON"),
        ("a.json", '{"phases": [{"name": "a", "name": "b"}]}', "key 'name' is given twice"),
        ("a.toml", "minutes = 3\n", "has no phases"),
        ("a.json", "3", "holds no table of phases"),
        ("a.json", '{"phases": [3]}', "phase 1: 3 is no table of settings"),
        ("a.toml", "minuts = 3\n[[phases]]\n", "no setting 'minuts'; did you mean 'minutes'?"),
        ("a.json", '{"curriculum": {"phases": []}}', "in a schema that skull_king does not know"),
        ("none.toml", None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(
    name: str, text: str | None, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    where = ["--runs", str(tmp_path / "runs"), "--device", "cpu"]
    assert main(["train", "skull_king", "--curriculum", str(file), *where]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert hint in line
    assert str(file) in line
    assert not (tmp_path / "runs").exists()


def test_the_last_phase_waits_for_nothing() -> None:
    phases = ('{"decisions": 10, "until": {"win": 0.5}}',)
    with pytest.raises(ConfigError, match="nothing follows the last phase"):
        read_phases(Rules("skull_king"), TrainConfig(phases=phases))


def test_lists_of_words_say_the_same_as_tables(tmp_path: Path) -> None:
    tables = """
game = "laser_hockey"
[[phases]]
opponents = { weak = "0:1,100:0.5", strong = 2 }
set = { mode = "TRAIN_DEFENSE", mixture = [1, 0, 2] }
rewards = { touch = 3, closeness = "0:1,100:0" }
"""
    words = """
game = "laser_hockey"
[[phases]]
opponents = ["weak=0:1.0,100:0.5", "strong=2.0"]
set = ["mode=TRAIN_DEFENSE", "mixture=1,0,2"]
rewards = ["touch=3", "closeness=0:1,100:0"]
"""
    (one,), (other,) = phases_of(tables, tmp_path), phases_of(words, tmp_path)
    assert (one.opponents, one.rewards) == (other.opponents, other.rewards)
    rules = Rules("laser_hockey")
    assert rules.changed(one.flags).config == rules.changed(other.flags).config


def test_where_games_begin_is_checked_with_its_line(tmp_path: Path) -> None:
    text = '[[phases]]\nstarts = ["usual=1"]\n'
    (one,) = phases_of(text, tmp_path)
    assert one.starts == ("usual=1",)
    with pytest.raises(ConfigError, match=r"line 2: phase 1: starts: .*'nowhere'"):
        phases_of(text.replace("usual", "nowhere"), tmp_path)


def test_a_run_keeps_pairs_and_weights_of_0_as_words(tmp_path: Path) -> None:
    text = """
game = "laser_hockey"
[[phases]]
decisions = 100
opponents = { weak = [["0%", 1.0], ["100%", 0.2]], strong = 1, "runs/none" = 0 }
[[phases]]
"""
    file = tmp_path / "phases.toml"
    file.write_text(text)
    config = with_preset(curriculum=str(file))
    kept = replace(config, phases=absolute_phases(config, rules_of(config)))
    first, _ = read_phases(Rules("laser_hockey"), kept)
    assert first.opponents == ("weak=0%:1.0,100%:0.2", "strong=1.0")
    assert read_phases(Rules("laser_hockey"), config)[0] == first


def test_rewards_of_a_role_may_be_a_table_in_a_table() -> None:
    rules = Rules("skull_king")
    nested = read_rewards(rules, {"manager": {"manager": "0:1,5:0"}, "score_delta": 0})
    assert nested == read_rewards(rules, ["manager.manager=0:1,5:0", "score_delta=0"])
