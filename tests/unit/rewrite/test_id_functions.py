"""Functions that read an id: as values, declarations and definitions."""

import pytest
from xdsl.dialects.builtin import ModuleOp, UnknownLoc

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import llvm, nvvm
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.rewrite.id_functions import REGISTERS, IdFunction, declared_by, read_by


@pytest.mark.parametrize("register", REGISTERS)
def test_declaration_says_everything(register: str) -> None:
    """Printed and read back too; and so does the op that reads the register."""
    function = IdFunction(register, 3, 17)
    module = ModuleOp([function.declaration()])
    module.verify()
    (read_back,) = parse_ir(print_ir(module)).body.ops
    assert declared_by(read_back) == function
    assert read_by(REGISTERS[register]((3, 17))) == function


def test_definition_reads_the_register_in_its_range() -> None:
    module = ModuleOp([IdFunction("ctaid.y", 0, 360).definition(UnknownLoc())])
    module.verify()
    id, answer = module.body.block.first_op.body.block.ops
    assert isinstance(id, nvvm.BLOCK_ID["y"])
    assert str(id) == "%0 = nvvm.read.ptx.sreg.ctaid.y range <i32, 0, 360> : i32"
    assert list(answer.operands) == [id.res]


def test_registers_are_threads_and_blocks_numbers() -> None:
    assert set(REGISTERS) == {"tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z"}


@pytest.mark.parametrize(
    "text",
    [
        "llvm.func @sreg.tid.x.0.128() -> i32",
        'llvm.func @sreg.laneid.0.32() -> i32 attributes {xla.register = "laneid", xla.register_range = #llvm.constant_range<i32, 0, 32>}',
        'llvm.func @sreg.tid.x.0.32() -> i32 attributes {xla.register = "tid.x"}',
        'llvm.func @f() -> i32 attributes {xla.register = "tid.x", xla.register_range = #llvm.constant_range<i32, 0, 32>}',
        "llvm.mlir.global internal @g() : i32",
    ],
)
def test_other_ops_declare_none(text: str) -> None:
    (op,) = parse_ir(text).body.ops
    assert declared_by(op) is None


def test_a_definition_is_no_declaration() -> None:
    assert declared_by(IdFunction("tid.x", 0, 128).definition(UnknownLoc())) is None


def test_other_ops_read_no_id() -> None:
    """Without a range; another register; no register at all."""
    assert read_by(nvvm.THREAD_ID["x"]()) is None
    assert read_by(nvvm.LaneIdOp((0, 32))) is None
    assert read_by(llvm.FuncOp("f", llvm.LLVMFunctionType([]))) is None
