"""Rules compiled by numba-cuda to device functions, as LTO-IR that is linked to the kernels.

This module imports numba-cuda; the others of the package do not. It compiles the same functions as
`compiled`, and wrappers that `SPARRING_RULE` of csrc/cuda/scripted.cuh declares. No GPU is needed.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 names it, NumPy 2.5 has it no more
    np.row_stack = np.vstack

from numba import cuda
from numba.cuda import cgutils, types
from numba.cuda import dispatcher as dispatching
from numba.cuda.core import callconv, errors
from numba.cuda.extending import core_models, intrinsic, overload, overload_method, register_model
from numba.cuda.np import numpy_support
from numba.cuda.np.arrayobj import make_array, populate_array
from numba.cuda.target import CUDATargetContext

from sparring.errors import RulesError
from sparring.kernels.compiling import read_cached, write_cache
from sparring.kernels.linking import linker_version, wheel_version
from sparring.pygames.compile_errors import explain
from sparring.pygames.compiled import ANSWERS, arguments, cache_folder, linked_copies
from sparring.pygames.declare import RULES, Declaration
from sparring.pygames.scan import check_functions, source_hash

EXACT = frozenset(
    {"abs", "ceil", "copysign", "fabs", "floor", "fmod", "isfinited", "isinfd", "isnand", "llabs"}
    | {"llmax", "llmin", "llrint", "max", "min", "nearbyint", "popcll", "rint", "sqrt", "trunc"}
)
"""Functions of CUDA's library that round as a CPU does; others differ in the last bit."""
HINT = (
    "this is about the GPU, which makes no new lists and arrays: declare a field of the state, or "
    "leave the games on the CPU: --pool cpu"
)
HOST_RULES = ("resample", "valid")
"""Rules that pools do not call."""
_lock = threading.Lock()
_known: dict[str, tuple[bytes, ...]] = {}


class RngType(types.Type):  # type: ignore[misc]
    """Address of the core's generator."""

    def __init__(self) -> None:
        super().__init__(name="Rng")


RNG = RngType()
register_model(RngType)(core_models.OpaqueModel)
DRAW_BELOW = cuda.declare_device(
    "sparring_draw_below", types.int64(types.CPointer(types.int32), types.int64), abi="c"
)
DRAW_UNIFORM = cuda.declare_device(
    "sparring_draw_uniform", types.float64(types.CPointer(types.int32)), abi="c"
)


@intrinsic  # type: ignore[untyped-decorator]
def record_at(context: Any, pointer: Any) -> Any:
    """The record at an address."""

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return pointer.dtype(pointer), generate


@intrinsic  # type: ignore[untyped-decorator]
def vector_at(context: Any, pointer: Any, count: Any) -> Any:
    """The array at an address."""
    kind = types.Array(pointer.dtype, 1, "C")

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(kind)(target, builder)
        size = target.get_abi_sizeof(target.get_data_type(pointer.dtype))
        step = target.get_constant(types.intp, size)
        length = target.cast(builder, args[1], signature.args[1], types.intp)
        populate_array(
            array,
            data=args[0],
            shape=cgutils.pack_array(builder, [length]),
            strides=cgutils.pack_array(builder, [step]),
            itemsize=step,
            meminfo=None,
        )
        return array._getvalue()

    return kind(pointer, count), generate


@intrinsic  # type: ignore[untyped-decorator]
def rng_at(context: Any, pointer: Any) -> Any:
    """The generator at an address."""

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], target.get_value_type(RNG))

    return RNG(pointer), generate


@intrinsic  # type: ignore[untyped-decorator]
def words_of(context: Any, rng: Any) -> Any:
    """The words of a generator."""
    words = types.CPointer(types.int32)

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], target.get_value_type(words))

    return words(rng), generate


@overload_method(RngType, "below")  # type: ignore[untyped-decorator]
def rng_below(rng: Any, count: Any) -> Any:
    if not isinstance(count, types.Integer):
        raise errors.TypingError(f"rng.below(n) needs a whole number, not {count}")

    def below(rng: Any, count: Any) -> Any:
        if count < 1 or count > 0x7FFFFFFF:
            raise ValueError("rng.below(n) needs n from 1 to 2147483647")
        return DRAW_BELOW(words_of(rng), np.int64(count))

    return below


@overload_method(RngType, "uniform")  # type: ignore[untyped-decorator]
def rng_uniform(rng: Any) -> Any:
    def uniform(rng: Any) -> Any:
        return DRAW_UNIFORM(words_of(rng))

    return uniform


def end_number(answer: Any) -> Any:
    """The number of an end that `step` returned."""


@overload(end_number)  # type: ignore[untyped-decorator]
def number_of_end(answer: Any) -> Any:
    def nothing(answer: Any) -> Any:
        return 0

    def maybe(answer: Any) -> Any:
        return 0 if answer is None else np.int64(answer)

    def number(answer: Any) -> Any:
        return np.int64(answer)

    if isinstance(answer, types.NoneType):
        return nothing
    return maybe if isinstance(answer, types.Optional) else number


GIVEN = (
    *("state", "flags", "rng", "row", "mask", "reward", "count"),
    *("seat", "action", "bot", "answer", "number"),
)
"""Parameters of `SPARRING_RULE`."""
UNPACKED = {
    "state": "record_at(state)",
    "flags": "record_at(flags)",
    "rng": "rng_at(rng)",
    "mask": "vector_at(mask, ACTIONS)",
    "obs": "record_at(row)",
    "rewards": "record_at(reward)",
    "counts": "record_at(count)",
    "seat": "seat",
    "action": "action",
}
"""How a wrapper makes each argument."""
WRITTEN = {"call.answer": "vector_at(answer, 1)[0]", "call.number": "vector_at(number, 1)[0]"}
"""Where a wrapper writes what a rule answers."""


class DeviceRules:
    """The rules of a declaration as LTO-IR for an architecture, one part for each rule."""

    def __init__(self, declared: Declaration) -> None:
        self.declared = declared
        self.functions = [*declared.functions.values(), *declared.bots.values()]
        self.helpers = check_functions(self.functions)
        self.dtypes = {
            "state": declared.state_dtype,
            "flags": declared.flags_dtype,
            "row": declared.observation_dtype,
            "reward": declared.rewards_dtype,
            "count": declared.counts_dtype,
        }

    def code(self, arch: str) -> tuple[bytes, ...]:
        """Compile the rules, or read them from the cache. arch: such as sm_90."""
        linker_version()  # refuses a machine without one before anything is compiled
        key = hashlib.sha256(self.fingerprint(arch)).hexdigest()[:32]
        with _lock:
            if key not in _known:
                _known[key] = self.cached(key, arch)
            return _known[key]

    def cached(self, key: str, arch: str) -> tuple[bytes, ...]:
        rules = self.rules()
        files = [cache_folder() / f"{key}_{rule}.ltoir" for rule in rules]
        found = [read_cached(file) for file in files]
        if None in found:
            found = list(self.compile(arch))
            for file, code in zip(files, found, strict=True):
                write_cache(file, code or b"")
        return tuple(code or b"" for code in found)

    def fingerprint(self, arch: str) -> bytes:
        """Hash of all that the code depends on."""
        layout = (
            *(str(dtype) for dtype in self.dtypes.values()),
            (self.declared.actions, list(self.declared.bots), arch),
            (metadata.version("numba-cuda"), wheel_version("nvidia-nvvm"), np.__version__),
            Path(__file__).read_text(),
        )
        return source_hash([*self.functions, *self.helpers], layout)

    def rules(self) -> list[str]:
        """The rules that kernels call."""
        declared = self.declared
        bots = ["bot"] if declared.bots else []
        return [r for r in RULES if r in declared.functions and r not in HOST_RULES] + bots

    def compile(self, arch: str) -> list[bytes]:
        capability = int(arch[3:-1]), int(arch[-1])
        with compiling_for(capability):
            names = self.names(self.dispatchers())
            return [self.compile_rule(rule, names, capability) for rule in self.rules()]

    def compile_rule(self, rule: str, names: dict[str, Any], cc: tuple[int, int]) -> bytes:
        """Compile one rule and its wrappers.

        The inner one has Numba's calling convention, which reports failures; the outer one has C's
        and returns whether the inner one failed.
        """
        given = ", ".join(GIVEN)
        of = self.declared.functions.get(rule) or next(iter(self.declared.bots.values()))
        exec(f"def run_rule({given}):\n{self.body(rule)}", names)
        inner = cuda.jit(device=True)(names["run_rule"])
        try:
            made = inner.compile_device(self.types)
        except Exception as error:  # Numba raises many kinds
            raise RulesError(f"{explain(error, of)}; {HINT}") from None
        check_rounding(made.library.get_llvm_str(), of)

        def succeed(context: Any, *given: Any) -> Any:
            def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
                target.add_linking_libs([made.library])
                status, _ = target.call_internal_no_propagate(
                    builder, made.fndesc, made.signature, args
                )
                return builder.zext(status.is_error, target.get_value_type(types.int32))

            return types.int32(*given), generate

        typed = {"succeed": succeed}
        exec(f"def attempt(context, {given}):\n    return succeed(context, {given})", typed)
        outer: dict[str, Any] = {"attempt": intrinsic(typed["attempt"])}
        exec(f"def call_rule({given}):\n    return attempt({given})", outer)
        code, _ = cuda.compile(
            outer["call_rule"],
            types.int32(*self.types),
            device=True,
            abi="c",
            abi_info={"abi_name": f"sparring_rule_{rule}"},
            fastmath=False,
            cc=cc,
            output="ltoir",
        )
        return bytes(code)

    @property
    def types(self) -> tuple[Any, ...]:
        """Types of `GIVEN`."""
        records = {
            name: numpy_support.from_dtype(dtype) if dtype.names else types.int32
            for name, dtype in self.dtypes.items()
        }
        if len(self.declared.parts) == 1:
            records["reward"] = types.float32
        plain = {"rng": types.int32, "mask": types.uint8, "answer": types.int64}
        pointed = {**records, **plain, "number": types.float64}
        return tuple(
            types.CPointer(pointed[name]) if name in pointed else types.int64 for name in GIVEN
        )

    def body(self, rule: str) -> str:
        """Text of the body of a wrapper."""
        answer = ANSWERS.get(rule, "{}")
        for word, place in WRITTEN.items():
            answer = answer.replace(word, place)
        if rule != "bot":
            return f"    {answer.format(self.call(rule, self.declared.functions[rule]))}\n"
        return "".join(
            f"    if bot == {i}:\n        {answer.format(self.call(f'bot_{i}', bot))}\n"
            for i, bot in enumerate(self.declared.bots.values())
        )

    def call(self, name: str, function: FunctionType) -> str:
        """Text of the call of a function of the rules."""
        made = UNPACKED | (
            {"rewards": "vector_at(reward, SEATS)"} if len(self.declared.parts) == 1 else {}
        )
        return f"{name}({', '.join(made[word] for word in arguments(function))})"

    def names(self, jitted: dict[FunctionType, Any]) -> dict[str, Any]:
        """Names that the wrappers use."""
        declared = self.declared
        return {
            "record_at": record_at,
            "vector_at": vector_at,
            "rng_at": rng_at,
            "end_number": end_number,
            "ACTIONS": declared.actions,
            "SEATS": declared.seats,
            "__name__": "sparring_rules_on_gpu",
            **{rule: jitted[f] for rule, f in declared.functions.items()},
            **{f"bot_{i}": jitted[f] for i, f in enumerate(declared.bots.values())},
        }

    def dispatchers(self) -> dict[FunctionType, Any]:
        return linked_copies([*self.functions, *self.helpers], cuda.jit(device=True))


@contextmanager
def compiling_for(capability: tuple[int, int]) -> Iterator[None]:
    """Compile for an architecture, without a GPU, and with the failures of the interpreter.

    numba-cuda asks the current device for its architecture, and has no option for checks of
    indices and of divisions by zero without its debug mode.
    """

    class Device:
        compute_capability = capability

    changes: list[tuple[Any, str, Any]] = [
        (dispatching, "get_current_device", Device),
        (CUDATargetContext, "enable_boundscheck", True),
        (callconv.NumpyErrorModel, "raise_on_fp_zero_division", True),
    ]
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def check_rounding(code: str, function: FunctionType) -> None:
    """Refuse functions that a GPU rounds in another way than a CPU."""
    called = re.findall(r"@\"?__nv_(\w+)", code)
    called += re.findall(r"@\"?llvm\.(sin|cos|tan|exp2?|log(?:2|10)?|pow|fma)\.", code)
    if other := sorted({name for name in called if name.removesuffix("f") not in EXACT}):
        file, line = Path(function.__code__.co_filename).name, function.__code__.co_firstlineno
        raise RulesError(
            f"{file}:{line}: {function.__name__} uses {', '.join(other)}, which a GPU rounds in "
            "another way than a CPU; take a table of constants, x * x for x ** 2, or leave the "
            "games on the CPU: --pool cpu"
        )
