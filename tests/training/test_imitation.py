"""What a run learns from records: decisions as a learner sees them, and weights to begin with."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparring
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.demonstrations import Demonstration
from sparring.games.recorded import Replay
from sparring.games.rules import Rules
from sparring.games.state import new_state
from sparring.league.arena import evaluate
from sparring.learn.demonstrations import Decisions, joined, split, unpacked
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy, save_policy
from sparring.training.imitation import imitate
from sparring.training.imitation.making import (
    Sources,
    absolute_source,
    bot_game,
    check_distribution,
    demonstrations,
    distribution_of,
    make_decisions,
    read_sources,
    tasks_of,
)
from sparring.training.imitation.positions import Pay, decisions_of
from sparring.training.records.metrics import EARLIEST, read

QUICK: dict[str, Any] = {
    "updates": 3,
    "checkpoint_every_s": 0.0,
    "keep": 5,
    "threads": 1,
    "device": "cpu",
    "seed": 4,
    "collect": {"games": 16, "steps": 8},
    "ppo": {"epochs": 1, "minibatch": 64},
    "net": {"hidden": (16,)},
    "eval": {"off": True},
    "opponents": ("self=1",),
    "tensorboard": False,
    "quiet": True,
}
IMITATION: dict[str, Any] = {"games": 60, "epochs": 3, "minibatch": 64, "kl_weight": 0.3}


def pay_of(rules: Rules, gamma: float = 0.9) -> Pay:
    return Pay(tuple(rules.weights(None)), gamma)


def slow_decisions(
    rules: Rules, demonstration: Demonstration, gamma: float
) -> list[tuple[bytes, list, int, float]]:
    """What a seat saw, could do and did, and what it was paid from there on, step by step."""
    state = demonstration.replay.start()
    asked, paid = [], []
    for moves in demonstration.replay.actions:
        seat = state.seat
        asked.append((seat, state.observe_bytes(seat).tobytes(), state.legal(), moves[0]))
        state.apply(moves[0])
        paid.append(state.rewards.copy())
    told = []
    for at, (seat, obs, legal, action) in enumerate(asked):
        total, discount = 0.0, 1.0
        for later in range(at, len(asked)):
            if later > at and asked[later][0] == seat:
                discount *= gamma
            total += discount * float(paid[later][seat])
        told.append((obs, legal, action, total))
    return told[demonstration.by_lot :]


@pytest.mark.parametrize(
    ("game", "bot"),
    [("tic_tac_toe", "careful"), ("leduc_poker", "solid"), ("skull_king", "captain")],
)
def test_decisions_are_those_of_the_game_played_step_by_step(game: str, bot: str) -> None:
    rules = Rules(game)
    demonstration = bot_game(rules, bot, 3, 7)
    found = decisions_of(rules, demonstration, pay_of(rules))
    slow = slow_decisions(rules, demonstration, 0.9)
    masks = unpacked(found.legal, rules.actions)
    assert len(found) == len(slow) > 0
    for at, (obs, legal, action, paid) in enumerate(slow):
        assert found.obs[at].tobytes() == obs
        assert np.flatnonzero(masks[at]).tolist() == legal
        assert found.action[at] == action
        assert found.returns[at] == pytest.approx(paid, rel=1e-5, abs=1e-6)


def test_continuous_decisions_are_those_of_the_game_played_step_by_step() -> None:
    rules = Rules("laser_hockey")
    demonstration = bot_game(rules, "strong", 3, 7)
    found = decisions_of(rules, demonstration, pay_of(rules))
    state, asked, paid = demonstration.replay.start(), [], []
    for moves in demonstration.replay.actions:
        asked += [(state.observe_bytes(seat).tobytes(), moves[seat]) for seat in (0, 1)]
        state.apply(np.array(moves))
        paid.append(state.rewards.copy())
    assert state.over and len(found) == len(asked) == 2 * len(paid)
    assert found.action.dtype == np.float32 and np.abs(found.action).max() <= 1
    returns, after = np.zeros((len(paid), 2)), np.zeros(2)
    for step in range(len(paid) - 1, -1, -1):
        after = returns[step] = paid[step] + 0.9 * after
    for at, (obs, action) in enumerate(asked):
        assert found.obs[at].tobytes() == obs
        assert found.action[at].tolist() == list(action)
    assert found.legal.shape == (len(asked), 0)
    assert found.returns == pytest.approx(returns.reshape(-1), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("squash", [False, True])
def test_numbers_that_a_policy_and_recorded_games_hold_are_imitated(
    tmp_path: Path, squash: bool
) -> None:
    rules = Rules("duel")
    torch.manual_seed(3)
    net = NetConfig(hidden=(16,), squash=squash)
    path = save_policy(Policy(rules, make_net(rules, net)), tmp_path / "mine")
    tasks = tasks_of(read_sources(rules, [str(path)]), 20, 5)
    drawn = make_decisions(rules, pay_of(rules), tasks)
    again = make_decisions(rules, pay_of(rules), tasks)
    assert (drawn.action == again.action).all() and drawn.action.shape[1] == rules.box
    assert int(drawn.game[-1]) + 1 == 20 and np.abs(drawn.action).max() <= 1
    (task,) = tasks
    files = tmp_path / "games"
    files.mkdir()
    for number, one in enumerate(demonstrations(rules, task)):
        one.replay.write(files / f"{number:02}.json")
    read = tasks_of(read_sources(rules, [str(files)]), 0, 0)
    for name, array in make_decisions(rules, pay_of(rules), read).arrays.items():
        assert np.array_equal(array, drawn.arrays[name], equal_nan=name == "returns"), name
    text = (files / "00.json").read_text()
    (files / "00.json").write_text(re.sub(r"\[\[\[[-0-9.e]+,", "[[[3.5,", text, count=1))
    assert make_decisions(rules, pay_of(rules), read).action[0, 0] == 1, "as the game clips it"
    (files / "00.json").write_text(re.sub(r"\[\[\[[-0-9.e]+,", "[[[", text, count=1))
    with pytest.raises(ConfigError, match=r"00\.json: step 1: an action of duel is 2 numbers"):
        make_decisions(rules, pay_of(rules), read)


def test_a_game_that_was_not_played_out_has_moves_to_learn_and_no_values() -> None:
    rules = Rules("tic_tac_toe")
    whole = bot_game(rules, "careful", 0, 0)
    cut = Demonstration(Replay(rules, 0, ("a", "b"), whole.replay.actions[:3], (0.0, 0.0), None))
    found = decisions_of(rules, cut, pay_of(rules))
    assert len(found) == 3
    assert np.isnan(found.returns).all()
    given_up = Demonstration(cut.replay, paid={"result": (-1.0, 1.0)})
    found = decisions_of(rules, given_up, pay_of(rules))
    assert found.returns == pytest.approx([-0.9, 1.0, -1.0])


def test_forced_decisions_are_left_out_where_the_run_skips_them() -> None:
    plain, skipping = Rules("skull_king"), Rules("skull_king", {"skip_forced": 1})
    demonstration = bot_game(plain, "captain", 1, 0)
    asked, chosen = (
        decisions_of(one, demonstration, pay_of(one, 1.0)) for one in (plain, skipping)
    )
    free = unpacked(asked.legal, plain.actions).sum(1) > 1
    free[0] = True  # a pool asks for the first decision of a game whatever there is to choose
    assert (chosen.obs == asked.obs[free]).all()
    assert chosen.returns == pytest.approx(asked.returns[free], abs=1e-4)


def test_the_same_seed_gives_the_same_decisions_and_others_differ() -> None:
    rules = Rules("tic_tac_toe")

    def made(seed: int) -> Decisions:
        tasks = tasks_of(read_sources(rules, ["careful", "random"]), 70, seed)
        return make_decisions(rules, pay_of(rules), tasks)

    one, again, other = made(1), made(1), made(2)
    for name, array in one.arrays.items():
        assert (array == again.arrays[name]).all()
    assert len(one) != len(other) or (one.action != other.action).any()
    learned, held_out = split(one, 0.1, 0)
    assert not set(one.game[learned]) & set(one.game[held_out])
    assert len(learned) + len(held_out) == len(one)
    assert len(joined([one, again])) == 2 * len(again)


def test_other_flags_are_taken_where_the_game_comes_out_the_same() -> None:
    plain, shaped = Rules("shogi"), Rules("shogi", {"material": 0.05})
    demonstration = bot_game(plain, "greedy", 1, 0)
    found = decisions_of(shaped, demonstration, pay_of(shaped))
    assert (found.action == decisions_of(plain, demonstration, pay_of(plain)).action).all()
    short = Rules("shogi", {"max_plies": 20})
    with pytest.raises(ConfigError, match="played with max_plies=512 instead of 20, and so"):
        decisions_of(short, demonstration, pay_of(short))


def test_a_policy_plays_the_games_that_are_imitated(tmp_path: Path) -> None:
    rules, other = Rules("tic_tac_toe"), Rules("kuhn_poker")
    torch.manual_seed(3)
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(16,))))
    path = save_policy(policy, tmp_path / "mine")
    save_policy(Policy(other, make_net(other, NetConfig(hidden=(16,)))), tmp_path / "other")

    def made(word: str, *others: str) -> Decisions:
        tasks = tasks_of(read_sources(rules, [word, *others]), 60, 5)
        return make_decisions(rules, pay_of(rules), tasks)

    drawn, again, best = made(str(path)), made(str(path)), made(f"{path}@greedy")
    for name, array in drawn.arrays.items():
        assert (array == again.arrays[name]).all()
    assert int(drawn.game[-1]) + 1 == 60
    legal = unpacked(best.legal, rules.actions)
    assert (best.action == policy.act(best.obs, legal, greedy=True)).all(), (
        "openings by lot are left out"
    )
    assert len(np.unique(best.obs, axis=0)) > 20
    shares = policy.probabilities(drawn.obs, unpacked(drawn.legal, rules.actions))
    assert 0.2 < (drawn.action == shares.argmax(1)).mean() < 1, "as probable as it plays them"
    assert int(made(str(path), "careful").game[-1]) + 1 == 60, "bots and policies share the games"
    with pytest.raises(ConfigError, match="kuhn_poker"):
        read_sources(rules, [str(tmp_path / "other")])
    assert absolute_source(rules, f"{path}@greedy") == f"{path}@greedy"


@pytest.mark.slow
def test_processes_make_the_same_decisions_and_say_what_is_wrong(tmp_path: Path) -> None:
    for game, bot in (("duel", "pusher"), ("tic_tac_toe", "careful")):
        rules = Rules(game)
        tasks = tasks_of(read_sources(rules, [bot]), 300, 1)
        alone = make_decisions(rules, pay_of(rules), tasks)
        helped = make_decisions(rules, pay_of(rules), tasks, threads=2)
        for name, array in alone.arrays.items():
            assert np.array_equal(array, helped.arrays[name], equal_nan=name == "returns")
    (tmp_path / "game.json").write_text("{}")
    wrong = tasks_of(read_sources(rules, [str(tmp_path)]), 0, 0) + tasks
    with pytest.raises(ConfigError, match=r"game\.json: this is no replay"):
        make_decisions(rules, pay_of(rules), wrong, threads=2)


def test_a_move_that_is_not_legal_names_file_and_move(tmp_path: Path) -> None:
    state = new_state("tic_tac_toe")
    played = [4, 0, 8]
    for action in played:
        state.apply(action)
    path = Replay.of(state, played, ("a", "b")).write(tmp_path / "game.json")
    path.write_text(path.read_text().replace("[4, 0, 8]", "[4, 0, 4]"))
    rules = Rules("tic_tac_toe")
    with pytest.raises(ConfigError, match=r"game\.json, move 3: .*action 4 .* is not legal"):
        make_decisions(rules, pay_of(rules), tasks_of(read_sources(rules, [str(tmp_path)]), 0, 0))
    with pytest.raises(ConfigError, match="neither a bot of tic_tac_toe nor a run, file"):
        read_sources(rules, ["carefull"])
    with pytest.raises(ConfigError, match=r"has no files that end in \.json"):
        read_sources(rules, [str(tmp_path / "*.kif")])
    with pytest.raises(ConfigError, match=r"game\.json: a game of tic_tac_toe, and this run plays"):
        rules = Rules("shogi")
        make_decisions(rules, pay_of(rules), tasks_of(read_sources(rules, [str(path)]), 0, 0))


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that learned from a bot before it played."""
    agent = sparring.train(
        "tic_tac_toe",
        imitate=("careful",),
        imitation=IMITATION,
        runs=str(tmp_path_factory.mktemp("runs")),
        **QUICK,
    )
    return agent.run


def test_a_run_begins_with_the_clone_and_is_held_near_to_it(taught: Path) -> None:
    clone = load_policy(taught / "imitated")
    assert float(clone.net.value_scale) != 1
    events = json.loads((taught / "events.json").read_text())
    facts = next(event for event in events if event["event"] == "imitated")
    assert facts["bots"] == ["careful"]
    assert facts["games"] <= 60
    assert 0 < facts["accuracy"] < 1
    assert facts["epochs"] == 3
    curves = read(taught, since=EARLIEST)
    assert curves["losses/reference_kl"][2][0] < 0.05  # the first update begins at the clone itself
    updates, seconds, accuracy = curves["imitation/accuracy"]
    assert updates[-1] == -1
    assert seconds[-1] == 0
    assert accuracy[-1] == pytest.approx(facts["accuracy"], abs=1e-4)


def test_a_resumed_run_has_its_anchor_again(taught: Path) -> None:
    again = sparring.resume(taught, number=1, quiet=True)
    assert again.run != taught
    one, other = (load_policy(run / "checkpoints" / "00000003") for run in (taught, again.run))
    for (name, mine), theirs in zip(
        one.net.state_dict().items(), other.net.state_dict().values(), strict=True
    ):
        assert mine.equal(theirs), name


def test_a_run_of_continuous_actions_begins_with_its_clone_and_resumes(tmp_path: Path) -> None:
    agent = sparring.train(
        "duel", imitate=("pusher",), imitation=IMITATION, runs=str(tmp_path), **QUICK
    )
    events = json.loads((agent.run / "events.json").read_text())
    facts = next(event for event in events if event["event"] == "imitated")
    assert facts["native"] and 0 < facts["error"] < 1 and "accuracy" not in facts
    curves = read(agent.run, since=EARLIEST)
    assert curves["losses/reference_kl"][2][0] < 0.05  # the first update begins at the clone itself
    assert curves["imitation/error"][2][-1] == pytest.approx(facts["error"], abs=1e-4)
    again = sparring.resume(agent.run, number=1, quiet=True)
    one, other = (load_policy(run / "checkpoints" / "00000003") for run in (agent.run, again.run))
    for (name, mine), theirs in zip(
        one.net.state_dict().items(), other.net.state_dict().values(), strict=True
    ):
        assert mine.equal(theirs), name


@pytest.mark.slow
def test_a_clone_of_continuous_actions_plays_as_its_bot_does(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**QUICK, "updates": 1, "net": {"hidden": (64,)}}
    settings["ppo"] = {**settings["ppo"], "lr": 1e-9}
    agent = sparring.train(
        "duel",
        imitate=("pusher",),
        imitation={"games": 200, "epochs": 4, "minibatch": 64, "lr": 3e-3},
        runs=str(tmp_path),
        **settings,
    )
    clone = sparring.load(agent.run / "imitated")
    torch.manual_seed(0)
    fresh = Policy(clone.rules, make_net(clone.rules, NetConfig(hidden=(64,))))
    shares = [
        evaluate(one, ["pusher"], games=256)["pusher"].first.win_share for one in (fresh, clone)
    ]
    assert shares[0] < 0.1 and shares[1] > 0.4


@pytest.mark.parametrize(
    ("game", "settings", "said"),
    [
        ("laser_hockey", {"imitate": ("strong",), "algo": "sac"}, "imitates demonstrations"),
        ("tic_tac_toe", {"imitate": ("careful",), "algo": "dqn"}, "ppo"),
        (
            "skull_king",
            {"imitate": ("captain",), "hierarchy": {"on": True}},
            "leave hierarchy.on out",
        ),
        ("tic_tac_toe", {"imitate": ("carefree",)}, "neither a bot"),
        (
            "tic_tac_toe",
            {"imitate": ("careful",), "imitation": {"targets": "distribution"}},
            "careful has actions alone; imitate runs and policies",
        ),
    ],
)
def test_what_cannot_be_taught_is_refused(
    game: str, settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        sparring.train(game, runs=str(tmp_path / "runs"), quiet=True, updates=1, **settings)
    assert not (tmp_path / "runs").exists()


def test_distributions_that_no_network_computes_are_refused(tmp_path: Path) -> None:
    rules = Rules("duel")
    policy = Policy(rules, make_net(rules, NetConfig(hidden=(16,), squash=True)))
    path = str(save_policy(policy, tmp_path / "mine"))
    found = distribution_of(rules, path)
    check_distribution(rules, Sources((), (), (path,)), found.net.config)
    with pytest.raises(ConfigError, match=r"squashes its actions.*set --net\.squash, or leave"):
        check_distribution(rules, Sources((), (), (path,)), NetConfig())
    with pytest.raises(ConfigError, match="@greedy does not draw its actions"):
        distribution_of(rules, f"{path}@greedy")


def test_a_run_that_ended_while_it_was_taught_begins_with_the_records_anew(
    taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    settings = {"imitation": IMITATION, "runs": str(tmp_path), "name": "ended", **QUICK}
    with monkeypatch.context() as patched:
        patched.setattr(imitate, "save_policy", stop)
        with pytest.raises(KeyboardInterrupt):
            sparring.train("tic_tac_toe", imitate=("careful",), **settings)
    assert not list((tmp_path / "ended" / "checkpoints").iterdir())
    again = sparring.resume(tmp_path / "ended", quiet=True)
    for mine, theirs in zip(
        load_policy(taught).net.parameters(), load_policy(again.run).net.parameters(), strict=True
    ):
        assert mine.equal(theirs)
