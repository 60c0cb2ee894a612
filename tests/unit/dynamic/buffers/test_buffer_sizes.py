"""Sizes of buffers: by name, by SSA value, and by both."""

import pytest
from xdsl.ir import SSAValue

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dynamic.buffers.buffer_sizes import BufferSizes

TEXT = """
func.func @main(%x: memref<?x?xf32, "gpu"> {disc.sizes = ["b", "s"]}, %y: memref<?xf32, "gpu">, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = memref.dim %x, %c0 : memref<?x?xf32, "gpu">
  %s = memref.dim %x, %c1 : memref<?x?xf32, "gpu">
  %k = memref.dim %y, %c0 : memref<?xf32, "gpu">
  %bs = arith.muli %s, %b : index
  %nm = arith.muli %n, %m : index
  %more = arith.addi %n, %c2 : index
  %said = memref.alloc(%n, %m) {disc.sizes = ["b", "s"]} : memref<?x?xf32, "gpu">
  %flat = memref.alloc(%bs) : memref<?xf32, "gpu">
  %part = memref.alloc(%n, %m) {disc.sizes = ["?", "s"]} : memref<?x?xf32, "gpu">
  %other = memref.alloc(%n, %s) : memref<?x?xf32, "gpu">
  %like_y = memref.alloc(%k) : memref<?xf32, "gpu">
  %values = memref.alloc(%nm) : memref<?xf32, "gpu">
  %grid = memref.alloc(%m, %n) : memref<?x?xf32, "gpu">
  %longer = memref.alloc(%more) : memref<?xf32, "gpu">
  %name = lmhlo.inc_ref %said(%bs) : memref<?x?xf32, "gpu"> -> memref<?xf32, "gpu">
  %w:2 = "lmhlo.while"(%said, %y) ({
  ^bb0(%wa: memref<?x?xf32, "gpu">, %wb: memref<?xf32, "gpu">):
    %true = arith.constant true
    lmhlo.condition %true
  }, {
  ^bb0(%carried: memref<?x?xf32, "gpu">, %open: memref<?xf32, "gpu">):
    lmhlo.terminator %carried, %open : memref<?x?xf32, "gpu">, memref<?xf32, "gpu">
  }) {disc.sizes = [["b", "s"], ["?"]]} : (memref<?x?xf32, "gpu">, memref<?xf32, "gpu">) -> (memref<?x?xf32, "gpu">, memref<?xf32, "gpu">)
  return
}
"""


@pytest.fixture(scope="module")
def values() -> dict[str, SSAValue]:
    found = dict[str, SSAValue]()
    for op in parse_ir(TEXT, "<test>").walk():
        for value in (
            *op.results,
            *(argument for region in op.regions for block in region.blocks for argument in block.args),
        ):
            found.setdefault(value.name_hint or "", value)
    return found


SAME_SHAPE = ("x said", "part other", "y like_y", "said carried", "said w")
OTHERS = ("said part", "x flat", "values flat", "open y", "longer like_y", "grid other")
SAME_COUNT = ("x flat", "said name", "values grid", "carried flat")


@pytest.mark.parametrize("pair", SAME_SHAPE)
def test_one_shape(values: dict[str, SSAValue], pair: str) -> None:
    a, b = (values[name] for name in pair.split())
    assert BufferSizes().same_shape(a, b)
    assert BufferSizes().same_shape(b, a)
    assert BufferSizes().same_count(a, b)


@pytest.mark.parametrize("pair", OTHERS)
def test_no_shape_that_is_known_to_be_one(values: dict[str, SSAValue], pair: str) -> None:
    a, b = (values[name] for name in pair.split())
    assert not BufferSizes().same_shape(a, b)


@pytest.mark.parametrize("pair", SAME_COUNT)
def test_as_many_elements_in_another_shape(values: dict[str, SSAValue], pair: str) -> None:
    a, b = (values[name] for name in pair.split())
    assert BufferSizes().same_count(a, b)


def test_text_names_what_has_a_name(values: dict[str, SSAValue]) -> None:
    sizes = BufferSizes()
    assert [sizes.text(values[name]) for name in ("said", "part", "flat")] == ["b,s", "?,s", "b*s"]
    assert str(sizes.elements(values["flat"])) == "b*s"


def test_a_size_that_is_doubled_many_times_is_computed_once() -> None:
    """Paths through 40 sums are 2^40."""
    sums = "".join(f"%n{i + 1} = arith.addi %n{i}, %n{i} : index\n" for i in range(40))
    text = f"""func.func @main(%n0: index) {{
      {sums} %x = memref.alloc(%n40) : memref<?xf32, "gpu">
      %y = memref.alloc(%n0) : memref<?xf32, "gpu">
      return
    }}"""
    x, y = (op.results[0] for op in parse_ir(text).walk() if op.name == "memref.alloc")
    sizes = BufferSizes()
    assert sizes.elements(x) == sizes.elements(y) * 2**40
