"""The file of a Stable-Baselines3 model: its weights and its settings, without running any of it.

It is a zip: `policy.pth` has the weights, `data` the settings, JSON in which pickles lie as text.
The weights go through torch's weights-only loader, and of the settings plain words are read.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sparring.store.files import read_regular
from sparring.store.schema import parse_json

WEIGHTS, SETTINGS = "policy.pth", "data"
MAX_BYTES = 2 * 2**30
"""Largest file that is read."""
LIBRARIES = ("stable_baselines3.", "sb3_contrib.")
EXTRACTOR = "<class 'stable_baselines3.common.torch_layers.FlattenExtractor'>"
ACTIVATIONS = {"ReLU": "relu", "Tanh": "tanh", "SiLU": "silu"}


def read_model_file(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return weights and settings; raises ValueError or OSError."""
    data = read_regular(path, MAX_BYTES)
    with open_stored(data, "it") as archive:
        settings = parse_json(read_entry(archive, SETTINGS))
        weights = unpack_weights(read_entry(archive, WEIGHTS))
    if not isinstance(settings, dict):
        raise ValueError(f"its {SETTINGS} holds no settings")
    check_policy_class(settings)
    return weights, settings


def open_stored(data: bytes, what: str) -> zipfile.ZipFile:
    """Open a zip of which every entry lies there as it is, so that reading needs no more memory."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
    except Exception:  # damage of any kind, from struct.error to UnicodeDecodeError
        raise ValueError(f"{what} is no zip file, or a damaged one") from None
    if min((one.header_offset for one in entries), default=0):  # the last file of one cut off
        raise ValueError(f"{what} is no zip file, or a damaged one")
    for one in entries:
        encrypted, stored = one.flag_bits & 1, one.compress_type == zipfile.ZIP_STORED
        if encrypted or not stored or one.file_size != one.compress_size:
            raise ValueError(
                f"{what} has {one.filename[:80]!r} compressed, which model.save() never does"
            )
    if sum(one.file_size for one in entries) > len(data):
        raise ValueError(f"{what} has entries that are larger than it is")
    return archive


def read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.namelist().count(name) != 1:
        raise ValueError(f"it has no {name}; save it by model.save()")
    try:
        return archive.read(name)
    except Exception:  # as above
        raise ValueError(f"its {name} is damaged") from None


def unpack_weights(data: bytes) -> dict[str, Tensor]:
    """Return the tensors in `policy.pth`; a pickle with anything else in it is refused."""
    open_stored(data, f"its {WEIGHTS}").close()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a forged file makes the loader stumble over
        code = re.search(r"GLOBAL ([\w.]{1,80})", str(error))
        what = f"names {code[1]}, which is code; it was not run" if code else "is damaged"
        raise ValueError(f"its {WEIGHTS} {what}") from None
    if not isinstance(loaded, dict):
        raise ValueError(f"its {WEIGHTS} holds no weights")
    for name, one in loaded.items():
        plain = isinstance(name, str) and isinstance(one, Tensor) and one.layout == torch.strided
        if not plain or one.dtype != torch.float32 or not one.is_contiguous():
            raise ValueError(f"its {WEIGHTS} has {str(name)[:80]!r}, which is no float32 tensor")
    return dict(loaded)


def check_policy_class(settings: Mapping[str, Any]) -> None:
    """Raise ValueError where the layers may not say how a model plays."""
    policy_class, given = settings.get("policy_class"), policy_kwargs(settings)
    module = policy_class.get("__module__") if isinstance(policy_class, dict) else None
    if not isinstance(module, str) or not module.startswith(LIBRARIES):
        raise ValueError(f"its policy class is of {str(module)[:80]!r}, whose code is not known")
    extractor = given.get("features_extractor_class", EXTRACTOR)
    if extractor != EXTRACTOR:
        raise ValueError(f"it reads observations by {str(extractor)[:80]}, not as they are")
    if settings.get("use_sde"):
        raise ValueError("it explores by use_sde, which is not supported; train it without")


def policy_kwargs(settings: Mapping[str, Any]) -> dict[str, Any]:
    found = settings.get("policy_kwargs")
    return found if isinstance(found, dict) else {}


def activation_of(settings: Mapping[str, Any], default: str) -> str:
    """Return the activation of all layers, which the settings have as text if they have it."""
    text = policy_kwargs(settings).get("activation_fn")
    if text is None:
        return default
    name = str(text).removesuffix("'>").rpartition(".")[2]
    if name not in ACTIVATIONS:
        raise ValueError(f"its activation is {name[:80]}; there are {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]
