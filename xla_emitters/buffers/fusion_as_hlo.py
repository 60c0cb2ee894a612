"""A fusion of buffer ops at fixed sizes as HLO: one fusion in ENTRY, for the emitters.

    func @main(%x: memref<4x32xf32>, %n: memref<4xf32>) {             fused (x: f32[4,32], n: f32[4]) {
      %y = memref.alloc                                                 ROOT divide = f32[4,32] divide(x, broadcast(n))
      lmhlo.fusion {                                             ->   }
        lmhlo.dynamic_broadcast_in_dim %n, %shape -> %b               ENTRY main (x, n) {
        lmhlo.divide %x, %b -> %y                                       ROOT fusion = f32[4,32] fusion(x, n), calls=fused
      }                                                               }

Ops with sizes as operands become ops with sizes in types or attributes; other host lists become constants. A fusion
with a reduction that is read again (kStitch) is refused: the emitters would compute it once for each element that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from xla_emitters.buffers.fusion_rules import STITCH
from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dialects.hlo.base import HloOp, hint, integer_array, integers, opcode_of
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    FusionOp,
    ParameterOp,
    ReturnOp,
    TupleOp,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.types import array_type, as_array, dims_of, tuple_type
from xla_emitters.dialects.lmhlo import SEGMENTS, BufferOp, tensor_of
from xla_emitters.dialects.ranges import constant_of
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.rewrite.kernel_pass import refusal
from xla_emitters.rewrite.locations import UNKNOWN

STAGE = "heat"


def fusion_as_hlo(module: ModuleOp) -> ModuleOp:
    """The HLO module of a program from `at_sizes`. raises Unsupported for an op without an equivalent with fixed sizes, and for kStitch"""
    (main,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    (fusion,) = (op for op in main.body.block.ops if isinstance(op, lmhlo.FusionOp))
    if fusion.kind is not None and fusion.kind.data == STITCH:
        raise refusal(STAGE, fusion, "the emitters have no kernel that reads its own reductions")
    returned = main.get_return_op()
    assert returned is not None
    fused = _Writer(list(main.args))
    for op in fusion.body.block.ops:
        if isinstance(op, BufferOp):
            fused.op(op)
    results = [fused.values[value] for value in returned.operands]
    body = fused.finish(results)
    entry = Block()
    parameters = [ParameterOp(n, tensor_of(value.type), f"p{n}") for n, value in enumerate(main.args)]
    name = fusion.fusion_name.data if fusion.fusion_name else "fusion"
    kind = "kInput" if any(op.name == "lmhlo.reduce" for op in fusion.body.block.ops) else "kLoop"
    call = FusionOp(
        [parameter.result for parameter in parameters],
        body.root.type,
        name,
        {"calls": SymbolRefAttr("fused"), "kind": StringAttr(kind)},
    )
    entry.add_ops([*parameters, call, ReturnOp(call.result)])
    kept = [op.clone() for op in module.ops if isinstance(op, ComputationOp)]
    made = ModuleOp([*kept, body, ComputationOp("main", entry, entry=True)], sym_name=StringAttr(name))
    for op in made.walk():
        if op.location == UNKNOWN:
            op.location = fusion.location
    return made


class _Writer:
    """Writes the computation of a fusion.

    values  buffer -> its HLO value; host lists become constants on first use
    """

    def __init__(self, parameters: Sequence[SSAValue]) -> None:
        self.block = Block()
        self.names = set[str]()
        self.values = dict[SSAValue, SSAValue]()
        for number, value in enumerate(parameters):
            made = ParameterOp(number, tensor_of(value.type), self.unused(f"param_{number}"))
            self.values[value] = self.add(made, None)

    def unused(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self.names:
            name, number = f"{wanted}.{number}", number + 1
        self.names.add(name)
        return name

    def add(self, op: HloOp, of: Operation | None) -> SSAValue:
        if of is not None:
            op.location = of.location
        self.block.add_op(op)
        return op.results[0]

    def op(self, op: BufferOp) -> None:
        """Adds the HLO op with the same value."""
        opcode, shape = opcode_of(op.HLO), tensor_of(op.outputs[0].type).get_shape()
        operands, properties = list(op.inputs), {k: v for k, v in op.properties.items() if k not in (SEGMENTS, "name")}
        if opcode in STATIC:
            opcode, count, change = STATIC[opcode]
            operands, lists = operands[:count], [elements_of(value, op) for value in operands[count:]]
            for name in ("known_expanding", "known_nonexpanding"):
                properties.pop(name, None)
            properties |= change(lists)
        found = HLO_OPS.get(opcode)
        if found is None or len(op.outputs) > 1:
            raise refusal(STAGE, op, f"'{opcode}' has no form with fixed sizes")
        given = [self.value(operand, op) for operand in operands]
        if opcode == "broadcast":
            given, properties = self.without_ones(given[0], shape, properties, op)
        properties["name"] = StringAttr(self.unused(op.instruction_name))
        made = found.create(operands=given, result_types=[tensor_of(op.outputs[0].type)], properties=properties)
        hint(made)
        self.values[op.outputs[0]] = self.add(made, op)

    def value(self, buffer: SSAValue, of: Operation) -> SSAValue:
        if buffer not in self.values:
            element = dtype_of(tensor_of(buffer.type).element_type)
            made = ConstantOp.from_array(elements_of(buffer, of).astype(element.numpy), element, self.unused("list"))
            self.values[buffer] = self.add(made, of)
        return self.values[buffer]

    def without_ones(
        self, operand: SSAValue, shape: Sequence[int], properties: dict[str, Attribute], of: BufferOp
    ) -> tuple[list[SSAValue], dict[str, Attribute]]:
        """The operand of a broadcast without the dimensions of size 1 that it repeats: HLO's broadcast repeats none."""
        dimensions, sizes = integers(properties["dimensions"]), dims_of(operand)
        kept = [n for n, dim in enumerate(dimensions) if sizes[n] == shape[dim]]
        if len(kept) < len(sizes):
            ir_type = array_type(as_array(operand.type).element_type, [sizes[n] for n in kept])
            operand = self.add(HLO_OPS["reshape"]([operand], ir_type, self.unused(f"{of.instruction_name}.kept")), of)
        return [operand], {**properties, "dimensions": integer_array([dimensions[n] for n in kept])}

    def finish(self, results: Sequence[SSAValue]) -> ComputationOp:
        root = results[0]
        if len(results) > 1:
            root = self.add(
                TupleOp(results, tuple_type([value.type for value in results]), self.unused("results")), None
            )
        self.block.add_op(ReturnOp(root))
        return ComputationOp("fused", self.block)


def elements_of(buffer: SSAValue, of: Operation) -> Array:
    """The elements that `at_sizes` stored in a host list. raises Unsupported for another array"""
    shape = tensor_of(buffer.type).get_shape()
    if not isinstance(buffer.owner, memref.AllocaOp):
        raise refusal(STAGE, of, "it takes sizes from an array of the device")
    found = np.zeros(shape, np.int64)
    for use in buffer.uses:
        if isinstance(store := use.operation, memref.StoreOp):
            found[tuple(_number(index) for index in store.indices)] = _number(store.value)
    return found


def _number(value: SSAValue) -> int:
    known = constant_of(value)
    assert known is not None
    return known


Change = Callable[[Sequence[Array]], dict[str, Attribute]]


def _triples(name: str) -> Change:
    """An attribute of three numbers per dimension, from three lists."""
    return lambda lists: {
        name: ArrayAttr([integer_array([int(number) for number in row]) for row in zip(*lists, strict=True)])
    }


def _nothing(lists: Sequence[Array]) -> dict[str, Attribute]:
    return {}


STATIC: Mapping[str, tuple[str, int, Change]] = {
    "dynamic-broadcast-in-dim": ("broadcast", 1, _nothing),
    "dynamic-gather": ("gather", 2, lambda lists: {"slice_sizes": integer_array(lists[0].tolist())}),
    "dynamic-iota": ("iota", 0, _nothing),
    "dynamic-pad": ("pad", 2, _triples("padding")),
    "dynamic-reshape": ("reshape", 1, _nothing),
    "real-dynamic-slice": ("slice", 1, _triples("slice")),
}
"""Opcode -> the one with fixed sizes, its number of data operands, and the attributes that the other operands become."""
