"""Models of Stable-Baselines3 as players: they decide as there, and forged files run nothing."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.envs import FakeImageEnv
from torch import nn

import sparring
from sparring.cli import main
from sparring.envs.sb3 import SparringVecEnv
from sparring.errors import ConfigError, SparringError
from sparring.games.rules import Rules
from sparring.nets.policy import Policy

ON_POLICY = {"n_steps": 8, "batch_size": 64, "n_epochs": 2}
OFF_POLICY = {"learning_starts": 50, "buffer_size": 5000}
Rows = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


def trained(algo: Any, game: str, net: dict[str, Any] | None = None, steps: int = 256) -> Any:
    """A model of SB3 after a few updates."""
    masked = {} if algo in (MaskablePPO, SAC) else {"illegal": "random"}
    short: dict[str, Any] = OFF_POLICY if algo in (SAC, DQN) else ON_POLICY
    env = SparringVecEnv(game, 8, seed=1, threads=1, **masked)
    model = algo("MlpPolicy", env, policy_kwargs=net, seed=1, device="cpu", **short)
    return model.learn(steps)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of tic-tac-toe, with layers of all kinds of widths."""
    net = {"activation_fn": nn.ReLU, "net_arch": {"pi": [24, 12], "vf": [8, 32, 10]}}
    path = tmp_path_factory.mktemp("models") / "my_ppo.zip"
    trained(MaskablePPO, "tic_tac_toe", net).save(path)
    return path


def positions(rules: Rules, count: int = 1000) -> Rows:
    """Rows of games played at random, with their masks."""
    pool = sparring.Pool(rules, 100, seed=3, threads=1)
    batch, obs, mask = pool.reset(), [], []
    while sum(map(len, obs)) < count:
        obs.append(batch.obs.copy())
        mask.append(batch.mask.copy())
        batch = pool.step(pool.sample_actions())
    return np.concatenate(obs)[:count], np.concatenate(mask)[:count]


def check_same(model: Any, policy: Policy) -> None:
    """The policy answers 1,000 observations as the model does."""
    obs, mask = positions(policy.rules)
    seen = policy.rules.widen(obs)
    given = {"action_masks": mask} if isinstance(model, MaskablePPO) else {}
    if isinstance(model, PPO):  # no masks: compare where every action is legal
        mask = np.ones_like(mask)
    theirs, _ = model.predict(seen, deterministic=True, **given)
    ours = policy.act(obs, None if policy.rules.box else mask, greedy=True)
    if policy.rules.box:
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    elif isinstance(model, DQN):
        with torch.no_grad():
            q = model.q_net(torch.from_numpy(seen)).numpy()
        np.testing.assert_array_equal(ours, np.where(mask != 0, q, -np.inf).argmax(1))
        np.testing.assert_array_equal(policy.act(obs, greedy=True), theirs)
    else:
        np.testing.assert_array_equal(ours, theirs)
    if isinstance(model, PPO | MaskablePPO):
        with torch.no_grad():
            tensor = torch.from_numpy(seen)
            found = model.policy.get_distribution(tensor, **given).distribution
            values = model.policy.predict_values(tensor)[:, 0].numpy()
        np.testing.assert_allclose(policy.value(obs), values, atol=1e-5)
        if policy.rules.box:
            mean, std = policy.gaussian(obs)
            np.testing.assert_allclose(mean, found.mean.numpy(), atol=1e-5)
            np.testing.assert_allclose(std, found.stddev.numpy(), rtol=1e-5)
        else:
            np.testing.assert_allclose(
                policy.probabilities(obs, mask), found.probs.numpy(), atol=1e-5
            )


def test_a_model_decides_as_its_library_does(model_file: Path) -> None:
    policy = sparring.load(model_file, game="tic_tac_toe")
    check_same(MaskablePPO.load(model_file), policy)
    policy.searching(8)  # it has values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "game", "net"),
    [
        (MaskablePPO, "skull_king", None),
        (MaskablePPO, "kuhhandel", {"net_arch": [32, 32], "activation_fn": nn.SiLU}),
        (PPO, "tic_tac_toe", {"net_arch": {"pi": [16, 48, 8], "vf": [32]}}),
        (PPO, "laser_hockey", {"log_std_init": -1.0}),
        (SAC, "laser_hockey", None),
        (SAC, "laser_hockey", {"net_arch": [32, 48, 16], "activation_fn": nn.Tanh}),
        (DQN, "laser_hockey_discrete", None),
        (DQN, "tic_tac_toe", {"net_arch": [40]}),
    ],
)
def test_every_algorithm_decides_as_its_library_does(
    algo: Any, game: str, net: dict[str, Any] | None, tmp_path: Path
) -> None:
    model = trained(algo, game, net, steps=1024)
    model.save(tmp_path / "model.zip")
    check_same(model, sparring.load(str(tmp_path / "model.zip"), game=game))


def typed(*words: str) -> int:
    return main([*words, "--threads", "1"])


def test_a_model_plays_where_a_policy_does(
    model_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its game comes from --game, from bots or from the run; it searches and has levels."""
    file = str(model_file)
    assert typed("arena", file, f"{file}@8", "tic_tac_toe:careful", "--games", "8") == 0
    assert "my_ppo.zip@8" in capsys.readouterr().out
    assert typed("eval", f"{file}@level2", "--game", "tic_tac_toe", "--games", "8") == 0
    assert f"sparring play tic_tac_toe --against {file}@level2" in capsys.readouterr().out
    assert typed("exploit", file, "--game", "tic_tac_toe", "--exact") == 0
    assert "exploitability" in capsys.readouterr().out
    env = SparringVecEnv("tic_tac_toe", 4, opponents=f"{file}@greedy")
    assert env.reset().shape == (4, 19)


@pytest.mark.slow
def test_a_run_begins_with_a_model_and_meets_it(model_file: Path) -> None:
    file = str(model_file)
    words = ("--opponents", f"self,{file}", "--init", file, "--updates", "1", "--eval.off")
    sizes = (
        "--collect.games",
        "16",
        "--collect.steps",
        "8",
        "--net.hidden",
        "8",
        "--eval.games",
        "8",
    )
    assert typed("train", "tic_tac_toe", *words, *sizes, "--device", "cpu") == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("eval", "FILE"), "does not say which game it plays (19 features, 9 actions); add --game"),
        (("arena", "FILE", "FILE@8"), "does not say which game it plays"),
        (("play", "FILE"), "name the game first: sparring play GAME --against"),
        (
            ("eval", "FILE", "--game", "kuhhandel"),
            "has 19 features, 9 actions; kuhhandel has 163 features, 95 actions;",
        ),
        (("eval", "FILE", "--game", "laser_hockey"), "laser_hockey has 18 features, 4 numbers"),
        (("eval", "FILE@relu", "--game", "tic_tac_toe"), "@relu is unknown"),
    ],
)
def test_a_game_that_is_missing_or_another_is_said(
    words: tuple[str, ...], says: str, model_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [word.replace("FILE", str(model_file)) for word in words]
    assert main(line) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.splitlines()[-1].startswith("sparring: ")


class Bomb:
    """A pickle that would make a folder where it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (Path("exploded"),)


def repacked(
    file: Path,
    change: Callable[[dict[str, bytes]], None],
    *,
    inner: str = "",
    pressed: bool = False,
) -> bytes:
    """A zip with other entries. inner: the entry that is a zip and is changed instead."""
    with zipfile.ZipFile(file if not inner else io.BytesIO(entries(file)[inner])) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    method = zipfile.ZIP_DEFLATED if pressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(out := io.BytesIO(), "w", method) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def entries(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_weights(file: Path, weights: Any) -> bytes:
    """The model with other weights, or whatever torch saves."""
    torch.save(weights, out := io.BytesIO())
    return repacked(file, lambda parts: parts.update({"policy.pth": out.getvalue()}))


def shared_layers(count: int) -> dict[str, torch.Tensor]:
    """Many layers, all with the same weights."""
    square, bias = torch.zeros(19, 19), torch.zeros(19)
    names = [f"q_net.q_net.{2 * number}" for number in range(count)]
    return {
        f"{name}.{part}": one
        for name in names
        for part, one in (("weight", square), ("bias", bias))
    }


def with_settings(file: Path, **settings: Any) -> bytes:
    data = json.dumps({**json.loads(entries(file)["data"]), **settings}).encode()
    return repacked(file, lambda parts: parts.update(data=data))


def with_storage_of(numbers: int) -> Callable[[dict[str, bytes]], None]:
    """Change `data.pkl`: the first storage has so many numbers, as it says."""

    def change(parts: dict[str, bytes]) -> None:
        (name,) = (name for name in parts if name.endswith("data.pkl"))
        at = parts[name].index(b"cpuq") + 5
        end = parts[name].index(b"tq", at)
        parts[name] = parts[name][:at] + b"J" + numbers.to_bytes(4, "little") + parts[name][end:]

    return change


def in_weights(file: Path, change: Callable[[dict[str, bytes]], None], **options: Any) -> bytes:
    weights = repacked(file, change, inner="policy.pth", **options)
    return repacked(file, lambda parts: parts.update({"policy.pth": weights}))


FORGED: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "no zip": (lambda file: b"weights", "it is no zip file, or a damaged one"),
    "truncated": (lambda file: file.read_bytes()[:-900], "it is no zip file, or a damaged one"),
    "flipped": (
        lambda file: file.read_bytes().replace(b"archive/data/0", b"archive/date/0", 1),
        "its policy.pth is damaged",
    ),
    "empty": (lambda file: repacked(file, dict.clear), "it has no data; save it by model.save()"),
    "no weights": (
        lambda file: repacked(file, lambda parts: parts.pop("policy.pth")),
        "it has no policy.pth",
    ),
    "pickle": (
        lambda file: with_weights(file, {"a": Bomb()}),
        "getattr, which is code; it was not run",
    ),
    "old pickle": (
        lambda file: repacked(file, lambda parts: parts.update({"policy.pth": b"\x80\x02."})),
        "its policy.pth is no zip file",
    ),
    "zip bomb": (
        lambda file: repacked(file, lambda parts: parts.update(x=bytes(2**24)), pressed=True),
        "compressed, which model.save() never does",
    ),
    "inner zip bomb": (
        lambda file: in_weights(file, lambda parts: parts.update(x=bytes(2**24)), pressed=True),
        "its policy.pth has 'archive/data.pkl' compressed",
    ),
    "storage": (lambda file: in_weights(file, with_storage_of(2**30)), "its policy.pth is damaged"),
    "names": (lambda file: with_weights(file, {3: torch.zeros(1)}), "has '3', which is no float32"),
    "list": (lambda file: with_weights(file, [torch.zeros(1)]), "its policy.pth holds no weights"),
    "strided": (
        lambda file: with_weights(file, {"a": torch.zeros(1).expand(2**40)}),
        "has 'a', which is no float32 tensor",
    ),
    "shared": (
        lambda file: with_weights(file, shared_layers(64)),
        "its layers share weights",
    ),
    "not finite": (
        lambda file: with_weights(
            file,
            {
                name: one + torch.inf
                for name, one in torch.load(
                    io.BytesIO(entries(file)["policy.pth"]), weights_only=True
                ).items()
            },
        ),
        "holds numbers that are not finite",
    ),
    "settings": (
        lambda file: repacked(file, lambda parts: parts.update(data=b"[" * 9999)),
        "nested too deeply",
    ),
    "own class": (
        lambda file: with_settings(file, policy_class={"__module__": "my_policies"}),
        "its policy class is of 'my_policies', whose code is not known",
    ),
    "activation": (
        lambda file: with_settings(
            file, policy_kwargs={"activation_fn": "<class 'torch.nn.modules.activation.ELU'>"}
        ),
        "its activation is ELU; there are ReLU, Tanh, SiLU",
    ),
    "extractor": (
        lambda file: with_settings(
            file, policy_kwargs={"features_extractor_class": "<class 'mine.Reader'>"}
        ),
        "it reads observations by <class 'mine.Reader'>, not as they are",
    ),
    "sde": (lambda file: with_settings(file, use_sde=True), "it explores by use_sde"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_file_is_refused_in_one_line_and_runs_nothing(
    kind: str,
    model_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make, says = FORGED[kind]
    monkeypatch.chdir(tmp_path)
    Path("forged.zip").write_bytes(make(model_file))
    assert typed("eval", "forged.zip", "--game", "tic_tac_toe", "--games", "8") in (2, 3)
    lines = capsys.readouterr().err.splitlines()
    assert says in lines[-1]
    assert lines[-1].startswith("sparring: forged.zip")
    assert len(lines) <= 2
    assert not Path("exploded").exists()


def test_other_networks_than_perceptrons_are_refused(tmp_path: Path) -> None:
    """Recurrent and convolutional policies, and one without a hidden layer."""
    env = SparringVecEnv("tic_tac_toe", 2, illegal="random", threads=1)
    small = {"n_steps": 8, "batch_size": 8, "device": "cpu"}
    memory = {"lstm_hidden_size": 8}
    for model, says in (
        (RecurrentPPO("MlpLstmPolicy", env, policy_kwargs=memory, **small), "'lstm_actor.weight"),
        (PPO("CnnPolicy", FakeImageEnv(n_channels=1), **small), "'features_extractor.cnn.0.weight"),
        (PPO("MlpPolicy", env, policy_kwargs={"net_arch": []}, **small), "no hidden layer"),
        (TD3("MlpPolicy", "Pendulum-v1", device="cpu"), "not those of MaskablePPO, PPO, SAC or"),
    ):
        model.save(tmp_path / "other")
        with pytest.raises(SparringError, match=says):
            sparring.load(tmp_path / "other.zip", game="tic_tac_toe")


def test_a_custom_environment_has_no_models(model_file: Path) -> None:
    from sparring.pools.custom.rules import CustomRules

    rules = CustomRules("mine", seats=1, rows=1, actions=9, numbers=19)
    with pytest.raises(ConfigError, match="mine is a custom environment"):
        sparring.load(model_file, game=rules)
