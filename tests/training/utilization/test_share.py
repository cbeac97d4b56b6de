"""The share of a machine that a run reaches, against examples that were reckoned by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from own_envs import make_screen
from sparring import Rules
from sparring.config import HeadsConfig, NetConfig
from sparring.learn.learner import Report
from sparring.nets.heads import head_widths
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.make import KINDS, make_net
from sparring.nets.net import Net
from sparring.nets.sizes import ROWS, count
from sparring.pools.custom import pool_of
from sparring.schedule import Schedule
from sparring.training.planning.plan import make_learner, resolve
from sparring.training.planning.settings import members_of
from sparring.training.train import complete
from sparring.training.utilization.advice import MinibatchAdvice, advise_minibatch
from sparring.training.utilization.monitor import (
    WINDOW,
    MeasuredRun,
    UtilizationMonitor,
    make_monitor,
)
from sparring.training.utilization.share import (
    Peaks,
    Utilization,
    WorkDone,
    compute_utilization,
)
from sparring.training.utilization.work import MacsPerRow, WorkPerSample, macs_of, work_of

# A network of 1,000 multiply-adds, and 1,800 of gradients, on a machine that makes a
# million of them and 50,000 decisions in a second.
PASSES = MacsPerRow(1000.0, 1800.0)
WORK = WorkPerSample(
    inference={"": PASSES.forward},
    update={"": PASSES.forward + PASSES.backward},
    epochs={"": 4},
    minibatch={"": 100},
)
PEAKS = Peaks(products=1e6, stepping=50_000.0)


def test_the_share_is_the_time_at_the_ceilings_by_the_time_that_it_took() -> None:
    done = WorkDone(
        seconds=10.0,
        rows=500.0,
        samples={"": 400.0},
        trained={"": 1600.0},
        phases={"inference": 1.5, "stepping": 0.5, "update": 7.0, "other": 1.0},
    )
    # 500 rows of 1,000: 0.5 s. 500 decisions: 0.01 s. 1,600 samples of 1,000 + 1,800: 4.48 s.
    found = compute_utilization(done, WORK, PEAKS)
    assert found.share == pytest.approx((0.5 + 0.01 + 4.48) / 10)
    assert found.bound == "update"  # 2.52 s beyond its ideal; inference has 1.0, the rest less
    assert found.line == "50 % of this machine; bound by the update"
    slow_games = replace(done, phases={"stepping": 6.0, "update": 4.0})
    assert compute_utilization(slow_games, WORK, PEAKS).line.endswith("bound by stepping the games")


def test_searches_are_bound_by_their_network_or_by_both_stages_of_their_trees() -> None:
    """The network's rows are those of the searches, and so are the steps of games."""
    phases = {"inference": 0.5, "select": 2.0, "evaluate": 4.0, "settle": 1.5, "update": 2.0}
    done = WorkDone(seconds=10.0, rows=1000.0, phases=phases)
    line = compute_utilization(done, WORK, PEAKS).line  # 3.48 s and 3.0 s beyond their ideals
    assert line.endswith("bound by the trees of the searches")
    done.phases["evaluate"] = 4.6
    assert compute_utilization(done, WORK, PEAKS).line.endswith("the network of the searches")


def test_devices_that_work_at_the_same_time_share_the_time() -> None:
    done = WorkDone(seconds=2.0, rows=50_000.0, phases={"rollout": 2.0})
    fast = Peaks(products=1e8, stepping=50_000.0)  # half a second of answers, one of stepping
    assert compute_utilization(done, WORK, fast).share == pytest.approx(1.5 / 2)
    assert compute_utilization(done, WORK, replace(fast, apart=True)).share == pytest.approx(
        1.0 / 2
    )


def test_environments_of_ones_own_are_left_out_of_both_sides() -> None:
    done = WorkDone(seconds=10.0, rows=500.0, phases={"stepping": 8.0, "inference": 2.0})
    found = compute_utilization(done, WORK, Peaks(1e6, None))
    assert found.share == pytest.approx(0.5 / 2)
    assert found.parts[0] == "25 % of this machine without stepping"


def test_no_share_is_above_all_there_is_and_the_ceilings_are_doubted_once() -> None:
    told: list[str] = []
    monitor = UtilizationMonitor(WORK, PEAKS, on_peaks_exceeded=lambda: told.append("doubt"))
    stats = {
        "learning/decisions": 500.0,
        "learning/samples": 400.0,
        "learning/optimizer_steps": 16.0,
    }
    for _ in range(2 * WINDOW):
        utilization = monitor.add_update([Report(stats, 0, 0)], 0.6, {"update": 0.6})
    assert utilization is not None
    assert (utilization.share, utilization.exceeds_peaks) == (1.0, True)
    assert "sparring doctor --measure" in utilization.line
    assert told == ["doubt"]


def test_frozen_opponents_and_epochs_that_were_not_made_are_seen() -> None:
    monitor = UtilizationMonitor(WORK, PEAKS)

    def look(opponent_rows: int, steps: float) -> Utilization | None:
        stats = {
            "learning/decisions": 100.0,
            "learning/samples": 100.0,
            "learning/optimizer_steps": steps,
        }
        return monitor.add_update([Report(stats, 0, 0, opponent_rows)], 10.0, {"update": 10.0})

    assert look(7000, 4.0) is None  # warms up; a resumed run has met others before
    # 100 own rows and 900 others: 1 s and 0.02 s; one epoch of 100 samples: 0.28 s.
    found = look(7900, 1.0)
    assert found is not None
    assert found.share == pytest.approx((1.0 + 0.02 + 0.28) / 10)


def test_what_cannot_be_reckoned_says_so_instead_of_a_number() -> None:
    config = complete("tic_tac_toe", "", {"device": "cpu", "threads": 1})
    plan = resolve(members_of(config))
    learner: Any = None
    for subject, why in (
        (MeasuredRun(plan, "mine:make", learner), "custom learner"),
        (MeasuredRun(plan, "ppo", learner, processes=True), "several processes"),
    ):
        found = make_monitor(subject).add_update([], 1.0, {})
        assert found is not None
        assert why in found.line
        assert "%" not in found.line


def by_torch(net: Net) -> tuple[float, float]:
    """Multiply-adds of a row forward and back, as torch itself counts them.

    It knows no formula for attention on a CPU but that of the two matmul_rate which attention is.
    What all rows of a pass share, such as facts about cards, goes out in the difference.
    """
    found = []
    for rows in (2, 4):
        obs = torch.zeros(rows, net.inputs.row_bytes, dtype=torch.uint8)
        with FlopCounterMode(display=False) as flops, sdpa_kernel(SDPBackend.MATH):
            heads = net(obs)
            forward = flops.get_total_flops()
            sum((said.sum() for said in heads.values()), torch.zeros(())).backward()
            found.append((forward, flops.get_total_flops() - forward))
    (few, few_back), (more, more_back) = found
    return (more - few) / 2 / 2, (more_back - few_back) / 2 / 2


SCREEN = "screen"
"""Pixels of an environment in Python, instead of a game."""
MLP = NetConfig(hidden=(24, 16), sparse=False)
TOKENS = NetConfig(kind="attention", token_width=16, token_layers=2, token_heads=2, sparse=False)
TOWER = NetConfig(kind="residual", channels=8, blocks=2, sparse=False)
MORE = HeadsConfig(wdl=Schedule.constant(1.0), score=Schedule.constant(1.0))
OF_EVERY_KIND = [
    ("tic_tac_toe", MLP, None),
    ("skull_king", replace(MLP, shared=False, norm=True), MORE),
    ("skull_king", replace(MLP, policy_hidden=(8,), value_hidden=(6, 4)), None),
    ("skull_king", replace(MLP, memory="gru", memory_width=8), MORE),
    ("tic_tac_toe", replace(MLP, memory="stack", frames=3), None),
    ("laser_hockey", MLP, None),
    ("shogi", TOWER, MORE),
    ("skull_king", TOKENS, MORE),
    ("kuhhandel", TOKENS, None),
    ("tic_tac_toe", NetConfig(kind="own_nets:Plain"), None),
    (SCREEN, NetConfig(kind="nature"), None),
    (SCREEN, NetConfig(kind="impala"), None),
]


def test_every_kind_of_network_is_held_against_torch() -> None:
    kinds = {config.kind for _, config, _ in OF_EVERY_KIND if ":" not in config.kind}
    assert kinds == set(KINDS)


@pytest.mark.few(6)
@pytest.mark.parametrize(("game", "config", "heads"), OF_EVERY_KIND)
def test_products_are_counted_as_torch_counts_them(
    game: str, config: NetConfig, heads: HeadsConfig | None
) -> None:
    rules = pool_of([make_screen()]).rules if game == SCREEN else Rules(game)
    net = make_net(rules, config, heads=head_widths(rules, heads))
    forward, backward = by_torch(net)
    passes = macs_of(net)
    assert passes and passes.forward == count(net).macs == forward
    assert passes.backward == backward


def test_roles_are_counted_one_by_one_as_torch_counts_them() -> None:
    rules = Rules("skull_king")
    roles = dict(zip(rules.roles, (MLP, replace(MLP, hidden=(64,))), strict=True))
    net = make_net(rules, MLP, roles=roles)
    config = complete("skull_king", "", {"device": "cpu", "threads": 1, "hierarchy": {"on": True}})
    work = work_of(resolve(members_of(config)), "ppo", net)
    assert work
    for role, one in nets_by_role(net):
        forward, backward = by_torch(one)
        assert (work.inference[role], work.update[role]) == (forward, forward + backward)


def test_a_network_that_cannot_be_counted_has_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    net = make_net(Rules("tic_tac_toe"), NetConfig(kind="own_nets:Plain"))
    plain = type(net.get_submodule("module"))
    usual = plain.forward

    def picky(self: Any, rows: torch.Tensor) -> Any:
        if len(rows) == ROWS[1]:
            raise ValueError("this many rows are not what it was made for")
        return usual(self, rows)

    monkeypatch.setattr(plain, "forward", picky)
    assert macs_of(net) is None


def test_a_sparse_first_layer_counts_what_is_not_0() -> None:
    rules = Rules("skull_king")
    dense, sparse = (
        macs_of(make_net(rules, NetConfig(hidden=(32, 16), sparse=s)), density=0.1)
        for s in (False, True)
    )
    width = len(rules.features) * 32
    assert dense and sparse
    assert dense.forward - sparse.forward == pytest.approx(0.9 * width)
    assert dense.backward - sparse.backward == pytest.approx(0.9 * width)


def test_learners_from_replay_and_hierarchies_are_counted_pass_by_pass() -> None:
    def work(game: str, **changes: Any) -> tuple[WorkPerSample, Any]:
        config = complete(game, "", {"device": "cpu", "threads": 1, **changes})
        plan = resolve(members_of(config))
        found = work_of(plan, config.algo, make_learner(config, plan).policy().net)
        assert found
        return found, plan

    small = {"hidden": (16,), "sparse": False}
    found, plan = work("tic_tac_toe", algo="dqn", net=small)
    net = macs_of(make_net(plan.rules, plan.net))
    assert net
    assert found.update[""] == 3 * net.forward + net.backward  # double, as usual
    assert found.trained_samples("", 640.0, 640 / plan.replay.batch) == 640.0
    found, plan = work("laser_hockey", algo="sac", net={"hidden": (16,)})
    rules = plan.rules
    actor = macs_of(make_net(rules, plan.net))
    assert actor
    widths = (len(rules.features) + rules.box, *(plan.settings[0].critic_hidden or (16,)), 1)
    critic = 2 * sum(a * b for a, b in itertools.pairwise(widths))
    wanted = 2 * actor.forward + actor.backward + 6 * critic - 2 * widths[0] * widths[1]
    assert found.update[""] == pytest.approx(wanted)
    found, plan = work("skull_king", hierarchy={"on": True})
    assert list(found.inference) == [one.role for one in plan.roles]
    role = plan.roles[0].role
    mine = WorkDone(seconds=1.0, rows=10.0, samples={role: 5.0})
    every = compute_utilization(mine, found, Peaks(1e9, None)).share
    assert every == pytest.approx(10 * found.inference[role] / 1e9)


@pytest.mark.parametrize(
    ("ratios", "update_share", "wanted"),
    [
        # Half of the time is an update that would take half as long: 1 / 0.75.
        (((1024, 1.0, 1.0), (4096, 0.5, 0.6)), 0.5, MinibatchAdvice(1024, 4096, 1 / 0.75 - 1)),
        # As good as the best, and nearer to what is learned now.
        (((1024, 1.0, 1.0), (4096, 0.5, 0.6), (16384, 0.49, 0.5)), 0.5, 4096),
        (((256, 0.8, 0.9), (1024, 1.0, 1.0)), 1.0, 256),
        (((1024, 1.0, 1.0), (4096, 0.92, 0.95)), 0.5, None),  # less than 5 %
        (((1024, 1.0, 1.0), (4096, 0.5, 1.1)), 1.0, None),  # within the noise
        (((1024, 1.0, 1.0), (4096, 1.5, 1.6)), 1.0, None),
        ((), 1.0, None),
    ],
)
def test_advice_is_given_for_gains_beyond_noise(
    ratios: Any, update_share: float, wanted: Any
) -> None:
    found = advise_minibatch(1024, ratios, update_share)
    if isinstance(wanted, MinibatchAdvice):
        assert found is not None
        assert (found.now, found.then) == (wanted.now, wanted.then)
        assert found.gain == pytest.approx(wanted.gain)
        assert found.text == "minibatch 1k -> 4k gives +33 %"
    else:
        assert (found.then if found else None) == wanted
