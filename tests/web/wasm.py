"""A game's module without a browser: wasmtime runs it, with the calls of app/engine/engine.js."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from sparring.errors import SparringError
from sparring.games.rules import Rules
from sparring.web.description import wasm_file

wasmtime = pytest.importorskip("wasmtime", reason='pip install "sparring[dev]" brings wasmtime')


class ModuleError(Exception):
    """What a module says when it cannot go on."""


@cache
def compiled(game: str) -> tuple[Any, Any]:
    try:
        file = wasm_file(game)
    except SparringError as missing:
        pytest.skip(str(missing))
    config = wasmtime.Config()
    config.cache = True  # compiling takes longer than most tests
    engine = wasmtime.Engine(config)
    return engine, wasmtime.Module.from_file(engine, str(file))


class Module:
    """One instance, with room for what goes in and out."""

    def __init__(self, rules: Rules) -> None:
        engine, module = compiled(rules.name)
        self.rules, self.store = rules, wasmtime.Store(engine)
        self.failed = ""
        imports = [self._import(wanted) for wanted in module.imports]
        self._exports = wasmtime.Instance(self.store, module, imports).exports(self.store)
        self._memory = self._exports["memory"]
        self.functions = {name: self._exports[name] for name in self._exports}
        self.call("_initialize")
        self.about = json.loads(self.text(self.call("describe")))
        config = rules.native.config_bytes
        assert len(config) == self.about["config_bytes"]
        self.config = self.put(config)
        weights = np.asarray(rules.weights(None), np.float32)
        self.weights, self.weight_count = self.put(weights.tobytes()), len(weights)
        self.row = self.call("alloc", rules.obs_bytes)
        self.mask = self.call("alloc", rules.actions)
        self.numbers = self.call("alloc", 4 * 256)
        self.room, self.room_bytes = 0, 0

    def _import(self, wanted: Any) -> Any:
        def fail(why: int) -> None:
            self.failed = self.text(why)
            raise ModuleError(self.failed)

        given = fail if wanted.name == "fail" else lambda *_: 0
        return wasmtime.Func(self.store, wanted.type, given)

    def call(self, name: str, *arguments: Any) -> Any:
        try:
            return self.functions[name](self.store, *arguments)
        except Exception:
            if self.failed:
                raise ModuleError(self.failed) from None
            raise

    def read(self, address: int, count: int) -> bytes:
        return bytes(self._memory.read(self.store, address, address + count))

    def write(self, address: int, data: bytes) -> None:
        self._memory.write(self.store, data, address)

    def floats(self, address: int, count: int) -> np.ndarray:
        return np.frombuffer(self.read(address, 4 * count), np.float32)

    def put(self, data: bytes) -> int:
        address = self.call("alloc", len(data))
        self.write(address, data)
        return address

    def text(self, address: int) -> str:
        found = b""
        while b"\0" not in found:
            found += self.read(address + len(found), 256)
        return found[: found.index(0)].decode()

    def state(self, seed: int, game: int = 0, *, skip_forced: bool | None = None) -> WasmState:
        skips = self.rules.skip_forced if skip_forced is None else skip_forced
        low, high = seed % 2**32, seed >> 32
        given = self.config, signed(low), signed(high), game, int(skips)
        return WasmState(self, self.call("state_new", *given, self.weights, self.weight_count))

    def network(self, packed: bytes) -> WasmNetwork:
        return WasmNetwork(self, packed)


class WasmState:
    """What State of app/engine/engine.js is."""

    def __init__(self, module: Module, handle: int) -> None:
        self.module, self.handle, self.rules = module, handle, module.rules

    def call(self, name: str, *arguments: Any) -> Any:
        return self.module.call(f"state_{name}", self.handle, *arguments)

    def free(self) -> None:
        self.call("free")

    def clone(self) -> WasmState:
        return WasmState(self.module, self.call("clone"))

    def seat(self, row: int = 0) -> int:
        return self.call("seat", row)

    def mask(self, row: int = 0) -> bytes:
        self.module.write(self.module.mask, bytes(self.rules.actions))
        self.call("legal", row, self.module.mask)
        return self.module.read(self.module.mask, self.rules.actions)

    def apply(self, actions: Sequence[Any]) -> bool:
        dtype = np.float32 if self.rules.box else np.int32
        self.module.write(self.module.numbers, np.array(actions, dtype).tobytes())
        return self.call("apply", self.module.numbers) == 0

    def observe(self, seat: int) -> bytes:
        self.call("observe", seat, self.module.row)
        return self.module.read(self.module.row, self.rules.obs_bytes)

    def rewards(self) -> bytes:
        self.call("rewards", self.module.numbers)
        return self.module.read(self.module.numbers, 4 * self.rules.seats * len(self.rules.roles))

    def end(self) -> tuple[bool, bool, int]:
        end = self.call("end")
        return bool(end & 1), bool(end & 2), end >> 8

    def ask(self, bot: int, row: int = 0) -> list[float]:
        self.call("ask", bot, row, self.module.numbers)
        return self.module.floats(self.module.numbers, self.rules.box or 1).tolist()

    def text(self, viewer: int) -> str:
        return self.module.text(self.call("text", viewer))

    def save(self) -> bytes:
        module = self.module
        if not module.room:
            module.room_bytes = self.call("size")
            module.room = module.call("alloc", module.room_bytes)
        self.call("save", module.room)
        return module.read(module.room, module.room_bytes)

    def load(self, saved: bytes) -> str:
        """What is wrong with the bytes, "" if nothing."""
        room = self.module.put(saved)
        wrong = self.module.text(self.call("load", room, len(saved)))
        self.module.call("release", room)
        return wrong


class WasmNetwork:
    """What Network of app/engine/network.js is, for rows of bytes."""

    def __init__(self, module: Module, packed: bytes) -> None:
        line, body = packed.split(b"\n", 1)
        self.module, self.about = module, json.loads(line)
        self.handle = module.call("network_new", module.put(body), len(body) // 4)
        self.width = 2 * self.about["box"] or self.about["actions"]

    def answer(self, row: bytes, mask: bytes) -> tuple[np.ndarray, float]:
        """The numbers of the policy head, and the value."""
        self.module.write(self.module.row, row)
        self.module.write(self.module.mask, mask)
        where = self.module.call("network_answer", self.handle, self.module.row, self.module.mask)
        said = self.module.floats(where, self.width + 1)
        return said[:-1], float(said[-1])

    def belief(self, row: bytes) -> np.ndarray:
        """Log-probabilities of what is hidden from a row's seat."""
        self.module.write(self.module.row, row)
        where = self.module.call("network_belief", self.handle, self.module.row)
        return self.module.floats(where, self.module.rules.native.belief_size)

    def probabilities(self) -> np.ndarray:
        where = self.module.call("network_probabilities", self.handle, self.module.mask)
        return self.module.floats(where, self.about["actions"])

    def draw(
        self, *, greedy: bool = False, seed: int = 0, row: int = 0, episode: int = 0, step: int = 0
    ) -> np.ndarray:
        where = (signed(seed % 2**32), signed(seed >> 32), row, episode, step)
        temperature = 0.0 if greedy else 1.0
        address = self.module.call(
            "network_draw", self.handle, self.module.mask, temperature, *where
        )
        return self.module.floats(address, self.about["box"] or 1)


class WasmSearch:
    """What Search of app/engine/search.js is."""

    def __init__(self, state: WasmState, network: WasmNetwork, row: int, **wish: Any) -> None:
        self.module, self.rules = state.module, state.rules
        room = self.module.put(packed_wish(row=row, **wish))
        self.handle = self.module.call("search_new", state.handle, network.handle, room)
        self.module.call("release", room)

    def call(self, name: str, *arguments: Any) -> Any:
        return self.module.call(f"search_{name}", self.handle, *arguments)

    def free(self) -> None:
        self.call("free")

    def run(self, count: int) -> int:
        return self.call("run", count)

    def found(self) -> dict[str, Any]:
        value, width = self.call("value"), self.call("choices")
        visits = self.module.read(self.call("visits"), 4 * width)
        line = self.call("line", self.module.numbers, 256)
        return {
            "value": value,
            "visits": np.frombuffer(visits, np.int32),
            "q": self.module.floats(self.call("q"), width),
            "policy": self.module.floats(self.call("policy"), width),
            "action": self.module.floats(self.call("action"), self.rules.box or 1),
            "line": np.frombuffer(self.module.read(self.module.numbers, 4 * line), np.int32),
            "simulations": self.call("simulations"),
            "nodes": self.call("nodes"),
        }


COUNTS = (
    *("row", "simulations", "noise", "considered", "rule", "rescale", "width", "samples"),
    *("least", "horizon", "belief"),
)
SCALES = ("gamma", "c_visit", "c_scale", "c_puct", "eta", "alpha", "caution")


def packed_wish(*, seed: int = 0, gamma_into: Sequence[float] = (), **settings: float) -> bytes:
    """As SearchWish of csrc/wasm/search.hpp lies in memory."""
    whole = np.array([settings.get(name, 0) for name in COUNTS], "<i4")
    scales = np.array([settings.get(name, 0) for name in SCALES], "<f4")
    into = np.full(8, settings["gamma"], "<f4")
    into[: len(gamma_into)] = gamma_into
    return np.array([seed], "<u8").tobytes() + b"".join(
        map(np.ndarray.tobytes, (whole, scales, into))
    )


def signed(bits: int) -> int:
    """wasmtime takes 32 bits as a signed number."""
    return bits - 2**32 if bits >= 2**31 else bits
