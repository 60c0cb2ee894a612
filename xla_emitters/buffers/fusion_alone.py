"""A fusion of buffer ops as a program of its own, from which its kernels for fixed sizes are compiled.

    lmhlo.fusion F { lmhlo.abs %x -> %t; lmhlo.add %t, %z -> %y }

    alone = fusion_alone(fusion)           ->   func @main(%x, %z, %y, %t {disc.from = ["a0.0", "4"]}) { lmhlo.fusion F ... }
    at_sizes(alone, [(3, 4)] * 3, ())      ->   func @main(%x: memref<3x4xf32>, %z: ...) -> memref<3x4xf32> {
                                                  %y = memref.alloc;  %t = memref.alloc;  lmhlo.fusion F ...;  return %y
                                                }

Order of arguments: arrays that are read; arrays that are written for others; arrays inside of the fusion; lists of the
host. `disc.from` states the origin of each size or element: `a0.1` is a size of array 0, `n2` the third number, `p3.0` a size of
argument 3 (a list that is the shape of a result), `4` is known.

Written arrays are allocated by the program, and no other operand of the fusion aliases them; the program alone
allocates them too, so that its kernels may assume the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.builder import Builder
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.hints import isa

from xla_emitters.buffers.buffer_sizes import BufferSizes
from xla_emitters.buffers.buffer_uses import asks_size, frees
from xla_emitters.buffers.index_code import IndexCode
from xla_emitters.dialects.hlo.base import integers, opcode_of
from xla_emitters.dialects.hlo.computation import CallingOp, ComputationOp, find_computation
from xla_emitters.dialects.hlo.placement import HOST
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, IncRefOp, buffer_type, space_of, tensor_of
from xla_emitters.errors import InternalError
from xla_emitters.graph.places import SHAPE_OPERANDS
from xla_emitters.kernels.captures import captured_by

FROM = "disc.from"
WRITTEN = "disc.written"
MOST_ELEMENTS = 64
"""Marks a host list whose elements are numbers."""


@dataclass(frozen=True)
class NoInterface:
    """Why a fusion has no kernels for fixed sizes."""

    reason: str


@dataclass(frozen=True)
class Interface:
    """The operands of a fusion.

    reads, writes  arrays that are made or used outside
    inside         arrays without uses outside
    lists          arrays of the host
    sources        for each of `inside` and `lists`: the origin of its sizes or elements
    given          origin of each number: a size of an array inside, or an element of a list
    """

    reads: tuple[SSAValue, ...]
    writes: tuple[SSAValue, ...]
    inside: tuple[SSAValue, ...]
    lists: tuple[SSAValue, ...]
    sources: tuple[tuple[str, ...], ...]
    given: tuple[tuple[SSAValue, int], ...]

    @staticmethod
    def of(fusion: FusionOp) -> Interface | NoInterface:
        """The interface of a fusion of buffer ops, or why it has none."""
        if fusion.fusion_name is None:
            return NoInterface("it has no name")
        ops = [op for op in fusion.body.block.ops if isinstance(op, BufferOp)]
        captured = captured_by(fusion)
        written = {output for op in ops for output in op.outputs}
        lists = tuple(value for value in captured if space_of(value.type) == HOST)
        arrays = [value for value in captured if value not in lists]
        inside = tuple(value for value in arrays if value in written and not _is_used_outside(value, fusion))
        writes = tuple(value for value in arrays if value in written and value not in inside)
        reads = tuple(value for value in arrays if value not in written)
        roots = [_root(value) for value in arrays]
        if any(not isinstance(value.owner, memref.AllocOp) or roots.count(value) > 1 for value in (*writes, *inside)):
            return NoInterface("it writes into memory that it did not get for itself")
        return _with_sources(ops, reads, writes, inside, lists)

    def numbers(self, fusion: FusionOp) -> list[SSAValue]:
        """The numbers as SSA values before the fusion."""
        code = IndexCode(Builder(InsertPoint.before(fusion)), fusion.location)
        return [_number(code, value, at) for value, at in self.given]


def _with_sources(
    ops: Sequence[BufferOp],
    reads: tuple[SSAValue, ...],
    writes: tuple[SSAValue, ...],
    inside: tuple[SSAValue, ...],
    lists: tuple[SSAValue, ...],
) -> Interface | NoInterface:
    sizes, arrays = BufferSizes(), (*reads, *writes)
    given = dict[tuple[SSAValue, int], int]()
    known = {
        size: f"a{number}.{dim}" for number, array in enumerate(arrays) for dim, size in enumerate(sizes.of(array))
    }
    sources = list[tuple[str, ...]]()
    for buffer in inside:
        texts = list[str]()
        for dim, size in enumerate(sizes.of(buffer)):
            if size.value is None and size not in known:
                known[size] = f"n{given.setdefault((buffer, dim), len(given))}"
            texts.append(known[size] if size.value is None else str(size.value))
        sources.append(tuple(texts))
    places = {buffer: number for number, buffer in enumerate((*arrays, *inside))}
    for found in lists:
        shape = tensor_of(found.type).get_shape()
        if (described := _described(found, ops, places)) is not None:
            sources.append(described)
        elif not isinstance(tensor_of(found.type).element_type, IntegerType | IndexType):
            return NoInterface("it reads a number of the host that is not an integer")
        elif any(size < 0 for size in shape) or prod(shape) > MOST_ELEMENTS:
            return NoInterface("it reads a long list of the host")
        else:
            sources.append(tuple(f"n{given.setdefault((found, at), len(given))}" for at in range(prod(shape))))
    return Interface(reads, writes, inside, lists, tuple(sources), tuple(given))


def _described(found: SSAValue, ops: Sequence[BufferOp], places: Mapping[SSAValue, int]) -> tuple[str, ...] | None:
    """The origin of each element of a list that is used only as the sizes of results; None if it has other uses.

    places  the number of each array
    """
    described: tuple[str, ...] | None = None
    for op in ops:
        for number, value in enumerate(op.inputs):
            if value is found:
                opcode = opcode_of(op.HLO)
                at = range(len(op.inputs))[SHAPE_OPERANDS.get(opcode, slice(0, 0))]
                if opcode not in DESCRIBED or number not in at:
                    return None
                result = [f"p{places[op.outputs[0]]}.{dim}" for dim in range(_rank(op.outputs[0]))]
                described = tuple(DESCRIBED[opcode](op, result))
    return described


def _rank(buffer: SSAValue) -> int:
    return tensor_of(buffer.type).get_num_dims()


def _slice_sizes(op: BufferOp, result: Sequence[str]) -> list[str]:
    """Sizes of a gather's slice: those of the result along the offset dimensions, 1 along collapsed dimensions."""
    left_out = {*integers(op.properties["collapsed_slice_dims"])}
    left_out |= {*integers(op.properties.get("operand_batching_dims"))}
    kept = iter(integers(op.properties["offset_dims"]))
    return ["1" if dim in left_out else result[next(kept)] for dim in range(_rank(op.inputs[0]))]


DESCRIBED: Mapping[str, Callable[[BufferOp, Sequence[str]], Sequence[str]]] = {
    "dynamic-broadcast-in-dim": lambda op, result: result,
    "dynamic-gather": _slice_sizes,
    "dynamic-iota": lambda op, result: result,
    "dynamic-reshape": lambda op, result: result,
}
"""Ops with one list that follows from the shape of their result -> its elements, from the texts of the result's sizes."""


def _number(code: IndexCode, value: SSAValue, at: int) -> SSAValue:
    shape = tensor_of(value.type).get_shape()
    if space_of(value.type) == HOST:
        place = list(product(*map(range, shape)))[at]
        return code.insert(memref.LoadOp.get(value, [code.value(index) for index in place]))
    assert isinstance(value.owner, memref.AllocOp)
    return value.owner.dynamic_sizes[sum(size < 0 for size in shape[:at])]


def _is_used_outside(buffer: SSAValue, fusion: FusionOp) -> bool:
    """Whether the fusion's writes to a buffer are used outside."""
    if not isinstance(buffer.owner, memref.AllocOp):
        return True
    return any(not (frees(use) or asks_size(use) or fusion.is_ancestor(use.operation)) for use in buffer.uses)


def _root(value: SSAValue) -> SSAValue:
    """The buffer that a second name refers to."""
    while isinstance(value.owner, IncRefOp):
        value = value.owner.source
    return value


# ----------------------------------------------------------------------------------------------------- the program alone


def fusion_alone(fusion: FusionOp, found: Interface) -> ModuleOp:
    """The fusion as a module, with the computations that it calls; see the file's head."""
    arguments = (*found.reads, *found.writes, *found.inside, *found.lists)
    block = Block(arg_types=[value.type for value in arguments])
    block.add_ops([fusion.clone(dict(zip(arguments, block.args, strict=True))), func.ReturnOp()])
    said = [DictionaryAttr({}) for _ in found.reads]
    said += [DictionaryAttr({WRITTEN: UnitAttr()}) for _ in found.writes]
    said += [DictionaryAttr({FROM: ArrayAttr(list(map(StringAttr, texts)))}) for texts in found.sources]
    main = func.FuncOp("main", FunctionType.from_lists([value.type for value in arguments], []), Region(block))
    main.arg_attrs = ArrayAttr(said)
    return ModuleOp([*(computation.clone() for computation in _called_in(fusion)), main])


def _called_in(fusion: FusionOp) -> list[ComputationOp]:
    """The computations that ops of the fusion call, directly or not."""
    found = dict[ComputationOp, None]()
    pending = [op.as_hlo() for op in fusion.body.block.ops if isinstance(op, BufferOp)]
    while pending:
        op = pending.pop()
        for callee in op.callees() if isinstance(op, CallingOp) else ():
            computation = find_computation(op, callee.symbol)
            if computation not in found:
                found[computation] = None
                pending += list(computation.instructions)
    return list(found)


@dataclass
class _Values:
    """Values of the texts in `disc.from` at these sizes."""

    numbers: Sequence[int]
    shapes: list[tuple[int, ...]]

    def of(self, text: str) -> int:
        if text[0] == "n":
            return int(self.numbers[int(text[1:])])
        if text[0] not in "ap":
            return int(text)
        number, _, dim = text[1:].partition(".")
        return self.shapes[int(number)][int(dim)]


def at_sizes(alone: ModuleOp, shapes: Sequence[Sequence[int]], numbers: Sequence[int]) -> ModuleOp:
    """The program at fixed sizes: takes the arrays that the fusion reads, and returns those that it writes.

    shapes   of the arrays
    numbers  in the order of the interface
    raises   InternalError for shapes that do not fit the program
    """
    (main,) = (op for op in alone.ops if isinstance(op, func.FuncOp))
    said = [attributes.data for attributes in main.arg_attrs or ()]
    values = _Values(numbers, [tuple(shape) for shape in shapes])
    reads = [argument for argument, found in zip(main.args, said, strict=True) if not found]
    block = Block()
    code = IndexCode(Builder(InsertPoint.at_end(block)), main.location)
    made = dict[SSAValue, SSAValue]()
    written, inside = list[SSAValue](), list[SSAValue]()
    for number, (argument, found) in enumerate(zip(main.args, said, strict=True)):
        if space_of(argument.type) == HOST:
            made[argument] = _list(code, argument, [values.of(text) for text in _texts(found)])
            continue
        if number >= len(shapes):
            values.shapes.append(tuple(values.of(text) for text in _texts(found)))
        ir_type = _sized(argument, values.shapes[number])
        if argument in reads:
            made[argument] = block.insert_arg(ir_type, len(block.args))
        else:
            made[argument] = code.insert(memref.AllocOp([], [], ir_type))
            (inside if FROM in found else written).append(made[argument])
    for op in main.body.block.ops:
        if not isinstance(op, func.ReturnOp):
            block.add_op(op.clone(dict(made)))
    block.add_ops([*map(memref.DeallocOp.get, inside), func.ReturnOp(*written)])
    types = FunctionType.from_lists(list(block.arg_types), [value.type for value in written])
    kept = [op.clone() for op in alone.ops if op is not main]
    return ModuleOp([*kept, func.FuncOp("main", types, Region(block))])


def _texts(said: Mapping[str, Attribute]) -> list[str]:
    found = said[FROM]
    assert isa(found, ArrayAttr[StringAttr])
    return [text.data for text in found]


def _sized(buffer: SSAValue, shape: Sequence[int]) -> MemRefType[Attribute]:
    known = tensor_of(buffer.type).get_shape()
    if len(known) != len(shape) or any(a != b and a >= 0 for a, b in zip(known, shape, strict=True)):
        raise InternalError(f"an array of {list(shape)} for {buffer.type}", stage="heat")
    return buffer_type(tensor_of(buffer.type).element_type, shape, space_of(buffer.type))


def _list(code: IndexCode, buffer: SSAValue, elements: Sequence[int]) -> SSAValue:
    """A host list with these elements."""
    element = tensor_of(buffer.type).element_type
    assert isa(element, IntegerType) or isa(element, IndexType)
    rank = tensor_of(buffer.type).get_num_dims()
    shape = [len(elements)] if rank == 1 else tensor_of(buffer.type).get_shape()
    made = code.insert(memref.AllocaOp.get(element, shape=shape, memory_space=StringAttr(HOST)))
    for place, value in zip(product(*map(range, shape)), elements, strict=True):
        number = code.insert(arith.ConstantOp(IntegerAttr(value, element)))
        code.builder.insert(memref.StoreOp.get(number, made, [code.value(index) for index in place]))
    return made
