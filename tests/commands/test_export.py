"""`sparring export`: the ONNX file computes what torch computes."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from remembering import remembering
from sparring import Pool, Rules
from sparring.cli import main
from sparring.commands.shared import onnx_file
from sparring.commands.shared.onnx_file import compare_steps
from sparring.commands.shared.plain_nets import PlainFirstLayer
from sparring.config import NetConfig
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.make import make_net
from sparring.nets.mlp import Perceptron
from sparring.nets.policy import Policy
from sparring.store.policies import load_policy, save_policy


def saved_policy(folder: Path, game: str = "skull_king", **net: Any) -> Path:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rules = Rules(game)
    config = NetConfig(**{"hidden": (32, 32), **net})
    roles = {"manager": NetConfig(inputs=("hand", "seat")), "worker": config}
    made: Any = make_net(rules, config, roles=roles if "hidden" in net else None)
    for one in [one for _, one in nets_by_role(made)] or [made]:
        for head in (one.policy_head, one.value_head):
            torch.nn.init.normal_(head.weight, std=3.0)
        one.rescale_value_head(70.0)
    return save_policy(Policy(rules, made), folder / game)


@pytest.mark.parametrize(
    ("game", "net"),
    [
        ("skull_king", {"hidden": (24,)}),  # a network for every role
        pytest.param(
            "connect_four",
            {"kind": "residual", "channels": 8, "blocks": 1},
            marks=pytest.mark.slow,
        ),
        # The exporter takes seconds for what is many small steps.
        pytest.param("tic_tac_toe", {"shared": False, "norm": True}, marks=pytest.mark.slow),
        pytest.param(
            "shogi", {"kind": "residual", "channels": 8, "blocks": 2}, marks=pytest.mark.slow
        ),
        pytest.param("kuhhandel", {"kind": "attention", "token_width": 16}, marks=pytest.mark.slow),
        pytest.param(
            "skull_king", {"kind": "attention", "token_width": 16}, marks=pytest.mark.slow
        ),
    ],
)
def test_the_file_says_what_torch_says(
    game: str, net: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path, file = saved_policy(tmp_path, game, **net), tmp_path / "net.onnx"
    assert main(["export", str(path), "--onnx", str(file), "--json"]) == 0
    shown = capsys.readouterr()
    # On a busy machine a line may say how far it is; warnings of the exporter may not appear.
    assert all(line.startswith("exporting") for line in shown.err.splitlines())
    facts = json.loads(shown.out)
    assert facts["max_abs_difference"] < 1e-4
    assert facts["bytes"] == file.stat().st_size
    assert facts["observations_compared"] == 256
    policy = load_policy(path)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    obs = onnx_file.real_observations(policy.rules, 300)
    for rows in (1, 17, 300):
        logits, value = session.run(None, {"obs": obs[:rows]})
        with torch.no_grad():
            wanted = policy.net(torch.from_numpy(obs[:rows]))["policy"].numpy()
        assert wanted.std() > 1
        np.testing.assert_allclose(logits, wanted, atol=1e-4)
        np.testing.assert_allclose(value, policy.value(obs[:rows]), atol=1e-2)
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["game_config"]) == policy.rules.config
    assert json.loads(about["actions"])[0] == policy.rules.action_name(0)
    assert {inside.name for inside in tmp_path.iterdir()} == {"net.onnx", game}


def test_bytes_are_added_up_to_the_numbers_they_are() -> None:
    rules = Rules("tic_tac_toe")
    net = Perceptron(rules, NetConfig(hidden=(8, 8)))
    layer = PlainFirstLayer(net.inputs, net.first)
    floats = [0.0, -0.0, 1.0, -1.0, 3.14159, -2.5e-3, 6.02e23, 1e-30, 16777216.0, -7.0, 2.0**-126]
    for dtype, code, values in (
        (torch.uint8, "B", [0, 1, 127, 128, 255]),
        (torch.int8, "b", [0, 1, 127, -1, -128]),
        (torch.int16, "h", [0, 1, 255, 256, 32767, -1, -256, -32768]),
        (torch.float32, "f", floats),
    ):
        raw = struct.pack(f"<3x{len(values)}{code}", *values)
        obs = torch.tensor([list(raw)], dtype=torch.uint8)
        found = layer.number(obs, dtype, 3, len(raw))
        np.testing.assert_array_equal(found[0].numpy(), np.array(values, np.float32))


@pytest.mark.parametrize(
    ("game", "flags", "net"),
    [
        ("skull_king", {"num_players": 6}, NetConfig(hidden=(32, 32))),
        ("skull_king", {}, NetConfig(hidden=(32, 32), norm=True)),
        ("shogi", {}, NetConfig(kind="residual", channels=8, blocks=1)),
    ],
)
def test_the_plain_net_is_the_net(game: str, flags: dict[str, int], net: NetConfig) -> None:
    torch.manual_seed(1)
    rules = Rules(game, flags)
    policy = Policy(rules, make_net(rules, net))
    obs = torch.from_numpy(onnx_file.real_observations(rules, 64))
    with torch.no_grad():
        logits, value = onnx_file.plain_net(policy)(obs)
        np.testing.assert_allclose(logits, policy.net(obs)["policy"], atol=1e-5)
        np.testing.assert_allclose(value, policy.value(obs.numpy()), atol=1e-5)


def test_a_file_that_is_wrong_is_not_left_behind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    path, file = saved_policy(tmp_path, "tic_tac_toe"), tmp_path / "net.onnx"
    write = onnx_file.write

    def write_another(policy: Policy, target: Path) -> None:
        other = load_policy(path)
        other.net.policy_head.bias.data += 0.01
        write(other, target)

    monkeypatch.setattr(onnx_file, "write", write_another)
    assert main(["export", str(path), "--onnx", str(file)]) == 3
    assert "0.01 away from torch" in capfd.readouterr().err
    assert [inside.name for inside in tmp_path.iterdir()] == ["tic_tac_toe"]


def test_the_extra_is_named_when_it_is_missing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    path = saved_policy(tmp_path, "tic_tac_toe")
    assert main(["export", str(path), "--onnx", str(tmp_path / "net.onnx")]) == 3
    assert 'pip install "sparring[export]"' in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("", "POLICY"),
        ("FOLDER/tic_tac_toe", "--onnx"),
        ("FOLDER/tic_tac_toe --onnx FOLDER/no/net.onnx", "no folder"),
        ("FOLDER/nothing --onnx FOLDER/net.onnx", "no policy"),
    ],
)
def test_mistakes(words: str, hint: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    saved_policy(tmp_path, "tic_tac_toe")
    assert main(["export", *words.replace("FOLDER", str(tmp_path)).split()]) == 2
    shown = capfd.readouterr().err
    assert hint in shown
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("kind", ["gru", "stack"])
def test_the_plain_net_remembers_what_the_net_does(kind: str, norm: bool) -> None:
    policy = remembering("skull_king", kind, norm=norm)
    plain = onnx_file.plain_net(policy)

    def run(given: dict[str, Any]) -> dict[str, Any]:
        said = plain(*(torch.from_numpy(array) for array in given.values()))
        return {name: tensor.numpy() for name, tensor in zip(names, said, strict=True)}

    names, obs = onnx_file.outputs_of(policy), onnx_file.real_observations(policy.rules, 64)
    assert names == ["logits", "value", "next_memory"]
    assert compare_steps(policy, run, obs) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gru", "stack"])
def test_what_is_remembered_goes_in_and_comes_out(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    policy, file = remembering("leduc_poker", kind), tmp_path / "net.onnx"
    path = save_policy(policy, tmp_path / "agent")
    assert main(["export", str(path), "--onnx", str(file)]) == 0
    numbers = policy.memory_bytes // 4
    assert f"memory: {numbers} zeros where a game begins" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    pool = Pool(policy.rules, 5, threads=1, memory=policy.memory_bytes)
    batch, held = pool.reset(), np.zeros((5, numbers), np.float32)
    for step in range(6):
        obs = batch.obs[:, : policy.rules.obs_bytes].copy()
        logits, value, held = session.run(None, {"obs": obs, "memory": held})
        found = policy.evaluate(batch.obs)
        np.testing.assert_allclose(logits, found.heads["policy"], atol=1e-4)
        np.testing.assert_allclose(value, policy.value(batch.obs), atol=1e-4)
        wanted = policy.next_memory(batch.obs, found)
        np.testing.assert_allclose(held, wanted.view(np.float32), atol=1e-4)
        assert held.any() or not step
        seat = batch.seat.astype(int)
        pool.memory[np.arange(5), seat] = wanted
        batch = pool.step(pool.sample_actions())
        held = pool.memory[np.arange(5), batch.seat.astype(int)].view(np.float32)


def test_a_page_for_a_network_that_remembers_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save_policy(remembering("tic_tac_toe"), tmp_path / "agent")
    assert main(["export", str(path), "--html", str(tmp_path / "agent.html")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "net.memory gru has no passes in a browser" in line and "--onnx" in line
    assert sorted(one.name for one in tmp_path.iterdir()) == ["agent"]


@pytest.mark.parametrize("name", ["agent.pt", "agent.ts", "x/agent.TorchScript"])
def test_torchscript_is_refused_with_what_works_instead(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "latest", "--onnx", name]) == 2
    told = capsys.readouterr().err
    assert f"--onnx {name}: TorchScript is deprecated and not written" in told
    assert "agent.onnx" in told and told.count("\n") == 1
