"""The fused learner on the GPU computes what the readable one does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from sparring.config import NetConfig, PPOConfig
from sparring.learn.fused import FusedPPO
from sparring.learn.host_games import HostGames
from sparring.learn.ppo import ppo_loss
from sparring.learn.transitions import Assembler
from sparring.nets.distribution import Sampler
from sparring.nets.make import make_net
from sparring.nets.net import head_width
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool

PPO_ = PPOConfig(games=64, steps=24, minibatch=512, epochs=2, gamma_into=(0, 1), target_kl=0.0)
EXACT = replace(PPO_, bf16=False)
NETS = {
    "shared": NetConfig(hidden=(64, 32)),
    "towers": NetConfig(hidden=(64, 64, 32), shared=False),
    "one layer": NetConfig(hidden=(64,)),
    "tanh": NetConfig(hidden=(64, 32), shared=False, activation="tanh"),
    # The test game with continuous actions.
    "gaussian": NetConfig(hidden=(64, 32)),
    "gaussian, predicted spread": NetConfig(hidden=(64, 32), spread="predicted", squash=True),
    # Shogi.
    "residual": NetConfig(kind="residual", channels=16, blocks=2),
}


@pytest.fixture(autouse=True)
def exact_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)


def learner(
    config: PPOConfig = EXACT,
    net: NetConfig = NETS["towers"],
    seeds: tuple[int, ...] = (0,),
    *,
    graphs: bool = False,
    game: str = "skull_king",
) -> FusedPPO:
    lineups = {
        "skull_king": [Lineup((0,) * 4), Lineup((0, "captain", "rule_easy", "random"))],
        "duel": [Lineup((0, 0)), Lineup((0, "pusher"))],
        "shogi": [Lineup((0, 0)), Lineup((0, "random"))],
    }
    flags = {"material": 0.3} if game == "shogi" else {}
    if game == "shogi":
        config = replace(config, gamma_into=())
    games = config.games * len(seeds)
    pool = CudaPool(game, games, config=flags, seeds=seeds, lineups=lineups[game])
    return FusedPPO(pool, config, net, graphs=graphs)


def game_of(net: str) -> str:
    if "gaussian" in net:
        return "duel"
    return "shogi" if "residual" in net else "skull_king"


def masks(legal: torch.Tensor, actions: int) -> torch.Tensor:
    action = torch.arange(actions, device=legal.device)
    return (legal[:, action // 64] >> (action % 64) & 1).to(torch.uint8)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("bf16", [False, True])
def test_forward_is_that_of_the_policy_net(net: str, bf16: bool) -> None:
    ppo = learner(replace(PPO_, bf16=bf16), NETS[net], (4, 5), game=game_of(net))
    ppo._play()
    width = head_width(ppo.pool.rules)
    for member in range(2):
        module = make_net(ppo.pool.rules, NETS[net])
        module.load_state_dict(ppo.net.state(member))
        each = ppo.rollout.rows // 2
        rows = slice(member * each, (member + 1) * each)
        obs = ppo.rollout.obs[ppo.rollout.at(23)][rows].cpu()
        logits, value = module(obs)
        bias = ppo.net.policy_bias[member].flatten()[:width]
        mine = (ppo.acting.logits[member, :, :width] + bias).cpu()
        assert torch.allclose(mine, logits, atol=3e-3 if bf16 else 1e-5)
        assert torch.allclose(ppo.acting.value[member, :, 0].cpu(), value, atol=1e-5)


@pytest.mark.parametrize("net", ["towers", "residual"])
def test_weights_survive_the_way_there_and_back(net: str) -> None:
    ppo = learner(net=NETS[net], game=game_of(net))
    module = make_net(ppo.pool.rules, NETS[net])
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    ppo.net.load(0, module.state_dict())
    for name, tensor in ppo.net.state(0).items():
        assert torch.equal(tensor, module.state_dict()[name]), name


def test_actions_are_those_of_the_cpu_sampler() -> None:
    ppo = learner(replace(EXACT, games=2048))
    with torch.no_grad():
        ppo.net.weight.add_(torch.randn_like(ppo.net.weight) * 0.05)
        ppo.net.compute.copy_(ppo.net.weight * ppo.net.scale)
    ppo.clock.fill_(7)
    ppo._play()
    rollout, step = ppo.rollout, 23
    at = rollout.at(step)
    bias = ppo.net.policy_bias[0, 0, :86]
    logits = ppo.acting.logits[0, :, :86] + bias
    mask = masks(rollout.legal[at], 86).cpu().numpy()
    action, log_prob = Sampler(0).draw(logits.cpu(), mask, rollout=7, step=step)
    same = action == rollout.action[at].cpu().numpy()
    assert same.mean() > 0.999
    off = np.abs(log_prob - rollout.log_prob[at].cpu().numpy())[same]
    assert off.max() < 1e-4
    assert mask[np.arange(2048), rollout.action[at].cpu().numpy()].all()


@pytest.mark.parametrize("net", ["gaussian", "gaussian, predicted spread"])
def test_continuous_actions_are_those_of_the_cpu_sampler(net: str) -> None:
    ppo = learner(replace(EXACT, games=2048), NETS[net], game="duel")
    with torch.no_grad():
        ppo.net.weight.add_(torch.randn_like(ppo.net.weight) * 0.05)
        ppo.net.compute.copy_(ppo.net.weight * ppo.net.scale)
    ppo.clock.fill_(7)
    ppo._play()
    rollout, step = ppo.rollout, 23
    at = rollout.at(step)
    head = ppo.acting.logits[0, :, :4] + ppo.net.policy_bias[0, 0, :4]
    mask = np.zeros((4096, 0), np.uint8)
    action, log_prob = Sampler(0).draw(head.cpu(), mask, rollout=7, step=step)
    asked = rollout.policy[step].cpu().numpy() >= 0
    drawn = rollout.action[at].cpu().numpy()
    assert 0.5 < asked.mean() < 1
    assert np.abs(action - drawn)[asked].max() < 1e-3
    assert np.abs(log_prob - rollout.log_prob[at].cpu().numpy())[asked].max() < 1e-3
    assert (drawn[~asked] == 0).all()
    if ppo.net.squash:
        assert np.allclose(rollout.played.cpu().numpy(), np.tanh(drawn), atol=1e-6)


def test_advantages_are_those_of_the_cpu() -> None:
    ppo = learner()
    rules = ppo.pool.rules
    assembler = Assembler(rules, 64, 24)
    rollout = ppo.rollout
    for _ in range(3):
        ppo._turn_knobs(0.0)
        ppo._play()
        arrays = {
            name: getattr(rollout, name).cpu().numpy()
            for name in ("seat", "role", "policy", "value", "reward", "terminated", "truncated")
        }
        ppo._learn()
        advantage = assembler.run(
            **arrays,
            skipped=rollout.skipped.cpu().numpy(),
            gamma=1.0,
            lambda_=0.95,
            gamma_into=(0, 1),
        )
        assert np.array_equal(assembler.link, rollout.link.cpu().numpy())
        assert np.allclose(advantage, rollout.advantage.cpu().numpy(), atol=1e-5)
        places = np.sort(ppo.list[0, : int(ppo.sample_counts[0])].cpu().numpy())
        assert np.array_equal(places, assembler.samples())
        ppo.updates += 1


def test_games_that_are_cut_are_worth_what_the_network_says() -> None:
    pool = CudaPool("kuhhandel", 64, seed=2, config={"max_decisions": 50})
    ppo = FusedPPO(pool, replace(EXACT, gamma_into=(), steps=120), NETS["shared"], graphs=False)
    for _ in range(3):  # so that values are not all 0
        ppo.iterate(0.0)
    ppo._turn_knobs(0.0)
    ppo._play()
    rollout = ppo.rollout
    cuts = int(rollout.truncated.sum())
    assert cuts >= 64
    assert int(rollout.cut_count[0]) == cuts
    ppo._value_cuts()
    module = make_net(pool.rules, NETS["shared"])
    module.load_state_dict(ppo.net.state(0))
    met = min(cuts, 64)  # one room per game; further ones are dropped, not guessed
    values = module(rollout.cut_obs[0, :met].cpu())[1] * module.value_scale
    where = (rollout.cut_at[0, :met].cpu() >> 1).long()
    mine = rollout.final_value.flatten().cpu()
    assert torch.allclose(mine[where], values.detach(), atol=1e-4)
    assert int(mine.isfinite().sum()) == met
    assembler = Assembler(pool.rules, 64, 120)
    before = rollout.open.cpu().numpy().copy()
    assembler.open[:] = np.frombuffer(before.tobytes(), assembler.open.dtype)
    names = ("seat", "role", "policy", "value", "reward", "terminated", "truncated", "skipped")
    arrays = {name: getattr(rollout, name).cpu().numpy() for name in names}
    ppo._weigh()
    final_value = rollout.final_value.cpu().numpy()
    advantage = assembler.run(**arrays, final_value=final_value, gamma=1.0, lambda_=0.95)
    assert np.allclose(advantage, rollout.advantage.cpu().numpy(), atol=1e-4)


def test_every_epoch_meets_every_sample_once() -> None:
    ppo = learner(seeds=(1, 2, 3))
    ppo._turn_knobs(0.0)
    ppo._play()
    ppo._value_cuts()
    ppo._weigh()
    orders = []
    for epoch in range(2):
        ppo._shuffle(epoch)
        met = ppo.picked.cpu().clone()
        for member in range(3):
            picked = met[:, member].flatten()
            picked = picked[picked >= 0]
            wanted = ppo.list[member, : int(ppo.sample_counts[member])].cpu()
            assert torch.equal(picked.sort().values, wanted.sort().values)
        orders.append(met[0, 0])
    assert not torch.equal(*orders)


@pytest.mark.parametrize(
    ("net", "bf16"),
    [
        *((net, False) for net in NETS),
        # A density is as steep as its spread is narrow: means rounded to bf16 change the ratios
        # of a Gaussian too much to compare them with a float32 network's.
        *((net, True) for net in NETS if "gaussian" not in net),
    ],
)
def test_gradients_are_those_of_autograd(net: str, bf16: bool) -> None:
    # Rounding in bf16 would push ratios and values over narrow edges.
    clip, value_clip = (0.2, 3.0) if bf16 else (0.02, 0.3)
    config = replace(PPO_, bf16=bf16, clip=clip, value_clip=value_clip)
    ppo = learner(config, NETS[net], (1, 2), game=game_of(net))
    for _ in range(3):  # away from the start, where ratios are 1 and gradients vanish
        ppo.iterate(0.0)
    ppo._turn_knobs(0.0)
    ppo._play()
    ppo._value_cuts()
    ppo._weigh()
    ppo._shuffle(0)
    for part in range(ppo.parts - 1):
        ppo._descend(part)
    before = [ppo.net.state(member) for member in range(2)]
    ppo._descend(ppo.parts - 1)
    rollout = ppo.rollout
    for member in range(2):
        module = make_net(ppo.pool.rules, NETS[net])
        module.load_state_dict(before[member])
        places = ppo.picked[-1, member]
        places = places[places >= 0].long()
        logits, value = module(rollout.obs[places].cpu())
        mean, inverse_std, scale, _, _ = ppo.aims[member].tolist()
        advantage, old = rollout.advantage[places].cpu(), rollout.value[places].cpu()
        losses = ppo_loss(
            logits,
            value,
            mask=masks(rollout.legal[places], ppo.pool.rules.actions).cpu(),
            action=rollout.action[places].cpu(),
            old_log_prob=rollout.log_prob[places].cpu(),
            old_value=old / scale,
            advantage=(advantage - mean) * inverse_std,
            returns=(advantage + old) / scale,
            clip=clip,
            value_clip=value_clip,
            value_weight=config.value_weight,
            entropy_weight=config.entropy,
        )
        losses.total.backward()
        mine = ppo.net.unpack(ppo.net.grad[member] * ppo.net.scale)
        reference = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
        assert len(reference) == len(list(module.parameters()))
        length = torch.cat([grad.flatten() for grad in reference.values()]).norm()
        for name, grad in reference.items():
            off = float((mine[name] - grad).norm() / length)
            assert off < (0.02 if bf16 else 1e-4), f"{name}: {off:.2e} of the gradient's length"
        found = ppo.means[ppo.parts - 1, member].tolist()
        names = ("policy", "value", "entropy", "approx_kl", "clip_fraction")
        for name, figure in zip(names, found, strict=True):
            assert figure == pytest.approx(
                float(getattr(losses, name).detach()), rel=0.05 if bf16 else 1e-3, abs=2e-3
            ), name


def test_the_optimiser_is_adam_behind_a_clipped_gradient() -> None:
    ppo = learner()
    ppo._turn_knobs(0.0)
    ppo._play()
    ppo._value_cuts()
    ppo._weigh()
    weight = torch.nn.Parameter(ppo.net.weight[0].clone())
    optimiser = torch.optim.Adam([weight], lr=EXACT.lr, eps=1e-5)
    ppo._shuffle(0)
    for part in range(3):
        ppo._descend(part)
        weight.grad = ppo.net.grad[0] * ppo.net.scale
        torch.nn.utils.clip_grad_norm_([weight], EXACT.max_grad_norm)
        optimiser.step()
        assert torch.allclose(weight, ppo.net.weight[0], atol=1e-6)


@pytest.mark.parametrize("net", ["towers", "gaussian, predicted spread", "residual"])
@pytest.mark.parametrize("bf16", [False, True])
def test_graphs_change_nothing(net: str, bf16: bool) -> None:
    config, game = replace(PPO_, bf16=bf16), game_of(net)
    runs = [learner(config, NETS[net], graphs=graphs, game=game) for graphs in (False, True)]
    for _ in range(4):
        reports = [ppo.iterate(0.3)[0] for ppo in runs]
        for key in ("learning/samples", "charts/games", "losses/policy", "losses/value"):
            assert reports[0][key] == pytest.approx(reports[1][key], rel=1e-6), key
    assert runs[0].pool.state() == runs[1].pool.state()
    assert torch.equal(runs[0].net.weight, runs[1].net.weight)


def test_games_on_the_cpu_give_the_same_rollout() -> None:
    lineups = [Lineup((0,) * 4), Lineup((0, "captain", "rule_easy", "random"))]
    pool = Pool("skull_king", 64, seed=5, lineups=lineups, slots=2, threads=2)
    both = [
        FusedPPO(HostGames(pool, "cuda"), EXACT, NETS["towers"]),
        FusedPPO(CudaPool("skull_king", 64, seed=5, lineups=lineups), EXACT, NETS["towers"]),
    ]
    for round_ in range(3):
        reports = [ppo.iterate(0.0)[0] for ppo in both]
        if round_ == 0:  # before rounding in other batch sizes can change an action
            for name in ("obs", "legal", "action", "seat", "role", "policy", "reward", "skipped"):
                mine, other = (getattr(ppo.rollout, name) for ppo in both)
                assert torch.equal(mine, other), name
        for key in ("learning/samples", "charts/games", "learning/decisions"):
            assert reports[0][key] == pytest.approx(reports[1][key], rel=0.02), key
    assert reports[0]["losses/value"] == pytest.approx(reports[1]["losses/value"], rel=0.2)


def test_members_learn_what_they_would_alone() -> None:
    both = learner(seeds=(3, 4))
    alone = [learner(seeds=(seed,)) for seed in (3, 4)]
    for _ in range(2):
        reports = both.iterate(0.0)
        for member, ppo in enumerate(alone):
            (other,) = ppo.iterate(0.0)
            assert reports[member]["learning/samples"] == other["learning/samples"]
            assert reports[member]["losses/entropy"] == pytest.approx(
                other["losses/entropy"], rel=1e-3
            )


def test_members_may_differ_in_their_knobs() -> None:
    pool = CudaPool("skull_king", 128, seeds=(1, 1))
    ppo = FusedPPO(pool, [EXACT, replace(EXACT, lr=0.0)], NETS["shared"])
    before = ppo.net.weight.clone()
    ppo.iterate(0.0)
    head = ppo.net.pieces["value_head.weight"].offset  # which takes on a new unit anyway
    assert not torch.equal(before[0, :head], ppo.net.weight[0, :head])
    assert torch.equal(before[1, :head], ppo.net.weight[1, :head])


def test_an_update_stops_once_the_policy_moved_far_enough() -> None:
    eager = learner(replace(EXACT, epochs=4, target_kl=1e-9))
    assert eager.iterate(0.0)[0]["learning/gradient_steps"] == eager.parts
    patient = learner(replace(EXACT, epochs=4))
    assert patient.iterate(0.0)[0]["learning/gradient_steps"] == 4 * patient.parts


def test_a_loss_that_is_not_finite_is_never_stepped_on() -> None:
    from sparring.learn.ppo import DivergedError

    ppo = learner()
    ppo.iterate(0.0)
    ppo.net.weight[0, 3] = torch.inf
    ppo.net.compute[0, 3] = torch.inf
    before = ppo.net.weight.clone()
    with pytest.raises(DivergedError, match="lower lr"):
        ppo.iterate(0.0)
    head = ppo.net.pieces["value_head.weight"].offset
    assert torch.equal(before[:, :head], ppo.net.weight[:, :head])
