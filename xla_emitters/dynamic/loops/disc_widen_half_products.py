"""Products and convolutions of f16 and bf16 are computed in f32 and rounded once. On buffers, for a CPU.

    lmhlo.dot %x, %w -> %y          : bf16          ->          lmhlo.convert %x -> %xf            bf16 -> f32, a fusion of one op
                                                                lmhlo.convert %w -> %wf            likewise
                                                                lmhlo.dot %xf, %wf -> %yf          : f32
                                                                lmhlo.convert %yf -> %y            f32 -> bf16

A CPU's machine code multiplies f32 and f64. Conversions of whole arrays are loops that LLVM vectorizes, and steps of plans like any kernel.
An operand that is read twice is converted once. Products with an `algorithm` stay: it defines the type of the sum.

Source: none; a GPU's library takes 16-bit floats as they are.
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import ModuleOp, StringAttr, f32
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.hlo.base import opcode_of
from xla_emitters.dialects.hlo.contractions import DotOp
from xla_emitters.dialects.hlo.elementwise import ConvertOp
from xla_emitters.dialects.hlo.placement import DEVICE, GPU
from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, buffer_type, on_buffers, space_of, tensor_of
from xla_emitters.dialects.mlir import func, memref
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dtypes import dtype
from xla_emitters.dynamic.buffers.buffer_sizes import SIZES, declared_sizes
from xla_emitters.dynamic.buffers.fusion_rules import LOOP
from xla_emitters.dynamic.buffers.index_code import IndexCode
from xla_emitters.rewrite.kernel_pass import KernelPass

HALF = frozenset((dtype("f16"), dtype("bf16")))


class DiscWidenHalfProductsPass(KernelPass):
    name = "disc-widen-half-products"

    def apply_to(self, op: ModuleOp) -> None:
        for function in [found for found in op.ops if isinstance(found, func.FuncOp) and not found.is_declaration]:
            products = [inner for inner in function.walk() if isinstance(inner, BufferOp) and _is_half(inner)]
            for number, product in enumerate(products):
                _widen(product, f"{function.sym_name.data}_{LOOP}_convert_half_{number}")


def _is_half(op: BufferOp) -> bool:
    if op.HLO is not DotOp and opcode_of(op.HLO) != "dynamic-conv":
        return False
    if isinstance(op.parent_op(), FusionOp) or "algorithm" in op.properties:
        return False
    *factors, result = (element_of(tensor_of(buffer.type)) for buffer in (*op.inputs[:2], *op.outputs))
    return HALF.issuperset(factors) and result in (*HALF, dtype("f32")) and space_of(op.outputs[0].type) == GPU


def _widen(op: BufferOp, name: str) -> None:
    """Computes an op in f32; `name` begins the names of the fusions that convert."""
    before, after = QuickBuilder(InsertPoint.before(op)), QuickBuilder(InsertPoint.after(op))
    (result,) = op.outputs
    wide = dict[SSAValue, SSAValue]()
    for index, factor in enumerate(op.inputs[:2]):
        if factor not in wide:
            wide[factor] = _allocated(factor, before, op)
            _convert(factor, wide[factor], before, op, f"{name}_{index}")
        op.operands[index] = wide[factor]
    if element_of(tensor_of(result.type)) in HALF:
        wide[result] = _allocated(result, before, op)
        op.operands[len(op.operands) - 1] = wide[result]
        _convert(wide[result], result, after, op, f"{name}_2")
    for buffer in wide.values():
        after.insert(memref.DeallocOp.build(operands=[buffer])).location = op.location


def _allocated(buffer: SSAValue, builder: Builder, op: BufferOp) -> SSAValue:
    """A buffer of f32 with the sizes of another one."""
    code, dims = IndexCode(builder, op.location), tensor_of(buffer.type).get_shape()
    unknown = [code.value(code.dim(buffer, dim)) for dim, size in enumerate(dims) if size < 0]
    made = memref.AllocOp(unknown, [], buffer_type(f32, dims, GPU))
    if (said := declared_sizes(buffer)) is not None:
        made.attributes[SIZES] = said
    return code.insert(made)


def _convert(source: SSAValue, target: SSAValue, builder: Builder, op: BufferOp, name: str) -> None:
    """A fusion of one conversion."""
    operand = Block(arg_types=[tensor_of(source.type)]).args[0]
    convert = ConvertOp([operand], tensor_of(target.type), f"{op.instruction_name}.convert")
    convert.location = op.location
    kin = on_buffers(ConvertOp)
    assert kin is not None
    inner = kin.of(convert, [source], [target])
    inner.attributes[DEVICE] = StringAttr(GPU)
    builder.insert(FusionOp.of(name, LOOP, [inner], op.location))
