"""A network for every role: what each of them is paid, learns from, and leaves alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import sparring
from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.learn.advantages import discounts_of, place_roles
from sparring.learn.plan import RolePlan, Turns
from sparring.learn.ppo import PPO
from sparring.schedule import Moment

GAMES, STEPS = 6, 24
SMALL = NetConfig(hidden=(12,))
FIRST = PPOConfig(epochs=2, minibatch=64, gamma=0.9, gae_lambda=0.8)
SECOND = PPOConfig(epochs=1, minibatch=128, gamma=0.95, gae_lambda=0.6)
START = Moment(0, 0.0)
At = tuple[int, int]


def roles_of(
    rules: sparring.Rules, *, ends: bool = True, second_ppo: PPOConfig = SECOND, **nets: NetConfig
) -> list[RolePlan]:
    first, second = rules.roles
    ended_by = (first,) if ends else ()
    return [
        RolePlan(first, nets.get(first, SMALL), (FIRST,)),
        RolePlan(second, nets.get(second, replace(SMALL, hidden=(16,))), (second_ppo,), ended_by),
    ]


def learner_of(
    game: str = "skull_king",
    config: dict[str, Any] | None = None,
    lineup: tuple[Any, ...] = (),
    roles: list[RolePlan] | None = None,
    turns: Turns | None = None,
    seed: int = 5,
) -> PPO:
    """A learner whose networks have opinions about values, each in its own unit."""
    torch.set_num_threads(1)
    rules = sparring.Rules(game, config or {"rounds": [1, 2, 3]})
    parts = rules.parts[:2]
    pool = sparring.Pool(
        rules,
        GAMES,
        seed=3,
        threads=1,
        lineups=[sparring.Lineup(lineup or (0,) * rules.seats)],
        rewards={part: [0.5 + at, 1.5 - at] for at, part in enumerate(parts)},
    )
    collect = CollectConfig(games=GAMES, steps=STEPS)
    learner = PPO(pool, collect, roles or roles_of(rules), turns=turns, seed=seed)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for at, (_, net) in enumerate(learner.net.nets()):
            torch.nn.init.normal_(net.value_head.weight)
            net.rescale_value_head(2.0 + at)
    return learner


class Slow:
    """Returns of whole games in plain Python and float64, one seat and one role after another."""

    def __init__(self, learner: PPO) -> None:
        self.learner, self.step = learner, 0
        self.terms = discounts_of(learner.roles, learner.hparams_at(START))
        self.found: dict[At, dict[str, Any]] = {}
        self.waiting: dict[tuple[int, int, int], At] = {}

    def add_rollout(self) -> None:
        """Follow every seat through the rows of a rollout."""
        rollout, rules = self.learner.collector.rollout, self.learner.rules
        value = rollout.columns["value"][self.learner.collector.transitions.max_pending :]
        tails = self.tails()
        for step in range(STEPS):
            for row in range(GAMES * rules.rows):
                if rollout.policy[step, row] == 0:
                    seat, role = int(rollout.seat[step, row]), int(rollout.role[step, row])
                    worth = float(value[step * GAMES * rules.rows + row])
                    self.decide(row // rules.rows, seat, role, (self.step, row), worth)
            for (game, seat, role), at in list(self.waiting.items()):
                paid = rollout.reward[step, game, seat, role]
                self.found[at]["paid"] += float(paid)
                self.found[at]["count"] += int(rollout.skipped[step, game, seat])
                if rollout.terminated[step, game]:
                    self.close((game, seat, role), "over")
                elif rollout.truncated[step, game]:
                    tail = tails.get((step, game, seat))
                    known = tail is not None and tail[0] == role
                    self.close((game, seat, role), "cut" if known else "dropped", tail=tail)
            self.step += 1

    def decide(self, game: int, seat: int, role: int, at: At, value: float) -> None:
        """A decision closes the same role's last one, and those that it is the end of."""
        for other in range(len(self.terms.gamma_of)):
            key = (game, seat, other)
            if key not in self.waiting:
                continue
            if other == role:
                self.close(key, "next", next=at)
            elif self.terms.ended_by[other] >> role & 1:
                self.close(key, "ended")
        self.found[at] = {"role": role, "value": value, "paid": 0.0, "count": 1, "end": "open"}
        self.waiting[game, seat, role] = at

    def close(self, key: tuple[int, int, int], end: str, **more: Any) -> None:
        self.found[self.waiting.pop(key)].update(end=end, step=self.step, **more)

    def tails(self) -> dict[tuple[int, int, int], tuple[int, float]]:
        """By step, game and seat: in which role cut games were left, and what that was worth."""
        rollout, rules = self.learner.collector.rollout, self.learner.rules
        tails = {}
        names = [feature.name for feature in rules.features]
        for where, obs in zip(rollout.truncations.where, rollout.truncations.obs, strict=True):
            for place, row in zip(where, obs, strict=True):
                at = np.unravel_index(place, rollout.final_value.shape)
                role = 0 if rules.widen(row)[names.index("phase.turn")] else 1
                net = self.learner.net.net_of(rules.roles[role])
                with torch.no_grad():
                    heads = net(torch.from_numpy(row[None]))
                worth = float(heads["value"]) * float(net.value_scale)
                tails[int(at[0]), int(at[1]), int(at[2])] = role, worth
        return tails

    def advantages(self) -> dict[At, float]:
        """By decision; the sum goes on through decisions that one rollout completes."""
        result: dict[At, float] = {}
        for at in sorted(self.found, reverse=True):
            one = self.found[at]
            if one["end"] in ("open", "dropped"):
                continue
            role = one["role"]
            gamma, into = self.terms.gamma_of[role], self.terms.gamma_into[role]
            advantage = one["paid"] - one["value"]
            if one["end"] == "cut":
                advantage += gamma ** one["count"] * one["tail"][1]
            if one["end"] == "next":
                following = self.found[one["next"]]
                discount = into * gamma ** (one["count"] - 1)
                advantage += discount * following["value"]
                same = following.get("step", -1) // STEPS == one["step"] // STEPS
                if same and following["end"] not in ("open", "dropped"):
                    advantage += discount * self.terms.lambda_of[role] * result[one["next"]]
            result[at] = advantage
        return result


TABLES: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
    ("skull_king", {"rounds": [1, 2, 3]}, (0, 0, 0, 0)),
    ("skull_king", {"rounds": [2, 3], "skip_forced": 1}, (0, "captain", 0, "random")),
    ("kuhhandel", {"max_decisions": 40}, (0, "dealer", 0)),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("game", "config", "lineup"), TABLES)
@pytest.mark.parametrize("ends", [True, False])
def test_returns_of_every_role_are_those_of_plain_python(
    game: str, config: dict[str, Any], lineup: tuple[Any, ...], ends: bool
) -> None:
    """Forced moves, cuts, bots between, decisions that the rollout before left open."""
    rules = sparring.Rules(game, config)
    check_returns(learner_of(game, config, lineup, roles_of(rules, ends=ends)), ends=ends)


def test_a_role_that_looks_at_the_next_payment_alone_takes_nothing_from_others() -> None:
    """A worker of discount 0: the manager is paid for the whole round as ever."""
    rules = sparring.Rules("skull_king", {"rounds": [2, 3]})
    roles = roles_of(rules, ends=False, second_ppo=replace(SECOND, gamma=0.0))
    check_returns(learner_of("skull_king", {"rounds": [2, 3]}, roles=roles), ends=False)


def test_a_step_into_a_role_that_counts_nothing_ends_all_roles() -> None:
    """As with one network: rounds that stand alone stand alone for cards, too."""
    rules = sparring.Rules("skull_king")
    roles = roles_of(rules, ends=False)
    alone = replace(roles[0], settings=(replace(FIRST, gamma_into=(0.0, 1.0)),))
    assert discounts_of([alone, roles[1]], learner_of().hparams_at(START)).ended_by == (1, 1)
    assert discounts_of(roles, learner_of().hparams_at(START)).ended_by == (0, 0)


def check_returns(learner: PPO, *, ends: bool) -> None:
    """Play some rollouts, and compare every advantage with that of `Slow`."""
    rules = learner.rules
    slow, collector = Slow(learner), learner.collector
    hparams, rows = learner.hparams_at(START), GAMES * rules.rows
    where = np.zeros((collector.transitions.places, 2), np.intp)
    fast: dict[At, float] = {}
    for number in range(5):
        collector.collect(number)
        samples, targets = learner.targets(hparams)
        slow.add_rollout()
        max_pending = collector.transitions.max_pending
        steps = number * STEPS + np.arange(STEPS)
        where[max_pending:, 0], where[max_pending:, 1] = (
            np.repeat(steps, rows),
            np.tile(range(rows), STEPS),
        )
        for place in samples:
            fast[int(where[place, 0]), int(where[place, 1])] = float(targets["advantage"][place])
        pending_rows = collector.transitions.pending_rows()
        where[:max_pending][pending_rows >= 0] = where[pending_rows[pending_rows >= 0]]
        collector.keep_pending()
    expected = slow.advantages()
    assert fast.keys() == expected.keys()
    assert {one["role"] for at, one in slow.found.items() if at in fast} == {0, 1}
    for at, advantage in expected.items():
        assert fast[at] == pytest.approx(advantage, abs=2e-4), (at, slow.found[at])
    ends_met = {one["end"] for one in slow.found.values()}
    assert ("ended" in ends_met) == ends
    assert ("cut" in ends_met) == (rules.name == "kuhhandel")


def test_equal_networks_play_and_are_paid_as_one_network_by_role() -> None:
    """Nothing about a hierarchy itself changes a decision or its payment."""
    rules = sparring.Rules("skull_king", {"rounds": [1, 2, 3]})
    alike = replace(FIRST, gamma_into=(0.9, 0.9))
    roles = [RolePlan(role, SMALL, (alike,)) for role in rules.roles]
    learner = learner_of(roles=roles)
    pool = sparring.Pool(rules, GAMES, seed=3, threads=1)
    pool.set_rewards({part: [0.5 + at, 1.5 - at] for at, part in enumerate(rules.parts[:2])})
    collect = CollectConfig(games=GAMES, steps=STEPS)
    flat = PPO(pool, collect, alike, SMALL, seed=5, by_role=True)
    for _, net in learner.net.nets():
        net.load_state_dict(flat.net.state_dict())
    learner.collector.collect(0)
    flat.collector.collect(0)
    ours, theirs = learner.collector.rollout, flat.collector.rollout
    for name, array in theirs.rows().items():
        assert np.array_equal(ours.rows()[name], array), name
    samples, targets = learner.targets(learner.hparams_at(START))
    expected, wanted = flat.targets(flat.hparams_at(START))
    assert np.array_equal(samples, expected)
    assert np.array_equal(targets["advantage"][samples], wanted["advantage"][samples])


def learned(learner: PPO, spoil: npt.NDArray[np.intp] | None = None) -> dict[str, Any]:
    """The weights after one update; `spoil`: a role whose rows are nonsense when it learns."""
    learner.collector.collect(0)
    rollout = learner.collector.rollout
    if spoil is not None:
        theirs = np.flatnonzero(np.isin(place_roles(learner.collector), spoil))
        for array in (rollout.columns["log_prob"], rollout.obs):
            array[theirs] = 0
    learner.update(learner.hparams_at(START))
    return {name: tensor.clone() for name, tensor in learner.net.state_dict().items()}


@pytest.mark.parametrize("role", [0, 1])
def test_a_network_learns_from_the_decisions_of_its_own_role(role: int) -> None:
    """Whatever stands in the rows of others."""
    name = sparring.Rules("skull_king").roles[role]
    plain, spoilt = learned(learner_of()), learned(learner_of(), np.array([1 - role]))
    fresh = learner_of().net.state_dict()
    mine = [key for key in plain if key.startswith(f"roles.{name}.")]
    assert all(torch.equal(plain[key], spoilt[key]) for key in mine)
    assert not all(torch.equal(plain[key], spoilt[key]) for key in plain)
    assert not any(torch.equal(plain[k], fresh[k]) for k in mine if k.endswith("policy_head.bias"))


def test_a_role_whose_turn_it_is_not_stays_as_it_is() -> None:
    """Bit for bit, its optimizer too; with `alternately` it is the other's turn next."""
    for turns, learn in (
        (Turns("manager"), ["manager"] * 4),
        (Turns("alternately", 2), ["manager", "manager", "worker", "worker"]),
    ):
        learner = learner_of(turns=turns)
        for role in learn:
            before = learner.snapshot().tensors
            report = learner.iterate(0.0)[0].stats
            after = learner.snapshot().tensors
            other = {"manager": "worker", "worker": "manager"}[role]
            moved = {
                one: any(
                    not torch.equal(before["net"][key], after["net"][key])
                    for key in after["net"]
                    if key.startswith(f"roles.{one}.")
                )
                for one in (role, other)
            }
            assert moved == {role: True, other: False}
            same = after[f"optimizer.{other}"]
            kept = before[f"optimizer.{other}"]
            assert all(torch.equal(kept[key], same[key]) for key in same)
            assert f"losses/entropy/{role}" in report
            assert f"losses/entropy/{other}" not in report


def test_a_restored_learner_goes_on_bit_for_bit() -> None:
    """With open decisions of both roles, optimizers and units."""
    one = learner_of()
    one.iterate(0.0)
    saved = one.snapshot()
    assert saved.meta["has_value_scale"] == {"manager": True, "worker": True}
    again = learner_of(seed=5)
    again.restore(saved)
    for learner in (one, again):
        learner.iterate(0.5)
    ours, theirs = one.snapshot(), again.snapshot()
    for group, tensors in ours.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, theirs.tensors[group][name]), (group, name)
    assert ours.blobs == theirs.blobs


def test_rehearsing_changes_nothing() -> None:
    """Bench measures learners that go on afterwards."""
    learner = learner_of()
    learner.iterate(0.0)
    before = learner.snapshot()
    (report,) = learner.dry_run()
    assert report.stats["learning/samples"] > 0
    after = learner.snapshot()
    for group, tensors in before.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, after.tensors[group][name]), (group, name)


def test_past_selves_answer_as_their_networks_do() -> None:
    """Slots hold whole hierarchies; each row goes to the network of its role and slot."""
    rules = sparring.Rules("skull_king", {"rounds": [1, 2]})
    pool = sparring.Pool(rules, GAMES, seed=3, threads=1, lineups=[sparring.Lineup((0, 1, 2, 1))])
    roles = roles_of(rules)
    collect = CollectConfig(games=GAMES, steps=STEPS)
    learner = PPO(pool, collect, roles, seed=5, slots=2)
    past = [learner_of(seed=seed, roles=roles).net for seed in (8, 9)]
    for slot, net in enumerate(past, start=1):
        learner.put(slot, net.state_dict(), greedy=True)
    learner.collector.collect(0)
    rollout = learner.collector.rollout
    first = learner.collector.transitions.max_pending
    for slot, net in enumerate(past, start=1):
        rows = np.flatnonzero(rollout.policy.reshape(-1) == slot)
        policy = sparring.Policy(rules, net)
        best = policy.act(rollout.obs[first + rows], rollout.mask[first + rows], greedy=True)
        assert len(rows) > 10
        assert np.array_equal(rollout.action[first + rows], best)
    with pytest.raises(sparring.ConfigError, match="one for all roles"):
        learner.put(1, past[0].net_of("manager").state_dict())
