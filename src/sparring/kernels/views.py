"""What kernels take, read from the headers that declare it: no launch goes by position alone.

A view is a struct that a kernel takes by value. It is declared once, in its header; here its text
becomes a structure of the same layout that is filled by name, and the compiler checks the layout.
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
    # Bytes that only C++ reads, and structures of numbers of one kind.
    "Table<G>": (torch.uint8,),
    "SettingStorage<G>": (torch.uint8,),
    "Legal<G>": (torch.int64,),
    "Open": (torch.int32,),
    "Earned": (torch.float32,),
    "Hparams": (torch.float32,),
    "Statistics": (torch.float32,),
    "Losses": (torch.float32,),
    "Tally": (torch.float32,),
    "Plan": (torch.float32,),
    "Moments": (torch.float64,),
}
"""The tensors that a pointer may be given."""
FOLLOWED = ("cuda/", "core/")
"""Folders whose headers declare views."""


@dataclass(frozen=True)
class ViewField:
    """A field of a view, or an argument of a kernel."""

    name: str
    type: str
    pointer: bool


class KernelView(ctypes.Structure):
    """A filled view. Keeps the tensors that it points to."""

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
        self._slots: dict[str, tuple[ViewField, ...]] = {}

    @cached_property
    def kernels(self) -> dict[str, tuple[ViewField, ...]]:
        found: dict[str, tuple[ViewField, ...]] = {}
        pattern = r'extern "C" __global__ void (?:__launch_bounds__\(\w+\) )?(\w+)\(([^)]*)\)'
        for name, text in re.findall(pattern, self._text):
            slots = tuple(slot for one in text.split(",") for slot in slots_of(one))
            if found.setdefault(name, slots) != slots:
                raise SparringError(f"kernel {name} is declared twice, with other arguments")
        return found

    def names(self, struct: str) -> list[str]:
        """The fields of a structure, in order."""
        return [slot.name for slot in self._fields(struct)]

    def _fields(self, struct: str) -> tuple[ViewField, ...]:
        if struct not in self._slots:
            start = re.search(rf"\bstruct {struct} {{", self._text)
            if start is None:
                raise SparringError(f"no header declares {struct}")
            lines = statements(self._text, start.end())
            self._slots[struct] = tuple(slot for line in lines for slot in slots_of(line))
        return self._slots[struct]

    def view_type(self, struct: str) -> type[KernelView]:
        """Return a structure with the layout of a view."""
        if struct not in self._views:
            fields: list[tuple[str, Any]] = []
            for slot in self._fields(struct):
                if slot.pointer:
                    if slot.type not in self._pointed:
                        raise SparringError(f"{struct}.{slot.name}: unknown pointer {slot.type}*")
                    fields.append((slot.name, ctypes.c_void_p))
                else:
                    fields.append((slot.name, SCALARS.get(slot.type) or self.view_type(slot.type)))
            self._views[struct] = type(struct, (KernelView,), {"_fields_": fields})
        return self._views[struct]

    def view(self, struct: str, /, **given: Any) -> KernelView:
        """Fill a view by name. A tensor goes as its address, None as null."""
        made, kept = self.view_type(struct)(), []
        fields = self._fields(struct)
        wrong = given.keys() ^ {slot.name for slot in fields}
        if wrong:
            names = ", ".join(sorted(wrong))
            raise SparringError(f"{struct} has {', '.join(self.names(struct))}; see to {names}")
        for slot in fields:
            value = given[slot.name]
            setattr(made, slot.name, self._value(slot, value, struct))
            if isinstance(value, Tensor):
                kept.append(value)
            elif isinstance(value, KernelView):
                kept += value.kept
        made.kept = tuple(kept)
        return made

    def _value(self, slot: ViewField, value: Any, where: str) -> Any:
        """Return what stands for a value in a field; what does not fit is refused."""
        if slot.pointer:
            if value is None:
                return None
            if isinstance(value, Tensor) and value.dtype in self._pointed[slot.type]:
                return value.data_ptr()
            got = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise SparringError(f"{where}.{slot.name} is {slot.type}*, not {got}")
        if slot.type not in SCALARS:
            if type(value) is self.view_type(slot.type):
                return value
        elif isinstance(value, float if slot.type == "f32" else int):
            return value
        raise SparringError(f"{where}.{slot.name} is {slot.type}, not {type(value).__name__}")

    def converters(self, kernel: str) -> list[Callable[[Any], Any]]:
        """Return for every argument of a kernel what brings it into memory."""

        def converter(slot: ViewField) -> Callable[[Any], Any]:
            if not slot.pointer and slot.type not in SCALARS:
                return lambda value: self._value(slot, value, kernel)
            kind = ctypes.c_void_p if slot.pointer else SCALARS[slot.type]
            return lambda value: kind(self._value(slot, value, kernel))

        return [converter(slot) for slot in self.kernels[kernel]]

    def checks(self) -> str:
        """C++ that does not compile unless the views lie in memory as they do here."""
        for slots in self.kernels.values():
            for slot in slots:
                if not slot.pointer and slot.type not in SCALARS:
                    self.view_type(slot.type)
        lines = []
        for name, view in self._views.items():
            slots = self._fields(name)
            sizes = {"": ctypes.sizeof(view)}
            sizes |= {f"::{slot.name}": getattr(view, slot.name).size for slot in slots}
            lines += [f"static_assert(sizeof({name}{of}) == {n});" for of, n in sizes.items()]
            # Names in an initializer have to stand in the order of the fields.
            in_order = ", ".join(f".{slot.name} = {{}}" for slot in slots)
            lines.append(f"[[maybe_unused]] constexpr {name} k{name}InOrder{{{in_order}}};")
        return "\nnamespace sparring {\n" + "\n".join(lines) + "\n}\n" if lines else ""


def expanded(source: str, headers: Path, met: set[str]) -> str:
    """Return a source with our headers in it, each once."""

    def include(match: re.Match[str]) -> str:
        name = match[1]
        if name in met or not name.startswith(FOLLOWED):
            return ""
        met.add(name)
        return expanded((headers / name).read_text(), headers, met)

    return re.sub(r'^#include "([^"]+)"$', include, source, flags=re.MULTILINE)


def plain(text: str) -> str:
    """Return code without comments, directives and line breaks."""
    text = re.sub(r"//.*", "", text)
    text = re.sub(r"^#.*(?:\\\n.*)*", "", text, flags=re.MULTILINE)
    return re.sub(r"\s+", " ", text)


def statements(text: str, at: int) -> Iterator[str]:
    """The statements of a body that begins at `at`; functions are left out."""
    depth, start = 0, at
    while True:
        letter = text[at]
        if letter == "{":
            depth += 1
        elif letter == "}":
            if depth == 0:
                return
            depth -= 1
            if depth == 0:
                start = at + 1
        elif letter == ";" and depth == 0:
            yield text[start:at].strip()
            start = at + 1
        at += 1


def slots_of(declaration: str) -> list[ViewField]:
    """Read `const f32* value`, `int steps, games` or `SPARRING_VIEW RowsView rows`."""
    found = re.fullmatch(
        r"(?:const |SPARRING_VIEW )?([\w:]+(?:<\w+>)?)(\*?) (\w+(?:, \w+)*)", declaration.strip()
    )
    if found is None:
        raise SparringError(f"a view or kernel declares {declaration.strip()!r}; keep it simpler")
    names: Sequence[str] = found[3].split(", ")
    return [ViewField(name, found[1], bool(found[2])) for name in names]
