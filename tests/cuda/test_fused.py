"""The fused learner on the GPU computes what the readable one does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from sparring.config import CollectConfig, NetConfig, PPOConfig
from sparring.errors import ConfigError
from sparring.learn.fused import DeviceGames, FusedPPO, HostGames
from sparring.learn.fused.rollout import mask_of
from sparring.learn.learner import DivergedError
from sparring.learn.ppo import LOGGED, PPO, Knobs, ppo_loss
from sparring.learn.transitions import Transitions
from sparring.nets.captured import CapturedNet
from sparring.nets.distribution import Sampler
from sparring.nets.flat_kinds import make_flat
from sparring.nets.fused_mlp import FusedPerceptron
from sparring.nets.fused_residual import FusedResidual
from sparring.nets.make import make_net
from sparring.nets.net import head_width
from sparring.pools import Lineup, Pool
from sparring.pools.cuda import CudaPool
from sparring.schedule import Moment

COLLECT = CollectConfig(games=64, steps=24, bf16=False)
ROUNDED = replace(COLLECT, bf16=True)
PPO_ = PPOConfig(minibatch=512, epochs=2, gamma_into=(0, 1), target_kl=0.0)
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
    # Run by autograd.
    "silu, odd widths": NetConfig(hidden=(60, 30), activation="silu"),
    "gaussian, silu": NetConfig(hidden=(60,), activation="silu", spread="predicted"),
    "residual, odd channels": NetConfig(kind="residual", channels=12, blocks=1),
}


@pytest.fixture(autouse=True)
def exact_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)


def learner(
    config: PPOConfig = PPO_,
    net: NetConfig = NETS["towers"],
    seeds: tuple[int, ...] = (0,),
    *,
    collect: CollectConfig = COLLECT,
    graphs: bool = False,
    game: str = "skull_king",
    memory: int = 0,
) -> FusedPPO:
    lineups = {
        "skull_king": [Lineup((0,) * 4), Lineup((0, "captain", "rule_easy", "random"))],
        "duel": [Lineup((0, 0)), Lineup((0, "pusher"))],
        "shogi": [Lineup((0, 0)), Lineup((0, "random"))],
    }
    flags = {"material": 0.3} if game == "shogi" else {}
    if game == "shogi":
        config = replace(config, gamma_into=())
    games = collect.games * len(seeds)
    pool = CudaPool(game, games, config=flags, seeds=seeds, lineups=lineups[game], memory=memory)
    return FusedPPO(DeviceGames(pool), collect, config, net, graphs=graphs)


def turn(ppo: FusedPPO) -> list[Knobs]:
    return ppo.update.turn_knobs(ppo.updates, [Moment(0, 0.0)] * ppo.members)


def play(ppo: FusedPPO) -> None:
    """A rollout, ready to be learned from."""
    turn(ppo)
    ppo._play()
    ppo.update.value_cuts()
    ppo.update.estimate_advantages()


def game_of(net: str) -> str:
    if "gaussian" in net:
        return "duel"
    return "shogi" if "residual" in net else "skull_king"


@pytest.mark.parametrize("net", NETS)
def test_a_network_has_its_own_passes_where_they_are_written(net: str) -> None:
    ppo = learner(net=NETS[net], game=game_of(net))
    wanted = FusedResidual if "residual" in net else FusedPerceptron
    wanted = CapturedNet if "silu" in net or "odd" in net else wanted
    assert type(ppo.net) is wanted


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("bf16", [False, True])
def test_forward_is_that_of_the_policy_net(net: str, bf16: bool) -> None:
    collect = ROUNDED if bf16 else COLLECT
    ppo = learner(PPO_, NETS[net], (4, 5), collect=collect, game=game_of(net))
    ppo._play()
    width = head_width(ppo.rules)
    for member in range(2):
        module = make_net(ppo.rules, NETS[net])
        module.load_state_dict(ppo.net.state(member))
        each = ppo.rollout.rows // 2
        rows = slice(member * each, (member + 1) * each)
        obs = ppo.rollout.obs[ppo.rollout.at(23)][rows].cpu()
        heads = module(obs)
        mine = (ppo.acting.logits[member, :, :width] + policy_bias(ppo, member)).cpu()
        assert torch.allclose(mine, heads["policy"], atol=3e-3 if bf16 else 1e-5)
        assert torch.allclose(ppo.acting.value[member, :, 0].cpu(), heads["value"], atol=1e-5)


def policy_bias(ppo: FusedPPO, member: int = 0) -> torch.Tensor:
    """What the kernels add to the logits."""
    of_all = ppo.net.policy_bias
    return of_all[min(member, len(of_all) - 1)].flatten()[: head_width(ppo.rules)]


@pytest.mark.parametrize("memory", [16, 64])
def test_memory_is_read_behind_the_observation(memory: int) -> None:
    config = NETS["shared"]
    pool = CudaPool("skull_king", 32)
    rules, device = pool.rules, pool.device
    flat = make_flat(rules, config, 1, bf16=False, device=device, memory=memory)
    module = make_net(rules, config, memory=memory)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    flat.load(0, module.state_dict())
    obs = torch.randint(0, 3, (40, rules.obs_bytes + memory), dtype=torch.uint8)
    obs[:, rules.obs_bytes :] = torch.randn(40, memory // 4).view(torch.uint8)
    at = flat.passing(40, learn=False)
    at.read(obs.to(device))
    at.forward()
    heads = module(obs)
    logits = at.logits[0, :, :86] + flat.policy_bias[0, 0, :86]
    assert torch.allclose(logits.cpu(), heads["policy"], atol=1e-3)
    value = at.value[0, :, 0] + flat.value_bias[0, 0, 0]
    assert torch.allclose(value.cpu(), heads["value"], atol=1e-3)


@pytest.mark.parametrize("net", ["towers", "residual", "silu, odd widths"])
def test_weights_survive_the_way_there_and_back(net: str) -> None:
    ppo = learner(net=NETS[net], game=game_of(net))
    module = make_net(ppo.rules, NETS[net])
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    ppo.net.load(0, module.state_dict())
    for name, tensor in ppo.net.state(0).items():
        assert torch.equal(tensor, module.state_dict()[name]), name


def test_actions_are_those_of_the_cpu_sampler() -> None:
    ppo = learner(collect=replace(COLLECT, games=2048))
    with torch.no_grad():
        ppo.net.weight.add_(torch.randn_like(ppo.net.weight) * 0.05)
        ppo.net.compute.copy_(ppo.net.weight * ppo.net.scale)
    ppo.update.clock.fill_(7)
    ppo._play()
    rollout, step = ppo.rollout, 23
    at = rollout.at(step)
    logits = ppo.acting.logits[0, :, :86] + policy_bias(ppo)
    mask = mask_of(rollout.legal[at].cpu(), ppo.rules).numpy()
    action, log_prob = Sampler(0).draw(logits.cpu(), mask, rollout=7, step=step)
    same = action == rollout.action[at].cpu().numpy()
    assert same.mean() > 0.999
    off = np.abs(log_prob - rollout.log_prob[at].cpu().numpy())[same]
    assert off.max() < 1e-4
    assert mask[np.arange(2048), rollout.action[at].cpu().numpy()].all()


@pytest.mark.parametrize("net", ["gaussian", "gaussian, predicted spread"])
def test_continuous_actions_are_those_of_the_cpu_sampler(net: str) -> None:
    ppo = learner(net=NETS[net], collect=replace(COLLECT, games=2048), game="duel")
    with torch.no_grad():
        ppo.net.weight.add_(torch.randn_like(ppo.net.weight) * 0.05)
        ppo.net.compute.copy_(ppo.net.weight * ppo.net.scale)
    ppo.update.clock.fill_(7)
    ppo._play()
    rollout, step = ppo.rollout, 23
    at = rollout.at(step)
    head = ppo.acting.logits[0, :, :4] + policy_bias(ppo)
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


NAMES = ("seat", "role", "policy", "reward", "terminated", "truncated", "skipped")


def arrays(ppo: FusedPPO, *names: str) -> dict[str, np.ndarray]:
    return {name: getattr(ppo.rollout, name).cpu().numpy() for name in (*NAMES, *names)}


def test_advantages_are_those_of_the_cpu() -> None:
    ppo = learner()
    transitions = Transitions(ppo.rules, 64, 24)
    rollout = ppo.rollout
    for _ in range(3):
        turn(ppo)
        ppo._play()
        played, value = arrays(ppo), rollout.value.cpu().numpy()
        ppo.update.learn()
        transitions.link(**played, gamma=1.0, gamma_into=(0, 1))
        advantage = transitions.advantages(value, 0.95)
        for name in ("end", "next"):
            mine = getattr(rollout, name).cpu().numpy()
            assert np.array_equal(getattr(transitions, name), mine), name
        samples = transitions.samples()
        for name in ("paid", "discount"):
            mine = getattr(rollout, name).cpu().numpy()
            assert np.allclose(getattr(transitions, name)[samples], mine[samples], atol=1e-5), name
        assert np.allclose(advantage, rollout.advantage.cpu().numpy(), atol=1e-5)
        places = np.sort(ppo.update.list[0, : int(ppo.update.sample_counts[0])].cpu().numpy())
        assert np.array_equal(places, samples)
        ppo.updates += 1


def test_discounts_follow_their_schedules() -> None:
    config = replace(PPO_, gamma_into=(), gamma="0%:1.0,100%:0.5", gae_lambda="0%:0.9,100%:0.1")
    ppo = learner(config)
    transitions = Transitions(ppo.rules, 64, 24)
    for progress in (0.0, 0.6):
        ppo.update.turn_knobs(0, [Moment(0, progress)])
        ppo._play()
        played, value = arrays(ppo), ppo.rollout.value.cpu().numpy()
        ppo.update.learn()
        transitions.link(**played, gamma=1 - progress / 2)
        advantage = transitions.advantages(value, 0.9 - 0.8 * progress)
        assert np.allclose(advantage, ppo.rollout.advantage.cpu().numpy(), atol=1e-5)
        assert ppo.update.gamma_into[0].tolist() == pytest.approx([1 - progress / 2] * 2)


def test_games_that_are_cut_are_worth_what_the_network_says() -> None:
    pool = CudaPool("kuhhandel", 64, seed=2, config={"max_decisions": 50})
    collect, config = replace(COLLECT, steps=120), replace(PPO_, gamma_into=())
    ppo = FusedPPO(DeviceGames(pool), collect, config, NETS["shared"], graphs=False)
    for _ in range(3):  # so that values are not all 0
        ppo.iterate(0.0)
    turn(ppo)
    ppo._play()
    rollout = ppo.rollout
    cuts = int(rollout.truncated.sum())
    assert cuts >= 64
    assert int(rollout.cut_count[0]) == cuts
    ppo.update.value_cuts()
    module = make_net(pool.rules, NETS["shared"])
    module.load_state_dict(ppo.net.state(0))
    met = min(cuts, 64)  # one room per game; further ones are dropped, not guessed
    values = module.true_values(module(rollout.cut_obs[0, :met].cpu()))
    where = (rollout.cut_at[0, :met].cpu() >> 1).long()
    mine = rollout.final_value.flatten().cpu()
    assert torch.allclose(mine[where], values.detach(), atol=1e-4)
    assert int(mine.isfinite().sum()) == met
    transitions = Transitions(pool.rules, 64, 120)
    transitions.load_open(rollout.open.cpu().numpy().tobytes())
    played, value = arrays(ppo, "final_value"), rollout.value.cpu().numpy()
    ppo.update.estimate_advantages()
    transitions.link(**played, gamma=1.0)
    advantage = transitions.advantages(value, 0.95)
    assert np.allclose(advantage, rollout.advantage.cpu().numpy(), atol=1e-4)


def test_every_epoch_meets_every_sample_once() -> None:
    ppo = learner(seeds=(1, 2, 3))
    play(ppo)
    update, orders = ppo.update, []
    for epoch in range(2):
        update.shuffle(epoch)
        met = update.picked.cpu().clone()
        for member in range(3):
            picked = met[:, member].flatten()
            picked = picked[picked >= 0]
            wanted = update.list[member, : int(update.sample_counts[member])].cpu()
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
    config = replace(PPO_, clip=clip, value_clip=value_clip)
    collect = ROUNDED if bf16 else COLLECT
    ppo = learner(config, NETS[net], (1, 2), collect=collect, game=game_of(net))
    for _ in range(3):  # away from the start, where ratios are 1 and gradients vanish
        ppo.iterate(0.0)
    update = ppo.update
    knobs = turn(ppo)
    play(ppo)
    update.shuffle(0)
    for number in range(update.minibatches - 1):
        update.descend(number)
    before = [ppo.net.state(member) for member in range(2)]
    update.descend(update.minibatches - 1)
    rollout = ppo.rollout
    for member in range(2):
        module = make_net(ppo.rules, NETS[net])
        module.load_state_dict(before[member])
        places = update.picked[-1, member]
        places = places[places >= 0].long()
        heads = module(rollout.obs[places].cpu())
        names = ppo.kernels.names("Statistics")
        of = dict(zip(names, update.statistics[member].tolist(), strict=True))
        advantage, old = rollout.advantage[places].cpu(), rollout.value[places].cpu()
        losses = ppo_loss(
            heads["policy"],
            heads["value"],
            mask=mask_of(rollout.legal[places].cpu(), ppo.rules),
            action=rollout.action[places].cpu(),
            old_log_prob=rollout.log_prob[places].cpu(),
            old_value=old / of["scale"],
            advantage=(advantage - of["mean"]) * of["inverse_std"],
            returns=(advantage + old) / of["scale"],
            knobs=knobs[member],
        )
        losses.total.backward()
        mine = ppo.net.unpack(ppo.net.grad[member] * ppo.net.scale)
        reference = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
        assert len(reference) == len(list(module.parameters()))
        length = torch.cat([grad.flatten() for grad in reference.values()]).norm()
        for name, grad in reference.items():
            off = float((mine[name] - grad).norm() / length)
            assert off < (0.02 if bf16 else 1e-4), f"{name}: {off:.2e} of the gradient's length"
        assert ppo.kernels.names("Losses") == list(LOGGED)
        found = update.means[update.minibatches - 1, member].tolist()
        for name, figure in zip(LOGGED, found, strict=True):
            assert figure == pytest.approx(
                float(getattr(losses, name).detach()), rel=0.05 if bf16 else 1e-3, abs=2e-3
            ), name


@pytest.mark.parametrize("net", ["towers", "tanh", "gaussian, predicted spread", "residual"])
def test_autograd_gives_the_gradients_of_the_passes(net: str) -> None:
    ppo = learner(net=NETS[net], seeds=(1, 2), game=game_of(net))
    for _ in range(2):
        ppo.iterate(0.0)
    play(ppo)
    update, own = ppo.update, ppo.net
    update.shuffle(0)
    other = CapturedNet(ppo.rules, NETS[net], 2, bf16=False, device=ppo.device)
    for member in range(2):
        other.load(member, own.state(member))
    at = other.passing(update.room, learn=True)
    at.read(ppo.rollout.obs, update.picked[0])
    at.forward()
    update.descend(0)
    at.logits_grad.copy_(update.learning.logits_grad)
    at.value_grad.copy_(update.learning.value_grad)
    at.backward()
    for member in range(2):
        mine = own.unpack(own.grad[member] * own.scale)
        theirs = other.unpack(other.grad[member])
        length = torch.cat([grad.flatten() for grad in theirs.values()]).norm()
        for name, grad in theirs.items():
            off = float((mine[name] - grad).norm() / length)
            assert off < 1e-4, f"{name}: {off:.2e} of the gradient's length"


def test_the_optimiser_is_adam_behind_a_clipped_gradient() -> None:
    ppo = learner()
    (knobs,) = turn(ppo)
    play(ppo)
    weight = torch.nn.Parameter(ppo.net.weight[0].clone())
    optimiser = torch.optim.Adam([weight], lr=knobs.lr, eps=1e-5)
    ppo.update.shuffle(0)
    for number in range(3):
        ppo.update.descend(number)
        weight.grad = ppo.net.grad[0] * ppo.net.scale
        torch.nn.utils.clip_grad_norm_([weight], knobs.max_grad_norm)
        optimiser.step()
        assert torch.allclose(weight, ppo.net.weight[0], atol=1e-6)


@pytest.mark.parametrize(
    "net",
    [
        *("towers", "gaussian, predicted spread", "residual"),
        *("silu, odd widths", "gaussian, silu", "residual, odd channels"),
    ],
)
@pytest.mark.parametrize("bf16", [False, True])
def test_graphs_change_nothing(net: str, bf16: bool) -> None:
    collect, game = ROUNDED if bf16 else COLLECT, game_of(net)
    runs = [
        learner(net=NETS[net], collect=collect, graphs=graphs, game=game)
        for graphs in (False, True)
    ]
    for _ in range(4):
        reports = [ppo.iterate(0.3)[0] for ppo in runs]
        for key in ("learning/samples", "charts/games", "losses/policy_loss", "losses/value_loss"):
            first, second = (report.stats[key] for report in reports)
            assert first == pytest.approx(second, rel=1e-6), key
    assert runs[0].games.state(0) == runs[1].games.state(0)
    assert torch.equal(runs[0].net.weight, runs[1].net.weight)


@pytest.mark.parametrize("net", ["towers", "silu, odd widths"])
def test_games_on_the_cpu_give_the_same_rollout(net: str) -> None:
    lineups = [Lineup((0,) * 4), Lineup((0, "captain", "rule_easy", "random"))]
    host = Pool("skull_king", 64, seed=5, lineups=lineups, slots=2, threads=2)
    device = CudaPool("skull_king", 64, seed=5, lineups=lineups)
    both = [
        FusedPPO(games, COLLECT, PPO_, NETS[net])
        for games in (HostGames(host, "cuda"), DeviceGames(device))
    ]
    for round_ in range(3):
        reports = [ppo.iterate(0.0)[0] for ppo in both]
        if round_ == 0:  # before rounding in other batch sizes can change an action
            for name in ("obs", "legal", "action", "seat", "role", "policy", "reward", "skipped"):
                mine, other = (getattr(ppo.rollout, name) for ppo in both)
                assert torch.equal(mine, other), name
        for key in ("learning/samples", "charts/games"):
            first, second = (report.stats[key] for report in reports)
            assert first == pytest.approx(second, rel=0.02), key
        assert reports[0].decisions == pytest.approx(reports[1].decisions, rel=0.02)
    first, second = (report.stats["losses/value_loss"] for report in reports)
    assert first == pytest.approx(second, rel=0.2)


@pytest.mark.parametrize("net", ["towers", "silu, odd widths"])
def test_members_learn_what_they_would_alone(net: str) -> None:
    both = learner(net=NETS[net], seeds=(3, 4))
    alone = [learner(net=NETS[net], seeds=(seed,)) for seed in (3, 4)]
    for _ in range(2):
        reports = both.iterate(0.0)
        for member, ppo in enumerate(alone):
            (other,) = ppo.iterate(0.0)
            mine, theirs = reports[member].stats, other.stats
            assert mine["learning/samples"] == theirs["learning/samples"]
            assert mine["losses/entropy"] == pytest.approx(theirs["losses/entropy"], rel=1e-3)


def test_members_may_differ_in_their_knobs() -> None:
    pool = CudaPool("skull_king", 128, seeds=(1, 1))
    configs = [PPO_, replace(PPO_, lr=0.0)]
    ppo = FusedPPO(DeviceGames(pool), COLLECT, configs, NETS["shared"])
    before = ppo.net.weight.clone()
    ppo.iterate(0.0)
    head = ppo.net.pieces["value_head.weight"].offset  # which takes on a new unit anyway
    assert not torch.equal(before[0, :head], ppo.net.weight[0, :head])
    assert torch.equal(before[1, :head], ppo.net.weight[1, :head])


def test_an_update_stops_once_the_policy_moved_far_enough() -> None:
    key = "learning/optimiser_steps"
    eager = learner(replace(PPO_, epochs=4, target_kl=1e-9))
    assert eager.iterate(0.0)[0].stats[key] == eager.update.minibatches
    patient = learner(replace(PPO_, epochs=4))
    assert patient.iterate(0.0)[0].stats[key] == 4 * patient.update.minibatches


def test_a_loss_that_is_not_finite_is_never_stepped_on() -> None:
    ppo = learner()
    ppo.iterate(0.0)
    ppo.net.weight[0, 3] = torch.inf
    ppo.net.compute[0, 3] = torch.inf
    before = ppo.net.weight.clone()
    with pytest.raises(DivergedError, match="lower lr"):
        ppo.iterate(0.0)
    head = ppo.net.pieces["value_head.weight"].offset
    assert torch.equal(before[:, :head], ppo.net.weight[:, :head])


def test_reports_count_the_learners_own_decisions() -> None:
    ppo = learner()
    before = ppo.iterate(0.0)[0]
    after = ppo.iterate(0.0)[0]
    own = int((ppo.rollout.policy == 0).sum())
    assert after.decisions - before.decisions == own
    assert after.samples - before.samples == after.stats["learning/samples"]
    assert after.opponent_rows == 0
    wanted = {f"losses/{name}" for name in (*LOGGED, "explained_variance", "grad_norm")}
    wanted |= {f"learning/{name}" for name in ("lr", "entropy_weight", "value_scale")}
    assert wanted | {"charts/games", "charts/gpu_busy"} <= after.stats.keys()
    assert all(np.isfinite(figure) for figure in after.stats.values())


def test_a_policy_that_nobody_answers_is_refused() -> None:
    seats = [Lineup((0, 0, 0, 3))]
    pool = CudaPool("skull_king", 64, lineups=seats)
    with pytest.raises(ConfigError, match="policy 3 sits at tables and nobody answers it"):
        FusedPPO(DeviceGames(pool), COLLECT, PPO_, NETS["shared"])
    ppo = learner()
    ppo.iterate(0.0)
    ppo.pool.set_lineups(seats)
    with pytest.raises(ConfigError, match="policy 3 sits at tables and nobody answers it"):
        ppo.iterate(0.0)


@pytest.mark.parametrize("net", ["towers", "gaussian", "silu, odd widths"])
def test_a_snapshot_is_that_of_the_readable_learner(net: str) -> None:
    game, config = game_of(net), replace(PPO_, gamma_into=())
    fused = learner(config, NETS[net], game=game)
    for _ in range(2):
        fused.iterate(0.0)
    taken = fused.snapshot()
    pool = Pool(fused.rules, 64, seed=0, threads=2)
    readable = PPO(pool, COLLECT, config, NETS[net], seed=0)
    readable.restore(taken)
    again = readable.snapshot()
    assert again.blobs == taken.blobs
    assert again.meta == taken.meta
    for group, tensors in taken.tensors.items():
        assert tensors.keys() == again.tensors[group].keys()
        for name, tensor in tensors.items():
            assert torch.equal(tensor, again.tensors[group][name]), (group, name)
    readable.iterate(0.0)
    other = learner(config, NETS[net], game=game)
    other.restore(readable.snapshot())
    assert other.updates == 3
    for name, tensor in readable.snapshot().tensors["net"].items():
        assert torch.equal(tensor, other.snapshot().tensors["net"][name]), name
    other.iterate(0.0)
    obs = fused.rollout.obs[:32].cpu().numpy()
    assert np.isfinite(other.policy().value(obs)).all()


def test_a_restored_member_goes_on_bit_for_bit() -> None:
    first = learner(seeds=(1, 2), graphs=True)
    for _ in range(2):
        first.iterate(0.0)
    second = learner(seeds=(1, 2), graphs=True)
    for member in range(2):
        second.restore(first.snapshot(member), member)
    for _ in range(2):
        reports = [ppo.iterate(0.0) for ppo in (first, second)]
    for mine, other in zip(*reports, strict=True):
        assert (mine.decisions, mine.samples) == (other.decisions, other.samples)
    assert torch.equal(first.net.weight, second.net.weight)
    assert first.games.state(1) == second.games.state(1)


def test_a_rehearsal_leaves_everything_as_it_was() -> None:
    ppo = learner(graphs=True)
    for _ in range(3):
        ppo.iterate(0.0)
    before = ppo.snapshot()
    for _ in range(3):
        (report,) = ppo.rehearse()
    after = ppo.snapshot()
    assert report.samples > before.meta["samples"]
    assert after.blobs == before.blobs
    assert after.meta == before.meta
    for group, tensors in before.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, after.tensors[group][name]), (group, name)


@pytest.mark.parametrize("net", ["shared", "silu, odd widths"])
def test_a_learner_with_memory_trains(net: str) -> None:
    ppo = learner(net=NETS[net], memory=32, graphs=True)
    assert ppo.rollout.obs.shape[1] == ppo.rules.obs_bytes + 32
    for _ in range(3):
        (report,) = ppo.iterate(0.0)
    assert np.isfinite(report.stats["losses/policy_loss"])
    again = learner(net=NETS[net], memory=32, graphs=True)
    again.restore(ppo.snapshot())
    for each in (ppo, again):
        each.iterate(0.0)
    assert torch.equal(again.net.weight, ppo.net.weight)
