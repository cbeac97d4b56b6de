"""Argument structs of kernels (views), parsed from the csrc headers that declare them.

A view is a struct that a kernel takes by value. The header declares it; this module makes a ctypes
structure of the same layout, filled by name, and static_asserts that check the layout.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sparring.errors import SparringError

SCALARS: dict[str, Any] = {
    "int": ctypes.c_int32,
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "u8": ctypes.c_uint8,
    "bool": ctypes.c_bool,
}
POINTED: dict[str, tuple[torch.dtype, ...]] = {
    "u8": (torch.uint8, torch.bool),
    "i8": (torch.int8,),
    "i16": (torch.int16,),
    "u16": (torch.uint16,),
    "i32": (torch.int32,),
    "u32": (torch.int32,),
    "i64": (torch.int64,),
    "u64": (torch.int64,),
    "f32": (torch.float32,),
    "f64": (torch.float64,),
    # Opaque bytes, and structs of numbers of one type.
    "Env<G>": (torch.uint8,),
    "Setting<G>": (torch.uint8,),
    "SettingStorage<G>": (torch.uint8,),
    "G": (torch.uint8,),
    "OpenLeaf<G>": (torch.uint8,),
    "Node<G>": (torch.uint8,),
    "Edge": (torch.uint8,),
    "TreeHead": (torch.uint8,),
    "Legal<G>": (torch.int64,),
    "PendingTransition": (torch.int32,),
    "EpisodeSums": (torch.float32,),
    "Hparams": (torch.float32,),
    "Statistics": (torch.float32,),
    "Losses": (torch.float32,),
    "Tally": (torch.float32,),
    "StepParams": (torch.float32,),
    "Moments": (torch.float64,),
}
"""Tensor dtypes by pointer type."""
FOLLOWED = ("cuda/", "core/", "search/")
"""Folders whose headers declare views."""


@dataclass(frozen=True)
class ViewField:
    """A field of a view, or an argument of a kernel."""

    name: str
    type: str
    pointer: bool


class KernelView(ctypes.Structure):
    """A filled view. Holds references to the tensors that it points to."""

    kept: tuple[Tensor, ...]


class Interface:
    """The kernels of a source, and the views that they take."""

    def __init__(self, source: str, defines: Mapping[str, object], headers: Path) -> None:
        self._text = plain(expanded(source, headers, set()))
        number = torch.bfloat16 if defines.get("SPARRING_BF16") else torch.float32
        box = defines.get("SPARRING_BOX")
        action = (torch.float32 if box else torch.int32,)
        self._pointed = POINTED | {
            "Num": (number,),
            "Action": (torch.int32, torch.float32) if box is None else action,
            "G::Action": (torch.int32, torch.float32),
        }
        self._views: dict[str, type[KernelView]] = {}
        self._fields_by_struct: dict[str, tuple[ViewField, ...]] = {}

    @cached_property
    def kernels(self) -> dict[str, tuple[ViewField, ...]]:
        found: dict[str, tuple[ViewField, ...]] = {}
        pattern = r'extern "C" __global__ void (?:__launch_bounds__\(\w+\) )?(\w+)\(([^)]*)\)'
        for name, text in re.findall(pattern, self._text):
            fields = tuple(field for one in text.split(",") for field in parse_fields(one))
            if found.setdefault(name, fields) != fields:
                raise SparringError(f"kernel {name} is declared twice, with other arguments")
        return found

    def names(self, struct: str) -> list[str]:
        return [field.name for field in self._fields(struct)]

    def _fields(self, struct: str) -> tuple[ViewField, ...]:
        if struct not in self._fields_by_struct:
            name = struct.removesuffix("<G>")
            start = re.search(rf"\bstruct {name} {{", self._text)
            if start is None:
                raise SparringError(f"no header declares {struct}")
            lines = statements(self._text, start.end())
            self._fields_by_struct[struct] = tuple(
                field for line in lines for field in parse_fields(line)
            )
        return self._fields_by_struct[struct]

    def view_type(self, struct: str) -> type[KernelView]:
        if struct not in self._views:
            fields: list[tuple[str, Any]] = []
            for field in self._fields(struct):
                if field.pointer:
                    if field.type not in self._pointed:
                        raise SparringError(f"{struct}.{field.name}: unknown pointer {field.type}*")
                    fields.append((field.name, ctypes.c_void_p))
                else:
                    fields.append(
                        (field.name, SCALARS.get(field.type) or self.view_type(field.type))
                    )
            self._views[struct] = type(struct, (KernelView,), {"_fields_": fields})
        return self._views[struct]

    def view(self, struct: str, /, **given: Any) -> KernelView:
        """Make a view from its fields. A tensor becomes its address, None a null pointer."""
        view, kept = self.view_type(struct)(), []
        fields = self._fields(struct)
        mismatched = given.keys() ^ {field.name for field in fields}
        if mismatched:
            names = ", ".join(sorted(mismatched))
            raise SparringError(f"{struct} has {', '.join(self.names(struct))}; see to {names}")
        for field in fields:
            value = given[field.name]
            setattr(view, field.name, self._value(field, value, struct))
            if isinstance(value, Tensor):
                kept.append(value)
            elif isinstance(value, KernelView):
                kept += value.kept
        view.kept = tuple(kept)
        return view

    def _value(self, field: ViewField, value: Any, where: str) -> Any:
        if field.pointer:
            if value is None:
                return None
            if isinstance(value, Tensor) and value.dtype in self._pointed[field.type]:
                return value.data_ptr()
            got = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise SparringError(f"{where}.{field.name} is {field.type}*, not {got}")
        if field.type not in SCALARS:
            if type(value) is self.view_type(field.type):
                return value
        elif isinstance(value, float if field.type == "f32" else int):
            return value
        raise SparringError(f"{where}.{field.name} is {field.type}, not {type(value).__name__}")

    def converters(self, kernel: str) -> list[Callable[[Any], Any]]:

        def converter(field: ViewField) -> Callable[[Any], Any]:
            if not field.pointer and field.type not in SCALARS:
                return lambda value: self._value(field, value, kernel)
            kind = ctypes.c_void_p if field.pointer else SCALARS[field.type]
            return lambda value: kind(self._value(field, value, kernel))

        return [converter(field) for field in self.kernels[kernel]]

    def checks(self) -> str:
        """Return C++ static_asserts that the views have the layout of the ctypes structures."""
        for fields in self.kernels.values():
            for field in fields:
                if not field.pointer and field.type not in SCALARS:
                    self.view_type(field.type)
        lines = []
        for name, view in self._views.items():
            fields = self._fields(name)
            sizes = {"": ctypes.sizeof(view)}
            sizes |= {f"::{field.name}": getattr(view, field.name).size for field in fields}
            lines += [f"static_assert(sizeof({name}{of}) == {n});" for of, n in sizes.items()]
            # Designated initializers must follow the order of the fields.
            in_order = ", ".join(f".{field.name} = {{}}" for field in fields)
            constant = f"k{name.removesuffix('<G>')}InOrder"
            lines.append(f"[[maybe_unused]] constexpr {name} {constant}{{{in_order}}};")
        return "\nnamespace sparring {\n" + "\n".join(lines) + "\n}\n" if lines else ""


def expanded(source: str, headers: Path, included: set[str]) -> str:
    """Return a source with csrc headers inlined, each once."""

    def include(match: re.Match[str]) -> str:
        name = match[1]
        if name in included or not name.startswith(FOLLOWED):
            return ""
        included.add(name)
        return expanded((headers / name).read_text(), headers, included)

    return re.sub(r'^#include "([^"]+)"$', include, source, flags=re.MULTILINE)


def plain(text: str) -> str:
    text = re.sub(r"//.*", "", text)
    text = re.sub(r"^#.*(?:\\\n.*)*", "", text, flags=re.MULTILINE)
    return re.sub(r"\s+", " ", text)


def statements(text: str, at: int) -> Iterator[str]:
    """Yield the statements of a struct body that begins at `at`, without functions."""
    depth, start = 0, at
    while True:
        char = text[at]
        if char == "{":
            depth += 1
        elif char == "}":
            if depth == 0:
                return
            depth -= 1
            if depth == 0:
                start = at + 1
        elif char == ";" and depth == 0:
            yield text[start:at].strip()
            start = at + 1
        at += 1


def parse_fields(declaration: str) -> list[ViewField]:
    """Parse `const f32* value`, `int steps = 1, games` or `SPARRING_VIEW RowsView rows`."""
    text = re.sub(r" = [^,]+", "", declaration.strip()).removeprefix("typename ")
    found = re.fullmatch(r"(?:const |SPARRING_VIEW )?([\w:]+(?:<\w+>)?)(\*?) (\w+(?:, \w+)*)", text)
    if found is None:
        raise SparringError(f"a view or kernel declares {declaration.strip()!r}; keep it simpler")
    names: Sequence[str] = found[3].split(", ")
    return [ViewField(name, found[1], bool(found[2])) for name in names]
