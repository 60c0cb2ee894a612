"""Texts of ops with a declarative format are those that xDSL's own code prints."""

import pytest
from xdsl.irdl.declarative_assembly_format import FormatProgram

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir_printer import KernelPrinter
from xla_emitters.dialects.op_definition import format_of
from xla_emitters.dialects.quick_format import pieces_of

OPS = """
func.func @f(%i: index, %n: i32, %x: f32, %v: vector<2x3xf32>, %m: memref<?x4xf32>) {
  %a = arith.addi %n, %n : i32
  %b = arith.addi %n, %n overflow<nsw, nuw> {note = 1 : i64} : i32
  %c = arith.mulf %x, %x fastmath<nnan> : f32
  %d = arith.addf %x, %x {note} : f32
  %e = vector.extract %v[1, 2] : f32 from vector<2x3xf32>
  %g = vector.extract %v[%i, 2] : f32 from vector<2x3xf32>
  %h = vector.extract %v[0] : vector<3xf32> from vector<2x3xf32>
  %l = memref.load %m[%i, %i] : memref<?x4xf32>
  memref.store %l, %m[%i, %i] {nontemporal = true} : memref<?x4xf32>
  %o = arith.constant 3 : i32
  %q = math.exp %x : f32
  scf.for %j = %i to %i step %i {
    %s = arith.negf %x : f32
    scf.yield
  }
  %r = scf.for %j = %i to %i step %i iter_args(%t = %x) -> (f32) {
    scf.yield %t : f32
  }
  func.return
}
"""


@pytest.mark.tiny
def test_text_is_that_of_xdsl() -> None:
    module, seen = parse_ir(OPS), set[str]()
    for op in module.walk():
        program, pieces = format_of(type(op)), pieces_of(type(op))
        assert (program is None) <= (pieces is None)
        if program is None or pieces is None:
            continue
        seen.add(op.name)
        ours, xdsls = (KernelPrinter(locations=False, generic=False, spelling="seed") for _ in range(2))
        assert isinstance(program, FormatProgram)
        wanted = xdsls.captured(lambda op=op, program=program, printer=xdsls: program.print(printer, op))  # pyright: ignore[reportArgumentType]
        assert "".join([piece(ours, op) for piece in pieces]) == wanted
    assert seen >= set("arith.addi arith.mulf vector.extract memref.load memref.store math.exp scf.yield".split())
