"""Attention: what it says about entities, in whatever order they lie, and what it refuses."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sparring import ConfigError, Pool, Rules
from sparring.config import NetConfig
from sparring.games.entities import (
    EntityActions,
    EntityPairActions,
    EntitySet,
    EntitySpec,
    columns,
    entities_of,
    rows,
)
from sparring.nets.attention import AttentionNet, spans_of
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.nets.run.captured import CapturedNet
from sparring.nets.sizes import count
from sparring.store.policies import load_policy, save_policy
from sparring.web.networks import pack_network

GAMES: dict[str, dict[str, Any]] = {
    "skull_king": {},
    "skull_king with powers": {"abilities": 1, "num_players": 3},
    "kuhhandel": {},
}
FLAGS: dict[str, list[dict[str, Any]]] = {
    "skull_king": [
        {"num_players": players, "abilities": abilities, "obs": obs, "history": 1, **more}
        for players, abilities, obs in product((2, 4, 8), (0, 1), ("FULL", "COMPACT"))
        for more in ({"ghost": 0, "deck": "CLASSIC66"}, {"phase_embed": 1, "rounds": [3]})
    ],
    "kuhhandel": [
        {"num_players": players, "history": history} for players in (3, 4, 5) for history in (0, 1)
    ],
}


def make(rules: Rules, **settings: Any) -> AttentionNet:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = {"token_width": 16, "token_heads": 2, **settings}
    net = make_net(rules, NetConfig(kind="attention", **settings))
    assert isinstance(net, AttentionNet)
    for parameter in net.parameters():  # nothing hides behind weights that begin at 0
        torch.nn.init.normal_(parameter, std=0.3)
    return net


def played(rules: Rules, games: int = 8, steps: int = 9) -> Tensor:
    """Rows from random games, some steps apart."""
    pool = Pool(rules, games, seed=1, threads=1)
    found = [pool.reset().obs.copy()]
    for _ in range(steps):
        for _ in range(5):
            batch = pool.step(pool.sample_actions())
        found.append(batch.obs.copy())
    return torch.from_numpy(np.concatenate(found))


def game(case: str) -> Rules:
    return Rules(case.split(maxsplit=1)[0], GAMES[case])


# A slow, obvious network: one row, one thing, one head at a time


def plain(net: AttentionNet, rules: Rules, row: Tensor) -> tuple[list[float], float]:
    """What the network says about a row."""
    weights = dict(net.named_parameters())
    numbers = torch.from_numpy(rules.widen(row.numpy()[None])[0])

    def linear(name: str, x: Tensor) -> Tensor:
        y = weights[f"{name}.weight"] @ x
        return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y

    def norm(name: str, x: Tensor) -> Tensor:
        centered = x - x.mean()
        scaled = centered / torch.sqrt((centered**2).mean() + 1e-5)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    hidden = torch.relu(numbers @ weights["first.weight"] + weights["first.bias"])
    declared = entities_of(rules)
    tokens: dict[tuple[str, int], Tensor] = {("", 0): linear("table", hidden)}
    for entities in declared.sets:
        for item in range(entities.items):
            if entities.present and not numbers[entities.present[item]]:
                continue
            token = weights[f"sets.{entities.name}.identity"][item]
            if entities.constants:
                token = token + linear(
                    f"sets.{entities.name}.known", torch.tensor(entities.constants[item])
                )
            if entities.features:
                told = [numbers[at] if at is not None else 0.0 for at in entities.features[item]]
                token = token + linear(f"sets.{entities.name}.seen", torch.tensor(told))
            tokens[entities.name, item] = token
    for at in range(net.config.token_layers):
        tokens = plain_layer(net, f"encoder.{at}", tokens, linear, norm)
    tokens = {who: norm("end", token) for who, token in tokens.items()}
    logits: dict[int, float] = {}
    for at, pointer in enumerate(one for one in declared.pointers if one.actions):
        for items, action in pointer.actions.items():
            if isinstance(pointer, EntityActions):
                asks, asked = ("", 0), (pointer.entity_set, items)
            else:
                asks, asked = (pointer.first, items[0]), (pointer.second, items[1])
            if asked in tokens:
                query = linear(f"pointers.{at}.query", tokens[asks])
                key = linear(f"pointers.{at}.key", tokens[asked])
                logits[action] = float(query @ key) / math.sqrt(len(key))
            else:
                logits[action] = 0.0
    others = [action for action in range(rules.actions) if action not in logits]
    said = linear("policy_head", tokens["", 0]).tolist()
    logits |= dict(zip(others, said, strict=True))
    value = float(linear("value_head", tokens["", 0]))
    return [logits[action] for action in range(rules.actions)], value


def plain_layer(
    net: AttentionNet, name: str, tokens: dict[Any, Tensor], linear: Any, norm: Any
) -> dict[Any, Tensor]:
    heads, width = net.config.token_heads, net.config.token_width
    each = width // heads
    look = {
        who: linear(f"{name}.look", norm(f"{name}.before", token)) for who, token in tokens.items()
    }
    found = {}
    for who, token in tokens.items():
        taken = []
        for head in range(heads):
            part = slice(head * each, (head + 1) * each)
            query = look[who][:width][part]
            keys = [look[other][width : 2 * width][part] for other in tokens]
            values = [look[other][2 * width :][part] for other in tokens]
            fits = [math.exp(float(query @ key) / math.sqrt(each)) for key in keys]
            taken.append(sum(f / sum(fits) * v for f, v in zip(fits, values, strict=True)))
        after = token + linear(f"{name}.seen", torch.cat(taken))
        up = torch.relu(linear(f"{name}.up", norm(f"{name}.between", after)))
        found[who] = after + linear(f"{name}.down", up)
    return found


@pytest.mark.parametrize("case", GAMES)
@torch.no_grad()
def test_it_is_a_loop_over_entities(case: str) -> None:
    rules = game(case)
    net = make(rules)
    obs = played(rules)[[3, 25, 47, 70]]
    heads = net(obs)
    for at, row in enumerate(obs):
        logits, value = plain(net, rules, row)
        assert torch.allclose(heads["policy"][at], torch.tensor(logits), atol=1e-5)
        assert float(heads["value"][at]) == pytest.approx(value, abs=1e-5)


@torch.no_grad()
def test_cards_in_another_order_have_the_same_logits() -> None:
    """Tokens are a set: whoever permutes them permutes what is said about them."""
    rules = Rules("skull_king")
    net, obs = make(rules), played(Rules("skull_king"))
    heads = net(obs)
    chosen = net.sets["card"].assign

    def shuffled(numbers: Tensor) -> tuple[Tensor, Tensor]:
        which, there = chosen(numbers)
        order = torch.randperm(which.shape[1])
        return which[:, order], there[:, order]

    net.sets["card"].assign = shuffled
    again = net(obs)
    assert torch.allclose(heads["policy"], again["policy"], atol=1e-5)
    assert torch.allclose(heads["value"], again["value"], atol=1e-5)


@torch.no_grad()
def test_cards_that_change_names_change_logits() -> None:
    """A hand whose cards are all renamed, with what is known of them, is the same hand."""
    rules = Rules("skull_king")
    net, obs = make(rules), played(rules)
    heads = net(obs)
    cards = entities_of(rules).sets[0]
    new = torch.randperm(cards.items)
    twin = make(rules)
    twin.load_state_dict(net.state_dict())
    own: Any = twin.sets["card"]
    own.identity[:] = net.sets["card"].identity[new]
    own.facts[:] = net.sets["card"].facts[new]
    renamed = obs.clone()
    for block in (block for block in rules.blocks if len(block.columns) == cards.items):
        for row in range(block.rows):
            at = block.first + row * cards.items
            twin.first.weight[at : at + cards.items] = net.first.weight[at : at + cards.items][new]
            places = torch.tensor([f.offset for f in rules.features[at : at + cards.items]])
            renamed[:, places] = obs[:, places[new]]
    again = twin(renamed)
    play, first = list(entities_of(rules).pointers[0].actions.values()), 11
    assert play == list(range(first, first + cards.items))
    assert torch.allclose(again["value"], heads["value"], atol=1e-5)
    assert torch.allclose(again["policy"][:, play], heads["policy"][:, play][:, new], atol=1e-5)


def test_every_legal_card_is_looked_at() -> None:
    """What is said about a hand depends on all cards of that hand, and on no others."""
    rules = Rules("skull_king")
    net, obs = make(rules, token_layers=1), played(rules, games=4)
    hand = obs[:, [rules.features[at].offset for at in entities_of(rules).sets[0].present]] != 0
    logits = net(obs)["policy"]
    own = net.sets["card"].identity
    for row in range(0, len(obs), 7):
        grad = torch.autograd.grad(logits[row, 11:85].sum(), own, retain_graph=True)[0]
        assert (grad.abs().sum(1) > 0).tolist() == hand[row].tolist()


@torch.no_grad()
@pytest.mark.parametrize("case", GAMES)
def test_room_for_more_entities_changes_nothing(case: str) -> None:
    rules = game(case)
    net, obs = make(rules), played(rules)
    wider = make(rules)
    for own in wider.sets.values():
        if own.entities.selects_present:
            own.entities = EntitySet(
                **{**vars(own.entities), "max_present": own.entities.max_present + 3}
            )
    wider.declared = EntitySpec(
        tuple(own.entities for own in wider.sets.values()), wider.declared.pointers
    )
    wider.spans, wider.output_tokens = spans_of(wider.declared)
    ours, theirs = net(obs), wider(obs)
    for name in ours:
        assert torch.allclose(ours[name], theirs[name], atol=1e-5)


@pytest.mark.parametrize("name", FLAGS)
def test_all_flags_have_entities(name: str) -> None:
    """Whatever flags do to blocks, all that is there has a token, and every action a logit."""
    for flags in FLAGS[name]:
        rules = Rules(name, flags)
        net, obs = make(rules, token_width=8), played(rules, games=4, steps=4)
        heads = net(obs)
        assert heads["policy"].shape == (len(obs), rules.actions), flags
        assert all(torch.isfinite(said).all() for said in heads.values()), flags
        for entities in entities_of(rules).sets:
            if entities.present:
                there = rules.widen(obs.numpy())[:, list(entities.present)] != 0
                assert there.sum(1).max() <= entities.tokens, flags


@pytest.mark.parametrize("case", GAMES)
def test_passes_from_flat_arrays_are_those_of_the_network(case: str) -> None:
    rules = game(case)
    config = NetConfig(kind="attention", token_width=16, token_heads=2)
    flat = CapturedNet(rules, config, 2, bf16=False, device=torch.device("cpu"))
    obs = played(rules, games=4, steps=3)
    at = flat.make_pass(len(obs), learn=True)
    net = make(rules)
    flat.load(1, net.state_dict())
    at.read(torch.stack([obs, obs]))
    at.forward()
    at.logits_grad.normal_()
    at.value_grad.normal_()
    at.backward()
    heads = net(obs)
    assert torch.allclose(heads["policy"], at.logits[1, :, : rules.actions], atol=1e-5)
    assert torch.allclose(heads["value"], at.value[1, :, 0], atol=1e-5)
    total = (heads["policy"] * at.logits_grad[1, :, : rules.actions]).sum()
    (total + (heads["value"] * at.value_grad[1, :, 0]).sum()).backward()
    mine = flat.unpack(flat.grad[1])
    for name, parameter in net.named_parameters():
        assert torch.allclose(mine[name], parameter.grad, atol=1e-3, rtol=1e-3), name


def test_it_begins_almost_alike_for_all_actions() -> None:
    rules = Rules("skull_king")
    heads = make_net(rules, NetConfig(kind="attention"))(played(rules, steps=2))
    assert heads["policy"].abs().max() < 0.1
    assert not heads["value"].any()


def test_policies_are_saved_and_loaded(tmp_path: Path) -> None:
    rules = Rules("kuhhandel")
    net, obs = make(rules), played(rules, steps=2)
    save_policy(Policy(rules, net), tmp_path / "own.policy")
    again = load_policy(tmp_path / "own.policy").net
    assert torch.equal(again(obs)["policy"], net(obs)["policy"])
    assert torch.equal(net.cpu_copy()(obs)["value"], net(obs)["value"])


def test_other_heads_are_asked_of_the_table() -> None:
    rules = Rules("skull_king")
    config = NetConfig(kind="attention", token_width=8)
    net = make_net(rules, config, heads={"policy": rules.actions, "value": 1, "wdl": 3})
    assert net(played(rules, steps=1))["wdl"].shape[1] == 3
    critic = make_net(rules, config, heads={"value": 1})
    assert list(critic(played(rules, steps=1))) == ["value"]


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("tic_tac_toe", {}, "tic_tac_toe declares none: use --net.kind mlp"),
        ("laser_hockey", {}, "laser_hockey declares none"),
        ("skull_king", {"token_heads": 3}, "token_heads 3 does not divide .* 64; nearest: 2"),
        (
            "skull_king",
            {"memory": "gru"},
            "net.memory gru needs .* net.kind attention is",
        ),
        ("skull_king", {"memory": "stack"}, "net.memory stack needs a network with memory"),
        ("skull_king", {"normalize": True}, "net.normalize needs .* --net.no-normalize"),
        ("skull_king", {"inputs": ("hand",)}, "net.inputs hand needs .* leave net.inputs out"),
    ],
)
def test_what_cannot_be_is_refused(name: str, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_net(Rules(name), NetConfig(kind="attention", **settings))


CARD = EntitySet("card", 2, present=(0, 1))


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (EntitySpec(()), "needs sets, each with a different name"),
        (EntitySpec((CARD, CARD)), "needs sets, each with a different name"),
        (
            EntitySpec((EntitySet("card", 3, present=(0, 1)),)),
            "has present for 2 of 3 items of 'card'",
        ),
        (EntitySpec((EntitySet("card", 2, ((0,), (1, 2))),)), "as many features for each"),
        (
            EntitySpec((EntitySet("card", 2, max_present=1),)),
            "does not say which of 'card' are present",
        ),
        (EntitySpec((EntitySet("card", 1, ((9999,),)),)), "has feature 9999 of 531"),
        (
            EntitySpec((CARD,), (EntityActions("cart", {}),)),
            "points to 'cart'; did you mean 'card'?",
        ),
        (
            EntitySpec((CARD,), (EntityActions("card", {2: 11}),)),
            "gives action 11 to item 2 of card",
        ),
        (EntitySpec((CARD,), (EntityActions("card", {0: 99}),)), "there are 86 actions"),
        (EntitySpec((CARD,), (EntityActions("card", {0: 5, 1: 5}),)), "each for one item at most"),
        (
            EntitySpec((CARD,), (EntityPairActions("card", "card", {(0, 2): 1}),)),
            "item .0, 2. of card and card",
        ),
    ],
)
def test_what_a_declaration_gets_wrong_is_said(declared: EntitySpec, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        declared.check(Rules("skull_king"))


def test_blocks_and_columns_are_found_by_name() -> None:
    rules = Rules("kuhhandel")
    with pytest.raises(ConfigError, match="no block 'animal'; did you mean 'animals'"):
        rows(rules, "animal")
    with pytest.raises(ConfigError, match="has no 'cod'; did you mean 'cow'"):
        columns(rules, "unseen", ["cod"])
    with pytest.raises(ConfigError, match="do not match"):
        rows(rules, "animals", "opponent")
    assert rows(rules, "nothing?", "own total") == rows(rules, "own total")


def test_a_browser_does_not_run_it() -> None:
    rules = Rules("skull_king")
    with pytest.raises(ConfigError, match=r"net[.]kind attention has no passes in a browser"):
        pack_network(Policy(rules, make(rules)))


def test_products_are_counted() -> None:
    """Tokens that are not asked cost nothing behind the last layer."""
    rules, width, tokens, asked, cards, deck = Rules("skull_king"), 16, 15, 11, 10, 74
    square = width * width
    made = (len(rules.features) + width) * 4 * width + cards * deck * width + 4 * 32 * width
    first = tokens * 8 * square + 2 * tokens * tokens * width
    last = asked * 6 * square + tokens * 2 * square + 2 * asked * tokens * width
    pointers = 2 * ((1 + cards) * square + cards * width + cards * deck)
    linear = (11 + 1) * width
    assert count(make(rules)).macs == made + first + last + pointers + linear
