"""Kernels are given views by name; what does not fit is refused before it is launched."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
import torch

from sparring import kernels
from sparring.errors import SparringError
from sparring.kernels import compiling
from sparring.kernels.views import Interface

HEADER = """
// A comment with struct RowsView { int no; };
struct Inner {
  f32 weight;
  i64 count;  // of them
};
struct RowsView {
  const u8* obs;
  f32* value;
  int rows, steps;
  Inner inner;

  int places() const { return rows * steps; }
};
extern "C" __global__ void __launch_bounds__(256)
    read(SPARRING_VIEW RowsView rows, const i32* places, f32 share) {}
"""


@pytest.fixture
def interface(tmp_path: Path) -> Interface:
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "some.cuh").write_text(HEADER)
    return Interface('#include "cuda/some.cuh"\n', {}, tmp_path)


def fields(interface: Interface) -> dict[str, object]:
    return {
        "obs": torch.zeros(3, dtype=torch.uint8),
        "value": torch.zeros(3),
        "rows": 3,
        "steps": 5,
        "inner": interface.view("Inner", weight=0.5, count=2**40),
    }


def test_a_view_lies_in_memory_as_its_header_says(interface: Interface) -> None:
    given = fields(interface)
    view = interface.view("RowsView", **given)
    assert interface.names("RowsView") == ["obs", "value", "rows", "steps", "inner"]
    assert ctypes.sizeof(view) == 8 + 8 + 4 + 4 + 16
    raw = bytes(view)
    assert int.from_bytes(raw[8:16], "little") == given["value"].data_ptr()  # type: ignore[attr-defined]
    assert raw[16:24] == bytes([3, 0, 0, 0, 5, 0, 0, 0])
    assert int.from_bytes(raw[32:40], "little") == 2**40
    assert "static_assert(sizeof(RowsView::inner) == " in interface.checks()
    assert "static_assert(sizeof(Inner) == 16);" in interface.checks()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": None}, "RowsView has obs, value, rows, steps, inner; see to values"),
        (
            {"value": torch.zeros(3, dtype=torch.int32)},
            r"RowsView\.value is f32\*, not torch.int32",
        ),
        ({"obs": 3}, r"RowsView\.obs is u8\*, not int"),
        ({"rows": 3.0}, r"RowsView\.rows is int, not float"),
        ({"rows": torch.zeros(1)}, r"RowsView\.rows is int, not Tensor"),
    ],
)
def test_what_does_not_fit_is_named(
    interface: Interface, change: dict[str, object], message: str
) -> None:
    with pytest.raises(SparringError, match=message):
        interface.view("RowsView", **fields(interface) | change)


def test_a_field_that_is_missing_is_named(interface: Interface) -> None:
    given = fields(interface)
    del given["steps"]
    with pytest.raises(SparringError, match="see to steps"):
        interface.view("RowsView", **given)


def test_a_kernel_takes_what_it_declares(interface: Interface) -> None:
    rows, places, share = interface.converters("read")
    view = interface.view("RowsView", **fields(interface))
    assert rows(view) is view
    assert places(None).value is None
    assert share(0.25).value == 0.25
    with pytest.raises(SparringError, match=r"read\.rows is RowsView, not Inner"):
        rows(view.inner)  # type: ignore[attr-defined]
    with pytest.raises(SparringError, match=r"read\.places is i32\*, not torch.int64"):
        places(torch.zeros(2, dtype=torch.int64))
    with pytest.raises(SparringError, match=r"read\.share is f32, not int"):
        share(1)


def test_numbers_are_those_that_the_source_is_compiled_for() -> None:
    source = '#include "cuda/net.cuh"\n'
    for bf16, fits, other in ((1, torch.bfloat16, torch.float32), (0, torch.float32, torch.half)):
        (x, _, _, out) = Interface(source, {"SPARRING_BF16": bf16}, kernels.HEADERS).converters(
            "widen"
        )
        assert out(torch.zeros(8, dtype=fits)).value
        with pytest.raises(SparringError, match=r"widen\.out is Num\*"):
            out(torch.zeros(8, dtype=other))
        assert x(torch.zeros(8, dtype=torch.uint8)).value


def test_a_layout_that_drifts_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings", reason="needs the extra: pip install 'sparring[cuda]'")
    monkeypatch.setattr(compiling, "read_cached", lambda _: None)
    monkeypatch.setattr(compiling, "write_cache", lambda *_: None)
    source = 'struct Pair { float first; };\nextern "C" __global__ void run(Pair pair) {}\n'
    wrong = source.replace("float first", "double first")

    class Drifted(Interface):
        def __init__(self, _: str, defines: dict[str, object], headers: Path) -> None:
            super().__init__(source.replace("float", "f32"), defines, headers)

    monkeypatch.setattr(compiling, "Interface", Drifted)
    fine = f"namespace sparring {{\n{source}}}\n"
    assert kernels.compiled(fine, {}, exact=False, arch="sm_90", draft=True)
    drifted = f"namespace sparring {{\n{wrong}}}\n"
    with pytest.raises(SparringError, match="static assertion"):
        kernels.compiled(drifted, {}, exact=False, arch="sm_90", draft=True)
