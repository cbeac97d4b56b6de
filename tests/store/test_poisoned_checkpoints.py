"""A checkpoint of somebody else is data: it reads no other files, fills no memory, stops nobody.

Whatever its manifest says behind a hash that fits, loading it gives a policy or one line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import torch as safetensors

from sparring.errors import SparringError, SparringWarning
from sparring.store import checkpoint
from sparring.store.checkpoint import CheckpointError
from sparring.store.manifest import MANIFEST
from sparring.store.policies import load_policy, save_policy
from store.poison_helpers import NUMBER, change, make_run, promise, put

Edit = Callable[[dict[str, Any]], object]
WEIGHTS = "net.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a run."""
    return make_run(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture
def path(tmp_path: Path, whole: Path) -> Path:
    """A copy of it, to be changed."""
    run = shutil.copytree(whole.parent.parent, tmp_path / "run")
    return run / "checkpoints" / whole.name


# Files


@pytest.mark.parametrize(
    "name", ["/etc/hostname", "../../config.toml", "..", ".hidden", "", "a\0b"]
)
def test_names_of_files_have_no_folders(path: Path, name: str) -> None:
    change(path, lambda manifest: manifest["files"].update({name: promise(b"")}))
    with pytest.raises(CheckpointError, match="not the name of a file without folders"):
        load_policy(path)


def test_the_size_of_a_foreign_file_is_not_told(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 4321)
    change(path, lambda manifest: manifest["files"].update({str(secret): promise(b"")}))
    with pytest.raises(CheckpointError) as caught:
        load_policy(path)
    assert "4321" not in str(caught.value)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["games.bin", WEIGHTS, MANIFEST])
def test_a_fifo_in_place_of_a_file_is_refused_at_once(path: Path, name: str) -> None:
    (path / name).unlink()
    os.mkfifo(path / name)
    with pytest.raises(CheckpointError, match="not a regular file"):
        checkpoint.load(path)


@pytest.mark.timeout(60)
def test_an_endless_device_is_not_read(path: Path) -> None:
    (path / "games.bin").unlink()
    (path / "games.bin").symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="a link that leaves"):
        checkpoint.load(path)


def test_a_file_is_not_read_beyond_what_is_promised(path: Path) -> None:
    with (path / "games.bin").open("r+b") as file:
        file.truncate(2**40)  # takes no room on the disk
    with pytest.raises(CheckpointError, match=r"games.bin .*at most 5 are read"):
        checkpoint.load(path)


def test_links_are_followed_within_the_run_alone(path: Path, tmp_path: Path) -> None:
    inside = path.parent.parent / "weights"
    (path / WEIGHTS).rename(inside)
    (path / WEIGHTS).symlink_to(inside)
    load_policy(path)
    outside = tmp_path / "weights"
    inside.rename(outside)
    (path / WEIGHTS).unlink()
    (path / WEIGHTS).symlink_to(outside)
    with pytest.raises(CheckpointError, match="a link that leaves"):
        load_policy(path)


def test_a_checkpoint_that_is_a_link_out_of_its_run_is_refused(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(CheckpointError, match="a link that leaves"):
        checkpoint.load(path)
    with (
        pytest.warns(SparringWarning, match="a link that leaves"),
        pytest.raises(CheckpointError, match="all 1 checkpoints in"),
    ):
        load_policy(path.parent.parent)
    load_policy(elsewhere)  # typed by who loads it


def test_a_run_or_a_policy_may_be_given_as_a_link(path: Path, tmp_path: Path) -> None:
    (tmp_path / "run link").symlink_to(path.parent.parent)
    (tmp_path / "checkpoint link").symlink_to(path)
    saved = save_policy(load_policy(tmp_path / "run link"), tmp_path / "saved")
    (tmp_path / "policy link").symlink_to(saved)
    load_policy(tmp_path / "policy link")
    load_policy(tmp_path / "checkpoint link")


def test_a_lock_that_is_a_link_makes_no_file_elsewhere(path: Path, tmp_path: Path) -> None:
    lock, made = path.parent / ".lock", tmp_path / "made"
    lock.unlink(missing_ok=True)
    lock.symlink_to(made)
    assert checkpoint.newest_valid(path.parent) == path
    assert not made.exists()


# What a manifest says


@pytest.mark.parametrize("key", ["files", "groups", "blobs", "meta", "number"])
@pytest.mark.parametrize("value", ["missing", None, [], {}, "x", -1, 1.5, [None], {"a": 1}])
def test_a_manifest_has_entries_of_the_right_kind(path: Path, key: str, value: Any) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest.pop(key)
        if value != "missing":
            manifest[key] = value

    change(path, edit)
    if (key, value) == ("blobs", []):
        load_policy(path)
        return
    with pytest.raises(CheckpointError) as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)
    assert key in str(caught.value) or key in ("meta", "groups")


META: dict[str, tuple[Edit, str]] = {
    "no net": (lambda meta: meta.pop("net"), "net is missing"),
    "net null": (lambda meta: meta.update(net=None), "net is None, not an object"),
    "net of an odd kind": (lambda meta: meta["net"].update(kind=3), r"net\.kind is 3, not a text"),
    "unknown setting": (lambda meta: meta["net"].update(wings=2), "wings"),
    "odd width": (lambda meta: meta["net"].update(hidden=["x"]), "net.hidden needs a whole"),
    "many layers": (lambda meta: meta["net"].update(hidden=[8] * 1000), "1000 layers"),
    "many own layers": (lambda meta: meta["net"].update(policy_hidden=[8] * 1000), "1000 layers"),
    "roles a list": (lambda meta: meta.update(roles=[]), "roles is .*not an object"),
    "role null": (lambda meta: meta.update(roles={"player": None}), "roles.player is None"),
    "foreign {}": (lambda meta: meta.update(foreign={}), r"foreign\.name is missing"),
    "game a list": (lambda meta: meta.update(game=[]), r"game is \[\], not a text"),
    "no such game": (lambda meta: meta.update(game="chess"), "no game called 'chess'"),
    "flags a list": (lambda meta: meta.update(game_config=[]), "game_config is .*not an object"),
    "odd flag": (lambda meta: meta.update(game_config={"skip_forced": {}}), "skip_forced"),
    "no heads": (lambda meta: meta.update(heads={}), "it has no policy head"),
    "heads a list": (lambda meta: meta.update(heads=[]), "heads is .*not an object"),
    "narrow head": (lambda meta: meta.update(heads={"policy": 4, "value": 1}), "heads.policy is 4"),
    "wide head": (lambda meta: meta.update(heads={"policy": 9, "score": 2**40}), "heads.score"),
    "odd head": (lambda meta: meta.update(heads={"policy": 9, "a.b": 1}), "the name of a head"),
    "memory -1": (lambda meta: meta.update(memory=-1), "memory is -1"),
    "memory odd": (lambda meta: meta.update(memory=1), "memory 1 must be a multiple"),
    "by_value odd": (lambda meta: meta.update(by_value="no"), "by_value is 'no', not true or"),
    "update odd": (lambda meta: meta.update(update=1e400), "update is inf"),
    "version odd": (lambda meta: meta.update(rules_version=None), "rules_version is None"),
}


@pytest.mark.parametrize("kind", META)
def test_what_a_policy_says_about_itself_has_the_right_kind(path: Path, kind: str) -> None:
    edit, match = META[kind]
    change(path, lambda manifest: edit(manifest["meta"]))
    with pytest.raises(SparringError, match=match) as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)


CUSTOM: dict[str, Any] = {"name": "env", "seats": 1, "rows": 1, "actions": 4, "numbers": 8}
BOUNDS: dict[str, Any] = {"low": [0.0], "high": [1.0], "shape": [1], "dtype": "float32"}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"numbers": 10**12}, "foreign.numbers"),
        ({"numbers": 2**21}, "weights allow"),
        ({"actions": 2**21}, "weights allow"),
        ({"seats": 0}, "foreign.seats"),
        ({"wings": 1}, "foreign.wings is unknown"),
        ({"parts": [["a", 8]]}, "has 2 entries"),
        ({"parts": [["a", 7, "float32", 1.0]]}, "has 7 numbers"),
        ({"parts": [["a", 8, "int64", 1.0]]}, "float32 or uint8"),
        ({"parts": [["a", 8, "float32", 1]], "names": ["a"]}, "feature_names has 1 names"),
        ({"bounds": {**BOUNDS, "low": []}}, "different sizes"),
        ({"bounds": {**BOUNDS, "shape": [2**20, 2**20]}}, "different sizes"),
        ({"bounds": {**BOUNDS, "dtype": "object"}}, "a type of floats"),
    ],
)
def test_sizes_of_an_own_environment_are_checked(
    path: Path, changes: dict[str, Any], match: str
) -> None:
    change(path, lambda manifest: manifest["meta"].update(foreign={**CUSTOM, **changes}))
    with pytest.raises(SparringError, match=match) as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 200_000, "[" * 500 + "]" * 500, "9" * 9999]
)
@pytest.mark.parametrize("name", [MANIFEST, "best.json"])
def test_deep_and_long_json_is_damage(path: Path, name: str, text: str) -> None:
    file = path / name if name == MANIFEST else path.parent.parent / name
    file.write_text(text)
    if name == MANIFEST:
        with pytest.raises(CheckpointError, match=r"manifest.json is damaged"):
            checkpoint.load(path)
    else:
        with pytest.warns(SparringWarning, match="taking the newest checkpoint"):
            load_policy(path.parent.parent)


@pytest.mark.parametrize(
    "best", ["1e400", "-1", '"3"', "null", "[3]", "{}", "NaN", "99999999999999999999999", "true"]
)
def test_an_odd_best_checkpoint_is_passed_over(path: Path, best: str) -> None:
    run = path.parent.parent
    (run / "best.json").write_text(f'{{"checkpoint": {best}}}')
    with pytest.warns(SparringWarning, match="taking the newest checkpoint"):
        assert load_policy(run).meta["update"] == NUMBER


@pytest.mark.timeout(60)
def test_a_fifo_in_place_of_the_best_is_passed_over(path: Path) -> None:
    run = path.parent.parent
    (run / "best.json").unlink()
    os.mkfifo(run / "best.json")
    with pytest.warns(SparringWarning, match="taking the newest checkpoint"):
        load_policy(run)


def test_a_checkpoint_has_the_number_of_its_folder(path: Path) -> None:
    change(path, lambda manifest: manifest.update(number=99))
    with pytest.raises(CheckpointError, match="its number is 99"):
        checkpoint.load(path)


# Weights


def weights_of(path: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = safetensors.load((path / WEIGHTS).read_bytes())
    return found


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.bfloat16, torch.bool])
def test_weights_of_another_type_are_refused(path: Path, dtype: torch.dtype) -> None:
    changed = {name: tensor.to(dtype) for name, tensor in weights_of(path).items()}
    put(path, WEIGHTS, safetensors.save(changed))
    with pytest.raises(CheckpointError, match=r"its .* is \w+ .*, the network's is float32"):
        load_policy(path)


def test_missing_extra_and_reshaped_weights_are_refused(path: Path) -> None:
    weights = weights_of(path)
    name, tensor = next(iter(weights.items()))
    odd = {
        f"its weights lack {name}": {k: v for k, v in weights.items() if k != name},
        "its weights hold 'extra'": {**weights, "extra": torch.zeros(1)},
        f"its {name} is float32 \\[1": {**weights, name: tensor.reshape(1, *tensor.shape)},
    }
    for match, changed in odd.items():
        put(path, WEIGHTS, safetensors.save(changed))
        with pytest.raises(CheckpointError, match=match):
            load_policy(path)


def test_weights_that_are_no_numbers_are_refused(path: Path) -> None:
    weights = weights_of(path)
    next(iter(weights.values())).view(-1)[0] = torch.nan
    put(path, WEIGHTS, safetensors.save(weights))
    with pytest.raises(SparringError, match="not finite"):
        load_policy(path)


def head(entries: dict[str, Any], data: bytes = b"") -> bytes:
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + data


ODD_FILES = {
    "empty": b"",
    "no head": b"\xff" * 8,
    "unknown type": head({"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}, b"\0"),
    "huge and empty": head({"a": {"dtype": "F32", "shape": [0, 2**62, 8], "data_offsets": [0, 0]}}),
    "too large": head({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}),
    "head a list": (2).to_bytes(8, "little") + b"[]",
    "deep head": (200_000).to_bytes(8, "little") + b"[" * 200_000,
    "odd texts": head({"__metadata__": {"policy": 3}}),
}


@pytest.mark.parametrize("kind", ODD_FILES)
def test_odd_safetensors_are_refused_in_one_line(path: Path, tmp_path: Path, kind: str) -> None:
    put(path, WEIGHTS, ODD_FILES[kind])
    alone = tmp_path / "agent.safetensors"
    alone.write_bytes(ODD_FILES[kind])
    for place in (path, alone):
        with pytest.raises(SparringError) as caught:
            load_policy(place)
        assert "\n" not in str(caught.value)


def test_a_snapshot_is_held_to_the_same(path: Path, tmp_path: Path) -> None:
    meta = json.loads((path / MANIFEST).read_bytes())["meta"]
    alone = tmp_path / "agent.safetensors"
    odd = [*(json.dumps({**meta, "net": odd}) for odd in (None, [], {"kind": 3})), "[" * 200_000]
    for text in ("[]", "3", "{}", *odd):
        alone.write_bytes(safetensors.save(weights_of(path), {"policy": text}))
        with pytest.raises(SparringError) as caught:
            load_policy(alone)
        assert "\n" not in str(caught.value)
    alone.write_bytes(safetensors.save(weights_of(path), {"policy": json.dumps(meta)}))
    assert load_policy(alone).rules.name == "tic_tac_toe"


GREEDY: dict[str, dict[str, Any]] = {
    "wide and deep": {"net": {"hidden": [8192] * 40}},
    "own layers": {"net": {"policy_hidden": [8192] * 60, "value_hidden": [8192] * 60}},
    "memory": {"memory": 10**12},
    "memory within the bound": {"memory": 2**22},
    "gru": {"net": {"memory": "gru", "memory_width": 4096}},
    "residual": {"net": {"kind": "residual", "channels": 1024, "blocks": 128}},
    "observations": {"foreign": {**CUSTOM, "numbers": 10**12}},
    "heads": {"heads": {"policy": 9, **{f"h{at}": 2**22 for at in range(60)}}},
    "roles": {"roles": {f"r{at}": {"kind": "mlp", "hidden": [8192] * 40} for at in range(60)}},
}

CHILD = """
import json, resource, sys
from pathlib import Path
from sparring.errors import SparringError
from sparring.store.policies import load_policy
from store.poison_helpers import change
path = Path(sys.argv[1])
kinds = json.loads(sys.argv[2])
whole = (path / "manifest.json").read_bytes()
load_policy(path)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for kind, changes in kinds.items():
    def edit(manifest):
        meta = manifest["meta"]
        meta.update({**changes, "net": {**meta["net"], **changes.get("net", {})}})
    change(path, edit)
    try:
        load_policy(path)
        told = "loaded"
    except SparringError as wrong:
        told = str(wrong)
    (path / "manifest.json").write_bytes(whole)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps([kind, told, grown]), flush=True)
"""


def test_nothing_is_built_that_is_larger_than_the_file(path: Path) -> None:
    words = [sys.executable, "-c", CHILD, str(path), json.dumps(GREEDY)]
    ended = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert ended.returncode == 0, ended.stderr
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [kind for kind, *_ in told] == list(GREEDY)
    for kind, text, grown_mib in told:
        assert "\n" not in text and text != "loaded", (kind, text)
        assert grown_mib < 64, (kind, grown_mib)
